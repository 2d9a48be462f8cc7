"""Between zCDP and (epsilon, delta): vectors, an independent minimum over the orders, and no claim too much."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidBudget
from tacit.privacy.composition import rho_of as rho_of_composition
from tacit.privacy.conversion import (
    classic_epsilon_of,
    classic_rho_of,
    delta_of,
    epsilon_of,
    pure_epsilon_of,
    rho_of,
    rho_of_pure,
)

LOOSE = Fraction(1, 10**6)

# spread over the whole range that a budget allows: 1e-9..1000 and 1e-100..0.999
epsilons = st.tuples(st.integers(100, 999), st.integers(-11, 0)).map(lambda t: Fraction(t[0]) * Fraction(10) ** t[1])
small_deltas = st.tuples(st.integers(100, 999), st.integers(-102, -3)).map(
    lambda t: Fraction(t[0]) * Fraction(10) ** t[1]
)
deltas = small_deltas | st.integers(1, 999).map(lambda n: Fraction(n, 1000))


def least_log_delta(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """ln of the least delta over all orders, at sixty digits, by narrowing the printed formula (convex in a)."""
    r, e = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, epsilon))

    def log_delta(x: mpmath.mpf) -> mpmath.mpf:
        b = mpmath.exp(x)
        a = 1 + b
        return b * (a * r - e) + a * mpmath.log(b / a) - mpmath.log(b)

    low, high = mpmath.mpf(-60), mpmath.mpf(120)
    golden = (mpmath.sqrt(5) - 1) / 2
    one, two = high - golden * (high - low), low + golden * (high - low)
    at_one, at_two = log_delta(one), log_delta(two)
    for _ in range(130):
        if at_one < at_two:
            high, two, at_two = two, one, at_one
            one = high - golden * (high - low)
            at_one = log_delta(one)
        else:
            low, one, at_one = one, two, at_two
            two = low + golden * (high - low)
            at_two = log_delta(two)
    return min(at_one, at_two)


def log(x: Fraction) -> mpmath.mpf:
    return mpmath.log(mpmath.mpf(x.numerator)) - mpmath.log(mpmath.mpf(x.denominator))


def test_vectors() -> None:
    assert float(rho_of(1, "1e-9")) == pytest.approx(0.01497305767, rel=5e-10)
    assert float(epsilon_of("0.01", "1e-9")) == pytest.approx(0.8101744679, rel=5e-10)
    assert float(classic_rho_of(1, "1e-9")) == pytest.approx(0.0117811604, rel=5e-10)
    assert float(classic_epsilon_of("0.01", "1e-9")) == pytest.approx(0.9204562776, rel=5e-10)
    assert rho_of_composition is rho_of


@settings(max_examples=60, deadline=None, derandomize=True)
@given(epsilons, deltas)
def test_the_rho_of_a_promise_keeps_it_and_a_millionth_more_would_not(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    with mpmath.workdps(60):
        assert least_log_delta(rho, epsilon) <= log(delta)
        assert least_log_delta(rho * (1 + LOOSE), epsilon) > log(delta)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(epsilons, deltas)
def test_the_epsilon_of_a_rho_is_kept_and_a_millionth_less_would_not_be(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of(rho, delta)
    with mpmath.workdps(60):
        assert least_log_delta(rho, epsilon) <= log(delta)
        if epsilon:
            assert least_log_delta(rho, epsilon * (1 - LOOSE)) > log(delta)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(epsilons, epsilons)
def test_the_delta_of_a_rho_is_the_least_over_all_orders(rho: Fraction, epsilon: Fraction) -> None:
    delta = delta_of(rho, epsilon)
    with mpmath.workdps(60):
        truth = min(mpmath.mpf(0), least_log_delta(rho, epsilon))  # as a falls to 1, every promise holds with delta = 1
        if truth < mpmath.log("1e-1000"):
            assert delta == Fraction(1, 10**1000)
        else:
            assert truth <= log(delta) <= truth + mpmath.mpf("1e-9")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(epsilons, deltas)
def test_round_trips_never_gain(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta * (1 + Fraction(1, 10**13))
    there = epsilon_of(rho, delta)
    assert there <= epsilon * (1 + Fraction(1, 10**13))
    assert rho_of(there, delta) >= rho * (1 - Fraction(1, 10**9)) if there else True


@settings(max_examples=60, deadline=None, derandomize=True)
@given(epsilons, deltas, st.sampled_from([Fraction(1, 10**12), Fraction(1, 1000), Fraction(1)]))
def test_more_is_never_less(epsilon: Fraction, delta: Fraction, step: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert rho_of(epsilon * (1 + step), delta) >= rho
    assert rho_of(epsilon, min(delta * (1 + step), Fraction(999, 1000))) >= rho
    assert epsilon_of(epsilon * (1 + step), delta) >= epsilon_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta_of(rho * (1 + step), epsilon)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(epsilons, deltas)
def test_the_classic_conversion_never_says_more(epsilon: Fraction, delta: Fraction) -> None:
    assert 0 < classic_rho_of(epsilon, delta) <= rho_of(epsilon, delta)
    assert classic_epsilon_of(epsilon, delta) >= epsilon_of(epsilon, delta)
    # the classic pair are inverses of each other, up to their rounding
    back = classic_epsilon_of(classic_rho_of(epsilon, delta), delta)
    assert float(back) == pytest.approx(float(epsilon), rel=1e-12)


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


class TestPure:
    """eps-DP as zCDP: randomized response is the worst pair, and eps tanh(eps/2) what its orders tend to."""

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(epsilons | st.fractions(Fraction(1, 1000), 60))
    def test_the_rho_of_a_pure_step_is_the_formula_rounded_up(self, epsilon: Fraction) -> None:
        rho = rho_of_pure(epsilon)
        with mpmath.workdps(80):
            formula = real(epsilon) * mpmath.tanh(real(epsilon) / 2)
            assert formula <= real(rho) <= formula * (1 + mpmath.mpf("1.1e-14"))
        assert rho <= min(epsilon, epsilon**2 / 2)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(epsilons)
    def test_no_order_of_randomized_response_is_above_it_and_the_last_digits_are_needed(
        self, epsilon: Fraction
    ) -> None:
        with mpmath.workdps(120):
            c, rho = mpmath.exp(real(epsilon)), real(rho_of_pure(epsilon))
            truth, lie = c / (1 + c), 1 / (1 + c)

            def per_order(b: mpmath.mpf) -> mpmath.mpf:
                moment = truth * c**b + lie * c**-b
                return mpmath.log(moment) / (b * (1 + b))

            assert all(per_order(mpmath.mpf(10) ** n) <= rho for n in range(-30, 4))
            assert per_order(mpmath.mpf("1e-30")) > rho * (1 - mpmath.mpf("2e-14"))

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(epsilons | st.fractions(Fraction(1, 10**16), 60))
    def test_a_rho_buys_the_largest_epsilon_and_never_a_larger(self, rho: Fraction) -> None:
        epsilon = pure_epsilon_of(rho)
        assert rho * (1 - Fraction(1, 10**12)) < rho_of_pure(epsilon) <= rho
        assert epsilon.denominator < 10**40

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(epsilons, epsilons)
    def test_a_block_costs_no_less_than_its_steps(self, one: Fraction, other: Fraction) -> None:
        rounding = 1 + Fraction(3, 10**14)
        assert rho_of_pure(one) + rho_of_pure(other) <= rho_of_pure(one + other) * rounding

    @pytest.mark.parametrize(
        "size", [Fraction(1, 10**9000), Fraction(1, 10**60), Fraction(10**300), Fraction(10**6000)]
    )
    def test_neither_the_tiny_nor_the_huge_is_rounded_to_nothing(self, size: Fraction) -> None:
        assert rho_of_pure(size) == min(size, size**2 / 2)
        assert 0 < rho_of_pure(pure_epsilon_of(size)) <= size


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1), Fraction(1000)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**100), Fraction(1, 2), Fraction(999, 1000), 1 - Fraction(1, 10**25)])
def test_the_corners_of_what_a_budget_may_be(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert rho > 0
    assert rho.denominator < 10**40
    with mpmath.workdps(60):
        assert least_log_delta(rho, epsilon) <= log(delta)


@pytest.mark.parametrize("bad", [0, -1, 1e-400, float("nan"), float("inf"), "1e999", "", None, True, 1j, "ten"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda x: rho_of(x, "1e-9"),
        lambda x: rho_of(1, x if x != "1e999" else 1),
        lambda x: epsilon_of(x, "1e-9"),
        lambda x: delta_of(x, 1),
        lambda x: classic_rho_of(x, "1e-9"),
        lambda x: classic_epsilon_of(x, "1e-9"),
    ],
)
def test_what_is_not_a_budget_is_refused(ask: Callable[[object], object], bad: object) -> None:
    with pytest.raises(InvalidBudget, match="Nothing was spent"):
        ask(bad)


def test_a_promise_too_small_to_be_certified_is_refused_and_not_rounded_to_nothing() -> None:
    with pytest.raises(InvalidBudget, match="too small"):
        rho_of("1e-30", "1e-999")
