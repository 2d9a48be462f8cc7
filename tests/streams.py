"""The exact law of what a sparse vector says: every pattern of "no" and "yes", by the sum over thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tacit.primitives.additive import laplace_above, laplace_mass
from tacit.primitives.threshold import AboveThreshold, SparseVector, geometric_above

Law = NDArray[np.float64]
Move = tuple[tuple[int, ...], tuple[int, ...]]
_FAR = 100  # scales, beyond which less than exp(-100) of a noise lies


@dataclass(frozen=True)
class Noisy:
    """One noise on whole numbers: none, Laplace, or geometric (nothing below zero)."""

    kind: str
    scale: float = 1.0

    def above(self, z: NDArray[np.int64]) -> Law:
        """P[Z >= z]."""
        if self.kind == "none":
            return (z <= 0).astype(float)
        return laplace_above(z, self.scale) if self.kind == "laplace" else geometric_above(z, self.scale)

    def below(self, z: NDArray[np.int64]) -> Law:
        """P[Z < z], without cancellation in the lower tail."""
        if self.kind == "none":
            return (z > 0).astype(float)
        return laplace_above(1 - z, self.scale) if self.kind == "laplace" else -np.expm1(-np.maximum(z, 0) / self.scale)

    def values(self, far: float = _FAR) -> tuple[NDArray[np.int64], Law]:
        if self.kind == "none":
            return np.zeros(1, np.int64), np.ones(1)
        reach = int(far * self.scale) + 2
        if self.kind == "laplace":
            z = np.arange(-reach, reach + 1)
            return z, laplace_mass(z, self.scale)
        z = np.arange(reach + 1)
        return z, -np.expm1(-1 / self.scale) * np.exp(-z / self.scale)


@dataclass(frozen=True)
class Vector:
    """A sparse vector: its two noises, after how many tops it halts, whether it then draws its threshold anew."""

    threshold: Noisy
    query: Noisy
    tops: int = 99
    redrawn: bool = False

    def law(self, answers: Sequence[int], far: float = _FAR) -> dict[tuple[int, ...], float]:
        """How likely each conversation is, about a threshold of 0; one that has halted is a shorter tuple."""
        patterns = [pattern for pattern in product((0, 1), repeat=len(answers)) if sum(pattern) <= self.tops]
        said = dict.fromkeys(self._said(pattern) for pattern in patterns)
        return {pattern: self.chance(answers, pattern, far) for pattern in said}

    def chance(self, answers: Sequence[int], pattern: Sequence[int], far: float = _FAR) -> float:
        """How likely one conversation is."""
        t, mass = self.threshold.values(far)
        weight, likely = mass, 1.0
        for answer, top in zip(answers, pattern, strict=False):
            weight = weight * (self.query.above(t - answer) if top else self.query.below(t - answer))
            if top and self.redrawn:
                likely, weight = likely * float(weight.sum()), mass
        return likely * float(weight.sum())

    def logs(self, answers: Sequence[int], far: float = _FAR) -> Law:
        with np.errstate(divide="ignore"):
            return np.log(np.array(list(self.law(answers, far).values())))

    def _said(self, pattern: tuple[int, ...]) -> tuple[int, ...]:
        tops = [place for place, top in enumerate(pattern) if top]
        return pattern[: tops[self.tops - 1] + 1] if len(tops) >= self.tops else pattern


def ours(mechanism: AboveThreshold | SparseVector, off: Fraction | int = 1) -> Vector:
    """The vector of a mechanism on whole numbers with the threshold 0; its noise multiplied, where it is to fail."""
    kind = "laplace" if isinstance(mechanism, AboveThreshold) else "geometric"
    threshold, query = (Noisy(kind, float(scale * off)) for scale in (mechanism.threshold_scale, mechanism.query_scale))
    return Vector(threshold, query, getattr(mechanism, "count", 1))


def both_ways(length: int, units: int, bases: Sequence[int], *, monotone: bool = False) -> list[Move]:
    """Every stream of these answers, and each neighbour that one person can make: shifts up, down and none at once."""
    step = (0, units) if monotone else (-units, 0, units)
    return [
        (base, tuple(a + d for a, d in zip(base, move, strict=True)))
        for base in product(bases, repeat=length)
        for move in product(step, repeat=length)
        if any(move)
    ]


def laws(vector: Vector, moves: Sequence[Move], far: float = _FAR) -> tuple[Law, Law]:
    """The logarithms of every conversation's chance before and after each move."""

    @cache
    def logs(answers: tuple[int, ...]) -> Law:
        return vector.logs(answers, far)

    return np.array([logs(one) for one, _ in moves]), np.array([logs(other) for _, other in moves])
