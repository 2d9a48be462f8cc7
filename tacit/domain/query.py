"""Queries, and the sensitivity that each claims (Defs. 3.1 and 3.8, Section 4.1).

A query names the column sets that it reads and is a function of the counts over their cells; it never sees
the universe. Its answers stand on a public grid, exactly, so that real numbers never meet the noise.
Every sensitivity that tacit claims stands in this room: single queries here and in `interval`, many at once in
`workload`, scores for the selection of a query or a synopsis in `score`.

A row that is dropped, because a value of it is missing or outside, weighs nothing in any query. So under
replace-one neighbours a person may also leave the counts or enter them, and no sensitivity relies on a total
that stands still.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid, one_part
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery, quoted
from tacit.rational import sqrt_up, whole

Columns: TypeAlias = tuple[str, ...]
Counts: TypeAlias = NDArray[Any]  # over the cells of a column set: whole numbers in data, any numbers in a synopsis
Cells: TypeAlias = range | tuple[int, ...]  # of one column, rising; a range where there is no gap

MOST_QUERY_CELLS = 10**7  # one query may look at so many cells of one column set
MOST_QUERY_COLUMNS = 32  # as many as an array has axes
WEIGHT_GRID = Fraction(1, 2**20)  # real weights are rounded to it, once and in public
MOST_PEOPLE = 2**40  # in one table; a cell that has more is taken for one that has as many
MOST_UNITS = 2**62  # two numbers of this size have a difference within 64 bits
LONGEST_SAID = 200  # what a query says of itself in a ledger


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
        """Whether a new person lowers no answer (before Thm 3.13); False unless proved.

        The direction is fixed, so that all questions of one session move the same way.
        """
        return False

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuses a schema over which this query was not made."""

    def __call__(self, *tables: Counts) -> NDArray[Any]:
        """The answers, as numbers."""
        units = self.units(*[wide(table) for table in tables])
        return units if self.grid == 1 else units * float(self.grid)

    def on_grid(self, *tables: Counts) -> OnGrid:
        """The exact answers to a table of whole counts, ready for noise."""
        if any(table.dtype.kind not in "iu" for table in tables):
            raise InvalidQuery("a table of people holds whole counts; these are none. Nothing was drawn.")
        # clipping a count moves it no further, and in the same direction; fewer than 64 bits hold no such count
        held = [np.minimum(table, MOST_PEOPLE) if table.dtype.itemsize == 8 else table for table in tables]
        return OnGrid(np.asarray(self.units(*[wide(table) for table in held]), dtype=np.int64), self.grid)


def wide(table: Counts) -> Counts:
    """Whole counts in 64 bits: unsigned or narrow ones would wrap in a difference or a sum."""
    return table.astype(np.int64, copy=False) if table.dtype.kind in "iu" else table


def plain(columns: object, sizes: object) -> tuple[Columns, tuple[int, ...]]:
    """Names and sizes as a query keeps them: a size that is a number of numpy's would wrap in a sensitivity."""
    if isinstance(columns, str) or not isinstance(columns, Iterable) or not isinstance(sizes, Iterable):
        raise InvalidQuery("a query has a list of columns, and a list of their sizes. Nothing was spent.")
    names, numbers = tuple(columns), tuple(sizes)
    if len(names) != len(numbers) or not all(isinstance(name, str) for name in names):
        raise InvalidQuery("a query has the name and the size of each column that it reads. Nothing was spent.")
    return names, tuple(
        whole(size, f"the size of column {quoted(name)}", 1, MOST_QUERY_CELLS, InvalidQuery)
        for name, size in zip(names, numbers, strict=True)
    )


class LinearQuery(Query):
    """Answers that are sums, over people, of a weight that depends on the person's cell.

    `columns` and `sizes` say which cells; `weights` is the matrix (answers x cells) that the query stands for,
    in units of the grid. It is what the sensitivities below are tested against, and is never built to answer.
    """

    columns: Columns
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuses what no schema could have; a query that was made by hand is held to the same limits."""
        columns, sizes = plain(self.columns, self.sizes)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "sizes", sizes)
        if len(set(self.columns)) != len(self.columns):
            raise InvalidQuery(f"a column stands twice in {quoted(', '.join(self.columns))}. Nothing was spent.")
        if len(self.columns) > MOST_QUERY_COLUMNS:
            raise InvalidQuery(
                f"one query may read {MOST_QUERY_COLUMNS} columns, not {len(self.columns)}. Nothing was spent."
            )
        if self.cells > MOST_QUERY_CELLS:
            raise InvalidQuery(
                f"{brief(', '.join(self.columns))} have {self.cells} cells together; one query may read "
                f"{MOST_QUERY_CELLS}. Nothing was spent."
            )

    def weights(self) -> NDArray[np.int64]:
        """The matrix it stands for; only for small queries."""
        if self.size * self.cells > MOST_QUERY_CELLS:
            raise InvalidQuery(f"{self} is too large to be written out as a matrix. Nothing was spent.")
        return self._matrix()

    @abstractmethod
    def _matrix(self) -> NDArray[np.int64]: ...

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
                f"the query was made for columns of {self.sizes} cells; this table's {brief(', '.join(self.columns))} "
                f"have {schema.sizes(self.columns)}. Nothing was drawn."
            )

    def __str__(self) -> str:
        return f"{type(self).__name__}({brief(' × '.join(self.columns))})"


def brief(text: str) -> str:
    """One printable line of bounded length, fit for a ledger and a message."""
    cut = text if len(text) <= LONGEST_SAID else text[: LONGEST_SAID - 3] + "..."
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def sized(schema: Schema, columns: object) -> tuple[Columns, tuple[int, ...]]:
    """The columns' names and sizes, as a query keeps them; one name may stand alone."""
    if isinstance(columns, str):
        columns = (columns,)
    if not isinstance(columns, Iterable):
        raise InvalidQuery(f"columns are a list of names, not {quoted(columns)}. Nothing was spent.")
    names = tuple(columns)
    return names, schema.sizes(names)


class _Cells(LinearQuery):
    """Counts of disjoint cells: a person is in one of them.

    Sensitivity: adding a row moves one cell by 1; replacing one moves two (Ex. 3.2; theory of chapter 0).
    """

    @property
    def size(self) -> int:
        return self.cells

    def units(self, *tables: Counts) -> NDArray[Any]:
        return tables[0].reshape(self.sizes).reshape(-1)

    def _matrix(self) -> NDArray[np.int64]:
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
        return cls(*sized(schema, columns))


@dataclass(frozen=True)
class Conjunctions(_Cells):
    """Every conjunction `a = u and b = v and ...` over some columns, each a counting query of its own (Ex. 4.1)."""

    columns: Columns
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, schema: Schema, *columns: str) -> Conjunctions:
        return cls(*sized(schema, columns))


@dataclass(frozen=True)
class Counting(LinearQuery):
    """How many people satisfy `a in A and b in B and ...` (Section 3.3). Sensitivity 1 in every norm."""

    columns: Columns
    sizes: tuple[int, ...]
    chosen: tuple[Cells, ...]  # for each column the cells that satisfy
    said: str = field(default="", compare=False, repr=False)  # the same in words, where it was made from words

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.chosen) != len(self.columns):
            raise InvalidQuery("a counting query has chosen cells for each column. Nothing was spent.")
        chosen = tuple(_rising(*column) for column in zip(self.columns, self.sizes, self.chosen, strict=True))
        object.__setattr__(self, "chosen", chosen)

    @classmethod
    def where(cls, schema: Schema, conditions: Mapping[str, Sequence[int]] | None = None) -> Counting:
        """From the satisfying cells of each column; without conditions it counts everybody."""
        conditions = {} if conditions is None else conditions
        if not isinstance(conditions, Mapping):
            raise InvalidQuery(f"conditions are cells by column, not {quoted(conditions)}. Nothing was spent.")
        names, sizes = sized(schema, tuple(conditions))
        return cls(names, sizes, tuple(conditions.values()))  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        table = tables[0].reshape(self.sizes)
        for cells in self.chosen:  # the first axis goes at each step
            table = _summed(table, cells)
        return np.asarray(table).reshape(1)

    def _matrix(self) -> NDArray[np.int64]:
        inside = np.zeros(self.sizes, dtype=np.int64)
        inside[np.ix_(*[list(cells) for cells in self.chosen])] = 1
        return inside.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)

    def __str__(self) -> str:
        if self.said or not self.columns:
            return f"count where {brief(self.said or 'true')}"
        cells = (f"{name}: {_few(cells)}" for name, cells in zip(self.columns, self.chosen, strict=True))
        return f"Counting({brief('; '.join(cells))})"


def _rising(name: str, size: int, cells: object) -> Cells:
    """The chosen cells of one column in the one form in which equal choices are equal."""
    if isinstance(cells, str | bytes) or not isinstance(cells, Iterable):
        raise InvalidQuery(f"the cells of column {quoted(name)} are a list, not {quoted(cells)}. Nothing was spent.")
    if isinstance(cells, range) and cells.step == 1:
        rising: Cells = cells
    else:
        rising = tuple(sorted({whole(c, f"a cell of column {quoted(name)}", 0, size - 1, InvalidQuery) for c in cells}))
        if all(low + 1 == high for low, high in pairwise(rising)):
            rising = range(rising[0], rising[-1] + 1) if rising else range(0)
    if rising and not 0 <= rising[0] <= rising[-1] < size:
        raise InvalidQuery(f"column {quoted(name)} has cells 0 to {size - 1}. Nothing was spent.")
    return rising


def _few(cells: Cells) -> str:
    if isinstance(cells, range) and len(cells) > 1:
        return f"{cells[0]}..{cells[-1]}"
    return " ".join(map(str, cells[:LONGEST_SAID])) or "none"


def _summed(table: Counts, cells: Cells) -> Counts:
    if len(cells) == 1:
        return table[cells[0]]  # type: ignore[no-any-return]
    if isinstance(cells, range):  # a view, not a copy
        return table[cells.start : cells.stop].sum(axis=0)  # type: ignore[no-any-return]
    return table[list(cells)].sum(axis=0)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Linear(LinearQuery):
    """The sum of a public weight in [0, 1] over all people (Section 4.1).

    Real weights are rounded to the grid before anything else, so that the answer is a sum of whole numbers and
    its sensitivity is the largest rounded weight, exactly: replacing moves it no further than adding, for weights
    are not negative, and as far, for the other row may be one that is dropped.
    """

    columns: Columns
    sizes: tuple[int, ...]
    numerators: NDArray[np.int64]  # the weights in units of the grid
    grid: Fraction = Fraction(1)
    said: str = ""  # the same in words, where it was made from words

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "grid", grid := one_part(self.grid))
        steps = 1 / grid
        given = np.asarray(self.numerators)
        if given.dtype.kind not in "iu" or given.shape != (self.cells,):
            raise InvalidQuery(f"{self.cells} cells need as many whole numerators. Nothing was spent.")
        if int(given.min()) < 0 or int(given.max()) > steps:
            raise InvalidQuery("the weights must lie in [0, 1]. Nothing was spent.")
        held = given.astype(np.int64)  # a copy that nobody can change after the sensitivity was asked
        held.flags.writeable = False
        object.__setattr__(self, "numerators", held)

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], weights: NDArray[Any] | Sequence[Any]) -> Linear:
        """From weights over the cells of the columns, in [0, 1]; 0/1 weights keep the answers whole."""
        names, sizes = sized(schema, columns)
        if prod(sizes) > MOST_QUERY_CELLS:
            cls(names, sizes, np.zeros(1, dtype=np.int64))  # refuses, before anything large is made
        try:
            listed = np.asarray(weights)
            given = listed.astype(np.float64) if listed.dtype.kind in "biufO" else np.empty(0)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape not in ((prod(sizes),), sizes):
            raise InvalidQuery(
                f"{prod(sizes)} cells of {brief(', '.join(names))} need as many numbers as weights, in one row or one "
                f"axis a column; not {quoted(np.shape(given))}. Nothing was spent."
            )
        if not bool(np.all((given >= 0) & (given <= 1))):  # NaN fails both
            raise InvalidQuery("the weights must lie in [0, 1]. Nothing was spent.")
        grid = Fraction(1) if bool(np.all((given == 0) | (given == 1))) else WEIGHT_GRID
        return cls(names, sizes, np.rint(given.reshape(-1) / float(grid)).astype(np.int64), grid)

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.asarray(tables[0].reshape(-1) @ self.numerators).reshape(1)

    def _matrix(self) -> NDArray[np.int64]:
        return self.numerators.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        # never 0: an answer without noise would be a promise about the schema
        return max(int(self.numerators.max()), 1) * self.grid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Linear) or type(other) is not type(self):
            return NotImplemented
        mine, theirs = (self.columns, self.sizes, self.grid), (other.columns, other.sizes, other.grid)
        return mine == theirs and np.array_equal(self.numerators, other.numerators)

    def __hash__(self) -> int:
        return hash((self.columns, self.sizes, self.grid, self.numerators.tobytes()))

    def __str__(self) -> str:
        return f"count where {brief(self.said)}" if self.said else super().__str__()
