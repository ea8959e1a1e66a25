"""The workers of a run on a cluster: started, given orders, replaced when they die, ended."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Final

from asyncbench.cluster import Cluster, Coordinator, JournalNews, Link, WorkerDiedError, awake_s
from asyncbench.errors import AsyncbenchError
from asyncbench.fleet import WorkerCounts
from asyncbench.records import Model
from asyncbench.run.dead_workers import LeaseFile, journal_news, known_of_worker
from asyncbench.run.state import RunState
from asyncbench.run.sweep_worker import WorkerBrief, start_worker
from asyncbench.suites import used_graders

EPOCH: Final = "epoch"  # the key of a manifest: how many runs of a cluster there were
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
        self, run: RunState, cluster: Cluster, models: Sequence[Model], urls: Mapping[str, str]
    ) -> None:
        self._run, self._cluster = run, cluster
        self._leases = LeaseFile(run.store.folder)
        epoch = int(run.store.manifest.get(EPOCH, 0)) + 1
        run.store.write_manifest({EPOCH: epoch})
        self.coordinator = Coordinator(
            epoch=epoch,
            workers=cluster.count,
            now_s=awake_s,
            say=run.screen.say,
            ledger=run.ledger,
            note=self._leases.note,
        )
        self._remember()
        self._brief = WorkerBrief(
            sweep=run.sweep,
            models=models,
            out=run.store.folder,
            journal=run.options.journal,
            urls=urls,
            graders=used_graders(run.own_graders),
            version=version("asyncbench"),
        )
        self._names = (f"w{number:03}-e{epoch}" for number in itertools.count(1))
        self._links: dict[str, Link] = {}  # by the names of those that are there
        self._unread: list[str] = []  # names of dead workers whose journals were not read
        self._in_vain = 0
        self._starting = set[asyncio.Task[None]]()  # the rule of workers that take the place of others
        self._deaths = Counter[str]()  # of a worker and those before it, by its name

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have workers do what is to be done for as long as the block lasts; then they seal what they kept.

        Raises:
            ConfigError: a worker cannot work where it is. Nothing was spent.
        """
        first = [next(self._names) for _ in range(self._cluster.count)]
        links = await asyncio.gather(*map(self._started, first))
        async with asyncio.TaskGroup() as tasks:
            for link in links:
                tasks.create_task(self._rule(link), name=f"worker {link.name}")
            yield
            self.coordinator.end()
            for task in self._starting:
                task.cancel()  # a cluster may look for a free core for minutes
        if self._run.copy is not None:
            await asyncio.to_thread(self._run.copy.fetch_workers)
        await asyncio.to_thread(self._read_unread)

    def _remember(self) -> None:
        """Count what workers of earlier runs may have cost whose journals other machines have."""
        copy, folder = self._run.copy, self._run.store.folder
        for worker, most in self._leases.open().items():
            if copy is None or copy.workers.get(worker, False):  # its folder was read as a whole
                self._leases.settle(worker)
                continue
            known = known_of_worker(folder, worker)
            left = {alias: amount - known.get(alias, 0) for alias, amount in most.items()}
            self.coordinator.remember(worker, {alias: amount for alias, amount in left.items() if amount > 0})

    def counts(self) -> tuple[WorkerCounts, ...]:
        """Return how each worker stands."""
        return tuple(
            WorkerCounts(
                name=standing.name,
                pid=self._links[standing.name].pid,
                host=self._links[standing.name].host,
                in_flight=standing.in_flight,
                calls=standing.calls,
                calls_per_s=standing.calls_per_s,
                lag_s=standing.lag_s,
                deaths=self._deaths[standing.name],
            )
            for standing in self.coordinator.standing()
            if standing.name in self._links
        )

    async def _started(self, name: str) -> Link:
        link = self._links[name] = await self._cluster.start(name, partial(start_worker, self._brief))
        return link

    async def _rule(self, link: Link | None) -> None:
        """Give a worker orders until nothing more is to be done; then the one that takes its place."""
        while link is not None:
            try:
                await self._give_orders(link)
            except (WorkerDiedError, TimeoutError) as error:
                link = await self._replaced(link, error)
            else:
                await self._close(link)
                return

    async def _close(self, link: Link) -> None:
        """Have a worker seal what it kept, and upload it; what fails is in its folder all the same."""
        del self._links[link.name]
        if not (self._links or self._starting or self.coordinator.ended):
            self._give_up("All workers have left")
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

    async def _give_orders(self, link: Link) -> None:
        orders, last = self.coordinator.join(link.name), False
        while not last:
            async with asyncio.timeout(SILENT_S):
                report = await link.exchange(orders)
            last, orders = orders.ends, self.coordinator.answer(report)

    async def _replaced(self, link: Link, error: Exception) -> Link | None:
        """Give a worker up; return the one that takes its place, if any does."""
        link.kill()
        before = next((one for one in self.counts() if one.name == link.name), None)
        del self._links[link.name]
        in_flight, calls = (before.in_flight, before.calls) if before else (0, 0)
        self._in_vain = self._in_vain + 1 if in_flight >= calls else 0
        dead = isinstance(error, WorkerDiedError)
        news = await asyncio.to_thread(journal_news, self._run.store.folder, link.name) if dead else None
        self.coordinator.lose(link.name, news, dead=dead)
        why = str(error) or f"it said nothing for {SILENT_S:.0f} s"
        said = f"worker {link.name} on {link.host} died ({why}); up to {in_flight:,} calls are lost"
        if news is None:
            self._unread.append(link.name)
            said += ". Its journal cannot be read now: what it may have cost counts as spent"
        else:
            self._leases.settle(link.name)
        if self.coordinator.ended:
            self._run.screen.say(said)
            return None
        if self._in_vain >= IN_VAIN:
            self._give_up(f"{said}. This happened {IN_VAIN} times in a row")
            return None
        self._run.screen.say(f"{said}. Another one takes its place")
        try:
            return await self._successor(link)
        except AsyncbenchError as again:
            without = f"no worker takes the place of {link.name}: {again}"
            self._run.screen.say(without) if self._links else self._give_up(without)
            return None

    async def _successor(self, dead: Link) -> Link:
        name, task = next(self._names), asyncio.current_task()
        assert task is not None  # noqa: S101
        self._deaths[name] = self._deaths.pop(dead.name, 0) + 1
        self._starting.add(task)
        try:
            return await self._started(name)
        finally:
            self._starting.discard(task)

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

    def _whole_news(self, name: str) -> JournalNews | None:
        copy = self._run.copy
        if copy is not None and not copy.workers.get(name, False):
            return None
        return journal_news(self._run.store.folder, name)
