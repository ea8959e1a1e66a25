"""The workers of a run, as the run sees them. Each call goes to the one with the fewest calls in flight."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from asyncbench.providers.credentials import Credentials
from asyncbench.providers.provider import Provider
from asyncbench.providers.unasked import servers
from asyncbench.providers.workers.process import Notify, WorkerCounts, WorkerProcess
from asyncbench.records import REALTIME, Condition, Model, Reply, Request

POLL_EVERY_S: Final = 1.0
SILENT_S: Final = 60.0  # without a word: the calls of such a worker would never end
LATE_S: Final = 0.02  # on average: a worker so late has more calls than it can make
LATE_CHECKS: Final = 3  # in a row at which it is: an SDK that is imported holds it up as long


class Workers:
    """Processes that make the calls of a run.

    With as many models as workers, or more, each model begins with one worker; with fewer, each has several.
    If they stay late, one that is not helps. A worker gets the keys of the models that it asks, and no other.

    Args:
        count: how many workers.
        models: that may be asked.
        environment: of the workers; see `withhold_keys`.
        notify: called with what a person should hear.
    """

    def __init__(
        self,
        count: int,
        models: Sequence[Model],
        environment: Mapping[str, str],
        *,
        notify: Notify,
    ) -> None:
        # Called with the reason, when workers die again and again: their calls are lost.
        self.give_up: Notify = notify
        caught = servers()
        callbacks = {
            "notify": notify,
            "give_up": lambda why: self.give_up(why),
            "on_caught": lambda server: caught.named(server).catch(),
        }
        self._all = [WorkerProcess(str(n), environment, **callbacks) for n in range(1, count + 1)]
        # What one of them catches, or the run itself, all know.
        caught.listeners.extend(worker.tell_caught for worker in self._all)
        self._notify = notify
        self._homes: dict[str, list[WorkerProcess]] = {}  # by alias
        # Models that are asked call by call, and others apart: those have few calls, if any.
        call_by_call = [model for model in models if model.mode == REALTIME]
        others = [model for model in models if model.mode != REALTIME]
        for group in (call_by_call, others):
            for n, model in enumerate(group):
                self._homes[model.alias] = self._all[n % count :: len(group)]
        self._late_checks = Counter[str]()  # in a row, by alias
        self._numbers = itertools.count()  # of providers and of ways to ask
        self._ways: dict[tuple[int, int], tuple[int, Model, Condition]] = {}  # by identity, which they keep

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Run them for as long as the block lasts; `ready` waits until they are there."""
        self._starts = [asyncio.create_task(worker.begin(), name="worker") for worker in self._all]
        watching = asyncio.create_task(self._watch(), name="workers")
        await asyncio.sleep(0)  # each has its socket now
        try:
            yield self
        finally:
            for task in (watching, *self._starts):
                task.cancel()
            await asyncio.gather(*self._starts, return_exceptions=True)
            await asyncio.gather(*(worker.end() for worker in self._all))

    def provider(self, model: Model, *, key: Credentials, simulator_url: str | None) -> Provider:
        """Return a provider whose calls workers make; the arguments are those of `open_provider`."""
        opening = ("open", next(self._numbers), model, key, simulator_url)
        for worker in self._homes[model.alias]:
            worker.send_once(opening[1], opening)
        return WorkerProvider(self, model.alias, opening)

    async def ready(self) -> None:
        """Wait until workers are there, and have opened the providers that they begin with.

        Raises:
            ConfigError: one does not start, or something is wrong with a key or an address.
        """
        await asyncio.gather(*self._starts)
        await asyncio.gather(*(worker.wait_until_opened() for worker in self._all))

    def lateness(self) -> list[float]:
        """Return how late the event loop of each worker is on average, seconds."""
        return [worker.late_s for worker in self._all]

    def counts(self) -> tuple[WorkerCounts, ...]:
        """Return how each worker stands."""
        return tuple(worker.counts() for worker in self._all)

    def chosen(self, alias: str) -> WorkerProcess:
        """Return the worker that makes the next call to a model: of its own the one with the fewest."""
        return min(self._homes[alias], key=WorkerProcess.load)

    def way(self, request: Request) -> tuple[int, Model, Condition]:
        """Return how a request is asked, with a number: many are asked alike."""
        trial = request.trial
        key = (id(trial.model), id(trial.condition))
        if (numbered := self._ways.get(key)) is None:
            numbered = self._ways[key] = (next(self._numbers), trial.model, trial.condition)
        return numbered

    async def _watch(self) -> None:
        """Kill workers that say nothing, and give models another worker while theirs are late."""
        # Not by a clock: after the whole machine stood still, all have been silent for long.
        silent_polls = Counter[str]()
        while True:
            await asyncio.sleep(POLL_EVERY_S)
            for worker in self._all:
                is_silent = worker.silent_s > POLL_EVERY_S and not worker.is_stopped()
                silent_polls[worker.name] = silent_polls[worker.name] + 1 if is_silent else 0
                if silent_polls[worker.name] * POLL_EVERY_S > SILENT_S:
                    self._notify(f"worker {worker.name} says nothing for {SILENT_S:.0f} s: it is killed")
                    worker.kill()
            for alias, home in self._homes.items():
                self._help(alias, home)

    def _help(self, alias: str, home: list[WorkerProcess]) -> None:
        """Add a worker to those of a model, if all of them are late in several checks and another is not."""
        late = any(worker.calls for worker in home) and min(worker.late_s for worker in home) > LATE_S
        self._late_checks[alias] = self._late_checks[alias] + 1 if late else 0
        idle = [worker for worker in self._all if worker not in home and worker.late_s < LATE_S]
        if self._late_checks[alias] >= LATE_CHECKS and idle:
            home.append(min(idle, key=WorkerProcess.load))
            self._late_checks[alias] = 0


class WorkerProvider:
    """The `Provider` of one model whose calls are made by workers."""

    def __init__(self, workers: Workers, alias: str, opening: tuple[Any, ...]) -> None:
        self._workers, self._alias, self._opening = workers, alias, opening

    async def ask(self, request: Request) -> Reply:
        """Have a worker make a call; see `Provider.ask`.

        Raises:
            ProviderError: as the call ended.
            LostCallError: its worker died: nobody knows how the call ended.
        """
        numbered = self._workers.way(request)
        turns = [(message.role, message.content) for message in request.messages]
        worker = self._workers.chosen(self._alias)
        await worker.wait_until_up()
        number = self._opening[1]
        worker.send_once(number, self._opening)
        worker.send_once(numbered[0], ("learn", *numbered))
        return await worker.call(number, numbered[0], request.system, turns)

    async def aclose(self) -> None:
        """Do nothing: a worker closes its connections when it ends."""
