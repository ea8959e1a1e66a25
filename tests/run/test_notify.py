"""People are told of a run by real programs and a real server, and a run depends on neither."""

import asyncio
import json
import os
import platform
import shlex
import signal
import socket
import sys
import threading
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from aiohttp import web

from asyncbench import run_sweep
from asyncbench.config.sweep import load_sweep, sweep_from
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ConfigError, StoreError
from asyncbench.run.notify import LONGEST_REASON, LONGEST_TEXT, notifier_of
from asyncbench.run.options import RunOptions
from asyncbench.run.progress import Quiet
from asyncbench.run.summary import Exit, Summary
from asyncbench.store.lock import read_mark
from tests.processes import HANG_S, until
from tests.store.disk import disk_for
from tests.sweep_files import Said, entry, problem_set, simulator, sweep, sweep_file

ROOT = Path(__file__).resolve().parents[2]
SECRET = "T0PS3CR3T/p4th"  # noqa: S105  looked for in all that is left behind
KEYS = {"GOOD": "the-right-key", "BAD": "the-wrong-key"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A simulator that takes one key, and the problems it knows."""
    problems = problem_set(tmp_path_factory.mktemp("problems"))
    with simulator(problems, keys=(KEYS["GOOD"],), latency_s=0.01) as started:
        yield started, problems


@asynccontextmanager
async def channel(status=200, *, silent=False):
    """A server that people could read; yields its address and what was posted there."""
    posted, over = [], asyncio.Event()

    async def take(request):
        posted.append(await request.json())
        if silent:
            await over.wait()
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/{path:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/{SECRET}", posted
    finally:
        over.set()
        await runner.cleanup()


def asked(server, out, *models, **keys):
    """A sweep of this server's models; the last key word is the name of the variable of their key."""
    started, problems = server
    entries = [
        entry(started, f"simulated-http/{name}", alias=f"{name}-{key_env}".lower(), key_env=key_env)
        for name, key_env in models
    ]
    return sweep(out, problems, *entries, **keys)


GOOD = ("oracle", "GOOD")


async def ran(asked, *, screen=None, env=None, **keywords):
    return await run_sweep(asked, env=KEYS | (env or {}), screen=screen, **keywords)


def told_in(folder):
    """What a command was told, by event, as it wrote it down."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def writes_down(folder):
    """A command that writes down its input and its environment."""
    script = 'cat > "$0/$ASYNCBENCH_EVENT.json"; env > "$0/$ASYNCBENCH_EVENT.env"'
    return ["sh", "-c", script, str(folder)]


def traces_of(secret, folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if secret.encode() in path.read_bytes()]


# ── what is told ─────────────────────────────────────────────────────────────────────────────


async def test_a_webhook_is_posted_what_came_of_a_run(tmp_path, server):
    out = tmp_path / "out"
    async with channel() as (address, posted):
        await ran(asked(server, out, GOOD, ("noisy", "GOOD"), notify=address), limit=40)
    (told,) = posted
    assert told["left_open"] == 2 * (144 - 40)
    assert (told["event"], told["sweep"], told["out"]) == ("finished", "test", str(out))
    assert (told["exit"], told["why"], told["simulated"]) == (0, "complete up to the limit", True)
    assert (told["file"], told["go_on"]) == (None, None)
    oracle, noisy = told["models"].values()
    assert (oracle["planned"], oracle["done"], oracle["closed"], oracle["accuracy"]) == (40, 40, 40, 1.0)
    assert oracle["suspended"] is None
    assert 0 <= noisy["accuracy"] < 1
    assert told["content"] == told["text"]  # Discord's name for it
    assert told["text"].startswith("SIMULATED test: finished, complete up to the limit (exit code 0)")
    assert "oracle-good: 40/40 done, accuracy 100.0%" in told["text"]


@pytest.mark.long
async def test_a_limited_run_says_how_many_trials_the_plan_leaves_open(tmp_path, server):
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, notify=address)
        for limit in (40, 10, 200, None):
            await ran(wanted, limit=limit)
    assert [(told["limit"], told["left_open"]) for told in posted] == [
        (40, 144 - 40),
        (10, 144 - 40),  # those that an earlier run closed are not open
        (200, 0),
        (None, 0),
    ]
    assert "limit: 10 problems for each model; 104 trials are left" in posted[1]["text"]
    for told in posted[2:]:
        assert told["why"] == "complete"
        assert "limit:" not in told["text"]


async def test_a_command_gets_the_message_on_its_input_and_as_variables_and_no_key(tmp_path, server):
    told = tmp_path / "told"
    told.mkdir()
    wanted = asked(server, tmp_path / "out", GOOD, notify={"command": writes_down(told)})
    with patch.dict(os.environ, KEYS):
        await ran(wanted, limit=4)
    message, variables = told_in(told)["finished"], (told / "finished.env").read_text()
    assert (message["event"], message["exit"]) == ("finished", 0)
    assert message["models"]["oracle-good"]["done"] == 4
    for line in ("EVENT=finished", "EXIT=0", "SWEEP=test", "SIMULATED=true", f"OUT={tmp_path / 'out'}"):
        assert f"ASYNCBENCH_{line}\n" in variables
    assert KEYS["GOOD"] not in variables + json.dumps(message)


async def test_a_command_gets_nothing_that_may_be_a_secret_and_what_it_needs_to_work(tmp_path, server):
    told = tmp_path / "told"
    told.mkdir()
    secret = {
        "TEAM_CHANNEL": f"http://127.0.0.1:9/{SECRET}",
        "OPENAI_API_KEY": SECRET,  # of a provider that this sweep does not ask
        "HF_TOKEN": SECRET,
        "db_password": SECRET,
        "AWS_SECRET_ACCESS_ID": SECRET,
        "HTTPS_PROXY": f"http://me:{SECRET}@proxy.example:3128",
    }
    harmless = {"http_proxy": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", "DISPLAY": ":7"}
    notify = {"command": writes_down(told), "webhook_env": "TEAM_CHANNEL"}
    with patch.dict(os.environ, secret | harmless):
        await ran(asked(server, tmp_path / "out", GOOD, notify=notify), limit=1, env=secret)
    variables = (told / "finished.env").read_text()
    assert SECRET not in variables
    for name, value in harmless.items():
        assert f"{name}={value}\n" in variables


async def test_a_command_of_one_line_is_split_and_not_given_to_a_shell(tmp_path, server, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await ran(asked(server, tmp_path / "out", GOOD, notify="tee 'two words' '$HOME;'"), limit=1)
    for name in ("two words", "$HOME;"):
        (line,) = (tmp_path / name).read_text().splitlines(keepends=True)
        assert line.endswith("}\n")
        assert json.loads(line)["event"] == "finished"


async def test_a_suspended_model_is_told_once_and_before_the_end(tmp_path, server):
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, ("noisy", "BAD"), notify=address)
        summary = await ran(wanted)
    assert summary.exit is Exit.UNFINISHED
    assert Counter(told["event"] for told in posted) == {"suspended": 1, "finished": 1}
    suspended, finished = sorted(posted, key=lambda told: told["event"], reverse=True)
    assert suspended["model"] == "noisy-bad"
    assert suspended["reason"].startswith("auth: ")
    assert suspended["text"].startswith("SIMULATED test: noisy-bad stopped (auth: ")
    assert finished["exit"] == 3
    assert finished["models"]["noisy-bad"]["suspended"].startswith("auth: ")
    assert finished["models"]["noisy-bad"]["accuracy"] is None


@pytest.mark.parametrize("on", ["suspended", ["suspended", "crashed"]])
async def test_only_what_is_wanted_is_told(tmp_path, server, on):
    async with channel() as (address, posted):
        await ran(asked(server, tmp_path / "out", GOOD, notify={"webhook": address, "on": on}), limit=1)
    assert posted == []


async def test_a_run_that_its_deadline_stops_says_so(tmp_path, server):
    async with channel() as (address, posted):
        limits = {"limits": {"simulated-http": {"rpm": 60}}}
        wanted = asked(server, tmp_path / "out", GOOD, notify=address, deadline="0.2s", **limits)
        await ran(wanted)
    (told,) = posted
    assert (told["event"], told["exit"], told["why"]) == ("finished", 6, "stopped by its deadline")


class CtrlC(Quiet):
    """A screen that interrupts the run when there is an answer."""

    async def show(self, lanes, caps=()):  # noqa: ARG002  as a screen is called
        while not sum(one.done for one in lanes.values()):  # noqa: ASYNC110  counters tell nobody
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)


async def test_who_is_woken_learns_which_sweep_where_and_the_command_that_goes_on(tmp_path, server):
    limits = {"limits": {"simulated-http": {"rpm": 60}}}
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, ("noisy", "BAD"), notify=address, **limits)
        named = replace(wanted, deadline="0.5s", file=Path("of a night.yaml"))
        await ran(named, limit=4, models=["noisy-bad", "oracle-good"])
    command = "asyncbench run 'of a night.yaml' --limit 4 --models noisy-bad,oracle-good"
    way_on = f"cd {shlex.quote(os.getcwd())} && {command}"
    for told in posted:
        assert (told["sweep"], told["file"]) == ("test", f"{os.getcwd()}/of a night.yaml")
        assert told["host"] == platform.node()
        assert told["go_on"] == way_on
        assert told["text"].splitlines()[1] == f"sweep file {told['file']}, on {told['host']}"
        assert way_on in told["text"]
        assert SECRET not in told["text"]
    assert {told["event"] for told in posted} == {"suspended", "finished"}


async def test_where_trials_failed_the_command_asks_again_and_many_models_hide_it_not(tmp_path, server):
    many = {f"{n}-{'x' * 150}": Counters(planned=2, failed_before=1) for n in range(20)}
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, notify=address)
        notifier = notifier_of(wanted, wanted.models, {}, print, RunOptions())
        notifier.ready = True
        async with notifier.until_the_end():
            notifier.summary = Summary(
                sweep="test",
                out=wanted.out,
                models=many,
                causes=frozenset({Exit.UNFINISHED}),
                seconds=1.0,
                simulated=True,
                command="asyncbench run night.yaml",
            )
    (told,) = posted
    assert told["go_on"].endswith(" && asyncbench run night.yaml --retry failed")
    assert f"to continue: {told['go_on']}\n" in told["text"]
    assert (len(told["models"]), len(told["text"]) <= LONGEST_TEXT) == (20, True)


async def test_a_run_that_was_interrupted_says_so_and_leaves_no_mark(tmp_path, server):
    async with channel() as (address, posted):
        limits = {"limits": {"simulated-http": {"rpm": 600}}}
        await ran(asked(server, tmp_path / "out", GOOD, notify=address, **limits), screen=CtrlC())
    (told,) = posted
    assert (told["event"], told["exit"], told["why"]) == ("finished", 130, "interrupted")
    assert read_mark(tmp_path / "out") is None


@pytest.mark.long
async def test_ctrl_c_while_the_last_message_is_sent_gives_up_only_the_message(tmp_path, server):
    started, problems = server
    pid, model = tmp_path / "pid", entry(started, "simulated-http/oracle", key_env="GOOD")
    hangs = {"command": ["sh", "-c", f"echo $$ > {pid}.new && mv {pid}.new {pid}; exec sleep 60"]}
    file = sweep_file(tmp_path, problems, model, notify=hangs | {"timeout": 60})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "asyncbench", "run", str(file), "--limit", "1", "--json"),
        env=os.environ | KEYS,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(45):  # less than the message would take
            while not pid.exists():  # noqa: ASYNC110  another process writes it
                await asyncio.sleep(0.02)
            process.send_signal(signal.SIGINT)
            summary, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert json.loads(summary)["exit"] == 0
    assert b"Traceback" not in said
    gone(pid)


async def test_a_run_whose_disk_is_full_says_so(tmp_path, server):
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, notify=address)
        with disk_for(60_000), pytest.raises(StoreError):
            await ran(wanted)
    (told,) = posted
    assert (told["event"], told["exit"], told["why"]) == ("finished", 5, "results could not be written")
    assert 0 < told["models"]["oracle-good"]["done"] < 144
    assert "could not be written" in told["text"]
    assert f"to continue: {told['go_on']}" in told["text"]
    assert read_mark(tmp_path / "out") is None  # so the next start does not tell it again


async def test_a_bug_is_told_at_once_without_its_words(tmp_path, server):
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, notify=address)
        notifier = notifier_of(wanted, wanted.models, {}, print, RunOptions())
        with pytest.raises(RuntimeError):
            async with notifier.until_the_end():
                raise RuntimeError(KEYS["GOOD"])
    (told,) = posted
    assert (told["event"], told["exit"], told["error"]) == ("crashed", 1, "RuntimeError")
    assert KEYS["GOOD"] not in json.dumps(told)


async def test_what_a_server_said_can_do_nothing_where_it_is_shown(tmp_path, server):
    async with channel() as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, notify=address)
        notifier = notifier_of(wanted, wanted.models, {}, print, RunOptions())
        notifier.ready = True
        async with notifier.until_the_end():
            notifier.suspended("m", "auth: <!channel> @everyone\x1b[31m\n\u202e\ud800" + "x" * 10_000)
    told = next(told for told in posted if told["event"] == "suspended")
    assert told["reason"].startswith("auth: ‹!channel› (at)everyone [31m x")
    assert told["allowed_mentions"] == {"parse": []}
    assert len(told["reason"]) == LONGEST_REASON


# ── runs that died ───────────────────────────────────────────────────────────────────────────


async def killed(sweep_file, out):
    """Start a run in a process of its own and kill it when it has an answer."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "asyncbench", "run", str(sweep_file), "--quiet"),
        env=os.environ | KEYS,
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(HANG_S):
            while sum(path.stat().st_size for path in (out / "journal").glob("*.wal")) < 4000:  # noqa: ASYNC110  another process
                await asyncio.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()


@pytest.mark.long
async def test_a_killed_run_is_told_once_by_the_next_start(tmp_path, server):
    started, problems = server
    out = tmp_path / "out"
    model = entry(started, "simulated-http/oracle", alias="oracle-good", key_env="GOOD", rpm=600)
    await killed(sweep_file(tmp_path, problems, model), out)
    began_at = read_mark(out)
    async with channel() as (address, posted):
        again = sweep_file(tmp_path, problems, model, notify={"webhook": address, "on": "crashed"})
        for _ in range(2):
            await ran(again, limit=1)
    (told,) = posted
    assert (told["event"], told["began_at"]) == ("crashed", began_at)
    assert told["written_at"] >= began_at
    figures = told["models"]["oracle-good"]
    assert figures["planned"] == figures["done"] + figures["open"] == 144
    assert 0 < figures["done"] < 144
    assert f"the run that began at {began_at} was killed" in told["text"]


@pytest.mark.parametrize("how", ["complete", "deadline", "refused"])
async def test_a_run_that_ended_by_itself_leaves_no_mark(tmp_path, server, how):
    out = tmp_path / "out"
    if how == "refused":
        wanted = asked(server, out, GOOD, notify="true", limits={"simulated-http": {"tpm": 3}})
        with pytest.raises(ConfigError):
            await ran(wanted, limit=1)
    else:
        limits = {"deadline": "0.1s", "limits": {"simulated-http": {"rpm": 60}}} if how == "deadline" else {}
        await ran(asked(server, out, GOOD, notify="true", **limits), limit=2)
    assert out.exists()
    assert read_mark(out) is None


# ── messages that fail ───────────────────────────────────────────────────────────────────────

FAILURES = {
    "exit code": ({"command": "false"}, "the command: ended with exit code 1"),
    "too slow": ({"command": "sleep 60", "timeout": 0.2}, "the command: took longer than 0.2 s"),
    "no program any more": ({"command": ["./here/no-longer"]}, "the command: cannot be started"),
    "nobody there": ({"webhook": f"http://127.0.0.1:9/{SECRET}"}, "the webhook at 127.0.0.1: cannot be "),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_a_message_that_fails_is_said_once_and_changes_nothing(tmp_path, server, monkeypatch, how):
    notify, why = FAILURES[how]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "no-longer").write_text("#!/no/such/interpreter\n")
    (tmp_path / "here" / "no-longer").chmod(0o755)
    wanted = asked(server, tmp_path / "out", GOOD, ("noisy", "BAD"), notify=notify)
    summary = await ran(wanted, limit=2, screen=(said := Said()))
    assert summary.exit is Exit.UNFINISHED
    (line,) = [line for line in said.lines if line.startswith("notify: ")]
    assert why in line
    assert SECRET not in line


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_webhook_that_refuses_is_said_once(tmp_path, server, status):
    async with channel(status) as (address, posted):
        wanted = asked(server, tmp_path / "out", GOOD, ("noisy", "BAD"), notify=address)
        await ran(wanted, limit=2, screen=(said := Said()))
    assert len(posted) == 2
    (line,) = [line for line in said.lines if line.startswith("notify: ")]
    assert f"answered with HTTP {status}" in line


async def test_a_webhook_that_never_answers_is_waited_for_no_longer_than_its_timeout(tmp_path, server):
    async with channel(silent=True) as (address, _):  # on a busy machine 0.2 s may pass before it is reached
        wanted = asked(server, tmp_path / "out", GOOD, notify={"webhook": address, "timeout": 0.2})
        summary = await ran(wanted, limit=2, screen=(said := Said()))
    assert summary.exit == Exit.COMPLETE
    assert any("took longer than 0.2 s" in line for line in said.lines)


@pytest.fixture
def silent_names(monkeypatch):
    """Name servers that are silent until they are let go; yields that, and the names that failed."""
    let_go, looked_up, known = threading.Event(), [], socket.getaddrinfo

    def look_up(host, *arguments, **keywords):
        if host != "hooks.example":
            return known(host, *arguments, **keywords)
        let_go.wait(HANG_S)
        looked_up.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield let_go, looked_up
    let_go.set()


def test_a_name_that_nobody_resolves_holds_nothing_up(tmp_path, server, silent_names):
    notify = {"webhook": f"https://hooks.example/{SECRET}", "timeout": 0.2}
    wanted, said = asked(server, tmp_path / "out", GOOD, notify=notify), Said()
    summary = asyncio.run(ran(wanted, limit=1, screen=said))
    assert silent_names[1] == []  # it is still being looked up, and the event loop has ended
    assert summary.exit is Exit.COMPLETE
    assert any("hooks.example: took longer than 0.2 s" in line for line in said.lines)


async def test_a_webhook_is_found_by_its_name_and_an_unknown_name_is_said(tmp_path, server, silent_names):
    silent_names[0].set()
    async with channel() as (address, posted):
        for host in ("localhost", "hooks.example"):
            wanted = asked(server, tmp_path / "out", GOOD, notify=address.replace("127.0.0.1", host))
            await ran(wanted, limit=1, screen=(said := Said()))
    assert len(posted) == 1
    assert any("hooks.example: cannot be reached (ClientConnectorDNSError)" in line for line in said.lines)


@pytest.mark.long
async def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path, server):
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ > {pids}; wait"
    notify = {"command": ["sh", "-c", script], "timeout": 2}
    await ran(asked(server, tmp_path / "out", GOOD, notify=notify), limit=1)
    gone(pids)


def gone(pids):
    """Wait for what was killed to be gone: that takes a moment, and by itself it would take a minute."""
    until(lambda: not any(map(alive, pids.read_text().split())))


def alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


# ── the sweep file ───────────────────────────────────────────────────────────────────────────


def small(notify):
    return {"name": "s", "problems": ["p.parquet"], "models": ["simulated/oracle"], "notify": notify}


@pytest.mark.parametrize(
    ("given", "command", "address"),
    [
        pytest.param("https://host/x", (), "https://host/x", id="an-address-alone"),
        pytest.param("mail -s 'a night' me", ("mail", "-s", "a night", "me"), None, id="a-command-alone"),
        pytest.param({"command": ["a", "b c"]}, ("a", "b c"), None, id="words"),
        pytest.param({"webhook_env": "HOOK"}, (), "http://h/1", id="a-variable"),
        pytest.param({"command": "a", "webhook": "http://h"}, ("a",), "http://h", id="both"),
    ],
)
def test_a_command_or_an_address_is_named_in_short_or_at_length(given, command, address):
    notify = sweep_from(small(given)).notify
    assert notify is not None
    assert (notify.command, notify.address({"HOOK": " http://h/1\n"})) == (command, address)
    assert notify.on == {"finished", "suspended", "crashed", "batches"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"on": ["finished"]}, "tells nobody", id="nobody"),
        pytest.param({"webhook": f"http://h/{SECRET}", "webhook_env": "H"}, "Remove one of them", id="two"),
        pytest.param({"webhook": f"ftp://h/{SECRET}"}, "begins with https://", id="another-protocol"),
        pytest.param({"webhook": f"https://[abc/{SECRET}"}, "names a host", id="half-an-address"),
        pytest.param({"webhook": f"https://h:port/{SECRET}"}, "names a host", id="a-port-that-is-none"),
        pytest.param({"webhook": f"https://:443/{SECRET}"}, "names a host", id="no-host"),
        pytest.param({"webhook": [f"http://h/{SECRET}"]}, "must be text", id="a-list-of-addresses"),
        pytest.param([f"http://h/{SECRET}"], "an address, a command", id="a-list"),
        pytest.param({"webhook_env": f"http://h/{SECRET}"}, "'webhook_env'", id="an-address-for-its-name"),
        pytest.param({"command": f"curl 'http://h/{SECRET}"}, "No closing quotation", id="an-open-quote"),
        pytest.param(
            {"command": ["curl", {SECRET: 1}]}, "'command[2]' must be text", id="a-word-that-is-none"
        ),
        pytest.param({"command": "  "}, "'command'", id="no-word"),
        pytest.param({"url": f"http://h/{SECRET}"}, "Known keys: command, webhook", id="an-unknown-key"),
        pytest.param({"command": "true", "on": ["done"]}, "'crashed' or 'batches'", id="event"),
        pytest.param({"command": "true", "on": []}, "'on'", id="no-event"),
        pytest.param({"command": "true", "timeout": 0}, "'timeout' must be more than 0, not ", id="no-time"),
        pytest.param({"command": "true", "timeout": 61}, "must be at most 60, not ", id="too-much-time"),
    ],
)
def test_a_slip_is_named_and_no_secret_repeated(given, said):
    with pytest.raises(ConfigError) as caught:
        sweep_from(small(given), place="night.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("night.yaml")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("notify", "env", "said"),
    [
        pytest.param({"webhook_env": "HOOK"}, {}, "variable HOOK is not set", id="not-set"),
        pytest.param(
            {"webhook_env": "HOOK"}, {"HOOK": SECRET}, "variable HOOK does not hold an address", id="none"
        ),
        pytest.param(
            {"webhook_env": "HOOK"}, {"HOOK": f"https://[abc/{SECRET}"}, "HOOK does not hold", id="half"
        ),
        pytest.param({"command": f"/no/such/{SECRET}"}, {}, "is not a program", id="no-program"),
    ],
)
async def test_who_cannot_be_told_is_named_before_anything_is_made(tmp_path, server, notify, env, said):
    with pytest.raises(ConfigError) as caught:
        await ran(asked(server, tmp_path / "out", GOOD, notify=notify), env=env)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
async def test_no_address_and_no_command_is_left_in_the_folder(tmp_path, server):
    out = tmp_path / "out"
    async with channel() as (address, posted):
        for notify in ({"webhook": address}, {"webhook_env": "HOOK"}, {"command": f"true {SECRET}"}):
            wanted = asked(server, out, GOOD, notify=notify)
            await ran(wanted, limit=2, env={"HOOK": address})
            assert SECRET not in repr(wanted)
    assert len(posted) == 2
    assert traces_of(SECRET, out) == []
    assert load_sweep(out / "sweep.yaml").models == wanted.models
