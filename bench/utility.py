"""How far released marginals are from the truth on public tables: `python bench/utility.py --data FOLDER`.

The folder holds NAME.csv, in which every value is the number of a category, and NAME-domain.json, which says how many
categories each column has. The error of a release is the mean, over the marginals of the workload, of the L1 distance
between the released and the true marginal, each divided by its own sum: 0 is the truth, 2 is as far as it goes.

Every way spends the same: epsilon, and delta = 1e-9, under add-remove neighbours. CPU seconds are those of one release:
measuring, drawing and mending; the rows were counted beforehand.

    python bench/utility.py --data FOLDER                     the table of docs/marginals.md
    python bench/utility.py --data FOLDER --study weights     residuals weighted in three ways
    python bench/utility.py --data FOLDER --study steps       how many steps of mending are worth it
    python bench/utility.py --data FOLDER --study bound       how often mended marginals kept the bound
    python bench/utility.py --data FOLDER --study rows        synthetic rows beside the marginals they were made from
    python bench/utility.py --data FOLDER --study sums        sums of many cells: measured and mended
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.query import Marginal
from tacit.domain.residual import Residual, parts
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.domain.workload import Workload, marginals, predicates
from tacit.engines.table import Table, open_table
from tacit.mechanisms import consistency, measurement
from tacit.mechanisms.marginals import error_bound, predicted_error, release_marginals
from tacit.primitives.additive import Gaussian
from tacit.privacy.budget import Budget

DELTA = "1e-9"
ADD = Neighbors.ADD_REMOVE
TASKS = ("adult:2", "adult:3", "nltcs:2", "nltcs:3")

Counts = NDArray[np.float64]
Tables = Mapping[tuple[str, ...], Counts]


class Truth:
    """A public table with all marginals of a workload counted."""

    def __init__(self, folder: Path, task: str) -> None:
        name, k = task.split(":")
        domain = json.loads((folder / f"{name}-domain.json").read_text(encoding="utf-8"))
        self.schema = Schema([Integers(column, 0, size - 1) for column, size in domain.items()])
        self.people: Table = open_table(str(folder / f"{name}.csv"), self.schema)
        self.work = marginals(self.schema, int(k))
        sets = [query.reads[0] for query in self.work.queries]
        self.tables = dict(zip(sets, (np.asarray(t, float) for t in self.people.counts(sets)), strict=True))
        self.said = f"{task}-way, {len(sets)} marginals, {sum(t.size for t in self.tables.values()):,} cells"

    def curator(self, budget: Budget) -> Curator:
        return Curator(self.people, MemoryLedger(budget), ADD)

    def released(self, budget: Budget, *, nonnegative: bool) -> Tables:
        synopsis = release_marginals(self.curator(budget), self.work, budget, nonnegative=nonnegative)
        return {columns: synopsis.project(columns) for columns in self.tables}

    def drawn(self, budget: Budget) -> Tables:
        """Each marginal by itself, under the same noise on all."""
        work = Workload(tuple(Marginal.over(self.schema, *columns) for columns in self.tables))
        answers = self.curator(budget).release(Gaussian(budget.rho), work)
        split = np.split(np.asarray(answers, float), work.offsets[1:-1])
        return {
            columns: part.reshape(self.tables[columns].shape) for columns, part in zip(self.tables, split, strict=True)
        }

    def error(self, released: Tables) -> float:
        """Mean L1 distance of marginals as fractions."""
        each = []
        for columns, true in self.tables.items():
            said = released[columns]
            each.append(float(np.abs(said / said.sum() - true / true.sum()).sum()))
        return statistics.fmean(each)


def on_simplex(table: Counts) -> Counts:
    """The nearest table without a negative cell and with the same sum: all cells lowered alike, and cut at zero."""
    total, flat = max(float(table.sum()), 1.0), np.sort(table.reshape(-1))[::-1]
    lowered = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    last = int(np.flatnonzero(flat > lowered)[-1])
    return np.maximum(table - lowered[last], 0)


def each_on_simplex(tables: Tables) -> Tables:
    return {columns: on_simplex(table) for columns, table in tables.items()}


WAYS: dict[str, Callable[[Truth, Budget], Tables]] = {
    "each marginal alone": lambda truth, budget: truth.drawn(budget),
    "each alone, on the simplex": lambda truth, budget: each_on_simplex(truth.drawn(budget)),
    "each alone, made consistent": lambda truth, budget: consistency.consistent(truth.drawn(budget)),
    "tacit, may be negative": lambda truth, budget: truth.released(budget, nonnegative=False),
    "the same, each on the simplex": lambda truth, budget: each_on_simplex(truth.released(budget, nonnegative=False)),
    "tacit": lambda truth, budget: truth.released(budget, nonnegative=True),
}


def spread(values: Iterable[float]) -> str:
    held = list(values)
    off = statistics.stdev(held) if len(held) > 1 else 0.0
    return f"{statistics.fmean(held):.4g} ± {off:.1g}"


def compare(truth: Truth, epsilons: list[str], repeat: int) -> None:
    print(f"{'':32}" + "".join(f"{f'eps {epsilon}':>18}" for epsilon in epsilons) + f"{'CPU s':>8}")
    for way, run in WAYS.items():
        cells, took = [], []
        for epsilon in epsilons:
            errors = []
            for _ in range(repeat):
                began = time.process_time()
                released = run(truth, Budget.of(epsilon, DELTA))
                took.append(time.process_time() - began)
                errors.append(truth.error(released))
            cells.append(f"{spread(errors):>18}")
        print(f"{way:32}{''.join(cells)}{statistics.median(took):8.2f}", flush=True)
    people = float(next(iter(truth.tables.values())).sum())
    told = [
        predicted_error(truth.schema, truth.work, Budget.of(epsilon, DELTA), ADD).mean_l1 / people
        for epsilon in epsilons
    ]
    print(f"{'predicted, may be negative':32}" + "".join(f"{value:18.4g}" for value in told))


def weighted(exponent: float) -> Callable[..., dict[tuple[str, ...], Fraction]]:
    """Residuals weighted for the sum, over all cells, of a cell's variance times its table's cells to 1 - exponent."""

    def weights(schema: Schema, asked: Any, measured: Any, neighbors: Neighbors) -> dict[tuple[str, ...], Fraction]:
        gained = dict.fromkeys(measured, 0.0)
        for columns in asked:
            for part in parts(schema, columns):
                if part in gained:
                    freedom = prod(size - 1 for size in schema.sizes(part))
                    gained[part] += freedom * schema.cells(part) / float(schema.cells(columns)) ** exponent
        price = {part: float(Residual.of(schema, part).sensitivity(Gaussian.norm, neighbors)) ** 2 for part in measured}
        ratio = {part: (gained[part] / price[part]) ** 0.25 for part in measured}
        most = max(ratio.values())
        return {part: max(Fraction(round(2**20 * r / most), 2**20), Fraction(1, 64)) for part, r in ratio.items()}

    return weights


def study_weights(truth: Truth, epsilons: list[str], repeat: int) -> None:
    kept = measurement._weights
    print(f"{'divided by':32}" + "".join(f"{f'eps {epsilon}':>18}" for epsilon in epsilons))
    for name, exponent in {"nothing": 1.0, "the root of the cells": 1.5, "the cells": 2.0}.items():
        measurement._weights = weighted(exponent)
        for mended in (False, True):
            cells = []
            for epsilon in epsilons:
                budget = Budget.of(epsilon, DELTA)
                cells.append(spread(truth.error(truth.released(budget, nonnegative=mended)) for _ in range(repeat)))
            print(f"{name + (', mended' if mended else ''):32}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    measurement._weights = kept


def study_steps(truth: Truth, epsilons: list[str], repeat: int) -> None:
    kept = consistency.STEPS
    print(f"{'steps':32}" + "".join(f"{f'eps {epsilon}':>18}" for epsilon in epsilons) + f"{'CPU s':>8}")
    given = {
        epsilon: [truth.released(Budget.of(epsilon, DELTA), nonnegative=False) for _ in range(repeat)]
        for epsilon in epsilons
    }
    for steps in (0, 5, 10, 15, 20, 25, 40, 100):
        consistency.STEPS = steps
        cells, took = [], []
        for epsilon in epsilons:
            errors = []
            for tables in given[epsilon]:
                began = time.process_time()
                mended = consistency.nonnegative(tables)
                took.append(time.process_time() - began)
                errors.append(truth.error(mended))
            cells.append(f"{statistics.fmean(errors):18.5g}")
        print(f"{steps:<32}{''.join(cells)}{statistics.median(took):8.2f}", flush=True)
    consistency.STEPS = kept


def study_bound(truth: Truth, epsilons: list[str], repeat: int) -> None:
    """The bound at beta = 1/2, the sharpest that is printed, beside the largest error of a cell."""
    for epsilon in epsilons:
        budget = Budget.of(epsilon, DELTA)
        bound = error_bound(truth.schema, truth.work, budget, ADD, 0.5)
        largest: dict[bool, list[float]] = {False: [], True: []}
        absolute: dict[bool, list[float]] = {False: [], True: []}
        mean = predicted_error(truth.schema, truth.work, budget, ADD).mean_absolute
        for _ in range(repeat):
            tables = truth.released(budget, nonnegative=False)
            for mended, held in ((False, tables), (True, consistency.nonnegative(tables))):
                off = np.concatenate([np.abs(held[c] - true).reshape(-1) for c, true in truth.tables.items()])
                largest[mended].append(float(off.max()))
                absolute[mended].append(float(off.mean()))
        for mended in (False, True):
            kept = sum(value <= bound for value in largest[mended])
            print(
                f"eps {epsilon:5} {'mended' if mended else 'measured':9} bound {bound:9.1f}  largest "
                f"{statistics.fmean(largest[mended]):9.1f}  kept {kept} of {repeat}  mean of a cell "
                f"{statistics.fmean(absolute[mended]):8.3f}, predicted {mean:8.3f}",
                flush=True,
            )


def study_rows(truth: Truth, epsilons: list[str], repeat: int) -> None:
    for epsilon in epsilons:
        budget = Budget.of(epsilon, DELTA)
        table: list[tuple[float, float, float]] = []
        took = []
        for seed in range(repeat):
            synopsis = release_marginals(truth.curator(budget), truth.work, budget)
            began = time.process_time()
            rows = synopsis.sample(int(synopsis.total), seed)
            took.append(time.process_time() - began)
            released = {columns: synopsis.project(columns) for columns in truth.tables}
            made = {columns: rows.project(columns) for columns in truth.tables}
            between = statistics.fmean(
                float(np.abs(made[c] / made[c].sum() - released[c] / released[c].sum()).sum()) for c in made
            )
            table.append((truth.error(released), truth.error(made), between))
        errors = [spread(column) for column in zip(*table, strict=True)]
        print(
            f"eps {epsilon:5} marginals {errors[0]}   rows {errors[1]}   rows from the marginals {errors[2]}   "
            f"{statistics.median(took):.2f} CPU s",
            flush=True,
        )


def study_sums(truth: Truth, epsilons: list[str], repeat: int) -> None:
    """Counts of half of two columns' values each, which are sums of many cells."""
    names = truth.schema.names
    asked = []
    for one, other in zip(names[::2], names[1::2], strict=False):
        low, high = (truth.schema[name].size // 2 for name in (one, other))
        asked.append(f"[{one}] >= {low} and [{other}] >= {high}")
    work = predicates(truth.schema, asked)
    true = work(*[truth.people.counts([columns])[0] for columns in work.reads])
    for epsilon in epsilons:
        budget = Budget.of(epsilon, DELTA)
        off: dict[str, list[Counts]] = {"measured": [], "mended": []}
        error: Counts = np.zeros(1)
        for _ in range(repeat):
            measured = release_marginals(truth.curator(budget), truth.work, budget, nonnegative=False)
            error = measured.standard_error(work)
            mended = type(measured)(truth.schema, consistency.nonnegative(measured.tables))
            off["measured"].append((measured.answer(work) - true) / error)
            off["mended"].append((mended.answer(work) - true) / error)
        for name, held in off.items():
            values = np.array(held)
            print(
                f"eps {epsilon:5} {name:9} in standard errors: root mean square {np.sqrt((values**2).mean()):.2f}, "
                f"largest bias {np.abs(values.mean(axis=0)).max():.2f}, "
                f"beyond 1.96 {np.mean(np.abs(values) > 1.96):.1%}",
                flush=True,
            )


STUDIES = {
    "errors": compare,
    "weights": study_weights,
    "steps": study_steps,
    "bound": study_bound,
    "rows": study_rows,
    "sums": study_sums,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=TASKS, metavar="NAME:K", help="table and size of its marginals")
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "1", "10"])
    parser.add_argument("--repeat", type=int, default=5, help="draws of each release")
    parser.add_argument("--study", choices=list(STUDIES), default="errors")
    asked = parser.parse_args()
    versions = f"Python {sys.version.split()[0]}, numpy {version('numpy')}"
    print(f"{versions}; delta {DELTA}; {asked.repeat} draws, mean ± deviation")
    for task in asked.tasks:
        truth = Truth(asked.data, task)
        print(f"\n{truth.said}")
        STUDIES[asked.study](truth, asked.epsilon, asked.repeat)


if __name__ == "__main__":
    main()
