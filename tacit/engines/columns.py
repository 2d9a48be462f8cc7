"""Which columns a source has, and of what types: all that is looked at before there is a contract."""

from __future__ import annotations

import pyarrow as pa

from tacit.domain.schema import Integers, Schema
from tacit.engines.address import is_server
from tacit.engines.figures import is_text
from tacit.engines.files import Files
from tacit.engines.sources import Parquet, Source
from tacit.errors import InvalidData, quoted

TEXT, UNTYPED, TRUTH, WHOLE, REAL, DAYS, NONE = "text", "untyped", "truth", "whole", "real", "days", "none"

_BARE = Schema([Integers("nothing", 0, 0)])  # no text of it is looked up in SQL: every column arrives as it lies


def bare(place: str, table: str | None = None, person: str | None = None) -> Source:
    """A source without a schema: its columns arrive as the values that they hold."""
    if is_server(place):
        from tacit.engines.postgres import Postgres

        return Postgres(place, table or "", _BARE, person)
    files = Files(place, None if table is None else "DuckDB")
    if files.kind == "DuckDB":
        from tacit.engines.duck import Duck

        if table is None:
            raise InvalidData(f"{quoted(place)} may hold many tables; name one by --table. Nothing was read.")
        return Duck(files, table, _BARE, ordered=True)
    if files.kind == "Parquet":
        return Parquet(files, person)
    from tacit.engines.delimited import Delimited

    return Delimited(files)


def columns_of(place: str, table: str | None = None) -> dict[str, str | None]:
    """The columns of a source with the type of each, in words; None where it is not one column of one type.

    It opens the source and reads a header line, a footer or a catalogue, and no row.
    """
    source = bare(place, table)
    parts = [list(header) for header in source.headers()]
    if (close := getattr(source, "close", None)) is not None:
        close()
    found: dict[str, str | None] = {}
    for name, given in parts[0]:
        kinds = {words(kind) for part in parts for other, kind in part if other == name} | {words(given)}
        once = all(sum(other == name for other, _ in part) == 1 for part in parts)
        found[name] = kinds.pop() if once and len(kinds) == 1 else None
    return found


def words(kind: object) -> str:
    """A type as people read it: `large_string` is a text, and what is within brackets is left out.

    >>> words(pa.large_string()), words(pa.int16()), words(pa.decimal128(9, 2)), words("INTERVAL")
    ('string', 'int16', 'decimal128', 'INTERVAL')
    """
    if isinstance(kind, pa.DataType):
        if pa.types.is_dictionary(kind):
            return words(kind.value_type)
        if is_text(kind):
            return "bytes" if pa.types.is_binary(kind) else "string"
    return str(kind).partition("<")[0].partition("(")[0].partition("[")[0]


def sort_of(word: str | None) -> str:
    """What a column of this type, in words, can hold; bytes are what a CSV file is made of.

    >>> [sort_of(word) for word in ("bytes", "string", "int8", "decimal128", "double", "date32", "bool", "list", None)]
    ['untyped', 'text', 'whole', 'real', 'real', 'days', 'truth', 'none', 'none']
    """
    if word is None:
        return NONE
    if word in ("bytes", "null"):
        return UNTYPED
    starts = {
        "string": TEXT,
        "int": WHOLE,
        "uint": WHOLE,
        "float": REAL,
        "double": REAL,
        "halffloat": REAL,
        "decimal": REAL,
        "date": DAYS,
        "timestamp": DAYS,
        "bool": TRUTH,
    }
    return next((sort for start, sort in starts.items() if word.startswith(start)), NONE)
