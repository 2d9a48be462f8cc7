"""`tacit init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import By, Machine, Once, Quiet, app, login
from tacit.service.show import Screen


@app.command(cls=Once)
def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, a folder, a pattern or a server.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The contract to write; it must not exist.")] = Path(
        "people.toml"
    ),
    table: Annotated[str | None, typer.Option(help="The table of a DuckDB file or a server.")] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="NAME=DOMAIN; may be said for each column.")
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="NAME=cell or NAME=drop: where no value goes; by default drop.")
    ] = None,
    outside: Annotated[
        list[str] | None, typer.Option(help="NAME=clamp, cell or drop: where any other value goes.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Only these columns: age,sex")] = None,
    skip: Annotated[str | None, typer.Option(help="All columns but these: name,phone")] = None,
    person: Annotated[str | None, typer.Option(help="The column that tells people apart.")] = None,
    most_rows: Annotated[int | None, typer.Option(help="How many rows of one person count.")] = None,
    neighbors: Annotated[str | None, typer.Option(help="add-remove (by default) or replace-one.")] = None,
    people: Annotated[int | None, typer.Option(help="Their public number, for replace-one.")] = None,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", "-e", help="All that may ever be spent; what to buy domains for."),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Of all that; by default 0.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger's file; by default named as the contract.")] = None,
    from_data: Annotated[
        bool, typer.Option("--from-data", help="Read domains off the rows, marked: sign them.")
    ] = False,
    most_categories: Annotated[int | None, typer.Option(help="With --from-data: how many to write down; 50.")] = None,
    buy_domains: Annotated[
        bool, typer.Option("--buy-domains", help="Release domains, for --epsilon of --total.")
    ] = False,
    total: Annotated[str | None, typer.Option(help="With --buy-domains: all that may ever be spent.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="With --buy-domains: NAME=categories, whole, numbers, days."),
    ] = None,
    by: By = None,
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="At a terminal, ask for domains.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier file.")] = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Draft a contract from a table's columns.

    It looks at their names and types, never at a row. Domains are public: they come from you.

    A domain is a range of whole numbers (age=0..99), categories (sex=F,M), edges (income=0:10000:50000) or days
    (visited=2024-01-01..2024-12-31/month). What is not said stands in the draft as lines to fill in; at a terminal,
    it is asked for.

    --from-data reads domains off the rows, and marks them: nothing is spent before a human has signed them.
    --buy-domains releases them, for a part of the budget: the ledger is made first, then categories are listed and
    bounds found by mechanisms that protect people.

    \b
    Examples:
      tacit init people.csv
      tacit init people.csv -c age=0..99 -c sex=F,M -e 4 --delta 1e-9
      tacit init visits.parquet --person id --most-rows 3 --skip notes
      tacit init town.duckdb --table people -o town.toml --no-ask
      tacit init people.csv --from-data
      tacit init people.csv --buy-domains -e 0.5 --total 4 --kind age=whole
    """
    from tacit.service.starting import Begun, begin, refuse_stray

    given = {"most-categories": most_categories, "total": total, "kind": kind, "by": by}
    refuse_stray(given, from_data, buy_domains)
    begun = Begun(
        data=data,
        out=out,
        table=table,
        columns=tuple(column or ()),
        missing=tuple(missing or ()),
        outside=tuple(outside or ()),
        only=only,
        skip=skip,
        person=person,
        most_rows=most_rows,
        neighbors=neighbors,
        people=people,
        epsilon=total if buy_domains else epsilon,
        delta=delta,
        ledger=ledger,
        force=force,
    )
    screen = Screen(json, quiet)
    if from_data:
        from tacit.service.looking import look

        look(begun, 50 if most_categories is None else most_categories, screen)
    elif buy_domains:
        from tacit.service.buying import buy

        buy(begun, epsilon, kind or (), login() if by is None else by, screen)
    else:
        begin(begun, ask, screen)
