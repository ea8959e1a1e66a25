"""A server that holds one model at a time is asked all of one, then all of the next."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

import asyncbench as ab
from asyncbench.errors import ConfigError
from asyncbench.planning.sweep_plan import plan
from asyncbench.run.sweep_run import run_sweep
from tests.sweep_files import Said, problem_set, sweep

pytestmark = pytest.mark.long

FREE = {"input": 0, "output": 0}


class OneModel:
    """A chat server with room for one model: asked for another, it loads that one."""

    def __init__(self) -> None:
        self.loaded: str | None = None
        self.loads: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        model = (await request.json())["model"]
        if model != self.loaded:
            self.loaded = model
            self.loads.append(model)
        await asyncio.sleep(0.01)
        message = {"role": "assistant", "content": "42"}
        return web.json_response(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
            }
        )


@asynccontextmanager
async def served(server: OneModel) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def night(tmp_path, address, **limits):
    models = [
        {"model": f"ollama/m{n}", "alias": f"m{n}", "base_url": address, "price": FREE, "concurrency": 8}
        for n in range(5)
    ]
    return sweep(tmp_path / "out", problem_set(tmp_path, trials=1), *models, limits={"ollama": limits})


@pytest.mark.parametrize(("limits", "few"), [({"one_at_a_time": True}, True), ({}, False)])
def test_five_models_of_a_server_that_holds_one_are_loaded_once_each(tmp_path, limits, few):
    server, said = OneModel(), Said()

    async def run():
        async with served(server) as address:
            made = night(tmp_path, address, **limits)
            await run_sweep(made, screen=said)
            return made

    made = asyncio.run(run())
    assert len(ab.read_trials(made.out)) == 5 * 72
    assert (server.loads == [f"m{n}" for n in range(5)]) is few
    assert ("m0 done; next m1 (2 of 5)" in said.lines) is few


def test_a_plan_adds_up_the_time_of_models_that_are_asked_one_at_a_time(tmp_path):
    planned = plan(night(tmp_path, "http://127.0.0.1:9/v1", one_at_a_time=True))
    assert planned.seconds == pytest.approx(sum(model.seconds for model in planned.models))


def test_a_limit_that_is_shared_cannot_be_asked_one_at_a_time(tmp_path):
    with pytest.raises(ConfigError, match="models that share a limit are asked together"):
        night(tmp_path, "http://127.0.0.1:9/v1", one_at_a_time=True, shared=True)
