"""What a condition on one column means, as a set of its cells, and how such a set is written again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from tacit.domain.cellset import CellSet
from tacit.domain.dates import Dates, day_of, number_of
from tacit.domain.parser import Condition, Constant
from tacit.domain.schema import Categories, Column, Integers, Numbers, written
from tacit.domain.token import is_bare
from tacit.errors import InvalidQuery, quoted

Refusal: TypeAlias = Callable[[int, str], InvalidQuery]  # where in the text, and why


def chosen(column: Column, condition: Condition, refuse: Refusal) -> CellSet:
    """The cells that satisfy it; refused where a cell would have to be looked into."""
    if condition.relation in ("missing", "outside"):
        cells = _apart(column, condition, refuse)
        cells = cells.opposite if condition.negated else cells
    else:
        cells = _compared(column, condition, refuse)
        if condition.negated:  # still a comparison: of the declared domain only
            cells = cells.opposite.cut(column.domain_size)
    return cells.opposite if condition.opposite else cells


def _apart(column: Column, condition: Condition, refuse: Refusal) -> CellSet:
    """The cell for what is missing, or for what is outside."""
    kind = condition.relation
    cell = column.missing_cell if kind == "missing" else column.outside_cell
    if cell is None:
        place = column.missing if kind == "missing" else column.outside
        raise refuse(
            condition.at,
            f"column {quoted(column.name)} has no cell for what is {kind} ({kind} = {place}), so no counted row is",
        )
    return CellSet.run(column.size, cell, cell + 1)


def _compared(column: Column, condition: Condition, refuse: Refusal) -> CellSet:
    if isinstance(column, Categories):
        return _category(column, condition, refuse)
    if isinstance(column, Integers):
        return _integer(column, condition, refuse)
    if isinstance(column, Numbers):
        return _number(column, condition, refuse)
    if isinstance(column, Dates):
        return _date(column, condition, refuse)
    raise refuse(condition.at, f"column {quoted(column.name)} takes no comparisons")


def _category(column: Categories, condition: Condition, refuse: Refusal) -> CellSet:
    if condition.relation not in ("=", "in"):
        raise refuse(
            condition.at, f"the categories of {quoted(column.name)} have no order; compare them with =, != or in"
        )
    for constant in condition.constants:
        if type(constant.value) is not column.kind:
            kind = {str: "texts in quotes", int: "whole numbers", bool: "true and false"}[column.kind]
            raise refuse(constant.at, f"the categories of {quoted(column.name)} are {kind}")
    # a category that was not declared has no cell, and is nobody's
    located = (column.locate(constant.value) for constant in condition.constants)
    return CellSet.of(column.size, (cell for cell in located if cell is not None))


def _integer(column: Integers, condition: Condition, refuse: Refusal) -> CellSet:
    def cell(constant: Constant) -> int:
        if type(constant.value) is not int:
            raise refuse(constant.at, f"column {quoted(column.name)} holds whole numbers; write one, without a point")
        return constant.value - column.low

    size, last = column.domain_size, cell(condition.constants[-1])
    if condition.relation == "in":
        cells = (cell(constant) for constant in condition.constants)
        return CellSet.of(column.size, (c for c in cells if 0 <= c < size))
    start, stop = {
        "=": (last, last + 1),
        "<": (0, last),
        "<=": (0, last + 1),
        ">": (last + 1, size),
        ">=": (last, size),
        "between": (cell(condition.constants[0]), last + 1),
    }[condition.relation]
    return CellSet.run(column.size, start, min(stop, size))


def _number(column: Numbers, condition: Condition, refuse: Refusal) -> CellSet:
    """Only whole cells can be counted, so an end must be a public edge, on the side to which the edge belongs."""
    name, edges, size = column.name, column.edges, column.domain_size

    def exact(edge: float) -> Fraction:
        return Fraction(written(edge))  # the decimal that the contract says

    def place(constant: Constant) -> tuple[Fraction, int]:
        if isinstance(constant.value, str | bool):
            raise refuse(constant.at, f"column {quoted(name)} holds numbers")
        value = Fraction(constant.value)
        return value, bisect_left(edges, value, key=exact)

    def inside(constant: Constant, near: int, why: str) -> InvalidQuery:
        low, high = edges[max(near - 1, 0)], edges[min(near + (near == 0), size)]
        return refuse(
            constant.at,
            f"column {quoted(name)} is counted in whole cells, each with its lower edge and without its upper one "
            f"(the last with both), and {why}; the nearest edges are {written(low)} and {written(high)}",
        )

    def below(constant: Constant) -> int:
        """How many cells lie below it, itself left out."""
        value, near = place(constant)
        if near > size:
            return size
        if value != exact(edges[near]) and near > 0:
            raise inside(constant, near, "this lies within one")
        if near == size:
            raise inside(constant, near, "this upper end belongs to the last; write <= or >")
        return near

    def upto(constant: Constant) -> int:
        """How many cells lie below it, itself taken in."""
        value, near = place(constant)
        if near >= size and value >= exact(edges[size]):
            return size
        if value >= exact(edges[0]):
            on = value == exact(edges[near])
            raise inside(constant, near, "this begins one; write < or >=" if on else "this lies within one")
        return 0

    def equal(constant: Constant) -> None:
        value, near = place(constant)
        if exact(edges[0]) <= value <= exact(edges[size]):
            raise inside(constant, near, "one number is only a part of a cell; ask for a range between edges")

    first, last = condition.constants[0], condition.constants[-1]
    if condition.relation in ("=", "in"):
        for constant in condition.constants:
            equal(constant)
        return CellSet.run(column.size, 0, 0)
    if condition.relation in ("<", "<="):
        return CellSet.run(column.size, 0, below(last) if condition.relation == "<" else upto(last))
    if condition.relation in (">", ">="):
        return CellSet.run(column.size, below(last) if condition.relation == ">=" else upto(last), size)
    return CellSet.run(column.size, below(first), upto(last))


def _date(column: Dates, condition: Condition, refuse: Refusal) -> CellSet:
    """A day, or a period by its label, stands for its days; their ends must be ends of cells."""
    starts, labels = column.starts, column.domain
    cells = dict(zip(labels, range(len(labels)), strict=True))

    def days(constant: Constant) -> tuple[int, int]:
        """The first of them, and the one after the last."""
        if isinstance(constant.value, str):
            if (cell := cells.get(constant.value)) is not None:
                return starts[cell], starts[cell + 1]
            if (day := day_of(constant.value)) is not None:
                return number_of(day), number_of(day) + 1
        like = f"'2024-12-31', or a {column.by} like {_constant(labels[0])}" if column.by != "day" else "'2024-12-31'"
        raise refuse(constant.at, f"column {quoted(column.name)} holds days; write one in quotes, like {like}")

    def edge(day: int, constant: Constant) -> int:
        """How many cells lie before it."""
        near = min(bisect_left(starts, day), column.domain_size)
        if starts[0] < day < starts[-1] and starts[near] != day:
            within = _constant(labels[near - 1])
            raise refuse(
                constant.at,
                f"column {quoted(column.name)} is counted in whole {column.by}s, and this parts {within}; "
                f"name the {column.by}, or days where one begins or ends",
            )
        return near

    spans = [(*days(constant), constant) for constant in condition.constants]
    if condition.relation in ("=", "in"):
        chosen = [cell for first, end, at in spans for cell in range(edge(first, at), edge(end, at))]
        return CellSet.of(column.size, chosen)
    (first, _, start), (last, end, stop) = spans[0], spans[-1]
    if condition.relation in ("<", "<="):
        return CellSet.run(column.size, 0, edge(last if condition.relation == "<" else end, stop))
    if condition.relation in (">", ">="):
        return CellSet.run(column.size, edge(last if condition.relation == ">=" else end, stop), column.domain_size)
    return CellSet.run(column.size, edge(first, start), edge(end, stop))


def worded(column: Column, cells: CellSet) -> str:
    """Words that `chosen` reads as these cells; neither all of them nor none."""
    name, size = _named(column.name), column.domain_size
    apart = {"missing": column.missing_cell, "outside": column.outside_cell}
    inside = {kind: cell in cells for kind, cell in apart.items() if cell is not None}
    declared = CellSet(size, cells.cut(size).ends)
    if declared.full:
        return " and ".join(f"{name} is not {kind}" for kind, is_in in inside.items() if not is_in)
    parts = [] if not declared.ends else [_declared(column, name, declared)]
    return " or ".join(parts + [f"{name} is {kind}" for kind, is_in in inside.items() if is_in])


def _named(name: str) -> str:
    return name if is_bare(name) else f"[{name.replace(']', ']]')}]"


def _constant(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _declared(column: Column, name: str, cells: CellSet) -> str:
    if isinstance(column, Numbers):
        return " or ".join(_between_edges(column, name, *run) for run in cells.runs)
    if isinstance(column, Categories):
        few = min(cells, cells.opposite, key=len)
        members = [_constant(column.values[cell]) for start, stop in few.runs for cell in range(start, stop)]
        return _listed(name, members, few is not cells)
    low, labels = column.low if isinstance(column, Integers) else 0, column.domain if isinstance(column, Dates) else ()

    def said(cell: int) -> str:
        return _constant(labels[cell] if labels else low + cell)

    gaps = cells.opposite.runs
    if len(gaps) < len(cells.runs) and all(stop - start == 1 for start, stop in gaps):
        return _listed(name, [said(start) for start, _ in gaps], negated=True)
    single = [said(start) for start, stop in cells.runs if stop - start == 1]
    parts = [_interval(name, said, cells.size, *run) for run in cells.runs if run[1] - run[0] > 1]
    return " or ".join(parts + ([_listed(name, single, negated=False)] if single else []))


def _listed(name: str, members: list[str], negated: bool) -> str:
    if len(members) == 1:
        return f"{name} {'!=' if negated else '='} {members[0]}"
    return f"{name} {'not ' if negated else ''}in ({', '.join(members)})"


def _interval(name: str, said: Callable[[int], str], size: int, start: int, stop: int) -> str:
    if start == 0:
        return f"{name} <= {said(stop - 1)}"
    return f"{name} >= {said(start)}" if stop == size else f"{name} between {said(start)} and {said(stop - 1)}"


def _between_edges(column: Numbers, name: str, start: int, stop: int) -> str:
    low, high = written(column.edges[start]), written(column.edges[stop])
    if start == 0:
        return f"{name} < {high}"
    return f"{name} >= {low}" if stop == column.domain_size else f"{low} <= {name} < {high}"
