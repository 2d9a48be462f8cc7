"""A multiplicative-weights step on 10^8 cells of float32, beside the machine's copy bandwidth in the same minutes.

    python bench/weights.py [columns of ten cells: 8] [rounds: 5]

A step is what an update rule does with one query: `answer`, then `tilt`. Counted is the least that has to move over
memory: an answer reads the cells that it looks at once, a tilt reads and writes them once, so a step moves 12 bytes a
cell, and a copy 8. Memory moves lines of 64 bytes, so a cell counts with its line, once. A step on weights looks at
the whole universe, however few their columns. The copy is the faster of two: in one call, or in the blocks and by the
threads of a step. Each number is the best of the rounds, which alternate, so that all see the machine as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from tacit.domain.dense import pieces, side_by_side
from tacit.domain.query import Counting, Linear, LinearQuery
from tacit.domain.schema import Categories, Schema
from tacit.domain.weights import Weights

LINE = 16  # cells


def main(columns: int = 8, rounds: int = 5) -> None:
    schema = Schema([Categories(f"c{i}", tuple(range(10))) for i in range(columns)])
    cells, rng, names = schema.universe, np.random.default_rng(0), schema.names
    everybody = Counting.where(schema)
    places = {"first": names[:3], "spread": (names[1], names[columns // 2], names[-2]), "last": names[-3:]}
    kinds: dict[str, LinearQuery] = {}
    for where, chosen in places.items():
        kinds[f"conjunction of one cell of 3 columns, {where}"] = Counting.where(schema, dict.fromkeys(chosen, (3,)))
    for where, chosen in places.items():
        kinds[f"conjunction of 8 cells of 3 columns, {where}"] = Counting.where(
            schema, dict.fromkeys(chosen, range(2, 10))
        )
    for where, chosen in places.items():
        kinds[f"weights over 3 columns, {where}"] = Linear.of(schema, chosen, rng.random((10, 10, 10)))
    kinds["weights over 5 columns"] = Linear.of(schema, names[1:6], rng.random((10,) * 5))
    kinds["everybody: the normaliser anew, and all cells"] = everybody
    moved = {name: 12 * LINE * lines(schema, query) for name, query in kinds.items()}

    weights = Weights(schema, 1e6, dtype=np.float32)
    one, other = np.ones(cells, np.float32), np.zeros(cells, np.float32)
    answers: dict[str, list[float]] = {name: [] for name in kinds}
    steps: dict[str, list[float]] = {name: [] for name in kinds}
    copies = []
    for _ in range(rounds):
        for name, query in kinds.items():
            if query is not everybody:  # the step before may have left the normaliser unknown
                weights.answer(everybody)
            answered = timed(lambda query=query: weights.answer(query))  # type: ignore[misc]
            answers[name].append(answered)
            steps[name].append(answered + timed(lambda query=query: weights.tilt(query, 0.01)))  # type: ignore[misc]
        copies += [timed(lambda: np.copyto(other, one)), timed(lambda: copied(other, one))]
    speed = 8 * cells / min(copies)
    print(f"{cells:,} cells of float32, {cells * 4 / 1e9:.1f} GB; a copy moves {speed / 1e9:.1f} GB/s")
    print(f"{'step':46} {'answer':>9} {'tilt':>9} {'moved':>9} {'GB/s':>6} {'of a copy':>9}")
    for name, bytes_moved in moved.items():
        step, answered = min(steps[name]), min(answers[name])
        rate = bytes_moved / step
        said = (
            f"{answered * 1e3:6.1f} ms {(step - answered) * 1e3:6.1f} ms {bytes_moved / 1e6:6.0f} MB {rate / 1e9:6.1f}"
        )
        print(f"{name:46} {said} {rate / speed:9.2f}")


def lines(schema: Schema, query: LinearQuery) -> int:
    """How many lines of memory the cells lie in that it looks at."""
    if not isinstance(query, Counting):
        return schema.universe // LINE
    seen = np.zeros(schema.sizes(schema.names), np.bool_)
    chosen = dict(zip(query.columns, query.chosen, strict=True))
    seen[tuple(slice(cells[0], cells[-1] + 1) for cells in (chosen.get(c.name, range(c.size)) for c in schema))] = True
    return int(seen.reshape(-1, LINE).any(axis=1).sum())


def copied(to: np.ndarray, source: np.ndarray) -> None:
    """In the blocks and by the threads of a step."""

    def some(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[float]:
        for part, held in parts:
            np.copyto(part, held)
        return []

    side_by_side(some, [(to[cut], source[cut]) for (cut,) in pieces(to.shape)], to.size)


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
