"""llm_arithmetic: the four operations on integers and on decimals of growing depth, to the byte.

The problems, the words of the question, the readings and the classes are those of the public benchmark
maxim-saplin/llm_arithmetic (its state of June 2026), so that results compare with its published tables.
Its `variant` is our `task`, its `depth` our `length`, its `error` our `abs_error`. Three things differ:
problems come from a seed, every depth is exact (the original breaks beyond 12), no reply is slow to grade.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from itertools import chain, islice
from reprlib import repr as shown
from typing import NamedTuple, cast

from asyncbench.records import Draft, Grade, Problem, Reply, outcome_of
from asyncbench.suites.numbers import EXACT, MAX_DIGITS, exact, fixed, relative_error
from asyncbench.suites.suite import FirstSize, Parameter, Suite, some_of, whole_number, whole_numbers
from asyncbench.suites.thinking import THINKING_VERSION, split_thinking

GENERATOR_VERSION = 1
QUESTION = (
    "Compute the following and reply with just the numeric result (no explanation):\n   {lhs} {sign} {rhs}"
)


class ArithmeticTask(NamedTuple):
    """One of the eight tasks: `make` makes (lhs, rhs, answer) of two drawn numbers.

    Operands are counted in units of 10**-operand_places, the answer in units of 10**-answer_places.
    """

    sign: str
    make: Callable[[int, int], tuple[int, int, int]]
    operand_places: int = 0
    answer_places: int = 0


ARITHMETIC_TASKS: Mapping[str, ArithmeticTask] = {
    "int_add": ArithmeticTask("+", lambda a, b: (a, b, a + b)),
    "int_sub": ArithmeticTask("-", lambda a, b: (a, b, a - b)),
    "int_mul": ArithmeticTask("×", lambda a, b: (a, b, a * b)),
    "int_div": ArithmeticTask("÷", lambda divisor, quotient: (divisor * quotient, divisor, quotient)),
    "float_add": ArithmeticTask("+", lambda a, b: (a, b, a + b), 2, 2),
    "float_sub": ArithmeticTask("-", lambda a, b: (a, b, a - b), 2, 2),
    "float_mul": ArithmeticTask("×", lambda a, b: (a, b, a * b), 2, 4),
    # The quotient is drawn in hundredths but taken as whole: published answers all end in .0000.
    "float_div": ArithmeticTask(
        "÷", lambda divisor, quotient: (divisor * quotient, divisor, quotient * 10_000), 2, 4
    ),
}


def generate(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield `trials` problems of every task and depth, one of each cell before the next of any.

    A cell draws from a stream of its own: its problems depend on the seed, the task and the depth alone.
    """
    depths = cast("tuple[int, ...]", parameters["depths"])
    cells = [
        _cell(seed, task, depth)
        for task in cast("tuple[str, ...]", parameters["variants"])
        for depth in depths
    ]
    return chain.from_iterable(islice(zip(*cells, strict=True), cast("int", parameters["trials"])))


def _cell(seed: int, name: str, depth: int) -> Iterator[Draft]:
    """Yield problems of one task and depth without end; operands are uniform, and may come again."""
    task = ARITHMETIC_TASKS[name]
    draw = random.Random(f"llm_arithmetic/{GENERATOR_VERSION}/{seed}/{name}/{depth}").randint
    unit = 10**task.operand_places
    # The largest decimal is 10**depth - 1 as well: 99.00 at depth 2, never 99.01.
    low, high = unit * 10 ** (depth - 1), unit * (10**depth - 1)
    while True:
        left, right, answer = task.make(draw(low, high), draw(low, high))
        lhs, rhs = fixed(left, task.operand_places), fixed(right, task.operand_places)
        yield draft_arithmetic(name, depth, lhs, rhs, expected=fixed(answer, task.answer_places))


def draft_arithmetic(name: str, depth: int, lhs: str, rhs: str, *, expected: str) -> Draft:
    """Return the problem of a task with these operands, each as it is to be asked."""
    task = ARITHMETIC_TASKS[name]
    return Draft(
        suite="llm_arithmetic",
        task=name,
        representation="float" if task.operand_places else "integer",
        length=depth,
        operands=(lhs, rhs),
        question=QUESTION.format(lhs=lhs, sign=task.sign, rhs=rhs),
        expected=expected,
        answer_type="decimal" if task.operand_places else "integer",
    )


_TOO_LONG = 10**MAX_DIGITS  # in the units of an answer, for its text


def answer(name: str, lhs: str, rhs: str) -> str | None:
    """Return the answer to a task, as `expected` has it; None where no exact one exists.

    Raises:
        ValueError: an operand is not a number of the task's form, or a number is too long to be written.
    """
    task = ARITHMETIC_TASKS[name]
    places = task.operand_places
    form = rf"-?\d+\.\d{{{places}}}" if places else r"-?\d+"
    operands = list[int]()  # in units of 10**-places
    for operand in (lhs, rhs):
        if not re.fullmatch(form, operand, re.ASCII):
            raise ValueError(f"{shown(operand)} is not a number with {places} decimals")
        digits = operand.replace(".", "")
        if len(digits.removeprefix("-")) > MAX_DIGITS:
            raise ValueError(f"{shown(operand)} has more than {MAX_DIGITS:,} digits")
        operands.append(int(digits))

    left, right = operands
    if task.sign != "÷":
        value = task.make(left, right)[2]
    elif not right or left % right:
        return None
    else:
        value = left // right * 10**task.answer_places
    if abs(value) >= _TOO_LONG:
        raise ValueError(f"{shown(lhs)} {task.sign} {shown(rhs)} has more than {MAX_DIGITS:,} digits")
    return fixed(value, task.answer_places)


# ── a number read out of a reply, in three ways: linear time, exact, versioned
#
# `layered_number` reads nearly any way of writing an answer, `trailing_number` a number that ends the reply,
# `bare_number` a reply that is a number and nothing else. What they read is fixed by the published results;
# one that reads anything else is a new version of its grader. A digit is any Unicode decimal digit.
#
# Every pattern here looks at a character a bounded number of times: a reply may be hostile.

_BARE = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_TRAILING_REVERSED = re.compile(r"(?:\d*+\.(?=\d))?\d++-?")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")

_THINK = re.compile(r"<think>", re.IGNORECASE)
_THINK_END = re.compile(r"</think>", re.IGNORECASE)
_BOX_OR_BRACE = re.compile(r"\\boxed|[{}]")
_BRACE = re.compile(r"[{}]")
_FRACTION = re.compile(r"\\[dt]?frac\s*")

_TIMES_COMMAND = re.compile(r"\\(?:times|cdot|ast)\b")
_TIMES_TEN = r"(\d)\s*[×xX✕✖·•*]\s*10\s*"
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_TO_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPT_POWER = re.compile(f"{_TIMES_TEN}({_SUPERSCRIPTS.pattern})")
_CARET_POWER = re.compile(rf"{_TIMES_TEN}\^\s*([+-]?\d+)")
_MATH_DELIMITER = re.compile(r"\\[()\[\]]")
_UNCERTAINTY = re.compile(r"(?<=\d)\(\d+\)")
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def bare_number(text: str) -> Decimal | None:
    """Return the number that the trimmed text is and nothing else; None when it is anything else.

    An optional + or -, ASCII digits, optionally a dot and ASCII digits: no exponent, no grouping, and
    digits on both sides of the dot.
    """
    match = _BARE.fullmatch(text.strip())
    return exact(match[0]) if match else None


def trailing_number(text: str) -> Decimal | None:
    """Return the number that ends the trimmed text: optional -, digits, optionally a dot and digits.

    It starts as far left as it can: `1.234.567` reads 234.567, `12,345` reads 345, `5-3` reads -3.
    """
    # Read backwards, because a search from the left tries every digit of every run as a beginning.
    match = _TRAILING_REVERSED.match(text.rstrip()[::-1])
    return exact(match[0][::-1]) if match else None


def layered_number(text: str) -> Decimal | None:
    """Return the first number in the last \\boxed{...}, or else the last number of the text.

    `text` is a reply `drop_thinking`. Fractions outside a box are not numbers; a number whose exponent
    is beyond the Decimal limits gives way to the next.
    """
    box = last_box(text)
    if box is not None and (value := _first_exact(_numbers(box))) is not None:
        return value
    return _first_exact(reversed(_numbers(drop_fractions(text))))


def drop_thinking(text: str) -> tuple[str, bool]:
    """Return the text without its <think>...</think> blocks, and whether one of them had no end.

    What stood on either side of a block is joined; a block without an end goes on to the end of the text.
    """
    if "<" not in text:
        return text, False
    kept, resume = [], 0
    while (start := _THINK.search(text, resume)) and (end := _THINK_END.search(text, start.end())):
        kept.append(text[resume : start.start()])
        resume = end.end()
    joined = "".join(kept) + text[resume:]
    unclosed = _THINK.search(joined)
    return (joined[: unclosed.start()], True) if unclosed else (joined, False)


def last_box(text: str) -> str | None:
    """Return the text in the braces that follow the last \\boxed; boxes without such a pair do not count.

    They need not follow at once. Of nested boxes, the inner one is the last.
    """
    if "\\boxed" not in text:
        return None
    open_braces: list[tuple[int, bool]] = []  # where, and whether it is the first after a \boxed
    awaited, start, end = False, -1, -1
    for token in _BOX_OR_BRACE.finditer(text):
        if token[0] == "{":
            open_braces.append((token.end(), awaited))
            awaited = False
        elif token[0] != "}":
            awaited = True
        elif open_braces:
            opened, boxed = open_braces.pop()
            if boxed and opened > start:
                start, end = opened, token.start()
    return text[start:end] if end >= 0 else None


def drop_fractions(text: str) -> str:
    """Return the text with a space for each \\frac, \\dfrac or \\tfrac and its two adjacent brace groups."""
    if "frac" not in text:
        return text

    # Where the } that matches each { stands.
    closing, opened = dict[int, int](), list[int]()
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()

    kept, resume = [], 0
    for command in _FRACTION.finditer(text):
        middle = closing.get(command.end(), -1)
        end = closing.get(middle + 1, -1)
        if middle > 0 and end > 0 and command.start() >= resume:
            kept.append(text[resume : command.start()])
            resume = end + 1
    return " ".join([*kept, text[resume:]])


def _first_exact(numbers: Iterable[str]) -> Decimal | None:
    return next((value for number in numbers if (value := exact(number)) is not None), None)


def _numbers(text: str) -> list[str]:
    """Return every number of the text, left to right, after the ways of writing one are made plain.

    The order of these steps is a part of what is read: what one of them joins or parts, the next one sees.
    """
    # LaTeX: drop thin spaces, unwrap the decimal comma, write × for the signs of multiplication.
    text = text.replace("\\,", "").replace("\\!", "").replace("{,}", ",")
    if "\\" in text:
        text = _TIMES_COMMAND.sub("×", text)

    # Powers of ten: `3.41×10¹⁷` and `3.41 × 10^17` become `3.41e17`; superscripts that remain become digits.
    raised = not text.isascii() and _SUPERSCRIPTS.search(text)
    if raised:
        text = _SUPERSCRIPT_POWER.sub(lambda power: f"{power[1]}e{power[2].translate(_TO_PLAIN)}", text)
    if "^" in text:
        text = _CARET_POWER.sub(r"\1e\2", text)
    if raised:
        text = _SUPERSCRIPTS.sub(lambda run: run[0].translate(_TO_PLAIN), text)

    # Markdown and money beside a number go, so that neighbours join: `-$5` is -5.
    text = text.replace("*", "").replace("`", "").replace("$", "")
    if "\\" in text:
        text = _MATH_DELIMITER.sub(" ", text)

    # The uncertainty of `12.5(4)` and the commas of `1,234,567` go.
    if "(" in text:
        text = _UNCERTAINTY.sub("", text)
    if "," in text:
        text = _THOUSANDS_COMMA.sub("", text)
    return _NUMBER.findall(text)


# ── grading

ARITHMETIC_GRADERS: Mapping[str, int] = {  # versions; headline first
    "layered": 1 + THINKING_VERSION,
    "legacy": 1,  # reads the whole reply, thinking included
    "strict": 1 + THINKING_VERSION,
}
_PUBLISHED_DIGITS = 24  # before the dot of a decimal, answer or error: more is NaN in the published results


class _Form(NamedTuple):
    """The form in which a reading is an answer, and the flag of a reading whose value that changed."""

    step: Decimal
    rounding: str
    flag: str


_FORMS: Mapping[str, _Form] = {  # by the problem's answer_type
    "integer": _Form(Decimal(1), ROUND_DOWN, "fraction_dropped"),
    "decimal": _Form(Decimal("0.0001"), ROUND_HALF_EVEN, "rounded"),
}


class _Verdict(NamedTuple):
    classification: str  # Correct, Deviate or NaN
    answer: str | None = None
    reason: str | None = None
    abs_error: str | None = None
    rel_error: float | None = None
    flags: tuple[str, ...] = ()


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by `layered` (the headline), `legacy` and `strict`; they differ in what they read.

    The classification is Correct, Deviate (a number, another one) or NaN, whose reason is `no_number`,
    `out_of_range` (too long to be compared), `empty` or `error` (no reply came). `format_ok`: the answer is
    one bare number, which is all that `strict` reads. `legacy` reads the whole reply, the others its answer.
    """
    if reply is None:
        return _grades(reply, (_Verdict("NaN", reason="error"),) * 3, format_ok=None)
    split = split_thinking(reply.text)
    bare = bare_number(split.answer)
    if bare is not None and split.thought is None:  # then all three read the same
        return _grades(reply, (_verdict(bare, problem),) * 3, format_ok=True)
    answered, cut_off = drop_thinking(split.answer)
    missing = _Verdict("NaN", reason="no_number" if reply.text.strip() else "empty")
    layered, legacy, strict = (
        missing if value is None else _verdict(value, problem)
        for value in (layered_number(answered), trailing_number(reply.text), bare)
    )
    if cut_off or not split.ended:
        layered = layered._replace(flags=(*layered.flags, "think_unclosed"))
    return _grades(reply, (layered, legacy, strict), format_ok=bare is not None)


def _verdict(value: Decimal, problem: Problem) -> _Verdict:
    """Compare what was read with what was expected, exactly."""
    form, expected = _FORMS[problem.answer_type], Decimal(problem.expected)
    published = problem.answer_type == "decimal" and expected.adjusted() < _PUBLISHED_DIGITS
    digits = _PUBLISHED_DIGITS if published else MAX_DIGITS  # before the dot
    if value and value.adjusted() >= digits:  # before it is written out: 1e1000000 is short only like this
        return _Verdict("NaN", reason="out_of_range")
    parsed = value.quantize(form.step, form.rounding, EXACT)
    flags = () if parsed == value else (form.flag,)
    answer = str(parsed) if str(parsed) != "-0" else "0"  # of integers; the decimal -0.0000 stays as it is
    if parsed == expected:
        return _Verdict("Correct", answer, flags=flags)
    error = EXACT.subtract(parsed, expected).copy_abs()
    if max(parsed.adjusted(), error.adjusted()) >= digits:
        return _Verdict("NaN", reason="out_of_range")
    return _Verdict("Deviate", answer, None, str(error), relative_error(error, expected), flags)


def _grades(
    reply: Reply | None, verdicts: tuple[_Verdict, ...], *, format_ok: bool | None
) -> tuple[Grade, ...]:
    return tuple(
        Grade(
            grader=grader,
            grader_version=ARITHMETIC_GRADERS[grader],
            headline=grader == "layered",
            answer=verdict.answer,
            classification=verdict.classification,
            reason=verdict.reason,
            outcome=outcome_of(reply, answer=verdict.answer, exact_match=verdict.classification == "Correct"),
            exact_match=verdict.classification == "Correct",
            format_ok=format_ok,
            abs_error=verdict.abs_error,
            rel_error=verdict.rel_error,
            flags=verdict.flags,
        )
        for grader, verdict in zip(ARITHMETIC_GRADERS, verdicts, strict=True)
    )


SUITE = Suite(
    name="llm_arithmetic",
    about="+ - * / on integers and decimals of 2 to 10 digits",
    unit="digits",
    first=FirstSize(parameter="trials", most=1000),
    generator_version=GENERATOR_VERSION,
    prompt_version=1,
    graders=tuple(ARITHMETIC_GRADERS),
    parameters={
        "depths": Parameter(
            default=tuple(range(2, 11)),
            parse=whole_numbers(1, 1000),
            help="digits of the operands before the dot: 2-10, or 2,5,8",
        ),
        "trials": Parameter(default=10, parse=whole_number(1), help="problems per task and depth"),
        "variants": Parameter(
            default=tuple(ARITHMETIC_TASKS),
            parse=some_of(ARITHMETIC_TASKS),
            help="which of the eight tasks: int_add,float_div",
        ),
    },
    generate=generate,
    grade=grade,
)
