"""Answers very many questions about a confidential table while provably protecting every person in it.

>>> import tacit
>>> budget = tacit.Budget.of(1, "1e-9")
>>> ledger = tacit.MemoryLedger(budget)
>>> print(ledger.left == budget.amount)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.curator.kernel import Curator
    from tacit.curator.ledger import MemoryLedger
    from tacit.curator.sqlite_ledger import SQLiteLedger
    from tacit.domain.predicate import parse
    from tacit.domain.schema import Categories, Dates, Integers, Neighbors, Numbers, Schema
    from tacit.domain.workload import conjunctions, marginals, parities, predicates, prefixes, ranges
    from tacit.errors import TacitError
    from tacit.mechanisms.marginals import release_marginals
    from tacit.primitives.additive import Gaussian, Laplace
    from tacit.primitives.selection import Exponential, NoisyMax
    from tacit.primitives.threshold import AboveThreshold
    from tacit.privacy.budget import Budget, Loss
    from tacit.service.people import People, open
    from tacit.service.released import Release, load

__version__ = "0.1.0"

# where each name lives; it is imported when it is first used
_HOMES = {
    "AboveThreshold": "primitives.threshold",
    "Budget": "privacy.budget",
    "Categories": "domain.schema",
    "Curator": "curator.kernel",
    "Dates": "domain.schema",
    "Exponential": "primitives.selection",
    "Gaussian": "primitives.additive",
    "Integers": "domain.schema",
    "Laplace": "primitives.additive",
    "Loss": "privacy.budget",
    "MemoryLedger": "curator.ledger",
    "Neighbors": "domain.schema",
    "NoisyMax": "primitives.selection",
    "Numbers": "domain.schema",
    "People": "service.people",
    "Release": "service.released",
    "SQLiteLedger": "curator.sqlite_ledger",
    "Schema": "domain.schema",
    "TacitError": "errors",
    "conjunctions": "domain.workload",
    "load": "service.released",
    "marginals": "domain.workload",
    "open": "service.people",
    "parities": "domain.workload",
    "parse": "domain.predicate",
    "predicates": "domain.workload",
    "prefixes": "domain.workload",
    "ranges": "domain.workload",
    "release_marginals": "mechanisms.marginals",
}

__all__ = [
    "AboveThreshold",
    "Budget",
    "Categories",
    "Curator",
    "Dates",
    "Exponential",
    "Gaussian",
    "Integers",
    "Laplace",
    "Loss",
    "MemoryLedger",
    "Neighbors",
    "NoisyMax",
    "Numbers",
    "People",
    "Release",
    "SQLiteLedger",
    "Schema",
    "TacitError",
    "conjunctions",
    "load",
    "marginals",
    "open",
    "parities",
    "parse",
    "predicates",
    "prefixes",
    "ranges",
    "release_marginals",
]


def __getattr__(name: str) -> object:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"tacit has no {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(f"tacit.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
