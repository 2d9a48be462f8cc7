"""How a ledger is written down, so that nothing can be taken out of it unseen: rows, their hash chain, and its head."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import gcd
from typing import BinaryIO, NamedTuple

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
    "CREATE INDEX charge_block ON charge (block)",  # and, within a block, by sequence: its last row is one look-up
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


def last_row(connection: sqlite3.Connection, block: int | None = None) -> Row | None:
    where = "" if block is None else "WHERE block = ?"
    chosen = f"SELECT {', '.join(Row._fields)} FROM charge {where} ORDER BY sequence DESC LIMIT 1"  # noqa: S608
    found = connection.execute(chosen, () if block is None else (block,)).fetchone()
    return found and Row._make(found)


def audit(connection: sqlite3.Connection, path: str, head: tuple[str, Mark] | None) -> tuple[Contract, Mark]:
    """Reads all of it in one snapshot and returns its contract and last mark; LedgerDamaged names what is wrong.

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


def _chain(connection: sqlite3.Connection, path: str, contract: Contract, head: Mark | None) -> Mark:
    budgets, totals, mark = {ROOT: contract.budget}, {ROOT: Fraction(0)}, Mark(0, contract.hash)
    at_head = head is None or head == mark
    for row in rows(connection):
        if fault := _fault(row, mark, budgets, totals):
            raise damaged(path, f"row {mark.sequence + 1}: {fault}")
        mark = Mark(row.sequence, row.hash)
        at_head = at_head or mark == head
    for block, total in totals.items():
        if total > budgets[block].amount:
            raise damaged(path, f"more was charged {f'in block {block}' if block else 'to it'} than its budget")
    if head and not at_head:
        ahead = f"the head beside it has seen {head.sequence} charges and the file holds {mark.sequence}"
        cause = f"{ahead}: an older copy was put back, or its -wal file was removed"
        raise damaged(
            path, cause if head.sequence > mark.sequence else f"row {head.sequence} is not the one its head saw"
        )
    return mark


def _fault(row: Row, mark: Mark, budgets: dict[int, Budget], totals: dict[int, Fraction]) -> str:
    """What is wrong with the row after `mark`; where nothing is, it is added to the totals."""
    if not row.whole():
        return "its content does not match its hash"
    if row.sequence != mark.sequence + 1:
        return f"the next number is {row.sequence}, so a row is missing"
    if row.previous != mark.hash:
        return "it does not follow the row before it"
    budget = budgets.get(row.block)
    if budget is None or row.currency != budget.currency.value:
        return "it is charged to no block that was reserved in its currency"
    try:
        amount = fraction(row.amount)
        if row.reserved:
            inner = budgets[row.sequence] = reserved_budget(row.reserved)
            totals[row.sequence] = Fraction(0)
            # epsilon inside rho was priced by the tacit that wrote it, perhaps less sharply than today's
            if inner.currency is budget.currency and amount < inner.amount:
                return "it reserves more than it charges"
            if inner.currency is Currency.RHO and budget.currency is Currency.EPSILON:
                return "it reserves what its budget cannot pay for"
    except ValueError:
        return "its amount is not a positive fraction"
    totals[row.block] += amount
    return "" if ratio(totals[row.block]) == row.spent else "its running total is not the sum of the charges"


class Head:
    """The last mark, in a file beside the ledger: what shows that an older copy of the ledger was put back.

    It is written after the charge is durable, and not synced, so a crash can leave it behind the ledger but never ahead
    of it: whatever of it reached the disk was written after the row that it names. Two slots of one sector each take
    turns, so that a torn write leaves the other.
    """

    SLOT = 512

    def __init__(self, ledger: str) -> None:
        self.path = ledger + "-head"
        self._file: BinaryIO | None = None

    def read(self) -> tuple[str, Mark] | None:
        """The contract's hash and the furthest mark; None where there is no head, which a crash can explain."""
        try:
            with open(self.path, "rb", opener=_guarded) as file:
                content = file.read(2 * self.SLOT)
        except FileNotFoundError:
            return None
        slots = (content[at : at + self.SLOT].rstrip(b"\0 ").decode("ascii", "replace") for at in (0, self.SLOT))
        legible = [parts for parts in map(str.split, slots) if len(parts) == 4 and _is_slot(*parts)]
        if not legible:
            raise damaged(self.path.removesuffix("-head"), f"its head, {quoted(self.path, 200)}, cannot be read")
        contract, sequence, hash_, _ = max(legible, key=lambda parts: int(parts[1]))
        return contract, Mark(int(sequence), hash_)

    def open(self, contract: Contract, owner: os.stat_result) -> None:
        """Opens it for writing, and first makes it where it is missing; one process at a time."""
        if not os.path.lexists(self.path):
            new = os.open(self.path + "-new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            try:
                if os.geteuid() == 0:
                    os.fchown(new, owner.st_uid, owner.st_gid)  # whoever serves the ledger must be able to write it
                empty = self._slot(contract, Mark(0, contract.hash))
                os.pwrite(new, empty + empty, 0)
                os.fsync(new)
            finally:
                os.close(new)
            os.rename(self.path + "-new", self.path)
        self._file = open(self.path, "r+b", buffering=0, opener=_guarded)  # noqa: SIM115

    def write(self, contract: Contract, mark: Mark) -> None:
        slot = self._slot(contract, mark)
        assert self._file is not None  # noqa: S101
        if os.pwrite(self._file.fileno(), slot, mark.sequence % 2 * self.SLOT) != len(slot):
            raise OSError("the head was written in part")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _slot(self, contract: Contract, mark: Mark) -> bytes:
        parts = [contract.hash, str(mark.sequence), mark.hash]
        return " ".join([*parts, _seal(parts)]).encode().ljust(self.SLOT)


def _guarded(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe of that name must not hold us up


def _is_slot(contract: str, sequence: str, hash_: str, seal: str) -> bool:
    return sequence.isdecimal() and seal == _seal((contract, sequence, hash_))


def _seal(parts: Sequence[str]) -> str:
    return sha256(" ".join(parts).encode()).hexdigest()[:32]
