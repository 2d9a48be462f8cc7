"""Bounds that are claims: read exactly, evaluated at a hundred digits, rounded to the side on which they hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from math import sqrt

from tacit.errors import InvalidBudget, InvalidInput, InvalidParameter
from tacit.rational import Number, exact, shown

LEAST, MOST = Fraction(1, 10**30), Fraction(10**6)  # no epsilon or rho beyond them means anything
SLACK = Decimal("1e-50")  # relative: half of the digits that the arithmetic below carries
PI = Decimal(
    "3.141592653589793238462643383279502884197169399375105820974944"
    "59230781640628620899862803482534211706798214808651328230665"
)

_DIGITS = 15  # of a rounded claim: a moderate denominator, and 10^-14 of the amount at most is given away
TINY = Decimal("1e-2000")  # stands in a bound from above for what underflowed
_SMALLEST = Fraction(1, 10**1000)  # no claim is rounded up to less


def hundred_digits() -> AbstractContextManager[Context]:
    """Decimal arithmetic with errors below 10^-99 of each result, exp and ln included; what underflows is 0."""
    return localcontext(Context(prec=100, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]))


def decimal(x: Fraction) -> Decimal:
    """The nearest decimal of the context in force."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def up(x: Decimal) -> Fraction:
    """The least fraction of fifteen significant digits that is at least x, for a bound from above."""
    rounded = _short(x, ROUND_CEILING)
    return _SMALLEST if rounded and 0 < x < Decimal("1e-1000") else Fraction(rounded)


def down(x: Decimal) -> Fraction:
    """The largest fraction of fifteen significant digits that is at most x, for a bound from below."""
    rounded = _short(x, ROUND_FLOOR)
    return Fraction(0) if 0 < x < Decimal("1e-1000") else Fraction(rounded)


def _short(x: Decimal, rounding: str) -> Decimal:
    if not x.is_finite():
        raise InvalidParameter("the bound is too large to be written down. Nothing was spent.")
    return Context(prec=_DIGITS, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]).plus(x)


def boundary(holds: Callable[[Fraction], bool], good: Fraction, bad: Fraction) -> Fraction:
    """The last number at which a monotone claim holds, between one where it does and one where it may not.

    The search halves in floats; what it returns was itself put to the test, so only its sharpness rests on the search.
    """
    if holds(bad):
        return bad
    near, far = float(good), float(bad)
    while True:
        # in proportion while the two are far apart, since claims span many orders of magnitude
        middle = sqrt(near * far) if near > 0 and far > 0 and not 0.5 < near / far < 2 else (near + far) / 2
        if middle in (near, far):
            return good
        candidate = Fraction(repr(middle))  # at most seventeen digits
        if holds(candidate):
            near, good = middle, candidate
        else:
            far = middle


def amount(value: Number, name: str, *, zero: bool = False) -> Fraction:
    """Reads an epsilon or a rho of a size that can mean something, or a refusal that names the limits."""
    return _within(value, name, MOST, zero, InvalidBudget)


def size(value: Number, name: str, *, zero: bool = False) -> Fraction:
    """Reads a scale, a sensitivity or a distance, or a refusal that names the limits."""
    return _within(value, name, 1 / LEAST, zero, InvalidParameter)


def probability(value: Number, name: str, *, zero: bool = False, error: type[InvalidInput] = InvalidBudget) -> Fraction:
    """Reads a number strictly between 0 and 1 (or 0 itself, where it is allowed), or a refusal that says so."""
    x = exact(value, name, error)
    if (x == 0 and zero) or _SMALLEST <= x <= 1 - LEAST:
        return x
    allowed = "be at least 0 and below 1" if zero else "lie strictly between 0 and 1"
    raise error(f"{name} must {allowed} (by {shown(LEAST)}), not {shown(x)}. Nothing was spent.")


def _within(value: Number, name: str, most: Fraction, zero: bool, error: type[InvalidInput]) -> Fraction:
    x = exact(value, name, error)
    if (x == 0 and zero) or LEAST <= x <= most:
        return x
    allowed = f"{'be 0 or ' if zero else ''}lie between {shown(LEAST)} and {shown(most)}"
    raise error(f"{name} must {allowed}, not {shown(x)}. Nothing was spent.")
