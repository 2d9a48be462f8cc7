"""The least largest violation that a distribution over cells can have: by linear program, by multiplicative weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.mechanisms.distinct import Listed

_LOOK = 25  # steps from one look at the gap to the next
_NEAR = 1e-7  # of all people: a gap that is closed
_LONGER = 1.2  # than the last step, as long as no look ahead says otherwise

Vector = NDArray[np.float64]


class Weighed(Protocol):
    """Queries as a matrix: what they say of a distribution over cells, and the transpose."""

    def answers(self, table: Vector) -> Vector: ...

    def scores(self, prices: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class Found:
    """A distribution over cells, how far its farthest answer lies outside [low, high], and below what none can lie."""

    shares: Vector
    violation: float
    least: float


def scipy_or_refusal() -> tuple[Any, Any]:
    """scipy's optimisers and its sparse matrices."""
    try:
        from scipy import optimize, sparse  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidParameter(
            "a linear program needs the package scipy: pip install 'tacit[lp]'; or say solver='weights'. "
            "Nothing was spent."
        ) from None
    return optimize, sparse


def program(queries: Listed, low: Vector, high: Vector) -> Found:
    """min t where sum a = 1, s = A a, s - t <= low, s + t >= high, by HiGHS's dual simplex.

    The answers s stand for A once instead of twice, which is five times as fast as the program of Thm 6.7 as printed.
    The factor sum a that the book multiplies v by is 1 (E42). A vertex has at most as many cells as queries, and one.
    """
    optimize, sparse = scipy_or_refusal()
    k, m = queries.shape
    matrix = sparse.csr_matrix((queries.weight, (queries.query, queries.cell)), shape=(k, m))
    one, said, none = sparse.csr_matrix(np.ones((k, 1))), sparse.identity(k), sparse.csr_matrix((k, m))
    found = optimize.linprog(
        np.concatenate((np.zeros(m + k), [1.0])),
        A_ub=sparse.bmat([[none, said, -one], [none, -said, -one]]).tocsc(),
        b_ub=np.concatenate((low, -high)),
        A_eq=sparse.bmat([[matrix, -said, 0 * one], [np.ones((1, m)), None, None]]).tocsc(),
        b_eq=np.concatenate((np.zeros(k), [1.0])),
        bounds=np.array([(0, np.inf)] * m + [(-np.inf, np.inf)] * k + [(0, np.inf)]),
        method="highs-ds",
    )
    if found.status != 0:  # always feasible and bounded, so it is the solver that failed
        raise InvalidParameter("the linear program was not solved; say solver='weights'.")
    shares = np.maximum(found.x[:m], 0.0)
    shares /= shares.sum()
    return Found(shares, _violation(queries.answers(shares), low, high), float(found.fun))


def weights(queries: Weighed, start: Vector, low: Vector, high: Vector, steps: int) -> Found:
    """Multiplicative weights for both players, the cells and the queries with their signs: mirror-prox, averaged.

    Each step looks ahead, and then goes from where it stood by what it saw there (Nemirovski 2004); it is halved where
    the look ahead proves it too long. The mean y of the queries' player bounds the optimum from below, for
    y.A a >= min_i (A^T y)_i whatever a is.
    """
    k = len(low)

    def slopes(a: Vector, y: Vector) -> tuple[Vector, Vector]:
        said = queries.answers(a)
        return queries.scores(y[:k] - y[k:]), np.concatenate((said - low, high - said))

    logs_a, logs_y = np.log(start), np.zeros(2 * k)
    (a, norm_a), (y, norm_y) = _normal(logs_a), _normal(logs_y)
    cost, gain = slopes(a, y)
    mean_a, mean_y, passed, step = np.zeros_like(a), np.zeros_like(y), 0.0, 4.0
    best = Found(a, _violation(queries.answers(a), low, high), -1.0)
    for number in range(1, steps + 1):
        while True:
            ahead_a, ahead_y = _normal(logs_a - step * cost)[0], _normal(logs_y + step * gain)[0]
            ahead_cost, ahead_gain = slopes(ahead_a, ahead_y)
            (a, new_norm_a), (y, new_norm_y) = _normal(logs_a - step * ahead_cost), _normal(logs_y + step * ahead_gain)
            bent_a, bent_y = ahead_cost - cost, ahead_gain - gain
            turned = _dot(bent_a, ahead_a - a) - _dot(bent_y, ahead_y - y)
            # KL(p2 || p1) = <p2, logs2 - logs1> - (norm2 - norm1); the norms of the two parts of the way add up
            way = _dot(gain, ahead_y) + _dot(bent_y, y) - _dot(cost, ahead_a) - _dot(bent_a, a)
            moved = step * way - (new_norm_a - norm_a) - (new_norm_y - norm_y)
            if step * turned <= moved + 1e-12:
                break
            step /= 2
        logs_a, logs_y = logs_a - step * ahead_cost, logs_y + step * ahead_gain
        norm_a, norm_y = new_norm_a, new_norm_y
        cost, gain = slopes(a, y)
        mean_a, mean_y, passed = mean_a + step * ahead_a, mean_y + step * ahead_y, passed + step
        step *= _LONGER
        if number % _LOOK == 0 or number == steps:
            shares, prices = mean_a / passed, mean_y / passed
            bound = float(
                queries.scores(prices[:k] - prices[k:]).min() - _dot(prices[:k], low) + _dot(prices[k:], high)
            )
            reached = _violation(queries.answers(shares), low, high)
            nearer = reached < best.violation
            best = Found(
                shares if nearer else best.shares, reached if nearer else best.violation, max(best.least, bound)
            )
            if best.violation - max(best.least, 0.0) <= _NEAR:
                break
    return best


def _normal(logs: Vector) -> tuple[Vector, float]:
    """The distribution with these logarithms, and the logarithm of what they were divided by."""
    most = float(logs.max())
    masses = np.exp(logs - most)
    mass = float(masses.sum())
    return np.asarray(masses / mass), most + float(np.log(mass))


def _dot(one: Vector, other: Vector) -> float:
    return float((one * other).sum())  # not by BLAS, whose threads wait for each other on vectors this small


def _violation(said: Vector, low: Vector, high: Vector) -> float:
    return max(float(np.maximum(said - low, high - said).max()), 0.0)
