"""Multiplicative weights with the exponential mechanism, as people use it: choose, measure, replay (Section 5.2)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np

from tacit.curator.kernel import Curator
from tacit.domain.query import Conjunctions, LinearQuery, Marginal, Query
from tacit.domain.schema import Schema
from tacit.domain.score import Error
from tacit.domain.synopsis import MOST_CELLS, Histogram
from tacit.domain.weights import Weights
from tacit.domain.workload import Workload, marginals
from tacit.errors import InvalidParameter, InvalidQuery
from tacit.mechanisms.fit import Measured, fitted
from tacit.mechanisms.receipts import receipt
from tacit.mechanisms.total import counted, noise, public
from tacit.primitives.selection import Exponential
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, whole

FIRST = Fraction(1, 10)  # of the budget, for the one-way marginals
CHOICE = Fraction(1, 10)  # of a round, for choosing what to measure
MOST_ROUNDS, MOST_DRAWS = 10**4, 10**5


def mwem(
    curator: Curator,
    workload: Workload,
    budget: Budget,
    *,
    rounds: int | None = None,
    draws: int = 1,
    total: Number | None = None,
    purpose: str = "",
) -> Histogram:
    """Measures, round by round, the part of the workload that the hypothesis answers worst, and fits it again.

    Parts are whole marginals, or single weighted counts. The one-way marginals come first; after each round all that
    was measured is replayed (`fitted`). Without `rounds`, `rounds_for` says how many, from public facts. With `draws`
    so many parts are drawn in each round, as boosting draws them, and measured together: fewer fits for as many parts.
    Privacy: the kernel's. Each round is one exponential mechanism, eps^2/8 in rho for its bounded range, and one
    Gaussian or Laplace release.
    Accuracy: measured (docs/benchmarks.md); no theorem covers the replay. For a guarantee take `averaged_weights`.
    """
    parts = _checked(curator.schema, workload)
    if rounds is not None:
        rounds = whole(rounds, "rounds", 1, MOST_ROUNDS)
    draws = whole(draws, "draws", 1, MOST_DRAWS)
    public(total)
    inner = curator.within(budget, f"mwem of {workload}")
    people, rest = counted(inner, budget, total)
    if rounds is None:  # so many times the noise is as so many times fewer people
        rounds = rounds_for(curator.schema, parts, budget, people / curator.relation.rows)
    known = measure(inner, marginals(curator.schema, 1), rest * FIRST)
    hypothesis = fitted(Weights(curator.schema, people), known)
    each = rest * (1 - FIRST) / rounds
    choose = Exponential((each * CHOICE / draws).bounded_range, draws=draws)
    for _ in range(rounds):
        worst = np.unique(inner.release(choose, Error(parts, hypothesis, whole=True)))
        known += measure(inner, parts[worst.tolist()], each * (1 - CHOICE))
        hypothesis = fitted(hypothesis, known)
    said = f"mwem: {rounds} rounds of {draws} over {workload}"
    return hypothesis.histogram(receipt(curator, budget, said, total, purpose))


def measure(curator: Curator, parts: Query, budget: Budget) -> list[Measured]:
    """Noisy answers of all these parts in one release that spends the whole budget."""
    parts = parts if isinstance(parts, Workload) else Workload((parts,))
    mechanism = noise(budget)
    answers = np.asarray(curator.release(mechanism, parts), dtype=np.float64)
    variance = mechanism.deviation(curator.sensitivity(parts, mechanism.norm), parts.grid) ** 2
    spans = zip(parts.queries, parts.offsets[:-1], parts.offsets[1:], strict=True)
    return [Measured(part, answers[start:end], variance) for part, start, end in spans if isinstance(part, LinearQuery)]


def rounds_for(schema: Schema, workload: Workload, budget: Budget, people: float) -> int:
    """How many rounds, from public facts: the regret sqrt(ln X / 2T) against noise that grows with the rounds.

    They balance at T of order n sqrt(rho ln X), in epsilon (n eps)^(2/3) (ln X)^(1/3); the constants are measured.
    """
    entropy = log(max(schema.universe, 2))
    if budget.currency is Currency.RHO:
        balanced = people * sqrt(float(budget.rho) * entropy) / 200
    else:
        balanced = (people * float(budget.epsilon) / 675) ** (2 / 3) * (entropy / 2) ** (1 / 3)
    return max(1, min(ceil(balanced), 2 * len(workload), MOST_ROUNDS))


def _checked(schema: Schema, workload: Workload) -> Workload:
    workload = workload if isinstance(workload, Workload) else Workload((workload,))
    workload.check(schema)
    for part in workload.queries:
        if not isinstance(part, Marginal | Conjunctions) and not (isinstance(part, LinearQuery) and part.size == 1):
            raise InvalidQuery(
                f"mwem measures whole marginals and single weighted counts; {part} is neither. Nothing was spent."
            )
    if schema.universe > MOST_CELLS:
        raise InvalidParameter(
            f"a dense hypothesis has at most {MOST_CELLS} cells; this universe: {schema.universe}. Nothing was spent."
        )
    return workload
