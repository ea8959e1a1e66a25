"""The table of suites, and grading through it."""

import subprocess
import sys

import pytest

from asyncbench.errors import ProblemSetError
from asyncbench.records import Draft, Outcome, Problem, Reply
from asyncbench.suites.table import SUITES, grade, grade_text
from tests.suites.made import drafts_of as drafts, problem

MADE = ("llm_arithmetic", "integer_addition", "string_reversal", "string_rehearsal")


def problem_of(draft: Draft) -> Problem:
    return Problem(problem_id="p", **{name: getattr(draft, name) for name in draft.__slots__})


def a_problem(suite: str) -> Problem:
    return problem_of(drafts(suite)[0])


def test_every_suite_stands_under_its_own_name():
    assert {name: suite.name for name, suite in SUITES.items()} == {name: name for name in SUITES}
    assert {*MADE, "custom"} <= set(SUITES)


@pytest.mark.parametrize("suite", MADE)
def test_the_same_seed_makes_the_same_problems_and_another_seed_others(suite):
    assert drafts(suite) == drafts(suite)
    assert drafts(suite) != drafts(suite, seed=8)


@pytest.mark.parametrize("suite", MADE)
def test_a_longer_set_of_the_same_seed_begins_with_the_shorter(suite):
    size = "trials" if suite == "llm_arithmetic" else "tries"

    short, long = drafts(suite, **{size: 3}), drafts(suite, **{size: 5})

    assert len(short) < len(long)
    assert long[: len(short)] == short


@pytest.mark.parametrize("suite", MADE)
def test_the_expected_answer_is_correct_and_the_headline_comes_first(suite):
    problem = a_problem(suite)

    grades = grade_text(problem, f"  {problem.expected}\n")

    assert {one.outcome for one in grades} == {Outcome.CORRECT}
    assert [one.headline for one in grades] == [True] + [False] * (len(grades) - 1)
    assert tuple(one.grader for one in grades) == SUITES[suite].graders


@pytest.mark.parametrize("suite", MADE)
def test_a_trial_without_a_reply_is_failed_not_wrong(suite):
    grades = grade(a_problem(suite), None)
    assert tuple(one.grader for one in grades) == SUITES[suite].graders
    for one in grades:
        assert (one.outcome, one.exact_match, one.answer, one.reason) == (
            Outcome.FAILED,
            False,
            None,
            "error",
        )
        assert one.format_ok is None


@pytest.mark.parametrize("suite", MADE)
@pytest.mark.parametrize("style", ["chat", "completion", "rules"])
def test_a_reply_is_graded_the_same_whatever_the_style(suite, style):
    problem = a_problem(suite)

    assert grade_text(problem, "12", style) == grade_text(problem, "12")


@pytest.mark.parametrize(
    ("finish_reason", "text", "outcome"),
    [
        pytest.param("stop", "nothing", Outcome.NO_ANSWER, id="ended"),
        pytest.param("length", "nothing", Outcome.TRUNCATED, id="cut"),
        pytest.param("model_length", "nothing", Outcome.TRUNCATED, id="cut-by-the-context"),
        pytest.param("length", "158", Outcome.CORRECT, id="cut-after-the-answer"),
        pytest.param("refusal", "nothing", Outcome.REFUSED, id="refused"),
        pytest.param("stop", "159", Outcome.WRONG, id="another-number"),
    ],
)
def test_the_outcome_knows_how_the_reply_ended(finish_reason, text, outcome):
    problem = problem_of(drafts("llm_arithmetic", variants="int_add", depths=2)[0])
    assert problem.expected == "158"

    headline, *_ = grade(problem, Reply(text=text, finish_reason=finish_reason))

    assert headline.outcome is outcome


def test_a_problem_of_an_unknown_suite_is_refused_by_name():
    with pytest.raises(ProblemSetError, match=r"problem p: no suite 'sudoku'\. Known: llm_arithmetic"):
        grade(problem("sudoku", "!"), None)


def test_the_layer_loads_nothing_heavy():
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys; from asyncbench.suites.table import SUITES; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert "asyncbench.suites.llm_arithmetic" in loaded
    assert not {"pyarrow", "pydantic", "regex", "asyncio", "orjson"} & set(loaded)
