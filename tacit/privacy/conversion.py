"""Between rho-zCDP and (epsilon, delta)-DP, certified (Bun & Steinke 2016; Canonne, Kamath & Steinke 2020)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import exp, log, log1p, tanh

from tacit.errors import InvalidBudget, InvalidParameter, quoted
from tacit.privacy.claims import SLACK, TINY, amount, decimal, down, hundred_digits, probability, up
from tacit.rational import Number, shown, sqrt_down

# rho-zCDP gives (eps, delta)-DP as soon as one order a = 1 + b > 1 satisfies
#     ln delta >= (a-1)(a rho - eps) + a ln(1 - 1/a) - ln(a-1) = b (a rho - eps - ln(a/b)) - ln a.
# Every order is a proof, so the order is looked for in floats, and what it proves is evaluated at a hundred digits.
# The right side is convex in a: each of the three searches below has exactly one turning point.
_LEAST_LOG, _MOST_LOG = log(1e-15), log(1e30)  # of b; these limits cost sharpness at most

# eps-DP is rho-zCDP with rho = eps tanh(eps/2), and with no smaller one. Let r = dP/dQ: it lies in [1/c, c], c = e^eps,
# and E_Q r = 1. For a > 1 the function r^a is convex, so it lies below its chord over that interval, and E_Q r^a is at
# most what the chord has at 1: what randomized response has, which takes the two ends only. With h = eps/2,
#     (a-1) D_a <= ln(cosh((2a-1)h) / cosh(h)).
# Now ln cosh(sqrt(y)) is concave in y: its derivative, tanh(x)/(2x) at x = sqrt(y), falls, since x < sinh(x) cosh(x).
# So it rises from y = h^2 to y = (2a-1)^2 h^2 by at most ((2a-1)^2 - 1) h^2 tanh(h)/(2h) = (a-1) a eps tanh(eps/2), and
# D_a <= a rho for every order. As a falls to 1, randomized response's D_a/a tends to rho: it is the mean of Lemma 3.18.
_NO_GAIN = Fraction(1, 10**7)  # for eps up to here rho is eps^2/2 to fifteen digits


def rho_of(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho of which rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Privacy: the certificate above, solved for rho: (eps + ln(a/b) + (ln delta + ln a)/b) / a.

    >>> float(rho_of(1, "1e-9"))
    0.0149730576735885
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta")
    with hundred_digits():
        log_delta = decimal(d).ln()
        eps, bits = float(e), -float(log_delta)
        b = _order(lambda b: (bits - log1p(b)) * (1 + 2 * b) / b > b * (eps + log1p(1 / b)))
        rho = (decimal(e) + _bonus(b, log_delta) - _error(decimal(e), b, log_delta)) / (1 + b)
        if rho > 0:
            return down(rho)
    raise InvalidBudget(f"epsilon={shown(e)}, delta={shown(d)} is too small for any rho. Nothing was spent.")


def epsilon_of(rho: Number, delta: Number) -> Fraction:
    """The least epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up; 0 where delta alone suffices.

    Privacy: the certificate above, solved for eps: a rho - ln(a/b) - (ln delta + ln a)/b.

    >>> float(epsilon_of("0.01", "1e-9"))
    0.810174467867535
    """
    r, d = amount(rho, "rho"), probability(delta, "delta")
    with hundred_digits():
        log_delta = decimal(d).ln()
        slope, bits = float(r), -float(log_delta)
        b = _order(lambda b: slope * b * b + log1p(b) < bits)
        product = (1 + b) * decimal(r)
        return up(max(Decimal(0), product - _bonus(b, log_delta) + _error(product, b, log_delta)))


def delta_of(rho: Number, epsilon: Number) -> Fraction:
    """The least delta such that rho-zCDP implies (epsilon, delta)-DP, rounded up and at most 1.

    Privacy: the certificate above as it stands.

    >>> float(delta_of("0.01", 1))
    1.664113977388e-13
    """
    r, e = amount(rho, "rho"), amount(epsilon, "epsilon", zero=True)
    with hundred_digits():
        slope, eps = float(r), float(e)
        b = _order(lambda b: (1 + 2 * b) * slope < eps + log1p(1 / b))
        a = 1 + b
        exponent = b * (a * decimal(r) - decimal(e) - (a / b).ln()) - a.ln()
        size = b * (a * decimal(r) + decimal(e) + 1) + a
        return up(min(Decimal(1), TINY + (exponent + SLACK * size).exp() * (1 + SLACK)))


@lru_cache(maxsize=1024, typed=True)  # a float that equals a fraction must not stand for it
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """The least rho such that every eps-DP step is rho-zCDP, rounded up.

    Privacy: eps tanh(eps/2), as shown above; it is below eps^2/2 (Bun & Steinke 2016, Prop. 1.4) and below eps.

    >>> float(rho_of_pure(Fraction(1)))
    0.46211715726001
    """
    if type(epsilon) is not Fraction or epsilon < 0:
        raise InvalidParameter(f"an epsilon is priced as an exact fraction from 0 on, not {quoted(epsilon)}.")
    if epsilon < _NO_GAIN:
        return epsilon**2 / 2
    with hundred_digits():
        e = decimal(epsilon)
        lie = (-e).exp()  # over the truth, in randomized response
        return min(epsilon, epsilon**2 / 2, up(e * (1 - lie) / (1 + lie) * (1 + SLACK)))


def pure_epsilon_of(rho: Fraction) -> Fraction:
    """The largest epsilon such that every eps-DP step is rho-zCDP, rounded down.

    Privacy: `rho_of_pure` of the returned epsilon is at most rho, by evaluation.

    >>> float(pure_epsilon_of(Fraction(1, 2)))
    1.04362689559151
    """
    least = max(sqrt_down(2 * rho), rho)
    if not _NO_GAIN**2 < rho < 50:
        return least
    target, low, high = float(rho), float(least), float(rho) + 1
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if middle * tanh(middle / 2) < target else (low, middle)
    with hundred_digits():
        sharper = down(Decimal(repr(low)) * (1 - Decimal("2e-14")))  # more than the floats and the rounding up are off
    return max(least, sharper) if rho_of_pure(sharper) <= rho else least


def classic_rho_of(epsilon: Number, delta: Number) -> Fraction:
    """The rho of the simple conversion eps = rho + 2 sqrt(rho ln(1/delta)), rounded down; never above `rho_of`.

    Privacy: Bun & Steinke 2016, Prop. 1.3: rho = (sqrt(ln(1/delta) + eps) - sqrt(ln(1/delta)))^2.
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta")
    with hundred_digits():
        bits = -decimal(d).ln()
        eps = decimal(e)
        root = eps / ((bits + eps).sqrt() + bits.sqrt())  # the difference of the roots, without cancellation
        return down(root * root * (1 - SLACK))


def classic_epsilon_of(rho: Number, delta: Number) -> Fraction:
    """The epsilon of the simple conversion, rounded up; never below `epsilon_of`.

    Privacy: Bun & Steinke 2016, Prop. 1.3: rho + 2 sqrt(rho ln(1/delta)).
    """
    r, d = amount(rho, "rho"), probability(delta, "delta")
    with hundred_digits():
        return up((decimal(r) + 2 * (decimal(r) * -decimal(d).ln()).sqrt()) * (1 + SLACK))


def _order(before: Callable[[float], bool]) -> Decimal:
    """The b at which a search turns, by halving its logarithm."""
    low, high = _LEAST_LOG, _MOST_LOG
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if before(exp(middle)) else (low, middle)
    return Decimal(repr(exp(middle)))


def _bonus(b: Decimal, log_delta: Decimal) -> Decimal:
    """By how much the certified eps lies below a rho: ln(a/b) + (ln delta + ln a)/b."""
    a = 1 + b
    return (a / b).ln() + (log_delta + a.ln()) / b


def _error(first: Decimal, b: Decimal, log_delta: Decimal) -> Decimal:
    """More than the rounding errors of a sum of `first` and the bonus: each is 10^-99 of its term, or of 1/b."""
    return SLACK * (first + 1 + (1 - log_delta + (1 + b).ln()) / b)
