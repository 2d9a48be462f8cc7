"""What tacit adds to one scalar release: `python bench/overhead.py`.

A count of one cell of a table that is already counted, on a ledger in memory: checks, sensitivity, price, charge,
reading, rounding. The draw itself is timed apart. The bar is 40 microseconds.
"""

from __future__ import annotations

from fractions import Fraction
from time import process_time

import numpy as np

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Counting
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Budget

SCHEMA = Schema([Integers("age", 0, 99)])


class Counted:
    """A table whose counts are at hand."""

    schema = SCHEMA
    most_rows = 1
    held = np.arange(100)

    def counts(self, column_sets: object) -> list[np.ndarray]:
        return [self.held]


def microseconds(call: object, times: int = 20_000) -> float:
    best = float("inf")
    for _ in range(5):
        start = process_time()
        for _ in range(times // 5):
            call()  # type: ignore[operator]
        best = min(best, (process_time() - start) / (times // 5))
    return best * 1e6


def main() -> None:
    query = Counting.where(SCHEMA, {"age": (40,)})
    pure = Curator(Counted(), MemoryLedger(Budget.of(1000)), Neighbors.ADD_REMOVE)
    concentrated = Curator(Counted(), MemoryLedger(Budget.of(1000, "1e-9")), Neighbors.ADD_REMOVE)
    laplace, gaussian = Laplace("0.0001"), Gaussian(Fraction(1, 10**6))
    draws = {
        laplace: microseconds(lambda: SYSTEM.laplace(laplace.scale(), 1)),
        gaussian: microseconds(lambda: SYSTEM.gaussian(gaussian.variance(), 1)),
    }
    for mechanism, curator in ((laplace, pure), (gaussian, concentrated)):
        whole = microseconds(lambda c=curator, m=mechanism: c.release(m, query))  # type: ignore[misc]
        draw = draws[mechanism]
        print(f"{mechanism!s:28} release {whole:6.1f} us   draw {draw:6.1f} us   tacit's own {whole - draw:6.1f} us")


if __name__ == "__main__":
    main()
