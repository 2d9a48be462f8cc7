"""PostgreSQL's binary COPY as Arrow arrays: each field of all rows at once, found by the lengths that stand before it.

Values arrive as the server holds them; what they become is the encoders' affair, as with every other source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engines.encode import MISSING_AT, Encoder
from tacit.engines.figures import Mask, whole_or_real

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(4)  # and flags, of which there are none
END = b"\xff\xff"
BATCH = 2**23  # bytes that are gathered at once, and a row
MARGIN = 16  # bytes after the last row, so that a short field may be looked at as if it were long

EPOCH_DAYS, EPOCH = 10_957, 946_684_800_000_000  # of 2000-01-01, from where PostgreSQL counts, seen from 1970
NEGATIVE, NOT_A_NUMBER, INFINITE, MINUS_INFINITE = 0x4000, 0xC000, 0xD000, 0xF000  # signs of a numeric
MOST_GROUPS = 4  # of four decimal digits each: as many as a float may hold exactly
EXACT = 2**53  # up to which floats hold all whole numbers

Letters: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]


class Malformed(Exception):
    """What came is not what PostgreSQL sends."""


class Field(Protocol):
    """How the values of one column become an array."""

    kind: Any  # the Arrow type that they stand for

    def __call__(self, letters: Letters, at: Places, lengths: Places, there: Mask) -> pa.Array:
        """From where each value begins, how long it is, and whether it is there."""
        ...


def gathered(messages: Iterator[Any], most: int) -> Iterator[tuple[bytearray, list[int]]]:
    """The rows of a stream, so many together, and their sizes; each is a message, and the last message is the end."""
    held, sizes, ended = bytearray(), list[int](), False
    for message in chain(filter(None, [_body(bytes(next(messages, b"")))]), messages):
        size = len(message)
        if ended or size < 2:
            raise Malformed
        if size == 2:  # a row has a field, and so is longer
            if message != END:
                raise Malformed
            ended = True
        else:
            held += message
            sizes.append(size)
            if len(sizes) >= most or len(held) >= BATCH:
                yield held, sizes
                held, sizes = bytearray(), []
    if not ended:
        raise Malformed
    if sizes:
        yield held, sizes


def _body(first: bytes) -> bytes:
    """The first message without the header of the stream."""
    if not first.startswith(SIGNATURE):
        raise Malformed
    extension = len(SIGNATURE)
    return first[extension + 4 + int.from_bytes(first[extension : extension + 4], "big") :]


def columns(rows: bytes | bytearray, sizes: Sequence[int], fields: Sequence[Field]) -> list[pa.Array]:
    """The arrays of these rows, which lie one after the other."""
    letters = np.frombuffer(rows + bytes(MARGIN), dtype=np.uint8)
    ends = np.cumsum(np.array(sizes, dtype=np.int64))
    at = ends - sizes
    if (_numbers(letters, at, ">i2") != len(fields)).any():
        raise Malformed
    at += 2
    found = []
    for field in fields:
        lengths = _numbers(letters, at, ">i4").astype(np.int64)
        there = lengths >= 0
        lengths = np.maximum(lengths, 0)
        at = at + 4
        if (at + lengths > ends).any():
            raise Malformed
        found.append(field(letters, at, lengths, there))
        at = at + lengths
    if (at != ends).any():
        raise Malformed
    return found


def _numbers(letters: Letters, at: Places, dtype: str) -> NDArray[Any]:
    """The numbers that begin at these places."""
    size = np.dtype(dtype).itemsize
    windows = np.lib.stride_tricks.as_strided(letters, (len(letters) - size + 1, size), (1, 1), writeable=False)
    return windows[at].view(dtype).ravel()


def _array(kind: pa.DataType, held: NDArray[Any], there: Mask) -> pa.Array:
    known = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(there), [known, pa.py_buffer(held)])


class Fixed:
    """Numbers of one width."""

    def __init__(self, kind: pa.DataType, dtype: str) -> None:
        self.kind = kind
        self._dtype = dtype
        self._size = np.dtype(dtype).itemsize

    def __call__(self, letters: Letters, at: Places, lengths: Places, there: Mask) -> pa.Array:
        if (lengths[there] != self._size).any():
            raise Malformed
        return _array(self.kind, self.held(_numbers(letters, at, self._dtype)), there)

    def held(self, values: NDArray[Any]) -> NDArray[Any]:
        """The same numbers as this machine and Arrow hold them."""
        return values.astype(values.dtype.newbyteorder("="))


class Truths(Fixed):
    """Truth values."""

    def __init__(self) -> None:
        super().__init__(pa.bool_(), "u1")

    def held(self, values: NDArray[Any]) -> NDArray[Any]:
        """A bit each."""
        return np.packbits(values != 0, bitorder="little")


class Moments(Fixed):
    """Days or microseconds; the infinities are the first and the last that there are."""

    def held(self, values: NDArray[Any]) -> NDArray[Any]:
        """Counted from 1970 on."""
        given = super().held(values)
        limits = np.iinfo(given.dtype)
        shift = EPOCH_DAYS if given.dtype == np.int32 else EPOCH
        moved = np.minimum(given, limits.max - shift) + np.array(shift, dtype=given.dtype)
        return np.where(given == limits.min, given, moved)


class Texts:
    """Texts, as the bytes that they are."""

    kind = pa.large_binary()

    def __call__(self, letters: Letters, at: Places, lengths: Places, there: Mask) -> pa.Array:
        if not len(at):
            return pa.array([], self.kind)
        # every second text is what stands between two values; so Arrow takes the values from where they lie
        bounds = np.empty(2 * len(at), dtype=np.int64)
        bounds[0::2], bounds[1::2] = at, at + lengths
        every = pa.Array.from_buffers(self.kind, len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(letters)])
        return every.take(_array(pa.int64(), np.arange(0, len(bounds), 2), there))


class Numerics:
    """Decimals of any size, as places of the column's domain: no number of PostgreSQL's is too long for them."""

    def __init__(self, encodes: Encoder) -> None:
        self.kind = pa.decimal128(38, 0)
        self._encodes = encodes

    def __call__(self, letters: Letters, at: Places, lengths: Places, there: Mask) -> pa.Array:
        with np.errstate(all="ignore"):
            reals, long = _reals(letters, at)
            long &= there
            held = letters.tobytes() if long.any() else b""
            known: dict[bytes, int | float] = {}
            exact = []
            for start, length in zip(at[long].tolist(), lengths[long].tolist(), strict=True):
                written = held[start : start + length]
                exact.append(known[written] if written in known else known.setdefault(written, _exactly(written)))
            places = self._encodes.of_numbers(reals, long, exact)
        places = np.where(there, places, np.array(self._encodes.size + MISSING_AT, dtype=places.dtype))
        return pa.Array.from_buffers(pa.from_numpy_dtype(places.dtype), len(places), [None, pa.py_buffer(places)])


def _reals(letters: Letters, at: Places) -> tuple[NDArray[np.float64], Mask]:
    """Numerics as the nearest floats, and which of them must be read exactly, so that they are none.

    A numeric is a whole number of at most 2^53 times or over a power of ten that is a float: rounded once, at most.
    """
    head = _numbers(letters, at, ">u2,>i2,>u2,>u2")
    groups, weight, sign = (head[name].astype(np.int64) for name in ("f0", "f1", "f2"))
    units = np.zeros(len(at), dtype=np.int64)
    for place in range(MOST_GROUPS):
        digits = _numbers(letters, at + 8 + 2 * place, ">u2")
        units = np.where(place < groups, units * 10_000 + digits, units)
    power = 4 * (weight - groups + 1)
    scale = 10.0 ** np.clip(np.abs(power), 0, 20)
    large = units * np.where(power > 0, scale, 1)
    long = (groups > MOST_GROUPS) | (units > EXACT) | (large >= EXACT) | (np.abs(power) > 20)
    reals = large / np.where(power < 0, scale, 1)
    reals = np.where(sign == NEGATIVE, -reals, reals)
    strange = sign >= NOT_A_NUMBER
    for which, value in ((NOT_A_NUMBER, np.nan), (INFINITE, np.inf), (MINUS_INFINITE, -np.inf)):
        reals[sign == which] = value
    return reals, long & (groups > 0) & ~strange


def _exactly(written: bytes) -> int | float:
    """One numeric."""
    groups, weight, sign = (int.from_bytes(written[start : start + 2], "big", signed=start == 2) for start in (0, 2, 4))
    figures = "".join(f"{int.from_bytes(written[at : at + 2], 'big'):04}" for at in range(8, 8 + 2 * groups, 2))
    return whole_or_real(Decimal((int(sign == NEGATIVE), tuple(map(int, figures)), 4 * (weight - groups + 1))))
