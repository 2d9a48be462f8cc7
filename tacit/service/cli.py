"""The command line: try a town, make a ledger, release, ask, and see what was spent."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, TextIO

import typer

from tacit.errors import InvalidInput, Refused, TacitError, Unavailable
from tacit.service import commands as _commands  # noqa: F401 - they register themselves
from tacit.service.commands.command import WRONG, app, named
from tacit.service.show import Screen

REFUSED, UNAVAILABLE, UNEXPECTED, INTERRUPTED, LEFT = 3, 4, 70, 130, 141

# constant, for what failed unexpectedly may hold a value of the data
UNEXPECTED_TEXT = (
    "a fault of tacit itself; what was charged stays charged (tacit ledger show). "
    "TACIT_DEBUG=1 shows the details, which may hold values of the data."
)


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Answer very many questions about a confidential table while provably protecting every person in it.

    \b
    Examples:
      tacit demo                             a town of invented people
      tacit ledger create people.toml        once: a contract becomes a budget
      tacit plan people.toml -w marginals:2 --epsilon 1
      tacit release people.toml -w marginals:2 --epsilon 1 --out released
      tacit ask released "age >= 40"         free, as often as you like
      tacit ask people.toml "age >= 40" --epsilon 0.5
      tacit export released released.duckdb  for other programs
      tacit ledger show people.toml          who spent what, and what is left

    Exit codes: 0 done, 2 the request is wrong, 3 the budget does not allow it, 4 data, ledger or noise failed,
    70 a fault of tacit itself, 130 interrupted, 141 the reader of the output has left.
    """
    if version:
        from tacit import __version__

        print(f"tacit {__version__}")
        raise typer.Exit
    named(context)


def main() -> None:
    """The program `tacit`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no reason to fail
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup a hang-up stays unheard
            signal.signal(number, signal.default_int_handler)  # as Ctrl-C: it tidies up, and says what was spent
    if os.environ.get("TACIT_DEBUG") != "1":
        warnings.simplefilter("ignore")  # a warning of a library may quote what it was given
    try:
        code = run(sys.argv[1:])
    except BrokenPipeError:  # whoever read us has gone; there is nobody to tell
        code = LEFT
    _emptied(sys.stderr)
    sys.exit(code if _emptied(sys.stdout) else code or UNAVAILABLE)


def _emptied(stream: TextIO | None) -> bool:
    """Whether all that was written has gone out; what cannot is dropped, or Python would complain of it at the exit."""
    if stream is None:
        return True
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code; but for TACIT_DEBUG=1 no exception leaves it."""
    screen = Screen("--json" in arguments)
    command = typer.main.get_command(app)
    try:
        with command.make_context("tacit", _spelt(arguments)) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        raise
    except KeyboardInterrupt as error:
        return screen.fail("Interrupted", str(error) or "interrupted. Nothing was spent.", INTERRUPTED)
    except TacitError as error:
        return screen.fail(type(error).__name__, str(error), _code(error))
    except Exception as error:
        if usage := getattr(error, "format_message", None):  # of typer, whichever library it stands on
            there = getattr(error, "ctx", None)
            where = there.command_path if there else "tacit"
            return screen.fail("Usage", f"{usage().rstrip('.')}. Nothing was spent. See: {where} --help", WRONG)
        if os.environ.get("TACIT_DEBUG") == "1":
            screen.warn("TACIT_DEBUG=1: what follows may hold values of the data")
            raise
        return screen.fail("Unexpected", UNEXPECTED_TEXT, UNEXPECTED)
    return 0


def _spelt(arguments: Sequence[str]) -> list[str]:
    """`tacit ledger people.toml` means show."""
    said = list(arguments)
    word = next((word for word in said[1:] if not word.startswith("-")), "")
    contract = word.endswith(".toml") or os.path.isfile(word)
    before = said[1:2] != [word] and any(word.endswith(".toml") for word in said)  # options, and what belongs to them
    if said[:1] == ["ledger"] and (contract or before):
        said.insert(1, "show")
    return said


def _code(error: TacitError) -> int:
    kinds = ((InvalidInput, WRONG), (Refused, REFUSED), (Unavailable, UNAVAILABLE))
    return next((code for kind, code in kinds if isinstance(error, kind)), UNEXPECTED)


if __name__ == "__main__":
    main()
