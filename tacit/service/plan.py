"""A release before it is paid for: its price and its expected error, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, Any, Protocol

from tacit.curator.kernel import Curator
from tacit.curator.ledger import Ledger
from tacit.domain.query import Query
from tacit.domain.workload import Workload
from tacit.errors import BudgetExceeded, InvalidParameter, InvalidQuery, NoSuchGuarantee
from tacit.mechanisms.least import least_epsilon
from tacit.mechanisms.marginals import PredictedError, as_marginals, expected, release_marginals, summed
from tacit.mechanisms.measurement import Measurement, measurement
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, exact, proper, shown
from tacit.service.account import Account
from tacit.service.contract import Contract
from tacit.service.released import Release

if TYPE_CHECKING:
    from tacit.engines.table import Table

CONFIDENCE = "0.95"
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
    asked: Workload  # as it was said
    workload: Workload  # the marginals from which it is answered
    budget: Budget
    price: Fraction  # in the ledger's currency
    total: int | None  # the number of people, where it is public
    measurement: Measurement
    confidence: Fraction
    target: Fraction | None  # the error for which the budget was found

    @classmethod
    def of(
        cls,
        people: People,
        workload: Query,
        delta: Number,
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        confidence: Number = CONFIDENCE,
    ) -> Plan:
        """For an epsilon, or for the least one with which all errors are within `error`, as surely as is said."""
        if (epsilon is None) == (error is None):
            raise InvalidParameter("a plan is for an epsilon or for an error, one of them. Nothing was spent.")
        surely = proper(confidence, "confidence")
        contract, total = people.contract, known_total(people)
        asked = workload if isinstance(workload, Workload) else Workload((workload,))
        marginals = as_marginals(asked, contract.schema)
        facts = (contract.schema, marginals)
        target = None if error is None else exact(error, "the error")
        if target is not None:
            epsilon = least_epsilon(
                *facts,
                delta,
                contract.relation,
                error=target,
                beta=float(1 - surely),
                total=total,
                questions=summed(asked),
            )
        budget = Budget.of(epsilon or 0, delta)
        try:
            price = contract.budget.price(budget.loss())
        except NoSuchGuarantee:
            raise NoSuchGuarantee(
                f"the contract's budget is {contract.budget} with delta = 0, in which a release with delta has "
                "no bound; leave the delta out. Nothing was spent."
            ) from None
        measured = measurement(*facts, budget, contract.relation, total=total)
        return cls(people, asked, marginals, budget, price, total, measured, surely, target)

    @cached_property
    def error(self) -> PredictedError:
        """What the marginals will be off by."""
        return expected(self.measurement)

    @cached_property
    def largest(self) -> float | None:
        """What no error of all the answers is above, as surely as `confidence`; None where that is too much work."""
        try:
            return self.measurement.error_bound(float(1 - self.confidence), summed(self.asked))
        except InvalidQuery:
            return None

    def instead(self) -> Plan | None:
        """The same under the other kind of noise; None where that has no bound, or is too much to be drawn."""
        contract = self.people.contract
        delta = Fraction(0) if self.budget.currency is Currency.RHO else contract.delta
        if contract.budget.currency is Currency.EPSILON:
            return None
        how: dict[str, Fraction] = {"epsilon": self.epsilon} if self.target is None else {"error": self.target}
        try:
            return Plan.of(self.people, self.asked, delta, confidence=self.confidence, **how)
        except (NoSuchGuarantee, InvalidParameter):
            return None

    @property
    def epsilon(self) -> Fraction:
        """As it was promised."""
        return self._stated[0]

    @property
    def delta(self) -> Fraction:
        """As it was promised; 0 for pure privacy."""
        return self._stated[1]

    @property
    def _stated(self) -> tuple[Fraction, Fraction]:
        return self.budget.stated or (self.budget.amount, Fraction(0))

    @property
    def bytes(self) -> int:
        """What the release may need on the disk."""
        return BYTES_PER_COUNT * self.workload.size + BYTES_BESIDE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and may be regretted."""
        return delta_warnings(self.delta, self.people.contract.people)

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
        return f"a release at epsilon {shown(self.epsilon)}" + (f" and delta {shown(self.delta)}" if self.delta else "")

    def facts(self) -> list[tuple[str, str]]:
        """For people."""
        error, counted = self.error, self.people.contract.counted
        each = between(min(error.deviation.values()), max(error.deviation.values()))
        price = f", rho {shown(self.price, 4)}" if self.people.contract.budget.currency is Currency.RHO else ""
        sums = summed(self.asked)
        answered = [("answered", f"{sum(one.size for one in sums):,} other counts, from these marginals")] * bool(sums)
        return [
            ("marginals", f"{len(self.workload):,} tables with {self.workload.size:,} counts"),
            *answered,
            ("price", f"{str(self).removeprefix('a release at ')}{price}"),
            ("expected error", f"{each} {counted} a count (one standard deviation), {error.largest:,.0f} at the worst"),
        ]

    def describe(self) -> dict[str, Any]:
        """For machines; amounts are exact."""
        error = self.error
        return {
            "marginals": [list(columns) for columns in error.deviation],
            "counts": self.workload.size,
            "epsilon": shown(self.epsilon),
            "delta": shown(self.delta),
            "price": str(self.price),
            "currency": self.people.contract.budget.currency.value,
            "standard_deviation": list(error.deviation.values()),
            "mean_absolute_error": error.mean_absolute,
            "largest_error": error.largest,
            "warnings": list(self.warnings),
        }


def between(least: float, most: float) -> str:
    """One number, or from which to which, to a tenth; a dash for what is not known.

    >>> between(1.01, 1.02), between(1, 2000)
    ('1.0', '1.0 to 2,000.0')
    """
    if isnan(least):
        return "-"
    return f"{least:,.1f}" if f"{least:,.1f}" == f"{most:,.1f}" else f"{least:,.1f} to {most:,.1f}"


def delta_warnings(delta: Fraction, people: int | None) -> tuple[str, ...]:
    """Why a delta may be regretted; from the public number of people, where there is one."""
    if people is not None and delta:
        from tacit.privacy.promise import check_delta

        return tuple(filter(None, [check_delta(delta, people)]))
    if delta > LARGE_DELTA:
        return (f"delta={shown(delta)} lets a mechanism publish a person's record outright that often; choose less.",)
    return ()


def known_total(people: People) -> int | None:
    """The public number of rows, if every one of them is in the counts: no column drops one."""
    if not people.contract.rows_public:
        return None
    return None if people.contract.schema.dropping else people.contract.people
