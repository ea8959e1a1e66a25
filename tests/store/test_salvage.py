"""A disk that fails in mid-run: nothing new is begun, what came is kept as far as it goes, and it is told."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
import yaml

from asyncbench.errors import StoreError, UnwrittenError
from asyncbench.records import Ended
from asyncbench.store.catalog import read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.salvage import Salvage
from asyncbench.store.segment import payloads
from tests.commands import asyncbench, succeeded
from tests.processes import HANG_S
from tests.store.disk import disk_for, limited, small_disk
from tests.store.made import answered, ended, keep, reply, result, sent, trial, trial_id
from tests.sweep_files import entry, outcomes, problem_set, simulator


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "night", sweep="night")
    yield store
    with suppress(StoreError):
        store.close()


def test_a_disk_that_fails_stops_the_run_once_and_no_call_is_begun_after_it(store):
    salvage, stopped = Salvage(store), list[StoreError]()
    salvage.stop = stopped.append
    salvage.keep(sent(trial(1)))
    with disk_for(20):
        salvage.keep(ended(trial(1), reply(1)))
        with pytest.raises(UnwrittenError, match=r"000001\.wal could not be written"):
            salvage.keep(sent(trial(2)))
    with pytest.raises(UnwrittenError):  # there is room again, but what comes next is for another run
        salvage.keep(sent(trial(3)))
    assert len(stopped) == 1


def test_what_came_while_the_disk_was_full_is_saved_when_there_is_room_again(store):
    salvage = Salvage(store)
    salvage.keep(sent(trial(1)))
    with disk_for(20):
        salvage.keep(ended(trial(1), reply(1)))
        assert salvage.unsaved == 1
    salvage.keep(result(trial(1), reply(1)))
    assert salvage.unsaved == 0
    with pytest.raises(StoreError, match=r"000001\.wal could not be written.*0 answers are unsaved"):
        salvage.close()
    assert read_trials(store.folder)["trial_id"].to_pylist() == [trial_id(1)]
    assert read_attempts(store.folder)["status"].to_pylist() == ["ok"]


def test_answers_that_could_not_be_saved_are_counted_and_all_before_them_kept(store):
    salvage = Salvage(store)
    for event in answered(1):
        salvage.keep(event)
    for n in (2, 3):
        salvage.keep(sent(trial(n)))
    with disk_for(20):
        for n in (2, 3):
            salvage.keep(ended(trial(n), reply(n)))
            salvage.keep(result(trial(n), reply(n)))
        with pytest.raises(StoreError, match=r"000001\.wal could not.*2 answers.*unsaved\. Run again to ask"):
            salvage.close()
    with Store.open(store.folder, sweep="night") as again:
        assert again.finished == {trial_id(1)}
    assert Counter(read_attempts(store.folder)["status"].to_pylist()) == {"lost": 2, "ok": 1}


async def test_a_part_that_does_not_fit_stops_the_run_and_the_journal_goes_on(store):
    salvage, stopped = Salvage(store), asyncio.Event()
    salvage.stop = lambda _: stopped.set()
    keep(store, *answered(1), sent(trial(2)))
    store.journal.results = 10**6  # as if a night's results were waiting
    shutil.rmtree(store.folder / "trials", ignore_errors=True)
    (store.folder / "trials").write_text("in the way")
    tending = asyncio.create_task(salvage.tend())
    async with asyncio.timeout(HANG_S):
        await stopped.wait()
    salvage.keep(ended(trial(2), reply(2)))
    tending.cancel()
    (store.folder / "trials").unlink()
    with pytest.raises(StoreError, match=r"could not be written.*0 answers are unsaved"):
        await asyncio.to_thread(salvage.close)
    with Store.open(store.folder, sweep="night") as again:
        assert again.finished == {trial_id(1)}
        assert again.histories[trial_id(2)].ended == ended(trial(2), reply(2))


async def test_a_journal_that_somebody_removes_stops_the_run(store):
    salvage, stopped = Salvage(store), asyncio.Event()
    salvage.stop = lambda _: stopped.set()
    keep(store, *answered(1))
    store.journal.segment.path.unlink()
    tending = asyncio.create_task(salvage.tend())
    async with asyncio.timeout(HANG_S):
        await stopped.wait()
    tending.cancel()
    assert "another program removed files of this run" in str(salvage.error)


def test_a_store_without_room_for_the_reserve_does_without(tmp_path):
    with disk_for(1000):
        salvage = Salvage(Store.open(tmp_path, sweep="night"))
        salvage.keep(sent(trial(1)))
        assert not (tmp_path / ".tmp" / "reserve").exists()
        salvage.close()


def test_a_process_that_may_open_no_more_files_loses_nothing(store):
    salvage = Salvage(store)
    for event in answered(1):
        salvage.keep(event)
    os.close(lowest_free := os.open(os.devnull, os.O_RDONLY))
    with limited(resource.RLIMIT_NOFILE, lowest_free):
        for event in answered(2):
            salvage.keep(event)
        with pytest.raises(
            StoreError, match=r"could not be written: .*Too many open files.*0 answers are uns"
        ):
            salvage.close()
    with Store.open(store.folder, sweep="night") as again:
        assert again.finished == {trial_id(1), trial_id(2)}


# a real run, in its own process


def swept(tmp_path, server, out, **keys):
    """Write a sweep file; return it and the problems' number."""
    problems = problem_set(tmp_path, trials=12)
    model = entry(server, "simulated-http/noisy", concurrency=20, **keys)
    file = tmp_path / "sweep.yaml"
    given = {"name": "s", "problems": [str(problems)], "models": [model], "out": str(out)}
    file.write_text(yaml.safe_dump(given))
    return file, 12 * 72


def command(file):
    return [sys.executable, "-m", "asyncbench", "run", str(file), "--quiet"]


def ended_of(line):
    """What became of a command."""
    return subprocess.run(line, capture_output=True, text=True, check=False)


def check_stopped(ran, out, delivered):
    """The run ended by itself with exit code 5; all that came and was not told to be unsaved is there."""
    assert ran.returncode == 5, ran.stderr
    assert "could not be written" in ran.stderr
    assert "unsaved" in ran.stderr
    said = ran.stderr.partition(" answers")[0].rpartition(" ")[2].replace(",", "")
    told = read_attempts(out, ["status"])["status"].to_pylist()
    assert told.count("ok") + int(said) == delivered
    assert "Traceback" not in ran.stderr


@pytest.mark.long
def test_a_full_file_system_ends_the_run_with_code_5_and_the_next_run_goes_on(tmp_path):
    with small_disk(tmp_path / "disk", kilobytes=900) as disk:
        out = disk / "out"
        with simulator(problem_set(tmp_path, trials=12), latency_s=0.02) as server:
            file, planned = swept(tmp_path, server, out)
            ran = asyncbench("run", file, "--quiet")
            check_stopped(ran, out, server.stats()["delivered"])
            before = len(outcomes(out))
            assert 0 < before < planned
            assert ended_of(["mount", "-o", "remount,size=20m", str(disk)]).returncode == 0
            ran = succeeded(asyncbench("run", file, "--quiet"))
        assert len(outcomes(out)) == planned


@pytest.mark.long
def test_the_systems_limit_on_a_file_ends_the_run_with_code_5_and_the_next_run_goes_on(tmp_path):
    out = tmp_path / "out"
    with simulator(problem_set(tmp_path, trials=12), latency_s=0.02) as server:
        file, planned = swept(tmp_path, server, out)
        limit = f"ulimit -f 400; exec {' '.join(command(file))}"
        ran = ended_of(["bash", "-c", limit])
        check_stopped(ran, out, server.stats()["delivered"])
        ran = succeeded(asyncbench("run", file, "--quiet"))
    assert len(outcomes(out)) == planned


# another program takes files away while a run writes


def run_meanwhile(file, out, change):
    """Run a sweep and change its folder when some answers are in the journal; return what the run came to."""
    with subprocess.Popen(command(file), stderr=subprocess.PIPE, text=True) as running:
        while not any(path.stat().st_size > 60_000 for path in (out / "journal").glob("*.wal")):
            assert running.poll() is None
            time.sleep(0.01)
        change()
        _, stderr = running.communicate(timeout=HANG_S)
        return subprocess.CompletedProcess([], running.returncode, "", stderr)


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [["journal"], ["manifest.json"], [".lock"], ["journal", "manifest.json", "sweep.yaml", ".lock"]],
    ids="+".join,
)
def test_what_is_removed_while_a_run_writes_is_back_and_no_answer_is_missing(tmp_path, names):
    out = tmp_path / "out"

    def remove():
        for name in names:
            path = out / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    with simulator(problem_set(tmp_path, trials=12), latency_s=0.2) as server:
        file, planned = swept(tmp_path, server, out)
        ran = run_meanwhile(file, out, remove)
        assert ran.returncode == 5, ran.stderr
        assert "another program removed files of this run, and asyncbench put them back" in ran.stderr
        assert "0 answers are unsaved" in ran.stderr
        assert "Traceback" not in ran.stderr
        told = read_attempts(out, ["status"])["status"].to_pylist()
        assert told.count("ok") == server.stats()["delivered"]
        ran = succeeded(asyncbench("run", file, "--quiet"))
    assert len(outcomes(out)) == planned


@pytest.mark.long
@pytest.mark.parametrize("change", ["cut", "move", "remove all"])
def test_what_cannot_be_put_back_is_told(tmp_path, change):
    out = tmp_path / "out"

    def take():
        match change:
            case "cut":
                (segment,) = (out / "journal").iterdir()
                os.truncate(segment, 0)
            case "move":
                out.rename(tmp_path / "moved")
            case "remove all":
                shutil.rmtree(out, ignore_errors=True)  # the run puts back while it removes

    with simulator(problem_set(tmp_path, trials=12), latency_s=0.2) as server:
        file, _ = swept(tmp_path, server, out)
        ran = run_meanwhile(file, out, take)
        assert ran.returncode == 5, ran.stderr
        assert "another program " in ran.stderr
        assert "Traceback" not in ran.stderr
        delivered = server.stats()["delivered"]
    if change == "cut":
        assert "all that arrived" not in ran.stderr
    else:
        folder = tmp_path / "moved" if change == "move" else out
        told = read_attempts(folder, ["status"])["status"].to_pylist()
        assert told.count("ok") == delivered


# an answer and its grade: one call of the system


def graded_next(n):
    """The events of a trial that is graded as soon as its answer came."""
    begun, answer, closed = answered(n)
    assert isinstance(answer, Ended)
    return begun, replace(answer, graded_next=True), closed


def lines_of(store):
    return [payload[:9] for payload in payloads(store.journal.segment.path, [])]


def test_an_answer_that_is_graded_at_once_is_written_with_its_grade(store):
    salvage, (begun, answer, closed) = Salvage(store), graded_next(1)
    salvage.keep(begun)
    salvage.keep(answer)
    assert lines_of(store) == [b'{"sent":{']
    assert salvage.unsaved == 1
    salvage.keep(closed)
    assert lines_of(store) == [b'{"sent":{', b'{"attempt', b'{"trial":']
    assert salvage.unsaved == 0


def test_an_answer_is_written_with_whatever_comes_next_even_if_that_is_the_end(store):
    salvage, (begun, answer, _) = Salvage(store), graded_next(1)
    for event in (begun, answer, sent(trial(2))):
        salvage.keep(event)
    assert lines_of(store) == [b'{"sent":{', b'{"attempt', b'{"sent":{']
    salvage.keep(graded_next(2)[1])
    salvage.close()
    with Store.open(store.folder, sweep="night") as again:
        assert set(again.histories) == {trial_id(1), trial_id(2)}
        assert all(history.ended for history in again.histories.values())


def test_when_the_disk_takes_an_answer_but_not_its_grade_both_are_kept_once(store):
    salvage, (begun, answer, closed) = Salvage(store), graded_next(1)
    for n in (3, 4):
        for event in answered(n):
            salvage.keep(event)
    salvage.keep(begun)
    before = store.journal.segment.size
    with Store.open(store.folder.with_name("other"), sweep="night") as other:
        start = other.journal.segment.size
        keep(other, answer)
        long = other.journal.segment.size - start
    salvage.keep(answer)
    with disk_for(before + long + 20):
        salvage.keep(closed)
    assert salvage.unsaved == 0
    with pytest.raises(StoreError, match="0 answers are unsaved"):
        salvage.close()
    with Store.open(store.folder, sweep="night") as again:
        assert again.finished == {trial_id(n) for n in (1, 3, 4)}
    assert read_attempts(store.folder)["status"].to_pylist() == ["ok"] * 3


def test_a_call_that_cannot_be_written_with_an_answer_is_not_begun_and_the_answer_waits(store):
    salvage, (begun, answer, closed) = Salvage(store), graded_next(1)
    salvage.keep(begun)
    salvage.keep(answer)
    with disk_for(20), pytest.raises(UnwrittenError):
        salvage.keep(sent(trial(2)))
    assert salvage.unsaved == 1
    salvage.keep(closed)
    with pytest.raises(StoreError, match="0 answers are unsaved"):
        salvage.close()
    assert read_attempts(store.folder)["status"].to_pylist() == ["ok"]
