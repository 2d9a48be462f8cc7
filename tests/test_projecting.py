"""Marginals of a dense table and their transpose, against sums one by one; each is the other's adjoint."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.domain.projecting import Projections, _cut, projected, spread
from tacit.domain.query import Columns

SHAPES = [
    (3,),
    (2, 5),
    (4, 1, 3),
    (2,) * 14,
    (7, 2, 3, 5, 2, 6, 4),
    (1, 1, 9, 1, 30, 2, 40),
    (50, 2, 2, 2, 60),
    (20, 300),
]


def one_by_one(table: NDArray[np.float64], names: Columns, columns: Columns) -> NDArray[np.float64]:
    return table.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in columns))


def some_sets(names: Columns, rng: np.random.Generator) -> list[Columns]:
    every = [columns for k in range(min(len(names), 4) + 1) for columns in combinations(names, k)]
    return [every[i] for i in sorted(rng.choice(len(every), min(len(every), 40), replace=False))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_marginals_are_sums_over_all_other_columns(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    table, names = rng.normal(size=shape), tuple("abcdefghijklmnop"[: len(shape)])
    for sets in (some_sets(names, rng), [()], [names], list(combinations(names, min(2, len(names))))):
        found = projected(table, names, sets)
        assert set(found) == set(sets)
        for columns in sets:
            assert found[columns] == pytest.approx(one_by_one(table, names, columns), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_spreading_is_the_transpose_of_projecting(shape: tuple[int, ...]) -> None:
    """<spread(f), x> = <f, projected(x)> for every f and x: enough, as both are linear."""
    rng = np.random.default_rng(1)
    table, names = rng.normal(size=shape), tuple("abcdefghijklmnop"[: len(shape)])
    known = dict(zip(names, shape, strict=True))
    for sets in (some_sets(names, rng), [()], [names]):
        factors = {columns: rng.normal(size=[known[name] for name in columns]) for columns in sets}
        whole = spread(factors, names, shape)
        assert whole.shape == shape
        found = projected(table, names, sets)
        assert np.vdot(whole, table) == pytest.approx(sum(np.vdot(factors[c], found[c]) for c in sets), rel=1e-9)


def test_a_table_that_is_a_view_or_narrow_is_projected_too() -> None:
    rng = np.random.default_rng(2)
    table = rng.normal(size=(9, 8, 7, 6, 5)).transpose(2, 0, 4, 1, 3)[:, ::2]
    sets = list(combinations("abcde", 2))
    for given in (table, table.astype(np.float32)):
        found = projected(given, tuple("abcde"), sets)
        for columns in sets:
            assert found[columns] == pytest.approx(one_by_one(table, tuple("abcde"), columns), abs=1e-4)


def test_no_marginal_is_asked_and_none_is_given() -> None:
    assert projected(np.ones((2, 3)), ("a", "b"), []) == {}
    assert spread({}, ("a", "b"), (2, 3)).tolist() == np.zeros((2, 3)).tolist()


@pytest.mark.parametrize("shape", [(2,) * 14, (1, 1, 1, 9), (1000, 2, 2, 2, 2), (2, 2, 2, 1000), (5, 4, 3, 2)], ids=str)
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_spans_cut_the_columns_into_as_many_parts_as_asked_and_miss_none(shape: tuple[int, ...], parts: int) -> None:
    """So a set of one column less than there are spans misses one of them."""
    spans = sorted(_cut(shape, parts))
    assert len(spans) == parts
    assert [axis for start, stop in spans for axis in range(start, stop)] == list(range(len(shape)))
    assert all(start < stop for start, stop in spans)


def test_many_marginals_of_a_large_table_are_taken_in_a_few_passes() -> None:
    """364 three-way marginals: four steps begin at the table itself, and each leaves a sixteenth of it or less."""
    names = tuple("abcdefghijklmn")
    steps = Projections(names, (2,) * 14, list(combinations(names, 3)))._steps
    assert len(steps) == 4
    assert all(int(np.prod(step.shape)) <= 2**11 for step in steps)
