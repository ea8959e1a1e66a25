"""Requests to put to a provider, and what the wire formats answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncbench.providers import PROVIDERS, Provider
from asyncbench.providers.endpoint import Endpoint
from asyncbench.records import Condition, Message, Model, Problem, Request, Timeouts, Trial

KEY = "sk-secret-0123456789abcdef"

CHAT: Mapping[str, object] = {
    "id": "chatcmpl-1",
    "model": "served-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
}
MESSAGE: Mapping[str, object] = {
    "id": "msg_1",
    "type": "message",
    "model": "served-1",
    "content": [{"type": "text", "text": "42"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 5},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A provider to test, with the wire format that it speaks."""

    name: str  # a key of PROVIDERS
    base: str  # what its base URL has after the host
    path: str
    body: Mapping[str, object]  # a good reply
    finish_reason: str

    def provider(self, server_url: str, **endpoint: object) -> Provider:
        settings: dict[str, object] = {"api_key": KEY, **endpoint}
        return PROVIDERS[self.name](Endpoint(base_url=server_url + self.base, **settings))  # type: ignore[arg-type]  # as the test gives them


ADAPTERS = (
    Adapter(name="openai", base="/v1", path="/v1/chat/completions", body=CHAT, finish_reason="stop"),
    Adapter(name="anthropic", base="", path="/v1/messages", body=MESSAGE, finish_reason="end_turn"),
    Adapter(name="http", base="/v1", path="/v1/chat/completions", body=CHAT, finish_reason="stop"),
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


def deadlines(*, total: float = 30.0, connect: float = 30.0) -> Timeouts:
    return Timeouts(total=total, connect=connect)
