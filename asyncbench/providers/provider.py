"""Open a provider for a model of a sweep. SDKs are imported only when used."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers.anthropic.messages import MessagesWire
from asyncbench.providers.batch_calls import BatchApi
from asyncbench.providers.credentials import Credentials
from asyncbench.providers.endpoints import (
    BYTES_OF_A_TOKEN,
    MOST_BYTES,
    Endpoint,
    Quirks,
    added_providers,
    known_endpoints,
)
from asyncbench.providers.functions import PYTHON, FunctionProvider
from asyncbench.providers.google.contents import ContentsWire
from asyncbench.providers.openai.wires import ChatWire, CompletionsWire, ResponsesWire
from asyncbench.providers.secrets import withhold_too
from asyncbench.providers.wire import Wire
from asyncbench.records import SDK, Model, Reply, Request


class Provider(Protocol):
    """A way to reach models."""

    async def ask(self, request: Request) -> Reply:
        """Make one call, once: no retries and no waiting for limits.

        Raises:
            ProviderError: always one of ours, with its kind; the SDK's error is its `__cause__`.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Say which extra is missing where an SDK cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"this provider needs the extra `{extra}`: pip install 'asyncbench[{extra}]' ({error})"
        ) from None


class Adapter(NamedTuple):
    """The class of an adapter. Its module, and with it an SDK, is imported when it is first used."""

    module: str  # of this folder
    name: str
    extra: str | None = None  # that installs the SDK; None: it is always there

    def __call__(self, endpoint: Endpoint, wire: Wire) -> Provider:
        """Return the provider of an endpoint.

        Raises:
            ConfigError: its extra is not installed.
        """
        with nullcontext() if self.extra is None else needing(self.extra):
            module = import_module(f"asyncbench.providers.{self.module}")
        provider: Provider = getattr(module, self.name)(endpoint, wire)
        return provider


PROVIDERS: Final[Mapping[str, Adapter]] = {
    "anthropic": Adapter("anthropic.client", "AnthropicProvider"),
    "azure": Adapter("azure.client", "AzureEntraProvider", "azure"),
    "bedrock": Adapter("bedrock.client", "BedrockProvider", "bedrock"),
    "google": Adapter("google.client", "GoogleProvider", "google"),
    "http": Adapter("http", "HttpProvider"),
    "openai": Adapter("openai.client", "OpenAIProvider"),
    "vertex": Adapter("google.client", "VertexProvider", "google"),
    "vertex-anthropic": Adapter("vertex_anthropic.client", "VertexAnthropicProvider", "vertex"),
}


WIRES: Final[Mapping[str, Callable[[Quirks], Wire]]] = {
    "chat": ChatWire,
    "completions": CompletionsWire,
    "responses": lambda _: ResponsesWire(),  # written in one way by all who speak it
    "messages": lambda _: MessagesWire(),
    "contents": lambda _: ContentsWire(),
}


def makes_own_calls(model: Model) -> bool:
    """Return whether the run itself makes the calls of a model, whatever workers it has.

    So are those by code that a package adds, and those that need what only this process can find.
    """
    endpoint = known_endpoints()[model.provider]
    return endpoint.via not in PROVIDERS or endpoint.credentials is not None


def wire_of(model: Model) -> Wire:
    """Return the wire format that a model is asked in, with the ways of its endpoint."""
    return WIRES[model.api](known_endpoints()[model.provider].quirks)


def most_bytes(model: Model) -> int:
    """Return how many bytes of an answer are read, decompressed: generous for the longest reply."""
    if model.max_reply_mb is not None:
        return round(model.max_reply_mb * 1_000_000)
    return max(MOST_BYTES, BYTES_OF_A_TOKEN * (model.max_tokens or 0))


def open_batches(
    model: Model, *, key: str | Credentials, simulator_url: str | None, now: Callable[[], float] = time.time
) -> BatchApi:
    """Return the batches of a model, whose provider has some; to be closed.

    The arguments are those of `open_provider`, and `now`, our clock.
    """
    endpoint, via = _endpoint_of(model, key=key, simulator_url=simulator_url)
    if via == "anthropic":
        from asyncbench.providers.anthropic.batches import AnthropicBatches

        return AnthropicBatches(endpoint, wire_of(model), now)
    if via == "google":
        with needing("google"):
            from asyncbench.providers.google.batches import GoogleBatches
        return GoogleBatches(endpoint, wire_of(model), now, model.model_id)
    from asyncbench.providers.openai.batches import OpenAIBatches

    return OpenAIBatches(endpoint, wire_of(model), now, known_endpoints()[model.provider].batch)


def open_provider(
    model: Model, *, key: str | Credentials, simulator_url: str | None, wire: Wire | None = None
) -> Provider:
    """Return the provider of a model; to be closed.

    Args:
        model: where it is, and how many calls may be in flight.
        key: its API key, empty where the server asks for none; or all that it asks for.
        simulator_url: where simulated models without an address of their own are; without /v1.
        wire: instead of the model's own.
    """
    if model.replicas:
        addresses = (model.base_url or "", *model.replicas)
        return SpreadProvider(
            {
                address: open_provider(
                    replace(model, base_url=address, replicas=()), key=key, simulator_url=None, wire=wire
                )
                for address in addresses
            }
        )
    endpoint, via = _endpoint_of(model, key=key, simulator_url=simulator_url)
    if via == PYTHON:
        return FunctionProvider(model)
    opened = PROVIDERS.get(via) or added_providers()[model.provider].open
    assert opened is not None, "checked when it was added"  # noqa: S101  a provider without `open` is via ours
    provider: Provider = opened(endpoint, wire or wire_of(model))
    return provider


def _endpoint_of(model: Model, *, key: str | Credentials, simulator_url: str | None) -> tuple[Endpoint, str]:
    """Return where a model is, and the adapter that reaches it."""
    credentials = Credentials(key=key) if isinstance(key, str) else key
    withhold_too(credentials.other_secrets)
    vendor = known_endpoints()[model.provider]
    base_url = model.base_url
    if base_url is None and simulator_url is not None and model.simulated:
        base_url = simulator_url if vendor.via == "anthropic" else f"{simulator_url}/v1"
    endpoint = Endpoint(
        base_url=base_url,
        api_key=credentials.key,
        key_header=vendor.key_header,
        headers=credentials.headers,
        query=credentials.query,
        pem=credentials.pem,
        timeouts=model.timeouts,
        most_bytes=most_bytes(model),
        connections=model.limits.connections,
        requests_per=vendor.quirks.requests_per,
        sdk_only=model.door == SDK,
    )
    return endpoint, vendor.via


# ── Several addresses of one model: each call goes where fewer are in flight

_FIRST_S: Final = 1.0  # that an address which failed is left out; doubled as long as it goes on to fail
_LONGEST_S: Final = 30.0
_FAILURES: Final = (ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT, ErrorKind.SERVER_ERROR)  # of a server


class _Replica:
    """One address, and how it does."""

    def __init__(self, address: str, provider: Provider) -> None:
        self.host, self.provider = urlsplit(address).netloc, provider
        self.in_flight = 0
        self.trying = False  # a call is under way that tries whether it answers again
        self.left_out_s = 0.0  # for so long after its latest failure; 0: it answers
        self.again_at_s = 0.0  # the loop's clock: then a call tries it

    def is_in(self, at_s: float) -> bool:
        """Return whether a call may go there: it answers, or one call tries whether it does again."""
        return not self.left_out_s or (at_s >= self.again_at_s and not self.trying)

    def fail(self, at_s: float) -> None:
        """Leave it out for a while."""
        if at_s >= self.again_at_s:  # calls that were in flight together fail together
            self.left_out_s = min(_LONGEST_S, 2 * self.left_out_s or _FIRST_S)
            self.again_at_s = at_s + self.left_out_s


class SpreadProvider:
    """One model at several addresses.

    An address that fails is left out, at first for a second. Then one call tries it, and it is back when that
    is answered. If all are left out, calls go to the one that is tried next, so that the lane sees the fault.
    """

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._replicas = [_Replica(address, provider) for address, provider in providers.items()]

    async def ask(self, request: Request) -> Reply:
        """Make one call, and another one where nobody can have read the first.

        Raises:
            ProviderError: as of the address that was called last.
        """
        untried = list(self._replicas)
        while True:
            # The least busy address that is not left out; one that is due to be tried comes first.
            at_s = asyncio.get_running_loop().time()
            if open_ones := [replica for replica in untried if replica.is_in(at_s)]:
                replica = min(open_ones, key=lambda each: (not each.left_out_s, each.in_flight))
            else:
                replica = min(untried, key=lambda each: each.again_at_s)
            untried.remove(replica)
            replica.in_flight += 1
            replica.trying = tries = bool(replica.left_out_s)
            try:
                reply = await replica.provider.ask(request)
            except ProviderError as error:
                if error.kind in _FAILURES:
                    replica.fail(asyncio.get_running_loop().time())
                else:
                    replica.left_out_s = 0.0  # it answered
                if not (error.never_sent and untried):
                    raise
            else:
                replica.left_out_s = 0.0
                reply.upstream = reply.upstream or replica.host
                return reply
            finally:
                replica.in_flight -= 1
                replica.trying &= not tries

    async def aclose(self) -> None:
        """Close every connection."""
        async with AsyncExitStack() as stack:
            for replica in self._replicas:
                stack.push_async_callback(replica.provider.aclose)
