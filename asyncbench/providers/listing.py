"""What `asyncbench models` shows: the endpoints a sweep may name, and a vendor's models with their prices."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from asyncbench.errors import ConfigError
from asyncbench.pricing import Bracket
from asyncbench.providers.endpoints import KnownEndpoint, known_endpoints
from asyncbench.providers.known_models import Published, published
from asyncbench.shown import fitted

RATES = ("input", "cached_input", "cache_write", "cache_write_1h", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLine:
    """One endpoint, as far as this machine can use it."""

    name: str
    via: str
    apis: tuple[str, ...]  # the usual one first
    base_url: str | None  # its own, or the form of the one to give; None: the SDK's own
    needs_base_url: bool
    key_env: str | None  # None: no key is needed
    key_set: bool | None  # whether the variable is; never its value
    concurrency: int | None  # unless the sweep says otherwise; None: that of any model
    priced_models: int | None  # None: no price table knows this vendor
    simulated: bool


def endpoint_lines(env: Mapping[str, str], *, at: datetime) -> tuple[EndpointLine, ...]:
    """Return the table of endpoints; `env` is where keys would be looked up."""
    return tuple(_line(name, one, env, at) for name, one in known_endpoints().items())


def _line(name: str, one: KnownEndpoint, env: Mapping[str, str], at: datetime) -> EndpointLine:
    return EndpointLine(
        name=name,
        via=one.via,
        apis=one.apis,
        base_url=one.base_url or one.base_url_form,
        needs_base_url=one.base_url_form is not None,
        key_env=one.key_env,
        key_set=bool(env.get(one.key_env, "").strip()) if one.key_env else None,
        concurrency=one.concurrency,
        priced_models=len(published(one.prices, at=at)) if one.prices else None,
        simulated=one.simulated,
    )


def endpoints_as_text(lines: Sequence[EndpointLine]) -> str:
    """Return the table of endpoints for a person."""
    head = ("provider", "via", "api", "base URL", "key", "set", "priced models")
    rows = [
        (
            one.name,
            one.via,
            ", ".join(one.apis),
            _address(one),
            one.key_env or "-",
            {True: "yes", False: "no", None: "-"}[one.key_set],
            "-" if one.priced_models is None else f"{one.priced_models:,}",
        )
        for one in lines
    ]
    return fitted(head, rows, labels=6)


def _address(one: EndpointLine) -> str:
    if one.needs_base_url:
        return f"give {one.base_url}"
    return one.base_url or ("our simulator's" if one.simulated else "its own")


def endpoints_as_json(lines: Sequence[EndpointLine]) -> str:
    """Return the table of endpoints as JSON."""
    return json.dumps([asdict(one) for one in lines], indent=2)


def models_of(provider: str, *, at: datetime) -> tuple[Published, ...]:
    """Return the models of a provider whose prices are known, by name.

    Raises:
        ConfigError: no such provider, or one that no price table knows.
    """
    endpoint = known_endpoints().get(provider)
    if endpoint is None:
        raise ConfigError(f"unknown provider {provider!r}; known: {', '.join(known_endpoints())}")
    if endpoint.prices is None:
        raise ConfigError(
            f"no prices of {provider} are known; any of its models can be named in a sweep, with its `price`"
        )
    return published(endpoint.prices, at=at)


def models_as_text(models: Sequence[Published]) -> str:
    """Return a vendor's models for a person: USD for a million tokens, a line for each long-context tier."""
    head = ("model", "above input tokens", "input", "cached input", "output")
    rows = [
        (one.model_id if i == 0 else "", *_prices(bracket))
        for one in models
        for i, bracket in enumerate(one.rates.brackets)
    ]
    source = models[0].rates.source if models else "no price table"
    return f"USD for a million tokens ({source})\n{fitted(head, rows, labels=1)}"


def _prices(bracket: Bracket) -> tuple[str, ...]:
    above = f"{bracket.above:,}" if bracket.above >= 0 else ""
    return above, *(f"{rate.normalize():f}" for rate in (bracket.input, bracket.cached_input, bracket.output))


def models_as_json(models: Sequence[Published]) -> str:
    """Return a vendor's models as JSON; prices are decimal text, exact as published."""
    return json.dumps([_as_mapping(one) for one in models], indent=2)


def _as_mapping(one: Published) -> dict[str, object]:
    brackets = [
        {"above": bracket.above, **{name: str(getattr(bracket, name)) for name in RATES}}
        for bracket in one.rates.brackets
    ]
    return {"model": one.model_id, "source": one.rates.source, "usd_per_million_tokens": brackets}
