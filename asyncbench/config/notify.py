"""Whom a run tells what became of it: a command, an address on the web, or both."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from asyncbench.config.entry import ENV_VARIABLE, Entry, Name, Number, read_entry
from asyncbench.errors import ConfigError

News = Literal["finished", "suspended", "crashed"]
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


def _as_shell_splits(given: object) -> object:
    return shlex.split(given) if isinstance(given, str) else given


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


class NotifyEntry(Entry):
    command: Annotated[list[Name], BeforeValidator(_as_shell_splits), Field(min_length=1)] | None = None
    webhook: Name | None = None
    webhook_env: Annotated[str, Field(pattern=ENV_VARIABLE)] | None = None
    on: (
        Annotated[
            list[News],
            BeforeValidator(_listed),
            Field(min_length=1),
        ]
        | None
    ) = None
    timeout: Annotated[Number, Field(le=LONGEST_TIMEOUT_S)] = 10.0


def notify_from(given: object, *, place: str) -> Notify:
    """Return whom to tell as written in a sweep file: a mapping, or an address or a command alone.

    Raises:
        ConfigError: it names nobody, or cannot be understood. No address or command is repeated.
    """
    place = f"{place}, notify"
    entry = read_entry(NotifyEntry, _as_mapping(given, place), place=place, level="notify")
    if (entry.command, entry.webhook, entry.webhook_env) == (None, None, None):
        raise ConfigError(f"{place}: names nobody to tell; give `command`, `webhook` or `webhook_env`")
    if entry.webhook and entry.webhook_env:
        raise ConfigError(f"{place}: `webhook` and `webhook_env` both name an address; leave one of them out")
    if entry.webhook and not is_address(entry.webhook.strip()):
        raise ConfigError(f"{place}.webhook: not {ADDRESS_RULE}")
    return Notify(
        command=tuple(entry.command or ()),
        webhook=entry.webhook,
        webhook_env=entry.webhook_env,
        on=frozenset(entry.on or NEWS),
        timeout_s=entry.timeout,
    )


def _as_mapping(given: object, place: str) -> Mapping[object, object]:
    if isinstance(given, str):
        return {"webhook" if re.match("https?://", given.strip()) else "command": given}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{place}: write an address, a command, or a mapping of `command`, `webhook`, `on`")
    return {"on" if key is True else key: value for key, value in given.items()}  # so YAML reads a bare `on`
