"""What the steps of a load came to, in the journal and sealed, and their columns of calls and trials."""

from dataclasses import replace
from typing import Any

from asyncbench.records import Condition
from asyncbench.store.catalog import read_attempts, read_steps, read_trials
from asyncbench.store.folder import Store
from asyncbench.store.verify import verify_folder
from asyncbench.suites.requests import TrialIds
from tests.store.made import AT, ended, keep, model, reply, result, sent, step, trial

LOAD = "poisson 8/s #2"


def test_a_step_is_a_row_before_and_after_it_is_sealed(tmp_path):
    bare = replace(step("closed 4 #1"), slo=None, met=None, verdict=None, late_p99_s=None, ks_p=None)
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, step(), bare)
        before = read_steps(tmp_path)
    after = read_steps(tmp_path)
    assert before.to_pylist() == after.to_pylist()
    first, second = after.to_pylist()
    assert (first["load"], first["rate"], first["met"], first["verdict"]) == (LOAD, 8.0, 460, "unresolved")
    assert (first["slo"], first["began_at"].timestamp()) == ('{"share":0.95,"ttft":0.5}', AT)
    assert {second[name] for name in ("slo", "met", "verdict", "late_p99_s", "ks_p")} == {None}
    assert verify_folder(tmp_path).sound


def test_a_call_keeps_what_its_step_measured_of_it(tmp_path):
    asked = replace(trial(1), load=LOAD)
    call = ended(asked, reply(1))
    measured: dict[str, Any] = {
        "load": LOAD,
        "late_s": 0.25,
        "phase": "measured",
        "ttfo_s": 0.5,
        "connect_s": 0.125,
        "chunks": 7,
        "gap_p50_s": 0.01,
        "gap_p99_s": 0.02,
        "gap_max_s": 0.03,
        "output_chars": 21,
        "worker": "2",
    }
    loaded = replace(call, attempt=replace(call.attempt, due_at=AT + 1, **measured))
    with Store.open(tmp_path, sweep="night") as store:
        keep(store, sent(asked), loaded)  # the run dies here: the next one has it from the journal
    with Store.open(tmp_path, sweep="night") as store:
        assert store.histories[asked.trial_id].ended == loaded
        keep(store, result(asked, reply(1)), *(ended(trial(2), reply(2)), result(trial(2), reply(2))))
    (row, other) = sorted(read_attempts(tmp_path).to_pylist(), key=lambda row: row["trial_id"])
    assert {name: row[name] for name in measured} == measured
    assert row["due_at"].timestamp() == AT + 1
    assert {other[name] for name in (*measured, "due_at")} == {None}
    assert sorted(read_trials(tmp_path)["load"].to_pylist(), key=str) == [None, LOAD]


def test_a_step_makes_its_trials_others_and_no_step_leaves_ids_as_they_were():
    def of(**keys):
        return TrialIds(model(), Condition(name="zero-shot"), **keys).make("p", prompt_version=1, repeat=0)

    assert of() == of(load=None)
    assert len({of(), of(load=LOAD), of(load="poisson 8/s #1"), of(run=LOAD), of(run=f"\n{LOAD}")}) == 5
