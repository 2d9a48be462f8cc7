"""`tacit ledger`: create and show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import By, Machine, Once, Quiet, Signed, app, login, named
from tacit.service.show import Screen

ledger = typer.Typer(rich_markup_mode=None)
app.add_typer(ledger, name="ledger")


@ledger.callback(invoke_without_command=True)
def book(context: typer.Context) -> None:
    """Create a ledger once; see what was spent.

    \b
    Examples:
      tacit ledger create people.toml
      tacit ledger show people.toml
      tacit ledger people.toml            the same as show
    """
    named(context)


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
def show(
    contract: Signed,
    by: Annotated[str | None, typer.Option(help="Only what was spent by this one.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only what was spent since this day, or day and time, in UTC.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw it into a .png or .svg file: over time, by whom, of the budget.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier plot.")] = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Show who spent what, and what is left.

    Reads the ledger, never the data.

    \b
    Examples:
      tacit ledger show people.toml
      tacit ledger show people.toml --json
      tacit ledger show people.toml --by Ana --since 2026-01-31
      tacit ledger show people.toml --plot spent.png
    """
    from tacit.service.ledgers import Looked, show_ledger

    show_ledger(Looked(contract, by, since, plot, force), Screen(json, quiet))
