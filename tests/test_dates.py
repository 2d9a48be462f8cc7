"""Calendar dates: their cells, what may be asked of them, and what stands for them in a source."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.domain.dates import PERIODS, Dates, number_of, shown_day
from tacit.domain.predicate import parse
from tacit.domain.schema import CELL, CLAMP, Schema, column_from
from tacit.domain.sql import parse_sql
from tacit.domain.workload import ranges
from tacit.engines.encode import encoder
from tacit.engines.table import open_table
from tacit.errors import InvalidQuery

FIRST, LAST = date(2023, 12, 20), date(2025, 2, 10)
SCHEMA = Schema(
    [
        Dates("day", FIRST, LAST, "day"),
        Dates("week", FIRST, LAST, "week"),
        Dates("month", FIRST, LAST, "month", missing=CELL),
        Dates("quarter", FIRST, LAST, "quarter"),
        Dates("year", FIRST, LAST, "year", outside=CELL),
    ]
)
ALL = [FIRST + timedelta(days=days) for days in range((LAST - FIRST).days + 1)]


def period(day: date, by: str) -> object:
    return {
        "day": day,
        "week": day.isocalendar()[:2],
        "month": (day.year, day.month),
        "quarter": (day.year, (day.month - 1) // 3),
        "year": day.year,
    }[by]


@pytest.mark.parametrize("by", PERIODS)
def test_two_days_share_a_cell_where_they_share_a_period(by: str) -> None:
    column = SCHEMA[by]
    cells = [column.locate(day) for day in ALL]
    assert [low == high for low, high in pairwise(cells)] == [
        period(low, by) == period(high, by) for low, high in pairwise(ALL)
    ]
    assert (cells[0], cells[-1]) == (0, column.domain_size - 1)
    assert column.locate(FIRST - timedelta(days=1)) is column.locate("2025-02-11") is None
    assert len(set(column.labels)) == column.size


def test_labels_are_written_as_people_write_them() -> None:
    first = {by: SCHEMA[by].labels[0] for by in PERIODS}
    assert first == {"day": "2023-12-20", "week": "2023-W51", "month": "2023-12", "quarter": "2023-Q4", "year": "2023"}
    assert Dates("d", "2024-12-30", "2025-01-06", "week").labels == ("2025-W01", "2025-W02")


@pytest.mark.parametrize("by", PERIODS)
def test_days_are_described_and_read_again(by: str) -> None:
    assert column_from(SCHEMA[by].describe()) == SCHEMA[by]


def test_the_calendar_ends_where_it_ends() -> None:
    for by in PERIODS:
        late, early = Dates("d", "9999-11-30", "9999-12-31", by), Dates("d", "0001-01-01", "0001-02-01", by)
        assert late.locate("9999-12-31") == late.domain_size - 1
        assert early.locate("0001-01-01") == 0
        assert shown_day(late.starts[-1]) == "10000-01-01"
        assert number_of(date(9999, 12, 31)) == late.starts[-1] - 1


# --- questions -------------------------------------------------------------------------------------------------------

ASKED = [
    # a question, and how it is said back
    ("day >= '2024-03-01'", "day >= '2024-03-01'"),
    ("day = '2024-02-29'", "day = '2024-02-29'"),
    ("day between '2024-02-28' and '2024-03-01'", "day between '2024-02-28' and '2024-03-01'"),
    ("day < '1900-01-01'", "false"),
    ("day = '2030-01-01'", "false"),
    ("month >= '2024-03-01'", "month >= '2024-03'"),
    ("month > '2024-02-29'", "month >= '2024-03'"),
    ("month < '2024-03-01'", "month <= '2024-02'"),
    ("month <= '2024-02-29'", "month <= '2024-02'"),
    ("month = '2024-02'", "month = '2024-02'"),
    ("month != '2024-02'", "month != '2024-02'"),
    ("month in ('2024-02', '2024-05')", "month in ('2024-02', '2024-05')"),
    ("month between '2024-02-01' and '2024-04-30'", "month between '2024-02' and '2024-04'"),
    ("'2024-02' <= month < '2024-05'", "month between '2024-02' and '2024-04'"),
    ("month is missing or month >= '2024-03'", "month >= '2024-03' or month is missing"),
    ("month >= '2023-12-20'", "month is not missing"),
    ("month > '1999-01-01' and month < '2099-01-01'", "month is not missing"),
    ("quarter = '2024-Q1'", "quarter = '2024-Q1'"),
    ("quarter between '2024-01-01' and '2024-06-30'", "quarter between '2024-Q1' and '2024-Q2'"),
    ("week = '2024-W09'", "week = '2024-W09'"),
    ("week >= '2024-02-26'", "week >= '2024-W09'"),
    ("year = '2024'", "year = '2024'"),
    ("year > '2023-12-31'", "year >= '2024'"),
    ("year is outside", "year is outside"),
]


@pytest.mark.parametrize(("text", "said"), ASKED)
def test_a_question_about_whole_periods_is_understood_and_said_back(text: str, said: str) -> None:
    query = parse(text, SCHEMA)
    assert str(query) == f"count where {said}"
    assert parse(said, SCHEMA) == query


@given(st.sampled_from(PERIODS), st.sampled_from(["=", "<", "<=", ">", ">=", "!="]), st.integers(-40, len(ALL) + 40))
def test_a_comparison_holds_for_the_days_for_which_it_holds_or_is_refused(by: str, sign: str, at: int) -> None:
    day = FIRST + timedelta(days=at)
    compared = {
        "=": day.__eq__, "!=": day.__ne__, "<": day.__gt__, "<=": day.__ge__, ">": day.__lt__, ">=": day.__le__,
    }[sign]  # fmt: skip
    right = {other: bool(compared(other)) for other in ALL}
    column = SCHEMA[by]
    cells: dict[int | None, set[bool]] = {}
    for other, held in right.items():
        cells.setdefault(column.locate(other), set()).add(held)
    text = f"{by} {sign} '{day}'"
    if any(len(held) == 2 for held in cells.values()):
        with pytest.raises(InvalidQuery, match="in whole"):
            parse(text, SCHEMA)
        return
    query = parse(text, SCHEMA)
    counted = [query(np.eye(column.size, dtype=np.int64)[cell] if query.columns else np.array(1)) for cell in cells]
    nothing = str(query) == "count where false"
    assert [bool(one.item()) and not nothing for one in counted] == [True in held for held in cells.values()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("month >= '2024-03-02'", "counted in whole months, and this parts '2024-03'"),
        ("month <= '2024-03-01'", "parts '2024-03'"),
        ("month = '2024-03-01'", "parts '2024-03'"),
        ("year = '2024-06'", "holds days; write one in quotes, like '2024-12-31', or a year like '2023'"),
        ("day >= '2024-02-30'", "holds days; write one in quotes, like '2024-12-31'"),
        ("day >= 20240101", "holds days"),
        ("day = true", "holds days"),
        ("day >= '2024'", "holds days"),
        ("month in ('2024-03', 'x')", "holds days"),
    ],
)
def test_a_question_that_parts_a_period_or_names_no_day_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        parse(text, SCHEMA)
    assert why in str(refusal.value)


def test_sql_and_ranges_know_days() -> None:
    asked = parse_sql("select quarter, count(*) where day >= '2024-03-01' group by quarter", SCHEMA)
    assert ("2024-Q1",) in list(asked.labels)
    assert len(ranges(SCHEMA, "month").queries) == 1


# --- sources ---------------------------------------------------------------------------------------------------------

VISITED = Dates("visited", "2024-01-15", "2024-12-31", "month", missing=CELL, outside=CELL)
MILLISECONDS = [1705276800000 - 1, 1705276800000, 1709251199999, None, -1, 2**62, -(2**62)]
CELLS = [13, 0, 1, 12, 13, 13, 13]  # 12 is (missing), 13 is (outside)


def cells(values: Any) -> list[int]:
    found, dropped = encoder(VISITED)(values)
    assert dropped is None
    return found.tolist()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.timestamp("ms", "Asia/Tokyo"), pa.date64()], ids=str
)
def test_a_time_lies_in_the_day_that_it_is_by_utc(kind: Any) -> None:
    held = pa.array(MILLISECONDS, pa.int64()).view(kind)
    assert cells(held) == cells(held.dictionary_encode()) == CELLS
    assert cells(pa.concat_arrays([held, held]).slice(3)) == CELLS[3:] + CELLS


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_time_is_read(unit: str) -> None:
    held = pa.array([1709164800 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]] * 2, pa.int64())
    assert cells(held.view(pa.timestamp(unit))) == [1, 1]


def test_days_beyond_the_calendar_are_outside_and_clamped_to_the_nearest_end() -> None:
    held = pa.array([2**31 - 1, -(2**31), 3_000_000, None], pa.int32()).view(pa.date32())
    assert cells(held) == [13, 13, 13, 12]
    for by in ("day", "month"):
        clamping = encoder(Dates("visited", "2024-01-15", "2024-12-31", by, outside=CLAMP))
        found, dropped = clamping(held)
        assert found.tolist()[:3] == [clamping.size - 1, 0, clamping.size - 1]
        assert dropped is not None
        assert dropped.tolist() == [False, False, False, True]
        found, dropped = clamping(pa.array(["soon", "2024-02-30", "1999-01-01"]))
        assert dropped is not None
        assert dropped.tolist() == [True, True, False]


def test_frames_parquet_and_databases_hold_days_alike(tmp_path: Path) -> None:
    days = [date(2024, 1, 14), date(2024, 1, 15), date(2024, 2, 29), None, date(2024, 12, 31)]
    sources: list[tuple[Any, str | None]] = [(pa.table({"visited": pa.array(days)}), None)]
    pq.write_table(sources[0][0], tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("visited,x\n" + "".join(f"{day or ''},1\n" for day in days))
    sources += [(tmp_path / "t.parquet", None), (tmp_path / "t.csv", None)]
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    given = sources[0][0]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("given", given)
        connection.execute("create table d as select * from given")
        connection.execute("create table t as select visited::timestamp + interval 13 hour visited from given")
    sources += [(tmp_path / "t.duckdb", "d"), (tmp_path / "t.duckdb", "t")]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    stamps = pandas.to_datetime(pandas.Series(days))
    sources += [
        (given.to_pandas(), None),
        (pandas.DataFrame({"visited": stamps}), None),
        (pandas.DataFrame({"visited": stamps.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")}), None),
        (pandas.DataFrame({"visited": stamps.astype("category")}), None),
        (
            pandas.DataFrame({"visited": [np.datetime64(day) if day else pandas.NaT for day in days]}, dtype=object),
            None,
        ),
        (polars.DataFrame({"visited": days}), None),
    ]
    expected = np.zeros(14, dtype=np.int64)
    np.add.at(expected, [13, 0, 1, 12, 11], 1)
    for source, named in sources:
        counted = open_table(source, Schema([VISITED]), table=named).counts([("visited",)])[0]
        assert counted.tolist() == expected.tolist(), source
