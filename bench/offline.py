"""Every offline mechanism on two settings: what its theorems promise, what is measured, what it costs.

    python bench/offline.py binary            50,000 people, 14 binary columns, all 2,912 three-way conjunctions
    python bench/offline.py wide              50,000 people, 20 binary columns, 100,000 of the five-way conjunctions
    python bench/offline.py binary --only mwem --runs 3

Epsilon is 1, delta 1e-9 (pure where the mechanism is), neighbours add or remove one person, the number of people is
public. Each run has a process of its own; errors are shares of the people: the largest over all queries, and the mean.
A bound above 1 says nothing. Set OPENBLAS_NUM_THREADS=1 where other work keeps the machine busy.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf, log, log2, sqrt
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("tests", "")]

from settings import PEOPLE, Counted, binary

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.grid import Norm
from tacit.domain.query import Conjunctions, Marginal
from tacit.domain.schema import Neighbors
from tacit.domain.synopsis import Histogram
from tacit.domain.workload import Workload, conjunctions
from tacit.errors import NoSuchGuarantee
from tacit.mechanisms import averaged, boosting_book, iterative, marginals
from tacit.mechanisms import net as nets
from tacit.mechanisms.boosting import boost, boost_with_memory
from tacit.mechanisms.generators import LinearGenerator, RowSearch
from tacit.mechanisms.mwem import mwem
from tacit.mechanisms.synthesizer import STEPS
from tacit.mechanisms.updates import MultiplicativeWeights, Perceptron
from tacit.primitives.additive import Gaussian, Laplace
from tacit.privacy.budget import Budget, Currency
from tacit.privacy.gaussian import classical_sigma

BETA, ADD = 0.05, Neighbors.ADD_REMOVE
PURE, RHO = Budget.of(1), Budget.of(1, "1e-9")


@dataclass(frozen=True)
class Setting:
    """A table, a workload, and how many people there are."""

    table: Counted
    workload: Workload
    people: int

    @property
    def universe(self) -> int:
        return self.table.schema.universe

    @property
    def queries(self) -> int:
        return self.workload.size


def wide() -> Setting:
    """The same town with twenty columns, |X| = 2^20, and 3,125 of its 15,504 five-way marginals, taken at random."""
    town = binary(columns=20)
    every = list(combinations(town.schema.names, 5))
    taken = np.random.default_rng(20141).choice(len(every), 3125, replace=False)
    return Setting(town, Workload(tuple(Conjunctions.over(town.schema, *every[i]) for i in sorted(taken))), PEOPLE)


SETTINGS: dict[str, Callable[[], Setting]] = {
    "binary": lambda: Setting(binary(), conjunctions(binary().schema, 3), PEOPLE),
    "wide": wide,
}


Bound = Callable[[Setting], float]


@dataclass(frozen=True)
class Row:
    """A mechanism: its bound as printed (corrected), its own bound, and how it is run; in people."""

    budget: Budget
    book: Callable[[Setting], float | None]
    tight: Callable[[Setting], float | None]
    run: Callable[[Curator, Setting], object] | None
    note: str = ""
    most: int = 10**6  # queries that it is run with


def none(setting: Setting) -> None:
    return None


def plain(noise: Laplace | Gaussian) -> Row:
    """Noise on every marginal, whole; nothing follows."""

    def tight(setting: Setting) -> float:
        moved = setting.workload.sensitivity(noise.norm, ADD)
        return noise.error_bound(BETA, coordinates=setting.queries, sensitivity=moved)

    def book(setting: Setting) -> float:
        if isinstance(noise, Laplace):
            return len(setting.workload) * log(setting.queries / BETA)
        moved = float(setting.workload.sensitivity(Norm.L2, ADD))
        return float(classical_sigma(1 - 1e-12, 1e-9, moved)) * sqrt(2 * log(2 * setting.queries / BETA))

    def run(curator: Curator, setting: Setting) -> object:
        answers = curator.release(noise, setting.workload)
        return lambda workload: np.asarray(answers)

    return Row(PURE if isinstance(noise, Laplace) else RHO, book, tight, run, "the yardstick")


def twice(setting: Setting) -> float:
    """2 e: what fits the noisy answers within e is within twice as much of the truth."""
    moved = setting.workload.sensitivity(Norm.L2, ADD)
    return 2 * Gaussian(RHO.rho).error_bound(BETA, coordinates=setting.queries, sensitivity=moved)


def histogram(curator: Curator, setting: Setting) -> Histogram:
    schema = setting.table.schema
    counts = curator.release(Gaussian(RHO.rho), Marginal.over(schema, *schema.names))
    return Histogram(schema, counts.reshape(schema.sizes(schema.names)))


def histogram_bound(setting: Setting) -> float:
    cells = setting.universe / max(query.size for query in setting.workload.queries)
    return sqrt(cells / (2 * float(RHO.rho)) * 2 * log(2 * setting.queries / BETA))


def construct_book(
    budget: Budget, updates: Callable[[Setting], Callable[[float], float]]
) -> Callable[[Setting], float]:
    delta = 1e-9 if budget.currency is Currency.RHO else 0.0

    def bound(setting: Setting) -> float:
        return iterative.book_bound(
            1 - 1e-12 if delta else 1,
            delta,
            BETA,
            total=setting.people,
            queries=setting.queries,
            updates=updates(setting),
        )

    return bound


def by_weights(setting: Setting) -> Callable[[float], float]:
    return lambda alpha: 4 * log(setting.universe) / alpha**2


def by_median(setting: Setting) -> Callable[[float], float]:
    return lambda alpha: log(setting.queries) * log2(setting.universe) / alpha**2


def by_perceptron(setting: Setting) -> Callable[[float], float]:
    return lambda alpha: setting.universe / alpha**2


def averaged_bound(budget: Budget) -> Bound:
    def bound(setting: Setting) -> float:
        rounds = averaged.best_rounds(setting.people, setting.table.schema, setting.workload, budget)
        return averaged.error_bound(setting.people, setting.universe, setting.queries, budget, BETA, rounds=rounds)

    return bound


def constructed(update: iterative.Updates) -> Bound:
    """What is proved of a construction; infinite where no alpha below 1 is."""

    def bound(setting: Setting) -> float:
        schema, work = setting.table.schema, setting.workload
        try:
            return iterative.error_bound(schema, work, RHO, ADD, BETA, total=setting.people, update=update)
        except NoSuchGuarantee:
            return inf

    return bound


def boosted(curator: Curator, setting: Setting) -> object:
    steps = STEPS if setting.universe < 10**5 else STEPS // 8
    generate = LinearGenerator(total=setting.people, beta=1e-4, solver="weights", steps=steps)
    return boost(
        curator, setting.workload, RHO, generate=generate, rounds=25, draws=100, lam=setting.people // 100,
        eta="0.46", sampling="0.96",
    )  # fmt: skip


def generated(curator: Curator, setting: Setting) -> object:
    return LinearGenerator(total=setting.people, beta=BETA, solver="weights", steps=100)(curator, setting.workload, RHO)


def searched(curator: Curator, setting: Setting) -> object:
    return RowSearch(total=setting.people, beta=BETA, effort=100)(curator, setting.workload, RHO)


ROWS = {
    "Laplace on marginals, pure": plain(Laplace(1)),
    "Gaussian on marginals": plain(Gaussian(RHO.rho)),
    "marginals by residuals": Row(
        RHO,
        none,
        lambda s: marginals.error_bound(s.table.schema, s.workload, RHO, ADD, BETA),
        lambda curator, s: marginals.release_marginals(curator, s.workload, RHO),
    ),
    "noisy histogram": Row(RHO, none, histogram_bound, histogram),
    "SmallDB, pure": Row(
        PURE,
        lambda s: nets.book_bound(s.people, s.universe, s.queries, PURE, BETA),
        lambda s: nets.error_bound(s.people, s.universe, s.queries, PURE, BETA),
        lambda curator, s: nets.small_db(curator, s.workload, PURE, total=s.people),
        "bounds at the best m, run with one row: two make more than 10^7 databases",
        most=10**4,
    ),
    "construction by median": Row(RHO, construct_book(RHO, by_median), none, None, "its net cannot be held"),
    "construction by perceptron": Row(
        RHO, construct_book(RHO, by_perceptron), constructed(Perceptron), None, "for tables of distinct rows"
    ),
    "construction by weights": Row(
        RHO,
        construct_book(RHO, by_weights),
        constructed(MultiplicativeWeights),
        lambda curator, s: iterative.construct(curator, s.workload, RHO, total=s.people),
        "at the alpha that is proved",
    ),
    "averaged weights, pure": Row(
        PURE,
        construct_book(PURE, by_weights),
        averaged_bound(PURE),
        lambda curator, s: averaged.averaged_weights(curator, s.workload, PURE, total=s.people),
    ),
    "averaged weights": Row(
        RHO,
        construct_book(RHO, by_weights),
        averaged_bound(RHO),
        lambda curator, s: averaged.averaged_weights(curator, s.workload, RHO, total=s.people),
    ),
    "linear generator": Row(RHO, none, twice, generated, "all queries at once, multiplicative weights"),
    "row search": Row(RHO, none, twice, searched, "all queries at once, 20,000 rows", most=10**4),
    "mwem": Row(RHO, none, none, lambda curator, s: mwem(curator, s.workload, RHO, total=s.people)),
    "boosting": Row(
        RHO,
        lambda s: boosting_book.book_bound(s.people, s.universe, s.queries, 1, 1e-9, BETA),
        lambda s: boosting_book.error_bound(s.people, s.universe, s.queries, RHO, BETA),
        boosted,
        "bounds at their own sizes, run at T = 25, k = 100",
    ),
    "boosting with memory": Row(
        RHO, none, none, lambda curator, s: boost_with_memory(curator, s.workload, RHO, total=s.people), "10 fits"
    ),
}


def once(name: str, setting: Setting) -> dict[str, float]:
    """One run in this process."""
    row = ROWS[name]
    assert row.run is not None
    truth = setting.workload(*setting.table.counts(setting.workload.reads))
    curator = Curator(setting.table, MemoryLedger(row.budget), ADD)
    cpu, wall = time.process_time(), time.perf_counter()
    released = row.run(curator, setting)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    answer = released if callable(released) else released.answer  # type: ignore[attr-defined]
    errors = np.abs(answer(setting.workload) - truth) / setting.people
    found = {"max": float(errors.max()), "mean": float(errors.mean()), "cpu": cpu, "wall": wall, "peak": peak()}
    if name == "boosting":
        singles = [np.abs(one.answer(setting.workload) - truth).max() for one in released.members()]  # type: ignore[attr-defined]
        found["single"] = float(np.mean(singles)) / setting.people
    return found


def peak() -> float:
    try:
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", choices=sorted(SETTINGS))
    parser.add_argument("--only", action="append", choices=list(ROWS))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--once", choices=list(ROWS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    setting = SETTINGS[asked.setting]()
    if asked.once:
        print(json.dumps(once(asked.once, setting)))
        return
    print(
        f"{asked.setting}: n = {setting.people:,}, |X| = {setting.universe:,}, |Q| = {setting.queries:,}; "
        f"epsilon 1, delta 1e-9, beta {BETA}; mean of {asked.runs}; "
        f"python {sys.version.split()[0]}, numpy {np.__version__}"
    )
    print("| mechanism | bound | own bound | max error | mean error | CPU s | wall s | peak MB | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in asked.only or ROWS:
        row = ROWS[name]
        promised = [share(bound(setting), setting.people) for bound in (row.book, row.tight)]
        measured, note = ["-"] * 5, row.note
        if row.run is not None and setting.queries <= row.most:
            command = [sys.executable, __file__, asked.setting, "--once", name]
            runs = [subprocess.run(command, capture_output=True, text=True, env=os.environ) for _ in range(asked.runs)]
            if failed := [run for run in runs if run.returncode]:
                note = (failed[0].stderr.strip().splitlines() or [f"ended with {failed[0].returncode}"])[-1][:160]
            else:
                said = [json.loads(run.stdout) for run in runs]
                mean = {key: float(np.mean([one[key] for one in said])) for key in said[0]}
                measured = [f"{mean['max']:.3g}", f"{mean['mean']:.3g}"]
                measured += [f"{mean['cpu']:.1f}", f"{mean['wall']:.1f}", f"{mean['peak']:.0f}"]
                note += f"; single rounds {mean['single']:.4f}" if "single" in mean else ""
        print(f"| {name} | {' | '.join(promised + measured)} | {note} |", flush=True)


def share(bound: float | None, people: int) -> str:
    return "-" if bound is None else f"{bound / people:.4g}" if bound < inf else "none"


if __name__ == "__main__":
    main()
