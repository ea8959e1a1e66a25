"""custom: four graders for problem sets of one's own, and what they refuse before a run."""

import json

import pytest
from hypothesis import given, strategies as st

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Grade, Outcome, Reply
from asyncbench.suites.choice_reading import last_letter
from asyncbench.suites.custom import (
    CUSTOM_GRADERS,
    SUITE,
    check_custom,
    check_expected,
    grade,
)
from asyncbench.suites.number_reading import last_number
from tests.rows import each_row
from tests.suites.made import problem
from tests.tiers import first_rows

ENDLESS = r"((?:a|aa|aaa)+)+$"


def graded(text: str | None, expected: str, grader: str, pattern: str | None = None) -> Grade:
    asked = problem("custom", expected, extra=json.dumps({"grader": grader, "pattern": pattern}))
    (one,) = grade(asked, None if text is None else Reply(text=text))
    return one


def test_a_custom_set_is_given_not_generated():
    assert SUITE.generate is None
    assert SUITE.graders == ("exact", "number", "choice", "regex", "text", "contains", "json", "math", "any")


NUMBERS = {
    "the last": ("first 3, then 4", "4"),
    "whatever its writing": ("5.0", "5"),
    "an exponent": ("5e-1", "0.5"),
    "an exponent with a minus sign": ("5e−1", "0.5"),
    "a leading dot": (".5", "0.5"),
    "a sentence's dot": ("It is 5.", "5"),
    "thousands": ("1,234,567.5", "1234567.5"),
    "a list": ("1, 2, 3", "3"),
    "a list without spaces": ("1,2,3", "3"),
    "no thousands": ("1,2345", "1.2345"),
    "nor after four digits": ("1234,567", "1234.567"),
    "money": ("$1,234.50", "1234.5"),
    "money owed": ("-$5", "-5"),
    "money owed, the other way": ("$-5", "-5"),
    "percent": ("50%", "50"),
    "minus": ("x = -5", "-5"),
    "minus sign U+2212": ("−5", "-5"),
    "plus": ("+5", "5"),
    "a difference": ("7-3", "3"),
    "a difference of brackets": ("(7)-3", "3"),
    "a date": ("2024-05-06", "6"),
    "a hyphen": ("gpt-4", "4"),
    "a bullet": ("- 5", "5"),
    "boxed": (r"\boxed{-5}", "-5"),
    "bold": ("**5**", "5"),
    "a version": ("1.2.3", "3"),
    "beyond 28 digits": ("9" * 40, "9" * 40),
    "beyond any float": ("1e400", "1" + "0" * 400),
}


@each_row(("text", "number"), NUMBERS.values())
def test_number_reads_the_last_number_of_the_reply_exactly(text, number):
    assert graded(text, number, "number").classification == "correct"


@pytest.mark.parametrize("text", ["", "five", "1e9999999999999999999", ".", "²"])
def test_there_may_be_no_number(text):
    assert last_number(text) is None


@given(
    st.decimals(allow_nan=False, allow_infinity=False), st.sampled_from(["{}", "so: {}.", "**{}**", "= ${}$"])
)
def test_any_number_is_read_back(number, sentence):
    assert last_number(sentence.format(number)) == number


@given(st.integers())
def test_a_neighbouring_number_is_wrong(n):
    assert graded(f"{n + 1:,}", str(n), "number").outcome is Outcome.WRONG


def test_number_never_rounds():
    assert graded("0.30000000000000004", "0.3", "number").outcome is Outcome.WRONG


LETTERS = {
    "alone": ("B", "B"),
    "small": ("b", "B"),
    "in brackets": ("(C)", "C"),
    "in quotes": ("'C'", "C"),
    "bold": ("**D**.", "D"),
    "boxed": (r"\boxed{\text{B}}", "B"),
    "the last": ("A or B? B, not C: no, D", "D"),
    "not a part of a word": ("B is DNA", "B"),
    "not a part of I'm": ("B, I'm sure", "B"),
    "not a part of don't": ("b: i don't know", "I"),
    "not the pronoun": ("B. I hope this helps", "B"),
    "not the article beside a capital": ("B, a safe guess", "B"),
    "the option I": ("The answer is I.", "I"),
    "beside an underscore": ("option_B", "B"),
    "beside another alphabet": ("ответB", None),
    "in a number": ("4B", None),
    "nothing": ("none of them", None),
}


@pytest.mark.parametrize(("text", "letter"), LETTERS.values(), ids=LETTERS)
def test_choice_reads_the_last_letter_that_stands_alone(text, letter):
    assert last_letter(text) == letter


@pytest.mark.parametrize("expected", ["B", "b", "(B)", "B."])
def test_a_choice_is_right_in_either_case(expected):
    assert graded("the answer is B", expected, "choice").exact_match
    assert not graded("the answer is C", expected, "choice").exact_match


@pytest.mark.parametrize(
    ("text", "classification"),
    [("Paris", "correct"), (" Paris\n", "correct"), ("paris", "wrong"), ("Paris.", "wrong"), ("  ", "none")],
)
def test_exact_is_equal_after_trimming(text, classification):
    assert graded(text, "Paris ", "exact").classification == classification


@pytest.mark.parametrize(
    ("text", "classification", "answer"),
    [
        pytest.param("#### 42 \n#### 43", "correct", "42", id="the-first-match"),
        pytest.param("#### 43", "wrong", "43", id="another"),
        pytest.param("42", "none", None, id="no-match"),
        pytest.param("####", "none", None, id="the-group-took-no-part"),
    ],
)
def test_regex_reads_the_first_group(text, classification, answer):
    one = graded(text, " 42", "regex", r"####(?:(.+))?")

    assert (one.classification, one.answer) == (classification, answer)


@pytest.mark.parametrize(
    ("text", "reason", "outcome"),
    [
        pytest.param("no", "no_answer", Outcome.NO_ANSWER, id="nothing-to-read"),
        pytest.param(" ", "empty", Outcome.NO_ANSWER, id="empty"),
        pytest.param(None, "error", Outcome.FAILED, id="no-reply"),
    ],
)
def test_an_answer_that_is_missing_has_its_reason(text, reason, outcome):
    one = graded(text, "5", "number")

    assert (one.grader, one.classification, one.answer) == ("number", "none", None)
    assert (one.reason, one.outcome) == (reason, outcome)


def test_a_pattern_that_never_ends_is_given_up():
    one = graded("a" * 5000 + "!", "a", "regex", ENDLESS)

    assert (one.classification, one.answer, one.reason) == ("none", None, "timed_out")


@pytest.mark.parametrize("grader", [grader for grader in CUSTOM_GRADERS if grader != "regex"])
def test_a_known_grader_passes_the_check(grader):
    check_custom(grader)
    check_custom("regex", r"answer: (\d+)")


@pytest.mark.parametrize(
    ("grader", "pattern", "message"),
    [
        pytest.param("fuzzy", None, "unknown grader 'fuzzy'. Known: exact, number, choice, ", id="unknown"),
        pytest.param("regex", None, "needs a `pattern`", id="pattern-missing"),
        pytest.param("regex", "(a", "'(a' is not valid: missing )", id="pattern-not-valid"),
        pytest.param("regex", "a", "has no group", id="pattern-without-a-group"),
        pytest.param("number", "(a)", "'number' takes no pattern", id="pattern-of-no-use"),
    ],
)
def test_a_grader_that_cannot_be_used_is_refused_before_a_run(grader, pattern, message):
    with pytest.raises(ConfigError) as caught:
        check_custom(grader, pattern, place="night.yaml, problems[2]")

    assert str(caught.value).startswith("night.yaml, problems[2]: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("grader", "expected"), [("number", "five"), ("choice", "Paris"), ("exact", " "), ("regex", "")]
)
def test_an_expected_text_that_no_reply_could_equal_is_refused(grader, expected):
    with pytest.raises(ProblemSetError, match="finds no answer in the expected value"):
        check_expected(grader, expected)


@pytest.mark.parametrize("expected", ["B, C", "A and B", "A/B", "A|B", "A、C", "The answer is A or B", "A B"])
def test_an_expected_value_that_is_several_letters_is_refused(expected):
    with pytest.raises(ProblemSetError, match="it holds several letters"):
        check_expected("choice", expected)


@pytest.mark.parametrize(
    ("grader", "expected", "reply"),
    [("number", "3-5", "5"), ("number", "24 cm 2", "2"), ("choice", "B|C", "C")],
)
def test_what_an_older_folder_expects_is_read_as_it_was(grader, expected, reply):
    assert graded(reply, expected, grader).exact_match


@pytest.mark.parametrize(
    ("grader", "expected"), [("number", "0"), ("choice", "(b)"), ("exact", "Paris"), ("regex", "x")]
)
def test_any_other_expected_text_passes(grader, expected):
    check_expected(grader, expected)


def test_a_problem_without_a_grader_is_refused():
    with pytest.raises(ConfigError, match="a custom problem's extra: unknown grader 'none'"):
        graded("5", "5", "none")


@given(st.text(), st.sampled_from(["exact", "number", "choice"]))
def test_whatever_the_reply_there_is_an_answer_or_a_reason(text, grader):
    one = graded(text, "5" if grader == "number" else "B", grader)

    assert (one.classification == "none") == (one.answer is None) == (one.reason is not None)


REPEATED = (
    *("$", "I'"),
    # a second or more for each
    *("7", "#### 1", "1,111", ",111", "1,1111", "1 ", "-", ".", "1.", "1e5", "(7 ", "[1]", "Answer: "),
    *("1/2 ", "1^", "½", "{", r"\boxed{", r"\frac{1}", "1½"),
    *("A ", "a ", "I ", " ", "A", "A, ", "A and ", "A\n", "A)", "答案"),
)


@pytest.mark.long
@pytest.mark.parametrize("grader", ["exact", "number", "choice"])
@pytest.mark.parametrize("repeated", first_rows(2, REPEATED))
def test_no_reply_takes_long(grader, repeated):
    text = (repeated * 1_000_000)[:1_000_000]

    assert graded(text, "5" if grader == "number" else "B", grader).classification in {"wrong", "none"}
