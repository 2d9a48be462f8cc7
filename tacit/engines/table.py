"""The confidential table, as the curator needs it: one method that counts (Section 2.1)."""

from __future__ import annotations

import os
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines.counting import Tally, chunk, encoded, summed
from tacit.engines.encode import Encoder, encoder
from tacit.engines.files import Files
from tacit.engines.sources import Distributed, Frame, Header, Parquet, Progress, Source
from tacit.errors import DataUnavailable, InvalidData, InvalidQuery, quoted

MOST_CELLS_AT_ONCE = 2 * 10**8  # of all column sets that are asked for together
SPARK = "spark"
CACHED_BYTES, CACHED_TABLES = 2**28, 2**10


class Table:
    """A schema and a source; what it counts is secret until a mechanism has released it.

    Privacy: none by itself. A row is in all counts or in none (a value that its column drops), and adds 1 to one cell
    of each column set; where it goes does not depend on the other rows. What the rows hold decides no error: once a
    source is open, there is one message for whatever fails.

    >>> import pyarrow
    >>> from tacit.domain.schema import Categories, Integers
    >>> schema = Schema([Integers("age", 0, 2), Categories("sex", ("F", "M"))])
    >>> people = open_table(pyarrow.table({"age": [0, 2, 2, 7], "sex": ["F", "M", "M", "M"]}), schema)
    >>> people.counts([("sex", "age"), ()])
    [array([[1, 0, 0],
           [0, 0, 2]]), array(3)]
    """

    def __init__(self, schema: Schema, source: Source) -> None:
        self.schema = schema
        self._source = source
        self._encoders = {column.name: encoder(column) for column in schema}
        self._dropping = frozenset(name for name, encodes in self._encoders.items() if encodes.drops)
        self._tables: OrderedDict[Columns, NDArray[np.int64]] = OrderedDict()  # counted before, last used last
        self._home: dict[Columns, Columns] = {}  # of which of those tables a column set is a marginal
        self._reading = Lock()
        self._process = os.getpid()
        for header in source.headers():
            _check(self._encoders, header)

    def __repr__(self) -> str:
        return f"Table({self.schema!r}, {self._source.kind})"

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """How many rows fall into each cell of each column set, one axis a column; read-only."""
        return self._read([tuple(columns) for columns in column_sets], None)

    def read(self, column_sets: Sequence[Columns], progress: Progress | None = None) -> None:
        """Counts ahead of time, in one pass; `progress` hears of rows done and of all, both as secret as counts."""
        self._read([tuple(columns) for columns in column_sets], progress)

    def _read(self, column_sets: list[Columns], progress: Progress | None) -> list[NDArray[np.int64]]:
        ordered = [self._ordered(columns) for columns in column_sets]
        if (cells := sum(self.schema.cells(columns) for columns in set(ordered))) > MOST_CELLS_AT_ONCE:
            raise InvalidQuery(
                f"these column sets have {cells} cells; {MOST_CELLS_AT_ONCE} are counted at once. Nothing was read."
            )
        with self._lock():
            self._source.check()
            found = self._found(ordered, progress)
            self._source.check()
        if found is None:  # raised from here, where neither a cause nor a frame of the traceback holds rows or counts
            raise DataUnavailable(
                "the source could not be read to its end; what was charged stays charged, nothing was drawn."
            )
        return [_arranged(table, *names) for table, *names in zip(found, ordered, column_sets, strict=True)]

    def _ordered(self, columns: Columns) -> Columns:
        """The same columns in the order of the schema."""
        known = {self.schema[name].name for name in columns}
        if len(known) != len(columns):
            raise InvalidQuery(f"a column stands twice in {quoted(', '.join(columns))}. Nothing was read.")
        return tuple(name for name in self.schema.names if name in known)

    def _lock(self) -> Lock:
        if self._process != os.getpid():  # in a forked process a thread that is not there may seem to hold it
            self._reading, self._process = Lock(), os.getpid()
        return self._reading

    def _found(self, asked: list[Columns], progress: Progress | None) -> list[NDArray[np.int64]] | None:
        """Counts for names in the order of the schema; None if the rows could not be read."""
        found: dict[Columns, NDArray[np.int64]] = {}
        missing = []
        for columns in dict.fromkeys(asked):
            table = self._remembered(columns)
            if table is None:
                missing.append(columns)
            else:
                found[columns] = table
        if missing:
            try:
                tally = self._tallied(missing, progress)
                found.update({columns: tally.counts(columns) for columns in missing})
            except Exception:
                return None
            for columns, cells in tally.tables.items():
                cells.flags.writeable = False
                self._remember(columns, cells.reshape(self.schema.sizes(columns)))
            self._home.update({columns: tally.home(columns) for columns in missing})
        return [found[columns] for columns in asked]

    def _tallied(self, column_sets: list[Columns], progress: Progress | None) -> Tally:
        """One pass over all rows."""
        wanted = self._dropping.union(*column_sets)
        names = tuple(name for name in self.schema.names if name in wanted) or self.schema.names[:1]
        if isinstance(self._source, Distributed):
            return self._source.tallied(self.schema, names, column_sets, progress)
        tally = Tally(dict(zip(self.schema.names, self.schema.sizes(self.schema.names), strict=True)), column_sets)
        done = 0
        for batch in self._source.batches(names, chunk(len(names))):
            codes, dropped = encoded(self._encoders, names, batch.columns, self._source.coded)
            tally.add(codes, batch.num_rows, dropped)
            done += batch.num_rows
            if progress is not None:
                progress(done, self._source.rows)
        return tally

    def _remembered(self, columns: Columns) -> NDArray[np.int64] | None:
        """Counts that were read before, or are marginals of such."""
        held = self._home.get(columns, columns)
        if held not in self._tables:
            above = [names for names in self._tables if set(columns).issubset(names)]
            if not above:
                return None
            held = min(above, key=lambda names: self._tables[names].size)
            self._home[columns] = held
        self._tables.move_to_end(held)
        return summed(self._tables[held], held, columns)

    def _remember(self, columns: Columns, table: NDArray[np.int64]) -> None:
        self._tables[columns] = table
        size = sum(held.nbytes for held in self._tables.values())
        while size > CACHED_BYTES or len(self._tables) > CACHED_TABLES:
            size -= self._tables.popitem(last=False)[1].nbytes


def open_table(
    source: object,
    schema: Schema,
    *,
    table: str | None = None,
    multiline: bool = False,
    engine: str | None = None,
    person: str | None = None,
    most: int = 1,
) -> Table:
    """The table that a path, a frame or an Arrow object holds; refuses what the contract does not fit.

    A path is a file (.csv, .tsv, .parquet, .duckdb), a folder of such files, or a pattern such as `data/*.parquet`;
    `table` names the table of a DuckDB file; `multiline` says that fields of a CSV file hold line ends in quotes.
    A frame of Spark is counted by Spark; with `engine="spark"` so are paths and, where the source is "spark", `table`
    names one of its catalogue. There `person` names the column that tells people apart, of whom `most` rows count.

    Privacy: a line of a CSV file is a row, whatever stands in it and in other lines. With `multiline` a row is what is
    between two line ends outside quotes, which is safe only where the file's writer quotes correctly.
    """
    if engine is not None or is_frame(source):
        if multiline:
            raise InvalidData("multiline=True is not for Spark; write such texts to Parquet. Nothing was read.")
        return Table(schema, _of_spark(source, table, engine, person, most))
    if person is not None:
        raise InvalidData("person=... is for Spark. Nothing was read.")
    if not isinstance(source, str | os.PathLike):
        if table is not None:
            raise InvalidData(f"table={quoted(table)} is for a DuckDB file. Nothing was read.")
        if multiline:
            raise InvalidData("multiline=True is for a CSV file. Nothing was read.")
        return Table(schema, Frame.of(source, schema.names))
    place = os.fspath(source)
    files = Files(os.fsdecode(place), None if table is None else "DuckDB")
    if multiline and files.kind not in ("CSV", "TSV"):
        raise InvalidData("multiline=True is for a CSV file. Nothing was read.")
    if files.kind == "DuckDB":
        from tacit.engines.duck import Duck

        if table is None:
            raise InvalidData(f"{quoted(files.place)} may hold many tables; name one by table=... Nothing was read.")
        return Table(schema, Duck(files, table, schema))
    if files.kind == "Parquet":
        return Table(schema, Parquet(files))
    from tacit.engines.delimited import Delimited

    return Table(schema, Delimited(files, multiline=multiline))


def _of_spark(source: object, table: str | None, engine: str | None, person: str | None, most: int) -> Source:
    from tacit.engines.lake import of_frame, of_place, of_table

    if engine not in (None, SPARK):
        raise InvalidData(f"engine={quoted(engine)}; the only one with a name is {SPARK!r}. Nothing was read.")
    if is_frame(source):
        if table is not None:
            raise InvalidData(f"table={quoted(table)} is for a catalogue, not for a frame. Nothing was read.")
        return of_frame(source, person=person, most=most)
    if not isinstance(source, str | os.PathLike):
        raise InvalidData(
            f"Spark reads a path, a frame of its own or {SPARK!r}, not a {quoted(type(source).__name__)}. "
            "Nothing was read."
        )
    if table is None:
        return of_place(os.fsdecode(os.fspath(source)), person=person, most=most)
    if source != SPARK:
        raise InvalidData(f"table={quoted(table)} is in Spark's catalogue; name {SPARK!r} as source. Nothing was read.")
    return of_table(table, person=person, most=most)


def is_frame(source: object) -> bool:
    """Whether this is a frame of Spark, of whichever kind; loads none of it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.") and kind.__name__ == "DataFrame"


def _check(encoders: Mapping[str, Encoder], header: Header) -> None:
    """Refuses a source that lacks a column, has it twice, or holds in it what no cell can stand for."""
    kinds: dict[str, list[object]] = {}
    for name, kind in header:
        kinds.setdefault(name, []).append(kind)
    for name, encodes in encoders.items():
        if name not in kinds:
            alike = [other for other in kinds if _folded(other) == _folded(name)]
            hint = f"; it has {quoted(alike[0])}, which is not the same" if alike else ""
            raise InvalidData(f"the source has no column {quoted(name)}{hint}. Nothing was read.")
        if len(kinds[name]) > 1:
            raise InvalidData(f"the source has column {quoted(name)} more than once. Nothing was read.")
        kind = kinds[name][0]
        if not encodes.takes(kind):
            domain = type(encodes.column).__name__
            shown = str(kind).partition("<")[0].partition("(")[0]
            raise InvalidData(
                f"column {quoted(name)} is of type {quoted(shown)} in the source; a column of {domain} "
                f"is read from {encodes.readable}. Nothing was read."
            )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _arranged(table: NDArray[np.int64], ordered: Columns, columns: Columns) -> NDArray[np.int64]:
    """The table with its axes in the order in which they were asked for; it cannot be written to."""
    table.flags.writeable = False
    return table.transpose([ordered.index(name) for name in columns])
