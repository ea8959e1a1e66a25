"""OpenAI's chat completions, plain completions and Responses: a request as a body, an answer as a reply."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final

from asyncbench.providers.endpoints import Quirks
from asyncbench.providers.error_bodies import holds_error
from asyncbench.providers.error_kinds import CUT_STREAM, bad_reply, stream_error
from asyncbench.providers.finish_words import (
    BLOCKED,
    OF_BLOCKED_PROMPTS,
    blocked_prompt,
    finish_in,
    finish_word,
    judged,
)
from asyncbench.providers.usage import (
    believed,
    believed_cost_usd,
    latest,
    openai_usage,
    raw_usage,
    responses_usage,
)
from asyncbench.providers.wire import (
    Json,
    Response,
    count_in,
    finished,
    items,
    mapping_in,
    nest,
    text,
    text_and_thinking,
)
from asyncbench.records import Finish, Model, Reply, Request, finish_of
from asyncbench.suites.requests import merged_params

Piece = tuple[str, str, str]  # what a choice, or a piece of it, says, thinks and refuses
_THINKING: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_BESIDE: Final = ("model", "system_fingerprint", "service_tier", "provider", *OF_BLOCKED_PROMPTS)


def first_choice(payload: Json, response: Response) -> dict[str, object]:
    """Return the first choice of a body, an empty one where there is none.

    Raises:
        ProviderError: what its error means when it failed on its own (OpenRouter).
    """
    choices = payload.get("choices")
    choice = mapping_in(choices[0]) if isinstance(choices, list) and choices else {}
    if choice.get("error"):
        raise stream_error({"error": choice["error"]}, response)
    return choice


def finish_of_choice(choice: Json, payload: Json, response: Response) -> object:
    """Return how a choice ended, as it is written; `BLOCKED`, and a note, where the prompt was blocked."""
    if (blocked := blocked_prompt(payload)) and not finish_word(choice.get("finish_reason")):
        response.notes.append(f"the prompt was blocked: {blocked}")
        return BLOCKED
    return finish_in(choice)


def ended_early(finish: object) -> bool:
    """Return whether a reply may hold no text at all: it was cut or blocked before any, or it broke."""
    return finish_of(finish_word(finish)) not in (None, Finish.ENDED)


def reply_of(
    payload: Json, response: Response, finish: object, *, piece: Piece, counted: bool = True
) -> Reply:
    """Return the reply: what was read of the choice, and what stands beside it; `counted` as for `believed`.

    Raises:
        ProviderError: the finish reason is that of a generation that broke.
    """
    used = raw_usage(payload)
    usage = believed(openai_usage(used), response.notes, *piece, counted=counted) if used else None
    answer, thinking, refusal = piece
    return Reply(
        text=answer or refusal,
        reasoning=thinking or None,
        finish_reason=judged(finish, response, answer=answer, refusal=refusal),
        model_served=text(payload.get("model")),
        usage=usage,
        raw_usage=used,
        request_id=response.request_id,
        fingerprint=text(payload.get("system_fingerprint")),
        upstream=text(payload.get("provider")),
        service_tier=text(payload.get("service_tier")) or response.service_tier,
        vendor_cost_usd=believed_cost_usd(used, usage) if used else None,
        http_status=response.status,
    )


class Chunks:
    """A choice that arrives in chunks.

    Usage comes in a chunk of its own, beside a choice, with the finish, in each chunk anew, or never: the
    last that was told counts. Complete is what has a finish reason; `[DONE]` is missing at some servers.
    """

    def __init__(self, response: Response, read: Callable[[Mapping[str, object]], Piece]) -> None:
        self._response = response
        self._read = read  # the choice of a chunk → what it brings
        self._fields: dict[str, object] = {}
        self._answer: list[str] = []
        self._thought: list[str] = []
        self._refused: list[str] = []
        self._finish: object = None
        self._complete = False  # the stream said so
        self._counted = False  # the account came after, or with, the last text

    @property
    def ended(self) -> bool:
        return False

    @property
    def answers(self) -> bool:
        return bool(self._answer or self._refused)

    def feed(self, event: Json) -> int:
        if holds_error(event):
            raise stream_error(event, self._response)
        if error := mapping_in(event.get("x_groq")).get("error"):
            raise stream_error({"error": error}, self._response)
        for name in _BESIDE:
            if value := event.get(name):
                self._fields[name] = value
        if used := raw_usage(event):
            self._fields["usage"] = latest(raw_usage(self._fields), used, openai_usage)
        choice = first_choice(event, self._response)
        if choice.get("index"):
            return 0  # another answer to the same question: only the first is asked for
        if finish_word(finish := finish_in(choice)):
            self._finish = finish
        brought = self._read(choice)
        for piece, pieces in zip(brought, (self._answer, self._thought, self._refused), strict=True):
            if piece:
                pieces.append(piece)
        length = sum(map(len, brought))
        self._counted = bool(used) or (self._counted and not length)
        return length

    def end(self) -> None:
        self._complete = True

    def complete(self) -> Reply:
        finish = finish_of_choice({"finish_reason": self._finish}, self._fields, self._response)
        whole = self._complete and bool(self._answer or self._thought or self._refused)
        if not finish_word(finish) and not whole:
            raise bad_reply(self._response, CUT_STREAM)
        return reply_of(
            self._fields,
            self._response,
            finish,
            piece=("".join(self._answer), "".join(self._thought), "".join(self._refused)),
            counted=self._counted,
        )


class ChatWire:
    """/chat/completions, as OpenAI and many others speak it."""

    path = "chat/completions"

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks

    def body(self, request: Request) -> dict[str, object]:
        model = request.trial.model
        system = [{"role": "system", "content": request.system}] if request.system is not None else []
        # How hard a model is to think: both may stand in one object, OpenRouter's `reasoning`.
        thinking = nest(self._quirks.effort, model.effort)
        if tokens := nest(self._quirks.thinking, model.thinking_tokens):
            thinking = merged_params(thinking, tokens)
        body = {
            "model": model.model_id,
            "messages": system + [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "temperature": model.temperature,
            "top_p": model.top_p,
            self._quirks.max_tokens: model.max_tokens,
            **nest(self._quirks.seed, model.seed),
            **thinking,
            **streaming(model, self._quirks),
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        choice = first_choice(payload, response)
        message, finish = choice.get("message"), finish_of_choice(choice, payload, response)
        if not isinstance(message, dict) and not ended_early(finish):
            raise bad_reply(response, "it holds no choice with a message")
        return reply_of(payload, response, finish, piece=_piece(mapping_in(message)))

    def stream(self, response: Response) -> Chunks:
        # Some gateways send a whole message as the one chunk.
        return Chunks(response, lambda choice: _piece(mapping_in(choice.get("delta", choice.get("message")))))


def streaming(model: Model, quirks: Quirks) -> dict[str, object]:
    """Return the fields that ask for a stream of chunks, with the usage in it."""
    if not model.stream:
        return {}
    usage = {"stream_options": {"include_usage": True}} if quirks.usage_in_streams == "ask" else {}
    return {"stream": True, **usage}


def _piece(message: Mapping[str, object]) -> Piece:
    """Return the words, thoughts and refusal of a message, or of a piece of one.

    Thinking stands in `reasoning_content` (DeepSeek), in `reasoning` (vLLM, Groq, OpenRouter), in a field of
    some gateway, or among the parts of the content (Mistral).
    """
    answer, of_content = text_and_thinking(message.get("content"))
    thinking = next(filter(None, (text(message.get(name)) for name in _THINKING)), of_content)
    return answer, thinking or "", text(message.get("refusal")) or ""


class CompletionsWire:
    """/completions: the older of OpenAI's formats, which self-hosted servers still speak."""

    path = "completions"

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks

    def body(self, request: Request) -> dict[str, object]:
        """Return the body of a request; see `Wire`.

        The prompt is the question alone. A system prompt and earlier turns stand before it in their order,
        each on lines of its own, with nothing that tells who said them.
        """
        model = request.trial.model
        system = [] if request.system is None else [request.system]
        body = {
            "model": model.model_id,
            "prompt": "\n".join([*system, *(turn.content for turn in request.messages)]),
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_tokens": model.max_tokens,  # the format has no newer name for it
            **nest(self._quirks.seed, model.seed),
            **streaming(model, self._quirks),
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        choice = first_choice(payload, response)
        finish = finish_of_choice(choice, payload, response)
        if not isinstance(choice.get("text"), str) and not ended_early(finish):
            raise bad_reply(response, "it holds no choice with a text")
        return reply_of(payload, response, finish, piece=(text(choice.get("text")) or "", "", ""))

    def stream(self, response: Response) -> Chunks:
        return Chunks(response, lambda choice: (text(choice.get("text")) or "", "", ""))


# ── Responses ────────────────────────────────────────────────────────────────────────────────

_COMMENTARY: Final = "commentary"  # the phase of a message on the way to the answer
_THOUGHT: Final = ("reasoning_text", "summary_text", _COMMENTARY)
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
    "response.cancelled": "cancelled",
}


class ResponsesWire:
    """/responses: the only door to some of OpenAI's newest models.

    It has one way for all that is asked here. Nothing is injected: the vendor stores what it answers unless
    `params` say `store: false`.
    """

    path = "responses"

    def body(self, request: Request) -> dict[str, object]:
        model = request.trial.model
        body = {
            "model": model.model_id,
            "input": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "instructions": request.system,
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_output_tokens": model.max_tokens,
            **nest("reasoning.effort", model.effort),
            "stream": model.stream,  # said either way: left out, transformers serve streams all the same
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response) -> Reply:
        status = finish_word(payload.get("status"))
        if finish_of(status) is Finish.BROKEN:
            if payload.get("error"):
                raise stream_error({"error": payload["error"]}, response)
            raise bad_reply(response, f"its status is {status}")
        detail = mapping_in(payload.get("incomplete_details")).get("reason")
        reason = judged(None if detail == "other" else detail, response)  # the status says as much
        finish = reason if ended_early(reason) else status or reason
        if not isinstance(payload.get("output"), list) and not ended_early(finish):
            raise bad_reply(response, "it holds no output")
        used = raw_usage(payload)
        # A message, and each part of what was thought, is a paragraph: no number runs into the next one's.
        answer = "\n\n".join(map("".join, _parts(payload, "output_text")))
        refusal = "\n\n".join(map("".join, _parts(payload, "refusal")))
        reasoning = "\n\n".join(chain.from_iterable(_parts(payload, *_THOUGHT))) or None
        usage = believed(responses_usage(used), response.notes, answer, reasoning, refusal) if used else None
        return Reply(
            text=answer or refusal,
            reasoning=reasoning,
            finish_reason=judged(finish, response, answer=answer, refusal=refusal),
            model_served=text(payload.get("model")),
            usage=usage,
            raw_usage=used,
            request_id=response.request_id,
            upstream=text(payload.get("provider")),
            service_tier=text(payload.get("service_tier")),
            vendor_cost_usd=believed_cost_usd(used, usage) if used else None,
            http_status=response.status,
        )

    def stream(self, response: Response) -> "_ResponseEvents":
        return _ResponseEvents(self, response)


class _ResponseEvents:
    """A response that arrives event by event; the last one holds all of it, at most servers."""

    def __init__(self, wire: ResponsesWire, response: Response) -> None:
        self._wire = wire
        self._response = response
        self._parts: dict[tuple[str, int | None, int | None, int | None], list[str]] = {}  # see `_add`
        self._phases: dict[object, object] = {}  # of the items of the output, by their index
        self._last: dict[str, object] | None = None

    @property
    def ended(self) -> bool:
        return self._last is not None

    @property
    def answers(self) -> bool:
        return any(
            kind not in _THOUGHT and self._phases.get(item) != _COMMENTARY for kind, item, *_ in self._parts
        )

    def feed(self, event: Json) -> int:
        kind = event.get("type")
        part_kind = _DELTAS.get(kind)
        if part_kind is not None:
            return self._add(part_kind, event)
        if kind == "error" or holds_error(event):
            raise stream_error(event, self._response)
        if kind == "response.failed":
            raise stream_error(mapping_in(event.get("response")), self._response)
        if phase := mapping_in(event.get("item")).get("phase"):
            self._phases[count_in(event.get("output_index"))] = phase
        if kind in _ENDS:
            self._last = {"status": _ENDS[kind], **mapping_in(event.get("response"))}
        return 0

    def end(self) -> None:
        if self._last is None and self._parts:
            self._last = {}

    def complete(self) -> Reply:
        if self._last is None:
            raise bad_reply(self._response, CUT_STREAM)
        contents: dict[int | None, list[dict[str, str]]] = {}  # some servers leave the output out at the end
        for (kind, item, *_), pieces in self._parts.items():
            contents.setdefault(item, []).append({"type": kind, _field(kind): "".join(pieces)})
        assembled = [
            {"phase": self._phases.get(item), "content": content} for item, content in contents.items()
        ]
        output = items(self._last.get("output")) or assembled
        return self._wire.reply({**self._last, "output": output}, self._response)

    def _add(self, part_kind: str, event: Json) -> int:
        piece = text(event.get("delta"))
        if piece is None:
            return 0
        item, content, summary = (
            count_in(event.get(f"{name}_index")) for name in ("output", "content", "summary")
        )
        self._parts.setdefault((part_kind, item, content, summary), []).append(piece)
        return len(piece)


def _parts(payload: Json, *kinds: str) -> Iterator[list[str]]:
    """Yield the words of the parts of these kinds, of each item that has such; its summaries first.

    Text of a message on the way to the answer is of the kind `commentary`.
    """
    for item in map(mapping_in, items(payload.get("output"))):
        texts = list[str]()
        for block in map(mapping_in, [*items(item.get("summary")), *items(item.get("content"))]):
            kind = text(block.get("type")) or ""
            if item.get("phase") == _COMMENTARY and kind == "output_text":
                kind = _COMMENTARY
            if kind in kinds and (words := text(block.get(_field(kind)))):
                texts.append(words)
        if texts:
            yield texts


def _field(kind: str) -> str:
    return "refusal" if kind == "refusal" else "text"
