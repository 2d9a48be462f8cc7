"""Which files a source is made of, and whether they are still the ones that were opened."""

from __future__ import annotations

import glob
import os
import stat
from typing import TypeAlias
from urllib.parse import unquote

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
DELIMITERS = frozenset("\t !#$%&'()*,/:;<=>?@[]^_`{|}~")  # of a CSV file: what no number holds, nor a quote or escape
_NULL = "__HIVE_DEFAULT_PARTITION__"  # the folder of what is missing
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
        self.parts = [_parts(place, path) for path in self.paths]
        if self.parted and self.kind != "Parquet":
            raise InvalidData(f"{quoted(place)}: folders named key=value hold Parquet files here. Nothing was read.")
        if len({tuple(parts) for parts in self.parts}) > 1:
            raise InvalidData(f"{quoted(place)}: its folders are not all named by the same keys. Nothing was read.")
        self.stamps = self._stamps()

    @property
    def parted(self) -> tuple[str, ...]:
        """The columns that the names of the folders hold, as Hive lays a table out."""
        return tuple(self.parts[0])

    def shown(self, path: str) -> str:
        """What a refusal may call a file: of a table by folders the folder alone, for its names are values."""
        return quoted(self.place if self.parted else path)

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
        return [*(stamp(path, self.shown(path)) for path in self.paths), *present]


def listed(place: str) -> list[str]:
    """The paths of the files at a place, sorted."""
    if "\0" in place:
        raise InvalidData(f"{quoted(place)} is not a path. Nothing was read.")
    if os.path.isdir(place):
        paths, inside = _within(place, place), place
    elif glob.has_magic(place) and not os.path.lexists(place):
        paths = glob.glob(place, recursive=True)
        inside = os.path.dirname(place[: min(place.index(letter) for letter in "*?[" if letter in place)]) or "."
    else:
        return [place]
    if not paths:
        raise InvalidData(f"no data file at {quoted(place)}. Nothing was read.")
    root = os.path.realpath(inside)

    def told(path: str) -> str:  # the name of a folder may be a value
        return f"what is in {quoted(place)}" if _parts(place, path) else quoted(path)

    for path in paths:
        if os.path.isdir(path):
            raise InvalidData(f"{told(path)} is a folder; name the files by a pattern. Nothing was read.")
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise InvalidData(f"{told(path)} leads out of {quoted(place)}. Nothing was read.")
    return sorted(paths)


def _within(folder: str, place: str) -> list[str]:
    """The files of a folder, and of the folders in it that are named key=value."""
    found: list[str] = []
    for entry in _entries(folder, place):
        if entry.name.startswith((".", "_")):
            continue
        named = "=" in entry.name and entry.is_dir(follow_symlinks=False)
        found += _within(entry.path, place) if named else [entry.path]
    return found


def _parts(place: str, path: str) -> dict[str, str | None]:
    """What the names of the folders between say: `year=2024/sex=F`; a value may be written as in an address."""
    if not os.path.isdir(place):
        return {}
    folders = os.path.relpath(os.path.dirname(path), place).split(os.sep)
    pairs = [folder.partition("=")[::2] for folder in folders if "=" in folder]
    return {unquote(key): None if value == _NULL else unquote(value) for key, value in pairs}


def stamp(path: str, shown: str = "") -> Stamp:
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
    raise InvalidData(f"{shown or quoted(path)}: {why}. Nothing was read.")


def _entries(folder: str, place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        why = error.strerror or "it cannot be read"
    raise InvalidData(f"{quoted(place)}: {why}. Nothing was read.")
