"""All that one person can do to the answers of a query: every neighbour of a table, and how far each one moves them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from doubles import Rows
from numpy.typing import NDArray

from tacit.domain.grid import Norm
from tacit.domain.query import Query
from tacit.domain.schema import Neighbors, Schema

Codes = NDArray[np.int64]  # one row a person, one column a column


def universe(schema: Schema) -> Codes:
    """Every person there can be."""
    cells = product(*(range(column.size) for column in schema))
    return np.array(list(cells), dtype=np.int64).reshape(-1, len(schema))


def units(query: Query, schema: Schema, codes: Codes) -> list[int]:
    """The answers, as exact whole numbers of grid steps."""
    answers = query.on_grid(*Rows(schema, codes).counts(query.reads)).units
    assert answers.dtype == np.int64
    assert answers.shape == (query.size,)
    return [int(answer) for answer in answers]


def moves(query: Query, schema: Schema, tables: list[Codes], neighbors: Neighbors) -> set[tuple[int, ...]]:
    """How the answers move from each of these tables to each of its neighbours, in steps of the grid.

    A row that is dropped is in the table and in no count. So a replaced row may leave the counts or enter them.
    """
    people, found = universe(schema), set()
    for codes in tables:
        here = units(query, schema, codes)
        others = [np.delete(codes, row, axis=0) for row in range(len(codes))]
        others += [np.vstack([codes, person]) for person in people]
        if neighbors is Neighbors.REPLACE_ONE:
            for place in {tuple(row): place for place, row in enumerate(codes)}.values():
                without = np.delete(codes, place, axis=0)
                others += [np.vstack([without, person]) for person in people]
        for other in others:
            found.add(tuple(np.subtract(units(query, schema, other), here, dtype=object)))
    return found


def length(move: tuple[int, ...], norm: Norm) -> int:
    """Its norm in steps of the grid; for l2, the square."""
    if norm is Norm.L2:
        return sum(step * step for step in move)
    steps = [abs(step) for step in move]
    return sum(steps) if norm is Norm.L1 else max(steps)


def farthest(query: Query, found: set[tuple[int, ...]], norm: Norm, neighbors: Neighbors) -> tuple[Fraction, Fraction]:
    """The farthest of these moves, and the claim; for l2, both squared."""
    power = 2 if norm is Norm.L2 else 1
    return (
        max(length(move, norm) for move in found) * query.grid**power,
        query.sensitivity(norm, neighbors) ** power,
    )


def falls(query: Query, schema: Schema, tables: list[Codes]) -> bool:
    """Whether some new person lowers an answer."""
    for codes in tables:
        here = units(query, schema, codes)
        for person in universe(schema):
            there = units(query, schema, np.vstack([codes, person]))
            if any(after < before for after, before in zip(there, here, strict=True)):
                return True
    return False
