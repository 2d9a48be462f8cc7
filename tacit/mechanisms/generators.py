"""Base synopsis generators: synopses that are right on the few queries that they are given (Def. 6.1, Section 6.2)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, islice
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.domain.grid import Norm
from tacit.domain.query import LinearQuery, Query
from tacit.domain.schema import Schema
from tacit.domain.synopsis import Rows, Synopsis
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, NoSynopsis, quoted
from tacit.mechanisms.generalisation import rows_bits, subsample_rows
from tacit.mechanisms.rowsearch import searched, searched_any
from tacit.mechanisms.synthesizer import STEPS, Solver, checked, synthesize
from tacit.mechanisms.total import SHARE, counted, noise
from tacit.primitives.additive import Gaussian, Laplace
from tacit.primitives.mechanism import chance
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, sqrt_up, whole

Generator: TypeAlias = Callable[[Curator, Workload, Budget], Synopsis]

MOST_DATABASES = 10**6  # that are tried
_BLOCK = 4096  # of them at once
_TRIES = 8  # to draw rows that keep the answers; each fails with a probability of beta
_UNFIT = "what was charged stays charged; nothing but the failure is released."


@dataclass(frozen=True, eq=False)
class Answers:
    """Noisy answers to some queries, each asked once, and how much noise there is in them."""

    workload: Workload
    values: NDArray[np.float64]
    error: float  # no noise is larger, in people, with probability 1 - beta


def measured(curator: Curator, workload: Workload, budget: Budget, beta: float) -> Answers:
    """One release of the queries that spends the whole budget; a query that was drawn twice is asked once.

    Privacy: the kernel's; the noise is the currency's for the workload's own sensitivity. That the queries are these is
    no secret any more: boosting has paid for each of its draws as for a release (Claim 6.4).
    """
    asked, mechanism, moved = _asked(curator, workload, budget)
    error = mechanism.error_bound(beta, coordinates=asked.size, sensitivity=moved, grid=asked.grid)
    return Answers(asked, np.asarray(curator.release(mechanism, asked), dtype=np.float64), error)


def _asked(curator: Curator, workload: Workload, budget: Budget) -> tuple[Workload, Laplace | Gaussian, Fraction]:
    """The queries, each once, with their noise and sensitivity; refuses what could not be released."""
    workload.check(curator.schema)
    asked, mechanism = Workload(tuple(dict.fromkeys(workload.queries))), noise(budget)
    moved = curator.sensitivity(asked, mechanism.norm)
    mechanism.check(moved, asked.grid)
    return asked, mechanism, moved


def noise_bound(budget: Budget, queries: int, beta: float, sensitivity: Number = 1) -> float:
    """e: no noise is larger with probability 1 - beta, for any so many queries that one person moves by so much each.

    The accountant's own counterpart of the book's b (ln k + ln(2/beta)). What is asked may move less: `Answers.error`.
    """
    k, each = whole(queries, "the number of queries", 1, 10**9), exact(sensitivity, "the sensitivity")
    mechanism = noise(budget)
    moved = each * k if mechanism.norm is Norm.L1 else sqrt_up(each * each * k)
    return mechanism.error_bound(beta, coordinates=k, sensitivity=moved)


@dataclass(frozen=True)
class LexicographicFirst:
    """The first of all n-row databases, in lexicographic order, that fits noisy answers: for any queries (Thm 6.6).

    Databases are rows of cell numbers; of those with the same people the sorted one comes first, so only sorted ones
    are tried, up to 10^6 of them. One fits if every answer of its is within lambda/2 of the noisy one.
    Privacy: the kernel's: one release, then a search that sees nothing else (Prop. 2.1).
    Accuracy: where no noise is above lambda/2 (E36) the table itself would fit, so there is a first one, and it is
    within lambda of the truth on all that was asked: with probability 1 - beta for lambda = 2 `Answers.error`, the
    default. Its synopses have n log2 X bits. The theorem's own sizes are `any_queries` and `any_lambda`
    (`generalisation`).
    """

    people: int
    beta: float = 0.05
    lam: Number | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be searched."""
        whole(self.people, "the number of people", 1, 10**6)
        chance(self.beta)
        _checked_lambda(self.lam)

    def __call__(self, curator: Curator, workload: Workload, budget: Budget) -> Rows:
        _checked_databases(curator.schema.universe, self.people)
        _asked(curator, workload, budget)
        curator = curator.within(budget, f"LexicographicFirst of {workload}")
        answers = measured(curator, workload, budget, self.beta)
        within = answers.error if self.lam is None else float(exact(self.lam, "lambda")) / 2
        found = first_fitting(curator.schema, answers, self.people, within)
        if found is None:
            raise NoSynopsis(f"no database of {self.people} rows is within {within:g} of the noisy answers: {_UNFIT}")
        return found

    def error_bound(self, budget: Budget, queries: int, *, sensitivity: Number = 1) -> float:
        """lambda, for so many queries that one person moves by so much: what is asked is right to within it."""
        if self.lam is not None:
            return float(exact(self.lam, "lambda"))
        return 2 * noise_bound(budget, queries, self.beta, sensitivity)

    def bits(self, schema: Schema) -> float:
        """How long its synopses are."""
        return rows_bits(self.people, schema.universe)


def first_fitting(schema: Schema, answers: Answers, people: int, within: float) -> Rows | None:
    """The lexicographically first database of so many rows that answers every query to within so much, or none."""
    everybody = np.stack(np.unravel_index(np.arange(schema.universe), schema.sizes(schema.names)), axis=1)
    ends = answers.workload.offsets
    slack = within + 1e-9 * max(1.0, within)  # the answers are sums of decimals
    for block in _databases(schema.universe, people):
        counts = np.zeros((len(block), schema.universe))
        np.add.at(counts, (np.arange(len(block))[:, np.newaxis], block), 1)
        left = np.arange(len(block))
        for place, query in enumerate(answers.workload.queries):
            said = _said(query, schema, counts[left])
            close = np.abs(said - answers.values[ends[place] : ends[place + 1]]) <= slack
            left = left[close.all(axis=1)]
            if not len(left):
                break
        else:
            return Rows(schema, everybody[block[left[0]]])
    return None


@dataclass(frozen=True)
class RowSearch:
    """Synthetic rows that are moved until they fit noisy answers: for real sizes, where no search is complete.

    Weighted counts are fitted by coordinate descent, one column of all rows at a time; where some query is another
    function of the counts, by trying changes of a few rows at a time, which is slower.
    Privacy: the kernel's: one release, then a search that sees nothing else (Prop. 2.1).
    Accuracy: whatever it returns is within lambda/2 of the noisy answers, so within lambda of the truth with
    probability 1 - beta; where the total is bought its error comes to both. It may fail where rows exist that fit.
    `effort` is how many sweeps over the columns, or how many thousand changes, it tries. Its synopses have m log2 X
    bits for m rows.
    """

    total: Number | None = None
    rows: int | None = None  # as many as people, up to 20,000
    beta: float = 0.05
    lam: Number | None = None
    effort: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be searched."""
        if self.rows is not None:
            whole(self.rows, "the number of synthetic rows", 1, 10**7)
        whole(self.effort, "the effort", 1, 10**5)
        whole(self.seed, "a seed", 0, 2**63)
        chance(self.beta)
        _checked_lambda(self.lam)

    def __call__(self, curator: Curator, workload: Workload, budget: Budget) -> Rows:
        _asked(curator, workload, _rest(budget, self.total))
        curator = curator.within(budget, f"RowSearch of {workload}")
        apart, beta = _total_error(budget, self.total, self.beta, curator.relation.rows)
        total, budget = counted(curator, budget, self.total)
        answers = measured(curator, workload, budget, beta)
        within = answers.error + apart if self.lam is None else float(exact(self.lam, "lambda")) / 2
        rng = _rng(self.seed, answers)
        search = searched if all(map(_weighs, answers.workload.queries)) else searched_any
        rows = self.rows or max(1, min(round(total), 20_000))
        found = search(curator.schema, answers.workload, answers.values, total, rows, within, self.effort, rng)
        if found is None:
            raise NoSynopsis(
                f"no {rows} rows within {within:g} of the noisy answers were found with an effort of {self.effort}: "
                f"{_UNFIT}"
            )
        return found

    def error_bound(self, budget: Budget, queries: int, *, sensitivity: Number = 1) -> float:
        """lambda, for so many queries that one person moves by so much: what is asked is right to within it."""
        if self.lam is not None:
            return float(exact(self.lam, "lambda"))
        return _lambda(budget, queries, self.beta, self.total, sensitivity)

    def bits(self, schema: Schema) -> float:
        """How long its synopses are; with neither rows nor people given, as long as they may be."""
        people = 20_000 if self.total is None else min(round(float(exact(self.total, "the number of people"))), 20_000)
        return rows_bits(self.rows or max(1, people), schema.universe)


@dataclass(frozen=True)
class LinearGenerator:
    """The synthesizer on noisy answers, then a few of its rows: for weighted counts (Thm 6.8).

    With `alpha`, a share of the people, it returns n' = ln(2k/beta)/(2 alpha^2) rows, which have n' log2 X bits;
    without, the fractional database itself, which is nearer, and says whether the linear program or multiplicative
    weights made it. Multiplicative weights spread people evenly where no query looks; the program leaves them in k + 1
    cells, which does worse on queries that were not drawn (`docs/generators.md`).
    Privacy: the kernel's: one release, then post-processing (Prop. 2.1).
    Accuracy: noise at most e, hence a violation of at most e (and the solver's gap), hence answers within 2 e of the
    truth, and rows within 2 e + alpha n: with probability 1 - beta. A total that is bought adds its error. The book's
    third e is for rounding, which sampling
    does without.
    """

    total: Number | None = None
    alpha: Number | None = None
    beta: float = 0.05
    lam: Number | None = None
    solver: Solver = "best"
    steps: int = STEPS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be fitted."""
        if self.alpha is not None and not 0 < exact(self.alpha, "alpha") < 1:
            raise InvalidParameter(f"alpha is a share of the people, not {quoted(self.alpha)}. Nothing was spent.")
        whole(self.seed, "a seed", 0, 2**63)
        chance(self.beta)
        _checked_lambda(self.lam)

    def __call__(self, curator: Curator, workload: Workload, budget: Budget) -> Synopsis:
        checked(curator.schema, workload, 1 if self.total is None else self.total, self.solver, self.steps)
        _asked(curator, workload, _rest(budget, self.total))
        curator = curator.within(budget, f"LinearGenerator of {workload}")
        apart, beta = _total_error(budget, self.total, self.beta, curator.relation.rows)
        total, budget = counted(curator, budget, self.total)
        answers = measured(curator, workload, budget, beta)
        found = synthesize(
            curator.schema, answers.workload, answers.values, total, solver=self.solver, steps=self.steps
        )
        within = answers.error + apart + found.gap if self.lam is None else float(exact(self.lam, "lambda")) / 2
        if found.violation > within + 1e-6 * total:
            raise NoSynopsis(f"no database was found within {within:g} of the noisy answers: {_UNFIT}")
        if self.alpha is None:
            return found
        share = float(exact(self.alpha, "alpha"))
        rng, said = _rng(self.seed, answers), found.answer(answers.workload)
        for _ in range(_TRIES):
            rows = found.sampled(self.rows(answers.workload.size), int(rng.integers(2**62)))
            if float(np.abs(rows.answer(answers.workload) - said).max()) <= share * total:
                return rows
        raise NoSynopsis(f"{_TRIES} samples of the synthesis were all more than {share:g} from it: {_UNFIT}")

    def error_bound(self, budget: Budget, queries: int, people: int, *, sensitivity: Number = 1) -> float:
        """2 e + alpha n, for so many queries that one person moves by so much; the solver's gap comes to it."""
        if self.lam is not None:
            within = float(exact(self.lam, "lambda"))
        else:
            within = _lambda(budget, queries, self.beta, self.total, sensitivity)
        return within + (0 if self.alpha is None else float(exact(self.alpha, "alpha")) * people)

    def rows(self, queries: int) -> int:
        """n', for so many queries."""
        if self.alpha is None:
            raise InvalidParameter("without alpha no rows are drawn. Nothing was spent.")
        return subsample_rows(queries, self.beta, float(exact(self.alpha, "alpha")))

    def bits(self, schema: Schema, queries: int) -> float:
        """How long its synopses are, with alpha."""
        return rows_bits(self.rows(queries), schema.universe)


def _checked_databases(universe: int, people: int) -> None:
    few = min(universe - 1, people) <= 20  # otherwise there are C(42, 21) of them and more
    many = comb(universe + people - 1, people) if few else None
    if many is None or many > MOST_DATABASES:
        raise InvalidParameter(
            f"{universe} cells and {people} people make {quoted(many or 'over 10^11')} databases; {MOST_DATABASES} "
            "can be tried. Search for rows instead (RowSearch). Nothing was spent."
        )


def _lambda(budget: Budget, queries: int, beta: float, total: Number | None, sensitivity: Number) -> float:
    """2 e, and how far off a bought total may be: for the table scaled to it is off by as much on top of the noise."""
    apart, part = _total_error(budget, total, beta)
    return 2 * noise_bound(_rest(budget, total), queries, part, sensitivity) + apart


def _total_error(budget: Budget, total: Number | None, beta: float, rows: int = 1) -> tuple[float, float]:
    """How far off the number of people may be, and the beta that is left for the answers."""
    if total is not None:
        return 0.0, beta
    return noise(budget * SHARE).error_bound(beta / 2, sensitivity=rows), beta / 2


def _rest(budget: Budget, total: Number | None) -> Budget:
    return budget if total is not None else budget * (1 - SHARE)


def _databases(universe: int, people: int) -> Iterator[NDArray[np.int64]]:
    """All sorted rows of cells in lexicographic order, a block at a time."""
    rows = combinations_with_replacement(range(universe), people)
    while block := list(islice(rows, _BLOCK)):
        yield np.array(block, dtype=np.int64)


def _said(query: Query, schema: Schema, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a query says of each of these databases."""
    tables = [_marginals(schema, counts, columns) for columns in query.reads]
    if isinstance(query, LinearQuery) and query.size * query.cells <= 10**6:
        return np.asarray(tables[0].reshape(len(counts), -1) @ query.weights().T * float(query.grid))
    whole_tables = [np.rint(table).astype(np.int64) for table in tables]  # a function is declared for whole counts
    return np.array([query(*[table[row] for table in whole_tables]) for row in range(len(counts))], dtype=np.float64)


def _marginals(schema: Schema, counts: NDArray[np.float64], columns: tuple[str, ...]) -> NDArray[np.float64]:
    held = [name for name in schema.names if name in columns]
    gone = tuple(axis + 1 for axis, name in enumerate(schema.names) if name not in columns)
    table = counts.reshape(-1, *schema.sizes(schema.names)).sum(axis=gone)
    return np.asarray(table.transpose(0, *[held.index(name) + 1 for name in columns]))


def _weighs(query: Query) -> bool:
    return isinstance(query, LinearQuery)


def _rng(seed: int, answers: Answers) -> np.random.Generator:
    """Post-processing's own randomness: from the seed and the answers, so that no two rounds share it."""
    return np.random.default_rng([whole(seed, "a seed", 0, 2**63), zlib.crc32(answers.values.tobytes())])


def _checked_lambda(lam: Number | None) -> None:
    if lam is not None and exact(lam, "lambda") <= 0:
        raise InvalidParameter(f"lambda must be positive, not {quoted(lam)}. Nothing was spent.")
