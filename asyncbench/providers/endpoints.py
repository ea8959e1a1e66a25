"""The table of known endpoints (`endpoints.toml`), read once."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEndpoint:
    """One table of `endpoints.toml`; the fields are explained at its top."""

    via: str
    api: str
    base_url: str | None = None
    key_env: str | None = None
    prices: str | None = None
    simulated: bool = False


@cache
def known_endpoints() -> Mapping[str, KnownEndpoint]:
    """Return the table: name in a sweep → endpoint."""
    text = files("asyncbench.providers").joinpath("endpoints.toml").read_text("utf-8")
    return {name: KnownEndpoint(**row) for name, row in tomllib.loads(text).items()}


def is_simulated(provider: str) -> bool:
    """Whether what this provider answers was made up by the simulator."""
    endpoint = known_endpoints().get(provider)
    return endpoint is not None and endpoint.simulated
