"""The doctor: one cheap call per model, through the real adapters, against real servers on this machine."""

import asyncio
import json
from dataclasses import replace

import pytest

from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError, ErrorKind, ProviderError
from asyncbench.providers.endpoints import Quirks, known_endpoints
from asyncbench.providers.provider import open_provider
from asyncbench.records import Limits, Model, Reply, Usage
from asyncbench.run.checkup import examine, models_from, noise_floor
from asyncbench.run.findings import (
    BatchCheck,
    Checkup,
    DoctorReport,
    FindingState,
    ProbeCall,
    batch_findings,
    call_findings,
    rate_headers,
    settings_findings,
)
from asyncbench.simulator.settings import Settings
from tests.commands import asyncbench, succeeded
from tests.providers.asking import CHAT
from tests.providers.raw_server import answering, head, raw_server, sending, stream_of
from tests.simulators import running
from tests.sweep_files import ADAPTERS, problem_set

KEY = "sk-secret-0123456789abcdef"
MODEL = Model(alias="m", provider="openai", model_id="gpt-4o", api="chat", key_env="OPENAI_API_KEY")
USAGE = Usage(input_tokens=20, output_tokens=1)


def models(*entries):
    return sweep_from({"name": "s", "problems": ["p"], "models": list(entries)}).models


def found(findings, about):
    """The one finding about a thing."""
    (one,) = (finding for finding in findings if finding.about == about)
    return one


async def checked(server, *, env=None, **keys):
    """The checkup of a model behind a raw server that answers chat completions."""
    entry = {"model": "openai/gpt-4o", "base_url": f"{server.url}/v1", **keys}
    (one,) = await examine(models(entry), env={"OPENAI_API_KEY": KEY} if env is None else env)
    return one


def report(*checkups):
    return DoctorReport(models=checkups)


# ── through the adapters ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", ADAPTERS)
async def test_a_model_that_works_is_fine_and_every_thing_was_looked_at(provider):
    (one,) = await examine(models(f"{provider}/oracle"), env={})
    assert one.fine
    assert one.simulated
    assert found(one.findings, "answer").said.startswith("'4'")
    assert found(one.findings, "stream").state is FindingState.OK
    assert {"key", "model", "usage", "thinking", "limits", "price"} <= {f.about for f in one.findings}
    assert None not in (one.latency_s, one.ttft_s)


class Stumbling:
    """A provider with a fault of ours."""

    async def ask(self, _request):
        raise KeyError(KEY)

    async def aclose(self):
        pass


async def test_a_fault_of_ours_is_a_finding_and_the_other_models_are_looked_at(monkeypatch):
    def open_one(model, **keys):
        if model.alias == "unopened":
            raise RuntimeError(KEY)
        return Stumbling() if model.alias == "stumbling" else open_provider(model, **keys)

    monkeypatch.setattr("asyncbench.run.checkup.open_provider", open_one)
    names = ("stumbling", "unopened", "good")
    entries = [{"model": "simulated/oracle", "alias": name, "seed": i} for i, name in enumerate(names)]
    stumbling, unopened, good = await examine(models(*entries), env={})
    assert (stumbling.fine, unopened.fine, good.fine) == (False, False, True)
    assert "KeyError" in found(stumbling.findings, "answer").said
    assert "RuntimeError" in found(unopened.findings, "asyncbench").said
    assert KEY not in report(stumbling, unopened).as_json()


async def test_a_key_that_is_not_set_is_told_by_its_name_and_nothing_is_called():
    async with raw_server() as server:
        one = await checked(server, env={})
        assert server.received == []
    assert "OPENAI_API_KEY is not set" in found(one.findings, "key").said
    assert not one.fine
    assert one.cost_usd == 0


async def test_a_setup_that_cannot_be_used_is_no_fault_of_the_key(monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    (one,) = await examine(models({"model": "bedrock/anthropic.claude-haiku", "max_tokens": 9}), env={})

    assert "provider bedrock: no region" in found(one.findings, "setup").said
    assert not [finding for finding in one.findings if finding.about == "key"]


async def test_what_stops_all_models_of_a_provider_is_told_once_in_text_and_of_each_in_json():
    names = ("a", "b", "c")
    of_one_key = [{"model": "openai/gpt-4o", "alias": name, "seed": i} for i, name in enumerate(names)]
    dead = [
        {"model": "http/m", "base_url": "http://127.0.0.1:9/v1", "alias": f"dead-{name}", "seed": i}
        for i, name in enumerate(names)
    ]
    told = report(*await examine(models(*of_one_key, *dead), env={}))
    text = told.as_text(width=300)
    assert text.count("OPENAI_API_KEY is not set (API key of a, b, c)") == 1
    assert text.count("start the server, or check base_url") == 1
    assert "a, b, c: NOT FINE" in text
    assert "dead-a, dead-b, dead-c: NOT FINE" in text
    for each in json.loads(told.as_json())["models"]:
        assert [finding["state"] for finding in each["findings"]].count("wrong") == 1


async def test_a_key_that_is_refused_is_told_without_the_key():
    async with raw_server() as server:
        server.manner = answering(401, {"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}})
        one = await checked(server)
        assert len(server.received) == 1, "no use to try a stream"
    finding = found(one.findings, "key")
    assert finding.state is FindingState.WRONG
    assert finding.way_out
    assert KEY not in report(one).as_text() + report(one).as_json()


async def test_rate_limit_headers_are_told_and_no_others():
    async with raw_server() as server:
        server.manner = answering(
            body={**CHAT, "model": "gpt-4o"}, x_ratelimit_limit_requests=500, set_cookie="secret=1"
        )
        one = await checked(server)
    assert found(one.findings, "limits").said == "x-ratelimit-limit-requests: 500"
    assert "secret=1" not in report(one).as_text()


async def test_the_calls_are_those_of_the_sweep_but_cheap():
    async with raw_server() as server:
        server.manner = answering(body=CHAT)
        await checked(server, temperature=0.5, max_tokens=9000, params={"user": "u"}, system="Be brief.")
        plain, streamed = (received.body for received in server.received)
    assert plain["max_completion_tokens"] == 1024
    assert (plain["temperature"], plain["user"]) == (0.5, "u")
    assert plain["messages"][0] == {"role": "system", "content": "Be brief."}  # type: ignore[index]  # a list
    assert ("stream" in plain, streamed["stream"]) == (False, True)


@pytest.mark.parametrize(
    ("provider", "keys", "sent"),
    [
        pytest.param("openai", {"params": {"max_tokens": 500}}, {"max_tokens": 500}, id="its own word"),
        pytest.param("openai", {"max_tokens": 7}, {"max_completion_tokens": 7}, id="a smaller limit"),
        pytest.param("vllm", {"params": {"max_tokens": 100_000}}, {"max_tokens": 1024}, id="a long reply"),
        pytest.param(
            "openrouter",
            {"params": {"reasoning": {"max_tokens": 3000}}},
            {"max_tokens": 4024},
            id="a budget in params",
        ),
        pytest.param(
            "openrouter", {"thinking_tokens": 3000}, {"max_tokens": 4024}, id="a budget of the sweep's"
        ),
    ],
)
async def test_a_longest_reply_and_a_budget_in_params_are_minded(provider, keys, sent):
    async with raw_server() as server:
        server.manner = answering(body=CHAT)
        await checked(server, model=f"{provider}/m", **keys, key_env="OPENAI_API_KEY")
        body = server.received[0].body
    assert {name: value for name, value in body.items() if name.startswith("max_")} == sent


async def test_a_budget_in_the_params_of_an_anthropic_model_stays_below_its_longest_reply():
    async with raw_server() as server:
        thinking = {"thinking": {"type": "enabled", "budget_tokens": 16_000}}
        await checked(server, model="anthropic/claude-sonnet-4-6", key_env="OPENAI_API_KEY", params=thinking)
        assert server.received[0].body["max_tokens"] == 17_024


async def test_models_of_one_address_are_asked_one_after_another():
    async with raw_server() as server:
        answer, at_once, most = answering(body=CHAT), 0, 0

        async def manner(*call):
            nonlocal at_once, most
            at_once, most = at_once + 1, max(most, at_once + 1)
            await asyncio.sleep(0.05)
            at_once -= 1
            return await answer(*call)

        server.manner = manner
        entries = [{"model": f"http/{name}", "base_url": f"{server.url}/v1"} for name in "abc"]
        checkups = await examine(models(*entries), env={})
    assert [one.fine for one in checkups] == [True] * 3
    assert most == 1


async def test_a_server_that_is_not_there_is_told_with_the_way_out():
    async with raw_server() as server:
        address = server.url
    entry = {"model": "http/m", "base_url": f"{address}/v1"}
    (one,) = await examine(models(entry), env={})
    assert "check base_url" in str(found(one.findings, "address").way_out)


async def test_a_stream_answered_in_one_piece_is_a_note():
    async with raw_server() as server:
        server.manner = answering(body=CHAT, content_type="application/json")
        one = await checked(server)
    assert found(one.findings, "stream").state is FindingState.NOTE
    assert one.ttft_s is None


async def test_a_price_of_the_sweep_tells_what_the_calls_cost():
    async with raw_server() as server:
        server.manner = answering(body=CHAT, content_type="application/json")
        one = await checked(server, price={"input": 1, "output": 2})
    assert one.cost_usd == 2 * 30e-6


STREAMED = b'data: {"choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}\n\n'


def one_way(server, *, streams):
    """A manner that answers calls that are streamed, or those that are not, and breaks off the others."""

    async def manner(writer):
        asked = bool(server.received[-1].body.get("stream"))
        good = sending(stream_of(STREAMED)) if asked else answering(body=CHAT)
        broken = sending(head(200, content_length=99), then_close=True)
        await (good if asked is streams else broken)(writer)

    return manner


@pytest.mark.parametrize(
    ("works", "stream", "fine", "about"),
    [
        pytest.param(False, False, True, "stream", id="a stream that nobody asks for"),
        pytest.param(False, True, False, "stream", id="a stream that the sweep asks for"),
        pytest.param(True, True, True, "whole", id="a whole answer that nobody asks for"),
        pytest.param(True, False, False, "answer", id="a whole answer that the sweep asks for"),
    ],
)
async def test_only_the_kind_of_call_that_the_sweep_makes_can_be_wrong(works, stream, fine, about):
    async with raw_server() as server:
        server.manner = one_way(server, streams=works)
        one = await checked(server, stream=stream)
    assert one.fine is fine
    assert found(one.findings, about).state is (FindingState.NOTE if fine else FindingState.WRONG)


async def test_what_is_known_of_the_cost_is_told_beside_what_is_not():
    async with raw_server() as server:
        server.manner = one_way(server, streams=False)
        one = await checked(server, price={"input": 1, "output": 2})
    assert report(one).as_text().endswith("These calls cost $0.000030 and 1 call of unknown cost.")
    (told,) = json.loads(report(one).as_json())["models"]
    assert (told["cost_usd"], told["costs_usd"]) == (None, [30e-6, None])


# ── from calls to findings ───────────────────────────────────────────────────────────────────


def plain(reply=None, *, model=MODEL, headers=None):
    reply = reply or Reply(text="4", model_served="gpt-4o", usage=USAGE)
    return list(call_findings(model, ProbeCall(ended=reply, latency_s=0.5, headers=headers or {}), None))


def refused(kind):
    return ProbeCall(ended=ProviderError(kind, "because"), latency_s=0.1)


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_of_failure_is_wrong_and_has_a_way_out(kind):
    answered, streaming = ProbeCall(ended=Reply(text="4"), latency_s=0.5), replace(MODEL, stream=True)
    in_stream = found(call_findings(streaming, answered, refused(kind)), "stream")
    for one in (*call_findings(MODEL, refused(kind), None), in_stream):
        assert one.state is FindingState.WRONG
        assert one.way_out
        assert "because" in one.said


@pytest.mark.parametrize(
    ("reply", "about", "said"),
    [
        pytest.param(Reply(text="4", model_served="other"), "model", "other answered for", id="who"),
        pytest.param(Reply(text="4"), "model", "does not say which model", id="who-unsaid"),
        pytest.param(Reply(text="five"), "answer", "'five'", id="a-strange-answer"),
        pytest.param(Reply(text="", finish_reason="length"), "answer", "thinks first", id="cut"),
        pytest.param(Reply(text="4"), "usage", "so the cost is unknown", id="usage-untold"),
        pytest.param(Reply(text="4"), "limits", "the provider reports none: set rpm", id="limits-untold"),
    ],
)
def test_what_somebody_should_know_is_a_note_and_nothing_wrong(reply, about, said):
    one = found(plain(reply), about)
    assert one.state is FindingState.NOTE
    assert said in one.said


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(text="4", reasoning="two and two"), id="text"),
        pytest.param(Reply(text="4", usage=replace(USAGE, reasoning_tokens=9)), id="tokens"),
    ],
)
def test_thinking_that_was_asked_for_and_seen_is_fine(reply):
    asked = replace(MODEL, effort="high")
    assert found(plain(reply, model=asked), "thinking").state is FindingState.OK
    assert found(plain(model=asked), "thinking").state is FindingState.NOTE


def test_thinking_that_was_switched_off_is_not_missed():
    assert found(plain(model=replace(MODEL, effort="none")), "thinking").state is FindingState.OK


def test_limits_that_the_sweep_sets_are_not_asked_for_again():
    assert found(plain(model=replace(MODEL, limits=Limits(rpm=60))), "limits").state is FindingState.OK


async def test_a_model_that_repeats_a_folder_is_not_asked(tmp_path):
    (one,) = await examine(models({"model": "simulated/m", "replay": str(tmp_path)}), env={})
    assert one.fine
    assert str(tmp_path) in found(one.findings, "replay").said


def test_a_name_that_moves_and_an_unknown_price_are_notes():
    findings = list(settings_findings(MODEL, None, Quirks()))
    assert [(one.about, one.state) for one in findings] == [
        ("name", FindingState.NOTE),
        ("price", FindingState.NOTE),
    ]


def test_quirks_that_apply_are_told():
    (one,) = (one for one in settings_findings(MODEL, None, Quirks(seed=None)) if one.about == "quirks")
    assert (one.state, one.said) == (FindingState.NOTE, "assumed, not tested: seed: none")


def test_only_rate_limit_headers_are_kept():
    kept = rate_headers(
        {"X-RateLimit-Limit": "1", "anthropic-ratelimit-x": "2", "Retry-After": "3", "authorization": "key"}
    )
    assert kept == {"x-ratelimit-limit": "1", "anthropic-ratelimit-x": "2", "retry-after": "3"}


# ── whom, and how it is told ─────────────────────────────────────────────────────────────────


def test_named_models_may_be_given_an_address_and_a_key():
    named = ["vllm/a", "vllm/b"]
    asked = models_from(named, base_url="http://127.0.0.1:9/v1", key_env="MY_KEY", or_nothing=False)
    assert [(one.model_id, one.base_url, one.key_env) for one in asked] == [
        (name, "http://127.0.0.1:9/v1", "MY_KEY") for name in ("a", "b")
    ]


@pytest.mark.parametrize(
    ("what", "base_url", "said"),
    [
        pytest.param([], None, "no model to check", id="nobody"),
        pytest.param(["configs/demo.yaml", "openai/x"], None, "a sweep file stands alone", id="both"),
        pytest.param(
            ["configs/demo.yaml"], "http://127.0.0.1:9/v1", "a sweep file stands alone", id="address"
        ),
        pytest.param(["nobody/x"], None, "unknown provider 'nobody'", id="provider"),
    ],
)
def test_what_cannot_be_looked_at_is_an_error(what, base_url, said):
    with pytest.raises(ConfigError, match=said):
        models_from(what, base_url=base_url, key_env=None, or_nothing=False)


@pytest.mark.parametrize(("option", "value"), [("--key-env", "sk-secret"), ("--base-url", "ftp://myhost")])
def test_an_option_that_is_none_is_told_by_its_name_and_not_repeated(option, value):
    done = asyncbench("doctor", "vllm/m", option, value)
    assert done.returncode == 2
    assert f"{option}: give" in done.stderr
    assert "known keys" not in done.stderr.lower()
    assert value not in done.stderr


def test_what_simulated_calls_would_cost_is_told_apart():
    one = Checkup(
        model="m",
        provider="p",
        model_id="m",
        simulated=False,
        findings=(),
        latency_s=None,
        ttft_s=None,
        costs_usd=(0.25, 0.25),
    )
    simulated = replace(one, simulated=True, costs_usd=(0.25,))
    told = report(one, simulated, replace(one, costs_usd=(None,))).as_text().splitlines()[-1]
    assert "cost $0.500000 and 1 call of unknown cost; SIMULATED calls, which are free: $0.25" in told
    assert told.endswith("which are free: $0.250000.")
    assert "SIMULATED" not in report(one).as_text()


async def test_a_simulator_of_one_s_own_is_fine_whatever_problems_it_was_given(tmp_path):
    problems = problem_set(tmp_path)
    with running(Settings(problems=(problems,))) as simulator:
        entry = {"model": "simulated/oracle", "base_url": f"{simulator.url}/v1"}
        (one,) = await examine(models(entry), env={})
    assert one.fine


@pytest.mark.long
async def test_the_noise_floor_is_told_for_every_adapter_and_says_that_it_is_simulated():
    noise = await noise_floor(latency_s=0.1)
    assert [one.adapter for one in noise] == ["openai", "anthropic", "http"]
    told = DoctorReport(models=(), noise=noise)
    assert told.as_text().startswith("SIMULATED")
    assert len(json.loads(told.as_json())["noise"]) == 3


@pytest.mark.long
def test_the_command_looks_at_a_sweep_and_ends_with_0_or_3(tmp_path):
    sweep = tmp_path / "s.yaml"
    sweep.write_text("{name: s, problems: [{suite: integer_addition}], models: [simulated/oracle]}")
    done = succeeded(asyncbench("doctor", sweep, "--json"))
    told = json.loads(done.stdout)
    assert [one["fine"] for one in told["models"]] == [True]
    done = asyncbench("doctor", "openai/gpt-4o")
    assert done.returncode == 3
    assert "OPENAI_API_KEY is not set" in done.stdout
    assert asyncbench("doctor").returncode == 2


def test_of_a_sweep_it_makes_two_calls_and_keeps_nothing(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with running(Settings(problems=(problems,))) as simulator:
        entry = {"model": "simulated/oracle", "base_url": f"{simulator.url}/v1"}
        file = tmp_path / "s.yaml"
        file.write_text(json.dumps({"name": "s", "problems": [str(problems)], "models": [entry]}))
        cache = tmp_path / "cache"
        succeeded(asyncbench("doctor", file, "--json", env={"XDG_CACHE_HOME": str(cache)}))
        assert simulator.stats()["requests"] == 2
    assert not cache.exists()


# ── batches ──────────────────────────────────────────────────────────────────────────────────


async def test_of_batches_doctor_says_how_large_and_pays_for_one_call_alone():
    (one,) = await examine(models({"model": "simulated/oracle", "mode": "batch"}), env={})
    batches = found(one.findings, "batches")
    assert batches.state is FindingState.OK
    assert "at most 50,000 requests and 200 MB" in batches.said
    assert len(one.costs_usd) == 1
    assert not [finding for finding in one.findings if finding.about == "stream"]


@pytest.mark.parametrize(
    ("place", "state", "said"),
    [
        ("groq", FindingState.NOTE, "never tried"),
        ("without", FindingState.NOTE, "no list: no_such_model: HTTP 404"),
    ],
)
def test_doctor_looks_whether_a_batch_api_answers(place, state, said):
    with running(Settings()) as server:
        entry = {"model": "groq/oracle", "mode": "batch", "base_url": f"{server.url}/{place}/v1"}
        (one,) = asyncio.run(examine(models(entry), env={"GROQ_API_KEY": KEY}))
    batches = found(one.findings, "batches")
    assert batches.state is state
    assert said in batches.said
    assert batches.way_out
    assert ("`fallback`" in batches.way_out) == (place == "without")
    assert one.fine


def test_doctor_does_not_promise_real_time_where_nobody_answers():
    model = replace(MODEL, mode="batch")
    look = BatchCheck(
        most_requests=1, most_bytes=1, error=ProviderError(ErrorKind.UNREACHABLE, "no connection")
    )
    (finding,) = batch_findings(model, known_endpoints()["openai"], look)
    assert finding.way_out == "check base_url, or set `mode: realtime`"
