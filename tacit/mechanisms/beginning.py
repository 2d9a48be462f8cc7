"""What a session begins with: marginals that were bought, and the most even table that has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.domain.factored import Factored
from tacit.domain.schema import Schema
from tacit.domain.weights import Weights
from tacit.domain.workload import marginals
from tacit.mechanisms.fit import Measured, fitted
from tacit.mechanisms.mwem import measure
from tacit.mechanisms.updates import Distribution, MultiplicativeWeights
from tacit.privacy.budget import Budget

_FITTED = 60  # steps of the fit


def bought(curator: Curator, budget: Budget, ways: int) -> list[Measured]:
    """The marginals of one column each, and with two ways those of two as well, for all of the budget."""
    if not ways:
        return []
    schema = curator.schema
    one = measure(curator, marginals(schema, 1), budget if ways == 1 else budget * Fraction(1, 10))
    return one if ways == 1 else one + measure(curator, marginals(schema, 2), budget * Fraction(9, 10))


def beginning(schema: Schema, people: float, known: Sequence[Measured]) -> Distribution:
    """The columns independent and as measured, or in pairs as measured and else as random.

    The pairs are fitted, not exactly: what is left is less than the questions of a session can tell.
    """
    start = independent(schema, people, [one for one in known if len(one.query.columns) == 1])
    if len(known) == len(schema) or isinstance(start, Factored):
        return start
    return fitted(start, list(known), steps=_FITTED)


def independent(schema: Schema, people: float, known: Iterable[Measured]) -> Distribution:
    """The table of so many people whose columns are independent and as they were measured: the nearest to uniform.

    What was measured is raised to at least its standard error: a cell that holds nobody is not known to.
    """
    alone: dict[str, NDArray[np.float64]] = {}
    for one in known:
        (name,) = one.query.columns
        held = np.maximum(one.answers, max(sqrt(one.variance), 0.5))
        alone[name] = np.log(held / held.sum())
    even = MultiplicativeWeights(1.0).start(schema, people)
    if isinstance(even, Factored):
        columns = [Schema([column]) for column in schema]
        return Factored(schema, people, [Weights(column, people, alone.get(column.names[0])) for column in columns])
    logs = np.zeros(schema.sizes(schema.names))
    for name, own in alone.items():
        logs += own.reshape([schema[name].size if name == other else 1 for other in schema.names])
    return Weights(schema, people, (logs - logs.max()).astype(even.logs.dtype))
