"""Exact numbers: how they are read from a caller, shown to a reader, and rounded in a stated direction."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import isfinite, isqrt
from operator import index
from typing import TypeAlias

from tacit.errors import InvalidInput, InvalidParameter, quoted

Number: TypeAlias = int | float | str | Decimal | Fraction

_DECIMAL = re.compile(r"[+-]?(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?\d{1,60}/\d{1,60}", re.ASCII)


def exact(value: object, name: str, error: type[InvalidInput] = InvalidParameter) -> Fraction:
    """Reads a number as the decimal that was written: 0.1, "0.1" and Fraction(1, 10) are one tenth.

    >>> exact(0.1, "epsilon"), exact("1e-9", "delta")
    (Fraction(1, 10), Fraction(1, 1000000000))
    """
    if isinstance(value, Fraction):
        # of numpy's integers it would be a Fraction as well, and its powers would wrap
        plain = type(value.numerator) is int and type(value.denominator) is int
        return value if plain else Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 1000:
        return Fraction(value)
    if isinstance(value, float) and isfinite(value):
        return Fraction(repr(float(value)))  # the shortest decimal that reads back as this float
    if isinstance(value, str):
        text = value.strip()
        if _DECIMAL.fullmatch(text):
            return Fraction(text)
        if _RATIO.fullmatch(text) and int(text.split("/")[1]):
            return Fraction(text)
    raise error(f"{name} must be a finite number, not {quoted(value)}. Nothing was spent.")


def whole(value: object, name: str, least: int, most: int, error: type[InvalidInput] = InvalidParameter) -> int:
    """Reads an integer between two public limits; True, 5.0 and "5" are not integers."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = index(value)  # type: ignore[arg-type]  # an array has __index__, and may still be none
    except TypeError:
        raise error(f"{name} must be a whole number, not {quoted(value)}. Nothing was spent.") from None
    if not least <= number <= most:
        raise error(f"{name} must lie between {least} and {most}, not {quoted(value)}. Nothing was spent.")
    return number


def proper(value: object, name: str, error: type[InvalidInput] = InvalidParameter) -> Fraction:
    """Reads a number strictly between 0 and 1."""
    share = exact(value, name, error)
    if not 0 < share < 1:
        raise error(f"{name} lies between 0 and 1, not {quoted(value)}. Nothing was spent.")
    return share


def shown(x: Fraction, digits: int = 10) -> str:
    """The exact decimal where it is short, and the first digits where it is not.

    >>> shown(Fraction(1, 4)), shown(Fraction(1, 3), 5)
    ('0.25', '0.33333')
    """
    if x.denominator == 1 and abs(x.numerator) < 10**15:
        return str(x.numerator)
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    rounded = context.normalize(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return f"{rounded:f}" if -5 <= rounded.adjusted() < 15 else f"{rounded:e}"


def floor_to(x: Fraction, grid: Fraction) -> Fraction:
    """The largest multiple of the grid that is at most x."""
    return (x / grid).__floor__() * grid


def ceil_to(x: Fraction, grid: Fraction) -> Fraction:
    """The least multiple of the grid that is at least x."""
    return (x / grid).__ceil__() * grid


def sqrt_down(x: Fraction, bits: int = 48) -> Fraction:
    """A rational with square at most x: exact for squares, else within a relative 2^-bits."""
    return _sqrt(x, bits, up=False)


def sqrt_up(x: Fraction, bits: int = 48) -> Fraction:
    """A rational with square at least x: exact for squares, else within a relative 2^-bits."""
    return _sqrt(x, bits, up=True)


def _sqrt(x: Fraction, bits: int, up: bool) -> Fraction:
    p, q = isqrt(x.numerator), isqrt(x.denominator)
    if p * p == x.numerator and q * q == x.denominator:
        return Fraction(p, q)
    # sqrt(x) = sqrt(x 4^k) / 2^k, with k such that the integer root has more than `bits` bits
    k = max(0, bits + 1 + (x.denominator.bit_length() - x.numerator.bit_length() + 1) // 2)
    scaled = x.numerator * 4**k
    root = isqrt(scaled // x.denominator)
    return Fraction(root + up, 2**k)
