"""`tacit check`: what will happen, in public terms; the same whatever the rows hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_inputs_service import CANARIES, CONTRACT, PEOPLE, plant

from tacit.engines.delimited import Delimited
from tacit.service import cli

Out = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    plant(folder)
    monkeypatch.chdir(folder)
    return folder


def check(*more: str) -> int:
    return cli.run(["check", "people.toml", *more])


def said(capsys: Out) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def fresh(folder: Path, *changes: tuple[str, str]) -> None:
    """Another contract, without a ledger."""
    text = CONTRACT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    for file in folder.glob("people.ledger*"):
        file.unlink()
    (folder / "people.toml").write_text(text)


def test_a_sound_contract_is_ready(here: Path, capsys: Out) -> None:
    assert check() == 0
    out, err = capsys.readouterr()
    for words in (
        "3 columns, 800 cells",
        "a row is a person",
        "epsilon 4 at delta 1e-9",
        "nearest end",
        "own cell",
        "Next: tacit plan people.toml -w marginals:2 -e 1",
    ):
        assert words in out
    assert err == ""
    assert check("-q") == 0
    assert capsys.readouterr().out == "ready\n"


def test_what_it_says_to_type_next_can_be_typed(here: Path, capsys: Out) -> None:
    fresh(here)
    for _ in range(3):
        assert check("--json") == 0
        words = str(said(capsys)["next"]).split()
        assert cli.run(words[1:]) == 0
        capsys.readouterr()
    assert words[:2] == ["tacit", "plan"]


def test_it_says_the_same_whatever_the_rows_hold(here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Delimited, "batches", lambda *_: pytest.fail("it reads rows"))
    outs = []
    for rows in (PEOPLE, PEOPLE.splitlines()[0] + "\n", PEOPLE + "ragged,1\n" * 1000, PEOPLE.replace("F", "\x00")):
        (here / "people.csv").write_text(rows)
        for more in ([], ["--json"]):
            assert check(*more) == 0
            outs.append(capsys.readouterr())
    assert len({(out.out, out.err) for out in outs}) == 2
    assert not any(canary in out.out + out.err for out in outs for canary in CANARIES)


def test_marks_that_are_not_signed_are_said_by_line(here: Path, capsys: Out) -> None:
    fresh(here, ('categories = ["F", "M"]', 'categories = ["F", "M"]\ndomain = "from data"'))
    assert check() == 0
    out, err = capsys.readouterr()
    assert "line 19, [[columns]] 2: the domain of sex was read off the data" in err
    assert "Next: sign the domains" in out
    assert check("--json") == 0
    found = said(capsys)
    assert (found["ready"], found["unsigned"], found["universe"]) == (False, ["sex"], None)
    assert {"name": "sex", "domain": "from data"} in found["columns"]  # type: ignore[operator]


def test_a_missing_ledger_is_the_next_step_and_a_spent_one_the_last(here: Path, capsys: Out) -> None:
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "4", "-o", "out", "-q"]) == 0
    capsys.readouterr()
    assert check() == 0
    assert "nothing is left to spend" in capsys.readouterr().out
    fresh(here)
    assert check("-q") == 0
    assert capsys.readouterr().out == "not ready\n"


def test_few_people_large_deltas_and_large_universes_are_warned_of(here: Path, capsys: Out) -> None:
    fresh(here, ('"add-remove"', '"replace-one"\npeople = 65'), ('epsilon = "4"', 'epsilon = "0.1"'))
    assert check() == 0
    assert "and there are 65 people" in capsys.readouterr().err
    fresh(here, ('"1e-9"', '"0.01"'))
    assert check() == 0
    assert "delta=0.01" in capsys.readouterr().err
    fresh(here, ("high = 99", "high = 99999"), ("edges = [0, 250, 500.5, 1000]", f"edges = {list(range(3000))}"))
    assert check() == 0
    err = capsys.readouterr().err
    assert "the universe has more than 100,000,000 cells" in err
    assert "age and income have 300,000,000 cells together" in err


def test_a_person_of_several_rows_is_said(here: Path, capsys: Out) -> None:
    fresh(here, ('source = "people.csv"', 'source = "people.csv"\nperson = "name"\nmost_rows = 3'))
    assert check() == 0
    assert "name, of whom 3 rows count" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "code", "says"),
    [
        (lambda folder: (folder / "people.csv").unlink(), cli.WRONG, "No such file"),
        (lambda folder: (folder / "people.csv").write_text("age,sex\n1,F\n"), cli.WRONG, "no column 'income'"),
        (lambda folder: (folder / "people.toml").unlink(), cli.WRONG, "no such file"),
        (lambda folder: (folder / "people.ledger").write_bytes(b"x" * 9000), cli.UNAVAILABLE, "ledger"),
        (lambda folder: (folder / "people.toml").write_text(CONTRACT.replace("99", "98")), cli.WRONG, "the columns"),
        (lambda folder: (folder / "people.toml").write_text(CONTRACT.replace('"4"', '"5"')), cli.WRONG, "budget"),
    ],
)
def test_what_does_not_fit_together_is_refused(here: Path, capsys: Out, spoil: object, code: int, says: str) -> None:
    spoil(here)  # type: ignore[operator]
    assert check() == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert not any(canary in err for canary in CANARIES)
