"""The book's terms for online private multiplicative weights, and what they prove (Thms 4.14 and 4.15)."""

from __future__ import annotations

from math import floor, log, sqrt

from tacit.errors import InvalidParameter
from tacit.mechanisms.sparse import numeric_book_bound
from tacit.primitives.mechanism import chance


def book_bound(epsilon: float, delta: float, beta: float, *, people: float, universe: int, queries: int) -> float:
    """Thms 4.14 and 4.15 as corrected (E22, E23): the least 3 alpha n that they prove; above `people` it says nothing.

    alpha^3 n eps >= 36 ln|X| (ln|Q| + ln(32 ln|X| / (alpha^2 beta))) where delta = 0, else
    alpha^2 n eps >= (2 + 32 sqrt 2) sqrt(ln|X| ln(2/delta)) (ln|Q| + ln(32 ln|X| / (alpha^2 beta))).
    """
    if delta and not (0 < delta < 1 and epsilon <= 1):
        raise InvalidParameter("Corollary 3.21 is for epsilon at most 1 and delta between 0 and 1. Nothing was spent.")
    entropy, beta = log(max(universe, 2)), chance(beta)

    def proved(alpha: float) -> bool:
        logs = log(queries) + log(32 * entropy / (alpha**2 * beta))
        if delta:
            return alpha**2 * people * epsilon >= (2 + 32 * sqrt(2)) * sqrt(entropy * log(2 / delta)) * logs
        return alpha**3 * people * epsilon >= 36 * entropy * logs

    low, high = 0.0, 1.0
    while not proved(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proved(middle) else (middle, high)
    return 3 * high * people


def book_terms(
    epsilon: float, delta: float, beta: float, *, universe: int, queries: int, alpha: float
) -> tuple[int, float]:
    """Alg. 6's number of updates and its threshold, in people, for eta = alpha/2.

    c = 4 ln|X|/alpha^2. T = 18 c (ln(2|Q|) + ln(4c/beta))/eps where delta = 0, else
    (2 + 32 sqrt 2) sqrt(c ln(2/delta)) (ln(2|Q|) + ln(4c/beta))/eps: twice the alpha of Thm 3.28.
    """
    count = max(floor(4 * log(max(universe, 2)) / alpha**2), 1)
    return count, 2 * numeric_book_bound(epsilon, delta, count, 2 * queries, beta, corrected=False)
