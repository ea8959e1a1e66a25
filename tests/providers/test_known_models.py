"""Names that may mean another model tomorrow; models with prices; the lists of both."""

import json
from datetime import UTC, datetime

import pytest

from asyncbench.errors import ConfigError
from asyncbench.providers.listing import (
    endpoint_rows,
    endpoints_as_json,
    endpoints_as_text,
    models_as_json,
    models_as_text,
    models_of,
)
from asyncbench.providers.prices import is_moving_alias, published, same_model
from asyncbench.run.progress import Quiet
from asyncbench.run.sweep_run import run_sweep
from tests.sweep_files import problem_set, simulator, sweep

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
VALUE = "sk-secret-0123456789"


@pytest.mark.parametrize(
    ("model_id", "said"),
    [
        pytest.param("mistral-large-latest", "always the newest model", id="latest"),
        pytest.param("llama3:latest", "always the newest model", id="ollama's-tag"),
        pytest.param("gpt-4o", "gpt-4o-2024-08-06", id="openai's-date"),
        pytest.param("openai/gpt-5-mini", "openai/gpt-5-mini-2025-08-07", id="behind-a-router"),
        pytest.param("grok-4", "grok-4-0709", id="month-and-day"),
        pytest.param("claude-haiku-4-5", "claude-haiku-4-5-20251001", id="anthropic's"),
    ],
)
def test_a_name_that_may_move_is_told_with_the_way_out(model_id, said):
    assert said in str(is_moving_alias(model_id))


@pytest.mark.parametrize(
    "model_id",
    ["gpt-4o-2024-08-06", "claude-haiku-4-5-20251001", "claude-opus-4-8", "my-own-finetune", "", "qwen3-32b"],
)
def test_a_dated_name_or_an_unknown_one_is_not_said_to_move(model_id):
    assert is_moving_alias(model_id) is None


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        pytest.param("gpt-4o", "gpt-4o", True, id="equal"),
        pytest.param("gpt-4o", "gpt-4o-2024-08-06", True, id="dated"),
        pytest.param("mistral-small-latest", "mistral-small-2603", True, id="latest"),
        pytest.param("openai/gpt-5-mini", "gpt-5-mini-2025-08-07", True, id="router"),
        pytest.param("accounts/fireworks/models/m", "M", True, id="path-and-case"),
        pytest.param("gpt-4o", "gpt-4o-mini", False, id="another-size"),
        pytest.param("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", False, id="another-date"),
        pytest.param("gpt-4", "llama-3-8b", False, id="whatever-is-loaded"),
    ],
)
def test_who_answered_is_compared_by_name(asked, served, same):
    assert same_model(asked, served) is same


def test_published_models_are_sorted_and_each_has_a_price():
    models = published("openai", moment=AT)
    ids = [one.model_id for one in models]
    assert "gpt-4.1-mini" in ids
    assert ids == sorted(set(ids))
    assert all(one.rates.brackets[0].output >= 0 for one in models)


def test_a_vendor_that_puts_a_path_before_its_models_lists_what_a_sweep_would_name():
    starts = {model.model_id.partition("/")[0] for model in published("fireworks", moment=AT)}
    assert starts == {"accounts"}


def test_endpoints_tell_whether_a_key_is_set_and_never_its_value():
    lines = endpoint_rows({"XAI_API_KEY": VALUE, "GROQ_API_KEY": " "}, moment=AT)
    found = {one["name"]: one["key_set"] for one in lines}
    assert (found["xai"], found["groq"], found["openai"], found["ollama"]) == (True, False, False, None)
    for shown in (endpoints_as_text(lines), endpoints_as_json(lines)):
        assert VALUE not in shown
        assert "XAI_API_KEY" in shown


def test_a_vendors_models_show_every_long_context_tier():
    text = models_as_text(models_of("anthropic", moment=AT))
    rows = [line.split() for line in text.splitlines()]
    assert ["claude-sonnet-4-5", "3", "0.3", "15"] in rows
    assert ["200,000", "6", "0.6", "22.5"] in rows


def test_prices_in_json_are_exact_text():
    found = {one["model"]: one for one in json.loads(models_as_json(models_of("openai", moment=AT)))}
    (bracket,) = found["gpt-4.1-nano"]["usd_per_million_tokens"]
    assert (bracket["input"], bracket["output"]) == ("0.1", "0.4")


def test_a_person_sees_the_newest_versions_first_and_what_is_not_for_text_last():
    listed = [line.split(" ")[0] for line in models_as_text(models_of("openai", moment=AT)).splitlines()]
    some = ("gpt-5.6-sol", "gpt-5.1", "gpt-5-mini", "gpt-4.1-mini", "gpt-3.5-turbo-16k", "davinci-002")
    assert [name for name in listed if name in (*some, "gpt-4o-mini-tts")] == [*some, "gpt-4o-mini-tts"]


@pytest.mark.parametrize(
    ("provider", "said"),
    [("nobody", "unknown provider 'nobody'. Known: openai"), ("vllm", "no prices of vllm are known")],
)
def test_a_provider_without_a_list_is_an_error_with_a_way_out(provider, said):
    with pytest.raises(ConfigError, match=said):
        models_of(provider, moment=AT)


async def test_a_run_warns_at_its_start_of_a_name_that_may_move(tmp_path):
    problems, told = problem_set(tmp_path), list[str]()

    class Listening(Quiet):
        def say(self, message):
            told.append(message)

    with simulator(problems) as server:
        asked = {"model": "openai/gpt-4o", "base_url": f"{server.url}/v1"}
        planned = sweep(tmp_path / "out", problems, asked, "simulated/oracle")
        await run_sweep(planned, limit=1, env={"OPENAI_API_KEY": VALUE}, screen=Listening())
    moving = [message for message in told if "may change over time" in message]
    assert len(moving) == 1
    assert "gpt-4o-2024-08-06" in moving[0]
