"""Parts of a model's entry: the extras of a gateway, and the price."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from asyncbench.config.entry import (
    HEADER,
    Entry,
    Name,
    Place,
    Variable,
    drop_unset,
    quoted,
)
from asyncbench.errors import ConfigError
from asyncbench.pricing import MOST_USD
from asyncbench.records import ClientCertificate, Model, Price

# ── what a gateway asks for: headers, query and certificate


# What says how long a request is and where it goes is not for a sweep to say.
_OF_REQUESTS: Final = {"connection", "content-encoding", "content-length", "host", "te", "transfer-encoding"}


class ClientCertEntry(Entry):
    """The certificate that you show to a server. Each value is the NAME of an environment variable."""

    cert_env: Variable = Field(description="The variable with the path of a PEM file.")
    key_env: Variable | None = Field(
        default=None, description="The variable with the path of its private key, if that is in another file."
    )
    password_env: Variable | None = Field(
        default=None, description="The variable with the password of the private key, if it has one."
    )


class GatewayEntry(Entry):
    """What a server asks for beside a key."""

    headers: dict[Annotated[str, Field(pattern=HEADER)], Variable] = Field(
        default_factory=dict,
        description="Headers for every call, if a gateway asks for them. Each has the NAME of the "
        "environment variable with its value, such as `{X-Team: GATEWAY_TEAM}`.",
        json_schema_extra={"default": {}},
    )
    query: dict[Name, Variable] = Field(
        default_factory=dict,
        description="Parameters for the query of every address, in the same way.",
        json_schema_extra={"default": {}},
    )
    client_cert: ClientCertEntry | None = Field(
        default=None, description="The certificate that you show, if a server asks for one (mTLS)."
    )


def gateway_of(entries: Collection[GatewayEntry], *, place: Place) -> dict[str, Any]:
    """Return these fields of a model; of several entries, each header and parameter of the last one counts.

    Raises:
        ConfigError: a header is for the connection to set.
    """
    headers = {name.lower(): (name, value) for entry in entries for name, value in entry.headers.items()}
    if taken := sorted(_OF_REQUESTS & headers.keys()):
        name = headers[taken[0]][0]
        raise ConfigError(
            f"{place / 'headers' / name}: {quoted(name)} cannot stand in headers: asyncbench sets it itself"
        )
    certs = [entry.client_cert for entry in entries if entry.client_cert is not None]
    return {
        "headers": dict(headers.values()),
        "query": {name: value for entry in entries for name, value in entry.query.items()},
        "client_cert": ClientCertificate(**certs[-1].model_dump()) if certs else None,
    }


def gateway_mapping(model: Model) -> Mapping[str, object]:
    """Return the keys of an entry that `gateway_of` reads back."""
    cert = None if model.client_cert is None else drop_unset(asdict(model.client_cert))
    return {"headers": dict(model.headers), "query": dict(model.query), "client_cert": cert}


# ── the price


Usd = Annotated[float, Field(ge=0, le=MOST_USD, strict=False, allow_inf_nan=False)]


class TokenPrices(Entry):
    """Prices in USD per million tokens."""

    input: Usd = Field(description="USD per million input tokens.")
    output: Usd = Field(description="USD per million output tokens.")
    cached_input: Usd | None = Field(
        default=None, description="USD per million input tokens read from a cache, if the price differs."
    )
    cache_write: Usd | None = Field(
        default=None, description="USD per million input tokens written to a cache, if the price differs."
    )


class PriceEntry(TokenPrices):
    """Prices in USD per million tokens."""

    input: Usd | None = Field(  # type: ignore[assignment]  # None: see `batch`
        description="USD per million input tokens."
    )
    output: Usd | None = Field(  # type: ignore[assignment]  # likewise
        description="USD per million output tokens."
    )
    batch: Annotated[float, Field(gt=0, le=1, strict=False)] | TokenPrices | None = Field(
        default=None,
        description="What a batch costs: the part of these prices that is charged, such as 0.5, or prices of "
        "its own. Without it, batches cost as much as other calls. Alone, it holds beside published prices.",
    )

    @model_validator(mode="before")
    @classmethod
    def _published(cls, raw: object) -> object:
        alone = isinstance(raw, Mapping) and {*raw} == {"batch"}
        return {"input": None, "output": None, "batch": raw["batch"]} if alone else raw  # type: ignore[index]  # a mapping

    @model_validator(mode="after")
    def _whole(self) -> "PriceEntry":
        whole = self.input is not None and self.output is not None
        alone = self.batch is not None and {self.input, self.output, self.cached_input, self.cache_write} == {
            None
        }
        if not (whole or alone):
            raise ValueError("set `input` and `output`, or `batch` alone")
        return self


def price_from(entry: PriceEntry | None) -> Price | None:
    """Return a price as written in a sweep file."""
    if entry is None:
        return None
    batch = entry.batch
    price = Price(**batch.model_dump()) if isinstance(batch, TokenPrices) else batch
    return Price(**entry.model_dump() | {"batch": price})


def price_mapping(price: Price | None) -> dict[str, object] | None:
    """Return the mapping that `price_from` reads back."""
    if price is None:
        return None
    batch = price_mapping(price.batch) if isinstance(price.batch, Price) else price.batch
    tokens = {} if price.input is None else {name: getattr(price, name) for name in TokenPrices.model_fields}
    return tokens | drop_unset({"batch": batch})
