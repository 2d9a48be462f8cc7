"""`tacit init --buy-domains`: categories and bounds that are released under the contract's own ledger.

The ledger is made, and each step is charged, before a row is read for it. What is bought is public, and so are the
draft and all that is said of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

from tacit.curator.kernel import Curator
from tacit.domain.column import written
from tacit.domain.grid import Norm
from tacit.domain.listing import Values, clean
from tacit.domain.query import Marginal
from tacit.domain.schema import CELL, CLAMP
from tacit.engines.columns import DAYS, REAL, TEXT, UNTYPED, WHOLE, sort_of
from tacit.engines.listing import LONGEST, Unlisted
from tacit.errors import BudgetExceeded, DataUnavailable, InvalidParameter, TacitError, Unavailable, quoted
from tacit.primitives.additive import Laplace
from tacit.primitives.listing import Listing
from tacit.primitives.mechanism import Mechanism
from tacit.privacy.budget import Budget, Currency, checked_epsilon
from tacit.rational import shown
from tacit.service import ranges
from tacit.service.account import Account
from tacit.service.contract import BOUGHT, Contract
from tacit.service.domains import Domain, must_be_in, named
from tacit.service.drafting import Draft
from tacit.service.located import printable
from tacit.service.people import People
from tacit.service.plan import delta_warnings
from tacit.service.show import Screen, Waiting, plain
from tacit.service.starting import Begun, drafted, listed, write

CATEGORIES, WHOLES, NUMBERS, PERIODS = "categories", "whole", "numbers", "days"
KINDS: Mapping[str, tuple[str, ...]] = {  # as what a column of a sort can be bought; the first by default
    UNTYPED: (CATEGORIES, WHOLES, NUMBERS, PERIODS),
    TEXT: (CATEGORIES, WHOLES, NUMBERS, PERIODS),
    WHOLE: (WHOLES, CATEGORIES, NUMBERS),
    REAL: (NUMBERS, WHOLES),
    DAYS: (PERIODS,),
}
POWERS = [2**power for power in range(54)]
GRID = [*(-power for power in reversed(POWERS)), 0, *POWERS]  # on which bounds of numbers are looked for
FIRST, LAST = 1900, 2099  # the years in which days are looked for
MOST_LISTED = 10**5  # categories in a draft
BETA = 0.01  # how likely an empty cell may be taken for one with people
PURPOSE = "domains, by tacit init"


@dataclass(frozen=True)
class Purchase:
    """What is to be bought: an epsilon for all columns together, and of each the kind of its domain."""

    epsilon: Fraction
    kinds: Mapping[str, str]

    @property
    def each(self) -> Fraction:
        """What one column may cost."""
        return self.epsilon / len(self.kinds)

    def mechanism(self, name: str) -> Mechanism:
        """By what a column's domain is bought."""
        return Listing(self.each, LONGEST) if self.kinds[name] == CATEGORIES else Laplace(self.each)

    def price(self, budget: Budget) -> Fraction:
        """All of it, in a ledger's currency."""
        return sum((budget.price(self.mechanism(name).loss()) for name in self.kinds), Fraction(0))


def buy(begun: Begun, epsilon: str | None, kinds: Sequence[str], by: str, screen: Screen) -> None:
    """The whole command; `begun.epsilon` is the contract's total."""
    if epsilon is None or begun.epsilon is None:
        raise InvalidParameter(
            "--buy-domains needs --epsilon, what the domains may cost, and --total, all that may ever be spent on this "
            "table: its ledger is made before anything is bought. Nothing was spent."
        )
    spend = checked_epsilon(epsilon)
    draft = replace(drafted(begun), bought=True)
    if not draft.open:
        raise InvalidParameter("no column is left to buy: each has its domain or is left out. Nothing was spent.")
    purchase = Purchase(spend, wanted(draft, kinds))
    contract = _contract(draft, {name: _before(kind) for name, kind in purchase.kinds.items()}, begun)
    for warning in delta_warnings(contract.delta, contract.people):
        screen.warn(warning)
    with People(contract, by=by) as people, _unlisted(people) as values:
        _ = people.table  # opened, and its columns checked
        _must_fit(purchase, contract.budget, contract.budget.amount)
        for name in purchase.kinds:  # noise that cannot be drawn, before a ledger is made or one column is charged
            purchase.mechanism(name).check(contract.relation.moves(Values(name), Norm.L1), Fraction(1))
        if not os.path.lexists(contract.ledger):
            people.create_ledger().close()
        ledger = people.ledger
        _must_fit(purchase, contract.budget, ledger.left)
        before = ledger.spent
        found: dict[str, Domain] = {}
        try:
            for name in purchase.kinds:
                with Waiting(screen, f"buying the domain of {plain(name)}"):
                    domain = _bought(name, purchase, people, values)
                if domain is not None:
                    found[name] = domain
            draft = _with(draft, found)
            _kept(draft, begun)
        except KeyboardInterrupt:
            gone = ledger.spent - before
            told = f"{shown(gone)} was charged while this ran, and stays charged" if gone else "Nothing was spent"
            raise KeyboardInterrupt(f"interrupted. {told}.{_salvaged(draft, found, begun)}") from None
        except DataUnavailable as error:
            raise DataUnavailable(f"{error}{_salvaged(draft, found, begun)}") from None
        account = Account.of(contract, ledger)
    _report(draft, begun, purchase, found, account, screen)


def wanted(draft: Draft, said: Sequence[str]) -> dict[str, str]:
    """The kind of each open column: by its type, or as it was said."""
    chosen: dict[str, str] = {}
    for text in said:
        name, kind = (part.strip() for part in named(text, "--kind", "KIND"))
        must_be_in(name, draft.open, "--kind")
        allowed = KINDS[sort_of(draft.columns[name])]
        if kind not in allowed:
            raise InvalidParameter(
                f"--kind {quoted(name)}: {quoted(kind)} is none of {', '.join(allowed)}. Nothing was spent."
            )
        if name in chosen:
            raise InvalidParameter(f"--kind {quoted(name)} is given twice. Nothing was spent.")
        chosen[name] = kind
    return {name: chosen.get(name, KINDS[sort_of(draft.columns[name])][0]) for name in draft.open}


def _before(kind: str) -> Domain:
    """A public domain that stands for one that is not known yet; no row is out of it."""
    if kind == CATEGORIES:
        return Domain({"categories": ["?"]}, missing=CELL, outside=CELL, mark=BOUGHT)
    if kind == PERIODS:
        years = {"from": date(FIRST, 1, 1), "to": date(LAST, 12, 31), "by": "year"}
        return Domain(years, missing=CELL, outside=CELL, mark=BOUGHT)
    edges = [written(float(edge)) for edge in GRID]
    return Domain({"edges": edges}, missing=CELL, outside=CLAMP, mark=BOUGHT)


def _contract(draft: Draft, domains: Mapping[str, Domain], begun: Begun) -> Contract:
    return Contract.read(begun.out, _with(draft, domains).text)


def _with(draft: Draft, found: Mapping[str, Domain]) -> Draft:
    both = {**draft.domains, **found}
    return replace(draft, domains={name: both[name] for name in draft.columns if name in both})


@contextmanager
def _unlisted(people: People) -> Iterator[Unlisted]:
    contract = people.contract
    values = Unlisted(contract.schema, contract.location, contract.table, contract.person)
    try:
        yield values
    finally:
        values.close()


def _must_fit(purchase: Purchase, budget: Budget, left: Fraction) -> None:
    price = purchase.price(budget)
    if price > left:
        raise BudgetExceeded(
            f"domains at epsilon {shown(purchase.epsilon)} cost {shown(price, 6)} {budget.currency.value}; "
            f"{shown(left, 6)} is left. Nothing was spent."
        )


def _bought(name: str, purchase: Purchase, people: People, values: Unlisted) -> Domain | None:
    """One column's domain, charged and released; None where nothing stands out of the noise."""
    mechanism = purchase.mechanism(name)
    if purchase.kinds[name] == CATEGORIES:
        curator = Curator(values, people.ledger.signed(by=people.by, purpose=PURPOSE), people.neighbors)
        found = curator.release(mechanism, Values(name))
        categories = [text for value in found if (text := clean(value, LONGEST)) is not None]
        if not 0 < len(categories) <= MOST_LISTED:
            return None
        return Domain({"categories": categories}, missing=CELL, outside=CELL, mark=BOUGHT)
    curator = people.curator(purpose=PURPOSE)
    query = Marginal.over(people.schema, name)
    counts = curator.release(mechanism, query)[: people.schema[name].domain_size]
    assert isinstance(mechanism, Laplace)  # noqa: S101 - as `mechanism` made it
    least = mechanism.error_bound(BETA, coordinates=query.size, sensitivity=curator.sensitivity(query, Norm.L1))
    above = [cell for cell, count in enumerate(counts) if count > least]
    if not above:
        return None
    first, last = above[0], above[-1]
    if purchase.kinds[name] == PERIODS:
        return ranges.days(FIRST + first, FIRST + last, BOUGHT)
    if purchase.kinds[name] == WHOLES:
        return ranges.wholes(GRID[first], GRID[last + 1] - 1, BOUGHT)
    return ranges.reals(GRID[first], GRID[last + 1], BOUGHT)


def _kept(draft: Draft, begun: Begun) -> None:
    """Writes the draft; where that fails, writes it elsewhere and says where, for it was paid for."""
    try:
        write(draft, begun)
    except TacitError as error:
        why = str(error)
    else:
        return
    rescued = Path(tempfile.mkdtemp(prefix="tacit-")) / "people.toml"
    rescued.write_text(draft.text, encoding="utf-8")
    raise Unavailable(
        f"{why} The domains were paid for, and the draft lies in {printable(rescued)}; move it from there."
    )


def _salvaged(draft: Draft, found: Mapping[str, Domain], begun: Begun) -> str:
    """Keeps what was bought before something went wrong, and says where."""
    if not found:
        return ""
    _kept(_with(draft, found), begun)
    return f" What was bought before it lies in {printable(begun.out)}."


def _report(
    draft: Draft, begun: Begun, purchase: Purchase, found: Mapping[str, Domain], account: Account, screen: Screen
) -> None:
    out, price = printable(begun.out), purchase.price(account.budget)
    lacking = [name for name in purchase.kinds if name not in found]
    screen.bare(out)
    screen.say(f"Drafted {out} for {printable(draft.source)}, with domains that were bought.")
    cost = f"epsilon {shown(purchase.epsilon)}"
    if account.budget.currency is Currency.RHO:
        cost += f", rho {shown(price, 4)}"
    facts = [("bought", listed(found)), ("cost", cost), *account.facts()]
    if lacking:
        facts.insert(1, ("nothing found", f"{listed(lacking)}: no value has enough rows at this epsilon"))
    screen.facts([*facts, ("to fill in", listed(f"{what} (line {line})" for line, what in draft.lines_to_fill))])
    screen.say(f"Next: tacit check {out}")
    screen.give(
        {
            "contract": os.fspath(begun.out),
            "source": draft.source,
            "bought": {name: found[name].column(name).describe() for name in found if name in draft.domains},
            "not_found": lacking,
            "price": str(price),
            "ledger": account.describe(),
        }
    )
