"""A trial answered again has one answer: the later, where the earlier stood."""

import pyarrow.parquet as pq
import pytest

from asyncbench.records import History, Outcome
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.folder import Store
from tests.store.made import add, answered, ended, keep, refused, reply, trial, trial_id

AGAIN = {Outcome.FAILED}


@pytest.fixture
def folder(tmp_path):
    """Two failed trials, sealed apart, each beside one that was answered."""
    for first in (1, 11):
        add(tmp_path, *refused(first), *answered(first + 1))
    return tmp_path


def outcomes(folder):
    trials = read_trials(folder)
    return list(zip(trials["trial_id"].to_pylist(), trials["outcome"].to_pylist(), strict=True))


def keep_again(folder, *numbers, alias="small"):
    with Store.open(folder, sweep="night", again=AGAIN) as store:
        for n in numbers:
            attempt = 2 if trial_id(n) in store.again else 1
            keep(store, *answered(n, attempt=attempt, alias=alias))


def test_the_later_answer_stands_where_the_earlier_stood(folder):
    keep_again(folder, 1, 11, 21)
    parts = [
        pq.read_table(path, partitioning=None) for path in sorted((folder / "trials").rglob("*.parquet"))
    ]
    assert [set(part["trial_id"].to_pylist()) for part in parts] == [
        {trial_id(1), trial_id(2)},
        {trial_id(11), trial_id(12)},
        {trial_id(21)},
    ]
    assert {outcome for _, outcome in outcomes(folder)} == {"correct"}


def test_its_grades_are_those_of_the_later_answer_and_every_call_ever_made_stays(folder):
    keep_again(folder, 1)
    grades = read_grades(folder, ["grader", "outcome"], [("trial_id", "=", trial_id(1))])
    assert grades.to_pylist() == [
        {"grader": "number", "outcome": "correct"},
        {"grader": "lenient", "outcome": "correct"},
    ]
    attempts = read_attempts(folder, ["attempt", "status"], [("trial_id", "=", trial_id(1))])
    assert attempts.to_pylist() == [
        {"attempt": 1, "status": "overloaded"},
        {"attempt": 2, "status": "ok"},
    ]


def test_while_the_later_answer_is_only_in_the_journal_it_alone_is_read(folder):
    with Store.open(folder, sweep="night", again=AGAIN) as store:
        keep(store, *answered(1, attempt=2))
        assert sorted(outcomes(folder)) == [
            (trial_id(1), "correct"),
            (trial_id(2), "correct"),
            (trial_id(11), "failed"),
            (trial_id(12), "correct"),
        ]


def test_under_another_alias_it_moves_to_the_folder_of_that_alias(folder):
    keep_again(folder, 1, alias="new-name")
    trials = read_trials(folder, ["trial_id", "model"], [("trial_id", "=", trial_id(1))])
    assert trials.to_pylist() == [{"trial_id": trial_id(1), "model": "new-name"}]
    assert len(read_trials(folder)) == 4


def test_a_part_whose_rows_have_all_moved_is_gone(tmp_path):
    add(tmp_path, *refused(1))
    keep_again(tmp_path, 1, alias="new-name")
    assert [path.parent.name for path in (tmp_path / "trials").rglob("*.parquet")] == ["model=new-name"]


def test_what_is_to_be_asked_again_is_known_with_its_calls_so_far(folder):
    with Store.open(folder, sweep="night", again=AGAIN) as store:
        assert store.finished == {trial_id(2), trial_id(12)}
        assert {n: history.attempts for n, history in store.histories.items()} == {
            trial_id(1): 1,
            trial_id(11): 1,
        }


def test_a_later_answer_that_was_paid_for_is_graded_even_if_nobody_asks_again(folder):
    paid = ended(trial(1), reply(1), attempt=2)
    add(folder, paid, again=AGAIN)
    with Store.open(folder, sweep="night") as store:
        assert store.finished == {trial_id(2), trial_id(11), trial_id(12)}
        assert store.histories == {trial_id(1): History(attempts=2, cost_usd=0.25, ended=paid)}
