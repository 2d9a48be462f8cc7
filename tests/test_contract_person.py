"""From the contract to the release: a person's rows, and domains that nobody has signed yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bad_inputs_service import CANARIES, CONTRACT, plant

from tacit.domain.workload import marginals
from tacit.errors import InvalidSchema
from tacit.service import cli
from tacit.service.people import People

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


def test_a_curator_is_not_made_under_a_domain_that_was_taken_from_the_data(tmp_path: Path) -> None:
    path = plant(tmp_path)
    path.write_text(UNSIGNED)
    with pytest.raises(InvalidSchema, match="was taken from the data"):
        People.open(path).curator()
