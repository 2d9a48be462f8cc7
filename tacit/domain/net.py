"""Nets: public sets of synopses of which one is near every table (Def. 5.2); the small databases are one (Alg. 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import comb, log
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.query import Conjunctions, Counting, Linear, LinearQuery, Marginal, Query
from tacit.domain.schema import Schema
from tacit.domain.single import single
from tacit.domain.synopsis import Rows, Synopsis
from tacit.domain.vc import log_multisets, subsample_size
from tacit.domain.workload import Workload
from tacit.errors import InvalidParameter, InvalidQuery, quoted
from tacit.rational import Number, exact, whole

MOST_MEMBERS = 10**7

_HELD = 2**25  # weights of queries that are kept between two blocks
_LONG = 2000  # numbers from which on adding them in one call pays
_Levels: TypeAlias = Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]


@runtime_checkable
class Net(Protocol):
    """Synopses in a fixed, public order; chosen before the data are seen."""

    @property
    def schema(self) -> Schema: ...

    def __len__(self) -> int: ...

    def answers(self, query: Query, start: int, stop: int) -> NDArray[np.float64]:
        """What each member from start to stop answers, at the scale of counts: a row for each."""
        ...

    def member(self, place: int) -> Synopsis:
        """One of them."""
        ...


class Synopses:
    """A net of synopses that are given, each over the same schema."""

    def __init__(self, members: Iterable[Synopsis]) -> None:
        self.members = tuple(members)
        if not 1 <= len(self.members) <= MOST_MEMBERS:
            raise InvalidParameter(
                f"a net has 1 to {MOST_MEMBERS} members, not {len(self.members)}. Nothing was spent."
            )
        self.schema = self.members[0].schema
        if any(member.schema != self.schema for member in self.members):
            raise InvalidParameter("the members of a net are all over one schema; these are not. Nothing was spent.")

    def __len__(self) -> int:
        return len(self.members)

    def answers(self, query: Query, start: int, stop: int) -> NDArray[np.float64]:
        """What each member from start to stop answers."""
        return np.stack([member.answer(query) for member in self.members[start:stop]])

    def member(self, place: int) -> Synopsis:
        """One of them."""
        return self.members[place]


class SmallDatabases:
    """Every multiset of m rows over the universe, each standing for `total` people, in lexicographic order.

    Accuracy: one of them is within alpha of any table on |Q| weighted counts, for m = ceil(ln(2|Q|) / 2 alpha^2)
    (Thm 4.2, E24b). There are C(|X| + m - 1, m) of them; up to 10^7 are allowed, and none is written down.

    >>> from tacit.domain.schema import Integers
    >>> small = SmallDatabases(Schema([Integers("age", 0, 2)]), 2, 10)
    >>> len(small), [small.cells(place).tolist() for place in range(6)]
    (6, [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]])
    >>> small.member(4).project(("age",))
    array([0., 5., 5.])
    """

    # A member is written as its rows, rising, or, where the universe is smaller than m, as how many rows lie beyond
    # each cell but the last, falling. Both words have the same order, and a block of them is made letter by letter, so
    # that what two of them begin with is added up once.

    def __init__(self, schema: Schema, rows: int, total: Number) -> None:
        self.schema = schema
        self.rows = whole(rows, "the number of rows of a small database", 1, MOST_MEMBERS)
        people = exact(total, "the number of people")
        if people <= 0:
            raise InvalidParameter(f"the number of people must be positive, not {quoted(total)}. Nothing was spent.")
        self.total = float(people)
        universe = self._universe = schema.universe
        if (count := counted(universe, self.rows)) is None:
            size = log_multisets(universe, self.rows)
            said = comb(universe + rows - 1, rows) if size < 60 else f"about 10^{size / log(10):.0f}"
            raise InvalidParameter(
                f"there are {said} databases of {rows} rows over {universe} cells; a net has at most {MOST_MEMBERS}. "
                "Ask for fewer rows, or for fewer columns. Nothing was spent."
            )
        self._count = count
        self._by_rows = self.rows < universe
        # the last query, whether it is a weighted count, and what it weighs: it is asked for block after block
        self._asked: tuple[Query, bool, NDArray[np.float64] | None] | None = None

    def __len__(self) -> int:
        return self._count

    def cells(self, place: int) -> NDArray[np.int64]:
        """The rows of the member at a place, as cells of the universe, rising."""
        word = self._word(whole(place, "the place of a member", 0, len(self) - 1))
        if self._by_rows:
            return np.array(word, dtype=np.int64)
        return np.repeat(np.arange(self._universe), -np.diff([self.rows, *word, 0]))

    def place(self, cells: Iterable[int]) -> int:
        """The place of the member with these rows."""
        rows = sorted(whole(cell, "a cell", 0, self._universe - 1) for cell in cells)
        if len(rows) != self.rows:
            raise InvalidParameter(f"these databases have {self.rows} rows, not {len(rows)}. Nothing was spent.")
        if self._by_rows:
            place, least = 0, 0
            for left, cell in zip(range(self.rows, 0, -1), rows, strict=True):
                place += self._from(least, left) - self._from(cell, left)
                least = cell
            return place
        beyond = len(rows) - np.searchsorted(rows, np.arange(self._universe - 1), side="right")
        return sum(_upto(int(r), left) for r, left in zip(beyond, range(self._universe - 1, 0, -1), strict=True))

    def member(self, place: int) -> Rows:
        """The small database at a place, scaled to the total."""
        codes = np.unravel_index(self.cells(place), self.schema.sizes(self.schema.names))
        return Rows(self.schema, np.stack(codes, axis=1), total=self.total)

    def answers(self, query: Query, start: int, stop: int) -> NDArray[np.float64]:
        """What each member from start to stop answers."""
        if not 0 <= start < stop <= len(self):
            raise InvalidParameter(f"a net of {len(self)} members has none from {start} to {stop}. Nothing was spent.")
        asked = self._asked
        if asked is None or asked[0] is not query:
            query.check(self.schema)
            weighs = all(isinstance(part, LinearQuery) for part in _parts(query))
            few = weighs and self._universe * query.size <= _HELD
            asked = self._asked = query, weighs, self._fresh(query, np.arange(self._universe)) if few else None
        if not asked[1]:
            return np.stack([self.member(place).answer(query) for place in range(start, stop)])
        first, last = self._word(start), self._word(stop - 1)
        return self._by_prefixes(query, first, last) if self._by_rows else self._by_product(query, first, last)

    def _by_prefixes(self, query: Query, first: list[int], last: list[int]) -> NDArray[np.float64]:
        sums = np.zeros((1, query.size))
        for lengths, cells in _words(first, last, lambda low: (low.copy(), np.full(low.size, self._universe - 1))):
            if query.size * cells.size < _LONG * lengths.size:  # short runs
                longer = sums.take(np.repeat(np.arange(lengths.size), lengths), axis=0)
                longer += self._weighed(query, cells)
            else:
                longer = np.empty((cells.size, query.size))
                at = 0
                for run, length in enumerate(lengths.tolist()):
                    low = int(cells[at])
                    weights = self._weighed(query, range(low, low + length))
                    np.add(weights, sums[run], out=longer[at : at + length])
                    at += length
            sums = longer
        return sums

    def _by_product(self, query: Query, first: list[int], last: list[int]) -> NDArray[np.float64]:
        left = np.array([self.rows])
        counts: list[NDArray[np.int64]] = []
        for lengths, beyond in _words(first, last, lambda high: (np.zeros_like(high), high.copy()), self.rows):
            counts = [np.repeat(count, lengths) for count in counts]
            counts.append(np.repeat(left, lengths) - beyond)
            left = beyond
        histograms = np.stack([*counts, left], axis=1).astype(np.float64)
        return histograms @ self._weighed(query, range(self._universe))

    def _weighed(self, query: Query, cells: NDArray[np.int64] | range) -> NDArray[np.float64]:
        """What one row in each of these cells adds to each answer; not to be changed."""
        held = self._asked
        if held is None or held[0] is not query or held[2] is None:  # another thread may have asked
            return self._fresh(query, np.asarray(cells))
        return held[2][cells.start : cells.stop] if isinstance(cells, range) else held[2].take(cells, axis=0)

    def _fresh(self, query: Query, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        codes = dict(zip(self.schema.names, np.unravel_index(cells, self.schema.sizes(self.schema.names)), strict=True))
        weights, at = np.empty((cells.size, query.size)), 0
        for part in _parts(query):
            assert isinstance(part, LinearQuery)  # noqa: S101
            place = np.zeros(cells.size, np.int64)
            for name, size in zip(part.columns, part.sizes, strict=True):
                place *= size
                place += codes[name]
            scale = float(part.grid) * (self.total / self.rows)
            weights[:, at : at + part.size] = (part.weights() * scale).T[place]
            at += part.size
        return weights

    def _from(self, least: int, left: int) -> int:
        """How many rising words of so many letters there are from this cell on."""
        return comb(self._universe - least + left - 1, left)

    def _word(self, place: int) -> list[int]:
        word: list[int] = []
        least, most = 0, self.rows
        if self._by_rows:
            for left in range(self.rows, 0, -1):
                cell = _last(least, self._universe, lambda c: self._from(least, left) - self._from(c, left), place)  # noqa: B023
                place -= self._from(least, left) - self._from(cell, left)
                word.append(least := cell)
            return word
        for left in range(self._universe - 1, 0, -1):
            most = _last(0, most + 1, lambda r: _upto(r, left), place)  # noqa: B023
            place -= _upto(most, left)
            word.append(most)
        return word


def _last(start: int, stop: int, before: Callable[[int], int], place: int) -> int:
    """The last letter before which no more than so many words begin."""
    return start + bisect_right(range(start, stop), place, key=before) - 1


def _parts(query: Query) -> tuple[Query, ...]:
    return query.queries if isinstance(query, Workload) else (query,)


def _upto(number: int, left: int) -> int:
    """How many falling words of so many letters begin below this number."""
    return comb(number - 1 + left, left) if number else 0


def _words(
    first: list[int],
    last: list[int],
    between: Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]],
    start: int = 0,
) -> _Levels:
    """The words from first to last, letter by letter: for each beginning how often it goes on, and with what."""
    letters = np.array([start])
    for one, other in zip(first, last, strict=True):
        low, high = between(letters)
        low[0], high[-1] = one, other
        lengths = high - low + 1
        ends = np.cumsum(lengths)
        letters = np.arange(int(ends[-1])) + np.repeat(low - (ends - lengths), lengths)
        yield lengths, letters


def counted(universe: int, rows: int) -> int | None:
    """How many small databases there are: C(|X| + m - 1, m), or None where a net may not have so many."""
    if universe > MOST_MEMBERS or log_multisets(universe, rows) > log(MOST_MEMBERS) + 1:
        return None
    count = comb(universe + rows - 1, rows)
    return count if count <= MOST_MEMBERS else None


def sampling_net(schema: Schema, queries: int, alpha: Number, total: Number) -> SmallDatabases:
    """The net of the sampling lemma: within alpha (a share) of every table, on any so many weighted counts (Thm 4.2).

    >>> from tacit.domain.schema import Integers
    >>> net = sampling_net(Schema([Integers("age", 0, 5)]), 21, 0.5, 1000)
    >>> net.rows, len(net), round(net_size_bound(6, 21, 0.5), 3)
    (8, 1287, 7.16)
    """
    return SmallDatabases(schema, subsample_size(queries, alpha), total)


def net_size_bound(universe: int, queries: int, alpha: Number) -> float:
    """Above ln|N|: the least net within alpha of every table is no larger than the sampling net, ln C(|X| + m - 1, m).

    The book has ln|X| ln|Q| / alpha^2 (after Prop. 5.2), up to its missing ceiling.
    """
    return log_multisets(universe, subsample_size(queries, alpha))


def spread(query: Query) -> Fraction:
    """How far apart the weights of two people may be in one answer; 1 for counts, 2 for parities, none for functions.

    A share alpha of the sampling lemma is a share of this.
    """
    widest = Fraction(0)
    for part in _parts(query):
        if isinstance(part, Counting | Linear | Marginal | Conjunctions | Prefixes | Ranges):
            widest = max(widest, Fraction(1))
        elif isinstance(part, LinearQuery):
            weights = part.weights()
            widest = max(widest, (max(int(weights.max()), 0) - min(int(weights.min()), 0)) * part.grid)
        else:
            raise InvalidQuery(
                f"{part} is no weighted count of people, and the sampling lemma is for those; say how many rows. "
                "Nothing was spent."
            )
    return widest


def pieces(query: Query, most: int) -> Iterator[Query]:
    """The query in parts of at most so many answers each, in order; what cannot be taken apart stays whole."""
    if query.size <= most:
        yield query
    elif isinstance(query, Workload):
        start = 0
        for stop in range(1, len(query) + 1):
            if stop == len(query) or query.offsets[stop + 1] - query.offsets[start] > most:
                part = query[start:stop] if stop - start > 1 else query[start]
                yield from [part] if part.size <= most else pieces(part, most)
                start = stop
    elif isinstance(query, LinearQuery):
        for at in range(0, query.size, most):
            yield Workload(tuple(single(query, place) for place in range(at, min(at + most, query.size))))
    else:
        yield query
