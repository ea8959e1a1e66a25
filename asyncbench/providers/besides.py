"""What a request may ask for that costs money beside its tokens, or more tokens than its body tells."""

from collections.abc import Mapping
from typing import Final

from asyncbench.records import Condition, Model

_SEARCH: Final = "it searches the web, which is billed apart, and what is found is billed as input"
_STORED: Final = "what the vendor has stored is billed as input, and nobody here knows how much that is"
_OTHERS: Final = "it may be answered by another model, at another price"
_SOUND: Final = "sound and pictures have prices of their own"
_EXTRAS: Final = "what stands in it may be anything that costs"

# By the key of the body. Function tools are none: the asker would run them, and their JSON is counted.
_BESIDES: Final[Mapping[str, str]] = {
    "web_search_options": _SEARCH,
    "search_parameters": _SEARCH,  # xAI
    "enable_search": _SEARCH,  # Qwen
    "mcp_servers": "what other servers answer is billed as input",
    "container": "the vendor's machine is billed apart",
    "previous_response_id": _STORED,
    "conversation": _STORED,
    "context_management": "more calls of the model are made and billed on the way",
    "prediction": "what was predicted wrongly is billed as output, whatever `max_tokens` says",
    "plugins": "each is billed apart",
    "models": _OTHERS,
    "route": _OTHERS,
    "fallbacks": _OTHERS,
    "modalities": _SOUND,
    "audio": _SOUND,
    "extra_body": _EXTRAS,
    "google": _EXTRAS,
}
_OF_THE_ASKER: Final = frozenset(
    {None, "function", "custom"}
)  # types of tools that nobody runs at the vendor's
_SEARCHES: Final = ":online"  # the end of a model's id at OpenRouter


def billed_besides(model: Model, condition: Condition) -> str | None:
    """Return what of a request no count of its tokens bounds, and why; None: there is nothing of it."""
    params = {**model.params, **condition.params}
    for key, why in _BESIDES.items():
        if params.get(key) is not None:
            return f"`params: {key}`: {why}"
    if model.provider == "openrouter" and model.model_id.endswith(_SEARCHES):
        return f"`{model.model_id}`: {_SEARCH}"
    return _tool(params.get("tools"))


def _tool(tools: object) -> str | None:
    """Return the first tool that is not for the asker to run."""
    for tool in tools if isinstance(tools, list) else [] if tools is None else [tools]:
        said = tool if isinstance(tool, Mapping) else {"type": tool}
        kind = said.get("type") if {"type", "name"} & said.keys() else next(iter(said), "{}")
        if kind not in _OF_THE_ASKER:
            return f"`params: tools`: {kind!r} runs at the vendor's, and is billed beside `max_tokens`"
    return None
