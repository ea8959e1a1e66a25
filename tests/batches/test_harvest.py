"""Result files of a simulated vendor, through its own SDK, come back to the trials that were packed."""

import asyncio
import hashlib
import io
from collections import Counter
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import orjson
import pytest

from asyncbench.batches import ANTHROPIC, OPENAI, BatchRequest, Harvest, LineKind, check_part
from asyncbench.errors import StoreError
from asyncbench.simulator import BatchSettings
from tests.batches.conftest import requests
from tests.simulator.conftest import problems, simulator  # noqa: F401  fixtures

DAY_S = 86_400


def asked(count: int, vendor: str) -> list[BatchRequest]:
    """Requests that the simulator can answer; max_tokens is Anthropic's duty."""
    return [
        BatchRequest(
            trial_id=hashlib.md5(str(n).encode(), usedforsecurity=False).hexdigest(),
            attempt=1,
            model_id="oracle",
            path="/v1/chat/completions" if vendor == "openai" else "/v1/messages",
            body=orjson.dumps(
                {
                    "model": "oracle",
                    "max_tokens": 100,
                    "messages": [{"role": "user", "content": f"What is {n} + {n}?"}],
                }
            ),
        )
        for n in range(10, 10 + count)
    ]


async def results(url: str, part: Any, folder: Path, forward: Any) -> list[Path]:
    """Send a part, let the clock run, and save what comes back."""
    if part.vendor == "openai":
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            content = part.file(folder).read_bytes()
            file = await client.files.create(file=(part.name, io.BytesIO(content)), purpose="batch")
            batch = await client.batches.create(
                completion_window="24h", endpoint=part.path, input_file_id=file.id
            )
            await forward(2 * DAY_S)
            batch = await client.batches.retrieve(batch.id)
            saved = []
            for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
                saved.append(folder / f"{file_id}.jsonl")
                saved[-1].write_bytes((await client.files.content(file_id)).content)
            return saved
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as other:

        async def pieces() -> Any:
            for piece in ANTHROPIC.sent(part.file(folder)):
                yield piece

        length = str(ANTHROPIC.sent_bytes(part.bytes))
        headers = {"content-type": "application/json", "content-length": length}
        reply = await other.post(
            "/v1/messages/batches", content=pieces(), cast_to=httpx2.Response, options={"headers": headers}
        )
        await forward(2 * DAY_S)
        path = f"/v1/messages/batches/{reply.json()['id']}/results"
        saved = [folder / "results.jsonl"]
        saved[0].write_bytes((await other.get(path, cast_to=httpx2.Response)).content)
        return saved


@pytest.fixture
def collected(packed, tmp_path, simulator):  # noqa: F811  the fixture
    """Pack, check, send and harvest; returns the trials asked, the lines by trial, and the harvest."""

    async def collect(vendor: str, *faults: str, count=20) -> Any:
        (part,) = packed(asked(count, vendor), {"openai": OPENAI, "anthropic": ANTHROPIC}[vendor])
        check_part(part, OPENAI if vendor == "openai" else ANTHROPIC, tmp_path)
        client = await simulator(batch=BatchSettings(faults=faults))

        async def forward(seconds: float) -> None:
            await client.send("POST", "/clock", body=orjson.dumps({"forward_s": seconds}))

        files = await results(client.url, part, tmp_path, forward)
        harvest = Harvest(part, tmp_path)
        found = [pair for path in files for pair in await asyncio.to_thread(list, harvest.read(path))]
        assert [pair for path in files for pair in harvest.read(path)] == []  # nothing new a second time
        assert len(found) == len(dict(found))
        return [request.trial_id for request in asked(count, vendor)], dict(found), harvest

    return collect


VENDORS = pytest.mark.parametrize("vendor", ["openai", "anthropic"])


@VENDORS
@pytest.mark.parametrize(
    "faults", [(), ("shuffled=1",), ("line_separators=1",), ("line_twice=0.5",), ("line_long=#1:1000000",)]
)
async def test_every_trial_gets_its_own_answer(collected, vendor, faults):
    trials, lines, harvest = await collected(vendor, *faults)

    assert lines.keys() == set(trials)
    assert {line.kind for line in lines.values()} == {LineKind.ANSWERED}
    assert (harvest.missing, harvest.sound) == (frozenset(), True)
    for number, trial_id in enumerate(trials, 10):
        body = orjson.loads(lines[trial_id].body)
        text = body["choices"][0]["message"]["content"] if vendor == "openai" else body["content"][0]["text"]
        assert text == str(2 * number)


@VENDORS
async def test_lines_that_failed_or_were_not_run_are_told_apart(collected, vendor):
    faults = ("line_429=#1", "line_too_long=#2", "line_expired=#3", "line_canceled=#4", "line_error_200=#5")
    trials, lines, harvest = await collected(vendor, *faults)

    told = [(lines[trial_id].kind, lines[trial_id].status or lines[trial_id].why) for trial_id in trials]
    assert told[:4] == [
        (LineKind.REFUSED, 429),
        (LineKind.REFUSED, 400),
        (LineKind.NOT_RUN, "expired"),
        (LineKind.NOT_RUN, "cancelled"),
    ]
    assert told[4][0] is (LineKind.STRANGE if vendor == "openai" else LineKind.REFUSED)
    assert Counter(told[5:]) == {(LineKind.ANSWERED, 200): 15}
    assert harvest.sound


@VENDORS
async def test_half_of_an_expired_batch_is_there(collected, vendor):
    _, lines, harvest = await collected(vendor, "expires=1:0.5")
    assert Counter(line.kind for line in lines.values()) == {LineKind.ANSWERED: 10, LineKind.NOT_RUN: 10}
    assert harvest.missing == frozenset()


@VENDORS
async def test_a_missing_line_is_named_by_its_trial(collected, vendor):
    trials, lines, harvest = await collected(vendor, "line_missing=#2,20")
    assert harvest.missing == {trials[1], trials[19]}
    assert (len(lines), harvest.sound) == (18, True)


@VENDORS
async def test_a_line_of_nobody_and_a_broken_one_are_counted(collected, vendor):
    trials, lines, harvest = await collected(vendor, "line_foreign=#1", "line_broken=#2")
    assert (len(harvest.foreign), len(harvest.broken), harvest.sound) == (1, 1, False)
    assert (harvest.missing, len(lines)) == ({trials[1]}, 19)


@VENDORS
@pytest.mark.parametrize(
    ("fault", "broken"),
    [("content_cut=#1", 0), ("content_cut_in_line=#1", 1), ("content_wrong_length=#1", 1)],
)
async def test_a_body_that_was_cut_lacks_trials_and_no_error_tells(collected, vendor, fault, broken):
    _, lines, harvest = await collected(vendor, fault)
    assert 0 < len(lines) < 20
    assert (len(harvest.missing), len(harvest.broken)) == (20 - len(lines), broken)


def test_a_second_line_that_says_something_else_does_not_count(packed, tmp_path):
    (part,) = packed(requests(1))
    custom_id = part.custom_id(f"{0:032x}")
    path = tmp_path / "output.jsonl"
    said = [{"custom_id": custom_id, "response": {"status_code": 200, "body": {"n": n}}} for n in (1, 2)]
    path.write_bytes(b"\n".join(map(orjson.dumps, said)))
    harvest = Harvest(part, tmp_path)

    ((_, line),) = harvest.read(path)
    assert orjson.loads(line.body) == {"n": 1}
    assert (len(harvest.contradicting), harvest.sound) == (1, False)


def test_a_line_of_an_earlier_submission_of_the_same_trial_is_foreign(packed, tmp_path):
    first, second = packed(requests(1)) + packed(requests(1))
    path = tmp_path / "output.jsonl"
    path.write_bytes(orjson.dumps({"custom_id": first.custom_id(f"{0:032x}"), "response": None, "error": {}}))
    harvest = Harvest(second, tmp_path)

    assert [*harvest.read(path)] == []
    assert (len(harvest.foreign), harvest.missing) == (1, {f"{0:032x}"})


def test_files_that_are_gone_are_named(packed, tmp_path):
    (part,) = packed(requests(1))
    with pytest.raises(StoreError, match=r"output\.jsonl cannot be read"):
        [*Harvest(part, tmp_path).read(tmp_path / "output.jsonl")]
