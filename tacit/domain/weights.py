"""Dense hypotheses, changed in place: logarithms of weights (Alg. 5), and counts of either sign (Thm 5.11)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tacit.domain.dense import BLOCK, Weighed, pieces, side_by_side
from tacit.domain.projecting import projected
from tacit.domain.query import Columns, LinearQuery, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import MOST_CELLS, Histogram, Released
from tacit.errors import InvalidParameter, InvalidQuery, quoted

_SLAB = 2**20  # cells that are projected at once; the counts of a universe as small are kept
_HIGH, _LOW = 40.0, -40.0  # logarithms, from the shift, between which the masses' sum may lie
_LONGEST = 1e9  # step
_SUMMED = 16  # units by which a sum of one block after the other may be wrong
_FAR = 64.0  # the largest logarithm is kept below it, so that narrow floats keep their digits

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
        held = np.zeros(self._sizes, dtype) if table is None else np.ascontiguousarray(table).reshape(self._sizes)
        if held.dtype not in (np.float32, np.float64):
            raise InvalidParameter(f"a dense hypothesis holds floats of 32 or 64 bits, not {held.dtype}.")
        self._table: Table = held
        self._counts: NDArray[np.float64] | None = None

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
        query.check(self.schema)
        if not isinstance(query, LinearQuery) or query.size != 1 or not abs(step) < _LONGEST:
            raise InvalidQuery(f"a hypothesis is tilted by one weighted count and a step below 10^9, not by {query}.")
        weighed = Weighed.by(query, self.schema.names, self._sizes, self._table.dtype)
        self._before(query, weighed, step)
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
        # masses are exp(log - shift); `most` is no less than any logarithm
        self._shift, self._most, self._mass, self._wrong = 0.0, 0.0, float(schema.universe), 0.0
        self._answered: tuple[LinearQuery, float] | None = None  # of what was answered last, the mass
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
        return Weights(self.schema, self._total, self._table.copy(), receipt=self.receipt)

    def _rescan(self) -> None:
        """Finds the largest logarithm, where bounds no longer tell enough; moves it to 0 where digits would be lost."""
        if not np.all(np.isfinite(tops := [self._table[piece].max() for piece in pieces(self._sizes)])):
            raise InvalidParameter("weights have logarithms that are finite numbers.")
        self._shift = self._most = float(max(tops))
        if abs(self._most) > _FAR:
            for piece in pieces(self._sizes):
                self._table[piece] -= self._table.dtype.type(self._shift)
            self._shift = self._most = 0.0
        self._mass = self._wrong = 0.0  # 0 says that it is not known
        self._answered = None

    def _found(self, weighed: Weighed | None = None) -> float:
        """The weighted mass of some cells, all of them without any; finds the normaliser on the way if need be."""
        if self._most - self._shift > _HIGH:
            self._rescan()
        unknown, shift, dtype = self._mass == 0, self._table.dtype.type(self._shift), self._table.dtype
        everything = Weighed(self._sizes, (tuple(slice(0, size) for size in self._sizes),), None, 1.0, 1.0)

        def sums(blocks: Sequence[Block]) -> list[float]:
            scratch, found = np.empty(BLOCK, dtype), []
            for view, weights in blocks:
                held = scratch[: view.size].reshape(view.shape)
                np.exp(np.subtract(view, shift, out=held), out=held)
                if weights is not None:
                    found.append(float(held.sum()) if unknown else 0.0)
                    np.multiply(held, weights, out=held)
                found.append(float(held.sum()))
            return found

        def swept(part: Weighed) -> NDArray[np.float64]:
            views = part.views(self._table)
            return side_by_side(sums, views, sum(view.size for view, _ in views))

        together = weighed is not None and weighed.pattern is not None and weighed.whole
        if unknown and not together:
            self._mass = float(swept(everything).sum())
        found = self._mass
        if weighed is not None:
            masses = swept(weighed)
            if weighed.pattern is None:
                found = float(masses.sum())
            else:
                found = float(masses[1::2].sum())
                self._mass = float(masses[::2].sum()) if unknown and together else self._mass
        if unknown and self._mass < exp(_LOW):  # the bound was far above the largest: once more, from that
            self._rescan()
            return self._found(weighed)
        return found

    def _weighed(self, query: LinearQuery) -> float:
        mass = self._found(Weighed.by(query, self.schema.names, self._sizes, self._table.dtype))
        self._answered = (query, mass)
        return mass / self._mass * self._total

    def _before(self, query: LinearQuery, weighed: Weighed, step: float) -> None:
        known = self._answered[1] if self._answered is not None and self._answered[0] is query else None
        self._most += max(step * weighed.most, step * weighed.least, 0.0)
        if weighed.pattern is None and known is not None and self._mass and abs(step) < _HIGH:
            # both sums were rounded; so is each logarithm, by a unit of its size (of those that weigh)
            self._wrong += (self._mass + known) * self._unit * _SUMMED
            self._wrong += known * exp(step) * self._unit * (abs(self._most) + _FAR)
            self._mass += known * expm1(step)
            if self._mass <= exp(_LOW) or self._wrong > self._allowed * self._mass:
                self._mass = self._wrong = 0.0
        else:
            self._mass = self._wrong = 0.0
        self._answered = None

    def _scale(self) -> float:
        if not self._mass or self._most - self._shift > _HIGH:
            self._found()
        return self._total / self._mass

    def _masses(self, block: Table) -> NDArray[np.float64]:
        masses = np.exp(block - self._table.dtype.type(self._shift))
        return np.asarray(masses, dtype=np.float64)


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
        return Signed(self.schema, self._total, self._table.copy(), receipt=self.receipt)

    def _scale(self) -> float:
        return 1.0

    def _masses(self, block: Table) -> NDArray[np.float64]:
        return np.asarray(block, dtype=np.float64)

    def _weighed(self, query: LinearQuery) -> float:
        weighed = Weighed.by(query, self.schema.names, self._sizes, self._table.dtype)

        def sums(blocks: Sequence[Block]) -> list[float]:
            return [
                float(np.sum(view if weights is None else view * weights, dtype=np.float64)) for view, weights in blocks
            ]

        views = weighed.views(self._table)
        return float(side_by_side(sums, views, sum(view.size for view, _ in views)).sum())
