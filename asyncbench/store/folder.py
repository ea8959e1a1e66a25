"""A results folder that a run writes to: events go in, each is safe when `keep` returns, tables come out."""

import asyncio
import shutil
import threading
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from asyncbench.records import Attempt, Ended, Event, Outcome, Sent
from asyncbench.store.catalog import failed_ids, finished_ids, histories
from asyncbench.store.durable import make_folder, storing, write
from asyncbench.store.journal import Journal, Unfinished
from asyncbench.store.lock import locked
from asyncbench.store.manifest import Manifest, check, claim, write_manifest
from asyncbench.store.partitions import next_number, seal
from asyncbench.store.segment import Damage, payloads, segments
from asyncbench.store.staging import TEMPORARY

SYNC_EVERY_S = 0.5  # the most that a power failure takes with it
SEAL_EVERY_S = 15 * 60.0
SEAL_AT_RESULTS = 50_000
SEAL_AT_BYTES = 256 * 2**20


class Store:
    """The results folder of a sweep, held for writing by this process alone.

    `finished` are the ids of the trials that were closed when the folder was opened, `failed` those of them
    that were closed without a reply; `histories` is what
    is known of the others for which calls were made; `damaged` are lines that a crash or the disk spoiled.
    One thread at a time may use it; `tend` takes what is slow to another.
    """

    def __init__(
        self, folder: Path, *, sweep: str, imported: bool, again: Collection[Outcome], held: ExitStack
    ) -> None:
        """Use `Store.open`."""
        self.folder = folder
        self.damaged: list[Damage] = []
        self._held = held
        self._sealing = threading.Lock()  # one at a time
        self._closed = False
        self._clear()
        self._manifest = claim(folder, sweep=sweep, imported=imported)
        self._recover()
        self.finished = finished_ids(folder, again=again)
        self.failed = failed_ids(folder)
        self.histories = histories(folder, again=again)

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        sweep: str,
        imported: bool = False,
        again: Collection[Outcome] = (),
    ) -> Self:
        """Open the results folder of a sweep, made if it is missing, and recover what a crash left in it.

        Args:
            folder: where it is.
            sweep: its name.
            imported: what is written was recorded by others; no sweep can be run in such a folder.
            again: trials with these outcomes count as unfinished; their next result replaces the earlier one.

        Raises:
            ConfigError: the folder holds the results of another sweep, or something that is none of ours.
            StoreError: another process is writing to it, or it cannot be written.
        """
        path = Path(folder).absolute()
        check(path, sweep=sweep, imported=imported)
        with storing(path):
            make_folder(path)
        with ExitStack() as held:
            held.enter_context(locked(path))
            store = cls(path, sweep=sweep, imported=imported, again=again, held=held)
            store._held = held.pop_all()
        return store

    @property
    def manifest(self) -> Manifest:
        return dict(self._manifest)

    def keep(self, event: Event) -> None:
        """Write an event down; from here on it outlives the process. A run closes a trial once.

        Raises:
            StoreError: the disk took only a part, or nothing.
        """
        self._journal.append(event)

    def write_manifest(self, update: Mapping[str, object]) -> None:
        """Add to the manifest, or change what it says."""
        self._manifest |= update
        write_manifest(self.folder, self._manifest)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file of the folder in one step; `name` is relative to it."""
        write(self.folder / name, data, temporary=self.folder / TEMPORARY / name)

    async def tend(
        self,
        *,
        sync_every_s: float = SYNC_EVERY_S,
        seal_every_s: float = SEAL_EVERY_S,
        seal_at_results: int = SEAL_AT_RESULTS,
    ) -> None:
        """Bring what is kept onto the disk, and into parts, until cancelled.

        Raises:
            StoreError: the disk does not take it.
        """
        try:
            async with asyncio.TaskGroup() as tasks:  # sealing takes longer than a sync may wait
                tasks.create_task(self._sync_often(sync_every_s))
                tasks.create_task(self._seal_now_and_then(sync_every_s, seal_every_s, seal_at_results))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _sync_often(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            if self._journal.segment.dirty:
                await asyncio.to_thread(self._journal.segment.sync)

    async def _seal_now_and_then(self, look_every_s: float, every_s: float, at_results: int) -> None:
        now_s = asyncio.get_running_loop().time
        sealed_at_s = now_s()
        while True:
            await asyncio.sleep(look_every_s)
            journal = self._journal
            full = journal.results >= at_results or journal.segment.size >= SEAL_AT_BYTES
            if full or (journal.holds_rows and now_s() - sealed_at_s >= every_s):
                journal.rotate()
                await asyncio.to_thread(self._seal)
                sealed_at_s = now_s()

    def close(self) -> None:
        """Seal what was kept and let the folder go; calls without an end stay in the journal.

        Raises:
            StoreError: the disk does not take it; all that was kept is in the journal.
        """
        with self._held, self._sealing:
            if not self._closed:
                self._closed = True
                self._journal.rotate()
                self._seal_complete()
                self._clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self) -> None:
        """Begin a segment with what earlier ones left unfinished, then seal those: harmless to repeat."""
        folder, left = self.folder / "journal", Unfinished()
        for segment in segments(folder):
            left.follow(payloads(segment, []))
        self._journal = Journal(folder, number=next_number(self.folder), unfinished=left)
        self._held.callback(self._journal.close)
        for sent in list(left.sent.values()):
            self._journal.append(Ended(attempt=_lost(sent), reply=None))
        self._seal_complete()

    def _seal_complete(self) -> None:
        current = self._journal.segment
        current.sync()  # what was carried into it must outlive where it came from
        for segment in segments(self.folder / "journal"):
            if segment != current.path:
                self.damaged += seal(segment, self.folder)

    def _seal(self) -> None:
        with self._sealing:
            if not self._closed:
                self._seal_complete()

    def _clear(self) -> None:
        shutil.rmtree(self.folder / TEMPORARY, ignore_errors=True)


def _lost(sent: Sent) -> Attempt:
    """Return how a call ended of which no end is known: it may have been billed, so its cost is unknown."""
    return Attempt(
        trial_id=sent.trial_id,
        attempt=sent.attempt,
        model=sent.model,
        provider=sent.provider,
        started_at=sent.started_at,
        status="lost",
    )
