"""What the simulator knows of batches, whatever clients were told, and what it keeps."""

import asyncio
import time

import aiohttp
import openai
import orjson
import psutil
import pytest

from asyncbench.simulator.batches.settings import BatchSettings
from asyncbench.simulator.process import running
from asyncbench.simulator.settings import Settings
from tests.simulator.batches.conftest import (
    CHAT,
    DAY_S,
    chat_line,
    chat_lines,
    message_requests,
    right,
    texts,
)
from tests.simulator.test_replay import OTHER, QUESTION, recorded, took
from tests.simulators import page


async def test_the_truth_names_what_was_run_and_billed(vendors):
    both = await vendors("line_500=#2", "line_lost=#3")
    ours = await both.create(4, metadata={"batch_key": "k"})
    theirs = await both.anthropic.messages.batches.create(requests=message_requests(4, model="noisy"))
    assert [(told["status"], told["run"]) for told in await both.truth()] == [("validating", 0)] * 2
    assert await both.executed() == []
    await both.forward(DAY_S)

    first, second = await both.truth()  # nobody has asked for the results
    assert (first["batch_id"], second["batch_id"]) == (ours.id, theirs.id)
    for told in (first, second):
        assert (told["status"], told["requests"], told["run"], told["billed"]) == ("completed", 4, 4, 3)
    assert (first["vendor"], first["model"], first["metadata"]) == ("openai", "oracle", {"batch_key": "k"})
    runs = [run for run in await both.executed() if run["batch_id"] == ours.id]
    assert [(run["custom_id"], run["billed"]) for run in runs] == [
        ("q0", True),
        ("q1", False),
        ("q2", True),
        ("q3", True),
    ]
    batch = await both.openai.batches.retrieve(ours.id)
    assert sum(run["input_tokens"] + run["output_tokens"] for run in runs) == batch.usage.total_tokens


async def test_recorded_replies_come_by_batch_as_by_call(vendors, tmp_path):
    night = recorded(tmp_path / "night", took("first"), took("second", repeat=1), took(None, n=2))
    both = await vendors("line_lost=#1", replay=(night,))
    asked = enumerate([QUESTION, QUESTION, OTHER])
    lines = [chat_line(f"q{n}", question, model="night") for n, question in asked]
    _, output, errors = await both.finished(b"".join(lines))

    assert texts(output) == {"q1": "first"}  # the line that was lost took no record away
    assert [(line["custom_id"], line["response"]["status_code"]) for line in errors] == [("q2", 404)]
    assert (await both.plain.ask(QUESTION, model="night")).text == "second"


async def test_a_server_started_again_with_its_folder_goes_on(vendors, tmp_path):
    before = await vendors(folder=tmp_path)
    ended, _, _ = await before.finished(3)
    running = await before.create(3, metadata={"n": "2"})

    after = await vendors(folder=tmp_path)
    assert [batch.id async for batch in after.openai.batches.list()] == [running.id, ended.id]
    assert texts(await after.lines(ended.output_file_id)) == right(3)
    batch = await after.openai.batches.retrieve(running.id)
    assert (batch.status, batch.created_at, batch.metadata) == ("validating", running.created_at, {"n": "2"})
    await after.forward(DAY_S)
    batch = await after.openai.batches.retrieve(running.id)
    assert texts(await after.lines(batch.output_file_id)) == right(3)
    assert len(await after.executed()) == 6


async def test_a_create_is_handled_though_the_client_leaves(vendors):
    openais = await vendors()
    create = {
        "completion_window": "24h",
        "endpoint": CHAT,
        "input_file_id": await openais.upload(chat_lines(2000)),
    }
    host, port = openais.plain.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = orjson.dumps(create)
    head = ["POST /v1/batches HTTP/1.1", "Host: x", "Authorization: Bearer k", f"Content-Length: {len(body)}"]
    writer.write("\r\n".join([*head, "", ""]).encode() + body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    while not (told := await openais.truth()):  # noqa: ASYNC110  the server is asked over HTTP
        await asyncio.sleep(0.01)
    assert [batch["requests"] for batch in told] == [2000]


async def test_results_of_a_large_batch_are_written_while_others_are_answered(vendors):
    openais = await vendors()
    batch = await openais.create(chat_lines(3000).replace(b'"q', b'"r'))
    await openais.forward(DAY_S)
    statuses = [(await openais.openai.batches.retrieve(batch.id)).status]
    assert (await openais.plain.ask("What is 10 + 10?")).status == 200
    while statuses[-1] != "completed":
        await asyncio.sleep(0.01)
        statuses.append((await openais.openai.batches.retrieve(batch.id)).status)

    assert set(statuses) == {"finalizing", "completed"}
    batch = await openais.openai.batches.retrieve(batch.id)
    assert len(await openais.lines(batch.output_file_id)) == 3000


async def test_a_wrong_key_and_a_wrong_path_are_refused(simulator, vendors):
    plain = await simulator(keys=("k", "k@lab"))
    stranger = await vendors.connect(plain, "other")
    with pytest.raises(openai.AuthenticationError):
        await stranger.openai.batches.list()
    known = await vendors.connect(plain, "k@lab")
    assert [batch async for batch in known.openai.batches.list()] == []
    reply = await plain.send("PUT", "/v1/batches")
    assert (reply.status, reply.body["error"]["code"]) == (404, "unknown_url")


async def test_an_upload_that_is_none_is_refused(vendors):
    openais = await vendors()
    assert (await openais.plain.send("POST", "/v1/files", body=b"{}")).status == 400
    form = aiohttp.FormData({"purpose": "batch"})
    async with openais.plain.session.post(
        f"{openais.plain.url}/v1/files", data=form, headers={"authorization": "Bearer k"}
    ) as response:
        assert (response.status, (await response.json())["error"]["type"]) == (400, "invalid_request_error")


def executed_by(simulator):
    return map(orjson.loads, page(simulator, "/stats/batches/executed").splitlines())


@pytest.mark.long
def test_a_simulator_in_a_process_tells_the_truth(problems):
    settings = Settings(problems=(problems,), batch=BatchSettings(speedup=3600))
    with running(settings) as simulator, openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="k") as client:
        file = client.files.create(file=("a.jsonl", chat_lines(3)), purpose="batch")
        batch = client.batches.create(completion_window="24h", endpoint=CHAT, input_file_id=file.id)
        page(simulator, "/clock", {"forward_s": 25})
        assert client.batches.retrieve(batch.id).status == "completed"
        truth, executed = orjson.loads(page(simulator, "/stats/batches")), executed_by(simulator)
        assert [(told["batch_id"], told["billed"]) for told in truth] == [(batch.id, 3)]
        assert [run["custom_id"] for run in executed] == ["q0", "q1", "q2"]
        assert batch.created_at <= time.time()


@pytest.mark.long
def test_memory_stays_flat_however_large_a_batch_is(problems, tmp_path):
    count, content = 20_000, tmp_path / "requests.jsonl"
    content.write_bytes(chat_lines(count, user="u" * 2_000))  # 44 MB
    with (
        running(Settings(problems=(problems,))) as simulator,
        openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="k") as client,
        content.open("rb") as file,
    ):
        page(simulator, "/clock", {"forward_s": 1})
        process = psutil.Process(simulator.pid)
        before = process.memory_info().rss
        uploaded = client.files.create(file=file, purpose="batch")
        client.batches.create(completion_window="24h", endpoint=CHAT, input_file_id=uploaded.id)
        page(simulator, "/clock", {"forward_s": DAY_S})
        assert sum(run["billed"] for run in executed_by(simulator)) == count
        assert process.memory_info().rss - before < 20_000_000
