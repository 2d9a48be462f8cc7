"""Where a ledger lies: its one path, the names beside it, its file, and the file system underneath."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.curator.chain import failed
from tacit.errors import InvalidParameter, LedgerUnavailable, quoted

MAKING = "-making"  # what a ledger is called until it is whole
SESSIONS = "-sessions"  # the folder of a ledger's sessions
_RESERVED = ("-wal", "-shm", "-journal", "-head", MAKING, SESSIONS)
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "fuse.sshfs", "fuse.glusterfs")
_MOUNTS = "/proc/self/mountinfo"


def located(path: str | os.PathLike[str]) -> str:
    """The one absolute path of a ledger, its folder's links resolved once, so that no later link or chdir moves it."""
    given = os.fsdecode(path)
    folder, name = os.path.split(os.path.abspath(given))
    if "\0" in given or not name or given.endswith(os.sep):
        raise InvalidParameter(f"a ledger's path must name a file, not {quoted(given)}. Nothing was spent.")
    if name.lower().endswith(_RESERVED):
        raise InvalidParameter(
            f"{quoted(name)} may not be a ledger's name: the ending belongs to a file beside a ledger. "
            "Nothing was spent."
        )
    return os.path.join(os.path.realpath(folder), name)


def identity(path: str) -> tuple[int, int]:
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


def on_a_local_disk(path: str) -> None:
    """Refuses to serve where locks are not real, or where the file is mounted without its log beside it."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:  # not Linux, or no /proc: the page on the ledger says what may not be done
        return
    under, kind = "", ""
    for line in lines:
        point = line[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        if len(point) >= len(under) and (path + os.sep).startswith(point.rstrip(os.sep) + os.sep):
            under, kind = point, line[line.index("-") + 1]  # of mounts on one point the last is seen
    if under == path:
        raise LedgerUnavailable(
            f"{quoted(path, 200)} is mounted by itself, so that its log would lie elsewhere; mount its folder. "
            "Nothing was drawn."
        )
    if kind in _REMOTE:
        raise LedgerUnavailable(
            f"{quoted(path, 200)} lies on a file system of the network ({kind}), whose locks and syncs cannot be "
            "trusted; keep it on a disk of this machine. Nothing was drawn."
        )


def sync(path: str) -> None:
    """Syncs a file that SQLite does not lock (to close any other here would drop its locks), or a folder."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def alone_in(folder: str, timeout: float) -> Iterator[None]:
    """Locks a folder against another `create`; the kernel lets go of it when the process dies."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        lock(file, timeout)
        yield
    finally:
        os.close(file)


def lock(file: int, timeout: float) -> None:
    """Waits until no other process, and no other opening of this file, has it locked."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
