"""How marginals are measured: whole or as residuals, whichever public facts predict the smaller error for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isnan, log, pi, prod, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.lattice import shared
from tacit.domain.person import Relation
from tacit.domain.query import MOST_PEOPLE, Columns, Conjunctions, LinearQuery, Marginal, Query
from tacit.domain.residual import MOST_COLUMNS, Residual, assembled, cell_variance, parts, standard_errors
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, InvalidQuery, quoted
from tacit.mechanisms.consistency import consistent
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget, Currency
from tacit.rational import whole

MOST_TABLE_CELLS = 2 * 10**7  # of all marginals of one release
MOST_PARTS = 100_000  # column sets within them

_LEAST_WEIGHT = 1 / 64  # of a residual, where the heaviest has 1

Noisy: TypeAlias = Gaussian | Laplace


@dataclass(frozen=True, eq=False)
class Measurement:
    """What is asked of the table in one release, under what noise, and how well each marginal is known from it.

    `variances` has for each column set T the v of the covariance v P_T with which its part u_T is known; parts have
    uncorrelated errors. All of this is public and exact before anything is spent.
    """

    schema: Schema
    asked: tuple[Columns, ...]  # the marginals of the workload, each once, columns in the schema's order
    held: tuple[Columns, ...]  # those within no other; the rest are sums of them
    query: Workload
    mechanism: Noisy
    sensitivity: Fraction
    variances: Mapping[Columns, float]
    total: float | None  # where it is public

    @cached_property
    def noise(self) -> float:
        """The standard deviation of each draw."""
        return self.mechanism.deviation(self.sensitivity, self.query.grid)

    def deviation(self, columns: Columns) -> float:
        """The standard deviation of each cell of a marginal, before negative cells are mended."""
        return sqrt(cell_variance(self.schema, columns, self.variances))

    @cached_property
    def mean_l1(self) -> float:
        """The expected L1 error of a marginal, from above, mean over the workload, before negative cells are mended."""
        errors = [self.schema.cells(columns) * self.deviation(columns) for columns in self.asked]
        return sqrt(2 / pi) * sum(errors) / len(errors)

    def error_bound(self, beta: float, questions: Sequence[LinearQuery] = ()) -> float:
        """Below which all cells' errors lie together with probability 1 - beta, before negative cells are mended.

        With `questions`, those of their answers too: weighted sums of the cells of one marginal each.
        A cell's error is a sum of independent draws times a_i. Gaussian draws are sub-Gaussian (Canonne, Kamath &
        Steinke 2020, Cor. 17). Laplace draws have E exp(theta z) <= 1/(1 - theta^2 b^2), every |a_i| <= 1, for
        the estimate is an orthogonal projection, and -ln(1 - x) is convex. Chernoff, and a union over the cells.
        Of a sum of cells nothing more is used of the a_i than that none is larger than all together, |a|_2.
        """
        answers = sum(self.schema.cells(columns) for columns in self.asked) + sum(one.size for one in questions)
        each = log(2 * answers / chance(beta))
        if not self.noise:  # a budget so large that no float tells its noise from none
            return 0.0
        cells = [self._tail(self.deviation(columns) / self.noise, each) for columns in self.asked]
        sums = [float(self.standard_error(one).max()) / self.noise for one in questions]
        if any(isnan(norm) for norm in sums):
            raise InvalidQuery("these questions are too many for their errors to be bounded. Nothing was spent.")
        return max(*cells, *(self._tail(norm, each, max(1.0, norm)) for norm in sums), 0.0)

    def standard_error(self, query: LinearQuery) -> NDArray[np.float64]:
        """Of each answer that will be made of these marginals; NaN where that is too much to be written out."""
        return standard_errors(self.schema, query, self.variances)

    def _tail(self, norm: float, exponent: float, most: float = 1.0) -> float:
        """Passed by a sum with |a|_2 = norm and |a_i| <= most with probability 2 exp(-exponent) at most."""
        grid = float(self.query.grid)
        if isinstance(self.mechanism, Gaussian):
            sigma = sqrt(self.mechanism.variance(self.sensitivity, self.query.grid)) * grid
            return norm * sigma * sqrt(2 * exponent)
        scale = float(self.mechanism.scale(self.sensitivity, self.query.grid)) * grid * most
        theta = np.arange(1, 1000) / 1000
        return scale * float(np.min((exponent - (norm / most) ** 2 * np.log1p(-(theta**2))) / theta))

    def tables(self, answers: NDArray[np.float64]) -> dict[Columns, NDArray[np.float64]]:
        """The unbiased marginals that agree with each other, from the noisy answers."""
        measured = zip(self.query.queries, np.split(answers, self.query.offsets[1:-1]), strict=True)
        if all(isinstance(query, Marginal) for query in self.query.queries):
            drawn = {
                query.columns: part.reshape(query.sizes) for query, part in measured if isinstance(query, Marginal)
            }
            agreed = consistent(drawn, total=self.total)
            return {columns: agreed[columns] for columns in self.held}
        residuals = {query.columns: query.centred(part) for query, part in measured if isinstance(query, Residual)}
        if self.total is not None:
            residuals[()] = np.array(self.total)
        return {columns: assembled(self.schema, columns, residuals) for columns in self.held}


def measurement(
    schema: Schema, workload: Query, budget: Budget, neighbors: Neighbors | Relation, *, total: int | None = None
) -> Measurement:
    """The measurement with the least predicted L1 error, mean over the workload; nothing is read or spent.

    Three are weighed. *Whole marginals*, those within no other of the workload; a smaller one is a sum of theirs.
    *All whole marginals*: worth the wider noise where a smaller one alone would be a sum of very many cells.
    *Residuals*, under Gaussian noise: tables that overlap measure again and again what they have in common,
    residuals measure it once, and no other linear measurement does better (Xiao, He, Zhang & Kifer 2023).
    """
    asked, relation = asked_marginals(schema, workload), Relation.of(neighbors)
    held = maximal(asked)
    if (cells := sum(schema.cells(columns) for columns in held)) > MOST_TABLE_CELLS:
        raise InvalidQuery(
            f"these marginals have {cells} cells together; one release may have {MOST_TABLE_CELLS}. Nothing was spent."
        )
    if sum(2 ** len(columns) for columns in held) > 8 * MOST_PARTS:
        raise InvalidQuery("these marginals have too many columns each; ask for smaller ones. Nothing was spent.")
    shared(held)  # refuses what could not be made to agree
    known = _checked_total(schema, total, relation)
    found = [_whole(schema, asked, held, held, budget, relation, known)]
    if len(held) < len(asked):
        found.append(_whole(schema, asked, held, asked, budget, relation, known))
    best = min(found, key=lambda measured: measured.mean_l1)
    finer = _residuals(schema, asked, held, budget, relation, known)
    if finer is not None and finer.mean_l1 < 0.99 * best.mean_l1:
        return finer
    best.mechanism.check(best.sensitivity, best.query.grid)
    return best


def asked_marginals(schema: Schema, workload: Query) -> tuple[Columns, ...]:
    """The column sets of a workload of whole marginals, each once and in the schema's order."""
    workload.check(schema)
    queries = workload.queries if isinstance(workload, Workload) else (workload,)
    sets = []
    for query in queries:
        if not isinstance(query, Marginal | Conjunctions):
            raise InvalidQuery(
                f"this release is of whole marginals, or of all conjunctions over some columns; {query} is neither. "
                "Nothing was spent."
            )
        sets.append(tuple(name for name in schema.names if name in query.columns))
    return tuple(dict.fromkeys(sets))


def maximal(column_sets: Sequence[Columns]) -> tuple[Columns, ...]:
    """Those that lie within no other."""
    kept: list[frozenset[str]] = []
    for columns in sorted(map(frozenset, column_sets), key=len, reverse=True):
        if not any(columns < other for other in kept):
            kept.append(columns)
    largest = set(kept)
    return tuple(columns for columns in column_sets if frozenset(columns) in largest)


def _checked_total(schema: Schema, total: int | None, relation: Relation) -> float | None:
    if total is None:
        return None
    if not relation.total_public:
        counted = "people" if relation.neighbors is not Neighbors.REPLACE_ONE else "rows"
        raise InvalidParameter(
            f"under {relation} the number of {counted} is not public, so no total can be set; leave it "
            "out, and it is measured with the rest. Nothing was spent."
        )
    if dropping := schema.dropping:
        raise InvalidParameter(
            f"column {quoted(dropping[0])} drops rows, so the counts may sum to fewer people than the public number; "
            "leave the total out, and it is measured with the rest. Nothing was spent."
        )
    return float(whole(total, "the public number of people", 0, MOST_PEOPLE))


def _closure(schema: Schema, column_sets: Sequence[Columns]) -> list[Columns]:
    closure = list(dict.fromkeys(part for columns in column_sets for part in parts(schema, columns)))
    if len(closure) > MOST_PARTS:
        raise InvalidQuery(
            f"these marginals have {len(closure)} column sets within them; one release may have {MOST_PARTS}. "
            "Nothing was spent."
        )
    return closure


def _whole(
    schema: Schema,
    asked: tuple[Columns, ...],
    held: tuple[Columns, ...],
    drawn: tuple[Columns, ...],
    budget: Budget,
    relation: Relation,
    total: float | None,
) -> Measurement:
    query = Workload(tuple(Marginal.over(schema, *columns) for columns in drawn))
    mechanism = Laplace(budget.epsilon) if budget.currency is Currency.EPSILON else Gaussian(budget.rho)
    sensitivity = relation.moves(query, mechanism.norm)
    # a table M says u_T with variance v n(M - T); by inverse variance, the tables together say it with v / precision
    precision = dict.fromkeys(_closure(schema, held), 0.0)
    for columns in drawn:
        for part in parts(schema, columns):
            precision[part] += schema.cells(part) / schema.cells(columns)
    variance = mechanism.deviation(sensitivity, query.grid) ** 2
    variances = {part: variance / weight for part, weight in precision.items()}
    if total is not None:
        variances[()] = 0.0
    return Measurement(schema, asked, held, query, mechanism, sensitivity, variances, total)


def _residuals(
    schema: Schema,
    asked: tuple[Columns, ...],
    held: tuple[Columns, ...],
    budget: Budget,
    relation: Relation,
    total: float | None,
) -> Measurement | None:
    """None where noise has to be Laplace's, or the marginals are too wide, or the noise is beyond what can be drawn."""
    if budget.currency is Currency.EPSILON or max(map(len, held)) > MOST_COLUMNS:
        return None
    measured = [part for part in _closure(schema, held) if part or total is None]
    if not measured:
        return None
    weights = _weights(schema, asked, measured, relation.neighbors)
    query = Workload(tuple(Residual.of(schema, part, weights[part]) for part in measured))
    mechanism = Gaussian(budget.rho)
    sensitivity = relation.moves(query, mechanism.norm)
    try:
        mechanism.check(sensitivity, query.grid)
    except InvalidParameter:
        return None  # on so fine a grid
    deviation = mechanism.deviation(sensitivity, query.grid)
    variances = {q.columns: (deviation / q.gain) ** 2 for q in query.queries if isinstance(q, Residual)}
    if total is not None:
        variances[()] = 0.0
    return Measurement(schema, asked, held, query, mechanism, sensitivity, variances, total)


def _weights(
    schema: Schema, asked: Sequence[Columns], measured: Sequence[Columns], neighbors: Neighbors
) -> dict[Columns, Fraction]:
    """The weights w_T of the residuals, as ratios to the largest.

    They make least the sum over all cells of all marginals of a cell's variance, over the root of its marginal's cells.
    With q_T the squared sensitivity of u_T and c_T what a variance of one in u_T adds to the sum: minimise
    sum c_T / w_T^2 where sum q_T w_T^2 is given, so w_T^4 is as c_T / q_T. Dividing by the root of the cells stands
    between the mean variance of a cell, which favours tables of few cells, and the mean of a table; once negative
    cells are mended it is best or near it on the marginals of Adult at every epsilon (docs/marginals.md).
    """
    gained = dict.fromkeys(measured, 0.0)
    for columns in asked:
        cells = schema.cells(columns)
        for part in parts(schema, columns):
            if part in gained:
                gained[part] += prod(d - 1 for d in schema.sizes(part)) * schema.cells(part) / cells**1.5
    moved = {part: Residual.of(schema, part) for part in measured}
    ratio = {
        part: (gained[part] / float(query.sensitivity(Gaussian.norm, neighbors)) ** 2) ** 0.25
        for part, query in moved.items()
    }
    most = max(ratio.values())
    return {
        part: Fraction(max(round(2**20 * r / most), round(2**20 * _LEAST_WEIGHT)), 2**20) for part, r in ratio.items()
    }
