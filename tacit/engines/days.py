"""Calendar days: what stands for one in a source, and in which cell it lies."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.domain.dates import day_of, number_of, shown_day
from tacit.domain.schema import Dates
from tacit.engines.encoder import ABOVE_AT, BELOW_AT, LONGEST_LEXICON, OUTSIDE_AT, Codes, Encoder, within_bounds
from tacit.engines.figures import Figures, is_text, primitives

_DAY = re.compile(
    rb"[ \t]*([0-9]{4}-[0-9]{2}-[0-9]{2})"
    rb"(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::(?:[0-5][0-9]|60)(?:[.,][0-9]+)?)?"
    rb"[ ]?([Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?[ \t]*"
)


class DateCells(Encoder):
    """Calendar days in their periods; a number is no day."""

    parses = True
    column: Dates

    @property
    def readable(self) -> str:
        return "dates, times or texts"

    def _takes(self, kind: pa.DataType) -> bool:
        return holds_days(kind)

    def _lexicon(self) -> dict[bytes, int]:
        starts = self.column.starts
        if starts[-1] - starts[0] > LONGEST_LEXICON:
            return {}
        cells = enumerate(pairwise(starts))
        return {shown_day(day).encode(): cell for cell, (start, end) in cells for day in range(start, end)}

    def _of_primitives(self, values: pa.Array) -> Codes:
        return self._of_whole(days_of(values))

    def _of_numerals(self, texts: pa.Array) -> Codes:
        found = [day_in(text) for text in texts.to_pylist()]
        places = self._stray(len(found), OUTSIDE_AT)
        days = [at for at, day in enumerate(found) if day is not None]
        places[days] = self._of_whole(np.array([found[at] for at in days], dtype=np.int64))
        return places

    def _of_whole(self, values: Figures) -> Codes:
        starts = np.array(self.column.starts)
        if self.column.by == "day":
            return within_bounds(values, int(starts[0]), int(starts[-1]) - 1, self.size, self.dtype)
        places = np.searchsorted(starts[1:-1], values, side="right").astype(self.dtype)
        places[values < starts[0]] = self.size + BELOW_AT
        places[values >= starts[-1]] = self.size + ABOVE_AT
        return places

    def _of_real(self, values: NDArray[np.float64]) -> Codes:
        return self._stray(len(values), OUTSIDE_AT)


def holds_days(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type can be days; texts can."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind)) or is_text(kind)


def days_of(values: pa.Array) -> NDArray[np.int64]:
    """Dates and times as days from 1970-01-01, times with a zone by UTC; what stands under a null is anything.

    Neither the machine's time zone nor a table of zones has a say: the same file has the same days everywhere.
    """
    if pa.types.is_date32(values.type):
        return primitives(values.view(pa.int32())).astype(np.int64)
    unit = "ms" if pa.types.is_date64(values.type) else values.type.unit
    a_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return primitives(values.view(pa.int64())) // a_day


def day_in(text: bytes) -> int | None:
    """The day that a text stands for, counted from 1970-01-01; None if it stands for none.

    Days as ISO 8601 writes them, with a time after them or not: of a time with an offset the day by UTC.

    >>> [day_in(text) for text in (b"1970-01-02", b" 1970-01-02T23:59 ", b"1970-01-02 01:00:00+02:00", b"1970-02-30")]
    [1, 1, 0, None]
    """
    if not (found := _DAY.fullmatch(text)) or (day := day_of(found[1].decode())) is None:
        return None
    number = number_of(day)
    hour, minute, offset = found[2], found[3], found[4]
    if hour is None or offset in (None, b"Z", b"z"):
        return number
    away = int(offset[1:3]) * 60 + int(offset[-2:] if len(offset) > 3 else 0)
    return number + (int(hour) * 60 + int(minute) - (away if offset[:1] == b"+" else -away)) // 1440
