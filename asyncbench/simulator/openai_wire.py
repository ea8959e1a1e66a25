"""What OpenAI's wire formats share: errors, limits, models, stream ends (its SDK's types, release 3.51)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.script import Script, event
from asyncbench.simulator.wire import Exchange, Json, RefusedError, StreamUsage, VendorWire, Why, WireRequest

REQUEST_ID_HEADER = "x-request-id"
DONE = b"data: [DONE]\n\n"

_ERRORS: Mapping[Why, tuple[int, str, str | None]] = {  # status, type, code
    Why.BAD_REQUEST: (400, "invalid_request_error", None),
    Why.REJECTED_PARAMETER: (400, "invalid_request_error", "unsupported_parameter"),
    Why.UNKNOWN_QUESTION: (404, "invalid_request_error", "unknown_question"),
    Why.RECORDED_FAILURE: (404, "invalid_request_error", "recorded_failure"),
    Why.BAD_KEY: (401, "invalid_request_error", "invalid_api_key"),
    Why.NO_SUCH_MODEL: (404, "invalid_request_error", "model_not_found"),
    Why.NO_SUCH_PAGE: (404, "invalid_request_error", "unknown_url"),
    Why.WRONG_METHOD: (405, "invalid_request_error", "method_not_supported"),
    Why.TOO_LARGE: (413, "invalid_request_error", None),
    Why.RATE_LIMITED: (429, "requests", "rate_limit_exceeded"),
    Why.NO_QUOTA: (429, "insufficient_quota", "insufficient_quota"),
    Why.SERVER_ERROR: (500, "server_error", None),
    Why.OVERLOADED: (503, "server_error", "overloaded"),
    Why.UPSTREAM: (200, "server_error", "bad_gateway"),
}
_PARAMS: Mapping[Why, str] = {
    Why.UNKNOWN_QUESTION: "messages",
    Why.NO_SUCH_MODEL: "model",
}
_MIDWAY = RefusedError(Why.OVERLOADED, "The server is overloaded, and was not when this answer began.")


def error(refused: RefusedError, _request_id: str) -> tuple[int, Json]:
    """Write a refusal."""
    status, kind, code = _ERRORS[refused.why]
    return status, {
        "error": {
            "message": refused.message,
            "type": kind,
            "param": _PARAMS.get(refused.why),
            "code": code,
        }
    }


def error_midway() -> bytes:
    """Write the event of a stream that fails after its start."""
    return event(error(_MIDWAY, "")[1])


def retry_headers(wait_s: float) -> dict[str, str]:
    """Say when to come again, in whole seconds and in milliseconds."""
    return {"retry-after": str(math.ceil(wait_s)), "retry-after-ms": str(math.ceil(wait_s * 1000))}


def limit_headers(allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Write limits; a reset is a duration as Go prints it."""
    headers = {}
    for what, allowance in allowances.items():
        headers[f"x-ratelimit-limit-{what}"] = f"{allowance.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{what}"] = str(int(allowance.remaining))
        headers[f"x-ratelimit-reset-{what}"] = go_duration(allowance.reset_s)
    return headers


def go_duration(seconds: float) -> str:
    """Return a duration the way Go prints it, rounded up to milliseconds: `0s`, `20ms`, `1.5s`, `6m0s`."""
    milliseconds = math.ceil(seconds * 1000)
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    in_hours = f"{hours}h" if hours else ""
    in_minutes = f"{minutes}m" if hours or minutes else ""
    return f"{in_hours}{in_minutes}{rest / 1000:g}s"


def models(names: Sequence[str]) -> Json:
    """Write the list of models."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "asyncbench"} for name in names],
    }


def finish_of(exchange: Exchange) -> str:
    """Return the finish reason of a choice."""
    return "length" if exchange.answer.cut else "stop"


def closing(exchange: Exchange, finish: Json, apart: Callable[[Json], Json]) -> Iterator[bytes]:
    """Yield the events that end a stream of choices.

    Args:
        exchange: what is answered, and whose ways that has.
        finish: the chunk with the finish reason.
        apart: the usage → a chunk that tells nothing else.
    """
    like, usage = exchange.like, exchange.like.usage(exchange.answer)
    yield event(finish | {"usage": usage} if like.stream_usage is StreamUsage.IN_FINISH else finish)
    if _told_apart(exchange):
        yield event(apart(usage))
    if like.done:
        yield like.done


def _told_apart(exchange: Exchange) -> bool:
    how = exchange.like.stream_usage
    return how is StreamUsage.ALWAYS or (how is StreamUsage.ASKED and exchange.asked.stream_usage)


def wire_of(
    *,
    read: Callable[[Json], WireRequest],
    reply: Callable[[Exchange], Json],
    script: Callable[[Exchange], Script],
    may_stream_unasked: bool = False,
) -> VendorWire:
    """Return a wire format of OpenAI's: its questions and answers, with what all of them share."""
    return VendorWire(
        request_id_header=REQUEST_ID_HEADER,
        read=read,
        reply=reply,
        script=script,
        error=error,
        retry_headers=retry_headers,
        limit_headers=limit_headers,
        models=models,
        may_stream_unasked=may_stream_unasked,
    )
