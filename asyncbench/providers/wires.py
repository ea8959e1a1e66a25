"""The wire formats by their name in a sweep (`api`), and what each of them has no words for."""

from collections.abc import Callable, Mapping
from typing import Final

from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.openai.chat import ChatWire
from asyncbench.providers.openai.completions import CompletionsWire
from asyncbench.providers.openai.responses import ResponsesWire
from asyncbench.providers.quirks import Quirks
from asyncbench.providers.wire import Wire
from asyncbench.records import Model

WIRES: Final[Mapping[str, Callable[[Quirks], Wire]]] = {
    "chat": ChatWire,
    "completions": CompletionsWire,
    "responses": ResponsesWire,
    "messages": MessagesWire,
}

# Keys of a model entry that a wire format cannot say, whoever speaks it.
_NO_WORDS_FOR: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset({"thinking"}),
    "completions": frozenset({"effort", "thinking_tokens", "thinking"}),
    "responses": frozenset({"seed", "thinking_tokens", "thinking"}),
    "messages": frozenset({"seed"}),
}


def wire_complaint(model: Model, quirks: Quirks) -> str | None:
    """Return which of a model's parameters its wire format or its endpoint cannot take, and the way out.

    `params` are not looked at: they are sent as given.
    """
    for name in sorted(_NO_WORDS_FOR[model.api]):
        if getattr(model, name) is not None:
            return f"the wire format {model.api!r} has no {name}: remove `{name}`"
    for name in sorted({*quirks.rejects, *_unsayable(model.api, quirks)}):
        if getattr(model, name, None) is not None:
            return f"{model.provider} takes no {name}: remove it, or say it in `params` in its own words"
    return _complaint_of_budget(model, quirks)


def _complaint_of_budget(model: Model, quirks: Quirks) -> str | None:
    """Return why a budget for thinking cannot stand beside the other keys of a model."""
    budget, most = model.thinking_tokens, model.max_tokens
    # Told of by Anthropic; that the others count thinking within the longest reply too is not verified.
    if budget is not None and most is not None and budget >= most:
        return (
            f"{model.model_id}: thinking_tokens is {budget:,} and max_tokens {most:,}, of which thinking is "
            "a part: raise `max_tokens` or lower `thinking_tokens`"
        )
    # Gemini and OpenRouter know one or the other in a request; not verified.
    if model.api == "chat" and quirks.thinking and None not in (budget, model.effort):
        return (
            f"{model.provider} takes an effort or a budget for thinking, not both: remove `effort` or "
            "`thinking_tokens`"
        )
    return None


def _unsayable(api: str, quirks: Quirks) -> set[str]:
    """Return the keys that an endpoint has no word for in this format."""
    words = {
        ("seed", ("chat", "completions")): quirks.seed,
        ("effort", ("chat", "responses")): quirks.effort,
        ("thinking_tokens", ("chat",)): quirks.thinking,
    }
    return {name for (name, apis), word in words.items() if api in apis and word is None}
