"""Fits: what was measured is met, as closely as its noise, and nothing more is claimed."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import Rows

from tacit.domain.query import Counting, Linear, Marginal
from tacit.domain.schema import Categories, Integers, Schema
from tacit.domain.weights import Weights
from tacit.domain.workload import marginals, prefixes
from tacit.errors import InvalidQuery
from tacit.mechanisms.fit import Measured, fitted

SCHEMA = Schema([Categories("a", (0, 1)), Integers("b", 0, 2), Categories("c", (0, 1)), Integers("d", 0, 3)])


def people(rows: int = 4000, seed: int = 3) -> Rows:
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 2, rows), draw.integers(0, 3, rows)
    return Rows(SCHEMA, np.stack([a, b, (a + (b > 1) + (draw.random(rows) < 0.2)) % 2, (b + a) % 4], axis=1))


TABLE = people()


def exactly(*columns: str, variance: float = 1.0) -> Measured:
    return Measured(Marginal.over(SCHEMA, *columns), TABLE.project(columns).reshape(-1) * 1.0, variance)


def test_exact_marginals_are_met() -> None:
    measured = [exactly(*query.columns) for query in marginals(SCHEMA, 2).queries]  # type: ignore[attr-defined]
    fit = fitted(Weights(SCHEMA, 4000), measured, steps=4000, rests=1e-9)
    for query in marginals(SCHEMA, 2).queries:
        assert np.abs(fit.answer(query) - query(TABLE.project(query.columns))).max() < 1.5  # type: ignore[attr-defined]
    assert fit.counts.sum() == pytest.approx(4000)


def test_one_way_marginals_make_columns_independent() -> None:
    """From the uniform distribution the nearest in relative entropy is the product."""
    fit = fitted(Weights(SCHEMA, 4000), [exactly(name) for name in SCHEMA.names], steps=2000, rests=1e-12)
    product = TABLE.project(("a",))[:, None] * TABLE.project(("b",)) / 4000
    assert fit.project(("a", "b")) == pytest.approx(product, abs=0.05)


def test_columns_may_stand_in_any_order() -> None:
    turned = Measured(Marginal.over(SCHEMA, "d", "a"), TABLE.project(("d", "a")).reshape(-1) * 1.0, 1.0)
    fit = fitted(Weights(SCHEMA, 4000), [turned], steps=2000, rests=1e-9)
    assert fit.project(("a", "d")) == pytest.approx(TABLE.project(("a", "d")), abs=0.5)


def test_two_measurements_of_a_table_count_by_their_precision() -> None:
    low, high = np.array([1000.0, 3000.0]), np.array([2000.0, 2000.0])
    query = Marginal.over(SCHEMA, "a")
    fit = fitted(Weights(SCHEMA, 4000), [Measured(query, low, 1.0), Measured(query, high, 3.0)], steps=500, rests=1e-9)
    assert fit.project(("a",)) == pytest.approx([1250, 2750], abs=0.01)


def test_single_weighted_counts_are_met_too() -> None:
    count = Counting.where(SCHEMA, {"b": (1, 2), "a": (1,)})
    weighted = Linear.of(SCHEMA, ("d",), [0.0, 0.25, 0.5, 1.0])
    measured = [Measured(count, np.array([700.0]), 4.0), Measured(weighted, np.array([1900.0]), 4.0)]
    fit = fitted(Weights(SCHEMA, 4000), measured, steps=2000, rests=1e-9)
    assert fit.answer(count) == pytest.approx([700], abs=0.1)
    assert fit.answer(weighted) == pytest.approx([1900], abs=0.1)


def test_a_good_start_is_kept_and_nothing_measured_changes_nothing() -> None:
    start = fitted(Weights(SCHEMA, 4000), [exactly("a", "b")], steps=2000, rests=1e-9)
    assert fitted(start, []).counts == pytest.approx(start.counts)
    again = fitted(start, [exactly("a", "b")])
    assert again.counts == pytest.approx(start.counts, abs=0.01)


def test_impossible_answers_end_at_the_edge_of_the_possible() -> None:
    query = Marginal.over(SCHEMA, "a")
    fit = fitted(Weights(SCHEMA, 100), [Measured(query, np.array([-500.0, 900.0]), 1.0)], steps=2000)
    assert np.all(fit.counts >= 0)
    assert fit.project(("a",)) == pytest.approx([0, 100], abs=1)


def test_what_is_no_marginal_and_no_single_count_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="single weighted counts"):
        fitted(Weights(SCHEMA, 100), [Measured(prefixes(SCHEMA, "b").queries[0], np.zeros(3), 1.0)])  # type: ignore[arg-type]
