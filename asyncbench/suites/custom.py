"""custom: problem sets of your own, graded by a plain rule of `GRADERS` or by a function of your own.

A problem names its grader in `extra`: {"grader": "number"} or {"grader": "regex", "pattern": "…"}; beside it
`accepted` lists the answers that count as right, where there are several. The classification is `correct`,
`wrong` (an answer was read, another one) or `none`, whose reason is `no_answer`, `timed_out` (the grader took
too long), `empty` or `error` (no reply came).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.records import Grade, Problem, Reply, outcome_of
from asyncbench.suites.choice_reading import last_letter, only_letter
from asyncbench.suites.json_match import check_schema, equal_json, json_value
from asyncbench.suites.judgement import Judgement
from asyncbench.suites.math_match import check_math, equal_math, mathematics
from asyncbench.suites.number_reading import Mark, NotOneNumberError, Number, last_number, only_number
from asyncbench.suites.own_graders import added_grader, grader_in_file, judged_by_function
from asyncbench.suites.plugins import WithPackages, is_in_file, version_of
from asyncbench.suites.suite import Suite
from asyncbench.suites.text_match import contained_text, equal_text
from asyncbench.suites.thinking import THINKING_VERSION, answer_of

GRADER_VERSION = 1 + THINKING_VERSION
SEARCH_LIMIT_S = 0.1  # for one search: a pattern may be one that never ends

TOLD: Final = "told"  # in `extra`: another tool has graded the replies, whose grades count

Answer = str | Number


class _Grader(NamedTuple):
    """A problem's grader, one of ours or of somebody's own."""

    name: str
    version: int
    judge: Callable[[str, Problem], Judgement]


def check_custom(
    grader: str,
    pattern: str | None = None,
    *,
    decimal: Mark | None = None,
    json_schema: object = None,
    place: str = "custom",
) -> None:
    """Refuse a grader that cannot be used, before anything is asked.

    Raises:
        ConfigError: an unknown grader; a pattern that is missing, not valid, without a group, or given to a
            grader that has no use for one; a decimal mark or a JSON schema likewise.
    """
    if grader not in (*CUSTOM_GRADERS, *ADDED_GRADERS) and not is_in_file(grader):
        names = ", ".join(
            (*CUSTOM_GRADERS, *ADDED_GRADERS, "or a function of your own, as my_module:function")
        )
        raise ConfigError(f"{place}: unknown grader {grader!r}. Known: {names}.")
    ADDED_GRADERS.get(grader)  # imported now: what is wrong with it is told before the first call
    if grader in GRADERS:
        GRADERS[grader].check(place)
    if grader == "regex":
        _compiled(pattern, place=place)
    elif pattern is not None:
        raise ConfigError(f"{place}: grader {grader!r} takes no pattern. Remove it, or use grader 'regex'.")
    if decimal not in (None, ".", ","):
        raise ConfigError(f"{place}: `decimal` is {decimal!r}. Write '.' or ','.")
    if decimal is not None and grader != "number":
        raise ConfigError(
            f"{place}: grader {grader!r} takes no `decimal`. Remove it, or use grader 'number'."
        )
    if json_schema is not None and grader != "json":
        raise ConfigError(
            f"{place}: grader {grader!r} takes no `json_schema`. Remove it, or use grader 'json'."
        )
    if json_schema is not None:
        check_schema(json_schema, place=place)


def check_expected(grader: str, expected: str, *, decimal: Mark | None = None, place: str = "custom") -> None:
    """Refuse an expected text that is no answer to its grader: no reply could be right, or a wrong one is.

    Raises:
        ProblemSetError: there is none, or it is not one letter, or not one number.
    """
    if grader not in GRADERS:
        return  # what functions of somebody's own read, they know
    try:
        read = GRADERS[grader].read if decimal is None else partial(only_number, decimal=decimal)
        unread = read(expected) in (None, "")
    except ValueError as error:
        raise ProblemSetError(
            f"{place}: grader {grader!r} cannot read the expected value {expected!r:.80}: {error}. Correct "
            "it, use another grader, or remove the problem."
        ) from None
    if unread:
        raise ProblemSetError(
            f"{place}: grader {grader!r} finds no answer in the expected value {expected!r}. Correct it, use "
            "another grader, or remove the problem."
        )


def likely_grader(expected: Iterable[str]) -> str:
    """Return the grader that expected answers look made for: choice, number or exact."""
    candidates: dict[str, Callable[[str], bool]] = {
        "choice": lambda text: len(text.strip(" ().")) == 1 and last_letter(text) is not None,
        "number": is_number,
    }
    for text in expected:
        candidates = {name: fits for name, fits in candidates.items() if fits(text)}
        if not candidates:
            break
    return next(iter(candidates), "exact")


def is_number(text: str, decimal: Mark = ".") -> bool:
    """Return whether an expected value is one number."""
    try:
        return only_number(text, decimal) is not None
    except NotOneNumberError:
        return False


def _trimmed(text: str) -> str | None:
    return text.strip()


def is_slow(problem: Problem) -> bool:
    """Return whether grading may take seconds: a function of somebody's own may, and mathematics."""
    if problem.suite != SUITE.name:
        return False
    ours = GRADERS.get(grader_of(problem.extra) or "")
    return ours is None or ours.slow or '"json_schema"' in problem.extra


def grader_of(extra: str) -> str | None:
    """Return the grader that a custom problem names."""
    grader: str | None = json.loads(extra).get("grader")
    return grader


def grade(problem: Problem, reply: Reply | None, _style: str = "chat") -> tuple[Grade, ...]:
    """Grade the answer of a reply by the grader that the problem names; without one it is not called.

    Where another tool has graded the reply, whose grade counts, ours stands beside it, or there is none.

    Raises:
        ConfigError: the problem names a grader that `check_custom` refuses, or that is not loaded.
        TypeError, TimeoutError, RuntimeError: a function of somebody's own returned no verdict, took too
            long, or tried to end the process.
        Exception: whatever such a function raises.
    """
    told = TOLD in problem.extra and bool(json.loads(problem.extra).get(TOLD))
    if told and grader_of(problem.extra) is None:
        return ()
    grader, reply = _grader(problem.extra), answer_of(reply)
    verdict = Judgement(correct=False, answer=None, reason="error" if reply is None else "empty")
    if reply is not None and reply.text.strip():
        verdict = grader.judge(reply.text, problem)
    none = verdict.answer is None and not verdict.correct
    return (
        Grade(
            grader=grader.name,
            grader_version=grader.version,
            headline=not told,
            answer=verdict.answer,
            classification="correct" if verdict.correct else "none" if none else "wrong",
            reason=verdict.reason or ("no_answer" if none else None),
            outcome=outcome_of(reply, answer=verdict.answer, exact_match=verdict.correct),
            exact_match=verdict.correct,
            format_ok=verdict.format_ok,
            score=verdict.score,
        ),
    )


def named_grader(extra: str) -> tuple[str | None, int | None]:
    """Return the grader that a custom problem names, and its version, or None if it is not at hand here.

    Nothing of a function of somebody's own is loaded: the problem tells its source.
    """
    settings = json.loads(extra)
    if settings.get(TOLD):
        return None, None
    name = settings.get("grader")
    if name in GRADERS:
        return name, GRADERS[name].version
    if isinstance(name, str) and is_in_file(name):
        return name, version_of(settings["source"]) if "source" in settings else None
    added = ADDED_GRADERS.find(name) if isinstance(name, str) else None
    return (None, None) if added is None else (name, added.version)


@lru_cache(maxsize=1024)
def _grader(extra: str) -> _Grader:
    settings = json.loads(extra)
    name, pattern = settings.get("grader"), settings.get("pattern")
    if name in ADDED_GRADERS or (isinstance(name, str) and is_in_file(name)):
        function = ADDED_GRADERS.get(name) or grader_in_file(name, settings.get("source"))
        return _Grader(function.name, function.version, partial(judged_by_function, function))
    check_custom(name, pattern, place="a custom problem's extra")
    return _Grader(name, GRADERS[name].version, GRADERS[name].judge(settings))


# ── our graders

Judge = Callable[[str, Problem], Judgement]
Settings = Mapping[str, Any]  # Any: JSON, of a problem's `extra`


@dataclass(frozen=True, slots=True, kw_only=True)
class OurGrader:
    """A grader that comes with asyncbench."""

    reads: str  # in a reply
    right: str  # when that is right
    judge: Callable[[Settings], Judge]
    read: Callable[[str], object]  # an expected value; None or empty: there is no answer in it
    version: int = GRADER_VERSION
    slow: bool = False  # whether a reply may take seconds
    check: Callable[[str], None] = lambda _place: None  # ConfigError: what it needs is not installed


def reading_judge(read: Callable[[str], Answer | None]) -> Callable[[Settings], Judge]:
    """Return how a grader judges that reads a reply as it reads an expected value."""
    judge = partial(_compared, read, read)
    return lambda _: judge


def _number_judge(settings: Settings) -> Judge:
    mark = settings.get("decimal", ".")
    return partial(_compared, partial(last_number, decimal=mark), partial(only_number, decimal=mark))


def _json_judge(settings: Settings) -> Judge:
    schema = settings.get("json_schema")
    return equal_json if schema is None else partial(equal_json, schema=json.dumps(schema))


def _pattern_judge(settings: Settings) -> Judge:
    pattern = _compiled(settings.get("pattern"), place="regex")

    def first_group(text: str) -> str | None:
        match = pattern.search(text, timeout=SEARCH_LIMIT_S)
        return None if match is None or match[1] is None else match[1].strip()

    return partial(_compared, first_group, _trimmed)


def _compared(
    read: Callable[[str], Answer | None],
    read_expected: Callable[[str], Answer | None],
    reply: str,
    problem: Problem,
) -> Judgement:
    """Return whether what is read in a reply is one of the accepted answers."""
    try:
        answer = read(reply)
    except TimeoutError:
        return Judgement(correct=False, answer=None, reason="timed_out")
    if answer is None:
        return Judgement(correct=False, answer=None)
    for accepted in problem.accepted:
        try:
            expected = read_expected(accepted)
        except ValueError:  # an older folder holds what would be refused today: it is read as a reply is
            expected = read(accepted)
        if answer == expected:
            return Judgement(correct=True, answer=str(answer))
    return Judgement(correct=False, answer=str(answer))


def _accept(reply: str, _problem: Problem) -> Judgement:
    return Judgement(correct=bool(reply), answer=None)


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


GRADERS: Final[Mapping[str, OurGrader]] = {
    "exact": OurGrader(
        reads="the whole reply, without spaces at its ends",
        right="it equals the expected text",
        judge=reading_judge(_trimmed),
        read=_trimmed,
    ),
    "number": OurGrader(
        reads="the [number](#what-number-reads) in its last box, or else its last number",
        right="it equals the expected number exactly: `1,200.0` equals `1200`",
        judge=_number_judge,
        read=only_number,
        version=3 + THINKING_VERSION,
    ),
    "choice": OurGrader(
        reads="the [letter](#what-choice-reads) that it chooses",
        right="it is the expected letter, in upper or lower case",
        judge=lambda _: partial(_compared, last_letter, only_letter),
        read=only_letter,
        version=3 + THINKING_VERSION,
    ),
    "regex": OurGrader(
        reads="the first group of your pattern",
        right="it equals the expected text",
        judge=_pattern_judge,
        read=_trimmed,
    ),
    "text": OurGrader(
        reads="the whole reply",
        right="it equals the expected text; case, accents, punctuation and articles do not count",
        judge=lambda _: equal_text,
        read=_trimmed,
        version=2 + THINKING_VERSION,
    ),
    "contains": OurGrader(
        reads="the whole reply",
        right="the expected text stands in it as whole words, compared as `text` does",
        judge=lambda _: contained_text,
        read=_trimmed,
        version=2 + THINKING_VERSION,
    ),
    "json": OurGrader(
        reads="the JSON of the reply: all of it, a fenced block, or the last object or list in its text",
        right="it is the expected value: `1` equals `1.0`, and the order of keys does not count",
        judge=_json_judge,
        read=lambda text: text.strip() and repr(json_value(text)),
    ),
    "math": OurGrader(
        reads="the last box, formula or number, or a last line that is an expression alone",
        right="it is worth the same as the expected expression, interval, set or equation",
        judge=lambda _: equal_math,
        read=mathematics,
        version=2 + THINKING_VERSION,
        slow=True,
        check=check_math,
    ),
    "any": OurGrader(
        reads="nothing",
        right="there is a reply, whatever it says: for loads whose questions have no answer",
        judge=lambda _: _accept,
        read=_trimmed,
    ),
}
CUSTOM_GRADERS: Final = tuple(GRADERS)
ADDED_GRADERS: Final = WithPackages("graders", {}, added_grader, reserved=CUSTOM_GRADERS)


SUITE = Suite(
    name="custom",
    generator_version=1,
    prompt_version=1,
    graders=CUSTOM_GRADERS,
    shots_from_file=True,
    generate=None,
    grade=grade,
)
