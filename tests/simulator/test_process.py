"""The simulator as a process: ready when it says so, gone with whoever started it."""

import asyncio
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from contextlib import ExitStack, closing

import aiohttp
import orjson
import psutil
import pytest

from asyncbench.errors import ConfigError
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings, parse_fault

BODY = {"model": "oracle", "messages": [{"role": "user", "content": "What is 10 + 10?"}]}
PARENT = """
import sys, time
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings
with running(Settings()) as simulator:
    print(simulator.url, flush=True)
    time.sleep(600)
"""


def open_port(url):
    place = urllib.parse.urlsplit(url)
    with closing(socket.socket()) as probe:
        return probe.connect_ex((place.hostname, place.port)) == 0


def wait_until_closed(url):
    """Return when nobody listens any more; the test's own time limit bounds it."""
    while open_port(url):
        time.sleep(0.02)


async def ask(url):
    headers = {"authorization": "Bearer k"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", data=orjson.dumps(BODY)) as response,
    ):
        return orjson.loads(await response.read())["choices"][0]["message"]["content"]


@pytest.mark.long
def test_it_answers_counts_and_stops(problems):
    with running(Settings(problems=(problems,))) as simulator:
        assert asyncio.run(ask(simulator.url)) == "20"
        assert simulator.stats()["delivered"] == 1

    assert not open_port(simulator.url)
    assert not psutil.pid_exists(simulator.pid)


@pytest.mark.long
async def test_it_can_be_started_from_an_async_program(problems):
    with ExitStack() as stack:
        simulator = await asyncio.to_thread(stack.enter_context, running(Settings(problems=(problems,))))
        assert await ask(simulator.url) == "20"
    assert not open_port(simulator.url)


@pytest.mark.long
def test_it_is_gone_when_the_block_fails():
    with pytest.raises(ZeroDivisionError), running(Settings()) as simulator:
        raise ZeroDivisionError

    assert not open_port(simulator.url)


@pytest.fixture
def python():
    """Start Python with arguments of ours; returns the process and its first line of output."""
    with ExitStack() as stack:

        def start_python(*arguments):
            command = [sys.executable, *arguments]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout
            return process, process.stdout.readline().decode().strip()

        yield start_python


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_on_a_signal(python, number):
    process, line = python("-m", "asyncbench.simulator")
    process.send_signal(number)

    assert process.wait() == 0
    assert orjson.loads(line)["simulated"] is True
    assert orjson.loads(line)["pid"] == process.pid


@pytest.mark.long
def test_settings_by_hand_are_checked(python):
    process, line = python("-m", "asyncbench.simulator", "--json-settings", '{"rmp": 600}')

    assert process.wait() == 2
    assert orjson.loads(line)["error"].startswith("simulator: rmp: ")


@pytest.mark.long
def test_it_dies_with_a_parent_that_was_killed(python):
    parent, url = python("-c", PARENT)
    assert open_port(url)
    parent.kill()

    wait_until_closed(url)


@pytest.mark.long
def test_a_port_in_use_is_a_configuration_error():
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        refused = pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}")
        with refused, running(Settings(port=port)):
            pass


@pytest.mark.long
def test_a_problem_set_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "my.csv").write_text("question,answer\n1+1,2\n")
    for name, reason in (("nowhere.parquet", "no such file"), ("my.csv", "this is text, not Parquet")):
        with (
            pytest.raises(ConfigError, match=f"{name}: {reason}"),
            running(Settings(problems=(tmp_path / name,))),
        ):
            pass


def test_one_that_is_not_ready_in_time_is_given_up_and_ended():
    with pytest.raises(ConfigError, match="not ready within 0 s"), running(Settings(), timeout_s=0):
        pass

    assert not [child for child in psutil.Process().children() if "asyncbench.simulator" in child.cmdline()]


@pytest.fixture
def many_files():
    """Let this process have 3,200 files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3_200:
        pytest.skip(f"this machine allows {hard} open files; the test needs 3,200")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3_200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
@pytest.mark.usefixtures("many_files")
def test_three_thousand_connections_are_held_at_once(problems):
    body = orjson.dumps(BODY)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: simulator\r\n"
        f"authorization: Bearer k\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    settings = Settings(problems=(problems,), faults=(parse_fault("stall=1"),))
    with running(settings) as simulator, ExitStack() as connections:
        place = urllib.parse.urlsplit(simulator.url)
        for _ in range(3_000):
            connection = socket.create_connection((place.hostname, place.port))
            connections.enter_context(connection).sendall(head.encode() + body)
        while simulator.stats()["in_flight"] < 3_000:
            time.sleep(0.02)

        assert simulator.stats()["max_in_flight"] == 3_000
