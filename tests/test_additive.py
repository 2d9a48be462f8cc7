"""Laplace and Gaussian noise on a grid: the vectors of the book's closed forms, the exact bounds, the real sampler."""

from __future__ import annotations

import pickle
from fractions import Fraction
from math import exp, log, log1p, sqrt

import numpy as np
import pytest
from noises import FALSE_ALARM, Played, count, misfit, unlike
from scipy import special, stats

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter
from tacit.primitives.additive import Gaussian, Laplace, laplace_above, laplace_mass
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Loss

FINE = Fraction(1, 2**20)
BOTH = pytest.mark.parametrize("mechanism", [Laplace(1), Gaussian("0.5")], ids=str)


def on_grid(*units: int, grid: Fraction = Fraction(1)) -> OnGrid:
    return OnGrid(np.array(units, dtype=np.int64), grid)


def test_they_print_what_they_are_and_cost_what_they_say() -> None:
    assert (str(Laplace("0.5")), repr(Gaussian("1e-3"))) == ("Laplace(epsilon=1/2)", "Gaussian(rho=1/1000)")
    assert Laplace("0.5").loss() == Loss.pure(Fraction(1, 2))
    assert Gaussian("1e-3").loss() == Loss(None, Fraction(1, 1000))
    assert (Laplace(1).norm, Gaussian(1).norm) == (Norm.L1, Norm.L2)
    assert not Laplace(1).monotone


def test_equal_parameters_are_equal_mechanisms_also_after_pickling() -> None:
    assert Laplace(0.1) == Laplace("1/10") != Laplace("0.1000000001")
    assert pickle.loads(pickle.dumps(Gaussian("0.1"))) == Gaussian(0.1)  # noqa: S301


@pytest.mark.parametrize("wrong", [0, -1, "-1e-9", float("nan"), float("inf"), True, None, "one", [1]])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_parameter_that_is_no_positive_number_is_refused(kind: type, wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="Nothing was"):
        kind(wrong)


@BOTH
@pytest.mark.parametrize("wrong", [0, -1])
def test_a_sensitivity_that_is_not_positive_is_refused_before_a_draw(mechanism: Laplace, wrong: int) -> None:
    noise = Played(0)
    with pytest.raises(InvalidParameter, match="sensitivity and a grid must be positive"):
        mechanism.sample(on_grid(1), Fraction(wrong), noise)
    assert not noise.asked


def test_nothing_about_them_can_be_changed() -> None:
    with pytest.raises(AttributeError):
        Laplace(1).epsilon = Fraction(100)  # type: ignore[misc]


@pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 4), Fraction(3, 7)])
@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(5, 2)])
def test_the_noise_is_asked_for_in_units_of_the_grid(grid: Fraction, sensitivity: Fraction) -> None:
    noise = Played([1, -2, 3], [0, 0, 5])
    answer = on_grid(10, 20, 30, grid=grid)
    assert Laplace("0.2").sample(answer, sensitivity, noise).tolist() == pytest.approx(
        [11 * float(grid), 18 * float(grid), 33 * float(grid)]
    )
    assert Gaussian("0.2").sample(answer, sensitivity, noise)[2] == pytest.approx(35 * float(grid))
    units = sensitivity / grid
    assert noise.asked == [("laplace", units * 5, 3), ("gaussian", units**2 * Fraction(5, 2), 3)]


@BOTH
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,)])
def test_answers_keep_their_shape_and_stay_whole_on_a_whole_grid(mechanism: Laplace, shape: tuple[int, ...]) -> None:
    drawn = mechanism.sample(OnGrid(np.zeros(shape, dtype=np.int64)), Fraction(1), SYSTEM)
    assert drawn.shape == shape
    assert drawn.dtype == np.int64


def test_the_discrete_laplace_has_the_probabilities_of_its_closed_form() -> None:
    assert Laplace(1).probabilities([0, 1, 2]) == pytest.approx([0.4621171573, 0.1700034016, 0.06254075637], rel=1e-9)
    assert Laplace(1).deviation() ** 2 == pytest.approx(1.841347188)
    assert laplace_above(np.array([5]), 1.0)[0] * 2 == pytest.approx(0.009851667912)
    z = np.arange(-900, 901)
    assert laplace_mass(z, 20.0).sum() == pytest.approx(1, abs=1e-14)
    assert laplace_above(z, 20.0) == pytest.approx(np.cumsum(laplace_mass(z, 20.0)[::-1])[::-1], rel=1e-9)


def test_on_a_fine_grid_it_is_the_laplace_distribution_of_the_book() -> None:
    law = Laplace("0.5")  # Lap(2)
    assert law.probabilities([0, 3 * 2**20], grid=FINE) * 2**20 == pytest.approx([0.25, 0.05578254004], rel=1e-9)
    tail = laplace_above(np.array([2**20 * 6]), float(law.scale(1, FINE)))[0]
    assert 2 * tail == pytest.approx(0.04978706837, rel=1e-6)  # P[|Y| >= 3b]
    unit = float(Laplace(1).scale(1, FINE))
    cdf = [1 - laplace_above(np.array([int(at * 2**20)]), unit)[0] for at in (-1, 0.5)]
    assert cdf == pytest.approx([0.1839397206, 0.6967346701], rel=1e-6)
    assert law.deviation(grid=FINE) == pytest.approx(2 * sqrt(2))


def test_noise_that_is_always_0_deviates_by_0_and_no_chance_is_too_small_to_be_split() -> None:
    for grid in (1420, 10**6, 2**900):
        assert Laplace(1).deviation(grid=grid) < 1e-300
    for mechanism in (Laplace(1), Gaussian("1e-9")):
        assert mechanism.error_bound(1e-250, coordinates=10**9) > 500
        for lost in (1e-251, 1e-320):
            with pytest.raises(InvalidParameter, match="beta"):
                mechanism.error_bound(lost, coordinates=10**6)


def test_the_mean_error_is_one_scale() -> None:
    z = np.arange(0, 200 * 2**10)
    mean = 2 * float((z * Laplace("0.5").probabilities(z, grid=Fraction(1, 2**10))).sum()) / 2**10
    assert mean == pytest.approx(2, rel=1e-6)


def test_the_most_common_name_is_off_by_less_than_thirteen() -> None:
    """Example 3.3: ten thousand cells, eps = 1, 95 %."""
    assert Laplace(1).book_bound(0.05, coordinates=10_000) == pytest.approx(12.20607265)
    assert Laplace(1).error_bound(0.05, coordinates=10_000, grid=Fraction(1, 10**8)) == pytest.approx(12.18053819)
    assert Laplace(1).error_bound(0.05, coordinates=10_000) == 12


@pytest.mark.parametrize("scale", ["0.05", "1", "7.3", "400"])
@pytest.mark.parametrize("coordinates", [1, 10, 10**6])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
def test_the_laplace_bound_is_the_least_that_holds(scale: str, coordinates: int, beta: float) -> None:
    b, bound = float(scale), Laplace(1).error_bound(beta, coordinates=coordinates, sensitivity=scale)
    q = exp(-1 / b)

    def failure(most: float) -> float:
        return -special.expm1(coordinates * log1p(-2 * q ** (most + 1) / (1 + q)))

    assert bound == int(bound)
    assert failure(bound) <= beta * (1 + 1e-9)
    assert bound == 0 or failure(bound - 1) > beta * (1 - 1e-9)
    assert bound <= np.ceil(Laplace(1).book_bound(beta, coordinates=coordinates, sensitivity=scale))


@pytest.mark.parametrize(
    ("sigma", "law"),
    [
        ("1", [0.3989422783, 0.2419707232, 0.05399096622, 0.004431848388]),
        ("2.5", [0.1595769122, 0.1473080561, 0.1158766211, 0.07767442199]),
    ],
)
def test_the_discrete_gaussian_has_the_probabilities_of_its_closed_form(sigma: str, law: list[float]) -> None:
    variance = Fraction(sigma) ** 2
    mechanism = Gaussian(1 / (2 * variance))
    assert mechanism.variance() == variance
    assert mechanism.probabilities([0, 1, 2, 3]) == pytest.approx(law, rel=1e-9)
    assert mechanism.deviation() ** 2 == pytest.approx(0.9999997888 if sigma == "1" else 6.25, rel=1e-9)


def test_sigma_is_the_standard_deviation_and_rho_what_the_book_says() -> None:
    """E14: sigma^2 = Delta^2 / 2 rho is the variance; halving rho widens sigma by sqrt 2, not by 2."""
    assert [Gaussian(rho).deviation(grid=FINE) for rho in (0.5, 0.25)] == pytest.approx([1, sqrt(2)])
    assert Gaussian("0.5").variance(3, Fraction(1, 10)) == 900


@pytest.mark.parametrize("sigma", ["0.3", "1", "12.5", "3000", "5000", "1e6"])
@pytest.mark.parametrize("coordinates", [1, 1000])
@pytest.mark.parametrize("beta", [0.3, 1e-6])
def test_the_gaussian_bound_holds_and_is_the_least_where_it_says_so(sigma: str, coordinates: int, beta: float) -> None:
    s = float(sigma)
    mechanism = Gaussian(1 / (2 * Fraction(sigma) ** 2))
    bound = int(mechanism.error_bound(beta, coordinates=coordinates))
    allowed = -special.expm1(log1p(-beta) / coordinates)
    if s < 4096:
        z = np.arange(int(40 * s) + 40.0)
        mass = np.exp(-z * z / (2 * s * s))
        beyond = [2 * mass[least:].sum() / (2 * mass.sum() - 1) for least in (bound + 1, max(1, bound))]
        assert beyond[0] <= allowed * (1 + 1e-9)
        assert beyond[1] > allowed or bound == 0
    else:  # up to 1e-6, the sum is the integral from half a unit before
        assert 2 * stats.norm.sf((bound + 0.5) / s) <= allowed
    assert bound <= s * stats.norm.isf(beta / (2 * coordinates)) + 1


def test_the_union_bound_for_the_gaussian_is_above_the_quantile() -> None:
    assert Gaussian("0.5").book_bound(0.05) == pytest.approx(1.959963985)
    fine = Gaussian("0.5").error_bound(0.05, coordinates=1000, grid=FINE)
    assert fine == pytest.approx(stats.norm.isf(-special.expm1(log1p(-0.05) / 1000) / 2), rel=1e-5)
    assert fine < Gaussian("0.5").book_bound(0.05, coordinates=1000)


@BOTH
@pytest.mark.parametrize("beta", [0, 1, -0.1, 2, float("nan")])
def test_a_chance_outside_zero_and_one_is_refused(mechanism: Laplace, beta: float) -> None:
    for bound in (mechanism.error_bound, mechanism.book_bound):
        with pytest.raises(ValueError, match="Nothing was"):
            bound(beta)


# A scale 3 % off is 0.03 sqrt(300,000) = 16 standard errors away (Laplace: the information on the logarithm of the
# scale is 1), or 23 (Gaussian: 2), where a p-value of 1e-7 is 5.3.
DRAWS = 300_000


@pytest.mark.parametrize("sensitivity", [Fraction(7, 2), Fraction(1, 3)])
def test_the_systems_laplace_noise_has_the_law_that_is_charged(sensitivity: Fraction) -> None:
    mechanism, z = Laplace(1), np.arange(-60, 61)
    noise = mechanism.sample(OnGrid(np.full(DRAWS, 5), Fraction(1, 2)), sensitivity, SYSTEM) * 2 - 5
    seen = count(noise.astype(np.int64), -60, 60)
    law = [mechanism.probabilities(z, sensitivity * Fraction(off), Fraction(1, 2)) for off in ("1", "1.03", "0.97")]
    assert misfit(seen, law[0], DRAWS) > FALSE_ALARM
    if sensitivity > 1:
        assert all(unlike(seen, wrong, law[0], DRAWS) < FALSE_ALARM for wrong in law[1:])


def test_the_systems_gaussian_noise_has_the_law_that_is_charged() -> None:
    mechanism, z = Gaussian("1/18"), np.arange(-15, 16)  # sigma = 3
    seen = count(mechanism.sample(OnGrid(np.zeros(DRAWS, dtype=np.int64)), Fraction(1), SYSTEM), -15, 15)
    law = [mechanism.probabilities(z, Fraction(off)) for off in ("1", "1.03", "0.97")]
    assert misfit(seen, law[0], DRAWS) > FALSE_ALARM
    assert all(unlike(seen, wrong, law[0], DRAWS) < FALSE_ALARM for wrong in law[1:])


def test_coordinates_have_noise_of_their_own() -> None:
    """20,000 pairs: correlation of independent signs stays below 6/sqrt(20,000)."""
    drawn = Laplace(1).sample(OnGrid(np.zeros((20_000, 2), dtype=np.int64), Fraction(1, 64)), Fraction(1), SYSTEM)
    assert abs(np.mean(np.sign(drawn[:, 0]) * np.sign(drawn[:, 1]))) < 6 / sqrt(20_000)
    assert abs(np.corrcoef(abs(drawn).T)[0, 1]) < 6 / sqrt(20_000)
    assert log(abs(drawn).mean()) == pytest.approx(0, abs=6 / sqrt(40_000))
