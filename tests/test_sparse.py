"""Sparse and NumericSparse: the book's noise step by step, the vectors of their parameters, the price, the halt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from noises import Played
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm
from tacit.domain.query import Columns, Query
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.errors import BudgetExceeded, Halted, InvalidParameter, NoSuchGuarantee
from tacit.mechanisms.sparse import (
    NumericSparse,
    Sparse,
    numeric_book_bound,
    numeric_parts,
    numeric_scales,
    sparse_book_bound,
    sparse_scale,
)
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.threshold import split_without_refresh
from tacit.privacy.budget import Budget

STEP = Fraction(1, 20)


class Nothing:
    """A table that is asked for no counts."""

    schema = Schema([Integers("age", 0, 9)])
    most_rows = 1

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        return []


@dataclass(frozen=True)
class Given(Query):
    """A query whose answer was written down."""

    value: str
    moves: Fraction = Fraction(1)
    reads = ()
    size = 1
    grid = STEP

    def units(self, *tables: Any) -> NDArray[np.int64]:
        return np.array([int(Fraction(self.value) / STEP)])

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return self.moves

    def check(self, schema: Schema) -> None:
        pass


def curator(budget: Budget, noise: Played | None = None) -> Curator:
    made = Curator(Nothing(), MemoryLedger(budget), Neighbors.ADD_REMOVE)
    made._noise = noise or made._noise  # type: ignore[assignment]
    return made


STREAM = [Given(value) for value in ("9", "8", "12", "7.9", "3")]


def test_sparse_answers_the_stream_of_the_vectors() -> None:
    """D5: threshold 10 with noise 1, then -2; queries' noise 0, 3, -1; the second top is the last answer."""
    noise = Played(20, 0, 60, -40, -20)
    sparse = Sparse(curator(Budget.of(1), noise), Budget.of(1), threshold=10, count=2, grid=STEP)
    assert [sparse.ask(query) for query in STREAM[:3]] == [False, True, True]
    with pytest.raises(Halted, match="all 2 answers"):
        sparse.ask(STREAM[3])
    # Alg. 2 with delta = 0: sigma = 2c/eps = 4 for thresholds, 2 sigma for queries, in twentieths
    assert [scale for _, scale, _ in noise.asked] == [80, 160, 160, 80, 160]


def test_numeric_sparse_answers_the_stream_of_the_vectors_with_fresh_noise() -> None:
    """D5: "no", 8.5, 11.75; the noise of the answers, 0.5 and -0.25, is none that was compared."""
    noise = Played(20, 0, 60, 10, -40, -20, -5)
    sparse = NumericSparse(curator(Budget.of(1), noise), Budget.of(1), threshold=10, count=2, grid=STEP)
    assert [sparse.ask(query) for query in STREAM[:3]] == [None, 8.5, 11.75]
    assert sparse.left == 0
    with pytest.raises(Halted):
        sparse.ask(STREAM[3])
    # Alg. 3 with delta = 0: 9c/4eps, 9c/2eps and 9c/eps, in twentieths
    assert [scale for _, scale, _ in noise.asked] == [90, 180, 180, 360, 90, 180, 360]


@pytest.mark.parametrize("kind", [Sparse, NumericSparse])
@pytest.mark.parametrize("budget", [Budget.of("0.3"), Budget.of("0.5", "1e-6")], ids=str)
def test_it_costs_its_budget_at_once_and_nothing_after(kind: type, budget: Budget) -> None:
    of = curator(budget)
    sparse = kind(of, budget, threshold=0, count=7, grid=STEP)
    assert of.ledger.left == 0
    for _ in range(200):
        sparse.ask(Given("-100000"))
    for _ in range(7):
        sparse.ask(Given("100000"))
    assert sparse.left == 0
    assert of.ledger.left == 0
    with pytest.raises(BudgetExceeded):
        kind(of, budget, threshold=0, count=7)


def test_in_rho_each_session_has_the_epsilon_that_its_share_buys() -> None:
    budget = Budget.of(1, "1e-6")
    above = Sparse(curator(budget), budget, threshold=0, count=5).above
    price = 5 * budget.price(above.loss())
    assert price <= budget.rho < price * (1 + Fraction(1, 10**12))
    assert above.epsilon**2 / 2 * 5 > budget.rho
    # less noise than Thm 3.25 has
    assert float(2 / above.epsilon) < 0.6 * sparse_scale(1, 1e-6, 5)


def test_numeric_sparse_answers_with_the_noise_that_its_currency_knows() -> None:
    assert isinstance(NumericSparse(curator(Budget.of(1)), Budget.of(1), threshold=0, count=2).noise, Laplace)
    rho = Budget.of(1, "1e-6")
    assert isinstance(NumericSparse(curator(rho), rho, threshold=0, count=2).noise, Gaussian)
    with pytest.raises(NoSuchGuarantee):  # a rho block does not fit into an epsilon ledger
        NumericSparse(curator(Budget.of(1)), rho, threshold=0, count=2)


def test_a_query_that_moves_too_far_is_refused_and_nothing_is_lost() -> None:
    sparse = Sparse(curator(Budget.of(1)), Budget.of(1), threshold=0, count=1, grid=STEP)
    with pytest.raises(InvalidParameter, match="sensitivity"):
        sparse.ask(Given("5", Fraction(2)))
    assert sparse.ask(Given("1000000")) is True


@pytest.mark.parametrize("count", [0, -1, 2.0, True, 10**9])
def test_a_count_that_cannot_be_is_refused_before_a_charge(count: int) -> None:
    of = curator(Budget.of(1))
    for kind in (Sparse, NumericSparse):
        with pytest.raises(InvalidParameter):
            kind(of, Budget.of(1), threshold=0, count=count)
    with pytest.raises(InvalidParameter, match="share"):
        NumericSparse(of, Budget.of(1), threshold=0, count=2, share=1)
    assert of.ledger.left == 1


def test_the_parameters_of_sparse_are_the_vectors() -> None:
    assert sparse_scale(1, 0, 5) == 10
    assert sparse_scale(1, 1e-6, 5) == pytest.approx(47.01576001)
    assert sparse_book_bound(1, 0, 5, 1000, 0.05) == pytest.approx(488.2429058)
    assert sparse_book_bound(1, 1e-6, 5, 1000, 0.05) == pytest.approx(2295.511129)


def test_the_parameters_of_numeric_sparse_are_the_vectors() -> None:
    assert numeric_parts(1, 0) == pytest.approx((0.8888888889, 0.2222222222))
    assert numeric_parts(1, 1e-6) == pytest.approx((0.9576762877, 0.08464742465))
    assert numeric_scales(1, 0, 5) == pytest.approx((11.25, 22.5, 45))
    assert numeric_scales(1, 1e-6, 5) == pytest.approx((50.31006459, 100.6201292, 569.1934053))


def test_theorem_3_28_needs_its_correction_only_with_a_delta() -> None:
    """E17."""
    assert numeric_book_bound(1, 0, 5, 1000, 0.05) == pytest.approx(580.4648922)
    assert numeric_book_bound(1, 0, 5, 1000, 0.05, corrected=False) == pytest.approx(580.4648922)
    assert numeric_book_bound(1, 1e-6, 5, 1000, 0.05, corrected=False) == pytest.approx(2595.842331)
    assert numeric_book_bound(1, 1e-6, 5, 1000, 0.05) == pytest.approx(3015.767304)


@pytest.mark.parametrize(("epsilon", "delta"), [(2, 1e-6), (1, 1.5), (1, -0.1)])
def test_corollary_3_21_is_not_used_beyond_its_range(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"Corollary 3\.21"):
        sparse_scale(epsilon, delta, 5)


def test_one_threshold_for_all_answers_splits_epsilon_as_the_vectors_say() -> None:
    assert [float(e) for e in split_without_refresh(1, 5)] == pytest.approx([0.1772550304, 0.8227449696])
    monotone = split_without_refresh(1, 5, monotone=True)
    assert [float(e) for e in monotone] == pytest.approx([0.254840846, 0.745159154])
    assert sum(split_without_refresh("0.1", 7)) == Fraction(1, 10)  # exactly


def test_the_tight_bounds_are_below_the_books() -> None:
    budget, k, beta = Budget.of(1), 1000, 0.05
    sparse = Sparse(curator(budget), budget, threshold=0, count=5)
    assert sparse.error_bound(beta, queries=k) < 0.75 * sparse_book_bound(1, 0, 5, k, beta)
    numeric = NumericSparse(curator(budget), budget, threshold=0, count=5)
    assert numeric.error_bound(beta, queries=k) < 0.75 * numeric_book_bound(1, 0, 5, k, beta)
    assert numeric.error_bound(beta, queries=1) >= 45 * log(2 * 5 / beta) * 0.95  # the answers' part


@pytest.mark.parametrize("budget", [Budget.of(9), Budget.of(30), Budget.of(9, "1e-6")], ids=str)
def test_an_answer_of_numeric_sparse_keeps_its_bound_on_every_grid(budget: Budget) -> None:
    beta = 0.06
    sparse = NumericSparse(curator(budget), budget, threshold=0, count=1, share=Fraction(1, 9))
    bound = sparse.error_bound(beta, queries=1)
    for grid in (Fraction(1, 1024), Fraction(1, 64), Fraction(3, 1024), Fraction(1, 3), Fraction(1), Fraction(bound)):
        wide = np.arange(int(Fraction(bound) / grid) + 1, int(60 / grid) + 60)
        assert 2 * float(sparse.noise.probabilities(wide, grid=grid).sum()) <= beta / 2
    # and of one number, however far a person moves it
    far = NumericSparse(curator(budget), budget, threshold=0, count=1, sensitivity=50)
    assert far.error_bound(beta, queries=1) >= far.noise.error_bound(beta / 2, sensitivity=50)


@pytest.mark.parametrize(("share", "often"), [(Fraction(1), False), (Fraction(1, 6), True)])
def test_sparse_errs_by_more_than_its_bound_no_more_often_than_it_says(share: Fraction, often: bool) -> None:
    """400 streams, beta = 0.5: 260 failures are six standard errors above a half; a sixth of the bound has more."""
    k, count, beta, failures = 20, 2, 0.5, 0
    for _ in range(400):
        sparse = Sparse(curator(Budget.of(1)), Budget.of(1), threshold=0, count=count, grid=STEP)
        alpha = Fraction(sparse.error_bound(beta, queries=k)).limit_denominator(20) * share // STEP * STEP
        low, high = Given(str(-alpha - STEP)), Given(str(alpha + STEP))
        truth = [False] * (k - 2) + [True] * 2
        said: list[bool] = []
        for query in [low] * (k - 2) + [high] * 2:
            if sparse.left:
                said.append(sparse.ask(query))
        failures += said != truth
    assert (failures > 260) is often
