"""How fast a net is asked and scored, and medians are taken: `OPENBLAS_NUM_THREADS=1 python bench/nets.py`.

For each shape of small databases: how many candidate-queries a core-second answers (`SmallDatabases.answers`, block by
block) and scores exactly (`Fit`); the whole mechanism once on the largest net; the median of nine synopses beside
`np.median` in the same seconds; and one halving of a net. Seconds are those of the processor. `--long` scores the
nets of ten million databases whole.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from math import prod

import numpy as np

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.median import Median, _lower
from tacit.domain.net import SmallDatabases
from tacit.domain.query import Columns, Counting, Linear
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.score import Fit
from tacit.domain.workload import Workload
from tacit.mechanisms.net import error_bound, small_db
from tacit.privacy.budget import Budget

SHAPES = [((4471,), 2), ((390,), 3), ((2,) * 6, 4), ((2,) * 5, 5), ((13,), 12), ((2,) * 3, 15)]
PEOPLE = 10_000


class Town:
    """A table in memory."""

    most_rows = 1

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema = schema
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.full(schema.universe, 0.3))
        self.table = rng.multinomial(PEOPLE, shares).reshape(schema.sizes(schema.names))

    def counts(self, column_sets: list[Columns]) -> list[np.ndarray]:
        axes = [tuple(i for i, name in enumerate(self.schema.names) if name not in held) for held in column_sets]
        return [self.table.sum(axis=gone) for gone in axes]


def best(what: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        what()
        times.append(time.process_time() - start)
    return min(times)


def made(sizes: tuple[int, ...], rows: int, queries: int) -> tuple[SmallDatabases, Workload, Town]:
    schema = Schema([Integers(f"c{i}", 0, size - 1) for i, size in enumerate(sizes)])
    rng = np.random.default_rng(0)
    masks = (Linear.of(schema, schema.names, rng.integers(0, 2, schema.universe)) for _ in range(queries))
    return SmallDatabases(schema, rows, PEOPLE), Workload(tuple(masks)), Town(schema, 1)


class Part:
    """The first members of a net."""

    def __init__(self, net: SmallDatabases, most: int) -> None:
        self.net, self.schema, self.most = net, net.schema, min(most, len(net))
        self.answers, self.member = net.answers, net.member

    def __len__(self) -> int:
        return self.most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="score every net whole")
    chosen = parser.parse_args()

    print("universe  rows    databases  queries   answered/s     scored/s")
    for sizes, rows in SHAPES:
        for queries in (1000, 30):
            net, work, town = made(sizes, rows, queries)
            block = max(1, 2**18 // queries)
            places = np.random.default_rng(2).integers(0, max(1, len(net) - block), 20).tolist()
            net.answers(work, 0, 1)

            def ask(net: SmallDatabases = net, work: Workload = work, at: list[int] = places, k: int = block) -> None:
                for place in at:
                    net.answers(work, place, min(place + k, len(net)))

            asked = 20 * min(block, len(net)) * queries / best(ask)
            part = Part(net, len(net) if chosen.long else 2 * 10**8 // queries)
            fit, counts = Fit(work, part), town.counts(list(work.reads))
            scored = len(part) * queries / best(lambda f=fit, c=counts: f.units(*c), 1 if chosen.long else 2)
            print(f"{prod(sizes):8} {rows:5} {len(net):12} {queries:8} {asked:12.3g} {scored:12.3g}", flush=True)

    net, work, town = made((2,) * 4, 8, 200)
    budget = Budget.of(1)
    curator = Curator(town, MemoryLedger(budget), Neighbors.ADD_REMOVE)
    start = time.process_time()
    synopsis = small_db(curator, work, budget, rows=8, total=PEOPLE)
    seconds = time.process_time() - start
    truth = np.asarray(work(*town.counts(list(work.reads))), float)
    error = float(np.abs(synopsis.answer(work) - truth).max())
    bound = error_bound(PEOPLE, 16, 200, budget, 0.05, rows=8)
    print(f"small_db, {len(net)} databases, 200 queries: {seconds:.2f} s; error {error:.0f} people, bound {bound:.0f}")

    rows_of = np.random.default_rng(0).normal(size=(9, 10**6))
    ours, numpys = best(lambda: _lower(rows_of)), best(lambda: np.median(rows_of, axis=0), 2)
    print(f"median of 9 synopses on 10^6 queries: {ours * 1000:.0f} ms, {9 / ours:.0f} M values/s")
    print(f"np.median:                            {numpys * 1000:.0f} ms, {9 / numpys:.0f} M values/s")

    net, _, _ = made((13,), 10, 1)
    held, query = Median(net), Counting.where(net.schema, {"c0": (0, 4, 5)})
    seconds = best(lambda: held.halved(query, 1), 3)
    print(f"one halving of {len(net)} databases: {seconds:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
