"""One sweep over many endpoints with different ways, in one command, and its results as a user reads them."""

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from asyncbench import read_trials, run_sweep
from asyncbench.config.sweep import load_sweep
from asyncbench.run.summary import Exit
from tests.sweep_files import problem_set, simulator, sweep

ROOT = Path(__file__).resolve().parent.parent
WHOLE = {"ollama"}  # the others are streamed: told so, or because they think
THINKING = {"mistral", "xai", "claude"}
COUNTED = {"xai", "claude"}  # who says how much of the output was thinking


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Twenty problems of each model of the ready-made sweep, by alias."""
    from dataclasses import replace

    out = tmp_path_factory.mktemp("endpoints") / "out"
    asked = load_sweep(ROOT / "configs" / "endpoints.yaml")
    placed = [replace(source, path=ROOT / str(source.path)) for source in asked.problems]
    summary = asyncio.run(run_sweep(replace(asked, out=out, problems=tuple(placed)), limit=20))
    assert summary.exit is Exit.COMPLETE
    found = defaultdict(list)
    for row in read_trials(out).to_pylist():
        found[row["model"]].append(row)
    return found


@pytest.mark.long
def test_every_endpoint_answers_every_question(rows):
    assert {model: len(trials) for model, trials in rows.items()} == dict.fromkeys(rows, 20)
    assert len(rows) == 10
    for trials in rows.values():
        assert all(row["output_tokens"] > 0 and row["input_tokens"] > 0 for row in trials)
        assert all(row["finish_reason"] in ("stop", "end_turn", "completed") for row in trials)


def test_streams_tell_when_the_first_token_came_and_no_other_answers_do(rows):
    for model, trials in rows.items():
        for row in (row for row in trials if row["reply_text"]):
            if model in WHOLE:
                assert row["ttft_s"] is None
            else:
                assert 0 < row["ttft_s"] <= row["latency_s"]


def test_thinking_is_asked_for_and_counted_inside_the_output(rows):
    for model, trials in rows.items():
        spent = [row["reasoning_tokens"] or 0 for row in trials]
        assert any(spent) is (model in COUNTED)
        assert any(row["reasoning_text"] for row in trials) is (model in THINKING)
        assert all(row["output_tokens"] >= tokens for row, tokens in zip(trials, spent, strict=True))
    assert {row["effort"] for row in rows["mistral"]} == {"low"}


def test_a_provider_that_says_what_a_call_costs_is_believed(rows):
    assert {row["price_source"] for row in rows["openrouter"]} == {"simulated usage.cost"}
    assert all(row["cost_usd"] > 0 and row["upstream"] for row in rows["openrouter"])
    assert all(row["cost_usd"] is None for row in rows["deepseek"])


NAMES = ("mistral", "deepseek", "openrouter", "groq", "xai", "cerebras", "gemini", "vllm", "ollama")


@pytest.mark.long
def test_known_endpoints_are_asked_in_their_own_words(tmp_path, monkeypatch):
    """Each row of the endpoint table against a server that has that endpoint's ways."""
    problems, out = problem_set(tmp_path), tmp_path / "out"
    monkeypatch.setenv("SOME_KEY", "k")
    with simulator(problems) as server:
        models = [
            {
                "model": f"{name}/{name}:noisy",
                "alias": name,
                "base_url": f"{server.url}/v1",
                "key_env": "SOME_KEY",
                "max_tokens": 4000,
                "seed": 1,
                "effort": "low",
                "stream": "auto",
                "concurrency": 20,
            }
            for name in NAMES
        ]
        summary = asyncio.run(run_sweep(sweep(out, problems, *models), limit=30))
        stats = server.stats()
    assert summary.exit is Exit.COMPLETE
    assert stats["requests"] == stats["streams"] == 30 * len(NAMES)
    rows = read_trials(out).to_pylist()
    assert {row["provider"] for row in rows} == set(NAMES)
    assert all(row["ttft_s"] for row in rows if row["reply_text"])
    assert {row["provider"] for row in rows if row["reasoning_tokens"]} >= {"deepseek", "openrouter", "xai"}
