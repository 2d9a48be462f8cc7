"""Every query answers what its matrix says, in whole numbers, and no query can be made that another would refuse."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from doubles import Rows
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import LINEAR, SQUARE, random_schema

from tacit.domain.grid import FINEST_GRID, Norm, OnGrid
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.parity import Parity
from tacit.domain.query import LONGEST_SAID, MOST_PEOPLE, Counting, Linear, LinearQuery, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Error
from tacit.domain.workload import Workload, marginals
from tacit.errors import InvalidParameter, InvalidQuery, InvalidSchema

KINDS = [kind for kind, (cls, _) in LINEAR.items() if issubclass(cls, LinearQuery)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_the_matrix_times_the_counts(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        schema = random_schema(rng, least=2 if kind == "Residual" else 1)
        query = LINEAR[kind][1](schema, rng)
        assert isinstance(query, LinearQuery)
        counts = rng.integers(0, 10**6, query.sizes)
        by_matrix = query.weights() @ counts.reshape(-1)
        assert query.weights().shape == (query.size, query.cells)
        assert np.array_equal(query.units(counts), by_matrix)
        assert np.array_equal(query.on_grid(counts).units, by_matrix)
        assert np.allclose(query(counts), by_matrix * float(query.grid))
        # a synopsis has counts of any kind
        assert np.allclose(query.units(counts / 7), by_matrix / 7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_sums_over_people(kind: str) -> None:
    """Of the weight of each person's cell, found by walking through the rows, and through nothing else."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        schema = random_schema(rng, least=2)
        query = LINEAR[kind][1](schema, rng)
        assert isinstance(query, LinearQuery)
        people = np.column_stack([rng.integers(0, column.size, 50) for column in schema])
        total = np.zeros(query.size, dtype=np.int64)
        for person in people:
            cell = 0
            for name, size in zip(query.columns, query.sizes, strict=True):
                cell = cell * size + int(person[schema.names.index(name)])
            total += query.weights()[:, cell]
        assert np.array_equal(query.on_grid(*Rows(schema, people).counts(query.reads)).units, total)


def test_prefixes_and_ranges_are_in_the_order_that_they_say() -> None:
    counts = np.array([[1, 20, 300], [4, 50, 600]])
    schema = Schema([Categories("sex", ("F", "M")), Integers("age", 0, 2)])
    assert Prefixes.over(schema, "age").units(counts[0]).tolist() == [1, 21, 321]
    query = Ranges.over(schema, "age", by="sex")
    assert query.columns == ("sex", "age")
    assert query.units(counts).tolist() == [1, 21, 321, 20, 320, 300, 4, 54, 654, 50, 650, 600]
    first, last = query.ends
    assert list(zip(first, last, strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def test_a_parity_is_even_less_odd() -> None:
    query = Parity.over(SQUARE, "c", "yes")
    assert query.units(np.array([[1, 20], [300, 4000]])).tolist() == [1 - 20 - 300 + 4000]


def test_without_conditions_everybody_is_counted() -> None:
    everybody = Counting.where(SQUARE)
    assert everybody.columns == ()
    assert everybody.units(np.array(17)).tolist() == [17]
    assert everybody.weights().tolist() == [[1]]
    assert str(everybody) == "count where true"


def test_equal_choices_of_cells_make_equal_queries() -> None:
    same = [
        Counting.where(SQUARE, {"a": cells}) for cells in ((1, 2, 3), [3, 1, 2, 2], range(1, 4), np.array([1, 2, 3]))
    ]
    assert len(set(same)) == 1
    assert same[0].chosen == (range(1, 4),)
    assert Counting.where(SQUARE, {"a": (0, 2)}).chosen == ((0, 2),)
    assert Counting.where(SQUARE, {"a": ()}) == Counting.where(SQUARE, {"a": range(4, 2)})
    # nor can a cell be chosen twice by hand: it would count a person twice at sensitivity 1
    assert Counting(("a",), (5,), ((2, 2, 2),)).units(np.ones(5, dtype=np.int64)).tolist() == [1]


def test_equal_weights_make_equal_queries() -> None:
    one, same = (Linear.of(SQUARE, "a", [0, 1, 0.5, 0, 1]) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != Linear.of(SQUARE, "a", [0, 1, 0.25, 0, 1])
    assert one != Linear.of(SQUARE, ("b", "c"), [0, 1, 0.5, 0, 1, 0])
    assert one != "one"


def test_weights_of_0_and_1_keep_the_answers_whole() -> None:
    assert Linear.of(SQUARE, "a", [0, 1, 1, 0, True]).grid == 1
    assert Linear.of(SQUARE, "a", [0, 1, 1, 0, 0.5]).grid == Fraction(1, 2**20)
    exact = Linear.of(SQUARE, "b", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
    assert exact.numerators.tolist() == [2**18, 2**19, 2**20]


@given(st.lists(st.floats(0, 1), min_size=5, max_size=5))
def test_a_real_weight_is_rounded_to_the_nearest_step_once(weights: list[float]) -> None:
    query = Linear.of(SQUARE, "a", weights)
    used = [int(number) * query.grid for number in query.numerators]
    assert all(abs(Fraction(weight) - step) <= query.grid / 2 for weight, step in zip(weights, used, strict=True))
    assert query.sensitivity(Norm.L1, Neighbors.ADD_REMOVE) == max(*used, query.grid)


def test_a_query_without_weight_has_a_sensitivity_all_the_same() -> None:
    for weights in ([0, 0, 0], [1e-9, 0, 0]):
        query = Linear.of(SQUARE, "b", weights)
        assert query.sensitivity(Norm.L1, Neighbors.REPLACE_ONE) == query.grid > 0


@pytest.mark.parametrize("kind", ["uint8", "uint64", "int32", "int8"])
def test_counts_of_other_integer_types_do_not_wrap(kind: str) -> None:
    counts = np.array([[100, 120], [120, 100]], dtype=kind)
    assert Parity.over(SQUARE, "c", "yes").on_grid(counts).units.tolist() == [-40]
    assert Ranges(("c", "yes"), (2, 2)).on_grid(counts).units.tolist() == [100, 220, 120, 120, 220, 100]
    assert Counting.where(SQUARE, {"c": (0, 1), "yes": (0, 1)}).on_grid(counts).units.tolist() == [440]


def test_a_hypothesis_of_narrow_counts_answers_as_one_of_wide_counts() -> None:
    counts = np.array([[100, 120], [120, 100]], dtype=np.uint8)
    for query in (Parity.over(SQUARE, "c", "yes"), Ranges(("c", "yes"), (2, 2)), Linear.of(SQUARE, "c", [0.5, 1])):
        table = counts if len(query.columns) == 2 else counts[0]
        assert query(table).tolist() == query(table.astype(float)).tolist()


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_a_cell_with_more_people_than_there_can_be_is_clipped_and_never_wraps(kind: str) -> None:
    query = Linear(("c",), (2,), np.array([FINEST_GRID, 0]), Fraction(1, FINEST_GRID))
    for people in (MOST_PEOPLE, MOST_PEOPLE + 1, 2**41, 2**62, 2**63 - 1):
        assert query.on_grid(np.array([people, 0], dtype=kind)).units.tolist() == [MOST_PEOPLE * FINEST_GRID]
    for wrong in (np.zeros(2), np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.uint64)):
        with pytest.raises(InvalidParameter, match="64-bit"):
            OnGrid(wrong)


def test_2_to_the_40_people_fit_all_weights() -> None:
    people = 2**40
    finest = Fraction(1, FINEST_GRID)
    query = Linear(("c",), (2,), np.array([FINEST_GRID, FINEST_GRID]), finest)
    assert int(query.on_grid(np.array([people, 0])).units[0]) == people * FINEST_GRID
    assert Workload((query, Counting.where(SQUARE))).on_grid(
        np.array([people, 0]), np.array(people)
    ).units.tolist() == [
        people * FINEST_GRID,
        people * FINEST_GRID,
    ]


def test_a_true_answer_is_never_made_of_anything_but_whole_counts() -> None:
    for counts in (np.array([0.5, 1.5]), np.array([True, False]), np.array([1, 2], dtype=object)):
        with pytest.raises(InvalidQuery, match="whole counts"):
            Marginal.over(SQUARE, "c").on_grid(counts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_another_shape_is_never_spread_or_cut(kind: str) -> None:
    query = LINEAR[kind][1](SQUARE, np.random.default_rng(3))
    assert isinstance(query, LinearQuery)
    for counts in (np.ones(query.cells + 1, dtype=np.int64), np.ones(1, dtype=np.int64)):
        if counts.size != query.cells:
            with pytest.raises(ValueError, match=r"reshape|mismatch"):
                query.units(counts)
            with pytest.raises(ValueError, match=r"reshape|mismatch"):
                Workload((query, query)).units(counts)


def test_noise_that_does_not_fit_is_not_spread_over_the_answers() -> None:
    answer = OnGrid(np.array([5]))
    for noise in (np.zeros(3, dtype=np.int64), np.zeros((), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)):
        with pytest.raises(InvalidParameter, match="shape"):
            answer.plus(noise)
    assert answer.plus(np.array([2])).tolist() == [7]


def test_a_query_made_for_other_columns_is_refused() -> None:
    other = Schema([Integers("a", 0, 9), *SQUARE.columns[1:]])
    missing = Schema([Integers("b", 0, 2)])
    for _, make in LINEAR.values():
        query = make(SQUARE, np.random.default_rng(0))
        query.check(SQUARE)
    with pytest.raises(InvalidQuery, match="5"):
        Marginal.over(SQUARE, "a").check(other)
    with pytest.raises(InvalidSchema, match="'a'"):
        Marginal.over(SQUARE, "a").check(missing)
    with pytest.raises(InvalidQuery):
        Workload((Counting.where(SQUARE), Counting.where(SQUARE, {"a": (0,)}))).check(other)


def test_what_a_query_says_of_itself_is_one_bounded_line() -> None:
    names = [f"{'x' * 150} {place}" for place in range(20)]
    wide = Schema([Categories(name, ("a\nb", "c" * 10**5)) for name in names])
    work = marginals(wide, 1)
    queries = [
        Marginal.over(wide, *names),
        Counting.where(wide, dict.fromkeys(names, (0,))),
        Counting.where(Schema([Integers("a", 0, 10**5)]), {"a": range(0, 10**5, 2)}),
        Linear.of(wide, names[:1], [0, 1]),
        Ranges.over(wide, *names[:1]),
        work,
        Error(work, synopsis=None),  # type: ignore[arg-type]
    ]
    for query in queries:
        assert len(str(query)) <= LONGEST_SAID + 30
        assert str(query).isprintable()
    assert str(Counting.where(SQUARE, {"a": range(1, 4), "b": (0, 2), "c": ()})) == "Counting(a: 1..3; b: 0 2; c: none)"
    assert str(Marginal.over(SQUARE, "a", "b")) == "Marginal(a × b)"


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(0, 10**9))
def test_every_interval_is_one_range(size: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 100, size)
    query = Ranges(("a",), (size,))
    answers = query.units(counts).tolist()
    assert answers == [int(counts[i : j + 1].sum()) for i in range(size) for j in range(i, size)]


def test_the_page_on_queries_shows_what_happens() -> None:
    import doctest

    page = Path(__file__).parent.parent / "docs" / "queries.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 20
    assert not failed
