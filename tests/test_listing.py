"""Values of a column without a domain: the law against its promise, the sampler against the law, and the table."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from noises import FALSE_ALARM, misfit
from promises import breaches, furthest
from scipy import stats

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm
from tacit.domain.listing import Listed, Values
from tacit.domain.person import Person, Relation
from tacit.domain.query import Marginal
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.engines import listing as engine
from tacit.engines.listing import Unlisted
from tacit.engines.table import open_table
from tacit.errors import BudgetExceeded, DataUnavailable, InvalidParameter
from tacit.primitives import listing as primitive
from tacit.primitives.additive import Laplace
from tacit.primitives.listing import MADE_UP, PLAIN, Listing, _invented, _law, _poisson
from tacit.primitives.noise import SYSTEM
from tacit.primitives.threshold import AboveThreshold
from tacit.privacy.budget import Budget
from tests.postgres import server

SCHEMA = Schema([Categories("city", ("?",), missing="cell", outside="cell")])
PAIR = (b"F", b"Bo")  # a universe of two texts; all others are drawn as they are, whoever is in the table


def law(mechanism: Listing, rows: tuple[int, ...], sensitivity: Fraction) -> list[float]:
    """The logarithms of the probabilities of every set of the two that may be listed."""
    each = [np.log(mechanism.probability(value, c, sensitivity)) for value, c in zip(PAIR, rows, strict=True)]
    return [sum(logs[choice] for logs, choice in zip(each, said, strict=True)) for said in product((0, 1), repeat=2)]


def neighbours(mechanism: Listing, relation: Relation) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """All pairs of counts that differ by one person: around nothing, around either threshold, and far beyond."""
    moved = relation.moves(Values("city"), Norm.L1)
    tops = [mechanism.threshold(value, moved) for value in PAIR]
    spots = [sorted({*range(4), *range(max(0, top - 4), top + 4), 3 * top}) for top in tops]
    steps = range(-relation.rows, relation.rows + 1)
    for here in product(*spots):
        for a, b in product(steps, repeat=2):
            there = (here[0] + a, here[1] + b)
            added = abs(a + b) == abs(a) + abs(b) <= relation.rows
            replaced = max(a, 0) + max(b, 0) <= relation.rows and max(-a, 0) + max(-b, 0) <= relation.rows
            if min(there) >= 0 and (replaced if relation.neighbors is Neighbors.REPLACE_ONE else added):
                yield here, there


def laws(said: Listing, relation: Relation, drawn: Listing | None = None) -> tuple[np.ndarray, np.ndarray]:
    moved = relation.moves(Values("city"), Norm.L1)
    pairs = list(neighbours(said, relation))
    return tuple(np.array([law(drawn or said, pair[end], moved) for pair in pairs]) for end in (0, 1))  # type: ignore[return-value]


RELATIONS = [Relation(neighbors, rows) for neighbors in Neighbors for rows in (1, 3)]


@pytest.mark.parametrize("epsilon", ["1/10", "1", "4"])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_listing_keeps_its_promise(epsilon: str, relation: Relation) -> None:
    mechanism = Listing(epsilon)
    p, q = laws(mechanism, relation)
    assert np.exp(p).sum(axis=1) == pytest.approx(1, abs=1e-9)
    assert breaches(p, q, mechanism.loss()) == []
    assert furthest(p, q) > 0.9 * float(mechanism.epsilon)  # and no better


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_half_the_noise_of_a_listing_is_rejected(relation: Relation) -> None:
    assert breaches(*laws(Listing(1), relation, Listing(2)), Listing(1).loss()) != []


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_a_listing_of_lower_thresholds_or_without_made_up_values_is_rejected(
    relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, threshold = Listing(1), primitive._threshold
    with monkeypatch.context() as patch:
        patch.setattr(primitive, "_threshold", lambda *of: threshold(*of) - 2 * int(1 / of[0]))
        assert breaches(*laws(mechanism, relation), mechanism.loss()) != []
    monkeypatch.setattr(primitive, "_law", lambda *of: [Fraction(0)])
    monkeypatch.setattr(primitive, "_threshold", lambda *of: 5)
    with np.errstate(divide="ignore"):
        assert breaches(*laws(mechanism, relation), mechanism.loss()) != []


def test_a_threshold_lies_where_the_proof_needs_it() -> None:
    for epsilon, rows in product(("1/1000", "1/16", "1", "30", "1000"), (1, 2, 1000)):
        rate = Listing(epsilon).rate(rows)
        for value in (b"F", b"?", b"Hillside", "Zürich".encode(), b"x" * 64, b"\xff" * 64):
            top = Listing(epsilon).threshold(value, rows)
            q = _law(len(value), not value.translate(None, PLAIN))[-1]
            assert top >= 2
            assert (
                -float(rate) * (top - 1) - np.log(2)
                <= log(rate * MADE_UP) + log(q.numerator) - log(q.denominator) + 1e-9
            )


@pytest.mark.parametrize("epsilon", [1, "1e-9", Fraction(1, 2**40)])
def test_a_text_that_nobody_makes_up_is_never_listed_however_many_rows_it_has(epsilon: Any) -> None:
    rows = np.array([2**62, 2**62, 1])
    for longest in (1, 64):
        mechanism = Listing(epsilon, longest)
        values = [b"", b"x" * 2**22, b"zq"]  # for which no threshold is worked out
        for _ in range(30):
            assert not {b"", b"x" * 2**22} & set(mechanism.sample([(values, rows)], Fraction(1), SYSTEM))
        assert [mechanism.probability(value, 2**62) for value in values[:2]] == [(0.0, 1.0)] * 2


def test_a_rate_at_which_a_threshold_passes_64_bits_is_refused_before_anything_is_charged() -> None:
    """Else a table of one text would fail where an empty one does not."""
    longest = [b"\xff" * 1000]
    Listing(Fraction(1, 2**40), 1000).check(Fraction(1), Fraction(1))
    assert Listing(Fraction(1, 2**40), 1000).sample([(longest, np.array([1]))], Fraction(1), SYSTEM) != longest
    for epsilon, sensitivity in ((Fraction(1, 2**41), 1), ("1e-9", 2 * 10**6), ("1e-20", 1)):
        with pytest.raises(InvalidParameter, match="scale"):
            Listing(epsilon).check(Fraction(sensitivity), Fraction(1))
    people, given = curator([(longest, np.array([1]))])
    with pytest.raises(InvalidParameter):
        people.release(Listing("1e-20"), Values("city"))
    assert (given.spent, given.ledger.spent) == ([], 0)


def test_the_sampler_draws_by_the_law_and_not_by_half_the_noise() -> None:
    mechanism = Listing("1/2")
    values = [bytes(pair) for pair in product(PLAIN, repeat=2)]
    top, draws = mechanism.threshold(b"aa"), 40
    number = draws * len(values)
    for rows, half in ((top - 3, exp(-3) / 2), (top, 0.45), (top + 2, 1 - exp(-2) / 2)):
        counts = np.full(len(values), rows, dtype=np.int64)
        found = [set(mechanism.sample([(values, counts)], Fraction(1), SYSTEM)) & set(values) for _ in range(draws)]
        seen = np.array([sum(map(len, found))])
        assert misfit(seen, np.array([mechanism.probability(b"aa", rows)[0]]), number) > FALSE_ALARM
        assert misfit(seen, np.array([half]), number) < FALSE_ALARM


def test_how_many_values_are_made_up_is_poisson() -> None:
    draws = 20_000
    found = Counter(_poisson(Fraction(1, 2), SYSTEM) for _ in range(draws))
    law = stats.poisson.pmf(range(8), 0.5)
    assert misfit(np.array([found[n] for n in range(8)]), law, draws) > FALSE_ALARM
    assert misfit(np.array([found[n] for n in range(8)]), stats.poisson.pmf(range(8), 0.45), draws) < FALSE_ALARM


def test_a_made_up_value_has_the_law_that_the_thresholds_count_on() -> None:
    draws = 20_000
    texts = [_invented(6, SYSTEM) for _ in range(draws)]
    lengths = Counter(0 if text is None else len(text) for text in texts)
    law = np.array([1 / 7, *(1 / (length * (length + 1)) for length in range(1, 7))])
    assert misfit(np.array([lengths[length] for length in range(7)]), law, draws) > FALSE_ALARM
    single = Counter(text for text in texts if text is not None and len(text) == 1)
    letters = [bytes([letter]) for letter in range(256)]
    law = np.array([float(sum(_law(1, letter in PLAIN))) for letter in letters])
    assert misfit(np.array([single[letter] for letter in letters]), law, draws) > FALSE_ALARM


def test_most_listings_of_an_empty_table_are_empty() -> None:
    found = [Listing(1).sample([], Fraction(1), SYSTEM) for _ in range(2000)]
    assert sum(map(bool, found)) < 20  # two are expected
    assert all(values == sorted(values) for values in found)


class Given:
    """A table that lists what it is given, and remembers when it was read."""

    schema, most_rows = SCHEMA, 1

    def __init__(self, listed: Listed, ledger: MemoryLedger) -> None:
        self.listed, self.ledger, self.spent = listed, ledger, list[Fraction]()

    def counts(self, column_sets: Any) -> Any:
        raise AssertionError

    def values(self, column: str) -> Listed:
        self.spent.append(self.ledger.spent)
        yield from self.listed


def curator(listed: Listed, epsilon: int = 10) -> tuple[Curator, Given]:
    ledger = MemoryLedger(Budget.of(epsilon))
    given = Given(listed, ledger)
    return Curator(given, ledger, Neighbors.ADD_REMOVE), given


def test_a_listing_is_charged_then_read() -> None:
    people, given = curator([([b"F", b"zq_rare"], np.array([1000, 1]))])
    assert [v for v in people.release(Listing(1), Values("city")) if v in (b"F", b"zq_rare")] == [b"F"]
    assert given.spent == [Fraction(1)]
    assert [entry.what for entry in given.ledger.entries()] == ["Listing(epsilon=1) of Values('city')"]
    with pytest.raises(BudgetExceeded):
        people.release(Listing(10), Values("city"))
    assert given.spent == [Fraction(1)]


def test_what_fails_in_a_listing_is_one_constant_message() -> None:
    def failing() -> Iterator[Any]:
        yield [b"F"], np.array([3])
        raise RuntimeError("zq_canary")

    people, given = curator(failing())
    with pytest.raises(DataUnavailable) as caught:
        people.release(Listing(1), Values("city"))
    assert "zq_canary" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert given.ledger.spent == 1


def test_values_meet_no_number_mechanism_and_numbers_no_listing() -> None:
    people, given = curator([])
    query = Marginal.over(SCHEMA, "city")
    with pytest.raises(InvalidParameter, match="takes numbers"):
        people.release(Laplace(1), Values("city"))
    with pytest.raises(InvalidParameter, match="takes values"):
        people.release(Listing(1), query)
    session = people.open(AboveThreshold(1, 5))
    with pytest.raises(InvalidParameter, match="takes numbers"):
        session.ask(Values("city"))
    table = open_table(pa.table({"city": ["?"]}), SCHEMA)
    with pytest.raises(InvalidParameter, match="lists no"):
        Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE).release(Listing(1), Values("city"))
    assert given.spent == []


# ---- the table

CITIES = [
    "Zürich",
    "F",
    "F",
    "Bo",
    " F",
    "",
    "a\x07b",
    "x" * 65,
    "x" * 64,
    "42",
    "42",
    "042",
    'say "hi"',
    "a,b",
    "(missing)",
]
CLEAN = Counter({"Zürich": 1, "F": 2, "Bo": 1, "x" * 64: 1, "42": 2, "042": 1, 'say "hi"': 1, "a,b": 1})


def held(folder: Path, kind: str, cities: list[str], people: list[int]) -> tuple[str, str | None]:
    """The same rows as a file of some kind."""
    if kind == "csv":
        with open(folder / "t.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "city"), *zip(people, cities, strict=True)])
        return str(folder / "t.csv"), None
    if kind == "postgres":
        return server().hold({"id": people, "city": cities}, {"id": "integer", "city": "text"})
    table = pa.table({"id": people, "city": cities})
    if kind == "parquet":
        pq.write_table(table, folder / "t.parquet")
        return str(folder / "t.parquet"), None
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("create table t as select * from given")
    return str(folder / "t.duckdb"), "t"


def listed(values: Unlisted, column: str = "city") -> Counter[str]:
    found: Counter[str] = Counter()
    for some, counts in values.values(column):
        assert not found.keys() & {value.decode() for value in some}  # each once
        found.update(dict(zip((value.decode() for value in some), counts.tolist(), strict=True)))
    return found


KINDS = ["csv", "parquet", "duckdb", "postgres"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_lists_the_same_clean_values(kind: str, tmp_path: Path) -> None:
    place, table = held(tmp_path, kind, CITIES, list(range(len(CITIES))))
    assert listed(Unlisted(SCHEMA, place, table, None)) == CLEAN


@pytest.mark.parametrize("kind", KINDS)
def test_of_each_person_so_many_rows_stand_in_a_listing(kind: str, tmp_path: Path) -> None:
    cities = ["a", "a", "a", "b", "b", "c"] * 5
    people = [1] * 15 + [2] * 14 + [3]
    place, table = held(tmp_path, kind, cities, people)
    for most in (1, 4, 14):
        values = Unlisted(SCHEMA, place, table, Person("id", most))
        with pytest.raises(InvalidParameter):
            listed(values)
        values.draw_from(lambda size: SYSTEM.uniform(2**32, size))
        found = listed(values)
        assert found.total() == 2 * most + 1
        assert listed(values) == found  # the same rows for as long as it lives
    everybody = Unlisted(SCHEMA, place, table, Person("id", 15))
    everybody.draw_from(lambda size: SYSTEM.uniform(2**32, size))
    assert listed(everybody) == Counter(cities)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_all_rows_of_one_person_move_a_listing_no_further_than_claimed(most: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(most)
    query, person = Values("city"), Person("id", most)
    for trial in range(20):
        people = [*rng.integers(0, 4, rng.integers(0, 30)).tolist(), *[9] * int(rng.integers(1, 12))]
        cities = [f"c{city}" for city in rng.integers(0, 5, len(people))]
        changed = [
            f"c{city}" if who == 9 else old
            for city, old, who in zip(rng.integers(0, 5, len(people)), cities, people, strict=True)
        ]
        without = [at for at, who in enumerate(people) if who != 9]  # whose rows come last: all others keep their lots
        tables = {
            "here": (cities, people),
            "without": ([cities[at] for at in without], [people[at] for at in without]),
            "replaced": (changed, people),
        }
        found = {}
        for name, rows in tables.items():
            (tmp_path / f"{trial}{name}").mkdir()
            values = Unlisted(SCHEMA, *held(tmp_path / f"{trial}{name}", "csv", *rows), person)
            lots = np.random.default_rng(trial)
            values.draw_from(lambda size, lots=lots: lots.integers(0, 2**32, size))  # type: ignore[misc]
            found[name] = listed(values)
        for other, neighbors in (("without", Neighbors.ADD_REMOVE), ("replaced", Neighbors.REPLACE_ONE)):
            moved = sum(abs(found["here"][city] - found[other][city]) for city in {*found["here"], *found[other]})
            assert moved <= Relation(neighbors, most).moves(query, Norm.L1)


def test_more_values_than_are_held_are_counted_in_more_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cities = [f"c{at % 997}" for at in range(5000)]
    place, table = held(tmp_path, "csv", cities, list(range(5000)))
    values = Unlisted(SCHEMA, place, table, None)
    readings, batches = list[int](), values._source.batches
    monkeypatch.setattr(values._source, "batches", lambda *of: readings.append(1) or batches(*of))
    for most, least in ((2000, 1), (300, 3), (1, 4)):
        monkeypatch.setattr(engine, "MOST_HELD", most)
        readings.clear()
        assert listed(values) == Counter(cities)
        assert len(readings) >= least


def test_a_source_that_changes_while_it_is_listed_stops_it(tmp_path: Path) -> None:
    place, table = held(tmp_path, "csv", CITIES, list(range(len(CITIES))))
    values = Unlisted(SCHEMA, place, table, None)
    Path(place).write_text("id,city\n1,F\n")
    with pytest.raises(DataUnavailable):
        listed(values)


def test_the_values_of_whole_numbers_days_and_dictionaries_are_texts() -> None:
    days = pa.array([0, None, 19_000], pa.int32()).cast(pa.date32())
    assert engine.texts(days)[0] == [b"1970-01-01", None, b"2022-01-08"]
    assert engine.texts(pa.array([10**9, -1], pa.int64()).cast(pa.timestamp("ns", "UTC")))[0] == [
        b"1970-01-01",
        b"1969-12-31",
    ]
    assert engine.texts(pa.array(["b", "a", "b"]).dictionary_encode()) == ([b"b", b"a"], [2, 1])
