"""Gemini's contents: a request as a body, a body or a stream of pieces of it as a reply."""

from collections.abc import Mapping
from typing import Final

from asyncbench.pricing import tier_word
from asyncbench.providers.error_bodies import holds_error
from asyncbench.providers.error_kinds import CUT_STREAM, bad_reply, stream_error
from asyncbench.providers.finish_words import (
    BLOCKED,
    OF_BLOCKED_PROMPTS,
    blocked_prompt,
    finish_word,
    judged,
)
from asyncbench.providers.usage import believed, contents_usage, latest
from asyncbench.providers.wire import Json, Response, finished, items, mapping_in, text
from asyncbench.records import Finish, Reply, Request, finish_of

_ROLES: Final = {"assistant": "model"}
_BESIDE: Final = ("modelVersion", "responseId", "usageMetadata", *OF_BLOCKED_PROMPTS)


class ContentsWire:
    """`generateContent`, and `streamGenerateContent`: the model is in the address, not in the body."""

    path = "v1beta/models"  # and then the model; the SDK writes the address

    def body(self, request: Request) -> dict[str, object]:
        """Return the body of a request; see `Wire`."""
        model = request.trial.model
        system = None if request.system is None else {"parts": [{"text": request.system}]}
        thinking = {"thinkingBudget": model.thinking_tokens, "thinkingLevel": model.effort}
        config = {
            "temperature": model.temperature,
            "topP": model.top_p,
            "seed": model.seed,
            "maxOutputTokens": model.max_tokens,
            "thinkingConfig": _drop_none(thinking) or None,
        }
        body = {
            "contents": [
                {"role": _ROLES.get(turn.role, turn.role), "parts": [{"text": turn.content}]}
                for turn in request.messages
            ],
            "systemInstruction": system,
            "generationConfig": _drop_none(config) or None,
        }
        return finished(body, model, request.trial.condition)

    def reply(self, payload: Json, response: Response, *, counted: bool = True) -> Reply:
        candidates = items(payload.get("candidates"))
        candidate = mapping_in(candidates[0]) if candidates else {}
        blocked = blocked_prompt(payload)
        if blocked is None and not candidate:
            raise bad_reply(response, "it holds no candidates")
        answer, thinking = _answer_and_thinking(candidate)
        used = mapping_in(payload.get("usageMetadata"))
        usage = None
        if used:
            usage = believed(contents_usage(used), response.notes, answer, thinking, counted=counted)
        # Gemini says in a header how a call was served, Vertex in its account.
        tier = response.service_tier or text(used.get("serviceTier")) or text(used.get("trafficType"))

        # The finish reason in the word that others have for it; what was blocked, and why, is noted.
        finish = finish_word(candidate.get("finishReason")) or blocked
        if blocked or finish_of(finish) is Finish.REFUSED:
            response.notes.append(f"{'the prompt' if blocked else 'the answer'} was blocked: {finish}")
            finish = BLOCKED
        else:
            finish = judged(finish, response)
            finish = None if finish is None else finish.lower()
        return Reply(
            text=answer,
            reasoning=thinking or None,
            finish_reason=finish,
            model_served=text(payload.get("modelVersion")),
            usage=usage,
            raw_usage=used or None,
            request_id=response.request_id,
            service_tier=tier_word(tier) if tier else None,
            http_status=response.status,
        )

    def stream(self, response: Response) -> "_Pieces":
        return _Pieces(self, response)


def _drop_none(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _answer_and_thinking(candidate: Json) -> tuple[str, str]:
    """Return the words of a candidate, and its thoughts before them."""
    texts: dict[bool, list[str]] = {False: [], True: []}
    for piece in map(mapping_in, items(mapping_in(candidate.get("content")).get("parts"))):
        texts[piece.get("thought") is True].append(text(piece.get("text")) or "")
    return "".join(texts[False]), "".join(texts[True])


class _Pieces:
    """A reply that arrives in pieces, each of them shaped as a whole one; what is told last counts."""

    def __init__(self, wire: ContentsWire, response: Response) -> None:
        self._wire, self._response = wire, response
        self._fields: dict[str, object] = {}
        self._candidate: dict[str, object] = {}
        self._parts: list[object] = []
        self._answers = False
        self._complete = False  # the stream said so
        self._counted = False  # the account came after, or with, the last text

    @property
    def ended(self) -> bool:
        return False  # usage may follow the finish reason

    @property
    def answers(self) -> bool:
        return self._answers

    def feed(self, event: Json) -> int:
        if holds_error(event):
            raise stream_error(event, self._response)
        fields = {name: event[name] for name in _BESIDE if event.get(name)}
        if used := mapping_in(fields.get("usageMetadata")):
            earlier = mapping_in(self._fields.get("usageMetadata")) or None
            fields["usageMetadata"] = latest(earlier, used, contents_usage)
        self._fields |= fields
        candidates = items(event.get("candidates"))
        candidate = mapping_in(candidates[0]) if candidates else {}
        answer, thinking = _answer_and_thinking(candidate)
        self._answers |= bool(answer)
        self._parts += items(mapping_in(candidate.get("content")).get("parts"))
        self._candidate |= _drop_none(
            {name: candidate.get(name) for name in ("finishReason", "finishMessage")}
        )
        length = len(answer) + len(thinking)
        self._counted = bool(used) or (self._counted and not length)
        return length

    def end(self) -> None:
        self._complete = bool(self._parts)

    def complete(self) -> Reply:
        ended = self._complete or finish_word(self._candidate.get("finishReason"))
        if not ended and not blocked_prompt(self._fields):
            raise bad_reply(self._response, CUT_STREAM)
        candidate = {**self._candidate, "content": {"parts": self._parts}}
        whole = {**self._fields, "candidates": [candidate]}
        return self._wire.reply(whole, self._response, counted=self._counted)
