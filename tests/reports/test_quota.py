"""What became of the limits: told by lane and by minute, from the rows that the lanes left."""

import asyncio
import json
from dataclasses import replace

import pytest

from asyncbench import run_sweep
from asyncbench.analysis.counting import counted
from asyncbench.reports.quota import MOST_ROWS, quota_of
from asyncbench.store.folder import Store
from asyncbench.store.manifest import changed_manifest, workers_folder
from asyncbench.tables.report import Sheet
from tests.store.made import AT, ended, folder_of, minute, reply, trial
from tests.sweep_files import entry, problem_set, simulator, sweep

LIMITS = {"requests": 600.0, "output_tokens": 1_000.0}


def call(n, worker, *, at_s, latency_s=1.0, status="ok", lag_s=0.001):
    """A call that a worker made; None: the run itself."""
    made = ended(trial(n), reply(n))
    told = {"started_at": AT + at_s, "latency_s": latency_s, "status": status, "loop_lag_s": lag_s}
    return replace(made, attempt=replace(made.attempt, worker=worker, **told))


def by_workers(calls):
    """Calls of two workers, one a second each; the last of them is lost."""
    status = ["ok"] * (calls - 1) + ["lost"]
    return [call(n, str(1 + n % 2), at_s=n // 2, status=status[n]) for n in range(calls)]


def test_a_lane_tells_how_much_of_each_limit_it_used(tmp_path):
    first = replace(minute(), requests=600, output_tokens=400.0, limits=LIMITS)
    second = replace(
        minute(), started_at=AT + 60, seconds=30.0, requests=150, output_tokens=500.0, limits=LIMITS
    )

    report = counted(folder_of(tmp_path / "night", first, second), quota_of)

    (lane,) = report.lanes
    assert lane.shares == {"requests": pytest.approx(750 / 900), "output_tokens": pytest.approx(900 / 1_500)}
    assert [one.shares["requests"] for one in report.minutes] == [1.0, 0.5]
    assert "83.3%" in report.as_text()
    assert "60.0%" in report.as_text()


def test_a_lane_is_bound_by_what_it_waited_for_most_but_for_work(tmp_path):
    waited = {"work": 40.0, "tokens": 5.0, "pause": 12.0}
    report = counted(folder_of(tmp_path / "night", replace(minute(), waited_s=waited)), quota_of)

    assert report.lanes[0].bound_by == "pause"
    shown = report.as_markdown()
    assert "waiting: 429 pause" in shown
    assert "20.0%" in shown
    assert "waiting: concurrency" not in shown  # nothing was


@pytest.mark.long
@pytest.mark.parametrize(
    ("limits", "cause", "word"),
    [
        ({"requests": 600.0}, "requests", "RPM"),
        ({}, "requests", "429 back-off"),  # nobody set or told one: it was guessed from refusals
        ({"tokens": 900.0}, "requests", "429 back-off"),
        ({}, "budget", "reserved money"),  # which may be all of a budget of which little is spent
        ({}, "concurrency", "concurrency"),
    ],
)
def test_no_lane_is_bound_by_a_limit_that_nobody_set(tmp_path, limits, cause, word):
    waited = replace(minute(), limits=limits, waited_s={cause: 30.0})
    report = counted(folder_of(tmp_path / "night", waited), quota_of)
    sheet = next(part for part in report.content() if isinstance(part, Sheet))
    assert dict(zip(sheet.head, sheet.rows[0], strict=True))["limited by"] == word


def test_a_lane_that_waited_for_nothing_is_bound_by_nothing(tmp_path):
    report = counted(folder_of(tmp_path / "night", replace(minute(), waited_s={"work": 60.0})), quota_of)
    assert report.lanes[0].bound_by is None


def test_lanes_stand_apart_and_their_refusals_add_up(tmp_path):
    rows = [replace(minute(lane), refused=n) for n, lane in enumerate(("b", "a", "b"))]
    report = counted(folder_of(tmp_path / "night", *rows), quota_of)
    assert {one.lane: one.refused for one in report.lanes} == {"a": 1, "b": 2}


def test_a_long_night_is_shown_by_the_hour_and_given_whole_as_json(tmp_path):
    rows = [replace(minute(), started_at=AT + 60 * n) for n in range(MOST_ROWS + 1)]
    report = counted(folder_of(tmp_path / "night", *rows), quota_of)

    assert "By hour" in report.as_text()
    assert "By minute" not in report.as_text()
    told = json.loads(report.as_json())
    assert len(told["minutes"]) == MOST_ROWS + 1
    assert told["lanes"][0]["used"]["requests"] == 100 * (MOST_ROWS + 1)


def test_what_was_used_before_there_was_a_limit_is_no_share_of_it(tmp_path):
    before = replace(minute(), requests=600, limits={})
    after = replace(minute(), started_at=AT + 60, requests=300, limits={"requests": 600.0})
    (lane,) = counted(folder_of(tmp_path / "night", before, after), quota_of).lanes
    assert (lane.used["requests"], lane.shares) == (900, {"requests": 0.5})


def test_what_a_change_by_hand_leaves_of_a_minute_is_no_row(tmp_path):
    rest = replace(minute(), started_at=AT + 60, seconds=0.2, requests=0)
    report = counted(folder_of(tmp_path / "night", minute(), rest), quota_of)
    assert len(report.minutes) == 2
    assert report.as_text().count("0:00:00") == 0
    assert report.as_text().count("0:01:00") == 2  # of the lane, and of its minute


# ── workers ──────────────────────────────────────────────────────────────────────────────────


def test_a_worker_tells_how_fast_it_was_while_it_worked(tmp_path):
    overlapping = [call(n, "1", at_s=at_s, latency_s=2.0) for n, at_s in enumerate((0.0, 1.0, 1.5))]
    later = call(3, "1", at_s=3600.0, latency_s=0.5)  # another run, or nothing to do in between
    folder = folder_of(tmp_path / "night", *overlapping, later, call(4, None, at_s=1.0), minute())
    (one,) = counted(folder, quota_of).workers
    # From 0 to 1.5 s, ten seconds of the pause, and half a second of the last call.
    assert (one["worker"], one["calls"], one["working_s"]) == ("1", 4, 12.0)
    assert one["calls_per_s"] == pytest.approx(1 / 3)
    assert one["busiest_per_s"] is None  # it worked for less than a minute


def test_the_busiest_minute_is_any_60_seconds(tmp_path):
    quiet = [call(n, "1", at_s=10.0 * n, latency_s=10.0) for n in range(30)]
    busy = [call(100 + n, "1", at_s=95 + n / 5) for n in range(300)]  # over the end of a minute
    (one,) = counted(folder_of(tmp_path / "night", *quiet, *busy), quota_of).workers
    assert one["busiest_per_s"] == pytest.approx((300 + 6) / 60)
    assert one["calls_per_s"] == pytest.approx(330 / 300)


@pytest.mark.long
def test_the_lag_of_a_worker_is_told_in_milliseconds_and_lost_calls_where_there_are_some(tmp_path):
    calls = [call(n, "2", at_s=n, lag_s=n / 1000) for n in range(101)]
    folder = folder_of(tmp_path / "night", minute(), *calls, call(200, "10", at_s=0.0, status="lost"))
    second, tenth = counted(folder, quota_of).workers  # in the order of their numbers
    assert [second[f"lag_{name}_s"] for name in ("p50", "p99", "max")] == pytest.approx([0.05, 0.099, 0.1])
    assert (second["lost"], tenth["lost"]) == (0, 1)
    lines = counted(folder, quota_of).as_text().splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("worker"))
    assert lines[head + 1].split() == ["2", "101", "-", "1.0", "1.0", "50.0", "99.0", "100.0"]
    assert lines[head + 2].split() == ["10", "1", "1", "1.0", "-", "1.0", "1.0", "1.0"]
    told = json.loads(counted(folder, quota_of).as_json())["workers"]
    assert [(one["worker"], one["calls_per_s"]) for one in told] == [("2", 1.0), ("10", 1.0)]


def test_without_workers_there_is_no_word_of_them(tmp_path):
    report = counted(folder_of(tmp_path / "night", minute(), call(1, None, at_s=0.0)), quota_of)
    assert report.workers == []
    assert "worker" not in report.as_markdown()


def test_workers_of_several_folders_are_told_apart(tmp_path):
    folders = [folder_of(tmp_path / name, minute(), call(1, "1", at_s=0.0)) for name in ("a", "b")]
    assert [one["worker"] for one in counted(folders, quota_of).workers] == ["1 in a", "1 in b"]


@pytest.mark.long
def test_the_workers_of_a_cluster_are_told_with_their_machines_while_they_work_and_afterwards(tmp_path):
    folder = folder_of(tmp_path / "night", minute())
    for first, name, took_s in ((0, "w002-e1", 1.0), (10, "w010-e1", 3.0)):
        calls = (call(first + n, f"{name}.2" if n else name, at_s=n, latency_s=took_s) for n in range(3))
        worker = folder_of(workers_folder(folder) / name, *calls)
        with changed_manifest(worker) as manifest:
            manifest["worker"]["host"] = f"machine-of-{name}"

    def told():
        return counted(folder, quota_of)

    report = told()
    assert [(one["worker"], one["host"], one["calls"]) for one in report.workers] == [
        ("w002-e1", "machine-of-w002-e1", 1),
        ("w002-e1.2", "machine-of-w002-e1", 2),
        ("w010-e1", "machine-of-w010-e1", 1),
        ("w010-e1.2", "machine-of-w010-e1", 2),
    ]
    latencies = {
        one["worker"]: (one["model"], one["host"], one["answered"]) for one in report.worker_latencies
    }
    assert latencies == {
        "w002-e1": ("small", "machine-of-w002-e1", 3),
        "w010-e1": ("small", "machine-of-w010-e1", 3),
    }
    assert [one["latency_p50_s"] for one in report.worker_latencies] == [1.0, 3.0]
    assert "### Latency by worker" in report.as_markdown()
    Store.open(folder, sweep="night").close()  # joins them
    assert not workers_folder(folder).exists()
    assert (told().workers, told().worker_latencies) == (report.workers, report.worker_latencies)

    several = counted([folder, folder_of(tmp_path / "day", minute(), call(1, "1", at_s=0.0))], quota_of)
    hosts = {one["worker"]: one["host"] for one in several.workers}
    assert (hosts["w010-e1.2 in night"], hosts["1 in day"]) == ("machine-of-w010-e1", None)


@pytest.mark.long
def test_the_workers_of_a_run_made_all_of_its_calls(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems) as server:
        wanted = sweep(tmp_path / "out", problems, entry(server, "simulated/oracle"))
        asyncio.run(run_sweep(wanted, workers=2))
    report = counted(tmp_path / "out", quota_of)
    assert [one["worker"] for one in report.workers] == ["1", "2"]
    assert sum(one["calls"] for one in report.workers) == 72
    assert "### By worker" in report.as_markdown()
