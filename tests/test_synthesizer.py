"""The synthesizer: its vectors, its optimum against every point of a grid, its roundings, its two solvers."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from kinds import LINEAR, random_schema

from tacit.domain.grid import Norm
from tacit.domain.query import Counting, Linear, LinearQuery, Marginal
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.single import single
from tacit.domain.synopsis import Histogram
from tacit.domain.workload import Workload, conjunctions, parities, predicates
from tacit.errors import InvalidInput, InvalidParameter, InvalidQuery
from tacit.mechanisms.distinct import Distinct
from tacit.mechanisms.generalisation import subsample_rows
from tacit.mechanisms.synthesizer import MOST_CELLS, PROGRAM, WEIGHTS, Synthesis, synthesize

THREE = Schema([Integers("x", 0, 2)])
ENDS = predicates(THREE, ["x = 0", "x = 2"])
BINARY = Schema([Integers(name, 0, 1) for name in "abcdefgh"])


def some(count: int, seed: int) -> tuple[Workload, np.ndarray]:
    """Three-way conjunctions over eight binary columns, and noisy answers of 1,000 people to them."""
    rng = np.random.default_rng(seed)
    every = conjunctions(BINARY, 3)
    work = Workload(tuple(single(every, int(place)) for place in rng.choice(every.size, count, replace=False)))
    people = Histogram(BINARY, rng.multinomial(1000, rng.dirichlet(np.full(256, 0.1))).reshape((2,) * 8))
    return work, people.answer(work) + rng.normal(0, 30, count)


@pytest.mark.parametrize("solver", ["program", "weights"])
@pytest.mark.parametrize(("answers", "least"), [((0.52, 0.19), 0.0), ((0.7, 0.5), 0.1)])
def test_the_least_violation_is_that_of_the_vectors(solver: str, answers: tuple[float, float], least: float) -> None:
    """D6."""
    found = synthesize(THREE, ENDS, np.array(answers), 1, solver=solver, steps=2000)
    assert found.violation == pytest.approx(least, abs=1e-9 if solver == "program" else 1e-3)
    assert np.abs(found.answer(ENDS) - answers).max() == pytest.approx(found.violation, abs=1e-12)
    assert found.total == pytest.approx(1)
    assert float(found.people.min()) >= 0


def test_it_says_which_solver_was_used() -> None:
    assert synthesize(THREE, ENDS, np.array([1, 1]), 2).solver == PROGRAM
    assert synthesize(THREE, ENDS, np.array([1, 1]), 2, solver="weights").solver == WEIGHTS
    assert synthesize(THREE, ENDS, np.array([1, 1]), 2, most_nonzeros=1).solver == WEIGHTS
    with pytest.raises(InvalidParameter, match="2 non-zeros; 1 are allowed"):
        synthesize(THREE, ENDS, np.array([1, 1]), 2, solver="program", most_nonzeros=1)


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_grid_does_better_than_the_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema([Integers("x", 0, 3)])
    weights = rng.random((4, 4)).round(2)
    work = Workload(tuple(Linear.of(schema, ("x",), row) for row in weights))
    answers = rng.random(4)
    found = synthesize(schema, work, answers, 1)
    exactly = np.stack([query.weights()[0] * float(query.grid) for query in work.queries])
    parts = 40
    points = np.array([p for p in product(range(parts + 1), repeat=3) if sum(p) <= parts]) / parts
    points = np.column_stack((points, 1 - points.sum(axis=1)))
    on_grid = np.abs(points @ exactly.T - answers).max(axis=1).min()
    assert found.violation <= on_grid + 1e-9
    assert found.violation >= on_grid - 3 / parts  # some point of the grid is so near in every cell
    near = synthesize(schema, work, answers, 1, solver="weights", steps=3000)
    assert found.violation - 1e-7 <= near.violation <= found.violation + 2e-3
    assert near.violation - near.gap <= found.violation + 1e-7  # its lower bound is one


@pytest.mark.parametrize("seed", range(3))
def test_multiplicative_weights_bracket_the_optimum(seed: int) -> None:
    work, answers = some(120, seed)
    exactly = synthesize(BINARY, work, answers, 1000)
    near = synthesize(BINARY, work, answers, 1000, solver="weights")
    assert exactly.violation > 1  # the answers contradict each other
    assert exactly.gap < 1e-4
    assert near.violation - near.gap <= exactly.violation + 1e-4 <= near.violation + 2e-4
    assert near.violation <= exactly.violation + 5
    assert np.count_nonzero(exactly.people) <= 121  # a vertex
    further = synthesize(BINARY, work, answers, 1000, solver="weights", steps=25)
    assert further.violation > near.violation


def test_all_answers_within_alpha_make_all_answers_within_two_alpha() -> None:
    rng = np.random.default_rng(1)
    people = Histogram(BINARY, rng.multinomial(1000, np.full(256, 1 / 256)).reshape((2,) * 8))
    work, _ = some(150, 1)
    found = synthesize(BINARY, work, people.answer(work) + rng.uniform(-20, 20, 150), 1000)
    assert found.violation <= 20
    assert np.abs(found.answer(work) - people.answer(work)).max() <= 40


def test_a_query_that_was_answered_twice_has_two_answers_to_meet() -> None:
    twice = Workload((ENDS, ENDS.queries[0]))
    found = synthesize(THREE, twice, np.array([30, 10, 40]), 100)
    assert found.violation == pytest.approx(5)
    assert found.project(("x",))[0] == pytest.approx(35)
    assert len(Distinct.of(THREE, twice).queries) == 2


@pytest.mark.parametrize("kind", LINEAR)
def test_queries_over_classes_answer_as_over_the_universe(kind: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(4):
        schema = random_schema(rng, least=2)
        query = LINEAR[kind][1](schema, rng)
        work = query if isinstance(query, Workload) else Workload((query,))
        try:
            distinct = Distinct.of(schema, work)
        except InvalidQuery:  # a signed sum of several answers is no list of counts
            assert any(isinstance(part, LinearQuery) and part.weights().min() < 0 for part in work.queries)
            continue
        cells = np.arange(distinct.cells)
        masses = rng.random(distinct.cells)
        spread = Synthesis(distinct, cells, masses, WEIGHTS, 0, 0)
        table = spread.histogram()
        answers = distinct.answers(masses)[distinct.which]
        assert answers == pytest.approx(table.answer(work))
        assert answers == pytest.approx(spread.answer(work))
        sparse = Synthesis(distinct, cells[1:], masses[1:], PROGRAM, 0, 0)
        assert sparse.answer(work) == pytest.approx(sparse.histogram().answer(work))
        listed = distinct.listed(cells)
        assert listed.answers(masses) == pytest.approx(distinct.answers(masses))
        prices = rng.normal(size=len(distinct.queries))
        assert distinct.scores(prices) == pytest.approx(listed.scores(prices))
        assert masses @ listed.scores(prices) == pytest.approx(prices @ listed.answers(masses))
        assert distinct.sharers().sum() == pytest.approx(1)
        columns = np.zeros((len(distinct.queries), distinct.cells))
        columns[listed.query, listed.cell] = listed.weight
        kept = distinct.told_apart()
        assert len(np.unique(columns.T, axis=0)) == len(kept) == len(np.unique(columns[:, kept].T, axis=0))
        for names in (schema.names, schema.names[::-1], schema.names[:1], ()):
            assert spread.project(names) == pytest.approx(table.project(names))


def test_a_universe_of_10_to_the_20_is_as_small_as_its_queries_see_it() -> None:
    schema = Schema([Integers(f"c{place:02d}", 0, 9) for place in range(20)])
    work = predicates(schema, ["c00 < 5 and c07 = 3", "c07 >= 3", "c19 = 1 or c00 < 2"])
    found = synthesize(schema, work, np.array([10, 50, 20]), 100)
    assert found.distinct.sizes == (3, 3, 2)
    assert found.violation == pytest.approx(0, abs=1e-6)
    assert found.project(("c05", "c07")).sum() == pytest.approx(100)
    rows = found.rounded(1000, seed=0)
    assert rows.answer(work) == pytest.approx([10, 50, 20], abs=0.5)
    assert len(np.unique(rows.codes[:, 5])) == 10  # a column that nobody asked about


def test_rounding_down_moves_counts_by_alpha_and_not_by_alpha_over_the_universe() -> None:
    """E37: the book's bound is alpha/|X| for each count."""
    work, answers = some(120, 0)
    found = synthesize(BINARY, work, answers, 1000)
    alpha = 0.05
    rows = found.rounded_down(alpha, seed=0)
    lost = 1 - rows.total / 1000
    assert 0 < lost <= alpha
    fell = found.project(BINARY.names) - rows.project(BINARY.names)
    assert -1e-9 < fell.min() <= fell.max() < alpha * 1000 / (len(found.support) + 1) + 1e-9
    every = conjunctions(BINARY, 3)
    change = found.answer(every) - rows.answer(every)
    assert alpha / 256 * 1000 < change.max() <= alpha * 1000  # some count moves further than the book's bound
    renormalised = rows.answer(every) / (1 - lost)
    assert np.abs(renormalised - found.answer(every)).max() <= alpha / (1 - alpha) * 1000
    assert len(rows) <= (len(found.support) + 1) / alpha


@pytest.mark.parametrize("rows", [150, 1000, 20_000])
def test_the_largest_remainder_moves_no_count_by_more_than_a_quarter_of_a_row_a_cell(rows: int) -> None:
    work, answers = some(120, 2)
    found = synthesize(BINARY, work, answers, 1000)
    table = found.rounded(rows, seed=3)
    assert len(table) == rows
    assert table.total == pytest.approx(1000)
    moved = table.project(BINARY.names) - found.project(BINARY.names)
    assert np.maximum(moved, 0).sum() <= len(found.support) / (4 * rows) * 1000 + 1e-9
    assert np.abs(moved).max() <= 1000 / rows + 1e-9
    assert np.array_equal(table.codes, found.rounded(rows, seed=3).codes)


@pytest.mark.parametrize(("share", "often"), [(1, False), (0.1, True)])
def test_so_many_sampled_rows_keep_all_queries_within_alpha(share: float, often: bool) -> None:
    """400 samples at beta = 0.3: 175 failures are six standard errors above; a tenth of the rows has more."""
    work, answers = some(40, 4)
    found = synthesize(BINARY, work, answers, 1000)
    rows, said = round(share * subsample_rows(40, 0.3, 0.1)), found.answer(work)
    failures = sum(np.abs(found.sampled(rows, seed).answer(work) - said).max() > 100 for seed in range(400))
    assert bool(failures > 175) is often


def test_sampled_rows_follow_the_synthesis() -> None:
    found = synthesize(THREE, ENDS, np.array([50, 20]), 100, solver="weights")
    counts = found.sampled(200_000, 0).project(("x",)) * 2000
    expected = found.project(("x",)) * 2000
    assert ((counts - expected) ** 2 / expected).sum() < 35  # chi-square of two degrees: 2.5e-8
    assert ((counts - expected * [0.97, 1.03, 1.075]) ** 2 / expected).sum() > 35


def test_without_scipy_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    for solver in ("best", "program"):
        with pytest.raises(InvalidParameter, match=r"pip install 'tacit\[lp\]'; or say solver='weights'"):
            synthesize(THREE, ENDS, np.array([1, 1]), 2, solver=solver)
    assert synthesize(THREE, ENDS, np.array([1, 1]), 2, solver="weights").solver == WEIGHTS


def test_signed_counts_are_synthesized_as_well() -> None:
    signs = parities(BINARY, 1)
    found = synthesize(BINARY, signs, np.full(signs.size, -40.0), 100)
    assert found.answer(signs) == pytest.approx(np.full(signs.size, -40.0))
    assert signs.sensitivity(Norm.LINF, Neighbors.ADD_REMOVE) == 1


def test_what_cannot_be_synthesized_is_refused() -> None:
    ok = np.array([1.0, 2.0])
    with pytest.raises(InvalidParameter, match="2 answers need as many finite numbers"):
        synthesize(THREE, ENDS, np.array([1.0, np.nan]), 10)
    with pytest.raises(InvalidParameter, match="2 answers"):
        synthesize(THREE, ENDS, np.array([1.0]), 10)
    for total in (0, -1):
        with pytest.raises(InvalidParameter, match="positive"):
            synthesize(THREE, ENDS, ok, total)
    with pytest.raises(InvalidParameter, match="a solver is"):
        synthesize(THREE, ENDS, ok, 10, solver="simplex")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="steps"):
        synthesize(THREE, ENDS, ok, 10, steps=0)
    with pytest.raises(InvalidInput):
        synthesize(BINARY, ENDS, ok, 10)
    wide = Schema([Integers(f"c{place}", 0, 99) for place in range(4)])
    corner = [Marginal.over(wide, name) for name in wide.names]
    with pytest.raises(InvalidQuery, match=f"tell {100**4} cells apart; a synthesizer takes {MOST_CELLS}"):
        synthesize(wide, Workload(tuple(corner)), np.zeros(400), 10)
    found = synthesize(THREE, ENDS, ok, 10)
    for alpha in (0, 1, -0.1, "1e-9"):
        with pytest.raises(InvalidParameter, match="alpha"):
            found.rounded_down(alpha, 0)
    for rows in (0, 10**9):
        with pytest.raises(InvalidParameter):
            found.rounded(rows, 0)
        with pytest.raises(InvalidParameter):
            found.sampled(rows, 0)


def test_a_workload_that_asks_nothing_of_the_columns_has_one_cell() -> None:
    everybody = Counting.where(THREE)
    found = synthesize(THREE, everybody, np.array([12.0]), 10)
    assert found.violation == pytest.approx(2)
    assert found.project(("x",)) == pytest.approx(np.full(3, 10 / 3))
    assert synthesize(THREE, everybody, np.array([12.0]), 10, solver="weights").violation == pytest.approx(2)
