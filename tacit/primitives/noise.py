"""The only door to protecting randomness: exact draws from the operating system's entropy (Remark 2.1)."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, quoted
from tacit.primitives.certified import MARGIN, exp_floats
from tacit.primitives.certified import below as falls_below
from tacit.primitives.entropy import SystemEntropy
from tacit.primitives.tables import Law, tables
from tacit.rational import whole


class Noise(Protocol):
    """Independent draws, each of exactly the law stated: no rounding, no cut tail, no tie decided by default."""

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        """Uniform on 0 .. below - 1, for below up to 2^62."""
        ...

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        """True with probability p."""
        ...

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        """The i-th is True with probability exp(-rate e_i), for e_i >= 0."""
        ...

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-z/scale) on z = 0, 1, 2, ..."""
        ...

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-|z|/scale) on the integers."""
        ...

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """P[z] proportional to exp(-z^2/(2 variance)) on the integers; `variance` is the parameter sigma^2."""
        ...

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        """Indices, each i with probability proportional to exp(-rate e_i), for e_i >= 0 of which the least is 0."""
        ...


# Scales lie between 2^-40 and 2^40. Above, a draw outside 64 bits might not be as unlikely as exp(-2^22); below, a draw
# other than 0 is as unlikely as exp(-2^40), so that the scale protects nobody and must be a slip.
_SCALES, _RATES = 40, 128
_SIZES = 2**36
_SHORT = 16  # elements that are done sooner one by one
_PIECE = 1 << 14  # elements at a time, to stay in the cache
_ENTROPY = SystemEntropy()


class SystemNoise:
    """Noise from the operating system's entropy; it takes no seed and remembers nothing but tables of public laws.

    Accuracy: every law is exact. Where a float decides, its error is bounded and too small to change what it decides;
    the rest is decided in integers, as far as it takes.

    >>> bool(np.all(SystemNoise().laplace(Fraction(1, 2**40), 5) == 0))
    True
    """

    __slots__ = ()

    def uniform(self, below: int, size: int) -> NDArray[np.int64]:
        below, size = whole(below, "the number of equally likely values", 1, 2**62), _checked_size(size)
        bits = 16 if below <= 2**10 else 32 if below <= 2**26 else 64
        limit = (1 << bits) // below * below  # words from there on would favour small values
        words = _ENTROPY.words(size, np.dtype(f"u{bits // 8}"))
        if limit < 1 << bits:
            while size - len(words := words[words < limit]):
                words = np.concatenate([words, _ENTROPY.words(size - len(words), words.dtype)])
        return (words % below).astype(np.int64)

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        size = _checked_size(size)
        if not isinstance(p, (Fraction, int)) or not 0 <= p <= 1:
            raise InvalidParameter(f"a probability must be a fraction from 0 to 1, not {quoted(p)}. Nothing was drawn.")
        if p == 1:
            return np.ones(size, np.bool_)
        words = _ENTROPY.words(size)
        threshold, rest = divmod(p.numerator << 64, p.denominator)
        drawn = words < threshold
        ties = np.flatnonzero(words == threshold)
        if len(ties) and rest:  # 2^64 p = threshold + rest/denominator
            drawn[ties] = self.bernoulli(Fraction(rest, p.denominator), len(ties))
        return drawn

    def bernoulli_exp(self, exponents: NDArray[np.int64], rate: Fraction) -> NDArray[np.bool_]:
        exponents, rate = _checked_exponents(exponents), checked_rate(rate)
        drawn = np.empty(exponents.shape, np.bool_)
        for start in range(0, len(exponents), _PIECE):
            piece = slice(start, start + _PIECE)
            words = _ENTROPY.words(len(exponents[piece])) >> np.uint64(11)  # below 2^53 they are exact as floats
            drawn[piece] = _beneath(words, 53, exponents[piece], rate)
        return drawn

    def geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        scale = checked_scale(scale)
        return tables(Law(1, scale.denominator, scale.numerator, False)).draw(_checked_size(size), _ENTROPY)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        scale = checked_scale(scale)
        return tables(Law(1, scale.denominator, scale.numerator, True)).draw(_checked_size(size), _ENTROPY)

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        variance = checked_variance(variance)
        return tables(Law(2, variance.denominator, 2 * variance.numerator, True)).draw(_checked_size(size), _ENTROPY)

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        exponents, rate, size = _checked_exponents(exponents), checked_rate(rate), _checked_size(size)
        if not len(exponents) or exponents.min():
            raise InvalidParameter("the least exponent of a weighted choice must be 0. Nothing was drawn.")
        # Index i owns ceil(2^bits exp(-x_i)) points of a line, or one or two more; a point is kept if it lies below
        # 2^bits exp(-x_i): rejection from an envelope. The tops are made twice rather than kept.
        bits = min(40, 61 - len(exponents).bit_length())  # so that the line is shorter than 2^62
        pieces = [exponents[i : i + _PIECE] for i in range(0, len(exponents), _PIECE)]
        ends = np.cumsum([_tops(piece, rate, bits).sum() for piece in pieces])
        chosen, missing = np.empty(size, np.int64), np.arange(size)
        while len(missing):
            points = self.uniform(int(ends[-1]), len(missing))
            order = np.argsort(points)  # each piece once, for all points that fall into it
            kept = np.empty(len(missing), np.bool_)
            for n, (first, last) in enumerate(pairwise([0, *np.searchsorted(points[order], ends)])):
                if first < last:
                    mine = order[first:last]
                    tops = np.cumsum(_tops(pieces[n], rate, bits))
                    points[mine] -= ends[n] - tops[-1]
                    m = np.searchsorted(tops, points[mine], side="right")
                    level = points[mine] - np.where(m > 0, tops[m - 1], 0)
                    chosen[missing[mine]] = n * _PIECE + m
                    kept[mine] = _beneath(level, bits, pieces[n][m], rate)
            missing = missing[~kept]
        return chosen


SYSTEM = SystemNoise()


def _beneath(
    levels: NDArray[np.integer[Any]], bits: int, exponents: NDArray[np.int64], rate: Fraction
) -> NDArray[np.bool_]:
    """Whether level + U < 2^bits exp(-rate e), each with its own U, uniform on [0, 1); levels up to 2^53."""
    if len(levels) <= _SHORT:
        drawn, unsure = np.empty(len(levels), np.bool_), np.arange(len(levels))
    else:
        y = levels.astype(np.float64)
        target = 2.0**bits * exp_floats(float(rate) * exponents.astype(np.float64))
        drawn = y + 1 <= target * (1 - MARGIN)
        unsure = np.flatnonzero(~drawn & (y < target * (1 + MARGIN)))
    for i in unsure:
        drawn[i] = falls_below(
            int(levels[i]), 1 << bits, int(exponents[i]) * rate.numerator, rate.denominator, _ENTROPY
        )
    return drawn


def _tops(exponents: NDArray[np.int64], rate: Fraction, bits: int) -> NDArray[np.int64]:
    x = float(rate) * exponents.astype(np.float64)
    return np.ceil(exp_floats(x) * (2.0**bits * (1 + MARGIN))).astype(np.int64)


def checked_scale(scale: Fraction) -> Fraction:
    """A scale that noise can have, in units of the grid; asked before anything is charged."""
    return _checked(scale, "scale", _SCALES)


def checked_variance(variance: Fraction) -> Fraction:
    """A variance that noise can have, in squared units of the grid."""
    return _checked(variance, "variance", 2 * _SCALES)


def checked_rate(rate: Fraction) -> Fraction:
    """A rate at which weights can fall, for each unit of the grid."""
    return _checked(rate, "rate", _RATES)


def _checked(x: Fraction, name: str, log: int) -> Fraction:
    if isinstance(x, (Fraction, int)) and not isinstance(x, bool):
        num, den = x.numerator, x.denominator
        if 0 < den <= num << log and num <= den << log:
            return x if isinstance(x, Fraction) else Fraction(x)
    limits = f"a fraction between 2^-{log} and 2^{log}"
    raise InvalidParameter(f"a {name} must be {limits}, not {quoted(x)}. Nothing was drawn.")


def _checked_size(size: int) -> int:
    return whole(size, "the number of draws", 0, _SIZES)


def _checked_exponents(exponents: NDArray[np.int64]) -> NDArray[np.int64]:
    exponents = np.asarray(exponents)
    if exponents.ndim != 1 or exponents.dtype.kind != "i" or (len(exponents) and exponents.min() < 0):
        raise InvalidParameter("exponents must be a vector of whole numbers from 0 on. Nothing was drawn.")
    return exponents.astype(np.int64, copy=False)
