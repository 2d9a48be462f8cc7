"""What is asked for, in the words of the command line: a workload from one line of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.domain.query import Columns, Counting, Marginal, Query
from tacit.domain.schema import Categories, Schema
from tacit.domain.workload import MOST_WEIGHTS, Workload, conjunctions, marginals, prefixes, ranges
from tacit.errors import InvalidQuery, quoted
from tacit.service.questions import written_in

LONGEST = 100_000
ALLOWED = (
    "marginals:K, marginals:K,L, conjunctions:K, ranges:COLUMN, ranges:COLUMN*BY, prefixes:COLUMN, @FILE, or column "
    "sets such as sex*age,income"
)

_NAME = r'(?:\s*"(?:[^"]|"")+"\s*|[^*,"]+)'  # in quotes where it holds one of  * , "
_SET = rf"{_NAME}(?:\*{_NAME})*"
_ITEM = re.compile(rf"(\s*@|\s*[A-Za-z]+\s*:)?({_SET})")
_OF_SIZE: dict[str, Callable[[Schema, int], Workload]] = {"marginals": marginals, "conjunctions": conjunctions}


def workload(text: str, schema: Schema) -> Workload:
    """What a line of text names, each once.

    >>> from tacit.domain.schema import Integers
    >>> schema = Schema(Integers(name, 0, 9) for name in "abc")
    >>> [query.columns for query in workload("a*b,c", schema).queries]
    [('a', 'b'), ('c',)]
    >>> len(workload("marginals:1,2", schema))
    6
    >>> print(*workload("prefixes:a,ranges:b*c", schema).queries)
    Prefixes(a) Ranges(c × b)
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidQuery(f"a workload is {ALLOWED}. Nothing was spent.")
    if len(text) > LONGEST:
        raise InvalidQuery(f"a workload is a text of at most {LONGEST} characters, not {len(text)}. Nothing was spent.")
    queries: list[Query] = []
    sized = ""  # the kind that a lone number goes on with
    for kind, names, item in _items(text):
        number = re.fullmatch(r"\d{1,6}", names[0], re.ASCII) if len(names) == 1 else None
        sized = kind if kind in _OF_SIZE else sized if number and not kind else ""
        if item in schema.names:  # a column may be called like anything
            queries.append(Marginal.over(schema, item))
        elif sized and number:
            queries += _OF_SIZE[sized](schema, int(names[0])).queries
        elif kind == "@" and len(names) == 1:
            queries += _written(Path(names[0]), schema)
        elif kind == "ranges":
            queries += ranges(schema, _ordered(schema, names[0]), names[1:]).queries
        elif kind == "prefixes" and len(names) == 1:
            queries += prefixes(schema, _ordered(schema, names[0])).queries
        elif kind or re.match(r"(marginal|conjunction|range|prefix)(e?s)?\b", item, re.IGNORECASE):
            raise InvalidQuery(f"{quoted(item)} is no workload; write {ALLOWED}. Nothing was spent.")
        else:
            queries.append(Marginal.over(schema, *names))
    once = {frozenset(query.columns) if type(query) is Marginal else query: query for query in reversed(queries)}
    kept = set(map(id, once.values()))  # the first of each
    return Workload(tuple(query for query in queries if id(query) in kept))


def column_sets(text: str, schema: Schema) -> list[Columns]:
    """The column sets that a line of text names.

    >>> column_sets('a*b,c', Schema(Categories(name, (0, 1)) for name in "abc"))
    [('a', 'b'), ('c',)]
    """
    sets = [Marginal.over(schema, *((item,) if item in schema.names else names)) for _, names, item in _items(text)]
    return [query.columns for query in sets]


def _written(file: Path, schema: Schema) -> Iterator[Query]:
    """The questions of a file, if they can be kept in memory together."""
    weights = 0
    for question in written_in(file):
        query = question.query(schema)
        weights += 0 if isinstance(query, Counting | Marginal) else query.cells
        if weights > MOST_WEIGHTS:
            raise InvalidQuery(
                f"{question.place}: the questions up to here that are no conjunctions weigh {weights} cells; one "
                f"workload may weigh {MOST_WEIGHTS}. Nothing was spent."
            )
        yield query


def _ordered(schema: Schema, name: str) -> str:
    """The column, if its cells have an order."""
    if isinstance(schema[name], Categories):
        raise InvalidQuery(
            f"column {quoted(name)} has categories, which have no order; ranges and prefixes are of numbers. "
            "Nothing was spent."
        )
    return name


def _items(text: str) -> Iterator[tuple[str, list[str], str]]:
    """The kind, if one is said, the names, and the whole of each item, in order."""
    at = 0
    while at <= len(text):
        found = _ITEM.match(text, at)
        if found is None or text[found.end() : found.end() + 1] not in ("", ","):
            raise InvalidQuery(f"{quoted(text[at:])} names no column; write {ALLOWED}. Nothing was spent.")
        names = [name.strip() for name in re.findall(_NAME, found[2])]
        plain = [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in names]
        yield (found[1] or "").strip(" \t:").lower(), plain, found[0].strip()
        at = found.end() + 1
