"""The median of many synopses: how boosting aggregates (Figure 6.1), what the median mechanism halves (Def. 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.net import Net, Synopses, pieces
from tacit.domain.query import Columns, Marginal, Query
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import Histogram, Marginals, Released, Rows, Synopsis
from tacit.errors import InvalidData, InvalidParameter, InvalidQuery, NoSynopsis, quoted

MOST_SAVED = 10_000  # members of a saved median

_HELD = 2**25  # answers of members held at once
_BLOCK = 2**21  # answers that a net is asked for at once
_FEW, _WIDE = 64, 2**12  # rows and columns of a network
_KINDS: dict[str, type[Histogram] | type[Rows] | type[Marginals]] = {
    kind.kind: kind for kind in (Histogram, Rows, Marginals)
}


class Median(Released):
    """Answers each query by the lower median of its members' answers: always what one of them answers.

    It is as good as the better half of its members, query by query: where more than half of them are within alpha, so
    is it. Its answers need not agree with each other: the cells of a table may add up to another total.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("vote", ("no", "yes"))])
    >>> held = [Histogram(schema, np.array(counts)) for counts in ([3.0, 1.0], [2.0, 5.0], [9.0, 4.0], [4.0, 0.0])]
    >>> median = Median(held)
    >>> median.answer(Marginal.over(schema, "vote")), len(median.halved(Marginal.over(schema), +1))
    (array([3., 1.]), 2)
    """

    kind = "median"

    def __init__(
        self,
        members: Net | Sequence[Synopsis],
        kept: NDArray[np.bool_] | None = None,
        *,
        receipt: Receipt | None = None,
    ) -> None:
        self.net: Net = Synopses(members) if isinstance(members, Sequence) else members
        self.schema, self.receipt = self.net.schema, receipt
        held = np.ones(len(self.net), np.bool_) if kept is None else np.array(kept)
        if held.dtype != np.bool_ or held.shape != (len(self.net),):
            raise InvalidParameter(f"which of {len(self.net)} members are kept is as many truths. Nothing was spent.")
        if not held.any():
            raise InvalidParameter("a median has at least one member. Nothing was spent.")
        held.flags.writeable = False
        self.kept: NDArray[np.bool_] = held

    def __len__(self) -> int:
        """How many members it has."""
        return int(np.count_nonzero(self.kept))

    def members(self) -> tuple[Synopsis, ...]:
        """Each of them, as a synopsis of its own."""
        return tuple(self.net.member(int(place)) for place in np.flatnonzero(self.kept))

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        return self.answer(Marginal.over(self.schema, *names)).reshape(self.schema.sizes(names))

    def answer(self, query: Query) -> NDArray[np.float64]:
        query.check(self.schema)
        parts = list(pieces(query, max(_HELD // len(self), 1)))
        if any(part.size * len(self) > 8 * _HELD for part in parts):
            raise InvalidQuery(f"{query} has too many answers at once for {len(self)} members. Nothing was spent.")
        return np.concatenate([_lower(self._answers(part)) for part in parts])

    def halved(self, query: Query, direction: int) -> Median:
        """Without the members that answer no more than the median (direction +1) or no less (-1): at least half go.

        The comparison is strict, and with the very numbers of which the median is one, so that it always goes itself:
        at most log2 of the members updates (theory of the median mechanism; E27).
        """
        if query.size != 1 or direction not in (1, -1):
            raise InvalidParameter(
                "a median is halved by one answer, upwards (+1) or downwards (-1); not by "
                f"{query.size} answers in direction {quoted(direction)}. Nothing was spent."
            )
        query.check(self.schema)
        answers = self._answers(query)[:, 0]
        middle = _lower(answers[:, np.newaxis])[0]
        kept = self.kept.copy()
        kept[self.kept] = answers > middle if direction == 1 else answers < middle
        if not kept.any():
            raise NoSynopsis(f"none of the {len(self)} synopses left answers {query} on that side of their median.")
        return Median(self.net, kept)

    def _answers(self, query: Query) -> NDArray[np.float64]:
        # a row for each member that is kept
        step = max(_BLOCK // query.size, 1)
        rows = []
        for start in range(0, len(self.kept), step):
            kept = self.kept[start : start + step]
            if kept.any():
                rows.append(self.net.answers(query, start, start + kept.size)[kept])
        return np.concatenate(rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it."""
        held = enumerate(self._saved())
        return {f"{i}.{name}": array for i, member in held for name, array in member.arrays().items()}

    def describe(self) -> dict[str, Any]:
        """What else is saved of it."""
        held = [
            {
                "kind": member.kind,
                "about": member.describe(),
                "receipt": None if member.receipt is None else member.receipt.describe(),
            }
            for member in self._saved()
        ]
        return {"members": held}

    def _saved(self) -> list[Histogram | Rows | Marginals]:
        if len(self) > MOST_SAVED:
            raise InvalidParameter(f"a median of at most {MOST_SAVED} members can be saved, not of {len(self)}.")
        held = [member for member in self.members() if isinstance(member, Histogram | Rows | Marginals)]
        if len(held) < len(self):
            raise InvalidParameter(f"a median can be saved if each of its members is one of {', '.join(_KINDS)}.")
        return held

    @classmethod
    def restored(
        cls, schema: Schema, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], receipt: Receipt | None
    ) -> Median:
        """What was saved."""
        if set(said) != {"members"} or not isinstance(said["members"], list) or len(said["members"]) > MOST_SAVED:
            raise InvalidData("it is said to be a median, and is none. Nothing was spent.")
        theirs: list[dict[str, NDArray[Any]]] = [{} for _ in said["members"]]
        for name, array in arrays.items():
            place, _, inner = name.partition(".")
            if not place.isdecimal() or len(place) > 5 or int(place) >= len(theirs) or str(int(place)) != place:
                raise InvalidData("its arrays belong to no member. Nothing was spent.")
            theirs[int(place)][inner] = array
        members = []
        for member, held in zip(said["members"], theirs, strict=True):
            if set(member) != {"kind", "about", "receipt"} or member["kind"] not in _KINDS:
                raise InvalidData("one of its members is of no kind that can be read. Nothing was spent.")
            paid = None if member["receipt"] is None else Receipt.of(member["receipt"])
            members.append(_KINDS[member["kind"]].restored(schema, member["about"], held, paid))
        if not members:
            raise InvalidData("it is said to be a median of no members. Nothing was spent.")
        return cls(members, receipt=receipt)


def _lower(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of n sorted numbers the one at ceil(n/2), column by column: with n even there is no middle, and this is attained.

    Of few rows it is found by a network of minima and maxima, many columns at a time; of many by partition.
    """
    count, width = rows.shape
    place = (count - 1) // 2
    if count > _FEW or width < count:
        return np.asarray(np.partition(rows, place, axis=0)[place])
    middle = np.empty(width)
    for start in range(0, width, _WIDE):
        block = rows[:, start : start + _WIDE].copy()
        wires, spare = list(block), np.empty(block.shape[1])
        for i, j in _network(count):
            np.minimum(wires[i], wires[j], out=spare)
            np.maximum(wires[i], wires[j], out=wires[j])
            wires[i], spare = spare, wires[i]
        middle[start : start + _WIDE] = wires[place]
    return middle


@cache
def _network(count: int) -> tuple[tuple[int, int], ...]:
    """Batcher's merge exchange sort (Knuth 5.2.2 M), without comparisons on which the lower median does not hang."""
    pairs, top = [], 1 << max(count - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(count - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    needed, kept = {(count - 1) // 2}, []
    for i, j in reversed(pairs):
        if i in needed or j in needed:
            needed |= {i, j}
            kept.append((i, j))
    return tuple(reversed(kept))
