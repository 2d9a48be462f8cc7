"""Consistency: noisy marginals that overlap are made to agree, and to be non-negative; free, for all is released.

Post-processing costs nothing (Prop. 2.1). Nothing here has seen more than what was released.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt

import numpy as np

from tacit.domain.lattice import TOLERANCE, Lattice, Table, Tables
from tacit.domain.query import Columns

STEPS = 25  # of the gradient; the error falls no further after twenty
ANCHORED, SWEEPS = 5, 1000  # of the fit: towards the projection's marginals, then towards each other's
RELAXED = 1.5  # exponent of a correction: half as many sweeps as with 1


def consistent(
    tables: Tables, *, variances: Mapping[Columns, float] | None = None, total: float | None = None
) -> dict[Columns, Table]:
    """The nearest marginals that agree wherever they overlap: generalised least squares.

    Accuracy: of all linear unbiased estimates, the least variance in every cell, if each table has independent noise
    of its own variance (Gauss-Markov). In closed form: the part u_T of each column set T (`domain.residual`) is the
    mean of what the tables above T say of it, by inverse variance, for a table M says it with n(M - T) times its own.
    A `total` that is known beforehand is kept exactly.
    """
    lattice = Lattice(tables, variances)
    flat = lattice.packed(tables)
    lattice.agree(flat, total)
    return lattice.unpacked(flat)


def nonnegative(tables: Tables) -> dict[Columns, Table]:
    """Non-negative marginals that still agree, with the same total, from marginals that agree.

    First the Euclidean projection on the consistent non-negative tables, by accelerated gradients on its dual: to
    raise negative cells by lambda, and what must follow for the tables to agree. What is left of negative cells
    is cut off, and the tables are scaled, sub-marginal by sub-marginal, until they agree again to a millionth of the
    total: alternating projections in relative entropy, over-relaxed, which leave no cell negative.
    Accuracy: projecting on a convex set that holds the truth moves no further from it (in the sum of squares); the
    rest is measured (docs/marginals.md).
    """
    lattice = Lattice(tables)
    given = lattice.packed(tables)
    total = float(next(iter(tables.values())).sum())
    if given.min() >= -1e-12 * float(np.abs(given).max()):  # below zero by rounding alone
        return lattice.unpacked(np.maximum(given, 0))
    if total <= 0:
        return lattice.unpacked(np.zeros_like(given))
    near = _projected(lattice, given)
    flat = _fitted(lattice, near, total)
    if lattice.discrepancy(flat) > TOLERANCE * total:
        flat = _mixed(lattice, flat, total)
    return lattice.unpacked(flat)


def discrepancy(tables: Tables) -> float:
    """The largest difference between what two tables say of one cell that they share."""
    lattice = Lattice(tables)
    return lattice.discrepancy(lattice.packed(tables))


def _projected(lattice: Lattice, given: Table) -> Table:
    """Towards min |x - given|^2 over x >= 0 that agree: x = given + K lambda, lambda >= 0, with K = `agree` at total 0.

    K is an orthogonal projection, so steps of length one descend; restarted where the momentum points uphill
    (O'Donoghue & Candes 2015).
    """
    raised = ahead = np.zeros_like(given)
    near, pace = given, 1.0
    for _ in range(STEPS):
        new = np.maximum(ahead - near, 0)
        following = (1 + sqrt(1 + 4 * pace * pace)) / 2
        if np.dot(ahead - new, new - raised) > 0:
            following, ahead = 1.0, new
        else:
            ahead = new + (pace - 1) / following * (new - raised)
        raised, pace = new, following
        near = ahead.copy()
        lattice.agree(near, total=0.0)
        near += given
    return near


def _fitted(lattice: Lattice, near: Table, total: float) -> Table:
    """Scales what is not negative until all sub-marginals agree: at first with those of the projection."""
    tiny = 1e-200
    anchors = {
        columns: np.maximum(lattice.views(near)[sides[0].table].sum(axis=sides[0].rest).reshape(-1), 0)
        for columns, sides in lattice.links
    }
    floor = np.repeat([1e-9 * total / prod(shape) for shape in lattice.shapes], np.diff(lattice.offsets))
    flat: Table = np.maximum(near, 0) + floor  # no cell is cut off for ever
    views = lattice.views(flat)
    for sweep in range(SWEEPS):
        worst = 0.0
        for columns, sides in lattice.links:
            sums = np.stack([views[side.table].sum(axis=side.rest).reshape(-1) for side in sides])
            sums = np.maximum(sums, tiny)
            weights = np.array([side.weight for side in sides])
            # the nearest common sub-marginal in relative entropy is the geometric mean
            goal = np.exp(weights @ np.log(sums)) if sweep >= ANCHORED else np.maximum(anchors[columns], tiny)
            goal *= total / goal.sum()
            worst = max(worst, float(np.abs(sums - goal).max()))
            scales = np.clip(goal / sums, 1e-6, 1e6) ** (RELAXED if sweep >= ANCHORED else 1.0)
            for side, scale in zip(sides, scales, strict=True):
                views[side.table] *= scale.reshape(side.shape)
        if sweep >= ANCHORED and worst <= TOLERANCE * total / 4:
            break
    return flat


def _mixed(lattice: Lattice, flat: Table, total: float) -> Table:
    """The last resort: agree exactly, and mix with the uniform table as far as the most negative cell needs it."""
    lattice.agree(flat, total)
    uniform = np.repeat([total / prod(shape) for shape in lattice.shapes], np.diff(lattice.offsets))
    below = np.maximum(-flat, 0)
    share = float((below / (uniform + below)).max())
    return np.asarray(np.maximum((1 - share) * flat + share * uniform, 0))
