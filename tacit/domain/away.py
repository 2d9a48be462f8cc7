"""How far one answer is from a public number: the questions of a sparse vector (Alg. 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.query import MOST_UNITS, Columns, Counts, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery, quoted


@dataclass(frozen=True)
class Away(Query):
    """|q(x) - v| for a public number v; towards +1 it is q(x) - v, towards -1 v - q(x), as the book asks (Alg. 6).

    v is rounded to the query's grid, in public. Sensitivity: as far as the query's, for |.| moves no further.
    """

    query: Query
    value: float
    towards: int = 0
    _units: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.query.size != 1 or self.towards not in (-1, 0, 1):
            raise InvalidQuery(
                f"one answer is away from one number, in direction -1, 0 or 1; not the {self.query.size} answers of "
                f"{self.query} in direction {quoted(self.towards)}. Nothing was spent."
            )
        if not (isfinite(self.value) and abs(self.value) / float(self.query.grid) < MOST_UNITS):
            raise InvalidQuery(
                f"an answer is away from a number of moderate size, not {quoted(self.value)}. Nothing was spent."
            )
        object.__setattr__(self, "_units", round(self.value / float(self.query.grid)))

    @property
    def grid(self) -> Fraction:  # type: ignore[override]
        return self.query.grid

    @property
    def public(self) -> float:
        """The number, as it stands on the grid."""
        return self._units * float(self.query.grid)

    @property
    def reads(self) -> tuple[Columns, ...]:
        return self.query.reads

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        apart = self.query.units(*tables) - self._units
        return np.asarray(np.abs(apart) if not self.towards else apart * self.towards)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return self.query.sensitivity(norm, neighbors)

    def monotone(self, neighbors: Neighbors) -> bool:
        return self.towards == 1 and self.query.monotone(neighbors)

    def check(self, schema: Schema) -> None:
        self.query.check(schema)

    def __str__(self) -> str:
        return f"Away({self.query})"
