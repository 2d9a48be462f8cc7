"""Which files a source is made of, and whether they are still the ones that were opened."""

from __future__ import annotations

import glob
import os
import stat
from typing import TypeAlias

from tacit.errors import DataUnavailable, InvalidData, quoted

KINDS = {  # by the end of the name
    ".csv": "CSV",
    ".tsv": "TSV",
    ".tab": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".duckdb": "DuckDB",
    ".ddb": "DuckDB",
}
CHANGED = "the source has changed since it was opened; what was charged stays charged, nothing was drawn."
BESIDE = {"DuckDB": ".wal"}  # what is not yet in the file itself
Stamp: TypeAlias = tuple[int, int, int, int, int]


class Files:
    """One file, the files of a folder, or those that a pattern names: all of one kind, in the order of their names."""

    def __init__(self, place: str, kind: str | None = None) -> None:
        self.place = place
        self.paths = listed(place)
        kinds = {kind or KINDS.get(os.path.splitext(path)[1].lower(), "") for path in self.paths}
        if len(kinds) != 1 or "" in kinds:
            raise InvalidData(
                f"{quoted(place)} must name files of one kind, by one of the endings {', '.join(KINDS)}. "
                "Nothing was read."
            )
        self.kind = kinds.pop()
        self.stamps = self._stamps()

    def check(self) -> None:
        """Stops when a file has gone, come, or changed since it was opened: counts of two tables must not mix."""
        try:
            same = listed(self.place) == self.paths and self._stamps() == self.stamps
        except InvalidData:
            same = False
        if not same:
            raise DataUnavailable(CHANGED)

    def _stamps(self) -> list[Stamp | None]:
        beside = [path + BESIDE[self.kind] for path in self.paths if self.kind in BESIDE]
        present = [stamp(path) if os.path.lexists(path) else None for path in beside]
        return [*(stamp(path) for path in self.paths), *present]


def listed(place: str) -> list[str]:
    """The paths of the files at a place, sorted."""
    if "\0" in place:
        raise InvalidData(f"{quoted(place)} is not a path. Nothing was read.")
    if os.path.isdir(place):
        paths = [entry.path for entry in _entries(place) if not entry.name.startswith((".", "_"))]
        inside = place
    elif glob.has_magic(place) and not os.path.lexists(place):
        paths = glob.glob(place, recursive=True)
        inside = os.path.dirname(place[: min(place.index(letter) for letter in "*?[" if letter in place)]) or "."
    else:
        return [place]
    if not paths:
        raise InvalidData(f"no data file at {quoted(place)}. Nothing was read.")
    root = os.path.realpath(inside)
    for path in paths:
        if os.path.isdir(path):
            raise InvalidData(f"{quoted(path)} is a folder; name the files by a pattern. Nothing was read.")
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise InvalidData(f"{quoted(path)} leads out of {quoted(place)}. Nothing was read.")
    return sorted(paths)


def stamp(path: str) -> Stamp:
    """What changes when a file does; refuses what is not a plain file, for a pipe may never end.

    The time of its last change is set by the system alone: it moves with a rename, and where the time of the last
    writing is put back.
    """
    try:
        seen = os.stat(path)
    except OSError as error:
        why = error.strerror or "it cannot be read"
    else:
        if stat.S_ISREG(seen.st_mode):
            return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
        why = "not a plain file"
    raise InvalidData(f"{quoted(path)}: {why}. Nothing was read.")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        why = error.strerror or "it cannot be read"
    raise InvalidData(f"{quoted(folder)}: {why}. Nothing was read.")
