"""CSV and TSV: bytes, cut into rows at line ends, and a row that is not one is dropped.

What a row holds must decide nothing but its own place: not whether a file can be read, and not what becomes of another
row. So every line end ends a row, within quotes too, and a quote that is never closed costs its own row. A row with too
few or too many fields is left out, and bytes that are no UTF-8 are an outside value.

Texts that hold line ends are read by `multiline`, as RFC 4180 has them: there a line end after an odd number of quotes
belongs to the field. That is for files whose writer quotes correctly. In any other, one row's stray quote takes up to
1 MB of its neighbours along, which no row's noise hides.

Arrow parses what is well formed, block by block; the other rows of a block are taken out and read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import MOST_COLUMNS
from tacit.engines.figures import Mask, of_bytes
from tacit.engines.files import Files
from tacit.engines.sources import Header
from tacit.errors import InvalidData, quoted

BLOCK = 2**22  # bytes that are parsed together
LONGEST_ROW = 2**20  # bytes, its line end among them; a longer row is dropped
BOM = b"\xef\xbb\xbf"
QUOTE, LINE_FEED, RETURN = b'"\n\r'

Places = NDArray[np.intp]


class Delimited:
    """Text files with one header line each."""

    coded: frozenset[str] = frozenset()
    rows = None

    def __init__(self, files: Files, *, multiline: bool = False, delimiter: str | None = None) -> None:
        self.files = files
        self.kind = files.kind
        self._delimiter = delimiter or ("\t" if files.kind == "TSV" else ",")
        self._multiline = multiline

    def check(self) -> None:
        """Stops when a file has changed."""
        self.files.check()

    def headers(self) -> Iterator[Header]:
        """The column names of each file; every column is a text."""
        for path in self.files.paths:
            try:
                with open(path, "rb") as file:
                    names, _, why = header_of(file, self._delimiter, multiline=self._multiline)
            except OSError as error:
                why = error.strerror or "it cannot be read"
            if why:
                raise InvalidData(f"{quoted(path)}: {why}. Nothing was read.")
            yield [(name, pa.binary()) for name in names]

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """The texts of these columns, block by block."""
        for path in self.files.paths:
            with open(path, "rb", buffering=0) as file:
                header, size, _ = header_of(file, self._delimiter, multiline=self._multiline)
                file.seek(size)
                chosen = [header.index(name) for name in names]
                yield from _Rows(file, self._delimiter, len(header), chosen, self._multiline).batches()


def header_of(file: IO[bytes], delimiter: str, *, multiline: bool = False) -> tuple[list[str], int, str]:
    """The column names at the start of a file, how many bytes they take, and what is wrong with them."""
    start = file.read(LONGEST_ROW)
    if not start:
        return [], 0, "it is empty; a header line must name its columns"
    mark = len(BOM) if start.startswith(BOM) else 0
    letters = np.frombuffer(start, dtype=np.uint8)[mark:]
    ends = _row_ends(letters, _places(letters, QUOTE), len(start) < LONGEST_ROW, multiline)
    size = mark + (int(ends[0]) if len(ends) else len(letters))
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start[:size]:
        return [], 0, "it is not in UTF-8"
    if size >= LONGEST_ROW:
        return [], 0, f"its header is longer than {LONGEST_ROW} bytes"
    names = _fields(start[mark:size], delimiter, MOST_COLUMNS)
    if names is None:
        return [], 0, "a quote in its header line does not close"
    if len(names) > MOST_COLUMNS:
        return [], 0, f"its header names more than {MOST_COLUMNS} columns"
    return [name.decode(errors="replace") for name in names], size, ""


def parsed(lines: IO[bytes], delimiter: str, width: int, chosen: list[int]) -> Iterator[pa.RecordBatch]:
    """The rows that lines without a header are."""
    return _Rows(lines, delimiter, width, chosen).batches()


class _Rows:
    """The rows of one file, from where its header ends."""

    def __init__(self, file: IO[bytes], delimiter: str, width: int, chosen: list[int], multiline: bool = False) -> None:
        self._file, self._delimiter, self._width, self._chosen = file, delimiter, width, chosen
        self._multiline = multiline
        self._rest = b""  # read, and not yet given out
        self._ended = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        while block := self._more():
            size = self._plain(block)
            found = self._parsed(block[:size]) if size else None
            if found is None:
                yield from self._sifted(block)
            else:
                self._rest = block[size:]
                yield from found

    def _more(self) -> bytes:
        """What is left over and the next block; nothing at the end."""
        read = b"" if self._ended else self._file.read(BLOCK)
        self._ended = not read
        return self._rest + read

    def _plain(self, block: bytes) -> int:
        """How many bytes at its start are whole rows; 0 where it has quotes, or a row that may be too long."""
        half = LONGEST_ROW // 2
        if b'"' in block or any(
            block.find(b"\n", at, at + half) < 0 and block.find(b"\r", at, at + half) < 0
            for at in range(0, len(block) - half + 1, half)
        ):
            return 0
        if self._ended:
            return len(block)
        return max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1  # a return at the end may be half one

    def _parsed(self, block: bytes) -> list[pa.RecordBatch] | None:
        """Arrow's reading of well-formed rows; None where one of them has too few or too many fields."""
        if not block:
            return []
        import pyarrow.csv as arrow

        columns = [str(at) for at in range(self._width)]
        chosen = [columns[at] for at in self._chosen]
        marked = block.startswith(BOM)  # which Arrow would take off
        try:
            table = arrow.read_csv(
                pa.BufferReader(b"\n" + block if marked else block),
                read_options=arrow.ReadOptions(
                    column_names=columns, block_size=len(block) + 2, use_threads=False, skip_rows=int(marked)
                ),
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
        except pa.ArrowInvalid:  # whose words hold the row
            return None
        batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
        return batches

    def _sifted(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """The whole rows of a block of which some may not be plain."""
        letters = np.frombuffer(block, dtype=np.uint8)
        quotes = _places(letters, QUOTE)
        ends = _row_ends(letters, quotes, self._ended, self._multiline)
        size = int(ends[-1]) if len(ends) else 0
        self._rest = block[size:]
        if len(self._rest) > LONGEST_ROW + 1:  # dropped when its end comes, of which the last byte may be a half
            self._rest = self._rest[:LONGEST_ROW] + self._rest[-1:]
        starts = np.append(0, ends)[:-1]
        short = ends - starts <= LONGEST_ROW
        odd = short & self._misquoted(letters[:size], quotes, ends)
        plain = short & ~odd
        found = self._parsed(_taken(block, starts, ends, plain))
        if found is None:  # some are ragged
            plain &= self._fitting(letters[:size], quotes, starts, ends)
            found = self._parsed(_taken(block, starts, ends, plain))
        if found is None:  # for no reason that we know of
            found, odd = [], short
        yield from found
        yield from self._one_by_one(block[start:end] for start, end in zip(starts[odd], ends[odd], strict=True))

    def _misquoted(self, letters: NDArray[np.uint8], quotes: Places, ends: Places) -> Mask:
        """Which rows do not open every quote where a field begins and close it where the field ends."""
        counts = np.diff(np.searchsorted(quotes, ends), prepend=0)
        wrong: Mask = counts % 2 == 1
        within = quotes[: counts.sum()]
        opens = np.arange(len(within)) % 2 == 0
        if wrong.any():  # each row begins anew
            opens ^= np.repeat((np.cumsum(counts) - counts) % 2 == 1, counts)
        # beside it stands a delimiter, a line end, or the other half of ""
        around = np.zeros(256, dtype=np.bool_)
        around[[ord(self._delimiter), LINE_FEED, RETURN, QUOTE]] = True
        beside = np.clip(within + np.where(opens, -1, 1), 0, len(letters) - 1)
        if not (fits := around[letters[beside]]).all():
            wrong[np.repeat(np.arange(len(ends)), counts)[~fits]] = True
        return wrong

    def _fitting(self, letters: NDArray[np.uint8], quotes: Places, starts: Places, ends: Places) -> Mask:
        """Which of the rows with every quote in its place have as many fields as there are columns, or are empty."""
        cuts = _places(letters, ord(self._delimiter))
        before = np.searchsorted(quotes, cuts)  # those of one row that come before a delimiter
        since = np.searchsorted(quotes, starts)[np.searchsorted(ends, cuts, side="right")]
        cuts = cuts[(before - since) % 2 == 0]
        fitting: Mask = np.diff(np.searchsorted(cuts, ends), prepend=0) == self._width - 1
        return fitting

    def _one_by_one(self, rows: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        """Rows whose quotes are not where they should be; dropped where one does not close."""
        read = (_fields(row, self._delimiter, self._width) for row in rows)
        if found := [fields for fields in read if fields is not None and len(fields) == self._width]:
            arrays = [of_bytes([fields[at] for fields in found]) for at in self._chosen]
            yield pa.RecordBatch.from_arrays(arrays, [str(at) for at in self._chosen])


def _places(letters: NDArray[np.uint8], letter: int) -> Places:
    return np.flatnonzero(letters == letter)


def _row_ends(letters: NDArray[np.uint8], quotes: Places, ended: bool, multiline: bool) -> Places:
    """After how many bytes each row ends; what comes last is a row only where the file has ended."""
    ends = _places(letters, LINE_FEED)
    returns = _places(letters, RETURN)
    if len(returns):
        beyond = np.append(letters[1:], QUOTE if ended else LINE_FEED)  # at the end, half a line end may have been read
        ends = np.union1d(ends, returns[beyond[returns] != LINE_FEED])
    ends = ends + 1
    if multiline:
        ends = _outside_quotes(ends, np.searchsorted(quotes, ends), len(letters))
    if ended and len(letters) and (not len(ends) or ends[-1] < len(letters)):
        ends = np.append(ends, len(letters))
    return ends


def _outside_quotes(ends: Places, quotes: Places, size: int) -> Places:
    """The line ends after an even number of quotes; where they are too far apart, a row ends at the next of any."""
    found: list[Places] = []
    start, first = 0, 0
    while True:
        rows = ends[first:][(quotes[first:] - (quotes[first - 1] if first else 0)) % 2 == 0]
        far = np.flatnonzero(np.diff(rows, prepend=start, append=size) > LONGEST_ROW)
        if not len(far):
            return np.concatenate([*found, rows])
        found.append(rows[: far[0]])
        start = int(rows[far[0] - 1]) if far[0] else start
        next_end = int(np.searchsorted(ends, start + LONGEST_ROW, side="right"))
        if next_end == len(ends):
            return np.concatenate(found)
        found.append(ends[next_end : next_end + 1])
        start, first = int(ends[next_end]), next_end + 1


def _taken(block: bytes, starts: Places, ends: Places, chosen: Mask) -> bytes:
    """Those rows, run by run."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    runs = (block[starts[first] : ends[last - 1]] for first, last in zip(edges[0::2], edges[1::2], strict=True))
    # a return must not become half of a line end with what follows it now
    return b"".join(run + b"\n" if run.endswith(b"\r") else run for run in runs)


def _fields(row: bytes, delimiter: str, most: int) -> list[bytes] | None:
    """The fields of one row, or a few more than the most that it may have; None if a quote is never closed.

    >>> _fields(b'1,"a ""b"", c",4"5,"6"7', ",", 9), _fields(b'1,"a', ",", 9)
    ([b'1', b'a "b", c', b'4"5', b'67'], None)
    """
    field, at = _field(delimiter), 0
    found: list[bytes] = []
    row = row.removesuffix(b"\n").removesuffix(b"\r") if row.endswith(b"\n") else row.removesuffix(b"\r")
    while len(found) <= most:
        if not (part := field.match(row, at)):
            return None
        inside, behind, bare, end = part.groups()
        found.append(bare or b"" if inside is None else inside.replace(b'""', b'"') + behind)
        if not end:
            break
        at = part.end()
    return found


@cache
def _field(delimiter: str) -> re.Pattern[bytes]:
    """A field in quotes with whatever stands behind them, or one that does not begin with a quote; never backtracks."""
    text = rb'(?:"((?:[^"]++|"")*+)"([^,]*+)|([^",][^,]*+)?)(,|\Z)'
    return re.compile(text.replace(b",", re.escape(delimiter.encode())))
