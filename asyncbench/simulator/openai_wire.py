"""OpenAI's chat and plain completions and its Responses (its SDK's types, release 3.51)."""

import itertools
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


def limit_headers(
    allowances: Mapping[str, ToldAllowance], *, reset: Callable[[float], str] | None = go_duration
) -> dict[str, str]:
    """Write limits as headers. `reset` writes seconds as a Go duration. None: no limit is told."""
    headers = {}
    for what, allowance in allowances.items():
        headers[f"x-ratelimit-limit-{what}"] = f"{allowance.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{what}"] = str(int(allowance.remaining))
        if reset is not None:
            headers[f"x-ratelimit-reset-{what}"] = reset(allowance.reset_s)
    return headers


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
    vendor = exchange.vendor
    usage, where = {"usage": vendor.usage(exchange.answer)}, vendor.stream_usage
    closing = [event(finish | usage if where is StreamUsage.IN_FINISH else finish)]
    if where is StreamUsage.ALWAYS or (where is StreamUsage.ASKED and exchange.request.stream_usage):
        closing.append(event(apart() | usage))
    if vendor.done:
        closing.append(vendor.done)
    return Script(
        opening=[event(chunk) for chunk in opening],
        pieces=pieces,
        closing=closing,
        error=event(error(_MIDWAY, "")[1]),
    )


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
    max_tokens = body.get("max_completion_tokens", body.get("max_tokens"))
    return asked_of(body, messages=body.get("messages"), system=None, max_tokens=max_tokens)


def _chat_reply(exchange: Exchange) -> Json:
    message = {
        "role": "assistant",
        **exchange.vendor.message(exchange.answer),
        "refusal": None,
        "annotations": [],
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_of(exchange)}
    body = _chat_body(exchange, "chat.completion", [choice])
    body["usage"] = exchange.vendor.usage(exchange.answer)
    return exchange.vendor.adorn(body, exchange)


def _chat_script(exchange: Exchange) -> Script:
    vendor, answer = exchange.vendor, exchange.answer
    thought = _chat_pieces(exchange, vendor.thought(HOLE), answer.reasoning) if vendor.reasoning else []
    return _script(
        exchange,
        opening=[*vendor.opening_chunks(), _chunk(exchange, {"role": "assistant", "content": ""})],
        pieces=[*thought, *_chat_pieces(exchange, {"content": HOLE}, answer.text)],
        finish=_chunk(exchange, {}, finish=_finish_of(exchange)),
        apart=lambda: vendor.adorn(_chat_body(exchange, "chat.completion.chunk", []), exchange),
    )


def _chat_pieces(exchange: Exchange, delta: Json, text: str) -> list[bytes]:
    return deltas(_chunk(exchange, delta), cut_up(text, exchange.chunks)) if text else []


def _chunk(exchange: Exchange, delta: Json, *, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return exchange.vendor.adorn(_chat_body(exchange, "chat.completion.chunk", [choice]), exchange)


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
    return plainly_asked(
        body, body.get("max_tokens"), question=prompt, prompt_characters=len(prompt), without_roles=True
    )


def _completion_reply(exchange: Exchange) -> Json:
    body = _completion(exchange, exchange.answer.text, _finish_of(exchange))
    return body | {"usage": exchange.vendor.usage(exchange.answer)}


def _completion_script(exchange: Exchange) -> Script:
    """Write an answer as a stream of `text_completion`, which nothing opens."""
    texts = cut_up(exchange.answer.text, exchange.chunks)
    return _script(
        exchange,
        opening=(),
        pieces=deltas(_completion(exchange, HOLE), texts),
        finish=_completion(exchange, "", _finish_of(exchange)),
        apart=partial(_completion, exchange),
    )


def _completion(exchange: Exchange, text: str | None = None, finish: str | None = None) -> Json:
    """Write a completion, or a piece of one; `text`: None, where it has no choice."""
    choice: Json = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return _body(exchange, "cmpl", "text_completion", [] if text is None else [choice])


COMPLETIONS = openai_wire(read=_read_prompt, reply=_completion_reply, script=_completion_script)


# ── Responses: reasoning is an item before the message ───────────────────────────────────────
# OpenAI itself shows no more of it than a summary, and that only where `reasoning.summary` asks for one;
# providers that show it in chat completions show it here whole.

_LOGPROBS: Json = {"logprobs": []}


def _read_input(body: Json) -> WireRequest:
    """Read a request, whose `input` is the question or a list of items."""
    content = body.get("input")
    messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
    return asked_of(
        body, messages=messages, system=body.get("instructions"), max_tokens=body.get("max_output_tokens")
    )


def _response_reply(exchange: Exchange) -> Json:
    status = "incomplete" if exchange.answer.cut else "completed"
    answer = exchange.answer
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    return _response(exchange, status, _items(exchange)) | {"usage": usage}


def _response_script(exchange: Exchange) -> Script:
    """Write an answer as a stream of typed events, all of them numbered."""
    events = _NumberedEvents(exchange)
    opening = [
        events.event(kind, response=_response(exchange, "in_progress", []))
        for kind in ("response.created", "response.in_progress")
    ]
    pieces = [piece for index, item in enumerate(_items(exchange)) for piece in events.item(index, item)]
    whole = _response_reply(exchange)
    closing = [events.event(f"response.{whole['status']}", response=whole)]
    error = events.event("error", code="server_error", message="It failed midway. (simulated)", param=None)
    return Script(opening=opening, pieces=pieces, closing=closing, error=error)


class _NumberedEvents:
    """Writes the events of one stream in their order, each with its number."""

    def __init__(self, exchange: Exchange) -> None:
        self._numbers = itertools.count()
        self._chunks = exchange.chunks

    def event(self, kind: str, **fields: object) -> bytes:
        return event({"type": kind, "sequence_number": next(self._numbers), **fields}, kind)

    def item(self, index: int, item: Json) -> Iterator[bytes]:
        """Yield an item piece by piece; its beginning comes with the first, its end with the last."""
        # What it holds, each with the name of its events and that of its index.
        begun = item | {"content": []} if "content" in item else item
        if item["type"] == "reasoning":
            begun = begun | {"summary": []}
            contents = [("reasoning_summary_text", "summary_index", text) for text in _list(item["summary"])]
            contents += [("reasoning_text", "content_index", text) for text in _list(item.get("content"))]
        else:
            contents = [("output_text", "content_index", text) for text in _list(item["content"])]

        begin = self.event(
            "response.output_item.added", output_index=index, item=begun | {"status": "in_progress"}
        )
        position = {"item_id": item["id"], "output_index": index}
        pieces = [
            self._content(kind, text, position | {index_name: 0}) for kind, index_name, text in contents
        ]
        yielded = [*itertools.chain.from_iterable(pieces)] or [b""]
        end = self.event("response.output_item.done", output_index=index, item=item)
        yielded[0] = begin + yielded[0]
        yielded[-1] += end
        yield from yielded

    def _content(self, kind: str, content: Json, position: Json) -> Iterator[bytes]:
        """Yield a part of an item's content piece by piece."""
        text, logprobs = str(content["text"]), _LOGPROBS if kind == "output_text" else {}
        around = {"output_text": "content_part", "reasoning_summary_text": "reasoning_summary_part"}.get(kind)
        begin = b""
        if around:
            begin = self.event(f"response.{around}.added", **position, part=content | {"text": ""})
        pieces = [
            self.event(f"response.{kind}.delta", **position, delta=piece, **logprobs)
            for piece in cut_up(text, self._chunks)
        ] or [b""]
        end = self.event(f"response.{kind}.done", **position, text=text, **logprobs)
        end += self.event(f"response.{around}.done", **position, part=content) if around else b""
        pieces[0] = begin + pieces[0]
        pieces[-1] += end
        yield from pieces


def _list(parts: object) -> Sequence[Json]:
    return parts if isinstance(parts, list) else []


def _items(exchange: Exchange) -> list[Json]:
    """Return the items of an answer: its reasoning, where there is any, and its message."""
    answer, items = exchange.answer, list[Json]()
    if answer.reasoning:
        reasoning: Json = {"id": f"rs_{exchange.request_id}", "type": "reasoning", "summary": []}
        if exchange.request.summary:
            reasoning["summary"] = [{"type": "summary_text", "text": answer.reasoning}]
        if exchange.vendor.reasoning is not None:
            reasoning["content"] = [{"type": "reasoning_text", "text": answer.reasoning}]
        items.append(reasoning)

    # An answer that was cut within its thinking has no message.
    if not (answer.reasoning and answer.cut and not answer.text):
        text = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": f"msg_{exchange.request_id}",
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if answer.cut else "completed",
                "content": [text],
            }
        )
    return items


def _response(exchange: Exchange, status: str, output: Sequence[Json]) -> Json:
    return {
        "id": f"resp_{exchange.request_id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "max_output_tokens": exchange.request.max_tokens,
        "model": exchange.answer.model,
        "output": output,
        "parallel_tool_calls": True,
        "service_tier": "default",
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        "system_fingerprint": "simulated",
    }


RESPONSES = openai_wire(
    read=_read_input, reply=_response_reply, script=_response_script, may_stream_unasked=True
)
