"""OpenAI's Responses. Reasoning is an item before the message.

OpenAI itself shows no more of it than a summary, and that only where `reasoning.summary` asks for one;
providers that show it in chat completions show it here whole.
"""

import itertools
import time
from collections.abc import Iterator, Sequence

from asyncbench.simulator.asked import asked_of
from asyncbench.simulator.openai_wire import openai_wire
from asyncbench.simulator.wire import Exchange, Json, Script, WireRequest, cut_up, event

_LOGPROBS: Json = {"logprobs": []}


def read(body: Json) -> WireRequest:
    """Read a request, whose `input` is the question or a list of items."""
    content = body.get("input")
    messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
    return asked_of(
        body, messages=messages, system=body.get("instructions"), max_tokens=body.get("max_output_tokens")
    )


def reply(exchange: Exchange) -> Json:
    status = "incomplete" if exchange.answer.cut else "completed"
    return _response(exchange, status, _items(exchange)) | {"usage": _usage(exchange)}


def script(exchange: Exchange) -> Script:
    """Write an answer as a stream of typed events, all of them numbered."""
    telling = _Telling(exchange)
    opening = [
        telling.event(kind, response=_response(exchange, "in_progress", []))
        for kind in ("response.created", "response.in_progress")
    ]
    pieces = [piece for index, item in enumerate(_items(exchange)) for piece in telling.item(index, item)]
    whole = reply(exchange)
    closing = [telling.event(f"response.{whole['status']}", response=whole)]
    error = telling.event("error", code="server_error", message="It failed midway. (simulated)", param=None)
    return Script(opening=opening, pieces=pieces, closing=closing, error=error)


class _Telling:
    """Writes the events of one stream in their order."""

    def __init__(self, exchange: Exchange) -> None:
        self._numbers = itertools.count()
        self._chunks = exchange.chunks

    def event(self, kind: str, **fields: object) -> bytes:
        return event({"type": kind, "sequence_number": next(self._numbers), **fields}, kind)

    def item(self, index: int, item: Json) -> Iterator[bytes]:
        """Yield an item piece by piece; its beginning comes with the first, its end with the last."""
        begun = item | {"content": []} if "content" in item else item
        if item["type"] == "reasoning":
            begun = begun | {"summary": []}
        begin = self.event(
            "response.output_item.added", output_index=index, item=begun | {"status": "in_progress"}
        )
        yielded = [*self._parts(index, item)] or [b""]
        end = self.event("response.output_item.done", output_index=index, item=item)
        yielded[0] = begin + yielded[0]
        yielded[-1] += end
        yield from yielded

    def _parts(self, index: int, item: Json) -> Iterator[bytes]:
        place = {"item_id": item["id"], "output_index": index}
        for kind, number, part in _parts(item):
            yield from self._part(kind, part, place | {number: 0})

    def _part(self, kind: str, part: Json, place: Json) -> Iterator[bytes]:
        text, logprobs = str(part["text"]), _LOGPROBS if kind == "output_text" else {}
        around = {"output_text": "content_part", "reasoning_summary_text": "reasoning_summary_part"}.get(kind)
        begin = self.event(f"response.{around}.added", **place, part=part | {"text": ""}) if around else b""
        pieces = [
            self.event(f"response.{kind}.delta", **place, delta=piece, **logprobs)
            for piece in cut_up(text, self._chunks)
        ] or [b""]
        end = self.event(f"response.{kind}.done", **place, text=text, **logprobs)
        end += self.event(f"response.{around}.done", **place, part=part) if around else b""
        pieces[0] = begin + pieces[0]
        pieces[-1] += end
        yield from pieces


def _parts(item: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the parts of an item: what its events are called, how its place is counted, the part."""
    if item["type"] == "message":
        yield from (("output_text", "content_index", part) for part in _list(item["content"]))
        return
    yield from (("reasoning_summary_text", "summary_index", part) for part in _list(item["summary"]))
    yield from (("reasoning_text", "content_index", part) for part in _list(item.get("content")))


def _list(parts: object) -> Sequence[Json]:
    return parts if isinstance(parts, list) else []


def _items(exchange: Exchange) -> list[Json]:
    answer = exchange.answer
    # Cut within the thinking: there is no message.
    message = [] if answer.reasoning and answer.cut and not answer.text else [_message(exchange)]
    return [_reasoning(exchange), *message] if answer.reasoning else message


def _message(exchange: Exchange) -> Json:
    part = {"type": "output_text", "text": exchange.answer.text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{exchange.request_id}",
        "type": "message",
        "role": "assistant",
        "status": "incomplete" if exchange.answer.cut else "completed",
        "content": [part],
    }


def _reasoning(exchange: Exchange) -> Json:
    text = exchange.answer.reasoning
    item: Json = {"id": f"rs_{exchange.request_id}", "type": "reasoning", "summary": []}
    if exchange.request.summary:
        item["summary"] = [{"type": "summary_text", "text": text}]
    if exchange.ways.reasoning is not None:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    return item


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


def _usage(exchange: Exchange) -> Json:
    answer = exchange.answer
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


RESPONSES = openai_wire(read=read, reply=reply, script=script, may_stream_unasked=True)
