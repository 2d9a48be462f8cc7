"""The only door to protecting randomness: exact draws from the operating system's entropy (Remark 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.primitives.certified import below as falls_below
from tacit.primitives.entropy import SystemEntropy
from tacit.rational import shown, whole


class Noise(Protocol):
    """Exact draws: each method's law is the one stated, with no error of rounding, tails and ties included."""

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        """Uniform on 0 .. below - 1, for below up to 2^62."""
        ...

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        """True with probability p."""
        ...

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        """Independent coins, the i-th True with probability exp(-rate e_i), for e_i >= 0."""
        ...

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-z/scale) on z = 0, 1, 2, ..."""
        ...

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-|z|/scale) on the integers."""
        ...

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-z^2/(2 variance)) on the integers."""
        ...

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction) -> int:
        """The index i with probability proportional to exp(-rate e_i), for e_i >= 0 with least 0."""
        ...


_LEAST, _MOST = Fraction(1, 2**40), Fraction(2**40)


class SystemNoise:
    """The one implementation of Noise."""

    __slots__ = ()

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        below = whole(below, "the number of equally likely values", 1, 2**62)
        return _array(lambda: _uniform(below), size)

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        if not 0 <= p <= 1:
            raise InvalidParameter(f"a probability must lie between 0 and 1, not {shown(p)}. Nothing was drawn.")
        return _array(lambda: int(_uniform(p.denominator) < p.numerator), size).astype(np.bool_)

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        return np.array([_exp_coin(int(e) * rate) for e in exponents], dtype=np.bool_)

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        scale = _checked(scale, "scale", _LEAST, _MOST)
        return _array(lambda: _geometric(scale), size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        scale = _checked(scale, "scale", _LEAST, _MOST)
        return _array(lambda: _laplace(scale), size)

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        variance = _checked(variance, "variance", _LEAST**2, _MOST**2)
        return _array(lambda: _gaussian(variance), size)

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction) -> int:
        while True:
            i = _uniform(len(exponents))
            if _exp_coin(int(exponents[i]) * rate):
                return i


SYSTEM = SystemNoise()
_ENTROPY = SystemEntropy()


def _checked(x: Fraction, name: str, least: Fraction, most: Fraction) -> Fraction:
    if not isinstance(x, Fraction) or not least <= x <= most:
        raise InvalidParameter(f"a {name} must be a fraction between {shown(least)} and {shown(most)}.")
    return x


def _array(draw: Callable[[], int], size: int) -> NDArray[np.int64]:
    return np.array([draw() for _ in range(size)], dtype=np.int64)


def _uniform(below: int) -> int:
    width = (below - 1).bit_length()
    while (drawn := _ENTROPY.bits(width)) >= below:
        pass
    return drawn


def _exp_coin(x: Fraction) -> bool:
    return falls_below(0, 1, x.numerator, x.denominator, _ENTROPY)


def _geometric(scale: Fraction) -> int:
    width = max(1, scale.__ceil__())  # remainders and quotients by any width are independent
    while not _exp_coin((remainder := _uniform(width)) / scale):
        pass
    quotient = 0
    while _exp_coin(width / scale):
        quotient += 1
    return quotient * width + remainder


def _laplace(scale: Fraction) -> int:
    while True:
        z, negative = _geometric(scale), _uniform(2)
        if z or not negative:
            return -z if negative else z


def _gaussian(variance: Fraction) -> int:
    # Canonne, Kamath & Steinke 2020, Algorithm 3: Laplace of scale t, thinned
    t = Fraction(max(1, int(variance.__floor__() ** 0.5)))
    while True:
        z = _laplace(t)
        if _exp_coin((abs(z) - variance / t) ** 2 / (2 * variance)):
            return z
