"""Whether an answer is a surprise, and what is true: one question about the error, or the book's two (Alg. 6)."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Protocol

from tacit.curator.kernel import Curator
from tacit.domain.away import Away
from tacit.domain.grid import one_part
from tacit.domain.query import LinearQuery
from tacit.errors import BudgetExceeded, Unavailable
from tacit.mechanisms.sparse import NumericSparse, Openings, lean
from tacit.mechanisms.total import noise
from tacit.primitives.additive import Gaussian, Laplace, each
from tacit.primitives.mechanism import Interactive, Mechanism
from tacit.primitives.threshold import MOST_ABOVE, AboveThreshold
from tacit.privacy.budget import Budget
from tacit.rational import Number, whole


class Surprises(Protocol):
    """What tells surprises, and pays for them."""

    @property
    def left(self) -> int:
        """How many it will still pay for."""
        ...

    def ask(self, query: LinearQuery, believed: float) -> tuple[float, int] | None:
        """None where the query's answer is about what is believed; else a fresh answer, and where the truth lies."""
        ...

    def errors(self, beta: float, queries: int) -> tuple[float, float]:
        """How far off a free answer and a paid one may be; all of so many, with probability 1 - beta."""
        ...


class Absolute:
    """One question about the absolute error; then a fresh answer, which tells the direction as well.

    The curators are two blocks: one pays for every opening of the sparse vector, one for every answer. A block that was
    begun before goes on with what is left in it; a threshold that was lost is paid for again.
    Privacy: the kernel's.
    """

    def __init__(
        self, questions: Curator, answers: Curator, *, threshold: Number, count: int, grid: Number, sittings: int = 1
    ) -> None:
        self._answers, self._count, self._noise = answers, count, noise(answers.budget / count)
        self._rows = questions.relation.rows  # a weighted count moves by at most 1 for each
        self._sessions, self._vector = lean(questions.budget, threshold, count, self._rows, grid=grid, least=sittings)
        self._vector.check()
        openings = _times(questions, self._vector)
        self._openings = Openings(
            questions, self._vector, min(openings * self._vector.count, _times(answers, self._noise), count)
        )

    @property
    def left(self) -> int:
        return self._openings.left

    def ask(self, query: LinearQuery, believed: float) -> tuple[float, int] | None:
        if not self._openings.ask(Away(query, believed)):
            return None
        value = float(self._answers.release(self._noise, query).item())
        with suppress(Unavailable, BudgetExceeded):  # what was answered is told; the next question tries again
            self._openings.ready()
        return value, -1 if value < believed else 1

    def errors(self, beta: float, queries: int) -> tuple[float, float]:
        above = float(self._vector.threshold) + self._vector.no_bound(each(beta / 2, self._sessions))
        # the grid of a query is at most 1, and the hypothesis' answer is rounded to it
        return above + 1, within(self._noise, beta / 2, self._count, self._rows)


def refuse(
    budget: Budget,
    part: Fraction,
    *,
    threshold: Number,
    count: int,
    grid: Number,
    rows: int,
    sittings: int | None,
) -> None:
    """Refuses noise that cannot be drawn, while nothing is spent: of the questions, and of the answers, by their part.

    Without a number of sittings, as `Signed` has it.
    """
    count = whole(count, "the number of answers above", 1, MOST_ABOVE)
    questions = budget * (1 - part)
    if sittings is None:
        AboveThreshold((questions / count).epsilon, threshold, rows, grid=grid).check()
    else:
        lean(questions, threshold, count, rows, grid=grid, least=sittings)[1].check()
    noise(budget * part / count).check(Fraction(rows), one_part(grid))


def within(paid: Laplace | Gaussian, beta: float, count: int, rows: int = 1) -> float:
    """How far off so many paid answers may be, whatever their grids; but with probability beta."""
    # P[|Z| > m + 1] on a finer grid is at most P[|Z| > m] on that of 1; P[|Z| > m] is not
    return paid.error_bound(beta, coordinates=count, sensitivity=rows) + 1


def _times(curator: Curator, paid: Mechanism | Interactive) -> int:
    """How often what is left in a block pays for it."""
    return int(curator.ledger.left // curator.budget.price(paid.loss()))


class Signed:
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
