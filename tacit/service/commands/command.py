"""What the commands of the command line share: the program they belong to, their options, their exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tacit.service.show import Screen

WRONG = 2  # the exit code of a request that is wrong

# as a newcomer meets them
ORDER = ("demo", "init", "check", "plan", "release", "ask", "export", "ledger", "completion")


class Ordered(TyperGroup):
    """The commands of tacit, listed in the order of use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="tacit",
    cls=Ordered,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
            if said.count(option) > 1 and not (getattr(option, "is_flag", False) or getattr(option, "multiple", False)):
                raise typer.BadParameter("it is given twice.", ctx, option)
        return super().parse_args(ctx, args)


def named(context: typer.Context) -> None:
    """Refuses a group without a command, and shows which there are."""
    if context.invoked_subcommand is None:
        raise typer.Exit(Screen().fail("Usage", "name a command.", WRONG, context.get_help()))


def login() -> str:
    """The login name, as well as the system knows it."""
    from getpass import getuser

    try:
        return getuser()
    except (OSError, KeyError, ImportError):
        return ""
