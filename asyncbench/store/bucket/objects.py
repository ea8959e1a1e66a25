"""Objects of a bucket: write new ones safely, read, list and delete them. Errors say how to fix the cause."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from hashlib import md5, sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.files import storing

if TYPE_CHECKING:  # it is an extra
    from obstore.store import S3Store

# ── addresses ────────────────────────────────────────────────────────────────────────────────────


_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")  # the first that is set counts


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A place in a bucket; `path` has no slash at its ends."""

    bucket: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the bucket and the path of an address.

        Raises:
            ConfigError: it names no bucket, or nothing in it.
        """
        bucket, _, path = text.removeprefix("s3://").strip("/").partition("/")
        if not text.startswith("s3://") or not _BUCKET.fullmatch(bucket):
            raise ConfigError(f"{text}: names no bucket. Write s3://BUCKET/FOLDER.")
        if not path:
            raise ConfigError(f"{text}: names a bucket and nothing in it. Write s3://{bucket}/FOLDER.")
        if any(name in ("", ".", "..") for name in path.split("/")):
            raise ConfigError(f"{text}: has an empty name, `.` or `..` between slashes. Write names only.")
        return cls(bucket, path)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.path}"

    def __truediv__(self, name: str) -> Self:
        return replace(self, path=f"{self.path}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]

    @property
    def digest(self) -> str:
        """A short text that differs between addresses, and between providers for the same address."""
        return sha256(f"{endpoint()} {self}".encode()).hexdigest()[:16]

    def kept_in(self, variable: str, default: str) -> Path:
        """Return the folder of this machine for files that belong to the address.

        Args:
            variable: the environment variable of its parent folder, such as `XDG_CACHE_HOME`.
            default: the parent folder below the user's home where that variable is not set.
        """
        configured = Path(os.environ.get(variable, ""))
        parent = configured if configured.is_absolute() else Path.home() / default
        return parent / "asyncbench" / "s3" / self.digest


def journal_folder(address: str) -> Path:
    """Return the folder of the results that a run copies to an address, unless it is given another."""
    parsed = BucketAddress.parse(address)
    return parsed.kept_in("XDG_STATE_HOME", ".local/state") / parsed.name


def s3_address(path: PathLike[str] | str) -> str | None:
    """Return the bucket address in a path, or None if it is no address. `Path` makes `s3:/` of `s3://`."""
    scheme, colon, rest = str(path).partition(":/")
    return f"s3://{rest.strip('/')}" if colon and scheme.lower() == "s3" else None


def endpoint() -> str:
    """Return the URL of the provider that the environment names, or an empty text for Amazon."""
    return next((url for name in _ENDPOINTS if (url := os.environ.get(name))), "")


# ── objects ──────────────────────────────────────────────────────────────────────────────────────


LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
CHUNK_BYTES: Final = 2**20
AT_ONCE: Final = 500  # objects deleted by one request
CONFLICT_WAITS_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)  # between attempts to write an object
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_STATUS: Final = re.compile(r"status code: (\d+)")

# Without a key in the environment, obstore asks a metadata server for one, and its error names that instead.
_NO_KEY: Final = ("/latest/api/token", "/latest/meta-data", "redential")

_KEYS: Final = {  # code of a provider's refusal → the rest of our message, with the way out
    "InvalidAccessKeyId": "does not know the key in AWS_ACCESS_KEY_ID. Correct it",
    "SignatureDoesNotMatch": "does not accept the key. Correct AWS_SECRET_ACCESS_KEY",
    "ExpiredToken": "says that the token has expired. Get a new one into AWS_SESSION_TOKEN",
    "InvalidToken": "does not accept the token. Correct AWS_SESSION_TOKEN, or unset it",
    "AccessDenied": "denies access. Allow your key GetObject, PutObject, DeleteObject and ListBucket there",
    "PermanentRedirect": "is in another region. Set AWS_REGION",
    "AuthorizationHeaderMalformed": "is in another region. Set AWS_REGION",
}


class TakenError(StoreError):
    """The bucket has an object of that name already, with other bytes."""


class GoneError(StoreError):
    """The bucket has no object of that name, or no longer."""


class BucketObjects:
    """The objects at and below an address.

    The key comes from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
    Any thread may use it.
    """

    def __init__(self, address: BucketAddress) -> None:
        """Check the settings. No request is sent.

        Raises:
            ConfigError: obstore is not installed, or the endpoint cannot be used.
        """
        self.address = address
        self._store = _store(address)

    def put_new(self, name: str, data: bytes | Path) -> None:
        """Write an object that is not there yet, whole or not at all, and check the bytes that arrived.

        An object with the same bytes counts as written: the answer to an earlier request may have been lost.

        Raises:
            TakenError: an object of that name has other bytes.
            ConfigError, StoreError: the bucket refuses it or cannot be reached.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        for wait_s in CONFLICT_WAITS_S:
            # Create the object. The provider's tag is usually the MD5 of the bytes that arrived.
            tag: str | None = None  # None: there is an object already
            with suppress(AlreadyExistsError), self._translated_errors():
                put = obstore.put(self._store, name, data, mode="create", use_multipart=False)
                tag = (put["e_tag"] or "").strip('"')
            if tag == digest_of(data, "md5"):
                return

            # There was one before, another request is writing it, or the tag is no MD5: read and compare.
            with suppress(GoneError):
                stored = sha256()
                for chunk in self._chunks(name):
                    stored.update(chunk)
                if stored.hexdigest() == digest_of(data, "sha256"):
                    return
                if tag is None:  # not ours
                    raise TakenError(f"{self.address / name} is there, with other bytes.")
                break  # we wrote it, but other bytes arrived

            time.sleep(wait_s)  # another request may still be writing it
        raise StoreError(f"{self.address / name} does not hold what was sent. Run again.")

    def get(self, name: str) -> bytes:
        """Return the bytes of an object; raises GoneError where there is none."""
        import obstore

        with self._translated_errors():
            return bytes(obstore.get(self._store, name).bytes())

    def download(self, name: str, path: Path) -> str:
        """Write the bytes of an object to a new file and return their SHA-256.

        Raises:
            GoneError: there is no such object.
            StoreError: the bucket or the disk fails.
        """
        digest = sha256()
        with storing(path), path.open("xb") as file:
            for chunk in self._chunks(name):
                file.write(chunk)
                digest.update(chunk)
        return digest.hexdigest()

    def names(self, below: str = "") -> list[str]:
        """Return the names of all objects below a name, relative to the address."""
        import obstore

        with self._translated_errors():
            return [listed["path"] for page in obstore.list(self._store, below or None) for listed in page]

    def folders(self, below: str = "") -> list[str]:
        """Return the names of the folders directly below a name, without what comes before them."""
        import obstore

        with self._translated_errors():
            prefixes = obstore.list_with_delimiter(self._store, below or None)["common_prefixes"]
        return [name.rpartition("/")[2] for name in prefixes]

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. One that does not exist is no error."""
        import obstore

        for start in range(0, len(names), AT_ONCE):
            with self._translated_errors():
                obstore.delete(self._store, names[start : start + AT_ONCE])

    def _chunks(self, name: str) -> Iterator[bytes]:
        import obstore

        with self._translated_errors():
            for chunk in obstore.get(self._store, name).stream(min_chunk_size=CHUNK_BYTES):
                yield bytes(chunk)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn errors of obstore into ours, which say what to do and quote no secret."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise _translate(error, self.address) from None
            raise GoneError(f"{self.address}: lacks an object. It was deleted meanwhile.") from None
        except AlreadyExistsError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise _translate(error, self.address) from None


def _store(address: BucketAddress) -> "S3Store":
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError:
        raise ConfigError(f"{address}: buckets need the extra `s3`: pip install 'asyncbench[s3]'.") from None
    return S3Store(
        address.bucket,
        prefix=address.path or None,
        config={"endpoint": _checked_endpoint(address)} if endpoint() else {},
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        client_options={
            "allow_http": endpoint().startswith("http://"),
            "connect_timeout": timedelta(seconds=10),
            "read_timeout": timedelta(seconds=30),
            "timeout": timedelta(minutes=30),
        },
        retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=60)},
    )


def _checked_endpoint(address: BucketAddress) -> str:
    """Return the URL of the provider, after a check that a key may be sent there.

    Raises:
        ConfigError: it is no URL, or the connection would not be encrypted.
    """
    url = endpoint().rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.scheme not in ("http", "https") or not url.isascii() or " " in url:
        raise ConfigError(
            f"{address}: AWS_ENDPOINT_URL is no address. Write one such as https://s3.example.org."
        )
    plain_allowed = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1")
    if parts.scheme == "http" and host not in LOOPBACK and not plain_allowed:
        raise ConfigError(
            f"{address}: AWS_ENDPOINT_URL begins with http://, so others could read your results. Write "
            "https://, or set AWS_ALLOW_HTTP=true if you trust the network."
        )
    return url


def digest_of(data: bytes | Path, kind: str) -> str:
    """Return the digest of bytes or of a file, in hexadecimal digits; `kind` is `sha256` or `md5`."""
    digest = sha256() if kind == "sha256" else md5(usedforsecurity=False)
    if isinstance(data, bytes):
        digest.update(data)
        return digest.hexdigest()
    with storing(data), data.open("rb") as file:
        for chunk in iter(partial(file.read, CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _translate(error: Exception, address: BucketAddress) -> AsyncbenchError:
    """Return our error for an error of obstore, with the way out."""
    message = str(error)
    code, status = _CODE.search(message), _STATUS.search(message)
    kind = code[1] if code else ""
    if any(words in message for words in _NO_KEY):
        return ConfigError(
            f"{address}: there is no key for the bucket. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if kind == "NoSuchBucket":
        return ConfigError(
            f"{address}: there is no bucket {address.bucket!r}. Make it, or correct the name. If it is not "
            "Amazon's, set AWS_ENDPOINT_URL."
        )
    refused: Callable[[str], AsyncbenchError] = ConfigError if kind in _KEYS else StoreError
    if kind in _KEYS or status:
        numbered = f"answered with status {status[1] if status else '?'}{f' ({kind})' if kind else ''}"
        return refused(f"{address}: the bucket {_KEYS.get(kind, f'{numbered}. Try again later')}.")
    if "HTTP error" in message:
        where = urlsplit(endpoint()).hostname or "Amazon S3"
        return StoreError(f"{address}: {where} cannot be reached. Check the network and AWS_ENDPOINT_URL.")
    return StoreError(f"{address}: the bucket gave an answer that obstore cannot read. Try again later.")
