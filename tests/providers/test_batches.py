"""Both vendors' batches through their SDKs, against the simulator over loopback."""

import asyncio
import hashlib
import time
from contextlib import asynccontextmanager

import pytest

from asyncbench.config import load_sweep
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.problems import open_set
from asyncbench.prompting import request_for
from asyncbench.providers import NotRun, Submission, certainly_not_created, open_batches
from asyncbench.records import Reply
from asyncbench.sweeps.trials import asked_once, trials_of
from tests.providers.raw_server import answering, raw_server
from tests.sweep_files import problem_set, simulator

KEY = "0123456789abcdef"
VENDORS = ("simulated", "simulated-anthropic")
both = pytest.mark.parametrize("vendor", VENDORS)


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="module")
def server(problems):
    with simulator(problems) as found:
        yield found


class Asked:
    """A part of some requests for one vendor, and its API."""

    def __init__(self, server, problems, folder, vendor, faults=(), api=None, requests=20, url=None):
        play = {"speedup": 36_000, "faults": list(faults)}
        model = {"model": f"{vendor}/oracle", "params": {"simulate": {"batch": play}}, "max_tokens": 100}
        model |= {} if api is None else {"api": api}
        sweep = load_sweep({"name": "x", "problems": [str(problems)], "models": [model]})
        sets = asked_once([open_set(problems)])
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
def test_a_batch_brings_a_reply_to_each_request(server, problems, tmp_path, vendor, api):
    async def check():
        async with asked(server, problems, tmp_path, vendor, api=api) as part:
            found = {line.custom_id: line.ended for line in await part.lines()}
            assert list(found) == [trial.trial_id + KEY for trial in part.trials]
            for trial in part.trials:
                reply = found[trial.trial_id + KEY]
                assert isinstance(reply, Reply)
                assert reply.text == trial.problem.expected
                assert (reply.latency_s, reply.ttft_s) == (None, None)

    asyncio.run(check())


@both
def test_a_batch_is_listed_with_what_finds_it_again(server, problems, tmp_path, vendor):
    async def check():
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

    asyncio.run(check())


def test_an_upload_that_is_gone_counts_as_deleted(server, problems, tmp_path):
    async def check():
        async with asked(server, problems, tmp_path, "simulated") as part:
            batch = await part.created()
            await part.api.delete_input(batch.input_file_id)
            await part.api.delete_input(batch.input_file_id)

    asyncio.run(check())


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
def test_a_line_without_a_reply_says_why(server, problems, tmp_path, vendor, fault, meaning, cost):
    async def check():
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

    asyncio.run(check())


@both
def test_separators_of_lines_within_a_text_break_no_line(server, problems, tmp_path, vendor):
    async def check():
        async with asked(server, problems, tmp_path, vendor, ["line_separators=1"]) as part:
            assert [type(line.ended) for line in await part.lines()] == 20 * [Reply]
            assert "\u2028" in part.path.with_suffix(".results").read_text("utf-8")

    asyncio.run(check())


@both
@pytest.mark.parametrize("fault", ["content_502", "content_reset"])
def test_a_download_that_breaks_off_is_an_error(server, problems, tmp_path, vendor, fault):
    async def check():
        async with asked(server, problems, tmp_path, vendor, [f"{fault}=1"]) as part:
            with pytest.raises(ProviderError):
                await part.lines()

    asyncio.run(check())


def test_the_key_goes_to_no_other_host_for_results(server, problems, tmp_path):
    async def check():
        part = (server, problems, tmp_path, "simulated-anthropic", ["results_elsewhere=1"])
        async with asked(*part) as found:  # nothing listens there: a call would fail
            assert len(await found.lines()) == 20

    asyncio.run(check())


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
def test_only_some_failed_creates_are_certain(server, problems, tmp_path, vendor, fault, certain):
    async def check():
        async with asked(server, problems, tmp_path, vendor, [f"{fault}=1"]) as part:
            before = len(await part.api.recent(0))
            with pytest.raises(ProviderError) as failed:
                await part.created()
            assert certainly_not_created(failed.value) is certain
            made = fault in ("create_reply_dropped", "create_500")
            assert len(await part.api.recent(0)) - before == made  # it was sent once

    asyncio.run(check())


@both
def test_a_create_that_reached_nobody_is_certain(problems, tmp_path, vendor):
    async def check():
        async with asked(None, problems, tmp_path, vendor, url="http://127.0.0.1:9") as part:
            part.api.uploads = False
            with pytest.raises(ProviderError) as failed:
                await part.created()
            assert certainly_not_created(failed.value)

    asyncio.run(check())


@both
def test_a_reply_to_a_create_that_cannot_be_read_is_doubt(problems, tmp_path, vendor):
    async def check():
        async with raw_server() as other:
            other.manner = answering(200, b"{}{}")
            async with asked(None, problems, tmp_path, vendor, url=other.url) as part:
                part.api.uploads = False
                with pytest.raises(ProviderError) as failed:
                    await part.created()
                assert not certainly_not_created(failed.value)

    asyncio.run(check())
