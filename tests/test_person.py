"""A person of several rows: what the kernel, the plans and the sessions make of them (Thm 2.2)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isclose
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from doubles import Rows, Scripted
from kinds import KINDS, SQUARE, random_schema
from neighbours import Codes, length, units, universe

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.domain.grid import Norm
from tacit.domain.person import Person, Relation
from tacit.domain.query import Counting, Marginal
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import _Score
from tacit.domain.workload import marginals
from tacit.engines.table import open_table
from tacit.errors import InvalidParameter, InvalidSchema
from tacit.mechanisms import boosting, distinguishers, iterative
from tacit.mechanisms.forecast import simulate
from tacit.mechanisms.marginals import error_bound, predicted_error, release_marginals
from tacit.mechanisms.online import Online, online, opened
from tacit.mechanisms.sparse import LeanSparse
from tacit.mechanisms.surprise import Absolute
from tacit.mechanisms.terms import choose
from tacit.mechanisms.total import told
from tacit.mechanisms.updates import MultiplicativeWeights
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.threshold import AboveThreshold
from tacit.privacy.budget import Budget

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
RHO, PURE = Budget.of(1, "1e-9"), Budget.of(1)
SCHEMA = Schema([Integers("age", 0, 4), Categories("sex", ("F", "M"))])


class Visits(Rows):
    """A table whose people have up to three rows each."""

    most_rows = 3


def curator(budget: Budget = RHO, neighbors: Neighbors = ADD, people: int = 100, schema: Schema = SCHEMA) -> Curator:
    codes = np.zeros((people, len(schema)), dtype=np.int64)
    return Curator(Visits(schema, codes), MemoryLedger(budget), neighbors)


def steps(codes: Codes, everybody: Codes, rng: np.random.Generator, neighbors: Neighbors, most: int) -> Codes:
    """The table after one person of up to so many rows came, went, or became another one."""
    gone = int(rng.integers(0, min(most, len(codes)) + 1)) if neighbors is REPLACE or rng.random() < 0.5 else 0
    come = int(rng.integers(0, most + 1)) if neighbors is REPLACE or not gone else 0
    kept = np.delete(codes, rng.permutation(len(codes))[:gone], axis=0)
    return np.vstack([kept, everybody[rng.integers(0, len(everybody), come)]])


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_of_one_person_move_the_answer_no_further_than_claimed(kind: str) -> None:
    _, make = KINDS[kind]
    rng = np.random.default_rng([3, *kind.encode()])
    for _ in range(10):
        schema = random_schema(rng, least=2)
        query, everybody = make(schema, rng), universe(schema)
        norms = [Norm.LINF] if isinstance(query, _Score) else list(Norm)
        for neighbors, most in product(Neighbors, (2, 3)):
            codes = everybody[rng.integers(0, len(everybody), 6)]
            here = units(query, schema, codes)
            for _ in range(8):
                there = units(query, schema, steps(codes, everybody, rng, neighbors, most))
                move = tuple(np.subtract(there, here, dtype=object))
                for norm in norms:
                    power = 2 if norm is Norm.L2 else 1
                    claimed = Relation(neighbors, most).moves(query, norm) ** power
                    assert length(move, norm) * query.grid**power <= claimed, (query, norm, neighbors, most)


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("norm", list(Norm))
def test_rows_in_one_cell_move_a_marginal_as_far_as_claimed(neighbors: Neighbors, norm: Norm) -> None:
    query, power = Marginal.over(SQUARE, "a"), 2 if norm is Norm.L2 else 1
    before = np.array([[0, 0, 0, 0]] * 3 * (neighbors is REPLACE), dtype=np.int64).reshape(-1, 4)
    after = np.array([[1, 0, 0, 0]] * 3, dtype=np.int64)
    move = tuple(np.subtract(units(query, SQUARE, after), units(query, SQUARE, before), dtype=object))
    claimed = Relation(neighbors, 3).moves(query, norm) ** power
    assert length(move, norm) <= claimed <= length(move, norm) * (1 + Fraction(1, 2**40))  # a root is rounded up


@pytest.mark.parametrize("mechanism", [Laplace("0.5"), Gaussian("0.1")])
def test_the_kernel_draws_for_all_rows_of_a_person(mechanism: Laplace | Gaussian) -> None:
    scales = []
    for table in (Rows, Visits):
        ours = Curator(table(SCHEMA, np.zeros((9, 2), dtype=np.int64)), MemoryLedger(Budget.of(9, "1e-9")), ADD)
        ours._noise = noise = Scripted()
        ours.within(Budget.of(8, "1e-9")).release(mechanism, Marginal.over(SCHEMA, "age", "sex"))
        scales += noise.scales
    assert scales[1] == scales[0] * (3 if isinstance(mechanism, Laplace) else 9)  # a variance


@pytest.mark.parametrize("rows", [0, -1, 0.5, True, None])
def test_a_table_that_claims_less_than_a_row_of_a_person_has_no_curator(rows: object) -> None:
    table = Visits(SCHEMA, np.zeros((9, 2), dtype=np.int64))
    table.most_rows = rows  # type: ignore[assignment]
    with pytest.raises(InvalidSchema, match="most rows of a person"):
        Curator(table, MemoryLedger(PURE), ADD)


def test_a_block_and_what_resumes_it_keep_to_the_rows_of_a_person(tmp_path: Path) -> None:
    ledger = SQLiteLedger.create(tmp_path / "ledger", RHO, subject="visits")
    ours = Curator(Visits(SCHEMA, np.zeros((100, 2), dtype=np.int64)), ledger, REPLACE)
    inner = ours.within(RHO / 2)
    sequence = next(entry.sequence for entry in ledger.entries() if entry.reserved is not None)
    query = Counting.where(SCHEMA)
    for one in (ours, inner, ours.resume(sequence), inner.within(RHO / 4)):
        assert one.sensitivity(query) == 3
        assert one.relation == Relation(REPLACE, 3)
    ledger.close()


def test_blocks_and_what_resumes_them_count_the_same_rows_of_a_person(tmp_path: Path) -> None:
    source, ages = pa.table({"id": [1] * 64, "age": list(range(64))}), Schema([Integers("age", 0, 63)])
    held = open_table(source, ages, person=Person("id", 3))
    ledger = SQLiteLedger.create(tmp_path / "ledger", RHO, subject="visits")
    ours = Curator(held, ledger, ADD)
    first = held.counts([("age",)])[0].tolist()
    inner = ours.within(RHO / 2)
    again = ours.resume(next(entry.sequence for entry in ledger.entries() if entry.reserved is not None))
    for one in (ours, inner, again):
        one._noise = Scripted()
        assert one.release(Gaussian("1e-3"), Marginal.over(ages, "age")).tolist() == first
    ledger.close()


def test_a_session_that_was_opened_for_people_of_one_row_answers_no_other() -> None:
    session = curator(PURE).open(AboveThreshold("0.5", 10))
    with pytest.raises(InvalidParameter, match=r"queries of sensitivity 1; .* has 3"):
        session.ask(Counting.where(SCHEMA))
    assert curator(PURE).open(AboveThreshold("0.5", 10, sensitivity=3)).ask(Counting.where(SCHEMA)) in (True, False)


@pytest.mark.parametrize("budget", [RHO, PURE], ids=str)
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_what_is_predicted_is_what_is_drawn(budget: Budget, neighbors: Neighbors) -> None:
    work, ours = marginals(SCHEMA, 1), curator(budget, neighbors)
    one, three = (predicted_error(SCHEMA, work, budget, Relation(neighbors, rows)) for rows in (1, 3))
    for columns, deviation in one.deviation.items():
        assert isclose(three.deviation[columns], 3 * deviation, rel_tol=0.02)
    bounds = [error_bound(SCHEMA, work, budget, Relation(neighbors, rows), 0.05) for rows in (1, 3)]
    assert isclose(bounds[1], 3 * bounds[0], rel_tol=0.02)
    ours._noise = noise = Scripted()
    released = release_marginals(ours, work, budget)
    assert released.receipt is not None
    assert released.receipt.rows == 3
    assert "neighbours of at most 3 rows each; their number was not public" in str(released.receipt)
    assert Receipt.of(released.receipt.describe()) == released.receipt
    assert len(noise.scales) == 1


def test_a_receipt_of_an_older_release_is_of_people_of_one_row() -> None:
    said = Receipt("epsilon", Fraction(1), None, (("x", Fraction(1)),), ADD, ("y",)).describe()
    assert Receipt.of({key: value for key, value in said.items() if key != "rows"}).rows == 1


def test_a_public_number_of_people_is_no_number_of_rows() -> None:
    with pytest.raises(InvalidParameter, match="number of rows is not public"):
        release_marginals(curator(RHO, REPLACE), marginals(SCHEMA, 1), RHO, total=100)


def test_boosting_pays_for_all_rows_of_a_person() -> None:
    work = marginals(SCHEMA, 1)
    chosen = boosting.Boosting(3, 4, Fraction(1), Fraction(50))
    prices = [boosting.sampling_price(chosen, work, Relation(ADD, rows), PURE) for rows in (1, 3)]
    assert prices[1] == 3 * prices[0]


@pytest.mark.parametrize(
    "distinguish", [distinguishers.exponential, distinguishers.permute_and_flip], ids=["exponential", "flip"]
)
def test_a_distinguisher_is_as_much_less_sure(distinguish: distinguishers.Distinguisher) -> None:
    work = marginals(SCHEMA, 1)
    one, three = (distinguish.error_bound(0.05, work, PURE, Relation(ADD, rows)) for rows in (1, 3))
    assert 2.5 < three / one < 3.1


def test_constructing_reckons_with_all_rows_of_a_person() -> None:
    work = marginals(SCHEMA, 1)
    one, three = (
        iterative.error_bound(SCHEMA, work, Budget.of(8), Relation(ADD, rows), 0.05, total=10**6) for rows in (1, 3)
    )
    assert three > 1.2 * one


def test_the_terms_of_a_session_are_those_of_so_many_times_fewer_people() -> None:
    schema = Schema([Categories(f"c{i}", ("no", "yes")) for i in range(8)])
    one, three = choose(schema, RHO, 10**6), choose(schema, RHO, 3 * 10**6, rows=3)
    assert isclose(three.error / three.people, one.error / one.people, rel_tol=0.02)
    assert simulate(schema, RHO, three, asked=20).asked == 20
    with pytest.raises(InvalidParameter, match="choose them with rows=3"):
        opened(curator(RHO, schema=schema), RHO, one, total=10**6)


@pytest.mark.parametrize("textbook", [False, True])
def test_an_online_session_opens_its_vector_for_all_rows_of_a_person(textbook: bool) -> None:
    ours = curator(PURE, people=1000)
    session = Online(
        ours, PURE, update=MultiplicativeWeights(0.1), threshold=900, count=2, total=1000, textbook=textbook
    )
    assert session.ask(Counting.where(SCHEMA, {"sex": (0,)})).left <= 2
    made, _ = online(curator(RHO, people=10**6), RHO, total=10**6)
    assert made.ask(Counting.where(SCHEMA, {"sex": (0,)})).value >= 0


@pytest.mark.parametrize("textbook", [False, True])
@pytest.mark.parametrize("rows", [1, 10**6])
def test_noise_that_cannot_be_drawn_for_all_rows_of_a_person_is_refused_while_nothing_is_spent(
    textbook: bool, rows: int
) -> None:
    tiny = Budget.of("1e-4")
    table = Visits(SCHEMA, np.zeros((9, 2), dtype=np.int64))
    table.most_rows = rows  # type: ignore[misc]
    ours = Curator(table, MemoryLedger(tiny), ADD)
    how = {"update": MultiplicativeWeights(0.1), "threshold": 9, "count": 2, "textbook": textbook}
    if rows == 1:
        assert Online(ours, tiny, **how).left == 2  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidParameter, match=r"Nothing was (spent|drawn)"):
            Online(ours, tiny, **how)  # type: ignore[arg-type]
        assert ours.ledger.spent == 0


def test_the_rows_of_people_are_bought_with_noise_for_all_rows_of_one() -> None:
    scales = []
    for table in (Rows, Visits):
        ours = Curator(table(SCHEMA, np.zeros((99, 2), dtype=np.int64)), MemoryLedger(PURE), REPLACE)
        ours._noise = noise = Scripted()
        assert told(ours, PURE / 2) == 99
        scales += noise.scales
    assert scales[1] == 3 * scales[0]


def test_a_question_s_noise_and_its_errors_are_for_all_rows_of_a_person() -> None:
    errors = []
    for table in (Rows, Visits):
        ours = Curator(table(SCHEMA, np.zeros((99, 2), dtype=np.int64)), MemoryLedger(RHO), ADD)
        asked = Absolute(
            ours.within(RHO / 2), ours.within(RHO / 2), threshold=0, count=5, grid=Fraction(1, 1024), sittings=2
        )
        errors.append(asked.errors(0.05, 1000))
    for one, three in zip(*errors, strict=True):
        assert isclose(three - 1, 3 * (one - 1), rel_tol=0.02)


def test_sparse_vectors_are_opened_for_the_sensitivity_that_was_said() -> None:
    sparse = LeanSparse(curator(PURE), PURE, threshold=50, count=2, sensitivity=3)
    assert sparse.ask(Counting.where(SCHEMA)) in (True, False)


@pytest.mark.parametrize(
    ("column", "rows"), [("", 3), ("id", 0), ("id", 1.5), ("id", True), ("i\nd", 1), ("id", 10**9)]
)
def test_a_person_is_a_column_and_a_number_of_rows(column: str, rows: int) -> None:
    with pytest.raises(InvalidSchema):
        Person(column, rows)
