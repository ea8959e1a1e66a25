"""Claude on Bedrock and Vertex, GPT on Azure with Entra ID: the real SDKs, and the clouds' own chains."""

import asyncio
import json
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import aiohttp
import pyarrow.parquet as pq
import pytest

from asyncbench.config.sweep import sweep_from
from asyncbench.errors import ConfigError, ErrorKind
from asyncbench.providers.bedrock.answers import sse_events
from asyncbench.providers.clouds import SOON_S
from asyncbench.providers.listing import models_of
from asyncbench.providers.prices import rates_of, same_model
from asyncbench.providers.provider import open_provider
from asyncbench.records import Message
from tests.providers.asking import asking, failure_of
from tests.servers import clouds as doors
from tests.servers.clouds import aws_error, clouds_before, frame, google_error, machine
from tests.sweep_files import problem_set, simulator

MODELS = {
    "bedrock": ("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", ""),
    "vertex": ("vertex-anthropic/claude-haiku-4-5@20251001", "/v1"),
    "azure": ("azure-entra/gpt-5-mini", "/openai/v1"),
}
CLOUDS = pytest.mark.parametrize("cloud", MODELS)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """A simulator, and a question that it knows."""
    problems = problem_set(tmp_path_factory.mktemp("clouds"), trials=1)
    with simulator(problems) as server:
        yield server.url, pq.read_table(problems, columns=["question"])["question"][0].as_py()


@pytest.fixture
def clouds(upstream, tmp_path, monkeypatch):
    """The doors, on a machine to which each cloud lends credentials."""
    with clouds_before(upstream[0]) as opened:
        for name, value in machine(opened, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield opened


def model_at(url, cloud, **keys):
    name, path = MODELS[cloud]
    entry = {"model": name, "base_url": f"{url}{path}", "max_tokens": 400, **keys}
    return sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry], "out": "o"}).models[0]


def asking_of(model, question="What is 20 + 22?"):
    request = asking(messages=(Message(role="user", content=question),))
    return replace(request, trial=replace(request.trial, model=model))


@pytest.fixture
def at(clouds, upstream, opened):
    """What opens a cloud's provider, and the request that it is asked."""

    def opening(cloud, **keys):
        model = model_at(clouds.url, cloud, **keys)
        return opened(open_provider(model, key="", simulator_url=None)), asking_of(model, upstream[1])

    return opening


def without_credentials(monkeypatch):
    for name in ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "IDENTITY_ENDPOINT"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")


@pytest.mark.long
@CLOUDS
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_cloud_lets_in_who_signs_or_brings_a_token_of_its_chain(clouds, at, cloud, stream):
    provider, request = at(cloud, stream=stream)
    replies = await asyncio.gather(*(provider.ask(request) for _ in range(4)))
    assert len({reply.text for reply in replies}) == 1
    assert len(clouds.lent) == 1  # looked for once, however many calls wait for it
    count = clouds.counts[cloud]
    assert count.calls == 4
    assert count.input_tokens == sum(reply.usage.input_tokens for reply in replies)
    assert count.output_tokens == sum(reply.usage.output_tokens for reply in replies)
    for reply in replies:
        assert (reply.ttft_s is not None) is stream
        assert "PL4NTED" not in repr(reply)


@CLOUDS
async def test_what_ends_soon_is_renewed_beside_the_calls_once(clouds, at, cloud):
    provider, request = at(cloud)
    await provider.ask(request)
    provider._cloud._now = lambda: time.time() + 3600 - SOON_S  # its end is near
    calls = [provider.ask(request) for _ in range(4)]
    assert all([(await call).text for call in calls])
    while provider._cloud._renewal is None or not provider._cloud._renewal.done():  # noqa: ASYNC110  a thread
        await asyncio.sleep(0.01)
    assert len(clouds.lent) == 2


@CLOUDS
async def test_what_has_ended_is_not_brought_again(clouds, at, cloud):
    provider, request = at(cloud)
    await provider.ask(request)
    clouds.revoke_all()
    provider._cloud._now = lambda: time.time() + 3600
    await asyncio.gather(*(provider.ask(request) for _ in range(4)))
    assert len(clouds.lent) == 2


@CLOUDS
async def test_what_ends_in_the_middle_of_a_night_is_looked_for_anew(clouds, at, cloud):
    provider, request = at(cloud)
    await provider.ask(request)
    clouds.revoke_all()
    ended = await asyncio.gather(*(failure_of(provider, request) for _ in range(3)))
    assert [error.kind for error in ended] == [ErrorKind.SERVER_ERROR] * 3  # worth another try
    assert all(error.message.endswith("(new credentials were found)") for error in ended)
    assert (await provider.ask(request)).text
    assert len(clouds.lent) == 2


@CLOUDS
async def test_what_cannot_be_renewed_at_once_is_worth_another_try(clouds, at, cloud, monkeypatch):
    provider, request = at(cloud)
    await provider.ask(request)
    clouds.revoke_all()
    with monkeypatch.context() as nothing:
        without_credentials(nothing)
        failed = await failure_of(provider, request)
    assert (failed.kind, failed.may_have_been_billed) == (ErrorKind.UNREACHABLE, False)
    assert (await provider.ask(request)).text


@CLOUDS
async def test_who_gives_credentials_may_be_down_for_a_while(clouds, at, cloud):
    clouds.unable = True
    provider, request = at(cloud)
    failed = await failure_of(provider, request)
    assert (failed.kind, failed.never_sent, failed.before_call) == (ErrorKind.UNREACHABLE, True, True)
    clouds.unable = False
    assert (await provider.ask(request)).text


@CLOUDS
async def test_who_gives_credentials_may_be_away_for_a_while(clouds, at, cloud, monkeypatch, tmp_path):
    provider, request = at(cloud)
    with monkeypatch.context() as away:
        for name, value in machine(replace(clouds, url="http://127.0.0.1:9"), tmp_path).items():
            away.setenv(name, value)
        failed = await failure_of(provider, request)
        assert (failed.kind, failed.never_sent) == (ErrorKind.UNREACHABLE, True)
    machine(clouds, tmp_path)
    assert (await provider.ask(request)).text


@CLOUDS
async def test_what_a_server_repeats_of_it_is_withheld(clouds, at, cloud):
    provider, request = at(cloud)
    await provider.ask(request)
    (token,) = clouds.lent
    assert bool(getattr(provider, "_doors")) is (cloud == "azure")  # noqa: B009  others are built each
    clouds.refusals.append(doors.Turned(400, {"error": {"message": f"no {token}, and {clouds.lent[token]}"}}))
    refused = await failure_of(provider, request)
    assert "no [key], and" in refused.message
    assert "PL4NTED" not in refused.message


@CLOUDS
async def test_a_chain_that_finds_nothing_says_so_and_nothing_is_sent(clouds, at, cloud, monkeypatch):
    without_credentials(monkeypatch)
    failed = await failure_of(*at(cloud))
    assert (failed.kind, failed.never_sent) == (ErrorKind.AUTH, True)
    assert "chain finds no credentials: " in failed.message
    assert clouds.counts == {}


GIVES = """echo x >> {folder}/runs; sleep 0.1
echo '{{"Version": 1, "AccessKeyId": "AKIAPL4NTED", "SecretAccessKey": "s3cr3t", "Expiration": "{ends}"}}'"""


@pytest.fixture
def program(monkeypatch, tmp_path, server, opened):
    """What opens Bedrock's provider on a machine with a `credential_process`, and counts its runs."""

    def opening(script, **within):
        ends = f"{datetime.now(UTC) + timedelta(**within):%Y-%m-%dT%H:%M:%SZ}"
        (tmp_path / "program.sh").write_text(script.format(folder=tmp_path, ends=ends))
        (tmp_path / "config").write_text(
            f"[default]\nregion = us-east-1\ncredential_process = bash {tmp_path}/program.sh\n"
        )
        model = model_at(server.url, "bedrock")
        return opened(open_provider(model, key="", simulator_url=None)), asking_of(model)

    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return opening


@pytest.mark.parametrize("minutes", [60, 14, 6])
async def test_a_program_that_gives_credentials_runs_once_for_many_calls(program, tmp_path, server, minutes):
    provider, request = program(GIVES, minutes=minutes)
    for _ in range(3):
        await asyncio.gather(*(failure_of(provider, request) for _ in range(4)))  # it answers with nothing
    assert len(server.received) == 12
    assert (tmp_path / "runs").read_text().split() == ["x"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no login >&2; exit 3", "no login"),
        ("echo no JSON", "Expecting value"),
        ("echo '{{\"Version\": 2}}'", "Unsupported version"),
        ("echo '{{\"Version\": 1}}'", "Missing required key"),
        ("sleep 60", "credential_process did not end within 0.2 s"),
    ],
)
async def test_a_program_that_gives_none_is_told_of(program, server, monkeypatch, script, why):
    monkeypatch.setattr("asyncbench.providers.bedrock.client.PROGRAM_S", 60 if "sleep" not in script else 0.2)
    failed = await failure_of(*program(script, minutes=60))
    assert (failed.kind, failed.never_sent) == (ErrorKind.AUTH, True)
    assert why in failed.message
    assert server.received == []


async def test_a_wrong_signature_is_final(clouds, at, monkeypatch):
    provider, request = at("bedrock")
    await provider.ask(request)
    for token in clouds.lent:
        clouds.lent[token] = "another-secret"
    monkeypatch.setattr(doors.Clouds, "_lend", lambda opened, *_: next(iter(opened.lent)))
    refused = await failure_of(provider, request)
    assert (refused.kind, refused.http_status) == (ErrorKind.AUTH, 403)
    assert refused.message == f"HTTP 403 invalidsignatureexception: {doors.BAD_SIGNATURE}"


async def test_a_bearer_token_of_bedrock_s_own_is_brought_instead_of_a_signature(server, opened, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-PL4NTED")
    monkeypatch.setenv("AWS_REGION", doors.REGION)
    model = model_at(server.url, "bedrock")
    refused = await failure_of(opened(open_provider(model, key="", simulator_url=None)), asking_of(model))
    assert refused.kind is ErrorKind.BAD_REPLY  # the server answers everybody with nothing
    assert server.received[0].headers["authorization"] == "Bearer bedrock-api-key-PL4NTED"


ON_DEMAND = (
    "Invocation of model ID anthropic.claude-opus-5 with on-demand throughput isn’t supported. Retry your "
    "request with the ID or ARN of an inference profile that contains this model."
)
NO_ACCESS = "You don't have access to the model with the specified model ID."


@pytest.mark.parametrize(
    ("cloud", "refusal", "kind", "wait_s"),
    [
        ("bedrock", aws_error(429, "ThrottlingException", doors.MINUTE), ErrorKind.RATE_LIMITED, None),
        ("bedrock", aws_error(429, "ThrottlingException", doors.DAY), ErrorKind.RATE_LIMITED, 3600.0),
        ("bedrock", aws_error(400, "ValidationException", ON_DEMAND), ErrorKind.BAD_REQUEST, None),
        ("bedrock", aws_error(403, "AccessDeniedException", NO_ACCESS), ErrorKind.AUTH, None),
        ("bedrock", aws_error(429, "ModelNotReadyException", "Try again."), ErrorKind.OVERLOADED, None),
        ("bedrock", aws_error(424, "ModelErrorException", "It failed."), ErrorKind.SERVER_ERROR, None),
        ("bedrock", aws_error(408, "ModelTimeoutException", "Too long."), ErrorKind.TIMEOUT, None),
        ("vertex", google_error(429, "RESOURCE_EXHAUSTED", doors.GOOGLE_QUOTA), ErrorKind.RATE_LIMITED, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_refusal_of_a_cloud_is_named(clouds, at, cloud, refusal, kind, wait_s):
    clouds.refusals.append(refusal)
    refused = await failure_of(*at(cloud))
    told = json.loads(refusal.answer.body)
    assert (refused.kind, refused.retry_after_s) == (kind, wait_s)
    assert (told.get("message") or told["error"]["message"]) in refused.message
    if cloud == "bedrock":
        assert refusal.answer.headers["x-amzn-errortype"].partition(":")[0].lower() in refused.message
    days = [limit.what for limit in refused.allowances if limit.period_s > 60 and limit.remaining == 0]
    assert days == (["tokens"] if wait_s else [])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("throttlingException", ErrorKind.RATE_LIMITED), ("modelStreamErrorException", ErrorKind.SERVER_ERROR)],
)
async def test_an_exception_within_a_stream_of_bedrock_is_named_and_may_be_billed(clouds, at, name, kind):
    clouds.breaks.append((name, doors.MINUTE))
    refused = await failure_of(*at("bedrock", stream=True))
    assert (refused.kind, refused.may_have_been_billed) == (kind, True)
    assert doors.MINUTE in refused.message


async def test_frames_are_read_in_pieces_of_any_size_and_damaged_ones_are_refused():
    whole = frame({":message-type": "event"}, {"bytes": "eyJhIjoxfQ=="}) * 2

    async def pieces(data, size):
        for start in range(0, len(data), size):
            yield data[start : start + size]

    for size in (1, 7, len(whole)):
        assert [event async for event in sse_events(pieces(whole, size))] == [b'data: {"a":1}\n\n'] * 2
    with pytest.raises(aiohttp.ClientPayloadError, match="no frames of AWS"):
        [event async for event in sse_events(pieces(whole[:-1] + b"\0", 50))]


async def test_older_models_are_asked_in_the_version_that_takes_a_temperature(clouds, at):
    for cloud, version in (("bedrock", "bedrock-2023-05-31"), ("vertex", "vertex-2023-10-16")):
        provider, request = at(cloud, temperature=0)
        await provider.ask(request)
        assert clouds.bodies[-1]["anthropic_version"] == version


@pytest.mark.parametrize(
    ("name", "input_usd"),
    [
        ("bedrock/global.anthropic.claude-opus-5", 5.0),
        ("bedrock/eu.anthropic.claude-opus-5", 5.5),
        ("vertex-anthropic/claude-opus-5", 5.0),
    ],
)
def test_prices_are_those_of_where_a_model_is_computed(name, input_usd):
    entry = {"model": name, "max_tokens": 9}
    if name.startswith("bedrock"):
        entry["base_url"] = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    model = sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry], "out": "o"}).models[0]
    rates = rates_of(model)(None, 1.8e9)
    assert rates is not None
    assert rates.brackets[0].input == input_usd


@pytest.mark.parametrize("provider", ["bedrock", "vertex-anthropic"])
def test_models_that_are_no_claude_are_neither_listed_nor_asked(provider):
    listed = [model.model_id for model in models_of(provider, moment=datetime.now(UTC))]
    assert len(listed) > 10
    assert all("claude" in name for name in listed)
    entry = {"model": f"{provider}/some-llama", "max_tokens": 9}
    with pytest.raises(ConfigError, match=f"{provider} asks claude models alone, not 'some-llama'"):
        sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry], "out": "o"})


@pytest.mark.parametrize("provider", ["gemini", "google", "vertex"])
def test_the_doors_of_gemini_neither_list_nor_ask_claude(provider):
    listed = [model.model_id for model in models_of(provider, moment=datetime.now(UTC))]
    assert any("gemma" in name for name in listed)
    assert not any("claude" in name for name in listed)
    entry = {"model": f"{provider}/claude-haiku-4-5", "max_tokens": 9}
    with pytest.raises(ConfigError, match=f"{provider} asks no claude models, not 'claude-haiku-4-5'"):
        sweep_from({"name": "s", "problems": ["p.parquet"], "models": [entry], "out": "o"})


def test_a_model_is_the_same_under_a_cloud_s_name():
    assert same_model("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5-20251001")
    assert same_model("claude-haiku-4-5@20251001", "claude-haiku-4-5-20251001")
    assert not same_model("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-opus-4-5-20251101")


@pytest.mark.parametrize(
    ("provider", "module", "extra"),
    [
        ("bedrock", "botocore.session", "bedrock"),
        ("vertex-anthropic", "google.auth", "vertex"),
        ("azure-entra", "azure.identity", "azure"),
    ],
)
def test_a_missing_extra_says_how_to_get_it(monkeypatch, provider, module, extra):
    for name in [name for name in sys.modules if name.endswith((".client", ".chain"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    model = replace(asking().trial.model, provider=provider, base_url="http://127.0.0.1:1")
    model = replace(model, api="chat" if extra == "azure" else "messages")
    with pytest.raises(ConfigError, match=rf"pip install 'asyncbench\[{extra}\]'"):
        open_provider(model, key="", simulator_url=None)


def test_bedrock_needs_a_region(monkeypatch, tmp_path):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    model = model_at("http://127.0.0.1:1", "bedrock")
    with pytest.raises(ConfigError, match="no region"):
        open_provider(model, key="", simulator_url=None)
