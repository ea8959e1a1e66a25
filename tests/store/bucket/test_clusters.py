"""Workers on other machines whose results go to a bucket: each copies its own folder there."""

import asyncio
import os
import shutil
import signal

import pytest

import asyncbench as ab
from asyncbench.run.summary import Exit
from asyncbench.store.bucket.objects import BucketAddress, BucketObjects, journal_folder
from tests.cluster.on_processes import run_on
from tests.cluster.processes import ProcessCluster
from tests.processes import until
from tests.sweep_files import entry, problem_set, simulator, sweep

URL = "s3://bucket/mine/night"
CHEAPEST = 20e-6  # of the answers, USD
pytestmark = pytest.mark.usefixtures("s3")


def elsewhere(tmp_path):
    """Two workers on a machine that has no file of the run."""
    there = {"XDG_STATE_HOME": str(tmp_path / "there"), "XDG_CACHE_HOME": str(tmp_path / "there")}
    return ProcessCluster(2, {**os.environ, **there}, children=False)


def workers_in_bucket():
    names = BucketObjects(BucketAddress.parse(URL)).names("workers")  # SeaweedFS lists empty folders, too
    return sorted({name.split("/")[1] for name in names})


def models(server):
    price = {"input": 1.0, "output": 5.0}
    return [
        entry(server, f"simulated-http/{name}", price=price, max_tokens=64, concurrency=4)
        for name in ("noisy", "oracle")
    ]


@pytest.mark.long
def test_results_of_other_machines_come_together(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems, latency_s=0.02) as server:
        meant = sweep(URL, problems, *models(server), budget_usd=1)
        assert run_on(elsewhere(tmp_path), meant).exit is Exit.COMPLETE
        assert server.stats()["delivered"] == 144
    assert len(ab.read_trials(URL)) == len(ab.read_attempts(URL)) == 144
    assert workers_in_bucket() == []
    assert not (journal_folder(URL) / "workers").exists()


def kill_the_first(server, then=lambda _: None):
    async def kill(cluster):
        await asyncio.to_thread(until, lambda: server.stats()["delivered"] >= 60)
        os.kill(cluster.links[0].pid, signal.SIGKILL)
        then(cluster.links[0].name)

    return kill


def cap_of(summary):
    (cap,) = summary.budget.ledger.caps
    return cap


@pytest.mark.long
def test_the_next_worker_of_a_machine_brings_what_a_dead_one_left(tmp_path):
    problems = problem_set(tmp_path, trials=2)
    with simulator(problems, latency_s=0.1) as server:
        summary = run_on(
            elsewhere(tmp_path),
            sweep(URL, problems, *models(server), budget_usd=1),
            beside=kill_the_first(server),
        )
    assert summary.exit is Exit.COMPLETE
    assert len(ab.read_trials(URL)) == 288
    lost = [row for row in ab.read_attempts(URL).to_pylist() if row["status"] == "lost"]
    assert 0 < len(lost) <= 4
    assert cap_of(summary).doubted == pytest.approx(sum(row["reserved_usd"] for row in lost) * 1e12, abs=9)


@pytest.mark.long
def test_what_a_lost_machine_may_have_cost_counts_as_spent(tmp_path):
    problems = problem_set(tmp_path, trials=2)

    def lose_its_disk(worker):
        (folder,) = (tmp_path / "there").rglob(worker)
        shutil.rmtree(folder)

    with simulator(problems, latency_s=0.1) as server:
        meant = sweep(URL, problems, *models(server), budget_usd=1)
        summary = run_on(elsewhere(tmp_path), meant, beside=kill_the_first(server, lose_its_disk))
        assert summary.exit is Exit.UNFINISHED
        gone = server.stats()["delivered"] - len(ab.read_attempts(URL))
        assert 0 < 288 - len(ab.read_trials(URL)) <= gone
        known = sum(row["cost_usd"] or 0 for row in ab.read_attempts(URL, ["cost_usd"]).to_pylist())
        spent = cap_of(summary).spent
        assert spent >= (known + gone * CHEAPEST) * 1e12
        again = run_on(elsewhere(tmp_path), meant)
        assert again.exit is Exit.COMPLETE
        assert cap_of(again).spent > spent
        alone = asyncio.run(ab.run_sweep(meant))
        assert cap_of(alone).spent == cap_of(again).spent
    assert len(ab.read_trials(URL)) == 288
