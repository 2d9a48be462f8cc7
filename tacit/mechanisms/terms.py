"""The terms of a session: threshold, step and number of paid answers, chosen by bounds from public facts alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import Any

from tacit.domain.person import MOST_ROWS, Relation
from tacit.domain.query import WEIGHT_GRID
from tacit.domain.schema import Neighbors, Schema
from tacit.domain.synopsis import MOST_CELLS
from tacit.domain.workload import marginals
from tacit.errors import InvalidParameter, NoSuchGuarantee, quoted
from tacit.mechanisms.matching import MatchingWeights
from tacit.mechanisms.sparse import lean
from tacit.mechanisms.surprise import within
from tacit.mechanisms.total import noise
from tacit.mechanisms.updates import Update
from tacit.primitives.additive import each
from tacit.primitives.mechanism import chance
from tacit.primitives.threshold import MOST_ABOVE
from tacit.privacy.budget import Budget
from tacit.rational import Number, exact, shown, whole

BETA, QUERIES = 0.05, 10_000
FIRST = Fraction(1, 10)  # of the budget, for the marginals that the hypothesis begins with
LEARNT = {1: 0.1, 2: 0.01}  # nats that are reckoned with after marginals of one column, and of two; measured
WIDE = 0.5  # after marginals of one column, where the universe is too large to be written out; measured
GRID = WEIGHT_GRID  # of the questions: any weighted count stands on it
MOST_FITTED = 2**20  # cells of a universe over which pairs of columns are fitted
_SHARES = tuple(Fraction(share) for share in ("1/10", "1/5", "1/3", "1/2"))  # of the rest, for the paid answers
_SPARE = 8  # one paid answer in so many is for false alarms


@dataclass(frozen=True)
class Terms:
    """What a session does, and what it promises with probability 1 - beta; it prints itself in words.

    An answer whose error seems to be above `threshold` people is paid for, `count` times; the others are free. A free
    answer is within `error` people, a paid one within `paid_error`. The paid answers will do while it learns `nats`.
    """

    people: float
    queries: int
    threshold: int
    count: int
    alpha: float
    ways: int  # the columns of the marginals that the hypothesis begins with; 0 for none
    first: Fraction  # of the budget, for these marginals
    share: Fraction  # of the rest, for the paid answers
    error: float
    paid_error: float
    beta: float
    sittings: int  # so many restarts at least, each of which loses the threshold, are allowed for
    nats: float  # how much nearer the hypothesis may come to the people until the paid answers are used up
    rows: int = 1  # that one person has in the counts, at most

    @property
    def slack(self) -> float:
        """How far off a paid answer may be, as a share of the people."""
        return min(self.paid_error / self.people, 0.999)

    @property
    def counted(self) -> str:
        """What the answers count, in words."""
        return "people" if self.rows == 1 else "rows"

    @property
    def rule(self) -> Update:
        """The update rule that was reckoned with."""
        return MatchingWeights(min(self.alpha, 1.0), self.slack, self.nats)

    def describe(self) -> dict[str, Any]:
        """For machines; amounts are exact."""
        return {key: str(value) if isinstance(value, Fraction) else value for key, value in asdict(self).items()}

    def __str__(self) -> str:
        start = ("the uniform table", "bought one-way marginals", "bought two-way marginals")[self.ways]
        share, counted = f"{self.error / self.people:.2%}", self.counted
        return (
            f"For {self.people:,.0f} {counted} and up to {self.queries:,} questions: an answer that seems more than "
            f"{self.threshold:,} {counted} ({self.threshold / self.people:.2%}) off is paid for, {self.count:,} times; "
            f"all others are free. With probability {1 - self.beta:g} every free answer is within {self.error:,.0f} "
            f"{counted} ({share}) and every paid one within {self.paid_error:,.0f}. It begins with {start}; the paid "
            f"answers last until it has learnt {self.nats:.3g} nats."
        )


def choose(
    schema: Schema,
    budget: Budget,
    people: Number,
    *,
    queries: int = QUERIES,
    nats: float | None = None,
    ways: int | None = None,
    sittings: int = 1,
    beta: float = BETA,
    grid: Number = GRID,
    rows: int = 1,
    spent: str = "Nothing was spent.",
) -> Terms:
    """The terms with the least error of a free answer that is proved for so many questions; touches no data.

    A surprise teaches at least 2 alpha^2 nats, so `nats` is how much the session can learn before it has paid its last
    answer. From the uniform table nobody can learn more than ln|X|, so that with `ways=0` nothing is assumed of the
    people. With the marginals of one or two columns bought first, far less is left, and `LEARNT` is taken where nothing
    is said. Two columns are the choice where the universe and the noise allow it. A restart loses the secret threshold;
    with `sittings` it is paid for at least so many times, so that a restart loses no more than one of these.
    Where a person has several `rows`, all noise is so many times as large, and the people are their rows.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories(f"c{i}", tuple(range(10))) for i in range(6)])
    >>> terms = choose(schema, Budget.of(1, "1e-9"), 10**6, queries=10**5)
    >>> 0.01 < terms.error / terms.people < 0.02, terms.count < 0.01 * terms.queries
    (True, True)
    """
    n, k = float(exact(people, "the number of people")), whole(queries, "the number of questions", 1, 10**12)
    if n < 1:
        raise InvalidParameter(f"there is at least one person, not {quoted(people)}. Nothing was spent.")
    sittings = whole(sittings, "the number of sittings", 1, MOST_ABOVE)
    rows = whole(rows, "the most rows of a person", 1, MOST_ROWS)
    beta, ways = chance(beta), _ways(schema, budget, n, rows) if ways is None else whole(ways, "ways", 0, 2)
    left = WIDE if ways == 1 and schema.universe > MOST_CELLS else LEARNT.get(ways, log(schema.universe))
    nats = left if nats is None else float(exact(nats, "what a session learns"))
    if nats <= 0:
        raise InvalidParameter(f"what a session learns is a number of nats, not {quoted(nats)}. Nothing was spent.")
    rest = budget * (1 - FIRST) if ways else budget
    made: list[Terms] = []
    for count in _counts(min(k, MOST_ABOVE)):
        spare = max(1, count // _SPARE) if count > 1 else 0
        alpha = sqrt(nats / (2 * max(count - spare, 1)))
        for share in _SHARES:
            sessions, vector = lean(rest * (1 - share), 0, count, rows, grid=exact(grid, "the grid"), least=sittings)
            paid = noise(rest * share / count)
            erring = within(paid, beta / 4, count, rows)
            alarm = float(vector.query_scale * vector.grid) * log(max(k / _alarms(spare, beta / 4), 1.0))
            # what is believed is rounded to the grid, and shares are kept half a person from 0 and from 1
            threshold = ceil(n * alpha + 2 * erring + alarm) + 2
            error = threshold + vector.no_bound(each(beta / 2, sessions)) + 1
            made.append(
                Terms(n, k, threshold, count, alpha, ways, FIRST, share, error, erring, beta, sittings, nats, rows)
            )
    best = min(made, key=lambda terms: terms.error)
    if best.error >= n:
        raise NoSuchGuarantee(
            f"with {shown(exact(people, 'people'))} people and {budget} no error below all of them is proved for {k} "
            f"questions; name a threshold and a number of paid answers of your own. {spent}"
        )
    return best


def _counts(most: int) -> list[int]:
    return sorted({min(round(1.25**i), most) for i in range(63)})


def _ways(schema: Schema, budget: Budget, people: float, rows: int) -> int:
    """Pairs of columns, if they can be fitted in seconds and an average cell of them is well above its noise."""
    if schema.universe > MOST_FITTED or len(schema) < 3:
        return 1
    pairs, replaced = marginals(schema, 2), Relation(Neighbors.REPLACE_ONE, rows)
    mechanism = noise(budget * FIRST * Fraction(9, 10))
    deviation = mechanism.deviation(replaced.moves(pairs, mechanism.norm), pairs.grid)
    return 2 if people * len(pairs) / pairs.size > 4 * deviation else 1


def _alarms(spare: int, beta: float) -> float:
    """How many are expected where, but with probability beta, there are no more than `spare`.

    P[N > m - 1] <= exp(m - mu - m ln(m/mu)) for a sum of independent chances, and of any chances that are bounded one
    after the other; by bisection.
    """
    m, low, high = spare + 1, 0.0, float(spare + 1)
    for _ in range(60):
        mu = (low + high) / 2
        fine = mu > 0 and m * log(m / mu) - m + mu >= -log(beta)
        low, high = (mu, high) if fine or mu == 0 else (low, mu)
    return max(low, 1e-300)
