"""Bedrock's own forms of refusals and streams, made into those that others have.

A refusal has its name in a header (`x-amzn-errortype: ThrottlingException:http://…`), its words in the body.
A stream is of AWS's binary frames, each with a JSON event of Anthropic's, or with an exception.
Its user guide: API error codes, quotas of the bedrock-runtime endpoint, InvokeModelWithResponseStream (2026).
"""

from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import aiohttp
import orjson
from botocore.eventstream import EventStreamBuffer, ParserError

from asyncbench.providers.wire import Response, mapping_in, text

_NAMED_BY: Final = "x-amzn-errortype"
# Tokens of a day: nothing tells when they are back. One call an hour finds out.
_OF_A_DAY: Final = "per day"
_AN_HOUR_S: Final = "3600"


def rewrite_refusal(refused: Response) -> Response:
    """Return a refusal with its name in its body, and a day's quota in headers that are read as such."""
    name = refused.headers.get(_NAMED_BY, "").partition(":")[0]
    message = _message(refused.body)
    if not name or message is None:
        return refused
    headers = dict(refused.headers)
    if _OF_A_DAY in message:
        what = "requests" if "requests" in message else "tokens"
        headers |= {f"x-ratelimit-remaining-{what}-day": "0", f"x-ratelimit-reset-{what}-day": _AN_HOUR_S}
        headers.setdefault("retry-after", _AN_HOUR_S)
    return replace(refused, headers=headers, body=orjson.dumps(_error(name, message)))


def _message(body: bytes) -> str | None:
    try:
        refusal = mapping_in(orjson.loads(body))
    except orjson.JSONDecodeError:
        return None
    return text(refusal.get("message")) or text(refusal.get("Message"))


def _error(name: str, message: str | None) -> dict[str, object]:
    return {"type": "error", "error": {"type": name, "message": message or name}}


async def sse_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the server-sent events that a stream of frames holds.

    Raises:
        aiohttp.ClientPayloadError: it holds no frames.
    """
    buffer = EventStreamBuffer()
    async for piece in chunks:
        buffer.add_data(piece)
        try:
            for frame in buffer:
                if frame.headers.get(":message-type") == "event":
                    event = b64decode(text(mapping_in(orjson.loads(frame.payload)).get("bytes")) or "")
                else:
                    error_name = frame.headers.get(":exception-type") or frame.headers.get(":error-code")
                    message = _message(frame.payload) or frame.headers.get(":error-message")
                    event = orjson.dumps(_error(str(error_name), None if message is None else str(message)))
                yield b"data: " + event + b"\n\n"
        except ParserError as error:  # of lengths or a checksum
            raise aiohttp.ClientPayloadError(f"no frames of AWS: {error}") from error
