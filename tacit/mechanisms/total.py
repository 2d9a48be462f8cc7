"""How many people there are: public, or bought (Section 4.1 takes it for granted; E20)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from tacit.curator.kernel import Curator
from tacit.domain.query import Counting
from tacit.errors import InvalidParameter
from tacit.primitives.additive import Gaussian, Laplace
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, exact, shown

SHARE = Fraction(1, 50)  # of a budget, for the number of people where it is not public


def counted(curator: Curator, budget: Budget, total: Number | None) -> tuple[float, Budget]:
    """The number of people, and the budget that is left for the rest.

    `total` is a public number: of the table under replace-one neighbours, or known from elsewhere. Without one a
    fiftieth of the budget buys a noisy count; a scale that depends on a private n would tell it (E20).
    """
    if total is not None:
        people = exact(total, "the number of people")
        if people <= 0:
            raise InvalidParameter(f"the number of people must be positive, not {shown(people)}. Nothing was spent.")
        return float(people), budget
    return told(curator, budget * SHARE), budget * (1 - SHARE)


def told(curator: Curator, budget: Budget) -> float:
    """A noisy number of people, at least one, for all of this budget."""
    return max(float(curator.release(noise(budget), Counting.where(curator.schema)).item()), 1.0)


def noise(budget: Budget) -> Laplace | Gaussian:
    """The additive noise that one release under all of this budget has."""
    return Laplace(budget.epsilon) if budget.currency is Currency.EPSILON else Gaussian(budget.rho)


def noise_bound(drawn: Laplace | Gaussian, beta: float, count: int, grid: Number) -> float:
    """How far off so many answers may be, each on whatever grid that this one divides: a whole number.

    A coarse grid's bound is none for a finer one, whose noise passes a whole number more often; on any grid it does so
    no more often than on the line.
    """
    return float(ceil(drawn.error_bound(beta, coordinates=count, grid=grid)))
