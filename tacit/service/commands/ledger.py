"""`tacit ledger`: create and show."""

from __future__ import annotations

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
