"""The models of a sweep, with their parameters, limits and prices."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import quote

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from asyncbench.config.entry import (
    Dollars,
    Entry,
    Keys,
    Mode,
    Name,
    Number,
    Place,
    Streaming,
    Variable,
    WebAddress,
    drop_unset,
    params_from,
    quoted,
    read_entry,
    suggestion,
)
from asyncbench.config.matrix import COMPARED, VARIED, wrap_lists
from asyncbench.config.model_parts import (
    GatewayEntry,
    PriceEntry,
    gateway_mapping,
    gateway_of,
    price_from,
    price_mapping,
)
from asyncbench.config.questions import Problems, ProblemSource, source_mapping
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import KnownEndpoint, known_endpoints
from asyncbench.providers.functions import PYTHON, FunctionName, python_name
from asyncbench.providers.params import batch_complaint, default_max_tokens, model_complaint
from asyncbench.providers.wire import Api
from asyncbench.records import REALTIME, Limits, Model, RetryPolicy, Timeouts

# A reply of more tokens than this is read as it arrives: connections that are silent for long are dropped.
LONG_REPLY = 8192
# What DuckDB, Polars or Arrow read as a value where it names a folder; a test holds it against them.
_MISREAD: Final = re.compile(
    r"__hive_default_partition__|[-+]?(inf|infinity|nan)|epoch|true|false|0[xbo][0-9a-f_]+"
    r"|[-+]?[0-9][0-9._]*e[-+]?[0-9]+|[0-9]{4}-?[0-9]{2}-?[0-9]{2}[t ].*",
    re.IGNORECASE,
)


class LimitsEntry(Entry):
    """Rate limits of a model, under a provider in `limits` or at the model itself. The model's own win."""

    rpm: Number | None = Field(
        default=None,
        description="Requests per minute. Without it, asyncbench follows the provider's headers.",
    )
    tpm: Number | None = Field(
        default=None,
        description="Tokens per minute, input and output together. "
        "Without it, asyncbench follows the provider's headers.",
    )
    input_tpm: Number | None = Field(
        default=None,
        description="Input tokens per minute, for providers that limit them separately (Anthropic).",
    )
    output_tpm: Number | None = Field(
        default=None,
        description="Output tokens per minute, for providers that limit them separately (Anthropic).",
    )
    concurrency: PositiveInt | None = Field(
        default=None,
        description="The most calls in flight at once. Without it, asyncbench uses as many as the rate "
        "limits need (at most 2,000). Without rate limits, it adds calls as long as they bring more answers.",
    )
    fraction: Annotated[float, Field(gt=0, le=1, strict=False)] | None = Field(
        default=None,
        description="The share of all rate limits that this sweep may use. 0.5 leaves half of a shared key "
        "to others. Without it, the sweep uses all of them.",
    )
    group: Name | None = Field(
        default=None,
        description="Models with the same group share one rate limit. They must set the same limits.",
    )
    counts: Literal["used", "uncached", "demanded"] | None = Field(
        default=None,
        description="How the provider counts tokens against its limit. `used`: the tokens of the call. "
        "`uncached`: the same without cached input. `demanded`: max_tokens, as soon as the call starts. "
        "Without it, asyncbench uses what is known of the provider, else `used`.",
    )
    one_at_a_time: bool | None = Field(
        default=None,
        description="Whether the server holds one model at a time, as Ollama does where memory is small. "
        "Each model is then asked all of its trials before the next one, in the order of the sweep. So each "
        "is loaded once.",
    )


class ProviderEntry(GatewayEntry, LimitsEntry):
    """Rate limits for each model of a provider, one budget for all of them, and how they are asked."""

    budget_usd: Dollars | None = Field(
        default=None, description="The most that all models of this provider may cost together, in USD."
    )
    shared: bool = Field(
        default=False,
        description="Whether all models of this provider share these limits, as at many proxies. "
        "Models with another `base_url` or `key_env` share theirs.",
    )
    mode: Mode | None = Field(
        default=None,
        description="How models of this provider are asked, if they do not say so themselves. "
        "Without it, the `mode` of the sweep applies.",
    )


class RetryEntry(Entry):
    """How often and how long a failed call is tried again."""

    attempts: PositiveInt = Field(default=10, description="The most calls for one trial.")
    total_s: Number = Field(default=3600.0, description="The most seconds for all attempts of one trial.")
    unreachable_s: Number = Field(
        default=5.0,
        description="How many seconds a server that never answered may be unreachable before its models "
        "stop. 600 waits for one that is still loading.",
    )


class TimeoutsEntry(Entry):
    """Time limits of one call, in seconds."""

    connect: Number = Field(default=30.0, description="Seconds to connect to the server.")
    total: Number = Field(default=600.0, description="Seconds for the whole call.")
    first_byte: Number | None = Field(
        default=None,
        description="Seconds from the request to the first byte of the reply. "
        "Without it, only `total` applies.",
    )
    between_chunks: Number | None = Field(
        default=None,
        description="Seconds of silence within a streamed reply. Without it, only `total` applies.",
    )


class WhomEntry(Entry):
    """Whom to ask, with which parameters and at what price: the keys that stand before the limits."""

    model: Name = Field(
        description="provider/model id, such as `openai/gpt-5-mini`, or a list of them. "
        "`asyncbench models` lists the providers. `mine.py:answer` is the function `answer` in `mine.py`."
    )
    alias: Name | None = Field(
        default=None,
        description="The model's name in tables and folders. Without it: provider/model id. "
        "Values of lists are added to it.",
    )
    base_url: WebAddress | Annotated[list[WebAddress], Field(min_length=1)] | None = Field(
        default=None,
        description="The address of the server, or a list of addresses that serve the same model. A call "
        "goes where fewer are in flight, and an address that fails is left out until it answers. Without it: "
        "the provider's own. With it, the provider's published prices do not apply.",
    )
    key_env: Variable | None = Field(
        default=None,
        description="The NAME of the environment variable that holds the API key, never the key itself. "
        "Without it: the provider's usual one, such as OPENAI_API_KEY.",
    )
    api: Api | None = Field(
        default=None,
        description="The wire format. `completions` is plain text in and out, for base models. "
        "Without it: the provider's usual one.",
    )
    temperature: Annotated[NonNegativeFloat, Field(strict=False)] | None = Field(
        default=None, description="The sampling temperature. Not sent unless you set it."
    )
    top_p: Annotated[PositiveFloat, Field(strict=False, le=1)] | None = Field(
        default=None, description="Nucleus sampling, from above 0 to 1. Not sent unless you set it."
    )
    seed: int | None = Field(default=None, description="The sampling seed. Not sent unless you set it.")
    max_tokens: PositiveInt | None = Field(
        default=None,
        description="The longest reply, in tokens. A budget needs it. Not sent unless you set it; "
        "Anthropic requires one and gets the model's maximum.",
    )
    effort: Name | None = Field(
        default=None,
        description="How hard the model thinks, in the provider's words: none, low, high … "
        "Not sent unless you set it.",
    )
    thinking_tokens: PositiveInt | None = Field(
        default=None,
        description="The most tokens to think with. They count towards max_tokens. Only for providers with a "
        "thinking budget in tokens. Cannot be combined with `effort`, except at Anthropic.",
    )
    thinking: Literal["adaptive"] | None = Field(
        default=None, description="Only for Anthropic. `adaptive`: the model decides how much it thinks."
    )
    prompt_cache: Literal["5m", "1h"] | None = Field(
        default=None,
        description="Only for Anthropic, which caches nothing unasked: how long it keeps what all questions "
        "begin with (`system`, `context`, `shots`). A write costs 1.25 times the price of input (`1h`: "
        "twice), a read a tenth. Less than 512 to 4,096 tokens, by model, are not cached.",
    )
    stream: Streaming | None = Field(
        default=None,
        description="Whether replies are streamed. Without it, the `stream` of the sweep applies.",
    )
    system: str | None = Field(default=None, description="A system prompt. Not sent unless you set it.")
    params: Keys = Field(
        default_factory=dict,
        description="More parameters of the request, sent as you write them. A list stands for several "
        "entries: wrap one that is a single value (`[[a, b]]`). Lists by nature, such as `stop` and `tools`, "
        "are sent as they are.",
        json_schema_extra={"default": {}},
    )
    price: PriceEntry | None = Field(
        default=None,
        description="USD per million tokens. Without it: the published price, if one is known. "
        "A higher bill from the provider itself counts instead.",
    )
    budget_usd: Dollars | None = Field(
        default=None, description="The most that this model may cost, in USD, over all runs of the sweep."
    )
    retry: RetryEntry = Field(default_factory=RetryEntry, description="Limits on retries of one trial.")
    timeouts: TimeoutsEntry = Field(
        default_factory=TimeoutsEntry, description="How long one call may take, in seconds."
    )
    max_reply_mb: Annotated[float, Field(gt=0, le=10_000, strict=False)] | None = Field(
        default=None,
        description="The most megabytes that are read of one reply, after decompression. "
        "Without it: 8, or 64 bytes for each token of max_tokens if that is more.",
    )
    door: Literal["sdk"] | None = Field(
        default=None,
        description="`sdk`: the provider's SDK builds every call. Without it, the SDK builds the first call, "
        "and later ones send their bodies with the same address and headers, at a fraction of the CPU.",
    )
    mode: Mode | None = Field(
        default=None,
        description="How the model is asked. `realtime`: call by call. `batch`: in batches of the provider, "
        "which cost less and take up to a day. `auto`: in batches as far as possible. Without it, the `mode` "
        "of the provider under `limits` applies, or else that of the sweep.",
    )
    problems: Problems | None = Field(
        default=None, min_length=1, description="Problem sets for this model only, instead of the sweep's."
    )
    replay: Name | None = Field(
        default=None,
        description="Only for simulated models: a results folder, or a Parquet file of recorded answers, "
        "whose replies are given again. The model id is then a run or an alias in it.",
    )


def _allow_lists(schema: dict[str, Any]) -> None:
    """Let a key that varies be a list, too."""
    for name in (*VARIED, *COMPARED):
        rule = schema["properties"][name]
        kinds = [{key: rule.pop(key) for key in rule.keys() - {"default", "description"}}]
        kinds = kinds[0].get("anyOf", kinds)
        several = {"type": "array", "minItems": 1, "items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}
        schema["properties"][name] = {"anyOf": [*kinds, several], **rule}


class ModelEntry(GatewayEntry, LimitsEntry, WhomEntry):
    """A model to ask: `provider/model id` alone, or a mapping with these keys.

    A list of values stands for an entry for each, with the values in its alias: `gpt-5-mini effort=high`.
    Several lists stand for all combinations. They vary in the order in which they are written, the last one
    fastest.
    """

    model_config = ConfigDict(json_schema_extra=_allow_lists)
    elsewhere: ClassVar[Mapping[str, str]] = {
        "batch": "`batch` stands at the top of the sweep, for all models. Here you can set `mode`."
    }

    compare: list[Literal["rpm", "tpm", "input_tpm", "output_tpm", "concurrency", "fraction"]] = Field(
        default_factory=list,
        description="Limits to compare. They become part of each trial, so that the same problems are asked "
        "again at other limits. Entries of one model that compare limits are asked one after the other. A "
        "list of limits sets this key.",
        json_schema_extra={"default": []},
    )

    @property
    def address(self) -> str | None:
        """The address, or the first one of several."""
        return self.base_url[0] if isinstance(self.base_url, list) else self.base_url


def expand_model(raw: object) -> object:
    """Return the mapping that a name alone stands for."""
    return {"model": raw} if isinstance(raw, str) else raw


def known_provider(provider: str, *, place: Place) -> KnownEndpoint:
    """Return the known facts of a provider.

    Raises:
        ConfigError: nothing is.
    """
    if provider not in known_endpoints():
        raise ConfigError(
            f"{place}: unknown provider {quoted(provider)}. {suggestion(provider, known_endpoints())} "
            "For any other server with OpenAI's wire format, write http/MODEL and set its `base_url`."
        )
    return known_endpoints()[provider]


def model_from(
    entry: ModelEntry,
    limits: Mapping[str, ProviderEntry],
    *,
    stream: Streaming = "auto",
    mode: Mode = "realtime",
    place: Place,
    near: Path | None = None,
) -> Model:
    """Return a model as written in a sweep file; `limits` are those of the providers, by name.

    Args:
        stream, mode: what the sweep says for models that do not say themselves.
        near: the sweep file, beside which the file of a function is looked for.
    """
    provider, slash, model_id = entry.model.partition("/")
    function = FunctionName.parse(entry.model)
    if function is not None:
        function = function.located(near, place=str(place))
        provider, model_id = PYTHON, function.model_id
    elif provider == PYTHON:
        raise ConfigError(
            f"{place}: {quoted(entry.model)} names no function. Write its file and its name: mine.py:answer"
        )
    elif not slash or not model_id:
        raise ConfigError(
            f"{place}: {quoted(entry.model)} names no provider. Write one before it: openai/gpt-5"
        )
    endpoint = known_provider(provider, place=place)
    _check_endpoint(entry, endpoint, place=place)
    outer = _outer_limits(entry, provider, limits)
    model = Model(
        alias=entry.alias or (entry.model if function is None else function.function),
        provider=provider,
        model_id=model_id,
        file=None if function is None else function.file,
        api=entry.api or endpoint.api,
        simulated=endpoint.simulated,
        base_url=entry.address or endpoint.base_url,
        replicas=tuple(dict.fromkeys(entry.base_url))[1:] if isinstance(entry.base_url, list) else (),
        key_env=entry.key_env or endpoint.key_env,
        # Anthropic requires max_tokens: the model's longest reply is the one thing that is injected.
        max_tokens=entry.max_tokens
        or (default_max_tokens(model_id) if (entry.api or endpoint.api) == "messages" else None),
        params=params_from(entry.params, place=place),
        price=price_from(entry.price),
        limits=_limits(endpoint, outer, entry),
        retry=RetryPolicy(**entry.retry.model_dump()),
        timeouts=Timeouts(**entry.timeouts.model_dump()),
        mode=entry.mode
        or next((outer_entry.mode for outer_entry in reversed(outer.values()) if outer_entry.mode), mode),
        compared=tuple(dict.fromkeys(entry.compare)),
        **gateway_of((*outer.values(), entry), place=place),
        **{name: getattr(entry, name) for name in _COPIED},
    )
    check_alias(model.alias, place=str(place))
    if fault := batch_complaint(model, endpoint):
        raise ConfigError(f"{place / 'mode'}: {fault}")
    if None in model.compared_limits.values():
        unset = ", ".join(name for name, limit in model.compared_limits.items() if limit is None)
        raise ConfigError(f"{place / 'compare'}: {unset} is not set, so it cannot be compared. Set it")
    if fault := model_complaint(model, endpoint):
        raise ConfigError(f"{place}: {fault}")
    return replace(model, stream=streams(model, stream if entry.stream is None else entry.stream))


def streams(model: Model, setting: Streaming) -> bool:
    """Return whether answers are read as they arrive: `auto` does so where they take long."""
    if setting != "auto":
        return setting
    thinks = model.effort not in (None, "none") or (model.thinking_tokens, model.thinking) != (None, None)
    return thinks or (model.max_tokens or 0) > LONG_REPLY


def _price_of_past(raw: object, read: ValidatorFunctionWrapHandler) -> PriceEntry | None:
    """Return a price of a sweep of the past; None where it is none, as today's rules have it."""
    try:
        price: PriceEntry | None = read(raw)
    except ValidationError:
        return None
    return price


class PricedEntry(LimitsEntry):
    """What the price of a model depends on, and its limits; the rest of its entry is not looked at."""

    model_config = ConfigDict(extra="ignore")

    model: Name
    alias: Name | None = None
    base_url: str | None = None
    price: Annotated[PriceEntry | None, WrapValidator(_price_of_past)] = None


def priced_model(raw: object, *, place: Place) -> Model:
    """Return a model with whom it asks, where, at which price and within which limits. It cannot be asked."""
    entry = read_entry(PricedEntry, expand_model(raw), place=place)
    provider, _, model_id = entry.model.partition("/")
    return Model(
        alias=entry.alias or entry.model,
        provider=provider,
        model_id=model_id,
        api=known_provider(provider, place=place).api,
        base_url=entry.base_url,
        price=price_from(entry.price),
        limits=Limits(rpm=entry.rpm, tpm=entry.tpm, input_tpm=entry.input_tpm, output_tpm=entry.output_tpm),
    )


def _check_endpoint(entry: ModelEntry, endpoint: KnownEndpoint, *, place: Place) -> None:
    if entry.api not in (None, *endpoint.apis):
        spoken = " and ".join(map(repr, endpoint.apis))
        raise ConfigError(
            f"{place / 'api'}: the provider of {quoted(entry.model)} speaks api {spoken}, not {entry.api!r}"
        )
    if endpoint.via == PYTHON:
        if entry.base_url or entry.key_env:
            raise ConfigError(f"{place}: a Python function has no base_url and no key_env. Remove them")
        return
    provider, _, model_id = entry.model.partition("/")
    if not endpoint.serves(model_id):
        which = f"{endpoint.family} models alone" if endpoint.family else f"no {endpoint.without} models"
        raise ConfigError(
            f"{place / 'model'}: {provider} asks {which}, not {quoted(model_id)}. `asyncbench models "
            f"{provider}` lists those it asks"
        )
    if endpoint.base_url_form is not None and entry.address is None:
        raise ConfigError(
            f"{place}: {quoted(entry.model)} needs a `base_url`, such as {endpoint.base_url_form}"
        )
    if entry.replay is not None and (not endpoint.simulated or entry.address is not None):
        raise ConfigError(f"{place / 'replay'}: `replay` needs a simulated provider and no `base_url`")


def check_alias(alias: str, *, place: str) -> None:
    """Refuse an alias that readers of `model=<alias>` folders would take for a number, a date or NULL."""
    if _MISREAD.fullmatch(alias):
        raise ConfigError(
            f"{place}: alias {quoted(alias)} looks like a number, a date or NULL. The alias names a folder, "
            "and programs that read Parquet would misread it. Choose another one"
        )
    if (
        not any(sign.isalpha() for sign in alias)
        or not alias.isprintable()
        or len(quote(alias, safe="")) > 240
    ):
        raise ConfigError(
            f"{place}: alias {quoted(alias)} names a folder. Use at least one letter, no control "
            "characters, and at most 240 characters once percent-encoded"
        )


def is_address(name: str) -> bool:
    """Return whether an entry of `limits` is for a `base_url`, not for a provider."""
    return "://" in name


def _outer_limits(
    entry: "ModelEntry", provider: str, limits: Mapping[str, ProviderEntry]
) -> dict[str, ProviderEntry]:
    """Return the entries of `limits` that a model is under, by the account that may share them.

    That of its provider is first, that of its address second.
    """
    own_key = None if entry.key_env == known_endpoints()[provider].key_env else entry.key_env
    account = " ".join(filter(None, (provider, entry.address and entry.address.rstrip("/"), own_key)))
    outer = {account: limits[provider]} if provider in limits else {}
    return outer | {name: limit for name, limit in limits.items() if same_address(name, entry.address)}


def sharing(group: str, limits: Mapping[str, ProviderEntry]) -> str | None:
    """Return the entry of `limits` for a group's shared limit, or None if models name the group."""
    shared = (name for name, limit in limits.items() if limit.shared)
    return next((name for name in shared if f"{group} ".startswith(f"{name} ")), None)


def same_address(a: str, b: str | None) -> bool:
    """Return whether two addresses of servers are one."""
    return b is not None and a.rstrip("/") == b.rstrip("/")


def _limits(endpoint: KnownEndpoint, outer: dict[str, ProviderEntry], model: LimitsEntry) -> Limits:
    """Return limits: a model's own win over its address's, these over its provider's and its endpoint's."""
    values: dict[str, Any] = {"concurrency": endpoint.concurrency, "counts": endpoint.counts}
    for account, entry in (*outer.items(), ("", model)):
        if isinstance(entry, ProviderEntry) and entry.shared:
            values["group"] = account
        for name in LimitsEntry.model_fields:
            if (value := getattr(entry, name, None)) is not None:
                values[name] = value
    return Limits(**{name: value for name, value in values.items() if value is not None})


_COPIED = (  # from the entry to the record, unchanged
    "system",
    "temperature",
    "top_p",
    "seed",
    "effort",
    "thinking_tokens",
    "thinking",
    "prompt_cache",
    "budget_usd",
    "max_reply_mb",
    "replay",
    "door",
)
_AS_WRITTEN = ("alias", "base_url", "key_env", "api", "max_tokens", "stream", *_COPIED)


def model_mapping(
    model: Model, problems: Sequence[ProblemSource] | None, near: Path | None = None
) -> dict[str, object]:
    """Return the entry that `model_from` reads back; it holds the names of keys, never keys."""
    mapping = {
        "model": python_name(model) if model.provider == PYTHON else f"{model.provider}/{model.model_id}",
        **{name: getattr(model, name) for name in _AS_WRITTEN},
        "base_url": [model.base_url, *model.replicas] if model.replicas else model.base_url,
        **_entry_mapping(LimitsEntry, model.limits),
        **gateway_mapping(model),
        "params": wrap_lists(model.params),
        "price": price_mapping(model.price),
        "compare": list(model.compared),
        "mode": None if model.mode == REALTIME else model.mode,
        "retry": _entry_mapping(RetryEntry, model.retry),
        "timeouts": _entry_mapping(TimeoutsEntry, model.timeouts),
        "problems": [source_mapping(source, near) for source in problems or ()],
    }
    return drop_unset(mapping)


def _entry_mapping(kind: type[Entry], record: RetryPolicy | Timeouts | Limits) -> dict[str, object]:
    """Return the keys of an entry that a record sets."""
    return drop_unset({name: getattr(record, name) for name in kind.model_fields})
