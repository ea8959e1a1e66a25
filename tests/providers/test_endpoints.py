"""The table of endpoints is whole, and every row means something to the rest."""

import re
from datetime import UTC, datetime

import pytest

from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.providers.endpoints import Endpoint, is_simulated, known_endpoints
from asyncbench.providers.prices import published, vendor_of
from asyncbench.providers.provider import PROVIDERS, WIRES
from tests.rows import each_row

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
ROWS = sorted(known_endpoints().keys() - {"python"})  # a function has no server
OF_THE_FORMAT = {"openai": {"chat", "completions", "responses"}, "anthropic": {"messages"}}
OF_THE_FORMAT["http"] = OF_THE_FORMAT["openai"]
OF_THE_FORMAT["azure"] = {"chat", "responses"}
OF_THE_FORMAT["bedrock"] = OF_THE_FORMAT["vertex-anthropic"] = OF_THE_FORMAT["anthropic"]
OF_THE_FORMAT["google"] = OF_THE_FORMAT["vertex"] = {"contents"}


def model(name, **keys):
    form = known_endpoints()[name].base_url_form
    address = {"base_url": re.sub("[A-Z]+", "mine", form).replace(":mine", ":8000")} if form else {}
    family = known_endpoints()[name].family or "gemini"
    entry = {"model": f"{name}/some-{family}-model", "max_tokens": 9, **address, **keys}
    return sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry]}).models[0]


@each_row("name", ROWS)
def test_a_row_names_an_adapter_and_wire_formats_that_it_can_carry(name):
    row = known_endpoints()[name]
    assert row.via in PROVIDERS
    assert set(row.apis) <= set(WIRES) & OF_THE_FORMAT[row.via]
    assert len(set(row.apis)) == len(row.apis)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ROWS if known_endpoints()[name].prices])
def test_a_vendor_that_a_row_names_is_in_the_price_table_and_sells_models(name):
    assert published(str(known_endpoints()[name].prices), moment=AT)


@each_row("name", ROWS)
def test_a_base_url_is_a_web_address_without_a_slash_at_its_end(name):
    row = known_endpoints()[name]
    assert not (row.base_url and row.base_url_form), "its own, or one to give"
    if row.base_url:
        Endpoint(base_url=row.base_url, api_key="")
        assert not row.base_url.endswith("/")
        assert row.base_url.startswith("https://") or row.key_env is None, "a key over an open line"


@each_row("name", ROWS)
def test_every_row_can_be_named_in_a_sweep(name):
    row, asked = known_endpoints()[name], model(name)
    assert (asked.api, asked.simulated, asked.key_env) == (row.api, row.simulated, row.key_env)
    assert asked.base_url == row.base_url or row.base_url_form


def test_rows_ask_for_a_key_unless_they_are_on_this_machine():
    keyless = {name for name in ROWS if (row := known_endpoints()[name]).key_env is row.credentials is None}
    local = {"http", "ollama", "lmstudio", "vllm", "simulated", "simulated-anthropic", "simulated-http"}
    assert keyless == local


def test_a_row_sets_how_many_calls_are_in_flight_where_no_header_tells_limits():
    assert model("deepseek").limits.concurrency == known_endpoints()["deepseek"].concurrency == 400
    assert model("ollama").limits.concurrency == 4
    assert model("ollama", concurrency=2).limits.concurrency == 2
    assert model("openai").limits.concurrency is None  # as many as its limits need


def test_azure_is_asked_nowhere_but_at_the_address_given():
    with pytest.raises(ConfigError, match=r"base_url.*https://RESOURCE\.openai\.azure\.com/openai/v1"):
        sweep_from({"name": "s", "problems": ["p"], "models": ["azure/my-deployment"]})


@pytest.mark.parametrize(
    ("name", "base_url", "vendor"),
    [
        pytest.param("openai", None, "openai", id="the-sdk's-own"),
        pytest.param("openai", "http://localhost:8000/v1", None, id="somebody-else"),
        pytest.param("xai", "https://api.x.ai/v1", "x-ai", id="the-row's-own"),
        pytest.param("xai", "https://api.x.ai/v1/", "x-ai", id="slash-at-the-end"),
        pytest.param("azure", "https://mine-2.openai.azure.com/openai/v1", "azure", id="azure"),
        pytest.param("azure", "https://a.b.openai.azure.com/openai/v1", None, id="two-names"),
        pytest.param("azure", "https://evil.com/openai.azure.com/openai/v1", None, id="another-host"),
        pytest.param("http", "http://localhost:8000/v1", None, id="of-one's-own"),
    ],
)
def test_published_prices_hold_at_the_vendors_own_address_alone(name, base_url, vendor):
    asked = model(name, **({"base_url": base_url} if base_url else {}))
    assert vendor_of(asked) == vendor


def test_simulated_rows_are_known_as_such():
    assert is_simulated("simulated-http")
    assert not is_simulated("http")
    assert not is_simulated("of an imported file")
