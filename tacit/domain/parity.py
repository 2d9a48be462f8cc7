"""Parities: signed counts over yes-or-no columns, from which all their marginals can be built."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.query import Columns, Counts, LinearQuery, brief, sized
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery


@dataclass(frozen=True)
class Parity(LinearQuery):
    """The number of people with an even number of ones among some two-celled columns, less those with an odd one.

    Weights are +1 and -1: adding a row moves the answer by 1, replacing one by up to 2, and in no one direction.
    """

    columns: Columns
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(size != 2 for size in self.sizes):
            raise InvalidQuery(
                f"a parity is over columns of two cells; {brief(', '.join(self.columns))} have {self.sizes}. "
                "Nothing was spent."
            )

    @classmethod
    def over(cls, schema: Schema, *columns: str) -> Parity:
        return cls(*sized(schema, columns))

    @property
    def size(self) -> int:
        return 1

    def units(self, *tables: Counts) -> NDArray[Any]:
        table = tables[0].reshape(self.sizes)
        for _ in self.sizes:
            table = table[0] - table[1]
        return np.asarray(table).reshape(1)

    def _matrix(self) -> NDArray[np.int64]:
        signs = np.ones(1, dtype=np.int64)
        for _ in self.sizes:
            signs = np.kron(np.array([1, -1]), signs)
        return signs.reshape(1, -1)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1 if neighbors is Neighbors.ADD_REMOVE else 2)

    def monotone(self, neighbors: Neighbors) -> bool:
        return False
