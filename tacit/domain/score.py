"""Scores by which a mechanism selects, and functions of declared sensitivity (Defs. 3.4, 5.5; Algs. 4, 7; Fig. 6.1)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isqrt
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, one_part
from tacit.domain.net import Net, pieces
from tacit.domain.query import (
    MOST_QUERY_CELLS,
    MOST_UNITS,
    WEIGHT_GRID,
    Columns,
    Counts,
    Query,
    brief,
    plain,
    sized,
)
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.workload import Workload
from tacit.errors import InvalidQuery
from tacit.rational import Number, exact, shown, whole

SCORE_GRID = Fraction(1, 2**20)

_PIECE = 2**15  # answers at a time

_EXACT = 2**52  # steps of the grid: whole numbers up to it, and their differences, are exact as doubles
_WRITTEN_OUT = 2**20  # answers of a net that are kept
_ASKED = 2**12  # answers of one member that a net is asked for at once
_CACHED = 2**18, 2**15  # of a block of members: asked for at once, and compared at once


class Answering(Protocol):
    """A hypothesis or a synopsis, as a score needs it: public, and able to answer."""

    def answer(self, query: Query) -> NDArray[np.float64]:
        """The query's answers, at the scale of counts."""
        ...


class _Score(Query):
    """One number for each candidate; only its largest move matters (Def. 3.4)."""

    workload: Workload

    @property
    def reads(self) -> tuple[Columns, ...]:
        return self.workload.reads

    @cached_property
    def _believed(self) -> Any:
        """What the synopses answer, of those scores that have any."""

    def check(self, schema: Schema) -> None:
        self.workload.check(schema)
        _ = self._believed  # is public: what is wrong with it is refused before it costs

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        if norm is not Norm.LINF:
            raise InvalidQuery("a score is for selection; its sensitivity is in linf alone. Nothing was drawn.")
        return self._moved(neighbors)

    @abstractmethod
    def _moved(self, neighbors: Neighbors) -> Fraction:
        """How far one person can move any of the scores."""

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.workload})"


def believed(workload: Workload, synopsis: Answering) -> NDArray[np.int64]:
    """What a synopsis answers, rounded to the workload's grid: public, so the rounding moves nothing."""
    with np.errstate(all="ignore"):  # what is no number is refused below
        answers = np.asarray(synopsis.answer(workload), dtype=np.float64) / float(workload.grid)
    if answers.shape != (workload.size,) or not bool(np.all(np.abs(answers) < float(MOST_UNITS))):  # NaN fails
        raise InvalidQuery("the synopsis has answers that are not numbers of moderate size. Nothing was drawn.")
    return np.rint(answers).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Error(_Score):
    """How far a synopsis is from the truth, for each query of a workload (Def. 5.5).

    Sensitivity: |q(x) - v| moves no further than q(x), for v is public. With `whole`, the score of a query is the
    l1 distance of all its answers, and moves by its l1 sensitivity; else each answer has a score of its own.
    """

    workload: Workload
    synopsis: Answering
    whole: bool = False

    @cached_property
    def grid(self) -> Fraction:  # type: ignore[override]
        return self.workload.grid

    @cached_property
    def _believed(self) -> NDArray[np.int64]:
        return believed(self.workload, self.synopsis)

    @property
    def size(self) -> int:
        return len(self.workload) if self.whole else self.workload.size

    def units(self, *tables: Counts) -> NDArray[Any]:
        apart = np.abs(self.workload.units(*tables) - self._believed)
        if not self.whole:
            return apart
        # clipping is 1-Lipschitz, and keeps the sum of a query's distances within 64 bits
        longest = max(query.size for query in self.workload.queries)
        return np.add.reduceat(np.minimum(apart, MOST_UNITS // longest), self.workload.offsets[:-1])

    def _moved(self, neighbors: Neighbors) -> Fraction:
        if not self.whole:
            return self.workload.sensitivity(Norm.LINF, neighbors)
        return max(query.sensitivity(Norm.L1, neighbors) for query in self.workload.queries)


@dataclass(frozen=True, eq=False)
class SignedError(_Score):
    """By how much a synopsis answers too much, for each answer of a workload, and then by how much too little.

    Sensitivity: v - q(x) and q(x) - v move no further than q(x), for v is public.
    """

    workload: Workload
    synopsis: Answering

    @cached_property
    def grid(self) -> Fraction:  # type: ignore[override]
        return self.workload.grid

    @property
    def size(self) -> int:
        return 2 * self.workload.size

    @cached_property
    def _believed(self) -> NDArray[np.int64]:
        return believed(self.workload, self.synopsis)

    def units(self, *tables: Counts) -> NDArray[Any]:
        much = self._believed - self.workload.units(*tables)
        return np.concatenate([much, -much])

    def _moved(self, neighbors: Neighbors) -> Fraction:
        return self.workload.sensitivity(Norm.LINF, neighbors)


@dataclass(frozen=True, eq=False)
class Fit(_Score):
    """How well each candidate answers a workload: minus its largest error (Alg. 4, Alg. 7).

    `candidates` is a net, or a row of answers for each candidate, at the scale of counts; both are public, and so is
    their rounding to the grid. Sensitivity: a maximum of distances, each of which moves no further than its query,
    moves no further than the farthest of them. A large net is asked block by block and never written out; its scores
    are clipped at 2^52 steps of the grid, where doubles are still exact, and clipping is 1-Lipschitz.
    """

    workload: Workload
    candidates: NDArray[Any] | Net = field(repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.candidates, Net):
            if not len(self.candidates):
                raise InvalidQuery("a net has at least one member. Nothing was spent.")
            self.workload.check(self.candidates.schema)
            if len(self.candidates) * self.workload.size > _WRITTEN_OUT:
                return
            object.__setattr__(self, "candidates", self.candidates.answers(self.workload, 0, len(self.candidates)))
        try:
            rows = np.asarray(self.candidates, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidQuery("candidates are rows of numbers, all of one length. Nothing was spent.") from None
        if rows.ndim != 2 or rows.shape[1] != self.workload.size or not rows.shape[0]:
            raise InvalidQuery(f"candidates are rows of {self.workload.size} answers each. Nothing was spent.")
        with np.errstate(over="ignore"):
            scaled = np.rint(rows / float(self.workload.grid))
        if not bool(np.all(np.abs(scaled) < float(MOST_UNITS))):
            raise InvalidQuery("a candidate's answers must be numbers of moderate size. Nothing was spent.")
        held = scaled.astype(np.int64)
        held.flags.writeable = False
        object.__setattr__(self, "candidates", held)

    @cached_property
    def grid(self) -> Fraction:  # type: ignore[override]
        return self.workload.grid

    @property
    def size(self) -> int:
        return len(self.candidates)

    def units(self, *tables: Counts) -> NDArray[Any]:
        truth = self.workload.units(*tables)
        if isinstance(self.candidates, Net):
            return self._of_net(self.candidates, np.clip(truth, -_EXACT, _EXACT).astype(np.float64))
        scores = np.empty(self.size, dtype=np.int64)
        step = max(1, 2**22 // self.workload.size)  # a block of candidates at a time, to stay in cache
        for start in range(0, self.size, step):
            block = self.candidates[start : start + step]
            scores[start : start + step] = -np.abs(block - truth).max(axis=1)
        return scores

    def _of_net(self, net: Net, truth: NDArray[np.float64]) -> NDArray[np.int64]:
        farthest, begin, grid = np.zeros(self.size), 0, float(self.grid)
        for part in pieces(self.workload, _ASKED):
            goal = truth[begin : begin + part.size]
            begin += part.size
            step, inner = (max(1, numbers // part.size) for numbers in _CACHED)
            apart = np.empty((inner, part.size))
            for start in range(0, self.size, step):
                answers = net.answers(part, start, min(start + step, self.size))
                for at in range(0, len(answers), inner):
                    rows = answers[at : at + inner] if grid == 1 else answers[at : at + inner] / grid
                    block, worst = apart[: len(rows)], farthest[start + at : start + at + len(rows)]
                    # two whole numbers, of which one is at most 2^52: exact, or above 2^52 and clipped below
                    np.rint(rows, out=block)
                    np.subtract(block, goal, out=block)
                    np.abs(block, out=block)
                    np.maximum(worst, block.max(axis=1), out=worst)
        if np.isnan(farthest).any():  # as the net has it, whatever the table
            raise InvalidQuery("a member of the net has an answer that is not a number. Nothing was drawn.")
        return -np.minimum(farthest, _EXACT).astype(np.int64)

    def _moved(self, neighbors: Neighbors) -> Fraction:
        return self.workload.sensitivity(Norm.LINF, neighbors)


@dataclass(frozen=True, eq=False)
class Hardness(_Score):
    """How often the synopses so far failed on each query: -sum_j a_j(q) of boosting for queries (Figure 6.1).

    a_j = clip(1 - 2 (d_j - lam) / mu, -1, 1) with d_j the error of the j-th synopsis; lam and mu are rounded to the
    workload's grid, and a_j up to the score's grid, so that all arithmetic is in whole numbers.
    Sensitivity: d_j moves by rho at most, a_j by 2 rho / mu and by one grid step for the rounding, never by more than
    2, and t of them add up: t min(2 rho / mu + grid, 2) (Claim 6.4).
    """

    workload: Workload
    synopses: tuple[Answering, ...]
    lam: Number
    mu: Number
    grid: Fraction = SCORE_GRID

    def __post_init__(self) -> None:
        if not self.synopses:
            raise InvalidQuery("hardness is of the synopses so far; before the first it is uniform. Nothing was spent.")
        lam, mu = exact(self.lam, "lambda", InvalidQuery), exact(self.mu, "mu", InvalidQuery)
        grid, step = one_part(self.grid), self.workload.grid
        whole_lam, whole_mu = round(lam / step), round(mu / step)
        most = MOST_UNITS // (2 * grid.denominator)  # so that the product below stays within 64 bits
        if not (0 <= whole_lam < MOST_UNITS and 1 <= whole_mu <= most):
            raise InvalidQuery(
                f"lambda must lie between 0 and {shown(MOST_UNITS * step)}, and mu between {shown(step)} and "
                f"{shown(most * step)} (a coarser grid allows more). Nothing was spent."
            )
        object.__setattr__(self, "synopses", tuple(self.synopses))
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "lam", whole_lam * step)
        object.__setattr__(self, "mu", whole_mu * step)
        object.__setattr__(self, "_whole", (whole_lam, whole_mu))

    @cached_property
    def _believed(self) -> list[NDArray[np.int64]]:
        return [believed(self.workload, synopsis) for synopsis in self.synopses]

    @property
    def size(self) -> int:
        return self.workload.size

    def units(self, *tables: Counts) -> NDArray[Any]:
        lam, mu = self._whole  # type: ignore[attr-defined]
        truth = self.workload.units(*tables)
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, self.size, _PIECE):  # one piece for all synopses, while it is in the cache
            here = slice(start, start + _PIECE)
            for answers in self._believed:
                beyond = np.abs(truth[here] - answers[here]) - lam
                np.clip(beyond, 0, mu, out=beyond)  # further off the clip below holds anyway
                total[here] -= self._agreed(beyond)
        return total

    def _agreed(self, beyond: NDArray[np.int64]) -> NDArray[np.int64]:
        """a_j in steps of the grid, for errors that are so much beyond lambda."""
        one, mu = self.grid.denominator, self._whole[1]  # type: ignore[attr-defined]
        table = self._table
        return np.clip(one - (2 * one * beyond) // mu, -one, one) if table is None else table.take(beyond)

    @cached_property
    def _table(self) -> NDArray[np.int64] | None:
        """The same for every error there can be, where they are few: looking up is faster than dividing."""
        one, mu = self.grid.denominator, self._whole[1]  # type: ignore[attr-defined]
        return np.clip(one - (2 * one * np.arange(mu + 1)) // mu, -one, one) if mu <= _PIECE else None

    def _moved(self, neighbors: Neighbors) -> Fraction:
        rho = self.workload.sensitivity(Norm.LINF, neighbors)
        return len(self.synopses) * min(2 * rho / exact(self.mu, "mu") + self.grid, Fraction(2))


@dataclass(frozen=True, eq=False)
class Function(Query):
    """Any function of the counts over a few columns, whose author declares its sensitivity (Def. 3.1).

    The only query whose sensitivity is believed, not proved; for trusted callers in the library, never from
    outside. It is declared for the counts, so for replace-one neighbours it covers a row that turns into one that is
    dropped. Its real answers are clipped to 2^50 steps of the grid and rounded to it, and that is in the sensitivity:
    two roundings move two answers apart by at most one step, the division before them by less than another.
    """

    columns: Columns
    sizes: tuple[int, ...]
    function: Callable[[Counts], Any] = field(repr=False)
    answers: int
    declared: Mapping[Norm, Fraction]  # as it was given; nobody can change it afterwards
    neighbors: Neighbors
    grid: Fraction = WEIGHT_GRID

    def __post_init__(self) -> None:
        columns, sizes = plain(self.columns, self.sizes)
        declared = {norm: exact(value, "a sensitivity", InvalidQuery) for norm, value in self.declared.items()}
        step = exact(self.grid, "a grid", InvalidQuery)
        if not callable(self.function) or not all(isinstance(norm, Norm) for norm in declared):
            raise InvalidQuery("a function needs something to call, and a sensitivity by norm. Nothing was spent.")
        if not declared or any(value <= 0 for value in declared.values()):
            raise InvalidQuery("a sensitivity must be positive. Nothing was spent.")
        if not Fraction(1, 2**50) <= step <= 2**50:
            raise InvalidQuery("the grid of a function must lie between 2^-50 and 2^50. Nothing was spent.")
        kept = {
            "columns": columns,
            "sizes": sizes,
            "answers": whole(self.answers, "the number of answers", 1, MOST_QUERY_CELLS, InvalidQuery),
            "declared": MappingProxyType(declared),
            "neighbors": Neighbors(self.neighbors),
            "grid": step,
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        schema: Schema,
        columns: Sequence[str],
        function: Callable[[Counts], Any],
        *,
        size: int = 1,
        sensitivity: Mapping[Norm, Number] | Number,
        neighbors: Neighbors,
        grid: Number = WEIGHT_GRID,
    ) -> Function:
        """With the sensitivity in one norm or more; a bare number is for one answer, in which all norms agree."""
        names, sizes = sized(schema, columns)
        if not isinstance(sensitivity, Mapping):
            if size != 1:
                raise InvalidQuery("a vector's sensitivity is declared in a named norm. Nothing was spent.")
            sensitivity = dict.fromkeys(Norm, sensitivity)
        return cls(names, sizes, function, size, sensitivity, neighbors, grid)  # type: ignore[arg-type]

    @property
    def reads(self) -> tuple[Columns, ...]:
        return (self.columns,)

    @property
    def size(self) -> int:
        return self.answers

    def units(self, *tables: Counts) -> NDArray[Any]:
        limit = float(2**50)  # within it the division is wrong by at most a quarter of a step
        with np.errstate(all="ignore"):  # a warning would tell of the rows
            answers = np.asarray(self.function(tables[0].reshape(self.sizes)), dtype=np.float64).reshape(self.size)
            scaled = np.nan_to_num(answers / float(self.grid), nan=0.0, posinf=limit, neginf=-limit)
        return np.rint(np.clip(scaled, -limit, limit)).astype(np.int64)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        if norm not in self.declared or (neighbors is Neighbors.ADD_REMOVE and self.neighbors is not neighbors):
            raise InvalidQuery(
                f"no sensitivity was declared in {norm.value} for {neighbors.value} neighbours. Nothing was drawn."
            )
        # replacing a row is removing one and adding one
        moved = self.declared[norm] * (1 if neighbors is self.neighbors else 2)
        rounding = {Norm.L1: self.size, Norm.L2: isqrt(self.size - 1) + 1, Norm.LINF: 1}[norm]
        return moved + 2 * rounding * self.grid

    def check(self, schema: Schema) -> None:
        if schema.sizes(self.columns) != self.sizes:
            raise InvalidQuery("the function was declared for other columns than this table has. Nothing was drawn.")

    def __str__(self) -> str:
        return f"Function({brief(' × '.join(self.columns))}: {self.size} answers)"
