"""Synopses: what has been released, which answers for ever and for free (Section 2.3.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import nan, prod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.domain.completion import completed
from tacit.domain.lattice import TOLERANCE, Lattice
from tacit.domain.lines import write_csv
from tacit.domain.query import MOST_QUERY_CELLS, Columns, Counts, LinearQuery, Query
from tacit.domain.receipt import Receipt
from tacit.domain.residual import parts, standard_errors
from tacit.domain.sampling import fused, sampled
from tacit.domain.schema import Schema
from tacit.domain.workload import Workload
from tacit.errors import InvalidData, InvalidParameter, InvalidQuery
from tacit.rational import whole

MOST_CELLS = 10**8  # of a synopsis
MOST_ROWS = 10**8
LARGEST = 2.0**100  # count; above any noise, and the sum of all cells is still a float


class Synopsis(Protocol):
    """What has been released; to a query it looks like a table."""

    @property
    def schema(self) -> Schema: ...

    def project(self, columns: Columns) -> Counts:
        """The counts over these columns' cells, one axis a column."""
        ...

    def answer(self, query: Query) -> NDArray[np.float64]:
        """The query's answers."""
        ...


class Released:
    """What every synopsis here can do: answer, say its standard error where it is known, carry its receipt."""

    kind: ClassVar[str]
    schema: Schema
    receipt: Receipt | None

    def project(self, columns: Columns) -> NDArray[np.float64]:
        raise NotImplementedError

    @property
    def total(self) -> float:
        """How many people it says there are."""
        return float(self.project(()))

    def answer(self, query: Query) -> NDArray[np.float64]:
        """The query's answers; free, as often as one likes."""
        query.check(self.schema)
        return np.asarray(query(*[self.project(columns) for columns in query.reads]), dtype=np.float64)

    def standard_error(self, query: Query) -> NDArray[np.float64]:
        """Of each answer; NaN where it is not known, which for this kind of synopsis is everywhere."""
        query.check(self.schema)
        return np.full(query.size, nan)

    def _axes(self, columns: Columns, of: Columns) -> tuple[int, ...]:
        return tuple(of.index(name) for name in columns)

    def _checked(self, columns: Columns) -> Columns:
        names = tuple(columns)
        if len(set(names)) != len(names):
            raise InvalidQuery("a column stands twice in what is asked of a synopsis. Nothing was spent.")
        if (cells := self.schema.cells(names)) > MOST_QUERY_CELLS:
            raise InvalidQuery(
                f"these columns have {cells} cells together; one query may read {MOST_QUERY_CELLS}. Nothing was spent."
            )
        return names


class Histogram(Released):
    """Counts over the whole universe, one a cell: for universes of up to 10^8 cells.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("sex", ("F", "M")), Categories("vote", ("no", "yes"))])
    >>> Histogram(schema, np.array([[3.0, 4.0], [2.0, 1.0]])).project(("vote",))
    array([5., 5.])
    """

    kind = "histogram"

    def __init__(self, schema: Schema, counts: Counts, *, receipt: Receipt | None = None) -> None:
        if schema.universe > MOST_CELLS:
            raise InvalidParameter(f"a histogram has at most {MOST_CELLS} cells; this universe has {schema.universe}.")
        self.schema, self.receipt = schema, receipt
        self.counts = _frozen(counts, schema.sizes(schema.names))

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        return _marginal(self.counts, self.schema.names, names)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it."""
        return {"counts": self.counts}

    def describe(self) -> dict[str, Any]:
        """What else is saved of it."""
        return {}

    @classmethod
    def restored(
        cls, schema: Schema, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], receipt: Receipt | None
    ) -> Histogram:
        """What was saved."""
        if set(arrays) != {"counts"} or said:
            raise InvalidData("it is said to be a histogram, and is none. Nothing was spent.")
        return cls(schema, arrays["counts"], receipt=receipt)


class Rows(Released):
    """A synthetic table: rows of cell numbers, one column a column, that stand for `total` people.

    Nobody in it exists. It answers by counting its rows and scaling to the total.
    """

    kind = "rows"

    def __init__(
        self, schema: Schema, codes: NDArray[Any], *, total: float | None = None, receipt: Receipt | None = None
    ) -> None:
        given = np.asarray(codes)
        if given.ndim != 2 or given.shape[1] != len(schema) or given.dtype.kind not in "iu" or len(given) > MOST_ROWS:
            raise InvalidParameter(
                f"synthetic rows are whole numbers, {len(schema)} to a row, at most {MOST_ROWS} rows."
            )
        sizes = np.array(schema.sizes(schema.names))
        if given.size and not bool(np.all((given >= 0) & (given < sizes))):
            raise InvalidParameter("a synthetic row lies outside the schema.")
        self.schema, self.receipt = schema, receipt
        self.codes = np.asfortranarray(given, dtype=np.min_scalar_type(int(sizes.max()) - 1))
        self.codes.flags.writeable = False
        self._total = float(len(given) if total is None else total)
        if not 0 <= self._total <= LARGEST:
            raise InvalidParameter("the people that synthetic rows stand for are a number that is not negative.")

    def __len__(self) -> int:
        return len(self.codes)

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        sizes, axes = self.schema.sizes(names), self._axes(names, self.schema.names)
        counts = np.bincount(fused(list(self.codes.T), axes, sizes), minlength=prod(sizes))
        return np.asarray(counts.reshape(sizes) * (self._total / max(len(self), 1)), dtype=np.float64)

    def labelled(self) -> dict[str, list[str]]:
        """The values of each column as their labels; a bin is its own label."""
        named = ((column.name, np.array(column.labels, dtype=object)) for column in self.schema)
        return {name: labels[self.codes[:, i]].tolist() for i, (name, labels) in enumerate(named)}

    def write_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """A CSV file with a header and one line a row, in UTF-8; it is there whole or not at all."""
        write_csv(path, self.schema.names, zip(*self.labelled().values(), strict=True), overwrite=overwrite)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it."""
        return {"codes": self.codes}

    def describe(self) -> dict[str, Any]:
        """What else is saved of it."""
        return {"total": self._total}

    @classmethod
    def restored(
        cls, schema: Schema, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], receipt: Receipt | None
    ) -> Rows:
        """What was saved."""
        if set(arrays) != {"codes"} or set(said) != {"total"} or type(said["total"]) is not float:
            raise InvalidData("they are said to be synthetic rows, and are none. Nothing was spent.")
        return cls(schema, arrays["codes"], total=said["total"], receipt=receipt)


class Marginals(Released):
    """Released marginals that agree with each other wherever they overlap.

    Columns that some marginal holds together are answered from it, with a standard error. For others `project`
    estimates the most even table that fits (`domain.completion`): no measurement, hence without a standard error.
    `variances` has for each column set T within the marginals the variance v of its part u_T (`domain.residual`).
    """

    kind = "marginals"

    def __init__(
        self,
        schema: Schema,
        tables: Mapping[Columns, Counts],
        *,
        variances: Mapping[Columns, float] | None = None,
        nonnegative: bool = True,
        receipt: Receipt | None = None,
    ) -> None:
        for columns in tables:
            if columns != tuple(name for name in schema.names if name in columns):
                raise InvalidParameter("the columns of a released marginal stand in the schema's order, each once.")
        if not tables or sum(schema.cells(columns) for columns in tables) > MOST_CELLS:
            raise InvalidParameter(f"released marginals are one or more, with at most {MOST_CELLS} cells together.")
        self.schema, self.nonnegative, self.receipt = schema, nonnegative, receipt
        self.tables = {columns: _frozen(table, schema.sizes(columns)) for columns, table in tables.items()}
        self.variances = None if variances is None else dict(variances)
        if nonnegative and any(float(table.min()) < 0 for table in self.tables.values()):
            raise InvalidParameter("a cell of a released marginal is negative.")
        most = max(1.0, *(float(np.abs(table).sum()) for table in self.tables.values()))
        if not self.discrepancy <= 2 * TOLERANCE * most:
            raise InvalidParameter("the released marginals do not agree with each other.")
        if self.variances is not None:
            needed = {part for columns in self.tables for part in parts(schema, columns)}
            if not needed <= set(self.variances) or not all(0 <= v <= LARGEST**2 for v in self.variances.values()):
                raise InvalidParameter("every part of a released marginal has a variance that is not negative.")

    @cached_property
    def discrepancy(self) -> float:
        """The largest difference between what two marginals say of a cell that they share."""
        lattice = Lattice(self.tables)
        return lattice.discrepancy(lattice.packed(self.tables))

    def covering(self, columns: Sequence[str]) -> Columns | None:
        """The smallest released marginal that holds these columns together."""
        held = [table for table in self.tables if set(columns) <= set(table)]
        return min(held, key=lambda table: self.tables[table].size) if held else None

    def project(self, columns: Columns) -> NDArray[np.float64]:
        names = self._checked(columns)
        held = self.covering(names)
        if held is not None:
            return _marginal(self.tables[held], held, names)
        return completed(self.schema, names, self.tables, self.total)

    def standard_error(self, query: Query) -> NDArray[np.float64]:
        """Of each answer, from the noise that was drawn: exact for marginals that may be negative.

        Where negative cells were mended the error is smaller in practice, and no longer free of bias.
        NaN where no released marginal holds the query's columns together, where the query is not a weighted sum, or
        where it is too large to be written out.
        """
        query.check(self.schema)
        if isinstance(query, Workload):
            return np.concatenate([self.standard_error(part) for part in query.queries])
        if self.variances is None or not isinstance(query, LinearQuery) or self.covering(query.columns) is None:
            return np.full(query.size, nan)
        return standard_errors(self.schema, query, self.variances)

    def sample(self, rows: int, seed: int) -> Rows:
        """A synthetic table whose marginals are close to these (`domain.sampling`); the same for the same seed.

        Free: it is made of what was released, so its randomness protects nobody and may be repeated.
        """
        count = whole(rows, "the number of synthetic rows", 0, MOST_ROWS)
        rng = np.random.default_rng(whole(seed, "a seed", 0, 2**63))
        codes = np.stack(sampled(self.schema, self.tables, count, rng), axis=1)
        return Rows(self.schema, codes, total=max(self.total, 0.0), receipt=self.receipt)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved of it."""
        return {f"table{i}": table for i, table in enumerate(self.tables.values())}

    def describe(self) -> dict[str, Any]:
        """What else is saved of it."""
        variances = None if self.variances is None else [[list(part), v] for part, v in self.variances.items()]
        return {"tables": [list(held) for held in self.tables], "nonnegative": self.nonnegative, "variances": variances}

    @classmethod
    def restored(
        cls, schema: Schema, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], receipt: Receipt | None
    ) -> Marginals:
        """What was saved."""
        if set(said) != {"tables", "nonnegative", "variances"} or type(said["nonnegative"]) is not bool:
            raise InvalidData("they are said to be marginals, and are none. Nothing was spent.")
        held, variances = [tuple(columns) for columns in said["tables"]], said["variances"]
        if len(set(held)) != len(held) or set(arrays) != {f"table{i}" for i in range(len(held))}:
            raise InvalidData("its marginals are not those that it says. Nothing was spent.")
        if variances is not None and not all(type(v) in (int, float) for _, v in variances):
            raise InvalidData("a variance that it says is no number. Nothing was spent.")
        return cls(
            schema,
            {columns: arrays[f"table{i}"] for i, columns in enumerate(held)},
            variances=None if variances is None else {tuple(part): float(v) for part, v in variances},
            nonnegative=said["nonnegative"],
            receipt=receipt,
        )


def _frozen(counts: Counts, sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """A copy that nobody can change, of the right shape, whose numbers can be added up."""
    table = np.array(counts, dtype=np.float64)
    if table.shape != sizes:
        raise InvalidParameter(f"a table over {sizes} cells has another shape: {table.shape}.")
    if not (table.min() >= -LARGEST and table.max() <= LARGEST):  # a NaN is neither
        raise InvalidParameter("a table of a synopsis holds a number that is not finite, or too large.")
    table.flags.writeable = False
    return table


def _marginal(table: NDArray[np.float64], held: Columns, columns: Columns) -> NDArray[np.float64]:
    summed = table.sum(axis=tuple(axis for axis, name in enumerate(held) if name not in columns))
    here = [name for name in held if name in columns]
    return np.asarray(summed).transpose([here.index(name) for name in columns])
