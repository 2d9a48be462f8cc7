"""Many marginals of one dense table at once, and their transpose: a few passes serve them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns

_SMALL = 2**12  # cells from which on it pays to sum in steps

Table = NDArray[np.float64]


def projected(table: Table, names: Columns, column_sets: Sequence[Columns]) -> dict[Columns, Table]:
    """The marginals of a table with these columns; axes stand in the table's order.

    The columns are cut into one block more than the largest set has columns, so that each set misses a block and can
    be taken from the table without it: k + 1 passes over the whole, then over ever smaller parts.
    """
    found: dict[Columns, Table] = {}
    for without, sets in _shared_out(table.size, names, column_sets):
        if not without:
            for columns in sets:
                found[columns] = np.asarray(table.sum(axis=_axes(names, set(names) - set(columns))))
        else:
            rest = tuple(name for name in names if name not in without)
            found |= projected(np.asarray(table.sum(axis=_axes(names, without))), rest, sets)
    return found


def spread(factors: Mapping[Columns, Table], names: Columns, sizes: Sequence[int]) -> Table:
    """The transpose: the table whose cell is the sum, over the column sets, of the factor's cell that holds it."""
    total = np.zeros(tuple(sizes))
    known = dict(zip(names, sizes, strict=True))
    for without, sets in _shared_out(total.size, names, list(factors)):
        rest = names if not without else tuple(name for name in names if name not in without)
        if without:
            part = spread({columns: factors[columns] for columns in sets}, rest, [known[name] for name in rest])
            total += np.expand_dims(part, _axes(names, without))
        else:
            for columns in sets:
                total += np.expand_dims(factors[columns], _axes(names, set(names) - set(columns)))
    return total


def _axes(names: Columns, chosen: set[str] | frozenset[str]) -> tuple[int, ...]:
    return tuple(axis for axis, name in enumerate(names) if name in chosen)


def _shared_out(
    cells: int, names: Columns, column_sets: Sequence[Columns]
) -> list[tuple[frozenset[str], list[Columns]]]:
    """Which sets are served without which columns; none, where they are served from the table itself."""
    widest = max(map(len, column_sets), default=0)
    if cells <= _SMALL or widest + 1 >= len(names) or len(column_sets) <= widest + 1:
        return [(frozenset(), list(column_sets))]
    blocks = [frozenset(names[start :: widest + 1]) for start in range(widest + 1)]
    served: dict[frozenset[str], list[Columns]] = {}
    for columns in column_sets:
        missed = next(block for block in blocks if not block & set(columns))
        served.setdefault(missed, []).append(columns)
    return list(served.items())
