"""The file under a ledger: opened only after all of it was verified, and left for good at the first doubt.

Why each setting, and what each fault does, is in docs/ledger.md; tests/test_ledger_faults.py injects the faults.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import quote

from tacit.curator.chain import (
    APPLICATION,
    FORMAT,
    SCHEMA,
    Contract,
    Head,
    Mark,
    Row,
    audit,
    damaged,
    failed,
    last_row,
    rows,
)
from tacit.errors import InvalidInput, InvalidParameter, LedgerUnavailable, Refused, Unavailable, quoted

CHECKPOINT = 256  # charges between two checkpoints of the write-ahead log
PAGE = 500  # rows that are read at a time


class Book:
    """One verified file, its connection and its head; shared by a ledger, the blocks within it, and their threads."""

    def __init__(self, path: str, timeout: float, reading: bool = False) -> None:
        self.path, self.timeout, self.reading = path, timeout, reading
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._head = Head(path)
        self._fault = ""  # why this book serves no more: only a fresh one, which verifies, does
        self._in_place: dict[str, tuple[int, int]] = {}  # the files that are open, which the next process must find
        self._since_checkpoint = 0
        self._file = _identity(path)
        try:
            if os.path.lexists(path + "-journal"):
                raise damaged(path, "a -journal lies beside it, which no tacit wrote")
            head = self._head.read()
            self.contract, self.seen = audit(self._connect_to_read(), path, head)
        except (sqlite3.Error, OSError) as error:
            raise failed(path, error) from error
        finally:
            self._release()
        _BOOKS.add(self)

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; after a failure that leaves a doubt, never again."""
        if self._process != os.getpid() and self._connection is not None:  # its locks are its parent's
            raise LedgerUnavailable(
                f"{self} was in use while this process was forked; open it again. Nothing was drawn."
            )
        if not self._lock.acquire(timeout=self.timeout):
            raise self._held_up("thread")
        try:
            if self._fault:
                raise LedgerUnavailable(f"{self._fault} It serves no more until it is opened again. Nothing was drawn.")
            try:
                connection = self._connection or self._connect()
                self._stand_in_place()
                yield connection
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
        finally:
            self._lock.release()

    @contextmanager
    def appending(self) -> Iterator[tuple[sqlite3.Connection, Mark]]:
        """One transaction, alone among all processes, from the last mark to `commit`."""
        if self.reading:
            raise LedgerUnavailable(f"{self} was opened for reading only. Nothing was drawn.")
        with self.using() as connection:
            if self._since_checkpoint >= CHECKPOINT:  # SQLite's own would not tell us that it failed
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._since_checkpoint = 0
            connection.execute("BEGIN IMMEDIATE")
            self.seen = self._last(connection)
            yield connection, self.seen

    def commit(self, connection: sqlite3.Connection, row: Row) -> None:
        """Makes the row durable, then moves the head; until both are done the charge is in doubt."""
        places = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO charge ({', '.join(row._fields)}) VALUES ({places})", row)  # noqa: S608
        self._fault = f"{self} failed while it charged; {_DOUBT}"
        connection.execute("COMMIT")
        self._stand_in_place()
        self.seen = Mark(row.sequence, row.hash)
        self._head.write(self.contract, self.seen)
        self._since_checkpoint += 1
        self._fault = ""

    def page(self, after: int) -> list[Row]:
        with self.using() as connection:
            return list(rows(connection, after, PAGE))

    def close(self) -> None:
        with self._lock:
            self._fault = self._fault or f"{self} was closed."
            self._release()

    def park(self) -> bool:
        """Closes the file before a fork, since an open one must not pass to a child; the next use opens it again."""
        if not self._lock.acquire(timeout=self.timeout):
            return False
        self._release()
        return True

    def unpark(self) -> None:
        self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._connect_to_read() if self.reading else self._connect_to_write()
        except BaseException:
            self._release()  # never one that is set up by half
            raise

    def _connect_to_write(self) -> sqlite3.Connection:
        connection = self._connection = _connection(self.path, "rw", self.timeout)
        self._process = os.getpid()
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
        connection.execute("BEGIN IMMEDIATE")  # alone, since it may have to make the head
        connection.execute(f"PRAGMA user_version={FORMAT}")  # changes nothing, and fails where nothing can be written
        self.seen = self._last(connection)
        if self.seen.sequence and not os.path.lexists(self._head.path):
            raise damaged(self.path, _HEADLESS)
        self._head.open(self.contract, os.stat(self.path))
        connection.execute("ROLLBACK")
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
            _sync(self.path + "-wal")  # lest a power cut bring back an older log
            self._head.write(self.contract, self.seen)
        _sync(os.path.dirname(self.path))

    def _last(self, connection: sqlite3.Connection) -> Mark:
        """The last mark, once it is known that what was seen before is still in the chain."""
        row = last_row(connection)
        mark = Mark(row.sequence, row.hash) if row else Mark(0, self.contract.hash)
        if mark != self.seen and self.seen.sequence:
            found = next(rows(connection, self.seen.sequence - 1, 1), None)
            if found is None or (found.sequence, found.hash) != self.seen:
                raise damaged(self.path, f"row {self.seen.sequence} is gone, and it had been charged")
        if row and not row.whole():
            raise damaged(self.path, f"row {row.sequence}: its content does not match its hash")
        return mark

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = self._connection = _connection(self.path, "ro", self.timeout)
        self._process = os.getpid()
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            if os.access(os.path.dirname(self.path), os.W_OK):
                raise
            connection.close()
            connection = self._connection = self._connect_to_copy()
        return connection

    def _connect_to_copy(self) -> sqlite3.Connection:
        """Where SQLite may not make a log's index, nobody serves the ledger, so a copy of it shows the same."""
        log = self.path + "-wal"
        if not os.path.exists(log) or not os.path.getsize(log):
            return _connection(self.path, "ro&immutable=1", self.timeout)
        self._copy = tempfile.TemporaryDirectory(prefix="tacit-ledger-")
        copy = os.path.join(self._copy.name, "ledger")
        shutil.copyfile(self.path, copy)
        shutil.copyfile(log, copy + "-wal")
        return _connection(copy, "rw", self.timeout)

    def _stand_in_place(self) -> None:
        for path, identity in self._in_place.items():
            try:
                found = os.stat(path, follow_symlinks=False)
            except OSError as error:
                raise self._moved() from error
            if (found.st_dev, found.st_ino) != identity:
                raise self._moved()

    def _moved(self) -> LedgerUnavailable:
        self._roll_back()
        if self._connection is not None:  # to close it would delete a log of that name, which may be another ledger's
            _LEFT_OPEN.append(self._connection)
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
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        self._head.close()
        self._in_place.clear()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def __str__(self) -> str:
        return f"the ledger {quoted(self.path, 200)}"


def create(path: str, contract: Contract, timeout: float) -> None:
    """Makes a ledger under another name and gives it its own at the end: a crash leaves it whole or absent."""
    folder, new = os.path.dirname(path), path + "-new"
    try:
        with _alone_in(folder, timeout):
            for end in ("", "-wal", "-journal", "-head"):
                if os.path.lexists(path + end):
                    raise LedgerUnavailable(
                        f"{quoted(path + end, 200)} is there already, and a ledger is never made anew over an old one. "
                        "Nothing was spent."
                    )
            for end in ("", "-wal", "-shm", "-journal"):  # of an earlier attempt that did not finish
                with suppress(FileNotFoundError):
                    os.unlink(new + end)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            with closing(_connection(new, "rw", timeout)) as connection:
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
            os.rename(new, path)  # whole and synced, or its log would be there; `open` syncs the folder
    except (sqlite3.Error, OSError) as error:
        raise failed(path, error) from error


def located(path: str | os.PathLike[str]) -> str:
    """The one absolute path of a ledger, its folder's links resolved once, so that no later link or chdir moves it."""
    given = os.fsdecode(path)
    folder, name = os.path.split(os.path.abspath(given))
    if "\0" in given or not name or given.endswith(os.sep):
        raise InvalidParameter(f"a ledger's path must name a file, not {quoted(given)}. Nothing was spent.")
    return os.path.join(os.path.realpath(folder), name)


@contextmanager
def _alone_in(folder: str, timeout: float) -> Iterator[None]:
    """Locks a folder against another `create`; the kernel lets go of it when the process dies."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        yield
    finally:
        os.close(file)


def _connection(path: str, mode: str, timeout: float) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path))}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def _identity(path: str) -> tuple[int, int]:
    """Which file it is; refused unless it is one plain file with one name."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise LedgerUnavailable(f"there is no ledger {quoted(path, 200)}, and only `create` makes one.") from None
    except OSError as error:
        raise failed(path, error) from error
    if stat.S_ISLNK(found.st_mode):
        raise LedgerUnavailable(
            f"{quoted(path, 200)} is a symbolic link; give the ledger's own path. Nothing was drawn."
        )
    if not stat.S_ISREG(found.st_mode):
        raise LedgerUnavailable(f"{quoted(path, 200)} is not a plain file. Nothing was drawn.")
    if found.st_nlink > 1:  # under two names it would have two logs
        raise LedgerUnavailable(f"{quoted(path, 200)} has {found.st_nlink} names (hard links). Nothing was drawn.")
    return found.st_dev, found.st_ino


def _sync(path: str) -> None:
    """Syncs a file that SQLite does not lock (to close any other here would drop its locks), or a folder."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# the folder is synced before the first charge, so a crash can only have lost the head of a ledger without charges
_HEADLESS = "its -head file is missing, which no crash explains once something was charged; put it back"
_DOUBT = "whether the charge stands, its entries show."
_BOOKS: weakref.WeakSet[Book] = weakref.WeakSet()
_FORKING = threading.Lock()
_PARKED: list[Book] = []
_LEFT_OPEN: list[sqlite3.Connection] = []


def _before_fork() -> None:
    _FORKING.acquire()
    _PARKED.extend(book for book in list(_BOOKS) if book.park())


def _after_fork() -> None:
    while _PARKED:
        _PARKED.pop().unpark()
    _FORKING.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
