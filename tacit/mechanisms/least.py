"""The least budget for an accuracy: the question of `error_bound`, the other way about (Sections 3.3 and 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tacit.domain.person import Relation
from tacit.domain.query import LinearQuery, Query
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidParameter, NoSuchGuarantee
from tacit.mechanisms.measurement import measurement
from tacit.privacy.budget import Budget
from tacit.privacy.conversion import epsilon_of
from tacit.rational import Number, exact, shown

_ROUND = 900  # epsilons of three digits between two powers of ten
_LAST = 12 * _ROUND  # from 1e-9 to 1000


def least_epsilon(
    schema: Schema,
    workload: Query,
    delta: Number,
    neighbors: Neighbors | Relation,
    *,
    error: Number,
    beta: float,
    total: int | None = None,
    questions: Sequence[LinearQuery] = (),
) -> Fraction:
    """The least epsilon of three digits under which `error_bound` is at most `error`; nothing is read or spent.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> from tacit.domain.workload import marginals
    >>> facts = (schema, marginals(schema, 1), 0, Neighbors.ADD_REMOVE)
    >>> least_epsilon(*facts, error=50, beta=0.05)
    Fraction(67, 500)
    """
    most = exact(error, "the error")
    if most <= 0:
        raise InvalidParameter(f"the error must be positive, not {shown(most)}. Nothing was spent.")

    def bound(epsilon: Fraction) -> float:
        plan = measurement(schema, workload, Budget.of(epsilon, delta), neighbors, total=total)
        return plan.error_bound(beta, questions)

    def within(place: int) -> bool:
        try:
            return bound(_at(place)) <= most
        except InvalidParameter:  # more noise than can be drawn
            return False

    at, step = _place(_guess(bound(Fraction(1)), most, exact(delta, "delta"))), 1
    low, high = -1, _LAST + 1  # too much noise here, little enough there
    while high - low > 1:
        if within(at):
            high, at = at, at - step
        else:
            low, at = at, at + step
        if not low < at < high:
            at = (low + high) // 2
        step *= 2
    if high > _LAST:
        raise NoSuchGuarantee(
            f"no epsilon up to 1000 keeps the error within {shown(most)} people; ask for less at once. "
            "Nothing was spent."
        )
    return _at(high)


def _at(place: int) -> Fraction:
    return (100 + place % _ROUND) * Fraction(10) ** (place // _ROUND - 11)


def _place(epsilon: Fraction) -> int:
    """Of the largest such epsilon that is not above this one, or the nearest end."""
    if epsilon < _at(0):
        return 0
    power = next((power for power in range(12) if epsilon < _at((power + 1) * _ROUND)), None)
    return _LAST if power is None else power * _ROUND + int(epsilon / Fraction(10) ** (power - 11)) - 100


def _guess(at_one: float, most: Fraction, delta: Fraction) -> Fraction:
    """Laplace noise is as 1 / epsilon, Gaussian noise as 1 / sqrt(rho)."""
    ratio = max(exact(at_one, "the error"), Fraction(1, 10**6)) / most
    if not delta:
        return ratio
    return epsilon_of(min(Budget.of(1, delta).rho * ratio**2, Budget.of(1000, delta).rho), delta)
