"""What a session would do: a rehearsal before people that nobody is, drawn from a public prior (touches no data)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import MOST_QUERY_CELLS, Columns, Counting, LinearQuery
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.errors import InvalidParameter, InvalidQuery
from tacit.mechanisms.online import opened
from tacit.mechanisms.terms import Terms
from tacit.privacy.budget import Budget
from tacit.rational import whole

ASKED, HIDDEN = 1000, 8  # questions of a rehearsal, and classes of the people in it


@dataclass(frozen=True)
class Forecast:
    """How a session went before imagined people; another population, and other questions, would go otherwise.

    A question that was paid for and is asked again is free.
    """

    asked: int
    paid: int
    last: int | None  # which question used up the last paid answer
    worst: float  # error, in people
    terms: Terms

    @property
    def free(self) -> float:
        """The share of the answers that were free."""
        return 1 - self.paid / max(self.asked, 1)

    def describe(self) -> dict[str, Any]:
        """For machines."""
        said = {"asked": self.asked, "paid": self.paid, "free": self.free, "last": self.last, "worst": self.worst}
        return {**said, "terms": self.terms.describe()}

    def __str__(self) -> str:
        lasted = "they lasted" if self.last is None else f"the last was used up by question {self.last:,}"
        return (
            f"Of {self.asked:,} rehearsed questions {self.free:.1%} were free; {self.paid:,} of {self.terms.count:,} "
            f"paid answers were used, and {lasted}. The worst error was {self.worst:,.0f} of "
            f"{self.terms.people:,.0f} {self.terms.counted}."
        )


def simulate(
    schema: Schema,
    budget: Budget,
    terms: Terms,
    *,
    questions: Iterable[LinearQuery] | None = None,
    asked: int = ASKED,
    neighbors: Neighbors = Neighbors.ADD_REMOVE,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Opens a session on these terms over `imagined` people and asks it; random conjunctions where none are given.

    The people and the questions come from the seed; the noise is the session's own, and has none.

    >>> from tacit.mechanisms.terms import choose
    >>> schema = Schema([Categories(f"c{i}", ("no", "yes")) for i in range(6)])
    >>> budget = Budget.of(1, "1e-9")
    >>> simulate(schema, budget, choose(schema, budget, 10**6), asked=100).free > 0.8
    True
    """
    asked = whole(asked, "the number of rehearsed questions", 1, 10**7)
    people = Imagined(schema, round(terms.people), seed, terms.rows)
    curator = Curator(people, MemoryLedger(budget), neighbors)
    session = opened(curator, budget, terms, total=round(terms.people))
    done, last, worst = 0, None, 0.0
    for query in islice(random_conjunctions(schema, seed) if questions is None else questions, asked):
        answer = session.ask(query)
        done += 1
        if last is None and not session.left:
            last = done
        worst = max(worst, abs(answer.value - query(*people.counts(query.reads)).item()))
        if progress is not None:
            progress(done, asked)
    if not done:
        raise InvalidParameter("a rehearsal needs a question. Nothing was spent.")
    return Forecast(done, len(session.paid), last, worst, terms)


class Imagined:
    """Expected counts of people in hidden classes, each with its own chances in every column: a table from a seed.

    Each column has random chances; each class turns them, by a strength that is random too, so that some populations
    are nearly independent and others are not.
    """

    def __init__(self, schema: Schema, people: int, seed: int, rows: int = 1) -> None:
        draw = np.random.default_rng(seed)
        self.schema, self._people, self.most_rows = schema, people, rows
        self._share = draw.dirichlet(np.ones(HIDDEN))
        strength = draw.uniform(0.5, 2.5)
        self._chances: dict[str, NDArray[np.float64]] = {}
        for column in schema:
            logs = np.log(draw.dirichlet(np.ones(column.size)) + 1e-4)
            turned = np.exp(logs + strength * draw.normal(size=(HIDDEN, column.size)))
            self._chances[column.name] = turned / turned.sum(axis=1, keepdims=True)
        self._counted: dict[Columns, NDArray[np.int64]] = {}

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """How many fall into each cell, rounded cell by cell."""
        return [self._counts(columns) for columns in column_sets]

    def _counts(self, columns: Columns) -> NDArray[np.int64]:
        if columns not in self._counted:
            sizes = self.schema.sizes(columns)
            if prod(sizes) > MOST_QUERY_CELLS:
                raise InvalidQuery(f"{len(columns)} columns have too many cells to be imagined. Nothing was spent.")
            table = self._share * self._people
            for place, name in enumerate(columns):
                chances = self._chances[name].reshape(HIDDEN, *[1] * place, -1)
                table = table[..., np.newaxis] * chances
            self._counted[columns] = np.rint(table.sum(axis=0)).astype(np.int64)
        return self._counted[columns]


def random_conjunctions(schema: Schema, seed: int = 0) -> Iterator[Counting]:
    """Without end: one to three columns each; of categories any set of values, of anything ordered an interval."""
    draw = np.random.default_rng([seed, 1])
    while True:
        chosen = draw.choice(len(schema), min(int(draw.integers(1, 4)), len(schema)), replace=False)
        conditions: dict[str, Sequence[int]] = {}
        for place in sorted(chosen.tolist()):
            column = schema.columns[place]
            if isinstance(column, Categories):
                conditions[column.name] = np.flatnonzero(draw.random(column.size) < draw.uniform(0.1, 0.9)).tolist()
            else:
                first, last = sorted(draw.integers(0, column.size, 2).tolist())
                conditions[column.name] = range(first, last + 1)
        yield Counting.where(schema, conditions)
