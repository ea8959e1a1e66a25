"""custom: problem sets of your own, graded by one of four plain rules or by a function of your own.

    grader    what is read in a reply                         right when
    exact     all of it, trimmed                              it is the expected text, trimmed
    number    its last number                                 it equals the number that is expected
    choice    its last letter that stands alone               it is the expected letter, in either case
    regex     the first group of a pattern's first match      it is the expected text, both trimmed

A problem names its grader in `extra`: {"grader": "number"} or {"grader": "regex", "pattern": "…"}. The
classification is `correct`, `wrong` (an answer was read, another one) or `none`, whose reason is `no_answer`,
`timed_out` (the pattern took too long), `empty` or `error` (no reply came).

A function of your own takes a reply and its problem:

    def grade(reply: str, problem: Problem) -> bool | dict

It returns True or False, or a dict: `correct` (True or False), and if it likes `answer` (what was read; None:
nothing) and `format_ok` (True or False). With True or False alone the whole reply is the answer.
"""

import ctypes
import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from decimal import Decimal
from functools import lru_cache, partial
from threading import Thread
from typing import Any, Final, NamedTuple

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Grade, Problem, Reply, outcome_of
from asyncbench.suites.numbers import exact
from asyncbench.suites.plugins import Origin, OwnFunction, WithPackages, checked_callable, is_in_file
from asyncbench.suites.suite import Suite

GRADER_VERSION = 1
SEARCH_LIMIT_S = 0.1  # for one search: a pattern may be one that never ends
CUSTOM_GRADERS: Final = ("exact", "number", "choice", "regex")

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


class _Judgement(NamedTuple):
    """What a grader says of a reply."""

    correct: bool
    answer: str | None
    format_ok: bool | None = None
    reason: str | None = None  # why there is no answer; None: none was read


class _Grader(NamedTuple):
    """A problem's grader, one of ours or of somebody's own."""

    name: str
    version: int
    judge: Callable[[str, Problem], _Judgement]


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


def is_own(problem: Problem) -> bool:
    """Return whether a function of somebody's own grades a problem: it may take its time."""
    return problem.suite == SUITE.name and grader_of(problem.extra) not in CUSTOM_GRADERS


def grader_of(extra: str) -> str | None:
    """Return the grader that a custom problem names."""
    grader: str | None = json.loads(extra).get("grader")
    return grader


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade a reply by the grader that the problem names; without a text it is not called.

    Raises:
        ConfigError: the problem names a grader that `check_custom` refuses, or that is not loaded.
        TypeError, TimeoutError, RuntimeError: a function of somebody's own returned no verdict, took too
            long, or tried to end the process.
        Exception: whatever such a function raises.
    """
    grader = _grader(problem.extra)
    verdict = _Judgement(correct=False, answer=None, reason="error" if reply is None else "empty")
    if reply is not None and reply.text.strip():
        verdict = grader.judge(reply.text, problem)
    none = verdict.answer is None and not verdict.correct
    return (
        Grade(
            grader=grader.name,
            grader_version=grader.version,
            headline=True,
            answer=verdict.answer,
            classification="correct" if verdict.correct else "none" if none else "wrong",
            reason=verdict.reason or ("no_answer" if none else None),
            outcome=outcome_of(reply, answer=verdict.answer, exact_match=verdict.correct),
            exact_match=verdict.correct,
            format_ok=verdict.format_ok,
        ),
    )


@lru_cache(maxsize=1024)
def _grader(extra: str) -> _Grader:
    settings = json.loads(extra)
    if (own := _own_function(settings)) is not None:
        return _Grader(own.name, own.version, partial(_by_function, own))
    name, pattern = settings.get("grader"), settings.get("pattern")
    check_custom(name, pattern, place="a custom problem's extra")
    read = READERS.get(name) or _first_group(_compiled(pattern, place=name))
    return _Grader(name, GRADER_VERSION, partial(_by_rule, read, _trimmed if name == "regex" else read))


# ── plain rules


def _by_rule(
    read: Callable[[str], Answer | None],
    read_expected: Callable[[str], Answer | None],
    reply: str,
    problem: Problem,
) -> _Judgement:
    """Return whether what is read in a reply is what is expected."""
    try:
        answer = read(reply)
    except TimeoutError:
        return _Judgement(correct=False, answer=None, reason="timed_out")
    right = answer is not None and answer == read_expected(problem.expected)
    return _Judgement(correct=right, answer=None if answer is None else str(answer))


def _first_group(pattern: Any) -> Callable[[str], str | None]:  # Any: of the module regex, without types
    def read(text: str) -> str | None:
        match = pattern.search(text, timeout=SEARCH_LIMIT_S)
        return None if match is None or match[1] is None else match[1].strip()

    return read


def _compiled(pattern: str | None, *, place: str) -> Any:  # Any: the standard re has no time limit
    import regex  # type: ignore[import-untyped]  # it ships no types

    if pattern is None:
        raise ConfigError(f"{place}: grader 'regex' needs a `pattern`. Its first group is the answer.")
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(f"{place}: pattern {pattern!r} is not valid: {error}. Correct it.") from None
    if not compiled.groups:
        raise ConfigError(f"{place}: pattern {pattern!r} has no group. Put the answer in parentheses.")
    return compiled


# ── functions of your own

TIME_LIMIT_S = 10.0  # for one reply
TAKES: Final = ("reply", "problem")  # what such a function is called with
_KEYS: Final = {"correct": bool, "answer": str | None, "format_ok": bool | None}
_RULE: Final = "Return True, False or {'correct': True or False, 'answer': text, 'format_ok': True or False}"
_KNOWN: dict[tuple[str, str], OwnFunction] = {}  # by name and source: a process may run several sweeps


def _added(function: object, origin: Origin) -> OwnFunction:
    call = checked_callable(function, origin.name, place="its entry point", takes=TAKES)
    return OwnFunction(name=origin.name, call=call, digest=origin.source)


ADDED_GRADERS: Final = WithPackages("graders", {}, _added, reserved=CUSTOM_GRADERS)


def use_grader(grader: OwnFunction) -> None:
    """Make a grader known to problems that name it and its source."""
    _KNOWN[grader.name, grader.digest] = grader


def used_graders(named: Mapping[str, str]) -> list[OwnFunction]:
    """Return graders of somebody's own that were made known here, by name and digest."""
    return [_KNOWN[known] for known in named.items()]


def _own_function(settings: Any) -> OwnFunction | None:  # Any: JSON
    """Return the grader of somebody's own that a problem names; None: it names one of ours.

    Raises:
        ConfigError: it was not made known in this process.
    """
    name, digest = settings.get("grader"), settings.get("source")
    if name in ADDED_GRADERS:
        return ADDED_GRADERS[name]
    if not isinstance(name, str) or not is_in_file(name):
        return None
    if (name, digest) not in _KNOWN:
        raise ConfigError(
            f"grader {name!r} is not loaded. Run the sweep, or `asyncbench regrade`, to load it."
        )
    return _KNOWN[name, digest]


def _verdict_of(grader: OwnFunction, reply: str, problem: Problem) -> Any:
    """Return what a grader returns within its time; it can neither end this process nor keep it from ending.

    It has a thread of its own, so an interrupt that it raises cannot be taken for Ctrl-C.
    """
    ended = Future[Any]()

    def call() -> None:
        try:
            ended.set_result(grader.call(reply, problem))
        except BaseException as error:
            ended.set_exception(error)

    thread = Thread(target=copy_context().run, args=(call,), name=grader.name, daemon=True)
    thread.start()
    try:
        error = ended.exception(TIME_LIMIT_S)
    except TimeoutError:
        raise TimeoutError(f"{grader.name} took more than {TIME_LIMIT_S:g} s for one reply.") from None
    finally:
        if not ended.done():
            _interrupt(thread)
    if error is not None and not isinstance(error, Exception):
        raise RuntimeError(f"{grader.name} raised {error!r}. {_RULE}.") from error
    return ended.result()


def _interrupt(thread: Thread) -> None:
    """Raise SystemExit in a thread as soon as it runs Python code: else it would slow down all others."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    )


def _by_function(grader: OwnFunction, reply: str, problem: Problem) -> _Judgement:
    """Return what somebody's function says of a reply, once it was checked."""
    verdict = _verdict_of(grader, reply, problem)
    if isinstance(verdict, bool):
        verdict = {"correct": verdict}
    if not isinstance(verdict, Mapping) or "correct" not in verdict:
        raise TypeError(f"{grader.name} returned {verdict!r:.80}. {_RULE}.")
    for key, value in verdict.items():
        if key not in _KEYS or not isinstance(value, _KEYS[key]):
            raise TypeError(f"{grader.name} returned {key!r}: {value!r:.80}. {_RULE}.")
    return _Judgement(**{"answer": reply.strip(), **verdict})


SUITE = Suite(
    name="custom",
    generator_version=1,
    prompt_version=1,
    graders=CUSTOM_GRADERS,
    shots_from_file=True,
    generate=None,
    grade=grade,
)
