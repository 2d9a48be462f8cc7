"""Sources that must be refused before a row is read: what is wrong, how it is opened, which refusal it meets."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.domain.person import Person
from tacit.domain.schema import Categories, Dates, Integers, Numbers, Schema
from tacit.engines.table import Table, open_table
from tacit.errors import InvalidData, TacitError

CANARY = "CANARY-7731"  # stands in rows only: no message may show it
PEOPLE = Schema([Integers("age", 0, 120), Categories("sex", ("F", "M"))])
ROWS = {"age": [30, 40, 50], "sex": ["F", "M", CANARY]}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table({**ROWS, **columns}), path)
    return path


def of_csv(content: bytes, name: str = "t.csv", table: str | None = None) -> Callable[[Path], Table]:
    return lambda folder: open_table(written(folder / name, content), PEOPLE, table=table)


def of_arrow(schema: Schema = PEOPLE, **columns: Any) -> Callable[[Path], Table]:
    return lambda folder: open_table(pa.table({**ROWS, **columns}), schema)


def damaged(change: Callable[[bytes], bytes]) -> Callable[[Path], Table]:
    def opened(folder: Path) -> Table:
        path = parquet(folder / "t.parquet")
        return open_table(written(path, change(path.read_bytes())), PEOPLE)

    return opened


def of_person(column: str = "id", schema: Schema = PEOPLE, **columns: Any) -> Callable[[Path], Table]:
    return lambda folder: open_table(pa.table({**ROWS, **columns}), schema, person=Person(column, 3))


def people_of_two_kinds(folder: Path) -> Table:
    parquet(folder / "a.parquet", id=[1, 2, 3])
    parquet(folder / "b.parquet", id=["1", "2", CANARY])
    return open_table(folder, PEOPLE, person=Person("id", 3))


def nobody_in_one_part(folder: Path) -> Table:
    parquet(folder / "a.parquet", id=[1, 2, 3])
    parquet(folder / "b.parquet")
    return open_table(folder, PEOPLE, person=Person("id", 3))


def pipe(folder: Path) -> Table:
    os.mkfifo(folder / "t.csv")
    return open_table(folder / "t.csv", PEOPLE)


def link_outside(folder: Path) -> Table:
    (folder / "data").mkdir()
    parquet(folder / "elsewhere.parquet")
    (folder / "data" / "t.parquet").symlink_to(folder / "elsewhere.parquet")
    return open_table(folder / "data", PEOPLE)


def mixed_folder(folder: Path) -> Table:
    written(folder / "a.csv", b"age,sex\n1,F\n")
    parquet(folder / "b.parquet")
    return open_table(folder, PEOPLE)


def one_part_lacks_a_column(folder: Path) -> Table:
    written(folder / "a.csv", b"age,sex\n1,F\n")
    written(folder / "b.csv", b"age,gender\n1,F\n")
    return open_table(folder / "*.csv", PEOPLE)


def folder_in_folder(folder: Path) -> Table:
    (folder / "2020").mkdir()
    parquet(folder / "2020" / "t.parquet")
    return open_table(folder, PEOPLE)


def only_hidden(folder: Path) -> Table:
    written(folder / "_SUCCESS", b"")
    written(folder / ".t.csv", b"age,sex\n")
    return open_table(folder, PEOPLE)


DAY = [datetime.date(2020, 1, 1)] * 3
CLOCK = pa.array([1, 2, 3], pa.time32("s"))
BAD: list[tuple[str, Callable[[Path], Any], type[TacitError]]] = [
    ("no such file", lambda folder: open_table(folder / "none.csv", PEOPLE), InvalidData),
    ("no such folder", lambda folder: open_table(folder / "none" / "t.parquet", PEOPLE), InvalidData),
    ("a path with a null letter", lambda folder: open_table("t\0.csv", PEOPLE), InvalidData),
    ("a path that is too long", lambda folder: open_table("x" * 5000 + ".csv", PEOPLE), InvalidData),
    ("an empty folder", lambda folder: open_table(folder, PEOPLE), InvalidData),
    ("a folder of hidden files", only_hidden, InvalidData),
    ("a folder in a folder", folder_in_folder, InvalidData),
    ("a folder of two kinds", mixed_folder, InvalidData),
    ("a pattern without files", lambda folder: open_table(folder / "*.csv", PEOPLE), InvalidData),
    ("a link out of the folder", link_outside, InvalidData),
    ("a pipe", pipe, InvalidData),
    ("a device", lambda folder: open_table("/dev/zero", PEOPLE), InvalidData),
    ("a kind that is not read", of_csv(b"age,sex\n", "t.xlsx"), InvalidData),
    ("a compressed file", of_csv(b"\x1f\x8b\x08", "t.csv.gz"), InvalidData),
    ("a file of no bytes", of_csv(b""), InvalidData),
    ("an empty header", of_csv(b"\nage,sex\n1,F\n"), InvalidData),
    ("a column that is not there", of_csv(b"age,gender\n1,F\n"), InvalidData),
    ("a part without the column", one_part_lacks_a_column, InvalidData),
    ("a header in another case", of_csv(b"Age,SEX\n1,F\n"), InvalidData),
    ("a header with blanks", of_csv(b"age, sex\n1,F\n"), InvalidData),
    ("a column twice", of_csv(b"age,sex,age\n1,F,2\n"), InvalidData),
    ("semicolons for commas", of_csv(b"age;sex\n1;F\n"), InvalidData),
    ("UTF-16", of_csv("age,sex\n1,F\n".encode("utf-16")), InvalidData),
    ("UTF-16 without a mark", of_csv("age,sex\n1,F\n".encode("utf-16-le")), InvalidData),
    ("bytes for text", of_csv(b"\x00\x01\x02\x03" * 100), InvalidData),
    ("a header without end", of_csv(b'"age,sex\n' + b"1,F\n" * 400_000), InvalidData),
    ("a header of too many columns", of_csv(b"age,sex," + b",".join(b"%d" % at for at in range(10_001))), InvalidData),
    ("a CSV that says it is Parquet", of_csv(b"age,sex\n1,F\n", "t.parquet"), InvalidData),
    ("an empty Parquet file", of_csv(b"", "t.parquet"), InvalidData),
    ("a truncated Parquet file", damaged(lambda held: held[: len(held) // 2]), InvalidData),
    ("a Parquet file with a wrong mark", damaged(lambda held: held[:-4] + b"PAR2"), InvalidData),
    ("a Parquet file with a wrong footer", damaged(lambda held: held[:-40] + b"\xff" * 36 + b"PAR1"), InvalidData),
    ("days", of_arrow(age=DAY), InvalidData),
    ("days in Parquet", lambda folder: open_table(parquet(folder / "t.parquet", age=DAY), PEOPLE), InvalidData),
    ("times", of_arrow(age=pa.array([1, 2, 3], pa.timestamp("us", "UTC"))), InvalidData),
    ("lists", of_arrow(age=[[1], [2], [3]]), InvalidData),
    ("structures", of_arrow(sex=[{"a": 1}] * 3), InvalidData),
    ("truth values for numbers", of_arrow(age=[True, False, None]), InvalidData),
    ("truth values for texts", of_arrow(sex=[True, False, None]), InvalidData),
    ("numbers for truth values", of_arrow(Schema([Categories("age", (True, False))])), InvalidData),
    ("days for numbers with edges", of_arrow(Schema([Numbers("age", (0, 1))]), age=DAY), InvalidData),
    ("bytes of a fixed size", of_arrow(sex=pa.array([b"F"] * 3, pa.binary(1))), InvalidData),
    ("numbers for days", of_arrow(Schema([Dates("age", "2024-01-01", "2024-12-31", "day")])), InvalidData),
    (
        "clock times for days",
        of_arrow(Schema([Dates("age", "2024-01-01", "2024-12-31", "day")]), age=CLOCK),
        InvalidData,
    ),
    ("a person that is no column", of_person(), InvalidData),
    ("a person in another case", of_person(ID=[1, 2, 3]), InvalidData),
    ("a person that is a column of the universe", of_person("sex"), InvalidData),
    ("a person told by days", of_person(id=DAY), InvalidData),
    ("a person told by truth values", of_person(id=[True, False, None]), InvalidData),
    ("a person told by nothing", of_person(id=pa.nulls(3)), InvalidData),
    ("a person told by lists", of_person(id=[[1], [2], [3]]), InvalidData),
    ("a person told by wide decimals", of_person(id=pa.array([1, 2, 3], pa.decimal256(60))), InvalidData),
    ("a person told by bytes of a fixed size", of_person(id=pa.array([b"F"] * 3, pa.binary(1))), InvalidData),
    ("people of two kinds", people_of_two_kinds, InvalidData),
    ("a part without the person", nobody_in_one_part, InvalidData),
    ("a list for a source", lambda folder: open_table([1, 2], PEOPLE), InvalidData),
    ("nothing for a source", lambda folder: open_table(None, PEOPLE), InvalidData),
    ("a table name for a frame", lambda folder: open_table(pa.table(ROWS), PEOPLE, table="t"), InvalidData),
    ("no DuckDB file", of_csv(b"x" * 5000, "t.duckdb", table="t"), InvalidData),
    ("no table name", of_csv(b"x" * 5000, "t.duckdb"), InvalidData),
    (
        "a password in an address",
        lambda folder: open_table(f"postgresql://a:{CANARY}@h/t", PEOPLE, table="a.b"),
        InvalidData,
    ),
    ("no table of a server's", lambda folder: open_table("postgresql://nowhere/t", PEOPLE), InvalidData),
    ("a server's table without its schema", lambda folder: open_table("postgresql", PEOPLE, table="t"), InvalidData),
    ("a server's table of many lines", lambda folder: open_table("postgresql", PEOPLE, multiline=True), InvalidData),
    ("a table name for a CSV file", of_csv(b"age,sex\n", table="t"), InvalidData),
]
