"""Who may ask a server of `asyncbench view`, how it begins and how it ends."""

import asyncio
import os
import shutil
import signal
import socket

import pytest

from asyncbench import serve_view
from asyncbench.page import LIVE_POLICY
from tests.commands import CLEAN, asyncbench
from tests.live.conftest import serving
from tests.page.made import make_night
from tests.processes import until

ADDRESSES = ("/", "/app.js", "/vega.js", "/style.css", "/now", "/blocks/head", "/trials", "/trial/x", "/no")


def test_the_token_becomes_a_cookie_and_leaves_the_address(live):
    assert (live.welcome.status, live.welcome.headers["Location"]) == (303, "/")
    said = live.welcome.headers["Set-Cookie"]
    assert "HttpOnly" in said
    assert "SameSite=Strict" in said
    assert live.get("/").status == 200


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
