"""The contract: which table, which universe, which people and how much may ever be spent, signed by its curator."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.domain.person import Person, Relation
from tacit.domain.schema import CELL, CLAMP, DROP, Neighbors, Schema, column_from
from tacit.engines import address
from tacit.errors import InvalidBudget, InvalidSchema, quoted
from tacit.privacy.budget import Budget, checked_delta, checked_epsilon
from tacit.rational import whole
from tacit.service.located import Place

MOST_PEOPLE = 10**12

ROOMS = ("data", "privacy", "columns")
DATA = ("source", "table", "name", "delimiter", "multiline", "engine", "person", "most_rows")
ENGINES = ("spark",)  # those that have to be named
PRIVACY = ("neighbors", "people", "epsilon", "delta", "ledger", "domains")
COLUMN = ("name", "categories", "low", "high", "edges", "from", "to", "by", "domain", "missing", "outside")
PUBLIC, BOUGHT, FROM_DATA = "public", "bought", "from data"  # where a column's domain is from
OPEN = "open"  # in a subject, instead of the columns
PLACES = {"missing": (DROP, CELL), "outside": (DROP, CELL, CLAMP), "domain": (PUBLIC, BOUGHT, FROM_DATA)}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class Contract:
    """What a curator has signed; all of it is public, and none of it is learnt from the data.

    The ledger belongs to the table's name, its universe, its neighbours, its public number of people and who is a
    person (`subject`): a contract that differs in one of them is another contract, and finds no fresh budget in the old
    ledger. A domain that is marked as taken from the data is not signed yet: nothing may be spent (`must_be_public`).
    """

    path: Path
    source: str  # as written
    table: str | None
    engine: str | None  # by whom the rows are read, if not by the kind of the source
    delimiter: str | None  # between the fields of a CSV file, if it is no comma
    multiline: bool  # whether such fields hold line ends, in quotes
    name: str  # what the ledger knows the table by; the source as written, unless the contract says
    schema: Schema
    neighbors: Neighbors
    people: int | None  # their public number, under replace-one neighbours
    person: Person | None  # without one, each row is a person
    budget: Budget
    epsilon: Fraction  # as promised at the door
    delta: Fraction
    ledger: Path
    unsigned: tuple[tuple[str, str], ...] = ()  # the columns whose domain is from the data, and where that stands
    bought: tuple[str, ...] = ()  # the columns whose domain was released under the ledger
    open: bool = False  # whether the ledger was made before the domains were known, and is bound to no columns

    @classmethod
    def read(cls, path: str | os.PathLike[str], text: str | None = None) -> Contract:
        """Reads and checks a contract; touches neither the data nor the ledger. A `text` is one not yet written."""
        if not isinstance(path, str | os.PathLike) or "\0" in os.fsdecode(path):
            raise InvalidSchema(f"a contract is named by its path, not by {quoted(path)}. Nothing was spent.")
        file = Path(os.fsdecode(path))
        place = Place(file, text)
        said = _parsed(place)
        place.known(said, ROOMS, "")
        data, privacy = (_room(said, name, keys, place) for name, keys in (("data", DATA), ("privacy", PRIVACY)))
        source, schema = place.string(data, "data", "source"), _schema(said, place)
        table = place.string(data, "data", "table") if "table" in data else None
        if why := address.fault(source):
            place.refuse("data", 0, "source", why)
        engine = _engine(data, place)
        if engine is not None and address.is_server(source):
            place.refuse("data", 0, "engine", "a PostgreSQL server is read by tacit itself; leave the engine out")
        if address.is_server(source) and (table is None or address.parts(table) is None):
            where = "" if table is None else "table"
            place.refuse("data", 0, where, 'on a server table is a schema and a name: "public.people"')
        return cls(
            path=file,
            source=source,
            table=table,
            engine=engine,
            delimiter=place.string(data, "data", "delimiter") if "delimiter" in data else None,
            multiline=_multiline(data, place),
            name=place.string(data, "data", "name") if "name" in data else source,
            schema=schema,
            person=_person(data, schema, place),
            unsigned=tuple(
                (column["name"], place.at("columns", which, "domain"))
                for which, column in enumerate(said["columns"])
                if column.get("domain") == FROM_DATA
            ),
            bought=tuple(column["name"] for column in said["columns"] if column.get("domain") == BOUGHT),
            open=_open(privacy, place),
            ledger=_ledger(privacy, file, source, place),
            **_promise(privacy, place),
        )

    @property
    def location(self) -> str:
        """Where the data is: a server, or the source seen from the contract's folder; Spark has more places."""
        if self.engine is not None:
            elsewhere = _SCHEME.match(self.source) or os.path.isabs(self.source) or self.table is not None
            return self.source if elsewhere else "file://" + os.path.abspath(self.path.parent / self.source)
        return self.source if address.is_server(self.source) else os.path.join(self.path.parent, self.source)

    @property
    def relation(self) -> Relation:
        """Which two tables must be hard to tell apart, and how many rows a person has in the counts."""
        return Relation(self.neighbors, 1 if self.person is None else self.person.most_rows)

    @property
    def rows_public(self) -> bool:
        """Whether the number of rows is public: that of people is, and a row is a person."""
        return self.neighbors is Neighbors.REPLACE_ONE and self.person is None

    @property
    def counted(self) -> str:
        """What a count is of, in words."""
        return "people" if self.person is None else "rows"

    def must_be_public(self) -> None:
        """Refuses to spend while a domain in it is only what the data happened to hold."""
        if self.unsigned:
            name, where = self.unsigned[0]
            more = f"; so were those of {len(self.unsigned) - 1} more columns" if len(self.unsigned) > 1 else ""
            raise InvalidSchema(
                f"{where}: the domain of {quoted(name)} was taken from the data{more}. What was read off the rows "
                "tells about the people in them. Put there what everybody may know, add what may be and is not there, "
                f'and change the line to domain = "{PUBLIC}". Nothing was spent.'
            )

    @property
    def subject(self) -> str:
        """A short name of exactly this table, universe and relation: a ledger serves one subject only."""
        return self._subject(OPEN if self.open else self.schema.digest())

    @property
    def exact_subject(self) -> str:
        """The same with the columns, also where the ledger is bound to none: what was answered is of one universe."""
        return self._subject(self.schema.digest())

    def _subject(self, columns: str) -> str:
        said = json.dumps([self.name, self.table], ensure_ascii=True)
        name = self.name if len(self.name) <= 40 else f"{self.name[:39]}…"
        people = "" if self.people is None else f" of {self.people}"
        identity = hashlib.sha256(said.encode()).hexdigest()[:16]
        each = ""
        if self.person is not None:
            column = hashlib.sha256(self.person.column.encode()).hexdigest()[:16]
            each = f", {self.person.most_rows} rows of each {column}"
        return f"{name}; {identity}; schema {columns}; {self.neighbors.value}{people}{each}"

    @property
    def marks(self) -> dict[str, str]:
        """Where the domains are from that are not simply public."""
        return {name: FROM_DATA for name, _ in self.unsigned} | dict.fromkeys(self.bought, BOUGHT)

    def unlike(self, subject: str, own: str | None = None) -> str:
        """In what this contract differs from the one that a ledger was made for, or one of an exact subject."""
        kinds = ("the table's name", "the table's name", "the columns", "the neighbours", "the person and most_rows")
        pairs = zip(kinds, _parts(subject), _parts(own or self.subject), strict=True)
        return " and ".join(dict.fromkeys(kind for kind, old, new in pairs if old != new))

    def __str__(self) -> str:
        return f"{self.name}: {len(self.schema)} columns, {self.neighbors.value} neighbours, {self.budget}"


def _parts(subject: str) -> list[str]:
    """Name, identity, schema, neighbours, and who is a person."""
    *first, relation = ["", "", "", *subject.rsplit("; ", 3)][-4:]
    neighbors, _, person = relation.partition(", ")
    return [*first, neighbors, person]


def _multiline(data: Mapping[str, Any], place: Place) -> bool:
    said = data.get("multiline", False)
    if not isinstance(said, bool):
        place.refuse("data", 0, "multiline", f"multiline is true or false, not {quoted(said)}")
    return said


def _parsed(place: Place) -> dict[str, Any]:
    try:
        return tomllib.loads(place.text, parse_float=Decimal)  # decimals keep epsilon = 0.1 exact
    except tomllib.TOMLDecodeError as error:
        why = str(error)[:200]
    except (ValueError, RecursionError):
        why = "a number is too long, or lists are nested too deeply"
    raise InvalidSchema(f"{place.file} is not valid TOML: {why}. Nothing was spent.")


def _room(said: Mapping[str, Any], name: str, keys: tuple[str, ...], place: Place) -> dict[str, Any]:
    room = said.get(name)
    if room is None:
        raise InvalidSchema(
            f"{place.file} has no [{name}]; a contract has [data], [privacy] and [[columns]]. Nothing was spent."
        )
    if not isinstance(room, dict):
        place.refuse("", 0, name, f"{name} must be a table: write [{name}] on a line of its own")
    place.known(room, keys, name)
    return room


def _engine(data: Mapping[str, Any], place: Place) -> str | None:
    if "engine" not in data:
        return None
    if (engine := place.string(data, "data", "engine")) not in ENGINES:
        place.refuse("data", 0, "engine", f"engine must be {' or '.join(ENGINES)}, not {quoted(engine)}")
    return engine


def _schema(said: Mapping[str, Any], place: Place) -> Schema:
    columns = said.get("columns")
    if columns is None:
        drafted = place.drafted("[[columns]]")
        raise InvalidSchema(
            f"{place.file} declares no columns; write a [[columns]] for each"
            + (f", or fill in what is drafted from line {drafted} on" if drafted else "")
            + ". Nothing was spent."
        )
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        place.refuse("", 0, "columns", "each column is a table of its own: write [[columns]], in double brackets")
    made = []
    for which, column in enumerate(columns):
        place.known(column, COLUMN, "columns", which)
        for key, value in column.items():
            if why := _fault(key, value):
                place.refuse("columns", which, key, why)
        try:
            made.append(column_from({key: _plain(value) for key, value in column.items() if key != "domain"}))
        except InvalidSchema as error:
            raise place.wrap(error, "columns", which) from None
    try:
        return Schema(made)
    except InvalidSchema as error:
        raise place.wrap(error, "") from None


def _open(said: Mapping[str, Any], place: Place) -> bool:
    """Whether the domains were to be bought under this ledger."""
    if said.get("domains", PUBLIC) not in (PUBLIC, BOUGHT):
        place.refuse("privacy", 0, "domains", f"domains must be {PUBLIC} or {BOUGHT}, not {quoted(said['domains'])}")
    return said.get("domains") == BOUGHT


def _person(data: Mapping[str, Any], schema: Schema, place: Place) -> Person | None:
    """The column that tells people apart and the most rows of each: both, or neither."""
    given = [key for key in ("person", "most_rows") if key in data]
    if not given:
        return None
    if len(given) == 1:
        other = {"person": "most_rows, the most rows of one person that count", "most_rows": "person, their column"}
        place.refuse("data", 0, given[0], f"{given[0]} needs {other[given[0]]}")
    column = place.string(data, "data", "person")
    if column in schema.places:
        place.refuse("data", 0, "person", f"{quoted(column)} tells people apart, so it is none of the [[columns]]")
    try:
        return Person(column, data["most_rows"])
    except InvalidSchema as error:
        raise place.wrap(error, "data", 0, "most_rows") from None


def _fault(key: str, value: object) -> str | None:
    """What is wrong with one key of a column, seen alone."""
    if key in ("low", "high", "edges", "categories") and isinstance(value, str):
        return (
            f"{key} is {quoted(value)}; bounds and categories are public and written out here, "
            "never taken from the data"
        )
    if key in ("low", "high") and (isinstance(value, bool) or not isinstance(value, int)):
        return f"{key} must be a whole number, not {quoted(value)}"
    if key in ("edges", "categories") and not isinstance(value, list):
        return f"{key} must be a list in [ ], not {quoted(value)}"
    if key in ("from", "to") and (isinstance(value, datetime) or not isinstance(value, date | str)):
        return f"{key} must be a day like 2024-12-31, not {quoted(value)}"
    if key in PLACES and value not in PLACES[key]:
        return f"{key} must be one of {', '.join(PLACES[key])}, not {quoted(value)}"
    if any(isinstance(number, int) and abs(number) >= 2**63 for number in _listed(value)):
        return f"a whole number in {key} does not fit 64 bits"
    return None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _plain(value: Any) -> Any:
    """Decimals become floats where they are the edges of cells."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def _promise(said: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Neighbours, people and budget."""
    relations = [relation.value for relation in Neighbors]
    if (relation := place.string(said, "privacy", "neighbors")) not in relations:
        place.refuse("privacy", 0, "neighbors", f"neighbors must be {' or '.join(relations)}, not {quoted(relation)}")
    neighbors, people = Neighbors(relation), said.get("people")
    if neighbors is Neighbors.ADD_REMOVE and people is not None:
        place.refuse("privacy", 0, "people", "under add-remove neighbours the number of people is private; take it out")
    if neighbors is Neighbors.REPLACE_ONE and people is None:
        place.refuse("privacy", 0, "", "replace-one neighbours need people, their public number")
    if "epsilon" not in said:
        place.refuse("privacy", 0, "", "epsilon is missing; it is all that may ever be spent on this table")
    try:
        key = "people"
        if people is not None:
            whole(people, key, 1, MOST_PEOPLE, InvalidSchema)
        key = "epsilon"
        epsilon = checked_epsilon(said[key])
        key = "delta"
        delta = checked_delta(said.get(key, 0))
        budget = Budget.of(epsilon, delta)
    except (InvalidSchema, InvalidBudget) as error:
        raise place.wrap(error, "privacy", 0, key) from None
    return {"neighbors": neighbors, "people": people, "budget": budget, "epsilon": epsilon, "delta": delta}


def _ledger(said: Mapping[str, Any], file: Path, source: str, place: Place) -> Path:
    ledger = file.parent / place.string(said, "privacy", "ledger")
    taken = {os.path.realpath(file): "the contract", os.path.realpath(file.parent / source): "the data"}
    if other := taken.get(os.path.realpath(ledger)):
        place.refuse("privacy", 0, "ledger", f"ledger names the file of {other}; it needs a file of its own")
    return ledger
