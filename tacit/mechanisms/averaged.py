"""Multiplicative weights by signed choices alone, averaged: the release of a workload with a theorem (Section 5.2)."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from tacit.curator.kernel import Curator
from tacit.domain.schema import Schema
from tacit.domain.score import SignedError
from tacit.domain.single import single
from tacit.domain.synopsis import MOST_CELLS, Histogram
from tacit.domain.weights import Weights
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter
from tacit.mechanisms.receipts import receipt
from tacit.mechanisms.total import counted, public
from tacit.primitives.mechanism import chance
from tacit.primitives.selection import Exponential
from tacit.privacy.budget import Budget
from tacit.rational import Number, whole

MOST_ROUNDS = 10**5


def averaged_weights(
    curator: Curator,
    workload: Workload,
    budget: Budget,
    *,
    rounds: int | None = None,
    total: Number | None = None,
    purpose: str = "",
) -> Histogram:
    """Tilts the hypothesis, round by round, against a query that it answers too much or too little; gives the average.

    A query and a direction are chosen together, from 2|Q| scores that move by one person's weight, and nothing is
    measured: the choice alone says which way to go. Without `rounds` the number with the least `error_bound` is taken.
    Privacy: the kernel's; T exponential mechanisms, each eps^2/8 in rho for its bounded range.
    Accuracy: `error_bound`: the regret of the weights, sqrt(ln X / 2T), and what the choices fall short of the worst.
    """
    if rounds is not None:
        rounds = whole(rounds, "rounds", 1, MOST_ROUNDS)
    workload.check(curator.schema)
    if curator.schema.universe > MOST_CELLS:
        raise InvalidParameter(
            f"a dense hypothesis has at most {MOST_CELLS} cells; this universe: {curator.schema.universe}. "
            "Nothing was spent."
        )
    public(total)
    inner = curator.within(budget, f"averaged_weights of {workload}")
    people, rest = counted(inner, budget, total)
    scaled = people / curator.relation.rows  # so many times the noise is as so many times fewer people
    steps = best_rounds(scaled, curator.schema, workload, rest) if rounds is None else rounds
    choose = Exponential((rest / steps).bounded_range)
    eta = sqrt(8 * log(max(curator.schema.universe, 2)) / steps)
    hypothesis = Weights(curator.schema, people)
    average = np.zeros(curator.schema.sizes(curator.schema.names))
    for _ in range(steps):
        average += hypothesis.counts / steps
        place = inner.release(choose, SignedError(workload, hypothesis))
        much = place < workload.size  # the first half says that the answer is too large
        hypothesis.tilt(single(workload, place % workload.size), -eta if much else eta)
    said = f"averaged_weights: {steps} rounds over {workload}"
    return Histogram(curator.schema, average, receipt=receipt(curator, budget, said, total, purpose))


def error_bound(
    n: float, universe: int, queries: int, budget: Budget, beta: float, *, rounds: int, sensitivity: float = 1.0
) -> float:
    """In people: with probability 1 - beta all answers of the average are within it.

    n sqrt(ln X / 2T) + (2 Delta / eps0)(ln(2|Q|) + G/T), G the 1 - beta quantile of a Gamma(T, 1): each choice falls
    short of the worst by at most (2 Delta/eps0)(ln(2|Q|) + E) with E standard exponential (Thm 3.11), and the average
    of T rounds by the average of theirs.
    """
    epsilon = float((budget / whole(rounds, "rounds", 1, MOST_ROUNDS)).bounded_range)
    short = 2 * sensitivity / epsilon * (log(2 * queries) + gamma_quantile(rounds, chance(beta)) / rounds)
    return n * sqrt(log(max(universe, 2)) / (2 * rounds)) + short


def best_rounds(n: float, schema: Schema, workload: Workload, budget: Budget, beta: float = 0.05) -> int:
    """The rounds with the least bound, from public facts alone."""

    def bound(rounds: int) -> float:
        return error_bound(n, schema.universe, workload.size, budget, beta, rounds=rounds)

    tried = sorted({round(1.1**i) for i in range(121)})
    return min((rounds for rounds in tried if rounds <= MOST_ROUNDS), key=bound)


def gamma_quantile(shape: int, beta: float) -> float:
    """Not passed by a sum of so many standard exponentials with probability 1 - beta: Chernoff, hence from above.

    P[G >= x] <= exp(k - x)(x/k)^k for x > k; the least such x, by bisection.
    """
    low, high = float(shape), shape + 2 * sqrt(shape * log(1 / beta)) + 3 * log(1 / beta) + 1
    for _ in range(100):
        x = (low + high) / 2
        if shape - x + shape * log(x / shape) > log(beta):
            low = x
        else:
            high = x
    return high
