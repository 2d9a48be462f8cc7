"""Base synopsis generators: the published rule by plain enumeration, whole output laws, failures, sizes, coverage."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, exp, log, log2, sqrt

import numpy as np
import pytest
from doubles import Rows as Table
from doubles import Scripted

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm
from tacit.domain.query import Counting, Linear, Query
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Function
from tacit.domain.synopsis import Histogram, Rows
from tacit.domain.workload import Workload, conjunctions, predicates
from tacit.errors import InvalidInput, InvalidParameter, InvalidQuery, NoSynopsis
from tacit.mechanisms.generalisation import (
    any_lambda,
    any_queries,
    any_queries_tight,
    book_error,
    book_sample_size,
    book_scale,
    book_subsample_rows,
    linear_alpha,
    linear_lambda,
    linear_rows,
    passes,
    rows_bits,
    sample_size,
    subsample_rows,
)
from tacit.mechanisms.generators import (
    Answers,
    Generator,
    LexicographicFirst,
    LinearGenerator,
    RowSearch,
    first_fitting,
    measured,
    noise_bound,
)
from tacit.mechanisms.synthesizer import PROGRAM, WEIGHTS, Synthesis
from tacit.primitives.additive import Gaussian, Laplace
from tacit.privacy.budget import Budget
from tacit.privacy.optimal import optimal_delta

THREE = Schema([Integers("x", 0, 2)])
SQUARE = Schema([Integers("x", 0, 1), Categories("yes", ("no", "yes"))])
BINARY = Schema([Integers(name, 0, 1) for name in "abcdef"])
ENDS = predicates(THREE, ["x = 0", "x = 2"])
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE
RARE = 1e-8  # how often noise may make a generator fail where it should not
PAID = (Budget.of(1), Budget.of(1, "1e-9"))


def curator(table: Table, budget: Budget, neighbors: Neighbors = REPLACE, noise: Scripted | None = None) -> Curator:
    made = Curator(table, MemoryLedger(budget), neighbors)
    made._noise = noise or made._noise
    return made


def largest(schema: Schema, declared: int = 1) -> Function:
    """No linear query: how many people there are of the commonest kind."""
    return Function.of(
        schema, schema.names, np.max, sensitivity=dict.fromkeys(Norm, declared), neighbors=REPLACE, grid=1
    )


def town(people: int = 3000, seed: int = 0) -> Table:
    """Six binary columns that go together in groups."""
    rng = np.random.default_rng(seed)
    group = rng.random((4, 6))
    return Table(BINARY, (rng.random((people, 6)) < group[rng.integers(0, 4, people)]).astype(np.int64))


# ---- brute force


@pytest.mark.parametrize(
    ("schema", "work"),
    [
        (THREE, ENDS),
        (THREE, Workload((largest(THREE), ENDS.queries[1]))),
        (
            SQUARE,
            Workload((Linear.of(SQUARE, ("yes", "x"), [[0.5, 1], [0, 0.25]]), Counting.where(SQUARE, {"x": (1,)}))),
        ),
        (SQUARE, Workload((largest(SQUARE), *conjunctions(SQUARE, 2).queries))),
    ],
    ids=["counts", "a function", "weights", "a function and cells"],
)
@pytest.mark.parametrize("people", [1, 2, 3])
def test_brute_force_is_the_first_of_all_tables_in_lexicographic_order(
    schema: Schema, work: Workload, people: int
) -> None:
    """All |X|^n tables in order of their rows, not only the sorted ones, against many noisy answers."""
    rng = np.random.default_rng(people)
    everybody = np.array(list(product(*(range(size) for size in schema.sizes(schema.names)))))
    tables = [Table(schema, everybody[list(rows)]) for rows in product(range(len(everybody)), repeat=people)]
    said = np.stack([np.asarray(work(*table.counts(work.reads)), dtype=float) for table in tables])
    failed = 0
    for _ in range(40):
        values = said[rng.integers(len(said))] + rng.integers(-2, 3, work.size)
        fits = np.abs(said - values).max(axis=1) <= 1
        found = first_fitting(schema, Answers(work, values, 0.0), people, 1.0)
        assert (found is None) == (not fits.any())
        if found is not None:
            assert np.array_equal(found.codes, tables[int(np.argmax(fits))].codes)
        failed += found is None
    assert 0 < failed < 40


def test_brute_force_releases_the_answers_once_and_searches_within_half_of_lambda() -> None:
    noise = Scripted(1, -1)
    of = curator(Table(THREE, np.array([[0], [1], [2]])), Budget.of(1), noise=noise)
    found = LexicographicFirst(3, lam=1)(of, ENDS, Budget.of(1))
    assert noise.scales == [2]  # two counts of disjoint groups, one person replaced
    assert found.codes[:, 0].tolist() == [0, 0, 1]  # (2, 0) exactly
    assert found.total == 3
    assert of.ledger.left == 0
    noise = Scripted(1, -1)
    wider = LexicographicFirst(3, lam=2)(
        curator(Table(THREE, np.array([[0], [1], [2]])), Budget.of(1), noise=noise), ENDS, Budget.of(1)
    )
    assert wider.codes[:, 0].tolist() == [0, 0, 0]  # (3, 0) is within 1 of (2, 0)


def test_the_failure_symbol_says_nothing_else_and_costs_the_same() -> None:
    of = curator(Table(THREE, np.array([[0], [1], [2]])), Budget.of(1), noise=Scripted(50, 50))
    with pytest.raises(NoSynopsis, match=r"no database of 3 rows is within 0.5 .* what was charged stays charged"):
        LexicographicFirst(3, lam=1)(of, ENDS, Budget.of(1))
    assert of.ledger.left == 0


def outputs(lam: int, people: int, work: Workload, schema: Schema) -> dict[tuple[int, ...], tuple[int, ...]]:
    """For each vector of noisy answers that some table fits, what the generator puts out; all others fail."""
    nobody = Table(schema, np.zeros((0, len(schema)), dtype=np.int64))
    found = {}
    reach = range(-lam, people + lam + 1)
    for noisy in product(reach, repeat=work.size):
        empty = work(*nobody.counts(work.reads))
        of = curator(nobody, Budget.of(1), noise=Scripted(*(v - int(e) for v, e in zip(noisy, empty, strict=True))))
        try:
            found[noisy] = tuple(LexicographicFirst(people, lam=lam)(of, work, Budget.of(1)).codes.ravel().tolist())
        except NoSynopsis:
            continue
    return found


def law(found: dict[tuple[int, ...], tuple[int, ...]], truth: np.ndarray, scale: float) -> dict[object, float]:
    """The exact law of the output: discrete Laplace noise on every answer; what fits nothing fails."""
    mass: dict[object, float] = {}
    for noisy, output in found.items():
        off = np.abs(np.array(noisy) - truth).sum()
        mass[output] = mass.get(output, 0.0) + np.tanh(0.5 / scale) ** len(noisy) * exp(-off / scale)
    mass[None] = 1 - sum(mass.values())
    return mass


@pytest.mark.parametrize("neighbors", [REPLACE, ADD])
@pytest.mark.parametrize("lam", [1, 2])
def test_the_whole_law_of_brute_force_is_private_and_with_half_the_noise_it_is_not(
    neighbors: Neighbors, lam: int
) -> None:
    """Every noisy vector through the whole generator, every table of at most three people and all its neighbours."""
    people, epsilon = 2, 1.0
    found = outputs(lam, people, ENDS, THREE)
    scale = float(Laplace(1).scale(ENDS.sensitivity(Norm.L1, neighbors)))
    tables = [counts for n in (1, 2, 3) for counts in product(range(n + 1), repeat=3) if sum(counts) == n]
    worst = dict.fromkeys((1.0, 0.5), 0.0)
    for one, other in product(tables, repeat=2):
        apart = sum(abs(a - b) for a, b in zip(one, other, strict=True))
        if apart != (1 if neighbors is ADD else 2) or (neighbors is REPLACE and sum(one) != sum(other)):
            continue
        for share in worst:
            p, q = (law(found, np.array([counts[0], counts[2]]), share * scale) for counts in (one, other))
            assert len(p) > 3
            assert min(p.values()) > 1e-9
            worst[share] = max(worst[share], *(abs(log(p[output] / q[output])) for output in p))
    assert worst[1.0] <= epsilon + 1e-9
    assert worst[0.5] > epsilon * 1.2


def test_too_many_databases_are_refused_with_their_number_and_nothing_is_spent() -> None:
    of = curator(town(30), Budget.of(1))
    with pytest.raises(InvalidParameter, match="64 cells and 5 people make '10424128' databases; 1000000 can be tried"):
        LexicographicFirst(5)(of, conjunctions(BINARY, 2), Budget.of(1))
    with pytest.raises(InvalidParameter, match=r"over 10\^11"):
        LexicographicFirst(3000)(of, conjunctions(BINARY, 2), Budget.of(1))
    assert of.ledger.left == 1


# ---- all generators

MAKERS: dict[str, tuple[Callable[[float], Generator], float]] = {
    "brute force": (lambda beta: LexicographicFirst(4, beta=beta), 1),
    "rows": (lambda beta: RowSearch(total=3000, rows=1500, beta=beta, effort=60), 1),
    "program": (lambda beta: LinearGenerator(total=3000, beta=beta), 1),
    "weights": (lambda beta: LinearGenerator(total=3000, beta=beta, solver="weights", steps=100), 1),
    "few rows": (lambda beta: LinearGenerator(total=3000, beta=beta, alpha=0.1, solver="weights", steps=100), 1),
}


def setting(name: str) -> tuple[Table, Workload]:
    if name == "brute force":
        return Table(THREE, np.array([[0], [0], [1], [2]])), ENDS
    every = conjunctions(BINARY, 2)
    return town(), Workload(every.queries[:6])


@pytest.mark.parametrize("budget", PAID, ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_a_generator_spends_its_budget_and_answers_what_it_was_asked(name: str, budget: Budget) -> None:
    table, work = setting(name)
    of = curator(table, budget / 2)
    made = MAKERS[name][0](RARE)(of, work, budget / 2)
    assert of.ledger.left == 0
    assert made.answer(work).shape == (work.size,)
    assert table.read == [work.reads]  # once
    repeated = Workload(work.queries * 3)
    assert measured(curator(table, budget), repeated, budget, 0.05).workload.queries == work.queries


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_asked_is_right_to_within_lambda(name: str) -> None:
    """150 runs at beta = 0.3 for each: 80 misses are six standard errors above; a tenth of the bound is missed more."""
    table, work = setting(name)
    budget, beta = Budget.of(1), 0.3
    make = MAKERS[name][0](beta)
    truth = work(*table.counts(work.reads))
    moved = work.sensitivity(Norm.L1, REPLACE)
    noise = Laplace(1).error_bound(beta, coordinates=work.size, sensitivity=moved)
    bound = 2 * noise + (300 if name == "few rows" else 0)
    misses = close = 0
    for _ in range(150):
        try:
            off = float(np.abs(make(curator(table, budget), work, budget).answer(work) - truth).max())
        except NoSynopsis:
            off = np.inf
        misses += off > bound + 1
        close += off > bound / 10
    assert misses <= 80
    assert close > 80


def test_the_bounds_follow_from_the_noise() -> None:
    budget, rho = Budget.of(1), Budget.of(1, "1e-9")
    k, beta = 50, 0.05
    assert noise_bound(budget, k, beta) == Laplace(1).error_bound(beta, coordinates=k, sensitivity=k)
    gauss = Gaussian(rho.rho).error_bound(beta, coordinates=k, sensitivity=Fraction(sqrt(k)))
    assert noise_bound(rho, k, beta) == pytest.approx(gauss, abs=1)
    assert LexicographicFirst(5).error_bound(budget, k) == 2 * noise_bound(budget, k, beta)
    assert RowSearch(total=100).error_bound(rho, k, sensitivity=2) == 2 * noise_bound(rho, k, beta, 2)
    assert RowSearch().error_bound(budget, k) > RowSearch(total=100).error_bound(budget, k)  # its total is bought
    few = LinearGenerator(total=1000, alpha="0.1")
    assert few.error_bound(budget, k, 1000) == 2 * noise_bound(budget, k, beta) + 100
    assert LinearGenerator(total=1000, lam=7).error_bound(budget, k, 1000) == 7
    # the accountant's noise is below the book's at the same price
    part = Budget.of("0.9", "1e-6")
    assert 2 * noise_bound(part, 1000, beta) < 0.2 * any_lambda(1000, 0.9, 1e-6, beta)


@pytest.mark.parametrize("make", [RowSearch(beta=RARE), LinearGenerator(beta=RARE)])
def test_the_number_of_people_is_bought_where_it_is_not_public(make: RowSearch) -> None:
    of = curator(town(), Budget.of(1), ADD)
    work = Workload(conjunctions(BINARY, 1).queries[:3])
    made = make(of, work, Budget.of(1))
    assert of.ledger.left == 0
    assert made.project(()) == pytest.approx(3000, abs=1000)  # Laplace of scale 50: e^-20
    limit = make.error_bound(Budget.of(1), 6, **({} if isinstance(make, RowSearch) else {"people": 3000}))
    assert made.answer(work) == pytest.approx(work(*town().counts(work.reads)), abs=limit)


def test_the_linear_generator_says_which_solver_it_used_and_draws_the_theorems_rows() -> None:
    table, work = setting("program")
    made = LinearGenerator(total=3000, beta=RARE)(curator(table, Budget.of(1)), work, Budget.of(1))
    assert isinstance(made, Synthesis)
    assert made.solver == PROGRAM
    by_weights = LinearGenerator(total=3000, beta=RARE, solver="weights")(
        curator(table, Budget.of(1)), work, Budget.of(1)
    )
    assert isinstance(by_weights, Synthesis)
    assert by_weights.solver == WEIGHTS
    assert isinstance(by_weights.histogram(), Histogram)
    few = LinearGenerator(total=3000, beta=RARE, alpha=0.1)
    rows = few(curator(table, Budget.of(1)), work, Budget.of(1))
    assert isinstance(rows, Rows)
    assert len(rows) == few.rows(work.size) == subsample_rows(work.size, RARE, 0.1)
    assert few.bits(BINARY, work.size) == len(rows) * 6
    with pytest.raises(InvalidParameter, match="without alpha"):
        LinearGenerator().rows(5)


def test_answers_that_contradict_each_other_by_more_than_lambda_fail() -> None:
    table, work = setting("program")
    noise = Scripted(3000, -3000, 3000)
    for make in (LinearGenerator(total=3000, lam=100), RowSearch(total=3000, lam=100, rows=100)):
        with pytest.raises(NoSynopsis, match="stays charged"):
            make(curator(table, Budget.of(1), noise=Scripted(*noise.draws)), work, Budget.of(1))


def test_the_search_fits_exact_answers_ever_better_with_more_effort() -> None:
    table = town()
    work = Workload(conjunctions(BINARY, 3).queries)
    sharp = Budget.of(1000)
    few, many = (RowSearch(total=3000, rows=3000, effort=effort, lam=60) for effort in (1, 60))
    with pytest.raises(NoSynopsis, match="with an effort of 1"):
        few(curator(table, sharp), work, sharp)
    made = many(curator(table, sharp), work, sharp)
    assert np.abs(made.answer(work) - work(*table.counts(work.reads))).max() <= 32
    again = [many(curator(table, sharp, noise=Scripted()), work, sharp).codes for _ in range(2)]
    assert np.array_equal(*again)  # the same answers, the same seed


def test_any_function_of_the_counts_can_be_fitted_by_rows() -> None:
    """The median age, and by how much one group is larger than the other, beside a count."""
    schema = Schema([Integers("age", 0, 9), Categories("sex", ("F", "M"))])
    rng = np.random.default_rng(0)
    table = Table(
        schema, np.column_stack((rng.binomial(9, 0.7, 400), rng.integers(0, 2, 400) * rng.integers(0, 2, 400)))
    )

    def median(counts: np.ndarray) -> float:
        return float(np.searchsorted(np.cumsum(counts), max(counts.sum(), 1e-9) / 2))

    def lead(counts: np.ndarray) -> float:
        return abs(float(counts[0] - counts[1]))

    queries: tuple[Query, ...] = (
        Function.of(schema, ("age",), median, sensitivity=dict.fromkeys(Norm, 1), neighbors=REPLACE, grid=1),
        Function.of(schema, ("sex",), lead, sensitivity=dict.fromkeys(Norm, 2), neighbors=REPLACE, grid=1),
        Counting.where(schema, {"age": range(8, 10), "sex": (0,)}),
    )
    work, budget = Workload(queries), Budget.of(1000)
    made = RowSearch(total=400, rows=400, lam=6, effort=20)(curator(table, budget), work, budget)
    assert np.abs(made.answer(work) - work(*table.counts(work.reads))).max() <= 4
    impossible = Scripted(0, 5000)
    with pytest.raises(NoSynopsis):
        RowSearch(total=400, lam=6, effort=1)(curator(table, budget, noise=impossible), work, budget)


def test_what_a_generator_cannot_do_is_refused_before_the_charge() -> None:
    for make in (
        lambda: LexicographicFirst(0),
        lambda: LexicographicFirst(3, beta=0),
        lambda: LexicographicFirst(3, lam=0),
        lambda: RowSearch(rows=0),
        lambda: RowSearch(effort=0),
        lambda: RowSearch(seed=-1),
        lambda: RowSearch(lam=-1),
        lambda: LinearGenerator(alpha=1),
        lambda: LinearGenerator(beta=1.5),
        lambda: LinearGenerator(lam="0"),
    ):
        with pytest.raises(InvalidInput):
            make()
    table = town(10)
    of = curator(table, Budget.of(1), ADD)
    undeclared = Workload((Function.of(BINARY, ("a",), np.max, sensitivity={Norm.L2: 1}, neighbors=REPLACE),))
    for generate in (LexicographicFirst(2), RowSearch(total=10), LinearGenerator(total=10)):
        with pytest.raises(InvalidQuery):
            generate(of, undeclared, Budget.of(1))
        with pytest.raises(InvalidInput):
            generate(of, ENDS, Budget.of(1))
    with pytest.raises(InvalidParameter, match="a solver is"):
        LinearGenerator(total=10, solver="glop")(of, conjunctions(BINARY, 1), Budget.of(1))  # type: ignore[arg-type]
    assert of.ledger.left == 1
    assert table.read == []


# ---- sizes


def test_the_generalisation_lemma_has_the_numbers_of_the_vectors() -> None:
    """m = 1000, eta = 1/3: 6018 in the book, 3818.2 without its slack; m is in bits, so m ln 2 in nats (E43)."""
    assert book_sample_size(1000, 0.05) == 6018
    assert sample_size(1000, 0.05) == 3819 == ceil((1000 * log(2) - log(0.05)) / log(6 / 5))
    assert book_sample_size(1000, 0.05, 0.25) == ceil(4 * (1000 + log(20)))
    for bits, beta, eta in product((1, 100, 1e5), (0.5, 1e-3), (0.01, 1 / 3, 0.49)):
        assert sample_size(bits, beta, eta) <= book_sample_size(bits, beta, eta)


@pytest.mark.parametrize("eta", [0.1, 1 / 3])
def test_so_many_queries_leave_no_bad_synopsis_that_passes(eta: float) -> None:
    """The union over 2^m synopses, each exactly as bad as it may be, is below beta for this k and not for less."""
    k = sample_size(20, 0.05, eta)
    assert 2**20 * passes(k, eta) <= 0.05 < 2**20 * passes(k - 1, eta)
    rng = np.random.default_rng(0)  # 1,000 synopses that are wrong on 1/2 - eta, asked 10 queries
    right = rng.random((20_000, 10)) < 0.5 + eta
    assert right.all(axis=1).mean() == pytest.approx(passes(10, eta), abs=6 * sqrt(passes(10, eta) / 20_000))


def test_theorem_6_6_has_its_sizes_with_their_corrections() -> None:
    n, universe, beta, epsilon, delta = 10, 16, 0.05, 0.5, 1e-6
    k = any_queries(n, universe, beta)
    assert k == ceil(6 * (10 * log(16) + log(40))) == 189
    assert any_queries_tight(n, universe, beta) == sample_size(40, 0.025) < k
    b = book_scale(k, epsilon, delta)
    assert b == pytest.approx(2 * sqrt(2 * k * log(1e6)) / 0.5)
    assert any_lambda(k, epsilon, delta, beta) == pytest.approx(2 * b * (log(k) + log(40)))
    assert book_error(k, beta, b) == pytest.approx(any_lambda(k, epsilon, delta, beta) / 2)  # E36
    assert book_scale(k, epsilon, delta, rho=0.01) == pytest.approx(b / 100)
    # Laplace noise of scale b passes lambda/2 somewhere with a probability below beta/2
    assert k * exp(-book_error(k, beta, b) / b) == pytest.approx(beta / 2)


def test_the_scale_that_theorem_6_6_states_is_not_enough() -> None:
    """E35, B14: b = rho sqrt(k ln(1/delta))/eps gives delta 4.1e-6 > 1e-6 at k = 2000, eps = 0.5."""
    k, epsilon, delta = 2000, 0.5, 1e-6
    stated = 1 / (sqrt(k * log(1 / delta)) / epsilon)
    assert float(optimal_delta(epsilon, stated, k)) == pytest.approx(4.1e-6, rel=0.02)
    assert optimal_delta(epsilon, 1 / book_scale(k, epsilon, delta), k) < delta


def test_theorem_6_8_has_its_sizes_with_their_corrections() -> None:
    n, universe, queries, beta = 50_000, 2**14, 2912, 0.05
    k, rows = linear_rows(n, universe, queries, beta)
    alpha = linear_alpha(n, queries)
    assert alpha == pytest.approx(sqrt(log(queries) / n))
    assert rows == subsample_rows(k, beta, alpha)
    assert k > 6 * log(20) + 6 * rows * log(universe) >= k - 1
    assert k >= sample_size(rows_bits(rows, universe), beta)  # the lemma's own k at m = n' log2 X
    assert rows_bits(rows, universe) == pytest.approx(rows * log2(universe))
    assert k > queries  # so all of them may as well be asked
    b = 2 * sqrt(2 * k * log(1e9)) / 0.5
    expected = 3 * b * (log(k) + log(20)) + alpha * n
    assert linear_lambda(n, universe, queries, 0.5, 1e-9, beta) == pytest.approx(expected)
    assert subsample_rows(200, 0.05, 0.05) <= book_subsample_rows(200, 0.05, 0.05)
    printed, more = linear_rows(n, universe, queries, beta, book=True)
    assert more == book_subsample_rows(printed, beta, alpha) > 5 * rows
    assert linear_lambda(n, universe, queries, 0.5, 1e-9, beta, book=True) > 2 * expected


def test_sizes_outside_their_theorems_are_refused() -> None:
    for call in (
        lambda: sample_size(0, 0.05),
        lambda: sample_size(10, 1),
        lambda: sample_size(10, 0.05, 0.5),
        lambda: book_sample_size(10, 0.05, 0),
        lambda: subsample_rows(0, 0.05, 0.1),
        lambda: subsample_rows(5, 0.05, 1),
        lambda: book_scale(5, 1, 1e-6),
        lambda: book_scale(5, 0.5, 0),
        lambda: any_queries(0, 5, 0.05),
        lambda: rows_bits(5, 1),
    ):
        with pytest.raises(InvalidParameter):
            call()
