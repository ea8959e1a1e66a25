"""OpenAI's chat and plain completions, and what its wire formats share (its SDK's types, release 3.51)."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from asyncbench.simulator.asked import asked_of, plainly_asked
from asyncbench.simulator.limits import ToldAllowance
from asyncbench.simulator.wire import (
    HOLE,
    Exchange,
    Json,
    RefusedError,
    Script,
    StreamUsage,
    VendorWire,
    Why,
    WireRequest,
    cut_up,
    deltas,
    event,
)

_ERRORS: Mapping[Why, tuple[int, str, str | None]] = {  # status, type, code
    Why.BAD_REQUEST: (400, "invalid_request_error", None),
    Why.REJECTED_PARAMETER: (400, "invalid_request_error", "unsupported_parameter"),
    Why.UNKNOWN_QUESTION: (404, "invalid_request_error", "unknown_question"),
    Why.RECORDED_FAILURE: (404, "invalid_request_error", "recorded_failure"),
    Why.BAD_KEY: (401, "invalid_request_error", "invalid_api_key"),
    Why.NO_SUCH_MODEL: (404, "invalid_request_error", "model_not_found"),
    Why.NO_SUCH_PAGE: (404, "invalid_request_error", "unknown_url"),
    Why.WRONG_METHOD: (405, "invalid_request_error", "method_not_supported"),
    Why.NO_SUCH_OBJECT: (404, "invalid_request_error", None),
    Why.CONFLICT: (409, "invalid_request_error", None),
    Why.TOO_LONG: (400, "invalid_request_error", "context_length_exceeded"),
    Why.TIMED_OUT: (504, "server_error", "timeout"),
    Why.TOO_LARGE: (413, "invalid_request_error", None),
    Why.RATE_LIMITED: (429, "requests", "rate_limit_exceeded"),
    Why.NO_QUOTA: (429, "insufficient_quota", "insufficient_quota"),
    Why.SERVER_ERROR: (500, "server_error", None),
    Why.OVERLOADED: (503, "server_error", "overloaded"),
    Why.UPSTREAM: (200, "server_error", "bad_gateway"),
}
_PARAMS: Mapping[Why, str] = {Why.UNKNOWN_QUESTION: "messages", Why.NO_SUCH_MODEL: "model"}
_MIDWAY = RefusedError(Why.OVERLOADED, "The server is overloaded, and was not when this answer began.")


def error(refused: RefusedError, _request_id: str) -> tuple[int, Json]:
    status, kind, code = _ERRORS[refused.why]
    content = {"message": refused.message, "type": kind, "param": _PARAMS.get(refused.why)}
    return status, {"error": {**content, "code": refused.code or code}}


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
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "asyncbench"} for name in names],
    }


openai_wire = partial(
    VendorWire,
    request_id_header="x-request-id",
    error=error,
    retry_headers=retry_headers,
    limit_headers=limit_headers,
    models=models,
)


def _script(
    exchange: Exchange, opening: Sequence[Json], pieces: list[bytes], finish: Json, apart: Callable[[], Json]
) -> Script:
    """Write a stream of choices; `apart`: a chunk without a choice, for the usage."""
    return Script(
        opening=[event(chunk) for chunk in opening],
        pieces=pieces,
        closing=[*_closing(exchange, finish, apart)],
        error=event(error(_MIDWAY, "")[1]),
    )


def _closing(exchange: Exchange, finish: Json, apart: Callable[[], Json]) -> Iterator[bytes]:
    ways, usage = exchange.ways, {"usage": exchange.ways.usage(exchange.answer)}
    how = ways.stream_usage
    yield event(finish | usage if how is StreamUsage.IN_FINISH else finish)
    if how is StreamUsage.ALWAYS or (how is StreamUsage.ASKED and exchange.request.stream_usage):
        yield event(apart() | usage)
    if ways.done:
        yield ways.done


def _body(exchange: Exchange, name: str, kind: str, choices: Sequence[Json]) -> Json:
    return {
        "id": f"{name}-{exchange.request_id}",
        "object": kind,
        "created": int(time.time()),
        "model": exchange.answer.model,
        "choices": choices,
        "system_fingerprint": "simulated",
    }


def _finish_of(exchange: Exchange) -> str:
    return "length" if exchange.answer.cut else "stop"


# ── chat completions ─────────────────────────────────────────────────────────────────────────


def _read_chat(body: Json) -> WireRequest:
    """Read a request. `max_tokens` is the older name of `max_completion_tokens`."""
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    return asked_of(body, messages=body.get("messages"), system=None, max_tokens=most)


def _chat_reply(exchange: Exchange) -> Json:
    message = {
        "role": "assistant",
        **exchange.ways.message(exchange.answer),
        "refusal": None,
        "annotations": [],
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_of(exchange)}
    body = _chat_body(exchange, "chat.completion", [choice])
    body["usage"] = exchange.ways.usage(exchange.answer)
    return exchange.ways.adorn(body, exchange)


def _chat_script(exchange: Exchange) -> Script:
    ways, answer = exchange.ways, exchange.answer
    thought = _chat_pieces(exchange, ways.thought(HOLE), answer.reasoning) if ways.reasoning else []
    return _script(
        exchange,
        opening=[*ways.before(), _chunk(exchange, {"role": "assistant", "content": ""})],
        pieces=[*thought, *_chat_pieces(exchange, {"content": HOLE}, answer.text)],
        finish=_chunk(exchange, {}, finish=_finish_of(exchange)),
        apart=lambda: ways.adorn(_chat_body(exchange, "chat.completion.chunk", []), exchange),
    )


def _chat_pieces(exchange: Exchange, delta: Json, text: str) -> list[bytes]:
    return deltas(_chunk(exchange, delta), cut_up(text, exchange.chunks)) if text else []


def _chunk(exchange: Exchange, delta: Json, *, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return exchange.ways.adorn(_chat_body(exchange, "chat.completion.chunk", [choice]), exchange)


def _chat_body(exchange: Exchange, kind: str, choices: Sequence[Json]) -> Json:
    return _body(exchange, "chatcmpl", kind, choices) | {"service_tier": "default"}


CHAT = openai_wire(read=_read_chat, reply=_chat_reply, script=_chat_script)


# ── plain completions: a prompt without roles; no reasoning is asked for or shown ────────────


def _read_prompt(body: Json) -> WireRequest:
    """Read a request; its prompt is the question, or ends with it on a line of its own."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise RefusedError(Why.BAD_REQUEST, "`prompt` must be text, or a list of one text.")
    common = plainly_asked(body, body.get("max_tokens"))
    return WireRequest(question=prompt, without_roles=True, prompt_characters=len(prompt), **common)


def _completion_reply(exchange: Exchange) -> Json:
    body = _completion(exchange, _text_choice(exchange.answer.text, _finish_of(exchange)))
    return body | {"usage": exchange.ways.usage(exchange.answer)}


def _completion_script(exchange: Exchange) -> Script:
    """Write an answer as a stream of `text_completion`, which nothing opens."""
    texts = cut_up(exchange.answer.text, exchange.chunks)
    return _script(
        exchange,
        opening=(),
        pieces=deltas(_completion(exchange, _text_choice(HOLE, None)), texts),
        finish=_completion(exchange, _text_choice("", _finish_of(exchange))),
        apart=partial(_completion, exchange),
    )


def _text_choice(text: str, finish: str | None) -> Json:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}


def _completion(exchange: Exchange, *choices: Json) -> Json:
    return _body(exchange, "cmpl", "text_completion", choices)


COMPLETIONS = openai_wire(read=_read_prompt, reply=_completion_reply, script=_completion_script)
