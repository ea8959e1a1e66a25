"""Problem files elsewhere: an address of the Hugging Face Hub, or of a bucket, becomes a file here.

Of the Hub it is a file of one commit, in the Hub's own cache; of a bucket the object as it is now.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote

from asyncbench.contents import PACKED_ENDINGS
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.files import home_expanded
from asyncbench.problems.text_files import ENDINGS as TEXT_ENDINGS
from asyncbench.store.bucket.fetching import fetched_file
from asyncbench.store.bucket.objects import s3_address

if TYPE_CHECKING:  # it is an extra, and takes its time
    from huggingface_hub import HfApi

ENDINGS: Final = (
    *(".parquet", ".arrow", ".feather"),
    *(f"{ending}{packed}" for ending in TEXT_ENDINGS for packed in ("", *PACKED_ENDINGS)),
)
ABOUT_THE_DATA: Final = ("dataset_info.json", "dataset_infos.json")  # which are no data
MOST_NAMED: Final = 10  # files in a message
PATIENCE_S: Final = 10.0  # for an answer that no run needs
_ADDRESS: Final = re.compile(
    r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(?P<file>.+))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A problem file of the Hub, at one commit."""

    address: str  # as it was asked for
    pinned: str  # the same with its commit and file
    path: Path  # in the cache of huggingface_hub
    now: str | None = None  # the commit that the address leads to by now, if it is another


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    repo: str
    revision: str | None
    file: str | None

    @classmethod
    def parse(cls, address: str) -> Self:
        if (match := _ADDRESS.fullmatch(address)) is None:
            raise ConfigError(
                f"{address}: this is no address of a dataset. Write hf://datasets/OWNER/NAME, or "
                "hf://datasets/OWNER/NAME/FILE. A revision goes after the name: NAME@REVISION."
            )
        return cls(
            repo=match["repo"], revision=match["revision"] and unquote(match["revision"]), file=match["file"]
        )

    def __str__(self) -> str:
        return f"hf://datasets/{self.repo}@{self.revision}/{self.file}"


def hub_address(path: str | PathLike[str]) -> str | None:
    """Return the address on the Hub that a path is, also where a `Path` made one slash of two; else None."""
    scheme, colon, rest = str(path).partition(":/")
    return f"hf://{rest.lstrip('/')}" if colon and scheme == "hf" else None


def remote_address(path: str | PathLike[str]) -> str | None:
    """Return the address on the Hub or in a bucket that a path names, or None for this machine."""
    return hub_address(path) or s3_address(path)


@contextmanager
def problem_file(
    path: str | PathLike[str], pinned: str | None = None
) -> Iterator[tuple[Path, HubFile | None]]:
    """Yield where a problem file is on this machine; faults of one from elsewhere are told by its address.

    Args:
        path: a path, or an address: `hf://datasets/OWNER/NAME[@REVISION][/FILE]`, `s3://BUCKET/FILE`.
        pinned: the address with the commit and file that it led to before; they are taken again.

    Raises:
        ConfigError: it is no address; the extra for it is not installed; the bucket has no such file.
        ProblemSetError: there is no such file, you have no access to it, or the Hub cannot be reached.
        StoreError: the bucket cannot be reached.
    """
    if (address := remote_address(path)) is None:
        yield home_expanded(path), None
        return
    hub = _downloaded(address, pinned) if hub_address(path) else None
    file = fetched_file(address) if hub is None else hub.path
    try:
        yield file, hub
    except (ConfigError, ProblemSetError) as error:
        raise type(error)(str(error).replace(str(file), address)) from error


def _downloaded(address: str, pinned: str | None) -> HubFile:
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError:
        raise ConfigError(
            f"{address}: files of the Hub need the extra `hf`: pip install 'asyncbench[hf]'. Or download the "
            "file and name its path."
        ) from None
    from httpx2 import HTTPError

    hub, wanted, now = HfApi(library_name="asyncbench"), _Parts.parse(address), None
    try:
        if pinned is None:
            exact = _resolved(hub, wanted, address)
        else:
            exact = _Parts.parse(pinned)
            with suppress(HTTPError, OSError):  # a run can go on with what it has
                commit = hub.dataset_info(wanted.repo, revision=wanted.revision, timeout=PATIENCE_S).sha
                now = None if commit == exact.revision else commit
        path = hub.hf_hub_download(exact.repo, str(exact.file), repo_type="dataset", revision=exact.revision)
    except (HTTPError, OSError, ValueError) as error:
        raise ProblemSetError(f"{address}: {_meaning(error)}.") from None  # what was sent may hold a token
    return HubFile(address=address, pinned=str(exact), path=Path(path), now=now)


def _resolved(hub: "HfApi", wanted: _Parts, address: str) -> _Parts:
    """Return the commit that is asked for now, and the file that is meant."""
    info = hub.dataset_info(wanted.repo, revision=wanted.revision)
    files = [entry.rfilename for entry in info.siblings or ()]
    data = [
        name
        for name in files
        if name.lower().endswith(ENDINGS) and PurePosixPath(name).name not in ABOUT_THE_DATA
    ]
    names = f"{', '.join(data[:MOST_NAMED])}{', …' if len(data) > MOST_NAMED else ''}"
    if wanted.file is not None and wanted.file not in files:
        raise ProblemSetError(f"{address}: the dataset has no such file. Its files: {names or 'none'}.")
    if wanted.file is None and len(data) != 1:
        problem = (
            f"the dataset has {len(data):,} files: {names}" if data else "the dataset has no file to read"
        )
        raise ProblemSetError(f"{address}: {problem}. Name one: hf://datasets/{wanted.repo}/FILE.")
    return replace(wanted, revision=info.sha, file=wanted.file or data[0])


def _meaning(error: Exception) -> str:
    """Return the meaning of an error of the Hub, and the way out."""
    from huggingface_hub import errors, get_token

    match error:
        case errors.GatedRepoError():
            return (
                "you have no access to this dataset. Ask for it on its page, and set HF_TOKEN to your token"
            )
        case errors.RevisionNotFoundError():
            return "the dataset has no such revision. Correct what follows @, or leave it out"
        case errors.HfHubHTTPError() if error.response.status_code == 401 and get_token():
            return "the Hub does not accept your token. Correct HF_TOKEN, or remove it"
        case errors.HfHubHTTPError() if error.response.status_code in (401, 404):
            return (
                "there is no such dataset, or it is private. Correct OWNER/NAME, or set HF_TOKEN to a token "
                "that may read it"
            )
        case errors.HfHubHTTPError():
            return f"the Hub answered with status {error.response.status_code}. Try again later"
        case errors.HFValidationError():
            return "the Hub takes no such name. Correct OWNER/NAME"
    reason = getattr(error, "strerror", None) or type(error).__name__
    return f"the Hub cannot be reached ({reason}). Check the network, or download the file and name its path"
