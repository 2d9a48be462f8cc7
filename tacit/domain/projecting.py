"""Many marginals of one dense table at once, and their transpose: a few passes serve them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns

_SMALL = 2**12  # cells from which on it pays to sum in steps

Table = NDArray[np.float64]


@dataclass(frozen=True)
class _Step:
    """A table on the way: which axes of it are summed away, and what is then taken from the rest."""

    gone: tuple[int, ...]
    leaf: tuple[int, int] | None  # where its cells stand among all answers, if it was asked for
    shape: tuple[int, ...]
    wide: tuple[int, ...]  # the same with an axis of one cell for each that is gone
    then: tuple[_Step, ...]


class Projections:
    """The marginals of tables with these columns, as one vector, in the order in which they are named.

    The columns are cut into one block more than the largest set has columns, so that each set misses a block and can
    be taken from the table without it: k + 1 passes over the whole, then over ever smaller parts. The columns of a
    block lie side by side, so that they are summed as one long axis.

    >>> over = Projections(("a", "b"), (2, 2), [("a",), ("b",), ()])
    >>> over.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 3.,  7.,  4.,  6., 10.])
    >>> over.spread(np.array([1.0, 0.0, 10.0, 0.0, 100.0]))
    array([[111., 101.],
           [110., 100.]])
    """

    def __init__(self, names: Columns, sizes: Sequence[int], column_sets: Sequence[Columns]) -> None:
        self.sets = tuple(dict.fromkeys(column_sets))
        self._sizes = dict(zip(names, sizes, strict=True))
        self._starts = {}
        self.size = 0
        for columns in self.sets:
            self._starts[columns] = self.size
            self.size += prod(self._sizes[name] for name in columns)
        self._steps = self._planned(names, list(self.sets))
        self._shape = tuple(sizes)

    def of(self, table: Table) -> Table:
        """All cells of all marginals; of each the axes stand in the table's order."""
        answers = np.empty(self.size)
        for step in self._steps:
            _summed(table, step, answers)
        return answers

    def spread(self, cells: Table) -> Table:
        """The transpose: the table whose cell is the sum of those of the marginals' cells that hold it."""
        total = np.zeros(self._shape)
        for step in self._steps:
            _spread(total, step, cells)
        return total

    def named(self, answers: Table) -> dict[Columns, Table]:
        """The same marginals one by one."""
        found = {}
        for columns, start in self._starts.items():
            sizes = tuple(self._sizes[name] for name in columns)
            found[columns] = answers[start : start + prod(sizes)].reshape(sizes)
        return found

    def _planned(self, names: Columns, column_sets: list[Columns]) -> tuple[_Step, ...]:
        widest, steps = max(map(len, column_sets), default=0), []
        cells = prod(self._sizes[name] for name in names)
        if cells <= _SMALL or widest + 1 >= len(names) or len(column_sets) <= widest + 1:
            for columns in column_sets:
                start = self._starts[columns]
                cells = prod(self._sizes[name] for name in columns)
                steps.append(self._step(names, columns, (start, start + cells), ()))
            return tuple(steps)
        spans = _cut([self._sizes[name] for name in names], widest + 1)
        blocks = [set(names[start:stop]) for start, stop in spans]
        served: dict[int, list[Columns]] = {}
        for columns in column_sets:
            served.setdefault(next(i for i, block in enumerate(blocks) if not block & set(columns)), []).append(columns)
        for i, columns_without in served.items():
            rest = tuple(name for name in names if name not in blocks[i])
            steps.append(self._step(names, rest, None, self._planned(rest, columns_without)))
        return tuple(steps)

    def _step(self, names: Columns, rest: Columns, leaf: tuple[int, int] | None, then: tuple[_Step, ...]) -> _Step:
        gone = tuple(axis for axis, name in enumerate(names) if name not in rest)
        wide = tuple(self._sizes[name] if name in rest else 1 for name in names)
        return _Step(gone, leaf, tuple(self._sizes[name] for name in rest), wide, then)


def _summed(table: Table, step: _Step, answers: Table) -> None:
    rest = table.sum(axis=step.gone) if step.gone else table
    if step.leaf:
        answers[slice(*step.leaf)] = rest.reshape(-1)
    for after in step.then:
        _summed(rest, after, answers)


def _spread(total: Table, step: _Step, cells: Table) -> None:
    if step.leaf:
        part = cells[slice(*step.leaf)]
    else:
        part = np.zeros(step.shape)
        for after in step.then:
            _spread(part, after, cells)
    total += part.reshape(step.wide)


def projected(table: Table, names: Columns, column_sets: Sequence[Columns]) -> dict[Columns, Table]:
    """The marginals of one table, by name; axes stand in the table's order."""
    over = Projections(names, table.shape, column_sets)
    return over.named(over.of(table))


def spread(factors: Mapping[Columns, Table], names: Columns, sizes: Sequence[int]) -> Table:
    """The table whose cell is the sum, over the column sets, of the factor's cell that holds it."""
    over = Projections(names, sizes, list(factors))
    cells = [np.asarray(factors[columns], np.float64).reshape(-1) for columns in over.sets]
    return over.spread(np.concatenate([np.empty(0), *cells]))


def _cut(sizes: Sequence[int], parts: int) -> list[tuple[int, int]]:
    """Spans of columns, first and one after last, of about equally many cells each; the largest first."""
    logs = np.cumsum(np.log2(np.maximum(sizes, 2)))
    ends = [int(np.searchsorted(logs, logs[-1] * part / parts)) + 1 for part in range(1, parts)]
    spans, start = [], 0
    for place, end in enumerate([*ends, len(sizes)]):
        stop = min(max(end, start + 1), len(sizes) - (parts - 1 - place))
        spans.append((start, stop))
        start = stop
    return sorted(spans, key=lambda span: -prod(sizes[span[0] : span[1]]))
