"""`tacit plan`: what a release or a session would cost and how wrong it would be, from public facts alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.mechanisms.forecast import simulate
from tacit.mechanisms.marginals import summed
from tacit.rational import shown, whole
from tacit.service import plotting
from tacit.service.located import printable
from tacit.service.opening import foreseen, session_budget
from tacit.service.people import People
from tacit.service.plan import Plan, between, known_total
from tacit.service.request import workload
from tacit.service.show import Counting, Screen

MOST_REHEARSED = 10**6
MOST_SHOWN = 40  # lines of a table


@dataclass(frozen=True)
class Wished:
    """What was asked for on the command line."""

    contract: Path
    epsilon: str | None
    error: str | None
    confidence: str
    workload: str | None
    online: bool
    delta: str | None
    queries: int
    people: int | None
    rehearse: int
    seed: int
    plot: Path | None
    force: bool


def foresee(wished: Wished, screen: Screen) -> None:
    """The whole command."""
    people = People.open(wished.contract)
    people.contract.must_be_public()  # a number of cells would tell of the rows that a domain was read off
    if wished.online == (wished.workload is not None):
        raise InvalidParameter(
            "say --workload for a release or --online for a session, one of them. Nothing was spent."
        )
    if wished.online:
        if wished.epsilon is None or wished.error is not None:
            raise InvalidParameter("--online is planned for an --epsilon, not for an --error. Nothing was spent.")
        if wished.plot is not None:
            raise InvalidParameter("--plot draws the errors of a release, not of a session. Nothing was spent.")
        _session(people, wished, wished.epsilon, screen)
    else:
        if (wished.epsilon is None) == (wished.error is None):
            raise InvalidParameter("say --epsilon, or the --error that it is for, one of them. Nothing was spent.")
        plan = people.plan(
            workload(wished.workload or "", people.schema),
            epsilon=wished.epsilon,
            delta=wished.delta,
            error=wished.error,
            confidence=wished.confidence,
        )
        show_plan(plan, screen, wished.plot, wished.force)


def show_plan(plan: Plan, screen: Screen, plot: Path | None = None, force: bool = False) -> None:
    """A release before it is paid for, under either kind of noise."""
    plans = [plan, *filter(None, [plan.instead()])]
    if plot is not None:
        _draw(plans, plot, force)
    for warning in plan.warnings:
        screen.warn(warning)
    screen.bare(shown(plan.price if plan.target is None else plan.epsilon))
    screen.say(f"A plan for {plan.people.contract.name}: nothing was read, and nothing was spent.")
    screen.facts(plan.facts())
    often = f"{float(100 * plan.confidence):.6g} %"
    screen.table(
        ("noise", "epsilon", "delta", plan.people.contract.budget.currency.value, f"all errors, {often}"),
        [
            (_noise(one), shown(one.epsilon), shown(one.delta), shown(one.price, 4), _within(one.largest))
            for one in plans
        ],
    )
    if len(plans) > 1:
        screen.say(f"--delta says which noise is drawn: {_noise(plan)}'s, in this plan.")
    rows = list(zip(*(_errors(one) for one in plans), strict=True))
    screen.table(
        ("standard deviation of", "counts", *map(_noise, plans)),
        [(*of[0][:2], *(errors for _, _, errors in of)) for of in rows[:MOST_SHOWN]],
    )
    if len(rows) > MOST_SHOWN:
        screen.say(f"... and {len(rows) - MOST_SHOWN:,} more; --json has all of them.")
    if plot is not None:
        screen.say(f"Drawn into {printable(plot)}.")
    drawn = {} if plot is None else {"plot": os.fspath(plot)}
    screen.give({"plan": {**plan.describe(), "noises": [_described(one) for one in plans], **drawn}})


def _draw(plans: Sequence[Plan], plot: Path, force: bool) -> None:
    with plotting.shelf_for(plot, force) as shelf:
        errors = [
            (
                f"{_noise(one)}, epsilon {shown(one.epsilon)}, delta {shown(one.delta)}",
                list(one.error.deviation.values()),
            )
            for one in plans
        ]
        tables = [" × ".join(columns) for columns in plans[0].error.deviation]
        plotting.draw_errors(shelf, f"{plans[0].people.contract.name}: what its tables will be off by", tables, errors)


def _noise(plan: Plan) -> str:
    return type(plan.measurement.mechanism).__name__


def _within(error: float | None) -> str:
    return "-" if error is None else f"within {error:,.0f} people"


def _errors(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """What is counted, in how many counts, and their standard deviations: marginals, then sums of their cells."""
    for columns, deviation in plan.error.deviation.items():
        yield " × ".join(columns), f"{plan.people.contract.schema.cells(columns):,}", between(deviation, deviation)
    for query in summed(plan.asked):
        errors = plan.measurement.standard_error(query)
        yield str(query), f"{query.size:,}", between(float(errors.min()), float(errors.max()))


def _described(plan: Plan) -> dict[str, Any]:
    sums = [(str(query), plan.measurement.standard_error(query)) for query in summed(plan.asked)]
    return {
        "noise": _noise(plan),
        "epsilon": shown(plan.epsilon),
        "delta": shown(plan.delta),
        "price": str(plan.price),
        "confidence": float(plan.confidence),
        "error": plan.largest,
        "standard_deviation": list(plan.error.deviation.values()),
        "sums": [
            {"query": text, "least": _known(errors.min()), "largest": _known(errors.max())} for text, errors in sums
        ],
    }


def _known(error: float) -> float | None:
    return None if isnan(error) else float(error)


def _session(people: People, wished: Wished, epsilon: str, screen: Screen) -> None:
    known = known_total(people)
    if known is None and wished.people is None:
        raise InvalidParameter(
            f"the number of {people.contract.counted} is private here, and a session buys it: say about how many there "
            "are, by --people. Nothing was spent."
        )
    total = known if known is not None else whole(wished.people, "--people", 1, 10**12)
    asked, seed = whole(wished.rehearse, "--rehearse", 0, MOST_REHEARSED), whole(wished.seed, "--seed", 0, 2**63)
    budget = session_budget(people, epsilon, wished.delta)
    rest, terms = foreseen(people.contract, budget, total, wished.queries, public=known is not None)
    forecast = None
    if asked:
        with Counting(screen, "rehearsing") as progress:
            forecast = simulate(
                people.schema,
                rest,
                terms,
                asked=asked,
                neighbors=people.neighbors,
                seed=seed,
                progress=progress,
            )
    price = people.contract.budget.price(budget.loss())
    screen.bare(shown(price))
    screen.say(f"A session of {people.contract.name}: nothing was read, and nothing was spent.")
    screen.facts(
        [
            ("price", f"{shown(price, 4)} {people.contract.budget.currency.value}, all of it when it is opened"),
            ("free answers", f"within {terms.error:,.0f} {terms.counted} ({terms.error / terms.people:.2%} of them)"),
            ("paid answers", f"{terms.count:,}, each within {terms.paid_error:,.0f} {terms.counted}"),
            ("paid for", f"what seems more than {terms.threshold:,} {terms.counted} off"),
            ("all of this", f"with probability {1 - terms.beta:g}, for up to {terms.queries:,} questions"),
        ]
    )
    screen.say(str(terms))
    if forecast is not None:
        screen.say(str(forecast))
    said = {"price": str(price), "terms": terms.describe()}
    screen.give({"plan": {**said, "rehearsal": None if forecast is None else forecast.describe()}})
