"""Parameters of a model: effort, the longest reply, tools that are billed apart, and what is refused.

Knows no SDK.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import orjson

from asyncbench.providers.endpoints import KnownEndpoint, Quirks, usable_endpoints
from asyncbench.providers.prices import is_router, vendors_own
from asyncbench.providers.wire import count_in, mapping_in, text
from asyncbench.records import BATCH, Condition, Model

# Objects of a body that hold an `effort`: OpenAI's Responses and OpenRouter, Anthropic.
_OBJECTS: Final = ("reasoning", "output_config")


def effort_asked(model: Model, params: Mapping[str, object] | None = None) -> str | None:
    """Return the effort that a request asks for, or None.

    Args:
        model: who is asked; its own `params` are merged into the body after `effort`, and win.
        params: those of a condition, merged last.
    """
    fields = {**model.params, **(params or {})}
    nested = (text(mapping_in(fields.get(name)).get("effort")) for name in _OBJECTS)
    return text(fields.get("reasoning_effort")) or next(filter(None, nested), model.effort)


# By wire format; of two names in one body the first counts.
LONGEST_REPLY: Final[Mapping[str, tuple[str, ...]]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "contents": ("maxOutputTokens",),
}
ANY_LONGEST_REPLY: Final = frozenset(name for names in LONGEST_REPLY.values() for name in names)


def longest_reply_of(model: Model, condition: Condition) -> int | None:
    """Return the most tokens that one answer may have, thinking included, or None without a limit.

    Where a body names it in two ways, which of them counts is the endpoint's choice: here it is the longer
    one.
    """
    params = _flat({**model.params, **condition.params})  # merged in last
    names = LONGEST_REPLY[model.api]
    in_params = [params[name] for name in names if name in params]
    ours = [] if model.max_tokens is None or (in_params and len(names) == 1) else [model.max_tokens]
    limits = [
        limit for limit in (*in_params, *ours) if isinstance(limit, int) and limit is not True and limit > 0
    ]
    # One that is no number of tokens may lift the others.
    return max(limits, default=None) if len(limits) == len(in_params) + len(ours) else None


def _flat(params: Mapping[str, object]) -> dict[str, object]:
    """Return parameters with those that contents have in an object of their own."""
    return {**mapping_in(params.get("generationConfig")), **params}


@lru_cache(maxsize=256)
def longest_stored(params: str, condition_params: str) -> int | None:
    """Return the longest reply that these two columns of `trials` tell; see `longest_reply_of`."""
    fields = _flat(
        mapping_in(orjson.loads(params))
        | mapping_in(mapping_in(orjson.loads(condition_params)).get("params"))
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
    "cachedContent": _STORED,
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
_HEADERS: Final = "stands beside `params`: set `headers` or `query`. Each value is the NAME of a variable"
_KEY: Final = "does not belong in `params`. Set `key_env` (the NAME of a variable) or `base_url` at the model"

# By the key of the body, or of an SDK: what would be paid for and thrown away, or not done.
_IGNORED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("n", "best_of", "num_return_sequences", "candidate_count", "candidateCount"), _ANSWERS),
    **dict.fromkeys(("logprobs", "top_logprobs", "prompt_logprobs", "responseLogprobs"), _SCORES),
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
    """Return a cost of a request that no count of tokens bounds, and why, or None."""
    params = {**model.params, **condition.params}
    for key, why in _BESIDES.items():
        if params.get(key) is not None:
            return f"`params: {key}` {why}"

    # The first tool that is not for the client to run.
    tools = params.get("tools")
    for tool in tools if isinstance(tools, list) else [] if tools is None else [tools]:
        fields = tool if isinstance(tool, Mapping) else {"type": tool}
        kind = fields.get("type") if {"type", "name"} & fields.keys() else next(iter(fields), "{}")
        if kind not in _CLIENT_TOOLS:
            return f"the tool {kind!r} in `params: tools` runs at the provider and is billed separately"
    return None


def ignored(params: Mapping[str, object]) -> str | None:
    """Return a parameter that nobody would follow or record, why, and the way out, or None.

    Values are not repeated: one may be a key.
    """
    fields = _flat(params)
    for key, why in _IGNORED.items():
        value = fields.get(key)
        if value not in (None, False, [], {}) and not (why is _ANSWERS and value == 1):
            return f"`params: {key}` {why}"
    if (options := params.get("stream_options")) and not mapping_in(options).get("include_usage", True):
        return "`params: stream_options` has no `include_usage`, so no cost would be known. Remove it"
    return None


def bills_besides(model: Model) -> str | None:
    """Return why no count of tokens can bound the cost of a model, or None if one can.

    Only a vendor's models are known by their names: on a server of one's own a name says nothing of a bill.
    """
    vendors = usable_endpoints()
    if model.base_url is None or is_router(model):
        billed = _bills(vendors[model.provider])
    else:
        # Its address is one of a vendor's, by whatever path or region.
        billed, server = False, f".{urlsplit(model.base_url).hostname}"
        for vendor in filter(_bills, vendors.values()):
            host = urlsplit(vendor.base_url or _OF_SDKS.get(vendor.via, "")).hostname
            billed |= vendor.is_at(model.base_url) or (host is not None and server.endswith(f".{host}"))
    if not billed:
        return None
    base_id = model.model_id.split(":")[1] if model.model_id.startswith("ft:") else model.model_id
    for words, why in (*_UNASKED, *(_ROUTED if model.provider == "openrouter" else ())):
        if words.search(base_id):
            return f"`{model.model_id}` {why}"
    return None


def _bills(vendor: KnownEndpoint) -> bool:
    return (vendor.key_env, vendor.credentials) != (None, None)


# ── What a wire format, an endpoint or a model refuses, before any call; `params` are sent as given ──────


def model_complaint(model: Model, endpoint: KnownEndpoint) -> str | None:
    """Return why a model cannot be asked as the sweep wants it, and the way out, or None if it can."""
    if model.thinking is not None and model.thinking_tokens is not None:
        return "`thinking: adaptive` and `thinking_tokens` exclude each other. Remove one"
    complaint = claude_complaint if model.api == "messages" else openai_complaint
    return complaint(model) or wire_complaint(model, endpoint.quirks)


def batch_complaint(model: Model, endpoint: KnownEndpoint) -> str | None:
    """Return why a model cannot be asked in batches as wanted, and the way out, or None if it can."""
    if model.mode != BATCH:
        return None
    if not endpoint.batches:
        form = f" (of its own form: {endpoint.own_batches})" if endpoint.own_batches else ""
        gateway = ". If its server has batches of OpenAI's form, name it `http/…` with `base_url`"
        return (
            f"{model.provider} has no batch API that asyncbench speaks{form}. Set `mode: realtime` for this "
            "model, or name it at a provider whose batches are spoken: `asyncbench models` lists them"
            f"{'' if form else gateway}"
        )
    if model.api not in endpoint.batch.apis:
        apis = " or ".join(f"`api: {api}`" for api in endpoint.apis if api in endpoint.batch.apis)
        return f"batches of {model.provider} take no api {model.api!r}. Set {apis}, or `mode: realtime`"
    return None


# Keys of a model entry that a wire format cannot say, whoever speaks it.
_NO_WORDS_FOR: Final[Mapping[str, frozenset[str]]] = {
    "chat": frozenset({"thinking", "prompt_cache"}),
    "completions": frozenset({"effort", "thinking_tokens", "thinking", "prompt_cache"}),
    "responses": frozenset({"seed", "thinking_tokens", "thinking", "prompt_cache"}),
    "messages": frozenset({"seed"}),
    "contents": frozenset({"thinking", "prompt_cache"}),
}


_BUDGETS_ALONE: Final = re.compile(r"gemini-[12]\b")  # its page on thinking, 2026


def wire_complaint(model: Model, quirks: Quirks) -> str | None:
    """Return a complaint about parameters that a wire format or endpoint cannot take, and the way out.

    `params` are not looked at: they are sent as given.
    """
    for name in sorted(_NO_WORDS_FOR[model.api]):
        if getattr(model, name) is not None:
            return f"api {model.api!r} has no {name}. Remove `{name}`"
    if model.api == "contents" and model.effort and _BUDGETS_ALONE.match(model.model_id):
        return f"{model.model_id} accepts no effort, like every Gemini before 3. Set `thinking_tokens`"

    # What an endpoint rejects, and what it has no word for.
    words = {
        ("seed", ("chat", "completions")): quirks.seed,
        ("effort", ("chat", "responses")): quirks.effort,
        ("thinking_tokens", ("chat",)): quirks.thinking,
    }
    wordless = {name for (name, apis), word in words.items() if model.api in apis and word is None}
    for name in sorted({*quirks.rejects, *wordless}):
        if getattr(model, name, None) is not None:
            return (
                f"{model.provider} does not accept `{name}`. Remove it, or set its own parameter in `params`"
            )
    budget, max_tokens = model.thinking_tokens, model.max_tokens
    # Told of by Anthropic; that the others count thinking within the longest reply too is not verified.
    if budget is not None and max_tokens is not None and budget >= max_tokens:
        return (
            f"{model.model_id}: max_tokens ({max_tokens:,}) includes thinking_tokens ({budget:,}), so it "
            "must be more. Raise `max_tokens` or lower `thinking_tokens`"
        )
    # Gemini and OpenRouter know one or the other in a request; of the latter not verified.
    either = model.api == "contents" or (model.api == "chat" and quirks.thinking)
    if either and None not in (budget, model.effort):
        return f"{model.provider} accepts `effort` or `thinking_tokens`, not both. Remove one"
    return None


# Models that reason refuse temperature (but for 1, the default) and top_p; from 5.1 on most take them with
# effort none. developers.openai.com (latest-model guides) and a table of what each model was seen to take
# (community.openai.com 1371738, January 2026).
_NEVER_SAMPLES: Final = re.compile(
    r"o\d(-.*)?"
    r"|gpt-5(-(mini|nano|pro|codex)(-.*)?|-\d.*)?"  # not gpt-5-chat-latest, which does not reason
    r"|gpt-5\.\d-(chat|codex|pro)(-.*)?"
)
_SAMPLES_WITHOUT_EFFORT: Final = re.compile(r"gpt-(5\.\d|[6-9](\.\d+)?)(-.*)?")


def openai_complaint(model: Model) -> str | None:
    """Return why requests to `model` cannot be made as the sweep wants them, and the way out.

    Of `params` only an effort counts: the rest is sent as given. Models of the simulator, which plays any,
    are not looked at.
    """
    if model.simulated or (model.temperature in (None, 1) and model.top_p is None):
        return None
    # gpt-5 of openai/gpt-5 (a router's), gpt-5-mini of ft:gpt-5-mini:us::id
    name = model.model_id.rsplit("/", 1)[-1].removeprefix("ft:").partition(":")[0]
    if _NEVER_SAMPLES.fullmatch(name):
        return f"{model.model_id} always reasons and accepts no temperature or top_p. Remove them"
    if effort_asked(model) != "none" and _SAMPLES_WITHOUT_EFFORT.fullmatch(name):
        return (
            f"{model.model_id} accepts temperature and top_p only if it does not reason. "
            "Remove them, or set `effort: none`"
        )
    return None


# Under the version of the API that the SDK sends (2026-10-21) nobody takes temperature and top_p; models
# up to Claude 4.6 take them under this one, newer ones never do (platform.claude.com, API versioning).
SAMPLING_VERSION: Final = "2023-06-01"
_SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})
_UP_TO_4_6: Final = re.compile(r"claude-([123]\b.*|[a-z]+-4(-[0-6])?)")

# A budget for thinking is refused from 4.7 on, and adaptive thinking is known from 4.6 on
# (platform.claude.com, extended and adaptive thinking, read in November 2026).
_UP_TO_4_5: Final = re.compile(r"claude-([123]\b.*|[a-z]+-4(-[0-5])?)")
LEAST_THINKING: Final = 1024  # tokens

# The longest reply, tokens. From each model's page under platform.claude.com/docs/en/models and from the
# comparison there (stored copies, read in November 2026), unless a row says otherwise. Unknown ones are
# left out.
_MAX_TOKENS: Final[Mapping[str, int]] = {
    "claude-fable-5-2": 128_000,
    "claude-fable-5-1": 128_000,
    "claude-fable-5": 128_000,
    "claude-mythos-5-2": 128_000,  # the model card on Amazon Bedrock, November 2026
    "claude-opus-5-5": 128_000,
    "claude-opus-5": 128_000,
    "claude-sonnet-5-5": 128_000,
    "claude-sonnet-5": 128_000,
    "claude-haiku-5-5": 128_000,
    "claude-opus-4-8": 128_000,
    "claude-opus-4-7": 128_000,  # not its own page: the release notes of @effect/ai-anthropic 4.0.0-beta.106
    "claude-opus-4-6": 128_000,
    "claude-sonnet-4-6": 128_000,
    "claude-opus-4-5": 64_000,
    "claude-sonnet-4-5": 64_000,
    "claude-haiku-4-5": 64_000,
    "oracle": 4_096,  # our simulator
    "noisy": 4_096,
}
# claude-opus-4-5-20251101 and claude-opus-4-5@20251101 are claude-opus-4-5; noisy-2 is noisy.
_SUFFIX: Final = re.compile(r"[-@]\d{8}$|(?<=^noisy)-.*$")


def default_max_tokens(model_id: str) -> int | None:
    """Return the longest reply the model can give, tokens; None where that is not known."""
    return _MAX_TOKENS.get(_family(model_id))


def needs_sampling_version(body: Mapping[str, object]) -> bool:
    """Tell whether a request sets what only `SAMPLING_VERSION` lets the model take."""
    return not _SAMPLING.isdisjoint(body) and _takes_sampling(str(body.get("model")))


def claude_complaint(model: Model) -> str | None:
    """Return why requests to `model` cannot be made as the sweep wants them, and the way out.

    `params` are not looked at: they are sent as given.
    """
    if model.seed is not None:
        return f"{model.model_id} accepts no seed. Remove `seed`"
    if not _takes_sampling(model.model_id) and _samples(model):
        return (
            f"{model.model_id} accepts no temperature or top_p, like every Claude after 4.6. Remove them, "
            "or choose an older model"
        )
    if default_max_tokens(model.model_id) is None and model.max_tokens is None:
        return f"the longest reply of {model.model_id} is unknown. Set `max_tokens`"

    budget, family = model.thinking_tokens, _family(model.model_id)
    if budget is not None and budget < LEAST_THINKING:
        return f"{model.model_id}: raise `thinking_tokens` from {budget:,} to at least {LEAST_THINKING:,}"
    if not family.startswith("claude-"):
        return None  # models of other vendors behind this wire format think in ways of their own
    if budget is not None and not _UP_TO_4_6.fullmatch(family):
        return f"{model.model_id} accepts no thinking_tokens, as of Claude 4.7. Set `thinking: adaptive`"
    if model.thinking is not None and _UP_TO_4_5.fullmatch(family):
        return (
            f"{model.model_id} has no adaptive thinking, like every Claude before 4.6. Set `thinking_tokens`"
        )
    if _samples(model) and (budget, model.thinking) != (None, None):
        return f"{model.model_id} accepts no temperature or top_p while it thinks. Remove one or the other"
    return None


def _samples(model: Model) -> bool:
    return (model.temperature, model.top_p) != (None, None)


def _takes_sampling(model_id: str) -> bool:
    # Models of other vendors behind Anthropic's wire format take it as a matter of course.
    family = _family(model_id)
    return not family.startswith("claude-") or _UP_TO_4_6.fullmatch(family) is not None


def _family(model_id: str) -> str:
    return _SUFFIX.sub("", vendors_own(model_id))
