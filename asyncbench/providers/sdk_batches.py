"""Batch calls through an SDK, and their files: the parts that both vendors share."""

import asyncio
import email.utils
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import orjson

from asyncbench.errors import ErrorKind, NoRoomError, ProviderError
from asyncbench.providers.batch_calls import RemoteBatch, id_in
from asyncbench.providers.calls import current_call
from asyncbench.providers.error_kinds import bad_reply, payload, refusal, withhold
from asyncbench.providers.secrets import keyless_body, may_hold
from asyncbench.providers.streams import finished_reply, whole_body
from asyncbench.providers.waits import retry_after_s
from asyncbench.providers.wire import Response, UnreadableError, Wire, body_id, mapping_in, read, text
from asyncbench.records import Reply, Request

SMALL_S: Final = 60.0  # for a call that moves no file
BYTES_PER_S: Final = 100_000.0  # at least, of a file on its way
LONGEST_S: Final = 86_400.0  # for a file whose size is not told; a pause of SMALL_S ends it sooner
BYTES_PER_LINE: Final = 4_000  # of results, where their size is not told
SPARE_BYTES: Final = 100_000_000  # on the disk, for the journal and the rest
MOST_BYTES: Final = 64_000_000  # of a reply that is no file: some list all batches at once
ACCOUNTS: Final = (  # headers that tell whose batches a key sees
    *("openai-organization", "openai-project"),
    *("anthropic-organization-id", "anthropic-workspace-id"),
)
CHUNK: Final = 2**18


class BatchAnswer(Protocol):
    """A good answer, whose body is not read yet."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self, chunk_size: int = ...) -> AsyncGenerator[bytes]: ...


class BatchCalls(Protocol):
    """What makes a vendor's calls that are no model's."""

    def exchange(
        self, method: str, path: str, *, within_s: float, **arguments: Any
    ) -> AbstractAsyncContextManager[BatchAnswer]: ...

    async def aclose(self) -> None: ...


class SdkBatches:
    """Calls of a vendor's batch API through the `post` of its SDK."""

    kept_s: float | None = None

    def __init__(self, sdk: BatchCalls, wire: Wire, *, key: str, now: Callable[[], float]) -> None:
        self._sdk, self._wire, self._key, self._now = sdk, wire, key, now
        self.told_at, self.skew_s, self.account = 0.0, 0.0, ""
        self._least_poll_s = self._retry_after_s = 0.0

    async def aclose(self) -> None:
        await self._sdk.aclose()

    async def recent(self, since: float | None) -> list[RemoteBatch]:
        batches = list[RemoteBatch]()
        async with aclosing(self.pages()) as pages:
            async for page in pages:
                if since is None:
                    return page
                batches += [batch for batch in page if batch.created_at >= since]
                if page and page[-1].created_at < since:
                    break
        return batches

    @property
    def poll_s(self) -> float:
        return max(self._least_poll_s, self._retry_after_s)

    def pages(self) -> AsyncGenerator[list[RemoteBatch]]:
        """Yield the batches of the account page by page, those created last first."""
        raise NotImplementedError

    async def call(self, method: str, path: str, *, size: int = 0, **arguments: object) -> dict[str, object]:
        """Make a call; return the object that it answers; of a list, as `data`.

        Args:
            size: bytes that are sent, where they are many.
        """
        within_s = SMALL_S + size / BYTES_PER_S
        async with self._sdk.exchange(method, path, within_s=within_s, **arguments) as response:
            self._note(response)
            async with aclosing(response.aiter_bytes()) as chunks:
                body = await whole_body(chunks, MOST_BYTES)
        # A batch may tell an error of its own: within another object it is none of the call's.
        whole = Response(status=response.status_code, headers={}, body=b'{"data":%s}' % body)
        try:
            answer = payload(whole, key=self._key)
            content = mapping_in(answer["data"])
            if content.get("error") and not (content.get("id") or content.get("name")):
                raise refusal(replace(whole, body=body), key=self._key)
        except ProviderError as error:
            withhold(error, key=self._key)
            raise
        return content or answer

    async def save_results(self, path: str, into: BinaryIO, batch: RemoteBatch) -> None:
        """Write the body of a page of a batch's results to a file; a last line without an end gets one.

        Raises:
            ProviderError: also where the body is shorter or longer than was told.
            NoRoomError: there is no room for it.
        """
        async with self._sdk.exchange("get", path, within_s=LONGEST_S) as response:
            self._note(response)
            header = response.headers.get("content-length", "")
            length = int(header) if header.isdigit() and "content-encoding" not in response.headers else None
            check_room(into, BYTES_PER_LINE * (batch.requests or 0) if length is None else length, batch.id)
            if length is not None:
                current_call().allow(SMALL_S + length / BYTES_PER_S)
            size, unfinished = 0, bytearray()  # of a line
            async with aclosing(response.aiter_bytes(CHUNK)) as chunks:
                async for chunk in chunks:
                    current_call().heard()
                    size += len(chunk)
                    unfinished += chunk
                    if whole := chunk.rfind(b"\n") + 1:
                        lines = bytes(unfinished[: len(unfinished) - len(chunk) + whole])
                        await asyncio.to_thread(self._write, lines, into)
                        unfinished = unfinished[len(lines) :]
            if length is not None and length != size:
                why = f"the file has {size:,} bytes, not {length:,}"
                raise ProviderError(ErrorKind.BAD_REPLY, why, http_status=response.status_code)
            if unfinished:
                self._write(bytes(unfinished) + b"\n", into)

    def _write(self, lines: bytes, into: BinaryIO) -> None:
        """Write whole lines without the key."""
        if may_hold(lines, key=self._key):
            lines = b"".join([keyless_body(line, key=self._key) + b"\n" for line in lines.splitlines()])
        into.write(lines)

    async def first_ids(self, path: str, max_ids: int) -> list[str]:
        """Return the ids that lines of results have, the first ones; lines that cannot be read have none."""
        ids, rest = list[str](), b""
        async with self._sdk.exchange("get", path, within_s=LONGEST_S) as response:
            self._note(response)
            async with aclosing(response.aiter_bytes(CHUNK)) as chunks:
                async for chunk in chunks:
                    current_call().heard()
                    *lines, rest = (rest + chunk).split(b"\n")
                    ids += _ids_of(lines)
                    if len(ids) >= max_ids or len(rest) > MOST_BYTES:
                        break
                else:
                    ids += _ids_of([rest])
        return ids[:max_ids]

    def _note(self, response: BatchAnswer) -> None:
        """Note what every reply tells: the vendor's time, and whose batches are seen."""
        self._retry_after_s = retry_after_s(response.headers) or 0.0
        accounts = [response.headers.get(name, "") for name in ACCOUNTS]
        if any(accounts) or not self.account:
            # A provider that names nobody may show each key other batches.
            owner = "\n".join(accounts) if any(accounts) else self._key
            self.account = sha256(owner.encode()).hexdigest()[:16]
        if date := email.utils.parsedate_tz(response.headers.get("date", "")):
            self.told_at = float(email.utils.mktime_tz(date))
            self.skew_s = self.told_at - self._now()

    def batch_body(self, request: Request) -> dict[str, object]:
        """Return the body of a request as a batch takes it: nothing is streamed."""
        trial = request.trial
        if trial.model.stream:
            request = replace(request, trial=replace(trial, model=replace(trial.model, stream=False)))
        return self._wire.body(request)

    def line_reply(self, body: object, status: int) -> Reply:
        """Return the reply that a line holds; raises ProviderError."""
        response = Response(status=status, headers={}, body=orjson.dumps(body))
        try:
            content = payload(response, key=self._key)
            reply = self._wire.reply(content, response)
        except ProviderError as error:
            withhold(error, key=self._key)
            raise
        return finished_reply(reply, response, body_id(content), key=self._key, clean=True)

    def line_refusal(self, body: object, status: int) -> ProviderError:
        response = Response(status=status, headers={}, body=orjson.dumps(body))
        return refusal(response, key=self._key)

    def line_fault(self, body: object, status: int, why: str) -> ProviderError:
        """Say that a line tells no result: what it costs is unknown."""
        response = Response(status=status, headers={}, body=orjson.dumps(body))
        return bad_reply(response, why, kind=ErrorKind.SERVER_ERROR)


def check_room(file: BinaryIO, size: int, batch_id: str) -> None:
    """Raise NoRoomError where a download would not fit on the disk."""
    free = shutil.disk_usage(Path(file.name).parent).free
    if size + SPARE_BYTES > free:
        raise NoRoomError(
            f"{file.name}: the results of batch {batch_id} need about {size / 1e6:,.0f} MB, and "
            f"{free / 1e6:,.0f} MB are free. Make room and run again: the batch stays with the provider, and "
            "nothing is lost."
        )


def line_object(line: bytes) -> dict[str, object]:
    """Return the JSON object of a line of results; raises ValueError."""
    try:
        fields = read(line, [])
    except UnreadableError as error:
        raise ValueError(str(error)) from None
    if not isinstance(fields, dict) or id_in(fields) is None:
        raise ValueError("the line holds no custom_id")
    return fields


def id_of(fields: Mapping[str, object]) -> str:
    """Return the id of what was made; where there is none, nobody knows what was made."""
    if (identifier := text(fields.get("id"))) is None:
        raise ProviderError(ErrorKind.BAD_REPLY, "the reply names no id", http_status=200)
    return identifier


def _ids_of(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        with suppress(ValueError):
            yield str(id_in(line_object(line)))


async def bytes_of(path: Path, size: int, *, prefix: bytes, suffix: bytes) -> AsyncIterator[bytes]:
    """Yield a file of lines in pieces, its line feeds but the last turned into commas."""
    remaining = size
    yield prefix
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            remaining -= len(chunk)
            yield (chunk if remaining else chunk[:-1]).replace(b"\n", b",")
    yield suffix


def time_of(written: object) -> float | None:
    """Return a time as seconds since 1970: a number, or RFC 3339 (UTC without a zone). None for others."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return float(written)
    if not isinstance(written, str):
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
