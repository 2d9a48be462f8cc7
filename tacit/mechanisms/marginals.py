"""The first release: many marginals at once, under Gaussian or Laplace noise (Sections 3.3 and 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sqrt

from tacit.curator.kernel import Curator
from tacit.domain.person import Relation
from tacit.domain.query import Columns, Conjunctions, LinearQuery, Marginal, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.synopsis import Marginals
from tacit.domain.workload import Workload
from tacit.errors import InvalidQuery, quoted
from tacit.mechanisms.consistency import nonnegative as mended
from tacit.mechanisms.measurement import Measurement, measurement
from tacit.privacy.budget import Budget


def release_marginals(
    curator: Curator,
    workload: Query,
    budget: Budget,
    *,
    total: int | None = None,
    nonnegative: bool = True,
    purpose: str = "",
) -> Marginals:
    """Releases a workload of whole marginals, in one release that spends the whole budget.

    They agree with each other wherever they overlap. With `nonnegative` no cell is below zero, so that rows can be
    sampled from them; without, every cell is unbiased. Where the number of people is public (replace-one neighbours)
    and no column drops a row, `total` is kept exactly.
    Privacy: the kernel's: one Gaussian or Laplace release (Thms 3.6, 3.22), then post-processing (Prop. 2.1).
    Accuracy: `predicted_error` and `error_bound` before anything is spent; `standard_error` of the synopsis after.
    """
    plan = measurement(curator.schema, workload, budget, curator.relation, total=total)  # refuses before it costs
    curator = curator.within(budget, f"release_marginals of {workload}")
    tables = plan.tables(curator.release(plan.mechanism, plan.query))
    return Marginals(
        curator.schema,
        mended(tables) if nonnegative else tables,
        variances=plan.variances,
        nonnegative=nonnegative,
        receipt=_receipt(plan, budget, curator.relation, purpose),
    )


@dataclass(frozen=True)
class PredictedError:
    """The errors to expect, in people; from public facts alone.

    `deviation` is exact for marginals that may be negative. `mean_absolute` and `l1` follow from it as for a normal
    error, from above: by next to nothing for Gaussian noise, by more for Laplace noise. Mending negative cells
    halves the mean error of a cell or better where many are empty; the largest error it may raise by a fifth.
    """

    deviation: Mapping[Columns, float]  # the standard deviation of each cell of a marginal
    mean_absolute: float  # of a cell, mean over all cells of all marginals
    largest: float  # of all cells, as likely to be passed as not; never more likely
    l1: Mapping[Columns, float]  # the sum over the cells of a marginal
    mean_l1: float


def predicted_error(
    schema: Schema, workload: Query, budget: Budget, neighbors: Neighbors | Relation, *, total: int | None = None
) -> PredictedError:
    """What `release_marginals` will be off by; nothing is read or spent."""
    return expected(measurement(schema, workload, budget, neighbors, total=total))


def expected(plan: Measurement) -> PredictedError:
    """What the marginals of a measurement will be off by."""
    deviation = {columns: plan.deviation(columns) for columns in plan.asked}
    l1 = {columns: sqrt(2 / pi) * plan.schema.cells(columns) * deviation[columns] for columns in plan.asked}
    cells = sum(plan.schema.cells(columns) for columns in plan.asked)
    return PredictedError(deviation, sum(l1.values()) / cells, plan.error_bound(0.5), l1, plan.mean_l1)


def error_bound(
    schema: Schema,
    workload: Query,
    budget: Budget,
    neighbors: Neighbors | Relation,
    beta: float,
    *,
    total: int | None = None,
) -> float:
    """Below which the errors of all cells of all marginals lie together, with probability 1 - beta at least.

    Accuracy: a theorem for marginals that may be negative (`Measurement.error_bound`). Those that were mended have kept
    it whenever it was tried, for mending moves towards the truth; but cell by cell that is not proved.
    """
    return measurement(schema, workload, budget, neighbors, total=total).error_bound(beta)


def as_marginals(workload: Query, schema: Schema) -> Workload:
    """The marginals from which a workload of weighted sums is answered."""
    workload.check(schema)
    queries = workload.queries if isinstance(workload, Workload) else (workload,)
    for query in queries:
        if not isinstance(query, LinearQuery):
            raise InvalidQuery(
                f"{quoted(query)} is no weighted count; marginals, conjunctions, ranges, prefixes, parities and "
                "predicates can be released now. Nothing was spent."
            )
    sets = {frozenset(columns): columns for query in reversed(queries) for columns in query.reads if columns}
    order = dict.fromkeys(frozenset(columns) for query in queries for columns in query.reads if columns)
    if not order:
        raise InvalidQuery("this workload reads no column. Nothing was spent.")
    return Workload(tuple(Marginal.over(schema, *sets[columns]) for columns in order))


def summed(asked: Workload) -> list[LinearQuery]:
    """What a workload asks beside whole marginals: sums of their cells."""
    return [
        query
        for query in asked.queries
        if isinstance(query, LinearQuery) and not isinstance(query, Marginal | Conjunctions)
    ]


def _receipt(plan: Measurement, budget: Budget, relation: Relation, purpose: str) -> Receipt:
    return Receipt(
        budget.currency.value,
        budget.amount,
        budget.stated,
        ((f"{plan.mechanism} of {plan.query}", budget.price(plan.mechanism.loss())),),
        relation.neighbors,
        (f"{type(plan.mechanism).__name__}, standard deviation {plan.noise:.6g} on each of {plan.query.size} answers",),
        plan.total is not None,
        purpose,
        rows=relation.rows,
    )
