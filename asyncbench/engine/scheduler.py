"""All lanes of a run, side by side or one after the other."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.telemetry import LoopLag
from asyncbench.records import LaneMinute, Limits


class AnyLane(Protocol):
    """Calls of some models, or their batches, as a scheduler runs them."""

    name: str
    clients: list[ModelClient]
    serial_group: str | None  # lanes with the same one run one after the other; None: it waits for none

    async def run(self) -> None:
        """Return when every trial is closed, or it was stopped."""

    def stop(self) -> None:
        """Begin nothing more."""

    @property
    def steered(self) -> "SteeredLane | None":
        """The lane whose limits can be set, or None if it paces no calls."""

    def apply_pause(self) -> None:
        """Apply `Counters.paused` of its models, which has changed."""


class SteeredLane(AnyLane, Protocol):
    """A lane whose limits can be set."""

    limits: Limits
    runs: bool  # it keeps an account of its minutes, and notes changes in it

    def note(self, change: str) -> None:
        """Write down what a person changes, before it is."""

    def set_limits(self, limits: Limits) -> None:
        """Set other limits."""

    def limits_in_force(self) -> Mapping[str, float]:
        """Return its limits a minute: as set or told, and the fraction of it."""


def note_change(lane: AnyLane, change: str) -> None:
    """Write down what a person changes in a lane, before it is; some keep no account of their minutes."""
    if lane.steered is not None and lane.steered.runs:
        lane.steered.note(change)
        return
    note_alone(lane, change)


def note_alone(lane: AnyLane, change: str) -> None:
    """Write down what a person changes in a lane, in a row of its own that holds nothing else."""
    client = lane.clients[0]
    client.records.keep(
        LaneMinute(
            lane=lane.name,
            started_at=client.epoch_s + asyncio.get_running_loop().time(),
            seconds=0.0,
            requests=0,
            tokens=0.0,
            input_tokens=0.0,
            output_tokens=0.0,
            limits={},
            share=1.0,
            most_in_flight=0,
            refused=0,
            waited_s={},
            changes=(change,),
        )
    )


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """Runs lanes side by side; a slow or suspended lane holds up none but those of its serial group."""

    lanes: Sequence[AnyLane]
    lag: LoopLag
    stopped: bool = False
    abandoned: bool = False  # calls still in flight were given up
    overdue: bool = False  # the deadline stopped it
    on_stop: Callable[[float], None] = lambda _: None  # is told the seconds in which all is to end
    notify: Callable[[str], None] = lambda _: None  # is told which lane of a serial group comes next
    going: list[AnyLane] = field(init=False)  # lanes that have not ended
    _bound: asyncio.Timeout | None = None  # of the drain; while running

    def __post_init__(self) -> None:
        self.going = list(self.lanes)

    async def run(self) -> None:
        """Return when every lane is done, or the drain after `stop` is over.

        Raises:
            ExceptionGroup: what a lane raised; all others were cancelled first.
        """
        # Lanes of a serial group run one after the other, every other lane by itself.
        queues: dict[tuple[str | None, str], list[AnyLane]] = {}
        for lane in self.lanes:
            alone = lane.name if lane.serial_group is None else ""
            queues.setdefault((lane.serial_group, alone), []).append(lane)
        try:
            async with asyncio.timeout(None) as self._bound, asyncio.TaskGroup() as tasks:
                meter = tasks.create_task(self.lag.measure(), name="event-loop lag")
                async with asyncio.TaskGroup() as lanes:
                    for queue in queues.values():
                        lanes.create_task(self._run_in_turn(queue), name=f"lane {queue[0].name}")
                meter.cancel()
        except TimeoutError:
            self.abandoned = True
        finally:
            self._bound = None

    def pass_deadline(self, *, drain_s: float) -> None:
        """Stop because there is no more time."""
        self.overdue = not self.stopped
        self.stop(drain_s=drain_s)

    def stop(self, *, drain_s: float) -> None:
        """Admit nothing more and give what is in flight `drain_s` seconds to end; 0 gives it up now."""
        self.stopped = True
        self.on_stop(drain_s)
        for lane in self.lanes:
            lane.stop()
        if self._bound is not None and not self._bound.expired():
            self._bound.reschedule(asyncio.get_running_loop().time() + drain_s)

    async def _run_in_turn(self, queue: Sequence[AnyLane]) -> None:
        for number, lane in enumerate(queue, start=1):
            await lane.run()
            self.going = [going for going in self.going if going is not lane]
            if number < len(queue) and not self.stopped:
                ended = "stopped" if all(client.counters.suspended for client in lane.clients) else "done"
                following = queue[number].name
                self.notify(f"{lane.name} {ended}; next {following} ({number + 1} of {len(queue)})")
