"""Which process made a call: in the journal, in parts, and beside rows of before it was told."""

import shutil
from dataclasses import replace
from pathlib import Path

from asyncbench.store.catalog import read_attempts
from asyncbench.store.folder import Store
from tests.store.made import ended, keep, reply, result, sent, trial, trial_id

OLD = Path(__file__).parent / "versions" / "0.1.0"


def by_worker(n, name):
    call = ended(trial(n), reply(n))
    return replace(call, attempt=replace(call.attempt, worker=name))


def workers_in(folder):
    rows = read_attempts(folder, ["trial_id", "worker"]).to_pylist()
    return {row["trial_id"]: row["worker"] for row in rows}


def test_calls_of_a_version_that_had_no_workers_were_made_by_the_run_itself(tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "old")
    before = workers_in(folder)
    assert set(before.values()) == {None}
    with Store.open(folder, sweep="night") as store:
        keep(store, sent(trial(6)), by_worker(6, "1"), result(trial(6), reply(6)))
        store.compact(all_tables=True)
    assert {name: worker for name, worker in workers_in(folder).items() if worker} == {trial_id(6): "1"}
    assert before.keys() < workers_in(folder).keys()
