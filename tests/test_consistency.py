"""Tables that overlap are made to agree as least squares would have it, and to be non-negative, and stay so."""

from __future__ import annotations

import time
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.domain.lattice import TOLERANCE, Lattice, shared
from tacit.errors import InvalidParameter, InvalidQuery
from tacit.mechanisms.consistency import consistent, discrepancy, nonnegative

Tables = dict[tuple[str, ...], np.ndarray]
SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 1}

# single tables, chains, cycles, nested and disjoint sets, a column of one cell, and the total alone
WORKLOADS: list[list[tuple[str, ...]]] = [
    [("a", "b")],
    [("a",), ("b",)],
    [("a", "b"), ("b", "c")],
    [("a", "b"), ("b", "c"), ("a", "c")],
    [("a", "b"), ("c", "d")],
    [("a", "b", "c"), ("b", "c", "d"), ("a", "d")],
    [("a", "b", "c"), ("a", "b"), ("c",), ()],
    [("a", "e"), ("b", "e")],
    list(combinations("abcd", 2)),
    list(combinations("abcd", 3)),
]
sets_of_columns = st.lists(
    st.sets(st.sampled_from("abcde"), max_size=3).map(lambda chosen: tuple(sorted(chosen))),
    min_size=1,
    max_size=7,
    unique=True,
)


def drawn(columns: list[tuple[str, ...]], seed: int, people: int = 40, noise: float = 5.0) -> Tables:
    """Marginals of a few people with noise of its own on each."""
    rng = np.random.default_rng(seed)
    rows = [{name: rng.integers(size) for name, size in SIZES.items()} for _ in range(people)]
    tables = {}
    for names in columns:
        table = np.zeros([SIZES[name] for name in names])
        for row in rows:
            table[tuple(row[name] for name in names)] += 1
        tables[names] = table + rng.normal(0, noise, table.shape) if noise else table
    return tables


def least_squares(tables: Tables, precision: dict[tuple[str, ...], float], total: float | None = None) -> Tables:
    """The same by brute force: the counts over all cells that fit best, whatever their sign."""
    names = sorted({name for columns in tables for name in columns})
    sizes = [SIZES[name] for name in names]
    blocks, wanted = [], []
    for columns, table in tables.items():
        cells = np.indices(sizes).reshape(len(sizes), -1)
        here = np.ravel_multi_index([cells[names.index(name)] for name in columns], table.shape) if columns else 0
        matrix = np.zeros((table.size, prod(sizes)))
        matrix[here, np.arange(prod(sizes))] = 1
        blocks.append(matrix)
        wanted.append(table.reshape(-1))
    root = np.concatenate([np.full(t.size, precision[c] ** 0.5) for c, t in tables.items()])
    design, values = np.concatenate(blocks), np.concatenate(wanted)
    if total is None:
        best = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0]
    else:  # a penalty that outweighs everything is the constraint, to the digits that are compared
        heavy = 1e6
        design2 = np.vstack([design * root[:, None], np.full(prod(sizes), heavy)])
        best = np.linalg.lstsq(design2, np.append(values * root, heavy * total), rcond=None)[0]
    fitted = np.split(design @ best, np.cumsum([t.size for t in tables.values()])[:-1])
    return {columns: part.reshape(table.shape) for (columns, table), part in zip(tables.items(), fitted, strict=True)}


@pytest.mark.parametrize("columns", WORKLOADS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_generalised_least_squares(columns: list[tuple[str, ...]], weighted: bool) -> None:
    tables = drawn(columns, 1)
    variances = {names: 1.0 + 3 * i * weighted for i, names in enumerate(columns)}
    ours = consistent(tables, variances=variances)
    theirs = least_squares(tables, {names: 1 / v for names, v in variances.items()})
    for names in columns:
        assert ours[names] == pytest.approx(theirs[names], abs=1e-8)


@pytest.mark.parametrize("columns", WORKLOADS, ids=str)
def test_a_known_total_is_kept_and_the_rest_is_least_squares(columns: list[tuple[str, ...]]) -> None:
    tables = drawn(columns, 2)
    ours = consistent(tables, total=40)
    theirs = least_squares(tables, dict.fromkeys(columns, 1.0), total=40)
    for names in columns:
        assert ours[names].sum() == pytest.approx(40)
        assert ours[names] == pytest.approx(theirs[names], abs=1e-4)


def test_a_wrong_weight_would_be_noticed() -> None:
    tables = drawn(WORKLOADS[3], 1)
    ours = consistent(tables, variances=dict(zip(tables, (1.0, 1.0, 1.03), strict=True)))
    theirs = least_squares(tables, dict.fromkeys(tables, 1.0))
    assert max(float(np.abs(ours[names] - theirs[names]).max()) for names in tables) > 1e-3


@settings(max_examples=60, deadline=None)
@given(sets_of_columns, st.integers(0, 10**6), st.sampled_from([0, 1, 7, 60]), st.sampled_from([0.3, 5.0, 80.0]))
def test_mended_tables_agree_are_not_negative_and_keep_the_total(
    columns: list[tuple[str, ...]], seed: int, people: int, noise: float
) -> None:
    agreed = consistent(drawn(columns, seed, people, noise))
    assert discrepancy(agreed) < 1e-9 * (people + 100 * noise)
    total = float(next(iter(agreed.values())).sum())
    mended = nonnegative(agreed)
    kept = max(total, 0.0)
    assert min(float(table.min()) for table in mended.values()) >= 0
    assert discrepancy(mended) <= TOLERANCE * kept + 1e-12
    for table in mended.values():
        assert float(table.sum()) == pytest.approx(kept, rel=1e-5, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(sets_of_columns, st.integers(0, 10**6))
def test_tables_that_agree_and_are_not_negative_stay_as_they_are(columns: list[tuple[str, ...]], seed: int) -> None:
    tables = drawn(columns, seed, noise=0)
    mended = nonnegative(consistent(tables))
    for names, table in tables.items():
        assert mended[names] == pytest.approx(table, abs=1e-9)


def test_what_goes_in_is_not_changed() -> None:
    tables = drawn(WORKLOADS[-1], 3)
    before = {names: table.copy() for names, table in tables.items()}
    nonnegative(consistent(tables))
    assert all(np.array_equal(before[names], table) for names, table in tables.items())


@pytest.mark.parametrize("columns", WORKLOADS, ids=str)
def test_the_first_stage_comes_near_the_projection_on_the_non_negative_tables(columns: list[tuple[str, ...]]) -> None:
    """Dykstra's alternating projections, run long, are the yardstick."""
    agreed = consistent(drawn(columns, 4, people=300, noise=20.0))
    lattice = Lattice(agreed)
    flat = lattice.packed(agreed)
    total = float(agreed[columns[0]].sum())
    best, kept = flat.copy(), np.zeros_like(flat)
    for _ in range(5000):
        cut = np.maximum(best + kept, 0)
        kept = best + kept - cut
        best = cut
        lattice.agree(best, total)
    ours = lattice.packed(nonnegative(agreed))
    moved = float(np.linalg.norm(best - flat))
    assert float(np.linalg.norm(ours - best)) <= 0.15 * moved + 1e-6 * total
    assert float(np.linalg.norm(ours - flat)) <= 1.05 * moved + 1e-6 * total


def test_it_comes_nearer_to_the_truth_in_every_draw_that_was_tried() -> None:
    columns = list(combinations("abcd", 3))
    truth = drawn(columns, 5, people=60, noise=0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        noisy = {names: table + rng.normal(0, 6, table.shape) for names, table in truth.items()}
        agreed = consistent(noisy)
        errors = [
            sum(float(np.square(tables[names] - truth[names]).sum()) for names in columns)
            for tables in (noisy, agreed, nonnegative(agreed))
        ]
        assert errors[0] > errors[1] > errors[2]


def test_tables_of_nobody_come_out_empty() -> None:
    tables = {("a", "b"): np.full((2, 3), -1.0), ("b", "c"): np.full((3, 4), -0.5)}
    mended = nonnegative(tables)
    assert all(not table.any() for table in mended.values())


def test_many_overlapping_tables_are_done_in_no_time() -> None:
    """28 two-way tables of 8 columns with 10 values each; the bound is ten times what it takes."""
    rng = np.random.default_rng(0)
    tables = {
        pair: rng.poisson(1000 / (1 + np.arange(100)).reshape(10, 10)) * 1.0 for pair in combinations("abcdefgh", 2)
    }
    tables = {pair: table + rng.normal(0, 30, table.shape) for pair, table in tables.items()}
    began = time.process_time()
    mended = nonnegative(consistent(tables))
    assert time.process_time() - began < 0.15
    assert discrepancy(mended) <= TOLERANCE * float(mended["a", "b"].sum())


def test_what_they_share_is_every_column_set_within_two_of_them() -> None:
    assert shared([("a", "b", "c"), ("b", "c", "d")]) == {(), ("b",), ("c",), ("b", "c")}
    assert shared([("a",)]) == {()}


def test_links_are_the_fewest_sets_that_make_all_agree() -> None:
    shapes = {pair: np.zeros((2, 2)) for pair in combinations("abcd", 2)}
    assert {columns for columns, _ in Lattice(shapes).links} == {("a",), ("b",), ("c",), ("d",)}
    triples = {triple: np.zeros((2, 2, 2)) for triple in combinations("abcd", 3)}
    assert {columns for columns, _ in Lattice(triples).links} == set(combinations("abcd", 2))
    apart = {("a", "b"): np.zeros((2, 2)), ("c",): np.zeros(2)}
    assert [columns for columns, _ in Lattice(apart).links] == [()]


def test_marginals_that_overlap_in_too_many_sets_are_refused() -> None:
    many = [f"c{i:02}" for i in range(24)]
    with pytest.raises(InvalidQuery, match="Nothing was spent"):
        shared([tuple(many[:23]), tuple(many[1:])])


@pytest.mark.parametrize(
    ("tables", "variances"),
    [
        ({}, None),
        ({("a",): np.zeros((2, 2))}, None),
        ({("a",): np.zeros(2)}, {("a",): 0.0}),
        ({("a",): np.zeros(2)}, {("a",): float("inf")}),
    ],
)
def test_tables_that_cannot_be_are_refused(tables: Tables, variances: dict[tuple[str, ...], float] | None) -> None:
    with pytest.raises(InvalidParameter):
        consistent(tables, variances=variances)
