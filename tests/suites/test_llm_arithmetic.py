"""llm_arithmetic: the problems, the words and the grades of the public benchmark, to the byte."""

import decimal
import json
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from operator import add, mul, sub, truediv

import pytest
from hypothesis import given, strategies as st

from asyncbench.records import Grade, Outcome, Reply
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS, generate, grade
from tests.recorded import rows
from tests.rows import each_row
from tests.suites.made import drafts_of, problem

OPERATION = {"add": add, "sub": sub, "mul": mul, "div": truediv}


drafts = partial(drafts_of, "llm_arithmetic")


def graded(text: str, expected: str, task: str = "int_add") -> dict[str, Grade]:
    kind = "integer" if task.startswith("int") else "float"
    asked = problem("llm_arithmetic", expected, task=task, kind=kind)
    grades = {found.grader: found for found in grade(asked, Reply(text=text))}
    assert set(grades) == {"layered", "legacy", "strict"}
    return grades


def layered(text: str, expected: str, task: str = "int_add") -> Grade:
    return graded(text, expected, task)["layered"]


# The problems


def test_a_full_set_has_ten_problems_of_each_task_and_depth():
    cells = Counter((draft.task, draft.length) for draft in drafts())

    assert cells == {(task, depth): 10 for task in ARITHMETIC_TASKS for depth in range(2, 11)}


def test_the_question_is_two_lines_with_the_signs_of_the_benchmark():
    draft = drafts(depths=5, variants="float_mul")[0]

    lhs, rhs = draft.operands
    assert draft.question == (
        "Compute the following and reply with just the numeric result (no explanation):\n"
        f"   {lhs} \u00d7 {rhs}"
    )
    signs = {draft.task: draft.question.split()[-2] for draft in drafts(trials=1)}
    assert signs == {
        f"{kind}_{name}": sign
        for kind in ("int", "float")
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "\u00d7"), ("div", "\u00f7"))
    }


def test_every_prefix_is_balanced():
    made = drafts(depths="2,5", variants="int_mul,int_add", trials=3)

    cells = [("int_add", 2), ("int_add", 5), ("int_mul", 2), ("int_mul", 5)]
    assert [(draft.task, draft.length) for draft in made] == cells * 3


def test_a_cell_has_the_same_problems_whatever_else_is_selected():
    alone = drafts(depths=5, variants="int_mul", trials=4)
    among = [draft for draft in drafts(trials=4) if (draft.task, draft.length) == ("int_mul", 5)]

    assert alone == among


@each_row("depth", [1, 2, 10, 13, 30, 50, 300])
@each_row("task", ARITHMETIC_TASKS)
def test_answers_are_exact_at_any_depth(task, depth):
    for draft in drafts(variants=task, depths=depth, trials=5):
        lhs, rhs = map(Fraction, draft.operands)
        assert Fraction(draft.expected) == OPERATION[task.split("_")[1]](lhs, rhs)


@pytest.mark.parametrize(
    ("task", "decimals"),
    [(task, 0) for task in ARITHMETIC_TASKS if task.startswith("int")]
    + [("float_add", 2), ("float_sub", 2), ("float_mul", 4), ("float_div", 4)],
)
def test_answers_have_a_fixed_number_of_decimals(task, decimals):
    for draft in drafts(variants=task, depths="2,10"):
        assert Decimal(draft.expected).as_tuple().exponent == -decimals
        assert {Decimal(operand).as_tuple().exponent for operand in draft.operands} == {-2 if decimals else 0}


def test_operands_are_uniform_from_end_to_end():
    """At depth 2 decimals end at 99.00: 99.01 to 99.99 are never drawn."""
    for task, unit, low, high in (("int_add", 1, 10, 99), ("float_add", 100, 1000, 9900)):
        drawn = [
            int(Decimal(operand) * unit)
            for draft in drafts(variants=task, depths=2, trials=20_000)
            for operand in draft.operands
        ]
        tenths = Counter((value - low) * 10 // (high - low + 1) for value in drawn)
        assert min(drawn) - low in range(unit)
        assert high - max(drawn) in range(unit)
        assert set(tenths) == set(range(10))
        assert all(abs(count / len(drawn) - 0.1) < 0.01 for count in tenths.values())


def test_the_operands_of_a_division_follow_from_divisor_and_quotient():
    for draft in drafts(variants="int_div", depths=6, trials=500):
        dividend, divisor = draft.operands
        assert len(divisor) == len(draft.expected) == 6
        assert len(dividend) in (11, 12)


def test_a_dividend_is_a_digit_short_about_one_time_in_six():
    made = drafts(variants="int_div", depths=6, trials=5000)

    short = sum(len(draft.operands[0]) == 11 for draft in made) / len(made)
    assert 0.15 < short < 0.19


def test_decimal_quotients_are_whole_numbers_of_two_digits_more():
    for draft in drafts(variants="float_div", depths=4, trials=500):
        dividend, divisor = draft.operands
        quotient, decimals = draft.expected.split(".")
        assert (len(quotient), decimals) == (6, "0000")
        assert len(dividend.split(".")[0]) in (9, 10)
        assert len(divisor) == 7


def test_half_of_the_differences_are_negative():
    made = drafts(variants="float_sub", depths=5, trials=5000)

    assert 0.48 < sum(draft.expected.startswith("-") for draft in made) / len(made) < 0.52


def test_problems_come_one_at_a_time():
    endless = generate(7, {"depths": (2,), "variants": ("int_add",), "trials": 10**15})

    assert next(endless).task == "int_add"


# The grades


@pytest.mark.long
@pytest.mark.parametrize("data", ["golden", pytest.param("texts", marks=pytest.mark.long)])
def test_every_recorded_reply_is_graded_as_published(request, data):
    for row in rows(request.getfixturevalue(data)):
        one = layered(str(row["raw_response"]), str(row["correct"]), str(row["variant"]))
        assert (one.answer, one.classification, one.abs_error) == (
            row["parsed"],
            row["classification"],
            row["error"],
        ), row


def test_every_recorded_problem_is_one_that_could_be_drawn(golden):
    for row in rows(golden):
        task, depth = ARITHMETIC_TASKS[str(row["variant"])], int(str(row["depth"]))
        unit = 10**task.operand_places
        lhs, rhs = (int(Decimal(str(row[side])) * unit) for side in ("lhs", "rhs"))
        drawn = (rhs, lhs // rhs) if task.sign == "÷" else (lhs, rhs)
        low, high = unit * 10 ** (depth - 1), unit * (10**depth - 1)
        assert all(low <= operand <= high for operand in drawn), row
        answer = int(Decimal(str(row["correct"])).scaleb(task.answer_places))
        assert task.make(*drawn) == (lhs, rhs, answer), row


@pytest.mark.long
@pytest.mark.parametrize("grader", ["layered", "legacy"])
def test_every_odd_reply_is_graded_as_published(texts, grader):
    prefix = {"layered": "expected", "legacy": "legacy"}[grader]
    cases = (texts / "llm_arithmetic" / "parser_cases.jsonl").read_text("utf-8").splitlines()
    assert len(cases) == 669
    for case in map(json.loads, cases):
        one = graded(case["raw_response"], case["correct"], case["variant"])[grader]
        assert (one.answer, one.classification, one.abs_error) == (
            case[f"{prefix}_parsed"],
            case[f"{prefix}_classification"],
            case[f"{prefix}_error"],
        ), case["case_id"]


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        pytest.param("300", "Correct Correct Correct", id="bare"),
        pytest.param(" +300.0\n", "Correct Correct Correct", id="bare-with-sign-and-fraction"),
        pytest.param("The answer is 300", "Correct Correct NaN", id="at-the-end"),
        pytest.param("**300**", "Correct NaN NaN", id="bold"),
        pytest.param("1,300", "Deviate Correct NaN", id="commas"),
        pytest.param("301", "Deviate Deviate Deviate", id="another-number"),
        pytest.param("<think>300", "NaN Correct NaN", id="thinking-cut-off"),
        pytest.param("no idea", "NaN NaN NaN", id="words"),
    ],
)
def test_the_three_graders_differ_in_what_they_read(text, classes):
    grades = graded(text, "300")

    assert list(grades) == ["layered", "legacy", "strict"]
    assert " ".join(str(one.classification) for one in grades.values()) == classes


@pytest.mark.parametrize(
    ("text", "answer", "classification", "flags"),
    [
        pytest.param("15", "15", "Correct", (), id="equal"),
        pytest.param("15.0", "15", "Correct", (), id="no-fraction-to-drop"),
        pytest.param("15.9", "15", "Correct", ("fraction_dropped",), id="a-fraction-is-dropped"),
        pytest.param("-0.9", "0", "Deviate", ("fraction_dropped",), id="towards-zero"),
        pytest.param("-0", "0", "Deviate", (), id="no-negative-zero"),
        pytest.param("1.5e1", "15", "Correct", (), id="an-exponent"),
        pytest.param("0e5000", "0", "Deviate", (), id="a-zero-of-any-exponent"),
    ],
)
def test_an_integer_answer_is_cut_to_a_whole_number(text, answer, classification, flags):
    one = layered(text, "15")

    assert (one.answer, one.classification, one.flags) == (answer, classification, flags)


@pytest.mark.parametrize(
    ("text", "answer", "classification", "flags"),
    [
        pytest.param("5", "5.0000", "Correct", (), id="equal"),
        pytest.param("5.00005", "5.0000", "Correct", ("rounded",), id="half-goes-to-even-below"),
        pytest.param("5.00015", "5.0002", "Deviate", ("rounded",), id="half-goes-to-even-above"),
        pytest.param("-0.00001", "-0.0000", "Deviate", ("rounded",), id="a-negative-zero-stays"),
        pytest.param("1e-1999999999999999997", "0.0000", "Deviate", ("rounded",), id="next-to-nothing"),
    ],
)
def test_a_decimal_answer_is_rounded_to_four_places(text, answer, classification, flags):
    one = layered(text, "5.00", "float_add")

    assert (one.answer, one.classification, one.flags) == (answer, classification, flags)


@pytest.mark.parametrize(
    ("task", "expected", "text", "abs_error", "rel_error"),
    [
        pytest.param("int_add", "40", "50", "10", 0.25, id="integer"),
        pytest.param("int_sub", "-40", "40", "80", 2.0, id="of-the-size"),
        pytest.param("int_sub", "0", "7", "7", 0.0, id="nothing-expected"),
        pytest.param("float_add", "4.00", "4.01", "0.0100", 0.0025, id="decimal"),
        pytest.param("int_div", "10", "1e400", "9" * 399 + "0", math.inf, id="beyond-any-float"),
        pytest.param("int_mul", "1" + "0" * 401, "9" + "0" * 400, "1" + "0" * 400, 0.1, id="both-beyond"),
    ],
)
def test_the_error_is_exact_text_and_a_share(task, expected, text, abs_error, rel_error):
    one = layered(text, expected, task)

    assert (one.classification, one.abs_error, one.rel_error) == ("Deviate", abs_error, rel_error)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        pytest.param("int_add", "9" * 4301, id="integer-of-4301-digits"),
        pytest.param("int_add", "1e4300", id="integer-of-4301-digits-written-short"),
        pytest.param("int_add", "1e1000000", id="a-million-digits-written-short"),
        pytest.param("int_sub", "-" + "9" * 4300, id="integer-error-of-4301-digits"),
        pytest.param("float_add", "1" + "0" * 24, id="decimal-of-25-digits"),
        pytest.param("float_add", "9" * 24 + ".99999", id="decimal-of-25-digits-once-rounded"),
        pytest.param("float_sub", "-" + "9" * 24, id="decimal-error-of-25-digits"),
    ],
)
def test_a_number_too_long_to_be_compared_is_no_answer(task, text):
    expected = {"int_sub": "2", "float_sub": "2.00"}.get(task, "15" if task == "int_add" else "15.00")

    one = layered(text, expected, task)

    assert (one.classification, one.answer, one.reason) == ("NaN", None, "out_of_range")
    assert one.outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("task", "text"), [("int_add", "9" * 4300), ("int_add", "1e4299"), ("float_add", "9" * 24)]
)
def test_the_longest_numbers_are_still_compared(task, text):
    one = layered(text, "15" if task == "int_add" else "15.00", task)

    assert (one.classification, one.reason) == ("Deviate", None)


@each_row("depth", [13, 14, 25, 50, 300])
@each_row("task", ARITHMETIC_TASKS)
def test_a_perfect_reply_is_correct_at_any_depth(task, depth):
    for draft in drafts(variants=task, depths=depth, trials=3):
        with decimal.localcontext(prec=1000):
            near = str(Decimal(draft.expected) + (1 if task.startswith("int") else Decimal("0.01")))

        assert layered(draft.expected, draft.expected, task).classification == "Correct"
        deviating = layered(near, draft.expected, task)
        assert deviating.classification == "Deviate"
        assert deviating.abs_error == ("1" if task.startswith("int") else "0.0100")


@pytest.mark.parametrize(
    ("text", "reason", "flags"),
    [
        pytest.param("", "empty", (), id="no-text"),
        pytest.param(" \n", "empty", (), id="only-space"),
        pytest.param("sorry", "no_number", (), id="words"),
        pytest.param("<think>7", "no_number", ("think_unclosed",), id="thinking-cut-off"),
    ],
)
def test_an_answer_that_is_missing_has_its_reason(text, reason, flags):
    one = layered(text, "7")

    assert (one.classification, one.answer, one.reason, one.flags) == ("NaN", None, reason, flags)


@pytest.mark.parametrize(
    ("text", "format_ok"), [("7", True), (" -7.50 ", True), ("7.", False), ("**7**", False), ("", False)]
)
def test_the_form_asked_for_is_one_bare_number(text, format_ok):
    assert {one.format_ok for one in graded(text, "7").values()} == {format_ok}


def test_grades_do_not_depend_on_the_ambient_decimal_context():
    expected = "123456789012345678901234567890"
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP, traps=[])):
        assert layered(expected, expected).classification == "Correct"
        assert layered("5.00005", "5.00", "float_add").answer == "5.0000"
        assert layered("8 1e9999999999999999999", "8").classification == "Correct"


@given(
    st.text(alphabet="0159٣²⁻+-−.,eEx×*^(){}$\\ <think>/", max_size=60), st.sampled_from([*ARITHMETIC_TASKS])
)
def test_whatever_the_reply_there_is_an_answer_or_a_reason(text, task):
    for one in graded(text, "15" if task.startswith("int") else "15.00", task).values():
        assert (one.classification == "NaN") == (one.answer is None) == (one.reason is not None)
        assert (one.classification == "Correct") == one.exact_match
        assert (one.classification == "Deviate") == (one.abs_error is not None)


@given(st.integers(), st.integers(min_value=-(10**6), max_value=10**6).filter(bool))
def test_a_neighbouring_integer_is_never_accepted(n, distance):
    one = layered(str(n + distance), str(n))

    assert (one.classification, one.abs_error) == ("Deviate", str(abs(distance)))


@pytest.mark.parametrize("task", ["int_mul", "float_div"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("7" * 100_000, id="digits"),
        pytest.param("7" * 100_000 + " apples", id="digits-and-a-word"),
        pytest.param("0." + "3" * 100_000, id="decimals"),
        pytest.param("1e" + "9" * 100_000, id="an-exponent-of-digits"),
        pytest.param("-1e1000000", id="a-million-digits"),
        pytest.param("1e-1000000", id="a-million-decimals"),
        pytest.param("1e1000000 " * 10_000, id="millions-of-digits"),
    ],
)
def test_no_number_takes_long_to_compare(task, text):
    for one in graded(text, "15" if task == "int_mul" else "15.0000", task).values():
        assert one.classification in {"Deviate", "NaN"}
