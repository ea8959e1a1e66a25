"""Bedrock's refusals and streams, rewritten in Anthropic's form so that the same code reads both.

Bedrock names an error in a header (`x-amzn-errortype: ThrottlingException:http://…`), and its body holds only
the message. Its streams are binary frames of AWS. Each holds a JSON event of Anthropic, or an exception.
Sources in its user guide: API error codes, quotas of the bedrock-runtime endpoint, and
InvokeModelWithResponseStream (read in 2026).
"""

from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import aiohttp
import orjson
from botocore.eventstream import EventStreamBuffer, ParserError

from asyncbench.providers.wire import Response, mapping_in, text

_ERROR_HEADER: Final = "x-amzn-errortype"

# A refusal for a daily quota does not say when the quota is restored, so one call an hour tries again.
_DAILY: Final = "per day"  # in the message of such a refusal
_HOUR_S: Final = "3600"


def rewrite_refusal(refused: Response) -> Response:
    """Return a refusal with its name in its body. If a daily quota is used up, headers of limits say so."""
    name = refused.headers.get(_ERROR_HEADER, "").partition(":")[0]
    message = _message(refused.body)
    if not name or message is None:
        return refused
    headers = dict(refused.headers)

    if _DAILY in message:
        unit = "requests" if "requests" in message else "tokens"
        headers |= {f"x-ratelimit-remaining-{unit}-day": "0", f"x-ratelimit-reset-{unit}-day": _HOUR_S}
        headers.setdefault("retry-after", _HOUR_S)

    return replace(refused, headers=headers, body=orjson.dumps(_error(name, message)))


def _message(body: bytes) -> str | None:
    """Return the message of a refusal's body or of an exception's frame, or None if it has none."""
    try:
        refusal = mapping_in(orjson.loads(body))
    except orjson.JSONDecodeError:
        return None
    return text(refusal.get("message")) or text(refusal.get("Message"))


def _error(name: str, message: str | None) -> dict[str, object]:
    """Return an error in Anthropic's form."""
    return {"type": "error", "error": {"type": name, "message": message or name}}


async def sse_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the contents of a stream of frames as server-sent events.

    Raises:
        aiohttp.ClientPayloadError: the stream is no stream of frames, or a frame is damaged.
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
        except ParserError as error:  # a length or a checksum is wrong
            raise aiohttp.ClientPayloadError(f"no frames of AWS: {error}") from error
