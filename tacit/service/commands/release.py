"""`tacit release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import By, Force, Machine, Once, Quiet, Signed, app, login
from tacit.service.show import Screen


@app.command(cls=Once)
def release(
    contract: Signed,
    workload: Annotated[
        str,
        typer.Option("--workload", "-w", help="marginals:2, ranges:income, @FILE or column sets: sex*age,income"),
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

    A workload is a list, between commas, of column sets (sex*age), marginals:K and conjunctions:K (all sets of K
    columns), ranges:COLUMN, ranges:COLUMN*BY and prefixes:COLUMN (all intervals of a column, all that begin at its
    low end), and @FILE: a text with a predicate or a `select count(*) ...` on each line. Intervals and questions are
    answered from the marginals that they read, which are what is released.

    \b
    Examples:
      tacit release people.toml -w marginals:2 --epsilon 1 --plan
      tacit release people.toml -w marginals:2 --epsilon 1 --out released
      tacit release people.toml -w "sex*age,income" -e 0.5 -o ages --by Ana
      tacit release people.toml -w "ranges:income*sex,@questions.txt" -e 1 -o ours
      tacit release people.toml -w marginals:2 -e 2 -o rows --rows 50000 --seed 1
    """
    from tacit.service.releasing import Wanted, carry_out

    wanted = Wanted(contract, workload, epsilon, delta, out, purpose, login() if by is None else by, rows, seed, force)
    carry_out(wanted, plan, Screen(json, quiet))
