"""From Arrow arrays to cells: the schema alone, never the data, says where a value goes (Section 2.1).

Encoding is total: no value, however strange, raises, and none reaches a message. A value that is not in its
column's domain is *missing* (null, NaN, an empty text) or *outside*, and goes where the column says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.domain.schema import CELL, CLAMP, Column
from tacit.engines.figures import (
    Figures,
    Mask,
    as_bytes,
    as_wide,
    gaps_in,
    holds_numbers,
    in_64_bits,
    indices_of,
    is_text,
    number_in,
    of_bytes,
    primitives,
    rows_of,
    short_decimals,
    truths,
    whole_or_real,
)

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

# a stray value's code, counted from the size of the domain
MISSING_AT, OUTSIDE_AT, BELOW_AT, ABOVE_AT, STRAYS = 0, 1, 2, 3, 4


LONGEST_LEXICON = 2**12  # so many texts are looked up as they stand, before any is parsed

_PLAIN = r"\A[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?\z"  # what Arrow reads as we do: whole ones exactly, others rounded once


class Encoder(ABC):
    """One column's values, turned into its cells.

    >>> from tacit.domain.schema import Integers
    >>> from tacit.engines.encode import encoder
    >>> age = encoder(Integers("age", 0, 120, outside="clamp"))
    >>> age(pa.array(["7", "130", "+7.0", "seven", ""]))
    (array([  7, 120,   7,   0,   0], dtype=uint8), array([False, False, False,  True,  True]))
    """

    parses = False  # whether a text that stands for a number is that number

    def __init__(self, column: Column) -> None:
        self.column = column
        self.size = column.size - (column.missing == CELL) - (column.outside == CELL)
        self.dtype = np.min_scalar_type(self.size + STRAYS - 1)
        missing = -1 if column.missing_cell is None else column.missing_cell
        outside = -1 if column.outside_cell is None else column.outside_cell
        ends = [missing, outside, outside, outside]
        if column.outside == CLAMP:  # what is neither below nor above has no nearest end: it counts as missing
            ends = [missing, missing, 0, self.size - 1]
        self._ends = np.array(ends, dtype=np.int64)
        lexicon = self._lexicon()
        lexicon.setdefault(b"", self.size + MISSING_AT)
        self._texts = of_bytes([*lexicon, None])
        self._short_texts = self._texts.cast(pa.binary())
        self._text_codes = np.array(
            [*lexicon.values(), self.size + MISSING_AT, self.size + OUTSIDE_AT], dtype=self.dtype
        )

    @property
    def drops(self) -> bool:
        """Whether a value of this column can leave its row out of every count."""
        return bool((self._ends < 0).any())

    @property
    def readable(self) -> str:
        """In words, what it can be read from."""
        return "texts or numbers"

    def takes(self, kind: object) -> bool:
        """Whether values of this Arrow type can stand in the domain."""
        if not isinstance(kind, pa.DataType):
            return False
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return bool(pa.types.is_null(kind)) or self._takes(kind)

    def _takes(self, kind: pa.DataType) -> bool:
        return holds_numbers(kind)

    def __call__(self, values: pa.Array) -> tuple[Codes, Mask | None]:
        """The cell of every value, and which rows must be dropped, if any."""
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return self.settled(self.places(values))

    def settled(self, places: Codes) -> tuple[Codes, Mask | None]:
        """Strays put where the column says."""
        if not len(places) or int(places.max()) < self.size:
            return places, None
        strays = np.flatnonzero(places >= self.size)
        ends = self._ends[places[strays].astype(np.int64) - self.size]
        cells = places.copy()
        cells[strays] = np.maximum(ends, 0).astype(self.dtype)
        if ends.min() >= 0:
            return cells, None
        dropped = np.zeros(len(places), dtype=np.bool_)
        dropped[strays[ends < 0]] = True
        return cells, dropped

    def places(self, values: pa.Array) -> Codes:
        """The cell of every value; from `size` on, what kind of stray it is."""
        kind, count = values.type, len(values)
        if not count or pa.types.is_null(kind):
            return np.full(count, self.size + MISSING_AT, dtype=self.dtype)
        if pa.types.is_dictionary(kind):
            table = np.append(self.places(values.dictionary), self._stray(1, MISSING_AT))
            return table.take(indices_of(values.indices, len(table) - 1))  # the last entry is for a null index
        if is_text(kind):
            return self._of_texts(as_bytes(values))
        places = self._of_decimals(values) if pa.types.is_decimal(kind) else self._of_primitives(values)
        if (gaps := gaps_in(values)) is not None:
            places = np.where(gaps, self._stray(1, MISSING_AT), places)
        return places

    @abstractmethod
    def _lexicon(self) -> dict[bytes, int]:
        """Texts whose cell is known as they stand."""

    @abstractmethod
    def _of_whole(self, values: Figures) -> Codes:
        """The places of integers of any width."""

    @abstractmethod
    def _of_real(self, values: NDArray[np.float64]) -> Codes:
        """The places of floats; NaN is missing."""

    def _stray(self, count: int, which: int) -> Codes:
        return np.full(count, self.size + which, dtype=self.dtype)

    def _of_primitives(self, values: pa.Array) -> Codes:
        figures = primitives(values)
        return (
            self._of_real(figures.astype(np.float64, copy=False))
            if figures.dtype.kind == "f"
            else self._of_whole(figures)
        )

    def _of_texts(self, texts: pa.Array) -> Codes:
        known = self._short_texts if pa.types.is_binary(texts.type) else self._texts
        found = pc.index_in(texts, value_set=known)
        unknown = gaps_in(found)
        places = self._text_codes.take(indices_of(found, len(known)))
        if unknown is not None and self.parses:
            strange = texts.filter(found.is_null()).dictionary_encode()
            places[unknown] = self._of_numerals(strange.dictionary)[primitives(strange.indices)]
        return places

    def _of_numerals(self, texts: pa.Array) -> Codes:
        plain = pc.match_substring_regex(texts, _PLAIN)
        easy = truths(plain)
        places = self._stray(len(texts), OUTSIDE_AT)
        if easy.any():
            written = texts.filter(plain).cast(pa.large_binary()).cast(pa.large_string())
            places[easy] = self._of_real(primitives(written.cast(pa.float64())))
        if not easy.all():
            places[~easy] = self._of_figures(number_in(text) for text in texts.filter(pc.invert(plain)).to_pylist())
        return places

    def _of_decimals(self, values: pa.Array) -> Codes:
        values = as_wide(values)
        found = short_decimals(values)
        if found is None:
            coded = values.dictionary_encode()
            table = self._of_figures(whole_or_real(value) for value in coded.dictionary.to_pylist())
            return np.append(table, self._stray(1, MISSING_AT))[indices_of(coded.indices, len(table))]
        reals, long = found
        return self.of_numbers(reals, long, (whole_or_real(value) for value in rows_of(values, long).to_pylist()))

    def of_numbers(self, reals: NDArray[np.float64], long: Mask, exact: Iterable[int | float]) -> Codes:
        """The places of numbers that are floats, and of those that are too long for one, which are given exactly."""
        places = self._of_real(reals)
        if long.any():
            places[long] = self._of_figures(exact)
        return places

    def _of_figures(self, figures: Iterable[int | float | None]) -> Codes:
        """The places of a few numbers that needed Python; None is not a number."""
        given = [in_64_bits(figure) for figure in figures]
        places = self._stray(len(given), OUTSIDE_AT)
        whole = [at for at, figure in enumerate(given) if isinstance(figure, int)]
        real = [at for at, figure in enumerate(given) if isinstance(figure, float)]
        if whole:
            places[whole] = self._of_whole(np.array([given[at] for at in whole], dtype=np.int64))
        if real:
            places[real] = self._of_real(np.array([given[at] for at in real], dtype=np.float64))
        return places

    def _of_real_as_whole(self, values: NDArray[np.float64]) -> Codes:
        """Where only whole numbers have cells: a float is the whole number that it is, or none."""
        whole = (np.abs(values) < 2.0**63) & (np.floor(values) == values)  # a NaN fails, and so does an infinity
        if whole.all():
            return self._of_whole(values.astype(np.int64))
        places = np.where(np.isnan(values), self._stray(1, MISSING_AT), self._stray(1, OUTSIDE_AT))
        places[whole] = self._of_whole(values[whole].astype(np.int64))
        return places


def within_bounds(values: Figures, low: int, high: int, size: int, dtype: np.dtype[Any]) -> Codes:
    """Integers of any width counted from low; modulo 2^bits, for the difference of those inside fits."""
    if not len(values):
        return np.zeros(0, dtype=dtype)
    places = values.astype(dtype, copy=False)
    if low:
        places = places - np.array(low % 2 ** (8 * dtype.itemsize), dtype=dtype)
    least, most = int(values.min()), int(values.max())
    if low <= least and most <= high:
        return places
    places = np.where(values < low, np.array(size + BELOW_AT, dtype=dtype), places)
    places[values > high] = size + ABOVE_AT
    return places
