"""A contract before anybody has signed it: readable TOML, with what is missing as lines to fill in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tacit.domain.schema import checked_name
from tacit.engines.columns import DAYS, NONE, REAL, TEXT, UNTYPED, WHOLE, sort_of
from tacit.errors import InvalidSchema
from tacit.service.contract import FROM_DATA
from tacit.service.domains import Domain

WIDE = 100  # letters in a line of a list

HEAD = """\
# The contract of {what}, drafted by `tacit init` from the names and types of its columns{reading}.
# Everything in it is public: nothing may be learnt from the rows. Fill in what everybody may know.
# Lines that begin with # are not read; docs/contract.md says what each key means.
"""
LOUD = """\
#
# !!! READ OFF THE DATA: domains marked `domain = "from data"` were read off the rows and tell about the
# !!! people in them. Until you have changed them this file is as confidential as the data. Put what
# !!! everybody may know, add what may be and is not there, and change each mark to domain = "public".
# !!! tacit spends nothing before that.
"""
KEYS = {
    "categories": ('categories = ["A", "B"]', "all the values that there may be"),
    "low": ("low = 0", "whole numbers: the least and the largest that there may be"),
    "high": ("high = 99", ""),
    "edges": ("edges = [0, 10, 100]", "numbers, cut into cells from one edge up to the next"),
    "from": ("from = 2024-01-01", "days: the first and the last that there may be"),
    "to": ("to = 2024-12-31", ""),
    "by": ('by = "month"', "a cell for each day, week, month, quarter or year"),
}
WHOLES, REALS, PERIODS = ("low", "high"), ("edges",), ("from", "to", "by")
CHOICES: Mapping[str, tuple[tuple[str, ...], ...]] = {  # what a column of this sort can be declared as
    TEXT: (("categories",), WHOLES, REALS, PERIODS),
    UNTYPED: (("categories",), WHOLES, REALS, PERIODS),
    WHOLE: (WHOLES, REALS, ("categories",)),
    REAL: (REALS, WHOLES, ("categories",)),
    DAYS: (PERIODS,),
}
STRAYS = {"missing": {"cell": "no value counts in a cell of its own"}, "outside": {"cell": "so does another value"}}
STRAYS["outside"]["clamp"] = "a value beyond the ends counts at the nearest end"


@dataclass(frozen=True)
class Promise:
    """What [privacy] says; None is left open."""

    neighbors: str
    people: int | None
    epsilon: str | None
    delta: str | None
    ledger: str


@dataclass(frozen=True)
class Draft:
    """All that a draft says; every part of it is public, but for domains that are marked as from the data."""

    source: str
    table: str | None
    person: str | None
    most_rows: int | None
    promise: Promise
    columns: Mapping[str, str | None]  # in the source, with the words for their types
    domains: Mapping[str, Domain]
    left_out: frozenset[str] = frozenset()  # by name, as was asked
    read: bool = False  # whether rows were read for it
    bought: bool = False  # whether its ledger was made before its domains were known

    @property
    def open(self) -> list[str]:
        """The columns that could be declared and are not."""
        return [name for name in self.columns if self._can_be(name) and name not in self.domains]

    @property
    def lines_to_fill(self) -> list[tuple[int, str]]:
        """Which lines of the draft wait for a decision, and what for."""
        found = []
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.startswith("# epsilon ="):
                found.append((number, "epsilon"))
            elif line.startswith("# name = "):
                found.append((number, tomllib.loads(line.removeprefix("# "))["name"]))
        return found

    @property
    def text(self) -> str:
        """The draft."""
        return "\n".join(self._lines()) + "\n"

    def _can_be(self, name: str) -> bool:
        return name not in self.left_out and name != self.person and sort_of(self.columns[name]) != NONE and fit(name)

    def _lines(self) -> Iterator[str]:
        marks = {domain.mark for domain in self.domains.values()}
        loud = FROM_DATA in marks or self.read
        reading = "" if loud or self.bought else "; no row was read"
        yield HEAD.format(what=comment(self.source), reading=reading).rstrip("\n")
        if loud:
            yield LOUD.rstrip("\n")
        yield from ("", "[data]", f"source = {text(self.source)}")
        if self.table is not None:
            yield f"table = {text(self.table)}"
        if self.person is not None:
            yield f"person = {text(self.person)}  # tells people apart"
            yield f"most_rows = {self.most_rows}  # of each person count, by lot; all noise is as many times as large"
        else:
            yield '# person = "id"  # the column that tells people apart, where one person may have several rows,'
            yield "# most_rows = 3  # and how many rows of each count; without them a row is a person"
        yield from self._privacy()
        for name, kind in self.columns.items():
            yield ""
            yield from self._column(name, kind)

    def _privacy(self) -> Iterator[str]:
        said = self.promise
        yield from ("", "[privacy]")
        if said.people is None:
            yield f'neighbors = "{said.neighbors}"  # one person more or less; or "replace-one", with people = N'
        else:
            yield f'neighbors = "{said.neighbors}"  # one person exchanged for another'
            yield f"people = {said.people}  # their public number"
        if said.epsilon is None:
            yield '# epsilon = "1"  # FILL IN: all that may ever be spent on this table'
        else:
            yield f"epsilon = {text(said.epsilon)}  # all that may ever be spent on this table"
        if said.delta is None:
            yield '# delta = "1e-9"  # far below one over the number of people; without it pure differential privacy'
        else:
            yield f"delta = {text(said.delta)}"
        yield f"ledger = {text(said.ledger)}  # what was spent, by whom, for what; made once by `tacit ledger create`"
        if self.bought:
            yield 'domains = "bought"  # the ledger was made before they were known, so columns may still be added'

    def _column(self, name: str, kind: str | None) -> Iterator[str]:
        shown = comment(name)
        if name == self.person:
            yield f"# {shown} tells people apart: nothing is asked of it"
        elif name in self.left_out:
            yield f"# {shown} is left out, as was asked"
        elif not fit(name):
            yield f"# {shown} is left out: a name has 1 to 200 letters, none of them for control, no blank around"
        elif kind is None:
            yield f"# {shown} is left out: the source has it twice, or in two types"
        elif sort_of(kind) == NONE:
            yield f"# {shown} is left out: it is of type {comment(kind)}, of which no column can be"
        elif name in self.domains:
            yield from declared(name, self.domains[name])
        else:
            yield from undecided(name, kind)


def declared(name: str, domain: Domain) -> Iterator[str]:
    """A column's table."""
    yield from ("[[columns]]", f"name = {text(name)}")
    for key, value in domain.said.items():
        yield from _entry(key, value, WIDE if domain.mark != FROM_DATA else None)
    for key, place in domain.places.items():
        yield f'{key} = "{place}"  # {STRAYS[key][place]}'
    if domain.mark == FROM_DATA:
        yield 'domain = "from data"  # READ OFF THE ROWS: make it what everybody may know, then write "public"'
    elif domain.mark:
        yield f'domain = "{domain.mark}"  # released under the ledger, by a mechanism that protects people'


def undecided(name: str, kind: str) -> Iterator[str]:
    """The same as lines to fill in: one way of declaring the column for each line or group of lines."""
    sort = sort_of(kind)
    typed = "" if sort == UNTYPED else f" (of type {comment(kind)} in the source)"
    choices = CHOICES[sort]
    yield f"# FILL IN{typed}: {'keep one domain and ' if len(choices) > 1 else ''}take the # away from its lines"
    yield "# [[columns]]"
    yield f"# name = {text(name)}"
    for at, keys in enumerate(choices):
        for key in keys:
            example, why = KEYS[key]
            said = f"{'or ' if at else ''}{why}" if why else ""
            yield f"# {example}{'  # ' + said if said else ''}"


def fit(name: str) -> bool:
    """Whether a column may have this name."""
    try:
        checked_name(name)
    except InvalidSchema:
        return False
    return True


def text(value: str) -> str:
    """A text as TOML writes it: in quotes, whatever cannot be printed escaped.

    >>> print(text('a "b"\\n'))
    "a \\"b\\"\\u000a"
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(
            c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 2**16 else f"\\U{ord(c):08x}" for c in escaped
        )
        + '"'
    )


def comment(value: str) -> str:
    """A text that can stand in a comment: on one line, printable, not long."""
    quoted = text(value[:200])
    return quoted if len(value) <= 200 else f'{quoted[:-1]}..."'


def _entry(key: str, value: Any, wide: int | None) -> Iterator[str]:
    """On one line where no width is given: refusals name lines, and how many a list takes would tell its length."""
    if not isinstance(value, list):
        yield f"{key} = {_value(value)}"
        return
    items = [str(edge) for edge in value] if key == "edges" else [_value(item) for item in value]
    line = f"{key} = [{', '.join(items)}]"
    if wide is None or len(line) <= wide:
        yield line
        return
    yield f"{key} = ["
    yield from _folded(items)
    yield "]"


def _folded(items: Iterable[str]) -> Iterator[str]:
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDE and line.strip():
            yield line
            line = "   "
        line += f" {item},"
    yield line


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | int):
        return str(value)
    return text(str(value))


def truths() -> Domain:
    """The domain that a column of truth values has by its type alone."""
    return Domain({"categories": [False, True]})
