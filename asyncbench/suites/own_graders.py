"""Graders of somebody's own: functions that are called in their time, and whose verdicts are checked.

    def grade(reply: str, problem: Problem) -> bool | dict

It returns True or False, or a dict: `correct` (True or False), and if it likes `answer` (what was read; None:
nothing) and `format_ok` (True or False). With True or False alone the whole reply is the answer.
"""

import ctypes
from collections.abc import Mapping
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.records import Problem
from asyncbench.suites.judgement import Judgement
from asyncbench.suites.plugins import Origin, OwnFunction, checked_callable

TIME_LIMIT_S = 10.0  # for one reply
TAKES: Final = ("reply", "problem")  # what such a function is called with
_KEYS: Final = {"correct": bool, "answer": str | None, "format_ok": bool | None}
_RULE: Final = "Return True, False or {'correct': True or False, 'answer': text, 'format_ok': True or False}"
_LOADED: dict[tuple[str, str], OwnFunction] = {}  # by name and source: a process may run several sweeps


def added_grader(function: object, origin: Origin) -> OwnFunction:
    """Return a grader that a package adds, once it was checked."""
    call = checked_callable(function, origin.name, place="its entry point", takes=TAKES)
    return OwnFunction(name=origin.name, call=call, digest=origin.source)


def use_grader(grader: OwnFunction) -> None:
    """Make a grader known to problems that name it and its source."""
    _LOADED[grader.name, grader.digest] = grader


def used_graders(named: Mapping[str, str]) -> list[OwnFunction]:
    """Return graders of somebody's own that were made known here, by name and digest."""
    return [_LOADED[known] for known in named.items()]


def grader_in_file(name: str, digest: str | None) -> OwnFunction:
    """Return a grader of somebody's own that was made known here.

    Raises:
        ConfigError: it was not.
    """
    if (name, digest or "") not in _LOADED:
        raise ConfigError(
            f"grader {name!r} is not loaded. Run the sweep, or `asyncbench regrade`, to load it."
        )
    return _LOADED[name, digest or ""]


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


def by_function(grader: OwnFunction, reply: str, problem: Problem) -> Judgement:
    """Return what somebody's function says of a reply, once it was checked."""
    verdict = _verdict_of(grader, reply, problem)
    if isinstance(verdict, bool):
        verdict = {"correct": verdict}
    if not isinstance(verdict, Mapping) or "correct" not in verdict:
        raise TypeError(f"{grader.name} returned {verdict!r:.80}. {_RULE}.")
    for key, value in verdict.items():
        if key not in _KEYS or not isinstance(value, _KEYS[key]):
            raise TypeError(f"{grader.name} returned {key!r}: {value!r:.80}. {_RULE}.")
    return Judgement(**{"answer": reply.strip(), **verdict})
