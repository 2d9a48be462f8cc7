"""A stream of conjunctions asked one after the other in a session: how many are free, how wrong, how fast.

    python bench/online.py [--questions 100000] [--epsilon 1] [--delta 1e-9] [--runs 3] [--lasting]

A million people, a million cells, 10^5 questions (tests/settings.py). Beside it the Gaussian mechanism that answers
each question, under the same budget. With --lasting the people are in a Parquet file under a contract, the session is
kept in a notebook beside the ledger on the disk, and every answer is written down before it is told.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from settings import STREAM_PEOPLE, digits, stream

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.schema import Neighbors
from tacit.mechanisms.online import online
from tacit.mechanisms.total import noise
from tacit.privacy.budget import Budget
from tacit.service.people import People
from tacit.service.session import Session


def kept(people: Any, budget: Budget, folder: Path, queries: int) -> tuple[People, Session]:
    """A session by name over the same people in a Parquet file, under a contract, with its ledger on the disk."""
    columns = "".join(f'[[columns]]\nname = "{name}"\nlow = 0\nhigh = 9\n' for name in people.schema.names)
    epsilon, delta = budget.stated or (budget.amount, 0)
    promise = f'neighbors = "add-remove"\nepsilon = "{epsilon}"\ndelta = "{delta}"\nledger = "people.ledger"'
    (folder / "people.toml").write_text(f'[data]\nsource = "people.parquet"\n[privacy]\n{promise}\n{columns}')
    held = dict(zip(people.schema.names, people.codes.astype(np.int8).T, strict=True))
    pq.write_table(pa.table(held), folder / "people.parquet")
    found = People.open(folder / "people.toml")
    found.create_ledger().close()
    return found, found.session("bench", epsilon=epsilon, queries=queries)


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--questions", type=int, default=100_000)
    said.add_argument("--epsilon", default="1")
    said.add_argument("--delta", default="1e-9")
    said.add_argument("--runs", type=int, default=3)
    said.add_argument("--lasting", action="store_true")
    asked = said.parse_args()
    budget = Budget.of(asked.epsilon, asked.delta)
    print(
        f"python {sys.version.split()[0]}, numpy {np.__version__}; {STREAM_PEOPLE:,} people, {asked.questions:,} asked"
    )
    for run in range(1, asked.runs + 1):
        people = digits(run)
        queries = list(stream(people.schema, asked.questions, run))
        truth = np.array([query(*(people.project(columns) for columns in query.reads)).item() for query in queries])
        ledger: Any = MemoryLedger(budget)
        with tempfile.TemporaryDirectory() as folder:
            begun = perf_counter()
            if asked.lasting:
                asked_of, session = kept(people, budget, Path(folder), asked.questions)
                terms: Any = session.terms
                ledger = asked_of.ledger
            else:
                curator = Curator(people, ledger, Neighbors.ADD_REMOVE)
                session, terms = online(curator, budget, queries=asked.questions)  # type: ignore[assignment]
            opening, wrote, entries = perf_counter() - begun, 0, sum(1 for _ in ledger.entries())
            times, values, free = np.empty(len(queries)), np.empty(len(queries)), np.empty(len(queries), bool)
            cpu = process_time()
            for i, query in enumerate(queries):
                started = perf_counter()
                answer = session.ask(query)
                times[i] = perf_counter() - started
                values[i], free[i] = answer.value, answer.free
            cpu, wrote = process_time() - cpu, sum(1 for _ in ledger.entries()) - entries
            left = session.left
            if asked.lasting:
                session.close()
                asked_of.close()
        error = np.abs(values - truth) / STREAM_PEOPLE
        each = noise(budget / asked.questions)
        gaussian = each.error_bound(0.5, coordinates=asked.questions) / STREAM_PEOPLE
        drawn = np.random.default_rng(run).normal(0, float(each.deviation(1, 1)), asked.questions) / STREAM_PEOPLE
        median, high = np.quantile(times, [0.5, 0.99]) * 1e3
        print(
            f"run {run}: {free.mean():.2%} free; max error {error.max():.3%}, mean {error.mean():.3%} (bound "
            f"{terms.error / STREAM_PEOPLE:.2%}); median {median:.3f} ms, 99th percentile {high:.2f} ms, "
            f"{cpu:.0f} CPU s; opened in {opening:.1f} s; {terms.count - left} paid of {terms.count}, {wrote} ledger "
            "entries\n"
            f"       Gaussian on each question: max {np.abs(drawn).max():.2%} (median {gaussian:.2%}), "
            f"mean {np.abs(drawn).mean():.2%}: {np.abs(drawn).max() / error.max():.1f} times ours at the worst, "
            f"{np.abs(drawn).mean() / error.mean():.1f} on average",
            flush=True,
        )


if __name__ == "__main__":
    main()
