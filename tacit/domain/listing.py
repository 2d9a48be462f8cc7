"""The values that a column holds, each with how many rows have it: asked before the column has a domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.column import MISSING, OUTSIDE, checked_name
from tacit.domain.grid import Norm
from tacit.domain.query import MOST_QUERY_CELLS, Columns, Counts, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery
from tacit.rational import sqrt_up, whole

Listed: TypeAlias = Iterable[tuple[Sequence[bytes], NDArray[np.int64]]]  # each value once, with its count, above 0


@dataclass(frozen=True)
class Values(Query):
    """How many rows hold each value of a column: a histogram whose cells are all texts, of which most are empty.

    A table that has no domain for the column gives the counts that are not zero, value by value, as `Listed`; over a
    domain they are the column's marginal.
    """

    column: str
    cells: int = 1  # of the column's domain, where it has one

    def __post_init__(self) -> None:
        checked_name(self.column)
        whole(self.cells, "the number of cells", 1, MOST_QUERY_CELLS, InvalidQuery)

    @property
    def reads(self) -> tuple[Columns, ...]:
        return ((self.column,),)

    @property
    def size(self) -> int:
        return self.cells

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.asarray(tables[0]).reshape(-1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        # a row stands in one cell; one that is replaced leaves it, enters another, or both
        if neighbors is Neighbors.ADD_REMOVE or norm is Norm.LINF:
            return Fraction(1)
        return Fraction(2) if norm is Norm.L1 else sqrt_up(Fraction(2))

    def check(self, schema: Schema) -> None:
        _ = schema[self.column]

    def __str__(self) -> str:
        return f"Values({self.column!r})"


def clean(value: bytes, longest: int) -> str | None:
    """The text that can be a category, if the bytes are one: printable UTF-8, not long, without blanks around.

    >>> clean("Zürich".encode(), 64), clean(b" F", 64), clean(b"\\xff", 64), clean(b"a\\x00", 64), clean(b"", 64)
    ('Zürich', None, None, None, None)
    """
    if not 0 < len(value) <= longest:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and text.strip() == text and text not in (MISSING, OUTSIDE) else None
