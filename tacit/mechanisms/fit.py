"""Fitting a hypothesis to everything that was measured: multiplicative weights, replayed until it rests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.domain.projecting import Projections
from tacit.domain.query import Columns, Conjunctions, LinearQuery, Marginal
from tacit.domain.schema import Schema
from tacit.domain.weights import Weights
from tacit.errors import InvalidQuery

STEPS = 400  # of one fit, at most
RESTS = 0.01  # a step that lowers the misfit by less, in squared standard errors, is the last
_LONGER, _SHORTER = 1.6, 0.5  # of a step that was good, or was not

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """What was released about one query: noisy answers, each with this variance."""

    query: LinearQuery
    answers: Table
    variance: float


def fitted(start: Weights, measured: Iterable[Measured], *, steps: int = STEPS, rests: float = RESTS) -> Weights:
    """The distribution nearest to `start` in relative entropy, as far as mirror descent goes, that fits what is known.

    Least squares in standard errors, by exponentiated gradients: log w -= s * slope, the multiplicative-weights update
    for all measurements at once, each as strongly as it is off. The step is lengthened where it was good, and halved
    where the misfit falls less than half as much as its slope promises. Free: it sees only what was released.
    """
    known = _Known(start.schema, measured)
    total, logs = start.total, start.logs.astype(np.float64)
    logs -= logs.max()
    counts = _counts(logs, total)
    misfit, pull = known.misfit(counts)
    step = 8 / (known.stiffness * total) if known.stiffness and total else 0.0
    for _ in range(steps if step else 0):
        slope = known.over.spread(pull)
        fell = -1.0
        while fell < 0 and step * known.stiffness * total > 1e-9:
            tried = logs - step * slope
            tried -= tried.max()
            moved = _counts(tried, total)
            left, pulled = known.misfit(moved)
            # not by BLAS, whose threads wait for each other on tables this small
            if left <= misfit - float((slope * (counts - moved)).sum()) / 2:
                fell = misfit - left
            else:
                step *= _SHORTER
        if fell < 0:
            break
        logs, counts, misfit, pull = tried, moved, left, pulled
        step *= _LONGER
        if fell < rests:
            break
    return Weights(start.schema, total, logs, receipt=start.receipt)


def _counts(logs: Table, total: float) -> Table:
    masses = np.exp(logs)  # the largest is one
    return np.asarray(masses * (total / masses.sum()))


class _Known:
    """All measurements in one vector: the cells of whole tables, each with its precision, and weighted sums of them."""

    def __init__(self, schema: Schema, measured: Iterable[Measured]) -> None:
        ones = list(measured)
        sets = [tuple(name for name in schema.names if name in one.query.columns) for one in ones]
        self.over = Projections(schema.names, schema.sizes(schema.names), sets)
        self._precision, said = np.zeros(self.over.size), np.zeros(self.over.size)
        place = self.over.named(np.arange(self.over.size, dtype=np.float64))
        self._sums: list[
            tuple[slice, Table, float, float]
        ] = []  # which cells, their weights, the answer, its precision
        for one, columns in zip(ones, sets, strict=True):
            start = int(place[columns].reshape(-1)[0])
            here = slice(start, start + place[columns].size)
            axes = [one.query.columns.index(name) for name in columns]
            if isinstance(one.query, Marginal | Conjunctions):
                said[here] += one.answers.reshape(one.query.sizes).transpose(axes).reshape(-1) / one.variance
                self._precision[here] += 1 / one.variance
            elif one.query.size == 1:
                weights = one.query.weights()[0].reshape(one.query.sizes).transpose(axes).reshape(-1)
                row = weights * float(one.query.grid)
                self._sums.append((here, row, float(one.answers.reshape(-1)[0]), 1 / one.variance))
            else:
                raise InvalidQuery(f"whole marginals and single weighted counts can be fitted, not {one.query}.")
        self._mean = np.divide(said, self._precision, out=said, where=self._precision > 0)
        peaks: dict[Columns, float] = {
            columns: float(self._precision[int(cells.reshape(-1)[0])]) for columns, cells in place.items()
        }
        self.stiffness = sum(peaks.values()) + sum(p * float(np.abs(row).max()) ** 2 for _, row, _, p in self._sums)

    def misfit(self, counts: Table) -> tuple[float, Table]:
        """Half the sum of squares, in standard errors, and its slope in the cells of the tables."""
        cells = self.over.of(counts)
        apart = cells - self._mean
        pull = self._precision * apart
        misfit = float((pull * apart).sum())
        for here, row, answer, precision in self._sums:
            off = float((row * cells[here]).sum()) - answer
            misfit += precision * off * off
            pull[here] += precision * off * row
        return misfit / 2, pull
