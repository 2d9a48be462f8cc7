"""Where rows live, as a stream of Arrow batches: Parquet files and tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import isnan
from typing import Any, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

import numpy as np
import pyarrow as pa

from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines.bounding import Bound
from tacit.engines.counting import Tally
from tacit.engines.figures import is_text
from tacit.engines.files import Files
from tacit.errors import InvalidData, quoted

UNREADABLE = "the source could not be read to its end; what was charged stays charged, nothing was drawn."
MOST_DIGITS = 2**10  # of a whole number that is a person; of more, its zeros are not written out
_STRANGE = b"\xff"  # no text, no number: outside every domain

Progress: TypeAlias = Callable[[int, int | None], None]
Reader: TypeAlias = Callable[[Any], bytes | None]  # of one value of a mixed column
Header: TypeAlias = Sequence[tuple[str, pa.DataType]]  # the columns that a part of a source has


class Source(Protocol):
    """A private table that can be read any number of times and must stay the same."""

    kind: str
    coded: frozenset[str]  # columns that arrive as places of their encoder, not as values

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known before reading. It is secret."""
        ...

    def headers(self) -> Iterator[Header]:
        """The columns of each part; refuses what cannot be opened."""
        ...

    def check(self) -> None:
        """Stops when the source is no longer what was opened."""
        ...

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """All rows, about so many at a time, with these columns in this order."""
        ...


@runtime_checkable
class Distributed(Source, Protocol):
    """A source whose rows stay where they are: the kernel goes to them, and their counts come back."""

    def tallied(
        self,
        schema: Schema,
        names: Columns,
        column_sets: Sequence[Columns],
        bound: Bound | None,
        progress: Progress | None,
    ) -> Tally:
        """One pass over all rows, of which these columns are read; of each person so many rows, if there is a bound."""
        ...


def of_spark_itself(source: object) -> bool:
    """Whether this is a frame of Spark, of whichever kind; loads none of it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.") and kind.__name__ == "DataFrame"


class Parquet:
    """Parquet files."""

    kind = "Parquet"
    coded: frozenset[str] = frozenset()

    def __init__(self, files: Files, person: str | None = None) -> None:
        self.files = files
        self.rows: int | None = 0
        self._person = person

    def check(self) -> None:
        """Stops when a file has changed."""
        self.files.check()

    def headers(self) -> Iterator[Header]:
        """The columns of each file, from its footer."""
        import pyarrow.parquet as parquet

        self.rows = 0
        for path in self.files.paths:
            try:
                with parquet.ParquetFile(path) as file:
                    header = [(field.name, field.type) for field in file.schema_arrow]
                    self.rows += file.metadata.num_rows
            except Exception:  # whatever Arrow says of the file stays with Arrow
                header = None
            if header is None:
                raise InvalidData(f"{self.files.shown(path)} cannot be opened as a Parquet file. Nothing was read.")
            yield [*header, *((key, pa.string()) for key in self.files.parted)]

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows, row group by row group; texts keep the dictionary that they are stored with, but for people's."""
        import pyarrow.parquet as parquet

        for path, parts in zip(self.files.paths, self.files.parts, strict=True):
            held = [name for name in names if name not in parts]
            with parquet.ParquetFile(path) as file:
                footer, kinds = file.metadata, {field.name: field.type for field in file.schema_arrow}
            texts = [name for name in held if is_text(kinds[name]) and name != self._person]
            with parquet.ParquetFile(path, metadata=footer, read_dictionary=texts, pre_buffer=False) as file:
                for batch in file.iter_batches(rows, columns=held):
                    yield batch.select(held) if not parts else _with(parts, batch, names)


def _with(parts: Mapping[str, str | None], batch: pa.RecordBatch, names: Columns) -> pa.RecordBatch:
    """The batch and what the folders say of all of its rows."""
    count = batch.num_rows
    same = {name: pa.repeat(pa.scalar(value, pa.string()), count) for name, value in parts.items() if name in names}
    columns = [same[name] if name in same else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(columns, list(names))


class Frame:
    """A table in memory: Arrow's, polars' or anything with an Arrow stream, read where it lies, and pandas' by a copy.

    Arrow's memory is not written to by Arrow; who makes such a table over an array of numpy's must not write to that.
    """

    coded: frozenset[str] = frozenset()

    def __init__(self, kind: str, table: pa.Table) -> None:
        self.kind = kind
        self._table = table
        self.rows = table.num_rows

    @classmethod
    def of(cls, given: Any, names: Columns, person: str | None = None) -> Frame:
        """The columns with these names, as they are now, and beside them the one that tells people apart."""
        maker = type(given).__module__.partition(".")[0]
        if isinstance(given, pa.RecordBatch):
            return cls("Arrow", pa.Table.from_batches([given]))
        if isinstance(given, pa.Table):
            return cls("Arrow", given)
        if maker == "pandas" and hasattr(given, "columns"):
            return cls("pandas", _of_pandas(given, names, person))
        if maker == "polars" and hasattr(given, "__arrow_c_stream__") and hasattr(given, "columns"):
            given = given.select([name for name in given.columns if name in names or name == person])
        if hasattr(given, "__arrow_c_stream__"):
            try:
                return cls(maker, pa.RecordBatchReader.from_stream(given).read_all())
            except Exception:
                given = None
            raise InvalidData(f"the {quoted(maker)} object cannot be read as an Arrow stream. Nothing was read.")
        raise InvalidData(
            f"a source is a path, a pandas or polars frame or an Arrow table, not a {quoted(type(given).__name__)}. "
            "Nothing was read."
        )

    def check(self) -> None:
        """A table in memory is not looked at again: it does not change."""

    def headers(self) -> Iterator[Header]:
        """Its columns."""
        yield [(field.name, field.type) for field in self._table.schema]

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows."""
        yield from self._table.select(list(names)).to_batches(max_chunksize=rows)


def _of_pandas(frame: Any, names: Columns, person: str | None) -> pa.Table:
    """A copy, for the caller may go on writing into the frame."""
    read: dict[str | None, Reader] = {**dict.fromkeys(names, _text), person: _who}
    fields = [(at, name) for at, name in enumerate(frame.columns) if isinstance(name, str) and name in read]
    arrays = [_series(frame.iloc[:, at], name, read[name]) for at, name in fields]
    return pa.Table.from_arrays(arrays, names=[name for _, name in fields])


def _series(series: Any, name: str, text: Reader) -> Any:
    """An Arrow array; the column's type alone, not one value in it, decides how it is made and whether it can be."""
    if str(series.dtype) == "category":
        places = series.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(
            pa.array(places, mask=places < 0), _series(series.cat.categories.to_series(), name, text)
        )
    held = series.array
    if not hasattr(held, "__arrow_array__"):
        held = np.array(series)
        if held.dtype == np.dtype(object):
            return _texts(held, text)
    try:
        return pa.array(held.copy(), from_pandas=True)
    except Exception:
        kind = series.dtype
    if getattr(kind, "name", "") in {"string", "str"}:  # one of them is no UTF-8
        return _texts(series, text)
    raise InvalidData(f"column {quoted(name)} is of type {quoted(str(kind))}, which cannot be read. Nothing was read.")


def _texts(values: Any, text: Reader) -> pa.Array:
    """What may be anything, one by one: no value decides what becomes of another."""
    return pa.array([text(value) for value in values], pa.large_binary())


def _text(value: Any) -> bytes | None:
    """A value of a mixed column as the text that a CSV file would hold."""
    try:
        return value.encode() if type(value) is str else _written(value)
    except Exception:  # of whatever the value's own class does
        return _STRANGE


def _who(value: Any) -> bytes | None:
    """A person of a mixed column: equal values are one, and what cannot be told apart from others is nobody.

    As the one `_STRANGE` text they would be one person together, where one comes at another's cost.
    """
    try:
        if type(value) is str:
            return value.encode(errors="surrogatepass")
        if isinstance(value, UUID):
            return str(value).encode()
        whole = isinstance(value, int) and value.bit_length() >= 2**10
        written = _digits(Decimal(value)) if whole or isinstance(value, Decimal) else _written(value)
    except Exception:
        return None
    return None if written is _STRANGE else written


def _digits(value: Decimal) -> bytes | None:
    """A decimal as all that equal it are written, be they floats or whole numbers."""
    if not value.is_finite():
        return None if value.is_nan() else repr(float(value)).encode()
    sign, digits, power = value.as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    if not figures:
        return b"0"
    least = Decimal(f"{'-' * sign}{figures}E{int(power) + len(digits) - len(figures)}")
    if least == least.to_integral_value() and least.adjusted() < MOST_DIGITS:
        return f"{least:f}".encode()
    return repr(float(least)).encode() if Decimal(float(least)) == least else str(least).encode()


def _written(value: object) -> bytes | None:
    if isinstance(value, np.datetime64 | np.timedelta64):
        day = isinstance(value, np.datetime64)
        return None if np.isnat(value) else str(value).encode() if day else _STRANGE
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, date):
        return value.isoformat().encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        return None if isnan(value) else b"%d" % value if value.is_integer() else repr(value).encode()
    if isinstance(value, int):
        return b"%d" % value if value.bit_length() < 2**10 else b"1e999" if value > 0 else b"-1e999"
    if isinstance(value, Decimal):
        return None if value.is_nan() else str(value).encode()
    return _STRANGE
