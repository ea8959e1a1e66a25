"""The way of a trial: seven functions of ours stand between its problem set and the call of the SDK.

A station gets the trial (a problem, trial, request or turn) and gives it on: it returns or yields it,
takes it from an iterator or a queue, or calls the next station with it. A function that gets it as argument
and answers something else (may it be asked, what may it cost, what is its body) is asked on the way.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anthropic
import openai
import pytest

import asyncbench
from asyncbench import run_sweep
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.scheduler import Scheduler
from asyncbench.records import Problem, Request, Trial
from asyncbench.run.summary import Exit
from tests.sweep_files import entry, problem_set, simulator, sweep

OURS = str(Path(asyncbench.__file__).parent)
FORMS = (Problem, Trial, Request, PendingTrial)
STATIONS = [
    "ProblemRows.problem",
    "trials_of",
    "request_for",
    "TrialQueue.feed",
    "Lane._dispatch",
    "Lane._attempt",
    "SdkProvider.ask",
]
MOST_ASKED = 25  # functions that are asked on the way, with a budget and a stopping rule


class Way:
    """Watches which functions of ours a trial passes, from when lanes begin until the SDK is called."""

    def __init__(self, post: Any) -> None:
        self._post, self._under_way, self.called = post.__code__, False, False
        self.stations: dict[str, None] = {}  # in order
        self.asked: set[str] = set()

    def see(self, frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        if event == "call" and code is Scheduler.run.__code__:
            self._under_way = True
        if not self._under_way or self.called:
            return
        if event == "call" and code is self._post:
            self.called = True
            for caller in reversed([*_callers(frame)]):
                if _is_ours(caller) and any(map(_is_it, caller.f_locals.values())):
                    self.stations[_name(caller)] = None
        elif event in ("call", "return") and _is_ours(frame):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = [frame.f_locals.get(name) for name in names]
            held = [held for name, held in frame.f_locals.items() if name not in names]
            if event == "return" and _is_it(value):
                self.stations[_name(frame)] = None
            elif any(map(_is_it, given)):
                self.asked.add(_name(frame))
            elif any(map(_is_it, held)):  # it took it out of a queue or an iterator
                self.stations[_name(frame)] = None


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _is_ours(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith(OURS) and "/simulator/" not in path


def _is_it(value: object) -> bool:
    return any(isinstance(one, FORMS) for one in (value if isinstance(value, tuple | list) else [value]))


def _name(frame: FrameType) -> str:
    """A function and what is written within it are one."""
    return frame.f_code.co_qualname.split(".<locals>")[0]


@contextmanager
def watched(way: Way) -> Iterator[None]:
    before = sys.getprofile()
    threading.setprofile(way.see)
    sys.setprofile(way.see)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


@pytest.mark.parametrize(
    ("model", "post"),
    [
        ("simulated/oracle", openai.AsyncOpenAI.post),
        ("simulated-anthropic/oracle", anthropic.AsyncAnthropic.post),
    ],
    ids=["openai", "anthropic"],
)
def test_seven_functions_hand_a_trial_on_from_its_problem_set_to_the_sdk(tmp_path, model, post):
    problems, way = problem_set(tmp_path, trials=1), Way(post)
    with simulator(problems) as server:
        held = {"max_tokens": 64, "budget_usd": 1.0, "price": {"input": 1.0, "output": 2.0}}
        asked = sweep(tmp_path / "out", problems, entry(server, model, **held), stop_when={"ci_width": 0.2})
        with watched(way):
            summary = asyncio.run(run_sweep(asked, limit=1))
    assert (summary.exit, way.called) == (Exit.COMPLETE, True)
    assert list(way.stations) == STATIONS
    assert 0 < len(way.asked - set(STATIONS)) <= MOST_ASKED, way.asked
