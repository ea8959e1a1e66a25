"""The four representations: one way to write each value, and exact."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.numbers import (
    FORMS,
    decimal_places,
    float_parts,
    fraction_parts,
    integer_parts,
    length_of,
    parts,
    scientific_parts,
)
from tests.suites.nupa.arithmetic import written


@pytest.mark.parametrize(
    ("text", "representation", "split", "digits"),
    [
        pytest.param("0", "integer", ("0",), 1, id="zero"),
        pytest.param("50404", "integer", ("50404",), 5, id="integer"),
        pytest.param("93.8", "float", ("93", "8"), 1, id="a-float-has-the-length-of-its-decimals"),
        pytest.param("12.50", "float", ("12", "50"), 2, id="zeros-are-kept"),
        pytest.param("0.5", "decimal", ("0", "5"), 1, id="the-word-of-answer-types"),
        pytest.param("3/8", "fraction", ("3", "8"), 1, id="fraction"),
        pytest.param("7/120", "fraction", ("7", "120"), 3, id="the-longest-part-counts"),
        pytest.param("9.731e38", "scientific", ("9", "731", "38"), 3, id="scientific"),
        pytest.param("0.0e0", "scientific", ("0", "0", "0"), 1, id="scientific-zero"),
    ],
)
def test_a_number_has_parts_and_a_length(text, representation, split, digits):
    assert parts(text, representation) == split
    assert FORMS[representation].written % split == text
    assert length_of(split, representation) == digits


@pytest.mark.parametrize(
    ("text", "representation"),
    [
        ("", "integer"),
        ("-5", "integer"),
        ("1,000", "integer"),
        ("5 ", "integer"),
        ("5\n", "integer"),
        ("5", "float"),
        (".5", "float"),
        ("1/", "fraction"),
        ("1.5", "scientific"),
        ("1.5e-5", "scientific"),
        ("1.5E5", "scientific"),
        ("5e3", "scientific"),
    ],
)
def test_a_text_of_another_form_is_refused_by_name(text, representation):
    with pytest.raises(ValueError, match=f"is not written as {representation}"):
        parts(text, representation)


@pytest.mark.parametrize(
    ("number", "representation", "text"),
    [
        (float_parts(12, 0), "float", "12.0"),
        (float_parts(0, 0), "float", "0.0"),
        (float_parts(125, 3), "float", "0.125"),
        (fraction_parts(4, 6), "fraction", "2/3"),
        (fraction_parts(7, 1), "fraction", "7/1"),
        (fraction_parts(0, 3), "fraction", "0/1"),
        (scientific_parts(5000, 0), "scientific", "5.0e3"),
        (scientific_parts(0, 7), "scientific", "0.0e0"),
        (scientific_parts(504, 2), "scientific", "5.04e4"),
        (scientific_parts(1, 199), "scientific", "1.0e199"),
    ],
)
def test_there_is_one_way_to_write_a_value(number, representation, text):
    assert FORMS[representation].written % number == text


def test_decimals_that_never_end_are_refused():
    with pytest.raises(ValueError, match="never end"):
        decimal_places(3)


@given(st.integers(0, 10**120), st.integers(0, 110))
def test_numbers_are_written_as_python_has_them(units, places):
    for number, kind, worth in (
        (integer_parts(units), "integer", Fraction(units)),
        (float_parts(units, places), "float", Fraction(units, 10**places)),
        (fraction_parts(units, 10**places), "fraction", Fraction(units, 10**places)),
        (scientific_parts(units, places), "scientific", Fraction(units) * 10**places),
    ):
        text = FORMS[kind].written % number
        assert text == written(worth, kind)
        assert parts(text, kind) == number


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_denominator_of_twos_and_fives_has_as_many_decimals_as_the_more_frequent_one(twos, fives):
    assert decimal_places(2**twos * 5**fives) == max(twos, fives)


def test_numbers_below_one_have_no_scientific_form():
    with pytest.raises(ValueError, match="below 1"):
        scientific_parts(5, -1)


def test_every_form_says_how_each_part_is_aligned():
    for form in FORMS.values():
        assert len(form.aligned) == len(form.separators) + 1 == form.written.count("%s")
