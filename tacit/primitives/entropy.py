"""Random bits of the operating system, and nothing else; nothing is kept between two calls."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray

from tacit.errors import NoiseUnavailable

_DIRECT = 1024  # bytes: below this, asking the system costs less than setting up a cipher
_PIECE = 1 << 20  # bytes under one key
_BLOCK = 16
_ZEROS = memoryview(bytes(_PIECE))


class Entropy(Protocol):
    """Independent fair bits; the tests put scripted ones in this place."""

    def bits(self, count: int) -> int:
        """A uniform integer below 2^count."""
        ...

    def words(self, count: int, dtype: DTypeLike = np.uint64) -> NDArray[np.unsignedinteger]:
        """Uniform unsigned integers of the full width of their type."""
        ...


class SystemEntropy:
    """`os.urandom`, stretched where many words are wanted by AES-256-CTR under a key that is used once.

    Every key comes fresh from the system and is forgotten when its words are out, so two processes, threads or
    copies of a machine have nothing in common that could repeat.
    """

    __slots__ = ()

    def bits(self, count: int) -> int:
        return int.from_bytes(_system(-(-count // 8)), "little") >> (-count % 8)

    def words(self, count: int, dtype: DTypeLike = np.uint64) -> NDArray[np.unsignedinteger]:
        length = count * np.dtype(dtype).itemsize
        if length < _DIRECT:
            return np.frombuffer(_system(length), dtype)
        room = np.empty(length + _BLOCK, np.uint8)  # some versions of the cipher ask for a block more than they fill
        for start in range(0, length, _PIECE):
            piece = min(_PIECE, length - start)
            # a key is never used twice, so the counter may start at zero
            stream = Cipher(algorithms.AES256(_system(32)), modes.CTR(bytes(_BLOCK))).encryptor()
            stream.update_into(_ZEROS[:piece], room[start : start + piece + _BLOCK].data)
        return room[:length].view(dtype)


def _system(count: int) -> bytes:
    try:
        return os.urandom(count)
    except (OSError, NotImplementedError) as failure:
        raise NoiseUnavailable(
            "the operating system gave no random bytes, and there is no second source. Nothing was drawn."
        ) from failure
