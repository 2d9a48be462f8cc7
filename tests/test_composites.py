"""Composites from outside, where no outcomes are enumerated: neighbours are told apart no better than was paid for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log

import numpy as np
import pytest
from doubles import Rows
from noises import FALSE_ALARM
from numpy.typing import NDArray
from scipy import stats

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.median import Median
from tacit.domain.query import Counting
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.domain.synopsis import Synopsis
from tacit.domain.workload import Workload
from tacit.errors import NoSynopsis
from tacit.mechanisms.boosting import boost
from tacit.mechanisms.generators import Generator, LinearGenerator, RowSearch
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Budget

RUNS = 200
SCHEMA = Schema([Categories("a", (0, 1)), Categories("b", (0, 1))])
FIRST = Workload((Counting.where(SCHEMA, {"a": (0,), "b": (0,)}),))
HERE, THERE = (np.array([[0, 0]] * first + [[1, 1]] * (30 - first)) for first in (20, 19))  # one person is replaced
PAID = Budget.of(1)


class Thin:
    """The system's noise, but a quarter of it: what a forgotten factor of four does."""

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return SYSTEM.laplace(scale / 4, size)

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        return SYSTEM.weighted(exponents, rate * 4, size)


def boosted(curator: Curator, generate: Generator) -> Median:
    return boost(curator, FIRST, PAID, generate=generate, rounds=2, draws=1, lam=1, sampling="0.1")


COMPOSITES: dict[str, Callable[[Curator], Synopsis]] = {
    "linear program": lambda curator: LinearGenerator(total=30)(curator, FIRST, PAID),
    "weights": lambda curator: LinearGenerator(total=30, solver="weights", steps=25)(curator, FIRST, PAID),
    "rows": lambda curator: RowSearch(total=30, rows=30, lam=1)(curator, FIRST, PAID),
    "boosting by weights": lambda curator: boosted(curator, LinearGenerator(total=30, solver="weights", steps=25)),
}


def hits(run: Callable[[Curator], Synopsis], codes: NDArray[np.int64], thin: bool) -> int:
    """How often all that leaves says that the first cell holds twenty people or more, or that nothing fits."""
    found = 0
    for _ in range(RUNS):
        curator = Curator(Rows(SCHEMA, codes), MemoryLedger(PAID), Neighbors.REPLACE_ONE)
        if thin:
            curator._noise = Thin()  # type: ignore[assignment]
        try:
            made = run(curator)
        except NoSynopsis:
            found += 1
            continue
        members = made.members() if isinstance(made, Median) else [made]
        found += all(member.answer(FIRST).item() >= 19.75 for member in members)
    return found


def told_apart(run: Callable[[Curator], Synopsis], thin: bool) -> float:
    """Epsilon is at least this, but for one false alarm in five million: Clopper and Pearson on two chances."""
    often, seldom = hits(run, HERE, thin), hits(run, THERE, thin)
    least = stats.beta.ppf(FALSE_ALARM, often, RUNS - often + 1)
    most = stats.beta.ppf(1 - FALSE_ALARM, seldom + 1, RUNS - seldom)
    return log(least / most)


@pytest.mark.parametrize("name", COMPOSITES)
def test_nobody_tells_neighbours_apart_better_than_was_paid_and_with_a_quarter_of_the_noise_anybody_does(
    name: str,
) -> None:
    assert told_apart(COMPOSITES[name], thin=False) <= float(PAID.epsilon) < told_apart(COMPOSITES[name], thin=True)
