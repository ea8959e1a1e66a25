"""Tables of `asyncbench models`: the endpoints that a sweep may name, and a vendor's models with prices."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import KnownEndpoint, known_endpoints, usable_endpoints
from asyncbench.providers.prices import Published, published
from asyncbench.tables.screen import fitted

RATES = ("input", "cached_input", "cache_write", "cache_write_1h", "output")


def endpoint_rows(env: Mapping[str, str], *, moment: datetime) -> tuple[dict[str, Any], ...]:  # Any: JSON
    """Return the table of endpoints, as far as this machine can use them; `env` is where keys would be."""
    rows = list[dict[str, Any]]()
    for name, endpoint in usable_endpoints().items():
        form = {"form": endpoint.own_batches} if endpoint.own_batches else {}
        row = {
            "name": name,
            "via": endpoint.via,
            "apis": endpoint.apis,
            "base_url": endpoint.base_url or endpoint.base_url_form,  # None: the SDK's own
            "needs_base_url": endpoint.base_url_form is not None,
            "key_env": endpoint.key_env,  # None: no key is needed
            # Whether the variable is set; never its value.
            "key_set": bool(env.get(endpoint.key_env, "").strip()) if endpoint.key_env else None,
            "concurrency": endpoint.concurrency,  # unless the sweep says otherwise; None: that of any model
            "batches": endpoint.batch_support,
            "batch_part": endpoint.batch.part if endpoint.batches else None,
            # What is particular to its batches, which may have a form of their own.
            "batch_ways": endpoint.batch.departures if endpoint.batches else form,
            # None: no price table knows this vendor.
            "priced_models": len(_priced(endpoint, moment)) if endpoint.prices else None,
            "simulated": endpoint.simulated,
        }
        rows.append(row)
    return tuple(rows)


def endpoints_as_text(endpoints: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of endpoints for a person."""
    head = ("provider", "via", "api", "base URL", "key variable", "set", "batches", "priced models")
    rows = []
    for row in endpoints:
        fixed = row["base_url"] or ("asyncbench's simulator" if row["simulated"] else "its own")
        address = f"you set it: {row['base_url']}" if row["needs_base_url"] else fixed
        key_set = {True: "yes", False: "no", None: "-"}[row["key_set"]]
        priced = "-" if row["priced_models"] is None else f"{row['priced_models']:,}"
        columns = (row["name"], row["via"], ", ".join(row["apis"]), address, row["key_env"] or "-")
        rows.append((*columns, key_set, row["batches"] or "-", priced))
    return fitted(head, rows, labels=7)


def endpoints_as_json(endpoints: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of endpoints as JSON."""
    return json.dumps(endpoints, indent=2)


def models_of(provider: str, *, moment: datetime) -> tuple[Published, ...]:
    """Return the models of a provider whose prices are known, by name.

    Raises:
        ConfigError: no such provider, or one that no price table knows.
    """
    endpoint = known_endpoints().get(provider)
    if endpoint is None:
        raise ConfigError(f"unknown provider {provider!r}. Known: {', '.join(known_endpoints())}.")
    if endpoint.prices is None:
        raise ConfigError(
            f"no prices of {provider} are known. Name any of its models in a sweep, with its `price`."
        )
    return _priced(endpoint, moment)


def _priced(endpoint: KnownEndpoint, moment: datetime) -> tuple[Published, ...]:
    sold = published(endpoint.prices or "", moment=moment)
    return tuple(model for model in sold if endpoint.serves(model.model_id))


# `gpt-4.1-mini` → 4, 1; `claude-opus-4-5` → 4, 5; neither a date nor a size such as 32k or 70b
_VERSION: Final = re.compile(r"(?<!\d)(\d{1,2})(?![\dbx])(?:[.-](\d)(?![\da-z]))?")
_NOT_FOR_TEXT: Final = re.compile(r"audio|image|tts|transcribe|realtime|search|embed|\bft\b")


def _newest_first(model: Published) -> tuple[bool, int, int, str]:
    """Return where a model stands in a list: by its version, and those that are not for text last."""
    version = _VERSION.search(model.model_id)
    major, minor = (int(number or 0) for number in version.groups()) if version else (0, 0)
    return bool(_NOT_FOR_TEXT.search(model.model_id)), -major, -minor, model.model_id


def models_as_text(models: Sequence[Published]) -> str:
    """Return a vendor's models for a person, the newest versions first.

    Prices are USD for a million tokens, with a line for each long-context tier.
    """
    head = ("model", "input tokens over", "input", "cached input", "output")
    rows = []
    for model in sorted(models, key=_newest_first):
        name = model.model_id  # in the first of its lines
        for bracket in model.rates.brackets:
            above = f"{bracket.above:,}" if bracket.above >= 0 else ""
            rates = (bracket.input, bracket.cached_input, bracket.output)
            rows.append((name, above, *(f"{rate.normalize():f}" for rate in rates)))
            name = ""
    source = models[0].rates.source if models else "no price table"
    return f"USD per million tokens ({source})\n{fitted(head, rows, labels=1)}"


def models_as_json(models: Sequence[Published]) -> str:
    """Return a vendor's models as JSON; prices are decimal text, exact as published."""
    listed = []
    for model in models:
        brackets = [
            {"above": bracket.above, **{name: str(getattr(bracket, name)) for name in RATES}}
            for bracket in model.rates.brackets
        ]
        entry = {"model": model.model_id, "source": model.rates.source, "usd_per_million_tokens": brackets}
        listed.append(entry)
    return json.dumps(listed, indent=2)


WAIT_S: Final = 3.0  # for a server of one's own to say which models it has


def models_at(base_url: str, key: str) -> tuple[tuple[str, ...], str]:
    """Return the models that a server like OpenAI's lists, and why there are none.

    Args:
        base_url: its address up to `/v1`.
        key: sent to it; empty: none is.
    """
    import httpx2

    from asyncbench.providers.environment import check_certificates, proxy_of

    headers = {"authorization": f"Bearer {key}", "api-key": key} if key else {}
    try:
        check_certificates()
        route = proxy_of(base_url)
        proxy = None if route is None else httpx2.Proxy(route.url, auth=route.login)
        tls = httpx2.create_ssl_context()
        with httpx2.Client(
            trust_env=False, verify=tls, proxy=proxy, timeout=WAIT_S, headers=headers
        ) as client:
            answer = client.get(f"{base_url}/models")
        if answer.status_code in (401, 403):
            return (), f"it {'refuses the key' if key else 'asks for a key'} ({answer.status_code})"
        if answer.status_code != 200:
            return (), f"it answers {answer.status_code}"
        names = tuple(str(model["id"]) for model in answer.json()["data"])
    except (ConfigError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        return (), str(error) or type(error).__name__
    except (ValueError, KeyError, TypeError):
        return (), "its answer is no list of models"
    return names, "" if names else "it has none"
