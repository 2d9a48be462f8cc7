"""The examples of the book, each to the point that it makes; docs/examples.md tells them.

Statistical tests say how many draws they take; each fails by chance with a probability below 1e-6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, erf, exp, log, sqrt, tanh
from pathlib import Path

import numpy as np
import pytest
from doubles import Rows
from noises import FALSE_ALARM, misfit, unlike
from numpy.typing import NDArray
from scipy import stats

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm, OnGrid
from tacit.domain.query import Counting, Linear, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Hardness
from tacit.domain.synopsis import Histogram
from tacit.domain.workload import Workload, conjunctions
from tacit.errors import InvalidParameter
from tacit.mechanisms.mwem import mwem
from tacit.mechanisms.net import error_bound, small_db
from tacit.primitives.additive import Laplace, laplace_mass
from tacit.primitives.selection import Exponential, NoisyMax
from tacit.privacy.budget import Budget
from tacit.privacy.concentration import laplace_max_quantile
from tacit.privacy.optimal import optimal_delta

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def curated(table: Rows, *budget: object, neighbors: Neighbors = ADD) -> Curator:
    return Curator(table, MemoryLedger(Budget.of(*budget)), neighbors)  # type: ignore[arg-type]


def apart(law: NDArray[np.float64], shift: int = 1) -> float:
    """The total variation between a law on whole numbers and itself moved."""
    moved = np.concatenate([np.zeros(shift), law])
    return float(np.abs(np.append(law, np.zeros(shift)) - moved).sum() / 2)


# ---- section 1.1: the differencing attack


def test_two_large_counts_differ_by_one_person_and_their_noisy_difference_hardly_tells() -> None:
    """The advantage of whoever sees the difference is P[Z1 = Z2]; who knows all others attains the bound, not more."""
    z = np.arange(-400, 401)
    law = Laplace("0.25").probabilities(z)
    assert apart(np.convolve(law, law)) == pytest.approx(float((law**2).sum()), abs=1e-12)
    assert (law**2).sum() < tanh(0.5 / 2)
    assert apart(law) == pytest.approx(tanh(0.25 / 2), abs=1e-12)
    assert apart(Laplace("0.5").probabilities(z)) > tanh(0.25 / 2)  # half of the noise breaks the promise


# ---- Example 3.3: the most common first name


def test_ten_thousand_names_are_all_within_twelve() -> None:
    """A2: ln(10000/.05) and the exact quantile; on the whole numbers 12 is enough, and 11 is not."""
    one = Laplace(1)
    assert one.book_bound(0.05, coordinates=10_000) == pytest.approx(12.20607265)
    assert laplace_max_quantile(10_000, 0.05, 1) == pytest.approx(12.18053819)
    assert one.error_bound(0.05, coordinates=10_000) == 12

    def missed(bound: int) -> float:
        return 1 - float(one.probabilities(np.arange(-bound, bound + 1)).sum()) ** 10_000

    assert missed(12) <= 0.05 < missed(11)


def test_every_name_of_a_town_is_within_the_bound_as_often_as_it_says() -> None:
    """300 releases of 10,000 cells: P[some error above 12] is .0325; with noise of scale 1.25 it would be .34."""
    schema = Schema([Integers("name", 0, 9999)])
    town = Rows(schema, np.random.default_rng(3).binomial(9999, 0.4, (2000, 1)))
    query, people = Marginal.over(schema, "name"), curated(town, 300)
    truth = town.project(("name",))
    missed = sum(int(np.abs(people.release(Laplace(1), query) - truth).max()) > 12 for _ in range(300))
    assert missed <= stats.binom.ppf(1 - FALSE_ALARM, 300, 0.05)
    tail = 2 * exp(-13 * 0.8) / (1 + exp(-0.8))
    assert stats.binom.cdf(stats.binom.ppf(1 - FALSE_ALARM, 300, 0.05), 300, 1 - (1 - tail) ** 10_000) < 1e-6


# ---- Example 3.4: the most common medical condition


def clinic(conditions: int) -> tuple[Schema, Workload]:
    schema = Schema([Categories(f"c{i}", ("no", "yes")) for i in range(conditions)])
    return schema, Workload(tuple(Counting.where(schema, {name: (1,)}) for name in schema.names))


def test_conditions_overlap_so_all_counts_cost_twenty_and_their_winner_costs_one() -> None:
    schema, work = clinic(20)
    assert work.sensitivity(Norm.L1, ADD) == 20
    assert work.sensitivity(Norm.LINF, ADD) == 1
    ill = np.random.default_rng(0).random((3000, 20)) < np.linspace(0.5, 0.1, 20)
    people = curated(Rows(schema, ill.astype(np.int64)), 1)
    assert people.release(NoisyMax(1, monotone=True), work) == 0  # by 48 patients: else with probability 2e-20
    assert people.ledger.left == 0
    replaced = curated(Rows(schema, ill.astype(np.int64)), 1, neighbors=REPLACE)
    with pytest.raises(InvalidParameter, match="not proved monotone"):
        replaced.release(NoisyMax(1, monotone=True), work)


def winner_with_gap(counts: tuple[int, int, int]) -> dict[tuple[int, int], float]:
    """The law of the index and of the gap to the runner-up, at eps = 1 with noise of scale 1; ties go to either."""
    levels = np.arange(-45, 60)
    law: dict[tuple[int, int], float] = {}
    for i in range(3):
        first, second = (laplace_mass(levels - counts[j], 1.0) for j in range(3) if j != i)
        upto, upto2 = first.cumsum(), second.cumsum()
        best = first * (upto2 - second) + second * (upto - first)  # exactly one of them is the runner-up
        both = first * second
        for gap in range(10):
            reach = laplace_mass(levels + gap - counts[i], 1.0)
            law[i, gap] = float(((best / 2 + both / 3 if gap == 0 else best + both) * reach).sum())
    return law


def test_the_gap_to_the_runner_up_is_free_and_the_winning_value_is_not() -> None:
    """E9 and Ding et al. 2019, three conditions: every new patient, every table of up to four each, gaps up to nine."""
    worst = 0.0
    for counts in product(range(4), repeat=3):
        here = winner_with_gap(counts)  # type: ignore[arg-type]
        for patient in product(range(2), repeat=3):
            there = winner_with_gap(tuple(np.add(counts, patient).tolist()))
            worst = max(worst, *(abs(log(here[seen] / there[seen])) for seen in here))
    assert 0.99 < worst <= 1 + 1e-9
    below = 1 - laplace_mass(np.arange(-5, 60), 1.0).sum(), 1 - laplace_mass(np.arange(-6, 60), 1.0).sum()
    assert 3 * log(below[0] / below[1]) == pytest.approx(3, rel=1e-9)  # the largest of three lies below -5


# ---- Example 3.5: the pumpkin auction

PRICES = (50, 100, 150, 200, 250, 300, 301, 302, 350)
MARKET = Schema([Integers("bid", 0, 350)])


def revenues(prices: tuple[int, ...]) -> Workload:
    """What each price brings, in parts of the largest: bids that are high enough weigh the price."""
    cents = np.arange(351)
    largest = max(prices)
    return Workload(tuple(Linear(("bid",), (351,), p * (cents >= p), Fraction(1, largest)) for p in prices))


PUMPKINS = Rows(MARKET, np.array([[100], [100], [100], [301]]))


def test_pumpkins_bring_most_at_one_dollar() -> None:
    work = revenues(PRICES)
    scores = work.on_grid(*PUMPKINS.counts(work.reads))
    assert (scores.units / 100).tolist() == [2, 4, 1.5, 2, 2.5, 3, 3.01, 0, 0]
    assert work.sensitivity(Norm.LINF, ADD) == 1  # of the largest price
    one = [0.1093188873, 0.1454719768, 0.1017827471, 0.1093188873, 0.1174130142]
    one += [0.1261064417, 0.1262867225, 0.08215066153, 0.08215066153]
    assert Exponential(1).probabilities(scores) == pytest.approx(one, rel=1e-9)
    ten = [0.03282525516, 0.57154376, 0.01606932989, 0.03282525516, 0.06705303731]
    ten += [0.1369710545, 0.1389418272, 0.001885240382, 0.001885240382]
    assert Exponential(10).probabilities(scores) == pytest.approx(ten, rel=1e-9)


def test_the_curator_draws_the_price_by_the_law_of_the_auction() -> None:
    """50,000 prices, a hundred to a release; a mechanism with an epsilon 4 % larger would be seen."""
    work, draws, chosen = revenues(PRICES), 50_000, np.zeros(9, np.int64)
    for _ in range(draws // 100):
        people = curated(PUMPKINS, 1000)
        chosen += np.bincount(people.release(Exponential(10, draws=100), work), minlength=9)
        assert people.ledger.left == 0
    scores = work.on_grid(*PUMPKINS.counts(work.reads))
    law, other = Exponential(10).probabilities(scores), Exponential("10.4").probabilities(scores)
    assert misfit(chosen, law, draws) > FALSE_ALARM
    assert unlike(chosen, law, other, draws) > FALSE_ALARM
    drawn = np.random.default_rng(0).multinomial(draws, other)
    assert unlike(drawn, law, other, draws) < FALSE_ALARM


def test_prices_that_are_the_bids_tell_who_bid() -> None:
    """Without the bid of 3.01 no price of a fixed grid is e^eps times as likely; of a grid of bids one is gone."""
    without = Rows(MARKET, PUMPKINS.codes[:3])

    def law(table: Rows, prices: tuple[int, ...]) -> dict[int, float]:
        work = revenues(prices)
        scores = work.on_grid(*table.counts(work.reads))
        return dict(zip(prices, Exponential(1).probabilities(scores).tolist(), strict=True))

    here, there = law(PUMPKINS, PRICES), law(without, PRICES)
    assert max(abs(log(here[price] / there[price])) for price in PRICES) <= 1
    assert set(law(PUMPKINS, (100, 301))) != set(law(without, (100,)))


# ---- Example 3.6: the best of two


def test_the_wrong_one_of_two_is_named_less_often_with_every_saving() -> None:
    two = OnGrid(np.array([0, 10]))

    def wrong(mechanism: Exponential | NoisyMax) -> float:
        return float(mechanism.probabilities(two)[0])

    found = [
        wrong(Exponential(1)),
        wrong(NoisyMax(1, "exponential")),
        wrong(NoisyMax(1, monotone=True)),
        wrong(Exponential(1, monotone=True)),
        wrong(NoisyMax(1, "exponential", monotone=True)),
    ]
    assert sorted(found, reverse=True) == found
    assert found[0] == pytest.approx(1 / (1 + exp(5))) == pytest.approx(0.006692850924)
    assert found[0] < 2 * exp(-5)  # Cor. 3.12: .01348
    assert found[-1] == pytest.approx(exp(-10) / 2)


# ---- Example 3.7: Bob's lifetime


def two_valued(k: int, epsilon: float) -> float:
    """The total variation of k answers of randomized response, by adding up all of them."""
    p = 1 / (1 + exp(-epsilon))
    ones = np.arange(k + 1)
    ways = np.array([comb(k, i) for i in ones], dtype=float)
    return float(np.abs(ways * (p**ones * (1 - p) ** (k - ones) - p ** (k - ones) * (1 - p) ** ones)).sum() / 2)


def test_ten_thousand_studies_tell_of_bob_one_part_in_twenty() -> None:
    """The exact delta at epsilon 0 is the advantage of whoever guesses whether he takes part in all of them."""
    for k, epsilon in ((1, "1"), (4, "1/4"), (16, "1/16"), (30, "1/10")):
        assert float(optimal_delta(0, epsilon, k)) == pytest.approx(two_valued(k, float(Fraction(epsilon))), rel=1e-9)
    bob = float(optimal_delta(0, Fraction(1, 801), 10_000))
    assert bob == pytest.approx(erf(sqrt(10_000) / (2 * 801) / sqrt(2)), rel=1e-3)  # as normal numbers would
    assert bob == pytest.approx(0.0498, abs=5e-5)
    assert bob < tanh(0.5) / 9  # what epsilon = 1 would permit


# ---- Section 3.5.4: humans and ghosts


def test_one_bit_of_a_ghost_is_guessed_as_often_as_the_promise_allows_and_no_more() -> None:
    """300,000 games in one release, a cell each; who guesses by the count is right with e/(1 + e) exactly.

    Noise for an epsilon 5 % larger is refused, so the bound is attained.
    """
    games, epsilon = 300_000, Fraction(1)
    schema = Schema([Integers("game", 0, games - 1)])
    there = np.random.default_rng(5).random(games) < 0.5
    seen = curated(Rows(schema, np.flatnonzero(there)[:, None]), epsilon).release(
        Laplace(epsilon), Marginal.over(schema, "game")
    )
    right = int(((seen >= 1) == there).sum())

    def likely(e: float) -> bool:
        return bool(stats.binomtest(right, games, 1 / (1 + exp(-e))).pvalue > FALSE_ALARM)

    assert likely(1)
    assert not likely(1.05)
    assert not likely(0.95)


@pytest.mark.parametrize("width", [1, 16])
def test_the_width_of_a_record_buys_an_adversary_nothing(width: int) -> None:
    """1,500 games by likelihood ratio against everybody's columns at epsilon 1; with exact answers all are won."""
    schema, counts = clinic(width)
    others = np.random.default_rng(width).integers(0, 2, (99, width))
    tables = [Rows(schema, np.vstack([others, np.ones((bob, width), np.int64)])) for bob in (0, 1)]
    without, games = others.sum(axis=0), 1500

    def won(ask: Callable[[Rows], NDArray[np.int64]]) -> int:
        answers = (ask(tables[game % 2]) - without for game in range(games))
        return sum(bool((abs(a) - abs(a - 1)).sum() > 0) == bool(game % 2) for game, a in enumerate(answers))

    assert won(lambda table: counts(*table.counts(counts.reads))) == games
    noisy = won(lambda table: curated(table, 1).release(Laplace(1), counts))
    assert noisy <= stats.binom.ppf(1 - FALSE_ALARM, games, (1 + tanh(0.5)) / 2)
    assert won(lambda table: curated(table, 16).release(Laplace(16), counts)) > stats.binom.ppf(
        1 - FALSE_ALARM, games, (1 + tanh(0.5)) / 2
    )  # the game sees sixteen times the budget


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_column_of_counts_is_a_randomized_response_to_whoever_knows_the_others(width: int) -> None:
    """By enumeration of all noisy answers of two and three columns at epsilon / d each."""
    law = Laplace(Fraction(1, width)).probabilities(np.arange(-24 * width, 24 * width + 1))
    moved = np.append(law[1:], 0)
    out, there = np.ones(1), np.ones(1)
    for _ in range(width):
        out, there = np.outer(out, law).ravel(), np.outer(there, moved).ravel()
    assert np.abs(out - there).sum() / 2 == pytest.approx(float(optimal_delta(0, Fraction(1, width), width)), abs=1e-8)


# ---- Example 4.1 and algorithm 4


def test_three_way_conjunctions_are_learnt_from_few_of_them() -> None:
    schema = Schema([Categories(f"a{i}", (0, 1)) for i in range(6)])
    draw = np.random.default_rng(2)
    kinds, kind = draw.integers(0, 2, (3, 6)), draw.integers(0, 3, 20_000)
    table = Rows(schema, np.where(draw.random((20_000, 6)) < 0.1, 1 - kinds[kind], kinds[kind]))
    monotone = Workload(
        tuple(Counting(query.columns, query.sizes, ((1,),) * 3) for query in conjunctions(schema, 3).queries)  # type: ignore[attr-defined]
    )
    assert monotone.size == comb(6, 3)
    work, budget = conjunctions(schema, 3), Budget.of(1, "1e-9")
    assert work.size == 8 * comb(6, 3)
    truth = work(*table.counts(work.reads))
    learnt = mwem(curated(table, 1, "1e-9"), work, budget, rounds=8).answer(work)
    assert np.abs(learnt - truth).max() < np.abs(2500 - truth).max() / 10


def test_a_small_database_answers_every_interval_within_its_bound() -> None:
    schema = Schema([Integers("age", 0, 5)])
    table = Rows(schema, np.random.default_rng(1).binomial(5, 0.3, (5000, 1)))
    work, budget = conjunctions(schema, 1), Budget.of(1)
    found = small_db(curated(table, 1, neighbors=REPLACE), work, budget, rows=8, total=5000)
    off = np.abs(found.answer(work) - work(*table.counts(work.reads))).max()
    assert off < error_bound(5000, 6, 6, budget, 1e-9, rows=8)


def test_noise_scaled_by_a_private_number_of_people_tells_that_number() -> None:
    """E20: shares with noise of scale 1/(eps n), 100 people or 101, all counted: the loss grows with what is seen."""

    def density(z: float, n: int) -> float:  # the logarithm
        return log(n / 2) - n * abs(z - 1)

    losses = [density(z, 100) - density(z, 101) for z in (5.0, 50.0)]
    assert losses == pytest.approx([3.99, 48.99], abs=0.005)  # where epsilon is 1


# ---- chapter 6


TEN = Schema([Integers("x", 0, 9)])
WORK = conjunctions(TEN, 1)


def hard(errors: NDArray[np.float64]) -> tuple[Hardness, NDArray[np.int64]]:
    truth = np.full(10, 100)
    return Hardness(WORK, (Histogram(TEN, truth + errors),), 10, 20), truth


def test_the_hard_tenth_of_the_queries_weighs_four_and_a_half_times_as_much() -> None:
    """F = 10/(1 + 9/e^2), from weights that begin with 1/|Q| (E29); 100,000 draws refuse an alpha 3 % off."""
    hardness, truth = hard(60.0 * (np.arange(10) == 3))
    moved = hardness.sensitivity(Norm.LINF, ADD)
    scores = hardness.on_grid(truth)
    law = Exponential(2 * moved).probabilities(scores, moved)
    assert law[3] / 0.1 == pytest.approx(10 / (1 + 9 / exp(2))) == pytest.approx(4.508530604)
    assert log(law[3] / 0.1) == pytest.approx(1.505971292)
    draws, seen, table = 100_000, np.zeros(10, np.int64), Rows(TEN, np.repeat(np.arange(10), 100)[:, None])
    for _ in range(draws // 4000):
        drawn = curated(table, 1000).release(Exponential(2 * moved, draws=4000), hardness)
        seen += np.bincount(drawn, minlength=10)
    other = Exponential(2 * moved * Fraction("1.03")).probabilities(scores, moved)
    assert misfit(seen, law, draws) > FALSE_ALARM
    assert unlike(seen, law, other, draws) > FALSE_ALARM
    assert unlike(np.random.default_rng(0).multinomial(draws, other), law, other, draws) < FALSE_ALARM


def test_the_attenuated_score_lies_between_the_strict_and_the_lenient_one() -> None:
    """E32: a- says +1 within lambda, a+ says -1 beyond lambda + mu; printed the other way round, a <= a+ is false."""
    errors = np.array([0.0, 5, 10, 11, 20, 25, 29, 30, 31, 60])
    hardness, truth = hard(errors)
    a = -hardness.on_grid(truth).units * float(hardness.grid)
    strict, lenient = np.where(errors <= 10, 1, -1), np.where(errors > 30, -1, 1)
    assert bool(np.all((strict <= a) & (a <= lenient)))
    printed = np.where(errors <= 30, -1, 1)
    assert not bool(np.all(a <= printed))


# ---- the symbols


def test_the_notation_names_what_there_is_where_it_says() -> None:
    """Every name in a row of docs/notation.md stands in one of the files that the row names."""
    root = Path(__file__).parent.parent
    rows = re.findall(r"^\| .* \|$", (root / "docs" / "notation.md").read_text(encoding="utf-8"), re.MULTILINE)
    checked = 0
    for row in rows:
        cells = [cell.strip() for cell in row.replace("\\|", "/").strip("|").split(" | ")]
        places = [root / "tacit" / place for place in re.findall(r"`([\w/]+\.py)`", cells[-1])]
        said = "".join(place.read_text(encoding="utf-8") for place in places)
        names = " ".join(re.findall(r"`([^`]+)`", cells[1])) if said else ""
        for word in re.findall(r"[A-Za-z_]\w*", names):
            assert re.search(rf"\b{word}\b", said), (word, row)
            checked += 1
    assert checked > 60
