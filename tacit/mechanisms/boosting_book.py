"""What boosting promises from end to end: by the book's sizes, and by the accountant's (Thms 6.1, 6.6 and 6.8)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log, sqrt

from tacit.domain.score import SCORE_GRID
from tacit.errors import NoSuchGuarantee
from tacit.mechanisms.boosting import MOST_DRAWS, Boosting, book_mu, enough_rounds, step, tight_mu
from tacit.mechanisms.generalisation import (
    any_lambda,
    any_queries,
    linear_lambda,
    linear_rows,
    rows_bits,
    sample_size,
)
from tacit.mechanisms.generators import LinearGenerator, noise_bound
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, exact

BOOK_ETA = Fraction(1, 3)
_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
_ETAS = tuple(Fraction(percent, 100) for percent in (20, 30, 35, 38, 40, 42, 44, 46, 47, 48, 49))
_SHARES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))


def textbook(
    people: int,
    universe: int,
    queries: int,
    epsilon: float,
    delta: float,
    beta: float,
    *,
    linear: bool = False,
    sensitivity: Number = 1,
) -> Boosting:
    """T, k, lambda and mu as the book has them, for any queries (Thm 6.6) or for weighted counts (Thm 6.8).

    Half of epsilon and delta is for the draws, (6.2), half for the generators, in T equal parts; a T-th of beta is each
    generator's, which for weighted counts can fail in three ways.
    """
    rounds = enough_rounds(queries, float(BOOK_ETA), book=True)
    part, each = (epsilon / 2 / rounds, delta / 2 / rounds), chance(beta) / rounds / (3 if linear else 1)
    moved = float(exact(sensitivity, "the sensitivity"))
    if linear:
        draws, _ = linear_rows(people, universe, queries, each, book=True)
        lam = linear_lambda(people, universe, queries, *part, each, moved, book=True)
    else:
        draws = any_queries(people, universe, each)
        lam = any_lambda(draws, *part, each, moved)
    mu = book_mu(step(float(BOOK_ETA)), rounds, draws, moved, epsilon / 2, delta / 2)
    return Boosting(rounds, draws, Fraction(ceil(lam)), Fraction(ceil(mu)), BOOK_ETA)


def book_bound(people: int, universe: int, queries: int, epsilon: float, delta: float, beta: float) -> float:
    """lambda + mu of the book for weighted counts, in people (Thms 6.1 and 6.8): far above `people` where it runs."""
    sizes = textbook(people, universe, queries, epsilon, delta, beta, linear=True)
    return float(sizes.lam + sizes.mu)


@dataclass(frozen=True)
class Terms:
    """Sizes for which `boost` with `generator(people)` keeps lambda + mu, with probability 1 - beta."""

    sizes: Boosting
    sampling: Fraction  # of the budget, for the draws
    alpha: Fraction  # of the people, which a generator loses to its few rows
    beta: float  # of each way in which a round may fail

    @property
    def error(self) -> float:
        """lambda + mu, in people."""
        return float(self.sizes.lam + self.sizes.mu)

    def generator(self, people: int) -> LinearGenerator:
        """The base generator that was reckoned with."""
        return LinearGenerator(total=people, alpha=self.alpha, beta=self.beta, solver="program")


def choose(people: int, universe: int, queries: int, budget: Budget, beta: float, *, sensitivity: Number = 1) -> Terms:
    """The sizes with the least bound that is proved for weighted counts; touches no data.

    Theorem 6.1 with its sharp number of rounds (E34), Lemma 6.5 without slack, the accountant's noise and mu, and as
    few rows as pay. A round fails by Lemma 6.5, by its noise, or by its rows: a third of beta/T each.
    """
    moved, made = float(exact(sensitivity, "the sensitivity")), list[Terms]()
    for eta in _ETAS:
        rounds = enough_rounds(queries, float(eta))
        each = chance(beta) / (3 * rounds)
        for rows in _ROWS:
            draws = sample_size(rows_bits(rows, universe), each, float(eta))
            asked = min(draws, queries)  # a query that was drawn twice is asked once
            alpha = Fraction(ceil(sqrt(log(2 * asked / each) / (2 * rows)) * 10**6), 10**6)
            if draws > MOST_DRAWS or alpha >= 1:
                continue
            for share in _SHARES:
                off = 2 * noise_bound(budget * (1 - share) / rounds, asked, each, sensitivity) + float(alpha) * people
                mu = _mu(float(eta), rounds, draws, moved, budget * share)
                if mu < inf:
                    sizes = Boosting(rounds, draws, Fraction(ceil(off) + 1), Fraction(ceil(mu) + 1), eta)
                    made.append(Terms(sizes, share, alpha, each))
    if not made:
        raise NoSuchGuarantee(
            f"no sizes that can be run prove anything for {queries} queries under {budget}. Nothing was spent."
        )
    return min(made, key=lambda terms: terms.error)


def error_bound(
    people: int, universe: int, queries: int, budget: Budget, beta: float, *, sensitivity: Number = 1
) -> float:
    """The least lambda + mu that is proved for weighted counts, in people: above `people` it says nothing."""
    return choose(people, universe, queries, budget, beta, sensitivity=sensitivity).error


def _mu(eta: float, rounds: int, draws: int, moved: float, sampling: Budget) -> float:
    """The least that the sampling share pays for: k draws of each round t cost 4 alpha (t-1) rho/mu (Claim 6.4)."""
    if sampling.currency is Currency.RHO:
        mu = tight_mu(step(eta), rounds, draws, moved, float(sampling.rho))
    else:
        mu = 4 * step(eta) * moved * draws * rounds * (rounds - 1) / 2 / float(sampling.epsilon)
    left = 1 - mu * float(SCORE_GRID) / (2 * moved)  # 2 rho/mu, and a step of the grid for the rounding of the scores
    return 1.000001 * mu / left if left > 0 else inf
