"""Headers, query and certificate that a gateway asks for, all from environment variables."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field

from asyncbench.config.entry import ENV_VARIABLE, HEADER, Entry, Name, Place, quoted
from asyncbench.errors import ConfigError
from asyncbench.records import ClientCertificate, Model

Variable = Annotated[str, Field(pattern=ENV_VARIABLE)]
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
    cert = {} if model.client_cert is None else asdict(model.client_cert)
    named = {name: variable for name, variable in cert.items() if variable is not None}
    return {"headers": dict(model.headers), "query": dict(model.query), "client_cert": named}
