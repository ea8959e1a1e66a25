"""Steps of a load on a clock that runs as fast as it likes, against servers whose capacity is known."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from asyncbench.config.loading import Load
from asyncbench.config.sweep import sweep_from
from asyncbench.lanes.load.open_lane import LoadLane
from asyncbench.lanes.load.steps import Steps, StepsBefore, listed, steps_to_measure
from asyncbench.problems.traces import Trace
from asyncbench.records import (
    Attempt,
    Ended,
    Limits,
    Model,
    Reply,
    Request,
    RetryPolicy,
    StepResult,
    Trial,
)
from asyncbench.suites.requests import TrialIds
from tests.world.night import EPOCH_S, MODEL, RIGHT, Night, requests

LOADED = replace(MODEL, limits=Limits(most=5_000), retry=RetryPolicy(attempts=1), stream=True)
QUIET = {"warmup": 0, "rest": 0, "drain": 60}


def load_of(**keys: object) -> Load:
    raw = {"name": "x", "problems": [{"suite": "integer_addition", "seed": 1}], "models": ["simulated/a"]}
    load = sweep_from(raw | {"load": QUIET | keys}).load
    assert load is not None
    return load


def trials_of(model: Model, name: str, problems: int = 50) -> Iterator[Trial]:
    """The trials of a step: the same problems again and again."""
    asked = [request.trial for request in requests(problems, model)]
    for repeat in count():
        for trial in asked:
            ids = TrialIds(model, trial.condition, load=name)
            trial_id = ids.make(trial.problem.problem_id, prompt_version=1, repeat=repeat)
            yield replace(trial, trial_id=trial_id, repeat=repeat, load=name)


class Loaded(Night):
    """A night of lanes under load."""

    def add(
        self,
        ask: Callable[[Request], Awaitable[Reply]],
        load: Load,
        *,
        steps: Steps | None = None,
        repeats: int = 1,
        measured: StepsBefore | None = None,
        model: Model = LOADED,
        trace: Trace | None = None,
        **keys: Any,
    ) -> LoadLane:
        client = self.client(ask, [], model)
        client.calls.request_for = lambda trial: replace(requests(1, model)[0], trial=trial)
        client.change(**keys)
        before = measured or StepsBefore(model=model.alias)
        listing = steps_to_measure(load, repeats, before, trace=trace)
        lane = LoadLane(
            name=model.alias,
            clients=[client],
            load=load,
            steps=listed(listing, before) if steps is None else steps,
            planned_steps=listing if steps is None else None,
            trials=lambda name: trials_of(model, name),
            notify=self.said.append,
        )
        self.lanes.append(lane)  # type: ignore[arg-type]  # any lane will do
        return lane

    @property
    def steps(self) -> list[StepResult]:
        return self.of(StepResult)

    @property
    def calls(self) -> list[Attempt]:
        return [ended.attempt for ended in self.of(Ended)]


class Queue:
    """A server of so many slots, first come first served; a slot is held for as long as `service` says."""

    def __init__(self, slots: int, service: Callable[[], float]) -> None:
        self.slots, self.service = asyncio.Semaphore(slots), service

    async def ask(self, _: Request) -> Reply:
        async with self.slots:
            await asyncio.sleep(self.service())
        return RIGHT


def due_s(call: Attempt) -> float:
    assert call.due_at is not None
    return call.due_at - EPOCH_S


def latency_s(call: Attempt) -> float:
    """From when it was due to its end."""
    assert call.late_s is not None
    assert call.latency_s is not None
    return call.late_s + call.latency_s
