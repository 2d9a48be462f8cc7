"""Every synopsis answers like a table, carries its receipt, and comes back from disk as it went; or not at all."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import Rows as Table

from tacit.domain.factored import Factored
from tacit.domain.lattice import Lattice
from tacit.domain.median import Median
from tacit.domain.predicate import parse
from tacit.domain.query import Conjunctions, Counting, Linear, Marginal, Projectable
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Categories, Integers, Neighbors, Numbers, Schema
from tacit.domain.score import Function
from tacit.domain.storage import SAID, TABLES, load, save
from tacit.domain.synopsis import Histogram, Marginals, Rows, Synopsis
from tacit.domain.workload import Workload, marginals, prefixes, ranges
from tacit.errors import InvalidData, InvalidParameter, InvalidQuery
from tacit.service.released import Release

SCHEMA = Schema(
    [
        Integers("age", 0, 4),
        Categories("sex", ("F", "M"), missing="cell"),
        Numbers("income", (0, 1000, 2500.5)),
        Integers("one", 7, 7),
        Categories("note", ("a,b", 'say "x"', "ü")),
    ]
)
CODES = np.random.default_rng(0).integers(0, SCHEMA.sizes(SCHEMA.names), (400, 5))
TRUTH = Table(SCHEMA, CODES)
RECEIPT = Receipt(
    "rho",
    Fraction(29946115347177, 2 * 10**15),
    (Fraction(1), Fraction(1, 10**9)),
    (("Gaussian(rho=1/8) of Workload", Fraction(29946115347177, 2 * 10**15)),),
    Neighbors.ADD_REMOVE,
    ("Gaussian, standard deviation 3",),
    purpose="a trial",
)


def tables(k: int) -> dict[tuple[str, ...], np.ndarray]:
    return {columns: TRUTH.project(columns).astype(float) for columns in combinations(SCHEMA.names, k)}


def variances(k: int) -> dict[tuple[str, ...], float]:
    return {part: 4.0 for size in range(k + 1) for part in combinations(SCHEMA.names, size)}


def some_marginals() -> Marginals:
    return Marginals(SCHEMA, tables(2), variances=variances(2), receipt=RECEIPT)


def some_blocks() -> Factored:
    held = Factored(SCHEMA, TRUTH.project(()))
    for columns, step in ((("age", "sex"), 1.5), (("income",), -0.7), (("note", "income"), 0.4)):
        held.tilt(Counting.where(SCHEMA, dict.fromkeys(columns, (1,))), step)
    return held.copy(RECEIPT)


KINDS: dict[str, Callable[[], Histogram | Rows | Marginals | Factored | Median]] = {
    "histogram": lambda: Histogram(SCHEMA, TRUTH.project(SCHEMA.names), receipt=RECEIPT),
    "rows": lambda: Rows(SCHEMA, CODES, receipt=RECEIPT),
    "pairs": some_marginals,
    "triples": lambda: Marginals(SCHEMA, tables(3), receipt=RECEIPT),
    "sampled": lambda: some_marginals().sample(150, seed=1),
    "factored": some_blocks,
    "median": lambda: Median(  # three of five have the truth
        [some_marginals(), *(KINDS[kind]() for kind in ("histogram", "rows", "sampled", "rows"))], receipt=RECEIPT
    ),
    "unbiased": lambda: Marginals(SCHEMA, {("age",): np.array([-1.5, 2, 3, 4, 5])}, nonnegative=False, receipt=RECEIPT),
}
every_kind = pytest.mark.parametrize("kind", KINDS)

QUERIES = {
    "marginal": Marginal.over(SCHEMA, "sex", "age"),
    "conjunctions": Conjunctions.over(SCHEMA, "note"),
    "everybody": Counting.where(SCHEMA),
    "a count": Counting.where(SCHEMA, {"age": [1, 2, 4], "income": [1]}),
    "weights": Linear.of(SCHEMA, ("age", "note"), np.linspace(0, 1, 15)),
    "prefixes": prefixes(SCHEMA, "age"),
    "ranges": ranges(SCHEMA, "age", by="sex"),
    "work": marginals(SCHEMA, 2),
}


# -- answering


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("kind", ["histogram", "rows", "pairs", "triples"])
def test_a_synopsis_of_the_truth_answers_the_truth(kind: str, query: Any) -> None:
    released: Synopsis = KINDS[kind]()
    assert released.answer(query) == pytest.approx(query(*[TRUTH.project(columns) for columns in query.reads]))


@every_kind
def test_it_looks_like_a_table_to_a_query(kind: str) -> None:
    released: Projectable = KINDS[kind]()
    for columns in [(), ("age",), ("sex", "age"), ("age", "sex"), ("note", "one", "income"), SCHEMA.names]:
        table = released.project(columns)
        assert table.shape == SCHEMA.sizes(columns)
        assert table.dtype == np.float64
        assert float(table.sum()) == pytest.approx(KINDS[kind]().total)
    assert np.array_equal(released.project(("age", "sex")).T, released.project(("sex", "age")))


@every_kind
@pytest.mark.parametrize("columns", [("age", "age"), ("agee",)])
def test_columns_that_are_none_or_stand_twice_are_refused(kind: str, columns: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="Nothing was spent"):
        KINDS[kind]().project(columns)


@every_kind
def test_a_query_over_another_schema_is_refused(kind: str) -> None:
    with pytest.raises(InvalidQuery):
        KINDS[kind]().answer(Marginal(("age",), (9,)))


@every_kind
def test_what_it_holds_cannot_be_changed_by_its_reader(kind: str) -> None:
    released = KINDS[kind]()
    before = released.answer(QUERIES["marginal"]).copy()
    for array in released.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    answer = released.answer(QUERIES["marginal"])
    if answer.flags.writeable:
        answer[:] = -1
    assert np.array_equal(released.answer(QUERIES["marginal"]), before)


def test_a_query_of_more_cells_than_may_be_read_is_refused() -> None:
    wide = Schema([Integers(f"c{i}", 0, 999) for i in range(3)])
    with pytest.raises(InvalidQuery, match="one query may read"):
        Marginals(wide, {("c0",): np.ones(1000)}).project(wide.names)


# -- columns that no marginal holds together


def test_columns_that_no_marginal_joins_come_out_independent() -> None:
    released = Marginals(SCHEMA, {("age",): np.array([1.0, 2, 3, 4, 0]), ("sex",): np.array([5.0, 3, 2])})
    assert released.project(("age", "sex")) == pytest.approx(np.outer([1, 2, 3, 4, 0], [5, 3, 2]) / 10)
    assert released.project(("note",)) == pytest.approx([10 / 3] * 3)


def test_an_estimate_has_the_released_marginals_and_the_most_even_form() -> None:
    released = some_marginals()
    triple = released.project(("age", "sex", "note"))
    for axis, pair in enumerate([("sex", "note"), ("age", "note"), ("age", "sex")]):
        assert triple.sum(axis=axis) == pytest.approx(released.project(pair), abs=1e-3)
    # of greatest entropy: log-linear without an interaction of three, so all cross ratios are one
    logs = np.log(triple)
    ratio = logs[1:] - logs[:1]
    ratio = ratio[:, 1:] - ratio[:, :1]
    assert np.abs(ratio[:, :, 1:] - ratio[:, :, :1]).max() < 1e-3


def test_an_estimate_from_tables_with_empty_cells_keeps_them_empty() -> None:
    chain = {("age", "sex"): np.zeros((5, 3)), ("sex", "income"): np.zeros((3, 2))}
    chain["age", "sex"][0, 0] = chain["sex", "income"][0, 1] = 7
    released = Marginals(SCHEMA, chain)
    estimate = released.project(("age", "income"))
    assert estimate[0, 1] == pytest.approx(7)
    assert float(estimate.sum()) == pytest.approx(7)


# -- standard errors


def test_a_cell_and_a_sum_have_the_standard_errors_of_independent_noise_on_one_table() -> None:
    """Noise of deviation s on each cell of one table is noise of variance s^2 n(M - T) on its part u_T."""
    cells = SCHEMA.cells(("age", "sex"))
    noise = {part: 9.0 * cells / SCHEMA.cells(part) for part in [(), ("age",), ("sex",), ("age", "sex")]}
    released = Marginals(SCHEMA, {("age", "sex"): np.ones((5, 3))}, variances=noise)
    assert released.standard_error(QUERIES["marginal"]) == pytest.approx(np.full(15, 3.0))
    assert released.standard_error(Marginal.over(SCHEMA, "sex")) == pytest.approx(np.full(3, 3 * 5**0.5))
    assert released.standard_error(QUERIES["everybody"]) == pytest.approx([3 * 15**0.5])
    assert released.standard_error(Counting.where(SCHEMA, {"sex": [0, 1], "age": [3]})) == pytest.approx([3 * 2**0.5])
    half = Linear.of(SCHEMA, ("sex", "age"), np.full(15, 0.5))
    assert released.standard_error(half) == pytest.approx([1.5 * 15**0.5])
    widths = released.standard_error(prefixes(SCHEMA, "age"))
    assert widths == pytest.approx([3 * (3 * k) ** 0.5 for k in range(1, 6)])


def test_what_was_not_measured_has_no_standard_error() -> None:
    released = some_marginals()
    triple = Counting.where(SCHEMA, {"age": [1], "sex": [0], "note": [2]})
    pair = Counting.where(SCHEMA, {"age": [1], "sex": [0]})
    assert np.isnan(released.standard_error(triple)).all()
    both = released.standard_error(Workload((triple, pair)))
    assert np.isnan(both).tolist() == [True, False]
    sorted_ages = Function.of(
        SCHEMA, ("age",), np.sort, size=5, sensitivity=dict.fromkeys(_norms(), 1), neighbors=Neighbors.ADD_REMOVE
    )
    assert np.isnan(released.standard_error(sorted_ages)).all()
    assert np.isnan(KINDS["triples"]().standard_error(pair)).all()
    assert np.isnan(KINDS["rows"]().standard_error(pair)).all()


def _norms() -> list[Any]:
    from tacit.domain.grid import Norm

    return list(Norm)


# -- rows


def test_rows_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    released = some_marginals()
    one, again, other = released.sample(200, 3), released.sample(200, seed=3), released.sample(200, 4)
    assert np.array_equal(one.codes, again.codes)
    assert not np.array_equal(one.codes, other.codes)
    assert len(one) == 200
    assert one.receipt == RECEIPT
    assert one.total == pytest.approx(released.total)


@pytest.mark.parametrize(("rows", "seed"), [(-1, 0), (1.5, 0), (True, 0), (10, -1), (10, None), (10**9, 0)])
def test_a_number_of_rows_or_a_seed_that_is_none_is_refused(rows: Any, seed: Any) -> None:
    with pytest.raises(InvalidParameter):
        some_marginals().sample(rows, seed)


@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_as_many_rows_as_one_likes_stand_for_as_many_people_as_there_are(rows: int) -> None:
    sample = some_marginals().sample(rows, 0)
    assert len(sample) == rows
    assert sample.total == pytest.approx(400 if rows else 0)


def test_rows_can_be_drawn_from_marginals_that_are_negative_empty_or_say_nothing_of_a_column() -> None:
    unbiased = {("age", "sex"): np.array([[-3.0, 4, 9], [2, -1, 5], [1, 1, 1], [0, 0, 0], [-1, 2, 3]])}
    assert len(Marginals(SCHEMA, unbiased, nonnegative=False).sample(50, 0)) == 50
    empty = Marginals(SCHEMA, {("age",): np.zeros(5)}).sample(50, 0)
    assert (len(empty), empty.total) == (50, 0)
    even = Marginals(SCHEMA, {("age",): np.ones(5)}).sample(300, 0)
    assert even.project(("note",)) == pytest.approx([5 / 3] * 3)


def strongly_related(people: int, columns: int, size: int) -> tuple[Schema, Table]:
    rng = np.random.default_rng(0)
    codes = np.zeros((people, columns), dtype=np.int64)
    codes[:, 0] = rng.integers(0, size, people)
    for i in range(1, columns):
        codes[:, i] = (codes[:, rng.integers(i)] + rng.binomial(size - 1, 0.2, people)) % size
    schema = Schema([Integers(f"c{i}", 0, size - 1) for i in range(columns)])
    return schema, Table(schema, codes)


def test_the_rows_have_nearly_the_marginals_that_they_are_drawn_from_and_soon() -> None:
    """50,000 rows of 8 columns of 10 values, from 28 marginals: .02 in l1, .4 for independent columns; under 3 s."""
    schema, truth = strongly_related(50_000, 8, 10)
    pairs = list(combinations(schema.names, 2))
    released = Marginals(schema, {pair: truth.project(pair).astype(float) for pair in pairs})
    began = time.process_time()
    rows = released.sample(50_000, 0)
    assert time.process_time() - began < 3
    apart = [np.abs(rows.project(pair) - truth.project(pair)).sum() / 50_000 for pair in pairs]
    assert np.mean(apart) < 0.05
    alone = {name: truth.project((name,)) for name in schema.names}
    independent = [
        np.abs(np.outer(alone[a], alone[b]) / 50_000 - truth.project((a, b))).sum() / 50_000 for a, b in pairs
    ]
    assert np.mean(independent) > 0.3


def test_rows_are_written_as_a_table_of_labels(tmp_path: Path) -> None:
    rows = KINDS["sampled"]()
    assert isinstance(rows, Rows)
    rows.write_csv(tmp_path / "people.csv")
    with open(tmp_path / "people.csv", newline="", encoding="utf-8") as file:
        head, *lines = list(csv.reader(file))
    assert head == list(SCHEMA.names)
    assert len(lines) == 150
    for i, column in enumerate(SCHEMA):
        assert [line[i] for line in lines] == [column.labels[code] for code in rows.codes[:, i]]
    assert {line[2] for line in lines} == {"[0, 1000)", "[1000, 2500.5]"}
    with pytest.raises(InvalidParameter, match="exists"):
        rows.write_csv(tmp_path / "people.csv")
    rows.write_csv(tmp_path / "people.csv", overwrite=True)
    assert os.listdir(tmp_path) == ["people.csv"]


# -- what cannot be


def squares(value: float) -> np.ndarray:
    return np.full((5, 3), value)


WRONG: dict[str, Callable[[], object]] = {
    "another shape": lambda: Marginals(SCHEMA, {("age",): np.ones(4)}),
    "not a number": lambda: Marginals(SCHEMA, {("age",): np.array([1, 2, np.nan, 4, 5])}),
    "infinite": lambda: Histogram(SCHEMA, np.full(SCHEMA.sizes(SCHEMA.names), np.inf)),
    "negative": lambda: Marginals(SCHEMA, {("age",): np.array([1.0, 2, -1, 4, 5])}),
    "no table": lambda: Marginals(SCHEMA, {}),
    "out of order": lambda: Marginals(SCHEMA, {("sex", "age"): np.ones((3, 5))}),
    "twice": lambda: Marginals(SCHEMA, {("age", "age"): np.ones((5, 5))}),
    "at odds": lambda: Marginals(SCHEMA, {("age",): np.ones(5), ("age", "sex"): squares(1.0)}),
    "other totals": lambda: Marginals(SCHEMA, {("age",): np.ones(5), ("sex",): np.ones(3)}),
    "a part without variance": lambda: Marginals(SCHEMA, {("age",): np.ones(5)}, variances={(): 1.0}),
    "a negative variance": lambda: Marginals(SCHEMA, {("age",): np.ones(5)}, variances={(): 1.0, ("age",): -1.0}),
    "a count beyond any noise": lambda: Histogram(SCHEMA, np.full(SCHEMA.sizes(SCHEMA.names), 2.0**101)),
    "sums beyond any number": lambda: Marginals(
        SCHEMA, {("age", "sex"): squares(1.7e308), ("age",): np.full(5, 1.7e308)}, nonnegative=False
    ),
    "a variance beyond any noise": lambda: Marginals(
        SCHEMA, {("age",): np.ones(5)}, variances={(): 1e300, ("age",): 1e300}
    ),
    "rows outside": lambda: Rows(SCHEMA, CODES + 9),
    "rows of numbers": lambda: Rows(SCHEMA, CODES * 1.0),
    "rows too short": lambda: Rows(SCHEMA, CODES[:, :3]),
    "rows for nobody": lambda: Rows(SCHEMA, CODES, total=-1),
    "too many cells": lambda: Histogram(Schema([Integers(f"c{i}", 0, 99) for i in range(5)]), np.ones(1)),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_cannot_have_been_released_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        wrong()


# -- keeping


@every_kind
def test_what_was_saved_answers_alike_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    released = KINDS[kind]()
    save(released, tmp_path / "release")
    again = load(tmp_path / "release")
    assert type(again) is type(released)
    assert again.schema == released.schema
    assert again.receipt == released.receipt
    for query in QUERIES.values():
        assert np.array_equal(again.answer(query), released.answer(query))
        assert np.array_equal(again.standard_error(query), released.standard_error(query), equal_nan=True)
    if isinstance(released, Marginals | Factored) and isinstance(again, Marginals | Factored):
        assert np.array_equal(again.sample(20, 5).codes, released.sample(20, 5).codes)
    assert sorted(os.listdir(tmp_path)) == ["release"]
    assert sorted(os.listdir(tmp_path / "release")) == [SAID, TABLES]


def test_the_same_synopsis_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(some_marginals(), tmp_path / name)
    for file in (SAID, TABLES):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_another_receipt_can_be_given_and_one_there_must_be(tmp_path: Path) -> None:
    bare = Rows(SCHEMA, CODES)
    with pytest.raises(InvalidParameter, match="receipt"):
        save(bare, tmp_path / "release")
    assert os.listdir(tmp_path) == []
    save(bare, tmp_path / "release", RECEIPT)
    assert load(tmp_path / "release").receipt == RECEIPT


def test_a_folder_that_exists_is_left_alone_unless_it_is_an_old_release_that_may_go(tmp_path: Path) -> None:
    place = tmp_path / "release"
    save(some_marginals(), place)
    with pytest.raises(InvalidParameter, match="exists"):
        save(KINDS["rows"](), place)
    assert isinstance(load(place), Marginals)
    save(KINDS["rows"](), place, overwrite=True)
    assert isinstance(load(place), Rows)
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.txt").write_text("years of work")
    with pytest.raises(InvalidParameter, match="not replaced"):
        save(some_marginals(), other, overwrite=True)
    assert (other / "chapter.txt").is_file()
    os.symlink(place, tmp_path / "link")
    with pytest.raises(InvalidParameter, match="not replaced"):
        save(some_marginals(), tmp_path / "link", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["link", "release", "thesis"]


def test_a_disk_that_fails_leaves_the_old_release_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "release"
    save(some_marginals(), place)
    calls, real = [0], os.rename

    def rename(*names: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise OSError(28, "No space left on device")
        real(*names)

    monkeypatch.setattr("tacit.domain.storage.os.rename", rename)
    with pytest.raises(OSError, match="No space"):
        save(KINDS["rows"](), place, overwrite=True)
    assert isinstance(load(place), Marginals)
    assert os.listdir(tmp_path) == ["release"]


def _bytes(file: str, change: Callable[[bytearray], object]) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        content = bytearray((folder / file).read_bytes())
        change(content)
        (folder / file).write_bytes(content)

    return damage


def _flip(at: float) -> Callable[[bytearray], object]:
    def change(content: bytearray) -> None:
        content[int(len(content) * at)] ^= 1

    return change


def _replaced(one: bytes, other: bytes) -> Callable[[bytearray], object]:
    def change(content: bytearray) -> None:
        content[:] = content.replace(one, other)

    return change


def _cut(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _forged(**parts: Any) -> Callable[[Path], object]:
    """Other content with a digest that fits: what the digest does not find, the checks must."""
    from tacit.domain.storage import _digest

    def damage(folder: Path) -> None:
        said = json.loads((folder / SAID).read_text())
        for name, value in parts.items():
            said[name] = value(said[name]) if callable(value) else value
        said["digest"] = _digest(said)
        (folder / SAID).write_text(json.dumps(said))

    return damage


def _array(change: Callable[[np.ndarray], np.ndarray], *, compressed: bool = False) -> Callable[[Path], object]:
    """Another array, stored under its true digest."""
    import hashlib
    import io

    def damage(folder: Path) -> None:
        with zipfile.ZipFile(folder / TABLES) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        first = min(held)
        file = io.BytesIO()
        np.save(file, change(np.load(io.BytesIO(held[first]))), allow_pickle=True)
        held[first] = file.getvalue()
        with zipfile.ZipFile(
            folder / TABLES, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        ) as archive:
            for name, content in held.items():
                archive.writestr(name, content)
        digest = hashlib.sha256(held[first]).hexdigest()
        _forged(sha256=lambda digests: {**digests, first.removesuffix(".npy"): digest})(folder)

    return damage


def _set(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        other = array.copy()
        other.flat[0] = value
        return other

    return change


def _about(**parts: Any) -> Callable[[Path], object]:
    return _forged(about=lambda about: {**about, **parts})


def _receipt(**parts: Any) -> Callable[[Path], object]:
    return _forged(receipt=lambda receipt: {**receipt, **parts})


def _in_place_of_tables(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        (folder / TABLES).unlink()
        make(folder / TABLES)

    return damage


def _header(text: bytes) -> Callable[[Path], object]:
    """Another header before the numbers of an array, of the length that is said."""
    import hashlib

    def damage(folder: Path) -> None:
        with zipfile.ZipFile(folder / TABLES) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        first = min(held)
        ends = 10 + int.from_bytes(held[first][8:10], "little")
        held[first] = held[first][:8] + len(text).to_bytes(2, "little") + text + held[first][ends:]
        with zipfile.ZipFile(folder / TABLES, "w") as archive:
            for name, content in held.items():
                archive.writestr(name, content)
        digest = hashlib.sha256(held[first]).hexdigest()
        _forged(sha256=lambda digests: {**digests, first.removesuffix(".npy"): digest})(folder)

    return damage


_SIZED = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n"
DAMAGE: dict[str, Callable[[Path], object]] = {
    "no folder": lambda folder: shutil.rmtree(folder),
    "no description": lambda folder: (folder / SAID).unlink(),
    "no tables": lambda folder: (folder / TABLES).unlink(),
    "an empty description": lambda folder: (folder / SAID).write_text(""),
    "empty tables": lambda folder: (folder / TABLES).write_bytes(b""),
    "a description cut short": _bytes(SAID, _cut),
    "tables cut short": _bytes(TABLES, _cut),
    "a bit of the description": _bytes(SAID, _flip(0.3)),
    "a bit of the tables": _bytes(TABLES, _flip(0.4)),
    "a bit near the end of the tables": _bytes(TABLES, _flip(0.99)),
    "other JSON": lambda folder: (folder / SAID).write_text("[1, 2]"),
    "deep JSON": lambda folder: (folder / SAID).write_text("[" * 100_000),
    "JSON with NaN": _bytes(SAID, _replaced(b"4.0", b"NaN")),
    "text that is not ASCII": _bytes(SAID, lambda content: content.insert(9, 0xFF)),
    "a receipt that was improved": _bytes(SAID, _replaced(b"a trial", b"a lie!!")),
    "another format": _forged(format="another"),
    "a later version": _forged(version=2),
    "an unknown kind": _forged(kind="mean"),
    "a kind that it is not": _forged(kind="rows"),
    "a histogram that it is not": _forged(kind="histogram"),
    "a median that it is not": _forged(kind="median"),
    "another schema": _forged(schema=lambda schema: schema[:-1]),
    "no schema": _forged(schema=None),
    "a column of another size": _forged(schema=lambda schema: [{**schema[0], "high": 9}, *schema[1:]]),
    "no receipt": _forged(receipt=None),
    "a receipt with a part too many": _receipt(extra=1),
    "a receipt that cost nothing readable": _receipt(amount="1e-3"),
    "a receipt that cost less than nothing": _receipt(amount="-1/8"),
    "a receipt in another currency": _receipt(currency="euro"),
    "a receipt of unknown neighbours": _receipt(neighbors="friends"),
    "a receipt with charges that are none": _receipt(charges=[["Gaussian"]]),
    "a receipt with a very long text": _receipt(purpose="x" * 10**4),
    "no digests": _forged(sha256={}),
    "digests that are none": _forged(sha256=[1]),
    "a table more": _about(tables=[["age", "sex"]] * 11),
    "tables of unknown columns": _about(tables=[["agee", "sex"]] * 10),
    "no tables said": _about(tables=None),
    "variances missing": _about(variances=[]),
    "variances that are none": _about(variances=[["age", "x"]]),
    "a flag that is none": _about(nonnegative=1),
    "something more about it": _about(more=1),
    "a negative cell": _array(_set(-5.0)),
    "a cell that is not a number": _array(_set(np.nan)),
    "an infinite cell": _array(_set(np.inf)),
    "a cell at odds with the rest": _array(_set(90.0)),
    "a table of another shape": _array(lambda array: array[1:]),
    "a table turned round": _array(lambda array: np.asfortranarray(array)),
    "a table of objects": _array(lambda array: np.array([{"x": print}], dtype=object)),
    "a table of text": _array(lambda array: array.astype("U5")),
    "a table of another precision": _array(lambda array: array.astype(np.float32)),
    "tables that are a pipe": _in_place_of_tables(os.mkfifo),
    "tables that never end": _in_place_of_tables(lambda place: place.symlink_to("/dev/zero")),
    "a kind that is a list": _forged(kind=["marginals"]),
    "a version that is a truth": _forged(version=True),
    "a header that is no Python": _header(b"\0{"),
    "a header of old Python": _header(_SIZED % b"(5L, 3L)"),
    "a header that is deep": _header(_SIZED % (b"(" * 150 + b"2" + b")" * 150)),
    "a header of sizes that are none": _header(_SIZED % b"(5 3, 1)"),
    "a header of too many axes": _header(_SIZED % (b"(" + b"1, " * 100 + b"15)")),
    "variances in words": _about(variances=[[list(part), "4.0"] for part in variances(2)]),
    "compressed tables": _array(lambda array: array, compressed=True),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_or_foreign_folder_is_refused(damage: Callable[[Path], object], tmp_path: Path) -> None:
    place = tmp_path / "release"
    save(some_marginals(), place)
    load(place)
    before = {file: (place / file).read_bytes() for file in (SAID, TABLES)}
    damage(place)
    after = {file: (place / file).read_bytes() for file in (SAID, TABLES) if (place / file).is_file()}
    assert after != before
    with pytest.raises(InvalidData):
        load(place)


DAMAGED_BLOCKS: dict[str, Callable[[Path], object]] = {
    "marginals that it is not": _forged(kind="marginals"),
    "something more about it": _about(more=1),
    "a block more": _about(blocks=[["age", "sex"], ["income", "note"], ["one"], ["one"]]),
    "a block less": _about(blocks=[["age", "sex"], ["income", "note"]]),
    "a column of another block": _about(blocks=[["one"], ["age", "age"], ["income", "note"]]),
    "a column that is not there": _about(blocks=[["one"], ["agee", "sex"], ["income", "note"]]),
    "columns the other way round": _about(blocks=[["one"], ["sex", "age"], ["income", "note"]]),
    "blocks that are none": _about(blocks=5),
    "a block of no columns": _about(blocks=[[], ["one"], ["age", "sex"], ["income", "note"]]),
    "no people": _about(total=None),
    "fewer people than none": _about(total=-1.0),
    "more people than any": _about(total=10**400),
    "people who are a truth": _about(total=True),
    "blocks larger than it holds": _about(most=14),
    "no cells": _about(most=0),
    "fewer let go of than none": _about(let_go=-1),
    "a weight that is not a number": _array(_set(np.nan)),
    "an infinite weight": _array(_set(np.inf)),
    "no weight at all": _array(lambda array: np.full_like(array, -np.inf)),
    "a block of another shape": _array(lambda array: array[:-1]),
    "a block of bytes": _array(lambda array: array.astype(np.uint8)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("damage", DAMAGED_BLOCKS.values(), ids=DAMAGED_BLOCKS.keys())
def test_damaged_blocks_are_refused(damage: Callable[[Path], object], tmp_path: Path) -> None:
    place = tmp_path / "release"
    save(some_blocks(), place)
    load(place)
    damage(place)
    with pytest.raises(InvalidData):
        load(place)


def test_a_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    place = tmp_path / "release"
    save(some_marginals(), place)
    with zipfile.ZipFile(place / TABLES, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(10):
            archive.writestr(f"table{i}.npy", bytes(10**7))
    with pytest.raises(InvalidData, match="compressed or too large"):
        load(place)


def test_very_many_tables_are_compared_soon() -> None:
    schema = Schema([Integers(f"c{i}", 0, 1) for i in range(100)])
    held = {columns: np.full((2, 2), 250.0) for columns in combinations(schema.names, 2)}
    start = time.process_time()
    assert Marginals(schema, held).discrepancy == 0
    held["c0", "c99"] = np.array([[500.0, 0.0], [250.0, 250.0]])
    with pytest.raises(InvalidParameter, match="agree"):
        Marginals(schema, held)
    assert time.process_time() - start < 3  # 24 s, where every two were compared


def test_a_wide_table_that_meets_many_narrow_ones_is_compared_with_them() -> None:
    schema = Schema([Integers(f"c{i:02}", 0, 0) for i in range(40)])
    names = schema.names
    held = {names[:24]: np.full((1,) * 24, 9.0), **{(names[i], names[i + 16]): np.full((1, 1), 9.0) for i in range(24)}}
    assert Marginals(schema, held).discrepancy == 0
    with pytest.raises(InvalidQuery, match="overlap in too many"):
        Lattice({names: np.ones((1,) * 40), names[:39]: np.ones((1,) * 39)}).shared  # noqa: B018


# -- as its readers see it


def test_blocks_that_were_saved_are_read_and_sampled_as_a_release(tmp_path: Path) -> None:
    save(some_blocks(), tmp_path / "release")
    release = Release(load(tmp_path / "release"))
    answer = release.ask("age = 1 and sex = 'M'")
    assert answer.value == pytest.approx(some_blocks().answer(parse("age = 1 and sex = 'M'", SCHEMA)).item())
    assert not answer.measured
    rows = release.sample(400, seed=2)
    assert rows.project(("age", "sex")) == pytest.approx(some_blocks().project(("age", "sex")), abs=1)


def test_a_release_answers_a_query_as_it_is_asked() -> None:
    schema = Schema([Categories("a", ("x", "y")), Categories("b", ("u", "v"))])
    known = {(): 1.0, ("a",): 1.0, ("b",): 1.0}
    held = {("a",): np.array([-8.0, 108.0]), ("b",): np.array([30.0, 70.0])}
    release = Release(Marginals(schema, held, variances=known, nonnegative=False, receipt=RECEIPT))
    for text in ("a = 'x' and b = 'u'", "a = 'y' and b = 'u'", "a = 'y'", "a = 'x' or b = 'v'"):
        answer = release.ask(text)
        assert max(0, release.answer(parse(text, schema)).item()) == pytest.approx(answer.value), text
    assert release.answer(Marginal.over(schema, "a")).tolist() == [-8, 108]
    assert release.answer(Marginal.over(schema, "a", "b")).min() >= 0


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.99", "0.999999"])
def test_an_interval_holds_as_often_as_it_says_however_small_the_noise(confidence: str) -> None:
    schema = Schema([Categories("a", ("x", "y"))])
    z = np.arange(-200, 201)

    def reach(variance: float, currency: str) -> float:
        receipt = dataclasses.replace(RECEIPT, currency=currency)
        known = {(): variance * 2, ("a",): variance}
        held = Marginals(schema, {("a",): np.array([1e4, 1e4])}, variances=known, receipt=receipt)
        answer = Release(held).ask("a = 'x'", confidence=confidence)
        assert answer.standard_error**2 == pytest.approx(variance, rel=1e-9)
        return answer.high - 1e4

    for rate in np.linspace(0.3, 8, 60):
        q = np.exp(-rate)
        one = np.tanh(rate / 2) * q ** np.abs(z)
        for draws, law in ((1, one), (3, np.convolve(np.convolve(one, one, "same"), one, "same"))):
            far = reach(draws * 2 * q / (1 - q) ** 2, "epsilon")
            assert law[np.abs(z) <= far + 1e-9].sum() >= float(confidence) - 1e-12, (rate, draws)
    for sigma in np.linspace(0.2, 4, 60):
        law = np.exp(-(z**2) / (2 * sigma**2))
        law /= law.sum()
        far = reach(float((law * z**2).sum()), "rho")
        assert law[np.abs(z) <= far + 1e-9].sum() >= float(confidence) - 1e-12, sigma


def test_no_label_and_no_text_of_a_receipt_acts_on_a_terminal(tmp_path: Path) -> None:
    schema = Schema([Categories("sex", ("F", "\x1b[2J"))])
    forged = dataclasses.replace(RECEIPT, purpose="x\npromise   epsilon=0.001", created="\x1b]0;y\x07")
    save(Marginals(schema, {("sex",): np.ones(2)}, receipt=forged), tmp_path / "release")
    release = Release(load(tmp_path / "release"))
    for shown in (str(release.receipt), str(release.marginal("sex"))):
        assert shown.replace("\n", "").isprintable()
    assert str(release.receipt).count("\npromise") == 0


# -- the receipt


def test_a_receipt_reads_like_one_and_comes_back_from_its_description() -> None:
    said = str(RECEIPT)
    for part in ("epsilon=1, delta=1e-9", "rho=0.014973", "Gaussian(rho=1/8)", "add-remove", "a trial", "deviation 3"):
        assert part in said
    assert Receipt.of(json.loads(json.dumps(RECEIPT.describe()))) == RECEIPT
    pure = Receipt("epsilon", Fraction(1), (Fraction(1), Fraction(0)), (), Neighbors.REPLACE_ONE, (), total_public=True)
    assert str(pure).splitlines()[0] == "promise   epsilon=1"
    assert "their number was public" in str(pure)
    assert Receipt.of(pure.describe()) == pure
    assert "none stated" in str(pure)


def test_a_share_of_a_budget_was_never_stated_and_a_long_fraction_is_kept() -> None:
    odd = Fraction(3**200, 7**250)
    receipt = Receipt("rho", odd, None, (("x", odd),), Neighbors.ADD_REMOVE, ())
    assert Receipt.of(receipt.describe()).amount == odd
    assert str(receipt).startswith("promise   rho=")
