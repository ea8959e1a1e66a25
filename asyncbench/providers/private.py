"""The private names of libraries that are used here, each with the release in which it was read.

`tests/providers/test_private.py` looks for each in the release that is installed. The names that `http`
overrides in subclasses of aiohttp's are listed here, too: they must stand in those classes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from asyncbench.errors import ConfigError

READ_IN: Final = MappingProxyType(
    {"aiohttp": "3.14.5", "anthropic": "2.11.0", "botocore": "1.44.8", "openai": "3.52.0"}
)
# What `http` uses of aiohttp's connector and protocol, beside its public names.
CONNECTOR: Final = ("_conns", "_factory", "_get", "_keepalive_timeout", "_loop", "_release")
PROTOCOL: Final = ("_buffer", "_exception", "_parser", "_payload")


def set_defaults(client: Any, *, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
    """Give the client of an SDK headers and a query for each call, in place of those of the environment.

    The arguments of its constructor would only add to OPENAI_CUSTOM_HEADERS or ANTHROPIC_CUSTOM_HEADERS.

    Raises:
        ConfigError: calls of this release would not have them.
    """
    client._custom_headers, client._custom_query = dict(headers), dict(query)
    defaults = client.default_headers
    if dict(client.default_query) != dict(query) or any(
        defaults.get(name) != headers[name] for name in headers
    ):
        raise ConfigError(
            f"{type(client).__name__} of {type(client).__module__.partition('.')[0]} does not take the "
            "`headers` and `query` of a model as expected. Install the version that asyncbench requires."
        )


# ── botocore


def run_programs_by(session: Any, popen: type[Any]) -> None:
    """Let a session of botocore start the `credential_process` of a profile through a class of ours."""
    session.get_component("credential_provider").get_provider("custom-process")._popen = popen


def found_keys(credentials: Any) -> Any:
    """Return the keys that botocore found just now, without making anew those that end soon.

    Its public `get_frozen_credentials` would make those anew at once that end within a quarter of an hour. It
    is the way where the private name is gone.
    """
    return getattr(credentials, "_frozen_credentials", None) or credentials.get_frozen_credentials()


def expiry(credentials: Any) -> Any:
    """Return the datetime at which keys of botocore expire, or None if they do not or it is not told."""
    return getattr(credentials, "_expiry_time", None)
