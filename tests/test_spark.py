"""Spark: the same counts from a cluster as from a file, though executors die; at most so many rows of each person."""

from __future__ import annotations

import itertools
import logging
import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.person import Person
from tacit.domain.schema import CELL, CLAMP, Categories, Dates, Integers, Neighbors, Schema
from tacit.engines import cluster, tasks
from tacit.engines.bounding import bounded, lots
from tacit.engines.delimited import LONGEST_ROW
from tacit.engines.spark import Spark
from tacit.engines.table import Table, open_table
from tacit.engines.tasks import Count, Lines, packed, unpacked
from tacit.errors import DataUnavailable, InvalidData, InvalidParameter, InvalidSchema
from tacit.privacy.budget import Budget
from tacit.service.contract import Contract
from tacit.service.people import People
from tests.bad_inputs_engines import CANARY, PEOPLE, parquet, written
from tests.sparks import driver_log, executors, lose_an_executor, spark, wait_for
from tests.test_engine_dirty import AGES, DIRTY, GOOD, told
from tests.test_engines import POOLS, arrow, column_of, naive_counts, write_csv

CONSTANT = "the source could not be read to its end; what was charged stays charged, nothing was drawn."
CHANGED = "the source has changed since it was opened; what was charged stays charged, nothing was drawn."
KEY = b"the key of a test"


def keyed(count: int) -> Any:
    """The lots of which a key is made: zeros, so that two tables choose alike."""
    return np.zeros(count, dtype=np.int64)


def counts_of(table: Table, *column_sets: tuple[str, ...]) -> list[Any]:
    return [counts.tolist() for counts in table.counts(column_sets)]


# --- files: what a row is and where it goes is what every other engine says ------------------------------------------


def split_as_by_hadoop(content: bytes) -> list[bytes]:
    """The lines of a text file, its header among them."""
    lines = re.split(rb"\r\n|\n|\r", content.removeprefix(b"\xef\xbb\xbf"))
    return lines[:-1] if lines[-1] == b"" else lines


@pytest.mark.parametrize(("more", "expected"), [dirty[1:] for dirty in DIRTY], ids=[dirty[0] for dirty in DIRTY])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_dirty_line_is_the_same_row_to_a_task_of_spark(more: bytes, expected: list[int], size: int) -> None:
    lines = split_as_by_hadoop(b"age,sex\n" + GOOD + more)
    told_of = pa.table({"value": pa.array(lines, pa.binary()), "start": [0] * len(lines), "file": [7] * len(lines)})
    task = Count(AGES, ("age", "sex"), Lines(",", 2), (0, 1), (("age",),))
    sums = pa.Table.from_batches(task(told_of.to_batches(max_chunksize=size)))
    tally, _, _ = tasks.filled(AGES, (("age",),), sums)
    assert sorted(np.repeat(np.arange(12), tally.counts(("age",))).tolist()) == sorted([1, 2, *expected])


def test_a_header_is_left_out_once_for_each_file_and_nowhere_else() -> None:
    rows = [(b"a", 0, 1), (b"1", 0, 1), (b"a", 0, 1), (b"2", 9, 1), (b"a", 0, 2), (b"3", 0, 2), (b"a", 5, 3)]
    texts, starts, files = zip(*rows, strict=True)
    whole = pa.table({"value": pa.array(texts, pa.binary()), "start": starts, "file": files})
    for size in range(1, 8):
        found = [
            value
            for batch in Lines(",", 1).batches(whole.to_batches(max_chunksize=size), [0])
            for value in batch.columns[0].to_pylist()
        ]
        assert found == [b"1", b"a", b"2", b"3", b"a"]


def test_dirty_files_in_one_folder_count_as_the_embedded_engine_counts_them(tmp_path: Path) -> None:
    spark()
    for at, (_, more, _) in enumerate(DIRTY):
        written(tmp_path / f"{at}.csv", b"age,sex\n" + GOOD + more)
    written(tmp_path / "a b%20[1].csv", b"\xef\xbb\xbfage,sex\r\n3,F\r\n4,M")
    written(tmp_path / "other.csv", b"sex,note,age\nF,,5\nM,x\n")
    long = b"x" * (LONGEST_ROW - 5)
    written(tmp_path / "long.csv", b"age,sex\n6," + long + b"\n7,F\n" + b"8," + b"y" * 3 * LONGEST_ROW + b"\n9,M\n")
    column_sets = [("age", "sex"), ("sex",), ()]
    table = open_table(tmp_path, AGES, engine="spark")
    assert counts_of(table, *column_sets) == counts_of(open_table(tmp_path, AGES), *column_sets)


@pytest.mark.parametrize("kind", ["csv", "parquet", "catalogue"])
def test_every_value_goes_to_one_cell_from_files_and_from_the_catalogue(kind: str, tmp_path: Path) -> None:
    session = spark()
    pools = [pool for pool in POOLS if pool not in ("texts", "empty text")] if kind == "csv" else list(POOLS)
    schema = Schema(column_of(pool, pool, missing=CELL, outside=CELL) for pool in pools)
    held = {pool: [POOLS[pool][2][at % len(POOLS[pool][2])] for at in range(60)] for pool in pools}
    if kind == "csv":
        source: Any = write_csv(held, tmp_path / "people.csv")
    else:
        source = tmp_path / "people.parquet"
        pq.write_table(arrow(held), source)
    name = None
    if kind == "catalogue":
        session.sql("create database if not exists tested")
        session.sql(f"create table tested.people using parquet location '{source}'")
        source, name = "spark", "tested.people"
    column_sets = [(pool,) for pool in pools]
    found = open_table(source, schema, engine="spark", table=name).counts(column_sets)
    for counts, expected in zip(found, naive_counts(schema, held, column_sets), strict=True):
        np.testing.assert_array_equal(counts, expected)
    if kind == "catalogue":
        session.sql("drop table tested.people")


def test_parts_of_different_types_and_folders_named_by_values_are_read(tmp_path: Path) -> None:
    spark()
    schema = Schema([Categories("year", ("2020", "007"), outside=CELL), Integers("age", 0, 5, missing=CELL)])
    for year, ages in (("2020", pa.array([1, 2, None], pa.int8())), ("007", pa.array(["1", "5", ""]))):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"age": ages}), tmp_path / f"year={year}" / "part.parquet")
    year, age = counts_of(open_table(tmp_path / "year=007", schema_of_ages(), engine="spark"), (), ("age",))
    assert (year, age) == (3, [0, 1, 0, 0, 0, 1, 1])
    pq.write_table(pa.table({"age": ["3"]}), tmp_path / "year=2020" / "part.parquet")
    table = open_table(tmp_path, schema, engine="spark")
    assert counts_of(table, ("year",), ("age",)) == [[1, 3, 0], [0, 1, 0, 1, 0, 1, 1]]
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    pq.write_table(pa.table({"age": pa.array([1, 2, None], pa.int8()), "x": [0.5] * 3}), mixed / "a.parquet")
    pq.write_table(pa.table({"age": pa.array(["1", "5", ""])}), mixed / "b.parquet")
    assert counts_of(open_table(mixed, schema_of_ages(), engine="spark"), ("age",)) == [[0, 2, 1, 0, 0, 1, 2]]


def schema_of_ages() -> Schema:
    return Schema([Integers("age", 0, 5, missing=CELL)])


def test_a_time_with_a_zone_is_in_its_day_by_utc_whatever_the_session_s_zone() -> None:
    told_of = ("2023-12-31 23:59:59Z", "2024-01-01 00:30:00+01:00", "2024-12-31 23:30:00-01:00", "2024-12-31 22:00:00Z")
    frame = spark().createDataFrame([(text,) for text in told_of], "text string")
    days = Schema([Dates("at", "2024-01-01", "2024-12-31", "year", outside=CELL)])
    for read in ("cast(text as timestamp_ltz)", "text"):
        assert counts_of(open_table(frame.selectExpr(f"{read} as at"), days), ("at",)) == [[1, 3]]


def test_names_are_taken_letter_by_letter() -> None:
    frame = spark().createDataFrame([(1, 2, 3)], '`a.b` int, `A.B` int, `"; drop` int')
    schema = Schema([Integers("A.B", 0, 3), Integers('"; drop', 0, 3)])
    assert counts_of(open_table(frame, schema), ("A.B",), ('"; drop',)) == [[0, 0, 1, 0], [0, 0, 0, 1]]


# --- what is refused at the door, and what fails later ----------------------------------------------------------------


def test_what_spark_cannot_count_is_refused_before_a_row_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = spark()
    frame = session.createDataFrame(pa.table({"age": [1], "sex": [CANARY], "at": [1.5]}))
    parquet(tmp_path / "t.parquet")
    written(tmp_path / "t.csv", b"age,sex\n1,F\n")
    written(tmp_path / "bad.parquet", b"PAR1 no")
    written(tmp_path / "none.csv", b"")
    for open_it, words in (
        (lambda: open_table(frame.drop("sex"), PEOPLE), "no column 'sex'"),
        (lambda: open_table(frame.selectExpr("age", "sex", "sex"), PEOPLE), "'sex' more than once"),
        (lambda: open_table(frame.selectExpr("current_date() as age", "sex"), PEOPLE), "of type 'date32"),
        (lambda: open_table(frame.selectExpr("array(age) as age", "sex"), PEOPLE), "of type 'array'"),
        (lambda: open_table(frame.selectExpr("rand() as age", "sex"), PEOPLE), "draws at random"),
        (lambda: open_table(session.readStream.format("rate").load(), PEOPLE), "no end"),
        (lambda: open_table(frame, PEOPLE, table="t"), "not for a frame"),
        (lambda: open_table(frame, PEOPLE, multiline=True), "not for Spark"),
        (lambda: open_table(frame, PEOPLE, engine="flink"), "'flink'"),
        (lambda: open_table(frame, PEOPLE, person=Person("who", 1)), "no column 'who'"),
        (lambda: open_table(frame, PEOPLE, person=Person("sex", 1)), "none of the universe"),
        (
            lambda: open_table(frame.selectExpr("*", "age > 0 as who"), PEOPLE, person=Person("who", 1)),
            "'who' is of type",
        ),
        (lambda: open_table("spark", PEOPLE, engine="spark", table="no.such"), "no table 'no.such'"),
        (lambda: open_table("spark", PEOPLE, engine="spark", table="'; drop"), "no table"),
        (lambda: open_table(tmp_path, PEOPLE, engine="spark", table="t"), "name 'spark' as source"),
        (lambda: open_table(tmp_path, PEOPLE, engine="spark"), "files of one kind"),
        (lambda: open_table(tmp_path / "none", PEOPLE, engine="spark"), "no data file"),
        (lambda: open_table(tmp_path / "none.csv", PEOPLE, engine="spark"), "header line"),
        (lambda: open_table(tmp_path / "bad.parquet", PEOPLE, engine="spark"), "Parquet file"),
        (lambda: open_table([1], PEOPLE, engine="spark"), "a 'list'"),
    ):
        with pytest.raises(InvalidData, match=re.escape(words)) as caught:
            open_it()
        assert str(caught.value).endswith("Nothing was read.")
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert CANARY not in told(caught.value, frames=False) + "".join(capfd.readouterr())


def test_a_value_that_a_frame_dies_of_is_in_no_message_and_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark().createDataFrame(pa.table({"age": ["1", CANARY], "sex": ["F", "M"]}))
    dying = frame.repartition(2).selectExpr("cast(age as int) as age", "sex")  # on an executor, not while it is planned
    table = open_table(dying, PEOPLE)
    capfd.readouterr()
    with pytest.raises(DataUnavailable) as caught:
        table.counts([("age",)])
    assert str(caught.value) == CONSTANT
    assert caught.value.__cause__ is caught.value.__context__ is None
    time.sleep(0.5)  # for what is still on its way to a log
    assert CANARY not in told(caught.value) + "".join(capfd.readouterr()) + driver_log()
    assert not logging.getLogger("SQLQueryContextLogger").disabled


def test_a_task_fails_in_constant_words_whatever_it_dies_of() -> None:
    def dying() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"age": [1]})
        raise ValueError(CANARY)

    column_sets = (("age",),)
    other = Count(schema_of_ages(), ("age",), None, (0,), column_sets, kernel="of another release")
    for task, batches in ((Count(schema_of_ages(), ("age",), None, (0,), column_sets), dying()), (other, iter([]))):
        with pytest.raises(RuntimeError) as caught:
            list(task(batches))
        assert str(caught.value) == tasks.FAILED
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert CANARY not in told(caught.value)


@pytest.mark.parametrize("level", ["INFO", None])
def test_what_spark_logs_is_silenced_for_a_pass_and_as_it_was_afterwards(level: str | None) -> None:
    session = spark()
    log4j = session.sparkContext._jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)

    def heard() -> str:
        return str(log4j.LogManager.getLogger("org.apache.spark.scheduler.TaskSetManager").getLevel().toString())

    context.getConfiguration().removeLogger(cluster.SPEAKERS)
    if level is not None:
        log4j.core.config.Configurator.setLevel(cluster.SPEAKERS, getattr(log4j.Level, level))
    context.updateLoggers()
    before = heard()
    assert before != "OFF"
    with cluster.quiet(session):
        with cluster.quiet(session):
            assert heard() == "OFF"
        assert heard() == "OFF"
    assert heard() == before
    with pytest.raises(KeyError), cluster.quiet(session):
        raise KeyError
    assert heard() == "OFF"  # tasks may still be dying
    context.getConfiguration().removeLogger(cluster.SPEAKERS)
    context.updateLoggers()


def test_a_file_that_changes_or_joins_is_noticed(tmp_path: Path) -> None:
    spark()
    for name in "ab":
        written(tmp_path / f"{name}.csv", b"age,sex\n1,F\n")
    for spoil in (
        lambda: written(tmp_path / "a.csv", b"age,sex\n1,F\n2,M\n"),
        lambda: written(tmp_path / "c.csv", b"age,sex\n1,F\n"),
        lambda: (tmp_path / "b.csv").unlink(),
    ):
        table = open_table(tmp_path, AGES, engine="spark")
        table._source.check()
        spoil()
        with pytest.raises(DataUnavailable) as caught:
            table.counts([()])
        assert str(caught.value) == CHANGED
        assert caught.value.__cause__ is caught.value.__context__ is None


# --- tasks that are lost ----------------------------------------------------------------------------------------------


def slowly(marks: Path, seconds: float) -> Any:
    """Rows as they are, of which each part takes its time and leaves a mark."""

    def work(batches: Any) -> Any:
        import time
        import uuid

        for batch in batches:
            time.sleep(seconds)
            (marks / uuid.uuid4().hex).touch()
            yield batch

    return work


@pytest.mark.parametrize("bound", [None, 3])
def test_a_lost_executor_changes_no_count(bound: int | None, tmp_path: Path) -> None:
    session = spark()
    rows = session.range(0, 4000, numPartitions=12).selectExpr("id", "id % 6 as age", "id div 8 as person")
    schema = Schema([Integers("age", 0, 4, outside=CELL)])
    slow = rows.mapInArrow(slowly(tmp_path, 0.4), rows.schema)
    person = None if bound is None else Person("person", bound)
    quick, table = (open_table(frame, schema, person=person) for frame in (rows, slow))
    for each in (quick, table):
        each.draw_from(keyed)
    expected = counts_of(quick, ("age",), ())
    assert expected[1] == (4000 if bound is None else 1500)
    wait_for(lambda: len(executors(session)) == 2)
    found: list[Any] = []
    reading = threading.Thread(target=lambda: found.extend(counts_of(table, ("age",), ())))
    reading.start()
    wait_for(lambda: len(list(tmp_path.iterdir())) >= 5)  # some have been counted, others have not
    lost = lose_an_executor(session)
    reading.join(120)
    assert found == expected
    assert lost not in executors(session)
    assert len(list(tmp_path.iterdir())) > 12  # what was lost was read again


def test_a_pass_that_mixes_two_attempts_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(spark().createDataFrame([(1,), (2,)], "age int"), schema_of_ages())
    passes: list[int] = []
    filled = tasks.filled

    def mixed(schema: Schema, column_sets: Any, sums: Any) -> Any:
        passes.append(1)
        tally, attempts, rows = filled(schema, column_sets, sums)
        return tally, {0: {1, 2}} if len(passes) < most else attempts, rows

    monkeypatch.setattr("tacit.engines.spark.filled", mixed)
    for most, outcome in ((3, None), (99, CONSTANT)):
        passes.clear()
        table._tables.clear()
        if outcome is None:
            assert counts_of(table, ("age",)) == [[0, 1, 1, 0, 0, 0, 0]]
        else:
            with pytest.raises(DataUnavailable, match="to its end"):
                table.counts([("age",)])
        assert len(passes) == min(most, 4)


def test_marks_tell_of_a_task_that_is_in_the_sums_twice() -> None:
    schema, column_sets = schema_of_ages(), (("age",),)
    parts = [tasks._sent(0, 0, 7, 5, packed(np.arange(7))), tasks._sent(-1, 1, 8, 6, b"")]
    add = tasks.Add(schema, column_sets)
    once = pa.Table.from_batches(add(parts))
    tally, attempts, rows = tasks.filled(schema, column_sets, once)
    assert (tally.counts(("age",)).tolist(), attempts, rows) == (list(range(7)), {0: {7}, 1: {8}}, 11)
    again = pa.Table.from_batches([*once.to_batches(), *add([tasks._sent(-1, 0, 9, 5, b"")])])
    assert tasks.filled(schema, column_sets, again)[1] == {0: {7, 9}, 1: {8}}


@pytest.mark.parametrize("most", [0, 1, 255, 256, 65_535, 65_536, 2**32, 2**62])
def test_counts_are_packed_without_losing_a_unit(most: int) -> None:
    counts = np.array([0, most, 1], dtype=np.int64)
    assert unpacked(packed(counts), 3).astype(np.int64).tolist() == counts.tolist()


# --- people -----------------------------------------------------------------------------------------------------------

LAYOUT = np.dtype([("c0", np.uint8), ("c1", np.uint16)])


def in_order(rows: list[tuple[bytes, int, int]]) -> tuple[pa.Array, Any]:
    ordered = sorted(rows)
    return pa.array([row[0] for row in ordered], pa.binary()), np.array([row[1:] for row in ordered], dtype=LAYOUT)


def kept(rows: list[tuple[bytes, int, int]], most: int, size: int = 10**6) -> list[Any]:
    persons, cells = in_order(rows)
    batches = [(persons[at : at + size], cells[at : at + size]) for at in range(0, len(cells), size)]
    return sorted(itertools.chain.from_iterable(part.tolist() for part in bounded(batches, most, KEY)))


def test_a_person_has_at_most_so_many_rows_wherever_batches_end() -> None:
    draw = random.Random(3)
    for _ in range(40):
        rows = [(b"%d" % draw.randrange(6), draw.randrange(3), draw.randrange(400)) for _ in range(draw.randrange(200))]
        most = draw.choice([1, 2, 5, 64, 65])
        whole = kept(rows, most)
        sizes = [sum(row[0] == name for row in rows) for name in {row[0] for row in rows}]
        assert len(whole) == sum(min(size, most) for size in sizes)
        for size in (1, 2, 7, 100):
            assert kept(rows, most, size) == whole
        gone = draw.choice(rows)[0] if rows else b""
        without = kept([row for row in rows if row[0] != gone], most)
        alone = kept([row for row in rows if row[0] == gone], most)
        assert sorted([*without, *alone]) == whole  # the others' rows are the same ones
        assert len(alone) <= most


def test_which_rows_count_is_drawn_by_lot_and_not_by_their_values() -> None:
    chosen = np.zeros(20)
    for person in range(4000):
        for _, value in kept([(b"%d" % person, 0, value) for value in range(20)], 3):
            chosen[value] += 1
    assert abs(chosen - 600).max() < 5 * (600 * 0.85) ** 0.5
    assert lots(KEY, b"a", 0, 200)[100:].tolist() == lots(KEY, b"a", 100, 100).tolist()
    assert set(lots(KEY, b"a", 0, 100)).isdisjoint({*lots(KEY, b"b", 0, 100), *lots(b"k", b"a", 0, 100)})


def test_one_person_moves_no_count_by_more_than_the_bound() -> None:
    session, draw, most = spark(), random.Random(5), 4
    rows = [(draw.choice(["ann", "bob", "eve", "", None]), draw.randrange(6), draw.choice("FMx")) for _ in range(400)]
    rows += [(f"p{at}", draw.randrange(6), draw.choice("FM")) for at in range(100)]
    schema = Schema([Integers("age", 0, 4, outside=CLAMP), Categories("sex", ("F", "M"))])

    def opened(held: list[Any]) -> Table:
        draw.shuffle(held)
        frame = session.createDataFrame(held, "who string, age int, sex string").repartition(5)
        table = open_table(frame, schema, person=Person("who", most))
        table.draw_from(keyed)
        return table

    whole = opened(list(rows))
    both, everybody = whole.counts([("age", "sex"), ()])
    assert int(everybody) == 3 * most + 100  # who names nobody is in no count, and nor is a row that is dropped
    without = opened([row for row in rows if row[0] != "eve"])
    moved = both - without.counts([("age", "sex")])[0]
    assert (int(moved.min()), int(moved.sum())) == (0, most)
    whole._tables.clear()
    whole._home.clear()
    np.testing.assert_array_equal(whole.counts([("sex",)])[0], both.sum(axis=0))  # another pass, the same rows


def test_people_in_files_of_lines_are_bounded_alike(tmp_path: Path) -> None:
    spark()
    for part in range(3):
        lines = [f"{at % 5},{at % 3 + 1},x" for at in range(part, 60, 3)]
        written(tmp_path / f"{part}.csv", "\n".join(["who,age,note", *lines, ",1,", "7,9,"]).encode())
    schema = Schema([Integers("age", 0, 3)])
    table = open_table(tmp_path, schema, engine="spark", person=Person("who", 7))
    table.draw_from(keyed)
    assert counts_of(table, ()) == [5 * 7]


PEOPLE_OF: list[tuple[str, str, list[Any], int]] = [  # a type, another of its kind, values, how many people
    ("tinyint", "bigint", [1, 1, -1, None], 2),
    ("string", "varchar(30)", ["a", "a", "A", "a" * 20, "a" * 20, "a" * 21, "", None], 4),
    ("double", "float", [0.0, -0.0, float("nan"), 1.5, None], 2),
    ("decimal(20,2)", "decimal(9,2)", ["1.50", "1.5", "-1.50", None], 2),
    ("binary", "string", ["a", "b", "b", ""], 2),
]


@pytest.mark.parametrize(("kind", "other", "values", "expected"), PEOPLE_OF, ids=[case[0] for case in PEOPLE_OF])
def test_people_are_told_apart_as_elsewhere_in_parts_of_one_kind(
    kind: str, other: str, values: list[Any], expected: int, tmp_path: Path
) -> None:
    session, schema = spark(), schema_of_ages()
    written_as = "string" if isinstance(values[0], str) else "double" if kind == "double" else "int"
    frame = session.createDataFrame([(value, 1) for value in values], f"who {written_as}, age int")
    for at, cast in enumerate((kind, other)):
        wide = frame.selectExpr(f"cast(who as {cast}) as who", "age", *(["1 as x"] if at else []))
        wide.repartition(3).write.mode("append").parquet(str(tmp_path / "parts"))
    table = open_table(tmp_path / "parts", schema, engine="spark", person=Person("who", 1))
    Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    assert counts_of(table, ()) == [expected]


def test_parts_that_tell_people_apart_in_other_ways_are_refused(tmp_path: Path) -> None:
    spark()
    for at, who in enumerate(([1, 2], ["1", "2"])):
        pq.write_table(pa.table({"who": who, "age": [1, 1]}), tmp_path / f"{at}.parquet")
    with pytest.raises(InvalidData, match="people are told apart by values of one kind"):
        open_table(tmp_path, schema_of_ages(), engine="spark", person=Person("who", 1))


def test_a_table_of_spark_that_chooses_is_counted_by_a_curator_whose_tables_choose_anew() -> None:
    frame = spark().createDataFrame([(1, at % 6) for at in range(60)], "who int, age int")
    schema, seen = schema_of_ages(), set()
    for _ in range(4):
        table = open_table(frame, schema, person=Person("who", 3))
        with pytest.raises(InvalidParameter, match="a curator brings the lots"):
            table.counts([()])
        ours = Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
        assert ours.relation.rows == 3
        first = counts_of(table, ("age",))
        table._tables.clear()
        table._home.clear()
        assert counts_of(table, ("age",)) == first
        seen.add(str(first))
    assert len(seen) > 1


# --- contracts, and machines without Spark ----------------------------------------------------------------------------

CONTRACT = """
[data]
source = {source}
engine = "spark"

[privacy]
neighbors = "add-remove"
epsilon = "4"
ledger = "people.ledger"

[[columns]]
name = "age"
low = 0
high = 120
"""


def test_a_contract_names_spark_and_is_served_by_it(tmp_path: Path) -> None:
    spark()
    written(tmp_path / "people.csv", b"age\n30\n40\n40\n")
    written(tmp_path / "people.toml", CONTRACT.format(source='"people.csv"').encode())
    people = People.open(tmp_path / "people.toml")
    assert repr(people.table).endswith(", Spark)")
    assert int(people.table.counts([()])[0]) == 3


def test_a_contract_of_spark_names_a_person_and_no_server(tmp_path: Path) -> None:
    spark()
    written(tmp_path / "people.csv", b"who,age\n" + b"1,30\n" * 5 + b"2,40\n,50\n")
    contract = CONTRACT.format(source='"people.csv"').replace("engine", 'person = "who"\nmost_rows = 2\nengine')
    written(tmp_path / "people.toml", contract.encode())
    people = People.open(tmp_path / "people.toml")
    assert int(people.table.counts([()])[0]) == 3
    written(tmp_path / "people.toml", CONTRACT.format(source='"postgresql"\ntable = "a.b"').encode())
    with pytest.raises(InvalidSchema, match="read by tacit itself; leave the engine out"):
        Contract.read(tmp_path / "people.toml")


def test_where_spark_looks_is_where_the_contract_says(tmp_path: Path) -> None:
    def contract(source: str) -> Contract:
        written(tmp_path / "people.toml", CONTRACT.format(source=source).encode())
        return Contract.read(tmp_path / "people.toml")

    for source, place in (
        ('"parts/*.parquet"', f"file://{tmp_path}/parts/*.parquet"),
        ('"hdfs://namenode/people"', "hdfs://namenode/people"),
        ('"/data/people"', "/data/people"),
        ('"spark"\ntable = "db.people"', "spark"),
    ):
        assert contract(source).location == place


def test_without_pyspark_or_java_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(InvalidData, match=r"pip install 'tacit\[spark\]'"):
        open_table("people.csv", PEOPLE, engine="spark")


def test_a_frame_is_not_asked_for_rows() -> None:
    with pytest.raises(DataUnavailable, match="stay where they are"):
        Spark([], None).batches(("age",), 1)  # type: ignore[arg-type]
