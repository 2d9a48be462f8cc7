"""What it costs to count at most m rows of each person: time, CPU and peak memory of one process.

    python bench/persons.py                       3 rows of each of 2 x 10^6 people, 10^7 rows, six 2-way marginals
    python bench/persons.py --people 20000000 --rows 100000000
    python bench/persons.py --ids texts           people told apart by texts of 36 letters
    python bench/persons.py --most 0              without a person, to compare

The rows lie in Parquet, each of a random person; the reading runs in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
from itertools import combinations
from pathlib import Path

from engine import cpu, peak

SIZES = (100, 2, 16, 7)


def generate(path: Path, rows: int, people: int, ids: str) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(20140811)
    writer = None
    for start in range(0, rows, 2**20):
        count = min(2**20, rows - start)
        who = draw.integers(0, people, count)
        named = [str(uuid.UUID(int=int(one) * 0x9E3779B97F4A7C15)) for one in who] if ids == "texts" else who
        columns = {f"c{at}": draw.integers(0, size, count).astype(np.uint8) for at, size in enumerate(SIZES)}
        batch = pa.record_batch({"id": pa.array(named), **{name: pa.array(held) for name, held in columns.items()}})
        writer = pq.ParquetWriter(path, batch.schema) if writer is None else writer
        writer.write_batch(batch)
    if writer is not None:
        writer.close()


def measure(path: str, most: int) -> None:
    import pyarrow.parquet  # noqa: F401

    from tacit.curator.kernel import supplied
    from tacit.domain.person import Person
    from tacit.domain.schema import Integers, Schema
    from tacit.engines.table import open_table

    schema = Schema(Integers(f"c{at}", 0, size - 1) for at, size in enumerate(SIZES))
    sets = list(combinations(schema.names, 2))
    before, begun = cpu(), time.perf_counter()
    table = supplied(open_table(path, schema, person=Person("id", most) if most else None))
    counted = int(table.counts(sets)[0].sum())
    took, used = time.perf_counter() - begun, cpu() - before
    print(f"{counted:,} rows counted in {took:.1f} s ({used:.1f} CPU s), peak {peak():.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--people", type=int, default=2 * 10**6)
    parser.add_argument("--most", type=int, default=3)
    parser.add_argument("--ids", choices=("numbers", "texts"), default="numbers")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.most)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        generate(path, given.rows, given.people, given.ids)
        subprocess.run([sys.executable, __file__, "--measure", str(path), "--most", str(given.most)], check=True)


if __name__ == "__main__":
    main()
