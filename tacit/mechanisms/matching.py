"""Multiplicative weights whose step is as long as one measured answer says (Alg. 5, with the answer, not its sign)."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log

from tacit.domain.query import LinearQuery, Query
from tacit.domain.schema import Schema
from tacit.errors import InvalidParameter, quoted
from tacit.mechanisms.updates import Distribution, MultiplicativeWeights


@dataclass(frozen=True)
class MatchingWeights:
    """Tilts the weights until a query is answered as it was measured, but for `slack`, which the noise may be.

    With p the share of the people that the hypothesis counts and v the nearest that they can truly be, the step is
    ln(v/(1-v)) - ln(p/(1-p)). It meets v for a counting query, and never passes it for a weighted one.
    Accuracy: at most nats/(2 alpha^2) updates of which each moves an answer by a share alpha or more, as long as values
    are within the slack and the people within `nats` of the start in relative entropy. From the uniform start everybody
    is within ln|X|, and that is what it takes where nothing is said.
    Over more than 10^8 cells this holds until the hypothesis lets go of a column (`Factored.let_go`); then the people
    may be farther off again, and no bound is known.

    >>> from tacit.domain.query import Counting
    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> rule = MatchingWeights(0.1, slack=0.02)
    >>> hypothesis = rule(rule.start(schema, 100), Counting.where(schema, {"vote": (1,)}), 80.0)
    >>> hypothesis.project(("vote",)).round(6)
    array([22., 78.])
    """

    # Psi = KL(x || x^t). A step s > 0 lowers it by s <q, x> - ln sum x^t_i e^(s q_i); for q_i in [0, 1] the sum is at
    # most 1 - p + p e^s, as the exponential is convex. With <q, x> >= v the fall is s v - ln(1 - p + p e^s), which for
    # this s is the relative entropy of two coins of chances v and p: at least 2 (v - p)^2, and never negative. So no
    # update can harm while the noise is within the slack, and an answer may be matched again whenever it has drifted.
    # Blocks that are joined are the same distribution, so Psi stands still. Where one is parted into y and z, Psi grows
    # by E_x ln(p(y, z) / p(y) p(z)): as far as the hypothesis p was right, by all that it knew of y and z together.

    alpha: float
    slack: float = 0.0
    nats: float | None = None

    def __post_init__(self) -> None:
        MultiplicativeWeights(self.alpha)  # refuses what is no share
        if not 0 <= self.slack < 1 or (self.nats is not None and not self.nats > 0):
            raise InvalidParameter(
                f"the slack is a share of the people and the nats are positive, not {quoted(self.slack)} and "
                f"{quoted(self.nats)}. Nothing was spent."
            )

    def start(self, schema: Schema, total: float) -> Distribution:
        return MultiplicativeWeights(self.alpha).start(schema, total)

    def __call__(
        self, hypothesis: Distribution, query: LinearQuery, value: float = 0.0, direction: int | None = None
    ) -> Distribution:
        """The next hypothesis; what was measured counts, and the direction only where it contradicts it."""
        self.check(query)
        total = hypothesis.total
        believed, least = hypothesis.answer(query).item() / total, 0.5 / max(total, 1.0)
        apart = value / total - believed
        nearest = believed + (apart - self.slack if apart > 0 else apart + self.slack)
        if abs(apart) <= self.slack or (direction is not None and direction * apart < 0):
            return hypothesis
        nearest, believed = (min(max(share, least), 1 - least) for share in (nearest, believed))
        hypothesis.tilt(query, log(nearest / (1 - nearest)) - log(believed / (1 - believed)))
        return hypothesis

    def max_updates(self, schema: Schema) -> int:
        nats = log(schema.universe) if self.nats is None else self.nats
        return floor(nats / (2 * self.alpha**2) * (1 + 1e-12))

    def check(self, query: Query) -> None:
        MultiplicativeWeights(self.alpha).check(query)
