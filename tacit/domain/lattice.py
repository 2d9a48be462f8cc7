"""The lattice of marginals that overlap: on which columns they must agree, and how far they do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.errors import InvalidParameter, InvalidQuery

Table: TypeAlias = NDArray[np.float64]
Tables: TypeAlias = Mapping[Columns, Table]

MOST_SHARED = 100_000  # column sets that several tables have in common
MOST_PAIRED = 1000  # tables of which every two are compared, where they have too many parts to be counted
TOLERANCE = 1e-6  # of the total: by how much tables may still disagree


@dataclass(frozen=True)
class Side:
    """How one table lies over a column set that it shares."""

    table: int
    rest: tuple[int, ...]  # axes to sum away
    shape: tuple[int, ...]  # of the sum, so that it spreads over the table
    spread: int  # cells of the table for each of the sum
    weight: float  # among the tables that share the set; they add up to one


class Lattice:
    """The tables in one vector, and the column sets that two or more of them share."""

    def __init__(self, tables: Tables, variances: Mapping[Columns, float] | None = None) -> None:
        self.columns = tuple(tables)
        self.shapes = tuple(table.shape for table in tables.values())
        if not self.columns or any(len(c) != len(s) for c, s in zip(self.columns, self.shapes, strict=True)):
            raise InvalidParameter("consistency is among tables with one axis for each of their columns.")
        if variances is not None and not all(0 < variances[columns] < inf for columns in self.columns):
            raise InvalidParameter("each table's noise has a positive finite variance.")
        self.precision = [1.0 if variances is None else 1 / variances[columns] for columns in self.columns]
        self.offsets = np.concatenate(([0], np.cumsum([prod(shape) for shape in self.shapes])))

    def packed(self, tables: Tables) -> Table:
        return np.concatenate([np.asarray(tables[columns], np.float64).reshape(-1) for columns in self.columns])

    def views(self, flat: Table) -> list[Table]:
        spans = zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)
        return [flat[start:end].reshape(shape) for start, end, shape in spans]

    def unpacked(self, flat: Table) -> dict[Columns, Table]:
        return dict(zip(self.columns, self.views(flat), strict=True))

    @cached_property
    def shared(self) -> list[tuple[Columns, list[Side]]]:
        """Every column set within two tables or more, the empty one always, smaller ones first."""
        # in an order that is the same in every process, as that of a set of texts is not: sums of floats depend on it
        ordered = sorted(shared(self.columns), key=lambda columns: (len(columns), columns))
        return [(columns, self._sides(columns)) for columns in ordered]

    @cached_property
    def links(self) -> list[tuple[Columns, list[Side]]]:
        """The few of them that imply the rest: a set is left out if larger ones already connect all tables above it."""
        links: list[tuple[Columns, list[Side]]] = []
        over: defaultdict[str, list[int]] = defaultdict(list)  # the links that hold a column
        for columns, sides in reversed(self.shared):
            few = min((over[name] for name in columns), key=len, default=range(len(links)))
            larger = [links[at][1] for at in few if set(columns) < set(links[at][0])]
            groups = [[side.table for side in above] for above in larger]
            if _apart([side.table for side in sides], groups) > 1 or len(self.columns) == 1:
                for name in columns:
                    over[name].append(len(links))
                links.append((columns, sides))
        return links

    @cached_property
    def _holding(self) -> dict[str, set[int]]:
        """The tables that hold a column."""
        found: defaultdict[str, set[int]] = defaultdict(set)
        for i, columns in enumerate(self.columns):
            for name in columns:
                found[name].add(i)
        return found

    def _sides(self, columns: Columns) -> list[Side]:
        holding = [self._holding[name] for name in columns] or [set(range(len(self.columns)))]
        above = [(i, self.columns[i]) for i in sorted(set.intersection(*holding))]
        sides = []
        for i, table in above:
            rest = tuple(axis for axis, name in enumerate(table) if name not in columns)
            spread = prod(self.shapes[i][axis] for axis in rest)
            shape = tuple(1 if axis in rest else d for axis, d in enumerate(self.shapes[i]))
            sides.append(Side(i, rest, shape, spread, self.precision[i] / spread))
        weight = sum(side.weight for side in sides)
        return [Side(s.table, s.rest, s.shape, s.spread, s.weight / weight) for s in sides]

    def agree(self, flat: Table, total: float | None = None) -> None:
        """Projects in place. When T has its turn the tables above it agree on all smaller sets, so what they say of T
        differs by its own part alone, and putting the mean in its place disturbs nothing."""
        views = self.views(flat)
        for columns, sides in self.shared:
            sums = [views[side.table].sum(axis=side.rest, keepdims=True) for side in sides]
            mean: Table | float
            if columns or total is None:
                mean = sum(side.weight * s.reshape(-1) for side, s in zip(sides, sums, strict=True))
            else:
                mean = total
            for side, s in zip(sides, sums, strict=True):
                views[side.table] += (mean - s.reshape(-1)).reshape(side.shape) / side.spread

    def discrepancy(self, flat: Table) -> float:
        views, worst = self.views(flat), 0.0
        for _, sides in self.links:
            sums = np.stack([views[side.table].sum(axis=side.rest).reshape(-1) for side in sides])
            worst = max(worst, float(np.ptp(sums, axis=0).max()))
        return worst


def shared(column_sets: Iterable[Columns]) -> set[Columns]:
    """The column sets that lie within two of these or more, in their order of columns; the empty one always."""
    sets = list(column_sets)
    held = Counter(name for columns in sets for name in columns)
    common = [tuple(name for name in columns if held[name] > 1) for columns in sets]
    twice = 2
    if _parts(common) > 16 * MOST_SHARED and len(sets) <= MOST_PAIRED:  # a few wide tables: what any two have in common
        common = list({tuple(n for n in one if n in other) for one, other in combinations(common, 2)})
        twice = 1
    if _parts(common) > 16 * MOST_SHARED:
        raise InvalidQuery("these marginals overlap in too many column sets; ask for smaller ones. Nothing was spent.")
    times = Counter(part for columns in common for k in range(len(columns) + 1) for part in combinations(columns, k))
    found = {part for part, many in times.items() if many >= twice} | {()}
    if len(found) > MOST_SHARED:
        raise InvalidQuery(
            f"these marginals overlap in {len(found)} column sets; {MOST_SHARED} can be kept consistent. "
            "Nothing was spent."
        )
    return found


def _parts(column_sets: Iterable[Columns]) -> int:
    return sum(2 ** len(columns) for columns in column_sets)


def _apart(tables: Iterable[int], groups: Iterable[Sequence[int]]) -> int:
    """How many of the tables are left where each group is joined into one."""
    parent = {table: table for table in tables}

    def root(table: int) -> int:
        while parent[table] != table:
            parent[table] = table = parent[parent[table]]
        return table

    for group in groups:
        for table in group:
            parent[root(table)] = root(group[0])
    return sum(table == above for table, above in parent.items())
