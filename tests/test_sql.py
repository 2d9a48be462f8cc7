"""SQL is read as what it means, row by row and as a database counts it; and nothing else of SQL is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from doubles import Rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.domain.grid import Norm
from tacit.domain.grouped import Grouped
from tacit.domain.parser import DEEPEST, LONGEST
from tacit.domain.predicate import parse
from tacit.domain.query import Counting, Linear, LinearQuery, Marginal
from tacit.domain.schema import Categories, Integers, Neighbors, Numbers, Schema
from tacit.domain.single import single
from tacit.domain.sql import Asked, Labels, parse_sql
from tacit.errors import InvalidQuery, InvalidSchema

SCHEMA = Schema(
    [
        Integers("age", 0, 99, missing="cell"),
        Categories("sex", ("F", "M", "X")),
        Numbers("income", (0, 1000, 2500.5), missing="cell", outside="cell"),
        Categories("income>50K", (0, 1)),
        Categories("e-mail", (True, False), missing="cell"),
        Categories("group", (1, 2)),
        Categories("null", ("it's", 'say "x"', "a;b --c /*")),
    ]
)


def asked(text: str) -> Asked:
    return parse_sql(text, SCHEMA)


EQUAL = [
    # SQL, and the predicate that counts the same
    ("select count(*) from people", "true"),
    ("SELECT COUNT ( * ) FROM people ;", "true"),
    ("select count(*)", "true"),
    ("select count(*) as n from people where age >= 40 and sex = 'F'", "age >= 40 and sex = 'F'"),
    ("Select Count(*) From [any table] Where age Between 40 And 59;", "40 <= age < 60"),
    ("select\tcount(*)\r\nfrom people\nwhere sex<>'M'", "sex != 'M'"),
    ("select count(*) where age is null", "age is missing"),
    ("select count(*) where age IS NOT NULL", "age is not missing"),
    ("select count(*) where not age is null", "age is not missing"),
    ("select count(*) where not (age is not null)", "age is missing"),
    ("select count(*) where age is missing or income is outside", "age is missing or income is outside"),
    # what is null is neither 40 nor not 40, whatever stands before the comparison
    ("select count(*) where not age = 40", "age != 40"),
    ("select count(*) where not (age = 40 or sex = 'F')", "age != 40 and sex != 'F'"),
    ("select count(*) where not not age = 40", "age = 40"),
    ("select count(*) where not (age >= 40 and age < 60)", "age < 40 or age >= 60"),
    ("select count(*) where not age not in (1, 2)", "age in (1, 2)"),
    ("select count(*) where not income between 0 and 2500.5", "false"),
    ('select count(*) where "income>50K" = 1', "[income>50K] = 1"),
    ("select count(*) where [income>50K] = 1 and `e-mail` = true", "[income>50K] = 1 and e-mail = true"),
    ("select count(*) where group = 1", "group = 1"),
    ("select count(*) where null = 'it''s' or null is null", "refused"),
    ("select count(*) where null = 'a;b --c /*' and group = 2", "null = 'a;b --c /*' and group = 2"),
    ("select count(*) where false", "false"),
]


@pytest.mark.parametrize(("sql", "predicate"), EQUAL)
def test_a_count_is_the_predicate_that_it_counts(sql: str, predicate: str) -> None:
    if predicate == "refused":  # the column drops its missing rows
        with pytest.raises(InvalidQuery, match="no cell for what is missing"):
            asked(sql)
        return
    found = asked(sql)
    assert found.query == parse(predicate, SCHEMA)
    assert (found.columns, list(found.labels), len(found.heads)) == ((), [()], 1)
    assert asked(found.text) == found


def test_groups_are_every_cell_in_order_with_their_labels() -> None:
    one = asked("select sex, count(*) as n from people where age >= 40 group by sex")
    assert str(one.query) == "count where age >= 40 by sex"
    assert (one.heads, list(one.labels)) == (("sex", "n"), [("F",), ("M",), ("X",)])
    assert one.text == "select sex, count(*) as n from people where age >= 40 group by sex"
    two = asked("select count(*) where sex = 'F' or age < 9 group by income, sex")
    assert two.columns == ("income", "sex")
    assert two.labels[0] == ("[0, 1000)", "F")
    assert two.labels[-1] == ("(outside)", "X")
    assert list(two.labels) == [(a, b) for a in SCHEMA["income"].labels for b in SCHEMA["sex"].labels]
    assert two.labels[1:3] == [("[0, 1000)", "M"), ("[0, 1000)", "X")]
    with pytest.raises(IndexError):
        two.labels[12]
    assert isinstance(two.query, Grouped)
    assert two.query.size == len(two.labels) == 12


def test_groups_without_a_condition_are_a_marginal_and_in_other_words_the_same_query() -> None:
    assert asked("select count(*) group by sex, age").query == Marginal.over(SCHEMA, "sex", "age")
    assert asked("select count(*) where true group by sex").query == Marginal.over(SCHEMA, "sex")
    some = asked("select sex, count(*) where not age < 40 group by sex").query
    assert some == asked("select count(*) from x where 40 <= age group by sex;").query
    assert hash(some) == hash(asked("select count(*) where age >= 40 group by sex").query)
    assert some != asked("select count(*) where age >= 41 group by sex").query


def test_a_group_that_the_condition_rules_out_has_an_answer_too() -> None:
    query = asked("select count(*) where age = 5 group by age").query
    people = Rows(SCHEMA, np.tile([[5, 0, 0, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0]], (3, 1)))
    answers = query.on_grid(*people.counts(query.reads)).units
    assert answers.tolist() == [3 * (age == 5) for age in range(101)]


def test_grouping_costs_no_more_than_one_table() -> None:
    for text in ("select count(*) where age < 5 or sex = 'F' group by income, sex", "select count(*) group by income"):
        query = asked(text).query
        assert query.sensitivity(Norm.L1, Neighbors.ADD_REMOVE) == 1
        assert query.sensitivity(Norm.L1, Neighbors.REPLACE_ONE) == 2
        assert query.monotone(Neighbors.ADD_REMOVE)
        assert not query.monotone(Neighbors.REPLACE_ONE)


def test_one_group_is_a_query_of_its_own() -> None:
    query = asked("select count(*) where age >= 40 and group = 2 group by sex, [group]").query
    rng = np.random.default_rng(0)
    people = Rows(SCHEMA, rng.integers(0, SCHEMA.sizes(SCHEMA.names), (300, 7)))
    together = query.on_grid(*people.counts(query.reads)).units
    for place in range(query.size):
        alone = single(query, place)
        assert int(alone.on_grid(*people.counts(alone.reads)).units[0]) == together[place]


def test_a_query_of_groups_made_by_hand_is_held_to_what_it_claims() -> None:
    where = Counting(("c",), (2,), ((0,),))
    Grouped(("b", "c"), (3, 2), 1, where)
    wrong: dict[str, Callable[[], object]] = {
        "no group": lambda: Grouped(("b", "c"), (3, 2), 0, where),
        "more groups than columns": lambda: Grouped(("b", "c"), (3, 2), 3, where),
        "a column too many": lambda: Grouped(("b", "c", "d"), (3, 2, 2), 1, where),
        "a column of another size": lambda: Grouped(("b", "c"), (3, 3), 1, where),
        "a condition on another column": lambda: Grouped(("b",), (3,), 1, where),
        "weights": lambda: Grouped(("c",), (2,), 1, Linear(("c",), (2,), np.array([1, 2]), Fraction(1, 2))),
        "many answers": lambda: Grouped(("c",), (2,), 1, Marginal(("c",), (2,))),
        "too many cells": lambda: Grouped(("b", "c"), (10**7, 2), 1, where),
    }
    for what, make in wrong.items():
        with pytest.raises(InvalidQuery, match="Nothing was spent"):
            pytest.fail(f"{what}: {make()}")
    with pytest.raises(InvalidQuery, match=r"made for columns of \(9,\) cells"):
        Grouped(("sex",), (9,), 1, Counting.where(SCHEMA)).check(SCHEMA)


# -- against a count by hand, and against a database


ROWS = np.random.default_rng(3).integers(0, [11, 3, 3], (400, 3))
SMALL = Schema([Integers("a", 0, 9, missing="cell"), Categories("b", ("x", "it's", 'd"q')), Categories("c", (1, 2, 3))])
VALUES = {"a": [*range(10), None], "b": ["x", "it's", 'd"q'], "c": [1, 2, 3]}
Row = dict[str, Any]
Truth = bool | None
Meant = tuple[str, Callable[[Row], Truth]]


def both(one: Truth, other: Truth) -> Truth:
    return False if one is False or other is False else None if one is None or other is None else True


def opposite(one: Truth) -> Truth:
    return None if one is None else not one


def written(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, c: x == c,
    "<>": lambda x, c: x != c,
    "!=": lambda x, c: x != c,
    "<": lambda x, c: x < c,
    ">=": lambda x, c: x >= c,
    "<=": lambda x, c: x <= c,
    ">": lambda x, c: x > c,
}


@st.composite
def conditions(draw: st.DrawFn) -> Meant:
    name = draw(st.sampled_from("aabc"))
    said = draw(st.sampled_from([name, f'"{name}"']))
    values = st.sampled_from([value for value in VALUES[name] if value is not None])
    kind = draw(st.sampled_from(["compare", "compare", "in", "between", "null"]))
    no = draw(st.sampled_from(["", "not "]))
    if kind == "null" and name == "a":
        return f"{said} is {no}null", lambda row: (row[name] is None) != bool(no)
    if kind == "between" and name == "a":
        low, high = draw(values), draw(values)
        return (
            f"{said} {no}between {low} and {high}",
            lambda row: None if row[name] is None else (low <= row[name] <= high) != bool(no),
        )
    if kind == "in":
        some = draw(st.lists(values, min_size=1, max_size=3))
        return (
            f"{said} {no}in ({', '.join(map(written, some))})",
            lambda row: None if row[name] is None else (row[name] in some) != bool(no),
        )
    sign = draw(st.sampled_from(sorted(SIGNS) if name == "a" else ["=", "<>", "!="]))
    value = draw(values)
    return f"{said} {sign} {written(value)}", lambda row: None if row[name] is None else SIGNS[sign](row[name], value)


def joined(parts: st.SearchStrategy[Meant]) -> st.SearchStrategy[Meant]:
    def join(word: str, one: Meant, other: Meant) -> Meant:
        if word == "not":
            return f"not ({one[0]})", lambda row: opposite(one[1](row))
        if word == "and":
            return f"({one[0]}) and ({other[0]})", lambda row: both(one[1](row), other[1](row))
        return f"({one[0]}) or ({other[0]})", lambda row: opposite(both(opposite(one[1](row)), opposite(other[1](row))))

    return st.builds(join, st.sampled_from(["and", "or", "not"]), parts, parts)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, tuple[str, ...], Callable[[Row], Truth]]:
    where, holds = draw(st.recursive(conditions(), joined, max_leaves=6))
    by = tuple(draw(st.lists(st.sampled_from("abc"), max_size=2, unique=True)))
    text = f"select {''.join(name + ', ' for name in by)}count(*) from people where {where}"  # noqa: S608
    return text + (f" group by {', '.join(by)}" if by else ""), by, holds


def answered(query: LinearQuery) -> list[int]:
    return [int(one) for one in query.on_grid(*Rows(SMALL, ROWS).counts(query.reads)).units]


PEOPLE: list[Row] = [{name: VALUES[name][code] for name, code in zip("abc", row, strict=True)} for row in ROWS.tolist()]


@settings(max_examples=150, deadline=None)
@given(texts())
def test_random_sql_counts_as_a_walk_through_the_rows_does(one: tuple[str, tuple[str, ...], Any]) -> None:
    text, by, holds = one
    found = parse_sql(text, SMALL)
    counted = dict.fromkeys([tuple(label) for label in found.labels], 0)
    for row in PEOPLE:
        if holds(row) is True:
            counted[tuple("(missing)" if row[name] is None else str(row[name]) for name in by)] += 1
    assert answered(found.query) == list(counted.values())
    assert found.columns == by
    again = parse_sql(found.text, SMALL)
    assert again == found
    assert again.text == found.text


@pytest.fixture(scope="module")
def database() -> Any:
    duckdb = pytest.importorskip("duckdb")
    held = duckdb.connect()
    held.execute("create table people (a integer, b varchar, c integer)")
    held.executemany("insert into people values (?, ?, ?)", [tuple(row.values()) for row in PEOPLE])
    return held


@settings(max_examples=100, deadline=None)
@given(one=texts())
def test_random_sql_counts_as_a_database_does(database: Any, one: tuple[str, tuple[str, ...], Any]) -> None:
    """All that is read here is SQL and agrees, but for the groups of nobody, which a database leaves out."""
    text, by, _ = one
    found = parse_sql(text, SMALL)
    answers = dict(zip(map(tuple, found.labels), answered(found.query), strict=True))
    theirs = {
        tuple("(missing)" if value is None else str(value) for value in row[:-1]): row[-1]
        for row in database.execute(text).fetchall()
    }
    assert {label: count for label, count in answers.items() if count or not by} == theirs


# -- what is refused


REFUSED = {
    # the text, the first character that cannot stand, and why
    "": (1, "expected select"),
    "select": (7, "expected a column or count(*)"),
    "select count(*) where 1=1; drop table people": (25, "a constant is compared with a column only"),
    "select count(*) where age = 5; drop table people": (32, "there is no DROP here"),
    "select count(*) from people; select count(*)": (30, "expected where, group by, or the end"),
    "select count(*);;": (17, "expected where, group by, or the end"),
    "drop table people": (1, "there is no DROP here"),
    "insert into people values (1)": (1, "there is no INSERT here"),
    "with a as (select 1) select count(*)": (1, "there is no WITH here"),
    "explain select count(*)": (1, "there is no EXPLAIN here"),
    "select count(*) -- all": (17, "comments have no place here"),
    "select/**/count(*)": (7, "comments have no place here"),
    "select count(*) where sex = 'F' --": (33, "comments have no place here"),
    "select count(*) where sex = 'F' # all": (33, "comments have no place here"),
    "select * from people": (8, "expected a column or count(*)"),
    "select 1": (8, "expected a column or count(*)"),
    "select sum(age) from people": (8, "there is no SUM here"),
    "select avg(age)": (8, "there is no AVG here"),
    "select lower(sex), count(*)": (8, "there are no functions but count(*)"),
    "select age(sex), count(*)": (8, "there are no functions but count(*)"),
    "select count(age)": (14, "people are counted, and nothing else"),
    "select count(distinct age)": (14, "there is no DISTINCT here"),
    "select count(*) over ()": (17, "there is no OVER here"),
    "select count(*) filter (where age > 5)": (17, "there is no FILTER here"),
    "select distinct sex from people": (8, "there is no DISTINCT here"),
    "select age, count(*)": (8, "'age' is selected and not grouped by"),
    "select age from people": (8, "select has one count(*), and columns that are grouped by"),
    "select count(*), count(*)": (8, "select has one count(*), and columns that are grouped by"),
    "select sex, sex, count(*) group by sex": (13, "'sex' is selected twice"),
    "select sex as count, count(*) group by sex": (22, "'count' is selected twice"),
    "select count(*) as from people": (20, "expected a name"),
    "select count(*) as 'n'": (20, "expected a name"),
    "select count(*) as [] from people": (20, "a name has 1 to 200 characters"),
    "select count(*) as [a\nb]": (20, "a name has 1 to 200 characters"),
    "select count(*) n": (17, "expected where, group by, or the end"),
    "select count(*) from": (21, "expected the name of the table"),
    "select count(*) from 'people'": (22, "expected the name of the table"),
    "select count(*) from a.b": (23, ". has no place here"),
    "select count(*) from a, b": (23, "expected where, group by, or the end"),
    "select count(*) from a join b": (24, "there is no JOIN here"),
    "select count(*) from people p": (29, "expected where, group by, or the end"),
    "select count(*) from (select count(*))": (22, "expected the name of the table"),
    "select count(*) from people using sample 10%": (29, "there is no USING here"),
    "select count(*) from people tablesample (10)": (29, "there is no TABLESAMPLE here"),
    "select count(*) union select count(*)": (17, "there is no UNION here"),
    "select count(*) where": (22, "expected a comparison such as age >= 40"),
    "select count(*) where age": (26, "expected a comparison after the column"),
    "select count(*) where agee > 4": (23, "did you mean age?"),
    "select count(*) where age > 4 order by age": (31, "there is no ORDER here"),
    "select count(*) where age > 4 limit 3": (31, "there is no LIMIT here"),
    "select count(*) where age > (select 4)": (29, "expected a constant"),
    "select count(*) where age in (select 4)": (31, "expected a constant"),
    "select count(*) where exists (select 4)": (30, "there are no functions"),
    "select count(*) where sex like 'F%'": (27, "there is no LIKE here"),
    "select count(*) where lower(sex) = 'f'": (28, "there are no functions"),
    "select count(*) where age + 1 > 4": (27, "+ has no place here"),
    "select count(*) where age = 5.0": (29, "holds whole numbers"),
    "select count(*) where age = null": (29, "`is null` asks for what is missing"),
    'select count(*) where sex = "F"': (29, "what stands in double ones is a name"),
    "select count(*) where sex is null": (23, "no cell for what is missing"),
    "select count(*) where sex = 'F' and group by sex": (37, "expected a comparison"),
    "select count(*) where (age = 5 group by sex": (32, "expected and, or, or the ) of character 23"),
    "select count(*) group sex": (17, "expected where, group by, or the end"),
    "select count(*) group by": (25, "expected a column"),
    "select count(*) group by 1": (26, "expected a column"),
    "select count(*) group by sex,": (30, "expected a column"),
    "select count(*) group by sex, sex": (31, "'sex' is grouped by twice"),
    "select count(*) group by 'sex'": (26, "expected a column"),
    "select count(*) group by rollup(sex)": (26, "there is no ROLLUP here"),
    "select count(*) group by (sex)": (26, "expected a column"),
    "select count(*) group by sex having count(*) > 3": (30, "there is no HAVING here"),
    "select count(*) group by sex where age > 4": (30, "expected the end: one query at a time"),
    "select count(*) group by group": (26, "expected a column"),
    "select count(*) where age >= 40 \u00a0": (33, "U+00A0 has no place here"),
    "ſelect count(*)": (1, "expected select"),
    "select count(*) where age >= ４０": (30, "４ has no place here"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_all_else_is_refused_at_its_character_with_what_is_allowed(text: str) -> None:
    at, why = REFUSED[text]
    with pytest.raises(InvalidQuery) as caught:
        asked(text)
    said = str(caught.value)
    assert said.startswith(f"the query at character {at}, " if at <= len(text) else "the query at its end: "), said
    assert why in said
    assert "What may be asked: select [columns,] count(*)" in said
    _check_refusal(said)


def test_a_table_has_the_name_of_the_contract_or_none() -> None:
    for text in ("select count(*) from people", 'select count(*) from "People"', "select count(*)"):
        assert parse_sql(text, SCHEMA, "people").query == Counting.where(SCHEMA)
    with pytest.raises(InvalidQuery, match="character 22, 'persons': no table 'persons'; there is 'people'"):
        parse_sql("select count(*) from persons", SCHEMA, "people")


def test_a_name_that_is_a_word_of_sql_stands_in_quotes() -> None:
    found = asked('select "group", count(*) from [from] where [group] = 1 group by [group], `null`')
    assert found.columns == ("group", "null")
    assert found.text == "select [group], count(*) from [from] where group = 1 group by [group], [null]"
    assert asked(found.text) == found


def test_what_is_too_large_is_refused_by_its_size() -> None:
    wide = Schema([Integers(name, 0, 9999) for name in "abc"])
    with pytest.raises(InvalidQuery, match="one query may read"):
        parse_sql("select count(*) where a = 1 group by b, c", wide)
    with pytest.raises(InvalidQuery, match="one query may read"):
        parse_sql("select count(*) where a = 1 or b = 2 or c = 3", wide)
    many = Schema([Categories(f"c{i}", (0,)) for i in range(40)])
    with pytest.raises(InvalidQuery, match="32 columns"):
        parse_sql(f"select count(*) group by {', '.join(many.names)}", many)


LONG = {
    "spaces": "select count(*)" + " " * 99_000,
    "columns": "select " + "sex, " * 19_000 + "count(*)",
    "groups": "select count(*) group by " + "sex, " * 19_000 + "sex",
    "parentheses": "select count(*) where " + "(" * 99_000,
    "nots": "select count(*) where " + "not " * 24_000 + "age = 1",
    "semicolons": "select count(*)" + ";" * 99_000,
    "ors": "select count(*) where " + "age=1 or " * 10_500 + "age=1 group by sex",
    "is": "select count(*) where age " + "is not " * 14_000 + "null",
    "quotes": "select count(*) where sex = '" + "'" * 99_000,
    "a name": "select " + "a" * 99_000,
    "a table": "select count(*) from " + "a" * 99_000,
    "counts": "select " + "count(*), " * 9_000 + "count(*)",
    "groups by": "select count(*) where " + "group by " * 11_000,
    "emoji": "select count(*) where " + "🙂" * 99_000,
}


@pytest.mark.parametrize("what", LONG)
def test_no_text_takes_long(what: str) -> None:
    started = time.process_time()
    try:
        asked(LONG[what])
    except InvalidQuery as refusal:
        _check_refusal(str(refusal))
    assert time.process_time() - started < 2


def test_the_limits_are_those_of_predicates() -> None:
    asked("select count(*) where " + "(" * DEEPEST + "age = 5" + ")" * DEEPEST)
    with pytest.raises(InvalidQuery, match=f"{DEEPEST} deep"):
        asked("select count(*) where " + "(" * (DEEPEST + 1) + "age = 5" + ")" * (DEEPEST + 1))
    asked("select count(*)".ljust(LONGEST))
    with pytest.raises(InvalidQuery, match=f"{LONGEST} characters"):
        asked("select count(*)".ljust(LONGEST + 1))
    with pytest.raises(InvalidQuery, match="a query is a text"):
        parse_sql(b"select count(*)", SCHEMA)  # type: ignore[arg-type]


def test_the_labels_of_many_groups_are_made_one_by_one() -> None:
    started = time.process_time()
    many = Labels([Integers(name, 0, 3000) for name in "ab"])
    assert len(many) == 3001**2
    assert many[3001 * 7 + 5] == ("7", "5")
    assert time.process_time() - started < 1


WORDS = ["select", "count(*)", "count", "(", "*", ")", ",", "from", "people", "where", "group", "by", "group by", "as"]
WORDS += ["age", "sex", "[income>50K]", '"income"', "5", "'F'", "=", "<", "is", "not", "null", "and", "or", "in", ";"]
WORDS += ["union", "--", "/*", "*/", "\0", "\ud800", "\u202e", "'", '"', "`", "[", "true", "between", "1e9", "İ", "K"]


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
    | st.lists(st.sampled_from(WORDS), max_size=12).map(lambda words: "select count(*) where " + " ".join(words))
)
@example("select count(*) where age is not")
@example("select count(*) group by group by")
@example("select count(*) as group by sex")
def test_any_text_is_a_query_or_is_refused(text: str) -> None:
    try:
        found = asked(text)
    except (InvalidQuery, InvalidSchema) as refusal:
        _check_refusal(str(refusal))
    else:
        assert asked(found.text) == found


def _check_refusal(message: str) -> None:
    assert message.endswith("Nothing was spent.")
    assert message.isprintable()
    assert len(message) < 1000
