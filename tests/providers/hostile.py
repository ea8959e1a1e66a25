"""What a server may do to a client: one table, for the tests of the adapters and for whole runs.

Each row says what becomes of the call: the text that is kept, or the kind of its error.
"""

import asyncio
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import cast

import orjson

from asyncbench.errors import ErrorKind
from tests.providers.asking import Adapter
from tests.providers.raw_server import (
    EVENT_STREAM,
    Manner,
    answering,
    chunk,
    dripping,
    events,
    head,
    resetting,
    sending,
    stream_of,
)

BAD, LATE, MOVED = ErrorKind.BAD_REPLY, ErrorKind.TIMEOUT, ErrorKind.NO_SUCH_MODEL
MIB = 2**20
BOMB_MIB = 11_000  # in 11 MB of gzip
DEEP = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One way to answer every request."""

    name: str
    manner: Callable[[Adapter], Manner]
    ends: str | ErrorKind  # the text of a reply that is kept, or why there is none
    stream: bool = False


_ROWS: list[Behaviour] = []


def _behaves(
    name: str, ends: str | ErrorKind, manner: Callable[[Adapter], Manner] | Manner, *, stream: bool = False
) -> None:
    to_all = cast("Manner", manner)
    of_adapter = (
        (lambda _: to_all) if iscoroutinefunction(manner) else cast("Callable[[Adapter], Manner]", manner)
    )
    _ROWS.append(Behaviour(name=name, manner=of_adapter, ends=ends, stream=stream))


# ── bodies ───────────────────────────────────────────────────────────────────────────────────


def body(adapter: Adapter, text: object = "42") -> dict[str, object]:
    """Return a good reply with another text, or with what stands in its place."""
    if adapter.name == "anthropic":
        content = [{"type": "text", "text": text}] if isinstance(text, str) else text
        return {**adapter.body, "content": content}
    if adapter.name == "google":
        parts = [{"text": text}] if isinstance(text, str) else text
        return {**adapter.body, "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    message = {"role": "assistant", "content": text}
    return {**adapter.body, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def written(adapter: Adapter, text: object = "42") -> bytes:
    return json.dumps(body(adapter, text), ensure_ascii=False).encode("utf-8", "surrogatepass")


def beside(adapter: Adapter, more: bytes) -> bytes:
    """Return a good reply with one more field, which need not be JSON; of two alike the last counts."""
    return written(adapter)[:-1] + b"," + more + b"}"


def nested(depth: int, within: bytes = b"0") -> bytes:
    return b'{"a":' * depth + within + b"}" * depth


def spoiled(adapter: Adapter, *, by: bytes, where: bytes = b'"42"') -> bytes:
    """Return a good reply with other bytes in a place of it."""
    return written(adapter).replace(where, by)


def used(adapter: Adapter, tokens: bytes, **more: object) -> bytes:
    """Return a good reply with another account of its tokens."""
    account = {**dict.fromkeys(cast("dict[str, int]", adapter.usage), "@"), **more}
    name = b'"usage":' if "usage" in adapter.body else b'"usageMetadata":'
    return beside(adapter, name + orjson.dumps(account).replace(b'"@"', tokens))


def streamed(adapter: Adapter, *more: bytes, whole: bool = True) -> bytes:
    """Return the stream of a good reply, with more events before them."""
    return stream_of(*(events(one) for one in (*more, *adapter.events)), whole=whole)


def words(adapter: Adapter, text: str) -> bytes:
    """Return an event that brings a piece of the text."""
    if adapter.name == "anthropic":
        delta = {"type": "text_delta", "text": text}
        return orjson.dumps({"type": "content_block_delta", "index": 0, "delta": delta})
    if adapter.name == "google":
        return orjson.dumps({"candidates": [{"content": {"parts": [{"text": text}]}}]})
    return orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})


# ── without an end ───────────────────────────────────────────────────────────────────────────


def endless(start: bytes, piece: bytes, times: int | None = None) -> Manner:
    """Send a piece again and again, as fast as it is read."""

    async def manner(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        for _ in iter(int, 1) if times is None else range(times):
            writer.write(piece)
            await writer.drain()
            if writer.is_closing():
                return
        writer.close()

    return manner


UNENDING = head(200)  # to the end of the connection
CHUNKED = head(transfer_encoding="chunked")
MUCH = b" " * 65_536


def flowing(piece: bytes) -> Manner:
    return endless(EVENT_STREAM + b"\r\n", chunk(piece))


def _deflated() -> bytes:
    """Return 1 MiB of blanks; such blocks may follow one another without end."""
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)


PACKED = _deflated()
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
ZSTD_HEAD, ZSTD_BLOCK = b"\x28\xb5\x2f\xfd\x00\x38", (2**17 << 3 | 2).to_bytes(3, "little") + b" "


def bomb(encoding: str, start: bytes, block: bytes, *, status: int = 200, **headers: str) -> Manner:
    said = head(
        status, content_encoding=encoding, content_length=len(start) + BOMB_MIB * len(block), **headers
    )
    return endless(said + start, block * 100, times=BOMB_MIB // 100)


def _answers(name: str, ends: str | ErrorKind, make: Callable[[Adapter], object]) -> None:
    _behaves(name, ends, lambda a: answering(body=make(a)))


def _streams(name: str, ends: str | ErrorKind, manner: Callable[[Adapter], Manner] | Manner) -> None:
    _behaves(name, ends, manner, stream=True)


def _adds(name: str, ends: str | ErrorKind, make: Callable[[Adapter], bytes]) -> None:
    """Send an event before those of a good reply."""
    _streams(name, ends, lambda a: sending(streamed(a, make(a))))


# ── the table ────────────────────────────────────────────────────────────────────────────────

# JSON that is deep, wide or long
_answers("usage nests deep", "42", lambda a: beside(a, b'"usage":' + nested(DEEP)))
_answers("a field nests deep", "42", lambda a: beside(a, b'"x":' + nested(DEEP)))
_answers("usage of lists", "42", lambda a: beside(a, b'"usage":' + nested(1, b"[" * 900 + b"]" * 900)))
_answers("an error nests deep", BAD, lambda a: beside(a, b'"error":' + nested(DEEP)))
_adds("an error event nests deep", BAD, lambda _: b'{"error":' + nested(DEEP) + b"}")
_answers(
    "content nests deep",
    "",
    lambda a: spoiled(
        a,
        by=b"[" * DEEP + b"]" * DEEP,
        where=b'"42"' if a.name != "anthropic" else b'{"type": "text", "text": "42"}',
    ),
)
_answers("brackets alone", BAD, lambda _: b"[" * 100_000)
_answers("objects too deep for any parser", BAD, lambda _: nested(100_000))
_answers("a million values", BAD, lambda a: beside(a, b'"x":[' + b"{}," * 1_000_000 + b"0]"))
_answers(
    "a thousand choices",
    "42",
    lambda a: beside(
        a,
        b'"choices":'
        + orjson.dumps(
            [
                {"index": i, "message": {"content": "42" if i == 0 else "43"}, "finish_reason": "stop"}
                for i in range(1000)
            ]
        ),
    ),
)
_answers("text full of commas", "1" + ",{[" * 150_000, lambda a: body(a, "1" + ",{[" * 150_000))
_answers("a long text", "42 " * 200_000, lambda a: body(a, "42 " * 200_000))
_answers("a number of a million digits", "9" * 900_000, lambda a: body(a, "9" * 900_000))
_answers("too long a text", BAD, lambda a: body(a, "42 " * 6_000_000))
_answers(
    "an account without end",
    "42",
    lambda a: beside(a, b'"usage":' + orjson.dumps({f"tokens_{i}": i for i in range(20_000)})),
)
_answers("a name without end", "42", lambda a: beside(a, b'"model":"' + b"m" * 500_000 + b'"'))
_answers("the same key twice", "42", lambda a: beside(a, b'"model":"a","model":"b"'))

# bytes that are no JSON
_answers("half a surrogate pair", "4�2", lambda a: spoiled(a, by=rb'"4\ud8002"'))
_answers("half a pair beside it", "42", lambda a: beside(a, rb'"x":["\udc00",{"\ud800":1}]'))
_adds("half a pair in an event", "�42", lambda a: words(a, "@").replace(b"@", rb"\ud800"))
_answers("a whole pair beside a half", "😀�", lambda a: spoiled(a, by=rb'"\ud83d\ude00\ud83d"'))
_answers("invalid UTF-8", "4�2", lambda a: spoiled(a, by=b'"4\xff2"'))
_answers("invalid UTF-8 beside it", "42", lambda a: beside(a, b'"x":"\xc0\x80"'))
_adds("invalid UTF-8 in an event", "�42", lambda a: words(a, "@").replace(b"@", b"\xff"))
_answers("NaN", "42", lambda a: beside(a, b'"x":NaN,"y":[-Infinity]'))
_adds("NaN in an event", "42", lambda a: words(a, "")[:-1] + b',"x":NaN}')
_answers("a number beyond floats", "42", lambda a: beside(a, b'"x":1e999,"y":-1e999'))
_answers("a number of 5,000 digits", "42", lambda a: beside(a, b'"x":' + b"9" * 5000))
_answers("line ends within a text", "4\n\x002", lambda a: spoiled(a, by=b'"4\n\x002"'))
_answers("a byte order mark", "42", lambda a: b"\xef\xbb\xbf" + written(a))
_answers("UTF-16", "42", lambda a: written(a).decode().encode("utf-16"))
_behaves("HTML", BAD, answering(body=b"<html><h1>200 OK</h1></html>", content_type="text/html"))
_behaves("nothing", BAD, answering())
_answers("null", BAD, lambda _: b"null")
_answers("a list", BAD, lambda _: b"[]")
_answers("a number", BAD, lambda _: b"42")
_answers("a text", BAD, lambda _: b'"42"')
_answers("zeros", BAD, lambda _: b"\0" * 1000)

# packed
_behaves("gzip bomb", BAD, bomb("gzip", GZIP_HEAD, PACKED))
_behaves("gzip bomb in an error", BAD, bomb("gzip", GZIP_HEAD, PACKED, status=500))
_streams("gzip bomb as a stream", BAD, bomb("gzip", GZIP_HEAD, PACKED, content_type="text/event-stream"))
_behaves("deflate bomb", BAD, bomb("deflate", b"", PACKED))
_behaves("zstd bomb", BAD, bomb("zstd", ZSTD_HEAD, ZSTD_BLOCK))
_behaves("brotli that is none", BAD, bomb("br", GZIP_HEAD, PACKED))
_behaves("packed twice", BAD, bomb("gzip, gzip", GZIP_HEAD, PACKED))
_behaves("not packed at all", BAD, lambda a: answering(body=written(a), content_encoding="gzip"))
_behaves(
    "packed in a way nobody knows", "42", lambda a: answering(body=written(a), content_encoding="x-none")
)

# without an end
_behaves("an endless body", BAD, endless(UNENDING, MUCH))
_behaves("an endless body in chunks", BAD, endless(CHUNKED, chunk(MUCH)))
_behaves("an endless object", BAD, endless(UNENDING, b'"a":1,\n' * 9_000))
_behaves("an endless error", BAD, endless(head(500), MUCH))
_behaves("an endless refusal of the key", BAD, endless(head(401), MUCH))
_behaves("an endless redirect", BAD, endless(head(301, location="/"), MUCH))
_streams("endless events", BAD, lambda a: flowing(events(words(a, "4")) * 1000))
_streams("endless events of long words", BAD, lambda a: flowing(events(words(a, "4" * 60_000))))
_streams("endless events of nothing", BAD, flowing(events(b"{}") * 1000))
_streams("an endless event", BAD, flowing(b"data: " + MUCH))
_streams("an endless line", BAD, endless(EVENT_STREAM + b"\r\n" + chunk(b"data:"), chunk(MUCH)))
_streams("endless comments", BAD, flowing(b": patience\n\n" * 5000))
_streams("endless pings", BAD, flowing(b'event: ping\ndata: {"type":"ping"}\n\n' * 2000))
_streams("endless blank lines", BAD, flowing(b"\n" * 65_536))
_streams("an endless object instead of a stream", BAD, flowing(b'{"a":1,\n' * 9000))
_streams(
    "comments after the end", "42", lambda a: endless(streamed(a, whole=False), chunk(b": more\n\n" * 9000))
)
_behaves("slow drops", LATE, dripping(head(200, content_length=10**6)))
_behaves("slow headers", LATE, dripping(b"HTTP/1.1 200 OK\r\nx:"))
_streams("slow pings", LATE, dripping(EVENT_STREAM + b"\r\n", chunk(b": patience\n\n")))

# cut, and lengths that are wrong
_behaves("cut headers", ErrorKind.UNREACHABLE, sending(b"HTTP/1.1 200 OK\r\nx: ", then_close=True))
_behaves("cut body", BAD, sending(head(200, content_length=100) + b'{"id":', then_close=True))
_behaves("reset body", BAD, resetting(head(200, content_length=100) + b'{"id":'))
_streams("cut stream", BAD, lambda a: sending(streamed(a)[:-150], then_close=True))
_behaves("cut error", BAD, sending(head(500, content_length=100) + b"oh", then_close=True))
_behaves(
    "too short a length", BAD, lambda a: sending(head(200, content_length=20) + written(a), then_close=True)
)
_behaves("no length is a number", BAD, sending(head(200, content_length="many") + b"{}", then_close=True))
_behaves("a length below nothing", BAD, sending(head(200, content_length=-5) + b"{}", then_close=True))
_behaves("a length beyond all", LATE, sending(head(200, content_length=10**17) + b"{}"))
_behaves(
    "two lengths",
    BAD,
    sending(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}", then_close=True),
)
_behaves("no chunk", BAD, sending(CHUNKED + b"zz\r\n{}\r\n"))
_behaves("a chunk beyond all", BAD, sending(CHUNKED + b"f" * 40 + b"\r\n{}"))
_behaves("a chunk with endless extensions", BAD, endless(CHUNKED + b"2;", MUCH))
_behaves(
    "more than the length",
    "42",
    lambda a: sending(head(200, content_length=len(written(a))) + written(a) + b"HTTP/1.1 200 OK\r\n\r\n"),
)

# HTTP itself
_behaves(
    "HTTP/1.0 without a length",
    "42",
    lambda a: sending(b"HTTP/1.0 200 OK\r\n\r\n" + written(a), then_close=True),
)
_behaves("HTTP/0.9", BAD, lambda a: sending(written(a), then_close=True))
_behaves("not HTTP", BAD, sending(b"220 smtp.example ESMTP\r\n\r\n", then_close=True))
_behaves("no content", BAD, sending(head(204)))
_behaves("not modified", MOVED, sending(head(304)))
_behaves("a status beyond all", BAD, sending(b"HTTP/1.1 99999 Told\r\n\r\n", then_close=True))
_behaves(
    "other protocols",
    BAD,
    sending(
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" + b"\0" * 100, then_close=True
    ),
)
_behaves("moved elsewhere", MOVED, answering(301, location="http://127.0.0.1:1/v1"))
_behaves("moved for now", MOVED, answering(307, location="//127.0.0.1:1"))
_behaves("moved to itself", MOVED, answering(308, location="/v1/chat/completions"))
_behaves("moved to nowhere", MOVED, answering(302, location="http://[::1"))
_behaves("moved without a word", MOVED, answering(303))
_behaves("many headers", BAD, lambda a: answering(200, body(a), **{f"x-{i}": "v" for i in range(10_000)}))
_behaves("a long header", BAD, lambda a: answering(body=body(a), x="v" * 1_000_000))
_behaves("endless headers", BAD, endless(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 1000))
_behaves("an endless header", BAD, endless(b"HTTP/1.1 200 OK\r\nx: ", b"v" * 65_536))
_behaves("an endless status", BAD, endless(b"HTTP/1.1 200 ", MUCH))
_behaves(
    "many continues",
    "42",
    lambda a: sending(head(100) * 1000 + head(200, content_length=len(written(a))) + written(a)),
)
_behaves("endless continues", LATE, endless(b"", head(103) * 100))
_behaves(
    "odd signs in headers",
    "42",
    lambda a: sending(
        b"HTTP/1.1 200 OK\r\nx-request-id: \xff\xf0\x9f\x92\xa9\r\ncontent-length: %d\r\n\r\n"
        % len(written(a))
        + written(a)
    ),
)

# kinds of content that are not what they are called
_streams(
    "a stream called text",
    "42",
    lambda a: sending(streamed(a).replace(b"text/event-stream", b"text/plain;xxxxxxx")),
)
_streams(
    "an object called a stream", "42", lambda a: answering(body=body(a), content_type="text/event-stream")
)
_streams(
    "a stream called JSON",
    BAD,
    lambda a: sending(streamed(a).replace(b"text/event-stream", b"application/json;")),
)
_behaves("a stream nobody asked for", BAD, lambda a: sending(streamed(a)))

# objects that are not what they should be
_answers("an error in a 200", ErrorKind.OVERLOADED, lambda _: {"error": {"code": "overloaded_error"}})
_answers("an error of another kind", BAD, lambda _: {"error": [{"error": [[]]}]})
_answers("parts of numbers", BAD, lambda _: {"choices": 5, "content": 5})
_answers("parts of texts", BAD, lambda _: {"choices": "x", "content": "x"})
_answers("lists of numbers", BAD, lambda _: {"choices": [1, 2], "content": {"0": 1}})
_answers("a message that is none", BAD, lambda _: {"choices": [{"message": [7]}], "content": 1.5})
_answers("parts that nobody knows", "", lambda a: body(a, [{"type": "hologram", "text": {"a": 1}}, 5, None]))
_answers(
    "odd types all about",
    "42",
    lambda a: {
        **body(a),
        "model": 5,
        "usage": [1],
        "id": {},
        "system_fingerprint": [],
        "service_tier": 1.5,
        "provider": {},
    },
)
_adds("an event that is none of the API's", "42", lambda _: b"[1]")
_streams(
    "events of odd types",
    "42",
    lambda a: sending(
        streamed(
            a,
            b'{"choices":{"0":1},"usage":7,"type":[],"delta":5}',
            b'{"choices":[[]],"type":"content_block_delta","index":{"a":[]},"delta":{"type":{}}}',
        )
    ),
)

# numbers that cannot be
_answers("fewer tokens than none", "42", lambda a: used(a, b"-7"))
_answers("tokens that are no number", "42", lambda a: used(a, b"NaN"))
_answers("more tokens than atoms", "42", lambda a: used(a, b"1" + b"0" * 30))
_answers("tokens of all types", "42", lambda a: used(a, b'[{"a":"many"}]'))
_answers("a cost beyond all", "42", lambda a: used(a, b"5", cost=1e308, cost_in_usd_ticks=2**62))
_answers("a cost below nothing", "42", lambda a: used(a, b"5", cost=-1))
_behaves(
    "limits beyond all",
    "42",
    lambda a: answering(
        200,
        body(a),
        **{
            f"x-ratelimit-{part}-{what}": value
            for part, value in (("limit", "1e300"), ("remaining", "-1e300"), ("reset", "9" * 400))
            for what in ("requests", "tokens")
        },
    ),
)
_behaves(
    "limits of nothing",
    "42",
    lambda a: answering(
        body=body(a), x_ratelimit_limit_requests="1e-300", x_ratelimit_remaining_tokens="nan"
    ),
)
_behaves("a wait beyond all", ErrorKind.RATE_LIMITED, answering(429, retry_after="1e300"))
_behaves(
    "a wait of odd words",
    ErrorKind.RATE_LIMITED,
    answering(429, retry_after="Fri, 99 Foo 99999 99:99:99 GMT", retry_after_ms="nan"),
)

BEHAVIOURS = tuple(_ROWS)
ENDLESS = tuple(row for row in BEHAVIOURS if "endless" in row.name and row.ends is BAD)
