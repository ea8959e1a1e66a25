"""A process that stands still for longer than its deadlines: answers that came meanwhile are read."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from asyncbench import run_sweep
from asyncbench.engine import attempts
from asyncbench.engine.awake import deadlines_put_off
from asyncbench.providers.calls import Call
from asyncbench.records import Timeouts
from asyncbench.store.catalog import read_attempts
from tests.providers.workers.worker_processes import workers_of
from tests.sweep_files import problem_set, sweep
from tests.world.clock import World

STOPPED_S = 600.0


# What a deadline is, in seconds → whether it was missed.
async def _by_timeout(within_s: float, answer: asyncio.Future[None]) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await answer
    except TimeoutError:
        return True
    return False


async def _set_later(answer: asyncio.Future[None], at_s: float) -> None:
    await asyncio.sleep(at_s)
    if not answer.done():
        answer.set_result(None)


@pytest.mark.parametrize(
    ("answered_s", "missed"),
    [(STOPPED_S + 5, False), (STOPPED_S + 50, False), (STOPPED_S + 70, True)],
    ids=["as it wakes", "within the time that was left", "too late"],
)
def test_a_deadline_does_not_pass_while_the_process_is_stopped(answered_s, missed):
    world = World()
    process = world.process("stopped")

    async def main() -> bool:
        answer = process.loop.create_future()
        with deadlines_put_off(boot_clock=process.now_s):
            answering = asyncio.create_task(_set_later(answer, answered_s))
            missed = await _by_timeout(60.0, answer)
        answering.cancel()
        return missed

    def stop() -> None:
        process.stalled_until_s = 5 + STOPPED_S

    world.at(5.0, stop)
    try:
        task = process.start(main())
        world.run(task.done)
        assert task.result() is missed
    finally:
        world.end()


@pytest.mark.parametrize("slept_s", [0.0, STOPPED_S])
def test_a_machine_that_was_suspended_reads_before_a_deadline_passes(slept_s):
    """Its loop's clock stood still; an answer is there as it wakes, just after the deadline."""
    world = World()
    process = world.process("suspended")

    async def main() -> bool:
        answer = process.loop.create_future()
        loop = process.loop
        with deadlines_put_off(boot_clock=process.now_s):
            waiting = asyncio.create_task(_by_timeout(60.0, answer))
            await asyncio.sleep(60.2)
            if not answer.done():
                answer.set_result(None)
            assert loop.time() >= 60.2
            return await waiting

    def suspend() -> None:
        process.slept_s = slept_s

    world.at(59.8, suspend)
    try:
        task = process.start(main())
        world.run(task.done)
        assert task.result() is (slept_s == 0)
    finally:
        world.end()


def test_the_first_byte_of_a_stream_has_time_after_a_stop_though_its_headers_were_there():
    world = World()
    process = world.process("stopped")

    async def main() -> None:
        with deadlines_put_off(boot_clock=process.now_s):
            async with Call(Timeouts(total=900.0, first_byte=60.0)) as call:
                call.sent(reused=False)
                await asyncio.sleep(STOPPED_S)
                call.began({})
                call.streams()
                await asyncio.sleep(5.0)
                call.flows()

    def stop() -> None:
        process.stalled_until_s = 5 + STOPPED_S

    world.at(5.0, stop)
    try:
        task = process.start(main())
        world.run(task.done)
        task.result()
    finally:
        world.end()


SERVER = """
import asyncio, sys
from tests.providers.raw_server import _read
from tests.test_unasked_responses import _echo, random_id

async def talk(reader, writer):
    while True:
        request = await _read(reader)
        print(request.body["messages"][-1]["content"].replace("\\n", " "), flush=True)
        await asyncio.sleep(1.0)
        writer.write(_echo(request, random_id(1)))

async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def a_server(log):
    """A server of its own process, which answers after a second and writes down each question."""
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=out)
    try:
        while not (told := log.read_text()):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{int(told.split()[0])}/v1"
    finally:
        process.kill()
        process.wait()


@contextmanager
def by_signal(number, pid):
    os.kill(pid, number)
    yield
    os.kill(pid, signal.SIGCONT)


@contextmanager
def by_freezer(pid):
    """Freeze a process with all its threads, as a container or a job scheduler does."""
    group = Path("/sys/fs/cgroup/freezer", f"asyncbench-{pid}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs the freezer of cgroup v1")
    try:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@contextmanager
def by_debugger(pid):
    """Stop a process as a debugger does that was attached."""
    if shutil.which("gdb") is None:
        pytest.skip("needs gdb")
    command = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "shell cat"]
    debugger = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while "t (tracing stop)" not in Path(f"/proc/{pid}/status").read_text():
        assert debugger.poll() is None
        time.sleep(0.02)
    yield
    debugger.communicate(b"", timeout=60)


STOPS: Mapping[str, Callable[[int], AbstractContextManager[None]]] = {
    "SIGSTOP": partial(by_signal, signal.SIGSTOP),
    "SIGTSTP": partial(by_signal, signal.SIGTSTP),  # Ctrl-Z
    "a frozen cgroup": by_freezer,
    "a debugger": by_debugger,
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("stop", "workers", "stream"),
    [
        ("SIGSTOP", 0, False),
        ("SIGSTOP", 0, True),
        ("SIGSTOP", 1, False),
        ("SIGSTOP", 1, True),
        ("SIGTSTP", 0, False),
        ("a frozen cgroup", 0, True),
        ("a debugger", 0, False),
    ],
)
def test_answers_that_came_while_a_run_was_stopped_are_paid_once(tmp_path, stop, workers, stream):
    problems, log = problem_set(tmp_path, trials=1), tmp_path / "log"
    with a_server(log) as url:
        asked = tmp_path / "sweep.yaml"
        asked.write_text(
            f"name: s\nout: {tmp_path / 'out'}\nproblems: [{problems}]\nmodels:\n"
            f"  - {{model: simulated/m, alias: m, base_url: {url}, concurrency: 30, max_tokens: 50, "
            f"stream: {str(stream).lower()}, timeouts: {{total: 3}}}}\n"
        )
        run = subprocess.Popen(
            [sys.executable, "-m", "asyncbench", "run", asked, "--limit", "30", "--workers", str(workers)],
            stdout=subprocess.DEVNULL,
        )
        try:
            while len(log.read_text().splitlines()) < 31:
                time.sleep(0.02)
            with STOPS[stop](run.pid):
                time.sleep(6.0)
            assert run.wait(60) == 0
        finally:
            run.kill()
            run.wait()
        calls = log.read_text().splitlines()[1:]
    statuses = read_attempts(tmp_path / "out", columns=["status"])["status"].to_pylist()
    assert (len(calls), statuses) == (30, ["ok"] * 30)


@pytest.mark.long
def test_answers_that_came_while_a_worker_was_stopped_are_paid_once(tmp_path, monkeypatch):
    """It is stopped for longer than the run would wait for a call of its own."""
    monkeypatch.setattr(attempts, "GRACE_S", 0.5)
    problems, log = problem_set(tmp_path, trials=1), tmp_path / "log"

    async def stopped_meanwhile(asked) -> None:
        running = asyncio.create_task(run_sweep(asked, limit=30, workers=1, progress=False))
        while len(log.read_text().splitlines()) < 31:  # noqa: ASYNC110  a file of another process
            await asyncio.sleep(0.02)
        (worker,) = workers_of()
        os.kill(worker, signal.SIGSTOP)
        await asyncio.sleep(6.0)
        os.kill(worker, signal.SIGCONT)
        await running

    with a_server(log) as url:
        keys = {"base_url": url, "concurrency": 30, "max_tokens": 50, "timeouts": {"total": 3}}
        model = {"model": "simulated/m", "alias": "m", **keys}
        asyncio.run(stopped_meanwhile(sweep(tmp_path / "out", problems, model)))
        calls = log.read_text().splitlines()[1:]
    statuses = read_attempts(tmp_path / "out", columns=["status"])["status"].to_pylist()
    assert (len(calls), statuses) == (30, ["ok"] * 30)


@pytest.mark.long
def test_a_doctor_that_was_stopped_reads_the_answer_that_came_meanwhile(tmp_path):
    log, asked = tmp_path / "log", tmp_path / "sweep.yaml"
    with a_server(log) as url:
        asked.write_text(
            f"name: s\nout: {tmp_path / 'out'}\nproblems: [{{suite: integer_addition}}]\nmodels:\n"
            f"  - {{model: simulated/m, alias: m, base_url: {url}, timeouts: {{total: 3}}}}\n"
        )
        doctor = subprocess.Popen(
            [sys.executable, "-m", "asyncbench", "doctor", asked], stdout=subprocess.PIPE, text=True
        )
        while len(log.read_text().splitlines()) < 2:
            time.sleep(0.02)
        with STOPS["SIGSTOP"](doctor.pid):
            time.sleep(6.0)
        said, _ = doctor.communicate(timeout=60)
    assert ("timeout" in said, doctor.returncode) == (False, 0)
