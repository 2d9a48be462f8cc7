"""Many counting queries over the same columns at once: each is a union of boxes, and a box is a few corners of sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Cells, Counting, Counts

MOST_COLUMNS, MOST_BOXES = 4, 16  # beyond them a query is answered faster by itself


def runs(cells: Cells) -> list[tuple[int, int]]:
    """First cell of each run, and the one after its last."""
    if isinstance(cells, range):
        return [(cells.start, cells.stop)] if cells else []
    breaks = [place for place in range(1, len(cells)) if cells[place] > cells[place - 1] + 1]
    return [(cells[a], cells[b - 1] + 1) for a, b in zip([0, *breaks], [*breaks, len(cells)], strict=True)]


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of some queries over the same columns.

    >>> from tacit.domain.schema import Integers, Schema
    >>> schema = Schema([Integers("a", 0, 3)])
    >>> boxes = Boxes.of([Counting.where(schema, {"a": cells}) for cells in ((0, 1), (0, 3), ())])
    >>> boxes.units(np.array([1, 20, 300, 4000]))
    array([  21, 4001,    0])
    """

    sizes: tuple[int, ...]
    ends: tuple[NDArray[np.int64], NDArray[np.int64]]  # (columns x boxes): first cells, and the ones after the last
    owner: NDArray[np.int64]  # which query each box is of
    queries: int

    @classmethod
    def of(cls, queries: Sequence[Counting]) -> Boxes:
        found = [(owner, box) for owner, query in enumerate(queries) for box in product(*map(runs, query.chosen))]
        sizes = queries[0].sizes
        ends = np.array([box for _, box in found], dtype=np.int64).reshape(len(found), len(sizes), 2)
        owner = np.array([owner for owner, _ in found], dtype=np.int64)
        return cls(sizes, (ends[:, :, 0].T.copy(), ends[:, :, 1].T.copy()), owner, len(queries))

    @staticmethod
    def fits(query: Counting) -> bool:
        """Whether it is a union of few boxes in few columns."""
        return len(query.sizes) <= MOST_COLUMNS and prod(len(runs(cells)) for cells in query.chosen) <= MOST_BOXES

    def units(self, table: Counts) -> Counts:
        """The queries' answers: inclusion and exclusion over the corners of each box."""
        upto = np.zeros([size + 1 for size in self.sizes], dtype=table.dtype)
        inner = tuple(slice(1, None) for _ in self.sizes)
        upto[inner] = table.reshape(self.sizes)
        for axis in range(len(self.sizes)):
            np.cumsum(upto, axis=axis, out=upto)
        answers = np.zeros(self.queries, dtype=table.dtype)
        for corner in product((0, 1), repeat=len(self.sizes)):
            at = tuple(self.ends[end][column] for column, end in enumerate(corner))
            sums = upto[at] if at else np.broadcast_to(upto, len(self.owner))
            np.add.at(answers, self.owner, sums if (len(corner) - sum(corner)) % 2 == 0 else -sums)
        return answers
