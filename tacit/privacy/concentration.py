"""How far sums and noise stray: Chernoff, Azuma, Stirling and the errors of noise (Section 3.1, Thm 3.8).

Accuracy only, hence in floats: no promise of privacy rests on what they return.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import exp, expm1, log, log1p, sqrt

from tacit.errors import InvalidParameter
from tacit.privacy.claims import PI, SLACK, decimal, down, hundred_digits, probability, size, up
from tacit.rational import Number, exact, shown, whole

MOST_TERMS = 10**15


def chernoff_additive(m: int, t: Number) -> float:
    """P[mean > mu + t], and P[mean < mu - t], for m independent variables in [0, 1].

    Accuracy: Thm 3.1: e^(-2 m t^2).
    """
    return exp(-2 * _count(m) * _size(t, "t") ** 2)


def chernoff_above(m: int, mu: Number, gamma: Number) -> float:
    """P[sum > (1 + gamma) m mu] for m independent variables in [0, 1] of mean mu.

    Accuracy: Thm 3.2 with its range: e^(-m mu gamma^2/3) for 0 < gamma <= 1 (errata, E2; false at gamma = 4).
    """
    factor = exact(gamma, "gamma")
    if not 0 < factor <= 1:
        raise InvalidParameter(f"gamma must lie above 0 and at most at 1, not {shown(factor)}. Nothing was spent.")
    return exp(-_count(m) * _share(mu, "mu") * float(factor) ** 2 / 3)


def chernoff_below(m: int, mu: Number, gamma: Number) -> float:
    """P[sum < (1 - gamma) m mu] for m independent variables in [0, 1] of mean mu.

    Accuracy: Thm 3.2: e^(-m mu gamma^2/2) for 0 < gamma < 1.
    """
    return exp(-_count(m) * _share(mu, "mu") * _share(gamma, "gamma") ** 2 / 2)


def azuma(effects: Iterable[Number], t: Number) -> float:
    """P[f > E f + t] for a function whose expectation its i-th variable moves by at most the i-th effect.

    Accuracy: Thm 3.3: e^(-2 t^2 / sum c_i^2).
    """
    squares = sum(_size(c, "an effect") ** 2 for c in effects)
    if not squares:
        raise InvalidParameter("a function of no variables does not stray; name their effects. Nothing was spent.")
    return exp(-2 * _size(t, "t") ** 2 / squares)


def azuma_sum(k: int, most: Number, mean: Number, z: Number) -> tuple[float, float]:
    """What k steps in [-most, most], of mean at most `mean` whatever came before, sum to; and how likely it is passed.

    Accuracy: Lemma 3.19: P[sum > k mean + z sqrt(k) most] <= e^(-z^2/2).
    """
    steps, away = _count(k), _size(z, "z")
    limit = steps * float(size(mean, "the mean", zero=True))
    return limit + away * sqrt(steps) * _size(most, "the largest step"), exp(-(away**2) / 2)


def stirling(n: int) -> tuple[Fraction, Fraction]:
    """Below and above ln n!.

    Accuracy: Thm 3.4: sqrt(2 pi n) (n/e)^n e^(1/(12n+1)) < n! < sqrt(2 pi n) (n/e)^n e^(1/(12n)).
    """
    whole(n, "n", 1, MOST_TERMS)
    with hundred_digits():
        x = decimal(Fraction(n))
        middle = x * x.ln() - x + (2 * PI * x).ln() / 2
        return down((middle + 1 / (12 * x + 1)) * (1 - SLACK)), up((middle + 1 / (12 * x)) * (1 + SLACK))


def laplace_tail(t: Number, scale: Number) -> float:
    """P[|Y| >= t] for Laplace noise.

    Accuracy: Fact 3.7: e^(-t/scale).
    """
    return exp(-float(size(t, "t", zero=True)) / _size(scale, "the noise scale"))


def laplace_max_error(k: int, beta: Number, scale: Number) -> float:
    """What the largest of k Laplace noises reaches with probability at most beta, for noise that may be dependent.

    Accuracy: Thm 3.8: scale ln(k/beta).

    >>> round(laplace_max_error(10_000, 0.05, 1), 8)
    12.20607265
    """
    return _size(scale, "the noise scale") * (log(_count(k)) - log(_share(beta, "beta")))


def laplace_max_quantile(k: int, beta: Number, scale: Number) -> float:
    """What the largest of k independent Laplace noises reaches with probability beta.

    Accuracy: exact: -scale ln(1 - (1-beta)^(1/k)), just below Thm 3.8.

    >>> round(laplace_max_quantile(10_000, 0.05, 1), 8)
    12.18053819
    """
    return -_size(scale, "the noise scale") * log(_each(k, beta))


def discrete_laplace_tail(t: int, scale: Number) -> float:
    """P[|Z| >= t] for the discrete Laplace law P[z] ~ e^(-|z|/scale).

    Accuracy: exact: 2 q^t/(1+q) with q = e^(-1/scale), for t >= 1. That is above Fact 3.7 by the factor 2/(1+q), but
    P[|Z| > t] is below it: a bound for real-valued noise holds on a grid once it is rounded up and passed.
    """
    q, least = exp(-1 / _size(scale, "the noise scale")), whole(t, "t", 0, MOST_TERMS)
    return 2 * q**least / (1 + q) if least else 1.0


def _each(k: int, beta: Number) -> float:
    """The failure that each of k independent parts may have: 1 - (1-beta)^(1/k)."""
    return -expm1(log1p(-_share(beta, "beta")) / _count(k))


def _count(m: int) -> int:
    return whole(m, "the number of terms", 1, MOST_TERMS)


def _size(value: Number, name: str) -> float:
    return float(size(value, name))


def _share(value: Number, name: str) -> float:
    return float(probability(value, name, error=InvalidParameter))
