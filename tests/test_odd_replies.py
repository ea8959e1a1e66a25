"""One odd reply is one call's fault: the run goes on, and says what it stumbled over."""

import asyncio

import pytest

from asyncbench import read_attempts, run_sweep
from asyncbench.config.sweep import Sweep
from asyncbench.engine.same_failures import PAGES
from asyncbench.providers.openai.wires import ChatWire
from asyncbench.run.progress import Quiet, Screen
from asyncbench.run.refusals import FAULTS, LONGEST_TRACE, Faults
from asyncbench.run.summary import Exit, Summary
from tests.providers.asking import ADAPTERS, KEY
from tests.providers.dialects import REFUSALS
from tests.providers.hostile import beside, nested, used, written
from tests.providers.raw_server import answering, raw_server
from tests.sweep_files import ADAPTERS as NAMES, problem_set, sweep
from tests.tiers import first_rows

OPENAI = ADAPTERS[0]
DEAD = [
    row for row in REFUSALS if row.whose in ("Fireworks", "DashScope", "Anthropic", "MiniMax 1008", "Ark")
]


class Heard(Quiet):
    """A screen that shows nothing, and keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


async def asked(folder, server, *models, screen: Screen | None = None, **keys) -> Summary:
    """Run a sweep of two problems against a raw server."""
    entries = [
        {
            "model": f"{name}/m",
            "base_url": server.url if name == "simulated-anthropic" else f"{server.url}/v1",
            **({"max_tokens": 50} if name == "simulated-anthropic" else {}),
            **keys,
        }
        for name in models
    ]
    planned: Sweep = sweep(folder / "out", await asyncio.to_thread(problem_set, folder), *entries)
    return await run_sweep(planned, limit=2, env={"MY_KEY": KEY}, screen=screen)


@pytest.mark.parametrize("name", NAMES)
async def test_a_usage_that_nests_deep_costs_nobody_the_run(tmp_path, name):
    adapter = ADAPTERS[NAMES.index(name)]
    async with raw_server() as server:
        server.manner = answering(body=beside(adapter, b'"usage":' + nested(900)))
        summary = await asked(tmp_path, server, name)

    assert (summary.exit, summary.models[f"{name}/m"].attempts) == (Exit.COMPLETE, 2)
    rows = read_attempts(tmp_path / "out").to_pylist()
    assert {(row["status"], row["raw_usage"]) for row in rows} == {("ok", None)}
    assert all(row["note"].endswith("; its usage was too large to keep") for row in rows)


async def test_what_is_not_believed_is_told_once_while_a_run_goes_on(tmp_path):
    noughts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    choice = {"index": 0, "message": {"content": "42"}, "finish_reason": "brand_new"}
    heard = Heard()
    async with raw_server() as server:
        server.manner = answering(body={"id": "x", "choices": [choice], "usage": noughts})
        summary = await asked(tmp_path, server, "simulated", screen=heard)

    assert len([line for line in heard.said if "unknown finish reason 'brand_new'" in line]) == 1
    assert len([line for line in heard.said if "a usage that cannot be true" in line]) == 1
    assert set(summary.models["simulated/m"].notes.values()) == {2}


@pytest.mark.parametrize("name", NAMES)
async def test_where_a_web_page_answers_the_trials_stay_open(tmp_path, name):
    async with raw_server() as server:
        server.manner = answering(body=b"<!doctype html><title>Sign in to the network</title>")
        summary = await asked(tmp_path, server, name, retry={"attempts": 20})
        (why,) = [model.suspended for model in summary.models.values()]
        assert "no reply so far can be read: HTTP 200, but its body is a web page, not JSON" in str(why)
        assert len(server.received) < 2 * PAGES  # of two trials with 20 calls each
        server.manner = answering(body=written(ADAPTERS[NAMES.index(name)]))
        summary = await asked(tmp_path, server, name)

    assert (summary.exit, summary.models[f"{name}/m"].done) == (Exit.COMPLETE, 2)


@pytest.mark.parametrize("name", first_rows(1, NAMES))
@pytest.mark.parametrize("refusal", DEAD, ids=lambda refusal: refusal.whose)
async def test_a_dead_account_leaves_the_trials_open_for_the_same_command(tmp_path, name, refusal):
    async with raw_server() as server:
        server.manner = answering(refusal.status, refusal.body)
        summary = await asked(tmp_path, server, name)
        (model,) = summary.models.values()
        assert model.suspended is not None
        assert model.suspended.startswith(refusal.kind)
        assert model.done == 0
        assert len(server.received) < 5
        server.manner = answering(body=written(ADAPTERS[NAMES.index(name)]))
        summary = await asked(tmp_path, server, name)

    assert (summary.exit, summary.models[f"{name}/m"].done) == (Exit.COMPLETE, 2)


@pytest.mark.long
async def test_the_first_traceback_of_a_fault_is_in_the_folder_without_any_key(tmp_path, monkeypatch):
    faults = [KeyError(KEY), KeyError(f"again {KEY}"), RecursionError("deep")]
    read = ChatWire.reply

    def reply(wire, payload, response):
        if faults:
            raise faults.pop(0)
        return read(wire, payload, response)

    monkeypatch.setattr(ChatWire, "reply", reply)
    async with raw_server() as server:
        server.manner = answering(body=written(OPENAI))
        summary = await asked(tmp_path, server, "simulated", key_env="MY_KEY")

    assert (summary.exit, summary.models["simulated/m"].faults) == (Exit.COMPLETE, 3)
    told = (tmp_path / "out" / "faults.txt").read_text()
    assert "3 calls failed by a bug of asyncbench" in summary.as_text()
    assert str(tmp_path / "out" / "faults.txt") in summary.as_text()
    assert (told.count("KeyError: '[key]'"), told.count("RecursionError: deep")) == (1, 1)
    assert "model simulated/m" in told
    assert KEY not in told
    statuses = [row["status"] for row in read_attempts(tmp_path / "out").to_pylist()]
    assert (statuses.count("bad_reply"), statuses.count("ok")) == (3, 2)


async def test_what_a_grader_stumbles_over_is_in_the_folder_too(tmp_path, monkeypatch):
    def stumbling(*_):
        raise ZeroDivisionError("odd reply")

    monkeypatch.setattr("asyncbench.suites.table.grade", stumbling)
    async with raw_server() as server:
        server.manner = answering(body=written(OPENAI))
        summary = await asked(tmp_path, server, "simulated")

    assert summary.models["simulated/m"].grader_errors == 2
    assert "faults.txt" in summary.as_text()
    assert (tmp_path / "out" / "faults.txt").read_text().count("ZeroDivisionError: odd reply") == 1


def test_of_a_long_traceback_the_beginning_and_the_end_are_kept(tmp_path):
    Faults(tmp_path, ()).note("mini", ValueError("begins" + 50_000 * "x" + "ends"))
    text = (tmp_path / FAULTS).read_text()
    assert "begins" in text
    assert text.endswith("ends\n\n")
    assert LONGEST_TRACE < len(text) < LONGEST_TRACE + 100


async def test_a_cost_that_cannot_be_is_unknown_and_never_summed(tmp_path):
    async with raw_server() as server:
        server.manner = answering(body=used(OPENAI, b"5", cost=1e308))
        summary = await asked(tmp_path, server, "simulated")

    assert summary.models["simulated/m"].cost_usd == 0
    rows = read_attempts(tmp_path / "out").to_pylist()
    assert {row["cost_usd"] for row in rows} == {None}
    assert {row["note"] for row in rows} == {"cost of 1e+308 is impossible and was ignored"}
