"""Private distinguishers: which query tells the table from a hypothesis (Def. 5.5, Thm 5.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tacit.curator.kernel import Curator
from tacit.domain.discrepancy import Discrepancy
from tacit.domain.grid import Norm
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.person import Relation
from tacit.domain.query import Counting, LinearQuery, Marginal
from tacit.domain.schema import Neighbors
from tacit.domain.score import Error
from tacit.domain.single import single
from tacit.domain.synopsis import Synopsis
from tacit.domain.workload import Workload
from tacit.errors import InvalidQuery
from tacit.primitives.selection import Exponential, ExponentialRun, NoisyMax
from tacit.privacy.budget import Budget


class Distinguisher(Protocol):
    """Finds a query that a hypothesis answers nearly as badly as any, and spends a whole budget on it."""

    def __call__(self, curator: Curator, workload: Workload, synopsis: Synopsis, budget: Budget) -> LinearQuery:
        """A query with one answer, of the workload."""

    def error_bound(self, beta: float, workload: Workload, budget: Budget, neighbors: Neighbors | Relation) -> float:
        """F: how many people the error of what is found is below the largest, but with probability beta (Def. 5.5)."""


@dataclass(frozen=True)
class Scored:
    """Scores every answer of the workload by its error and selects one of them (Thm 5.5).

    Privacy: the selection's.  Accuracy: F = (2 Delta/eps) ln(|Q|/gamma) for the exponential mechanism, `book_bound` of
    the selection; exactly, `error_bound`.
    """

    selection: Callable[[Budget], Exponential | NoisyMax]

    def __call__(self, curator: Curator, workload: Workload, synopsis: Synopsis, budget: Budget) -> LinearQuery:
        return single(workload, curator.release(self.selection(budget), Error(workload, synopsis)))

    def error_bound(self, beta: float, workload: Workload, budget: Budget, neighbors: Neighbors | Relation) -> float:
        selection, moved = self.selection(budget), Relation.of(neighbors).moves(workload, Norm.LINF)
        selection.check(moved, workload.grid)
        if isinstance(selection, NoisyMax):
            found = selection.error_bound(beta, candidates=workload.size, sensitivity=moved, grid=workload.grid)
        else:
            found = selection.error_bound(beta, candidates=workload.size, sensitivity=moved)
        return found + float(workload.grid)  # what a hypothesis says is rounded, for either of two scores


@dataclass(frozen=True)
class Intervals:
    """Searches all intervals of an ordered column, and lists none of them: O(N) for N (N + 1)/2 queries.

    The workload is the ranges of one column or, where they are too many for a workload, its prefixes, which stand for
    them. An interval may be empty, which says that no other is answered badly.
    Privacy: `ExponentialRun`.  Accuracy: Cor. 3.12 over (N + 1)^2 signed intervals.
    """

    def __call__(self, curator: Curator, workload: Workload, synopsis: Synopsis, budget: Budget) -> LinearQuery:
        column = _ordered(workload)
        away = Discrepancy(column.columns, column.sizes, synopsis)
        start, end = curator.release(ExponentialRun.of(budget), away)
        return Counting(column.columns, column.sizes, (range(min(start, end), max(start, end)),))

    def error_bound(self, beta: float, workload: Workload, budget: Budget, neighbors: Neighbors | Relation) -> float:
        column, run = _ordered(workload), ExponentialRun.of(budget)
        as_discrepancy = Marginal(column.columns, column.sizes)  # one row moves the two alike
        moved = Relation.of(neighbors).moves(as_discrepancy, run.norm)
        run.check(moved, workload.grid)
        # what a hypothesis says is rounded at either end of a run, for either of two runs
        return run.error_bound(beta, answers=column.sizes[0], sensitivity=moved) + 2


exponential = Scored(lambda budget: Exponential(budget.bounded_range))
permute_and_flip = Scored(lambda budget: NoisyMax(budget.epsilon, "exponential"))
intervals = Intervals()


def _ordered(workload: Workload) -> Prefixes | Ranges:
    if len(workload) == 1 and isinstance(column := workload.queries[0], Prefixes | Ranges) and len(column.columns) == 1:
        return column
    raise InvalidQuery(
        f"intervals are searched where the workload is the ranges or the prefixes of one column; {workload} is not. "
        "Nothing was spent."
    )
