"""Releases as tables of other programs: the same numbers, with types, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from fractions import Fraction
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_inputs_service import plant

import tacit
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Categories, Integers, Neighbors, Numbers, Schema
from tacit.domain.synopsis import Marginals
from tacit.service import cli, exporting
from tacit.service.released import Release

SCHEMA = Schema(
    [
        Integers("age", 0, 3, missing="cell"),
        Categories("Count", (True, False), missing="cell"),
        Categories("zip", (7, 9)),
        Numbers("in*come", (0, 10, 20.5), outside="cell"),
        Integers("year", 2000, 2001, outside="cell", missing="cell"),
        Categories("sex", ("F", '"M,'), missing="cell"),
    ]
)
SETS = [("age", "Count"), ("zip", "in*come"), ("year",), ("sex",)]


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release of tables with every kind of column, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(5)
    tables = {columns: draw.multinomial(600, [1 / (n := SCHEMA.cells(columns))] * n) * 1.0 for columns in SETS}
    receipt = Receipt("epsilon", Fraction(1), None, (), Neighbors.ADD_REMOVE, ())
    held = {columns: table.reshape(SCHEMA.sizes(columns)) for columns, table in tables.items()}
    Release(Marginals(SCHEMA, held, receipt=receipt)).save("r")
    return tacit.load("r")


def run(*words: str) -> None:
    assert cli.run(["export", "r", *words, "-q"]) == 0


def test_all_formats_hold_the_same_tables(released: Release) -> None:
    duckdb = pytest.importorskip("duckdb")
    for words in (["csv", "--format", "csv"], ["parquet", "--format", "parquet"], ["all.duckdb"]):
        run(*words, "--rows", "50", "--seed", "3")
    names = ["age_Count", "zip_in_come", "year", "sex", "synthetic"]
    assert (
        {path.stem for path in Path("csv").iterdir()} == {path.stem for path in Path("parquet").iterdir()} == set(names)
    )
    with duckdb.connect("all.duckdb", read_only=True) as connection:
        assert {row[0] for row in connection.execute("show tables").fetchall()} == set(names)
        for name in names:
            table = pq.read_table(f"parquet/{name}.parquet")
            assert connection.table(name).fetchall() == [tuple(row.values()) for row in table.to_pylist()]
            with open(f"csv/{name}.csv", newline="", encoding="utf-8") as file:
                head, *lines = csv.reader(file)
            assert head == table.column_names
            assert len(lines) == table.num_rows
            for line, row in zip(lines, table.to_pylist(), strict=True):
                for said, value in zip(line, row.values(), strict=True):
                    assert said in (("", "(missing)") if value is None else (str(value),))


def test_a_table_is_the_marginal_cell_by_cell_with_types(released: Release) -> None:
    run("one.parquet", "-m", "Count*age", "--confidence", "0.5")
    table, cells = pq.read_table("one.parquet"), released.marginal("Count", "age", confidence=0.5)
    assert table.column_names == ["Count", "age", "count_", "standard_error", "low", "high"]
    assert table.schema.field("Count").type == pa.bool_()
    assert table.schema.field("age").type == pa.int64()
    assert table["count_"].to_pylist() == cells.count.tolist()
    assert table["age"].to_pylist() == [0, 1, 2, 3, None] * 3
    assert table["Count"].to_pylist() == [True] * 5 + [False] * 5 + [None] * 5
    assert table["standard_error"].null_count == 15  # nothing is known of it here


def test_what_lies_outside_a_domain_makes_its_column_a_text(released: Release) -> None:
    run("t", "--format", "parquet", "--rows", "300")
    assert pq.read_table("t/year.parquet")["year"].to_pylist() == ["2000", "2001", None, "(outside)"]
    assert pq.read_table("t/zip_in_come.parquet")["in*come"].to_pylist() == ["[0, 10)", "[10, 20.5]", "(outside)"] * 2
    rows = pq.read_table("t/synthetic.parquet")
    assert rows.schema.field("zip").type == pa.int64()
    assert set(rows["zip"].to_pylist()) == {7, 9}
    sample = released.sample(300, seed=0).labelled()["sex"]
    assert [value or "(missing)" for value in rows["sex"].to_pylist()] == sample


def test_intervals_go_with_the_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plant(tmp_path)
    assert cli.run(["release", "people.toml", "-w", "age*sex", "-e", "1", "-o", "r", "-q"]) == 0
    for file in tmp_path.glob("people.*"):
        file.unlink()  # neither the data nor the ledger is needed
    run("one.csv")
    cells = tacit.load("r").marginal("age", "sex")
    with open("one.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["count"]) for row in rows] == cells.count.tolist()
    assert [float(row["high"]) for row in rows] == cells.high.tolist()


def test_names_of_tables_are_told_apart_in_any_case() -> None:
    sets = [("a", "b"), ("a_b",), ("A", "B"), ("synthetic",), ("x/../y",), ("é" * 200,), ('"',)]
    names = list(exporting._names(sets))
    assert names == ["a_b", "a_b_2", "A_B_3", "synthetic_2", "x_y", "é" * 80, "_"]


def test_a_file_for_one_table_takes_the_rows_where_rows_are_wanted(released: Release) -> None:
    run("rows.csv", "--rows", "7", "--seed", "2")
    released.sample(7, seed=2).write_csv("same.csv")
    assert Path("rows.csv").read_bytes() == Path("same.csv").read_bytes()


def test_the_same_seed_makes_the_same_rows_in_every_process(released: Release) -> None:
    code = "from tacit.service import cli; cli.main()"
    for seed in ("1", "2"):
        words = ["export", "r", f"{seed}.csv", "--rows", "2000"]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)}
        subprocess.run([sys.executable, "-c", code, *words], env=environment, check=True, capture_output=True)
    assert Path("1.csv").read_bytes() == Path("2.csv").read_bytes()


def test_force_replaces_what_an_export_wrote_and_a_failure_leaves_it(
    released: Release, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("t", "--format", "csv")
    run("one.csv", "-m", "sex")
    before = {path: path.read_bytes() for path in [*Path("t").iterdir(), Path("one.csv")]}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("tacit.service.released.write_csv", full)
        for words in (["t", "--format", "csv"], ["one.csv", "-m", "zip"]):
            assert cli.run(["export", "r", *words, "--force"]) == cli.UNAVAILABLE
            assert "could not be written: no space left on device" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in [*Path("t").iterdir(), Path("one.csv")]} == before
    run("t", "--format", "csv", "-m", "sex", "--force")
    run("one.csv", "-m", "zip", "--force")
    assert [path.name for path in Path("t").iterdir()] == ["sex.csv"]
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["one.csv", "r", "t"]


def test_without_duckdb_one_line_says_what_to_install(
    released: Release, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = util.find_spec
    monkeypatch.setattr(exporting, "find_spec", lambda name: None if name == "duckdb" else there(name))
    assert cli.run(["export", "r", "x.duckdb"]) == cli.WRONG
    assert capsys.readouterr().err == (
        "tacit: a DuckDB file needs the package duckdb: pip install 'tacit[duckdb]'. Nothing was spent.\n"
    )


def test_an_export_says_what_it_wrote(released: Release, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["export", "r", "t", "--format", "csv", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(table["name"], table["rows"]) for table in said["tables"]] == [
        ("age_Count", 15),
        ("zip_in_come", 6),
        ("year", 4),
        ("sex", 3),
    ]
    assert cli.run(["export", "r", "u", "--format", "csv"]) == 0
    assert "zip × in*come" in capsys.readouterr().out
