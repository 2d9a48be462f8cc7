"""Online: a public hypothesis answers for ever, and only surprises are paid for (Alg. 6; the median mechanism)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log, sqrt
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.domain.away import Away
from tacit.domain.query import Columns, Counting, LinearQuery
from tacit.domain.schema import Schema
from tacit.domain.weights import Weights
from tacit.domain.workload import marginals
from tacit.errors import InvalidParameter, InvalidQuery, Unavailable
from tacit.mechanisms.fit import Measured, fitted
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.mwem import measure
from tacit.mechanisms.sparse import LeanSparse, NumericSparse, numeric_book_bound
from tacit.mechanisms.terms import BETA, GRID, QUERIES, Terms, choose
from tacit.mechanisms.total import counted, noise
from tacit.mechanisms.updates import MultiplicativeWeights, Update
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown, whole

_KEPT = 2**20  # cells of a universe from which marginals are kept, and of all that are kept
_AGAIN = 2**19  # cells that may be looked at to match earlier answers again
_FITTED = 60  # steps of the fit that a session begins with


@dataclass(frozen=True)
class Answer:
    """One answer of a session: a number of people, what it cost, how far off it may be, how many it will still pay for.

    With the session's confidence all its answers are within their errors. None where no error is known: after the last
    paid answer the hypothesis still answers, and nobody looks whether it is right.
    """

    value: float
    free: bool
    error: float | None
    left: int

    def __str__(self) -> str:
        cost = "free" if self.free else "paid"
        within = "error unknown, as no paid answer is left" if self.error is None else f"within {self.error:,.0f}"
        return f"{self.value:,.0f} ({cost}, {within}; {self.left:,} left)"


@dataclass(frozen=True, eq=False)
class Paid:
    """A question that was a surprise, and its noisy answer."""

    query: LinearQuery
    value: float


class Online:
    """Answers one question after the other from a hypothesis, and buys the answers that it gets wrong (Alg. 6).

    One question |q(x) - v| to a sparse vector tells whether the hypothesis' answer v is more than `threshold` people
    off; if it is, q is answered with fresh noise, and the update rule moves the hypothesis by that answer. With
    `textbook` two questions are asked, q(x) - v and v - q(x), of NumericSparse, and the direction is that of the one
    that was above (Thm 4.15, E17). Any rule will do: with `MedianHalving(net)` this is the online median mechanism.
    A question that was asked before has the answer it had. A question that fails ends what can be paid for.
    Privacy: the kernel's.
    Accuracy: `Answer.error`; of the book, `book_bound`; of the terms that `choose` makes, `Terms.error`.
    """

    def __init__(
        self,
        curator: Curator,
        budget: Budget,
        *,
        update: Update,
        threshold: Number,
        count: int,
        total: Number | None = None,
        ways: int = 0,
        first: Number = Fraction(1, 10),
        share: Number = Fraction(1, 5),
        queries: int = QUERIES,
        textbook: bool = False,
        beta: float = BETA,
        grid: Number = GRID,
        hypothesis: Any = None,
        paid: Iterable[Paid] = (),
    ) -> None:
        begin, part = exact(first, "the share of the marginals"), exact(share, "the share of the paid answers")
        if not (0 < begin < 1 and 0 < part < 1):
            raise InvalidParameter(
                f"the shares lie between 0 and 1, not {shown(begin)} and {shown(part)}. Nothing was spent."
            )
        many = whole(queries, "the number of questions", 1, 10**12)
        ways = whole(ways, "the columns of a marginal to begin with", 0, 2)
        schema, self.beta, self._update = curator.schema, chance(beta), update
        begun = update.start(schema, 1.0) if hypothesis is None else hypothesis  # refuses too large a universe
        if ways and (hypothesis is not None or not isinstance(begun, Weights)):
            raise InvalidParameter("marginals are the start of weights that are new. Nothing was spent.")
        inner = curator.within(budget, f"Online(count={count}, threshold={shown(exact(threshold, 'the threshold'))})")
        self.people, rest = counted(inner, budget, total)
        self.paid = list(paid)
        self._inner, self._turn = inner, RLock()
        if hypothesis is None:
            hypothesis = update.start(schema, self.people)
            if ways:
                hypothesis, rest = bought(inner, self.people, rest * begin, ways), rest * (1 - begin)
        self._hypothesis: Any = hypothesis
        self._known: dict[Hashable, Answer] = {}
        self._tables: dict[Columns, NDArray[np.float64]] = {}
        self._asks: _Absolute | _Signed
        if textbook:
            self._asks = _Signed(NumericSparse(inner, rest, threshold=threshold, count=count, grid=grid))
        else:
            sparse = LeanSparse(inner, rest * (1 - part), threshold=threshold, count=count, grid=grid)
            self._asks = _Absolute(inner, sparse, rest * part / count)
        self._remembers = not textbook
        self.count, self._left, self.confidence = count, count, 1 - self.beta
        self._free_error, self._paid_error = self._asks.errors(self.beta, many)

    @property
    def left(self) -> int:
        """How many answers it will still pay for."""
        return self._left

    @property
    def hypothesis(self) -> Any:
        """What answers: public, and all that has been learnt. It changes with the next paid answer."""
        return self._hypothesis

    def ask(self, query: LinearQuery) -> Answer:
        """The answer; free unless the hypothesis is far off, and the same whenever it is asked again."""
        if not isinstance(query, LinearQuery) or query.size != 1:
            raise InvalidQuery(f"a session answers one sum over people at a time, not {query}. Nothing was spent.")
        query.check(self._inner.schema)
        self._update.check(query)
        key = _key(query)
        with self._turn:
            known = self._known.get(key) if self._remembers else None
            if known is None:
                known = self._known[key] = self._answered(query, key)
            return known

    def _answered(self, query: LinearQuery, key: Hashable) -> Answer:
        believed = self._believed(query)
        if not self._left:
            return Answer(believed, True, None, 0)
        try:
            surprise = self._asks.ask(query, believed)
        except Unavailable:
            self._left = 0
            raise
        if surprise is None:
            return Answer(believed, True, self._free_error, self._left)
        value, direction = surprise
        self._left = self._asks.left
        answer = self._known[key] = Answer(value, False, self._paid_error, self._left)
        self.paid.append(Paid(query, value))
        self._tables.clear()
        self._hypothesis = self._update(self._hypothesis, query, value, direction)
        if isinstance(self._update, MatchingWeights):
            for held in self.paid[-1 : -1 - _AGAIN // self._hypothesis.schema.universe : -1]:
                self._hypothesis = self._update(self._hypothesis, held.query, held.value)
        return answer

    def _believed(self, query: LinearQuery) -> float:
        held = self._hypothesis
        if not isinstance(held, Weights) or held.schema.universe > _KEPT:
            return float(held.answer(query).item())
        if sum(table.size for table in self._tables.values()) > _KEPT:
            self._tables.clear()
        for columns in query.reads:
            if columns not in self._tables:
                self._tables[columns] = held.project(columns)
        return float(query(*(self._tables[columns] for columns in query.reads)).item())


class _Absolute:
    """One question about the absolute error; then a fresh answer, which tells the direction as well."""

    def __init__(self, curator: Curator, sparse: LeanSparse, each_answer: Budget) -> None:
        self._curator, self._sparse, self._noise = curator, sparse, noise(each_answer)

    @property
    def left(self) -> int:
        return self._sparse.left

    def ask(self, query: LinearQuery, believed: float) -> tuple[float, int] | None:
        if not self._sparse.ask(Away(query, believed)):
            return None
        value = float(self._curator.release(self._noise, query).item())
        return value, -1 if value < believed else 1

    def errors(self, beta: float, queries: int) -> tuple[float, float]:
        above = float(self._sparse.vector.threshold) + self._sparse.no_bound(beta / 2)
        # the grid of a query is at most 1, and the hypothesis' answer is rounded to it
        return above + 1, self._noise.error_bound(beta / 2, coordinates=self._sparse.count)


class _Signed:
    """The book's two questions, q(x) - v and v - q(x), the second only where the first was not above."""

    def __init__(self, sparse: NumericSparse) -> None:
        self._sparse = sparse

    @property
    def left(self) -> int:
        return self._sparse.left

    def ask(self, query: LinearQuery, believed: float) -> tuple[float, int] | None:
        for towards in (1, -1):
            away = Away(query, believed, towards)
            excess = self._sparse.ask(away)
            if excess is not None:
                return away.public + towards * excess, towards
        return None

    def errors(self, beta: float, queries: int) -> tuple[float, float]:
        off = self._sparse.error_bound(beta, queries=2 * queries)
        return float(self._sparse.above.threshold) + off + 1, off


def online(
    curator: Curator,
    budget: Budget,
    *,
    queries: int = QUERIES,
    total: Number | None = None,
    nats: float | None = None,
    beta: float = BETA,
) -> tuple[Online, Terms]:
    """A session on the terms that `choose` makes for so many questions, and these terms; the budget is spent at once.

    Where the number of people is not public it is bought, before the terms that depend on it are made.
    """
    schema = curator.schema
    if total is not None:
        terms = choose(schema, budget, total, queries=queries, nats=nats, beta=beta)
        return opened(curator, budget, terms, total=total), terms
    whole(queries, "the number of questions", 1, 10**12)
    MatchingWeights(1.0, nats=nats).start(schema, 1.0)  # refuses too large a universe, while nothing is spent
    inner = curator.within(budget, f"online, up to {queries} questions")
    people, rest = counted(inner, budget, None)
    terms = choose(schema, rest, people, queries=queries, nats=nats, beta=beta)
    return opened(inner, rest, terms, total=people), terms


def opened(curator: Curator, budget: Budget, terms: Terms, *, total: Number) -> Online:
    """A session on terms that were made for this budget and so many people."""
    return Online(
        curator,
        budget,
        update=terms.rule,
        threshold=terms.threshold,
        count=terms.count,
        total=total,
        ways=terms.ways,
        first=terms.first,
        share=terms.share,
        queries=terms.queries,
        beta=terms.beta,
    )


def bought(curator: Curator, people: float, budget: Budget, ways: int) -> Weights:
    """What a session begins with: the columns independent and as measured, or in pairs as measured and else as random.

    The pairs are fitted, not exactly: what is left is less than the questions of a session can tell.
    """
    schema = curator.schema
    one = measure(curator, marginals(schema, 1), budget if ways == 1 else budget * Fraction(1, 10))
    start = independent(schema, people, one)
    if ways == 1:
        return start
    return fitted(start, one + measure(curator, marginals(schema, 2), budget * Fraction(9, 10)), steps=_FITTED)


def independent(schema: Schema, people: float, known: Iterable[Measured]) -> Weights:
    """The table of so many people whose columns are independent and as they were measured: the nearest to uniform.

    What was measured is raised to at least its standard error: a cell that holds nobody is not known to.
    """
    logs = np.zeros(schema.sizes(schema.names))
    for one in known:
        (name,) = one.query.columns
        held = np.maximum(one.answers, max(sqrt(one.variance), 0.5))
        shape = [schema[name].size if name == other else 1 for other in schema.names]
        logs += np.log(held / held.sum()).reshape(shape)
    dtype = MultiplicativeWeights(1.0).start(schema, people).logs.dtype
    return Weights(schema, people, (logs - logs.max()).astype(dtype))


def book_bound(epsilon: float, delta: float, beta: float, *, people: float, universe: int, queries: int) -> float:
    """Thms 4.14 and 4.15 as corrected (E22, E23): the least 3 alpha n that they prove; above `people` it says nothing.

    alpha^3 n eps >= 36 ln|X| (ln|Q| + ln(32 ln|X| / (alpha^2 beta))) where delta = 0, else
    alpha^2 n eps >= (2 + 32 sqrt 2) sqrt(ln|X| ln(2/delta)) (ln|Q| + ln(32 ln|X| / (alpha^2 beta))).
    """
    if delta and not (0 < delta < 1 and epsilon <= 1):
        raise InvalidParameter("Corollary 3.21 is for epsilon at most 1 and delta between 0 and 1. Nothing was spent.")
    entropy, beta = log(max(universe, 2)), chance(beta)

    def proved(alpha: float) -> bool:
        logs = log(queries) + log(32 * entropy / (alpha**2 * beta))
        if delta:
            return alpha**2 * people * epsilon >= (2 + 32 * sqrt(2)) * sqrt(entropy * log(2 / delta)) * logs
        return alpha**3 * people * epsilon >= 36 * entropy * logs

    low, high = 0.0, 1.0
    while not proved(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proved(middle) else (middle, high)
    return 3 * high * people


def book_terms(
    epsilon: float, delta: float, beta: float, *, universe: int, queries: int, alpha: float
) -> tuple[int, float]:
    """Alg. 6's number of updates and its threshold, in people, for eta = alpha/2.

    c = 4 ln|X|/alpha^2. T = 18 c (ln(2|Q|) + ln(4c/beta))/eps where delta = 0, else
    (2 + 32 sqrt 2) sqrt(c ln(2/delta)) (ln(2|Q|) + ln(4c/beta))/eps: twice the alpha of Thm 3.28.
    """
    count = max(floor(4 * log(max(universe, 2)) / alpha**2), 1)
    return count, 2 * numeric_book_bound(epsilon, delta, count, 2 * queries, beta, corrected=False)


def _key(query: LinearQuery) -> Hashable:
    """Equal for questions that are equal: a count, by the columns that it restricts, in whatever order."""
    if type(query) is not Counting:
        return query
    held = zip(query.columns, query.sizes, query.chosen, strict=True)
    return frozenset((name, cells) for name, size, cells in held if len(cells) < size)
