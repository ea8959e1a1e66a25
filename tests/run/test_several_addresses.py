"""One model at several addresses: calls are shared, and one that dies is left out until it is back."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from aiohttp import web

import asyncbench as ab
from asyncbench.config.models import model_mapping
from asyncbench.run.sweep_run import run_sweep
from tests.run.test_one_model_at_a_time import FREE
from tests.sweep_files import Said, problem_set, sweep

pytestmark = pytest.mark.long


class Server:
    """A chat server that can die, and come back at the same address."""

    def __init__(self, answered: "list[Server]") -> None:
        self.answered, self.port = answered, 0
        self.runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.answer)
        self.runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", self.port).start()
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        assert self.runner is not None
        await self.runner.cleanup()

    async def answer(self, request: web.Request) -> web.Response:
        model = (await request.json())["model"]
        await asyncio.sleep(0.05)
        self.answered.append(self)
        message = {"role": "assistant", "content": "42"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        told = {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
        return web.json_response(
            told | {"usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}}
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


async def until(condition):
    while not condition():  # noqa: ASYNC110  of a list that servers fill
        await asyncio.sleep(0.01)


def test_a_server_that_dies_is_left_out_and_comes_back(tmp_path):
    problems, answered = problem_set(tmp_path, trials=10), list[Server]()
    servers = [Server(answered) for _ in range(3)]
    dying, said = servers[1], Said()

    async def die_and_come_back():
        await until(lambda: len(answered) >= 60)
        await dying.stop()
        before = answered.count(dying)
        await until(lambda: len(answered) >= 200)
        assert answered.count(dying) == before
        await dying.start()
        return before

    async def night():
        for server in servers:
            await server.start()
        model = {"model": "vllm/m", "alias": "m", "price": FREE, "concurrency": 6}
        model |= {"base_url": [server.url for server in servers]}
        made = sweep(tmp_path / "out", problems, model)
        async with asyncio.TaskGroup() as tasks:
            death = tasks.create_task(die_and_come_back())
            await run_sweep(made, screen=said)
        for server in servers:
            await server.stop()
        return death.result()

    before = asyncio.run(night())
    rows = ab.read_trials(tmp_path / "out").to_pylist()
    assert len(rows) == 720
    assert {row["outcome"] for row in rows} <= {"correct", "wrong"}  # none failed
    by_address = Counter(row["upstream"] for row in rows)
    assert by_address.keys() == {f"127.0.0.1:{server.port}" for server in servers}
    assert by_address[f"127.0.0.1:{dying.port}"] > before  # it was asked again
    first, second = (by_address[f"127.0.0.1:{servers[n].port}"] for n in (0, 2))
    assert abs(first - second) < 100


def test_the_folder_keeps_all_addresses_and_ids_are_those_of_the_first(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    addresses = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1", "http://127.0.0.1:9/v1"]
    made = sweep(tmp_path / "out", problems, {"model": "vllm/m", "base_url": addresses, "price": FREE})
    (model,) = made.models
    assert (model.base_url, model.replicas) == (addresses[0], (addresses[1],))
    assert model_mapping(model, None)["base_url"] == addresses[:2]
    plain = replace(model, replicas=())
    assert model_mapping(plain, None)["base_url"] == addresses[0]
