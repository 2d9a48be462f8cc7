"""What was spent of a budget, in the words of the promise that was made at the door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.curator.ledger import Ledger
from tacit.privacy.budget import Budget, Currency
from tacit.privacy.conversion import epsilon_of, rho_of
from tacit.rational import floor_to, shown
from tacit.service.contract import Contract


@dataclass(frozen=True)
class Account:
    """A budget and what was spent of it, under the promise that was made at the door."""

    budget: Budget
    epsilon: Fraction
    delta: Fraction
    spent: Fraction

    @classmethod
    def of(cls, contract: Contract, ledger: Ledger) -> Account:
        """As the ledger stands now."""
        return cls(contract.budget, contract.epsilon, contract.delta, ledger.spent)

    @property
    def left(self) -> Fraction:
        """In the budget's currency."""
        return self.budget.amount - self.spent

    @property
    def at(self) -> str:
        """At which delta an epsilon is meant, where there is one."""
        return f" at delta {shown(self.delta)}" if self.delta else ""

    @property
    def spent_epsilon(self) -> Fraction:
        """All that was spent, as one promise at the contract's delta."""
        if self.budget.currency is Currency.EPSILON or not self.spent:
            return self.spent
        return min(epsilon_of(self.spent, self.delta), self.epsilon)

    def affordable(self) -> Fraction:
        """The largest epsilon, to three digits, of one more release at the contract's delta; 0 where there is none."""
        if self.budget.currency is Currency.EPSILON or self.left <= 0:
            return max(self.left, Fraction(0))
        grid, epsilon = Fraction(1, 1000), epsilon_of(self.left, self.delta)
        epsilon = floor_to(epsilon, grid)
        while epsilon > 0 and rho_of(epsilon, self.delta) > self.left:
            epsilon -= grid
        return epsilon

    def facts(self) -> list[tuple[str, str]]:
        """For people."""
        left = shown(self.affordable(), 4)
        facts = [
            ("spent in all", f"epsilon {shown(self.spent_epsilon, 4)} of {shown(self.epsilon)}{self.at}"),
            ("left", f"enough for one more release of epsilon {left}" if self.left else "nothing"),
        ]
        if self.budget.currency is Currency.RHO:
            facts.append(("in rho", f"{shown(self.spent, 4)} of {shown(self.budget.amount, 4)}"))
        return facts

    def describe(self) -> dict[str, Any]:
        """For machines; amounts are exact."""
        return {
            "epsilon": shown(self.epsilon),
            "delta": shown(self.delta),
            "currency": self.budget.currency.value,
            "budget": str(self.budget.amount),
            "spent": str(self.spent),
            "left": str(self.left),
            "spent_epsilon": float(self.spent_epsilon),
            "affordable_epsilon": float(self.affordable()),
        }


@contextmanager
def interruptible(ledger: Ledger) -> Iterator[None]:
    """An interrupt says what was charged in the meantime; where that was nothing, it says so."""
    before = ledger.spent
    try:
        yield
    except KeyboardInterrupt:
        gone = ledger.spent - before
        told = f"{shown(gone)} was charged while this ran, and stays charged" if gone else "Nothing was spent"
        raise KeyboardInterrupt(f"interrupted. {told}.") from None
