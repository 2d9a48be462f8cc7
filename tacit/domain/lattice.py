"""The lattice of marginals that overlap: on which columns they must agree, and how far they do."""

from __future__ import annotations

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
        return [(columns, self._sides(columns)) for columns in sorted(shared(self.columns), key=len)]

    @cached_property
    def links(self) -> list[tuple[Columns, list[Side]]]:
        """The few of them that imply the rest: a set is left out if larger ones already connect all tables above it."""
        links: list[tuple[Columns, list[Side]]] = []
        for columns, sides in reversed(self.shared):
            groups = [{side.table for side in above} for larger, above in links if set(columns) < set(larger)]
            if len(_connected([{side.table} for side in sides] + groups)) > 1 or len(self.columns) == 1:
                links.append((columns, sides))
        return links

    def _sides(self, columns: Columns) -> list[Side]:
        above = [(i, table) for i, table in enumerate(self.columns) if set(columns) <= set(table)]
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
    whole = {tuple(name for name in one if name in other) for one, other in combinations(sets, 2)}
    if sum(2 ** len(columns) for columns in whole) > 16 * MOST_SHARED:
        raise InvalidQuery("these marginals overlap in too many column sets; ask for smaller ones. Nothing was spent.")
    found = {part for columns in whole for k in range(len(columns) + 1) for part in combinations(columns, k)} | {()}
    if len(found) > MOST_SHARED:
        raise InvalidQuery(
            f"these marginals overlap in {len(found)} column sets; {MOST_SHARED} can be kept consistent. "
            "Nothing was spent."
        )
    return found


def _connected(groups: Sequence[set[int]]) -> list[set[int]]:
    """Joins the groups that have a member in common."""
    joined: list[set[int]] = []
    for group in groups:
        apart = [other for other in joined if not other & group]
        joined = [*apart, group.union(*[other for other in joined if other & group])]
    return joined
