"""A results folder that a run writes to: events go in, each is safe when `keep` returns, tables come out."""

import asyncio
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import orjson

from asyncbench.errors import AsyncbenchError, StoreError, TakenAwayError
from asyncbench.files import OWNERS, local, make_folder, storing, write_durably
from asyncbench.records import Ended, Event, History, Outcome, Result
from asyncbench.store.catalog import KnownTrials, known_trials
from asyncbench.store.generation import Generation, compact, next_generation, settle, worthwhile
from asyncbench.store.holdings import (
    accept_loss,
    accept_missing_calls,
    begin_list,
    check_holdings,
    known_parts,
    list_journal,
    stored,
)
from asyncbench.store.joining import join, remove_joined
from asyncbench.store.journal import Journal, ToldCalls, Unfinished, lost
from asyncbench.store.lock import LOCK, left_mark, locked, same_lock, set_mark, take_away, writer_of
from asyncbench.store.manifest import (
    IMPORTED,
    MANIFEST,
    WORKER,
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
from asyncbench.store.sealing import next_number, part_files, seal, without_rows
from asyncbench.store.segment import Damage, payloads, segments

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
        self.seals = 0  # how often what was kept became parts
        self.damaged: list[Damage] = []
        self._sealing = threading.RLock()  # one thread at a time
        self._closed = False
        with ExitStack() as held:
            self._lock = held.enter_context(locked(folder))
            self.dead = left_mark(folder) is not None  # the run before, if there was one, never ended
            settle(folder)
            claim_folder(folder, sweep=sweep, imported=imported)
            begin_list(folder, accept=accept)
            remove_joined(folder)
            refuse_living_workers(folder)
            self.lost = accept_loss(folder) if accept else []
            check_holdings(folder, calls=not accept)
            self._recover(held)
            _join_workers(self, accept=accept)
            if accept:
                accept_missing_calls(folder)
            if again is None:  # else whatever looks for known trials compares again
                check_holdings(folder)
            known = KnownTrials() if again is None else known_trials(folder, again=again)
            self.finished, self.failed = known.finished, known.failed
            self.again, self._known = known.again, known
            held.callback(forget_manifest, folder)
            know_manifest(folder)
            self._held = held.pop_all()

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
            self._journal.append(event)

    def begin_run(self) -> None:
        """Mark that a run is going on, until the folder is let go: a run that is killed leaves the mark."""
        set_mark(self.folder)
        self._held.callback(take_away, self.folder)

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
            if (segment := self._journal.segment).dirty:
                await asyncio.to_thread(segment.sync)
            put_back(self)

    async def _seal_now_and_then(self, look_every_s: float, every_s: float, at_results: int) -> None:
        def seal_complete() -> None:
            with self._sealing:
                if not self._closed:
                    self._seal_complete()

        now_s = asyncio.get_running_loop().time
        sealed_at_s = now_s()
        while True:
            await asyncio.sleep(look_every_s)
            journal = self._journal
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
        with self._held, self._sealing:
            if not self._closed:
                self._closed = True
                put_back(self)
                self._journal.rotate()
                self._seal_complete()
                with suppress(AsyncbenchError):  # the next start does, or tells what is in the way
                    _join_workers(self)
                with suppress(StoreError):  # all is sealed: many parts are merely slower than few
                    _compact(self.folder, all_tables=False)
                _close_journal(self._journal, self.folder)
                settle(self.folder)

    @contextmanager
    def replaced(self, table: str) -> Iterator[Generation]:
        """Build a table anew; on the way out it takes the place of the present one, in one step.

        Only while no run is going: what is kept meanwhile is not looked at. When the body raises, or the
        process dies, all stays as it was.

        Raises:
            StoreError: the disk does not take it.
        """
        with self._sealing, next_generation(self.folder, table, part_files(self.folder, table)) as new:
            yield new

    def compact(self) -> tuple[int, int]:
        """Make the many parts of each partition into one, beside those that are large already.

        Returns:
            How many parts there were, and how many there are now.

        Raises:
            StoreError: a part is damaged, or the disk does not take it; the parts stay as they were.
        """
        with self._sealing:
            return _compact(self.folder, all_tables=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self, held: ExitStack) -> None:
        """Begin a segment with what earlier ones left unfinished, then seal those: harmless to repeat."""
        folder, left = self.folder / "journal", Unfinished()
        told = ToldCalls(alone=WORKER not in self.manifest)
        for segment in segments(folder):
            for payload in payloads(segment, []):
                line = orjson.loads(payload)
                left.follow(line)
                told.follow(line)
        self._journal = Journal(folder, number=next_number(self.folder), unfinished=left)
        held.callback(lambda: _close_journal(self._journal, self.folder))
        unrecorded = told.unrecorded()
        lacking = without_rows(unrecorded.keys() - left.sent.keys(), self.folder)
        for attempt in [*map(lost, left.sent.values()), *(unrecorded[call] for call in sorted(lacking))]:
            self._journal.append(Ended(attempt=attempt, reply=None))
        self._seal_complete()

    def _seal_complete(self) -> None:
        """Make every segment but the present one into parts."""
        current = self._journal.segment
        current.sync()  # what was carried into it must outlive where it came from
        for segment in segments(self.folder / "journal"):
            if segment != current.path:
                self.damaged += seal(segment, self.folder)
        list_journal(self.folder)
        self.seals += 1


def put_back(store: Store) -> None:
    """Put back what another program took away of a folder that is being written; by the thread that writes.

    Raises:
        StoreError: something was taken; says what, and what is back.
    """
    folder, segment = store.folder, store._journal.segment
    if segment.moved():
        raise TakenAwayError(
            f"{segment.path}: another program has moved it. The moved file has all that arrived."
        )
    with storing(folder):
        make_folder(folder, mode=OWNERS)
    back = [] if same_lock(folder, store._lock) else [_locked_again(store)]
    back += [folder / MANIFEST] if put_back_manifest(folder) else []
    back += [segment.path] if segment.put_back() else []
    if cut := segment.cut():
        raise TakenAwayError(f"{segment.path}: another program has cut {cut:,} bytes off it. They are gone.")
    if back:
        names, parts = ", ".join(map(str, back)), known_parts(folder).keys() - stored(folder).keys()
        message = f"another program has removed it, and it is back: {names}."
        if parts:
            raise TakenAwayError(f"{message} {len(parts):,} parts are gone, the first {folder / min(parts)}.")
        raise StoreError(f"{message} Run again to continue.")


def _locked_again(store: Store) -> Path:
    try:
        store._lock = store._held.enter_context(locked(store.folder))
    except StoreError as error:
        message = f"its lock was removed, and another run holds it now: {error}"
        raise TakenAwayError(f"{store.folder}: {message} What arrived since then may be missing.") from error
    return store.folder / LOCK


def refuse_living_workers(folder: Path) -> None:
    """Refuse a folder while a process writes to that of a worker."""
    for path in worker_folders(folder):
        with locked(path):
            pass


def _join_workers(store: Store, *, accept: bool = False) -> None:
    """Recover the folders of workers whose processes have ended, and make them part of a store's own.

    One of which another machine has more stays as it is, unless that is taken for lost: it is read in place.

    Raises:
        StoreError: what a folder holds is not what was written to it, or the disk does not take it.
    """
    folder = store.folder
    while ended := [
        path
        for path in worker_folders(folder)
        if (accept or not is_partial(path)) and writer_of(path) is None
    ]:
        for path in ended:
            sweep = read_manifest(path)["sweep"]
            with Store(path, sweep=sweep, imported=False, again=None, accept=accept) as worker:
                store.lost += [str((path / name).relative_to(folder)) for name in worker.lost]
                store.damaged += worker.damaged
        store._journal.rotate()
        store._seal_complete()
        join(folder, [path.name for path in ended], store._journal, store._seal_complete)
        for path in ended:
            set_partial(path, partial=False)


def _compact(folder: Path, *, all_tables: bool) -> tuple[int, int]:
    """Compact every table, or only those where it is worth it; return the parts before and after."""
    before = after = 0
    for name in SCHEMAS:
        parts = part_files(folder, name)
        if all_tables or worthwhile(parts):
            with next_generation(folder, name, parts) as new:
                compact(new)
        before, after = before + len(parts), after + len(part_files(folder, name))
    return before, after


def held_still(store: Store) -> AbstractContextManager[object]:
    """Return what keeps the parts of a store as they are meanwhile."""
    return store._sealing


def sync_journal(store: Store) -> None:
    """Wait until all that a store keeps is on the disk; raises StoreError."""
    if (segment := store._journal.segment).dirty:
        segment.sync()


def needless(store: Store, event: Event) -> bool:
    """Whether an event closes a trial that was asked again and failed: the answer it has was paid for."""
    return (
        isinstance(event, Result)
        and event.reply is None
        and store.again.get(event.trial.trial_id, Outcome.FAILED) is not Outcome.FAILED
    )


def write_oldest(store: Store, waiting: deque[Event]) -> None:
    """Write the first events down that belong together, and take out of `waiting` what is written.

    Raises:
        StoreError: the disk took only a part, or nothing.
    """
    store._journal.write(waiting)


def _close_journal(journal: Journal, folder: Path) -> None:
    """Stop writing; a segment of no event leaves the list before it goes, or it would be missed."""
    if journal.empty:
        try:
            list_journal(folder, but=journal.segment.path)
        except AsyncbenchError:  # or it is no results folder any more
            journal.segment.close()
            return
    journal.close()
