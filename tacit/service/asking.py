"""`tacit ask`: of a release, which is free; of a confidential table, in a session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InvalidParameter, TacitError
from tacit.mechanisms.answering import Answer
from tacit.rational import shown
from tacit.service.account import Account, interruptible
from tacit.service.people import People
from tacit.service.questions import questions
from tacit.service.released import Release, load
from tacit.service.session import Session, alone, each_of, identifier
from tacit.service.show import Reading, Screen, Waiting, count


@dataclass(frozen=True)
class Asking:
    """What was asked on the command line, and of whom."""

    target: Path
    questions: Sequence[str]
    confidence: float
    session: str | None
    epsilon: str | None
    delta: str | None
    queries: int | None
    request: str | None
    purpose: str
    by: str


def answer(asking: Asking, screen: Screen) -> None:
    """The whole command."""
    if asking.target.suffix.lower() != ".toml" or asking.target.is_dir():
        said = ("session", "epsilon", "delta", "queries", "request", "purpose")
        for name in said:
            if getattr(asking, name):
                raise InvalidParameter(f"--{name} is for a contract; a release answers for free. Nothing was spent.")
        _of_release(load(asking.target), asking, screen)
    else:
        _of_people(asking, screen)


def _of_release(released: Release, asking: Asking, screen: Screen) -> None:
    asked = questions(asking.questions)
    for question in asked:
        question.query(released.schema)
    with Waiting(screen, "answering"):
        answers = [released.select(question.text, confidence=asking.confidence) for question in asked]
    said = [
        (each.text.strip(), labels, one) for each, found in zip(asked, answers, strict=True) for labels, one in found
    ]
    rows = [(_question(text, labels), one) for text, labels, one in said]
    for _, one in rows:
        screen.bare(f"{one.value:.12g}")
    screen.table(
        ("people with", "count", "low", "high"),
        [(text, count(one.value), count(one.low), count(one.high)) for text, one in rows],
    )
    for text, one in rows:
        if one.value == one.standard_error == 0:
            screen.note(f"{text} is true of no cell of the columns: are its constants spelt as in the contract?")
    if any(one.measured for _, one in rows):
        often = f"{100 * asking.confidence:.6g} %"
        screen.say(f"The exact count lies between low and high {often} of the time. It cost nothing.")
    if not all(one.measured for _, one in rows):
        screen.say("A count without low and high is an estimate: no released marginal holds its columns together.")
    told = [{"predicate": text, **_group(labels), **one.describe()} for text, labels, one in said]
    screen.give({"folder": os.fspath(asking.target), "confidence": asking.confidence, "answers": told})


def _of_people(asking: Asking, screen: Screen) -> None:
    with People.open(asking.target, by=asking.by) as people:
        name = asking.session or asking.by
        if not name:
            raise InvalidParameter("--session is missing: the name under which the session is kept. Nothing was spent.")
        asked, schema = questions(asking.questions), people.schema
        texts = [question.text.strip() for question in asked]
        if asking.request is not None and len(texts) != 1:
            raise InvalidParameter("--request names one question, and there are several. Nothing was spent.")
        identifier(asking.request)
        for question in asked:  # refused while nothing is spent
            with question.located():
                cells = each_of(question.text, schema)
                if asking.request is not None:
                    alone(cells)
        with interruptible(people.ledger), _charges(people), _opened(people, name, asking, screen) as session:
            if asking.epsilon is not None:
                screen.note(str(session.terms))
            said = _told(people, session, texts, asking.request, screen)
            _shown(said, session, Account.of(people.contract, people.ledger), screen)


def _opened(people: People, name: str, asking: Asking, screen: Screen) -> Session:
    with Waiting(screen, "opening the session"):
        return people.session(
            name, epsilon=asking.epsilon, delta=asking.delta, queries=asking.queries, purpose=asking.purpose
        )


@contextmanager
def _charges(people: People) -> Iterator[None]:
    """Whatever stops it from here on says what was charged until then."""
    before = people.ledger.spent
    try:
        yield
    except TacitError as stop:
        text = str(stop)
        if gone := people.ledger.spent - before:
            text = (
                f"{text.removesuffix(' Nothing was spent.')} {shown(gone, 6)} was charged while this ran, and stays "
                "charged; what the session had answered is kept."
            )
        raise type(stop)(text) from None


Said = tuple[str, tuple[str, ...], Answer, str]  # the question, the group, the answer, what it cost


def _told(people: People, session: Session, texts: Sequence[str], request: str | None, screen: Screen) -> list[Said]:
    unknown = [text for text in texts if not session.known(text)]
    with Reading(screen, people.contract.rows_public) as progress:
        people.table.read([columns for text in unknown for columns in session.reads(text)], progress)  # in one pass
    said: list[Said] = []
    for text in texts:
        again = session.known(text)
        found = session.select(text) if request is None else [((), session.ask(text, request=request))]
        said += [(text, at, one, "again" if again else "free" if one.free else "paid") for at, one in found]
    return said


def _shown(said: Sequence[Said], session: Session, account: Account, screen: Screen) -> None:
    for _, _, one, _ in said:
        screen.bare(f"{one.value:.12g}")
    screen.table(
        ("people with", "count", "low", "high", "cost"),
        [(_question(text, labels), *_numbers(one), cost) for text, labels, one, cost in said],
        words=(0, 4),
    )
    if session.left:
        often = f"{100 * session.confidence:.6g} %"
        screen.say(
            f"With a chance of {often} each exact count that this session is ever asked lies between low and high."
        )
    else:
        screen.say("A count without low and high is what was learnt so far: nobody looks any more whether it is right.")
    screen.say(
        f"Session {session.name}: {session.answered:,} answered; {session.left:,} more surprises are paid for, and all "
        "else is free."
    )
    screen.give(
        {
            "session": session.name,
            "answered": session.answered,
            "left": session.left,
            "confidence": session.confidence,
            "terms": session.terms.describe(),
            "ledger": account.describe(),
            "answers": [
                {"question": text, **_group(labels), **one.describe(), "cost": cost} for text, labels, one, cost in said
            ],
        }
    )


def _question(text: str, labels: Sequence[str]) -> str:
    return f"{text} [{', '.join(labels)}]" if labels else text


def _group(labels: Sequence[str]) -> dict[str, list[str]]:
    return {"group": list(labels)} if labels else {}


def _numbers(one: Answer) -> tuple[str, str, str]:
    nothing = float("nan")
    low, high = (nothing if end is None else end for end in (one.low, one.high))
    return count(max(one.value, 0.0)), count(low), count(high)
