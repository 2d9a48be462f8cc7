"""The tables on which the offline mechanisms are measured; nobody in them exists."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from doubles import Rows
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import Categories, Schema

PEOPLE, BINARY = 50_000, 14


class Counted(Rows):
    """Rows whose counts are remembered, as an engine remembers them."""

    def __init__(self, schema: Schema, codes: NDArray[np.int64]) -> None:
        super().__init__(schema, codes)
        self._known: dict[Columns, NDArray[np.int64]] = {}

    def project(self, columns: Columns) -> NDArray[np.int64]:
        if columns not in self._known:
            self._known[columns] = super().project(columns)
        return self._known[columns]


@lru_cache(1)
def binary(seed: int = 1) -> Counted:
    """50,000 people with 14 binary columns: three hidden traits behind them all, and two columns that follow others."""
    draw = np.random.default_rng(seed)
    traits = draw.normal(size=(PEOPLE, 3))
    loading, bias = draw.normal(size=(3, BINARY)) * 0.9, draw.normal(size=BINARY) * 0.7
    held = (traits @ loading + draw.normal(size=(PEOPLE, BINARY)) + bias > 0).astype(np.int64)
    held[:, 5] = np.where(draw.random(PEOPLE) < 0.9, held[:, 4] ^ held[:, 3], held[:, 5])
    held[:, 9] = np.where(draw.random(PEOPLE) < 0.8, held[:, 8] & held[:, 2], held[:, 9])
    return Counted(Schema(Categories(f"c{i}", (0, 1)) for i in range(BINARY)), held)
