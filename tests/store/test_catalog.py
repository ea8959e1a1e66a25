"""What a folder holds can be asked while a run writes to it, after one was killed, and when all is done."""

import os
import shutil

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ConfigError
from asyncbench.records import History, Outcome
from asyncbench.store.catalog import known_trials, read_attempts, read_grades, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.schema import ATTEMPTS, GRADES, TRIALS
from asyncbench.store.status import ModelCounts, trial_counts
from tests.store.made import add, answered, ended, keep, refused, reply, sent, trial, trial_id, without_list

READERS = (read_trials, read_grades, read_attempts)


@pytest.fixture(params=["running", "killed", "complete"])
def folder(request, tmp_path):
    """A folder in each of its states: some rows are in parts, and others in the journal or in parts too."""
    add(tmp_path / "night", *answered(1), *refused(2))
    with Store.open(tmp_path / "night", sweep="night") as store:
        keep(store, *answered(3), *answered(4, alias="large"), ended(trial(5), None, cost_usd=None))
        if request.param == "running":
            yield store.folder
            return
        if request.param == "killed":
            yield shutil.copytree(store.folder, tmp_path / "killed")
            return
    yield tmp_path / "night"


def test_every_row_is_read_once(folder):
    assert [len(read(folder)) for read in READERS] == [4, 8, 5]


def test_the_tables_have_their_schemas(folder):
    for read, schema in zip(READERS, (TRIALS, GRADES, ATTEMPTS), strict=True):
        assert read(folder).schema.equals(schema)
    assert set(read_trials(folder)["model"].to_pylist()) == {"large", "small"}


@pytest.mark.long
@pytest.mark.parametrize(
    "filters",
    [
        [("outcome", "=", "correct"), ("model", "=", "small")],
        (pc.field("outcome") == "correct") & (pc.field("model") == "small"),
    ],
    ids=["as a list", "as an expression"],
)
def test_rows_are_chosen_by_any_column(folder, filters):
    chosen = read_trials(folder, columns=["trial_id"], filters=filters)
    assert chosen["trial_id"].to_pylist() == [trial_id(1), trial_id(3)]


def test_finished_trials_are_all_that_have_a_result(folder):
    assert known_trials(folder).finished == {trial_id(n) for n in (1, 2, 3, 4)}
    assert known_trials(folder, again={Outcome.FAILED}).finished == {trial_id(n) for n in (1, 3, 4)}


def test_histories_are_of_trials_without_a_result_that_counts(folder):
    unfinished = {trial_id(5): History(attempts=1, cost_usd=None)}
    assert known_trials(folder).histories == unfinished
    failed = {trial_id(2): History(attempts=1, cost_usd=0.0)}
    assert known_trials(folder, again={Outcome.FAILED}).histories == unfinished | failed


def test_each_model_is_counted_and_unknown_costs_are_told_apart(folder):
    assert trial_counts(folder).models == {
        "large": ModelCounts(outcomes={"correct": 1}, attempts=1, cost_usd=0.25),
        "small": ModelCounts(outcomes={"correct": 2, "failed": 1}, attempts=4, cost_usd=0.5, unpriced=1),
    }
    assert trial_counts(folder).models["small"].finished == 3


def test_the_last_time_something_was_written_is_told(folder):
    written = [*folder.rglob("*.parquet"), *folder.rglob("*.wal")]
    os.utime(written[0], (9e9, 9e9))
    assert trial_counts(folder).written_at == 9e9


def test_calls_in_flight_are_counted_and_the_cost_of_none_is_unknown(tmp_path):
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, sent(trial(1)), sent(trial(2)), ended(trial(2), reply(2), cost_usd=None))
        (model,) = trial_counts(tmp_path).models.values()
    assert model == ModelCounts(attempts=1, cost_usd=None, unpriced=1, in_flight=1)


def test_a_new_folder_has_empty_tables_of_the_same_columns(tmp_path):
    Store.open(tmp_path, sweep="night").close()
    assert read_trials(tmp_path).schema.equals(TRIALS)
    assert read_grades(tmp_path, columns=["grader"]).column_names == ["grader"]
    known, counts = known_trials(tmp_path), trial_counts(tmp_path)
    assert (known.finished, known.histories) == (frozenset(), {})
    assert (counts.models, counts.written_at) == ({}, None)


@pytest.mark.parametrize("read", [*READERS, known_trials, trial_counts])
def test_what_is_no_results_folder_is_refused_with_the_way_out(tmp_path, read):
    (tmp_path / "sweep.yaml").touch()
    refused = {tmp_path: "is not a results folder", tmp_path / "missing": "does not exist"}
    for path, what in {**refused, tmp_path / "sweep.yaml": "is a file"}.items():
        with pytest.raises(ConfigError, match=rf"{path} {what}.*Name (a|the) folder that a run wrote"):
            read(path)


def test_a_folder_above_several_sweeps_names_them_with_a_command(tmp_path):
    above = tmp_path / "a b"
    for name in ("night", "day"):
        Store.open(above / name, sweep=name).close()
    (above / "app").mkdir()
    (above / "app" / "manifest.json").write_text("{}")  # another program's
    (above / "torn").mkdir()
    (above / "torn" / "manifest.json").write_text("{")
    said = r"is not a results folder, but holds 3: {}, {}, {}\. Name one .* `asyncbench view '.*a b/day'`"
    with pytest.raises(ConfigError, match=said.format("day", "night", "torn")):
        read_trials(above)
    with pytest.raises(ConfigError, match=said.format("a b/day", "a b/night", "a b/torn")):
        read_trials(tmp_path)


def test_a_folder_that_lost_its_manifest_is_not_taken_for_one_above_those_of_its_workers(tmp_path):
    for name in ("", "workers/w1"):
        Store.open(tmp_path / name, sweep="night").close()
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ConfigError, match=r"Restore .*manifest\.json from a backup"):
        read_trials(tmp_path)


def test_a_folder_may_be_named_by_text(tmp_path):
    Store.open(str(tmp_path), sweep="night").close()
    assert len(read_trials(str(tmp_path))) == 0


def test_a_column_that_earlier_parts_did_not_have_is_null_in_their_rows(tmp_path):
    add(tmp_path, *answered(1), *refused(2))
    (part,) = (tmp_path / "trials").rglob("*.parquet")
    earlier = pq.ParquetFile(part).read().drop_columns(["request_id"])
    pq.write_table(earlier.replace_schema_metadata(), part)  # from before there were checksums, too
    without_list(tmp_path)
    assert read_trials(tmp_path, ["request_id"])["request_id"].to_pylist() == [None, None]
    add(tmp_path, *answered(2, attempt=2), again={Outcome.FAILED})
    assert read_trials(tmp_path, ["request_id"])["request_id"].to_pylist() == [None, "req-2"]
