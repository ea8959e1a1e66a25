"""The messages for a problem: the words of its suite, in the template of its condition if there is one.

A template is text with fields in braces; `{{` and `}}` are braces. Data that is filled in is never read as
a template again. A field tells what a problem is, and nothing from which its answer could be known.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from string import Formatter
from typing import Final

from asyncbench.records import Condition, Message, Problem
from asyncbench.suites.digits import MOST_GROWTH, rewritten
from asyncbench.suites.suite import Wording
from asyncbench.suites.table import SUITES

QUESTION: Final = "question"
# Not `expected` and `extra`, which hold the answer, nor `length`: it is the answer to a task of nupa.
OF_A_PROBLEM: Final = ("suite", "task", "variant", "representation", "answer_type")
FIELDS: Final = (QUESTION, "operands", *OF_A_PROBLEM)


def fields_in(template: str) -> tuple[str, ...]:
    """Return all that a template has in braces, as it stands there; some of it may be no field.

    Raises:
        ValueError: a brace stands alone.
    """
    return tuple(field for _, field in _parts(template) if field is not None)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with the values of its fields."""
    return "".join(text + ("" if field is None else values[field]) for text, field in _parts(template))


@lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[tuple[str, str | None], ...]:
    """Return each text with the field behind it. A conversion or a format is a part of the field's name."""
    return tuple(
        (text, None if field is None else field + (f"!{to}" if to else "") + (f":{form}" if form else ""))
        for text, field, form, to in Formatter().parse(template)
    )


def wording_of(problem: Problem, condition: Condition) -> Wording:
    """Return what is said to ask a problem under a condition.

    With a template that is all; without one, a system prompt and turns of the condition come on top.
    """
    suite, digits = SUITES.get(problem.suite), condition.digits
    if suite is None or suite.asking is None:
        worded = Wording(question=rewritten(problem.question, digits, problem.operands))
    else:
        worded = suite.asking.wording(problem, condition.style, condition.shots or 0, digits)
    return (
        worded if condition.template is None else _in_template(condition.template, worded, problem, condition)
    )


def asks_as_it_stands(suite: str, condition: Condition) -> bool:
    """Return whether the only message for a problem of a suite is its question, unchanged."""
    known = SUITES.get(suite)
    return (known is None or known.asking is None) and condition.template is None and not condition.digits


def _in_template(template: str, worded: Wording, problem: Problem, condition: Condition) -> Wording:
    """Return a suite's own words in the templates of a condition."""
    values = {name: getattr(problem, name) for name in OF_A_PROBLEM}
    operands = rewritten(", ".join(problem.operands), condition.digits)
    values |= {QUESTION: worded.question, "operands": operands}
    talk = len(condition.turns) - condition.examples
    turns = [replace(turn, content=filled(turn.content, values)) for turn in condition.turns[:talk]]
    for turn in (*condition.turns[talk:], *worded.turns):  # examples are asked as the question is
        example_values = values | {QUESTION: turn.content}
        turns.append(replace(turn, content=filled(template, example_values)) if turn.role == "user" else turn)
    own = condition.system
    return Wording(
        system=worded.system if own is None else filled(own, values),
        turns=tuple(turns),
        question=filled(template, values),
    )


def on_top_of(condition: Condition) -> tuple[str | None, tuple[Message, ...]]:
    """Return the system prompt and the turns that go along with every question as they stand."""
    return (condition.system, condition.turns) if condition.template is None else (None, ())


@lru_cache(maxsize=1024)
def digits_stored(condition_params: str) -> tuple[str, ...]:
    """Return the forms of numbers that a value of the column `condition_params` tells."""
    return tuple(json.loads(condition_params).get("digits", ()))


def most_characters(condition: Condition, suite: str, longest_question: int) -> int:
    """Return the most characters of a problem's messages, less those of `characters_before_question`.

    Of a template this is an estimate: its fields other than the question are thought no longer than that.
    """
    asking, shots = SUITES[suite].asking, condition.shots or 0
    longest = longest_question + (0 if asking is None else asking.beside(condition.style, shots))
    longest *= MOST_GROWTH if condition.digits else 1
    if (template := condition.template) is None:
        return longest
    texts = [condition.system or "", *(turn.content for turn in condition.turns)]
    texts += [template] * (1 + shots + condition.examples // 2)
    return sum(map(len, texts)) + longest * max(1, sum(len(fields_in(text)) for text in texts))
