"""One attribute of a person: finitely many public cells, and a place for whatever else stands in the data."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from tacit.errors import InvalidSchema, quoted
from tacit.rational import whole

Value: TypeAlias = str | int | float | bool

DROP, CELL, CLAMP = "drop", "cell", "clamp"  # places for a value that is missing or outside the domain
MISSING, OUTSIDE = "(missing)", "(outside)"  # the labels of those cells
MOST_CELLS, LONGEST_NAME = 10**6, 200


@dataclass(frozen=True)
class Column(ABC):
    """One attribute: finitely many cells, and a place for what is missing and for what is outside.

    A place is "drop" (the whole row is left out of every count), "cell" (a cell of its own), or, for
    ordered columns and values outside, "clamp" (the nearest end).
    """

    name: str
    missing: str = field(default=DROP, kw_only=True)
    outside: str = field(default=DROP, kw_only=True)

    @property
    @abstractmethod
    def domain(self) -> tuple[str, ...]:
        """The labels of the declared cells, in order."""

    @abstractmethod
    def locate(self, value: object) -> int | None:
        """The cell of a public constant; None where it is outside the domain; refuses a wrong type."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What a contract or a saved synopsis says of this column."""

    def __post_init__(self) -> None:
        checked_name(self.name)
        for place, allowed in ((self.missing, (DROP, CELL)), (self.outside, self._places())):
            if place not in allowed:
                raise InvalidSchema(
                    f"column {quoted(self.name)}: a place is one of {', '.join(allowed)}, not {quoted(place)}. "
                    "Nothing was spent."
                )

    def _places(self) -> tuple[str, ...]:
        return (DROP, CELL, CLAMP)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all cells: the domain, then the cells for missing and outside, where there are any."""
        extra = [label for place, label in ((self.missing, MISSING), (self.outside, OUTSIDE)) if place == CELL]
        return (*self.domain, *extra)

    @property
    def size(self) -> int:
        """How many cells the column has."""
        return self.domain_size + (self.missing == CELL) + (self.outside == CELL)

    @property
    def missing_cell(self) -> int | None:
        """Where a missing value goes; None if its row is dropped."""
        return self.domain_size if self.missing == CELL else None

    @property
    def outside_cell(self) -> int | None:
        """Where an outside value goes; None if its row is dropped or the value is clamped."""
        return self.size - 1 if self.outside == CELL else None

    @property
    def domain_size(self) -> int:
        """How many cells the declared domain has."""
        return len(self.domain)

    def _refuse(self, why: str) -> InvalidSchema:
        return InvalidSchema(f"column {quoted(self.name)}: {why}. Nothing was spent.")

    def _places_said(self) -> dict[str, Any]:
        return {"missing": self.missing, "outside": self.outside}


@dataclass(frozen=True)
class Categories(Column):
    """Named values, all texts, all whole numbers, or all truth values.

    >>> Categories("sex", ("F", "M", "X")).locate("M")
    1
    """

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if isinstance(self.values, str | bytes) or not isinstance(self.values, Iterable):
            raise self._refuse(f"categories are a list, not {quoted(self.values)}")
        object.__setattr__(self, "values", tuple(self.values))
        super().__post_init__()
        kinds = {type(value) for value in self.values}
        if not 1 <= len(self.values) <= MOST_CELLS:
            raise self._refuse(f"it needs 1 to {MOST_CELLS} categories, and has {len(self.values)}")
        if len(kinds) != 1 or not kinds <= {str, int, bool}:
            raise self._refuse("its categories must be all texts, all whole numbers, or all truth values")
        if len(set(self.values)) != len(self.values):
            raise self._refuse("a category stands in it twice")
        if MISSING in self.domain or OUTSIDE in self.domain:
            raise self._refuse(f"{MISSING} and {OUTSIDE} are reserved labels")
        if kinds == {int} and any(abs(value) >= 2**63 for value in self.values if isinstance(value, int)):
            raise self._refuse("a whole number in it does not fit 64 bits")
        object.__setattr__(self, "_cells", {value: cell for cell, value in enumerate(self.values)})

    @property
    def domain(self) -> tuple[str, ...]:
        return tuple(str(value) for value in self.values)

    @property
    def kind(self) -> type:
        """str, int or bool."""
        return type(self.values[0])

    @property
    def domain_size(self) -> int:
        return len(self.values)

    def _places(self) -> tuple[str, ...]:
        return (DROP, CELL)

    def locate(self, value: object) -> int | None:
        if type(value) is not self.kind:
            raise self._refuse(f"its values are of type {self.kind.__name__}, not {quoted(value)}")
        cells: dict[Value, int] = self._cells  # type: ignore[attr-defined]
        return cells.get(value)  # type: ignore[call-overload, no-any-return]

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "categories": list(self.values), **self._places_said()}


@dataclass(frozen=True)
class Integers(Column):
    """Whole numbers from low to high, both included, one cell each.

    >>> Integers("age", 0, 120).size
    121
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for end in ("low", "high"):
            bound = whole(getattr(self, end), f"column {quoted(self.name)}: {end}", -(2**62), 2**62, InvalidSchema)
            object.__setattr__(self, end, bound)
        if not 0 <= self.high - self.low < MOST_CELLS:
            raise self._refuse(f"its bounds {self.low} to {self.high} must rise and hold at most {MOST_CELLS} values")

    @property
    def domain(self) -> tuple[str, ...]:
        return tuple(str(value) for value in range(self.low, self.high + 1))

    @property
    def domain_size(self) -> int:
        return self.high - self.low + 1

    def locate(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refuse(f"its values are whole numbers, not {quoted(value)}")
        return value - self.low if self.low <= value <= self.high else None

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "low": self.low, "high": self.high, **self._places_said()}


@dataclass(frozen=True)
class Numbers(Column):
    """Real numbers cut at public edges: cells [e0, e1), [e1, e2), ..., the last one closed.

    >>> Numbers("income", (0, 1000, 2500.5)).labels
    ('[0, 1000)', '[1000, 2500.5]')
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.edges, str | bytes) or not isinstance(self.edges, Iterable):
            raise self._refuse(f"edges are a list, not {quoted(self.edges)}")
        object.__setattr__(self, "edges", tuple(self.edges))
        if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in self.edges):
            raise self._refuse("its edges must be numbers")
        if not all(abs(edge) <= 2**53 for edge in self.edges):  # NaN fails
            raise self._refuse("its edges must be finite and at most 2^53 in size")
        object.__setattr__(self, "edges", tuple(float(edge) + 0.0 for edge in self.edges))  # -0.0 + 0.0 is 0.0
        if not 2 <= len(self.edges) <= MOST_CELLS + 1:
            raise self._refuse(f"it needs 2 to {MOST_CELLS + 1} edges, and has {len(self.edges)}")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise self._refuse("its edges must rise strictly")

    @property
    def domain(self) -> tuple[str, ...]:
        ends = [written(edge) for edge in self.edges]
        cells = [f"[{low}, {high})" for low, high in pairwise(ends)]
        return (*cells[:-1], cells[-1][:-1] + "]")

    @property
    def domain_size(self) -> int:
        return len(self.edges) - 1

    def locate(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refuse(f"its values are numbers, not {quoted(value)}")
        if not self.edges[0] <= value <= self.edges[-1]:
            return None
        return min(bisect_right(self.edges, value), len(self.edges) - 1) - 1

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "edges": list(self.edges), **self._places_said()}


def written(edge: float) -> str:
    """The shortest decimal that reads back as this edge.

    >>> written(1000.0), written(0.1), written(1e-7)
    ('1000', '0.1', '1e-07')
    """
    return repr(edge).removesuffix(".0")


def checked_name(name: object) -> str:
    """A column name that can stand in a file, a predicate and a message."""
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or name != name.strip():
        raise InvalidSchema(
            f"a column name is a text of 1 to {LONGEST_NAME} characters without blanks around it, "
            f"not {quoted(name)}. Nothing was spent."
        )
    if any(unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for letter in name):
        raise InvalidSchema(f"column name {quoted(ascii(name))} holds a control character. Nothing was spent.")
    return name
