"""OpenAI's Chat Completions, as the vendor writes it (its SDK's types, release 3.51)."""

import math
import time
from collections.abc import Mapping, Sequence

from asyncbench.simulator.limits import Allowance
from asyncbench.simulator.wire import Answer, Asked, Json, RefusedError, Why, Wire, asked_of

_ERRORS: Mapping[Why, tuple[int, str, str | None]] = {  # status, type, code
    Why.BAD_REQUEST: (400, "invalid_request_error", None),
    Why.UNKNOWN_QUESTION: (404, "invalid_request_error", "unknown_question"),
    Why.NOT_STREAMED: (400, "invalid_request_error", "unsupported_value"),
    Why.BAD_KEY: (401, "invalid_request_error", "invalid_api_key"),
    Why.NO_SUCH_MODEL: (404, "invalid_request_error", "model_not_found"),
    Why.NO_SUCH_PAGE: (404, "invalid_request_error", "unknown_url"),
    Why.WRONG_METHOD: (405, "invalid_request_error", "method_not_supported"),
    Why.TOO_LARGE: (413, "invalid_request_error", None),
    Why.RATE_LIMITED: (429, "requests", "rate_limit_exceeded"),
    Why.NO_QUOTA: (429, "insufficient_quota", "insufficient_quota"),
    Why.SERVER_ERROR: (500, "server_error", None),
    Why.OVERLOADED: (503, "server_error", "overloaded"),
}
_PARAMS: Mapping[Why, str] = {
    Why.UNKNOWN_QUESTION: "messages",
    Why.NOT_STREAMED: "stream",
    Why.NO_SUCH_MODEL: "model",
}


def read(body: Json) -> Asked:
    """Read a request. `max_tokens` is the older name of `max_completion_tokens`."""
    return asked_of(body, system=None, max_tokens=body.get("max_completion_tokens", body.get("max_tokens")))


def reply(answer: Answer, request_id: str) -> Json:
    """Write an answer as a `chat.completion`."""
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None, "annotations": []}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "length" if answer.cut else "stop",
    }
    return {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.model,
        "choices": [choice],
        "usage": _usage(answer),
        "service_tier": "default",
        "system_fingerprint": "simulated",
    }


def _usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


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


def retry_headers(wait_s: float) -> dict[str, str]:
    """Say when to come again, in whole seconds and in milliseconds."""
    return {"retry-after": str(math.ceil(wait_s)), "retry-after-ms": str(math.ceil(wait_s * 1000))}


def limit_headers(allowances: Mapping[str, Allowance]) -> dict[str, str]:
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


OPENAI = Wire(
    request_id_header="x-request-id",
    read=read,
    reply=reply,
    error=error,
    retry_headers=retry_headers,
    limit_headers=limit_headers,
    models=models,
)
