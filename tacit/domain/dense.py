"""Passes over a dense table: block by block, so that what a block needs stays in the cache, and by two threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.domain.boxes import MOST_BOXES, runs
from tacit.domain.query import Cells, Counting, LinearQuery
from tacit.errors import InvalidQuery

BLOCK = 2**18  # cells: so long that threads seldom meet, so short that their scratch lies in a cache
PAYS = 2**21  # cells from which on a second thread pays
_THREADS = min(2, os.cpu_count() or 1)  # two fill the memory's bandwidth
_ROW = 512  # cells that one inner loop should have at least
_FEW = 2**14  # cells of a box that are soon done, however they lie
_LOOP = 20  # cells that are done in the time in which a loop begins
_PATTERN = 2**20  # weights held at once, apart from those that the query has itself

Piece: TypeAlias = tuple[int | slice, ...]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Weighed:
    """The cells of a table that one weighted count looks at: views of the table, and what each cell there weighs.

    A conjunction is a few boxes, each of which is a view, and every cell weighs one. Anything else is one box over the
    table folded to `sizes`, whose last axis is long, and a pattern that is spread over it: never an array as large as
    the universe.
    """

    sizes: tuple[int, ...]
    boxes: tuple[tuple[slice, ...], ...]
    pattern: NDArray[Any] | None
    most: float  # the largest weight
    least: float
    fit: bool = True  # it looks at no more cells than it must

    @classmethod
    def by(
        cls,
        query: LinearQuery,
        names: Sequence[str],
        sizes: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        whole: bool = False,
    ) -> Weighed:
        """For a query with one answer, over a table with these columns; with `whole` every cell is looked at."""
        if query.size != 1:
            raise InvalidQuery(f"one weighted count is looked at, not the {query.size} of {query}. Nothing was spent.")
        everything = [range(size) for size in sizes]
        full = tuple(slice(0, size) for size in sizes)
        if type(query) is Counting:
            held = dict(zip(query.columns, query.chosen, strict=True))
            chosen: list[Cells] = [held.get(name, cells) for name, cells in zip(names, everything, strict=True)]
            if not whole and not all(len(cells) for cells in chosen):
                return cls(sizes, (), None, 0.0, 0.0)
            parts = [runs(cells) for cells in chosen]
            whole = whole and any(len(cells) < size for cells, size in zip(chosen, sizes, strict=True))
            if (
                not whole
                and prod(map(len, parts)) <= MOST_BOXES
                and all(_runs_on(box, sizes) for box in product(*parts))
            ):
                boxes = tuple(tuple(slice(*run) for run in box) for box in product(*parts))
                return cls(sizes, boxes, None, 1.0, 1.0)
            inside = np.zeros(query.sizes, dtype=dtype)
            inside[np.ix_(*[list(cells) for cells in query.chosen])] = 1
            hull = full if whole else tuple(slice(cells[0], cells[-1] + 1) for cells in chosen)
            return cls._spread(inside, query, names, sizes, hull, fit=not whole)
        weights = query.weights()[0].astype(dtype).reshape(query.sizes) * dtype.type(query.grid)
        return cls._spread(weights, query, names, sizes, full, fit=True)

    @classmethod
    def _spread(
        cls,
        weights: NDArray[Any],
        query: LinearQuery,
        names: Sequence[str],
        sizes: tuple[int, ...],
        hull: tuple[slice, ...],
        fit: bool,
    ) -> Weighed:
        """Folds the last axes into one, long enough for an inner loop and short enough for the pattern."""
        weights = weights.transpose([query.columns.index(name) for name in names if name in query.columns])
        own = [size if name in query.columns else 1 for name, size in zip(names, sizes, strict=True)]
        weights = weights.reshape(own)
        fold = len(sizes) - 1
        while fold > 0 and prod(sizes[fold:]) < _ROW:
            inside = prod(sizes[fold - 1 :]) if any(size > 1 for size in own[fold - 1 :]) else 1
            if prod(own[: fold - 1]) * inside > max(_PATTERN, weights.size):
                break
            fold -= 1
        if any(size > 1 for size in own[fold:]):  # else one number weighs the whole row
            weights = np.broadcast_to(weights, (*own[:fold], *sizes[fold:]))
        weights = weights.reshape(*own[:fold], -1)
        cut = tuple(part if own[axis] > 1 else slice(None) for axis, part in enumerate(hull[:fold]))
        pattern = np.ascontiguousarray(weights[cut])
        box = (*hull[:fold], slice(0, prod(sizes[fold:])))
        most, least = float(weights.max()), float(weights.min())
        return cls((*sizes[:fold], prod(sizes[fold:])), (box,), pattern, most, least, fit)

    def views(self, table: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Those parts of a table, block by block, each with its weights; None where all weigh one."""
        found: list[tuple[NDArray[Any], NDArray[Any] | None]] = []
        folded = table.reshape(self.sizes)
        for box in self.boxes:
            view = folded[box]
            for piece in pieces(view.shape):
                found.append((view[piece], None if self.pattern is None else self.pattern[_thin(self.pattern, piece)]))
        return found


def pieces(shape: tuple[int, ...], most: int = BLOCK) -> list[Piece]:
    """A table of this shape in parts of at most so many cells, cut along its first axes."""
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) > most:
        axis += 1
    if not shape:
        return [()]
    step = max(1, most // max(prod(shape[axis + 1 :]), 1))
    cuts = [slice(start, min(start + step, shape[axis])) for start in range(0, shape[axis], step)]
    return [(*before, cut) for before in product(*map(range, shape[:axis])) for cut in cuts]


def side_by_side(work: Callable[[Sequence[T]], list[float]], parts: Sequence[T], cells: int) -> NDArray[np.float64]:
    """What the work says of each part, in order: the same numbers whether by one thread or by two."""
    if cells < PAYS or _THREADS == 1 or len(parts) < 2 * _THREADS:
        return np.array(work(parts), dtype=np.float64)
    share = -(-len(parts) // _THREADS)
    with ThreadPoolExecutor(_THREADS) as pool:  # numpy lets go of the interpreter while it computes
        done = list(pool.map(work, [parts[start : start + share] for start in range(0, len(parts), share)]))
    return np.concatenate([np.array(some, dtype=np.float64) for some in done])


def _thin(pattern: NDArray[Any], piece: Piece) -> Piece:
    # where the pattern is the same along an axis, it has one place
    def at(axis: int, part: int | slice) -> int | slice:
        if pattern.shape[axis] > 1:
            return part
        return 0 if isinstance(part, int) else slice(0, 1)

    return tuple(at(axis, part) for axis, part in enumerate(piece))


def _runs_on(box: tuple[tuple[int, int], ...], sizes: tuple[int, ...]) -> bool:
    """Whether the view of a box is sooner passed over than all rows that it cuts, as numpy loops over them."""
    lengths = [end - start for start, end in box]
    inner, stride, step = 1, 1, 1  # the innermost axes that numpy makes one of
    for length, size in zip(reversed(lengths), reversed(sizes), strict=True):
        if length > 1:
            if inner > 1 and stride != step * inner:
                break
            inner, step = inner * length, stride if inner == 1 else step
        stride *= size
    fold = len(sizes) - 1
    while fold > 0 and prod(sizes[fold:]) < _ROW:
        fold -= 1
    cells = prod(lengths)
    return cells + cells // inner * _LOOP <= prod(lengths[:fold]) * prod(sizes[fold:]) or cells <= _FEW
