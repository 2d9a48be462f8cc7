"""Shattering, VC-dimension, Sauer's bound and the sampling lemma; and why a few random rows are no private release."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp, log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.parity import Parity
from tacit.domain.query import Counting, Linear, Marginal
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.score import Function
from tacit.domain.vc import (
    book_subsample_size,
    classes,
    sampling_lemma,
    sauer,
    shatters,
    subsample_size,
    vc_dimension,
    vc_subsample_size,
)
from tacit.domain.workload import Workload
from tacit.errors import InvalidInput, InvalidParameter, InvalidQuery

LINE = Schema([Integers("a", 0, 5)])
INTERVALS = classes(Workload((Ranges.over(LINE, "a"), Counting.where(LINE, {"a": ()}))), LINE)


# -- shattering


def test_intervals_shatter_every_pair_and_no_triple() -> None:
    """A15: on {0..5} there are 22 intervals with the empty one, log2 of which is 4.459431619; the dimension is 2."""
    assert all(shatters(INTERVALS, pair) for pair in combinations(range(6), 2))
    assert not any(shatters(INTERVALS, triple) for triple in combinations(range(6), 3))
    assert len(INTERVALS) == 22
    assert log2(len(INTERVALS)) == pytest.approx(4.459431619, abs=1e-9)
    assert vc_dimension(INTERVALS) == 2 <= log2(22)


def test_without_the_empty_interval_neighbouring_pairs_are_shattered_still() -> None:
    """Another cell of the line serves as the empty intersection."""
    assert vc_dimension(classes(Ranges.over(LINE, "a"), LINE)) == 2
    assert vc_dimension(classes(Ranges.over(Schema([Integers("a", 0, 1)]), "a"), Schema([Integers("a", 0, 1)]))) == 1


SQUARE = Schema([Integers("a", 0, 3), Integers("b", 0, 3)])


def rectangles() -> np.ndarray:
    ends = [(i, j) for i in range(4) for j in range(i, 4)]
    parts = [Counting.where(SQUARE, {"a": range(i, j + 1), "b": range(k, m + 1)}) for i, j in ends for k, m in ends]
    return classes(Workload(tuple(parts)), SQUARE)


def test_the_dimensions_that_are_known() -> None:
    assert vc_dimension(classes(Prefixes.over(LINE, "a"), LINE)) == 1  # thresholds
    assert vc_dimension(rectangles()) == 4
    assert vc_dimension(classes(Marginal.over(SQUARE, "a"), SQUARE)) == 1  # disjoint cells
    subsets = np.array([[bool(i >> j & 1) for j in range(5)] for i in range(32)])
    assert vc_dimension(subsets) == 5
    assert vc_dimension(subsets[:31]) == 4
    assert vc_dimension(np.ones((1, 7), np.bool_)) == 0
    assert shatters(np.ones((1, 3), np.bool_), [])


tables = arrays(np.bool_, st.tuples(st.integers(1, 14), st.integers(1, 6)))


@given(tables)
@settings(max_examples=150, deadline=None)
def test_the_dimension_is_that_of_a_search_through_all_sets(table: np.ndarray) -> None:
    points = range(table.shape[1])
    found = max(d for d in range(len(points) + 1) if any(shatters(table, chosen) for chosen in combinations(points, d)))
    assert vc_dimension(table) == found


@given(tables)
@settings(max_examples=150, deadline=None)
def test_there_are_at_most_as_many_classes_as_sauer_says_and_at_least_two_to_the_dimension(table: np.ndarray) -> None:
    different = len(np.unique(table, axis=0))
    dimension = vc_dimension(table)
    assert 2**dimension <= different <= sauer(dimension, table.shape[1])
    assert dimension <= log2(different)  # Lemma 4.7, base 2 (E25c)


def test_sauers_bound_is_attained_by_small_sets_and_below_its_exponential_form() -> None:
    small = np.array([[i in chosen for i in range(6)] for k in range(3) for chosen in combinations(range(6), k)])
    assert vc_dimension(small) == 2
    assert len(small) == sauer(2, 6) == 22  # as many as there are intervals
    for d in range(1, 8):
        for n in range(d, 40):
            assert sauer(d, n) <= (np.e * n / d) ** d
    assert sauer(9, 4) == 16


def test_a_search_that_would_be_too_long_is_refused_and_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.domain.vc.MOST_WORK", 300)
    with pytest.raises(InvalidParameter, match="at least 1"):
        vc_dimension(INTERVALS)


def test_classes_are_counting_queries_each_once() -> None:
    twice = Workload((Ranges.over(LINE, "a"), Prefixes.over(LINE, "a"), Linear.of(LINE, "a", [0, 1, 0, 0, 0, 1])))
    assert len(classes(twice, LINE)) == 22  # every prefix is a range; two cells apart are none
    assert (
        classes(Counting.where(SQUARE, {"b": (1,)}), SQUARE).reshape(4, 4).tolist() == [[False, True, False, False]] * 4
    )
    for query in (Linear.of(LINE, "a", [0, 0.5, 1, 1, 1, 1]), Parity.over(Schema([Integers("c", 0, 1)]), "c")):
        schema = LINE if isinstance(query, Linear) else Schema([Integers("c", 0, 1)])
        with pytest.raises(InvalidQuery, match="fat-shattering"):
            classes(query, schema)
    with pytest.raises(InvalidQuery, match="shatters nothing"):
        classes(Function.of(LINE, "a", np.max, sensitivity=1, neighbors=Neighbors.ADD_REMOVE), LINE)
    wide = Schema([Integers(name, 0, 999) for name in "abc"])
    with pytest.raises(InvalidParameter, match="bits"):
        classes(Marginal.over(wide, "a"), wide)
    for wrong in (np.ones((2, 2)), np.ones(3, np.bool_), np.ones((0, 2), np.bool_)):
        with pytest.raises(InvalidParameter, match="rows of truths"):
            vc_dimension(wrong)  # type: ignore[arg-type]


# -- how many rows


def test_the_sizes_are_those_of_the_lemma() -> None:
    for queries, alpha, beta in ((1000, 0.1, 0.05), (3, 0.3, 0.5), (10**6, 0.02, 1e-6), (2, 0.25, 1)):
        m = subsample_size(queries, alpha, beta)
        assert 2 * queries * exp(-2 * m * alpha**2) < beta <= 2 * queries * exp(-2 * (m - 1) * alpha**2)
        assert sampling_lemma(queries, m, alpha) < beta
    assert sampling_lemma(1000, 1, 0.1) == 1
    assert subsample_size(10**5, "0.1") == 611
    assert book_subsample_size(10**5, "0.1") == 1152  # ln 1e5 / .01 = 1151.29


def test_the_book_needs_three_queries_and_twice_the_rows() -> None:
    """E24b: with m = ln|Q|/alpha^2 the chance of failure is 2/|Q|, no promise for one or two queries."""
    for queries in (1, 2):
        with pytest.raises(InvalidParameter, match="E24b"):
            book_subsample_size(queries, "0.5")
        assert 2 * queries * exp(-2 * log(queries)) >= 1
    for queries in (3, 10, 10**4):
        m = book_subsample_size(queries, "0.1")
        assert sampling_lemma(queries, m, "0.1") <= 2 / queries < 1
        assert subsample_size(queries, "0.1") <= m
    assert 1.8 < book_subsample_size(10**5, "0.01") / subsample_size(10**5, "0.01") < 2


def test_one_query_of_one_half_needs_the_rows_that_the_lemma_gives_and_not_ln_one() -> None:
    """ln|Q| = 0 rows would do for one query, says the formula; no database of no rows answers it."""
    assert log(1) / 0.1**2 == 0
    assert subsample_size(1, "0.1") == 35


def test_random_rows_err_no_more_often_than_the_lemma_allows() -> None:
    """20,000 samples of 60 rows, sixteen subsets of four cells: the exact share is far below the union bound."""
    rng = np.random.default_rng(0)
    masks = np.array([[i >> j & 1 for j in range(4)] for i in range(16)])
    truth = np.array([0.4, 0.3, 0.2, 0.1])
    samples = rng.multinomial(60, truth, 20_000) / 60
    error = np.abs((samples - truth) @ masks.T).max(axis=1)
    for alpha in (0.15, 0.2, 0.25):
        allowed = sampling_lemma(16, 60, alpha)
        assert (error > alpha).mean() <= allowed + 5 * (allowed / 20_000) ** 0.5
    assert (error > 0.15).mean() > 0


def test_the_vc_size_covers_every_pattern_and_grows_with_the_dimension_alone() -> None:
    """E24: sampling 60 intervals' rows of 1,000 points, with the explicit constant."""
    assert vc_subsample_size(2, 1000, "0.1") == subsample_size(sauer(2, 1000), "0.1")
    for d in (1, 2, 5):
        assert vc_subsample_size(d, 1000, "0.1") <= vc_subsample_size(d, 1000, "0.1", exactly=False)
        closed = (log(2) + d * log(np.e * 1000 / d)) / (2 * 0.01)
        assert vc_subsample_size(d, 1000, "0.1", exactly=False) == int(closed) + 1
    assert vc_subsample_size(0, 1000, "0.1", exactly=False) == subsample_size(1, "0.1")
    many = comb(10**6 + 1, 2)
    assert vc_subsample_size(2, 1000, "0.05") < subsample_size(many, "0.05")


def test_some_rows_of_that_size_fit_all_intervals_of_any_table() -> None:
    """Thm 4.8, with its constant: 40 random tables of 200 rows over 50 cells; 30 samples each, and one of them fits."""
    rng, alpha = np.random.default_rng(1), 0.2
    m = vc_subsample_size(2, 50, alpha)
    for _ in range(40):
        rows = rng.choice(50, 200, p=rng.dirichlet(np.full(50, 0.3)))
        truth = np.bincount(rows, minlength=50) / 200
        samples = rng.multinomial(m, truth, 30) / m
        upto = np.cumsum(samples - truth, axis=1)
        upto = np.concatenate([np.zeros((30, 1)), upto], axis=1)
        worst = upto.max(axis=1) - upto.min(axis=1)  # over all intervals
        assert worst.min() <= alpha


@pytest.mark.parametrize(
    ("queries", "alpha", "beta"),
    [(0, 0.1, 1), (2.5, 0.1, 1), (3, 0, 1), (3, 1, 1), (3, "nan", 1), (3, 0.1, 0), (3, 0.1, 2)],
)
def test_sizes_of_nothing_are_refused(queries: object, alpha: object, beta: object) -> None:
    with pytest.raises(InvalidInput, match="Nothing was spent"):
        subsample_size(queries, alpha, beta)  # type: ignore[arg-type]


# -- "just a few" (Section 1.1)


def test_publishing_just_a_few_random_rows_is_not_private() -> None:
    """Alice alone has row 2. A sample of m of n rows shows her with probability m/n, and without her never: no epsilon,
    and delta is m/n; for everybody in the sample the release is the whole row."""
    n, m = 20, 3
    others = [0] * 12 + [1] * 7

    def law(rows: list[int]) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        samples = list(combinations(sorted(rows), m))
        for sample in samples:
            found[sample] = found.get(sample, 0) + 1 / len(samples)
        return found

    with_alice, without = law([*others, 2]), law([*others, 1])
    shown = {sample for sample in with_alice if 2 in sample}
    assert sum(with_alice[sample] for sample in shown) == pytest.approx(m / n)
    assert not shown & set(without)
    for epsilon in (1.0, 10.0, 100.0):
        delta = sum(max(p - exp(epsilon) * without.get(sample, 0), 0) for sample, p in with_alice.items())
        assert delta == pytest.approx(m / n)
