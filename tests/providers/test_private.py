"""The private names that `private` lists are in the libraries that are installed, and do what it says."""

from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from types import SimpleNamespace

import aiohttp
import anthropic
import openai
import pytest
from aiohttp.client_proto import ResponseHandler

from asyncbench.errors import ConfigError
from asyncbench.providers import private

CLIENTS = [openai.AsyncOpenAI, anthropic.AsyncAnthropic]


@pytest.mark.parametrize("package", private.READ_IN)
def test_the_release_in_which_they_were_read_is_of_the_installed_generation(package):
    """A new generation is read anew: then `READ_IN` names its release."""
    if package == "botocore":
        pytest.importorskip("botocore")
    assert version(package).split(".")[0] == private.READ_IN[package].split(".")[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_headers_and_query_replace_those_of_the_environment(client, monkeypatch):
    for vendor in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "X-Elsewhere: yes")
    made = client(api_key="none", default_query={"tenant": "elsewhere"})
    private.set_defaults(made, headers={"X-Team": "math"}, query={"tenant": "ours"})
    assert made.default_headers["X-Team"] == "math"
    assert "X-Elsewhere" not in made.default_headers
    assert dict(made.default_query) == {"tenant": "ours"}


@pytest.mark.parametrize(
    "lacking", [{"headers": {"X-Team": "math"}, "query": {}}, {"headers": {}, "query": {"a": "b"}}]
)
def test_a_client_that_would_not_send_them_is_refused(lacking):
    client = SimpleNamespace(default_headers={}, default_query={})
    with pytest.raises(ConfigError, match=r"does not take the `headers` and `query` of a model as expected"):
        private.set_defaults(client, **lacking)


async def test_connections_of_aiohttp_have_the_names_that_ours_override():
    connector = aiohttp.TCPConnector()
    protocol = ResponseHandler(loop=connector._loop)
    assert [name for name in private.CONNECTOR if not hasattr(connector, name)] == []
    assert [name for name in private.PROTOCOL if not hasattr(protocol, name)] == []
    await connector.close()


def test_keys_of_botocore_are_those_found_just_now():
    credentials = pytest.importorskip("botocore.credentials")
    ends = datetime.now(UTC) + timedelta(minutes=5)
    keys = credentials.RefreshableCredentials(
        "id", "secret", "token", ends, lambda: pytest.fail("made anew"), "sso"
    )
    assert private.found_keys(keys).access_key == "id"
    assert private.expiry(keys) == ends


def test_programs_of_botocore_run_by_ours():
    botocore = pytest.importorskip("botocore.session")
    private.run_programs_by(session := botocore.Session(), dict)
    programs = session.get_component("credential_provider").get_provider("custom-process")
    assert vars(programs)["_popen"] is dict
