"""What a synopsis says of columns that no released marginal holds together: the most even table that fits."""

from __future__ import annotations

from math import prod

import numpy as np

from tacit.domain.lattice import Table, Tables
from tacit.domain.query import Columns
from tacit.domain.schema import Schema

SWEEPS = 100
_CELLS = 10**8  # that are scaled in all sweeps together; a few seconds
_CLOSE = 1e-6  # of the total: near enough to every marginal


def completed(schema: Schema, columns: Columns, tables: Tables, total: float) -> Table:
    """The table of greatest entropy among those with the released marginals over some of these columns.

    By iterative proportional fitting, from the uniform table; columns that no marginal joins come out independent.
    An estimate, not a measurement: what the marginals do not say is taken to be as even as they allow.
    """
    sizes = schema.sizes(columns)
    if total <= 0:
        return np.zeros(sizes)
    goals = _within(columns, tables)
    table = np.full(sizes, total / prod(sizes))
    for _ in range(max(2, min(SWEEPS, _CELLS // (table.size * max(1, len(goals)))))):
        worst = 0.0
        for axes, goal in goals.items():
            rest = tuple(axis for axis in range(len(columns)) if axis not in axes)
            now = table.sum(axis=rest, keepdims=True)
            wanted = np.maximum(goal, 0).reshape(now.shape)
            worst = max(worst, float(np.abs(now - wanted).max()))
            table *= np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        if worst <= _CLOSE * total:
            break
    left = float(table.sum())
    return table * (total / left) if left > 0 else np.full(sizes, total / prod(sizes))


def _within(columns: Columns, tables: Tables) -> dict[tuple[int, ...], Table]:
    """The largest marginals over some of these columns, by their axes."""
    found: dict[frozenset[str], Columns] = {}
    for held in sorted(tables, key=lambda held: tables[held].size):
        found.setdefault(frozenset(held) & frozenset(columns), held)
    goals = {}
    for common, held in found.items():
        if common and not any(common < other for other in found):
            here = [name for name in held if name in common]
            table = tables[held].sum(axis=tuple(axis for axis, name in enumerate(held) if name not in common))
            axes = sorted(range(len(here)), key=lambda i: columns.index(here[i]))
            goals[tuple(columns.index(here[i]) for i in axes)] = table.transpose(axes)
    return goals
