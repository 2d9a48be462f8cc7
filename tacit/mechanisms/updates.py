"""Database update algorithms: how a hypothesis learns from one query that it answers badly (Defs. 5.3 and 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log
from typing import Any, Protocol, TypeAlias

import numpy as np

from tacit.domain.factored import Factored
from tacit.domain.grid import Norm
from tacit.domain.median import Median
from tacit.domain.net import Net
from tacit.domain.query import MOST_QUERY_COLUMNS, LinearQuery, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.synopsis import MOST_CELLS, Synopsis
from tacit.domain.weights import Signed, Weights
from tacit.errors import InvalidParameter, InvalidQuery, quoted

_NARROW = 2**24  # cells from which on a dense hypothesis holds floats of 32 bits

Distribution: TypeAlias = Weights | Factored


class Update(Protocol):
    """A T(alpha)-update algorithm: after T updates no query is answered worse than within a share alpha of the people.

    An update is legal if the hypothesis is off by at least that share and the direction is right. It may change the
    hypothesis in place: what it returns is the hypothesis from then on.
    """

    def start(self, schema: Schema, total: float) -> Any:
        """The first hypothesis: public."""

    def __call__(self, hypothesis: Any, query: LinearQuery, value: float = 0.0, direction: int | None = None) -> Any:
        """The next one, given about how many people the query counts, or whether they are more (+1) or fewer (-1)."""

    def max_updates(self, schema: Schema) -> int:
        """T(alpha): no sequence of legal updates is longer."""

    def check(self, query: Query) -> None:
        """Refuses a query for whose answers the bound does not hold."""


Updates: TypeAlias = Callable[[float], Update]  # an algorithm for each alpha: `MultiplicativeWeights` is one


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Makes the cells that a query counts likelier by e^eta where it counts too few, else less likely (Alg. 5).

    With r = f if the value is below the hypothesis and r = 1 - f if not, x_i exp(-eta r_i) is x_i exp(-+eta f_i), up to
    the normalisation.
    Accuracy: at most ln|X|/(2 alpha^2) updates, with eta = 4 alpha; `textbook`, 4 ln|X|/alpha^2 with eta = alpha/2
    (Thm 4.10, E26).

    >>> from tacit.domain.query import Counting
    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> rule = MultiplicativeWeights(0.1)
    >>> hypothesis = rule(rule.start(schema, 100), Counting.where(schema, {"vote": (1,)}), 80.0)
    >>> hypothesis.project(("vote",)).round(1), rule.max_updates(schema)
    (array([40.1, 59.9]), 34)
    """

    # Psi = KL(x || x^t) is at most ln|X| at the uniform x^1, and never negative. By Hoeffding's lemma an update with
    # an error of a lowers it by at least eta a - eta^2/8: for eta = 4 alpha and a >= alpha that is 2 alpha^2.

    alpha: float
    textbook: bool = False

    def __post_init__(self) -> None:
        _share(self.alpha)

    @property
    def eta(self) -> float:
        """How far one update goes."""
        return self.alpha / 2 if self.textbook else 4 * self.alpha

    def start(self, schema: Schema, total: float) -> Distribution:
        if schema.universe > MOST_CELLS or len(schema) > MOST_QUERY_COLUMNS:  # an array has no more axes
            return Factored(schema, total)
        return Weights(schema, total, dtype=_dtype(schema))

    def __call__(
        self, hypothesis: Distribution, query: LinearQuery, value: float = 0.0, direction: int | None = None
    ) -> Distribution:
        self.check(query)
        hypothesis.tilt(query, self.eta * _direction(hypothesis, query, value, direction))
        return hypothesis

    def max_updates(self, schema: Schema) -> int:
        return _most(log(schema.universe) * (4 if self.textbook else 0.5) / self.alpha**2)

    def check(self, query: Query) -> None:
        _weighs(query)


@dataclass(frozen=True)
class Perceptron:
    """Adds alpha n/|X| to every cell that a query counts where it counts too few, else takes it away (Thm 5.11).

    It begins with nobody, and a cell may hold less than nobody. `spread` is a public bound on ||x||_2 / ||x||_1: 1
    holds for every table, and sqrt(1/n) where no two people are alike.
    Accuracy: at most spread^2 |X| / alpha^2 updates (Thm 5.12).
    """

    # ||x - x^t||_2^2 begins at ||x||_2^2; an update with an error of at least alpha n = a lowers it by at least
    # 2 (a/|X|) a - (a/|X|)^2 ||f||_2^2 >= a^2/|X|.

    alpha: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        _share(self.alpha)
        if not 0 < self.spread <= 1:
            raise InvalidParameter(
                f"||x||_2 / ||x||_1 lies above 0 and is at most 1, so {quoted(self.spread)} is no bound on it. "
                "Nothing was spent."
            )

    def start(self, schema: Schema, total: float) -> Signed:
        return Signed(schema, total, dtype=_dtype(schema))

    def __call__(
        self, hypothesis: Signed, query: LinearQuery, value: float = 0.0, direction: int | None = None
    ) -> Signed:
        self.check(query)
        step = self.alpha * hypothesis.people / hypothesis.schema.universe
        hypothesis.tilt(query, step * _direction(hypothesis, query, value, direction))
        return hypothesis

    def max_updates(self, schema: Schema) -> int:
        return _most(self.spread**2 * schema.universe / self.alpha**2)

    def check(self, query: Query) -> None:
        _weighs(query)


@dataclass(frozen=True, eq=False)
class MedianHalving:
    """Drops the members of a net that answer on the wrong side of their median, and the median with them (Def. 5.6).

    Accuracy: at most log2 of the net's members updates, as long as updates are made only where the hypothesis is
    farther off than some member of the net is for every query: that one is never dropped (E27).
    """

    net: Net

    def start(self, schema: Schema, total: float) -> Median:
        if schema != self.net.schema:
            raise InvalidParameter("the net has another schema than the table. Nothing was spent.")
        return Median(self.net)

    def __call__(
        self, hypothesis: Median, query: LinearQuery, value: float = 0.0, direction: int | None = None
    ) -> Median:
        return hypothesis.halved(query, _direction(hypothesis, query, value, direction))

    def max_updates(self, schema: Schema) -> int:
        return len(self.net).bit_length() - 1

    def check(self, query: Query) -> None:
        if not isinstance(query, LinearQuery):
            raise InvalidQuery(f"a median is halved by sums over people; {query} is none. Nothing was spent.")


def _direction(hypothesis: Synopsis, query: LinearQuery, value: float, direction: int | None) -> int:
    if direction is None:  # as in Alg. 5, where the two agree the hypothesis is too low
        return -1 if value < hypothesis.answer(query).item() else 1
    if direction not in (-1, 1):
        raise InvalidParameter(f"the truth is higher (+1) or lower (-1), not {quoted(direction)}. Nothing was spent.")
    return direction


def _weighs(query: Query) -> None:
    # each answer is a sum of weights in [0, 1]: nobody new lowers one, or raises it by more than 1
    added = Neighbors.ADD_REMOVE
    if not (isinstance(query, LinearQuery) and query.monotone(added) and query.sensitivity(Norm.LINF, added) <= 1):
        raise InvalidQuery(f"an update takes a count, or a sum of weights in [0, 1]; not {query}. Nothing was spent.")


def _share(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise InvalidParameter(f"alpha is a share of the people, above 0 and at most 1, not {quoted(alpha)}.")


def _most(bound: float) -> int:
    return floor(bound * (1 + 1e-12))  # the bound's own rounding must not take one away


def _dtype(schema: Schema) -> type[np.floating[Any]]:
    return np.float64 if schema.universe <= _NARROW else np.float32
