"""The universe X: a product of finite columns, declared in public before any data is read (Section 2.1)."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from math import prod
from typing import Any

from tacit.domain.column import (
    CELL,
    CLAMP,
    DROP,
    LONGEST_NAME,
    MISSING,
    MOST_CELLS,
    OUTSIDE,
    Categories,
    Column,
    Integers,
    Numbers,
    Value,
    checked_name,
    written,
)
from tacit.domain.dates import Dates
from tacit.errors import InvalidSchema, quoted

__all__ = [
    "CELL",
    "CLAMP",
    "DROP",
    "LONGEST_NAME",
    "MISSING",
    "MOST_CELLS",
    "MOST_COLUMNS",
    "OUTSIDE",
    "Categories",
    "Column",
    "Dates",
    "Integers",
    "Neighbors",
    "Numbers",
    "Schema",
    "Value",
    "checked_name",
    "column_from",
    "written",
]

MOST_COLUMNS = 10_000


class Neighbors(Enum):
    """Which two tables must be hard to tell apart (Def. 2.4 and the relation of chapters 4 to 6)."""

    ADD_REMOVE = "add-remove"  # one holds one more person than the other
    REPLACE_ONE = "replace-one"  # the same public number of people; one of them differs


def column_from(said: Mapping[str, Any]) -> Column:
    """The column that `describe` described."""
    if not isinstance(said, Mapping) or not all(isinstance(key, str) for key in said):
        raise InvalidSchema(f"a column is described by a table of keys, not {quoted(said)}. Nothing was spent.")
    said = dict(said)
    kinds: dict[str, tuple[type[Column], tuple[str, ...]]] = {
        "categories": (Categories, ("categories",)),
        "low": (Integers, ("low", "high")),
        "edges": (Numbers, ("edges",)),
        "from": (Dates, ("from", "to", "by")),
    }
    name = said.pop("name", None)
    for key, (kind, needed) in kinds.items():
        if key in said:
            if unknown := set(said) - {*needed, "missing", "outside"}:
                raise InvalidSchema(f"column {quoted(name)}: unknown {quoted(sorted(unknown)[0])}. Nothing was spent.")
            if lacking := set(needed) - set(said):
                raise InvalidSchema(f"column {quoted(name)}: {sorted(lacking)[0]} is missing. Nothing was spent.")
            if len(needed) == 1 and not isinstance(said[key], list | tuple):
                raise InvalidSchema(f"column {quoted(name)}: {key} must be a list. Nothing was spent.")
            places = {place: said[place] for place in ("missing", "outside") if place in said}
            return kind(name, *(said[part] for part in needed), **places)
    raise InvalidSchema(
        f"column {quoted(name)} needs its domain: categories = [...], low and high, edges = [...], or from, to "
        "and by. Nothing was spent."
    )


class Schema:
    """The public universe: the product of its columns' cells.

    >>> schema = Schema([Integers("age", 0, 99), Categories("sex", ("F", "M"))])
    >>> schema.names, schema.universe, schema["age"].size
    (('age', 'sex'), 200, 100)
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise InvalidSchema(f"a schema is made of a list of columns, not {quoted(columns)}. Nothing was spent.")
        self.columns = tuple(columns)
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            raise InvalidSchema(
                f"a schema has 1 to {MOST_COLUMNS} columns, not {len(self.columns)}. Nothing was spent."
            )
        if wrong := [column for column in self.columns if not isinstance(column, Column)]:
            raise InvalidSchema(f"a schema is made of columns, not {quoted(wrong[0])}. Nothing was spent.")
        self._by_name = {column.name: column for column in self.columns}
        folded: dict[str, str] = {}
        for column in self.columns:
            key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", column.name).casefold())
            if key in folded:
                raise InvalidSchema(
                    f"columns {quoted(folded[key])} and {quoted(column.name)} read the same. Nothing was spent."
                )
            folded[key] = column.name
        self.names = tuple(self._by_name)
        self.places = {name: place for place, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise InvalidSchema(f"no column {quoted(name)}; {self.nearest(name)} Nothing was spent.") from None

    def nearest(self, name: object) -> str:
        """The column that may have been meant, or those that there are: the end of a sentence."""
        from difflib import get_close_matches  # 2 ms that only a mistake should cost

        known = {column.casefold(): column for column in self.names[:1000]}
        if isinstance(name, str) and (close := get_close_matches(name[:LONGEST_NAME].casefold(), known, 1)):
            return f"did you mean {known[close[0]]}?"
        return f"the schema has {', '.join(self.names[:20])}{', ...' if len(self.names) > 20 else ''}."

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{column.name}: {column.size}' for column in self.columns)})"

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        """How many cells each of these columns has."""
        return tuple(self[name].size for name in names)

    def cells(self, names: Iterable[str]) -> int:
        """How many cells these columns have together."""
        return prod(self.sizes(names))

    @property
    def universe(self) -> int:
        """|X|, exactly, however large."""
        return prod(column.size for column in self.columns)

    @property
    def dropping(self) -> tuple[str, ...]:
        """The columns of which a missing or an outside value leaves its row out of every count."""
        return tuple(column.name for column in self.columns if DROP in (column.missing, column.outside))

    def describe(self) -> list[dict[str, Any]]:
        """What a contract or a saved synopsis says of the columns."""
        return [column.describe() for column in self.columns]

    @classmethod
    def of(cls, said: Iterable[Mapping[str, Any]]) -> Schema:
        """The schema that `describe` described."""
        if isinstance(said, str | Mapping) or not isinstance(said, Iterable):
            raise InvalidSchema(f"a schema is described by a list of columns, not {quoted(said)}. Nothing was spent.")
        return cls(column_from(column) for column in said)

    def digest(self) -> str:
        """A short name of exactly this universe: a ledger serves one universe only."""
        said = json.dumps(self.describe(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(said.encode()).hexdigest()[:32]
