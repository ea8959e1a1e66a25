"""What the endpoint table says of batches: who has them, how they depart, what was never tried."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.budget_bounds import check_budget
from asyncbench.providers.batch_calls import Submission
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.providers.listing import endpoint_rows, endpoints_as_json, endpoints_as_text
from asyncbench.providers.provider import open_batches
from asyncbench.records import BATCH
from asyncbench.run.findings import FindingState, batch_findings, settings_findings
from tests.providers.raw_server import answering, raw_server

UNPROVEN = ("azure", "google", "groq", "http")
OWN_FORM = ("gemini", "xai", "openrouter", "fireworks", "mistral", "together", "novita", "vertex")
AZURE = "https://r.openai.azure.com/openai/v1"


def sweep(model, **keys):
    entry = {"model": model, "mode": "batch", "max_tokens": 100, **keys}
    if model.startswith(("azure/", "http/")):
        entry = {"base_url": AZURE, **entry}
    return sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry], "out": "o"})


def test_the_table_tells_who_has_batches_and_which_were_never_tried():
    support = {name: endpoint.batch_support for name, endpoint in known_endpoints().items()}
    assert {name for name, said in support.items() if said == "unproven"} == set(UNPROVEN)
    assert {name for name, said in support.items() if said == "own form"} == set(OWN_FORM)
    assert {"openai", "anthropic"} <= {name for name, said in support.items() if said == "proven"}
    assert support["vllm"] is None


@pytest.mark.long
def test_models_shows_it_as_text_and_json():
    lines = endpoint_rows({}, moment=datetime(2026, 11, 22, tzinfo=UTC))
    told = {line["name"]: line["batches"] for line in json.loads(endpoints_as_json(lines))}
    assert (told["openai"], told["azure"], told["gemini"], told["vllm"]) == (
        "proven",
        "unproven",
        "own form",
        None,
    )
    ways = {line["name"]: line["batch_ways"] for line in json.loads(endpoints_as_json(lines))}
    assert ways["openai"] == ways["vllm"] == {}
    assert ways["groq"]["apis"] == ["chat"]
    assert ways["http"]["words"]["succeeded"] == "completed"
    assert ways["gemini"].keys() == {"form"}
    text = endpoints_as_text(lines)
    assert all(word in text for word in ("batches", "unproven", "own form"))


@pytest.mark.parametrize("provider", [*UNPROVEN, "openai"])
def test_who_has_batches_may_be_asked_so(provider):
    assert sweep(f"{provider}/some-model").models[0].mode == BATCH


@pytest.mark.parametrize("provider", OWN_FORM)
def test_who_has_batches_of_another_form_is_refused_with_the_way_out(provider):
    with pytest.raises(ConfigError, match=rf"mode: {provider} has no batch API .*own form.*`mode: realtime`"):
        sweep(f"{provider}/some-model")


@pytest.mark.parametrize("provider", ["deepseek", "deepinfra", "maritaca", "vllm", "ollama"])
def test_who_has_no_batches_is_refused_with_the_way_out(provider):
    with pytest.raises(
        ConfigError, match=rf"{provider} has no batch API.*`mode: realtime`.*`asyncbench models`.*`http/"
    ):
        sweep(f"{provider}/some-model")


def test_an_api_that_batches_do_not_take_is_refused_with_those_they_do():
    with pytest.raises(ConfigError, match=r"batches of groq take no api 'responses'\. Set `api: chat`"):
        sweep("groq/some-model", api="responses")
    with pytest.raises(ConfigError, match="batches of openai take no api 'completions'"):
        sweep("openai/davinci-002", api="completions")


def finding_of(name, look=None, **keys):
    (model,) = sweep(name, **keys).models
    found = list(batch_findings(model, known_endpoints()[model.provider], look))
    return found[0] if found else None


def test_doctor_says_what_was_never_tried():
    azure = finding_of("azure/gpt-5-mini")
    assert azure.state is FindingState.NOTE
    assert "never tried" in azure.said
    assert "endpoint: /" in azure.said
    assert "--limit 10" in str(azure.way_out)
    assert finding_of("openai/gpt-5-mini").state is FindingState.OK


def test_what_imitates_a_proven_vendor_at_another_address_was_never_tried():
    gateway = finding_of("openai/gpt-5-mini", base_url="http://gateway:4000/v1")
    assert gateway.state is FindingState.NOTE
    assert "never tried" in gateway.said


def test_in_real_time_doctor_says_nothing_of_batches():
    assert finding_of("azure/gpt-5-mini", mode="realtime") is None


def test_the_price_to_set_is_the_part_that_the_page_tells():
    (model,) = sweep("groq/some-model").models
    found = settings_findings(model, None, known_endpoints()["groq"].quirks, batch_part=0.8)
    assert "batch: 0.8" in str(next(finding.way_out for finding in found if finding.about == "price"))


def test_a_row_limits_how_large_a_batch_is():
    def limits(name):
        api = open_batches(sweep(name).models[0], key="k", simulator_url=None)
        return api.most_requests, api.most_bytes

    assert limits("openai/gpt-5-mini") == (50_000, 200_000_000)
    assert limits("azure/gpt-5-mini") == (100_000, 200_000_000)
    assert limits("groq/llama-3.3-70b-versatile") == (50_000, 100_000_000)


def test_a_row_says_how_long_to_wait_between_two_looks():
    looks = {
        name: open_batches(sweep(f"{name}/m").models[0], key="k", simulator_url=None).poll_s
        for name in ("openai", "azure")
    }
    assert looks == {"openai": 0, "azure": 60}


@pytest.mark.parametrize(
    ("provider", "created_for"), [("azure", "/chat/completions"), ("groq", "/v1/chat/completions")]
)
async def test_a_batch_is_created_for_the_path_that_the_row_names(tmp_path, provider, created_for):
    async with raw_server() as server:
        server.manner = answering(body={"id": "batch_1", "status": "validating", "created_at": 5})
        (model,) = sweep(f"{provider}/m", base_url=f"{server.url}/v1").models
        api = open_batches(model, key="k", simulator_url=None)
        try:
            file = Submission(path=tmp_path / "x", size=1, key="k", requests=1, sha256="s", file_id="file-1")
            batch = await api.create(file)
        finally:
            await api.aclose()
        assert batch.id == "batch_1"
        (received,) = server.received
        assert received.path == "/v1/batches"
        assert received.body["endpoint"] == created_for


def test_a_budget_names_the_part_that_the_vendor_s_page_tells():
    found = sweep("groq/some-model", price={"input": 1.0, "output": 2.0})
    check_budget(replace(found, budget_usd=1.0), found.models)
    for name, part in (("azure/gpt-4.1", "batch: 0.5"), ("groq/llama-3.3-70b-versatile", "batch: 0.5")):
        unknown = sweep(name)
        with pytest.raises(ConfigError, match=f"no batch price is known.*{part}"):
            check_budget(replace(unknown, budget_usd=1.0), unknown.models)
