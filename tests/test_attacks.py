"""Attacks from outside: each succeeds against something careless here, and fails against the curator.

Error rates are for every run of a test: the share of runs of a right implementation in which it would fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from doubles import Rows
from scipy.optimize import linprog
from scipy.stats import binom

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Counting, Linear, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.workload import Workload
from tacit.errors import BudgetExceeded
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Budget

SCHEMA = Schema([Integers("name", 0, 999), Categories("trait", ("no", "yes"))])


def town(bob: int) -> Rows:
    """A thousand people, each with a name of their own; a third have the trait, and Bob, the last, as said."""
    traits = (np.arange(1000) % 3 == 0).astype(np.int64)
    traits[999] = bob
    return Rows(SCHEMA, np.column_stack([np.arange(1000), traits]))


EVERYBODY = Counting.where(SCHEMA, {"trait": (1,)})
ALL_BUT_BOB = Counting.where(SCHEMA, {"name": tuple(range(999)), "trait": (1,)})


def guess_by_differencing(answer: Callable[[Counting], float]) -> int:
    """Section 1.1: two large counts, either of which looks harmless; their difference is one person."""
    return int(answer(EVERYBODY) - answer(ALL_BUT_BOB) > 0.5)


def test_differencing_reads_a_trait_off_exact_answers() -> None:
    for bob in (0, 1):
        table = town(bob)
        assert guess_by_differencing(lambda query, t=table: query(t.project(query.columns))[0]) == bob


def test_differencing_fails_against_the_curator() -> None:
    """Whoever guesses a bit from an eps-DP view is right with probability at most e^eps/(1 + e^eps).

    2,000 games at a total of eps = 1/2; the bound is 0.6225, and a right curator exceeds the 1 - 1e-7 quantile with
    probability below 1e-7. Exact answers would win all 2,000.
    """
    games, right = 2000, 0
    for game in range(games):
        bob = game % 2
        curator = Curator(town(bob), MemoryLedger(Budget.of("0.5")), Neighbors.REPLACE_ONE)
        right += guess_by_differencing(lambda query, c=curator: c.release(Laplace("0.25"), query)[0]) == bob
    most = binom.ppf(1 - 1e-7, games, exp(0.5) / (1 + exp(0.5)))
    assert right <= most


def test_averaging_is_charged_until_the_budget_is_gone() -> None:
    curator, answers = Curator(town(1), MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE), []
    for _ in range(10):
        answers.append(curator.release(Laplace("0.1"), EVERYBODY)[0])
    with pytest.raises(BudgetExceeded):
        curator.release(Laplace("0.1"), EVERYBODY)
    assert len(set(answers)) > 1  # a repeated question gets fresh noise: all equal has probability below 1e-9


@pytest.mark.parametrize(("total", "recovers"), [(Fraction(1), False), (Fraction(600), True)])
def test_linear_reconstruction_needs_more_budget_than_was_given(total: Fraction, recovers: bool) -> None:
    """Dinur and Nissim: 60 secret bits, 360 random subset counts, least total error by linear programming.

    With eps = 1 in all the noise has scale 360 and the recovered bits are coin flips: more than 50 of 60 right has
    probability below 1e-7 for a fair coin; with eps = 600 the curator has promised nothing, and 95 % come back.
    """
    bits, questions = 60, 360
    rng = np.random.default_rng(0)
    schema = Schema([Integers("name", 0, bits - 1), Categories("bit", (0, 1))])
    secret = rng.integers(0, 2, bits)
    table = Rows(schema, np.column_stack([np.arange(bits), secret]))
    subsets = rng.integers(0, 2, (questions, bits))
    weights = [np.outer(subset, [0, 1]) for subset in subsets]
    workload = Workload(tuple(Linear.of(schema, ("name", "bit"), weight) for weight in weights))
    curator = Curator(table, MemoryLedger(Budget.of(total)), Neighbors.REPLACE_ONE)
    step = Laplace(total / questions)
    answers = np.array([curator.release(step, query)[0] for query in workload.queries])
    # minimise sum t with |subsets b - answers| <= t
    cost = np.concatenate([np.zeros(bits), np.ones(questions)])
    slack = -np.eye(questions)
    within = np.block([[subsets, slack], [-subsets, slack]])
    found = linprog(cost, within, np.concatenate([answers, -answers]), bounds=[(0, 1)] * bits + [(0, None)] * questions)
    right = int(np.sum((found.x[:bits] > 0.5) == secret))
    assert right >= 0.95 * bits if recovers else right <= 50


def naive_laplace(truth: float, scale: float) -> float:
    """What tacit must not do: an inverse distribution function in floats."""
    u = int(SYSTEM.uniform(2**53, 1)[0]) / 2**53 - 0.5
    return truth - scale * float(np.sign(u)) * float(np.log1p(-2 * abs(u))) if u else truth


def lowest_bit(x: float) -> int:
    """The exponent of the lowest bit that is set: how fine a grid the number lies on."""
    numerator, denominator = float(x).as_integer_ratio()
    return (numerator & -numerator).bit_length() - denominator.bit_length() if numerator else 0


def test_low_bits_give_a_naive_float_sampler_away() -> None:
    """Mironov 2012, Haney et al. 2022: the precision of one output tells which input it came from.

    3,000 draws a side. Numbers finer than 2^-53 come from the input 0 about a quarter of the time, never from 1.
    """
    fine = [sum(lowest_bit(naive_laplace(truth, 1.0)) < -53 for _ in range(3000)) for truth in (0.0, 1.0)]
    assert fine[0] > 300
    assert fine[1] == 0


@pytest.mark.parametrize("weights", [[0.0, 1.0], [1 / 3, 2 / 3], [0.1, 0.999]])
@pytest.mark.parametrize("mechanism", [Laplace(1), Gaussian(Fraction(1, 2))])
def test_outputs_of_neighbours_lie_on_the_same_grid(weights: list[float], mechanism: Laplace | Gaussian) -> None:
    """Every output, of either neighbour, is a whole multiple of the public grid: the low bits say nothing.

    Certain, not statistical. With a small scale the sets of outputs that occur also overlap: each side's values are
    reached by the other's, as the low-bit attack would deny.
    """
    schema = Schema([Categories("trait", ("no", "yes"))])
    query = Linear.of(schema, ("trait",), weights)
    outputs = []
    for people in (10, 11):
        table = Rows(schema, np.array([[person % 2] for person in range(people)]))
        ledger = MemoryLedger(Budget.of(1000) if isinstance(mechanism, Laplace) else Budget.of(500, "1e-9"))
        curator = Curator(table, ledger, Neighbors.ADD_REMOVE)
        outputs.append([curator.release(mechanism, query)[0] for _ in range(100)])
    grid = float(query.grid)
    assert all(value / grid == int(value / grid) for side in outputs for value in side)


def test_the_whole_support_is_shared_by_neighbours() -> None:
    """Two neighbouring counts, scale 1, 20,000 draws a side: every output seen at least 100 times on one side is seen
    on the other, where it is expected about 100/e times or more and missed with probability below e^-20."""
    sides = [Counter((SYSTEM.laplace(Fraction(1), 20_000) + truth).tolist()) for truth in (100, 101)]
    for one, other in (sides, sides[::-1]):
        assert all(other[value] > 0 for value, times in one.items() if times >= 100)


def test_the_odds_of_any_output_stay_within_epsilon() -> None:
    """Two tables that differ in one person, a marginal, eps = 1, 40,000 draws a side, the commonest outputs.

    A ratio above e^(1 + margin) has probability below 1e-6 by the normal bound on the log-ratio of two frequencies.
    """
    draws = 40_000
    sides = [Counter((SYSTEM.laplace(Fraction(1), draws) + truth).tolist()) for truth in (0, 1)]
    for value in range(-3, 5):
        a, b = sides[0][value], sides[1][value]
        deviation = (1 / a + 1 / b) ** 0.5
        assert abs(log(a / b)) <= 1 + 5.5 * deviation


def test_two_marginals_of_one_column_are_not_charged_as_one() -> None:
    trait = Marginal.over(SCHEMA, "trait")
    curator = Curator(town(1), MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    curator.release(Laplace(1), Workload((trait, trait)))
    assert curator.ledger.left == 0
    assert Workload((trait, trait)).sensitivity(Laplace.norm, Neighbors.ADD_REMOVE) == 2
