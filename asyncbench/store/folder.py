"""A results folder open for writing: events go in, each is safe when `keep` returns, tables come out."""

import asyncio
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from asyncbench.errors import AsyncbenchError, StoreError, TakenAwayError
from asyncbench.files import OWNERS, local, make_folder, storing, write_durably
from asyncbench.records import Event, History, Outcome, Result
from asyncbench.store.catalog import KnownTrials, known_trials
from asyncbench.store.generation import Generation, compact, needs_compaction, next_generation, settle
from asyncbench.store.holdings import (
    accept_loss,
    accept_missing_calls,
    begin_list,
    check_holdings,
    known_parts,
    parts_on_disk,
)
from asyncbench.store.joining import join, remove_joined
from asyncbench.store.lock import LOCK, locked, read_mark, remove_mark, same_lock, set_mark, writer_of
from asyncbench.store.manifest import (
    IMPORTED,
    MANIFEST,
    Manifest,
    changed_manifest,
    check_owner,
    claim_folder,
    forget_manifest,
    is_partial,
    know_manifest,
    put_back_manifest,
    read_manifest,
    set_partial,
    worker_folders,
    write_sweep_file,
)
from asyncbench.store.parts import TEMPORARY
from asyncbench.store.reading import warn_of_damage
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.sealing import FolderJournal, part_files

SYNC_EVERY_S = 0.5  # the most that a power failure takes with it
SEAL_EVERY_S = 15 * 60.0
SEAL_AT_RESULTS = 50_000
SEAL_AT_BYTES = 256 * 2**20


class Store:
    """The results folder of a sweep, held for writing by this process alone.

    `finished` are the ids of the trials that were closed when the folder was opened, `failed` those of them
    that were closed without a reply, `again` those that are to be asked again, with their outcomes so far;
    `histories` is what is known of the unfinished for which calls were made; `damaged` are lines that a crash
    or the disk spoiled, `lost` the files whose loss was accepted just now.
    One thread at a time may use it; `tend` takes what is slow to another.
    """

    def __init__(
        self, folder: Path, *, sweep: str, imported: bool, again: Collection[Outcome] | None, accept: bool
    ) -> None:
        """Use `Store.open` or `Store.reopen`; `again` is None where nobody will ask."""
        self.folder = folder
        self.parts_lock = threading.RLock()  # of the one thread that changes parts
        self._closed = False
        with ExitStack() as exits:
            self._lock = exits.enter_context(locked(folder))
            self.dead = read_mark(folder) is not None  # the run before, if there was one, never ended
            settle(folder)
            claim_folder(folder, sweep=sweep, imported=imported)
            begin_list(folder, accept=accept)
            remove_joined(folder)
            refuse_living_workers(folder)
            self.lost = accept_loss(folder) if accept else []
            check_holdings(folder, calls=not accept)
            self.journal = FolderJournal(folder, exits)
            self.damaged = self.journal.damaged
            self.lost += _join_workers(self.journal, accept=accept)
            if accept:
                accept_missing_calls(folder)
            if again is None:  # else whatever looks for known trials compares again
                check_holdings(folder)
            self._known = KnownTrials() if again is None else known_trials(folder, again=again)
            self.finished, self.failed = self._known.finished, self._known.failed
            self.again = self._known.again
            exits.callback(forget_manifest, folder)
            know_manifest(folder)
            self._exits = exits.pop_all()

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        sweep: str,
        imported: bool = False,
        again: Collection[Outcome] = (),
        accept: bool = False,
    ) -> Self:
        """Open the results folder of a sweep, made if it is missing, and recover what a crash left in it.

        Args:
            folder: where it is.
            sweep: its name.
            imported: what is written was recorded by others; no sweep can be run in such a folder.
            again: trials with these outcomes count as unfinished; their next result replaces the earlier one.
            accept: take for lost what is missing of the folder or damaged in it; what it cost counts still.

        Raises:
            ConfigError: the folder holds the results of another sweep, or something that is none of ours.
            StoreError: another process is writing to it, it cannot be written, or it is not what was written.
        """
        path = local(folder).absolute()
        check_owner(path, sweep=sweep, imported=imported)
        with storing(path):
            make_folder(path, mode=OWNERS)
        return cls(path, sweep=sweep, imported=imported, again=again, accept=accept)

    @classmethod
    def reopen(cls, folder: Path | str) -> Self:
        """Open a results folder, whosever it is, to work on its parts: nothing will be asked.

        What a crash left in it is recovered; `finished`, `failed` and `histories` stay empty.

        Raises:
            ConfigError: it is not a results folder.
            StoreError: another process is writing to it, or it cannot be written.
        """
        path = local(folder).absolute()
        manifest = read_manifest(path)
        imported = manifest.get(IMPORTED, False)
        store = cls(path, sweep=manifest["sweep"], imported=imported, again=None, accept=False)
        warn_of_damage(path, store.damaged)
        return store

    @property
    def histories(self) -> Mapping[str, History]:
        return self._known.histories

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.folder)

    def keep(self, event: Event) -> None:
        """Write an event down, unless it is needless; from here on it outlives the process.

        A run closes a trial once.

        Raises:
            StoreError: the disk took only a part, or nothing.
        """
        if not needless(self, event):
            self.journal.append(event)

    def begin_run(self) -> None:
        """Mark that a run is going on, until the folder is let go: a run that is killed leaves the mark."""
        set_mark(self.folder)
        self._exits.callback(remove_mark, self.folder)

    def write_manifest(self, update: Mapping[str, object]) -> None:
        """Add to the manifest, or change what it says."""
        with changed_manifest(self.folder) as manifest:
            manifest |= update

    def write_sweep_file(self, text: bytes, update: Mapping[str, object]) -> None:
        """Write the folder's sweep file, and add to the manifest."""
        write_sweep_file(self.folder, text, update)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file of the folder in one step; `name` is relative to it."""
        write_durably(self.folder / name, data, temporary=self.folder / TEMPORARY / name)

    def put_back(self) -> None:
        """Put back what another program took away of the folder; by the thread that writes.

        Raises:
            StoreError: something was taken; says what, and what is back.
        """
        folder, segment = self.folder, self.journal.segment
        if segment.moved():
            raise TakenAwayError(
                f"{segment.path}: another program has moved it. The moved file has all that arrived."
            )
        with storing(folder):
            make_folder(folder, mode=OWNERS)
        back = list[Path]()
        if not same_lock(folder, self._lock):
            try:
                self._lock = self._exits.enter_context(locked(folder))
            except StoreError as error:
                message = f"its lock was removed, and another run holds it now: {error}"
                raise TakenAwayError(
                    f"{folder}: {message} What arrived since then may be missing."
                ) from error
            back.append(folder / LOCK)
        back += [folder / MANIFEST] if put_back_manifest(folder) else []
        back += [segment.path] if segment.put_back() else []
        if cut := segment.cut():
            raise TakenAwayError(
                f"{segment.path}: another program has cut {cut:,} bytes off it. They are gone."
            )
        if back:
            names, parts = (
                ", ".join(map(str, back)),
                known_parts(folder).keys() - parts_on_disk(folder).keys(),
            )
            message = f"another program removed files of this run, and asyncbench put them back: {names}."
            if parts:
                raise TakenAwayError(
                    f"{message} {len(parts):,} parts are gone, the first {folder / min(parts)}."
                )
            raise StoreError(f"{message} Run again to continue.")

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
            if (segment := self.journal.segment).dirty:
                await asyncio.to_thread(segment.sync)
            self.put_back()

    async def _seal_now_and_then(self, poll_every_s: float, every_s: float, at_results: int) -> None:
        def seal_complete() -> None:
            with self.parts_lock:
                if not self._closed:
                    self.journal.seal()

        now_s = asyncio.get_running_loop().time
        sealed_at_s = now_s()
        while True:
            await asyncio.sleep(poll_every_s)
            journal = self.journal
            full = journal.results >= at_results or journal.segment.size >= SEAL_AT_BYTES
            if full or (journal.rows and now_s() - sealed_at_s >= every_s):
                journal.rotate()
                await asyncio.to_thread(seal_complete)
                sealed_at_s = now_s()

    def close(self) -> None:
        """Seal what was kept and let the folder go; calls without an end stay in the journal.

        Raises:
            StoreError: the disk does not take it; all that was kept is in the journal.
        """
        with self._exits, self.parts_lock:
            if not self._closed:
                self._closed = True
                self.put_back()
                self.journal.rotate()
                self.journal.seal()
                with suppress(AsyncbenchError):  # the next start does, or tells what is in the way
                    _join_workers(self.journal)
                with suppress(StoreError):  # all is sealed: many parts are merely slower than few
                    self.compact()
                self.journal.close()
                settle(self.folder)

    @contextmanager
    def replaced(self, table: str) -> Iterator[Generation]:
        """Build a table anew; on the way out it takes the place of the present one, in one step.

        Only while no run is going: what is kept meanwhile is not looked at. When the body raises, or the
        process dies, all stays as it was.

        Raises:
            StoreError: the disk does not take it.
        """
        with self.parts_lock, next_generation(self.folder, table, part_files(self.folder, table)) as new:
            yield new

    def compact(self, *, all_tables: bool = False) -> tuple[int, int]:
        """Make the many parts of each partition into one, beside those that are large already.

        Args:
            all_tables: not only those whose parts are so many that readers feel it.

        Returns:
            How many parts there were, and how many there are now.

        Raises:
            StoreError: a part is damaged, or the disk does not take it; the parts stay as they were.
        """
        before = after = 0
        with self.parts_lock:
            for name in SCHEMAS:
                parts = part_files(self.folder, name)
                if all_tables or needs_compaction(parts):
                    with self.replaced(name) as new:
                        compact(new)
                before, after = before + len(parts), after + len(part_files(self.folder, name))
        return before, after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def refuse_living_workers(folder: Path) -> None:
    """Refuse a folder while a process writes to that of a worker."""
    for path in worker_folders(folder):
        with locked(path):
            pass


def _join_workers(journal: FolderJournal, *, accept: bool = False) -> list[str]:
    """Recover the folders of workers whose processes have ended, and make them part of their run's.

    One of which another machine has more stays as it is, unless that is taken for lost: it is read in place.

    Args:
        journal: that of the run.
        accept: take for lost what is missing of the workers' folders or damaged in them.

    Returns:
        The files whose loss was accepted, relative to the folder of the run.

    Raises:
        StoreError: what a folder holds is not what was written to it, or the disk does not take it.
    """
    folder, lost = journal.folder, list[str]()
    while ended := [
        path
        for path in worker_folders(folder)
        if (accept or not is_partial(path)) and writer_of(path) is None
    ]:
        for path in ended:
            sweep = read_manifest(path)["sweep"]
            with Store(path, sweep=sweep, imported=False, again=None, accept=accept) as worker:
                lost += [str((path / name).relative_to(folder)) for name in worker.lost]
                journal.damaged += worker.damaged
        journal.rotate()
        journal.seal()
        join(folder, [path.name for path in ended], journal)
        for path in ended:
            set_partial(path, partial=False)
    return lost


def needless(store: Store, event: Event) -> bool:
    """Whether an event closes a trial that was asked again and failed: the answer it has was paid for."""
    return (
        isinstance(event, Result)
        and event.reply is None
        and store.again.get(event.trial.trial_id, Outcome.FAILED) is not Outcome.FAILED
    )
