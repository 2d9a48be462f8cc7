"""The kernel: the cells of several columns fused into one whole number, and those numbers counted (Ex. 3.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.engines.encode import Codes, Encoder
from tacit.engines.figures import Mask, primitives

SHARED_CELLS = 2**16  # column sets are counted together while their table stays in the second-level cache
TRIED = 64  # of so many tables, the one that grows least takes a further column set in
CHUNK_ROWS, CHUNK_CODES = 2**17, 2**22  # rows are counted by so many at once; by fewer if the columns are many


def grouped(sizes: Mapping[str, int], column_sets: Iterable[Columns]) -> dict[Columns, Columns]:
    """For every column set the columns in whose common table it is counted; all in the order of `sizes`.

    Counting n rows costs about the same for a table of 10 cells and of 60,000, and a marginal of a table is free.

    >>> grouped({"a": 9, "b": 9, "c": 9, "d": 999}, [("a", "b"), ("b", "c"), ("a", "d")])
    {('a', 'd'): ('a', 'd'), ('a', 'b'): ('a', 'b', 'c'), ('b', 'c'): ('a', 'b', 'c')}
    """
    found: dict[Columns, int] = {}
    tables: list[tuple[set[str], int]] = []  # the columns of each and the number of its cells
    for columns in sorted(dict.fromkeys(column_sets), key=lambda names: -prod(sizes[name] for name in names)):
        best, least = len(tables), SHARED_CELLS
        for at in range(max(0, len(tables) - TRIED), len(tables)):
            held, cells = tables[at]
            growth = prod(sizes[name] for name in columns if name not in held)
            if held.issuperset(columns):
                best = at
                break
            if cells * growth < SHARED_CELLS and growth < least:
                best, least = at, growth
        held, cells = tables[best] if best < len(tables) else (set(), 1)
        grown = held.union(columns), cells * prod(sizes[name] for name in columns if name not in held)
        tables[best : best + 1] = [grown]
        found[columns] = best
    ordered = [tuple(name for name in sizes if name in held) for held, _ in tables]
    return {columns: ordered[at] for columns, at in found.items()}


def chunk(columns: int) -> int:
    """How many rows of so many columns are counted at once."""
    return max(2**10, min(CHUNK_ROWS, CHUNK_CODES // max(1, columns)))


def encoded(
    encoders: Mapping[str, Encoder], names: Columns, columns: Iterable[Any], coded: Collection[str] = ()
) -> tuple[dict[str, Codes], Mask | None]:
    """The cells of a batch, and which rows are dropped, if any; the `coded` columns hold places already."""
    codes: dict[str, Codes] = {}
    dropped: Mask | None = None
    for name, values in zip(names, columns, strict=False):
        encodes = encoders[name]
        codes[name], away = encodes.settled(primitives(values)) if name in coded else encodes(values)
        dropped = away if dropped is None else dropped if away is None else dropped | away
    return codes, dropped


class Tally:
    """Counts rows of cells for many column sets in one pass, in whole numbers, in bounded memory."""

    def __init__(self, sizes: Mapping[str, int], column_sets: Iterable[Columns]) -> None:
        self.tables: dict[Columns, NDArray[np.int64]] = {}  # flat; the last column runs fastest
        self._sizes = sizes
        self._tables_of = grouped(sizes, column_sets)
        self._columns = tuple(name for name in sizes if any(name in held for held in self._tables_of.values()))
        for columns in dict.fromkeys(self._tables_of.values()):
            self.tables[columns] = np.zeros(prod(sizes[name] for name in columns), dtype=np.int64)
        self._room = chunk(len(self._columns))
        # at least 16 bits: a column is widened once and then serves many tables without another conversion
        self._codes: dict[str, NDArray[Any]] = {
            name: np.empty(self._room, dtype=np.uint16 if sizes[name] <= 2**16 else np.uint32) for name in self._columns
        }
        self._filled = 0
        self._scratch: dict[type[np.unsignedinteger[Any]], NDArray[Any]] = {}

    def add(self, codes: Mapping[str, Codes], rows: int, dropped: Mask | None = None) -> None:
        """Takes rows in, but for those that are dropped."""
        kept = None if dropped is None else ~dropped
        rows = rows if kept is None else int(np.count_nonzero(kept))
        given = {name: codes[name] if kept is None else codes[name][kept] for name in self._columns}
        if () in self.tables:
            self.tables[()] += rows
        start = 0
        while start < rows and self._columns:
            taken = min(rows - start, self._room - self._filled)
            for name, held in self._codes.items():
                held[self._filled : self._filled + taken] = given[name][start : start + taken]
            start += taken
            self._filled += taken
            if self._filled == self._room:
                self._count()

    def home(self, columns: Columns) -> Columns:
        """In whose table a column set is counted; both in the order of the schema."""
        return self._tables_of[columns]

    def settle(self) -> None:
        """Takes all rows into the tables."""
        self._count()

    def counts(self, columns: Columns) -> NDArray[np.int64]:
        """The counts of one of the column sets."""
        self._count()
        held = self._tables_of[columns]
        return summed(self.tables[held].reshape([self._sizes[name] for name in held]), held, columns)

    def _count(self) -> None:
        for columns, table in self.tables.items():
            if not (columns and self._filled):
                continue
            fused = self._fused(columns, table.size)
            if table.size > 8 * self._filled:  # a large table is not walked through for a few rows
                np.add.at(table, fused.astype(np.intp), 1)
            else:
                table += np.bincount(fused, minlength=table.size)
        self._filled = 0

    def _fused(self, columns: Columns, cells: int) -> NDArray[Any]:
        """For each row its cell in the table of these columns, in the smallest numbers that hold them all."""
        width = np.uint16 if cells < 2**16 else np.uint32 if cells < 2**32 else np.uint64
        first = self._codes[columns[0]][: self._filled]
        if len(columns) == 1:
            return first
        if width not in self._scratch:
            self._scratch[width] = np.empty(self._room, dtype=width)
        fused = self._scratch[width][: self._filled]
        np.multiply(first, width(self._sizes[columns[1]]), out=fused, dtype=width, casting="unsafe")
        np.add(fused, self._codes[columns[1]][: self._filled], out=fused, dtype=width, casting="unsafe")
        for name in columns[2:]:
            np.multiply(fused, width(self._sizes[name]), out=fused)
            np.add(fused, self._codes[name][: self._filled], out=fused, dtype=width, casting="unsafe")
        return fused


def summed(table: NDArray[np.int64], held: Columns, columns: Columns) -> NDArray[np.int64]:
    """The marginal over some of a table's columns; both in the order of the schema."""
    if held == columns:
        return table
    total: NDArray[np.int64] = table.sum(axis=tuple(axis for axis, name in enumerate(held) if name not in columns))
    return np.asarray(total, dtype=np.int64)
