"""`tacit plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.service.commands.command import Machine, Once, Quiet, Signed, app
from tacit.service.show import Screen


@app.command(cls=Once)
def plan(
    contract: Signed,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What it may spend: a decimal.")],
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="Of a release: marginals:2, or column sets: sex*age,income")
    ] = None,
    online: Annotated[bool, typer.Option("--online", help="Of a session, whose questions come one by one.")] = False,
    delta: Annotated[str | None, typer.Option(help="By default the contract's; 0 for pure privacy.")] = None,
    queries: Annotated[int, typer.Option(help="Of a session: how many questions are expected.")] = 10_000,
    people: Annotated[
        int | None, typer.Option(help="Of a session: about how many people there are, where that is not public.")
    ] = None,
    rehearse: Annotated[int, typer.Option(help="Of a session: so many questions are rehearsed; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the imagined people and questions of the rehearsal.")] = 0,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Say what it would cost and how wrong it would be.

    Nothing is read and nothing is spent: all of it follows from the contract.

    Of a release: the error of its counts. Of a session: from when on an answer is paid for, how many will be, how far
    off the others may be; and how many of its questions were free in a rehearsal before people that nobody is.

    \b
    Examples:
      tacit plan people.toml -w marginals:2 --epsilon 1
      tacit plan people.toml --online --epsilon 0.5 --people 50000
      tacit plan people.toml --online -e 1 --people 1000000 --queries 100000
    """
    from tacit.service.planning import Wished, foresee

    foresee(Wished(contract, epsilon, workload, online, delta, queries, people, rehearse, seed), Screen(json, quiet))
