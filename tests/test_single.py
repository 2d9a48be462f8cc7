"""One answer of a workload is the query whose only answer it is."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import Rows
from kinds import LINEAR, SCORES, SQUARE, random_schema
from neighbours import units, universe

from tacit.domain.query import Counting, LinearQuery, Query
from tacit.domain.residual import Residual
from tacit.domain.single import single
from tacit.domain.workload import Workload
from tacit.errors import InvalidInput, InvalidQuery


def sums(query: Query) -> bool:
    """Whether its answers are weighted counts of people, with weights that are not negative."""
    parts = query.queries if isinstance(query, Workload) else (query,)
    return all(isinstance(part, LinearQuery) and (part.size == 1 or part.weights().min() >= 0) for part in parts)


@pytest.mark.parametrize("kind", LINEAR)
def test_it_answers_as_the_workload_does_in_its_place(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        schema = random_schema(rng, least=2)
        query = LINEAR[kind][1](schema, rng)
        if not sums(query):
            continue
        people = universe(schema)
        codes = people[rng.integers(0, len(people), 12)]
        answers = query(*Rows(schema, codes).counts(query.reads))
        for place in range(query.size):
            alone = single(query, place)
            assert alone.size == 1
            assert alone(*Rows(schema, codes).counts(alone.reads)) == pytest.approx(answers[place])


def test_a_cell_an_interval_and_a_prefix_are_counting_queries() -> None:
    for kind in ("Marginal", "Conjunctions", "Counting", "Prefixes", "Ranges", "Ranges by"):
        query = LINEAR[kind][1](SQUARE, np.random.default_rng(0))
        assert isinstance(single(query, query.size - 1), Counting)


def test_what_has_no_such_answer_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput):
        single(LINEAR["Marginal"][1](SQUARE, rng), 10**6)
    with pytest.raises(InvalidQuery):
        single(SCORES["Error"][1](SQUARE, rng), 0)
    with pytest.raises(InvalidQuery, match="below zero"):
        single(Residual.of(SQUARE, ("a", "b")), 3)
    assert units(single(LINEAR["Counting"][1](SQUARE, rng), 0), SQUARE, universe(SQUARE))
