"""Graders of your own: functions of a reply and its problem that return whether the reply is right.

    def grade(reply: str, problem: Problem) -> bool | dict

It returns True or False, or a dict: `correct` (True or False), and if it likes `answer` (what was read; None:
nothing) and `format_ok` (True or False). With True or False alone the whole reply is the answer.
"""

import ctypes
import json
from collections.abc import Mapping
from concurrent.futures import Future
from contextvars import copy_context
from functools import lru_cache
from threading import Thread
from typing import Any, Final, NamedTuple

from asyncbench.errors import ConfigError
from asyncbench.records import Grade, Problem, Reply, outcome_of
from asyncbench.suites.plugins import Origin, OwnFunction, WithPackages, checked_callable, is_in_file

TIME_LIMIT_S = 10.0  # for one reply
TAKES: Final = ("reply", "problem")  # what such a function is called with
_KEYS: Final = {"correct": bool, "answer": str | None, "format_ok": bool | None}
_RULE: Final = "Return True, False or {'correct': True or False, 'answer': text, 'format_ok': True or False}"
_KNOWN: dict[tuple[str, str], OwnFunction] = {}  # by name and source: a process may run several sweeps


def _added(function: object, origin: Origin) -> OwnFunction:
    call = checked_callable(function, origin.name, place="its entry point", takes=TAKES)
    return OwnFunction(name=origin.name, call=call, digest=origin.source)


OUR_GRADERS: Final = ("exact", "number", "choice", "regex")
ADDED_GRADERS: Final = WithPackages("graders", {}, _added, reserved=OUR_GRADERS)


class _OwnVerdict(NamedTuple):
    correct: bool
    answer: str | None
    format_ok: bool | None = None


def use_grader(grader: OwnFunction) -> None:
    """Make a grader known to problems that name it and its source."""
    _KNOWN[grader.name, grader.digest] = grader


def grader_of(extra: str) -> str | None:
    """Return the grader that a custom problem names."""
    grader: str | None = json.loads(extra).get("grader")
    return grader


def used_graders(named: Mapping[str, str]) -> list[OwnFunction]:
    """Return graders of somebody's own that were made known here, by name and digest."""
    return [_KNOWN[known] for known in named.items()]


@lru_cache(maxsize=1024)
def own_grader(extra: str) -> OwnFunction | None:
    """Return the grader of somebody's own that a problem names; None: it names one of ours.

    Raises:
        ConfigError: it was not made known in this process.
    """
    settings = json.loads(extra)
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


def own_grade(grader: OwnFunction, problem: Problem, reply: Reply | None) -> Grade:
    """Return what somebody's grader says of a reply; without a text it is not called.

    Raises:
        TypeError: it returned something else than a verdict.
        TimeoutError: it took too long.
        RuntimeError: it tried to end the process.
        Exception: whatever it raises.
    """
    reason = "error" if reply is None else None if reply.text.strip() else "empty"
    if reply is None or reason:
        verdict = _OwnVerdict(correct=False, answer=None)
    else:
        verdict = _checked_verdict(_verdict_of(grader, reply.text, problem), reply.text, grader.name)
    none = verdict.answer is None and not verdict.correct
    return Grade(
        grader=grader.name,
        grader_version=grader.version,
        headline=True,
        answer=verdict.answer,
        classification="correct" if verdict.correct else "none" if none else "wrong",
        reason=reason or ("no_answer" if none else None),
        outcome=outcome_of(reply, answer=verdict.answer, exact_match=verdict.correct),
        exact_match=verdict.correct,
        format_ok=verdict.format_ok,
    )


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


def _checked_verdict(verdict: Any, reply: str, name: str) -> _OwnVerdict:
    if isinstance(verdict, bool):
        return _OwnVerdict(correct=verdict, answer=reply.strip())
    if not isinstance(verdict, Mapping) or "correct" not in verdict:
        raise TypeError(f"{name} returned {verdict!r:.80}. {_RULE}.")
    for key, value in verdict.items():
        if key not in _KEYS or not isinstance(value, _KEYS[key]):
            raise TypeError(f"{name} returned {key!r}: {value!r:.80}. {_RULE}.")
    return _OwnVerdict(**verdict) if "answer" in verdict else _OwnVerdict(**verdict, answer=reply.strip())
