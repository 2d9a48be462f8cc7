"""Domains between two ends, as a draft proposes them: whole numbers, cells of equal width, months or years."""

from __future__ import annotations

from datetime import date
from math import ceil, floor, log10

from tacit.domain.schema import CLAMP, written
from tacit.service.domains import Domain

MOST_WHOLE = 1000  # cells of one whole number each; more are put together
CELLS = 20  # about so many, where they are cut
MONTHS = 10  # years within which months are told apart


def wholes(low: int, high: int, mark: str) -> Domain:
    """Whole numbers, a cell each or cut."""
    if high - low < MOST_WHOLE:
        return Domain({"low": low, "high": high}, outside=CLAMP, mark=mark)
    return reals(low, high, mark)


def reals(low: float, high: float, mark: str) -> Domain:
    """About CELLS cells of equal, round width, from below the one end to above the other.

    >>> reals(0, 97_000, "bought").said["edges"][:3]
    ['0', '5000', '10000']
    """
    width = _round((high - low) / CELLS) if high > low else 1.0
    first, last = floor(low / width), ceil(high / width)
    ends = [step * width for step in range(first, max(last, first + 1) + 1)]
    return Domain({"edges": [written(float(f"{end:.12g}")) for end in ends]}, missing="cell", outside=CLAMP, mark=mark)


def days(first: int, last: int, mark: str) -> Domain:
    """Whole years from the one to the other, by month where they are few."""
    by = "month" if last - first < MONTHS else "year"
    return Domain({"from": date(first, 1, 1), "to": date(last, 12, 31), "by": by}, outside=CLAMP, mark=mark)


def _round(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below this."""
    power = float(10.0 ** floor(log10(width)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9))
