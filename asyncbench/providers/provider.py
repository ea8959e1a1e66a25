"""Providers: one call in, one reply or one ProviderError out. SDKs are imported only when used."""

from collections.abc import Callable, Mapping
from typing import Protocol

from asyncbench.providers.endpoint import Endpoint
from asyncbench.providers.wire import Wire
from asyncbench.records import Reply, Request


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


def _openai(endpoint: Endpoint, wire: Wire) -> Provider:
    from asyncbench.providers.openai.client import OpenAIProvider

    return OpenAIProvider(endpoint, wire)


def _anthropic(endpoint: Endpoint, wire: Wire) -> Provider:
    from asyncbench.providers.anthropic.client import AnthropicProvider

    return AnthropicProvider(endpoint, wire)


def _http(endpoint: Endpoint, wire: Wire) -> Provider:
    from asyncbench.providers.http import HttpProvider

    return HttpProvider(endpoint, wire)


PROVIDERS: Mapping[str, Callable[[Endpoint, Wire], Provider]] = {
    "anthropic": _anthropic,
    "http": _http,
    "openai": _openai,
}
