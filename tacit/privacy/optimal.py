"""The exact price of k pure steps: no smaller one is true (Kairouz, Oh & Viswanath 2015; sharpens Thm 3.20)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

from tacit.errors import InvalidBudget
from tacit.privacy.claims import PI, SLACK, amount, boundary, decimal, down, hundred_digits, probability, up
from tacit.rational import Number, shown, whole

MOST_STEPS = 10**6
_LOST = Decimal("1e-90")  # more than a hundred digits lose of a power of up to MOST_STEPS


def optimal_delta(epsilon: Number, epsilon0: Number, k: int, delta0: Number = 0) -> Fraction:
    """The least delta such that k adaptive steps of (epsilon0, delta0)-DP are (epsilon, delta)-DP, rounded up.

    Privacy: Kairouz, Oh & Viswanath 2015, Thm 3.3: k randomized responses are the worst case, so delta is
    sum_i C(k,i) p^i (1-p)^(k-i) [1 - e^(eps - (2i-k) eps0)]_+ with p = e^eps0/(1 + e^eps0), and with delta0
    1 - (1-delta0)^k (1-delta).

    >>> float(optimal_delta(1, "0.1", 30))
    0.01056167633863
    """
    e, e0 = amount(epsilon, "epsilon", zero=True), amount(epsilon0, "epsilon0")
    k, d0 = _steps(k), probability(delta0, "delta0", zero=True)
    with hundred_digits():
        pure = _delta(e, e0, k)
        if not d0:
            return up(pure) if pure else Fraction(0)
        failed = _failed(d0, k)
        return up(min(Decimal(1), (failed + (1 - failed) * pure) * (1 + SLACK)))


def optimal_epsilon(delta: Number, epsilon0: Number, k: int, delta0: Number = 0) -> Fraction:
    """The least epsilon such that k adaptive steps of (epsilon0, delta0)-DP are (epsilon, delta)-DP, rounded up.

    Privacy: `optimal_delta` of the returned epsilon is at most delta, by evaluation.
    """
    e0, k = amount(epsilon0, "epsilon0"), _steps(k)
    with hundred_digits():
        spare = _spare(probability(delta, "delta", zero=True), probability(delta0, "delta0", zero=True), k)
        if not spare:
            return k * e0
        return boundary(lambda e: _delta(e, e0, k) <= spare, k * e0, Fraction(0))


def optimal_epsilon0(epsilon: Number, delta: Number, k: int, delta0: Number = 0) -> Fraction:
    """The largest epsilon0 such that k adaptive steps of (epsilon0, delta0)-DP are (epsilon, delta)-DP, rounded down.

    Privacy: `optimal_delta` of the returned epsilon0 is at most delta, by evaluation.

    >>> float(optimal_epsilon0(1, "1e-5", 100))
    0.02705923812878063
    """
    e, k = amount(epsilon, "epsilon"), _steps(k)
    with hundred_digits():
        spare = _spare(probability(delta, "delta", zero=True), probability(delta0, "delta0", zero=True), k)
        if not spare:
            return e / k
        one = down(((decimal(e).exp() + spare) / (1 - spare)).ln()) * 2  # beyond what even a single step may cost
        return boundary(lambda e0: _delta(e, e0, k) <= spare, e / k, one)


def _steps(k: int) -> int:
    return whole(k, "the number of steps k", 1, MOST_STEPS)


def _failed(d0: Fraction, k: int) -> Decimal:
    """1 - (1-delta0)^k from above; where it is so small that the difference loses its digits, k delta0 has them."""
    return min(decimal(k * d0), 1 - (k * decimal(1 - d0).ln()).exp() + _LOST)


def _spare(d: Fraction, d0: Fraction, k: int) -> Decimal:
    """The delta left to the pure parts once k failures of delta0 are paid: 1 - (1-delta)/(1-delta0)^k, from below."""
    if not d0:
        return decimal(d)
    failed = _failed(d0, k)
    spare = (decimal(d) - failed) / (1 - failed) - SLACK * decimal(d) if failed < 1 else Decimal(-1)
    if spare < 0 and k * d0 > d:
        raise InvalidBudget(
            f"{k} steps of delta0={shown(d0)} fail more often than delta={shown(d)} allows. Nothing was spent."
        )
    return max(Decimal(0), spare)


def _delta(e: Fraction, e0: Fraction, k: int) -> Decimal:
    """The sum over the outcomes whose loss (2i-k) eps0 exceeds eps, from above."""
    first = ((e / e0 + k) / 2).__floor__() + 1
    if first > k:
        return Decimal(0)
    tilt = decimal(e0).exp()
    term = (_log_choose(k, first) + first * decimal(e0) - k * (1 + tilt).ln()).exp()
    part = (decimal(e) - (2 * first - k) * decimal(e0)).exp()
    shrink = 1 / (tilt * tilt)
    total = mass = Decimal(0)
    for i in range(first, k + 1):
        total += term * (1 - part)
        mass += term
        growth = tilt * (k - i) / (i + 1)  # falls with i: once it is below 1, the rest is a geometric series
        term *= growth
        part *= shrink
        if growth < 1 and term < SLACK * SLACK * mass * (1 - growth):
            break
    return total + SLACK * mass


@lru_cache(maxsize=1)
def _bernoulli() -> tuple[Fraction, ...]:
    """B_2, B_4, ..., B_80."""
    numbers = [Fraction(1)]
    for m in range(1, 81):
        numbers.append(-sum((comb(m + 1, j) * numbers[j] for j in range(m)), Fraction(0)) / (m + 1))
    return tuple(numbers[2::2])


def _log_factorial(n: int) -> Decimal:
    """ln n! by Stirling's series, whose error is below its first omitted term: 10^-80 here (sharpens Thm 3.4)."""
    if n < 200:
        return Decimal(factorial(n)).ln()
    x = Decimal(n)
    series = sum(
        (decimal(b) / (2 * m * (2 * m - 1) * x ** (2 * m - 1)) for m, b in enumerate(_bernoulli(), 1)), Decimal(0)
    )
    return x * x.ln() - x + (2 * PI * x).ln() / 2 + series


def _log_choose(k: int, i: int) -> Decimal:
    return _log_factorial(k) - _log_factorial(i) - _log_factorial(k - i)
