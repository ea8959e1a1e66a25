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
    def parse(cls, data: bytes, name: str) -> Self:
        """Return a manifest from its bytes; an error quotes its `name`.

        Raises:
            StoreError: it is none, or a later asyncbench wrote it.
        """
        try:
            entries: dict[str, Any] = orjson.loads(data)
            if entries["format"] != FORMAT:
                raise StoreError(f"{name}: a later version of asyncbench wrote it. Update asyncbench.")
            files = {path: FileObject(**file) for path, file in entries["files"].items()}
            writer = BucketWriter(**entries["writer"])
            plain = {key: entries[key] for key in ("number", "ended", "written_at")}
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{name}: is no manifest of asyncbench ({type(error).__name__}).") from None
        outside = {"", ".", ".."}
        if any("\0" in path or outside.intersection(path.split("/")) for path in files):
            raise StoreError(f"{name}: names a file outside of the folder. Do not use it.")
        return cls(**plain, writer=writer, files=files)

    def encode(self) -> bytes:
        return orjson.dumps({"format": FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2)


def utc_text(iso_time: str) -> str:
    """Return a time of ISO 8601 as people read it."""
    return iso_time.replace("T", " ", 1).replace("+00:00", " UTC")


def manifest_name(number: int) -> str:
    return f"{MANIFESTS}/{number:06d}.json"


def read_bucket_manifest(objects: BucketObjects, number: int) -> BucketManifest:
    """Return a manifest by its number; raises GoneError where there is none."""
    name = manifest_name(number)
    return BucketManifest.parse(objects.get(name), str(objects.address / name))


def newest_manifest(objects: BucketObjects) -> BucketManifest | None:
    """Return the manifest that counts, or None if nobody has written there yet.

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


# ── fetching ─────────────────────────────────────────────────────────────────────────────────────


WORKERS: Final = "workers"  # folders below a folder, each with its own manifests
TRIES: Final = 50  # to fetch a folder in which objects are replaced meanwhile
THREADS: Final = 8  # a request to a bucket is mostly waiting
CACHE: Final = ("XDG_CACHE_HOME", ".cache")

Manifests = Mapping[str, BucketManifest]  # of a folder and those below it, by path in it: "", "workers/w1"

_FETCHED: dict[Path, tuple[BucketAddress, BucketManifest]] = {}  # what this process fetched, and whence
_IN_USE: dict[Path, int] = {}  # states that this process reads, until it ends


def local_folder(path: PathLike[str] | str) -> Path:
    """Return where a results folder is on this machine; one of a bucket is fetched, as it is now.

    Raises:
        ConfigError: there is nothing at the address, or it cannot be used.
        StoreError: the bucket cannot be read, or the disk takes no more.
    """
    if (written := s3_address(path)) is None:
        return home_expanded(path)
    address = BucketAddress.parse(written)
    objects, top = BucketObjects(address), address.kept_in(*CACHE)
    with storing(top):
        make_folder(top, mode=OWNERS)
    for _ in range(TRIES):
        try:
            manifests = read_manifests(objects)
        except GoneError:
            continue
        if not manifests or (manifests[""].ended and not manifests[""].files):
            raise ConfigError(f"{address}: there are no results. Correct the address, or run a sweep there.")
        if not manifests[""].files:
            raise ConfigError(
                f"{address}: {manifests[''].writer}, has uploaded nothing yet. Try again later."
            )

        # Each state of the folder has a name of its own in the cache.
        numbers = [
            f"{folder} {manifest.number} {manifest.writer.id}" for folder, manifest in manifests.items()
        ]
        state = top / sha256("\n".join(numbers).encode()).hexdigest()[:16]
        with suppress(GoneError), locked_file(top / ".lock", wait=True):  # compacted meanwhile
            if not (state / address.name).exists():
                make_folder(state)
                build(objects, manifests, state / address.name, top / "objects")
            # The state is kept until this process ends.
            if state not in _IN_USE:
                used = state.with_suffix(".used")
                _IN_USE[state] = descriptor = os.open(used, os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            _remove_unused(top)
            _FETCHED[state / address.name] = address, manifests[""]
            return state / address.name
    raise StoreError(f"{address}: changes faster than it can be read. Try again later.")


def display_name(path: PathLike[str] | str) -> str:
    """Return the name of a folder for people: its address, where it is one or was fetched from one."""
    fetched = _FETCHED.get(Path(path))
    return s3_address(path) or (str(path) if fetched is None else str(fetched[0]))


def written_elsewhere(path: Path) -> str | None:
    """Return a note on a folder whose writer had not ended when it was fetched, or None."""
    if (fetched := _FETCHED.get(path)) is None or fetched[1].ended:
        return None
    return f"{fetched[1].writer}, has not ended; it uploaded this at {utc_text(fetched[1].written_at)}"


def fetched_file(address: str) -> Path:
    """Return where a file of a bucket is on this machine, as it is now; raises as `local_folder`."""
    parsed = BucketAddress.parse(address)
    above, _, name = parsed.path.rpartition("/")
    cache = parsed.kept_in(*CACHE)
    with storing(cache):
        make_folder(cache, mode=OWNERS)
    draft = cache / f".{secrets.token_hex(4)}"
    try:
        digest = BucketObjects(BucketAddress(parsed.bucket, above)).download(name, draft)
        make_folder(cache / digest)
        draft.replace(cache / digest / name)
    except GoneError:
        raise ConfigError(f"{address}: there is no such file. Correct the address.") from None
    finally:
        draft.unlink(missing_ok=True)
    return cache / digest / name


def read_manifests(objects: BucketObjects) -> Manifests:
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
    filled = {f"{WORKERS}/{name}": worker for name, worker in workers.items() if worker and worker.files}
    return {"": main, **filled}


def bring_folder(address: str, folder: Path) -> BucketManifest | None:
    """Make a local folder of what an address holds now, and return its manifest, or None if it is empty.

    Raises:
        ConfigError, StoreError: as `local_folder`; or the folder is there.
    """
    objects, fetched = (
        BucketObjects(BucketAddress.parse(address)),
        folder.with_name(f".{folder.name}.fetched"),
    )
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
    objects = BucketObjects(BucketAddress.parse(address))
    while (newest := newest_manifest(objects)) is not None and not newest.ended:
        # The next manifest has no files, and is in the name of nobody who writes.
        writer = replace(newest.writer, id=secrets.token_hex(8))
        closed = replace(newest, number=newest.number + 1, writer=writer, ended=True, files={})
        with suppress(TakenError):  # its writer was faster
            objects.put_new(manifest_name(closed.number), closed.encode())
    if newest is not None and newest.files:
        objects.delete(sorted(objects.names(MANIFESTS), reverse=True))
    stays = manifest_name(newest.number) if newest is not None and not newest.files else None
    objects.delete([name for name in objects.names() if name != stays])


def build(objects: BucketObjects, manifests: Manifests, target: Path, fetched: Path) -> None:
    """Make a folder with all files that manifests name, in one step; `fetched` keeps what was got before.

    Raises:
        GoneError: an object is gone; there are newer manifests.
        StoreError: the bucket cannot be read, or the disk takes no more.
    """
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    wanted = [
        (f"{folder}/{file.key}".strip("/"), draft / folder / path, file)
        for folder, manifest in manifests.items()
        for path, file in manifest.files.items()
    ]
    with storing(target):
        make_folder(fetched, mode=OWNERS)
        make_folder(draft, mode=OWNERS)
        for parent in {path.parent for _, path, _ in wanted}:
            make_folder(parent)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda file: _fetch_file(objects, fetched, *file), wanted))
        with storing(target):
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fetch_file(objects: BucketObjects, fetched: Path, key: str, path: Path, file: FileObject) -> None:
    """Download an object unless that was done before, and put it at a path."""
    kept = fetched / sha256(key.encode()).hexdigest()
    if not kept.exists():
        draft = kept.with_name(f".{secrets.token_hex(8)}")
        try:
            if objects.download(key, draft) != file.sha256:
                raise StoreError(f"{objects.address / key} is not what was written: it is damaged.")
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)
    with storing(path):
        try:
            os.link(kept, path)
        except OSError:  # a file system without links
            shutil.copyfile(kept, path)


def _remove_unused(top: Path) -> None:
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
