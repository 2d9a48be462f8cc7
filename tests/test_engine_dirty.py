"""What rows hold decides no error and stands in no message; what can be refused in public is refused at the door."""

from __future__ import annotations

import csv
import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.domain.schema import CELL, CLAMP, Categories, Integers, Numbers, Schema
from tacit.engines import delimited
from tacit.engines.delimited import BOM
from tacit.engines.duck import SAFE, Duck
from tacit.engines.encode import encoder
from tacit.engines.files import Files
from tacit.engines.table import Table, open_table
from tacit.errors import DataUnavailable, InvalidData, TacitError
from tests.bad_inputs_engines import BAD, CANARY, PEOPLE, parquet, written


def told(error: BaseException, *, frames: bool = True) -> str:
    """All that an exception carries to a log: texts, causes, and what the package's frames hold in their names."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        parts += [str(seen), repr(seen), repr(seen.args)]
        at = seen.__traceback__
        while at is not None:
            if frames and at.tb_frame.f_globals.get("__name__", "").startswith("tacit."):
                parts.append(repr(at.tb_frame.f_locals))
            at = at.tb_next
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


@pytest.mark.parametrize(("make", "error"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_source_is_refused_before_a_row_is_read(
    make: Callable[[Path], Any], error: type[TacitError], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(error) as caught:
        make(tmp_path)
    assert type(caught.value) is error
    message = str(caught.value)
    assert message.endswith("Nothing was read.")
    assert len(message) < 500
    assert CANARY not in told(caught.value, frames=False) + "".join(
        capfd.readouterr()
    )  # a frame's rows are its owner's
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# --- rows of a CSV file that are not what they should be: how many rows are counted, by age cell ----------------------

AGES = Schema([Integers("age", 0, 9, missing=CELL, outside=CELL), Categories("sex", ("F", "M"))])
MISSING, OUTSIDE = 10, 11
GOOD = b"1,F\n2,M\n"  # every file below holds these two rows first
DIRTY: list[tuple[str, bytes, list[int]]] = [
    ("nothing more", b"", []),
    ("no last line end", b"3,F", [3]),
    ("too few fields", b"3\n4,F\n", [4]),
    ("too many fields", b"3,F,%s\n4,F\n" % CANARY.encode(), [4]),
    ("only delimiters", b",\n", []),
    ("empty lines", b"\n\n4,F\n\n", [4]),
    ("lines of blanks", b"   \n\t\n4,F\n", [4]),
    ("carriage returns", b"3,F\r\n4,M\r\n", [3, 4]),
    ("mixed line ends", b"3,F\r\n4,M\n5,F\r6,M\n", [3, 4, 5, 6]),
    ("lone returns", b"3,F\r4,M\r", [3, 4]),
    ("an unknown category", b"3,%s\n4,F\n" % CANARY.encode(), [4]),
    ("a category in another case", b"3,f\n4,F\n", [4]),
    ("a category with blanks", b"3, F\n4,F \n", []),
    ("a text for a number", b"%s,F\n" % CANARY.encode(), [OUTSIDE]),
    ("an empty number", b",F\n", [MISSING]),
    ("a quoted empty number", b'"",F\n', [MISSING]),
    ("NA and null are texts", b"NA,F\nnull,F\nNULL,F\nNone,F\n", [OUTSIDE] * 4),
    ("not a number", b"nan,F\nNaN,F\n-nan,F\n", [MISSING] * 3),
    ("infinities", b"inf,F\n-Infinity,F\n", [OUTSIDE] * 2),
    ("signs and blanks", b"+3,F\n 4 ,F\n-0,F\n", [3, 4, 0]),
    ("whole fractions", b"3.0,F\n4.,F\n5e0,F\n60e-1,F\n", [3, 4, 5, 6]),
    ("real fractions", b"3.5,F\n0.1,F\n", [OUTSIDE] * 2),
    ("leading zeros", b"003,F\n" + b"0" * 500 + b"4,F\n", [3, 4]),
    ("a very long number", b"9" * 50_000 + b",F\n1e400,F\n-1e400,F\n5e-324,F\n", [OUTSIDE] * 4),
    ("ends of int64", b"9223372036854775807,F\n-9223372036854775808,F\n18446744073709551616,F\n", [OUTSIDE] * 3),
    ("numbers that wrap", b"256,F\n4294967297,F\n-255,F\n18446744073709551617,F\n", [OUTSIDE] * 4),
    ("other notations", b"0x3,F\n1_0,F\n3f,F\n\xd9\xa3,F\n1;2,F\n", [OUTSIDE] * 5),
    ("bytes that are no UTF-8", b"\xff\xfe,F\n4,\xe9\n5,F\n", [OUTSIDE, 5]),
    ("ragged bytes that are no UTF-8", b"\xff\xfe,F,\xff\n\xe9\n5,F\n", [5]),
    ("half a letter at the end", b"4,\xc3", []),
    ("null bytes", b"\x00,F\n4,F\x00\n5,F\n", [OUTSIDE, 5]),
    ("a mark in the middle", b"\xef\xbb\xbf3,F\n4,F\n", [OUTSIDE, 4]),
    ("quoted fields", b'"3","F"\n"4",F\n', [3, 4]),
    ("quotes in quotes", b'"3""","F"\n4,"F"""\n5,F\n', [OUTSIDE, 5]),
    ("a line end in quotes", b'3,"F\n4,M"\n5,F\n', [5]),
    ("a delimiter in quotes", b'"3,4",F\n5,F\n', [OUTSIDE, 5]),
    ("a quote within a field", b'3",F\n4"5,F\n6,F\n', [OUTSIDE, OUTSIDE, 6]),
    ("letters after a quote", b'"3"x,F\n4,"F"M\n5,F\n', [OUTSIDE, 5]),
    ("a quote that never closes", b'3,F\n4,"%s\n5,F\n' % CANARY.encode(), [3, 5]),
    ("two of them", b'3,"F\n4,F\n5,F"\n"6,M\n7,F\n', [4, 7]),
    ("a quote at the very end", b'3,F\n"', [3]),
    ("two quotes at the end", b'3,F\n4,""\n', [3]),
    ("apostrophes", b"'3','F'\n4,F\n", [4]),
    ("a comment", b"# 3,F\n4,F\n", [OUTSIDE, 4]),
    ("a formula", b"=1+2,F\n4,F\n", [OUTSIDE, 4]),
    ("the header again", b"age,sex\n4,F\n", [4]),
    ("a tab for a comma", b"3\tF\n4,F\n", [4]),
    ("a control letter", b"3\x1a,F\n4,F\n", [OUTSIDE, 4]),
    ("a full-width digit", "３,F\n4,F\n".encode(), [OUTSIDE, 4]),
    ("a decomposed letter", "4,F\u0301\n5,F\n".encode(), [5]),
    ("statements", b"3,'; drop table people; --\n4,F\n", [4]),
]


@pytest.mark.parametrize(("more", "expected"), [dirty[1:] for dirty in DIRTY], ids=[dirty[0] for dirty in DIRTY])
@pytest.mark.parametrize("block", [2**22, 7])
def test_a_dirty_row_is_counted_as_documented_and_says_nothing(
    more: bytes,
    expected: list[int],
    block: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", block)
    table = open_table(written(tmp_path / "t.csv", b"age,sex\n" + GOOD + more), AGES)
    ages, everybody = table.counts([("age",), ()])
    assert sorted(np.repeat(np.arange(12), ages).tolist()) == sorted([1, 2, *expected])
    assert int(everybody) == 2 + len(expected)
    assert "".join(capfd.readouterr()) == ""
    assert CANARY not in repr(table)


def test_an_empty_line_of_a_single_column_is_a_missing_value(tmp_path: Path) -> None:
    schema = Schema([Integers("age", 0, 3, missing=CELL, outside=CELL)])
    for content in (b"age\n1\n\n2\n", b'age\n1\n\n2\n"3"x\n'):
        counts = open_table(written(tmp_path / "t.csv", content), schema).counts([("age",)])[0]
        assert counts.tolist() == [0, 1, 1, 0, 1, int(b"x" in content)]


def test_whatever_a_row_holds_it_moves_no_other(tmp_path: Path) -> None:
    def ages(rows: list[bytes]) -> np.ndarray:
        path = written(tmp_path / "t.csv", b"age,sex\n" + b"\n".join(rows) + b"\n")
        return open_table(path, AGES).counts([("age",)])[0]

    others = [b"3,F", b'4,"M"', b"5", b'6"1,F', b"7,M\r"] * 1000
    alone = ages(others)
    for row in (
        b'4,"oops',
        b'"',
        b'"4,F',
        b'4,"a"b',
        b"4",
        b"4,F,F",
        b"\xff,\xff",
        BOM,
        b"",
        b"4," + b"x" * 2**20,
        b'4""',
    ):
        for at in (0, 2500, 5000):
            moved = ages([*others[:at], row, *others[at:]]) - alone
            assert 0 <= int(moved.sum()) <= 1, row[:10]
            assert int(np.abs(moved).sum()) <= 1, row[:10]


def test_a_stray_quote_takes_its_neighbours_along_only_where_fields_may_hold_line_ends(tmp_path: Path) -> None:
    rows = b"3,F\n" * 300_000
    path = written(tmp_path / "t.csv", b"age,sex\n" + rows + b'4,"\n' + rows)
    assert int(open_table(path, AGES).counts([()])[0]) == 600_000
    lost = 600_000 - int(open_table(path, AGES, multiline=True).counts([()])[0])
    assert 0 < lost <= delimited.LONGEST_ROW // 4 + 1


def test_a_field_with_line_ends_costs_its_row_or_is_read_by_a_word(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", b'age,"sex"\n1,F\n2,"a\nb""\r\nc"\r\n3,M\r4,"\r"\n')
    schema = Schema([Integers("age", 0, 9), Categories("sex", ("F", "M", 'a\nb"\r\nc', "\r"))])
    for multiline, expected in ((False, [1, 1, 0, 0]), (True, [1, 1, 1, 1])):
        table = open_table(path, schema, multiline=multiline)
        assert table.counts([("sex",)])[0].tolist() == expected


def test_only_a_file_of_lines_is_read_by_this_word(tmp_path: Path) -> None:
    for source in (pa.table({"age": [1], "sex": ["F"]}), parquet(tmp_path / "t.parquet")):
        with pytest.raises(InvalidData, match=r"for a CSV file\. Nothing was read"):
            open_table(source, PEOPLE, multiline=True)


@pytest.mark.parametrize("multiline", [False, True])
def test_a_row_that_is_too_long_is_dropped_wherever_it_stands(
    multiline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "LONGEST_ROW", 5000)
    schema = Schema([Integers("age", 0, 9)])
    for size, kept in ((4997, 1), (4998, 0), (70_000, 0)):
        for block in (1000, 4999, 2**22):
            monkeypatch.setattr(delimited, "BLOCK", block)
            for before in (b"", b"3,\n", b'3,"F"x\n', b"3\n3,\n", b"3,y\n" * 20):
                for after in (b"", b"4,\r4,", b'4,"x"\n' * 50):
                    for end in (b"\n", b"\r"):
                        content = b"age,note\n" + before + b"1," + b"x" * size + end + after
                        table = open_table(written(tmp_path / "t.csv", content), schema, multiline=multiline)
                        counts = table.counts([("age",)])[0].tolist()
                        lines = before.count(b"3,"), after.count(b"4,")
                        assert (counts[1], counts[3], counts[4]) == (kept, *lines), (
                            size,
                            block,
                            before,
                            end,
                            after[:9],
                        )


def test_no_setting_of_the_program_changes_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", b'age,sex\n1,"F"x\n2,' + b"x" * 200_000 + b'\n3,"M"\n')
    schema = Schema([Integers("age", 0, 9)])
    before = csv.field_size_limit(1)
    try:
        assert open_table(path, schema).counts([("age",)])[0].tolist()[1:4] == [1, 1, 1]
    finally:
        csv.field_size_limit(before)


def plainly(content: bytes, width: int, multiline: bool) -> list[tuple[bytes, ...]]:
    """Its rows, cut by the rule and then read by Python's csv."""
    rows, held = [], b""
    for line in re.findall(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", content):
        held += line
        if not (multiline and held.count(b'"') % 2):
            rows.append(held)
            held = b""
    found = []
    for row in [*rows, held] if held else rows:
        bare = re.sub(rb"(\r\n|\n|\r)\Z", b"", row).decode("latin-1")
        reader = csv.reader(iter([*bare.splitlines(keepends=True), "\n"]) if bare else iter(["\n"]))
        fields = next(reader) or [""] * (width == 1)
        closed = reader.line_num <= max(1, len(bare.splitlines()))
        if closed and len(fields) == width:
            found.append(tuple(text.encode("latin-1") for text in fields))
    return sorted(found)


@pytest.mark.parametrize("multiline", [False, True])
def test_rows_are_cut_as_a_plain_reader_cuts_them(multiline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    for _ in range(2500):
        width = draw.choice([1, 2, 3])
        alphabet = draw.choice([b'ab,,\n\n"\r', b"a,\n", b'a",\n', b'\xef\xbb\xbf,\n"a\0', b"a,\r\n"])
        content = bytes(draw.choices(alphabet, k=draw.randrange(30)))
        if multiline or draw.random() < 0.5:  # well formed, but for a cut at the end
            held = io.StringIO()
            writer = csv.writer(held, lineterminator=draw.choice(["\n", "\r\n"]), quoting=draw.choice([0, 1]))
            for _ in range(draw.randrange(6)):
                writer.writerow(["".join(draw.choices('ab,"\n ', k=draw.randrange(4))) for _ in range(width)])
            content = held.getvalue().encode()[: draw.choice([None, draw.randrange(40)])]
        monkeypatch.setattr(delimited, "BLOCK", draw.choice([1, 2, 3, 5, 8, 1000]))
        found: list[tuple[bytes, ...]] = []
        for batch in delimited._Rows(io.BytesIO(content), ",", width, list(range(width)), multiline).batches():
            found += zip(*[column.to_pylist() for column in batch.columns], strict=True)
        assert sorted(found) == plainly(content, width, multiline), content


def test_no_single_byte_makes_a_file_unreadable(tmp_path: Path) -> None:
    body = b'1,F\n"2",M\n3,F\r\n'
    for at in range(len(body) + 1):
        for byte in b'\x00\n\r",\xff\xef9Fe.-':
            content = b"age,sex\n" + body[:at] + bytes([byte]) + body[at:]
            assert 0 <= int(open_table(written(tmp_path / "t.csv", content), AGES).counts([()])[0]) <= 4


def test_no_value_makes_an_encoder_fail() -> None:
    draw = random.Random(4)
    columns = [
        Integers("i", -5, 300, outside=CLAMP),
        Integers("wide", -(2**62), -(2**62) + 999_999, outside=CELL),
        Numbers("n", (-1.5, 0, 2.0**53), outside=CLAMP),
        Categories("t", ("a", "1", "é", "-0.5")),
        Categories("k", (3, 2**63 - 1, -(2**63) + 1)),
        Categories("b", (True, False)),
    ]
    letters = [
        b"0",
        b"1",
        b"9",
        b"-",
        b"+",
        b".",
        b"e",
        b"E",
        b" ",
        b"n",
        b"a",
        b"inf",
        b"\xff",
        b"\xc3\xa9",
        b"\0",
        b"\n",
    ]
    texts = [b"".join(draw.choices(letters, k=draw.randrange(12))) for _ in range(5000)]
    wild = np.frombuffer(random.Random(5).randbytes(8 * 20_000), dtype=np.uint8)
    for column in columns:
        encodes = encoder(column)
        held: list[pa.Array] = [pa.array(texts, pa.binary()), pa.array(texts, pa.large_binary()).dictionary_encode()]
        if column.name != "b":
            held += [pa.array(wild.view(kind)) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")]
        for values in held:
            with np.errstate(all="raise"):
                codes, dropped = encodes(values)
            assert int(codes.max()) < column.size
            assert dropped is None or dropped.any()


# --- what fails in the middle ----------------------------------------------------------------------------------------


def big(path: Path) -> Path:
    draw = np.random.default_rng(1)
    table = pa.table({"age": draw.integers(0, 120, 50_000), "sex": [f"{CANARY}-{n}" for n in range(50_000)]})
    pq.write_table(table, path, compression="gzip", use_dictionary=False)
    return path


def garbled(path: Path) -> None:
    content, stamp = bytearray(path.read_bytes()), path.stat()
    for at in range(100, len(content) // 2):
        content[at] ^= 0x5A
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"1,F\n")


def replaced(path: Path) -> None:
    content, stamp = path.read_bytes(), path.stat()
    path.rename(path.with_suffix(".old"))
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def emptied(path: Path) -> None:
    path.unlink()
    path.mkdir()


def canary_csv(path: Path) -> Path:
    return written(path, b"age,sex\n" + b"1,F\n2,%s\n" % CANARY.encode() * 50)


def rotted(path: Path) -> None:
    garbled(path)


def moved_and_back(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.with_suffix(".old").rename(path)


def looked_at_again(table: Table) -> None:
    """As if the file had been so all along, as it is where a disk loses bits."""
    files: Any = table._source
    files.files.stamps = files.files._stamps()


@pytest.mark.parametrize(
    "spoil",
    [rotted, garbled, grown, replaced, moved_and_back, emptied, Path.unlink],
    ids=lambda spoil: spoil.__name__,
)
@pytest.mark.parametrize("make", [big, canary_csv], ids=["parquet", "csv"])
def test_what_fails_in_the_middle_fails_with_constant_words(
    make: Callable[[Path], Path], spoil: Callable[[Path], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if make is canary_csv and spoil is rotted:
        pytest.skip("a rotted CSV file is one with other values")
    path = make(tmp_path / ("t.parquet" if make is big else "t.csv"))
    table = open_table(path, PEOPLE)
    spoil(path)
    if spoil is rotted:
        looked_at_again(table)
    for _ in range(2):
        with pytest.raises(DataUnavailable) as caught:
            table.counts([("age",)])
        assert str(caught.value) in {
            "the source could not be read to its end; what was charged stays charged, nothing was drawn.",
            "the source has changed since it was opened; what was charged stays charged, nothing was drawn.",
        }
        assert (spoil is rotted) == ("to its end" in str(caught.value))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert CANARY not in told(caught.value) + "".join(capfd.readouterr())


def test_counts_that_were_read_are_not_served_after_a_change(tmp_path: Path) -> None:
    path = canary_csv(tmp_path / "t.csv")
    table = open_table(path, PEOPLE)
    table.counts([("age",)])
    grown(path)
    with pytest.raises(DataUnavailable, match="has changed"):
        table.counts([("age",)])


def test_a_file_that_joins_a_folder_is_a_change(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    table = open_table(tmp_path, PEOPLE)
    table.counts([()])
    parquet(tmp_path / "b.parquet")
    with pytest.raises(DataUnavailable, match="has changed"):
        table.counts([()])


def test_a_progress_that_fails_says_nothing_either(tmp_path: Path) -> None:
    def failing(done: int, whole: int | None) -> None:
        raise RuntimeError(CANARY)

    with pytest.raises(DataUnavailable) as caught:
        open_table(canary_csv(tmp_path / "t.csv"), PEOPLE).read([("age",)], failing)
    assert CANARY not in told(caught.value)


# --- DuckDB ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def duck(tmp_path: Path) -> Path:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create type mood as enum ('sad', 'well')")
        connection.execute(
            "create table people as select * from (values "
            "(170141183460469231731687303715884105727::hugeint, 'well'::mood, 'A' collate nocase, 1.50::decimal(38,2), "
            "date '2020-01-01', true, 'a', '{}'::json), ((-170141183460469231731687303715884105727)::hugeint, "
            "'sad'::mood, 'b', 2, null, false, 'o''x', '1'::json), "
            "(3::hugeint, null, '', null, null, null, '\"; drop table people; --', null)) "
            "as v(huge, mood, folded, money, day, truth, note, json)"
        )
        connection.execute("comment on column people.huge is 'commented'")
        connection.execute("create view seen as select * from people")
        connection.execute("create table computed (a int, b int generated always as (a + 1) virtual)")
        connection.execute("insert into computed values (1)")
    return path


def test_every_type_of_duckdb_is_read_or_refused_by_name(duck: Path) -> None:
    schema = Schema(
        [
            Integers("huge", 0, 5, missing=CELL, outside=CLAMP),
            Categories("mood", ("well", "sad"), missing=CELL),
            Categories("folded", ("a", "b"), missing=CELL, outside=CELL),
            Numbers("money", (0, 1.5, 2), missing=CELL),
            Categories("truth", (True, False), missing=CELL),
            Categories("note", ('"; drop table people; --', "o'x"), outside=CELL),
        ]
    )
    counts = open_table(duck, schema, table="people").counts([(name,) for name in schema.names])
    assert [table.tolist() for table in counts] == [
        [1, 0, 0, 1, 0, 1, 0],
        [1, 1, 1],
        [0, 1, 1, 1],
        [0, 2, 1],
        [1, 1, 1],
        [1, 1, 1],
    ]
    for name in ("day", "json"):
        with pytest.raises(InvalidData, match=f"'{name}' is of type"):
            open_table(duck, Schema([Integers(name, 0, 1)]), table="people")
    with pytest.raises(InvalidData, match="'b' is of type 'GENERATED'"):
        open_table(duck, Schema([Integers("b", 0, 5)]), table="computed")
    assert open_table(duck, Schema([Integers("a", 0, 2)]), table="computed").counts([("a",)])[0].tolist() == [0, 1, 0]


def test_no_collation_makes_a_text_empty(duck: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect(str(duck)) as connection:
        connection.execute("create table marks (note varchar collate noaccent)")
        connection.execute("insert into marks values (chr(769)), (''), (null), ('a')")
    schema = Schema([Categories("note", ("a",), missing=CELL, outside=CELL)])
    assert open_table(duck, schema, table="marks").counts([("note",)])[0].tolist() == [1, 2, 1]


def test_rows_that_wait_beside_a_duckdb_file_are_a_change(duck: Path) -> None:
    table = open_table(duck, Schema([Integers("huge", 0, 5)]), table="people")
    grow = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); c.execute('pragma disable_checkpoint_on_shutdown'); "
        "c.execute('insert into people select * from people'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", grow, str(duck)], check=True)
    assert duck.with_name(duck.name + ".wal").exists()
    with pytest.raises(DataUnavailable, match="has changed"):
        table.counts([("huge",)])
    assert int(open_table(duck, Schema([Integers("huge", 0, 5)]), table="people").counts([()])[0]) == 2


@pytest.mark.parametrize(
    "name", ["seen", "people; drop table people", '"people"', "main.people", "PEOPLE", "", "pg_class"]
)
def test_only_a_stored_table_of_exactly_this_name_is_read(name: str, duck: Path) -> None:
    with pytest.raises(InvalidData, match="no stored table"):
        open_table(duck, Schema([Integers("huge", 0, 5)]), table=name)


def test_no_variable_of_the_program_is_taken_for_a_table(duck: Path) -> None:
    intruder = pa.table({"huge": [1]})
    with pytest.raises(InvalidData, match="no stored table"):
        open_table(duck, Schema([Integers("huge", 0, 5)]), table="intruder")
    assert intruder.num_rows == 1


def test_categories_with_any_letters_keep_the_statement_one_projection(duck: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    texts = (
        "'",
        "''",
        "'); drop table people; --",
        "\\",
        "\\'",
        "$$",
        "/*",
        "\n",
        "a\0b",
        "\u202e",
        "é",
        "e\u0301",
        '"',
    )
    schema = Schema([Categories("note", texts, outside=CELL), Categories('od"d', ("x",), outside=CELL)])
    with duckdb.connect(str(duck)) as connection:
        connection.execute('create table odd (note varchar, "od""d" varchar)')
        connection.executemany("insert into odd values (?, 'x')", [[text] for text in texts])
    assert open_table(duck, schema, table="odd").counts([("note",)])[0].tolist() == [1] * len(texts) + [0]
    assert open_table(duck, Schema([Categories("note", texts[:8], outside=CELL)]), table="odd").counts([("note",)])[
        0
    ].tolist() == [1] * 8 + [len(texts) - 8]
    source = Duck(Files(str(duck)), "odd", Schema([Categories("note", texts[:8])]))
    list(source.headers())
    assert source.coded == {"note"}
    (statement,) = duckdb.extract_statements(source.statement(("note",)))
    assert "SELECT" in str(statement.type)


def test_the_file_is_opened_read_only_and_locked(duck: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    secret = written(duck.with_name("secret.csv"), b"a\n1\n")
    with duckdb.connect(str(duck), read_only=True, config=dict(SAFE)) as connection:
        for statement in (
            "create table more (a int)",
            "insert into people select * from people",
            "drop table people",
            f"from read_csv('{secret}')",
            f"copy people to '{secret}'",
            f"attach '{secret}'",
            "set enable_external_access = true",
            "install httpfs",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)


def test_a_damaged_duckdb_file_fails_with_constant_words(duck: Path, capfd: pytest.CaptureFixture[str]) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect(str(duck)) as connection:
        connection.execute("create table large as select n % 5 as a, ? || n as b from range(200000) as r(n)", [CANARY])
    table = open_table(duck, Schema([Integers("a", 0, 5)]), table="large")
    garbled(duck)
    looked_at_again(table)
    with pytest.raises(DataUnavailable) as caught:
        table.counts([("a",)])
    assert CANARY not in told(caught.value) + "".join(capfd.readouterr())
    with pytest.raises(InvalidData) as refused:
        open_table(duck, Schema([Integers("a", 0, 5)]), table="large").counts([("a",)])
    assert CANARY not in told(refused.value)


# --- what is loaded, and what is shown -------------------------------------------------------------------------------


def test_a_table_shows_its_schema_and_no_row(tmp_path: Path) -> None:
    for source in (pa.table({"age": [1], "sex": [CANARY]}), canary_csv(tmp_path / "t.csv")):
        table = open_table(source, PEOPLE)
        table.counts([("age", "sex")])
        assert repr(table) in {"Table(Schema(age: 121, sex: 2), Arrow)", "Table(Schema(age: 121, sex: 2), CSV)"}
        assert str(table) == repr(table)


def test_reading_files_loads_neither_pandas_nor_polars_nor_unused_engines(tmp_path: Path) -> None:
    big(tmp_path / "t.parquet")
    canary_csv(tmp_path / "t.csv")
    program = (
        "import sys; from tacit.engines.table import open_table; from tacit.domain.schema import *\n"
        "people = Schema([Integers('age', 0, 120), Categories('sex', ('F', 'M'))])\n"
        f"for path in ({str(tmp_path / 't.parquet')!r}, {str(tmp_path / 't.csv')!r}):\n"
        "    open_table(path, people).counts([('age', 'sex')])\n"
        "print({'pandas', 'polars', 'duckdb'} & set(sys.modules))"
    )
    root = Path(__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True)
    assert (run.stdout, run.stderr) == ("set()\n", "")
