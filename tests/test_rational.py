"""Numbers are read as they were written and rounded to the side that was asked for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.rational import ceil_to, exact, floor_to, shown, sqrt_down, sqrt_up, whole

positive = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


@pytest.mark.parametrize("written", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), "1/10", " 0.1 ", "1e-1", ".1"])
def test_one_tenth_is_one_tenth_however_it_is_written(written: object) -> None:
    assert exact(written, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize(
    "nonsense",
    [
        True,
        None,
        "",
        "1/0",
        "nan",
        float("nan"),
        float("inf"),
        "1e9999",
        "0x10",
        "1_000",
        "١",
        [],
        1j,
        Decimal("NaN"),
        b"1",
    ],
)
def test_what_is_not_a_number_is_refused_by_name(nonsense: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        exact(nonsense, "epsilon")


def test_a_fraction_of_numpys_integers_is_read_as_one_of_pythons() -> None:
    read = exact(Fraction(np.int64(3037000501), np.int64(3037000499)), "epsilon")
    assert type(read.numerator) is type(read.denominator) is int
    assert read**2 / 8 == Fraction(3037000501**2, 8 * 3037000499**2)  # the square does not fit 64 bits


@pytest.mark.parametrize("value", [True, 5.0, "5", None, 11, -1])
def test_a_whole_number_is_strict(value: object) -> None:
    with pytest.raises(InvalidParameter, match="rounds"):
        whole(value, "rounds", 0, 10)


@given(positive)
def test_square_roots_lie_on_their_side_and_close(x: Fraction) -> None:
    below, above = sqrt_down(x), sqrt_up(x)
    assert below * below <= x <= above * above
    assert above - below <= above / 2**47


@given(positive)
def test_roots_of_squares_are_exact(x: Fraction) -> None:
    assert sqrt_up(x * x) == sqrt_down(x * x) == x


@given(st.fractions(), st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_rounding_to_a_grid_stays_within_a_step(x: Fraction, grid: Fraction) -> None:
    assert floor_to(x, grid) <= x <= ceil_to(x, grid)
    assert ceil_to(x, grid) - floor_to(x, grid) in (0, grid)
    assert (floor_to(x, grid) / grid).denominator == 1


@pytest.mark.parametrize(
    ("x", "text"),
    [(Fraction(1, 4), "0.25"), (Fraction(10), "10"), (Fraction(1, 10**9), "1e-9"), (Fraction(10**20), "1e+20")],
)
def test_numbers_are_shown_as_people_write_them(x: Fraction, text: str) -> None:
    assert shown(x).lower().replace("e-09", "e-9") == text
