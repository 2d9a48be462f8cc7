"""What the curator demands of whatever may touch a true answer: a loss and a sampler, side by side (Section 3.1)."""

from __future__ import annotations

from dataclasses import MISSING, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter, quoted
from tacit.privacy.budget import Loss
from tacit.rational import exact, shown

if TYPE_CHECKING:
    from tacit.primitives.noise import Noise


LEAST_CHANCE = 1e-250  # a smaller one, split over many answers, would be lost among the doubles


class Mechanism(Protocol):
    """One draw: frozen, printable, and its printed form is its entry in the ledger.

    The loss is promised for answers that one person moves by at most `sensitivity`, measured in `norm`.
    """

    @property
    def norm(self) -> Norm:
        """In which norm the query's sensitivity is asked."""

    @property
    def monotone(self) -> bool:
        """Whether it draws less noise because one person moves all answers in one direction.

        The kernel refuses such a mechanism unless the query proves it; it is never assumed.
        """

    def loss(self) -> Loss:
        """What one draw costs, whatever the answer is."""

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        """Refuses noise that cannot be drawn, by public facts alone and before anything is charged."""

    def sample(self, answer: Any, sensitivity: Fraction, noise: Noise) -> Any:
        """Draws the output from answers on a grid; the sensitivity is in natural units, not in units of the grid.

        One that says `lists` takes values with their counts instead, and the kernel gives it nothing else.
        """


class Interactive(Protocol):
    """Paid once, then asked query after query until it halts; its state between two queries is secret."""

    @property
    def norm(self) -> Norm:
        """In which norm the sensitivity of its queries is asked."""

    @property
    def monotone(self) -> bool:
        """Whether it needs queries that one person all moves in one direction."""

    @property
    def sensitivity(self) -> Fraction:
        """How far one person may move any query it is asked, in natural units."""

    def loss(self) -> Loss:
        """What the whole conversation costs, however long it lasts."""

    def check(self) -> None:
        """Refuses noise that cannot be drawn, before anything is charged."""

    def admit(self, size: int, grid: Fraction) -> None:
        """Refuses a query of answers that it cannot take, by public facts alone and before anything is read."""

    def start(self, noise: Noise) -> Any:
        """The first state."""

    def step(self, state: Any, answer: OnGrid, noise: Noise) -> tuple[Any | None, Any]:
        """The next state, None where it has halted, and the answer to this query."""


def positive(value: object, name: str) -> Fraction:
    """Reads a parameter that must be above zero, exactly as it was written.

    >>> positive("0.5", "epsilon")
    Fraction(1, 2)
    """
    number = exact(value, name)
    if number.numerator <= 0:
        raise InvalidParameter(f"{name} must be positive, not {shown(number)}. Nothing was drawn.")
    return number


def per_unit(sensitivity: Fraction, price: Fraction, grid: Fraction) -> Fraction:
    """sensitivity / (price grid): a scale in units of the grid, in one reduction instead of two.

    >>> per_unit(Fraction(3), Fraction(1, 2), Fraction(1, 4))
    Fraction(24, 1)
    """
    sensitivity, price, grid = exact(sensitivity, "a sensitivity"), exact(price, "a price"), exact(grid, "a grid")
    above = sensitivity.numerator * price.denominator * grid.denominator
    if above <= 0:
        raise InvalidParameter(
            f"a sensitivity and a grid must be positive, not {shown(sensitivity)} and {shown(grid)}. Nothing was drawn."
        )
    return Fraction(above, sensitivity.denominator * price.numerator * grid.numerator)


def chance(beta: float) -> float:
    """Reads a probability of failure, strictly between 0 and 1."""
    if not LEAST_CHANCE <= beta < 1:
        raise InvalidParameter(
            f"beta must lie strictly between 0 and 1, and not below {LEAST_CHANCE}: not {quoted(beta)}. "
            "Nothing was drawn."
        )
    return float(beta)


def printed(mechanism: Any) -> str:
    """The name and the exact parameters, those with their default value left out: `Laplace(epsilon=1/2)`."""
    given = ((field, getattr(mechanism, field.name)) for field in fields(mechanism) if field.repr)
    said = (f"{f.name}={v}" for f, v in given if f.default is MISSING or v != f.default)
    return f"{type(mechanism).__name__}({', '.join(said)})"
