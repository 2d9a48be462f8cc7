"""A million queries reweighted after one more synopsis, and a thousand of them drawn (Figure 6.1, one round).

    python bench/reweight.py [draws: 1000] [rounds: 7]

Counted is all that a round does to a million answers: the errors of the latest synopsis, the steps of the weights, and
an exact draw from them. The truth is there, as it is in the curator, and so are the synopsis' answers.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time

import numpy as np

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Query
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.score import Hardness
from tacit.domain.workload import conjunctions
from tacit.mechanisms.boosting import Boosting
from tacit.privacy.budget import Budget


class Table:
    """Counts that are there already."""

    most_rows = 1

    def __init__(self, schema: Schema, counts: np.ndarray) -> None:
        self.schema, self.cells = schema, counts

    def counts(self, columns: object) -> list[np.ndarray]:
        return [self.cells]


class Said:
    """A synopsis whose answers are there already."""

    def __init__(self, answers: np.ndarray) -> None:
        self.answers = answers

    def answer(self, query: Query) -> np.ndarray:
        return self.answers


def main(draws: int = 1000, rounds: int = 7) -> None:
    schema, rng = Schema([Integers("a", 0, 999), Integers("b", 0, 999)]), np.random.default_rng(0)
    queries, truth = conjunctions(schema, 2), rng.integers(0, 50, (1000, 1000))
    table, plan = Table(schema, truth), Boosting(10, draws, 5, 400)
    print(f"{queries.size:,} queries, {draws:,} draws; python {sys.version.split()[0]}, numpy {np.__version__}")
    for synopses in (1, 5, 9):
        said = tuple(Said(truth.ravel() + rng.normal(0, 10, queries.size)) for _ in range(synopses))
        times = []
        for _ in range(rounds):
            curator = Curator(table, MemoryLedger(Budget.of(1000, "1e-9")), Neighbors.ADD_REMOVE)
            hardness = Hardness(queries, said, plan.lam, plan.mu)
            wall, cpu = perf_counter(), process_time()
            curator.release(plan.draw(curator.sensitivity(hardness)), hardness)
            times.append((perf_counter() - wall, process_time() - cpu))
        wall, cpu = np.min(times, axis=0)
        print(f"after {synopses} synopses: {1000 * wall:.0f} ms, {1000 * cpu:.0f} ms of a processor; best of {rounds}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
