"""Choosing one candidate by its score: the exponential mechanism and noisy maxima (Sections 3.3 and 3.4).

Every candidate and every score range is fixed before the data are seen, and only the index is released (E9).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter, quoted
from tacit.primitives.additive import each, laplace_above, laplace_mass
from tacit.primitives.mechanism import chance, per_unit, positive, printed
from tacit.primitives.noise import Noise, checked_rate, checked_scale
from tacit.privacy.budget import Budget, Loss
from tacit.rational import Number, whole

_DEEPEST = 2**62  # units below the best at which all scores count alike
_MOST_CANDIDATES = 2**40
_MOST_DRAWS = 10**7  # held in memory at once, after the charge
_MOST_ANSWERS = 2**20 - 1  # among which a run is chosen
_MOST_TERMS = 2 * 10**7  # of an exact law


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Exponential:
    """Chooses r with probability proportional to exp(eps u(x, r) / 2 Delta_u), exactly (Def. 3.4).

    Privacy: eps-DP (Thm 3.10) and, since its log-ratios span at most eps, eps^2/8-zCDP (Cesar & Rogers 2021).
    With `monotone` the 2 is dropped, and both hold for scores that one person all moves in one direction.
    With `draws` it makes so many independent choices from the same scores, and costs as much as all of them (Thm 3.16).
    Accuracy: Thm 3.11 and Cor. 3.12, `book_bound`; exactly in the worst case, `error_bound`.

    >>> Exponential(1).probabilities(OnGrid(np.array([0, 1, 2]))).round(6).tolist()
    [0.186324, 0.307196, 0.50648]
    """

    # Bounded range. Let d_r = u(y, r) - u(x, r) and s the rate. Then ln P_y[r]/P_x[r] = s d_r - ln Z_y/Z_x, and the
    # second term is the same for all r. In general |d_r| <= Delta and s = eps/2Delta; monotone, all d_r lie in
    # [0, Delta] or all in [-Delta, 0], and s = eps/Delta: either way the log-ratios lie in an interval of length eps.
    # It contains 0, as two distributions cannot be ordered everywhere: eps-DP.
    # zCDP. Let L be the log-ratio under P_x and K(t) = ln E exp(tL): K(0) = K(1) = 0, and K'' <= eps^2/4, the variance
    # of something that lies in an interval of length eps. So K(a) <= a(a-1) eps^2/8, and D_a = K(a)/(a-1).

    epsilon: Fraction
    monotone: bool = False
    draws: int = 1
    norm: ClassVar[Norm] = Norm.LINF

    def __init__(self, epsilon: Number, monotone: bool = False, draws: int = 1) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "monotone", _truth(monotone))
        object.__setattr__(self, "draws", whole(draws, "the number of draws", 1, _MOST_DRAWS))

    def loss(self) -> Loss:
        return Loss.bounded_range(self.epsilon) * self.draws

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_rate(self.rate(sensitivity, grid))

    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> int | NDArray[np.int64]:
        """The index of the chosen candidate, or one for each of several draws."""
        chosen = noise.weighted(below_best(answer.units), self.rate(sensitivity, answer.grid), self.draws)
        return chosen if self.draws > 1 else int(chosen[0])

    def rate(self, sensitivity: Number = 1, grid: Number = 1) -> Fraction:
        """By how much the exponent falls for each unit of the grid below the best."""
        return _rate(self.epsilon, self.monotone, sensitivity, grid)

    def probabilities(self, answer: OnGrid, sensitivity: Number = 1) -> NDArray[np.float64]:
        """How likely each candidate is to be chosen, in each draw."""
        weights = np.exp(-float(self.rate(sensitivity, answer.grid)) * below_best(answer.units))
        return np.asarray(weights / weights.sum())

    def error_bound(self, beta: float, *, candidates: int, optimal: int = 1, sensitivity: Number = 1) -> float:
        """The least e such that, whatever the scores, a choice is more than e below the best with a chance <= beta.

        At worst all others are just as far below: (m - k) exp(-rate e) against k, in each draw.
        """
        beta, m, k = each(beta, self.draws), *_counted(candidates, optimal)
        return max(0.0, log((m - k) / k * (1 - beta) / beta)) / float(self.rate(sensitivity)) if m > k else 0.0

    def book_bound(self, beta: float, *, candidates: int, optimal: int = 1, sensitivity: Number = 1) -> float:
        """Thm 3.11: (2 Delta/eps)(ln(|R|/|R_OPT|) + ln(1/beta)); Cor. 3.12 where one candidate is the best.

        Of several draws, each has its part of beta.
        """
        m, k = _counted(candidates, optimal)
        return log(m * self.draws / (k * chance(beta))) / float(self.rate(sensitivity))

    __repr__ = printed


@dataclass(frozen=True, slots=True, init=False, repr=False)
class NoisyMax:
    """Adds noise of scale 2 Delta/eps to every score and tells which is largest (Claim 3.9, Thm 3.13, E8, E11).

    With `noise="exponential"` the noise is one-sided, which is permute-and-flip, not the exponential mechanism.
    With `monotone` the scale is Delta/eps, for scores that one person all moves in one direction.

    Privacy: eps-DP, hence (eps tanh(eps/2))-zCDP, for both noises; neither has bounded range.
    Accuracy: Thm 3.8 for Laplace noise, Cor. 3.12 for one-sided, `book_bound`; in the worst case, `error_bound`.

    >>> NoisyMax(1, "exponential").probabilities(OnGrid(np.array([0, 1, 2]))).round(6).tolist()
    [0.146751, 0.266077, 0.587172]
    """

    # eps-DP. Fix the noise of all candidates but i, and the order that breaks ties, which knows nothing of the data.
    # Then i wins iff r_i >= r*, where r* = max_j (u_j + r_j + [j goes before i]) - u_i. A neighbour moves r* by at most
    # 2 Delta; by at most Delta if all scores move in one direction, as then both terms do. And P[r_i >= r* + d] >=
    # exp(-d/scale) P[r_i >= r*] for the discrete Laplace on the integers and for the exponential on the reals.
    # Not bounded range: from scores (0, 0) to (-Delta, Delta), permute-and-flip has the log-ratios -eps and
    # ln(2 - exp(-eps)), which are further apart than eps; to first order KL is eps^2/2, so zCDP has no room either.
    # Laplace's are up to 1.17 eps apart with five candidates, and their divergence is above eps^2/8.

    epsilon: Fraction
    noise: Literal["laplace", "exponential"] = "laplace"
    monotone: bool = False
    norm: ClassVar[Norm] = Norm.LINF

    def __init__(
        self, epsilon: Number, noise: Literal["laplace", "exponential"] = "laplace", monotone: bool = False
    ) -> None:
        if noise not in ("laplace", "exponential"):
            raise InvalidParameter(f"noise must be 'laplace' or 'exponential', not {quoted(noise)}. Nothing was drawn.")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "monotone", _truth(monotone))

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_scale(1 / self.rate(sensitivity, grid))

    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> int:
        """The index of the winner, and nothing else."""
        rate, below = self.rate(sensitivity, answer.grid), below_best(answer.units)
        if self.noise == "laplace":
            # The largest scale is 2^40, so a sum leaves int64 with a probability below exp(-2^20).
            noisy = noise.laplace(1 / rate, below.size) - below
            winners = np.flatnonzero(noisy == noisy.max())
        else:
            # Noisy scores with one-sided noise that reach the best true score: candidate j with probability
            # exp(-rate (best - u_j)), independently, and the best always. The largest is one of them; given which
            # they are, their excesses are again exponential (no memory), so each is the largest alike.
            winners = np.flatnonzero(noise.bernoulli_exp(below, rate))
        # an order drawn at random puts each of those that tie first alike
        return int(winners[0] if winners.size == 1 else winners[noise.uniform(winners.size, 1)[0]])

    def rate(self, sensitivity: Number = 1, grid: Number = 1) -> Fraction:
        """One over the scale of the noise, in units of the grid."""
        return _rate(self.epsilon, self.monotone, sensitivity, grid)

    def probabilities(self, answer: OnGrid, sensitivity: Number = 1) -> NDArray[np.float64]:
        """How likely each candidate is to win, for few candidates: the exact sum over the noise and the ties."""
        rate, below = float(self.rate(sensitivity, answer.grid)), below_best(answer.units)
        # Of t others that are tied with it a candidate beats all with probability 1/(1+t), the integral of x^t:
        # so over independent ties, it is the integral of prod_j (P[j is below] + P[j ties] x), a polynomial.
        nodes, weights = np.polynomial.legendre.leggauss(
            whole(below.size, "the number of candidates", 1, 1000) // 2 + 1
        )
        if self.noise == "exponential":
            ties = np.exp(-rate * below)[np.newaxis]
            return _wins(1 - ties, ties, nodes, weights)
        reach = ceil(45 / rate)  # beyond it lie less than exp(-45)
        span = int(below.max()) + 2 * reach + 1
        if span * below.size * nodes.size > _MOST_TERMS:
            raise InvalidParameter("the exact law of this many candidates on so fine a grid is too long a sum.")
        at = np.arange(-int(below.max()) - reach, reach + 1)[:, np.newaxis] + below  # noise that puts each at one level
        return _wins(laplace_above(1 - at, 1 / rate), laplace_mass(at, 1 / rate), nodes, weights)

    def error_bound(self, beta: float, *, candidates: int, sensitivity: Number = 1, grid: Number = 1) -> float:
        """An e such that, whatever the scores, the winner is more than e below the best with a chance <= beta.

        At worst all others are just as far below. Laplace: each beats the best as two noises differ; one-sided: the
        others reach it with probability p each, and one of those who do wins: 1 - (1 - (1-p)^m)/(mp), exactly.
        """
        beta, rate, unit = chance(beta), float(self.rate(sensitivity, grid)), float(positive(grid, "the grid"))
        m, _ = _counted(candidates, 1)

        def wrong(units: int) -> float:
            if self.noise == "laplace":
                return (m - 1) * _beaten(units, rate)
            p = exp(-rate * units)
            if m * p < 1e-4:
                return (m - 1) * p / 2  # Bonferroni, and no digits are lost
            return 1 + expm1(m * log1p(-p)) / (m * p)

        low, high = 0, 1
        while wrong(high) > beta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if wrong(middle) > beta else (low, middle)
        return (high - 1) * unit

    def book_bound(self, beta: float, *, candidates: int, sensitivity: Number = 1) -> float:
        """Laplace: 2 scale ln(m/beta), as no noise is larger than half of it (Thm 3.8); one-sided: Cor. 3.12."""
        both = 2 if self.noise == "laplace" else 1
        m, _ = _counted(candidates, 1)
        return both * log(m / chance(beta)) / float(self.rate(sensitivity))

    __repr__ = printed


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ExponentialRun:
    """Chooses a run of neighbouring answers, and a sign, by the signed sum over it: an exponential mechanism in O(N).

    With P_j the sum of the first j answers, (a, b) is chosen with probability proportional to
    exp(eps (P_b - P_a) / 2 Delta_1): the run from a to b, the other way round if b < a. There are (N + 1)^2 of them;
    but the weight is a product, so a and b are drawn apart, and that is the same law.

    Privacy: eps-DP and eps^2/16-zCDP, half of what one choice by Def. 3.4 costs.  Accuracy: Cor. 3.12, `error_bound`.

    >>> law = ExponentialRun(1).probabilities(OnGrid(np.array([0, 3, -1])))
    >>> [int(end) for end in np.unravel_index(law.argmax(), law.shape)]  # after the first answer or before it, to 2
    [0, 2]
    """

    # One person moves the answers by d with |d|_1 <= Delta_1, so P_j moves by D_j = d_1 + ... + d_j, and all D_j lie in
    # an interval of length Delta_1, for D_b - D_a is a sum over some of the d. The log-ratio of a's law is -s D_a and a
    # constant, with s = eps/2 Delta_1, so it lies in an interval of length eps/2; and so does that of b's. Given the
    # data the two are independent: twice the loss of bounded range eps/2. The sum of the log-ratios, s (D_b - D_a) and
    # a constant, lies in one of length eps: charged as one choice it would cost eps^2/8.

    epsilon: Fraction
    norm: ClassVar[Norm] = Norm.L1
    monotone: ClassVar[bool] = False

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @classmethod
    def of(cls, budget: Budget) -> ExponentialRun:
        """The one that spends all of this."""
        return cls(2 * (budget / 2).bounded_range)

    def loss(self) -> Loss:
        return Loss.bounded_range(self.epsilon / 2) * 2

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_rate(self.rate(sensitivity, grid))

    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> tuple[int, int]:
        """From where to where, in 0 .. N."""
        upto, rate = _upto(answer.units), self.rate(sensitivity, answer.grid)
        start = noise.weighted(below_best(-upto), rate, 1)
        end = noise.weighted(below_best(upto), rate, 1)
        return int(start[0]), int(end[0])

    def rate(self, sensitivity: Number = 1, grid: Number = 1) -> Fraction:
        """By how much the exponent falls for each unit of the grid below the best, of a sum as of either end."""
        return _rate(self.epsilon, False, sensitivity, grid)

    def probabilities(self, answer: OnGrid, sensitivity: Number = 1) -> NDArray[np.float64]:
        """How likely each run is: a row for each start, a column for each end."""
        upto, rate = _upto(answer.units), float(self.rate(sensitivity, answer.grid))
        start, end = (np.exp(-rate * below_best(sums)) for sums in (-upto, upto))
        return np.asarray(np.outer(start / start.sum(), end / end.sum()))

    def error_bound(self, beta: float, *, answers: int, sensitivity: Number = 1) -> float:
        """The least e such that a signed sum is more than e below the largest with a chance <= beta, by Def. 3.4 alone.

        At worst all others are just as far below. The best run comes with a start, so it is one of (N + 1)^2.
        """
        runs = (whole(answers, "the number of answers", 1, _MOST_ANSWERS) + 1) ** 2
        return Exponential(self.epsilon).error_bound(beta, candidates=runs, sensitivity=sensitivity)

    __repr__ = printed


def below_best(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """How far each score lies below the best, in units, no deeper than 2^62.

    max(u_r, max u - 2^62) moves no further than the scores do, and in the same direction if they share one, so what is
    cut off costs no privacy; and no difference overflows.
    """
    if units.ndim != 1 or not units.size:
        raise InvalidParameter("a choice needs at least one candidate, in one row of scores. Nothing was drawn.")
    best = units.max()
    if int(best) - int(units.min()) <= _DEEPEST:
        return np.asarray(best - units)
    depth = best.astype(np.uint64) - units.astype(np.uint64)  # modulo 2^64, hence exact
    return np.asarray(np.minimum(depth, np.uint64(_DEEPEST)).astype(np.int64))


def _upto(units: NDArray[np.int64]) -> NDArray[np.int64]:
    # clipping is 1-Lipschitz, answer by answer, and keeps every sum within 64 bits
    if units.ndim != 1 or not units.size:
        raise InvalidParameter("a run needs at least one answer, in one row. Nothing was drawn.")
    most = 2**61 // units.size
    return np.concatenate(([0], np.cumsum(np.clip(units, -most, most))))


def _rate(epsilon: Fraction, monotone: bool, sensitivity: Number, grid: Number) -> Fraction:
    width = per_unit(positive(sensitivity, "the sensitivity"), epsilon, positive(grid, "the grid"))
    return 1 / width if monotone else 1 / (2 * width)


def _wins(
    below: NDArray[np.float64], ties: NDArray[np.float64], nodes: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    # rows are levels, columns candidates: the sum over levels of ties_i times the integral over x of
    # prod_{j != i} (below_j + ties_j x)
    won = np.zeros(below.shape[1])
    for x, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        factors = below + ties * x
        before, after = np.ones_like(factors), np.ones_like(factors)
        np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
        after[:, :-1] = np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
        won += weight * (ties * before * after).sum(axis=0)
    return won


def _beaten(units: int, rate: float) -> float:
    # P[Z_1 - Z_2 > d] + P[Z_1 - Z_2 = d]/2 for two discrete Laplace: P[D = d] = t^2 q^d (d + A), t = tanh(rate/2)
    q = exp(-rate)
    a, t, d = (1 + q * q) / (1 - q * q), np.tanh(rate / 2), max(units, 0)
    beyond = q ** (d + 1) / (1 - q) * (d + 1 + q / (1 - q) + a)
    return float(t * t * (beyond + q**d * (d + a) / 2))


def _counted(candidates: int, optimal: int) -> tuple[int, int]:
    m = whole(candidates, "the number of candidates", 1, _MOST_CANDIDATES)
    return m, whole(optimal, "the number of best candidates", 1, m)


def _truth(monotone: object) -> bool:
    if not isinstance(monotone, bool):
        raise InvalidParameter(f"monotone must be True or False, not {quoted(monotone)}. Nothing was drawn.")
    return monotone
