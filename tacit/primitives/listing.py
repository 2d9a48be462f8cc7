"""Which values occur: a list of those that enough rows have, with no list of candidates beforehand (pure epsilon)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.listing import Listed
from tacit.domain.query import MOST_PEOPLE
from tacit.primitives.mechanism import per_unit, positive, printed
from tacit.primitives.noise import Noise, checked_scale
from tacit.privacy.budget import Loss
from tacit.rational import Number, whole

MADE_UP = Fraction(1, 1024)  # how many values that nobody has are listed, on average
PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -"  # 64 letters, of which most texts are made
MOST_LETTERS = 1000
_LOG_2 = Fraction(25, 36)  # 0.69444..., above ln 2
_FARTHEST = 2**44  # rows; the threshold of the empty text, which is never listed


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Listing:
    """Lists each value u with a probability that grows with the number c of its rows, from next to 0 to next to 1.

    Half of the values with threshold(u) rows are listed; with d rows more all but exp(-d eps/Delta)/2 of them, with d
    rows fewer exp(-d eps/Delta)/2. Values of more than `longest` bytes are never listed, nor is the empty one. What is
    listed is not counted.

    Privacy: eps-DP, for counts that one person moves by at most Delta in all (l1); the proof stands below.
    Accuracy: `threshold`, a number that is public for each value.

    >>> Listing(1), Listing(1).threshold(b"F"), Listing("0.1").threshold(b"Hillside")
    (Listing(epsilon=1), 13, 474)
    """

    # The universe is all texts, and nothing is known of which occur. Let Q be the public law of a text that `invented`
    # draws, r = eps/Delta, L = MADE_UP, and t = threshold(u) >= 2 such that exp(-r(t - 1))/2 <= r L q for a lower
    # bound q > 0 of Q(u). The output is the union of two sets.
    # A: N is Poisson(L), and N texts are drawn by Q. By Poisson splitting the numbers of times that the texts of the
    # universe are drawn are independent, Poisson(L Q(u)): so each u is in A independently, with probability
    # p = 1 - exp(-L Q(u)), whether it occurs or not.
    # B: each u that occurs, c >= 1, is in B independently with probability g(c) = exp(-r(t - c))/2 for c <= t and
    # 1 - exp(-r(c - t))/2 for c >= t, the distribution function of a Laplace variable; and g(0) = 0.
    # So the texts are listed independently of each other, u with probability f(c) = p + (1 - p) g(c), and it is enough
    # to show of one u that |ln f(c+1) - ln f(c)| <= r and |ln(1-f(c+1)) - ln(1-f(c))| <= r: a person moves the counts
    # by Delta steps at most, in all. f rises, so one direction is left of each.
    # c >= 1. f(c+1)/f(c) <= g(c+1)/g(c) <= e^r, and (1-f(c))/(1-f(c+1)) = (1-g(c))/(1-g(c+1)) <= e^r: ln G and
    # ln(1-G) of a Laplace variable of scale 1/r are r-Lipschitz.
    # c = 0. f(1)/f(0) = 1 + g(1)(1-p)/p = 1 + g(1)/(exp(L Q(u)) - 1) <= 1 + g(1)/(L q) <= 1 + r <= e^r.
    # (1-f(0))/(1-f(1)) = 1/(1-g(1)) <= e^r, that is g(1) <= 1 - e^-r: if r <= 1, 1 - e^-r > r/2 > r L >= g(1); else
    # g(1) <= e^-r/2, since t >= 2, and e^-r/2 < 1 - e^-r.
    # What is dropped of the output afterwards, as no clean text, and that it is sorted, is post-processing.

    epsilon: Fraction
    longest: int = 64
    norm: ClassVar[Norm] = Norm.L1
    monotone: ClassVar[bool] = False
    lists: ClassVar[bool] = True  # its answers are values, not numbers

    def __init__(self, epsilon: Number, longest: int = 64) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "longest", whole(longest, "the longest value", 1, MOST_LETTERS))

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    def check(self, sensitivity: Fraction, grid: Fraction) -> None:
        checked_scale(1 / self.rate(sensitivity))  # so that no threshold passes 64 bits, which only a text would show

    def rate(self, sensitivity: Number = 1) -> Fraction:
        """By how much a row more changes the logarithm of a probability, at most."""
        return 1 / per_unit(positive(sensitivity, "the sensitivity"), self.epsilon, Fraction(1))

    def threshold(self, value: bytes, sensitivity: Number = 1) -> int:
        """With how many rows a value is as likely to be listed as not; longer ones need more."""
        return _threshold(self.rate(sensitivity), len(value), _is_plain(value))

    def probability(self, value: bytes, rows: int, sensitivity: Number = 1) -> tuple[float, float]:
        """Of a value that is listed with so many rows, and of one that is not: f and 1 - f."""
        if not 0 < len(value) <= self.longest:
            return 0.0, 1.0
        drawn = float(MADE_UP) * sum(float(part) for part in _law(len(value), _is_plain(value)))
        known, r, d = -np.expm1(-drawn), float(self.rate(sensitivity)), rows - self.threshold(value, sensitivity)
        half = 0.5 * np.exp(-r * abs(d))
        listed, not_listed = (0.0, 1.0) if rows == 0 else (half, 1 - half) if d < 0 else (1 - half, half)
        return float(known + (1 - known) * listed), float((1 - known) * not_listed)

    def sample(self, answer: Listed, sensitivity: Fraction, noise: Noise) -> list[bytes]:
        """The values that are listed, sorted."""
        rate, found = self.rate(sensitivity), set(_made_up(self.longest, noise))
        thresholds: dict[tuple[int, bool], int] = {}
        for values, counts in answer:
            kinds = [(min(len(value), self.longest), _is_plain(value)) for value in values]
            for kind in set(kinds) - thresholds.keys():
                thresholds[kind] = _threshold(rate, *kind)
            beyond = np.minimum(counts, MOST_PEOPLE) - np.array([thresholds[kind] for kind in kinds], dtype=np.int64)
            kept = _kept(beyond, rate, noise) & (counts > 0)
            found.update(values[int(at)] for at in np.flatnonzero(kept))
        return sorted(value for value in found if 0 < len(value) <= self.longest)  # `invented` draws no others

    __repr__ = printed


def _kept(beyond: NDArray[np.int64], rate: Fraction, noise: Noise) -> NDArray[np.bool_]:
    """B, for values whose counts lie so far beyond their thresholds."""
    less = noise.bernoulli(Fraction(1, 2), beyond.size) & noise.bernoulli_exp(np.abs(beyond), rate)
    kept: NDArray[np.bool_] = np.where(beyond < 0, less, ~less)
    return kept


def _law(length: int, plain: bool) -> list[Fraction]:
    """Q of a text of so many bytes: in two parts, as a text of plain letters, and as one of any bytes."""
    each = Fraction(1, 2 * length * (length + 1))
    return [each / 256**length, *([each / len(PLAIN) ** length] if plain else [])]


def _threshold(rate: Fraction, length: int, plain: bool) -> int:
    if length == 0:
        return _FARTHEST
    x = 1 / (2 * rate * MADE_UP * _law(length, plain)[-1])
    bits = max(0, ceil(x) - 1).bit_length()  # x <= 2^bits, so ln x <= bits ln 2
    return max(2, 1 + ceil(bits * _LOG_2 / rate))


def _is_plain(value: bytes) -> bool:
    return not value.translate(None, PLAIN)


def _made_up(longest: int, noise: Noise) -> list[bytes]:
    """A, but for texts that are too long to be listed."""
    drawn = [_invented(longest, noise) for _ in range(_poisson(MADE_UP, noise))]
    return [text for text in drawn if text is not None]


def _poisson(mean: Fraction, noise: Noise) -> int:
    """A Poisson number of a mean up to 1/2, exactly: n is proposed with 2^-(n+1) and kept with (2 mean)^n / n!."""
    while True:
        n = kept = 0
        while noise.bernoulli(Fraction(1, 2), 1)[0]:
            n += 1
        while kept < n and noise.bernoulli(2 * mean / (kept + 1), 1)[0]:
            kept += 1
        if kept == n:
            return n


def _invented(longest: int, noise: Noise) -> bytes | None:
    """A text by the law Q; None if it is too long: it has more than l bytes with probability 1/(l + 1)."""
    length = 1
    while noise.bernoulli(Fraction(length, length + 1), 1)[0]:
        length += 1
        if length > longest:
            return None
    if noise.bernoulli(Fraction(1, 2), 1)[0]:
        return bytes(PLAIN[letter] for letter in noise.uniform(len(PLAIN), length))
    return bytes(int(letter) for letter in noise.uniform(256, length))
