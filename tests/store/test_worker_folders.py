"""Folders of workers are read with that of their run, as if one process had written all of it."""

import os
from dataclasses import replace

import pyarrow.compute as pc
import pytest

from asyncbench.errors import StoreError
from asyncbench.records import Event, History, Outcome
from asyncbench.store.budget_state import known_costs
from asyncbench.store.catalog import known_trials, read_attempts, read_grades, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import WORKER, read_manifest, worker_folders
from asyncbench.store.reading import take_snapshot
from asyncbench.store.status import read_upkeep
from asyncbench.store.verify import verify_folder
from tests.store.fleets import SWEEP, call, closed, told, unclosed, unended, worker, write, write_and_die
from tests.store.made import AT, folder_of, keep, minute, reply, seal, skipped, trial, trial_id

Shares = dict[str | None, list[Event]]
ASKED_TWICE = History(attempts=2, cost_usd=0.25)  # one call failed at no cost, one was answered


def twice(n, at_s):
    """Two calls of one trial, of which the first failed."""
    failed, answered = call(trial(n), None, at_s), call(trial(n), reply(n), at_s + 5, History(attempts=1))
    free = replace(failed[1], attempt=replace(failed[1].attempt, cost_usd=0.0))
    return [failed[0], free, *answered]


@pytest.mark.long
def test_what_workers_wrote_is_read_as_if_one_process_had_written_it(tmp_path):
    shares: Shares = {
        None: [skipped(9), minute("large"), *closed(8, 80)],
        "w001-e1": [*closed(1, 10), *closed(2, 20, Outcome.FAILED), minute("small")],
        "w002-e1": [*closed(3, 30, Outcome.TRUNCATED), *call(trial(4), reply(4), 40)],
        "w002-e2": [*unended(call(trial(5), reply(5), 50))],
    }
    alone = folder_of(tmp_path / "alone", *(event for share in shares.values() for event in share))
    for name, events in shares.items():
        write(tmp_path / "fleet", name, *events)

    assert [path.name for path in worker_folders(tmp_path / "fleet")] == ["w001-e1", "w002-e1", "w002-e2"]
    assert told(tmp_path / "fleet") == told(alone)
    assert known_costs(tmp_path / "fleet") == known_costs(alone)
    assert verify_folder(tmp_path / "fleet").rows == verify_folder(alone).rows
    assert verify_folder(tmp_path / "fleet").sound


def test_what_killed_workers_left_in_their_journals_is_read_alike(tmp_path):
    shares: Shares = {
        None: [skipped(9)],
        "w001-e1": [*closed(1, 10), *unended(closed(2, 20))],
        "w002-e1": [*unclosed(closed(3, 30)), *closed(4, 40)],
    }
    for name, events in shares.items():
        write_and_die(tmp_path / "fleet", name, *events)
    write_and_die(tmp_path / "alone", None, *(event for share in shares.values() for event in share))

    assert told(tmp_path / "fleet") == told(tmp_path / "alone")
    assert len(read_upkeep(tmp_path / "fleet").leftovers) == 3


@pytest.mark.long
def test_a_trial_that_went_to_another_worker_after_some_calls_counts_them_all(tmp_path):
    """The first died with an ungraded answer, which the second graded; one more trial it asked again."""
    first = [*twice(1, 10), *unclosed(closed(2, 20))]
    after = History(attempts=1, cost_usd=0.25)
    graded = replace(closed(1, 15, history=ASKED_TWICE)[-1], attempts=2, cost_usd=0.25)
    second: list[Event] = [graded, *closed(2, 40, history=after)]
    write_and_die(tmp_path / "fleet", None)
    write_and_die(tmp_path / "fleet", "w001-e1", *first)
    write(tmp_path / "fleet", "w002-e1", *second)
    folder_of(tmp_path / "alone", *first, *second)

    assert told(tmp_path / "fleet") == told(tmp_path / "alone")
    assert verify_folder(tmp_path / "fleet").sound


@pytest.mark.long
def test_of_a_trial_that_two_workers_answered_the_better_row_counts_and_all_calls(tmp_path):
    """The second was told nothing of the first one's calls, for nobody could read its journal."""
    write_and_die(tmp_path, None)
    write_and_die(tmp_path, "w001-e1", *closed(1, 10, Outcome.TRUNCATED), *unended(closed(2, 20)))
    write(tmp_path, "w002-e1", *closed(1, 60), *closed(2, 70))

    rows = {row["trial_id"]: row for row in read_trials(tmp_path).to_pylist()}
    assert rows[trial_id(1)]["outcome"] == Outcome.CORRECT
    assert (rows[trial_id(1)]["attempts"], rows[trial_id(1)]["cost_usd"]) == (2, 0.5)
    assert {row["outcome"] for row in read_grades(tmp_path).to_pylist()} == {Outcome.CORRECT}
    calls = read_attempts(tmp_path, filters=[("trial_id", "=", trial_id(1))]).sort_by("started_at")
    assert calls["attempt"].to_pylist() == [1, 2]
    assert known_trials(tmp_path).finished == {trial_id(1), trial_id(2)}
    assert len(take_snapshot(tmp_path).unfinished.sent) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param(pc.field("attempts") == 2, 1, id="as-counted-over-all"),
        pytest.param(pc.field("attempts") == 1, 1, id="not-as-one-folder-has-it"),
        pytest.param(pc.field("cost_usd") > 0.4, 1, id="their-cost"),
    ],
)
def test_filters_see_what_is_counted_over_all_folders(tmp_path, wanted, found):
    write(tmp_path, None)
    write(tmp_path, "w001-e1", *closed(1, 10, Outcome.TRUNCATED), *closed(2, 20))
    write(tmp_path, "w002-e1", *closed(1, 60))

    assert len(read_trials(tmp_path, ["trial_id"], wanted)) == found
    assert len(read_trials(tmp_path, ["model"], wanted)) == found
    second = pc.field("attempt") == 2
    assert read_attempts(tmp_path, ["trial_id"], second)["trial_id"].to_pylist() == [trial_id(1)]


def test_an_answer_that_was_asked_again_takes_the_place_of_the_earlier_one(tmp_path):
    write(tmp_path, None, *closed(1, 10, Outcome.NO_ANSWER), *closed(2, 20, Outcome.NO_ANSWER))
    again = History(attempts=1, cost_usd=0.25)
    write(tmp_path, "w001-e1", *closed(1, 100, history=again), *closed(2, 200, Outcome.FAILED, history=again))

    outcomes = {row["trial_id"]: row["outcome"] for row in read_trials(tmp_path).to_pylist()}
    assert outcomes == {trial_id(1): Outcome.CORRECT, trial_id(2): Outcome.NO_ANSWER}
    assert set(read_trials(tmp_path)["attempts"].to_pylist()) == {2}


def test_an_ungraded_answer_to_a_trial_that_is_asked_again_is_kept(tmp_path):
    write(tmp_path, None, *closed(1, 10, Outcome.NO_ANSWER))
    write_and_die(tmp_path, "w001-e1", *unclosed(closed(1, 99, history=History(attempts=1, cost_usd=0.25))))
    ended = known_trials(tmp_path).histories[trial_id(1)].ended
    assert ended is not None
    assert ended.reply == reply(1)


def test_an_ungraded_answer_that_another_worker_graded_is_done_with(tmp_path):
    write(tmp_path, None)
    write_and_die(tmp_path, "w001-e1", *unclosed(closed(1, 10)))
    write(tmp_path, "w002-e1", closed(1, 10)[-1])
    assert known_trials(tmp_path).finished == {trial_id(1)}
    assert take_snapshot(tmp_path).unfinished.replies == {}


def test_a_trial_that_one_skipped_and_another_had_asked_is_not_skipped(tmp_path):
    write(tmp_path, None, skipped(1), skipped(2))
    write(tmp_path, "w001-e1", *closed(1, 10), skipped(2), skipped(3))
    found = take_snapshot(tmp_path).read("skipped", ["trial_id"]).sort_by("trial_id")
    assert found["trial_id"].to_pylist() == [trial_id(2), trial_id(3)]


@pytest.mark.long
def test_a_folder_is_read_while_its_workers_write(tmp_path):
    with Store.open(tmp_path, sweep=SWEEP) as own, worker(tmp_path, "w001-e1") as one:
        with worker(tmp_path, "w002-e1") as other:
            for n in range(40):
                keep(other if n % 2 else one, *closed(n, n))
                if n % 7 == 0:
                    seal(one)
                keep(own, minute(f"lane {n}"))
                assert len(read_trials(tmp_path)) == len(read_attempts(tmp_path)) == n + 1
        assert known_trials(tmp_path).finished == {trial_id(n) for n in range(40)}


def test_the_folder_of_a_worker_says_who_wrote_it_and_where(tmp_path):
    write(tmp_path, None)
    write(tmp_path, "w003-e2")
    said = read_manifest(tmp_path / "workers" / "w003-e2")[WORKER]
    assert said == {"name": "w003-e2", "host": os.uname().nodename}
    assert WORKER not in read_manifest(tmp_path)


def test_damage_in_the_folder_of_a_worker_is_told(tmp_path):
    write(tmp_path, None, *closed(1, 10))
    write(tmp_path, "w001-e1", *closed(2, 20))
    (part,) = (tmp_path / "workers").rglob("trials/**/*.parquet")
    data = part.read_bytes()
    part.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])

    assert str(part.relative_to(tmp_path)) in {found.place for found in verify_folder(tmp_path).findings}
    part.unlink()
    with pytest.raises(StoreError, match=r"workers.w001-e1.trials.*is missing"):
        read_trials(tmp_path)


def test_rows_of_a_worker_without_its_manifest_are_told(tmp_path):
    """Else its trials would be asked, and paid, again."""
    write(tmp_path, None, *closed(1, 10))
    write(tmp_path, "w001-e1", *closed(2, 20))
    (tmp_path / "workers" / "w002-e1").mkdir()  # one that died before it began
    assert read_trials(tmp_path).num_rows == 2
    (tmp_path / "workers" / "w001-e1" / "manifest.json").unlink()
    for reading in (read_trials, verify_folder, lambda folder: Store.open(folder, sweep=SWEEP)):
        with pytest.raises(StoreError, match=r"w001-e1 has no manifest.json, but rows"):
            reading(tmp_path)


def test_the_reserve_of_a_call_in_flight_counts_for_each_worker_that_made_one(tmp_path):
    """Two calls of one trial bear the same number: neither is forgotten."""
    write(tmp_path, None)
    for name, at_s in (("w001-e1", 10), ("w002-e1", 60)):
        write_and_die(tmp_path, name, *unended(closed(1, at_s)))
    calls = take_snapshot(tmp_path).unfinished.sent.values()
    assert sorted(sent.started_at - AT for sent in calls) == [10, 60]
    assert told(tmp_path)["charges"].unended_calls == 2
