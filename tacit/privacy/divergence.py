"""How far two output laws are apart: privacy as a divergence (Defs. 2.2, 3.5, 3.6; Lemmas 3.17, 3.18)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite
from typing import TypeAlias

from tacit.errors import InvalidParameter
from tacit.privacy.claims import LEAST, SLACK, amount, decimal, hundred_digits, probability, size, up
from tacit.rational import Number, whole

Law: TypeAlias = Sequence[Fraction | float]  # one probability for each outcome, in a fixed order
_ROUNDED = Fraction(1, 10**9)  # by so much may the floats of a law miss 1 in sum


def simplex(law: Law) -> tuple[Fraction, ...]:
    """The probabilities of a law on a finite range (Def. 2.1): exact where given as fractions, else as the floats are.

    >>> simplex([Fraction(3, 4), 0.25])
    (Fraction(3, 4), Fraction(1, 4))
    """
    for p in law:
        if (
            isinstance(p, bool)
            or not isinstance(p, (int, float, Fraction))
            or (isinstance(p, float) and not isfinite(p))
        ):
            raise InvalidParameter("a probability is a fraction or a finite float. Nothing was spent.")
    exactly = tuple(Fraction(p) for p in law)
    off = abs(sum(exactly, Fraction(-1)))
    if any(p < 0 for p in exactly) or off > _ROUNDED or (off and not any(isinstance(p, float) for p in law)):
        raise InvalidParameter("the probabilities of a law are not negative and sum to 1. Nothing was spent.")
    return exactly


def _pairs(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    if len(p) != len(q):
        raise InvalidParameter(f"two laws of {len(p)} and {len(q)} outcomes have no common range. Nothing was spent.")
    return list(zip(simplex(p), simplex(q), strict=True))


def privacy_loss(p: Law, q: Law, outcome: int) -> float:
    """ln p(o)/q(o), what one outcome says about which of two databases was there (Section 2.3)."""
    a, b = _pairs(p, q)[whole(outcome, "an outcome", 0, len(p) - 1)]
    if not a:
        raise InvalidParameter("an outcome of probability 0 has no privacy loss. Nothing was spent.")
    return _log_ratio(a, b)


def kl(p: Law, q: Law) -> float:
    """The expected privacy loss, sum p ln(p/q) (Def. 3.5)."""
    pairs = [(a, b) for a, b in _pairs(p, q) if a]
    if not all(b for _, b in pairs):
        return inf
    with hundred_digits():
        return float(sum((decimal(a) * decimal(a / b).ln() for a, b in pairs), Decimal(0)))


def renyi(p: Law, q: Law, alpha: Number) -> float:
    """ln(sum p^alpha q^(1-alpha)) / (alpha - 1); `kl` at alpha = 1, and it grows to `max_divergence`.

    Privacy: rho-zCDP says renyi(p, q, alpha) <= alpha rho for every alpha > 1 (Bun & Steinke 2016, Def. 1.1).
    """
    order = size(alpha, "alpha")
    if abs(order - 1) < LEAST:  # between the two no float lies
        return kl(p, q)
    pairs = [(a, b) for a, b in _pairs(p, q) if a]
    if order > 1 and not all(b for _, b in pairs):
        return inf
    with hundred_digits():
        power = decimal(order)
        exponents = [power * decimal(a / b).ln() + decimal(b).ln() for a, b in pairs if b]
        if not exponents:
            return inf
        most = max(exponents)
        rest = sum(((x - most).exp() for x in exponents), Decimal(0))
        return float((most + rest.ln()) / (power - 1))


def max_divergence(p: Law, q: Law) -> float:
    """The largest privacy loss of any event, hence of any outcome (Def. 3.6).

    Privacy: a mechanism is eps-DP iff this is at most eps for every ordered pair of neighbours (Remark 3.2).
    """
    return max(_log_ratio(a, b) for a, b in _pairs(p, q) if a)


def approx_max_divergence(p: Law, q: Law, delta: Number) -> float:
    """max ln((P(S) - delta)/Q(S)) over the events with P(S) > delta (Def. 3.6, the delta-approximate divergence).

    Privacy: a mechanism is (eps, delta)-DP iff this is at most eps for every ordered pair of neighbours (Remark 3.2).
    """
    spare = probability(delta, "delta", zero=True, error=InvalidParameter)
    # (P(S) - delta)/Q(S) = c at the best S, which is then also best for P(S) - c Q(S): a set of largest ratios
    pairs = sorted((pair for pair in _pairs(p, q) if pair[0]), key=_falling_ratio)
    above, below, best = Fraction(0), Fraction(0), Fraction(0)
    for a, b in pairs:
        above, below = above + a, below + b
        if above > spare:
            if not below:
                return inf
            best = max(best, (above - spare) / below)
    return _log_ratio(best, Fraction(1))


def _falling_ratio(pair: tuple[Fraction, Fraction]) -> tuple[bool, Fraction]:
    return bool(pair[1]), -(pair[0] / pair[1]) if pair[1] else Fraction(0)


def hockey_stick(p: Law, q: Law, epsilon: Number) -> Fraction:
    """sum max(0, p - e^eps q), the least delta that goes with an epsilon for this ordered pair, rounded up.

    Privacy: a mechanism is (eps, delta)-DP iff this is at most delta for every ordered pair of neighbours (Def. 2.4).
    """
    e = amount(epsilon, "epsilon", zero=True)
    pairs = _pairs(p, q)
    if not e:
        return sum((max(Fraction(0), a - b) for a, b in pairs), Fraction(0))
    with hundred_digits():
        tilt = decimal(e).exp()
        above = [(a, b) for a, b in pairs if decimal(a) > tilt * decimal(b)]
        gain, cost = (sum((pair[i] for pair in above), Fraction(0)) for i in (0, 1))
        if not cost:
            return gain
        return up(min(Decimal(1), max(Decimal(0), decimal(gain) - tilt * decimal(cost)) + SLACK * decimal(gain)))


def is_private(p: Law, q: Law, epsilon: Number, delta: Number) -> bool:
    """Whether two laws are (eps, delta)-indistinguishable in both directions (Def. 2.4).

    Decided exactly, except that a claim which a hundred digits cannot tell from its violation counts as violated.
    A law written in floats is taken at its word, so allow its last digits in epsilon or delta.

    >>> yes, no = [Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]
    >>> is_private(yes, no, "0.69314718055", 0), is_private(yes, no, "0.69314718056", 0)
    (False, True)
    """
    d = probability(delta, "delta", zero=True, error=InvalidParameter)
    return all(_within(_pairs(*laws), amount(epsilon, "epsilon", zero=True), d) for laws in ((p, q), (q, p)))


def _within(pairs: list[tuple[Fraction, Fraction]], e: Fraction, d: Fraction) -> bool:
    if not e:
        return sum((max(Fraction(0), a - b) for a, b in pairs), Fraction(0)) <= d
    with hundred_digits():
        tilt = decimal(e).exp() * (1 - SLACK)
        above = [(a, b) for a, b in pairs if decimal(a) > tilt * decimal(b)]
        gain, cost = (sum((pair[i] for pair in above), Fraction(0)) for i in (0, 1))
        if gain <= d:
            return True
        return decimal(gain - d) <= tilt * decimal(cost)


def total_variation(p: Law, q: Law) -> Fraction:
    """max |P(S) - Q(S)| over events, the statistical distance (before Lemma 3.17), exact.

    >>> total_variation([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
    Fraction(1, 2)
    """
    return sum((abs(a - b) for a, b in _pairs(p, q)), Fraction(0)) / 2


def kl_bound(epsilon: Number) -> Fraction:
    """eps (e^eps - 1), above the expected loss of eps-DP (Lemma 3.18), rounded up; `kl_bound_tight` is at most half."""
    e = amount(epsilon, "epsilon", zero=True)
    with hundred_digits():
        return up(decimal(e) * (decimal(e).exp() - 1) * (1 + SLACK)) if e else e


def kl_bound_tight(epsilon: Number) -> Fraction:
    """eps tanh(eps/2) <= eps^2/2, the largest expected loss of eps-DP, rounded up: randomized response attains it.

    Privacy: for a loss in [-eps, eps] with E[e^-loss] <= 1, the mean is largest when both ends are the only values.
    """
    e = amount(epsilon, "epsilon", zero=True)
    with hundred_digits():
        tilt = decimal(e).exp()
        return up(decimal(e) * (tilt - 1) / (tilt + 1) * (1 + SLACK)) if e else e


def _log_ratio(a: Fraction, b: Fraction) -> float:
    if not b:
        return inf
    with hundred_digits():
        return float(decimal(a / b).ln()) if a else -inf
