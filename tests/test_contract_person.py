"""From the contract to the release: a person's rows, and domains that nobody has signed yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from asked import QUESTIONS, exact, planted
from bad_inputs_service import CANARIES, CONTRACT, plant

from tacit.domain.workload import marginals
from tacit.errors import InvalidSchema
from tacit.service import asking, cli
from tacit.service.people import People
from tacit.service.show import Reading

PERSON = CONTRACT.replace('source = "people.csv"', 'source = "people.csv"\nperson = "name"\nmost_rows = 3')
UNSIGNED = CONTRACT.replace("high = 99", 'high = 99\ndomain = "from data"')


def test_a_release_counts_at_most_so_many_rows_of_a_person_and_says_so(tmp_path: Path) -> None:
    with People.open(plant(tmp_path, PERSON)) as people:
        plan = people.plan(marginals(people.schema, 1), epsilon=2)
        alone = People.open(plant(tmp_path / "alone")).plan(marginals(people.schema, 1), epsilon=2)
        assert plan.error.largest > 2.9 * alone.error.largest
        assert "rows a count" in dict(plan.facts())["expected error"]
        released = plan.run()
        assert released.receipt is not None
        assert released.receipt.rows == 3
        assert people.table.counts([()])[0] <= 4  # Zanzibar's, and three of x


def test_a_ledger_of_rows_is_no_ledger_of_people(tmp_path: Path) -> None:
    path = plant(tmp_path)
    path.write_text(PERSON)
    people = People.open(path)
    with pytest.raises(InvalidSchema, match="the person and most_rows differ"):
        _ = people.ledger


# --- a session that lasts --------------------------------------------------------------------------------------------


def test_a_session_of_people_of_several_rows_keeps_its_promise_and_goes_on(tmp_path: Path) -> None:
    """All three rows of each count, so that what is true is known; 6 errors are far beyond the promise."""
    with People.open(planted(tmp_path, each=3)) as people:
        with people.session("ana", epsilon=18) as session:
            assert session.terms.rows == 3
            assert "20,000 rows" in str(session.terms).replace(f"{session.terms.people:,.0f} rows", "20,000 rows")
            told = {question: session.ask(question) for question in QUESTIONS}
            left, before = session.left, people.ledger.spent
        for question, answer in told.items():
            assert answer.error is not None
            assert abs(answer.value - exact(question)) <= 6 * answer.error
        assert any(not answer.free for answer in told.values())
        with people.session("ana") as again:
            assert {question: again.ask(question) for question in QUESTIONS} == told
            assert again.terms.rows == 3
            assert again.ask("a = 3 and b = 3").error is not None
            assert again.left <= left
        assert people.ledger.spent == before


def test_a_session_s_noise_is_as_much_larger_as_a_person_has_rows(tmp_path: Path) -> None:
    errors = []
    for each in (0, 1, 3):
        with (
            People.open(planted(tmp_path / str(each), each=each)) as people,
            people.session("a", epsilon=18) as session,
        ):
            errors.append(session.terms.paid_error / session.terms.count**0.5)
    assert 0.98 < errors[1] / errors[0] < 1.02
    assert 2 < errors[2] / errors[0] < 3.1  # the terms differ in more than the noise


@pytest.mark.parametrize("most", [1, 3])
def test_a_public_number_of_people_is_not_that_of_their_rows_which_is_bought(tmp_path: Path, most: int) -> None:
    for each in (0, 3):
        contract = planted(tmp_path / str(each), whole=True, each=each, most=most)
        with People.open(contract) as people, people.session("a", epsilon=18) as session:
            bought = [entry.what for entry in people.ledger.entries() if entry.what.startswith("people of session")]
            assert len(bought) == (each > 0)
            true = 20_000 if most == 3 or not each else -(-20_000 // 3)
            assert abs(session.terms.people - true) < 100
            if not each:
                assert session.terms.people == 20_000


def test_a_plan_of_a_session_is_that_of_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(planted(tmp_path, whole=True, each=3))
    assert cli.run(["plan", path, "--online", "-e", "4"]) == 2
    assert "the number of rows is private here" in capsys.readouterr().err
    assert cli.run(["plan", path, "--online", "-e", "8", "--people", "20000", "--rehearse", "20", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["plan"]
    assert said["terms"]["rows"] == said["rehearsal"]["terms"]["rows"] == 3


def test_how_many_rows_are_read_is_not_told_where_only_the_number_of_people_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(planted(tmp_path, whole=True, each=3))
    shown: list[bool] = []
    monkeypatch.setattr(asking, "Reading", lambda screen, public: shown.append(public) or Reading(screen, public))
    assert cli.run(["ask", path, "a = 1", "--session", "ana", "-e", "18"]) == 0
    assert shown == [False]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "release": lambda path: ["release", str(path), "-w", "sex", "-e", "1", "-o", str(path.parent / "out")],
    "ledger create": lambda path: ["ledger", "create", str(path)],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_spends_under_a_domain_that_was_taken_from_the_data(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plant(tmp_path, ledger=command != "ledger create")
    path.write_text(UNSIGNED)
    assert cli.run(COMMANDS[command](path)) == 2
    said = capsys.readouterr().err
    assert "line 14, [[columns]] 1" in said
    assert "was taken from the data" in said
    assert not any(canary in said for canary in CANARIES)
    with (
        People.open(path).history() if command == "release" else People.open(plant(tmp_path / "b")).history() as ledger
    ):
        assert ledger.spent == 0
    path.write_text(UNSIGNED.replace('"from data"', '"public"'))
    assert cli.run(COMMANDS[command](path)) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "-w", "prefixes:age", "-e", "1"],
        ["plan", "-w", "age", "--error", "5", "--json"],
        ["plan", "--online", "-e", "4", "--people", "1000", "--rehearse", "0"],
        ["release", "-w", "prefixes:age", "-e", "1", "--plan"],
        ["release", "-w", "prefixes:sex", "-e", "1"],
        ["ask", "age = 80", "--session", "ana", "-e", "1"],
    ],
    ids=" ".join,
)
def test_no_plan_and_no_refusal_tells_how_far_a_domain_reaches_that_was_taken_from_the_data(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, told = plant(tmp_path), list[tuple[int, str, str]]()
    for high in (99, 63):
        path.write_text(UNSIGNED.replace("high = 99", f"high = {high}"))
        code = cli.run([words[0], str(path), *words[1:]])
        told.append((code, *capsys.readouterr()))
    assert told[0] == told[1]
    assert told[0][0] == 2
    assert "was taken from the data" in told[0][1] + told[0][2]


def test_no_session_is_opened_under_a_domain_that_was_taken_from_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = planted(tmp_path)
    path.write_text(path.read_text().replace('name = "a"', 'name = "a"\ndomain = "from data"'))
    assert cli.run(["ask", str(path), "a = 1", "--session", "ana", "-e", "18"]) == 2
    assert "was taken from the data" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.session"))
    path.write_text(path.read_text().replace('"from data"', '"public"'))
    assert cli.run(["ask", str(path), "a = 1", "--session", "ana", "-e", "18"]) == 0


def test_a_curator_is_not_made_under_a_domain_that_was_taken_from_the_data(tmp_path: Path) -> None:
    path = plant(tmp_path)
    path.write_text(UNSIGNED)
    with pytest.raises(InvalidSchema, match="was taken from the data"):
        People.open(path).curator()
