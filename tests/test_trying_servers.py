"""Whole runs through the real SDK against servers that contradict themselves, break off or refuse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from asyncbench import run_sweep
from asyncbench.store.catalog import read_lanes
from tests.sweep_files import Said, problem_set, sweep

GOOD = {
    "id": "r",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
}


@asynccontextmanager
async def served(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Serve an endpoint of this machine; yields its base URL."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def run_against(
    answer, tmp_path, *, trials: int = 1, limit: int | None = None, said: Said | None = None, **keys
):
    """Ask one model 72 × `trials` questions through the openai SDK."""
    async with served(answer) as url:
        asked = sweep(
            tmp_path / "out",
            problem_set(tmp_path, trials=trials),
            {"model": "simulated/m", "alias": "m", "base_url": url, **keys},
        )
        return (await run_sweep(asked, screen=said, limit=limit)).models["m"]


@pytest.mark.long
async def test_a_reset_that_is_contradicted_by_a_retry_after_pauses_nothing(tmp_path):
    calls = 0

    async def answer(_request):
        nonlocal calls
        calls += 1
        if calls % 30 != 10:
            return web.json_response(GOOD)
        told = {"retry-after": "1", "x-ratelimit-limit-tokens": "1000000"}
        told |= {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
        return web.json_response({"error": {"message": "slow down"}}, status=429, headers=told)

    said = Said()
    counters = await run_against(answer, tmp_path, said=said, concurrency=4)
    assert (counters.done, counters.rate_limited) == (72, 3)
    assert not [line for line in said.lines if "paused" in line]
    assert not any(read_lanes(tmp_path / "out")["pauses"].to_pylist())


@pytest.mark.long
async def test_a_server_that_cuts_all_but_two_answers_is_asked_less_at_a_time(tmp_path):
    in_flight = cut = 0

    async def answer(request):
        nonlocal in_flight, cut
        in_flight += 1
        bears = in_flight <= 2
        try:
            await asyncio.sleep(0.05)
            if bears:
                return web.json_response(GOOD)
            cut += 1
            response = web.StreamResponse(headers={"content-length": "500"})
            await response.prepare(request)
            await response.write(b'{"id": "r", ')
            request.transport.close()
            return response
        finally:
            in_flight -= 1

    said = Said()
    counters = await run_against(answer, tmp_path, said=said, concurrency=24)
    assert (counters.done, counters.failed) == (72, 0)
    assert counters.attempts == 72 + cut
    assert 0 < cut < 72  # about 146 with all slots in use
    assert any(line.startswith("m: replies break off with ") for line in said.lines)
