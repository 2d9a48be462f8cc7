"""What is asked for, in the words of the command line: a workload from one line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tacit.domain.query import Marginal
from tacit.domain.schema import Schema
from tacit.domain.workload import Workload, marginals
from tacit.errors import InvalidQuery, quoted

LONGEST = 100_000
ALLOWED = "marginals:K, marginals:K,L or column sets such as sex*age,income"

_NAME = r'(?:\s*"(?:[^"]|"")+"\s*|[^*,"]+)'  # in quotes where it holds one of  * , "
_SET = re.compile(rf"{_NAME}(?:\*{_NAME})*")


def workload(text: str, schema: Schema) -> Workload:
    """The marginals that a line of text names, each once.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema(Categories(name, ("no", "yes")) for name in "abc")
    >>> [query.columns for query in workload("a*b,c", schema).queries]
    [('a', 'b'), ('c',)]
    >>> len(workload("marginals:1,2", schema))
    6
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidQuery(f"a workload is {ALLOWED}. Nothing was spent.")
    if len(text) > LONGEST:
        raise InvalidQuery(f"a workload is a text of at most {LONGEST} characters, not {len(text)}. Nothing was spent.")
    queries: list[Marginal] = []
    counting = False  # whether a lone number goes on with `marginals:`
    for names in _sets(text):
        word = names[0] if len(names) == 1 else ""
        known = re.fullmatch(r"(marginals\s*:\s*)?(\d{1,6})", word, re.ASCII | re.IGNORECASE)
        counting = known is not None and bool(known[1] or counting)
        if known and counting:
            queries += (query for query in marginals(schema, int(known[2])).queries if isinstance(query, Marginal))
        elif re.match(r"\w+\s*:|marginals?\b", word, re.IGNORECASE) and word not in schema.names:
            raise InvalidQuery(
                f"{quoted(word)} is no workload that can be released now; write {ALLOWED}. Ranges and prefixes of a "
                "column are answered from its marginal, for free. Nothing was spent."
            )
        else:
            queries.append(Marginal.over(schema, *names))
    once = {frozenset(query.columns): query for query in reversed(queries)}  # the first of each set stays
    return Workload(tuple(once[columns] for columns in dict.fromkeys(frozenset(query.columns) for query in queries)))


def _sets(text: str) -> Iterator[list[str]]:
    """The names of each column set, in order."""
    at = 0
    while at <= len(text):
        found = _SET.match(text, at)
        if found is None or text[found.end() : found.end() + 1] not in ("", ","):
            raise InvalidQuery(f"{quoted(text[at:])} names no column; write {ALLOWED}. Nothing was spent.")
        names = [name.strip() for name in re.findall(_NAME, found[0])]
        yield [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in names]
        at = found.end() + 1
