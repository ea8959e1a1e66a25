"""OpenAI's Responses: a request as a body, a body or a stream of typed events as a reply."""

from collections.abc import Iterator, Mapping
from typing import Final

from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.error_kinds import CUT_STREAM, bad_reply, stream_error
from asyncbench.providers.loose_json import count_in, items, mapping_in, text
from asyncbench.providers.usage import from_responses, raw_usage, stated_cost_usd
from asyncbench.providers.wire import Json, Response, at, finish_of, finished
from asyncbench.records import CUT_SHORT, REFUSALS, Reply, Request

_FAILED: Final = ("failed", "cancelled")
_UNDER_WAY: Final = ("queued", "in_progress")

_SAID: Final = ("output_text",)
_REFUSED: Final = ("refusal",)
_THOUGHT: Final = ("reasoning_text", "summary_text")
# What an event of a stream adds to: a kind of part of the output.
_DELTAS: Final[Mapping[object, str]] = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
}
# What closes a stream → the status, should the response itself not say it.
_ENDS: Final[Mapping[object, str]] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
}


class ResponsesWire:
    """/responses: the only door to some of OpenAI's newest models.

    Nothing is injected: the vendor stores what it answers unless `params` say `store: false`.
    """

    path = "responses"

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks  # the format has one way for all that is asked here; `config` reads the rest

    def body(self, request: Request) -> dict[str, object]:
        model = request.trial.model
        body = {
            "model": model.model_id,
            "input": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "instructions": request.system,
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_output_tokens": model.max_tokens,
            **at("reasoning.effort", model.effort),
            "stream": model.stream,  # said either way: left out, transformers serve streams all the same
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        status = text(payload.get("status"))
        if status in _FAILED and payload.get("error"):
            raise stream_error({"error": payload["error"]}, response)
        if status in _FAILED or status in _UNDER_WAY:
            raise bad_reply(response, f"its status is {status}")
        if not isinstance(payload.get("output"), list):
            raise bad_reply(response, "it holds no output")
        used = raw_usage(payload)
        answer, refusal = "".join(_parts(payload, _SAID)), "".join(_parts(payload, _REFUSED))
        reason = text(mapping_in(payload.get("incomplete_details")).get("reason"))
        if reason not in CUT_SHORT | REFUSALS:
            reason = status or reason  # `incomplete` tells more than a word that nobody knows
        return Reply(
            text=answer or refusal,
            reasoning="\n\n".join(_parts(payload, _THOUGHT)) or None,  # each a paragraph
            finish_reason=finish_of(reason, answer=answer, refusal=refusal),
            model_served=text(payload.get("model")),
            usage=from_responses(used) if used else None,
            raw_usage=used,
            request_id=response.request_id,
            upstream=text(payload.get("provider")),
            service_tier=text(payload.get("service_tier")),
            vendor_cost_usd=stated_cost_usd(used) if used else None,
            http_status=response.status,
        )

    def stream(self, response: Response) -> "_ResponseEvents":
        return _ResponseEvents(self, response)


class _ResponseEvents:
    """A response that arrives event by event; the last one holds all of it, at most servers."""

    def __init__(self, wire: ResponsesWire, response: Response) -> None:
        self._wire = wire
        self._response = response
        self._parts: dict[tuple[str, *tuple[object, ...]], list[str]] = {}  # kind and place → its pieces
        self._last: dict[str, object] | None = None

    @property
    def ended(self) -> bool:
        return self._last is not None

    @property
    def answers(self) -> bool:
        return any(kind not in _THOUGHT for kind, *_ in self._parts)

    def feed(self, event: Json) -> int:
        kind = event.get("type")
        part = _DELTAS.get(kind)
        if part is not None:
            return self._add(part, event)
        if kind == "error" or event.get("error"):
            raise stream_error(event, self._response)
        if kind == "response.failed":
            raise stream_error(mapping_in(event.get("response")), self._response)
        if kind in _ENDS:
            self._last = {"status": _ENDS[kind], **mapping_in(event.get("response"))}
        return 0

    def complete(self) -> Reply:
        if self._last is None:
            raise bad_reply(self._response, CUT_STREAM)
        assembled = [  # some servers leave the output out at the end
            {"content": [{"type": kind, _field(kind): "".join(pieces)}]}
            for (kind, *_), pieces in self._parts.items()
        ]
        output = items(self._last.get("output")) or assembled
        return self._wire.reply({**self._last, "output": output}, self._response)

    def _add(self, part: str, event: Json) -> int:
        piece = text(event.get("delta"))
        if piece is None:
            return 0
        output, content, summary = (
            count_in(event.get(f"{of}_index")) for of in ("output", "content", "summary")
        )
        place = (part, output, content, summary)
        self._parts.setdefault(place, []).append(piece)
        return len(piece)


def _parts(payload: Json, kinds: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of all parts of these kinds, in order; of one item, its summaries first."""
    for item in map(mapping_in, items(payload.get("output"))):
        for part in map(mapping_in, [*items(item.get("summary")), *items(item.get("content"))]):
            kind = text(part.get("type")) or ""
            if kind in kinds and (words := text(part.get(_field(kind)))):
                yield words


def _field(kind: str) -> str:
    return "refusal" if kind == "refusal" else "text"
