"""Between rho-zCDP and (epsilon, delta), certified: the conversion at the door (Bun & Steinke 2016)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import exp, log, log1p

from tacit.errors import InvalidBudget
from tacit.privacy.decimals import SLACK, WORK, crossing, decimal, down
from tacit.rational import Number, exact, shown

# the orders b = a - 1 that a search may choose; any order certifies, so a limit costs accuracy at most
_LEAST_LOG_ORDER, _MOST_LOG_ORDER = log(1e-20), log(1e25)


def rho_of(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho such that rho-zCDP implies (epsilon, delta)-DP, rounded down to fifteen digits.

    Privacy: rho-zCDP gives (eps, delta)-DP as soon as one order a = 1 + b > 1 satisfies
    (a-1)(a rho - eps) + a ln(1 - 1/a) - ln(a-1) <= ln delta (Canonne, Kamath & Steinke 2020). The order is
    found in floats; what it certifies is evaluated at sixty digits and rounded down.

    >>> float(rho_of(1, "1e-9"))
    0.0149730576735885
    """
    e, d = _positive(epsilon, "epsilon"), _probability(delta, "delta")
    log_delta = WORK.ln(decimal(d))
    eps, bits = float(e), -float(log_delta)

    # The logarithm of delta is convex in a, so rho(b) has one peak: where (ln(1/delta) - ln(1+b))(1+2b)/b^2 falls
    # below eps + ln(1+1/b).
    def before_the_peak(x: float) -> bool:
        b = exp(x)
        return (bits - log1p(b)) * (1 + 2 * b) / b > b * (eps + log1p(1 / b))

    b = Decimal(repr(exp(crossing(before_the_peak, _LEAST_LOG_ORDER, _MOST_LOG_ORDER))))
    rho = WORK.divide(
        WORK.subtract(WORK.add(decimal(e), _bonus(b, log_delta)), _slack(e, b, log_delta)), WORK.add(1, b)
    )
    if rho <= 0:
        raise InvalidBudget(
            f"no rho can be certified for epsilon={shown(e)}, delta={shown(d)}: they are too small. Nothing was spent."
        )
    return down(rho)


def _bonus(b: Decimal, log_delta: Decimal) -> Decimal:
    """By how much the eps certified by order 1 + b lies below (1 + b) rho: ln((1+b)/b) + (ln delta + ln(1+b))/b."""
    a = WORK.add(1, b)
    share = WORK.divide(WORK.add(log_delta, WORK.ln(a)), b)
    return WORK.add(WORK.ln(WORK.divide(a, b)), share)


def _slack(e: Fraction, b: Decimal, log_delta: Decimal) -> Decimal:
    # each term of the sum carries a few errors of 5e-60 of its own size, or of 1 before a division by b
    size = 1 + e + Fraction(1 - log_delta) / Fraction(b)
    return SLACK * Decimal(size.__ceil__())


def _positive(value: Number, name: str) -> Fraction:
    x = exact(value, name, InvalidBudget)
    if x <= 0:
        raise InvalidBudget(f"{name} must be positive, not {shown(x)}. Nothing was spent.")
    return x


def _probability(value: Number, name: str) -> Fraction:
    x = exact(value, name, InvalidBudget)
    if not 0 < x < 1:
        raise InvalidBudget(f"{name} must lie strictly between 0 and 1, not {shown(x)}. Nothing was spent.")
    return x
