"""Randomized response: the coins of the book, the general law, its estimator, and that no noise looks at a value."""

from __future__ import annotations

import inspect
from fractions import Fraction
from math import exp, log, sqrt

import mpmath
import numpy as np
import pytest
from noises import FALSE_ALARM, Played, misfit

from tacit.errors import InvalidParameter
from tacit.primitives.noise import SYSTEM
from tacit.primitives.response import RandomizedResponse, Response, WarnerResponse
from tacit.privacy.budget import Loss

ALL = pytest.mark.parametrize(
    "response",
    [WarnerResponse(), RandomizedResponse(1), RandomizedResponse("0.1"), RandomizedResponse(2, 5)],
    ids=str,
)


def test_warners_coins_tell_the_truth_on_tails_and_the_second_coin_on_heads() -> None:
    """Claim 3.5, with E5: the truth comes when the first coin is *tails* (0 here)."""
    first, second = [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]
    noise = Played(first + second)
    told = WarnerResponse().sample([0, 0, 1, 1, 0, 0, 1, 1], noise)
    assert told.tolist() == [0, 0, 1, 1, 0, 1, 0, 1]
    assert noise.asked == [("uniform", 2, 16)]


def test_warners_law_is_three_quarters_and_its_loss_is_no_less_than_ln_3() -> None:
    assert WarnerResponse().probabilities().tolist() == [[0.75, 0.25], [0.25, 0.75]]
    charged = WarnerResponse().loss().epsilon
    with mpmath.workdps(40):
        spare = mpmath.mpf(charged.numerator) / charged.denominator - mpmath.log(3)
    assert 0 < spare < 1e-18
    assert WarnerResponse().loss() == Loss.pure(charged)
    assert float(charged) == pytest.approx(1.098612289)


def test_a_bit_is_kept_with_the_logistic_of_epsilon() -> None:
    assert RandomizedResponse(1).truth == pytest.approx(0.7310585786, rel=1e-9)
    assert RandomizedResponse(1).loss() == Loss(Fraction(1), Fraction("0.46211715726001"))  # tanh(1/2)
    warner = RandomizedResponse(log(3))
    assert warner.probabilities() == pytest.approx(WarnerResponse().probabilities())


@ALL
def test_the_law_is_a_law_and_attains_its_epsilon(response: Response) -> None:
    law = response.probabilities()
    assert law.sum(axis=1) == pytest.approx(np.ones(response.choices))
    assert log((law.max(axis=0) / law.min(axis=0)).max()) == pytest.approx(float(response.loss().epsilon))
    assert response.margin == pytest.approx(response.truth - response.other)


def test_the_standard_deviation_is_that_of_the_vectors() -> None:
    assert WarnerResponse().deviation(1000, 0.3) == pytest.approx(0.03098386677)
    assert RandomizedResponse(1).deviation(1000, 0.3) == pytest.approx(0.03362549024)
    assert WarnerResponse().other + 0.3 * WarnerResponse().margin == pytest.approx(0.4)  # E[fraction of yes]


@ALL
def test_the_estimate_is_unbiased_for_every_mixture(response: Response) -> None:
    k, people = response.choices, 1_000_000
    true = np.arange(1, k + 1) / (k * (k + 1) / 2)
    told = np.repeat(np.arange(k), np.rint(true @ response.probabilities() * people).astype(int))
    assert response.estimate(told) == pytest.approx(true, abs=k / people / response.margin)


def test_warners_estimate_is_twice_the_yes_less_a_half() -> None:
    assert WarnerResponse().estimate([1, 0, 0, 0, 0])[1] == pytest.approx(2 * 0.2 - 0.5)  # negative, and not clamped


def test_a_very_small_epsilon_keeps_its_digits() -> None:
    response = RandomizedResponse("1e-12")
    assert response.margin == pytest.approx(5e-13, rel=1e-9)
    assert response.estimate([0, 1]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("values", [[0, 2], [-1], [0.5], ["yes"], [[0, 3]], [None], [2**40]])
@pytest.mark.parametrize("response", [WarnerResponse(), RandomizedResponse(1)], ids=str)
def test_a_value_that_is_none_of_the_choices_is_refused_unquoted_and_undrawn(
    response: Response, values: list[object]
) -> None:
    noise = Played()
    with pytest.raises(InvalidParameter, match="whole numbers from 0 to 1") as refusal:
        response.sample(values, noise)  # type: ignore[arg-type]
    assert not noise.asked
    assert str(values[0]) not in str(refusal.value).replace("0 to 1", "")


@pytest.mark.parametrize(("epsilon", "choices"), [(0, 2), (-1, 2), (1, 1), (1, 2.0), (1, True), (1, 10**6)])
def test_parameters_that_cannot_be_are_refused(epsilon: float, choices: int) -> None:
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon, choices)


@ALL
def test_shapes_are_kept_and_nobody_is_nobody(response: Response) -> None:
    assert response.randomise([]).shape == (0,)
    assert response.randomise(1).shape == ()
    assert response.randomise([[True, False], [True, True]]).shape == (2, 2)
    with pytest.raises(InvalidParameter, match="nobody"):
        response.estimate([])


def test_the_public_entry_takes_no_seed_and_no_noise() -> None:
    assert list(inspect.signature(RandomizedResponse.randomise).parameters) == ["self", "values"]


def test_what_is_drawn_does_not_depend_on_the_value() -> None:
    """The same draws are asked for whatever the values are: neither time nor randomness can tell them apart."""
    asked = []
    for values in ([0, 0, 0], [1, 1, 1]):
        noise = Played([0] * 20 + [1] * 20, [1] * 40)
        RandomizedResponse(1).sample(values, noise)
        asked.append([(law, str(parameters)) for law, *parameters in noise.asked])
    assert asked[0] == asked[1]


DRAWS = 1_000_000


@ALL
@pytest.mark.parametrize("value", [0, 1])
def test_the_systems_responses_have_the_law_that_is_charged(response: Response, value: int) -> None:
    told = np.bincount(response.randomise(np.full(DRAWS, value)), minlength=response.choices)
    assert misfit(told, response.probabilities()[value], DRAWS) > FALSE_ALARM


def test_three_percent_more_or_less_epsilon_is_noticed() -> None:
    """A million draws: a truth off by 0.0059 is 13 standard errors, where a p-value of 1e-7 is 5.3."""
    told = np.bincount(RandomizedResponse(1).randomise(np.zeros(DRAWS, dtype=int)), minlength=2)
    for off in (0.97, 1.03):
        assert misfit(told, RandomizedResponse(off).probabilities()[0], DRAWS) < FALSE_ALARM
    told = np.bincount(WarnerResponse().randomise(np.ones(DRAWS, dtype=int)), minlength=2)
    for off in (0.97, 1.03):
        assert misfit(told, RandomizedResponse(off * log(3)).probabilities()[1], DRAWS) < FALSE_ALARM


def test_estimates_scatter_as_they_say() -> None:
    """2,000 surveys of 1,000 people: the chi-square of their spread has a relative deviation of sqrt(2/2,000)."""
    response, people, surveys = RandomizedResponse(1), 1000, 2000
    true = SYSTEM.bernoulli(Fraction(3, 10), people * surveys).astype(np.int64)
    told = response.randomise(true).reshape(surveys, people)
    estimates = np.array([response.estimate(row)[1] for row in told])
    assert estimates.mean() == pytest.approx(0.3, abs=6 * 0.0336 / sqrt(surveys))
    assert estimates.std() == pytest.approx(response.deviation(people, 0.3), rel=6 / sqrt(2 * surveys))


def test_keeping_every_one_of_many_choices_is_as_likely_as_it_says() -> None:
    """100,000 of k = 100 at eps = 5, where most proposals are rejected."""
    response = RandomizedResponse(5, 100)
    told = np.bincount(response.randomise(np.full(100_000, 7)), minlength=100)
    assert misfit(told, response.probabilities()[7], 100_000) > FALSE_ALARM
    assert response.truth == pytest.approx(exp(5) / (exp(5) + 99))
