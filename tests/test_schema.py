"""The universe is public, finite and said once; what cannot be one is refused by name."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from bad_inputs_domain import BAD, NAMED
from hypothesis import given
from hypothesis import strategies as st

from tacit.domain.schema import CELL, CLAMP, DROP, Categories, Column, Integers, Numbers, Schema, column_from, written
from tacit.errors import InvalidInput, InvalidSchema

SCHEMA = Schema(
    [
        Integers("age", -3, 99, missing=CELL, outside=CLAMP),
        Categories("sex", ("F", "M", "X"), missing=CELL, outside=CELL),
        Numbers("income", (0, 1000, 2500.5), outside=CELL),
        Categories("member", (True, False)),
    ]
)


@pytest.mark.parametrize(("name", "make", "error"), BAD, ids=[name for name, _, _ in BAD])
def test_what_nobody_may_ask_is_refused_by_name_and_costs_nothing(
    name: str, make: object, error: type[InvalidInput]
) -> None:
    with pytest.raises(error) as caught:
        make()  # type: ignore[operator]
    message = str(caught.value)
    assert type(caught.value) is error
    assert NAMED[name] in message
    assert re.search(r"Nothing was (spent|drawn)\.$", message)
    assert len(message) < 900
    assert message.isprintable()


def test_at_least_sixty_bad_inputs_are_refused_and_none_is_there_twice() -> None:
    assert len(BAD) >= 60
    assert len({name for name, _, _ in BAD}) == len(BAD) == len(NAMED)


def test_cells_are_the_domain_then_missing_then_outside() -> None:
    sex = SCHEMA["sex"]
    assert sex.labels == ("F", "M", "X", "(missing)", "(outside)")
    assert (sex.size, sex.domain_size, sex.missing_cell, sex.outside_cell) == (5, 3, 3, 4)
    age = SCHEMA["age"]
    assert (age.size, age.missing_cell, age.outside_cell) == (104, 103, None)
    income = SCHEMA["income"]
    assert (income.size, income.missing_cell, income.outside_cell) == (3, None, 2)
    assert SCHEMA["member"].labels == ("True", "False")


@pytest.mark.parametrize("column", SCHEMA.columns, ids=lambda column: column.name)
def test_there_is_a_label_for_every_cell_and_no_two_are_the_same(column: Column) -> None:
    assert len(column.labels) == column.size
    assert len(set(column.labels)) == column.size


def test_a_constant_is_located_strictly_by_its_type() -> None:
    assert [SCHEMA["age"].locate(age) for age in (-3, 0, 99, -4, 100, 10**100)] == [0, 3, 102, None, None, None]
    assert [SCHEMA["member"].locate(value) for value in (True, False)] == [0, 1]
    for column, wrong in (("age", True), ("age", 5.0), ("age", "5"), ("member", 1), ("sex", None), ("income", True)):
        with pytest.raises(InvalidSchema):
            SCHEMA[column].locate(wrong)


def test_numbers_are_half_open_but_for_the_last_cell() -> None:
    places = {-0.1: None, 0: 0, 999.999: 0, 1000: 1, 2500.4: 1, 2500.5: 1, 2500.6: None, float("nan"): None}
    assert {value: SCHEMA["income"].locate(value) for value in places} == places
    assert SCHEMA["income"].domain == ("[0, 1000)", "[1000, 2500.5]")
    assert SCHEMA["income"].locate(-0.0) == 0
    assert SCHEMA["income"].locate(float("inf")) is None


@given(st.lists(st.floats(-(2**53), 2**53), min_size=2, max_size=20, unique=True))
def test_every_edge_begins_its_cell_and_is_told_apart_by_its_label(edges: list[float]) -> None:
    rising = sorted({edge + 0.0 for edge in edges})
    if len(rising) < 2:
        return
    column = Numbers("x", tuple(rising))
    assert [column.locate(edge) for edge in rising] == [*range(len(rising) - 1), len(rising) - 2]
    assert len(set(column.domain)) == column.domain_size
    assert all(float(written(edge)) == edge for edge in rising)
    for cell, (low, high) in enumerate(pairwise(rising)):
        assert column.locate(np.nextafter(high, low)) == cell


def test_a_schema_is_read_back_from_what_it_says_of_itself() -> None:
    again = Schema.of(SCHEMA.describe())
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert again.digest() == SCHEMA.digest()


def test_the_digest_tells_any_two_universes_apart() -> None:
    base = {"name": "a", "low": 0, "high": 9}
    said: list[dict[str, object]] = [
        base,
        base | {"name": "b"},
        base | {"high": 10},
        base | {"missing": CELL},
        base | {"outside": CLAMP},
        {"name": "a", "categories": list(range(10))},
        {"name": "a", "categories": [str(value) for value in range(10)]},
        {"name": "a", "categories": [True, False]},
        {"name": "a", "categories": [1, 0]},
        {"name": "a", "edges": [0, 9]},
        {"name": "a", "edges": [0, 5, 9]},
    ]
    assert len({Schema.of([column]).digest() for column in said}) == len(said)
    both = [base, base | {"name": "b"}]
    assert Schema.of(both).digest() != Schema.of(reversed(both)).digest()
    assert Schema([Numbers("x", (-0.0, 1))]).digest() == Schema([Numbers("x", (0, 1))]).digest()


def test_bounds_of_other_integer_types_are_plain_whole_numbers() -> None:
    column = Integers("age", np.int64(0), np.int32(9))
    assert Schema([column]).digest() == Schema([Integers("age", 0, 9)]).digest()


def test_the_universe_is_counted_exactly_however_large() -> None:
    assert Schema([Integers(f"c{place}", 0, 999) for place in range(30)]).universe == 10**90
    assert SCHEMA.cells(("age", "sex")) == 104 * 5
    assert SCHEMA.cells(()) == 1


def test_a_misspelt_column_is_answered_with_the_nearest() -> None:
    for wrong, meant in (("agee", "age"), ("AGE", "age"), ("incme", "income"), ("Member", "member")):
        with pytest.raises(InvalidSchema, match=f"did you mean {meant}"):
            SCHEMA[wrong]
    with pytest.raises(InvalidSchema, match="the schema has age, sex, income, member"):
        SCHEMA["zzz"]


def test_a_wide_schema_is_not_read_out_in_full() -> None:
    wide = Schema([Integers(f"column {place}", 0, 1) for place in range(5000)])
    with pytest.raises(InvalidSchema) as caught:
        wide["zzz"]
    assert len(str(caught.value)) < 500


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_is_refused(name: str) -> None:
    with suppress(InvalidSchema):
        assert Integers(name, 0, 1).name == name == name.strip()
        assert "\n" not in name
        assert "\0" not in name


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), st.lists, max_leaves=5)
)
def test_whatever_a_contract_says_is_a_column_or_is_refused(value: object) -> None:
    for said in ({"categories": value}, {"low": value, "high": 9}, {"low": 0, "high": value}, {"edges": value}):
        try:
            column = column_from({"name": "a", **said})
        except InvalidSchema:
            continue
        assert column.size == len(column.labels)
        assert column_from(column.describe()) == column


def test_dropped_is_the_default() -> None:
    assert (Integers("a", 0, 1).missing, Integers("a", 0, 1).outside) == (DROP, DROP)
