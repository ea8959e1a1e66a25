"""Which process made a call: in the journal, in parts, and beside rows of before it was told."""

import shutil
from dataclasses import replace
from pathlib import Path

from asyncbench.store.catalog import read_attempts
from asyncbench.store.folder import Store
from tests.store.made import answered, ended, keep, reply, result, sent, trial, trial_id

OLD = Path(__file__).parent / "versions" / "0.1.0"


def by_worker(n, name):
    call = ended(trial(n), reply(n))
    return replace(call, attempt=replace(call.attempt, worker=name))


def workers_in(folder):
    rows = read_attempts(folder, ["trial_id", "worker"]).to_pylist()
    return {row["trial_id"]: row["worker"] for row in rows}


def test_a_call_keeps_its_worker_in_the_journal_and_sealed(tmp_path):
    call = by_worker(1, "2")
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, sent(trial(1)), call)  # the run dies here: the next one has it from the journal
        before = workers_in(tmp_path)
    with Store.open(tmp_path, sweep="night") as store:
        assert store.histories[trial_id(1)].ended == call
        keep(store, result(trial(1), reply(1)), *answered(2))
    assert before == {trial_id(1): "2"}
    assert workers_in(tmp_path) == {trial_id(1): "2", trial_id(2): None}


def test_calls_of_a_version_that_had_no_workers_were_made_by_the_run_itself(tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "old")
    before = workers_in(folder)
    assert set(before.values()) == {None}
    with Store.open(folder, sweep="night") as store:
        keep(store, sent(trial(6)), by_worker(6, "1"), result(trial(6), reply(6)))
        store.compact()
    assert {name: worker for name, worker in workers_in(folder).items() if worker} == {trial_id(6): "1"}
    assert before.keys() < workers_in(folder).keys()
