"""The file under a ledger: opened only after all of it was verified, and left for good at the first doubt.

Why each setting, and what each fault does, is in docs/ledger.md; tests/test_ledger_faults.py injects the faults.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial
from typing import TypeVar

from tacit.curator import process
from tacit.curator.chain import APPLICATION, FORMAT, SCHEMA, Chain, Contract, Row, audit, damaged, failed, rows
from tacit.curator.head import Head
from tacit.curator.place import MAKING, alone_in, identity, on_a_local_disk, sync
from tacit.curator.process import Connection
from tacit.errors import InvalidInput, LedgerUnavailable, Refused, Unavailable, quoted

CHECKPOINT = 256  # charges between two checkpoints of the write-ahead log
PAGE = 500  # rows that are read at a time

T = TypeVar("T")


class Book:
    """One verified file, its connection and its head; shared by a ledger, the blocks within it, and their threads."""

    def __init__(self, path: str, timeout: float, reading: bool = False) -> None:
        self.path, self.timeout, self.reading = path, timeout, reading
        self._lock = threading.RLock()  # it knows its thread, so that an interrupt anywhere lets go of it
        self._here = process.here()
        self._busy = self._closed = False
        self._connection: Connection | None = None
        self._end: weakref.finalize[[], Book] | None = None  # closes the connection, also where nobody does
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._head = Head(path, timeout)
        self._fault = ""  # why this book serves no more: only a fresh one, which verifies, does
        self._in_place: dict[str, tuple[int, int]] = {}  # the files that are open, which the next process must find
        self._since_checkpoint = 0
        self._file = identity(path)
        try:
            if os.path.lexists(path + "-journal"):
                raise damaged(path, "a -journal lies beside it, which no tacit wrote")
            head = self._head.read()
            self.contract, self.chain = audit(self._connect_to_read(), path, head)
        except (sqlite3.Error, OSError) as error:
            raise failed(path, error) from error
        finally:
            self._release()

    def use(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """What `act` makes of the connection; after a failure that leaves a doubt, never again."""
        return self._alone(partial(self._use, act))

    def append(self, make: Callable[[Chain], Row]) -> Row:
        """Adds what `make` adds to all that was charged, alone among all processes; durable on return."""
        if self.reading:
            raise LedgerUnavailable(f"{self} was opened for reading only. Nothing was drawn.")
        return self.use(partial(self._append, make))

    def commit(self, connection: sqlite3.Connection, row: Row) -> None:
        """Makes the row durable, then moves the head; until both are done the charge is in doubt."""
        places = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO charge ({', '.join(row._fields)}) VALUES ({places})", row)  # noqa: S608
        self._fault = f"{self} failed while it charged; {_DOUBT}"
        connection.execute("COMMIT")
        self._stand_in_place()
        self._follow(row)
        self._head.write(self.contract, self.chain.mark)
        self._since_checkpoint += 1
        self._fault = ""

    def spent(self, block: int) -> Fraction:
        return self.use(lambda connection: self._caught_up(connection).totals[block])

    def page(self, after: int) -> list[Row]:
        return self.use(lambda connection: list(rows(connection, after, PAGE)))

    def close(self) -> None:
        """Serves no more; where it is in use, also by what a signal interrupted, its files are closed after that."""
        self._closed = True
        with suppress(LedgerUnavailable):
            self._alone(lambda: None)

    def _alone(self, act: Callable[[], T]) -> T:
        """Runs it for one thread at a time.

        A function and no context manager, and a lock that knows its thread: an interrupt may strike between any two
        calls, and wherever it does, the lock is let go of.
        """
        if self._here != process.here():
            raise LedgerUnavailable(f"{self} was opened before this process was forked. Nothing was drawn.")
        try:
            if not self._lock.acquire(timeout=self.timeout):
                raise self._held_up("thread")
            if self._busy:
                raise LedgerUnavailable(f"{self} is in use by what this interrupted. Nothing was drawn.")
            try:
                self._busy = True
                return act()
            finally:
                self._busy = False
                if self._closed:
                    self._release()
        finally:
            try:  # noqa: SIM105
                self._lock.release()
            except RuntimeError:  # it was never had
                pass

    def _use(self, act: Callable[[sqlite3.Connection], T]) -> T:
        if self._fault or self._closed:
            why = self._fault or f"{self} was closed."
            raise LedgerUnavailable(f"{why} It serves no more until it is opened again. Nothing was drawn.")
        try:
            connection = self._connection or self._connect()
            self._stand_in_place()
            return act(connection)
        except (Refused, InvalidInput):
            self._roll_back()
            raise
        except sqlite3.Error as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if busy and not self._fault and self._roll_back():
                raise self._held_up("process") from error
            raise self._stopped(failed(self.path, error)) from error
        except OSError as error:
            raise self._stopped(failed(self.path, error)) from error
        except Unavailable as error:
            raise self._stopped(error) from error.__cause__
        except BaseException as error:  # an interrupt, or no memory: it may have struck anywhere
            error.add_note(str(self._stopped(LedgerUnavailable(f"{self} was interrupted; {_DOUBT}"))))
            raise

    def _append(self, make: Callable[[Chain], Row], connection: sqlite3.Connection) -> Row:
        if self._since_checkpoint >= CHECKPOINT:  # SQLite's own would not tell us that it failed
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._since_checkpoint = 0
        connection.execute("BEGIN IMMEDIATE")
        row = make(self._caught_up(connection))
        self.commit(connection, row)
        return row

    def _caught_up(self, connection: sqlite3.Connection) -> Chain:
        """The chain with what others charged, once it is known that what was seen before is still in it."""
        seen = self.chain.mark
        found = rows(connection, max(seen.sequence - 1, 0))
        if seen.sequence and ((row := next(found, None)) is None or (row.sequence, row.hash) != seen):
            raise damaged(self.path, f"row {seen.sequence} is gone, and it had been charged")
        for row in found:
            self._follow(row)
        return self.chain

    def _follow(self, row: Row) -> None:
        if fault := self.chain.follow(row):
            raise damaged(self.path, f"row {self.chain.mark.sequence + 1}: {fault}")

    def _connect(self) -> Connection:
        try:
            return self._connect_to_read() if self.reading else self._connect_to_write()
        except BaseException:
            self._release()  # never one that is set up by half
            raise

    def _connect_to_write(self) -> Connection:
        on_a_local_disk(self.path)
        connection = self._open(self.path, "rw")
        for setting, value, taken in (
            ("synchronous", "FULL", 2),
            ("wal_autocheckpoint", "0", 0),
            ("cell_size_check", "ON", 1),
        ):
            connection.execute(f"PRAGMA {setting}={value}").fetchall()
            if connection.execute(f"PRAGMA {setting}").fetchone() != (taken,):
                raise LedgerUnavailable(f"this SQLite cannot set {setting}={value}. Nothing was drawn.")
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raise damaged(self.path, "its journal mode is not the one it was made with")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version={FORMAT}")  # changes nothing, and fails where nothing can be written
        self._caught_up(connection)
        connection.execute("ROLLBACK")
        if not os.path.lexists(self._head.path):
            raise damaged(self.path, "its -head file is missing, and it was made with one; put it back")
        self._head.open()
        self._settle(connection)
        for end in ("", "-wal", "-shm", "-head"):
            found = os.stat(self.path + end, follow_symlinks=False)
            self._in_place[self.path + end] = found.st_dev, found.st_ino
        if self._in_place[self.path] != self._file:
            raise self._moved()
        return connection

    def _settle(self, connection: sqlite3.Connection) -> None:
        """Brings what a crash left in the log into the ledger: it can be read, but nothing says it was ever synced."""
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:  # else others are serving, and show only what they synced
            sync(self.path + "-wal")  # lest a power cut bring back an older log
            self._head.write(self.contract, self.chain.mark)
        sync(os.path.dirname(self.path))

    def _connect_to_read(self) -> Connection:
        connection = self._open(self.path, "ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            if os.access(os.path.dirname(self.path), os.W_OK):
                raise
            connection.close()
            connection = self._connect_to_copy()
        return connection

    def _connect_to_copy(self) -> Connection:
        """Where SQLite may not make a log's index, nobody serves the ledger, so a copy of it shows the same."""
        log = self.path + "-wal"
        if not os.path.exists(log) or not os.path.getsize(log):
            return self._open(self.path, "ro&immutable=1")
        self._copy = tempfile.TemporaryDirectory(prefix="tacit-ledger-")
        copy = os.path.join(self._copy.name, "ledger")
        shutil.copyfile(self.path, copy)
        shutil.copyfile(log, copy + "-wal")
        return self._open(copy, "rw")

    def _open(self, path: str, mode: str) -> Connection:
        self._connection = Connection(path, mode, self.timeout)
        self._end = weakref.finalize(self, self._connection.close)
        self._end.atexit = False
        return self._connection

    def _stand_in_place(self) -> None:
        for path, opened in self._in_place.items():
            try:
                found = os.stat(path, follow_symlinks=False)
            except OSError as error:
                raise self._moved() from error
            if (found.st_dev, found.st_ino) != opened:
                raise self._moved()

    def _moved(self) -> LedgerUnavailable:
        self._roll_back()
        if self._connection is not None and self._end is not None:
            self._end.detach()
            self._connection.leave_open()
            self._connection = None
        return LedgerUnavailable(f"{self} was moved, replaced or deleted while it was served. Nothing was drawn.")

    def _held_up(self, by: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self} was held by another {by} for longer than {self.timeout:g} s. Nothing was drawn."
        )

    def _roll_back(self) -> bool:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return False
        return True

    def _stopped(self, error: Unavailable) -> Unavailable:
        if self._fault:  # it struck during or after the commit
            error = type(error)(f"{error} {_DOUBT.capitalize()}")
        self._fault = self._fault or f"{self} failed before."
        self._roll_back()
        self._release()
        return error

    def _release(self) -> None:
        self._connection = None
        if self._end is not None:
            with suppress(sqlite3.Error):
                self._end()
        self._head.close()
        self._in_place.clear()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def __str__(self) -> str:
        return f"the ledger {quoted(self.path, 200)}"


def create(path: str, contract: Contract, timeout: float) -> None:
    """Makes a ledger under another name and gives it its own at the end: a crash leaves it whole or absent."""
    folder, new = os.path.dirname(path), path + MAKING
    try:
        on_a_local_disk(path)
        with alone_in(folder, timeout):
            lying = [end for end in ("", "-wal", "-journal") if os.path.lexists(path + end)]
            if not lying and (head := Head(path, timeout).read()) and head[1].sequence:
                lying = ["-head"]  # of no charge it is what a crash between the two names below has left
            if lying:
                raise LedgerUnavailable(
                    f"{quoted(path + lying[0], 200)} is there already, and a ledger is never made anew over an "
                    "old one. Nothing was spent."
                )
            for end in ("", "-wal", "-shm", "-journal", "-head"):  # of an earlier attempt that did not finish
                with suppress(FileNotFoundError):
                    os.unlink(new + end)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            with closing(Connection(new, "rw", timeout)) as connection:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
                for statement in SCHEMA:
                    connection.execute(statement)
                written = (*contract.fields(), contract.hash)
                connection.execute("INSERT INTO contract VALUES (?, ?, ?, ?, ?)", written)
                connection.execute("COMMIT")
            if os.path.exists(new + "-wal"):
                raise LedgerUnavailable(f"the ledger {quoted(path, 200)} could not be written. Nothing was spent.")
            Head(new, timeout).make(contract)
            os.rename(new + "-head", path + "-head")
            sync(folder)  # so that no crash leaves a ledger without its head
            os.rename(new, path)  # whole and synced, or its log would be there; `open` syncs the folder
    except (sqlite3.Error, OSError) as error:
        raise failed(path, error) from error


_DOUBT = "whether the charge stands, its entries show."
