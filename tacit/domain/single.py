"""One answer of a workload, as a query of its own: what an update rule is given (Def. 5.3)."""

from __future__ import annotations

from math import prod

import numpy as np

from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.query import Conjunctions, Counting, Linear, LinearQuery, Marginal, Query
from tacit.domain.workload import Workload
from tacit.errors import InvalidQuery
from tacit.rational import whole


def single(query: Query, index: int) -> LinearQuery:
    """The query whose only answer is the index-th of these; a counting query wherever it can be one.

    >>> from tacit.domain.schema import Categories, Schema
    >>> from tacit.domain.workload import marginals
    >>> schema = Schema([Categories("sex", ("F", "M")), Categories("vote", ("no", "yes"))])
    >>> print(single(marginals(schema, 2), 2))
    Counting(sex: 1; vote: 0)
    """
    place = whole(index, "the place of an answer", 0, query.size - 1, InvalidQuery)
    if isinstance(query, Workload):
        part = int(np.searchsorted(query.offsets, place, side="right")) - 1
        return single(query.queries[part], place - int(query.offsets[part]))
    if not isinstance(query, LinearQuery):
        raise InvalidQuery(f"{query} is no weighted count of people. Nothing was spent.")
    if isinstance(query, Marginal | Conjunctions):
        return _cell(query, np.unravel_index(place, query.sizes) if query.sizes else ())
    if isinstance(query, Prefixes):
        return Counting(query.columns, query.sizes, (range(place + 1),))
    if isinstance(query, Ranges):
        first, last = query.ends
        group, interval = divmod(place, first.size)
        by = np.unravel_index(group, query.sizes[:-1]) if prod(query.sizes[:-1]) > 1 else (0,) * len(query.sizes[:-1])
        ends = range(int(first[interval]), int(last[interval]) + 1)
        return Counting(query.columns, query.sizes, (*[(int(cell),) for cell in by], ends))
    if query.size == 1:
        return query
    weights = query.weights()[place]
    if int(weights.min()) < 0:
        raise InvalidQuery(
            f"one answer of {query} has weights below zero, and a linear query has none (Section 4.1). "
            "Nothing was spent."
        )
    return Linear(query.columns, query.sizes, weights, query.grid)


def _cell(query: LinearQuery, cells: tuple[np.intp, ...] | tuple[()]) -> Counting:
    return Counting(query.columns, query.sizes, tuple((int(cell),) for cell in cells))
