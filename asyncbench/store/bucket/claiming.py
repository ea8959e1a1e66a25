"""Claims on a folder in a bucket: one writer at a time, on one machine, and its uploads.

Beside the local folder lies its mark, `overnight.bucket`: to which address the folder belongs, and under
which id it wrote there. A claim is a manifest that says "not ended". Whoever finds such a claim of another
id must not write: answers may be in a journal that only the other machine has.
"""

import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from os import PathLike
from pathlib import Path, PurePosixPath
from threading import Event, Lock
from typing import Final

import orjson

from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.files import (
    OWNERS,
    home_expanded,
    make_folder,
    quoted,
    storing,
    sync_folders,
    sync_to_disk,
    write_durably,
)
from asyncbench.store.bucket.fetching import (
    CACHE,
    MANIFESTS,
    THREADS,
    WORKERS,
    BucketManifest,
    BucketWriter,
    FileObject,
    build,
    local_folder,
    locked_file,
    manifest_name,
    newest_manifest,
    read_bucket_manifest,
)
from asyncbench.store.bucket.objects import (
    BucketAddress,
    BucketObjects,
    GoneError,
    TakenError,
    digest_of,
    journal_folder,
    s3_address,
)

LARGE_BYTES: Final = 64 * 2**20  # of such files one goes up at a time: each is held whole
Files = Mapping[str, Path | bytes]  # by path in the folder: a file that does not change, or its bytes
Prepare = Callable[[Path, BucketWriter | None], None]  # a folder that was fetched; whose journal it lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What lies beside a local folder that is copied to a bucket."""

    address: str
    writers: tuple[str, ...]  # the ids under which it wrote there, or tried to begin
    base: int  # the number of the manifest that it found when it began last
    whole: bool = True  # the folder holds all that it had then
    lost: BucketWriter | None = None  # whose journal was taken for lost then


class OvertakenError(StoreError):
    """Another writer has claimed the folder: nothing may be written there any more."""


class Claim:
    """A folder in a bucket that this process alone writes to, until it lets go.

    `lost` is the writer whose journal is taken for lost, if there is one. One thread at a time may push.
    """

    def __init__(self, objects: BucketObjects, folder: Path, lost: BucketWriter | None) -> None:
        """Use `claim`."""
        self.address, self.folder, self.lost = str(objects.address), folder, lost
        self.hurry = Event()  # set: an upload that is under way stops after the objects at hand
        self.held = ExitStack()  # the local folder
        self._objects = objects
        began_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.writer = BucketWriter(
            id=secrets.token_hex(8), host=socket.gethostname(), folder=str(folder), began_at=began_at
        )
        self._number, self._free = 0, False  # and whether others could begin before
        self._files: Mapping[str, FileObject] = {}
        self._seen: dict[str, tuple[tuple[int, ...], FileObject]] = {}  # by path: the file as it was then
        self._placed: dict[tuple[str, str], FileObject] = {}  # by path and digest: what may be there already
        self._keys, self._large = count(), Lock()

    def push(self, files: Files, *, ended: bool = False) -> None:
        """Upload what is new, then say that these files count, and delete what counts no more.

        Args:
            files: all files of the folder.
            ended: nothing of the folder is left on this machine alone.

        Raises:
            OvertakenError: another writer has claimed the folder.
            ConfigError, StoreError: the bucket does not take it; what counted before still does.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            stored = dict(zip(files, pool.map(self._upload, files, files.values()), strict=True))
        if dict(self._files) != stored or ended:
            before = self._files
            self._write(stored, ended=ended)
            kept = {file.key for file in stored.values()}
            self._seen = {path: seen for path, seen in self._seen.items() if seen[1].key in kept}
            self._placed = {name: file for name, file in self._placed.items() if file.key in kept}
            with suppress(AsyncbenchError):  # else the next claim deletes them
                self._objects.delete([file.key for file in before.values() if file.key not in kept])

    def end_unchanged(self) -> None:
        """Say that the folder is free again, with the files that it had; raises as `push`."""
        self._write(self._files, ended=True)

    def give_back(self) -> None:
        """Let go where nothing was done: others may go on, unless answers are on this machine alone."""
        with self.held:
            if self._free:
                self.end_unchanged()

    def close(self) -> None:
        """Let the local folder go; the claim in the bucket stays until a push that has ended."""
        self.held.close()

    def take(self, base: BucketManifest | None) -> None:
        """Write the claim down in the bucket, on top of the newest manifest.

        Raises:
            StoreError: somebody else was faster.
        """
        self._number, self._files = (base.number, base.files) if base else (0, {})
        self._free = base.ended if base else not any(self.folder.iterdir())
        self._write(self._files, ended=False)

    def _write(self, files: Mapping[str, FileObject], *, ended: bool) -> None:
        """Write the next manifest."""
        written_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = BucketManifest(
            number=self._number + 1, writer=self.writer, ended=ended, written_at=written_at, files=files
        )
        # No number is left out: a writer that was overtaken finds the next one taken.
        try:
            self._objects.put_new(manifest_name(manifest.number), manifest.encode())
        except TakenError:
            there = read_bucket_manifest(self._objects, manifest.number)
            if there.writer.id != self.writer.id:
                raise OvertakenError(
                    f"{self.address}: {there.writer} writes there now, in {there.writer.folder}. This "
                    f"run stops. All its results are in {self.folder}. Wait for the other, then `merge`."
                ) from None
            self._number = there.number  # ours: the answer was lost
            self._write(files, ended=ended)
            return
        self._number, self._files = manifest.number, files

    def _upload(self, path: str, data: Path | bytes) -> FileObject:
        """Return the object that holds a file, uploaded if none does."""
        if self.hurry.is_set():
            raise StoreError(f"{self.address}: the upload was stopped.")

        # A file that was replaced or changed has another state.
        if isinstance(data, bytes):
            state: tuple[int, ...] = len(data), hash(data)
        else:
            with storing(data):
                stat = data.stat()
            state = stat.st_size, stat.st_mtime_ns, stat.st_ino
        seen = self._seen.get(path)
        if seen is not None and seen[0] == state:
            return seen[1]
        digest, file = digest_of(data, "sha256"), self._files.get(path)
        size = len(data) if isinstance(data, bytes) else state[0]
        if file is None or (file.bytes, file.sha256) != (size, digest):
            # A key that no object had before, nor will have.
            name = PurePosixPath(path)
            key = name.with_name(f"{name.stem}-{self.writer.id[:8]}-{next(self._keys)}{name.suffix}")
            new = FileObject(key=str(key), bytes=size, sha256=digest)
            file = self._placed.setdefault((path, digest), new)
            with self._large if size > LARGE_BYTES else nullcontext():
                self._objects.put_new(file.key, data)
        self._seen[path] = state, file
        return file


def claim(address: str, folder: Path, *, prepare: Prepare, accept_loss: bool = False) -> Claim:
    """Return a folder in a bucket to write to, with all that it holds in the local folder.

    Args:
        address: `s3://BUCKET/FOLDER`.
        folder: the local folder; it is fetched where this machine lacks it, or has an older state.
        prepare: is given a folder that was fetched, before it counts.
        accept_loss: go on although another machine may hold answers that never came to the bucket.

    Raises:
        ConfigError: the local folder belongs to something else; the bucket cannot be used.
        StoreError: another writer has not ended; the bucket cannot be reached.
    """
    objects, folder = BucketObjects(BucketAddress.parse(address)), folder.absolute()
    with ExitStack() as exits:
        # Keep other processes of this machine from the folder.
        with storing(folder):
            make_folder(folder.parent, mode=OWNERS)
        try:
            exits.enter_context(locked_file(folder.with_name(f".{folder.name}.bucket.lock")))
        except BlockingIOError:
            raise StoreError(f"{folder}: another process works on it. Wait until it is done.") from None

        # The names are listed before the claim: what comes later may be another's.
        mark = _read_mark(folder, str(objects.address))
        reserved = (f"{WORKERS}/", f"{MANIFESTS}/")
        strays = [name for name in objects.names() if not name.startswith(reserved)]
        newest = newest_manifest(objects)
        if newest is None and strays:
            raise ConfigError(f"{address}: holds other things ({strays[0]}, …). Name a folder without any.")

        # The mark comes first, so that a claim of which no answer came is known as ours.
        missing, lost = _missing(objects, newest, mark, folder, accept_loss=accept_loss)
        claimed = Claim(objects, folder, lost)
        before, base = (mark.writers if mark else ()), newest.number if newest else 0
        tried = _Mark(
            address=str(objects.address),
            writers=(*before, claimed.writer.id),
            base=base,
            whole=not missing,
            lost=lost,
        )
        if not missing:
            with storing(folder):  # where it is missing later, somebody has deleted it
                make_folder(folder, mode=OWNERS)
        _write_mark(folder, tried)
        claimed.take(newest)

        # Fetch what this machine lacks, and delete what counts no more.
        if newest is not None and missing:
            try:
                _fetch(objects, newest, folder, lost, prepare)
            except BaseException:
                if newest.ended:  # nothing was written yet: others may go on
                    claimed.end_unchanged()
                raise
        _write_mark(folder, replace(tried, writers=(claimed.writer.id,), whole=True, lost=None))
        with suppress(AsyncbenchError):  # of dead writers; they only take room
            used = {file.key for file in newest.files.values()} if newest else set()
            objects.delete([name for name in strays if name not in used])
        claimed.held = exits.pop_all()
    return claimed


def current_folder(path: PathLike[str] | str, folder: Path | None = None) -> Path:
    """Return where the newest state of a results folder is on this machine; one of a bucket may be fetched.

    Args:
        path: a path, or an address; where a run of this machine wrote there last, its folder is newer.
        folder: the folder of such a run. [where runs keep it by themselves]

    Raises:
        ConfigError, StoreError: as `local_folder`.
    """
    if (address := s3_address(path)) is None:
        return home_expanded(path)
    folder = folder or journal_folder(address)
    if (mark := _read_mark(folder, address)) is not None and mark.whole:
        newest = newest_manifest(BucketObjects(BucketAddress.parse(address)))
        if newest is not None and newest.writer.id in mark.writers:
            return folder
    return local_folder(address)


def home_of(folder: Path, address: str) -> Path | None:
    """Return the local folder that runs copy to an address, where `folder` is it or was fetched from there.

    None: the folder was moved or copied by somebody, and stands for itself.

    Raises:
        StoreError: the mark beside the folder cannot be read.
    """
    fetched = BucketAddress.parse(address).kept_in(*CACHE)
    home = journal_folder(address)
    if folder.resolve() == home.resolve() or folder.resolve().is_relative_to(fetched.resolve()):
        return home
    with suppress(ConfigError):  # it is the copy of another address
        return None if _read_mark(folder.absolute(), address) is None else folder
    return None


def run_folder(path: PathLike[str] | str) -> Path:
    """Return the folder of a run on this machine that a path or an address names.

    Raises:
        ConfigError: no run of this machine keeps the address where runs do so by themselves.
    """
    address = s3_address(path)
    if address is None:
        return home_expanded(path)
    if not (folder := journal_folder(address)).is_dir():
        raise ConfigError(
            f"{address}: no run of this machine has it in {folder}. Name the folder of its --journal, or "
            "type this where the run goes on."
        )
    return folder


def _missing(
    objects: BucketObjects,
    newest: BucketManifest | None,
    mark: _Mark | None,
    folder: Path,
    *,
    accept_loss: bool,
) -> tuple[bool, BucketWriter | None]:
    """Return whether the local folder has to be fetched, and whose journal is then taken for lost.

    Raises:
        ConfigError: the local folder holds something else.
        StoreError: going on might lose answers, here or on another machine.
    """
    if newest is None:
        return False, None
    filled = folder.is_dir() and any(folder.iterdir())
    if mark is not None and newest.writer.id in mark.writers and (folder.is_dir() or not mark.whole):
        return not mark.whole, mark.lost
    if mark is None and filled:
        raise ConfigError(
            f"{folder}: is not the copy of {objects.address}, which holds results already. Name an empty "
            "folder with --journal, or join both with `asyncbench merge`."
        )
    if mark is not None and filled and _left_open(objects, mark, newest):
        raise StoreError(
            f"{folder}: holds answers that {objects.address} lacks: {newest.writer} went on without "
            f"them. Join both: asyncbench merge {quoted(objects.address)} {quoted(folder)} --out FOLDER. Or "
            "go on without them: name another folder with --journal."
        )
    if newest.ended:
        return True, None
    if not accept_loss:
        raise StoreError(
            f"{objects.address}: {newest.writer} writes there and has not ended. Wait for it. If it died, "
            f"run again on {newest.writer.host}, where its journal is: {newest.writer.folder}. If that is "
            "lost, add --accept-loss: calls since the last upload are asked, and paid, again."
        )
    return True, newest.writer


def _left_open(objects: BucketObjects, mark: _Mark, newest: BucketManifest) -> bool:
    """Return whether a folder wrote to the bucket and never said that it had ended."""
    for number in range(newest.number, mark.base, -1):
        manifest = read_bucket_manifest(objects, number)
        if manifest.writer.id in mark.writers:
            return not manifest.ended
    return False


def _fetch(
    objects: BucketObjects, newest: BucketManifest, folder: Path, lost: BucketWriter | None, prepare: Prepare
) -> None:
    """Put what the bucket holds in the place of a local folder."""
    fetched, draft, old = (folder.with_name(f".{folder.name}.{name}") for name in ("fetched", "new", "old"))
    for path in (draft, old):
        shutil.rmtree(path, ignore_errors=True)
    try:
        build(objects, {"": newest}, draft, fetched)
    except GoneError:
        raise StoreError(f"{objects.address}: lacks objects that its manifest names.") from None
    shutil.rmtree(fetched, ignore_errors=True)
    prepare(draft, lost)
    with storing(folder):
        sync_folders(draft)
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        sync_to_disk(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _mark_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.bucket")


def _read_mark(folder: Path, address: str) -> _Mark | None:
    """Return the mark of a local folder, or None if it has no mark.

    Raises:
        ConfigError: the folder is copied to another address.
    """
    try:
        entries = orjson.loads(_mark_of(folder).read_bytes())
        lost = None if entries["lost"] is None else BucketWriter(**entries["lost"])
        mark = _Mark(**{**entries, "writers": tuple(entries["writers"]), "lost": lost})
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(f"{_mark_of(folder)} cannot be read ({type(error).__name__}).") from None
    if mark.address != address:
        raise ConfigError(f"{folder}: is the copy of {mark.address}. Name another folder with --journal.")
    return mark


def _write_mark(folder: Path, mark: _Mark) -> None:
    path = _mark_of(folder)
    write_durably(path, orjson.dumps(asdict(mark)), temporary=path.with_name(f".{path.name}.new"))
