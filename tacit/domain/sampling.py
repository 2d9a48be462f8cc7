"""Synthetic rows whose marginals are close to released ones; from public tables alone, so a seed does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.lattice import Table, Tables
from tacit.domain.schema import Schema

Codes: TypeAlias = list[NDArray[np.int64]]  # one array a column

SWEEPS = 12
_COOLING = 0.8  # of the share of surplus rows that move, from sweep to sweep
_COPIED = 0.7  # of the rows that move become a copy of one that is where they should be; the rest change only there


def sampled(schema: Schema, tables: Tables, rows: int, rng: np.random.Generator) -> Codes:
    """Rows that follow a tree of the strongest pairs (Chow & Liu 1968), then move towards every marginal.

    A row in a cell with too many rows moves to a cell with too few (as in PrivSyn, Zhang et al. 2021), mostly by
    becoming a copy of a row there, so that it fits the other marginals as well.
    """
    codes = _tree(schema, tables, rows, rng)
    names = schema.names
    goals = [
        (tuple(names.index(name) for name in columns), np.maximum(table, 0).reshape(-1) * (rows / total))
        for columns, table in tables.items()
        if (total := float(np.maximum(table, 0).sum())) > 0
    ]
    for sweep in range(SWEEPS if rows else 0):
        for place in rng.permutation(len(goals)):
            axes, goal = goals[place]
            _move(codes, axes, tuple(schema[names[axis]].size for axis in axes), goal, _COOLING**sweep, rng)
    return codes


def fused(codes: Codes, axes: tuple[int, ...], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The cell of each row among these columns."""
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    for axis, size in zip(axes, sizes, strict=True):
        cell *= size
        cell += codes[axis]
    return cell


def _move(
    codes: Codes,
    axes: tuple[int, ...],
    sizes: tuple[int, ...],
    goal: NDArray[np.float64],
    share: float,
    rng: np.random.Generator,
) -> None:
    cell = fused(codes, axes, sizes)
    count = np.bincount(cell, minlength=len(goal))
    leaving = share * np.maximum(count - goal, 0) / np.maximum(count, 1)
    movers = rng.permutation(np.flatnonzero(rng.random(len(cell)) < leaving[cell]))
    lacking = np.cumsum(np.maximum(goal - count, 0))
    if not len(movers) or lacking[-1] <= 0:
        return
    # evenly spaced points on the line of what is lacking, so that the counts are as wanted and not only on average
    points = (np.arange(len(movers)) + rng.random()) * (lacking[-1] / len(movers))
    target = np.minimum(np.searchsorted(lacking, points, side="right"), len(goal) - 1)
    copies = (count[target] > 0) & (rng.random(len(movers)) < _COPIED)
    if copies.any():
        order, wanted = np.argsort(cell, kind="stable"), target[copies]
        starts = np.cumsum(count) - count
        model = order[starts[wanted] + (rng.random(len(wanted)) * count[wanted]).astype(np.int64)]
        for code in codes:
            code[movers[copies]] = code[model]
    rest, target = movers[~copies], target[~copies]
    for axis, values in zip(axes, np.unravel_index(target, sizes), strict=True):
        codes[axis][rest] = values


def _tree(schema: Schema, tables: Tables, rows: int, rng: np.random.Generator) -> Codes:
    """Rows drawn along a spanning tree of greatest mutual information, with counts rounded and not drawn."""
    names, codes = schema.names, [np.zeros(rows, dtype=np.int64) for _ in schema.names]
    pairs = dict(_pairs(schema, tables))
    strength = {pair: _information(table) for pair, table in pairs.items()}
    alone = {name: table for columns, table in tables.items() for name, table in _singles(columns, table)}
    done: list[str] = []
    while len(done) < len(names):
        edges = [pair for pair in strength if pair[0] in done and pair[1] not in done]
        if edges:
            parent, child = max(edges, key=lambda pair: strength[pair])
            order = np.lexsort((rng.random(rows), codes[names.index(parent)]))
            groups = np.bincount(codes[names.index(parent)], minlength=schema[parent].size)
            counts = _rounded(pairs[parent, child], groups)
            codes[names.index(child)][order] = np.repeat(
                np.tile(np.arange(counts.shape[1]), len(counts)), counts.reshape(-1)
            )
            done.append(child)
            continue
        first = next(name for name in names if name not in done)
        even = np.ones(schema[first].size)
        counts = _rounded(alone.get(first, even)[None], np.array([rows]))
        codes[names.index(first)][:] = rng.permutation(np.repeat(np.arange(counts.shape[1]), counts[0]))
        done.append(first)
    return codes


def _pairs(schema: Schema, tables: Tables) -> Iterator[tuple[tuple[str, str], Table]]:
    for columns, table in tables.items():
        for i, one in enumerate(columns):
            for j, other in enumerate(columns[i + 1 :], i + 1):
                both = np.maximum(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in (i, j))), 0)
                yield (one, other), both
                yield (other, one), both.T


def _singles(columns: tuple[str, ...], table: Table) -> Iterator[tuple[str, Table]]:
    for i, name in enumerate(columns):
        yield name, np.maximum(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != i)), 0)


def _information(table: Table) -> float:
    """The mutual information of two columns."""
    total = table.sum()
    if total <= 0:
        return 0.0
    joint = table / total
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    held = joint > 0
    return float(np.sum(joint[held] * np.log(joint[held] / apart[held])))


def _rounded(shares: Table, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers in proportion to each row of shares that add up to its total: the largest remainders go up."""
    sums = shares.sum(axis=1, keepdims=True)
    exact = np.where(sums > 0, shares / np.where(sums > 0, sums, 1), 1 / shares.shape[1]) * totals[:, None]
    down = np.floor(exact).astype(np.int64)
    missing = totals - down.sum(axis=1)
    rank = np.argsort(np.argsort(down - exact, axis=1, kind="stable"), axis=1)
    return np.asarray(down + (rank < missing[:, None]))
