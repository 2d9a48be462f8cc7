"""Residuals: what the marginal of some columns says beyond the marginals of fewer of them.

The counts over columns M are a sum of one part for each subset T of M, spread evenly over the cells of the rest:
x_M = sum_T u_T / n(M - T), with u_T the marginal over T, centred along every column of T, and n the number of cells.
The parts are orthogonal, so marginals that overlap agree if and only if their common parts are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import nan, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.domain.grid import Norm, one_part
from tacit.domain.interval import Ranges
from tacit.domain.query import (
    MOST_QUERY_CELLS,
    WEIGHT_GRID,
    Columns,
    Conjunctions,
    Counts,
    LinearQuery,
    Marginal,
    sized,
)
from tacit.domain.schema import Neighbors, Schema
from tacit.errors import InvalidQuery
from tacit.rational import Number, exact, sqrt_up

MOST_COLUMNS = 10  # of one residual, which keeps two to this power of weights
_MOST_WORK = 2 * 10**8  # products for one standard error
_ENUMERATED = 6  # columns up to which two people are compared pattern by pattern, and not by the triangle inequality


@dataclass(frozen=True)
class Residual(LinearQuery):
    """The centred marginal u_T of some columns, times a weight (Xiao, He, Zhang & Kifer 2023).

    A person weighs the product over the columns of 1 - 1/d where the answer's cell has their value, and of -1/d where
    it has another, so only the columns of agreement matter. Each of these 2^k products is rounded to the grid, and
    what follows is exact: the centred answers are `gain` times u_T, without any error of rounding.

    Sensitivity: the norm of one person's weights, or of the difference of two people's, for every pattern of
    agreement with as many cells as have it. It depends only on the columns in which the two people differ.
    """

    columns: Columns
    sizes: tuple[int, ...]
    numerators: tuple[int, ...]  # by the columns that agree, the first column being the highest bit
    grid: Fraction = WEIGHT_GRID

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "grid", grid := one_part(self.grid))
        k, steps = len(self.columns), 1 / grid
        if k > MOST_COLUMNS or any(size < 2 for size in self.sizes):
            raise InvalidQuery(
                f"a residual is over at most {MOST_COLUMNS} columns, each of two cells or more. Nothing was spent."
            )
        whole = isinstance(self.numerators, tuple) and all(type(number) is int for number in self.numerators)
        if not whole or len(self.numerators) != 2**k or any(abs(number) > steps for number in self.numerators):
            raise InvalidQuery(f"a residual of {k} columns has 2^{k} weights between -1 and 1. Nothing was spent.")
        if self.gain <= 0:
            raise InvalidQuery("these weights tell nothing of the residual; give it more weight. Nothing was spent.")

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], weight: Number = 1) -> Residual:
        """With a weight in (0, 1], by which all answers are multiplied."""
        names, sizes = sized(schema, columns)
        factor = exact(weight, "a residual's weight", InvalidQuery)
        if not 0 < factor <= 1:
            raise InvalidQuery("a residual's weight lies above 0 and not above 1. Nothing was spent.")
        return cls(names, sizes, tuple(round(factor * share / WEIGHT_GRID) for share in _products(sizes)))

    @property
    def size(self) -> int:
        return self.cells

    @property
    def gain(self) -> float:
        """What the centred answers are a multiple of u_T by."""
        return self._spread[-1] * float(self.grid)

    @property
    def _spread(self) -> list[int]:
        # Moebius: the weight of agreement A is the sum of spread[B] over B within A, so answer(a) is the sum of
        # spread[B] times the marginal over B at a; centring leaves B = T alone
        spread = list(self.numerators)
        for bit in range(len(self.columns)):
            for pattern in range(len(spread)):
                if pattern >> bit & 1:
                    spread[pattern] -= spread[pattern ^ 1 << bit]
        return spread

    def units(self, *tables: Counts) -> NDArray[Any]:
        table = tables[0].reshape(self.sizes)
        total: Any = np.zeros(self.sizes, dtype=table.dtype)
        for agree, coefficient in zip(_patterns(len(self.columns)), self._spread, strict=True):
            rest = tuple(axis for axis, same in enumerate(agree) if not same)
            total = total + coefficient * table.sum(axis=rest, keepdims=True, dtype=table.dtype)
        return np.asarray(total).reshape(-1)

    def _matrix(self) -> NDArray[np.int64]:
        pattern = np.zeros((1, 1), dtype=np.int64)
        for size in self.sizes:
            pattern = np.kron(2 * pattern, np.ones((size, size), np.int64)) + np.tile(
                np.eye(size, dtype=np.int64), pattern.shape
            )
        return np.array(self.numerators, dtype=np.int64)[pattern]

    def centred(self, answers: NDArray[Any]) -> NDArray[np.float64]:
        """u_T, from answers that may be noisy; noise of variance v on each leaves v/gain^2 (1 - 1/d)... on a cell."""
        return centred(np.asarray(answers, dtype=np.float64).reshape(self.sizes)) / self.gain

    def monotone(self, neighbors: Neighbors) -> bool:
        return False

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return _sensitivity(self.sizes, self.numerators, norm, neighbors) * self.grid


def _patterns(k: int) -> Iterator[tuple[bool, ...]]:
    """Which of k columns agree, in the order of the weights."""
    return product((False, True), repeat=k)


def _products(sizes: tuple[int, ...]) -> Iterator[Fraction]:
    for agree in _patterns(len(sizes)):
        yield prod(
            (Fraction(d - 1 if same else -1, d) for d, same in zip(sizes, agree, strict=True)), start=Fraction(1)
        )


@lru_cache(maxsize=4096)
def _sensitivity(sizes: tuple[int, ...], numerators: tuple[int, ...], norm: Norm, neighbors: Neighbors) -> Fraction:
    k = len(sizes)
    # a row against one that is dropped, or against none
    alone = _norm(
        (
            (number, prod(d - 1 for d, same in zip(sizes, agree, strict=True) if not same))
            for number, agree in zip(numerators, _patterns(k), strict=True)
        ),
        norm,
    )
    if neighbors is Neighbors.ADD_REMOVE:
        return max(alone, Fraction(1))
    if k > _ENUMERATED:
        return max(2 * alone, Fraction(1))
    pairs = [_norm(_differences(sizes, numerators, differ), norm) for differ in _patterns(k)]
    return max(alone, *pairs, Fraction(1))


def _differences(
    sizes: tuple[int, ...], numerators: tuple[int, ...], differ: tuple[bool, ...]
) -> Iterator[tuple[int, int]]:
    """The differences of the weights of two people who differ in these columns, with how many cells have each."""
    # in one column a cell has the first person's value, the second's, both or neither; and so many cells do
    apart, alike = ((1, 0, 1), (0, 1, 1), (0, 0, -2)), ((1, 1, 1), (0, 0, -1))
    for chosen in product(*[apart if other else alike for other in differ]):
        first = second = 0
        cells = 1
        for d, (one, two, many) in zip(sizes, chosen, strict=True):
            first, second, cells = 2 * first + one, 2 * second + two, cells * (many if many > 0 else d + many)
        yield numerators[first] - numerators[second], cells


def _norm(values: Iterable[tuple[int, int]], norm: Norm) -> Fraction:
    """The norm of a vector in which each value stands so many times."""
    held = [(abs(value), times) for value, times in values if times]
    if norm is Norm.LINF:
        return Fraction(max(value for value, _ in held))
    if norm is Norm.L1:
        return Fraction(sum(value * times for value, times in held))
    return sqrt_up(Fraction(sum(value * value * times for value, times in held)))


def centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without its mean along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def parts(schema: Schema, columns: Columns) -> list[Columns]:
    """The column sets T of which a marginal has a part; a column of one cell has no residual."""
    telling = [name for name in columns if schema[name].size > 1]
    return [subset for k in range(len(telling) + 1) for subset in combinations(telling, k)]


def assembled(
    schema: Schema, columns: Columns, residuals: Mapping[Columns, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The marginal that has these parts: sum_T u_T / n(M - T)."""
    sizes = schema.sizes(columns)
    table = np.zeros(sizes)
    for part in parts(schema, columns):
        axes = tuple(size if name in part else 1 for name, size in zip(columns, sizes, strict=True))
        table += residuals[part].reshape(axes) * (schema.cells(part) / table.size)
    return table


def cell_variance(schema: Schema, columns: Columns, variances: Mapping[Columns, float]) -> float:
    """Of each cell of the marginal, if every u_T has independent noise of covariance variances[T] P_T.

    P_T, which centres, has prod(1 - 1/d) on its diagonal; a part counts by the square of its spread.
    """
    cells = schema.cells(columns)
    return sum(
        variances[part] * (schema.cells(part) / cells) ** 2 * prod(1 - 1 / size for size in schema.sizes(part))
        for part in parts(schema, columns)
    )


def answer_variances(
    schema: Schema, columns: Columns, weights: NDArray[Any], variances: Mapping[Columns, float]
) -> NDArray[np.float64]:
    """Of each weighted sum over the marginal's cells, one row of weights an answer: sum_T v_T |P_T w_T|^2 / n(M - T)^2.

    w_T sums the weights over the columns outside T.
    """
    sizes = schema.sizes(columns)
    rows = np.asarray(weights, dtype=np.float64).reshape(-1, *sizes)
    total = np.zeros(len(rows))
    for part in parts(schema, columns):
        rest = tuple(1 + axis for axis, name in enumerate(columns) if name not in part)
        summed = rows.sum(axis=rest, keepdims=True)
        for axis in range(1, summed.ndim):
            if columns[axis - 1] in part:
                summed = summed - summed.mean(axis=axis, keepdims=True)
        share = schema.cells(part) / prod(sizes)
        total += variances[part] * share**2 * np.square(summed).reshape(len(rows), -1).sum(axis=1)
    return total


def standard_errors(schema: Schema, query: LinearQuery, variances: Mapping[Columns, float]) -> NDArray[np.float64]:
    """Of each answer that is made of a marginal with such noise; NaN where they are too many to be written out."""
    order = tuple(name for name in schema.names if name in query.columns)
    if isinstance(query, Marginal | Conjunctions):
        return np.full(query.size, sqrt(cell_variance(schema, order, variances)))
    alike, weights = _written_out(query)
    if weights is None or len(weights) * query.cells * 2 ** len(order) > _MOST_WORK:
        return np.full(query.size, nan)
    turned = weights.reshape(-1, *query.sizes).transpose(0, *(1 + query.columns.index(name) for name in order))
    return np.tile(np.sqrt(answer_variances(schema, order, turned, variances)) * float(query.grid), alike)


def _written_out(query: LinearQuery) -> tuple[int, NDArray[np.int64] | None]:
    """Its matrix, if it is not too large, or the part of it that repeats, and how often that does."""
    alike = prod(query.sizes[:-1]) if isinstance(query, Ranges) else 1  # a part's noise is alike in all `by` cells
    if query.size // alike * query.cells > MOST_QUERY_CELLS:
        return alike, None
    if alike == 1:
        return 1, query.weights()
    intervals = Ranges(query.columns[-1:], query.sizes[-1:]).weights()
    return alike, np.pad(intervals, ((0, 0), (0, query.cells - query.sizes[-1])))
