"""OpenAI's Chat Completions, and what other providers make of them."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from asyncbench.simulator.asked import asked_of
from asyncbench.simulator.openai_wire import closing, error_midway, finish_of, wire_of
from asyncbench.simulator.script import HOLE, Script, cut_up, deltas, event
from asyncbench.simulator.wire import Exchange, Json, WireRequest


def read(body: Json) -> WireRequest:
    """Read a request. `max_tokens` is the older name of `max_completion_tokens`."""
    return asked_of(
        body,
        messages=body.get("messages"),
        system=None,
        max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
    )


def reply(exchange: Exchange) -> Json:
    """Write an answer as a `chat.completion`."""
    answer, like = exchange.answer, exchange.like
    choice = {
        "index": 0,
        "message": {"role": "assistant", **like.content.message(answer), "refusal": None, "annotations": []},
        "logprobs": None,
        "finish_reason": finish_of(exchange),
    }
    body = _body(exchange, "chat.completion", [choice])
    body["usage"] = like.usage(answer)
    return like.adorn(body, exchange)


def script(exchange: Exchange) -> Script:
    """Write an answer as a stream of `chat.completion.chunk`."""
    like = exchange.like
    first = _chunk(exchange, {"role": "assistant", "content": ""})
    finish = _chunk(exchange, {}, finish=finish_of(exchange))
    return Script(
        opening=[event(chunk) for chunk in (*like.before(exchange), first)],
        pieces=[*_pieces(exchange, like.content.thought, exchange.answer.reasoning), *_said(exchange)],
        closing=[*closing(exchange, finish, partial(_usage_apart, exchange))],
        error=error_midway(),
    )


def _said(exchange: Exchange) -> list[bytes]:
    return _pieces(exchange, exchange.like.content.said, exchange.answer.text)


def _pieces(exchange: Exchange, delta: Callable[[str], Json] | None, text: str) -> list[bytes]:
    if delta is None or not text:
        return []
    return deltas(_chunk(exchange, delta(HOLE)), cut_up(text, exchange.chunks))


def _usage_apart(exchange: Exchange, usage: Json) -> Json:
    return exchange.like.adorn(_body(exchange, "chat.completion.chunk", []) | {"usage": usage}, exchange)


def _chunk(exchange: Exchange, delta: Json, *, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return exchange.like.adorn(_body(exchange, "chat.completion.chunk", [choice]), exchange)


def _body(exchange: Exchange, kind: str, choices: Sequence[Json]) -> Json:
    return {
        "id": f"chatcmpl-{exchange.request_id}",
        "object": kind,
        "created": int(time.time()),
        "model": exchange.answer.model,
        "choices": choices,
        "service_tier": "default",
        "system_fingerprint": "simulated",
    }


CHAT = wire_of(read=read, reply=reply, script=script)
