"""A trial that needs no answer has one row in `skipped`, until it is asked after all."""

import pyarrow.parquet as pq
import pytest

from asyncbench.analysis.sql import sql
from asyncbench.store.catalog import read_skipped, read_trials, right_ids
from asyncbench.store.folder import Store
from asyncbench.store.joining import join_folders
from asyncbench.store.status import trial_counts
from asyncbench.store.verify import verify_folder
from tests.store.made import add, answered, compacted, keep, refused, skipped, trial_id


@pytest.fixture
def folder(tmp_path):
    """One trial was answered, one failed, two were not asked."""
    add(tmp_path / "one", *answered(1), *refused(2), skipped(3), skipped(4))
    return tmp_path / "one"


def ids(folder):
    """The skipped trials, as each way of reading has them."""
    ours = numbers(read_skipped(folder, ["trial_id"]))
    assert numbers(sql(folder, "SELECT trial_id FROM skipped")) == ours
    assert len(set(ours)) == len(ours)
    return set(ours)


def in_parts(folder):
    return set(numbers(pq.read_table(folder / "skipped")))


def numbers(table):
    return sorted(int(str(one), 16) for one in table["trial_id"].to_pylist())


def test_a_skipped_trial_is_read_with_what_was_known_then(folder):
    (row, _) = read_skipped(folder).to_pylist()
    assert (row["trial_id"], row["model"], row["task"], row["length"]) == (trial_id(3), "small", "add", 3)
    assert (row["rule"], row["asked"], row["correct"]) == ("saturated 0.05", 84, 84)
    assert (row["low"], row["high"]) == (0.95, 1.0)
    assert ids(folder) == in_parts(folder) == {3, 4}
    assert trial_counts(folder).models["small"].skipped == 2
    assert verify_folder(folder).sound
    assert verify_folder(folder).rows["skipped"] == 2


def test_it_is_read_from_the_journal_of_a_run_that_goes_on(tmp_path):
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, *answered(1), skipped(3))
        assert ids(tmp_path) == {3}
        assert trial_counts(tmp_path).models["small"].skipped == 1
        assert trial_counts(tmp_path).waiting["skipped"] == 1


@pytest.mark.long
def test_one_that_is_asked_after_all_is_no_longer_skipped(folder):
    with Store.open(folder, sweep="night") as store:
        keep(store, *answered(4))
        assert ids(folder) == {3}  # as long as only the journal knows of its answer
        assert trial_counts(folder).models["small"].skipped == 1
    assert ids(folder) == in_parts(folder) == {3}
    assert verify_folder(folder).sound


@pytest.mark.long
def test_when_all_are_asked_none_is_left(folder):
    add(folder, *answered(3), *answered(4))
    assert ids(folder) == set()
    compacted(folder)
    assert ids(folder) == set()
    assert verify_folder(folder).sound


def test_one_that_is_skipped_again_stands_once_as_it_was_decided_last(folder):
    with Store.open(folder, sweep="night") as store:
        keep(store, skipped(3, asked=120))
        assert ids(folder) == {3, 4}
    assert {(row["trial_id"], row["asked"]) for row in read_skipped(folder).to_pylist()} == {
        (trial_id(3), 120),
        (trial_id(4), 84),
    }
    assert verify_folder(folder).sound


def test_compaction_keeps_them(folder):
    add(folder, skipped(5))
    compacted(folder)
    assert ids(folder) == in_parts(folder) == {3, 4, 5}


@pytest.mark.long
def test_a_merged_folder_has_them_once_and_not_where_the_other_folder_asked(folder, tmp_path):
    other = tmp_path / "other"
    add(other, *answered(4), skipped(3, asked=99), skipped(5))
    Store.open(tmp_path / "both", sweep="night").close()
    join_folders([folder, other], tmp_path / "both")
    assert ids(tmp_path / "both") == {3, 5}
    assert read_skipped(tmp_path / "both")["asked"].to_pylist() == [84, 84]
    assert len(read_trials(tmp_path / "both")) == 3


def test_right_answers_are_known_by_their_trials(folder):
    assert right_ids(folder) == {trial_id(1)}
    with Store.open(folder, sweep="night") as store:
        keep(store, *answered(4))
        assert right_ids(folder) == {trial_id(1), trial_id(4)}
