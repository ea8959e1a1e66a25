"""integer_addition: what is asked, and which replies Python's int() reads the sum in."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial

import pytest
from hypothesis import given, strategies as st

from asyncbench.records import Grade, Outcome, Reply
from asyncbench.suites.integer_addition import grade, read_int
from tests.rows import each_row
from tests.suites.made import drafts_of, problem

drafts = partial(drafts_of, "integer_addition")


def graded(text: str | None, expected: str = "5") -> Grade:
    asked = problem("integer_addition", expected, kind="integer")
    (one,) = grade(asked, None if text is None else Reply(text=text))
    return one


def test_the_question_is_one_line_with_both_numbers_quoted():
    draft = drafts()[0]

    left, right = draft.operands
    assert draft.question == (
        "Provide the sum of the two numbers. Don't output anything else. Only output the sum of the two "
        "numbers without anything additional. Only output the final number, no calculation, no explanation, "
        f'just the final number without any text.: "{left}" "{right}"'
    )


def test_the_expected_answer_is_the_exact_sum():
    assert all(int(draft.expected) == sum(map(int, draft.operands)) for draft in drafts(tries=500))


def test_numbers_are_asked_without_leading_zeros():
    assert all(operand == str(int(operand)) for draft in drafts(tries=500) for operand in draft.operands)


def test_lengths_are_drawn_evenly_and_kept():
    made = drafts(tries=14_500)

    lengths = [length for draft in made for length in json.loads(draft.extra)["drawn_lengths"]]
    assert set(lengths) == set(range(2, 31))
    assert all(800 < count < 1200 for count in Counter(lengths).values())
    assert [draft.length for draft in made] == [
        max(json.loads(draft.extra)["drawn_lengths"]) for draft in made
    ]


def test_one_number_in_ten_is_shorter_than_it_was_drawn():
    pairs = [
        (length, len(operand))
        for draft in drafts(tries=5000)
        for length, operand in zip(json.loads(draft.extra)["drawn_lengths"], draft.operands, strict=True)
    ]

    assert all(written <= drawn for drawn, written in pairs)
    assert 0.08 < sum(written < drawn for drawn, written in pairs) / len(pairs) < 0.12


def test_zero_is_possible():
    assert any("0" in draft.operands for draft in drafts(tries=200, min_digits=1, max_digits=1))


def test_the_preset_draws_as_the_original_program_does():
    lengths = {
        length
        for draft in drafts(tries=2000, preset="upstream-code")
        for length in json.loads(draft.extra)["drawn_lengths"]
    }

    assert lengths == set(range(3, 31))


ACCEPTED = {
    "digits": ("5", "5"),
    "plus": ("+5", "5"),
    "minus": ("-5", "-5"),
    "minus zero": ("-0", "0"),
    "leading zeros": ("00012", "12"),
    "single underscores": ("1_000", "1000"),
    "newline and tab": ("\t5\r\n", "5"),
    "no-break space": ("\u00a05", "5"),
    "em space": ("5\u2003", "5"),
    "line separator": ("5\u2028", "5"),
    "next line": ("\u00855", "5"),
    "file separator": ("5\u001c", "5"),
    "arabic-indic": ("٥", "5"),
    "full-width": ("１２", "12"),
    "devanagari": ("५", "5"),
    "mathematical": ("𝟝", "5"),
    "mixed digits": ("٣4", "34"),
    "mixed with an underscore": ("1_٣", "13"),
    "4,300 digits": ("9" * 4300, "9" * 4300),
    "4,300 digits and underscores": ("1_" * 4299 + "1", "1" * 4300),
}
REJECTED = {
    "a dot": "5.",
    "a fraction": "5.0",
    "an exponent": "1e3",
    "hexadecimal": "0x10",
    "binary": "0b1",
    "two underscores": "1__0",
    "a leading underscore": "_1",
    "a trailing underscore": "1_",
    "an underscore after the sign": "+_1",
    "zero-width space": "5\u200b",
    "byte order mark": "\ufeff5",
    "mongolian separator": "\u180e5",
    "a null character": "5\x00",
    "superscript": "²",
    "a vulgar fraction": "½",
    "a numeral": "五",
    "commas": "1,000",
    "a space inside": "1 000",
    "a space after the sign": "- 5",
    "minus sign U+2212": "−5",
    "quotes": '"5"',
    "money": "$5",
    "two numbers": "5 6",
    "a lone sign": "+",
    "two signs": "--5",
    "a word": "five",
    "shown work": "2 + 3 = 5",
    "a sentence": "The sum is 5",
    "4,301 digits": "9" * 4301,
    "4,301 zeros": "0" * 4301,
}


@pytest.mark.parametrize(("text", "value"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(text, value):
    assert str(read_int(text)) == value
    assert read_int(text) == int(text.strip())


@each_row("text", REJECTED.values())
def test_rejected(text):
    assert read_int(text) is None
    with pytest.raises(ValueError, match="int"):
        int(text.strip())


@given(st.text(alphabet="+-_019٣𝟝² \n\u00a0\u2003\u200b.,e", max_size=12) | st.text(max_size=4))
def test_whatever_the_text_it_is_read_as_python_reads_it(text):
    try:
        value: int | None = int(text.strip())
    except ValueError:
        value = None

    assert read_int(text) == value


@pytest.mark.parametrize("setting", ["640", "0"])
def test_the_limit_of_4300_digits_is_not_the_interpreters(setting):
    lines = """
from asyncbench.suites.integer_addition import read_int
assert read_int("7" * 4300) is not None
assert read_int("7" * 4301) is None
"""
    environment = os.environ | {"PYTHONINTMAXSTRDIGITS": setting}

    subprocess.run([sys.executable, "-"], input=lines, text=True, env=environment, check=True)


@pytest.mark.parametrize(
    ("text", "classification", "reason", "outcome"),
    [
        pytest.param("5", "success", None, Outcome.CORRECT, id="the-sum"),
        pytest.param(" +005\n", "success", None, Outcome.CORRECT, id="the-sum-to-python"),
        pytest.param("6", "fail", "wrong", Outcome.WRONG, id="another-number"),
        pytest.param("-5", "fail", "wrong", Outcome.WRONG, id="another-sign"),
        pytest.param("5.0", "fail", "not_a_number", Outcome.NO_ANSWER, id="not-an-integer"),
        pytest.param("<think>2+3</think>5", "success", None, Outcome.CORRECT, id="thinking-aloud"),
        pytest.param(" \n", "fail", "empty", Outcome.NO_ANSWER, id="empty"),
        pytest.param(None, "fail", "error", Outcome.FAILED, id="no-reply"),
    ],
)
def test_the_published_word_is_kept_and_the_reason_beside_it(text, classification, reason, outcome):
    one = graded(text)

    assert (one.grader, one.classification, one.reason, one.outcome) == (
        "int",
        classification,
        reason,
        outcome,
    )


@pytest.mark.parametrize(
    ("text", "format_ok"),
    [
        *((text, True) for text in ("5", "5\n", "0")),
        *((text, False) for text in ("05", "+5", "٥", "5_0", "x")),
    ],
)
def test_the_form_asked_for_is_ascii_digits_without_leading_zeros(text, format_ok):
    assert graded(text).format_ok is format_ok


@pytest.mark.parametrize(
    ("text", "expected", "right", "length_error", "abs_error"),
    [
        pytest.param("1234", "1234", 4, 0, None, id="all"),
        pytest.param("1294", "1234", 3, 0, "60", id="one-off"),
        pytest.param("234", "1234", 3, 1, "1000", id="the-first-is-missing"),
        pytest.param("1123", "123", 3, 1, "1000", id="one-too-many"),
        pytest.param("124", "1234", 1, 1, "1110", id="one-left-out"),
        pytest.param("none", "1234", 0, 4, None, id="no-number"),
    ],
)
def test_digits_are_compared_from_the_last_one_on(text, expected, right, length_error, abs_error):
    one = graded(text, expected)

    assert (one.digits_right, one.digits_total) == (right, len(expected))
    assert (one.length_error, one.abs_error) == (length_error, abs_error)


def test_nothing_is_measured_without_a_reply():
    one = graded(None)

    assert (one.digits_right, one.digits_total, one.length_error, one.format_ok) == (None,) * 4


@given(st.integers(min_value=0, max_value=10**31))
def test_the_sum_succeeds_and_its_neighbour_fails(n):
    assert graded(str(n), str(n)).exact_match
    assert (graded(str(n + 1), str(n)).reason, graded(str(n + 1), str(n)).abs_error) == ("wrong", "1")


@pytest.mark.parametrize(
    "text", ["7" * 1_000_000 + "x", "1_" * 500_000, "_" * 1_000_000, " " * 1_000_000, "٣" * 1_000_000]
)
def test_no_reply_takes_long(text):
    assert graded(text).classification == "fail"
