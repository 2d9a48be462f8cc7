"""The tables on which mechanisms are measured; nobody in them exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from doubles import Rows
from numpy.typing import NDArray

from tacit.domain.query import Columns, Counting
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


@lru_cache(2)
def binary(seed: int = 1, columns: int = BINARY) -> Counted:
    """50,000 people with 14 binary columns: three hidden traits behind them all, and two columns that follow others."""
    draw = np.random.default_rng(seed)
    traits = draw.normal(size=(PEOPLE, 3))
    loading, bias = draw.normal(size=(3, columns)) * 0.9, draw.normal(size=columns) * 0.7
    held = (traits @ loading + draw.normal(size=(PEOPLE, columns)) + bias > 0).astype(np.int64)
    held[:, 5] = np.where(draw.random(PEOPLE) < 0.9, held[:, 4] ^ held[:, 3], held[:, 5])
    held[:, 9] = np.where(draw.random(PEOPLE) < 0.8, held[:, 8] & held[:, 2], held[:, 9])
    return Counted(Schema(Categories(f"c{i}", (0, 1)) for i in range(columns)), held)


STREAM_PEOPLE, DIGITS = 10**6, 6


@lru_cache(2)
def digits(seed: int = 1) -> Counted:
    """A million people with 6 columns of ten values, |X| = 10^6: hidden traits behind all, one column after another."""
    draw = np.random.default_rng([seed, 2])
    traits = draw.normal(size=(STREAM_PEOPLE, 2))
    held = np.empty((STREAM_PEOPLE, DIGITS), dtype=np.int64)
    for column in range(DIGITS):
        level = traits @ (draw.normal(size=2) * 0.6) + draw.normal(size=STREAM_PEOPLE)
        cuts = np.quantile(level, np.sort(draw.random(9)))
        held[:, column] = np.searchsorted(cuts, level)
    follows = draw.random(STREAM_PEOPLE) < 0.3
    held[:, 5] = np.where(follows, (held[:, 4] + held[:, 3]) % 10, held[:, 5])
    return Counted(Schema(Categories(f"d{i}", tuple(range(10))) for i in range(DIGITS)), held)


def stream(schema: Schema, questions: int, seed: int = 1) -> Iterator[Counting]:
    """Conjunctions over one to three columns, each condition an interval of values or any set of them."""
    draw = np.random.default_rng([seed, 3])
    for _ in range(questions):
        names = draw.choice(schema.names, draw.integers(1, 4), replace=False)
        conditions: dict[str, Sequence[int]] = {}
        for name in sorted(names):
            size = schema[name].size
            if draw.random() < 0.5:
                first, last = sorted(draw.integers(0, size, 2).tolist())
                conditions[name] = range(first, last + 1)
            else:
                conditions[name] = np.flatnonzero(draw.random(size) < draw.uniform(0.1, 0.9)).tolist()
        yield Counting.where(schema, conditions)
