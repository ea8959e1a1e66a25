"""How hard a model is asked to think: by the sweep's own key, or in the words of `params`."""

from collections.abc import Mapping
from typing import Final

from asyncbench.providers.loose_json import mapping_in, text
from asyncbench.records import Model

# Objects of a body that hold an `effort`: OpenAI's Responses and OpenRouter, Anthropic.
_OBJECTS: Final = ("reasoning", "output_config")


def effort_asked(model: Model, params: Mapping[str, object] | None = None) -> str | None:
    """Return the effort that a request asks for; None: it asks for none.

    Args:
        model: who is asked; its own `params` are merged into the body after `effort`, and win.
        params: those of a condition, merged last.
    """
    given = {**model.params, **(params or {})}
    within = (text(mapping_in(given.get(name)).get("effort")) for name in _OBJECTS)
    return text(given.get("reasoning_effort")) or next(filter(None, within), model.effort)
