"""A lane that a worker runs, seen from its run: it reads trials, deals them, and counts."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Self

from asyncbench.cluster.messages import (
    DealtTrial,
    JournalSummary,
    LaneOrders,
    LaneReport,
    LaneStart,
)
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.scheduler import note_alone
from asyncbench.engine.stopping import ConditionCell, right_of
from asyncbench.engine.telemetry import Counters
from asyncbench.records import History, Limits, Outcome, Stop

CHUNK: Final = 256  # trials that a worker may hold beside those that it has begun
AHEAD: Final = 2 * CHUNK  # trials of a model that wait to be dealt
FIGURES: Final = (
    *("attempts", "in_flight", "rate_limited", "input_tokens", "output_tokens", "cost_usd", "unpriced"),
    *("lost", "scored", "score", "grader_errors", "faults"),
)  # of `Counters`, that a worker counts


class DealtModel(LaneModel):
    """A model of a lane that a worker runs."""

    def __init__(self, client: ModelClient) -> None:
        self.dealt: dict[int, PendingTrial] = {}  # not closed yet, in planned order
        self.reported = Counters()  # by the worker, so far
        super().__init__(client)

    @property
    def finished(self) -> bool:
        """Whether nothing more is to be asked, and nothing is out."""
        return self.exhausted and not self.dealt

    def deal(self, count: int) -> Iterator[PendingTrial]:
        """Take the next trials."""
        for _ in range(min(count, len(self.queue.pending))):
            yield self.queue.take(AHEAD)

    def count(self, now: Counters) -> None:
        """Add what a worker counted since its last report."""
        for name in FIGURES:
            more = getattr(now, name) - getattr(self.reported, name)
            setattr(self.counters, name, getattr(self.counters, name) + more)
        self.counters.notes += now.notes - self.reported.notes
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
        waits = len(self.dealt) > self.counters.in_flight or bool(self.queue.pending) or not self.queue.dry
        return waits and not self.counters.over


@dataclass(slots=True)
class _WorkerView:
    """The state of a lane as its worker knows it."""

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
    clients: list[ModelClient]
    limits: Limits
    number_of: Callable[[], int]  # the next one, of all trials of the coordinator
    serial_group: str | None = (
        None  # lanes with the same one run one after the other; None: it waits for none
    )
    runs: bool = True  # changes can be noted
    worker: str | None = None  # None: it has none
    taken_until_s: list[float] = field(default_factory=list)  # slots of calls of workers that died
    _open: bool = False
    _stopped: bool = False
    _view: _WorkerView = field(init=False)
    _start: LaneStart | None = None  # that its worker does not know yet
    _may_stop: bool = False  # an answer came since the stopped cells were listed last
    _models: dict[str, DealtModel] = field(default_factory=dict)  # by alias
    _in_force: Mapping[str, float] | None = None  # as its worker says
    _feeds: list[asyncio.Task[None]] = field(default_factory=list)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Read trials for whoever runs the lane, until every trial is closed, or until stopped."""
        self._models = {client.model.alias: DealtModel(client) for client in self.clients}
        self._open = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for model in self._models.values():
                    feeding = model.queue.feed(lambda: AHEAD, self.end_if_done)
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
        self.end_if_done()

    def _end_feeds(self) -> None:
        for task in self._feeds:
            task.cancel()

    @property
    def steered(self) -> Self:
        """Its limits can be set."""
        return self

    def apply_pause(self) -> None:
        """Do nothing: its worker gets it with the next orders."""

    def note(self, change: str) -> None:
        """Write down what a person changes, before it is."""
        note_alone(self, change)

    def set_limits(self, limits: Limits) -> None:
        """Set other limits; its worker gets them with the next orders."""
        self.limits = limits

    def limits_in_force(self) -> Mapping[str, float]:
        """Return its limits a minute: as set or told, and the fraction of it."""
        if self._in_force is not None:
            return self._in_force
        return {what: limit * self.limits.fraction for what, limit in self.limits.per_minute.items() if limit}

    # ── Exchange with its worker ─────────────────────────────────────────────────────────────────

    @property
    def waits(self) -> bool:
        """Whether the lane needs a worker."""
        has_trials = any(model.queue.pending for model in self._models.values())
        return self._open and self.worker is None and has_trials and not self._stopped

    def begin(self, worker: str, at_s: float) -> None:
        """Give the lane to a worker."""
        self.worker, self._view, self._may_stop = worker, _WorkerView(self.limits), True
        going = [model.client for model in self._models.values() if not model.counters.over]
        answered = [
            client.model.alias
            for client in going
            if client.answered_before
            or client.counters.outcomes.total() > client.counters.outcomes[Outcome.FAILED]
        ]
        self._start = LaneStart(
            models=[client.model for client in going],
            limits=self.limits,
            budgeted=frozenset(client.model.alias for client in going if client.account is not None),
            answered_before=frozenset(answered),
            stoppable=frozenset(client.model.alias for client in going if client.stopping is not None),
            taken_s=[until_s - at_s for until_s in self.taken_until_s if until_s > at_s],
        )

    def orders(self, room: Mapping[str, int]) -> LaneOrders | None:
        """Return the orders that the worker of the lane does not know yet, or None if it knows all."""
        view, paused = self._view, any(client.counters.paused for client in self.clients)
        start, self._start = self._start, None
        if start is not None:
            room = {model.alias: CHUNK for model in start.models}

        # Trials for which the worker has room get numbers.
        trials = list[DealtTrial]()
        for alias, model in self._models.items() if not self._stopped else ():
            stopping = model.client.stopping
            for pending in model.deal(room.get(alias, 0)):
                trial, number = pending.request.trial, self.number_of()
                model.dealt[number] = pending
                anyway = stopping is not None and trial.trial_id in stopping.anyway
                trials.append(DealtTrial(number=number, trial=trial, history=pending.history, anyway=anyway))

        orders = LaneOrders(
            start=start,
            trials=trials,
            dry=frozenset(
                alias
                for alias, model in self._models.items()
                if model.queue.dry and not model.queue.pending and alias not in view.dry
            ),
            stops=self._new_stops(),
            suspended={
                alias: model.counters.suspended
                for alias, model in self._models.items()
                if model.counters.suspended is not None and alias not in view.suspended
            },
            paused=None if paused == view.paused else paused,
            limits=None if self.limits == view.limits else self.limits,
            stop=self._stopped and not view.stop,
        )
        view.limits, view.paused, view.stop = self.limits, paused, self._stopped
        view.dry |= orders.dry
        view.suspended |= orders.suspended.keys()
        view.stops |= {(alias, cell) for alias, cells in orders.stops.items() for cell in cells}
        return None if orders == LaneOrders() else orders

    def _new_stops(self) -> dict[str, dict[ConditionCell, Stop]]:
        """Return the cells that a rule stops now, and of which the worker does not know."""
        new_stops: dict[str, dict[ConditionCell, Stop]] = {}
        if not self._may_stop:
            return new_stops
        self._may_stop = False
        for alias, model in self._models.items():
            stopping = model.client.stopping
            for cell, stop in stopping.stops().items() if stopping is not None else ():
                if (alias, cell) not in self._view.stops:
                    new_stops.setdefault(alias, {})[cell] = stop
        return new_stops

    def take(self, report: LaneReport, *, leaving: bool) -> None:
        """Take in what the worker of the lane did; `leaving`: it takes no more trials."""
        self._in_force = report.in_force
        self._may_stop |= bool(report.closed)
        for number, closed in report.closed.items():
            model = self._owner(number)
            _close(model, model.dealt.pop(number), closed)
        for number in report.skipped:
            model = self._owner(number)
            _skip(model, model.dealt.pop(number))
        for alias, now in report.counters.items():
            model = self._models[alias]
            model.count(now)
            if now.suspended is not None and model.counters.suspended is None:
                model.queue.suspend(now.suspended)
            if now.budget_stopped and not model.counters.budget_stopped:
                model.queue.stop_for_money()
                model.queue.pending.clear()  # answers that are not graded: its worker takes no more
                if (account := model.client.account) is not None:
                    account.stop(account.latest or 0)
        if report.begun is not None:  # it has ended there: what it did not begin comes back
            self.worker = None
            for model in self._models.values():
                for number in report.begun.keys() & model.dealt.keys():
                    pending = model.dealt[number]
                    pending.history = _continue_history(pending.history, report.begun[number])
                    if not leaving:
                        del model.dealt[number]  # another run asks it, else another worker
                self._take_back(model)
                model.reported = Counters()
        self.end_if_done()

    def _owner(self, number: int) -> DealtModel:
        return next(model for model in self._models.values() if number in model.dealt)

    def lose(self, journal: JournalSummary | None, at_s: float, *, dead: bool) -> None:
        """Take back the trials of a lost worker, with what its journal tells of them, if it was read."""
        self.worker = None
        for model in self._models.values():
            if self.limits.concurrency and not dead:
                until_s = at_s + model.client.model.timeouts.total
                self.taken_until_s += [until_s] * model.reported.in_flight
            begun = list[PendingTrial]()  # by the dead worker; if its journal was not read, about as many
            if journal is None:
                begun += islice(model.dealt.values(), model.reported.in_flight + 1)  # one more may be graded
            else:
                # The journal tells which trials are closed or skipped, and what the others have behind them.
                graded = list[PendingTrial]()
                for number, pending in [*model.dealt.items()]:
                    trial_id = pending.request.trial.trial_id
                    if (closed := journal.closed.get(trial_id)) is not None:
                        _close(model, model.dealt.pop(number), closed)
                    elif trial_id in journal.skipped:
                        _skip(model, model.dealt.pop(number))
                    elif (since := journal.histories.get(trial_id)) is not None:
                        pending.history = _continue_history(pending.history, since)
                        begun.append(pending)
                    elif pending.answered:
                        graded.append(pending)
                begun += graded[:1]  # what an earlier worker was told is graded one by one
            for pending in begun:
                pending.tries += 1
            model.lose_calls(len([pending for pending in begun if not pending.answered]))
            self._take_back(model)
        self.end_if_done()

    def _take_back(self, model: DealtModel) -> None:
        """Put the trials that are not closed back into the queue, in planned order."""
        dealt, model.dealt = [*model.dealt.values()], {}
        most_tries = model.client.model.retry.attempts
        for pending in reversed(dealt):
            # one that was begun so often when its worker died is left to another run: it may be the cause
            if not model.queue.skip(pending) and pending.tries < most_tries:
                model.queue.put_back(pending)

    def end_if_done(self) -> None:
        """End the lane if nothing is left to do."""
        finished = all(model.finished for model in self._models.values())
        if self._open and self.worker is None and (self._stopped or finished):
            self._over.set()


def _close(model: DealtModel, pending: PendingTrial, outcome: Outcome) -> None:
    model.counters.outcomes[outcome] += 1
    if model.client.stopping is not None:
        model.client.stopping.close(pending.request.trial.trial_id, right=right_of(outcome))


def _skip(model: DealtModel, pending: PendingTrial) -> None:
    model.counters.skipped += 1
    if model.client.stopping is not None:
        model.client.stopping.skipped(pending.request.trial)


def _continue_history(before: History, since: History) -> History:
    """Return the history of a trial with what a worker added; the worker went on counting its attempts."""
    costs = (before.cost_usd, since.cost_usd)
    return replace(since, cost_usd=None if None in costs else sum(filter(None, costs), 0.0))
