"""How fast databases are made from noisy answers, and how near they come: `python bench/synthesizer.py`.

A population of 50,000 people in five groups over d binary columns; k of its three-way conjunctions with Gaussian noise
of 60 people. "Off" is the farthest answer from the noisy ones, in people; "all" is the mean and the largest error on
every three-way conjunction, drawn or not. Seconds are those of the processor and of the clock.

    python bench/synthesizer.py                     solvers and searches on 14 columns: a minute or two
    python bench/synthesizer.py --study large       linear programs of up to two million non-zeros: minutes each
    python bench/synthesizer.py --study cells       8,192 cells, 1,000 queries: the program, then multiplicative weights
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tacit.domain.schema import Integers, Schema
from tacit.domain.single import single
from tacit.domain.synopsis import Rows, Synopsis
from tacit.domain.workload import Workload, conjunctions
from tacit.mechanisms.distinct import Distinct
from tacit.mechanisms.rowsearch import searched
from tacit.mechanisms.synthesizer import Synthesis, synthesize

PEOPLE, DEVIATION = 50_000, 60.0


class Setting:
    """Noisy answers to k conjunctions over d columns, and the truth."""

    def __init__(self, columns: int, queries: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.schema = Schema([Integers(f"c{place:02d}", 0, 1) for place in range(columns)])
        group = rng.random((5, columns))
        codes = (rng.random((PEOPLE, columns)) < group[rng.integers(0, 5, PEOPLE)]).astype(np.int64)
        self.table = Rows(self.schema, codes)
        self.every = conjunctions(self.schema, 3)
        drawn = rng.choice(self.every.size, queries, replace=False)
        self.work = Workload(tuple(single(self.every, int(place)) for place in drawn))
        self.values = self.table.answer(self.work) + rng.normal(0, DEVIATION, queries).round()
        self.truth = self.table.answer(self.every) if columns <= 20 else None

    def line(self, what: str, make: Callable[[], Synopsis | None]) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        made = make()
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        said = f"{what:48} {processor:7.2f} s processor {clock:7.2f} s clock"
        if made is None:
            print(said, "  failed", flush=True)
            return
        off = float(np.abs(made.answer(self.work) - self.values).max())
        said += f"   off {off:9.3f}"
        if isinstance(made, Synthesis):
            said += f"   gap {made.gap:8.3f}   cells {np.count_nonzero(made.people):6d}"
        if self.truth is not None:
            wrong = np.abs(made.answer(self.every) - self.truth)
            said += f"   all {wrong.mean():7.1f} {wrong.max():8.1f}"
        print(said, flush=True)

    def synthesis(self, solver: str, steps: int = 400) -> None:
        what = "linear program" if solver == "program" else f"multiplicative weights, {steps} steps"
        self.line(
            what,
            lambda: synthesize(
                self.schema,
                self.work,
                self.values,
                PEOPLE,
                solver=solver,
                steps=steps,
                most_nonzeros=10**8,  # type: ignore[arg-type]
            ),
        )

    def search(self, rows: int, within: float, effort: int = 60) -> None:
        rng = np.random.default_rng(1)
        self.line(
            f"row search, {rows} rows, within {within:g}",
            lambda: searched(self.schema, self.work, self.values, PEOPLE, rows, within, effort, rng),
        )

    def head(self) -> None:
        distinct = Distinct.of(self.schema, self.work)
        cells = distinct.told_apart()
        print(
            f"\n{len(self.schema)} columns, {len(distinct.queries)} queries: {distinct.cells} cells, {len(cells)} told "
            f"apart, {distinct.nonzeros(cells)} non-zeros",
            flush=True,
        )


def small() -> None:
    for queries in (60, 200):
        setting = Setting(14, queries)
        setting.head()
        setting.synthesis("program")
        for steps in (100, 400, 1000):
            setting.synthesis("weights", steps)
        for rows, within in ((5_000, 250.0), (20_000, 250.0), (50_000, 250.0), (50_000, 100.0), (50_000, 20.0)):
            setting.search(rows, within)


def cells() -> None:
    setting = Setting(13, 1000)
    setting.head()
    setting.synthesis("program")
    for steps in (100, 400, 1000):
        setting.synthesis("weights", steps)


def large() -> None:
    for columns, queries in ((17, 100), (14, 1000)):
        setting = Setting(columns, queries)
        setting.head()
        setting.synthesis("weights")
        setting.synthesis("program")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=("small", "cells", "large"), default="small")
    {"small": small, "cells": cells, "large": large}[parser.parse_args().study]()


if __name__ == "__main__":
    main()
