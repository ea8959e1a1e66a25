"""The messages for a problem: the words of its suite, in the template of its condition if there is one.

A template is text with fields in braces; `{{` and `}}` are braces. Data that is filled in is never read as
a template again. A field tells what a problem is, and nothing from which its answer could be known.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from string import Formatter
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.files import found_input, text_of
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


# ── Messages before a question: small talk that fills the context, or worked examples
# A file of small talk, and our own `small_talk.json`, is JSON:
# {"messages": [{"role": "user", "content": "hi!"}, {"role": "assistant", "content": "hello :)"}]}
# A file of worked examples is JSON Lines: {"question": "2 + 2?", "answer": "4"}.


# How many messages of our small talk each padding is: about 770, 1,800 and 3,700 tokens, as those of the
# llm_arithmetic project are. Each is the beginning of the next.
PADDINGS: Mapping[str, int] = {"1k": 16, "2k": 28, "4k": 44}


def padding(name: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the small talk called `name`: a key of `PADDINGS`, or a file (`near`: see `input_path`).

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    if name in PADDINGS:
        ours = files("asyncbench.suites").joinpath("small_talk.json").read_text("utf-8")
        return _dialog(ours, place=place)[: PADDINGS[name]]
    known = ", ".join(PADDINGS)
    text = _text(name, near, place=place, way_out=f"Name a file, or one of {known}")
    return _dialog(text, place=f"{place}: {name}")


def examples(path: str, *, place: str, near: Path | None = None) -> tuple[Message, ...]:
    """Return the worked examples of a file as turns, in its order: each question, then its answer.

    `near` is the sweep file that names it: see `input_path`.

    Raises:
        ConfigError: the file is missing or is not in the form described above; names `place`.
    """
    text = _text(path, near, place=place, way_out="Correct the path")
    turns: list[Message] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place}: {path}, line {number}"
        match _json(line, place=where):
            case {"question": str() as question, "answer": str() as answer} if question and answer:
                turns.append(Message(role="user", content=question))
                turns.append(Message(role="assistant", content=answer))
            case _:
                raise ConfigError(f'{where}: the line is not {{"question": "…", "answer": "…"}}. Correct it.')
    if not turns:
        raise ConfigError(f"{place}: {path} holds no examples. Add one per line.")
    return tuple(turns)


def _text(name: str, near: Path | None, *, place: str, way_out: str) -> str:
    path = found_input(name, near, place=place, way_out=way_out)
    return text_of(path, place=f"{place}: {path}", way_out=way_out)


def _dialog(text: str, *, place: str) -> tuple[Message, ...]:
    match _json(text, place=place):
        case {"messages": [_, *_] as messages}:
            turns = tuple(_message(turn, f"{place}, messages[{i}]") for i, turn in enumerate(messages, 1))
        case _:
            raise ConfigError(
                f'{place}: the file is not {{"messages": [{{"role": …, "content": …}}, …]}}. Correct it.'
            )
    expected = cycle(("user", "assistant"))
    wrong = [i for i, (turn, role) in enumerate(zip(turns, expected, strict=False), 1) if turn.role != role]
    if wrong or len(turns) % 2:
        raise ConfigError(
            f"{place}, messages[{wrong[0] if wrong else len(turns)}]: user and assistant must take turns, "
            "the user first and the assistant last. Your question follows."
        )
    return turns


def _message(raw: object, place: str) -> Message:
    match raw:
        case {"role": ("user" | "assistant") as role, "content": str() as content} if content:
            return Message(role=role, content=content)
    raise ConfigError(f"{place}: a message needs a role (user or assistant) and a content (text).")


def _json(text: str, *, place: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{place}: not JSON: {error}. Correct it.") from None
    except RecursionError:
        raise ConfigError(f"{place}: nested too deeply. Write it flat.") from None
