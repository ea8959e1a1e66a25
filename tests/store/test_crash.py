"""Killed at any step and at any moment, a run loses nothing, doubles nothing and invents nothing."""

import random
import shutil
from collections import Counter, defaultdict

import pytest

from asyncbench.store.catalog import known_trials, read_attempts, read_grades, read_skipped, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.holdings import list_journal
from asyncbench.store.segment import segments
from asyncbench.store.verify import verify_folder
from tests.store import night
from tests.store.dying import killed_copies, outlives, start
from tests.store.made import answered, ended, keep, reply, sent, trial, trial_id

CLOSED = {0: "correct", 1: "correct", 2: "correct", 3: "failed"}
CALLS = {(0, 1): "overloaded", (0, 2): "ok", (1, 1): "ok", (2, 1): "ok", (3, 1): "overloaded"}
CALLS |= {(4, 1): "overloaded", (5, 1): "lost", (6, 1): "ok"}


@pytest.fixture
def folder(tmp_path):
    """What a run left behind that was killed: earlier parts, and a segment with all there can be in it."""
    night.before(tmp_path / "alive")
    with Store.open(tmp_path / "alive", sweep="night", again=night.AGAIN) as store:
        night.interrupted(store)
        return shutil.copytree(store.folder, tmp_path / "killed")


def trials(folder):
    return {
        int(row["trial_id"], 16): row["outcome"]
        for row in once(read_trials(folder, ["trial_id", "outcome"]), "trial_id")
    }


def calls(folder):
    rows = once(read_attempts(folder, ["trial_id", "attempt", "status"]), "trial_id", "attempt")
    return {(int(row["trial_id"], 16), row["attempt"]): row["status"] for row in rows}


def once(table, *keys):
    """The rows of a table, each of which must be the only one of its key."""
    rows = table.to_pylist()
    assert set(Counter(tuple(row[key] for key in keys) for row in rows).values()) <= {1}
    return rows


def check(folder):
    """The folder tells the same whatever became of it, but for calls that nobody has called lost yet."""
    assert trials(folder) == CLOSED
    assert calls(folder) | {(5, 1): "lost"} == CALLS
    graders = [(row["trial_id"], row["grader"]) for row in read_grades(folder).to_pylist()]
    assert sorted(graders) == sorted((trial_id(n), g) for n in CLOSED for g in ("number", "lenient"))
    assert sorted(map(str, read_skipped(folder)["trial_id"].to_pylist())) == [trial_id(8), trial_id(9)]
    assert known_trials(folder).histories[trial_id(6)].ended == ended(trial(6), reply(6))


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_before_any_step_of_recovering_and_sealing_the_folder_tells_the_same(folder, each):
    for _, copy in killed_copies(folder, night.recover, 1, each):
        check(copy)
        night.recover(copy)
        check(copy)
        assert calls(copy) == CALLS


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_while_recovering_from_being_killed_the_folder_tells_the_same(folder, seed):
    rng = random.Random(seed)
    for _ in range(5):
        outlives(rng.randrange(2, 15), night.recover, folder)
        check(folder)
    night.recover(folder)
    check(folder)
    assert calls(folder) == CALLS


@pytest.mark.long
def test_a_run_killed_at_any_moment_again_and_again_ends_complete(tmp_path):
    rng, folder, kills = random.Random(1), tmp_path / "night", 0
    while not outlived(folder, seconds=rng.uniform(0.1, 0.5) + kills / 20):
        kills += 1
        if (folder / "told").exists():
            assert set((folder / "told").read_text().split()) <= set(
                read_trials(folder)["trial_id"].to_pylist()
            )
    assert kills
    assert trials(folder) == dict.fromkeys(night.TRIALS, "correct")
    assert all(history in HISTORIES for history in by_trial(calls(folder)).values())


# lost calls may come first; a reply that came is never asked for again
HISTORIES = [["lost"] * lost + ["ok"] for lost in range(40)]


def by_trial(statuses):
    found = defaultdict(list)
    for (n, attempt), status in sorted(statuses.items()):
        found[n].append(status)
        assert len(found[n]) == attempt
    return found


def outlived(folder, *, seconds):
    """Let a run go on for a while, then kill it; return whether it was done before."""
    process = start(night.run, folder)
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode == 0


@pytest.mark.parametrize(
    ("gone", "reserved_usd"), [([b'{"attempt"'], None), ([b'{"sent"', b'{"attempt"'], 0.25)]
)
def test_a_call_whose_end_the_disk_lost_is_taken_for_lost_at_its_trials_cost(tmp_path, gone, reserved_usd):
    with Store.open(tmp_path / "alive", sweep="night") as store:
        keep(store, *answered(1))
        folder = shutil.copytree(store.folder, tmp_path / "cut")
    (segment,) = segments(folder / "journal")
    lines = segment.read_bytes().splitlines()
    kept = [bytes(len(line)) if any(start in line for start in gone) else line for line in lines]
    segment.write_bytes(b"\n".join([*kept, b""]))
    night.recover(folder)
    assert trials(folder) == {1: "correct"}
    assert calls(folder) == {(1, 1): "lost"}
    assert read_attempts(folder)["reserved_usd"].to_pylist() == [
        reserved_usd
    ]  # a start without one told none
    assert verify_folder(folder).sound


def test_a_call_that_was_carried_is_whole_though_the_segment_before_never_reached_the_disk(tmp_path):
    with Store.open(tmp_path / "alive", sweep="night") as store:
        keep(store, sent(trial(1)), ended(trial(1), reply(1)))
        store.journal.rotate()
        folder = shutil.copytree(store.folder, tmp_path / "cut")
    first, *_ = segments(folder / "journal")
    list_journal(folder, but=first)  # nor did the manifest that names it
    first.unlink()
    night.recover(folder)
    assert calls(folder) == {(1, 1): "ok"}
    assert known_trials(folder).histories[trial_id(1)].ended == ended(trial(1), reply(1))
    night.recover(folder)
    assert calls(folder) == {(1, 1): "ok"}
