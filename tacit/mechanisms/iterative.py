"""Iterative construction: a hypothesis, and whoever can tell it from the table (Alg. 8, Thms 5.3 to 5.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, sqrt

from tacit.curator.kernel import Curator
from tacit.domain.factored import Factored
from tacit.domain.grid import Norm
from tacit.domain.median import Median
from tacit.domain.person import Relation
from tacit.domain.query import Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.synopsis import MOST_CELLS, Histogram
from tacit.domain.weights import Signed, Weights
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, NoSuchGuarantee, quoted
from tacit.mechanisms.distinguishers import Distinguisher, exponential
from tacit.mechanisms.receipts import receipt
from tacit.mechanisms.total import SHARE, counted, noise
from tacit.mechanisms.updates import MultiplicativeWeights, Updates
from tacit.primitives.additive import each
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown

MOST_ROUNDS = 10**5


def construct(
    curator: Curator,
    workload: Query,
    budget: Budget,
    *,
    update: Updates = MultiplicativeWeights,
    distinguish: Distinguisher = exponential,
    alpha: Number | None = None,
    beta: float = 0.05,
    total: Number | None = None,
    purpose: str = "",
) -> Histogram | Median:
    """Finds a query that the hypothesis answers badly, measures it and updates, until there is none (Alg. 8).

    `alpha` is the share of the people within which all answers shall be; without it, the least that `error_bound`
    proves is taken. A smaller one may well be reached, but no theorem says so.
    Privacy: the kernel's: T rounds of a distinguisher and a noisy answer, a 2T-th of the budget each.
    Accuracy: all answers within alpha n, with probability 1 - beta, for every alpha n from `error_bound` on.
    """
    asked = _asked(workload, curator.schema)
    plan = _Plan(curator.schema, asked, budget, curator.relation, chance(beta), update, distinguish)
    share = plan.checked(alpha, total)
    inner = curator.within(budget, f"construct over {asked}")
    people, rest = counted(inner, budget, total)
    plan = replace(plan, budget=rest)
    share = plan.least(people, "What was charged stays charged.") if share is None else share
    rule, rounds = update(share / 2), plan.rounds(share)
    step, hypothesis, enough = rest / (2 * rounds), rule.start(curator.schema, people), 0.75 * share * people
    made = 0
    for _ in range(rounds):
        query = distinguish(inner, asked, hypothesis, step)
        value = inner.release(noise(step), query).item()
        believed = hypothesis.answer(query).item()
        if abs(value - believed) < enough:
            break
        hypothesis, made = rule(hypothesis, query, value, -1 if value < believed else 1), made + 1
    what = f"construct: {made} of at most {rounds} updates by {type(rule).__name__} over {asked}, alpha {share:.4g}"
    return _released(hypothesis, receipt(curator, budget, what, total, purpose))


def error_bound(
    schema: Schema,
    workload: Query,
    budget: Budget,
    neighbors: Neighbors | Relation,
    beta: float,
    *,
    total: Number,
    update: Updates = MultiplicativeWeights,
    distinguish: Distinguisher = exponential,
) -> float:
    """Within how many people all answers are, with probability 1 - beta: the least alpha n that can be proved.

    The rounds' noise A and the distinguishers' F, each at its exact quantile, are together at most alpha n/4: who stops
    is then within (3/4 + 1/4) alpha n, and who does not has an error of alpha n/2, in the direction of the noisy one.
    """
    plan = _Plan(schema, _asked(workload, schema), budget, neighbors, chance(beta), update, distinguish)
    people = _people(total)
    return plan.least(people) * people


def book_bound(
    epsilon: float,
    delta: float,
    beta: float,
    *,
    total: float,
    queries: int,
    updates: Callable[[float], float],
) -> float:
    """Thms 5.6 and 5.7 with T = updates(alpha/2), in people: above `total` it says nothing (E28).

    alpha n = 32 T ln(2|Q|T/beta)/eps where delta = 0, else 64 sqrt(T ln(1/delta)) ln(2|Q|T/beta)/eps.
    """
    if delta and not (0 < delta < 1 and epsilon <= 1):
        raise InvalidParameter("Corollary 3.21 is for epsilon at most 1 and delta between 0 and 1. Nothing was spent.")

    def needed(alpha: float) -> float:
        rounds = max(updates(alpha / 2), 1.0)
        times = 64 * sqrt(rounds * log(1 / delta)) if delta else 32 * rounds
        return times * log(2 * queries * rounds / chance(beta)) / epsilon

    return _least(needed, total, inf) * total


@dataclass(frozen=True)
class _Plan:
    """Everything that is known before a question is asked: how many rounds an alpha takes, and how far they err."""

    schema: Schema
    workload: Workload
    budget: Budget
    neighbors: Neighbors | Relation
    beta: float
    update: Updates
    distinguish: Distinguisher

    def checked(self, alpha: Number | None, total: Number | None) -> float | None:
        """The alpha that was asked for; refuses what cannot be done, while nothing has been spent."""
        rule, people = self.update(0.5), None if total is None else _people(total)
        if isinstance(rule.start(self.schema, 1.0), Factored):  # else it refuses too large a universe itself
            raise InvalidParameter(
                f"iterative construction writes its hypothesis out, in at most {MOST_CELLS} cells; this universe has "
                f"{self.schema.universe}. Nothing was spent."
            )
        for query in self.workload.queries:
            rule.check(query)
        share = None if alpha is None else float(exact(alpha, "alpha"))
        if share is not None:
            if not 0 < share < 1:
                raise InvalidParameter(
                    f"alpha is a share of the people, above 0 and below 1, not {quoted(alpha)}. Nothing was spent."
                )
            if self.rounds(share) > MOST_ROUNDS:
                raise InvalidParameter(
                    f"alpha = {share:.4g} may take {self.rounds(share)} rounds; {MOST_ROUNDS} are allowed. "
                    "Nothing was spent."
                )
            self.erring(self.rounds(share))  # refuses noise that cannot be drawn
        elif people is not None:
            share = self.least(people)
        else:
            # the count takes its share of the budget: what cannot be refused now may be after it
            replace(self, budget=self.budget * (1 - SHARE)).erring(self.rounds(1.0))
        return share

    def rounds(self, alpha: float) -> int:
        """T(alpha/2), and one where even the first hypothesis is good enough."""
        return max(self.update(alpha / 2).max_updates(self.schema), 1)

    def erring(self, rounds: int) -> float:
        """A + F over so many rounds, in people, each but with probability beta/2."""
        if rounds in self._erred:
            return self._erred[rounds]
        step, beta = self.budget / (2 * rounds), each(self.beta / 2, rounds)
        mechanism, answers = noise(step), 0.0
        moved = Relation.of(self.neighbors).moves(self.workload, Norm.LINF)
        for grid in {query.grid for query in self.workload.queries}:
            mechanism.check(moved, grid)
            answers = max(answers, mechanism.error_bound(beta, sensitivity=moved, grid=grid))
        found = self.distinguish.error_bound(beta, self.workload, step, self.neighbors)
        return self._erred.setdefault(rounds, answers + found)

    @cached_property
    def _erred(self) -> dict[int, float]:
        return {}

    def least(self, people: float, spent: str = "Nothing was spent.") -> float:
        """The least alpha that is proved, or a refusal that says how many people it would take."""
        alpha = _least(self._needed, people, 1.0)
        if alpha >= 1:
            raise NoSuchGuarantee(
                f"with {shown(exact(people, 'people'))} people no alpha below 1 is proved for {self.workload} under "
                f"{self.budget}; it takes more than {self._needed(1.0):.0f} people, or an alpha of your own. {spent}"
            )
        return alpha

    def _needed(self, alpha: float) -> float:
        rounds = self.rounds(alpha)
        return 4 * self.erring(rounds) if rounds <= MOST_ROUNDS else inf


def _least(needed: Callable[[float], float], people: float, most: float) -> float:
    """The least alpha with needed(alpha) <= alpha people, or what is no less than `most`; needed falls."""
    low, high = 0.0, 1.0
    while needed(high) > high * people:
        if high >= most:
            return high
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > middle * people else (low, middle)
    return high


def _asked(workload: Query, schema: Schema) -> Workload:
    asked = workload if isinstance(workload, Workload) else Workload((workload,))
    asked.check(schema)
    return asked


def _people(total: Number) -> float:
    people = float(exact(total, "the number of people"))
    if people <= 0:
        raise InvalidParameter(f"the number of people must be positive, not {quoted(total)}. Nothing was spent.")
    return people


def _released(hypothesis: Weights | Signed | Median, paid: Receipt) -> Histogram | Median:
    if isinstance(hypothesis, Median):
        return Median(hypothesis.net, hypothesis.kept, receipt=paid)
    return hypothesis.histogram(paid)
