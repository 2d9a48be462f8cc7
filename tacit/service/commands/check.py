"""`tacit check`."""

from __future__ import annotations

from tacit.service.commands.command import Machine, Once, Quiet, Signed, app
from tacit.service.show import Screen


@app.command(cls=Once)
def check(contract: Signed, json: Machine = False, quiet: Quiet = False) -> None:
    """Say what will happen under a contract.

    It reads the contract, the ledger and the names and types of the source's columns, and no row: what it says is
    public, and the same whatever the rows hold.

    \b
    Examples:
      tacit check people.toml
      tacit check people.toml --json
    """
    from tacit.service.checking import check as carry_out

    carry_out(contract, Screen(json, quiet))
