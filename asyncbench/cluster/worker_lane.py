"""A lane inside a worker: it makes real calls for trials that come from the coordinator."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from asyncbench.cluster.dealt_lane import CHUNK
from asyncbench.cluster.leases import LeasedAccount
from asyncbench.cluster.messages import DealtTrial, LaneOrders, LaneReport, LaneStart
from asyncbench.engine.lane import Lane
from asyncbench.engine.stopping import Stopping
from asyncbench.engine.telemetry import Counters
from asyncbench.engine.trial_queue import ModelClient
from asyncbench.errors import ProviderError, UnsentError
from asyncbench.records import Ended, Event, History, Outcome, Result, Sent, Skipped, StopWhen, Trial

RETRY_S: Final = 0.25  # while nobody has heard of the coordinator
FEWEST: Final = 2  # calls for which there is to be money
FEW: Final = CHUNK // 4  # trials that were not begun: more are asked for at once


@dataclass(slots=True, kw_only=True)
class TrialBuffer:
    """The trials of one model of a lane."""

    waiting: deque[DealtTrial] = field(default_factory=deque)  # not read yet
    dealt: dict[str, DealtTrial] = field(default_factory=dict)  # those that are not closed, by trial
    begun: dict[str, History] = field(default_factory=dict)  # what is known of trials that are not closed
    calls: int = 0  # begun at the report before
    dry: bool = False  # no more come
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def unbegun(self) -> int:
        """Trials that were not begun."""
        return len(self.dealt) - len(self.begun)

    def begin(self, sent: Sent) -> None:
        """Note that a call is made."""
        before = self.begun.get(sent.trial_id, History())
        self.begun[sent.trial_id] = replace(before, attempts=sent.attempt)

    def end(self, ended: Ended) -> None:
        """Note how a call ended."""
        trial_id, cost = ended.attempt.trial_id, ended.attempt.cost_usd
        before = self.begun[trial_id]
        self.begun[trial_id] = replace(
            before,
            cost_usd=None if cost is None or before.cost_usd is None else before.cost_usd + cost,
            ended=ended if ended.reply is not None else None,
        )

    async def read(self) -> Sequence[Trial]:
        """Return the next trials, as soon as there are any; none when no more come."""
        while not self.waiting and not self.dry:
            self.changed.clear()
            await self.changed.wait()
        trials = [dealt.trial for dealt in self.waiting]
        self.waiting.clear()
        return trials


class WorkerLane:
    """Runs a lane and tells what becomes of it.

    Args:
        start: the lane.
        clients: of its models; this lane gives them their trials, histories, accounts and rules.
        accounts: of those that a budget holds, by alias.
        silent: whether the coordinator was not heard for too long.
        wake: has a report sent soon.
    """

    def __init__(
        self,
        name: str,
        start: LaneStart,
        clients: Sequence[ModelClient],
        *,
        accounts: Mapping[str, LeasedAccount],
        notify: Callable[[str], None],
        on_failure: Callable[[str, ProviderError], None],
        silent: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        self._silent, self._wake = silent, wake
        self._buffers = {client.model.alias: TrialBuffer() for client in clients}
        self._clients = {client.model.alias: client for client in clients}
        self._closed: dict[int, Outcome] = {}
        self._skipped: list[int] = []
        self.over = False  # it has ended
        for alias, client in self._clients.items():
            self._prepare(client, start, accounts.get(alias), on_failure)
        self.lane = Lane(
            name=name,
            clients=[*clients],
            limits=start.limits,
            notify=notify,
            taken_until_s=[asyncio.get_running_loop().time() + left_s for left_s in start.taken_s],
            held_s=self._held_s,
        )

    def _prepare(
        self,
        client: ModelClient,
        start: LaneStart,
        account: LeasedAccount | None,
        on_failure: Callable[[str, ProviderError], None],
    ) -> None:
        alias, keep = client.model.alias, client.keep
        buffer = self._buffers[alias]
        client.counters = Counters(done_before=int(alias in start.answered_before))
        client.read, client.history_of = buffer.read, lambda trial: buffer.dealt[trial.trial_id].history
        client.account = account if alias in start.budgeted else None
        client.on_failure = lambda error: on_failure(alias, error)
        client.on_suspension = lambda _: self._wake()

        def keep_and_note(event: Event) -> None:
            if isinstance(event, Sent) and self._silent():
                raise UnsentError("the coordinator was not heard for too long")
            keep(event)
            self._note(buffer, event)

        client.keep = keep_and_note
        client.stopping = None
        if alias in start.stoppable:
            client.stopping = Stopping(
                when=StopWhen(),
                keep=keep_and_note,
                counters=client.counters,
                now=lambda: client.epoch_s + client.now_s(),
            )

    def _note(self, buffer: TrialBuffer, event: Event) -> None:
        """Take in what was written down."""
        if isinstance(event, Sent):
            buffer.begin(event)
            if buffer.unbegun <= FEW and not buffer.dry:
                self._wake()
        elif isinstance(event, Ended):
            buffer.end(event)
        elif isinstance(event, Result):
            self._closed[self._end(buffer, event.trial.trial_id)] = event.grades[0].outcome
            if self._clients[event.trial.model.alias].stopping is not None:
                self._wake()  # it may be the answer that stops its cell
        elif isinstance(event, Skipped):
            self._skipped.append(self._end(buffer, event.trial.trial_id))

    def _end(self, buffer: TrialBuffer, trial_id: str) -> int:
        buffer.begun.pop(trial_id, None)
        return buffer.dealt.pop(trial_id).number

    def _held_s(self) -> float:
        return RETRY_S if self._silent() else 0.0

    def end(self) -> None:
        """Take in that it has ended."""
        self.over = True
        self._wake()

    @property
    def counters(self) -> list[Counters]:
        """The figures of its models."""
        return [client.counters for client in self._clients.values()]

    def calls_soon(self, alias: str) -> int:
        """Return about how many calls of a model will be begun before the next report; 0: it has none."""
        if alias not in self._buffers or self.over or self._clients[alias].counters.over:
            return 0
        buffer, counters = self._buffers[alias], self._clients[alias].counters
        begun = counters.attempts + counters.in_flight
        lately, buffer.calls = begun - buffer.calls, begun
        return min(len(buffer.dealt), max(FEWEST, 2 * lately))

    # ── Exchange with the coordinator ────────────────────────────────────────────────────────────

    def obey(self, orders: LaneOrders) -> None:
        """Obey new orders."""
        for dealt in orders.trials:
            self._deal(self._buffers[dealt.trial.model.alias], dealt)
        for alias, client in self._clients.items():
            if client.stopping is not None:
                for cell, stop in orders.stops.get(alias, {}).items():
                    client.stopping.stop_cell(cell, stop)
        for alias in orders.dry & self._buffers.keys():
            self._buffers[alias].dry = True
        for buffer in self._buffers.values():
            buffer.changed.set()
        for alias in orders.suspended.keys() & self._clients.keys():
            self._suspend(alias, orders.suspended[alias])
        if orders.limits is not None:
            self.lane.set_limits(orders.limits)
        if orders.paused is not None:
            for client in self._clients.values():
                client.counters.paused = orders.paused
            self.lane.apply_pause()
        if orders.stop:
            self.lane.stop()

    def _suspend(self, alias: str, reason: str) -> None:
        counters, buffer = self._clients[alias].counters, self._buffers[alias]
        counters.suspended = counters.suspended or reason
        buffer.dry = True
        buffer.waiting.clear()
        buffer.changed.set()

    def _deal(self, buffer: TrialBuffer, dealt: DealtTrial) -> None:
        trial = dealt.trial
        buffer.dealt[trial.trial_id] = dealt
        buffer.waiting.append(dealt)
        stopping = self._clients[trial.model.alias].stopping
        if dealt.anyway and stopping is not None:
            stopping.anyway.add(trial.trial_id)

    def report(self) -> LaneReport:
        """Return what is new, and how it stands."""
        closed, self._closed = self._closed, {}
        skipped, self._skipped = self._skipped, []
        return LaneReport(
            room={
                alias: CHUNK - buffer.unbegun
                for alias, buffer in self._buffers.items()
                if not buffer.dry and buffer.unbegun < CHUNK and not self._clients[alias].counters.over
            },
            closed=closed,
            skipped=skipped,
            counters={
                alias: replace(client.counters, outcomes=client.counters.outcomes.copy())
                for alias, client in self._clients.items()
            },
            in_force=self.lane.in_force(),
            begun=dict(self._begun()) if self.over else None,
        )

    def _begun(self) -> Iterator[tuple[int, History]]:
        for buffer in self._buffers.values():
            yield from (
                (buffer.dealt[trial_id].number, history) for trial_id, history in buffer.begun.items()
            )
