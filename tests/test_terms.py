"""The terms of a session: what they promise, recomputed from closed forms; what they go by; a rehearsal on nobody."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from inspect import signature
from itertools import islice, pairwise
from math import ceil, inf, log, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from doubles import Rows
from scipy.optimize import brentq
from scipy.stats import binom, norm, poisson

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.away import Away
from tacit.domain.query import Counting, Linear
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.workload import Workload
from tacit.errors import InvalidInput, InvalidParameter, InvalidQuery, NoSuchGuarantee
from tacit.mechanisms.forecast import Imagined, random_conjunctions, simulate
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.online import opened
from tacit.mechanisms.online_book import book_bound
from tacit.mechanisms.sparse import lean
from tacit.mechanisms.terms import _SHARES, FIRST, LEARNT, Terms, _alarms, _counts, choose
from tacit.privacy.budget import Budget, Currency

SCHEMA = Schema([Categories(f"c{i}", tuple(range(10))) for i in range(6)])
PURE, RHO = Budget.of(1), Budget.of(1, "1e-9")
BOTH = [pytest.param(PURE, id="epsilon"), pytest.param(RHO, id="rho")]


# ---- the same, by formulas of its own


def epsilon_of(rho: float) -> float:
    return float(brentq(lambda e: e * tanh(e / 2) - rho, 0, rho + 2 * sqrt(rho) + 1))


def scales(budget: Budget, share: Fraction, count: int, sittings: int = 1) -> tuple[float, float, int]:
    """The threshold's and a query's scale, in people, and of how many sessions: whichever have less noise in all."""
    whole, found = float(budget.amount * (1 - share)), []
    for sessions in {min(sittings, count), count}:
        part = whole / sessions if budget.currency is Currency.EPSILON else epsilon_of(whole / sessions)
        each = ceil(count / sessions)
        first = part / (1 + (2 * each) ** (2 / 3))
        found.append((1 / first, 2 * each / (part - first), sessions))
    return min(found, key=lambda held: held[0] + held[1])


def paid_within(budget: Budget, share: Fraction, count: int, beta: float) -> float:
    """On the line: the quantile of the largest of so many noises."""
    part, tail = float(budget.amount * share) / count, -np.expm1(np.log1p(-beta) / count)
    return log(1 / tail) / part if budget.currency is Currency.EPSILON else norm.isf(tail / 2) * sqrt(1 / (2 * part))


def few(spare: int, beta: float) -> float:
    """The mean of alarms of which, by Chernoff's bound, there are no more than `spare` but for beta."""
    m = spare + 1
    return float(brentq(lambda mu: m * log(m / mu) - m + mu + log(beta), 1e-12, m))


def promised(budget: Budget, n: float, k: int, count: int, share: Fraction, nats: float, beta: float) -> float:
    """The error of a free answer, on the line."""
    spare = max(1, count // 8) if count > 1 else 0
    threshold, query, sessions = scales(budget, share, count)
    alarm = query * max(log(k / few(spare, beta / 4)), 0.0)
    bar = n * sqrt(nats / (2 * max(count - spare, 1))) + 2 * paid_within(budget, share, count, beta / 4) + alarm
    return bar + threshold * log(1 / -np.expm1(np.log1p(-beta / 2) / sessions))


@pytest.mark.parametrize("budget", BOTH)
@pytest.mark.parametrize("ways", [0, 1, 2])
@pytest.mark.parametrize(("n", "k", "beta"), [(10**6, 10**5, 0.05), (10**5, 300, 0.3), (10**8, 10**7, 1e-4)])
def test_the_promise_is_the_least_of_all_that_are_tried_and_is_that_of_the_formulas(
    budget: Budget, ways: int, n: int, k: int, beta: float
) -> None:
    terms = choose(SCHEMA, budget, n, queries=k, ways=ways, beta=beta)
    rest = budget * (1 - FIRST) if ways else budget
    nats = LEARNT.get(ways, log(10**6))
    assert (terms.ways, terms.nats, terms.beta, terms.queries) == (ways, nats, beta, k)
    errors = {
        (count, share): promised(rest, n, k, count, share, nats, beta) for count in _counts(k) for share in _SHARES
    }
    assert terms.error == pytest.approx(errors[terms.count, terms.share], abs=10)
    assert terms.error <= min(errors.values()) + 10
    assert terms.paid_error == pytest.approx(paid_within(rest, terms.share, terms.count, beta / 4), abs=2.5)
    assert terms.threshold < terms.error


def test_the_least_and_the_most_that_may_be_paid_for_are_tried_and_all_between_in_steps_of_a_quarter() -> None:
    for most in (1, 2, 17, 10**5, 10**6):
        counts = _counts(most)
        assert counts[0] == 1
        assert counts[-1] == most
        assert all(low < high <= max(1.34 * low, low + 1) for low, high in pairwise(counts))


@pytest.mark.parametrize("spare", [0, 1, 5, 100])
@pytest.mark.parametrize("beta", [0.1, 0.0125, 1e-6])
def test_false_alarms_of_that_mean_pass_what_is_spared_no_more_often_than_said(spare: int, beta: float) -> None:
    mean = _alarms(spare, beta)
    assert poisson.sf(spare, mean) <= beta
    for k in (spare + 2, 10 * (spare + 1), 10**6):
        assert binom.sf(spare, k, min(mean / k, 1)) <= beta
    assert poisson.sf(spare, 3 * mean + 1e-9) > beta / 3  # and is not far below


def test_a_session_promises_what_its_terms_did() -> None:
    """A paid answer somewhat less, as the terms keep a quarter of beta for it and the session a half."""
    for budget in (PURE, RHO):
        for sittings in (1, 20):
            terms = choose(SCHEMA, budget, 10**6, queries=1000, sittings=sittings, ways=0)
            curator = Curator(
                Rows(SCHEMA, np.zeros((0, 6), dtype=np.int64)), MemoryLedger(budget), Neighbors.ADD_REMOVE
            )
            asked = opened(curator, budget, terms, total=10**6)
            assert asked._free_error == terms.error
            assert 0.9 * terms.paid_error < asked._paid_error <= terms.paid_error
            assert (asked.left, asked.confidence) == (terms.count, 1 - terms.beta)


# ---- that the paid answers last

EIGHT = Schema([Categories(name, (0, 1)) for name in "abc"])


@pytest.mark.parametrize("seen", [0, -1], ids=["the least surprise", "the greatest"])
@pytest.mark.parametrize("people", [40, 3000])
def test_no_analyst_and_no_noise_within_its_bound_makes_more_surprises_than_are_paid_for(
    people: int, seen: int
) -> None:
    """From the uniform table and with every value off by as much as a paid one may be, on either side.

    A question is a surprise if it may be one without a false alarm: off by the threshold, less what is kept for these.
    """
    rng, budget = np.random.default_rng(0), Budget.of(900 if people == 40 else 60)
    terms = choose(EIGHT, budget, people, queries=50, ways=0)
    spare = max(1, terms.count // 8)
    share, query = terms.share, lean(budget * (1 - terms.share), 0, terms.count)[1]
    alarm = float(query.query_scale * query.grid) * max(log(50 / _alarms(spare, terms.beta / 4)), 0.0)
    assert share in _SHARES
    questions = [
        Counting.where(EIGHT, {name: (v,) for name, v in zip("abc", cell, strict=True) if v < 2})
        for cell in np.ndindex(3, 3, 3)
    ] + [Linear.of(EIGHT, ("a", "b", "c"), rng.random(8)) for _ in range(10)]
    most = 0
    for trial in range(24):
        x = np.eye(8, dtype=int)[trial % 8] * people
        x = x if trial < 8 else rng.multinomial(people, rng.dirichlet(np.full(8, 0.2)))
        table = Rows(EIGHT, np.array(np.unravel_index(np.repeat(np.arange(8), x), (2, 2, 2))).T)
        truth = np.array([one(*table.counts(one.reads)).item() for one in questions])
        rule: Any = terms.rule
        assert isinstance(rule, MatchingWeights)
        held, surprises = rule.start(EIGHT, float(people)), 0
        while surprises <= terms.count:
            believed = np.array([held.answer(one).item() for one in questions])
            public = [Away(one, v).public for one, v in zip(questions, believed, strict=True)]
            apart = np.abs(truth - public)
            legal = sorted(np.flatnonzero(apart >= terms.threshold - alarm).tolist(), key=lambda i: apart[i])
            if not legal:
                break
            place = legal[seen]
            value = truth[place] + rng.choice([-1, 1]) * terms.paid_error
            held = rule(held, questions[place], float(value), -1 if value < believed[place] else 1)
            surprises += 1
        most = max(most, surprises)
    assert 1 <= most <= terms.count - spare


# ---- what it goes by


@pytest.mark.parametrize("delta", [0, "1e-9"])
def test_more_budget_or_more_people_promise_more(delta: Any) -> None:
    by_budget = [choose(SCHEMA, Budget.of(e, delta), 10**6, queries=10**5).error for e in ("0.1", "0.3", 1, 3, 10)]
    assert by_budget == sorted(by_budget, reverse=True)
    assert len(set(by_budget)) == 5
    terms = [choose(SCHEMA, Budget.of(1, delta), n, queries=10**5) for n in (10**4, 10**5, 10**6, 10**7, 10**8)]
    by_people = [held.error / held.people for held in terms]
    assert by_people == sorted(by_people, reverse=True)
    assert [held.ways for held in terms] == sorted(held.ways for held in terms)
    assert terms[-1].count > terms[0].count


@pytest.mark.parametrize("budget", BOTH)
def test_more_questions_more_to_learn_a_rarer_failure_or_more_sittings_promise_less(budget: Budget) -> None:
    ways: list[tuple[str, list[Any]]] = [
        ("queries", [10**3, 10**4, 10**6, 10**9]),
        ("nats", [0.001, 0.01, 0.1, 1, 10]),
        ("beta", [0.5, 0.05, 1e-3, 1e-9]),
        ("sittings", [1, 2, 10, 100]),
    ]
    for name, values in ways:
        errors = [choose(SCHEMA, budget, 10**6, **{"queries": 10**5, name: value}).error for value in values]
        assert errors == sorted(errors), name
        if not (name == "sittings" and budget is RHO):  # there every answer has a threshold of its own anyway
            assert errors[0] < errors[-1], name


def test_with_sittings_a_restart_loses_no_more_than_one_of_them() -> None:
    for sittings in (1, 3, 50):
        terms = choose(SCHEMA, PURE, 10**6, queries=10**5, sittings=sittings)
        sessions, vector = lean(PURE * (1 - FIRST) * (1 - terms.share), terms.threshold, terms.count, least=sittings)
        assert sessions >= min(sittings, terms.count)
        assert vector.count == ceil(terms.count / sessions)
        assert terms.sittings == sittings


def test_two_columns_are_bought_where_they_can_be_fitted_and_an_average_pair_is_above_its_noise() -> None:
    assert [choose(SCHEMA, RHO, n, queries=10**5).ways for n in (3000, 10**6)] == [1, 2]
    wide = Schema([Categories(f"c{i}", tuple(range(10))) for i in range(7)])  # 10^7 cells
    assert choose(wide, RHO, 10**6, queries=10**5).ways == 1
    narrow = Schema([Categories("a", tuple(range(10))), Categories("b", (0, 1))])
    assert choose(narrow, RHO, 10**6, queries=10**5).ways == 1


def test_they_are_the_setting_s_and_well_below_the_book_s() -> None:
    """n = 10^6, |X| = 10^6, (1, 1e-9), 10^5 questions: 1.2 %, and from the uniform table 7 %; the book says nothing."""
    terms = choose(SCHEMA, RHO, 10**6, queries=10**5)
    assert 0.010 < terms.error / terms.people < 0.013
    assert terms.count <= 0.05 * terms.queries
    uniform = choose(SCHEMA, RHO, 10**6, queries=10**5, ways=0)
    assert 0.065 < uniform.error / uniform.people < 0.075
    assert book_bound(1, 1e-9, 0.05, people=10**6, universe=10**6, queries=10**5) > 4 * uniform.error
    # Setting C of theory 4.1, tightened: .426
    assert choose(SCHEMA, RHO, 50_000, queries=10**5, ways=0).error < 0.33 * 50_000


def test_they_are_made_of_public_facts_alone() -> None:
    """Neither takes a curator or data; what a rehearsal is held before is drawn from its seed."""
    for function in (choose, simulate):
        assert "curator" not in signature(function).parameters
        assert "data" not in signature(function).parameters
    assert choose(SCHEMA, RHO, 10**6) == choose(SCHEMA, RHO, 10**6)


def test_they_say_in_words_what_they_are() -> None:
    terms = Terms(1e6, 10**5, 9853, 169, 0.0058, 2, FIRST, Fraction(1, 5), 11871.2, 702.0, 0.05, 1, 0.01)
    assert str(terms) == (
        "For 1,000,000 people and up to 100,000 questions: an answer that seems more than 9,853 people (0.99%) off is "
        "paid for, 169 times; all others are free. With probability 0.95 every free answer is within 11,871 people "
        "(1.19%) and every paid one within 702. It begins with bought two-way marginals; the paid answers last until "
        "it has learnt 0.01 nats."
    )
    assert "begins with the uniform table" in str(replace(terms, ways=0))
    assert "begins with bought one-way marginals" in str(replace(terms, ways=1))


def test_the_rule_is_the_one_that_was_reckoned_with() -> None:
    terms = choose(SCHEMA, RHO, 10**6, queries=10**5)
    assert terms.slack == terms.paid_error / 10**6
    assert terms.rule == MatchingWeights(terms.alpha, terms.slack, terms.nats)
    spare = terms.count // 8
    assert terms.rule.max_updates(SCHEMA) == terms.count - spare
    assert replace(terms, paid_error=2e6).slack < 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": 0},
        {"people": -3},
        {"people": "many"},
        {"people": inf},
        {"queries": 0},
        {"queries": 2.5},
        {"nats": 0},
        {"nats": -1},
        {"nats": float("nan")},
        {"nats": inf},
        {"ways": 3},
        {"ways": -1},
        {"sittings": 0},
        {"beta": 0},
        {"beta": 1},
        {"grid": 0},
    ],
    ids=str,
)
def test_terms_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"Nothing was (spent|drawn)"):
        choose(SCHEMA, RHO, **{"people": 10**6, **wrong})


def test_where_nothing_is_proved_it_says_so() -> None:
    with pytest.raises(NoSuchGuarantee, match=r"with 50 people .* no error below all of them is proved for 10000 ques"):
        choose(SCHEMA, PURE, 50)


# ---- the rehearsal

SMALL = Schema([Categories("a", (0, 1, 2)), Integers("age", 0, 9), Categories("b", (0, 1))])


@pytest.mark.parametrize("budget", BOTH)
def test_a_rehearsal_tells_how_many_were_free_and_how_far_off_the_worst_was(budget: Budget) -> None:
    terms = choose(SMALL, budget, 10**6, queries=10**4)
    forecast = simulate(SMALL, budget, terms, asked=300)
    assert forecast.asked == 300
    assert forecast.paid <= terms.count
    assert forecast.free == 1 - forecast.paid / 300 > 0.9
    assert forecast.last is None
    assert 0 < forecast.worst < 2 * terms.error  # beyond it once in 20; twice as far would take 30 scales of noise
    said = (
        f"Of 300 rehearsed questions {forecast.free:.1%} were free; {forecast.paid:,} of {terms.count:,} paid answers"
    )
    assert str(forecast).startswith(said)
    assert "they lasted" in str(forecast)


def test_a_question_that_is_asked_again_is_paid_once_and_the_last_is_where_it_was_used_up() -> None:
    terms = replace(choose(SMALL, RHO, 10**6, queries=10**4), threshold=-(10**6), count=3)
    asked = [Counting.where(SMALL, {"age": range(low, 10)}) for low in (1, 1, 2, 2, 3, 3, 3, 4, 5)]
    forecast = simulate(SMALL, RHO, terms, questions=asked)
    assert (forecast.asked, forecast.paid, forecast.last) == (9, 3, 5)
    assert forecast.free == pytest.approx(6 / 9)
    assert "the last was used up by question 5" in str(forecast)


def test_a_rehearsal_needs_a_question_and_a_number_of_them() -> None:
    terms = choose(SMALL, RHO, 10**6)
    with pytest.raises(InvalidParameter, match="needs a question"):
        simulate(SMALL, RHO, terms, questions=[])
    for wrong in (0, -1, 2.5, "x"):
        with pytest.raises(InvalidParameter):
            simulate(SMALL, RHO, terms, asked=wrong)  # type: ignore[arg-type]


def test_its_people_and_its_questions_are_of_the_seed_and_its_noise_is_not() -> None:
    one, same, other = (Imagined(SMALL, 10**6, seed) for seed in (3, 3, 4))
    assert np.array_equal(*(held.counts([("a", "age", "b")])[0] for held in (one, same)))
    assert not np.array_equal(*(held.counts([("a", "age", "b")])[0] for held in (one, other)))
    assert list(islice(random_conjunctions(SMALL, 3), 50)) == list(islice(random_conjunctions(SMALL, 3), 50))
    assert list(islice(random_conjunctions(SMALL, 3), 50)) != list(islice(random_conjunctions(SMALL, 4), 50))
    terms = choose(SMALL, RHO, 10**6)
    worst = {simulate(SMALL, RHO, terms, asked=20, seed=3).worst for _ in range(3)}
    assert len(worst) > 1  # equal by chance once in 10^9 runs: each is noise of two thousand people


def test_the_imagined_people_agree_with_themselves_but_for_rounding() -> None:
    people = Imagined(SMALL, 10**6, 0)
    whole, pair, one = people.counts([("a", "age", "b"), ("b", "a"), ("age",)])
    assert abs(int(whole.sum()) - 10**6) <= 30
    assert np.abs(whole.sum(axis=1).T - pair).max() <= 6
    assert np.abs(whole.sum(axis=(0, 2)) - one).max() <= 4
    assert whole.dtype == np.int64
    independent = np.einsum("i,j->ij", pair.sum(axis=1), pair.sum(axis=0)) / pair.sum()
    assert max(np.abs(Imagined(SMALL, 10**6, s).counts([("b", "a")])[0] - independent).max() for s in range(5)) > 10**4


def test_people_of_too_many_cells_cannot_be_imagined() -> None:
    wide = Schema([Categories(f"c{i}", tuple(range(10))) for i in range(8)])
    with pytest.raises(InvalidQuery, match="too many cells"):
        Imagined(wide, 100, 0).counts([wide.names])


def test_random_conjunctions_are_of_one_to_three_columns_and_of_ordered_ones_an_interval() -> None:
    questions = list(islice(random_conjunctions(SMALL), 300))
    assert {len(one.columns) for one in questions} == {1, 2, 3}
    for one in questions:
        one.check(SMALL)
        if "age" in one.columns:
            assert isinstance(one.chosen[one.columns.index("age")], range)
    alone = Schema([Integers("age", 0, 9)])
    assert {one.columns for one in islice(random_conjunctions(alone), 20)} == {("age",)}


def test_a_rehearsal_of_weighted_questions_on_replaced_people_works_as_well() -> None:
    weights = np.random.default_rng(0).random((40, 30))
    asked = [Linear.of(SMALL, ("a", "age"), row) for row in weights]
    terms = choose(SMALL, PURE, 10**6)
    forecast = simulate(SMALL, PURE, terms, questions=asked, neighbors=Neighbors.REPLACE_ONE)
    assert forecast.asked == 40
    assert forecast.worst < 2 * terms.error
    with pytest.raises(InvalidInput):
        simulate(SMALL, PURE, terms, questions=[Workload((asked[0],))])  # type: ignore[list-item]
