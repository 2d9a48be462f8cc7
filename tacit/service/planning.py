"""`tacit plan`: what a release or a session would cost and how wrong it would be, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InvalidParameter
from tacit.mechanisms.forecast import simulate
from tacit.rational import shown, whole
from tacit.service.opening import foreseen, session_budget
from tacit.service.people import People
from tacit.service.plan import Plan, known_total
from tacit.service.request import workload
from tacit.service.show import Counting, Screen

MOST_REHEARSED = 10**6


@dataclass(frozen=True)
class Wished:
    """What was asked for on the command line."""

    contract: Path
    epsilon: str
    workload: str | None
    online: bool
    delta: str | None
    queries: int
    people: int | None
    rehearse: int
    seed: int


def foresee(wished: Wished, screen: Screen) -> None:
    """The whole command."""
    people = People.open(wished.contract)
    if wished.online == (wished.workload is not None):
        raise InvalidParameter(
            "say --workload for a release or --online for a session, one of them. Nothing was spent."
        )
    if wished.online:
        _session(people, wished, screen)
    else:
        asked = workload(wished.workload or "", people.schema)
        show_plan(people.plan(asked, epsilon=wished.epsilon, delta=wished.delta), screen)


def show_plan(plan: Plan, screen: Screen) -> None:
    """A release before it is paid for."""
    for warning in plan.warnings:
        screen.warn(warning)
    screen.bare(shown(plan.price))
    screen.say(f"A plan for {plan.people.contract.name}: nothing was read, and nothing was spent.")
    screen.facts(plan.facts())
    screen.give({"plan": plan.describe()})


def _session(people: People, wished: Wished, screen: Screen) -> None:
    known = known_total(people)
    if known is None and wished.people is None:
        raise InvalidParameter(
            f"the number of {people.contract.counted} is private here, and a session buys it: say about how many there "
            "are, by --people. Nothing was spent."
        )
    total = known if known is not None else whole(wished.people, "--people", 1, 10**12)
    asked, seed = whole(wished.rehearse, "--rehearse", 0, MOST_REHEARSED), whole(wished.seed, "--seed", 0, 2**63)
    budget = session_budget(people, wished.epsilon, wished.delta)
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
