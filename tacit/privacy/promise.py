"""What a promise of (epsilon, delta) means to a person, to a group, and to whoever makes it (Section 2.3)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from tacit.errors import InvalidBudget
from tacit.privacy.claims import LEAST, SLACK, amount, decimal, down, hundred_digits, probability, up
from tacit.rational import Number, shown, whole

MOST_PEOPLE = 10**12


def group_privacy(epsilon: Number, delta: Number, k: int) -> tuple[Fraction, Fraction]:
    """What (epsilon, delta)-DP for one person is for a group of k: epsilon exact, delta rounded up and at most 1.

    Privacy: Thm 2.2, with delta: (k eps, delta (e^(k eps) - 1)/(e^eps - 1)), by walking from one database to the other.

    >>> [float(bound) for bound in group_privacy("0.5", "1e-6", 3)]
    [1.5, 5.36700309915918e-06]
    """
    e, d = amount(epsilon, "epsilon", zero=True), probability(delta, "delta", zero=True)
    size = whole(k, "the size of the group", 1, MOST_PEOPLE)
    if not d or not e:
        return size * e, min(Fraction(1), size * d)
    with hundred_digits():
        # (e^(k eps) - 1)/(e^eps - 1), written so that no power overflows before the division
        growth = ((size - 1) * decimal(e)).exp() * (1 - (-size * decimal(e)).exp()) / (1 - (-decimal(e)).exp())
        return size * e, up(min(Decimal(1), decimal(d) * growth * (1 + SLACK)))


def group_rho(rho: Number, k: int) -> Fraction:
    """What rho-zCDP for one person is for a group of k, exact.

    Privacy: k^2 rho (Bun & Steinke 2016, Prop. 1.9).
    """
    return whole(k, "the size of the group", 1, MOST_PEOPLE) ** 2 * amount(rho, "rho")


def loss_tail(epsilon: Number, delta: Number, threshold: Number) -> Fraction:
    """How likely the loss of an (epsilon, delta)-DP mechanism is to pass a threshold above epsilon, rounded up.

    Privacy: P[loss > t] <= delta/(1 - e^(eps - t)). At t = eps itself (eps, delta)-DP says nothing, against the text
    before Prop. 2.1 (errata, E3): of the part of P above e^eps Q, only the excess is bounded by delta.
    """
    e, d = amount(epsilon, "epsilon", zero=True), probability(delta, "delta", zero=True)
    t = amount(threshold, "the threshold")
    if t - e < LEAST:
        raise InvalidBudget(
            f"the loss passes {shown(t)} with a probability that epsilon={shown(e)} does not bound; "
            f"ask for a threshold above epsilon (by {shown(LEAST)}). Nothing was spent."
        )
    with hundred_digits():
        return up(min(Decimal(1), decimal(d) / (1 - decimal(e - t).exp()) * (1 + SLACK))) if d else d


def utility_bounds(utility: Number, epsilon: Number) -> tuple[Fraction, Fraction]:
    """Between what a person's expected utility can lie once they take part, if it is `utility` without them.

    Privacy: eps-DP moves the expectation of anything that is never negative by a factor in [e^-eps, e^eps]
    (Section 2.3.1).
    """
    u, e = amount(utility, "the expected utility", zero=True), amount(epsilon, "epsilon", zero=True)
    if not u or not e:
        return u, u
    with hundred_digits():
        tilt = decimal(e).exp()
        return down(decimal(u) / tilt * (1 - SLACK)), up(decimal(u) * tilt * (1 + SLACK))


def check_delta(delta: Number, n: int) -> str | None:
    """Why a delta is too large for so many people, as a sentence to show; None where it is not.

    The n is a public figure, such as the contract's: a private one would speak through the sentence.
    Privacy: at delta = 1/n, publishing a random person's whole record is (0, delta)-DP (Section 2.3.3).

    >>> check_delta("1e-3", 500)
    >>> print(check_delta("1e-3", 1000))
    delta=0.001 lets a mechanism publish about 1 of 1000 records outright; choose a delta far below 1/1000.
    """
    d, people = probability(delta, "delta", zero=True), whole(n, "the number of people", 1, MOST_PEOPLE)
    if d * people < 1:
        return None
    return (
        f"delta={shown(d)} lets a mechanism publish about {int(d * people)} of {people} records outright; "
        f"choose a delta far below 1/{people}."
    )
