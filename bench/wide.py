"""Sessions over universes of 10^15 to 10^100 cells: `python bench/wide.py [--questions N] [--nats X]`.

A million people who are nobody, in 100 columns of ten values, and in 15 columns of 2 to 42; random conjunctions of one
to three columns, epsilon 1, delta 1e-9, add-remove neighbours. Times are processor time of one question on one core,
with the fake engine of the tests, which counts a column set in half a millisecond; "read" is that part.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("tests", "")]

import numpy as np
from settings import stream
from wide import ADULT, WIDE_PEOPLE, crowd

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.schema import Neighbors
from tacit.mechanisms.online import opened
from tacit.mechanisms.terms import choose
from tacit.privacy.budget import Budget

BUDGET = Budget.of(1, "1e-9")


def main(questions: int, nats: float | None, seed: int) -> None:
    for sizes in ((10,) * 100, ADULT):
        data = crowd(sizes, seed)
        terms = choose(data.schema, BUDGET, WIDE_PEOPLE, queries=max(questions, 10_000), nats=nats)
        began = time.process_time()
        session = opened(Curator(data, MemoryLedger(BUDGET), Neighbors.ADD_REMOVE), BUDGET, terms, total=WIDE_PEOPLE)
        opening = time.process_time() - began
        took, reading, errors, paid, last = [], [], [], 0, None
        for number, query in enumerate(stream(data.schema, questions, seed), 1):
            began = time.process_time()
            truth = query(*data.counts(query.reads)).item()
            read = time.process_time()
            left = session.left
            answer = session.ask(query)
            took.append(time.process_time() - read)
            reading.append(read - began)
            errors.append(abs(answer.value - truth) / WIDE_PEOPLE)
            paid += left - session.left
            if left and not session.left:
                last = number
        kept = errors[: last or questions]
        held = session.hypothesis
        print(f"{len(sizes)} columns, {float(data.schema.universe):.0e} cells, {terms.nats:.3g} nats: {terms}")
        print(f"  opened in {opening * 1e3:.0f} ms; first question {took[0] * 1e3:.2f} ms")
        some = ", ".join(f"{q}th {np.percentile(took, q) * 1e3:.2f}" for q in (50, 90, 99))
        print(f"  ms a question: {some}, most {max(took) * 1e3:.0f}; read beforehand {np.median(reading) * 1e3:.2f}")
        print(f"  free {1 - paid / questions:.1%}, paid {paid} of {terms.count}; the last at {last}")
        print(f"  error while paid for: most {max(kept):.2%}, mean {np.mean(kept):.3%}; stated {terms.error / 1e6:.2%}")
        if last:
            print(f"  error afterwards: most {max(errors[last:]):.2%}, mean {np.mean(errors[last:]):.3%}")
        cells = sum(data.schema.cells(block) for block in held.blocks)
        print(f"  {len(held.blocks)} blocks of {cells:,} cells; let go of {held.let_go} columns", flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--nats", type=float)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    main(given.questions, given.nats, given.seed)
