"""OpenAI's plain Completions: a prompt without roles. No reasoning is asked for or shown."""

import time
from collections.abc import Sequence

from asyncbench.simulator.asked import model_of, pace_of, stream_of, stream_usage_of, token_limit
from asyncbench.simulator.openai_wire import closing, error_midway, finish_of, wire_of
from asyncbench.simulator.script import HOLE, Script, cut_up, deltas
from asyncbench.simulator.wire import Exchange, Json, RefusedError, Why, WireRequest


def read(body: Json) -> WireRequest:
    """Read a request; its prompt is the question, or ends with it on a line of its own."""
    prompt = _prompt(body.get("prompt"))
    return WireRequest(
        model=model_of(body),
        question=prompt,
        without_roles=True,
        prompt_characters=len(prompt),
        max_tokens=token_limit(body.get("max_tokens")),
        stream=stream_of(body),
        stream_usage=stream_usage_of(body),
        pace=pace_of(body),
    )


def _prompt(given: object) -> str:
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if isinstance(given, str):
        return given
    raise RefusedError(Why.BAD_REQUEST, "`prompt` must be text, or a list of one text.")


def reply(exchange: Exchange) -> Json:
    """Write an answer as a `text_completion`."""
    choice = _choice(exchange.answer.text, finish_of(exchange))
    return _body(exchange, [choice]) | {"usage": exchange.like.usage(exchange.answer)}


def script(exchange: Exchange) -> Script:
    """Write an answer as a stream of `text_completion`, which nothing opens."""
    texts = cut_up(exchange.answer.text, exchange.chunks)
    finish = _body(exchange, [_choice("", finish_of(exchange))])
    return Script(
        opening=(),
        pieces=deltas(_body(exchange, [_choice(HOLE, None)]), texts),
        closing=[*closing(exchange, finish, lambda usage: _body(exchange, []) | {"usage": usage})],
        error=error_midway(),
    )


def _choice(text: str, finish: str | None) -> Json:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}


def _body(exchange: Exchange, choices: Sequence[Json]) -> Json:
    return {
        "id": f"cmpl-{exchange.request_id}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": exchange.answer.model,
        "choices": choices,
        "system_fingerprint": "simulated",
    }


COMPLETIONS = wire_of(read=read, reply=reply, script=script)
