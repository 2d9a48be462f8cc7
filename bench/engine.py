"""CPU and memory of tacit's engines beside the same kernel written by hand in numpy, on one core.

    python bench/engine.py                    fifty 3-way marginals of 10^7 rows x 15 coded columns in Parquet
    python bench/engine.py --mode raw         the same from texts, numbers and fractions
    python bench/engine.py --mode csv --rows 1000000
    python bench/engine.py --mode duckdb      texts and numbers in a DuckDB file
    python bench/engine.py --mode postgres    the same, 10^6 rows x 12 columns, from a PostgreSQL server of its own
    python bench/engine.py --mode spark       the coded columns, counted by a Spark on this machine and its processes
    python bench/engine.py --mode base        all 28 two-way marginals of a CSV of 100,000 x 8

Each contestant runs in a process of its own; "beyond imports" leaves out what importing alone costs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

SIZES = (2, 3, 5, 7, 9, 16, 42, 2, 6, 15, 5, 2, 20, 12, 100)
CODED = ("coded", "csv", "base", "spark")  # modes in which columns hold the numbers of their cells
SEED = 20140811
EDGES = tuple(range(0, 101, 5))


def sizes_of(columns: int) -> list[int]:
    return [SIZES[at % len(SIZES)] for at in range(columns)]


def column_sets(columns: int, marginals: int, ways: int) -> list[tuple[int, ...]]:
    every = list(combinations(range(columns), ways))
    return sorted(random.Random(SEED).sample(every, min(marginals, len(every))))


def texts_of(column: int, size: int) -> list[str]:
    return [f"category {column}-{cell}" for cell in range(size)]


def raw_kind(column: int) -> str:
    return ("text", "text", "integer", "real", "text")[column % 5]


def generate(mode: str, rows: int, columns: int, folder: Path) -> Path:
    """Skewed, independent columns; raw ones are texts, integers from 1900 on, and fractions between 0 and 100."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    draw = np.random.default_rng(SEED)
    sizes = sizes_of(columns)

    def column(at: int, count: int) -> Any:
        uniform = draw.random(count) ** 1.5
        cells = (uniform * sizes[at]).astype(np.uint8)
        if mode in CODED:
            return pa.array(cells)
        kind = raw_kind(at)
        if kind == "text":
            return pa.DictionaryArray.from_arrays(pa.array(cells), texts_of(at, sizes[at])).cast(pa.string())
        return pa.array(cells.astype(np.int64) + 1900) if kind == "integer" else pa.array(np.round(uniform * 100, 2))

    path = folder / {"csv": "t.csv", "base": "t.csv"}.get(mode, "t.parquet")
    writer: Any = None
    for start in range(0, rows, 2**20):
        count = min(2**20, rows - start)
        batch = pa.record_batch({f"c{at}": column(at, count) for at in range(columns)})
        if writer is None:
            kind = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
            writer = kind(str(path), batch.schema)
        writer.write_batch(batch)
    writer.close()
    if mode == "postgres":
        load(path)
    if mode == "duckdb":
        import duckdb

        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.read_parquet(str(path)).create("people")
        path = folder / "t.duckdb"
    return path


def load(path: Path) -> None:
    """The rows of a Parquet file in a table of a fresh server's."""
    import io

    import pyarrow.csv
    import pyarrow.parquet as pq

    kinds = {"text": "text", "integer": "bigint", "real": "double precision"}
    file = pq.ParquetFile(path)
    with town().keeper() as connection:
        named = ", ".join(f"{name} {kinds[raw_kind(at)]}" for at, name in enumerate(file.schema_arrow.names))
        connection.execute(f"create table people ({named})")
        with connection.cursor().copy("copy people from stdin (format csv)") as copy:
            for batch in file.iter_batches():
                held = io.BytesIO()
                pyarrow.csv.write_csv(batch, held, pyarrow.csv.WriteOptions(include_header=False))
                copy.write(held.getvalue())
        connection.execute("vacuum analyze people")


def town() -> Any:
    """A server that ends with this process."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.postgres import server

    return server()


def by_tacit(mode: str, path: str, columns: int, sets: list[tuple[int, ...]]) -> Callable[[], list[Any]]:
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from tacit.domain.schema import Categories, Column, Integers, Numbers, Schema
    from tacit.engines.table import open_table

    if path.endswith(".duckdb"):
        import duckdb  # noqa: F401
    if mode == "postgres":
        import psycopg  # noqa: F401
    if mode == "spark":
        from tacit.engines.cluster import current

        session = current()
        session.range(1000).mapInArrow(
            lambda batches: batches, "id long"
        ).count()  # one that is up and has its processes

    def domain(at: int, size: int) -> Column:
        kind = "code" if mode in CODED else raw_kind(at)
        if kind == "text":
            return Categories(f"c{at}", tuple(texts_of(at, size)))
        if kind == "real":
            return Numbers(f"c{at}", EDGES)
        return Integers(f"c{at}", 0, size - 1) if kind == "code" else Integers(f"c{at}", 1900, 1899 + size)

    schema = Schema(domain(at, size) for at, size in enumerate(sizes_of(columns)))
    names = [tuple(f"c{at}" for at in chosen) for chosen in sets]
    table, engine = {"duckdb": "people", "postgres": "public.people"}.get(mode), "spark" if mode == "spark" else None
    return lambda: open_table(path, schema, table=table, engine=engine).counts(names)


def by_hand(mode: str, path: str, columns: int, sets: list[tuple[int, ...]], tuned: bool) -> Callable[[], list[Any]]:
    """The kernel of a page: batches, codes, fused codes, bincount. Tuned: no wide integers and no new arrays."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet as pq

    sizes = [len(EDGES) - 1 if mode in ("raw", "duckdb", "postgres") and raw_kind(at) == "real" else size
             for at, size in enumerate(sizes_of(columns))]  # fmt: skip
    domains = {at: pa.array(texts_of(at, size)) for at, size in enumerate(sizes)}

    def batches() -> Any:
        if path.endswith(".csv"):
            yield from pyarrow.csv.open_csv(path)
        elif mode == "postgres":
            yield from pyarrow.csv.open_csv(copied(path))
        elif path.endswith(".duckdb"):
            import duckdb

            with duckdb.connect(path, read_only=True) as connection:
                relation = connection.sql("from people")
                yield from (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(65_536)
        else:
            texts = [f"c{at}" for at in range(columns) if mode == "raw" and raw_kind(at) == "text"]
            yield from pq.ParquetFile(path, read_dictionary=texts).iter_batches(65_536)

    def codes(at: int, values: Any) -> Any:
        kind = "code" if mode in CODED else raw_kind(at)
        if kind == "code":
            return values.to_numpy()
        if kind == "integer":
            return (values.to_numpy() - 1900).astype(np.uint8)
        if kind == "real":
            return np.minimum(np.searchsorted(EDGES, values.to_numpy(), side="right") - 1, sizes[at] - 1)
        if pa.types.is_dictionary(values.type):
            return pc.index_in(values.dictionary, value_set=domains[at]).to_numpy()[values.indices.to_numpy()]
        return pc.index_in(values, value_set=domains[at]).to_numpy()

    def plain() -> list[Any]:
        tables = [np.zeros(prod(sizes[at] for at in chosen), dtype=np.int64) for chosen in sets]
        for batch in batches():
            held = [codes(at, values) for at, values in enumerate(batch.columns)]
            for table, chosen in zip(tables, sets, strict=True):
                fused = held[chosen[0]].astype(np.int64)
                for at in chosen[1:]:
                    fused = fused * sizes[at] + held[at]
                table += np.bincount(fused, minlength=len(table))
        return [table.reshape([sizes[at] for at in chosen]) for table, chosen in zip(tables, sets, strict=True)]

    def careful() -> list[Any]:
        tables = [np.zeros(prod(sizes[at] for at in chosen), dtype=np.int64) for chosen in sets]
        scratch = {width: np.empty(2**20, width) for width in (np.uint16, np.uint32)}
        for batch in batches():
            rows = batch.num_rows
            held = [codes(at, values).astype(np.uint16) for at, values in enumerate(batch.columns)]
            for table, chosen in zip(tables, sets, strict=True):
                width = np.uint16 if len(table) < 2**16 else np.uint32
                fused = scratch[width][:rows]
                np.copyto(fused, held[chosen[0]])
                for at in chosen[1:]:
                    np.multiply(fused, width(sizes[at]), out=fused)
                    np.add(fused, held[at], out=fused)
                table += np.bincount(fused, minlength=len(table))
        return [table.reshape([sizes[at] for at in chosen]) for table, chosen in zip(tables, sets, strict=True)]

    return careful if tuned else plain


def copied(uri: str) -> Any:
    """A table of a server's as a stream of CSV."""
    import threading

    import psycopg

    reading, writing = os.pipe()

    def write() -> None:
        with (
            os.fdopen(writing, "wb") as file,
            psycopg.connect(uri) as connection,
            connection.cursor().copy("copy people to stdout (format csv, header)") as copy,
        ):
            for row in copy:
                file.write(row)

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(reading, "rb")


def family() -> list[Path]:
    """This process and all that it has started, directly or not, and that still run."""
    parents: dict[str, str] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[place.parent.name] = place.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has gone
            continue
    found = {str(os.getpid())}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return [Path("/proc", one) for one in found]


def cpu(mode: str) -> float:
    if mode == "spark":
        times = [(place / "stat").read_text().rpartition(")")[2].split()[11:15] for place in family()]
        return sum(int(ticks) for each in times for ticks in each) / os.sysconf("SC_CLK_TCK")
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak(mode: str) -> float:
    """Of this process alone, in MB: what `getrusage` says may be its parent's. With Spark, of all its processes."""
    try:
        places = family() if mode == "spark" else [Path("/proc/self")]
        held = [(place / "status").read_text().partition("VmHWM:")[2] for place in places]
        peaks = [status.split()[0] for status in held if status]  # a process that has ended has none
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return sum(map(int, peaks)) / 1024


def contest(who: str, mode: str, path: str, columns: int, marginals: int, ways: int, core: int) -> None:
    """Runs in a process of its own and prints what it cost."""
    if hasattr(os, "sched_setaffinity") and core >= 0:
        os.sched_setaffinity(0, {core})
    sets = column_sets(columns, marginals, ways)
    count = (
        by_tacit(mode, path, columns, sets) if who == "tacit" else by_hand(mode, path, columns, sets, who == "tuned")
    )
    imported, began = cpu(mode), time.perf_counter()
    tables = count()
    digest = hashlib.sha256(b"".join(table.astype("<i8").tobytes() for table in tables)).hexdigest()
    print(
        json.dumps(
            {
                "imports": imported,
                "cpu": cpu(mode) - imported,
                "wall": time.perf_counter() - began,
                "peak": peak(mode),
                "digest": digest,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mode", choices=["coded", "raw", "csv", "duckdb", "postgres", "spark", "base"], default="coded"
    )
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--marginals", type=int)
    parser.add_argument("--ways", type=int)
    parser.add_argument("--repeat", type=int, default=3, help="of so many runs the cheapest counts")
    parser.add_argument("--core", type=int, default=0, help="pin to this core; -1 for all")
    parser.add_argument("--contest", nargs=2, metavar=("WHO", "PATH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    base = asked.mode == "base"
    rows = asked.rows or {"base": 100_000, "postgres": 10**6}.get(asked.mode, 10**7)
    columns = asked.columns or {"base": 8, "postgres": 12}.get(asked.mode, 15)
    ways = asked.ways or (2 if base else 3)
    marginals = asked.marginals or (28 if base else 50)
    if asked.contest:
        contest(*asked.contest[:1], asked.mode, asked.contest[1], columns, marginals, ways, asked.core)
        return
    import numpy
    import pyarrow

    shown = [f"python {sys.version.split()[0]}", f"numpy {numpy.__version__}", f"pyarrow {pyarrow.__version__}"]
    if asked.mode == "duckdb":
        import duckdb

        shown.append(f"duckdb {duckdb.__version__}")
    print(", ".join(shown))
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with tempfile.TemporaryDirectory() as folder:
        path = generate(asked.mode, rows, columns, Path(folder))
        size, where, held = path.stat().st_size / 1e6, str(path), path.suffix[1:]
        if asked.mode == "postgres":
            where, held = town().uri, "PostgreSQL"
            size = town().run("select pg_table_size('people')")[0][0] / 1e6
            version = town().run("show server_version")[0][0]
            print(f"PostgreSQL {version}; its own CPU is not counted")
        print(f"{marginals} {ways}-way marginals of {rows:,} rows x {columns} columns, {held}, {size:.0f} MB")
        best: dict[str, dict[str, Any]] = {}
        for _ in range(asked.repeat):
            for who in ("plain", "tuned", "tacit"):
                command = [sys.executable, __file__, "--mode", asked.mode, "--rows", str(rows)]
                command += ["--columns", str(columns), "--marginals", str(marginals), "--ways", str(ways)]
                command += ["--core", str(asked.core), "--contest", who, where]
                run = subprocess.run(command, capture_output=True, text=True, check=True, env=here)
                cost = json.loads(run.stdout)
                if who not in best or cost["cpu"] < best[who]["cpu"]:
                    best[who] = cost
    assert len({cost["digest"] for cost in best.values()}) == 1, "the counts differ"
    print(f"{'':24}{'CPU s':>8}{'wall s':>8}{'imports':>9}{'peak MB':>9}{'ratio':>7}   (CPU and wall beyond imports)")
    names = {"plain": "numpy by hand", "tuned": "numpy by hand, tuned", "tacit": "tacit"}
    for who, cost in best.items():
        ratio = cost["cpu"] / best["plain"]["cpu"]
        print(
            f"{names[who]:24}{cost['cpu']:8.2f}{cost['wall']:8.2f}{cost['imports']:9.2f}{cost['peak']:9.0f}{ratio:7.2f}"
        )


if __name__ == "__main__":
    main()
