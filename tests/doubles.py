"""Stand-ins for tests: a table in memory, and noise that was written beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns, LinearQuery, Query
from tacit.domain.schema import Schema


class Rows:
    """A table as a matrix of codes; counts what the kernel asks for and remembers that it was asked."""

    most_rows = 1

    def __init__(self, schema: Schema, codes: NDArray[np.int64]) -> None:
        self.schema, self.codes = schema, codes
        self.read: list[tuple[Columns, ...]] = []

    def project(self, columns: Columns) -> NDArray[np.int64]:
        sizes = self.schema.sizes(columns)
        if not columns:
            return np.array(len(self.codes), dtype=np.int64)
        chosen = [self.codes[:, self.schema.names.index(name)] for name in columns]
        fused = np.ravel_multi_index(chosen, sizes) if len(self.codes) else np.zeros(0, dtype=np.int64)
        return np.bincount(fused, minlength=int(np.prod(sizes))).reshape(sizes)

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        self.read.append(tuple(column_sets))
        return [self.project(columns) for columns in column_sets]


class Scripted:
    """Noise that comes from a list, in the order in which it is asked for; everything else is zero or certain."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)
        self.scales: list[Fraction] = []

    def _next(self, size: int) -> NDArray[np.int64]:
        return np.array([self.draws.pop(0) if self.draws else 0 for _ in range(size)], dtype=np.int64)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        self.scales.append(scale)
        return self._next(size)

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        self.scales.append(variance)
        return self._next(size)

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        self.scales.append(scale)
        return self._next(size)

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        return self._next(size) % below

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        return self._next(size) > 0

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        return exponents == 0

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        self.scales.append(rate)
        return np.full(size, np.argmin(exponents))


class Stubborn:
    """An update rule that learns nothing: the hypothesis stays what it was, and remembers what it was told."""

    def __init__(self, hypothesis: Any) -> None:
        self.hypothesis = hypothesis
        self.told: list[tuple[LinearQuery, float, int | None]] = []

    def start(self, schema: Schema, total: float) -> Any:
        return self.hypothesis

    def __call__(self, hypothesis: Any, query: LinearQuery, value: float = 0.0, direction: int | None = None) -> Any:
        self.told.append((query, value, direction))
        return hypothesis

    def max_updates(self, schema: Schema) -> int:
        return 10**9

    def check(self, query: Query) -> None:
        pass
