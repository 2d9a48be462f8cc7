"""Workloads: many linear queries in one line, answered column set by column set (Section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, gcd, lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.boxes import Boxes
from tacit.domain.grid import Norm
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.parity import Parity
from tacit.domain.predicate import parse
from tacit.domain.query import (
    MOST_PEOPLE,
    MOST_QUERY_CELLS,
    MOST_UNITS,
    Columns,
    Conjunctions,
    Counting,
    Counts,
    Linear,
    LinearQuery,
    Marginal,
    Query,
)
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidInput, InvalidQuery, quoted
from tacit.rational import sqrt_up, whole

MOST_QUERIES = 2 * 10**6
MOST_ANSWERS = 10**8
WORTHWHILE = 1000  # cells summed in the time in which one query is answered by itself
MOST_WEIGHTS = 5 * 10**7  # cells of all predicates that are no conjunctions


@dataclass(frozen=True, eq=False)
class Workload(Query):
    """Many queries at once; its answer is all of theirs, in order (Section 4.1).

    Sensitivity: norms add over the parts (l1), in squares (l2), or the largest counts (linf); parts that are
    single weighted sums over the same columns are bounded together, by the cell in which they weigh most.
    """

    queries: tuple[Query, ...]

    def __post_init__(self) -> None:
        if isinstance(self.queries, str | Query) or not isinstance(self.queries, Iterable):
            raise InvalidQuery(f"a workload is a list of queries, not {quoted(self.queries)}. Nothing was spent.")
        flat: list[Query] = []
        for query in self.queries:
            if not isinstance(query, Query):
                raise InvalidQuery(f"a workload is made of queries, not {quoted(query)}. Nothing was spent.")
            flat.extend(query.queries if isinstance(query, Workload) else (query,))
        if not 1 <= len(flat) <= MOST_QUERIES:
            raise InvalidQuery(f"a workload has 1 to {MOST_QUERIES} queries, not {len(flat)}. Nothing was spent.")
        object.__setattr__(self, "queries", tuple(flat))
        if (answers := sum(query.size for query in flat)) > MOST_ANSWERS:
            raise InvalidQuery(f"{answers} answers are more than the {MOST_ANSWERS} of a workload. Nothing was spent.")
        steps = {query.grid: int(query.grid / self.grid) for query in flat}
        if any(many > 1 and MOST_UNITS // many * grid < MOST_PEOPLE for grid, many in steps.items()):
            raise InvalidQuery("the grids of these queries are too unlike to be answered together. Nothing was spent.")

    @cached_property
    def grid(self) -> Fraction:  # type: ignore[override]
        """The coarsest grid that holds every part's."""
        return common({query.grid for query in self.queries})

    @cached_property
    def reads(self) -> tuple[Columns, ...]:
        return tuple(dict.fromkeys(columns for query in self.queries for columns in query.reads))

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each query's answers begin, and where the last one's end."""
        return np.concatenate(([0], np.cumsum([query.size for query in self.queries], dtype=np.int64)))

    @property
    def size(self) -> int:
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, chosen: int | slice | Sequence[int]) -> Query:
        """One query, or the workload of some."""
        if isinstance(chosen, int | np.integer):
            return self.queries[int(chosen)]
        if isinstance(chosen, slice):
            return Workload(self.queries[chosen])
        return Workload(tuple(self.queries[int(index)] for index in chosen))

    def __add__(self, other: Query) -> Workload:
        return Workload((self, other))

    def units(self, *tables: Counts) -> NDArray[Any]:
        held = dict(zip(self.reads, tables, strict=True))
        whole_counts = all(table.dtype.kind in "iu" for table in tables)
        answers = np.empty(self.size, dtype=np.int64 if whole_counts else np.float64)
        alone, together = self._plan
        for place in alone:
            query = self.queries[place]
            units = query.units(*[held[columns] for columns in query.reads])
            answers[self.offsets[place] : self.offsets[place + 1]] = self._scaled(units, query.grid)
        for places, columns, boxes in together:
            answers[self.offsets[places]] = self._scaled(boxes.units(held[columns]), Fraction(1))
        return answers

    def _scaled(self, units: NDArray[Any], grid: Fraction) -> NDArray[Any]:
        """In steps of the common grid; clipping is 1-Lipschitz, and begins beyond as many as `MOST_PEOPLE`."""
        steps = int(grid / self.grid)
        return units if steps == 1 else np.clip(units, -(MOST_UNITS // steps), MOST_UNITS // steps) * steps

    @cached_property
    def _plan(self) -> tuple[list[int], list[tuple[NDArray[np.int64], Columns, Boxes]]]:
        """Which queries are answered alone, and which together."""
        alone: list[int] = []
        alike: dict[tuple[Columns, tuple[int, ...]], list[int]] = {}
        for place, query in enumerate(self.queries):
            if isinstance(query, Counting) and type(query) is Counting and Boxes.fits(query):
                alike.setdefault((query.columns, query.sizes), []).append(place)
            else:
                alone.append(place)
        together = []
        for (columns, sizes), places in alike.items():
            if prod(sizes) > WORTHWHILE * len(places):  # all sums would cost more than these
                alone += places
            else:
                boxes = Boxes.of([query for place in places if isinstance(query := self.queries[place], Counting)])
                together.append((np.array(places), columns, boxes))
        return alone, together

    @cached_property
    def _proved(self) -> dict[tuple[Norm, Neighbors], Fraction]:
        return {}

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        if (norm, neighbors) not in self._proved:
            self._proved[norm, neighbors] = self._prove(norm, neighbors)
        return self._proved[norm, neighbors]

    def _prove(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        alone: list[Fraction] = []
        together: dict[tuple[Columns, tuple[int, ...]], list[LinearQuery]] = {}
        for query in self.queries:
            # a subclass may weigh differently
            if isinstance(query, Counting | Linear) and type(query) in (Counting, Linear) and norm is not Norm.LINF:
                together.setdefault((query.columns, query.sizes), []).append(query)
            else:
                alone.append(query.sensitivity(norm, neighbors))
        bounds = alone + [_together(queries, norm, neighbors) for queries in together.values()]
        if norm is Norm.LINF:
            return max(bounds)
        return sum(bounds, Fraction(0)) if norm is Norm.L1 else sqrt_up(sum((b * b for b in bounds), Fraction(0)))

    def monotone(self, neighbors: Neighbors) -> bool:
        return all(query.monotone(neighbors) for query in self.queries)

    def check(self, schema: Schema) -> None:
        for query in self.queries:
            query.check(schema)

    def __str__(self) -> str:
        kinds = dict.fromkeys(type(query).__name__ for query in self.queries)
        return f"Workload({len(self)} queries, {self.size} answers: {', '.join(kinds)})"


def _together(queries: list[LinearQuery], norm: Norm, neighbors: Neighbors) -> Fraction:
    """The l1 or l2 sensitivity of several weighted sums with non-negative weights over the same cells.

    Adding: the cell whose weights have the largest norm. Replacing a by b: |a - b|_1 is at most the sum of each
    query's own bound and at most twice the largest norm; |a - b|_2^2 <= |a|^2 + |b|^2, for a.b >= 0.
    """
    power = 1 if norm is Norm.L1 else 2
    apart = sum((query.sensitivity(norm, neighbors) ** power for query in queries), Fraction(0))
    cells, grid = queries[0].cells, common({query.grid for query in queries})
    if len(queries) * cells <= MOST_QUERY_CELLS:
        # within 64 bits: a weight is at most 1/grid, and grids are one part in 2^22 or coarser
        small = len(queries) * (1 / grid) ** power < MOST_UNITS
        mass = np.zeros(cells, dtype=np.int64 if small else object)
        for query in queries:
            mass += (query.weights()[0].astype(mass.dtype) * int(query.grid / grid)) ** power
        most = int(mass.max()) * grid**power * (1 if neighbors is Neighbors.ADD_REMOVE else 2)
        apart = min(apart, max(most, grid**power))
    return apart if power == 1 else sqrt_up(apart)


def common(grids: Iterable[Fraction]) -> Fraction:
    """The coarsest grid of which each of these is a multiple."""
    steps = list(grids)
    below = lcm(*[step.denominator for step in steps])
    return Fraction(gcd(*[int(step * below) for step in steps]), below)


def marginals(schema: Schema, k: int) -> Workload:
    """Every whole k-way marginal.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema(Categories(name, ("no", "yes")) for name in "abcd")
    >>> print(marginals(schema, 2))
    Workload(6 queries, 24 answers: Marginal)
    """
    return Workload(tuple(Marginal.over(schema, *columns) for columns in _column_sets(schema.names, k)))


def conjunctions(schema: Schema, k: int) -> Workload:
    """Every conjunction of k equalities, each a counting query of its own (Ex. 4.1)."""
    return Workload(tuple(Conjunctions.over(schema, *columns) for columns in _column_sets(schema.names, k)))


def parities(schema: Schema, k: int) -> Workload:
    """The parity of every k columns that have two cells."""
    binary = tuple(column.name for column in schema if column.size == 2)
    return Workload(tuple(Parity.over(schema, *columns) for columns in _column_sets(binary, k)))


def ranges(schema: Schema, column: str, by: str | Sequence[str] = ()) -> Workload:
    """Every interval of an ordered column, for every cell of the `by` columns."""
    return Workload((Ranges.over(schema, column, by),))


def prefixes(schema: Schema, column: str) -> Workload:
    """The cumulative counts of an ordered column."""
    return Workload((Prefixes.over(schema, column),))


def predicates(schema: Schema, texts: Iterable[str]) -> Workload:
    """A counting query for each predicate, in order.

    >>> from tacit.domain.schema import Integers
    >>> print(*predicates(Schema([Integers("age", 0, 99)]), ["age >= 40", "not age = 7"]).queries, sep="; ")
    count where age >= 40; count where age != 7
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InvalidQuery(f"predicates are a list of texts, not {quoted(texts)}. Nothing was spent.")
    queries: list[Query] = []
    weights = 0
    for text in texts:
        if len(queries) == MOST_QUERIES:
            raise InvalidQuery(f"a workload has at most {MOST_QUERIES} queries. Nothing was spent.")
        try:
            queries.append(query := parse(text, schema))
        except InvalidInput as error:
            raise type(error)(f"predicate {len(queries) + 1}: {error}") from None
        weights += query.cells if isinstance(query, Linear) else 0
        if weights > MOST_WEIGHTS:
            raise InvalidQuery(
                f"the first {len(queries)} predicates hold those that are no conjunctions and weigh {weights} cells; "
                f"one workload may weigh {MOST_WEIGHTS}. Nothing was spent."
            )
    return Workload(tuple(queries))


def _column_sets(names: Columns, k: int) -> list[Columns]:
    if not names:
        raise InvalidQuery("a parity needs columns of two cells, and there are none. Nothing was spent.")
    k = whole(k, "the number of columns of a query", 1, len(names), InvalidQuery)
    if comb(len(names), k) > MOST_QUERIES:
        raise InvalidQuery(
            f"{comb(len(names), k)} column sets are more than the {MOST_QUERIES} of one workload. Nothing was spent."
        )
    return list(combinations(names, k))
