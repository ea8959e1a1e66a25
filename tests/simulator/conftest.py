"""A small problem set, and simulators on real sockets to ask it of."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.simulator.counts import ServerStats
from asyncbench.simulator.serving import listening
from asyncbench.simulator.settings import Settings
from tests.servers.vendor_batches import VendorServer

ANSWERS = {f"What is {n} + {n}?": str(2 * n) for n in range(10, 60)} | {"What is 12345678 + 1?": "12345679"}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
MORE_PATHS = {"completions": "/v1/completions", "responses": "/v1/responses"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """All of a response, read."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    content: bytes

    @property
    def body(self):
        return orjson.loads(self.content)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the events of a stream hold; `[DONE]` is left out, comments are no events."""
        written = [line[6:] for line in self.content.split(b"\n") if line.startswith(b"data: ")]
        return [orjson.loads(data) for data in written if data != b"[DONE]"]

    @property
    def text(self) -> str:
        """What the model said, in either vendor's shape."""
        if "choices" in self.body:
            return str(self.body["choices"][0]["message"]["content"])
        return "".join(block["text"] for block in self.body["content"])


def _asked(question: str, wire: str) -> dict[str, object]:
    """The question and a limit that changes nothing, in the words of a wire format."""
    if wire == "completions":
        return {"prompt": question, "max_tokens": 100}
    if wire == "responses":
        return {"input": question, "max_output_tokens": 100}
    return {"messages": [{"role": "user", "content": question}], "max_tokens": 100}


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks plain HTTP to one simulator."""

    url: str
    session: aiohttp.ClientSession

    async def ask(self, question: str, *, model="oracle", wire="openai", key="k", **fields) -> Response:
        body = {"model": model, **_asked(question, wire), **fields}
        return await self.send("POST", (PATHS | MORE_PATHS)[wire], body=orjson.dumps(body), key=key)

    async def send(self, method: str, path: str, *, body=b"", key="k", headers=None) -> Response:
        given = {"authorization": f"Bearer {key}", **(headers or {})}
        async with self.session.request(method, self.url + path, data=body, headers=given) as response:
            names = {name.lower(): value for name, value in response.headers.items()}
            return Response(status=response.status, headers=names, content=await response.read())

    async def stats(self) -> ServerStats:
        stats: ServerStats = (await self.send("GET", "/stats")).body
        return stats

    async def until(self, reached: Callable[[ServerStats], bool]) -> ServerStats:
        """Ask for the counts until they are as they must become; the test's own time limit bounds it."""
        while not reached(stats := await self.stats()):  # noqa: ASYNC110  the server is asked over HTTP
            await asyncio.sleep(0.01)
        return stats


@pytest.fixture(scope="session")
def problems(tmp_path_factory) -> Path:
    """51 additions, the nth of length n."""
    path: Path = tmp_path_factory.mktemp("problems") / "additions.parquet"
    columns = {
        "question": list(ANSWERS),
        "expected": list(ANSWERS.values()),
        "length": pa.array(range(1, len(ANSWERS) + 1), pa.int32()),
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def expected() -> Mapping[str, str]:
    """Question → answer, of the problem set."""
    return ANSWERS


@pytest.fixture
async def simulator(problems) -> AsyncIterator[Callable[..., Awaitable[Client]]]:
    """Start a simulator that knows the problem set, with the settings given; returns its client.

    Without `keep_alive` the client makes a connection for each call: what a server closed is not used again.
    """
    async with AsyncExitStack() as stack:

        async def start(*, keep_alive=True, **settings) -> Client:
            parsed = Settings(problems=(problems,), **settings)
            url = await stack.enter_async_context(listening(parsed, VendorServer))
            connector = aiohttp.TCPConnector(limit=0, force_close=not keep_alive)
            session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
            return Client(url, session)

        yield start


@asynccontextmanager
async def _sdk(simulator, make, http, path=""):
    async with AsyncExitStack() as stack:

        async def start(**settings):
            url = (await simulator(**settings)).url + path
            sdk = make(base_url=url, api_key="k", max_retries=0, http_client=http())
            return await stack.enter_async_context(sdk)

        yield start


@pytest.fixture
async def openai_sdk(simulator):
    """Start a simulator; returns OpenAI's client of it."""
    async with _sdk(simulator, openai.AsyncOpenAI, openai.DefaultAioHttpClient, "/v1") as start:
        yield start


@pytest.fixture
async def anthropic_sdk(simulator):
    """Start a simulator; returns Anthropic's client of it."""
    async with _sdk(simulator, anthropic.AsyncAnthropic, anthropic.DefaultAioHttpClient) as start:
        yield start


@pytest.fixture(params=list(PATHS))
def wire(request) -> str:
    """Each wire format in turn."""
    return str(request.param)
