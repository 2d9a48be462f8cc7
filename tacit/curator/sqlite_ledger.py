"""The ledger in a file: a charge is on the disk before anything is drawn, and no fault of the machine loses one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from typing import NoReturn

from tacit.curator import ledger as plain
from tacit.curator.book import Book, create
from tacit.curator.chain import Chain, Contract, Mark, Row, ratio, reservation
from tacit.curator.ledger import LONGEST_BY, LONGEST_PURPOSE, LONGEST_WHAT, ROOT, Entry
from tacit.curator.place import located
from tacit.errors import InvalidParameter, quoted
from tacit.privacy.budget import Budget, Loss

TIMEOUT = 10.0  # seconds that a charge waits for another process
LONGEST_SUBJECT = 200

Place = str | os.PathLike[str]


class SQLiteLedger:
    """A ledger in an SQLite file, for the threads and processes of one machine.

    Privacy: as `Ledger`; a charge that returned is on the disk, past kill -9 and power cut, and one that raised drew
    nothing. Check and row are one transaction, so processes that race share the budget exactly.
    """

    def __init__(self, book: Book, budget: Budget, block: int, by: str, purpose: str) -> None:
        """For `create`, `open` and `read`, which verify the book first."""
        self.budget = budget
        self._book, self._block = book, block
        self._by, self._purpose = plain.line(by, LONGEST_BY), plain.line(purpose, LONGEST_PURPOSE)

    @classmethod
    def create(
        cls, path: Place, budget: Budget, *, subject: str, by: str = "", purpose: str = "", timeout: float = TIMEOUT
    ) -> SQLiteLedger:
        """Makes a new ledger and opens it; whatever lies at the path already is left alone, and refused."""
        if not isinstance(subject, str) or not subject.isprintable() or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise InvalidParameter(
                f"a ledger's subject is one printable line of at most {LONGEST_SUBJECT} characters, "
                f"not {quoted(subject)}. Nothing was spent."
            )
        contract = Contract(subject, plain.storable(budget), plain.instant(plain.clock()))
        create(located(path), contract, timeout)
        return cls.open(path, subject=subject, by=by, purpose=purpose, timeout=timeout)

    @classmethod
    def open(
        cls, path: Place, *, subject: str, by: str = "", purpose: str = "", timeout: float = TIMEOUT
    ) -> SQLiteLedger:
        """Verifies a ledger and serves from it; never makes one, and never lends its budget to another subject."""
        book = Book(located(path), timeout)
        if subject != book.contract.subject:
            raise InvalidParameter(
                f"{book} keeps the budget of {quoted(book.contract.subject)}, not of {quoted(subject)}. "
                "Nothing was spent."
            )
        book.use(lambda _: None)  # a file that cannot be written is refused now, not at the first charge
        return cls(book, book.contract.budget, ROOT, by, purpose)

    @classmethod
    def read(cls, path: Place) -> SQLiteLedger:
        """Verifies a ledger and shows it, and cannot charge; the file system may be read-only."""
        book = Book(located(path), TIMEOUT, reading=True)
        return cls(book, book.contract.budget, ROOT, "", "")

    @staticmethod
    def verify(path: Place) -> Mark:
        """Verifies every row, the chain and the head; returns the last mark, or says which row is wrong."""
        return Book(located(path), TIMEOUT, reading=True).chain.mark

    @property
    def subject(self) -> str:
        """What is protected, as was said when the ledger was made."""
        return self._book.contract.subject

    @property
    def head(self) -> Mark:
        """The last mark seen here: printed elsewhere, it proves later that nothing up to it was taken out."""
        return self._book.chain.mark

    @property
    def spent(self) -> Fraction:
        return self._book.spent(self._block)

    @property
    def left(self) -> Fraction:
        return self.budget.amount - self.spent

    def charge(self, what: str, loss: Loss) -> None:
        self._append(what, self.budget.price(loss), None)

    def block(self, what: str, budget: Budget) -> SQLiteLedger:
        sequence = self._append(what, self.budget.price(budget.loss()), plain.storable(budget))
        return SQLiteLedger(self._book, budget, sequence, self._by, self._purpose)

    def reopened(self, sequence: int) -> SQLiteLedger:
        sequence, reserved = plain.reservation_of(self, self._block, sequence)
        return SQLiteLedger(self._book, reserved, sequence, self._by, self._purpose)

    def signed(self, *, by: str, purpose: str) -> SQLiteLedger:
        """The same ledger, its later entries in another's name."""
        return SQLiteLedger(self._book, self.budget, self._block, by, purpose)

    def entries(self) -> Iterator[Entry]:
        after, within = self._block, {self._block}
        while page := self._book.page(after):
            for row in page:
                if row.block in within:
                    if row.reserved:
                        within.add(row.sequence)
                    yield row.entry()
            after = page[-1].sequence

    def close(self) -> None:
        """Serves no more; a new `open` goes on."""
        self._book.close()

    def __enter__(self) -> SQLiteLedger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidParameter("a ledger cannot be copied; open its file again instead. Nothing was spent.")

    def _append(self, what: str, amount: Fraction, reserved: Budget | None) -> int:
        what, amount = plain.line(what, LONGEST_WHAT), plain.positive(amount)

        def row(chain: Chain) -> Row:
            spent = chain.totals[self._block]
            exact = plain.recorded(amount, spent)
            if spent + exact > self.budget.amount:
                raise plain.exceeded(what, exact, self.budget.amount - spent)
            return Row(
                sequence=chain.mark.sequence + 1,
                block=self._block,
                what=what,
                amount=ratio(exact),
                spent=ratio(spent + exact),
                currency=self.budget.currency.value,
                moment=plain.instant(plain.clock()),
                by=self._by,
                purpose=self._purpose,
                reserved="" if reserved is None else reservation(reserved),
                previous=chain.mark.hash,
            ).sealed()

        return self._book.append(row).sequence
