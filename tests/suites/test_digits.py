"""Numbers in other forms: exact there and back."""

from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.numbers import DIGIT_FORMS, EXCLUSIVE, plain, rewritten

COMBINED = [
    forms
    for count in range(1, len(DIGIT_FORMS) + 1)
    for forms in combinations(DIGIT_FORMS, count)
    if all(len(alone.intersection(forms)) < 2 for alone in EXCLUSIVE)
]

WHOLE = st.integers(min_value=0, max_value=10**120).map(str)
DECIMALS = st.from_regex(r"[0-9]{1,60}", fullmatch=True)
SIGN = st.sampled_from(["", "-", "+"])
NUMBERS = st.one_of(
    WHOLE,
    st.builds("{}.{}".format, WHOLE, DECIMALS),
    st.builds("{}/{}".format, WHOLE, WHOLE),
    st.builds("{}.{}e{}{}".format, WHOLE, DECIMALS, SIGN, WHOLE),
    st.builds("{}e{}{}".format, WHOLE, SIGN, WHOLE),
)


@given(SIGN, NUMBERS, st.sampled_from(COMBINED))
def test_every_number_comes_back_as_it_was(sign, number, digits):
    text = sign + number
    assert plain(rewritten(text, digits), digits) == text


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from(COMBINED))
def test_so_do_several_in_a_sentence_even_where_one_is_padded_for_another(numbers, digits):
    text = f"So {' + -'.join(numbers)} is it."
    assert plain(rewritten(text, digits), digits) == text


@given(st.lists(WHOLE, min_size=2, max_size=5))
def test_padded_whole_numbers_are_all_of_one_length(numbers):
    padded = rewritten(" + ".join(numbers), ("zero_padded",)).split(" + ")
    assert {len(number) for number in padded} == {max(map(len, numbers))}
    assert [*map(int, padded)] == [*map(int, numbers)]


@pytest.mark.parametrize(
    ("digits", "shown"),
    [
        (("reversed",), "-5021.52 + 7 = 7/21"),
        (("reversed_int",), "-5021.25 + 7 = 7/21"),
        (("reversed_dec",), "-1205.52 + 7 = 7/12"),
        (("reversed_total",), "-52.5021 + 7 = 7/21"),
        (("zero_padded", "reversed_total"), "-52.5021 + 7000 = 7000/2100"),
        (("zero_padded",), "-1205.25 + 0007 = 0007/0012"),
        (("spaced",), "-1 2 0 5.2 5 + 7 = 7/1 2"),
        (("grouped",), "-1,205.25 + 7 = 7/12"),
        (("indexed",), "-d1c2b0a5.a2b5 + a7 = a7/b1a2"),
        (("zero_padded", "reversed"), "-5021.52 + 7000 = 7000/2100"),
        (("reversed", "spaced"), "-5 0 2 1.5 2 + 7 = 7/2 1"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_each_form_as_it_is_documented(digits, shown):
    assert rewritten("-1205.25 + 7 = 7/12", digits) == shown


def test_the_exponent_is_a_number_of_its_own_and_its_e_stays():
    assert rewritten("1.25e+10", ("indexed",)) == "a1.a2b5e+b1a0"
    assert rewritten("1.25e10", ("indexed",)) == "a1.a2b5eb1a0"
    assert rewritten("1.25e10", ("zero_padded",), ["1.25e10"]) == "1.25e10"


def test_only_operands_are_rewritten_where_they_are_known():
    text = "Answer like 123 . 45 + 451 ="
    assert rewritten(text, ("reversed",), ["45", "-451"]) == "Answer like 123 . 54 + 154 ="
    assert rewritten(text, ("reversed",), ["99"]) == "Answer like 321 . 54 + 154 ="


def test_commas_that_group_are_a_part_of_a_number_and_digits_of_a_word_are_none():
    assert rewritten("Pay $1,234 for H2O and CO12.", ("reversed",)) == "Pay $4321 for H2O and CO12."


def test_without_a_form_nothing_changes():
    assert rewritten("1,234 and 007", ()) == plain("1,234 and 007", ()) == "1,234 and 007"


@pytest.mark.parametrize(
    ("digits", "reply", "read"),
    [
        pytest.param(("spaced",), "In 2 steps: 1 2 8 7.", "In 2 steps: 1287.", id="spaced"),
        pytest.param(("indexed",), "It is c1b2a8, **c1b2a8**", "It is 128, **128**", id="index"),
        pytest.param(("indexed",), "see table b", "see table b", id="a letter alone"),
        pytest.param(("zero_padded",), "0001287 of 1.050", "1287 of 1.050", id="padding"),
        pytest.param(("grouped",), "1,287 or 12,87", "1287 or 12,87", id="groups"),
    ],
)
def test_replies_are_read_in_the_form(digits, reply, read):
    assert plain(reply, digits) == read


@pytest.mark.long
@pytest.mark.parametrize("digits", [(form,) for form in DIGIT_FORMS])
@pytest.mark.parametrize("hostile", ["1 " * 200_000, "a" * 400_000, "1," * 200_000, "1," + "234," * 99_999])
def test_no_reply_takes_long_to_read(digits, hostile):
    plain(hostile, digits)
