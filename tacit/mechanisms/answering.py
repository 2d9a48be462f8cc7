"""A public hypothesis that answers until it is surprised, and learns from each surprise (Alg. 6, Section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.factored import Factored
from tacit.domain.query import Columns, Counting, Linear, LinearQuery
from tacit.domain.weights import Weights
from tacit.errors import BudgetExceeded, InvalidQuery, NoSynopsis, Unavailable
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.surprise import Surprises
from tacit.mechanisms.updates import Update

_KEPT = 2**20  # cells of a universe from which marginals are kept, and of all that are kept
_AGAIN = 2**19  # cells that may be looked at to match earlier answers again
_LEAST = 2**13  # cells of a block that are looked at in the time that matching takes anyway


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

    @property
    def low(self) -> float | None:
        """The least that the exact count may be, which is never below zero."""
        return None if self.error is None else max(self.value - self.error, 0.0)

    @property
    def high(self) -> float | None:
        """The most that it may be."""
        return None if self.error is None else max(self.value + self.error, 0.0)

    def describe(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "low": self.low, "high": self.high}

    def __str__(self) -> str:
        cost = "free" if self.free else "paid"
        within = "error unknown, as no paid answer is left" if self.error is None else f"within {self.error:,.0f}"
        return f"{self.value:,.0f} ({cost}, {within}; {self.left:,} left)"


@dataclass(frozen=True, eq=False)
class Paid:
    """A question that was a surprise, and its noisy answer."""

    query: LinearQuery
    value: float
    direction: int | None = None


class Answering:
    """Answers from the hypothesis, unless `surprises` says that it is far off; then it pays, and learns.

    What was paid for before is learnt again in its order, so that the hypothesis is what it was.
    Privacy: that of `surprises`; the hypothesis is made of what that gave out.
    """

    def __init__(
        self,
        surprises: Surprises,
        *,
        update: Update,
        hypothesis: Any,
        queries: int,
        beta: float,
        paid: Iterable[Paid] = (),
        remembers: bool = True,
    ) -> None:
        self._surprises, self._update, self._hypothesis = surprises, update, hypothesis
        self._free_error, self._paid_error = surprises.errors(beta, queries)
        self._left, self.confidence, self._remembers = surprises.left, 1 - beta, remembers
        self._known: dict[str, Answer] = {}
        self._tables: dict[Columns, NDArray[np.float64]] = {}
        self._turn = RLock()
        self.paid: list[Paid] = []
        for one in paid:
            self._learn(one)

    @property
    def left(self) -> int:
        """How many answers it will still pay for."""
        return self._left

    @property
    def hypothesis(self) -> Any:
        """What answers: public, and all that has been learnt. It changes with the next paid answer."""
        return self._hypothesis

    def check(self, query: LinearQuery) -> None:
        """Refuses what cannot be asked here."""
        if not isinstance(query, LinearQuery) or query.size != 1:
            raise InvalidQuery(f"a session answers one sum over people at a time, not {query}. Nothing was spent.")
        query.check(self._hypothesis.schema)
        self._update.check(query)
        if isinstance(self._hypothesis, Factored):
            self._hypothesis.check(query)

    def ask(self, query: LinearQuery) -> Answer:
        """The answer; free unless the hypothesis is far off, and the same whenever it is asked again."""
        self.check(query)
        key = question(query)
        with self._turn:
            known = self._known.get(key) if self._remembers else None
            if known is None:
                known = self._known[key] = self._answered(query)
            return known

    def _answered(self, query: LinearQuery) -> Answer:
        believed = self._believed(query)
        if not self._left:
            return Answer(believed, True, None, 0)
        try:
            surprise = self._surprises.ask(query, believed)
        except Unavailable:
            self._left = 0
            raise
        except BudgetExceeded:  # an interrupt lost what was paid for, or another sitting used it up: as after the last
            self._left = 0
            return Answer(believed, True, None, 0)
        if surprise is None:
            return Answer(believed, True, self._free_error, self._left)
        value, direction = surprise
        self._left = self._surprises.left
        self._learn(Paid(query, value, direction))
        return Answer(value, False, self._paid_error, self._left)

    def _learn(self, one: Paid) -> None:
        self.paid.append(one)
        self._tables.clear()
        try:
            self._hypothesis = self._update(self._hypothesis, one.query, one.value, one.direction)
        except NoSynopsis:  # no member of a net is left on that side: it goes on as it is, and is told where it is off
            return
        if isinstance(self._update, MatchingWeights):
            for held in self._drifted(one.query):
                self._hypothesis = self._update(self._hypothesis, held.query, held.value)

    def _drifted(self, query: LinearQuery) -> list[Paid]:
        """The latest answers that what was learnt about a query may have moved; no more than are soon matched again."""
        held = self._hypothesis
        if not isinstance(held, Factored):
            return self.paid[-1 : -1 - _AGAIN // held.schema.universe : -1]
        block = held.beside(query)
        inside = [one for one in self.paid if held.beside(one.query) == block]
        return inside[-1 : -1 - _AGAIN // max(held.schema.cells(block), _LEAST) : -1]

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


def question(query: LinearQuery) -> str:
    """Equal for questions that are equal: a count, by the columns that it restricts, in whatever order."""
    said: tuple[object, ...]
    if type(query) is Counting:
        held = zip(query.columns, query.sizes, query.chosen, strict=True)
        said = tuple(sorted((name, cells) for name, size, cells in held if len(cells) < size))
    elif type(query) is Linear:
        said = query.columns, query.sizes, query.grid, sha256(query.numerators.tobytes()).hexdigest()
    else:
        said = type(query).__name__, query.columns, query.sizes, query.grid, query.weights().tobytes()
    return sha256(repr(said).encode()).hexdigest()[:32]
