"""Domains in one line: `age=0..99`, `sex=F,M`, `income=0:10000:20000`, `visited=2024-01-01..2024-12-31/month`.

NAME=LOW..HIGH          whole numbers, both ends included
NAME=FROM..TO/PERIOD    days, a cell for each day, week, month, quarter or year
NAME=EDGE:EDGE:...      numbers, cut into cells
NAME=VALUE,VALUE,...    categories; one alone, or one that holds , or " or another form's sign, stands in quotes

A name that holds = or " stands in quotes too. Within quotes "" is one quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from tacit.domain.dates import PERIODS, day_of
from tacit.domain.schema import CLAMP, DROP, Column, column_from, written
from tacit.engines.columns import DAYS, REAL, TEXT, TRUTH, UNTYPED, WHOLE
from tacit.errors import InvalidParameter, InvalidSchema, quoted
from tacit.service.located import nearest

LONGEST = 10**6  # letters of one domain
FORMS = "0..99, F,M, 0:100:500 or 2024-01-01..2024-12-31/month"

_QUOTED = r'"((?:[^"]|"")*)"'
_NAMED = re.compile(rf"\s*(?:{_QUOTED}|([^=\"]+?))\s*=(.*)", re.DOTALL)
_RANGE = re.compile(r"\s*([+-]?[0-9]+)\s*\.\.\s*([+-]?[0-9]+)\s*", re.ASCII)
_SPAN = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})\s*\.\.\s*([0-9]{4}-[0-9]{2}-[0-9]{2})\s*(?:/\s*(\w+)\s*)?")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*", re.ASCII)
_VALUE = re.compile(rf"\s*(?:{_QUOTED}\s*|([^,\"]*))(,|$)")


@dataclass(frozen=True)
class Domain:
    """What a contract's [[columns]] says of one column's domain, and where strays go."""

    said: Mapping[str, Any]
    missing: str = DROP
    outside: str | None = None  # by default clamped where there is an order, else dropped
    mark: str = ""  # where it is from, if it is not public

    @property
    def places(self) -> dict[str, str]:
        """Where strays go, those that are not what a contract takes for granted."""
        outside = self.outside or DROP
        return {key: place for key, place in (("missing", self.missing), ("outside", outside)) if place != DROP}

    def column(self, name: str) -> Column:
        """The column, or a refusal that says what is wrong with it."""
        said = {key: [float(e) for e in value] if key == "edges" else value for key, value in self.said.items()}
        return column_from({"name": name, **said, **self.places})


def domain(text: str, sort: str = UNTYPED) -> Domain:
    """What one line says; `sort` is what the source's type allows.

    >>> domain("0..99").said, domain("F,M").said, domain("0:10:20.5").said
    ({'low': 0, 'high': 99}, {'categories': ['F', 'M']}, {'edges': ['0', '10', '20.5']})
    >>> domain("2024-01-01..2024-12-31/month").said["by"], domain('"Old Town","a,b"').said
    ('month', {'categories': ['Old Town', 'a,b']})
    """
    if len(text) > LONGEST or not text.strip():
        raise InvalidSchema(f"a domain is written {FORMS}, not {quoted(text)}. Nothing was spent.")
    if span := _SPAN.fullmatch(text):
        return _fitting(_days(*span.groups()), sort, text)
    if ends := _RANGE.fullmatch(text):
        low, high = (_whole(end, text) for end in ends.groups())
        return _fitting({"low": low, "high": high}, sort, text)
    if ":" in text and "," not in text and '"' not in text:
        edges = [edge.strip() for edge in text.split(":")]
        if wrong := [edge for edge in edges if not _NUMBER.fullmatch(edge)]:
            raise InvalidSchema(
                f"{quoted(wrong[0])} is no number, and edges stand between colons; a category that holds a colon "
                "stands in quotes. Nothing was spent."
            )
        return _fitting({"edges": [written(float(edge)) for edge in edges]}, sort, text)
    return _fitting({"categories": _values(text, sort)}, sort, text)


def _days(first: str, last: str, by: str | None) -> dict[str, Any]:
    for day in (first, last):
        if day_of(day) is None:
            raise InvalidSchema(f"{quoted(day)} is no day of the calendar. Nothing was spent.")
    if by not in PERIODS:
        said = "has no period" if by is None else f"has no period {quoted(by)}"
        raise InvalidSchema(f"{first}..{last} {said}; add one of /{', /'.join(PERIODS)}. Nothing was spent.")
    return {"from": date.fromisoformat(first), "to": date.fromisoformat(last), "by": by}


def _whole(text: str, given: str) -> int:
    if len(text) > 20:
        raise InvalidSchema(f"{quoted(given)} has a bound that does not fit 64 bits. Nothing was spent.")
    return int(text)


def _values(text: str, sort: str) -> list[str | int | bool]:
    """Categories: texts, but whole numbers and truth values where the source's column is of such."""
    found, at, quotes = list[str](), 0, False
    while True:
        value = _VALUE.match(text, at)
        if value is None:
            raise InvalidSchema(f"a quotation mark in {quoted(text[at:])} is not closed. Nothing was spent.")
        quotes = quotes or value[1] is not None
        found.append(value[2].strip() if value[1] is None else value[1].replace('""', '"'))
        if not value[1] and not found[-1] and value[1] is None:
            raise InvalidSchema(f"a category between two commas of {quoted(text)} is empty. Nothing was spent.")
        at = value.end()
        if not value[3]:
            break
    if len(found) == 1 and not quotes:
        raise InvalidSchema(
            f"{quoted(text)} is one category, which is rarely meant: a domain is written {FORMS}; a category alone "
            f'stands in quotes, "{found[0][:60]}". Nothing was spent.'
        )
    if sort == TRUTH:
        truths = {"true": True, "false": False}
        if wrong := [value for value in found if value.lower() not in truths]:
            raise InvalidSchema(f"{quoted(wrong[0])} is no truth value; the source holds those. Nothing was spent.")
        return [truths[value.lower()] for value in found]
    if sort == WHOLE and all(re.fullmatch(r"-?[0-9]{1,19}", value) for value in found):
        return [int(value) for value in found]
    return list(found)


FITS = {
    "categories": (TEXT, UNTYPED, WHOLE, REAL, TRUTH),
    "low": (TEXT, UNTYPED, WHOLE, REAL),
    "edges": (TEXT, UNTYPED, WHOLE, REAL),
    "from": (TEXT, UNTYPED, DAYS),
}
MEANS = {"categories": "categories", "low": "whole numbers", "edges": "numbers", "from": "days"}
HOLDS = {WHOLE: "whole numbers", REAL: "numbers", TRUTH: "truth values", DAYS: "days"}


def _fitting(said: dict[str, Any], sort: str, text: str) -> Domain:
    key = next(iter(said))
    if sort not in FITS[key]:
        raise InvalidSchema(
            f"{quoted(text)} are {MEANS[key]}, and the source holds {HOLDS.get(sort, 'what no column can hold')}. "
            "Nothing was spent."
        )
    made = Domain(said, outside=DROP if key == "categories" else CLAMP)
    made.column("x")  # a domain that cannot be is refused here, where its text is at hand
    return made


def named(text: str, option: str, what: str) -> tuple[str, str]:
    """NAME=WHAT, taken apart.

    >>> named('"a=b" = 0..9', "--column", "DOMAIN")
    ('a=b', ' 0..9')
    """
    found = _NAMED.fullmatch(text)
    if found is None:
        raise InvalidParameter(f"{option} {quoted(text)}: write NAME={what}. Nothing was spent.")
    return (found[2] if found[1] is None else found[1].replace('""', '"')), found[3]


def names(text: str | None, option: str, known: Iterable[str]) -> list[str] | None:
    """Names between commas, each a column of the source."""
    if text is None:
        return None
    columns, found, at = tuple(known), list[str](), 0
    while True:
        name = _VALUE.match(text, at)
        if name is None:
            raise InvalidParameter(f"{option}: a quotation mark does not close. Nothing was spent.")
        found.append(name[2].strip() if name[1] is None else name[1].replace('""', '"'))
        at = name.end()
        if not name[3]:
            break
    for one in found:
        must_be_in(one, columns, option)
    return found


def must_be_in(name: str, columns: Iterable[str], option: str) -> None:
    """Refuses a name of no column."""
    known = tuple(columns)
    if name not in known:
        hint = nearest(name, known[:1000]).replace("there are ", "it has ")
        raise InvalidParameter(f"{option}: the source has no column {quoted(name)}; {hint[:500]}. Nothing was spent.")


def decided(
    given: Iterable[str], missing: Iterable[str], outside: Iterable[str], sorts: Mapping[str, str]
) -> dict[str, Domain]:
    """The domains that flags declare, by column, with the places of strays."""
    found: dict[str, Domain] = {}
    for text in given:
        name, said = named(text, "--column", "DOMAIN")
        must_be_in(name, sorts, "--column")
        if name in found:
            raise InvalidParameter(f"--column {quoted(name)} is given twice. Nothing was spent.")
        found[name] = _of_option("--column", name, lambda said=said, name=name: domain(said, sorts[name]))  # type: ignore[misc]
    for option, key, texts in (("--missing", "missing", missing), ("--outside", "outside", outside)):
        for text in texts:
            name, place = named(text, option, "PLACE")
            must_be_in(name, sorts, option)
            if name not in found:
                raise InvalidParameter(f"{option} {quoted(name)} needs --column {name}=DOMAIN too. Nothing was spent.")
            one = (
                replace(found[name], missing=place.strip())
                if key == "missing"
                else replace(found[name], outside=place.strip())
            )
            _of_option(option, name, lambda one=one, name=name: one.column(name))  # type: ignore[misc]
            found[name] = one
    return found


def _of_option(option: str, name: str, make: Callable[[], Any]) -> Any:
    """The refusal of a domain says by which option it came."""
    try:
        return make()
    except InvalidSchema as error:
        raise InvalidSchema(f"{option} {quoted(name)}: {error}") from None
