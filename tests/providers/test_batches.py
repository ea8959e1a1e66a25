"""Both vendors' batches through their SDKs, against the simulator over loopback."""

import asyncio
import hashlib
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from asyncbench.config.run_entries import Batching
from asyncbench.config.sweep import load_sweep
from asyncbench.errors import WORTH_ANOTHER_TRY, ErrorKind, ProviderError, StoreError
from asyncbench.lanes.batches.context import BatchAccount, BatchClock, BatchContext
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.planning.trials import trial_sources, trials_of
from asyncbench.problems.opening import open_set
from asyncbench.providers.batch_calls import (
    NotRun,
    RemoteBatch,
    Submission,
    certainly_not_created,
)
from asyncbench.providers.provider import open_batches
from asyncbench.records import Reply, Timeouts
from asyncbench.suites.requests import request_for
from tests.providers.raw_server import answering, head, raw_server, sending
from tests.sweep_files import simulator

KEY = "0123456789abcdef"
VENDORS = ("simulated", "simulated-anthropic")
both = pytest.mark.parametrize("vendor", VENDORS)


@pytest.fixture(scope="module")
def server(problems):
    with simulator(problems) as found:
        yield found


class Asked:
    """A part of some requests for one vendor, and its API."""

    def __init__(
        self, server, problems, folder, vendor, faults=(), api=None, requests=20, url=None, speedup=36_000
    ):
        play = {"speedup": speedup, "faults": list(faults)}
        model = {"model": f"{vendor}/oracle", "params": {"simulate": {"batch": play}}, "max_tokens": 100}
        model |= {} if api is None else {"api": api}
        model |= {} if "simulated" in vendor else {"base_url": f"{server.url}/{vendor}/v1"}
        sweep = load_sweep({"name": "x", "problems": [str(problems)], "models": [model]})
        sets = trial_sources([open_set(problems)])
        self.trials = list(trials_of(sweep, sweep.models[0], sets, limit=requests))
        self.api = open_batches(sweep.models[0], key="sk-secret-0123456789", simulator_url=url or server.url)
        self.path = folder / "part.jsonl"
        lines = [self.api.line(trial.trial_id + KEY, request_for(trial)) for trial in self.trials]
        self.path.write_bytes(b"\n".join([*lines, b""]))
        self.data = self.path.read_bytes()

    async def created(self):
        size = len(self.data)
        file_id = await self.api.upload(self.path, f"{KEY}.jsonl", size) if self.api.uploads else None
        return await self.api.create(
            Submission(
                path=self.path,
                size=size,
                key=KEY,
                requests=len(self.trials),
                sha256=hashlib.sha256(self.data).hexdigest(),
                file_id=file_id,
            )
        )

    async def ended(self):
        batch = await self.created()
        while not batch.ended:
            await asyncio.sleep(0.05)
            batch = await self.api.retrieve(batch.id)
        return batch

    async def lines(self):
        await self.api.download(await self.ended(), self.path.with_suffix(".results"))
        return [
            self.api.read(line) for line in self.path.with_suffix(".results").read_bytes().split(b"\n")[:-1]
        ]


@asynccontextmanager
async def asked(*arguments, **keywords):
    part = Asked(*arguments, **keywords)
    try:
        yield part
    finally:
        await part.api.aclose()


@pytest.mark.parametrize(
    ("vendor", "api"),
    [("simulated", "chat"), ("simulated", "responses"), ("simulated-anthropic", None)],
)
async def test_a_batch_brings_a_reply_to_each_request(server, problems, tmp_path, vendor, api):
    async with asked(server, problems, tmp_path, vendor, api=api) as part:
        found = {line.custom_id: line.ended for line in await part.lines()}
        assert list(found) == [trial.trial_id + KEY for trial in part.trials]
        for trial in part.trials:
            reply = found[trial.trial_id + KEY]
            assert isinstance(reply, Reply)
            assert reply.text == trial.problem.expected
            assert (reply.latency_s, reply.ttft_s) == (None, None)


@both
async def test_a_batch_is_listed_with_what_finds_it_again(server, problems, tmp_path, vendor):
    async with asked(server, problems, tmp_path, vendor) as part:
        batch, before = await part.ended(), time.time() - 60
        listed = {found.id: found for found in await part.api.recent(before)}[batch.id]
        assert listed.ended
        assert listed.requests == listed.done == 20
        assert part.api.account
        assert abs(part.api.skew_s) < 2
        assert batch.id not in {found.id for found in await part.api.recent(batch.created_at + 1)}
        if part.api.uploads:
            size = len(part.data)
            assert listed.batch_key == KEY
            assert await part.api.uploaded(f"{KEY}.jsonl", size) is not None
            assert await part.api.uploaded(f"{KEY}.jsonl", size + 1) is None


async def test_an_upload_that_is_gone_counts_as_deleted(server, problems, tmp_path):
    async with asked(server, problems, tmp_path, "simulated") as part:
        batch = await part.created()
        await part.api.delete_input(batch.input_file_id)
        await part.api.delete_input(batch.input_file_id)


LINES = (
    ("simulated", "line_too_long", ErrorKind.TOO_LONG, 0),
    ("simulated", "line_400", ErrorKind.BAD_REQUEST, 0),
    ("simulated", "line_429", ErrorKind.RATE_LIMITED, 0),
    ("simulated", "line_no_quota", ErrorKind.NO_QUOTA, 0),
    ("simulated", "line_500", ErrorKind.SERVER_ERROR, 0),
    ("simulated", "line_504", ErrorKind.TIMEOUT, 0),
    ("simulated", "line_expired", NotRun.EXPIRED, 0),
    ("simulated", "line_canceled", NotRun.CANCELLED, 0),
    ("simulated", "line_status_0", ErrorKind.SERVER_ERROR, None),
    ("simulated-anthropic", "line_400", ErrorKind.BAD_REQUEST, 0),
    ("simulated-anthropic", "line_429", ErrorKind.RATE_LIMITED, 0),
    ("simulated-anthropic", "line_no_quota", ErrorKind.NO_QUOTA, 0),
    ("simulated-anthropic", "line_500", ErrorKind.SERVER_ERROR, 0),
    ("simulated-anthropic", "line_504", ErrorKind.TIMEOUT, 0),
    ("simulated-anthropic", "line_expired", NotRun.EXPIRED, 0),
    ("simulated-anthropic", "line_canceled", NotRun.CANCELLED, 0),
)


@pytest.mark.parametrize(("vendor", "fault", "meaning", "cost"), LINES)
async def test_a_line_without_a_reply_says_why(server, problems, tmp_path, vendor, fault, meaning, cost):
    async with asked(server, problems, tmp_path, vendor, [f"{fault}=#3"]) as part:
        others = []
        for line in await part.lines():
            if line.custom_id != part.trials[2].trial_id + KEY:
                others.append(line.ended)
            elif isinstance(line.ended, ProviderError):
                assert line.ended.kind is meaning
                assert line.ended.may_have_been_billed is (cost is None)
            else:
                assert line.ended is meaning
        assert len(others) == 19
        assert all(isinstance(ended, Reply) for ended in others)


@both
async def test_separators_of_lines_within_a_text_break_no_line(server, problems, tmp_path, vendor):
    async with asked(server, problems, tmp_path, vendor, ["line_separators=1"]) as part:
        assert [type(line.ended) for line in await part.lines()] == 20 * [Reply]
        assert "\u2028" in part.path.with_suffix(".results").read_text("utf-8")


@both
@pytest.mark.parametrize("fault", ["content_502", "content_reset"])
async def test_a_download_that_breaks_off_is_an_error(server, problems, tmp_path, vendor, fault):
    async with asked(server, problems, tmp_path, vendor, [f"{fault}=1"]) as part:
        with pytest.raises(ProviderError):
            await part.lines()


async def test_the_key_goes_to_no_other_host_for_results(server, problems, tmp_path):
    part = (server, problems, tmp_path, "simulated-anthropic", ["results_elsewhere=1"])
    async with asked(*part) as found:  # nothing listens there: a call would fail
        assert len(await found.lines()) == 20


@both
@pytest.mark.parametrize(
    ("fault", "certain"),
    [
        ("create_dropped", False),
        ("create_reply_dropped", False),
        ("create_500", False),
        ("create_429", True),
        ("create_400", True),
    ],
)
async def test_only_some_failed_creates_are_certain(server, problems, tmp_path, vendor, fault, certain):
    async with asked(server, problems, tmp_path, vendor, [f"{fault}=1"]) as part:
        before = len(await part.api.recent(0))
        with pytest.raises(ProviderError) as failed:
            await part.created()
        assert certainly_not_created(failed.value) is certain
        made = fault in ("create_reply_dropped", "create_500")
        assert len(await part.api.recent(0)) - before == made  # it was sent once


@both
async def test_a_create_that_reached_nobody_is_certain(problems, tmp_path, vendor):
    async with asked(None, problems, tmp_path, vendor, url="http://127.0.0.1:9") as part:
        part.api.uploads = False
        with pytest.raises(ProviderError) as failed:
            await part.created()
        assert certainly_not_created(failed.value)


@both
async def test_a_reply_to_a_create_that_cannot_be_read_is_doubt(problems, tmp_path, vendor):
    async with raw_server() as other:
        other.manner = answering(200, b"{}{}")
        async with asked(None, problems, tmp_path, vendor, url=other.url) as part:
            part.api.uploads = False
            with pytest.raises(ProviderError) as failed:
                await part.created()
            assert not certainly_not_created(failed.value)


RESULTS = RemoteBatch(
    id="batch_1", ended=True, status="completed", created_at=1.0, requests=9, files=("file-1",)
)


@both
async def test_a_download_for_which_the_disk_has_no_room_is_not_begun(problems, tmp_path, vendor):
    async with raw_server() as other:
        other.manner = sending(head(content_length=10**17))
        async with asked(None, problems, tmp_path, vendor, url=other.url) as part:
            with pytest.raises(StoreError, match=r"need about .* MB are free.*nothing is lost"):
                await part.api.download(RESULTS, tmp_path / "results")
        assert (tmp_path / "results").read_bytes() == b""


@both
async def test_a_download_that_pauses_ends_though_its_time_is_not_over(
    problems, tmp_path, vendor, monkeypatch
):
    monkeypatch.setattr("asyncbench.providers.sdk.PAUSE_S", 0.2)

    async with raw_server() as other:
        other.manner = sending(head(content_length=5_000) + b'{"custom_id": "a"}\n')
        async with asked(None, problems, tmp_path, vendor, url=other.url) as part:
            with pytest.raises(ProviderError, match="paused") as failed:
                await part.api.download(RESULTS, tmp_path / "results")
            assert failed.value.kind is ErrorKind.TIMEOUT


@both
async def test_a_sweep_s_short_wait_for_a_first_token_holds_for_no_upload_and_no_create(
    problems, tmp_path, vendor
):
    async with raw_server() as other:
        other.manner = answering(body={"id": "batch_1", "status": "validating", "created_at": 5})
        async with asked(None, problems, tmp_path, vendor, url=other.url) as part:
            part.api.uploads = False
            part.api._sdk._endpoint = replace(part.api._sdk._endpoint, timeouts=Timeouts(first_byte=1e-9))
            assert (await part.created()).id == "batch_1"


async def test_models_of_one_key_look_at_one_list(server, problems, tmp_path):
    class Counted:
        def __init__(self, api):
            self.api, self.looks, self.poll_s = api, 0, 0

        def __getattr__(self, name):
            return getattr(self.api, name)

        async def recent(self, since):
            self.looks += 1
            return await self.api.recent(since)

    def desk(api, shared):
        return BatchContext(
            alias="a",
            api=api,
            ledger=BatchLedger(tmp_path),
            clock=BatchClock(),
            batching=Batching(),
            on_message=print,
            suspend=print,
            shared=shared,
        )

    async with asked(server, problems, tmp_path, "simulated") as part:
        batch, api, shared = await part.created(), Counted(part.api), BatchAccount()
        first, second = desk(api, shared), desk(api, shared)
        assert batch.id in {found.id for found in await first.latest()}
        await second.latest()
        assert api.looks == 1
        await second.latest()  # the same model again: it wants to know more
        await first.latest()
        assert api.looks == 2


async def test_a_vendor_is_looked_at_no_sooner_than_it_wants(server, problems, tmp_path):
    async with asked(server, problems, tmp_path, "simulated-anthropic", speedup=1) as part:
        batch = await part.created()
        await part.api.recent(None)
        assert part.api.poll_s == 0
        await part.api.retrieve(batch.id)
        assert part.api.poll_s == 10  # Retry-After of a batch that runs


async def test_an_error_under_200_may_have_cost_something(server, problems, tmp_path):
    async with asked(server, problems, tmp_path, "simulated", ["line_error_200=#3"]) as part:
        [ended] = [line.ended for line in await part.lines() if isinstance(line.ended, ProviderError)]
        assert ended.may_have_been_billed
        assert ended.kind in WORTH_ANOTHER_TRY


@pytest.mark.parametrize("vendor", [*VENDORS, "groq"])
async def test_every_batch_is_listed_whatever_its_vendor_has_for_pages(
    problems, tmp_path, vendor, monkeypatch
):
    monkeypatch.setattr("asyncbench.providers.openai.batches.PAGE", 2)
    monkeypatch.setattr("asyncbench.providers.anthropic.batches.PAGE", 2)

    with simulator(problems) as own:
        async with asked(own, problems, tmp_path, vendor) as part:
            made = [(await part.created()).id for _ in range(5)]
            listed = [batch.id for batch in await part.api.recent(0)]
            assert sorted(listed) == sorted(made)
            page = [batch.id for batch in await part.api.recent(None)]
            assert page == (listed if vendor == "groq" else listed[:2])
