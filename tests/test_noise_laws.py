"""The laws of the noise: against closed forms, and by tests that accept the truth and reject a scale 3 % off."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.primitives.certified import exp_bounds
from tacit.primitives.entropy import SystemEntropy
from tacit.primitives.noise import SYSTEM
from tacit.primitives.tables import Histogram, Law

Ints = NDArray[np.int64]
Tail = Callable[[NDArray[np.float64]], NDArray[np.float64]]

FALSE_ALARM = 1e-9  # of one test; some eighty run
DRAWS = 1_000_000
ONE_BY_ONE = 400_000


def geometric_from(scale: float) -> Tail:
    """k -> P[Z >= k]."""
    return lambda k: np.exp(-np.maximum(k, 0) / scale)


def laplace_from(scale: float) -> Tail:
    q = np.exp(-1 / scale)
    return lambda k: np.where(k > 0, np.exp(-np.abs(k) / scale), 1 + q - np.exp(-np.abs(1 - k) / scale)) / (1 + q)


def gaussian_from(variance: float) -> Tail:
    sigma = variance**0.5
    if sigma > 1000:  # then the sum is the integral within 1e-7 relative: Euler-Maclaurin
        return lambda k: stats.norm.sf((k - 0.5) / sigma)
    reach = int(12 * sigma + 3)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    above = np.append(np.cumsum(weights[::-1])[::-1], 0) / weights.sum()
    return lambda k: above[np.clip(k + reach, 0, 2 * reach + 1).astype(int)]


def misfit(drawn: Ints, edges: NDArray[np.float64], tail: Tail) -> float:
    """The p-value of Pearson's test on the cells between the edges; those that expect fewer than 20 are merged."""
    shares = -np.diff(np.concatenate([[1.0], tail(edges), [0.0]]))
    seen = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(shares))
    expected = shares * len(drawn)
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum())
    seen = np.append(seen[~rare], seen[rare].sum())
    if expected[-1] < 20:
        expected[-2:], seen[-2:] = [expected[-2:].sum(), 0], [seen[-2:].sum(), 0]
        expected, seen = expected[:-1], seen[:-1]
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


def cells(scale: float) -> NDArray[np.float64]:
    """Few enough that a scale 3 % off stands out by more than six standard deviations of the statistic."""
    steps = np.geomspace(0.1, 6, 12)
    return np.unique(np.round(np.concatenate([-steps, [0, 0.5], steps]) * scale))


SCALES = [Fraction(1), Fraction(5, 2), Fraction(100), Fraction(10**4)]
KINDS = {
    "geometric": (lambda s: Law(1, s.denominator, s.numerator, False), SYSTEM.geometric, geometric_from, 1),
    "laplace": (lambda s: Law(1, s.denominator, s.numerator, True), SYSTEM.laplace, laplace_from, 1),
    "gaussian": (lambda s: Law(2, s.denominator, 2 * s.numerator, True), SYSTEM.gaussian, gaussian_from, 2),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@pytest.mark.parametrize("bulk", [True, False], ids=["bulk", "one by one"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
@kinds
def test_the_law_is_the_one_stated_and_no_scale_three_percent_off(kind, scale: Fraction, bulk: bool) -> None:
    law, draw, tail, power = kind
    if bulk:
        drawn = draw(scale**power, DRAWS)
    else:
        drawn = np.array(Histogram(law(scale**power)).draw(ONE_BY_ONE, SystemEntropy()))
    edges, parameter = cells(float(scale)), float(scale) ** power
    assert misfit(drawn, edges, tail(parameter)) > FALSE_ALARM
    for wrong in (0.97, 1.03):
        assert misfit(drawn, edges, tail(parameter * wrong**power)) < FALSE_ALARM


@kinds
def test_a_call_for_one_draw_has_the_law_too(kind) -> None:
    _, draw, tail, power = kind
    scale = Fraction(5, 2)
    drawn = np.array([draw(scale**power, 1)[0] for _ in range(100_000)])
    edges = cells(2.5)
    assert misfit(drawn, edges, tail(2.5**power)) > FALSE_ALARM
    for wrong in (0.94, 1.06):  # a tenth of the draws: twice 3 %
        assert misfit(drawn, edges, tail((2.5 * wrong) ** power)) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(2**40), Fraction(10**18 + 9, 7 * 10**10)], ids=["2^40", "1.4e7"])
@kinds
def test_the_largest_scales_have_their_laws(kind, scale: Fraction) -> None:
    _, draw, tail, power = kind
    drawn = draw(scale**power, DRAWS)
    edges, parameter = cells(float(scale)), float(scale) ** power
    assert misfit(drawn, edges, tail(parameter)) > FALSE_ALARM
    for wrong in (0.97, 1.03):
        assert misfit(drawn, edges, tail(parameter * wrong**power)) < FALSE_ALARM
    low = np.bincount(drawn & 63, minlength=64)  # the low bits of so wide a law are uniform within 1e-6
    assert stats.chisquare(low).pvalue > FALSE_ALARM


@kinds
def test_every_integer_near_zero_has_its_own_share(kind) -> None:
    _, draw, tail, power = kind
    drawn = draw(Fraction(100) ** power, 2 * DRAWS)
    edges = np.arange(-400.0, 401)
    assert misfit(drawn, edges, tail(100.0**power)) > FALSE_ALARM
    assert misfit(drawn + (np.abs(drawn) % 8 == 7), edges, tail(100.0**power)) < FALSE_ALARM  # one in eight misplaced


def test_inside_a_block_the_law_falls_as_it_should() -> None:
    draws, width, scale = 16_000_000, 128, 10**4  # blocks of 128
    inside = SYSTEM.geometric(Fraction(scale), draws) % width
    q = np.exp(-np.arange(width) / scale)
    mean, spread = (np.arange(width) * q).sum() / q.sum(), 37 / draws**0.5
    assert abs(inside.mean() - mean) < 6.2 * spread  # false alarm below 1e-9
    assert abs(inside.mean() - (width - 1) / 2) > 6.2 * spread  # not flat


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1, 2**40), Fraction(1, 40)], ids=str)
@pytest.mark.parametrize("size", [10, 2000])
def test_a_very_small_scale_is_zero_as_good_as_always(scale: Fraction, size: int) -> None:
    # P[z != 0] <= 2 exp(-40): a false alarm in 2e4 draws has a probability below 1e-12
    for draw, parameter in ((SYSTEM.laplace, scale), (SYSTEM.geometric, scale), (SYSTEM.gaussian, scale / 2)):
        assert not draw(parameter, size).any()


def shares(law: Law, reach: int, count: int) -> list[float]:
    """P[0], P[1], ... from the bounds that the tables are made of."""
    weights = [exp_bounds(*law.exponent(z), 128)[0] for z in range(reach)]
    total = weights[0] + (1 + law.two_sided) * sum(weights[1:])
    return [weight / total for weight in weights[:count]]


def test_closed_forms() -> None:
    one, sigma_one, wide = (Law(1, 1, 1, True), Law(2, 1, 2, True), Law(2, 4, 50, True))
    assert shares(one, 100, 3) == pytest.approx([0.4621171573, 0.1700034016, 0.06254075637], rel=1e-9)
    assert shares(sigma_one, 30, 4) == pytest.approx(
        [0.3989422783, 0.2419707232, 0.05399096622, 0.004431848388], rel=1e-9
    )
    assert shares(wide, 60, 4) == pytest.approx([0.1595769122, 0.1473080561, 0.1158766211, 0.07767442199], rel=1e-9)

    def variance(law: Law) -> float:
        return 2 * sum(z * z * p for z, p in enumerate(shares(law, 100, 100)))

    assert variance(one) == pytest.approx(1.841347188, rel=1e-9)
    assert variance(sigma_one) == pytest.approx(0.9999997888, rel=1e-9)
    assert variance(wide) == pytest.approx(6.25, rel=1e-9)
    assert 2 * sum(shares(one, 100, 100)[5:]) == pytest.approx(0.009851667912, rel=1e-9)


@pytest.mark.parametrize(
    ("draw", "vector", "variance"),
    [
        (lambda n: SYSTEM.laplace(Fraction(1), n), [0.4621171573, 0.1700034016, 0.06254075637], 1.841347188),
        (
            lambda n: SYSTEM.gaussian(Fraction(1), n),
            [0.3989422783, 0.2419707232, 0.05399096622, 0.004431848388],
            0.9999997888,
        ),
        (
            lambda n: SYSTEM.gaussian(Fraction(25, 4), n),
            [0.1595769122, 0.1473080561, 0.1158766211, 0.07767442199],
            6.25,
        ),
    ],
    ids=["laplace 1", "gaussian 1", "gaussian 2.5"],
)
def test_frequencies_meet_the_closed_forms(draw: Callable[[int], Ints], vector: list[float], variance: float) -> None:
    drawn = draw(4_000_000)
    for z, share in enumerate(vector):
        for side in {z, -z}:
            assert stats.binomtest(int((drawn == side).sum()), len(drawn), share).pvalue > FALSE_ALARM
            wrong = share * (1.03 if share > 0.05 else 1.15)  # the rarest has 18,000 draws
            assert stats.binomtest(int((drawn == side).sum()), len(drawn), wrong).pvalue < FALSE_ALARM
    squares = drawn.astype(float) ** 2
    assert abs(squares.mean() - variance) < 6.2 * squares.std() / len(drawn) ** 0.5
    assert abs(squares.mean() - variance * 1.03) > 6.2 * squares.std() / len(drawn) ** 0.5


# --- coins, uniform integers, choices --------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [Fraction(1, 10**4), Fraction(1, 3), Fraction(1), Fraction(5), Fraction(9)], ids=str)
def test_exponential_coins_fall_as_often_as_they_should(x: Fraction) -> None:
    draws = 4_000_000
    seen = int(SYSTEM.bernoulli_exp(np.full(draws, x.numerator * 7), Fraction(1, 7 * x.denominator)).sum())
    assert stats.binomtest(seen, draws, float(np.exp(-float(x)))).pvalue > FALSE_ALARM
    for wrong in (1 / 3, 3) if x < 1 / 10 or x > 8 else (0.97, 1.03):  # few tails, or few heads
        assert stats.binomtest(seen, draws, float(np.exp(-float(x) * wrong))).pvalue < FALSE_ALARM


def test_few_coins_at_a_time_have_the_same_law() -> None:
    exponents = np.array([0, 1, 2, 3, 700, 10**18])
    thrown = np.array([SYSTEM.bernoulli_exp(exponents, Fraction(1, 2)) for _ in range(10_000)]).sum(axis=0)
    assert thrown[0] == 10_000
    assert not thrown[4:].any()
    for seen, x in zip(thrown[1:4], (0.5, 1, 1.5), strict=True):
        assert stats.binomtest(int(seen), 10_000, np.exp(-x)).pvalue > FALSE_ALARM
        assert stats.binomtest(int(seen), 10_000, np.exp(-x * 1.25)).pvalue < FALSE_ALARM


def test_coins_that_are_certain_and_coins_that_are_hopeless() -> None:
    n = 200_000
    assert SYSTEM.bernoulli_exp(np.zeros(n, np.int64), Fraction(10**9)).all()
    assert SYSTEM.bernoulli_exp(np.ones(n, np.int64), Fraction(1, 2**100)).all()  # false alarm below 1e-24
    assert not SYSTEM.bernoulli_exp(np.full(n, 701), Fraction(1)).any()  # below 1e-290
    assert not SYSTEM.bernoulli_exp(np.full(n, 2**62), Fraction(2**100)).any()


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(99, 100), Fraction(1, 10**6), Fraction(2**70 - 1, 2**71)], ids=str
)
def test_plain_coins_fall_as_often_as_they_should(p: Fraction) -> None:
    draws = 4_000_000
    seen = int(SYSTEM.bernoulli(p, draws).sum())
    assert stats.binomtest(seen, draws, float(p)).pvalue > FALSE_ALARM
    assert stats.binomtest(seen, draws, float(p) * (1.01 if p > Fraction(1, 1000) else 20)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("below", [2, 3, 1000, 2**10, 2**10 + 1, 2**26 + 1, 3 * 2**60])
def test_uniform_integers_are_uniform(below: int) -> None:
    drawn = SYSTEM.uniform(below, DRAWS)
    assert drawn.min() >= 0
    assert drawn.max() < below
    parts = min(below, 48)
    lows = [-(-below * i // parts) for i in range(parts + 1)]  # ceilings: part i holds lows[i] <= z < lows[i + 1]
    share = np.diff(np.array(lows, dtype=object)).astype(float) / below
    seen = np.bincount(np.searchsorted(np.array(lows[1:]), drawn, side="right"), minlength=parts)
    assert stats.chisquare(seen, share * DRAWS).pvalue > FALSE_ALARM
    tilted = share * np.linspace(0.97, 1.03, parts)
    assert stats.chisquare(seen, tilted / tilted.sum() * DRAWS).pvalue < FALSE_ALARM


def chosen(exponents: Ints, rate: Fraction, draws: int) -> Callable[[float], float]:
    """Draws, and returns how well a rate fits: the p-value of Pearson's test on the exponents chosen."""
    # half of them one by one
    indices = [SYSTEM.weighted(exponents, rate, 1) for _ in range(draws // 2)]
    indices.append(SYSTEM.weighted(exponents, rate, draws - draws // 2))
    seen = np.bincount(exponents[np.concatenate(indices)], minlength=exponents.max() + 1)

    def fit(supposed: float) -> float:
        law = np.bincount(exponents, np.exp(-supposed * exponents))
        there = law > 0
        return float(stats.chisquare(seen[there], (law / law.sum() * draws)[there]).pvalue)

    return fit


def test_a_choice_follows_its_weights_and_no_rate_three_percent_off() -> None:
    # one candidate, or one of 2,981 that are worse by exp(8): what tells neighbouring rates apart best
    fit = chosen(np.repeat([0, 12, 24], [1, 12, 2981]), Fraction(1, 3), 20_000)
    assert fit(1 / 3) > FALSE_ALARM
    assert fit(0.97 / 3) < FALSE_ALARM
    assert fit(1.03 / 3) < FALSE_ALARM


def test_a_choice_among_many_levels_follows_their_weights() -> None:
    fit = chosen(np.concatenate([np.full(round(np.exp(e / 3)), e) for e in range(0, 25, 2)]), Fraction(1, 3), 6000)
    assert fit(1 / 3) > FALSE_ALARM
    assert fit(0.9 / 3) < FALSE_ALARM
    assert fit(1.1 / 3) < FALSE_ALARM


def test_a_choice_among_equals_is_uniform_and_a_hopeless_one_is_never_made() -> None:
    exponents = np.array([0, 10**6, 0, 0, 2**62])
    seen = np.bincount(SYSTEM.weighted(exponents, Fraction(1), 6000), minlength=5)
    assert stats.chisquare(seen[[0, 2, 3]]).pvalue > FALSE_ALARM
    assert seen[[1, 4]].sum() == 0


def test_a_choice_among_many_finds_all_its_pieces() -> None:
    size, draws = 50_000, 1000
    exponents = np.arange(size) % 2 * 10**6
    alone = [int(SYSTEM.weighted(exponents, Fraction(1), 1)[0]) for _ in range(draws)]
    for drawn in (np.array(alone), SYSTEM.weighted(exponents, Fraction(1), draws)):
        assert (drawn % 2 == 0).all()
        assert stats.kstest(drawn / size, "uniform").pvalue > FALSE_ALARM
        assert stats.kstest((drawn / size) ** 2, "uniform").pvalue < FALSE_ALARM


def test_many_choices_follow_every_weight_alone_and_no_rate_one_percent_off() -> None:
    """Four pieces of candidates, where each index has its own cell."""
    draws, exponents = 4_000_000, np.arange(60_000) % 41
    seen = np.bincount(SYSTEM.weighted(exponents, Fraction(1, 10), draws), minlength=exponents.size)
    for rate, holds in ((0.1, True), (0.099, False), (0.101, False)):
        law = np.exp(-rate * exponents)
        law /= law.sum()
        fit = stats.chisquare(np.bincount(exponents, seen), np.bincount(exponents, law) * draws).pvalue
        assert (fit > FALSE_ALARM) == holds
        if holds:  # no cell expects fewer than four
            assert (law * draws).min() > 4
            statistic = (((seen - law * draws) ** 2) / (law * draws)).sum()
            assert abs(statistic - exponents.size) < 8 * (2.3 * exponents.size) ** 0.5


def test_choices_made_at_once_know_nothing_of_each_other() -> None:
    """The first with the second, the second with the third and the first with the last, as laws of pairs."""
    exponents, rate, rounds, size = np.array([0, 1, 2, 2, 5]), Fraction(1, 2), 20_000, 40
    law = np.exp(-float(rate) * exponents)
    pairs = np.outer(law, law).ravel() / law.sum() ** 2
    drawn = np.array([SYSTEM.weighted(exponents, rate, size) for _ in range(rounds)])
    for one, other in ((0, 1), (1, 2), (0, size - 1)):
        seen = np.bincount(5 * drawn[:, one] + drawn[:, other], minlength=25)
        assert stats.chisquare(seen, pairs * rounds).pvalue > FALSE_ALARM
        same = np.diag(law / law.sum()).ravel()  # what a repeated draw would look like, one time in twenty
        assert stats.chisquare(seen, (0.95 * pairs + 0.05 * same) * rounds).pvalue < FALSE_ALARM
    # in a sorted answer, or in one that repeats, neighbours would agree too often
    agree = (drawn[:, 1:] == drawn[:, :-1]).mean()
    share = (law**2).sum() / law.sum() ** 2
    assert abs(agree - share) < 8 * (share / drawn.size) ** 0.5


def test_the_weights_of_the_tables_sum_to_the_theta_function() -> None:
    law = Law(2, 1, 2 * 10, True)
    total = 1 + 2 * sum(mpmath.mpf(exp_bounds(*law.exponent(z), 120)[0]) / 2**120 for z in range(1, 60))
    with mpmath.workprec(200):
        assert abs(total - mpmath.jtheta(3, 0, mpmath.exp(mpmath.mpf(-1) / 20))) < mpmath.mpf(10) ** -14
