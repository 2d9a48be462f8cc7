"""A table of a DuckDB file: SQL turns texts into places of the public domain, Arrow brings them to the kernel.

The statement is one projection of quoted column names over one stored table; nothing that a user asks is in it.
The file is opened read-only, without access to other files or extensions, with its configuration locked.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tacit.domain.query import Columns
from tacit.domain.schema import Categories, Schema
from tacit.engines.encode import MISSING_AT, OUTSIDE_AT, encoder
from tacit.engines.files import Files
from tacit.engines.sources import Header
from tacit.errors import InvalidData, quoted

if TYPE_CHECKING:
    import duckdb

LONGEST_ENUM = 2**12  # so many categories are looked up in SQL; of more, the texts themselves are brought
SAFE = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table name must never mean a variable of this program
    "preserve_insertion_order": "false",
    "memory_limit": "1GB",  # a scan needs little; without a limit it would fill the memory with the file
    "lock_configuration": "true",
}
_ARROW = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "HUGEINT": pa.decimal128(38, 0),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
    "UUID": pa.string(),  # as it is brought
    "BLOB": pa.binary(),
}


class Duck:
    """One stored table of a DuckDB file."""

    kind = "DuckDB"

    def __init__(self, files: Files, table: str, schema: Schema, *, ordered: bool = False) -> None:
        if find_spec("duckdb") is None:
            raise InvalidData("a DuckDB file needs the package duckdb: pip install 'tacit[duckdb]'. Nothing was read.")
        if len(files.paths) != 1:
            raise InvalidData(f"{quoted(files.place)} must be one DuckDB file. Nothing was read.")
        self.files = files
        self.rows: int | None = None
        self._table = table
        self._schema = schema
        self._ordered = ordered
        self._kinds: dict[str, str] = {}  # as DuckDB names them
        self.coded: frozenset[str] = frozenset()

    def check(self) -> None:
        """Stops when the file has changed."""
        self.files.check()

    def headers(self) -> Iterator[Header]:
        """The columns of the table, from the catalogue.

        One that is computed when it is read is of no type here: it may differ from read to read, and fail on a value.
        Old releases do not tell it from a stored one with a default, which beside such a column is refused with it.
        """
        path = self.files.paths[0]
        try:
            with _opened(path) as connection:
                found = connection.execute(
                    "select column_name, case when column_default is not null and contains(sql, 'GENERATED ALWAYS') "
                    "then 'GENERATED' else data_type end from duckdb_columns() join duckdb_tables() "
                    "using (database_name, schema_name, table_oid, table_name) "
                    "where database_name = current_database() and schema_name = 'main' and table_name = ? "
                    "order by column_index",
                    [self._table],
                ).fetchall()
        except Exception:  # whatever DuckDB says of the file stays with DuckDB
            found = None
        if found is None:
            raise InvalidData(
                f"{quoted(path)} cannot be opened as a DuckDB file, or is open for writing. Nothing was read."
            )
        if not found:
            raise InvalidData(f"{quoted(path)} has no stored table {quoted(self._table)}. Nothing was read.")
        self._kinds = dict(found)
        self.coded = frozenset(
            column.name for column in self._schema if self._kinds.get(column.name) == "VARCHAR" and _in_sql(column)
        )
        yield [(name, _arrow_type(kind)) for name, kind in found]

    def batches(self, names: Columns, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows: in any order, or always in the one in which they lie."""
        statement = self.statement(names)
        with _opened(self.files.paths[0], self._ordered) as connection:
            relation = connection.sql(statement)
            reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            yield from reader(rows)

    def statement(self, names: Columns) -> str:
        """The one statement that is ever run over the rows."""
        chosen = ", ".join(f"{self._value(name)} as c{at}" for at, name in enumerate(names))
        return f"select {chosen or '1'} from main.{_name(self._table)}"  # noqa: S608 - every part is quoted

    def _value(self, name: str) -> str:
        if name in self.coded:
            return self._places(name)
        return f"{_name(name)}::varchar" if self._kinds.get(name) == "UUID" else _name(name)

    def _places(self, name: str) -> str:
        """A text's place: a cast to the domain finds its cell by its bytes, whatever the column's collation."""
        column = self._schema[name]
        assert isinstance(column, Categories)  # noqa: S101 - only these are coded
        texts = encoder(column)
        kind = {1: "utinyint", 2: "usmallint", 4: "uinteger"}[texts.dtype.itemsize]
        domain = ", ".join(_literal(str(value)) for value in column.values)
        gap = "" if "" in column.values else f"when strlen({_name(name)}) = 0 then {texts.size + MISSING_AT} "
        cell = f"enum_code(try_cast({_name(name)} as enum({domain})))"
        return (
            f"(case when {_name(name)} is null then {texts.size + MISSING_AT} {gap}"
            f"else coalesce({cell}, {texts.size + OUTSIDE_AT}) end)::{kind}"
        )


def _opened(path: str, ordered: bool = False) -> duckdb.DuckDBPyConnection:
    import duckdb

    order = {"preserve_insertion_order": "true"} if ordered else {}
    return duckdb.connect(path, read_only=True, config={**SAFE, **order})


def _in_sql(column: object) -> bool:
    """Whether SQL can find this column's cells: a few texts, none with a letter that a statement cannot hold."""
    return (
        isinstance(column, Categories)
        and column.kind is str
        and len(column.values) <= LONGEST_ENUM
        and all(_encodable(str(value)) and "\0" not in str(value) for value in column.values)
    )


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in text)


def _arrow_type(kind: str) -> Any:
    """What a DuckDB type is in Arrow; what no column can hold keeps its name only."""
    if kind.startswith("DECIMAL("):
        precision, scale = kind[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.startswith("ENUM("):
        return pa.dictionary(pa.uint32(), pa.string())
    return _ARROW.get(kind, kind)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
