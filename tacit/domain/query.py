"""Queries, and the sensitivity that each claims (Defs. 3.1 and 3.8, Section 4.1).

A query names the column sets that it reads and is a function of the counts over their cells; it never sees
the universe. Its answers stand on a public grid, exactly, so that real numbers never meet the noise.
Every sensitivity that tacit claims stands in this room: single queries here, many at once in `workload`,
scores for the selection of a query or a synopsis in `score`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery, quoted
from tacit.rational import sqrt_up

Columns: TypeAlias = tuple[str, ...]
Counts: TypeAlias = NDArray[Any]  # over the cells of a column set: whole numbers in data, any numbers in a synopsis

MOST_QUERY_CELLS = 10**7  # one query may look at so many cells of one column set
WEIGHT_GRID = Fraction(1, 2**20)  # real weights are rounded to it, once and in public


class Projectable(Protocol):
    """The private table, a hypothesis and a synopsis look the same to a query."""

    schema: Schema

    def project(self, columns: Columns) -> Counts:
        """The counts over these columns' cells, one axis a column."""
        ...


class Query(ABC):
    """A function of a table, through the counts over the few columns that it names."""

    grid: Fraction = Fraction(1)  # its answers are whole multiples of it

    @property
    @abstractmethod
    def reads(self) -> tuple[Columns, ...]:
        """The column sets whose counts it is a function of."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many answers it gives."""

    @abstractmethod
    def units(self, *tables: Counts) -> NDArray[Any]:
        """The answers in multiples of the grid; whole where the counts are."""

    @abstractmethod
    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far one person can move the answers: a proved upper bound (Defs. 3.1, 3.8)."""

    def monotone(self, neighbors: Neighbors) -> bool:
        """Whether one person moves all answers in one direction (before Thm 3.13); False unless proved."""
        return False

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuses a schema over which this query was not made."""

    def __call__(self, *tables: Counts) -> NDArray[Any]:
        """The answers, as numbers."""
        units = self.units(*tables)
        return units if self.grid == 1 else units * float(self.grid)

    def on_grid(self, *tables: Counts) -> OnGrid:
        """The exact answers to a table of whole counts, ready for noise."""
        return OnGrid(np.asarray(self.units(*tables), dtype=np.int64), self.grid)


class LinearQuery(Query):
    """Answers that are sums, over people, of a weight that depends on the person's cell.

    `columns` and `sizes` say which cells; `weights` is the matrix (answers x cells) that the query stands for,
    in units of the grid. It is what the sensitivities below are tested against, and is never built to answer.
    """

    columns: Columns
    sizes: tuple[int, ...]

    @abstractmethod
    def weights(self) -> NDArray[np.int64]:
        """The matrix it stands for; only for small queries."""

    @property
    def reads(self) -> tuple[Columns, ...]:
        return (self.columns,)

    @property
    def cells(self) -> int:
        """How many cells it looks at."""
        return prod(self.sizes)

    def monotone(self, neighbors: Neighbors) -> bool:
        return neighbors is Neighbors.ADD_REMOVE  # weights are not negative: a new row lowers no answer

    def check(self, schema: Schema) -> None:
        if schema.sizes(self.columns) != self.sizes:
            raise InvalidQuery(
                f"the query was made for columns of {self.sizes} cells; this table's {', '.join(self.columns)} "
                f"have {schema.sizes(self.columns)}. Nothing was drawn."
            )

    def __str__(self) -> str:
        return f"{type(self).__name__}({' × '.join(self.columns)})"


def _checked(schema: Schema, columns: Sequence[str]) -> tuple[Columns, tuple[int, ...]]:
    if isinstance(columns, str):
        columns = (columns,)
    names = tuple(columns)
    sizes = schema.sizes(names)
    if len(set(names)) != len(names):
        raise InvalidQuery(f"a column stands twice in {quoted(', '.join(names))}. Nothing was spent.")
    if prod(sizes) > MOST_QUERY_CELLS:
        raise InvalidQuery(
            f"{', '.join(names)} have {prod(sizes)} cells together; one query may read {MOST_QUERY_CELLS}. "
            "Nothing was spent."
        )
    return names, sizes


class _Cells(LinearQuery):
    """Counts of disjoint cells: a person is in one of them.

    Sensitivity: adding a row moves one cell by 1; replacing one moves two (Ex. 3.2; theory of chapter 0).
    """

    @property
    def size(self) -> int:
        return self.cells

    def units(self, *tables: Counts) -> NDArray[Any]:
        return tables[0].reshape(-1)

    def weights(self) -> NDArray[np.int64]:
        return np.eye(self.cells, dtype=np.int64)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        if neighbors is Neighbors.ADD_REMOVE or norm is Norm.LINF:
            return Fraction(1)
        return Fraction(2) if norm is Norm.L1 else sqrt_up(Fraction(2))


@dataclass(frozen=True)
class Marginal(_Cells):
    """The contingency table of some columns, asked for whole: a histogram query (Ex. 3.2)."""

    columns: Columns
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, *columns: str) -> Marginal:
        return cls(*_checked(schema, columns))


@dataclass(frozen=True)
class Conjunctions(_Cells):
    """Every conjunction `a = u and b = v and ...` over some columns, each a counting query of its own (Ex. 4.1)."""

    columns: Columns
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, *columns: str) -> Conjunctions:
        return cls(*_checked(schema, columns))


@dataclass(frozen=True)
class Counting(LinearQuery):
    """How many people satisfy `a in A and b in B and ...` (Section 3.3). Sensitivity 1 in every norm."""

    columns: Columns
    sizes: tuple[int, ...]
    chosen: tuple[tuple[int, ...], ...]  # for each column the cells that satisfy, rising

    @classmethod
    def where(cls, schema: Schema, conditions: Mapping[str, Sequence[int]] | None = None) -> Counting:
        """From the satisfying cells of each column; without conditions it counts everybody."""
        conditions = conditions or {}
        names, sizes = _checked(schema, tuple(conditions))
        chosen = tuple(tuple(sorted({int(cell) for cell in conditions[name]})) for name in names)
        for name, size, cells in zip(names, sizes, chosen, strict=True):
            if cells and not 0 <= cells[0] <= cells[-1] < size:
                raise InvalidQuery(f"column {quoted(name)} has cells 0 to {size - 1}. Nothing was spent.")
        return cls(names, sizes, chosen)

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        table = tables[0].reshape(self.sizes)
        for cells in self.chosen:  # the first axis goes at each step
            table = _summed(table, cells)
        return np.asarray(table).reshape(1)

    def weights(self) -> NDArray[np.int64]:
        inside = np.zeros(self.sizes, dtype=np.int64)
        inside[np.ix_(*[list(cells) for cells in self.chosen])] = 1
        return inside.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)


def _summed(table: Counts, cells: tuple[int, ...]) -> Counts:
    if len(cells) == 1:
        return table[cells[0]]  # type: ignore[no-any-return]
    if cells and cells[-1] - cells[0] == len(cells) - 1:  # a range is a view, not a copy
        return table[cells[0] : cells[-1] + 1].sum(axis=0)  # type: ignore[no-any-return]
    return table[list(cells)].sum(axis=0)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Linear(LinearQuery):
    """The sum of a public weight in [0, 1] over all people (Section 4.1).

    Real weights are rounded to the grid before anything else, so that the answer is a sum of whole numbers and
    its sensitivity is the largest rounded weight, exactly (replace-one: the largest difference).
    """

    columns: Columns
    sizes: tuple[int, ...]
    numerators: NDArray[np.int64]  # the weights in units of the grid
    grid: Fraction = Fraction(1)

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], weights: NDArray[Any] | Sequence[Any]) -> Linear:
        """From weights over the cells of the columns, in [0, 1]; 0/1 weights keep the answers whole."""
        names, sizes = _checked(schema, columns)
        try:
            given = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidQuery("the weights must be numbers in [0, 1]. Nothing was spent.") from None
        if given.size != prod(sizes):
            raise InvalidQuery(f"{prod(sizes)} cells need as many weights, not {given.size}. Nothing was spent.")
        if not bool(np.all((given >= 0) & (given <= 1))):  # NaN fails both
            raise InvalidQuery("the weights must lie in [0, 1]. Nothing was spent.")
        grid = Fraction(1) if bool(np.all((given == 0) | (given == 1))) else WEIGHT_GRID
        return cls(names, sizes, np.rint(given.reshape(-1) / float(grid)).astype(np.int64), grid)

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.asarray(tables[0].reshape(-1) @ self.numerators).reshape(1)

    def weights(self) -> NDArray[np.int64]:
        return self.numerators.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        most, least = int(self.numerators.max()), int(self.numerators.min())
        moved = most if neighbors is Neighbors.ADD_REMOVE else most - least
        return max(moved, 1) * self.grid  # never 0: an answer without noise would be a promise about the schema


@dataclass(frozen=True)
class Prefixes(LinearQuery):
    """Cumulative counts of one ordered column: how many people are in cell 0, in 0..1, in 0..2, and so on.

    Sensitivity: a person in cell c is in the d - c prefixes from c on, at most d; two people differ in at most d - 1.
    """

    columns: Columns
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, column: str) -> Prefixes:
        return cls(*_checked(schema, (column,)))

    @property
    def size(self) -> int:
        return self.sizes[0]

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.cumsum(tables[0])

    def weights(self) -> NDArray[np.int64]:
        return np.tril(np.ones((self.size, self.size), dtype=np.int64))

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        moved = self.size if neighbors is Neighbors.ADD_REMOVE else max(self.size - 1, 1)
        return _of_bits(moved, norm)


def _of_bits(moved: int, norm: Norm) -> Fraction:
    """The norm of a vector of `moved` ones."""
    return Fraction(1) if norm is Norm.LINF else Fraction(moved) if norm is Norm.L1 else sqrt_up(Fraction(moved))


@dataclass(frozen=True)
class Ranges(LinearQuery):
    """The count of every interval of an ordered column, for every cell of the `by` columns before it.

    Answers are ordered by the `by` cell, then by first end, then by last. Sensitivity: cell c of d lies in
    (c + 1)(d - c) intervals, at most floor((d + 1)^2 / 4); two cells g apart are told apart by g (d + 1 - g)
    intervals, which has the same maximum; two people with different `by` cells move disjoint answers.
    """

    columns: Columns  # the `by` columns, then the ordered one
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, column: str, by: Sequence[str] = ()) -> Ranges:
        by = (by,) if isinstance(by, str) else tuple(by)
        ranges = cls(*_checked(schema, (*by, column)))
        if ranges.size > MOST_QUERY_CELLS:
            raise InvalidQuery(
                f"there are {ranges.size} ranges; one query may ask {MOST_QUERY_CELLS}. Nothing was spent."
            )
        return ranges

    @property
    def size(self) -> int:
        return prod(self.sizes[:-1]) * (self.sizes[-1] * (self.sizes[-1] + 1) // 2)

    @property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last cell of each interval."""
        first, last = np.triu_indices(self.sizes[-1])
        return first.astype(np.int64), last.astype(np.int64)

    def units(self, *tables: Counts) -> NDArray[Any]:
        groups = tables[0].reshape(-1, self.sizes[-1])
        upto = np.zeros((groups.shape[0], self.sizes[-1] + 1), dtype=groups.dtype)
        np.cumsum(groups, axis=1, out=upto[:, 1:])
        first, last = self.ends
        return (upto[:, last + 1] - upto[:, first]).reshape(-1)

    def weights(self) -> NDArray[np.int64]:
        first, last = self.ends
        cell = np.arange(self.sizes[-1])
        inside = ((first[:, None] <= cell) & (cell <= last[:, None])).astype(np.int64)
        return np.kron(np.eye(prod(self.sizes[:-1]), dtype=np.int64), inside)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        covering = (self.sizes[-1] + 1) ** 2 // 4
        if neighbors is Neighbors.REPLACE_ONE and prod(self.sizes[:-1]) > 1:
            covering *= 2
        return _of_bits(covering, norm)


@dataclass(frozen=True)
class Parity(LinearQuery):
    """The number of people with an even number of ones among some two-celled columns, less those with an odd one.

    Weights are +1 and -1: adding a row moves the answer by 1, replacing one by up to 2, and in no one direction.
    """

    columns: Columns
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, *columns: str) -> Parity:
        names, sizes = _checked(schema, columns)
        if any(size != 2 for size in sizes):
            raise InvalidQuery(
                f"a parity is over columns of two cells; {', '.join(names)} have {sizes}. Nothing was spent."
            )
        return cls(names, sizes)

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        table = tables[0].reshape(self.sizes)
        for _ in self.sizes:
            table = table[0] - table[1]
        return np.asarray(table).reshape(1)

    def weights(self) -> NDArray[np.int64]:
        signs = np.ones(1, dtype=np.int64)
        for _ in self.sizes:
            signs = np.kron(np.array([1, -1]), signs)
        return signs.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1 if neighbors is Neighbors.ADD_REMOVE else 2)

    def monotone(self, neighbors: Neighbors) -> bool:
        return False
