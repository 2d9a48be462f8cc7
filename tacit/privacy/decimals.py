"""Sixty-digit arithmetic between exact fractions: search anywhere, certify here, round towards the claim."""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

# Every operation of this context, exp and ln included, is correctly rounded: a relative error of at most 5e-60.
# No trap: what underflows is below any number that matters here, and is 0.
WORK = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
SLACK = Decimal("1e-50")  # more than a million rounding errors

_LEAST = Fraction(1, 10**1000)  # what is smaller is shown as this, or as 0: whichever is on the safe side


def decimal(x: Fraction) -> Decimal:
    """The nearest number of sixty digits."""
    return WORK.divide(Decimal(x.numerator), Decimal(x.denominator))


def down(x: Decimal, digits: int = 15) -> Fraction:
    """The largest fraction of so many significant digits that is at most x."""
    return _short(x, digits, ROUND_FLOOR)


def up(x: Decimal, digits: int = 15) -> Fraction:
    """The least fraction of so many significant digits that is at least x."""
    return _short(x, digits, ROUND_CEILING)


def crossing(positive: Callable[[float], bool], low: float, high: float) -> float:
    """Where a test that holds on the left of a point and fails on its right turns, by bisection in floats."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if positive(middle) else (low, middle)
    return low


def _short(x: Decimal, digits: int, rounding: str) -> Fraction:
    if x.is_nan() or x.is_infinite():
        raise ArithmeticError("a bound left the range of sixty-digit arithmetic")
    rounded = Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]).plus(x)
    if rounded and rounded.adjusted() < -1000:
        if rounding == ROUND_CEILING:
            return _LEAST if rounded > 0 else Fraction(0)
        return Fraction(0) if rounded > 0 else -_LEAST
    return Fraction(rounded)
