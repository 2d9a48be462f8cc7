"""`tacit release`: everything is checked, then read, then charged, drawn and kept; in this order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tacit.domain.synopsis import MOST_ROWS
from tacit.errors import InvalidParameter, Unavailable
from tacit.rational import whole
from tacit.service.account import Account, interruptible
from tacit.service.keep import Shelf, reason
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.plan import Plan
from tacit.service.planning import show_plan
from tacit.service.released import Release
from tacit.service.request import workload
from tacit.service.show import Reading, Screen, Waiting, aside

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    seed: int | None
    force: bool


def carry_out(wanted: Wanted, only_plan: bool, screen: Screen) -> None:
    """The whole command."""
    with People.open(wanted.contract, by=wanted.by) as people:
        plan = people.plan(workload(wanted.workload, people.schema), epsilon=wanted.epsilon, delta=wanted.delta)
        if only_plan:
            show_plan(plan, screen)
            return
        for warning in plan.warnings:
            screen.warn(warning)
        if wanted.out is None:
            raise InvalidParameter("--out is missing: the folder to write. Nothing was spent.")
        if wanted.rows is not None:
            whole(wanted.rows, "--rows", 1, MOST_ROWS)
            whole(wanted.seed or 0, "--seed", 0, 2**63)
        elif wanted.seed is not None:
            raise InvalidParameter("--seed is for --rows; the noise that protects has no seed. Nothing was spent.")
        plan.check()
        with Shelf(wanted.out, replace=wanted.force, needs=plan.bytes) as shelf:
            released = keep_release(plan, shelf, wanted.purpose, screen)
        account = Account.of(people.contract, people.ledger)
    facts = [*plan.facts(), *account.facts()]
    given = {"folder": os.fspath(wanted.out), "plan": plan.describe(), "ledger": account.describe()}
    if wanted.rows is not None:
        file = _sampled(released, wanted.rows, wanted.seed or 0, wanted.out, screen)
        facts.append(("synthetic rows", printable(file)))
        given["synthetic"] = os.fspath(file)
    out = printable(wanted.out)
    screen.bare(out)
    screen.say(f'Released into {out}, and free to ask from now on: tacit ask {out} "..."')
    screen.facts(facts)
    screen.give(given)


def keep_release(plan: Plan, shelf: Shelf, purpose: str, screen: Screen) -> Release:
    """Reads, charges, draws and keeps; an interrupt says what it cost."""
    with interruptible(plan.people.ledger):
        with Reading(screen, plan.people.contract.rows_public) as progress:
            plan.read(progress)
        with finishing(), Waiting(screen, "drawing the noise"):
            released = plan.run(purpose=purpose)
            shelf.keep(released.save)
            return released


def _sampled(released: Release, rows: int, seed: int, folder: Path, screen: Screen) -> Path:
    """Rows of people who do not exist, beside the release that is kept already: they can fail, and cost nothing."""
    file = folder / "synthetic.csv"
    kept = f"The release is in {printable(folder)}, paid for and whole"
    try:
        with Waiting(screen, f"making {rows:,} synthetic rows"):
            released.sample(rows, seed=seed).write_csv(file)
    except Exception as error:  # a refusal of these says that nothing was spent, and here something was
        raise Unavailable(
            f"{printable(file)} could not be written: {reason(error)}. {kept}; only the rows are not."
        ) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted. {kept}; the synthetic rows were not made.") from None
    return file


@contextmanager
def finishing() -> Iterator[None]:
    """From the charge to the file an interrupt only loses what is already paid for: the first is put off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    heard = [number for number, does in before.items() if does is not signal.SIG_IGN]

    def put_off(number: int, frame: FrameType | None) -> None:
        for each in heard:
            signal.signal(each, signal.default_int_handler)
        aside("The charge is made; finishing takes a moment. Ctrl-C again gives it up.")

    for number in heard:
        signal.signal(number, put_off)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])
