"""A server of `asyncbench view`, in its own process where that is shown, and a client with its cookie."""

import gzip
import json
import signal
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar
from typing import IO, Any, NamedTuple

import pytest

from tests.commands import CLEAN, ROOT
from tests.page.conftest import blocks as blocks, night as night, simulated as simulated
from tests.processes import HANG_S, Forked, until

__all__ = ["LiveClient", "LiveServer", "serving"]


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        packed = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Show a redirect as what it is."""


class LiveClient:
    """What asks a server that is running."""

    def __init__(self, address: str, *, visited: bool = True) -> None:
        self.address = address
        self.base = self.address.partition("/?")[0]
        self.jar = CookieJar()
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar), _Stays)
        self._stranger = urllib.request.build_opener(_Stays)
        if visited:
            self.welcome = self.get(self.address)

    def get(self, path: str, *, stranger: bool = False, method: str = "GET", **headers: str) -> Answer:
        """Return the answer to a request, with the cookie unless it is a stranger's."""
        url = path if path.startswith("http") else self.base + path
        request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310  our own server
        opener = self._stranger if stranger else self._browser
        try:
            with opener.open(request, timeout=HANG_S) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def block(self, name: str) -> Any:
        """Return a block, once it is counted."""
        until(lambda: self.get(f"/blocks/{name}").status != 202)
        return self.get(f"/blocks/{name}")


class LiveServer(LiveClient):
    """A server that is running in a process of its own."""

    def __init__(self, process: Forked, said: IO[str], *, visited: bool) -> None:
        self.process, self._said = process, said
        until(lambda: "http://" in self.output or process.poll() is not None)
        assert "http://" in self.output, self.output
        address = next(word for word in self.output.split() if word.startswith("http://"))
        super().__init__(address, visited=visited)

    @property
    def output(self) -> str:
        self._said.seek(0)
        return self._said.read()

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait()


@contextmanager
def serving(*words: object, browser: bool = False, visited: bool = True) -> Iterator[LiveServer]:
    """Run `asyncbench view` for a folder and options; Ctrl-C ends it, quietly.

    `browser`: have it open one; `visited`: open its address, which works once.
    """
    with tempfile.TemporaryFile("w+") as said:
        files = {"stdout": said.fileno(), "stderr": said.fileno()}
        flags = () if browser else ("--no-browser",)
        process = Forked("asyncbench", "view", *words, *flags, **files, cwd=ROOT, env=CLEAN)
        try:
            yield LiveServer(process, said, visited=visited)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


@pytest.fixture(scope="session")
def live(night) -> Iterator[LiveServer]:
    """A server of the night, for tests that leave it as it is."""
    with serving(night) as server:
        yield server
