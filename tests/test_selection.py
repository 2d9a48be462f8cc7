"""Selections: the vectors, exact laws against enumeration, ties, extremes of integers, bounds, the real sampler."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from noises import FALSE_ALARM, Played, Stocked, count, misfit, unlike
from numpy.typing import NDArray

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter
from tacit.primitives.additive import laplace_above, laplace_mass
from tacit.primitives.noise import SYSTEM
from tacit.primitives.selection import Exponential, ExponentialRun, NoisyMax, below_best
from tacit.privacy.budget import Budget, Loss

ONE = Fraction(1)
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def scores(*units: int, grid: Fraction = ONE) -> OnGrid:
    return OnGrid(np.array(units, dtype=np.int64), grid)


def fine(steps: int, *values: int) -> OnGrid:
    return OnGrid(np.array(values, dtype=np.int64) * steps, Fraction(1, steps))


def test_they_print_what_they_are_and_cost_what_they_say() -> None:
    assert str(Exponential("0.5")) == "Exponential(epsilon=1/2)"
    assert str(Exponential(1, monotone=True)) == "Exponential(epsilon=1, monotone=True)"
    assert str(NoisyMax(1, "exponential", True)) == "NoisyMax(epsilon=1, noise=exponential, monotone=True)"
    assert str(Exponential(1, draws=3)) == "Exponential(epsilon=1, draws=3)"
    assert str(Exponential(1, True, 2)) == "Exponential(epsilon=1, monotone=True, draws=2)"
    assert Exponential("0.5").loss() == Loss(Fraction(1, 2), Fraction(1, 32))
    assert Exponential("0.5", draws=1) == Exponential("0.5")
    assert Exponential("0.5", draws=6).loss() == Loss(Fraction(3), Fraction(6, 32))
    assert Exponential(16, draws=6).loss() == Loss.pure(Fraction(16)) * 6  # which is less than eps^2/8
    assert NoisyMax("0.5").loss() == NoisyMax("0.5", "exponential").loss() == Loss.pure(Fraction(1, 2))
    assert Exponential(1).norm is NoisyMax(1).norm is Norm.LINF
    assert [m.monotone for m in (Exponential(1), NoisyMax(1), NoisyMax(1, monotone=True))] == [False, False, True]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), None, True])
def test_an_epsilon_that_is_no_positive_number_is_refused(wrong: object) -> None:
    for kind in (Exponential, NoisyMax):
        with pytest.raises(InvalidParameter):
            kind(wrong)


@pytest.mark.parametrize("wrong", [1, 0, "yes", None])
def test_a_monotone_that_is_not_a_truth_value_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="monotone"):
        Exponential(1, monotone=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="monotone"):
        NoisyMax(1, monotone=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, 1.0, 2.5, True, "2", None, 10**7 + 1])
def test_a_number_of_draws_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="draws"):
        Exponential(1, draws=wrong)  # type: ignore[arg-type]


def test_gaussian_noise_is_refused() -> None:
    """Section 3.5.3: noisy max with Gaussian noise has no pure guarantee."""
    with pytest.raises(InvalidParameter, match="'gaussian'"):
        NoisyMax(1, "gaussian")  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [Exponential(1), NoisyMax(1), NoisyMax(1, "exponential")], ids=str)
def test_no_candidate_and_no_sensitivity_are_refused_before_a_draw(mechanism: Exponential) -> None:
    noise = Played()
    with pytest.raises(InvalidParameter, match="at least one candidate"):
        mechanism.sample(scores(), ONE, noise)
    with pytest.raises(InvalidParameter, match="must be positive"):
        mechanism.sample(scores(1, 2), Fraction(0), noise)
    assert not noise.asked


def test_the_exponential_mechanism_has_the_probabilities_of_the_vectors() -> None:
    u = scores(0, 1, 2)
    assert Exponential(1).probabilities(u) == pytest.approx([0.1863237232, 0.3071958857, 0.5064803911], rel=1e-9)
    monotone = Exponential(1, monotone=True).probabilities(u)
    assert monotone == pytest.approx([0.09003057317, 0.2447284711, 0.6652409558], rel=1e-9)


def test_the_pumpkin_auction_has_the_probabilities_of_the_vectors() -> None:
    """Example 3.5 with E10: bids 1.00 (twice), 1.00... and 3.01; the best price is 1.00, with a revenue of 4."""
    revenue = scores(200, 400, 150, 200, 250, 300, 301, 0, 0, grid=Fraction(1, 100))
    one = [0.1093188873, 0.1454719768, 0.1017827471, 0.1093188873, 0.1174130142]
    one += [0.1261064417, 0.1262867225, 0.08215066153, 0.08215066153]
    assert Exponential(1).probabilities(revenue, "3.5") == pytest.approx(one, rel=1e-9)
    ten = [0.03282525516, 0.57154376, 0.01606932989, 0.03282525516, 0.06705303731]
    ten += [0.1369710545, 0.1389418272, 0.001885240382, 0.001885240382]
    assert Exponential(10).probabilities(revenue, "3.5") == pytest.approx(ten, rel=1e-9)


def test_the_best_of_two_is_missed_as_rarely_as_the_vectors_say() -> None:
    """Example 3.6, c = 10."""
    u = scores(0, 10)
    assert Exponential(1).probabilities(u)[0] == pytest.approx(0.006692850924, rel=1e-9)
    assert NoisyMax(1, "exponential", True).probabilities(u)[0] == pytest.approx(2.269996488e-05, rel=1e-9)
    assert NoisyMax(1, "exponential").probabilities(u)[0] == pytest.approx(0.0033689735, rel=1e-9)
    # Cor. 3.12 says 2 exp(-c eps/2) = 0.013475894, at a gap of 10
    assert Exponential(1).book_bound(0.013475894, candidates=2) == pytest.approx(10)


def test_permute_and_flip_is_one_sided_exponential_noise_and_not_the_exponential_mechanism() -> None:
    """Thm 3.13 with E11: the rate is eps/2 Delta, eps/Delta for monotone scores."""
    u = scores(0, 1, 2)
    general = NoisyMax(1, "exponential").probabilities(u)
    assert general == pytest.approx([0.1467513606, 0.2660769698, 0.5871716696], rel=1e-9)
    monotone = NoisyMax(1, "exponential", True).probabilities(u)
    assert monotone == pytest.approx([0.05936979689, 0.1756418759, 0.7649883273], rel=1e-9)
    assert abs(general - Exponential(1).probabilities(u)).max() > 0.03


def test_on_a_fine_grid_noisy_max_has_the_probabilities_of_the_book() -> None:
    """Claim 3.9; ties go to either, so the error falls with the square of the grid."""
    u = fine(4096, 10, 12, 13)
    monotone = NoisyMax(1, monotone=True).probabilities(u)
    assert monotone == pytest.approx([0.03131857377, 0.2645067132, 0.704174713], rel=1e-7)
    assert NoisyMax(1).probabilities(u) == pytest.approx([0.1103636337, 0.3323583007, 0.5572780656], rel=1e-7)
    wrong = NoisyMax(1, monotone=True).probabilities(fine(4096, 0, 3))[0]
    assert wrong == pytest.approx(0.06223383546, rel=1e-7)  # (2 + c)e^-c/4 at c = 3


def test_on_the_whole_numbers_noisy_max_has_the_exact_law_of_the_whole_numbers() -> None:
    """Two candidates: P[wrong] = P[D > c] + P[D = c]/2 for the difference D of two discrete Laplace."""
    z = np.arange(-80, 81)
    mass = laplace_mass(z, 2.0)
    difference = np.convolve(mass, mass)
    for gap in (0, 1, 5):
        wrong = difference[160 + gap + 1 :].sum() + difference[160 + gap] / 2
        assert NoisyMax(1).probabilities(scores(0, gap))[0] == pytest.approx(wrong, rel=1e-12)


@pytest.mark.parametrize("units", [(0, 0), (3, 0, 1), (2, 2, 2), (0, 4, 4, 1)])
def test_the_law_of_noisy_max_is_that_of_all_noises_one_by_one(units: tuple[int, ...]) -> None:
    """Every vector of noises within 10 scales, ties shared: what is left out is below 2e-4."""
    reach = {2: 20, 3: 20, 4: 10}[len(units)]
    z = np.arange(-reach, reach + 1)
    total = np.zeros(len(units))
    for noise in product(z, repeat=len(units) - 1):
        noisy = np.array(units[1:])[:, None] + np.array(noise)[:, None] + np.zeros(z.size, dtype=int)
        noisy = np.vstack([units[0] + z, noisy])
        mass = np.prod(laplace_mass(np.array(noise), 1.0)) * laplace_mass(z, 1.0)
        best = noisy == noisy.max(axis=0)
        total += (best / best.sum(axis=0) * mass).sum(axis=1)
    law = NoisyMax(2).probabilities(OnGrid(np.array(units)))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law == pytest.approx(total, abs=2e-4)


@pytest.mark.parametrize("units", [(0,), (0, 0), (3, 0, 1), (0, 4, 4, 1, 2, 2)])
def test_the_law_of_permute_and_flip_is_that_of_all_flags_one_by_one(units: tuple[int, ...]) -> None:
    u = np.array(units)
    reach = np.exp(-0.5 * (u.max() - u))
    total = np.zeros(u.size)
    for flags in product((0, 1), repeat=u.size):
        mass = np.prod(np.where(flags, reach, 1 - reach))
        if mass:
            total += mass * np.array(flags) / sum(flags)
    assert NoisyMax(1, "exponential").probabilities(OnGrid(u)) == pytest.approx(total, rel=1e-12)


def test_the_law_of_many_candidates_is_still_a_law() -> None:
    u = OnGrid(np.arange(300) % 17)
    for mechanism in (NoisyMax(1), NoisyMax(1, "exponential"), Exponential(1)):
        law = mechanism.probabilities(u)
        assert law.sum() == pytest.approx(1, abs=1e-10)
        assert (law > 0).all()
    with pytest.raises(InvalidParameter, match="too long a sum"):
        NoisyMax("1e-6").probabilities(fine(1024, 0, 1))


def test_permute_and_flip_is_closer_to_the_best_than_the_exponential_mechanism() -> None:
    """The expected gap (McKenna & Sheldon 2020): never larger, and half of it for two candidates."""
    rng = np.random.default_rng(0)
    for u in [np.array([0, 5]), np.arange(50), *(rng.integers(0, 30, size) for size in (3, 10, 40))]:
        gaps = [float((u.max() - u) @ m.probabilities(OnGrid(u))) for m in (Exponential(1), NoisyMax(1, "exponential"))]
        assert gaps[1] <= gaps[0]
        if u.size == 2:
            assert gaps == pytest.approx([0.37929, 0.20521], abs=1e-5)
        if u.size == 50:
            assert gaps == pytest.approx([1.54149, 1.28483], abs=1e-5)


def test_scores_are_handed_to_the_noise_as_whole_distances_with_an_exact_rate() -> None:
    u = scores(3, -2, 10, grid=Fraction(1, 4))
    noise = Played(1, 1)
    assert Exponential("0.3").sample(u, Fraction(5), noise) == 1
    assert Exponential("0.3", monotone=True).sample(u, Fraction(5), noise) == 1
    for asked, rate in zip(noise.asked, (Fraction(3, 400), Fraction(3, 200)), strict=True):
        law, exponents, asked_rate, size = asked
        assert (law, exponents.tolist(), asked_rate, size) == ("weighted", [7, 12, 0], rate, 1)


def test_several_draws_are_asked_for_at_once_and_one_is_a_plain_index() -> None:
    u = scores(3, -2, 10)
    noise = Played([2, 0, 2], 2)
    several = Exponential(1, draws=3).sample(u, ONE, noise)
    assert isinstance(several, np.ndarray)
    assert several.dtype == np.int64
    assert several.tolist() == [2, 0, 2]
    assert isinstance(Exponential(1).sample(u, ONE, noise), int)
    assert [asked[2:] for asked in noise.asked] == [(Fraction(1, 2), 3), (Fraction(1, 2), 1)]


@pytest.mark.parametrize("monotone", [False, True])
def test_several_draws_have_the_law_of_as_many_choices_made_alone(monotone: bool) -> None:
    """40,000 triples against the product of the law with itself, and of laws with 5 % more or less epsilon.

    Those lie at least 11.4 standard deviations off in the direction of the difference; a p-value of 1e-7 is 5.3.
    """
    u, rounds = scores(0, 5, 2, 7, grid=Fraction(1, 2)), 40_000

    def product_of(epsilon: str) -> NDArray[np.float64]:
        law = Exponential(epsilon, monotone).probabilities(u)
        return np.multiply.outer(np.multiply.outer(law, law), law).ravel()

    mechanism, noise = Exponential(3, monotone, 3), Stocked()
    drawn = np.array([mechanism.sample(u, ONE, noise) for _ in range(rounds)])
    seen = count(drawn @ [16, 4, 1], 0, 63)
    assert misfit(seen, product_of("3"), rounds) > FALSE_ALARM
    for wrong in ("2.85", "3.15"):
        assert unlike(seen, product_of("3"), product_of(wrong), rounds) > FALSE_ALARM
        assert unlike(seen, product_of(wrong), product_of("3"), rounds) < FALSE_ALARM


def test_several_draws_among_a_million_are_made_in_one_pass() -> None:
    """1,000 choices: one candidate against 2^20 that are 28 below, exp(-14) each; a misfit of six standard errors."""
    u = np.full(2**20, -28, dtype=np.int64)
    u[7] = 0
    p, draws = 1 / (1 + exp(-14) * (2**20 - 1)), 1000
    hits = (Exponential(1, draws=draws).sample(OnGrid(u), ONE, SYSTEM) == 7).sum()
    assert abs(hits - draws * p) < 6 * (draws * p * (1 - p)) ** 0.5


def test_the_bounds_of_several_draws_hold_for_all_of_them_together() -> None:
    """1,000 draws: that one is further off than the bound has probability beta, exactly at the worst scores."""
    one, many = Exponential("0.7"), Exponential("0.7", draws=1000)
    bound = many.error_bound(0.1, candidates=50, sensitivity=2)
    assert (
        one.error_bound(0.1, candidates=50, sensitivity=2) < bound < many.book_bound(0.1, candidates=50, sensitivity=2)
    )
    assert many.book_bound(0.1, candidates=50) == one.book_bound(0.0001, candidates=50)
    u = OnGrid(np.array([0] + [-round(bound * 4096)] * 49), Fraction(1, 4096))
    assert 1 - many.probabilities(u, 2)[0] ** 1000 == pytest.approx(0.1, rel=1e-3)


def test_noisy_max_adds_the_noise_to_each_score_and_tells_the_index() -> None:
    u = scores(3, -2, 10, grid=Fraction(1, 4))
    noise = Played([8, 12, 0])
    assert NoisyMax("0.3").sample(u, Fraction(5), noise) == 0
    assert noise.asked == [("laplace", Fraction(400, 3), 3)]
    noise = Played([7, 12, -1], 1)
    assert NoisyMax("0.3", monotone=True).sample(u, Fraction(5), noise) == 1
    assert noise.asked[0] == ("laplace", Fraction(200, 3), 3)


@pytest.mark.parametrize(("drawn", "winner"), [(0, 0), (1, 2), (2, 3)])
def test_a_tie_is_broken_by_a_uniform_draw_among_those_that_tie(drawn: int, winner: int) -> None:
    noise = Played([2, 0, 1, 0], drawn)
    assert NoisyMax(1).sample(scores(5, 6, 6, 7), ONE, noise) == winner
    assert noise.asked[1] == ("uniform", 3, 1)
    flags = Played([1, 0, 1, 1], drawn)
    assert NoisyMax(1, "exponential").sample(scores(5, 6, 6, 7), ONE, flags) == winner
    assert flags.asked[0][1].tolist() == [2, 1, 1, 0]
    assert flags.asked[0][2] == Fraction(1, 2)
    assert flags.asked[1] == ("uniform", 3, 1)


@pytest.mark.parametrize(
    ("units", "below"),
    [
        ((LEAST, MOST), (2**62, 0)),
        ((LEAST, 0, MOST), (2**62, 2**62, 0)),
        ((LEAST, LEAST + 5), (5, 0)),
        ((MOST, MOST - 5), (0, 5)),
        ((-(2**61), 2**61), (2**62, 0)),
        ((-(2**61) - 1, 2**61), (2**62, 0)),
        ((-(2**61) + 1, 2**61), (2**62 - 1, 0)),
        ((-1, -(2**62), LEAST), (0, 2**62 - 1, 2**62)),
    ],
)
def test_distances_never_overflow(units: tuple[int, ...], below: tuple[int, ...]) -> None:
    assert below_best(np.array(units, dtype=np.int64)).tolist() == list(below)


@pytest.mark.parametrize(
    "mechanism", [Exponential(1), NoisyMax(1), NoisyMax(1, "exponential"), Exponential(1, True)], ids=str
)
def test_the_best_of_extreme_scores_is_chosen(mechanism: Exponential) -> None:
    """A wrap-around would choose the least; the chance of that is below exp(-2^60)."""
    for units in ((LEAST, MOST), (LEAST, LEAST + 10**6, -5), (LEAST, 0, 1 << 40)):
        for _ in range(20):
            assert mechanism.sample(scores(*units), ONE, SYSTEM) == len(units) - 1


def test_cutting_off_the_depth_moves_no_score_further_than_it_moved() -> None:
    """max(u, best - 2^62) for neighbours that straddle the cut."""
    for low in range(-3, 4):
        one = below_best(np.array([2**61, -(2**61) + low]))
        other = below_best(np.array([2**61 - 1, -(2**61) + low + 1]))
        assert abs(int(one[1]) - int(other[1])) <= 2


def test_the_worst_case_of_theorem_3_11_is_the_vectors() -> None:
    """u = [3,7,7,1,0], eps = 2, t = 1: the choice is above 5.083709268 except with probability 1/e."""
    bound = Exponential(2).book_bound(exp(-1), candidates=5, optimal=2)
    assert 7 - bound == pytest.approx(5.083709268)
    law = Exponential(2).probabilities(scores(3, 7, 7, 1, 0))
    assert law[[0, 3, 4]].sum() <= exp(-1)


@pytest.mark.parametrize("beta", [0.2, 0.01, 1e-7])
@pytest.mark.parametrize(("m", "k"), [(2, 1), (50, 1), (50, 20)])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_bound_of_the_exponential_mechanism_is_attained_at_its_worst_case(
    beta: float, m: int, k: int, monotone: bool
) -> None:
    mechanism = Exponential("0.7", monotone)
    bound = mechanism.error_bound(beta, candidates=m, optimal=k, sensitivity=2)
    assert bound <= mechanism.book_bound(beta, candidates=m, optimal=k, sensitivity=2)
    steps = round(bound * 4096)
    u = OnGrid(np.array([0] * k + [-steps] * (m - k)), Fraction(1, 4096))
    assert mechanism.probabilities(u, 2)[k:].sum() == pytest.approx(beta, rel=1e-3)


@pytest.mark.parametrize("beta", [0.2, 0.01, 1e-7])
@pytest.mark.parametrize("m", [2, 40])
@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_bound_of_noisy_max_holds_at_its_worst_case_and_not_far_below(
    beta: float, m: int, noise: str, monotone: bool
) -> None:
    mechanism = NoisyMax("0.7", noise, monotone)  # type: ignore[arg-type]
    bound = int(mechanism.error_bound(beta, candidates=m, sensitivity=2))
    assert bound <= mechanism.book_bound(beta, candidates=m, sensitivity=2) + 1
    worse = [
        mechanism.probabilities(OnGrid(np.array([0] + [-gap] * (m - 1))), 2)[1:].sum() for gap in (bound + 1, bound)
    ]
    assert worse[0] <= beta * (1 + 1e-6)
    if noise == "exponential" or m == 2:  # exact; else a union bound
        assert worse[1] > beta or bound == 0


@pytest.mark.parametrize("mechanism", [Exponential(1), NoisyMax(1), NoisyMax(1, "exponential")], ids=str)
def test_one_candidate_is_never_off_and_no_beta_is_not_a_chance(mechanism: Exponential) -> None:
    assert mechanism.error_bound(0.05, candidates=1) == 0
    assert mechanism.probabilities(scores(-7)) == pytest.approx([1.0], abs=1e-12)
    for wrong in ({"candidates": 0}, {"candidates": 2.5}):
        with pytest.raises(InvalidParameter):
            mechanism.error_bound(0.05, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        mechanism.error_bound(1.0, candidates=3)


MECHANISMS = [
    (kind, monotone)
    for kind in (Exponential, NoisyMax, lambda eps, monotone: NoisyMax(eps, "exponential", monotone))
    for monotone in (False, True)
]
CHOICES = pytest.mark.parametrize(
    ("kind", "monotone"), MECHANISMS, ids=["em", "em-monotone", "max", "max-monotone", "flip", "flip-monotone"]
)


def chosen(mechanism: Exponential, answer: OnGrid, draws: int, size: int) -> NDArray[np.int64]:
    noise = Stocked()
    return count([mechanism.sample(answer, ONE, noise) for _ in range(draws)], 0, size - 1)


@CHOICES
def test_the_system_chooses_by_the_law_that_is_charged(kind: type, monotone: bool) -> None:
    """6,000 choices among candidates with ties, in halves of a unit."""
    mechanism, u = kind(1, monotone=monotone), scores(0, 5, 5, 2, 7, 7, 6, 1, grid=Fraction(1, 2))
    assert misfit(chosen(mechanism, u, 6_000, 8), mechanism.probabilities(u), 6_000) > FALSE_ALARM


def wins(mechanism: Exponential | NoisyMax, gap: int, others: int) -> float:
    """How likely one candidate wins that is so many quarters better than all others, by its own closed form."""
    rate = float(mechanism.rate(1, Fraction(1, 4)))
    if isinstance(mechanism, Exponential):
        return 1 / (1 + others * exp(-rate * gap))
    if mechanism.noise == "exponential":
        p = exp(-rate * gap)
        return (1 - (1 - p) ** (others + 1)) / ((others + 1) * p)
    v = np.arange(-600, 601)
    ties, below = laplace_mass(v, 1 / rate), 1 - laplace_above(v, 1 / rate)
    beaten = ((below + ties) ** (others + 1) - below ** (others + 1)) / ((others + 1) * ties)
    return float(laplace_mass(v - gap, 1 / rate) @ beaten)


@CHOICES
def test_the_closed_form_of_one_best_is_the_law_that_is_claimed(kind: type, monotone: bool) -> None:
    for gap, others in ((0, 3), (7, 1), (12, 20)):
        u = OnGrid(np.array([gap] + [0] * others), Fraction(1, 4))
        mechanism = kind("0.8", monotone=monotone)
        assert wins(mechanism, gap, others) == pytest.approx(mechanism.probabilities(u)[0], rel=1e-9)


@CHOICES
def test_three_percent_more_or_less_epsilon_is_noticed(kind: type, monotone: bool) -> None:
    """15,000 choices of one best against 1,000 others, so far below that it wins half the time.

    There 3 % of epsilon move its chance by at least 0.044, which is 10.7 standard errors; a p-value of 1e-7 is 5.3.
    """
    others, draws = 1000, 15_000
    gap = min(range(1, 200), key=lambda gap: abs(wins(kind(1, monotone=monotone), gap, others) - 0.5))
    right, *wrong = (wins(kind(off, monotone=monotone), gap, others) for off in (1, 0.97, 1.03))
    assert min(abs(right - p) for p in wrong) > 0.044
    u = OnGrid(np.array([gap] + [0] * others), Fraction(1, 4))
    seen = chosen(kind(1, monotone=monotone), u, draws, others + 1)[:1]
    assert misfit(seen, np.array([right]), draws) > FALSE_ALARM
    assert all(misfit(seen, np.array([p]), draws) < FALSE_ALARM for p in wrong)


def test_among_a_million_candidates_the_choice_follows_the_scores() -> None:
    """100 choices: one candidate against 2^20 that are 28 below, exp(-14) each; a misfit of six standard errors."""
    u = np.full(2**20, -28, dtype=np.int64)
    u[7] = 0
    draws, p = 100, 1 / (1 + exp(-14) * (2**20 - 1))
    hits = sum(Exponential(1).sample(OnGrid(u), ONE, SYSTEM) == 7 for _ in range(draws))
    assert abs(hits - draws * p) < 6 * (draws * p * (1 - p)) ** 0.5


# ---- runs


def signed(u: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every signed run's sum, one by one: a row for each start, a column for each end."""
    ends = range(len(u) + 1)
    return np.array([[u[a:b].sum() if a <= b else -u[b:a].sum() for b in ends] for a in ends])


@pytest.mark.parametrize("units", [(5,), (0, 0), (3, -1, 4, -1, -5), (7, 0, -7, 2)])
@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_two_draws_have_the_law_of_the_exponential_mechanism_over_all_signed_runs(
    units: tuple[int, ...], epsilon: str
) -> None:
    u = np.array(units)
    law = ExponentialRun(epsilon).probabilities(OnGrid(u, Fraction(1, 2)), 3)
    one_by_one = Exponential(epsilon).probabilities(OnGrid(signed(u).ravel(), Fraction(1, 2)), 3)
    assert law.ravel() == pytest.approx(one_by_one, rel=1e-12)


def test_a_run_is_asked_for_as_two_choices_with_an_exact_rate() -> None:
    noise = Played(2, 1)
    assert ExponentialRun("0.3").sample(scores(3, -5, 10, grid=Fraction(1, 4)), Fraction(5), noise) == (2, 1)
    assert [asked[0] for asked in noise.asked] == ["weighted"] * 2
    assert [asked[1].tolist() for asked in noise.asked] == [[2, 5, 0, 10], [8, 5, 10, 0]]  # of sums 0, 3, -2, 8
    assert {asked[2:] for asked in noise.asked} == {(Fraction(3, 400), 1)}


def test_the_real_draws_have_that_law_and_not_one_of_5_percent_more_or_less_epsilon() -> None:
    """40,000 runs over three answers; a p-value of 1e-7 is 5.3 standard deviations."""
    u, rounds, noise = scores(4, -6, 5), 40_000, Stocked()
    mechanism = ExponentialRun(1)
    seen = count([int(np.dot((4, 1), mechanism.sample(u, ONE, noise))) for _ in range(rounds)], 0, 15)
    law = mechanism.probabilities(u).ravel()
    assert misfit(seen, law, rounds) > FALSE_ALARM
    for wrong in ("0.95", "1.05"):
        other = ExponentialRun(wrong).probabilities(u).ravel()
        assert unlike(seen, law, other, rounds) > FALSE_ALARM
        assert unlike(seen, other, law, rounds) < FALSE_ALARM


def test_a_run_costs_as_much_as_two_choices_of_half_its_epsilon() -> None:
    assert ExponentialRun("0.5").loss() == Exponential("0.25", draws=2).loss() == Loss(Fraction(1, 2), Fraction(1, 64))
    assert str(ExponentialRun("0.5")) == "ExponentialRun(epsilon=1/2)"
    assert (ExponentialRun(1).norm, ExponentialRun(1).monotone) == (Norm.L1, False)
    for budget in (Budget.of(1), Budget.of(1, "1e-9"), Budget.of(100, "1e-9")):
        spent = budget.price(ExponentialRun.of(budget).loss())
        assert budget.amount * (1 - Fraction(1, 10**9)) < spent <= budget.amount


def test_the_best_run_of_extreme_answers_is_chosen() -> None:
    """Sums are clipped before they could wrap; among a million cells the best interval is found."""
    assert ExponentialRun(1).sample(scores(LEAST, MOST, MOST, LEAST), ONE, SYSTEM) == (1, 3)
    u = np.full(10**6, -1, dtype=np.int64)
    u[300_000:400_000] = 7
    start, end = ExponentialRun(8).sample(OnGrid(u), ONE, SYSTEM)
    assert max(abs(start - 300_000), abs(end - 400_000)) < 100  # a cell further is less likely by exp(-4)


def test_the_bound_of_a_run_holds_at_its_exact_law() -> None:
    """P[sum < best - bound] over 200 random rows of answers, at most beta; and what is no row is refused."""
    rng = np.random.default_rng(5)
    bound = ExponentialRun(1).error_bound(0.1, answers=6)
    for _ in range(200):
        u = rng.integers(-20, 21, 6)
        apart = signed(u).max() - signed(u)
        assert ExponentialRun(1).probabilities(OnGrid(u))[apart > bound].sum() <= 0.1
    for wrong in (0, 2**20, 1.5):
        with pytest.raises(InvalidParameter):
            ExponentialRun(1).error_bound(0.1, answers=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="at least one answer"):
        ExponentialRun(1).sample(scores(), ONE, SYSTEM)
