"""The models of a sweep: whom to ask, with which parameters, how fast and at what price."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from reprlib import repr as shown
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from pydantic import ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from asyncbench.config.entry import (
    ENV_VARIABLE,
    Dollars,
    Entry,
    Keys,
    Name,
    Number,
    Streaming,
    params_from,
    read_entry,
)
from asyncbench.config.sources import ProblemSource, source_mapping
from asyncbench.errors import ConfigError
from asyncbench.providers import KnownEndpoint, default_max_tokens, known_endpoints, model_complaint
from asyncbench.records import Limits, Model, Price, RetryPolicy, Timeouts

# A reply of more tokens than this is read as it arrives: connections that are silent for long are dropped.
LONG_REPLY = 8192
# What DuckDB, Polars or Arrow read as a value where it names a folder; a test holds it against them.
_MISREAD: Final = re.compile(
    r"__hive_default_partition__|[-+]?(inf|infinity|nan)|epoch|true|false|0[xbo][0-9a-f_]+"
    r"|[-+]?[0-9][0-9._]*e[-+]?[0-9]+|[0-9]{4}-?[0-9]{2}-?[0-9]{2}[t ].*",
    re.IGNORECASE,
)
BASE_URL_PATTERN: Final = r"^https?://[^@\s?#]+$"


class LimitsEntry(Entry):
    rpm: Number | None = None
    tpm: Number | None = None
    input_tpm: Number | None = None
    output_tpm: Number | None = None
    concurrency: PositiveInt | None = None
    fraction: Annotated[float, Field(gt=0, le=1, strict=False)] | None = None
    group: Name | None = None
    counts: Literal["used", "uncached", "demanded"] | None = None


class ProviderEntry(LimitsEntry):
    """What a sweep file says of a provider: limits of each of its models, and a budget of all of them."""

    budget_usd: Dollars | None = None


class PriceEntry(Entry):
    input: Annotated[NonNegativeFloat, Field(strict=False)]
    output: Annotated[NonNegativeFloat, Field(strict=False)]
    cached_input: Annotated[NonNegativeFloat, Field(strict=False)] | None = None
    cache_write: Annotated[NonNegativeFloat, Field(strict=False)] | None = None


class RetryEntry(Entry):
    attempts: PositiveInt = 10
    total_s: Number = 3600.0


class TimeoutsEntry(Entry):
    connect: Number = 30.0
    total: Number = 600.0
    first_byte: Number | None = None
    between_chunks: Number | None = None


class ModelEntry(LimitsEntry):
    model: Name
    alias: Name | None = None
    base_url: Annotated[str, Field(pattern=BASE_URL_PATTERN)] | None = None
    key_env: Annotated[str, Field(pattern=ENV_VARIABLE)] | None = None
    api: Literal["chat", "completions", "responses", "messages"] | None = None
    temperature: Annotated[NonNegativeFloat, Field(strict=False)] | None = None
    top_p: Annotated[PositiveFloat, Field(strict=False, le=1)] | None = None
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    effort: Name | None = None
    thinking_tokens: PositiveInt | None = None
    thinking: Literal["adaptive"] | None = None
    stream: Streaming | None = None  # None: as the sweep says
    system: str | None = None
    params: Keys
    price: dict[str, object] | None = None
    budget_usd: Dollars | None = None
    retry: Keys
    timeouts: Keys
    max_reply_mb: Annotated[float, Field(gt=0, le=10_000, strict=False)] | None = None
    problems: Annotated[list[object], Field(min_length=1)] | None = None
    replay: Name | None = None  # a results folder or file of recorded answers that the simulator repeats


def limits_from(provider: str, given: object, *, place: str) -> ProviderEntry:
    """Return what a sweep file says of a provider's limits."""
    _known(provider, place=f"{place}, limits")
    return read_entry(ProviderEntry, given, place=f"{place}, limits.{provider}", level="limits")


def _known(provider: str, *, place: str) -> KnownEndpoint:
    if provider not in known_endpoints():
        raise ConfigError(
            f"{place}: unknown provider {provider!r}; known: {', '.join(known_endpoints())}. "
            "A server with OpenAI's wire format is reached as http/MODEL with its `base_url`."
        )
    return known_endpoints()[provider]


def model_from(
    given: Mapping[str, object],
    limits: Mapping[str, LimitsEntry],
    *,
    stream: Streaming = "auto",
    place: str,
) -> Model:
    """Return a model as written in a sweep file; `limits` are those of the providers, by name.

    Args:
        stream: what the sweep says for models that do not say themselves.
    """
    entry = read_entry(ModelEntry, given, place=place, level="model")
    provider, slash, model_id = entry.model.partition("/")
    if not slash or not model_id:
        raise ConfigError(f"{place}: {entry.model!r} does not name a provider; write provider/model")
    endpoint = _known(provider, place=place)
    _check_endpoint(entry, endpoint, place=place)
    model = Model(
        alias=entry.alias or entry.model,
        provider=provider,
        model_id=model_id,
        api=entry.api or endpoint.api,
        simulated=endpoint.simulated,
        base_url=entry.base_url or endpoint.base_url,
        key_env=entry.key_env or endpoint.key_env,
        # Anthropic requires max_tokens: the model's longest reply is the one thing that is injected.
        max_tokens=entry.max_tokens
        or (default_max_tokens(model_id) if endpoint.via == "anthropic" else None),
        params=params_from(entry.params, place=place),
        price=_price(entry.price, place),
        limits=_limits(endpoint, limits.get(provider), entry),
        retry=RetryPolicy(**_part(RetryEntry, entry.retry, place, "retry")),
        timeouts=Timeouts(**_part(TimeoutsEntry, entry.timeouts, place, "timeouts")),
        **{name: getattr(entry, name) for name in _TAKEN_OVER},
    )
    check_alias(model.alias, place=place)
    if fault := model_complaint(model, endpoint):
        raise ConfigError(f"{place}: {fault}")
    return replace(model, stream=_streams(model, stream if entry.stream is None else entry.stream))


def _streams(model: Model, said: Streaming) -> bool:
    """Return whether answers are read as they arrive: `auto` does so where they take long."""
    if said != "auto":
        return said
    thinks = model.effort not in (None, "none") or (model.thinking_tokens, model.thinking) != (None, None)
    return thinks or (model.max_tokens or 0) > LONG_REPLY


class PricedEntry(Entry):
    """What the price of a model depends on; the rest of its entry is not looked at."""

    model_config = ConfigDict(extra="ignore")

    model: Name
    alias: Name | None = None
    base_url: str | None = None
    price: dict[str, object] | None = None


def priced_model(given: Mapping[str, object], *, place: str) -> Model:
    """Return just enough of a model to price its calls: whom it asks, and where. It cannot be asked."""
    entry = read_entry(PricedEntry, given, place=place, level="priced")
    provider, _, model_id = entry.model.partition("/")
    return Model(
        alias=entry.alias or entry.model,
        provider=provider,
        model_id=model_id,
        api=_known(provider, place=place).api,
        base_url=entry.base_url,
        price=_price(entry.price, place),
    )


def _check_endpoint(entry: ModelEntry, endpoint: KnownEndpoint, *, place: str) -> None:
    if entry.api not in (None, *endpoint.apis):
        spoken = " and ".join(map(repr, endpoint.apis))
        raise ConfigError(f"{place}: {entry.model!r}: its provider speaks api {spoken}, not {entry.api!r}")
    if endpoint.base_url_form is not None and entry.base_url is None:
        raise ConfigError(f"{place}: {entry.model!r} needs a `base_url`, such as {endpoint.base_url_form}")
    if entry.replay is not None and (not endpoint.simulated or entry.base_url is not None):
        raise ConfigError(f"{place}: `replay` goes with a simulated provider and without a `base_url`")


def check_alias(alias: str, *, place: str) -> None:
    """Refuse an alias that readers of `model=<alias>` folders would take for a number, a date or NULL."""
    if _MISREAD.fullmatch(alias):
        raise ConfigError(
            f"{place}: alias {alias!r}: it names a folder, and readers of Parquet would take it for a "
            "number, a date or NULL; give another one"
        )
    if (
        not any(sign.isalpha() for sign in alias)
        or not alias.isprintable()
        or len(quote(alias, safe="")) > 240
    ):
        raise ConfigError(
            f"{place}: alias {shown(alias)}: give one with a letter in it, without control characters, and "
            "of at most 240 characters once percent-encoded: it names a folder"
        )


def _price(given: Mapping[str, object] | None, place: str) -> Price | None:
    return None if given is None else Price(**_part(PriceEntry, given, place, "price"))


def _part(kind: type[Entry], given: Mapping[str, object], place: str, name: str) -> dict[str, Any]:
    return read_entry(kind, given, place=f"{place}.{name}", level=name).model_dump()


def _limits(endpoint: KnownEndpoint, provider: LimitsEntry | None, model: LimitsEntry) -> Limits:
    """A model's own limit wins over its provider's, and that over the endpoint's; else the default holds."""
    said: dict[str, Any] = {"concurrency": endpoint.concurrency, "counts": endpoint.counts}
    for entry in (provider, model):
        for name in LimitsEntry.model_fields:
            if (value := getattr(entry, name, None)) is not None:
                said[name] = value
    return Limits(**{name: value for name, value in said.items() if value is not None})


_TAKEN_OVER = (  # as a sweep file says it
    *("system", "temperature", "top_p", "seed", "effort", "thinking_tokens", "thinking", "budget_usd"),
    *("max_reply_mb", "replay"),
)
_AS_SAID = ("alias", "base_url", "key_env", "api", "max_tokens", "stream", *_TAKEN_OVER)


def model_mapping(
    model: Model, problems: Sequence[ProblemSource] | None, near: Path | None = None
) -> dict[str, object]:
    """Return the entry that `model_from` reads back; it holds the names of keys, never keys."""
    mapping: dict[str, object] = {"model": f"{model.provider}/{model.model_id}"}
    mapping |= {name: getattr(model, name) for name in _AS_SAID} | _of_entry(LimitsEntry, model.limits)
    mapping |= {"params": dict(model.params), "price": model.price and asdict(model.price)}
    mapping |= {"retry": _of_entry(RetryEntry, model.retry)}
    mapping |= {"timeouts": _of_entry(TimeoutsEntry, model.timeouts)}
    mapping |= {"problems": [source_mapping(source, near) for source in problems or ()]}
    return {name: value for name, value in mapping.items() if value not in (None, {}, [])}


def _of_entry(kind: type[Entry], record: RetryPolicy | Timeouts | Limits) -> dict[str, object]:
    said = {name: getattr(record, name) for name in kind.model_fields}
    return {name: value for name, value in said.items() if value is not None}
