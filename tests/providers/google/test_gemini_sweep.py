"""Sweeps over Gemini against a server with its own truth: calls, streams, a kill, and batches with faults."""

import signal
from collections import Counter

import orjson
import pyarrow.parquet as pq
import pytest

from asyncbench import hand_in_results, read_attempts, read_trials
from asyncbench.providers.google.batches import KEPT_S
from asyncbench.run.summary import Exit
from tests.commands import asyncbench
from tests.processes import Forked, until
from tests.providers.google.test_contents import DAY, HELP, MESSAGE, MINUTE
from tests.servers.gemini import KEY, gemini
from tests.sweep_files import problem_set, sweep_file
from tests.tiers import first_rows
from tests.world.batches import Night

ENV = {"GEMINI_API_KEY": KEY}
PRICE = {"input": 1, "cached_input": 0.1, "output": 10, "batch": 0.5}


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("sets"), trials=1)


@pytest.fixture
def server(problems):
    table = pq.read_table(problems, columns=["question", "expected"])
    with gemini(dict(zip(*table.to_pydict().values(), strict=True))) as running:
        yield running


def model(server, **keys):
    return {"model": "google/gemini-2.5-flash", "base_url": server.url, "price": PRICE, **keys}


def tokens(usages):
    """Sum up accounts of the server's: input and output, thoughts with it."""
    usages = [*usages]
    read = sum(used["promptTokenCount"] for used in usages)
    return read, sum(used["totalTokenCount"] for used in usages) - read


def billed(out):
    rows = read_attempts(out).to_pylist()
    columns = ("input_tokens", "output_tokens")
    return tuple(sum(row[column] or 0 for row in rows) for column in columns)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_sweep_counts_the_tokens_that_the_server_does(server, problems, tmp_path, stream):
    file = sweep_file(tmp_path, problems, model(server, stream=stream, thinking_tokens=64, max_tokens=200))

    done = asyncbench("run", file, "--limit", 12, env=ENV)

    assert done.returncode == Exit.COMPLETE, done.stderr
    rows = read_attempts(tmp_path / "out").to_pylist()
    assert Counter(row["status"] for row in rows) == {"ok": 12}
    assert billed(tmp_path / "out") == tokens(call["usage"] for call in server.calls)
    assert {row["reasoning_tokens"] for row in rows if row["status"] == "ok"} == {11}
    assert {row["ttft_s"] is None for row in rows if row["status"] == "ok"} == {not stream}
    assert {row["outcome"] for row in read_trials(tmp_path / "out").to_pylist()} == {"correct"}


@pytest.mark.long
def test_a_sweep_waits_out_a_minute_that_is_used_up(server, problems, tmp_path):
    server.refusals.append((429, MINUTE | {"retry": 0}))
    file = sweep_file(tmp_path, problems, model(server))

    assert asyncbench("run", file, "--limit", 12, env=ENV).returncode == Exit.COMPLETE
    rows = read_attempts(tmp_path / "out").to_pylist()
    assert Counter(row["status"] for row in rows) == {"ok": 12, "rate_limited": 1}
    assert billed(tmp_path / "out") == tokens(call["usage"] for call in server.calls)


@pytest.mark.long
def test_a_killed_sweep_goes_on_and_asks_nothing_twice(server, problems, tmp_path):
    file = sweep_file(tmp_path, problems, model(server, rpm=600))
    process = Forked("asyncbench", "run", file, "--quiet", env={**ENV})
    until(lambda: len(server.calls) >= 20)
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert asyncbench("run", file, env=ENV).returncode == Exit.COMPLETE
    rows = read_attempts(tmp_path / "out").to_pylist()
    answered = Counter(row["trial_id"] for row in rows if row["status"] == "ok")
    assert set(answered.values()) == {1}
    assert len(answered) == 72
    assert len(server.calls) - 72 == sum(row["status"] == "lost" for row in rows)


# ── Batches, with each fault once ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def night(server, problems, tmp_path):
    def made(*faults, **keys):
        raw = {
            "name": "night",
            "problems": [str(problems)],
            "models": [model(server, max_tokens=100)],
            "out": str(tmp_path / "out"),
            "mode": "batch",
            "batch": {"max_requests": 8, "rounds": 4},
            **keys,
        }
        server.faults.update(faults)
        return Night.of(server, raw)

    return made


FAULTS = (
    *("upload_reply_dropped", "create_dropped", "create_reply_dropped", "unlisted", "expires", "fails"),
    *("content_502", "content_cut", "line_error", "line_missing", "line_twice", "line_foreign"),
)


@pytest.mark.long
@pytest.mark.parametrize("fault", first_rows(3, FAULTS))
def test_a_fault_of_a_batch_costs_no_answer_and_no_money(night, server, fault):
    asked = night(fault)

    summary = asked.run(limit=12, env=ENV)

    assert summary.exit is Exit.COMPLETE, asked.screen.lines
    assert not server.faults[fault], "it was met"
    assert {outcome for outcome, *_ in asked.answers.values()} == {"correct"}
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert {row["mode"] for row in asked.attempts} == {"batch"}
    assert not server.calls
    assert billed(asked.out) == tokens(line["usage"] for line in server.executed)


def test_a_batch_costs_half_whatever_its_body_says(night, server):
    asked = night()
    asked.run(limit=6, env=ENV)

    read, written = tokens(line["usage"] for line in server.executed)
    assert sum(row["cost_usd"] for row in asked.attempts) == pytest.approx((read + 10 * written) / 2e6)


def test_a_batch_that_dies_with_its_run_is_found_again(night):
    asked = night()
    asked.dies_after(40, limit=12, env=ENV)

    asked.completes(limit=12, env=ENV)


@pytest.mark.long
def test_results_that_google_deleted_are_waited_for_as_long_as_they_may_be_there(night, server):
    asked = night("content_gone")
    assert asked.run(limit=6, env=ENV).exit is Exit.UNFINISHED
    assert asked.run(limit=6, env=ENV).exit is Exit.UNFINISHED
    assert len(server.batches) == 1
    server.ahead_s += KEPT_S

    assert (
        asked.run(limit=6, env=ENV).exit is Exit.UNFINISHED
    )  # the batch of the second round is deleted, too
    assert len(server.batches) == 2
    assert {row["status"] for row in asked.attempts} == {"lost"}


def test_results_fetched_by_hand_end_a_batch(night, server, tmp_path):
    asked = night()
    asked.dies_after(40, limit=6, env=ENV)
    server.ahead_s += 200
    (number,) = server.batches
    server.operation(number)  # it has ended
    (file := tmp_path / "batch-b1.jsonl").write_bytes(b"\n".join(server.batches[number]["results"]))

    found = hand_in_results([file], asked.out)

    assert (found.left_out, sum(part.results for part in found.parts)) == ((), 6)
    server.batches.clear()  # they are never asked for
    asked.completes(limit=6, env=ENV)


def test_a_create_that_is_refused_without_a_named_quota_waits_for_the_queue(night, server):
    server.refusals.append((429, {"error": {"code": 429, "message": MESSAGE, "details": [HELP]}}))
    asked = night()

    asked.completes(limit=6, env=ENV)

    assert any("pool of enqueued tokens is full" in line for line in asked.screen.lines)


@pytest.mark.long
def test_what_a_create_is_refused_for_is_waited_for(night, server):
    server.refusals += [(429, DAY)]
    asked = night()

    asked.completes(limit=6, env=ENV)
    assert any("GenerateRequestsPerDay" in part.why for part in asked.parts), orjson.dumps(asked.screen.lines)
