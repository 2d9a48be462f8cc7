"""A scripted client of one ledger, to be killed or failed at any system call: session.py KIND LEDGER ACKS.

It writes to ACKS one line for each answer that it got: `kept WHAT AMOUNT` after a charge that returned, `failed WHAT`
or `refused WHAT` after one that raised, `done WHAT` for the rest. KIND is `create`, `serve`, `again`, `serve-again`,
`race`, or, for the proof that the harness catches settings that lose charges, `toy:JOURNAL:SYNCHRONOUS`.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import types
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any


class Client:
    def __init__(self, acks: str) -> None:
        self.file = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def told(self, what: str, act: Callable[[], Any], amount: str = "") -> Any:
        from tacit.errors import BudgetExceeded, LedgerUnavailable

        try:
            result = act()
        except (LedgerUnavailable, BudgetExceeded) as error:
            word = "failed" if isinstance(error, LedgerUnavailable) else "refused"
            os.write(self.file, f"{word} {what} # {error}\n".encode())
            return None
        os.write(self.file, (f"kept {what} {amount}\n" if amount else f"done {what}\n").encode())
        return result

    def charge(self, ledger: Any, what: str, amount: str) -> None:
        from tacit.privacy.budget import Loss

        self.told(what, lambda: ledger.charge(what, Loss.pure(Fraction(amount))), amount)


def create(client: Client, path: str) -> None:
    from tacit.curator.sqlite_ledger import SQLiteLedger
    from tacit.privacy.budget import Budget

    ledger = client.told("create", lambda: SQLiteLedger.create(path, Budget.of(1), subject="faults"))
    if ledger:
        client.charge(ledger, "first", "1/10")
        ledger.close()
    client.told("end", lambda: None)


def serve(client: Client, path: str, turns: tuple[str, ...] = ("",)) -> None:
    from tacit.curator.sqlite_ledger import SQLiteLedger
    from tacit.privacy.budget import Budget

    for turn in turns:
        ledger = client.told("open", lambda: SQLiteLedger.open(path, subject="faults", timeout=0.5))
        if ledger is None:
            continue
        client.charge(ledger, turn + "one", "1/20")
        block = client.told(turn + "block", partial(ledger.block, turn + "block", Budget.of("0.2")), "1/5")
        client.charge(block or ledger, turn + "two", "1/30")
        client.charge(ledger, turn + "three", "1/10")
        ledger.close()
    client.told("end", lambda: None)


def race(client: Client, path: str) -> None:
    from tacit.curator.sqlite_ledger import SQLiteLedger

    with SQLiteLedger.open(path, subject="faults") as ledger:
        for turn in range(10):
            client.charge(ledger, f"{os.getpid()}-{turn}", "1/200")


def toy(path: str, acks: str, journal: str, synchronous: str) -> None:
    file = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    for what in ("one", "two", "three"):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO toy VALUES (?)", (what,))
        connection.execute("COMMIT")
        os.write(file, f"kept {what} 1/10\n".encode())
    connection.close()


def main(kind: str, path: str, acks: str) -> None:
    package = types.ModuleType("tacit")  # so that a start reads only the modules that a ledger needs
    package.__path__ = [str(Path(__file__).parents[2] / "tacit")]
    sys.modules["tacit"] = package
    from tacit.curator import book

    book.CHECKPOINT = 2  # so that even a short session makes some
    if kind.startswith("toy"):
        toy(path, acks, *kind.split(":")[1:])
    elif kind == "serve-again":
        serve(Client(acks), path, ("", "again-"))
    elif kind == "again":
        serve(Client(acks), path, ("again-",))
    else:
        {"create": create, "serve": serve, "race": race}[kind](Client(acks), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
