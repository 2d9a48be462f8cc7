"""`tacit ledger`: the ledger of a contract, made once and then shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.curator.ledger import Entry
from tacit.rational import shown
from tacit.service.account import Account
from tacit.service.contract import Contract
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.plan import delta_warnings
from tacit.service.show import Screen


def create_ledger(path: Path, by: str, screen: Screen) -> None:
    """`tacit ledger create`."""
    people = People.open(path, by=by)
    contract = people.contract
    for warning in delta_warnings(contract.delta, contract.people):
        screen.warn(warning)
    with people.create_ledger() as ledger:
        account = Account.of(contract, ledger)
    screen.bare(printable(contract.ledger))
    screen.say(f"Made {printable(contract.ledger)} for {contract.name}.")
    screen.facts([("budget", str(contract.budget)), ("neighbours", contract.neighbors.value), *_person(contract)])
    screen.say("Keep it with the table, and back it up: a table without its ledger can release nothing more.")
    screen.give({"ledger": os.fspath(contract.ledger), "contract": os.fspath(path), **account.describe()})


def _person(contract: Contract) -> list[tuple[str, str]]:
    person = contract.person
    return [] if person is None else [("person", f"at most {person.most_rows} rows of each {person.column}")]


def show_ledger(path: Path, screen: Screen) -> None:
    """`tacit ledger show`."""
    people = People.open(path)
    with people.history() as ledger:
        account = Account.of(people.contract, ledger)
        entries = list(ledger.entries())
    blocks = [entry for entry in entries if entry.block is None]
    screen.bare(shown(account.left))
    screen.say(f"{printable(people.contract.ledger)}: what was spent on {people.contract.name}")
    screen.facts(account.facts())
    if blocks:
        screen.table(("when (UTC)", "who", "for what", "what", "cost"), rows(blocks), words=(0, 1, 2, 3))
        screen.say(f"Costs are in {account.budget.currency.value}, of {shown(account.budget.amount, 4)}.")
    else:
        screen.say("Nothing was ever spent.")
    screen.give(
        {
            "ledger": os.fspath(people.contract.ledger),
            **account.describe(),
            "entries": [described(entry) for entry in entries],
        }
    )


def rows(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Entries that lie in no block, for people."""
    return [
        (entry.when[:16].replace("T", " "), entry.by or "-", entry.purpose or "-", entry.what, shown(entry.amount, 4))
        for entry in entries
    ]


def described(entry: Entry) -> dict[str, Any]:
    """An entry for machines."""
    return {
        "sequence": entry.sequence,
        "block": entry.block,
        "when": entry.when,
        "by": entry.by,
        "purpose": entry.purpose,
        "what": entry.what,
        "amount": str(entry.amount),
        "currency": entry.currency.value,
    }
