"""What the columns of a source have to be, before a row of it is read."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from tacit.domain.person import Person
from tacit.engines import persons
from tacit.engines.encode import Encoder
from tacit.engines.sources import Header
from tacit.errors import InvalidData, quoted


def check(encoders: Mapping[str, Encoder], header: Header) -> None:
    """Refuses a source that lacks a column, has it twice, or holds in it what no cell can stand for."""
    kinds = _kinds(header)
    for name, encodes in encoders.items():
        kind = _kind(name, kinds)
        if not encodes.takes(kind):
            domain = type(encodes.column).__name__
            raise InvalidData(
                f"column {quoted(name)} is of type {_shown(kind)} in the source; a column of {domain} "
                f"is read from {encodes.readable}. Nothing was read."
            )


def check_person(person: Person, header: Header, found: set[str]) -> None:
    """Refuses a source whose people cannot be told apart, or not in the same way in all of its parts."""
    kind = _kind(person.column, _kinds(header))
    said = persons.kind_of(kind)
    if said is None:
        raise InvalidData(
            f"column {quoted(person.column)} is of type {_shown(kind)} in the source; people are told apart by "
            f"{persons.READABLE}. Nothing was read."
        )
    found.add(said)
    if len(found) > 1:
        raise InvalidData(
            f"column {quoted(person.column)} holds {' in one file and '.join(sorted(found))} in another; people are "
            "told apart by values of one kind. Nothing was read."
        )


def _kinds(header: Header) -> dict[str, list[object]]:
    kinds: dict[str, list[object]] = {}
    for name, kind in header:
        kinds.setdefault(name, []).append(kind)
    return kinds


def _kind(name: str, kinds: Mapping[str, list[object]]) -> object:
    """The type of a column that must be there, once."""
    if name not in kinds:
        alike = [other for other in kinds if _folded(other) == _folded(name)]
        hint = f"; it has {quoted(alike[0])}, which is not the same" if alike else ""
        raise InvalidData(f"the source has no column {quoted(name)}{hint}. Nothing was read.")
    if len(kinds[name]) > 1:
        raise InvalidData(f"the source has column {quoted(name)} more than once. Nothing was read.")
    return kinds[name][0]


def _shown(kind: object) -> str:
    return quoted(str(kind).partition("<")[0].partition("(")[0])


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()
