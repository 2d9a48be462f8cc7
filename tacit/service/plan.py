"""A release before it is paid for: its price and its expected error, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from tacit.curator.kernel import Curator
from tacit.curator.ledger import Ledger
from tacit.domain.query import LinearQuery, Marginal, Query
from tacit.domain.schema import Schema
from tacit.domain.workload import Workload
from tacit.errors import BudgetExceeded, InvalidQuery, NoSuchGuarantee, quoted
from tacit.mechanisms.marginals import PredictedError, predicted_error, release_marginals
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, shown
from tacit.service.account import Account
from tacit.service.contract import Contract
from tacit.service.released import Release

if TYPE_CHECKING:
    from tacit.engines.table import Table

LARGE_DELTA = Fraction(1, 100_000)  # for however many people
BYTES_PER_COUNT, BYTES_BESIDE = 16, 2**20


class People(Protocol):
    """What a plan needs of a table under its contract."""

    @property
    def contract(self) -> Contract: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def table(self) -> Table: ...

    def curator(self, *, purpose: str) -> Curator: ...


@dataclass(frozen=True)
class Plan:
    """What `run` will do; nothing has been read or spent."""

    people: People
    workload: Workload
    budget: Budget
    price: Fraction  # in the ledger's currency
    total: int | None  # the number of people, where it is public
    error: PredictedError

    @classmethod
    def of(cls, people: People, workload: Query, epsilon: Number, delta: Number) -> Plan:
        budget = Budget.of(epsilon, delta)
        asked = as_marginals(workload, people.contract.schema)
        try:
            price = people.contract.budget.price(budget.loss())
        except NoSuchGuarantee:
            raise NoSuchGuarantee(
                f"the contract's budget is {people.contract.budget} with delta = 0, in which a release with delta has "
                "no bound; leave the delta out. Nothing was spent."
            ) from None
        total = known_total(people)
        error = predicted_error(people.contract.schema, asked, budget, people.contract.relation, total=total)
        return cls(people, asked, budget, price, total, error)

    @property
    def bytes(self) -> int:
        """What the release may need on the disk."""
        return BYTES_PER_COUNT * self.workload.size + BYTES_BESIDE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and may be regretted."""
        delta = (self.budget.stated or (Fraction(0), Fraction(0)))[1]
        return delta_warnings(delta, self.people.contract.people)

    def check(self) -> None:
        """Refuses what the ledger cannot pay for or the source does not hold, before a row is read."""
        left = self.people.ledger.left
        if self.price > left:
            account = Account.of(self.people.contract, self.people.ledger)
            rest = account.affordable()
            pure = self.budget.currency is Currency.EPSILON and account.budget.currency is Currency.RHO
            raise BudgetExceeded(
                f"{self} costs {shown(self.price, 6)} {account.budget.currency.value}; {shown(left, 6)} is left"
                + (f", which pays for epsilon {shown(rest, 4)}{account.at}" if rest else "")
                + (". Pure privacy is dear in this ledger: state a delta" if pure else "")
                + ". Nothing was spent."
            )
        _ = self.people.table

    def read(self, progress: Callable[[int, int | None], None] | None = None) -> None:
        """Counts the rows ahead of the charge, so that a source that fails costs nothing."""
        self.people.table.read(self.workload.reads, progress)

    def run(self, *, purpose: str = "") -> Release:
        """Reads, charges, draws; what comes back is free for ever."""
        self.check()
        self.read()
        curator = self.people.curator(purpose=purpose)
        measured = release_marginals(
            curator, self.workload, self.budget, total=self.total, nonnegative=False, purpose=purpose
        )
        return Release(measured)

    def __str__(self) -> str:
        epsilon, delta = self.budget.stated or (self.budget.amount, Fraction(0))
        return f"a release at epsilon {shown(epsilon)}" + (f" and delta {shown(delta)}" if delta else "")

    def facts(self) -> list[tuple[str, str]]:
        """For people."""
        least, most = min(self.error.deviation.values()), max(self.error.deviation.values())
        counted = self.people.contract.counted
        each = f"{least:,.1f}" if f"{least:,.1f}" == f"{most:,.1f}" else f"{least:,.1f} to {most:,.1f}"
        price = f", rho {shown(self.price, 4)}" if self.people.contract.budget.currency is Currency.RHO else ""
        return [
            ("marginals", f"{len(self.workload):,} tables with {self.workload.size:,} counts"),
            ("price", f"{str(self).removeprefix('a release at ')}{price}"),
            (
                "expected error",
                f"{each} {counted} a count (one standard deviation), {self.error.largest:,.0f} at the worst",
            ),
        ]

    def describe(self) -> dict[str, Any]:
        """For machines; amounts are exact."""
        epsilon, delta = self.budget.stated or (self.budget.amount, Fraction(0))
        return {
            "marginals": [list(columns) for columns in self.error.deviation],
            "counts": self.workload.size,
            "epsilon": shown(epsilon),
            "delta": shown(delta),
            "price": str(self.price),
            "currency": self.people.contract.budget.currency.value,
            "standard_deviation": list(self.error.deviation.values()),
            "mean_absolute_error": self.error.mean_absolute,
            "largest_error": self.error.largest,
            "warnings": list(self.warnings),
        }


def delta_warnings(delta: Fraction, people: int | None) -> tuple[str, ...]:
    """Why a delta may be regretted; from the public number of people, where there is one."""
    if people is not None and delta:
        from tacit.privacy.promise import check_delta

        return tuple(filter(None, [check_delta(delta, people)]))
    if delta > LARGE_DELTA:
        return (f"delta={shown(delta)} lets a mechanism publish a person's record outright that often; choose less.",)
    return ()


def as_marginals(workload: Query, schema: Schema) -> Workload:
    """The marginals from which a workload of weighted sums is answered."""
    workload.check(schema)
    queries = workload.queries if isinstance(workload, Workload) else (workload,)
    for query in queries:
        if not isinstance(query, LinearQuery):
            raise InvalidQuery(
                f"{quoted(query)} is no weighted count; marginals, conjunctions, ranges, prefixes, parities and "
                "predicates can be released now. Nothing was spent."
            )
    sets = {frozenset(columns): columns for query in reversed(queries) for columns in query.reads if columns}
    order = dict.fromkeys(frozenset(columns) for query in queries for columns in query.reads if columns)
    if not order:
        raise InvalidQuery("this workload reads no column. Nothing was spent.")
    return Workload(tuple(Marginal.over(schema, *sets[columns]) for columns in order))


def known_total(people: People) -> int | None:
    """The public number of rows, if every one of them is in the counts: no column drops one."""
    if not people.contract.rows_public:
        return None
    return None if people.contract.schema.dropping else people.contract.people
