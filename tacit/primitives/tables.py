"""Histograms that enclose a law on the integers: a random word falls into one, and nearly always that settles it.

The law is f(z) = exp(-|z|^power rate), up to its sum. The integers near 0 are cut into blocks of 2^step neighbours.
With a large integer C, block j has a top >= C f and a floor <= C f on all of it, both integers and certified. A uniform
word below 2^64 is a point (z, level) under the tops, where block j owns 2^step top(j) words, or a point beside them,
which is thrown away. With U uniform on [0, 1), z is kept if level + U < C f(z). This is rejection from an envelope, so
what is kept has the law f without error; below the floor, U need not be drawn.

Beyond the blocks lie the tails: z = K + M t + r with 0 <= r < M, where f falls by more than half over M steps. There t
has the law 2^-(t+1), (r, level) is uniform under the top over K, and z is kept if level + U < 2^t C f(z): again the law
is f without error.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.primitives.certified import MARGIN, below, exp_bounds, exp_floats
from tacit.primitives.entropy import Entropy

_POINT = 128  # binary places of f while a histogram is made
_SHARED = -(1 << 15)  # stands for the block where a cell is not owned by one
_PIECE = 1 << 16  # draws at a time, to stay in the cache
_PAYS = 1024  # draws that take as long as making the fine histogram
_FEW = 16  # draws that are made sooner one by one


@dataclass(frozen=True, slots=True)
class Law:
    """f(z) = exp(-|z|^power num/den), on all integers or only on z >= 0."""

    power: int
    num: int
    den: int
    two_sided: bool

    def exponent(self, z: int) -> tuple[int, int]:
        """-ln f(z), as a numerator and a denominator."""
        return self.num * (abs(z) if self.power == 1 else z * z), self.den

    def magnitude(self) -> int:
        """The whole part of log2 of the scale: den/num, or sigma where sigma^2 = den/(2 num)."""
        num = self.num * self.power
        log = self.den.bit_length() - num.bit_length()
        log -= num << max(log, 0) > self.den << max(-log, 0)
        return log // self.power


class Histogram:
    """Which words are whose: blocks, tails, and the rest; one word at a time, in integers.

    `fineness` is log2 of the blocks to a scale, 2^-reach the least f that has a block. In cells of 2^(word - guide),
    the first words belong to one block each and lie below its floor: there the leading bits of the word decide alone.
    """

    def __init__(self, law: Law, fineness: int = 2, reach: int = 12, word: int = 64, guide: int = 0) -> None:
        self.law = law
        self.step = step = max(0, law.magnitude() - fineness)
        edges = _edges(law, step, reach)
        last = len(edges) - 1
        self.end = last << step
        num, den = law.exponent(self.end + 1)
        num -= law.exponent(self.end)[0]
        self.fall = 0  # M = 2^fall
        while 10 * num << self.fall < 7 * den:  # 7/10 > ln 2
            self.fall += 1

        # On one integer f has one value; on a wider block it falls from edge to edge.
        right = edges[:last]
        left = (right if step else edges[1:]) if law.two_sided else []
        lows = edges[1:] * (1 + law.two_sided) if step else right + left
        self.blocks = [*range(last), *range(-1, -1 - len(left), -1)]
        tails = 2 * (1 + law.two_sided) << self.fall
        area = (sum(high for _, high in right + left) << step) + tails * edges[last][1]
        spare = (1 << word) - (len(self.blocks) << step) - tails  # a top is rounded up by less than 1
        self.weight = weight = (spare << _POINT) // area
        tops = [-(-weight * high >> _POINT) for _, high in right + left]
        self.top = -(-weight * edges[last][1] >> _POINT)
        self.floors = [weight * low >> _POINT for low, _ in lows]

        cell = word - guide
        self.levels = [floor << step >> cell << cell >> step for floor in self.floors]
        self.owned = sum(self.levels) << step
        self.begins = [self.owned]
        for top, level in zip(tops, self.levels, strict=True):
            self.begins.append(self.begins[-1] + (top - level << step))
        for _ in range(1 + law.two_sided):
            self.begins.append(self.begins[-1] + (2 * self.top << self.fall))

    def settle(self, word: int, entropy: Entropy) -> int | None:
        """What a word that no cell settles stands for; None where it is thrown away."""
        i = bisect_right(self.begins, word) - 1
        within = word - self.begins[i]
        if i >= len(self.blocks):
            return self._beyond(i - len(self.blocks), within, entropy)
        level = self.levels[i] + (within >> self.step)
        z = (self.blocks[i] << self.step) + (within & (1 << self.step) - 1)
        kept = level < self.floors[i] or below(level, self.weight, *self.law.exponent(z), entropy)
        return z if kept else None

    def draw(self, size: int, entropy: Entropy) -> list[int]:
        """Independent draws, where no cells were set apart."""
        drawn: list[int] = []
        while len(drawn) < size:
            for word in entropy.words(size - len(drawn)).tolist():
                z = self.settle(word, entropy)
                if z is not None:
                    drawn.append(z)
        return drawn

    def _beyond(self, side: int, within: int, entropy: Entropy) -> int | None:
        if side > self.law.two_sided:
            return None
        turn, level = divmod(within >> self.fall, self.top)  # turn is a fair bit: the first toss for t
        while turn and entropy.bits(1):
            turn += 1
        distance = self.end + (turn << self.fall) + (within & (1 << self.fall) - 1)
        z = -1 - distance if side else distance
        return z if below(level, self.weight << turn, *self.law.exponent(z), entropy) else None


def _edges(law: Law, step: int, reach: int) -> list[tuple[int, int]]:
    """Bounds of 2^128 f at 0, 2^step, 2 2^step, ..., as far as the first below 2^-reach.

    f(B+1) = f(B) g(B) and g(B+1) = g(B) h with all of them in [0, 1], rounded down. As g(0) and h are short of the
    truth by at most 2 units, g(B) is by at most 3B + 2, and f(B) by at most 3 B (B+1) / 2.
    """
    num, den = law.exponent(1 << step)
    fall = exp_bounds(num, den, _POINT)[0]
    bend = exp_bounds(law.exponent(2 << step)[0] - 2 * num, den, _POINT)[0]
    low = 1 << _POINT
    edges = [(low, low)]
    while low >> _POINT - reach:
        low = low * fall >> _POINT
        fall = fall * bend >> _POINT
        edges.append((low, low + 3 * len(edges) * (len(edges) + 1) // 2))
    return edges


class Guided:
    """The same for many draws at once: sixteen bits nearly always name the block, and the rest is done in arrays."""

    def __init__(self, law: Law, fineness: int = 6, reach: int = 30) -> None:
        self.histogram = made = Histogram(law, fineness, reach, guide=16)
        self._blocks = np.array(made.blocks, np.int64)
        self._floors, self._levels = np.array(made.floors, np.uint64), np.array(made.levels, np.uint64)
        self._begins = np.array(made.begins[: len(made.blocks) + 1], np.uint64)
        self._owner = np.full(1 << 16, _SHARED, np.int16)
        cells = (self._levels >> np.uint64(48 - made.step)).astype(np.intp)
        self._owner[: made.owned >> 48] = np.repeat(self._blocks, cells)
        self._rate, self._weight = law.num / law.den, float(made.weight)

    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Independent draws."""
        step, out = self.histogram.step, np.empty(size, np.int64)
        at, cells = [], []
        for start in range(0, size, _PIECE):
            piece = out[start : start + _PIECE]
            cell = entropy.words(len(piece), np.uint16)
            owner = self._owner.take(cell, mode="clip")  # nothing to clip, and no time lost on checking that
            piece[...] = owner
            if step:
                piece <<= step
                piece |= offsets(len(piece), step, entropy)
            shared = np.flatnonzero(owner == _SHARED)
            at.append(shared + start)
            cells.append(cell[shared])
        late = np.concatenate(at)
        words = np.concatenate(cells).astype(np.uint64) << np.uint64(48) | entropy.words(len(late)) >> np.uint64(16)
        out[late], kept = self.settle(words, entropy)
        again = late[~kept]
        if len(again):
            out[again] = self.draw(len(again), entropy)
        return out

    def settle(self, words: NDArray[np.uint64], entropy: Entropy) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What words that no cell settles stand for, and which of them are kept."""
        made = self.histogram
        i = np.searchsorted(self._begins, words, side="right") - 1
        beyond = i >= len(made.blocks)
        i[beyond] = 0
        within = words - self._begins[i]
        level = self._levels[i] + (within >> np.uint64(made.step))
        z = (self._blocks[i] << made.step) + (within & np.uint64((1 << made.step) - 1)).astype(np.int64)
        kept = level < self._floors[i]
        unsure = np.flatnonzero(~kept)
        y = level[unsure].astype(np.float64)
        size = np.abs(z[unsure]).astype(np.float64)
        target = self._weight * exp_floats(self._rate * (size if made.law.power == 1 else size * size))
        kept[unsure] = y + 1 <= target * (1 - MARGIN)
        beyond[unsure] |= ~kept[unsure] & (y < target * (1 + MARGIN))
        for n in np.flatnonzero(beyond):  # beyond the blocks, or too close for floats
            exact = made.settle(int(words[n]), entropy)
            z[n], kept[n] = (0, False) if exact is None else (exact, True)
        return z, kept


def offsets(count: int, bits: int, entropy: Entropy) -> NDArray[np.int64]:
    """Uniform integers below 2^bits, from as few random bits as is convenient."""
    width = 16 if bits <= 16 else 32 if bits <= 32 else 64
    words = entropy.words(count, np.dtype(f"u{width // 8}"))
    return (words >> (width - bits)).astype(np.int64)


class Tables:
    """The histograms of one law, each made once the draws that were asked for pay for it."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self._asked = 0
        self._coarse: Histogram | None = None
        self._fine: Guided | None = None

    # Two threads at once may make a table twice or miscount what was asked; either way what they draw is exact.
    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Independent draws of the law."""
        if size > _FEW:
            self._asked += size
            if self._fine is None and self._asked > _PAYS:
                self._fine = Guided(self.law)
            if self._fine is not None:
                return self._fine.draw(size, entropy)
        if self._coarse is None:
            self._coarse = Histogram(self.law)
        return np.array(self._coarse.draw(size, entropy), np.int64)


@lru_cache(maxsize=64)
def tables(law: Law) -> Tables:
    """The tables of a law; those used last are kept."""
    return Tables(law)
