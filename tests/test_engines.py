"""One suite for every kind of source: the same table gives the same counts, to the last unit, however it is held."""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
import random
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Counting, Marginal
from tacit.domain.schema import CELL, CLAMP, Categories, Column, Dates, Integers, Neighbors, Numbers, Schema
from tacit.domain.workload import marginals
from tacit.engines import counting
from tacit.engines import table as table_module
from tacit.engines.counting import Tally, grouped
from tacit.engines.encode import IntegerCells
from tacit.engines.table import Table, open_table
from tacit.errors import InvalidData, InvalidQuery, InvalidSchema
from tacit.mechanisms.marginals import release_marginals
from tacit.privacy.budget import Budget
from tests.doubles import Scripted
from tests.postgres import server
from tests.sparks import spark

Values = dict[str, list[Any]]

# --- the naive counter: pure Python, one value at a time -------------------------------------------------------------


def number(text: str) -> int | float | None:
    if not re.fullmatch(r"[ \t]*[+-]?((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|inf|infinity|nan)[ \t]*", text, re.I | re.A):
        return None
    whole = re.fullmatch(r"[ \t]*([+-]?\d+)(\.0*)?[ \t]*", text, re.A)
    return int(whole[1]) if whole and len(text) < 4000 else float(text)


def naive_day(column: Dates, value: Any, size: int) -> int | None:
    """Day by day: the cells are counted by their labels as the calendar is walked through."""
    day = WRITTEN_DAYS[value] if isinstance(value, str) and value in WRITTEN_DAYS else value
    if isinstance(day, datetime.datetime):
        day = (day.astimezone(datetime.UTC) if day.tzinfo else day).date()
    if day is None or day == "":
        return column.missing_cell
    if isinstance(day, datetime.date) and column.first <= day <= column.last:
        months = {
            day.year * 12 + day.month
            for day in map(column.first.fromordinal, range(column.first.toordinal(), day.toordinal() + 1))
        }
        return len(months) - 1
    if column.outside != CLAMP:
        return column.outside_cell
    return column.missing_cell if not isinstance(day, datetime.date) else 0 if day < column.first else size - 1


def naive_cell(column: Column, value: Any) -> int | None:
    """The cell, or None where the row is dropped."""
    size = column.size - (column.missing == CELL) - (column.outside == CELL)
    if isinstance(column, Dates):
        return naive_day(column, value, size)
    parses = not (isinstance(column, Categories) and column.kind is not int)
    if isinstance(value, str) and value and parses:
        value = number(value)
        if value is None:
            value = b"no number"
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    declared_empty = isinstance(column, Categories) and "" in column.values
    if value is None or (value == "" and not declared_empty) or (isinstance(value, float) and math.isnan(value)):
        return column.missing_cell
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(column, Categories):
        if column.kind is str and plain and finite:
            value = str(int(value)) if value == int(value) else repr(value)
        if (
            column.kind is bool
            and isinstance(value, str)
            and value in ("true", "True", "TRUE", "false", "False", "FALSE")
        ):
            value = value.lower() == "true"
        if column.kind is int and isinstance(value, float) and finite and value == int(value):
            value = int(value)
        for cell, category in enumerate(column.values):
            if type(value) is type(category) and value == category:
                return cell
    elif plain and isinstance(column, Integers):
        if finite and value == int(value) and column.low <= value <= column.high:
            return int(value) - column.low
    elif plain and isinstance(column, Numbers) and finite:
        exact, edges = Fraction(value), [Fraction(edge) for edge in column.edges]
        for cell in range(size):
            if edges[cell] <= exact and (exact < edges[cell + 1] or (cell == size - 1 and exact == edges[-1])):
                return cell
    if column.outside != CLAMP:
        return column.outside_cell
    low, high = (column.low, column.high) if isinstance(column, Integers) else (column.edges[0], column.edges[-1])
    if plain and value < low:
        return 0
    if plain and value > high:
        return size - 1
    return column.missing_cell


def naive_counts(schema: Schema, values: Values, column_sets: Iterable[Sequence[str]]) -> list[np.ndarray]:
    rows = list(
        zip(*[[naive_cell(schema[name], value) for value in values[name]] for name in schema.names], strict=True)
    )
    kept = [dict(zip(schema.names, row, strict=True)) for row in rows if None not in row]
    found = []
    for columns in column_sets:
        counts = np.zeros(schema.sizes(columns), dtype=np.int64)
        for row in kept:
            counts[tuple(row[name] for name in columns)] += 1
        found.append(counts)
    return found


# --- the same values, held in every way ------------------------------------------------------------------------------


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def native(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds <= {int} and any(value is not None and value >= 2**63 for value in values):
        return pa.array(values, pa.uint64())
    if len(kinds) > 1:
        return pa.array([None if value is None else as_text(value) for value in values], pa.string())
    return pa.array(
        values,
        {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_(), Decimal: None}.get(
            next(iter(kinds), str)
        )
        if not kinds or not issubclass(next(iter(kinds)), datetime.date)
        else None,
    )


def arrow(values: Values) -> pa.Table:
    return pa.table({name: native(held) for name, held in values.items()})


def texts(values: Values) -> pa.Table:
    return pa.table({name: pa.array(map(as_text, held), pa.string()) for name, held in values.items()})


def write_csv(values: Values, path: Path, *, start: str = "", header: bool = True, **how: Any) -> Path:
    held = io.StringIO()
    writer = csv.writer(held, **{"lineterminator": "\n", **how})
    if header:
        writer.writerow(values)
    writer.writerows(zip(*[map(as_text, column) for column in values.values()], strict=True))
    path.write_bytes((start + held.getvalue()).encode())
    return path


def in_csv(values: Values, folder: Path) -> Any:
    return write_csv(values, folder / "people.csv")


def in_quoted_csv(values: Values, folder: Path) -> Any:
    return write_csv(values, folder / "q.csv", start="\ufeff", quoting=csv.QUOTE_ALL, lineterminator="\r\n")


def in_tsv(values: Values, folder: Path) -> Any:
    return write_csv(values, folder / "people.tsv", delimiter="\t")


def in_csv_files(values: Values, folder: Path) -> Any:
    half = len(next(iter(values.values()))) // 2
    write_csv({name: held[:half] for name, held in values.items()}, folder / "part-1.csv")
    write_csv({name: held[half:] for name, held in reversed(values.items())}, folder / "part-2.csv")
    return folder / "part-*.csv"


def in_parquet(values: Values, folder: Path) -> Any:
    pq.write_table(arrow(values), folder / "people.parquet", row_group_size=50)
    return folder / "people.parquet"


def in_text_parquet(values: Values, folder: Path) -> Any:
    pq.write_table(texts(values), folder / "texts.parquet")
    return folder / "texts.parquet"


def in_parquet_folder(values: Values, folder: Path) -> Any:
    parts = folder / "parts"
    parts.mkdir()
    held = arrow(values)
    for at in range(3):
        pq.write_table(held.slice(at * 40, 40 if at < 2 else None), parts / f"{at}.parquet", compression="zstd")
    (parts / "_SUCCESS").touch()
    return parts


def in_arrow(values: Values, folder: Path) -> Any:
    return arrow(values)


def in_arrow_chunks(values: Values, folder: Path) -> Any:
    held = arrow(values)
    return pa.concat_tables([held.slice(at, 1) for at in range(held.num_rows)] or [held])


def in_arrow_dictionaries(values: Values, folder: Path) -> Any:
    held = arrow(values)
    columns = [c if pa.types.is_boolean(c.type) else c.dictionary_encode() for c in held.columns]
    return pa.table(columns, held.column_names)


def in_arrow_views(values: Values, folder: Path) -> Any:
    held = texts(values)
    return pa.table(
        [c.cast(pa.string_view() if at % 2 else pa.large_string()) for at, c in enumerate(held.columns)],
        held.column_names,
    ).slice(0)


def in_arrow_stream(values: Values, folder: Path) -> Any:
    return arrow(values).to_reader(max_chunksize=7)


def in_pandas(values: Values, folder: Path) -> Any:
    pytest.importorskip("pandas", reason="pandas is not installed")
    return arrow(values).to_pandas()


def in_pandas_objects(values: Values, folder: Path) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame({name: pandas.Series(held, dtype=object) for name, held in values.items()})


def in_polars(values: Values, folder: Path) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.from_arrow(arrow(values))


def in_duckdb(values: Values, folder: Path, held: pa.Table | None = None) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = folder / f"people{len(list(folder.iterdir()))}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", arrow(values) if held is None else held)
        connection.execute('create table "the ""people" as select * from given')
    return path


def in_text_duckdb(values: Values, folder: Path) -> Any:
    return in_duckdb(values, folder, texts(values))


def in_postgres(values: Values, folder: Path, *, parts: int = 1) -> Any:
    kinds = {pa.int64(): "bigint", pa.float64(): "double precision", pa.bool_(): "boolean", pa.string(): "text"}
    kinds |= {pa.date32(): "date", pa.timestamp("us"): "timestamp"}
    held = arrow(values)
    named = {field.name: kinds.get(field.type, "numeric") for field in held.schema}
    return server().hold(held.to_pydict(), named, parts)


def in_postgres_parts(values: Values, folder: Path) -> Any:
    return in_postgres(values, folder, parts=3)


def in_text_postgres(values: Values, folder: Path) -> Any:
    return server().hold(texts(values).to_pydict(), dict.fromkeys(values, "varchar"))


def in_numeric_postgres(values: Values, folder: Path) -> Any:
    """Every number a numeric, every time one with a zone, which lies in the day that it is by UTC."""
    given, kinds = arrow(values).to_pydict(), {}
    for name, held in given.items():
        found = {type(value) for value in held if value is not None}
        if found <= {int, float, Decimal}:
            kinds[name] = "numeric"
            given[name] = [Decimal(repr(value)) if isinstance(value, float) else value for value in held]
        elif found == {datetime.datetime}:
            kinds[name], tokyo = "timestamptz", datetime.timezone(datetime.timedelta(hours=9))
            given[name] = [time and time.replace(tzinfo=datetime.UTC).astimezone(tokyo) for time in held]
        else:
            kinds[name] = "boolean" if found == {bool} else "text"
    return server().hold(given, kinds)


def in_spark(values: Values, folder: Path) -> Any:
    held = arrow(values)
    wide = [column.cast(pa.decimal128(20, 0)) if column.type == pa.uint64() else column for column in held.columns]
    return spark().createDataFrame(pa.table(wide, held.column_names)).repartition(3)


KINDS: list[Any] = [
    in_csv, in_quoted_csv, in_tsv, in_csv_files, in_parquet, in_text_parquet, in_parquet_folder, in_arrow,
    in_arrow_chunks, in_arrow_dictionaries, in_arrow_views, in_arrow_stream, in_pandas, in_pandas_objects, in_polars,
    in_duckdb, in_text_duckdb, in_postgres, in_postgres_parts, in_text_postgres, in_numeric_postgres,
]  # fmt: skip
KINDS = [pytest.param(kind, id=kind.__name__[3:]) for kind in KINDS]
KINDS.append(pytest.param(in_spark, id="spark"))  # its files have tests of their own


@pytest.fixture(params=KINDS)
def hold(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Values, Schema], Table]:
    def opened(values: Values, schema: Schema) -> Table:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        source = request.param(values, folder)
        if isinstance(source, tuple):
            return open_table(source[0], schema, table=source[1])
        kind = source.suffix if isinstance(source, Path) else ""
        named = 'the "people' if kind == ".duckdb" else None
        return open_table(source, schema, table=named, multiline=kind in (".csv", ".tsv"))

    return opened


# --- the suite -------------------------------------------------------------------------------------------------------

# fmt: off
TEXTS = ("b", "a", 'o"x', "x,y", "l\nm", "l\r\nm", "é", "'; drop table people; --", "NA", "漢字")
DIRTY_TEXTS = [*TEXTS, "B", " b", "b ", "", None, "e\u0301", "none", "NULL", "nan", "a\0", "\t", "0", "-1", "\\", "b'"]
WRITTEN = ["3", "+3", " 3 ", "3.0", "3.", ".0", "3e0", "30e-1", "0003", "3.5", "-1", "10", "1e400", "-1e400", "", "abc",
           "1_0", "٣", "0x3", "3 3", "--3", "nan", "NaN", "inf", "-Infinity", "9" * 400, "0" * 400 + "7", "1e", "+",
           ".", "\t4", "9.0000000000000000000001", "-0", "0.1", "0.10", "1e-1", "+.1", "1000", "999.99999999999999999",
           "2500.5", "0.1.2", "1,5", "0.09999999999999999999", "9007199254740993", "9007199254740993.0"]
REAL = [0.0, 9.0, 9.5, -0.0, 4.5, -0.5, 1e300, -1e300, math.inf, -math.inf, math.nan, None, 5e-324, -5e-324, 0.1,
        0.09999999999999999, 999.9999999999999, 1000.0, 2500.5, 2500.5000000000005]
MONEY = [*map(Decimal, ("0.30", "0.29", "0.31", "10.00", "10.01", "-0.01", "3.00", "3.01", "9.00", "-1.00")), None]
HUGE = [Decimal("3"), Decimal("9"), Decimal(10) ** 25, -Decimal(10) ** 25, Decimal(2) ** 63, -Decimal(2) ** 64, None]
DAY, NOON = datetime.date, datetime.datetime
DAYS = [DAY(2024, 1, 14), DAY(2024, 1, 15), DAY(2024, 1, 31), DAY(2024, 2, 1), DAY(2024, 2, 29), DAY(2024, 12, 31),
        DAY(2025, 1, 1), DAY(1969, 12, 31), DAY(1970, 1, 1), DAY(9999, 12, 31), DAY(1, 1, 1), None]
TIMES = [NOON(2024, 1, 14, 23, 59, 59, 999999), NOON(2024, 1, 15), NOON(2024, 2, 29, 12, 30), NOON(2025, 1, 1),
         NOON(2024, 12, 31, 23, 59, 59), NOON(1969, 12, 31, 23, 59), None]
WRITTEN_DAYS: dict[str, Any] = {
    **{str(day): day for day in DAYS if day}, " 2024-03-01\t": DAY(2024, 3, 1), "2024-03-01T23:59": DAY(2024, 3, 1),
    "2024-03-01 00:00:00": DAY(2024, 3, 1), "2024-03-01T23:59:60.123Z": DAY(2024, 3, 1),
    "2024-03-01T00:30+01:00": DAY(2024, 2, 29), "2024-03-01 23:30:00-0100": DAY(2024, 3, 2),
    "2024-03-01T05:00+05": DAY(2024, 3, 1), "2024-03-01 12:00:00.5 +02:00": DAY(2024, 3, 1), "": "",
    **dict.fromkeys(["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "0000-01-01", "10000-01-01",
                     "2024-1-5", "20240105", "24-01-05", "05/01/2024", "2024-W01-1", "2024-03", "2024-03-01T24:00",
                     "2024-03-01T12:60", "2024-03-01T1", "2024-03-01x", "٢٠٢٤-٠١-٠١", "nan", "NaT", "now", "-1",
                     "19800", "-2024-01-01", "2024-03-01T12:00+25:00", "2024-01-15-2024-01-16"], b"no day")}
POOLS: dict[str, tuple[type[Column], tuple[Any, ...], list[Any]]] = {
    "texts": (Categories, (TEXTS,), DIRTY_TEXTS),
    "one text": (Categories, (("a",),), ["a", "A", None]),
    "empty text": (Categories, (("", "a"),), ["", "a", "b"]),
    "texts of numbers": (Categories, (("7", "-3", "0", "07"),), [7, -3, 0, 5, None]),
    "texts of reals": (Categories, (("0.5", "0.50", "-1.25"),), [0.5, -1.25, 0.75, math.inf, None]),
    "named numbers": (Categories, ((5, -1, 300),), [5, -1, 300, 2, -300, 301, None, None]),
    "named reals": (Categories, ((5, -1, 300),), [5.0, -1.0, 300.0, 5.5, math.nan, math.inf, -math.inf, 1e300]),
    "written names": (Categories, ((3, 0, 9),), WRITTEN),
    "far numbers": (Categories, ((2**62, -(2**62), 0, 10**15),), [2**62, 2**62 + 1, -(2**62), 0, 10**15, 1]),
    "truths": (Categories, ((True, False),), [True, False, None]),
    "written truths": (Categories, ((False, True),), ["true", "True", "FALSE", "tRue", "1", "", None]),
    "only true": (Categories, ((True,),), [True, False, None]),
    "bytes": (Integers, (0, 255), [0, 1, 254, 255, 256, -1, None]),
    "ages": (Integers, (18, 120), [17, 18, 19, 119, 120, 121, 0, -18, 274, None]),
    "negative": (Integers, (-70000, -5), [-70001, -70000, -69999, -5, -4, 0, 60000, 2**40, -(2**40)]),
    "real ages": (Integers, (0, 9), REAL),
    "written ages": (Integers, (0, 9), WRITTEN),
    "written numbers": (Integers, (-5000, 5000), WRITTEN),
    "int64": (Integers, (-3, 3), [-(2**63), 2**63 - 1, -3, 3, 0, 2**32, 2**32 + 1, 256, -256]),
    "uint64": (Integers, (0, 3), [2**64 - 1, 2**63, 2**63 + 1, 0, 3, 4]),
    "written far numbers": (Integers, (2**53, 2**53 + 5), ["9007199254740993.0", "9007199254740993"]),
    "far": (Integers, (2**62 - 5, 2**62), [2**62 - 6, 2**62 - 5, 2**62, 2**62 + 1, 0, -(2**62)]),
    "incomes": (Numbers, ((0, 0.1, 1000, 2500.5),), REAL),
    "written incomes": (Numbers, ((0, 0.1, 1000, 2500.5),), WRITTEN),
    "2^53": (Numbers, ((-(2**53), 0, 2**53),), [2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**63 - 1, -(2**63), 0]),
    "uint64 at 2^53": (Numbers, ((0, 2**53),), [2**53, 2**53 + 1, 2**64 - 1, 0]),
    "many edges": (Numbers, (tuple(at / 4 for at in range(41)),), [*[at / 8 for at in range(-3, 90)], math.nan]),
    "money": (Numbers, ((0, 0.3, 10),), MONEY),
    "whole money": (Integers, (0, 9), MONEY),
    "huge money": (Integers, (0, 9), HUGE),
    "days": (Dates, (DAY(2024, 1, 15), DAY(2024, 12, 31), "month"), DAYS),
    "times": (Dates, (DAY(2024, 1, 15), DAY(2024, 12, 31), "month"), TIMES),
    "written days": (Dates, (DAY(2024, 1, 15), DAY(2024, 12, 31), "month"), list(WRITTEN_DAYS)),
    "huge real money": (Numbers, ((0, 9),), HUGE),
}
# fmt: on


def column_of(pool: str, name: str, **where: str) -> Column:
    kind, domain, _ = POOLS[pool]
    return kind(name, *domain, **where)  # type: ignore[arg-type]


def places(pool: str, draw: random.Random) -> dict[str, str]:
    ordered = POOLS[pool][0] is not Categories
    return {"missing": draw.choice(["drop", CELL]), "outside": draw.choice(["drop", CELL, *([CLAMP] * ordered)])}


@pytest.mark.parametrize("outside", [CELL, CLAMP])
def test_every_source_puts_every_value_where_a_naive_reader_puts_it(outside: str, hold: Callable[..., Table]) -> None:
    pools = [pool for pool in POOLS if outside == CELL or POOLS[pool][0] is not Categories]
    schema = Schema(column_of(pool, pool, missing=CELL, outside=outside) for pool in pools)
    rows = max(len(values) for _, _, values in POOLS.values())
    held = {pool: [POOLS[pool][2][at % len(POOLS[pool][2])] for at in range(rows)] for pool in pools}
    sets = [(pool,) for pool in pools]
    for pool, counts, expected in zip(
        pools, hold(held, schema).counts(sets), naive_counts(schema, held, sets), strict=True
    ):
        np.testing.assert_array_equal(counts, expected, err_msg=pool)
        assert counts.dtype == np.int64


@pytest.mark.parametrize("seed", range(4))
def test_random_schemas_over_dirty_rows_count_alike_everywhere(seed: int, hold: Callable[..., Table]) -> None:
    draw = random.Random(seed)
    chosen = draw.sample([pool for pool in POOLS if pool not in {"int64", "uint64", "uint64 at 2^53"}], 5)
    schema = Schema(column_of(pool, f'{pool}, "{at}"', **places(pool, draw)) for at, pool in enumerate(chosen))
    rows = draw.choice([1, 30, 150])
    held = {
        column.name: [draw.choice(POOLS[pool][2]) for _ in range(rows)]
        for column, pool in zip(schema, chosen, strict=True)
    }
    sets = [columns for k in range(4) for columns in combinations(draw.sample(schema.names, 5), k)]
    table = hold(held, schema)
    for counts, expected in zip(table.counts(sets), naive_counts(schema, held, sets), strict=True):
        np.testing.assert_array_equal(counts, expected)
    assert all(int(counts.sum()) == int(table.counts([()])[0]) for counts in table.counts(sets))


def test_one_table_gives_the_same_release_however_it_is_held(hold: Callable[..., Table], tmp_path: Path) -> None:
    schema = Schema(
        [Integers("a", 0, 9, outside=CLAMP), Categories("b", ("x", "y"), missing=CELL), Numbers("c", (0, 1, 5))]
    )
    draw = random.Random(7)
    held = {
        "a": [draw.choice([0, 3, 9, 12, None]) for _ in range(200)],
        "b": [draw.choice(["x", "y", "z", None]) for _ in range(200)],
        "c": [draw.choice([0.0, 0.5, 1.0, 4.75, 5.0, None]) for _ in range(200)],
    }
    released = []
    for table in (hold(held, schema), open_table(arrow(held), schema)):
        budget = Budget.of(1, "1e-9")
        curator = Curator(table, MemoryLedger(budget), Neighbors.ADD_REMOVE)
        curator._noise = Scripted(*(at * at % 17 - 8 for at in range(1000)))
        released.append(release_marginals(curator, marginals(schema, 2), budget).tables)
    for columns, counts in released[0].items():
        np.testing.assert_array_equal(counts, released[1][columns])


def test_an_empty_table_counts_nothing(hold: Callable[..., Table]) -> None:
    schema = Schema([Integers("a", 0, 3), Categories("b", ("x", "y"), outside=CELL)])
    one, both, none = hold({"a": [], "b": []}, schema).counts([("a",), ("b", "a"), ()])
    assert (one.shape, both.shape, none.shape) == ((4,), (3, 4), ())
    assert int(one.sum()) == int(both.sum()) == int(none) == 0


def test_the_order_of_rows_changes_nothing(hold: Callable[..., Table]) -> None:
    draw = random.Random(1)
    schema = Schema([Integers("a", 0, 3, outside=CELL), Categories("b", ("x", "y"))])
    rows = [(draw.randrange(5), draw.choice("xyz")) for _ in range(200)]
    found = []
    for _ in range(2):
        draw.shuffle(rows)
        found.append(hold({"a": [a for a, _ in rows], "b": [b for _, b in rows]}, schema).counts([("a", "b")])[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 3000])
def test_counts_do_not_see_where_batches_end(
    rows: int, hold: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "CHUNK_ROWS", 1024)
    monkeypatch.setattr("tacit.engines.delimited.BLOCK", 1000)
    schema = Schema([Integers("a", 0, 9), Categories("b", ("x", "y"))])
    held = {"a": [at % 11 for at in range(rows)], "b": ["xy"[at % 2] for at in range(rows)]}
    for counts, expected in zip(
        hold(held, schema).counts([("a", "b"), ()]), naive_counts(schema, held, [("a", "b"), ()]), strict=True
    ):
        np.testing.assert_array_equal(counts, expected)


# --- the kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [65535, 65536, 65537, 2**17 - 1, 2**17, 2**17 + 1])
def test_rows_around_a_chunk_are_all_counted(rows: int) -> None:
    schema = Schema([Integers("a", 0, 6), Integers("b", 0, 299)])
    a, b = np.arange(rows) % 7, np.arange(rows) % 300
    counts = open_table(pa.table({"a": a, "b": b}), schema).counts([("b", "a")])[0]
    np.testing.assert_array_equal(counts, np.bincount(b * 7 + a, minlength=2100).reshape(300, 7))


def test_random_sets_of_random_sizes_are_counted_as_by_hand() -> None:
    draw = np.random.default_rng(3)
    for _ in range(30):
        sizes = {f"c{at}": int(draw.choice([1, 2, 3, 40, 255, 256, 257, 1000, 65536])) for at in range(6)}
        codes = {name: draw.integers(0, size, 700).astype(np.min_scalar_type(size - 1)) for name, size in sizes.items()}
        sets = [c for k in (0, 1, 2, 3) for c in combinations(sizes, k) if math.prod(sizes[n] for n in c) <= 10**6]
        chosen = [sets[at] for at in draw.choice(len(sets), min(12, len(sets)), replace=False)]
        dropped = draw.random(700) < 0.1
        tally = Tally(sizes, chosen)
        for start in range(0, 700, 90):
            part = slice(start, start + 90)
            tally.add(
                {n: c[part] for n, c in codes.items()}, len(dropped[part]), dropped[part] if start % 180 else None
            )
        away = dropped & (np.arange(700) // 90 % 2 == 1)
        for columns in chosen:
            expected = np.zeros([sizes[name] for name in columns], dtype=np.int64)
            np.add.at(expected, tuple(codes[name][~away] for name in columns), 1) if columns else None
            expected = expected if columns else np.array((~away).sum())
            np.testing.assert_array_equal(tally.counts(columns), expected)


def test_a_table_of_ten_million_cells_is_counted() -> None:
    schema = Schema([Integers("a", 0, 999_999), Integers("b", 0, 9)])
    counts = open_table(pa.table({"a": [0, 999_999, 999_999], "b": [0, 9, 9]}), schema).counts([("a", "b")])[0]
    assert (counts.shape, int(counts.sum()), int(counts[-1, -1]), int(counts[0, 0])) == ((1_000_000, 10), 3, 2, 1)


def test_every_column_set_is_within_its_common_table() -> None:
    draw = random.Random(2)
    for _ in range(50):
        sizes = {f"c{at}": draw.choice([1, 2, 5, 17, 100, 3000]) for at in range(8)}
        sets = [tuple(name for name in sizes if draw.random() < 0.3) for _ in range(20)]
        found = grouped(sizes, sets)
        assert set(found) == set(sets)
        for columns, held in found.items():
            assert set(columns) <= set(held)
            assert held == tuple(name for name in sizes if name in held)
            cells = math.prod(sizes[name] for name in held)
            assert cells < counting.SHARED_CELLS or held in sets


def test_a_single_row_is_one_in_each_column_set() -> None:
    schema = Schema([Integers("a", 0, 3), Integers("b", 0, 3)])
    people = {"a": [0, 1, 2], "b": [1, 1, 7]}  # the last row is dropped by b, and so by every count
    for a, b in zip(open_table(pa.table(people), schema).counts([("a",), ("a", "b"), ()]), [2, 2, 2], strict=True):
        assert int(a.sum()) == b


# --- the table -------------------------------------------------------------------------------------------------------


class Watched:
    """A source that counts how often it is read."""

    def __init__(self, table: pa.Table) -> None:
        self.kind, self.coded, self.rows, self.passes, self._table = "watched", frozenset(), table.num_rows, 0, table

    def check(self) -> None: ...

    def headers(self) -> Any:
        yield [(field.name, field.type) for field in self._table.schema]

    def batches(self, names: tuple[str, ...], rows: int) -> Any:
        self.passes += 1
        self.read = names
        yield from self._table.select(list(names)).to_batches()


@pytest.fixture
def watched() -> tuple[Table, Watched]:
    schema = Schema([Integers(name, 0, 4, missing=CELL, outside=CELL) for name in "abc"] + [Integers("d", 0, 4)])
    draw = np.random.default_rng(1)
    source = Watched(pa.table({name: draw.integers(0, 5, 100) for name in "abcd"}))
    return Table(schema, source), source


def test_one_pass_serves_all_sets_and_what_it_counted_is_kept(watched: tuple[Table, Watched]) -> None:
    table, source = watched
    first = table.counts([("a", "b"), ("b", "c")])
    again = table.counts([("b", "a"), ("c",), (), ("c", "b")])
    assert source.passes == 1
    np.testing.assert_array_equal(first[0].T, again[0])
    np.testing.assert_array_equal(first[1].sum(axis=0), again[1])
    np.testing.assert_array_equal(first[1], again[3].T)
    assert int(again[2]) == 100
    table.counts([("d", "a")])
    assert source.passes == 2


def test_only_the_columns_that_matter_are_read(watched: tuple[Table, Watched]) -> None:
    table, source = watched
    table.counts([("b",)])
    assert source.read == ("b", "d")  # d can drop a row, a and c cannot
    table.counts([()])
    assert source.passes == 1


def test_old_counts_are_forgotten_when_there_are_too_many(
    watched: tuple[Table, Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, source = watched
    monkeypatch.setattr(table_module, "CACHED_BYTES", 400)
    expected = [table.counts([(name,)])[0].copy() for name in "abcd"]
    assert sum(held.nbytes for held in table._tables.values()) <= 400
    assert source.passes == 4
    for name, counts in zip("abcd", expected, strict=True):
        np.testing.assert_array_equal(table.counts([(name,)])[0], counts)
    monkeypatch.setattr(table_module, "CACHED_BYTES", 0)
    np.testing.assert_array_equal(table.counts([("a",)])[0], expected[0])


def test_counts_cannot_be_written_to(watched: tuple[Table, Watched]) -> None:
    for counts in watched[0].counts([("a",), ("b", "a"), ("a", "b"), ()]) + watched[0].counts([("a", "b")]):
        with pytest.raises(ValueError, match="read-only"):
            counts[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            counts.flags.writeable = True


def test_what_the_schema_does_not_have_is_refused(watched: tuple[Table, Watched]) -> None:
    table, source = watched
    with pytest.raises(InvalidSchema, match="no column 'zip'"):
        table.counts([("zip",)])
    with pytest.raises(InvalidQuery, match="twice"):
        table.counts([("a", "a")])
    wide = Schema([Integers(name, 0, 99_999) for name in "ab"])
    with pytest.raises(InvalidQuery, match="10000000000 cells"):
        open_table(pa.table({"a": [1], "b": [1]}), wide).counts([("a", "b")])
    assert source.passes == 0


def test_progress_hears_of_every_row(watched: tuple[Table, Watched], tmp_path: Path) -> None:
    heard: list[tuple[int, int | None]] = []
    watched[0].read([("a",)], lambda done, whole: heard.append((done, whole)))
    assert heard == [(100, 100)]
    path = in_parquet({"d": [1] * 120}, tmp_path)
    heard.clear()
    table = open_table(path, Schema([Integers("d", 0, 4)]))
    table.read([("d",)], lambda done, whole: heard.append((done, whole)))
    assert heard[-1] == (120, 120)
    table.read([("d",)], lambda done, whole: pytest.fail("nothing is read twice"))


def test_threads_get_the_same_counts_from_one_pass(watched: tuple[Table, Watched]) -> None:
    table, source = watched
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(table.counts([("a", "b", "c")])[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), source.passes) == (8, 1)
    assert all(np.array_equal(found[0], counts) for counts in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    "kind", [in_csv, in_parquet, in_arrow, in_duckdb, in_postgres], ids=lambda kind: kind.__name__[3:]
)
def test_a_forked_process_reads_on_although_a_thread_was_reading(kind: Any, tmp_path: Path) -> None:
    schema = Schema([Integers("a", 0, 4), Integers("b", 0, 4)])
    values = {"a": [at % 5 for at in range(300)], "b": [at % 3 for at in range(300)]}
    source = kind(values, tmp_path)
    named = 'the "people' if kind is in_duckdb else None
    source, named = source if isinstance(source, tuple) else (source, named)
    table = open_table(source, schema, table=named)
    table.counts([("a",)])  # whatever starts threads has started them
    with table._lock():  # as another thread would hold it
        child = os.fork()
        if not child:
            same = np.array_equal(table.counts([("a", "b")])[0], naive_counts(schema, values, [("a", "b")])[0])
            os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_frame_is_taken_as_it_was_when_it_was_opened() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1, 1, 1], "b": np.zeros(3)})
    table = open_table(frame, Schema([Integers("a", 0, 4), Numbers("b", (0, 1))]))
    frame.iloc[:, 0] = 3
    frame.loc[:, "b"] = 7.0
    frame["a"].to_numpy(copy=False).base is None or None
    assert [int(n) for n in table.counts([("a",)])[0]] == [0, 3, 0, 0, 0]


def test_pandas_categories_and_nullable_columns_are_read() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(
        {
            "c": pandas.Categorical(["u", "v", None, "w"], categories=["w", "v", "u"]),
            "n": pandas.array([1, None, 3, 3], dtype="Int64"),
            "k": pandas.Categorical([10, 20, 20, 10]),
        }
    )
    schema = Schema([Categories("c", ("u", "v"), missing=CELL, outside=CELL), Integers("n", 0, 3, missing=CELL),
                     Categories("k", (20, 10))])  # fmt: skip
    c, n, k = open_table(frame, schema).counts([("c",), ("n",), ("k",)])
    assert (c.tolist(), n.tolist(), k.tolist()) == ([1, 1, 1, 1], [0, 1, 0, 2, 1], [2, 2])


def test_mixed_values_in_a_pandas_column_decide_nothing() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    import datetime

    dirty = [1, "2", 3.0, None, math.nan, True, b"4", [5], {"six": 6}, datetime.date(2020, 1, 1), 10**400, -(10**400),
             pandas.NA, pandas.NaT, np.int8(1), np.float32(2), "\ud800", Decimal(3), object(), "x", Decimal("NaN"),
             Decimal("sNaN"), bytearray(b"4"), memoryview(b"4"), np.datetime64(3, "ns"), np.timedelta64(3, "ns"),
             np.datetime64("NaT"), Spiteful(3)]  # fmt: skip
    frame = pandas.DataFrame({"a": pandas.Series(dirty, dtype=object)})
    counts = open_table(frame, Schema([Integers("a", 0, 4, missing=CELL, outside=CELL)])).counts([("a",)])[0]
    assert counts.tolist() == [0, 2, 2, 2, 3, 7, 12]


class Spiteful(float):
    def is_integer(self) -> bool:
        raise RuntimeError("CANARY")


def test_no_row_of_a_pandas_column_decides_what_becomes_of_another() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    schema = Schema([Categories("a", ("1", "x"), missing=CELL, outside=CELL)])

    def counts(values: list[Any], dtype: Any) -> list[int]:
        frame = pandas.DataFrame({"a": pandas.Series(values, dtype=dtype)})
        return [int(n) for n in open_table(frame, schema).counts([("a",)])[0]]

    odd = [Decimal("NaN"), bytearray(b"1"), memoryview(b"x"), "x", None, b"1", np.datetime64(1, "ns"), "\ud800", 1]
    for dtype, values in ((object, odd), ("category", ["x", 1, None, b"1"]), ("string[python]", ["x", "\ud800", None])):
        alone = np.array(counts(["1", "1"], dtype))
        for value in values:
            assert sorted((counts(["1", value, "1"], dtype) - alone).tolist()) == [0, 0, 0, 1], (dtype, value)


def test_a_lazy_frame_is_refused_without_a_warning() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidData, match="'LazyFrame'"):
            open_table(polars.DataFrame({"a": [1]}).lazy(), Schema([Integers("a", 0, 1)]))


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
     pa.float32(), pa.float64(), pa.decimal128(5, 0), pa.decimal128(9, 4), pa.decimal128(38, 30), pa.decimal256(40, 2),
     pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.uint16(), pa.string()), pa.string(), pa.large_string(),
     pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view()],
    ids=str,
)  # fmt: skip
def test_every_arrow_type_of_a_number_reads_the_same(kind: pa.DataType) -> None:
    values = [3, 0, 100, None, 7, 8, 120]
    text = is_texty(kind) or (pa.types.is_dictionary(kind) and is_texty(kind.value_type))
    given = [None if value is None else str(value) for value in values] if text else values
    if pa.types.is_decimal(kind):
        given = [None if value is None else Decimal(value) for value in values]
    if pa.types.is_floating(kind):
        number = np.float16 if kind == pa.float16() else float  # which older releases of Arrow insist on
        given = [None if value is None else number(value) for value in values]
    flat = kind.value_type if pa.types.is_dictionary(kind) else kind
    held = pa.array(given, flat)
    held = held.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else held
    table = pa.table({name: pa.concat_arrays([held, held]).slice(3, 7) for name in "abcd"})
    schema = Schema(
        [
            Integers("a", 0, 100, missing=CELL, outside=CELL),
            Numbers("b", (0, 7, 100), missing=CELL, outside=CELL),
            Categories("c", (100, 7), missing=CELL, outside=CELL),
            Categories("d", ("100", "7"), missing=CELL, outside=CELL),
        ]
    )
    a, b, c, d = open_table(table, schema).counts([("a",), ("b",), ("c",), ("d",)])
    assert {at: int(n) for at, n in enumerate(a) if n} == {0: 1, 3: 1, 7: 1, 8: 1, 100: 1, 101: 1, 102: 1}
    assert (b.tolist(), c.tolist(), d.tolist()) == ([2, 3, 1, 1], [1, 1, 1, 4], [1, 1, 1, 4])


EXTREMES: list[tuple[pa.DataType, list[Any]]] = [
    *[(kind, [0, 2 ** (kind.bit_width - (1 if signed else 0)) - 1, -(2 ** (kind.bit_width - 1)) * signed])
      for signed, kinds in ((1, (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
                            (0, (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()))) for kind in kinds],
    *[(kind, [number(x) for x in (0.0, math.nan, math.inf, -math.inf, 6e-8, -65504.0)])
      for kind, number in ((pa.float16(), np.float16), (pa.float32(), float))],
    (pa.float64(), [math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308]),
    *[(kind, [Decimal(f"{sign}{'9' * kind.precision}e{-kind.scale}") for sign in ("", "-")] + [Decimal(0)])
      for kind in (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal128(22, 22), pa.decimal128(5, -3),
                   pa.decimal256(76, 0), pa.decimal256(76, 76),
                   *[getattr(pa, name)(*size)
                     for name, sizes in (("decimal32", ((9, 0), (9, 4))), ("decimal64", ((18, 0), (18, 2), (18, 18))))
                     if hasattr(pa, name) for size in sizes])],
    *[(kind, ["", "9" * 400, "-1e400", "0e99999999999999999999", "nan", "\0", "\U0010ffff"])
      for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())],
]  # fmt: skip
INDICES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


@pytest.mark.parametrize("index", [None, *INDICES], ids=str)
@pytest.mark.parametrize(("kind", "extremes"), EXTREMES, ids=lambda part: str(part) if type(part) is not list else "")
def test_no_value_of_any_type_keeps_another_row_from_its_cell(
    kind: pa.DataType, extremes: list[Any], index: pa.DataType | None
) -> None:
    schema = Schema(
        [
            Integers("a", 0, 5, missing=CELL, outside=CELL),
            Numbers("b", (0, 0.5, 5), missing=CELL, outside=CELL),
            Categories("c", (0, 1), missing=CELL, outside=CELL),
            Categories("d", ("0", "1"), missing=CELL, outside=CELL),
        ]
    )

    def counts(given: list[Any]) -> list[Any]:
        values = pa.array(given, kind)
        if index is not None:
            known = [value for value in given if value is not None]
            places = [None if value is None else at for at, value in enumerate(given)]
            values = pa.DictionaryArray.from_arrays(pa.array(places, index), pa.array(known, kind))
        table = open_table(pa.table(dict.fromkeys("abcd", values)), schema)
        return table.counts([(name,) for name in "abcd"])

    alone = counts(extremes[:1] * 3)
    for value in [*extremes, None]:
        for before, after in zip(alone, counts([*extremes[:1] * 3, value]), strict=True):
            assert sorted((after - before).tolist())[-2:] == [0, 1]


def test_a_long_decimal_costs_its_own_row_alone() -> None:
    values = pa.array([Decimal(at % 10) for at in range(50_000)] + [Decimal(10) ** 20, None], pa.decimal128(38, 2))
    asked: list[int] = []

    class Asked(IntegerCells):
        def _of_figures(self, figures: Iterable[Any]) -> Any:
            given = list(figures)
            asked.append(len(given))
            return super()._of_figures(given)

    codes, dropped = Asked(Integers("a", 0, 9, missing=CELL, outside=CELL))(values)
    assert (asked, dropped) == ([1], None)
    assert np.bincount(codes).tolist() == [5000] * 10 + [1, 1]


def is_texty(kind: pa.DataType) -> bool:
    return any(word in str(kind) for word in ("string", "binary"))


def test_queries_are_answered_from_any_source(hold: Callable[..., Table]) -> None:
    schema = Schema([Integers("age", 0, 9), Categories("sex", ("F", "M"))])
    values = {"age": [1, 2, 2, 9, 11], "sex": ["F", "M", "M", "F", "F"]}
    table = hold(values, schema)
    for query, expected in (
        (Counting.where(schema, {"age": [2, 9], "sex": [1]}), [2]),
        (Counting.where(schema), [4]),
        (Marginal.over(schema, "sex"), [2, 2]),
    ):
        assert query.on_grid(*table.counts(query.reads)).units.tolist() == expected
