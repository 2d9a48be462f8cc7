"""A table as a CSV file: a header and one line a row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tacit.errors import InvalidParameter, quoted


def write_csv(
    path: str | os.PathLike[str], names: Sequence[str], rows: Iterable[Sequence[object]], *, overwrite: bool = False
) -> None:
    """Writes it in UTF-8; it is there whole or not at all."""
    place = Path(path)
    if place.is_dir() or (place.exists() and not overwrite):
        raise InvalidParameter(f"{quoted(place)} exists; name another file, or say overwrite=True.")
    beside = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with open(beside, "x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
