"""exp(-x) between certified bounds, and coins that come up with exactly that probability (Remark 2.1)."""

from __future__ import annotations

from tacit.primitives.entropy import Entropy


def exp_bounds(num: int, den: int, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^bits exp(-num/den) <= high, for num >= 0, den > 0.

    They are equal at num = 0 and otherwise lie at most 2 apart.

    >>> exp_bounds(1, 1, 20)  # 2^20/e = 385749.5
    (385749, 385751)
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
