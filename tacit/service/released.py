"""What has been released, as its readers see it: tables with errors, answers with intervals, rows that nobody is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from math import isnan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.factored import Factored
from tacit.domain.lines import write_csv
from tacit.domain.median import Median
from tacit.domain.predicate import parse
from tacit.domain.query import LinearQuery, Marginal, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.sql import Labels, asked
from tacit.domain.storage import load as stored
from tacit.domain.storage import save
from tacit.domain.synopsis import Histogram, Marginals, Rows
from tacit.errors import InvalidParameter
from tacit.rational import Number, proper
from tacit.service.show import plain

Synopsis: TypeAlias = Histogram | Marginals | Factored | Rows | Median
Numbers: TypeAlias = NDArray[np.float64]

SHOWN_ROWS = 20
MEASURES = ("count", "standard_error", "low", "high")  # of a cell


@dataclass(frozen=True)
class Answer:
    """A count, and between what the exact count lies; NaN ends where nothing was measured about it."""

    value: float
    low: float
    high: float
    standard_error: float
    cost: int = 0  # what was released answers for free

    @property
    def measured(self) -> bool:
        """Whether a released marginal holds it; else it is an estimate, without an interval."""
        return not isnan(self.low)

    def describe(self) -> dict[str, Any]:
        """For machines."""
        known = {"low": self.low, "high": self.high, "standard_error": self.standard_error}
        return {"value": self.value, **(known if self.measured else dict.fromkeys(known)), "cost": self.cost}


@dataclass(frozen=True, eq=False)
class Cells:
    """A marginal, cell by cell: its labels, its count, the count's standard error and interval."""

    columns: tuple[str, ...]
    labels: Sequence[tuple[str, ...]]  # one row a cell
    count: Numbers
    standard_error: Numbers
    low: Numbers
    high: Numbers

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float, float, float, float]]:
        """Labels, count, standard error, low and high of each cell."""
        numbers = (self.count.tolist(), self.standard_error.tolist(), self.low.tolist(), self.high.tolist())
        return zip(self.labels, *numbers, strict=True)

    def write_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """A CSV file with a header and one line a cell, in UTF-8; what is not known is left empty."""
        rows = ((*labels, *("" if isnan(number) else number for number in numbers)) for labels, *numbers in self)
        write_csv(path, (*self.columns, *apart(self.columns)), rows, overwrite=overwrite)

    def __str__(self) -> str:
        head = (*map(plain, self.columns), "count", "error", "low", "high")
        first = islice(self, SHOWN_ROWS)
        cells = [(*map(plain, labels), *(f"{x:.1f}" for x in numbers)) for labels, *numbers in first]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        k = len(self.columns)
        lines = [
            "  ".join(
                text.ljust(w) if i < k else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in (head, *cells)
        ]
        more = [f"... and {len(self) - SHOWN_ROWS} more"] if len(self) > SHOWN_ROWS else []
        return "\n".join([*lines, *more])


def apart(columns: Sequence[str]) -> list[str]:
    """What the numbers of a marginal are called, beside columns that may be called so themselves.

    >>> apart(("sex", "Count"))
    ['count_', 'standard_error', 'low', 'high']
    """
    taken, found = {name.casefold() for name in columns}, []
    for name in MEASURES:
        longer = (name + "_" * more for more in count())
        found.append(next(each for each in longer if each not in taken))
    return found


class Release:
    """A released synopsis: asking it costs nothing, needs no data, and can be repeated for ever (Prop. 2.1).

    It keeps what was measured, which is unbiased, may fall below zero in an empty cell, and has an exact standard
    error: answers and intervals come from it. `mended` is what follows from it without a negative cell: better cell
    by cell where many are empty, but sums of many cells are then biased, by more than their standard error.
    """

    def __init__(self, measured: Synopsis) -> None:
        self.measured = measured

    @cached_property
    def mended(self) -> Synopsis:
        """The same marginals without a negative cell, in agreement with each other; rows are sampled from them."""
        measured = self.measured
        if not isinstance(measured, Marginals) or measured.nonnegative:
            return measured
        from tacit.mechanisms.consistency import nonnegative

        return Marginals(self.schema, nonnegative(measured.tables), receipt=measured.receipt)

    @property
    def schema(self) -> Schema:
        """The public universe."""
        return self.measured.schema

    @property
    def receipt(self) -> Receipt | None:
        """What was promised, what it cost, and what it came from."""
        return self.measured.receipt

    @property
    def total(self) -> float:
        """How many people it says there are."""
        return self.measured.total

    def ask(self, predicate: str, *, confidence: Number = 0.95) -> Answer:
        """How many people satisfy a predicate such as `age >= 40 and sex = 'F'`.

        Accuracy: the interval holds the exact count as often as `confidence` says, over the noise that was drawn;
        without an interval where no released marginal holds the columns together, and the count is an estimate.
        """
        query = parse(predicate, self.schema)
        return self._each(query, confidence)[0]

    def select(self, text: str, *, confidence: Number = 0.95) -> list[tuple[tuple[str, ...], Answer]]:
        """The labels and the answer of every group of `select ... group by`; of one, without labels, of a predicate."""
        found = asked(text, self.schema)
        return list(zip(found.labels, self._each(found.query, confidence), strict=True))

    def _each(self, query: LinearQuery, confidence: Number) -> list[Answer]:
        numbers = (column.tolist() for column in self._answered(query, confidence))
        return [Answer(count, low, high, error) for count, error, low, high in zip(*numbers, strict=True)]

    def marginal(self, *columns: str, confidence: Number = 0.95) -> Cells:
        """The table of some columns: counts without a negative one, and the intervals of what was measured."""
        query = Marginal.over(self.schema, *columns)
        _, error, low, high = self._answered(query, confidence)
        labels = Labels([self.schema[name] for name in columns])
        return Cells(tuple(columns), labels, self.mended.answer(query), error, low, high)

    def _answered(self, query: Query, confidence: Number) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Count, standard error, low and high; a count of people is not negative, whatever the noise said."""
        error = self.measured.standard_error(query)
        count, reach = self.answer(query), self._reach(error, confidence)
        low, high = np.maximum(count - reach, 0), np.maximum(count + reach, 0)
        return np.maximum(count, 0), error, low, high

    def answer(self, query: Query) -> Numbers:
        """The answers to a query or a workload, such as `tacit.ranges(schema, "income", by="sex")`.

        From what was measured; of columns that no released marginal holds together, from the mended tables, as only
        tables without a negative cell have a most even table that fits them.
        """
        measured = self.measured
        if not isinstance(measured, Marginals):
            return measured.answer(query)
        query.check(self.schema)
        holding = (self.mended if measured.covering(columns) is None else measured for columns in query.reads)
        tables = [held.project(columns) for held, columns in zip(holding, query.reads, strict=True)]
        return np.asarray(query(*tables), dtype=np.float64)

    def standard_error(self, query: Query) -> Numbers:
        """Of each answer; NaN where it is not known."""
        return self.measured.standard_error(query)

    def sample(self, rows: int, *, seed: int = 0) -> Rows:
        """A synthetic table; nobody in it exists, and the same seed makes the same rows."""
        if not isinstance(self.mended, Marginals | Factored):
            raise InvalidParameter("rows are sampled from released marginals. Nothing was spent.")
        return self.mended.sample(rows, seed)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes it into a folder, from which `load` brings it back anywhere."""
        save(self.measured, folder, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Release({self.measured.kind} over {', '.join(self.schema.names[:20])})"

    def _reach(self, error: Numbers, confidence: Number) -> Numbers:
        """How far the interval goes to each side.

        Gaussian noise: the normal quantile, and half a person as noise is in whole numbers; a whole one where it is so
        small that few whole numbers carry it. Laplace noise: the larger of that and the quantile of the discrete
        Laplace distribution of the same variance 2q/(1-q)^2, by P[|Z| > t] <= 2 q^t / (1 + q), for an answer may hold
        one draw or the sum of many.
        """
        share = proper(confidence, "confidence")
        from statistics import NormalDist  # 10 ms

        normal = error * NormalDist().inv_cdf((1 + float(share)) / 2) + np.where((error > 0) & (error < 1), 1.0, 0.5)
        if self.receipt is not None and self.receipt.currency == "rho":
            return normal
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.arccosh(1 + 1 / error**2)  # -log q
        return np.maximum(normal, np.log(2 / ((1 - float(share)) * (1 + np.exp(-rate)))) / rate)


def load(folder: str | os.PathLike[str]) -> Release:
    """The release in a folder; needs neither data nor ledger."""
    return Release(stored(folder))
