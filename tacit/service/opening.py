"""How a session begins: what it reserves and buys, each step written down, so that none is lost or paid for twice."""

from __future__ import annotations

import uuid
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tacit.curator.kernel import Curator
from tacit.domain.query import MOST_PEOPLE, Marginal
from tacit.domain.schema import Schema
from tacit.errors import BudgetExceeded, InvalidBudget, InvalidParameter, NoSuchGuarantee, Refused, quoted
from tacit.mechanisms.beginning import beginning, bought
from tacit.mechanisms.fit import Measured
from tacit.mechanisms.online import refuse_large
from tacit.mechanisms.surprise import Absolute
from tacit.mechanisms.terms import FIRST, GRID, QUERIES, Terms, choose
from tacit.mechanisms.total import SHARE, told
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown, whole
from tacit.service.contract import Contract
from tacit.service.located import printable
from tacit.service.notebook import Notebook
from tacit.service.plan import People, known_total

SITTINGS = 8  # restarts that are allowed for where one threshold for all answers would be lost at the first


def begun(people: People, notes: Notebook, name: str, purpose: str, pays: bool) -> tuple[Terms, Absolute, Any]:
    """Terms, what is left to be paid for, and the first hypothesis; from wherever the notebook stands.

    A step that was charged and is not in the notebook fell to a crash. A block is found again by its name in the
    ledger; what was drawn is lost, and drawn anew for what is left of the budget. The terms are made of what is left
    after that, so no crash makes them promise more than can be paid for. Only who `pays` has anything reserved.
    """
    head = notes.lines[0]
    found = {key: line[key] for line in notes.lines for key in ("people", "start", "terms") if key in line}

    def noted(key: str, value: Any) -> Any:
        notes.add({key: value}, lasting=True)
        return value

    root, schema = people.curator(purpose=purpose), people.contract.schema
    budget, what = Budget.of(head["epsilon"], head["delta"]), f"session {name} {head['session']}"
    asked = {"queries": head["queries"], "sittings": SITTINGS, "rows": root.relation.rows}
    charged = _reserved(root, what) is not None
    if charged and "people" not in found:  # noted before the block was reserved: to count again would pass the budget
        raise _lost(name, notes)
    if not (pays or charged):
        raise InvalidParameter(
            f"the session {quoted(name)} was to be opened, and was not charged whole: say its epsilon, "
            f"{shown(exact(head['epsilon'], 'epsilon'))}. Nothing was spent."
        )
    try:
        n = found.get("people") or noted("people", _how_many(people, root, budget, what))
        if not charged:
            choose(schema, _rest(root, budget, what), n, **asked)
        inner = _block(root, what, _rest(root, budget, what))
        start = found.get("start")
        if start is None:
            ways = choose(schema, _left(inner), n, **asked).ways
            start = noted("start", [_kept(one) for one in bought(inner, _left(inner) * FIRST, ways)])
        known = [_measured(said, schema) for said in start]
        terms, rest = _terms(found.get("terms") or noted("terms", _made(schema, _left(inner), n, asked, known)))
    except NoSuchGuarantee as refusal:
        why = str(refusal).removesuffix(" Nothing was spent.")
        if _reserved(root, what) is not None:
            raise NoSuchGuarantee(f"{why} The session's budget was charged, and stays charged.") from None
        raise NoSuchGuarantee(f"{why} {_counted(people)}") from None
    except BudgetExceeded:
        if _reserved(root, what) is not None:
            raise _lost(name, notes) from None
        raise Refused(
            f"the ledger can no longer pay for the session {quoted(name)}: others have spent, or its people had to be "
            f"counted again too often. {_counted(people)}"
        ) from None
    left = Budget(rest, inner.budget.currency)
    surprises = Absolute(
        _block(inner, "questions", left * (1 - terms.share)),
        _block(inner, "answers", left * terms.share),
        threshold=terms.threshold,
        count=terms.count,
        grid=GRID,
        sittings=terms.sittings,
    )
    return terms, surprises, beginning(schema, n, known) if known else terms.rule.start(schema, n)


def session_budget(people: People, epsilon: Number, delta: Number | None) -> Budget:
    """What a session would reserve; refused where the ledger cannot pay for it."""
    budget = Budget.of(epsilon, people.contract.delta if delta is None else delta)
    try:
        people.contract.budget.price(budget.loss())
    except NoSuchGuarantee:
        raise NoSuchGuarantee(
            f"the contract's budget is {people.contract.budget} with delta = 0, in which a session with delta has no "
            "bound; leave the delta out. Nothing was spent."
        ) from None
    return budget


def foreseen(contract: Contract, budget: Budget, people: Number, queries: int, *, public: bool) -> tuple[Budget, Terms]:
    """The terms that a session would have with so many people, and what it would have them for; touches no data."""
    rest, rows = budget if public else budget * (1 - SHARE), contract.relation.rows
    return rest, choose(contract.schema, rest, people, queries=queries, sittings=SITTINGS, rows=rows)


def new_notebook(people: People, path: Path, epsilon: Number, delta: Number | None, queries: int | None) -> Notebook:
    """A notebook with its first line, for a session that can be paid for and whose rows can be read."""
    budget = session_budget(people, epsilon, delta)
    asked = whole(QUERIES if queries is None else queries, "the number of questions", 1, 10**12)
    refuse_large(people.contract.schema)  # and what promises nothing, for however many people: while nothing is spent
    foreseen(people.contract, budget, known_total(people) or MOST_PEOPLE, asked, public=True)
    price, left = people.contract.budget.price(budget.loss()), people.ledger.left
    if price > left:
        raise BudgetExceeded(
            f"a session at {budget} costs {shown(price, 6)}; {shown(left, 6)} is left. Nothing was spent."
        )
    people.table.read([(), *((name,) for name in people.contract.schema.names)])
    notes = Notebook(path, create=True)
    if not notes.lines:
        epsilon_, delta_ = budget.stated or (budget.amount, Fraction(0))
        said = {"session": uuid.uuid4().hex[:16], "subject": people.contract.exact_subject}
        notes.add({**said, "epsilon": str(epsilon_), "delta": str(delta_), "queries": asked}, lasting=True)
    return notes


def fits(
    people: People, notes: Notebook, name: str, epsilon: Number | None, delta: Number | None, queries: int | None
) -> None:
    """Refuses to go on with a session on other terms than it was opened on."""
    head = notes.lines[0]
    if head["subject"] != (own := people.contract.exact_subject):  # its answers are of cells, by their places
        raise InvalidParameter(
            f"the session {quoted(name)} was opened under another contract: "
            f"{people.contract.unlike(head['subject'], own)} differ. Nothing was spent."
        )
    said = {"epsilon": epsilon, "delta": delta}
    changed = [key for key, value in said.items() if value is not None and exact(value, key) != exact(head[key], key)]
    changed += ["queries"] if queries is not None and queries != head["queries"] else []
    if changed:
        raise InvalidBudget(
            f"the session {quoted(name)} has {', '.join(f'{key} {head[key]}' for key in changed)}, once and for all; "
            "leave it out, or open a session of another name. Nothing was spent."
        )


def _block(curator: Curator, what: str, budget: Budget) -> Curator:
    """The block of that name, as it was reserved before, or reserved now."""

    sequence = _reserved(curator, what)
    return curator.within(budget, what) if sequence is None else curator.resume(sequence)


def _reserved(curator: Curator, what: str) -> int | None:
    return next((e.sequence for e in curator.ledger.entries() if e.what == what and e.reserved is not None), None)


def _lost(name: str, notes: Notebook) -> Refused:
    return Refused(
        f"what the session {quoted(name)} bought is not in {printable(notes.path)}, and its block has nothing left to "
        "buy it again; open one of another name. Nothing was spent."
    )


def _counted(people: People) -> str:
    """What was spent where the block was not reserved."""
    gone = "Nothing" if known_total(people) is not None else f"No more than {shown(SHARE)} of it"
    return f"{gone} was spent, to count the people."


def _how_many(people: People, root: Curator, budget: Budget, what: str) -> float:
    """The public number of people, or one that is bought for its share; again, if it was lost and the budget has it."""
    if (known := known_total(people)) is not None:
        return float(known)
    share = budget * SHARE
    if _rest(root, budget, what).amount <= share.amount:
        raise BudgetExceeded("nothing would be left of the session's budget. Nothing was drawn.")
    return told(root.within(share, f"people of {what}"), share)


def _rest(root: Curator, budget: Budget, what: str) -> Budget:
    """What is left of a session's budget when the people have been counted, as often as that was."""
    counted = (e.reserved for e in root.ledger.entries() if e.what == f"people of {what}")
    left = budget.amount - sum(one.amount for one in counted if one is not None)
    if left <= 0:
        raise BudgetExceeded("nothing is left of the session's budget. Nothing was drawn.")
    return Budget(left, budget.currency)


def _left(curator: Curator) -> Budget:
    if not (left := curator.ledger.left):
        raise BudgetExceeded("nothing is left in the block. Nothing was drawn.")
    return Budget(left, curator.budget.currency)


def _kept(one: Measured) -> dict[str, Any]:
    return {"columns": list(one.query.columns), "answers": one.answers.tolist(), "variance": one.variance}


def _measured(said: dict[str, Any], schema: Schema) -> Measured:
    return Measured(Marginal.over(schema, *said["columns"]), np.array(said["answers"]), said["variance"])


def _made(schema: Schema, left: Budget, n: float, asked: dict[str, Any], known: list[Measured]) -> dict[str, Any]:
    """Terms for all that is left, as they are written down."""
    ways = max((len(one.query.columns) for one in known), default=0)
    before = left * (1 / (1 - FIRST)) if ways else left  # `choose` takes the share of the marginals away
    terms = choose(schema, before, n, **asked, ways=ways)
    return {**terms.describe(), "rest": str(left.amount)}


def _terms(said: dict[str, Any]) -> tuple[Terms, Fraction]:
    read = {**said, **{key: exact(said[key], key) for key in ("first", "share", "rest")}}
    return Terms(**{field.name: read[field.name] for field in fields(Terms)}), read["rest"]
