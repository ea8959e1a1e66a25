"""Batches of one provider: the calls and their results, in one form for all vendors."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

import orjson

from asyncbench.errors import ProviderError
from asyncbench.providers.error_kinds import refusal
from asyncbench.providers.wire import Response, text
from asyncbench.records import Reply, Request

# Replies to a create that say for certain that nothing was created.
NOT_CREATED: Final = frozenset({400, 401, 403, 404, 405, 413, 422, 429})


class NotRun(StrEnum):
    """Reason for which a request of a batch was never run; it costs nothing."""

    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBatch:
    """A batch as its vendor tells of it. Times are UTC, seconds since 1970."""

    id: str
    ended: bool  # nothing more will be run, and what was run can be read
    status: str  # the vendor's word; of one who imitates OpenAI, OpenAI's for it
    created_at: float
    ended_at: float | None = None
    requests: int | None = None  # in all; None: not counted yet
    done: int | None = None  # run so far; None: not told
    files: tuple[str, ...] = ()  # with its results, once it has ended; empty where they have another address
    input_file_id: str | None = None
    batch_key: str | None = None  # ours, where the vendor keeps what we said
    tokens: tuple[int, int] | None = None  # input and output of all lines; None: not told
    faults: tuple[Mapping[str, object], ...] = ()  # why the whole of it was refused: code, message, line


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One line of results."""

    custom_id: str
    ended: Reply | ProviderError | NotRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """File of requests that a batch is created of; uploaded before where the vendor wants it so."""

    path: Path
    size: int  # bytes
    key: str
    requests: int
    sha256: str
    file_id: str | None = None  # of the upload


class BatchApi(Protocol):
    """The batches of one model. Each call is made once; failures are ProviderErrors."""

    kept_s: float | None  # so long its results are, from the creation of a batch; None: a month
    uploads: bool  # whether requests are uploaded as a file first, and found again by its name
    most_requests: int  # of one batch
    most_bytes: int
    account: str  # a hash of whose batches are seen, or of the key if no reply tells; empty: no reply yet
    told_at: float  # UTC by the vendor's clock, as the latest reply told; 0: none told
    skew_s: float  # by which the vendor's clock is ahead of ours, as the latest reply told

    @property
    def poll_s(self) -> float:
        """The least seconds between two polls of batches, as its pages or its latest reply want."""
        ...

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as it stands in a file of requests, without a line feed."""
        ...

    async def upload(self, path: Path, name: str, size: int) -> str:
        """Upload a file of requests; return its id."""
        ...

    async def uploaded(self, name: str, size: int) -> str | None:
        """Return the id of an uploaded file with this name and size, or None if none is listed."""
        ...

    async def create(self, submission: Submission) -> RemoteBatch:
        """Create a batch. Where the error's `certain` is false, one may have been created all the same."""
        ...

    async def retrieve(self, batch_id: str) -> RemoteBatch: ...

    async def recent(self, since: float | None) -> list[RemoteBatch]:
        """Return the batches created since then by the vendor's clock, newest first, whoever made them.

        None: as far as one call tells of them.
        """
        ...

    async def cancel(self, batch_id: str) -> RemoteBatch: ...

    async def download(self, batch: RemoteBatch, into: Path) -> None:
        """Write all lines of results to a file, whose last line ends with a line feed."""
        ...

    async def custom_ids(self, batch: RemoteBatch, max_ids: int) -> list[str]:
        """Return the ids in the first lines of an ended batch's results, as far as these can be read."""
        ...

    def read(self, line: bytes) -> BatchLine:
        """Read a line of results; raises ValueError where it is none."""
        ...

    async def delete_input(self, file_id: str) -> None:
        """Delete an uploaded file; one that is gone already is deleted."""
        ...

    async def aclose(self) -> None: ...


def id_in(line: Mapping[str, object]) -> str | None:
    """Return the id in a line of requests or results, or None."""
    return text(line.get("custom_id")) or text(line.get("key"))


def was_run(line: Mapping[str, object]) -> bool:
    """Return whether a line of results tells that its request was run, and not only that it was not."""
    return bool(line.get("response") or line.get("result") or ("key" in line and line.get("error")))


def fault_error(fault: Mapping[str, object]) -> ProviderError:
    """Return the error for a batch that was refused for a fault, so that nothing of it was run."""
    response = Response(status=400, headers={}, body=orjson.dumps({"error": fault}))
    return refusal(response, key="")


def certainly_not_created(error: ProviderError) -> bool:
    """Return whether a create that failed like this has created nothing: else it is in doubt.

    Without a status nothing was answered: only where no connection was made is that certain.
    """
    if error.http_status is None:
        return error.never_sent
    return error.http_status in NOT_CREATED
