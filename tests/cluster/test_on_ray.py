"""Workers on Ray: what they are told and tell, how they die, and what Ray is never told."""

import asyncio
import os
import signal
import subprocess
import sys
from importlib.metadata import version

import psutil
import pytest

from asyncbench.cluster.messages import WorkerDiedError
from asyncbench.cluster.ray_actors import open_ray_cluster
from asyncbench.errors import ConfigError
from tests.cluster.machines import machines, ray_folder
from tests.cluster.programs import echo, refuse
from tests.commands import ROOT
from tests.processes import until

KEY = "sk-of-a-test-that-nobody-shall-read"


@pytest.fixture(scope="module")
def three():
    """Three machines with a core each; who starts a run has another key than they have."""
    with machines(os.environ) as cluster, pytest.MonkeyPatch.context() as patched:
        for _ in range(3):
            cluster.add(KEY_OF_TESTS=f"node{KEY}")
        patched.setenv("KEY_OF_TESTS", f"home{KEY}")
        yield cluster


@pytest.fixture
async def cluster(three):
    found = await open_ray_cluster(three.address)
    yield found
    await found.aclose()


@pytest.mark.slow
async def test_each_machine_has_a_worker_that_answers_in_its_own_process(cluster):
    assert cluster.count == 3
    links = await asyncio.gather(*(cluster.start(f"w{number}", echo) for number in range(3)))
    answers = [await link.exchange({"digits": range(3)}) for link in links]
    assert [answer["name"] for answer in answers] == ["w0", "w1", "w2"]
    assert [answer["pid"] for answer in answers] == [link.pid for link in links]
    assert len({answer["raylet"] for answer in answers}) == 3
    assert answers[0]["orders"] == {"digits": range(3)}
    for link in links:
        await link.close()


@pytest.mark.slow
async def test_a_machine_can_have_as_many_workers_as_were_asked_for(three):
    found = await open_ray_cluster(three.address, each=2)
    assert found.count == 6
    await found.aclose()


@pytest.mark.slow
async def test_an_error_of_the_program_comes_as_it_was_there(cluster):
    with pytest.raises(ConfigError) as refused:
        await cluster.start("w1", refuse)
    assert str(refused.value) == "w1: no folder here"
    link = await cluster.start("w2", echo)
    with pytest.raises(ConfigError) as refused:
        await link.exchange("refuse")
    assert str(refused.value) == "model one: the variable KEY_OF_TESTS is not set"
    assert (await link.exchange("still there"))["orders"] == "still there"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill -9", "killed by the run"])
async def test_a_worker_that_was_killed_has_died_and_is_not_started_again(cluster, how):
    link = await cluster.start("w1", echo)
    hanging = asyncio.create_task(link.exchange("hang"))
    await asyncio.sleep(0.1)
    link.kill() if how == "killed by the run" else os.kill(link.pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError):
        await hanging
    with pytest.raises(WorkerDiedError):
        await link.exchange("again")


@pytest.mark.slow
async def test_a_signal_to_the_run_ends_no_worker_and_stays_the_runs(cluster):
    link = await cluster.start("w1", echo)
    heard: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heard.append, number)
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert (await link.exchange("still there"))["pid"] == link.pid
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
    assert heard == [signal.SIGINT, signal.SIGTERM]


@pytest.mark.slow
async def test_a_worker_reads_its_own_key_and_ray_is_told_none(cluster, three):
    import ray

    link = await cluster.start("w1", echo)
    assert await link.exchange("key") == "node"
    with pytest.raises(ConfigError):
        await link.exchange("refuse")
    tables = f"{ray._private.state.state.actor_table(None, None, None)} {ray._private.state.jobs()}"
    assert "AsyncbenchWorker" in tables
    assert KEY not in tables
    logs = [path for path in three.folder.rglob("*") if path.is_file() and "logs" in path.parts]
    assert len(logs) > 10
    assert [path.name for path in logs if KEY.encode() in path.read_bytes()] == []


OTHERS = {
    "has asyncbench 0.0.9, and this machine": "asyncbench-0.0.9.dist-info/METADATA",
    "cannot be imported on a machine of the cluster": "asyncbench/__init__.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("said", OTHERS)
async def test_another_asyncbench_on_a_machine_is_refused(three, tmp_path, monkeypatch, said):
    monkeypatch.chdir("/")  # Ray has workers import from the folder of the run, too
    (tmp_path / OTHERS[said]).parent.mkdir()
    (tmp_path / OTHERS[said]).write_text("Version: 0.0.9\n" if "0.0.9" in said else "")
    raylet = three.add(PYTHONPATH=str(tmp_path), cores=1)
    found = await open_ray_cluster(three.address)
    try:
        with pytest.raises(ConfigError, match=said) as refused:
            await asyncio.gather(*(found.start(f"w{number}", echo) for number in range(4)))
        assert version("asyncbench") in str(refused.value)
    finally:
        os.kill(raylet, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: found.count == 3)
        await found.aclose()


@pytest.mark.slow
async def test_a_worker_ends_with_its_machine_and_another_machine_takes_the_next(cluster):
    link = await cluster.start("w1", echo)
    raylet = (await link.exchange("where"))["raylet"]
    os.kill(raylet, signal.SIGKILL)
    with pytest.raises(WorkerDiedError):
        await link.exchange("hang")
    await asyncio.to_thread(until, lambda: not psutil.pid_exists(link.pid))
    link = await cluster.start("w2", echo)
    assert (await link.exchange("where"))["raylet"] != raylet


REFUSED = {
    "127.0.0.1:9": r"^--ray 127\.0\.0\.1:9: no cluster answers there \(.*\)\. Give the HOST:PORT that",
    "head": "^--ray head: no cluster answers there",
    "ray://head:10001": "^--ray ray://head:10001: a run cannot be a client of Ray",
}


@pytest.mark.slow
@pytest.mark.parametrize("address", REFUSED)
@pytest.mark.parametrize("given", ["--ray", "RAY_ADDRESS"])
async def test_a_place_without_a_cluster_is_refused(address, given, monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: `make slow` has it")
    if given == "RAY_ADDRESS":
        monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigError, match=REFUSED[address]):
        await open_ray_cluster(address if given == "--ray" else "")


async def test_a_run_without_ray_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"^--ray needs the extra `ray`: pip install"):
        await open_ray_cluster()


ALONE = """
import asyncio, os, signal
from asyncbench.cluster.ray_actors import open_ray_cluster
from tests.cluster.programs import echo

async def main():
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, heard.set)
    cluster = await open_ray_cluster()
    links = await asyncio.gather(*(cluster.start(f"w{number}", echo) for number in range(cluster.count)))
    os.killpg(0, signal.SIGINT)  # as Ctrl-C at a terminal
    await heard.wait()
    assert [(await link.exchange("there?"))["pid"] for link in links] == [link.pid for link in links]
    os.kill(links[0].pid, signal.SIGKILL)
    try:
        await links[0].exchange("there?")
    except Exception as error:
        print(type(error).__name__)
    await cluster.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
def test_without_a_cluster_there_is_one_on_this_machine_that_ctrl_c_and_its_words_do_not_touch(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed: `make slow` has it")
    with ray_folder() as folder:
        own = {"HOME": str(tmp_path), "RAY_TMPDIR": str(folder)}
        done = subprocess.run(
            [sys.executable, "-c", ALONE],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=dict(os.environ) | own,
            start_new_session=True,  # all of it hears Ctrl-C, and this process does not
        )
    assert (done.stdout, done.returncode) == ("WorkerDiedError\n", 0), done.stderr
