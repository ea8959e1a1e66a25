"""A copy in a bucket of a results folder that is still growing."""

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from asyncbench.errors import AsyncbenchError, StoreError
from asyncbench.files import OWNERS, make_folder, storing
from asyncbench.store.bucket.claiming import Claim, Files, OvertakenError, claim
from asyncbench.store.bucket.fetching import WORKERS, BucketWriter, bring_folder, remove_folder
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects
from asyncbench.store.checksums import check
from asyncbench.store.folder import Store
from asyncbench.store.holdings import note_lost_journal, settled_manifest
from asyncbench.store.manifest import (
    HOLDS,
    JOURNAL,
    MANIFEST,
    is_partial,
    is_results_folder,
    joined_workers,
    set_partial,
    stamped,
)
from asyncbench.store.schema import SCHEMAS

POLL_EVERY_S: Final = 1.0  # whether anything was sealed
FIRST_WAIT_S, LONGEST_WAIT_S = 5.0, 120.0  # after an upload that failed
LAST_TRIES: Final = 4  # of the upload at the end
STAYING: Final = frozenset({MANIFEST, JOURNAL, WORKERS, "servers", *SCHEMAS})  # or are told otherwise
SMALL_BYTES: Final = 2**20  # other files up to this are read at once

Notify = Callable[[str], None]


class FolderCopy:
    """The copy of a results folder in a bucket.

        copy = FolderCopy.claim("s3://bucket/night", folder)
        with Store.open(folder, sweep="night") as store:
            …                     # beside it: await copy.tend(store, notify)
        await copy.finish(notify)

    The copy holds the local folder for this process from `claim` to `finish`.
    """

    def __init__(self, claimed: Claim) -> None:
        """Use `claim`."""
        self.address, self.folder, self.lost = claimed.address, claimed.folder, claimed.lost
        self.workers: dict[str, bool] = {}  # whether their folders in the bucket are whole, by name
        self._claim = claimed
        self._links = self.folder.with_name(f".{self.folder.name}.outgoing")
        self._complained = False  # that uploads fail
        self._checked = set[str]()  # parts, which never change, and no two have one name

    @classmethod
    def claim(cls, address: str, folder: Path, *, accept_loss: bool = False) -> "FolderCopy":
        """Claim a folder in a bucket, and bring what it holds into the local folder.

        Raises:
            ConfigError: the local folder belongs to something else; the bucket cannot be used.
            StoreError: another writer has not ended; the bucket cannot be reached.
        """
        return cls(claim(address, folder, prepare=_note_loss, accept_loss=accept_loss))

    def fetch_workers(self) -> None:
        """Bring folders of workers that ran on other machines beside those of this one.

        Raises:
            ConfigError, StoreError: the bucket cannot be read, or the disk takes no more.
        """
        top = BucketAddress.parse(self.address)
        joined = joined_workers(self.folder) if is_results_folder(self.folder) else frozenset()
        for name in BucketObjects(top).folders(WORKERS):
            worker = self.folder / WORKERS / name
            if name in joined:
                self.workers.setdefault(name, False)  # it is to be removed
                continue
            if worker.exists() and not is_partial(worker):
                self.workers[name] = True
                continue

            # Bring the worker's folder as it is now, in place of an older state.
            set_partial(worker, partial=True)
            shutil.rmtree(worker, ignore_errors=True)
            newest = bring_folder(str(top / WORKERS / name), worker)
            if newest is None or newest.ended:
                set_partial(worker, partial=False)
            if newest is not None:
                self.workers[name] = newest.ended

    def remove_workers(self) -> None:
        """Remove folders of workers from the bucket whose rows the run's own folder holds by now.

        Raises:
            ConfigError, StoreError: the bucket refuses.
        """
        for name in [name for name in self.workers if not (self.folder / WORKERS / name).exists()]:
            remove_folder(f"{self.address}/{WORKERS}/{name}")
            del self.workers[name]

    def note_loss(self) -> None:
        """Write down in the folder, which is there by now, whose journal was taken for lost."""
        _note_loss(self.folder, self.lost)

    async def tend(self, store: Store, notify: Notify, *, poll_every_s: float = POLL_EVERY_S) -> None:
        """Upload what is new, now and after each seal, until cancelled; what fails is tried again later.

        Raises:
            OvertakenError: another writer has claimed the folder in the bucket.
        """
        pushed, wait_s = -1, FIRST_WAIT_S
        while True:
            if pushed == store.journal.seals:
                await asyncio.sleep(poll_every_s)
                continue
            seals = store.journal.seals
            try:
                await self._call_in_thread(partial(self.push, store))
                pushed, wait_s, self._complained = seals, FIRST_WAIT_S, False
            except OvertakenError:
                raise
            except AsyncbenchError as error:
                self._complain(error, notify)
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_WAIT_S, 2 * wait_s)

    def push(self, store: Store) -> None:
        """Upload what is in parts by now; raises as `Claim.push`."""
        with store.parts_lock:
            files = self._outgoing(journal=False)
        self._check(files)
        self._claim.push(files)

    async def finish(
        self, notify: Notify, *, tries: int = LAST_TRIES, then: Callable[[], None] | None = None
    ) -> None:
        """Upload the folder as it was closed, with what is left in its journal, and let it go.

        Args:
            notify: is called with a message when an upload fails.
            tries: how often the upload is tried.
            then: is called after the upload, before the folder is let go.

        Raises:
            OvertakenError: another writer has claimed the folder in the bucket.
            ConfigError, StoreError: the bucket does not take it. All results are in the local folder.
        """
        self._claim.hurry.clear()
        wait_s = FIRST_WAIT_S
        try:
            for tries_left in reversed(range(tries)):
                try:
                    await self._call_in_thread(self._push_all)
                    return None if then is None else await asyncio.to_thread(then)
                except AsyncbenchError as error:
                    if not tries_left or isinstance(error, OvertakenError):
                        raise
                    self._complain(error, notify)
                await asyncio.sleep(wait_s)
                wait_s *= 2
        finally:
            shutil.rmtree(self._links, ignore_errors=True)
            self._claim.close()

    def close(self) -> None:
        """Let the local folder go; in the bucket it stays claimed, for this machine to go on."""
        self._claim.close()

    async def give_back(self) -> None:
        """Let go of a folder that nothing was done with; raises as `finish`."""
        await asyncio.to_thread(self._claim.give_back)

    def _push_all(self) -> None:
        if is_results_folder(self.folder):
            files = self._outgoing(journal=True)
            self._check(files)
            self._claim.push(files, ended=True)
        else:  # whoever claimed it never came to open it
            self._claim.end_unchanged()

    async def _call_in_thread(self, push: Callable[[], None]) -> None:
        """Upload in another thread; when cancelled, wait until it is done with the objects at hand."""
        pushing = asyncio.ensure_future(asyncio.to_thread(push))
        try:
            await asyncio.shield(pushing)
        except asyncio.CancelledError:
            self._claim.hurry.set()
            with suppress(AsyncbenchError):
                await pushing
            raise

    def _complain(self, error: AsyncbenchError, notify: Notify) -> None:
        """Say once that uploads fail."""
        if not self._complained:
            notify(f"{error} The results are safe in {self.folder}; the upload is tried again.")
        self._complained = True

    def _check(self, files: Files) -> None:
        """Refuse a part that is damaged: it would take the place of a good one in the bucket.

        Raises:
            StoreError: it is.
        """
        for name, path in files.items():
            if name in self._checked or name.partition("/")[0] not in SCHEMAS or isinstance(path, bytes):
                continue
            try:
                check(path)
            except StoreError as error:
                raise StoreError(str(error).replace(str(path), str(self.folder / name))) from None
            self._checked.add(name)

    def _outgoing(self, *, journal: bool) -> Files:
        """Return the files of the folder that count, as they stay while they go up: some grow meanwhile."""
        shutil.rmtree(self._links, ignore_errors=True)
        manifest = settled_manifest(self.folder)
        segments = manifest[HOLDS].get(JOURNAL, []) if journal else []
        manifest[HOLDS][JOURNAL] = segments
        files: dict[str, Path | bytes] = {MANIFEST: stamped(manifest)}
        with storing(self.folder):
            for name in (*manifest[HOLDS]["parts"], *(f"{JOURNAL}/{segment}" for segment in segments)):
                files[name] = _linked(self.folder / name, self._links / name)

            # All other files, but what stays here and what is being written.
            for top in sorted(self.folder.iterdir()):
                if top.name in STAYING or top.name.startswith("."):
                    continue
                for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                    if not path.is_file() or path.is_symlink() or path.suffix == ".new":
                        continue
                    name = path.relative_to(self.folder).as_posix()
                    if path.suffix == ".parquet":
                        files[name] = _linked(path, self._links / name)
                    elif path.stat().st_size > SMALL_BYTES:
                        files[name] = copy = self._links / name
                        make_folder(copy.parent, mode=OWNERS)
                        shutil.copy2(path, copy)
                    else:
                        files[name] = path.read_bytes()
        return files


def _linked(path: Path, link: Path) -> Path:
    make_folder(link.parent, mode=OWNERS)
    try:
        os.link(path, link)
    except OSError:  # a file system without links
        shutil.copyfile(path, link)
    return link


def _note_loss(folder: Path, lost: BucketWriter | None) -> None:
    if lost is not None and is_results_folder(folder):
        note_lost_journal(folder, f"of {lost}")
