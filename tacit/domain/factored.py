"""A hypothesis over a universe of any size: blocks of columns that were learnt about together, each by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.blocks import drawn, joined, marginal, parted, read
from tacit.domain.query import MOST_QUERY_COLUMNS, Columns, Counting, LinearQuery, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import LARGEST, MOST_CELLS, MOST_ROWS, Histogram, Released, Rows
from tacit.domain.weights import Weights, check_tilt
from tacit.errors import InvalidData, InvalidParameter, InvalidQuery, quoted
from tacit.rational import whole

BLOCK_CELLS = 2**20  # of one block, where nothing else is said; a block as small keeps its counts
_KEPT = 2**20  # cells of marginals that are kept

Table = NDArray[np.float64]


class Factored(Released):
    """A product of dense distributions over blocks of columns, scaled to a public total.

    It begins with each column by itself. `tilt` is the only change: the blocks that the query reads become one, and
    that is tilted. To become one changes no answer, so it is what `Weights` over the whole universe would be; until a
    block would have more than `most` cells. Then the columns that were joined longest ago are let go of: they become a
    block of their own, and what they and the others said of each other is lost. `let_go` counts such columns.
    Memory: at most 16 bytes a cell, of `most` cells in a block and 10^8 in all, not counting the columns themselves.

    >>> from tacit.domain.schema import Integers
    >>> schema = Schema([Integers(f"c{i}", 0, 9) for i in range(30)])
    >>> even = Factored(schema, 1000)
    >>> even.tilt(Counting.where(schema, {"c3": (1,), "c20": (5,)}), float(np.log(12)))
    >>> even.project(("c20", "c3"))[5, :2].round(3), len(even.blocks)
    (array([  9.009, 108.108]), 29)
    """

    kind = "factored"

    def __init__(
        self,
        schema: Schema,
        total: float,
        blocks: Iterable[Weights] | None = None,
        *,
        most: int = BLOCK_CELLS,
        let_go: int = 0,
        receipt: Receipt | None = None,
    ) -> None:
        if not 0 <= total <= LARGEST:
            raise InvalidParameter(f"the people that a hypothesis stands for are not {quoted(total)}.")
        self.schema, self.receipt, self._total = schema, receipt, float(total)
        self.most = whole(most, "the cells of a block", 1, MOST_CELLS)
        self.let_go = whole(let_go, "the columns that were let go of", 0, 2**63)
        if (values := sum(column.size for column in schema)) > MOST_CELLS:
            raise InvalidParameter(f"the columns of a hypothesis have at most {MOST_CELLS} values, not {values}.")
        parts = (Weights(Schema([column]), 1.0) for column in schema) if blocks is None else blocks
        # those joined longest ago first
        self._blocks = [Weights(block.schema, 1.0, block.logs.astype(np.float64, copy=False)) for block in parts]
        held = [column for block in self._blocks for column in block.schema]
        if sorted(column.name for column in held) != sorted(schema.names) or any(schema[c.name] != c for c in held):
            raise InvalidParameter("the blocks of a hypothesis hold each column of its schema once.")
        if wrong := [names for names in self.blocks if not self._fits(names)]:
            raise InvalidParameter(
                f"a block has at most {self.most} cells and {MOST_QUERY_COLUMNS} columns, not {schema.cells(wrong[0])} "
                f"and {len(wrong[0])}."
            )
        self._tables: dict[Weights, dict[Columns, Table]] = {}
        self._kept = 0
        self._settle()

    @property
    def total(self) -> float:
        return self._total

    @property
    def blocks(self) -> tuple[Columns, ...]:
        """The columns that stand together; what was joined longest ago comes first, in a block and among them."""
        return tuple(block.schema.names for block in self._blocks)

    def beside(self, query: LinearQuery) -> Columns:
        """The columns of the blocks of which a tilt by this query would make one."""
        return tuple(name for block in self._holding(read(query)) for name in block.schema.names)

    def check(self, query: LinearQuery) -> None:
        """Refuses a query that it could not learn from, as no block holds the columns together."""
        query.check(self.schema)
        if not self._fits(names := read(query)):
            raise InvalidQuery(
                f"{query} reads {self.schema.cells(names)} cells; where the universe has more than {MOST_CELLS}, a "
                f"question reads at most {self.most}. Nothing was spent."
            )

    def project(self, columns: Columns) -> Table:
        names = self._checked(columns)
        return self._product(names, [(inside, self._shares(block, inside)) for block, inside in self._apart(names)])

    def answer(self, query: Query) -> Table:
        query.check(self.schema)
        if type(query) is not Counting:
            return np.asarray(query(*[self.project(columns) for columns in query.reads]), dtype=np.float64)
        chosen, people = dict(zip(query.columns, query.chosen, strict=True)), self._total
        for block, inside in self._apart(query.columns):
            here = Counting(inside, block.schema.sizes(inside), tuple(chosen[name] for name in inside))
            people *= float(here(self._shares(block, inside)).item())
        return np.array([people])

    def tilt(self, query: LinearQuery, step: float) -> None:
        """Adds step times the query's weight to the logarithm of every cell's mass, in place, in one block."""
        check_tilt(query, self.schema, step)
        self.check(query)
        if type(query) is Counting:
            if not all(map(len, query.chosen)):
                return
            chosen, names = dict(zip(query.columns, query.chosen, strict=True)), read(query)
            query = Counting(names, self.schema.sizes(names), tuple(chosen[name] for name in names))
        if query.columns:  # else it weighs everybody alike
            block = self._together(query.columns)
            block.tilt(query, step)
            self._tables[block] = {}

    def copy(self, receipt: Receipt | None = None) -> Factored:
        """Another of the same, which can be tilted by itself; with a receipt, to be saved."""
        held = self.receipt if receipt is None else receipt
        return Factored(self.schema, self._total, self._blocks, most=self.most, let_go=self.let_go, receipt=held)

    def histogram(self, receipt: Receipt | None = None) -> Histogram:
        """The counts of the whole universe, where that has at most 10^8 cells."""
        if self.schema.universe > MOST_CELLS or len(self.schema) > MOST_QUERY_COLUMNS:
            raise InvalidParameter(
                f"a histogram has at most {MOST_CELLS} cells in {MOST_QUERY_COLUMNS} columns; this universe has "
                f"{self.schema.universe} in {len(self.schema)}. Nothing was spent."
            )
        counts = self._product(self.schema.names, [(block.schema.names, block.counts) for block in self._blocks])
        return Histogram(self.schema, counts, receipt=self.receipt if receipt is None else receipt)

    def sample(self, rows: int, seed: int) -> Rows:
        """A synthetic table, each block drawn by itself; the same for the same seed.

        Free: it is made of what was released, so its randomness protects nobody and may be repeated.
        """
        count = whole(rows, "the number of synthetic rows", 0, MOST_ROWS)
        rng = np.random.default_rng(whole(seed, "a seed", 0, 2**63))
        widest = max(column.size for column in self.schema)
        codes = np.empty((count, len(self.schema)), dtype=np.min_scalar_type(widest - 1), order="F")
        for block in self._blocks:
            for name, cells in drawn(block, count, rng).items():
                codes[:, self.schema.places[name]] = cells
        return Rows(self.schema, codes, total=self._total, receipt=self.receipt)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it."""
        return {f"block{i}": block.logs for i, block in enumerate(self._blocks)}

    def describe(self) -> dict[str, Any]:
        """What else is saved of it."""
        blocks = [list(names) for names in self.blocks]
        return {"blocks": blocks, "total": self._total, "most": self.most, "let_go": self.let_go}

    @classmethod
    def restored(
        cls, schema: Schema, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], receipt: Receipt | None
    ) -> Factored:
        """What was saved."""
        if set(said) != {"blocks", "total", "most", "let_go"} or type(said["total"]) not in (int, float):
            raise InvalidData("it is said to be factored, and is not. Nothing was spent.")
        held = [Schema(schema[name] for name in columns) for columns in said["blocks"]]
        if set(arrays) != {f"block{i}" for i in range(len(held))}:
            raise InvalidData("its blocks are not those that it says. Nothing was spent.")
        if any(arrays[f"block{i}"].shape != block.sizes(block.names) for i, block in enumerate(held)):
            raise InvalidData("a block has another shape than its columns. Nothing was spent.")
        blocks = [Weights(block, 1.0, arrays[f"block{i}"]) for i, block in enumerate(held)]
        return cls(schema, said["total"], blocks, most=said["most"], let_go=said["let_go"], receipt=receipt)

    def _fits(self, names: Sequence[str]) -> bool:
        return self.schema.cells(names) <= self.most and len(names) <= MOST_QUERY_COLUMNS

    def _holding(self, names: Iterable[str]) -> list[Weights]:
        """The blocks of these columns, that which was joined longest ago first."""
        held = list(dict.fromkeys(self._of[name] for name in names))
        return sorted(held, key=self._blocks.index) if len(held) > 1 else held

    def _apart(self, names: Columns) -> list[tuple[Weights, Columns]]:
        """The blocks of these columns, and which of the columns are theirs."""
        found: dict[Weights, list[str]] = {}
        for name in names:
            found.setdefault(self._of[name], []).append(name)
        return [(block, tuple(inside)) for block, inside in found.items()]

    def _shares(self, block: Weights, names: Columns) -> Table:
        """A marginal of one block, kept until the block changes."""
        table = self._tables[block].get(names)
        if table is None:
            table = block.project(names)
            self._kept += table.size
            if self._kept > _KEPT:
                self._tables, self._kept = {held: {} for held in self._blocks}, table.size
            self._tables[block][names] = table
        return table

    def _product(self, names: Columns, parts: Iterable[tuple[Columns, Table]]) -> Table:
        table, order = np.array(self._total), list[str]()
        for inside, shares in parts:
            table = np.multiply.outer(table, shares)
            order += inside
        return np.asarray(table.transpose([order.index(name) for name in names]))

    def _together(self, names: Columns) -> Weights:
        """The block that holds these columns, and as many of those that stood beside them as it can."""
        held = self._holding(names)
        if len(held) == 1:
            return held[0]
        staying = [name for block in held for name in block.schema.names if name not in names] + list(names)
        while not self._fits(staying):
            staying.pop(0)
        inside, rest = zip(*(parted(block, staying) for block in held), strict=True)
        one = joined(inside, staying)
        gone = [part for part in rest if part is not None]
        self._blocks = [*gone, *(block for block in self._blocks if block not in held), one]
        self.let_go += sum(len(part.schema) for part in gone)
        self._settle()
        return one

    def _settle(self) -> None:
        """Parts the blocks that were joined longest ago until all are small enough together, and finds its columns."""
        while sum(block.schema.universe for block in self._blocks) > MOST_CELLS:
            old = next((block for block in self._blocks[:-1] if len(block.schema) > 1), None)
            if old is None:
                break
            at = self._blocks.index(old)
            self._blocks[at : at + 1] = [marginal(old, [name]) for name in old.schema.names]
            self.let_go += len(old.schema)
        self._of = {name: block for block in self._blocks for name in block.schema.names}
        self._tables = {block: self._tables.get(block, {}) for block in self._blocks}
