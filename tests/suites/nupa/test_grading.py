"""What `strict` and `search` read, held against the published code's own readings."""

from itertools import islice

import pytest
from hypothesis import given, strategies as st

from asyncbench.problems.schema import identified
from asyncbench.records import Outcome, Problem, Reply
from asyncbench.suites.nupa.grading import PATTERNS, grade, nearness, read_search, read_strict
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.suites.table import grade_text
from tests.recorded import nupa_outputs, texts_of
from tests.rows import each_row
from tests.suites.nupa.drafts import SUM, drafts_of, problem
from tests.tiers import first_rows

WAYS = {"chat": "strict_chat", "completion": "strict_completion"}


@pytest.mark.long
def test_every_recorded_reading_is_measured_as_the_published_code_does(golden):
    for asked, row in nupa_outputs(golden):
        kind, truth = TASKS[asked["task_name"]].answer_type, asked["groundtruth"]
        for way in (*WAYS.values(), "search"):
            answer = row[way]["extracted"] or None
            near = nearness(answer, truth, kind)
            assert row[way] == {
                "extracted": answer or "",
                "exact_match": int(answer == truth),
                "digit_match": pytest.approx(near.digits_right / near.digits_total, rel=1e-12),
                "digits_right": near.digits_right,
                "digits_total": near.digits_total,
                "dlength": near.length_error_total,
                "dlength_by_part": near.length_error,
            }, (row["id"], way)


@pytest.mark.long
def test_every_recorded_output_is_read_as_the_published_code_does(texts):
    for asked, row in nupa_outputs(texts):
        kind, output = TASKS[asked["task_name"]].answer_type, row["output"]
        readings = {
            "strict_chat": read_strict(output, kind),
            "strict_completion": read_strict(output, kind, style="completion", question=asked["question"]),
            "search": read_search(output, kind),
        }
        for way, reading in readings.items():
            assert row[way]["extracted"] == (reading.answer or ""), (row["id"], way)


@pytest.mark.parametrize(
    ("data", "styles"),
    [("golden", ["chat"]), pytest.param("texts", ["chat", "completion"], marks=pytest.mark.long)],
)
def test_grades_hold_what_was_recorded(request, data, styles):
    for asked, row in nupa_outputs(request.getfixturevalue(data))[::7]:
        made = problem(asked["task_name"], *texts_of(asked), profile="reference")
        for style in styles:
            *ours, strict, search = grade_text(made, row["output"], style)
            assert [one.grader for one in ours] == ["answer"] * ("<think>" in row["output"])
            assert (strict.headline, search.headline) == (not ours, False)
            for one, recorded in ((strict, row[WAYS[style]]), (search, row["search"])):
                assert (one.answer or "", one.exact_match) == (recorded["extracted"], recorded["exact_match"])
                assert one.digits_right == recorded["digits_right"]
                assert (one.length_error, one.length_error_total) == (
                    recorded["dlength_by_part"],
                    recorded["dlength"],
                )


@pytest.mark.parametrize(
    ("text", "strict", "search"),
    [
        pytest.param("The answer is 1287.", "1287", "1287", id="as-asked"),
        pytest.param("1287", "1287", "1287", id="bare"),
        pytest.param("The answer is: 1287", None, "1287", id="colon"),
        pytest.param("The answer is **1287**", None, "1287", id="bold"),
        pytest.param("the answer is 1287", None, "1287", id="small-letter"),
        pytest.param("744 + 543: The answer is 1287", "1287", "1287", id="after-the-marker"),
        pytest.param("The answer is 5. No: The answer is 1287", "5", "5", id="first-marker"),
        pytest.param("-1287", None, "1287", id="minus"),
        pytest.param("1,287", "1", "1", id="comma"),
        pytest.param("I do not know", None, None, id="none"),
        pytest.param(" \n", None, None, id="blank"),
    ],
)
def test_strict_wants_the_number_at_once_and_search_looks_for_it(text, strict, search):
    assert tuple(one.answer for one in grade_text(problem(), text)) == (strict, search)


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        pytest.param(" 1287", "1287", id="after-a-space"),
        pytest.param("1287", None, id="without-the-space-the-marker-is-missed"),
        pytest.param(" 1287\nAdd two numbers: 1 + 1 = 2", "1287", id="goes-on-with-another"),
    ],
)
def test_a_completion_is_read_behind_the_equals_sign_of_its_question(text, strict):
    assert grade_text(problem(), text, "completion")[0].answer == strict


@pytest.mark.parametrize(
    ("text", "strict", "search"),
    [
        pytest.param("block = 287\nSo the answer is 1287", "1287", "1287", id="last-line"),
        pytest.param("carry = 1, so the answer is 1287.", "1287", "1287", id="small-letter"),
        pytest.param("so the answer is 5? So the answer is 1287", "1287", "1287", id="capital-first"),
        pytest.param("carry = 1", None, "1", id="no-marker"),
    ],
)
def test_an_execution_of_a_rule_is_read_at_its_end(text, strict, search):
    assert tuple(one.answer for one in grade_text(problem(), text, "rules")) == (strict, search)


def test_the_sign_of_an_exponent_is_dropped_and_that_is_said():
    made = problem("max_ScientificNotation_ScientificNotation_ScientificNotation", "1.5e5", "1.25e3")
    for text, flags in (("1.5e-5", ("sign_dropped",)), ("1.5E+5", ("sign_dropped",)), ("1.5E5", ())):
        strict, _ = grade_text(made, text)
        assert (strict.answer, strict.exact_match, strict.flags) == ("1.5e5", True, flags)


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        pytest.param(Reply(text="The answer is 1287"), Outcome.CORRECT, None, id="right"),
        pytest.param(Reply(text="1286"), Outcome.WRONG, None, id="wrong"),
        pytest.param(Reply(text="12", finish_reason="length"), Outcome.TRUNCATED, None, id="cut"),
        pytest.param(Reply(text="none"), Outcome.NO_ANSWER, "no_number", id="no-number"),
        pytest.param(Reply(text=""), Outcome.NO_ANSWER, "empty", id="empty"),
        pytest.param(None, Outcome.FAILED, "error", id="no-reply"),
    ],
)
def test_every_grade_has_its_outcome_and_reason(reply, outcome, reason):
    grades = grade(problem(), reply)
    assert [(one.grader, one.outcome, one.reason) for one in grades] == [
        ("strict", outcome, reason),
        ("search", outcome, reason),
    ]
    assert all((one.digits_total is None) is (reply is None) for one in grades)


# ── models of which it is known how well they do ─────────────────────────────────────────────


def some(name: str, *, profile: str = "fixed", each: int = 4) -> list[Problem]:
    task = TASKS[name]
    cells = (drafts_of(task, length, seed=11, profile=profile) for length in task.lengths)
    made = list(identified(draft for cell in cells for draft in islice(cell, each)))
    assert len(made) >= 18  # lengths
    return made


@pytest.mark.long
@each_row("name", TASKS)
def test_whoever_is_silent_lacks_every_digit_and_whoever_knows_all_lacks_none(name):
    for made in some(name, each=1)[::6]:
        rights, silents = grade_text(made, f"The answer is {made.expected}"), grade_text(made, "")
        assert len(rights) == len(silents) == 2
        for right in rights:
            assert (right.exact_match, right.digits_right, right.length_error) == (
                True,
                right.digits_total,
                0,
            )
        for silent in silents:
            digits = sum(character.isdigit() for character in made.expected)
            assert (silent.exact_match, silent.digits_right) == (False, 0)
            assert (silent.length_error, silent.length_error_total) == (digits, digits)


# ── replies that mean harm ───────────────────────────────────────────────────────────────────

HOSTILE = {
    "digits": "1" * 400_000,
    "arabic-digits": "٣" * 400_000,
    "points": "1." * 200_000,
    "half-a-mantissa": "1" * 200_000 + "." + "1" * 200_000,
    "exponents": "1.1e" * 100_000,
    "slashes": "1/" * 200_000 + "/",
    "markup": "<b>**" * 80_000,
    "markers": "The answer is " * 7_000,
    "equals": " = " * 33_000,
    "rules": "So the answer is so the answer is " * 3_000,
    "spaces": " " * 400_000 + "x",
    "zeros": "0" * 400_000 + ".0e0",
    "surrogates": "\ud800" * 400_000,
}


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("style", first_rows(1, ["chat", "completion", "rules"]))
def test_no_reply_raises_or_takes_longer_than_its_length(text, style):
    # A pass over them takes milliseconds; what tries every digit as a beginning would meet the time limit.
    made = [problem(), problem("sig_Float_int_ScientificNotation", "9.99", "2")]
    made += [
        problem("add_Fraction_Fraction_Fraction", "3/8", "2/5"),
        problem("add_Float_Float_Float", "1.5", "2.5"),
    ]
    for one in made:
        assert len(grade_text(one, text, style)) == 2


@pytest.mark.parametrize("kind", PATTERNS)
@given(text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("01.eE+-/ ٣５"), max_size=40))
def test_whatever_is_read_can_be_measured(kind, text):
    truth = {"integer": "12", "decimal": "1.5", "fraction": "3/4", "scientific": "1.5e3"}[kind]
    for reading in (read_strict(text, kind), read_search(text, kind)):
        near = nearness(reading.answer, truth, kind)
        assert 0 <= near.digits_right <= near.digits_total


@pytest.mark.long
@pytest.mark.parametrize("style", ["chat", "completion", "rules"])
@pytest.mark.parametrize("kind", PATTERNS)
@given(text=st.text(st.sampled_from("01.eE+-/ ٣TheanswerisSo=\n"), max_size=40))
def test_both_grades_are_what_each_reading_gives_by_itself(kind, style, text):
    name = {
        "integer": SUM,
        "decimal": "add_Float_Float_Float",
        "fraction": "add_Fraction_Fraction_Fraction",
        "scientific": "add_ScientificNotation_ScientificNotation_ScientificNotation",
    }[kind]
    operands = {"integer": "12", "decimal": "1.5", "fraction": "3/4", "scientific": "1.5e3"}[kind]
    made = problem(name, operands, operands)
    for start in ("", "The answer is ", "So the answer is"):
        strict, search = grade_text(made, start + text, style)
        alone = read_strict(start + text, kind, style=style, question=made.question)
        assert (strict.answer, strict.flags == ("sign_dropped",)) == alone
        assert (search.answer, search.flags == ("sign_dropped",)) == read_search(
            start + text, kind, style=style
        )
