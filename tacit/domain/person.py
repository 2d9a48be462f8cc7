"""Whom a promise is about: a person of several rows, and the group privacy that this costs (Thm 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.domain.grid import Norm
from tacit.domain.query import Query
from tacit.domain.schema import Neighbors, checked_name
from tacit.errors import InvalidSchema
from tacit.rational import whole

MOST_ROWS = 10**6  # of one person


@dataclass(frozen=True)
class Person:
    """The column that tells people apart, and the most rows that count of each.

    The column is no column of the universe: nothing is asked of it, and none of its values leaves the engine.

    >>> Person("id", 3)
    Person(column='id', most_rows=3)
    """

    column: str
    most_rows: int

    def __post_init__(self) -> None:
        checked_name(self.column)
        most = whole(self.most_rows, "the most rows of a person", 1, MOST_ROWS, InvalidSchema)
        object.__setattr__(self, "most_rows", most)


@dataclass(frozen=True)
class Relation:
    """Which two tables must be hard to tell apart, where one person has at most so many rows in the counts.

    From a table to its neighbour it is at most `rows` steps of one row, so that in every norm the answers move by at
    most so many times what one row moves them: the triangle inequality. Under replace-one a person's rows may become
    others, and more or fewer; the steps of those are covered, for a row that is replaced may leave the counts or enter
    them.

    >>> from tacit.domain.query import Marginal
    >>> from tacit.domain.schema import Categories, Schema
    >>> by_sex = Marginal.over(Schema([Categories("sex", ("F", "M"))]), "sex")
    >>> Relation(Neighbors.REPLACE_ONE, 3).moves(by_sex, Norm.L1)
    Fraction(6, 1)
    """

    neighbors: Neighbors
    rows: int = 1

    def __post_init__(self) -> None:
        whole(self.rows, "the most rows of a person", 1, MOST_ROWS, InvalidSchema)  # none would need no noise

    @classmethod
    def of(cls, given: Neighbors | Relation) -> Relation:
        """Neighbours alone speak of people of one row."""
        return given if isinstance(given, Relation) else cls(Neighbors(given))

    def moves(self, query: Query, norm: Norm) -> Fraction:
        """How far one person can move the query's answers: the only place where rows become people."""
        return self.rows * query.sensitivity(norm, self.neighbors)

    @property
    def total_public(self) -> bool:
        """Whether a public number of people is the number of rows as well."""
        return self.neighbors is Neighbors.REPLACE_ONE and self.rows == 1

    def __str__(self) -> str:
        each = f", {self.rows} rows a person" if self.rows > 1 else ""
        return f"{self.neighbors.value} neighbours{each}"
