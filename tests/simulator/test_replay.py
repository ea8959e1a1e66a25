"""Recorded replies, served again over HTTP: which record a call gets, and under which names."""

import asyncio
import contextlib
from dataclasses import replace
from hashlib import blake2b

import aiohttp
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ConfigError, ErrorKind, ProblemSetError
from asyncbench.problems.schema import batches_of
from asyncbench.providers.error_bodies import read_error
from asyncbench.providers.error_kinds import kind_of
from asyncbench.records import Reply, Usage
from asyncbench.simulator.answers import read_recordings
from asyncbench.simulator.settings import COMPLETE, OF_STREAMS, FaultKind, parse_fault
from tests.store.made import AT, USAGE, add, model, result, trial, with_calls

QUESTION, OTHER = trial(1).problem.question, trial(2).problem.question


def took(text, *, n=1, run="night", alias="small", repeat=0, at_s=0.0, usage=USAGE, finish_reason="stop"):
    """The result of a trial of problem n; without a text it failed."""
    identity = blake2b(f"{n} {run} {alias} {repeat}".encode(), digest_size=16).hexdigest()
    asked = replace(trial(n), trial_id=identity, run=run, model=model(alias), repeat=repeat)
    answer = None if text is None else Reply(text=text, usage=usage, finish_reason=finish_reason)
    return replace(result(asked, answer), finished_at=AT + at_s)


def recorded(folder, *results, problems=(1, 2)):
    """Write a results folder with these results and the problems of these numbers."""
    add(folder, *(event for result in results for event in with_calls(result)))
    (folder / "problems").mkdir()
    batches = batches_of((trial(n).problem for n in problems), rows=8)
    if problems:
        pq.write_table(pa.Table.from_batches(batches), folder / "problems" / "nupa.parquet")
    return folder


@pytest.fixture
def replaying(simulator, tmp_path):
    """Start a simulator that replays one folder with these results; returns its client."""

    def start(*results, **settings):
        return simulator(replay=(recorded(tmp_path / "night", *results),), **settings)

    return start


async def texts(client, times, question=QUESTION, **fields):
    return [(await client.ask(question, **{"model": "night"} | fields)).text for _ in range(times)]


async def complete(client, **fields):
    """Ask until an answer is complete and return it."""
    while True:
        with contextlib.suppress(aiohttp.ClientError, orjson.JSONDecodeError):
            response = await client.ask(QUESTION, model="night", **fields)
            if response.status == 200 and "error" not in response.body:
                return response.text


def usage_of(response):
    """(input, output) tokens, in either vendor's shape."""
    usage = response.body["usage"]
    whose = ("prompt", "completion") if "prompt_tokens" in usage else ("input", "output")
    return tuple(usage[f"{name}_tokens"] for name in whose)


def why_ended(response):
    body = response.body
    return body["choices"][0]["finish_reason"] if "choices" in body else body["stop_reason"]


# ── which record a call gets ─────────────────────────────────────────────────────────────────


async def test_the_nth_answer_is_the_nth_record_and_then_the_last_again(replaying, wire):
    client = await replaying(*(took(text, repeat=n) for n, text in enumerate(["a", "b", "c"])))

    assert await texts(client, 5, wire=wire) == ["a", "b", "c", "c", "c"]


async def test_records_come_in_the_order_in_which_they_finished_then_of_repeats(replaying):
    client = await replaying(
        took("fourth", repeat=0, at_s=2),
        took("third", repeat=3, at_s=1),
        took("second", repeat=2, at_s=1),
        took("first", repeat=1, at_s=0),
    )

    assert await texts(client, 4) == ["first", "second", "third", "fourth"]


async def test_each_question_and_each_name_is_counted_by_itself(replaying):
    client = await replaying(took("a"), took("b", repeat=1), took("c", n=2))

    assert await texts(client, 1) == ["a"]
    assert await texts(client, 1, OTHER) == ["c"]
    assert await texts(client, 2, model="small") == ["a", "b"]
    assert await texts(client, 1) == ["b"]


async def test_a_record_is_never_out_on_two_calls_and_comes_back_when_its_client_leaves(replaying):
    client = await replaying(took("a"), took("b", repeat=1))
    slow = asyncio.create_task(client.ask(QUESTION, model="night", simulate={"latency_s": 600}))
    await client.until(lambda stats: stats["in_flight"] == 1)
    assert await texts(client, 2) == ["b", "b"]
    slow.cancel()
    await client.until(lambda stats: stats["in_flight"] == 0)

    assert await texts(client, 2) == ["a", "b"]


async def test_twins_in_flight_get_different_records(replaying, wire):
    client = await replaying(*(took(str(n), repeat=n) for n in range(20)), latency_s=0.01)
    found = await asyncio.gather(*(texts(client, 1, wire=wire) for _ in range(20)))

    assert {text for (text,) in found} == {str(n) for n in range(20)}


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(set(FaultKind) - {FaultKind.STALL} - COMPLETE - OF_STREAMS))
async def test_a_fault_gives_the_record_back(replaying, wire, kind):
    client = await replaying(took("a"), took("b", repeat=1), faults=(parse_fault(f"{kind}=0.9"),))

    assert [await complete(client, wire=wire) for _ in range(3)] == ["a", "b", "b"]
    assert (await client.stats())["faults"][kind] > 3


async def test_a_call_past_a_limit_gives_the_record_back(replaying):
    client = await replaying(*(took(str(n), repeat=n) for n in range(99)), rpm=600, burst_s=0.1)
    responses = [await client.ask(QUESTION, model="night") for _ in range(30)]
    answers = [response.text for response in responses if response.status == 200]

    assert 429 in {response.status for response in responses}
    assert [*answers, await complete(client)] == [str(n) for n in range(len(answers) + 1)]


async def test_a_recorded_failure_is_met_by_every_attempt(replaying, wire):
    client = await replaying(took(None))
    responses = [await client.ask(QUESTION, model="night", wire=wire) for _ in range(3)]
    stats = await client.stats()

    assert [response.status for response in responses] == [404] * 3
    assert "recorded as failed" in responses[0].body["error"]["message"]
    assert kind_of(404, read_error(responses[0].content), wait_s=None) is ErrorKind.BAD_REQUEST
    assert (stats["delivered"], stats["statuses"]) == (0, {"404": 3})


async def test_what_follows_a_recorded_failure_is_reached_while_the_failure_is_out(replaying):
    client = await replaying(took(None), took("b", repeat=1))
    slow = asyncio.create_task(client.ask(QUESTION, model="night", simulate={"latency_s": 600}))
    await client.until(lambda stats: stats["in_flight"] == 1)

    assert await texts(client, 1) == ["b"]
    slow.cancel()


# ── what an answer is ────────────────────────────────────────────────────────────────────────


async def test_an_empty_reply_stays_empty(replaying, wire):
    response = await (await replaying(took(""))).ask(QUESTION, model="night", wire=wire)

    assert (response.status, response.text) == (200, "")


async def test_tokens_are_those_that_were_recorded(replaying, wire):
    response = await (await replaying(took("102"))).ask(QUESTION, model="night", wire=wire)

    assert usage_of(response) == (USAGE.input_tokens, USAGE.output_tokens)


@pytest.mark.parametrize("usage", [None, Usage()], ids=["no usage", "no tokens"])
async def test_tokens_that_nobody_told_are_estimated(replaying, wire, usage):
    client = await replaying(took("12345678", usage=usage))

    assert usage_of(await client.ask(QUESTION, model="night", wire=wire)) == (2, 2)


async def test_an_answer_of_no_tokens_has_none(replaying, wire):
    client = await replaying(took("", usage=Usage(input_tokens=0, output_tokens=0)))

    assert usage_of(await client.ask(QUESTION, model="night", wire=wire)) == (0, 0)


async def test_limits_are_charged_with_the_recorded_tokens(replaying):
    client = await replaying(took("102"), tpm=57, burst_s=60)  # 50 + 7 are recorded
    response = await client.ask(QUESTION, model="night")

    assert response.headers["x-ratelimit-remaining-tokens"] == "0"


@pytest.mark.parametrize(
    ("finish_reason", "told"),
    [
        ("stop", ("stop", "end_turn")),
        (None, ("stop", "end_turn")),
        ("length", ("length", "max_tokens")),
        ("max_tokens", ("length", "max_tokens")),
        ("max_output_tokens", ("length", "max_tokens")),
        ("model_context_window_exceeded", ("length", "max_tokens")),
    ],
)
async def test_an_answer_is_cut_where_the_recorded_one_was(replaying, finish_reason, told):
    client = await replaying(took("102", finish_reason=finish_reason))
    responses = [await client.ask(QUESTION, model="night", wire=wire) for wire in ("openai", "anthropic")]

    assert tuple(map(why_ended, responses)) == told


async def test_an_answer_is_never_cut_by_what_the_request_wants(replaying, wire):
    client = await replaying(took("long " * 100))
    response = await client.ask(QUESTION, model="night", wire=wire, max_tokens=1)

    assert (response.text, why_ended(response)) == ("long " * 100, {"openai": "stop"}.get(wire, "end_turn"))


# ── questions that were not recorded ─────────────────────────────────────────────────────────


async def test_an_unknown_question_is_final_for_the_trial_and_names_where_it_was_looked_for(
    replaying, wire, tmp_path
):
    response = await (await replaying(took("a"))).ask(OTHER, model="night", wire=wire)
    error = read_error(response.content)

    assert response.status == 404
    assert response.body["error"]["type"] == "invalid_request_error"
    assert error.codes[0] == "unknown_question"
    assert kind_of(404, error, wait_s=None) is ErrorKind.BAD_REQUEST
    for part in (repr(OTHER), "'night'", str(tmp_path / "night")):
        assert part in error.text


async def test_an_unknown_question_costs_nothing(replaying):
    client = await replaying(took("a"), rpm=1)
    statuses = [(await client.ask(asked, model="night")).status for asked in (OTHER, OTHER, QUESTION)]

    assert statuses == [404, 404, 200]


async def test_a_trial_whose_problem_is_not_in_the_folder_is_left_out(simulator, tmp_path):
    folder = recorded(tmp_path / "night", took("a"), took("b", n=2), problems=[2])
    client = await simulator(replay=(folder,))

    assert [(await client.ask(asked, model="night")).status for asked in (QUESTION, OTHER)] == [404, 200]


# ── names ────────────────────────────────────────────────────────────────────────────────────


async def listed(client, wire="openai"):
    headers = {"anthropic-version": "2023-06-01"} if wire == "anthropic" else {}
    response = await client.send("GET", "/v1/models", headers=headers)
    return [entry["id"] for entry in response.body["data"]]


async def test_the_models_listed_are_the_simulator_s_own_and_those_recorded(replaying, wire):
    client = await replaying(took("a"))

    assert await listed(client, wire) == ["oracle", "noisy", "night", "small"]


async def test_the_simulator_s_own_models_answer_beside(replaying, expected):
    client = await replaying(took("recorded", alias="oracle"))
    (question, answer), *_ = expected.items()

    assert await listed(client) == ["oracle", "noisy", "night"]
    assert (await client.ask(question, model="oracle")).text == answer
    assert await texts(client, 1) == ["recorded"]


async def test_a_recorded_alias_comes_before_a_made_up_model_of_that_name(replaying):
    client = await replaying(took("recorded", alias="noisy-2"))

    assert await texts(client, 1, model="noisy-2") == ["recorded"]


async def test_a_run_of_several_models_is_no_name_but_each_alias_is(replaying):
    client = await replaying(took("a"), took("b", alias="large"))

    assert await listed(client) == ["oracle", "noisy", "large", "small"]
    assert await texts(client, 1, model="large") == ["b"]
    assert (await client.ask(QUESTION, model="night")).status == 404


async def test_an_alias_of_several_runs_is_refused_with_their_names(replaying, wire):
    client = await replaying(took("a", run="monday"), took("b", run="tuesday"))
    response = await client.ask(QUESTION, model="small", wire=wire)
    error = read_error(response.content)

    assert await listed(client) == ["oracle", "noisy", "monday", "tuesday"]
    assert (response.status, kind_of(404, error, wait_s=None)) == (404, ErrorKind.NO_SUCH_MODEL)
    assert "model_not_found" in error.codes
    assert "'monday'" in error.text
    assert "'tuesday'" in error.text
    assert await texts(client, 1, model="tuesday") == ["b"]


async def test_a_run_s_name_comes_before_an_alias(replaying):
    client = await replaying(took("by run", run="x"), took("by alias", run="y", alias="x"))

    assert await texts(client, 1, model="x") == ["by run"]


async def test_a_name_in_two_folders_is_refused_with_both(simulator, tmp_path):
    folders = (
        recorded(tmp_path / "one", took("a", run="monday")),
        recorded(tmp_path / "two", took("b", run="monday", alias="large")),
    )
    client = await simulator(replay=folders)
    response = await client.ask(QUESTION, model="monday")

    assert await listed(client) == ["oracle", "noisy", "large", "small"]
    assert response.status == 404
    assert all(str(folder) in response.body["error"]["message"] for folder in folders)


async def test_a_model_that_nobody_recorded_is_refused_with_the_names_there_are(replaying):
    response = await (await replaying(took("a"))).ask(QUESTION, model="medium")

    assert (response.status, response.body["error"]["code"]) == (404, "model_not_found")
    assert "oracle, noisy, night, small" in response.body["error"]["message"]


# ── folders ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("problems", [[], [2]], ids=["no file", "none of its problems"])
def test_a_folder_without_its_problems_is_refused_with_the_way_out(tmp_path, problems):
    folder = recorded(tmp_path / "night", took("a"), problems=problems)

    with pytest.raises(ProblemSetError, match=rf"{folder}: .*'data/nupa\.parquet'; put the copy back"):
        read_recordings([folder])


def test_a_folder_without_trials_or_results_or_named_twice_is_refused(tmp_path):
    folder = recorded(tmp_path / "night", took("a"))
    for folders, complaint in (
        ([recorded(tmp_path / "empty")], "empty holds no finished trial"),
        ([tmp_path], "is not a results folder"),
        ([folder, folder / ".." / "night"], "night 2 times; name it once"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            read_recordings(folders)


# ── as other providers ───────────────────────────────────────────────────────────────────────


async def test_a_recorded_name_with_a_provider_s_is_meant_whole(replaying):
    client = await replaying(took("a", alias="mistral:noisy"), took("b", alias="small"))
    first = await client.ask(QUESTION, model="mistral:noisy")
    second = await client.ask(QUESTION, model="deepseek:small")
    third = await client.ask(QUESTION, model="deepseek:mistral:noisy")

    assert (first.text, second.text, third.text) == ("a", "b", "a")
    assert ["prompt_cache_hit_tokens" in one.body["usage"] for one in (first, third)] == [False, True]


async def test_a_streamed_answer_counts_once_it_is_complete(replaying, wire):
    client = await replaying(took("a"), took("b", repeat=1), faults=(parse_fault("no_terminator=0.5"),))
    told: list[bool] = []
    while len(told) < 3:
        content = (await client.ask(QUESTION, model="night", wire=wire, stream=True)).content
        if b"[DONE]" in content or b"message_stop" in content:
            told.append(b'"b"' in content)

    assert told == [False, True, True]


async def test_a_recorded_failure_is_no_stream(replaying, wire):
    client = await replaying(took(None))

    assert (await client.ask(QUESTION, model="night", wire=wire, stream=True)).status == 404


async def test_recorded_reasoning_is_given_again(simulator, tmp_path):
    usage = Usage(input_tokens=5, output_tokens=30, reasoning_tokens=20)
    told = took("a", usage=usage)
    told = replace(told, reply=replace(told.reply, reasoning="So it is."))
    client = await simulator(replay=(recorded(tmp_path / "night", told),))
    body = (await client.ask(QUESTION, model="xai:night")).body

    assert body["choices"][0]["message"]["reasoning_content"] == "So it is."
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == 20
