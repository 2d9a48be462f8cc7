"""How wide Gaussian noise must be for (epsilon, delta): the book's formula and the exact one (Section 3.5.2)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from tacit.errors import InvalidBudget
from tacit.privacy.claims import PI, SLACK, TINY, amount, boundary, decimal, hundred_digits, probability, size, up
from tacit.rational import Number, shown

# Both are about real-valued noise, one release, and sensitivity in l2. The discrete Gaussian that is drawn here is
# charged in rho = sensitivity^2/(2 sigma^2) instead, which adds up.

_TAIL_ERROR = Decimal("1e-70")


def classical_sigma(epsilon: Number, delta: Number, sensitivity: Number) -> Fraction:
    """The standard deviation of Thm 3.22, rounded up: sensitivity sqrt(2 ln(1.25/delta))/eps.

    Privacy: (eps, delta)-DP for 0 < eps < 1 (Thm 3.22); beyond, the proof ends, and from about 8 on so does the truth.

    >>> float(classical_sigma("0.5", "1e-5", 1))
    9.68961052521078
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta")
    width = size(sensitivity, "the sensitivity")
    if e >= 1:
        raise InvalidBudget(
            f"Theorem 3.22 needs epsilon below 1, not {shown(e)}; `analytic_sigma` knows no such limit. "
            "Nothing was spent."
        )
    with hundred_digits():
        return up(decimal(width / e) * (2 * decimal(Fraction(5, 4) / d).ln()).sqrt() * (1 + SLACK))


def analytic_sigma(epsilon: Number, delta: Number, sensitivity: Number) -> Fraction:
    """The least standard deviation of Gaussian noise that is (epsilon, delta)-DP, rounded up.

    Privacy: `gaussian_delta` of what is returned is at most delta, by evaluation (Balle & Wang 2018, Thm 8).

    >>> float(analytic_sigma("0.5", "1e-5", 1))
    7.031826675582492
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta")
    width = size(sensitivity, "the sensitivity")
    with hundred_digits():
        limit = decimal(d)

        def holds(sigma: Fraction) -> bool:
            return _delta(decimal(e), decimal(sigma)) <= limit

        wide = narrow = Fraction(1)
        while not holds(wide):
            wide *= 4
        while holds(narrow):
            narrow /= 4
        return boundary(holds, wide, narrow) * width


def gaussian_delta(epsilon: Number, sigma: Number) -> Fraction:
    """The least delta for which Gaussian noise is (epsilon, delta)-DP, rounded up; sigma in units of the sensitivity.

    Privacy: Phi(1/(2 sigma) - eps sigma) - e^eps Phi(-1/(2 sigma) - eps sigma) (Balle & Wang 2018, Thm 8).

    >>> float(gaussian_delta(1, 1))
    0.126936737506644
    """
    e, s = amount(epsilon, "epsilon", zero=True), size(sigma, "sigma")
    with hundred_digits():
        return up(max(TINY, _delta(decimal(e), decimal(s))))


def _delta(e: Decimal, sigma: Decimal) -> Decimal:
    """From above: the two tails are of one size when sigma is large, so their difference keeps half of the digits."""
    half, middle = 1 / (2 * sigma), e * sigma
    first = _tail(middle - half)
    second = e.exp() * _tail(middle + half)
    # a relative error of 10^-99 in x is one of x^2 10^-99 in a tail at x
    error = _TAIL_ERROR * (1 + (middle + half) ** 2) * first
    return min(Decimal(1), max(Decimal(0), first - second) + error)


def _tail(x: Decimal) -> Decimal:
    """P[N(0,1) > x], within a relative 10^-75."""
    if x < 0:
        return 1 - _tail(-x)
    density = (-x * x / 2).exp() / (2 * PI).sqrt()
    if x < 8:
        # 1/2 - phi(x) (x + x^3/3 + x^5/(3 5) + ...), whose terms are positive; the tail at 8 is still 6e-16
        series = term = x
        odd = 1
        while term > series * Decimal("1e-100"):
            odd += 2
            term *= x * x / odd
            series += term
        return Decimal("0.5") - density * series
    # Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))): two neighbouring convergents enclose the truth
    depth = 64
    while True:
        one, two = _convergent(x, depth), _convergent(x, depth + 1)
        if abs(one - two) <= one * Decimal("1e-76"):
            return density * one
        depth *= 2


def _convergent(x: Decimal, depth: int) -> Decimal:
    value = x
    for i in range(depth, 0, -1):
        value = x + i / value
    return 1 / value
