"""Noise added to every answer: the Laplace and the Gaussian mechanism, on the answers' grid (Sections 3.3 and 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.primitives.mechanism import chance, per_unit, positive, printed
from tacit.primitives.noise import Noise, checked_scale, checked_variance
from tacit.privacy.budget import Loss
from tacit.rational import Number, whole

_ONE = Fraction(1)
_SUMMED = 4096  # a discrete Gaussian this narrow is summed, a wider one is bounded


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace:
    """Adds to each answer f_i(x) a discrete Laplace of scale Delta_1/eps (Defs. 3.2 and 3.3, Remark 2.1).

    Privacy: eps-DP (Thm 3.6): answers that move by d_i units change no probability by more than the factor
    exp(sum |d_i| / scale) <= exp(eps).  Accuracy: Thm 3.8, `book_bound`; exactly, `error_bound`.

    >>> Laplace("0.5"), Laplace(1).error_bound(0.05, coordinates=10_000)
    (Laplace(epsilon=1/2), 12.0)
    """

    epsilon: Fraction
    norm: ClassVar[Norm] = Norm.L1
    monotone: ClassVar[bool] = False

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_scale(self.scale(sensitivity, grid))

    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> NDArray[Any]:
        scale, units = per_unit(sensitivity, self.epsilon, answer.grid), answer.units
        return answer.plus(noise.laplace(scale, units.size).reshape(units.shape))

    def scale(self, sensitivity: Number = 1, grid: Number = 1) -> Fraction:
        """The scale of the noise, in units of the grid."""
        return per_unit(positive(sensitivity, "the sensitivity"), self.epsilon, positive(grid, "the grid"))

    def probabilities(self, units: Any, sensitivity: Number = 1, grid: Number = 1) -> NDArray[np.float64]:
        """How likely each noise is, in units of the grid."""
        return laplace_mass(np.asarray(units), float(self.scale(sensitivity, grid)))

    def deviation(self, sensitivity: Number = 1, grid: Number = 1) -> float:
        """The standard deviation of one answer: 2q/(1-q)^2 is the variance in units, q = exp(-1/scale)."""
        rate = 1 / max(float(self.scale(sensitivity, grid)), 1e-300)
        return float(positive(grid, "the grid")) * sqrt(2) * exp(-rate / 2) / -expm1(-rate)

    def error_bound(self, beta: float, *, coordinates: int = 1, sensitivity: Number = 1, grid: Number = 1) -> float:
        """The least e such that all errors are at most e with probability 1 - beta: the quantile of the maximum."""
        tail, b = each(beta, coordinates), float(self.scale(sensitivity, grid))
        # P[|Z| > m] = 2 q^(m+1)/(1+q) <= tail
        units = max(0, ceil(b * (log(2) - log1p(exp(-1 / b)) - log(tail))) - 1)
        return units * float(positive(grid, "the grid"))

    def book_bound(self, beta: float, *, coordinates: int = 1, sensitivity: Number = 1) -> float:
        """Thm 3.8: (Delta/eps) ln(k/beta), a union bound for real-valued noise; on a grid, round it up to the grid."""
        return float(self.scale(sensitivity)) * log(coordinates / chance(beta))

    __repr__ = printed


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian:
    """Adds to each answer f_i(x) a discrete Gaussian with sigma^2 = Delta_2^2 / (2 rho) (Def. 3.8, Section 3.5.3).

    Privacy: rho-zCDP, in any number of coordinates (Canonne, Kamath & Steinke 2020, Thm 4 and Cor. 8); never pure.
    Accuracy: sigma is the standard deviation (E14); `book_bound` for real-valued noise; exactly, `error_bound`.

    >>> Gaussian("1/8"), Gaussian("1/8").variance(), Gaussian("1/8").error_bound(0.05)
    (Gaussian(rho=1/8), Fraction(4, 1), 4.0)
    """

    rho: Fraction
    norm: ClassVar[Norm] = Norm.L2
    monotone: ClassVar[bool] = False

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", positive(rho, "rho"))

    def loss(self) -> Loss:
        return Loss.concentrated(self.rho)

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_variance(self.variance(sensitivity, grid))

    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> NDArray[Any]:
        variance, units = self._variance(sensitivity, answer.grid), answer.units
        return answer.plus(noise.gaussian(variance, units.size).reshape(units.shape))

    def variance(self, sensitivity: Number = 1, grid: Number = 1) -> Fraction:
        """The parameter sigma^2 of the noise, in squared units of the grid."""
        return self._variance(positive(sensitivity, "the sensitivity"), positive(grid, "the grid"))

    def _variance(self, sensitivity: Fraction, grid: Fraction) -> Fraction:
        width, rho = per_unit(sensitivity, _ONE, grid), self.rho
        return Fraction(width.numerator**2 * rho.denominator, 2 * width.denominator**2 * rho.numerator)

    def probabilities(self, units: Any, sensitivity: Number = 1, grid: Number = 1) -> NDArray[np.float64]:
        """How likely each noise is, in units of the grid."""
        z, variance = np.asarray(units, dtype=np.float64), float(self.variance(sensitivity, grid))
        return np.asarray(np.exp(-z * z / (2 * variance)) / _total(variance))

    def deviation(self, sensitivity: Number = 1, grid: Number = 1) -> float:
        """The standard deviation of one answer: below sigma where the grid is coarse, never above it."""
        variance, unit = float(self.variance(sensitivity, grid)), float(positive(grid, "the grid"))
        if variance > 100:  # the two differ by less than exp(-2 pi^2 100)
            return sqrt(variance) * unit
        z = np.arange(1, 401)
        return sqrt(2 * float(np.sum(z * z * self.probabilities(z, sensitivity, grid)))) * unit

    def error_bound(self, beta: float, *, coordinates: int = 1, sensitivity: Number = 1, grid: Number = 1) -> float:
        """An e such that all errors are at most e with probability 1 - beta; the least one where sigma < 4096 units."""
        tail, sigma = each(beta, coordinates), sqrt(self.variance(sensitivity, grid))
        if sigma < _SUMMED:
            z = np.arange(ceil(40 * sigma) + 2)
            beyond = 2 * np.cumsum(self.probabilities(z, sensitivity, grid)[::-1])[::-1]  # P[|Z| >= z], z > 0
            units = int(np.argmax(beyond[1:] <= tail))
        else:  # P[Z >= m] <= P[N >= m - 1] (Canonne, Kamath & Steinke 2020, Prop. 25)
            units = ceil(sigma * -NormalDist().inv_cdf(tail / 2))
        return units * float(positive(grid, "the grid"))

    def book_bound(self, beta: float, *, coordinates: int = 1, sensitivity: Number = 1) -> float:
        """sigma Phi^-1(1 - beta/2k), a union bound for real-valued noise."""
        return sqrt(self.variance(sensitivity)) * -NormalDist().inv_cdf(chance(beta) / (2 * coordinates))

    __repr__ = printed


def laplace_mass(z: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """P[Z = z] = tanh(1/2b) exp(-|z|/b), the discrete Laplace distribution of scale b."""
    return np.asarray(np.tanh(0.5 / scale) * np.exp(-np.abs(z) / scale))


def laplace_above(z: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """P[Z >= z]: q^z/(1+q) above zero and its complement below, q = exp(-1/b); exact in either tail."""
    q = exp(-1 / scale)
    above = np.where(z > 0, np.exp(-np.maximum(z, 0) / scale), 1 + q - np.exp((np.minimum(z, 0) - 1) / scale))
    return np.asarray(above / (1 + q))


def each(beta: float, coordinates: int) -> float:
    """The chance of failure that each of k independent parts may have: (1 - t)^k = 1 - beta."""
    return -expm1(log1p(-chance(beta)) / whole(coordinates, "the number of parts", 1, 2**62))


def _total(variance: float) -> float:
    # the sum over all z of exp(-z^2 / 2 s^2); for s > 3 it is the integral, up to exp(-2 pi^2 9) (Poisson summation)
    if variance > 9:
        return sqrt(2 * pi * variance)
    return 1 + 2 * sum(exp(-z * z / (2 * variance)) for z in range(1, 121))
