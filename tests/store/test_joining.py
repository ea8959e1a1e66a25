"""Folders of workers become part of that of their run, whatever happens meanwhile."""

import os
import shutil
from pathlib import Path

import pytest

from asyncbench.errors import ConfigError, StoreError
from asyncbench.records import Event, History
from asyncbench.store import generation
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import known_trials, read_attempts, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import WORKERS, worker_folders, worker_hosts
from asyncbench.store.reading import take_snapshot
from asyncbench.store.verify import verify_folder
from tests.store.disk import quick_disk as quick_disk
from tests.store.dying import CHANGES, MOVES, killed_copies, outlives, start
from tests.store.fleets import (
    SWEEP,
    call,
    closed,
    mixed,
    told,
    unclosed,
    unended,
    worker,
    write,
    write_and_die,
)
from tests.store.made import compacted, folder_of, keep, minute, skipped, trial, trial_id


def join(folder: Path) -> None:
    Store.open(folder, sweep=SWEEP).close()


def join_by_renames(folder: Path) -> None:
    generation.exchanged = lambda *_: False  # this process does nothing else
    join(folder)


SAME = {  # columns that no recovery changes, nor a join; of calls those that tell which it is
    "trials": ["trial_id", "outcome", "attempts", "cost_usd", "finished_at"],
    "grades": ["trial_id", "grader", "outcome"],
    "attempts": ["trial_id", "started_at", "worker", "cost_usd"],
    "lanes": ["lane", "started_at", "requests"],
    "skipped": ["trial_id", "rule", "asked"],
    "steps": ["load"],
}


def rows_and_money(folder: Path) -> object:
    """Return what must be the same at any moment: what is answered and open, and what may have been spent.

    Calls that dead processes had in flight are lost, whether or not somebody has written that down by now.
    """
    seen = take_snapshot(folder).ended()
    rows = {name: sorted(map(repr, seen.read(name, columns).to_pylist())) for name, columns in SAME.items()}
    ungraded = {trial_id: ended.attempt.started_at for trial_id, ended in seen.unfinished.replies.items()}
    charges = spending_of(folder).charges("sweep", SWEEP)
    return rows, ungraded, charges.charged + charges.reserved


@pytest.mark.long
def test_joined_folders_hold_what_one_process_would_have_written(tmp_path):
    shares: dict[str | None, list[Event]] = {
        None: [skipped(9), minute("large"), *closed(8, 80)],
        "w001-e1": [*closed(1, 10), *closed(2, 20), minute("small")],
        "w002-e1": [*closed(3, 30), *unclosed(closed(4, 40))],
        "w002-e2": [*unended(closed(5, 50))],
    }
    for name, events in shares.items():
        write_and_die(tmp_path / "fleet", name, *events)
    alone = folder_of(tmp_path / "alone", *(event for share in shares.values() for event in share))
    join(tmp_path / "fleet")
    join(alone)

    assert told(tmp_path / "fleet") == told(alone)
    assert not (tmp_path / "fleet" / WORKERS).exists()
    assert verify_folder(tmp_path / "fleet").sound
    assert verify_folder(tmp_path / "fleet").rows == verify_folder(alone).rows


@pytest.mark.long
def test_a_join_changes_nothing_that_readers_tell(tmp_path):
    mixed(tmp_path)
    before = rows_and_money(tmp_path)
    join(tmp_path)
    assert rows_and_money(tmp_path) == before
    assert verify_folder(tmp_path).sound
    assert {path.name for path in tmp_path.iterdir()}.isdisjoint({WORKERS, ".tmp"})
    rows = {row["trial_id"]: row["attempts"] for row in read_trials(tmp_path).to_pylist()}
    calls = read_attempts(tmp_path, ["trial_id", "attempt"]).group_by("trial_id")
    made = {
        row["trial_id"]: row["attempt_list"] for row in calls.aggregate([("attempt", "list")]).to_pylist()
    }
    for trial_id_, attempts in rows.items():
        assert sorted(made[trial_id_]) == [*range(1, attempts + 1)]


def test_parts_in_which_every_row_counts_are_not_copied(tmp_path):
    write(tmp_path, None)
    write(tmp_path, "w001-e1", *closed(1, 10))
    (part,) = (tmp_path / WORKERS).rglob("trials/**/*.parquet")
    inode = part.stat().st_ino
    join(tmp_path)
    (joined,) = take_snapshot(tmp_path).files["trials"]
    assert joined.stat().st_ino == inode


def test_the_machines_of_workers_are_known_afterwards(tmp_path):
    write(tmp_path, None)
    names = ("w001-e1", "w001-e2", "w002-e2")
    for name in names:
        write(tmp_path, name, minute(name))
    before = worker_hosts(tmp_path)
    join(tmp_path)
    assert worker_hosts(tmp_path) == before == dict.fromkeys(names, os.uname().nodename)


@pytest.mark.long
def test_what_is_left_of_a_joined_folder_counts_no_more(tmp_path):
    """Say, in a bucket, where nobody has removed it; its name is not used again."""
    write(tmp_path, None)
    write(tmp_path, "w001-e1", *closed(1, 10), minute("small"))
    copy = shutil.copytree(tmp_path / WORKERS, tmp_path.with_name("copy"))
    join(tmp_path)
    before = told(tmp_path)
    shutil.copytree(copy, tmp_path / WORKERS)

    assert worker_folders(tmp_path) == []
    assert told(tmp_path) == before
    join(tmp_path)
    assert not (tmp_path / WORKERS).exists()
    assert told(tmp_path) == before
    with pytest.raises(ConfigError, match="Use a new name for it"):
        worker(tmp_path, "w001-e1")


@pytest.mark.long
def test_a_folder_opens_only_when_no_worker_writes_any_more(tmp_path):
    write(tmp_path, None)
    write(tmp_path, "w001-e1", *closed(1, 10))
    with worker(tmp_path, "w002-e1") as living:
        keep(living, *closed(2, 20))
        with pytest.raises(StoreError, match=rf"process {os.getpid()} is writing to .*w002-e1"):
            Store.open(tmp_path, sweep=SWEEP)
        assert known_trials(tmp_path).finished == {trial_id(1), trial_id(2)}
    join(tmp_path)
    assert known_trials(tmp_path).finished == {trial_id(1), trial_id(2)}
    assert worker_folders(tmp_path) == []


@pytest.mark.long
def test_a_run_joins_at_its_end_the_workers_that_have_ended(tmp_path):
    with Store.open(tmp_path, sweep=SWEEP) as store:
        write(tmp_path, "w001-e1", *closed(1, 10))
        living = worker(tmp_path, "w002-e1")
        keep(living, *closed(2, 20))
        keep(store, *closed(3, 30))
    assert [path.name for path in worker_folders(tmp_path)] == ["w002-e1"]
    assert known_trials(tmp_path).finished == {trial_id(n) for n in (1, 2, 3)}
    keep(living, *closed(4, 40))
    living.close()
    join(tmp_path)
    assert known_trials(tmp_path).finished == {trial_id(n) for n in (1, 2, 3, 4)}
    assert verify_folder(tmp_path).sound


@pytest.mark.long
def test_a_sweep_goes_on_with_any_other_number_of_workers(tmp_path):
    """What two workers left, among it an answer and a lost call, is taken up by five, then by none."""
    write(tmp_path, None)
    write_and_die(tmp_path, "w001-e1", *closed(1, 10), *unclosed(closed(2, 20)))
    write_and_die(tmp_path, "w002-e1", *unended(closed(3, 30)))
    with Store.open(tmp_path, sweep=SWEEP) as store:
        assert store.finished == {trial_id(1)}
        assert store.histories[trial_id(2)].ended is not None
        assert store.histories[trial_id(3)] == History(attempts=1, cost_usd=None)
        for n in range(1, 6):
            write(tmp_path, f"w00{n}-e2", *closed(10 + n, 100 + n))
        write(tmp_path, "w006-e2", closed(2, 20)[-1])
    with Store.open(tmp_path, sweep=SWEEP) as store:
        assert len(store.finished) == 7
        keep(store, *closed(3, 200, history=store.histories[trial_id(3)]))
    assert verify_folder(tmp_path).sound
    assert len(read_attempts(tmp_path)) == 9


@pytest.mark.long
def test_parts_of_later_segments_have_names_of_their_own(tmp_path):
    with Store.open(tmp_path, sweep=SWEEP) as store:
        for n in range(3):
            write(tmp_path, f"w00{n}-e1", *closed(n, n))
        keep(store, *closed(10, 10))
    for n in range(11, 14):
        write(tmp_path, None, *closed(n, n))
    numbers = [int(path.stem.rpartition("-")[2]) for path in take_snapshot(tmp_path).files["trials"]]
    assert len(set(numbers)) == len(numbers) == 7
    compacted(tmp_path)
    assert len(read_trials(tmp_path)) == 7


def test_damaged_lines_and_what_is_no_result_are_kept(tmp_path):
    write(tmp_path, None)
    write_and_die(tmp_path, "w001-e1", *closed(1, 10))
    (segment,) = (tmp_path / WORKERS).rglob("*.wal")
    with segment.open("ab") as journal:
        journal.write(b"00000000 {}\n")
    (segment.parents[1] / "faults.txt").write_text("Traceback")
    damaged = spending_of(tmp_path).damaged
    join(tmp_path)

    assert spending_of(tmp_path).damaged == damaged == 1
    (lines,) = (tmp_path / "quarantine").glob("*.wal")
    assert lines.read_bytes() == b"00000000 {}\n"
    assert (tmp_path / "w001-e1-faults.txt").read_text() == "Traceback"


@pytest.mark.long
def test_a_lost_part_of_a_worker_is_refused_until_its_loss_is_accepted(tmp_path):
    write(tmp_path, None, *closed(1, 10))
    write(tmp_path, "w001-e1", *closed(2, 20))
    (part,) = (tmp_path / WORKERS).rglob("attempts/**/*.parquet")
    part.unlink()
    with pytest.raises(StoreError, match=r"w001-e1.attempts.*is missing"):
        Store.open(tmp_path, sweep=SWEEP)

    with Store.open(tmp_path, sweep=SWEEP, accept=True) as store:
        assert store.lost == [str(part.relative_to(tmp_path))]
    assert spending_of(tmp_path).charges("sweep", SWEEP).charged == 2 * 250_000_000_000
    Store.open(tmp_path, sweep=SWEEP).close()


def test_calls_that_no_folder_holds_are_missed_once_all_are_joined(tmp_path):
    """The second worker knew of a call of the first, whose folder is gone."""
    write(tmp_path, None)
    write(tmp_path, "w001-e1", *call(trial(1), None, 10))
    write(tmp_path, "w002-e1", *closed(1, 20, history=History(attempts=1, cost_usd=0.25)))
    shutil.rmtree(tmp_path / WORKERS / "w001-e1")
    with pytest.raises(StoreError, match="lacks 1 of the calls that trials count"):
        Store.open(tmp_path, sweep=SWEEP)


@pytest.mark.long
@pytest.mark.parametrize(
    ("work", "changes", "steps"),
    [
        pytest.param(join, CHANGES, (5, 47), id="some"),
        pytest.param(join_by_renames, MOVES, (3, 47), id="some, by renames"),
        *(
            pytest.param(work, changes, (n, 10), marks=pytest.mark.soak, id=f"{name}, every tenth from {n}")
            for n in range(1, 11)
            for name, work, changes in (("all", join, CHANGES), ("by renames", join_by_renames, MOVES))
        ),
    ],
)
def test_killed_before_any_step_of_a_join_the_folder_tells_the_same(quick_disk, work, changes, steps):
    mixed(quick_disk / "alive")
    before = rows_and_money(quick_disk / "alive")
    for step, copy in killed_copies(quick_disk / "alive", work, *steps, changes=changes):
        assert rows_and_money(copy) == before
        if step % 3 == 0:
            outlives(1 + step % 60, work, copy)  # killed in the recovery, too
            assert rows_and_money(copy) == before
        join(copy)
        assert rows_and_money(copy) == before
        assert verify_folder(copy).sound
        assert {path.name for path in copy.iterdir()}.isdisjoint({WORKERS, ".tmp"})
        shutil.rmtree(copy)


@pytest.mark.long
def test_a_folder_that_is_being_joined_is_read_as_it_was(quick_disk):
    """Another process joins, again and again with one worker more, while this one reads."""
    folder = quick_disk / "night"
    write(folder, None)
    for n in range(12):
        write(folder, f"w{n:03d}-e1", *closed(n, n), *closed(n + 100, n))
        joining = start(join, folder)
        while joining.is_alive():
            assert len(read_trials(folder)) == 2 * (n + 1)
        joining.join()
        assert joining.exitcode == 0
        assert len(read_attempts(folder)) == 2 * (n + 1)
