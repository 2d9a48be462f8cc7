"""Tail bounds (Thms 3.1-3.4, 3.8, Lemma 3.19): against exact laws, on the side where they hold, and their ranges."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp, inf, log, sqrt

import mpmath
import numpy as np
import pytest
from scipy import stats

from tacit.errors import InvalidParameter
from tacit.privacy.concentration import (
    azuma,
    azuma_sum,
    chernoff_above,
    chernoff_additive,
    chernoff_below,
    discrete_laplace_tail,
    laplace_max_error,
    laplace_max_quantile,
    laplace_tail,
    stirling,
)
from tacit.privacy.divergence import kl_bound

MEANS = [0.01, 0.1, 0.5, 0.9]
ONE_STEP_UP, ONE_STEP_DOWN = 1 + 1e-12, 1 - 1e-12  # a float product just off an integer is that integer


@pytest.mark.parametrize("m", [1, 10, 500])
@pytest.mark.parametrize("mu", MEANS)
def test_chernoff_is_above_the_binomial(m: int, mu: float) -> None:
    for x in (0.01, 0.1, 0.3, 0.7, 0.99, 1.0):
        above = stats.binom.sf(int(m * (mu + x) * ONE_STEP_UP), m, mu)
        below = stats.binom.cdf(ceil(m * (mu - x) * ONE_STEP_DOWN) - 1, m, mu)
        assert max(above, below) <= chernoff_additive(m, x)
        assert stats.binom.sf(int((1 + x) * m * mu * ONE_STEP_UP), m, mu) <= chernoff_above(m, mu, x)
        if x < 1:
            assert stats.binom.cdf(ceil((1 - x) * m * mu * ONE_STEP_DOWN) - 1, m, mu) <= chernoff_below(m, mu, x)


def test_chernoff_values_by_hand() -> None:
    assert chernoff_additive(100, "0.1") == pytest.approx(exp(-2))
    assert chernoff_above(300, "0.5", "0.2") == pytest.approx(exp(-2))
    assert chernoff_below(200, "0.5", "0.2") == pytest.approx(exp(-2))


def test_the_multiplicative_bound_has_a_range() -> None:
    """Errata, E2: the exponent g^2/3 is right up to g = 1.817; at 4 a binomial passes it twice as often."""

    def sharp(g: float) -> float:
        return (1 + g) * log(1 + g) - g  # Chernoff's own exponent

    assert sharp(1.8169) > 1.8169**2 / 3
    assert sharp(1.8170) < 1.8170**2 / 3
    m, mu, g = 400, 0.01, 4.0  # a sum of mean 4 that passes 20
    assert stats.binom.sf(20, m, mu) > 2 * exp(-m * mu * g**2 / 3)
    with pytest.raises(InvalidParameter, match="gamma must lie above 0 and at most at 1, not 4"):
        chernoff_above(m, mu, g)
    assert chernoff_above(m, mu, 1) == pytest.approx(exp(-4 / 3))


def test_azuma_is_above_a_sum_of_unequal_coins() -> None:
    effects = [1, 2, 3, 1, 2, 5]
    sums = np.array([sum(c * (i >> j & 1) for j, c in enumerate(effects)) for i in range(2 ** len(effects))])
    for t in (1, 3, 5, 7):
        assert (sums > sum(effects) / 2 + t).mean() <= azuma(effects, t)
    assert azuma(effects, 3) == pytest.approx(exp(-2 * 9 / 44))
    assert azuma([1] * 100, 10) == pytest.approx(chernoff_additive(100, "0.1"))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("k", [1, 20, 400])
def test_lemma_3_19_is_above_the_loss_of_randomized_responses(k: int, epsilon: float) -> None:
    truth = exp(epsilon) / (1 + exp(epsilon))
    for z in (0.5, 1.0, 3.0):
        limit, probability = azuma_sum(k, epsilon, kl_bound(epsilon), z)
        assert limit == pytest.approx(k * epsilon * (exp(epsilon) - 1) + z * sqrt(k) * epsilon)
        assert probability == pytest.approx(exp(-(z**2) / 2))
        # the loss is eps times (number of truths - number of lies)
        assert stats.binom.sf(int((limit / epsilon + k) / 2), k, truth) <= probability


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 10**6, 10**12])
def test_stirling_brackets_the_factorial(n: int) -> None:
    low, high = stirling(n)
    with mpmath.workdps(60):
        truth = mpmath.loggamma(n + 1)
        assert mpmath.mpf(low.numerator) / low.denominator <= truth <= mpmath.mpf(high.numerator) / high.denominator
    assert high - low <= Fraction(1, 144 * n * n) + high / 10**13
    if n == 1:
        assert float(high) == pytest.approx(log(2.5066282746) - 1 + 1 / 12, abs=1e-9)
        assert float(low) == pytest.approx(log(2.5066282746) - 1 + 1 / 13, abs=1e-9)


def test_laplace_vectors() -> None:
    assert laplace_tail(6, 2) == pytest.approx(0.04978706837, rel=5e-10)
    assert laplace_tail(0, 2) == 1
    assert laplace_max_error(10_000, "0.05", 1) == pytest.approx(12.20607265, rel=5e-10)
    assert laplace_max_quantile(10_000, "0.05", 1) == pytest.approx(12.18053819, rel=5e-10)
    assert laplace_max_quantile(1, "0.2", 1) == pytest.approx(1.609437912, rel=5e-10)  # the 0.9-quantile of Lap(1)
    assert discrete_laplace_tail(5, 1) == pytest.approx(0.009851667912, rel=5e-10)


@pytest.mark.parametrize("k", [1, 7, 10_000, 10**9])
@pytest.mark.parametrize("beta", [1e-9, 0.05, 0.999])
@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0])
def test_errors_of_the_largest_of_k(k: int, beta: float, scale: float) -> None:
    exact, union = laplace_max_quantile(k, beta, scale), laplace_max_error(k, beta, scale)
    assert exact <= union
    with mpmath.workdps(50):
        within = (1 - mpmath.exp(-mpmath.mpf(exact) / mpmath.mpf(scale))) ** k
        assert float((1 - within) / mpmath.mpf(beta)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_discrete_noise_meets_fact_3_7_more_often_and_passes_it_less_often(scale: float) -> None:
    """By summing the law; at scale 1 a bound for real-valued noise, met with equality, fails by nearly a half."""
    q = exp(-1 / scale)
    law = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-400, 401)}
    for t in range(1, 9):
        meets = sum(mass for z, mass in law.items() if abs(z) >= t)
        assert discrete_laplace_tail(t, scale) == pytest.approx(meets, rel=1e-9)
        assert discrete_laplace_tail(t + 1, scale) < laplace_tail(t, scale) < discrete_laplace_tail(t, scale)
    assert discrete_laplace_tail(8, 1) > 1.4 * laplace_tail(8, 1)
    assert discrete_laplace_tail(0, 1) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda: chernoff_additive(0, "0.1"),
        lambda: chernoff_additive(10, 0),
        lambda: chernoff_above(10, "0.5", 0),
        lambda: chernoff_above(10, "0.5", "1.0001"),
        lambda: chernoff_above(10, 0, "0.5"),
        lambda: chernoff_below(10, "0.5", 1),
        lambda: chernoff_below(10, "0.5", -1),
        lambda: azuma([], 1),
        lambda: azuma([1, -1], 1),
        lambda: azuma_sum(1, 1, -1, 1),
        lambda: stirling(0),
        lambda: stirling(2.5),  # type: ignore[arg-type]
        lambda: laplace_tail(-1, 1),
        lambda: laplace_tail(1, 0),
        lambda: laplace_max_error(0, "0.1", 1),
        lambda: laplace_max_error(1, 1, 1),
        lambda: laplace_max_quantile(1, 0, 1),
        lambda: laplace_max_quantile(1, "nan", 1),
        lambda: discrete_laplace_tail(-1, 1),
        lambda: discrete_laplace_tail(1, inf),
    ],
)
def test_what_no_theorem_covers_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter, match="Nothing was spent"):
        ask()
