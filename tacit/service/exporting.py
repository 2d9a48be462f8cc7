"""`tacit export`: what was released, as tables for other programs; free, without the data and without the ledger."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns
from tacit.domain.schema import CELL, MISSING, OUTSIDE, Categories, Column, Integers, Value
from tacit.domain.synopsis import MOST_ROWS, Marginals, Rows
from tacit.engines.files import KINDS
from tacit.errors import InvalidParameter
from tacit.rational import proper, whole
from tacit.service.keep import FILE, Kind, Shelf
from tacit.service.located import printable
from tacit.service.released import Cells, Release, apart, load
from tacit.service.request import column_sets
from tacit.service.show import Screen, Waiting

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("csv", "parquet", "duckdb")
ENDINGS = {end: kind.lower() for end, kind in KINDS.items() if kind.lower() in FORMATS}
SYNTHETIC = "synthetic"  # the name of the rows that nobody is
LONGEST_NAME = 80


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    folder: Path
    out: Path
    marginal: str | None
    rows: int | None
    seed: int | None
    format: str | None
    confidence: str
    force: bool


@dataclass(frozen=True)
class Sheet:
    """One table to be written; what is in it is made when its turn comes."""

    name: str
    columns: Columns
    size: int
    make: Callable[[], Cells | Rows]


def export(wanted: Wanted, screen: Screen) -> None:
    """The whole command."""
    released = load(wanted.folder)
    form, single = _form(wanted)
    sheets = list(_sheets(released, wanted, single))
    kind = FILE if single or form == "duckdb" else Kind(f"a folder of {form} files", partial(_ours, f".{form}"))
    with Shelf(wanted.out, replace=wanted.force, kind=kind) as shelf, Waiting(screen, "writing"):
        shelf.put(partial(_write, released, sheets, form, single))
    out = printable(wanted.out)
    screen.bare(out)
    screen.say(f"Exported into {out}; it cost nothing.")
    screen.table(
        ("table", "of", "rows"),
        [(sheet.name, " × ".join(sheet.columns), f"{sheet.size:,}") for sheet in sheets],
        words=(0, 1),
    )
    tables = [{"name": sheet.name, "columns": list(sheet.columns), "rows": sheet.size} for sheet in sheets]
    screen.give({"folder": os.fspath(wanted.folder), "out": os.fspath(wanted.out), "format": form, "tables": tables})


def _form(wanted: Wanted) -> tuple[str, bool]:
    """The format, and whether it has place for one table only."""
    ending = ENDINGS.get(wanted.out.suffix.lower())
    form = wanted.format or ending
    if form not in FORMATS:
        raise InvalidParameter(
            f"say --format, one of {', '.join(FORMATS)}, or name a file that ends in {', '.join(ENDINGS)}. "
            "Nothing was spent."
        )
    if ending not in (None, form):
        raise InvalidParameter(f"{printable(wanted.out)} is no name for --format {form}. Nothing was spent.")
    if form == "duckdb" and find_spec("duckdb") is None:
        raise InvalidParameter(
            "a DuckDB file needs the package duckdb: pip install 'tacit[duckdb]'. Nothing was spent."
        )
    if form == "duckdb" and os.path.lexists(log := f"{os.fspath(wanted.out)}.wal"):  # it would be replayed into ours
        raise InvalidParameter(
            f"{printable(log)} says that this DuckDB file is open, or was never closed; close it. Nothing was spent."
        )
    return form, form != "duckdb" and ending is not None


def _sheets(released: Release, wanted: Wanted, single: bool) -> Iterator[Sheet]:
    """The marginals that are named, or all; and rows, if any are wanted."""
    schema, measured = released.schema, released.measured
    if wanted.rows is None and wanted.seed is not None:
        raise InvalidParameter("--seed is for --rows. Nothing was spent.")
    rows = 0 if wanted.rows is None else whole(wanted.rows, "--rows", 1, MOST_ROWS)
    seed = whole(wanted.seed or 0, "--seed", 0, 2**63)
    if wanted.marginal is not None:
        sets = column_sets(wanted.marginal, schema)
    elif single and rows:
        sets = []
    elif isinstance(measured, Marginals):
        sets = list(measured.tables)
    else:
        raise InvalidParameter(f"these are {measured.kind}; name a table by --marginal. Nothing was spent.")
    if single and (many := len(sets) + bool(rows)) != 1:
        raise InvalidParameter(
            f"{printable(wanted.out)} holds one table, and here are {many}: name one "
            "by --marginal, or a .duckdb file, or a folder and its --format. Nothing was spent."
        )
    surely = proper(wanted.confidence, "confidence")
    for name, columns in zip(_names(sets), sets, strict=True):
        make = partial(released.marginal, *columns, confidence=surely)
        yield Sheet(name, columns, schema.cells(columns), make)
    if rows:
        yield Sheet(SYNTHETIC, schema.names, rows, partial(released.sample, rows, seed=seed))


def _names(sets: Sequence[Columns]) -> Iterator[str]:
    """A name for each, that a file may have and a table; no two are alike in any case."""
    taken = {SYNTHETIC}
    for columns in sets:
        plain = re.sub(r"[^\w-]+", "_", "_".join(columns))[:LONGEST_NAME]
        tried = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
        name = next(name for name in tried if name.casefold() not in taken)
        taken.add(name.casefold())
        yield name


def _ours(ending: str, folder: Path) -> bool:
    """Whether a folder holds nothing but such files."""
    return folder.is_dir() and all(path.suffix == ending and path.is_file() for path in folder.iterdir())


def _write(released: Release, sheets: Sequence[Sheet], form: str, single: bool, made: Path) -> None:
    if form == "duckdb":
        _write_duckdb(released, sheets, made)
        return
    if not single:
        made.mkdir()
    for sheet in sheets:
        file = made if single else made / f"{sheet.name}.{form}"
        if form == "csv":
            sheet.make().write_csv(file)
        else:
            import pyarrow.parquet as pq

            pq.write_table(_typed(released, sheet.make()), file)


def _write_duckdb(released: Release, sheets: Sequence[Sheet], made: Path) -> None:
    import duckdb

    with duckdb.connect(os.fspath(made)) as connection:
        for sheet in sheets:
            connection.register("held", _typed(released, sheet.make()))
            connection.execute(f'create table main."{sheet.name}" as select * from held')  # noqa: S608 - letters only
            connection.unregister("held")


def _typed(released: Release, held: Cells | Rows) -> pa.Table:
    """Whole numbers and truth values as such, bins by their labels; nothing where a value is missing."""
    import pyarrow as pa

    schema = released.schema
    if isinstance(held, Rows):
        return pa.table({column.name: _column(column, held.codes[:, at]) for at, column in enumerate(schema)})
    places = np.unravel_index(np.arange(len(held)), schema.sizes(held.columns))
    numbers = (held.count, held.standard_error, held.low, held.high)
    return pa.table(
        {
            **{name: _column(schema[name], at) for name, at in zip(held.columns, places, strict=True)},
            **{
                name: pa.array(values, from_pandas=True)
                for name, values in zip(apart(held.columns), numbers, strict=True)
            },
        }
    )


def _column(column: Column, cells: NDArray[Any]) -> pa.Array:
    """The values of these cells; as texts, where one of them is to say that it lies outside of a domain of numbers."""
    import pyarrow as pa

    values: Sequence[Value] = column.domain
    if column.outside != CELL and isinstance(column, Integers):
        values = range(column.low, column.high + 1)
    elif column.outside != CELL and isinstance(column, Categories):
        values = column.values
    all_: list[Value | None] = list(values)
    all_ += [None if label == MISSING else OUTSIDE for label in column.labels[len(all_) :]]
    return pa.array(all_).take(pa.array(cells.astype(np.int64)))
