"""Local copies of folders in a bucket: each state is fetched once, whole, beside states still being read.

DIGEST/                             of the address, in the user's cache
  objects/                          what was fetched, by key
  3f0a51c2b4d6e879/overnight/…      a state of the folder: links to these
  3f0a51c2b4d6e879.used             held by those who read it
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

import orjson

from asyncbench.errors import ConfigError, StoreError
from asyncbench.files import OWNERS, home_expanded, make_folder, storing
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, GoneError, TakenError, s3_address

# ── manifests ────────────────────────────────────────────────────────────────────────────────────
# manifests/000042.json:
#   {"format": 1, "number": 42, "written_at": …, "writer": {"id", "host", "folder", "began_at"},
#    "ended": false,       whether nothing of the folder is left on the machine of its writer
#    "files": {"sweep.yaml": {"key": "sweep-3f0a51c2-1.yaml", "bytes": 812, "sha256": …}, …}}
# `files` has the paths that the files have in a local folder. An object's key was never used before. So a
# manifest that was read once stays true, until what it names is deleted after a newer one.


FORMAT: Final = 1
MANIFESTS: Final = "manifests"
LIST_TRIES: Final = 5  # at a list whose newest is gone: a whole folder was removed meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """Who writes to a folder in a bucket."""

    id: str  # random, new whenever somebody begins
    host: str
    folder: str  # on that machine
    began_at: str  # UTC, ISO 8601

    def __str__(self) -> str:
        return f"a run on {self.host}, begun at {utc_text(self.began_at)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileObject:
    """A file of a folder, as an object."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketManifest:
    """What a folder in a bucket holds, by one of its manifests."""

    number: int
    writer: BucketWriter
    ended: bool
    written_at: str  # UTC, ISO 8601
    files: Mapping[str, FileObject] = field(default_factory=dict)  # by path in the folder

    @classmethod
    def of(cls, data: bytes, place: str) -> Self:
        """Return what a manifest says.

        Raises:
            StoreError: it is none, or a later asyncbench wrote it.
        """
        try:
            entries: dict[str, Any] = orjson.loads(data)
            if entries["format"] != FORMAT:
                raise StoreError(f"{place}: a later version of asyncbench wrote it. Update asyncbench.")
            files = {path: FileObject(**file) for path, file in entries["files"].items()}
            writer = BucketWriter(**entries["writer"])
            known = {name: entries[name] for name in ("number", "ended", "written_at")}
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{place}: is no manifest of asyncbench ({type(error).__name__}).") from None
        if any(not _is_inside(path) for path in files):
            raise StoreError(f"{place}: names a file outside of the folder. Do not use it.")
        return cls(**known, writer=writer, files=files)

    def as_bytes(self) -> bytes:
        return orjson.dumps({"format": FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2)


def utc_text(at: str) -> str:
    """Return a time as people read it."""
    return at.replace("T", " ", 1).replace("+00:00", " UTC")


def manifest_name(number: int) -> str:
    return f"{MANIFESTS}/{number:06d}.json"


def read_bucket_manifest(objects: BucketObjects, number: int) -> BucketManifest:
    """Return a manifest by its number; raises GoneError where there is none."""
    name = manifest_name(number)
    return BucketManifest.of(objects.get(name), str(objects.address / name))


def newest_manifest(objects: BucketObjects) -> BucketManifest | None:
    """Return the manifest that counts; None: there is none, so nobody has written there.

    Raises:
        ConfigError, StoreError: the bucket cannot be read.
    """
    for tries_left in reversed(range(LIST_TRIES)):
        names = [PurePosixPath(name).stem for name in objects.names(MANIFESTS)]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return None
        try:
            return read_bucket_manifest(objects, max(numbers))
        except GoneError:
            if not tries_left:
                raise StoreError(f"{objects.address}: is being deleted. Try again later.") from None
    raise AssertionError


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return all(part not in ("", ".", "..") for part in parts) and "\0" not in path


# ── fetching ─────────────────────────────────────────────────────────────────────────────────────


WORKERS: Final = "workers"  # folders below a folder, each with its own manifests
TRIES: Final = 50  # to fetch a folder in which objects are replaced meanwhile
THREADS: Final = 8  # a request to a bucket is mostly waiting
CACHE: Final = ("XDG_CACHE_HOME", ".cache")

Parts = Mapping[str, BucketManifest]  # of a folder and of those below it, by the path in it: "", "workers/w1"

_FETCHED: dict[Path, tuple[BucketAddress, BucketManifest]] = {}  # what this process fetched, and whence
_IN_USE: dict[Path, int] = {}  # states that this process reads, until it ends


def at_hand(path: PathLike[str] | str) -> Path:
    """Return where a results folder is on this machine; one of a bucket is fetched, as it is now.

    Raises:
        ConfigError: there is nothing at the address, or it cannot be used.
        StoreError: the bucket cannot be read, or the disk takes no more.
    """
    address = s3_address(path)
    return home_expanded(path) if address is None else _fetched(BucketAddress.of(address))


def display_name(path: PathLike[str] | str) -> str:
    """Return what people call a folder: its address, where it is one or was fetched from one."""
    fetched = _FETCHED.get(Path(path))
    return s3_address(path) or (str(path) if fetched is None else str(fetched[0]))


def written_elsewhere(path: Path) -> str | None:
    """Return what to say of a folder whose writer had not ended when it was fetched; None: nothing."""
    if (fetched := _FETCHED.get(path)) is None or fetched[1].ended:
        return None
    return f"{fetched[1].writer}, has not ended; it uploaded this at {utc_text(fetched[1].written_at)}"


def fetched_file(address: str) -> Path:
    """Return where a file of a bucket is on this machine, as it is now; raises as `at_hand`."""
    parsed = BucketAddress.of(address)
    above, _, name = parsed.path.rpartition("/")
    place = parsed.kept_in(*CACHE)
    with storing(place):
        make_folder(place, mode=OWNERS)
    draft = place / f".{secrets.token_hex(4)}"
    try:
        digest = BucketObjects(BucketAddress(parsed.bucket, above)).download(name, draft)
        make_folder(place / digest)
        draft.replace(place / digest / name)
    except GoneError:
        raise ConfigError(f"{address}: there is no such file. Correct the address.") from None
    finally:
        draft.unlink(missing_ok=True)
    return place / digest / name


def parts_of(objects: BucketObjects) -> Parts:
    """Return the manifests of a folder and of the workers' below it; empty: there is no folder.

    Raises:
        GoneError: the folder has changed meanwhile: it may have taken over what its workers had.
    """
    main = newest_manifest(objects)
    if main is None:
        return {}
    names = sorted(objects.folders(WORKERS))
    below = [BucketObjects(objects.address / WORKERS / name) for name in names]
    with ThreadPoolExecutor(THREADS) as pool:
        workers = dict(zip(names, pool.map(newest_manifest, below), strict=True))
    again = newest_manifest(objects)
    if again is None or again.number != main.number:
        raise GoneError(f"{objects.address}: has changed meanwhile.")
    parts = {f"{WORKERS}/{name}": worker for name, worker in workers.items() if worker and worker.files}
    return {"": main, **parts}


def bring_folder(address: str, folder: Path) -> BucketManifest | None:
    """Make a local folder of what an address holds now, and return its manifest; None: it holds nothing.

    Raises:
        ConfigError, StoreError: as `at_hand`; or the folder is there.
    """
    objects, fetched = BucketObjects(BucketAddress.of(address)), folder.with_name(f".{folder.name}.fetched")
    for tries_left in reversed(range(TRIES)):
        newest = newest_manifest(objects)
        if newest is None or not newest.files:
            return None
        try:
            build(objects, {"": newest}, folder, fetched)
            break
        except GoneError:
            if not tries_left:
                raise
    shutil.rmtree(fetched, ignore_errors=True)
    return newest


def remove_folder(address: str) -> None:
    """Delete all that an address holds: its manifests first, so that no reader looks for the rest.

    Where its writer has not ended, a manifest of no files stays: the writer finds that it was overtaken.

    Raises:
        ConfigError, StoreError: the bucket refuses.
    """
    objects = BucketObjects(BucketAddress.of(address))
    while (newest := newest_manifest(objects)) is not None and not newest.ended:
        closed = _closed(newest)
        with suppress(TakenError):  # its writer was faster
            objects.put_new(manifest_name(closed.number), closed.as_bytes())
    if newest is not None and newest.files:
        objects.delete(sorted(objects.names(MANIFESTS), reverse=True))
    stays = manifest_name(newest.number) if newest is not None and not newest.files else None
    objects.delete([name for name in objects.names() if name != stays])


def _closed(newest: BucketManifest) -> BucketManifest:
    """Return a manifest after the newest, of no files, in the name of nobody who writes."""
    writer = replace(newest.writer, id=secrets.token_hex(8))
    return replace(newest, number=newest.number + 1, writer=writer, ended=True, files={})


def build(objects: BucketObjects, parts: Parts, target: Path, fetched: Path) -> None:
    """Make a folder with all files that manifests name, in one step; `fetched` keeps what was got before.

    Raises:
        GoneError: an object is gone; there are newer manifests.
        StoreError: the bucket cannot be read, or the disk takes no more.
    """
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    wanted = [
        (f"{part}/{file.key}".strip("/"), draft / part / path, file)
        for part, manifest in parts.items()
        for path, file in manifest.files.items()
    ]
    with storing(target):
        make_folder(fetched, mode=OWNERS)
        make_folder(draft, mode=OWNERS)
        for folder in {place.parent for _, place, _ in wanted}:
            make_folder(folder)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda file: _place(objects, fetched, *file), wanted))
        with storing(target):
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _place(objects: BucketObjects, fetched: Path, key: str, place: Path, file: FileObject) -> None:
    """Fetch an object unless it was, and give it its place."""
    kept = fetched / sha256(key.encode()).hexdigest()
    if not kept.exists():
        draft = kept.with_name(f".{secrets.token_hex(8)}")
        try:
            if objects.download(key, draft) != file.sha256:
                raise StoreError(f"{objects.address / key} is not what was written: it is damaged.")
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)
    with storing(place):
        try:
            os.link(kept, place)
        except OSError:  # a file system without links
            shutil.copyfile(kept, place)


def _fetched(address: BucketAddress) -> Path:
    objects, top = BucketObjects(address), address.kept_in(*CACHE)
    with storing(top):
        make_folder(top, mode=OWNERS)
    for _ in range(TRIES):
        try:
            parts = parts_of(objects)
        except GoneError:
            continue
        if not parts or (parts[""].ended and not parts[""].files):
            raise ConfigError(f"{address}: there are no results. Correct the address, or run a sweep there.")
        if not parts[""].files:
            raise ConfigError(f"{address}: {parts[''].writer}, has uploaded nothing yet. Try again later.")
        state = top / _name_of(parts)
        with suppress(GoneError), locked_file(top / ".lock", wait=True):  # compacted meanwhile
            if not (state / address.name).exists():
                make_folder(state)
                build(objects, parts, state / address.name, top / "objects")
            _use(state)
            _clear(top)
            _FETCHED[state / address.name] = address, parts[""]
            return state / address.name
    raise StoreError(f"{address}: changes faster than it can be read. Try again later.")


def _name_of(parts: Parts) -> str:
    """Return what tells a state from others."""
    lines = [f"{part} {manifest.number} {manifest.writer.id}" for part, manifest in parts.items()]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def _use(state: Path) -> None:
    """Keep a state until this process ends."""
    if state not in _IN_USE:
        _IN_USE[state] = descriptor = os.open(state.with_suffix(".used"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def _clear(top: Path) -> None:
    """Remove the states that nobody reads, and what was fetched for them alone."""
    for used in top.glob("*.used"):
        if used.with_suffix("") in _IN_USE:
            continue
        with suppress(BlockingIOError), locked_file(used):
            shutil.rmtree(used.with_suffix(""), ignore_errors=True)
            used.unlink(missing_ok=True)
    for kept in (top / "objects").iterdir():
        with suppress(FileNotFoundError):
            if kept.stat().st_nlink == 1:
                kept.unlink()


@contextmanager
def locked_file(path: Path, *, wait: bool = False) -> Iterator[int]:
    """Hold a file, made if it is missing.

    Raises:
        BlockingIOError: another process holds it, and this one does not `wait`.
    """
    with storing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield descriptor
    finally:
        os.close(descriptor)
