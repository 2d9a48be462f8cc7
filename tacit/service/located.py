"""Where in a contract something stands, so that a refusal can say it: file, line, table and key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from tacit.errors import InvalidInput, InvalidSchema, quoted

MOST_BYTES = 16 * 2**20
LONGEST_TEXT = 1000
TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".duckdb", ".ddb")

Position: TypeAlias = tuple[str, int, str]  # the table, which one of its name, and the key; "" is the table's header


@dataclass(frozen=True)
class Kind:
    """A kind of file that people write by hand, and what is said of one that cannot be read."""

    name: str
    holds: str
    instead: str  # of a table
    error: type[InvalidInput]


CONTRACT = Kind("contract", "[data], [privacy] and [[columns]]", "name the contract that describes it", InvalidSchema)


class Place:
    """A contract's text, and refusals that point into it."""

    def __init__(self, file: Path, text: str | None = None) -> None:
        self.file = printable(file)
        self.text = text_of(file, CONTRACT) if text is None else text

    def at(self, room: str, which: int = 0, key: str = "") -> str:
        """File, line and table, as far as they are known."""
        lines = dict(_lines(self.text))
        line = lines.get((room, which, key)) or lines.get((room, which, ""))
        table = f" [[columns]] {which + 1}" if room == "columns" else f" [{room}]" if room else ""
        return f"{self.file}{f', line {line}' if line else ''}{',' if table else ''}{table}"

    def drafted(self, header: str) -> int | None:
        """The first line where such a table waits to be filled in: where it is commented out."""
        lines = enumerate(self.text.splitlines(), 1)
        return next((number for number, line in lines if line.replace(" ", "") == f"#{header}"), None)

    def refuse(self, room: str, which: int, key: str, why: str) -> NoReturn:
        raise InvalidSchema(f"{self.at(room, which, key)}: {why}. Nothing was spent.")

    def known(self, said: Mapping[str, Any], keys: tuple[str, ...], room: str, which: int = 0) -> None:
        """Refuses a key that nobody reads: it was meant to do something."""
        for key in said:
            if key not in keys:
                kind = "key" if room else "table"
                self.refuse(room, which, key, f"unknown {kind} {quoted(key)}; {nearest(key, keys)}")

    def wrap(self, error: InvalidInput, room: str, which: int = 0, key: str = "") -> InvalidInput:
        """The same refusal, with its place before it."""
        return type(error)(f"{self.at(room, which, key)}: {error}")

    def string(self, said: Mapping[str, Any], room: str, key: str) -> str:
        """A text that must be there."""
        value = said.get(key)
        if value is None:
            self.refuse(room, 0, "", f"{key} is missing")
        if not isinstance(value, str):
            self.refuse(room, 0, key, f"{key} must be a text in quotes, not {quoted(value)}")
        if not value.strip() or len(value) > LONGEST_TEXT or not value.isprintable():
            self.refuse(room, 0, key, f"{key} must be 1 to {LONGEST_TEXT} printable characters, not {quoted(value)}")
        return value


def text_of(file: Path, kind: Kind) -> str:
    """A file's characters; anything but a small regular UTF-8 file is refused before it is read."""
    shown = printable(file)
    if file.suffix.lower() in TABLES:  # before it is read: what is wrong with its lines may not be said
        raise kind.error(f"{shown} is a table by its name; {kind.instead}. Nothing was spent.")
    try:
        about = os.stat(file)
        if stat.S_ISDIR(about.st_mode):
            raise kind.error(f"{shown} is a folder; name the {kind.name} file in it. Nothing was spent.")
        if not stat.S_ISREG(about.st_mode):
            raise kind.error(f"{shown} is not a regular file, so not a {kind.name}. Nothing was spent.")
        if about.st_size > MOST_BYTES:
            raise kind.error(
                f"{shown} has {about.st_size} bytes; a {kind.name} has at most {MOST_BYTES}. Nothing was spent."
            )
        raw = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise kind.error(f"no {kind.name} could be read at {shown}: {reason}. Nothing was spent.") from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise kind.error(f"{shown} is not UTF-8 text: byte {error.start} cannot be read. Nothing was spent.") from None
    if text.startswith("\ufeff"):
        raise kind.error(f"{shown} begins with a byte-order mark; save it as plain UTF-8. Nothing was spent.")
    if not text.strip():
        raise kind.error(f"{shown} is empty; a {kind.name} has {kind.holds}. Nothing was spent.")
    return text


def _lines(text: str) -> Iterator[tuple[Position, int]]:
    """Where each table begins and each key stands; a guess within texts of many lines, so only for messages."""
    room, which, seen = "", 0, dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([\w-]+)\s*\]", line):
            room = header[1]
            which = seen.get(room, -1) + 1
            seen[room] = which
            yield (room, which, ""), number
            if not which:
                yield ("", 0, room), number
        elif key := re.match(r"\s*(?:([\w-]+)|\"([^\"]*)\"|'([^']*)')\s*=", line):
            yield (room, which, key[1] or key[2] or key[3] or ""), number


def nearest(word: str, known: tuple[str, ...]) -> str:
    """What may have been meant, or all that there is.

    >>> nearest("epsilom", ("epsilon", "delta")), nearest("x", ("epsilon", "delta"))
    ('did you mean epsilon?', 'there are epsilon, delta')
    """
    from difflib import get_close_matches  # 2 ms that only a mistake should cost

    if close := get_close_matches(word[:100], known, 1):
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(known)}"


def printable(path: str | os.PathLike[str]) -> str:
    """A path as it can stand in a message: one line, whatever bytes it is made of."""
    text = os.fsdecode(path)
    return text if text.isprintable() and len(text) <= LONGEST_TEXT else quoted(text, LONGEST_TEXT)
