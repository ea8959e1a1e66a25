"""Addresses of a bucket: `s3://BUCKET/FOLDER`, and where this machine keeps what belongs to one."""

import os
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final, Self

from asyncbench.errors import ConfigError

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")  # the first that is set counts


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A place in a bucket; `path` has no slash at its ends."""

    bucket: str
    path: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what an address names.

        Raises:
            ConfigError: it names no bucket, or nothing in it.
        """
        bucket, _, path = text.removeprefix("s3://").strip("/").partition("/")
        if not text.startswith("s3://") or not _BUCKET.fullmatch(bucket):
            raise ConfigError(f"{text}: names no bucket. Write s3://BUCKET/FOLDER.")
        if not path:
            raise ConfigError(f"{text}: names a bucket and nothing in it. Write s3://{bucket}/FOLDER.")
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise ConfigError(f"{text}: has an empty name, `.` or `..` between slashes. Write names only.")
        return cls(bucket, path)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.path}"

    def __truediv__(self, name: str) -> Self:
        return replace(self, path=f"{self.path}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        """The last name of it."""
        return self.path.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """What tells it from others, also from the same names at another provider."""
        return sha256(f"{endpoint()} {self}".encode()).hexdigest()[:16]

    def kept_in(self, variable: str, default: str) -> Path:
        """Return where this machine keeps what belongs to it.

        Args:
            variable: names the folder of a user that it is to be in, as `XDG_CACHE_HOME` does.
            default: that folder in the user's home.
        """
        told = Path(os.environ.get(variable, ""))
        folder = told if told.is_absolute() else Path.home() / default
        return folder / "asyncbench" / "s3" / self.digest


def journal_folder(address: str) -> Path:
    """Return where a run keeps what it copies to an address, unless it is told another place."""
    place = BucketAddress.of(address)
    return place.kept_in("XDG_STATE_HOME", ".local/state") / place.name


def s3_address(path: PathLike[str] | str) -> str | None:
    """Return the address of a bucket that a path is, also where a `Path` made one slash of two; else None."""
    scheme, colon, rest = str(path).partition(":/")
    return f"s3://{rest.strip('/')}" if colon and scheme.lower() == "s3" else None


def endpoint() -> str:
    """Return the address of the provider that the environment names; empty: Amazon's own."""
    return next((said for name in _ENDPOINTS if (said := os.environ.get(name))), "")
