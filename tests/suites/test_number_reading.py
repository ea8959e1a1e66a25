"""Numbers are read as people and models write them, exactly, and the same in replies and expected values."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.number_reading import NotOneNumberError, last_number, only_number
from tests.rows import each_row
from tests.suites.number_cases import (
    EXPECTED,
    READ,
    READ_WITH_DECIMAL_COMMA,
    REFUSED,
    WITHOUT_NUMBER,
    documented,
)

SIGNS = "-−–‐‑﹣－"
SEPARATORS = [
    ",",
    "{,}",
    r"\,",
    r"\!",
    r",\!",
    r"\;",
    r"\ ",
    "'",
    "’",
    "_",
    "\u2009",
    "\u202f",
    "\u00a0",
    " ",
]


def exactly(written: str) -> Decimal | Fraction:
    return Fraction(written) if "/" in written else Decimal(written)


@each_row(("text", "number"), [case for cases in READ.values() for case in cases])
def test_a_reply_is_read_as_people_write(text, number):
    assert last_number(text) == (None if number is None else exactly(number))


@pytest.mark.parametrize(("text", "number"), READ_WITH_DECIMAL_COMMA)
def test_a_comma_stands_before_decimals_where_that_is_said(text, number):
    assert last_number(text, ",") == (None if number is None else exactly(number))


@each_row(("text", "number"), EXPECTED)
def test_an_expected_value_is_one_number(text, number):
    assert only_number(text) == exactly(number)


@each_row("text", REFUSED)
def test_an_expected_value_that_is_not_one_number_is_refused(text):
    with pytest.raises(NotOneNumberError):
        only_number(text)


@pytest.mark.parametrize("text", WITHOUT_NUMBER)
def test_an_expected_value_without_a_number_has_none(text):
    assert only_number(text) is None


def test_the_page_shows_what_is_read():
    page = Path(__file__).parents[2] / "docs/howto/own-grader.md"
    assert documented() in page.read_text()


@given(st.integers(), st.sampled_from(SIGNS))
def test_a_sign_is_a_sign_however_it_is_written(number, sign):
    text = f"It is {number}.".replace("-", sign)
    assert last_number(text) == only_number(text) == number


@given(st.integers(0), st.integers(0), st.sampled_from(SIGNS))
def test_between_two_numbers_no_sign_makes_one_negative(first, second, sign):
    assert last_number(f"{first}{sign}{second}") == second


@given(st.integers(), st.sampled_from(SEPARATORS))
def test_digits_in_groups_are_one_number(number, separator):
    text = f"It is {number:,}.".replace(",", separator)
    assert last_number(text) == only_number(text) == number


@given(st.fractions(), st.sampled_from(["{}", "so {}.", "${}$", r"\boxed{{{}}}"]))
def test_any_fraction_is_read_back(number, sentence):
    assert last_number(sentence.format(number)) == number


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_any_decimal_with_a_comma_is_read_back(number):
    assert last_number(f"{number:f}".replace(".", ",") + " ", ",") in (number, number * 1000)


@given(st.text())
def test_an_expected_value_is_read_as_the_same_reply_would_be(text):
    try:
        expected = only_number(text)
    except NotOneNumberError:
        return
    assert expected is None or "####" in text or last_number(text) == expected
