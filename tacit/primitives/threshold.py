"""AboveThreshold: any number of queries, paid once, until one is above (Section 3.6, Alg. 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter, quoted
from tacit.primitives.additive import laplace_above, laplace_mass
from tacit.primitives.mechanism import chance, per_unit, positive, printed
from tacit.primitives.noise import Noise, checked_scale
from tacit.privacy.budget import Loss
from tacit.rational import Number, exact, whole


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A noisy threshold, in units of the public grid; secret, so it is not printed."""

    units: int = field(repr=False)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AboveThreshold:
    """Tells for one query after the other whether it is above a noisy threshold, and halts at the first that is.

    The threshold's noise has scale 2 Delta/eps, each query's 4 Delta/eps; `monotone`, 2 Delta/eps, for streams that one
    person all moves in one direction. Both are discrete Laplace on the public grid, which must divide the answers'.

    Privacy: eps-DP for any number of queries, chosen adaptively (Thm 3.23).
    Accuracy: Thm 3.24, `book_bound`; with the noise that each has, `error_bound`.

    >>> above = AboveThreshold(1, 100)
    >>> round(above.book_bound(0.05, queries=1000), 2), round(above.error_bound(0.05, queries=1000), 2)
    (84.77, 49.76)
    """

    # On the grid as on the line. Let one person move f_i by d_i units, |d_i| <= D, and fix the noise of the queries
    # before the k-th, which alone is above. Let g = max_{i<k} f_i + nu_i: the output is this iff g < t and
    # f_k + nu_k >= t. As g moves by at most D, shifting t with g and nu_k by the move of g less d_k, whole numbers of
    # at most D and 2D, keeps the output: a factor of at most exp(eps/2) each. If none is above, shifting t is enough.
    # Monotone: all d_i in [0, D]. Upwards, shift t by D and nu_k by D - d_k; downwards, t by 0 and nu_k by d_k: both
    # at most D, so that nu_k may have the scale of t. In general this loses up to 3/2 eps.

    epsilon: Fraction
    threshold: Fraction
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False
    grid: Fraction = Fraction(1, 1024)
    threshold_scale: Fraction = field(
        init=False, repr=False, compare=False
    )  # of the threshold's noise, in units of the grid
    query_scale: Fraction = field(init=False, repr=False, compare=False)  # of each query's
    norm: ClassVar[Norm] = Norm.LINF  # of one number all norms are alike

    def __init__(
        self,
        epsilon: Number,
        threshold: Number,
        sensitivity: Number = 1,
        monotone: bool = False,
        grid: Number = Fraction(1, 1024),
    ) -> None:
        if not isinstance(monotone, bool):
            raise InvalidParameter(f"monotone must be True or False, not {quoted(monotone)}. Nothing was drawn.")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "threshold", exact(threshold, "the threshold"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "the sensitivity"))
        object.__setattr__(self, "monotone", monotone)
        object.__setattr__(self, "grid", positive(grid, "the grid"))
        scale = 2 * per_unit(self.sensitivity, self.epsilon, self.grid)
        object.__setattr__(self, "threshold_scale", scale)
        object.__setattr__(self, "query_scale", scale if monotone else 2 * scale)

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    def check(self) -> None:
        checked_scale(self.threshold_scale)
        checked_scale(self.query_scale)

    def admit(self, size: int, grid: Fraction) -> None:
        self._steps(grid, size, 1)

    def start(self, noise: Noise) -> Waiting:
        return Waiting(self._bar() + int(noise.laplace(self.threshold_scale, 1)[0]))

    def step(self, state: Waiting, answer: OnGrid, noise: Noise) -> tuple[Waiting | None, bool]:
        """Whether the query is above; if it is, this was the last."""
        (units,) = self._units(answer, 1)
        above = units + int(noise.laplace(self.query_scale, 1)[0]) >= state.units
        return (None, True) if above else (state, False)

    def probabilities(self, answers: OnGrid) -> NDArray[np.float64]:
        """How likely it is to halt at each of these answers, and last, at none: the exact sum over the threshold."""
        thresholds = np.arange(-(reach := ceil(45 * self.threshold_scale)), reach + 1)
        waiting = laplace_mass(thresholds, float(self.threshold_scale))
        halts = []
        for units in self._units(answers, answers.units.size):
            above = laplace_above(self._bar() + thresholds - units, float(self.query_scale))
            halts.append(float(waiting @ above))
            waiting = waiting * laplace_above(units + 1 - self._bar() - thresholds, float(self.query_scale))  # symmetry
        return np.array([*halts, float(waiting.sum())])

    def error_bound(self, beta: float, *, queries: int) -> float:
        """The alpha of Thm 3.24 with (4 ln(2k/beta) + 2 ln(2/beta)) Delta/eps, each term rounded up to the grid."""
        k, unit = whole(queries, "the number of queries", 1, 2**62), float(self.grid)
        threshold = ceil(float(self.threshold_scale) * log(2 / chance(beta)))
        return (threshold + ceil(float(self.query_scale) * log(2 * k / beta))) * unit

    def book_bound(self, beta: float, *, queries: int) -> float:
        """Thm 3.24: alpha = 8 (ln k + ln(2/beta)) Delta/eps, for real-valued noise.

        With probability 1 - beta, of k queries each "no" is below T + alpha and the "yes" is above T - alpha.
        """
        k = whole(queries, "the number of queries", 1, 2**62)
        return 8 * log(2 * k / chance(beta)) * float(self.sensitivity / self.epsilon)

    def _bar(self) -> int:
        # f + nu - rho is on the grid, so it reaches T iff it reaches T rounded up to the grid
        return ceil(self.threshold / self.grid)

    def _units(self, answer: OnGrid, size: int) -> list[int]:
        steps = self._steps(answer.grid, answer.units.size, size)
        return [unit * steps for unit in answer.units.ravel().tolist()]

    def _steps(self, coarse: Fraction, size: int, expected: int) -> int:
        fine = self.grid
        steps, rest = divmod(coarse.numerator * fine.denominator, coarse.denominator * fine.numerator)
        if rest or size != expected:
            raise InvalidParameter(
                f"this session takes one answer at a time, on a multiple of the grid {self.grid}; "
                f"not {size} on {coarse}. Nothing was drawn."
            )
        return steps

    __repr__ = printed
