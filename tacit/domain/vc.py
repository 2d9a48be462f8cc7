"""How many rows are enough for many queries: the sampling lemma, shattering, VC-dimension (Sections 4.1 and 4.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, exp, floor, log

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import LinearQuery, Query
from tacit.domain.schema import Schema
from tacit.domain.single import single
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, InvalidQuery, quoted
from tacit.rational import Number, exact, whole

MOST_WORK = 2 * 10**9  # sets tried times classes
MOST_BITS = 10**9  # of a class of queries written out


def sampling_lemma(queries: int, rows: int, alpha: Number) -> float:
    """With what chance at most so many rows, drawn at random, err by more than a share alpha on some query.

    2|Q| exp(-2 m alpha^2), the union bound of Lemma 4.3, for queries that weigh every person between 0 and 1.
    """
    q, m = _queries(queries), whole(rows, "the number of rows", 1, 10**18)
    return min(1.0, 2 * q * exp(-2 * m * _share(alpha) ** 2))


def subsample_size(queries: int, alpha: Number, beta: Number = 1) -> int:
    """The least m with 2|Q| exp(-2 m alpha^2) < beta: so many random rows of a table are enough, but for beta.

    With beta = 1 some choice of m rows is within alpha of the table on all queries: about half of the book's (E24b).

    >>> subsample_size(1000, 0.1), book_subsample_size(1000, 0.1), subsample_size(1000, 0.1, 0.05)
    (381, 691, 530)
    """
    failed = exact(beta, "beta")
    if not 0 < failed <= 1:
        raise InvalidParameter(f"beta must lie above 0 and not above 1, not {quoted(beta)}. Nothing was spent.")
    return floor((log(2 * _queries(queries)) - log(failed)) / (2 * _share(alpha) ** 2)) + 1


def book_subsample_size(queries: int, alpha: Number) -> int:
    """Thm 4.2: ln|Q| / alpha^2, rounded up; it needs three queries or more (E24b)."""
    q = _queries(queries)
    if q < 3:
        raise InvalidParameter(
            f"ln|Q| / alpha^2 rows are enough for three queries or more, not for {q} (E24b); use subsample_size. "
            "Nothing was spent."
        )
    return ceil(log(q) / _share(alpha) ** 2)


def vc_subsample_size(dimension: int, points: int, alpha: Number, *, exactly: bool = True) -> int:
    """So many rows stand for any table of at most so many distinct ones, on every counting query of the class.

    On n points a class of VC-dimension d has at most `sauer(d, n)` patterns; they take the place of |Q| (E24). The
    book's O(d / alpha^2) leaves its constant open; `exactly=False` bounds the patterns by (en/d)^d.
    """
    d, n = _dimension(dimension), whole(points, "the number of points", 1, 10**18)
    if exactly or d == 0 or n < d:
        return floor(log(2 * sauer(d, n)) / (2 * _share(alpha) ** 2)) + 1
    return floor((log(2) + d * (1 + log(n / d))) / (2 * _share(alpha) ** 2)) + 1


def sauer(dimension: int, points: int) -> int:
    """Sauer's bound on the patterns that a class of this VC-dimension makes on so many points: sum_{i<=d} C(n, i)."""
    n = whole(points, "the number of points", 0, 10**18)
    return sum(comb(n, i) for i in range(min(_dimension(dimension), n) + 1))


def classes(queries: Query, schema: Schema) -> NDArray[np.bool_]:
    """Which cells of the universe each counting query counts: a row for each different one.

    >>> from tacit.domain.interval import Ranges
    >>> from tacit.domain.schema import Integers
    >>> schema = Schema([Integers("age", 0, 5)])
    >>> intervals = classes(Ranges.over(schema, "age"), schema)
    >>> len(intervals), vc_dimension(intervals)
    (21, 2)
    """
    queries.check(schema)
    if queries.size * schema.universe > MOST_BITS:
        raise InvalidParameter(
            f"{queries.size} queries over {schema.universe} cells are more than the {MOST_BITS} bits that are written "
            "out. Nothing was spent."
        )
    cells = np.unravel_index(np.arange(schema.universe), schema.sizes(schema.names))
    rows = []
    for part in queries.queries if isinstance(queries, Workload) else (queries,):
        if not isinstance(part, LinearQuery):
            raise InvalidQuery(f"{part} is no counting query, so it shatters nothing (E24). Nothing was spent.")
        axes = [cells[schema.names.index(name)] for name in part.columns]
        place = np.ravel_multi_index(axes, part.sizes) if axes else np.zeros(schema.universe, np.int64)
        for i in range(part.size):
            one = single(part, i)
            weights = one.weights()[0]
            if not bool(np.all((weights == 0) | (weights * one.grid == 1))):
                raise InvalidQuery(
                    f"{part} weighs people by other numbers than 0 and 1; shattering is of counting queries, and "
                    "weights need the fat-shattering dimension (E24). Nothing was spent."
                )
            rows.append(weights[place] > 0)
    return np.unique(np.array(rows), axis=0)


def shatters(classes: NDArray[np.bool_], points: Sequence[int]) -> bool:
    """Whether the classes pick every subset of the points (Def. 4.1)."""
    chosen = list(points)
    if len(chosen) > 62:
        return False
    picked = classes[:, chosen].astype(np.int64) @ (1 << np.arange(len(chosen), dtype=np.int64))
    return bool(np.unique(picked).size == 2 ** len(chosen))


def vc_dimension(classes: NDArray[np.bool_]) -> int:
    """The size of the largest set of points that is shattered (Def. 4.2), by trying all of them that might be.

    Every subset of a shattered set is shattered, so only shattered sets are enlarged; and 2^d patterns need as many
    classes, so d is at most log2|Q| (Lemma 4.7, E25c). A search that would be too long is refused, not cut short.
    """
    table = np.asarray(classes)
    if table.ndim != 2 or table.dtype != np.bool_ or not table.size:
        raise InvalidParameter("classes are rows of truths, one a query, at least one. Nothing was spent.")
    table = np.unique(table, axis=0)
    count, points = table.shape
    work, dimension = 0, 0
    shattered: list[tuple[tuple[int, ...], NDArray[np.int64]]] = [((), np.zeros(count, np.int64))]
    while shattered and 2 ** (dimension + 1) <= count:
        larger = []
        for chosen, picked in shattered:
            for point in range(chosen[-1] + 1 if chosen else 0, points):
                work += count
                if work > MOST_WORK:
                    raise InvalidParameter(
                        f"the VC-dimension of {count} classes over {points} points is at least {dimension}; to find it "
                        f"takes more than the {MOST_WORK} steps of a search. Nothing was spent."
                    )
                together = 2 * picked + table[:, point]
                if np.count_nonzero(np.bincount(together, minlength=2)) == 2 ** (len(chosen) + 1):
                    larger.append(((*chosen, point), together))
        if not larger:
            break
        shattered, dimension = larger, dimension + 1
    return dimension


def log_multisets(universe: int, rows: int) -> float:
    """ln C(|X| + m - 1, m): how many small databases there are.

    >>> round(log_multisets(4, 12), 6) == round(log(455), 6)
    True
    """
    return float(log_multisets_upto(universe, rows)[-1]) if rows < universe else _log_choices(universe, rows)


def log_multisets_upto(universe: int, most: int) -> NDArray[np.float64]:
    """The same for 1, 2, ... `most` rows."""
    i = np.arange(1, whole(most, "the number of rows", 1, 10**8) + 1, dtype=np.float64)
    if universe == 1:
        return np.zeros(most)
    # (|X| - 1 + i) / i; logarithms, for a universe may have more cells than a float can be large
    return np.cumsum(np.logaddexp(log(universe - 1), np.log(i)) - np.log(i))


def _log_choices(universe: int, rows: int) -> float:
    i = np.arange(1, universe, dtype=np.float64)
    return float(np.log1p(rows / i).sum())


def _queries(queries: int) -> int:
    return whole(queries, "the number of queries", 1, 10**18)


def _dimension(dimension: int) -> int:
    return whole(dimension, "a VC-dimension", 0, 1000)


def _share(alpha: Number) -> float:
    share = exact(alpha, "alpha")
    if not 0 < share < 1:
        raise InvalidParameter(
            f"alpha is a share of the people, strictly between 0 and 1, not {quoted(alpha)}. Nothing was spent."
        )
    return float(share)
