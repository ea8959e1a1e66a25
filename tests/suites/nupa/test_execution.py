"""Replies that carry a rule out are compared with its execution, line by line."""

import sys

import pytest
from hypothesis import given, strategies as st

from asyncbench.suites.nupa.execution import (
    ENDED,
    NO_LINE,
    OTHER_LINE,
    VALUE,
    asked_rule,
    first_wrong_line,
    written_execution,
)
from asyncbench.suites.nupa.suite import RULES, rule_prompt
from asyncbench.suites.nupa.tasks import TASKS, NupaTask
from tests.rows import each_row
from tests.suites.nupa.drafts import drafts_of

COVERED = [task for task in TASKS.values() if (task.task, task.representation) in RULES]
SUM = ("add", "integer", ("12345", "678"))
EXECUTION = """\
answer, carry = "", 0
answer = "", carry = 0
while a or b or carry:
block = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
block = 1023
answer = f"{block % 1000:03d}" + answer
answer = 023
carry = block // 1000
carry = 1
a, b = a[:-3], b[:-3]
a = 12, b = ""
while a or b or carry:
block = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
block = 13
answer = f"{block % 1000:03d}" + answer
answer = 013023
carry = block // 1000
carry = 0
a, b = a[:-3], b[:-3]
a = ""
while a or b or carry:
return answer.lstrip("0") or "0\""""
VALUES_ALONE = (
    "answer='', carry=0\nblock=1023\nanswer=023\ncarry=1\na=12, b=''\nblock=13\nanswer=013023\ncarry=0\na=''"
)


def test_an_execution_is_each_line_and_then_the_values_that_changed():
    assert "\n".join(written_execution(*SUM, most=1000)) == EXECUTION
    assert written_execution(*SUM, most=3) == EXECUTION.split("\n")[:3]


@each_row("task", COVERED)
def test_what_is_executed_has_no_wrong_line_whatever_the_rule(task: NupaTask):
    problem = next(drafts_of(task, 5, seed=4))
    kind = (task.task, task.representation, problem.operands)
    assert first_wrong_line("\n".join(written_execution(*kind, most=100_000)), *kind) is None


@each_row("task", COVERED)
def test_a_prompt_tells_the_rule_and_the_operands(task: NupaTask):
    problem = next(drafts_of(task, 5, seed=4))
    prompt = rule_prompt(problem.question, task=task.task, representation=task.representation)
    assert asked_rule(prompt) == (task.task, task.representation, problem.operands)
    assert asked_rule(problem.question) is None


@each_row(
    "reply",
    [
        EXECUTION,
        EXECUTION + "\nSo the answer is 13023.\nblock = 7",
        VALUES_ALONE,
        EXECUTION.replace("block = 1023", '- **block** = `int("345") + int("678") + 0 = 1023`'),
        EXECUTION.replace("block = 13", "block: '13'"),
        EXECUTION.replace("\ncarry = 1\n", "  # carry = 1\n").replace("\nblock = 13", " → block = 13"),
        EXECUTION.replace("a = 12, b", "a, b = 12, ''\nb"),
        "```python\ndef add(a, b):\n"
        + EXECUTION.replace("answer = 023", "Now the answer grows.\nanswer = 023"),
        "a = 12345, b = 678\n" + EXECUTION,
        EXECUTION.replace("while a or b or carry:", "while a or b or carry:\ncarry = 0", 1),
    ],
)
def test_the_same_steps_in_other_words_are_followed(reply):
    assert first_wrong_line(reply, *SUM) is None


@each_row(
    ("reply", "kind", "number", "found"),
    [
        ("13023", NO_LINE, 1, None),
        ("So the answer is 13023.", NO_LINE, 1, None),
        (EXECUTION.replace("block = 1023", "block = 1013"), VALUE, 3, "block = 1013"),
        (EXECUTION.replace("block = 1023", "block = 345 + 678"), VALUE, 3, "block = 345 + 678"),
        (EXECUTION.replace("\ncarry = 1\n", "\ncarry = 0\n"), VALUE, 5, "carry = 0"),
        (EXECUTION.replace("\ncarry = 1\n", "\n"), OTHER_LINE, 5, "a, b = a[:-3], b[:-3]"),
        (VALUES_ALONE.replace("answer=023\n", ""), OTHER_LINE, 4, "carry=1"),
        (EXECUTION[: EXECUTION.index("block = 13")], ENDED, 8, None),
        (EXECUTION[: EXECUTION.index("block = 13")] + "So the answer is 13023.", ENDED, 8, None),
    ],
)
def test_the_first_line_that_differs_is_told_with_its_place(reply, kind, number, found):
    wrong = first_wrong_line(reply, *SUM)
    assert wrong is not None
    assert (wrong.kind, wrong.number, wrong.found) == (kind, number, found)


def test_a_wrong_line_names_its_routine_and_what_it_should_give():
    kind = ("multiply", "integer", ("12", "34"))
    wrong = first_wrong_line("\n".join(written_execution(*kind, most=1000)).replace("408", "418"), *kind)

    assert wrong is not None
    assert (wrong.routine, wrong.line, wrong.expected) == (
        "times",
        "product = int(a[-3:] or 0) * int(block) + carry",
        "product = 408",
    )


def test_operands_that_no_rule_can_take_are_refused_and_the_tracer_is_put_back():
    before = sys.gettrace()
    with pytest.raises(ValueError, match="add integer cannot be carried out with"):
        first_wrong_line(EXECUTION, "add", "integer", ("twelve", "7"))
    with pytest.raises(KeyError):
        first_wrong_line(EXECUTION, "count", "integer", ("12", "7"))
    assert sys.gettrace() is before


def test_a_division_without_an_end_ends_with_the_reply():
    reply = "quotient = '', rest = 0\ndigit = 7\nrest = 7"
    wrong = first_wrong_line(reply, "floordiv", "integer", ("7", "0"))
    assert wrong is not None
    assert wrong.kind == ENDED


@given(st.text(max_size=300))
def test_any_text_is_read(reply):
    wrong = first_wrong_line(reply, *SUM)
    assert wrong is not None
    assert wrong.number >= 1


@pytest.mark.parametrize(
    "hostile", [" " * 200_000, "a," * 100_000, "- " * 100_000, "a = " * 50_000, "#" * 200_000]
)
def test_no_reply_takes_long_to_compare(hostile):
    assert first_wrong_line(hostile, *SUM) is not None
