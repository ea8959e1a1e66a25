"""What all questions begin with is marked to be cached: the bill is smaller, and nothing else is another."""

from math import fsum

import pytest

from asyncbench.analysis.counting import counted
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.sweep_plan import plan
from asyncbench.reports.cost.report import cost_report_of, fine
from asyncbench.store.catalog import read_attempts, read_trials
from tests.sweep_files import entry, problem_set, run, simulator, sweep

PRICE = {"input": 3, "cached_input": 0.3, "cache_write": 3.75, "output": 15}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    problems = problem_set(tmp_path_factory.mktemp("sets"), trials=1)
    with simulator(problems) as server:
        yield problems, server


def claude(server, **keys):
    shared = {"alias": "claude", "concurrency": 1, "max_tokens": 100, "price": PRICE}
    return entry(server, "simulated-anthropic/noisy", **shared, **keys)


def calls(out):
    return read_attempts(out).sort_by("started_at").to_pylist()


def test_a_marked_beginning_is_written_once_and_read_ever_after(asked, tmp_path):
    problems, server = asked
    without, cached = tmp_path / "without", tmp_path / "cached"
    talk = {"conditions": [{"name": "talk", "context": "4k"}]}
    run(sweep(without, problems, claude(server), **talk), limit=6)
    run(sweep(cached, problems, claude(server, prompt_cache="5m"), **talk), limit=6)

    columns = ["trial_id", "reply_text", "outcome", "input_tokens"]
    plain, marked = (read_trials(out, columns=columns).sort_by("trial_id") for out in (without, cached))
    assert plain == marked
    first, *others = calls(cached)
    assert first["cache_write_tokens"] > 1_024
    assert {call["cached_input_tokens"] for call in others} == {first["cache_write_tokens"]}
    assert not any(call["cached_input_tokens"] or call["cache_write_tokens"] for call in calls(without))

    spent = counted(cached, cost_report_of).whole.spent
    usd = [fsum(call["cost_usd"] for call in calls(out)) for out in (without, cached)]
    assert spent.usd_saved == pytest.approx(usd[0] - usd[1])
    assert f"Caches saved {fine(spent.usd_saved)}." in counted(cached, cost_report_of).as_text()


@pytest.mark.long
def test_a_system_prompt_alone_is_marked_for_an_hour(asked, tmp_path):
    problems, server = asked
    model = claude(server, prompt_cache="1h", system="Answer with the number alone. " * 200)
    run(sweep(tmp_path / "out", problems, model), limit=6)
    written = [call["cache_write_tokens"] for call in calls(tmp_path / "out")]
    assert [tokens > 0 for tokens in written] == [True] + [False] * 5
    assert '"ephemeral_1h_input_tokens":1500' in calls(tmp_path / "out")[0]["raw_usage"]


def test_a_plan_reads_the_beginning_from_the_cache_or_says_that_it_is_too_short(asked, tmp_path):
    problems, server = asked
    plans = {}
    for cache, context in ((None, "4k"), ("5m", "4k"), ("5m", "1k")):
        model = claude(server, **({"prompt_cache": cache} if cache else {}))
        talk = [{"name": "talk", "context": context}]
        plans[cache, context] = plan(sweep(tmp_path / "out", problems, model, conditions=talk))
    text = {key: " ".join(made.as_text().split()) for key, made in plans.items()}
    assert "no input comes from a cache" in text[None, "4k"]
    assert "tokens of each question are read from a cache" in text["5m", "4k"]
    assert "`prompt_cache` has no effect: what all questions begin with is about" in text["5m", "1k"]
    usd = {key: made.models[0].cost_usd or 0 for key, made in plans.items()}
    assert 0 < usd["5m", "4k"] < usd[None, "4k"] / 2


def test_other_formats_have_no_mark():
    model = {"model": "openai/gpt-5-mini", "prompt_cache": "5m"}
    with pytest.raises(ConfigError, match=r"api 'chat' has no prompt_cache\. Remove `prompt_cache`"):
        sweep_from({"name": "s", "problems": ["p.parquet"], "models": [model]})
