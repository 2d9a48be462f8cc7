"""A table of a PostgreSQL server, as it was when it was opened: one snapshot for all that is ever read of it.

The statements are projections of quoted column names over one stored table; nothing that a user asks is in them.
A connection of its own keeps the snapshot and the table's lightest lock, so that the table can be neither emptied nor
altered meanwhile; each reading is another connection's, and sees the same rows in the same order.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tacit.domain.query import Columns
from tacit.domain.schema import Categories, Column, Schema
from tacit.engines import wire
from tacit.engines.address import fault, parts
from tacit.engines.encode import encoder
from tacit.engines.files import CHANGED
from tacit.engines.server import Failed, Session, place
from tacit.engines.sources import UNREADABLE, Header
from tacit.errors import DataUnavailable, InvalidData, TacitError, quoted

LONGEST_NUMERAL = 2**20  # bytes; a longer text is no number

FIELDS: dict[str, Callable[[], wire.Field]] = {
    "boolean": wire.Truths,
    "smallint": lambda: wire.Fixed(pa.int16(), ">i2"),
    "integer": lambda: wire.Fixed(pa.int32(), ">i4"),
    "bigint": lambda: wire.Fixed(pa.int64(), ">i8"),
    "real": lambda: wire.Fixed(pa.float32(), ">f4"),
    "double precision": lambda: wire.Fixed(pa.float64(), ">f8"),
    "date": lambda: wire.Moments(pa.date32(), ">i4"),
    "timestamp without time zone": lambda: wire.Moments(pa.timestamp("us"), ">i8"),
    "timestamp with time zone": lambda: wire.Moments(pa.timestamp("us", "UTC"), ">i8"),
    "text": wire.Texts,
    "character varying": wire.Texts,
    "character": wire.Texts,
    "bytea": wire.Texts,
    "uuid": wire.Texts,
}
ENUM, NUMERIC = "enum", "numeric"
AS_TEXT = {"character", "uuid"}  # the former without its padding, which is not part of it
BOUNDED = {"text", "character varying", "character", "bytea"}

KINDS = {  # of what has a name but no stored rows
    "v": "is a view, whose rows are made when they are read, and may fail then; store them in a materialized view",
    "f": "is a foreign table, whose rows are another server's",
    "t": "is a temporary table",
}
# of which kind the table is, whether it can be read whole, and its parts; one that lies elsewhere makes it foreign
TABLE = """
with recursive part(oid) as (
    select {oid}::pg_catalog.oid union select inhrelid from pg_catalog.pg_inherits join part on inhparent = oid)
select case when c.relpersistence = 't' then 't'
    when exists (select from part join pg_catalog.pg_class p using (oid) where p.relkind = 'f') then 'f'
    else c.relkind end, pg_catalog.row_security_active(c.oid),
    (select pg_catalog.string_agg(oid::text, ',' order by oid) from part)
from pg_catalog.pg_class c where c.oid = {oid}"""
FOUND = """
select c.oid, pg_catalog.has_schema_privilege(n.oid, 'USAGE') from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname::text = $1 and c.relname::text = $2"""
# its columns, the type beneath a domain, and whether this role may read them
COLUMNS = """
with recursive base(attnum, oid) as (
    select attnum, atttypid from pg_catalog.pg_attribute where attrelid = {oid} and attnum > 0 and not attisdropped
    union select attnum, typbasetype from base join pg_catalog.pg_type t using (oid) where typtype = 'd')
select attname::text, case when attgenerated not in ('', 's') then 'generated' when typtype = 'e' then 'enum'
    else pg_catalog.format_type(t.oid, null) end, pg_catalog.has_column_privilege({oid}, a.attnum, 'SELECT')
from pg_catalog.pg_attribute a join base using (attnum) join pg_catalog.pg_type t on t.oid = base.oid
where attrelid = {oid} and typtype <> 'd' order by a.attnum"""


@dataclass(frozen=True)
class Stored:
    """What the catalogue says of the table."""

    parts: bytes  # of which stored tables it is made; one that is attached later is not locked and may hold old rows
    kinds: dict[str, str]  # of the columns that this role may read


class Postgres:
    """One stored table of a PostgreSQL server."""

    kind = "PostgreSQL"
    rows = None

    def __init__(self, source: str, table: str, schema: Schema, person: str | None = None) -> None:
        if why := fault(source):
            raise InvalidData(f"{why}. Nothing was read.")
        if (named := parts(table)) is None:
            raise InvalidData(
                f"a table of PostgreSQL is named by its schema and its name, as in 'public.people', "
                f"not {quoted(table)}. Nothing was read."
            )
        self._source, self._named, self._schema = source, named, schema
        self._needed = schema.names if person is None else (*schema.names, person)
        self._from = f"{_name(named[0])}.{_name(named[1])}"
        self._stored = Stored(b"", {})
        self._snapshot = ""
        self._keepers: dict[int, Session] = {}  # by process: nothing that is open crosses a fork
        self.coded: frozenset[str] = frozenset()

    def headers(self) -> Iterator[Header]:
        """The columns of the table; from here on it stays as it is, for this program."""
        state = None
        try:
            self._keep(Session(self._source))
        except TacitError:
            self.close()
            raise
        except Exception as failed:  # whatever the server says stays with the server
            state = getattr(failed, "state", "")
        if state is not None:
            why = "another session has it locked" if state == "55P03" else "it cannot be read"
            self.close()
            raise self._refusal(why)
        self.coded = frozenset(name for name in self._schema.names if self._stored.kinds.get(name) == NUMERIC)
        yield [(name, self._arrow_type(name)) for name in self._stored.kinds]

    def check(self) -> None:
        """Stops when the table is not the one that was opened, or its snapshot is gone, with the server or in time."""
        why = UNREADABLE
        with suppress(Exception):  # whatever the server says stays with the server
            why = "" if self._same(self._keeper()) else CHANGED
        if why:
            raise DataUnavailable(why)

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in the order of their places in the table, which is the same each time."""
        fields = [self._field(name) for name in names]
        session = Session(self._source, self._snapshot)
        try:
            for batch, sizes in wire.gathered(session.copied(self.statement(names)), rows):
                self._keeper().ask("select 1")  # or it would be given up while a long table is read
                yield pa.RecordBatch.from_arrays(wire.columns(batch, sizes, fields), names=list(names))
        finally:
            session.close()

    def statement(self, names: Columns) -> str:
        """The one statement that is ever run over the rows."""
        return f"copy (select {', '.join(map(self._read, names))} from {self._from}) to stdout (format binary)"  # noqa: S608 - every part is quoted

    def close(self) -> None:
        """Lets the snapshot go; nothing can be read afterwards."""
        if (keeper := self._keepers.pop(os.getpid(), None)) is not None:
            keeper.close()

    # --- the snapshot

    def _keep(self, keeper: Session) -> None:
        """The keeper holds the table, then what it was when it was held."""
        self._keepers[os.getpid()] = keeper
        weakref.finalize(self, _let_go, keeper, os.getpid())
        seen = self._catalogue(keeper)
        self._hold(keeper)
        if self._catalogue(keeper) != seen:
            raise Failed
        self._stored = seen
        ((snapshot,),) = keeper.ask("select pg_catalog.pg_export_snapshot()")
        self._snapshot = (snapshot or b"").decode()
        if not re.fullmatch(r"[0-9A-F-]+", self._snapshot):
            raise Failed

    def _hold(self, keeper: Session) -> None:
        keeper.ask(f"select null from {self._from} limit 0")  # noqa: S608 - it takes the lock, until the session ends

    def _keeper(self) -> Session:
        """The session that keeps the snapshot; a forked process has one more."""
        if os.getpid() not in self._keepers:
            if not self._keepers:
                raise Failed
            keeper = Session(self._source, self._snapshot)
            self._keepers[os.getpid()] = keeper
            weakref.finalize(self, _let_go, keeper, os.getpid())
            self._hold(keeper)
        return self._keepers[os.getpid()]

    def _same(self, keeper: Session) -> bool:
        try:
            return self._catalogue(keeper) == self._stored
        except TacitError:  # it is not there any more, or may not be read
            return False

    # --- the catalogue

    def _catalogue(self, session: Session) -> Stored:
        """What is known of the table before a row is read; refuses what cannot be read to its end."""
        ((encoding,),) = session.ask("show server_encoding")
        if encoding not in (b"UTF8", b"SQL_ASCII"):
            raise self._refusal("the database keeps texts in an encoding other than UTF8")
        if not (named := session.ask(FOUND, *self._named)):
            raise self._refusal("there is no such table")
        if named[0][1] != b"t":
            raise self._refusal("the role may not use its schema")
        oid = int(named[0][0] or 0)
        ((kind, hidden, parts),) = session.ask(TABLE.format(oid=oid))
        if (letter := (kind or b"").decode()) not in ("r", "p", "m"):
            raise self._refusal(KINDS.get(letter, "is not a table"))
        if hidden != b"f":
            raise self._refusal("row-level security hides rows of it from the role")
        found = [  # a name that is no text can be in no schema
            ((name or b"").decode(errors="replace"), (kind or b"").decode(errors="replace"), allowed == b"t")
            for name, kind, allowed in session.ask(COLUMNS.format(oid=oid))
        ]
        for name, _, allowed in found:
            if name in self._needed and not allowed:
                raise self._refusal(f"the role may not read column {quoted(name)}")
        return Stored(parts or b"", {name: kind for name, kind, allowed in found if allowed})

    def _refusal(self, why: str) -> InvalidData:
        return InvalidData(f"{place(self._source)}, table {quoted('.'.join(self._named))}: {why}. Nothing was read.")

    # --- the columns

    def _arrow_type(self, name: str) -> Any:
        """What values are in Arrow; what no column can hold keeps its name only."""
        kind = self._stored.kinds[name]
        return kind if kind not in FIELDS and kind not in (ENUM, NUMERIC) else self._field(name).kind

    def _field(self, name: str) -> wire.Field:
        kind = self._stored.kinds[name]
        if kind == NUMERIC and name in self.coded:
            return wire.Numerics(encoder(self._schema[name]))
        return FIELDS[kind]() if kind in FIELDS else wire.Texts()

    def _read(self, name: str) -> str:
        """A column as it is sent; texts no longer than they need to be told from every one that has a cell.

        Whole where it tells people apart: then of a numeric the shortest text, for equal numbers are one person.
        """
        value, kind = _name(name), self._stored.kinds[name]
        if kind in AS_TEXT:
            value = f"{value}::pg_catalog.text"
        if kind == NUMERIC and name not in self.coded:
            value = f"nullif(pg_catalog.trim_scale({value}), 'NaN')::pg_catalog.text"
        if kind not in BOUNDED or name not in self._schema.names:
            return value
        longest = _longest(self._schema[name])
        short = f"pg_catalog.substr({value}, 1, {longest + 1})" if longest < LONGEST_NUMERAL else "'?'"
        return f"case when pg_catalog.octet_length({value}) > {longest} then {short} else {value} end"


def _longest(column: Column) -> int:
    """Bytes of the longest text that can have a cell."""
    if isinstance(column, Categories) and column.kind is not int:
        return max(len(str(value).encode(errors="surrogatepass")) for value in column.values)
    return LONGEST_NUMERAL


def _let_go(keeper: Session, process: int) -> None:
    if process == os.getpid():  # a forked process would end its parent's session
        keeper.close()


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
