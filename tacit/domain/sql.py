"""A small part of SQL: `select sex, count(*) from people where age >= 40 group by sex`, read into one query.

query     = "select" item {"," item} ["from" table] ["where" predicate] ["group" "by" column {"," column}] [";"]
item      = ("count" "(" "*" ")" | column) ["as" name]
predicate = that of `parser`, with "null" for "missing"; a name may stand in double quotes too, a text may not

The words mean what they mean in SQL, if whatever is missing or outside its domain is null: a comparison with it is
neither true nor false, and so is its `not`. Nothing is run, and no text reaches an engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NoReturn, TypeVar, overload

from numpy import ndindex

from tacit.domain.cellset import CellSet
from tacit.domain.condition import chosen
from tacit.domain.grouped import Grouped
from tacit.domain.parser import LONGEST, Condition, read
from tacit.domain.predicate import Every, Predicate, Some, _joined, _within, counted, understood
from tacit.domain.query import Columns, Counting, LinearQuery, Marginal
from tacit.domain.schema import LONGEST_NAME, Column, Schema
from tacit.domain.token import NAMES, SIGNS, Token, is_bare, misread, tokens, wrong
from tacit.errors import InvalidQuery, quoted

ALLOWED = (
    "What may be asked: select [columns,] count(*) [as name] [from table] [where predicate] [group by columns] [;], "
    "with predicates of columns and constants (= != < <= > >=, in (...), between ... and ..., is null), "
    "joined by and, or, not and parentheses"
)

_SIGNS, _NAMES = {**SIGNS, "*": "*", ";": ";"}, NAMES + '"'
_KEPT = frozenset({"select", "from", "where", "group", "by", "as", "null"})
_MUCH = """
all any array avg case cast collate create cross delete distinct drop else end escape except exists explain fetch
filter for full glob having ilike inner insert intersect into join lateral left like limit max median min natural
offset on order outer over partition pivot qualify regexp rename replace returning right rollup row rows sample semi
set similar sum table tablesample then top truncate union unnest update using values when window with
"""
_ELSEWHERE = frozenset(_MUCH.split())  # words of SQL that are none here

T = TypeVar("T")


class Labels(Sequence[tuple[str, ...]]):
    """The labels of every cell of some columns, in order; made when they are asked for."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._labels = [column.labels for column in columns]

    def __len__(self) -> int:
        return prod(len(labels) for labels in self._labels)

    @overload
    def __getitem__(self, place: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[str, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[str, ...] | list[tuple[str, ...]]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        found = []
        for labels in reversed(self._labels):
            place, cell = divmod(place, len(labels))
            found.append(labels[cell])
        return tuple(reversed(found))


@dataclass(frozen=True)
class Asked:
    """What a text asks: the query, what each of its answers is the count of, and the text in its plainest form."""

    query: LinearQuery
    columns: Columns  # that are grouped by
    labels: Sequence[tuple[str, ...]] = field(compare=False)  # of each answer, its group; one empty one without groups
    heads: tuple[str, ...]  # what was selected, in order, each by its name
    text: str  # read as the same again
    where: Predicate = field(compare=False)

    def cells(self, schema: Schema) -> Iterator[LinearQuery]:
        """The answers one by one, each a question of its own: whom the predicate counts in that group."""
        sizes = schema.sizes(self.columns)
        for cell in ndindex(*sizes):
            held = (
                _within(schema.places[name], schema[name], CellSet.run(size, at, at + 1))
                for name, size, at in zip(self.columns, sizes, cell, strict=True)
            )
            yield counted(_joined(Every, [self.where, *held]), schema)


def parse_sql(text: str, schema: Schema, table: str | None = None) -> Asked:
    """The query that a text asks for; with `table`, of no other table.

    Grouping gives an answer for every cell of the public domain, in order, so that no group shows by being there.
    Privacy: reads no data.

    >>> from tacit.domain.schema import Categories, Integers
    >>> schema = Schema([Integers("age", 0, 99), Categories("sex", ("F", "M", "X"))])
    >>> asked = parse_sql("SELECT sex, COUNT(*) FROM people WHERE age >= 40 GROUP BY sex;", schema)
    >>> print(asked.query, list(asked.labels))
    count where age >= 40 by sex [('F',), ('M',), ('X',)]
    """
    if not isinstance(text, str):
        raise InvalidQuery(f"a query is a text, not {quoted(text)}. {ALLOWED}. Nothing was spent.")
    if len(text) > LONGEST:
        raise InvalidQuery(f"a query has at most {LONGEST} characters, not {len(text)}. Nothing was spent.")
    try:
        return _Reader(text, schema, table).whole()
    except InvalidQuery as refusal:
        if (found := misread(refusal)) is None:
            raise
        at, why = found
        raise wrong(text, at, _plain(text, at, why), "query", ALLOWED) from None


def _plain(text: str, at: int, why: str) -> str:
    """Why, for what people write most often that is SQL and not here."""
    if text.startswith(("--", "/*", "#"), at):
        return "comments have no place here"
    word = re.compile("[A-Za-z]*").match(text, at)
    if word and word[0].lower() in _ELSEWHERE:
        return f"there is no {word[0].upper()} here"
    if word and word[0].lower() == "null":
        return f"{why}; nothing is compared with null, but `is null` asks for what is missing"
    if text.startswith('"', at) and "constant" in why:
        return f"{why}; a text stands in single quotes, and what stands in double ones is a name"
    return why


def asked(text: str, schema: Schema, table: str | None = None) -> Asked:
    """What a text asks that is a predicate, or a question in SQL where it begins with `select`.

    >>> from tacit.domain.schema import Categories
    >>> schema = Schema([Categories("sex", ("F", "M"))])
    >>> print(asked("sex = 'F'", schema).query, asked("select count(*) group by sex", schema).query)
    count where sex = 'F' Marginal(sex)
    """
    if isinstance(text, str) and text.lstrip()[:6].lower() == "select":
        return parse_sql(text, schema, table)
    where = understood(text, schema)
    return Asked(counted(where, schema), (), Labels(()), ("count",), str(where), where)


class _Reader:
    """The clauses in their order; where a predicate stands, its own reader takes the words up to the next clause."""

    def __init__(self, text: str, schema: Schema, table: str | None) -> None:
        self.text, self.schema, self.table = text, schema, table
        self.words = tokens(text, _SIGNS, _NAMES)
        self.held: list[Token] = []  # what was looked at and not taken

    def whole(self) -> Asked:
        if not self.taken("select"):
            self.expected("select")
        items = self.listed(self.item)
        table = self.tabled() if self.taken("from") else ""
        where = self.predicate() if self.taken("where") else Every(())
        by = self.grouped() if self.grouping() else []
        self.taken(";")
        if self.ahead().kind != "end":
            self.expected("the end: one query at a time" if by else "where, group by, or the end")
        return self.asked(items, table, where, [(str(one.value), one.at) for one in by])

    def asked(
        self, items: list[tuple[Token | None, str, int]], table: str, where: Predicate, by: list[tuple[str, int]]
    ) -> Asked:
        columns = tuple(name for name, _ in by)
        if sum(column is None for column, _, _ in items) != 1:
            raise wrong(self.text, items[0][2], "select has one count(*), and columns that are grouped by")
        for column, _, at in items:
            if column is not None and column.value not in columns:
                raise wrong(self.text, at, f"{quoted(column.value)} is selected and not grouped by")
        heads = tuple(name for _, name, _ in items)
        for place, head in enumerate(heads):
            if head in heads[:place]:
                raise wrong(self.text, items[place][2], f"{quoted(head)} is selected twice; say `as` another name")
        text = "select " + ", ".join(
            ("count(*)" if column is None else _named(str(column.value)))
            + ("" if name == ("count" if column is None else column.value) else f" as {_named(name)}")
            for column, name, _ in items
        )
        text += f" from {_named(table)}" * bool(table)
        text += f" where {where}" * (str(where) != "true")
        text += f" group by {', '.join(map(_named, columns))}" * bool(by)
        one = counted(where, self.schema)
        labels = Labels([self.schema[name] for name in columns])
        return Asked(self.over(columns, one), columns, labels, heads, text, where)

    def over(self, columns: Columns, one: LinearQuery) -> LinearQuery:
        if not columns:
            return one
        if one == Counting.where(self.schema):
            return Marginal.over(self.schema, *columns)
        return Grouped.over(self.schema, columns, one)

    def item(self) -> tuple[Token | None, str, int]:
        """A column, or None for the count; what it is called; where it stands."""
        first = self.ahead()
        if self.bare("count") and self.ahead(1).is_one("("):
            self.take()
            for sign in "(*)":
                if not self.taken(sign):
                    self.expected("count(*): people are counted, and nothing else")
            column, name = None, "count"
        else:
            column = self.column("a column or count(*)")
            name = str(column.value)
        if self.taken("as"):
            name = self.called("a name")
        return column, name, first.at

    def name(self, what: str) -> Token:
        if self.ahead().kind != "name" or any(self.bare(word) for word in _KEPT):
            self.expected(what)
        return self.take()

    def called(self, what: str) -> str:
        """A name that is not a column's, and stands in an answer."""
        name = self.name(what)
        if not str(name.value).isprintable() or not 1 <= len(str(name.value)) <= LONGEST_NAME:
            raise wrong(self.text, name.at, f"a name has 1 to {LONGEST_NAME} characters, all of which can be seen")
        return str(name.value)

    def column(self, what: str) -> Token:
        column = self.name(what)
        if self.ahead().is_one("("):
            raise wrong(self.text, column.at, "there are no functions but count(*)")
        if column.value not in self.schema.places:
            why = f"no column {quoted(column.value)}; {self.schema.nearest(column.value)}"
            raise wrong(self.text, column.at, why)
        return column

    def tabled(self) -> str:
        at = self.ahead().at
        name = self.called("the name of the table")
        if self.table is not None and name.casefold() != self.table.casefold():
            raise wrong(self.text, at, f"no table {quoted(name)}; there is {quoted(self.table)}")
        return name

    def grouped(self) -> list[Token]:
        for _ in ("group", "by"):
            self.take()
        columns = self.listed(lambda: self.column("a column"))
        for place, column in enumerate(columns):
            if column.value in [other.value for other in columns[:place]]:
                raise wrong(self.text, column.at, f"{quoted(column.value)} is grouped by twice")
        return columns

    def predicate(self) -> Predicate:
        def leaf(condition: Condition) -> Predicate:
            name = condition.column
            if name not in self.schema.places:
                why = f"no column {quoted(name)}; {self.schema.nearest(name)}"
                raise wrong(self.text, condition.at, why)
            if condition.relation not in ("missing", "outside"):
                # what is null satisfies no comparison, and its opposite no more: `not` stays within the domain
                condition = replace(condition, negated=condition.negated != condition.opposite, opposite=False)
            cells = chosen(self.schema[name], condition, lambda at, why: wrong(self.text, at, why))
            return _within(self.schema.places[name], self.schema[name], cells)

        return read(self.text, leaf, lambda word, parts: _joined(Every if word == "and" else Some, parts), self.inner())

    def inner(self) -> Iterator[Token]:
        """The words of the predicate, and an end where the next clause begins."""
        asking = False  # after `is` or `is not`
        while not (self.grouping() or self.ahead().is_one(";") or self.ahead().kind == "end"):
            null = asking and self.bare("null")
            word = self.take()
            asking = word.is_one("is") or (asking and word.is_one("not"))
            yield Token("word", "missing", word.at) if null else word
        yield Token("end", "", self.ahead().at)

    def grouping(self) -> bool:
        return self.bare("group") and self.bare("by", 1)

    def listed(self, one: Callable[[], T]) -> list[T]:
        found = [one()]
        while self.taken(","):
            found.append(one())
            if len(found) > len(self.schema) + 1:
                self.expected("no more columns than there are")
        return found

    def ahead(self, places: int = 0) -> Token:
        while len(self.held) <= places:
            if self.held and self.held[-1].kind == "end":
                return self.held[-1]
            self.held.append(next(self.words))
        return self.held[places]

    def take(self) -> Token:
        word = self.ahead()
        if word.kind != "end":
            self.held.pop(0)
        return word

    def bare(self, word: str, places: int = 0) -> bool:
        """Whether this word stands there; a name in quotes is none."""
        token = self.ahead(places)
        return token.kind == "name" and self.text[token.at] not in _NAMES and str(token.value).lower() == word

    def taken(self, word: str) -> bool:
        found = self.bare(word) or self.ahead().is_one(word)
        if found:
            self.take()
        return found

    def expected(self, what: str) -> NoReturn:
        raise wrong(self.text, self.ahead().at, f"expected {what}")


def _named(name: str) -> str:
    bare = bool(name) and is_bare(name) and name.lower() not in _KEPT | _ELSEWHERE | {"count"}
    return name if bare else f"[{name.replace(']', ']]')}]"
