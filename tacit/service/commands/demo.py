"""`tacit demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import Force, Machine, Once, Quiet, app
from tacit.service.show import Screen


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
