"""Scores are the formulas of the book, in whole numbers, and never wrap, whatever a synopsis believes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from doubles import Rows
from kinds import SQUARE, Believed, mixed

from tacit.domain.grid import Norm
from tacit.domain.query import MOST_UNITS, Counting, Linear, Marginal, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.score import Error, Fit, Function, Hardness, believed
from tacit.domain.workload import Workload, prefixes
from tacit.errors import InvalidQuery

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WORK = Workload((Marginal.over(SQUARE, "b"), Counting.where(SQUARE), Linear.of(SQUARE, "a", np.linspace(0, 1, 5))))


class Constant:
    """A synopsis with the same number in every cell."""

    def __init__(self, number: float, schema: Schema = SQUARE) -> None:
        self.schema, self.number = schema, number

    def project(self, columns: tuple[str, ...]) -> np.ndarray:
        return np.full(self.schema.sizes(columns), self.number)

    def answer(self, query: Query) -> np.ndarray:
        return query(*map(self.project, query.reads))


def truth(work: Workload, codes: np.ndarray) -> tuple[list[np.ndarray], list[Fraction]]:
    """The counts that a query is given, and its exact answers."""
    counts = Rows(SQUARE, codes).counts(work.reads)
    answers = work.on_grid(*counts)
    return counts, [int(unit) * answers.grid for unit in answers.units]


def some_people(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, column.size, 30) for column in SQUARE])


@pytest.mark.parametrize("seed", range(10))
def test_an_error_is_the_distance_of_each_answer(seed: int) -> None:
    work = mixed(SQUARE, np.random.default_rng(seed))
    synopsis = Believed(SQUARE, seed)
    counts, answers = truth(work, some_people(seed))
    said = [int(unit) * work.grid for unit in believed(work, synopsis)]
    apart = [abs(answer - other) for answer, other in zip(answers, said, strict=True)]
    score = Error(work, synopsis).on_grid(*counts)
    assert [int(unit) * score.grid for unit in score.units] == apart
    whole = Error(work, synopsis, whole=True).on_grid(*counts)
    sums = [sum(apart[start:stop]) for start, stop in zip(work.offsets[:-1], work.offsets[1:], strict=True)]
    assert [int(unit) * whole.grid for unit in whole.units] == sums


def test_what_is_believed_is_rounded_to_the_grid_in_public() -> None:
    assert believed(Workload((Marginal.over(SQUARE, "b"),)), Constant(1.6)).tolist() == [2, 2, 2]
    step = Linear.of(SQUARE, "b", [1, 0.5, 0])
    assert believed(Workload((step,)), Constant(1.6)).tolist() == [round(1.6 * 1.5 * 2**20)]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 2.0**62, -(2.0**63)])
def test_a_synopsis_that_believes_no_number_is_refused(number: float) -> None:
    for score in (Error(WORK, Constant(number)), Hardness(WORK, (Constant(number),), 1, 1)):
        with pytest.raises(InvalidQuery, match="synopsis"):
            score.units(*truth(WORK, some_people(0))[0])


def test_no_sum_of_distances_wraps() -> None:
    """Each distance is within 64 bits, and so is their sum: the worst synopsis is the worst, not the best."""
    work = prefixes(SQUARE, "a")
    far = Constant(-(2.0**59))
    scores = Error(work, far, whole=True).units(np.array([5, 0, 0, 0, 0]))
    assert int(scores[0]) > 2**61
    moved = Error(work, far, whole=True).units(np.array([6, 0, 0, 0, 0]))
    assert 0 <= int(moved[0]) - int(scores[0]) <= 5


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_is_minus_the_largest_error(seed: int) -> None:
    work = mixed(SQUARE, np.random.default_rng(seed))
    counts, answers = truth(work, some_people(seed))
    candidates = np.random.default_rng(seed).uniform(-5, 40, (7, work.size))
    score = Fit(work, candidates)
    found = score.on_grid(*counts)
    for row, unit in zip(candidates, found.units, strict=True):
        rounded = [round(Fraction(float(x)) / work.grid) * work.grid for x in row]
        worst = max(abs(answer - x) for answer, x in zip(answers, rounded, strict=True))
        assert abs(int(unit) * found.grid + worst) <= work.grid  # a float may stand at the middle of two steps
    assert score.size == 7
    candidates[:] = 0
    assert np.array_equal(score.on_grid(*counts).units, found.units)  # a copy of its own


def test_many_candidates_are_scored_block_by_block_alike() -> None:
    work = Workload(tuple(Counting.where(SQUARE, {"a": (cell,)}) for cell in range(5)) * 2000)
    counts, _ = truth(work, some_people(1))
    candidates = np.random.default_rng(0).integers(0, 30, (500, work.size))
    fit = Fit(work, candidates).units(*counts)
    assert fit.tolist() == (-np.abs(candidates - work.units(*counts)).max(axis=1)).tolist()


@pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 10), Fraction(1, 2**20)])
@pytest.mark.parametrize(("lam", "mu"), [(0, 1), (2, 3), (0.5, 7), (10, 0.001)])
def test_hardness_is_minus_the_sum_of_clipped_errors(lam: float, mu: float, grid: Fraction) -> None:
    """a = clip(1 - 2 (d - lambda) / mu, -1, 1), up to one step of the grid; checked against exact fractions."""
    synopses = tuple(Believed(SQUARE, seed) for seed in range(3))
    score = Hardness(WORK, synopses, lam, mu, grid)
    counts, answers = truth(WORK, some_people(2))
    found = score.on_grid(*counts)
    for place, answer in enumerate(answers):
        total = Fraction(0)
        for synopsis in synopses:
            distance = abs(answer - int(believed(WORK, synopsis)[place]) * WORK.grid)
            agreed = 1 - 2 * (distance - Fraction(score.lam)) / Fraction(score.mu)
            total -= min(max(agreed, Fraction(-1)), Fraction(1))
        assert 0 <= total - int(found.units[place]) * grid < 3 * grid
    assert all(abs(unit) <= 3 / grid for unit in found.units)


def test_hardness_is_least_where_all_agree_and_most_where_none_does() -> None:
    counts, _ = truth(WORK, some_people(3))
    near = Hardness(WORK, (Constant(10),), 10**6, 1)
    far = Hardness(WORK, (Constant(10**9),), 1, 1)
    assert set(near.on_grid(*counts).units.tolist()) == {-(2**20)}
    assert set(far.on_grid(*counts).units.tolist()) == {2**20}


def test_the_sensitivity_of_hardness_is_never_more_than_its_whole_span() -> None:
    synopses = (Constant(1), Constant(2))
    assert Hardness(WORK, synopses, 1, Fraction(1, 10)).sensitivity(Norm.LINF, ADD) == 4
    exact = Hardness(WORK, synopses, 1, 100, Fraction(1, 2**20)).sensitivity(Norm.LINF, ADD)
    assert exact == 2 * (Fraction(2, 100) + Fraction(1, 2**20))


def test_hardness_does_not_wrap_at_the_largest_mu() -> None:
    whole = Workload((Counting.where(SQUARE),))
    most = MOST_UNITS // 2**21
    score = Hardness(whole, (Constant(0),), 0, most)
    for people in (0, 1, most // 2, most, 2**40):
        expected = -max(-(2**20), 2**20 - 2 * 2**20 * min(people, most) // most)
        assert int(score.units(np.array(people))[0]) == expected
    with pytest.raises(InvalidQuery, match="coarser grid"):
        Hardness(whole, (Constant(0),), 0, most + 1)
    assert Hardness(whole, (Constant(0),), 0, most + 1, Fraction(1, 2**10)).mu == most + 1


def test_the_grid_of_hardness_is_kept_as_a_fraction() -> None:
    score = Hardness(WORK, (Constant(1),), 1, 1, "0.25")  # type: ignore[arg-type]
    assert score.grid == Fraction(1, 4)
    assert score.units(*[np.ones(SQUARE.sizes(columns), dtype=np.int64) for columns in score.reads]).dtype == np.int64
    for wrong in (0, "0", "0.3", -1):
        with pytest.raises(InvalidQuery, match="grid"):
            Hardness(WORK, (Constant(1),), 1, 1, wrong)  # type: ignore[arg-type]


def test_a_synopsis_with_too_few_answers_is_refused_before_it_costs() -> None:
    class Short:
        def answer(self, query: Query) -> np.ndarray:
            return np.zeros(1)

    for score in (Error(WORK, Short()), Hardness(WORK, (Constant(1), Short()), 1, 1)):
        with pytest.raises(InvalidQuery, match="Nothing was drawn"):
            score.check(SQUARE)


def test_a_score_asks_for_the_columns_of_its_workload() -> None:
    for score in (Error(WORK, Constant(1)), Hardness(WORK, (Constant(1),), 1, 1), Fit(WORK, np.zeros((2, WORK.size)))):
        assert score.reads == WORK.reads
        score.check(SQUARE)
        assert not score.monotone(ADD)
        with pytest.raises(InvalidQuery):
            score.check(Schema([*SQUARE.columns[1:], SQUARE["a"].__class__("a", 0, 9)]))  # type: ignore[call-arg]


@pytest.mark.parametrize("grid", ["1", "1/3", "0.1", "1e-6", "1024"])
def test_a_function_is_rounded_to_its_grid_and_clipped_in_its_range(grid: str) -> None:
    for value in (0.0, 1.0, -2.5, 1e6 / 3, 1e300, -1e300):
        query = Function.of(SQUARE, "b", lambda _, v=value: v, sensitivity=1, neighbors=ADD, grid=grid)
        unit = int(query.on_grid(np.ones(3, dtype=np.int64)).units[0])
        exact = min(max(Fraction(value) / query.grid, -Fraction(2**50)), Fraction(2**50))
        assert abs(unit - exact) <= Fraction(3, 4)


def test_two_roundings_of_a_function_are_within_its_claim() -> None:
    """The division by a grid that is no power of two is itself rounded; near the end of the range by quarter steps."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        value = float(rng.uniform(0, 2.0**50 / 3))
        moved = float(rng.uniform(0, 2))
        query = Function.of(
            SQUARE, "b", lambda c, v=value, m=moved: v + m * c[0], sensitivity=2, neighbors=ADD, grid="1/3"
        )
        here, there = (int(query.on_grid(np.array([people, 0, 0])).units[0]) for people in (0, 1))
        real = Fraction(value + moved) - Fraction(value)  # what the author's floats did
        assert abs(there - here) * query.grid <= abs(real) + 2 * query.grid


def test_a_function_sees_the_counts_in_the_shape_of_its_columns() -> None:
    seen = []

    def watch(counts: np.ndarray) -> float:
        seen.append(counts.shape)
        return 0.0

    query = Function.of(SQUARE, ("b", "c"), watch, sensitivity=1, neighbors=REPLACE)
    query.on_grid(np.arange(6))
    assert seen == [(3, 2)]
    assert query.sensitivity(Norm.L2, REPLACE) == 1 + 2 * query.grid
