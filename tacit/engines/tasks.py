"""What runs where Spark's rows are: the same kernel, over the batches of one task.

Nothing of a row may leave a task but its counts: Spark writes whatever a task says of a failure into logs on several
machines. So each task catches all that fails, and fails itself in constant words.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines.bounding import Cells, bounded
from tacit.engines.counting import Tally, encoded
from tacit.engines.delimited import parsed
from tacit.engines.encode import Codes, encoder
from tacit.engines.figures import primitives
from tacit.engines.persons import words_of

Batches: TypeAlias = Iterable[pa.RecordBatch]

FAILED = "a task of tacit has failed; what failed is not said, for it may tell of a row"
PIECE = 2**16  # so many cells of a table travel together
COUNTED = "piece int, task int, attempt bigint, rows bigint, counts binary"
ENCODED = "person binary, cells binary"
_OUT = pa.schema(
    [
        ("piece", pa.int32()),  # -1: says by whom the others were counted, and out of how many rows
        ("task", pa.int32()),
        ("attempt", pa.int64()),
        ("rows", pa.int64()),
        ("counts", pa.binary()),
    ]
)


def pieces(tally: Tally) -> list[tuple[Columns, slice]]:
    """The tables of a tally in pieces, in an order that the driver and all tasks agree on."""
    return [
        (columns, slice(start, min(start + PIECE, table.size)))
        for columns, table in tally.tables.items()
        for start in range(0, table.size, PIECE)
    ]


def packed(counts: NDArray[np.int64]) -> bytes:
    """Whole numbers that are not negative, in the fewest bytes that hold each of them."""
    return counts.astype(np.min_scalar_type(int(counts.max()))).tobytes()


def unpacked(content: bytes, size: int) -> NDArray[Any]:
    """What `packed` has packed."""
    return np.frombuffer(content, dtype=f"u{len(content) // size}")


@dataclass(frozen=True)
class Lines:
    """Lines of delimited files with one header, each with the place in its file where Spark began to read."""

    delimiter: str
    width: int

    def batches(self, lines: Batches, chosen: list[int]) -> Iterator[pa.RecordBatch]:
        """The rows that the lines are, as every other engine reads them; a header stands first in its file."""
        last: tuple[int, int] | None = None
        for batch in lines:
            texts, starts, paths = batch.columns
            if not len(texts):
                continue
            places = np.stack([primitives(starts), primitives(paths)])
            fresh = np.append(last is None or last != tuple(places[:, 0]), (np.diff(places) != 0).any(axis=0))
            last = tuple(places[:, -1])
            heads = np.flatnonzero(fresh & (places[0] == 0))
            ends = np.append(heads, len(texts))
            for start, end in zip(np.append(0, heads + 1), ends, strict=True):
                if start < end:
                    yield from parsed(BytesIO(_block(texts[start:end])), self.delimiter, self.width, chosen)


def _block(texts: pa.Array) -> bytes:
    one = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined: bytes = pc.binary_join(one, b"\n")[0].as_py()
    return joined + b"\n"


@cache
def kernel() -> str:
    """A fingerprint of the code that counts, as it is installed here."""
    parts = [part for part in files("tacit.engines").iterdir() if part.name.endswith(".py")]
    columns = (files("tacit.domain") / f"{name}.py" for name in ("schema", "column", "dates"))
    parts = [*sorted(parts, key=lambda part: part.name), *columns]
    return hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()


@dataclass(frozen=True)
class Task(ABC):
    """What is sent to the executors: the public schema and what is asked, never a row."""

    schema: Schema
    kernel: str = field(default_factory=lambda: kernel(), kw_only=True)  # of the driver

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The results of one task, or one constant error."""
        failed = self.kernel != kernel()  # another one may count otherwise
        try:
            if not failed:
                with np.errstate(all="ignore"):
                    yield from self.results(batches)
        except Exception:
            failed = True
        if failed:  # raised from here, where neither a cause nor a frame of the traceback holds rows
            raise RuntimeError(FAILED)

    @abstractmethod
    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """What goes back to Spark."""


@dataclass(frozen=True)
class Read(Task):
    """Rows become cells: of these columns, which are the first ones of each batch or the fields of each line."""

    names: Columns
    lines: Lines | None
    chosen: tuple[int, ...]  # which fields of a line

    def cells(self, batches: Batches) -> Iterator[tuple[pa.RecordBatch, dict[str, Codes], Any]]:
        """Each batch with its cells and the rows that are dropped."""
        encoders = {name: encoder(self.schema[name]) for name in self.names}
        for batch in batches if self.lines is None else self.lines.batches(batches, list(self.chosen)):
            yield batch, *encoded(encoders, self.names, batch.columns)


@dataclass(frozen=True)
class Count(Read):
    """Rows become counts."""

    column_sets: tuple[Columns, ...]

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        tally, rows = tallying(self.schema, self.column_sets), 0
        for batch, codes, dropped in self.cells(batches):
            tally.add(codes, batch.num_rows, dropped)
            rows += batch.num_rows
        yield from counted(tally, rows)


@dataclass(frozen=True)
class Encode(Read):
    """Rows become cells of all columns beside the person whose rows they are, who stands after the columns.

    A row that is dropped, or that names no person, is left out here: it is in no count. The person goes on as words,
    which are equal for equal values, whichever task and whichever part of the source they come from.
    """

    key: bytes

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        layout = cell_layout(self.schema)
        for batch, codes, dropped in self.cells(batches):
            words, nobody = words_of(batch.columns[len(self.names)], self.key)
            kept = np.ones(batch.num_rows, dtype=np.bool_)
            for away in (nobody, dropped):
                if away is not None:
                    kept &= ~away
            cells = np.empty(int(kept.sum()), dtype=layout)
            for name, place in zip(self.names, layout.names or (), strict=True):
                cells[place] = codes[name][kept]
            who = np.empty(len(cells), dtype=[(f"w{at}", np.uint64) for at in range(len(words))])
            for at, word in enumerate(words):
                who[f"w{at}"] = word[kept]
            yield pa.RecordBatch.from_arrays([binary(who), binary(cells)], ["person", "cells"])


@dataclass(frozen=True)
class CountBounded(Task):
    """Cells in the order of people become counts of at most so many rows each."""

    column_sets: tuple[Columns, ...]
    most: int
    key: bytes

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        layout, tally, rows = cell_layout(self.schema), tallying(self.schema, self.column_sets), 0
        people = ((batch.columns[0].cast(pa.binary()), _cells(batch.columns[1], layout)) for batch in batches)
        for cells in bounded(people, self.most, self.key):
            codes = {name: cells[place] for name, place in zip(self.schema.names, layout.names or (), strict=True)}
            tally.add(codes, len(cells))
            rows += len(cells)
        yield from counted(tally, rows)


@dataclass(frozen=True)
class Add(Task):
    """Pieces that several tasks have counted, in the order of their numbers, become their sums."""

    column_sets: tuple[Columns, ...]

    def results(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sizes = [part.stop - part.start for _, part in pieces(tallying(self.schema, self.column_sets))]
        marks: set[tuple[int, int, int]] = set()
        at, total = -1, np.zeros(0, dtype=np.int64)
        for batch in batches:
            for piece, task, attempt, rows, content in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                marks.add((task, attempt, rows))
                if piece < 0:
                    continue
                if piece != at:
                    if at >= 0:
                        yield _sent(at, -1, -1, 0, packed(total))
                    at, total = piece, np.zeros(sizes[piece], dtype=np.int64)
                total += unpacked(content, len(total))
        if at >= 0:
            yield _sent(at, -1, -1, 0, packed(total))
        for task, attempt, rows in marks:
            yield _sent(-1, task, attempt, rows, b"")


def tallying(schema: Schema, column_sets: Iterable[Columns]) -> Tally:
    """A tally that has counted nothing."""
    return Tally(dict(zip(schema.names, schema.sizes(schema.names), strict=True)), column_sets)


def counted(tally: Tally, rows: int) -> Iterator[pa.RecordBatch]:
    """The pieces of a tally that are not zero, each marked with the attempt of the task that counted it."""
    context = sys.modules["pyspark"].TaskContext.get() if "pyspark" in sys.modules else None  # None outside a task
    task, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    yield _sent(-1, task, attempt, rows, b"")
    tally.settle()
    for number, (columns, part) in enumerate(pieces(tally)):
        counts = tally.tables[columns][part]
        if counts.any():
            yield _sent(number, task, attempt, rows, packed(counts))


def filled(schema: Schema, column_sets: Iterable[Columns], sums: pa.Table) -> tuple[Tally, dict[int, set[int]], int]:
    """The whole tally, which attempts of each task are in it, and how many rows they have read."""
    tally = tallying(schema, column_sets)
    places, attempts, rows = pieces(tally), dict[int, set[int]](), 0
    for batch in sums.to_batches():
        for piece, task, attempt, read, content in _said(batch):
            if piece >= 0:
                columns, part = places[piece]
                tally.tables[columns][part] += unpacked(content, part.stop - part.start)
            elif attempt not in attempts.setdefault(task, set()):
                attempts[task].add(attempt)
                rows += read
    return tally, attempts, rows


def cell_layout(schema: Schema) -> np.dtype[Any]:
    """A row of cells as the bytes by which Spark sorts and carries it."""
    return np.dtype([(f"c{at}", encoder(column).dtype) for at, column in enumerate(schema)])


def binary(cells: Cells) -> pa.Array:
    """Rows of cells, each as its bytes."""
    ends = np.arange(len(cells) + 1, dtype=np.int32) * np.int32(cells.dtype.itemsize)
    parts = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(cells.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(cells), parts)


def _cells(values: pa.Array, layout: np.dtype[Any]) -> Cells:
    if not len(values):
        return np.zeros(0, dtype=layout)
    values = values.cast(pa.binary())
    first = int(np.frombuffer(values.buffers()[1], np.int32)[values.offset])
    return np.frombuffer(values.buffers()[2], layout, len(values), first)


def _said(batch: pa.RecordBatch) -> Iterator[tuple[int, int, int, int, bytes]]:
    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _sent(piece: int, task: int, attempt: int, rows: int, content: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"piece": [piece], "task": [task], "attempt": [attempt], "rows": [rows], "counts": [content]}, _OUT
    )
