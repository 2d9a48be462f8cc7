"""Matching weights: an update meets its answer but for the slack, none does harm, no adversary gets more of them."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import pytest
from doubles import Rows, Scripted
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.parity import Parity
from tacit.domain.query import Counting, Linear, LinearQuery
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.domain.weights import Weights
from tacit.domain.workload import Workload, marginals
from tacit.errors import InvalidParameter, InvalidQuery
from tacit.mechanisms.iterative import construct
from tacit.mechanisms.matching import MatchingWeights
from tacit.privacy.budget import Budget

SIX = Schema([Categories("a", (0, 1, 2)), Categories("b", (0, 1))])
PEOPLE = 1000.0
COUNTS: list[LinearQuery] = [
    Counting.where(SIX, {"a": a, "b": b})
    for a in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    for b in ((0,), (1,), (0, 1))
]
WEIGHTED: list[LinearQuery] = [Linear.of(SIX, ("a", "b"), row) for row in np.random.default_rng(0).random((12, 6)) ** 2]


def entropy(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """KL(x || y) of two tables of the same people."""
    x, y = x.ravel() / x.sum(), y.ravel() / y.sum()
    return float((x[x > 0] * np.log(x[x > 0] / y[x > 0])).sum())


def coins(v: float, p: float) -> float:
    """The relative entropy of two coins."""
    parts = ((v, p), (1 - v, 1 - p))
    return sum(a * log(a / b) for a, b in parts if a > 0)


def test_it_meets_a_count_but_for_the_slack() -> None:
    rng = np.random.default_rng(1)
    for slack in (0.0, 0.03):
        for _ in range(100):
            held = Weights(SIX, PEOPLE, np.log(rng.dirichlet(np.ones(6))))
            query, before = COUNTS[int(rng.integers(18))], held.answer(COUNTS[0]).item()
            before, value = held.answer(query).item(), float(rng.uniform(1, 999))
            after = MatchingWeights(0.1, slack)(held, query, value).answer(query).item()
            room = slack * PEOPLE
            wanted = before if abs(value - before) <= room else value - room if value > before else value + room
            assert after == pytest.approx(wanted, abs=1e-6)


def test_of_a_weighted_question_it_never_passes_the_value() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        held = Weights(SIX, PEOPLE, np.log(rng.dirichlet(np.ones(6))))
        query = WEIGHTED[int(rng.integers(12))]
        before = held.answer(query).item()
        value = query(rng.dirichlet(np.full(6, 0.3)) * PEOPLE).item()
        after = MatchingWeights(0.1)(held, query, value).answer(query).item()
        assert min(before, value) - 1e-6 <= after <= max(before, value) + 1e-6
        if abs(value - before) > 1:
            assert abs(after - before) > 0


@pytest.mark.parametrize("queries", [COUNTS[:18], WEIGHTED], ids=["counts", "weighted"])
def test_every_update_lowers_the_relative_entropy_by_that_of_two_coins_and_none_raises_it(
    queries: list[LinearQuery],
) -> None:
    """Values off by as much as the slack, on the worst side: at least 2 (v - p)^2, for v the nearest that is true."""
    rng, moved = np.random.default_rng(3), 0
    for _ in range(400):
        x = rng.dirichlet(np.full(6, 0.3)) * PEOPLE
        held = Weights(SIX, PEOPLE, np.log(rng.dirichlet(np.ones(6))))
        query, slack = queries[int(rng.integers(len(queries)))], float(rng.choice([0.0, 0.01, 0.1]))
        truth, p = query(x).item() / PEOPLE, held.answer(query).item() / PEOPLE
        value = truth + float(rng.choice([-1, 0, 1])) * slack
        before = entropy(x, held.counts)
        MatchingWeights(0.1, slack)(held, query, value * PEOPLE)
        fell = before - entropy(x, held.counts)
        assert fell >= -1e-9
        if abs(value - p) > slack and 0.001 < p < 0.999:
            v = value - slack if value > p else value + slack
            v = min(max(v, 0.5 / PEOPLE), 1 - 0.5 / PEOPLE)
            assert fell >= coins(v, p) - 1e-9
            assert fell >= 2 * (v - p) ** 2 - 1e-9
            moved += 1
    assert moved > 150


def test_noise_beyond_the_slack_may_do_harm() -> None:
    """So the test above would see a rule that takes its values for more than they are."""
    x, query = np.array([[900.0, 0.0]] + [[50.0, 0.0]] * 2), COUNTS[2]
    held = Weights(SIX, PEOPLE, np.log(x.ravel() + 0.5))
    before = entropy(x, held.counts)
    MatchingWeights(0.1)(held, query, 1000.0)
    assert entropy(x, held.counts) > before


@pytest.mark.parametrize("seen", [max, min], ids=["worst first", "least first"])
@pytest.mark.parametrize("slack", [0.0, 0.02])
def test_no_stream_makes_more_updates_than_the_bound(seen: Callable[..., float], slack: float) -> None:
    """Each question off by alpha and twice the slack, each value off by the slack towards the hypothesis or away."""
    rng, alpha = np.random.default_rng(4), 0.08
    queries, most = COUNTS + WEIGHTED, 0
    work = Workload(tuple(queries))
    for trial in range(12):
        x = np.eye(6)[trial] * PEOPLE if trial < 6 else rng.dirichlet(np.full(6, 0.2)) * PEOPLE
        rule = MatchingWeights(alpha, slack)
        held, updates = rule.start(SIX, PEOPLE), 0
        truth = np.array([query(x.reshape(3, 2)).item() for query in queries])
        while True:
            apart = truth - held.answer(work)
            legal = np.flatnonzero(np.abs(apart) > (alpha + 2 * slack) * PEOPLE + 1)
            if not legal.size:
                break
            place = seen(legal.tolist(), key=lambda i: abs(apart[i]))
            side = float(rng.choice([-1, 1]))
            held = rule(held, queries[place], float(truth[place] + side * slack * PEOPLE))
            updates += 1
            assert updates <= rule.max_updates(SIX)
        most = max(most, updates)
    assert most >= 2


def test_the_bound_is_by_the_nats_that_are_said_or_by_the_universe() -> None:
    assert MatchingWeights(0.1).max_updates(SIX) == int(log(6) / 0.02) == 89
    assert MatchingWeights(0.1, nats=0.2).max_updates(SIX) == 10


def test_a_direction_that_the_value_contradicts_changes_nothing() -> None:
    """Online it is that of the question which fired; the value's noise must have been large, and says nothing else."""
    rule, query = MatchingWeights(0.1), COUNTS[0]
    held = rule.start(SIX, PEOPLE)
    before = held.answer(query).item()
    assert rule(held, query, before + 100, -1).answer(query).item() == before
    assert rule(held, query, before + 100, +1).answer(query).item() == pytest.approx(before + 100)


@pytest.mark.parametrize("value", [-1e9, -5.0, 0.0, 1000.0, 1e12])
def test_values_beyond_all_people_or_below_nobody_leave_weights_that_are_numbers(value: float) -> None:
    rule = MatchingWeights(0.1)
    held = rule.start(SIX, PEOPLE)
    for query in COUNTS + WEIGHTED:
        held = rule(held, query, value)
    assert np.isfinite(held.counts).all()
    assert held.counts.sum() == pytest.approx(PEOPLE)


def test_a_hypothesis_of_fewer_than_one_person_is_left_as_it_is() -> None:
    held = MatchingWeights(0.1).start(SIX, 0.25)
    MatchingWeights(0.1)(held, COUNTS[0], 0.2)
    assert np.isfinite(held.counts).all()


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0}, {"alpha": 2}, {"slack": -0.1}, {"slack": 1}, {"nats": 0}, {"nats": -1}]
)
def test_what_is_no_share_and_no_number_of_nats_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        MatchingWeights(**{"alpha": 0.1, **wrong})


def test_what_is_no_weighted_count_is_refused() -> None:
    rule = MatchingWeights(0.1)
    binary = Schema([Categories("a", (0, 1))])
    with pytest.raises(InvalidQuery):
        rule(rule.start(binary, 10), Parity.over(binary, "a"), 5.0)


def test_offline_it_is_told_the_value_and_not_the_direction_alone() -> None:
    """A construction without noise ends where the table is; a value that was left out would have been taken for 0."""
    cells = np.repeat(np.arange(6), (600, 100, 100, 100, 50, 50))
    codes = np.stack(np.unravel_index(cells, (3, 2)), axis=1).astype(np.int64)
    curator = Curator(Rows(SIX, codes), MemoryLedger(Budget.of(1)), Neighbors.REPLACE_ONE)
    curator._noise = Scripted()  # type: ignore[assignment]
    released = construct(
        curator,
        marginals(SIX, 2),
        Budget.of(1),
        update=lambda alpha: MatchingWeights(alpha, slack=alpha / 4),
        alpha="0.1",
        total=1000,
    )
    truth = np.bincount(cells, minlength=6)
    assert np.abs(np.ravel(released.project(("a", "b"))) - truth).max() < 0.75 * 0.1 * 1000
