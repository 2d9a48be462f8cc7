"""CSV and TSV: texts in UTF-8, cut into rows by RFC 4180, and a row that is not one is dropped.

What a row holds must not decide whether a file can be read. So a row with too few or too many fields is left out,
bytes that are no UTF-8 are an outside value, and a quote that is never closed costs the rows up to the next line end
after 128 kB, no more. Arrow parses whatever is well formed, block by block; Python's csv takes the other blocks.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from tacit.domain.query import Columns
from tacit.domain.schema import MOST_COLUMNS
from tacit.engines.figures import of_bytes
from tacit.engines.files import Files
from tacit.engines.sources import Header
from tacit.errors import InvalidData, quoted

BLOCK = 2**22  # bytes that are parsed together
LONGEST_HEADER, LONGEST_LINE = 2**20, 2**24  # bytes; a longer line is dropped
ROWS = 2**16  # that are handed on together where they are parsed one by one
LONGEST_FIELD = 2**17  # bytes; what csv, as it comes, allows
BOM = b"\xef\xbb\xbf"


class Delimited:
    """Text files with one header line each."""

    coded: frozenset[str] = frozenset()
    rows = None

    def __init__(self, files: Files) -> None:
        self.files = files
        self.kind = files.kind
        self._delimiter = "\t" if files.kind == "TSV" else ","

    def check(self) -> None:
        """Stops when a file has changed."""
        self.files.check()

    def headers(self) -> Iterator[Header]:
        """The column names of each file; every column is a text."""
        for path in self.files.paths:
            try:
                with open(path, "rb") as file:
                    start = file.read(LONGEST_HEADER)
            except OSError as error:
                why = error.strerror or "it cannot be read"
            else:
                names, size = _header(start, self._delimiter)
                why = _unreadable(start, size)
                if len(names) > MOST_COLUMNS:
                    why = f"its header names more than {MOST_COLUMNS} columns"
                if not why:
                    yield [(name, pa.binary()) for name in names]
                    continue
            raise InvalidData(f"{quoted(path)}: {why}. Nothing was read.")

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """The texts of these columns, block by block."""
        for path in self.files.paths:
            with open(path, "rb", buffering=0) as file:
                header, size = _header(file.read(LONGEST_HEADER), self._delimiter)
                file.seek(size)
                yield from _Rows(file, self._delimiter, len(header), [header.index(name) for name in names]).batches()


class _Rows:
    """The rows of one file, from where its header ends."""

    def __init__(self, file: IO[bytes], delimiter: str, width: int, chosen: list[int]) -> None:
        self._file, self._delimiter, self._width, self._chosen = file, delimiter, width, chosen
        self._rest = b""  # read, and not yet given out
        self._ended = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        while block := self._more():
            size = self._whole_rows(block)
            batch = self._parsed(block[:size]) if size else None
            if batch is not None:
                self._rest = block[size:]
                yield batch
            else:
                yield from self._patiently(block)

    def _more(self) -> bytes:
        """What is left over and the next block; nothing at the end."""
        read = b"" if self._ended else self._file.read(BLOCK)
        self._ended = not read
        return self._rest + read

    def _whole_rows(self, block: bytes) -> int:
        """How many bytes at its start are complete rows with every quote in its place; 0 where that is not plain."""
        if block.startswith(BOM):  # Arrow would take it for a mark
            return 0
        if b'"' not in block:
            halves = range(0, len(block) - LONGEST_FIELD, LONGEST_FIELD // 2)
            if any(block.find(b"\n", at, at + LONGEST_FIELD // 2) < 0 for at in halves):
                return 0
            return len(block) if self._ended else block.rfind(b"\n") + 1
        letters = np.frombuffer(block, dtype=np.uint8)
        quotes = np.flatnonzero(letters == ord('"'))
        ends = np.flatnonzero(letters == ord("\n"))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0] + 1  # those outside quotes
        size = len(block) if self._ended else int(ends[-1]) if len(ends) else 0
        quotes = quotes[quotes < size]
        if not size or len(quotes) % 2 or np.diff(ends, prepend=0, append=size).max() > LONGEST_FIELD:
            return 0
        # an opening quote follows, and a closing one precedes, a delimiter, a line end, or the other half of ""
        around = np.zeros(256, dtype=np.bool_)
        around[[ord(self._delimiter), ord("\n"), ord("\r"), ord('"')]] = True
        before = around[letters[np.maximum(quotes[0::2] - 1, 0)]]
        after = around[letters[np.minimum(quotes[1::2] + 1, size - 1)]]
        return size if before.all() and after.all() else 0

    def _parsed(self, block: bytes) -> pa.RecordBatch | None:
        """Arrow's reading of well-formed rows; None where one of them has too few or too many fields."""
        import pyarrow.csv as arrow

        columns = [str(at) for at in range(self._width)]
        chosen = [columns[at] for at in self._chosen]
        try:
            table = arrow.read_csv(
                pa.BufferReader(block),
                read_options=arrow.ReadOptions(column_names=columns, block_size=len(block) + 1, use_threads=False),
                parse_options=arrow.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=self._width > 1
                ),
                convert_options=arrow.ConvertOptions(
                    include_columns=chosen,
                    column_types=dict.fromkeys(chosen, pa.binary()),
                    null_values=[],
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        return table.combine_chunks().to_batches()[0] if len(table) else None

    def _patiently(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """Row by row, until a row ends with the last complete line that was read."""
        self._rest = block
        self._lines: deque[bytes] = deque()
        reader = csv.reader(self._each_line(), delimiter=self._delimiter)
        kept: list[list[str]] = []
        while True:
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error:  # a field beyond csv's limit, after a stray quote: the next line begins a row again
                continue
            if not row and self._width == 1:
                row = [""]  # in a table of one column an empty line is an empty field
            if len(row) == self._width:
                kept.append([row[at] for at in self._chosen])
            if not self._lines:
                break
        for start in range(0, len(kept), ROWS):
            columns = zip(*kept[start : start + ROWS], strict=True)
            arrays = [of_bytes([text.encode("latin-1") for text in texts]) for texts in columns]
            yield pa.RecordBatch.from_arrays(arrays, [str(at) for at in self._chosen])

    def _each_line(self) -> Iterator[str]:
        """Complete lines; what follows the last of them stays in the rest. Latin-1 keeps every byte as it is."""
        block = self._rest
        while block:
            lines = block.splitlines(keepends=True)
            # a return at the very end may be half of a line end
            self._rest = b"" if self._ended or lines[-1].endswith(b"\n") else lines.pop()
            self._lines.extend(line for line in lines if len(line) <= LONGEST_LINE)
            while self._lines:
                yield self._lines.popleft().decode("latin-1")
            if len(self._rest) > LONGEST_LINE:
                self._rest = self._rest[:LONGEST_LINE]  # it will be dropped when its end comes
            block = self._more()


def _header(start: bytes, delimiter: str) -> tuple[list[str], int]:
    """The column names at the start of a file, and how many bytes they take."""
    mark = len(BOM) if start.startswith(BOM) else 0
    lines = start[mark:].splitlines(keepends=True)
    reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=delimiter)
    try:
        names = [name.encode("latin-1").decode("utf-8", "replace") for name in next(reader)]
    except (StopIteration, csv.Error):
        names = []
    return names, mark + sum(len(line) for line in lines[: reader.line_num])


def _unreadable(start: bytes, header: int) -> str:
    """What in its first bytes makes a file unreadable, if anything does."""
    if not start:
        return "it is empty; a header line must name its columns"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start[:header]:
        return "it is not in UTF-8"
    return f"its header is longer than {LONGEST_HEADER} bytes" if header >= LONGEST_HEADER else ""
