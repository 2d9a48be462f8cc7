"""AboveThreshold: the closed forms of the vectors, the steps one by one, the secret state, bounds, the real sampler."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest
from noises import FALSE_ALARM, Played, Stocked, count, misfit, unlike

from tacit.domain.grid import Norm, OnGrid
from tacit.errors import InvalidParameter
from tacit.primitives.additive import laplace_mass
from tacit.primitives.noise import SYSTEM
from tacit.primitives.threshold import AboveThreshold, Waiting
from tacit.privacy.budget import Loss


def number(units: int, grid: Fraction | int = 1) -> OnGrid:
    return OnGrid(np.array([units], dtype=np.int64), Fraction(grid))


def test_it_prints_what_it_is_and_costs_what_it_says() -> None:
    assert str(AboveThreshold("0.5", 100)) == "AboveThreshold(epsilon=1/2, threshold=100)"
    said = "AboveThreshold(epsilon=1, threshold=-5/2, sensitivity=2, monotone=True, grid=1/4)"
    assert str(AboveThreshold(1, -2.5, 2, True, "1/4")) == said
    assert AboveThreshold("0.5", 100).loss() == Loss.pure(Fraction(1, 2))
    assert AboveThreshold(1, 0).norm is Norm.LINF
    assert AboveThreshold(1, 5) == AboveThreshold("1", 5.0) != AboveThreshold(1, 5, grid="1/2048")


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"threshold": float("inf")},
        {"threshold": float("nan")},
        {"threshold": None},
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"grid": 0},
        {"monotone": 1},
    ],
)
def test_parameters_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        AboveThreshold(**{"epsilon": 1, "threshold": 0, **wrong})  # type: ignore[arg-type]


def test_the_scales_are_the_books_in_units_of_the_grid() -> None:
    above = AboveThreshold("0.3", 7, sensitivity="5/2", grid="1/8")
    assert (above.threshold_scale, above.query_scale) == (Fraction(2) * 20 / Fraction(3, 10), 4 * 20 / Fraction(3, 10))
    monotone = AboveThreshold("0.3", 7, sensitivity="5/2", monotone=True, grid="1/8")
    assert monotone.query_scale == monotone.threshold_scale == above.threshold_scale


def test_it_compares_noisy_queries_with_a_noisy_threshold_until_one_reaches_it() -> None:
    """D5 on halves: T = 10, its noise 1; queries 9 + 0 and 8 + 3. What equals the threshold is above it."""
    above, noise = AboveThreshold(1, 10, grid="1/2"), Played(2, 0, 6)
    state = above.start(noise)
    assert above.step(state, number(9), noise) == (state, False)
    assert above.step(state, number(8), noise) == (None, True)
    assert noise.asked == [("laplace", Fraction(4), 1), ("laplace", Fraction(8), 1), ("laplace", Fraction(8), 1)]


@pytest.mark.parametrize(("drawn", "is_above"), [(-1, False), (0, True)])
def test_one_unit_decides(drawn: int, is_above: bool) -> None:
    above, noise = AboveThreshold(1, "0.3", grid="1/10"), Played(5, drawn)
    assert above.step(above.start(noise), number(4, Fraction(1, 5)), noise)[1] is is_above  # 0.8 against 0.3 + 0.5


def test_a_threshold_between_two_steps_of_the_grid_loses_nothing() -> None:
    """An answer on the grid reaches T if and only if it reaches the next step above T."""
    for threshold, least in (("0.3", 3), ("0.31", 4), ("-0.31", -3), ("1/3", 4)):
        above = AboveThreshold(1, threshold, grid="1/10")
        for units in (least - 1, least):
            noise = Played(0, 0)
            assert above.step(above.start(noise), number(units, Fraction(1, 10)), noise)[1] is (units == least)


@pytest.mark.parametrize("grid", ["1/3", "1/2048", "3/2048", "1/1000"])
def test_an_answer_between_the_steps_is_refused_before_a_draw(grid: str) -> None:
    """Its moves would not be whole steps, and the proof shifts the noise by whole steps."""
    noise = Played(0)
    above = AboveThreshold(1, 0)
    state = above.start(noise)
    with pytest.raises(InvalidParameter, match="multiple of the grid 1/1024"):
        above.step(state, number(1, Fraction(grid)), noise)
    with pytest.raises(InvalidParameter, match="one answer at a time"):
        above.step(state, OnGrid(np.array([1, 2])), noise)
    assert len(noise.asked) == 1


@pytest.mark.parametrize("grid", ["1", "1/1024", "1/2", "3", "5/512"])
def test_an_answer_on_a_multiple_of_the_grid_is_compared_exactly(grid: str) -> None:
    above = AboveThreshold(1, 10 * Fraction(grid))
    for units in (9, 10):
        noise = Played(0, 0)
        assert above.step(above.start(noise), number(units, Fraction(grid)), noise)[1] is (units == 10)


def test_the_largest_answers_do_not_wrap() -> None:
    above = AboveThreshold(1, 0)
    for units in (2**63 - 1, -(2**63)):
        state = above.start(SYSTEM)
        assert above.step(state, number(units), SYSTEM)[1] is (units > 0)


def test_the_state_is_frozen_and_does_not_print_its_secret() -> None:
    state = AboveThreshold(1, 123456).start(SYSTEM)
    assert repr(state) == str(state) == "Waiting()"
    assert "123" not in f"{state!r} {state} {[state]}"
    with pytest.raises(AttributeError):
        state.units = 0  # type: ignore[misc]
    assert Waiting(5) != Waiting(5)  # nothing to learn by comparing


VECTORS = {  # A7: how likely it is to halt at the last of these answers, T = 0 and eps = 1
    (-4,): 0.2226970802,
    (0,): 0.5,
    (2,): 0.6569594671,
    (10,): 0.9463996588,
    (0, 0): 0.2083333333,
    (-5, -5, 5): 0.5545826564,
}


def test_the_chance_to_halt_has_the_closed_forms_of_the_vectors() -> None:
    """On the grid h the chance differs by a multiple of h from the one on the line: extrapolated from three grids."""
    for answers, expected in VECTORS.items():
        on = {}
        for steps in (32, 64, 128):
            above = AboveThreshold(1, 0, grid=Fraction(1, steps))
            on[steps] = above.probabilities(OnGrid(np.array(answers)))[len(answers) - 1]
            assert on[steps] == pytest.approx(expected, abs=0.05 / steps)
        first, second = 2 * on[64] - on[32], 2 * on[128] - on[64]
        assert (4 * second - first) / 3 == pytest.approx(expected, abs=1e-8)


def test_its_law_is_that_of_all_noises_one_by_one() -> None:
    """Two queries on the whole numbers, all three noises within 14 scales: what is left out is below 1e-5."""
    above = AboveThreshold(2, 1, grid=1)
    t, nu = np.arange(-14, 15), np.arange(-28, 29)
    mass = laplace_mass(t, 1.0)[:, None, None] * laplace_mass(nu, 2.0)[:, None] * laplace_mass(nu, 2.0)
    first = (0 + nu)[None, :, None] >= (1 + t)[:, None, None]
    second = (2 + nu)[None, None, :] >= (1 + t)[:, None, None]
    first, second = np.broadcast_arrays(first, second)
    law = [mass[first].sum(), mass[~first & second].sum(), mass[~first & ~second].sum()]
    assert above.probabilities(OnGrid(np.array([0, 2]))) == pytest.approx(law, abs=1e-5)


def test_the_bound_is_the_books_and_the_tight_one_is_much_smaller() -> None:
    """Thm 3.24, k = 1000, beta = 0.05, eps = 1."""
    above = AboveThreshold(1, 0)
    assert above.book_bound(0.05, queries=1000) == pytest.approx(84.77307786)
    assert 49.76429784 <= above.error_bound(0.05, queries=1000) <= 49.76429784 + 2 / 1024
    assert AboveThreshold(1, 0, grid=Fraction(1, 2**30)).error_bound(0.05, queries=1000) == pytest.approx(49.76429784)
    monotone = AboveThreshold(1, 0, monotone=True).error_bound(0.05, queries=1000)
    assert monotone == pytest.approx(2 * log(2000 / 0.05) + 2 * log(2 / 0.05), abs=2 / 1024)
    assert AboveThreshold("0.5", 0, 3).book_bound(0.05, queries=1000) == pytest.approx(6 * 84.77307786)
    for wrong in (0, 1, 1.5):
        with pytest.raises(InvalidParameter):
            above.error_bound(wrong, queries=1000)
    with pytest.raises(InvalidParameter):
        above.error_bound(0.05, queries=0)


@pytest.mark.parametrize("sensitivity", [1, 5])
def test_the_bound_holds_on_the_grid_at_its_worst_case(sensitivity: int) -> None:
    """Exactly: k - 1 queries at T - alpha - 1, then one at T + alpha: wrongly halting or missing it, at most beta."""
    for k, beta in ((1, 0.1), (20, 0.1), (200, 0.01)):
        above = AboveThreshold(1, 0, sensitivity, grid=1)
        alpha = int(above.error_bound(beta, queries=k))
        law = above.probabilities(OnGrid(np.array([-alpha - 1] * (k - 1) + [alpha + 1])))
        assert law[:-2].sum() + law[-1] <= beta
        assert above.error_bound(beta, queries=k) <= above.book_bound(beta, queries=k) + 2


DRAWS = 40_000


@pytest.mark.parametrize(("answers", "expected"), VECTORS.items(), ids=str)
def test_it_halts_as_often_as_the_vectors_say(answers: tuple[int, ...], expected: float) -> None:
    """40,000 streams on the system's noise, within five standard deviations: outside them once in 1.7 million runs.

    The grid of 2^-10 moves the chance by less than a thirtieth of one of them; an epsilon that is a tenth off moves one
    of the six, at least, by ten.
    """
    above, noise, halts = AboveThreshold(1, 0), Stocked(2**17), 0
    for _ in range(DRAWS):
        state: Waiting | None = above.start(noise)
        for place, answer in enumerate(answers):
            state, is_above = above.step(state, number(answer), noise)
            if is_above:
                halts += place == len(answers) - 1
                break
    deviation = (expected * (1 - expected) / DRAWS) ** 0.5
    assert abs(halts / DRAWS - expected) <= 5 * deviation


@pytest.mark.parametrize("monotone", [False, True])
def test_it_halts_by_the_law_that_is_charged_and_three_percent_are_noticed(monotone: bool) -> None:
    """40,000 streams of forty queries below the threshold, on the system's noise.

    An epsilon that is 3 % off is 10.6 or more standard errors away from where they halted; a p-value of 1e-7 is 5.3.
    """
    above, at = AboveThreshold(1, 0, monotone=monotone, grid="1/4"), -9 if monotone else -14
    answers = [number(at)] * 40
    noise, ends = Stocked(), []
    for _ in range(DRAWS):
        state: Waiting | None = above.start(noise)
        for i, answer in enumerate(answers):
            state, is_above = above.step(state, answer, noise)
            if is_above:
                ends.append(i)
                break
        else:
            ends.append(40)
    seen = count(ends, 0, 40)
    stream = OnGrid(np.full(40, at))
    law = above.probabilities(stream)
    assert misfit(seen, law, DRAWS) > FALSE_ALARM
    for off in (0.97, 1.03):
        wrong = AboveThreshold(off, 0, monotone=monotone, grid="1/4").probabilities(stream)
        assert unlike(seen, wrong, law, DRAWS) < FALSE_ALARM
