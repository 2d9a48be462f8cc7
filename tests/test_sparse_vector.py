"""SparseVector: its law exactly, on every short stream and both ways; what its noise must not lack; bounds; sampler.

The published variants of the sparse vector stand here as well (Lyu, Su & Li 2017): two are right, the wrong ones lose
what was proved that they lose. Variant 3, which releases the noise that it compared, stands in test_losses.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from doubles import Rows
from noises import FALSE_ALARM, Played, Stocked, misfit, unlike
from promises import ROUNDING, breaches, furthest
from scipy.stats import binom
from streams import Noisy, Vector, both_ways, laws, ours

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.away import Away
from tacit.domain.grid import Norm, OnGrid
from tacit.domain.query import Counting
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.errors import BudgetExceeded, Halted, InvalidParameter
from tacit.mechanisms.sparse import LeanSparse, lean
from tacit.primitives.additive import each
from tacit.primitives.noise import SYSTEM
from tacit.primitives.threshold import SparseVector, Waiting, split_without_refresh
from tacit.privacy.budget import Budget, Loss

COUNTS = [1, 2, 3]
BOTH, ONE_WAY = [pytest.param(False, id="both ways"), pytest.param(True, id="one way")]


def number(units: int, grid: Fraction | int = 1) -> OnGrid:
    return OnGrid(np.array([units], dtype=np.int64), Fraction(grid))


# ---- privacy, exactly


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("monotone", [BOTH, ONE_WAY])
@pytest.mark.parametrize(("epsilon", "sensitivity", "grid"), [("1", "1", "1"), ("3", "1", "1/2"), ("1/2", "2", "1")])
def test_it_keeps_its_promise_on_every_stream_and_for_every_person(
    count: int, monotone: bool, epsilon: str, sensitivity: str, grid: str
) -> None:
    """All streams of three or four answers about the threshold, moved up, down and not at all, in every mixture."""
    vector = SparseVector(epsilon, 0, count, sensitivity, monotone, grid)
    units = int(vector.sensitivity / vector.grid)
    moves = both_ways(4 if count == 2 else 3, units, (-2 * units, 0, units), monotone=monotone)
    p, q = laws(ours(vector), moves)
    assert np.exp(p).sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert breaches(p, q, vector.loss()) == []


def tightest(count: int, units: int, monotone: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A "no" at the threshold that a person lifts, then "yes" c times, to answers that the same person lowers."""
    lowered = 0 if monotone else -units
    return (0,) * (count + 1), (units, *(lowered,) * count), (0, *(1,) * count)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("monotone", [BOTH, ONE_WAY])
def test_it_attains_its_promise_to_the_last_digit(count: int, monotone: bool) -> None:
    one, other, said = tightest(count, 5, monotone)
    vector = ours(SparseVector(1, 0, count, 5, monotone, 1))
    assert log(vector.chance(one, said) / vector.chance(other, said)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("monotone", [BOTH, ONE_WAY])
@pytest.mark.parametrize("off", [Fraction(1, 2), Fraction(99, 100)], ids=["half", "99 %"])
def test_less_noise_is_rejected(count: int, monotone: bool, off: Fraction) -> None:
    mechanism = SparseVector(1, 0, count, 5, monotone, 1)
    one, other, said = tightest(count, 5, monotone)
    less = ours(mechanism, off)
    p, q = (np.log(np.array([less.chance(answers, said)])) for answers in (one, other))
    assert furthest(p, q) == pytest.approx(float(1 / off), abs=1e-9)
    assert breaches(p, q, mechanism.loss()) != []


@pytest.mark.parametrize("count", COUNTS)
def test_the_monotone_saving_is_rejected_on_streams_that_move_both_ways(count: int) -> None:
    """It then loses eps1 + 2 eps2: attained, and never more."""
    vector = SparseVector(1, 0, count, 1, monotone=True, grid=1)
    first, rest = split_without_refresh(1, count, monotone=True)
    p, q = laws(ours(vector), both_ways(4 if count == 3 else 3, 1, (-2, 0, 1)))
    assert furthest(p, q) == pytest.approx(float(first + 2 * rest), abs=1e-9)
    assert breaches(p, q, vector.loss()) != []


def lacking(what: str, count: int) -> Vector:
    """The vector of eps = 1 without one of the things that make it private."""
    right = ours(SparseVector(1, 0, count, 1, grid=1))
    return {
        "the threshold's noise": Vector(Noisy("none"), right.query, count),
        "the queries' noise": Vector(right.threshold, Noisy("none"), count),
        "the factor c": Vector(right.threshold, Noisy("geometric", right.query.scale / count), count),
        "the factor 2": Vector(right.threshold, Noisy("geometric", right.query.scale / 2), count),
        "an end": Vector(right.threshold, right.query, count + 1),
    }[what]


@pytest.mark.parametrize(
    ("what", "counts"),
    [
        ("the threshold's noise", COUNTS),
        ("the queries' noise", COUNTS),
        ("the factor c", [2, 3]),
        ("the factor 2", COUNTS),
        ("an end", COUNTS),
    ],
)
def test_nothing_of_it_can_be_left_out(what: str, counts: list[int]) -> None:
    """An end one answer too late is enough."""
    for count in counts:
        vector, (one, other, _) = lacking(what, count), tightest(count + 1, 1, False)
        streams = both_ways(2, 1, (0, 1)) if what.endswith("noise") else [(one, other)]
        assert breaches(*laws(vector, streams), Loss.pure(Fraction(1))) != []


# ---- the published variants, claimed eps = 1 for sensitivity 1: a unit is eight steps, and all noise is Laplace

UNIT = 8


def published(threshold: float, query: float, tops: int, *, redrawn: bool = False) -> Vector:
    def noisy(scale: float) -> Noisy:
        return Noisy("laplace", scale * UNIT) if scale else Noisy("none")

    return Vector(noisy(threshold), noisy(query), tops, redrawn)


def lifted(vector: Vector, bottoms: int, tops: int, lowered: int = UNIT) -> float:
    """The log-ratio of so many "no" that a person lifts, and "yes" that the same person lowers, over where they lie."""
    far, said = [], (0,) * bottoms + (1,) * tops
    for low, high in product((-12 * UNIT, 0, 12 * UNIT), range(-12 * UNIT, 13 * UNIT, 3 * UNIT)):
        one, other = (low,) * bottoms + (high,) * tops, (low + UNIT,) * bottoms + (high - lowered,) * tops
        far.append(abs(log(vector.chance(one, said, 30) / vector.chance(other, said, 30))))
    return max(far)


RIGHT = {
    "1, by Lyu, Su and Li": lambda c: published(2, 4 * c, c),
    "2, by Dwork and Roth": lambda c: published(2 * c, 4 * c, c, redrawn=True),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("variant", RIGHT)
def test_the_two_right_variants_are_accepted_on_every_stream(variant: str, count: int) -> None:
    vector = RIGHT[variant](count)
    p, q = laws(vector, both_ways(3, UNIT, (-UNIT, 2 * UNIT)), 30)
    assert breaches(p, q, Loss.pure(Fraction(1))) == []
    assert lifted(vector, 5, count) <= 1 + ROUNDING


def test_the_first_is_tight_and_the_book_s_is_not() -> None:
    assert lifted(RIGHT["1, by Lyu, Su and Li"](2), 19, 2) == pytest.approx(1, abs=1e-6)
    assert lifted(RIGHT["2, by Dwork and Roth"](2), 19, 2) < 0.7


@pytest.mark.parametrize("count", COUNTS)
def test_variant_4_loses_a_quarter_of_one_and_six_times_c(count: int) -> None:
    """Lee & Clifton: the queries' noise, 4/3, is not scaled with c; (1 + 6c)/4, attained."""
    vector = published(4, 4 / 3, count)
    assert lifted(vector, 11, count) == pytest.approx((1 + 6 * count) / 4, abs=1e-6)
    p, q = laws(vector, both_ways(2, UNIT, (-UNIT, 0, UNIT, 2 * UNIT)), 30)
    assert breaches(p, q, Loss.pure(Fraction(1))) != []


@pytest.mark.parametrize("count", COUNTS)
def test_variant_4_seems_to_lose_less_to_people_who_move_all_one_way(count: int) -> None:
    """(1 + 3c)/4: with c = 1 no violation at all, so streams of counts that a new person lifts would not show it."""
    vector = published(4, 4 / 3, count)
    assert lifted(vector, 11, count, lowered=0) == pytest.approx((1 + 3 * count) / 4, abs=1e-6)
    p, q = laws(vector, both_ways(3, UNIT, (0, 3 * UNIT), monotone=True), 40)
    assert furthest(p, q) <= (1 + 3 * count) / 4 + ROUNDING
    if count == 1:
        assert breaches(p, q, Loss.pure(Fraction(1))) == []


def test_variant_5_tells_two_answers_apart_for_certain() -> None:
    """Stoddard: no noise on the queries, and no end."""
    vector = published(2, 0, 99)
    assert vector.chance((0, UNIT), (0, 1)) > 0.15
    assert vector.chance((UNIT, 0), (0, 1)) == 0
    assert breaches(*laws(vector, [((0, UNIT), (UNIT, 0))]), Loss.pure(Fraction(1))) != []


@pytest.mark.parametrize("pairs", [1, 2, 3, 5])
def test_variant_6_loses_half_an_epsilon_with_every_question(pairs: int) -> None:
    """Chen: noise of 2 on both, and no end; with 2m questions the loss is m, and nothing bounds it."""
    assert lifted(published(2, 2, 99), pairs, pairs) == pytest.approx(pairs, abs=pairs / 1000)
    p, q = laws(published(2, 2, 99), [((-UNIT, -UNIT, UNIT), (-2 * UNIT, -2 * UNIT, 2 * UNIT))])
    assert breaches(p, q, Loss.pure(Fraction(1))) != []


# ---- step by step


def test_it_prints_what_it_is_and_costs_what_it_says() -> None:
    assert str(SparseVector("0.5", 100, 3)) == "SparseVector(epsilon=1/2, threshold=100, count=3)"
    assert SparseVector("0.5", 100, 3).loss() == Loss.pure(Fraction(1, 2))
    assert SparseVector(1, 0, 1).norm is Norm.LINF


@pytest.mark.parametrize("monotone", [BOTH, ONE_WAY])
def test_its_scales_are_those_of_lyu_su_and_li(monotone: bool) -> None:
    vector = SparseVector("0.3", 7, 5, sensitivity="5/2", monotone=monotone, grid="1/8")
    first, rest = split_without_refresh("0.3", 5, monotone=monotone)
    assert first + rest == Fraction(3, 10)
    assert vector.threshold_scale == 20 / first
    assert vector.query_scale == (5 if monotone else 10) * 20 / rest


def test_it_keeps_its_threshold_and_halts_at_the_last_top() -> None:
    """D5's threshold and queries, with noise of one sign: what equals the threshold is above it."""
    vector, noise = SparseVector(1, 10, 2, grid="1/2"), Played(2, 0, 6, 0, 4)
    state: Waiting | None = vector.start(noise)
    said = []
    for units in (9, 8, 10, 9):
        assert state is not None
        state, above = vector.step(state, number(units), noise)
        said.append(above)
    assert said == [False, True, False, True]
    assert state is None
    assert [law for law, *_ in noise.asked] == ["geometric"] * 5
    assert [scale for _, scale, _ in noise.asked] == [vector.threshold_scale] + [vector.query_scale] * 4


@pytest.mark.parametrize(("drawn", "is_above"), [(6, False), (7, True)])
def test_one_unit_decides(drawn: int, is_above: bool) -> None:
    vector, noise = SparseVector(1, "0.3", 1, grid="1/10"), Played(5, drawn)
    assert vector.step(vector.start(noise), number(1, Fraction(1, 10)), noise)[1] is is_above  # 0.1 against 0.3 + 0.5


def test_the_state_does_not_print_its_secret() -> None:
    vector = SparseVector(1, 123456, 3)
    assert repr(vector.start(SYSTEM)) == "Waiting()"


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"threshold": float("nan")},
        {"count": 0},
        {"count": 2.0},
        {"count": 10**7},
        {"sensitivity": 0},
        {"grid": 0},
        {"monotone": 1},
    ],
)
def test_parameters_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        SparseVector(**{"epsilon": 1, "threshold": 0, "count": 2, **wrong})  # type: ignore[arg-type]


def test_an_answer_between_the_steps_is_refused_before_a_draw() -> None:
    noise, vector = Played(0), SparseVector(1, 0, 2)
    state = vector.start(noise)
    for wrong in (number(1, Fraction(1, 3)), OnGrid(np.array([1, 2]))):
        with pytest.raises(InvalidParameter, match="one answer at a time"):
            vector.step(state, wrong, noise)
    assert len(noise.asked) == 1
    with pytest.raises(InvalidParameter, match="a scale must be"):
        SparseVector("1/10", 0, 1000, grid=Fraction(1, 2**40)).check()


def test_the_largest_answers_do_not_wrap() -> None:
    vector = SparseVector(1, 0, 2)
    for units in (2**63 - 1, -(2**63)):
        assert vector.step(vector.start(SYSTEM), number(units), SYSTEM)[1] is (units > 0)


DRAWS = 20_000


@pytest.mark.parametrize("monotone", [BOTH, ONE_WAY])
def test_it_says_what_its_law_says_and_ten_percent_are_noticed(monotone: bool) -> None:
    """20,000 streams of four answers on the system's noise; a p-value is below 1e-7 once in 10^7 right runs.

    An epsilon that is 10 % off lies 7 or more standard errors away.
    """
    vector, noise = SparseVector(1, 0, 2, monotone=monotone, grid=1), Stocked()
    answers = (-12, -6, -9, -3)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(DRAWS):
        state: Waiting | None = vector.start(noise)
        said = []
        for answer in answers:
            if state is not None:
                state, above = vector.step(state, number(answer), noise)
                said.append(int(above))
        seen[tuple(said)] += 1
    law = ours(vector).law(answers)
    assert seen.keys() <= law.keys()
    counts, expected = np.array([seen[said] for said in law]), np.array(list(law.values()))
    assert misfit(counts, expected, DRAWS) > FALSE_ALARM
    for off in ("0.9", "1.1"):
        wrong = ours(SparseVector(off, 0, 2, monotone=monotone, grid=1)).law(answers)
        assert unlike(counts, np.array(list(wrong.values())), expected, DRAWS) < FALSE_ALARM


# ---- bounds


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_a_no_is_as_far_above_as_its_bound_says_and_not_a_step_farther(count: int, beta: float) -> None:
    """Of endless answers m steps above a threshold on the grid, one is told "no" iff its noise is above m + 1."""
    vector = SparseVector(1, 0, count, grid=1)
    m, scale = int(vector.no_bound(beta)), float(vector.threshold_scale)
    assert np.exp(-(m + 1) / scale) <= beta < np.exp(-m / scale)
    law = ours(vector)
    # an answer that was lifted to m + 1 two hundred times, told "yes" each time but with chance beta
    often = Vector(law.threshold, law.query)
    assert 1 - often.chance((m + 1,) * 200, (1,) * 200) <= beta


@pytest.mark.parametrize("queries", [1, 20, 5000])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_a_yes_is_as_far_below_as_its_bound_says_and_not_a_step_farther(queries: int, beta: float) -> None:
    """By its closed form against the threshold itself; the threshold's noise makes it rarer still."""
    vector = SparseVector(1, 0, 3, grid=1)
    m, scale = int(vector.yes_bound(beta, queries=queries)), float(vector.query_scale)

    def told(depth: int) -> float:
        return -float(np.expm1(queries * np.log1p(-np.exp(-depth / scale))))

    assert told(m + 1) <= beta * (1 + 1e-9)
    assert told(m) > beta
    if queries <= 20:
        assert 1 - ours(vector).chance((-m - 1,) * queries, (0,) * queries) <= told(m + 1)


@pytest.mark.parametrize("threshold", ["0.3", "-7.01", "1/3"])
def test_bounds_hold_for_a_threshold_between_two_steps(threshold: str) -> None:
    """The least that is told "no" with the noise at its quantile is no farther above T itself."""
    vector = SparseVector(1, threshold, 1, grid=1)
    m = int(vector.no_bound(0.1))
    state = vector.start(Played(m))
    highest = max(u for u in range(-50, 80) if not vector.step(state, number(u), Played(0))[1])
    assert highest - vector.threshold <= vector.no_bound(0.1)


def test_bounds_refuse_what_is_no_chance_and_no_number_of_queries() -> None:
    vector = SparseVector(1, 0, 2)
    for wrong in (0, 1, 1.5):
        with pytest.raises(InvalidParameter):
            vector.no_bound(wrong)
    with pytest.raises(InvalidParameter):
        vector.yes_bound(0.1, queries=0)


# ---- LeanSparse

SCHEMA = Schema([Categories("trait", (0, 1))])
BUDGETS = [Budget.of(1), Budget.of(1, "1e-9"), Budget.of(10, "1e-9"), Budget.of(100, "1e-9")]


def curator(budget: Budget, noise: Played | None = None, people: int = 10) -> Curator:
    made = Curator(Rows(SCHEMA, np.ones((people, 1), dtype=np.int64)), MemoryLedger(budget), Neighbors.ADD_REMOVE)
    made._noise = noise or made._noise  # type: ignore[assignment]
    return made


def off_by(apart: int, people: int = 10) -> Away:
    """A question whose true answer is so far away."""
    return Away(Counting.where(SCHEMA, {"trait": (1,)}), float(people - apart))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_lean_takes_whichever_has_less_noise(budget: Budget) -> None:
    for count in (1, 2, 3, 7, 100):
        sessions, vector = lean(budget, 0, count)
        wide = {s: SparseVector((budget / s).epsilon, 0, count // s) for s in (1, count)}
        noise = {s: held.threshold_scale + held.query_scale for s, held in wide.items()}
        assert sessions in noise
        assert vector == wide[sessions]
        assert noise[sessions] == min(noise.values())


def test_one_threshold_serves_in_epsilon_and_in_rho_each_answer_has_its_own_unless_noise_is_very_small() -> None:
    for count in (2, 3, 10, 1000):
        assert lean(Budget.of(1), 0, count)[0] == 1
        assert lean(Budget.of(1, "1e-9"), 0, count)[0] == lean(Budget.of(10, "1e-9"), 0, count)[0] == count
        assert lean(Budget.of(100, "1e-9"), 0, count)[0] == (1 if count <= 10 else count)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("count", "least"), [(10, 1), (10, 3), (10, 10), (10, 50), (1, 5), (7, 2)])
def test_the_sessions_tell_all_answers_are_at_least_so_many_and_cost_no_more(
    budget: Budget, count: int, least: int
) -> None:
    sessions, vector = lean(budget, 0, count, least=least)
    assert min(least, count) <= sessions <= count
    assert sessions * vector.count >= count
    price = sessions * budget.price(vector.loss())
    assert budget.amount * (1 - Fraction(1, 10**9)) < price <= budget.amount


def test_lean_sparse_answers_the_stream_of_d5_with_one_threshold() -> None:
    """T = 10, its noise 1; away by 9, 8, 12, 7.9: with 0, 3, 0 and 4 of the queries' noise."""
    noise = Played(20, 0, 60, 0, 82)
    sparse = LeanSparse(curator(Budget.of(1), noise), Budget.of(1), threshold=10, count=3, grid="1/20")
    assert [sparse.ask(off_by(apart)) for apart in (9, 8, 12, 7)] == [False, True, True, True]
    assert (sparse.sessions, sparse.left) == (1, 0)
    with pytest.raises(Halted, match="all 3 answers"):
        sparse.ask(off_by(9))


@pytest.mark.parametrize("budget", [Budget.of(1), Budget.of(1, "1e-9")], ids=str)
def test_it_costs_its_budget_at_once_and_a_no_writes_nothing(budget: Budget) -> None:
    of = curator(budget)
    sparse = LeanSparse(of, budget, threshold=10**6, count=4)
    assert of.ledger.left == 0
    sparse.ask(off_by(0))
    written = len(list(of.ledger.entries()))
    assert [sparse.ask(off_by(0)) for _ in range(50)] == [False] * 50
    assert len(list(of.ledger.entries())) == written == 2
    assert sum(e.amount for e in of.ledger.entries() if e.block is not None) <= budget.amount
    with pytest.raises(BudgetExceeded):
        LeanSparse(of, budget, threshold=0, count=4)


def test_in_rho_every_yes_is_the_last_of_a_session_that_was_paid_for() -> None:
    budget = Budget.of(1, "1e-9")
    of = curator(budget)
    sparse = LeanSparse(of, budget, threshold=-(10**6), count=5)
    assert [sparse.ask(off_by(0)) for _ in range(5)] == [True] * 5
    paid = [entry.amount for entry in of.ledger.entries() if entry.block is not None]
    assert len(paid) == 5
    assert sum(paid) <= budget.amount


def test_its_bounds_are_those_of_its_sessions_together() -> None:
    budget = Budget.of(1, "1e-9")
    sparse = LeanSparse(curator(budget), budget, threshold=0, count=5)
    assert sparse.no_bound(0.1) == sparse.vector.no_bound(each(0.1, 5)) > sparse.vector.no_bound(0.1)
    assert sparse.yes_bound(0.1, queries=50) == sparse.vector.yes_bound(0.1, queries=50)
    one = LeanSparse(curator(Budget.of(1)), Budget.of(1), threshold=0, count=5)
    assert one.no_bound(0.1) == one.vector.no_bound(0.1)


def test_the_monotone_saving_is_given_only_to_questions_that_prove_it() -> None:
    """|q - v| falls for some and rises for others; q - v rises for everybody under add-remove neighbours."""
    above, either = Away(Counting.where(SCHEMA), 1.0, +1), Away(Counting.where(SCHEMA), 1.0)
    sparse = LeanSparse(curator(Budget.of(1)), Budget.of(1), threshold=10**6, count=2, monotone=True)
    assert sparse.ask(above) is False
    for question in (either, Away(Counting.where(SCHEMA), 1.0, -1)):
        with pytest.raises(InvalidParameter, match="monotone"):
            sparse.ask(question)


GAMES = 600


@pytest.mark.parametrize("budget", [Budget.of(1), Budget.of(1, "1e-6")], ids=str)
def test_an_error_is_left_untold_as_often_as_the_law_says_and_no_more_often_than_the_bound(budget: Budget) -> None:
    """600 sessions of three answers, all a step above the bound of beta = 0.2, all half of it, or below it all.

    Each count falls outside the quantiles of its exact law once in 10^7 runs.
    """
    for share, rare in ((1.0, True), (0.5, False)):
        untold = 0
        for _ in range(GAMES):
            sparse = LeanSparse(curator(budget), budget, threshold=5, count=3, grid=1)
            far = int(sparse.no_bound(0.2) * share) + 1
            untold += sum(sparse.ask(off_by(5 + far)) for _ in range(3)) < 3
        told = ours(sparse.vector).chance((far,) * sparse.vector.count, (1,) * sparse.vector.count) ** sparse.sessions
        assert (1 - told <= 0.2) is rare
        low, high = binom.ppf((FALSE_ALARM / 2, 1 - FALSE_ALARM / 2), GAMES, 1 - told)
        assert low <= untold <= high


def test_the_helpers_list_every_conversation_once() -> None:
    """Of the law: two tops of three answers, halted at the second; the chances add up to one."""
    vector = ours(SparseVector(1, 0, 2, grid=1))
    said: Sequence[tuple[int, ...]] = list(vector.law((0, 1, -1)))
    assert set(said) == {(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1)}
    assert len(said) == 7
    assert sum(vector.law((0, 1, -1)).values()) == pytest.approx(1, abs=1e-12)
