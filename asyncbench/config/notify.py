"""Whom a run tells what became of it: a command, an address on the web, or both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from asyncbench.config.entry import ENV_VARIABLE, Entry, Name, Number, Words
from asyncbench.config.place import Place
from asyncbench.errors import ConfigError

News = Literal["finished", "suspended", "crashed", "batches"]
NEWS: Final[tuple[News, ...]] = get_args(News)
ADDRESS_RULE: Final = "an address that begins with https:// or http:// and names a host"
LONGEST_TIMEOUT_S: Final = 60.0  # the end of a run waits that long for its last message
_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Who is told, and of what. An address is a secret, and so may be a word of a command: not shown."""

    command: tuple[str, ...] = field(default=(), repr=False)  # a program and its words; empty: none
    webhook: str | None = field(default=None, repr=False)
    webhook_env: str | None = None  # the NAME of the variable that holds the address
    on: frozenset[News] = frozenset(NEWS)
    timeout_s: float = 10.0  # of one message

    def address(self, env: Mapping[str, str]) -> str | None:
        """Return the address on the web; None: none is named, or its variable is not set."""
        given = self.webhook if self.webhook_env is None else env.get(self.webhook_env)
        return (given or "").strip() or None


def is_address(text: str) -> bool:
    """Return whether a message can be posted there."""
    try:
        split = urlsplit(text)
        named = bool(split.hostname) and split.port != 0  # asking for a port that is none raises
    except ValueError:
        return False
    return named and _ADDRESS.fullmatch(text) is not None


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


_On = Annotated[
    list[News], BeforeValidator(_listed, json_schema_input_type=News | list[News]), Field(min_length=1)
]


class NotifyEntry(Entry):
    """Whom a run tells about its end and its failures."""

    command: Words | None = Field(
        default=None,
        description="A program and its arguments, as one text or as a list. No shell runs it. "
        "It gets the message as JSON on its standard input.",
    )
    webhook: Name | None = Field(
        default=None,
        description="The address to post to. It is a secret; `webhook_env` keeps it out of the file.",
    )
    webhook_env: Annotated[str, Field(pattern=ENV_VARIABLE)] | None = Field(
        default=None, description="The NAME of the environment variable that holds the address to post to."
    )
    on: _On | None = Field(
        default=None,
        description="The events that are told. `finished`: the run ended. `suspended`: a model was stopped. "
        "`crashed`: the run died. `batches`: all were sent, one ended early or is in doubt, or results are "
        "deleted soon. Without it: all.",
    )
    timeout: Annotated[Number, Field(le=LONGEST_TIMEOUT_S)] = Field(
        default=10.0, description="The most seconds for one message."
    )


def notify_from(entry: NotifyEntry, *, place: Place) -> Notify:
    """Return whom to tell as written in a sweep file.

    Raises:
        ConfigError: it names nobody, or cannot be understood. No address or command is repeated.
    """
    if (entry.command, entry.webhook, entry.webhook_env) == (None, None, None):
        raise ConfigError(f"{place}: `notify` tells nobody. Set `command`, `webhook` or `webhook_env`")
    if entry.webhook and entry.webhook_env:
        raise ConfigError(f"{place}: `webhook` and `webhook_env` are both set. Remove one of them")
    if entry.webhook and not is_address(entry.webhook.strip()):
        raise ConfigError(f"{place / 'webhook'}: 'webhook' is not {ADDRESS_RULE}")
    return Notify(
        command=tuple(entry.command or ()),
        webhook=entry.webhook,
        webhook_env=entry.webhook_env,
        on=frozenset(entry.on or NEWS),
        timeout_s=entry.timeout,
    )


def as_notify_mapping(given: object) -> object:
    """Return the mapping that an address or a command alone stands for."""
    if isinstance(given, str):
        return {"webhook" if re.match("https?://", given.strip()) else "command": given}
    if not isinstance(given, Mapping):
        return given
    return {"on" if key is True else key: value for key, value in given.items()}  # so YAML reads a bare `on`
