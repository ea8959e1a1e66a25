"""Known endpoints: one table of addresses, wire formats and special ways; and one endpoint with its key."""

import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from asyncbench.errors import ConfigError
from asyncbench.providers.credentials import PemFiles, header_complaint
from asyncbench.providers.rate_headers import Span
from asyncbench.records import Timeouts
from asyncbench.suites.plugins import Origin, WithPackages


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """The ways of one endpoint; what is left out is OpenAI's own way.

    A name with points in it is a path: `reasoning.effort` is sent as {"reasoning": {"effort": …}}.
    Anthropic's messages are written in one way alone: of all this only `rejects` and `requests_per` matter
    there.
    """

    max_tokens: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # in chat
    seed: str | None = "seed"  # or random_seed; None: refused
    effort: str | None = "reasoning_effort"  # in chat; None: cannot be asked for
    thinking: str | None = None  # in chat: where a budget of thinking tokens is written; None: nowhere
    usage_in_streams: Literal["ask", "unasked"] = (
        "ask"  # by stream_options; unasked: it may tell all the same
    )
    max_price: str | None = None  # of a router: where the dearest price is written that may serve a call
    rejects: Collection[str] = frozenset()  # keys of a model entry that it refuses, such as temperature
    requests_per: Span = "minute"  # what its headers tell a limit of requests for, without saying so


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWays:
    """The ways of the batches of one endpoint; what is left out is OpenAI's, or Anthropic's, own way."""

    proven: bool = True  # held against recordings; False: only read in the vendor's documents
    apis: Collection[str] = ("chat", "responses", "messages", "contents")  # whose requests it takes
    endpoint: str = "/v1/"  # before the wire's path, where a batch is created; its lines always have this
    upload: Mapping[str, str] = field(default_factory=lambda: {"purpose": "batch"})  # fields of an upload
    listed: Literal["after", "whole"] = "after"  # in pages from an id on, or at once
    words: Mapping[str, str] = field(default_factory=dict)  # for a state, in small letters → OpenAI's
    expires: bool = True  # a batch ends after its time, whatever is done by then
    poll_s: float = 0.0  # at least so long between two polls of its batches
    most_requests: int | None = None  # of one batch; None: as many as OpenAI or Anthropic takes
    most_bytes: int | None = None
    part: float | None = None  # of the price in real time, by its page: told to people, never charged by

    @property
    def departures(self) -> dict[str, object]:
        """Ways that differ from the usual ones, by name."""
        usual = BatchWays()
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in ("proven", "part")}
        return {name: value for name, value in fields.items() if value != getattr(usual, name)}

    @property
    def description(self) -> str:
        """The same for people."""
        phrases = list[str]()
        for name, value in self.departures.items():
            if isinstance(value, Mapping):
                value = ", ".join(f"{key}={word}" for key, word in value.items())
            elif isinstance(value, Collection) and not isinstance(value, str):
                value = " or ".join(value)
            phrases.append(f"{name}: {value}")
        return "; ".join(phrases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """The models that `init` offers of a provider, and limits that its lowest paid tier should bear."""

    models: tuple[str, ...]  # ids, the cheap one first; each is in the price table of its vendor, if any
    rpm: int
    concurrency: int


# Requests and bytes of the largest batch, by `via`: the vendor whose form it has. Their pages of 2026.
LARGEST_BATCHES: Final = {
    "openai": (50_000, 200_000_000),
    "anthropic": (100_000, 256_000_000),
    "google": (50_000, 2_000_000_000),  # no number of requests is told
}
MOST_BYTES: Final = 8_000_000  # sixteen times the text of 128,000 tokens
BYTES_OF_A_TOKEN: Final = 64  # at most, of a model that may write more than 128,000 tokens
# So long an idle connection is kept: many servers (uvicorn, Node.js) close after 5 s and do not say so.
KEEPALIVE_S: Final = 4.0
LONGEST_KEEPALIVE_S: Final = 60.0  # of a server that promises it: a proxy between may close earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One place to call, with the key in hand. Never stored, never logged: `repr` leaves the key out.

    Raises:
        ConfigError: an address that is no web address, or a key that no header can carry.
    """

    base_url: str | None  # None: the vendor's own, whatever the environment says
    api_key: str = field(repr=False)  # empty: the server asks for none
    key_header: str | None = None  # what carries the key, through the openai SDK; None: the SDK's own way
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # of every call, for a gateway
    query: Mapping[str, str] = field(default_factory=dict, repr=False)  # of every address, likewise
    pem: PemFiles | None = None  # the certificate that we show; None: the server asks for none
    timeouts: Timeouts = field(default_factory=Timeouts)
    most_bytes: int = (
        MOST_BYTES  # of a body, decompressed; see `providers.streams` for what that means to a stream
    )
    connections: int = 100  # at least the lane's concurrency
    requests_per: Span = "minute"  # see `Quirks`
    sdk_only: bool = False  # every call is built by the SDK

    def __post_init__(self) -> None:
        if self.base_url is not None and not _is_web_address(self.base_url):
            raise ConfigError(
                f"base_url {self.base_url!r} is not an address. Write it like https://host/v1 or "
                "http://host:port/v1."
            )
        if (fault := header_complaint(self.headers)) is not None:
            raise ConfigError(fault)
        if not (self.api_key.isascii() and self.api_key.isprintable() and " " not in self.api_key):
            raise ConfigError(
                f"the API key for {self.base_url or 'the provider'} holds a space, a line break or a "
                "character outside ASCII. Set its variable to the key alone."
            )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port  # a ValueError where it is no number
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEndpoint:
    """One table of `endpoints.toml`; the fields are explained at its top."""

    via: str
    api: str
    also: tuple[str, ...] = ()
    base_url: str | None = None
    base_url_form: str | None = None
    also_at: str | None = None
    key_env: str | None = None
    credentials: str | None = None
    key_header: str | None = None
    prices: str | None = None
    conventions: str | None = None
    family: str | None = None
    without: str | None = None
    concurrency: int | None = None
    counts: Literal["used", "uncached", "demanded"] = "used"
    quirks: Quirks = field(default_factory=Quirks)
    simulated: bool = False
    batches: bool = False
    batch: BatchWays = field(default_factory=BatchWays)
    own_batches: str | None = None
    starter: Starter | None = None

    @property
    def batch_support(self) -> str | None:
        """`proven` or `unproven` batches, those of an `own form` that we do not speak, or None."""
        if self.batches:
            return "proven" if self.batch.proven else "unproven"
        return "own form" if self.own_batches else None

    def batches_proven_at(self, base_url: str | None) -> bool:
        """Return whether batches were compared with recordings of this very server."""
        return self.batch.proven and (self.simulated or self.is_at(base_url))

    @property
    def most_of_a_batch(self) -> tuple[int, int]:
        """The most requests, and bytes, of one batch."""
        requests, size = LARGEST_BATCHES.get(self.via, LARGEST_BATCHES["openai"])
        return self.batch.most_requests or requests, self.batch.most_bytes or size

    @property
    def apis(self) -> tuple[str, ...]:
        """Every wire format it speaks, the usual one first."""
        return (self.api, *self.also)

    def serves(self, model_id: str) -> bool:
        """Return whether a model of this id may be asked here; an ARN may stand for any."""
        name = model_id.lower()
        if self.without is not None and self.without in name:
            return False
        return self.family is None or self.family in name or name.startswith("arn:")

    def is_at(self, base_url: str | None) -> bool:
        """Return whether an address is the vendor's own, as None is."""
        if base_url is None or base_url.rstrip("/") == self.base_url:
            return True
        # Words in capitals stand for names.
        forms = filter(None, (self.base_url_form, self.also_at))
        patterns = (re.sub(r"[A-Z]+", r"[^./:]+", re.escape(form)) for form in forms)
        return any(re.fullmatch(pattern, base_url.rstrip("/")) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedProvider:
    """A provider that a package adds, under the name of its entry point in the group `asyncbench.providers`.

    `endpoint.via` is `openai`, `anthropic` or `http`; or the provider's own name, and then `open(endpoint,
    wire)` returns the `Provider` that makes the calls.
    """

    endpoint: KnownEndpoint
    open: Callable[..., Any] | None = None  # (Endpoint, `wire.Wire`) → `provider.Provider`


def _checked_provider(provider: object, origin: Origin) -> AddedProvider:
    if not isinstance(provider, AddedProvider):
        raise ValueError("it must be an AddedProvider")
    via = ("openai", "anthropic", "http") if provider.open is None else (origin.name,)
    if provider.endpoint.via not in via:
        raise ValueError(f"its endpoint has via={provider.endpoint.via!r}, and not {' or '.join(via)}")
    return provider


@cache
def _our_endpoints() -> Mapping[str, KnownEndpoint]:
    text = files("asyncbench.providers").joinpath("endpoints.toml").read_text("utf-8")
    endpoints = {}
    for name, row in tomllib.loads(text).items():
        row["also"] = tuple(row.get("also", ()))
        row["quirks"], row["batch"] = Quirks(**row.get("quirks", {})), BatchWays(**row.get("batch", {}))
        if starter := row.get("starter"):
            row["starter"] = Starter(**{**starter, "models": tuple(starter["models"])})
        endpoints[name] = KnownEndpoint(**row)
    return endpoints


@cache
def added_providers() -> WithPackages[AddedProvider]:
    """Return the providers that installed packages add, by name."""
    return WithPackages("providers", {}, _checked_provider, reserved=_our_endpoints())


class KnownEndpoints(Mapping[str, KnownEndpoint]):
    """The table: name in a sweep → endpoint.

    Who asks for a provider that a package adds and that cannot be used gets a ConfigError; others do not.
    """

    def __getitem__(self, name: str) -> KnownEndpoint:
        ours = _our_endpoints()
        return ours[name] if name in ours else added_providers()[name].endpoint

    def __iter__(self) -> Iterator[str]:
        return iter([*_our_endpoints(), *added_providers()])

    def __len__(self) -> int:
        return len(_our_endpoints()) + len(added_providers())


def known_endpoints() -> Mapping[str, KnownEndpoint]:
    """Return the table of endpoints."""
    return KnownEndpoints()


@cache
def usable_endpoints() -> Mapping[str, KnownEndpoint]:
    """Return the table without what packages add and cannot be used: of each of these a warning tells."""
    endpoints = dict(_our_endpoints())
    for name in added_providers():
        try:
            endpoints[name] = known_endpoints()[name]
        except ConfigError as error:
            warnings.warn(str(error), stacklevel=2)
    return endpoints


def is_simulated(provider: str) -> bool:
    """Return whether what this provider answers was made up by the simulator."""
    endpoint = known_endpoints().get(provider)
    return endpoint is not None and endpoint.simulated
