"""Requests to put to a provider, and what the wire formats answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from asyncbench.errors import ProviderError
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.endpoints import Endpoint, Quirks
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.openai.wires import ChatWire
from asyncbench.providers.provider import PROVIDERS, Provider
from asyncbench.providers.wire import Wire
from asyncbench.records import Condition, Message, Model, Problem, Request, Timeouts, Trial
from tests.providers.raw_server import RawServer

KEY = "sk-secret-0123456789abcdef"

CHAT: Mapping[str, Any] = {
    "id": "chatcmpl-1",
    "model": "served-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
}
MESSAGE: Mapping[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "model": "served-1",
    "content": [{"type": "text", "text": "42"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 5},
}
CONTENT: Mapping[str, Any] = {
    "candidates": [{"content": {"parts": [{"text": "42"}], "role": "model"}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25},
    "modelVersion": "served-1",
    "responseId": "resp-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A provider to test, with the wire format that it speaks."""

    name: str  # a key of PROVIDERS
    base: str  # what its base URL has after the host
    path: str
    body: Mapping[str, object]  # a good reply
    finish_reason: str
    wire: Wire
    events: tuple[bytes, ...]  # the same, streamed
    key_header: str = "authorization"

    @property
    def usage(self) -> object:
        return self.body.get("usage") or self.body.get("usageMetadata")

    @property
    def id(self) -> object:
        return self.body.get("id") or self.body.get("responseId")

    def provider(self, server_url: str, **endpoint: object) -> Provider:
        settings: dict[str, object] = {"api_key": KEY, **endpoint}
        there = Endpoint(base_url=server_url + self.base, **settings)  # type: ignore[arg-type]  # as the test gives them
        return PROVIDERS[self.name](there, self.wire)


CHUNKS = (
    b'{"model":"served-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
    b'{"model":"served-1","choices":[{"index":0,"delta":{"content":"4"}}]}',
    b'{"model":"served-1","choices":[{"index":0,"delta":{"content":"2"}}]}',
    b'{"model":"served-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    b'{"model":"served-1","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}',
    b"[DONE]",
)
TEXT = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"4"},"choices":[]}'
EVENTS = (
    b'{"type":"message_start","message":{"id":"msg_1","type":"message","model":"served-1","content":[],'
    b'"stop_reason":null,"usage":{"input_tokens":20,"output_tokens":1}}}',
    b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"4"}}',
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"2"}}',
    b'{"type":"content_block_stop","index":0}',
    b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}',
    b'{"type":"message_stop"}',
)
PIECES = (
    b'{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}}],"responseId":"resp-1"}',
    b'{"candidates":[{"content":{"parts":[{"text":"4"}],"role":"model"}}],"modelVersion":"served-1"}',
    b'{"candidates":[{"content":{"parts":[{"text":"2"}],"role":"model"}}]}',
    b'{"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"STOP"}],'
    b'"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":5,"totalTokenCount":25}}',
)

ADAPTERS = (
    Adapter(
        name="openai",
        base="/v1",
        path="/v1/chat/completions",
        body=CHAT,
        finish_reason="stop",
        wire=ChatWire(Quirks()),
        events=CHUNKS,
    ),
    Adapter(
        name="anthropic",
        base="",
        path="/v1/messages",
        body=MESSAGE,
        finish_reason="end_turn",
        wire=MessagesWire(),
        events=EVENTS,
    ),
    Adapter(
        name="http",
        base="/v1",
        path="/v1/chat/completions",
        body=CHAT,
        finish_reason="stop",
        wire=ChatWire(Quirks(max_tokens="max_tokens")),
        events=CHUNKS,
    ),
    Adapter(
        name="google",
        base="",
        path="/v1beta/models/claude-haiku-4-5:generateContent",
        body=CONTENT,
        finish_reason="stop",
        wire=ContentsWire(),
        events=PIECES,
        key_header="x-goog-api-key",
    ),
)

PROBLEM = Problem(
    problem_id="0" * 32,
    suite="llm_arithmetic",
    task="int_add",
    representation="integer",
    length=2,
    question="What is 20 + 22?",
    expected="42",
    answer_type="integer",
)


def asking(system: str | None = None, messages: tuple[Message, ...] = (), **model: object) -> Request:
    """Return a request; `model` holds the fields of its Model that matter."""
    fields: dict[str, object] = {"model_id": "claude-haiku-4-5", "max_tokens": 50, **model}
    trial = Trial(
        trial_id="1" * 32,
        run="sweep",
        sweep="test",
        problem_set="test",
        problem=PROBLEM,
        model=Model(alias="model", provider="test", api="test", **fields),  # type: ignore[arg-type]  # as the test gives them
        condition=Condition(),
    )
    question = Message(role="user", content=PROBLEM.question)
    return Request(trial=trial, system=system, messages=messages or (question,))


async def failure_of(provider: Provider, request: Request | None = None) -> ProviderError:
    """Return why a call fails."""
    with pytest.raises(ProviderError) as caught:
        await provider.ask(request or asking())
    return caught.value


async def cancel(provider: Provider, server: RawServer, request: Request) -> None:
    """Cancel a call once the server has it and has begun its answer."""
    call = asyncio.create_task(provider.ask(request))
    await server.asked.wait()
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def deadlines(*, total: float = 30.0, **others: float) -> Timeouts:
    return Timeouts(total=total, **others)
