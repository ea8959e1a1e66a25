"""A lane that a worker runs as a whole, as its run sees it: it reads trials, deals them, and counts."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Self

from asyncbench.cluster.messages import (
    ClosedTrial,
    DealtTrial,
    JournalNews,
    LaneOrders,
    LaneReport,
    LaneStart,
)
from asyncbench.engine.budget import Hold
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.stopping import ConditionCell
from asyncbench.engine.telemetry import Counters, change_alone
from asyncbench.engine.trial_queue import ModelClient, PendingTrial
from asyncbench.records import History, Limits, Stop

CHUNK: Final = 256  # trials that a worker may hold beside those that it has begun
AHEAD: Final = 2 * CHUNK  # trials of a model that wait to be dealt
FIGURES: Final = (
    *("attempts", "in_flight", "rate_limited", "input_tokens", "output_tokens", "cost_usd", "unpriced"),
    *("lost", "grader_errors", "faults"),
)  # of `Counters`, that a worker counts


class DealtModel(LaneModel):
    """A model of a lane that a worker runs."""

    def __init__(self, asker: ModelClient) -> None:
        self.dealt: dict[int, PendingTrial] = {}  # not closed yet, in planned order
        self.reported = Counters()  # by the worker, so far
        super().__init__(asker)

    @property
    def finished(self) -> bool:
        """Whether nothing more is to be asked, and nothing is out."""
        return self.exhausted and not self.dealt

    def deal(self, count: int) -> Iterator[PendingTrial]:
        """Take the next trials."""
        turns = self.queue.turns
        for _ in range(min(count, len(turns))):
            yield turns.popleft()
        if count and len(turns) <= AHEAD // 2:
            self.queue.hungry.set()

    def count(self, now: Counters) -> None:
        """Add what a worker counted since its last report."""
        for name in FIGURES:
            more = getattr(now, name) - getattr(self.reported, name)
            setattr(self.counters, name, getattr(self.counters, name) + more)
        self.counters.waits_for = now.waits_for
        self.counters.latest_failure = now.latest_failure or self.counters.latest_failure
        self.counters.client_bound |= now.client_bound
        self.reported = now

    def lose_calls(self, lost: int) -> None:
        """Count calls of a worker that died: nobody knows what they cost, and of some, how they ended."""
        calls = self.reported.in_flight
        self.counters.in_flight -= calls
        self.counters.attempts += calls
        self.counters.unpriced += calls
        self.counters.lost += min(lost, calls)
        self.reported, self.counters.waits_for = Counters(), None

    def _asks(self) -> bool:
        waits = len(self.dealt) > self.counters.in_flight or bool(self.queue.turns) or not self.queue.dry
        return waits and not self.counters.over


@dataclass(slots=True)
class _Known:
    """What the worker of a lane knows."""

    limits: Limits
    paused: bool = False
    stop: bool = False
    dry: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    stops: set[tuple[str, ConditionCell]] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class DealtLane:
    """The queue of one model, or of all models of one group. Its limits are with its worker."""

    name: str
    askers: list[ModelClient]
    limits: Limits
    number_of: Callable[[], int]  # the next one, of all trials of the coordinator
    turn: str | None = None  # lanes with the same one run one after the other; None: it waits for none
    runs: bool = True  # changes can be noted
    worker: str | None = None  # None: it has none
    taken_until_s: list[float] = field(default_factory=list)  # slots of calls of workers that died
    _open: bool = False
    _stopped: bool = False
    _known: _Known = field(init=False)
    _start: LaneStart | None = None  # that its worker does not know yet
    _may_stop: bool = False  # an answer came since anybody looked which cells are stopped
    _models: dict[str, DealtModel] = field(default_factory=dict)  # by alias
    _in_force: Mapping[str, float] | None = None  # as its worker says
    _feeds: list[asyncio.Task[None]] = field(default_factory=list)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Read trials for whoever runs the lane, until every trial is closed, or until stopped."""
        self._models = {asker.model.alias: DealtModel(asker) for asker in self.askers}
        self._open = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for model in self._models.values():
                    feeding = model.queue.feed(lambda: AHEAD, self.look)
                    self._feeds.append(tasks.create_task(feeding, name=f"feed {self.name}"))
                if self._stopped:
                    self.stop()
                await self._over.wait()
                self._end_feeds()
        finally:
            self._open = False

    def stop(self) -> None:
        """Begin nothing more; what is in flight goes on to its end."""
        self._stopped = True
        self._end_feeds()
        self.look()

    def _end_feeds(self) -> None:
        for task in self._feeds:
            task.cancel()

    @property
    def steered(self) -> Self:
        """Its limits can be set."""
        return self

    def heed_pause(self) -> None:
        """Do nothing: its worker hears of it with the next orders."""

    def note(self, change: str) -> None:
        """Write down what a person changes, before it is."""
        asker = self.askers[0]
        at = asker.epoch_s + asyncio.get_running_loop().time()
        asker.keep(change_alone(self.name, change, at=at))

    def set_limits(self, limits: Limits) -> None:
        """Go on with other limits."""
        self.limits = limits

    def in_force(self) -> Mapping[str, float]:
        """Return its limits a minute: as set or told, and the fraction of it."""
        if self._in_force is not None:
            return self._in_force
        return {what: most * self.limits.fraction for what, most in self.limits.per_minute.items() if most}

    # ── with its worker ──────────────────────────────────────────────────────────────────────

    @property
    def waits(self) -> bool:
        """Whether it needs a worker."""
        turns = any(model.queue.turns for model in self._models.values())
        return self._open and self.worker is None and turns and not self._stopped

    def begin(self, worker: str, at_s: float) -> None:
        """Give the lane to a worker."""
        self.worker, self._known, self._may_stop = worker, _Known(self.limits), True
        going = [model.asker for model in self._models.values() if not model.counters.over]
        self._start = LaneStart(
            models=[asker.model for asker in going],
            limits=self.limits,
            budgeted=frozenset(asker.model.alias for asker in going if asker.account is not None),
            answered_before=frozenset(asker.model.alias for asker in going if _answered(asker)),
            stoppable=frozenset(asker.model.alias for asker in going if asker.stopping is not None),
            taken_s=[until_s - at_s for until_s in self.taken_until_s if until_s > at_s],
        )

    def orders(self, room: Mapping[str, int]) -> LaneOrders | None:
        """Return what its worker does not know yet; None: it knows all."""
        told, paused = self._known, any(asker.counters.paused for asker in self.askers)
        start, self._start = self._start, None
        if start is not None:
            room = {model.alias: CHUNK for model in start.models}
        trials = [] if self._stopped else [*self._dealt(room)]
        orders = LaneOrders(
            start=start,
            trials=trials,
            dry=frozenset(alias for alias, model in self._models.items() if _is_dry(model)) - told.dry,
            stops=self._new_stops(),
            suspended={
                alias: model.counters.suspended
                for alias, model in self._models.items()
                if model.counters.suspended is not None and alias not in told.suspended
            },
            paused=None if paused == told.paused else paused,
            limits=None if self.limits == told.limits else self.limits,
            stop=self._stopped and not told.stop,
        )
        told.limits, told.paused, told.stop = self.limits, paused, self._stopped
        told.dry |= orders.dry
        told.suspended |= orders.suspended.keys()
        told.stops |= {(alias, cell) for alias, cells in orders.stops.items() for cell in cells}
        return None if orders == LaneOrders() else orders

    def _dealt(self, room: Mapping[str, int]) -> Iterator[DealtTrial]:
        for alias, model in self._models.items():
            stopping = model.asker.stopping
            for turn in model.deal(room.get(alias, 0)):
                trial, number = turn.request.trial, self.number_of()
                model.dealt[number] = turn
                anyway = stopping is not None and stopping.asks_anyway(trial)
                yield DealtTrial(number=number, trial=trial, history=turn.history, anyway=anyway)

    def _new_stops(self) -> dict[str, dict[ConditionCell, Stop]]:
        found: dict[str, dict[ConditionCell, Stop]] = {}
        if not self._may_stop:
            return found
        self._may_stop = False
        for alias, model in self._models.items():
            stopping = model.asker.stopping
            for cell, stop in stopping.stops().items() if stopping is not None else ():
                if (alias, cell) not in self._known.stops:
                    found.setdefault(alias, {})[cell] = stop
        return found

    def take(self, report: LaneReport, *, leaving: bool) -> None:
        """Take in what its worker did, which may be leaving."""
        self._in_force = report.in_force
        self._may_stop |= bool(report.closed)
        for number, closed in report.closed.items():
            model = self._owner(number)
            _close(model, model.dealt.pop(number), closed)
        for number in report.skipped:
            model = self._owner(number)
            _skip(model, model.dealt.pop(number))
        for alias, now in report.counters.items():
            _heed(self._models[alias], now)
        if report.left is not None:
            self._leave(report.left, leaving=leaving)
        self.look()

    def _owner(self, number: int) -> DealtModel:
        return next(model for model in self._models.values() if number in model.dealt)

    def _leave(self, left: Mapping[int, History], *, leaving: bool) -> None:
        """Take back what a worker did not begin. What it left begun is for another run, or else worker."""
        self.worker = None
        for model in self._models.values():
            for number in left.keys() & model.dealt.keys():
                turn = model.dealt[number]
                turn.history = _continued(turn.history, left[number])
                if not leaving:
                    del model.dealt[number]
            self._take_back(model)
            model.reported = Counters()

    def lose(self, news: JournalNews | None, at_s: float, *, dead: bool) -> None:
        """Take back the trials of a lost worker, with what its journal tells of them, if it was read."""
        self.worker = None
        for model in self._models.values():
            if self.limits.concurrency and not dead:
                until_s = at_s + model.asker.model.timeouts.total
                self.taken_until_s += [until_s] * model.reported.in_flight
            if news is not None:
                _learn(model, news)
            begun = [*_begun(model, news)]
            for turn in begun:
                turn.tries += 1
            model.lose_calls(len([turn for turn in begun if not turn.answered]))
            self._take_back(model)
        self.look()

    def _take_back(self, model: DealtModel) -> None:
        turns, model.dealt = [*model.dealt.values()], {}
        most = model.asker.model.retry.attempts
        for turn in reversed(turns):
            # one that was begun so often when its worker died is left to another run: it may be the cause
            if not model.queue.skip(turn) and turn.tries < most:
                model.queue.put_back(turn)

    def look(self) -> None:
        """End the lane if nothing is left to do."""
        finished = all(model.finished for model in self._models.values())
        if self._open and self.worker is None and (self._stopped or finished):
            self._over.set()


def _answered(asker: ModelClient) -> bool:
    outcomes = asker.counters.outcomes
    return asker.answered_before or outcomes.total() > asker.counters.failed - asker.counters.failed_before


def _is_dry(model: DealtModel) -> bool:
    return model.queue.dry and not model.queue.turns


def _close(model: DealtModel, turn: PendingTrial, closed: ClosedTrial) -> None:
    model.counters.outcomes[closed.outcome] += 1
    if model.asker.stopping is not None:
        model.asker.stopping.close(turn.request.trial.trial_id, right=closed.right)


def _skip(model: DealtModel, turn: PendingTrial) -> None:
    model.counters.skipped += 1
    if model.asker.stopping is not None:
        model.asker.stopping.skipped(turn.request.trial)


def _learn(model: DealtModel, news: JournalNews) -> None:
    """Take in what the journal of a dead worker tells of its trials."""
    for number, turn in [*model.dealt.items()]:
        trial_id = turn.request.trial.trial_id
        if (closed := news.closed.get(trial_id)) is not None:
            _close(model, model.dealt.pop(number), closed)
        elif trial_id in news.skipped:
            _skip(model, model.dealt.pop(number))
        elif (since := news.histories.get(trial_id)) is not None:
            turn.history = _continued(turn.history, since)


def _continued(before: History, since: History) -> History:
    """Return what is known of a trial with what a worker did since, which numbered its calls on."""
    costs = (before.cost_usd, since.cost_usd)
    return replace(since, cost_usd=None if None in costs else sum(filter(None, costs), 0.0))


def _begun(model: DealtModel, news: JournalNews | None) -> Iterator[PendingTrial]:
    """Yield the trials that a dead worker had begun; if its journal was not read, about as many."""
    if news is None:
        yield from islice(model.dealt.values(), model.reported.in_flight + 1)  # one more: it may be graded
        return
    others = list[PendingTrial]()
    for turn in model.dealt.values():
        if turn.request.trial.trial_id in news.histories:
            yield turn
        elif turn.answered:
            others.append(turn)
    yield from others[:1]  # what an earlier worker was told is graded one by one


def _heed(model: DealtModel, now: Counters) -> None:
    """Take in how a model gets on, and whether it was given up."""
    model.count(now)
    if now.suspended is not None and model.counters.suspended is None:
        model.queue.suspend(now.suspended)
    if now.budget_stopped and not model.counters.budget_stopped:
        model.queue.stop_for_money()
        model.queue.turns.clear()  # answers that are not graded: its worker takes no more
        if (account := model.asker.account) is not None:
            account.stop(Hold(account.latest or 0, account.latest or 0))
