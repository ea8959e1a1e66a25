"""Who may ask a server of `asyncbench view`, how it begins and how it ends."""

import asyncio
import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from asyncbench import serve_view
from asyncbench.page.live.serving import _redirect_to
from asyncbench.page.writing import LIVE_POLICY
from tests.commands import CLEAN, asyncbench
from tests.page.conftest import chromium
from tests.page.live.conftest import LiveClient, serving
from tests.page.made import make_night
from tests.processes import until

ADDRESSES = ("/", "/app.js", "/vega.js", "/style.css", "/now", "/blocks/head", "/trials", "/trial/x", "/no")


def test_the_token_becomes_a_cookie_and_leaves_the_address(live):
    assert live.welcome.status == 200
    assert b'content="0; url=/"' in live.welcome.body
    said = live.welcome.headers["Set-Cookie"]
    assert "HttpOnly" in said
    assert "SameSite=Strict" in said
    assert live.get("/").status == 200


def test_the_token_works_once(night):
    with serving(night) as server:
        again = server.get(server.address, stranger=True)
        assert again.status == 403
        assert b"again" in again.body
        assert server.get(server.address).status == 200  # of the browser that opened it
        assert server.get("/").status == 200
        assert LiveClient(server.address).welcome.status == 403


def test_no_program_sees_the_secret_in_the_words_that_start_a_browser(night, tmp_path, monkeypatch):
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\nstat -c %a "$file" > {seen}.mode\n'
        f'cp "$file" {seen}.html\necho "$@" > {seen}\n'
    )
    browser.chmod(0o700)
    monkeypatch.setitem(CLEAN, "BROWSER", f"{browser} %s")
    with serving(night, browser=True) as server:
        until(seen.exists)
        token = server.address.partition("token=")[2]
        words = until_said(seen)
        assert words.startswith("file://")
        assert token not in words
        assert Path(f"{seen}.mode").read_text() == "600\n"
        assert f'url={server.address}"' in Path(f"{seen}.html").read_text()
    assert not Path(words.removeprefix("file://")).exists()


def until_said(path):
    until(lambda: path.read_text() != "")
    return path.read_text().strip()


GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(GET + b"Content-Length: x\r\n\r\n", id="length"),
        pytest.param(GET + b"Cookie: asyncbench-%d=\xff\xfe\r\n\r\n", id="cookie"),
        pytest.param(GET + b"X: " + b"a" * 100_000 + b"\r\n\r\n", id="too long"),
        pytest.param(GET + b"Expect: nonsense\r\n\r\n", id="expect"),
        pytest.param(GET + b"Host: b\r\n\r\n", id="two hosts"),
        pytest.param(GET.replace(b"/ ", b"/\0 ") + b"\r\n", id="null"),
        pytest.param(GET.replace(b"/ ", b"http://[::bad ") + b"\r\n", id="address"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        pytest.param(b"G\r\n", id="no HTTP"),
    ],
)
def test_what_is_no_request_is_refused_and_prints_nothing(night, sent):
    with serving(night) as server:
        port = int(server.base.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(sent.replace(b"%d", b"%d" % port))
            assert b" 4" in stranger.recv(100)[:13]
        assert server.end() == 0
        assert server.output.count("\n") == 2


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_the_cookie_everything_is_refused(live, path):
    refused = live.get(path, stranger=True)
    assert refused.status == 403
    assert b"asyncbench view" in refused.body
    assert live.get(path, stranger=True, Cookie=f"asyncbench-{live.base[-5:]}=guessed").status == 403
    assert live.get("/?token=guessed", stranger=True).status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1"])
def test_another_host_name_is_refused_though_it_leads_here(live, host):
    port = live.base.rpartition(":")[2]
    assert live.get("/now", Host=host.format(port=port)).status == 403
    assert live.get("/now", Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_it_only_shows(live, method):
    assert live.get("/now", method=method).status == 405


@pytest.mark.parametrize("path", ADDRESSES)
def test_every_answer_keeps_the_browser_to_this_server(live, path):
    for answer in (live.get(path), live.get(path, stranger=True)):
        assert answer.headers["Content-Security-Policy"] == LIVE_POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] in ("no-store", "private, no-cache")
    assert "frame-ancestors 'none'" in LIVE_POLICY
    assert "unsafe" not in LIVE_POLICY


@pytest.mark.long
def test_ctrl_c_ends_it_quietly_and_no_file_is_left(tmp_path, monkeypatch):
    folder, room = make_night(tmp_path / "night"), tmp_path / "room"
    room.mkdir()
    monkeypatch.setitem(CLEAN, "TMPDIR", str(room))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with serving(folder) as server:
        server.block("loads")
        server.get("/trials?disagree=1")
        assert server.end() == 0
        assert server.output.count("\n") == 2
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert [*room.iterdir()] == []


def test_a_program_gets_its_signals_back(night):
    async def served():
        before = signal.getsignal(signal.SIGINT)
        server = asyncio.create_task(serve_view(night, open_browser=False))
        while signal.getsignal(signal.SIGINT) is before:
            await asyncio.sleep(0.01)
            assert not server.done()
        os.kill(os.getpid(), signal.SIGINT)
        await server
        return before, signal.getsignal(signal.SIGINT)

    before, after = asyncio.run(served())
    assert after is before


def test_it_can_be_ended_while_it_counts(night):
    with serving(night) as server:
        assert server.end() == 0
        assert "Traceback" not in server.output


def test_what_cannot_be_served_is_told(tmp_path, night):
    nothing = asyncbench("view", tmp_path, "--no-browser")
    assert (nothing.returncode, "is not a results folder" in nothing.stderr) == (2, True)
    unknown = asyncbench("view", night, "--models", "nobody", "--no-browser")
    assert (unknown.returncode, "--models nobody" in unknown.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = asyncbench("view", night, "--port", port, "--no-browser")
    assert (refused.returncode, f"cannot listen on port {port}" in refused.stderr) == (2, True)


def test_a_damaged_part_is_told_at_the_blocks_that_read_it(tmp_path):
    folder = make_night(tmp_path / "night")
    part = next(folder.glob("trials/**/*.parquet"))
    spoiled = bytearray(part.read_bytes())
    spoiled[200] ^= 1
    part.write_bytes(spoiled)
    with serving(folder) as server:
        answer = server.block("head")
        assert answer.status == 500
        assert b"is damaged" in answer.body


def test_a_folder_that_is_gone_is_told_and_what_was_counted_stays(tmp_path):
    folder = make_night(tmp_path / "night")
    with serving(folder) as server:
        head = server.block("head").value
        assert server.get("/trials").status == 200
        shutil.rmtree(folder)
        until(lambda: server.get("/now").value["trouble"])
        assert server.get("/trials").status in (400, 500, 503)
        assert server.block("head").value == head


@pytest.mark.long
def test_a_browser_that_a_file_leads_here_shows_the_page_also_when_it_is_loaded_again(night):
    with serving(night, visited=False) as server, chromium() as browser, _redirect_to(server.address) as file:
        page = browser.new_page()
        page.goto(file)
        for _ in range(2):
            page.wait_for_selector("html[data-ready=yes]")
            assert page.url == f"{server.base}/"
            page.reload()
