"""The confidential table, as the curator needs it: one method that counts (Section 2.1)."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tacit.domain.person import Person
from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines import persons
from tacit.engines.address import is_server
from tacit.engines.bounding import Bound
from tacit.engines.choosing import Chosen, Lots, chosen
from tacit.engines.counting import Tally, chunk, encoded, summed
from tacit.engines.encode import encoder
from tacit.engines.figures import Mask
from tacit.engines.files import DELIMITERS, Files
from tacit.engines.header import check, check_person
from tacit.engines.sources import UNREADABLE, Distributed, Frame, Parquet, Progress, Source, of_spark_itself
from tacit.errors import DataUnavailable, InvalidData, InvalidParameter, InvalidQuery, quoted

MOST_CELLS_AT_ONCE = 2 * 10**8  # of all column sets that are asked for together
_FOR_LINES = "multiline and delimiter are for a CSV file. Nothing was read."
CACHED_BYTES, CACHED_TABLES = 2**28, 2**10


class Table:
    """A schema and a source; what it counts is secret until a mechanism has released it.

    Privacy: none by itself. A row is in all counts or in none (a value that its column drops), and adds 1 to one cell
    of each column set; where it goes does not depend on the other rows. With a `person`, so many rows of each count,
    chosen by lots that a curator hands in; the same ones for as long as this object lives, so that its counts agree.
    What the rows hold decides no error: once a source is open, there is one message for whatever fails.

    >>> import pyarrow
    >>> from tacit.domain.schema import Categories, Integers
    >>> schema = Schema([Integers("age", 0, 2), Categories("sex", ("F", "M"))])
    >>> people = open_table(pyarrow.table({"age": [0, 2, 2, 7], "sex": ["F", "M", "M", "M"]}), schema)
    >>> people.counts([("sex", "age"), ()])
    [array([[1, 0, 0],
           [0, 0, 2]]), array(3)]
    """

    def __init__(self, schema: Schema, source: Source, person: Person | None = None) -> None:
        self.schema, self.person = schema, person
        self.most_rows = 1 if person is None else person.most_rows
        self._lots: Lots | None = None
        self._chosen: Chosen | None = None
        self._kept: Bound | None = None
        self._source = source
        self._encoders = {column.name: encoder(column) for column in schema}
        self._dropping = frozenset(name for name, encodes in self._encoders.items() if encodes.drops)
        self._tables: OrderedDict[Columns, NDArray[np.int64]] = OrderedDict()  # counted before, last used last
        self._home: dict[Columns, Columns] = {}  # of which of those tables a column set is a marginal
        self._reading: dict[int, Lock] = {}  # by process: a fork takes along what no thread of it holds
        kinds: set[str] = set()  # of the person's values, in the parts of the source
        for header in source.headers():
            check(self._encoders, header)
            if person is not None:
                check_person(person, header, kinds)

    def __repr__(self) -> str:
        person = "" if self.person is None else f", at most {self.most_rows} rows of each {self.person.column}"
        return f"Table({self.schema!r}, {self._source.kind}{person})"

    @property
    def kind(self) -> str:
        """What the source is: CSV, Parquet, DuckDB, PostgreSQL."""
        return self._source.kind

    def draw_from(self, lots: Lots) -> None:
        """Takes what draws the lots by which rows of a person are chosen: a curator's; the first that comes stays."""
        self._lots = self._lots or lots

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """How many rows fall into each cell of each column set, one axis a column; read-only."""
        return self._read([tuple(columns) for columns in column_sets], None)

    def read(self, column_sets: Sequence[Columns], progress: Progress | None = None) -> None:
        """Counts ahead of time, in one pass; `progress` hears of rows done and of all, both as secret as counts."""
        self._read([tuple(columns) for columns in column_sets], progress)

    def close(self) -> None:
        """Lets go of a server, of which nothing more can be read then; a file or a frame is not held."""
        if (close := getattr(self._source, "close", None)) is not None:
            close()

    def _read(self, column_sets: list[Columns], progress: Progress | None) -> list[NDArray[np.int64]]:
        ordered = [self._ordered(columns) for columns in column_sets]
        if (cells := sum(self.schema.cells(columns) for columns in set(ordered))) > MOST_CELLS_AT_ONCE:
            raise InvalidQuery(
                f"these column sets have {cells} cells; {MOST_CELLS_AT_ONCE} are counted at once. Nothing was read."
            )
        if self.person is not None and self._lots is None:
            raise InvalidParameter(
                f"which rows of a person count is decided by lot, and a curator brings the lots: {self!r} is counted "
                "by a curator. Nothing was read."
            )
        with self._lock():
            self._source.check()
            found = self._found(ordered, progress)
            self._source.check()
        if found is None:  # raised from here, where neither a cause nor a frame of the traceback holds rows or counts
            raise DataUnavailable(UNREADABLE)
        return [_arranged(table, *names) for table, *names in zip(found, ordered, column_sets, strict=True)]

    def _ordered(self, columns: Columns) -> Columns:
        """The same columns in the order of the schema."""
        known = {self.schema[name].name for name in columns}
        if len(known) != len(columns):
            raise InvalidQuery(f"a column stands twice in {quoted(', '.join(columns))}. Nothing was read.")
        return tuple(name for name in self.schema.names if name in known)

    def _lock(self) -> Lock:
        return self._reading.setdefault(os.getpid(), Lock())  # in one step: all threads of a process find the same one

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
            return self._source.tallied(self.schema, names, column_sets, self._bound(), progress)
        tally = Tally(dict(zip(self.schema.names, self.schema.sizes(self.schema.names), strict=True)), column_sets)
        done, chosen = 0, self._choice()
        for batch in self._source.batches(names, chunk(len(names))):
            codes, dropped = encoded(self._encoders, names, batch.columns, self._source.coded)
            if chosen is not None:
                away = ~chosen.part(done, batch.num_rows)
                dropped = away if dropped is None else dropped | away
            tally.add(codes, batch.num_rows, dropped)
            done += batch.num_rows
            if progress is not None:
                progress(done, self._source.rows)
        if chosen is not None and done != chosen.rows:
            raise ValueError("other rows than before")
        return tally

    def _choice(self) -> Chosen | None:
        """Which rows count, where a person may have several; chosen once."""
        if self.person is not None and self._chosen is None and self._lots is not None:
            key = _key(self._lots)
            self._chosen = chosen(lambda: self._persons(key), self._lots, self.most_rows)
        return self._chosen

    def _bound(self) -> Bound | None:
        """The same for rows that stay where they are: what chooses there, by one key for all passes."""
        if self.person is None or self._lots is None:
            return None
        if self._kept is None:
            self._kept = Bound(self.person.column, self.most_rows, _key(self._lots))
        return self._kept

    def _persons(self, key: bytes) -> Iterator[tuple[persons.Words, Mask | None]]:
        """Whose each row is, in the order in which the rows are always read."""
        assert self.person is not None  # noqa: S101 - asked for by `_choice` alone
        for batch in self._source.batches((self.person.column,), chunk(1)):
            yield persons.words_of(batch.column(0), key)

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
    delimiter: str | None = None,
    engine: str | None = None,
    person: Person | None = None,
) -> Table:
    """The table that a path, a frame or an Arrow object holds; refuses what the contract does not fit.

    A path is a file (.csv, .tsv, .parquet, .duckdb), a folder of such files, or a pattern such as `data/*.parquet`; a
    folder may hold folders named `key=value`, as Hive lays out a table of Parquet files: each key is a column. A server
    is `postgresql` or a URI such as `postgresql://db.example/town`, without a password. `table` names the table of a
    DuckDB file, or the schema and the table of a server; `multiline` says that fields of a CSV file hold line ends in
    quotes, `delimiter` what stands between them, if it is no comma. A frame of Spark is counted by Spark; with
    `engine="spark"` so are paths and, where the source is "spark", `table` names one of its catalogue. `person` names
    the column that tells people apart, and how many rows of each count; without it a row is a person.

    Privacy: a line of a CSV file is a row, whatever stands in it and in other lines. With `multiline` a row is what is
    between two line ends outside quotes, which is safe only where the file's writer quotes correctly.
    """
    if delimiter is not None and delimiter not in DELIMITERS:
        raise InvalidData(f"{quoted(delimiter)} cannot stand between the fields of a CSV file. Nothing was read.")
    lines = multiline or delimiter is not None
    if person is not None and person.column in schema.places:
        raise InvalidData(
            f"column {quoted(person.column)} tells people apart, so it is none of the universe; take it out of the "
            "schema. Nothing was read."
        )
    if engine is not None or of_spark_itself(source):
        from tacit.engines.lake import of_spark

        if lines:
            raise InvalidData("multiline and delimiter are not for Spark; write it to Parquet. Nothing was read.")
        return Table(schema, of_spark(source, table, engine), person)
    if not isinstance(source, str | os.PathLike):
        if table is not None:
            raise InvalidData(f"table={quoted(table)} is for a DuckDB file or a server. Nothing was read.")
        if lines:
            raise InvalidData(_FOR_LINES)
        return Table(schema, Frame.of(source, schema.names, None if person is None else person.column), person)
    place = os.fspath(source)
    if isinstance(source, str) and is_server(source):
        from tacit.engines.postgres import Postgres

        if lines:
            raise InvalidData(_FOR_LINES)
        return Table(schema, Postgres(source, table or "", schema, None if person is None else person.column), person)
    files = Files(os.fsdecode(place), None if table is None else "DuckDB")
    if lines and files.kind not in ("CSV", "TSV"):
        raise InvalidData(_FOR_LINES)
    if files.kind == "DuckDB":
        from tacit.engines.duck import Duck

        if table is None:
            raise InvalidData(f"{quoted(files.place)} may hold many tables; name one by table=... Nothing was read.")
        return Table(schema, Duck(files, table, schema, ordered=person is not None), person)
    if files.kind == "Parquet":
        return Table(schema, Parquet(files, None if person is None else person.column), person)
    from tacit.engines.delimited import Delimited

    return Table(schema, Delimited(files, multiline=multiline, delimiter=delimiter), person)


def _key(lots: Lots) -> bytes:
    return lots(persons.KEY_BYTES // 4).astype(np.uint32).tobytes()


def _arranged(table: NDArray[np.int64], ordered: Columns, columns: Columns) -> NDArray[np.int64]:
    """The table with its axes in the order in which they were asked for; it cannot be written to."""
    table.flags.writeable = False
    return table.transpose([ordered.index(name) for name in columns])
