"""A session that lasts: questions, one after the other, under one block of a ledger, with a notebook beside it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from threading import RLock
from typing import Any

from tacit.curator import process
from tacit.domain.query import Columns, LinearQuery
from tacit.domain.schema import Schema
from tacit.domain.sql import asked
from tacit.errors import Halted, InvalidParameter, InvalidQuery, quoted
from tacit.mechanisms.answering import Answer, Answering, Paid, question
from tacit.rational import Number
from tacit.service.notebook import Notebook, place, read_again, written
from tacit.service.opening import begun, fits, new_notebook
from tacit.service.plan import People

MOST_GROUPS = 1000  # answers of one question with `group by`
LONGEST_REQUEST, LONGEST_TEXT = 200, 400


class Session:
    """Answers that are free unless the public hypothesis is wrong; everything is charged once, when it is opened.

    It is kept by its name beside the ledger: what it bought, what it answered, and to which request. A request that is
    repeated, by its identifier or in other words, gets the identical answer at no cost, also after a restart. A restart
    loses the secret threshold, which is paid for anew from what is left in the session's own block, with the first
    question that is new.
    Privacy: the block's budget, which the ledger charged before anything was read; nothing here can exceed it.
    Accuracy: `terms.error` for free answers, `terms.paid_error` for paid ones; all of them, as often as it says.
    """

    def __init__(self, people: People, notes: Notebook, name: str, purpose: str, pays: bool) -> None:
        """For `Session.opened`, which writes the first line of the notes."""
        self.name, self.schema = name, people.contract.schema
        self._notes, self._here, self._turn = notes, process.here(), RLock()
        self._answers: dict[str, Answer] = {}
        self._requests: dict[str, str] = {}
        paid = [one for one in map(self._heard, notes.lines) if one is not None]
        self.terms, surprises, hypothesis = begun(people, notes, name, purpose, pays)
        self._answering = Answering(
            surprises,
            update=self.terms.rule,
            hypothesis=hypothesis,
            queries=self.terms.queries,
            beta=self.terms.beta,
            paid=paid,
            remembers=False,
        )

    @classmethod
    def opened(
        cls,
        people: People,
        name: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        queries: int | None = None,
        purpose: str = "",
    ) -> Session:
        """Goes on with the session of that name; with an epsilon, opens it where there is none yet."""
        path = place(people.contract.ledger, name)
        notes = Notebook(path) if os.path.lexists(path) else None
        if notes is None or not notes.lines:  # empty where a crash came before the first line: nothing was charged
            if notes is not None:
                notes.close()
            if epsilon is None:
                raise InvalidParameter(
                    f"there is no session {quoted(name)} yet: an epsilon opens it, all of which is spent at once. "
                    f"{_others(path)}Nothing was spent."
                )
            notes = new_notebook(people, path, epsilon, delta, queries)
        try:
            fits(people, notes, name, epsilon, delta, queries)
            return cls(people, notes, name, purpose, epsilon is not None)
        except BaseException:
            notes.close()
            raise

    @property
    def left(self) -> int:
        """How many answers it will still pay for."""
        return self._answering.left

    @property
    def confidence(self) -> float:
        """How surely all its answers are within their errors."""
        return self._answering.confidence

    @property
    def hypothesis(self) -> Any:
        """What answers: public, and free to keep."""
        return self._answering.hypothesis

    @property
    def answered(self) -> int:
        """How many different questions it has answered."""
        return len(self._answers)

    def known(self, text: str | LinearQuery) -> bool:
        """Whether all of it was answered before, so that asking it again cannot cost anything."""
        return all(question(query) in self._answers for query in self._each(text))

    def price(self, text: str | LinearQuery) -> int:
        """The most paid answers that a question can use up: none if it was answered before, or if none is left."""
        return min(sum(question(query) not in self._answers for query in self._each(text)), self.left)

    def reads(self, text: str | LinearQuery) -> list[Columns]:
        """The column sets that a question reads, for those who count ahead of asking."""
        return [columns for query in self._each(text) for columns in query.reads]

    def ask(self, text: str | LinearQuery, *, request: str | None = None) -> Answer:
        """How many people there are: a predicate, `select count(*) where ...`, or a query.

        A request may have an identifier: with the same one it has the same answer, and nothing else can be asked by it.
        """
        queries = self._each(text)
        return self._told(alone(queries), text, identifier(request))

    def select(self, text: str) -> list[tuple[tuple[str, ...], Answer]]:
        """The labels and the answer of every group of the public domain; of one, without labels, of a predicate."""
        labels = asked(text, self.schema).labels
        return [(label, self._told(one, text, None)) for label, one in zip(labels, self._each(text), strict=True)]

    def close(self) -> None:
        """Lets go of its name. The secret threshold is lost; all else is kept."""
        self._notes.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.name}, {self.answered} answered, {self.left} left to pay for)"

    def _each(self, text: str | LinearQuery) -> list[LinearQuery]:
        if not isinstance(text, str):
            self._answering.check(text)
            written(text)  # refuses what could not be kept
            return [text]
        return each_of(text, self.schema)

    def _told(self, query: LinearQuery, text: object, request: str | None) -> Answer:
        if self._here != process.here():
            raise Halted("this session was opened in another process; open it there. Nothing was drawn.")
        key = question(query)
        with self._turn:
            if request is not None and self._requests.get(request, key) != key:
                raise InvalidParameter(
                    f"the request {quoted(request)} asked something else before; a new question needs a new "
                    "identifier. Nothing was spent."
                )
            if (known := self._answers.get(key)) is not None:
                if request is not None and request not in self._requests:
                    self._notes.add({"request": request, "again": key}, lasting=False)
                    self._requests[request] = key
                return known
            self._notes.check()
            answer = self._answering.ask(query)
            line = {"question": key, "request": request, "text": str(text)[:LONGEST_TEXT], **asdict(answer)}
            if not answer.free:
                line |= {"asked": written(query), "direction": self._answering.paid[-1].direction}
            self._notes.add(line, lasting=not answer.free)  # and only then is it told
            self._answers[key] = answer
            if request is not None:
                self._requests[request] = key
            return answer

    def _heard(self, line: dict[str, Any]) -> Paid | None:
        """Takes an answer back in; what was paid for is to be learnt again."""
        key, request = line.get("question"), line.get("request")
        if request is not None:
            self._requests[request] = key or line["again"]
        if key is None:
            return None
        self._answers[key] = Answer(line["value"], line["free"], line["error"], line["left"])
        return None if line["free"] else Paid(read_again(line["asked"], self.schema), line["value"], line["direction"])


def each_of(text: str, schema: Schema) -> list[LinearQuery]:
    """What a text asks a session: one question, or one for each group."""
    found = asked(text, schema)
    if found.query.size > MOST_GROUPS:
        raise InvalidQuery(
            f"this question has {found.query.size} groups; a session answers {MOST_GROUPS} at a time. "
            "Nothing was spent."
        )
    return list(found.cells(schema))


def alone(queries: list[LinearQuery]) -> LinearQuery:
    """The only question."""
    if len(queries) != 1:
        raise InvalidQuery("a question with `group by` has many answers; `select` gives them. Nothing was spent.")
    return queries[0]


def identifier(request: str | None) -> str | None:
    """A request's identifier, if it can be one."""
    if request is None:
        return None
    if not isinstance(request, str) or not request.isprintable() or not 1 <= len(request) <= LONGEST_REQUEST:
        raise InvalidParameter(
            f"a request's identifier has 1 to {LONGEST_REQUEST} characters that can be seen, not {quoted(request)}. "
            "Nothing was spent."
        )
    return request


def _others(path: Path) -> str:
    names = sorted(other.stem for other in path.parent.glob("*.session"))[:20]
    return f"There are {', '.join(names)}. " if names else ""
