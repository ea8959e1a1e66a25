"""The manifests of a folder in a bucket: numbered, each written once; the newest says which objects count.

    manifests/000042.json
    {
      "format": 1,
      "number": 42,
      "ended": false,    whether nothing of the folder is left on the machine of its writer
      "written_at": …,
      "writer": {"id", "host", "folder", "began_at"},
      "files": {"sweep.yaml": {"key": "sweep-3f0a51c2-1.yaml", "bytes": 812, "sha256": …}, …}
    }

`files` has the paths that the files have in a local folder. An object's key was never used before. So a
manifest that was read once stays true, until what it names is deleted after a newer one.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, Self

import orjson

from asyncbench.errors import StoreError
from asyncbench.store.bucket.objects import BucketObjects, GoneError

FORMAT: Final = 1
MANIFESTS: Final = "manifests"
LOOKS: Final = 5  # at a list whose newest is gone: a whole folder was removed meanwhile


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
            said: dict[str, Any] = orjson.loads(data)
            if said["format"] != FORMAT:
                raise StoreError(f"{place}: a later version of asyncbench wrote it. Update asyncbench.")
            files = {path: FileObject(**file) for path, file in said["files"].items()}
            writer = BucketWriter(**said["writer"])
            known = {name: said[name] for name in ("number", "ended", "written_at")}
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
    for looks_left in reversed(range(LOOKS)):
        names = [PurePosixPath(name).stem for name in objects.names(MANIFESTS)]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return None
        try:
            return read_bucket_manifest(objects, max(numbers))
        except GoneError:
            if not looks_left:
                raise StoreError(f"{objects.address}: is being deleted. Try again later.") from None
    raise AssertionError


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return all(part not in ("", ".", "..") for part in parts) and "\0" not in path
