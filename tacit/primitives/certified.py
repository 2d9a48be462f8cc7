"""exp(-x) between certified bounds, and coins that come up with exactly that probability (Remark 2.1)."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tacit.primitives.entropy import Entropy


def exp_bounds(num: int, den: int, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^bits exp(-num/den) <= high, for num >= 0, den > 0.

    They are equal at num = 0 and otherwise lie at most 2 apart.

    >>> exp_bounds(1, 1, 20)  # 2^20/e = 385749.5
    (385749, 385750)
    """
    if num == 0:
        return 1 << bits, 1 << bits
    if num > den * bits:
        return 0, 1  # exp(-x) < e^-bits < 2^-bits
    # exp(-x) = exp(-z)^(2^halvings) with z = x / 2^halvings < 2^-9
    halvings = max(0, num.bit_length() - den.bit_length() + 10)
    point = bits + halvings + 16 + bits.bit_length()
    z = (num << point) // (den << halvings)
    term = total = 1 << point
    order, sign = 0, 1
    while term:
        order += 1
        sign = -sign
        term = (term * z >> point) // order
        total += term if sign > 0 else -term
    # Every term is short of z^i/i! by less than 3 units, the cut tail by less than 3, and z by less than 1;
    # a squaring at most doubles an error in a number below 1, and adds 2.
    error = (3 * order + 6) << halvings
    for _ in range(halvings):
        total = total * total >> point
    shift = point - bits
    return max(0, (total - error) >> shift), (total + error >> shift) + 1


def below(known: int, weight: int, num: int, den: int, entropy: Entropy) -> bool:
    """Whether known + U < weight exp(-num/den) for U uniform on [0, 1), decided exactly.

    U is drawn only as far as the comparison needs it, and the bounds are sharpened with it; as exp of a rational
    other than 0 is irrational, the two part after finitely many bits.
    """
    guard, drawn = weight.bit_length() + 16, 0
    while True:
        low, high = exp_bounds(num, den, drawn + guard)
        if (known + 1) << guard <= weight * low:
            return True
        if known << guard >= weight * high:
            return False
        known = known << 64 | entropy.bits(64)
        drawn += 64


# Floats decide nothing here that their error could change. They meet only +, -, *, minimum and rounding to whole
# numbers, which IEEE 754 fixes to the last bit: no library's exp has to be believed.

MARGIN = 2.0**-40  # sixty times all errors below together, and too narrow to matter but once in 10^11 comparisons
_MOST = 64  # exp(-64) < 2^-92
_LN2 = Fraction("0.6931471805599453094172321214581765680755")  # short by less than 1e-40
_STEP = int(_LN2 * 2**40) / 2**46  # ln 2 / 64 in 40 bits, so that its multiples below 2^13 are exact
_REST = float(_LN2 / 64 - Fraction(_STEP))


def _powers() -> NDArray[np.float64]:
    # 2^(-j/64) is the 64th root of 2^(3840 - j) over 2^60; six square roots, each rounded down, are its whole part
    roots = [1 << 3840 - j for j in range(64)]
    for _ in range(6):
        roots = [isqrt(root) for root in roots]
    return np.array([root / 2 ** (60 + i) for i in range(_MOST * 3 // 2) for root in roots])


_POWERS = _powers()  # 2^(-n/64)


def exp_floats(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-x) for 0 <= x <= 64 with a relative error below 2^-50; exp(-64) beyond.

    With x = n ln 2 / 64 + r and |r| < 0.0055, exp(-x) = 2^(-n/64) exp(-r). x - n _STEP is exact (Sterbenz), so r is
    right to 2^-60; six terms of the series leave r^6/720 < 2^-54; the product adds four roundings of 2^-53.
    """
    x = np.minimum(x, _MOST)
    n = np.rint(x * (1 / _STEP))
    r = x - n * _STEP - n * _REST
    series = 1 - r * (1 - r * (1 / 2) * (1 - r * (1 / 3) * (1 - r * (1 / 4) * (1 - r * (1 / 5)))))
    return _POWERS.take(n.astype(np.intp)) * series
