"""The face: a confidential table under its contract, what it would cost to ask, and the asking."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from tacit.curator.kernel import Curator, supplied
from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.domain.query import Query
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidBudget, InvalidParameter, InvalidSchema, LedgerUnavailable
from tacit.rational import Number
from tacit.service.contract import Contract
from tacit.service.located import printable
from tacit.service.plan import CONFIDENCE, Plan

if TYPE_CHECKING:
    from tacit.engines.table import Table
    from tacit.service.released import Release
    from tacit.service.session import Session


class People:
    """A confidential table, its contract and its ledger.

    Privacy: what is released spends from the one ledger that the contract names; a contract that differs from the one
    for which the ledger was made is refused.
    """

    def __init__(self, contract: Contract, *, by: str = "") -> None:
        self.contract = contract
        self.by = by

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, by: str = "") -> People:
        """Reads the contract; the ledger and the data are opened when they are needed."""
        return cls(Contract.read(path), by=by)

    @property
    def schema(self) -> Schema:
        """The public universe; refused while a domain in it is not public."""
        self.contract.must_be_public()
        return self.contract.schema

    @property
    def neighbors(self) -> Neighbors:
        """Which two tables must be hard to tell apart."""
        return self.contract.neighbors

    def create_ledger(self) -> SQLiteLedger:
        """Makes the ledger that the contract names, with all of the contract's budget; never a second time."""
        self.contract.must_be_public()
        return SQLiteLedger.create(
            self.contract.ledger, self.contract.budget, subject=self.contract.subject, by=self.by
        )

    @cached_property
    def ledger(self) -> SQLiteLedger:
        """What was spent on this table, to be spent from; never created in passing."""
        self.contract.must_be_public()
        self._must_have_ledger()
        try:
            ledger = SQLiteLedger.open(self.contract.ledger, subject=self.contract.subject, by=self.by)
        except InvalidParameter:
            self.history().close()  # says in what the contract differs
            raise
        return self._fitting(ledger)

    def history(self) -> SQLiteLedger:
        """The ledger to look at: it cannot be charged, and may lie where nothing can be written."""
        self._must_have_ledger()
        return self._fitting(SQLiteLedger.read(self.contract.ledger))

    def _must_have_ledger(self) -> None:
        contract = self.contract
        if not os.path.lexists(contract.ledger):
            raise LedgerUnavailable(
                f"there is no ledger at {printable(contract.ledger)}. If nothing was ever released from this table, "
                f"make it once: tacit ledger create {printable(contract.path)}. If there was one, bring it back: a "
                "fresh one would forget what was spent. Nothing was spent."
            )

    def _fitting(self, ledger: SQLiteLedger) -> SQLiteLedger:
        """The ledger, if it was made for this contract."""
        contract = self.contract
        if differs := contract.unlike(ledger.subject):
            ledger.close()
            raise InvalidSchema(
                f"{printable(contract.path)} is not the contract for which {printable(contract.ledger)} was made: "
                f"{differs} differ. Put the contract back as it was, or, for other people, name another ledger in it. "
                "Over the same people two ledgers add up: see docs/contract.md. Nothing was spent."
            )
        if ledger.budget != contract.budget:
            ledger.close()
            raise InvalidBudget(
                f"{printable(contract.ledger)} was made with a budget of {ledger.budget}; "
                f"{printable(contract.path)} now says {contract.budget}. A budget does not change once its ledger is "
                "made: put it back. Nothing was spent."
            )
        return ledger

    @cached_property
    def table(self) -> Table:
        """The rows, under the schema; opened, not yet read."""
        from tacit.engines.table import open_table

        contract = self.contract
        opened = open_table(
            contract.location,
            contract.schema,
            table=contract.table,
            delimiter=contract.delimiter,
            multiline=contract.multiline,
            engine=contract.engine,
            person=contract.person,
        )
        return supplied(opened)

    def curator(self, *, by: str | None = None, purpose: str = "") -> Curator:
        """The one object through which anything leaves this table, for mechanisms of your own."""
        signed = self.ledger.signed(by=self.by if by is None else by, purpose=purpose)
        return Curator(self.table, signed, self.neighbors)

    def plan(
        self,
        workload: Query,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        error: Number | None = None,
        confidence: Number = CONFIDENCE,
    ) -> Plan:
        """What a release would cost and how wrong it would be; reads nothing and spends nothing.

        Instead of an epsilon, `error` says how wrong it may be: the least epsilon, to three digits, is found with which
        all its errors together are at most so many people, as surely as `confidence`. A workload of ranges, prefixes
        or predicates is answered from the marginals that it reads. Without a delta the contract's is taken; 0 asks for
        pure privacy.
        """
        promised = self.contract.delta if delta is None else delta
        return Plan.of(self, workload, promised, epsilon=epsilon, error=error, confidence=confidence)

    def release(self, workload: Query, *, epsilon: Number, delta: Number | None = None, purpose: str = "") -> Release:
        """Charges, draws, and gives back what is free from then on."""
        return self.plan(workload, epsilon=epsilon, delta=delta).run(purpose=purpose)

    def session(
        self,
        name: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        queries: int | None = None,
        purpose: str = "",
    ) -> Session:
        """Opens a session of that name, for which all of the epsilon is spent now; without one, goes on with it.

        Its answers are free unless a public hypothesis is wrong. `queries` is how many questions are expected.
        """
        from tacit.service.session import Session

        return Session.opened(self, name, epsilon=epsilon, delta=delta, queries=queries, purpose=purpose)

    def close(self) -> None:
        """Lets go of the table, and of the ledger, which is then one file that can be copied."""
        if "table" in self.__dict__:
            self.table.close()
        if "ledger" in self.__dict__:
            self.ledger.close()

    def __enter__(self) -> People:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"People({self.contract})"


open = People.open  # `tacit.open`
