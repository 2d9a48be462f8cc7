"""The receipt of a composite: its block in the ledger, in the words of the mechanism."""

from __future__ import annotations

from tacit.curator.kernel import Curator
from tacit.domain.receipt import Receipt
from tacit.privacy.budget import Budget
from tacit.rational import Number


def receipt(curator: Curator, budget: Budget, what: str, total: Number | None, purpose: str = "") -> Receipt:
    """For a synopsis that a mechanism made within one block of this budget."""
    return Receipt(
        budget.currency.value,
        budget.amount,
        budget.stated,
        ((what, budget.amount),),
        curator.neighbors,
        (what,),
        total is not None and curator.relation.total_public,
        purpose,
        rows=curator.relation.rows,
    )
