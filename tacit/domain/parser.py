"""The text of a predicate, taken apart: no schema, no meaning, and nothing in it is ever run.

predicate  = both {"or" both}
both       = operand {"and" operand}
operand    = "not" operand | "(" predicate ")" | "true" | "false" | test
test       = column sign constant | constant sign column [sign constant]
           | column ["not"] "in" "(" constant {"," constant} ")"
           | column ["not"] "between" constant "and" constant
           | column "is" ["not"] ("missing" | "outside")
sign       = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
column     = letters, digits, _ and inner -, or any name as [name] or `name` (a closing sign is doubled)
constant   = number | 'text' | "text" | "true" | "false" (a quote in a text is doubled)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, NoReturn, TypeVar

from tacit.domain.token import ALLOWED, Token, tokens, wrong
from tacit.errors import InvalidQuery, quoted

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

LONGEST, DEEPEST, MOST_NODES = 100_000, 100, 10_000

P = TypeVar("P")


@dataclass(frozen=True)
class Constant:
    """A number, a text or a truth value, and where it stands."""

    value: int | Fraction | str | bool
    at: int


@dataclass(frozen=True)
class Condition:
    """One column held against constants.

    `negated` is part of the comparison, as in != and `not in`; `opposite` is a `not` before it.
    """

    column: str
    at: int
    relation: str  # = < <= > >= in between missing outside
    constants: tuple[Constant, ...]
    negated: bool
    opposite: bool


def read(
    text: str,
    leaf: Callable[[Condition], P],
    join: Callable[[str, list[P]], P],
    words: Iterator[Token] | None = None,
) -> P:
    """Hands each condition, and then each `and` and `or` of what was made of them, to the caller, without recursion.

    `not` is pushed down to the conditions on the way, by De Morgan. An `and` of nothing is true, an `or` of nothing
    false. Where the predicate is a part of a larger text, `words` are those that belong to it.

    >>> read("a = 1 or not (b < 2 and c > 3)", lambda one: f"{one.column}{'!' * one.opposite}", str.join)
    'aorb!orc!'
    """
    if not isinstance(text, str):
        raise InvalidQuery(f"a predicate is a text, not {quoted(text)}. {ALLOWED}. Nothing was spent.")
    if len(text) > LONGEST:
        raise InvalidQuery(f"a predicate has at most {LONGEST} characters, not {len(text)}. Nothing was spent.")
    return _Reader(text, leaf, join, tokens(text) if words is None else words).whole()


@dataclass
class _Open(Generic[P]):
    """A parenthesis that is not closed yet, or the whole: ors of ands of what stands in it."""

    at: int
    opposite: bool
    before: list[P] = field(default_factory=list)  # the ands that an `or` has ended
    parts: list[P] = field(default_factory=list)


class _Reader(Generic[P]):
    """A stack of open parentheses; every depth and number is limited before it is reached."""

    def __init__(
        self,
        text: str,
        leaf: Callable[[Condition], P],
        join: Callable[[str, list[P]], P],
        words: Iterator[Token],
    ) -> None:
        self.text, self.leaf, self.join = text, leaf, join
        self.tokens = words
        self.next = next(self.tokens)
        self.nodes = 0

    def whole(self) -> P:
        stack: list[_Open[P]] = [_Open(0, False)]
        while True:
            opposite = stack[-1].opposite
            while self.taken("not"):
                self.count()
                opposite = not opposite
            if self.next.is_one("("):
                if len(stack) > DEEPEST:
                    raise wrong(self.text, self.next.at, f"parentheses may be {DEEPEST} deep")
                stack.append(_Open(self.take().at, opposite))
                continue
            found = self.operand(opposite)
            while not self.goes_on(stack[-1], found):
                if len(stack) == 1:
                    if self.next.kind == "end":
                        return self.closed(stack.pop(), found)
                    self.expected("and, or, or the end")
                if not self.taken(")"):
                    self.expected(f"and, or, or the ) of character {stack[-1].at + 1}")
                found = self.closed(stack.pop(), found)

    def goes_on(self, inside: _Open[P], found: P) -> bool:
        """Whether `and` or `or` follows."""
        if self.next.is_one("and", "or"):
            inside.parts.append(found)
            if self.take().value == "or":
                inside.before.append(self.joined("and", inside.parts, inside.opposite))
                inside.parts = []
            return True
        return False

    def closed(self, inside: _Open[P], found: P) -> P:
        both = self.joined("and", [*inside.parts, found], inside.opposite)
        return self.joined("or", [*inside.before, both], inside.opposite)

    def joined(self, word: str, parts: list[P], opposite: bool) -> P:
        if len(parts) == 1:
            return parts[0]
        self.count()
        return self.join({"and": "or", "or": "and"}[word] if opposite else word, parts)

    def operand(self, opposite: bool) -> P:
        self.count()
        first = self.take()
        if first.kind == "name":
            return self.leaf(self.condition(str(first.value), first.at, opposite))
        if first.is_one("true", "false") and not self.next.is_comparison():
            return self.join("and" if (first.value == "true") != opposite else "or", [])
        return self.turned(first, opposite)

    def condition(self, name: str, at: int, opposite: bool) -> Condition:
        if self.next.is_comparison():
            return _compared(name, at, str(self.take().value), self.constant(), opposite)
        if self.taken("is"):
            negated = self.taken("not")
            if not self.next.is_one("missing", "outside"):
                self.expected("missing or outside")
            return Condition(name, at, str(self.take().value), (), negated, opposite)
        negated = self.taken("not")
        if self.taken("in"):
            return Condition(name, at, "in", self.listed(), negated, opposite)
        if self.taken("between"):
            low = self.constant()
            if not self.taken("and"):
                self.expected("and, and the other end")
            return Condition(name, at, "between", (low, self.constant()), negated, opposite)
        return self.expected(
            "a comparison; there are no functions" if self.next.is_one("(") else "a comparison after the column"
        )

    def turned(self, first: Token, opposite: bool) -> P:
        """`constant sign column`, or a chain such as `40 <= age < 60`."""
        low = self.constant(first, "a comparison such as age >= 40, or not, or (")
        if not self.next.is_comparison():
            self.expected("a comparison with a column")
        sign, column = str(self.take().value), self.take()
        if column.kind != "name":
            raise wrong(self.text, column.at, "expected a column: a constant is compared with a column only")
        name, at = str(column.value), column.at
        left = self.leaf(_compared(name, at, FLIPPED[sign], low, opposite))
        if not self.next.is_comparison():
            return left
        again = self.take()
        if sign[0] != str(again.value)[0] or sign[0] not in "<>":
            raise wrong(self.text, again.at, "a chain goes one way, as in 40 <= age < 60")
        self.count()
        right = self.leaf(_compared(name, at, str(again.value), self.constant(), opposite))
        return self.joined("and", [left, right], opposite)

    def listed(self) -> tuple[Constant, ...]:
        if not self.taken("("):
            self.expected("( and the constants")
        constants = [self.constant()]
        while self.taken(","):
            constants.append(self.constant())
        if not self.taken(")"):
            self.expected(", or )")
        return tuple(constants)

    def constant(self, token: Token | None = None, what: str = "a constant") -> Constant:
        token = token or self.take()
        self.count()
        if token.is_one("true", "false"):
            return Constant(token.value == "true", token.at)
        if token.kind in ("number", "text"):
            return Constant(token.value, token.at)
        more = ": a number, true, false, or a text in quotes" if token.kind == "name" else ""
        raise wrong(self.text, token.at, f"expected {what}{more}")

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def taken(self, value: str) -> bool:
        found = self.next.is_one(value)
        if found:
            self.take()
        return found

    def count(self, more: int = 1) -> None:
        self.nodes += more
        if self.nodes > MOST_NODES:
            raise wrong(self.text, self.next.at, f"it has more than {MOST_NODES} comparisons, constants and joints")

    def expected(self, what: str) -> NoReturn:
        raise wrong(self.text, self.next.at, f"expected {what}")


def _compared(name: str, at: int, sign: str, constant: Constant, opposite: bool) -> Condition:
    return Condition(name, at, "=" if sign == "!=" else sign, (constant,), sign == "!=", opposite)
