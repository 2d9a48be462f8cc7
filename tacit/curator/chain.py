"""How a ledger is written down, so that nothing can be taken out of it unseen: its contract, and a chain of rows."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import gcd
from typing import NamedTuple

from tacit.curator.ledger import ROOT, Entry
from tacit.errors import LedgerDamaged, LedgerUnavailable, quoted
from tacit.privacy.budget import Budget, Currency

APPLICATION, FORMAT = 0x74616369, 1
SCHEMA = (
    "CREATE TABLE contract (subject TEXT NOT NULL, budget TEXT NOT NULL, stated TEXT NOT NULL, "
    "opened TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE charge (sequence INTEGER PRIMARY KEY, block INTEGER NOT NULL, what TEXT NOT NULL, "
    "amount TEXT NOT NULL, spent TEXT NOT NULL, currency TEXT NOT NULL, moment TEXT NOT NULL, by TEXT NOT NULL, "
    "purpose TEXT NOT NULL, reserved TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END"
        for table in ("contract", "charge")
        for verb in ("UPDATE", "DELETE")
    ),
)
_RATIO = re.compile(r"[1-9][0-9]{0,3999}/[1-9][0-9]{0,3999}")
_UNANSWERED = {  # the machine's fault, not the file's
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOLFS,
}


class Mark(NamedTuple):
    """A place in the chain: the last row's number, and the hash that fixes every row up to it."""

    sequence: int
    hash: str


@dataclass(frozen=True)
class Contract:
    """What the ledger was made for; its hash is where the chain begins."""

    subject: str
    budget: Budget
    opened: str

    def fields(self) -> tuple[str, str, str, str]:
        stated = "" if self.budget.stated is None else " ".join(map(ratio, self.budget.stated))
        return self.subject, reservation(self.budget), stated, self.opened

    @property
    def hash(self) -> str:
        return digest((APPLICATION, FORMAT, *self.fields()))


class Row(NamedTuple):
    """One charge as it lies in the file; `spent` is its block's running total, this row included."""

    sequence: int
    block: int
    what: str
    amount: str
    spent: str
    currency: str
    moment: str
    by: str
    purpose: str
    reserved: str
    previous: str
    hash: str = ""

    def sealed(self) -> Row:
        return self._replace(hash=digest(self[:-1]))

    def whole(self) -> bool:
        """Whether it is what was written, types and all."""
        return all(map(isinstance, self, (int, int, *(str,) * 10))) and self.hash == digest(self[:-1])

    def entry(self) -> Entry:
        block, currency = self.block or None, Currency(self.currency)
        reserved = reserved_budget(self.reserved) if self.reserved else None
        signed = self.by, self.purpose
        return Entry(self.sequence, block, self.what, fraction(self.amount), currency, self.moment, *signed, reserved)


def digest(fields: Sequence[str | int]) -> str:
    """SHA-256 of the fields as one JSON array, which no other fields print as."""
    return sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()


def ratio(x: Fraction) -> str:
    return f"{x.numerator}/{x.denominator}"


@lru_cache(maxsize=1024)
def fraction(text: str) -> Fraction:
    """A positive fraction in lowest terms, as `ratio` writes it; whatever else it might be is a ValueError."""
    if not _RATIO.fullmatch(text):
        raise ValueError("not a positive fraction")
    numerator, denominator = map(int, text.split("/"))
    if gcd(numerator, denominator) != 1:
        raise ValueError("not in lowest terms")
    return Fraction(numerator, denominator)


def reservation(budget: Budget) -> str:
    return f"{ratio(budget.amount)} {budget.currency.value}"


def reserved_budget(text: str, stated: tuple[Fraction, Fraction] | None = None) -> Budget:
    amount, currency = text.split(" ")
    return Budget(fraction(amount), Currency(currency), stated)


def damaged(path: str, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger {quoted(path, 200)} is not what was written: {what}. It is not used and never reset; "
        "restore it from a backup that holds every charge. Nothing was drawn."
    )


def failed(path: str, error: sqlite3.Error | OSError) -> LedgerDamaged | LedgerUnavailable:
    """What an error of SQLite or of the system means: a file that is not right, or a machine that did not answer."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, sqlite3.Error) and (code is None or code & 0xFF not in _UNANSWERED):
        return damaged(path, str(error))
    return LedgerUnavailable(f"the ledger {quoted(path, 200)} did not answer: {error}. Nothing was drawn.")


def rows(connection: sqlite3.Connection, after: int = 0, most: int = -1) -> Iterator[Row]:
    chosen = f"SELECT {', '.join(Row._fields)} FROM charge WHERE sequence > ? ORDER BY sequence LIMIT ?"  # noqa: S608
    return map(Row._make, connection.execute(chosen, (after, most)))


class Chain:
    """The rows of a ledger as far as they were read: each checked against all before it, and added up.

    No total is ever taken from the file, so none can go back with a page that does.
    """

    def __init__(self, contract: Contract) -> None:
        self.mark = Mark(0, contract.hash)
        self.totals = {ROOT: Fraction(0)}
        self._budgets = {ROOT: contract.budget}

    def follow(self, row: Row) -> str:
        """Takes the next row in; or says what is wrong with it, after which the chain is of no more use."""
        if not row.whole():
            return "its content does not match its hash"
        if row.sequence != self.mark.sequence + 1:
            return f"the next number is {row.sequence}, so a row is missing"
        if row.previous != self.mark.hash:
            return "it does not follow the row before it"
        budget = self._budgets.get(row.block)
        if budget is None or row.currency != budget.currency.value:
            return "it is charged to no block that was reserved in its currency"
        try:
            amount = fraction(row.amount)
            inner = reserved_budget(row.reserved) if row.reserved else None
        except ValueError:
            return "its amount is not a positive fraction"
        # epsilon inside rho was priced by the tacit that wrote it, perhaps less sharply than today's
        if inner and inner.currency is budget.currency and amount < inner.amount:
            return "it reserves more than it charges"
        if inner and inner.currency is Currency.RHO and budget.currency is Currency.EPSILON:
            return "it reserves what its budget cannot pay for"
        total = self.totals[row.block] + amount
        if ratio(total) != row.spent:
            return "its running total is not the sum of the charges"
        if total > budget.amount:
            return f"more was charged {f'in block {row.block}' if row.block else 'to it'} than its budget"
        if inner:
            self._budgets[row.sequence], self.totals[row.sequence] = inner, Fraction(0)
        self.totals[row.block], self.mark = total, Mark(row.sequence, row.hash)
        return ""


def audit(connection: sqlite3.Connection, path: str, head: tuple[str, Mark] | None) -> tuple[Contract, Chain]:
    """Reads all of it in one snapshot and returns its contract and its chain; LedgerDamaged names what is wrong.

    The head must have been read before, so that a charge made meanwhile cannot put it ahead of the snapshot.
    """
    connection.execute("BEGIN")
    try:
        contract = _contract(connection, path)
        if head and head[0] != contract.hash:
            raise damaged(path, "the head beside it belongs to another ledger")
        return contract, _chain(connection, path, contract, head[1] if head else None)
    finally:
        connection.execute("ROLLBACK")


def _contract(connection: sqlite3.Connection, path: str) -> Contract:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise damaged(path, "it is no ledger of tacit")
    if version != FORMAT:
        raise LedgerUnavailable(
            f"the ledger {quoted(path, 200)} has format {version}, and this tacit reads format {FORMAT}: "
            "use the version that wrote it. Nothing was drawn."
        )
    complaint = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if complaint != "ok":
        raise damaged(path, f"SQLite's integrity check says {quoted(complaint, 200)}")
    if tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")) != SCHEMA:
        raise damaged(path, "its tables are not the ledger's")
    written = connection.execute("SELECT * FROM contract").fetchall()
    try:
        ((subject, budget, stated, opened, seal),) = written
        promise = tuple(Fraction(part) for part in stated.split())
        contract = Contract(subject, reserved_budget(budget, promise or None), opened)  # type: ignore[arg-type]
        sound = contract.fields() == (subject, budget, stated, opened) and contract.hash == seal
    except (ValueError, TypeError, AttributeError, ZeroDivisionError):
        sound = False
    if not sound:
        raise damaged(path, "its contract (what it protects, and the budget) does not match its hash")
    return contract


def _chain(connection: sqlite3.Connection, path: str, contract: Contract, head: Mark | None) -> Chain:
    chain = Chain(contract)
    at_head = head is None or head == chain.mark
    for row in rows(connection):
        if fault := chain.follow(row):
            raise damaged(path, f"row {chain.mark.sequence + 1}: {fault}")
        at_head = at_head or chain.mark == head
    if head and not at_head:
        held = chain.mark.sequence
        ahead = f"the head beside it has seen {head.sequence} charges and the file holds {held}"
        cause = f"{ahead}: an older copy was put back, or its -wal file was removed"
        raise damaged(path, cause if head.sequence > held else f"row {head.sequence} is not the one its head saw")
    return chain
