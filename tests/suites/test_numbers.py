"""Exact numbers: at any length, under any setting."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.numbers import EXACT, MAX_DIGITS, carries, exact, fixed


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        pytest.param(-7251, 2, "-72.51", id="negative"),
        pytest.param(1200, 2, "12.00", id="zeros-are-kept"),
        pytest.param(-5, 2, "-0.05", id="below-one"),
        pytest.param(0, 2, "0.00", id="zero"),
        pytest.param(7, 0, "7", id="whole"),
        pytest.param(10**40, 4, "1" + "0" * 36 + ".0000", id="beyond-28-digits"),
    ],
)
def test_a_count_of_hundredths_is_written_with_two_decimals(value, places, text):
    assert fixed(value, places) == text


@given(st.integers(), st.integers(min_value=0, max_value=6))
def test_fixed_text_is_the_exact_quotient(value, places):
    assert EXACT.multiply(Decimal(fixed(value, places)), Decimal(10) ** places) == value


@pytest.mark.parametrize("text", ["1e9999999999999999999", "1e-9999999999999999999", "0e9999999999999999999"])
def test_an_exponent_beyond_the_limits_is_no_number(text):
    assert exact(text) is None


def test_exact_sums_have_room_for_the_longest_numbers():
    longest = Decimal("9" * MAX_DIGITS)

    assert str(EXACT.subtract(longest, Decimal("-0.0001"))) == "9" * MAX_DIGITS + ".0001"


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        pytest.param("5", "4", 0, id="none"),
        pytest.param("18", "27", 1, id="one"),
        pytest.param("999", "1", 3, id="handed-on-through-nines"),
        pytest.param("1", "999", 3, id="whichever-is-longer"),
        pytest.param("55", "55", 2, id="the-last-one-makes-a-new-digit"),
        pytest.param("0", "0", 0, id="zeros"),
        pytest.param("9" * MAX_DIGITS, "1", MAX_DIGITS, id="longer-than-python-converts"),
    ],
)
def test_carries_are_counted_as_when_adding_by_hand(left, right, found):
    assert carries((left, right)) == found


@given(st.integers(0, 10**40), st.integers(0, 10**40))
def test_a_place_carries_when_what_stands_below_it_no_longer_fits(left, right):
    fits = [left % 10**place + right % 10**place < 10**place for place in range(1, 42)]

    assert carries((str(left), str(right))) == fits.count(False)


@pytest.mark.parametrize(
    "operands",
    [
        pytest.param(("-5", "5"), id="negative"),
        pytest.param(("0.5", "5"), id="not-whole"),
        pytest.param(("5",), id="one"),
        pytest.param(("5", "5", "5"), id="three"),
    ],
)
def test_carries_are_those_of_two_whole_numbers(operands):
    with pytest.raises(ValueError, match=r"invalid literal|unpack"):
        carries(operands)
