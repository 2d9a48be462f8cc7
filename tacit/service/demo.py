"""The demonstration: a town of invented people, released and asked, with the truth beside the answers."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.workload import marginals
from tacit.errors import InvalidParameter
from tacit.service import town
from tacit.service.account import Account
from tacit.service.keep import Shelf, reason
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.releasing import keep_release
from tacit.service.show import Screen, count

EPSILON, DELTA = "1", "1e-9"
FOLDER = "tacit-demo"

Town: TypeAlias = dict[str, NDArray[np.int64] | NDArray[np.float64]]
Truth: TypeAlias = Callable[[Town], NDArray[np.bool_]]

# asked of the release in words, and of the invented people in numpy: two ways that share no code; 80 letters hold a row
ASKED: tuple[tuple[str, Truth], ...] = (
    ("age >= 65", lambda people: people["age"] >= 65),
    ("age >= 40 and sex = 'F'", lambda people: (people["age"] >= 40) & (people["sex"] == 0)),
    ("age between 18 and 29 and household = 1", lambda people: _aged(people, 18, 29) & (people["household"] == 1)),
    ("sex = 'M' and employment = 'unemployed'", lambda people: (people["sex"] == 1) & (people["employment"] == 4)),
    ("income >= 60000 and sex = 'F'", lambda people: (people["income"] >= 60_000) & (people["sex"] == 0)),
    ("occupation = 'farming' and sex = 'M'", lambda people: _farmer(people) & (people["sex"] == 1)),
    ("income is missing", lambda people: np.isnan(people["income"])),
)


def _aged(people: Town, low: int, high: int) -> NDArray[np.bool_]:
    return (people["age"] >= low) & (people["age"] <= high)


def _farmer(people: Town) -> NDArray[np.bool_]:
    return np.equal(people["occupation"], town.OCCUPATIONS.index("farming"))


def demonstrate(folder: Path | None, force: bool, screen: Screen) -> None:
    """Founds the town, makes its ledger, releases its two-way marginals and asks them."""
    began = time.monotonic()
    folder = _cleared(folder, force) if folder is not None else _unused()
    data, contract = town.found(folder)
    with People.open(contract, by="demo") as people:
        people.create_ledger().close()
        planned = people.plan(marginals(people.schema, 2), epsilon=EPSILON, delta=DELTA)
        with Shelf(folder / "released", needs=planned.bytes) as shelf:
            released = keep_release(planned, shelf, "demonstration", screen)
        account = Account.of(people.contract, people.ledger)
    truths = town.residents()
    rows = [(asked, released.ask(asked), int(truth(truths).sum())) for asked, truth in ASKED]
    seconds = time.monotonic() - began

    screen.bare(printable(folder))
    screen.say(f"A town of {town.PEOPLE:,} invented people, and all {len(planned.workload)} of its two-way marginals:")
    screen.facts(
        [
            ("table", printable(data)),
            ("contract", printable(contract)),
            ("ledger", printable(people.contract.ledger)),
            ("release", printable(folder / "released")),
            *planned.facts(),
            *account.facts(),
        ]
    )
    screen.table(
        ("people with", "released", "95 % interval", "true"),
        [(asked, count(a.value), f"{count(a.low)} to {count(a.high)}", count(true)) for asked, a, true in rows],
    )
    screen.say("The truth is shown because nobody lives here. It is shown for no other table.")
    screen.say(f'That took {seconds:.1f} s. Next, for free: tacit ask {printable(folder / "released")} "age < 18"')
    answers = [{"predicate": asked, **answer.describe(), "true": true} for asked, answer, true in rows]
    screen.give(
        {
            "folder": os.fspath(folder),
            "data": os.fspath(data),
            "contract": os.fspath(contract),
            "release": os.fspath(folder / "released"),
            **planned.describe(),
            "ledger": account.describe(),
            "answers": answers,
            "seconds": round(seconds, 3),
        }
    )


def _unused() -> Path:
    """The first of tacit-demo, tacit-demo-2, ... that does not exist; made."""
    for number in range(1, 10_000):
        folder = Path(FOLDER if number == 1 else f"{FOLDER}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise InvalidParameter(f"{folder} cannot be made: {reason(error)}. Name another by --folder.") from None
        return folder
    raise InvalidParameter(f"there are {number} demos here already; name another folder by --folder.")


def _cleared(folder: Path, force: bool) -> Path:
    """The folder, made; emptied if it holds an earlier demo and nothing else."""
    shown = printable(folder)
    if os.path.lexists(folder):
        if not force:
            raise InvalidParameter(f"{shown} exists; name another folder, or add --force. Nothing was spent.")
        if folder.is_symlink() or not _is_demo(folder):
            raise InvalidParameter(
                f"{shown} holds more than a demo, so --force does not replace it. Nothing was spent."
            )
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidParameter(f"{shown} cannot be made: {reason(error)}. Nothing was spent.") from None
    return folder


def _is_demo(folder: Path) -> bool:
    """Whether there is nothing in it but what this module writes."""
    try:
        names = os.listdir(folder)
        ours = all(name.startswith("town.") or name == "released" for name in names)
        return ours and (folder / "town.toml").read_text(encoding="utf-8") == town.charter()
    except (OSError, UnicodeDecodeError):
        return False
