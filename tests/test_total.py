"""The number of people: public, or bought with a fiftieth; one that cannot be is refused while nothing is spent."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from doubles import Rows, Scripted

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.schema import Categories, Neighbors, Schema
from tacit.domain.workload import marginals
from tacit.errors import InvalidParameter
from tacit.mechanisms.averaged import averaged_weights
from tacit.mechanisms.iterative import construct
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.mwem import mwem
from tacit.mechanisms.net import small_db
from tacit.mechanisms.online import Online, online
from tacit.mechanisms.total import counted
from tacit.privacy.budget import Budget

SCHEMA = Schema([Categories("a", (0, 1)), Categories("b", (0, 1))])
WORK = marginals(SCHEMA, 1)
ONE = Budget.of(1)
TAKERS: dict[str, Callable[[Curator, object], object]] = {
    "mwem": lambda curator, total: mwem(curator, WORK, ONE, total=total),  # type: ignore[arg-type]
    "averaged_weights": lambda curator, total: averaged_weights(curator, WORK, ONE, total=total),  # type: ignore[arg-type]
    "construct": lambda curator, total: construct(curator, WORK, ONE, alpha="0.5", total=total),  # type: ignore[arg-type]
    "small_db": lambda curator, total: small_db(curator, WORK, ONE, rows=2, total=total),  # type: ignore[arg-type]
    "online": lambda curator, total: online(curator, ONE, total=total),  # type: ignore[arg-type]
    "Online": lambda curator, total: Online(
        curator,
        ONE,
        update=MatchingWeights(0.1),
        threshold=10,
        count=2,
        total=total,  # type: ignore[arg-type]
    ),
}


def town(noise: Scripted | None = None) -> Curator:
    made = Curator(Rows(SCHEMA, np.zeros((70, 2), dtype=np.int64)), MemoryLedger(ONE), Neighbors.ADD_REMOVE)
    made._noise = noise or made._noise  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("wrong", [0, -1, "many", float("nan"), float("inf"), True])
@pytest.mark.parametrize("taker", TAKERS)
def test_a_number_of_people_that_cannot_be_is_refused_and_nothing_is_spent(taker: str, wrong: object) -> None:
    curator = town()
    with pytest.raises(InvalidParameter, match=r"Nothing was (spent|drawn)"):
        TAKERS[taker](curator, wrong)
    assert curator.ledger.spent == 0


def test_a_bought_number_costs_a_fiftieth_and_is_noisy_and_a_public_one_is_what_it_is() -> None:
    noise = Scripted(4)
    curator = town(noise)
    assert counted(curator, ONE, None) == (74, ONE * Fraction(49, 50))
    assert curator.ledger.spent == Fraction(1, 50)
    assert noise.scales == [50]
    assert counted(curator, ONE, "66.5") == (66.5, ONE)
    assert curator.ledger.spent == Fraction(1, 50)


def test_a_bought_number_is_never_less_than_one_person() -> None:
    assert counted(town(Scripted(-500)), ONE, None)[0] == 1
