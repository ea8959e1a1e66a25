"""The content of a reply: plain text, or a list of parts some of which are thinking."""

from collections.abc import Iterable

from asyncbench.providers.loose_json import items, mapping_in, text
from asyncbench.records import REFUSALS


def text_and_thinking(content: object) -> tuple[str, str | None]:
    """Return what the model said, and what it thought before; parts of one kind are joined as they are."""
    if isinstance(content, str):
        return content, None
    parts = [mapping_in(part) for part in items(content)]
    thinking = "".join(_thinking(part.get("thinking")) for part in parts)
    return _joined(parts), thinking or None


def finish_of(reason: str | None, *, said: str, refused: str) -> str | None:
    """Return the provider's own word, or `refusal` where only a refusal in place of a text tells of it."""
    return "refusal" if refused and not said and reason not in REFUSALS else reason


def _thinking(thinking: object) -> str:
    # Text from Anthropic, again a list of parts from Mistral.
    return thinking if isinstance(thinking, str) else _joined(mapping_in(part) for part in items(thinking))


def _joined(parts: Iterable[dict[str, object]]) -> str:
    return "".join(text(part.get("text")) or "" for part in parts)
