"""`tacit ledger`: the ledger of a contract, made once and then shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.curator.ledger import Entry
from tacit.errors import InvalidParameter, quoted
from tacit.privacy.budget import Currency
from tacit.privacy.conversion import rho_of
from tacit.rational import shown
from tacit.service import plotting
from tacit.service.account import Account
from tacit.service.contract import Contract
from tacit.service.keep import Shelf
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


@dataclass(frozen=True)
class Looked:
    """What was asked for on the command line."""

    contract: Path
    by: str | None
    since: str | None
    plot: Path | None
    force: bool


def show_ledger(looked: Looked, screen: Screen) -> None:
    """`tacit ledger show`."""
    people, since = People.open(looked.contract), _instant(looked.since)
    with ExitStack() as stack:
        shelf = None if looked.plot is None else stack.enter_context(plotting.shelf_for(looked.plot, looked.force))
        with people.history() as ledger:
            account = Account.of(people.contract, ledger)
            entries = list(ledger.entries())
        if shelf is not None:
            _draw(shelf, people, account, [entry for entry in entries if entry.block is None], looked.by, since)
    chosen = [
        entry
        for entry in entries
        if (looked.by is None or entry.by == looked.by) and (since is None or _when(entry) >= since)
    ]
    blocks = [entry for entry in chosen if entry.block is None]
    spent, currency = sum((entry.amount for entry in blocks), Fraction(0)), account.budget.currency.value
    screen.bare(shown(account.left))
    screen.say(f"{printable(people.contract.ledger)}: what was spent on {people.contract.name}")
    screen.facts(account.facts())
    if blocks:
        screen.table(("when (UTC)", "who", "for what", "what", "cost"), rows(blocks), words=(0, 1, 2, 3))
        screen.say(f"Costs are in {currency}, of {shown(account.budget.amount, 4)}.")
    if looked.by is not None or looked.since is not None:
        whose = "" if looked.by is None else f" by {looked.by}"
        when = "" if since is None else f" since {since:%Y-%m-%d %H:%M} UTC"
        screen.say(f"{shown(spent, 4)} {currency} was spent{whose}{when}, of {shown(account.spent, 4)} in all.")
    elif not blocks:
        screen.say("Nothing was ever spent.")
    if looked.plot is not None:
        screen.say(f"Drawn into {printable(looked.plot)}.")
    screen.give(
        {
            "ledger": os.fspath(people.contract.ledger),
            **account.describe(),
            "shown": {"by": looked.by, "since": None if since is None else since.isoformat(), "spent": str(spent)},
            "plot": None if looked.plot is None else os.fspath(looked.plot),
            "entries": [described(entry) for entry in chosen],
        }
    )


def _draw(
    shelf: Shelf, people: People, account: Account, blocks: Sequence[Entry], by: str | None, since: datetime | None
) -> None:
    """All that was spent, so that it can be held against the budget; with `by`, who else spent is not told apart."""
    if not blocks:
        raise InvalidParameter("nothing was ever spent, so there is nothing to draw. Nothing was spent.")
    charges = [
        (_when(entry), entry.by or "-" if by is None or entry.by == by else "everybody else", float(entry.amount))
        for entry in blocks
    ]
    pure = account.budget.currency is Currency.EPSILON
    marks = () if pure else tuple(account.epsilon * part / 4 for part in range(1, 5))
    plotting.draw_ledger(
        shelf,
        f"{people.contract.name}: epsilon {shown(account.spent_epsilon, 4)} of {shown(account.epsilon)}{account.at}",
        charges,
        since=since,
        budget=(float(account.budget.amount), account.budget.currency.value),
        epsilons=[(float(rho_of(mark, account.delta)), shown(mark, 4)) for mark in marks],
    )


def _when(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry.when)


def _instant(text: str | None) -> datetime | None:
    """A day, or a day and a time, of UTC where no other zone is said."""
    if text is None:
        return None
    try:
        said = datetime.fromisoformat(text)
        return (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidParameter(
            f"--since is a day such as 2026-01-31, or 2026-01-31T12:00, not {quoted(text)}. Nothing was spent."
        ) from None


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
