"""Anthropic's Messages, as the vendor writes it (its SDK's types, release 2.10)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from asyncbench.simulator.asked import asked_of
from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.prompt_cache import marked_prefix
from asyncbench.simulator.wire import (
    HOLE,
    Exchange,
    Json,
    RefusedError,
    Script,
    VendorWire,
    Why,
    WireAnswer,
    WireRequest,
    cut_up,
    deltas,
    event,
)

_ERRORS: Mapping[Why, tuple[int, str]] = {  # status, type
    Why.BAD_REQUEST: (400, "invalid_request_error"),
    Why.UNKNOWN_QUESTION: (404, "invalid_request_error"),
    Why.RECORDED_FAILURE: (404, "invalid_request_error"),
    Why.REJECTED_PARAMETER: (400, "invalid_request_error"),
    Why.BAD_KEY: (401, "authentication_error"),
    Why.NO_SUCH_MODEL: (404, "not_found_error"),
    Why.NO_SUCH_PAGE: (404, "not_found_error"),
    Why.WRONG_METHOD: (405, "invalid_request_error"),
    Why.NO_SUCH_OBJECT: (404, "not_found_error"),
    Why.CONFLICT: (409, "invalid_request_error"),
    Why.TOO_LONG: (400, "invalid_request_error"),
    Why.TIMED_OUT: (504, "timeout_error"),
    Why.TOO_LARGE: (413, "request_too_large"),
    Why.RATE_LIMITED: (429, "rate_limit_error"),
    Why.NO_QUOTA: (429, "rate_limit_error"),
    Why.SERVER_ERROR: (500, "api_error"),
    Why.OVERLOADED: (529, "overloaded_error"),
    Why.UPSTREAM: (200, "api_error"),
}
_DETAILS: Mapping[Why, str] = {
    Why.UNKNOWN_QUESTION: "unknown_question",
    Why.RECORDED_FAILURE: "recorded_failure",
    Why.NO_SUCH_MODEL: "model_not_found",
    Why.NO_QUOTA: "enforced_spend_limit_reached",
}
_MIDWAY = RefusedError(Why.OVERLOADED, "Overloaded, which it was not when this answer began.")


def read(body: Json) -> WireRequest:
    """Read a request, in which `max_tokens` is required."""
    if "max_tokens" not in body:
        raise RefusedError(Why.BAD_REQUEST, "max_tokens: Field required.")
    request = asked_of(
        body, messages=body.get("messages"), system=body.get("system"), max_tokens=body["max_tokens"]
    )
    return replace(request, prefix=marked_prefix(body))


def reply(exchange: Exchange) -> Json:
    """Write an answer as a `message`; a reply without text has no block of text."""
    answer = exchange.answer
    return _message(exchange, _stop(answer), _blocks(answer), _usage(answer))


def script(exchange: Exchange) -> Script:
    answer = exchange.answer
    before = _message(exchange, None, [], _usage(answer, output_tokens=1))

    # Each block piece by piece; its beginning comes with the first, its end with the last.
    pieces, kind = list[bytes](), "content_block_delta"
    for index, block in enumerate(_blocks(answer)):
        key = "thinking" if block["type"] == "thinking" else "text"
        empty = {**block, key: "", **({"signature": ""} if key == "thinking" else {})}
        delta = {"type": kind, "index": index, "delta": {"type": f"{key}_delta", key: HOLE}}
        block_pieces = deltas(delta, cut_up(str(block[key]), exchange.chunks), kind)
        end = _event("content_block_stop", index=index)
        if key == "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            end = _event(kind, index=index, delta=signed) + end
        block_pieces[0] = _event("content_block_start", index=index, content_block=empty) + block_pieces[0]
        block_pieces[-1] += end
        pieces += block_pieces

    stop = {"stop_reason": _stop(answer), "stop_sequence": None, "stop_details": None, "container": None}
    return Script(
        opening=[_event("message_start", message=before), _event("ping")],
        pieces=pieces,
        closing=[_event("message_delta", delta=stop, usage=_usage(answer)), _event("message_stop")],
        error=event(error(_MIDWAY, exchange.request_id)[1], "error"),
    )


def _event(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, kind)


def _message(exchange: Exchange, stop: str | None, content: Sequence[Json], usage: Json) -> Json:
    return {
        "id": f"msg_{exchange.request_id}",
        "type": "message",
        "role": "assistant",
        "model": exchange.answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": usage,
        "system_fingerprint": "simulated",
    }


def _blocks(answer: WireAnswer) -> list[Json]:
    thinking: Json = {"type": "thinking", "thinking": answer.reasoning, "signature": "c2ltdWxhdGVk"}
    text: Json = {"type": "text", "text": answer.text, "citations": None}
    return [*([thinking] if answer.reasoning else []), *([text] if answer.text else [])]


def _stop(answer: WireAnswer) -> str:
    return "max_tokens" if answer.cut else "end_turn"


def _usage(answer: WireAnswer, *, output_tokens: int | None = None) -> Json:
    """Write usage; at the start of a stream its output is not known yet."""
    written = answer.written_tokens
    written_1h = written if answer.written_for_an_hour else 0
    return {
        "input_tokens": answer.input_tokens - answer.cached_tokens - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": answer.cached_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - written_1h,
            "ephemeral_1h_input_tokens": written_1h,
        },
        "output_tokens": answer.output_tokens if output_tokens is None else output_tokens,
        "output_tokens_details": {"thinking_tokens": answer.reasoning_tokens if output_tokens is None else 0},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }


def error(refused: RefusedError, request_id: str) -> tuple[int, Json]:
    """Write a refusal; `details` only where there is a code to give."""
    status, kind = _ERRORS[refused.why]
    content: Json = {"type": kind, "message": refused.message}
    if code := _DETAILS.get(refused.why):
        content["details"] = {"error_code": code}
    return status, {"type": "error", "error": content, "request_id": request_id}


def retry_headers(wait_s: float) -> dict[str, str]:
    """Say when to come again, in whole seconds."""
    return {"retry-after": str(math.ceil(wait_s))}


def limit_headers(allowances: Mapping[str, ToldAllowance]) -> dict[str, str]:
    """Write limits; a reset is a moment (RFC 3339, UTC), rounded up to seconds.

    As at Anthropic, `tokens` repeats the stricter of the limits on tokens where it is no limit of its own.
    """
    now = datetime.now(UTC)
    headers = {}
    of_tokens = [allowances[what] for what in ("input-tokens", "output-tokens") if what in allowances]
    strictest = {"tokens": min(of_tokens, key=lambda allowed: allowed.remaining)} if of_tokens else {}
    for what, allowance in (strictest | dict(allowances)).items():
        reset = (now + timedelta(seconds=allowance.reset_s, microseconds=999_999)).replace(microsecond=0)
        headers[f"anthropic-ratelimit-{what}-limit"] = f"{allowance.per_minute:.0f}"
        headers[f"anthropic-ratelimit-{what}-remaining"] = str(int(allowance.remaining))
        headers[f"anthropic-ratelimit-{what}-reset"] = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    return headers


def models(names: Sequence[str]) -> Json:
    return {
        "data": [
            {
                "type": "model",
                "id": name,
                "display_name": f"{name} (simulated)",
                "created_at": "1970-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": None,
                "max_tokens": None,
            }
            for name in names
        ],
        "has_more": False,
        "first_id": names[0],
        "last_id": names[-1],
    }


ANTHROPIC = VendorWire(
    request_id_header="request-id",
    read=read,
    reply=reply,
    script=script,
    error=error,
    retry_headers=retry_headers,
    limit_headers=limit_headers,
    models=models,
)
