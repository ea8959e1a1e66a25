"""The mission on a cluster: twenty models, four workers, one killed; the report is that of one process.

ASYNCBENCH_MISSION_PROBLEMS and ASYNCBENCH_MISSION_MODELS make it smaller, to be tried.
"""

import asyncio
import os
import signal

import pytest

from asyncbench import read_attempts, read_trials
from asyncbench.analysis.counting import counted
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from tests.cluster.processes import ProcessCluster
from tests.processes import until
from tests.soak import mission
from tests.sweep_files import simulator

PLANNED = mission.MODELS * mission.PROBLEMS
SAME = ["trial_id", "model", "outcome", "exact_match", "reply_text"]


def answers_in(out):
    return read_trials(out, SAME).sort_by("trial_id")


def overview_of(out):
    """Return the report on a folder, but for what depends on how fast this machine was."""
    told = mission.command("report", out).told
    return [
        {name: value for name, value in row.items() if not name.startswith("latency")}
        for sheet in ("suites", "tasks")
        for row in told[sheet]
    ]


async def on_four(file, server):
    """Run the sweep with four workers, and kill one of them at half of it."""
    cluster = ProcessCluster(4)

    async def kill_one():
        half = server.stats()["delivered"] + PLANNED // 2
        await asyncio.to_thread(until, lambda: server.stats()["delivered"] >= half, within_s=4 * 3600)
        os.kill(cluster.links[1].pid, signal.SIGKILL)

    try:
        run = asyncio.create_task(run_with_options(file, RunOptions(), cluster=cluster))
        await kill_one()
        return await run
    finally:
        await cluster.aclose()


@pytest.mark.soak
@pytest.mark.timeout(8 * 3600)
def test_a_million_calls_of_four_workers_end_as_those_of_one_process(tmp_path):
    problems = mission.problem_set(tmp_path)
    with simulator(problems, faults=mission.FAULTS, **mission.SERVER) as server:
        (tmp_path / "spread").mkdir()
        file = mission.sweep_file(tmp_path / "spread", server, problems)
        before = server.stats()["delivered"]
        assert asyncio.run(on_four(file, server)).exit is Exit.COMPLETE
        delivered = mission.settled(server)["delivered"] - before
        (tmp_path / "alone").mkdir()
        alone = mission.started(mission.sweep_file(tmp_path / "alone", server, problems), server)
    assert alone.returncode == Exit.COMPLETE
    spread_out, alone_out = tmp_path / "spread" / "out", tmp_path / "alone" / "out"
    assert answers_in(spread_out).equals(answers_in(alone_out))
    assert counted(spread_out, overview_of) == counted(alone_out, overview_of)
    statuses = read_attempts(spread_out, ["status"])["status"].to_pylist()
    assert statuses.count("ok") == PLANNED
    assert delivered - PLANNED <= statuses.count("lost")
    print(f"{PLANNED:,} answers of four workers, one killed: {statuses.count('lost')} calls lost")
