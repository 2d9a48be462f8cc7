"""The command line: try a town, make a ledger, release, ask, and see what was spent."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand

from tacit.errors import InvalidInput, Refused, TacitError, Unavailable
from tacit.service.show import Screen, Waiting, count

WRONG, REFUSED, UNAVAILABLE, UNEXPECTED, INTERRUPTED, LEFT = 2, 3, 4, 70, 130, 141

# constant, for what failed unexpectedly may hold a value of the data
UNEXPECTED_TEXT = (
    "a fault of tacit itself; what was charged stays charged (tacit ledger show). "
    "TACIT_DEBUG=1 shows the details, which may hold values of the data."
)

app = typer.Typer(
    name="tacit",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ledger = typer.Typer(rich_markup_mode=None)
app.add_typer(ledger, name="ledger")

Machine = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress; only the bare result.")]
Signed = Annotated[Path, typer.Argument(metavar="CONTRACT", help="The contract, a TOML file.", show_default=False)]
By = Annotated[str | None, typer.Option(help="Who asks, for the ledger; by default the login name.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier one in that folder.")]


class Once(TyperCommand):
    """A command that refuses an option said twice: the last would silently win, and some of them spend."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        said: Sequence[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for option in said:
            if said.count(option) > 1 and not getattr(option, "is_flag", False):
                raise typer.BadParameter("it is given twice.", ctx, option)
        return super().parse_args(ctx, args)


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
      tacit release people.toml -w marginals:2 --epsilon 1 --out released
      tacit ask released "age >= 40"         free, as often as you like
      tacit ledger show people.toml          who spent what, and what is left

    Exit codes: 0 done, 2 the request is wrong, 3 the budget does not allow it, 4 data, ledger or noise failed,
    70 a fault of tacit itself, 130 interrupted, 141 the reader of the output has left.
    """
    if version:
        from tacit import __version__

        print(f"tacit {__version__}")
        raise typer.Exit
    _named(context)


def _named(context: typer.Context) -> None:
    """Refuses a group without a command, and shows which there are."""
    if context.invoked_subcommand is None:
        raise typer.Exit(Screen().fail("Usage", "name a command.", WRONG, context.get_help()))


@app.command(cls=Once)
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to put the town; by default tacit-demo, or the next free name.")
    ] = None,
    force: Force = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Try it on an invented town of 50,000 people.

    Releases all two-way marginals of the town at epsilon 1, and compares a few answers with the truth.

    The town, its contract, its ledger and its release are ordinary files on which the other commands can be tried.
    Nobody lives there: that is why the true counts are shown, here and nowhere else.

    \b
    Examples:
      tacit demo
      tacit demo --folder /tmp/town --force
      tacit demo --json
    """
    from tacit.service.demo import demonstrate

    demonstrate(folder, force, Screen(json, quiet))


@app.command(cls=Once)
def release(
    contract: Signed,
    workload: Annotated[
        str, typer.Option("--workload", "-w", help="marginals:2, marginals:1,2 or column sets: sex*age,income")
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What this release may spend: a decimal.")],
    delta: Annotated[str | None, typer.Option(help="By default the contract's; 0 for pure privacy.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write, which must not exist; for all but --plan.")
    ] = None,
    purpose: Annotated[str, typer.Option(help="What it is for, for the ledger.")] = "",
    by: By = None,
    rows: Annotated[int | None, typer.Option(help="Also write so many synthetic rows.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeats the synthetic rows, by default 0; the noise has no seed.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show price and expected error; read and spend nothing.")
    ] = False,
    force: Force = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Release marginals of a confidential table.

    They are charged to the ledger of its contract, noisy, and free to ask for ever.

    What can be checked is checked first. Then the rows are read, the whole price is charged, the noise is drawn, and
    the answers are written to the folder.

    \b
    Examples:
      tacit release people.toml -w marginals:2 --epsilon 1 --plan
      tacit release people.toml -w marginals:2 --epsilon 1 --out released
      tacit release people.toml -w "sex*age,income" -e 0.5 -o ages --by Ana
      tacit release people.toml -w marginals:2 -e 2 -o rows --rows 50000 --seed 1
    """
    from tacit.service.releasing import Wanted, carry_out

    wanted = Wanted(contract, workload, epsilon, delta, out, purpose, login() if by is None else by, rows, seed, force)
    carry_out(wanted, plan, Screen(json, quiet))


@app.command(cls=Once)
def ask(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that `tacit release` wrote.")],
    questions: Annotated[list[str], typer.Argument(metavar="PREDICATE...", help="Whom to count.")],
    confidence: Annotated[float, typer.Option(help="How surely the interval holds the exact count.")] = 0.95,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Ask a release how many people there are; free.

    It answers from what was released; neither the data nor the ledger is touched.

    A predicate compares columns with constants (= != < <= > >=, in (...), between ... and ..., is missing, is
    outside) and joins the comparisons by and, or, not and parentheses.

    \b
    Examples:
      tacit ask released "age >= 40 and sex = 'F'"
      tacit ask released "age >= 65" "age < 18" --json
      tacit ask released "income >= 50000 or income is missing" --confidence .99
    """
    from tacit.service.released import load

    screen = Screen(json, quiet)
    released = load(folder)
    with Waiting(screen, "answering"):
        answers = [released.ask(question, confidence=confidence) for question in questions]
    for answer in answers:
        screen.bare(f"{answer.value:.12g}")
    rows = [(text, count(a.value), count(a.low), count(a.high)) for text, a in zip(questions, answers, strict=True)]
    screen.table(("people with", "count", "low", "high"), rows)
    for question, answer in zip(questions, answers, strict=True):
        if answer.value == answer.standard_error == 0:
            screen.note(f"{question} is true of no cell of the columns: are its constants spelt as in the contract?")
    if any(answer.measured for answer in answers):
        screen.say(f"The exact count lies between low and high {100 * confidence:.6g} % of the time. It cost nothing.")
    if not all(answer.measured for answer in answers):
        screen.say("A count without low and high is an estimate: no released marginal holds its columns together.")
    said = [{"predicate": text, **a.describe()} for text, a in zip(questions, answers, strict=True)]
    screen.give({"folder": os.fspath(folder), "confidence": confidence, "answers": said})


@ledger.callback(invoke_without_command=True)
def book(context: typer.Context) -> None:
    """Create a ledger once; see what was spent.

    \b
    Examples:
      tacit ledger create people.toml
      tacit ledger show people.toml
      tacit ledger people.toml            the same as show
    """
    _named(context)


@ledger.command("create", cls=Once)
def create(contract: Signed, by: By = None, json: Machine = False, quiet: Quiet = False) -> None:
    """Make the ledger that a contract names.

    It holds the whole budget of the contract, is made once, and never starts afresh.

    \b
    Examples:
      tacit ledger create people.toml
      tacit ledger create people.toml --by "Ana Curator"
    """
    from tacit.service.ledgers import create_ledger

    create_ledger(contract, login() if by is None else by, Screen(json, quiet))


@ledger.command("show", cls=Once)
def show(contract: Signed, json: Machine = False, quiet: Quiet = False) -> None:
    """Show who spent what, and what is left.

    Reads the ledger, never the data.

    \b
    Examples:
      tacit ledger show people.toml
      tacit ledger show people.toml --json
    """
    from tacit.service.ledgers import show_ledger

    show_ledger(contract, Screen(json, quiet))


def login() -> str:
    """The login name, as well as the system knows it."""
    from getpass import getuser

    try:
        return getuser()
    except (OSError, KeyError, ImportError):
        return ""


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
    if said[:1] == ["ledger"] and (word.endswith(".toml") or os.path.isfile(word)):
        said.insert(1, "show")
    return said


def _code(error: TacitError) -> int:
    kinds = ((InvalidInput, WRONG), (Refused, REFUSED), (Unavailable, UNAVAILABLE))
    return next((code for kind, code in kinds if isinstance(error, kind)), UNEXPECTED)


if __name__ == "__main__":
    main()
