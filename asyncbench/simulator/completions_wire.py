"""OpenAI's plain Completions: a prompt without roles. No reasoning is asked for or shown."""

import time
from collections.abc import Iterator, Sequence

from asyncbench.simulator import openai_wire
from asyncbench.simulator.asked import model_of, pace_of, stream_of, stream_usage_of, token_limit
from asyncbench.simulator.chat_wire import told_apart
from asyncbench.simulator.script import HOLE, Script, cut_up, deltas, event
from asyncbench.simulator.wire import Asked, Exchange, Json, RefusedError, StreamUsage, Why, Wire


def read(body: Json) -> Asked:
    """Read a request; its prompt is the question, or ends with it on a line of its own."""
    prompt = _prompt(body.get("prompt"))
    return Asked(
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
    choice = _choice(exchange.answer.text, _finish(exchange))
    return _body(exchange, [choice]) | {"usage": exchange.like.usage(exchange.answer)}


def script(exchange: Exchange) -> Script:
    """Write an answer as a stream of `text_completion`, which nothing opens."""
    texts = cut_up(exchange.answer.text, exchange.chunks)
    return Script(
        opening=(),
        pieces=deltas(_body(exchange, [_choice(HOLE, None)]), texts),
        closing=[*_closing(exchange)],
        error=openai_wire.error_midway(),
    )


def _closing(exchange: Exchange) -> Iterator[bytes]:
    like = exchange.like
    usage = like.usage(exchange.answer)
    finish = _body(exchange, [_choice("", _finish(exchange))])
    yield event(finish | {"usage": usage} if like.stream_usage is StreamUsage.IN_FINISH else finish)
    if told_apart(exchange):
        yield event(_body(exchange, []) | {"usage": usage})
    if like.done:
        yield like.done


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


def _finish(exchange: Exchange) -> str:
    return "length" if exchange.answer.cut else "stop"


COMPLETIONS = Wire(
    request_id_header=openai_wire.REQUEST_ID_HEADER,
    read=read,
    reply=reply,
    script=script,
    error=openai_wire.error,
    retry_headers=openai_wire.retry_headers,
    limit_headers=openai_wire.limit_headers,
    models=openai_wire.models,
)
