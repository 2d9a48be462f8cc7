"""Many queries in one line: all their answers, in order, on one grid, in reasonable time."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from doubles import Rows
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import LINEAR, SQUARE, mixed, random_schema

from tacit.domain.boxes import MOST_BOXES, MOST_COLUMNS, Boxes, runs
from tacit.domain.grid import Norm
from tacit.domain.parity import Parity
from tacit.domain.query import MOST_UNITS, Counting, Linear, LinearQuery, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Function
from tacit.domain.workload import (
    Workload,
    common,
    conjunctions,
    marginals,
    parities,
    predicates,
    prefixes,
    ranges,
)
from tacit.errors import InvalidQuery

ADD = Neighbors.ADD_REMOVE


def people(schema: Schema, rng: np.random.Generator, rows: int = 200) -> Rows:
    return Rows(schema, np.column_stack([rng.integers(0, column.size, rows) for column in schema]))


@pytest.mark.parametrize("kind", [kind for kind, (cls, _) in LINEAR.items() if cls is Workload])
def test_a_workload_answers_as_its_queries_do_one_after_the_other(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        schema = random_schema(rng, least=2)
        work = LINEAR[kind][1](schema, rng)
        assert isinstance(work, Workload)
        table = people(schema, rng)
        answers = work.on_grid(*table.counts(work.reads))
        alone = [query.on_grid(*table.counts(query.reads)) for query in work.queries]
        exact = [int(unit) * answer.grid for answer in alone for unit in answer.units]
        assert [int(unit) * answers.grid for unit in answers.units] == exact
        assert work.size == len(exact) == int(work.offsets[-1])
        # the same over numbers of any kind, as a synopsis has them
        halves = work(*[counts / 2 for counts in table.counts(work.reads)])
        assert np.allclose(halves, np.array([float(answer) for answer in exact]) / 2)


def test_workloads_join_flat_and_can_be_taken_apart() -> None:
    work = marginals(SQUARE, 1) + (ranges(SQUARE, "a", by="b") + Counting.where(SQUARE))
    assert [type(query).__name__ for query in work.queries] == ["Marginal"] * 4 + ["Ranges", "Counting"]
    assert len(work) == 6
    assert work[0] == Marginal.over(SQUARE, "a")
    assert work[np.int64(-1)] == Counting.where(SQUARE)
    assert work[[5, 0, 0]].queries == (Counting.where(SQUARE), work[0], work[0])  # type: ignore[attr-defined]
    assert work[1:3].queries == work.queries[1:3]  # type: ignore[attr-defined]
    assert list(work) == list(work.queries)  # type: ignore[call-overload]
    assert str(work) == "Workload(6 queries, 58 answers: Marginal, Ranges, Counting)"
    with pytest.raises(IndexError):
        work[6]


def test_what_is_read_is_read_once() -> None:
    work = Workload((*marginals(SQUARE, 2).queries, *conjunctions(SQUARE, 2).queries, Marginal.over(SQUARE, "a")))
    assert len(work.reads) == comb(4, 2) + 1


def test_marginals_and_conjunctions_are_over_every_column_set() -> None:
    for k in (1, 2, 3, 4):
        for make in (marginals, conjunctions):
            work = make(SQUARE, k)
            assert [query.reads for query in work.queries] == [(names,) for names in combinations(SQUARE.names, k)]


def test_parities_are_over_columns_of_two_cells_only() -> None:
    assert [query.columns for query in parities(SQUARE, 1).queries] == [("c",), ("yes",)]  # type: ignore[attr-defined]
    assert [query.columns for query in parities(SQUARE, 2).queries] == [("c", "yes")]  # type: ignore[attr-defined]
    with pytest.raises(InvalidQuery, match="between 1 and 2"):
        parities(SQUARE, 3)


def test_the_common_grid_is_the_coarsest_that_holds_every_part() -> None:
    assert common({Fraction(1), Fraction(1, 4)}) == Fraction(1, 4)
    assert common({Fraction(1, 6), Fraction(1, 4)}) == Fraction(1, 12)
    assert common({Fraction(3, 2), Fraction(9, 4)}) == Fraction(3, 4)
    real = Linear.of(SQUARE, "a", np.linspace(0, 1, 5))
    assert Workload((real, Counting.where(SQUARE))).grid == real.grid
    assert Workload((Marginal.over(SQUARE, "a"), Counting.where(SQUARE))).grid == 1


def test_grids_that_would_not_fit_together_are_refused_in_public() -> None:
    def one(grid: Fraction) -> Function:
        return Function.of(SQUARE, "a", np.max, sensitivity=1, neighbors=ADD, grid=grid)

    assert Workload((one(Fraction(1, 3)), Counting.where(SQUARE))).grid == Fraction(1, 3)
    for grids in ((Fraction(1, 10**9), Fraction(1)), (Fraction(1, 3**20), Fraction(1, 2**20))):
        with pytest.raises(InvalidQuery, match="grids"):
            Workload((one(grids[0]), one(grids[1])))


def test_grids_of_which_the_common_one_would_clip_the_people_there_can_be_are_refused() -> None:
    one, other = (Linear(("c",), (2,), np.array([1, steps]), Fraction(1, steps)) for steps in (2**22, 2**22 - 1))
    with pytest.raises(InvalidQuery, match="grids"):
        Workload((one, other))
    near = Linear(("c",), (2,), np.array([1, 3]), Fraction(1, 3))
    assert Workload((one,)).grid == Fraction(1, 2**22)
    many = Workload((Counting.where(SQUARE), near)).on_grid(np.array(2**40), np.array([0, 2**40]))
    assert many.units.tolist() == [3 * 2**40, 3 * 2**40]


def test_no_answer_wraps_when_grids_are_brought_together() -> None:
    """A function may return anything; in finer steps it is clipped, which moves no two answers further apart."""
    for returned in (1e300, -1e300, 2.0**49, float("inf")):
        loud = Function.of(SQUARE, "a", lambda _, r=returned: r, sensitivity=1, neighbors=ADD, grid=1)
        work = Workload((loud, Linear.of(SQUARE, "a", np.linspace(0, 1, 5))))
        answer = int(work.on_grid(np.ones(5, dtype=np.int64)).units[0])
        assert abs(answer) <= MOST_UNITS
        assert np.sign(answer) == np.sign(returned)


def test_a_query_asked_twice_is_counted_twice() -> None:
    twice = Workload((Marginal.over(SQUARE, "b"), Marginal.over(SQUARE, "b")))
    for neighbors, moved in ((ADD, 2), (Neighbors.REPLACE_ONE, 4)):
        assert twice.sensitivity(Norm.L1, neighbors) == moved
        assert twice.sensitivity(Norm.LINF, neighbors) == 1
        assert moved <= twice.sensitivity(Norm.L2, neighbors) ** 2 <= moved * (1 + Fraction(1, 2**40))


def test_sums_over_one_column_set_are_bounded_by_the_heaviest_cell() -> None:
    """A hundred disjoint counts are a histogram, in whatever words: sensitivity 1, not 100."""
    schema = Schema([Integers("age", 0, 99)])
    disjoint = predicates(schema, [f"age = {age}" for age in range(100)])
    assert disjoint.sensitivity(Norm.L1, ADD) == 1
    assert disjoint.sensitivity(Norm.L1, Neighbors.REPLACE_ONE) == 2
    nested = predicates(schema, [f"age >= {age}" for age in range(1, 100)])
    assert nested.sensitivity(Norm.L1, ADD) == 99
    assert nested.sensitivity(Norm.L1, Neighbors.REPLACE_ONE) == 99  # not 198: each moves by 1 at most
    assert nested.sensitivity(Norm.LINF, ADD) == 1


def test_a_subclass_is_not_taken_for_what_it_extends() -> None:
    class Double(Counting):
        def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
            return Fraction(2)

    one = Double(("c",), (2,), ((0,),))
    other = Counting.where(SQUARE, {"c": (1,)})
    assert Workload((one, other)).sensitivity(Norm.L1, ADD) == 3


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(0, 5))
def test_boxes_count_what_the_queries_count(seed: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema([Integers(name, 0, int(rng.integers(0, 5))) for name in "abcde"])
    names = schema.names[:columns]
    queries = [
        Counting.where(schema, {n: [c for c in range(schema[n].size) if rng.random() < 0.5] for n in names})
        for _ in range(10)
    ]
    counts = rng.integers(0, 10**9, schema.sizes(names))
    expected = [int(query.units(counts)[0]) for query in queries]
    assert Boxes.of(queries).units(counts).tolist() == expected
    assert Workload(tuple(queries)).units(counts).tolist() == expected
    assert np.allclose(Boxes.of(queries).units(counts / 3), np.array(expected) / 3)


def test_a_query_of_many_boxes_or_columns_is_answered_by_itself() -> None:
    schema = Schema([Integers(name, 0, 99) for name in "ab"] + [Categories(name, (0, 1)) for name in "cdef"])
    striped = Counting.where(schema, {"a": range(0, 100, 2)})
    deep = Counting.where(schema, dict.fromkeys("abcde"[: MOST_COLUMNS + 1], (0,)))
    assert len(runs(striped.chosen[0])) == 50 > MOST_BOXES
    assert not Boxes.fits(striped)
    assert not Boxes.fits(deep)
    assert Boxes.fits(Counting.where(schema, {"a": (1, 2, 5), "b": range(9)}))
    table = people(schema, np.random.default_rng(0))
    work = Workload((striped, deep, striped))
    assert work.on_grid(*table.counts(work.reads)).units.tolist() == [
        int(query.units(*table.counts(query.reads))[0]) for query in (striped, deep, striped)
    ]


def test_predicates_are_answered_in_their_order_and_a_wrong_one_is_named_by_its_place() -> None:
    work = predicates(SQUARE, iter(["a = 0", "a = 0 or yes = 'no'", "true", "false"]))
    table = people(SQUARE, np.random.default_rng(0))
    zero, no = table.codes[:, 0] == 0, table.codes[:, 3] == 0
    answers = work.on_grid(*table.counts(work.reads)).units
    assert answers.tolist() == [zero.sum(), (zero | no).sum(), 200, 0]
    with pytest.raises(InvalidQuery, match=r"^predicate 3: .* character 5"):
        predicates(SQUARE, ["a = 0", "a = 1", "a = ?", "b = ?"])


def test_predicates_that_are_no_conjunctions_have_a_limit_in_all() -> None:
    schema = Schema([Integers("x", 0, 999), Integers("y", 0, 999)])
    with pytest.raises(InvalidQuery, match="weigh"):
        predicates(schema, [f"x = {x} or y = 0" for x in range(100)])


def within(seconds: float, started: float) -> bool:
    return time.process_time() - started < seconds


def test_all_3_way_marginals_of_15_columns_take_a_moment() -> None:
    schema = Schema([Integers(f"c{place}", 0, 31) for place in range(15)])
    started = time.process_time()
    work = marginals(schema, 3)
    assert (len(work), work.size) == (455, 455 * 32**3)
    counts = np.ones((32, 32, 32), dtype=np.int64)
    assert int(work.on_grid(*[counts] * 455).units.sum()) == work.size
    assert work.sensitivity(Norm.L1, ADD) == 455
    assert within(5, started)  # 0.3 s alone; the rest is for a busy machine


def test_all_ranges_of_a_thousand_cells_take_a_moment() -> None:
    started = time.process_time()
    work = ranges(Schema([Integers("x", 0, 999), Categories("sex", ("F", "M"))]), "x", by="sex")
    assert work.size == 2 * 500_500
    answers = work.on_grid(np.ones((2, 1000), dtype=np.int64)).units
    assert int(answers.sum()) == 2 * sum(length * (1001 - length) for length in range(1, 1001))
    assert work.sensitivity(Norm.L1, ADD) == 1001**2 // 4
    assert (
        prefixes(Schema([Integers("x", 0, 10**6 - 1)]), "x").on_grid(np.ones(10**6, dtype=np.int64)).units[-1] == 10**6
    )
    assert within(5, started)  # 0.1 s alone


def test_a_hundred_thousand_counting_queries_take_a_moment() -> None:
    schema = Schema([Integers("age", 0, 99), Categories("sex", ("F", "M", "X")), Integers("score", 0, 9)])
    rng = np.random.default_rng(0)
    low, high = np.sort(rng.integers(0, 100, (2, 100_000)), axis=0)
    cells = [(0,), (0, 2), (0, 1, 2), ()]
    started = time.process_time()
    work = Workload(
        tuple(
            Counting.where(schema, {"age": range(a, b + 1), "sex": cells[a % 4]})
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        )
    )
    counts = rng.integers(0, 1000, (100, 3))
    answers = work.on_grid(counts).units
    again = time.process_time()
    assert np.array_equal(work.on_grid(counts).units, answers)
    assert within(1, again)  # 0.01 s alone: what was planned once is not planned again
    assert work.sensitivity(Norm.L1, ADD) > 10_000
    assert work.sensitivity(Norm.L2, ADD) ** 2 < work.sensitivity(Norm.L1, ADD) * (1 + Fraction(1, 10**9))
    assert within(15, started)  # 2 s alone
    for place in range(0, 100_000, 9973):
        a, b = int(low[place]), int(high[place])
        assert int(answers[place]) == int(counts[a : b + 1, list(cells[a % 4])].sum())


def test_the_mixture_of_everything_is_still_linear() -> None:
    rng = np.random.default_rng(5)
    work = mixed(SQUARE, rng) + Parity.over(SQUARE, "c")
    tables = [rng.integers(0, 50, SQUARE.sizes(columns)) for columns in work.reads]
    others = [rng.integers(0, 50, SQUARE.sizes(columns)) for columns in work.reads]
    both = work.units(*[one + other for one, other in zip(tables, others, strict=True)])
    assert np.array_equal(both, work.units(*tables) + work.units(*others))
    assert all(isinstance(query, LinearQuery) for query in work.queries)
