"""The head of a ledger: the last mark, in a file beside it, which shows that an older copy of it was put back."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import BinaryIO

from tacit.curator.chain import Contract, Mark, damaged
from tacit.curator.place import lock
from tacit.errors import quoted

SLOT = 512


class Head:
    """Made and synced before its ledger has a name, so a ledger without one was taken from its place.

    It is written after the charge is durable, and only the first time synced, so a crash can leave it behind the ledger
    but never ahead of it, and at no charge only where none was acknowledged. It never goes back: whoever writes it
    holds its lock, and reads it first. Two slots of one sector each take turns, so that a torn write leaves the other.
    """

    def __init__(self, ledger: str, timeout: float) -> None:
        self.ledger, self.path = ledger, ledger + "-head"
        self._timeout = timeout
        self._file: BinaryIO | None = None

    def read(self) -> tuple[str, Mark] | None:
        """The contract's hash and the furthest mark; None where there is no head."""
        try:
            with open(self.path, "rb", opener=_guarded) as file:
                return self._furthest(file.read(2 * SLOT))
        except FileNotFoundError:
            return None

    def make(self, contract: Contract) -> None:
        """Makes it, durable, for a ledger that was never charged; the place is the caller's alone."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(file, 2 * _slot(contract, Mark(0, contract.hash)), 0)
            os.fsync(file)
        finally:
            os.close(file)

    def open(self) -> None:
        """Opens it for writing."""
        self._file = open(self.path, "r+b", buffering=0, opener=_guarded)  # noqa: SIM115

    def write(self, contract: Contract, mark: Mark) -> None:
        """Moves it to this mark, or leaves it where another process has moved it further."""
        assert self._file is not None  # noqa: S101
        file = self._file.fileno()
        lock(file, self._timeout)  # a writer that was held up must not take it back; closing it lets go as well
        seal, before = self._furthest(os.pread(file, 2 * SLOT, 0))
        if seal != contract.hash or (before.sequence == mark.sequence and before != mark):
            raise damaged(self.ledger, "the head beside it tells of another history")
        if before.sequence < mark.sequence:
            if os.pwrite(file, _slot(contract, mark), mark.sequence % 2 * SLOT) != SLOT:
                raise OSError("the head was written in part")
            if not before.sequence:
                os.fsync(file)
        fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _furthest(self, content: bytes) -> tuple[str, Mark]:
        slots = (content[at : at + SLOT].rstrip(b"\0 ").decode("ascii", "replace") for at in (0, SLOT))
        legible = [parts for parts in map(str.split, slots) if len(parts) == 4 and _is_slot(*parts)]
        if not legible:
            raise damaged(self.ledger, f"its head, {quoted(self.path, 200)}, cannot be read")
        contract, sequence, hash_, _ = max(legible, key=lambda parts: int(parts[1]))
        return contract, Mark(int(sequence), hash_)


def _slot(contract: Contract, mark: Mark) -> bytes:
    parts = [contract.hash, str(mark.sequence), mark.hash]
    return " ".join([*parts, _seal(parts)]).encode().ljust(SLOT)


def _guarded(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe of that name must not hold us up


def _is_slot(contract: str, sequence: str, hash_: str, seal: str) -> bool:
    return sequence.isdecimal() and seal == _seal((contract, sequence, hash_))


def _seal(parts: Sequence[str]) -> str:
    return sha256(" ".join(parts).encode()).hexdigest()[:32]
