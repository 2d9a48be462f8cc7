"""Dense hypotheses against arithmetic on whole tables: however the cells lie, and wherever exps could overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.domain.dense as dense
import tacit.domain.weights as module
from tacit.domain.dense import Weighed, pieces, side_by_side
from tacit.domain.parity import Parity
from tacit.domain.query import Counting, Linear, LinearQuery, Marginal
from tacit.domain.schema import Categories, Schema
from tacit.domain.synopsis import Histogram
from tacit.domain.weights import Signed, Weights
from tacit.domain.workload import marginals, prefixes
from tacit.errors import InvalidInput, InvalidParameter, InvalidQuery

LARGE = Schema([Categories(name, tuple(range(6))) for name in "abcdefh"])  # 280 thousand cells
SIZES = (6,) * 7


def literal(query: LinearQuery, schema: Schema) -> NDArray[np.float64]:
    """What each cell of the universe weighs, one array as large as it."""
    weights = (query.weights()[0] * float(query.grid)).reshape(query.sizes)
    order = [query.columns.index(name) for name in schema.names if name in query.columns]
    return np.broadcast_to(
        weights.transpose(order).reshape([c.size if c.name in query.columns else 1 for c in schema]),
        schema.sizes(schema.names),
    )


def softmax(logs: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    masses = np.exp(logs - logs.max())
    return masses * (total / masses.sum())


def some_query(schema: Schema, rng: np.random.Generator) -> LinearQuery:
    names = [schema.names[i] for i in rng.permutation(len(schema))[: rng.integers(0, min(len(schema), 4) + 1)]]
    if rng.random() < 0.6 or not names:
        chosen = {n: [c for c in range(schema[n].size) if rng.random() < 0.6] for n in names}
        return Counting.where(schema, chosen)
    return Linear.of(schema, names, rng.random(schema.sizes(tuple(names))))


@pytest.fixture(autouse=True)
def slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that what has many of them is quickly checked."""
    monkeypatch.setattr(module, "_SLAB", 2**12)


@pytest.fixture(params=["as it is", "small blocks", "no views", "two threads"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every path through the passes, on tables that are quickly checked."""
    if request.param != "as it is":
        monkeypatch.setattr(module, "_SLAB", 64)
        monkeypatch.setattr(module, "BLOCK", 32)
        monkeypatch.setattr(pieces, "__defaults__", (32,))
        monkeypatch.setattr(dense, "_ROW", 8)
        monkeypatch.setattr(dense, "_FEW", 0 if request.param == "no views" else 4)
        monkeypatch.setattr(dense, "_THREADS", 2)
        monkeypatch.setattr(dense, "PAYS", 1 if request.param == "two threads" else 10**9)
    return str(request.param)


def test_answers_and_tilts_are_those_of_whole_tables(way: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        sizes = rng.integers(1, 7, rng.integers(1, 6))
        schema = Schema([Categories("abcde"[i], tuple(range(size))) for i, size in enumerate(sizes)])
        weights, signed = Weights(schema, 100.0), Signed(schema, 100.0)
        logs, cells = np.zeros(sizes), np.zeros(sizes)
        for _ in range(10):
            query, step = some_query(schema, rng), float(rng.normal() * rng.choice([1, 1, 20]))
            weighs = literal(query, schema)
            if rng.random() < 0.8:  # else the normaliser must be found anew
                assert weights.answer(query).item() == pytest.approx((softmax(logs, 100) * weighs).sum(), abs=1e-8)
            assert signed.answer(query).item() == pytest.approx((cells * weighs).sum(), abs=1e-8)
            weights.tilt(query, step)
            signed.tilt(query, step)
            logs, cells = logs + step * weighs, cells + step * weighs
        x = softmax(logs, 100)
        assert weights.counts == pytest.approx(x, rel=1e-8, abs=1e-10)
        assert signed.counts == pytest.approx(cells, abs=1e-8)
        columns = tuple(schema.names[i] for i in rng.permutation(len(schema))[:2])
        away = tuple(axis for axis, name in enumerate(schema.names) if name not in columns)
        table = x.sum(axis=away).transpose([sorted(columns).index(name) for name in columns])
        assert weights.project(columns) == pytest.approx(table, rel=1e-8, abs=1e-10)
        work = marginals(schema, min(2, len(schema))) + prefixes(schema, "a")
        assert weights.answer(work) == pytest.approx(Histogram(schema, x).answer(work), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("dtype", "off"), [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_a_large_universe_is_answered_without_its_counts(dtype: Any, off: float) -> None:
    rng = np.random.default_rng(1)
    weights = Weights(LARGE, 1000.0, dtype=dtype)
    logs = np.zeros(SIZES)
    for turn in range(12):
        query = some_query(LARGE, rng)
        weighs = literal(query, LARGE)
        truth = (softmax(logs, 1000) * weighs).sum()
        assert weights.answer(query).item() == pytest.approx(truth, abs=1000 * off)
        step = float(rng.choice([0.5, -0.5, 3])) * (-1) ** turn
        weights.tilt(query, step)
        logs += step * weighs
    x = softmax(logs, 1000)
    assert weights.project(("h", "b")) == pytest.approx(x.sum(axis=(0, 2, 3, 4, 5)).T, abs=1000 * off)
    assert weights.counts == pytest.approx(x, abs=1000 * off)
    assert weights._counts is None  # what is large is not kept


def test_a_conjunction_touches_no_cell_that_does_not_satisfy_it() -> None:
    weights = Weights(LARGE, 1.0)
    query = Counting.where(LARGE, {"b": (2,), "e": (0, 1), "h": (5,)})
    weights.answer(query)
    weighed = Weighed.by(query, LARGE.names, SIZES, np.dtype(np.float64))
    assert sum(view.size for view, _ in weighed.views(weights._table)) == 6**7 // 6 // 3 // 6
    weights._table[literal(query, LARGE) == 0] = np.nan  # would be seen in the mass, had it been read
    mass = weights._mass
    weights.tilt(query, 0.7)
    assert weights._mass == pytest.approx(mass * (1 + (np.e**0.7 - 1) / 108))
    assert weights.answer(query).item() == pytest.approx(np.e**0.7 / 108 / (1 + (np.e**0.7 - 1) / 108))


def test_a_query_over_few_columns_is_never_as_large_as_the_universe() -> None:
    rng = np.random.default_rng(2)
    for names in (("a", "b", "c"), ("b", "e", "f"), ("e", "f", "h"), ("h",)):
        for query in (
            Linear.of(LARGE, names, rng.random((6,) * len(names))),
            Counting.where(LARGE, dict.fromkeys(names, (0, 2, 4))),
        ):
            pattern = Weighed.by(query, LARGE.names, SIZES, np.dtype(np.float32), whole=True).pattern
            assert pattern is not None
            assert pattern.size <= 6**7 / 6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_thousands_of_tilts_neither_overflow_nor_lose_the_normaliser(dtype: Any) -> None:
    """Up by 5,000 in all, then as far down: the answers follow, and a cell that was forgotten comes back."""
    schema = Schema([Categories("a", tuple(range(200))), Categories("b", tuple(range(60)))])
    weights = Weights(schema, 1.0, dtype=dtype)
    query = Counting.where(schema, {"a": range(70)})
    for turn in range(200):
        if turn % 7 == 0:
            weights.answer(query)
        weights.tilt(query, 25.0)
    assert weights.answer(query).item() == pytest.approx(1)
    for _ in range(200):
        weights.answer(query)
        weights.tilt(query, -25.0)
    off = 1e-9 if dtype is np.float64 else 1e-3
    assert weights.answer(query).item() == pytest.approx(0.35, abs=off)
    assert weights.project(("b",)) == pytest.approx(np.full(60, 1 / 60), rel=1e-6)


def test_the_normaliser_that_follows_is_that_which_is_found() -> None:
    """A thousand legal conjunction steps on 32-bit weights, against a normaliser made anew from the same logarithms."""
    rng = np.random.default_rng(3)
    weights, found = Weights(LARGE, 1.0, dtype=np.float32), 0
    weights.tilt(Linear.of(LARGE, ("a", "h"), rng.random((6, 6))), 3.0)
    for turn in range(1000):
        query = Counting.where(LARGE, {name: (int(rng.integers(6)),) for name in rng.choice(list("abcdefh"), 3, False)})
        found += not weights._mass
        weights.answer(query)
        weights.tilt(query, float(rng.normal() / 3))
        if turn % 250 == 249 and weights._mass:
            truth = np.exp(weights._table, dtype=np.float64).sum()
            assert weights._mass == pytest.approx(truth, rel=4e-6)
    assert found < 100  # not once a step


def test_where_the_rounding_of_the_normaliser_matters_it_is_found_anew() -> None:
    """Nearly all mass goes at once: what is left must not be a difference of two large numbers."""
    schema = Schema([Categories("a", tuple(range(200))), Categories("b", tuple(range(60)))])
    for dtype, off in ((np.float64, 1e-9), (np.float32, 1e-4)):
        weights = Weights(schema, 1.0, dtype=dtype)
        query = Counting.where(schema, {"a": range(1, 200)})
        weights.answer(query)
        weights.tilt(query, -30.0)
        truth = 199 * np.exp(-30.0) / (1 + 199 * np.exp(-30.0))
        assert weights.answer(query).item() == pytest.approx(truth, rel=off)


def test_two_threads_say_what_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, said = list(range(100)), {}
    for threads in (1, 2, 3):
        monkeypatch.setattr(dense, "_THREADS", threads)
        said[threads] = side_by_side(lambda some: [1 / (1 + one) for one in some], parts, 10**9).tolist()
    assert said[1] == said[2] == said[3]


def test_blocks_cover_a_table_once() -> None:
    for shape in ((7,), (3, 5, 4), (1, 1), (2, 300), (100, 2, 2)):
        for most in (1, 4, 10, 1000):
            seen = np.zeros(shape, dtype=int)
            for piece in pieces(shape, most):
                assert seen[piece].size <= max(most, 1)
                seen[piece] += 1
            assert (seen == 1).all()


def test_a_copy_and_a_histogram_stay_as_they_are() -> None:
    schema = Schema([Categories("a", (0, 1, 2))])
    given = np.log([0.2, 0.3, 0.5])
    weights = Weights(schema, 10.0, given)
    kept, other, query = weights.histogram(), weights.copy(), Counting.where(schema, {"a": (0,)})
    weights.tilt(query, 1.0)
    assert np.exp(given) == pytest.approx([0.2, 0.3, 0.5])  # what was given is not changed
    for still in (kept, other):
        assert still.project(("a",)) == pytest.approx([2, 3, 5])
    assert weights.total == weights.answer(Counting.where(schema)).item() == 10
    signed = Signed(schema, 10.0, np.array([1.0, -2, 3]))
    twin = signed.copy()
    signed.tilt(query, 1.0)
    assert (twin.counts.tolist(), twin.people, twin.total) == ([1, -2, 3], 10, 2)
    with pytest.raises(ValueError, match="read-only"):
        weights.logs[0] = 1


def test_cells_that_cannot_be_may_have_no_weight_at_all() -> None:
    schema = Schema([Categories("a", (0, 1, 2))])
    weights = Weights(schema, 1.0, np.array([-np.inf, 0.0, 0.0]))
    weights.tilt(Counting.where(schema, {"a": (0, 1)}), 50.0)
    assert weights.counts == pytest.approx([0, 1, 0])


@pytest.mark.parametrize("logs", [[np.nan, 0, 0], [0, np.nan, 0], [np.inf, 0, 0], [-np.inf] * 3])
def test_logarithms_that_are_none_are_refused(logs: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        Weights(Schema([Categories("a", (0, 1, 2))]), 1.0, np.array(logs))


def test_what_cannot_tilt_and_what_cannot_be_held_is_refused() -> None:
    schema = Schema([Categories("a", (0, 1, 2)), Categories("b", (0, 1))])
    for hypothesis in (Weights(schema, 1.0), Signed(schema, 1.0)):
        for step in (np.nan, np.inf, 1e10):
            with pytest.raises(InvalidQuery):
                hypothesis.tilt(Counting.where(schema), step)
        with pytest.raises(InvalidQuery):
            hypothesis.tilt(Marginal.over(schema, "a"), 1.0)
        with pytest.raises(InvalidInput):
            hypothesis.tilt(Counting.where(LARGE, {"h": (1,)}), 1.0)
    wide = Schema([Categories(name, tuple(range(10))) for name in "abcdefghi"])
    for make in (lambda: Weights(wide, 1.0), lambda: Signed(wide, 1.0), lambda: Weights(schema, -1.0)):
        with pytest.raises(InvalidParameter):
            make()
    for total in (np.nan, np.inf):
        with pytest.raises(InvalidParameter):
            Weights(schema, total)
    with pytest.raises(InvalidParameter, match="32 or 64"):
        Weights(schema, 1.0, dtype=np.int64)


def test_a_signed_weight_tilts_too() -> None:
    weights = Weights(Schema([Categories("a", (0, 1))]), 4.0)
    weights.tilt(Parity.over(weights.schema, "a"), float(np.log(3) / 2))
    assert weights.counts == pytest.approx([3, 1])
    assert weights.answer(Parity.over(weights.schema, "a")).item() == pytest.approx(2)
