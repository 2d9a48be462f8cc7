"""Keeping a release: the place is taken before anything is spent, and what was paid for is not lost for want of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tacit.errors import InvalidParameter, Unavailable
from tacit.service.located import printable

Writer = Callable[[Path], None]  # fills an empty folder


class Shelf:
    """A folder that does not exist yet, prepared beside where it will lie.

    Entering it refuses, at no cost, whatever would make the writing fail later; `keep` writes beside the place and
    then renames, so that the folder is there whole or not at all.
    """

    def __init__(self, folder: str | os.PathLike[str], *, replace: bool = False, needs: int = 0) -> None:
        self.folder = Path(os.fsdecode(folder))
        self._replace, self._needs = replace, needs
        self._beside = Path()

    def __enter__(self) -> Shelf:
        shown, parent = printable(self.folder), self.folder.absolute().parent
        if "\0" in str(self.folder) or self.folder.name in ("", ".."):
            raise InvalidParameter(f"{shown} cannot be the folder of a release. Nothing was spent.")
        if os.path.lexists(self.folder):
            if not self._replace:
                raise InvalidParameter(f"{shown} exists; name another folder, or add --force. Nothing was spent.")
            if self.folder.is_symlink() or not (self.folder / "synopsis.json").is_file():
                raise InvalidParameter(
                    f"{shown} is not a folder that holds a release, so --force does not replace it. Nothing was spent."
                )
        try:
            parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(self.folder):
                self.folder.mkdir()  # whether this name can be made is known only by making it
                self.folder.rmdir()
            free = shutil.disk_usage(parent).free
            self._beside = Path(tempfile.mkdtemp(prefix=f".{self.folder.name[:40]}-", dir=parent))
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

    def keep(self, write: Writer) -> None:
        """Fills the folder; where that fails, fills another and says which."""
        try:
            self._fill(write)
        except Exception as error:  # whatever it is, what was paid for must not be lost to it
            why = reason(error)
        else:
            return
        for elsewhere in (self._beside.parent, Path(tempfile.gettempdir())):
            try:
                rescued = Path(tempfile.mkdtemp(prefix=f"{self.folder.name[:40]}-rescued-", dir=elsewhere)) / "release"
                write(rescued)
            except Exception:  # noqa: S112 - there is another place, and then a refusal
                continue
            raise Unavailable(
                f"{printable(self.folder)} could not be written: {why}. The release was charged and drawn, and lies in "
                f"{printable(rescued)}; move it from there, nothing needs to be spent again."
            )
        raise Unavailable(f"the release was charged and drawn, but could not be written anywhere: {why}.")

    def _fill(self, write: Writer) -> None:
        made, aside = self._beside / "release", self._beside / "replaced"
        write(made)
        if self._replace and os.path.lexists(self.folder):
            os.rename(self.folder, aside)
        try:
            os.rename(made, self.folder)
        except OSError:
            if aside.exists():
                os.rename(aside, self.folder)
            raise

    def _clear(self) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)


def reason(error: Exception) -> str:
    """Why it could not be written: in the system's own words, if it was the system."""
    if isinstance(error, OSError):
        return (error.strerror or "the system refused").lower()
    return "there is not enough memory" if isinstance(error, MemoryError) else "an unforeseen fault"
