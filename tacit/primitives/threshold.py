"""Any number of queries, paid once, until one is above a threshold, or until c are (Section 3.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter, quoted
from tacit.primitives.additive import each, laplace_above, laplace_mass
from tacit.primitives.mechanism import chance, per_unit, positive, printed
from tacit.primitives.noise import Noise, checked_scale
from tacit.privacy.budget import Loss
from tacit.rational import Number, exact, whole

MOST_ABOVE = 10**6  # answers above the threshold of one session


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A noisy threshold, in units of the public grid; secret, so it is not printed."""

    units: int = field(repr=False)
    left: int = field(default=1, repr=False)  # answers above, until it halts


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
        _steps(self.grid, grid, size, 1)

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
        steps = _steps(self.grid, answer.grid, answer.units.size, size)
        return [unit * steps for unit in answer.units.ravel().tolist()]

    __repr__ = printed


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SparseVector:
    """Tells for one query after the other whether it is above one noisy threshold, and halts at the c-th that is.

    The threshold is drawn once. Its noise has scale Delta/eps1, each query's 2c Delta/eps2, or c Delta/eps2 where they
    are `monotone`; eps1 + eps2 = eps (Lyu, Su & Li 2017). Neither falls below zero: both are geometric on the grid.

    Privacy: eps-DP for any number of queries, chosen adaptively.
    Accuracy: a "no" is hardly above the threshold, however many are asked, `no_bound`; a "yes" is not far below it,
    `yes_bound`.

    >>> vector = SparseVector(1, 100, 20)
    >>> round(vector.no_bound(0.05), 1), round(vector.yes_bound(0.05, queries=1000), 1)
    (38.0, 428.9)
    """

    # Let one person move f_i by d_i units, |d_i| <= D, and fix the noise of the queries that are below. Let g be the
    # largest of their f_i + nu_i: the outcome is this iff g < t and f_k + nu_k >= t for the c or fewer that are above.
    # g moves by at most D, so shifting t up by D and each such nu_k up by D - d_k, from 0 to 2D, keeps the outcome.
    # All shifts are upwards, on the way there as on the way back: noise that only has to be as likely further up, but
    # for a factor, may have nothing below zero. The factors are exp(eps1) and c times exp(eps2/c), at the most.
    # Monotone: all d_i in [0, D]. Upwards, as above, with D - d_k at most D; downwards g does not rise, so that t stays
    # and nu_k is shifted up by d_k, at most D. The direction is that of the person, one for the whole session.

    epsilon: Fraction
    threshold: Fraction
    count: int
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False
    grid: Fraction = Fraction(1, 1024)
    threshold_scale: Fraction = field(init=False, repr=False, compare=False)  # in units of the grid
    query_scale: Fraction = field(init=False, repr=False, compare=False)
    norm: ClassVar[Norm] = Norm.LINF

    def __init__(
        self,
        epsilon: Number,
        threshold: Number,
        count: int,
        sensitivity: Number = 1,
        monotone: bool = False,
        grid: Number = Fraction(1, 1024),
    ) -> None:
        if not isinstance(monotone, bool):
            raise InvalidParameter(f"monotone must be True or False, not {quoted(monotone)}. Nothing was drawn.")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "threshold", exact(threshold, "the threshold"))
        object.__setattr__(self, "count", whole(count, "the number of answers above", 1, MOST_ABOVE))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "the sensitivity"))
        object.__setattr__(self, "monotone", monotone)
        object.__setattr__(self, "grid", positive(grid, "the grid"))
        first, rest = split_without_refresh(self.epsilon, self.count, monotone=monotone)
        moved = self.count * (1 if monotone else 2) * self.sensitivity
        object.__setattr__(self, "threshold_scale", per_unit(self.sensitivity, first, self.grid))
        object.__setattr__(self, "query_scale", per_unit(moved, rest, self.grid))

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    def check(self) -> None:
        checked_scale(self.threshold_scale)
        checked_scale(self.query_scale)

    def admit(self, size: int, grid: Fraction) -> None:
        _steps(self.grid, grid, size, 1)

    def start(self, noise: Noise) -> Waiting:
        bar = ceil(self.threshold / self.grid)
        return Waiting(bar + int(noise.geometric(self.threshold_scale, 1)[0]), self.count)

    def step(self, state: Waiting, answer: OnGrid, noise: Noise) -> tuple[Waiting | None, bool]:
        """Whether the query is above; with the last that may be, it halts."""
        units = int(answer.units.ravel()[0]) * _steps(self.grid, answer.grid, answer.units.size, 1)
        if units + int(noise.geometric(self.query_scale, 1)[0]) < state.units:
            return state, False
        return (Waiting(state.units, state.left - 1) if state.left > 1 else None), True

    def no_bound(self, beta: float) -> float:
        """With probability 1 - beta no query is told "no" that is further above the threshold than this."""
        return _quantile(self.threshold_scale, chance(beta)) * float(self.grid)

    def yes_bound(self, beta: float, *, queries: int) -> float:
        """With probability 1 - beta none of so many queries is told "yes" that is further below it than this."""
        return _quantile(self.query_scale, each(beta, queries)) * float(self.grid)

    __repr__ = printed


def split_without_refresh(epsilon: Number, count: int, *, monotone: bool = False) -> tuple[Fraction, Fraction]:
    """How one noisy threshold for all c answers shares epsilon with the queries: 1 : (2c)^(2/3), monotone 1 : c^(2/3).

    Accuracy: the variance of a query's noise and the threshold's together is least (Lyu, Su & Li 2017).
    """
    total, c = exact(epsilon, "epsilon"), whole(count, "the number of answers above", 1, MOST_ABOVE)
    share = Fraction(round(2**40 / (1 + (c if monotone else 2 * c) ** (2 / 3))), 2**40)
    return share * total, (1 - share) * total


def geometric_above(z: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P[Z >= z] of P[z] ~ exp(-z/scale) on 0, 1, 2, ..."""
    return np.asarray(np.exp(-np.maximum(z, 0) / scale))


def _quantile(scale: Fraction, beta: float) -> int:
    # P[Z > m] = exp(-(m + 1)/scale)
    return max(0, ceil(-log(beta) * float(scale)) - 1)


def _steps(fine: Fraction, coarse: Fraction, size: int, expected: int) -> int:
    steps, rest = divmod(coarse.numerator * fine.denominator, coarse.denominator * fine.numerator)
    if rest or size != expected:
        raise InvalidParameter(
            f"this session takes one answer at a time, on a multiple of the grid {fine}; "
            f"not {size} on {coarse}. Nothing was drawn."
        )
    return steps
