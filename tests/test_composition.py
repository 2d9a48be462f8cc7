"""Composition (Section 3.5): the vectors, the order of the bounds, and the exact answer by brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, exp, log, prod, sqrt, tanh

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidBudget, InvalidInput, InvalidParameter
from tacit.privacy.claims import hundred_digits
from tacit.privacy.composition import (
    advanced,
    advanced_heterogeneous,
    basic,
    largest_epsilon,
    per_mechanism_epsilon,
    query_capacity,
)
from tacit.privacy.conversion import epsilon_of
from tacit.privacy.divergence import hockey_stick
from tacit.privacy.gaussian import gaussian_delta
from tacit.privacy.optimal import _log_factorial, optimal_delta, optimal_epsilon, optimal_epsilon0

TEN_DIGITS = 6e-10  # half a unit of the tenth digit, relative, at worst
BOB = exp(-32)
JUST_BELOW_ONE = 1 - Fraction(1, 10**13)  # Cor 3.21 and Thm 3.22 are stated for epsilon < 1; the vectors are at 1

epsilons = st.fractions(Fraction(1, 1000), 3, max_denominator=1000)
small_epsilons = st.fractions(Fraction(1, 1000), Fraction(1, 2), max_denominator=1000)
deltas = st.integers(1, 60).map(lambda n: Fraction(1, 2**n))


def close(x: float) -> object:
    return pytest.approx(x, rel=TEN_DIGITS)


def randomized_responses(laws: list[tuple[Fraction, Fraction]]) -> tuple[list[Fraction], list[Fraction]]:
    """The joint law of independent coins that say the truth, under one truth and under the other."""
    coins = [((p, 1 - p), (q, 1 - q)) for p, q in laws]
    joint = [list(map(prod, product(*(coin[side] for coin in coins)))) for side in (0, 1)]
    return joint[0], joint[1]


class TestVectors:
    def test_basic_composition_adds_and_is_exact(self) -> None:
        assert basic([("0.1", 0)] * 100) == (10, 0)
        assert basic([("0.1", "1e-6"), (0.2, 1e-6)]) == (Fraction(3, 10), Fraction(2, 10**6))
        assert basic([]) == (0, 0)

    def test_advanced_composition(self) -> None:
        assert float(advanced("0.1", 100, "1e-5")[0]) == close(5.850235093)
        assert float(advanced("0.01", 1000, "1e-6")[0]) == close(1.762759807)
        assert advanced("0.01", 1000, "1e-6", "1e-8")[1] == Fraction("1.1e-5")

    def test_the_tight_mean_loss(self) -> None:
        assert float(advanced_heterogeneous(["0.1"] * 100, "1e-5")[0]) == close(5.298109662)

    def test_corollary_3_21(self) -> None:
        assert float(per_mechanism_epsilon(JUST_BELOW_ONE, 100, "1e-5")) == close(0.01041986662)
        assert float(per_mechanism_epsilon(JUST_BELOW_ONE, 1000, "1e-9")) == close(0.002455986116)

    def test_optimal_composition(self) -> None:
        assert float(optimal_delta(1, "0.1", 30)) == close(0.01056167634)
        assert float(optimal_epsilon0(1, "1e-5", 100)) == close(0.02705923813)
        assert float(optimal_delta("0.2", "0.5", 1)) == close(0.161330117)
        assert float(optimal_delta("0.2", "0.5", 1)) == close((exp(0.5) - exp(0.2)) / (1 + exp(0.5)))

    def test_bob_may_not_take_part_in_ten_thousand_studies_of_one_801st_by_theorem_3_20(self) -> None:
        """Errata, E13: the printed 1/801 drops the second term, though optimal composition allows more than that."""
        printed = Fraction(1, 801)
        assert float(advanced(printed, 10_000, BOB)[0]) == close(1.014347304)
        assert float(largest_epsilon(1, 10_000, BOB, tight=False)) == close(0.00123104494)
        assert 1 / float(largest_epsilon(1, 10_000, BOB, tight=False)) == close(812.3180299)
        assert float(largest_epsilon(1, 10_000, BOB, tight=True)) == close(0.001240384048)
        assert 1 / float(largest_epsilon(1, 10_000, BOB, tight=True)) == close(806.2019194)
        assert float(optimal_epsilon0(1, BOB, 10_000)) == close(0.001397603416)
        assert 1 / float(optimal_epsilon0(1, BOB, 10_000)) == close(715.5105578)
        assert float(optimal_delta(1, printed, 10_000)) == close(1.380272521e-17)

    def test_query_capacity(self) -> None:
        assert query_capacity(1e5**0.9, JUST_BELOW_ONE, "1e-9") == 6031867
        assert query_capacity(1e5**0.45, JUST_BELOW_ONE, "1e-9") == 190
        assert query_capacity(1, "0.1", "1e-9") == 0

    def test_improvement_factors_at_a_thousand_steps(self) -> None:
        """Theory, 4.3: one step of 1000 at (1, 1e-9)."""
        assert float(largest_epsilon(1, 1000, "1e-9", tight=False)) == pytest.approx(0.004798595, abs=5e-10)
        assert float(largest_epsilon(1, 1000, "1e-9", tight=True)) == pytest.approx(0.004854104, abs=5e-10)
        assert float(optimal_epsilon0(1, "1e-9", 1000)) == pytest.approx(0.005767964, abs=5e-10)


class TestClosedForms:
    """Each bound against its formula in other arithmetic, on the side where it holds, and no further than 1e-13."""

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(epsilons, st.integers(1, 10**6), deltas)
    def test_advanced_is_the_formula_rounded_up(self, epsilon: Fraction, k: int, spare: Fraction) -> None:
        with mpmath.workdps(60):
            e, d = mpmath.mpf(epsilon.numerator) / epsilon.denominator, mpmath.mpf(spare.numerator) / spare.denominator
            spread = e * mpmath.sqrt(2 * k * mpmath.log(1 / d))
            for bound, mean in (
                (advanced(epsilon, k, spare)[0], e * mpmath.expm1(e)),
                *([(advanced_heterogeneous([epsilon] * k, spare)[0], e * mpmath.tanh(e / 2))] if k < 50 else []),
            ):
                formula = spread + k * mean
                claimed = mpmath.mpf(bound.numerator) / bound.denominator
                assert formula <= claimed <= formula * (1 + mpmath.mpf("1e-13"))

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000), st.integers(1, 10**6), deltas)
    def test_corollary_3_21_never_breaks_theorem_3_20(self, epsilon: Fraction, k: int, spare: Fraction) -> None:
        try:
            share = per_mechanism_epsilon(epsilon, k, spare)
        except InvalidBudget:
            formula = float(epsilon) / (2 * sqrt(2 * k * log(1 / spare)))
            assert spare > Fraction(1, 2**3)
            assert float(epsilon) * (exp(formula) - 1) / formula > 4 * log(1 / spare) * (1 - 1e-9)
        else:
            assert advanced(share, k, spare)[0] <= epsilon + Fraction(1, 10**13)
            assert float(share) == pytest.approx(float(epsilon) / (2 * sqrt(2 * k * log(1 / spare))), rel=1e-12)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(epsilons, st.integers(1, 10**5), deltas, st.booleans())
    def test_the_largest_epsilon_is_allowed_and_a_larger_one_is_not(
        self, epsilon: Fraction, k: int, spare: Fraction, tight: bool
    ) -> None:
        share = largest_epsilon(epsilon, k, spare, tight=tight)

        def total(e: float) -> float:
            return e * sqrt(2 * k * log(1 / spare)) + k * e * (tanh(e / 2) if tight else exp(e) - 1)

        assert share == epsilon / k or total(float(share)) <= float(epsilon) * (1 + 1e-12)
        assert total(float(share) * (1 + 1e-9)) > float(epsilon)

    def test_many_different_steps_lie_between_as_many_of_the_least_and_of_the_largest(self) -> None:
        mixed = advanced_heterogeneous(["0.01", "0.2", "0.05"] * 20, "1e-6")[0]
        assert (
            advanced_heterogeneous(["0.01"] * 60, "1e-6")[0] < mixed < advanced_heterogeneous(["0.2"] * 60, "1e-6")[0]
        )


class TestOptimal:
    @pytest.mark.parametrize("k", [1, 2, 5, 9])
    @pytest.mark.parametrize("tilt", [Fraction(3), Fraction(11, 10)])
    def test_it_is_what_k_randomized_responses_cost(self, k: int, tilt: Fraction) -> None:
        """Brute force over all 2^k outcomes; eps0 = ln(tilt) lies between two neighbouring fifteen-digit decimals."""
        p, q = randomized_responses([(tilt / (1 + tilt), 1 / (1 + tilt))] * k)
        below, above = (Fraction(repr(log(tilt))) * (1 + s * Fraction(1, 10**15)) for s in (-1, 1))
        for epsilon in (0, below / 2, k * below / 3, k * below * Fraction(9, 10)):
            truth = hockey_stick(p, q, epsilon)
            slack = Fraction(1, 10**13)
            assert optimal_delta(epsilon, below, k) - slack < truth <= optimal_delta(epsilon, above, k)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.integers(1, 9), st.lists(st.integers(1, 9), min_size=2, max_size=2), st.data())
    def test_no_adaptive_pair_of_steps_costs_more(self, a: int, b: list[int], data: st.DataObject) -> None:
        """Def. 3.7 with k = 2: the second step may be any ln 2-private one and may depend on the first answer."""
        ln2 = Fraction("0.693147180559946")  # just above

        def neighbour(p: Fraction) -> Fraction:
            low, high = max(p / 2, 1 - 2 * (1 - p)), min(2 * p, 1 - (1 - p) / 2)
            return low + (high - low) * data.draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)]))

        first = Fraction(a, 10)
        seconds = [Fraction(n, 10) for n in b]
        pairs = [(first, neighbour(first)), *((p, neighbour(p)) for p in seconds)]
        p, q = (
            [x[0] * x[1], x[0] * (1 - x[1]), (1 - x[0]) * x[2], (1 - x[0]) * (1 - x[2])]
            for x in ([pair[side] for pair in pairs] for side in (0, 1))
        )
        for epsilon in (0, ln2 / 2, ln2, ln2 * Fraction(3, 2), 2 * ln2):
            assert hockey_stick(p, q, epsilon) <= optimal_delta(epsilon, ln2, 2)

    @pytest.mark.parametrize(("epsilon", "epsilon0", "k"), [(1, "0.01", 1000), ("0.5", "0.002", 3001), (3, "0.5", 77)])
    def test_it_agrees_with_the_sum_in_other_arithmetic(self, epsilon: int | str, epsilon0: str, k: int) -> None:
        with mpmath.workdps(50):
            e, e0 = mpmath.mpf(epsilon), mpmath.mpf(epsilon0)
            terms = (
                comb(k, i) * (mpmath.exp(i * e0) - mpmath.exp(e + (k - i) * e0))
                for i in range(k + 1)
                if (2 * i - k) * e0 > e
            )
            truth = mpmath.fsum(terms) / (1 + mpmath.exp(e0)) ** k
            claimed = optimal_delta(epsilon, epsilon0, k)
            assert truth <= mpmath.mpf(claimed.numerator) / claimed.denominator <= truth * (1 + mpmath.mpf("1e-13"))

    def test_failures_of_the_steps_add_almost(self) -> None:
        """1 - (1 - delta0)^k (1 - delta), by hand for k = 2."""
        pure = optimal_delta("0.3", "0.2", 2)
        mixed = optimal_delta("0.3", "0.2", 2, "0.01")
        assert float(mixed) == pytest.approx(float(1 - Fraction(99, 100) ** 2 * (1 - pure)), rel=1e-13)
        assert mixed >= 1 - Fraction(99, 100) ** 2 * (1 - pure) - Fraction(1, 10**14)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(small_epsilons, st.integers(1, 400), deltas, st.sampled_from([Fraction(1, 10**9), Fraction(1, 1000)]))
    def test_theorem_3_20_holds_with_a_delta_in_every_step(
        self, e0: Fraction, k: int, spare: Fraction, delta0: Fraction
    ) -> None:
        """Errata, E16d: the printed proof charges one of two moved laws only; the statement is right all the same."""
        epsilon, delta = advanced(e0, k, spare, delta0)
        assert optimal_delta(epsilon, e0, k, delta0) <= delta

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(small_epsilons, st.integers(1, 400), deltas, st.sampled_from([Fraction(0), Fraction(1, 10**20)]))
    def test_round_trips_never_claim_too_much(self, e0: Fraction, k: int, delta: Fraction, delta0: Fraction) -> None:
        epsilon = optimal_epsilon(delta, e0, k, delta0)
        assert optimal_delta(epsilon, e0, k, delta0) <= delta
        if epsilon > Fraction(1, 10**6):
            assert optimal_delta(epsilon * (1 - Fraction(1, 10**9)), e0, k, delta0) > delta
            share = optimal_epsilon0(epsilon, delta, k, delta0)
            assert optimal_delta(epsilon, share, k, delta0) <= delta
            assert float(share) == pytest.approx(float(e0), rel=1e-9)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(small_epsilons, st.integers(1, 400), deltas)
    def test_it_is_never_above_the_other_bounds(self, e0: Fraction, k: int, spare: Fraction) -> None:
        best = optimal_epsilon(spare, e0, k)
        tight = advanced_heterogeneous([e0] * k, spare)[0]
        assert best <= k * e0
        assert best <= tight <= advanced(e0, k, spare)[0]
        assert best <= epsilon_of(k * e0**2 / 2, spare)

    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(small_epsilons, st.integers(2, 300), epsilons)
    def test_it_is_monotone(self, e0: Fraction, k: int, epsilon: Fraction) -> None:
        here = optimal_delta(epsilon, e0, k)
        assert optimal_delta(epsilon, e0, k - 1) <= here <= optimal_delta(epsilon, e0 * 2, k)
        assert optimal_delta(epsilon * 2, e0, k) <= here
        assert (here == 0) == (epsilon >= k * e0)

    def test_without_a_delta_only_the_sum_is_left(self) -> None:
        assert optimal_epsilon(0, "0.1", 30) == 3
        assert optimal_epsilon0(3, 0, 30) == Fraction(1, 10)
        assert optimal_delta(3, "0.1", 30) == 0

    def test_a_million_steps(self) -> None:
        epsilon = optimal_epsilon("1e-9", "0.0001", 10**6)
        assert optimal_delta(epsilon, "0.0001", 10**6) <= Fraction("1e-9")
        # the central limit: a Gaussian with sensitivity/sigma = sqrt(k) eps0 = 1/10
        assert float(gaussian_delta(epsilon, 10)) == pytest.approx(1e-9, rel=1e-3)

    @pytest.mark.parametrize("n", [0, 1, 199, 200, 201, 1000, 10**6])
    def test_factorials(self, n: int) -> None:
        with mpmath.workdps(110), hundred_digits():
            assert abs(mpmath.mpf(str(_log_factorial(n))) - mpmath.loggamma(n + 1)) < mpmath.mpf("1e-85")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: per_mechanism_epsilon(1, 100, "1e-5"), "epsilon below 1, not 1"),
        (lambda: per_mechanism_epsilon("1.5", 100, "1e-5"), "epsilon below 1, not 1.5"),
        (lambda: per_mechanism_epsilon("0.9", 100, "0.9"), "too near 1"),
        (lambda: query_capacity(100, 2, "1e-9"), "epsilon below 1, not 2"),
        (lambda: query_capacity(0, "0.5", "1e-9"), "noise scale"),
        (lambda: query_capacity(2, "0.99", "0.99"), "too near 1"),
        (lambda: basic([(-1, 0)]), "not -1"),
        (lambda: basic([(1, 1)]), "delta"),
        (lambda: basic([(float("nan"), 0)]), "'nan'"),
        (lambda: advanced("0.1", 10, 0), "delta_prime"),
        (lambda: advanced("0.1", 10, 1), "delta_prime"),
        (lambda: advanced(0, 10, "0.1"), "epsilon must lie between"),
        (lambda: advanced("1e400", 10, "0.1"), "not 1e"),
        (lambda: advanced_heterogeneous(["0.1", None], "0.1"), "'None'"),
        (lambda: optimal_delta(1, "x; drop", 5), "'x; drop'"),
        (lambda: optimal_epsilon("1e-9", "0.1", 100, "1e-10"), "100 steps of delta0"),
        (lambda: optimal_epsilon0(0, "1e-9", 100), "epsilon"),
    ],
)
def test_what_no_theorem_covers_is_refused(ask: object, message: str) -> None:
    with pytest.raises(InvalidInput, match="Nothing was spent") as refusal:
        ask()  # type: ignore[operator]
    assert message in str(refusal.value)


@pytest.mark.parametrize("k", [0, -1, 1.0, True, "5", None, 10**10])
def test_a_number_of_steps_is_a_positive_whole_number(k: object) -> None:
    for ask in (lambda: advanced("0.1", k, "0.1"), lambda: optimal_delta(1, "0.1", k)):  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="number of steps"):
            ask()
