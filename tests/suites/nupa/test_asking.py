"""How NUPA asks: the words of each style, and worked examples that give nothing away."""

import json
from dataclasses import replace
from itertools import islice

import pytest

from asyncbench.problems.schema import identified
from asyncbench.records import Message, Problem
from asyncbench.suites.nupa.generation import PROFILES
from asyncbench.suites.nupa.suite import (
    MOST,
    added_characters,
    complaint,
    examples_for,
    lengths_of,
    question_in,
    wording,
)
from asyncbench.suites.nupa.tasks import TASKS, template
from tests.rows import each_row
from tests.suites.nupa.arithmetic import answer
from tests.suites.nupa.drafts import SUM, drafts_of, problem


def one_of(name: str, *, profile: str = "fixed", seed: int = 1) -> Problem:
    task = TASKS[name]
    return next(identified(drafts_of(task, task.lengths[4], seed=seed, profile=profile)))


# ── words ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "operands", "regex"),
    [
        (SUM, ("744", "543"), r'r"\d+"'),
        ("get_digit_Float_int_int", ("44.418", "3"), r'r"\d+"'),
        ("add_Float_Float_Float", ("93.81", "9.976"), r'r"\d+\.\d+"'),
        ("truediv_Integer_Integer_Fraction", ("744", "543"), r'r"\d+/\d+"'),
        ("to_scient_Integer_none_ScientificNotation", ("50400",), r'r"\d+\.\d+e\d+"'),
    ],
)
def test_a_chat_model_is_told_the_format_and_asked_the_bare_question(name, operands, regex):
    made = problem(name, *operands)
    worded = wording(made, "chat", 0)
    assert worded.system == (
        "You are a capable math assistant. Return your solution without any process in the format: "
        f"The answer is [YOUR ANSWER]. The final answer must strictly match the format {regex}."
    )
    assert (worded.turns, worded.question) == ((), made.question)


def test_examples_in_a_chat_are_turns_that_answer_as_asked():
    made = problem()
    worded = wording(made, "chat", 5)
    asked, answered = worded.turns[::2], worded.turns[1::2]
    assert (len(asked), worded.question) == (5, made.question)
    for shot, user, assistant in zip(examples_for(made, 5), asked, answered, strict=True):
        assert user == Message(role="user", content=shot.question)
        assert assistant == Message(role="assistant", content=f"The answer is {shot.expected}")


def test_a_completion_has_its_examples_on_lines_before_the_question_and_no_system_prompt():
    made = problem()
    bare, shown = (wording(made, "completion", shots) for shots in (0, 5))
    assert (bare.system, bare.turns, bare.question) == (None, (), made.question)
    *lines, last = shown.question.split("\n")
    assert last == made.question
    assert lines == [f"{shot.question} {shot.expected}" for shot in examples_for(made, 5)]


@pytest.mark.parametrize(
    ("style", "shots"),
    [*((style, shots) for style in ("chat", "completion") for shots in (0, 5, MOST)), ("rules", 0)],
)
def test_the_question_is_found_again_and_what_goes_beside_it_is_bounded(style, shots):
    kinds = {name: (task.task, task.variant, task.representation) for name, task in TASKS.items()}
    asked = [name for name, kind in kinds.items() if not complaint(kind, style)]
    assert len(asked) == (len(TASKS) if style != "rules" else 31)
    for name in asked:
        made = one_of(name)
        worded = wording(made, style, shots)
        said = len(worded.system or "") + sum(len(turn.content) for turn in worded.turns)
        assert question_in(worded.question) == made.question
        assert said + len(worded.question) - len(made.question) <= added_characters(style, shots)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (("add", "easy", "fraction"), False),
        (("max", "hard", "scientific"), False),
        (("digit_max", "", "integer"), False),
        (("digit_max", "", "float"), True),
        (("length", "", "float"), True),
        (("min", "", "integer"), True),
        (("sig", "", "float"), True),
        (("truediv", "", "integer"), True),
    ],
)
def test_a_task_without_a_rule_cannot_be_asked_with_one(kind, fault):
    assert bool(complaint(kind, "rules")) is fault
    assert complaint(kind, "chat") is None


# ── worked examples ──────────────────────────────────────────────────────────────────────────


@each_row("name", TASKS)
def test_five_examples_have_five_lengths_of_the_task_from_short_to_long(name):
    task = TASKS[name]
    lengths = lengths_of(task, 5)
    assert list(lengths) == sorted(set(lengths))
    assert set(lengths) <= set(task.lengths)
    ends = [len(task.lengths) * i // 5 for i in range(6)]
    for length, first, end in zip(lengths, ends, ends[1:], strict=False):
        assert length in task.lengths[first:end]


@each_row("name", TASKS)
def test_examples_are_right_and_the_same_for_every_problem_of_a_task(name):
    task = TASKS[name]
    shown = {examples_for(one_of(name, seed=seed), 5) for seed in (1, 2)}
    assert len(shown) == 1
    for shot in next(iter(shown)):
        words = shot.question.replace("(", " ").replace(")", " ").split()
        operands = tuple(word for word in words if word[0].isdigit())
        operands = operands[-len(one_of(name).operands) :]
        assert template(task, "fixed") % operands == shot.question
        assert shot.expected == answer(task.task, operands, task.answer_type)


def test_examples_of_the_published_profile_use_its_words_and_right_answers_all_the_same():
    shown = examples_for(one_of("min_Integer_Integer_Integer", profile="reference"), 5)
    assert ["mininal" in shot.question for shot in shown] == [True] * 5
    for kind in ("Integer", "Float"):
        made = one_of(f"sig_{kind}_int_ScientificNotation", profile="reference")
        for shot in examples_for(made, MOST):
            number, significant = [word for word in shot.question.split() if word[0].isdigit()][-2:]
            assert shot.expected == answer("sig", (number, significant), "scientific")


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["add_Fraction_Fraction_Fraction", "max_Fraction_Fraction_Fraction"])
def test_no_generated_set_holds_an_example(name, profile):
    task = TASKS[name]
    shown = {one.question for one in examples_for(one_of(name, profile=profile), MOST)}
    for seed in range(3):
        for length in (1, 2, 3):  # where problems are few, and a draw could meet one
            made = islice(drafts_of(task, length, seed=seed, profile=profile), 800)
            asked = {draft.question for draft in made}
            assert asked
            assert shown.isdisjoint(asked)


def test_an_example_that_is_the_problem_itself_gives_place_to_another():
    made = problem()
    first, *others = examples_for(made, 5)
    found = examples_for(replace(made, question=first.question), 5)
    assert found[0] != first
    assert list(found[1:]) == others


def test_a_problem_that_says_nothing_of_its_profile_is_shown_those_of_the_fixed_one():
    made = problem()
    assert examples_for(replace(made, extra=json.dumps({})), 5) == examples_for(made, 5)
