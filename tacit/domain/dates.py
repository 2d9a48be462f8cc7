"""Calendar dates, in public buckets of a day, a week, a month, a quarter or a year."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

from tacit.domain.column import MOST_CELLS, Column
from tacit.errors import quoted

PERIODS = ("day", "week", "month", "quarter", "year")

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Dates(Column):
    """The days from `first` to `last`, both included, one cell for each period; weeks begin on Mondays (ISO 8601).

    The first and the last period are cut where the domain begins and ends. Days are of the Gregorian calendar.

    >>> visits = Dates("visited", "2024-01-15", "2024-03-31", "month")
    >>> visits.labels, visits.locate("2024-02-29")
    (('2024-01', '2024-02', '2024-03'), 1)
    """

    first: date
    last: date
    by: str

    def __post_init__(self) -> None:
        super().__post_init__()
        for end in ("first", "last"):
            object.__setattr__(self, end, self._day(getattr(self, end)))
        if self.by not in PERIODS:
            raise self._refuse(f"by is one of {', '.join(PERIODS)}, not {quoted(self.by)}")
        if self.first > self.last:
            raise self._refuse(f"its days {self.first} to {self.last} must rise")
        if (self.last - self.first).days >= MOST_CELLS:
            raise self._refuse(f"it spans more than {MOST_CELLS} days")

    def _day(self, said: object) -> date:
        if isinstance(said, date) and not isinstance(said, datetime):
            return said
        if isinstance(said, str) and (day := day_of(said)) is not None:
            return day
        raise self._refuse(f"its values are days, written as 2024-12-31, not {quoted(said)}")

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first day of every cell, and the day after the last one: counted from 1970-01-01."""
        found, day = [self.first], self.first
        while (day_after := _next(day, self.by)) is not None and day_after <= self.last:
            found.append(day := day_after)
        return (*(one.toordinal() - _EPOCH for one in found), self.last.toordinal() + 1 - _EPOCH)

    @property
    def domain(self) -> tuple[str, ...]:
        return tuple(_label(date.fromordinal(start + _EPOCH), self.by) for start in self.starts[:-1])

    @property
    def domain_size(self) -> int:
        return len(self.starts) - 1

    def locate(self, value: object) -> int | None:
        day = self._day(value).toordinal() - _EPOCH
        return bisect_right(self.starts, day) - 1 if self.starts[0] <= day < self.starts[-1] else None

    def describe(self) -> dict[str, Any]:
        days = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {"name": self.name, **days, "by": self.by, **self._places_said()}


def day_of(text: str) -> date | None:
    """The day that a text of ten characters writes; None if it writes none.

    >>> day_of("2024-02-29"), day_of("2023-02-29"), day_of("20240229")
    (datetime.date(2024, 2, 29), None, None)
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def number_of(day: date) -> int:
    """A day, counted from 1970-01-01."""
    return day.toordinal() - _EPOCH


def shown_day(number: int) -> str:
    """The same day, written; the one after the last of the calendar as the year 10000 would begin.

    >>> shown_day(0), shown_day(2932897)
    ('1970-01-01', '10000-01-01')
    """
    return date.fromordinal(number + _EPOCH).isoformat() if number + _EPOCH <= date.max.toordinal() else "10000-01-01"


def _next(day: date, by: str) -> date | None:
    """The first day of the next period; None where the calendar ends."""
    try:
        if by == "day":
            return day + timedelta(days=1)
        if by == "week":
            return day + timedelta(days=7 - day.weekday())
        months = {"month": 1, "quarter": 3, "year": 12}[by]
        month = (day.month - 1) // months * months + months
        return date(day.year + month // 12, month % 12 + 1, 1)
    except (ValueError, OverflowError):
        return None


def _label(day: date, by: str) -> str:
    if by == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    quarter = f"-Q{(day.month + 2) // 3}"
    iso = day.isoformat()
    return {"day": iso, "month": iso[:7], "quarter": iso[:4] + quarter, "year": iso[:4]}[by]
