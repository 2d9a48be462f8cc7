"""Keeping what was made: the place is taken beforehand, filled whole or not at all, and nothing paid for is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.domain.storage import to_disk
from tacit.errors import InvalidParameter, TacitError, Unavailable
from tacit.service.located import printable

Writer = Callable[[Path], None]  # makes a file or a folder where there is none


@dataclass(frozen=True)
class Kind:
    """What may lie in a place, and so may be replaced there by force."""

    name: str
    ours: Callable[[Path], bool]


RELEASE = Kind("a folder that holds a release", lambda place: (place / "synopsis.json").is_file())
FILE = Kind("a plain file", Path.is_file)


class Shelf:
    """A place where nothing lies yet, prepared beside where it will lie.

    Entering it refuses, at no cost, whatever would make the writing fail later; what is written is written beside the
    place and then renamed, so that it is there whole or not at all.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, replace: bool = False, needs: int = 0, kind: Kind = RELEASE
    ) -> None:
        self.place = Path(os.fsdecode(place))
        self._replace, self._needs, self._kind = replace, needs, kind
        self._beside = Path()

    def __enter__(self) -> Shelf:
        shown, parent = printable(self.place), self.place.absolute().parent
        if "\0" in str(self.place) or self.place.name in ("", ".."):
            raise InvalidParameter(f"{shown} cannot be {self._kind.name}. Nothing was spent.")
        if os.path.lexists(self.place):
            if not self._replace:
                raise InvalidParameter(f"{shown} exists; name another place, or add --force. Nothing was spent.")
            if self.place.is_symlink() or not self._kind.ours(self.place):
                raise InvalidParameter(
                    f"{shown} is not {self._kind.name}, so --force does not replace it. Nothing was spent."
                )
        try:
            parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(self.place):
                self.place.mkdir()  # whether this name can be made is known only by making it
                self.place.rmdir()
            free = shutil.disk_usage(parent).free
            self._beside = Path(tempfile.mkdtemp(prefix=f".{self.place.name[:40]}-", dir=parent))
        except OSError as error:
            raise InvalidParameter(f"{shown} cannot be written: {reason(error)}. Nothing was spent.") from None
        if free < self._needs:
            self._clear()
            raise InvalidParameter(
                f"{shown} may need {self._needs // 2**20 + 1} MB and the disk has {free // 2**20}. Nothing was spent."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def put(self, write: Writer) -> None:
        """Fills the place, or leaves it as it was."""
        try:
            self._fill(write)
        except TacitError:
            raise
        except Exception as error:
            raise Unavailable(f"{printable(self.place)} could not be written: {reason(error)}.") from None

    def keep(self, write: Writer) -> None:
        """Fills the place with a release that was paid for; where that fails, fills another and says which."""
        try:
            self._fill(write)
        except Exception as error:  # whatever it is, what was paid for must not be lost to it
            why = reason(error)
        else:
            return
        for elsewhere in (self._beside.parent, Path(tempfile.gettempdir())):
            try:
                rescued = Path(tempfile.mkdtemp(prefix=f"{self.place.name[:40]}-rescued-", dir=elsewhere)) / "release"
                write(rescued)
            except Exception:  # noqa: S112 - there is another place, and then a refusal
                continue
            raise Unavailable(
                f"{printable(self.place)} could not be written: {why}. The release was charged and drawn, and lies in "
                f"{printable(rescued)}; move it from there, nothing needs to be spent again."
            )
        raise Unavailable(f"the release was charged and drawn, but could not be written anywhere: {why}.")

    def _fill(self, write: Writer) -> None:
        made, aside = self._beside / "made", self._beside / "replaced"
        write(made)
        for file in (made, *made.rglob("*")):
            to_disk(file)
        if self._replace and os.path.lexists(self.place):
            os.rename(self.place, aside)
        try:
            os.rename(made, self.place)
        except OSError:
            if aside.exists():
                os.rename(aside, self.place)
            raise

    def _clear(self) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)


def reason(error: Exception) -> str:
    """Why it could not be written: in the system's own words, if it was the system."""
    if isinstance(error, OSError):
        return (error.strerror or "the system refused").lower()
    return "there is not enough memory" if isinstance(error, MemoryError) else "an unforeseen fault"
