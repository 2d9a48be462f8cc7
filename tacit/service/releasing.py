"""`tacit release`: everything is checked, then read, then charged, drawn and kept; in this order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tacit.domain.schema import Neighbors
from tacit.errors import InvalidParameter
from tacit.rational import shown, whole
from tacit.service.account import Account
from tacit.service.keep import Shelf
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.plan import Plan
from tacit.service.request import workload
from tacit.service.show import Reading, Screen

MOST_ROWS = 10**8


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    contract: Path
    workload: str
    epsilon: str
    delta: str | None
    out: Path | None
    purpose: str
    by: str
    rows: int | None
    seed: int
    force: bool


def carry_out(wanted: Wanted, only_plan: bool, screen: Screen) -> None:
    """The whole command."""
    people = People.open(wanted.contract, by=wanted.by)
    plan = people.plan(workload(wanted.workload, people.schema), epsilon=wanted.epsilon, delta=wanted.delta)
    for warning in plan.warnings:
        screen.warn(warning)
    if only_plan:
        screen.bare(shown(plan.price))
        screen.say(f"A plan for {people.contract.name}: nothing was read, and nothing was spent.")
        screen.facts(plan.facts())
        screen.give({"plan": plan.describe()})
        return
    if wanted.out is None:
        raise InvalidParameter("--out is missing: the folder to write. Nothing was spent.")
    if wanted.rows is not None:
        whole(wanted.rows, "--rows", 1, MOST_ROWS)
        whole(wanted.seed, "--seed", 0, 2**63)
    with Shelf(wanted.out, replace=wanted.force, needs=plan.bytes) as shelf:
        plan.check()
        _release(plan, wanted, shelf, screen)
    account = Account.of(people.contract, people.ledger)
    out = printable(wanted.out)
    screen.bare(out)
    screen.say(f'Released into {out}, and free to ask from now on: tacit ask {out} "..."')
    screen.facts([*plan.facts(), *account.facts()])
    screen.give({"folder": os.fspath(wanted.out), "plan": plan.describe(), "ledger": account.describe()})


def _release(plan: Plan, wanted: Wanted, shelf: Shelf, screen: Screen) -> None:
    ledger = plan.people.ledger
    before = ledger.spent
    try:
        with Reading(screen, plan.people.contract.neighbors is Neighbors.REPLACE_ONE) as progress:
            plan.read(progress)
        with finishing():
            released = plan.run(purpose=wanted.purpose)

            def write(folder: Path) -> None:
                released.save(folder)
                if wanted.rows is not None:
                    released.sample(wanted.rows, seed=wanted.seed).write_csv(folder / "synthetic.csv")

            shelf.keep(write)
    except KeyboardInterrupt:
        gone = ledger.spent - before
        told = f"{shown(gone)} was charged while this ran, and stays charged" if gone else "Nothing was spent"
        raise KeyboardInterrupt(f"interrupted. {told}.") from None


@contextmanager
def finishing() -> Iterator[None]:
    """From the charge to the file an interrupt only loses what is already paid for: the first is put off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def put_off(number: int, frame: FrameType | None) -> None:
        print("The charge is made; finishing takes a moment. Ctrl-C again gives it up.", file=sys.stderr)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, put_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
