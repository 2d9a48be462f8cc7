"""Dense hypotheses, changed in place: logarithms of weights (Alg. 5), and counts of either sign (Thm 5.11)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tacit.domain.dense import BLOCK, Weighed, pieces, side_by_side
from tacit.domain.projecting import projected
from tacit.domain.query import Columns, Counting, LinearQuery, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import MOST_CELLS, Histogram, Released
from tacit.errors import InvalidParameter, InvalidQuery, quoted

_SLAB = 2**20  # cells that are projected at once; the counts of a universe as small are kept
_HIGH, _LOW = 40.0, -40.0  # between which the largest logarithm, and that of the masses' sum, are kept
_LONGEST = 1e9  # step
_SUMMED = 16  # units by which a sum of one block after the other may be wrong
_FAR = 64.0  # the size of a logarithm whose mass still counts

Table = NDArray[Any]
Block = tuple[Table, Table | None]


class _Dense(Released):
    """A table over the whole universe, which one weighted count after the other changes in place."""

    def __init__(self, schema: Schema, total: float, table: Table | None, dtype: DTypeLike) -> None:
        if schema.universe > MOST_CELLS:
            raise InvalidParameter(
                f"a dense hypothesis has at most {MOST_CELLS} cells; this universe has {schema.universe}."
            )
        if not 0 <= total < np.inf:
            raise InvalidParameter(f"the people that a hypothesis stands for are not {quoted(total)}.")
        self.schema, self._total = schema, float(total)
        self._sizes = schema.sizes(schema.names)
        held = np.zeros(self._sizes, dtype) if table is None else np.array(table, order="C").reshape(self._sizes)
        if held.dtype not in (np.float32, np.float64):
            raise InvalidParameter(f"a dense hypothesis holds floats of 32 or 64 bits, not {held.dtype}.")
        self._table: Table = held
        self._counts: NDArray[np.float64] | None = None
        self._answered: tuple[LinearQuery, Weighed, float] | None = None  # the last answer, to the query that asked

    @property
    def counts(self) -> NDArray[np.float64]:
        """What it says of every cell, eight bytes a cell; of a small universe, kept until it is changed."""
        if self._counts is not None:
            return self._counts
        counts = np.empty(self._sizes)
        scale = self._scale()
        for piece in pieces(self._sizes, _SLAB):
            np.multiply(self._masses(self._table[piece]), scale, out=counts[piece])
        if counts.size <= _SLAB:
            self._counts = counts
        return counts

    def project(self, columns: Columns) -> NDArray[np.float64]:
        return self._projected([self._checked(columns)])[0]

    def answer(self, query: Query) -> NDArray[np.float64]:
        query.check(self.schema)
        if isinstance(query, LinearQuery) and query.size == 1 and self._table.size > _SLAB:
            return np.array([self._weighed(query)])
        return np.asarray(query(*self._projected(query.reads)), dtype=np.float64)

    def tilt(self, query: LinearQuery, step: float) -> None:
        """Adds step times the query's weight to every cell of what is kept, in place."""
        check_tilt(query, self.schema, step)
        if self._answered is not None and self._answered[0] is query and self._answered[1].fit:
            weighed = self._answered[1]
        else:
            weighed = Weighed.by(query, self.schema.names, self._sizes, self._table.dtype)
        self._before(query, weighed, step)
        self._answered = None
        width = self._table.dtype.type(step)

        def add(blocks: Sequence[Block]) -> list[float]:
            scratch = np.empty(BLOCK, self._table.dtype)
            for view, weights in blocks:
                if weights is None:
                    np.add(view, width, out=view)
                else:
                    held = scratch[: weights.size].reshape(weights.shape)
                    np.add(view, np.multiply(weights, width, out=held), out=view)
            return []

        views = weighed.views(self._table)
        side_by_side(add, views, sum(view.size for view, _ in views))
        self._counts = None

    def _before(self, query: LinearQuery, weighed: Weighed, step: float) -> None:
        """What must be known before it is tilted."""

    def histogram(self, receipt: Receipt | None = None) -> Histogram:
        """The counts as they are now: a synopsis that nobody can change, to be saved and sampled."""
        return Histogram(self.schema, self.counts, receipt=self.receipt if receipt is None else receipt)

    def _scale(self) -> float:
        """How many people one mass stands for."""
        raise NotImplementedError

    def _masses(self, block: Table) -> NDArray[np.float64]:
        raise NotImplementedError

    def _weighed(self, query: LinearQuery) -> float:
        raise NotImplementedError

    def _projected(self, column_sets: Sequence[Columns]) -> list[NDArray[np.float64]]:
        """Marginals, slab by slab: the counts of the universe are never there at once."""
        names = self.schema.names
        ordered = {columns: tuple(name for name in names if name in columns) for columns in column_sets}
        sets = list(dict.fromkeys(ordered.values()))
        found = {columns: np.zeros(self.schema.sizes(columns)) for columns in sets}
        if self._table.size <= _SLAB:
            found = projected(self.counts, names, sets)
        else:
            scale, cuts = self._scale(), pieces(self._sizes, _SLAB)
            first = len(cuts[0]) - 1  # the axis along which slabs are cut; those before it have one place
            inside = {columns: tuple(name for name in columns if name in names[first:]) for columns in sets}
            for piece in cuts:
                parts = projected(self._masses(self._table[piece]), names[first:], list(dict.fromkeys(inside.values())))
                for columns in sets:
                    at = tuple(piece[names.index(name)] for name in columns if name in names[: first + 1])
                    found[columns][at] += parts[inside[columns]]
            for table in found.values():
                table *= scale
        return [
            found[held].transpose([held.index(name) for name in columns])
            for columns, held in ((columns, ordered[columns]) for columns in column_sets)
        ]


class Weights(_Dense):
    """A distribution over the whole universe, scaled to a public total; weights are kept as logarithms.

    `tilt` is the only change: log w_i += step * q(i) for one weighted count, in place; a conjunction touches only the
    cells that satisfy it. The normaliser is found when it is asked for, in the pass that answers; after a conjunction
    it follows from what the conjunction answered, until the rounding of that might matter.

    >>> from tacit.domain.query import Counting
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
        super().__init__(schema, total, logs, dtype)
        self.receipt = receipt
        self._unit = float(np.finfo(self._table.dtype).eps) / 2
        self._allowed = self._unit**0.75  # of the normaliser, as a share, may be wrong: 2^-18, 2^-40
        # masses are exp(log), and their sum is the normaliser, 0 where it is not known; no log is above `most`
        self._most, self._mass, self._wrong = 0.0, float(schema.universe), 0.0
        if logs is not None:
            self._rescan()

    @property
    def logs(self) -> NDArray[Any]:
        """The logarithms as they are kept, up to a constant; changed by `tilt` alone."""
        view = self._table.view()
        view.flags.writeable = False
        return view

    @property
    def total(self) -> float:
        return self._total

    def copy(self) -> Weights:
        """Another of the same, which can be tilted by itself."""
        return Weights(self.schema, self._total, self._table, receipt=self.receipt)

    def _rescan(self) -> None:
        """Moves the largest logarithm to 0, where bounds on it no longer tell enough."""
        parts = pieces(self._sizes)
        most = float(np.max([self._table[piece].max() for piece in parts]))  # NaN if one is
        if not np.isfinite(most):
            raise InvalidParameter("weights have logarithms that are numbers, of which the largest is finite.")
        for piece in parts:
            self._table[piece] -= self._table.dtype.type(most)
        self._most = self._mass = self._wrong = 0.0
        self._answered = None

    def _swept(self, weighed: Weighed, both: bool) -> tuple[float, float]:
        """The weighted mass of what is looked at, and with `both` the mass."""

        def sums(blocks: Sequence[Block]) -> list[float]:
            scratch, found = np.empty(BLOCK, self._table.dtype), []
            for view, weights in blocks:
                held = np.exp(view, out=scratch[: view.size].reshape(view.shape))
                found.append(float(held.sum()) if both or weights is None else 0.0)
                found.append(found[-1] if weights is None else _dotted(held, weights))
            return found

        views = weighed.views(self._table)
        masses = side_by_side(sums, views, sum(view.size for view, _ in views))
        return float(masses[1::2].sum()), float(masses[::2].sum())

    def _weighed(self, query: LinearQuery) -> float:
        if self._most > _HIGH:
            self._rescan()
        names, unknown = self.schema.names, not self._mass
        weighed = Weighed.by(query, names, self._sizes, self._table.dtype, whole=unknown)
        mass, everything = self._swept(weighed, unknown)
        if unknown:
            self._mass, self._wrong = everything, everything * self._unit * _SUMMED
            if everything < exp(_LOW):  # the bound was far above the largest: once more, from that
                self._rescan()
                return self._weighed(query)
        self._answered = (query, weighed, mass)
        return mass / self._mass * self._total

    def _before(self, query: LinearQuery, weighed: Weighed, step: float) -> None:
        self._most += max(step * weighed.most, step * weighed.least, 0.0)
        known = self._answered[2] if self._answered is not None and self._answered[0] is query else None
        if type(query) is Counting and known is not None and self._mass and abs(step) < _HIGH:
            # the sum was rounded; so is each logarithm, by a unit of its size (of those that weigh)
            self._wrong += known * (1 + exp(step)) * self._unit * _SUMMED
            self._wrong += known * exp(step) * self._unit * (abs(self._most) + _FAR)
            self._mass += known * expm1(step)
            if self._mass <= exp(_LOW) or self._wrong > self._allowed * self._mass:
                self._mass = self._wrong = 0.0
        else:
            self._mass = self._wrong = 0.0

    def _scale(self) -> float:
        if not self._mass or self._most > _HIGH:
            self._weighed(Counting.where(self.schema))
        return self._total / self._mass

    def _masses(self, block: Table) -> NDArray[np.float64]:
        return np.asarray(np.exp(block), dtype=np.float64)


class Signed(_Dense):
    """Counts that may have either sign and any sum, moved cell by cell: what the perceptron works on (Thm 5.11).

    It begins with nobody, but knows of how many `people` it is to be. `tilt` is the only change: x_i += step * q(i).

    >>> from tacit.domain.query import Counting
    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> nobody = Signed(schema, 100)
    >>> nobody.tilt(Counting.where(schema, {"vote": (1,)}), -2.0)
    >>> nobody.project(("vote",))
    array([ 0., -2.])
    """

    kind = "signed"

    def __init__(
        self,
        schema: Schema,
        people: float,
        cells: NDArray[Any] | None = None,
        *,
        dtype: DTypeLike = np.float64,
        receipt: Receipt | None = None,
    ) -> None:
        super().__init__(schema, people, cells, dtype)
        self.receipt = receipt

    @property
    def people(self) -> float:
        """How many the table has that it is to stand for; its own sum may be another."""
        return self._total

    def copy(self) -> Signed:
        """Another of the same, which can be tilted by itself."""
        return Signed(self.schema, self._total, self._table, receipt=self.receipt)

    def _scale(self) -> float:
        return 1.0

    def _masses(self, block: Table) -> NDArray[np.float64]:
        return np.asarray(block, dtype=np.float64)

    def _weighed(self, query: LinearQuery) -> float:
        weighed = Weighed.by(query, self.schema.names, self._sizes, self._table.dtype)

        def sums(blocks: Sequence[Block]) -> list[float]:
            return [float(view.sum()) if weights is None else _dotted(view, weights) for view, weights in blocks]

        views = weighed.views(self._table)
        found = float(side_by_side(sums, views, sum(view.size for view, _ in views)).sum())
        self._answered = (query, weighed, found)
        return found


def check_tilt(query: LinearQuery, schema: Schema, step: float) -> None:
    """Refuses what no hypothesis is tilted by."""
    query.check(schema)
    if not isinstance(query, LinearQuery) or query.size != 1 or not abs(step) < _LONGEST:
        raise InvalidQuery(f"a hypothesis is tilted by one weighted count and a step below 10^9, not by {query}.")


def _dotted(block: Table, weights: Table) -> float:
    # row by row, so that a narrow sum is a short one
    if weights.shape[-1] == 1:
        return float((block.sum(axis=-1) * weights[..., 0]).sum())
    return float(np.einsum("...i,...i->...", block, weights).sum(dtype=np.float64))
