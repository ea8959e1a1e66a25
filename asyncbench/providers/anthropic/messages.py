"""Anthropic's Messages API: it writes the body of a request, and reads a reply whole or as a stream."""

from collections.abc import Mapping
from typing import Final

from asyncbench.providers.error_bodies import holds_error
from asyncbench.providers.error_kinds import CUT_STREAM, bad_reply, stream_error
from asyncbench.providers.finish_words import finish_in, judged
from asyncbench.providers.usage import anthropic_usage, believed, merged
from asyncbench.providers.wire import (
    Json,
    Response,
    count_in,
    finished,
    mapping_in,
    nest,
    text,
    text_and_thinking,
)
from asyncbench.records import Reply, Request

USUAL_TTL: Final = "5m"  # how long a prompt stays cached where `cache_control` names no `ttl`

_TEXT_FIELDS: Final = {"text": "text", "thinking": "thinking"}  # type of a block, or of its delta → field
_DELTAS: Final[Mapping[object, str]] = {"text_delta": "text", "thinking_delta": "thinking"}  # → block's type


class MessagesWire:
    """The format of /v1/messages. All endpoints that have it write it in the same way."""

    path = "v1/messages"

    def body(self, request: Request) -> dict[str, object]:
        """Return the body of a request; see `Wire`.

        The API demands `max_tokens`; `config` sets it where the sweep does not.
        """
        model = request.trial.model
        thinking: dict[str, object] | None = None if model.thinking is None else {"type": model.thinking}
        if model.thinking_tokens is not None:
            thinking = {"type": "enabled", "budget_tokens": model.thinking_tokens}

        messages: list[dict[str, object]] = [
            {"role": turn.role, "content": turn.content} for turn in request.messages
        ]
        system: object = request.system

        # The question is the last message. All before it is the same for a task, so its end is marked: the
        # provider caches the prompt up to there.
        if model.prompt_cache is not None:
            ttl = {} if model.prompt_cache == USUAL_TTL else {"ttl": model.prompt_cache}
            block = {"type": "text", "cache_control": {"type": "ephemeral", **ttl}}
            if len(messages) > 1:
                messages[-2]["content"] = [block | {"text": request.messages[-2].content}]
            elif system:
                system = [block | {"text": system}]

        body = {
            "model": model.model_id,
            "messages": messages,
            "system": system,
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_tokens": model.max_tokens,
            "thinking": thinking,
            **nest("output_config.effort", model.effort),
            "stream": model.stream or None,
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response, *, counted: bool = True) -> Reply:
        content = payload.get("content")
        if not isinstance(content, list):
            raise bad_reply(response, "it holds no content")
        answer, thinking = text_and_thinking(content)

        raw_usage, usage = mapping_in(payload.get("usage")) or None, None
        if raw_usage is not None:
            usage = believed(anthropic_usage(raw_usage), response.notes, answer, thinking, counted=counted)

        return Reply(
            text=answer,
            reasoning=thinking,
            finish_reason=judged(finish_in(payload, "stop_reason"), response, answer=answer),
            model_served=text(payload.get("model")),
            usage=usage,
            raw_usage=raw_usage,
            request_id=response.request_id,
            service_tier=text((raw_usage or {}).get("service_tier")),
            http_status=response.status,
        )

    def stream(self, response: Response) -> "_MessageEvents":
        return _MessageEvents(self, response)


class _MessageEvents:
    """A streamed message: its events are joined into a whole message, which `MessagesWire.reply` reads."""

    def __init__(self, wire: MessagesWire, response: Response) -> None:
        self._wire = wire
        self._response = response
        self._message: dict[str, object] = {}
        self._blocks: dict[tuple[str, object], list[str]] = {}  # type and index → its texts so far
        self._stopped = False
        self._counted = False  # a message_delta had output tokens; those of message_start are too early

    @property
    def ended(self) -> bool:
        return self._stopped

    @property
    def answers(self) -> bool:
        return any(kind == "text" for kind, _ in self._blocks)

    def feed(self, event: Json) -> int:
        kind = event.get("type")
        if kind == "content_block_delta":
            delta = mapping_in(event.get("delta"))
            return self._add(_DELTAS.get(text(delta.get("type"))), event.get("index"), delta)
        if kind == "content_block_start":
            block = mapping_in(event.get("content_block"))
            return self._add(text(block.get("type")), event.get("index"), block)
        if kind == "error" or holds_error(event):
            raise stream_error(event, self._response)
        if kind == "message_start":
            self._message |= mapping_in(event.get("message"))
        elif kind == "message_delta":
            delta, earlier = mapping_in(event.get("delta")), mapping_in(self._message.get("usage"))
            changes = {name: value for name, value in delta.items() if value is not None}
            usage = mapping_in(event.get("usage")) or mapping_in(delta.get("usage"))
            if self._counted and not usage.get("output_tokens"):  # 0 does not replace an earlier count
                usage = {name: value for name, value in usage.items() if name != "output_tokens"}
            self._counted |= usage.get("output_tokens") is not None
            self._message |= {**changes, "usage": merged(earlier, usage)}
        elif kind == "message_stop":
            self._stopped = True
        return 0

    def end(self) -> None:
        self._stopped |= self.answers  # `[DONE]` may stand for a message_stop, but not before an answer

    def complete(self) -> Reply:
        if not self._stopped:
            raise bad_reply(self._response, CUT_STREAM)
        content = [
            {"type": kind, _TEXT_FIELDS[kind]: "".join(pieces)} for (kind, _), pieces in self._blocks.items()
        ]
        message = {**self._message, "content": content}
        return self._wire.reply(message, self._response, counted=self._counted)

    def _add(self, kind: str | None, index: object, block: Mapping[str, object]) -> int:
        """Keep the text of a block or of its delta, and return the number of its characters."""
        words = text(block.get(_TEXT_FIELDS[kind])) if kind in _TEXT_FIELDS else None
        if kind is None or words is None:
            return 0  # a signature, a citation or a tool call: it holds no text of the reply
        self._blocks.setdefault((kind, count_in(index)), []).append(words)
        return len(words)
