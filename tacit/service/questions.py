"""Questions as they come in, one a line: from a file, from standard input, or said; a refusal says where it stands."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tacit.domain.query import LinearQuery
from tacit.domain.schema import Schema
from tacit.domain.sql import asked
from tacit.errors import InvalidInput, InvalidQuery
from tacit.service.located import Kind, printable, text_of

MOST_QUESTIONS = 10**6
FILE = Kind(
    "file of questions",
    "a predicate or a `select count(*) ...` on each line",
    "questions are read from a text, and a table is not read here",
    InvalidQuery,
)


class Question(NamedTuple):
    """A predicate or a question in SQL, and where it stands: nowhere, if it was said on the command line."""

    text: str
    place: str = ""

    @contextmanager
    def located(self) -> Iterator[None]:
        """Puts the place before a refusal."""
        try:
            yield
        except InvalidInput as error:
            if not self.place:
                raise
            raise type(error)(f"{self.place}: {error}") from None

    def query(self, schema: Schema) -> LinearQuery:
        """What it asks."""
        with self.located():
            return asked(self.text, schema).query


def questions(words: Iterable[str]) -> list[Question]:
    """What is said on the command line: a question, @FILE for the lines of a file, - for those of standard input."""
    found: list[Question] = []
    for word in words:
        if word == "-":
            found += _listened()
        elif word.startswith("@"):
            found += written_in(Path(word[1:]))
        else:
            found.append(Question(word))
        if len(found) > MOST_QUESTIONS:
            raise InvalidQuery(f"there are more than {MOST_QUESTIONS} questions. Nothing was spent.")
    return found


def _listened() -> list[Question]:
    """The questions of standard input, where there is one."""
    try:
        return list(_lines(sys.stdin or (), "standard input"))
    except UnicodeDecodeError:
        raise InvalidQuery("standard input is not UTF-8 text. Nothing was spent.") from None


def written_in(file: Path) -> list[Question]:
    """The questions of a file; a line that begins with # is passed over."""
    found = list(_lines(text_of(file, FILE).split("\n"), printable(file)))
    if not found:
        raise InvalidQuery(f"{printable(file)} holds no question, only remarks. Nothing was spent.")
    return found


def _lines(lines: Iterable[str], source: str) -> Iterator[Question]:
    for number, line in enumerate(lines, 1):
        if number > MOST_QUESTIONS:
            raise InvalidQuery(f"{source} has more than {MOST_QUESTIONS} lines. Nothing was spent.")
        if line.strip() and not line.lstrip().startswith("#"):
            yield Question(line.rstrip(), f"{source}, line {number}")  # what stands before it counts as characters
