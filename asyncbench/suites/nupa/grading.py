"""Reading and grading the replies of NUPA: `strict`, as its program does, and `search`.

Both look behind a marker for the number pattern of the answer's form. `strict`, the headline, wants the
number to stand there at once; `search`, the paper's wording, takes the first one that follows. Where the two
differ, replies were not in the form asked for: that says nothing about arithmetic.

Program and paper know no thinking, so both read the whole reply. One that holds thinking has a third grade,
its headline: `answer` reads what `strict` does, behind the thinking.

How near an answer came is told digit by digit; nothing is normalised. `7`, `007` and `7.0` are three
different answers, and so are 7/13 and 14/26. Digits are characters: ５ is not 5. Those of whole numbers are
laid side by side from the last one on, those of decimals from the first.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from operator import eq
from typing import NamedTuple

from asyncbench.records import Grade, Outcome, Problem, Reply, outcome_of
from asyncbench.suites.numbers import FORMS, parts
from asyncbench.suites.thinking import THINKING_VERSION, split_thinking

GRADERS: Mapping[str, int] = {"strict": 1, "search": 1}  # the documents', with their versions; headline first
BEHIND_THINKING = "answer"  # ours, the headline of a reply that holds thinking

ANSWER = "The answer is"  # what the chat's system prompt asks for
EQUALS = " = "  # where a completion goes on: the question ends with its first half
MARKERS: Mapping[str, tuple[str, ...]] = {  # by style: what an answer follows
    "chat": (ANSWER,),
    "completion": (ANSWER,),  # where `strict` looks behind EQUALS
    "rules": ("So the answer is", "so the answer is"),  # how an execution of a rule ends
}

# A number begins where a run of digits does, and no run is looked at twice: a reply may be hostile.
_DIGITS = r"(?<!\d)\d++"
PATTERNS: Mapping[str, re.Pattern[str]] = {  # by the answer_type of a problem
    "integer": re.compile(_DIGITS),
    "decimal": re.compile(rf"{_DIGITS}\.\d++"),
    "fraction": re.compile(rf"{_DIGITS}/\d++"),
    "scientific": re.compile(rf"{_DIGITS}\.\d++[eE][+-]?\d++"),
}
_PLAIN = str.maketrans({"+": None, "-": None, "E": "e"})


class Reading(NamedTuple):
    """The number that was read in a reply."""

    answer: str | None  # None: nothing
    sign_dropped: bool = False  # 1.5e-5 is read as 1.5e5, as the published program does


def read_strict(reply: str, answer_type: str, *, style: str = "chat", question: str = "") -> Reading:
    """Return the number that stands at the very beginning of the answer, white space aside."""
    # Without a space in front of the answer EQUALS is missed, as it is by the published program.
    completed = style == "completion"
    answered = _text_behind(question + reply, EQUALS) if completed else _text_behind(reply, *MARKERS[style])
    return _reading(PATTERNS[answer_type].match(answered.strip()))


def read_search(reply: str, answer_type: str, *, style: str = "chat") -> Reading:
    """Return the first number of the right form in the answer; a sign in front of it is passed over."""
    return _reading(PATTERNS[answer_type].search(_text_behind(reply, *MARKERS[style])))


def _text_behind(text: str, *markers: str) -> str:
    """Return the text behind the first of these markers that it holds; the whole text without any."""
    for marker in markers:
        _, marker_found, after = text.partition(marker)
        if marker_found:
            return after
    return text


def _reading(match: re.Match[str] | None) -> Reading:
    if match is None:
        return Reading(None)
    number = match[0]
    plain = number.translate(_PLAIN) if "e" in number or "E" in number else number
    return Reading(plain, len(plain) != len(number))


class Nearness(NamedTuple):
    """The nearness of an answer, in digits."""

    digits_right: int
    digits_total: int  # of the truth
    length_error: int  # too many or too few, summed over the parts
    length_error_total: int  # of all parts as one: what one has too many another may lack


def nearness(answer: str | None, truth: str, answer_type: str) -> Nearness:
    """Compare an answer with the truth. Where nothing was read (None), every digit is missing.

    Missing digits are wrong; surplus ones show in the lengths alone.

    Raises:
        ValueError: they differ, and one of them is no number of this form.
    """
    form = FORMS[answer_type]
    total = len(truth) - len(form.separators)  # all else are digits
    if answer is None:
        return Nearness(0, total, total, total)
    if answer == truth:
        return Nearness(total, total, 0, 0)
    right = by_part = surplus = 0
    pairs = zip(parts(answer, answer_type), parts(truth, answer_type), form.aligned, strict=True)
    for read, true, end in pairs:
        right += sum(map(eq, read, true) if end == "left" else map(eq, reversed(read), reversed(true)))
        by_part += abs(len(read) - len(true))
        surplus += len(read) - len(true)
    return Nearness(right, total, by_part, abs(surplus))


def grade(problem: Problem, reply: Reply | None, style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by `strict` (the headline) and `search`; one that holds thinking by `answer` before them.

    The reason of a grade without an answer is `no_number`, `empty` or `error` (no reply came). The flag
    `sign_dropped` marks a reading that left the sign of an exponent out.
    """
    if reply is None:
        return tuple(
            Grade(
                grader=grader,
                grader_version=version,
                headline=grader == "strict",
                answer=None,
                classification=None,
                reason="error",
                outcome=Outcome.FAILED,
                exact_match=False,
            )
            for grader, version in GRADERS.items()
        )
    text, kind = reply.text, problem.answer_type
    strict = read_strict(text, kind, style=style, question=problem.question)
    # a number that `strict` reads is the first one, too, unless it looked behind another marker
    same = strict.answer is not None and style != "completion"
    search = strict if same else read_search(text, kind, style=style)
    near = nearness(strict.answer, problem.expected, kind)
    split = split_thinking(text)
    graded = _graded("strict", problem, reply, strict, near, headline=split.thought is None)
    if search.answer != strict.answer:
        near = nearness(search.answer, problem.expected, kind)
    grades = graded, _graded("search", problem, reply, search, near)
    if split.thought is None:
        return grades
    answered = f" {split.answer}"  # the space is a part of EQUALS
    answer = read_strict(answered, kind, style=style, question=problem.question)
    near = nearness(answer.answer, problem.expected, kind)
    reply = replace(reply, text=split.answer)
    return _graded(BEHIND_THINKING, problem, reply, answer, near, headline=True), *grades


def _graded(
    grader: str,
    problem: Problem,
    reply: Reply,
    reading: Reading,
    near: Nearness,
    *,
    headline: bool = False,
) -> Grade:
    answer = reading.answer
    right = answer == problem.expected
    reason = None
    if answer is None:
        reason = "no_number" if reply.text.strip() else "empty"
    return Grade(
        grader=grader,
        grader_version=THINKING_VERSION if grader == BEHIND_THINKING else GRADERS[grader],
        headline=headline,
        answer=answer,
        classification=None,
        reason=reason,
        outcome=outcome_of(reply, answer=answer, exact_match=right),
        exact_match=right,
        digits_right=near.digits_right,
        digits_total=near.digits_total,
        length_error=near.length_error,
        length_error_total=near.length_error_total,
        flags=("sign_dropped",) if reading.sign_dropped else (),
    )
