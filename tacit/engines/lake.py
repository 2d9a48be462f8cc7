"""What Spark is to read: a frame, a table of its catalogue, or files where Spark finds them."""

from __future__ import annotations

import os
import re
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from tacit.engines.cluster import Stamps, current, first_bytes, footer, of_our_own, quiet
from tacit.engines.delimited import LONGEST_ROW, header_of
from tacit.engines.files import KINDS
from tacit.engines.sources import Header, of_spark_itself
from tacit.engines.spark import Part, Spark
from tacit.engines.tasks import Lines
from tacit.errors import InvalidData, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK = "spark"  # what engine and catalogue are called

_ARROW = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def of_spark(source: object, table: str | None, engine: str | None) -> Spark:
    """What Spark is to read for `open_table`."""
    if engine not in (None, SPARK):
        raise InvalidData(f"engine={quoted(engine)}; the only one with a name is {SPARK!r}. Nothing was read.")
    if of_spark_itself(source):
        if table is not None:
            raise InvalidData(f"table={quoted(table)} is for a catalogue, not for a frame. Nothing was read.")
        return of_frame(source)
    if not isinstance(source, str | os.PathLike):
        raise InvalidData(
            f"Spark reads a path, a frame of its own or {SPARK!r}, not a {quoted(type(source).__name__)}. "
            "Nothing was read."
        )
    if table is None:
        return of_place(os.fsdecode(os.fspath(source)))
    if source != SPARK:
        raise InvalidData(f"table={quoted(table)} is in Spark's catalogue; name {SPARK!r} as source. Nothing was read.")
    return of_table(table)


def of_frame(frame: Any) -> Spark:
    """A frame as it is; whatever it is made of is read anew in each pass."""
    if not hasattr(frame, "_jdf"):
        raise InvalidData(
            f"a frame of {quoted(type(frame).__module__)} cannot be looked into; open the table where Spark itself is. "
            "Nothing was read."
        )
    with quiet(frame.sparkSession):
        try:
            listed = list(frame.inputFiles())
        except Exception:  # not a table of files
            listed = []
        return Spark([_part(frame)], Stamps(frame.sparkSession, lambda: listed))


def of_table(name: str) -> Spark:
    """A table or a view of the catalogue, by its name in SQL."""
    frame = None
    session = of_our_own(current())
    with quiet(session):
        try:
            frame = session.table(name)
        except Exception:  # whatever Spark says of it stays with Spark
            frame = None
    if frame is None:
        raise InvalidData(f"Spark's catalogue has no table {quoted(name)} that can be read. Nothing was read.")
    return of_frame(frame)


def of_place(place: str) -> Spark:
    """A file, a folder or a pattern, on whatever file system Spark reads: CSV, TSV or Parquet."""
    session = of_our_own(current())
    with quiet(session):
        files = _listed(session, place)
        kinds = {KINDS.get(os.path.splitext(unquote(file))[1].lower(), "") for file in files}
        if len(kinds) != 1 or not kinds <= {"CSV", "TSV", "Parquet"}:
            raise InvalidData(
                f"{quoted(place)} must name files of one kind, by one of the endings .csv, .tsv, .tab, .parquet, .pq. "
                "Nothing was read."
            )
        stamps = Stamps(session, lambda: _listed(session, place))
        delimiter = {"CSV": ",", "TSV": "\t"}.get(kinds.pop())
        parts = _of_parquet(session, place, files) if delimiter is None else _of_lines(session, place, files, delimiter)
        return Spark(parts, stamps)


def _listed(session: SparkSession, place: str) -> list[str]:
    """The files at a place, as Spark finds them; reads none of them."""
    try:
        files = sorted(session.read.text(place).inputFiles())
    except Exception:  # whatever Spark says of it stays with Spark
        files = []
    if not files:
        raise InvalidData(f"Spark finds no data file at {quoted(place)}. Nothing was read.")
    return files


def _of_lines(session: SparkSession, place: str, files: list[str], delimiter: str) -> list[Part]:
    """Files of lines, by their header: Spark cuts them at line ends, as the embedded engine does."""
    headers: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        try:
            found, _, why = header_of(BytesIO(first_bytes(session, file, LONGEST_ROW)), delimiter)
        except Exception:
            found, why = [], "it cannot be read"
        if why:
            raise InvalidData(f"{quoted(unquote(file))}: {why}. Nothing was read.")
        headers.setdefault(tuple(found), []).append(file)
    parts = []
    for names, held in headers.items():
        # a longer row is dropped by Hadoop, which counts its line end as we do
        reader = session.read.option("mapreduce.input.linerecordreader.line.maxlength", str(LONGEST_ROW + 1))
        frame = _loaded(reader.format("text"), place, held, len(headers) == 1)
        if frame is None or frame.columns != ["value"]:
            raise InvalidData(f"{quoted(place)} has folders of folders; name the files by a pattern. Nothing was read.")
        lines = frame.selectExpr(
            "cast(value as binary) as value",
            "_metadata.file_block_start as start",
            "xxhash64(_metadata.file_path) as file",
        )
        parts.append(Part(lines, [(name, pa.binary()) for name in names], Lines(delimiter, len(names))))
    return parts


def _of_parquet(session: SparkSession, place: str, files: list[str]) -> list[Part]:
    """Parquet files, by the columns that their footers name."""
    headers: dict[str, list[str]] = {}
    for file in files:
        try:
            header = footer(session, file)
        except Exception:  # whatever is said of the file stays there
            header = ""
        if not header:
            raise InvalidData(f"{quoted(unquote(file))} cannot be opened as a Parquet file. Nothing was read.")
        headers.setdefault(header, []).append(file)
    parts = []
    for held in headers.values():
        frame = _loaded(session.read.format("parquet"), place, held, len(headers) == 1)
        if frame is None:
            raise InvalidData(f"{quoted(place)} cannot be opened as Parquet files. Nothing was read.")
        parts.append(_part(frame))
    return parts


def _loaded(reader: Any, place: str, files: list[str], all_of_them: bool) -> DataFrame | None:
    """The place, or some of its files, whose names Spark would take for patterns."""
    try:
        if all_of_them:
            loaded: DataFrame = reader.load(place)
        else:
            loaded = reader.load([re.sub(r"([\[\]{}*?\\])", r"\\\1", unquote(file)) for file in files])
    except Exception:
        return None
    return loaded


def _part(frame: DataFrame) -> Part:
    """A frame with its columns by place: names may differ in case only, or hold dots."""
    header: Header = [(field.name, _arrow_type(field.dataType.simpleString())) for field in frame.schema.fields]
    return Part(frame.toDF(*(f"c{at}" for at in range(len(header)))), header)


def _arrow_type(kind: str) -> Any:
    """What a Spark type is in Arrow; what no column can hold keeps its name only."""
    if kind.startswith("decimal("):
        precision, scale = kind[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.startswith(("varchar(", "char(", "string ")):  # a collation is no business of bytes
        return pa.string()
    return _ARROW.get(kind, kind)
