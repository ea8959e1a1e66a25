"""The four representations: one way to write each value, and exact."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncbench.suites.numbers import (
    FORMS,
    canonical,
    decimal_places,
    joined,
    length,
    parts,
    scientific_parts,
    value,
)

KINDS = ("integer", "float", "fraction", "scientific")


@pytest.mark.parametrize(
    ("text", "representation", "split", "digits", "worth"),
    [
        pytest.param("0", "integer", ("0",), 1, Fraction(0), id="zero"),
        pytest.param("50404", "integer", ("50404",), 5, Fraction(50404), id="integer"),
        pytest.param(
            "93.8", "float", ("93", "8"), 1, Fraction(938, 10), id="a-float-has-the-length-of-its-decimals"
        ),
        pytest.param("12.50", "float", ("12", "50"), 2, Fraction(25, 2), id="zeros-are-kept"),
        pytest.param("0.5", "decimal", ("0", "5"), 1, Fraction(1, 2), id="the-word-of-answer-types"),
        pytest.param("3/8", "fraction", ("3", "8"), 1, Fraction(3, 8), id="fraction"),
        pytest.param("7/120", "fraction", ("7", "120"), 3, Fraction(7, 120), id="the-longest-part-counts"),
        pytest.param(
            "9.731e38", "scientific", ("9", "731", "38"), 3, Fraction(9731 * 10**35), id="scientific"
        ),
        pytest.param("0.0e0", "scientific", ("0", "0", "0"), 1, Fraction(0), id="scientific-zero"),
    ],
)
def test_a_number_has_parts_a_length_and_a_value(text, representation, split, digits, worth):
    assert parts(text, representation) == split
    assert joined(split, representation) == text
    assert length(text, representation) == digits
    assert value(text, representation) == worth


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


def test_a_fraction_with_the_denominator_zero_has_no_value():
    with pytest.raises(ValueError, match="divides by zero"):
        value("3/0", "fraction")


@pytest.mark.parametrize(
    ("worth", "representation", "text"),
    [
        (Fraction(12), "float", "12.0"),
        (Fraction(0), "float", "0.0"),
        (Fraction(1, 8), "float", "0.125"),
        (Fraction(4, 6), "fraction", "2/3"),
        (Fraction(7), "fraction", "7/1"),
        (Fraction(0), "fraction", "0/1"),
        (Fraction(5000), "scientific", "5.0e3"),
        (Fraction(0), "scientific", "0.0e0"),
        (Fraction(50400), "scientific", "5.04e4"),
        (Fraction(10**199), "scientific", "1.0e199"),
    ],
)
def test_there_is_one_way_to_write_a_value(worth, representation, text):
    assert canonical(worth, representation) == text


@pytest.mark.parametrize(
    ("worth", "representation"),
    [(Fraction(1, 3), "float"), (Fraction(1, 2), "integer"), (Fraction(1, 2), "scientific")],
)
def test_a_value_that_a_representation_cannot_hold_is_refused(worth, representation):
    with pytest.raises(ValueError, match=r"never end|not a whole number|below 1"):
        canonical(worth, representation)


@given(st.integers(0, 10**120), st.integers(0, 110))
def test_what_is_written_is_read_back(units, places):
    worth = Fraction(units, 10**places)
    for kind in KINDS:
        fits = kind in ("float", "fraction") or worth.denominator == 1
        if fits:
            text = canonical(worth, kind)
            assert value(text, kind) == worth
            assert canonical(value(text, kind), kind) == text


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_denominator_of_twos_and_fives_has_as_many_decimals_as_the_more_frequent_one(twos, fives):
    assert decimal_places(2**twos * 5**fives) == max(twos, fives)


def test_numbers_below_one_have_no_scientific_form():
    with pytest.raises(ValueError, match="below 1"):
        scientific_parts(5, -1)


def test_every_form_says_how_each_part_is_aligned():
    for form in FORMS.values():
        assert len(form.aligned) == len(form.separators) + 1 == form.written.count("%s")
