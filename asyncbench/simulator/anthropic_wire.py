"""Anthropic's Messages, as the vendor writes it (its SDK's types, release 2.10)."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from asyncbench.simulator.limits import Allowance
from asyncbench.simulator.wire import Answer, Asked, Json, RefusedError, Why, Wire, asked_of

_ERRORS: Mapping[Why, tuple[int, str]] = {  # status, type
    Why.BAD_REQUEST: (400, "invalid_request_error"),
    Why.UNKNOWN_QUESTION: (404, "invalid_request_error"),
    Why.NOT_STREAMED: (400, "invalid_request_error"),
    Why.BAD_KEY: (401, "authentication_error"),
    Why.NO_SUCH_MODEL: (404, "not_found_error"),
    Why.NO_SUCH_PAGE: (404, "not_found_error"),
    Why.WRONG_METHOD: (405, "invalid_request_error"),
    Why.TOO_LARGE: (413, "request_too_large"),
    Why.RATE_LIMITED: (429, "rate_limit_error"),
    Why.NO_QUOTA: (429, "rate_limit_error"),
    Why.SERVER_ERROR: (500, "api_error"),
    Why.OVERLOADED: (529, "overloaded_error"),
}
_DETAILS: Mapping[Why, str] = {
    Why.UNKNOWN_QUESTION: "unknown_question",
    Why.NO_SUCH_MODEL: "model_not_found",
    Why.NO_QUOTA: "enforced_spend_limit_reached",
}


def read(body: Json) -> Asked:
    """Read a request, in which `max_tokens` is required."""
    if "max_tokens" not in body:
        raise RefusedError(Why.BAD_REQUEST, "max_tokens: Field required.")
    return asked_of(body, system=body.get("system"), max_tokens=body["max_tokens"])


def reply(answer: Answer, request_id: str) -> Json:
    """Write an answer as a `message`; a reply without text has no content block."""
    return {
        "id": f"msg_{request_id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [{"type": "text", "text": answer.text, "citations": None}] if answer.text else [],
        "stop_reason": "max_tokens" if answer.cut else "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": _usage(answer),
        "system_fingerprint": "simulated",
    }


def _usage(answer: Answer) -> Json:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }


def error(refused: RefusedError, request_id: str) -> tuple[int, Json]:
    """Write a refusal; `details` only where there is a code to give."""
    status, kind = _ERRORS[refused.why]
    said: Json = {"type": kind, "message": refused.message}
    if code := _DETAILS.get(refused.why):
        said["details"] = {"error_code": code}
    return status, {"type": "error", "error": said, "request_id": request_id}


def retry_headers(wait_s: float) -> dict[str, str]:
    """Say when to come again, in whole seconds."""
    return {"retry-after": str(math.ceil(wait_s))}


def limit_headers(allowances: Mapping[str, Allowance]) -> dict[str, str]:
    """Write limits; a reset is a moment (RFC 3339, UTC), rounded up to seconds."""
    now = datetime.now(UTC)
    headers = {}
    for what, allowance in allowances.items():
        reset = (now + timedelta(seconds=allowance.reset_s, microseconds=999_999)).replace(microsecond=0)
        headers[f"anthropic-ratelimit-{what}-limit"] = f"{allowance.per_minute:.0f}"
        headers[f"anthropic-ratelimit-{what}-remaining"] = str(int(allowance.remaining))
        headers[f"anthropic-ratelimit-{what}-reset"] = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    return headers


def models(names: Sequence[str]) -> Json:
    """Write the list of models."""
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


ANTHROPIC = Wire(
    request_id_header="request-id",
    read=read,
    reply=reply,
    error=error,
    retry_headers=retry_headers,
    limit_headers=limit_headers,
    models=models,
)
