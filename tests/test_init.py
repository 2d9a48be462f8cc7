"""`tacit init`: what a draft says, what it refuses, what it never tells, and what bought domains cost."""

from __future__ import annotations

import io
import json
import os
import re
import tomllib
from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_inputs_service import CANARIES, COLUMNS_SAID, INITS, PEOPLE, Wrong

from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.domain.person import Person
from tacit.domain.schema import Categories, Dates, Integers, Neighbors, Numbers
from tacit.engines.delimited import Delimited
from tacit.errors import InvalidSchema
from tacit.primitives.additive import Laplace
from tacit.primitives.listing import Listing
from tacit.service import cli
from tacit.service.contract import Contract
from tacit.service.domains import domain, named
from tests.postgres import server

Out = pytest.CaptureFixture[str]
ALL = ["-c", "age=0..99", "-c", "sex=F,M", "-c", "income=0:250:500.5:1000", "--skip", "name", "-e", "4"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the planted table alone."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "people.csv").write_text(PEOPLE)
    monkeypatch.chdir(folder)
    return folder


def init(*more: str, data: str = "people.csv") -> int:
    return cli.run(["init", data, *more])


# ---- the draft


def test_a_draft_with_all_domains_is_a_contract(here: Path, capsys: Out) -> None:
    assert init(*ALL, "--delta", "1e-9", "--missing", "income=cell", "--outside", "sex=cell") == 0
    contract = Contract.read(here / "people.toml")
    assert contract.schema.columns == (
        Integers("age", 0, 99, outside="clamp"),
        Categories("sex", ("F", "M"), outside="cell"),
        Numbers("income", (0, 250, 500.5, 1000), missing="cell", outside="clamp"),
    )
    assert (contract.source, contract.epsilon, contract.neighbors) == ("people.csv", 4, Neighbors.ADD_REMOVE)
    assert contract.ledger == here / "people.ledger"
    assert "no row was read" in capsys.readouterr().out


def test_no_row_is_read_for_a_draft(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Delimited, "batches", lambda *_: pytest.fail("it reads rows"))
    assert init(*ALL) == 0


def test_what_is_missing_is_said_by_line_and_can_be_filled_in(here: Path, capsys: Out) -> None:
    assert init("--json", "--skip", "name") == 0
    said = json.loads(capsys.readouterr().out)
    lines = (here / "people.toml").read_text().splitlines()
    assert [entry["what"] for entry in said["to_fill_in"]] == ["epsilon", "age", "sex", "income"]
    assert all(lines[entry["line"] - 1].startswith("# ") for entry in said["to_fill_in"])
    filled = "\n".join(lines)
    first = next(number for number, line in enumerate(lines, 1) if line == "# [[columns]]")
    with pytest.raises(InvalidSchema, match=f"from line {first} on"):
        Contract.read("people.toml")
    for column in ("age", "sex"):
        filled = filled.replace(f'# [[columns]]\n# name = "{column}"', f'[[columns]]\nname = "{column}"', 1)
    age, sex = filled.index('name = "age"'), filled.index('name = "sex"')
    filled = filled[:age] + filled[age:sex].replace("# low", "low").replace("# high", "high") + filled[sex:]
    filled = filled[:sex] + filled[sex:].replace("# categories", "categories", 1)
    (here / "people.toml").write_text(filled)
    with pytest.raises(InvalidSchema, match=r"line 10.*epsilon is missing"):
        Contract.read("people.toml")
    (here / "people.toml").write_text(filled.replace("# epsilon", "epsilon"))
    assert Contract.read("people.toml").schema.names == ("age", "sex")


def test_a_typed_source_offers_what_its_types_can_be(here: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "height": pa.array([1.5], pa.float32()),
            "smokes": pa.array([True]),
            "seen": pa.array([datetime(2024, 5, 1)], pa.timestamp("us", "UTC")),
            "city": pa.array(["x"]).dictionary_encode(),
            "tags": pa.array([["x"]]),
            " odd": pa.array(["x"]),
        }
    )
    pq.write_table(table, here / "t.parquet")
    assert init("-o", "t.toml", data="t.parquet") == 0
    text = (here / "t.toml").read_text()
    names = ('"id"', '"height"', '"seen"', '"city"')
    parts = {name: text[text.index(f"name = {name}") :].split("\n\n")[0] for name in names}
    assert "low = 0" in parts['"id"']
    assert "from =" not in parts['"id"']
    assert "edges = " in parts['"height"'].split("\n")[1]
    assert 'by = "month"' in parts['"seen"']
    assert "categories" not in parts['"seen"']
    assert "categories" in parts['"city"']
    assert 'name = "smokes"\ncategories = [false, true]' in text
    assert '"tags" is left out: it is of type "list"' in text
    assert '" odd" is left out' in text
    (here / "t.toml").write_text(text.replace("# epsilon", "epsilon"))
    assert Contract.read(here / "t.toml").schema.columns == (Categories("smokes", (False, True)),)


def test_a_duckdb_table_and_a_folder_are_drafted_too(here: Path) -> None:
    with duckdb.connect("town.duckdb") as connection:
        connection.execute("create table people as select 3::utinyint as age, 'F' as sex, date '2024-01-01' as born")
    words = ["-c", "age=0..99", "-c", "sex=F,M", "-c", "born=1900-01-01..2024-12-31/year", "-e", "1"]
    assert init("--table", "people", "-o", "d.toml", *words, data="town.duckdb") == 0
    assert Contract.read("d.toml").schema["born"] == Dates("born", "1900-01-01", "2024-12-31", "year", outside="clamp")
    (here / "parts").mkdir()
    for part in ("a", "b"):
        (here / "parts" / f"{part}.csv").write_text("age,sex\n1,F\n")
    (here / "parts" / "c.csv").write_text("age\n1\n")
    assert init("-o", "f.toml", data="parts") == 0
    assert '"sex" is left out: the source has it twice' in (here / "f.toml").read_text()


def test_a_source_in_another_folder_is_named_from_the_contracts(here: Path) -> None:
    (here / "signed").mkdir()
    assert init(*ALL, "-o", "signed/c.toml") == 0
    assert Contract.read("signed/c.toml").source == "../people.csv"
    assert cli.run(["check", "signed/c.toml"]) == 0


def test_people_of_several_rows_and_of_a_public_number_are_drafted(here: Path) -> None:
    words = ["--person", "name", "--most-rows", "3", "--neighbors", "replace-one", "--people", "65"]
    assert init(*[word for word in ALL if word not in ("--skip", "name")], *words) == 0
    contract = Contract.read("people.toml")
    assert contract.person == Person("name", 3)
    assert (contract.people, contract.neighbors) == (65, Neighbors.REPLACE_ONE)


def test_names_and_values_that_toml_must_escape_come_through(here: Path) -> None:
    name, value = 'a "b" = \\ é', 'x,"y"\\'
    quoted, there = name.replace('"', '""'), value.replace('"', '""')
    (here / "odd.csv").write_text(f'"{quoted}",n\n1,2\n')
    assert init("-c", f'"{quoted}"="{there}",z', "--skip", "n", "-e", "1", "-o", "o.toml", data="odd.csv") == 0
    assert Contract.read("o.toml").schema.columns == (Categories(name, (value, "z")),)


def test_a_column_name_cannot_write_into_the_draft(here: Path) -> None:
    (here / "evil.csv").write_bytes(b'"x\n[privacy]\nepsilon = 9",\x1b[31mred,"a\xe2\x80\xaeb",ok\n1,2,3,4\n')
    for multiline in ("evil.csv",):
        init("-o", "e.toml", "-e", "1", "-c", "ok=0..9", data=multiline)
    if (here / "e.toml").exists():
        text = (here / "e.toml").read_text()
        assert "\x1b" not in text
        assert tomllib.loads(text)["privacy"]["epsilon"] == "1"


def test_a_draft_is_never_written_over_anything_without_force(here: Path, capsys: Out) -> None:
    assert init(*ALL) == 0
    first = (here / "people.toml").read_text()
    assert init("--json") == cli.WRONG
    assert "exists" in capsys.readouterr().err
    assert (here / "people.toml").read_text() == first
    assert init("--force") == 0
    assert (here / "people.toml").read_text() != first
    assert sorted(path.name for path in here.iterdir()) == ["people.csv", "people.toml"]


@pytest.mark.parametrize(("text", "said"), COLUMNS_SAID.items())
def test_a_domain_in_one_line(text: str, said: dict[str, Any]) -> None:
    assert domain(text).said == said


def test_categories_are_of_the_sort_that_the_source_holds() -> None:
    assert domain("1,2", "whole").said == {"categories": [1, 2]}
    assert domain("1,2", "text").said == {"categories": ["1", "2"]}
    assert domain("true,FALSE", "truth").said == {"categories": [True, False]}
    assert named("a=b=c", "--column", "X") == ("a", "b=c")


# ---- at a terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{answer}\n" for answer in answers)))


def test_at_a_terminal_it_asks_for_each_open_column(here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "-", "0-99", "0..99", "")
    assert init("-e", "1", "-c", "sex=F,M") == 0
    err = capsys.readouterr().err
    assert "'0-99' is one category" in err
    assert [line.split(" ")[0] for line in err.splitlines() if line.endswith("(text)")] == [
        "name",
        "age",
        "age",
        "income",
    ]
    text = (here / "people.toml").read_text()
    assert "low = 0\nhigh = 99" in text
    assert '"name" is left out' in text
    assert '# name = "income"' in text


@pytest.mark.parametrize("flag", [["--no-ask"], ["--json"], ["-q"], ["--from-data"]])
def test_it_asks_nothing_where_a_flag_says_so(here: Path, monkeypatch: pytest.MonkeyPatch, flag: list[str]) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asks"))
    answering(monkeypatch)
    assert init(*flag) == 0


def test_it_asks_nothing_in_a_script_and_a_terminal_that_ends_leaves_the_rest_open(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0..99\n"))
    assert init("-o", "a.toml") == 0
    answering(monkeypatch)
    assert init("-o", "b.toml") == 0
    assert (here / "a.toml").read_text().replace("a.", "b.") == (here / "b.toml").read_text()


# ---- off the data


def test_what_is_read_off_the_data_is_marked_and_spends_nothing(here: Path, capsys: Out) -> None:
    (here / "people.csv").write_text("city,age,pay,born,id\n" + "".join(ROWS))
    assert init("--from-data", "-e", "1") == 0
    out, err = capsys.readouterr()
    assert "--from-data reads categories and bounds off the rows" in err
    text = (here / "people.toml").read_text()
    assert "!!! READ OFF THE DATA" in text
    assert os.stat("people.toml").st_mode & 0o077 == 0
    contract = Contract.read("people.toml")
    assert contract.schema["city"] == Categories("city", ("Bo", "F"))
    assert contract.schema["age"] == Integers("age", 7, 46, missing="cell", outside="clamp")
    assert contract.schema["born"] == Dates(
        "born", "1990-01-01", "1990-12-31", "month", missing="cell", outside="clamp"
    )
    assert isinstance(contract.schema["pay"], Numbers)
    assert [name for name, _ in contract.unsigned] == list(contract.schema.names)
    capsys.readouterr()
    for words in (["ledger", "create", "people.toml"], ["release", "people.toml", "-w", "age", "-e", "1", "-o", "out"]):
        assert cli.run(words) == cli.WRONG
        assert "taken from the data" in capsys.readouterr().err
    assert out.count("\n") < 8
    signed = text.replace('"from data"', '"public"')
    (here / "people.toml").write_text(signed)
    assert cli.run(["ledger", "create", "people.toml", "-q"]) == 0


ROWS = [f"{'F' if at % 2 else 'Bo'},{7 + at},{at}.5,1990-0{1 + at % 9}-01,x{at}\n" for at in range(40)]


def test_no_line_that_is_named_tells_how_many_values_were_read_off_the_data(here: Path, capsys: Out) -> None:
    told = []
    for values in (2, 40):
        (here / "people.csv").write_text("city,sex\n" + "".join(f"{'x' * 20}{at % values:04},F\n" for at in range(40)))
        assert init("--from-data", "-e", "1", "--force") == 0
        for words in (["check"], ["check", "--json"], ["ledger", "create"], ["plan", "-w", "sex", "-e", "1"]):
            told.append((cli.run([*words, "people.toml"]), *capsys.readouterr()))
        assert len(Contract.read("people.toml").schema["city"].domain) == values
    assert told[:4] == told[4:]


def test_more_categories_than_are_written_down_stay_open(here: Path) -> None:
    (here / "people.csv").write_text("city,age,pay,born,id\n" + "".join(ROWS))
    assert init("--from-data", "-e", "1", "--most-categories", "39") == 0
    assert "id" not in Contract.read("people.toml").schema.names
    assert init("--from-data", "-e", "1", "--most-categories", "40", "--force") == 0
    assert len(Contract.read("people.toml").schema["id"].domain) == 40


def test_a_source_that_cannot_be_read_says_nothing_of_its_rows(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise ValueError(CANARIES[0])

    monkeypatch.setattr(Delimited, "batches", failing)
    assert init("--from-data") == cli.UNAVAILABLE
    assert CANARIES[0] not in capsys.readouterr().err
    assert not (here / "people.toml").exists()


# ---- bought

BUY = ["--buy-domains", "-e", "2", "--total", "4", "--by", "Ana"]
MANY = "age,sex,born,note\n" + "".join(
    f"{20 + at % 50},{'FM'[at % 2]},{1950 + at % 40}-05-01,{'zq_canary' if at == 7 else f'n{at}'}\n"
    for at in range(4000)
)


def bought(folder: Path, *more: str) -> Contract:
    (folder / "people.csv").write_text(MANY)
    words = ["--kind", "age=whole", "--kind", "born=days", *more]
    assert init(*BUY, *words) == 0
    return Contract.read("people.toml")


def spent(folder: Path) -> Fraction:
    with SQLiteLedger.read(folder / "people.ledger") as ledger:
        return ledger.spent


def test_domains_are_bought_under_the_contracts_own_ledger(here: Path, capsys: Out) -> None:
    contract = bought(here)
    assert contract.schema["sex"] == Categories("sex", ("F", "M"), missing="cell", outside="cell")
    assert contract.schema["age"] == Integers("age", 16, 127, missing="cell", outside="clamp")
    born = contract.schema["born"]
    assert isinstance(born, Dates)
    assert (born.first, born.last, born.by) == (date(1950, 1, 1), date(1989, 12, 31), "year")
    assert "note" not in contract.schema.names  # of which every value has one row
    assert contract.bought == ("age", "sex", "born")
    assert spent(here) == 2
    with SQLiteLedger.read("people.ledger") as ledger:
        assert {(entry.by, entry.what, entry.amount) for entry in ledger.entries()} == {
            ("Ana", "Laplace(epsilon=1/2) of Marginal(age)", Fraction(1, 2)),
            ("Ana", "Listing(epsilon=1/2) of Values('sex')", Fraction(1, 2)),
            ("Ana", "Laplace(epsilon=1/2) of Marginal(born)", Fraction(1, 2)),
            ("Ana", "Listing(epsilon=1/2) of Values('note')", Fraction(1, 2)),
        }
    out = capsys.readouterr().out
    assert "nothing found  note" in out
    assert "epsilon 2 of 4" in out


def test_a_contract_with_bought_domains_spends_the_rest_of_the_same_ledger(here: Path) -> None:
    bought(here)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "2", "-o", "out", "-q"]) == 0
    assert spent(here) == 4
    text = (here / "people.toml").read_text()
    (here / "people.toml").write_text(text + '\n[[columns]]\nname = "note"\ncategories = ["a", "b"]\n')
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "more", "-q"]) == cli.REFUSED
    (here / "people.toml").write_text(text.replace('domains = "bought"', "#"))
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "more", "-q"]) == cli.WRONG


def test_the_ledger_is_made_and_charged_before_a_row_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text(MANY)
    seen, batches = list[Fraction](), Delimited.batches

    def watching(self: Delimited, names: tuple[str, ...], rows: int) -> Any:
        seen.append(spent(here))
        return batches(self, names, rows)

    monkeypatch.setattr(Delimited, "batches", watching)
    assert init(*BUY, "--kind", "age=whole", "--only", "age,sex") == 0
    assert seen == [1, 2]


def test_no_bought_draft_and_no_word_of_it_tells_of_a_single_row(here: Path, capsys: Out) -> None:
    bought(here)
    out, err = capsys.readouterr()
    for said in (out, err, (here / "people.toml").read_text()):
        assert "zq_canary" not in said
        assert not re.search(r"\bn\d{1,4}\b", said)


def test_what_was_paid_for_is_not_lost_where_the_draft_cannot_be_written(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "people.csv").write_text(MANY)

    def taken(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "link", taken)
    assert init(*BUY, "--only", "sex") == cli.UNAVAILABLE
    err = capsys.readouterr().err
    rescued = re.search(r"lies in (\S+);", err)
    assert rescued is not None
    assert 'categories = ["F", "M"]' in Path(rescued[1]).read_text()
    assert spent(here) == 2


def test_what_was_bought_before_a_fault_is_kept(here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text(MANY)
    batches = Delimited.batches

    def failing(self: Delimited, names: tuple[str, ...], rows: int) -> Any:
        if names == ("note",):
            raise RuntimeError("zq_canary")
        return batches(self, names, rows)

    monkeypatch.setattr(Delimited, "batches", failing)
    assert init(*BUY, "--only", "sex,note") == cli.UNAVAILABLE
    out, err = capsys.readouterr()
    assert "What was bought before it lies in people.toml" in err
    assert "zq_canary" not in out + err
    assert Contract.read("people.toml").schema["sex"].domain == ("F", "M")
    assert spent(here) == 2
    monkeypatch.setattr(Delimited, "batches", batches)
    assert init(*BUY, "--only", "sex,note", "--force") == 0  # under the same ledger, and paid for again
    assert spent(here) == 4


def test_an_interrupted_purchase_says_what_it_cost(here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text(MANY)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Delimited, "batches", interrupted)
    assert init(*BUY, "--only", "sex") == cli.INTERRUPTED
    assert "2 was charged while this ran, and stays charged" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Listing, Laplace])
def test_a_rho_ledger_is_charged_what_a_pure_step_costs(here: Path, kind: type) -> None:
    (here / "people.csv").write_text(MANY)
    column = ["--kind", "age=whole", "--only", "age"] if kind is Laplace else ["--only", "sex"]
    assert init("--buy-domains", "-e", "1/2", "--total", "4", "--delta", "1e-9", *column) == 0
    assert spent(here) == kind("1/2").loss().rho


def test_people_of_several_rows_make_all_thresholds_higher(here: Path) -> None:
    """3,000 rows of two people: with all of them protected, neither city stands out."""
    (here / "people.csv").write_text("id,city\n" + "".join(f"{at % 2},{'FM'[at % 2]}{at % 2}\n" for at in range(3000)))
    words = ["--only", "city", "--person", "id", "--most-rows", "1500", "-e", "1", "--total", "1"]
    assert init("--buy-domains", *words) == 0
    assert "F0" not in (here / "people.toml").read_text()
    assert init("--buy-domains", "--only", "city", "-e", "1", "--total", "1", "-o", "rows.toml") == 0
    assert '"F0", "M1"' in (here / "rows.toml").read_text()


# ---- refused


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


@pytest.mark.parametrize("wrong", INITS, ids=lambda wrong: wrong.id)
def test_a_wrong_init_writes_nothing_and_tells_nothing(wrong: Wrong, here: Path, capsys: Out) -> None:
    wrong.spoil(here)
    before = files(here)
    assert cli.run(wrong.words) == wrong.code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("tacit: ") == 1
    assert "Traceback" not in err
    assert len(err) < 2500
    for words in wrong.says:
        assert words in err
    for canary in CANARIES:
        assert canary not in err
    assert files(here) == before


def run_all(folder: Path) -> Sequence[list[str]]:
    return (
        ["init", "people.csv", "-o", "a.toml", *ALL],
        ["init", "people.csv", "-o", "b.toml", "--json"],
        ["init", "people.csv", "-o", "c.toml", "--from-data", "-e", "1"],
        ["init", "people.csv", "-o", "d.toml", *BUY],
        ["init", "people.csv", "-o", "e.toml", *BUY, "--json"],
        ["check", "a.toml"],
        ["check", "c.toml", "--json"],
        ["check", "e.toml"],
    )


def test_no_value_of_the_data_appears_but_in_a_marked_draft(here: Path, capsys: Out) -> None:
    for words in run_all(here):
        assert cli.run(list(words)) in (0, cli.WRONG), words
        out, err = capsys.readouterr()
        for canary in CANARIES:
            assert canary not in out + err, words
    for path in here.glob("*.toml"):
        told = [canary for canary in CANARIES if canary in path.read_text()]
        assert not told or 'domain = "from data"' in path.read_text()


def test_a_servers_table_is_drafted_bought_and_released(here: Path, capsys: Out) -> None:
    cities = [["Bo", "F"][at % 2] for at in range(400)]
    uri, table = server().hold({"city": cities, "age": list(range(400))}, {"city": "text", "age": "integer"})
    assert init("--table", table, *BUY, data=uri) == 0
    contract = Contract.read("people.toml")
    assert contract.schema["city"] == Categories("city", ("Bo", "F"), missing="cell", outside="cell")
    assert isinstance(contract.schema["age"], Integers)
    assert cli.run(["check", "people.toml", "-q"]) == 0
    assert cli.run(["release", "people.toml", "-w", "city", "-e", "1", "-o", "out", "-q"]) == 0
    assert init("--table", table, "--from-data", "-e", "1", "-o", "looked.toml", data=uri) == 0
    assert Contract.read("looked.toml").schema["city"] == Categories("city", ("Bo", "F"))
