"""Every claimed sensitivity against every neighbour of small tables, in all norms; and wrong claims are caught."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from kinds import KINDS, LINEAR, SCORES, SQUARE, Believed, random_schema
from neighbours import Codes, falls, farthest, moves, universe

import tacit.domain
from tacit.domain.grid import Norm
from tacit.domain.grouped import Grouped
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.parity import Parity
from tacit.domain.query import Conjunctions, Counting, Linear, LinearQuery, Marginal, Query
from tacit.domain.residual import Residual
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.score import Error, Fit, Function, Hardness, _Score
from tacit.domain.workload import Workload, marginals, prefixes
from tacit.errors import InvalidQuery

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PACKAGE = Path(__file__).parent.parent / "tacit"


def tables(schema: Schema, rng: np.random.Generator) -> list[Codes]:
    """Nobody, somebody of every kind, and a few at random."""
    everybody = universe(schema)
    return [everybody[:0], everybody, everybody[rng.integers(0, len(everybody), 4)]]


def norms(query: Query) -> list[Norm]:
    return [Norm.LINF] if isinstance(query, _Score) else list(Norm)


@pytest.mark.parametrize("kind", KINDS)
def test_one_person_moves_the_answer_no_further_than_claimed(kind: str) -> None:
    """Every neighbour of 3 tables over each of 25 random schemas, up to 600 of a table: the search is exhaustive."""
    _, make = KINDS[kind]
    rng = np.random.default_rng(list(kind.encode()))
    for _ in range(25):
        schema = random_schema(rng, least=2 if kind == "Residual" else 1)
        query, some = make(schema, rng), tables(schema, rng)
        for neighbors in Neighbors:
            found = moves(query, schema, some, neighbors)
            for norm in norms(query):
                moved, claimed = farthest(query, found, norm, neighbors)
                assert 0 <= moved <= claimed, (query, norm, neighbors, schema)


WEIGHTS = np.linspace(0.1, 0.9, 15)

# an upper bound only: a workload over several column sets, or of weighted sums under replace-one (their l1 and l2
# bounds are twice the largest cell's, or sums over the parts), a residual of many columns, the scores, a function
TIGHT: dict[str, tuple[Query, set[Neighbors]]] = {
    "Marginal": (Marginal.over(SQUARE, "a", "b"), {ADD, REPLACE}),
    "Conjunctions": (Conjunctions.over(SQUARE, "a", "b"), {ADD, REPLACE}),
    "Grouped": (Grouped.over(SQUARE, ("b", "c"), Counting.where(SQUARE, {"a": (1, 2), "c": (0, 1)})), {ADD, REPLACE}),
    "Prefixes": (Prefixes.over(SQUARE, "a"), {ADD, REPLACE}),
    "Prefixes of one cell": (Prefixes.over(Schema([Integers("a", 1, 1), *SQUARE.columns[1:]]), "a"), {ADD, REPLACE}),
    "Ranges": (Ranges.over(SQUARE, "a"), {ADD, REPLACE}),
    "Ranges of an even column": (Ranges.over(SQUARE, "c"), {ADD, REPLACE}),
    "Ranges by": (Ranges.over(SQUARE, "a", by=("b", "c")), {ADD, REPLACE}),
    "Parity": (Parity.over(SQUARE, "c", "yes"), {ADD, REPLACE}),
    "Counting": (Counting.where(SQUARE, {"a": (1, 3), "c": (0,)}), {ADD, REPLACE}),
    "Linear": (Linear.of(SQUARE, ("a", "b"), WEIGHTS), {ADD, REPLACE}),
    "Linear of 0 and 1": (Linear.of(SQUARE, ("b",), [0, 1, 1]), {ADD, REPLACE}),
    "Workload of one column set": (
        Workload(tuple(Linear.of(SQUARE, ("a", "b"), np.roll(WEIGHTS**power, power)) for power in (1, 2, 3))),
        {ADD},
    ),
    "Workload of disjoint sums": (
        Workload(tuple(Counting.where(SQUARE, {"b": (cell,)}) for cell in range(3))),
        {ADD, REPLACE},
    ),
    "Workload of one query twice": (Workload((Marginal.over(SQUARE, "b"), Marginal.over(SQUARE, "b"))), {ADD, REPLACE}),
    "marginals": (marginals(SQUARE, 1), {ADD, REPLACE}),
}


@pytest.mark.parametrize("kind", TIGHT)
def test_some_person_moves_the_answer_as_far_as_claimed(kind: str) -> None:
    query, attained = TIGHT[kind]
    schema = Schema([Integers("a", 1, 1), *SQUARE.columns[1:]]) if kind == "Prefixes of one cell" else SQUARE
    for neighbors in attained:
        found = moves(query, schema, [universe(schema)], neighbors)
        for norm in Norm:
            moved, claimed = farthest(query, found, norm, neighbors)
            assert moved <= claimed <= moved * (1 + Fraction(1, 2**40)), (norm, neighbors)  # a root is rounded up


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_person_lowers_no_answer_that_claims_to_be_monotone(kind: str) -> None:
    _, make = KINDS[kind]
    rng = np.random.default_rng(list(kind.encode()))
    for _ in range(10):
        schema = random_schema(rng, least=2)
        query = make(schema, rng)
        assert not (query.monotone(ADD) and falls(query, schema, tables(schema, rng)))


def test_sums_of_weights_are_monotone_when_rows_come_and_go_and_never_when_they_are_replaced() -> None:
    for kind in ("Marginal", "Conjunctions", "Grouped", "Counting", "Linear", "Prefixes", "Ranges"):
        assert LINEAR[kind][1](SQUARE, np.random.default_rng(0)).monotone(ADD)
    for kind, (_, make) in KINDS.items():
        query = make(SQUARE, np.random.default_rng(1))
        assert not query.monotone(REPLACE), kind
    assert not Parity.over(SQUARE, "c").monotone(ADD)
    assert not Workload((Counting.where(SQUARE), Parity.over(SQUARE, "c"))).monotone(ADD)


def test_a_score_has_no_sensitivity_but_the_largest() -> None:
    for _, make in SCORES.values():
        for norm in (Norm.L1, Norm.L2):
            with pytest.raises(InvalidQuery, match="linf alone"):
                make(SQUARE, np.random.default_rng(0)).sensitivity(norm, ADD)


def test_a_function_answers_only_for_what_its_author_declared() -> None:
    query = Function.of(SQUARE, "b", lambda counts: counts.max(), sensitivity={Norm.LINF: 1}, neighbors=REPLACE)
    assert query.sensitivity(Norm.LINF, REPLACE) == 1 + 2 * query.grid
    for norm, neighbors in ((Norm.L1, REPLACE), (Norm.L2, REPLACE), (Norm.LINF, ADD)):
        with pytest.raises(InvalidQuery, match="no sensitivity was declared"):
            query.sensitivity(norm, neighbors)
    other = Function.of(SQUARE, "b", lambda counts: counts.max(), sensitivity=1, neighbors=ADD)
    assert other.sensitivity(Norm.L1, REPLACE) == 2 + 2 * other.grid  # one row goes and one comes


# claims that are wrong, each by as little as such a claim is usually wrong; the same search must find every one


class NarrowPrefixes(Prefixes):
    """Takes the whole answer for one count."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)


class StillPrefixes(Prefixes):
    """Forgets that a replaced row may be one that is dropped: the last prefix need not stand still."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return super().sensitivity(norm, neighbors) - (norm is Norm.L1 and neighbors is REPLACE)


class StillLinear(Linear):
    """Forgets the same: the weights of two people differ by less than the largest weight."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        least = int(self.numerators.min()) if neighbors is REPLACE else 0
        return (int(self.numerators.max()) - least) * self.grid


class UnroundedLinear(Linear):
    """Claims the weight that was asked for, not the rounded one that is used."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(7, 10)


class OnceMarginal(Marginal):
    """Forgets the cell that a replaced person enters."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)


class OnceGrouped(Grouped):
    """Forgets that a replaced person may go from one group to another."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)


class HalfRanges(Ranges):
    """Forgets that two people may be in different groups."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return super().sensitivity(norm, ADD)


class SmallRanges(Ranges):
    """Counts the intervals that begin at a cell, not all that hold it."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(self.sizes[-1])


class HalfParity(Parity):
    """Takes a parity for a count."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1)


class LoneWorkload(Workload):
    """Takes the largest claim of its parts in every norm."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return max(query.sensitivity(norm, neighbors) for query in self.queries)


class SmallError(Error):
    """Takes the l1 distance of a whole answer for the largest."""

    def _moved(self, neighbors: Neighbors) -> Fraction:
        return self.workload.sensitivity(Norm.LINF, neighbors)


class FirstFit(Fit):
    """Takes the claim of the first query for that of all."""

    def _moved(self, neighbors: Neighbors) -> Fraction:
        return self.workload.queries[0].sensitivity(Norm.LINF, neighbors)


class UnroundedHardness(Hardness):
    """Claim 6.4 as it stands, for real numbers."""

    def _moved(self, neighbors: Neighbors) -> Fraction:
        return super()._moved(neighbors) - len(self.synopses) * self.grid


class UnroundedFunction(Function):
    """The author's word alone, without the grid."""

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return self.declared[norm] * (1 if neighbors is self.neighbors else 2)


SOME = [universe(SQUARE)[::7], universe(SQUARE)[:3]]  # nine people of many kinds, and three of one
A, B, C = ("a",), ("b",), ("c",)
PARTS = (Counting.where(SQUARE, {"c": (0,)}), Marginal.over(SQUARE, "b"))
THIRD = {norm: Fraction(1, 3) for norm in Norm}
WRONG: dict[str, tuple[Query, Norm, Neighbors]] = {
    "prefixes as one count, l1": (NarrowPrefixes(A, (5,)), Norm.L1, ADD),
    "prefixes as one count, l2": (NarrowPrefixes(A, (5,)), Norm.L2, ADD),
    "prefixes of a total that stands still": (StillPrefixes(A, (5,)), Norm.L1, REPLACE),
    "weights of a total that stands still": (
        StillLinear(B, (3,), np.array([9, 9, 10]), Fraction(1, 10)),
        Norm.LINF,
        REPLACE,
    ),
    "weights before rounding": (
        UnroundedLinear(B, (3,), np.array([734004, 734004, 1]), Fraction(1, 2**20)),
        Norm.LINF,
        ADD,
    ),
    "one cell moved, not two, l1": (OnceMarginal(B, (3,)), Norm.L1, REPLACE),
    "one cell moved, not two, l2": (OnceMarginal(B, (3,)), Norm.L2, REPLACE),
    "one group moved, not two, l1": (OnceGrouped(("b", "c"), (3, 2), 1, PARTS[0]), Norm.L1, REPLACE),
    "one group moved, not two, l2": (OnceGrouped(("b", "c"), (3, 2), 1, PARTS[0]), Norm.L2, REPLACE),
    "ranges without the second group, l1": (HalfRanges(("b", "a"), (3, 5)), Norm.L1, REPLACE),
    "ranges without the second group, l2": (HalfRanges(("b", "a"), (3, 5)), Norm.L2, REPLACE),
    "ranges from one end only": (SmallRanges(A, (5,)), Norm.L1, ADD),
    "a parity as a count": (HalfParity(("c", "yes"), (2, 2)), Norm.LINF, REPLACE),
    "a workload as its worst part, l1": (LoneWorkload(PARTS), Norm.L1, ADD),
    "a workload as its worst part, l2": (LoneWorkload(PARTS), Norm.L2, ADD),
    "a query asked twice and counted once": (LoneWorkload((PARTS[1], PARTS[1])), Norm.L1, ADD),
    "a whole error as its largest": (SmallError(prefixes(SQUARE, "a"), Believed(SQUARE), whole=True), Norm.LINF, ADD),
    "a fit of the first query": (
        FirstFit(Workload((Linear.of(SQUARE, "b", [0.1, 0.2, 0.3]), PARTS[0])), np.zeros((1, 2))),
        Norm.LINF,
        ADD,
    ),
    "hardness before rounding": (
        UnroundedHardness(Workload(PARTS), (Believed(SQUARE), Believed(SQUARE)), 0, 3, Fraction(1, 4)),
        Norm.LINF,
        ADD,
    ),
    "a function before rounding": (
        UnroundedFunction(C, (2,), lambda counts: counts[0] / 3, 1, THIRD, ADD, Fraction(1)),
        Norm.LINF,
        ADD,
    ),
}


@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_claim_is_caught(claim: str) -> None:
    query, norm, neighbors = WRONG[claim]
    moved, claimed = farthest(query, moves(query, SQUARE, SOME, neighbors), norm, neighbors)
    assert moved > claimed


def test_the_right_claims_beside_the_wrong_ones_are_not_caught() -> None:
    for query, norm, neighbors in WRONG.values():
        right = type(query).__mro__[1]
        values = {name: getattr(query, name) for name in query.__dataclass_fields__}  # type: ignore[attr-defined]
        moved, claimed = farthest(right(**values), moves(query, SQUARE, SOME, neighbors), norm, neighbors)
        assert moved <= claimed


@pytest.mark.parametrize("kind", ["Parity", "Residual", "Error", "Function"])
def test_what_is_not_monotone_is_seen_to_fall(kind: str) -> None:
    """Were one of these to claim it, the search above would say so."""
    falling: dict[str, Query] = {
        "Parity": Workload((Counting.where(SQUARE), Parity.over(SQUARE, "c"))),
        "Residual": KINDS["Residual"][1](SQUARE, np.random.default_rng(0)),
        "Error": Error(Workload(PARTS), Believed(SQUARE, 1)),
        "Function": Function.of(SQUARE, "b", lambda counts: -counts.sum(), sensitivity=1, neighbors=ADD),
    }
    assert falls(falling[kind], SQUARE, SOME)
    assert not falling[kind].monotone(ADD)


# nothing claims a sensitivity without standing in the tables above


def claiming() -> set[type]:
    """The classes at the ends of the tree: a class is abstract or final."""
    found = set()
    for module in pkgutil.iter_modules(tacit.domain.__path__, "tacit.domain."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__.startswith("tacit.domain") and hasattr(kind, "sensitivity"):
                found.add(kind)
    return {kind for kind in found if not any(other is not kind and issubclass(other, kind) for other in found)}


def test_every_query_of_the_domain_is_in_the_table() -> None:
    assert claiming() == {kind for kind, _ in KINDS.values()}
    for kind, make in KINDS.values():
        assert type(make(SQUARE, np.random.default_rng(0))) is kind


def calls_only_the_query(body: ast.FunctionDef) -> bool:
    """`return query.sensitivity(...)`, or `relation.moves(query, ...)`: handed on, not claimed."""
    last = body.body[-1]
    called = last.value.func if isinstance(last, ast.Return) and isinstance(last.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("sensitivity", "moves")


def states_a_number(claim: ast.expr) -> bool:
    """Made of numbers and arithmetic alone, so not handed on from a query."""
    return all(
        isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Tuple | ast.Dict)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fraction")
        or (isinstance(node, ast.Name) and node.id == "Fraction")
        or isinstance(node, ast.expr_context)
        for node in ast.walk(claim)
    )


def claims_in(source: str) -> list[int]:
    """The lines on which a sensitivity is claimed, and not handed on."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "sensitivity" and not calls_only_the_query(node):
            lines.append(node.lineno)
        if isinstance(node, ast.keyword) and node.arg == "sensitivity" and states_a_number(node.value):
            lines.append(node.value.lineno)
    return lines


def test_no_claim_stands_outside_the_domain_and_the_primitives() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in ("domain", "primitives"):
            assert not claims_in(path.read_text(encoding="utf-8")), path


def test_a_claim_in_the_wrong_place_would_be_seen() -> None:
    assert claims_in("class Q:\n    def sensitivity(self, norm, neighbors):\n        return Fraction(1)")
    assert claims_in("query = Function.of(schema, ('a',), f, sensitivity=2 * Fraction(1, 2), neighbors=n)")
    assert not claims_in("def sensitivity(self, q):\n    return q.sensitivity(norm, self.neighbors)")
    assert not claims_in("AboveThreshold(epsilon, sensitivity=curator.sensitivity(query))")


def test_the_claim_of_a_query_cannot_be_changed_after_it_was_made() -> None:
    given = np.array([0, 1, 1])
    query = Linear(B, (3,), given)
    given[0] = 10**9
    assert query.sensitivity(Norm.LINF, ADD) == 1
    assert int(query.numerators.max()) == 1
    with pytest.raises(ValueError, match="read-only"):
        query.numerators[0] = 5
    with pytest.raises(InvalidQuery):
        replace(query, numerators=np.array([-1, 0, 1]))
    assert issubclass(Linear, LinearQuery)


def test_numbers_of_numpys_in_a_query_made_by_hand_do_not_wrap_in_its_sensitivity() -> None:
    pairs: list[tuple[Query, Query]] = [
        (Ranges(A, (np.int8(125),)), Ranges(A, (125,))),  # type: ignore[arg-type]
        (Prefixes(A, (np.int16(30000),)), Prefixes(A, (30000,))),  # type: ignore[arg-type]
        (Linear(A, (np.int8(2),), np.array([1, 0]), HALF), Linear(A, (2,), np.array([1, 0]), Fraction(1, 2))),  # type: ignore[arg-type]
        (
            Function(A, (2,), np.max, np.int8(100), {Norm.L1: HALF}, ADD, HALF),  # type: ignore[arg-type]
            Function(A, (2,), np.max, 100, {Norm.L1: Fraction(1, 2)}, ADD, Fraction(1, 2)),
        ),
    ]
    for hand, honest in pairs:
        claimed = hand.sensitivity(Norm.L1, ADD)
        assert claimed == honest.sensitivity(Norm.L1, ADD)
        assert type(claimed.numerator) is type(claimed.denominator) is type(hand.size) is int
    assert hash(Ranges(["a"], [5])) == hash(Ranges(A, (5,)))  # type: ignore[arg-type]


def test_a_residual_made_by_hand_leaves_no_other_claim_behind() -> None:
    numerators = (1, -104, -104, 10277)
    hand = Residual(("a", "b"), (np.int8(100), np.int8(100)), numerators)  # type: ignore[arg-type]
    hand.sensitivity(Norm.L1, ADD)
    assert Residual(("a", "b"), (100, 100), numerators).sensitivity(Norm.L1, ADD) >= Fraction(
        99 * 99 + 2 * 99 * 104 + 10277, 2**20
    )


def test_the_claim_of_a_function_cannot_be_changed_after_it_was_made() -> None:
    declared = {Norm.L1: Fraction(5)}
    query = Function.of(SQUARE, "b", np.max, sensitivity=declared, neighbors=ADD)
    declared[Norm.L1] = Fraction(1, 10**9)
    assert query.sensitivity(Norm.L1, ADD) > 5
    with pytest.raises(TypeError):
        query.declared[Norm.L1] = Fraction(1)  # type: ignore[index]


HALF = Fraction(np.int64(1), np.int64(2))  # type: ignore[call-overload]
