"""Parameters of a model: effort, the longest reply, and tools that are billed apart from tokens."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import orjson

from asyncbench.providers.endpoints import KnownEndpoint, usable_endpoints
from asyncbench.providers.loose_json import count_in, mapping_in, text
from asyncbench.providers.prices import is_router
from asyncbench.records import Condition, Model

# Objects of a body that hold an `effort`: OpenAI's Responses and OpenRouter, Anthropic.
_OBJECTS: Final = ("reasoning", "output_config")


def effort_asked(model: Model, params: Mapping[str, object] | None = None) -> str | None:
    """Return the effort that a request asks for; None: it asks for none.

    Args:
        model: who is asked; its own `params` are merged into the body after `effort`, and win.
        params: those of a condition, merged last.
    """
    fields = {**model.params, **(params or {})}
    within = (text(mapping_in(fields.get(name)).get("effort")) for name in _OBJECTS)
    return text(fields.get("reasoning_effort")) or next(filter(None, within), model.effort)


# By wire format; of two names in one body the first counts.
LONGEST_REPLY: Final[Mapping[str, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}
ANY_LONGEST_REPLY: Final = frozenset(name for names in LONGEST_REPLY.values() for name in names)


def longest_reply_of(model: Model, condition: Condition) -> int | None:
    """Return the most tokens that one answer may have, thinking included; None: nothing limits it.

    Where a body names it in two ways, which of them counts is the endpoint's choice: here it is the longer
    one.
    """
    params = {**model.params, **condition.params}  # merged in last
    names = LONGEST_REPLY[model.api]
    in_params = [params[name] for name in names if name in params]
    ours = [] if model.max_tokens is None or (in_params and len(names) == 1) else [model.max_tokens]
    limits = [
        limit for limit in (*in_params, *ours) if isinstance(limit, int) and limit is not True and limit > 0
    ]
    # One that is no number of tokens may lift the others.
    return max(limits, default=None) if len(limits) == len(in_params) + len(ours) else None


@lru_cache(maxsize=256)
def longest_stored(params: str, condition_params: str) -> int | None:
    """Return the longest reply that these two columns of `trials` tell; see `longest_reply_of`."""
    fields = mapping_in(orjson.loads(params)) | mapping_in(
        mapping_in(orjson.loads(condition_params)).get("params")
    )
    counts = [count for name in ANY_LONGEST_REPLY if (count := count_in(fields.get(name)))]
    return count_in(fields.get("max_output_tokens")) or max(counts, default=None)


_SEARCH: Final = "searches the web; both the search and the text it finds are billed"
_STORED: Final = "adds text stored at the provider to the input, of unknown length"
_OTHERS: Final = "may use another model, at another price"
_SOUND: Final = "uses sound or images, which have their own prices"
_EXTRAS: Final = "may hold options that cost extra"

# By the key of the body. Function tools are none: the client would run them, and their JSON is counted.
_BESIDES: Final[Mapping[str, str]] = {
    "web_search_options": _SEARCH,
    "search_parameters": _SEARCH,  # xAI
    "enable_search": _SEARCH,  # Qwen
    "mcp_servers": "adds the replies of other servers to the input, of unknown length",
    "container": "uses a machine of the provider, which is billed separately",
    "previous_response_id": _STORED,
    "conversation": _STORED,
    "context_management": "makes more calls of the model, which are billed too",
    "prediction": "bills wrong predictions as output, whatever `max_tokens` says",
    "plugins": "uses plugins, which are billed separately",
    "preset": _EXTRAS,  # OpenRouter: settings of the account's, plugins and other models among them
    "data_sources": "adds the text it finds to the input, of unknown length",  # Azure
    "models": _OTHERS,
    "route": _OTHERS,
    "fallbacks": _OTHERS,
    "modalities": _SOUND,
    "audio": _SOUND,
    "extra_body": _EXTRAS,
    "google": _EXTRAS,
}
_ANSWERS: Final = "asks for several answers, and asyncbench keeps only one. Remove it, and set `repeats`"
_SCORES: Final = "asks for probabilities or tokens, which asyncbench does not keep. Remove it"
_LATER: Final = "delays the answer, and asyncbench does not fetch it later. Remove it"
_HEADERS: Final = "is not sent: asyncbench adds no headers or queries. Remove it, or let a proxy add them"
_KEY: Final = "does not belong in `params`. Set `key_env` (the NAME of a variable) or `base_url` at the model"

# By the key of the body, or of an SDK: what would be paid for and thrown away, or not done.
_IGNORED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("n", "best_of", "num_return_sequences", "candidate_count", "candidateCount"), _ANSWERS),
    **dict.fromkeys(("logprobs", "top_logprobs", "prompt_logprobs"), _SCORES),
    **dict.fromkeys(("return_token_ids", "return_tokens_as_token_ids"), _SCORES),
    "include": "adds parts to a reply that asyncbench does not keep. Remove it",
    "echo": "repeats the question in the reply, and it would be graded too. Remove it",
    "background": _LATER,
    "deferred": _LATER,  # xAI
    "audio": "asks for sound, which asyncbench does not keep. Remove it",
    **dict.fromkeys(("extra_headers", "extra_query", "default_headers", "default_query"), _HEADERS),
    **dict.fromkeys(("api_key", "base_url", "api_base"), _KEY),
    "timeout": "has no effect on a server. Set `timeouts: {total: …}` at the model",
    "max_retries": "has no effect on a server. Set `retry: {attempts: …}` at the model",
}
# Where an SDK asks of itself, by adapter; the table of endpoints leaves it to them.
_OF_SDKS: Final[Mapping[str, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
_CLIENT_TOOLS: Final = frozenset(
    {None, "function", "custom"}
)  # types of tools that nobody runs at the vendor's


def _words(*patterns: str) -> re.Pattern[str]:
    """Match any of some words as a whole in a model's id."""
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(patterns)})(?![a-z0-9])", re.IGNORECASE)


# Models that do it unasked, by their ids; a test holds these words to all the models of the price table.
_UNASKED: Final = (
    (_words("search-(preview|api)", "(pro|relace)-search", "deep-research", "sonar", "compound"), _SEARCH),
    (_words("image", "nano-banana", "imagen", "gemini-omni", "veo"), _SOUND),
    (_words("audio", "tts", "live", "realtime", "transcribe", "voice", "lyria"), _SOUND),
    (_words("multi-agent"), "also asks other models, which are billed too"),
)
# At OpenRouter: the end of an id, settings of the account's in it, and routers that choose the model.
_ROUTED: Final = (
    (re.compile(r":online$"), _SEARCH),
    (re.compile(r"@preset/"), _EXTRAS),
    (re.compile(r"^(openrouter/)?auto(-\w+)?$|^openrouter/"), _OTHERS),
)


def billed_besides(model: Model, condition: Condition) -> str | None:
    """Return what of a request no count of its tokens bounds, and why; None: there is nothing of it."""
    params = {**model.params, **condition.params}
    for key, why in _BESIDES.items():
        if params.get(key) is not None:
            return f"`params: {key}` {why}"
    return _tool(params.get("tools"))


def ignored(params: Mapping[str, object]) -> str | None:
    """Return which parameter asks for what nobody would do or keep, why, and the way out; None: all is kept.

    Values are not repeated: one may be a key.
    """
    for key, why in _IGNORED.items():
        value = params.get(key)
        if value not in (None, False, [], {}) and not (why is _ANSWERS and value == 1):
            return f"`params: {key}` {why}"
    if (options := params.get("stream_options")) and not mapping_in(options).get("include_usage", True):
        return "`params: stream_options` has no `include_usage`, so no cost would be known. Remove it"
    return None


def bills_besides(model: Model) -> str | None:
    """Return why no count of tokens bounds what a model costs, whatever it is asked; None: one may.

    Only a vendor's models are known by their names: on a server of one's own a name says nothing of a bill.
    """
    known = usable_endpoints()
    if model.base_url is None or is_router(model):
        billed = known[model.provider].key_env is not None
    else:
        billed = any(
            _is_at(model.base_url, vendor) for vendor in known.values() if vendor.key_env is not None
        )
    if not billed:
        return None
    named = model.model_id.split(":")[1] if model.model_id.startswith("ft:") else model.model_id
    for words, why in (*_UNASKED, *(_ROUTED if model.provider == "openrouter" else ())):
        if words.search(named):
            return f"`{model.model_id}` {why}"
    return None


def _is_at(address: str, vendor: KnownEndpoint) -> bool:
    """Return whether an address is one of a vendor's, by whatever path or region."""
    own = urlsplit(vendor.base_url or _OF_SDKS.get(vendor.via, "")).hostname
    return vendor.is_at(address) or (own is not None and f".{urlsplit(address).hostname}".endswith(f".{own}"))


def _tool(tools: object) -> str | None:
    """Return the first tool that is not for the client to run."""
    for tool in tools if isinstance(tools, list) else [] if tools is None else [tools]:
        fields = tool if isinstance(tool, Mapping) else {"type": tool}
        kind = fields.get("type") if {"type", "name"} & fields.keys() else next(iter(fields), "{}")
        if kind not in _CLIENT_TOOLS:
            return f"the tool {kind!r} in `params: tools` runs at the provider and is billed separately"
    return None
