"""Tables that Spark holds: the kernel runs where the rows are, Spark carries whole numbers, and they are added.

A pass is one job of two stages. In the first, each task counts its rows and gives the pieces of its tables, marked with
its attempt; the second adds them up. A task that ran twice, as it was lost or too slow, is in a sum once: Spark takes
the output of one attempt that has finished, of which the others know nothing (an accumulator would add them all). Only
where outputs are lost *between* the stages may one sum hold a first attempt and another sum the second. The marks show
it, and such a pass is done again.

With a bound on a person's rows a stage comes before, which brings the cells of a person into one task. That task alone
chooses, and as one attempt of it is counted, nobody has more rows than the bound, whatever was read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.domain.query import Columns
from tacit.domain.schema import Schema
from tacit.engines.bounding import Bound
from tacit.engines.cluster import Stamps, fitting, quiet
from tacit.engines.counting import Tally
from tacit.engines.sources import Header, Progress
from tacit.engines.tasks import (
    COUNTED,
    ENCODED,
    Add,
    Count,
    CountBounded,
    Encode,
    Lines,
    Task,
    filled,
    pieces,
    tallying,
)
from tacit.errors import DataUnavailable, InvalidData

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRIES = 4  # of a pass, as Spark tries each task four times
TASKS_A_CORE = 3  # of people: three, so that one large task does not hold up the rest


class Part(NamedTuple):
    """Rows of one header."""

    frame: DataFrame  # columns by their places: c0, c1, ...; lines as (value, start, file)
    header: Header
    lines: Lines | None = None


class Spark:
    """Rows that Spark reads: a frame, a table of the catalogue, or files."""

    kind = "Spark"
    coded: frozenset[str] = frozenset()

    def __init__(self, parts: Sequence[Part], stamps: Stamps) -> None:
        self.rows: int | None = None
        self._parts, self._stamps = parts, stamps

    def headers(self) -> Iterator[Header]:
        """The columns of each part; refuses what is read differently each time."""
        fitting()
        for part in self._parts:
            if part.frame.isStreaming:
                raise InvalidData("a stream of Spark has no end; write it to a table first. Nothing was read.")
            if not part.frame._jdf.queryExecution().analyzed().deterministic():
                raise InvalidData(
                    "the frame draws at random whenever it is read, so that two counts would be of two tables; "
                    "write it to a table or checkpoint it first. Nothing was read."
                )
            yield part.header

    def check(self) -> None:
        """Stops when a file has changed."""
        if not self._stamps.same():
            raise DataUnavailable(
                "the source has changed since it was opened; what was charged stays charged, nothing was drawn."
            )

    def batches(self, names: Columns, rows: int) -> Iterator[Any]:
        """No row comes here."""
        raise DataUnavailable("rows of Spark stay where they are. Nothing was drawn.")

    def tallied(
        self,
        schema: Schema,
        names: Columns,
        column_sets: Sequence[Columns],
        bound: Bound | None,
        progress: Progress | None,
    ) -> Tally:
        """One pass over all rows, or the next one where a task was lost between its stages."""
        with quiet(self._parts[0].frame.sparkSession):
            sums = self._sums(schema, names, tuple(column_sets), bound)
            for _ in range(TRIES):
                tally, attempts, rows = filled(schema, column_sets, sums.toArrow())
                if all(len(each) == 1 for each in attempts.values()):
                    break
            else:
                raise DataUnavailable("tasks were lost again and again. Nothing was drawn.")
        if self.rows not in (None, rows):
            raise DataUnavailable("the rows are not those of the last pass. Nothing was drawn.")
        if bound is not None or len(names) == len(schema):
            self.rows = rows
        if progress is not None:
            progress(rows, rows)
        return tally

    def _sums(self, schema: Schema, names: Columns, column_sets: tuple[Columns, ...], bound: Bound | None) -> DataFrame:
        """What adds up all counts when it is collected."""
        cores = self._parts[0].frame.sparkSession.sparkContext.defaultParallelism
        if bound is None:

            def count(lines: Lines | None, chosen: tuple[int, ...]) -> Task:
                return Count(schema, names, lines, chosen, column_sets)

            counted = self._mapped(names, count, COUNTED)
        else:

            def encode(lines: Lines | None, chosen: tuple[int, ...]) -> Task:
                return Encode(schema, schema.names, lines, chosen, bound.key)

            # all columns, so that every pass has the same rows of a person
            rows = self._mapped((*schema.names, bound.column), encode, ENCODED)
            # a number of tasks that is written out is one that Spark neither splits nor joins while it runs
            people = rows.repartition(TASKS_A_CORE * cores, "person").sortWithinPartitions("person", "cells")
            counted = _sent(people, CountBounded(schema, column_sets, bound.most, bound.key), COUNTED)
        adders = max(1, min(cores, len(pieces(tallying(schema, column_sets)))))
        together = counted.repartition(adders, "piece").sortWithinPartitions("piece")
        return _sent(together, Add(schema, column_sets), COUNTED)

    def _mapped(self, names: Columns, task: Callable[[Lines | None, tuple[int, ...]], Task], said: str) -> DataFrame:
        """What a task makes of these columns of every part; a person's stands last."""
        found = []
        for part in self._parts:
            places = {name: at for at, (name, _) in enumerate(part.header)}
            chosen = tuple(places[name] for name in names)
            frame = part.frame
            if part.lines is None:
                frame = frame.select(*(frame[f"c{at}"] for at in chosen))
            found.append(_sent(frame, task(part.lines, chosen), said))
        return reduce(lambda one, other: one.union(other), found)


def _sent(frame: DataFrame, task: Task, said: str) -> DataFrame:
    return frame.mapInArrow(task, said)
