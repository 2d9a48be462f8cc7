"""Sets of cells of one column, as the few cells at which membership changes: a million cells cost nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellSet:
    """Some of the cells 0 to size - 1: cell c is in where an odd number of the rising `ends` is at most c.

    >>> some = CellSet.of(10, (1, 2, 7))
    >>> some.runs, some.opposite.runs
    ([(1, 3), (7, 8)], [(0, 1), (3, 7), (8, 10)])
    """

    size: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, size: int, cells: Iterable[int]) -> CellSet:
        rising = sorted(set(cells))
        return cls(size, _toggled([end for cell in rising for end in (cell, cell + 1)]))

    @classmethod
    def run(cls, size: int, start: int, stop: int) -> CellSet:
        """The cells from start up to and without stop, as far as there are any."""
        start, stop = max(start, 0), min(stop, size)
        return cls(size, (start, stop) if start < stop else ())

    @classmethod
    def switched(cls, size: int, cells: NDArray[np.int64], inside: NDArray[np.bool_]) -> CellSet:
        """The set that, from each of these rising cells on, holds them or does not."""
        ends = cells[inside != np.concatenate(([False], inside))[: len(inside)]].tolist()
        return cls(size, (*ends, size) if len(ends) % 2 else tuple(ends))

    @property
    def opposite(self) -> CellSet:
        """All other cells."""
        return CellSet(self.size, _toggled(sorted((0, *self.ends, self.size))))

    @property
    def full(self) -> bool:
        return self.ends == (0, self.size)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """First cell of each run, and the one after its last."""
        return list(zip(self.ends[::2], self.ends[1::2], strict=True))

    def __len__(self) -> int:
        return sum(self.ends[1::2]) - sum(self.ends[::2])

    def __contains__(self, cell: int) -> bool:
        return bisect_right(self.ends, cell) % 2 == 1

    def holds(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these cells are in."""
        return np.asarray(np.searchsorted(self.ends, cells, side="right") % 2 == 1)

    def cut(self, stop: int) -> CellSet:
        """What of it lies below a cell."""
        return in_all((self, CellSet.run(self.size, 0, stop)))


def in_all(sets: Sequence[CellSet]) -> CellSet:
    """The cells that are in every one of these."""
    return _in_many(sets, len(sets))


def in_any(sets: Sequence[CellSet]) -> CellSet:
    """The cells that are in one of these at least."""
    return _in_many(sets, 1)


def _in_many(sets: Sequence[CellSet], least: int) -> CellSet:
    """One sweep over all ends, each of which opens a set or closes it."""
    level, ends = 0, []
    for event in sorted(2 * end + place % 2 for one in sets for place, end in enumerate(one.ends)):
        before = level
        level += -1 if event % 2 else 1
        if (before >= least) != (level >= least):
            ends.append(event // 2)
    return CellSet(sets[0].size, _toggled(ends))


def _toggled(rising: list[int]) -> tuple[int, ...]:
    """Without the pairs of equal ends: what switches twice at one cell does not switch."""
    ends: list[int] = []
    for end in rising:
        if ends and ends[-1] == end:
            ends.pop()
        else:
            ends.append(end)
    return tuple(ends)
