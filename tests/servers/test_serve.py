"""`serve`: a run starts a server, waits for it, stops it in the end, and says so when it fails."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from asyncbench import read_attempts, read_steps, run_load, run_sweep
from asyncbench.config.sweep import as_mapping, sweep_from
from asyncbench.errors import ConfigError
from asyncbench.planning.planned_load import load_plan
from asyncbench.planning.sweep_plan import plan
from asyncbench.records import Serve
from asyncbench.run import servers as running
from asyncbench.run.checkup import examine
from asyncbench.run.summary import Exit
from asyncbench.store.verify import verify_folder
from tests.processes import Forked
from tests.sweep_files import Said, sweep

FREE = {"input": 0, "output": 0}
SMALL = Path(__file__).with_name("small_server.py")


@pytest.fixture
def port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "pids"


@pytest.fixture
def served(port, notes):
    """Return an entry whose server is started with these words."""

    def entry(*words, command=None, **keys):
        small = [sys.executable, "-I", "-S", str(SMALL), str(port), str(notes), *words]
        address = f"http://127.0.0.1:{port}"
        serve = {"command": command or small, "ready": f"{address}/health", "within": "60s"}
        serve |= {name: keys.pop(name) for name in ("ready", "within") if name in keys}
        return {"model": "vllm/m", "base_url": f"{address}/v1", "price": FREE, "serve": serve, **keys}

    return entry


def pids(notes):
    return [int(line) for line in notes.read_text().split()]


def alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


def log_of(out):
    (log,) = (out / "servers").iterdir()
    return log


def asked(planned, said=None, **options):
    return asyncio.run(run_sweep(planned, screen=said, **options))


@pytest.mark.long
def test_it_is_started_waited_for_shared_and_stopped(served, notes, problems, tmp_path):
    said, out = Said(), tmp_path / "out"
    entry = served("--loads", "2", temperature=[0, 1])  # two entries
    summary = asked(sweep(out, problems, entry), said, limit=3)
    assert summary.exit is Exit.COMPLETE
    assert [counters.done for counters in summary.models.values()] == [3, 3]
    (pid,) = pids(notes)
    assert not alive(pid)
    log = log_of(out)
    assert "loading" in log.read_text()
    both = "vllm/m temperature=0, vllm/m temperature=1"
    assert said.lines[0] == f"{both}: waiting for the server. It writes to {log}"
    assert said.lines[1].startswith(f"{both}: the server is ready after ")
    assert verify_folder(out).sound


@pytest.mark.long
def test_a_run_with_nothing_left_to_ask_starts_none(served, notes, problems, tmp_path):
    planned = sweep(tmp_path / "out", problems, served())
    asked(planned, limit=2)
    assert asked(planned, limit=2).exit is Exit.COMPLETE
    assert len(pids(notes)) == 1
    asked(planned, limit=3)
    assert len(pids(notes)) == 2


@pytest.mark.long
def test_a_load_starts_it_too_where_a_step_is_left(served, notes, problems, tmp_path):
    times = {"warmup": 0, "duration": "0.5s", "rest": 0, "drain": "20s"}
    planned = sweep(tmp_path / "out", problems, served(), load={"rates": [10]} | times)
    asyncio.run(run_load(planned, progress=False))
    (step,) = read_steps(tmp_path / "out").to_pylist()
    assert step["answered"] == step["offered"] > 0
    assert not any(map(alive, pids(notes)))
    begun = len(pids(notes))
    if not step["client_bound"]:
        asyncio.run(run_load(planned, progress=False))
        assert len(pids(notes)) == begun


def test_one_that_ends_early_is_an_error_with_what_it_said(served, problems, tmp_path):
    command = [sys.executable, "-c", "print('no\\x1b[1m GPU'); raise SystemExit(3)"]
    with pytest.raises(ConfigError) as refused:
        asked(sweep(tmp_path / "out", problems, served(command=command)))
    first, *_, last = str(refused.value).splitlines()
    assert first.startswith("vllm/m: the server ended with exit code 3 before it was ready. See the log (")
    assert last.startswith("  no")
    assert "\x1b" not in last
    assert read_attempts(tmp_path / "out").num_rows == 0


def test_a_keeper_that_is_killed_tells_the_signal(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.kill()
    serve = Serve(command=("server",), ready="http://127.0.0.1:9/", within=1.0)
    server = running.StartedServer(serve=serve, aliases=(), log=tmp_path, log_from=0, process=process)
    assert asyncio.run(server.ended()) == "was killed (signal 9)"


def test_one_that_is_not_ready_in_time_is_an_error_and_stopped(served, notes, problems, tmp_path):
    entry = served("--loads", "10000", within="1s")
    with pytest.raises(ConfigError, match=r"was not ready within 1 s \(http://\S+/health: (status 503|noth)"):
        asked(sweep(tmp_path / "out", problems, entry))
    assert not any(map(alive, pids(notes) if notes.exists() else []))


def test_one_that_wants_a_key_there_is_not_waited_for(served, port, problems, tmp_path):
    entry = served("--loads", "10000", ready=f"http://127.0.0.1:{port}/key")
    with pytest.raises(ConfigError, match=r"needs a key at .*\(status 401\)\. Name an address"):
        asked(sweep(tmp_path / "out", problems, entry))


def test_a_server_that_is_there_already_is_neither_used_nor_stopped(served, problems, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever).start()
        ready = f"http://127.0.0.1:{other.server_port}/"
        with pytest.raises(ConfigError, match=r"another server is at http\S+ already \(status 501\)"):
            asked(sweep(tmp_path / "out", problems, served(ready=ready)))
        other.shutdown()
    assert not (tmp_path / "out" / "servers").exists()


def test_one_that_dies_in_the_middle_suspends_its_models(served, problems, tmp_path):
    said, out = Said(), tmp_path / "out"
    summary = asked(sweep(out, problems, served("--ends-after", "5", concurrency=1)), said)
    assert summary.exit is Exit.UNFINISHED
    (counters,) = summary.models.values()
    assert (counters.done, counters.failed) == (5, 0)
    assert counters.suspended is not None
    assert "ended with exit code 9" in counters.suspended
    assert any("See its log, then run again" in line for line in said.lines)
    assert "  out of memory" in said.lines
    assert "ended with exit code 9" in summary.as_text()


def test_a_stubborn_one_is_killed_with_its_children(served, notes, problems, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "STOPS_WITHIN_S", 0.2)
    asked(sweep(tmp_path / "out", problems, served("--stubborn")), limit=1)
    assert len(pids(notes)) == 2
    assert not any(map(alive, pids(notes)))
    assert "it has not ended within 0.2 s, and is killed" in log_of(tmp_path / "out").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_a_run_that_is_killed_while_it_waits(served, notes, problems, tmp_path, number):
    file = tmp_path / "sweep.yaml"
    keys = {"name": "x", "problems": [str(problems)], "out": str(tmp_path / "out")}
    file.write_text(yaml.safe_dump(keys | {"models": [served("--loads", "100000")]}))
    with open(os.devnull, "w") as nowhere:
        process = Forked(
            "asyncbench", "run", file, "--quiet", stdout=nowhere.fileno(), stderr=nowhere.fileno()
        )
        while not (notes.exists() and notes.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait() != 0
    while any(map(alive, pids(notes))):  # the time limit of a test ends this
        time.sleep(0.02)


def test_a_plan_says_what_is_started_and_starts_nothing(served, notes, problems, tmp_path):
    planned = sweep(tmp_path / "out", problems, served())
    loaded = sweep(tmp_path / "out", problems, served(), load={"rates": [1]})
    for text in (plan(planned).as_text(), load_plan(loaded).as_text()):
        assert "vllm/m: a run starts `" in " ".join(text.split())
    assert not notes.exists()


async def test_doctor_starts_it_for_its_calls(served, notes, problems, tmp_path):
    models = sweep(tmp_path / "out", problems, served("--loads", "1")).models
    (checkup,) = await examine(models, env={})
    assert checkup.latency_s is not None
    assert not any(map(alive, pids(notes)))


# ── what a sweep may say ─────────────────────────────────────────────────────────────────────


def test_a_command_is_split_as_a_shell_does_and_the_folder_has_the_same(served, problems, tmp_path):
    planned = sweep(tmp_path, problems, served(command="env A='b c' python x.py", within=90))
    (model,) = planned.models
    assert model.serve is not None
    assert model.serve.command == ("env", "A=b c", "python", "x.py")
    assert sweep_from(as_mapping(planned)).models == planned.models


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "vllm serve m --api-key abc"}, "holds a key"),
        ({"command": "env HF_TOKEN=hf_x vllm serve m"}, "holds a key"),
        ({"command": "vllm serve 'm"}, "cannot be read: No closing quotation"),
        ({"command": []}, "must not be empty"),
        ({"ready": "127.0.0.1:8000"}, "must be an address that begins with http"),
        ({"mode": "batch"}, "batch"),
        ({"model": "openai/m", "base_url": None}, "Set `base_url` to its address"),
    ],
)
def test_what_cannot_be_served_is_refused(served, problems, tmp_path, entry, said):
    keys = {**served(), **{name: value for name, value in entry.items() if name not in ("command", "ready")}}
    keys["serve"] |= {name: value for name, value in entry.items() if name in ("command", "ready")}
    with pytest.raises(ConfigError, match=said) as refused:
        sweep(tmp_path, problems, {name: value for name, value in keys.items() if value is not None})
    assert "abc" not in str(refused.value)


def test_a_variable_of_a_shell_is_no_key(served, problems, tmp_path):
    sweep(tmp_path, problems, served(command=["bash", "-c", "vllm serve m --api-key $VLLM_API_KEY"]))


def test_what_cannot_be_started_is_refused_before_the_folder_is_made(served, problems, tmp_path):
    out, other = tmp_path / "out", served("--loads", "1", model="vllm/n")
    with pytest.raises(ConfigError, match=r"vllm/m and vllm/n have different servers at .*--models"):
        asked(sweep(out, problems, served(), other))
    with pytest.raises(ConfigError, match="starts 'no-such-program', which is not a program"):
        asked(sweep(out, problems, served(command="no-such-program x")))
    assert not out.exists()
    asked(sweep(out, problems, served(), other), models=["vllm/n"], limit=1)


def test_the_keeper_tells_exit_codes_as_a_shell_does(tmp_path):
    def ended(*command):
        words = [sys.executable, running.KEEPER, "5", *command]
        return subprocess.run(words, stdin=subprocess.PIPE, capture_output=True, check=False).returncode

    held = subprocess.Popen(
        [sys.executable, running.KEEPER, "5", "sh", "-c", "kill -9 $$"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert held.wait() == 137
    assert held.stdin is not None
    held.stdin.close()
    assert ended(str(tmp_path / "nothing")) == 127


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_keeper_that_is_ended_ends_its_server(port, notes, number):
    words = [sys.executable, running.KEEPER, "5", sys.executable, str(SMALL), str(port), str(notes)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        while b"loading" not in keeper.stdout.readline():
            pass
        keeper.send_signal(number)
        assert keeper.wait() != 0
    while any(map(alive, pids(notes))):
        time.sleep(0.02)
