"""A net is public and in a fixed order; the net mechanism's law is the book's, and its loss no more than is charged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import comb, exp, log

import numpy as np
import pytest
from doubles import Rows as Table
from noises import FALSE_ALARM, misfit, unlike

import tacit.domain.score as scores
from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.interval import Ranges
from tacit.domain.net import MOST_MEMBERS, Net, SmallDatabases, Synopses, net_size_bound, pieces, sampling_net, spread
from tacit.domain.parity import Parity
from tacit.domain.query import Counting, Linear, Marginal, Query
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.score import Fit, Function
from tacit.domain.synopsis import Histogram, Synopsis
from tacit.domain.vc import log_multisets, subsample_size
from tacit.domain.workload import Workload, marginals, ranges
from tacit.errors import DataUnavailable, InvalidParameter, InvalidQuery
from tacit.mechanisms.net import net_book_bound, net_bound, net_mechanism
from tacit.primitives.noise import SYSTEM
from tacit.primitives.selection import below_best
from tacit.privacy.budget import Budget

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
SIZES = [((2, 3), 1), ((2, 3), 2), ((2, 3), 5), ((2, 3), 6), ((2, 3), 9), ((2,), 7), ((1,), 5), ((3, 3), 3), ((4,), 12)]


def schema_of(*sizes: int) -> Schema:
    return Schema([Integers("abc"[i], 0, size - 1) for i, size in enumerate(sizes)])


def some_work(schema: Schema) -> Workload:
    weights = np.linspace(0, 1, schema.universe)
    parts = (Marginal.over(schema, *schema.names), Counting.where(schema, {"a": (0,)}), Ranges.over(schema, "a"))
    return Workload((*parts, Linear.of(schema, schema.names, weights)))


class Drawn:
    """Noise that tells what it was asked to draw from, and takes a given candidate."""

    def __init__(self, chosen: int = 0) -> None:
        self.chosen, self.asked = chosen, [(np.zeros(1, np.int64), Fraction(1))]

    def weighted(self, exponents: np.ndarray, rate: Fraction, size: int) -> np.ndarray:
        self.asked.append((exponents, rate))
        return np.full(size, self.chosen)

    @property
    def law(self) -> np.ndarray:
        """The law of the last choice."""
        exponents, rate = self.asked[-1]
        weights = np.exp(-float(rate) * exponents)
        return weights / weights.sum()


def curator(schema: Schema, codes: np.ndarray, budget: Budget, neighbors: Neighbors, noise: object = None) -> Curator:
    made = Curator(Table(schema, codes.reshape(-1, len(schema))), MemoryLedger(budget), neighbors)
    made._noise = noise or made._noise  # type: ignore[assignment]
    return made


# -- the small databases


@pytest.mark.parametrize(("sizes", "rows"), SIZES)
def test_small_databases_stand_in_lexicographic_order_each_once(sizes: tuple[int, ...], rows: int) -> None:
    net = SmallDatabases(schema_of(*sizes), rows, 10)
    listed = list(combinations_with_replacement(range(net.schema.universe), rows))
    assert len(net) == len(listed) == comb(net.schema.universe + rows - 1, rows)
    assert [tuple(net.cells(place)) for place in range(len(net))] == listed
    assert [net.place(cells[::-1]) for cells in listed] == list(range(len(net)))


@pytest.mark.parametrize(
    ("sizes", "rows"), [((10**6, 10), 1), ((4471,), 2), ((10, 39), 3), ((2, 2, 2), 29), ((2,), 10**6)]
)
def test_the_place_of_a_large_net_is_found_without_listing_it(sizes: tuple[int, ...], rows: int) -> None:
    net = SmallDatabases(schema_of(*sizes), rows, 10)
    rng = np.random.default_rng(rows)
    for place in [0, 1, len(net) - 1, *rng.integers(0, len(net), 5 if rows < 1000 else 0).tolist()]:
        assert net.place(net.cells(place)) == place
    with pytest.raises(InvalidParameter, match="place"):
        net.cells(len(net))


@pytest.mark.parametrize(("sizes", "rows"), SIZES)
def test_a_block_of_answers_is_what_its_members_answer(sizes: tuple[int, ...], rows: int) -> None:
    net = SmallDatabases(schema_of(*sizes), rows, 37)
    work = some_work(net.schema)
    expected = np.array([net.member(place).answer(work) for place in range(len(net))])
    ends = sorted({0, 1, len(net) // 3, len(net) // 2, len(net) - 1, len(net)})
    for start, stop in [*pairwise(ends), (0, len(net))]:
        assert net.answers(work, start, stop) == pytest.approx(expected[start:stop])
    assert {member.total for member in map(net.member, range(len(net)))} == {37}


def test_runs_that_are_long_and_weights_that_are_not_kept_give_the_same_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = SmallDatabases(schema_of(5, 6), 3, 100)
    work = some_work(net.schema)
    expected = net.answers(work, 17, 3000)
    for limit, value in (("_LONG", 0), ("_LONG", 10**9), ("_HELD", 0)):
        monkeypatch.setattr(f"tacit.domain.net.{limit}", value)
        assert SmallDatabases(net.schema, 3, 100).answers(work, 17, 3000) == pytest.approx(expected)
    again = net.answers(work, 17, 3000)
    again[:] = -1  # a caller may change what it was given
    assert net.answers(work, 17, 3000) == pytest.approx(expected)


def test_a_query_that_is_no_sum_is_asked_of_each_member() -> None:
    net = SmallDatabases(schema_of(3), 4, 12)
    most = Function.of(net.schema, "a", lambda counts: counts.max(), sensitivity=1, neighbors=ADD)
    found = net.answers(Workload((most, Counting.where(net.schema))), 0, len(net))
    assert found.tolist() == [[float(net.member(place).project(("a",)).max()), 12.0] for place in range(len(net))]


@pytest.mark.parametrize(
    ("sizes", "rows", "number"),
    [
        ((4472,), 2, "10001628"),
        ((2, 3), 10**6, "10\\^28"),
        ((10**4, 10**4, 10**4), 10**5, "10\\^"),
        ((2, 3), 0, "rows"),
    ],
)
def test_a_net_that_is_too_large_is_refused_with_its_number(sizes: tuple[int, ...], rows: int, number: str) -> None:
    with pytest.raises(InvalidParameter, match=number):
        SmallDatabases(schema_of(*sizes), rows, 10)


@pytest.mark.parametrize("total", [0, -1, "nan", float("inf"), None])
def test_a_number_of_people_that_is_none_is_refused(total: object) -> None:
    with pytest.raises(InvalidParameter):
        SmallDatabases(schema_of(2), 2, total)  # type: ignore[arg-type]


def test_rows_that_are_not_of_the_net_are_refused() -> None:
    net = SmallDatabases(schema_of(3), 2, 10)
    for cells in ([0], [0, 1, 2], [0, 3], [-1, 0], [0.5, 1]):
        with pytest.raises(InvalidParameter):
            net.place(cells)  # type: ignore[arg-type]
    for start, stop in ((0, 7), (3, 3), (-1, 2)):
        with pytest.raises(InvalidParameter, match="none from"):
            net.answers(Counting.where(net.schema), start, stop)
    with pytest.raises(InvalidQuery):
        net.answers(Marginal(("a",), (9,)), 0, 2)


def test_a_net_of_given_synopses_holds_them_in_their_order() -> None:
    schema = schema_of(3)
    members = [Histogram(schema, np.array(counts)) for counts in ([1.0, 2, 3], [4.0, 5, 6])]
    net = Synopses(members)
    assert isinstance(net, Net)
    assert net.answers(Marginal.over(schema, "a"), 0, 2).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert net.member(1) is members[1]
    with pytest.raises(InvalidParameter, match="1 to"):
        Synopses([])
    with pytest.raises(InvalidParameter, match="one schema"):
        Synopses([members[0], Histogram(schema_of(2), np.ones(2))])


@pytest.mark.parametrize("kind", ["marginals", "ranges", "one table", "a function"])
def test_a_query_in_pieces_is_the_query(kind: str) -> None:
    schema = schema_of(4, 3, 2)
    most = Function.of(
        schema, "a", lambda counts: counts, size=4, sensitivity=dict.fromkeys(scores.Norm, 1), neighbors=ADD
    )
    query: Query = {
        "marginals": marginals(schema, 2),
        "ranges": ranges(schema, "a", by="b") + Counting.where(schema),
        "one table": Marginal.over(schema, "a", "b"),
        "a function": most,
    }[kind]
    table = Table(schema, np.random.default_rng(0).integers(0, (4, 3, 2), (50, 3)))
    expected = query(*table.counts(query.reads))
    for limit in (1, 3, 7, 1000):
        parts = list(pieces(query, limit))
        assert np.array_equal(np.concatenate([part(*table.counts(part.reads)) for part in parts]), expected)
        assert kind == "a function" or max(part.size for part in parts) <= limit


def test_the_spread_of_a_query_is_the_range_of_its_weights() -> None:
    schema = schema_of(2, 2)
    assert spread(some_work(schema)) == 1
    assert spread(Workload((Counting.where(schema), Parity.over(schema, "a", "b")))) == 2
    with pytest.raises(InvalidQuery, match="sampling lemma"):
        spread(Function.of(schema, "a", np.max, sensitivity=1, neighbors=ADD))


# -- how near a net is


def tables_of(people: int, cells: int) -> np.ndarray:
    """Every histogram of so many people."""
    chosen = list(combinations_with_replacement(range(cells), people))
    return np.array([np.bincount(rows, minlength=cells) for rows in chosen])


@pytest.mark.parametrize("alpha", ["0.3", "0.25"])
def test_some_member_of_the_sampling_net_is_within_alpha_of_every_table(alpha: str) -> None:
    """Thm 4.2 for all tables of 12 people over four cells, and all sixteen counting queries."""
    schema = schema_of(4)
    queries = Workload(tuple(Linear.of(schema, "a", [int(bit) for bit in f"{i:04b}"]) for i in range(16)))
    net = sampling_net(schema, 16, alpha, 12)
    answers = net.answers(queries, 0, len(net))
    masks = np.array([query.weights()[0] for query in queries.queries])  # type: ignore[attr-defined]
    truth = tables_of(12, 4) @ masks.T
    nearest = np.abs(answers[:, None] - truth).max(axis=2).min(axis=0)
    assert nearest.max() <= 12 * float(Fraction(alpha))
    assert log(len(net)) == pytest.approx(net_size_bound(4, 16, alpha))
    coarse = SmallDatabases(schema, 1, 12).answers(queries, 0, 4)
    assert np.abs(coarse[:, None] - truth).max(axis=2).min(axis=0).max() > 12 * float(Fraction(alpha))


@pytest.mark.parametrize(("cells", "rows"), [(2, 3), (3, 2), (3, 5), (4, 3), (5, 2)])
def test_some_small_database_is_within_a_quarter_of_the_universe_over_its_rows(cells: int, rows: int) -> None:
    """|X| / 4m, by rounding: for all tables of ten people and all subsets of cells."""
    small = tables_of(rows, cells) / rows
    for table in tables_of(10, cells) / 10:
        apart = np.maximum(small - table, 0).sum(axis=1)  # the worst subset holds all cells with too much
        assert apart.min() <= cells / (4 * rows) + 1e-12


# -- the fit of a net


def in_blocks(work: Workload, net: Net) -> Fit:
    """The same fit without its candidates written out."""
    fit = Fit(work, net)
    object.__setattr__(fit, "candidates", net)
    return fit


@pytest.mark.parametrize(("sizes", "rows"), SIZES)
def test_a_net_that_is_asked_block_by_block_fits_like_its_rows_of_answers(
    sizes: tuple[int, ...], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = SmallDatabases(schema_of(*sizes), rows, 37)
    work = some_work(net.schema)
    counts = Table(net.schema, np.random.default_rng(0).integers(0, sizes, (37, len(sizes)))).counts(work.reads)
    expected = Fit(work, net.answers(work, 0, len(net))).units(*counts)
    assert np.abs(Fit(work, net).units(*counts) - expected).max() <= 1
    monkeypatch.setattr(scores, "_ASKED", 5)
    for cached in ((2**18, 2**15), (40, 11), (1, 1)):
        monkeypatch.setattr(scores, "_CACHED", cached)
        assert np.abs(in_blocks(work, net).units(*counts) - expected).max() <= 1  # a half may fall to either side


class Odd:
    """A net that answers with given numbers."""

    def __init__(self, schema: Schema, numbers: list[float]) -> None:
        self.schema, self.numbers = schema, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def answers(self, query: Query, start: int, stop: int) -> np.ndarray:
        return np.array(self.numbers[start:stop])[:, np.newaxis] * np.ones(query.size)

    def member(self, place: int) -> Synopsis:
        return Histogram(self.schema, np.full(self.schema.sizes(self.schema.names), self.numbers[place]))


def test_candidates_beyond_all_measure_are_the_worst_and_never_wrap() -> None:
    schema = schema_of(3)
    everybody = Workload((Counting.where(schema),))
    net = Odd(schema, [0.0, 2.0**52, -(2.0**52), 2.0**53 + 2, 1e300, -np.inf, 7.0])
    for people in (0, 1, 7, 2**52, 2**60):
        found = in_blocks_unchecked(everybody, net).units(np.array(people))
        seen = min(people, 2**52)
        exact = [-min(abs(c - seen), 2**52) for c in (0, 2**52, -(2**52), 2**53 + 2, 2**70, -(2**70), 7)]
        assert found.tolist() == exact
    with pytest.raises(InvalidQuery, match="moderate"):
        Fit(everybody, net)


def in_blocks_unchecked(work: Workload, net: Net) -> Fit:
    fit = Fit(work, np.zeros((1, work.size)))
    object.__setattr__(fit, "candidates", net)
    return fit


def test_a_net_that_answers_with_no_number_is_refused() -> None:
    schema = schema_of(3)
    everybody = Workload((Counting.where(schema),))
    net = Odd(schema, [1.0, float("nan")])
    with pytest.raises(InvalidQuery, match="moderate"):
        Fit(everybody, net)
    with pytest.raises(InvalidQuery, match="not a number"):
        in_blocks_unchecked(everybody, net).units(np.array(3))
    with pytest.raises(InvalidQuery, match="at least one member"):
        Fit(everybody, Odd(schema, []))


def test_a_large_net_with_no_number_stops_after_its_charge_whatever_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "_WRITTEN_OUT", 0)
    schema, budget = schema_of(3), Budget.of(1)
    ours = curator(schema, np.zeros(4, np.int64), budget, ADD)
    with pytest.raises(DataUnavailable):
        net_mechanism(ours, Counting.where(schema), budget, net=Odd(schema, [1.0, float("nan")]))


# -- the mechanism

WORK = Workload((Marginal.over(schema_of(3), "a"), Counting.where(schema_of(3), {"a": (0, 1)})))
NETS: dict[str, Callable[[], Net]] = {
    "two rows": lambda: SmallDatabases(schema_of(3), 2, 4),
    "four rows": lambda: SmallDatabases(schema_of(3), 4, 3),
    "given": lambda: Synopses(
        Histogram(schema_of(3), np.array(c, float)) for c in ([0, 0, 0], [9, 0, 0], [0, 0, 9], [1, 1, 1], [-5, 2.5, 2])
    ),
}


def law_of(net: Net, codes: tuple[int, ...], budget: Budget, neighbors: Neighbors) -> tuple[np.ndarray, np.ndarray]:
    """The law of the mechanism's outcome on this table, and with the factor 2 dropped."""
    noise = Drawn()
    net_mechanism(curator(net.schema, np.array(codes, np.int64), budget, neighbors, noise), WORK, budget, net=net)
    exponents, rate = noise.asked[-1]
    noise.asked.append((exponents, 2 * rate))
    other = noise.law
    noise.asked.pop()
    return noise.law, other


def neighbouring(neighbors: Neighbors, most: int = 3) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    tables = [rows for n in range(most + 1) for rows in combinations_with_replacement(range(3), n)]
    pairs = []
    for rows in tables:
        for place in range(len(rows)):
            without = rows[:place] + rows[place + 1 :]
            if neighbors is ADD:
                pairs.append((without, rows))
            else:
                pairs += [(rows, tuple(sorted((*without, cell)))) for cell in range(3)]
    return pairs


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("net", NETS)
def test_no_outcome_tells_more_than_epsilon_and_the_factor_two_is_needed(net: str, neighbors: Neighbors) -> None:
    """Every outcome on every pair of neighbours of up to three people, through the mechanism as it runs."""
    budget, made = Budget.of(2), NETS[net]()
    laws = {rows: law_of(made, rows, budget, neighbors) for pair in neighbouring(neighbors) for rows in pair}
    ratios = [[np.log(laws[x][i] / laws[y][i]) for x, y in neighbouring(neighbors)] for i in (0, 1)]
    assert max(np.abs(ratio).max() for ratio in ratios[0]) <= 2 + 1e-12
    assert max(np.ptp(ratio) for ratio in ratios[0]) <= 2 + 1e-12  # bounded range: what the charge in rho rests on
    assert max(np.abs(ratio).max() for ratio in ratios[1]) > 2.1


def test_its_outcomes_are_drawn_by_the_law_of_the_exponential_mechanism() -> None:
    """100,000 draws of one release fit the enumerated law, and neither an epsilon 5 % less nor one 5 % more."""
    net, epsilon, draws = NETS["four rows"](), 3, 100_000
    codes = np.array([0, 0, 2], np.int64)
    truth = np.array([2, 0, 1, 2])
    answers = np.array([net.member(place).answer(WORK) for place in range(len(net))])
    error = np.abs(np.rint(answers) - truth).max(axis=1)

    def law(epsilon: float) -> np.ndarray:
        weights = np.exp(-epsilon * error / 2)
        return weights / weights.sum()

    noise = Drawn()
    net_mechanism(curator(net.schema, codes, Budget.of(epsilon), ADD, noise), WORK, Budget.of(epsilon), net=net)
    assert noise.law == pytest.approx(law(epsilon))
    exponents, rate = noise.asked[-1]
    counts = np.bincount(SYSTEM.weighted(exponents, rate, draws), minlength=len(net))
    assert misfit(counts, law(epsilon), draws) > FALSE_ALARM
    assert unlike(counts, law(epsilon), law(epsilon * 1.05), draws) > FALSE_ALARM
    for wrong in (0.95, 1.05):
        assert unlike(counts, law(epsilon * wrong), law(epsilon), draws) < FALSE_ALARM


def test_what_a_user_draws_from_the_curator_follows_the_same_law() -> None:
    """1,500 releases, ledger and all."""
    net, budget, codes = NETS["given"](), Budget.of("0.5"), np.array([0, 0, 2], np.int64)
    law, other = law_of(net, (0, 0, 2), budget, ADD)
    totals = {float(net.member(place).answer(WORK)[0]): place for place in range(len(net) - 1)}
    chosen = np.zeros(len(net), np.int64)
    for _ in range(1500):
        found = net_mechanism(curator(net.schema, codes, budget, ADD), WORK, budget, net=net)
        match = [np.array_equal(found.answer(WORK), net.member(place).answer(WORK)) for place in range(len(net))]
        chosen[match.index(True)] += 1
    assert len(totals) > 1
    assert misfit(chosen, law, 1500) > FALSE_ALARM
    assert misfit(chosen, other, 1500) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("net", NETS)
def test_its_error_passes_the_bounds_no_more_often_than_beta(net: str, epsilon: str) -> None:
    """The exact chance, over the law, for every table of four people; the radius is the net's distance to the table."""
    made, budget = NETS[net](), Budget.of(epsilon)
    answers = np.array([made.member(place).answer(WORK) for place in range(len(made))])
    for rows in combinations_with_replacement(range(3), 4):
        law, _ = law_of(made, rows, budget, ADD)
        counts = np.bincount(rows, minlength=3)
        error = np.abs(answers - np.append(counts, counts[0] + counts[1])).max(axis=1)
        for beta in (0.01, 0.05, 0.3):
            tight = net_bound(error.min(), len(made), budget, beta)
            assert law[error > tight].sum() <= beta
            assert law[error > net_book_bound(error.min(), len(made), budget, beta) + 1].sum() <= beta
            assert tight <= net_book_bound(error.min(), len(made), budget, beta) + 1


def test_the_tight_bound_is_attained() -> None:
    """One member is right and twenty are six people off: at their chance of being chosen the bound passes six."""
    schema, budget = schema_of(3), Budget.of(1)
    members = [Histogram(schema, np.array([people, 0.0, 0.0])) for people in [3.0] + [9.0] * 20]
    everybody = Workload((Counting.where(schema),))
    noise = Drawn()
    net_mechanism(curator(schema, np.array([0, 1, 2]), budget, ADD, noise), everybody, budget, net=Synopses(members))
    wrong = float(noise.law[1:].sum())
    assert net_bound(0, 21, budget, wrong * 1.001) < 6 + 1 < net_bound(0, 21, budget, wrong * 0.999)  # 1 is the grid's


def test_it_spends_its_budget_whole_and_its_synopsis_says_so() -> None:
    for budget in (Budget.of("0.7"), Budget.of(1, "1e-9")):
        ours = curator(schema_of(3), np.array([0, 1, 1]), budget, ADD, noise := Drawn(chosen=3))
        net = NETS["two rows"]()
        found = net_mechanism(ours, WORK, budget, net=net, purpose="a trial")
        assert np.array_equal(found.project(("a",)), net.member(3).project(("a",)))
        assert ours.ledger.spent == budget.amount  # type: ignore[attr-defined]
        assert noise.asked[-1][1] == budget.bounded_range / 2
        paid = found.receipt  # type: ignore[attr-defined]
        assert (paid.amount, paid.purpose, paid.total_public) == (budget.amount, "a trial", False)
        assert "Exponential" in str(paid)
    given = NETS["given"]()
    kept = net_mechanism(curator(given.schema, np.array([0]), budget, ADD), WORK, budget, net=given)
    assert kept.receipt is not None  # type: ignore[attr-defined]
    assert all(given.member(place).receipt is None for place in range(len(given)))  # type: ignore[attr-defined]


def test_what_cannot_be_chosen_from_is_refused_before_it_costs() -> None:
    budget = Budget.of(1)
    ours = curator(schema_of(3), np.array([0]), budget, ADD)
    other = Schema([Integers("a", 0, 2), Categories("b", ("x", "y"))])
    with pytest.raises(InvalidParameter, match="another schema"):
        net_mechanism(ours, WORK, budget, net=SmallDatabases(other, 1, 1))
    with pytest.raises(InvalidQuery):
        net_mechanism(ours, Counting(("a",), (2,), ((0,),)), budget, net=NETS["two rows"]())
    assert ours.ledger.spent == 0  # type: ignore[attr-defined]


def test_any_query_that_one_person_moves_by_little_will_do() -> None:
    """The largest count of a table: no weighted sum, sensitivity 1 and the rounding of its grid."""
    schema, budget = schema_of(3), Budget.of(1)
    most = Function.of(schema, "a", lambda counts: counts.max(), sensitivity=1, neighbors=ADD, grid="1/4")
    noise = Drawn()
    net_mechanism(curator(schema, np.array([0, 0, 1]), budget, ADD, noise), most, budget, net=NETS["two rows"]())
    exponents, rate = noise.asked[-1]
    largest = [4, 2, 2, 4, 2, 4]
    assert exponents.tolist() == below_best(np.array([-abs(4 * (c - 2)) for c in largest])).tolist()
    assert rate == Fraction(1, 4) / (2 * most.sensitivity(scores.Norm.LINF, ADD))


def test_the_logarithm_of_a_count_is_that_of_the_count() -> None:
    for universe, rows in ((1, 5), (2, 10**6), (6, 4), (4, 6), (1000, 3), (10**12, 7), (10**400, 3)):
        assert log_multisets(universe, rows) == pytest.approx(log(comb(universe + rows - 1, rows)), rel=1e-9, abs=1e-9)
    assert exp(log_multisets(4, 12)) == pytest.approx(455)
    assert subsample_size(16, "0.3") == 20
    assert MOST_MEMBERS == 10**7
