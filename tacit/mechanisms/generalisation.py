"""How many queries a base synopsis generator must see, how long its synopses are, how far off (Section 6.2).

Pure arithmetic, at the scale of counts: `rho` is how far one person moves a query (1 for a count), every error is in
people, and `alpha` is a share of the people. Where the printed numbers are corrected the erratum stands beside them.
"""

from __future__ import annotations

from math import ceil, log, log2, sqrt

from tacit.errors import InvalidParameter, quoted
from tacit.primitives.mechanism import chance
from tacit.rational import whole

MOST_QUERIES, MOST_PEOPLE = 2**62, 10**15
ETA = 1 / 3  # of Thms 6.6 and 6.8: a generator is right on five sixths of what it is asked


def sample_size(bits: float, beta: float, eta: float = ETA) -> int:
    """How many draws show that a synopsis of so many bits is right on 1/2 + eta of the queries it was drawn from.

    Accuracy: Lemma 6.5 without its slack: a synopsis that is not passes k draws with probability (1/2 + eta)^k at most,
    and there are 2^m of them (m bits are m ln 2 nats, E43): k >= (m ln 2 + ln(1/beta)) / ln(1/(1/2 + eta)).

    >>> sample_size(1000, 0.05), book_sample_size(1000, 0.05)
    (3819, 6018)
    """
    return ceil((_positive(bits, "the bits") * log(2) - log(chance(beta))) / -log(0.5 + _edge(eta)))


def book_sample_size(bits: float, beta: float, eta: float = ETA) -> int:
    """Lemma 6.5: k >= 2 (m + ln(1/beta)) / (1 - 2 eta)."""
    return ceil(2 * (_positive(bits, "the bits") - log(chance(beta))) / (1 - 2 * _edge(eta)))


def passes(k: int, eta: float = ETA) -> float:
    """How likely one synopsis that is wrong on more than 1/2 - eta of the queries is right on all k drawn, at most."""
    return float((0.5 + _edge(eta)) ** whole(k, "the number of queries", 1, MOST_QUERIES))


def rows_bits(rows: int, universe: int) -> float:
    """How many bits so many synthetic rows have."""
    return whole(rows, "the number of rows", 1, MOST_PEOPLE) * log2(_universe(universe))


def subsample_rows(queries: int, beta: float, alpha: float) -> int:
    """n': so many rows, drawn from a database, keep k queries within alpha of it with probability 1 - beta.

    Accuracy: Hoeffding and a union over both sides of k queries: ceil(ln(2k/beta) / (2 alpha^2)) (E40).

    >>> subsample_rows(200, 0.05, 0.05), book_subsample_rows(200, 0.05, 0.05)
    (1798, 6349)
    """
    return ceil(log(2 * _queries(queries) / chance(beta)) / (2 * _share(alpha) ** 2))


def book_subsample_rows(queries: int, beta: float, alpha: float) -> int:
    """n' = ln k ln(1/beta) / alpha^2, ln k for the k sampled queries (E40); more than enough for usual k and beta."""
    return max(1, ceil(log(_queries(queries)) * log(1 / chance(beta)) / _share(alpha) ** 2))


def book_scale(queries: int, epsilon: float, delta: float, rho: float = 1) -> float:
    """b = 2 rho sqrt(2k ln(1/delta)) / eps, the scale of the noise of k answers by Cor. 3.21 (E35).

    Thm 6.6 states it without the 2 sqrt(2); that noise is not enough: `docs/generators.md`.
    """
    if not 0 < epsilon < 1 or not 0 < delta < 1:
        raise InvalidParameter(
            f"Corollary 3.21 is for epsilon and delta between 0 and 1, not {quoted((epsilon, delta))}. "
            "Nothing was spent."
        )
    return 2 * _positive(rho, "the sensitivity") * sqrt(2 * _queries(queries) * log(1 / delta)) / epsilon


def book_error(queries: int, beta: float, scale: float) -> float:
    """b (ln k + ln(2/beta)): all k noises of scale b stay below it, but for a chance of beta/2 (E36)."""
    return scale * (log(_queries(queries)) + log(2 / chance(beta)))


def any_queries(people: int, universe: int, beta: float) -> int:
    """k = 6 (n ln X + ln(2/beta)) queries for the generator by brute force, with eta = 1/3 (Thm 6.6)."""
    rows = whole(people, "the number of people", 1, MOST_PEOPLE)
    return ceil(6 * (rows * log(_universe(universe)) + log(2 / chance(beta))))


def any_queries_tight(people: int, universe: int, beta: float, eta: float = ETA) -> int:
    """The same with Lemma 6.5's own k, half of beta for it and half for the noise."""
    return sample_size(rows_bits(people, universe), chance(beta) / 2, eta)


def any_lambda(queries: int, epsilon: float, delta: float, beta: float, rho: float = 1) -> float:
    """lambda = 2 b (ln k + ln(2/beta)) of Thm 6.6: half of it for the noise, half for the search (E36, E38)."""
    return 2 * book_error(queries, beta, book_scale(queries, epsilon, delta, rho))


def linear_alpha(people: int, queries: int) -> float:
    """a = sqrt(ln Q / n), the share of the people that Thm 6.8 loses to the subsample."""
    return sqrt(log(max(2, _queries(queries))) / whole(people, "the number of people", 1, MOST_PEOPLE))


def linear_rows(people: int, universe: int, queries: int, beta: float, *, book: bool = False) -> tuple[int, int]:
    """Thm 6.8's k and n' for a class of so many linear queries: k > 6 ln(1/beta) + 6 n' ln X, where n' depends on k.

    Accuracy: Lemma 6.5 in the book's form at m = n' log2 X, in nats, and `subsample_rows` for the k that are drawn; in
    the book's form `book_subsample_rows`, some ten times as many.
    """
    k, rows, alpha = 1, 0, linear_alpha(people, queries)
    size = book_subsample_rows if book else subsample_rows
    while (needed := size(k, beta, alpha)) != rows:  # grows with ln k, so it settles
        rows = needed
        k = int(6 * log(1 / chance(beta)) + 6 * rows * log(_universe(universe))) + 1
    return k, rows


def linear_lambda(
    people: int,
    universe: int,
    queries: int,
    epsilon: float,
    delta: float,
    beta: float,
    rho: float = 1,
    *,
    book: bool = False,
) -> float:
    """Thm 6.8: lambda = 3 b (ln k + ln(1/beta)) + a n: noise, program and rounding; then the subsample (E38, E39).

    It fails with probability 3 beta at most.
    """
    k, _ = linear_rows(people, universe, queries, beta, book=book)
    noise = book_scale(k, epsilon, delta, rho) * (log(k) + log(1 / chance(beta)))
    return 3 * noise + linear_alpha(people, queries) * people


def _edge(eta: float) -> float:
    if not 0 < eta < 0.5:
        raise InvalidParameter(f"eta must lie between 0 and 1/2, not {quoted(eta)}. Nothing was spent.")
    return eta


def _share(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise InvalidParameter(
            f"alpha is a share of the people, between 0 and 1, not {quoted(alpha)}. Nothing was spent."
        )
    return alpha


def _positive(value: float, name: str) -> float:
    if not 0 < value < float("inf"):
        raise InvalidParameter(f"{name} must be positive, not {quoted(value)}. Nothing was spent.")
    return value


def _queries(queries: int) -> int:
    return whole(queries, "the number of queries", 1, MOST_QUERIES)


def _universe(universe: int) -> int:
    return whole(universe, "the size of the universe", 2, 2**4096)
