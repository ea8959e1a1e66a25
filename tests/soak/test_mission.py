"""The mission itself: twenty models, fifty thousand problems, a million SDK calls, one SIGKILL on the way.

ASYNCBENCH_MISSION_PROBLEMS and ASYNCBENCH_MISSION_MODELS make it smaller, to be tried.
"""

import json
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from asyncbench import read_attempts, read_trials
from asyncbench.store.folder import SEAL_AT_RESULTS
from tests.soak import mission
from tests.soak.mission import ALIASES, AT_ONCE, MIB, MODELS, PROBLEMS, Reading, Said, Start
from tests.sweep_files import simulator

PLANNED = MODELS * PROBLEMS
LOOKS = (("status",), ("report",), ("report", "--style", "quota"))


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_a_million_calls_survive_a_kill_and_end_as_a_complete_report_in_flat_memory(tmp_path):
    problems, out = mission.problem_set(tmp_path), tmp_path / "out"
    with simulator(problems, faults=mission.FAULTS, **mission.SERVER) as server:
        file = mission.sweep_file(tmp_path, server, problems)
        killed = mission.started(file, server, kill_at=PLANNED // 2)
        mission.settled(server)
        resumed = mission.started(file, server)
        seen = server.stats()
    looked = [mission.command(*words, out) for words in LOOKS]
    tell([killed, resumed], seen, looked, out)

    assert killed.returncode == -signal.SIGKILL
    assert resumed.returncode == 0, resumed.summary
    check_trials(out)
    check_attempts(out, seen)
    check_looks(*(look.told for look in looked), resumed=json.loads(resumed.summary))
    for start in (killed, resumed):
        assert start.flat or not start.sealed_in_each_third, peaks(start)


def check_trials(out):
    trials = read_trials(out, columns=["trial_id", "problem_id", "model", "outcome"])
    assert len(trials["trial_id"].unique()) == trials.num_rows == PLANNED
    each = trials.group_by("model").aggregate([("problem_id", "count_distinct"), ("trial_id", "count")])
    found = {
        row["model"]: (row["problem_id_count_distinct"], row["trial_id_count"]) for row in each.to_pylist()
    }
    assert found == dict.fromkeys(ALIASES, (PROBLEMS, PROBLEMS))
    assert "failed" not in trials["outcome"].unique().to_pylist()


def check_attempts(out, seen):
    """Every call that the server saw is in the table, and no other but those that the kill caught."""
    attempts = read_attempts(out, columns=["trial_id", "attempt", "model", "status"])
    assert attempts.group_by(["trial_id", "attempt"]).aggregate([]).num_rows == attempts.num_rows
    assert seen["requests"] >= PLANNED
    each = attempts.group_by(["model", "status"]).aggregate([("attempt", "count")]).to_pylist()
    lost = sum(row["attempt_count"] for row in each if row["status"] == "lost")
    assert 0 < lost <= MODELS * AT_ONCE
    for alias in ALIASES:
        calls = Counter({row["status"]: row["attempt_count"] for row in each if row["model"] == alias})
        server = seen["models"][alias]
        assert calls.total() - calls["lost"] <= server["requests"] <= calls.total(), alias
        assert calls["ok"] == PROBLEMS, alias
        assert calls["ok"] <= server["delivered"] <= calls["ok"] + calls["lost"], alias


def check_looks(status, report, quota, *, resumed):
    for line in status["models"]:
        assert (line["planned"], line["done"], line["failed"]) == (PROBLEMS, PROBLEMS, 0), line
    assert {line["model"] for line in status["models"]} == set(ALIASES)
    assert {line["model"]: line["trials"] for line in report["suites"]} == dict.fromkeys(ALIASES, PROBLEMS)
    assert len(report["tasks"]) == MODELS * len(mission.TASKS)
    calls = {line["model"]: line["attempts"] for line in status["models"]}
    used = {lane["lane"]: lane["used"]["requests"] for lane in quota["lanes"]}
    assert used.keys() == calls.keys()
    for alias in ALIASES:  # a killed run takes the account of its last minute with it
        assert resumed["models"][alias]["attempts"] <= used[alias] <= calls[alias], alias


def tell(starts: Sequence[Start], seen, looked: Sequence[Said], out: Path) -> None:
    """Print the figures as rows of a table: they are what a soak is for."""
    calls, seconds = seen["requests"], sum(start.seconds for start in starts)
    lost = read_attempts(out, columns=["status"], filters=pc.field("status") == "lost").num_rows
    first, second = starts
    rows = {
        "models, problems, trials": f"{MODELS}, {PROBLEMS:,}, {PLANNED:,}",
        "calls that the server saw; of them 429; faults on purpose, 429 too": (
            f"{calls:,}; {seen['rate_limited']:,}; {sum(seen['faults'].values()):,}"
        ),
        "seconds, first start + second": f"{first.seconds:,.0f} + {second.seconds:,.0f}",
        "calls a second, starting and sealing included": f"{calls / seconds:,.0f}",
        "answers before the kill; calls that it caught (`lost`)": f"{first.answered:,}; {lost:,}",
        "second start to its first call": f"{second.first_call_s:.1f} s",
        "most memory, first start by thirds": peaks(first),
        "most memory, second start by thirds": peaks(second),
        "results folder": f"{mission.size(out) / MIB:,.0f} MiB",
        "`status`, `report`, `report --style quota`": ", ".join(f"{look.seconds:.1f} s" for look in looked),
    }
    print("\n| the mission | figure |\n|---|---|")
    for what, figure in rows.items():
        print(f"| {what} | {figure} |")


def peaks(start: Start) -> str:
    most = ", ".join(f"{peak / MIB:.0f}" for peak in start.peaks)
    return f"{most} MiB" + ("" if start.sealed_in_each_third else " (too short to be judged)")


# ── the rule for memory, on readings made by hand ────────────────────────────────────────────


def start_of(*mib: int) -> Start:
    """A start of a million answers, evenly spread over these readings."""
    answers = [number * 1_000_000 // (len(mib) - 1) for number in range(len(mib))]
    return Start(
        readings=[reading(*pair) for pair in zip(answers, mib, strict=True)], returncode=0, summary=""
    )


def reading(answered: int, mib: int) -> Reading:
    return Reading(answered / 1000, answered, answered, mib * MIB)


def test_memory_is_flat_where_the_last_third_stays_within_15_percent_of_the_middle_one():
    assert start_of(50, 90, 200, 200, 200, 230, 230).flat
    assert not start_of(50, 90, 200, 200, 200, 231, 200).flat


def test_a_peak_after_the_last_answer_counts_for_the_last_third():
    steady = start_of(200, 200, 200, 200)
    assert replace(steady, readings=[*steady.readings, reading(1_000_000, 300)]).peaks[2] == 300 * MIB


def test_a_start_without_two_seals_in_each_third_is_not_judged():
    assert start_of(200, 200).sealed_in_each_third
    short = [reading(0, 200), reading(6 * SEAL_AT_RESULTS - 1, 200)]
    assert not replace(start_of(200, 200), readings=short).sealed_in_each_third
