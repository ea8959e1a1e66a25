"""Simulators whose batches are asked through the vendors' SDKs; their clock is put forward."""

import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import anthropic
import openai
import orjson
import pytest
from openai.types import Batch

from asyncbench.simulator.batches.settings import BatchSettings
from tests.simulator.conftest import ANSWERS, Client

QUESTIONS = [*ANSWERS]
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
CHAT: Final = "/v1/chat/completions"


def chat_line(custom_id: str, question: str, *, model="oracle", url=CHAT, **fields) -> bytes:
    """One line of a file for OpenAI."""
    asked = {"input": question} if url.endswith("responses") else {"messages": _said(question)}
    body = {"model": model, **asked, **fields}
    return orjson.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body}) + b"\n"


def chat_lines(count: int, **fields) -> bytes:
    """A file of questions, whose custom ids are q0, q1 and so on."""
    return b"".join(chat_line(f"q{n}", QUESTIONS[n % len(QUESTIONS)], **fields) for n in range(count))


def message_requests(count: int, *, model="oracle", **fields) -> list[Any]:
    """Requests for Anthropic, by the same custom ids."""
    return [
        {
            "custom_id": f"q{n}",
            "params": {"model": model, "max_tokens": 100, "messages": _said(question), **fields},
        }
        for n, question in zip(range(count), QUESTIONS * (1 + count // len(QUESTIONS)), strict=False)
    ]


def _said(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


def texts(lines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Custom id → text, of the answered lines of either vendor."""
    told = {}
    for line in lines:
        if (result := line.get("result")) and result["type"] == "succeeded":
            told[line["custom_id"]] = "".join(block["text"] for block in result["message"]["content"])
        elif (response := line.get("response")) and response["status_code"] == 200:
            told[line["custom_id"]] = response["body"]["choices"][0]["message"]["content"]
    return told


def right(count: int) -> dict[str, str]:
    """What the oracle answers to the first questions."""
    return {f"q{n}": ANSWERS[QUESTIONS[n]] for n in range(count)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendors:
    """One simulator, seen by both SDKs and by plain HTTP."""

    plain: Client
    openai: openai.AsyncOpenAI
    anthropic: anthropic.AsyncAnthropic

    async def forward(self, seconds: float) -> None:
        await self.plain.send("POST", "/clock", body=orjson.dumps({"forward_s": seconds}))

    async def upload(self, content: bytes, *, name="asyncbench-1.jsonl", **fields) -> str:
        file = await self.openai.files.create(file=(name, io.BytesIO(content)), purpose="batch", **fields)
        return file.id

    async def create(self, content: bytes | int = 3, *, endpoint: Any = CHAT, **fields) -> Batch:
        """Upload a file, or one of so many questions, and create a batch of it."""
        file_id = await self.upload(chat_lines(content) if isinstance(content, int) else content)
        return await self.openai.batches.create(
            completion_window="24h", endpoint=endpoint, input_file_id=file_id, **fields
        )

    async def lines(self, file_id: str | None) -> list[Any]:
        """The lines of a file of OpenAI's; no file, no lines."""
        if not file_id:
            return []
        content = (await self.openai.files.content(file_id)).content
        return [orjson.loads(line) for line in content.split(b"\n") if line]

    async def finished(
        self, content: bytes | int = 3, **fields
    ) -> tuple[Batch, Sequence[Any], Sequence[Any]]:
        """A batch two days later, with the lines of its output and of its errors."""
        batch = await self.create(content, **fields)
        await self.forward(2 * DAY_S)
        batch = await self.openai.batches.retrieve(batch.id)
        return batch, await self.lines(batch.output_file_id), await self.lines(batch.error_file_id)

    async def results(self, batch_id: str) -> list[Any]:
        """The lines of a batch of Anthropic's."""
        content = (await self.plain.send("GET", f"/v1/messages/batches/{batch_id}/results")).content
        return [orjson.loads(line) for line in content.split(b"\n") if line]

    async def truth(self) -> list[Any]:
        told: list[Any] = (await self.plain.send("GET", "/stats/batches")).body
        return told

    async def executed(self) -> list[Any]:
        content = (await self.plain.send("GET", "/stats/batches/executed")).content
        return [orjson.loads(line) for line in content.splitlines()]


@pytest.fixture
async def vendors(simulator) -> AsyncIterator[Any]:
    """Start a simulator of batches with the faults and settings given; returns both SDKs' clients."""
    async with AsyncExitStack() as stack:

        async def start(*faults: str, key="k", seed=0, folder=None, replay=(), **settings) -> Vendors:
            batch = BatchSettings(faults=faults, **settings)
            plain = await simulator(batch=batch, seed=seed, folder=folder, replay=replay)
            return await connect(plain, key)

        async def connect(plain: Client, key: str) -> Vendors:
            one = openai.AsyncOpenAI(base_url=f"{plain.url}/v1", api_key=key, max_retries=0)
            other = anthropic.AsyncAnthropic(base_url=plain.url, api_key=key, max_retries=0)
            await stack.enter_async_context(one)
            await stack.enter_async_context(other)
            return Vendors(plain=plain, openai=one, anthropic=other)

        start.connect = connect  # type: ignore[attr-defined]  # to the same one with another key
        yield start
