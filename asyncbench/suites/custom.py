"""custom: problem sets of your own, graded by one of four plain rules or by a function of your own.

    grader    what is read in a reply                         right when
    exact     all of it, trimmed                              it is the expected text, trimmed
    number    its last number                                 it equals the number that is expected
    choice    its last letter that stands alone               it is the expected letter, in either case
    regex     the first group of a pattern's first match      it is the expected text, both trimmed

A problem names its grader in `extra`: {"grader": "number"} or {"grader": "regex", "pattern": "…"}. The
classification is `correct`, `wrong` (an answer was read, another one) or `none`, whose reason is `no_answer`,
`timed_out` (the pattern took too long), `empty` or `error` (no reply came).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Protocol

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Grade, Problem, Reply, outcome_of
from asyncbench.suites.numbers import exact
from asyncbench.suites.own import ADDED_GRADERS, OUR_GRADERS, grader_of, own_grade, own_grader
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.suite import Suite

GRADER_VERSION = 1
TIME_LIMIT_S = 0.1  # for one search: a pattern may be one that never ends

_NUMBER = re.compile(
    r"""
    ((?<![\w)\]}])[+\-−])? [$€£]?            # a sign, unless it stands between two numbers or in a word
    (
        [0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?    # commas that group by three
      | [0-9]+(?:\.[0-9]+)?
      | (?<![0-9])\.[0-9]+
    )
    ([eE][+\-−]?[0-9]+)?
    """,
    re.VERBOSE,
)
_ALONE = r"(?<![^\W_])(?<![^\W_]['’])%s(?!['’]?[^\W_])"  # neither a part of a word nor of I'm or don't
_CAPITAL_ALONE = re.compile(_ALONE % r"(?!I[ ]+[a-z])[A-Z]")
_LETTER_ALONE = re.compile(_ALONE % "[a-z]")

Answer = str | Decimal


class _Pattern(Protocol):
    """A compiled pattern of the module regex, as far as it is used: the standard re has no time limit."""

    groups: int

    def search(self, text: str, *, timeout: float) -> re.Match[str] | None: ...


class _Rule(NamedTuple):
    """A problem's grader: how it reads a reply, and how the expected text; None where it reads nothing."""

    grader: str
    read: Callable[[str], Answer | None]
    expected: Callable[[str], Answer | None]


def check_custom(grader: str, pattern: str | None = None, *, place: str = "custom") -> None:
    """Refuse a grader that cannot be used, before anything is asked.

    Raises:
        ConfigError: an unknown grader; a pattern that is missing, not valid, without a group, or given to a
            grader that has no use for one.
    """
    if grader not in (*CUSTOM_GRADERS, *ADDED_GRADERS) and not is_in_file(grader):
        known = ", ".join(
            (*CUSTOM_GRADERS, *ADDED_GRADERS, "or a function of your own, as my_module:function")
        )
        raise ConfigError(f"{place}: unknown grader {grader!r}. Known: {known}.")
    ADDED_GRADERS.get(grader)  # imported now: what is wrong with it is told before the first call
    if grader == "regex":
        _compiled(pattern, place=place)
    elif pattern is not None:
        raise ConfigError(f"{place}: grader {grader!r} takes no pattern. Remove it, or use grader 'regex'.")


def check_expected(grader: str, expected: str, *, place: str = "custom") -> None:
    """Refuse an expected text in which its grader reads nothing: no reply could be right.

    Raises:
        ProblemSetError: there is none, or no number or letter in it.
    """
    reads = READERS.get(grader) or (_trimmed if grader == "regex" else None)  # what others read, they know
    if reads is not None and reads(expected) in (None, ""):
        raise ProblemSetError(
            f"{place}: grader {grader!r} finds no answer in the expected value {expected!r}. Correct it, use "
            "another grader, or remove the problem."
        )


def likely_grader(expected: Iterable[str]) -> str:
    """Return the grader that expected answers look made for: choice, number or exact."""
    candidates = {"choice": _is_letter, "number": last_number}
    for text in expected:
        candidates = {name: reads for name, reads in candidates.items() if reads(text) is not None}
        if not candidates:
            break
    return next(iter(candidates), "exact")


def _is_letter(text: str) -> str | None:
    return last_letter(text) if len(text.strip(" ().")) == 1 else None


def last_number(text: str) -> Decimal | None:
    """Return the last number of the text, exactly; None when there is none.

    An optional sign (+, - or U+2212), a currency sign, ASCII digits with an optional fraction and exponent.
    Commas belong to the number where they group its digits by three; spaces never do. A sign after a letter,
    a digit or a closing bracket is none: the last number of `7-3` is 3.
    """
    numbers = _NUMBER.findall(text)
    if not numbers:
        return None
    return exact("".join(numbers[-1]).replace(",", "").replace("−", "-"))


def last_letter(text: str) -> str | None:
    """Return the last letter A-Z that stands alone, as a capital; None when there is none.

    A small letter counts only where no capital stands alone, for it may be the article; nor does the I of
    "I am", an I before a word in small letters.
    """
    letters = _CAPITAL_ALONE.findall(text) or _LETTER_ALONE.findall(text)
    return letters[-1].upper() if letters else None


def _trimmed(text: str) -> str | None:
    return text.strip()


READERS: Mapping[str, Callable[[str], Answer | None]] = {
    "exact": _trimmed,
    "number": last_number,
    "choice": last_letter,
}  # and `regex`, whose reader is made of its pattern
CUSTOM_GRADERS = OUR_GRADERS


def is_own(problem: Problem) -> bool:
    """Return whether a function of somebody's own grades a problem: it may take its time."""
    return problem.suite == SUITE.name and grader_of(problem.extra) not in OUR_GRADERS


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by the grader that the problem names.

    Raises:
        ConfigError: the problem names a grader that `check_custom` refuses, or that is not loaded.
        Exception: whatever a grader of somebody's own raises.
    """
    if (own := own_grader(problem.extra)) is not None:
        return (own_grade(own, problem, reply),)
    rule = _rule(problem.extra)
    answer, reason = _answer(rule, reply)
    right = answer is not None and answer == rule.expected(problem.expected)
    text = None if answer is None else str(answer)
    return (
        Grade(
            grader=rule.grader,
            grader_version=GRADER_VERSION,
            headline=True,
            answer=text,
            classification="correct" if right else "none" if answer is None else "wrong",
            reason=reason,
            outcome=outcome_of(reply, answer=text, exact_match=right),
            exact_match=right,
        ),
    )


def _answer(rule: _Rule, reply: Reply | None) -> tuple[Answer | None, str | None]:
    """Return the answer, or why there is none."""
    if reply is None:
        return None, "error"
    if not reply.text.strip():
        return None, "empty"
    try:
        answer = rule.read(reply.text)
    except TimeoutError:
        return None, "timed_out"
    return answer, "no_answer" if answer is None else None


@lru_cache(maxsize=1024)
def _rule(extra: str) -> _Rule:
    settings = json.loads(extra)
    grader, pattern = settings.get("grader"), settings.get("pattern")
    check_custom(grader, pattern, place="a custom problem's extra")
    read = READERS.get(grader) or _first_group(_compiled(pattern, place=grader))
    return _Rule(grader, read, _trimmed if grader == "regex" else read)


def _first_group(pattern: _Pattern) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        match = pattern.search(text, timeout=TIME_LIMIT_S)
        return None if match is None or match[1] is None else match[1].strip()

    return read


def _compiled(pattern: str | None, *, place: str) -> _Pattern:
    import regex  # type: ignore[import-untyped]  # it ships no types

    if pattern is None:
        raise ConfigError(f"{place}: grader 'regex' needs a `pattern`. Its first group is the answer.")
    try:
        compiled: _Pattern = regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(f"{place}: pattern {pattern!r} is not valid: {error}. Correct it.") from None
    if not compiled.groups:
        raise ConfigError(f"{place}: pattern {pattern!r} has no group. Put the answer in parentheses.")
    return compiled


SUITE = Suite(
    name="custom",
    generator_version=1,
    prompt_version=1,
    graders=CUSTOM_GRADERS,
    shots_from_file=True,
    generate=None,
    grade=grade,
)
