"""Intervals of an ordered column: its prefixes and its ranges (Section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.query import MOST_QUERY_CELLS, Columns, Counts, LinearQuery, sized
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery, quoted
from tacit.rational import sqrt_up


@dataclass(frozen=True)
class Prefixes(LinearQuery):
    """Cumulative counts of one ordered column: how many people are in cell 0, in 0..1, in 0..2, and so on.

    Sensitivity: a person in cell c is in the d - c prefixes from c on, at most d. Two people differ in at most d - 1,
    but the other row may be one that is dropped, so replacing moves as much as adding.
    """

    columns: Columns
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.columns) != 1:
            raise InvalidQuery(f"prefixes are of one column, not of {len(self.columns)}. Nothing was spent.")

    @classmethod
    def over(cls, schema: Schema, column: str) -> Prefixes:
        return cls(*sized(schema, (column,)))

    @property
    def size(self) -> int:
        return self.sizes[0]

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.cumsum(tables[0].reshape(self.sizes))

    def _matrix(self) -> NDArray[np.int64]:
        return np.tril(np.ones((self.size, self.size), dtype=np.int64))

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return _of_bits(self.size, norm)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            raise InvalidQuery("ranges are of one column, with others by which to split. Nothing was spent.")
        if self.size > MOST_QUERY_CELLS:
            raise InvalidQuery(
                f"there are {self.size} ranges; one query may ask {MOST_QUERY_CELLS}. Nothing was spent."
            )

    @classmethod
    def over(cls, schema: Schema, column: str, by: str | Sequence[str] = ()) -> Ranges:
        if not isinstance(by, Iterable):
            raise InvalidQuery(f"`by` is a list of columns, not {quoted(by)}. Nothing was spent.")
        return cls(*sized(schema, (*((by,) if isinstance(by, str) else by), column)))

    @property
    def size(self) -> int:
        return prod(self.sizes[:-1]) * (self.sizes[-1] * (self.sizes[-1] + 1) // 2)

    @property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last cell of each interval."""
        first, last = np.triu_indices(self.sizes[-1])
        return first.astype(np.int64), last.astype(np.int64)

    def units(self, *tables: Counts) -> NDArray[Any]:
        groups = tables[0].reshape(self.sizes).reshape(-1, self.sizes[-1])
        upto = np.zeros((groups.shape[0], self.sizes[-1] + 1), dtype=groups.dtype)
        np.cumsum(groups, axis=1, out=upto[:, 1:])
        first, last = self.ends
        return (upto[:, last + 1] - upto[:, first]).reshape(-1)

    def _matrix(self) -> NDArray[np.int64]:
        first, last = self.ends
        cell = np.arange(self.sizes[-1])
        inside = ((first[:, None] <= cell) & (cell <= last[:, None])).astype(np.int64)
        return np.kron(np.eye(prod(self.sizes[:-1]), dtype=np.int64), inside)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        covering = (self.sizes[-1] + 1) ** 2 // 4
        if neighbors is Neighbors.REPLACE_ONE and prod(self.sizes[:-1]) > 1:
            covering *= 2
        return _of_bits(covering, norm)
