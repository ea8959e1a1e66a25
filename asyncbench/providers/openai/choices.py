"""What chat and plain completions share: a choice, whole or in chunks, and what stands beside it."""

from collections.abc import Callable, Mapping
from typing import Final

from asyncbench.errors import ErrorKind
from asyncbench.providers.content import finish_of
from asyncbench.providers.failures import CUT_STREAM, bad_reply, stream_error
from asyncbench.providers.loose_json import mapping_in, text
from asyncbench.providers.response import Response
from asyncbench.providers.usage import from_openai, raw_usage, told_cost_usd
from asyncbench.providers.wire import Json
from asyncbench.records import Reply

Piece = tuple[str, str, str]  # what a choice, or a piece of it, says, thinks and refuses
# Finish reasons of a generation that failed: DeepSeek's word; Mistral's and OpenRouter's.
_FAILED: Final[Mapping[object, ErrorKind]] = {
    "insufficient_system_resource": ErrorKind.OVERLOADED,
    "error": ErrorKind.SERVER_ERROR,
}
_BESIDE: Final = ("model", "system_fingerprint", "service_tier", "provider")


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


def reply_of(payload: Json, response: Response, *, piece: Piece, finish_reason: object) -> Reply:
    """Return the reply: what was read of the choice, and what stands beside it.

    Raises:
        ProviderError: the finish reason is that of a generation that failed.
    """
    reason = text(finish_reason)
    if reason in _FAILED:
        raise bad_reply(response, f"its finish reason is {reason}", kind=_FAILED[reason])
    used = raw_usage(payload)
    said, thought, refused = piece
    return Reply(
        text=said or refused,
        reasoning=thought or None,
        finish_reason=finish_of(reason, said=said, refused=refused),
        model_served=text(payload.get("model")),
        usage=from_openai(used) if used else None,
        raw_usage=used,
        request_id=response.request_id,
        fingerprint=text(payload.get("system_fingerprint")),
        upstream=text(payload.get("provider")),
        service_tier=text(payload.get("service_tier")),
        vendor_cost_usd=told_cost_usd(used) if used else None,
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
        self._beside: dict[str, object] = {}
        self._said: list[str] = []
        self._thought: list[str] = []
        self._refused: list[str] = []
        self._finish_reason: str | None = None

    @property
    def ended(self) -> bool:
        """Never: a usage may follow the finish, and `[DONE]` is no event; see `Assembly`."""
        return False

    def feed(self, event: Json) -> int:
        """Take in a chunk; see `Assembly`."""
        if event.get("error"):
            raise stream_error(event, self._response)
        self._note(event)
        choice = first_choice(event, self._response)
        if choice.get("index"):
            return 0  # another answer to the same question: only the first is asked for
        self._finish_reason = text(choice.get("finish_reason")) or self._finish_reason
        brought = self._read(choice)
        for piece, pieces in zip(brought, (self._said, self._thought, self._refused), strict=True):
            if piece:
                pieces.append(piece)
        return sum(map(len, brought))

    def complete(self) -> Reply:
        """Return the whole reply; see `Assembly`."""
        if self._finish_reason is None:
            raise bad_reply(self._response, CUT_STREAM)
        return reply_of(
            self._beside,
            self._response,
            piece=("".join(self._said), "".join(self._thought), "".join(self._refused)),
            finish_reason=self._finish_reason,
        )

    def _note(self, event: Json) -> None:
        for name in _BESIDE:
            if value := event.get(name):
                self._beside[name] = value
        if used := raw_usage(event):
            self._beside["usage"] = used
