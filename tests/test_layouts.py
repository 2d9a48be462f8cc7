"""Tables as others lay them out: folders named key=value, and lines that no comma divides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.curator.kernel import supplied
from tacit.domain.person import Person
from tacit.domain.schema import CELL, Categories, Integers, Numbers, Schema
from tacit.engines.files import DELIMITERS
from tacit.engines.table import Table, open_table
from tacit.errors import DataUnavailable, InvalidData, InvalidSchema
from tacit.service.contract import Contract
from tacit.service.people import People

SCHEMA = Schema(
    [
        Integers("year", 2020, 2029, outside=CELL),
        Categories("town", ("Aix", "Bad Tölz", "a/b", "x=y"), missing=CELL, outside=CELL),
        Integers("age", 0, 9),
    ]
)
ROWS = [
    (2024, "Aix", 3), (2024, "Aix", 4), (2024, "Bad Tölz", 3), (2025, "a/b", 0), (2025, "x=y", 9), (2025, None, 1),
    (1999, "Aix", 2), (2025, "Elsewhere", 5),
]  # fmt: skip
NAMES = {"Bad Tölz": "Bad%20T%C3%B6lz", "a/b": "a%2Fb", "x=y": "x%3Dy", None: "__HIVE_DEFAULT_PARTITION__"}


def laid_out(folder: Path) -> Path:
    """A file for each year and town, in folders."""
    lake = folder / "lake"
    for year, town in {(year, town) for year, town, _ in ROWS}:
        inside = lake / f"year={year}" / f"town={NAMES.get(town, town)}"
        inside.mkdir(parents=True)
        ages = [age for *there, age in ROWS if tuple(there) == (year, town)]
        pq.write_table(pa.table({"who": [f"{age}" for age in ages], "age": ages}), inside / "part-0.parquet")
    (lake / "_SUCCESS").touch()
    return lake


def in_memory() -> Table:
    year, town, age = zip(*ROWS, strict=True)
    return open_table(pa.table({"year": year, "town": town, "age": age}), SCHEMA)


def test_folders_named_by_values_hold_columns(tmp_path: Path) -> None:
    table, other = open_table(laid_out(tmp_path), SCHEMA), in_memory()
    sets = [("year", "town", "age"), ("town",), ("year",), ("age",), ()]
    for one, two in zip(table.counts(sets), other.counts(sets), strict=True):
        np.testing.assert_array_equal(one, two)
    for names in sets:  # alone, each reads other columns of the files, or none
        np.testing.assert_array_equal(
            open_table(tmp_path / "lake", SCHEMA).counts([names])[0], other.counts([names])[0]
        )


def test_a_person_may_be_a_column_of_the_files_or_of_the_folders(tmp_path: Path) -> None:
    lake = laid_out(tmp_path)
    ages = Schema([Integers("age", 0, 9)])
    assert (
        int(supplied(open_table(lake, ages, person=Person("who", 1))).counts([()])[0]) == 7
    )  # two are three years old
    assert int(supplied(open_table(lake, ages, person=Person("year", 2))).counts([()])[0]) == 5
    assert int(supplied(open_table(lake, ages, person=Person("town", 9))).counts([()])[0]) == 7  # one row is nobody's


@pytest.mark.parametrize("fault", ["loose file", "other key", "csv", "both", "link", "no file", "broken", "folder"])
def test_a_folder_that_is_no_table_is_refused_and_no_folder_is_named(tmp_path: Path, fault: str) -> None:
    lake = laid_out(tmp_path)
    inside = lake / "year=2024" / "town=Aix"
    match fault:
        case "loose file":
            pq.write_table(pa.table({"age": [1]}), lake / "part.parquet")
        case "other key":
            (lake / "month=1").mkdir()
            pq.write_table(pa.table({"age": [1]}), lake / "month=1" / "part.parquet")
        case "csv":
            (inside / "part-0.parquet").unlink()
            for path in lake.rglob("*.parquet"):
                path.rename(path.with_suffix(".csv"))
        case "both":
            pq.write_table(pa.table({"age": [1], "town": ["Aix"]}), inside / "part-0.parquet")
        case "link":
            (inside / "far.parquet").symlink_to("/etc/hostname")
        case "no file":
            (inside / "notes.txt").touch()
        case "broken":
            (inside / "part-0.parquet").write_bytes(b"PAR1")
        case "folder":
            (inside / "more").mkdir()
    with pytest.raises(InvalidData) as caught:
        open_table(lake, SCHEMA).counts([("age",)])
    assert "Aix" not in str(caught.value)
    assert "2024" not in str(caught.value)


def test_a_folder_that_comes_while_the_table_is_open_is_noticed(tmp_path: Path) -> None:
    lake = laid_out(tmp_path)
    table = open_table(lake, SCHEMA)
    (lake / "year=2027" / "town=Aix").mkdir(parents=True)
    pq.write_table(pa.table({"age": [1]}), lake / "year=2027" / "town=Aix" / "part.parquet")
    with pytest.raises(DataUnavailable):
        table.counts([("age",)])


LINES = Schema([Integers("age", 0, 9), Categories("sex", ("F", "a;b")), Numbers("pay", (0, 10))])


@pytest.mark.parametrize("delimiter", sorted(DELIMITERS))
def test_lines_may_be_divided_by_something_else(tmp_path: Path, delimiter: str) -> None:
    text = 'age;sex;pay\n3;F;1.5\n4;"a;b";2\n5;F\n6;"F";3;4\n7;F;9.75\n'.replace(";", delimiter)
    (tmp_path / "p.csv").write_text(text)
    schema = Schema([LINES["age"], Categories("sex", ("F", f"a{delimiter}b")), LINES["pay"]])
    counts = open_table(tmp_path / "p.csv", schema, delimiter=delimiter).counts([("age",), ("sex",)])
    assert np.flatnonzero(counts[0]).tolist() == [3, 4, 7]
    assert counts[1].tolist() == [2, 1]


@pytest.mark.parametrize("wrong", ["", ";;", '"', "\n", "\r", ".", "-", "e", "1", "\0", "é", 7])
def test_what_cannot_divide_a_line_is_refused(tmp_path: Path, wrong: Any) -> None:
    (tmp_path / "p.csv").write_text("age\n1\n")
    with pytest.raises(InvalidData, match="cannot stand between"):
        open_table(tmp_path / "p.csv", Schema([Integers("age", 0, 9)]), delimiter=wrong)


def test_dialects_are_of_lines_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [1]}), tmp_path / "p.parquet")
    for source in (tmp_path / "p.parquet", pa.table({"age": [1]})):
        for how in ({"delimiter": ";"}, {"multiline": True}):
            with pytest.raises(InvalidData, match="are for a CSV file"):
                open_table(source, Schema([Integers("age", 0, 9)]), **how)  # type: ignore[arg-type]


def test_a_contract_names_its_dialect(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('age;note\n3;"a\nb"\n4;c\n')
    data = '[data]\nsource = "p.csv"\ndelimiter = ";"\nmultiline = true\n'
    rest = (
        '[privacy]\nneighbors = "add-remove"\nepsilon = 1\nledger = "l"\n[[columns]]\nname = "age"\nlow = 0\nhigh = 9\n'
    )
    (tmp_path / "p.toml").write_text(data + rest)
    with People.open(tmp_path / "p.toml") as people:
        assert int(people.table.counts([()])[0]) == 2
    for wrong in ("multiline = 1", 'multiline = "yes"', "delimiter = 3"):
        (tmp_path / "p.toml").write_text(f'[data]\nsource = "p.csv"\n{wrong}\n{rest}')
        with pytest.raises(InvalidSchema, match="line 3"):
            Contract.read(tmp_path / "p.toml")
