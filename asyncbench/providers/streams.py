"""Read an answer as it comes, and no more than may be: chunks of bytes → a body or events → one reply."""

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import aiohttp
import httpx2
import orjson

from asyncbench.errors import ProviderError
from asyncbench.providers.calls import Call
from asyncbench.providers.error_kinds import LONGEST_MESSAGE, bad_reply, payload, safe_line, withhold
from asyncbench.providers.secrets import WORDS, keyless, withhold_secret
from asyncbench.providers.usage import doubts, kept_account
from asyncbench.providers.wire import Assembly, Json, Response, UnreadableError, Wire, body_id, items, read
from asyncbench.records import FOREIGN_EVENTS, Reply, ReplyTimes
from asyncbench.suites.thinking import split_thinking

# ── Server-sent events, from chunks of any size
# After the standard (html.spec.whatwg.org, Server-sent events), and kinder than it in what servers were
# seen to do: `[DONE]` without `data:`, and a last event without the blank line that should close it.


_DONE: Final = b"[DONE]"
_ERROR: Final = b"error"  # the name of an event whose data is an error, however it is written
_BOM: Final = b"\xef\xbb\xbf"  # some put it before a stream; it is no part of a line


class TooLongError(ValueError):
    """A body, or an event of a stream, that is longer than any reply."""


class Scanner:
    """Finds the events of one stream; each byte is looked at a bounded number of times."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_line", "_max_bytes", "_name", "_size", "done")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes  # of an event; the last one of a response may repeat the whole reply
        self.done = False  # the stream said that it is complete
        self._at_start = True  # no line was read yet
        self._line: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []  # the data lines of an event that has not ended yet
        self._name = b""  # of that event
        self._size = 0  # bytes in both, and one for each piece
        self._after_cr = False  # a line feed that follows belongs to it

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take in the next bytes; return the data of the events that they complete.

        Raises:
            TooLongError: an event is longer than it may be.
        """
        if not chunk:
            return []
        lines = (chunk[1:] if self._after_cr and chunk[0] == 0x0A else chunk).splitlines()
        self._after_cr = chunk[-1] == 0x0D
        unfinished = lines.pop() if chunk[-1] not in b"\r\n" else b""
        if lines and self._line:
            lines[0] = self._join_line() + lines[0]
        events = self._events(lines)
        if unfinished:
            self._keep(self._line, unfinished)
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream cut off from its blank line."""
        return self._events([self._join_line(), b""])

    def _join_line(self) -> bytes:
        line = b"".join(self._line)
        self._size -= len(line) + len(self._line)
        self._line.clear()
        return line

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        if self._at_start and lines:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            # Another line is a comment, by which servers keep a connection alive, or a field.
            if line.startswith((b"data:", _DONE)):
                data = line.removeprefix(b"data:")
                if not self._data and data.strip().upper() == _DONE:
                    self.done = True
                else:
                    self._keep(self._data, data)
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()[: len(_ERROR) + 1]
            if line:
                continue

            # An empty line ends an event.
            data, name = b"\n".join(self._data), self._name
            self._data.clear()
            self._name, self._size = b"", 0
            if data.strip() and not self.done:
                if name == _ERROR:  # its data becomes an object that tells an error
                    error = data if data.lstrip()[:1] == b"{" else orjson.dumps(data.decode(errors="replace"))
                    data = b'{"error":%s}' % error
                events.append(data)
        return events

    def _keep(self, pieces: list[bytes], piece: bytes) -> None:
        self._size += len(piece) + 1  # an empty one counts too
        if self._size > self._max_bytes:
            raise TooLongError(f"it holds an event of more than {self._max_bytes:,} bytes")
        pieces.append(piece)


# ── Replies from streams and bodies

PATIENCE_AFTER_DONE_S: Final = 0.1  # for the end of the body
# A stream may have so many times the bytes of the longest body: a few letters come in hundreds of them.
STREAM_SHARE: Final = 16
_NO_STREAM: Final = (b"{", b"<")  # how an object or a web page begins
_SIGNS_OF_LIFE: Final = frozenset({"ping", "heartbeat", "keepalive", "keep_alive", "keep-alive"})
_SHOWN: Final = 40  # characters of an event that is none of the API's
PIECE: Final = 48  # bytes that a piece of a text takes beside its letters
_BREAKS: Final = (OSError, aiohttp.ClientError, httpx2.HTTPError)  # of a connection, or of what is packed


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is one JSON body, whatever was asked for."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


async def capped(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield a body as it comes, and no more than `max_bytes` of it.

    Raises:
        TooLongError: it is longer.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise _too_long(max_bytes)
        yield chunk


def _too_long(max_bytes: int) -> TooLongError:
    return TooLongError(f"it is longer than {max_bytes:,} bytes. Raise the model's `max_reply_mb`")


async def whole_body(chunks: AsyncIterator[bytes], max_bytes: int, *, begun: bytes = b"") -> bytes:
    """Return a body of no more than `max_bytes`, some of which are there already; raises TooLongError."""
    parts, size = [begun], len(begun)
    async for chunk in chunks:
        parts.append(chunk)
        if (size := size + len(chunk)) > max_bytes:
            break
    if size > max_bytes:
        raise _too_long(max_bytes)
    return b"".join(parts)


def whole_reply(response: Response, wire: Wire, call: Call, *, key: str) -> Reply:
    """Read an answer that is one JSON body, just after its last byte.

    Raises:
        ProviderError: see `payload` and `Wire.reply`.
    """
    latency_s, times = call.age_s(), _times(call)
    try:
        body = payload(response, key=key)
        call.body_id = body_id(body)
        reply = wire.reply(body, response)
    except ProviderError as error:
        withhold(error, key=key)
        raise
    return finished_reply(
        reply, response, call.request_id, latency_s=latency_s, key=key, times=times, clean=True
    )


def _times(call: Call, *, ttfo_s: float | None = None, chunks_s: Sequence[float] = ()) -> ReplyTimes | None:
    """Return when the parts of a reply came; None where no connection told when it was sent."""
    if not call.sent_s:
        return None
    return ReplyTimes(
        sent_s=call.sent_s,
        connect_s=call.connect_s,
        kept_connection=call.kept_connection(),
        ttfo_s=ttfo_s,
        chunks_s=chunks_s,
    )


async def read_stream(
    chunks: AsyncIterator[bytes],
    wire: Wire,
    response: Response,
    call: Call,
    *,
    key: str,
    max_bytes: int,
) -> Reply:
    """Read a stream to its end, or to the word that it is done.

    A reply that is complete is kept, whatever the connection does after it.

    Args:
        chunks: the body as it comes, decompressed; closed by the caller.
        wire: reads the events.
        response: status and headers; its body is empty.
        call: told of every event, which moves its deadline; knows when the request was sent.
        key: the API key, which no message must repeat.
        max_bytes: of an event, and of all text together; the stream may have `STREAM_SHARE` times as many.

    Raises:
        ProviderError: what an event means that is an error; `bad_reply` for a stream that cannot be read or
            ends before it is complete; `timeout`.
    """
    reading = _Reading(wire.stream(response), call, response.notes, max_bytes, key=key)
    call.streams()
    try:
        await _read_to_end(capped(chunks, STREAM_SHARE * max_bytes), reading, call)
        if body := reading.body():
            return whole_reply(replace(response, body=body), wire, call, key=key)
        reading.note_foreign()
        reply, latency_s, ttft_s = reading.assembly.complete(), reading.latest_s, reading.ttft_s
        times = _times(call, ttfo_s=reading.answer_s(reply), chunks_s=reading.chunks_s)
        return finished_reply(
            reply, response, call.request_id, latency_s=latency_s, ttft_s=ttft_s, key=key, times=times
        )
    except (UnreadableError, TooLongError) as error:
        unreadable = bad_reply(response, f"the stream cannot be read: {error}")
        withhold(unreadable, key=key)
        raise unreadable from None
    except ProviderError as error:
        withhold(error, key=key)
        raise


class _Reading:
    """What has come of a stream so far: its events, their times, and what may be no stream after all."""

    __slots__ = (
        *(
            "_has_events",
            "_body",
            "_call",
            "_has_begun",
            "_first_foreign",
            "_foreign",
            "_kept_bytes",
            "_key",
            "_max_bytes",
            "_notes",
            "_lengths",
            "_length_times_s",
            "_scanner",
        ),
        *("assembly", "chunks_s", "latest_s", "ttfo_s", "ttft_s"),
    )

    def __init__(self, assembly: Assembly, call: Call, notes: list[str], max_bytes: int, *, key: str) -> None:
        self.assembly, self._call, self._notes, self._key = assembly, call, notes, key
        self._scanner = Scanner(max_bytes)
        self._max_bytes, self._kept_bytes = max_bytes, 0  # bytes that may be kept, and that are
        self._has_begun = False  # the body has begun
        self._has_events = False  # an event came
        self._foreign, self._first_foreign = 0, ""  # events that are none of the API's; how the first began
        self._body: list[bytes] = []  # what may be no stream, and no event yet
        self.ttft_s: float | None = None
        self.ttfo_s: float | None = None  # the same of the text, whatever was thought before
        self._lengths = array("Q")  # characters of the text so far,
        self._length_times_s = array("d")  # and when they came
        self.chunks_s = array("d")  # the age of the call at each piece
        self.latest_s: float | None = None  # the age of the call at its last bytes

    @property
    def done(self) -> bool:
        return self._scanner.done or self.assembly.ended

    def take(self, chunk: bytes) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._call.flows()
        self.latest_s = self._call.age_s()
        if not self._has_events and (self._body or chunk.lstrip()[:1] in _NO_STREAM):
            self._body.append(chunk)
            self._count_kept(len(chunk))
        self._feed(self._scanner.feed(chunk))

    def end(self) -> None:
        self._feed(self._scanner.end())

    def note_foreign(self) -> None:
        """Note how many events were passed over, if there were any."""
        if self._foreign:
            self._notes.append(f"{FOREIGN_EVENTS} ({self._foreign:,}, the first: {self._first_foreign!r})")

    def body(self) -> bytes:
        """Return the body that was no stream, whatever its headers say; else nothing."""
        return b"" if self._has_events else b"".join(self._body)

    def is_complete(self) -> bool:
        with suppress(ProviderError):
            self.assembly.complete()
            return True
        return False

    def _feed(self, events: list[bytes]) -> None:
        for data in events:
            if self.assembly.ended:
                return
            for event in self._objects(data):
                self._note(event)
        if self._scanner.done:
            self.assembly.end()

    def _objects(self, data: bytes) -> list[Json]:
        """Return the object that an event holds, or those of its list; none where it is none of the API's.

        Such is what keeps a connection alive: a word, a time, `null`. What began as an object or a web page
        was to be read, and so was what tells of an error.

        Raises:
            UnreadableError: it cannot be read.
        """
        notes = list[str]()
        try:
            event = read(data, notes)
        except UnreadableError:
            if data.lstrip()[:1] in _NO_STREAM or b"error" in data.lower():
                raise
            event = None
        listed = [event] if isinstance(event, dict) else items(event)
        objects: list[Json] = [each for each in listed if isinstance(each, dict)]
        if objects:
            self._notes += notes
        else:
            if not self._foreign:
                shown = withhold_secret(data.decode(errors="replace"), key=self._key)  # before any cut
                self._first_foreign = shown.strip()[:_SHOWN].replace(";", ",")
            self._foreign += 1
        return objects

    def _note(self, event: Json) -> None:
        self._has_events = True
        if not event or str(event.get("type")) in _SIGNS_OF_LIFE:
            return  # no word
        self._call.heard()
        if self._call.body_id is None:
            self._call.body_id = body_id(event)
        if length := self.assembly.feed(event):
            self._count_kept(length + PIECE)
            if self.latest_s is not None:
                self.chunks_s.append(self.latest_s)
            if self.ttft_s is None:
                self.ttft_s = self.latest_s
            if self.ttfo_s is None and self.assembly.answers:
                self.ttfo_s = self.latest_s
            if self.ttfo_s is not None and self.latest_s is not None:
                self._lengths.append(length + (self._lengths[-1] if self._lengths else 0))
                self._length_times_s.append(self.latest_s)

    def answer_s(self, reply: Reply) -> float | None:
        """Return when the answer began, after thinking that stands in the text, or None without an answer."""
        split = split_thinking(reply.text)
        if split.thought is None:
            return self.ttfo_s
        if split.begins is None or not self._lengths:
            return None
        return self._length_times_s[min(bisect_right(self._lengths, split.begins), len(self._lengths) - 1)]

    def _count_kept(self, size: int) -> None:
        self._kept_bytes += size
        if self._kept_bytes > self._max_bytes:
            raise TooLongError(f"its text is longer than {self._max_bytes:,} bytes")


async def _read_to_end(chunks: AsyncIterator[bytes], reading: _Reading, call: Call) -> None:
    """Read all; what breaks off a stream whose reply is there already makes no difference."""
    try:
        async for chunk in chunks:
            reading.take(chunk)
            if reading.done:
                break
        else:
            reading.end()
            return

        # Wait a little for the end of the body, whatever it is: then the connection can be used again.
        with suppress(*_BREAKS, TooLongError):  # a timeout is an OSError
            async with asyncio.timeout(PATIENCE_AFTER_DONE_S):
                async for _ in chunks:
                    pass
    except asyncio.CancelledError:
        if not (call.overdue and reading.is_complete()):
            raise
    except (*_BREAKS, UnreadableError, TooLongError):
        if not reading.is_complete():
            raise


def finished_reply(
    reply: Reply,
    response: Response,
    request_id: str | None,
    *,
    latency_s: float | None = None,
    ttft_s: float | None = None,
    key: str,
    times: ReplyTimes | None = None,
    clean: bool = False,
) -> Reply:
    """Tell a reply what its body does not, take out of it what cannot be kept, and return it.

    Args:
        clean: it was read from a body without the key (`payload`); its pieces in a stream may hold it.
    """
    notes = [*response.notes, *doubts(reply.raw_usage)]
    reply.raw_usage = kept_account(reply.raw_usage, notes)
    if not clean or response.service_tier:  # of a header
        for name, value in keyless(reply, key=key).items():
            setattr(reply, name, value)
    for name in WORDS:
        word = getattr(reply, name)
        if word and len(word) > LONGEST_MESSAGE:
            setattr(reply, name, word[:LONGEST_MESSAGE])
            notes.append(f"{name} was cut")
    reply.upstream = reply.upstream or response.simulator
    reply.latency_s, reply.ttft_s, reply.times = latency_s, ttft_s, times
    reply.request_id, reply.allowances = request_id, response.allowances
    reply.note = safe_line("; ".join(dict.fromkeys(notes)), key=key) or None if notes else None
    return reply
