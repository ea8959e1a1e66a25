"""The table of known endpoints (`endpoints.toml`), read once."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from asyncbench.providers.quirks import Quirks


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEndpoint:
    """One table of `endpoints.toml`; the fields are explained at its top."""

    via: str
    api: str
    also: tuple[str, ...] = ()
    base_url: str | None = None
    base_url_form: str | None = None
    key_env: str | None = None
    key_header: str | None = None
    prices: str | None = None
    concurrency: int | None = None
    counts: Literal["used", "uncached", "demanded"] = "used"
    quirks: Quirks = field(default_factory=Quirks)
    simulated: bool = False

    @property
    def apis(self) -> tuple[str, ...]:
        """Every wire format it speaks, the usual one first."""
        return (self.api, *self.also)

    def is_at(self, base_url: str | None) -> bool:
        """Whether an address is the vendor's own (None is): a server of somebody else's is another thing."""
        if base_url is None or base_url.rstrip("/") == self.base_url:
            return True
        return self.base_url_form is not None and _fits(base_url.rstrip("/"), self.base_url_form)


@cache
def known_endpoints() -> Mapping[str, KnownEndpoint]:
    """Return the table: name in a sweep → endpoint."""
    text = files("asyncbench.providers").joinpath("endpoints.toml").read_text("utf-8")
    return {name: _endpoint(row) for name, row in tomllib.loads(text).items()}


def is_simulated(provider: str) -> bool:
    """Whether what this provider answers was made up by the simulator."""
    endpoint = known_endpoints().get(provider)
    return endpoint is not None and endpoint.simulated


def _endpoint(row: Mapping[str, Any]) -> KnownEndpoint:
    also, quirks = tuple(row.get("also", ())), Quirks(**row.get("quirks", {}))
    return KnownEndpoint(**{**row, "also": also, "quirks": quirks})


def _fits(base_url: str, form: str) -> bool:
    """Whether an address is of a form whose words in capitals stand for names."""
    pattern = re.sub(r"[A-Z]+", r"[^./:]+", re.escape(form))
    return re.fullmatch(pattern, base_url) is not None
