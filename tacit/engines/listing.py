"""The values of a column that has no domain yet, each with how many rows hold it, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.domain.dates import number_of, shown_day
from tacit.domain.listing import Listed, clean
from tacit.domain.person import Person
from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines import persons
from tacit.engines.choosing import Chosen, Lots, chosen
from tacit.engines.columns import bare
from tacit.engines.counting import chunk
from tacit.engines.days import days_of
from tacit.engines.figures import Mask, as_bytes, gaps_in, is_text, primitives
from tacit.errors import InvalidParameter

BUCKETS = 2**10  # of values, by their hash; one of them at least is counted to its end in each reading
MOST_HELD = 2**21  # different values that are counted at once; of more, some wait for another reading
LONGEST = 64  # bytes of a value that is counted; so is no text that is not clean
_CALENDAR = number_of(date.min), number_of(date.max)


class Unlisted:
    """A source whose columns have no domain yet: it lists values and counts no cells.

    Privacy: none by itself. A row stands for one value of a column or for none (an empty one, one that is no clean
    text), whatever the other rows hold. With a `person`, so many rows of each count, chosen by lots as in a `Table`.
    What the rows hold decides no error and no more than how often the source is read: where it has more than MOST_HELD
    different values, it is read again for those that had to wait.
    """

    def __init__(self, schema: Schema, place: str, table: str | None, person: Person | None) -> None:
        self.schema, self.person = schema, person
        self.most_rows = 1 if person is None else person.most_rows
        self._source = bare(place, table, None if person is None else person.column)
        for _ in self._source.headers():  # they open it
            pass
        self._lots: Lots | None = None
        self._chosen: Chosen | None = None

    def __repr__(self) -> str:
        person = "" if self.person is None else f", at most {self.most_rows} rows of each {self.person.column}"
        return f"Unlisted({self._source.kind}{person})"

    def draw_from(self, lots: Lots) -> None:
        """Takes what draws the lots by which rows of a person are chosen."""
        self._lots = self._lots or lots

    def close(self) -> None:
        """Lets go of a server."""
        if (close := getattr(self._source, "close", None)) is not None:
            close()

    def counts(self, column_sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """There are no cells to count."""
        raise InvalidParameter(f"{self!r} lists values, and counts no cells. Nothing was read.")

    def values(self, column: str) -> Listed:
        """Each clean value once, as bytes, with the number of its rows."""
        waiting = list(range(BUCKETS))
        self._source.check()
        while waiting:
            held: dict[int, dict[bytes, int]] = {bucket: {} for bucket in waiting}
            waiting, size = [], 0
            for value, count in self._found(column):
                bucket = held.get(hash(value) % BUCKETS)
                if bucket is None:
                    continue
                if value in bucket:
                    bucket[value] += count
                    continue
                if clean(value, LONGEST) is None:
                    continue
                bucket[value] = count
                size += 1
                while size > MOST_HELD and len(held) > 1:
                    last, dropped = held.popitem()
                    waiting.append(last)
                    size -= len(dropped)
            self._source.check()
            for bucket in held.values():
                if bucket:
                    yield list(bucket), np.fromiter(bucket.values(), dtype=np.int64, count=len(bucket))

    def _found(self, column: str) -> Iterator[tuple[bytes, int]]:
        """Values and counts, batch by batch."""
        counted, done = self._choice(), 0
        for batch in self._source.batches((column,), chunk(1)):
            values = batch.column(0)
            if counted is not None:
                values = values.filter(pa.array(counted.part(done, batch.num_rows)))
            done += batch.num_rows
            for value, count in zip(*texts(values), strict=True):
                if value is not None:
                    yield value, count
        if counted is not None and done != counted.rows:
            raise ValueError("other rows than before")

    def _choice(self) -> Chosen | None:
        """Which rows count, where a person may have several; chosen once."""
        if self.person is not None and self._chosen is None:
            if self._lots is None:
                raise InvalidParameter("which rows of a person count is decided by lot; a curator brings the lots.")
            key = self._lots(persons.KEY_BYTES // 4).astype(np.uint32).tobytes()
            self._chosen = chosen(lambda: self._persons(key), self._lots, self.most_rows)
        return self._chosen

    def _persons(self, key: bytes) -> Iterator[tuple[persons.Words, Mask | None]]:
        assert self.person is not None  # noqa: S101 - asked for by `_choice` alone
        for batch in self._source.batches((self.person.column,), chunk(1)):
            yield persons.words_of(batch.column(0), key)


def texts(values: pa.Array) -> tuple[list[bytes | None], list[int]]:
    """The different values of an array as the texts that a CSV file would hold, and how many there are of each.

    >>> texts(pa.array([3, 1, 3, None])), texts(pa.array(["b", "b"]))
    (([b'3', b'1', None], [2, 1, 1]), ([b'b'], [2]))
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if is_text(values.type):
        values = as_bytes(values)
    if pa.types.is_temporal(values.type):
        gaps = gaps_in(values)
        days = [shown_day(day).encode() for day in np.clip(days_of(values), *_CALENDAR).tolist()]
        known = days if gaps is None else [None if gap else day for day, gap in zip(days, gaps, strict=True)]
        values = pa.array(known, pa.binary())
    counted = pc.value_counts(values)
    found: list[Any] = counted.field(0).to_pylist()
    counts: list[int] = primitives(counted.field(1)).tolist()
    return [value if value is None or isinstance(value, bytes) else str(value).encode() for value in found], counts
