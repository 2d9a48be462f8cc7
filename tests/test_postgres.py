"""A real PostgreSQL server: what is read, what is refused, that nothing is written, and how it goes away."""

# ruff: noqa: S608 - the statements are our own

from __future__ import annotations

import gc
import math
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Marginal
from tacit.domain.schema import CELL, CLAMP, Categories, Column, Dates, Integers, Neighbors, Numbers, Schema
from tacit.engines import server, wire
from tacit.engines.postgres import Postgres
from tacit.engines.server import Failed, Session
from tacit.engines.sources import UNREADABLE
from tacit.engines.table import Table, open_table
from tacit.errors import DataUnavailable, InvalidData
from tacit.primitives.additive import Laplace
from tacit.privacy.budget import Budget
from tacit.service.people import People
from tests.bad_inputs_engines import CANARY
from tests.bad_inputs_service import CONTRACT
from tests.doubles import Scripted
from tests.postgres import PASSWORD, Server
from tests.postgres import server as started
from tests.test_engine_dirty import told
from tests.test_engines import naive_counts

CHANGED = "the source has changed since it was opened; what was charged stays charged, nothing was drawn."
AGES = Schema([Integers("age", 0, 9, missing=CELL, outside=CELL)])


@pytest.fixture(scope="module")
def town() -> Server:
    return started()


@pytest.fixture
def made(town: Server) -> str:
    """A schema of the test's own, with a table of three people in it."""
    schema = town.fresh()
    town.run(
        f'create table "{schema}".people (age int, sex text)',
        f"""insert into "{schema}".people values (1, 'F'), (2, 'M'), (2, '{CANARY}')""",
    )
    return schema


def ages(town: Server, made: str, table: str = "people", source: str = "") -> Table:
    return open_table(source or town.uri, AGES, table=f'"{made}"."{table}"')


def by_role(town: Server, role: str) -> str:
    town.run(f"drop role if exists {role}", f"create role {role} login")
    return town.uri.replace("keeper@", f"{role}@")


@contextmanager
def a_role(town: Server, made: str, *grants: str) -> Iterator[str]:
    uri = by_role(town, "reader")
    try:
        town.run(*(grant.format(f'"{made}"') for grant in grants), "select 1")
        yield uri
    finally:
        town.run("drop owned by reader", "drop role reader")


# --- what a value becomes --------------------------------------------------------------------------------------------

YEAR = Dates("c", "2024-01-01", "2024-12-31", "year")
TYPES: list[tuple[str, list[str], Column, list[int]]] = [
    ("text", ["'a'", "'a '", "'A'", "''", "null", "repeat('a', 3000000)"], Categories("c", ("a",)), [1, 2, 3]),
    ("varchar(3)", ["'a'", "'a '", "'é'", "null"], Categories("c", ("é", "a")), [1, 1, 1, 1]),
    ("char(4)", ["'a'", "'a  '", "' a'", "''", "null"], Categories("c", ("a",)), [2, 2, 1]),
    ("char(4)", ["'7'", "' 7'", "'x'"], Integers("c", 7, 7), [2, 0, 1]),
    ("text", ["repeat('0', 1000) || '7'", "repeat('0', 2000000) || '7'"], Integers("c", 7, 7), [1, 0, 1]),
    ("bytea", ["'a'", r"'\xff'", "''", "repeat('a', 99)::bytea"], Categories("c", ("a",)), [1, 1, 2]),
    ("uuid", ["'A0EEBC999C0B4EF8BB6D6BB9BD380A11'", "'00000000-0000-0000-0000-000000000000'"],
     Categories("c", ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",)), [1, 0, 1]),
    ("mood", ["'well'", "'sad'", "null"], Categories("c", ("sad", "well")), [1, 1, 1, 0]),
    ("short", ["'a'", "'b'", "null"], Categories("c", ("a",)), [1, 1, 1]),
    ("shorter", ["'a'", "'b'", "null"], Categories("c", ("a",)), [1, 1, 1]),
    ("boolean", ["true", "false", "null"], Categories("c", (True,)), [1, 1, 1]),
    ("smallint", ["32767", "-32768", "7", "null"], Integers("c", 7, 7), [1, 1, 2]),
    ("integer", ["7", "263", "2147483647", "-2147483648"], Integers("c", 7, 7), [1, 0, 3]),
    ("bigint", ["7", "4294967303", "9223372036854775807", "-9223372036854775808"], Integers("c", 7, 7), [1, 0, 3]),
    ("real", ["'nan'", "'inf'", "'-inf'", "'-0'", "0.1", "'1e-45'"], Numbers("c", (0, 0.1, 1)), [2, 1, 1, 2]),
    ("float8", ["'nan'", "'inf'", "'-inf'", "'-0'", "0.1", "'5e-324'"], Numbers("c", (0, 0.1, 1)), [2, 1, 1, 2]),
    ("numeric(9, 4)", ["7", "7.0000", "7.0001", "-7", "'nan'", "null"], Integers("c", 7, 7), [2, 2, 2]),
    ("numeric", ["'inf'", "'-inf'", "7e130000", "-1e130000", "1e-16000", "7"], Integers("c", 7, 7), [1, 0, 5]),
    ("numeric", ["0.5", "0.500", "0.5000000000000000000001", "7.0", "1"], Categories("c", ("0.5", "7")), [3, 1, 0, 1]),
    ("date", ["'2024-01-01'", "'2023-12-31'", "'infinity'", "'-infinity'", "'0044-03-15 BC'", "null"], YEAR, [1, 1, 4]),
    ("timestamp", ["'2023-12-31 23:59:59.999999'", "'2024-12-31 23:59:59.999999'", "'infinity'", "'-infinity'"],
     YEAR, [1, 0, 3]),
    ("timestamptz", ["'2024-12-31 23:30-01'", "'2025-01-01 00:30+01'", "'2024-01-01 00:30+01'", "null"],
     YEAR, [1, 1, 2]),
    ("char(16)", ["'2024-02-29'", "' 2024-02-29T12:'", "'2023-02-29'", "''"], YEAR, [1, 1, 2]),
    ("text", ["'2024-02-29 23:30-01'", "repeat(' ', 99) || '2024-12-31'", "repeat(' ', 2000000) || '2024-12-31'"],
     YEAR, [2, 0, 1]),
    ("numeric", ["9007199254740992", "9007199254740993", "0.3", "0.30"], Numbers("c", (0, 0.3, 2**53)), [0, 3, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values", "column", "expected"), TYPES, ids=lambda part: part if type(part) is str else ""
)
def test_every_type_goes_where_the_documents_say(
    kind: str, values: list[str], column: Any, expected: list[int], town: Server, made: str
) -> None:
    """The counts are of the domain's cells, of what is missing, and of what is outside."""
    own = {"mood": f'"{made}".mood', "short": f'"{made}".short', "shorter": f'"{made}".shorter'}
    town.run(
        f"""create type "{made}".mood as enum ('sad', 'well')""",
        f'create domain "{made}".short as varchar(2) check (length(value) < 2)',
        f'create domain "{made}".shorter as "{made}".short',
        f'create table "{made}".typed (c {own.get(kind, kind)})',
        *(f'insert into "{made}".typed values ({value})' for value in values),
    )
    column = replace(column, missing=CELL, outside=CELL)
    counts = open_table(town.uri, Schema([column]), table=f'"{made}".typed').counts([("c",)])[0]
    assert counts.tolist() == expected


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_the_infinities_are_clamped_to_the_first_and_the_last_day(kind: str, town: Server, made: str) -> None:
    town.run(f'create table "{made}".typed (c {kind})')
    town.run(f"""insert into "{made}".typed values ('-infinity'), ('-infinity'), ('infinity'), ('4713-01-01 BC')""")
    days = Schema([Dates("c", "2024-01-01", "2025-12-31", "year", outside=CLAMP)])
    assert open_table(town.uri, days, table=f'"{made}".typed').counts([("c",)])[0].tolist() == [3, 1]


@pytest.mark.parametrize(
    "kind",
    ["json", "jsonb", "xml", "interval", "time", "timetz", "money", "int[]", "inet", "bit(3)", "oid", "name", '"char"',
     "point", "tsvector", "int4range", "pair", "date", "timestamp", "timestamptz"],
)  # fmt: skip
def test_any_other_type_is_refused_by_its_name(kind: str, town: Server, made: str) -> None:
    town.run(
        f'create type "{made}".pair as (a int, b int)',
        f'create table "{made}".odd (age {f"{made!r}.pair".replace(chr(39), chr(34)) if kind == "pair" else kind})',
    )
    with pytest.raises(InvalidData, match="column 'age' is of type"):
        ages(town, made, "odd")


def test_columns_that_nobody_asks_for_may_be_of_any_type(town: Server, made: str) -> None:
    town.run(
        f'create table "{made}".wide (a json, age int, b point[], c int generated always as (age * 2) stored, d int)',
        f'alter table "{made}".wide drop column d',
        f'insert into "{made}".wide (age) values (3)',
    )
    assert ages(town, made, "wide").counts([("age",)])[0][3] == 1
    doubled = open_table(town.uri, Schema([Integers("c", 0, 9)]), table=f'"{made}".wide').counts([("c",)])[0]
    assert doubled[6] == 1


def test_numerics_of_any_size_are_read_as_decimals_are(town: Server) -> None:
    draw = random.Random(5)
    values = [None, Decimal(0)]
    for _ in range(3000):
        digits = draw.choice(["7", "3", "10000", "9999", "1", "5", str(draw.randrange(10 ** draw.randrange(1, 40)))])
        values.append(Decimal(draw.choice(["", "-"]) + digits).scaleb(draw.randrange(-45, 45)))
        values.append(Decimal(draw.randrange(-12000, 12000)) / draw.choice([1, 10, 100, 1000, 8]))
        values.append(Decimal(2**53 + draw.randrange(-3, 4)).scaleb(draw.choice([0, 0, 0, -1, -4])))
    schema = Schema(
        [
            Integers("whole", -5, 9, missing=CELL, outside=CLAMP),
            Integers("large", 2**53 - 2, 2**53 + 2, missing=CELL, outside=CELL),
            Numbers("real", (-(2**53), -9.5, 0, 0.1, 0.3, 3, 1000.25, 2**53), missing=CELL, outside=CELL),
            Categories("named", ("3", "0.5", "-0.125", "10000"), missing=CELL, outside=CELL),
        ]
    )
    held = dict.fromkeys(schema.names, values)
    uri, table = town.hold(held, dict.fromkeys(schema.names, "numeric"))
    sets = [(name,) for name in schema.names]
    found = open_table(uri, schema, table=table).counts(sets)
    for counts, expected in zip(found, naive_counts(schema, held, sets), strict=True):
        np.testing.assert_array_equal(counts, expected)


def test_no_collation_makes_two_texts_one(town: Server, made: str) -> None:
    folded = "create collation \"{0}\".folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    town.run(
        folded.format(made),
        f'create table "{made}".marks (note text collate "{made}".folded)',
        f"""insert into "{made}".marks values ('a'), ('A'), ('é'), ('e' || chr(769)), (chr(769)), ('')""",
    )
    schema = Schema([Categories("note", ("a", "é"), missing=CELL, outside=CELL)])
    assert open_table(town.uri, schema, table=f'"{made}".marks').counts([("note",)])[0].tolist() == [1, 1, 1, 3]


def test_bytes_that_are_no_text_are_outside_and_other_encodings_are_refused(town: Server) -> None:
    schema = Schema([Categories("note", ("é",), missing=CELL, outside=CELL)])
    for name in ("sql_ascii", "latin1"):
        town.run(f"drop database if exists {name}", f"create database {name} encoding {name} template template0")
        uri = town.uri.replace("/postgres?", f"/{name}?")
        if name == "latin1":
            with pytest.raises(InvalidData, match="an encoding other than UTF8"):
                open_table(uri, schema, table="public.notes")
            continue
        import psycopg

        with psycopg.connect(uri, autocommit=True, client_encoding="SQL_ASCII") as connection:
            connection.execute("create table notes (note text)")
            connection.pgconn.exec_(b"insert into notes values ('\xc3\xa9'), ('\xff\xfe'), ('\xe9'), ('')")
        assert open_table(uri, schema, table="public.notes").counts([("note",)])[0].tolist() == [1, 1, 2]


def test_days_and_times_arrive_from_1970_on_and_the_infinities_at_the_ends() -> None:
    days, moments = np.array([0, 1, -(2**31), 2**31 - 1], ">i4"), np.array([0, -(2**63), 2**63 - 1, 2**63 - 2], ">i8")
    for field, given, size in (
        (wire.Moments(pa.date32(), ">i4"), days, 4),
        (wire.Moments(pa.timestamp("us"), ">i8"), moments, 8),
    ):
        letters = np.frombuffer(given.tobytes(), np.uint8)
        at, there = np.arange(0, len(letters), size), np.ones(4, dtype=bool)
        found = field(letters, at, np.full(4, size), there).view(pa.int32() if size == 4 else pa.int64()).to_pylist()
        if size == 4:
            assert found == [10_957, 10_958, -(2**31), 2**31 - 1]
        else:
            assert found == [946_684_800_000_000, -(2**63), 2**63 - 1, 2**63 - 1]


# --- where it is, and who may -----------------------------------------------------------------------------------------


def refused(source: str, table: str | None = '"x".people') -> str:
    with pytest.raises(InvalidData) as caught:
        open_table(source, AGES, table=table)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(caught.value).endswith("Nothing was read.")
    assert PASSWORD not in told(caught.value)
    return str(caught.value)


def test_a_wrong_address_says_which_part_is_wrong(town: Server, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTING", 2)
    table = f"{made}.people"
    for before, after, why in (
        (f"port={town.port}", f"port={town.port + 1 if town.port < 65535 else 1025}", "no server listens there"),
        (str(town.folder), "/nowhere", "PostgreSQL at '/nowhere'"),
        (f"host={town.folder}", "host=nowhere.invalid", "'nowhere.invalid' port"),
        (f"host={town.folder}", "host=127.0.0.1&sslmode=require", "TLS cannot be agreed on"),
        ("/postgres?", "/nowhere?", "the server has no such database"),
        ("keeper@", "nobody@", "role 'nobody': the server has no such role"),
        ("?host", "?nonsense=1&host", "is not a URI"),
        ("?host", "?passfile=/nowhere&connect_timeout=never&host", "cannot be connected to"),
    ):
        assert before in town.uri
        assert why in refused(town.uri.replace(before, after), table), after
    for table, why in (
        (f"{made}.peopl", f"table '{made}.peopl': there is no such table"),
        (f"{made}.People", "there is no such table"),
        (f'{made}.people"; drop table people; --', "is named by its schema and its name"),
        (f'{made}."people""; drop table people; --"', "there is no such table"),
        ("people", "as in 'public.people', not 'people'"),
        ("a.b.c", "as in 'public.people'"),
        (f"{made}.{'x' * 64}", "as in 'public.people'"),
        ("", "as in 'public.people'"),
        ("nowhere.people", "there is no such table"),
    ):
        assert why in refused(town.uri, table)
    assert "not ''" in refused(town.uri, None)
    with pytest.raises(InvalidData, match="has no column 'Age'; it has 'age', which is not the same"):
        open_table(town.uri, Schema([Integers("Age", 0, 9)]), table=f"{made}.people")
    with pytest.raises(InvalidData, match="for a CSV file"):
        open_table(town.uri, AGES, table=f"{made}.people", multiline=True)
    assert ages(town, made).counts([()])[0] == 3


@pytest.mark.parametrize(
    "source",
    ["postgresql://ana:{}@db.example/town", "postgres://ana:{}@h1:1,h2/t", "POSTGRESQL://ana:{}@h/t", "postgresql://:{}@/t",
     "postgresql:///t?user=a&password={}", "postgresql:///t?pass%77ord={}", "postgresql://h/t?sslpassword={}",
     "postgresql://ana:{}@h?x", "postgresql://ana%3A{}@h/t"],
)  # fmt: skip
def test_a_password_in_the_address_is_refused_and_not_repeated(source: str) -> None:
    assert "a contract is public" in refused(source.format("hunter2"))
    with pytest.raises(InvalidData) as caught:
        open_table(source.format("hunter2"), AGES, table="a.b")
    assert "hunter2" not in str(caught.value)


def test_what_is_secret_comes_from_the_environment(
    town: Server, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.run(
        "drop role if exists secretive", f"create role secretive login password '{PASSWORD}'",
        f'grant usage on schema "{made}" to secretive', f'grant select on "{made}".people to secretive',
    )  # fmt: skip
    uri, table = f"postgresql://secretive@127.0.0.1:{town.port}/postgres", f"{made}.people"
    assert "set PGPASSWORD or PGPASSFILE" in refused(uri, table)
    monkeypatch.setenv("PGPASSWORD", f"not {PASSWORD}")
    assert "does not know this role by this password" in refused(uri, table)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert open_table(uri, AGES, table=table).counts([()])[0] == 3
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pass").write_text(f"127.0.0.1:*:*:secretive:{PASSWORD}\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    assert open_table(uri, AGES, table=table).counts([()])[0] == 3
    (tmp_path / "service").write_text(f"[town]\nhost=127.0.0.1\nport={town.port}\nuser=secretive\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "service"))
    monkeypatch.setenv("PGSERVICE", "town")
    assert open_table("postgresql", AGES, table=table).counts([()])[0] == 3
    monkeypatch.setenv("PGSERVICE", "city")
    assert "PGSERVICE" in refused("postgresql", table)


def test_tls_is_demanded_by_the_usual_variables(town: Server, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        root = town.certified()
    except FileNotFoundError:
        pytest.skip("there is no openssl to make a certificate")
    uri, table = f"postgresql://keeper@127.0.0.1:{town.port}/postgres", f"{made}.people"
    try:
        for mode, certificate, fits in (
            ("disable", "", False), ("require", "", True), ("verify-full", str(root), True),
            ("verify-full", "/nowhere.crt", None),
        ):  # fmt: skip
            monkeypatch.setenv("PGSSLMODE", mode)
            monkeypatch.setenv("PGSSLROOTCERT", certificate)
            if fits is None:
                assert "TLS cannot be agreed on" in refused(uri, table)
                continue
            held = open_table(uri, AGES, table=table)
            sessions = "pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tacit'"
            assert town.run(f"select bool_and(ssl) from {sessions}") == [(fits,)]
            assert held.counts([()])[0] == 3
            del held
    finally:
        town.reload(ssl="off")


def test_a_role_that_may_only_read_what_is_declared_is_enough(town: Server, made: str) -> None:
    with a_role(town, made, "grant usage on schema {} to reader", "grant select (age) on {}.people to reader") as uri:
        assert ages(town, made, source=uri).counts([("age",)])[0][2] == 2
        with pytest.raises(InvalidData, match=r"role 'reader', table '.*people': the role may not read column 'sex'"):
            open_table(uri, Schema([Categories("sex", ("F",))]), table=f"{made}.people")
    with (
        a_role(town, made, "grant select on {}.people to reader") as uri,
        pytest.raises(InvalidData, match="the role may not use its schema"),
    ):
        ages(town, made, source=uri)


def test_rows_that_a_policy_hides_are_not_quietly_missing(town: Server, made: str) -> None:
    hide = ("alter table {}.people enable row level security", "create policy part on {}.people using (age < 2)")
    grants = ("grant usage on schema {} to reader", "grant select on {}.people to reader")
    with a_role(town, made, *grants, *hide) as uri, pytest.raises(InvalidData, match="row-level security hides rows"):
        ages(town, made, source=uri)
    assert ages(town, made).counts([()])[0] == 3


def test_only_stored_rows_are_read(town: Server, made: str) -> None:
    town.run(
        f'create view "{made}".seen as select 1 / (age - 1) as age from "{made}".people',
        f'create materialized view "{made}".kept as select age from "{made}".people',
        f'create sequence "{made}".numbers',
        f'create table "{made}".parted (age int) partition by range (age)',
        f'create table "{made}".part partition of "{made}".parted for values from (0) to (5)',
        f'insert into "{made}".parted values (1), (4)',
    )
    with pytest.raises(InvalidData, match="is a view, whose rows are made when they are read"):
        ages(town, made, "seen")
    with pytest.raises(InvalidData, match="is not a table"):
        ages(town, made, "numbers")
    assert ages(town, made, "kept").counts([()])[0] == 3
    assert ages(town, made, "parted").counts([()])[0] == 2
    town.run(
        "create foreign data wrapper hollow", "create server elsewhere foreign data wrapper hollow",
        f'create foreign table "{made}".far partition of "{made}".parted for values from (5) to (9) server elsewhere',
    )  # fmt: skip
    for name in ("far", "parted"):
        with pytest.raises(InvalidData, match="is a foreign table, whose rows are another server's"):
            ages(town, made, name)
    town.run("drop foreign data wrapper hollow cascade")


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert "pip install 'tacit[postgres]'" in refused("postgresql://nowhere/town", "a.b")


# --- nothing is written ----------------------------------------------------------------------------------------------


def test_no_session_can_write(town: Server, made: str) -> None:
    town.run(f'create sequence "{made}".numbers')
    held = ages(town, made)
    source: Any = held._source
    for snapshot in (None, source._snapshot):
        for statement in (
            f'insert into "{made}".people values (1)', f'delete from "{made}".people', f'truncate "{made}".people',
            f'drop table "{made}".people', f'create table "{made}".more (a int)',
            f"select nextval('\"{made}\".numbers')", f'select * into "{made}".more from "{made}".people',
            "set transaction read write", f'select * from "{made}".people for update', "vacuum",
            "create role more",
        ):  # fmt: skip
            session = Session(town.uri, snapshot)
            with pytest.raises(Failed) as failed:
                session.ask(statement) if statement != "set transaction read write" else [
                    session.ask("select 1"), session.ask(statement)
                ]  # fmt: skip
            assert failed.value.state in {"25006", "25001"}, statement
            assert str(failed.value) == ""
            session.close()
    session = Session(town.uri.replace("?", "?options=-c%20default_transaction_read_only%3Doff&"))
    session.ask("commit")
    with pytest.raises(Failed) as failed:  # nor the next transaction
        session.ask(f'create table "{made}".more (a int)')
    assert failed.value.state == "25006"
    session.close()
    assert held.counts([()])[0] == 3


def test_the_server_hears_of_columns_and_of_nothing_that_is_asked(
    town: Server, made: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    schema = Schema([Categories("sex", ("F", "a category of the contract"), outside=CELL)])
    before = len(town.log.read_bytes())
    held = open_table(town.uri, schema, table=f"{made}.people")
    with caplog.at_level(0):
        held.counts([("sex",)])
    heard = town.log.read_bytes()[before:].decode()
    assert 'copy (select case when pg_catalog.octet_length("sex") > 26 then' in heard
    assert "category" not in heard
    assert CANARY not in heard + caplog.text + "".join(capfd.readouterr())


# --- one snapshot ----------------------------------------------------------------------------------------------------


def test_all_readings_are_of_the_table_as_it_was_opened(town: Server, made: str) -> None:
    schema = Schema([Integers("age", 0, 9), Categories("sex", ("F", "M"), outside=CELL)])
    held = open_table(town.uri, schema, table=f"{made}.people")
    town.run(
        f"insert into \"{made}\".people select 5, 'F' from generate_series(1, 100)", f'delete from "{made}".people'
    )
    assert held.counts([("age",)])[0].tolist()[:3] == [0, 1, 2]
    town.run(f'vacuum "{made}".people', f"insert into \"{made}\".people values (7, 'M')")
    assert held.counts([("age", "sex")])[0].sum() == 3
    assert open_table(town.uri, schema, table=f"{made}.people").counts([()])[0] == 1


def test_a_table_that_is_open_can_be_neither_emptied_nor_altered(town: Server, made: str) -> None:
    import psycopg

    town.run(f'create table "{made}".more () inherits ("{made}".people)', f'insert into "{made}".more values (3)')
    held = ages(town, made)
    for statement in (
        f'truncate "{made}".people',
        f'alter table "{made}".people drop age',
        f'drop table "{made}".more',
    ):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            town.run("set lock_timeout = '20ms'", statement)
    assert held.counts([()])[0] == 4
    del held
    gc.collect()
    town.run("set lock_timeout = '5s'", f'truncate "{made}".people')
    assert ages(town, made).counts([()])[0] == 0


def test_a_table_that_another_session_holds_is_refused(
    town: Server, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(server.SETTINGS, "lock_timeout", "20ms")
    with town.keeper() as other, other.transaction():
        other.execute(f'lock "{made}".people')
        assert "another session has it locked" in refused(town.uri, f"{made}.people")


@pytest.mark.parametrize(
    "change",
    ['alter schema "{0}" rename to "{0} gone"', 'create table "{0}".late (age int, sex text); '
     'insert into "{0}".late values (3); alter table "{0}".late inherit "{0}".people'],
    ids=["another name", "one part more"],
)  # fmt: skip
def test_what_no_lock_holds_is_noticed(change: str, town: Server, made: str) -> None:
    held = ages(town, made)
    town.run(*change.format(made).split("; "))
    with pytest.raises(DataUnavailable) as caught:
        held.counts([("age",)])
    assert str(caught.value) == CHANGED
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_every_reading_has_the_same_order(town: Server, made: str) -> None:
    town.run(
        f'create table "{made}".long as select (n * 7919) % 100003 as a, n % 10 as b, repeat(\'x\', 90) as c '
        "from generate_series(1, 100000) as s (n)",
        f'create index on "{made}".long (a)', f'vacuum analyze "{made}".long',
    )  # fmt: skip
    schema = Schema([Integers("a", 0, 99_999), Integers("b", 0, 9)])
    source = Postgres(town.uri, f"{made}.long", schema)
    list(source.headers())

    def order(*names: str) -> list[int]:
        return [value for batch in source.batches(names, 1000) for value in batch.column(0).to_pylist()]

    first = order("a", "b")
    with town.keeper() as other, other.transaction():  # from where it is, others would go on
        other.execute(f'declare c cursor for select * from "{made}".long; fetch forward 50000 from c')
        assert order("a") == first  # which an index holds
    assert order("a", "b") == first
    assert len(first) == 100_000
    source.close()


# --- when the server goes away ---------------------------------------------------------------------------------------


def large(town: Server, made: str, rows: int = 60_000) -> str:
    town.run(
        f"create table \"{made}\".large as select n % 10 as age, repeat('{CANARY}', 20) as note "
        f"from generate_series(1, {rows}) as s (n)"
    )
    return f"{made}.large"


NOTES = Schema([Integers("age", 0, 9), Categories("note", (CANARY * 20, "x"))])
END = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tacit' and state = '{}'"


def curated(table: Table) -> Curator:
    return Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)


def test_a_reading_that_is_ended_half_way_is_paid_for_and_says_nothing(
    town: Server, made: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wire, "BATCH", 2**16)
    held = open_table(town.uri, NOTES, table=large(town, made))
    done: list[int] = []

    def interrupt(rows: int, whole: int | None) -> None:
        if not done:
            assert town.run(END.format("active")) == [(True,)]
        done.append(rows)

    with pytest.raises(DataUnavailable) as caught:
        held.read([("age", "note")], interrupt)
    assert 0 < done[-1] < 60_000
    assert str(caught.value) == UNREADABLE
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert CANARY not in told(caught.value) + "".join(capfd.readouterr())
    assert not held._tables  # no part of a table is kept
    assert held.counts([("age",)])[0].tolist() == [6000] * 10  # the snapshot is still there


def test_an_interrupt_loses_its_reading_alone(town: Server, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "BATCH", 2**16)
    held = open_table(town.uri, NOTES, table=large(town, made))

    def interrupt(rows: int, whole: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        held.read([("age",)], interrupt)
    gc.collect()
    assert held.counts([("age",)])[0].tolist() == [6000] * 10


def test_a_server_that_stops_costs_what_was_charged(made: str, town: Server, capfd: pytest.CaptureFixture[str]) -> None:
    held = ages(town, made)
    ours = curated(held)
    sexes = Marginal.over(AGES, "age")
    town.stop()
    try:
        for spent in (1, 2):
            with pytest.raises(DataUnavailable) as caught:
                ours.release(Laplace("0.1"), sexes)
            assert ours.ledger.spent == Fraction(spent, 10)
            assert caught.value.__cause__ is caught.value.__context__ is None
            assert CANARY not in told(caught.value, frames=False) + "".join(capfd.readouterr())
        with pytest.raises(DataUnavailable) as refusal:
            held.counts([("age",)])
        assert str(refusal.value) == UNREADABLE
        assert "no server listens there" in refused(town.uri, f"{made}.people")
    finally:
        town.start()
    with pytest.raises(DataUnavailable):  # what it was is lost with the snapshot
        held.counts([("age",)])
    assert ages(town, made).counts([()])[0] == 3


def test_a_snapshot_that_is_ended_ends_its_table(town: Server, made: str) -> None:
    held = ages(town, made)
    held.counts([("age",)])
    assert (True,) in town.run(END.format("idle in transaction"))
    for _ in range(2):
        with pytest.raises(DataUnavailable) as caught:
            held.counts([("age",)])
        assert str(caught.value) == UNREADABLE


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_a_server_that_says_nothing_is_given_up(town: Server, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ANSWERING", 0.2)
    monkeypatch.setattr(server, "CONNECTING", 2)
    held = ages(town, made)
    find = "select pid from pg_stat_activity where application_name = 'tacit' order by backend_start desc limit 1"
    ((silent,),) = town.run(find)
    os.kill(silent, signal.SIGSTOP)
    try:
        with pytest.raises(DataUnavailable) as caught:
            held.counts([("age",)])
        assert str(caught.value) == UNREADABLE
    finally:
        os.kill(silent, signal.SIGCONT)
    os.kill(town.number, signal.SIGSTOP)
    try:
        assert "no answer in time" in refused(town.uri, f"{made}.people")
    finally:
        os.kill(town.number, signal.SIGCONT)


def test_a_stream_that_is_cut_or_garbled_is_no_table(town: Server, made: str) -> None:
    source = Postgres(town.uri, f"{made}.people", Schema([Integers("age", 0, 9), Categories("sex", ("F", "M"))]))
    list(source.headers())
    session = Session(town.uri, source._snapshot)
    messages = [bytes(message) for message in session.copied(source.statement(("age", "sex")))]
    session.close()
    source.close()
    fields = [wire.Fixed(pa.int32(), ">i4"), wire.Texts()]

    def read(given: list[bytes]) -> list[Any]:
        return [
            [column.to_pylist() for column in wire.columns(rows, sizes, fields)]
            for rows, sizes in wire.gathered(iter(given), 1000)
        ]

    assert read(messages) == [[[1, 2, 2], [b"F", b"M", CANARY[:2].encode()]]]  # enough to be no category
    for size in range(len(messages)):
        with pytest.raises(wire.Malformed):
            read(messages[:size])
    for at in range(len(messages[1])):
        for cut in (messages[1][:at], messages[1][:at] + b"\x7f" + messages[1][at + 1 :]):
            try:
                found = read([messages[0], cut, *messages[2:]])
            except wire.Malformed:
                continue
            assert len(found[0][0]) == 3 or not cut  # a letter or a number that is another one


# --- from a contract -------------------------------------------------------------------------------------------------


def test_a_contract_names_a_server_and_its_release_is_that_of_a_file(town: Server, tmp_path: Path) -> None:
    values = {"age": [at % 120 for at in range(500)], "sex": [("F", "M", None, "x")[at % 4] for at in range(500)],
              "income": [at * 2.5 if at % 7 else math.nan for at in range(500)]}  # fmt: skip
    uri, table = town.hold(values, {"age": "int", "sex": "text", "income": "float8"})
    (tmp_path / "people.csv").write_text(
        "age,sex,income\n" + "".join(f"{a},{b or ''},{c}\n" for a, b, c in zip(*values.values(), strict=True))
    )
    found = []
    for source in ("people.csv", uri):
        text = CONTRACT.replace('"people.csv"', f'"{source}"').replace("people.ledger", f"{len(found)}.ledger")
        if source is uri:
            text = text.replace("\n[privacy]", f"\ntable = '{table}'\n[privacy]", 1)
        (tmp_path / "people.toml").write_text(text)
        with People.open(tmp_path / "people.toml") as people:
            people.create_ledger().close()
            curator = people.curator()
            curator._noise = Scripted(*range(-100, 100))
            answers = curator.release(Laplace("0.1"), Marginal.over(people.schema, "age", "sex"))
            found.append((answers.tolist(), people.ledger.spent))
    assert found[0] == found[1]
    town.run("set lock_timeout = '5s'", f"truncate {table}")  # which is no longer held
    with pytest.raises(DataUnavailable):
        people.table.counts([("income",)])
