"""Moving synthetic rows until they fit released answers: coordinate descent, and a slower way for any function."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.sampling import fused
from tacit.domain.schema import Schema
from tacit.domain.synopsis import Rows
from tacit.domain.workload import Workload
from tacit.mechanisms.distinct import Distinct

TRIED = 1000  # changes for one unit of effort, where queries are any functions
_RESTS = 1e-4  # a sweep that lowers the misfit by a smaller share than this is the last
_SHORTENED = 4  # times that fewer rows are tried before a column is left as it is

Vector = NDArray[np.float64]


def searched(
    schema: Schema,
    workload: Workload,
    values: Vector,
    total: float,
    rows: int,
    within: float,
    effort: int,
    rng: np.random.Generator,
) -> Rows | None:
    """So many rows whose answers are all within so much of the values, or None: least squares, column by column.

    The slope of the misfit is one number for each cell of each column set, so what a row gains by another value in one
    column is a sum of a few of them. Of the rows that gain as many move as make the misfit least.
    """
    fit = _Fit(Distinct.of(schema, workload), values, total, rows, rng)
    misfit = fit.misfit
    for _ in range(effort):
        for axis in rng.permutation(len(fit.distinct.columns)):
            if fit.farthest > within:
                fit.move(int(axis), rng)
        if fit.farthest <= within or fit.misfit > misfit * (1 - _RESTS):
            break
        misfit = fit.misfit
    return Rows(schema, fit.distinct.filled(fit.codes, rng), total=total) if fit.farthest <= within else None


class _Fit:
    """Rows of classes, and how far what they say is from what they should say."""

    def __init__(self, distinct: Distinct, values: Vector, total: float, rows: int, rng: np.random.Generator) -> None:
        self.distinct, self.worth = distinct, total / rows  # people that a row stands for
        self.low, self.high = np.full(len(distinct.queries), np.inf), np.full(len(distinct.queries), -np.inf)
        np.minimum.at(self.low, distinct.which, values)
        np.maximum.at(self.high, distinct.which, values)
        drawn = [classes[rng.integers(0, len(classes), rows)] for classes in distinct.classes]
        self.codes = np.stack(drawn, axis=1) if drawn else np.zeros((rows, 0), dtype=np.int64)
        self.cells = [distinct.cells_of(self.codes, columns) for columns in distinct.sets]
        self.left = (self.low + self.high) / 2
        self.left -= self._change(dict(enumerate(self.cells)))

    @property
    def misfit(self) -> float:
        """The sum of squares."""
        return float((self.left * self.left).sum())

    @property
    def farthest(self) -> float:
        """The largest distance from any noisy answer; a query that was answered twice has two."""
        return float((np.abs(self.left) + (self.high - self.low) / 2).max())

    def move(self, axis: int, rng: np.random.Generator) -> None:
        """Gives some rows the value in this column by which they gain most."""
        distinct, here = self.distinct, np.arange(len(self.codes))
        name, old = distinct.columns[axis], self.codes[:, axis]
        gains, strides = np.zeros((len(old), distinct.sizes[axis])), {}
        for place, columns in enumerate(distinct.sets):
            if name in columns:
                after = columns[columns.index(name) + 1 :]
                strides[place] = prod(distinct.sizes[distinct.columns.index(other)] for other in after)
                slope = self.left[distinct.places[place]] @ distinct.weights[place]
                first = self.cells[place] - old * strides[place]
                for value in range(distinct.sizes[axis]):
                    gains[:, value] += slope[first + value * strides[place]]
        best = gains.argmax(axis=1)
        moving = np.flatnonzero(gains[here, best] > gains[here, old])
        for _ in range(_SHORTENED):
            steps = best[moving] - old[moving]
            new = {place: self.cells[place][moving] + steps * stride for place, stride in strides.items()}
            change = self._change(new) - self._change({place: self.cells[place][moving] for place in new})
            along, stiff = float((self.left * change).sum()), float((change * change).sum())
            if stiff == 0:
                return
            if along > 0.75 * stiff:  # the misfit falls by 2 along - stiff
                for place, cells in new.items():
                    self.cells[place][moving] = cells
                self.codes[moving, axis] = best[moving]
                self.left -= change
                return
            # along this way the misfit is least after this share of it
            few = max(1, round(max(along / stiff, 0.02) * len(moving)))
            moving = rng.choice(moving, min(few, len(moving)), replace=False)

    def _change(self, cells: dict[int, NDArray[np.int64]]) -> Vector:
        """What these cells add to the answers."""
        said = np.zeros(len(self.left))
        for place, held in cells.items():
            weights = self.distinct.weights[place]
            counts = np.bincount(held, minlength=weights.shape[1]) * self.worth
            # not by BLAS, whose threads wait for each other on tables this small
            said[self.distinct.places[place]] = (weights * counts).sum(axis=1)
        return said


def searched_any(
    schema: Schema,
    workload: Workload,
    values: Vector,
    total: float,
    rows: int,
    within: float,
    effort: int,
    rng: np.random.Generator,
) -> Rows | None:
    """The same for any functions of the counts: a few rows are given another value, and keep it where that is no worse.

    Better is a smaller sum of squares of what is beyond half of the allowance. Only the queries that read the changed
    column are asked again.
    """
    worth, sizes, ends = total / rows, schema.sizes(schema.names), workload.offsets
    codes = np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)
    tables = {columns: _counted(schema, codes, columns) * worth for columns in workload.reads}
    said = np.concatenate([query(*[tables[held] for held in query.reads]) for query in workload.queries])
    worst = _beyond(said - values, within)
    for _ in range(effort * TRIED):
        if float(np.abs(said - values).max()) <= within:
            return Rows(schema, codes, total=total)
        axis = int(rng.integers(len(sizes)))
        name, value = schema.names[axis], int(rng.integers(sizes[axis]))
        many = int(np.exp(rng.uniform(0, np.log(rows))))  # as likely to be some as to be many
        chosen = rng.integers(0, rows, many)
        chosen = np.unique(chosen[codes[chosen, axis] != value])
        if not len(chosen):
            continue
        changed = codes[chosen]
        changed[:, axis] = value
        new = {
            columns: table + worth * (_counted(schema, changed, columns) - _counted(schema, codes[chosen], columns))
            for columns, table in tables.items()
            if name in columns
        }
        tried = said.copy()
        for place, query in enumerate(workload.queries):
            if any(columns in new for columns in query.reads):
                tried[ends[place] : ends[place + 1]] = query(*[new.get(held, tables[held]) for held in query.reads])
        if (now := _beyond(tried - values, within)) <= worst:
            codes[chosen], said, worst = changed, tried, now
            tables |= new
    return None


def _beyond(off: Vector, within: float) -> float:
    return float((np.maximum(np.abs(off) - within / 2, 0) ** 2).sum())


def _counted(schema: Schema, codes: NDArray[np.int64], columns: Columns) -> Vector:
    sizes = schema.sizes(columns)
    cells = fused(list(codes.T), tuple(schema.places[name] for name in columns), sizes)
    return np.bincount(cells, minlength=prod(sizes)).reshape(sizes).astype(np.float64)
