"""Limits that are compared: the same problems are asked again at each, and one after the other."""

import asyncio
import json
from datetime import datetime

import pytest

import asyncbench as ab
from asyncbench.planning.sweep_plan import plan
from tests.sweep_files import problem_set, sweep


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    place = tmp_path_factory.mktemp("turns")
    made = sweep(
        place / "out",
        problem_set(place, trials=1),
        {"model": "simulated/noisy", "concurrency": [2, 8]},
        {"model": "simulated/oracle", "concurrency": 8},
    )
    asyncio.run(ab.run_sweep(made))
    return made


@pytest.mark.long
def test_the_second_starts_when_the_first_is_done(night):
    rows = ab.read_attempts(night.out).to_pylist()
    started, most = dict[str, list[datetime]](), dict[str, int]()
    for row in rows:
        started.setdefault(row["model"], []).append(row["started_at"])
        most[row["model"]] = max(row["in_flight"], most.get(row["model"], 0))
    few, many = (f"simulated/noisy concurrency={n}" for n in (2, 8))
    assert len(started[few]) == len(started[many]) == 72
    assert max(started[few]) < min(started[many])
    assert min(started["simulated/oracle"]) < min(started[many])  # lanes of other models wait for nobody
    assert most[few] <= 2


@pytest.mark.long
def test_each_asks_every_problem_and_the_results_say_at_which_limit(night):
    rows = ab.read_trials(night.out).to_pylist()
    assert len({row["trial_id"] for row in rows}) == len(rows) == 3 * 72
    limits = {row["model"]: json.loads(row["params"]) for row in rows}
    assert limits == {
        "simulated/noisy concurrency=2": {"concurrency": 2},
        "simulated/noisy concurrency=8": {"concurrency": 8},
        "simulated/oracle": {},
    }
    lines = json.loads(ab.report(night.out, by="concurrency").as_json())["lines"]
    assert [(line["name"], line["value"], line["difference"]) for line in lines] == [
        ("simulated/noisy", "2", None),
        ("simulated/noisy", "8", 0.0),
    ]
    again = asyncio.run(ab.run_sweep(night.out / "sweep.yaml"))
    assert len(ab.read_attempts(night.out)) == len(rows)
    assert all(counters.open == 0 for counters in again.models.values())


def test_a_plan_adds_up_the_time_of_those_that_take_turns(tmp_path):
    found = plan(
        sweep(
            tmp_path / "out",
            problem_set(tmp_path, trials=1),
            {"model": "simulated/noisy", "concurrency": [2, 8]},
        )
    )
    assert found.seconds == pytest.approx(sum(each.seconds for each in found.models))
    assert [each.varied for each in found.models] == [{"concurrency": 2}, {"concurrency": 8}]
