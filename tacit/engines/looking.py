"""What a column happens to hold: categories and bounds read off the rows, for a draft that nobody has signed.

Nothing here is private. What it finds goes into a draft under the mark "from data" and nowhere else, and what the rows
hold decides no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from tacit.domain.dates import number_of
from tacit.domain.listing import clean
from tacit.engines.columns import DAYS, REAL, TEXT, TRUTH, UNTYPED, WHOLE, bare
from tacit.engines.counting import chunk
from tacit.engines.days import day_in
from tacit.engines.figures import number_in
from tacit.engines.listing import LONGEST, texts
from tacit.engines.sources import UNREADABLE
from tacit.errors import DataUnavailable

_FINITE = 2.0**53


@dataclass
class Seen:
    """What a column was seen to hold."""

    sort: str
    most: int  # categories that are remembered
    categories: set[str] | None = field(default_factory=set)  # None: more than that
    low: float | int | None = None
    high: float | int | None = None
    first: int | None = None
    last: int | None = None
    numbers: bool = True  # whether all were
    wholes: bool = True
    days: bool = True

    def add(self, value: bytes) -> None:
        """One more value."""
        if not value.strip():
            return
        text = clean(value, LONGEST)
        if text is not None and self.categories is not None:
            self.categories.add(text)
            if len(self.categories) > self.most:
                self.categories = None
        number = number_in(value) if self.numbers and self.sort != TEXT else None
        self.numbers = self.numbers and number is not None
        if number is not None and abs(number) <= _FINITE:  # a NaN is not
            self.wholes = self.wholes and number == int(number)
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)
        day = day_in(value) if self.days and self.sort in (DAYS, UNTYPED) else None
        self.days = self.days and day is not None
        if day is not None:
            self.first = day if self.first is None else min(self.first, day)
            self.last = day if self.last is None else max(self.last, day)

    @property
    def is_days(self) -> bool:
        """Whether it can be declared as days."""
        return self.days and self.first is not None and self.sort in (DAYS, UNTYPED)

    @property
    def is_numbers(self) -> bool:
        """Whether it can be declared as numbers."""
        return self.numbers and self.low is not None and self.sort in (WHOLE, REAL, UNTYPED)

    @property
    def is_whole(self) -> bool:
        """Whether all of these are whole."""
        return self.is_numbers and self.wholes


def looked(place: str, table: str | None, sorts: Mapping[str, str], most: int) -> dict[str, Seen]:
    """Reads all rows and says what these columns, of these sorts, hold."""
    source = bare(place, table)
    for _ in source.headers():  # they open it
        pass
    found = {name: Seen(sort, most) for name, sort in sorts.items() if sort != TRUTH}
    failed = False
    try:
        names = tuple(found)
        source.check()
        for batch in source.batches(names, chunk(len(names))) if names else ():
            for name, values in zip(names, batch.columns, strict=True):
                for value in texts(values)[0]:
                    if value is not None:
                        found[name].add(value)
        source.check()
    except Exception:  # whatever it is may hold a value
        failed = True
    if (close := getattr(source, "close", None)) is not None:
        close()
    if failed:
        raise DataUnavailable(
            UNREADABLE.replace("what was charged stays charged, nothing was drawn", "nothing was spent")
        )
    return found


def year_of(day: int) -> int:
    """In which year a day lies that is counted from 1970-01-01; days beyond the calendar lie at its ends."""
    first = number_of(date(1, 1, 1))
    return date.fromordinal(min(max(day - first + 1, 1), date.max.toordinal())).year
