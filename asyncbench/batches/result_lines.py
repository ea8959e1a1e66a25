"""One line of a result file → what became of its request. The line is believed, not its file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

Json = Mapping[str, object]


class LineKind(StrEnum):
    """What a line says."""

    ANSWERED = "answered"  # `body` is what a call would have got
    REFUSED = "refused"  # it was run and failed: `status` and `body` are those of a failed call
    NOT_RUN = "not_run"  # it was never run and costs nothing; `why`: expired, cancelled, or the vendor's word
    STRANGE = "strange"  # neither answer nor error: what it cost is unknown
    BROKEN = "broken"  # not even JSON with a custom id: whose it is, is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """One line, read."""

    custom_id: str  # empty: broken
    kind: LineKind
    status: int | None = None  # HTTP; None: not run, or not told
    body: bytes = b""  # JSON
    request_id: str | None = None
    why: str | None = None


# Statuses that come with Anthropic's types of errors, so that a line is read as a failed call is.
ANTHROPIC_STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_WHYS: Final = {
    "batch_expired": "expired",
    "batch_cancelled": "cancelled",
    "batch_canceled": "cancelled",
    "canceled": "cancelled",
}
SERVER_ERROR: Final = 500


def read_line(raw: bytes, vendor: str) -> ResultLine:
    """Return what a line says; `vendor`: openai or anthropic. Never fails, whatever the line holds."""
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return ResultLine(custom_id="", kind=LineKind.BROKEN, why=f"not JSON: {error}")
    custom_id = _object(line).get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        return ResultLine(custom_id="", kind=LineKind.BROKEN, why="no custom id")
    return _READERS[vendor](custom_id, line)


def _openai(custom_id: str, line: Json) -> ResultLine:
    response, error = line.get("response"), _object(line.get("error"))
    if not isinstance(response, dict):
        code = str(error.get("code") or "no response")
        kind = LineKind.NOT_RUN if error else LineKind.STRANGE
        return ResultLine(custom_id=custom_id, kind=kind, why=_WHYS.get(code, code))
    status, body, request_id = response.get("status_code"), response.get("body"), response.get("request_id")
    status = status if isinstance(status, int) else 0
    kind = LineKind.STRANGE
    if isinstance(body, dict) and status == 200 and not body.get("error"):
        kind = LineKind.ANSWERED
    elif isinstance(body, dict) and 400 <= status <= 599:
        kind = LineKind.REFUSED
    return ResultLine(
        custom_id=custom_id,
        kind=kind,
        status=status or None,
        body=orjson.dumps(body),
        request_id=request_id if isinstance(request_id, str) else None,
        why=None if kind is not LineKind.STRANGE else f"status {status} without an answer",
    )


def _anthropic(custom_id: str, line: Json) -> ResultLine:
    result = _object(line.get("result"))
    kind, message, error = result.get("type"), result.get("message"), _object(result.get("error"))
    if kind in ("canceled", "expired"):
        return ResultLine(custom_id=custom_id, kind=LineKind.NOT_RUN, why=_WHYS.get(str(kind), str(kind)))
    if kind == "succeeded" and isinstance(message, dict) and message.get("type") == "message":
        body = orjson.dumps(message)
        return ResultLine(custom_id=custom_id, kind=LineKind.ANSWERED, status=200, body=body)
    if kind == "errored" and error:
        named, request_id = str(_object(error.get("error")).get("type")), error.get("request_id")
        return ResultLine(
            custom_id=custom_id,
            kind=LineKind.REFUSED,
            status=ANTHROPIC_STATUSES.get(named, SERVER_ERROR),
            body=orjson.dumps(error),
            request_id=request_id if isinstance(request_id, str) else None,
        )
    return ResultLine(custom_id=custom_id, kind=LineKind.STRANGE, why=f"a result of type {kind!r}")


_READERS: Final[Mapping[str, Callable[[str, Json], ResultLine]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
