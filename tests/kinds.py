"""Every kind of query, and how one is made over a random small schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.domain.away import Away
from tacit.domain.discrepancy import Discrepancy
from tacit.domain.grid import Norm
from tacit.domain.grouped import Grouped
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.listing import Values
from tacit.domain.net import SmallDatabases
from tacit.domain.parity import Parity
from tacit.domain.query import Conjunctions, Counting, Linear, LinearQuery, Marginal, Query
from tacit.domain.residual import Residual
from tacit.domain.schema import Categories, Column, Integers, Neighbors, Schema
from tacit.domain.score import Error, Fit, Function, Hardness, SignedError
from tacit.domain.workload import Workload, conjunctions, marginals, parities, predicates, prefixes, ranges

SQUARE = Schema(
    [Integers("a", 0, 4), Categories("b", (0, 1, 2)), Categories("c", (0, 1)), Categories("yes", ("no", "yes"))]
)


@dataclass
class Believed:
    """A synopsis that believes anything: random numbers for every column set, the same ones each time."""

    schema: Schema
    seed: int = 0

    def project(self, columns: tuple[str, ...]) -> np.ndarray:
        rng = np.random.default_rng([self.seed, *"".join(columns).encode()])
        return rng.uniform(-1, 4, self.schema.sizes(columns))

    def answer(self, query: Query) -> np.ndarray:
        return query(*map(self.project, query.reads))


def random_schema(rng: np.random.Generator, least: int = 1) -> Schema:
    """One to three columns of at most 24 cells in all, some with cells for missing and outside; the last is binary."""
    columns: list[Column] = []
    for name in "abc"[: rng.integers(1, 4)]:
        missing, outside = rng.choice(["drop", "cell"], 2)
        if rng.random() < 0.5:
            values = tuple(range(rng.integers(least, 4)))
            columns.append(Categories(name, values, missing=str(missing), outside=str(outside)))
        else:
            columns.append(Integers(name, 0, int(rng.integers(least, 4)) - 1, missing=str(missing)))
    schema = Schema([*columns, Categories("yes", ("no", "yes"))])
    return schema if schema.universe <= 24 else Schema([columns[0], Categories("yes", ("no", "yes"))])


def some_cells(rng: np.random.Generator, size: int) -> list[int]:
    return [cell for cell in range(size) if rng.random() < 0.6]


def counting(schema: Schema, rng: np.random.Generator) -> Counting:
    names = [name for name in schema.names if rng.random() < 0.7]
    return Counting.where(schema, {name: some_cells(rng, schema[name].size) for name in names})


def linear(schema: Schema, rng: np.random.Generator) -> Linear:
    names = schema.names[: rng.integers(1, len(schema) + 1)]
    weights = rng.random(schema.cells(names)) ** rng.integers(0, 3)
    return Linear.of(schema, names, weights)


def zero_one(schema: Schema, rng: np.random.Generator) -> Linear:
    return Linear.of(schema, schema.names, rng.integers(0, 2, schema.universe))


def grouped(schema: Schema, rng: np.random.Generator, where: LinearQuery) -> Grouped:
    by = tuple(schema.names[place] for place in rng.permutation(len(schema))[: rng.integers(1, len(schema) + 1)])
    return Grouped.over(schema, by, where)


def mixed(schema: Schema, rng: np.random.Generator) -> Workload:
    """Linear queries of several kinds, grids and column sets, one of them twice."""
    parts: list[Query] = [counting(schema, rng), counting(schema, rng), linear(schema, rng), zero_one(schema, rng)]
    parts += [Marginal.over(schema, "yes"), Parity.over(schema, "yes"), Prefixes.over(schema, schema.names[0])]
    parts += [parts[0]]
    return Workload(tuple(parts[place] for place in rng.permutation(len(parts))[: rng.integers(1, len(parts) + 1)]))


def alike(schema: Schema, rng: np.random.Generator) -> Workload:
    """Weighted sums over one column set, which are bounded together."""
    weights = [rng.random(schema.universe) for _ in range(3)]
    masks = [rng.integers(0, 2, schema.universe) for _ in range(3)]
    everything = {name: range(schema[name].size) for name in schema.names}
    sums = [Linear.of(schema, schema.names, weight) for weight in weights + masks]
    return Workload((*sums, Counting.where(schema, everything)))


def fit_of_net(schema: Schema, rng: np.random.Generator) -> Fit:
    """Of every cell as a table of its own; asked block by block, as a large net is."""
    net = SmallDatabases(schema, 1, float(rng.uniform(1, 5)))
    fit = Fit(mixed(schema, rng), net)
    object.__setattr__(fit, "candidates", net)
    return fit


def hardness(schema: Schema, rng: np.random.Generator) -> Hardness:
    synopses = tuple(Believed(schema, seed) for seed in range(rng.integers(1, 4)))
    lam, mu = rng.choice([0, 0.5, 1]), rng.choice([0.7, 1, 3, 5])
    work = Workload((counting(schema, rng), linear(schema, rng), Marginal.over(schema, "yes")))
    return Hardness(work, synopses, float(lam), float(mu), Fraction(1, int(rng.choice([1, 4, 2**20]))))


def function(schema: Schema, rng: np.random.Generator) -> Function:
    """Three real functions of a marginal, each of which moves by at most its slope in l-infinity."""
    slopes = np.array([0.3, -1 / 3, 0.25])
    declared = {Norm.L1: Fraction(9, 10), Norm.L2: Fraction(9, 10), Norm.LINF: Fraction(1, 3) + Fraction(1, 10**15)}

    def answers(counts: np.ndarray) -> np.ndarray:
        return slopes * float(counts[0])

    grid = str(rng.choice(["1", "0.1", "1/3", "1/1048576"]))
    added = Neighbors.ADD_REMOVE
    return Function.of(schema, ("yes",), answers, size=3, sensitivity=declared, neighbors=added, grid=grid)


Make = Callable[[Schema, np.random.Generator], Query]

LINEAR: dict[str, tuple[type[Query], Make]] = {
    "Marginal": (Marginal, lambda s, rng: Marginal.over(s, *s.names[: rng.integers(1, len(s) + 1)])),
    "Conjunctions": (Conjunctions, lambda s, rng: Conjunctions.over(s, *s.names[: rng.integers(1, len(s) + 1)])),
    "Counting": (Counting, counting),
    "Linear": (Linear, linear),
    "Linear of 0 and 1": (Linear, zero_one),
    "Grouped": (Grouped, lambda s, rng: grouped(s, rng, counting(s, rng))),
    "Grouped by no conjunction": (Grouped, lambda s, rng: grouped(s, rng, zero_one(s, rng))),
    "Prefixes": (Prefixes, lambda s, rng: Prefixes.over(s, s.names[rng.integers(len(s))])),
    "Ranges": (Ranges, lambda s, rng: Ranges.over(s, s.names[0])),
    "Ranges by": (Ranges, lambda s, rng: Ranges.over(s, s.names[0], by=s.names[1:])),
    "Parity": (Parity, lambda s, rng: Parity.over(s, "yes")),
    "Residual": (Residual, lambda s, rng: Residual.of(s, [c.name for c in s if c.size > 1][: rng.integers(1, 4)])),
    "Workload": (Workload, mixed),
    "Workload of one column set": (Workload, alike),
    "marginals": (Workload, lambda s, rng: marginals(s, min(2, len(s)))),
    "conjunctions": (Workload, lambda s, rng: conjunctions(s, 1)),
    "ranges": (Workload, lambda s, rng: ranges(s, s.names[0], by="yes")),
    "prefixes": (Workload, lambda s, rng: prefixes(s, s.names[0])),
    "parities": (Workload, lambda s, rng: parities(s, 1)),
    "predicates": (Workload, lambda s, rng: predicates(s, ["yes = 'no' or a = 0", "not a = 0", "yes != 'no'"])),
}
SCORES: dict[str, tuple[type[Query], Make]] = {
    "Error": (Error, lambda s, rng: Error(mixed(s, rng), Believed(s))),
    "SignedError": (SignedError, lambda s, rng: SignedError(mixed(s, rng), Believed(s))),
    "Error, whole": (Error, lambda s, rng: Error(mixed(s, rng), Believed(s), whole=True)),
    "Fit": (Fit, lambda s, rng: Fit(w := mixed(s, rng), rng.uniform(-1, 5, (4, w.size)))),
    "Fit, of a net": (Fit, fit_of_net),
    "Hardness": (Hardness, hardness),
}
FUNCTIONS: dict[str, tuple[type[Query], Make]] = {
    "Function": (Function, function),
    "Away": (Away, lambda s, rng: Away(counting(s, rng), float(rng.uniform(-1, 5)), int(rng.integers(-1, 2)))),
    "Away, weighted": (Away, lambda s, rng: Away(linear(s, rng), float(rng.uniform(-1, 5)), int(rng.integers(-1, 2)))),
    "Discrepancy": (Discrepancy, lambda s, rng: Discrepancy.over(s, str(rng.choice(s.names)), Believed(s))),
}
# over a domain, where no cell is hidden
LISTS: dict[str, tuple[type[Query], Make]] = {
    "Values": (Values, lambda s, rng: Values(name := str(rng.choice(s.names)), s[name].size)),
}
KINDS = LINEAR | SCORES | FUNCTIONS | LISTS
