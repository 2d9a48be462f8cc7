"""The words of a predicate: names, constants and signs, each found by one scan that never looks back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from tacit.errors import InvalidQuery, quoted

MOST_DIGITS, MOST_SIZE = 30, 10**300
WORDS = frozenset({"and", "or", "not", "in", "between", "is", "missing", "outside", "true", "false"})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
ALLOWED = (
    "A predicate compares columns with constants (= != < <= > >=, in (...), between ... and ..., is missing, "
    "is outside), joined by and, or, not and parentheses"
)

SIGNS = {"==": "=", "<>": "!=", "!=": "!=", "<=": "<=", ">=": ">="} | {sign: sign for sign in "=<>(),"}
NAMES = "[`"  # what begins a name that may hold any signs
_CLOSING = {"[": "]", "`": "`", "'": "'", '"': '"'}
_DIGITS = frozenset("0123456789")


class Token(NamedTuple):
    """One word, and where it begins."""

    kind: str  # word, name, number, text, sign, end
    value: int | Fraction | str
    at: int

    def is_one(self, *values: str) -> bool:
        return self.kind in ("word", "sign") and self.value in values

    def is_comparison(self) -> bool:
        return self.kind == "sign" and self.value in COMPARISONS


def tokens(text: str, signs: Mapping[str, str] = SIGNS, names: str = NAMES) -> Iterator[Token]:
    """One token at a time, each by a scan that never looks back."""
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\r\n":
            at += 1
            continue
        if letter in _CLOSING:
            value, end = _closed(text, at)
            yield Token("name" if letter in names else "text", value, at)
        elif letter in _DIGITS or (letter in "+-" and text[at + 1 : at + 2] in _DIGITS):
            number, end = _number(text, at)
            yield Token("number", number, at)
        elif letter.isalpha() or letter == "_":
            end = _word_end(text, at)
            word = text[at:end]
            known = word.lower() in WORDS
            yield Token("word" if known else "name", word.lower() if known else word, at)
        else:
            end = at + 2 if text[at : at + 2] in signs else at + 1
            if text[at:end] not in signs:
                shown = letter if letter.isprintable() else f"U+{ord(letter):04X}"
                raise wrong(text, at, f"{shown} has no place here; a name with such signs stands in [ ]")
            yield Token("sign", signs[text[at:end]], at)
        at = end
    yield Token("end", "", len(text))


def _inner(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _word_end(text: str, at: int) -> int:
    while at < len(text) and (_inner(text[at]) or (text[at] == "-" and _inner(text[at + 1 : at + 2]))):
        at += 1
    return at


def is_bare(name: str) -> bool:
    """Whether a column's name may stand without brackets."""
    starts = name[0].isalpha() or name[0] == "_"
    return starts and _word_end(name, 0) == len(name) and name.lower() not in WORDS


def _closed(text: str, at: int) -> tuple[str, int]:
    """What stands between a sign and its closing one, which is doubled inside."""
    closing, pieces, start = _CLOSING[text[at]], [], at + 1
    while True:
        end = text.find(closing, start)
        if end < 0:
            raise wrong(text, at, f"no {closing} closes this")
        pieces.append(text[start:end])
        if text[end + 1 : end + 2] != closing:
            return closing.join(pieces), end + 1
        start = end + 2


def _number(text: str, at: int) -> tuple[int | Fraction, int]:
    """Digits, perhaps a point and digits, perhaps an exponent of at most three digits."""

    def digits(start: int) -> int:
        end = start
        while end < len(text) and text[end] in _DIGITS:
            end += 1
        return end

    end = point = digits(at + 1)
    if text[end : end + 1] == "." and digits(end + 1) > end + 1:
        end = digits(end + 1)
    if sum(letter in _DIGITS for letter in text[at:end]) > MOST_DIGITS:
        raise wrong(text, at, f"a number has at most {MOST_DIGITS} digits")
    mantissa = end
    if text[end : end + 1] in ("e", "E"):
        exponent = end + 1 + (text[end + 1 : end + 2] in ("+", "-"))
        if not 1 <= digits(exponent) - exponent <= 3:
            raise wrong(text, at, "an exponent has one to three digits")
        end = digits(exponent)
        if abs(Fraction(text[at:end])) >= MOST_SIZE:
            raise wrong(text, at, "a number is smaller than 1e300")
    if end < len(text) and (_inner(text[end]) or text[end] == "."):
        raise wrong(text, at, "expected a number, such as 40 or 2500.5, and a space or a sign after it")
    return (int(text[at:end]) if end == mantissa == point else Fraction(text[at:end])), end


def wrong(text: str, at: int, why: str, what: str = "predicate", allowed: str = ALLOWED) -> InvalidQuery:
    """A refusal that points into the text."""
    place = f"at character {at + 1}, {quoted(text[at : at + 40], 40)}" if at < len(text) else "at its end"
    stop = "" if why.endswith(("?", ".")) else "."
    refusal = InvalidQuery(f"the {what} {place}: {why}{stop} {allowed}. Nothing was spent.")
    vars(refusal).update(at=at, why=why)
    return refusal


def misread(refusal: InvalidQuery) -> tuple[int, str] | None:
    """Where such a refusal points, and why: for a larger text, which says it in words of its own."""
    held = vars(refusal)
    return (held["at"], held["why"]) if "at" in held else None
