"""Control of a run while it goes on: what is done, with the server's own counts as witness, and by whom."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import asyncbench as ab
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ConfigError
from asyncbench.records import MOST_IN_FLIGHT
from asyncbench.run.control import NOTE, SocketNote, limits_typed, noted_socket, send_request
from asyncbench.run.options import RunOptions
from asyncbench.run.picture import Lanes
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from asyncbench.store.catalog import read_lanes
from asyncbench.store.verify import verify_folder
from tests.commands import asyncbench
from tests.processes import HANG_S
from tests.store.made import answered, folder_of
from tests.sweep_files import Said, entry, outcomes, problem_set, simulator, sweep

NOBODY = 65534


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return problem_set(tmp_path_factory.mktemp("sets"), trials=10)


@pytest.fixture(scope="module")
def server(problems):
    with simulator(problems, latency_s=0.02) as found:
        yield found


class Watched(Said):
    """A screen that keeps the counters, which tests wait for."""

    lanes: Lanes

    async def show(self, lanes, caps=()):  # noqa: ARG002  as a screen is called
        self.lanes = lanes
        await asyncio.Event().wait()

    @property
    def one(self) -> Counters:
        (counters,) = self.lanes.values()
        return counters


async def until(reached, *, within_s=HANG_S):
    end_s = time.monotonic() + within_s
    while not reached():
        assert time.monotonic() < end_s, "it never came"
        await asyncio.sleep(0.01)


class Going:
    """A run that goes on in this event loop, until the body ends."""

    def __init__(self, wanted, load=None):
        self.screen, self.out = Watched(), wanted.out
        self._sweep, self._load = wanted, load

    async def __aenter__(self):
        options = RunOptions(load=self._load)
        self.task = asyncio.create_task(run_with_options(self._sweep, options, env={}, screen=self.screen))
        await until(lambda: self.task.done() or (self.out / NOTE).exists())
        await until(lambda: self.task.done() or hasattr(self.screen, "lanes"))
        await until(lambda: self.task.done() or self.screen.one.in_flight)
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def counts(server, model):
    return server.stats()["models"].get(model, {"requests": 0, "in_flight": 0})


async def stand_still(run, server, model):
    """Wait until nothing is in flight, then see that nothing more comes to the server."""
    await until(lambda: not run.screen.one.in_flight)
    await until(lambda: not counts(server, model)["in_flight"])
    before = counts(server, model)["requests"]
    await asyncio.sleep(0.5)
    assert counts(server, model)["requests"] == before
    return before


# ── what is done ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_a_sweep_is_paused_lowered_raised_and_resumed_and_the_server_sees_it(
    server, problems, tmp_path
):
    out = tmp_path / "/".join(20 * ["deep folders"])
    wanted = sweep(out, problems, entry(server, "simulated/noisy-a", alias="a", rpm=6000, concurrency=8))
    async with Going(wanted) as run:
        paused = await ab.pause_run(out)
        assert (paused.paused, paused.lanes[0]["limited_by"]) == (True, "paused")
        at_first = await stand_still(run, server, "noisy-a")
        assert 0 < at_first < 720
        assert "paused already" in (await ab.pause_run(out)).as_text()

        lowered = await ab.set_limits(out, {"rpm": 120, "concurrency": 1}, model="a")
        assert "a: rpm 120, was 6,000; concurrency 1, was 8" in lowered.as_text()
        assert lowered.lanes[0]["limits"] == {"rpm": 120}
        began_s = time.monotonic()
        resumed = await ab.resume_run(out)
        assert not resumed.paused
        assert "paused" not in {lane["limited_by"] for lane in resumed.lanes}
        await until(lambda: counts(server, "noisy-a")["requests"] >= at_first + 3)
        await until(lambda: run.screen.one.waits_for == "requests")
        seen = counts(server, "noisy-a")
        assert seen["in_flight"] <= 1
        assert seen["requests"] - at_first <= 2 * (time.monotonic() - began_s) + 2

        looked = await asyncio.to_thread(asyncbench, "status", out, "--json")
        (lane,) = json.loads(looked.stdout)["lanes"]
        assert (lane["lane"], lane["limited_by"], lane["concurrency"]) == ("a", "RPM", 1)

        raised = await ab.set_limits(out, {"rpm": 60_000, "concurrency": None})
        assert "more than the rpm of your sweep, 6,000" in raised.as_text()
        summary = await asyncio.wait_for(run.task, timeout=HANG_S)
    assert summary.exit is Exit.COMPLETE
    assert len(outcomes(out)) == counts(server, "noisy-a")["requests"] == 720  # each asked once
    assert verify_folder(out).sound
    assert not (out / NOTE).exists()
    changes = "\n".join(filter(None, read_lanes(out)["changes"].to_pylist())).splitlines()
    whose = f"(process {os.getpid()}): "
    said = [change.partition(whose)[2] for change in changes]
    assert said[:2] == ["pause", "rpm 120, was 6,000; concurrency 1, was 8"]
    assert said[2:] == ["resume", "rpm 60,000, was 120; concurrency none, was 1"]
    shown = ab.status(out)
    assert [change.what for change in shown.changes] == changes
    assert f"changed {changes[0]} [a]" in shown.as_text()
    assert sum(filter(None, read_lanes(out)["waited_for_resume_s"].to_pylist())) > 0.4


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 2])
async def test_status_tells_how_each_worker_stands(server, problems, tmp_path, workers):
    out = tmp_path / "out"
    asked = entry(server, f"simulated/noisy-w{workers}", alias="w", concurrency=8)
    async with Going(sweep(out, problems, asked, workers=workers)) as run:
        await until(lambda: run.screen.one.done > 40)
        await ab.pause_run(out)
        await until(lambda: not run.screen.one.in_flight)
        looked = await asyncio.to_thread(asyncbench, "status", out, "--json")
        shown = await asyncio.to_thread(asyncbench, "status", out)
    found = json.loads(looked.stdout)["workers"]
    assert [one["name"] for one in found] == [str(n + 1) for n in range(workers)]
    assert ("calls made" in shown.stdout) == bool(workers)
    for one in found:
        assert one["pid"] != os.getpid()
        assert (one["in_flight"], one["deaths"]) == (0, 0)
    if workers:
        assert sum(one["calls"] for one in found) == run.screen.one.attempts
        assert min(one["calls"] for one in found) > 0
        rows = ab.read_attempts(out, ["worker"])["worker"].to_pylist()
        assert {*rows} == {"1", "2"}


async def test_the_commands_do_it_and_ctrl_c_drains_a_paused_run_at_once(server, problems, tmp_path):
    out = tmp_path / "out"
    wanted = sweep(out, problems, entry(server, "simulated/noisy-b", alias="b", rpm=600))
    async with Going(wanted) as run:
        done = await asyncio.to_thread(asyncbench, "pause", out)
        assert done.returncode == 0, done.stderr
        assert f"To go on: asyncbench resume {out}" in done.stdout
        await until(lambda: not run.screen.one.in_flight)
        done = await asyncio.to_thread(asyncbench, "set", out, "rpm=300", "--model", "c")
        assert (done.returncode, done.stdout) == (2, "")
        assert "model 'c' is not asked now. This run asks b" in done.stderr
        os.kill(os.getpid(), signal.SIGINT)
        summary = await asyncio.wait_for(run.task, timeout=HANG_S)
    assert summary.exit is Exit.INTERRUPTED
    assert any(line.startswith("Stopping. ") for line in run.screen.lines)  # it waits for nothing
    done = await asyncio.to_thread(asyncbench, "resume", out)
    assert done.returncode == 2
    assert f"no run is going on in {out}" in done.stderr
    assert f"To continue the sweep: asyncbench run {out}/sweep.yaml" in done.stderr


@pytest.mark.long
async def test_a_deadline_ends_a_paused_run_and_the_next_one_is_not_paused(server, problems, tmp_path):
    out = tmp_path / "out"
    model = entry(server, "simulated/noisy-c", alias="c", rpm=1200)
    async with Going(sweep(out, problems, model, deadline="3s")) as run:
        assert "Its deadline still ends it" in (await ab.pause_run(out)).as_text()
        summary = await asyncio.wait_for(run.task, timeout=HANG_S)
    assert summary.exit is Exit.DEADLINE
    before = counts(server, "noisy-c")["requests"]
    async with Going(sweep(out, problems, model)):
        await until(lambda: counts(server, "noisy-c")["requests"] > before)


@pytest.mark.long
async def test_a_step_of_a_load_that_is_paused_is_measured_again_as_a_whole(server, problems, tmp_path):
    out = tmp_path / "out"
    load = {"arrivals": "constant", "rates": [20], "warmup": 0, "duration": "2s", "rest": 0}
    wanted = sweep(out, problems, entry(server, "simulated/noisy-d", alias="d"), load=load)
    async with Going(wanted, load=()) as run:
        paused = await ab.pause_run(out)
        assert "The step under way is incomplete" in paused.as_text()
        await stand_still(run, server, "noisy-d")
        with pytest.raises(ConfigError, match="d: no limit can be set, for calls of a load go when they are"):
            await ab.set_limits(out, {"rpm": 30})
        await ab.resume_run(out)
        await asyncio.wait_for(run.task, timeout=HANG_S)
    first, second = ab.read_steps(out).sort_by("round").to_pylist()
    assert (first["load"], first["verdict"]) == ("constant 20/s #1", "incomplete")
    assert (second["load"], second["offered"], second["answered"]) == ("constant 20/s #2", 40, 40)
    assert run.screen.one.open == 0


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rps=3"], "rps: unknown limit. Known: rpm, tpm, input_tpm, output_tpm, concurrency"),
        (["rpm=fast"], "rpm=fast: 'fast' is not a number"),
        (["rpm=nan"], "rpm=nan: not a number above 0"),
        (["rpm=0"], "rpm=0: not a number above 0. To send nothing, use `asyncbench pause`"),
        (["tpm=-5"], "not a number above 0"),
        (["rpm"], "rpm: not a limit. Type its name and number, such as rpm=30"),
        (["concurrency=2.5"], "concurrency=2.5: not a whole number"),
        ([], "no limit to set"),
    ],
)
def test_limits_that_are_none_are_refused(words, said):
    with pytest.raises(ConfigError) as refused:
        limits_typed(words)
    assert said in str(refused.value)


def test_limits_may_be_typed_and_taken_away():
    assert limits_typed(["rpm=1e3", "concurrency=none"]) == {"rpm": 1000.0, "concurrency": None}


async def test_more_connections_than_a_run_can_open_are_refused(server, problems, tmp_path):
    wanted = sweep(tmp_path / "out", problems, entry(server, "simulated/noisy-e", concurrency=2))
    async with Going(wanted):
        with pytest.raises(ConfigError, match=f"opens at most {MOST_IN_FLIGHT:,} connections"):
            await ab.set_limits(tmp_path / "out", {"concurrency": MOST_IN_FLIGHT + 1})


@pytest.fixture
def left(tmp_path):
    """A results folder as a run leaves it that was killed: with a note of a socket that nobody serves."""
    folder = folder_of(tmp_path / "left", *answered(1))
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        os.chdir(directory)  # a path of a few bytes
        dead.bind("dead")
    note = {"socket": str(directory / "dead"), "pid": 1, "inode": folder.stat().st_ino}
    (folder / NOTE).write_text(json.dumps(note))
    return folder


def test_what_a_killed_run_left_is_known_for_that(left, monkeypatch):
    monkeypatch.chdir(left)
    (left / ".running").write_text("2026-01-01T00:00:00+00:00")
    with pytest.raises(ConfigError) as refused:
        send_request(left, {"do": "pause"})
    assert f"no run is going on in {left}, the last one was killed" in str(refused.value)
    assert f"asyncbench run {left}/sweep.yaml" in str(refused.value)


def test_the_next_run_removes_sockets_that_nobody_serves(left, monkeypatch):
    with TemporaryDirectory() as short:  # the path of a socket has few bytes
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        monkeypatch.chdir(short)
        os.mkdir("asyncbench", 0o700)
        for name in ("old", "young"):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(f"asyncbench/{name}")
        with socket.socket(socket.AF_UNIX) as alive:
            alive.bind("asyncbench/served")
            alive.listen()
            for name in ("old", "served"):
                os.utime(f"asyncbench/{name}", (0, 0))
            with noted_socket(left) as path:
                assert sorted(os.listdir("asyncbench")) == ["served", "young"]
                assert str(path.parent) == f"{short}/asyncbench"
        assert not (left / NOTE).exists()


def test_a_copy_of_a_folder_is_not_the_runs(left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy = folder_of(tmp_path / "copy", *answered(1))
    (copy / NOTE).write_bytes((left / NOTE).read_bytes())
    assert SocketNote.read(left) is not None
    assert SocketNote.read(copy) is None


def test_a_socket_where_others_may_write_is_not_believed(left, monkeypatch):
    monkeypatch.chdir(left)
    (left.parent / "run").chmod(0o777)
    with pytest.raises(ConfigError, match="Only the user who started it can control it"):
        send_request(left, {"do": "pause"})


# ── another user ─────────────────────────────────────────────────────────────────────────────

ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    try:
        asked.connect(sys.argv[1])
        asked.sendall(b'{"do": "pause"}\\n')
        print(asked.makefile().readline())
    except PermissionError:
        print("no way in")
"""


def interpreter_of_nobody() -> str:
    """A Python that another user may start."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user, too")
    for path in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        try:
            subprocess.run([path, "-c", ""], user=NOBODY, cwd="/", check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    pytest.skip("no Python here that another user may start")


@pytest.mark.long
async def test_another_user_cannot_control_a_run(server, problems, tmp_path, monkeypatch):
    python = interpreter_of_nobody()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)  # where nobody may look into the folder above
    monkeypatch.setattr("tempfile.tempdir", "/tmp")  # noqa: S108  as it is where nobody has set another
    wanted = sweep(tmp_path / "out", problems, entry(server, "simulated/noisy-f", rpm=600))

    async def asked(path: Path) -> str:
        command = [python, "-c", ASK, str(path)]
        done = await asyncio.to_thread(
            subprocess.run, command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True
        )
        return str(done.stdout.decode())

    async with Going(wanted) as run:
        note = SocketNote.read(run.out)
        assert note is not None
        path = Path(note.socket)
        assert os.stat(run.out / NOTE).st_mode & 0o077 == 0
        assert await asked(path) == "no way in\n"
        try:  # and if the directory were open
            os.chmod(path.parent, 0o755)  # noqa: S103  the point of this test
            os.chmod(path, 0o777)  # noqa: S103  likewise
            assert "this run is another user's" in await asked(path)
        finally:
            os.chmod(path.parent, 0o700)
        assert not run.screen.one.paused


# ── what is no request ───────────────────────────────────────────────────────────────────────

GARBAGE = [
    b"",
    b"\n",
    b"\x00" * 5_000 + b"\n",
    b"\xff\xfe{}\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"{" * 100_000 + b"\n",
    b"[" * 5_000 + b"]" * 5_000 + b"\n",
    b"a" * 3_000_000,
    b"null\n",
    b'[]\n{"do": "pause"}\n',
    b'"pause"\n',
    b"{}\n",
    b'{"do": null}\n',
    b'{"do": ["pause"]}\n',
    b'{"do": {"a": 1}}\n',
    b'{"do": "_pause"}\n',
    b'{"do": "__class__"}\n',
    b'{"do": "set"}\n',
    b'{"do": "set", "limits": 7, "model": null}\n',
    b'{"do": "set", "limits": {"rpm": 1e999}, "model": null}\n',
    b'{"do": "set", "limits": {"rpm": -5}, "model": null}\n',
    b'{"do": "set", "limits": {"rpm": "many"}, "model": null}\n',
    b'{"do": "set", "limits": {"concurrency": 0.5}, "model": null}\n',
    b'{"do": "set", "limits": {"concurrency": 99999999999999999999}, "model": null}\n',
    b'{"do": "set", "limits": {"rpm": true}, "model": null}\n',
    b'{"do": "set", "limits": {"rpm": 60}, "model": {"a": 1}}\n',
    b'{"do": "set", "limits": {"rpm": 60}, "model": "\\u001b[31mnobody"}\n',
    b'{"do": "set", "limits": {}, "model": []}\n',
]


@pytest.mark.long
async def test_garbage_on_its_socket_changes_nothing_of_a_run(server, problems, tmp_path):
    wanted = sweep(tmp_path / "out", problems, entry(server, "simulated/noisy-g", rpm=6000, concurrency=8))
    async with Going(wanted) as run:
        note = SocketNote.read(run.out)
        assert note is not None

        async def sent(line: bytes) -> bytes:
            reader, writer = await asyncio.open_unix_connection(note.socket)
            writer.write(line)
            with suppress(ConnectionError):
                await writer.drain()
                writer.write_eof()
            try:
                return await asyncio.wait_for(reader.read(), HANG_S)
            except ConnectionError:
                return b""
            finally:
                writer.close()

        send_request = list(run.screen.lines)
        idle = [await asyncio.open_unix_connection(note.socket) for _ in range(100)]
        for line in GARBAGE:
            answer = await sent(line)
            assert b'"error"' in answer or not answer, (line[:80], answer)
        for _, writer in idle:
            writer.close()
        assert not run.screen.one.paused
        assert run.screen.lines == send_request
        (lane,) = (await ab.resume_run(run.out)).lanes
        assert lane["limits"] == {"rpm": 6000}
        summary = await asyncio.wait_for(run.task, timeout=HANG_S)
    assert summary.exit is Exit.COMPLETE
    assert len(outcomes(run.out)) == counts(server, "noisy-g")["requests"] == 720
    assert not any(read_lanes(run.out)["changes"].to_pylist())
