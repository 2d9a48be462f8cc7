"""Pictures of the ledger and of a plan: the same bytes for the same facts, whatever anybody is called."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from importlib import util
from pathlib import Path

import pytest
from bad_inputs_service import plant

from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.privacy.budget import Loss
from tacit.service import cli, plotting
from tacit.service.people import People

pytest.importorskip("matplotlib")

BEGAN = datetime(2026, 1, 31, 8, tzinfo=UTC)
NAMES = ["Ana", "_under", "$x^2", "<b>&", "日本", "a\x1b[31m", "", "x" * 300, "eight", "nine"]
CHARGES = [(BEGAN + timedelta(days=at), NAMES[at % 10], 0.01 + at / 1000) for at in range(12)]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> People:
    """A table on which Ana spent twice and Ben once."""
    monkeypatch.chdir(tmp_path)
    people = People.open(plant(tmp_path))
    for by in ("Ana", "Ben", "Ana"):
        with SQLiteLedger.open(people.contract.ledger, subject=people.contract.subject, by=by) as ledger:
            ledger.charge("a step", Loss.concentrated(Fraction(1, 100)))
    return people


def drawn(file: str, charges: list[tuple[datetime, str, float]], since: datetime | None = None) -> bytes:
    with plotting.shelf_for(Path(file), True) as shelf:
        plotting.draw_ledger(
            shelf, "$people$", charges, since=since, budget=(0.2, "rho"), epsilons=[(0.1, "2"), (0.2, "4")]
        )
    return Path(file).read_bytes()


@pytest.mark.parametrize("ending", plotting.ENDINGS)
def test_the_same_charges_make_the_same_bytes_without_a_warning(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = drawn(f"a{ending}", CHARGES)
    assert first == drawn(f"b{ending}", CHARGES)
    assert first != drawn(f"b{ending}", CHARGES[:11])
    assert first.startswith(b"\x89PNG" if ending == ".png" else b"<?xml")


def test_a_picture_says_who_spent_what_of_which_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = re.findall(r"<text[^>]*>([^<]*)</text>", drawn("a.svg", CHARGES).decode())
    assert {"$people$", "the budget, rho 0.2", "spent, in rho", "as one epsilon", "2", "4", "UTC"} <= set(said)
    assert {text.rpartition("  ")[0] for text in said if "%" in text} == {
        "_under",
        "Ana",
        "nine",
        "eight",
        "x" * 29 + "…",
        "",
        r"a\x1b[31m",
        "others",
    }


def test_time_goes_forward_though_a_clock_went_back() -> None:
    charges = [(BEGAN, "Ana", 0.1), (BEGAN - timedelta(days=9), "Ben", 0.1)]
    times, levels = plotting._steps(charges, ["Ana", "Ben"])
    assert times == [BEGAN] * 3
    assert levels == [[0, 0], [0.1, 0], [0.1, 0.1]]


@pytest.mark.parametrize("since", [BEGAN - timedelta(days=9), BEGAN + timedelta(days=5), BEGAN + timedelta(days=99)])
def test_a_picture_may_begin_whenever(since: datetime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert drawn("a.svg", CHARGES, since) != drawn("b.svg", CHARGES)


def test_a_ledger_is_drawn_and_filtered(people: People, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ledger", "show", "people.toml", "--by", "Ana", "--plot", "a.svg", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["by"] for entry in shown["entries"]] == ["Ana", "Ana"]
    assert Fraction(shown["shown"]["spent"]) == Fraction(2, 100)
    assert Fraction(shown["spent"]) == Fraction(3, 100)  # of all
    assert "everybody else  33%" in Path("a.svg").read_text()
    assert cli.run(["ledger", "--since", "2999-12-31", "people.toml"]) == 0
    out = capsys.readouterr().out
    assert "0 rho was spent since 2999-12-31 00:00 UTC, of 0.03 in all." in out
    assert cli.run(["ledger", "show", "people.toml", "--since", "2020-01-01T00:00+02:00", "--by", "Ben"]) == 0
    assert "0.01 rho was spent by Ben since 2019-12-31 22:00 UTC" in capsys.readouterr().out
    assert cli.run(["ledger", "show", "people.toml", "--plot", "a.svg"]) == cli.WRONG
    assert cli.run(["ledger", "show", "people.toml", "--plot", "a.svg", "--force", "-q"]) == 0
    assert "Ben  33%" in Path("a.svg").read_text()


def test_a_plan_is_drawn_table_by_table(people: People) -> None:
    assert cli.run(["plan", "people.toml", "-w", "marginals:2", "-e", "1", "--plot", "p.svg", "-q"]) == 0
    said = re.findall(r"<text[^>]*>([^<]*)</text>", Path("p.svg").read_text())
    assert {"age × sex", "age × income", "sex × income", "Gaussian, epsilon 1, delta 1e-9"} <= set(said)


def test_of_many_tables_the_first_are_drawn(tmp_path: Path) -> None:
    tables = [f"table {at}" for at in range(100)]
    with plotting.shelf_for(tmp_path / "p.svg", False) as shelf:
        plotting.draw_errors(shelf, "many", tables, [("Laplace", [1.0] * 100)])
    text = (tmp_path / "p.svg").read_text()
    assert "many (the first 60 of 100)" in text
    assert "table 59" in text
    assert "table 60" not in text


def test_without_matplotlib_one_line_says_what_to_install(
    people: People, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = util.find_spec
    monkeypatch.setattr(plotting, "find_spec", lambda name: None if name == "matplotlib" else there(name))
    assert cli.run(["ledger", "show", "people.toml", "--plot", "a.png"]) == cli.WRONG
    assert capsys.readouterr().err == (
        "tacit: a plot needs the package matplotlib: pip install 'tacit[plot]'. Nothing was spent.\n"
    )
    assert not Path("a.png").exists()


def test_only_a_plot_imports_matplotlib(people: People) -> None:
    code = "import sys; from tacit.service.cli import run; run(['ledger', 'people.toml', '-q']); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "tacit.service.plotting" in run.stdout
    assert "matplotlib" not in run.stdout
