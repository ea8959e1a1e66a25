"""The simulator in the process of the test: the SDKs talk to its handlers, and only sockets are left out.

What is sent and what comes back are the bytes of HTTP messages; a connection that breaks breaks where it
would. Time is virtual: who waits puts it forward, for the simulator as well.
"""

import asyncio
import queue
import threading
from contextlib import contextmanager, suppress
from email.utils import formatdate
from functools import cache
from typing import Any

import aiohttp
import httpx2
import orjson
import pytest
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from asyncbench.lanes.batches.context import BatchClock
from asyncbench.providers import sdk
from asyncbench.providers.calls import current_call
from asyncbench.simulator.batches.results import executed_path
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.settings import Settings
from tests.servers.vendor_batches import VendorFault, VendorServer

HOST = "simulator.invalid"
BEGIN_S = 1_800_000_000.0  # of every night, Unix seconds


class _Protocol(BaseProtocol):
    """What a request asks of its connection: there is none."""

    ssl_context = peername = sockname = transport = None
    max_field_size = max_line_length = 8190
    max_headers = 128


class _Written(AbstractStreamWriter):
    """What the simulator wrote of a response."""

    def __init__(self):
        self.status, self.headers, self.body, self.ended = 0, [], [], False

    async def write_headers(self, status_line, headers):
        self.status = int(status_line.split()[1])
        self.headers = [(name, value) for name, value in headers.items()]

    async def write(self, chunk):
        self.body.append(bytes(chunk))

    async def write_eof(self, chunk=b""):
        self.body.append(bytes(chunk))
        self.ended = True

    async def drain(self):
        pass

    def enable_compression(self, encoding="deflate", strategy=None):
        raise NotImplementedError

    def enable_chunking(self):
        pass


class _Body(httpx2.AsyncByteStream):
    """A body as it comes over a connection: whole, or broken off."""

    def __init__(self, written):
        self._written = written

    async def __aiter__(self):
        for chunk in self._written.body:
            yield chunk
        told = dict(self._written.headers).get("Content-Length")
        short = told is not None and int(told) > sum(map(len, self._written.body))
        if short or not self._written.ended:
            raise httpx2.ReadError("the connection broke") from aiohttp.ClientPayloadError("it broke")


class Transport(httpx2.AsyncBaseTransport):
    """Hands the requests of an SDK to the simulator."""

    def __init__(self, server, broken):
        self._server, self.broken = server, broken

    async def handle_async_request(self, request):
        call = current_call()
        call.sent(reused=False)
        call.handed_over = True
        written = _Written()
        body = b"".join([piece async for piece in request.stream])
        try:
            await self._server(self._received(request, body, written))
        except Exception as error:
            self.broken.append(error)
            raise
        if not written.status:
            raise httpx2.ReadError("no answer") from aiohttp.ServerDisconnectedError()
        call.began(dict(written.headers))
        return httpx2.Response(written.status, headers=written.headers, stream=_Body(written))

    def _received(self, request, body, written):
        loop = asyncio.get_running_loop()
        protocol = _Protocol(loop)
        payload = aiohttp.StreamReader(protocol, 2**30, loop=loop)
        payload.feed_data(body)
        payload.feed_eof()
        headers = CIMultiDictProxy(CIMultiDict(request.headers.multi_items()))
        path = request.url.raw_path.decode()
        message = RawRequestMessage(
            request.method,
            path,
            aiohttp.HttpVersion11,
            headers,
            (),
            False,
            None,
            False,
            False,
            URL(path, encoded=True),
        )
        task = asyncio.current_task()
        request_of: Any = web.BaseRequest  # our protocol has what it asks for
        return request_of(message, payload, protocol, written, task, loop, client_max_size=2**30)


class VirtualClock:
    """The simulator's clock, which stands still unless somebody waits."""

    def __init__(self):
        self.ahead_s = 0.0

    def now(self):
        return BEGIN_S + self.ahead_s

    def date(self):
        return formatdate(self.now(), usegmt=True)

    def forward(self, seconds):
        self.ahead_s += seconds


@cache
def _questions(problems):
    return Questions([problems])


class Simulated:
    """A simulator of one night's own, in this process."""

    def __init__(self, problems, folder, **settings):
        self.problems, self.url = problems, f"http://{HOST}"
        self._server = VendorServer(
            Settings(problems=(problems,), folder=folder, **settings), _questions(problems), {}
        )
        self.service = self._server._service
        self.broken = []  # what its handlers raised: faults of the simulator's own
        self.clock = self.service.__dict__["clock"] = VirtualClock()

    @contextmanager
    def reached(self):
        """Let the SDKs that are opened meanwhile reach this simulator."""

        def client(_transport):
            return httpx2.AsyncClient(transport=Transport(self._server, self.broken), timeout=None)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sdk.Transport, "client", client)
            patch.setattr(sdk.SdkProvider, "builds_all", True)
            yield

    @contextmanager
    def listening(self):
        """Serve over real sockets, from a thread of its own, while the body lasts."""

        async def serve():
            loop = asyncio.get_running_loop()
            http = web.Server(self._server, handler_cancellation=True, access_log=None)
            listener = await loop.create_server(http, "127.0.0.1", 0)
            told.put((loop, stopped := asyncio.Event(), listener.sockets[0].getsockname()[1]))
            await stopped.wait()
            listener.close()
            await http.shutdown(0.1)

        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        loop, stopped, port = told.get(timeout=30)
        self.url = f"http://127.0.0.1:{port}"
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join()

    # ── the truth ────────────────────────────────────────────────────────────────────────────

    def batches(self):
        """Return the batches that there are, or were; of those that have ended the results are written."""
        asyncio.run(self.service.truth())
        now, stored = self.clock.now(), [*self.service.storage.batches.values()]
        return [batch for batch in stored if self.service._exists(batch, batch.vendor, batch.workspace, now)]

    def executed(self, batch):
        """Return what was run of a batch."""
        path = executed_path(batch, self.service.storage)
        return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []

    def told(self, batch):
        """Return the custom ids of which a line can be read."""
        files = (
            batch.outcome.files.values()
            if batch.outcome and VendorFault.FILE_EXPIRED not in batch.met
            else ()
        )
        return {told for file in files for told in _custom_ids(self.service.storage.path(file))}

    def key_of(self, batch):
        """Return the key of the part that a batch was made of."""
        with self.service.storage.path(batch.input_file_id).open("rb") as lines:
            return orjson.loads(lines.readline())["custom_id"][32:]


def _custom_ids(path):
    for line in path.read_bytes().split(b"\n"):
        with suppress(orjson.JSONDecodeError):
            yield orjson.loads(line)["custom_id"]


class Waiting(BatchClock):
    """A clock that is put forward, with the simulator's, by who waits."""

    def __init__(self, simulated, *, wrong_s=0.0):
        super().__init__()
        self._clock = simulated.clock
        self.wrong_s = wrong_s  # by which the computer's clock is ahead of the simulator's

    def now(self):
        return self._clock.now() + self.wrong_s

    async def sleep(self, seconds):
        self._clock.forward(seconds)
        await asyncio.sleep(0)
