"""`tacit check`: what will happen under a contract, in public terms only; no row is read.

Contract, ledger and the source's header decide all of it, so that the answer is the same whatever the rows hold.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.domain.schema import CELL, CLAMP, Categories, Column, Dates, Integers
from tacit.domain.synopsis import MOST_CELLS
from tacit.domain.workload import marginals
from tacit.engines.table import MOST_CELLS_AT_ONCE
from tacit.rational import shown
from tacit.service.account import Account
from tacit.service.contract import PUBLIC, Contract
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.plan import delta_warnings
from tacit.service.show import Screen

PLANNED = 200  # columns of which the noise is worked out
NOISY = 0.05  # a share of the people; noise beyond it leaves little to see
MISSES = {"drop": "row left out", CELL: "own cell", CLAMP: "nearest end"}


@dataclass(frozen=True)
class Checked:
    """All that is known before a row is read."""

    contract: Contract
    account: Account | None  # None where there is no ledger yet
    kind: str  # of the source

    @classmethod
    def of(cls, path: Path) -> Checked:
        """Reads the contract and the ledger, opens the source; refuses what does not fit together."""
        people = People.open(path)
        account = None
        if os.path.lexists(people.contract.ledger):
            with people.history() as ledger:
                account = Account.of(people.contract, ledger)
        try:
            kind = people.table.kind
        finally:
            people.close()
        return cls(people.contract, account, kind)

    @property
    def ready(self) -> bool:
        """Whether something could be released now."""
        return not self.contract.unsigned and self.account is not None and self.account.left > 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and may be regretted."""
        contract = self.contract
        marks = (
            f"{where}: the domain of {name} was read off the data; nothing is spent before it says public"
            for name, where in contract.unsigned
        )
        return (*marks, *delta_warnings(contract.delta, contract.people), *self._noise(), *self._universe())

    def _noise(self) -> tuple[str, ...]:
        """That there are too few people for this budget, where their number is public."""
        people, schema = self.contract.people, self.contract.schema
        if people is None or len(schema) > PLANNED or self.contract.unsigned:
            return ()
        plan = People(self.contract).plan(marginals(schema, 1), epsilon=self.contract.epsilon)
        deviation = max(plan.error.deviation.values())
        if deviation <= NOISY * people:
            return ()
        return (
            f"even if all of the budget went into one release of every column alone, a count would be off by about "
            f"{deviation:,.1f}, and there are {people:,} people: ask for less, or spend more",
        )

    def _universe(self) -> tuple[str, ...]:
        """What the size of the universe rules out."""
        if self.contract.unsigned:
            return ()
        schema, found = self.contract.schema, []
        if schema.universe > MOST_CELLS:
            found.append(
                f"the universe has more than {MOST_CELLS:,} cells: marginals can be released, but no hypothesis over "
                "all cells at once (multiplicative weights, boosting, small databases) fits a memory"
            )
        sizes = sorted(((column.size, column.name) for column in schema), reverse=True)[:2]
        if len(sizes) == 2 and sizes[0][0] * sizes[1][0] > MOST_CELLS_AT_ONCE:
            found.append(
                f"{sizes[0][1]} and {sizes[1][1]} have {sizes[0][0] * sizes[1][0]:,} cells together, more than are "
                "counted at once: release them apart, or cut them more coarsely"
            )
        return tuple(found)

    @property
    def next(self) -> str:
        """What to type, or to do."""
        path = printable(self.contract.path)
        if self.contract.unsigned:
            return f'sign the domains that were read off the data (domain = "public"), then: tacit check {path}'
        if self.account is None:
            return f"tacit ledger create {path}"
        if self.account.left <= 0:
            return f"nothing is left to spend: tacit ledger show {path}"
        return f"tacit plan {path} -w marginals:{min(2, len(self.contract.schema))} -e {self._some}"

    @property
    def _some(self) -> str:
        """An epsilon that is left, for an example."""
        assert self.account is not None  # noqa: S101 - the ledger is there
        return shown(min(self.account.affordable(), max(self.contract.epsilon / 4, self.account.affordable() / 4)), 2)

    def facts(self) -> list[tuple[str, str]]:
        """For people."""
        contract = self.contract
        person = contract.person
        each = "a row is a person" if person is None else f"{person.column}, of whom {person.most_rows} rows count"
        people = "private" if contract.people is None else f"{contract.people:,}, public"
        at = f" at delta {shown(contract.delta)}" if contract.delta else ", pure"
        facts = [
            ("source", f"{printable(contract.source)} ({self.kind}); all columns are there; no row was read"),
            ("universe", f"{len(contract.schema)} columns, {self._cells}"),
            ("person", each),
            ("number of people", people),
            ("neighbours", contract.neighbors.value),
            ("budget", f"epsilon {shown(contract.epsilon)}{at}"),
        ]
        if self.account is None:
            return [*facts, ("ledger", f"not made yet: {printable(contract.ledger)}")]
        return [*facts, *self.account.facts()]

    @property
    def _cells(self) -> str:
        """Of a domain that nobody has signed the size tells about the rows as well."""
        return (
            "of which some are not signed"
            if self.contract.unsigned
            else f"{power(self.contract.schema.universe)} cells"
        )

    @property
    def columns(self) -> list[tuple[Column, bool]]:
        """The columns, and whether what is declared of each is public."""
        unsigned = {name for name, _ in self.contract.unsigned}
        return [(column, column.name not in unsigned) for column in self.contract.schema]

    def describe(self) -> dict[str, Any]:
        """For machines."""
        contract, person = self.contract, self.contract.person
        return {
            "contract": os.fspath(contract.path),
            "source": contract.source,
            "kind": self.kind,
            "columns": [
                {
                    "name": column.name,
                    **({**column.describe(), "cells": column.size} if public else {}),
                    "domain": contract.marks.get(column.name, PUBLIC),
                }
                for column, public in self.columns
            ],
            "universe": None if contract.unsigned else contract.schema.universe,
            "person": None if person is None else {"column": person.column, "most_rows": person.most_rows},
            "people": contract.people,
            "neighbors": contract.neighbors.value,
            "ledger": None if self.account is None else self.account.describe(),
            "unsigned": [name for name, _ in contract.unsigned],
            "warnings": list(self.warnings),
            "ready": self.ready,
            "next": self.next,
        }


def check(path: Path, screen: Screen) -> None:
    """The whole command."""
    checked = Checked.of(path)
    contract = checked.contract
    for warning in checked.warnings:
        screen.warn(warning)
    screen.bare("ready" if checked.ready else "not ready")
    screen.say(f"{printable(path)}: what will happen under it")
    screen.facts(checked.facts())
    rows = [
        (
            column.name,
            domain(column) if public else "not signed",
            f"{column.size:,}" if public else "-",
            MISSES[column.missing],
            MISSES[column.outside],
        )
        for column, public in checked.columns
    ]
    screen.table(("column", "domain", "cells", "no value", "other value"), rows, words=(0, 1, 3, 4))
    if contract.schema.dropping:
        screen.say("A row that is left out is in no count: all tables speak of the same rows.")
    screen.say(f"Next: {checked.next}")
    screen.give(checked.describe())


def domain(column: Column) -> str:
    """A column's domain in a few words."""
    if isinstance(column, Integers):
        return f"{column.low} to {column.high}"
    if isinstance(column, Dates):
        return f"{column.first} to {column.last}, by {column.by}"
    labels = column.domain if column.domain_size <= 1000 else column.domain[:4]
    kind = "" if isinstance(column, Categories) else "cells "
    few = ", ".join(label if len(label) <= 20 else f"{label[:19]}…" for label in labels[:4])
    return f"{kind}{few}{', ...' if column.domain_size > 4 else ''}"


def power(cells: int) -> str:
    """A number of cells, short."""
    if cells < 10**12:
        return f"{cells:,}"
    digits = len(str(cells)) - 1 if cells.bit_length() < 10**4 else int((cells.bit_length() - 1) * 0.30103)
    return f"about 10^{digits}"
