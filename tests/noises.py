"""Noise for the tests of the primitives: written beforehand and remembered, or the system's, drawn in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.primitives.noise import SYSTEM

FALSE_ALARM = 1e-7  # of each statistical test


class Played:
    """Hands out the given draws one request after the other, and remembers what was asked for."""

    def __init__(self, *draws: Sequence[int] | int) -> None:
        self.draws = list(draws)
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, law: str) -> Callable[..., Any]:
        def draw(*parameters: Any) -> Any:
            self.asked.append((law, *parameters))
            return np.array(np.atleast_1d(self.draws.pop(0)), dtype=np.int64)

        return draw


class Stocked:
    """The system's noise, drawn for many equal requests at once: each draw is handed out once."""

    def __init__(self, bulk: int = 2**19) -> None:
        self.bulk = bulk
        self.stock: dict[Any, list[NDArray[Any]]] = {}

    def _from(self, key: Any, size: int, draw: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
        if not self.stock.get(key):
            rows = max(1, self.bulk // size)
            self.stock[key] = list(draw(rows).reshape(rows, size))
        return self.stock[key].pop()

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._from(("laplace", scale, size), size, lambda rows: SYSTEM.laplace(scale, rows * size))

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._from(("geometric", scale, size), size, lambda rows: SYSTEM.geometric(scale, rows * size))

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        return self._from(("uniform", below, size), 256 * size, lambda rows: SYSTEM.uniform(below, rows * 256 * size))[
            :size
        ]

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        def draw(rows: int) -> NDArray[Any]:
            return SYSTEM.bernoulli_exp(np.tile(exponents, rows), rate)

        return self._from(("flags", exponents.tobytes(), rate), exponents.size, draw)

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        return self._from(
            ("choices", exponents.tobytes(), rate, size),
            size,
            lambda rows: SYSTEM.weighted(exponents, rate, rows * size),
        )


def misfit(counts: NDArray[Any], law: NDArray[Any], draws: int) -> float:
    """The p-value of Pearson's test that so many draws fell like this; cells of fewer than ten are thrown together."""
    expected = np.append(law, max(0.0, 1 - law.sum())) * draws
    seen = np.append(counts, draws - counts.sum())
    rare = expected < 10
    expected, seen = np.append(expected[~rare], expected[rare].sum()), np.append(seen[~rare], seen[rare].sum())
    if expected[-1] < 1:
        assert seen[-1] < 40, "what hardly ever happens has happened often"
        expected, seen = expected[:-1], seen[:-1]
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def unlike(counts: NDArray[Any], law: NDArray[Any], other: NDArray[Any], draws: int) -> float:
    """The p-value that draws from a law fell so far towards another: the most powerful test between the two."""
    counts, law, other = (
        np.append(x, max(0.0, whole - x.sum())) for x, whole in ((counts, draws), (law, 1), (other, 1))
    )
    kept = (law > 1e-12) & (other > 1e-12)
    towards = np.log(other[kept] / law[kept])
    mean = law[kept] @ towards
    spread = np.sqrt(draws * (law[kept] @ towards**2 - mean**2))
    return float(2 * stats.norm.sf(abs(counts[kept] @ towards - draws * mean) / spread))


def count(values: NDArray[Any] | list[int], low: int, high: int) -> NDArray[np.int64]:
    """How often each of low .. high occurs."""
    inside = np.asarray(values)
    return np.bincount(inside[(inside >= low) & (inside <= high)] - low, minlength=high - low + 1)
