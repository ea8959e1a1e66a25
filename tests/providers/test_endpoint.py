"""An endpoint is whole before anything is sent to it, and keeps its key to itself."""

import pytest

from asyncbench.errors import ConfigError
from asyncbench.providers.anthropic.client import AnthropicProvider
from asyncbench.providers.endpoints import Endpoint
from asyncbench.providers.http import HttpProvider
from asyncbench.providers.openai.client import OpenAIProvider
from tests.providers.asking import ADAPTERS

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "",
        "http://",
        "http:///v1",
        "http://host:port/v1",
        "http://host:99999/v1",
    ],
)
def test_what_is_no_web_address_is_refused(url):
    with pytest.raises(ConfigError, match="base_url"):
        Endpoint(base_url=url, api_key=KEY)


@pytest.mark.parametrize("url", [None, "https://host", "http://localhost:8000/v1", "http://[::1]:8000/v1/"])
def test_web_addresses_are_taken(url):
    assert Endpoint(base_url=url, api_key=KEY).base_url == url


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", "sk schlüssel", "sk-ü", "a\r\nx-header: b"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key):
    with pytest.raises(ConfigError) as caught:
        Endpoint(base_url="https://host/v1", api_key=key)

    assert key.strip() not in str(caught.value)


def test_the_key_is_not_in_the_repr():
    assert KEY not in repr(Endpoint(base_url=None, api_key=KEY))


def test_the_http_provider_needs_an_address():
    with pytest.raises(ConfigError, match=r"no base_url\. Set one for the model"):
        HttpProvider(Endpoint(base_url=None, api_key=KEY), ADAPTERS[2].wire)


@pytest.mark.parametrize(
    ("adapter", "own"),
    [(OpenAIProvider, "https://api.openai.com/v1/"), (AnthropicProvider, "https://api.anthropic.com/")],
)
async def test_no_variable_of_the_environment_leads_calls_elsewhere(adapter, own, monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "https://elsewhere.test/v1")
    provider = adapter(Endpoint(base_url=None, api_key=KEY), ADAPTERS[0].wire)
    assert provider._url.startswith(own)
    await provider.aclose()
