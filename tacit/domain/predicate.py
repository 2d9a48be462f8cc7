"""Predicates: `age >= 40 and sex = 'F'`, read against a schema into one counting query (Section 3.3).

A comparison speaks of the declared domain: a value that is missing or outside satisfies none, not even `!=` and
`not in`. A `not` before it is the plain complement over all cells, those two included.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.cellset import CellSet, in_all, in_any
from tacit.domain.condition import chosen, worded
from tacit.domain.parser import Condition, read
from tacit.domain.query import MOST_QUERY_CELLS, Cells, Counting, Linear, LinearQuery, brief
from tacit.domain.schema import Column, Schema
from tacit.domain.token import wrong
from tacit.errors import InvalidQuery, quoted

MOST_WORK = 10**9  # cells that are looked at to work out a predicate that is no conjunction


@dataclass(frozen=True, eq=False)
class Within:
    """A person's cell in one column is one of these; neither none nor all of them."""

    place: int  # of the column in the schema
    column: Column
    cells: CellSet

    def __str__(self) -> str:
        return worded(self.column, self.cells)


@dataclass(frozen=True, eq=False)
class Every:
    """All of these hold: one `Within` a column, in the schema's order, then ors. Of nothing, it is true."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, eq=False)
class Some:
    """One of these holds at least. Of nothing, it is false."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return _text(self)


Predicate: TypeAlias = Within | Every | Some


def parse(text: str, schema: Schema) -> LinearQuery:
    """The query that counts the people of whom a predicate is true.

    Conditions that hold together, each on one column, make a `Counting`; anything else a `Linear` with weights 0
    and 1. Equal meaning makes equal queries, in whatever words.

    >>> from tacit.domain.schema import Categories, Integers
    >>> schema = Schema([Integers("age", 0, 99), Categories("sex", ("F", "M", "X"))])
    >>> print(parse("age >= 40 AND 60 > age and not sex in ('M')", schema))
    count where age between 40 and 59 and sex != 'M'
    >>> parse("age < 40 or age >= 40 and sex = 'F'", schema).columns
    ('age', 'sex')
    """
    return counted(understood(text, schema), schema)


def understood(text: str, schema: Schema) -> Predicate:
    """The predicate, typed and simplified; its printed form is read as the same again."""

    def leaf(condition: Condition) -> Predicate:
        name = condition.column
        if name not in schema.places:
            raise wrong(text, condition.at, f"no column {quoted(name)}; {schema.nearest(name)}")
        column = schema[name]
        return _within(schema.places[name], column, chosen(column, condition, lambda at, why: wrong(text, at, why)))

    return read(text, leaf, lambda word, parts: _joined(Every if word == "and" else Some, parts))


def counted(predicate: Predicate, schema: Schema) -> LinearQuery:
    """The query over the fewest columns that counts where it is true."""
    together = predicate.parts if isinstance(predicate, Every) else (predicate,)
    within = [part for part in together if isinstance(part, Within)]
    if len(within) < len(together):
        return _worked_out(predicate, schema)
    columns = tuple(part.column.name for part in within)
    sizes = tuple(part.column.size for part in within)
    return Counting(columns, sizes, tuple(_listed(part.cells) for part in within), brief(str(predicate)))


def _listed(cells: CellSet) -> Cells:
    runs = cells.runs
    return range(*runs[0]) if len(runs) == 1 else tuple(cell for run in runs for cell in range(*run))


def _within(place: int, column: Column, cells: CellSet) -> Predicate:
    return Some(()) if not cells.ends else Every(()) if cells.full else Within(place, column, cells)


def _joined(kind: type[Every | Some], parts: list[Predicate]) -> Predicate:
    """Joins as few parts as say the same: one for a column, and none that is the same for everybody."""
    other = Some if kind is Every else Every
    by_place: dict[int, list[Within]] = {}
    left: list[Predicate] = []
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            if isinstance(inner, Within):
                by_place.setdefault(inner.place, []).append(inner)
            elif inner.parts:
                left.append(inner)
            else:
                return other(())  # false and anything, true or anything
    merge = in_all if kind is Every else in_any
    found: list[Predicate] = []
    for place, same in sorted(by_place.items()):
        one = _within(place, same[0].column, merge([part.cells for part in same]) if len(same) > 1 else same[0].cells)
        if isinstance(one, Within):
            found.append(one)
        elif isinstance(one, other):
            return one
    found += left
    return found[0] if len(found) == 1 else kind(tuple(found))


def _text(predicate: Predicate) -> str:
    if isinstance(predicate, Within):
        return str(predicate)
    if not predicate.parts:
        return "true" if isinstance(predicate, Every) else "false"
    said = []
    for part in predicate.parts:
        text = _text(part)
        loose = isinstance(part, Some) or (isinstance(part, Within) and " or " in text)
        said.append(f"({text})" if loose or isinstance(part, Every) else text)
    return (" and " if isinstance(predicate, Every) else " or ").join(said)


def _worked_out(predicate: Predicate, schema: Schema) -> LinearQuery:
    """By looking at every cell; cells that no condition tells apart are looked at once."""
    leaves, nodes = _leaves(predicate)
    places = sorted(leaves)
    columns = [schema.columns[place] for place in places]
    names = ", ".join(column.name for column in columns)
    if (cells := prod(column.size for column in columns)) > MOST_QUERY_CELLS:
        raise InvalidQuery(
            f"the predicate is no conjunction, and its columns {brief(names)} have {cells} cells together; one query "
            f"may read {MOST_QUERY_CELLS}. Nothing was spent."
        )
    blocks = [np.unique(np.concatenate([[0], *(leaf.cells.ends for leaf in leaves[place])])) for place in places]
    blocks = [first[first < column.size] for first, column in zip(blocks, columns, strict=True)]
    if nodes * prod(len(first) for first in blocks) > MOST_WORK:
        raise InvalidQuery(
            f"the predicate joins {nodes} conditions over {brief(names)} in too many ways to be worked out; "
            "ask for its parts. Nothing was spent."
        )
    axes = {place: (axis, first) for axis, (place, first) in enumerate(zip(places, blocks, strict=True))}
    true = np.broadcast_to(_table(predicate, axes), [len(first) for first in blocks])
    for axis in reversed(range(len(places))):  # a column that makes no difference is not read
        if bool((true == true.take([0], axis)).all()):
            true = np.asarray(true.take(0, axis))
            del places[axis], columns[axis], blocks[axis]
    sets = [
        CellSet.switched(column.size, first, _shadow(true, axis))
        for axis, (column, first) in enumerate(zip(columns, blocks, strict=True))
    ]
    outer = prod(int(some.holds(first).sum()) for some, first in zip(sets, blocks, strict=True))
    if true.any() and int(true.sum()) == outer:  # it is a conjunction after all
        within = [_within(*part) for part in zip(places, columns, sets, strict=True)]
        return counted(_joined(Every, within), schema)
    sizes = tuple(column.size for column in columns)
    for axis, (size, first) in enumerate(zip(sizes, blocks, strict=True)):
        true = np.repeat(true, np.diff(np.append(first, size)), axis)
    said = brief(str(predicate)) if true.any() else "false"
    return Linear(tuple(column.name for column in columns), sizes, true.reshape(-1).astype(np.int64), said=said)


def _leaves(predicate: Predicate) -> tuple[dict[int, list[Within]], int]:
    """The conditions by column, and how many parts there are in all."""
    leaves: dict[int, list[Within]] = {}
    nodes, open_ = 0, [predicate]
    while open_:
        part = open_.pop()
        nodes += 1
        if isinstance(part, Within):
            leaves.setdefault(part.place, []).append(part)
        else:
            open_.extend(part.parts)
    return leaves, nodes


def _table(predicate: Predicate, axes: dict[int, tuple[int, NDArray[np.int64]]]) -> NDArray[np.bool_]:
    """Where it is true, over the blocks of the columns; an axis of length 1 where a column does not matter."""
    if isinstance(predicate, Within):
        axis, first = axes[predicate.place]
        return predicate.cells.holds(first).reshape([-1 if other == axis else 1 for other in range(len(axes))])
    join = np.logical_and if isinstance(predicate, Every) else np.logical_or
    true = np.full([1] * len(axes), isinstance(predicate, Every))
    for part in predicate.parts:
        true = join(true, _table(part, axes))
    return true


def _shadow(true: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Along one axis, where it is true of anybody."""
    return np.asarray(true.any(axis=tuple(other for other in range(true.ndim) if other != axis)))
