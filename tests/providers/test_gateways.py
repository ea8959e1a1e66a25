"""Gateways that ask for headers, a query, a path or a certificate: each adapter gives them these."""

import shutil
import ssl
import subprocess
import traceback
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError, ErrorKind
from asyncbench.planning.preflight import keys_for
from asyncbench.providers import sdk
from asyncbench.providers.provider import open_batches, open_provider
from asyncbench.records import Timeouts
from tests.providers.asking import ADAPTERS, asking, failure_of
from tests.providers.raw_server import answering, raw_server

ENV = {"GW_KEY": "sk-0123456789abcdef", "GW_TEAM": "Basic cmVzZWFyY2g=", "GW_VERSION": "2026-11 & +/=é"}
HEADERS = {"X-Team": "GW_TEAM", "authorization": "GW_TEAM"}
QUERY = {"api-version": "GW_VERSION"}
CLAUDE = "claude-haiku-4-5"  # whom adapters ask, unless their door is not for it
WAYS = [
    pytest.param(adapter, door, id=f"{adapter.name}-{door or 'prepared'}")
    for adapter in ADAPTERS
    for door in (None, "sdk")
]


def model_id_of(adapter):
    return "gemini-3-flash-preview" if adapter.name == "google" else CLAUDE


def model_of(url, adapter, *, limits=None, **keys):
    entry = {
        "model": f"{adapter.name}/{model_id_of(adapter)}",
        "base_url": url + adapter.base,
        "key_env": "GW_KEY",
        "max_tokens": 50,
    }
    sweep = {"name": "s", "problems": ["p.parquet"], "models": [entry | keys], "limits": limits or {}}
    return sweep_from(sweep | {"out": "o"}).models[0]


def opening(model, env=ENV):
    return {"model": model, "key": keys_for([model], env)[model.alias], "simulator_url": None}


def asking_as(model):
    request = asking()
    return replace(request, trial=replace(request.trial, model=model))


def demanding(server, body):
    """Answer who brings the header and the query; refuse everybody else, as a gateway does."""

    async def manner(writer):
        received = server.received[-1]
        asked = (received.headers.get("x-team"), received.headers.get("authorization"))
        version = parse_qs(urlsplit(received.path).query).get("api-version")
        let_in = asked == (ENV["GW_TEAM"],) * 2 and version == [ENV["GW_VERSION"]]
        refused = {"error": {"message": f"Access denied for {asked} at {version}"}}
        await answering(200 if let_in else 403, body if let_in else refused)(writer)

    return manner


@pytest.mark.parametrize(("adapter", "door"), WAYS)
async def test_a_gateway_gets_the_headers_the_query_and_the_path_that_it_asks_for(
    server, opened, adapter, door
):
    server.manner = demanding(server, adapter.body)
    model = model_of(f"{server.url}/gate/team-a", adapter, door=door, headers=HEADERS, query=QUERY)
    provider = opened(open_provider(**opening(model)))
    assert [(await provider.ask(asking_as(model))).text for _ in range(2)] == ["42", "42"]
    path = adapter.path.replace(CLAUDE, model_id_of(adapter))
    assert {urlsplit(one.path).path for one in server.received} == {f"/gate/team-a{path}"}

    without = opened(open_provider(**opening(replace(model, query={}))))
    refused = await failure_of(without, asking_as(model))
    assert "Access denied for ('[key]', '[key]') at None" in refused.message


async def test_batches_bring_them_beside_a_query_of_their_own(server):
    server.manner = demanding(server, {"data": [], "has_more": False})
    for adapter in ADAPTERS[:2]:
        api = open_batches(**opening(model_of(server.url, adapter, headers=HEADERS, query=QUERY)))
        assert await api.recent(None) == []
        await api.aclose()
    assert all("limit=" in one.path for one in server.received)


def test_a_row_of_limits_gives_them_to_each_model_of_an_address():
    url, adapter = "https://gateway.test/x", ADAPTERS[0]
    row = {
        "headers": {"x-team": "ROW", "X-Zone": "ROW"},
        "query": {"v": "ROW"},
        "client_cert": {"cert_env": "ROW"},
    }
    model = model_of(url, adapter, limits={url + adapter.base: row}, headers={"X-Team": "OWN"})
    assert model.headers == {"X-Team": "OWN", "X-Zone": "ROW"}
    assert (model.query, model.client_cert.cert_env) == ({"v": "ROW"}, "ROW")


def test_variables_that_are_not_set_are_told_with_what_they_hold():
    model = model_of("https://gateway.test", ADAPTERS[0], headers={"X-Team": "TEAM"}, query={"v": "VERSION"})
    with pytest.raises(
        ConfigError, match=r"TEAM is not set \(header X-Team of openai/\S+\); VERSION .*query v"
    ):
        keys_for([model], {"GW_KEY": "k"})
    broken = opening(model, {"GW_KEY": "k", "TEAM": "re\nsearch", "VERSION": "1"})
    with pytest.raises(ConfigError, match="the value of the header X-Team holds a line break") as caught:
        open_provider(**broken)
    assert "search" not in str(caught.value)


# ── certificates


@pytest.fixture(scope="module")
def pems(tmp_path_factory):
    """A server's certificate, and a client's: with its key in one file, and with a locked key in another."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    for name, lock in (("server", "-nodes"), ("client", "-nodes"), ("locked", "-passout pass:opensesame")):
        names = "subjectAltName=IP:127.0.0.1,DNS:elsewhere.test"
        made = f"req -x509 -newkey rsa:2048 -days 2 -subj /CN={name} -addext {names} {lock}"
        files = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
        subprocess.run([openssl, *made.split(), *files], check=True, capture_output=True)
    both = (folder / "client.pem").read_text() + (folder / "client.key").read_text()
    (folder / "both.pem").write_text(both)
    return folder


def trusted(pems, monkeypatch):
    """Return what a server shows, whom everybody trusts from now on."""
    monkeypatch.setenv("SSL_CERT_FILE", str(pems / "server.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pems / "server.pem", pems / "server.key")
    return tls


@pytest.fixture
async def gateway(pems, monkeypatch):
    """A server that lets in who shows one of the client's certificates."""
    tls = trusted(pems, monkeypatch)
    tls.verify_mode = ssl.CERT_REQUIRED
    for name in ("client.pem", "locked.pem"):
        tls.load_verify_locations(pems / name)
    async with raw_server(tls) as server:
        yield server
    sdk._trusted.cache_clear()


ONE_FILE = {"cert_env": "CERT"}
TWO_FILES = {"cert_env": "CERT", "key_env": "CERT_KEY", "password_env": "CERT_PASSWORD"}


@pytest.mark.long
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
async def test_a_server_that_asks_for_a_certificate_is_shown_ours(gateway, pems, opened, adapter):
    gateway.manner = answering(body=adapter.body)
    locked = {"CERT": pems / "locked.pem", "CERT_KEY": pems / "locked.key", "CERT_PASSWORD": "opensesame"}
    for named, files in ((ONE_FILE, {"CERT": pems / "both.pem"}), (TWO_FILES, locked)):
        model = model_of(gateway.url, adapter, client_cert=named)
        provider = opened(open_provider(**opening(model, ENV | {name: str(f) for name, f in files.items()})))
        assert (await provider.ask(asking_as(model))).text == "42"

    stranger = model_of(gateway.url, adapter)
    refused = await failure_of(opened(open_provider(**opening(stranger))), asking_as(stranger))
    assert len(gateway.received) == 2, refused


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({"CERT": "nowhere.pem"}, "No such file", id="no-file"),
        pytest.param({"CERT": "client.key"}, "NO_START_LINE|PEM lib|PEM_LIB", id="no-certificate"),
        pytest.param({"CERT_PASSWORD": "wrong-word"}, "client_cert", id="a-wrong-password"),
    ],
)
def test_what_is_no_certificate_is_refused_by_the_names_of_its_variables(pems, adapter, files, reason):
    good = {"CERT": "locked.pem", "CERT_KEY": "locked.key"}
    env = {name: str(pems / path) for name, path in (good | files).items() if name != "CERT_PASSWORD"}
    env |= ENV | {"CERT_PASSWORD": files.get("CERT_PASSWORD", "opensesame")}
    model = model_of("https://127.0.0.1:1", adapter, client_cert=TWO_FILES)
    with pytest.raises(ConfigError, match=reason) as caught:
        open_provider(**opening(model, env))
    assert "CERT, CERT_KEY, CERT_PASSWORD lead to no certificate" in str(caught.value)
    assert str(pems) not in str(caught.value)


# ── proxies

BEHIND = "https://elsewhere.test"


@pytest.fixture
def proxy(server, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", server.url.replace("//", "//me:opensesame@"))
    return server


@pytest.mark.parametrize("adapter", ADAPTERS[:2], ids=lambda adapter: adapter.name)
async def test_a_proxy_leads_to_a_server_with_tls(proxy, pems, opened, monkeypatch, adapter):
    tls = trusted(pems, monkeypatch)

    async def leading(writer):
        if proxy.received[-1].path != "elsewhere.test:443":
            return await answering(body=adapter.body)(writer)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return await writer.start_tls(tls)

    proxy.manner = leading
    provider = opened(adapter.provider(BEHIND))
    for _ in range(2):
        assert (await provider.ask(asking())).text == "42"
    assert [one.path for one in proxy.received] == ["elsewhere.test:443", adapter.path, adapter.path]
    assert adapter.key_header not in proxy.received[0].headers


@pytest.mark.parametrize("adapter", [*ADAPTERS[:2], ADAPTERS[3]], ids=lambda adapter: adapter.name)
@pytest.mark.parametrize(
    ("status", "kind"), [(407, ErrorKind.AUTH), (403, ErrorKind.AUTH), (502, ErrorKind.UNREACHABLE)]
)
async def test_what_a_proxy_turns_away_was_never_sent(proxy, opened, adapter, status, kind):
    proxy.manner = answering(status, b"who are you, opensesame?")
    failed = await failure_of(opened(adapter.provider(BEHIND)))
    assert (failed.kind, failed.may_have_been_billed, failed.never_sent) == (kind, False, True)
    assert f"the proxy opens no way to the server: HTTP {status}" in failed.message
    assert "opensesame" not in "".join(traceback.format_exception(failed))


async def test_a_server_that_makes_no_connection_is_never_billed(server, opened, adapter):
    """It takes connections, and says nothing of TLS."""
    url, brief = server.url.replace("http:", "https:"), Timeouts(total=0.3)
    failed = await failure_of(opened(adapter.provider(url, timeouts=brief)))
    assert (failed.kind, failed.may_have_been_billed) == (ErrorKind.UNREACHABLE, False)
    assert failed.message == "no connection within timeouts.total (0.3 s)"
