"""Worker of a cluster: it asks the trials it gets, grades the replies, and keeps them in its own folder."""

import asyncio
import os
import platform
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from asyncbench.cluster.cluster_worker import ClusterWorker
from asyncbench.cluster.messages import Orders, WorkerDiedError, WorkerReport
from asyncbench.config.run_entries import usable_cores, workers_here
from asyncbench.config.sweep import Sweep
from asyncbench.engine.awake import boot_s, deadlines_put_off
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.planning.budget_bounds import most_of
from asyncbench.planning.preflight import check_environment, keys_for, raise_file_limit
from asyncbench.providers.credentials import secrets_of
from asyncbench.providers.garbage import rare_garbage_collection
from asyncbench.providers.provider import Provider
from asyncbench.records import Model
from asyncbench.run.model_clients import (
    GradedRecords,
    client_through,
    opened_provider,
    started_workers,
)
from asyncbench.run.refusals import Faults
from asyncbench.store.bucket.fetching import WORKERS
from asyncbench.store.bucket.objects import journal_folder
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from asyncbench.store.manifest import is_partial, is_results_folder, read_manifest, workers_folder
from asyncbench.store.salvage import Salvage
from asyncbench.suites.own_graders import use_grader
from asyncbench.suites.plugins import OwnFunction

DRAIN_S: Final = 30.0  # for calls in flight, when a worker leaves by itself
EPOCH: Final = "epoch"  # the key of a manifest: how many runs of the folder were on a cluster
ORPHANED_S: Final = 60.0  # without orders: its run is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBrief:
    """Brief of a worker about its run. It holds no key: a worker reads its own environment."""

    sweep: Sweep
    models: Sequence[Model]  # that workers ask
    out: Path  # of the run
    epoch: int  # of the run, as the manifest there says
    journal: Path | None  # the same, on any machine, where results go to a bucket; None: where runs keep it
    urls: Mapping[str, str]  # of the simulators that the run starts on its machine, by alias
    graders: Sequence[OwnFunction]
    version: str  # of asyncbench

    @property
    def workers_folder(self) -> Path:
        """The folder on this machine in which workers keep their results."""
        address = self.sweep.copied_to
        return workers_folder(self.out if address is None else self.journal or journal_folder(address))


async def start_worker(brief: WorkerBrief, name: str) -> "SweepWorker":
    """Return a worker that is ready for orders, in the process that calls this.

    Raises:
        ConfigError: it cannot work here: a key, the folder or a package is missing.
        StoreError: its folder cannot be written.
    """
    try:
        await asyncio.to_thread(_check_machine, brief)
        for grader in brief.graders:
            use_grader(grader)
        worker = SweepWorker(brief, name)
        await worker.begin()
    except ConfigError as error:
        raise ConfigError(f"worker {name} on {socket.gethostname()}: {error}") from error
    return worker


def _check_machine(brief: WorkerBrief) -> None:
    """Refuse a machine with another version of asyncbench, or without the folder of the run."""
    here, host = version("asyncbench"), socket.gethostname()
    if here != brief.version:
        raise ConfigError(
            f"{host} has asyncbench {here}, the run {brief.version}. Install the same version on each machine"
        )
    there = is_results_folder(brief.out) and read_manifest(brief.out).get(EPOCH) == brief.epoch
    if brief.sweep.copied_to is None and not there:
        raise ConfigError(
            f"{brief.out} on {host} is not the folder of this run. Set `out:` to a folder that all machines "
            "share, or to s3://bucket/prefix"
        )


class SweepWorker:
    """The `Program` of a worker."""

    def __init__(self, brief: WorkerBrief, name: str) -> None:
        self._brief, self._name = brief, name
        check_environment(brief.models)
        self._keys = keys_for(brief.models, os.environ)
        self._lag = LoopLag()
        self._worker = ClusterWorker(
            name, client_for=self._make_client, bound_for=most_of, now_s=boot_s, lag=self._lag
        )
        self._providers: dict[str, Provider] = {}
        self._ready = asyncio.get_running_loop().create_future()
        self._heard = asyncio.Event()

    async def begin(self) -> None:
        """Open folder and connections; raises as `start_worker` does."""
        self._life = asyncio.create_task(self._live(), name=self._name)
        await asyncio.wait([self._life, self._ready], return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            await self._life

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Do what `ClusterWorker.exchange` does.

        Raises:
            StaleOrdersError: a later coordinator rules.
            WorkerDiedError: this worker failed, and is over.
        """
        self._heard.set()
        exchange = asyncio.create_task(self._worker.exchange(orders))
        await asyncio.wait([exchange, self._life], return_when=asyncio.FIRST_COMPLETED)
        if self._life.done() and not exchange.done() and not orders.ends:
            exchange.cancel()
            error = self._life.exception()
            raise WorkerDiedError(f"it failed: {error!r}" if error else "it ended without orders") from error
        return await exchange

    async def close(self) -> None:
        """End what is in flight, seal what was kept, and let the folder go.

        Raises:
            StoreError: the disk did not take it.
        """
        self._worker.end(0.0)
        await self._life

    # ── the run of a worker

    async def _live(self) -> None:
        """Hold the folder and the connections of this worker, and do what it is ordered."""
        brief = self._brief
        async with AsyncExitStack() as stack:
            stack.enter_context(deadlines_put_off())  # those of its calls; leases go by `boot_s`
            copy: FolderCopy | None = None
            folder = brief.workers_folder / self._name
            if (address := brief.sweep.copied_to) is not None:
                await _hand_in_dead(address, folder.parent, self._worker.notify)
                claimed = f"{address}/{WORKERS}/{self._name}"
                copy = await asyncio.to_thread(FolderCopy.claim, claimed, folder)
                stack.push_async_callback(_hand_in, copy, self._worker.notify)

            store = await asyncio.to_thread(Store.open, folder, sweep=brief.sweep.name)
            self._salvage = Salvage(store)
            self._salvage.stop = self._stop_for_the_disk
            stack.push_async_callback(asyncio.to_thread, self._salvage.close)
            await asyncio.to_thread(store.begin_run)
            machine = {"name": self._name, "host": socket.gethostname(), "cores": usable_cores()}
            entries = {
                "asyncbench": brief.version,
                "python": platform.python_version(),
                "simulated": any(model.simulated for model in brief.sweep.models),
                "worker": machine,
            }
            await asyncio.to_thread(store.write_manifest, entries)

            self._faults = Faults(store.folder, secrets_of(self._keys.values()))
            await self._open_providers(stack)
            calls = sum(model.limits.most_in_flight for model in brief.models)
            stack.enter_context(rare_garbage_collection(calls))
            async with self._salvage.tended(), asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(self._lag.measure()),
                    tasks.create_task(self._end_if_orphaned()),
                ]
                if copy is not None:
                    background.append(tasks.create_task(copy.tend(store, self._worker.notify)))
                self._ready.set_result(None)
                await self._worker.run()
                for task in background:
                    task.cancel()

    async def _open_providers(self, stack: AsyncExitStack) -> None:
        """Open a provider for each model, in processes of their own where the sweep wants them."""
        brief = self._brief
        raise_file_limit(brief.models)
        workers = await started_workers(
            workers_here(brief.sweep.workers),
            brief.sweep,
            brief.models,
            self._keys,
            notify=self._worker.notify,
            stack=stack,
        )
        if workers is not None:
            self._lag.others = workers.lateness
        for model in brief.models:
            key, url = self._keys[model.alias], brief.urls.get(model.alias)
            self._providers[model.alias] = opened_provider(
                model, key, simulator_url=url, workers=workers, stack=stack
            )
        if workers is not None:
            await workers.ready()

    async def _end_if_orphaned(self) -> None:
        """End this worker when nobody gives it orders any more."""
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(ORPHANED_S):
                    await self._heard.wait()
                self._heard.clear()
        self._worker.end(DRAIN_S)

    def _make_client(self, model: Model) -> ModelClient:
        """Return a client that grades replies here, and keeps them in the folder of this worker."""
        return client_through(
            self._providers[model.alias],
            self._brief.sweep,
            model,
            counters=Counters(),
            lag=self._lag,
            records=GradedRecords(model, self._salvage, self._faults),
        )

    def _stop_for_the_disk(self, error: StoreError) -> None:
        """Leave because of a full disk: other workers go on with what is not asked yet."""
        self._worker.notify(f"{self._name} on {socket.gethostname()}: {error} It stops.")
        self._worker.leave(DRAIN_S)


def _seal(folder: Path) -> None:
    """Seal what a crash left open, in one go: whoever awaits it may be cancelled."""
    Store.reopen(folder).close()


async def _hand_in_dead(address: str, workers: Path, notify: Callable[[str], None]) -> None:
    """Bring to the bucket what workers left that died on this machine.

    What is in the way of a folder is said, and the folder stays for the next worker.
    """
    for folder in await asyncio.to_thread(lambda: sorted(filter(is_results_folder, workers.glob("*")))):
        if is_partial(folder):  # it was brought here from its own machine
            continue
        try:
            copy = await asyncio.to_thread(FolderCopy.claim, f"{address}/{WORKERS}/{folder.name}", folder)
        except AsyncbenchError:  # its worker, or another that hands it in, is at work; or it was brought here
            continue
        try:
            await asyncio.to_thread(_seal, folder)
            await _hand_in(copy, notify)
        except AsyncbenchError as error:
            notify(str(error))
        finally:
            copy.close()


async def _hand_in(copy: FolderCopy, notify: Callable[[str], None]) -> None:
    """Upload the rest of a folder; then this machine need not keep it."""
    await copy.finish(notify, then=partial(shutil.rmtree, copy.folder, ignore_errors=True))
