"""A dense hypothesis in the log domain, changed in place: what multiplicative weights works on (Alg. 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tacit.domain.projecting import projected
from tacit.domain.query import Columns, Counting, LinearQuery, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import MOST_CELLS, Histogram, Released
from tacit.errors import InvalidParameter, InvalidQuery, quoted


class Weights(Released):
    """A distribution over the whole universe, scaled to a public total; weights are kept as logarithms.

    `tilt` is the only change: log w_i += step * q(i) for one weighted query, in place; a conjunction touches only the
    cells that satisfy it. The normaliser is found when it is asked for.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> even = Weights(schema, 100)
    >>> even.tilt(Counting.where(schema, {"vote": (1,)}), float(np.log(3)))
    >>> even.project(("vote",)).round(6)
    array([25., 75.])
    """

    kind = "weights"

    def __init__(
        self,
        schema: Schema,
        total: float,
        logs: NDArray[Any] | None = None,
        *,
        dtype: DTypeLike = np.float64,
        receipt: Receipt | None = None,
    ) -> None:
        if schema.universe > MOST_CELLS:
            raise InvalidParameter(
                f"dense weights have at most {MOST_CELLS} cells; this universe has {schema.universe}."
            )
        if not 0 <= total < np.inf:
            raise InvalidParameter(f"the people that a hypothesis stands for are not {quoted(total)}.")
        self.schema, self.receipt = schema, receipt
        self._total = float(total)
        sizes = schema.sizes(schema.names)
        self.logs: NDArray[Any] = np.zeros(sizes, dtype) if logs is None else np.ascontiguousarray(logs).reshape(sizes)
        self._counts: NDArray[np.float64] | None = None

    @property
    def total(self) -> float:
        return self._total

    @property
    def counts(self) -> NDArray[np.float64]:
        """What it says of every cell; kept until it is tilted."""
        if self._counts is None:
            masses = np.exp(self.logs.astype(np.float64) - float(self.logs.max()))
            self._counts = masses * (self._total / masses.sum())
        return self._counts

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        ordered = tuple(name for name in self.schema.names if name in names)
        table = projected(self.counts, self.schema.names, [ordered])[ordered]
        return table.transpose([ordered.index(name) for name in names])

    def answer(self, query: Query) -> NDArray[np.float64]:
        query.check(self.schema)
        order = {columns: tuple(name for name in self.schema.names if name in columns) for columns in query.reads}
        found = projected(self.counts, self.schema.names, list(dict.fromkeys(order.values())))
        tables = [found[held].transpose([held.index(name) for name in columns]) for columns, held in order.items()]
        return np.asarray(query(*tables), dtype=np.float64)

    def tilt(self, query: LinearQuery, step: float) -> None:
        """Adds step times the query's weight to the logarithm of every cell, in place."""
        query.check(self.schema)
        if query.size != 1 or not np.isfinite(step):
            raise InvalidQuery(f"weights are tilted by one weighted count and a finite step, not by {query}.")
        axes = [query.columns.index(name) for name in self.schema.names if name in query.columns]
        if isinstance(query, Counting):
            chosen = dict(zip(query.columns, query.chosen, strict=True))
            cells = [list(chosen.get(column.name, range(column.size))) for column in self.schema]
            self.logs[np.ix_(*cells)] += step
        else:
            pattern = (query.weights()[0] * (step * float(query.grid))).reshape(query.sizes).transpose(axes)
            shape = [column.size if column.name in query.columns else 1 for column in self.schema]
            self.logs += pattern.reshape(shape).astype(self.logs.dtype)
        self._counts = None

    def copy(self) -> Weights:
        """Another of the same, which can be tilted by itself."""
        return Weights(self.schema, self._total, self.logs.copy(), receipt=self.receipt)

    def histogram(self, receipt: Receipt | None = None) -> Histogram:
        """The counts as they are now: a synopsis that nobody can change, to be saved and sampled."""
        return Histogram(self.schema, self.counts, receipt=self.receipt if receipt is None else receipt)
