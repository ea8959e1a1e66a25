"""A streamed answer, read as it comes: chunks of bytes → events → one reply."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

import aiohttp
import httpx2
import orjson

from asyncbench.errors import ProviderError
from asyncbench.providers.calls import Call
from asyncbench.providers.failures import bad_reply, payload, withhold
from asyncbench.providers.response import Response, body_id
from asyncbench.providers.secrets import keyless
from asyncbench.providers.sse import Scanner, TooLongError
from asyncbench.providers.wire import Assembly, Json, Wire
from asyncbench.records import Reply

PATIENCE_AFTER_DONE_S: Final = 0.1  # for the end of the body, after which the connection can be used again
_BREAKS: Final = (OSError, aiohttp.ClientError, httpx2.HTTPError)  # of a connection, or of what is packed


class UnreadableError(ValueError):
    """An event that is no JSON object."""


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether an answer is one JSON body, whatever was asked for."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def whole_reply(response: Response, wire: Wire, call: Call, *, key: str) -> Reply:
    """Read an answer that is one JSON body, just after its last byte.

    Raises:
        ProviderError: see `payload` and `Wire.reply`.
    """
    latency_s = call.age_s()
    try:
        body = payload(response, key=key)
        call.body_id = body_id(body)
        reply = wire.reply(body, response)
    except ProviderError as error:
        withhold(error, key=key)
        raise
    return _finished(reply, response, call, latency_s=latency_s, key=key)


async def read_stream(
    chunks: AsyncIterator[bytes], wire: Wire, response: Response, call: Call, *, key: str
) -> Reply:
    """Read a stream to its end, or to the word that it is done.

    A reply that is complete is kept, whatever the connection does after it.

    Args:
        chunks: the body as it comes, decompressed; closed by the caller.
        wire: reads the events.
        response: status and headers; its body is empty.
        call: told of every event, which moves its deadline; knows when the request was sent.
        key: the API key, which no message must repeat.

    Raises:
        ProviderError: what an event means that is an error; `bad_reply` for a stream that cannot be read or
            ends before it is complete; `timeout`.
    """
    reading = _Reading(wire.stream(response), call)
    call.streams()
    try:
        await _to_its_end(chunks, reading, call)
        if body := reading.body():
            return whole_reply(replace(response, body=body), wire, call, key=key)
        latency_s, ttft_s = reading.latest_s, reading.ttft_s
        return _finished(reading.reply(), response, call, latency_s=latency_s, ttft_s=ttft_s, key=key)
    except (UnreadableError, TooLongError) as error:
        unreadable = bad_reply(response, f"the stream cannot be read: {error}")
        withhold(unreadable, key=key)
        raise unreadable from None
    except ProviderError as error:
        withhold(error, key=key)
        raise


class _Reading:
    """What was read so far."""

    __slots__ = ("_assembly", "_begun", "_body", "_call", "_flows", "_scanner", "latest_s", "ttft_s")

    def __init__(self, assembly: Assembly, call: Call) -> None:
        self._assembly, self._call = assembly, call
        self._scanner = Scanner()
        self._flows = False  # the body has begun
        self._begun = False  # an event came
        self._body: list[bytes] = []  # what may be no stream: an object, and no event yet
        self.ttft_s: float | None = None
        self.latest_s: float | None = None  # the age of the call at its last bytes

    @property
    def done(self) -> bool:
        return self._scanner.done or self._assembly.ended

    def take(self, chunk: bytes) -> None:
        if not self._flows:
            self._flows = True
            self._call.flows()
        self.latest_s = self._call.age_s()
        if not self._begun and (self._body or chunk.lstrip()[:1] == b"{"):
            self._body.append(chunk)
        self._feed(self._scanner.feed(chunk))

    def end(self) -> None:
        self._feed(self._scanner.end())

    def body(self) -> bytes:
        """Return the body that was no stream, whatever its headers say; else nothing."""
        return b"" if self._begun else b"".join(self._body)

    def reply(self) -> Reply:
        return self._assembly.complete()

    def is_complete(self) -> bool:
        with suppress(ProviderError):
            self._assembly.complete()
            return True
        return False

    def _feed(self, events: list[bytes]) -> None:
        for data in events:
            if not self._assembly.ended:
                self._note(_event(data))

    def _note(self, event: Json) -> None:
        self._begun = True
        if event.get("type") == "ping":
            return  # Anthropic's way to keep a connection alive: no word
        self._call.heard()
        if self._call.body_id is None:
            self._call.body_id = body_id(event)
        if self._assembly.feed(event) and self.ttft_s is None:
            self.ttft_s = self.latest_s


def _event(data: bytes) -> dict[str, object]:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UnreadableError(str(error)) from None
    if not isinstance(event, dict):
        raise UnreadableError("an event is not a JSON object")
    return event


async def _to_its_end(chunks: AsyncIterator[bytes], reading: _Reading, call: Call) -> None:
    """Read all; what breaks off a stream whose reply is there already makes no difference."""
    try:
        async for chunk in chunks:
            reading.take(chunk)
            if reading.done:
                await _rest(chunks)
                return
        reading.end()
    except asyncio.CancelledError:
        if not (call.overdue and reading.is_complete()):
            raise
    except (*_BREAKS, UnreadableError, TooLongError):
        if not reading.is_complete():
            raise


def _finished(
    reply: Reply,
    response: Response,
    call: Call,
    *,
    latency_s: float | None,
    ttft_s: float | None = None,
    key: str,
) -> Reply:
    """Return a reply with what its body does not tell."""
    return replace(
        keyless(reply, key=key),
        latency_s=latency_s,
        ttft_s=ttft_s,
        request_id=call.request_id,
        allowances=response.allowances,
    )


async def _rest(chunks: AsyncIterator[bytes]) -> None:
    """Wait a little for the end of a body whose reply is there; how it ends makes no difference."""
    with suppress(*_BREAKS):  # a timeout is an OSError
        async with asyncio.timeout(PATIENCE_AFTER_DONE_S):
            async for _ in chunks:
                pass
