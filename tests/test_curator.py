"""Charge, then read, then draw; a block cannot be passed; nothing of a failure tells of the rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from doubles import Rows, Scripted
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm, OnGrid
from tacit.domain.query import Columns, Counting, Linear, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Fit, Function
from tacit.domain.workload import Workload, marginals
from tacit.errors import (
    BudgetExceeded,
    DataUnavailable,
    Halted,
    InvalidParameter,
    InvalidQuery,
    NoiseUnavailable,
    NoSuchGuarantee,
    TacitError,
)
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.noise import Noise
from tacit.primitives.selection import Exponential, NoisyMax
from tacit.primitives.threshold import AboveThreshold
from tacit.privacy.budget import Budget, Currency, Loss

SCHEMA = Schema([Integers("age", 0, 9), Categories("sex", ("F", "M"))])
CODES = np.array([[1, 0], [1, 1], [4, 0], [9, 1], [9, 1]])
SEXES = Marginal.over(SCHEMA, "sex")
EVERYBODY = Counting.where(SCHEMA)


def curator(budget: Budget | None = None, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Curator:
    return Curator(Rows(SCHEMA, CODES), MemoryLedger(budget or Budget.of(1)), neighbors)


class Order:
    """Writes down in which order the curator touches its ledger, its table and the noise."""

    def __init__(self, inner: object, log: list[str], names: Sequence[str]) -> None:
        self.__dict__.update(inner=inner, log=log, names=names)

    def __getattr__(self, name: str) -> object:
        value = getattr(self.inner, name)
        if name in self.names:
            self.log.append(name)
        return value


def test_it_charges_then_reads_then_draws() -> None:
    log: list[str] = []
    ours = curator()
    ours._ledger = Order(ours.ledger, log, ["charge"])  # type: ignore[assignment]
    ours._data = Order(ours._data, log, ["counts"])  # type: ignore[assignment]
    ours._noise = Order(Scripted(), log, ["laplace"])  # type: ignore[assignment]
    ours.release(Laplace("0.5"), SEXES)
    assert log == ["charge", "counts", "laplace"]


def test_the_noise_is_scaled_to_the_sensitivity_of_the_query_under_the_neighbours_in_force() -> None:
    for neighbors in Neighbors:
        ours, script = curator(Budget.of(4, "1e-9"), neighbors), Scripted()
        ours._noise = script
        ours.release(Laplace("0.1"), SEXES)
        ours.release(Laplace("0.1"), Workload((SEXES, SEXES)))
        ours.release(Gaussian(Fraction(1, 100)), SEXES)
        norm = 1 if neighbors is Neighbors.ADD_REMOVE else 2
        assert script.scales[:2] == [10 * norm, 20 * norm]
        assert abs(script.scales[2] - 50 * norm) < Fraction(1, 10**9)
        assert script.scales[2] >= 50 * norm  # a root is rounded up, never down


def test_an_answer_is_the_truth_and_the_noise_and_nothing_else() -> None:
    ours = curator()
    ours._noise = Scripted(5, -7)
    assert ours.release(Laplace("0.5"), SEXES).tolist() == [2 + 5, 3 - 7]


def test_a_refused_charge_leaves_no_trace_and_nothing_is_read() -> None:
    ours = curator()
    with pytest.raises(BudgetExceeded, match=r"Nothing was drawn\."):
        ours.release(Laplace(2), SEXES)
    assert ours.ledger.spent == 0
    assert list(ours.ledger.entries()) == []
    assert ours._data.read == []  # type: ignore[attr-defined]


def test_ten_tenths_make_one_and_an_eleventh_is_refused() -> None:
    ours = curator()
    for _ in range(10):
        ours.release(Laplace(0.1), EVERYBODY)
    with pytest.raises(BudgetExceeded):
        ours.release(Laplace("1e-9"), EVERYBODY)
    assert ours.ledger.left == 0


def test_the_entry_is_the_mechanism_that_ran() -> None:
    ours = curator()
    ours.release(Laplace("0.25"), SEXES)
    (entry,) = ours.ledger.entries()
    assert entry.what.startswith("Laplace(epsilon=1/4) of ")
    assert "sex" in entry.what
    assert (entry.amount, entry.currency) == (Fraction(1, 4), Currency.EPSILON)


def test_a_block_is_charged_whole_and_cannot_be_passed() -> None:
    ours = curator()
    inner = ours.within(Budget.of("0.5"))
    assert ours.ledger.left == Fraction(1, 2)
    inner.release(Laplace("0.5"), EVERYBODY)
    with pytest.raises(BudgetExceeded):
        inner.release(Laplace("0.001"), EVERYBODY)
    assert ours.ledger.left == Fraction(1, 2)
    deeper = ours.within(Budget.of("0.5")).within(Budget.of("0.25"))
    with pytest.raises(BudgetExceeded):
        deeper.release(Laplace("0.3"), EVERYBODY)


def test_a_block_is_resumed_on_the_same_table_with_what_is_left_in_it() -> None:
    ours = curator(Budget.of(1))
    inner = ours.within(Budget.of("0.5"), "session")
    inner.release(Laplace("0.25"), EVERYBODY)
    again = ours.resume(1)
    assert again.schema == ours.schema
    assert again.neighbors is ours.neighbors
    assert again._noise is ours._noise
    assert (again.budget, again.ledger.left) == (Budget.of("0.5"), Fraction(1, 4))
    again.release(Laplace("0.25"), EVERYBODY)
    for spent in (inner, again, ours.resume(1)):
        with pytest.raises(BudgetExceeded):
            spent.release(Laplace("0.01"), EVERYBODY)
    with pytest.raises(InvalidParameter):
        ours.resume(2)


def test_a_pure_block_in_a_concentrated_ledger_costs_what_one_pure_step_would() -> None:
    ours = curator(Budget.of(4, "1e-9"))
    before = ours.ledger.left
    inner = ours.within(Budget.of("0.1"))
    assert before - ours.ledger.left == Loss.pure(Fraction(1, 10)).rho
    with pytest.raises(NoSuchGuarantee):
        inner.release(Gaussian(Fraction(1, 10**6)), EVERYBODY)


def test_a_gaussian_has_no_price_in_a_pure_budget() -> None:
    ours = curator()
    with pytest.raises(NoSuchGuarantee):
        ours.release(Gaussian(Fraction(1, 100)), EVERYBODY)
    with pytest.raises(NoSuchGuarantee):
        ours.within(Budget.of(1, "1e-9"))
    assert ours.ledger.spent == 0


def test_the_monotone_saving_is_given_only_where_the_query_proves_it() -> None:
    scores = Fit(work := marginals(SCHEMA, 1), np.zeros((2, work.size)))
    ours = curator()
    for mechanism in (Exponential("0.1", monotone=True), NoisyMax("0.1", "exponential", monotone=True)):
        with pytest.raises(InvalidParameter, match="monotone"):
            ours.release(mechanism, scores)
        ours.release(mechanism, SEXES)
        with pytest.raises(InvalidParameter, match="monotone"):
            curator(neighbors=Neighbors.REPLACE_ONE).release(mechanism, SEXES)
    assert ours.ledger.spent == Fraction(1, 5)


def test_a_query_for_another_universe_is_refused_before_it_is_charged() -> None:
    other = Schema([Integers("age", 0, 8), Categories("sex", ("F", "M"))])
    ours = curator()
    for query in (Marginal.over(other, "age"), marginals(other, 1)):
        with pytest.raises(InvalidQuery):
            ours.release(Laplace("0.1"), query)
    assert ours.ledger.spent == 0


def test_a_session_is_paid_once_and_halts() -> None:
    ours = curator()
    session = ours.open(AboveThreshold("0.5", 100))
    assert ours.ledger.spent == Fraction(1, 2)
    session = ours.open(AboveThreshold("0.5", -100, grid=1))
    ours._noise = Scripted()
    assert session.ask(EVERYBODY) is True
    assert session.halted
    with pytest.raises(Halted):
        session.ask(EVERYBODY)
    assert ours.ledger.left == 0


def test_a_session_takes_no_query_that_one_person_moves_too_far() -> None:
    class Double(Linear):
        def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
            return Fraction(2)

    weights = Double(("sex",), (2,), np.array([1, 1]))
    session = curator().open(AboveThreshold("0.5", 5))
    with pytest.raises(InvalidParameter, match="sensitivity"):
        session.ask(weights)
    with pytest.raises(InvalidParameter):
        session.ask(SEXES)  # two answers at once


def test_what_fails_while_reading_tells_nothing_and_stays_charged() -> None:
    def breaks(counts: NDArray[np.int64]) -> float:
        raise ValueError(f"the secret is {counts.tolist()}")

    query = Function.of(SCHEMA, ("sex",), breaks, sensitivity=1, neighbors=Neighbors.ADD_REMOVE)
    ours = curator()
    with pytest.raises(DataUnavailable) as caught:
        ours.release(Laplace("0.5"), query)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in str(caught.value)
    assert ours.ledger.spent == Fraction(1, 2)


class Failing(Rows):
    """A source of somebody else's, which fails and says why."""

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        try:
            raise RuntimeError("INT64 with value 128 can't be cast")
        except RuntimeError as error:
            raise DataUnavailable(f"the secret is {error}") from error


class Overflowing(Laplace):
    def sample(self, answer: OnGrid, sensitivity: Fraction, noise: Noise) -> NDArray[Any]:
        raise OverflowError(f"the secret is {answer.units}")


def told(error: BaseException) -> str:
    """All that whoever catches it can see: words, causes, and what stood in each frame."""
    said, trace = [str(error), repr(error.__cause__), repr(error.__context__)], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename != __file__:
            said += [f"{name}={value!r}" for name, value in trace.tb_frame.f_locals.items()]
        trace = trace.tb_next
    return " ".join(said)


def test_of_what_fails_where_the_answers_are_nothing_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(count: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr("os.urandom", empty)
    for table, mechanism, kind in (
        (Failing(SCHEMA, CODES), Laplace("0.5"), DataUnavailable),
        (Rows(SCHEMA, CODES), Overflowing("0.5"), DataUnavailable),
        (Rows(SCHEMA, CODES), Laplace("0.5"), NoiseUnavailable),
    ):
        ours = Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
        with pytest.raises(kind, match="what was charged stays charged, nothing was drawn") as caught:
            ours.release(mechanism, EVERYBODY)
        said = told(caught.value)
        assert "secret" not in said
        assert "OnGrid" not in said
        assert "INT64" not in said
        assert ours.ledger.spent == Fraction(1, 2)


def test_a_question_that_fails_in_a_session_is_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it failed is an answer, exact, and would be free as often as it is asked."""
    ours = curator()
    session = ours.open(AboveThreshold("0.5", 10**6))
    assert session.ask(EVERYBODY) is False
    ours._data = Failing(SCHEMA, CODES)
    with pytest.raises(DataUnavailable) as caught:
        session.ask(EVERYBODY)
    assert "secret" not in told(caught.value)
    assert "Waiting" not in told(caught.value)
    ours._data = Rows(SCHEMA, CODES)
    assert session.halted
    for _ in range(2):
        with pytest.raises(Halted):
            session.ask(EVERYBODY)


def test_a_question_that_is_refused_for_what_is_public_does_not_end_a_session() -> None:
    ours = curator()
    session = ours.open(AboveThreshold("0.5", 10**6))
    weighted = Linear.of(SCHEMA, ("age",), np.linspace(0, 1, 10))  # on a finer grid than the session's
    for query, error in ((weighted, InvalidParameter), (SEXES, InvalidParameter)):
        with pytest.raises(error, match="Nothing was drawn"):
            session.ask(query)
    assert ours._data.read == []  # type: ignore[attr-defined]
    assert session.ask(EVERYBODY) is False


def test_what_a_curator_goes_by_is_not_changed_while_it_serves() -> None:
    ours = curator()
    for name, value in (("ledger", MemoryLedger(Budget.of(1))), ("neighbors", Neighbors.REPLACE_ONE)):
        with pytest.raises(AttributeError):
            setattr(ours, name, value)


def test_nonsense_that_a_function_returns_is_an_ordinary_answer() -> None:
    for nonsense in (float("nan"), float("inf"), -float("inf"), 1e308):
        query = Function.of(SCHEMA, ("sex",), lambda _, n=nonsense: n, sensitivity=1, neighbors=Neighbors.ADD_REMOVE)
        assert np.isfinite(curator().release(Laplace("0.5"), query)).all()


def test_without_entropy_it_refuses_and_the_charge_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(count: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr("os.urandom", empty)
    ours = curator()
    with pytest.raises(NoiseUnavailable):
        ours.release(Laplace("0.5"), EVERYBODY)
    assert ours.ledger.spent == Fraction(1, 2)


def test_many_threads_spend_exactly_the_budget() -> None:
    ours, served, refused = curator(), [], []

    def spend() -> None:
        for _ in range(20):
            try:
                served.append(ours.release(Laplace("0.05"), EVERYBODY))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(served), len(refused)) == (20, 140)
    assert ours.ledger.left == 0


def test_a_loss_that_is_nothing_is_refused() -> None:
    class Free(Laplace):
        def loss(self) -> Loss:
            return Loss.pure(Fraction(0))

    ours = curator()
    with pytest.raises(TacitError):
        ours.release(Free(1), EVERYBODY)
    assert ours._data.read == []  # type: ignore[attr-defined]


def test_answers_on_a_grid_stay_on_the_grid() -> None:
    query = Linear.of(SCHEMA, ("age",), np.linspace(0, 1, 10))
    grid = float(query.grid)
    answer = curator().release(Laplace(1), query)
    assert answer[0] / grid == round(answer[0] / grid)


def test_noise_that_cannot_be_drawn_is_refused_before_it_is_charged() -> None:
    ours = curator()
    weighted = Linear.of(SCHEMA, ("age",), np.linspace(0, 1, 10))
    for attempt in (
        lambda: ours.release(Laplace("1e-9"), weighted),
        lambda: ours.release(NoisyMax("1e-9"), weighted),
        lambda: ours.open(AboveThreshold("1e-9", 5, grid=Fraction(1, 10**6))),
    ):
        with pytest.raises(InvalidParameter, match="Nothing was drawn"):
            attempt()
    assert ours.ledger.spent == 0
