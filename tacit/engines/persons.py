"""Whose row it is: a person's value as one or two 64-bit words, equal for equal values and different for others.

Whole numbers, floats, decimals and UUIDs are their own words, and so are texts of up to 15 bytes. A longer text is its
128-bit BLAKE2b under a key that is drawn for the occasion: nobody who writes the texts can make two of them meet, and
by chance two do with a probability of 2^-128.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engines.figures import Mask, as_bytes, as_wide, gaps_in, indices_of, is_text, primitives

Words: TypeAlias = tuple[NDArray[np.uint64], ...]

READABLE = "whole numbers, texts, UUIDs, decimals or floats"
KEY_BYTES = 32

_PACKED = 15  # bytes of a text that fit two words beside its length
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)


def kind_of(given: object) -> str | None:
    """Within which values are compared, for an Arrow type; None for those that tell no people apart.

    >>> kind_of(pa.int16()) == kind_of(pa.int64()), kind_of(pa.string()) == kind_of(pa.int64()), kind_of(pa.date32())
    (True, False, None)
    """
    if not isinstance(given, pa.DataType):
        return None
    kind = _storage(given.value_type if pa.types.is_dictionary(given) else given)
    if pa.types.is_integer(kind):
        return "large whole numbers" if pa.types.is_uint64(kind) else "whole numbers"
    if pa.types.is_floating(kind):
        return "floats"
    if pa.types.is_decimal(kind) and not pa.types.is_decimal256(kind):
        return f"decimals of scale {kind.scale}"
    if str(kind) == "fixed_size_binary[16]":
        return "UUIDs"
    return "texts" if is_text(kind) else None


def words_of(values: pa.Array, key: bytes) -> tuple[Words, Mask | None]:
    """The words of every value, and where there is no person: null, NaN, an empty text."""
    if pa.types.is_dictionary(values.type):
        words, nobody = words_of(values.dictionary, key)
        at = indices_of(values.indices, len(values.dictionary))
        gone = np.append(np.zeros(len(values.dictionary), dtype=np.bool_) if nobody is None else nobody, True)
        return tuple(np.append(word, np.uint64(0))[at] for word in words), gone[at]
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    gaps = gaps_in(values)
    if is_text(values.type):
        return _of_texts(as_bytes(values), gaps, key)
    if pa.types.is_floating(values.type):
        figures = primitives(values).astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        nobody = np.isnan(figures) if gaps is None else gaps | np.isnan(figures)
        return (figures.view(np.uint64),), nobody
    if pa.types.is_integer(values.type):
        whole = primitives(values)
        return ((whole if whole.dtype == np.uint64 else whole.astype(np.int64)).view(np.uint64),), gaps
    values = as_wide(values)
    halves = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
    return (halves[0::2], halves[1::2]), gaps


def _storage(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _of_texts(texts: pa.Array, gaps: Mask | None, key: bytes) -> tuple[Words, Mask]:
    width = np.dtype(np.int32 if pa.types.is_binary(texts.type) else np.int64)
    _, ends, held = texts.buffers()
    if not len(texts) or held is None:  # no text has a letter
        empty = np.zeros(len(texts), dtype=np.uint64)
        return (empty, empty), np.ones(len(texts), dtype=np.bool_)
    offsets = np.frombuffer(ends, width, len(texts) + 1, texts.offset * width.itemsize).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    letters = np.append(np.frombuffer(held, np.uint8)[first:last], np.zeros(16, dtype=np.uint8))
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    eights = np.ndarray((len(letters) - 7,), np.dtype("<u8"), letters, strides=(1,))  # eight bytes from every byte on
    short = np.minimum(lengths, _PACKED)
    low = eights[starts] & _LOW_BYTES[np.minimum(short, 8)]
    high = eights[np.minimum(starts + 8, len(eights) - 1)] & _LOW_BYTES[np.maximum(short - 8, 0)]
    high |= lengths.astype(np.uint64) << np.uint64(56)
    long = lengths > _PACKED
    if gaps is not None:  # what stands under a null is anything
        long &= ~gaps
    if long.any():
        rows = np.flatnonzero(long)
        coded = texts.take(pa.array(rows)).dictionary_encode()
        digests = b"".join(blake2b(text, digest_size=16, key=key).digest() for text in coded.dictionary.to_pylist())
        halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)[primitives(coded.indices)]
        low[rows], high[rows] = halves[:, 0], halves[:, 1]
    nobody: Mask = lengths == 0
    return (low, high), nobody if gaps is None else nobody | gaps
