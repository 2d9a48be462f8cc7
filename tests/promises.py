"""What a Loss promises, asked of the exact laws on neighbouring answers: log-ratios, Renyi divergences, deltas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tacit.privacy.budget import Loss

ORDERS = (1.1, 2.0, 5.0, 20.0, 100.0)
ROUNDING = 1e-9
Law = NDArray[np.float64]  # logarithms of probabilities: a row for each pair of neighbours, a column for each outcome


def furthest(p: Law, q: Law) -> float:
    """The largest log-ratio of any pair and outcome, in either direction."""
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(p - q)))  # both impossible: no outcome


def renyi(p: Law, q: Law, order: float) -> float:
    """The largest Renyi divergence of any pair, in either direction."""
    with np.errstate(invalid="ignore"):
        terms = [np.nan_to_num(order * a - (order - 1) * b, nan=-np.inf, posinf=np.inf) for a, b in ((p, q), (q, p))]
    return float(max(logsumexp(term, axis=-1).max() for term in terms)) / (order - 1)


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """The largest delta(epsilon) of any pair, in either direction."""
    p, q = np.exp(p), np.exp(q)
    return float(max(np.maximum(a - np.exp(epsilon) * b, 0).sum(axis=-1).max() for a, b in ((p, q), (q, p))))


def breaches(p: Law, q: Law, loss: Loss) -> list[str]:
    """What these pairs of laws break of a promise."""
    p, q = np.atleast_2d(p), np.atleast_2d(q)
    found = []
    if loss.epsilon is not None:
        epsilon = float(loss.epsilon)
        if furthest(p, q) > epsilon + ROUNDING:
            found.append(f"log-ratio {furthest(p, q):.6f} > {epsilon}")
        if hockey_stick(p, q, epsilon) > ROUNDING:
            found.append(f"delta {hockey_stick(p, q, epsilon):.3g} > 0")
    assert loss.rho is not None
    rho = float(loss.rho)
    for order in ORDERS:
        if renyi(p, q, order) > order * rho * (1 + ROUNDING) + ROUNDING / 1000:
            found.append(f"D_{order} {renyi(p, q, order):.6f} > {order * rho}")
    for epsilon in (rho + k * rho**0.5 for k in (0.5, 1, 2, 4)):
        if hockey_stick(p, q, epsilon) > np.exp(-((epsilon - rho) ** 2) / (4 * rho)):  # Bun & Steinke 2016, Prop. 1.3
            found.append(f"delta({epsilon:.3f})")
    return found
