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
from asyncbench.providers.failures import bad_reply, payload, told
from asyncbench.providers.response import Response
from asyncbench.providers.sse import Scanner, TooLongError
from asyncbench.providers.wire import Assembly, Json, Wire
from asyncbench.records import Reply

PATIENCE_AFTER_DONE_S: Final = 0.1  # for the end of the body, after which the connection can be used again


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether an answer is one JSON body, whatever was asked for."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def whole_reply(response: Response, wire: Wire, *, key: str) -> Reply:
    """Read an answer that is one JSON body.

    Raises:
        ProviderError: see `payload` and `Wire.reply`.
    """
    return wire.reply(payload(response, key=key), response)


async def read_stream(
    chunks: AsyncIterator[bytes], wire: Wire, response: Response, call: Call, *, key: str
) -> Reply:
    """Read a stream to its end, or to the word that it is done.

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
        async for chunk in chunks:
            reading.take(chunk)
            if reading.done:
                await _rest(chunks)
                break
        if body := reading.body():
            return whole_reply(replace(response, body=body), wire, key=key)
        return reading.reply()
    except (orjson.JSONDecodeError, TooLongError, TypeError) as error:
        raise bad_reply(response, f"the stream cannot be read: {told(str(error), key=key)}") from None
    except ProviderError as error:
        error.message = told(error.message, key=key)
        error.args = (error.message,)
        raise


class _Reading:
    """What was read so far."""

    __slots__ = ("_assembly", "_begun", "_body", "_call", "_scanner", "_ttft_s")

    def __init__(self, assembly: Assembly, call: Call) -> None:
        self._assembly, self._call = assembly, call
        self._scanner = Scanner()
        self._begun = False  # an event came
        self._body: list[bytes] = []  # what may be no stream: an object, and no event yet
        self._ttft_s: float | None = None

    @property
    def done(self) -> bool:
        return self._scanner.done

    def take(self, chunk: bytes) -> None:
        if not self._begun and (self._body or chunk.lstrip()[:1] == b"{"):
            self._body.append(chunk)
        for data in self._scanner.feed(chunk):
            self._feed(_event(data))

    def body(self) -> bytes:
        """Return the body that was no stream, whatever its headers say; else nothing."""
        return b"" if self._begun else b"".join(self._body)

    def reply(self) -> Reply:
        for data in self._scanner.end():
            self._feed(_event(data))
        return replace(self._assembly.complete(), ttft_s=self._ttft_s)

    def _feed(self, event: Json) -> None:
        self._begun = True
        if event.get("type") == "ping":
            return  # Anthropic's way to keep a connection alive: no word
        self._call.heard()
        if self._assembly.feed(event) and self._ttft_s is None:
            self._ttft_s = self._call.age_s()


def _event(data: bytes) -> dict[str, object]:
    event = orjson.loads(data)
    if not isinstance(event, dict):
        raise TypeError("an event is not a JSON object")
    return event


async def _rest(chunks: AsyncIterator[bytes]) -> None:
    """Wait a little for the end of a body whose reply is there; how it ends makes no difference."""
    with suppress(TimeoutError, OSError, aiohttp.ClientError, httpx2.HTTPError):
        async with asyncio.timeout(PATIENCE_AFTER_DONE_S):
            async for _ in chunks:
                pass
