"""Anthropic's cache of prompts: the first request writes its marked beginning, later ones read it.

As at Anthropic, a beginning that is too short is not cached, and nobody is told. Each read keeps it for as
long again. Unlike there, requests that are sent at the same time do not all write it.
"""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

import orjson

from asyncbench.simulator.wire import Json, MarkedPrefix, WireAnswer, object_in, tokens

LEAST_TOKENS: Final = 1024  # of Sonnet; other models cache from 512, 2,048 or 4,096 on
KEPT_S: Final = 300.0  # unless a mark asks for an hour
HOUR_S: Final = 3600.0


def marked_prefix(body: Json) -> MarkedPrefix | None:
    """Return the prefix that a request has marked to be cached, or None."""
    blocks = [*_blocks("system", body.get("system"))]
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict):
            blocks += _blocks(message.get("role"), message.get("content"))
    marked = [i for i, (_, block) in enumerate(blocks) if object_in(block.get("cache_control"))]
    if not marked:
        return None

    prefix = [(role, block.get("text")) for role, block in blocks[: marked[-1] + 1]]
    ttl = object_in(blocks[marked[-1]][1]["cache_control"]).get("ttl")
    return MarkedPrefix(
        digest=sha256(orjson.dumps([body.get("model"), prefix])).digest(),
        tokens=tokens(sum(len(text) for _, text in prefix if isinstance(text, str))),
        hour=ttl == "1h",
    )


def _blocks(role: object, content: object) -> Iterator[tuple[object, Json]]:
    """Yield the blocks of a message; plain text is one."""
    if isinstance(content, str):
        yield role, {"text": content}
    elif isinstance(content, list):
        yield from ((role, block) for block in content if isinstance(block, dict))


class PromptCache:
    """The beginnings of prompts that a model has seen, each until it is forgotten."""

    def __init__(self) -> None:
        self._forgotten_s: dict[bytes, float] = {}

    def use(self, answer: WireAnswer, prefix: MarkedPrefix | None, at_s: float) -> WireAnswer:
        """Return an answer with the part of its input that was read from the cache, or written to it."""
        if prefix is None or prefix.tokens < LEAST_TOKENS:
            return answer
        amount = min(prefix.tokens, answer.input_tokens)
        read = at_s < self._forgotten_s.get(prefix.digest, at_s)
        self._forgotten_s[prefix.digest] = at_s + (HOUR_S if prefix.hour else KEPT_S)
        if read:
            return replace(answer, cached_tokens=amount)
        return replace(answer, written_tokens=amount, written_for_an_hour=prefix.hour)
