"""At most m rows of a person: the same ones in every kind of source, by lot alone, and nobody else's move with them."""

# ruff: noqa: S608 - the statements are our own

from __future__ import annotations

import math
import os
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engines import KINDS as WAYS
from test_engines import Values, arrow, naive_counts, write_csv

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm
from tacit.domain.person import Person, Relation
from tacit.domain.query import Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Numbers, Schema
from tacit.domain.workload import marginals, prefixes
from tacit.engines import choosing, persons
from tacit.engines.table import Table, open_table
from tacit.errors import DataUnavailable, InvalidData, InvalidParameter
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Budget
from tests.postgres import server

Open = Callable[[Values, int, Sequence[int]], Table]

SCHEMA = Schema(
    [
        Integers("age", 0, 9, missing="cell", outside="clamp"),
        Categories("sex", ("F", "M"), outside="cell"),
        Numbers("pay", (0, 10, 20)),
    ]
)
SETS = [(), ("age",), ("sex", "pay"), ("age", "sex", "pay")]
PEOPLE: dict[str, list[Any]] = {
    "whole numbers": [-1, 0, 1, 7, 2**40, -(2**63), None],
    "large numbers": [0, 1, 2**63, 2**64 - 1, 5],
    "floats": [0.5, 1.5, -2.0, 1e300, None, math.inf],
    "short texts": ["a", "b", "ab", "ba", "é", "O'Hara", "x,y", "a" * 7, "a" * 8, "a" * 9, "a" * 15, "", None],
    "long texts": ["a" * 16, "a" * 17, "a" * 15 + "b", "b" * 400, "short", None],
    "decimals": [Decimal("1.50"), Decimal("-1.50"), Decimal("0.00"), Decimal(10) ** 20 + Decimal("0.01"), None],
    "UUIDs": [str(uuid.UUID(int=at * 7919**8)) for at in range(6)],
}


def table(rng: np.random.Generator, people: Sequence[Any], rows: int) -> Values:
    """Random rows of these people; some of their values have no cell, and some cost their row."""
    return {
        "id": [people[at] for at in rng.integers(0, len(people), rows)],
        "age": [[0, 3, 9, 12, None][at] for at in rng.integers(0, 5, rows)],
        "sex": [["F", "M", "X"][at] for at in rng.integers(0, 3, rows)],
        "pay": [[0, 9, 10, 25][at] for at in rng.integers(0, 4, rows)],
    }


def scripted(lots: Sequence[int]) -> choosing.Lots:
    """A key of zeros, then these lots, in the order of the rows."""
    calls: list[int] = []

    def draw(count: int) -> np.ndarray:
        if not calls:
            calls.append(0)
            return np.zeros(count, dtype=np.int64)
        start = sum(calls)
        calls.append(count)
        return np.array(lots[start : start + count], dtype=np.int64)

    return draw


@pytest.fixture(params=WAYS)
def hold(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    def opened(values: Values, most: int, lots: Sequence[int]) -> Table:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        source = request.param(values, folder)
        kind = source.suffix if isinstance(source, Path) else ""
        named = 'the "people' if kind == ".duckdb" else None
        source, named = source if isinstance(source, tuple) else (source, named)
        many = kind in (".csv", ".tsv")
        held = open_table(source, SCHEMA, table=named, multiline=many, person=Person("id", most))
        held.draw_from(scripted(lots))
        return held

    return opened


def taken(values: Values, rows: Sequence[int]) -> Values:
    return {name: [held[row] for row in rows] for name, held in values.items()}


def naive_choice(who: Sequence[Any], most: int, lots: Sequence[int]) -> list[int]:
    """The rows that count: of each person those with the lowest lots."""
    rows: dict[Any, list[int]] = {}
    for row, person in enumerate(who):
        if person is not None and person != "":
            rows.setdefault(person, []).append(row)
    return sorted(row for of_one in rows.values() for row in sorted(of_one, key=lambda row: lots[row])[:most])


# --- the suite -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", PEOPLE)
def test_every_source_chooses_the_rows_with_the_lowest_lots_of_each_person(
    people: str, hold: Open, request: pytest.FixtureRequest
) -> None:
    if "spark" in request.node.callspec.id:
        pytest.skip("where the rows stay, their lots are made of a key: tests/test_spark.py")
    rng = np.random.default_rng(list(people.encode()))
    for most, rows in ((1, 60), (3, 130), (100, 50), (2, 1)):
        values = table(rng, PEOPLE[people], rows)
        lots = rng.permutation(2**20)[:rows].tolist()
        expected = naive_counts(SCHEMA, taken(values, naive_choice(values["id"], most, lots)), SETS)
        held = hold(values, most, lots)
        for columns, counts, right in zip(SETS, held.counts(SETS), expected, strict=True):
            assert np.array_equal(counts, right), (people, most, columns)


def one_person_more_or_less(values: Values, lots: list[int], rng: np.random.Generator, neighbors: Neighbors) -> Any:
    """The table without all rows of one person, or with those of another in their place; each row keeps its lot."""
    who = rng.choice([person for person in values["id"] if person is not None])
    rows = [row for row, person in enumerate(values["id"]) if person != who]
    other, kept = taken(values, rows), [lots[row] for row in rows]
    if neighbors is Neighbors.REPLACE_ONE:
        come = int(rng.integers(1, 9))
        new = {**table(rng, [99], come), "id": [int(who)] * come}
        at = int(rng.integers(0, len(rows) + 1))
        other = {name: held[:at] + new[name] + held[at:] for name, held in other.items()}
        kept = kept[:at] + rng.integers(2**21, 2**22, come).tolist() + kept[at:]
    return other, kept


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_all_rows_of_a_person_move_what_is_released_no_further_than_claimed(neighbors: Neighbors, hold: Open) -> None:
    """The coupling of `choosing.chosen`: with the same lots, the choices among the others' rows are the same."""
    rng = np.random.default_rng(7)
    queries = [Marginal.over(SCHEMA, "age"), marginals(SCHEMA, 2), prefixes(SCHEMA, "age")]
    farthest = 0
    for trial in range(6):
        most, rows = trial % 3 + 1, 40
        values = table(rng, [1, 2, 3, 4, 5, None], rows)
        lots = rng.permutation(2**20)[:rows].tolist()
        other, kept = one_person_more_or_less(values, lots, rng, neighbors)
        here, there = hold(values, most, lots), hold(other, most, kept)
        for query in queries:
            move = query(*here.counts(query.reads)) - query(*there.counts(query.reads))
            for norm, order in ((Norm.L1, 1), (Norm.L2, 2), (Norm.LINF, np.inf)):
                claimed = float(Relation(neighbors, most).moves(query, norm))
                assert np.linalg.norm(np.ravel(move), order) <= claimed * (1 + 1e-12), (query, norm, most)
            farthest = max(farthest, int(np.abs(move).sum()))
    assert farthest > 2  # some person moved more than one row can


def test_counts_that_are_read_one_after_the_other_are_of_the_same_rows(hold: Open) -> None:
    rng = np.random.default_rng(3)
    values = table(rng, list(range(9)), 200)
    held = hold(values, 2, rng.permutation(2**20)[:200].tolist())
    ages = held.counts([("age",)])[0]
    both = held.counts([("age", "sex")])[0]
    everything = held.counts([("age", "sex", "pay")])[0]
    assert np.array_equal(both.sum(axis=1), ages)
    assert np.array_equal(everything.sum(axis=2), both)
    assert ages.sum() <= 18


def test_a_person_with_a_million_rows_counts_as_often_as_another(tmp_path: Path) -> None:
    ids = np.concatenate([np.zeros(10**6, dtype=np.int64), np.arange(1, 1001)])
    source = pa.table({"id": ids, "age": np.where(ids == 0, 7, 1)})
    schema = Schema([Integers("age", 0, 9)])
    for given in (source, tmp_path / "t.parquet"):
        if isinstance(given, Path):
            pq.write_table(source, given)
        held = open_table(given, schema, person=Person("id", 3))
        held.draw_from(lambda count: SYSTEM.uniform(2**32, count))
        assert held.counts([("age",)])[0].tolist() == [0, 1000, 0, 0, 0, 0, 0, 3, 0, 0]


# --- the choice by itself --------------------------------------------------------------------------------------------


def chosen(who: Sequence[int], most: int, lots: choosing.Lots | None = None) -> list[int]:
    words = (np.array(who, dtype=np.uint64),)
    found = choosing.chosen(lambda: [(words, None)], lots or (lambda n: SYSTEM.uniform(2**32, n)), most)
    return np.flatnonzero(found.part(0, found.rows)).tolist()


def test_every_set_of_a_persons_rows_is_chosen_as_often_and_whoever_else_is_there() -> None:
    """Chi-square over the 15 pairs of six rows, 9,000 choices: above 58 with probability below 3e-7."""
    for others in ([], [1, 2, 2, 2, 3], [2] * 40):
        who = [*others, 9, 9, 9, *others, 9, 9, 9]
        places = [row for row, person in enumerate(who) if person == 9]
        seen = Counter(tuple(row for row in chosen(who, 2) if row in places) for _ in range(9000))
        assert set(seen) == set(combinations(places, 2))
        assert sum((count - 600) ** 2 / 600 for count in seen.values()) < 58


def test_a_choice_that_favours_the_first_rows_would_be_noticed() -> None:
    who = [9] * 6
    seen = Counter(tuple(chosen(who, 2, lambda n: SYSTEM.uniform(8, n))) for _ in range(9000))
    assert sum((seen[pair] - 600) ** 2 / 600 for pair in combinations(range(6), 2)) > 58


def test_people_who_have_to_wait_are_chosen_from_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    who = rng.integers(0, 5000, 30_000).tolist()
    readings = []

    def reading() -> Any:
        readings.append(0)
        for at in range(0, len(who), 1000):
            yield (np.array(who[at : at + 1000], dtype=np.uint64),), np.zeros(1000, dtype=np.bool_)

    monkeypatch.setattr(choosing, "MOST_HELD", 2000)
    found = choosing.chosen(reading, lambda n: SYSTEM.uniform(2**32, n), 2)
    held = Counter(who[row] for row in np.flatnonzero(found.part(0, found.rows)))
    assert held == {person: min(count, 2) for person, count in Counter(who).items()}
    assert len(readings) > 3


def test_rows_beyond_the_first_four_billion_are_chosen_where_they_are() -> None:
    """So many that their places need more than 32 bits, while there is room left from the rows before."""
    held, lots, at = choosing._Candidates(1), np.arange(10, dtype=np.uint32), np.arange(10)
    ann, bob, cid = (np.full(10, who, dtype=np.uint64) for who in range(3))
    held.add((ann,), lots, 2**32 - 20, at)
    held.add((bob,), lots, 2**32 - 10, at)
    held.add((ann,), lots + np.uint32(9), 2**32, at)
    held.add((cid,), lots, 2**32 + 10, at[:2])
    assert sorted(held.places().tolist()) == [2**32 - 20, 2**32 - 10, 2**32 + 10]


def test_any_part_of_a_choice_can_be_looked_at() -> None:
    rows = np.flatnonzero(np.random.default_rng(1).random(1001) < 0.3)
    flags = np.isin(np.arange(1001), rows)
    held = choosing.Chosen(1001, [rows[:9], rows[9:]])
    for start, count in ((0, 1001), (7, 1), (8, 9), (13, 0), (1000, 1), (1001, 0)):
        assert np.array_equal(held.part(start, count), flags[start : start + count])
    with pytest.raises(ValueError, match="other rows"):
        held.part(1000, 2)


def test_two_curators_and_two_tables_have_lots_of_their_own() -> None:
    source = pa.table({"id": [1] * 64, "age": list(range(64))})
    schema = Schema([Integers("age", 0, 63)])
    seen = set()
    for _ in range(8):
        held = open_table(source, schema, person=Person("id", 2))
        Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
        Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
        first = held.counts([("age",)])[0].tobytes()
        assert held.counts([("age",)])[0].tobytes() == first
        seen.add(first)
    assert len(seen) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_threads_of_a_forked_process_count_the_same_rows() -> None:
    """Had each thread a lock of its own, one would count the rows that another one's lots chose."""
    source = pa.table({"id": [1] * 64, "age": list(range(64)), "pay": list(range(64))})
    schema = Schema([Integers("age", 0, 63), Integers("pay", 0, 63)])
    apart = 0
    for _ in range(40):
        held = open_table(source, schema, person=Person("id", 2))
        Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
        if not (child := os.fork()):
            code = 2
            try:
                sys.setswitchinterval(1e-6)
                ready = Barrier(8)

                def count(which: int, held: Table = held, ready: Barrier = ready) -> bytes:
                    ready.wait()
                    return held.counts([("age", "pay")[which % 2 :][:1]])[0].tobytes()

                with ThreadPoolExecutor(8) as threads:
                    code = int(len(set(threads.map(count, range(8)))) > 1)
            finally:
                os._exit(code)
        apart += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not apart


# --- who is who ------------------------------------------------------------------------------------------------------

KEY = bytes(persons.KEY_BYTES)


def ways(values: list[Any]) -> list[pa.Array]:
    """Texts as every type that holds them, sliced and in dictionaries."""
    plain = pa.array(values, pa.string())
    kinds = [plain, *(plain.cast(kind) for kind in (pa.large_string(), pa.binary(), pa.large_binary()))]
    kinds += [plain.dictionary_encode(), pa.concat_arrays([pa.array(["x" * 20, None]), plain]).slice(2)]
    return [*kinds, plain.cast(pa.string_view())]


def test_equal_values_have_equal_words_and_others_have_others() -> None:
    values = [
        "",
        "a",
        "a\0",
        "\0",
        "\0\0",
        "a" * 15,
        "a" * 16,
        "b" * 15,
        "a" * 14 + "\0",
        "é",
        "e\u0301",
        "A",
        " a",
        None,
    ]
    for texts in ways(values + values):
        words, nobody = persons.words_of(texts, KEY)
        pairs = list(zip(*(word.tolist() for word in words), strict=True))
        assert nobody is not None
        assert [bool(gone) for gone in nobody] == [value in ("", None) for value in values + values]
        known = [pair for pair, value in zip(pairs, values + values, strict=True) if value not in ("", None)]
        assert known[: len(known) // 2] == known[len(known) // 2 :]
        assert len(set(known)) == len(known) // 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-1, 0, 1, 127]),
        (pa.uint32(), [0, 2**32 - 1]),
        (pa.int64(), [-(2**63), -1, 2**63 - 1]),
        (pa.uint64(), [0, 2**63, 2**64 - 1]),
        (pa.float32(), [0.5, -1.0, math.inf]),
        (pa.decimal128(38, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal(10) ** 30]),
        (pa.decimal64(8, 2), [Decimal("1.00"), Decimal("-1.00")]),
        (pa.binary(16), [uuid.UUID(int=1).bytes, uuid.UUID(int=1 << 64).bytes]),
        (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=1 << 64).bytes]),
    ],
    ids=str,
)
def test_numbers_and_uuids_are_told_apart(kind: Any, values: list[Any]) -> None:
    assert persons.kind_of(kind) is not None
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    held = pa.array([None, *values, *values], storage).slice(0)
    held = pa.ExtensionArray.from_storage(kind, held) if storage is not kind else held
    words, nobody = persons.words_of(held, KEY)
    pairs = list(zip(*(word.tolist() for word in words), strict=True))
    assert nobody is not None
    assert nobody.tolist() == [True] + [False] * (2 * len(values))
    assert pairs[1 : 1 + len(values)] == pairs[1 + len(values) :]
    assert len(set(pairs[1:])) == len(values)


def test_the_two_zeros_are_one_person_and_nan_is_nobody() -> None:
    words, nobody = persons.words_of(pa.array([0.0, -0.0, math.nan, 1.0]), KEY)
    assert words[0][0] == words[0][1] != words[0][3]
    assert nobody is not None
    assert nobody.tolist() == [False, False, True, False]


def test_long_texts_meet_under_no_key_that_is_known() -> None:
    texts = pa.array(["a" * 16, "a" * 17])
    (low, _), _ = persons.words_of(texts, KEY)
    (other, _), _ = persons.words_of(texts, b"\1" * persons.KEY_BYTES)
    assert low[0] != low[1]
    assert low[0] != other[0]


def test_rows_of_nobody_are_in_no_count(hold: Open) -> None:
    values = table(np.random.default_rng(0), [None], 30)
    values["id"][7] = "somebody"
    values["age"][7], values["sex"][7], values["pay"][7] = 3, "F", 0
    assert hold(values, 3, list(range(30))).counts([()])[0] == 1


def counted_of(people: Sequence[Any], dtype: Any = object) -> int:
    """How many rows count where one of each person does, in a column of pandas that may hold anything."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": pandas.Series(people, dtype=dtype), "age": [1] * len(people)})
    held = open_table(frame, Schema([Integers("age", 0, 9)]), person=Person("id", 1))
    held.draw_from(scripted(range(len(people))))
    return int(held.counts([()])[0])


@pytest.mark.parametrize(
    "people",
    [
        [uuid.UUID(int=7), uuid.UUID(int=1 << 64), str(uuid.UUID(int=9))],
        ["\udc80", "\udc81", "a"],
        [10**400, 10**401, 10**4000 + 1, -(10**400)],
        [Decimal("0.1"), 0.1 + 0.2, Decimal("0.2"), Decimal("1E+5000"), Decimal("1E+5001"), Decimal("-0.1")],
        [b"\xff\xff", "ÿ", 0, "0.0"],
    ],
    ids=["UUIDs", "texts that are no UTF-8", "numbers of many digits", "fractions", "bytes"],
)
def test_different_values_of_a_mixed_column_are_different_people(people: list[Any]) -> None:
    """As one person together, one of them would take the place of another's rows, and move twice as much."""
    assert counted_of(people) == len(people)


def test_the_categories_of_a_mixed_column_are_people_as_its_values_are() -> None:
    assert counted_of([uuid.UUID(int=7), uuid.UUID(int=8), uuid.UUID(int=7), (1, 2), None], "category") == 2


@pytest.mark.parametrize(
    "people",
    [
        [1, 1.0, Decimal(1), Decimal("1.0"), Decimal("1.00"), Decimal("0.1E+1"), np.int8(1), np.float32(1), "1"],
        [Decimal("1E+2"), Decimal("100.0"), 100, 1e2],
        [0, 0.0, -0.0, Decimal("-0.00"), Decimal("0E+9")],
        [Decimal("0.5"), Decimal("0.50"), 0.5, Decimal("5E-1")],
        [Decimal(2) ** -40, 2.0**-40],
        [Decimal("0.10"), Decimal("1E-1"), Decimal("0.1")],
        [10**400, Decimal("1E+400"), Decimal(10**401) / 10],
        [2**53 + 1, Decimal(2**53 + 1), Decimal("9007199254740993.00")],
        [math.inf, Decimal("Infinity")],
        [uuid.UUID(int=7), str(uuid.UUID(int=7))],
    ],
    ids=str,
)
def test_equal_values_of_a_mixed_column_are_one_person_however_they_are_written(people: list[Any]) -> None:
    assert counted_of(people) == 1


def test_what_cannot_be_told_apart_from_others_is_nobody() -> None:
    class Unwilling:
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = None  # type: ignore[assignment]

    assert counted_of([(1, 2), {3}, 1j, Unwilling(), Decimal("sNaN"), Decimal("NaN"), math.nan, None, ""]) == 0


def test_uuids_of_a_database_and_of_parquet_are_read(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "create table t as select (('0'||(i%3)||repeat('0',30))::uuid) id, i::int age from range(9) x(i)"
        )
        connection.execute(f"copy t to '{tmp_path / 't.parquet'}'")
    for name, named in (("t.duckdb", "t"), ("t.parquet", None)):
        held = open_table(tmp_path / name, Schema([Integers("age", 0, 9)]), table=named, person=Person("id", 2))
        held.draw_from(scripted([9 - at for at in range(9)]))
        assert held.counts([("age",)])[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0]


# --- a server's people -----------------------------------------------------------------------------------------------

WHO: list[tuple[str, list[str], list[int]]] = [  # a type, its values, and how many rows of which ages count
    ("numeric", ["1", "1.0", "1.00", "10", "1e1", "'nan'", "null", "-0.0", "0"], [1, 1, 1]),
    ("numeric(20, 4)", ["1", "1.0001", "12345678901234.5", "12345678901234.50"], [1, 1, 1]),
    ("text", ["repeat('a', 3000000)", "repeat('a', 3000000) || 'b'", "''", "null", "'a'", "'a '"], [1, 1, 1, 1]),
    ("char(4)", ["'a'", "'a   '", "' a'", "''"], [1, 1]),
    ("varchar", ["'é'", "'e\u0301'", "'É'"], [1, 1, 1]),
    ("uuid", ["'A0EEBC999C0B4EF8BB6D6BB9BD380A11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"], [1]),
    ("bytea", ["'a'", "'a'", r"'\xff'", "''"], [1, 1]),
    ("bigint", ["1", "4294967297", "-1", "-1"], [1, 1, 1]),
    ("double precision", ["0.0", "-0.0", "'nan'", "'inf'", "1.5"], [1, 1, 1]),
]


@pytest.mark.parametrize(("kind", "values", "people"), WHO, ids=lambda part: part if isinstance(part, str) else "")
def test_a_server_tells_people_apart_as_other_sources_do(kind: str, values: list[str], people: list[int]) -> None:
    """One row of each counts, and a row of nobody does not: cut or rounded, two people would be one."""
    town = server()
    schema = town.fresh()
    rows = ", ".join(f"({value}, {at})" for at, value in enumerate(values))
    town.run(f'create table "{schema}".t (id {kind}, age int)', f'insert into "{schema}".t values {rows}')
    held = open_table(town.uri, Schema([Integers("age", 0, 9)]), table=f'"{schema}".t', person=Person("id", 1))
    Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    assert held.counts([()])[0] == sum(people)
    held.close()


@pytest.mark.parametrize("kind", ["boolean", "date", "timestamptz", "interval", "int[]"])
def test_a_column_of_a_server_that_tells_nobody_apart_is_refused(kind: str) -> None:
    town = server()
    schema = town.fresh()
    town.run(f'create table "{schema}".t (id {kind}, age int)')
    with pytest.raises(InvalidData, match=r"people are told apart by whole numbers, texts.*Nothing was read"):
        open_table(town.uri, Schema([Integers("age", 0, 9)]), table=f'"{schema}".t', person=Person("id", 1))


def test_a_role_that_may_not_read_who_is_who_is_told_so() -> None:
    town = server()
    schema = town.fresh()
    town.run(
        f'create table "{schema}".t (id int, age int)',
        "drop role if exists counter", "create role counter login",
        f'grant usage on schema "{schema}" to counter', f'grant select (age) on "{schema}".t to counter',
    )  # fmt: skip
    source, ages = town.uri.replace("keeper@", "counter@"), Schema([Integers("age", 0, 9)])
    try:
        assert open_table(source, ages, table=f'"{schema}".t').counts([()])[0] == 0
        with pytest.raises(InvalidData, match="the role may not read column 'id'"):
            open_table(source, ages, table=f'"{schema}".t', person=Person("id", 1))
    finally:
        town.run("drop owned by counter", "drop role counter")


def test_a_server_whose_rows_change_gives_both_readings_the_same_ones() -> None:
    """Updated rows lie elsewhere, deleted ones leave room for others: the choice is of the snapshot's rows."""
    town = server()
    schema = town.fresh()
    town.run(
        f'create table "{schema}".t (id int, age int)',
        f'insert into "{schema}".t select i / 7, i % 7 from generate_series(0, 69999) i',
    )
    held = open_table(town.uri, Schema([Integers("age", 0, 9)]), table=f'"{schema}".t', person=Person("id", 1))
    held.draw_from(scripted([7 - row % 7 for row in range(70_000)]))
    assert held.counts([()])[0] == 10_000
    town.run(
        f'update "{schema}".t set age = 0 where id % 3 = 0',
        f'delete from "{schema}".t where id % 3 = 1',
        f'insert into "{schema}".t select 1, 9 from generate_series(1, 5000)',
    )
    assert held.counts([("age",)])[0].tolist() == [0, 0, 0, 0, 0, 0, 10_000, 0, 0, 0]
    held.close()


def test_a_large_database_is_read_twice_in_the_same_order(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("create table t as select i // 7 id, (i % 7)::int age from range(700000) x(i)")
        connection.execute("delete from t where id % 1000 = 3")
    held = open_table(tmp_path / "t.duckdb", Schema([Integers("age", 0, 9)]), table="t", person=Person("id", 1))
    held.draw_from(scripted([7 - row % 7 for row in range(700_000)]))
    assert held.counts([("age",)])[0].tolist() == [0, 0, 0, 0, 0, 0, 99_900, 0, 0, 0]


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_table_that_chooses_by_lot_is_counted_by_a_curator_alone() -> None:
    held = open_table(pa.table({"id": [1], "age": [1]}), Schema([Integers("age", 0, 9)]), person=Person("id", 2))
    with pytest.raises(InvalidParameter, match="a curator brings the lots"):
        held.counts([()])
    Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    assert held.counts([()])[0] == 1


def test_a_source_that_shrinks_between_its_readings_tells_nothing() -> None:
    held = open_table(
        pa.table({"id": [1] * 9, "age": [1] * 9}), Schema([Integers("age", 0, 9)]), person=Person("id", 2)
    )
    held.draw_from(scripted(range(9)))
    assert held.counts([()])[0] == 2
    for rows in (8, 10):
        held._source._table = pa.table({"id": [1] * rows, "age": [1] * rows})  # type: ignore[attr-defined]
        with pytest.raises(DataUnavailable, match="could not be read to its end") as refusal:
            held.counts([("age",)])
        assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_csv_rows_that_are_none_are_nobodys(tmp_path: Path) -> None:
    values = table(np.random.default_rng(5), ["ann", "bob", 'c"d', "e\nf"], 400)
    path = write_csv(values, tmp_path / "t.csv")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[5:5] = [b"ann\n", b'"open,1,F,3\n', b"\n", b"ann,1,F,3,4\n", b'b"ob,3,F,3\n']
    path.write_bytes(b"".join(lines))
    held = open_table(path, SCHEMA, person=Person("id", 3))
    Curator(held, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    whole = held.counts(SETS)
    again = open_table(path, SCHEMA, person=Person("id", 10**6))
    Curator(again, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    everything = open_table(path, SCHEMA)
    assert all(np.array_equal(*pair) for pair in zip(again.counts(SETS), everything.counts(SETS), strict=True))
    assert int(whole[0]) <= 15


def test_the_table_says_how_many_rows_of_whom_it_counts() -> None:
    held = open_table(arrow({"id": [1], "age": [1]}), Schema([Integers("age", 0, 9)]), person=Person("id", 2))
    assert repr(held).endswith("Arrow, at most 2 rows of each id)")
    assert held.most_rows == 2
