"""The curator: everything that leaves the data leaves through here, by three verbs (Section 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.curator import process
from tacit.curator.ledger import Ledger
from tacit.domain.grid import Norm
from tacit.domain.listing import Listed, Values
from tacit.domain.person import Relation
from tacit.domain.query import Columns, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import DataUnavailable, Halted, InvalidParameter, NoiseUnavailable
from tacit.primitives.mechanism import Interactive, Mechanism
from tacit.primitives.noise import SYSTEM, Noise
from tacit.privacy.budget import Budget
from tacit.rational import shown

T = TypeVar("T")
D = TypeVar("D")


class Data(Protocol):
    """The private table, as the kernel needs it: one method that counts."""

    schema: Schema
    most_rows: int  # that one person has in the counts; the table sees to it

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """How many rows fall into each cell of each column set; one axis a column."""
        ...


@runtime_checkable
class Lots(Protocol):
    """A table that chooses by lot which rows of a person count, and is given the lots."""

    def draw_from(self, lots: Callable[[int], NDArray[np.int64]]) -> None:
        """Takes what draws so many lots, below 2^32 each; once."""
        ...


@runtime_checkable
class Lister(Protocol):
    """A table that can say which values a column holds, where no domain is known yet."""

    def values(self, column: str) -> Listed:
        """Each value once, with the number of its rows; nothing is read before the first is asked for."""
        ...


def supplied(data: D) -> D:
    """The table, with what it needs of chance: from here and from nobody else, so that no lot has a seed."""
    if isinstance(data, Lots):
        data.draw_from(_lots)
    return data


def _lots(count: int) -> NDArray[np.int64]:
    return SYSTEM.uniform(2**32, count)


class Curator:
    """Holds a confidential table and a ledger; charges, reads, perturbs, answers: in this order.

    Privacy: the losses of all releases, sessions and blocks add up to at most the ledger's budget, under full
    adaptivity and concurrency (Thm 3.16 in epsilon; Bun & Steinke 2016, Lemma 2.3, in rho), whatever crashes:
    a charge is durable before anything is read, and nothing is refunded.
    """

    def __init__(self, data: Data, ledger: Ledger, neighbors: Neighbors) -> None:
        self._data = supplied(data)
        self._noise: Noise = SYSTEM
        self._ledger = ledger
        self._relation = Relation(Neighbors(neighbors), data.most_rows)

    @property
    def ledger(self) -> Ledger:
        """What is charged."""
        return self._ledger

    @property
    def neighbors(self) -> Neighbors:
        """What one person may change in the table."""
        return self._relation.neighbors

    @property
    def relation(self) -> Relation:
        """The same, with the most rows that a person has in the counts."""
        return self._relation

    @property
    def schema(self) -> Schema:
        """The public universe."""
        return self._data.schema

    @property
    def budget(self) -> Budget:
        """All that this curator may ever spend."""
        return self.ledger.budget

    def sensitivity(self, query: Query, norm: Norm = Norm.LINF) -> Fraction:
        """How far one person of this table can move the query's answers."""
        return self.relation.moves(query, norm)

    def release(self, mechanism: Mechanism, query: Query) -> Any:
        """One private answer: charged, read, perturbed."""
        query.check(self._data.schema)
        sensitivity = self._bound(mechanism, query)
        mechanism.check(sensitivity, query.grid)
        self.ledger.charge(f"{mechanism} of {query}", mechanism.loss())
        return _veiled(lambda: mechanism.sample(self._read(query), sensitivity, self._noise))

    def open(self, interactive: Interactive) -> Session:
        """A session that is paid for now and answers until it halts."""
        interactive.check()
        self.ledger.charge(str(interactive), interactive.loss())
        return Session(self, interactive)

    def within(self, budget: Budget, what: str = "block") -> Curator:
        """A curator of the same table that can never spend more than this; all of it is charged now."""
        inner = Curator(self._data, self.ledger.block(what, budget), self.neighbors)
        inner._noise = self._noise
        return inner

    def resume(self, sequence: int) -> Curator:
        """The curator of a block that an earlier entry reserved, by whatever process; it spends what is left there."""
        inner = Curator(self._data, self.ledger.reopened(sequence), self.neighbors)
        inner._noise = self._noise
        return inner

    def _bound(self, mechanism: Mechanism | Interactive, query: Query) -> Fraction:
        if isinstance(query, Values) != getattr(mechanism, "lists", False):
            kinds = ("values", "a query of numbers") if getattr(mechanism, "lists", False) else ("numbers", "Values")
            raise InvalidParameter(f"{mechanism} takes {kinds[0]}, and {query} is {kinds[1]}. Nothing was drawn.")
        if isinstance(query, Values) and not isinstance(self._data, Lister):
            raise InvalidParameter(f"this table has a domain for each column and lists no {query}. Nothing was drawn.")
        if mechanism.monotone and not query.monotone(self.neighbors):
            raise InvalidParameter(
                f"{mechanism} uses the saving for monotone queries; {query} is not proved monotone under "
                f"{self.neighbors.value} neighbours. Nothing was drawn."
            )
        return self.relation.moves(query, mechanism.norm)

    def _read(self, query: Query) -> Any:
        if isinstance(query, Values) and isinstance(self._data, Lister):
            return self._data.values(query.column)
        return query.on_grid(*self._data.counts(query.reads))


def _veiled(draw: Callable[[], T]) -> T:
    """Whatever fails where true answers are may depend on the rows: one message for it, no cause, no frame."""
    failure: BaseException
    try:
        return draw()
    except NoiseUnavailable:
        failure = NoiseUnavailable(
            "the operating system gave no random bytes, and there is no second source; what was charged stays charged, "
            "nothing was drawn."
        )
    except Exception:
        failure = DataUnavailable(
            "the table could not be read, or has changed, or the query could not be answered; what was charged stays "
            "charged, nothing was drawn."
        )
    except BaseException as stop:  # an interrupt is handed on, without the frames where the answers and the secret are
        failure = stop.with_traceback(None)
        failure.__context__ = None
    raise failure


class Session:
    """An interactive mechanism that has been paid for; it asks the table until it halts (Section 3.6)."""

    def __init__(self, curator: Curator, interactive: Interactive) -> None:
        self._curator = curator
        self._interactive = interactive
        self._turn = Lock()  # one question at a time: the state is secret, and of one process
        self._here = process.here()
        self._state = interactive.start(curator._noise)

    @property
    def halted(self) -> bool:
        """Whether it has given its last answer."""
        return self._state is None

    def ask(self, query: Query) -> Any:
        """One question more; free, for the session has been charged whole."""
        curator, interactive = self._curator, self._interactive
        query.check(curator.schema)
        moved = curator._bound(interactive, query)
        if moved > interactive.sensitivity:
            raise InvalidParameter(
                f"{interactive} is for queries of sensitivity {shown(interactive.sensitivity)}; "
                f"{query} has {shown(moved)}. Nothing was drawn."
            )
        interactive.admit(query.size, query.grid)
        if self._here != process.here():  # else each child would be told anew what was paid for once
            raise Halted(f"{interactive} was opened in another process; open another session. Nothing was drawn.")
        with self._turn:
            if self._state is None:
                raise Halted(f"{interactive} has halted; open another session. Nothing was drawn.")
            self._state, answer = _veiled(lambda: self._step(query))
        return answer

    def _step(self, query: Query) -> tuple[Any | None, Any]:
        state, self._state = self._state, None  # a question that fails is the last: that it failed is an answer
        return self._interactive.step(state, self._curator._read(query), self._curator._noise)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidParameter("a session cannot be copied: it was paid for once. Nothing was spent.")
