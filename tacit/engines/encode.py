"""The encoder of every kind of column: whole numbers, real numbers, named values, days."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.domain.schema import Categories, Column, Dates, Integers, Numbers
from tacit.engines.days import DateCells
from tacit.engines.encoder import (
    ABOVE_AT,
    BELOW_AT,
    LONGEST_LEXICON,
    MISSING_AT,
    OUTSIDE_AT,
    STRAYS,
    Codes,
    Encoder,
    within_bounds,
)
from tacit.engines.figures import Figures, holds_numbers, is_text, truths
from tacit.errors import InvalidSchema, quoted

__all__ = ["MISSING_AT", "OUTSIDE_AT", "CategoryCells", "Codes", "Encoder", "IntegerCells", "NumberCells", "encoder"]

WIDEST_TABLE = 2**16  # so many neighbouring keys are found by a table, others by bisection


class IntegerCells(Encoder):
    """Whole numbers from low to high."""

    parses = True
    column: Integers

    def _lexicon(self) -> dict[bytes, int]:
        low, high = self.column.low, self.column.high
        return {b"%d" % value: value - low for value in range(low, high + 1)} if self.size <= LONGEST_LEXICON else {}

    def _of_whole(self, values: Figures) -> Codes:
        return within_bounds(values, self.column.low, self.column.high, self.size, self.dtype)

    def _of_real(self, values: NDArray[np.float64]) -> Codes:
        places = self._of_real_as_whole(values)
        # bounds beyond 2^53 round here, but a number so large is whole, and was placed exactly
        strange = places == self.size + OUTSIDE_AT
        places[strange & (values < self.column.low)] = self.size + BELOW_AT
        places[strange & (values > self.column.high)] = self.size + ABOVE_AT
        return places


class NumberCells(Encoder):
    """Real numbers between public edges; what has a fraction is read as the nearest float64."""

    parses = True
    column: Numbers

    def _lexicon(self) -> dict[bytes, int]:
        return {}

    def _of_whole(self, values: Figures) -> Codes:
        if values.dtype.itemsize == 8:  # edges are at most 2^53; a larger number must not be rounded down to one
            beyond = values > 2**53
            if beyond.any():
                values = np.where(beyond, np.array(2**54, dtype=values.dtype), values)
            if values.dtype.kind == "i" and (beyond := values < -(2**53)).any():
                values = np.where(beyond, np.array(-(2**54), dtype=values.dtype), values)
        return self._of_real(values.astype(np.float64))

    def _of_real(self, values: NDArray[np.float64]) -> Codes:
        if not len(values):
            return self._stray(0, OUTSIDE_AT)
        edges = np.array(self.column.edges)
        if self.dtype == np.uint8:  # a comparison of all values costs a hundredth of a bisection of each
            places = np.zeros(len(values), dtype=self.dtype)
            for edge in edges[1:-1]:
                places += values >= edge
        else:
            places = np.searchsorted(edges[1:-1], values, side="right").astype(self.dtype)
        if values.min() >= edges[0] and values.max() <= edges[-1]:  # a NaN fails both
            return places
        places[values < edges[0]] = self.size + BELOW_AT
        places[values > edges[-1]] = self.size + ABOVE_AT
        places[np.isnan(values)] = self.size + MISSING_AT
        return places


class CategoryCells(Encoder):
    """Named values: texts match byte for byte, and a number in a source stands for its shortest decimal."""

    column: Categories

    def __init__(self, column: Categories) -> None:
        self.parses = column.kind is int
        self._sorted: dict[np.dtype[Any], tuple[Figures, Codes]] = {}
        self.keys: dict[int, int] = {}
        self.real_keys: dict[float, int] = {}
        for cell, value in enumerate(column.values):
            if isinstance(value, int) and not isinstance(value, bool):
                self.keys[value] = cell
            elif isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,19}", value):
                self.keys[int(value)] = cell
            elif isinstance(value, str) and re.fullmatch(r"-?[0-9.e-]{3,25}", value) and _shortest(value):
                self.real_keys[float(value)] = cell
        super().__init__(column)

    @property
    def readable(self) -> str:
        return "truth values or texts" if self.column.kind is bool else super().readable

    def _takes(self, kind: pa.DataType) -> bool:
        if self.column.kind is bool:
            return bool(pa.types.is_boolean(kind)) or is_text(kind)
        return holds_numbers(kind)

    def _lexicon(self) -> dict[bytes, int]:
        if self.column.kind is str:
            return {str(value).encode(errors="surrogatepass"): cell for cell, value in enumerate(self.column.values)}
        if self.column.kind is int:
            return {b"%d" % value: cell for value, cell in self.keys.items()}
        return {
            text.encode(): cell
            for cell, value in enumerate(self.column.values)
            for text in (("true", "True", "TRUE") if value else ("false", "False", "FALSE"))
        }

    def _of_primitives(self, values: pa.Array) -> Codes:
        if not pa.types.is_boolean(values.type):
            return super()._of_primitives(values)
        cells = dict(zip(self.column.values, range(self.size), strict=True))
        no, yes = (np.array(cells.get(truth, self.size + OUTSIDE_AT), dtype=self.dtype) for truth in (False, True))
        return np.where(truths(values), yes, no)

    def _of_whole(self, values: Figures) -> Codes:
        keys, cells = self._keys_of(values.dtype)
        if not len(keys):
            return self._stray(len(values), OUTSIDE_AT)
        first, last = int(keys[0]), int(keys[-1])
        if last - first < WIDEST_TABLE:
            span = last - first + 1
            table = self._stray(span + STRAYS, OUTSIDE_AT)
            table[[int(key) - first for key in keys]] = cells
            offsets = within_bounds(values, first, last, span, np.min_scalar_type(span + STRAYS - 1))
            found: Codes = np.take(table, offsets)
            return found
        at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        places: Codes = np.where(keys[at] == values, cells[at], self._stray(1, OUTSIDE_AT))
        return places

    def _keys_of(self, dtype: np.dtype[Any]) -> tuple[Figures, Codes]:
        """The whole numbers that have a cell and fit this width, rising, and their cells."""
        if dtype not in self._sorted:
            limits = np.iinfo(dtype)
            keys = sorted(key for key in self.keys if limits.min <= key <= limits.max)
            cells = np.array([self.keys[key] for key in keys], dtype=self.dtype)
            self._sorted[dtype] = np.array(keys, dtype=dtype), cells
        return self._sorted[dtype]

    def _of_real(self, values: NDArray[np.float64]) -> Codes:
        places = self._of_real_as_whole(values)
        if self.real_keys:
            keys = np.array(sorted(self.real_keys))
            at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            hits = keys[at] == values
            places[hits] = np.array([self.real_keys[float(key)] for key in keys], dtype=self.dtype)[at[hits]]
        return places


def encoder(column: Column) -> Encoder:
    """What encodes this column."""
    kinds: dict[type[Column], type[Any]] = {
        Integers: IntegerCells,
        Numbers: NumberCells,
        Categories: CategoryCells,
        Dates: DateCells,
    }
    if type(column) not in kinds:
        raise InvalidSchema(
            f"column {quoted(column.name)}: no engine reads a {type(column).__name__} column. Nothing was read."
        )
    made: Encoder = kinds[type(column)](column)
    return made


def _shortest(text: str) -> bool:
    """Whether this is how the float that it stands for is written."""
    try:
        return repr(float(text)) == text and not float(text).is_integer()
    except ValueError:
        return False
