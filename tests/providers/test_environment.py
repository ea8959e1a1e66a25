"""The way to a server, as the environment names it: proxies, and the certificates that are trusted."""

import shutil
import ssl
from pathlib import Path

import pytest
import yaml

from asyncbench.errors import ConfigError
from asyncbench.providers.environment import check_certificates, proxy_of
from tests.commands import asyncbench
from tests.providers.asking import asking
from tests.providers.raw_server import answering
from tests.sweep_files import problem_set

PROXY = "http://proxy.corp:3128"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"):
        for spelt in (name, name.upper()):
            monkeypatch.delenv(spelt, raising=False)


@pytest.mark.parametrize(
    ("variables", "url", "way"),
    [
        ({"HTTPS_PROXY": PROXY}, "https://a.test/v1", PROXY),
        ({"https_proxy": PROXY}, "https://a.test/v1", PROXY),
        ({"HTTPS_PROXY": PROXY}, "http://a.test/v1", None),
        ({"HTTP_PROXY": PROXY}, "http://a.test/v1", PROXY),
        ({"ALL_PROXY": PROXY}, "http://a.test/v1", PROXY),
        ({"all_proxy": PROXY}, "https://a.test/v1", PROXY),
        ({"ALL_PROXY": "http://other:1", "HTTPS_PROXY": PROXY}, "https://a.test", PROXY),
        ({"HTTPS_PROXY": "http://other:1", "https_proxy": PROXY}, "https://a.test", PROXY),
        ({"HTTPS_PROXY": ""}, "https://a.test", None),
        ({"HTTPS_PROXY": "proxy.corp:3128"}, "https://a.test", PROXY),
        ({"HTTPS_PROXY": "https://proxy.corp"}, "https://a.test", "https://proxy.corp:443"),
        ({"HTTPS_PROXY": "http://[fd00::1]:3128"}, "https://a.test", "http://[fd00::1]:3128"),
    ],
)
def test_a_proxy_stands_before_an_address_by_its_scheme(monkeypatch, variables, url, way):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_of(url)
    assert (proxy and proxy.url) == way


@pytest.mark.parametrize(
    ("no_proxy", "url", "straight"),
    [
        ("a.test", "https://a.test/v1", True),
        ("a.test", "https://deep.a.test", True),
        ("a.test", "https://ba.test", False),
        (".a.test", "https://deep.a.test", True),
        (".a.test", "https://a.test", True),
        ("*.a.test", "https://deep.a.test", True),
        ("A.TEST.", "https://a.test", True),
        ("a.test:443", "https://a.test", True),
        ("a.test:8443", "https://a.test", False),
        ("a.test:8443", "https://a.test:8443/v1", True),
        ("https://a.test", "https://a.test", True),
        ("b.test, a.test", "https://a.test", True),
        ("b.test a.test", "https://a.test", True),
        ("*", "https://a.test", True),
        ("b.test,*", "https://a.test", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.5/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3:8000", True),
        ("10.1.2.3:8000", "http://10.1.2.3:8000", True),
        ("10.1.2.3:8001", "http://10.1.2.3:8000", False),
        ("192.168.*", "http://192.168.7.8", True),
        ("fd00::/8", "http://[fd12::1]:8000", True),
        ("[fd12::1]", "http://[fd12::1]:8000", True),
        ("fd12::1", "http://[fd12::1]:8000", True),
        ("[fd12::1]:8000", "http://[fd12::1]:8000", True),
        ("[fd12::1]:8001", "http://[fd12::1]:8000", False),
        ("bücher.test", "https://xn--bcher-kva.test", True),
        ("", "https://a.test", False),
        # None of these is ever beyond a proxy.
        ("", "http://127.0.0.1:8000/v1", True),
        ("", "http://127.1.2.3", True),
        ("", "http://[::1]:8000", True),
        ("", "http://0.0.0.0:8000", True),
        ("", "http://localhost:8000", True),
        ("", "http://a.localhost", True),
        ("", "https://localhost.test", False),
        ("", "http://169.254.169.254/latest", True),
        ("", "http://metadata.google.internal/computeMetadata", True),
        ("", "http://10.0.0.1:8000", False),
    ],
)
def test_some_addresses_are_reached_past_the_proxy(monkeypatch, no_proxy, url, straight):
    monkeypatch.setenv("ALL_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxy_of(url) is None) is straight


def test_a_proxy_s_login_is_told_apart_from_its_address(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me%40corp:p%3Aw@proxy.corp:3128")
    proxy = proxy_of("https://a.test")
    assert proxy is not None
    assert (proxy.url, proxy.login) == (PROXY, ("me@corp", "p:w"))
    assert proxy.address_with_login == "http://me%40corp:p%3Aw@proxy.corp:3128"
    assert "p:w" not in repr(proxy)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("socks5://me:secret@proxy:1080", "names a proxy of the kind socks5"),
        ("socks5h://proxy:1080", "names a proxy of the kind socks5h"),
        ("socks4://proxy:1080", "names a proxy of the kind socks4"),
        ("http://", "holds no address of a proxy"),
        ("http://proxy:port", "holds no address of a proxy"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(monkeypatch, variable, value, why):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"^{variable} {why}") as refused:
        proxy_of("https://a.test")
    assert "secret" not in str(refused.value)


async def test_netrc_adds_nothing_at_any_door(adapter, server, opened, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("default login joe password netrc-secret-99\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.manner = answering(body=adapter.body)

    await opened(adapter.provider("http://elsewhere.test")).ask(asking())

    assert "basic" not in repr(server.received[0].headers).lower()


# ── certificates

WRONG = {
    "missing": (lambda _: None, "does not exist"),
    "empty": (lambda path: path.write_text(" \n"), "is empty"),
    "no PEM": (lambda path: path.write_bytes(b"\x30\x82\x01"), "holds no certificate in PEM"),
    "a directory": (lambda path: path.mkdir(), "is a directory"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_of_certificates_is_named(monkeypatch, tmp_path, wrong):
    make, why = WRONG[wrong]
    make(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match=f"SSL_CERT_FILE is .*ca.pem', which {why}.*unset it"):
        check_certificates()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda _: None, "does not exist"),
        (lambda path: path.write_text("x"), "is no directory"),
        (lambda path: path.mkdir(), "holds no certificate under its hash"),
    ],
)
def test_a_wrong_directory_of_certificates_is_named(monkeypatch, tmp_path, make, why):
    make(tmp_path / "certs")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "certs"))
    with pytest.raises(ConfigError, match=f"SSL_CERT_DIR is .*certs', which {why}"):
        check_certificates()


def test_certificates_that_can_be_read_are_fine(monkeypatch, tmp_path):
    usual = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    if not Path(usual).exists():
        pytest.skip("this machine has no certificates")
    shutil.copy(usual, tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")  # not needed beside it
    check_certificates()


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_a_command_names_what_is_wrong_before_anything_is_spent(tmp_path, command):
    problems = problem_set(tmp_path, trials=1)
    model = {"model": "http/m", "base_url": "http://127.0.0.1:9/v1"}
    sweep = {"name": "s", "problems": [str(problems)], "models": [model], "out": str(tmp_path / "out")}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(sweep))

    done = asyncbench(command, tmp_path / "s.yaml", env={"SSL_CERT_FILE": "/nope.pem"})

    assert done.returncode == 2
    assert "SSL_CERT_FILE is '/nope.pem', which does not exist" in done.stderr + done.stdout
    assert not (tmp_path / "out").exists()
