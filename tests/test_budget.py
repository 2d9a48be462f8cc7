"""Losses and budgets: exact, in one currency, and no budget that is none."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidBudget, InvalidParameter, NoSuchGuarantee
from tacit.privacy.budget import LEAST_DELTA, LEAST_EPSILON, MOST_EPSILON, Budget, Currency, Loss
from tacit.privacy.composition import epsilon_of
from tacit.privacy.conversion import rho_of_pure
from tacit.privacy.divergence import renyi

TENTH = Fraction(1, 10)
RHO = Budget.of(1, "1e-9")

# what is asked, and how the refusal names it
NUMBERLESS = [
    (float("nan"), "'nan'"),
    (float("inf"), "'inf'"),
    (float("-inf"), "'-inf'"),
    ("nan", "'nan'"),
    ("inf", "'inf'"),
    ("Infinity", "'Infinity'"),
    (Decimal("NaN"), "'NaN'"),
    (Decimal("sNaN"), "'sNaN'"),
    (Decimal("-Infinity"), "'-Infinity'"),
    (Decimal("1e-5000"), "'1E-5000'"),
    (Decimal("1e5000"), "'1E+5000'"),
    ("1e-4000", "'1e-4000'"),
    (True, "'True'"),
    (False, "'False'"),
    ("True", "'True'"),
    ("1; drop", "'1; drop'"),
    ("1/0", "'1/0'"),
    ("1_000", "'1_000'"),
    ("1,5", "'1,5'"),
    ("0x10", "'0x10'"),
    ("1 000", "'1 000'"),
    ("--1", "'--1'"),
    ("", "''"),
    ("  ", "'  '"),
    ("\N{ROMAN NUMERAL ONE}", "'\N{ROMAN NUMERAL ONE}'"),
    ("one", "'one'"),
    ("9" * 10_000, "'9999"),
    (None, "'None'"),
    (1 + 0j, "'(1+0j)'"),
    (b"1", "b'1'"),
    ([1], "'[1]'"),
    ((1, 2), "'(1, 2)'"),
    # of numpy's scalars only the one that is a Python float is read; none of the others is
    (np.float32(0.5), "'0.5'"),
    (np.int64(1), "'1'"),
    (np.bool_(True), "'True'"),
    (np.array(1.0), "'1.0'"),
    (np.float64("nan"), "'nan'"),
]
OUT_OF_RANGE = [
    (0, "not 0"),
    (0.0, "not 0"),
    (-0.0, "not 0"),
    ("0", "not 0"),
    (1e-400, "not 0"),  # the float that it reads as
    ("1e-400", "not 1e-400"),
    (Decimal("1e-400"), "not 1e-400"),
    ("1e-12", "not 1e-12"),
    (1e-12, "not 1e-12"),
    ("0.9999999999e-9", "not 9.999999999e-10"),
    ("-1", "not -1"),
    (-0.1, "not -0.1"),
    (Fraction(-1, 3), "not -0.333"),
    (1e308, "not 1e+308"),
    ("1e400", "not 1e+400"),
    (1000.0001, "not 1000.0001"),
    (1001, "not 1001"),
    (10**5000, "not 1e+5000"),
    (Fraction(1, 10**5000), "not 1e-5000"),
]


@pytest.mark.parametrize(
    ("bad", "named"), NUMBERLESS + OUT_OF_RANGE, ids=lambda x: ascii(x)[:12] if isinstance(x, str) else type(x).__name__
)
@pytest.mark.parametrize("delta", [0, "1e-9"])
def test_no_such_epsilon_is_a_budget(bad: object, named: str, delta: object) -> None:
    with pytest.raises(InvalidBudget, match="epsilon") as refusal:
        Budget.of(bad, delta)  # type: ignore[arg-type]
    assert named in str(refusal.value)
    assert "Nothing was spent." in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        *NUMBERLESS,
        (-1, "not -1"),
        ("-1e-9", "not -1e-9"),
        (1, "not 1"),
        (1.0, "not 1"),
        (2, "not 2"),
        ("1e-101", "not 1e-101"),
        ("1e-400", "not 1e-400"),
        (Decimal("1e-400"), "not 1e-400"),
        (5e-324, "not 5e-324"),
        (1e308, "not 1e+308"),
        (1 - Fraction(1, 10**40), "strictly between 0 and 1"),
    ],
    ids=lambda x: ascii(x)[:12] if isinstance(x, str) else type(x).__name__,
)
def test_no_such_delta_is_a_budget(bad: object, named: str) -> None:
    with pytest.raises(InvalidBudget, match="delta") as refusal:
        Budget.of(1, bad)  # type: ignore[arg-type]
    assert named in str(refusal.value)
    assert "Nothing was spent." in str(refusal.value)


def test_a_float_too_small_to_be_one_is_no_delta_and_so_a_pure_budget() -> None:
    """1e-400 as a float is 0, which cannot be told apart; the guarantee that it buys is the stronger one."""
    assert Budget.of(1, 1e-400) == Budget.of(1)


@pytest.mark.parametrize(
    "written", [0.1, "0.1", ".1", " 1e-1 ", "1/10", Decimal("0.1"), TENTH, np.float64(0.1), "0.10"]
)
def test_a_tenth_is_a_tenth_however_it_is_written(written: object) -> None:
    budget = Budget.of(written)  # type: ignore[arg-type]
    assert budget == Budget(TENTH, Currency.EPSILON)
    assert budget.epsilon == TENTH


def test_ten_tenths_make_one() -> None:
    assert sum(Budget.of(0.1).price(Loss.pure(TENTH)) for _ in range(10)) == Budget.of(1).amount
    assert Budget.of(1) / 10 * 10 == Budget.of(1)
    assert sum((RHO / 10).amount for _ in range(10)) == RHO.amount


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 10**9), st.fractions(Fraction(1, 10**6), 1000), st.booleans())
def test_parts_are_exact(parts: int, epsilon: Fraction, pure: bool) -> None:
    budget = Budget.of(epsilon, 0 if pure else "1e-9")
    assert budget / parts * parts == budget
    assert (budget * Fraction(1, 3)).amount * 3 == budget.amount
    assert (budget / parts).currency is budget.currency


@pytest.mark.parametrize("share", [0, -1, float("nan"), float("inf"), True, None, "x", "1e999999"])
def test_no_such_share_of_a_budget(share: object) -> None:
    with pytest.raises(InvalidBudget, match="share of a budget"):
        RHO * share  # type: ignore[operator]


@pytest.mark.parametrize("parts", [0, -1, 2.0, 0.5, True, None, "2", 10**9 + 1, Fraction(2)])
def test_no_such_number_of_parts(parts: object) -> None:
    with pytest.raises(InvalidBudget, match="number of parts"):
        RHO / parts  # type: ignore[operator]


@pytest.mark.parametrize("amount", [1, 0.5, "1", Fraction(0), Fraction(-1), None, float("nan"), True, Decimal(1)])
def test_a_budget_is_an_exact_positive_fraction(amount: object) -> None:
    with pytest.raises(InvalidBudget, match=r"Budget\.of"):
        Budget(amount, Currency.EPSILON)  # type: ignore[arg-type]


@pytest.mark.parametrize("currency", ["epsilon", "rho", None, 1])
def test_a_currency_is_not_a_word(currency: object) -> None:
    """The word "epsilon" must not be taken for rho, in which the same amount would buy more."""
    with pytest.raises(InvalidBudget, match="currency"):
        Budget(Fraction(1), currency)  # type: ignore[arg-type]


def test_the_limits_are_allowed() -> None:
    for epsilon in (LEAST_EPSILON, MOST_EPSILON):
        assert Budget.of(epsilon).amount == epsilon
        for delta in (LEAST_DELTA, Fraction(999, 1000)):
            assert Budget.of(epsilon, delta).amount > 0


def test_a_pure_promise_stays_in_epsilon_and_any_other_becomes_rho() -> None:
    assert Budget.of("0.5").currency is Currency.EPSILON
    assert Budget.of("0.5", 0).amount == Fraction(1, 2)
    assert RHO.currency is Currency.RHO
    assert float(RHO.rho) == pytest.approx(0.01497305767, rel=5e-10)
    assert epsilon_of(RHO.rho, "1e-9") <= 1


def test_what_was_said_at_the_door_is_shown_and_not_compared() -> None:
    assert RHO.stated == (Fraction(1), Fraction(1, 10**9))
    assert str(RHO) == "rho=0.0149730577 (epsilon=1, delta=1e-9)"
    assert str(RHO / 2) == "rho=0.00748652884"
    assert str(Budget.of("0.25")) == "epsilon=0.25"
    assert Budget(RHO.amount, Currency.RHO) == RHO
    assert hash(Budget(RHO.amount, Currency.RHO)) == hash(RHO)
    assert Budget(Fraction(1), Currency.RHO) != Budget(Fraction(1), Currency.EPSILON)


def test_a_pure_block_in_a_rho_budget_costs_what_one_pure_step_would() -> None:
    assert RHO.price(Budget.of("0.1").loss()) == Loss.pure(TENTH).rho == Fraction("0.004995837495788")


def test_a_rho_block_in_a_pure_budget_is_refused() -> None:
    with pytest.raises(NoSuchGuarantee, match=r"no bound in epsilon.*Nothing was drawn"):
        Budget.of(1).price(RHO.loss())


def test_gaussian_noise_from_a_pure_budget_is_refused() -> None:
    with pytest.raises(NoSuchGuarantee, match=r"delta = 0.*Gaussian.*Nothing was drawn"):
        _ = Budget.of(1).rho
    with pytest.raises(NoSuchGuarantee, match="Nothing was drawn"):
        Budget.of(1).price(Loss.concentrated(Fraction(1, 100)))


def test_a_loss_without_any_bound_has_no_price() -> None:
    for budget in (Budget.of(1), RHO):
        with pytest.raises(NoSuchGuarantee):
            budget.price(Loss(None, None))


def test_losses_in_both_currencies() -> None:
    half = Fraction(1, 2)
    assert Loss.pure(half) == Loss(half, Fraction("0.122459331201855"))  # tanh(1/4)/2 = 0.12245933120185456...
    assert Loss.bounded_range(half) == Loss(half, Fraction(1, 32))
    assert Loss.concentrated(half) == Loss(None, half)
    assert str(Loss.pure(half)) == "epsilon=0.5, rho=0.1224593312"
    assert str(Loss.concentrated(half)) == "rho=0.5"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.fractions(Fraction(1, 10**6), 1000), st.integers(1, 90))
def test_one_pure_step_never_costs_more_than_the_budget_that_it_was_made_from(epsilon: Fraction, digits: int) -> None:
    for budget in (Budget.of(epsilon), Budget.of(epsilon, Fraction(1, 10**digits))):
        price = budget.price(Loss.pure(budget.epsilon))
        assert price <= budget.amount
        assert float(price) == pytest.approx(float(budget.amount), rel=1e-12)
        assert budget.price(budget.loss()) == budget.amount


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(2, 40),
    st.integers(1, 99),
    st.sampled_from([Fraction(101, 100), Fraction(2), Fraction(9), Fraction(100)]),
)
def test_a_bounded_range_is_an_eighth_of_its_square_in_rho(tilt: int, percent: int, alpha: Fraction) -> None:
    """Two laws whose log-ratios are t and t - eps (Cesar & Rogers 2021): p = e^t q here, p = e^(t-eps) q there."""
    ratio = Fraction(tilt, 4) + Fraction(6, 10)  # e^eps
    q = Fraction(percent, 100)
    up = ratio / (q * ratio + 1 - q)  # e^t, so that p sums to 1
    p = [q * up, (1 - q) * up / ratio]
    epsilon = log(ratio)
    assert renyi(p, [q, 1 - q], alpha) <= float(alpha) * epsilon**2 / 8 * (1 + 1e-12)


def test_an_eighth_is_sharp_and_a_ninth_is_false() -> None:
    epsilon = Fraction("0.1")
    half = [Fraction(1, 2)] * 2
    above = float(np.exp(0.1))
    worst = renyi(half, [1 / (1 + above), above / (1 + above)], "1.001")
    assert Loss.bounded_range(Fraction(9)) == Loss.pure(Fraction(9))  # which is less than 9^2/8
    assert 1.001 * float(epsilon) ** 2 / 9 < worst <= 1.001 * float(Loss.bounded_range(epsilon).rho or 0)


@pytest.mark.parametrize("epsilon", ["1e-8", "1", "7.9", "7.99", "7.999", "8", "8.01", "100"])
def test_a_step_of_bounded_range_never_costs_more_than_any_pure_step(epsilon: str) -> None:
    ours, any_step = Loss.bounded_range(Fraction(epsilon)), Loss.pure(Fraction(epsilon))
    assert ours.rho is not None
    assert any_step.rho is not None
    assert ours.rho <= any_step.rho
    assert ours.rho <= Fraction(epsilon) ** 2 / 8


def test_a_budget_or_a_loss_of_numpys_integers_is_one_of_pythons() -> None:
    amount = Fraction(np.int64(3037000501), np.int64(3037000499))  # type: ignore[call-overload]
    assert type(Budget(amount, Currency.RHO).amount.numerator) is int
    rho_of_pure.cache_clear()
    for loss in (Loss.pure, Loss.bounded_range):
        assert loss(amount) == loss(Fraction(3037000501, 3037000499))
    assert Loss.pure(Fraction(3037000501, 3037000499)).rho == rho_of_pure.__wrapped__(Fraction(3037000501, 3037000499))


@pytest.mark.parametrize("amount", ["1e-9", "0.01497305767", "1/3", "2", "7.98", "7.99", "7.9999", "8", "20", "60"])
def test_a_budget_in_rho_pays_for_its_step_of_bounded_range_and_not_for_a_larger_one(amount: str) -> None:
    budget = Budget(Fraction(amount), Currency.RHO)
    epsilon = budget.bounded_range
    assert budget.price(Loss.bounded_range(epsilon)) <= budget.amount
    assert budget.price(Loss.bounded_range(epsilon * (1 + Fraction(1, 10**12)))) > budget.amount
    assert Budget(Fraction(3), Currency.EPSILON).bounded_range == 3


@pytest.mark.parametrize("epsilon", [-Fraction(1, 10), 2.0**-30, 60, np.float64(0.5)])
def test_what_is_no_exact_fraction_or_is_negative_has_no_price(epsilon: Fraction) -> None:
    """Its square would be a price in rho; and what is kept for a float must not be found for the fraction it equals."""
    for _ in range(2):
        with pytest.raises(InvalidParameter, match="exact fraction"):
            rho_of_pure(epsilon)
        assert type(Loss.pure(abs(Fraction(epsilon))).rho) is Fraction
    if epsilon < 0:
        with pytest.raises(InvalidParameter, match="exact fraction"):
            Loss.pure(epsilon)
