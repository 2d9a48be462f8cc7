"""How the losses of many steps add up (Section 3.5); the exact answer for pure steps is in `optimal`."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from tacit.errors import InvalidBudget
from tacit.privacy.claims import LEAST, SLACK, amount, boundary, decimal, down, hundred_digits, probability, size, up
from tacit.privacy.conversion import delta_of, epsilon_of, rho_of
from tacit.rational import Number, shown, whole

__all__ = [
    "advanced",
    "advanced_heterogeneous",
    "basic",
    "delta_of",
    "epsilon_of",
    "largest_epsilon",
    "per_mechanism_epsilon",
    "query_capacity",
    "rho_of",
]

MOST_STEPS = 10**9


def basic(losses: Iterable[tuple[Number, Number]]) -> tuple[Fraction, Fraction]:
    """The loss of steps of (epsilon_i, delta_i)-DP, one after the other: the sums, exact.

    Privacy: Thm 3.16 (Thm 3.14 for two pure steps, Cor 3.15 for many), adaptive as well.

    >>> basic([("0.1", 0)] * 10)
    (Fraction(1, 1), Fraction(0, 1))
    """
    read = [(amount(e, "epsilon", zero=True), probability(d, "delta", zero=True)) for e, d in losses]
    return sum((e for e, _ in read), Fraction(0)), sum((d for _, d in read), Fraction(0))


def advanced(epsilon: Number, k: int, delta_prime: Number, delta: Number = 0) -> tuple[Fraction, Fraction]:
    """The loss of k adaptive steps of (epsilon, delta)-DP, rounded up.

    Privacy: Thm 3.20: (eps sqrt(2k ln(1/delta')) + k eps (e^eps - 1), k delta + delta').

    >>> [float(bound) for bound in advanced("0.1", 100, "1e-5")]
    [5.85023509294456, 1e-05]
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta", zero=True)
    k, spare = _steps(k), probability(delta_prime, "delta_prime")
    with hundred_digits():
        return up(_advanced(decimal(e), k, spare, tight=False)), k * d + spare


def advanced_heterogeneous(epsilons: Iterable[Number], delta_prime: Number) -> tuple[Fraction, Fraction]:
    """The loss of adaptive pure steps of losses fixed beforehand, rounded up.

    Privacy: as Thm 3.20, with the steps' own losses in Lemma 3.19 and the tight mean eps tanh(eps/2) of Lemma 3.18:
    (sqrt(2 ln(1/delta') sum eps_i^2) + sum eps_i tanh(eps_i/2), delta').

    >>> float(advanced_heterogeneous(["0.1"] * 100, "1e-5")[0])
    5.29810966176689
    """
    steps = [amount(e, "epsilon") for e in epsilons]
    spare = probability(delta_prime, "delta_prime")
    with hundred_digits():
        squares = decimal(sum((e * e for e in steps), Fraction(0)))
        mean = sum((_mean_loss(decimal(e), tight=True) for e in steps), Decimal(0))
        return up(((2 * _log_inverse(spare) * squares).sqrt() + mean) * (1 + SLACK)), spare


def per_mechanism_epsilon(epsilon: Number, k: int, delta_prime: Number) -> Fraction:
    """The loss that k steps may have each so that all have (epsilon, delta') together, rounded down.

    Privacy: Cor 3.21: eps/(2 sqrt(2k ln(1/delta'))), for 0 < eps < 1. For delta' near 1 this would break Thm 3.20, from
    which it is derived; then it is refused.

    >>> float(per_mechanism_epsilon("0.5", 100, "1e-5"))
    0.00520993331233262
    """
    e, k, spare = _below_one(epsilon), _steps(k), probability(delta_prime, "delta_prime")
    with hundred_digits():
        share = down(decimal(e) / (8 * k * _log_inverse(spare)).sqrt() * (1 - SLACK))
        _check_corollary(share, e, k, spare)
        return share


def largest_epsilon(epsilon: Number, k: int, delta_prime: Number, *, tight: bool) -> Fraction:
    """The largest loss that k pure steps may have each so that all have (epsilon, delta') together, rounded down.

    Privacy: Thm 3.20 solved for the loss of one step, or (tight) with the mean loss eps tanh(eps/2); never below eps/k,
    which Cor 3.15 allows.

    >>> float(1 / largest_epsilon(1, 10_000, 1.2664165549094176e-14, tight=False))
    812.3180298644016
    """
    e, k, spare = amount(epsilon, "epsilon"), _steps(k), probability(delta_prime, "delta_prime")
    with hundred_digits():
        limit = decimal(e)
        return max(e / k, boundary(lambda e0: _advanced(decimal(e0), k, spare, tight) <= limit, LEAST * LEAST, e))


def query_capacity(scale: Number, epsilon: Number, delta: Number) -> int:
    """How many counting queries Laplace noise of one scale can answer within (epsilon, delta).

    Privacy: Cor 3.21 with 1/scale for each query: k = scale^2 eps^2/(8 ln(1/delta)). So noise of o(n) answers o(n^2)
    queries, and noise of o(sqrt n) answers o(n) (after Ex. 3.7).

    >>> query_capacity(10**4.5, 1 - 1e-12, "1e-9")
    6031867
    """
    s, e, d = size(scale, "the noise scale"), _below_one(epsilon), probability(delta, "delta")
    with hundred_digits():
        k = int(decimal((s * e) ** 2) / (8 * _log_inverse(d)) * (1 - SLACK))
        _check_corollary(1 / s, e, k, d)
        return k


def _below_one(epsilon: Number) -> Fraction:
    e = amount(epsilon, "epsilon")
    if e < 1:
        return e
    raise InvalidBudget(
        f"Corollary 3.21 needs epsilon below 1, not {shown(e)}; `largest_epsilon` knows no such limit. "
        "Nothing was spent."
    )


def _check_corollary(share: Fraction, e: Fraction, k: int, spare: Fraction) -> None:
    if k and _advanced(decimal(share), k, spare, tight=False) > decimal(e):
        raise InvalidBudget(
            f"Corollary 3.21 breaks Theorem 3.20 at epsilon={shown(e)}, {k} steps and delta'={shown(spare)}: "
            "too near 1. Nothing was spent."
        )


def _advanced(e: Decimal, k: int, spare: Fraction, tight: bool) -> Decimal:
    return (e * (2 * k * _log_inverse(spare)).sqrt() + k * _mean_loss(e, tight)) * (1 + SLACK)


def _mean_loss(e: Decimal, tight: bool) -> Decimal:
    """A bound on the expected loss of one pure step (Lemma 3.18)."""
    tilt = e.exp()
    return e * (tilt - 1) / (tilt + 1) if tight else e * (tilt - 1)


def _log_inverse(x: Fraction) -> Decimal:
    return -decimal(x).ln()


def _steps(k: int) -> int:
    return whole(k, "the number of steps k", 1, MOST_STEPS)
