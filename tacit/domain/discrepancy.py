"""Where a synopsis is wrong along an ordered column: what a search over all its intervals needs (Def. 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.interval import Prefixes
from tacit.domain.query import Columns, Counts, Marginal, Query, brief
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.score import Answering, believed
from tacit.domain.workload import Workload


@dataclass(frozen=True, eq=False)
class Discrepancy(Query):
    """How many more people each cell of an ordered column holds than a synopsis says; sums over a run are its error.

    The synopsis's prefix sums are rounded, so that the sum over any run is off by at most one person.
    Sensitivity: that of the marginal, as what the synopsis says is public.
    """

    columns: Columns
    sizes: tuple[int, ...]
    synopsis: Answering

    @classmethod
    def over(cls, schema: Schema, column: str, synopsis: Answering) -> Discrepancy:
        prefixes = Prefixes.over(schema, column)
        return cls(prefixes.columns, prefixes.sizes, synopsis)

    @property
    def reads(self) -> tuple[Columns, ...]:
        return (self.columns,)

    @property
    def size(self) -> int:
        return self.sizes[0]

    @cached_property
    def _believed(self) -> NDArray[np.int64]:
        upto = believed(Workload((Prefixes(self.columns, self.sizes),)), self.synopsis)
        return np.diff(upto, prepend=0)

    def units(self, *tables: Counts) -> NDArray[Any]:
        return np.asarray(tables[0].reshape(self.sizes) - self._believed)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Marginal(self.columns, self.sizes).sensitivity(norm, neighbors)

    def check(self, schema: Schema) -> None:
        Marginal(self.columns, self.sizes).check(schema)

    def __str__(self) -> str:
        return f"Discrepancy({brief(', '.join(self.columns))})"
