"""Every way in which a mechanism can come out, with its probability: noise that takes each road in turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import product
from math import ceil, exp, log, sqrt
from typing import Any

import numpy as np
from doubles import Rows
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.schema import Neighbors, Schema
from tacit.primitives.additive import laplace_mass
from tacit.privacy.budget import Budget

Mechanism = Callable[[Curator], object]
Law = tuple[dict[Hashable, float], set[Hashable]]  # the outcomes, and those of them to which not all roads were gone


class Roads:
    """Discrete noise within `reach`, and weighted choices; each run goes one way, and all ways are gone."""

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.ahead: list[int] = []  # which way to take at each fork
        self.forks: list[int] = []  # how many ways each has
        self.logs, self.edge = 0.0, False

    def _fork(self, logs: NDArray[np.float64]) -> int:
        place = len(self.forks)
        if place == len(self.ahead):
            self.ahead.append(0)
        self.forks.append(len(logs))
        self.logs += float(logs[self.ahead[place]])
        return self.ahead[place]

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._noise(lambda z: np.log(laplace_mass(z, float(scale))), size)

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        far = np.arange(-ceil(40 * sqrt(variance)) - 1, ceil(40 * sqrt(variance)) + 2)
        norm = log(np.exp(-far * far / (2 * float(variance))).sum())
        return self._noise(lambda z: -z * z / (2 * float(variance)) - norm, size)

    def _noise(self, law: Callable[[NDArray[np.int64]], NDArray[np.float64]], size: int) -> NDArray[np.int64]:
        z = np.arange(-self.reach, self.reach + 1)
        logs = law(z)
        ways = list(product(range(len(z)), repeat=size))
        way = ways[self._fork(np.array([logs[list(way)].sum() for way in ways]))]
        drawn = z[list(way)]
        self.edge |= bool(np.any(np.abs(drawn) == self.reach))
        return drawn

    def weighted(self, exponents: NDArray[np.int64], rate: Fraction, size: int) -> NDArray[np.int64]:
        logs = -float(rate) * exponents.astype(float)
        logs -= log(np.exp(logs).sum())
        ways = list(product(range(len(logs)), repeat=size))
        return np.array(ways[self._fork(np.array([logs[list(way)].sum() for way in ways]))])

    def turn(self) -> bool:
        """On to the next road; False after the last."""
        while self.forks and self.ahead[-1] == self.forks[-1] - 1:
            self.forks.pop()
            self.ahead.pop()
        if not self.forks:
            return False
        self.ahead[-1] += 1
        self.forks, self.logs, self.edge = [], 0.0, False
        return True


class Watched(Curator):
    """A curator that remembers all that left through it, in order: what an adversary sees at the most."""

    seen: list[Hashable]

    def release(self, mechanism: Any, query: Any) -> Any:
        answer = super().release(mechanism, query)
        self.seen.append(tuple(np.atleast_1d(answer).tolist()))
        return answer

    def within(self, budget: Budget, what: str = "block") -> Watched:
        inner = Watched(self._data, self.ledger.block(what, budget), self.neighbors)
        inner._noise, inner.seen = self._noise, self.seen
        return inner


def law(
    mechanism: Mechanism, schema: Schema, codes: NDArray[np.int64], budget: Budget, neighbors: Neighbors, reach: int = 5
) -> Law:
    """How likely each transcript is, and those that noise beyond the reach could also have led to from a neighbour."""
    noise, found, edges = Roads(reach), {}, set()
    while True:
        curator = Watched(Rows(schema, codes), MemoryLedger(budget), neighbors)
        curator._noise, curator.seen = noise, []  # type: ignore[assignment]
        mechanism(curator)
        outcome = tuple(curator.seen)
        found[outcome] = found.get(outcome, 0.0) + exp(noise.logs)
        if noise.edge:
            edges.add(outcome)
        if not noise.turn():
            return found, edges


def furthest(here: Law, there: Law) -> float:
    """The largest log-ratio of two laws over the outcomes that both were followed to."""
    (p, p_edges), (q, q_edges) = here, there
    inner = set(p) - p_edges - q_edges
    assert inner, "the reach is too short"
    lost = [outcome for outcome in inner if outcome not in q]
    assert not lost, "an outcome of one table is impossible under its neighbour"
    return max(abs(log(p[outcome] / q[outcome])) for outcome in inner)


def concentrated(here: Law, there: Law) -> float:
    """The largest Renyi divergence over its order, either way: what was not followed could only add to it."""
    (p, _), (q, _) = here, there
    shared, worst = p.keys() & q.keys(), 0.0
    for order in (1.5, 2.0, 5.0):
        for one, other in ((p, q), (q, p)):
            terms = [order * log(one[o]) + (1 - order) * log(other[o]) for o in shared]
            worst = max(worst, float(np.logaddexp.reduce(terms)) / (order - 1) / order)
    return worst
