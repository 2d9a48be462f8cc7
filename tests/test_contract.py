"""The contract is read strictly; what is wrong with it is said where it stands."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from bad_inputs_service import CONTRACT, CONTRACTS, Spoilt

from tacit.domain.person import Person, Relation
from tacit.domain.schema import Categories, Dates, Integers, Neighbors, Numbers, Schema
from tacit.errors import InvalidSchema
from tacit.privacy.budget import Budget
from tacit.service.contract import Contract
from tacit.service.located import MOST_BYTES


def written(folder: Path, text: str = CONTRACT) -> Path:
    path = folder / "people.toml"
    path.write_bytes(text.encode())
    return path


def test_a_contract_says_what_it_says(tmp_path: Path) -> None:
    contract = Contract.read(written(tmp_path))
    assert contract.schema == Schema(
        [
            Integers("age", 0, 99, outside="clamp"),
            Categories("sex", ("F", "M")),
            Numbers("income", (0, 250, 500.5, 1000), missing="cell", outside="clamp"),
        ]
    )
    assert contract.neighbors is Neighbors.ADD_REMOVE
    assert contract.people is None
    assert contract.budget == Budget.of(4, "1e-9")
    assert contract.location == str(tmp_path / "people.csv")
    assert contract.ledger == tmp_path / "people.ledger"


@pytest.mark.parametrize("said", ["0.1", '"0.1"', '"1/10"', "1e-1"])
def test_a_tenth_is_a_tenth_however_it_is_written(tmp_path: Path, said: str) -> None:
    contract = Contract.read(written(tmp_path, CONTRACT.replace('epsilon = "4"', f"epsilon = {said}")))
    assert contract.epsilon == Fraction(1, 10)


def test_without_delta_the_promise_is_pure(tmp_path: Path) -> None:
    contract = Contract.read(written(tmp_path, CONTRACT.replace('delta = "1e-9"\n', "")))
    assert contract.budget == Budget.of(4)


def test_under_replace_one_the_number_of_people_is_public(tmp_path: Path) -> None:
    text = CONTRACT.replace('"add-remove"', '"replace-one"\npeople = 65')
    contract = Contract.read(written(tmp_path, text))
    assert (contract.neighbors, contract.people) == (Neighbors.REPLACE_ONE, 65)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_contract_declares_days_in_toml_s_own_way_or_as_texts(tmp_path: Path, quote: str) -> None:
    days = f'from = {quote}2024-01-01{quote}\nto = {quote}2024-12-31{quote}\nby = "quarter"\n'
    contract = Contract.read(written(tmp_path, CONTRACT.replace("low = 0\nhigh = 99\n", days)))
    assert contract.schema["age"] == Dates("age", date(2024, 1, 1), date(2024, 12, 31), "quarter", outside="clamp")
    assert Schema.of(json.loads(json.dumps(contract.schema.describe()))) == contract.schema


PERSON = CONTRACT.replace('source = "people.csv"', 'source = "people.csv"\nperson = "name"\nmost_rows = 3')


def test_a_contract_says_who_is_a_person(tmp_path: Path) -> None:
    contract = Contract.read(written(tmp_path, PERSON))
    assert contract.person == Person("name", 3)
    assert contract.relation == Relation(Neighbors.ADD_REMOVE, 3)
    assert Contract.read(written(tmp_path)).relation == Relation(Neighbors.ADD_REMOVE)


@pytest.mark.parametrize(("old", "new"), [('"name"', '"other"'), ("most_rows = 3", "most_rows = 2")])
def test_another_person_or_number_of_rows_is_another_subject(tmp_path: Path, old: str, new: str) -> None:
    before = Contract.read(written(tmp_path, PERSON)).subject
    changed = Contract.read(written(tmp_path, PERSON.replace(old, new)))
    assert changed.unlike(before) == "the person and most_rows"


def test_a_subject_without_a_person_is_what_it_was(tmp_path: Path) -> None:
    """A ledger of an older release is still that of its table."""
    subject = Contract.read(written(tmp_path)).subject
    assert re.fullmatch(r"people\.csv; [0-9a-f]{16}; schema [0-9a-f]{32}; add-remove", subject)


def test_with_a_person_the_number_of_people_is_not_that_of_rows(tmp_path: Path) -> None:
    text = PERSON.replace('"add-remove"', '"replace-one"\npeople = 65')
    assert not Contract.read(written(tmp_path, text)).rows_public
    assert Contract.read(written(tmp_path, CONTRACT.replace('"add-remove"', '"replace-one"\npeople = 65'))).rows_public


@pytest.mark.parametrize("mark", ["", '\ndomain = "public"', '\ndomain = "bought"'])
def test_a_domain_is_public_or_was_bought(tmp_path: Path, mark: str) -> None:
    contract = Contract.read(written(tmp_path, CONTRACT.replace("high = 99", f"high = 99{mark}")))
    contract.must_be_public()
    assert contract.subject == Contract.read(written(tmp_path)).subject


def test_a_domain_that_was_taken_from_the_data_is_refused_where_it_stands(tmp_path: Path) -> None:
    marked = CONTRACT.replace("high = 99", 'high = 99\ndomain = "from data"')
    twice = marked.replace("edges =", 'domain = "from data"\nedges =')
    for text, more in ((marked, "data. What"), (twice, "data; so were those of 1 more columns. What")):
        contract = Contract.read(written(tmp_path, text))
        with pytest.raises(InvalidSchema, match=f"{re.escape(more)}") as refusal:
            contract.must_be_public()
        assert "people.toml, line 14, [[columns]] 1: the domain of 'age' was taken" in str(refusal.value)
        assert 'change the line to domain = "public". Nothing was spent.' in str(refusal.value)


def test_windows_line_ends_and_comments_are_fine(tmp_path: Path) -> None:
    text = CONTRACT.replace("\n", "  # a word\r\n")
    assert Contract.read(written(tmp_path, text)).subject == Contract.read(written(tmp_path)).subject


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"people.csv"', '"others.csv"', "the table's name"),
        ('source = "people.csv"', 'source = "people.csv"\ntable = "t"', "the table's name"),
        ("high = 99", "high = 100", "the columns"),
        ('["F", "M"]', '["M", "F"]', "the columns"),
        ('missing = "cell"', 'missing = "drop"', "the columns"),
        ('"add-remove"', '"replace-one"\npeople = 65', "the neighbours"),
        ('"people.csv"', f'"{"long/" * 100}1.csv"', "the table's name"),
        ('"people.csv"', '"people.csv"\nperson = "id"\nmost_rows = 3', "the person and most_rows"),
    ],
)
def test_another_table_universe_or_relation_is_another_subject(tmp_path: Path, old: str, new: str, what: str) -> None:
    before = Contract.read(written(tmp_path)).subject
    changed = Contract.read(written(tmp_path, CONTRACT.replace(old, new)))
    assert changed.subject != before
    assert changed.unlike(before) == what
    assert len(changed.subject) <= 200


@pytest.mark.parametrize(("old", "new"), [('epsilon = "4"', "epsilon = 5"), ('"people.ledger"', '"other.ledger"')])
def test_the_budget_and_the_ledger_do_not_make_another_subject(tmp_path: Path, old: str, new: str) -> None:
    changed = Contract.read(written(tmp_path, CONTRACT.replace(old, new)))
    assert changed.subject == Contract.read(written(tmp_path)).subject


def test_a_table_that_moves_keeps_its_ledger_by_keeping_its_name(tmp_path: Path) -> None:
    moved = CONTRACT.replace('source = "people.csv"', 'source = "archive/people.csv"\nname = "people.csv"')
    assert Contract.read(written(tmp_path, moved)).subject == Contract.read(written(tmp_path)).subject


@pytest.mark.parametrize("spoilt", CONTRACTS, ids=lambda spoilt: spoilt.id)
def test_a_spoilt_contract_is_refused_where_it_is_wrong(tmp_path: Path, spoilt: Spoilt) -> None:
    path = written(tmp_path, spoilt.text)
    with pytest.raises(spoilt.error) as refusal:
        Contract.read(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert message.endswith("Nothing was spent.")
    assert all(word in message for word in spoilt.says), message
    assert len(message) < len(str(path)) + 500
    assert refusal.value.__cause__ is None


def test_what_is_no_small_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(MOST_BYTES + 1)
    (tmp_path / "latin").write_bytes(CONTRACT.replace("sex", "s\xe9x").encode("latin-1"))
    for name, word in {
        "pipe": "not a regular file",
        "huge": "at most",
        "latin": "byte 203",
        ".": "is a folder",
        "none": "no such file",
        "/dev/zero": "not a regular file",
    }.items():
        with pytest.raises(InvalidSchema, match=word):
            Contract.read(tmp_path / name)


@pytest.mark.parametrize("path", [None, 7, "a\0b", ["people.toml"]])
def test_what_is_no_path_names_no_contract(path: object) -> None:
    with pytest.raises(InvalidSchema, match="named by its path"):
        Contract.read(path)  # type: ignore[arg-type]
