"""Boosting for queries: generators that are good on most queries, made good on all of them (Figure 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log, sqrt

import numpy as np

from tacit.curator.kernel import Curator
from tacit.domain.grid import Norm
from tacit.domain.median import Median
from tacit.domain.person import Relation
from tacit.domain.query import Query
from tacit.domain.schema import Neighbors
from tacit.domain.score import Hardness
from tacit.domain.single import single
from tacit.domain.synopsis import Histogram, Synopsis
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter
from tacit.mechanisms.generators import Generator
from tacit.mechanisms.mwem import mwem
from tacit.mechanisms.receipts import receipt
from tacit.mechanisms.synthesizer import Synthesis
from tacit.primitives.mechanism import chance
from tacit.primitives.selection import Exponential
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown, whole

MOST_ROUNDS, MOST_DRAWS = 1000, 10**6
MOST_STEPS = 2**28  # of the workload's grid, for mu
MOST_WRITTEN = 10**6  # cells of a universe over which each synopsis is written out
REMEMBERED = 9  # rounds; with the first fit, of one-way marginals, ten in all
SAMPLING = Fraction(1, 4)  # of the budget, for drawing the queries


@dataclass(frozen=True)
class Boosting:
    """The parameters of Figure 6.1, all public; privacy depends on none of them holding its promise.

    A generator that is within lambda on half plus eta of the weight, in every round, makes the median within
    lambda + mu on all queries after `enough_rounds`.
    """

    rounds: int
    draws: int
    lam: Fraction
    mu: Fraction
    eta: Fraction = Fraction(1, 3)

    @property
    def alpha(self) -> Fraction:
        """Half the logarithm of (1 + 2 eta)/(1 - 2 eta): the step of the reweighting, to 40 bits."""
        return Fraction(round(step(float(self.eta)) * 2**40), 2**40)

    def draw(self, sensitivity: Fraction) -> Exponential:
        """k choices with weights exp(alpha hardness): the reweighting is an exponential mechanism (Claim 6.4)."""
        return Exponential(2 * self.alpha * sensitivity, draws=self.draws)


def boost(
    curator: Curator,
    workload: Workload,
    budget: Budget,
    *,
    generate: Generator,
    rounds: int,
    draws: int,
    lam: Number,
    mu: Number | None = None,
    eta: Number = Fraction(1, 3),
    sampling: Number = SAMPLING,
    seed: int = 0,
    purpose: str = "",
) -> Median:
    """The median of T synopses, each made for k queries that the earlier ones answered badly.

    `lam` and `mu` are errors in people. Without `mu`, the smallest that the sampling share of the budget pays for is
    taken. The weights, their sum and the true answers stay in the curator: only the synopses leave.
    Privacy: the kernel's. Round t draws k times with loss 4 alpha (t-1) rho / mu each (Claim 6.4), eps^2/8 in rho;
    every generator has an equal part of the rest.
    Accuracy: Thm 6.1, `error_bound`, where the generator keeps its promise.
    """
    share = exact(sampling, "the sampling share")
    if not 0 < share < 1:
        raise InvalidParameter(f"the sampling share must lie between 0 and 1, not {shown(share)}. Nothing was spent.")
    rng = np.random.default_rng(whole(seed, "a seed", 0, 2**63))
    chosen = parameters(curator, workload, budget * share, rounds, draws, lam, mu, eta)
    inner = curator.within(budget, f"boost of {workload}: {rounds} rounds of {draws} queries")
    each = budget * (1 - share) / rounds
    synopses: list[Synopsis] = []
    for _ in range(chosen.rounds):
        if synopses:
            hardness = Hardness(workload, tuple(synopses), chosen.lam, chosen.mu)
            sample = np.atleast_1d(inner.release(chosen.draw(inner.sensitivity(hardness)), hardness))
        else:
            sample = rng.integers(workload.size, size=draws)  # D_1 is uniform, hence public
        synopses.append(_kept(generate(inner, sampled(workload, sample), each)))
    said = f"boost: {rounds} rounds of {draws} queries, lambda {shown(chosen.lam, 4)}, mu {shown(chosen.mu, 4)}"
    return Median(synopses, receipt=receipt(curator, budget, said, None, purpose))


def _kept(synopsis: Synopsis) -> Synopsis:
    """In the form in which it answers fastest and can be saved."""
    small = isinstance(synopsis, Synthesis) and synopsis.schema.universe <= MOST_WRITTEN
    return synopsis.histogram() if isinstance(synopsis, Synthesis) and small else synopsis


def boost_with_memory(
    curator: Curator,
    workload: Workload,
    budget: Budget,
    *,
    rounds: int = REMEMBERED,
    draws: int | None = None,
    total: Number | None = None,
    purpose: str = "",
) -> Histogram:
    """Boosting whose generator fits all that was ever measured, and keeps the last synopsis: few fits, each for many.

    A generator may use what earlier rounds released, so nothing is lost by remembering it; the median is for synopses
    that know nothing of each other. This is `mwem` with k parts a round; by default half as many again in all as there
    are, for some are drawn more than once.
    """
    parts = len(workload) if isinstance(workload, Workload) else 1
    rounds = whole(rounds, "rounds", 1, MOST_ROUNDS)
    chosen = ceil(3 * parts / (2 * rounds)) if draws is None else draws
    return mwem(curator, workload, budget, rounds=rounds, draws=chosen, total=total, purpose=purpose)


def sampled(workload: Workload, places: Sequence[int] | np.ndarray) -> Workload:
    """The drawn queries as a workload, each once: one noisy answer serves all its copies."""
    return Workload(tuple(one(workload, int(place)) for place in dict.fromkeys(np.asarray(places).tolist())))


def one(workload: Workload, place: int) -> Query:
    """The query of one answer; a query with one answer is itself, whatever its kind."""
    part = int(np.searchsorted(workload.offsets, place, side="right")) - 1
    query = workload.queries[part]
    return query if query.size == 1 else single(query, place - int(workload.offsets[part]))


def parameters(
    curator: Curator,
    workload: Workload,
    budget: Budget,
    rounds: int,
    draws: int,
    lam: Number,
    mu: Number | None,
    eta: Number,
) -> Boosting:
    """Checks them, and finds the smallest mu that this budget pays for where none is given."""
    rounds, draws = whole(rounds, "rounds", 1, MOST_ROUNDS), whole(draws, "draws", 1, MOST_DRAWS)
    margin = exact(eta, "eta")
    if not 0 < margin < Fraction(1, 2):
        raise InvalidParameter(f"eta must lie strictly between 0 and 1/2, not {shown(margin)}. Nothing was spent.")
    width = exact(lam, "lambda")
    if mu is not None:
        chosen = Boosting(rounds, draws, width, exact(mu, "mu"), margin)
        price = sampling_price(chosen, workload, curator.relation, budget)
        if price > budget.amount:
            raise InvalidParameter(
                f"drawing the queries with mu = {shown(chosen.mu, 6)} costs {shown(price, 6)} {budget.currency.value}; "
                f"their share of the budget is {shown(budget.amount, 6)}. Take a larger mu, fewer rounds or draws, or "
                "leave mu out. Nothing was spent."
            )
        return chosen

    def affordable(steps: int) -> bool:
        tried = Boosting(rounds, draws, width, steps * workload.grid, margin)
        return sampling_price(tried, workload, curator.relation, budget) <= budget.amount

    high = 1
    while not affordable(high):
        high *= 2
        if high > MOST_STEPS:
            raise InvalidParameter("no mu makes so many draws affordable; take fewer. Nothing was spent.")
    low = high // 2
    while high - low > max(1, high // 256):
        middle = (low + high) // 2
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return Boosting(rounds, draws, width, high * workload.grid, margin)


class _Nobody:
    """A stand-in for a synopsis where only the number of synopses matters."""

    def answer(self, query: Query) -> np.ndarray:
        return np.zeros(query.size)


def sampling_price(chosen: Boosting, workload: Workload, neighbors: Neighbors | Relation, budget: Budget) -> Fraction:
    """What all draws of all rounds cost, in the budget's currency: asked of the scores themselves."""
    price, relation = Fraction(0), Relation.of(neighbors)
    for so_far in range(1, chosen.rounds):
        hardness = Hardness(workload, (_Nobody(),) * so_far, chosen.lam, chosen.mu)
        price += budget.price(chosen.draw(relation.moves(hardness, Norm.LINF)).loss())
    return price


def step(eta: float) -> float:
    """alpha = ln((1 + 2 eta)/(1 - 2 eta))/2."""
    return log((1 + 2 * eta) / (1 - 2 * eta)) / 2


def enough_rounds(queries: int, eta: float, *, book: bool = False) -> int:
    """How many rounds leave no query wrong: the least T with |Q| (1 - 4 eta^2)^(T/2) < 1 (Claim 6.3, sharp; E31, E34).

    The book has ceil(ln |Q| / eta^2).
    """
    if book:
        return ceil(log(queries) / eta**2)
    return floor(2 * log(queries) / -log(1 - 4 * eta**2)) + 1


def draw_loss(round_: int, alpha: float, sensitivity: float, mu: float) -> float:
    """Claim 6.4: one draw in round t, after t - 1 synopses, is an eps-DP choice with eps = 4 alpha (t-1) rho/mu."""
    return 4 * alpha * (round_ - 1) * sensitivity / mu


def book_mu(alpha: float, rounds: int, draws: int, sensitivity: float, epsilon: float, delta: float) -> float:
    """(6.2) with its constant: 8 sqrt 2 alpha T^(3/2) rho sqrt(k ln(1/delta_sample))/eps_sample (E33)."""
    if not 0 < epsilon < 1 or not 0 < delta < 1:
        raise InvalidParameter("Corollary 3.21 is for epsilon and delta between 0 and 1. Nothing was spent.")
    return 8 * sqrt(2) * alpha * rounds * sqrt(rounds) * sensitivity * sqrt(draws * log(1 / delta)) / epsilon


def tight_mu(alpha: float, rounds: int, draws: int, sensitivity: float, rho: float) -> float:
    """The same in rho: 4 alpha rho_q sqrt(k (T-1) T (2T-1)/(48 rho_s)), from eps^2/8 for each draw."""
    return 4 * alpha * sensitivity * sqrt(draws * (rounds - 1) * rounds * (2 * rounds - 1) / (48 * rho))


def error_bound(lam: float, mu: float, rounds: int, queries: int, eta: float, beta: float) -> float:
    """lambda + mu, for all queries at once with probability 1 - T beta, if each round's generator keeps its promise."""
    chance(beta)
    if rounds < enough_rounds(queries, eta):
        raise InvalidParameter(
            f"Theorem 6.1 needs {enough_rounds(queries, eta)} rounds for {queries} queries at eta = {eta:g}, "
            f"not {rounds}. Nothing was spent."
        )
    return lam + mu
