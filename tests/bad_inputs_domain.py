"""What nobody may ask: schemas, queries, workloads and predicates, each with its refusal and what the refusal names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

import numpy as np

from tacit.domain.grid import Norm
from tacit.domain.interval import Prefixes, Ranges
from tacit.domain.parity import Parity
from tacit.domain.predicate import parse
from tacit.domain.query import Conjunctions, Counting, Linear, Marginal, Query
from tacit.domain.schema import Categories, Dates, Integers, Neighbors, Numbers, Schema, column_from
from tacit.domain.score import Fit, Function, Hardness
from tacit.domain.workload import (
    Workload,
    conjunctions,
    marginals,
    parities,
    predicates,
    ranges,
)
from tacit.errors import InvalidQuery, InvalidSchema

DAYS = Dates("visited", "2024-01-01", "2024-12-31", "day")
SCHEMA = Schema(
    [
        Integers("age", 0, 99, missing="cell"),
        Categories("sex", ("F", "M", "X")),
        Numbers("income", (0, 1000, 2500.5), outside="cell"),
        Categories("income>50K", (0, 1)),
        Categories("e-mail", (True, False)),
        Integers("zip", 0, 99_999),
    ]
)
WIDE = Schema([Integers(f"c{place}", 0, 999) for place in range(10)])
MANY = Schema([Categories(f"c{place}", (0, 1)) for place in range(100)])
SEXES = Marginal.over(SCHEMA, "sex")
BOTH = Workload((SEXES, Counting.where(SCHEMA)))


class Nobody:
    """A synopsis of nobody."""

    schema = SCHEMA

    def answer(self, query: Query) -> np.ndarray:
        return np.zeros(query.size)


def asked(text: object) -> Callable[[], object]:
    return lambda: parse(text, SCHEMA)  # type: ignore[arg-type]


def called(function: object = np.max, **given: object) -> Callable[[], object]:
    given = {"sensitivity": 1, "neighbors": Neighbors.ADD_REMOVE} | given
    return lambda: Function.of(SCHEMA, "sex", function, **given)  # type: ignore[arg-type]


Bad = tuple[str, Callable[[], object], type[Exception]]

SCHEMAS: list[tuple[str, str, Callable[[], object]]] = [
    # what it is, what the refusal must name, and how it comes about
    ("no columns", "columns", lambda: Schema([])),
    ("columns that are a text", "columns", lambda: Schema("age")),  # type: ignore[arg-type]
    ("columns that are a number", "columns", lambda: Schema(5)),  # type: ignore[arg-type]
    ("a column that is none", "columns", lambda: Schema(["age"])),  # type: ignore[list-item]
    ("two columns of one name", "'a'", lambda: Schema([Integers("a", 0, 1), Integers("a", 0, 1)])),
    ("names that differ in case", "'Age'", lambda: Schema([Integers("Age", 0, 1), Integers("age", 0, 1)])),
    ("café written two ways", "read the same", lambda: Schema([Integers("café", 0, 1), Integers("cafe\u0301", 0, 1)])),
    ("an empty name", "name", lambda: Integers("", 0, 1)),
    ("a name with a blank at its end", "name", lambda: Integers("age ", 0, 1)),
    ("a name with a newline", "control", lambda: Integers("a\nb", 0, 1)),
    ("a name with NUL", "control", lambda: Integers("a\0b", 0, 1)),
    ("a name that writes from right to left", "control", lambda: Integers("a\u202eb", 0, 1)),
    ("a name of 10,000 letters", "200", lambda: Integers("a" * 10_000, 0, 1)),
    ("a name that is a number", "name", lambda: Integers(5, 0, 1)),  # type: ignore[arg-type]
    ("low above high", "'age'", lambda: Integers("age", 5, 4)),
    ("a bound that is NaN", "low", lambda: Integers("age", float("nan"), 4)),  # type: ignore[arg-type]
    ("a bound that is infinite", "high", lambda: Integers("age", 0, float("inf"))),  # type: ignore[arg-type]
    ("a real bound of a whole column", "high", lambda: Integers("age", 0, 99.5)),  # type: ignore[arg-type]
    ("a bound that is a text", "high", lambda: Integers("age", 0, "99")),  # type: ignore[arg-type]
    ("a bound that is a truth value", "low", lambda: Integers("age", True, 4)),
    ("a bound beyond 64 bits", "high", lambda: Integers("age", 0, 2**64)),
    ("a bound of 5,000 digits", "high", lambda: Integers("age", 0, 10**5000)),
    ("more cells than a column may have", "1000000", lambda: Integers("age", 0, 10**6)),
    ("bounds from an array", "low", lambda: Integers("age", np.array([0, 1]), 4)),  # type: ignore[arg-type]
    ("one edge", "edges", lambda: Numbers("income", (5,))),
    ("edges that fall", "edges", lambda: Numbers("income", (0, 5, 4))),
    ("an edge twice", "edges", lambda: Numbers("income", (0, 5, 5))),
    ("zero with both signs", "edges", lambda: Numbers("income", (-0.0, 0.0))),
    ("an edge that is NaN", "edges", lambda: Numbers("income", (0, float("nan")))),
    ("an edge that is infinite", "edges", lambda: Numbers("income", (0, float("inf")))),
    ("an edge of 5,000 digits", "edges", lambda: Numbers("income", (0, 10**5000))),
    ("an edge that is a text", "edges", lambda: Numbers("income", (0, "5"))),  # type: ignore[arg-type]
    ("edges that are a text", "edges", lambda: Numbers("income", "0 5")),  # type: ignore[arg-type]
    ("days that fall", "must rise", lambda: Dates("visited", "2024-02-01", "2024-01-31", "day")),
    ("a day that is none", "'2024-02-30'", lambda: Dates("visited", "2024-02-30", "2024-12-31", "day")),
    ("a day in other figures", "'31.12.2024'", lambda: Dates("visited", "2024-01-01", "31.12.2024", "day")),
    ("a day that is a number", "'2024'", lambda: Dates("visited", 2024, 2025, "year")),  # type: ignore[arg-type]
    ("a day with a time", "days", lambda: Dates("visited", datetime(2024, 1, 1), "2024-12-31", "day")),
    ("too many days", "1000000 days", lambda: Dates("visited", "0001-01-01", "9999-12-31", "year")),
    ("a period that is none", "'hour'", lambda: Dates("visited", "2024-01-01", "2024-12-31", "hour")),
    ("periods that are a list", "by is", lambda: Dates("visited", "2024-01-01", "2024-12-31", ["day"])),  # type: ignore[arg-type]
    ("described days, and no period", "by", lambda: column_from({"name": "a", "from": "2024-01-01", "to": ""})),
    ("a constant of another type, day", "'visited'", lambda: DAYS.locate(5)),
    ("no categories", "categories", lambda: Categories("sex", ())),
    ("a category twice", "twice", lambda: Categories("sex", ("F", "F"))),
    ("categories of two kinds", "categories", lambda: Categories("sex", ("F", 1))),
    ("true among whole numbers", "categories", lambda: Categories("sex", (True, 0))),
    ("categories that are real numbers", "categories", lambda: Categories("sex", (0.5, 1.5))),
    ("categories that are a text", "categories", lambda: Categories("sex", "FM")),  # type: ignore[arg-type]
    ("categories that are bytes", "categories", lambda: Categories("sex", b"FM")),  # type: ignore[arg-type]
    ("a category that is a list", "categories", lambda: Categories("sex", ([],))),  # type: ignore[arg-type]
    ("a category beyond 64 bits", "64 bits", lambda: Categories("code", (2**63,))),
    ("a category that is called missing", "(missing)", lambda: Categories("sex", ("F", "(missing)"))),
    ("a place that is none", "'sometimes'", lambda: Integers("age", 0, 9, missing="sometimes")),
    ("categories that clamp", "'clamp'", lambda: Categories("sex", ("F", "M"), outside="clamp")),
    ("missing that clamps", "'clamp'", lambda: Integers("age", 0, 9, missing="clamp")),
    ("a described column without a domain", "'age'", lambda: column_from({"name": "age"})),
    ("a described column with half a domain", "high", lambda: column_from({"name": "age", "low": 0})),
    ("a column of two domains", "'edges'", lambda: column_from({"name": "a", "categories": [1], "edges": [0, 1]})),
    ("bounds from the data", "bounds", lambda: column_from({"name": "a", "low": 0, "high": 9, "bounds": "from data"})),
    ("bounds that are a word", "low", lambda: column_from({"name": "a", "low": "from data", "high": 9})),
    ("a described column that is a text", "table", lambda: column_from("age")),  # type: ignore[arg-type]
    ("a described schema that is a table", "list", lambda: Schema.of({"name": "age"})),  # type: ignore[arg-type]
    ("a column that is not there", "did you mean age", lambda: SCHEMA["agee"]),
    ("a column that is a list", "column", lambda: SCHEMA[["age"]]),  # type: ignore[index]
    ("a constant of another type, whole", "'age'", lambda: SCHEMA["age"].locate("5")),
    ("a constant of another type, category", "'sex'", lambda: SCHEMA["sex"].locate(1)),
    ("a constant of another type, truth value", "'income>50K'", lambda: SCHEMA["income>50K"].locate(True)),
    ("a constant of another type, number", "'income'", lambda: SCHEMA["income"].locate("1000")),
    ("a marginal of a column that is not there", "'agee'", lambda: Marginal.over(SCHEMA, "agee")),
    ("ranges of a column that is not there", "'agee'", lambda: Ranges.over(SCHEMA, "agee")),
    ("a marginal of a number", "'5'", lambda: Marginal.over(SCHEMA, 5)),  # type: ignore[arg-type]
]  # fmt: skip

QUERIES: list[tuple[str, str, Callable[[], object]]] = [
    ("a column twice", "twice", lambda: Marginal.over(SCHEMA, "age", "age")),
    ("more cells than a query may read", "10000000", lambda: Marginal.over(SCHEMA, "age", "sex", "zip")),
    ("conjunctions of 10^30 cells", "cells", lambda: Conjunctions.over(WIDE, *WIDE.names)),
    ("more columns than an array has axes", "32 columns", lambda: Marginal(tuple(MANY.names[:33]), (1,) * 33)),
    ("names without sizes", "size", lambda: Marginal(("age",), ())),
    ("a size that is no number", "'age'", lambda: Marginal(("age",), ("100",))),  # type: ignore[arg-type]
    ("a size of nothing", "'age'", lambda: Marginal(("age",), (0,))),
    ("a name that is no text", "name", lambda: Marginal((5,), (2,))),  # type: ignore[arg-type]
    ("prefixes of two columns", "prefixes", lambda: Prefixes(("a", "b"), (2, 3))),
    ("ranges of no column", "ranges", lambda: Ranges((), ())),
    ("5 * 10^9 ranges", "ranges", lambda: Ranges.over(SCHEMA, "zip")),
    ("ranges by a number", "by", lambda: Ranges.over(SCHEMA, "age", by=5)),  # type: ignore[arg-type]
    ("a parity of three cells", "two cells", lambda: Parity.over(SCHEMA, "sex")),
    ("a cell that is not there", "'sex'", lambda: Counting.where(SCHEMA, {"sex": (0, 3)})),
    ("a cell below zero", "'sex'", lambda: Counting.where(SCHEMA, {"sex": (-1,)})),
    ("a cell that is a text", "'sex'", lambda: Counting.where(SCHEMA, {"sex": "01"})),  # type: ignore[dict-item]
    ("a cell that is real", "'sex'", lambda: Counting.where(SCHEMA, {"sex": (1.5,)})),  # type: ignore[dict-item]
    ("a cell that is a truth value", "'sex'", lambda: Counting.where(SCHEMA, {"sex": (True,)})),
    ("a range of cells that are not there", "'sex'", lambda: Counting.where(SCHEMA, {"sex": range(2, 9)})),
    ("cells that are a number", "'sex'", lambda: Counting.where(SCHEMA, {"sex": 1})),  # type: ignore[dict-item]
    ("conditions that are a text", "conditions", lambda: Counting.where(SCHEMA, "sex")),  # type: ignore[arg-type]
    ("a cell chosen thrice by hand", "chosen", lambda: Counting(("sex",), (3,), ())),
    ("weights that are negative", "[0, 1]", lambda: Linear.of(SCHEMA, "sex", [0, -1, 1])),
    ("weights above one", "[0, 1]", lambda: Linear.of(SCHEMA, "sex", [0, 1, 1e308])),
    ("weights that are NaN", "[0, 1]", lambda: Linear.of(SCHEMA, "sex", [0, 1, float("nan")])),
    ("weights that are infinite", "[0, 1]", lambda: Linear.of(SCHEMA, "sex", [0, 1, float("inf")])),
    ("weights that are texts", "weights", lambda: Linear.of(SCHEMA, "sex", ["0", "1", "1"])),
    ("weights that are complex", "weights", lambda: Linear.of(SCHEMA, "sex", [0, 1, 1j])),
    ("too few weights", "3 cells", lambda: Linear.of(SCHEMA, "sex", [0, 1])),
    ("one weight for all cells", "3 cells", lambda: Linear.of(SCHEMA, "sex", 1.0)),  # type: ignore[arg-type]
    ("weights lying the wrong way", "axis", lambda: Linear.of(SCHEMA, ("sex", "income"), np.ones((3, 3)).T[:, :2])),
    ("weights in ragged rows", "weights", lambda: Linear.of(SCHEMA, ("sex", "income"), [[1, 0], [1], [0, 1]])),
    ("weights over 10^30 cells", "cells", lambda: Linear.of(WIDE, WIDE.names, [1])),
    ("numerators below zero by hand", "[0, 1]", lambda: Linear(("sex",), (3,), np.array([-5, 0, 1]))),
    ("numerators above the grid by hand", "[0, 1]", lambda: Linear(("sex",), (3,), np.array([0, 0, 2]))),
    ("numerators that are real by hand", "whole", lambda: Linear(("sex",), (3,), np.array([0.5, 0, 1]))),  # type: ignore[arg-type]
    ("a grid of weights below zero", "grid", lambda: Linear(("sex",), (3,), np.array([0, 0, 1]), Fraction(-1))),
    ("a grid that is too fine", "grid", lambda: Linear(("sex",), (3,), np.array([0, 0, 1]), Fraction(1, 10**9))),
    ("a matrix of 10^12 weights", "matrix", lambda: Marginal(("zip",), (10**6,)).weights()),
    ("an empty workload", "workload", lambda: Workload(())),
    ("a workload that is one query", "workload", lambda: Workload(SEXES)),  # type: ignore[arg-type]
    ("a workload of texts", "workload", lambda: Workload(("age",))),  # type: ignore[arg-type]
    ("a workload of 10^9 answers", "answers", lambda: Workload((Marginal(("zip",), (10**7,)),) * 100)),
    ("marginals of no column", "columns", lambda: marginals(SCHEMA, 0)),
    ("marginals of more columns than there are", "columns", lambda: marginals(SCHEMA, 7)),
    ("marginals of half a column", "columns", lambda: marginals(SCHEMA, 1.5)),  # type: ignore[arg-type]
    ("conjunctions of a text", "columns", lambda: conjunctions(SCHEMA, "2")),  # type: ignore[arg-type]
    ("10^13 marginals", "column sets", lambda: marginals(MANY, 10)),
    ("parities where no column has two cells", "two cells", lambda: parities(WIDE, 1)),
    ("parities of a text", "columns", lambda: parities(SCHEMA, "1")),  # type: ignore[arg-type]
    ("ranges by nothing that is a list", "by", lambda: ranges(SCHEMA, "age", by=None)),  # type: ignore[arg-type]
    ("cells that are a number, by hand", "'sex'", lambda: Counting(("sex",), (3,), (5,))),  # type: ignore[arg-type]
    ("predicates that are one text", "list", lambda: predicates(SCHEMA, "age > 5")),
    ("no predicates", "workload", lambda: predicates(SCHEMA, [])),
    ("one bad predicate among good ones", "predicate 2", lambda: predicates(SCHEMA, ["age > 5", "age >", "age < 5"])),
    ("candidates that are ragged", "candidates", lambda: Fit(BOTH, [[1, 2], [1]])),  # type: ignore[arg-type]
    ("candidates of another workload", "candidates", lambda: Fit(BOTH, np.zeros((2, 3)))),
    ("a candidate that is NaN", "candidate", lambda: Fit(BOTH, np.full((1, 4), np.nan))),
    ("hardness before the first synopsis", "synopses", lambda: Hardness(BOTH, (), 1, 1)),
    ("a lambda below zero", "lambda", lambda: Hardness(BOTH, (Nobody(),), -1, 1)),
    ("a mu of nothing", "mu", lambda: Hardness(BOTH, (Nobody(),), 1, 0)),
    ("a mu that is NaN", "mu", lambda: Hardness(BOTH, (Nobody(),), 1, float("nan"))),
    ("a mu whose product would not fit 64 bits", "mu", lambda: Hardness(BOTH, (Nobody(),), 1, 10**15)),
    ("a lambda that would not fit 64 bits", "lambda", lambda: Hardness(BOTH, (Nobody(),), 10**30, 1)),
    ("a hardness on a grid that is none", "grid", lambda: Hardness(BOTH, (Nobody(),), 1, 1, Fraction(2, 3))),
    ("a function of sensitivity 0", "sensitivity", called(sensitivity=0)),
    ("a function of sensitivity NaN", "sensitivity", called(sensitivity=float("nan"))),
    ("a function whose vector has one sensitivity", "norm", called(size=2)),
    ("a function with a sensitivity in no norm", "sensitivity", called(sensitivity={})),
    ("a function with a sensitivity in a text", "norm", called(sensitivity={"l1": 1})),
    ("a function on no grid", "grid", called(grid=0)),
    ("a function on a grid of 10^-400", "grid", called(grid=Fraction(1, 10**400))),
    ("a function of no answers", "answers", called(size=0, sensitivity={Norm.L1: 1})),
    ("a function that is a dotted path", "call", called("os.system")),
]  # fmt: skip

PREDICATES: list[tuple[str, str, object]] = [
    ("a predicate that is a number", "text", 5),
    ("a predicate that is bytes", "text", b"age > 5"),
    ("a predicate that is a function", "text", len),
    ("an empty predicate", "at its end", ""),
    ("blanks alone", "at its end", "   "),
    ("half a comparison", "at its end", "age >"),
    ("a column alone", "comparison", "age"),
    ("a constant alone", "comparison", "5"),
    ("two constants", "column", "1 = 1"),
    ("two columns", "constant", "age = zip"),
    ("a column that is not there", "did you mean age", "agee > 5"),
    ("a column in another case", "did you mean age", "AGE > 5"),
    ("a text against whole numbers", "'age'", "age = 'x'"),
    ("a whole number in quotes", "'age'", "age = '5'"),
    ("a whole number with a point", "'age'", "age = 5.0"),
    ("a real number against whole numbers", "'age'", "age < 5.5"),
    ("a truth value against whole numbers", "'age'", "age = true"),
    ("a number against texts", "'sex'", "sex = 1"),
    ("a number against truth values", "'e-mail'", "e-mail = 1"),
    ("a truth value against categories that are numbers", "'income>50K'", "[income>50K] = true"),
    ("a text against numbers", "'income'", "income > '1000'"),
    ("an order among categories", "no order", "sex < 'M'"),
    ("an order among categories that are numbers", "no order", "[income>50K] between 0 and 1"),
    ("a number within a cell", "0 and 1000", "income < 700"),
    ("an edge on the wrong side", "1000", "income <= 1000"),
    ("the last edge, which is in its cell", "2500.5", "income < 2500.5"),
    ("one number of a cell", "cell", "income = 1000"),
    ("missing where rows are dropped", "missing = drop", "sex is missing"),
    ("outside where rows are dropped", "outside = drop", "age is not outside"),
    ("null", "missing or outside", "age is null"),
    ("an open parenthesis", "character 1", "(age > 5"),
    ("a parenthesis too many", "character 8", "age > 5)"),
    ("an open quote", "character 7", "sex = 'F"),
    ("an open bracket", "character 1", "[age > 5"),
    ("an empty list", "constant", "age in ()"),
    ("a list with a comma too many", "constant", "age in (1,)"),
    ("a chain that turns", "one way", "5 < age > 3"),
    ("a chain of equals", "one way", "5 = age = 5"),
    ("two predicates", "and, or", "age > 5 age < 9"),
    ("an exponent too far", "1e300", "income < 1e999"),
    ("a number of 31 digits", "30 digits", "age < " + "9" * 31),
    ("a number that is none", "no column 'nan'", "nan = 5"),
    ("NaN as a constant", "constant", "income < nan"),
    ("infinity as a constant", "constant", "income < inf"),
    ("a second statement", "character 8", "age > 5; drop table people"),
    ("SQL that is always true", "column", "1=1; drop table people"),
    ("a comment to the end", "character 9", "age > 5 -- and sex = 'F'"),
    ("a comment in between", "character 5", "age /* old */ > 5"),
    ("a random number", "no functions", "random() < 0.5"),
    ("a function that fails", "no functions", "error('found') = 1"),
    ("a function that waits", "no functions", "pg_sleep(10) = 1"),
    ("a function of a column", "no functions", "ln(age) > 1"),
    ("arithmetic", "character 5", "age + 1 > 5"),
    ("arithmetic by a hyphen", "age-1", "age-1 > 5"),
    ("a case", "comparison", "case when age > 5 then 1 else 0 end = 1"),
    ("a subquery", "constant", "age in (select age from people)"),
    ("a sample", "and, or", "age > 5 USING SAMPLE 1"),
    ("a pattern", "comparison", "sex like 'F%'"),
    ("a regular expression", "character 5", "sex ~ '(a+)+$'"),
    ("a cast", "character 4", "age::text = '5'"),
    ("Python", "no functions", "__import__('os').system('true') = 0"),
    ("an attribute", "character 4", "age.__class__ = 5"),
    ("a lambda", "character 8", "lambda x: x"),
    ("NUL", "U+0000", "age > 5\0"),
    ("a mark that writes from right to left", "U+202E", "age > \u202e5"),
    ("digits of another script", "character 7", "age > ٥"),
    ("a sign of another script", "character 5", "age ≥ 5"),
    ("half a surrogate", "U+D800", "age > 5 \ud800"),
    ("10^5 parentheses", "100 deep", "(" * 10**5),
    ("10^6 characters", "100000 characters", "age > 5 or " * 10**5),
    ("10^4 nots", "more than 10000", "not " * 20_000 + "age > 5"),
    ("20,000 constants", "more than 10000", f"age in ({'1,' * 20_000}1)"),
    ("a union over 10^9 cells", "cells together", "age = 5 or zip = 12345 or sex = 'F'"),
]  # fmt: skip

BAD: list[Bad] = [
    *[(name, make, InvalidSchema) for name, _, make in SCHEMAS],
    *[(name, make, InvalidQuery) for name, _, make in QUERIES],
    *[(f"predicate: {name}", asked(text), InvalidQuery) for name, _, text in PREDICATES],
]
NAMED: dict[str, str] = {
    **{name: named for name, named, _ in [*SCHEMAS, *QUERIES]},
    **{f"predicate: {name}": named for name, named, _ in PREDICATES},
}
