"""Sparse vector: very many queries, of which only few may be above the threshold (Section 3.6, Algs. 2 and 3)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, sqrt
from threading import Lock

from tacit.curator.kernel import Curator, Session
from tacit.domain.query import Query
from tacit.errors import Halted, InvalidParameter
from tacit.primitives.additive import Gaussian, Laplace, each
from tacit.primitives.threshold import MOST_ABOVE, AboveThreshold, SparseVector
from tacit.privacy.budget import Budget, Currency
from tacit.rational import Number, exact, shown, whole

NUMERIC = Fraction(1, 9)  # of Alg. 3's budget, for the answers


class Openings:
    """Yes or no to one query after the other, by an interactive mechanism that is paid for anew whenever it halts.

    Privacy: the kernel's; the curator is a block of its own, which pays for every opening.
    """

    def __init__(self, curator: Curator, vector: AboveThreshold | SparseVector, left: int) -> None:
        self._curator, self._vector = curator, vector
        self._left, self._of = left, left
        self._session: Session | None = None
        self._turn = Lock()

    @property
    def left(self) -> int:
        """How many more it will say are above."""
        return self._left

    def ask(self, query: Query) -> bool:
        """Whether it is above; after the last that is, it has halted. A "no" writes nothing to the ledger."""
        with self._turn:
            if not self._left:
                raise Halted(f"all {self._of} answers above the threshold have been given. Nothing was drawn.")
            above: bool = self._ready().ask(query)
            self._left -= above
            return above

    def ready(self) -> None:
        """Pays for the next opening now, where one is needed, so that the next query that is below costs nothing."""
        with self._turn:
            if self._left:
                self._ready()

    def _ready(self) -> Session:
        if self._session is None or self._session.halted:
            self._session = self._curator.open(self._vector)
        return self._session


class Sparse(Openings):
    """Tells for one query after the other whether it is above a threshold, until c of them were (Alg. 2).

    Privacy: the kernel's; c sessions of AboveThreshold, each of a c-th of the budget. In epsilon this is Thm 3.25 and
    its noise, 2c/eps and 4c/eps; in rho each session has eps0 > sqrt(2 rho/c), less noise than Thm 3.25 has.
    Accuracy: Thm 3.26, `sparse_book_bound`, if fewer than c queries before the last are near the threshold or above
    (E19); with the noise that is drawn, `error_bound`.
    """

    def __init__(
        self,
        curator: Curator,
        budget: Budget,
        *,
        threshold: Number,
        count: int,
        sensitivity: Number = 1,
        monotone: bool = False,
        grid: Number = Fraction(1, 1024),
    ) -> None:
        self.count = whole(count, "the number of answers above", 1, MOST_ABOVE)
        self.above = AboveThreshold((budget / self.count).epsilon, threshold, sensitivity, monotone, grid)
        inner = curator.within(budget, f"Sparse(count={self.count}, threshold={self.above.threshold})")
        super().__init__(inner, self.above, self.count)

    def error_bound(self, beta: float, *, queries: int) -> float:
        """The alpha of Thm 3.26 as a union over the c sessions of the tight bound of each, for k queries in all."""
        return self.above.error_bound(beta / self.count, queries=queries)


class LeanSparse(Openings):
    """Sparse with the least noise that is known: thresholds kept where that pays, and noise of one sign.

    One `SparseVector` for all c answers, or c of them, each halting at its first: whichever has less noise under this
    budget. In epsilon that is always one; in rho, where a small epsilon costs its square, c of them from c = 2 on,
    unless the budget is so large that each of them has an epsilon of about 1 or more.
    Privacy: the kernel's.
    Accuracy: `no_bound` and `yes_bound`, apart: an error that was not told does not grow with the number of queries.
    """

    def __init__(
        self,
        curator: Curator,
        budget: Budget,
        *,
        threshold: Number,
        count: int,
        sensitivity: Number = 1,
        monotone: bool = False,
        grid: Number = Fraction(1, 1024),
    ) -> None:
        self.count = whole(count, "the number of answers above", 1, MOST_ABOVE)
        self.sessions, self.vector = lean(budget, threshold, self.count, sensitivity, monotone, grid)
        self.vector.check()
        inner = curator.within(budget, f"LeanSparse(count={self.count}, threshold={self.vector.threshold})")
        super().__init__(inner, self.vector, self.count)

    def no_bound(self, beta: float) -> float:
        """How far above the threshold a query that is told "no" may be, whichever of all, with probability 1 - beta."""
        return self.vector.no_bound(each(beta, self.sessions))

    def yes_bound(self, beta: float, *, queries: int) -> float:
        """How far below it one of so many that is told "yes" may be."""
        return self.vector.yes_bound(beta, queries=queries)


def lean(
    budget: Budget,
    threshold: Number,
    count: int,
    sensitivity: Number = 1,
    monotone: bool = False,
    grid: Number = Fraction(1, 1024),
    *,
    least: int = 1,
) -> tuple[int, SparseVector]:
    """How many sessions, and of what kind, tell c answers above with the least noise: by public facts alone.

    At least so many sessions, where each is to be lost at a restart: then the others are left.
    """
    count = whole(count, "the number of answers above", 1, MOST_ABOVE)
    least, noise = whole(least, "the number of sittings", 1, MOST_ABOVE), {}
    for sessions in {min(least, count), count}:
        part = (budget / sessions).epsilon
        noise[sessions] = SparseVector(part, threshold, ceil(count / sessions), sensitivity, monotone, grid)
    sessions = min(noise, key=lambda held: (noise[held].threshold_scale + noise[held].query_scale, held))
    return sessions, noise[sessions]


class NumericSparse:
    """Sparse that also answers the queries which are above, with fresh noise (Alg. 3).

    Privacy: the kernel's; Sparse with eight ninths of the budget, c answers with the ninth. In epsilon this is
    Thm 3.27: thresholds of scale 9c/4eps, queries 9c/2eps, answers 9c/eps. In rho the answers are Gaussian.
    Accuracy: Thm 3.28, `numeric_book_bound`, which needs a correction where delta > 0 (E17).
    """

    def __init__(
        self,
        curator: Curator,
        budget: Budget,
        *,
        threshold: Number,
        count: int,
        sensitivity: Number = 1,
        monotone: bool = False,
        grid: Number = Fraction(1, 1024),
        share: Number = NUMERIC,
    ) -> None:
        part = exact(share, "the answers' share")
        if not 0 < part < 1:
            raise InvalidParameter(
                f"the answers' share must lie between 0 and 1, not {shown(part)}. Nothing was spent."
            )
        count = whole(count, "the number of answers above", 1, MOST_ABOVE)
        answer = budget * part / count
        self.noise = Laplace(answer.epsilon) if answer.currency is Currency.EPSILON else Gaussian(answer.rho)
        self._curator = curator.within(budget, f"NumericSparse(count={count})")
        self._sparse = Sparse(
            self._curator,
            budget * (1 - part),
            threshold=threshold,
            count=count,
            sensitivity=sensitivity,
            monotone=monotone,
            grid=grid,
        )

    @property
    def left(self) -> int:
        """How many answers it will still give."""
        return self._sparse.left

    @property
    def above(self) -> AboveThreshold:
        """What decides whether a query is answered."""
        return self._sparse.above

    def ask(self, query: Query) -> float | None:
        """A noisy answer if the query is above, None if not. The noise that was compared is never released."""
        return float(self._curator.release(self.noise, query).item()) if self._sparse.ask(query) else None

    def error_bound(self, beta: float, *, queries: int) -> float:
        """The alpha of Thm 3.28, with the noise that is drawn: half of beta for Sparse, half for the c answers.

        On whatever grid an answer is: P[|Z| > e] is at most 2 exp(-e/b) for the discrete Laplace, and 2 exp(-e^2/2s^2)
        for the discrete Gaussian (Canonne, Kamath & Steinke 2020, Cor. 17).
        """
        moved, exponent = self.above.sensitivity, log(2 / each(beta / 2, self._sparse.count))
        if isinstance(self.noise, Laplace):
            answers = float(self.noise.scale(moved)) * exponent
        else:
            answers = sqrt(2 * float(self.noise.variance(moved)) * exponent)
        return max(self._sparse.error_bound(beta / 2, queries=queries), answers)


def sparse_scale(epsilon: float, delta: float, count: int) -> float:
    """Alg. 2's scale of the threshold's noise; a query has twice that. With delta > 0, eps is at most 1."""
    if delta == 0:
        return 2 * count / epsilon
    return sqrt(32 * count * log(1 / _checked(epsilon, delta))) / epsilon


def sparse_book_bound(epsilon: float, delta: float, count: int, queries: int, beta: float) -> float:
    """Thm 3.26: alpha = 4 sigma (ln k + ln(2c/beta))."""
    return 4 * sparse_scale(epsilon, delta, count) * (log(queries) + log(2 * count / beta))


def numeric_parts(epsilon: float, delta: float) -> tuple[float, float]:
    """Alg. 3's eps1 for Sparse and eps2 for the answers (E18); eps2 counts double, as its scale carries a 2."""
    ratio = 8.0 if delta == 0 else sqrt(512)
    return ratio / (ratio + 1) * epsilon, 2 / (ratio + 1) * epsilon


def numeric_scales(epsilon: float, delta: float, count: int) -> tuple[float, float, float]:
    """Alg. 3's scales of the noise of the threshold, of the queries, and of the answers."""
    threshold, answers = (sparse_scale(part, delta / 2, count) for part in numeric_parts(epsilon, delta))
    return threshold, 2 * threshold, answers


def numeric_book_bound(
    epsilon: float, delta: float, count: int, queries: int, beta: float, *, corrected: bool = True
) -> float:
    """Thm 3.28: alpha = 4 sigma(eps1) (ln k + ln(4c/beta)), and no less than the answers' sigma(eps2) ln(2c/beta).

    The book has the first alone. With delta = 0 it is never the smaller one; with delta > 0 it can be (E17).
    """
    threshold, _, answers = numeric_scales(epsilon, delta, count)
    book = 4 * threshold * (log(queries) + log(4 * count / beta))
    return max(book, answers * log(2 * count / beta)) if corrected else book


def _checked(epsilon: float, delta: float) -> float:
    if epsilon > 1 or not 0 < delta < 1:
        raise InvalidParameter("Corollary 3.21 is for epsilon at most 1 and delta between 0 and 1. Nothing was spent.")
    return delta
