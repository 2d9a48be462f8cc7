"""Dense distributions over some columns of a universe: parted, joined and sampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.domain.query import Columns, Counting, LinearQuery
from tacit.domain.schema import Schema
from tacit.domain.weights import Weights


def read(query: LinearQuery) -> Columns:
    """The columns on which the weights of a query depend: a conjunction may choose every cell of one."""
    if type(query) is not Counting:
        return query.columns
    held = zip(query.columns, query.sizes, query.chosen, strict=True)
    return tuple(name for name, size, cells in held if len(cells) < size)


def joined(blocks: Sequence[Weights], order: Sequence[str]) -> Weights:
    """The product of blocks that share no column, with its columns in this order."""
    logs, names, columns = np.zeros(()), list[str](), {}
    for block in blocks:
        logs = np.add.outer(logs, block.logs)
        names += block.schema.names
        columns.update({column.name: column for column in block.schema})
    schema = Schema(columns[name] for name in order)
    return Weights(schema, 1.0, logs.transpose([names.index(name) for name in order]))


def parted(block: Weights, staying: Sequence[str]) -> tuple[Weights, Weights | None]:
    """The marginal over those of its columns that stay, and that over the others."""
    gone = [name for name in block.schema.names if name not in staying]
    here = [name for name in block.schema.names if name in staying]
    return (marginal(block, here), marginal(block, gone)) if gone else (block, None)


def marginal(block: Weights, names: Sequence[str]) -> Weights:
    """By logarithms, so that a cell that is all but forgotten may come back."""
    gone = tuple(axis for axis, name in enumerate(block.schema.names) if name not in names)
    most = block.logs.max(axis=gone, keepdims=True)
    most = np.where(np.isfinite(most), most, 0)  # where no cell can be
    with np.errstate(divide="ignore"):
        logs = np.log(np.exp(block.logs - most).sum(axis=gone)) + most.squeeze(gone)
    return Weights(Schema(column for column in block.schema if column.name in names), 1.0, logs)


def drawn(block: Weights, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Rows by column, in random order: in each cell as many as the block says, to within one."""
    upto = np.cumsum(block.counts)
    # the same random part of a row is added at each cell, so that counts are as wanted and not only on average
    ends = np.floor(upto / upto[-1] * rows + rng.random()).astype(np.int64)
    cells = np.arange(upto.size, dtype=np.min_scalar_type(upto.size))
    cells = rng.permutation(np.repeat(cells, np.diff(ends, prepend=0)))
    codes = np.unravel_index(cells, block.schema.sizes(block.schema.names))
    return dict(zip(block.schema.names, codes, strict=True))
