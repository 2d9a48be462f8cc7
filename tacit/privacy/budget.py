"""What privacy costs: losses and budgets in exact fractions, one currency inside (Sections 2.3 and 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from tacit.errors import InvalidBudget, NoSuchGuarantee, quoted
from tacit.privacy.conversion import pure_epsilon_of, rho_of, rho_of_pure
from tacit.rational import Number, exact, shown, sqrt_down, whole

LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(1000)
LEAST_DELTA = Fraction(1, 10**100)


class Currency(Enum):
    """What a ledger counts in: both add up under adaptive and concurrent composition."""

    EPSILON = "epsilon"  # pure differential privacy (Def. 2.4, delta = 0)
    RHO = "rho"  # zero-concentrated differential privacy (Bun & Steinke 2016)


@dataclass(frozen=True)
class Loss:
    """One step's bound in both currencies; None where the step has no bound in that currency."""

    epsilon: Fraction | None
    rho: Fraction | None

    @classmethod
    def pure(cls, epsilon: Fraction) -> Loss:
        """eps-DP, hence (eps tanh(eps/2))-zCDP, which is never above eps^2/2; proved beside `rho_of_pure`."""
        epsilon = exact(epsilon, "epsilon")  # what is kept of it must not depend on who asks first
        return cls(epsilon, rho_of_pure(epsilon))

    @classmethod
    def bounded_range(cls, epsilon: Fraction) -> Loss:
        """eps-DP with log-ratios in an interval of length eps, hence eps^2/8-zCDP (Cesar & Rogers 2021).

        It has what any eps-DP step has as well, which is less from eps = 7.995 on.
        """
        epsilon = exact(epsilon, "epsilon")
        return cls(epsilon, min(rho_of_pure(epsilon), epsilon**2 / 8))

    @classmethod
    def concentrated(cls, rho: Fraction) -> Loss:
        """rho-zCDP and no pure bound."""
        return cls(None, rho)

    def __mul__(self, times: int) -> Loss:
        """The loss of so many such steps: the sum, in both currencies (Thm 3.16; Bun & Steinke 2016, Lemma 2.3)."""
        k = whole(times, "the number of steps", 1, 10**9)
        return Loss(*(bound if bound is None else k * bound for bound in (self.epsilon, self.rho)))

    def __str__(self) -> str:
        bounds = {"epsilon": self.epsilon, "rho": self.rho}
        return ", ".join(f"{name}={shown(bound)}" for name, bound in bounds.items() if bound is not None)


@dataclass(frozen=True)
class Budget:
    """An amount of one currency; (epsilon, delta) is turned into it once, at the door.

    >>> Budget.of(1) / 10 * 10 == Budget.of(1)
    True
    >>> print(Budget.of(1, "1e-9"))
    rho=0.0149730577 (epsilon=1, delta=1e-9)
    """

    amount: Fraction
    currency: Currency
    stated: tuple[Fraction, Fraction] | None = field(default=None, compare=False)  # what was said at the door

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Fraction) or self.amount <= 0:
            raise InvalidBudget("a budget is a positive exact fraction; make one with Budget.of. Nothing was spent.")
        if not isinstance(self.currency, Currency):  # the word "epsilon" would otherwise be taken for rho
            raise InvalidBudget(f"a budget's currency is a Currency, not {quoted(self.currency)}. Nothing was spent.")
        object.__setattr__(self, "amount", exact(self.amount, "a budget", InvalidBudget))

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0) -> Budget:
        """A promise of (epsilon, delta)-DP: pure where delta is 0, else the largest certified rho."""
        stated = checked_epsilon(epsilon), checked_delta(delta)
        if not stated[1]:
            return cls(stated[0], Currency.EPSILON, stated)
        return cls(rho_of(*stated), Currency.RHO, stated)

    @property
    def epsilon(self) -> Fraction:
        """The largest epsilon of one eps-DP step that this pays for (in rho: eps tanh(eps/2) <= rho)."""
        return self.amount if self.currency is Currency.EPSILON else pure_epsilon_of(self.amount)

    @property
    def bounded_range(self) -> Fraction:
        """The largest epsilon of one step of bounded range (an exponential mechanism) that this pays for."""
        if self.currency is Currency.EPSILON:
            return self.amount
        return max(sqrt_down(8 * self.amount), pure_epsilon_of(self.amount))

    @property
    def rho(self) -> Fraction:
        """The largest rho of one rho-zCDP step that this pays for."""
        if self.currency is Currency.EPSILON:
            raise NoSuchGuarantee(
                f"a budget of {self} has delta = 0, and noise with a Gaussian tail has no pure bound; "
                "use Laplace, or state a delta. Nothing was drawn."
            )
        return self.amount

    def price(self, loss: Loss) -> Fraction:
        """What a loss costs in this budget's currency."""
        price = loss.epsilon if self.currency is Currency.EPSILON else loss.rho
        if price is None:
            raise NoSuchGuarantee(
                f"a step of {loss} has no bound in {self.currency.value}, the currency of this budget. "
                "Nothing was drawn."
            )
        return price

    def loss(self) -> Loss:
        """What spending all of it costs, as one step."""
        return Loss.pure(self.amount) if self.currency is Currency.EPSILON else Loss.concentrated(self.amount)

    def __truediv__(self, parts: int) -> Budget:
        return Budget(self.amount / whole(parts, "the number of parts", 1, 10**9, InvalidBudget), self.currency)

    def __mul__(self, share: int | Fraction) -> Budget:
        factor = exact(share, "a share of a budget", InvalidBudget)
        if factor <= 0:
            raise InvalidBudget(f"a share of a budget must be positive, not {shown(factor)}. Nothing was spent.")
        return Budget(self.amount * factor, self.currency)

    def __str__(self) -> str:
        amount = f"{self.currency.value}={shown(self.amount, 9)}"
        if self.stated is None or self.currency is Currency.EPSILON:
            return amount
        epsilon, delta = self.stated
        return f"{amount} (epsilon={shown(epsilon)}, delta={shown(delta)})"


def checked_epsilon(epsilon: Number) -> Fraction:
    """An epsilon that can be a promise, or a refusal that names the limits."""
    value = exact(epsilon, "epsilon", InvalidBudget)
    if not LEAST_EPSILON <= value <= MOST_EPSILON:
        raise InvalidBudget(
            f"epsilon must lie between {shown(LEAST_EPSILON)} and {shown(MOST_EPSILON)}, not {shown(value)}. "
            "Nothing was spent."
        )
    return value


def checked_delta(delta: Number) -> Fraction:
    """A delta that can be a promise, or a refusal that names the limits."""
    value = exact(delta, "delta", InvalidBudget)
    if value != 0 and not LEAST_DELTA <= value < 1:
        raise InvalidBudget(
            f"delta must be 0, or at least {shown(LEAST_DELTA)} and below 1, not {shown(value)}. Nothing was spent."
        )
    return value
