"""The synthesizer: from noisy answers to a database that gives them as nearly as any database can (Thm 6.7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.projecting import projected
from tacit.domain.query import Columns, Query
from tacit.domain.schema import Schema
from tacit.domain.synopsis import Histogram, Released, Rows
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, InvalidQuery, quoted
from tacit.mechanisms.distinct import Distinct
from tacit.mechanisms.minmax import Found, program, scipy_or_refusal, weights
from tacit.rational import Number, exact, whole

Solver: TypeAlias = Literal["best", "program", "weights"]

MOST_CELLS = 10**7  # that queries may tell apart
MOST_NONZEROS = 2 * 10**6  # of a linear program; about a minute
MOST_ROWS = 10**7
STEPS = 400  # of the multiplicative-weights solver
PROGRAM, WEIGHTS = "linear program", "multiplicative weights"
_LISTED = 2 * 10**7  # weights that are written out for the multiplicative-weights solver


@dataclass(frozen=True, eq=False)
class Synthesis(Released):
    """A fractional database: people spread over a few cells, each class of cells evenly.

    `violation` is its farthest answer from those it was made from, in people; no database is nearer than
    `violation - gap`. `solver` says what found it: a linear program, whose gap is its tolerance, or multiplicative
    weights.
    """

    distinct: Distinct
    support: NDArray[np.int64]  # cells over the classes of the columns that are read
    people: NDArray[np.float64]  # in each of them
    solver: str
    violation: float
    gap: float
    kind = "synthesis"
    receipt = None

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.distinct.schema

    @property
    def total(self) -> float:
        return float(self.people.sum())

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        read = self._read(names)
        cells = self.distinct.cells_of(self._codes, read)
        shape = [self.distinct.sizes[self.distinct.columns.index(name)] for name in read]
        return self._over(names, np.asarray(np.bincount(cells, self.people, prod(shape)), np.float64).reshape(shape))

    def answer(self, query: Query) -> NDArray[np.float64]:
        if len(self.support) < self.distinct.cells:
            return super().answer(query)
        query.check(self.schema)
        names = [self._checked(columns) for columns in query.reads]
        sets = list(dict.fromkeys(map(self._read, names)))
        table = np.zeros(self.distinct.cells)
        table[self.support] = self.people
        found = projected(table.reshape(self.distinct.sizes), self.distinct.columns, sets)  # all in a few passes
        return np.asarray(query(*[self._over(columns, found[self._read(columns)]) for columns in names]), np.float64)

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        return self.distinct.codes(self.support)

    def _read(self, columns: Columns) -> Columns:
        return tuple(name for name in self.distinct.columns if name in columns)

    def _over(self, columns: Columns, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """A table over classes, as one over cells: each class evenly, and each column that is not read."""
        read = self._read(columns)
        for axis, name in enumerate(read):
            classes = self.distinct.classes[self.distinct.columns.index(name)]
            shares = 1 / np.bincount(classes)[classes]
            table = np.take(table, classes, axis) * shares.reshape([-1 if a == axis else 1 for a in range(len(read))])
        unread = [name for name in columns if name not in read]
        spread = table.reshape((*table.shape, *[1] * len(unread))) / self.schema.cells(unread)
        whole_table = np.broadcast_to(spread, (*table.shape, *self.schema.sizes(unread)))
        return whole_table.transpose([(*read, *unread).index(name) for name in columns])

    def histogram(self) -> Histogram:
        """The same over the whole universe, where that is small: to be saved."""
        return Histogram(self.schema, self.project(self.schema.names))

    def rounded(self, rows: int, seed: int) -> Rows:
        """So many synthetic rows, shared out to the cells by largest remainder.

        Accuracy: of s cells those that are rounded up gain r (1 - r/s) <= s/4 rows together: no counting query moves by
        more than s/(4 rows) of the total. The seed picks a row's place within its class.
        """
        goal = self.people * (whole(rows, "the number of synthetic rows", 1, MOST_ROWS) / self.total)
        counts = np.floor(goal).astype(np.int64)
        counts[np.argsort(counts - goal, kind="stable")[: rows - int(counts.sum())]] += 1
        return self._rows(counts, seed, self.total)

    def rounded_down(self, alpha: Number, seed: int) -> Rows:
        """Rows of which each stands for alpha/(s + 1) of the people, s the number of cells: the rounding of Thm 6.7.

        Accuracy: each cell loses less than alpha/(s + 1) of the total, so every count up to alpha of it (E37; the book
        has alpha/|X|). The total falls to 1 - alpha of it, and is left there; divided by it again, an answer is off by
        up to alpha/(1 - alpha) of the total.
        """
        share = float(exact(alpha, "alpha"))
        cells = len(self.support) + 1
        if not 0 < share < 1 or ceil(cells / share) > MOST_ROWS:
            raise InvalidParameter(
                f"alpha is a share between {cells / MOST_ROWS:.3g} and 1 here, for {MOST_ROWS} rows at most, "
                f"not {quoted(alpha)}. Nothing was spent."
            )
        step = share / cells * self.total
        counts = np.floor(self.people / step).astype(np.int64)
        return self._rows(counts, seed, float(counts.sum()) * step)

    def sampled(self, rows: int, seed: int) -> Rows:
        """So many rows, drawn one by one; `generalisation.subsample_rows` says how many keep k queries within alpha."""
        number = whole(rows, "the number of synthetic rows", 1, MOST_ROWS)
        rng = np.random.default_rng(whole(seed, "a seed", 0, 2**63))
        return self._rows(rng.multinomial(number, self.people / self.total), seed, self.total)

    def _rows(self, counts: NDArray[np.int64], seed: int, total: float) -> Rows:
        rng = np.random.default_rng([whole(seed, "a seed", 0, 2**63), 1])
        codes = np.repeat(self._codes, counts, axis=0)
        return Rows(self.schema, self.distinct.filled(codes, rng), total=total)


def synthesize(
    schema: Schema,
    workload: Query,
    answers: NDArray[Any],
    total: Number,
    *,
    solver: Solver = "best",
    steps: int = STEPS,
    most_nonzeros: int = MOST_NONZEROS,
) -> Synthesis:
    """People a >= 0 over the universe, `total` of them, whose largest violation |sum_i a_i q(i) - v_q| is least.

    Post-processing of what was released: it costs nothing (Prop. 2.1). The program runs over the cells that the queries
    tell apart, not over the universe. "best" takes the linear program up to `most_nonzeros`, beyond it multiplicative
    weights; "program" and "weights" take that one alone. The program needs scipy, which is never replaced unasked.
    Accuracy: if all |v_q - q(x)| <= alpha, then the violation is at most alpha and every answer within 2 alpha of the
    truth; by multiplicative weights, within 2 alpha + gap.

    >>> from tacit.domain.schema import Integers
    >>> from tacit.domain.workload import predicates
    >>> schema = Schema([Integers("x", 0, 2)])
    >>> work = predicates(schema, ["x = 0", "x = 2"])
    >>> round(synthesize(schema, work, np.array([70, 50]), 100).violation, 6)
    10.0
    """
    asked = workload if isinstance(workload, Workload) else Workload((workload,))
    distinct, people = checked(schema, asked, total, solver, steps)
    values = np.asarray(answers, dtype=np.float64)
    if values.shape != (asked.size,) or not bool(np.all(np.isfinite(values))):
        raise InvalidParameter(f"{asked.size} answers need as many finite numbers. Nothing was spent.")
    low, high = np.full(len(distinct.queries), np.inf), np.full(len(distinct.queries), -np.inf)
    np.minimum.at(low, distinct.which, values / people)  # a query that was answered twice has two answers to meet
    np.maximum.at(high, distinct.which, values / people)
    if solver != "weights":
        cells = distinct.told_apart()
        nonzeros = distinct.nonzeros(cells)
        if nonzeros <= most_nonzeros:
            return _synthesis(distinct, cells, program(distinct.listed(cells), low, high), people, PROGRAM)
        if solver == "program":
            raise InvalidParameter(
                f"this linear program has {nonzeros} non-zeros; {most_nonzeros} are allowed. Raise most_nonzeros, or "
                "say solver='weights'. Nothing was spent."
            )
    cells = np.arange(distinct.cells)
    matrix = distinct.listed(cells) if distinct.nonzeros(cells) <= _LISTED else distinct
    found = weights(matrix, distinct.sharers(), low, high, steps)
    return _synthesis(distinct, cells, found, people, WEIGHTS)


def checked(schema: Schema, workload: Workload, total: Number, solver: str, steps: int) -> tuple[Distinct, float]:
    """What the synthesizer must know before anything is spent; refuses what it cannot do."""
    if solver not in ("best", "program", "weights"):
        raise InvalidParameter(f"a solver is best, program or weights, not {quoted(solver)}. Nothing was spent.")
    if solver != "weights":
        scipy_or_refusal()
    whole(steps, "the number of steps", 1, 10**6)
    people = float(exact(total, "the number of people"))
    if people <= 0:
        raise InvalidParameter("the number of people must be positive. Nothing was spent.")
    distinct = Distinct.of(schema, workload)
    if distinct.cells > MOST_CELLS:
        raise InvalidQuery(
            f"these queries tell {distinct.cells} cells apart; a synthesizer takes {MOST_CELLS}. Search for rows "
            "instead (RowSearch). Nothing was spent."
        )
    return distinct, people


def _synthesis(distinct: Distinct, cells: NDArray[np.int64], found: Found, people: float, solver: str) -> Synthesis:
    held = np.flatnonzero(found.shares > 0)
    gap = max(found.violation - max(found.least, 0.0), 0.0)
    return Synthesis(distinct, cells[held], found.shares[held] * people, solver, found.violation * people, gap * people)
