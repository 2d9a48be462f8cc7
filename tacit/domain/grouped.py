"""A count for each cell of some columns, of those people alone of whom a predicate is true (Ex. 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.query import Columns, Counting, Counts, Linear, LinearQuery, brief, sized
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery
from tacit.rational import sqrt_up, whole


@dataclass(frozen=True)
class Grouped(LinearQuery):
    """How many of those that `where` counts are in each cell of the first columns, in the order of the cells.

    Every cell of the public domain has its answer, so that which groups there are is nobody's secret.
    Sensitivity: a person is in one group, if in any. Adding a row moves one answer by 1; replacing one moves two.
    """

    columns: Columns  # those that are grouped by, then the others that `where` reads
    sizes: tuple[int, ...]
    groups: int  # how many columns are grouped by
    where: LinearQuery  # one answer, with weights 0 and 1

    def __post_init__(self) -> None:
        super().__post_init__()
        groups = whole(self.groups, "the number of columns that are grouped by", 1, len(self.columns), InvalidQuery)
        object.__setattr__(self, "groups", groups)
        known = dict(zip(self.columns, self.sizes, strict=True))
        if type(self.where) not in (Counting, Linear) or self.where.grid != 1:  # others may weigh more
            raise InvalidQuery(f"groups are counted where a predicate is true, not by {self.where}. Nothing was spent.")
        read = dict(zip(self.where.columns, self.where.sizes, strict=True))
        if not set(self.columns[groups:]) <= set(read) or any(known.get(name) != read[name] for name in read):
            raise InvalidQuery(
                "the groups and their predicate do not read the columns of one table. Nothing was spent."
            )

    @classmethod
    def over(cls, schema: Schema, by: Columns, where: LinearQuery) -> Grouped:
        rest = tuple(name for name in where.columns if name not in by)
        return cls(*sized(schema, (*by, *rest)), len(by), where)

    @property
    def by(self) -> Columns:
        """The columns that are grouped by."""
        return self.columns[: self.groups]

    @property
    def size(self) -> int:
        return prod(self.sizes[: self.groups])

    def units(self, *tables: Counts) -> NDArray[Any]:
        counted = np.where(self._inside, tables[0].reshape(self.sizes), 0)
        return np.asarray(counted.sum(axis=tuple(range(self.groups, len(self.columns))))).reshape(-1)

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """Where the predicate is true; an axis of length 1 where a column does not matter."""
        read = [name for name in self.columns if name in self.where.columns]
        inside = self.where.weights().reshape(self.where.sizes) > 0
        inside = inside.transpose([self.where.columns.index(name) for name in read])
        return inside.reshape(
            [size if name in read else 1 for name, size in zip(self.columns, self.sizes, strict=True)]
        )

    def _matrix(self) -> NDArray[np.int64]:
        inside = np.broadcast_to(self._inside, self.sizes).reshape(self.size, -1)
        matrix = np.zeros((self.size, *inside.shape), dtype=np.int64)
        matrix[np.arange(self.size), np.arange(self.size)] = inside
        return matrix.reshape(self.size, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        if neighbors is Neighbors.ADD_REMOVE or norm is Norm.LINF:
            return Fraction(1)
        return Fraction(2) if norm is Norm.L1 else sqrt_up(Fraction(2))

    def __str__(self) -> str:
        return f"{self.where} by {brief(', '.join(self.by))}"
