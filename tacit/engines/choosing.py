"""At most m rows of each person, by lot: whatever the rows hold, and whoever else is in the table (Thm 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.figures import Mask
from tacit.engines.persons import Words

BUCKETS = 2**6  # people, so that one part of them at a time is sorted
MOST_HELD = 2**24  # rows that may still be chosen; of more, some of the people wait for another reading
_SHIFT = np.uint64(65 - BUCKETS.bit_length())
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbouring numbers go to different buckets

Lots = Callable[[int], NDArray[np.int64]]
Reading = Callable[[], Iterable[tuple[Words, Mask | None]]]


class Chosen:
    """Which rows of a table count, a bit each, in the order in which they are read."""

    def __init__(self, rows: int, chosen: Iterable[NDArray[np.integer]]) -> None:
        self.rows = rows
        flags = np.zeros(rows, dtype=np.bool_)
        for places in chosen:
            flags[places] = True
        self._bits = np.packbits(flags)

    def part(self, start: int, rows: int) -> Mask:
        """Of so many rows from one on; there must be so many."""
        if start + rows > self.rows:
            raise ValueError("other rows than before")
        bits = np.unpackbits(self._bits[start // 8 : -(-(start + rows) // 8)])
        return bits[start % 8 : start % 8 + rows].view(np.bool_)


def chosen(reading: Reading, lots: Lots, most: int) -> Chosen:
    """The rows with the lowest lots of each person, at most so many of each; a row of nobody is not chosen.

    Every row draws a lot of its own. Which rows of one person are chosen is thus a uniform choice among that person's
    rows, independent of all other rows: with or without one person, the choices among the others' rows have the same
    law, and can be taken to be the same. Then the counts differ by at most `most` rows of that person. Two rows of
    one person with the same lot, one pair in 2^32, are told apart by which was read first.

    It holds 16 to 32 bytes for each row that may still be chosen, of MOST_HELD rows at most or of one bucket's; where
    there are more it reads again, for the people who had to wait. Who waits depends on how many rows there are of whom,
    and on no lot, so that the lots they draw then are as good as their first.
    """
    waiting, found, rows = list(range(BUCKETS)), list[NDArray[np.integer]](), 0
    while waiting:
        held, waiting, rows = {bucket: _Candidates(most) for bucket in waiting}, [], 0
        for words, nobody in reading():
            count = len(words[0])
            buckets = (_mixed(words) >> _SHIFT).astype(np.uint8)
            if nobody is not None:
                buckets[nobody] = BUCKETS
            order = np.argsort(buckets, kind="stable")
            ends = np.cumsum(np.bincount(buckets, minlength=BUCKETS + 1))
            drawn = lots(count).astype(np.uint32)
            for bucket, candidates in held.items():
                start = ends[bucket - 1] if bucket else 0
                if start < ends[bucket]:
                    candidates.add(words, drawn, rows, order[start : ends[bucket]])
            rows += count
            while len(held) > 1 and sum(candidates.size for candidates in held.values()) > MOST_HELD:
                waiting.append(held.popitem()[0])
        found += [held.pop(bucket).places().copy() for bucket in list(held)]
    return Chosen(rows, found)


def _mixed(words: Words) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = words[0] * _MIXER
    for word in words[1:]:
        mixed = (mixed ^ word) * _MIXER
    return mixed


class _Candidates:
    """The rows of some people that may still be chosen; those of each that are not among the lowest go now and then."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[NDArray[Any]] = []  # words, lots, places: filled up to `size`
        self.size = 0

    def add(self, words: Words, lots: NDArray[np.uint32], first: int, at: NDArray[np.intp]) -> None:
        """Takes in these rows of a batch, of which the first is the so-manieth of the table."""
        places = (at + first).astype(np.uint32 if first + len(lots) <= 2**32 else np.uint64)
        given: list[NDArray[Any]] = [*(word[at] for word in words), lots[at], places]
        if not self._parts:
            self._parts = [np.empty(0, dtype=part.dtype) for part in given]
        if places.dtype != self._parts[-1].dtype:  # else a place beyond 2^32 would be that of another person's row
            self._parts[-1] = self._parts[-1].astype(places.dtype)
        if self.size + len(at) > len(self._parts[0]):
            self._sort()
            if self.size + max(self.size // 4, len(at)) > len(self._parts[0]):  # else it would be sorted again soon
                self._grow(self.size + max(self.size // 2, 2 * len(at)))
        for held, part in zip(self._parts, given, strict=True):
            held[self.size : self.size + len(at)] = part
        self.size += len(at)

    def places(self) -> NDArray[np.unsignedinteger]:
        """Of the rows with the lowest lots of each person."""
        self._sort()
        return self._parts[-1][: self.size] if self._parts else np.zeros(0, dtype=np.uint32)

    def _grow(self, room: int) -> None:
        for which, held in enumerate(self._parts):
            larger = np.empty(room, dtype=held.dtype)
            larger[: self.size] = held[: self.size]
            self._parts[which] = larger

    def _sort(self) -> None:
        if not self.size:
            return
        *words, lots, _ = filled = [part[: self.size] for part in self._parts]
        order = np.lexsort((lots, *words))  # stable: of equal lots the row that was read first
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = False
        for word in words:
            ordered = word[order]
            begins[1:] |= ordered[1:] != ordered[:-1]
        place = np.arange(len(order))
        kept = order[place - np.maximum.accumulate(np.where(begins, place, 0)) < self._most]
        for held, part in zip(self._parts, filled, strict=True):
            held[: len(kept)] = part[kept]
        self.size = len(kept)
