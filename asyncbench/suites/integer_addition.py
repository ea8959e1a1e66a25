"""integer_addition: the sum of two whole numbers of 2 to 30 digits, answered with nothing else.

The question and the grading are those of the public "Integer addition" benchmark: a reply counts when
Python's `int()` reads the sum in it. Numbers are drawn as there, digit by digit with leading zeros, so one
number in ten is shorter than it was drawn, and zero is possible.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from operator import eq
from typing import cast

from asyncbench.records import Draft, Grade, Problem, Reply, outcome_of
from asyncbench.suites.numbers import EXACT, MAX_DIGITS, relative_error
from asyncbench.suites.suite import Parameter, Suite, ascending, one_of, whole_number

GENERATOR_VERSION = 1
GRADER_VERSION = 1
QUESTION = (
    "Provide the sum of the two numbers. Don't output anything else. Only output the sum of the two numbers "
    "without anything additional. Only output the final number, no calculation, no explanation, just the "
    'final number without any text.: "{0}" "{1}"'
)
PRESETS: Mapping[str, Mapping[str, object]] = {"upstream-code": {"min_digits": 3, "max_digits": 30}}

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
    """Return what Python's `int()` reads in the trimmed text, None where it reads nothing.

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

    The reason of a fail is `wrong`, `not_a_number`, `empty` or `error` (no reply came). `format_ok`: the
    trimmed reply is ASCII digits alone, without leading zeros. Digits are compared from the last one on; a
    reply without a number has none right.
    """
    answer = None if reply is None else read_int(reply.text)
    reason = _reason(problem, reply, answer)
    read = None if answer is None else str(answer)
    graded = Grade(
        grader="int",
        grader_version=GRADER_VERSION,
        headline=True,
        answer=read,
        classification="fail" if reason else "success",
        reason=reason,
        outcome=outcome_of(reply, answer=read, exact_match=not reason),
        exact_match=not reason,
    )
    return (graded if reply is None else _measured(graded, problem, reply.text, answer),)


def _reason(problem: Problem, reply: Reply | None, answer: Decimal | None) -> str | None:
    if reply is None:
        return "error"
    if answer is None:
        return "not_a_number" if reply.text.strip() else "empty"
    return None if answer == Decimal(problem.expected) else "wrong"


def _measured(graded: Grade, problem: Problem, text: str, answer: Decimal | None) -> Grade:
    """Add how near the reply came: in form, in digits and in value."""
    read, expected = "" if answer is None else str(answer.copy_abs()), problem.expected
    graded = replace(
        graded,
        format_ok=bool(_AS_ASKED.fullmatch(text.strip())),
        digits_right=sum(map(eq, reversed(read), reversed(expected))),
        digits_total=len(expected),
        length_error=abs(len(read) - len(expected)),
    )
    if answer is None or graded.exact_match:
        return graded
    error = EXACT.subtract(answer, Decimal(expected)).copy_abs()
    return replace(graded, abs_error=str(error), rel_error=relative_error(error, Decimal(expected)))


_DIGITS = whole_number(1, MAX_DIGITS - 1)  # the sum may have one more, and still be read

SUITE = Suite(
    name="integer_addition",
    generator_version=GENERATOR_VERSION,
    prompt_version=1,
    graders=("int",),
    parameters={
        "tries": Parameter(default=100, parse=whole_number(1), help="problems"),
        "min_digits": Parameter(default=2, parse=_DIGITS, help="fewest digits drawn for an operand"),
        "max_digits": Parameter(default=30, parse=_DIGITS, help="most digits drawn for an operand"),
        "preset": Parameter(
            default=None, parse=one_of(PRESETS), help="upstream-code: 3 to 30 digits, as its program has it"
        ),
    },
    presets=PRESETS,
    check=ascending("min_digits", "max_digits"),
    generate=generate,
    grade=grade,
)
