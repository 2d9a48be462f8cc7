"""`tacit export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.service.commands.command import Machine, Once, Quiet, app
from tacit.service.show import Screen


@app.command(cls=Once)
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `tacit release` wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file or the folder to write, which must not exist.")],
    marginal: Annotated[
        str | None, typer.Option("--marginal", "-m", help="Only these tables: sex*age,income; by default all.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Also so many synthetic rows, of people who do not exist.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeats the synthetic rows, by default 0.")] = None,
    format: Annotated[
        Literal["csv", "parquet", "duckdb"] | None,
        typer.Option("--format", metavar="csv|parquet|duckdb", help="By default as the name of the file ends."),
    ] = None,
    confidence: Annotated[str, typer.Option(help="How surely the exact count lies between low and high.")] = "0.95",
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier export wrote.")] = False,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Write a release as tables for other programs.

    Each marginal becomes a table of its cells: their count, its standard error, and the interval in which the exact
    count lies. It costs nothing, and neither the data nor the ledger is touched.

    A file of CSV or Parquet holds one table, a folder or a DuckDB file all of them. In Parquet and DuckDB a whole
    number is a number, a bin its label, and what is missing is null.

    \b
    Examples:
      tacit export released tables --format csv
      tacit export released released.duckdb --rows 50000 --seed 1
      tacit export released pairs.parquet --marginal "sex*age"
      tacit export released rows.csv --rows 50000
    """
    from tacit.service.exporting import Wanted, export

    export(Wanted(folder, out, marginal, rows, seed, format, confidence, force), Screen(json, quiet))
