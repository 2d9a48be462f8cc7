"""What belongs to one process: SQLite's locks and secret state do not cross a fork, so neither do their owners."""

from __future__ import annotations

import ctypes
import os
import sqlite3
from typing import Any
from urllib.parse import quote

from tacit.errors import LedgerUnavailable

_generation = 0  # forks between the first process and this one: a child can be given its parent's number again
_orphaned = False  # whether an ancestor of this process was forked while it had a connection
_open: list[Connection] = []


def here() -> tuple[int, int]:
    """This process, told apart from its parent and its children."""
    return os.getpid(), _generation


class Connection(sqlite3.Connection):
    """An SQLite connection; a process that was forked while its parent had one can have none.

    SQLite keeps a table of the files that it has locked. A child inherits the table and not the locks, so that whatever
    it opened would be written to with no lock at all.
    """

    def __init__(self, path: str, mode: str, timeout: float) -> None:
        if _orphaned:
            raise LedgerUnavailable(
                "this process was forked while its parent had a ledger open, and SQLite's locks stayed with the "
                "parent; fork before a ledger is opened, or start a process anew (spawn, exec). Nothing was drawn."
            )
        _open.append(self)  # before the file is opened: a fork in between must know of it
        try:
            address = f"file:{quote(os.fsencode(path))}?mode={mode}"
            super().__init__(address, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True)
        except BaseException:
            _open.remove(self)
            raise

    def close(self) -> None:
        if any(each is self for each in _open):  # else it is closed, or another process's
            super().close()
            _open.remove(self)

    def leave_open(self) -> None:
        """For ever: whoever closes a connection deletes the log of that name, which may be another's by then."""
        _never_freed(self)


def _never_freed(thing: Any) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _in_the_child() -> None:
    global _generation, _orphaned
    _generation, _orphaned = _generation + 1, _orphaned or bool(_open)
    for connection in _open:
        _never_freed(connection)
    _open.clear()


os.register_at_fork(after_in_child=_in_the_child)
