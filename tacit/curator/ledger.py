"""What has been spent, written down before anything is drawn: the ledger, its entries, and one that lives in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import lcm
from typing import NamedTuple, NoReturn, Protocol

from tacit.curator import process
from tacit.errors import BudgetExceeded, InvalidBudget, InvalidParameter, LedgerUnavailable, quoted
from tacit.privacy.budget import Budget, Currency, Loss
from tacit.rational import ceil_to, shown, whole

MOST_BITS = 4096  # of a running total's denominator; beyond it a charge is rounded up to the grain
GRAIN = Fraction(1, 10**40)
LONGEST_WHAT, LONGEST_BY, LONGEST_PURPOSE = 240, 80, 240
ROOT = 0  # the block of a charge that lies in no block

clock = time.time_ns  # tells when; never decides anything


@dataclass(frozen=True)
class Entry:
    """One charge as it was written down; the order is that of `sequence`, never that of `when`."""

    sequence: int
    block: int | None  # the sequence number of the entry that reserved it
    what: str
    amount: Fraction
    currency: Currency
    when: str  # UTC, as the clock had it
    by: str
    purpose: str
    reserved: Budget | None  # what a block may spend, in the block's own currency


class Ledger(Protocol):
    """A budget and all that was charged to it.

    Privacy: the charges sum to at most the budget, exactly, so all that was released under them is epsilon-DP
    (Thm 3.16) or rho-zCDP (Bun & Steinke 2016, Lemma 1.7). That the next charge depends on the last answer, or that
    several run at once, changes nothing in either currency (Vadhan & Wang 2021; Lyu 2022).
    """

    @property
    def budget(self) -> Budget: ...

    @property
    def spent(self) -> Fraction: ...

    @property
    def left(self) -> Fraction: ...

    def charge(self, what: str, loss: Loss) -> None:
        """Records the loss, durably on return; or refuses, and nothing is written."""
        ...

    def block(self, what: str, budget: Budget) -> Ledger:
        """Charges the whole budget now; the ledger that comes back can spend no more, and nothing is given back."""
        ...

    def reopened(self, sequence: int) -> Ledger:
        """The block that an earlier entry here reserved, with what is left in it; costs nothing, for it was paid."""
        ...

    def entries(self) -> Iterator[Entry]:
        """What was charged here and in the blocks within, in order."""
        ...


class MemoryLedger:
    """A ledger that dies with its process: for trials and tests, and for data that dies with it too.

    >>> ledger = MemoryLedger(Budget.of(1))
    >>> for _ in range(10):
    ...     ledger.charge("Laplace(epsilon=1/10)", Loss.pure(Fraction(1, 10)))
    >>> ledger.charge("Laplace(epsilon=1/10)", Loss.pure(Fraction(1, 10)))
    Traceback (most recent call last):
    tacit.errors.BudgetExceeded: Laplace(epsilon=1/10) costs 0.1; 0 is left. Nothing was drawn.
    """

    __slots__ = ("_account", "_book", "_by", "_purpose", "budget")

    def __init__(self, budget: Budget, *, by: str = "", purpose: str = "") -> None:
        self.budget = storable(budget)
        self._account = _Account(budget.amount)
        self._book = _Book()
        self._by, self._purpose = line(by, LONGEST_BY), line(purpose, LONGEST_PURPOSE)

    @property
    def spent(self) -> Fraction:
        return self.budget.amount - self.left

    @property
    def left(self) -> Fraction:
        with self._book.lock:
            return self._account.left

    def charge(self, what: str, loss: Loss) -> None:
        self._append(what, self.budget.price(loss), None)

    def block(self, what: str, budget: Budget) -> MemoryLedger:
        inner = MemoryLedger(budget, by=self._by, purpose=self._purpose)
        inner._account.block = self._append(what, self.budget.price(budget.loss()), budget)
        inner._book = self._book
        self._book.accounts[inner._account.block] = inner._account
        return inner

    def reopened(self, sequence: int) -> MemoryLedger:
        sequence, reserved = reservation_of(self, self._account.block, sequence)
        inner = MemoryLedger(reserved, by=self._by, purpose=self._purpose)
        inner._account, inner._book = self._book.accounts[sequence], self._book
        return inner

    def signed(self, *, by: str, purpose: str) -> MemoryLedger:
        """The same ledger, its later entries in another's name."""
        other = MemoryLedger(self.budget, by=by, purpose=purpose)
        other._account, other._book = self._account, self._book
        return other

    def entries(self) -> Iterator[Entry]:
        within = {self._account.block: self.budget.currency}
        for sequence, row in enumerate(self._book.rows, 1):
            if row.block in within:
                if row.reserved is not None:
                    within[sequence] = row.reserved.currency
                currency, when = within[row.block], instant(row.nanoseconds)
                yield Entry(sequence, row.block or None, row.what, row.amount, currency, when, *row[4:])

    def _append(self, what: str, amount: Fraction, reserved: Budget | None) -> int:
        what, amount, book, account = line(what, LONGEST_WHAT), positive(amount), self._book, self._account
        with book.lock:
            if book.process != process.here():
                raise LedgerUnavailable(
                    "a ledger in memory is not shared with a forked process, which would spend it twice; "
                    "use one in a file. Nothing was drawn."
                )
            amount = account.draw(what, amount)  # first: an interrupt between the two costs, and gives nothing back
            book.rows.append(_Row(account.block, what, amount, clock(), self._by, self._purpose, reserved))
            return len(book.rows)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidParameter("a ledger cannot be copied: a copy would spend the budget again. Nothing was spent.")


class _Row(NamedTuple):
    block: int
    what: str
    amount: Fraction
    nanoseconds: int
    by: str
    purpose: str
    reserved: Budget | None


class _Book:
    """What a ledger in memory shares with its blocks."""

    __slots__ = ("accounts", "lock", "process", "rows")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = process.here()
        self.rows: list[_Row] = []
        self.accounts: dict[int, _Account] = {}  # of the blocks


class _Account:
    """What is left of one budget, in whole units of 1/denominator: as exact as fractions, and four times as fast."""

    __slots__ = ("_amount", "_left", "block")

    def __init__(self, amount: Fraction) -> None:
        self.block = ROOT
        self._amount = amount
        self._left = amount.numerator, amount.denominator  # one value: an interrupt leaves the old or the new

    @property
    def left(self) -> Fraction:
        return Fraction(*self._left)

    def draw(self, what: str, amount: Fraction) -> Fraction:
        """Takes the amount, or refuses; returns it as it was recorded."""
        units, denominator = self._left
        scale, odd = divmod(denominator, amount.denominator)
        if odd:
            spent = self._amount - self.left
            amount = recorded(amount, spent)
            denominator = lcm(self._amount.denominator, spent.denominator, amount.denominator)
            units = int((self._amount - spent) * denominator)
            scale = denominator // amount.denominator
        units -= amount.numerator * scale
        if units < 0:
            raise exceeded(what, amount, self.left)
        self._left = units, denominator
        return amount


def positive(amount: Fraction) -> Fraction:
    """A price that can be charged: no answer is free, and none gives anything back."""
    if type(amount) is not Fraction or amount.numerator <= 0:
        raise InvalidParameter(f"a loss must be a positive exact fraction, not {quoted(amount)}. Nothing was drawn.")
    return amount


def storable(budget: Budget) -> Budget:
    """A budget whose fraction can be written down."""
    if max(budget.amount.numerator, budget.amount.denominator).bit_length() > MOST_BITS:
        raise InvalidBudget(
            f"a budget's fraction may have {MOST_BITS} bits above and below, no more. Nothing was spent."
        )
    return budget


def reservation_of(ledger: Ledger, block: int, sequence: int) -> tuple[int, Budget]:
    """An entry of this block and what it reserved; refused where it reserved nothing, or lies elsewhere."""
    wanted = whole(sequence, "the number of an entry", 1, 2**62)  # 1.0 or True, written down, would be another row
    for entry in ledger.entries():
        if entry.sequence == wanted and (entry.block or ROOT) == block and entry.reserved is not None:
            return wanted, entry.reserved
    raise InvalidParameter(f"entry {wanted} reserved no block of this ledger. Nothing was spent.")


def recorded(amount: Fraction, spent: Fraction) -> Fraction:
    """The amount, rounded up to a multiple of 10^-40 where the exact total's denominator would pass 4096 bits."""
    exact_total = lcm(spent.denominator, amount.denominator).bit_length() <= MOST_BITS
    return amount if exact_total else ceil_to(amount, GRAIN)


def exceeded(what: str, cost: Fraction, left: Fraction) -> BudgetExceeded:
    """The refusal, with the gap where cost and rest would print alike."""
    price = shown(cost) if cost < 10**30 else "more than 1e+30"
    short = f", {shown(cost - left)} too little" if price == shown(left) else ""
    return BudgetExceeded(f"{what} costs {price}; {shown(left)} is left{short}. Nothing was drawn.")


def line(text: str, longest: int) -> str:
    """One printable line: what cannot be printed is escaped, what is too long is cut where the reader can see it."""
    if not isinstance(text, str):
        raise InvalidParameter(f"a ledger's entry is described in text, not by {quoted(text)}. Nothing was drawn.")
    if len(text) <= longest and text.isprintable():
        return text
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: longest + 1])
    return escaped if len(escaped) <= longest else escaped[: longest - 1] + "…"


def instant(nanoseconds: int) -> str:
    """A reading of the clock as UTC, to the microsecond.

    >>> instant(0)
    '1970-01-01T00:00:00.000000+00:00'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    return moment.isoformat(timespec="microseconds")
