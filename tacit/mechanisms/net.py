"""The net mechanism and SmallDB: the exponential mechanism over a public set of synopses (Algs. 4 and 7)."""

from __future__ import annotations

from copy import copy
from math import log

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.domain.net import MOST_MEMBERS, Net, SmallDatabases, spread
from tacit.domain.query import Query
from tacit.domain.score import Fit
from tacit.domain.synopsis import Released, Rows, Synopsis
from tacit.domain.vc import log_multisets_upto, sauer, subsample_size
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter
from tacit.mechanisms.receipts import receipt
from tacit.mechanisms.total import SHARE, counted
from tacit.primitives.mechanism import chance, positive
from tacit.primitives.selection import Exponential
from tacit.privacy.budget import Budget
from tacit.rational import Number, whole

BETA = 0.05  # for which the number of rows is chosen where nobody chose it
MOST_SEARCHED = 10**6  # rows


def net_mechanism(curator: Curator, workload: Query, budget: Budget, *, net: Net, purpose: str = "") -> Synopsis:
    """Chooses the member of a net with the smallest largest error, but for noise (Alg. 7).

    The net is public: chosen before the data are seen, for any queries of which one person moves each by little.
    Privacy: the kernel's; one exponential mechanism (Prop. 5.1), whose 2 stays, as one person may move one error up
    and another down.
    Accuracy: Prop. 5.2, `net_bound`; as printed, `net_book_bound`.
    """
    workload = _workload(workload)
    if net.schema != curator.schema:
        raise InvalidParameter("the net is over another schema than the table. Nothing was spent.")
    score, step = Fit(workload, net), Exponential(budget.bounded_range)
    score.check(curator.schema)
    step.check(curator.sensitivity(score), score.grid)
    curator = curator.within(budget, what := f"net_mechanism of {workload}, {len(net)} members")
    member = net.member(curator.release(step, score))
    if isinstance(member, Released):
        member = copy(member)  # the net's own stays as it is
        member.receipt = receipt(curator, budget, f"{what}: {step}", None, purpose)
    return member


def small_db(
    curator: Curator,
    workload: Query,
    budget: Budget,
    *,
    alpha: Number | None = None,
    rows: int | None = None,
    total: Number | None = None,
    purpose: str = "",
) -> Rows:
    """Chooses a small database of m rows that answers nearly alike, and scales it to all people (Alg. 4).

    m is `rows`; or for a share `alpha` as the sampling lemma has it, half of the book's ln|Q| / alpha^2, which is
    `book_subsample_size`; or else what makes `error_bound` smallest among all that can be tried, up to 10^7 databases.
    `total` is a public number of people, those that the counts hold: dropped rows are not among them. Without one a
    fiftieth of the budget buys it.
    Privacy: the kernel's; one exponential mechanism over the small databases (Prop. 4.1), and that count.
    Accuracy: Thm 4.6 and Prop. 4.4, `book_bound`; with the exact number of databases, `error_bound`.
    """
    workload = _workload(workload)
    if alpha is not None and rows is not None:
        raise InvalidParameter("the number of rows follows from alpha, or is given; not both. Nothing was spent.")
    if alpha is not None:
        rows = subsample_size(workload.size, positive(alpha, "alpha") / spread(workload))
    schema, public = curator.schema, None if total is None else positive(total, "the number of people")
    SmallDatabases(schema, 1 if rows is None else rows, 1)  # refuses a net that is too large
    width = spread(workload) if rows is None else None
    workload.check(schema)
    rest = budget if public is not None else budget * (1 - SHARE)
    moved = curator.sensitivity(workload)
    Exponential(rest.bounded_range).check(moved, workload.grid)

    curator = curator.within(budget, what := f"small_db of {workload}")
    people, rest = counted(curator, budget, public)
    if width is not None:
        rows = best_rows(
            people, schema.universe, workload.size, rest, BETA, sensitivity=moved, spread=width, grid=workload.grid
        )
    net = SmallDatabases(schema, whole(rows, "the number of rows", 1, MOST_MEMBERS), people)
    step = Exponential(rest.bounded_range)
    chosen = net.member(curator.release(step, Fit(workload, net)))
    chosen.receipt = receipt(curator, budget, f"{what}, {net.rows} rows: {step}", public, purpose)
    return chosen


def net_bound(
    radius: float, members: int, budget: Budget, beta: float, *, sensitivity: Number = 1, grid: Number = 1
) -> float:
    """The largest error of `net_mechanism` in people, but for beta, where a member is within `radius` of the table.

    Prop. 5.2 with the exact worst case of the choice; a step of the grid more, for both are rounded to it.
    """
    count = log(whole(members, "the number of members", 1, 10**5000))
    return radius + float(_lost(np.array([count]), budget, beta, sensitivity)[0]) + float(positive(grid, "the grid"))


def net_book_bound(radius: float, members: int, budget: Budget, beta: float, *, sensitivity: Number = 1) -> float:
    """Prop. 5.2: alpha + 2 (ln|N| + ln(1/beta)) / eps, in people; on a grid a step more."""
    return radius + log(members / chance(beta)) / _rate(budget, sensitivity)


def error_bound(
    people: float,
    universe: int,
    queries: int,
    budget: Budget,
    beta: float,
    *,
    rows: int | None = None,
    sensitivity: Number = 1,
    spread: Number = 1,
    grid: Number = 1,
) -> float:
    """The largest error of `small_db` in people, but for beta: Prop. 4.4, tight.

    With ln C(|X| + m - 1, m) for ln|R|, the nearest small database within sqrt(ln(2|Q|) / 2m) and within |X| / 4m, and
    the best m of up to a million where none is given, whether or not it can be run. Where the number of people was
    bought, `budget` is what was left for the choice, and the error of that number comes on top.
    """
    patterns = log(whole(queries, "the number of queries", 1, 10**18))
    return _least(patterns, people, universe, budget, beta, rows, sensitivity, spread, grid)[0]


def best_rows(
    people: float,
    universe: int,
    queries: int,
    budget: Budget,
    beta: float,
    *,
    sensitivity: Number = 1,
    spread: Number = 1,
    grid: Number = 1,
) -> int:
    """The m for which `error_bound` is least, among those with at most 10^7 small databases."""
    return _least(log(queries), people, universe, budget, beta, None, sensitivity, spread, grid, MOST_MEMBERS)[1]


def book_bound(
    people: float, universe: int, queries: int, budget: Budget, beta: float, *, alpha: float | None = None
) -> float:
    """Thm 4.6: n^(2/3) ((16 ln|X| ln|Q| + 4 ln(1/beta)) / eps)^(1/3), in people; for a given alpha, Prop. 4.4.

    Said of m = ln|Q| / alpha^2 rows, which may be no whole number; the least m of the sampling lemma is below it for
    |Q| >= 4. For counts, and real scores: on a grid a step more.
    """
    epsilon, failed = float(budget.bounded_range), log(1 / chance(beta))
    sizes = log(universe) * log(whole(queries, "the number of queries", 3, 10**18))
    if alpha is None:
        return float(people ** (2 / 3) * ((16 * sizes + 4 * failed) / epsilon) ** (1 / 3))
    return alpha * people + 2 * (sizes / alpha**2 + failed) / epsilon


def vc_error_bound(
    people: int, universe: int, dimension: int, budget: Budget, beta: float, *, rows: int | None = None
) -> float:
    """Thms 4.8 and 4.9 for counting queries alone (E24): VC-dimension in the place of ln|Q|, with a constant.

    On the distinct rows of a table, at most min(n, |X|), the queries have no more patterns than Sauer's bound.
    """
    points = min(whole(people, "the number of people", 1, 10**18), universe)
    return _least(log(sauer(dimension, points)), people, universe, budget, beta, rows, 1, 1, 1)[0]


def _least(
    patterns: float,
    people: float,
    universe: int,
    budget: Budget,
    beta: float,
    rows: int | None,
    sensitivity: Number,
    spread: Number,
    grid: Number,
    most: int | None = None,
) -> tuple[float, int]:
    """The least bound and its number of rows; `patterns` is the logarithm of how many queries differ."""
    m = np.arange(1, MOST_SEARCHED + 1) if rows is None else np.array([whole(rows, "the number of rows", 1, 10**8)])
    counts = log_multisets_upto(universe, int(m[-1]))[m - 1]
    if most is not None:
        m, counts = m[counts <= log(most)], counts[counts <= log(most)]
    far = float(positive(people, "the number of people") * positive(spread, "the spread"))
    # Rounding m p to whole rows, the k largest of its fractions f up, k = sum f: the sum of 1 - f over these is at most
    # k - k^2/|X|, for their mean is at least k/|X|. So no weight in [0, 1] errs by more than |X| / 4m.
    radius = far * np.minimum(np.sqrt((log(2) + patterns) / (2 * m)), float(universe) / (4 * m))
    bounds = radius + _lost(counts, budget, beta, sensitivity)
    best = int(np.argmin(bounds))
    return float(bounds[best]) + float(positive(grid, "the grid")), int(m[best])


def _lost(counts: NDArray[np.float64], budget: Budget, beta: float, sensitivity: Number) -> NDArray[np.float64]:
    """How far the choice is below the best, but for beta, at worst: (|R| - 1) exp(-rate e) against 1."""
    with np.errstate(divide="ignore"):  # a single candidate is always chosen
        others = counts + np.log1p(-np.exp(-counts))
    return np.maximum(others + log((1 - chance(beta)) / beta), 0) / _rate(budget, sensitivity)


def _rate(budget: Budget, sensitivity: Number) -> float:
    return float(Exponential(budget.bounded_range).rate(sensitivity))


def _workload(workload: Query) -> Workload:
    return workload if isinstance(workload, Workload) else Workload((workload,))
