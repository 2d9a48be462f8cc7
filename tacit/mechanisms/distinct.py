"""The universe as some linear queries see it: cells that no query tells apart are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.projecting import Projections, Table
from tacit.domain.query import Columns, LinearQuery
from tacit.domain.schema import Schema
from tacit.domain.single import single
from tacit.domain.workload import MOST_WEIGHTS, Workload
from tacit.errors import InvalidQuery

_HASHES = 2  # of 64 bits each: two cells that differ pass as one with a probability below 2^-80


@dataclass(frozen=True, eq=False)
class Distinct:
    """Some linear queries over the classes of cells of each column that they read.

    Two cells of a column are in one class where every query weighs them alike whatever the other columns hold; columns
    that no query reads are left out. So a universe of 10^20 cells may become one of a few thousand.

    >>> from tacit.domain.schema import Integers
    >>> from tacit.domain.workload import predicates
    >>> schema = Schema([Integers("age", 0, 99), Integers("income", 0, 10**5)])
    >>> Distinct.of(schema, predicates(schema, ["age < 18", "age < 65"])).sizes
    (3,)
    """

    schema: Schema
    queries: tuple[LinearQuery, ...]  # each once, of one answer
    which: NDArray[np.int64]  # for each answer of the workload, its query
    columns: Columns  # that are read, in the schema's order
    classes: tuple[NDArray[np.int64], ...]  # for each of them, the class of each cell
    sets: tuple[Columns, ...]
    places: tuple[NDArray[np.int64], ...]  # for each column set its queries,
    weights: tuple[Table, ...]  # and a row of weights over the set's classes for each

    @classmethod
    def of(cls, schema: Schema, workload: Workload) -> Distinct:
        """Refuses what is no weighted count, or too large to be written out."""
        workload.check(schema)
        order: dict[LinearQuery, int] = {}
        which = np.empty(workload.size, dtype=np.int64)
        for index in range(workload.size):
            which[index] = order.setdefault(single(workload, index), len(order))
        queries = tuple(order)
        if (weighed := sum(query.cells for query in queries)) > MOST_WEIGHTS:
            raise InvalidQuery(
                f"these queries weigh {weighed} cells together; a synthesizer takes {MOST_WEIGHTS}. Nothing was spent."
            )
        held: dict[Columns, list[int]] = {}
        for place, query in enumerate(queries):
            held.setdefault(tuple(name for name in schema.names if name in query.columns), []).append(place)
        numerators = {columns: _written(schema, columns, [queries[p] for p in held[columns]]) for columns in held}
        read = tuple(name for name in schema.names if any(name in columns for columns in held))
        classes = {name: _classes(name, schema[name].size, numerators) for name in read}
        weights = []
        for columns, rows in numerators.items():
            for axis, name in enumerate(columns):
                rows = np.take(rows, np.unique(classes[name], return_index=True)[1], axis=axis + 1)
            grids = np.array([float(queries[place].grid) for place in held[columns]])
            weights.append(rows.reshape(len(rows), -1) * grids[:, np.newaxis])
        places = tuple(np.array(found) for found in held.values())
        return cls(schema, queries, which, read, tuple(classes.values()), tuple(held), places, tuple(weights))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(int(column.max()) + 1 for column in self.classes)

    @property
    def cells(self) -> int:
        """How many cells they have together."""
        return prod(self.sizes)

    @cached_property
    def _over(self) -> Projections:
        return Projections(self.columns, self.sizes, self.sets)

    def answers(self, table: Table) -> NDArray[np.float64]:
        """What each query says of a table over the classes."""
        found = self._over.named(self._over.of(table.reshape(self.sizes)))
        said = np.empty(len(self.queries))
        for columns, places, weights in zip(self.sets, self.places, self.weights, strict=True):
            said[places] = weights @ found[columns].reshape(-1)
        return said

    def scores(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """The transpose: for each cell the sum of its weights times the queries' prices."""
        factors = [prices[places] @ weights for places, weights in zip(self.places, self.weights, strict=True)]
        return self._over.spread(np.concatenate(factors)).reshape(-1)

    def sharers(self) -> NDArray[np.float64]:
        """How large a share of the universe each cell over the classes is."""
        share = np.ones(1)
        for classes in self.classes:
            share = np.multiply.outer(share, np.bincount(classes) / len(classes)).reshape(-1)
        return share

    def nonzeros(self, cells: NDArray[np.int64]) -> int:
        """How many weights of these cells are not 0."""
        codes = self.codes(cells)
        return sum(
            int(np.count_nonzero(weights, axis=0)[self.cells_of(codes, columns)].sum())
            for columns, weights in zip(self.sets, self.weights, strict=True)
        )

    def listed(self, cells: NDArray[np.int64]) -> Listed:
        """The same weights, cell by cell for some of the cells: only those that are not 0."""
        codes, found = self.codes(cells), []
        for columns, places, weights in zip(self.sets, self.places, self.weights, strict=True):
            at = self.cells_of(codes, columns)
            for place, row in zip(places, weights, strict=True):
                chosen = np.flatnonzero(row[at])
                found.append((place, chosen, row[at[chosen]]))
        found.sort(key=lambda entry: int(entry[0]))
        lengths = np.array([len(chosen) for _, chosen, _ in found])
        cell = np.concatenate([chosen for _, chosen, _ in found])
        query = np.repeat(np.arange(len(lengths)), lengths)
        return Listed(query, cell, np.concatenate([w for *_, w in found]), (len(lengths), len(cells)))

    def told_apart(self) -> NDArray[np.int64]:
        """One cell of each kind: no two of them have the same weight in every query."""
        rng = np.random.default_rng(0)  # public: it only finds equals
        prints = []
        for _ in range(_HASHES):
            marks = rng.integers(0, 2**64, len(self.queries), dtype=np.uint64)
            total = np.zeros(self.sizes, dtype=np.uint64)
            for columns, places, weights in zip(self.sets, self.places, self.weights, strict=True):
                grids = np.array([float(self.queries[place].grid) for place in places])
                numerators = np.rint(weights / grids[:, np.newaxis]).astype(np.int64).astype(np.uint64)
                factor = (marks[places] @ numerators).reshape(self._shape(columns))
                absent = tuple(axis for axis, name in enumerate(self.columns) if name not in columns)
                total += np.expand_dims(factor, absent)
            prints.append(total.reshape(-1))
        return np.unique(np.stack(prints, axis=1), axis=0, return_index=True)[1].astype(np.int64)

    def cells_of(self, codes: NDArray[Any], columns: Columns) -> NDArray[np.int64]:
        """The cell of each row of classes among some of the columns."""
        cell = np.zeros(len(codes), dtype=np.int64)
        for name in columns:
            axis = self.columns.index(name)
            cell = cell * self.sizes[axis] + codes[:, axis]
        return cell

    def codes(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes of some cells, one row a cell."""
        if not self.columns:
            return np.zeros((len(cells), 0), dtype=np.int64)
        return np.stack(np.unravel_index(cells, self.sizes), axis=1).astype(np.int64)

    def filled(self, codes: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of the schema: of each class any of its cells, of columns that are not read any cell, all alike."""
        rows = np.empty((len(codes), len(self.schema)), dtype=np.int64)
        for place, column in enumerate(self.schema):
            if column.name not in self.columns:
                rows[:, place] = rng.integers(0, column.size, len(codes))
                continue
            axis = self.columns.index(column.name)
            members = np.argsort(self.classes[axis], kind="stable")
            many = np.bincount(self.classes[axis])
            first, chosen = np.cumsum(many) - many, codes[:, axis]
            rows[:, place] = members[first[chosen] + rng.integers(0, many[chosen])]
        return rows

    def _shape(self, columns: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.sizes[self.columns.index(name)] for name in columns)


class Listed:
    """Weights that are mostly 0, as (query, cell, weight) ordered by query; with sums along both.

    >>> some = Listed(np.array([0, 2]), np.array([1, 1]), np.array([1.0, 0.5]), (3, 2))
    >>> some.answers(np.array([10.0, 20.0])), some.scores(np.array([1.0, 2.0, 4.0]))
    (array([20.,  0., 10.]), array([0., 3.]))
    """

    def __init__(
        self, query: NDArray[np.int64], cell: NDArray[np.int64], weight: NDArray[np.float64], shape: tuple[int, int]
    ) -> None:
        self.query, self.cell, self.weight, self.shape = query, cell, weight, shape
        by_cell = np.argsort(cell, kind="stable")
        self._query, self._weight = query[by_cell], weight[by_cell]
        self._rows, self._row_starts = np.unique(query, return_index=True)
        self._held, self._held_starts = np.unique(cell[by_cell], return_index=True)
        self._plain = bool(np.all(weight == 1))

    def answers(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each query says of so much in each cell."""
        said, terms = np.zeros(self.shape[0]), table[self.cell]
        if len(terms):
            said[self._rows] = np.add.reduceat(terms if self._plain else terms * self.weight, self._row_starts)
        return said

    def scores(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """The transpose: for each cell the sum of its weights times the queries' prices."""
        scores, terms = np.zeros(self.shape[1]), prices[self._query]
        if len(terms):
            scores[self._held] = np.add.reduceat(terms if self._plain else terms * self._weight, self._held_starts)
        return scores


def _written(schema: Schema, columns: Columns, queries: Sequence[LinearQuery]) -> NDArray[np.int64]:
    """A row of weights for each query, in steps of its own grid, one axis a column in the schema's order."""
    rows = np.empty((len(queries), *schema.sizes(columns)), dtype=np.int64)
    for place, query in enumerate(queries):
        axes = [query.columns.index(name) for name in columns]
        rows[place, ...] = query.weights()[0].reshape(query.sizes).transpose(axes)
    return rows


def _classes(name: str, size: int, numerators: dict[Columns, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Which cells of a column no query tells apart, numbered in the order in which they first come."""
    rng = np.random.default_rng(0)
    prints = np.zeros((size, _HASHES), dtype=np.uint64)
    for columns, rows in numerators.items():
        if name in columns:
            slices = np.moveaxis(rows, columns.index(name) + 1, 0).reshape(size, -1).astype(np.uint64)
            prints += slices @ rng.integers(0, 2**64, (slices.shape[1], _HASHES), dtype=np.uint64)
    _, first, found = np.unique(prints, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[found.reshape(-1)]
