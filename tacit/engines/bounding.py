"""At most so many rows of each person, whichever machine they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.engines.figures import truths

Cells: TypeAlias = NDArray[Any]  # a row of cells each, in one record

BLOCK = 64  # lots that are drawn at once


class Bound(NamedTuple):
    """Which column tells people apart, how many rows of each count, and the key by which they are chosen."""

    column: str
    most: int
    key: bytes


def lots(key: bytes, person: bytes, first: int, count: int) -> NDArray[np.uint64]:
    """The lots of a person's rows, from the first on: nobody who does not know the key can tell them from chance.

    They depend on nothing but the key, the person and the row's place among the person's rows in the order of cells.
    """
    blocks = range(first // BLOCK, -(-(first + count) // BLOCK))
    drawn = (hashlib.shake_256(key + block.to_bytes(8, "big") + person).digest(8 * BLOCK) for block in blocks)
    start = first % BLOCK
    return np.frombuffer(b"".join(drawn), dtype=np.uint64)[start : start + count]


def bounded(batches: Iterable[tuple[pa.Array, Cells]], most: int, key: bytes) -> Iterator[Cells]:
    """The rows that count, out of batches in the order of (person, cells).

    Which ones: those with the smallest lots. Rows of the same cells are alike, so that a person's rows in the order of
    their cells are one list however they arrive; the choice is a function of that list and the key alone. Other
    people's rows do not move it, nor does it matter which executor reads what, how often, or in which batches.

    >>> cells = np.array([(3,), (4,), (4,), (5,), (5,)], dtype=[("age", np.uint8)])
    >>> [len(kept) for kept in bounded([(pa.array([b"a", b"b", b"b", b"b", b"c"]), cells)], 2, b"key")]
    [1, 2, 1]
    """
    open_: _Person | None = None
    for persons, cells in batches:
        if not len(persons):
            continue
        starts = np.append(0, np.flatnonzero(truths(pc.not_equal(persons[1:], persons[:-1]))) + 1)
        if open_ is not None and persons[0].as_py() != open_.name:
            yield open_.rows()
            open_ = None
        last = int(starts[-1])
        if open_ is not None:
            end = int(starts[1]) if len(starts) > 1 else len(cells)
            open_.add(cells[:end])
            if len(starts) == 1:
                continue
            yield open_.rows()
            starts = starts[1:]
        first = int(starts[0])
        sizes = np.diff(starts)
        light = np.zeros(len(cells), dtype=np.bool_)
        light[first:last] = np.repeat(sizes <= most, sizes)
        if light.any():
            yield cells[light]
        for at in np.flatnonzero(sizes > most):
            whole = _Person(persons[int(starts[at])].as_py(), most, key, cells.dtype)
            whole.add(cells[starts[at] : starts[at] + sizes[at]])
            yield whole.rows()
        open_ = _Person(persons[last].as_py(), most, key, cells.dtype)
        open_.add(cells[last:])
    if open_ is not None:
        yield open_.rows()


class _Person:
    """The rows of one person that have the smallest lots so far."""

    def __init__(self, name: bytes, most: int, key: bytes, layout: np.dtype[Any]) -> None:
        self.name, self._most, self._key = name, most, key
        self._seen = 0
        self._cells: Cells = np.zeros(0, dtype=layout)
        self._lots = np.zeros(0, dtype=np.uint64)

    def add(self, cells: Cells) -> None:
        """Further rows, in the order of cells."""
        drawn = lots(self._key, self.name, self._seen, len(cells))
        self._seen += len(cells)
        self._cells, self._lots = np.append(self._cells, cells), np.append(self._lots, drawn)
        if len(self._lots) > self._most:
            kept = np.argpartition(self._lots, self._most - 1)[: self._most]
            self._cells, self._lots = self._cells[kept], self._lots[kept]

    def rows(self) -> Cells:
        """Those that count."""
        return self._cells
