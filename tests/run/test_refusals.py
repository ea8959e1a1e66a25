"""A provider that nobody reaches, or that refuses a key, is said at once and once; the others go on."""

import asyncio
import socket
from dataclasses import replace
from functools import partial

import pytest

from asyncbench import run_sweep
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import RetryPolicy
from asyncbench.run.refusals import Refusals, stop_lines
from asyncbench.run.summary import Exit
from tests.sweep_files import Said, entry, problem_set, simulator, sweep
from tests.world.night import MODEL, night_of

DEAD = [replace(MODEL, alias=f"m{n}", provider="vllm", base_url="http://127.0.0.1:9/v1") for n in range(3)]
LIVE = replace(MODEL, alias="live", provider="openai", key_env="KEY")
REFUSED = ProviderError(ErrorKind.UNREACHABLE, "connection refused")


@pytest.fixture
def closed_port():
    """A port of this machine at which nobody listens, for as long as the test lasts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.long
async def test_a_port_at_which_nobody_listens_is_said_once_and_the_others_go_on(tmp_path, closed_port):
    problems, said = problem_set(tmp_path), Said()
    url = f"http://127.0.0.1:{closed_port}/v1"
    server_url = url.removesuffix("/v1")
    dead: list[dict[str, object]] = [
        {"model": f"simulated/oracle-{n}", "alias": f"dead-{n}", "base_url": url, "price": FREE}
        for n in range(3)
    ]
    with simulator(problems) as server:
        models = (*dead, entry(server, "simulated-http/oracle", alias="live", price=FREE))
        summary = await run_sweep(
            sweep(tmp_path / "out", problems, *models, deadline="3s"), limit=20, screen=said
        )
    told, deadline = said.lines
    assert deadline.startswith("The deadline has passed")
    assert told.startswith(f"simulated at {server_url}: ")
    assert "ssl" not in told
    assert f"127.0.0.1:{closed_port}" in told.removeprefix(f"simulated at {server_url}")
    assert ". asyncbench keeps trying; the other models go on. Start the server" in told
    assert summary.models["live"].done == 20
    assert [summary.models[f"dead-{n}"].done for n in range(3)] == [0, 0, 0]


FREE = {"input": 0, "output": 0}


async def test_a_key_that_is_refused_is_said_once_for_its_provider(tmp_path):
    problems, said = problem_set(tmp_path), Said()
    with simulator(problems, keys=("right",)) as server:
        models = [
            entry(server, "simulated-http/oracle", alias=f"m{n}", seed=n, key_env=key, price=FREE)
            for n, key in enumerate(("WRONG", "WRONG", "WRONG", "GOOD"))
        ]
        asked = sweep(tmp_path / "out", problems, *models)
        summary = await run_sweep(asked, limit=5, screen=said, env={"WRONG": "no", "GOOD": "right"})
    (told,) = said.lines
    assert told.startswith(f"simulated-http at {server.url}: the provider rejects the key in WRONG (HTTP 401")
    assert ". m" in told
    assert told.endswith(
        " stops, and each model there that is refused like it; the other models go on. Set a valid key, then "
        "run again."
    )
    assert summary.exit is Exit.UNFINISHED
    assert summary.models["m3"].done == 5
    text = summary.as_text()
    assert text.count("rejects the key in WRONG (HTTP 401") == 1
    assert "stopped: m0, m1, m2: the provider rejects the key" in text
    assert "Not complete. 3 of 4 models stopped. 15 trials are left.\nTo continue: asyncbench run" in text


async def test_a_run_whose_models_are_all_refused_ends_in_order(tmp_path):
    problems, said = problem_set(tmp_path), Said()
    with simulator(problems, keys=("right",)) as server:
        model = entry(server, "simulated/oracle", alias="m", key_env="WRONG", price=FREE)
        summary = await run_sweep(sweep(tmp_path / "out", problems, model), screen=said, env={"WRONG": "no"})
    (told,) = said.lines
    assert "the other models" not in told
    assert "Not complete. 1 of 1 models stopped. 144 trials are left." in summary.as_text()


@pytest.mark.parametrize("kind", [ErrorKind.UNREACHABLE, ErrorKind.AUTH])
def test_it_is_known_within_two_seconds(kind):
    """On the engine's own clock, with calls that fail after half a second."""
    heard_s: list[float] = []

    async def ask(_request):
        await asyncio.sleep(0.5)
        raise ProviderError(kind, "no")

    wide = replace(MODEL, retry=RetryPolicy(attempts=2, total_s=5))
    found = Refusals([wide], lambda _: heard_s.append(asyncio.get_running_loop().time()))
    failed, stopped = partial(found.failed, wide), partial(found.stopped, wide)
    night_of(ask, 50, wide, note_failure=failed, note_suspension=stopped)
    assert heard_s[0] < 2


# ── what is said ─────────────────────────────────────────────────────────────────────────────


def refusals(*models):
    said: list[str] = []
    return Refusals(models, said.append), said


def test_each_provider_is_said_once_whatever_its_models():
    found, said = refusals(*DEAD, LIVE)
    for model in (*DEAD, *DEAD, LIVE):
        found.failed(model, REFUSED)
    assert [line.partition(":")[0] for line in said] == ["vllm at http", "openai"]


def test_no_more_of_an_address_is_said_than_its_server():
    hidden = replace(DEAD[0], base_url="https://user:secret@host.example:8443/t/token/v1?key=k")
    found, said = refusals(hidden)
    found.failed(hidden, REFUSED)
    found.stopped(hidden, "unreachable: connection refused")
    assert [line.partition(": ")[0] for line in said] == ["vllm at https://host.example:8443"] * 2


def test_what_was_said_is_not_put_into_words_again():
    """A server that is away fails thousands of calls."""
    worded = []

    class Words(str):
        def __format__(self, spec):
            worded.append(spec)
            return super().__format__(spec)

    found, said = refusals(*DEAD)
    for _ in range(5):
        found.failed(DEAD[0], ProviderError(ErrorKind.UNREACHABLE, Words("no")))
    assert (len(worded), len(said)) == (1, 1)


def test_failures_that_may_pass_are_not_said():
    found, said = refusals(LIVE)
    for kind in set(ErrorKind) - {ErrorKind.UNREACHABLE}:
        found.failed(LIVE, ProviderError(kind, "no"))
    assert said == []


def test_a_server_that_stays_away_is_said_again_when_its_models_stop():
    found, said = refusals(*DEAD)
    for model in DEAD:
        found.failed(model, REFUSED)
        found.stopped(model, "unreachable: no reply for 61 s: connection refused")
    first, last = said
    assert first.startswith("vllm at http://127.0.0.1:9: connection refused. asyncbench keeps trying. Start")
    assert last == (
        "vllm at http://127.0.0.1:9: no reply for 61 s: connection refused. m0 stops, and each "
        "model there that is refused like it. Start the server, or check its address and your network, "
        "then run again. To wait for it, set `unreachable_s` under `retry`."
    )


def test_of_a_provider_that_refuses_one_model_only_that_one_is_named():
    other = replace(LIVE, alias="other", key_env="OTHER")
    found, said = refusals(LIVE, other)
    found.stopped(LIVE, "auth: HTTP 403: no access to this model")
    assert said[0].startswith(
        "openai: the provider rejects the key in KEY (HTTP 403: no access to this model). "
    )
    assert "live stops; the other models go on." in said[0]


def test_what_is_about_one_model_is_said_for_each():
    found, said = refusals(*DEAD, LIVE)
    for model in DEAD:
        found.stopped(model, "no_such_model: HTTP 404: nothing here")
    assert said == [
        f"m{n}: the provider does not know the model (HTTP 404: nothing here). It stops; the other models go "
        "on. Check its name and base_url, then run again."
        for n in range(3)
    ]


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_reason_to_stop_has_words(kind):
    found, said = refusals(LIVE)
    found.stopped(LIVE, f"{kind.value}: HTTP 400: words")
    assert "HTTP 400: words" in said[0]
    assert "{" not in said[0]


def test_models_that_stopped_for_one_reason_share_a_line():
    counters = {model.alias: Counters(suspended="unreachable: no") for model in DEAD}
    counters["m1"].suspended = "no_such_model: HTTP 404"
    counters["live"] = Counters()
    first, second = stop_lines([*DEAD, LIVE], counters)
    assert first.startswith("stopped: m0, m2: no. Start the server")
    assert second.startswith("stopped: m1: the provider does not know the model (HTTP 404).")


def test_who_comes_with_what_a_machine_has_is_told_to_renew_that():
    cloud = replace(
        MODEL, alias="cloud", provider="azure-entra", base_url="https://mine.openai.azure.com/openai/v1"
    )
    (line,) = stop_lines([cloud], {"cloud": Counters(suspended="auth: HTTP 401: expired")})
    rejected = (
        "the provider rejects the credentials of this machine (HTTP 401: expired). Renew them, those that"
    )
    assert line.startswith(f"stopped: cloud: {rejected} Entra ID's chain finds (az login,")


NO_KEY = "no key was sent: set key_env (or --key-env) ("


@pytest.mark.parametrize(
    ("model", "reason", "line"),
    [
        (DEAD[0], "auth: HTTP 401: No key had been sent", NO_KEY),
        (DEAD[0], "auth: HTTP 403 forbidden", NO_KEY),
        (replace(DEAD[0], provider="openai"), "auth: HTTP 401", NO_KEY),
        (
            DEAD[0],
            "auth: the proxy opens no way to the server: HTTP 407 no",
            "the provider rejects the call (",
        ),
        (DEAD[0], "auth: HTTP 511 log in", "the provider rejects the call ("),
        (DEAD[0], "auth: HTTP 400: This organization is disabled", "the provider rejects the call ("),
        (replace(DEAD[0], headers={"X-Team": "TEAM"}), "auth: HTTP 401", "the provider rejects the call ("),
        (LIVE, "auth: HTTP 401: No key had been sent", "the provider rejects the key in KEY ("),
    ],
)
def test_a_key_that_was_not_sent_is_not_called_wrong(model, reason, line):
    (told,) = stop_lines([model], {model.alias: Counters(suspended=reason)})
    assert told.startswith(f"stopped: {model.alias}: {line}")
    assert ("NAME of the environment variable" in told) == (line == NO_KEY)
