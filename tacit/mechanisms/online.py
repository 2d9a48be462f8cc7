"""Online: a public hypothesis answers for ever, and only surprises are paid for (Alg. 6; the median mechanism)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tacit.curator.kernel import Curator
from tacit.domain.factored import Factored
from tacit.domain.query import MOST_PEOPLE
from tacit.domain.schema import Schema
from tacit.domain.synopsis import MOST_CELLS
from tacit.domain.weights import Weights
from tacit.errors import InvalidParameter
from tacit.mechanisms.answering import Answering
from tacit.mechanisms.beginning import beginning, bought
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.sparse import NUMERIC, NumericSparse
from tacit.mechanisms.surprise import Absolute, Signed, Surprises, refuse
from tacit.mechanisms.terms import BETA, GRID, QUERIES, Terms, choose
from tacit.mechanisms.total import SHARE, counted, public
from tacit.mechanisms.updates import Update
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown, whole


class Online(Answering):
    """Answers one question after the other from a hypothesis, and buys the answers that it gets wrong (Alg. 6).

    One question |q(x) - v| to a sparse vector tells whether the hypothesis' answer v is more than `threshold` people
    off; if it is, q is answered with fresh noise, and the update rule moves the hypothesis by that answer. With
    `textbook` two questions are asked, q(x) - v and v - q(x), of NumericSparse, and the direction is that of the one
    that was above (Thm 4.15, E17). Any rule will do: with `MedianHalving(net)` this is the online median mechanism.
    A question that was asked before has the answer it had. A question that fails ends what can be paid for.
    Privacy: the kernel's.
    Accuracy: `Answer.error`; of the book, `online_book.book_bound`; of the terms that `choose` makes, `Terms.error`.
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
        sittings: int = 1,
        hypothesis: Any = None,
    ) -> None:
        begin, part = exact(first, "the share of the marginals"), exact(share, "the share of the paid answers")
        if not (0 < begin < 1 and 0 < part < 1):
            raise InvalidParameter(
                f"the shares lie between 0 and 1, not {shown(begin)} and {shown(part)}. Nothing was spent."
            )
        queries = whole(queries, "the number of questions", 1, 10**12)
        schema, beta = curator.schema, chance(beta)
        ways = whole(ways, "the columns of a marginal to begin with", 0, min(2, len(schema)))
        begun = update.start(schema, 1.0) if hypothesis is None else hypothesis  # refuses too large a universe
        if getattr(begun, "schema", None) != schema:
            raise InvalidParameter("the hypothesis is over another schema than the table. Nothing was spent.")
        if ways and (hypothesis is not None or not isinstance(begun, Weights | Factored)):
            raise InvalidParameter("marginals are the start of weights that are new. Nothing was spent.")
        if ways == 2 and isinstance(begun, Factored):
            raise InvalidParameter(
                f"pairs of columns are fitted over at most {MOST_CELLS} cells, and this universe has "
                f"{schema.universe}; begin with one column each (ways=1). Nothing was spent."
            )
        rest = budget if public(total) else budget * (1 - SHARE)
        rest = rest * (1 - begin) if ways else rest
        how: dict[str, Any] = {"threshold": threshold, "count": count, "grid": grid}
        rows = curator.relation.rows
        refuse(rest, NUMERIC if textbook else part, **how, rows=rows, sittings=None if textbook else sittings)
        inner = curator.within(budget, f"Online(count={count}, threshold={shown(exact(threshold, 'the threshold'))})")
        self.people, rest = counted(inner, budget, total)
        if hypothesis is None:
            hypothesis = update.start(schema, self.people)
            if ways:
                known, rest = bought(inner, rest * begin, ways), rest * (1 - begin)
                hypothesis = beginning(schema, self.people, known)
        self.count = count
        surprises: Surprises
        if textbook:
            surprises = Signed(NumericSparse(inner, rest, **how, sensitivity=rows))
        else:
            questions, answers = inner.within(rest * (1 - part), "questions"), inner.within(rest * part, "answers")
            surprises = Absolute(questions, answers, **how, sittings=sittings)
        super().__init__(
            surprises, update=update, hypothesis=hypothesis, queries=queries, beta=beta, remembers=not textbook
        )


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

    Where the number of people is not public it is bought, before the terms that depend on it are made: that there are
    too few of them is then a refusal that costs.
    """
    schema, rows = curator.schema, curator.relation.rows
    if total is not None:
        terms = choose(schema, budget, total, queries=queries, nats=nats, beta=beta, rows=rows)
        return opened(curator, budget, terms, total=total), terms
    refuse_large(schema)
    most = budget * (1 - SHARE)
    choose(schema, most, MOST_PEOPLE, queries=queries, nats=nats, beta=beta, rows=rows)  # refuses, at no cost
    inner = curator.within(budget, f"online, up to {queries} questions")
    people, rest = counted(inner, budget, None)
    kept = "What was charged stays charged."
    terms = choose(schema, rest, people, queries=queries, nats=nats, beta=beta, rows=rows, spent=kept)
    return opened(inner, rest, terms, total=people), terms


def refuse_large(schema: Schema) -> None:
    """Refuses a universe for which no hypothesis can be held, while nothing is spent."""
    MatchingWeights(1.0).start(schema, 1.0)


def opened(curator: Curator, budget: Budget, terms: Terms, *, total: Number) -> Online:
    """A session on terms that were made for this budget and so many people."""
    if curator.relation.rows > terms.rows:
        raise InvalidParameter(
            f"these terms are for people of at most {terms.rows} rows, and one of this table has up to "
            f"{curator.relation.rows}; choose them with rows={curator.relation.rows}. Nothing was spent."
        )
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
        sittings=terms.sittings,
    )
