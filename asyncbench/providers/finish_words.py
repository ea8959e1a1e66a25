"""The word by which a provider says how a reply ended: read as servers write it, and judged."""

from collections.abc import Mapping
from typing import Final

from asyncbench.errors import ErrorKind
from asyncbench.providers.error_kinds import bad_reply, stream_error
from asyncbench.providers.wire import Json, Response, items, mapping_in, text
from asyncbench.records import UNKNOWN_FINISH, Finish, documented_finish, finish_of, says_nothing

BLOCKED: Final = "content_filter"  # our word where a filter tells of itself in another way
# Broken generations that are no fault of the server: DeepSeek has no room, Google has shut the account.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "insufficient_system_resource": ErrorKind.OVERLOADED,
    "overloaded": ErrorKind.OVERLOADED,
    "pup_limited_disabled": ErrorKind.AUTH,
}
# Where Google, Azure, and who passes their words on, say why a prompt was blocked.
_FEEDBACKS: Final = ("promptFeedback", "prompt_feedback")
_REASONS: Final = ("blockReason", "block_reason")
_FILTERS: Final = ("prompt_filter_results", "prompt_annotations")
OF_BLOCKED_PROMPTS: Final = (*_FEEDBACKS, *_FILTERS)


def finish_word(value: object) -> str | None:
    """Return the word of a finish reason, or None for an empty one: `null`, `""` or `"null"`.

    SGLang and AI21 write an object, some a list of one; a number is a word of its own.
    """
    if isinstance(value, list):
        value = next(iter(value), None)
    if isinstance(value, dict):
        value = value.get("type") or value.get("reason")
    if type(value) in (int, float):
        value = str(value)
    word = text(value)
    return None if says_nothing(word) else word


def finish_in(choice: Json, name: str = "finish_reason") -> object:
    """Return the finish reason of a choice as it is written.

    A router keeps its server's word beside its own. That one is taken where its own tells only of an end.
    """
    word, native = choice.get(name), choice.get(f"native_{name}")
    if finish_word(native) is None or finish_of(finish_word(word)) is not Finish.ENDED:
        return word
    return word if finish_of(finish_word(native)) in (None, Finish.ENDED) and finish_word(word) else native


def judged(finish: object, response: Response, *, answer: str = "", refusal: str = "") -> str | None:
    """Return the word for how a reply ended, in the provider's spelling; an unknown one is noted.

    Args:
        finish: as the provider wrote it.
        response: to which it belongs.
        answer, refusal: what was said. Where only a refusal was, the word is `refusal`.

    Raises:
        ProviderError: the generation broke; it says itself why where the finish reason is an object (SGLang).
    """
    word = finish_word(finish)
    ended = finish_of(word)
    if ended is Finish.BROKEN:
        cause = mapping_in(finish)
        if message := text(cause.get("message")):
            error = {"message": message, "code": cause.get("status_code"), "type": cause.get("err_type")}
            raise stream_error({"error": error}, response)
        kind = _KINDS.get((word or "").lower(), ErrorKind.SERVER_ERROR)
        raise bad_reply(response, f"its finish reason is {word}", kind=kind)
    if word is not None and documented_finish(word) is None:
        written, meaning = word.replace(";", ","), "ignored" if ended is None else f"read as {ended.value}"
        response.notes.append(f"{UNKNOWN_FINISH} {written!r} was {meaning}")
    return "refusal" if refusal and not answer and ended is not Finish.REFUSED else word


def blocked_prompt(payload: Json) -> str | None:
    """Return why a prompt was blocked, where a body says so beside its choices, or None."""
    for feedback in (mapping_in(payload.get(name)) for name in _FEEDBACKS):
        if reason := next(filter(None, (text(feedback.get(name)) for name in _REASONS)), None):
            return reason
    for result in (mapping_in(item) for name in _FILTERS for item in items(payload.get(name))):
        for category, verdict in mapping_in(result.get("content_filter_results")).items():
            if mapping_in(verdict).get("filtered") is True:
                return category
    return None
