"""A simulator in a process of its own, for as long as it is needed."""

import http.client
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast
from urllib.parse import urlsplit

import orjson

from asyncbench.errors import ConfigError
from asyncbench.simulator.counts import Arrival, ServerSeconds, ServerStats
from asyncbench.simulator.settings import Settings, settings_json

START_TIMEOUT_S = 60.0  # large problem sets are read first
STOP_TIMEOUT_S = 10.0
STATS_TIMEOUT_S = 10.0


class Simulator:
    """A running simulator, seen from outside."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.url = url  # without /v1
        self.pid = process.pid

    def stats(self) -> ServerStats:
        """Return the server's counts; raises OSError when it does not answer."""
        return cast("ServerStats", self._page("/stats"))

    def seconds(self) -> ServerSeconds:
        """Return the work of its models' limits, second by second; raises OSError likewise."""
        return cast("ServerSeconds", self._page("/stats/seconds"))

    def arrivals(self) -> list[Arrival]:
        """Return when the last calls came and were answered; raises OSError likewise."""
        return [Arrival(**row) for row in self._page("/stats/arrivals")["arrivals"]]

    def _page(self, path: str) -> Any:  # JSON
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=STATS_TIMEOUT_S)
        try:
            connection.request("GET", path)
            return orjson.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def running(settings: Settings, *, timeout_s: float = START_TIMEOUT_S) -> Iterator[Simulator]:
    """Run a simulator for as long as the block lasts, which begins when it answers.

    It ends with the process that started it, too. Calls in flight lose their connection.

    Raises:
        ConfigError: it cannot start, or is not ready in time.
    """
    command = [sys.executable, "-m", "asyncbench.simulator", "--until-stdin-closes"]
    process = subprocess.Popen(  # noqa: S603  our own module, no shell, checked settings
        [*command, "--json-settings", settings_json(settings)],
        stdin=subprocess.PIPE,  # held open, never written to: its end is our end
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is for the run, which may still need answers
    )
    try:
        yield Simulator(process, _url(process, timeout_s))
    finally:
        _end(process)


def _url(process: subprocess.Popen[bytes], timeout_s: float) -> str:
    output = cast("IO[bytes]", process.stdout)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            raise ConfigError(
                f"the simulator was not ready within {timeout_s:g} s; give it smaller problem sets"
            )
    if not (line := output.readline()):
        raise ConfigError(f"the simulator ended with exit code {process.wait()} before it was ready")
    ready = orjson.loads(line)
    if "error" in ready:
        raise ConfigError(f"the simulator cannot start: {ready['error']}")
    return str(ready["url"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
