"""What a session has said, written down as it is said: a file beside the ledger that only grows."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import ENOENT, ENOSPC
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tacit.domain.query import Counting, Linear, LinearQuery
from tacit.domain.schema import Schema
from tacit.errors import Halted, InvalidParameter, InvalidQuery, Refused, Unavailable, quoted
from tacit.rational import exact
from tacit.service.located import printable

MOST_BYTES = 2**32
_SEAL = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Notebook:
    """Lines of JSON, each with its seal; held by one session at a time, in whatever process.

    A line is there whole or not at all: what a crash left of the last one is dropped, and of what was charged for it
    the ledger knows. A line that is `lasting` has outlived a power cut when `add` returns; others outlive the process.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            if create:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._failed(error) from None
        try:
            self._taken()
            self.lines = list(self._whole())
        except BaseException:
            os.close(self._file)
            raise

    def add(self, line: Mapping[str, Any], *, lasting: bool) -> None:
        """Writes one line more."""
        said = json.dumps(line, separators=(",", ":"), ensure_ascii=True)
        sealed = f"{_seal(said)} {said}\n".encode()
        try:
            if os.write(self._file, sealed) != len(sealed):
                raise OSError(ENOSPC, "it was written in part")
            if lasting:
                os.fsync(self._file)
                if not self.lines:
                    self._sync_folder()
        except OSError as error:  # nothing more is written: after half a line, or past a page that no sync will repeat
            with suppress(OSError):
                self.close()
            raise self._failed(error, "What was charged stays charged; open the session again.") from None
        self.lines.append(dict(line))

    def check(self) -> None:
        """Refuses where nothing can be kept any more, before anything is drawn."""
        if self._file < 0:
            raise Halted(f"the session {printable(self.path.stem)} was closed; open it again. Nothing was drawn.")
        try:
            if not os.fstat(self._file).st_nlink:
                raise OSError(ENOENT, "it was removed")
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Lets go of it."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _taken(self) -> None:
        about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_BYTES:
            raise Unavailable(f"{printable(self.path)} is no file of a session. Nothing was spent.")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(
                f"the session {printable(self.path.name)} is open already, here or in another process; close it "
                "there, or open one of another name. Nothing was spent."
            ) from None

    def _whole(self) -> Iterator[dict[str, Any]]:
        with open(self._file, "rb", closefd=False) as file:
            content = file.read()
        kept = content.rfind(b"\n") + 1
        for line in content[:kept].splitlines():
            seal, _, said = line.decode("ascii", "replace").partition(" ")
            if seal != _seal(said):
                self._damaged()
            found = json.loads(said)
            if not isinstance(found, dict):
                self._damaged()
            yield found
        if kept != len(content):
            os.ftruncate(self._file, kept)

    def _sync_folder(self) -> None:
        for folder in (self.path.parent, self.path.parent.parent):
            file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def _damaged(self) -> NoReturn:
        raise Unavailable(
            f"{printable(self.path)} is not what was written. Its session does not go on, and what it paid for stays "
            "paid; open one of another name. Nothing was spent."
        )

    def _failed(self, error: OSError, end: str = "Nothing was spent.") -> Unavailable:
        why = (error.strerror or "the system refused").lower()
        return Unavailable(f"the session's file {printable(self.path)} did not answer: {why}. {end}")


def place(ledger: Path, name: str) -> Path:
    """Where a session of that name is kept."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidParameter(
            "a session's name has 1 to 64 letters, digits, points, hyphens and underscores, the first a letter or a "
            f"digit; not {quoted(name)}. Nothing was spent."
        )
    return ledger.with_name(f"{ledger.name}-sessions") / f"{name}.session"


def sessions(ledger: Path) -> list[str]:
    """The names of the sessions that are kept beside a ledger."""
    return sorted(path.stem for path in ledger.with_name(f"{ledger.name}-sessions").glob("*.session"))


def written(query: LinearQuery) -> dict[str, Any]:
    """A question as it can be written down, and read as the same again."""
    if type(query) is Counting:
        cells = [[c.start, c.stop] if isinstance(c, range) else {"of": list(c)} for c in query.chosen]
        return {"columns": list(query.columns), "cells": cells}
    if type(query) is Linear:
        packed = base64.b64encode(zlib.compress(query.numerators.astype("<i8").tobytes())).decode()
        return {"columns": list(query.columns), "weights": packed, "grid": str(query.grid)}
    raise InvalidQuery(f"a session that lasts is asked predicates and weighted counts, not {query}. Nothing was spent.")


def read_again(said: Mapping[str, Any], schema: Schema) -> LinearQuery:
    """What `written` wrote."""
    names = tuple(said["columns"])
    sizes = schema.sizes(names)
    if "cells" in said:
        return Counting(
            names, sizes, tuple(range(*c) if isinstance(c, list) else tuple(c["of"]) for c in said["cells"])
        )
    weights = np.frombuffer(zlib.decompress(base64.b64decode(said["weights"])), "<i8").astype(np.int64)
    return Linear(names, sizes, weights, exact(said["grid"], "the grid"))


def _seal(said: str) -> str:
    return sha256(said.encode()).hexdigest()[:_SEAL]
