"""string_reversal and string_rehearsal: a text of letters and digits, to be written backwards or again.

The questions and the grading are those of the public "Integer addition" benchmark, whose control tasks
they are: a reply counts when it is the text and nothing else, without normalisation of any kind.
"""

import random
import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, cast

from asyncbench.records import Draft, Grade, Problem, Reply, outcome_of
from asyncbench.suites.suite import Parameter, Suite, ascending, one_of, whole_number

GENERATOR_VERSION = 1
GRADER_VERSION = 1
ALPHABET = string.ascii_uppercase + string.digits + string.ascii_lowercase


class StringTask(NamedTuple):
    """One of the two tasks; lengths in characters, both ends included."""

    question: str
    answer: Callable[[str], str]
    shortest: int
    longest: int


TASKS: Mapping[str, StringTask] = {
    "string_reversal": StringTask(
        "Provide the following text in reverse order. Don't output anything else. Only output the reversed "
        'string without anything additional, not even quotes: "{0}"',
        lambda text: text[::-1],
        3,
        30,
    ),
    "string_rehearsal": StringTask(
        "Repeat the following string exactly without modifying it. Don't output anything else. Only output "
        'the string without anything additional, not even quotes: "{0}"',
        lambda text: text,
        10,
        600,
    ),
}


def generate(name: str, seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield `tries` problems of a task; their lengths are uniform from `min_length` to `max_length`."""
    stream = random.Random(f"{name}/{GENERATOR_VERSION}/{seed}")
    shortest, longest = cast("int", parameters["min_length"]), cast("int", parameters["max_length"])
    for _ in range(cast("int", parameters["tries"])):
        text = "".join(stream.choices(ALPHABET, k=stream.randint(shortest, longest)))
        yield draft_string(name, text)


def draft_string(name: str, text: str) -> Draft:
    """Return the problem of a task with this text."""
    task = TASKS[name]
    return Draft(
        suite=name,
        task=name,
        representation="text",
        length=len(text),
        operands=(text,),
        question=task.question.format(text),
        expected=task.answer(text),
        answer_type="text",
    )


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by `exact`: `success` when the trimmed reply is the expected text, else `fail`.

    The reason of a fail is `wrong`, `empty` or `error` (no reply came). `format_ok`: the trimmed reply is
    letters and digits of the alphabet alone, as any right answer is.
    """
    text = "" if reply is None else reply.text.strip()
    right = text == problem.expected
    why_not = "error" if reply is None else "wrong" if text else "empty"
    return (
        Grade(
            grader="exact",
            grader_version=GRADER_VERSION,
            headline=True,
            answer=text or None,
            classification="success" if right else "fail",
            reason=None if right else why_not,
            outcome=outcome_of(reply, answer=text or None, exact_match=right),
            exact_match=right,
            format_ok=None if reply is None else text.isascii() and text.isalnum(),
        ),
    )


def _suite(name: str, task: StringTask) -> Suite:
    preset = {"min_length": task.shortest, "max_length": task.longest}
    length = whole_number(1, 100_000)
    return Suite(
        name=name,
        generator_version=GENERATOR_VERSION,
        prompt_version=1,
        graders=("exact",),
        rewritable=(),  # a digit of these texts is a character, and no number
        parameters={
            "tries": Parameter(default=100, parse=whole_number(1), help="problems"),
            "min_length": Parameter(default=task.shortest, parse=length, help="fewest characters"),
            "max_length": Parameter(default=task.longest, parse=length, help="most characters"),
            "preset": Parameter(
                default=None,
                parse=one_of(["upstream-code"]),
                help=f"upstream-code: {task.shortest} to {task.longest} characters, as its program has it",
            ),
        },
        presets={"upstream-code": preset},
        check=ascending("min_length", "max_length"),
        generate=partial(generate, name),
        grade=grade,
    )


STRING_REVERSAL, STRING_REHEARSAL = (_suite(name, task) for name, task in TASKS.items())
