"""Credentials: the API key, headers, query and certificate that a server asks for beside a request.

All of it comes from environment variables, whose NAMES a sweep has. None of it is written anywhere.
"""

import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncbench.errors import ConfigError
from asyncbench.records import ClientCertificate, Model

# The simulator takes any key, but asks for one as the vendors do. No word of any message: keys are cut out
# of them.
SIMULATED_KEY: Final = "asyncbench-needs-no-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class PemFiles:
    """A certificate of ours, as files of PEM."""

    names: ClientCertificate  # of the variables that say so
    cert: str = field(repr=False)
    key: str | None = field(default=None, repr=False)  # None: in the same file
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Everything that a server asks of us to let us in. Never stored, never logged: `repr` leaves it out."""

    key: str = field(default="", repr=False)  # empty: the server asks for none
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    pem: PemFiles | None = None

    @property
    def other_secrets(self) -> tuple[str, ...]:
        """Each value that nobody may see, but for the key."""
        password = None if self.pem is None else self.pem.password
        return tuple(filter(None, (*self.headers.values(), *self.query.values(), password)))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Each value that nobody may see."""
        return (self.key, *self.other_secrets)


def credentials_of(model: Model, env: Mapping[str, str]) -> Credentials:
    """Return the values of a model's variables, as far as they are set."""
    values = {name: env.get(name, "").strip() for name in model.variables}
    no_key, pem = SIMULATED_KEY if model.simulated else "", None
    if (names := model.client_cert) is not None:
        key, password = (values.get(name or "") or None for name in (names.key_env, names.password_env))
        pem = PemFiles(names=names, cert=values[names.cert_env], key=key, password=password)
    return Credentials(
        key=no_key if model.key_env is None else values[model.key_env],
        headers={header: values[name] for header, name in model.headers.items()},
        query={key: values[name] for key, name in model.query.items()},
        pem=pem,
    )


def secrets_of(credentials: Collection[Credentials]) -> set[str]:
    """Return each value of these that nobody may see."""
    return {secret for credential in credentials for secret in credential.secrets}


def header_complaint(headers: Mapping[str, str]) -> str | None:
    """Return the header that cannot carry its value, or None. The value is not repeated."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            return (
                f"the value of the header {name} holds a line break or a character outside ASCII. Set its "
                "variable to the value alone."
            )
    return None


def show_certificate(context: ssl.SSLContext, pem: PemFiles) -> None:
    """Let a TLS context show a certificate of ours to servers that ask for one.

    Raises:
        ConfigError: the files hold none; names their variables, not what these hold.
    """
    try:
        # Never without a password, or OpenSSL would ask for it on the terminal.
        context.load_cert_chain(pem.cert, pem.key, password=pem.password or "")
    except (OSError, ValueError) as error:  # of ssl, too
        variables = pem.names
        names = ", ".join(filter(None, (variables.cert_env, variables.key_env, variables.password_env)))
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
        raise ConfigError(
            f"client_cert: {names} lead to no certificate with its private key ({reason}). Let cert_env name "
            "the variable with the path of a PEM file, key_env that of its private key if it is in another "
            "one, and password_env that of the key's password."
        ) from None
