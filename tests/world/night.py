"""The engine without sockets and files: plain-object providers on the virtual clock."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from asyncbench.engine.lane import Lane
from asyncbench.engine.model_client import ModelClient, MostUsd, TrialFeed
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.scheduler import Scheduler
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ProviderError, UnwrittenError
from asyncbench.pricing import RatesAt, rates_at
from asyncbench.records import (
    Condition,
    Ended,
    Event,
    Grade,
    History,
    Limits,
    Message,
    Model,
    Price,
    Problem,
    Reply,
    Request,
    Result,
    RetryPolicy,
    Sent,
    Trial,
    Usage,
    outcome_of,
)
from tests.world.clock import virtually

T = TypeVar("T")


MODEL = Model(
    alias="m",
    provider="simulated",
    model_id="m",
    api="chat",
    price=Price(input=1.0, output=2.0),
    limits=Limits(concurrency=10),
    retry=RetryPolicy(attempts=5, total_s=3600),
)
EPOCH_S = 1_000_000.0
DAY_S = 86_400.0
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RIGHT = Reply(text="4", usage=Usage(input_tokens=10, output_tokens=5))

Answer = Callable[[Request], Awaitable[Reply]]


def requests(count: int, model: Model = MODEL) -> list[Request]:
    """`count` different trials of one model."""
    return [_request(i, model) for i in range(count)]


def _request(i: int, model: Model) -> Request:
    problem = Problem(
        problem_id=f"p{i}",
        suite="s",
        task="t",
        representation="integer",
        length=1,
        question=f"q{i}",
        expected="4",
        answer_type="integer",
    )
    trial = Trial(
        trial_id=f"t{i}",
        run="r",
        sweep="r",
        problem_set="s",
        problem=problem,
        model=model,
        condition=Condition(),
    )
    return Request(trial=trial, system=None, messages=(Message(role="user", content=problem.question),))


def fresh(count: int, model: Model = MODEL) -> list[tuple[Request, History]]:
    """`count` different trials of one model of which nothing is known."""
    return [(request, History()) for request in requests(count, model)]


def night_of(
    ask: Answer,
    asked: int | Iterable[tuple[Request, History]],
    model: Model = MODEL,
    *,
    beside: Callable[[Lane], Coroutine[Any, Any, None]] | None = None,
    stop_s: float | None = None,
    **keys: Any,
) -> "Night":
    """Play a night of one model.

    Args:
        asked: so many fresh trials, or these.
        beside: what goes on beside its lane.
        stop_s: when it is stopped, with half a minute for calls in flight.
        keys: are set on its client, or on its calls or records.
    """

    async def play() -> Night:
        night = Night()
        client = night.lane(ask, fresh(asked, model) if isinstance(asked, int) else asked, model)
        client.change(**keys)
        others = [] if beside is None else [beside(night.lanes[0])]
        return await night.live(*others, stop_s=stop_s, drain_s=30.0)

    return virtually(play())


async def pausing(lane: Any, *, after_s: float, for_s: float) -> None:
    """Pause a lane after so many seconds, for so many."""
    for paused, seconds in ((True, after_s), (False, for_s)):
        await asyncio.sleep(seconds)
        for client in lane.clients:
            client.counters.paused = paused
        lane.apply_pause()


def side_by_side(
    asks: Mapping[str, Answer],
    count: int | Mapping[str, int],
    model: Model,
    *,
    one_lane: bool,
    done_before: int = 0,
) -> "Night":
    """Play a night of models by alias, each with trials of its own, in lanes of their own or in one."""

    async def play() -> Night:
        night, clients = Night(), []
        for alias, ask in asks.items():
            own = replace(model, alias=alias, limits=replace(model.limits, group="g" if one_lane else None))
            asked = [
                (replace(one, trial=replace(one.trial, trial_id=f"{alias} {one.trial.trial_id}")), known)
                for one, known in fresh(count if isinstance(count, int) else count[alias], own)
            ]
            clients.append(night.client(ask, asked, own))
            clients[-1].counters.done_before = done_before
        for some in [clients] if one_lane else [[client] for client in clients]:
            night.group(some)
        return await night.go()

    return virtually(play())


def waiting(request: Request) -> PendingTrial:
    """A trial that was read and not asked yet."""
    return PendingTrial(request=request, history=History(), characters=0, taken_s=0.0)


@dataclass(slots=True, kw_only=True)
class NightCalls:
    """The calls of a model, each as a test wants it."""

    ask: Answer
    request_for: Callable[[Trial], Request]
    rates: RatesAt
    characters: Callable[[Request], int] = lambda request: len(request.messages[0].content)
    longest: Callable[[Request], int | None] = lambda request: request.trial.model.max_tokens
    most_usd: MostUsd = lambda _, __: None
    timed_here: bool = True


@dataclass(slots=True, kw_only=True)
class NightRecords:
    """The records of a model, each as a test wants it."""

    keep: Callable[[Event], None]
    grade: Callable[[Problem, Reply | None, Condition], tuple[Grade, ...]]
    is_slow: Callable[[Problem], bool] = lambda _: False
    note_failure: Callable[[ProviderError], None] = lambda _: None
    note_suspension: Callable[[str], None] = lambda _: None
    note_fault: Callable[[Exception], None] = lambda _: None


@dataclass(slots=True, kw_only=True)
class NightClient(ModelClient):
    """A client whose calls and records a test may change."""

    calls: NightCalls
    records: NightRecords

    def change(self, **keys: Any) -> None:
        """Set each field of it, or of its calls or records."""
        for name, value in keys.items():
            owner = next(owner for owner in (self, self.calls, self.records) if hasattr(owner, name))
            setattr(owner, name, value)


@dataclass(slots=True, kw_only=True)
class Night:
    """A run of the engine and all that it kept."""

    kept: list[Event] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    lag: LoopLag = field(default_factory=lambda: LoopLag(interval_s=60.0))  # a virtual loop is never late
    seconds: float = 0.0
    scheduler: Scheduler = field(init=False)  # from `go` on

    dead: bool = False  # its process: nothing is kept any more, and no call is begun

    def keep(self, event: Event) -> None:
        if not self.dead:
            self.kept.append(event)
        elif isinstance(event, Sent):
            raise UnwrittenError("the process is dead")

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.kept if isinstance(event, kind)]

    @property
    def results(self) -> dict[str, Result]:
        found = {result.trial.trial_id: result for result in self.of(Result)}
        assert len(found) == len(self.of(Result)), "a trial ended twice"
        return found

    @property
    def sent(self) -> list[str]:
        return [sent.trial_id for sent in self.of(Sent)]

    @property
    def statuses(self) -> list[str]:
        return [ended.attempt.status for ended in self.of(Ended)]

    def lane(
        self, ask: Answer, asked: Iterable[tuple[Request, History]], model: Model = MODEL
    ) -> NightClient:
        """Add a lane of one model; return that model."""
        client = self.client(ask, asked, model)
        self.group([client])
        return client

    def group(self, clients: Sequence[ModelClient]) -> Lane:
        """Add a lane of several models."""
        lane = Lane(
            name=clients[0].model.limits.group or clients[0].model.alias,
            clients=[*clients],
            limits=clients[0].model.limits,
            notify=self.said.append,
        )
        self.lanes.append(lane)
        return lane

    def client(
        self, ask: Answer, asked: Iterable[tuple[Request, History]], model: Model = MODEL
    ) -> NightClient:
        """Return a model that is asked; of no lane yet."""
        asked = list(asked)
        by_trial = {request.trial.trial_id: (request, history) for request, history in asked}
        return NightClient(
            model=model,
            feed=TrialFeed(
                trials=iter([request.trial for request, _ in asked]),
                histories={trial_id: history for trial_id, (_, history) in by_trial.items()},
            ),
            calls=NightCalls(
                ask=ask,
                request_for=lambda trial: by_trial[trial.trial_id][0],
                rates=rates_at(model.model_id, price=model.price, vendor=None),
            ),
            records=NightRecords(keep=self.keep, grade=_grade),
            counters=Counters(planned=len(asked)),
            lag=self.lag,
            epoch_s=EPOCH_S,
            jitter=random.Random(0),
        )

    def stop(self, *, drain_s: float) -> None:
        self.scheduler.stop(drain_s=drain_s)

    async def live(
        self,
        *beside: Coroutine[Any, Any, None],
        within_s: float = 30 * DAY_S,
        stop_s: float | None = None,
        drain_s: float = 0.0,
        crash_s: float | None = None,
    ) -> "Night":
        """Run all lanes to their end, or until the run is stopped, or its process dies.

        Args:
            beside: what goes on meanwhile.
            within_s: it must be over by then.
            stop_s: seconds after its beginning at which it is stopped, with `drain_s` for calls in flight.
            crash_s: the same, at which its process dies.
        """

        async def end(after_s: float, drain_s: float, *, dead: bool) -> None:
            await asyncio.sleep(after_s)
            self.dead = dead
            self.stop(drain_s=drain_s)

        async with asyncio.timeout(within_s), asyncio.TaskGroup() as tasks:
            others = [tasks.create_task(other) for other in beside]
            if stop_s is not None:
                others.append(tasks.create_task(end(stop_s, drain_s, dead=False)))
            if crash_s is not None:
                others.append(tasks.create_task(end(crash_s, 0.0, dead=True)))
            await self.go()
            for task in others:
                task.cancel()
        return self

    async def go(self) -> "Night":
        """Run all lanes to their end."""
        self.scheduler = Scheduler(lanes=self.lanes, lag=self.lag)
        started_s = asyncio.get_running_loop().time()
        await self.scheduler.run()
        self.seconds = asyncio.get_running_loop().time() - started_s
        return self


def known_of(kept: Sequence[Event]) -> dict[str, History]:
    """What earlier starts leave to the next, by trial."""
    calls: dict[str, int] = defaultdict(int)
    ended: dict[str, Ended] = {}
    for event in kept:
        if isinstance(event, Sent):
            calls[event.trial_id] = max(calls[event.trial_id], event.attempt)
        elif isinstance(event, Ended) and event.reply:
            ended[event.attempt.trial_id] = event
    return {
        name: History(attempts=count, cost_usd=None, ended=ended.get(name)) for name, count in calls.items()
    }


def _grade(problem: Problem, reply: Reply | None, condition: Condition) -> tuple[Grade, ...]:
    assert condition.style == "chat"
    right = reply is not None and reply.text == problem.expected
    outcome = outcome_of(reply, answer=reply.text if reply else None, exact_match=right)
    answer = reply.text if reply else None
    return (
        Grade(
            grader="g",
            grader_version=1,
            headline=True,
            answer=answer,
            classification=None,
            outcome=outcome,
            exact_match=right,
        ),
    )


class Desk:
    """A provider: answers after `latency_s`, failing as the script of each question says."""

    def __init__(self, latency_s: float = 1.0, **scripts: Sequence[Exception]) -> None:
        self.latency_s = latency_s
        self.scripts: dict[str, list[Any]] = {name: [*errors] for name, errors in scripts.items()}
        self.calls: list[tuple[float, str]] = []
        self.in_flight = self.most_in_flight = 0

    async def ask(self, request: Request) -> Reply:
        question = request.messages[0].content
        self.calls.append((asyncio.get_running_loop().time(), question))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        if script := self.scripts.get(question):
            raise script.pop(0)
        return RIGHT
