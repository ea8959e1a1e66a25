"""Workers of a run on a cluster: start them, give them orders, replace dead ones, end them."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from socket import gethostname
from typing import Final

from asyncbench.cluster.coordinator import Coordinator
from asyncbench.cluster.messages import (
    Cluster,
    JournalSummary,
    Link,
    WorkerDiedError,
    WorkerSilentError,
    awake_s,
)
from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.records import Model
from asyncbench.run.dead_workers import LeaseFile, read_journal
from asyncbench.run.state import RunState
from asyncbench.run.sweep_worker import EPOCH, WorkerBrief, start_worker
from asyncbench.suites.own import used_graders

SILENT_S: Final = 60.0  # without a report: the worker is given up
IN_VAIN: Final = 5  # deaths of workers in a row with more calls lost than ended
CLOSES_WITHIN_S: Final = 120.0  # a worker seals what it kept


class ClusterRun:
    """The workers of one run, and the coordinator that rules them.

    Args:
        run: the run.
        cluster: where workers run.
        models: that they ask.
        urls: of the simulators that answer models, by alias.
    """

    give_up: Callable[[str], None]  # is told why, when workers die again and again

    def __init__(
        self,
        run: RunState,
        cluster: Cluster,
        models: Sequence[Model],
        urls: Mapping[str, str],
    ) -> None:
        self._run, self._cluster = run, cluster
        self._leases = LeaseFile(run.store.folder)
        epoch = int(run.store.manifest.get(EPOCH, 0)) + 1
        run.store.write_manifest({EPOCH: epoch})
        self.coordinator = Coordinator(
            epoch=epoch,
            workers=cluster.count,
            now_s=awake_s,
            notify=run.screen.say,
            ledger=run.ledger,
            note=self._note,
        )
        for worker, most in run.lost_usd.items():
            self.coordinator.remember(worker, most)
        self._brief = WorkerBrief(
            sweep=replace(run.sweep, notify=None),  # whose address may be a secret
            models=models,
            out=run.store.folder,
            epoch=epoch,
            journal=None if run.options.journal is None else run.store.folder,
            urls=urls,
            graders=used_graders(run.own_graders),
            version=version("asyncbench"),
        )
        self._names = (f"w{number:03}-e{epoch}" for number in itertools.count(1))
        self._links: dict[str, Link] = {}  # by the names of those that are there
        self._unread: list[str] = []  # names of lost workers whose journals were not read
        self._ruled = 0  # workers, and those whose places will be taken
        self._starting = set[asyncio.Task[None]]()  # of these, while they start
        self._deaths = Counter[str]()  # of a worker and those before it, by its name
        self._in_vain = Counter[str]()  # of these, those in a row with more calls lost than ended

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have workers do what is to be done for as long as the block lasts; then they seal what they kept.

        Raises:
            ExceptionGroup: a worker cannot work where it is; or a bug.
        """
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._cluster.count):
                name = next(self._names)
                tasks.create_task(self._rule(name), name=f"worker {name}")
            yield
            self.coordinator.end()
            for task in self._starting:
                task.cancel()  # a cluster may look for a free core for minutes
        try:
            if self._run.copy is not None:
                await asyncio.to_thread(self._run.copy.fetch_workers)
        except AsyncbenchError as error:
            self._run.screen.say(f"{error} Folders of workers stay in the bucket: the next run joins them.")
        await asyncio.to_thread(self._read_unread)

    def _note(self, worker: str, alias: str, amount: int) -> None:
        try:
            self._leases.note(worker, alias, amount)
        except StoreError as error:
            self._run.salvage.fail(error)  # which has the workers end what they began

    def counts(self) -> tuple[WorkerCounts, ...]:
        """Return how each worker stands."""
        return tuple(
            WorkerCounts(
                name=status.name,
                pid=self._links[status.name].pid,
                host=self._links[status.name].host,
                in_flight=status.in_flight,
                calls=status.calls,
                calls_per_s=status.calls_per_s,
                lag_s=status.lag_s,
                deaths=self._deaths[status.name],
            )
            for status in self.coordinator.worker_statuses()
            if status.name in self._links
        )

    # ── one worker

    async def _rule(self, name: str | None) -> None:
        """Start a worker and give it orders until nothing more is to be done; then those after it."""
        self._ruled += 1
        try:
            while name is not None and (link := await self._started(name)) is not None:
                try:
                    await self._give_orders(link)
                except (WorkerDiedError, WorkerSilentError, TimeoutError) as error:
                    name = await self._lost(link, error)
                else:
                    await self._close(link)
                    break
        finally:
            self._ruled -= 1
        if not self._ruled and not self.coordinator.ended:
            self._give_up("no worker is left")

    async def _started(self, name: str) -> Link | None:
        """Return a worker that is there; None: there is no room for it, or it cannot take another's place."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it runs in one
        self._starting.add(task)
        try:
            link = await self._cluster.start(name, partial(start_worker, self._brief))
        except AsyncbenchError as error:
            if not self._deaths[name] and not isinstance(error, WorkerDiedError):
                raise
            self._run.screen.say(f"worker {name} does not start: {error}. The others go on.")
            return None
        finally:
            self._starting.discard(task)
        if self._brief.is_local and link.host != gethostname():
            link.kill()
            raise ConfigError(
                f"worker {name} is on {link.host}, but some models of this sweep are answered by a server "
                f"that the run starts on {gethostname()} for itself. Leave them out, or leave out --ray"
            )
        self._links[name] = link
        return link

    async def _give_orders(self, link: Link) -> None:
        orders, last = self.coordinator.join(link.name), False
        while not last:
            async with asyncio.timeout(SILENT_S):
                report = await link.exchange(orders)
            last, orders = orders.ends, self.coordinator.answer(report)

    async def _close(self, link: Link) -> None:
        """Have a worker seal what it kept, and upload it; what fails is in its folder all the same."""
        del self._links[link.name]
        uploads = self._run.sweep.copied_to is not None
        try:
            async with asyncio.timeout(None if uploads else CLOSES_WITHIN_S):
                await link.close()
            self._leases.settle(link.name)
        except (AsyncbenchError, TimeoutError) as error:
            link.kill()
            self._unread.append(link.name)
            why = str(error) or f"it did not end within {CLOSES_WITHIN_S:.0f} s"
            self._run.screen.say(f"worker {link.name} on {link.host}: {why}")

    async def _lost(self, link: Link, error: Exception) -> str | None:
        """Give a worker up; return the name of the one that takes its place, if any does."""
        link.kill()
        counts = {worker.name: (worker.in_flight, worker.calls) for worker in self.counts()}
        in_flight, calls = counts.get(link.name, (0, 0))
        del self._links[link.name]
        news = await asyncio.to_thread(read_journal, self._run.store.folder, link.name)
        dead = news is not None or isinstance(error, WorkerDiedError)
        self.coordinator.lose(link.name, news, dead=dead)
        why = str(error) or f"it said nothing for {SILENT_S:.0f} s"
        message = f"worker {link.name} on {link.host} died ({why}); up to {in_flight:,} calls are lost"
        if news is None:
            self._unread.append(link.name)
            message += ". Its journal cannot be read now: what it may have cost counts as spent"
        else:
            self._leases.settle(link.name)
        successor = next(self._names)
        self._deaths[successor] = self._deaths.pop(link.name, 0) + 1
        self._in_vain[successor] = self._in_vain.pop(link.name, 0) + 1 if in_flight >= calls else 0
        if self.coordinator.stopping:
            self._run.screen.say(message)
            return None
        if self._in_vain[successor] >= IN_VAIN:
            self._give_up(f"{message}. This happened {IN_VAIN} times in a row")
            return None
        self._run.screen.say(f"{message}. Another one takes its place")
        return successor

    def _give_up(self, why: str) -> None:
        self._run.workers_failed = True
        self.give_up(why)

    def _read_unread(self) -> None:
        """Read the journals of dead workers that could not be read before."""
        for name in self._unread:
            if (news := self._whole_news(name)) is not None:
                self.coordinator.settle(name, news)
                self._leases.settle(name)
            else:
                self._run.unread_workers.append(name)
        if not self._leases.open():
            self._leases.forget()

    def _whole_news(self, name: str) -> JournalSummary | None:
        copy = self._run.copy
        if copy is not None and not copy.workers.get(name, False):
            return None
        return read_journal(self._run.store.folder, name)
