"""Loops over the SDKs as a careful person writes them by hand, to measure asyncbench against."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import aiohttp
import httpx2
import openai
import orjson

if TYPE_CHECKING:
    import anthropic

Client = TypeVar("Client")
Call = Callable[[str], Awaitable[object]]  # asks one question, returns the answer

_TIMEOUT = httpx2.Timeout(600, connect=30, pool=None)
_LONGEST = 4096  # tokens: Anthropic's API wants to be told


async def all_of(questions: Iterable[str], call: Call, *, at_once: int) -> None:
    """Ask every question, so many at a time: the plainest loop there is."""
    waiting: Iterator[str] = iter(questions)

    async def work() -> None:
        for question in waiting:
            await call(question)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())


async def paced(questions: Iterable[str], call: Call, *, per_s: float) -> None:
    """Ask every question in its time, whatever became of those before."""
    loop = asyncio.get_running_loop()
    due_s = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for question in questions:
            await asyncio.sleep(due_s - loop.time())
            tasks.create_task(_awaited(call, question))
            due_s += 1 / per_s


async def _awaited(call: Call, question: str) -> None:
    await call(question)


# ── openai ───────────────────────────────────────────────────────────────────────────────────


def openai_client(url: str, *, connections: int) -> openai.AsyncOpenAI:
    """Return a client of a simulator, over aiohttp and without retries."""
    http_client = openai.DefaultAioHttpClient(limits=_limits(connections), timeout=_TIMEOUT)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http_client)


def openai_create(client: openai.AsyncOpenAI) -> Call:
    """Return a call by the SDK's usual door."""

    async def call(question: str) -> object:
        reply = await client.chat.completions.create(
            model="oracle", messages=[{"role": "user", "content": question}]
        )
        return reply.choices[0].message.content

    return call


def openai_post(client: openai.AsyncOpenAI) -> Call:
    """Return a call by the SDK's low door, its body read with orjson."""

    async def call(question: str) -> object:
        reply = await client.post("/chat/completions", body=_chat(question), cast_to=httpx2.Response)
        return _said(reply.content)

    return call


def openai_stream(client: openai.AsyncOpenAI) -> Call:
    """Return a call whose answer is read by the SDK's own stream, to its end."""

    async def call(question: str) -> object:
        stream = await client.chat.completions.create(
            model="oracle",
            messages=[{"role": "user", "content": question}],
            stream=True,
            stream_options={"include_usage": True},
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    return call


def openai_responses(client: openai.AsyncOpenAI) -> Call:
    """Return a call of the Responses API by the SDK's usual door."""

    async def call(question: str) -> object:
        reply = await client.responses.create(model="oracle", input=question)
        return reply.output_text

    return call


# ── anthropic ────────────────────────────────────────────────────────────────────────────────


def anthropic_client(url: str, *, connections: int) -> "anthropic.AsyncAnthropic":
    """Return a client of a simulator, over aiohttp and without retries."""
    import anthropic  # here: it would count as memory of whoever measures the other SDK

    http_client = anthropic.DefaultAioHttpClient(limits=_limits(connections), timeout=_TIMEOUT)
    return anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0, http_client=http_client)


def anthropic_create(client: "anthropic.AsyncAnthropic") -> Call:
    """Return a call by the SDK's usual door."""

    async def call(question: str) -> object:
        reply = await client.messages.create(
            model="oracle", max_tokens=_LONGEST, messages=[{"role": "user", "content": question}]
        )
        return reply.content[0]

    return call


def anthropic_post(client: "anthropic.AsyncAnthropic") -> Call:
    """Return a call by the SDK's low door, its body read with orjson."""

    async def call(question: str) -> object:
        body = {**_chat(question), "max_tokens": _LONGEST}
        reply = await client.post("/v1/messages", body=body, cast_to=httpx2.Response)
        return orjson.loads(reply.content)["content"][0]["text"]

    return call


def anthropic_stream(client: "anthropic.AsyncAnthropic") -> Call:
    """Return a call whose answer is read by the SDK's own stream, to its end."""

    async def call(question: str) -> object:
        stream = await client.messages.create(
            model="oracle",
            max_tokens=_LONGEST,
            messages=[{"role": "user", "content": question}],
            stream=True,
        )
        deltas = [event.delta async for event in stream if event.type == "content_block_delta"]
        return "".join([delta.text for delta in deltas if delta.type == "text_delta"])

    return call


# ── no SDK ───────────────────────────────────────────────────────────────────────────────────


def aiohttp_session(url: str, *, connections: int) -> aiohttp.ClientSession:
    """Return a session; to be made inside the running loop."""
    headers = {"authorization": "Bearer k", "content-type": "application/json"}
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=connections), headers=headers)


def aiohttp_post(session: aiohttp.ClientSession) -> Call:
    """Return a call with orjson at both ends."""

    async def call(question: str) -> object:
        async with session.post("/v1/chat/completions", data=orjson.dumps(_chat(question))) as reply:
            return _said(await reply.read())

    return call


def _chat(question: str) -> dict[str, object]:
    return {"model": "oracle", "messages": [{"role": "user", "content": question}]}


def _said(body: bytes) -> object:
    return orjson.loads(body)["choices"][0]["message"]["content"]


def _limits(connections: int) -> httpx2.Limits:
    return httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
