"""Residuals: what they weigh, what centring leaves of them, and how marginals are put together from them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tacit.domain.grid import Norm
from tacit.domain.query import WEIGHT_GRID
from tacit.domain.residual import Residual, answer_variances, assembled, cell_variance, centred, parts
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.errors import InvalidQuery

SCHEMA = Schema([Integers("a", 0, 1), Integers("b", 0, 2), Integers("c", 0, 4), Integers("one", 0, 0)])
SETS = [(), ("a",), ("b",), ("b", "a"), ("a", "c"), ("a", "b", "c")]


def counts(columns: tuple[str, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, SCHEMA.sizes(columns))


@pytest.mark.parametrize("columns", SETS, ids="".join)
@pytest.mark.parametrize("weight", [1, Fraction(1, 3), "0.02"])
def test_the_answers_are_the_matrix_times_the_counts_and_centring_gives_the_residual(
    columns: tuple[str, ...], weight: object
) -> None:
    residual, table = Residual.of(SCHEMA, columns, weight), counts(columns)  # type: ignore[arg-type]
    assert residual.units(table).dtype == np.int64
    assert np.array_equal(residual.units(table), residual.weights() @ table.reshape(-1))
    assert residual.centred(residual(table)) == pytest.approx(centred(table.astype(float)), abs=1e-9)


@pytest.mark.parametrize("columns", SETS, ids="".join)
def test_the_weights_are_the_centring_projection_up_to_the_grid(columns: tuple[str, ...]) -> None:
    matrix = np.ones((1, 1))
    for size in SCHEMA.sizes(columns):
        matrix = np.kron(matrix, np.eye(size) - 1 / size)
    residual = Residual.of(SCHEMA, columns)
    assert np.abs(residual.weights() * float(WEIGHT_GRID) - matrix).max() <= float(WEIGHT_GRID) / 2
    assert residual.gain == pytest.approx(1, abs=2 ** len(columns) * float(WEIGHT_GRID))


def test_adding_a_row_moves_it_by_the_root_of_the_products_of_one_less_one_in_d() -> None:
    moved = Residual.of(SCHEMA, ("a", "b")).sensitivity(Norm.L2, Neighbors.ADD_REMOVE)
    assert float(moved) == pytest.approx((1 / 2 * 2 / 3) ** 0.5, abs=1e-5)


def test_many_columns_are_bounded_by_the_triangle_inequality() -> None:
    schema = Schema([Integers(name, 0, 1) for name in "abcdefg"])
    residual = Residual.of(schema, schema.names)
    for norm in Norm:
        alone = residual.sensitivity(norm, Neighbors.ADD_REMOVE)
        assert residual.sensitivity(norm, Neighbors.REPLACE_ONE) == 2 * alone


def test_a_marginal_is_the_sum_of_its_parts_also_over_a_column_of_one_cell() -> None:
    whole = counts(SCHEMA.names).astype(float)
    residuals = {}
    for part in parts(SCHEMA, SCHEMA.names):
        rest = tuple(axis for axis, name in enumerate(SCHEMA.names) if name not in part)
        residuals[part] = centred(whole.sum(axis=rest))
    assert len(residuals) == 8
    assert assembled(SCHEMA, SCHEMA.names, residuals) == pytest.approx(whole)


def test_variances_of_cells_and_sums_are_those_of_the_covariance_they_stand_for() -> None:
    columns = ("a", "b", "c")
    variances = {part: 1.0 + i for i, part in enumerate(parts(SCHEMA, columns))}
    covariance = np.zeros((30, 30))
    for part, variance in variances.items():
        lift = np.ones((1, 1))
        for name, size in zip(columns, SCHEMA.sizes(columns), strict=True):
            # the part spreads evenly over a column it does not have; P_T (1/n) over the rest, on both sides
            one = np.eye(size) - 1 / size if name in part else np.ones((size, size)) / size**2
            lift = np.kron(lift, one)
        covariance += variance * lift
    assert np.diag(covariance) == pytest.approx(cell_variance(SCHEMA, columns, variances))
    weights = np.random.default_rng(0).normal(size=(4, 30))
    wanted = np.einsum("ai,ij,aj->a", weights, covariance, weights)
    assert answer_variances(SCHEMA, columns, weights, variances) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("columns", "weight"),
    [
        (("a", "one"), 1),
        (("a", "a"), 1),
        (("a",), 0),
        (("a",), 2),
        (("a",), -1),
        (("a",), float("nan")),
        (("a",), "1e-9"),
    ],
)
def test_a_residual_that_cannot_be_is_refused(columns: tuple[str, ...], weight: object) -> None:
    with pytest.raises(InvalidQuery, match="Nothing was spent"):
        Residual.of(SCHEMA, columns, weight)  # type: ignore[arg-type]


@pytest.mark.parametrize("numerators", [(1,), (1, 2, 3), (1.0, 2.0), (2**21, 0), (5, 5), [0, 1]], ids=str)
def test_weights_made_by_hand_are_held_to_the_same_limits(numerators: object) -> None:
    with pytest.raises(InvalidQuery, match="Nothing was spent"):
        Residual(("a",), (2,), numerators)  # type: ignore[arg-type]


def test_too_many_columns_are_refused() -> None:
    wide = Schema([Integers(f"c{i}", 0, 1) for i in range(11)])
    with pytest.raises(InvalidQuery, match="at most 10 columns"):
        Residual.of(wide, wide.names)


def test_parts_leave_out_a_column_of_one_cell_and_are_all_the_rest() -> None:
    telling = [set(part) for part in parts(SCHEMA, SCHEMA.names)]
    assert telling == [set(chosen) for k in range(4) for chosen in combinations("abc", k)]
