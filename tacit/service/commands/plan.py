"""`tacit plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import Machine, Once, Quiet, Signed, app
from tacit.service.show import Screen


@app.command(cls=Once)
def plan(
    contract: Signed,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="What it may spend: a decimal; or say --error.")
    ] = None,
    error: Annotated[
        str | None, typer.Option(help="Of a release: how many people off it may be; the least epsilon is found.")
    ] = None,
    confidence: Annotated[
        str, typer.Option(help="Of a release: how surely all its errors are within the largest.")
    ] = "0.95",
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="Of a release: as for `tacit release`.")
    ] = None,
    online: Annotated[bool, typer.Option("--online", help="Of a session, whose questions come one by one.")] = False,
    delta: Annotated[str | None, typer.Option(help="By default the contract's; 0 for pure privacy.")] = None,
    queries: Annotated[int, typer.Option(help="Of a session: how many questions are expected.")] = 10_000,
    people: Annotated[
        int | None, typer.Option(help="Of a session: about how many people there are, where that is not public.")
    ] = None,
    rehearse: Annotated[int, typer.Option(help="Of a session: so many questions are rehearsed; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the imagined people and questions of the rehearsal.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Of a release: also draw the errors, .png or .svg.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier plot.")] = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Say what it would cost and how wrong it would be.

    Nothing is read and nothing is spent: all of it follows from the contract.

    Of a release: the error of its counts under either kind of noise, Gaussian with the contract's delta and Laplace
    with delta 0; and, for an --error, the least epsilon that keeps all of them within it.

    Of a session: from when on an answer is paid for, how many will be, how far off the others may be; and how many of
    its questions were free in a rehearsal before people that nobody is.

    \b
    Examples:
      tacit plan people.toml -w marginals:2 --epsilon 1
      tacit plan people.toml -w marginals:2 --error 200 --confidence 0.99
      tacit plan people.toml -w "ranges:income*sex,@questions.txt" -e 0.5
      tacit plan people.toml --online --epsilon 0.5 --people 50000
      tacit plan people.toml --online -e 1 --people 1000000 --queries 100000
    """
    from tacit.service.planning import Wished, foresee

    release = (contract, epsilon, error, confidence, workload)
    wished = Wished(*release, online, delta, queries, people, rehearse, seed, plot, force)
    foresee(wished, Screen(json, quiet))
