"""Oracle is right, noisy errs like a model, and both by (seed, model, question) alone."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import assume, given, strategies as st

from asyncbench.simulator.answers import answerer, carried_out, mistaken, noisy, oracle
from asyncbench.simulator.questions import KnownAnswer
from asyncbench.suites.numbers import DIGIT_FORMS, plain, rewritten
from asyncbench.suites.nupa.execution import AskedRule, first_wrong_line

seeds = st.integers().map(random.Random)
numbers = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(lambda number: f"{number:f}"),
    st.builds("{}/{}".format, st.integers(), st.integers(min_value=1)),
    st.builds("{}.{}e{}".format, st.integers(1, 9), st.integers(0, 10**6), st.integers(-99, 99)),
)


def answers(model, *, length, count=2000):
    return [model(KnownAnswer("123456789", length), f"seed {n}") for n in range(count)]


@given(st.text(), st.text())
def test_oracle_answers_what_is_expected(expected, seed):
    assert oracle(KnownAnswer(expected, 1), seed) == expected


@given(numbers, seeds)
def test_a_mistaken_number_is_a_number_of_another_value(expected, draw):
    assert Fraction(mistaken(expected, draw)) != Fraction(expected)


@given(st.text(), seeds)
def test_a_mistaken_text_is_another_text_even_without_its_case(expected, draw):
    assert mistaken(expected, draw).lower() != expected.lower()


@given(st.integers(10, 10**30).map(str), seeds)
def test_a_mistaken_number_looks_like_the_right_one(expected, draw):
    wrong = mistaken(expected, draw)
    assume(len(wrong) == len(expected))
    assert 1 <= sum(a != b for a, b in zip(wrong, expected, strict=True)) <= 2


@given(numbers, seeds, st.sampled_from(DIGIT_FORMS))
def test_a_mistake_is_still_one_when_its_answer_is_written_in_another_form(expected, draw, form):
    written = rewritten(mistaken(expected, draw), (form,))
    assert Fraction(plain(written, (form,))) != Fraction(expected)


def test_a_rule_is_carried_out_before_a_right_answer_and_with_one_wrong_value_before_a_wrong_one():
    asked = AskedRule("add", "integer", ("12345", "678"))
    right, wrong = (
        carried_out(asked, answer, "13023", random.Random(7), None) for answer in ("13023", "13024")
    )

    assert first_wrong_line(right, *asked) is None
    assert right.endswith("\nSo the answer is 13023.")
    assert first_wrong_line(wrong, *asked) is not None
    assert wrong.endswith("\nSo the answer is 13024.")


def test_all_ways_of_getting_a_number_wrong_occur():
    wrong = {mistaken("1357", random.Random(n)) for n in range(500)}

    assert {"157", "3157", "1347", "1857"} <= wrong  # dropped, swapped, carry lost, changed


def test_errors_grow_with_length():
    right = [
        sum("123456789" in answer for answer in answers(noisy, length=length)) for length in (0, 10, 30, 90)
    ]

    assert right[0] == 2000
    assert right == sorted(right, reverse=True)
    assert len(set(right)) == 4


def test_a_right_answer_is_sometimes_a_sentence_and_a_wrong_one_rarely_empty():
    counts = Counter(answers(noisy, length=30))

    assert 0 < counts["The answer is 123456789."] < counts["123456789"]
    assert 0 < counts[""] < 50


@pytest.mark.parametrize("name", ["noisy", "noisy-2", "noisy-a.b_c", "oracle"])
def test_a_suffix_names_another_model_of_the_family(name):
    assert answerer(name) in (noisy, oracle)


@pytest.mark.parametrize("name", ["", "gpt-5", "noisy-", "noisy2", "Noisy", "-noisy"])
def test_there_is_no_other_model(name):
    assert answerer(name) is None
