"""The "Integer addition" benchmark: a sum of two whole numbers, and two control tasks of texts.

    integer_addition   the sum of two numbers of 2 to 30 digits, answered with nothing else
    string_reversal    a text of letters and digits, to be written backwards
    string_rehearsal   the same, to be written again

The questions and the grading are those of the public benchmark. A reply counts when Python's `int()` reads
the sum in it, or when it is the text and nothing else, without normalisation of any kind. Numbers are drawn
as there, digit by digit with leading zeros, so one number in ten is shorter than it was drawn, and zero is
possible.
"""

import json
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from operator import eq
from typing import Any, NamedTuple, cast

from asyncbench.records import Draft, Grade, Problem, Reply, outcome_of
from asyncbench.suites.numbers import EXACT, MAX_DIGITS, relative_error
from asyncbench.suites.suite import FirstSize, Parameter, Suite, ascending, one_of, whole_number
from asyncbench.suites.thinking import THINKING_VERSION, answer_of

GENERATOR_VERSION = 1
GRADER_VERSION = 1 + THINKING_VERSION

# ── sums

QUESTION = (
    "Provide the sum of the two numbers. Don't output anything else. Only output the sum of the two numbers "
    "without anything additional. Only output the final number, no calculation, no explanation, just the "
    'final number without any text.: "{0}" "{1}"'
)

_PYTHON_INT = re.compile(r"([+-]?)(\d+(?:_\d+)*)")
_AS_ASKED = re.compile(r"0|[1-9][0-9]*")


def generate(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield `tries` problems; `length` is the longer drawn length, `extra` holds both.

    A drawn length is uniform from `min_digits` to `max_digits`; so is each digit, the first one included.
    """
    stream = random.Random(f"integer_addition/{GENERATOR_VERSION}/{seed}")
    shortest, longest = cast("int", parameters["min_digits"]), cast("int", parameters["max_digits"])
    for _ in range(cast("int", parameters["tries"])):
        lengths = [stream.randint(shortest, longest) for _ in range(2)]
        left, right = (stream.randrange(10**length) for length in lengths)
        yield draft_addition(left, right, length=max(lengths), extra=json.dumps({"drawn_lengths": lengths}))


def draft_addition(left: int, right: int, *, length: int, extra: str = "{}") -> Draft:
    """Return the problem of adding two numbers; `length`: the longer one's, as drawn where that is known."""
    return Draft(
        suite="integer_addition",
        task="integer_addition",
        representation="integer",
        length=length,
        operands=(str(left), str(right)),
        question=QUESTION.format(left, right),
        expected=str(left + right),
        answer_type="integer",
        extra=extra,
    )


def read_int(text: str) -> Decimal | None:
    """Return the integer that Python's `int()` reads in the trimmed text, or None where it reads none.

    That is a sign or none, then Unicode decimal digits with single underscores between them, at most 4,300
    digits: Python's own limit, held here whatever the interpreter's setting.
    """
    match = _PYTHON_INT.fullmatch(text.strip())
    if not match:
        return None
    sign, digits = match[1], match[2].replace("_", "")
    return EXACT.plus(Decimal(sign + digits)) if len(digits) <= MAX_DIGITS else None  # plus: -0 is 0


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by `int`: `success` when Python's `int()` reads the sum in it, trimmed, else `fail`.

    Thinking is left out. The reason of a fail is `wrong`, `not_a_number`, `empty` or `error` (no reply came).
    `format_ok`: the trimmed reply is ASCII digits alone, without leading zeros. Digits are compared from the
    last one on; a reply without a number has none right.
    """
    reply = answer_of(reply)
    if reply is None:
        return _graded("int", None, None, right=False, measures={})
    answer = read_int(reply.text)
    right = answer is not None and answer == Decimal(problem.expected)

    # How near it came: in form, in digits and in value.
    digits = "" if answer is None else str(answer.copy_abs())
    measures: dict[str, Any] = {
        "format_ok": bool(_AS_ASKED.fullmatch(reply.text.strip())),
        "digits_right": sum(map(eq, reversed(digits), reversed(problem.expected))),
        "digits_total": len(problem.expected),
        "length_error": abs(len(digits) - len(problem.expected)),
    }
    if answer is not None and not right:
        expected = Decimal(problem.expected)
        error = EXACT.subtract(answer, expected).copy_abs()
        measures |= {"abs_error": str(error), "rel_error": relative_error(error, expected)}

    text = None if answer is None else str(answer)
    return _graded("int", reply, text, right=right, measures=measures)


# ── texts

ALPHABET = string.ascii_uppercase + string.digits + string.ascii_lowercase


class StringTask(NamedTuple):
    """One of the two tasks of texts; its lengths in characters from end to end, both included."""

    about: str
    question: str
    answer: Callable[[str], str]
    lengths: tuple[int, int]


STRING_TASKS: Mapping[str, StringTask] = {
    "string_reversal": StringTask(
        "write a string backwards",
        "Provide the following text in reverse order. Don't output anything else. Only output the reversed "
        'string without anything additional, not even quotes: "{0}"',
        lambda text: text[::-1],
        (3, 30),
    ),
    "string_rehearsal": StringTask(
        "repeat a string",
        "Repeat the following string exactly without modifying it. Don't output anything else. Only output "
        'the string without anything additional, not even quotes: "{0}"',
        lambda text: text,
        (10, 600),
    ),
}


def generate_strings(name: str, seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield `tries` problems of a task; their lengths are uniform from `min_length` to `max_length`."""
    stream = random.Random(f"{name}/{GENERATOR_VERSION}/{seed}")
    shortest, longest = cast("int", parameters["min_length"]), cast("int", parameters["max_length"])
    for _ in range(cast("int", parameters["tries"])):
        text = "".join(stream.choices(ALPHABET, k=stream.randint(shortest, longest)))
        yield draft_string(name, text)


def draft_string(name: str, text: str) -> Draft:
    """Return the problem of a task with this text."""
    task = STRING_TASKS[name]
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


def grade_string(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by `exact`: `success` when the trimmed reply is the expected text, else `fail`.

    The reason of a fail is `wrong`, `empty` or `error` (no reply came). `format_ok`: the trimmed reply is
    letters and digits of the alphabet alone, as any right answer is.
    """
    reply = answer_of(reply)
    text = "" if reply is None else reply.text.strip()
    measures = {} if reply is None else {"format_ok": text.isascii() and text.isalnum()}
    return _graded("exact", reply, text or None, right=text == problem.expected, measures=measures)


# ── grades and suites of all three


def _graded(
    grader: str, reply: Reply | None, answer: str | None, *, right: bool, measures: Mapping[str, Any]
) -> tuple[Grade, ...]:
    """Return the only grade of a reply, with how near it came."""
    reason = None
    if reply is None:
        reason = "error"
    elif answer is None:
        reason = "not_a_number" if reply.text.strip() else "empty"
    elif not right:
        reason = "wrong"
    return (
        Grade(
            grader=grader,
            grader_version=GRADER_VERSION,
            headline=True,
            answer=answer,
            classification="success" if right else "fail",
            reason=None if right else reason,
            outcome=outcome_of(reply, answer=answer, exact_match=right),
            exact_match=right,
            **measures,
        ),
    )


def _suite(
    name: str,
    size: tuple[str, str, str],
    drawn: tuple[int, int],
    published: tuple[int, int],
    largest: int,
    **fields: Any,  # of a `Suite`
) -> Suite:
    """Return a suite that draws the size of its operands from the smallest to the largest one.

    Args:
        name: of the suite.
        size: the end of two parameters' names, what is counted, and the end of their help.
        drawn: the sizes from which it draws, unless others are chosen.
        published: those from which the benchmark's program draws.
        largest: the largest size that can be chosen.
    """
    ending, unit, drawn_for = size
    (lowest, highest), parse = (f"min_{ending}", f"max_{ending}"), whole_number(1, largest)
    published_sizes = "{} to {}".format(*published)
    return Suite(
        name=name,
        first=FirstSize(parameter="tries", most=100_000),
        generator_version=GENERATOR_VERSION,
        prompt_version=1,
        parameters={
            "tries": Parameter(default=100, parse=whole_number(1), help="problems"),
            lowest: Parameter(default=drawn[0], parse=parse, help=f"fewest {unit}{drawn_for}"),
            highest: Parameter(default=drawn[1], parse=parse, help=f"most {unit}{drawn_for}"),
            "preset": Parameter(
                default=None,
                parse=one_of(["upstream-code"]),
                help=f"upstream-code: {published_sizes} {unit}, as its program has it",
            ),
        },
        presets={"upstream-code": {lowest: published[0], highest: published[1]}},
        check=ascending(lowest, highest),
        **fields,
    )


SUITE = _suite(
    "integer_addition",
    ("digits", "digits", " drawn for an operand"),
    (2, 30),
    (3, 30),
    MAX_DIGITS - 1,  # the sum may have one more, and still be read
    about="sums of two integers of up to 30 digits",
    unit="digits",
    graders=("int",),
    generate=generate,
    grade=grade,
)
STRING_REVERSAL, STRING_REHEARSAL = (
    _suite(
        name,
        ("length", "characters", ""),
        task.lengths,
        task.lengths,
        100_000,
        about=task.about,
        graders=("exact",),
        rewritable=(),  # a digit of these texts is a character, and no number
        generate=partial(generate_strings, name),
        grade=grade_string,
    )
    for name, task in STRING_TASKS.items()
)
