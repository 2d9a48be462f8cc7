"""What a person sees: results on standard output, everything else on standard error; JSON where a machine asks."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tacit.errors import Unavailable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PATIENCE = 2.0  # seconds before a wait is explained
WIDE = 200  # letters in a line that no terminal cuts: a file, or another program
REMINDER = 15.0  # seconds between two lines of a wait, where there is no terminal to draw on


class Screen:
    """Where a command writes: `--json` leaves one object on standard output, `--quiet` the bare result."""

    def __init__(self, machine: bool = False, quiet: bool = False) -> None:
        self.machine, self.quiet = machine, quiet

    def note(self, text: str) -> None:
        """Something that helps and may be missed."""
        if not self.quiet:
            aside(plain(text))

    def warn(self, text: str) -> None:
        """Something that must not be missed."""
        aside(f"warning: {plain(text)}")

    def say(self, text: str = "") -> None:
        """A line of the result, for people."""
        if not (self.machine or self.quiet):
            result(plain(text))

    def bare(self, text: str) -> None:
        """A line of the result that `--quiet` leaves."""
        if self.quiet and not self.machine:
            result(plain(text))

    def give(self, whole: Mapping[str, Any]) -> None:
        """The whole result, for machines."""
        if self.machine:
            result(json.dumps(whole, indent=2, ensure_ascii=True))

    def fail(self, kind: str, text: str, code: int, help_: str = "") -> int:
        """The end of a command that could not do what was asked."""
        if help_:
            aside(f"{help_}\n")
        aside(f"tacit: {plain(text)}")
        with suppress(BrokenPipeError, Unavailable):  # the code says it too
            self.give({"error": {"kind": kind, "message": text, "exit": code}})
        return code

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Names and values, one to a line."""
        if self.machine or self.quiet:
            return
        width = max(len(name) for name, _ in facts)
        for name, value in facts:
            result(f"  {name:<{width}}  {plain(value)}")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> None:
        """A table; the columns of `words` are text, the others numbers."""
        if self.machine or self.quiet:
            return
        from rich import box  # 40 ms that only a table should cost
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for at, header in enumerate(headers):
            table.add_column(Text(header), justify="left" if at in words else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(cell)) for cell in row))
        console = _console(sys.stdout)
        with console.capture() as drawn:  # rich would end the program where a reader has left
            console.print(table)
        result(drawn.get().rstrip("\n"))


def result(text: str) -> None:
    """A line on standard output, on its way before the next one is made."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        why = (error.strerror or "the system refused").lower()
        raise Unavailable(f"standard output cannot be written: {why}. What was done before stays done.") from None


def aside(text: str) -> None:
    """A line on standard error, where there is one; that nobody reads it is no reason to stop."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def _console(file: Any) -> Console:
    from rich.console import Console

    width = None if file.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


class Reading:
    """How far the rows have been read, once it takes longer than two seconds.

    Under add-remove neighbours the number of rows is private: then neither it nor the speed is shown.
    """

    def __init__(self, screen: Screen, public: bool, what: str = "reading the table", of: str = " rows") -> None:
        self._silent = screen.quiet
        self._public, self._what, self._of = public, what, of
        self._began = self._told = time.monotonic()
        self._drawn: Progress | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """A table's report while it is read."""
        now = time.monotonic()
        waited = now - self._began
        if self._silent or waited < PATIENCE:
            return
        speed = f"{done:,}{self._of}, {done / waited:,.0f}{self._of}/s" if self._public else ""
        if not _drawable():
            if now - self._told >= (REMINDER if self._told > self._began else PATIENCE):
                self._told = now
                share = f", {done / total:.0%}" if total else ""
                aside(f"{self._what} ({waited:.0f} s{share}{', ' if speed else ''}{speed})")
            return
        if self._drawn is None:
            self._drawn = _bar(counted=total is not None)
            self._drawn.start()
            self._drawn.add_task(self._what, total=total, speed=speed)
        self._drawn.update(self._drawn.task_ids[0], completed=done if total else 0, total=total, speed=speed)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn is not None:
            self._drawn.stop()


class Counting(Reading):
    """How much of something public is done, once it takes longer than two seconds."""

    def __init__(self, screen: Screen, what: str) -> None:
        super().__init__(screen, True, what, "")


class Waiting:
    """That something is being done which cannot say how far it is, once it takes longer than two seconds."""

    def __init__(self, screen: Screen, what: str) -> None:
        self._what = what
        self._silent = screen.quiet
        self._drawn: Progress | None = None
        self._timer = threading.Timer(PATIENCE, self._tell)
        self._timer.daemon = True

    def _tell(self) -> None:
        if not _drawable():
            aside(f"{self._what} ...")
            return
        drawn = _bar(counted=False)
        drawn.start()
        drawn.add_task(self._what, total=None, speed="")
        self._drawn = drawn

    def __enter__(self) -> Waiting:
        if not self._silent:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if not self._silent:
            self._timer.join()
        if self._drawn is not None:
            self._drawn.stop()


def _drawable() -> bool:
    """Whether a line can be drawn over."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _bar(counted: bool) -> Progress:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if counted:  # else it would stand at 0 %
        columns.insert(3, TaskProgressColumn())
    return Progress(*columns, TextColumn("{task.fields[speed]}"), console=_console(sys.stderr), transient=True)


def plain(text: str) -> str:
    """The text on one line, whatever a label or a path may hold: what cannot be printed is escaped.

    >>> plain("red\\x1b[31m")
    'red\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def count(value: float) -> str:
    """A count as people write it: a small one keeps a decimal, an unknown one is a dash.

    >>> count(48123.4), count(3.14159), count(-0.04), count(float("nan"))
    ('48,123', '3.1', '0', '-')
    """
    if value != value:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"
    return "0" if text in ("-0", "-0.0", "0.0") else text
