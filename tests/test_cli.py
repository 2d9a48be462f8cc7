"""The command line: what it does, what it refuses, what it never says, and that its page is whole."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import typer
from bad_inputs_service import CANARIES, COMMANDS, CONTRACT, Wrong, plant

from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.errors import DataUnavailable, InvalidQuery
from tacit.service import cli, releasing
from tacit.service.people import People
from tacit.service.show import Screen

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a planted table, its contract and its ledger, in which the command runs."""
    folder = tmp_path / "here"
    plant(folder)
    monkeypatch.chdir(folder)
    return folder


def spent(folder: Path) -> Fraction:
    with SQLiteLedger.read(folder / "people.ledger") as ledger:
        return ledger.spent


def files(folder: Path) -> dict[str, bytes]:
    """All files but the passing ones of SQLite, by name and content."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def chain(error: BaseException | None) -> Iterator[str]:
    """What an exception says, and those behind it."""
    while error is not None:
        yield f"{error!r} {error}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("wrong", COMMANDS, ids=lambda wrong: wrong.id)
def test_a_wrong_command_costs_nothing_and_tells_nothing(
    wrong: Wrong, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong.spoil(here)
    capsys.readouterr()
    before, raised = files(here), list[str]()
    fail = Screen.fail

    def listening(*arguments: object) -> int:
        raised.extend(chain(sys.exc_info()[1]))
        return fail(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Screen, "fail", listening)
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
        assert not any(canary in said for said in raised)
    assert files(here) == before


@pytest.mark.parametrize("wrong", [COMMANDS[1], COMMANDS[7], COMMANDS[11]], ids=lambda wrong: wrong.id)
def test_for_a_machine_a_refusal_is_one_object(wrong: Wrong, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*wrong.words, "--json"]) == wrong.code
    said = json.loads(capsys.readouterr().out)
    assert said["error"]["exit"] == wrong.code
    assert said["error"]["message"]


def test_a_release_is_charged_kept_and_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "release",
        "people.toml",
        "-w",
        "marginals:2",
        "-e",
        "1",
        "-o",
        "out",
        "--by",
        "Ana",
        "--purpose",
        "a trial",
    ]
    assert cli.run([*words, "--json", "--rows", "50"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert Fraction(said["plan"]["price"]) == Fraction(said["ledger"]["spent"]) == spent(here) > 0
    assert said["plan"]["marginals"] == [["age", "sex"], ["age", "income"], ["sex", "income"]]
    assert (here / "out" / "synthetic.csv").read_text().count("\n") == 51

    assert cli.run(["ask", "out", "sex = 'F'", "income is missing", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert all(answer["low"] <= answer["value"] <= answer["high"] and answer["cost"] == 0 for answer in answers)

    assert cli.run(["ledger", "people.toml", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {(entry["by"], entry["purpose"]) for entry in shown["entries"]} == {("Ana", "a trial")}
    assert Fraction(shown["spent"]) + Fraction(shown["left"]) == Fraction(shown["budget"])


def test_each_command_speaks_to_people_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["release", "people.toml", "-w", "sex*age,income", "-e", "0.5", "-o", "out", "--by", "Ana"]) == 0
    assert "epsilon 0.5 and delta 1e-9" in capsys.readouterr().out
    assert cli.run(["ask", "out", "age < 30 and sex = 'M'", "sex = 'F' and income < 250"]) == 0
    out = capsys.readouterr().out
    assert "age < 30 and sex = 'M'" in out
    assert "estimate" in out
    assert cli.run(["ledger", "show", "people.toml"]) == 0
    out = capsys.readouterr().out
    assert "Ana" in out
    assert "epsilon 0.5 of 4 at delta 1e-9" in out


def test_quiet_leaves_the_bare_result(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, form in (
        (["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out", "-q"], r"out\n"),
        (["ask", "out", "sex = 'F'", "sex = 'M'", "-q"], r"[\d.]+\n[\d.]+\n"),
        (["ledger", "show", "people.toml", "-q"], r"0\.\d+\n"),
    ):
        assert cli.run(words) == 0
        out, err = capsys.readouterr()
        assert re.fullmatch(form, out)
        assert err == ""


def test_a_plan_reads_and_spends_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "people.csv").unlink()
    for file in here.glob("people.ledger*"):
        file.unlink()
    assert cli.run(["release", "people.toml", "-w", "marginals:1,2", "-e", "1", "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["counts"] == 100 + 2 + 4 + 200 + 400 + 8
    assert plan["largest_error"] > min(plan["standard_deviation"]) > 0
    assert sorted(path.name for path in here.iterdir()) == ["people.toml"]


def test_force_replaces_a_release_and_only_that(here: Path) -> None:
    words = ["release", "people.toml", "-w", "sex", "-e", "0.5", "-o", "out", "-q"]
    assert cli.run(words) == 0
    first = (here / "out" / "tables.npz").read_bytes()
    assert cli.run([*words, "--force"]) == 0
    assert (here / "out" / "tables.npz").read_bytes() != first
    assert {path.name for path in here.iterdir()} >= {"out", "people.csv"}
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_ten_tenths_fit_and_an_eleventh_does_not(here: Path) -> None:
    (here / "people.toml").write_text(
        CONTRACT.replace('epsilon = "4"', "epsilon = 1")
        .replace('delta = "1e-9"', "")
        .replace("people.ledger", "tenths")
    )
    assert cli.run(["ledger", "create", "people.toml", "-q"]) == 0
    for time_ in range(10):
        assert cli.run(["release", "people.toml", "-w", "sex", "-e", "0.1", "-o", f"out{time_}", "-q"]) == 0
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1e-9", "-o", "out10", "-q"]) == cli.REFUSED


def test_a_delta_too_large_for_the_public_number_of_people_is_warned_of(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONTRACT.replace('"add-remove"', '"replace-one"\npeople = 65').replace('"1e-9"', "0.1")
    (here / "people.toml").write_text(text)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "--plan", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("warning: delta=0.1 lets a mechanism publish about 6 of 65 records")
    assert len(json.loads(out)["plan"]["warnings"]) == 1


def test_a_delta_too_large_for_anybody_is_warned_of_when_the_ledger_is_made(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "people.toml").write_text(CONTRACT.replace('"1e-9"', "0.01").replace("people.ledger", "other"))
    assert cli.run(["ledger", "create", "people.toml", "-q"]) == 0
    assert capsys.readouterr().err == (
        "warning: delta=0.01 lets a mechanism publish a person's record outright that often; choose less.\n"
    )


def test_an_answer_that_no_cell_can_give_is_remarked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out", "-q"]) == 0
    capsys.readouterr()
    assert cli.run(["ask", "out", "sex = 'f'", "sex = 'F'"]) == 0
    assert capsys.readouterr().err == (
        "sex = 'f' is true of no cell of the columns: are its constants spelt as in the contract?\n"
    )


def test_what_no_terminal_cuts_is_not_folded(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert cli.run(["release", "people.toml", "-w", "marginals:2", "-e", "1", "-o", "out", "--purpose", "x" * 60]) == 0
    capsys.readouterr()
    assert cli.run(["ledger", "show", "people.toml"]) == 0
    assert re.search(r"x{60} +release_marginals of Workload\(.*\) +0\.01497", capsys.readouterr().out)


def test_an_answer_that_cannot_be_written_is_not_lost(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def taken(old: Path, new: Path) -> None:
        if str(new) == "out":
            raise PermissionError(13, "Permission denied")
        rename(old, new)

    monkeypatch.setattr(os, "rename", taken)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.UNAVAILABLE
    err = capsys.readouterr().err
    assert "permission denied" in err
    rescued = re.search(r"lies in (\S+);", err)
    assert rescued is not None
    assert cli.run(["ask", rescued[1], "sex = 'F'", "-q"]) == 0
    assert spent(here) > 0


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("CANARY"), OSError(28, "No space left on device")])
def test_a_fault_while_it_is_written_does_not_lose_what_was_paid_for(
    fault: Exception, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.service import released

    faults, saved = [fault], released.save

    def fails_once(*args: Any, **how: Any) -> None:
        if faults:
            raise faults.pop()
        saved(*args, **how)

    monkeypatch.setattr(released, "save", fails_once)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.UNAVAILABLE
    err = capsys.readouterr().err
    rescued = re.search(r"lies in (\S+);", err)
    assert rescued is not None
    assert "CANARY" not in err
    assert cli.run(["ask", rescued[1], "sex = 'F'", "-q"]) == 0


def test_a_source_that_fails_while_it_is_read_costs_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise DataUnavailable("the source could not be read to its end.")

    monkeypatch.setattr("tacit.engines.table.Table.read", fails)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.UNAVAILABLE
    assert spent(here) == 0
    assert not (here / "out").exists()


@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, RecursionError, KeyError, ZeroDivisionError])
def test_what_nobody_foresaw_is_one_constant_line(
    fault: type[Exception], here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise fault(CANARIES[0])

    monkeypatch.setattr(People, "plan", fails)
    monkeypatch.delenv("TACIT_DEBUG", raising=False)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.UNEXPECTED
    assert capsys.readouterr().err == f"tacit: {cli.UNEXPECTED_TEXT}\n"
    monkeypatch.setenv("TACIT_DEBUG", "1")
    with pytest.raises(fault):
        cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"])


def test_an_interrupt_before_the_charge_costs_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.engines.table.Table.read", lambda *_: signal.raise_signal(signal.SIGINT))
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.INTERRUPTED
    assert "Nothing was spent" in capsys.readouterr().err
    assert spent(here) == 0
    assert not (here / "out").exists()


def test_an_interrupt_after_the_charge_waits_for_the_answer(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = interrupting(monkeypatch, times=1)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == 0
    assert once == [1]
    assert "finishing" in capsys.readouterr().err
    assert cli.run(["ask", "out", "sex = 'F'", "-q"]) == 0


def test_rows_that_cannot_be_made_do_not_cost_the_release(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(fault: BaseException) -> None:
        monkeypatch.setattr("tacit.domain.synopsis.Rows.write_csv", lambda *_: (_ for _ in ()).throw(fault))

    words = ["release", "people.toml", "-w", "sex", "-e", "0.1", "--rows", "5", "-o"]
    for out, fault, code, why in (
        ("a", OSError(28, "No space left on device"), cli.UNAVAILABLE, "no space left on device"),
        ("b", MemoryError(), cli.UNAVAILABLE, "not enough memory"),
        ("c", InvalidQuery("too many column sets. Nothing was spent."), cli.UNAVAILABLE, "an unforeseen fault"),
        ("d", KeyboardInterrupt(), cli.INTERRUPTED, "interrupted"),
    ):
        fails(fault)
        assert cli.run([*words, out]) == code
        err = capsys.readouterr().err
        assert why in err
        assert f"The release is in {out}, paid for and whole" in err
        assert "Nothing was spent" not in err
        assert cli.run(["ask", out, "sex = 'F'", "-q"]) == 0


def test_a_second_interrupt_gives_up_and_says_what_was_charged(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupting(monkeypatch, times=2)
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out"]) == cli.INTERRUPTED
    assert "0.01497305767 was charged while this ran, and stays charged" in capsys.readouterr().err
    assert spent(here) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_session_says_what_was_charged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["demo", "-q"]) == 0
    ask = ["ask", "tacit-demo/town.toml", "age >= 40", "--session", "s", "-q"]

    def stops(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    for where, charged in (("tacit.service.session.begun", False), ("tacit.service.session.Session.select", True)):
        with monkeypatch.context() as context:
            context.setattr(where, stops)
            capsys.readouterr()
            assert cli.run([*ask, "-e", "1"]) == cli.INTERRUPTED
        said = capsys.readouterr().err
        assert ("0.01497305767 was charged while this ran, and stays charged" in said) == charged
        assert ("Nothing was spent" in said) != charged
    assert cli.run(ask) == 0


def interrupting(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Sends interrupts when the release is about to be written."""
    from tacit.service import released

    save, done = released.save, list[int]()

    def interrupted(*arguments: object, **named: object) -> None:
        done.append(1)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        save(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(released, "save", interrupted)
    return done


def commands(app: object, path: str = "tacit") -> Iterator[tuple[str, object]]:
    """Every command, with the words that name it."""
    yield path, app
    for name, command in getattr(app, "commands", {}).items():
        yield from commands(command, f"{path} {name}")


COMMANDS_BY_NAME = dict(commands(typer.main.get_command(cli.app)))
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS_BY_NAME)
def test_every_command_has_help_with_examples(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(here)
    assert cli.run([*name.split()[1:], "--help"]) == 0
    out = capsys.readouterr().out
    examples = re.findall(r"^ {4}tacit .*$", out, re.MULTILINE)
    assert examples
    assert all(line.strip().startswith(name) for line in examples)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert files(here) == before


@pytest.mark.parametrize("name", [name for name in COMMANDS_BY_NAME if name not in ("tacit", "tacit ledger")])
def test_every_command_and_every_option_is_on_the_page(name: str) -> None:
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    for parameter in COMMANDS_BY_NAME[name].params:  # type: ignore[attr-defined]
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in section[1], f"{name} {option}"


def test_the_page_speaks_of_no_command_that_is_not_there() -> None:
    for name in re.findall(r"^## (tacit.*)$", PAGE, re.MULTILINE):
        assert name in COMMANDS_BY_NAME


def said_to_shells(text: str) -> list[list[str]]:
    """The words of each command in the pages' shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("tacit ")]


@pytest.mark.parametrize("page", ["docs/cli.md", "README.md"])
def test_every_command_on_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, ledger=False)
    monkeypatch.chdir(tmp_path)
    commands = said_to_shells((ROOT / page).read_text(encoding="utf-8"))
    assert len(commands) >= 5
    for words in commands:
        assert cli.run(words) == 0, words


def test_every_exit_code_is_on_the_page() -> None:
    codes = {cli.WRONG, cli.REFUSED, cli.UNAVAILABLE, cli.UNEXPECTED, cli.INTERRUPTED, cli.LEFT, 0}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == codes
    assert {int(code) for code in re.findall(r"\d+", (cli.top.__doc__ or "").partition("Exit codes:")[2])} == codes


def test_the_readme_shows_the_demo_and_its_code_runs_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    began = time.process_time()
    assert cli.run(["demo"]) == 0
    assert time.process_time() - began < 20
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^<!-- shown -->\n```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    code = re.search(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert code is not None
    ours = [shape(line) for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert ours[:-2] == [shape(line) for line in shown[1].splitlines() if line.strip()]
    run = subprocess.run([sys.executable, "-c", code[1]], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Harbour" in run.stdout
    assert "Answer(value=" in run.stdout
    assert cli.run(["ask", "yearbook", "age >= 18", "-q"]) == 0


def shape(line: str) -> str:
    """A line without what the noise and the widths of numbers decide."""
    return re.sub(r"[\s─]+", " ", re.sub(r"\d[\d,]*(\.\d+)?", "#", line)).strip()


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md", "docs/contract.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    source = ROOT / page
    for place, _, heading in re.findall(r"\]\(([^)#]*)(#([^)]*))?\)", source.read_text(encoding="utf-8")):
        target = source.parent / place if place else source
        assert target.is_file(), place
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in headings}
        assert not heading or heading in slugs, heading


def test_every_page_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"(docs/{page.name})" not in readme] == []


def tacit(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tacit.service.cli", *words],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        check=False,
    )


def test_it_runs_without_home_or_terminal_in_any_language(here: Path) -> None:
    folder = os.fsdecode(b"caf\xe9 \xff")
    for environment in ({"LANG": "C"}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"NO_COLOR": "1", "TERM": "dumb"}):
        run = tacit("release", "people.toml", "-w", "sex", "-e", "0.1", "-o", folder, "--force", **environment)
        assert run.returncode == 0, run.stderr
        run = tacit("ask", folder, "sex = 'F'", "sex = 'M'", **environment)
        assert run.returncode == 0, run.stderr
        assert b"sex = 'F'" in run.stdout
        assert b"\x1b" not in run.stdout + run.stderr


def test_a_reader_that_leaves_is_no_fault(here: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "tacit.service.cli", "ledger", "people.toml"],
        env=ENVIRONMENT,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (cli.LEFT, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["people", "machines"])
def test_a_result_that_cannot_be_shown_is_said_and_kept(here: Path, more: list[str]) -> None:
    words = ["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out", *more]
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "tacit.service.cli", *words],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert run.returncode == cli.UNAVAILABLE
    *waited, said = run.stderr.splitlines()  # a busy machine is told that it takes long
    assert said == (
        b"tacit: standard output cannot be written: no space left on device. What was done before stays done."
    )
    assert all(line.endswith(b" ...") for line in waited)
    assert cli.run(["ask", "out", "sex = 'F'", "-q"]) == 0


def test_nobody_need_listen_to_standard_error(here: Path) -> None:
    words = ["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out", "-q"]
    run = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "tacit.service.cli", *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, b"out\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_before_the_charge_costs_nothing_and_leaves_nothing(here: Path, number: signal.Signals) -> None:
    before = files(here)
    code = (
        "import signal, sys; from tacit.engines.table import Table; from tacit.service import cli\n"
        f"Table.read = lambda *_: signal.raise_signal({number:d})\n"
        "sys.argv[1:] = 'release people.toml -w sex -e 1 -o out'.split(); cli.main()"
    )
    run = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (cli.INTERRUPTED, b"tacit: interrupted. Nothing was spent.\n")
    assert files(here) == before


def test_two_at_once_share_one_ledger(here: Path) -> None:
    words = [sys.executable, "-m", "tacit.service.cli", "release", "people.toml", "-w", "sex", "-e", "3.5"]
    both = [subprocess.Popen([*words, "-o", f"out{i}"], env=ENVIRONMENT, stderr=subprocess.PIPE) for i in range(2)]
    assert sorted(run.wait(60) for run in both) == [0, cli.REFUSED]
    for run in both:
        assert run.stderr is not None
        run.stderr.close()
    assert sum((here / f"out{i}").exists() for i in range(2)) == 1


def test_help_starts_quickly_and_imports_nothing_heavy() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tacit.service.cli", "--help"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(re.findall(r"\|\s*([\w.]+)$", run.stderr, re.MULTILINE))
    assert not imported & {"numpy", "pyarrow", "sqlite3", "rich.table", "cryptography", "duckdb", "pandas", "scipy"}


def test_a_release_imports_only_what_it_needs(here: Path) -> None:
    words = ["release", "people.toml", "-w", "marginals:2", "-e", "1", "-o", "out", "--json"]
    code = f"import sys; from tacit.service.cli import run; assert run({words!r}) == 0; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    modules = {name.split(".")[0] for name in run.stdout.split("}")[-1].split()}
    assert not modules & {"scipy", "pandas", "polars", "duckdb", "matplotlib", "hypothesis", "mpmath"}
    assert "rich.table" not in run.stdout


def test_a_long_reading_says_how_far_it_is_and_keeps_a_private_number_to_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.service import show

    clock = iter([0.0, 1.0, 3.0, 4.0, 30.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with show.Reading(Screen(), public=False) as progress:
        for done in (31_337, 62_674, 94_011, 125_348):
            progress(done, 313_370)
    assert capsys.readouterr().err == "reading the table (3 s, 20%)\nreading the table (30 s, 40%)\n"
    clock = iter([0.0, 4.0])
    with show.Reading(Screen(), public=True) as progress:
        progress(1_000_000, None)
    assert capsys.readouterr().err == "reading the table (4 s, 1,000,000 rows, 250,000 rows/s)\n"


def test_a_long_wait_is_explained(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.service import show

    monkeypatch.setattr(show, "PATIENCE", 0.02)
    with show.Waiting(Screen(), "drawing the noise"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "drawing the noise ...\n"
    with show.Waiting(Screen(quiet=True), "drawing the noise"):
        time.sleep(0.1)
    monkeypatch.setattr(show, "PATIENCE", 60)
    with show.Waiting(Screen(), "drawing the noise"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("total", "public"), [(40, False), (None, True)], ids=["private", "public"])
def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch, total: int | None, public: bool) -> None:
    from tacit.service import show

    monkeypatch.setattr(show, "PATIENCE", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = os.openpty()
    with open(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with show.Reading(Screen(), public=public) as progress:
            time.sleep(0.02)
            for done in (10, 20):
                progress(done, total)
        with show.Waiting(Screen(), "drawing the noise"):
            time.sleep(0.3)
        drawn = b""
        while select.select([leader], [], [], 0.2)[0]:
            drawn += os.read(leader, 1 << 16)
    os.close(leader)
    seen = drawn.decode()
    assert "reading the table" in seen
    assert "drawing the noise" in seen
    assert ("50%" in seen) == ("%" in seen) == (total is not None)
    assert ("rows" in seen) == public
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")  # the cursor is given back


def test_a_ledger_can_be_shown_where_nothing_can_be_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["release", "people.toml", "-w", "sex", "-e", "1", "-o", "out", "-q"]) == 0
    before = files(here)
    (here / "people.ledger").chmod(0o400)
    (here / "people.ledger-head").chmod(0o400)
    capsys.readouterr()
    assert cli.run(["ledger", "show", "people.toml"]) == 0
    assert "epsilon 1 of 4" in capsys.readouterr().out
    assert files(here) == before


def test_the_deferral_of_interrupts_is_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with releasing.finishing():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
