"""Snapshots of folders that change, fail or are not counted yet."""

import gzip
import shutil
from contextlib import contextmanager
from dataclasses import replace

import orjson
import pytest

from asyncbench.analysis import kept
from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.entrants import asked_in
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.live import counting, counting as running, snapshots
from asyncbench.page.live.counting import CountedBlock, LiveCounts, progress_of, run_figures
from asyncbench.page.live.snapshots import LiveMemory, NotCountedError, take_live_snapshot
from asyncbench.page.live.trials import TrialQuery
from asyncbench.reports.status.report import status_of
from asyncbench.store.folder import Store
from tests.page.live.test_following import keep
from tests.page.made import events, problems_of, trial_of
from tests.processes import until
from tests.store import made
from tests.store.made import AT

pytestmark = pytest.mark.long


@pytest.fixture
def sweep(tmp_path):
    folder = tmp_path / "night"
    with Store.open(folder, sweep="night") as store:
        problems = [*problems_of(folder)]
        keep(store, problems, first=0, trials=20)
        yield folder, store, problems


@contextmanager
def counts(folder, **pauses):
    found = LiveCounts(chosen(folder), **{"every_s": 0.05, "again_s": 1e6} | pauses)
    with found.run():
        yield found


def trials_in(counts):
    head = counts.block("head", 60)
    return orjson.loads(gzip.decompress(head.content))["trials_in_all"]


def is_done(counts):
    return not counts.shares() and counts.snapshot.examined is not None


def test_what_is_written_just_after_the_first_snapshot_is_counted_too(sweep, monkeypatch):
    folder, *into = sweep

    def take_late(memory):
        monkeypatch.undo()
        snapshot = take_live_snapshot(memory)
        keep(*into, first=20, trials=5)
        return snapshot

    monkeypatch.setattr(counting, "take_live_snapshot", take_late)
    with counts(folder, less_often=0.0) as found:
        until(lambda: trials_in(found) == 25)


def test_a_folder_that_moved_is_counted_at_once(sweep):
    folder, *into = sweep
    with counts(folder, less_often=1e6) as found:
        until(lambda: is_done(found))
        assert trials_in(found) == 20
        keep(*into, first=20, trials=5)
        found.recount()
        until(lambda: trials_in(found) == 25)


def test_a_folder_keeps_the_blocks_that_were_counted(tmp_path, night, monkeypatch):
    monkeypatch.setattr(kept, "LEAST", 1)
    folder, found = shutil.copytree(night, tmp_path / "night"), []
    for _ in range(2):
        with counts(folder) as counting_now:
            until(lambda: is_done(counting_now))
            found.append({name: counting_now.blocks[name].content for name in BLOCKS if name != "head"})
        monkeypatch.setattr(counting, "BLOCKS", dict.fromkeys(BLOCKS, BLOCKS["head"]))
    assert found[0] == found[1]


def test_a_snapshot_that_failed_is_tried_again(tmp_path, night):
    folder = shutil.copytree(night, tmp_path / "night")
    part = next(folder.glob("trials/**/*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with counts(folder, less_often=0.0, again_s=0.0) as found:
        until(lambda: found.trouble)
        part.write_bytes(whole)
        until(lambda: isinstance(found.block("head", 60), CountedBlock))
        until(lambda: not found.trouble)


def test_a_snapshot_tells_what_it_has_not_counted_and_leaves_no_model_out(sweep, monkeypatch):
    folder, store, problems = sweep
    keep(store, problems[:1], first=100, trials=6)
    keep(store, problems[:1], first=200, trials=2, model="small")
    snapshot = take_live_snapshot(LiveMemory(chosen(folder)))
    with snapshot.views() as views:
        snapshot.read_index(views, asked_in(views))
    for query in (TrialQuery(error="carry"), TrialQuery(disagree=True)):
        with pytest.raises(NotCountedError):
            snapshot.trials(query)
    monkeypatch.setattr(snapshots, "MOST_OF_A_QUESTION", 4)
    found = snapshot.question(problems[0].problem_id)
    assert (found["of"], [trial["asked"] for trial in found["trials"]]) == (9, [0, 0, 1, 1])


def test_a_click_needs_no_connection_to_duckdb(night, monkeypatch):
    snapshot = take_live_snapshot(LiveMemory(chosen(night)))
    with snapshot.views() as views:
        snapshot.read_index(views, asked_in(views))
    monkeypatch.setattr("duckdb.connect", None)
    monkeypatch.setattr(snapshots, "MOST_PROBLEMS", 1)
    (row, *_) = snapshot.trials(TrialQuery(outcome=("wrong",)))["rows"]
    assert (snapshot.trial(row["id"]) or {})["grades"]
    assert snapshot.question(row["question"])["of"] == 4
    assert len(snapshot._problems) == 1


def test_a_trial_that_two_workers_answered_is_found_and_opened_once(sweep):
    """One was told that the other had died, though it had not."""
    folder, _, problems = sweep
    asked = trial_of(100, problems[0], model="large")
    for name, text, at in (("w001-e1", "137", AT), ("w002-e1", "731", AT + 9)):
        made.add(folder / "workers" / name, *events(asked, text, at=at))
    snapshot = take_live_snapshot(LiveMemory(chosen(folder)))
    with snapshot.views() as views:
        snapshot.read_index(views, asked_in(views))
        found = snapshot.trials(TrialQuery(outcome=("wrong",)))
        assert (found["found"], found["of"]) == (0, 21)
        snapshot.read_grades()
    found = snapshot.question(problems[0].problem_id)
    opened = next(trial for trial in found["trials"] if trial["id"] == asked.trial_id)
    assert (found["of"], [grade["answer"] for grade in opened["grades"]]) == (2, ["137"] * 3)
    assert ["attempts", "2"] in opened["facts"]


def test_a_lane_of_several_folders_has_what_its_last_minute_tells(night, simulated, monkeypatch):
    lanes = ({"lane": "large", "in_flight": 1, "limited_by": ""},)  # as a run in another process tells them
    monkeypatch.setattr(running, "status_of", lambda path: replace(status_of(path), lanes=lanes))
    of = chosen([night, simulated])
    found = progress_of(of, counted(of, run_figures))["lanes"]
    assert [lane["lane"] for lane in found] == ["large in night", "large in rehearsal"]
    assert all(lane["calls_per_minute"] for lane in found)
