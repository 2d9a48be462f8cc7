"""Answers on a public grid: the only form in which a true answer may meet noise (Remark 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, InvalidQuery
from tacit.rational import exact

FINEST_GRID = 2**22  # no grid of weights has a finer step than 1/this: then 2^40 people fit 64 bits, weights and all


def one_part(grid: object) -> Fraction:
    """A grid of weights or of scores: one part in 1 to `FINEST_GRID`, as a Fraction."""
    step = exact(grid, "a grid", InvalidQuery)
    if step.numerator != 1 or step.denominator > FINEST_GRID:
        raise InvalidQuery(f"a grid of weights or of scores is one part in 1 to {FINEST_GRID}. Nothing was spent.")
    return step


class Norm(Enum):
    """How far a vector moved: the sum of the moves, the root of the sum of squares, or the largest."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True)
class OnGrid:
    """A vector of answers, exactly `units * grid`; units are whole, the grid is public and rational."""

    units: NDArray[np.int64]
    grid: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.units.dtype != np.int64:  # others would wrap or round where they meet noise
            raise InvalidParameter(f"answers on a grid are 64-bit integers, not {self.units.dtype}. Nothing was drawn.")

    def plus(self, noise: NDArray[np.int64]) -> NDArray[Any]:
        """The noisy answers, still on the grid; whole numbers where the grid is 1."""
        if noise.shape != self.units.shape:  # spread over several draws, one answer would be given several times
            raise InvalidParameter(
                f"noise of shape {noise.shape} does not fit answers of shape {self.units.shape}. Nothing was released."
            )
        noisy = self.units + noise
        return noisy if self.grid == 1 else noisy * float(self.grid)
