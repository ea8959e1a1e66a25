"""Graders of somebody's own: functions that are called in their time, and whose verdicts are checked.

    def grade(reply: str, problem: Problem) -> bool | float | dict

It returns True or False, or a score between 0 and 1, or a dict: `correct` or `score` or both, and if it likes
`answer` (what was read; None: nothing) and `format_ok` (True or False). Without an `answer` it is the whole
reply. A score alone is correct if it is 1. Numbers and truths of numpy are taken as those of Python.
"""

import ctypes
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from decimal import Decimal
from numbers import Real
from threading import Thread
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.records import Problem
from asyncbench.suites.judgement import Judgement
from asyncbench.suites.plugins import Origin, OwnFunction, checked_callable

TIME_LIMIT_S = 10.0  # for one reply
TAKES: Final = ("reply", "problem")  # what such a function is called with
_RULE: Final = (
    "Return True, False, a score between 0 and 1, or {'correct': True or False, 'score': a number between 0 "
    "and 1, 'answer': text, 'format_ok': True or False} with `correct` or `score` or both"
)
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
    return [_LOADED[name, digest] for name, digest in named.items()]


def grader_in_file(name: str, digest: str | None) -> OwnFunction:
    """Return the grader of somebody's own file that `use_grader` made known.

    Raises:
        ConfigError: it was not.
    """
    if (name, digest or "") not in _LOADED:
        raise ConfigError(
            f"grader {name!r} is not loaded. Run the sweep, or `asyncbench regrade`, to load it."
        )
    return _LOADED[name, digest or ""]


def _verdict_of(grader: OwnFunction, reply: str, problem: Problem) -> Any:
    """Return the verdict of a grader, within its time.

    It runs in a daemon thread of its own: it can neither end this process nor keep it from ending, and an
    interrupt that it raises cannot be taken for Ctrl-C.
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
            # End the thread by SystemExit as soon as it runs Python code: it would slow down all others.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
            )
    if error is not None and not isinstance(error, Exception):
        raise RuntimeError(f"{grader.name} raised {error!r}. {_RULE}.") from error
    return ended.result()  # or raise what the grader raised


def judged_by_function(grader: OwnFunction, reply: str, problem: Problem) -> Judgement:
    """Return the judgement of somebody's function on a reply, once it was checked."""
    returned = _verdict_of(grader, reply, problem)
    verdict = returned
    if not isinstance(returned, Mapping):
        key = "correct" if _truth(returned) is not None else "score"
        verdict = {key: returned}
    checked: dict[str, Any] = {}
    for key, value in verdict.items():
        check = _CHECKS.get(key)
        checked[key] = None if check is None else check(value)
        if checked[key] is None and not (key in ("answer", "format_ok") and value is None):
            raise TypeError(f"{grader.name} returned {key!r}: {value!r:.80}. {_RULE}.")
    if not {"correct", "score"} & checked.keys():
        raise TypeError(f"{grader.name} returned {returned!r:.80}. {_RULE}.")
    correct = checked.get("correct", checked.get("score") == 1)
    return Judgement(**{"answer": reply.strip(), **checked, "correct": correct})


def _truth(value: object) -> bool | None:
    """Return True or False, also for numpy's booleans, or None for anything else."""
    is_numpy = type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")
    return bool(value) if is_numpy or isinstance(value, bool) else None


def _score(value: object) -> float | None:
    """Return a number from 0 to 1, or None for anything else."""
    if _truth(value) is not None or not isinstance(value, Real | Decimal):
        return None
    number = float(value)
    return number if 0 <= number <= 1 else None  # NaN fails both comparisons


_CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {  # each returns None for what it refuses
    "correct": _truth,
    "score": _score,
    "answer": lambda value: value if isinstance(value, str) else None,
    "format_ok": _truth,
}
