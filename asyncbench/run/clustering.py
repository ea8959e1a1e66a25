"""Workers of a run on a cluster: start them, give them orders, replace dead ones, end them."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from math import ceil
from pathlib import Path
from socket import gethostname
from typing import Any, Final

import orjson
import pyarrow.compute

from asyncbench.cluster.coordinator import Coordinator
from asyncbench.cluster.messages import (
    Cluster,
    JournalSummary,
    LeaseUse,
    Link,
    WorkerDiedError,
    WorkerSilentError,
)
from asyncbench.engine.awake import boot_s
from asyncbench.engine.budget import Ledger
from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.files import storing
from asyncbench.pricing import picodollars
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.records import Model, Outcome
from asyncbench.run.state import Run
from asyncbench.run.sweep_worker import EPOCH, WorkerBrief, start_worker
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import known_trials, read_attempts, read_skipped, read_trials, texts
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from asyncbench.store.manifest import is_results_folder, workers_folder
from asyncbench.suites.own_graders import used_graders

# ── Work of dead workers


pc: Any = pyarrow.compute  # its stubs know no function of an expression

MORE: Final = Fraction(21, 20)  # than a worker may cost: that much is written down
FEWER: Final = Fraction(4, 5)  # of what is written down: it is put right
LEASES: Final = "leases.jsonl"  # in a results folder: what each worker may have cost at most
RELEASED_WITHIN_S: Final = 5.0  # the lock of a process that was killed
POLL_EVERY_S: Final = 0.1


def read_journal(out: Path, worker: str) -> JournalSummary | None:
    """Return a summary of a dead worker's folder, or None if it cannot be read or the worker still writes.

    What a crash left in it is recovered.
    """
    folder = workers_folder(out) / worker
    if not is_results_folder(folder):
        return None
    ends_s = time.monotonic() + RELEASED_WITHIN_S
    while True:
        with suppress(AsyncbenchError):
            Store.reopen(folder).close()
            rows = read_trials(folder, ["trial_id", "outcome"]).to_pylist()
            costs = {}
            for alias, spending in spending_of(folder).by_alias.items():
                charges = spending.charges()
                costs[alias] = LeaseUse(
                    spent=charges.charged + charges.reserved,
                    doubted=charges.doubted + charges.reserved,
                    doubted_calls=charges.doubted_calls + charges.unended_calls,
                )
            return JournalSummary(
                closed={row["trial_id"]: Outcome(row["outcome"]) for row in rows},
                skipped=frozenset(texts(read_skipped(folder, ["trial_id"])["trial_id"].combine_chunks())),
                histories=known_trials(folder).histories,
                costs=costs,
            )
        if time.monotonic() > ends_s:
            return None
        time.sleep(POLL_EVERY_S)


def spent_by_lost(folder: Path, copy: FolderCopy | None) -> dict[str, dict[str, int]]:
    """Return the possible cost of earlier runs' workers whose journals other machines have.

    It is in picodollars by worker and alias, beyond what the folder has. `copy` is the folder's in a bucket.
    """
    leases, possible = LeaseFile(folder), dict[str, dict[str, int]]()
    for worker, amounts in leases.open().items():
        if copy is None or copy.workers.get(worker, False):  # its folder was read as a whole
            leases.settle(worker)
            continue

        # What the folder has of the worker's calls, picodollars by alias.
        name = pc.field("worker")
        by_worker = (name == worker) | pc.starts_with(name, f"{worker}.")
        recorded = Counter[str]()
        for row in read_attempts(folder, ["model", "cost_usd", "reserved_usd"], by_worker).to_pylist():
            usd = row["reserved_usd"] if row["cost_usd"] is None else row["cost_usd"]
            recorded[row["model"]] += picodollars(usd or 0.0)

        excess = {alias: amount - recorded[alias] for alias, amount in amounts.items()}
        possible[worker] = {alias: amount for alias, amount in excess.items() if amount > 0}
    return possible


def charge_lost(ledger: Ledger, lost: Mapping[str, Mapping[str, int]]) -> None:
    """Count what lost workers may have cost as spent."""
    for alias, amount in (costs for amounts in lost.values() for costs in amounts.items()):
        if (account := ledger.account_of(alias)) is not None:
            account.adjust(reserved=0, spent=amount, doubted=amount, doubted_calls=1)


class LeaseFile:
    """The most that each worker may have cost, written down before the worker hears of its dollars.

    It is for workers whose journal nobody can read: their machine is gone. Each line has a worker, an alias
    and picodollars as text; without an alias, what that worker cost is known by now.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEASES
        self._noted: dict[tuple[str, str], int] = {}

    def open(self) -> dict[str, dict[str, int]]:
        """Return the most that workers may have cost whose cost is not settled, by worker and alias."""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        if not text.endswith(b"\n"):  # a crash may have cut the last line off: the next one stands by itself
            with storing(self._path), self._path.open("ab") as file:
                file.write(b"\n")

        amounts: dict[str, dict[str, int]] = {}
        for line in text.splitlines():
            try:
                worker, alias, amount = orjson.loads(line)
            except ValueError:  # what a crash cut off: the worker never heard of it
                continue
            if alias is None:
                amounts.pop(worker, None)
            else:
                amounts.setdefault(worker, {})[alias] = int(amount)
        return amounts

    def note(self, worker: str, alias: str, amount: int) -> None:
        """Write down what a worker may cost at most on a model, picodollars; a little more saves lines."""
        noted = self._noted.get((worker, alias), 0)
        if amount > noted or amount < FEWER * noted:
            self._noted[worker, alias] = ceil(amount * MORE)
            self._append(worker, alias, str(ceil(amount * MORE)))

    def settle(self, worker: str) -> None:
        """Write down that what a worker cost is known."""
        self._append(worker, None, "0")

    def forget(self) -> None:
        """Remove the file: what all workers cost is known."""
        with storing(self._path):
            self._path.unlink(missing_ok=True)

    def _append(self, *line: str | None) -> None:
        with storing(self._path), self._path.open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")


# ── A run on a cluster


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
        run: Run,
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
            now_s=boot_s,
            notify=run.screen.say,
            ledger=run.money.ledger,
            note=self._note_lease,
        )
        for worker, amounts in run.money.lost_usd.items():
            self.coordinator.leases.remember(worker, amounts)
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
        await asyncio.to_thread(self._read_unread_journals)

    def _note_lease(self, worker: str, alias: str, amount: int) -> None:
        """Write down what a worker may cost; where the disk refuses it, the run stops."""
        try:
            self._leases.note(worker, alias, amount)
        except StoreError as error:
            self._run.salvage.fail(error)  # which has the workers end what they began

    def counts(self) -> tuple[WorkerCounts, ...]:
        """Return the figures of each worker."""
        return tuple(
            WorkerCounts(
                name=name,
                pid=self._links[name].pid,
                host=self._links[name].host,
                in_flight=report.in_flight,
                calls=report.attempts,
                calls_per_s=calls_per_s,
                lag_s=report.lag_s,
                deaths=self._deaths[name],
            )
            for name, (report, calls_per_s) in self.coordinator.reports().items()
            if name in self._links
        )

    # ── one worker

    async def _rule(self, name: str | None) -> None:
        """Start a worker and give it orders until all is done; where it dies, do so with its successor."""
        self._ruled += 1
        try:
            while name is not None and (link := await self._start(name)) is not None:
                try:
                    await self._give_orders(link)
                    break
                except (WorkerDiedError, WorkerSilentError, TimeoutError) as error:
                    name = await self._replace(link, error)
        finally:
            self._ruled -= 1
        if not self._ruled and not self.coordinator.ended:
            self._give_up("no worker is left")

    async def _start(self, name: str) -> Link | None:
        """Start a worker and return its link, or None if it does not start, and nothing replaces it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  it runs in one
        self._starting.add(task)
        try:
            link = await self._cluster.start(name, partial(start_worker, self._brief))
        except AsyncbenchError as error:
            if not self._deaths[name] and not isinstance(error, WorkerDiedError):
                raise
            self._run.screen.say(f"worker {name} does not start: {error}. The others go on.")
            self.coordinator.expect_fewer()
            return None
        finally:
            self._starting.discard(task)
        if self._brief.urls and link.host != gethostname():
            link.kill()
            raise ConfigError(
                f"worker {name} is on {link.host}, but some models of this sweep are answered by a server "
                f"that the run starts on {gethostname()} for itself. Leave them out, or leave out --ray"
            )
        self._links[name] = link
        return link

    async def _give_orders(self, link: Link) -> None:
        """Exchange orders and reports with a worker until its last ones; then it seals what it kept."""
        orders, ended = self.coordinator.join(link.name), False
        while not ended:
            async with asyncio.timeout(SILENT_S):
                report = await link.exchange(orders)
            ended, orders = orders.ends, self.coordinator.answer(report)

        # It seals and uploads what it kept; what fails is in its folder all the same.
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

    async def _replace(self, link: Link, error: Exception) -> str | None:
        """Give a worker up; return the name of the one that takes its place, if any does."""
        link.kill()
        counts = {worker.name: (worker.in_flight, worker.calls) for worker in self.counts()}
        in_flight, calls = counts.get(link.name, (0, 0))
        del self._links[link.name]
        journal = await asyncio.to_thread(read_journal, self._run.store.folder, link.name)
        dead = journal is not None or isinstance(error, WorkerDiedError)
        self.coordinator.lose(link.name, journal, dead=dead)
        why = str(error) or f"it said nothing for {SILENT_S:.0f} s"
        message = f"worker {link.name} on {link.host} died ({why}); up to {in_flight:,} calls are lost"
        if journal is None:
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
        """Have the run stop: its workers fail again and again."""
        self._run.workers.failed = True
        self.give_up(why)

    def _read_unread_journals(self) -> None:
        """Read the journals of dead workers that could not be read before."""
        for name in self._unread:
            copy = self._run.copy
            whole = copy is None or copy.workers.get(name, False)
            if whole and (journal := read_journal(self._run.store.folder, name)) is not None:
                self.coordinator.leases.correct(name, journal.costs)
                self._leases.settle(name)
            else:
                self._run.workers.unread.append(name)
        if not self._leases.open():
            self._leases.forget()
