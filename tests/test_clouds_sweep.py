"""One sweep over five models at five doors: OpenAI, Anthropic, Gemini, Bedrock, Azure with Entra ID."""

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict

import pytest

from asyncbench import read_attempts, read_trials
from asyncbench.run.summary import Exit
from tests.commands import CLEAN, ROOT, asyncbench_here, succeeded
from tests.servers.clouds import Count, clouds_before, machine
from tests.sweep_files import problem_set, run, simulator, sweep_file

DOORS = {
    "openai": {"model": "openai/gpt-5-mini", "base_url": "/plain/v1", "key_env": "OUR_KEY"},
    "anthropic": {"model": "anthropic/claude-haiku-4-5", "base_url": "/plain", "key_env": "OUR_KEY"},
    "gemini": {"model": "google/gemini-2.5-flash", "base_url": "/plain", "key_env": "OUR_KEY"},
    "bedrock": {"model": "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", "base_url": ""},
    "azure": {"model": "azure-entra/gpt-5-mini", "base_url": "/openai/v1"},
}
PRICES = {name: {"input": 1.0 + n, "output": 5.0 + n} for n, name in enumerate(DOORS)}
STREAMED = {"anthropic", "bedrock", "azure"}


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("problems"), trials=1)


@pytest.fixture
def clouds(problems, tmp_path, monkeypatch):
    with simulator(problems, latency_s=0.02) as server, clouds_before(server.url) as opened:
        for name, value in machine(opened, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield opened


def night(clouds, problems, folder, **keys):
    models = [
        {**door, "base_url": clouds.url + str(door["base_url"]), "alias": name, "price": PRICES[name]}
        | {"stream": name in STREAMED, "max_tokens": 400, "concurrency": 2}
        for name, door in DOORS.items()
    ]
    return sweep_file(folder, problems, *models, **keys)


def usd(name, count):
    return (count.input_tokens * PRICES[name]["input"] + count.output_tokens * PRICES[name]["output"]) / 1e6


def by_model(rows):
    found = defaultdict(list)
    for row in rows.to_pylist():
        found[row["model"]].append(row)
    return found


def counted(calls):
    """Return what the calls of a model count for, and their cost, USD."""
    answered = [call for call in calls if call["status"] == "ok"]
    tokens = (sum(call[f"{side}_tokens"] for call in answered) for side in ("input", "output"))
    return Count(len(answered), *tokens), sum(call["cost_usd"] for call in answered)


@pytest.mark.long
def test_a_night_over_five_doors_counts_what_the_servers_count(clouds, problems, tmp_path):
    clouds.revokes_at = 60  # in the middle, all that was lent ends
    summary = run(night(clouds, problems, tmp_path), limit=40)
    out = tmp_path / "out"

    assert summary.exit is Exit.COMPLETE
    trials, calls = by_model(read_trials(out)), by_model(read_attempts(out))
    assert {name: len(rows) for name, rows in trials.items()} == dict.fromkeys(DOORS, 40)
    for name in DOORS:
        told, cost_usd = counted(calls[name])
        assert told == clouds.counts[name]
        assert cost_usd == pytest.approx(usd(name, told))
        assert all((row["ttft_s"] is not None) is (name in STREAMED) for row in trials[name])
    renewed = {name for name in DOORS if any("new credentials" in str(row["error"]) for row in calls[name])}
    assert renewed == {"bedrock", "azure"}
    table = succeeded(asyncbench_here("report", out)).stdout
    assert all(name in table for name in DOORS)
    held = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"PL4NTED" not in held


@pytest.mark.long
def test_a_budget_over_five_doors_is_held(clouds, problems, tmp_path):
    summary = run(night(clouds, problems, tmp_path, budget_usd=0.02))
    spent = sum(usd(name, count) for name, count in clouds.counts.items())
    assert summary.exit is Exit.BUDGET
    assert 0.01 < spent <= 0.02
    calls = by_model(read_attempts(tmp_path / "out"))
    assert sum(counted(rows)[1] for rows in calls.values()) == pytest.approx(spent)


@pytest.mark.long
def test_a_night_over_five_doors_that_is_killed_goes_on(clouds, problems, tmp_path):
    sweep = night(clouds, problems, tmp_path)
    command = [sys.executable, "-m", "asyncbench", "run", str(sweep), "--quiet", "--workers", "2"]
    process = subprocess.Popen(command, cwd=ROOT, env=CLEAN | os.environ)
    while sum(count.calls for count in clouds.counts.values()) < 60:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {name: count.calls for name, count in clouds.counts.items()}
    assert min(before[name] for name in DOORS) > 0

    done = subprocess.run(command, cwd=ROOT, env=CLEAN | os.environ, check=False)
    assert done.returncode == 0
    trials, calls = by_model(read_trials(tmp_path / "out")), by_model(read_attempts(tmp_path / "out"))
    for name in DOORS:
        assert len({row["trial_id"] for row in trials[name]}) == len(trials[name]) == 72
        told, _ = counted(calls[name])
        assert 0 <= clouds.counts[name].calls - told.calls <= 2  # answers on their way when it was killed
