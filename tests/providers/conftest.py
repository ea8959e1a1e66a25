"""What the tests of providers share: a server without manners, and every adapter to call it with."""

import os
from collections.abc import AsyncIterator, Callable

import pytest

from asyncbench.providers import unasked
from asyncbench.providers.provider import Provider
from tests.providers.asking import ADAPTERS
from tests.providers.raw_server import RawServer, raw_server


@pytest.fixture(autouse=True)
def _trusted_servers(monkeypatch):
    """Connections are used again at once; how servers earn that, `test_unasked_responses` holds."""
    monkeypatch.setattr(unasked, "LISTENED_TO", 0)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    """The SDKs read proxies, addresses and headers from the environment: here there are none."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        yield running


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.name)
def adapter(request):
    return request.param


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[Provider], Provider]]:
    """Providers given to it are closed when the test is over."""
    providers: list[Provider] = []

    def note(provider: Provider) -> Provider:
        providers.append(provider)
        return provider

    yield note
    for provider in providers:
        await provider.aclose()


@pytest.fixture
async def provider(adapter, server, opened):
    """The adapter, pointed at the server."""
    return opened(adapter.provider(server.url))
