"""What `status` tells of a folder: how far its models are, and how its files are, also beside a run."""

import asyncio
import io
import json
import os
import threading
import time
from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

from asyncbench import run_sweep
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.providers.workers.process import WorkerCounts
from asyncbench.reports.status.report import status_of
from asyncbench.reports.status.watching import follow_status, followed
from asyncbench.store.folder import Store
from asyncbench.store.lock import locked, writer_of
from tests.commands import asyncbench, asyncbench_here
from tests.processes import Forked
from tests.store import made
from tests.sweep_files import entry, problem_set, simulator, sweep

PLAN = {"runs": {"night": {"planned": {"small": {"plain": {"nupa": {"add": 10}}}}}}}


def folder_of(path, *events):
    return made.folder_of(path, *events, **PLAN)


def killed(path, *events):
    """A folder as a killed run leaves it: nothing sealed, the lock free."""
    with Store.open(path, sweep="night") as store:
        store.write_manifest(PLAN)
        made.keep(store, *events)
        files = [*(path / "journal").glob("*.wal"), path / "manifest.json"]
        left = {file: file.read_bytes() for file in files}
    for table in ("trials", "grades", "attempts"):
        for part in (path / table).rglob("*.parquet"):
            part.unlink()
    for file, data in left.items():
        file.write_bytes(data)
    return path


def refusal(n, status, *, at_s, latency_s=1.0):
    """The events of a call that was refused, of a trial that stays open."""
    asked = made.trial(n)
    ended = made.ended(asked, None)
    attempt = replace(ended.attempt, status=status, started_at=made.AT + at_s, latency_s=latency_s)
    return [made.sent(asked), replace(ended, attempt=attempt)]


# ── models ───────────────────────────────────────────────────────────────────────────────────


def test_planned_done_failed_and_open_are_told_of_each_model(tmp_path):
    events = [*made.answered(1), *made.answered(2), *made.refused(3), made.sent(made.trial(4))]
    (one,) = status_of(killed(tmp_path, *events)).models
    assert (one.planned, one.done, one.failed, one.open, one.in_flight) == (10, 3, 1, 7, 1)
    assert (one.attempts, one.cost_usd, one.unpriced_attempts) == (3, 0.5, 0)


def test_several_models_have_a_line_of_all(tmp_path):
    status = status_of(folder_of(tmp_path, *made.answered(1), *made.answered(2, alias="large")))
    *_, total = [line for line in status.as_text().splitlines() if "$" in line]
    assert total.split() == ["all", "?", "2", "0", "?", "0", "2", "$0.5000"]
    assert (status.cost_usd, status.unpriced_attempts) == (0.5, 0)


@pytest.mark.parametrize("kind", ["auth", "no_quota", "no_such_model", "rejected_parameter", "bad_request"])
def test_a_model_refused_for_good_is_told_to_be_suspended(tmp_path, kind):
    folder_of(tmp_path, *made.answered(1), *refusal(2, kind, at_s=5))
    (one,) = status_of(tmp_path).models
    assert one.suspended == kind
    assert f"suspended: {kind}" in status_of(tmp_path).as_text()


def test_a_model_that_was_asked_after_its_refusal_is_not_suspended(tmp_path):
    later = [made.sent(made.trial(3)), *refusal(3, "timeout", at_s=9)]
    (one,) = status_of(folder_of(tmp_path, *refusal(2, "auth", at_s=5), *later)).models
    assert one.suspended is None


def test_calls_that_were_in_flight_at_the_refusal_change_nothing(tmp_path):
    beside = refusal(3, "timeout", at_s=5.5)
    (one,) = status_of(folder_of(tmp_path, *refusal(2, "auth", at_s=5, latency_s=1.0), *beside)).models
    assert one.suspended == "auth"


def test_a_bad_request_that_closed_its_trial_suspends_nothing(tmp_path):
    asked = made.trial(2)
    events = [*refusal(2, "bad_request", at_s=5), made.result(asked, None, cost_usd=0.0)]
    (one,) = status_of(folder_of(tmp_path, *events)).models
    assert one.suspended is None


def test_a_sweep_whose_key_is_refused_is_told_to_be_suspended(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems, faults=("dead_key=1",)) as server:
        asyncio.run(run_sweep(sweep(tmp_path / "out", problems, entry(server, "simulated/noisy"))))
    (one,) = status_of(tmp_path / "out").models
    assert (one.suspended, one.done, one.open) == ("auth", 0, 72)


def test_a_limit_that_models_share_is_named_with_them(tmp_path):
    status = status_of(folder_of(tmp_path, *made.answered(1)))
    lane = {"lane": "openai", "models": [*"abcd"], "limited_by": "RPM", "in_flight": 3}
    lane |= {"limits": {"rpm": 5000.0}, "concurrency": None}
    status = replace(status, lanes=(lane,))
    assert "openai, shared by a, b, c and 1 more" in status.as_text()


def test_workers_have_a_row_each_where_there_are_some(tmp_path):
    status = status_of(folder_of(tmp_path, *made.answered(1)))
    assert status.workers == ()
    assert "calls made" not in status.as_text()
    counts = WorkerCounts(
        name="1", pid=77, in_flight=40, calls=12_345, calls_per_s=612.34, lag_s=0.0042, deaths=1
    )
    status = replace(status, workers=(asdict(counts), asdict(replace(counts, name="2"))))
    head, first, second = (line.split() for line in status.as_text().splitlines()[-4:-1])
    assert " ".join(head) == "worker in flight calls made calls per s of all calls lag ms deaths"
    assert first == ["1", "40", "12,345", "612.3", "50%", "4.2", "1"]
    assert second[0] == "2"
    far = replace(counts, name="w001-e1", host="node-7", calls_per_s=0.0)
    there = replace(status, workers=(asdict(far),))
    assert "w001-e1 on node-7  " in there.as_text()
    assert json.loads(status.as_json())["workers"][0] == asdict(counts)


# ── files ────────────────────────────────────────────────────────────────────────────────────


def test_rows_that_wait_in_the_journal_are_told(tmp_path):
    status = status_of(killed(tmp_path, *made.answered(1), *made.refused(2)))
    assert status.waiting == {"trials": 2, "grades": 4, "attempts": 2, "lanes": 0, "skipped": 0, "steps": 0}
    assert (status.files.parts, status.files.segments) == (0, 1)
    assert "holds 2 trials and 2 calls more" in status.as_text()


def test_a_sealed_folder_has_parts_and_an_empty_journal(tmp_path):
    status = status_of(folder_of(tmp_path, *made.answered(1)))
    assert (status.files.parts, status.files.segments, status.files.leftovers) == (3, 0, ())
    assert status.waiting == {"trials": 0, "grades": 0, "attempts": 0, "lanes": 0, "skipped": 0, "steps": 0}
    assert "journal" not in status.as_text()


def test_answers_that_nobody_graded_yet_are_told(tmp_path):
    asked = made.trial(1)
    status = status_of(killed(tmp_path, made.sent(asked), made.ended(asked, made.reply(1))))
    assert status.ungraded == 1
    assert "1 answers are not graded. The next run grades those that its sweep still asks" in status.as_text()


def test_damaged_lines_are_told_before_and_after_they_are_set_aside(tmp_path):
    killed(tmp_path, *made.answered(1))
    (segment,) = (tmp_path / "journal").glob("*.wal")
    segment.write_bytes(segment.read_bytes() + b"00000000 {}\n")
    status = status_of(tmp_path)
    assert (status.damaged_lines, status.quarantined_lines) == (1, 0)
    verified = asyncbench_here("status", tmp_path, "--verify")
    assert (verified.returncode, verified.stderr) == (5, "")  # not: --verify names them
    Store.open(tmp_path, sweep="night").close()
    status = status_of(tmp_path)
    assert (status.damaged_lines, status.quarantined_lines) == (0, 1)
    assert "1 damaged lines of earlier journals are kept in quarantine/." in status.as_text()


def test_what_a_dead_process_left_is_told_and_gone_after_the_next_run(tmp_path):
    killed(tmp_path, *made.answered(1))
    half = tmp_path / ".tmp" / "trials" / "part.partial"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    status = status_of(tmp_path)
    assert status.files.leftovers[0] == ".tmp/trials/part.partial"
    assert status.files.leftovers[1].startswith("journal/")
    assert "Unfinished files: .tmp/trials/part.partial, journal/" in status.as_text()
    Store.open(tmp_path, sweep="night").close()
    assert status_of(tmp_path).files.leftovers == ()


def test_a_process_that_writes_is_named_and_what_it_has_open_is_no_leftover(tmp_path):
    with Store.open(tmp_path, sweep="night") as store:
        made.keep(store, *made.answered(1))
        status = status_of(tmp_path)
    assert (status.files.writer, status.files.leftovers) == (os.getpid(), ())
    assert f"process {os.getpid()} is writing to it" in status.as_text()
    assert status_of(tmp_path).files.writer is None


def test_changes_of_one_moment_are_told_in_the_order_in_which_they_were_made(tmp_path):
    at = "2026-11-28T04:25:36.689+00:00 root (process 1): "
    folder = tmp_path / "night"
    made.add(folder, replace(made.minute(), changes=(f"{at}rpm 120", f"{at}resume")))

    assert [change.what for change in status_of(folder).changes] == [f"{at}rpm 120", f"{at}resume"]


def test_status_changes_nothing_in_a_folder(tmp_path):
    killed(tmp_path, *made.answered(1), made.sent(made.trial(2)))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")}
    status_of(tmp_path)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")} == before


def test_looking_for_a_writer_never_keeps_one_out(tmp_path):
    folder_of(tmp_path)
    done = threading.Event()

    def look():
        while not done.is_set():
            writer_of(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(50):
            with locked(tmp_path):
                assert writer_of(tmp_path) is not None
    finally:
        done.set()
        for looker in lookers:
            looker.join()


# ── the command ──────────────────────────────────────────────────────────────────────────────


def test_follow_and_verify_do_not_go_together(tmp_path):
    told = CliRunner().invoke(app, ["status", str(tmp_path), "--follow", "--verify"])
    assert isinstance(told.exception, ConfigError)


def test_following_a_folder_that_nobody_writes_to_shows_it_once(tmp_path):
    told = CliRunner().invoke(app, ["status", str(folder_of(tmp_path, *made.answered(1))), "--follow"])
    assert told.stdout == status_of(tmp_path).as_text() + "\n"


def test_following_goes_on_until_the_writer_lets_go(tmp_path):
    store = Store.open(tmp_path, sweep="night")
    store.write_manifest(PLAN)
    done = []
    for status in followed(tmp_path, every_s=0.001):
        done.append(status.models[0].done)
        if len(done) < 4:
            made.keep(store, *made.answered(len(done)))
        else:
            store.close()
    assert done == [0, 1, 2, 3, 3]


def test_a_line_at_a_time_is_shown_where_there_is_no_terminal(tmp_path):
    store, out = Store.open(tmp_path, sweep="night"), io.StringIO()
    store.write_manifest(PLAN)
    made.keep(store, *made.answered(1))
    closing = threading.Thread(target=_when, args=(lambda: "\n" in out.getvalue(), store.close))
    closing.start()
    follow_status(tmp_path, out, every_s=0.001)
    closing.join()
    first, *_ = out.getvalue().splitlines()
    assert first.endswith("small 1/10, 0 in flight, $0.2500")
    assert out.getvalue().endswith(status_of(tmp_path).as_text() + "\n")


def test_a_terminal_is_redrawn(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    folder_of(tmp_path, *made.answered(1))
    out = Terminal()
    follow_status(tmp_path, out)
    assert "small" in out.getvalue()


def _when(condition, act):
    for _ in range(2000):
        if condition():
            break
        time.sleep(0.005)
    act()


@pytest.mark.long
def test_a_run_in_another_process_is_followed_to_its_end(tmp_path):
    problems, out = problem_set(tmp_path, trials=1), tmp_path / "out"
    with simulator(problems, latency_s=0.2) as server:
        asked = sweep(out, problems, entry(server, "simulated/oracle", concurrency=12))
        run = Forked("asyncbench", "run", _file(tmp_path, asked), "--quiet")
        _when(lambda: writer_of(out) is not None, lambda: None)
        following = asyncbench("status", out, "--follow", "--json")
        assert (following.returncode, run.wait()) == (0, 0)
    *during, last = map(json.loads, following.stdout.splitlines())
    assert all(one["files"]["writer"] == run.pid for one in during)
    assert (last["files"]["writer"], last["models"][0]["done"]) == (None, 72)


def _file(folder, asked):
    import yaml

    from asyncbench.config.sweep import as_mapping

    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(as_mapping(asked)))
    return path
