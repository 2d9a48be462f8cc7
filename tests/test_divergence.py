"""Divergences (Defs. 3.5, 3.6): closed forms, Lemmas 3.17 and 3.18, and what privacy does and does not say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise
from math import exp, inf, log, tanh

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tacit.errors import InvalidBudget, InvalidParameter
from tacit.privacy.divergence import (
    approx_max_divergence,
    hockey_stick,
    is_private,
    kl,
    kl_bound,
    kl_bound_tight,
    max_divergence,
    privacy_loss,
    renyi,
    simplex,
    total_variation,
)
from tacit.privacy.promise import check_delta, group_privacy, group_rho, loss_tail, utility_bounds

Law = list[Fraction]
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
YES, NO = [3 * QUARTER, QUARTER], [QUARTER, 3 * QUARTER]  # randomized response with two fair coins (Claim 3.5)


def laws(size: int, least: int = 0) -> st.SearchStrategy[Law]:
    weights = st.lists(st.integers(least, 20), min_size=size, max_size=size).filter(any)
    return weights.map(lambda w: [Fraction(x, sum(w)) for x in w])


pairs = st.integers(2, 5).flatmap(lambda n: st.tuples(laws(n), laws(n)))
positive_pairs = st.integers(2, 5).flatmap(lambda n: st.tuples(laws(n, 1), laws(n, 1)))
epsilons = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2)])
quick = settings(max_examples=80, deadline=None, derandomize=True)


def events(n: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1)))


class TestClosedForms:
    def test_randomized_response_is_ln_3_private_and_no_better(self) -> None:
        """Errata, E5: the truth is told when the first coin shows tails; yes follows no with heads, heads: 1/4."""
        coins = [(first, second) for first in ("heads", "tails") for second in ("heads", "tails")]

        def answer(truth: bool, first: str, second: str) -> bool:
            return truth if first == "tails" else second == "heads"

        laws_of = [
            [Fraction(sum(answer(t, *c) is said for c in coins), 4) for said in (True, False)] for t in (True, False)
        ]
        assert laws_of == [YES, NO]
        assert max_divergence(YES, NO) == pytest.approx(1.098612289, rel=5e-10)
        assert max_divergence(YES, NO) == pytest.approx(log(3), rel=1e-15)
        assert is_private(YES, NO, "1.098612289", 0)
        assert not is_private(YES, NO, "1.098612288", 0)

    def test_two_coins_by_hand(self) -> None:
        assert kl(YES, NO) == pytest.approx(log(3) / 2, rel=1e-15)
        assert total_variation(YES, NO) == HALF
        assert privacy_loss(YES, NO, 0) == -privacy_loss(YES, NO, 1) == pytest.approx(log(3), rel=1e-15)
        assert renyi(YES, NO, 2) == pytest.approx(log(9 / 4 + 1 / 12), rel=1e-15)
        assert hockey_stick(YES, NO, 0) == HALF
        assert float(hockey_stick(YES, NO, "0.5")) == pytest.approx(0.75 - exp(0.5) / 4, rel=1e-14)
        assert hockey_stick(YES, NO, 2) == 0
        assert approx_max_divergence(YES, NO, "0.25") == pytest.approx(log(2), rel=1e-15)

    def test_what_cannot_happen_under_the_other_law_is_infinitely_telling(self) -> None:
        sure, never = [HALF, HALF, Fraction(0)], [HALF, Fraction(0), HALF]
        assert privacy_loss(sure, never, 1) == kl(sure, never) == max_divergence(sure, never) == inf
        assert renyi(sure, never, 2) == approx_max_divergence(sure, never, "0.1") == inf
        assert approx_max_divergence(sure, never, HALF) == 0
        assert hockey_stick(sure, never, 1000) == HALF
        assert is_private(sure, never, 1000, HALF)
        assert not is_private(sure, never, 1000, "0.499999999")

    def test_floats_are_taken_at_their_word(self) -> None:
        truth = exp(1) / (1 + exp(1))  # 0.7310585786, the vector of general randomized response
        assert truth == pytest.approx(0.7310585786, rel=5e-10)
        p, q = [truth, 1 - truth], [1 - truth, truth]
        assert max_divergence(p, q) == pytest.approx(1, rel=1e-14)
        assert is_private(p, q, 1 + 1e-14, 0)
        assert simplex(np.array([0.5, 0.5]).tolist()) == (HALF, HALF)


class TestDefinitions:
    @quick
    @given(pairs, epsilons)
    def test_the_hockey_stick_is_the_worst_event(self, pair: tuple[Law, Law], epsilon: Fraction) -> None:
        p, q = pair
        excess = [float(sum(p[i] for i in s)) - exp(epsilon) * float(sum(q[i] for i in s)) for s in events(len(p))]
        assert float(hockey_stick(p, q, epsilon)) == pytest.approx(max(0.0, *excess), abs=1e-14)

    @quick
    @given(pairs, st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 3)]))
    def test_the_approximate_max_divergence_is_the_worst_event(self, pair: tuple[Law, Law], delta: Fraction) -> None:
        p, q = pair
        ratios = []
        for s in events(len(p)):
            above, below = sum(p[i] for i in s) - delta, sum(q[i] for i in s)
            if above > 0:
                ratios.append(log(above / below) if below else inf)
        assert approx_max_divergence(p, q, delta) == pytest.approx(max(ratios), abs=1e-13)
        if not delta:
            assert approx_max_divergence(p, q, 0) == max_divergence(p, q)

    @quick
    @given(pairs, st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(2)]), st.integers(0, 10))
    def test_privacy_is_any_of_its_three_definitions(
        self, pair: tuple[Law, Law], epsilon: Fraction, tenths: int
    ) -> None:
        """Remark 3.2, with the events counted one by one."""
        p, q = pair
        delta = min(Fraction(tenths, 10), Fraction(9, 10))
        both = (p, q), (q, p)
        claimed = is_private(p, q, epsilon, delta)
        assert claimed == all(hockey_stick(*two, epsilon) <= delta for two in both)
        assert claimed == all(approx_max_divergence(*two, delta) <= epsilon for two in both)
        assert claimed == all(
            float(sum(x[i] for i in s)) <= exp(epsilon) * float(sum(y[i] for i in s)) + float(delta) + 1e-15
            for x, y in both
            for s in events(len(x))
        )

    @quick
    @given(positive_pairs)
    def test_renyi_divergences_grow_from_kl_to_the_maximum(self, pair: tuple[Law, Law]) -> None:
        p, q = pair
        orders = [renyi(p, q, alpha) for alpha in ("0.5", "0.999999", 1, "1.000001", 2, 10, 1000, 10**5)]
        assert all(one <= other + 1e-12 for one, other in pairwise(orders))
        assert orders[2] == kl(p, q)
        assert orders[3] == pytest.approx(kl(p, q), abs=1e-4)
        assert max_divergence(p, q) - 1e-3 < orders[-1] <= max_divergence(p, q) + 1e-12

    @quick
    @given(positive_pairs, st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(50)]))
    def test_a_pure_step_is_half_its_square_in_rho(self, pair: tuple[Law, Law], alpha: Fraction) -> None:
        """Bun & Steinke 2016, Prop. 1.4, and the sharper alpha eps tanh(eps/2)."""
        p, q = pair
        epsilon = max(max_divergence(p, q), max_divergence(q, p))
        assert renyi(p, q, alpha) <= float(alpha) * epsilon * tanh(epsilon / 2) + 1e-12
        assert renyi(p, q, alpha) <= float(alpha) * epsilon**2 / 2 + 1e-12

    @quick
    @given(pairs, epsilons, st.data())
    def test_nothing_is_learnt_by_computing_on_the_answer(
        self, pair: tuple[Law, Law], epsilon: Fraction, data: st.DataObject
    ) -> None:
        """Prop. 2.1: any randomised map of the outcomes."""
        p, q = pair
        channel = [data.draw(laws(3)) for _ in p]
        after = [
            [sum((x * row[o] for x, row in zip(law, channel, strict=True)), Fraction(0)) for o in range(3)]
            for law in pair
        ]
        assert hockey_stick(*after, epsilon) <= hockey_stick(p, q, epsilon)
        assert total_variation(*after) <= total_variation(p, q)
        assert max_divergence(*after) <= max_divergence(p, q) + 1e-15
        assert kl(*after) <= kl(p, q) + 1e-15

    @pytest.mark.parametrize("delta", [0, "0.5", "0.999"])
    def test_what_answers_two_databases_differently_without_chance_is_never_private(self, delta: str | int) -> None:
        """Section 2.3: between them lies a chain of neighbours, and somewhere on it the answer changes."""
        one, other = [Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]
        assert not is_private(one, other, 1000, delta)
        assert is_private(one, one, 0, 0)


def least_distance(p: Law, q: Law, epsilon: float, *, both_move: bool, both_ways: bool) -> float:
    """The least TV (the larger of two, if both laws move) to laws p', q' with p' <= e^eps q' (and q' <= e^eps p')."""
    n, tilt = len(p), exp(epsilon)
    # variables p', q', |p - p'|, |q - q'|, t; minimise t
    eye, zero = np.eye(n), np.zeros((n, n))
    column = np.zeros((n, 1))
    a, b = np.array([float(x) for x in p]), np.array([float(x) for x in q])
    rows: list[tuple[Sequence[np.ndarray], np.ndarray]] = [
        ([eye, -tilt * eye, zero, zero, column], np.zeros(n)),
        ([eye, zero, -eye, zero, column], a),
        ([-eye, zero, -eye, zero, column], -a),
        ([zero, eye, zero, -eye, column], b),
        ([zero, -eye, zero, -eye, column], -b),
        ([np.zeros((1, 2 * n)), np.full((1, n), 0.5), np.zeros((1, n)), -np.ones((1, 1))], np.zeros(1)),
        ([np.zeros((1, 3 * n)), np.full((1, n), 0.5), -np.ones((1, 1))], np.zeros(1)),
    ]
    if both_ways:
        rows.append(([-tilt * eye, eye, zero, zero, column], np.zeros(n)))
    equal = [
        ([np.ones((1, n)), np.zeros((1, 3 * n + 1))], np.ones(1)),
        ([np.zeros((1, n)), np.ones((1, n)), np.zeros((1, 2 * n + 1))], np.ones(1)),
    ]
    if not both_move:
        equal.append(([zero, eye, zero, zero, column], b))
    found = linprog(
        c=[0.0] * (4 * n) + [1.0],
        A_ub=np.vstack([np.hstack(row) for row, _ in rows]),
        b_ub=np.concatenate([side for _, side in rows]),
        A_eq=np.vstack([np.hstack(row) for row, _ in equal]),
        b_eq=np.concatenate([side for _, side in equal]),
        bounds=(0, None),
    )
    assert found.success
    return float(found.fun)


class TestLemma317:
    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(pairs, epsilons)
    def test_one_direction_is_one_law_moved_by_delta(self, pair: tuple[Law, Law], epsilon: Fraction) -> None:
        """Part 1: the least TV(p, p') with p' <= e^eps q is exactly delta."""
        p, q = pair
        least = least_distance(p, q, float(epsilon), both_move=False, both_ways=False)
        assert least == pytest.approx(float(hockey_stick(p, q, epsilon)), abs=1e-9)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(pairs, epsilons)
    def test_both_directions_are_both_laws_moved_by_a_share(self, pair: tuple[Law, Law], epsilon: Fraction) -> None:
        """Part 2, both ways (errata, E16b): the least common TV is exactly delta/(e^eps + 1)."""
        p, q = pair
        delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        least = least_distance(p, q, float(epsilon), both_move=True, both_ways=True)
        assert least == pytest.approx(float(delta) / (exp(epsilon) + 1), abs=1e-9)

    def test_part_2_needs_both_directions(self) -> None:
        """Errata, E16b: moved laws that are close one way only leave the other way open."""
        p, q = [HALF, HALF, Fraction(0)], [QUARTER, QUARTER, HALF]
        assert least_distance(p, q, 1.0, both_move=True, both_ways=False) == pytest.approx(0, abs=1e-12)
        assert hockey_stick(p, q, 1) == 0
        assert hockey_stick(q, p, 1) == HALF


class TestLemma318:
    def test_vectors(self) -> None:
        assert float(kl_bound(1)) == pytest.approx(1.718281828, rel=5e-10)
        assert float(kl_bound_tight(1)) == pytest.approx(0.4621171573, rel=5e-10)
        assert kl_bound(0) == kl_bound_tight(0) == 0

    @quick
    @given(positive_pairs)
    def test_no_pair_has_a_larger_mean_loss(self, pair: tuple[Law, Law]) -> None:
        p, q = pair
        epsilon = max(max_divergence(p, q), max_divergence(q, p))
        assume(epsilon > 0)
        assert kl(p, q) <= float(kl_bound_tight(epsilon)) * (1 + 1e-12)
        assert kl_bound_tight(epsilon) <= Fraction(epsilon) ** 2 / 2 * (1 + Fraction(1, 10**12))
        assert 2 * kl_bound_tight(epsilon) <= kl_bound(epsilon) * (1 + Fraction(1, 10**12))

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
    def test_randomized_response_attains_it(self, epsilon: float) -> None:
        truth = exp(epsilon) / (1 + exp(epsilon))
        assert kl([truth, 1 - truth], [1 - truth, truth]) == pytest.approx(float(kl_bound_tight(epsilon)), rel=1e-9)


class TestPromise:
    def test_a_loss_within_epsilon_is_not_promised_with_probability_one_minus_delta(self) -> None:
        """Errata, E3: (0.1, 0.01)-close both ways, and yet the loss passes 0.1 twelve times as often as delta."""
        p, q = [Fraction("0.1205"), Fraction("0.8795")], [Fraction("0.1"), Fraction("0.9")]
        assert is_private(p, q, "0.1", "0.01")
        passing = sum(x for o, x in enumerate(p) if privacy_loss(p, q, o) > 0.1)
        assert passing == Fraction("0.1205") > 12 * Fraction("0.01")
        assert privacy_loss(p, q, 0) == pytest.approx(0.18648, abs=1e-5)
        assert passing <= loss_tail("0.1", "0.01", "0.18")

    @quick
    @given(pairs, epsilons)
    def test_the_converse_holds(self, pair: tuple[Law, Law], epsilon: Fraction) -> None:
        p, q = pair
        passing = sum((a for a, b in zip(p, q, strict=True) if not b or a > b * Fraction(exp(epsilon))), Fraction(0))
        assert hockey_stick(p, q, epsilon) <= passing

    @quick
    @given(pairs, epsilons, st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(3)]))
    def test_the_tail_of_the_loss(self, pair: tuple[Law, Law], epsilon: Fraction, more: Fraction) -> None:
        p, q = pair
        delta = hockey_stick(p, q, epsilon)
        assume(0 < delta < 1)
        threshold = epsilon + more
        tail = sum((a for a, b in zip(p, q, strict=True) if not b or log(a / b if a else 1) > threshold), Fraction(0))
        bound = loss_tail(epsilon, delta, threshold)
        assert tail <= bound
        assert float(bound) == pytest.approx(min(1.0, float(delta) / (1 - exp(-more))), rel=1e-13)

    def test_the_tail_is_attained(self) -> None:
        """All of P above e^eps Q sits at one loss just above the threshold."""
        q = Fraction(1, 100)
        p = q * Fraction("2.7182818285")  # a loss just above 1
        one, other = [p, 1 - p], [q, 1 - q]
        delta = hockey_stick(one, other, "0.5")
        assert float(loss_tail("0.5", delta, 1)) == pytest.approx(float(p), rel=1e-9)

    def test_group_privacy_vectors(self) -> None:
        epsilon, delta = group_privacy("0.5", "1e-6", 3)
        assert epsilon == Fraction(3, 2)
        assert float(delta) == pytest.approx(5.367003099e-6, rel=5e-10)
        assert group_privacy("0.1", 0, 10) == (1, 0)
        assert group_privacy(0, "0.1", 3) == (0, Fraction(3, 10))
        assert group_privacy(100, "1e-9", 10**6) == (10**8, 1)
        # a row that is swapped is one that leaves and one that comes: (2 eps, (1 + e^eps) delta)
        assert float(group_privacy(1, "1e-6", 2)[1]) == pytest.approx((1 + exp(1)) * 1e-6, rel=1e-14)
        assert group_rho("0.01", 3) == Fraction(9, 100)

    @quick
    @given(st.integers(2, 4).flatmap(lambda n: st.lists(laws(n, 1), min_size=4, max_size=4)), epsilons)
    def test_a_group_is_a_walk_from_neighbour_to_neighbour(self, walk: list[Law], epsilon: Fraction) -> None:
        delta = max(
            hockey_stick(walk[i], walk[j], epsilon) for i, j in ((0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2))
        )
        assume(delta < Fraction(1, 4))
        total, failing = group_privacy(epsilon, delta, 3)
        assert failing == 1 or is_private(walk[0], walk[3], total, failing)

    def test_group_privacy_is_attained(self) -> None:
        """Each step multiplies one outcome by e^eps and adds delta."""
        tilt, delta = 2, Fraction(1, 1000)
        ln2 = Fraction("0.693147180559945")  # just below
        walk = [Fraction(1, 100)]
        for _ in range(3):
            walk.append(tilt * walk[-1] + delta)
        excess = hockey_stick([walk[3], 1 - walk[3]], [walk[0], 1 - walk[0]], 3 * ln2)
        assert float(excess) == pytest.approx(float(group_privacy(ln2, delta, 3)[1]), rel=1e-11)

    @quick
    @given(positive_pairs, st.lists(st.integers(0, 9), min_size=5, max_size=5))
    def test_an_expected_utility_moves_by_a_factor(self, pair: tuple[Law, Law], worth: list[int]) -> None:
        p, q = pair
        assume(p != q)
        epsilon = max(max_divergence(p, q), max_divergence(q, p))
        one, other = (sum((x * u for x, u in zip(law, worth, strict=False)), Fraction(0)) for law in (p, q))
        assume(one > 0)
        low, high = utility_bounds(one, epsilon + 1e-12)
        assert low <= other <= high

    def test_a_delta_of_one_in_n_is_called_what_it_is(self) -> None:
        assert check_delta("1e-9", 10**6) is None
        assert check_delta(0, 10**6) is None
        assert check_delta("1e-6", 10**6 - 1) is None
        sentence = check_delta("1e-6", 10**6)
        assert sentence is not None
        assert "delta=1e-6" in sentence
        assert "1/1000000" in sentence
        assert "about 2 of 2000" in str(check_delta("0.001", 2000))

    def test_one_random_record_in_full_is_zero_delta_private_with_delta_one_in_n(self) -> None:
        """Section 2.3.3, the reason of `check_delta`: ten people, one of whom differs; a random one is published."""
        tenth = Fraction(1, 10)
        assert is_private([9 * tenth, tenth, Fraction(0)], [9 * tenth, Fraction(0), tenth], 0, tenth)
        assert check_delta(tenth, 10) is not None


@pytest.mark.parametrize(
    "law",
    [
        [HALF, QUARTER],
        [HALF, HALF, Fraction(1, 10**12)],
        [Fraction(3, 2), -HALF],
        [0.5, 0.4],
        [0.5, float("nan")],
        [inf, 0.0],
        ["0.5", "0.5"],
        [True],
        [],
        [None, 1],
        [1 + 0j],
    ],
)
def test_what_is_not_a_law_is_refused(law: object) -> None:
    with pytest.raises(InvalidParameter, match=r"probabilit.*Nothing was spent"):
        simplex(law)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: kl(YES, [Fraction(1)]), InvalidParameter),
        (lambda: privacy_loss([Fraction(0), Fraction(1)], YES, 0), InvalidParameter),
        (lambda: privacy_loss(YES, NO, 2), InvalidParameter),
        (lambda: privacy_loss(YES, NO, -1), InvalidParameter),
        (lambda: renyi(YES, NO, 0), InvalidParameter),
        (lambda: renyi(YES, NO, float("inf")), InvalidParameter),
        (lambda: hockey_stick(YES, NO, -1), InvalidBudget),
        (lambda: is_private(YES, NO, 1, 1), InvalidParameter),
        (lambda: approx_max_divergence(YES, NO, -1), InvalidParameter),
        (lambda: loss_tail(1, "0.1", 1), InvalidBudget),
        (lambda: group_privacy(1, 2, 1), InvalidBudget),
        (lambda: group_privacy(1, 0, 0), InvalidParameter),
        (lambda: group_rho(0, 1), InvalidBudget),
        (lambda: check_delta("nan", 1), InvalidBudget),
        (lambda: check_delta("0.1", 0), InvalidParameter),
        (lambda: utility_bounds(-1, 1), InvalidBudget),
        (lambda: kl_bound(-1), InvalidBudget),
    ],
)
def test_questions_without_an_answer_are_refused(ask: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error, match="Nothing was spent"):
        ask()
