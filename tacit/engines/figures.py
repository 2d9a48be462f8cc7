"""What Arrow's arrays hold, as numpy and Python see it: numbers without a copy, texts as bytes, decimals as floats.

Arrays are made of and taken apart into their buffers, for Arrow's own ways to numpy import pandas where they find it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Figures: TypeAlias = NDArray[Any]  # numbers as they came: any width of integer, or float64
Mask: TypeAlias = NDArray[np.bool_]

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # integers are called alike
_TEXTS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
_NUMBER = re.compile(rb"[ \t]*[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)[ \t]*", re.IGNORECASE)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type are texts; bytes count as texts."""
    return str(kind) in _TEXTS


def holds_numbers(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type can be numbers; texts can."""
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numeric) or is_text(kind)


def as_bytes(texts: pa.Array) -> pa.Array:
    """The same texts, which need not be valid UTF-8, as bytes."""
    return texts.cast(pa.binary() if str(texts.type) in {"string", "binary"} else pa.large_binary())


def gaps_in(values: pa.Array) -> Mask | None:
    """Where the nulls are; None where there are none."""
    return truths(values.is_null()) if values.null_count else None


def truths(values: pa.Array) -> Mask:
    """Truth values, a byte each; what stands under a null is anything."""
    found: Mask = primitives(values.cast(pa.uint8())) != 0
    return found


def primitives(values: pa.Array) -> Figures:
    """The numbers of an Arrow array without a copy; what stands under a null is anything."""
    arrow = str(values.type)
    dtype = np.dtype(_FLOATS.get(arrow, arrow))  # pyarrow's own translation imports pandas in some versions
    if not len(values):
        return np.zeros(0, dtype)
    figures: Figures = np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * dtype.itemsize)
    return figures


def indices_of(indices: pa.Array, null: int) -> Figures:
    """Indices into a table that has, at `null`, an entry for those that are missing."""
    figures, gaps = primitives(indices).astype(np.intp, copy=False), gaps_in(indices)  # uint64 and int64 make a float
    return figures if gaps is None else np.where(gaps, null, figures)


def short_decimals(values: pa.Array) -> tuple[NDArray[np.float64], Mask] | None:
    """Decimals as floats, and which of them have more than 10^15 units, so that they are none; None for wide types.

    Of at most 10^15 units, whole ones stay whole, and others are rounded once.
    """
    kind = values.type
    if not str(kind).startswith("decimal128") or not 0 <= kind.scale <= 22:  # 10^22 is the largest that is a float64
        return None
    halves = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = halves[0::2], halves[1::2]
    long = (high != low >> 63) | (low > 10**15) | (low < -(10**15))
    if (gaps := gaps_in(values)) is not None:  # what stands under a null is anything
        long &= ~gaps
    reals: NDArray[np.float64] = low.astype(np.float64) / 10.0**kind.scale
    return reals, long


def as_wide(values: pa.Array) -> pa.Array:
    """Decimals of 32 and 64 bits in 128: Arrow can do more with those."""
    narrow = str(values.type).startswith(("decimal32", "decimal64"))
    return values.cast(pa.decimal128(values.type.precision, values.type.scale)) if narrow else values


def rows_of(values: pa.Array, chosen: Mask) -> pa.Array:
    """Those that are chosen."""
    at = np.flatnonzero(chosen).astype(np.int64)
    return values.take(pa.Array.from_buffers(pa.int64(), len(at), [None, pa.py_buffer(at)]))


def whole_or_real(value: Decimal) -> int | float:
    """A decimal, exactly if it is whole, else as the nearest float64."""
    units, parts = value.as_integer_ratio()
    return units if parts == 1 else float(value)


def of_bytes(texts: Sequence[bytes | None]) -> pa.Array:
    """An Arrow array of texts."""
    ends = np.cumsum([0, *[len(text or b"") for text in texts]], dtype=np.int64)
    known = np.packbits([text is not None for text in texts], bitorder="little")
    parts = known.tobytes(), ends.tobytes(), b"".join(text or b"" for text in texts)
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [pa.py_buffer(part) for part in parts])


def number_in(text: bytes) -> int | float | None:
    """The number that a text stands for: whole ones of 64 bits exactly, any other as the nearest float64; None if none.

    >>> [number_in(text) for text in (b" 42 ", b"+4.2e1", b"9007199254740993.0", b"1e400", b"-0", b"1_000")]
    [42, 42, 9007199254740993, inf, 0, None]
    """
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not number.is_integer() or abs(number) > 2.0**64:
        return number
    try:
        exact = Decimal(text.decode())
        rounded = exact.to_integral_value()
    except ArithmeticError:  # an exponent beyond Decimal's: of a zero, or of what is nearly none
        return number
    return int(rounded) if rounded == exact else number


def in_64_bits(figure: int | float | None) -> int | float | None:
    """A number that numpy holds: whole ones of more than 64 bits only keep their sign."""
    if isinstance(figure, int) and not -(2**63) <= figure < 2**63:
        return float("inf") if figure > 0 else float("-inf")
    return figure
