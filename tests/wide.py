"""Tables of many columns, whose universe nobody can write out; nobody in them exists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import Categories, Schema

WIDE_PEOPLE, ROWS = 10**6, 50_000
ADULT = (2, 42, 16, 7, 15, 6, 5, 2, 41, 9, 8, 20, 3, 12, 30)  # values of each column, as a census has them


class Copied:
    """Rows, each of which stands for equally many people; a million people are counted in half a millisecond."""

    most_rows = 1

    def __init__(self, schema: Schema, codes: Sequence[NDArray[np.uint8]], people: int) -> None:
        self.schema, self._codes, self._copies = schema, codes, people // len(codes[0])
        self.known: dict[Columns, NDArray[np.int64]] = {}

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        return [self._counts(columns) for columns in column_sets]

    def _counts(self, columns: Columns) -> NDArray[np.int64]:
        if columns not in self.known:
            sizes = self.schema.sizes(columns)
            cells = int(np.prod(sizes))
            fused = np.zeros(len(self._codes[0]), dtype=np.min_scalar_type(cells))
            for name, size in zip(columns, sizes, strict=True):
                fused *= fused.dtype.type(size % cells)  # of one column all are zero
                fused += self._codes[self.schema.places[name]]
            self.known[columns] = np.bincount(fused, minlength=cells).reshape(sizes) * self._copies
        return self.known[columns]


def crowd(sizes: Sequence[int], seed: int = 1) -> Copied:
    """A million people with four hidden traits behind all columns, of which some depend on them more than others."""
    draw = np.random.default_rng([seed, 4])
    traits, codes = draw.normal(size=(ROWS, 4)), []
    for size in sizes:
        level = traits @ (draw.normal(size=4) * 0.6) + draw.normal(size=ROWS)
        cuts = np.quantile(level, np.sort(draw.random(size - 1)))
        codes.append(np.searchsorted(cuts, level).astype(np.uint8))
    schema = Schema(Categories(f"c{i}", tuple(range(size))) for i, size in enumerate(sizes))
    return Copied(schema, codes, WIDE_PEOPLE)
