"""Folders of one sweep become one: through real sweeps, and over events made by hand where time matters."""

import fcntl
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import orjson
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from asyncbench import read_attempts, read_grades, read_lanes, read_trials, regrade_folder
from asyncbench.analysis.counting import counted
from asyncbench.cli import app
from asyncbench.config.sweep import load_sweep
from asyncbench.errors import ConfigError, StoreError
from asyncbench.planning.budget_bounds import ANY, ASKED
from asyncbench.planning.forecast_file import FORECAST, read_forecasts
from asyncbench.problems.making import generate
from asyncbench.records import Outcome
from asyncbench.reports.overview import overview_of
from asyncbench.reports.status.report import status_of
from asyncbench.reports.status.watching import health_of
from asyncbench.run.summary import Exit
from asyncbench.store.folder import Store
from asyncbench.store.lock import locked
from asyncbench.store.manifest import changed_manifest, read_manifest
from asyncbench.store.status import trial_counts
from asyncbench.store.verify import verify_folder
from asyncbench.upkeep.merging import merge_folders
from tests.store import made
from tests.sweep_files import entry, outcomes, problem_set, run, simulator, sweep


def spend(folder):
    return [row["trial_id"] for row in read_attempts(folder, ["trial_id"]).to_pylist()]


# ── real sweeps ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Two folders of a sweep of two models, a model each; and the whole, asked by nobody else."""
    folder = tmp_path_factory.mktemp("halves")
    problems = problem_set(folder, trials=1)
    with simulator(problems) as server:
        models = [entry(server, "simulated/oracle"), entry(server, "simulated/noisy")]
        for name, model in (("a", "simulated/oracle"), ("b", "simulated/noisy")):
            run(sweep(folder / name, problems, *models), models=[model])
        yield folder, server


@pytest.mark.long
def test_models_asked_on_two_machines_stand_in_one_folder(halves):
    folder, _ = halves
    merged = merge_folders([folder / "a", folder / "b"], folder / "models")

    assert (merged.joined.trials, merged.joined.trials_twice) == (144, 0)
    assert outcomes(folder / "models") == outcomes(folder / "a") | outcomes(folder / "b")
    assert [(one.model, one.planned, one.done) for one in status_of(folder / "models").models] == [
        ("simulated/noisy", 72, 72),
        ("simulated/oracle", 72, 72),
    ]
    assert len(read_grades(folder / "models")) == 3 * 144
    assert health_of(folder / "models").sound


@pytest.mark.long
def test_a_merged_folder_is_run_again_and_asks_nothing(halves):
    folder, server = halves
    merge_folders([folder / "a", folder / "b"], folder / "again")
    before = server.stats()["requests"]
    merged = load_sweep(folder / "again" / "sweep.yaml")
    summary = run(merged)

    assert server.stats()["requests"] == before
    assert summary.exit is Exit.COMPLETE
    assert merged.out == folder / "again"
    assert health_of(folder / "again").sound


@pytest.mark.long
def test_a_merged_folder_reports_and_is_regraded_like_any_other(halves):
    folder, _ = halves
    merge_folders([folder / "a", folder / "b"], folder / "graded")
    trials = {row["trial_id"]: row for row in read_trials(folder / "graded").to_pylist()}

    regraded = regrade_folder(folder / "graded", write=True)
    assert (regraded.trials, regraded.kept) == (144, ())
    assert all(move.before == move.now for move in regraded.moves)
    assert {row["trial_id"]: row for row in read_trials(folder / "graded").to_pylist()} == trials
    assert {line.model for line in counted(folder / "graded", overview_of).suites} == {
        "simulated/noisy",
        "simulated/oracle",
    }


@pytest.mark.long
def test_the_folders_that_are_merged_stay_as_they_are(halves):
    folder, _ = halves
    sources = [folder / "a", folder / "b"]
    before = {path: path.read_bytes() for source in sources for path in files(source)}
    merge_folders(sources, folder / "unchanged")
    assert {path: path.read_bytes() for source in sources for path in files(source)} == before


def test_the_forecasts_of_both_folders_are_taken_along(halves):
    folder, _ = halves
    for name, day in (("a", "02"), ("b", "01")):
        made = {"made_at": f"2026-11-{day}", "models": {name: {"trials": 72}}}
        (folder / name / FORECAST).write_bytes(orjson.dumps({"version": 1, "forecasts": [made]}))
    try:
        merge_folders([folder / "a", folder / "b"], folder / "forecast")
    finally:
        for name in "ab":
            (folder / name / FORECAST).unlink()
    assert [[*one["models"]] for one in read_forecasts(folder / "forecast")] == [["b"], ["a"]]


def test_a_folder_that_says_nothing_of_its_aliases_leaves_them_unknown_in_the_whole(halves):
    folder, _ = halves
    older = shutil.copytree(folder / "a", folder / "older")
    with changed_manifest(older) as manifest:
        del manifest[ASKED]
    merge_folders([older, folder / "b"], folder / "of an older")
    asked = read_manifest(folder / "of an older")[ASKED]
    assert asked == read_manifest(folder / "b")[ASKED] | {"simulated/oracle": [ANY]}


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]


@pytest.mark.long
def test_problem_sets_asked_on_two_machines_are_planned_together_and_asked_no_more(tmp_path):
    one, two = problem_set(tmp_path, trials=1, name="one"), problem_set(tmp_path, trials=2, name="two")
    with simulator(one, two) as server:
        for name, problems in (("a", one), ("b", two)):
            run(sweep(tmp_path / name, problems, entry(server, "simulated/oracle")))
        merged = merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
        asked = server.stats()["requests"]
        run(load_sweep(tmp_path / "both" / "sweep.yaml"))
        assert server.stats()["requests"] == asked

    assert merged.joined.trials == 144  # the first set is a part of the second
    (status,) = status_of(tmp_path / "both").models
    assert (status.planned, status.done) == (144, 144)


@pytest.mark.long
def test_halves_of_a_problem_set_are_planned_as_the_whole(tmp_path):
    whole = pq.read_table(problem_set(tmp_path, trials=2))
    parts = [tmp_path / f"{name}.parquet" for name in ("left", "right")]
    for path, start in zip(parts, (0, 72), strict=True):
        metadata = {b"asyncbench.schema_version": b"1"}
        pq.write_table(whole.slice(start, 72).replace_schema_metadata(metadata), path)
    with simulator(*parts) as server:
        for name, problems in zip("ab", parts, strict=True):
            run(sweep(tmp_path / name, problems, entry(server, "simulated/oracle")))
    merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    (status,) = status_of(tmp_path / "both").models
    assert (status.planned, status.done) == (144, 144)


@pytest.mark.long
def test_a_trial_asked_twice_has_one_row_and_all_its_calls(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems) as server:
        price = {"price": {"input": 1, "output": 2}}
        for name in "ab":
            run(sweep(tmp_path / name, problems, entry(server, "simulated/noisy", **price)), limit=10)
    merged = merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "both")

    assert (merged.joined.trials, merged.joined.trials_twice, merged.joined.attempts) == (10, 10, 20)
    calls = read_attempts(tmp_path / "both").to_pylist()
    paid = [sum(row["cost_usd"] for row in read_attempts(tmp_path / name).to_pylist()) for name in "ab"]
    assert sum(row["cost_usd"] for row in calls) == pytest.approx(sum(paid))
    for row in read_trials(tmp_path / "both").to_pylist():
        own = [call for call in calls if call["trial_id"] == row["trial_id"]]
        assert [call["attempt"] for call in sorted(own, key=lambda call: call["started_at"])] == [1, 2]
        assert row["attempts"] == 2
        assert row["cost_usd"] == pytest.approx(sum(call["cost_usd"] for call in own))
    assert health_of(tmp_path / "both").sound


@pytest.mark.long
def test_what_was_merged_before_adds_nothing_when_it_is_merged_again(tmp_path):
    problems = problem_set(tmp_path, trials=1)
    with simulator(problems) as server:
        for name in "ab":
            run(sweep(tmp_path / name, problems, entry(server, "simulated/noisy")), limit=10)
    merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "once")
    again = merge_folders([tmp_path / "once", tmp_path / "a"], tmp_path / "again")

    assert (again.joined.attempts, again.joined.attempts_twice) == (20, 10)
    assert rows(read_attempts(tmp_path / "again")) == rows(read_attempts(tmp_path / "once"))
    assert rows(read_trials(tmp_path / "again")) == rows(read_trials(tmp_path / "once"))
    assert read_lanes(tmp_path / "again").num_rows == read_lanes(tmp_path / "once").num_rows
    assert verify_folder(tmp_path / "again").sound


def rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["trial_id"], row.get("attempt")))


# ── whose row it is ──────────────────────────────────────────────────────────────────────────


CONTENT = {
    "name": "night",
    "problems": ["nowhere.parquet"],
    "models": [{"model": "openai/m", "alias": "small"}],
}


def folder_of(path, *events, **keys):
    """A results folder with these events, closed or, with `dead`, as a killed run leaves it."""
    (path / "problems").mkdir(parents=True)
    generate("llm_arithmetic", path / "problems" / "nowhere-000000000000.parquet", seed=5, trials=1)
    (path / "sweep.yaml").write_text(yaml.safe_dump(CONTENT | keys.get("content", {})))
    said = {"schema_version": 1, "sweep": "night", "created_at": "2026-01-01"}
    said |= {"worker": keys["here"]} if "here" in keys else {}
    (path / "manifest.json").write_text(json.dumps(said))
    if keys.get("dead"):
        script = "import os, pickle, sys\nfrom asyncbench.store.folder import Store\n"
        script += "store = Store.open(sys.argv[1], sweep='night')\n"
        script += "for event in pickle.load(sys.stdin.buffer): store.keep(event)\nos._exit(9)\n"
        subprocess.run(
            [sys.executable, "-c", script, str(path)], input=pickle.dumps(list(events)), check=False
        )
        return path
    made.add(path, *events)
    return path


def closed(n, outcome, *, finished_at, started_at=made.AT, attempts=1, alias="small"):
    """The events of a trial that ended so, at that time."""
    asked, answer = made.trial(n, alias=alias), None if outcome is Outcome.FAILED else made.reply(n)
    sent = replace(made.sent(asked), started_at=started_at)
    ended = made.ended(asked, answer)
    ended = replace(ended, attempt=replace(ended.attempt, started_at=started_at))
    result = made.result(asked, answer, attempts=attempts)
    grades = tuple(replace(grade, outcome=outcome) for grade in result.grades)
    return [sent, ended, replace(result, grades=grades, finished_at=finished_at)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param((Outcome.FAILED, 1), (Outcome.WRONG, 2), Outcome.WRONG, id="an-answer-before-none"),
        pytest.param((Outcome.TRUNCATED, 1), (Outcome.WRONG, 2), Outcome.WRONG, id="whole-before-cut"),
        pytest.param((Outcome.FAILED, 1), (Outcome.TRUNCATED, 2), Outcome.TRUNCATED, id="cut-before-none"),
        pytest.param((Outcome.WRONG, 1), (Outcome.CORRECT, 2), Outcome.WRONG, id="the-first-not-the-right"),
        pytest.param(
            (Outcome.NO_ANSWER, 1), (Outcome.CORRECT, 2), Outcome.NO_ANSWER, id="the-first-of-whole"
        ),
        pytest.param((Outcome.WRONG, 1), (Outcome.CORRECT, 1), Outcome.WRONG, id="at-once:the-first-folder"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_row_kept_is_the_best_answer_and_of_equals_the_first(tmp_path, first, second, kept, turned):
    if turned and first[1] == second[1]:
        kept = second[0]
    folders = [
        folder_of(tmp_path / name, *closed(1, outcome, finished_at=made.AT + at, started_at=made.AT - n))
        for n, (name, (outcome, at)) in enumerate((("a", first), ("b", second)))
    ]
    merge_folders(reversed(folders) if turned else folders, tmp_path / "out")

    (row,) = read_trials(tmp_path / "out").to_pylist()
    assert (row["outcome"], row["attempts"]) == (kept, 2)
    grades = read_grades(tmp_path / "out").to_pylist()
    assert [grade["outcome"] for grade in grades] == [kept, kept]  # they follow their trial
    assert len(spend(tmp_path / "out")) == 2


@pytest.mark.long
def test_a_call_of_unknown_cost_makes_the_cost_of_its_trial_unknown(tmp_path):
    asked = made.trial(1)
    lost = folder_of(tmp_path / "a", made.sent(asked), dead=True)
    answered = folder_of(
        tmp_path / "b", *closed(1, Outcome.WRONG, finished_at=made.AT, started_at=made.AT + 9)
    )
    merge_folders([lost, answered], tmp_path / "out")

    (row,) = read_trials(tmp_path / "out").to_pylist()
    assert (row["attempts"], row["cost_usd"]) == (2, None)
    assert Counter(row["status"] for row in read_attempts(tmp_path / "out").to_pylist()) == {
        "lost": 1,
        "ok": 1,
    }


def test_a_call_keeps_the_worker_that_made_it(tmp_path):
    def by(worker, n, *, at_s=0.0):
        sent, ended, result = closed(n, Outcome.CORRECT, finished_at=made.AT, started_at=made.AT + at_s)
        ended.attempt.worker = worker
        return sent, ended, result

    one = folder_of(tmp_path / "a", *by("1", 1), *by(None, 2))
    merge_folders([one, folder_of(tmp_path / "b", *by("2", 2, at_s=9.0))], tmp_path / "out")

    rows = read_attempts(tmp_path / "out", ["trial_id", "attempt", "worker"]).to_pylist()
    calls = sorted((row["trial_id"], row["attempt"], row["worker"]) for row in rows)
    assert calls == [(made.trial_id(1), 1, "1"), (made.trial_id(2), 1, None), (made.trial_id(2), 2, "2")]


@pytest.mark.long
def test_a_folder_is_merged_with_those_of_its_workers(tmp_path):
    """Of one trial the worker has the better answer; both of its calls, and a lost one, are kept."""
    one = folder_of(tmp_path / "a", *closed(1, Outcome.FAILED, finished_at=made.AT))
    late = closed(1, Outcome.CORRECT, finished_at=made.AT + 9, started_at=made.AT + 5)
    events = (*late, made.sent(made.trial(3)))
    folder_of(one / "workers" / "w001-e1", *events, dead=True, here={"name": "w001-e1", "host": "machine"})
    before = {path: path.read_bytes() for path in files(one)}
    merge_folders([one, folder_of(tmp_path / "b", *made.answered(2))], tmp_path / "out")

    rows = {row["trial_id"]: row for row in read_trials(tmp_path / "out").to_pylist()}
    assert {name: (row["outcome"], row["attempts"]) for name, row in rows.items()} == {
        made.trial_id(1): (Outcome.CORRECT, 2),
        made.trial_id(2): (Outcome.CORRECT, 1),
    }
    assert Counter(spend(tmp_path / "out")) == {
        made.trial_id(n): count for n, count in ((1, 2), (2, 1), (3, 1))
    }
    assert read_manifest(tmp_path / "out")["workers"] == {"w001-e1": "machine"}
    assert {path: path.read_bytes() for path in files(one)} == before
    assert verify_folder(tmp_path / "out").sound


def test_a_folder_whose_worker_still_writes_is_not_merged(tmp_path):
    folders = [folder_of(tmp_path / name, *made.answered(n)) for n, name in enumerate("ab")]
    with (
        Store.open(folders[1] / "workers" / "w001-e1", sweep="night"),
        pytest.raises(StoreError, match=rf"process {os.getpid()} is writing to .*w001-e1"),
    ):
        merge_folders(folders, tmp_path / "out")


@pytest.mark.long
def test_a_call_that_a_copy_takes_for_lost_is_the_call_that_ended(tmp_path):
    events = closed(1, Outcome.CORRECT, finished_at=made.AT)
    copied = folder_of(tmp_path / "a", events[0], dead=True)
    merge_folders([copied, folder_of(tmp_path / "b", *events)], tmp_path / "out")
    (call,) = read_attempts(tmp_path / "out").to_pylist()
    assert (call["status"], call["cost_usd"]) == ("ok", 0.25)


@pytest.mark.long
def test_rows_that_only_a_journal_holds_are_merged_too(tmp_path):
    killed = folder_of(tmp_path / "a", *made.answered(1), dead=True)
    merge_folders([killed, folder_of(tmp_path / "b", *made.answered(2))], tmp_path / "out")
    assert set(outcomes(tmp_path / "out")) == {made.trial_id(1), made.trial_id(2)}
    assert trial_counts(tmp_path / "out").waiting["trials"] == 0


@pytest.mark.long
def test_an_answer_that_nobody_graded_yet_is_taken_along(tmp_path):
    asked = made.trial(1)
    killed = folder_of(tmp_path / "a", made.sent(asked), made.ended(asked, made.reply(1)), dead=True)
    again = folder_of(
        tmp_path / "b", *closed(1, Outcome.FAILED, finished_at=made.AT - 5, started_at=made.AT - 9)
    )
    merge_folders([killed, again], tmp_path / "out")

    with Store.open(tmp_path / "out", sweep="night") as store:
        history = store.histories[asked.trial_id]
    assert history.ended is not None
    assert history.ended.reply == made.reply(1)
    assert (history.attempts, history.ended.attempt.attempt) == (2, 2)


@pytest.mark.long
def test_an_answer_that_nobody_graded_yet_gives_way_to_a_complete_one(tmp_path):
    asked = made.trial(1)
    killed = folder_of(tmp_path / "a", made.sent(asked), made.ended(asked, made.reply(1)), dead=True)
    answered = folder_of(
        tmp_path / "b", *closed(1, Outcome.WRONG, finished_at=made.AT + 9, started_at=made.AT + 8)
    )
    merge_folders([killed, answered], tmp_path / "out")

    with Store.open(tmp_path / "out", sweep="night") as store:
        assert store.finished == {asked.trial_id}
        assert not store.histories
    assert len(spend(tmp_path / "out")) == 2


@pytest.mark.long
def test_damaged_lines_are_kept_apart(tmp_path):
    killed = folder_of(tmp_path / "a", *made.answered(1), dead=True)
    (segment,) = (killed / "journal").glob("*.wal")
    segment.write_bytes(segment.read_bytes() + b"00000000 {}\n")
    merged = merge_folders([killed, folder_of(tmp_path / "b", *made.answered(2))], tmp_path / "out")
    assert merged.joined.damaged == 1
    assert sum(trial_counts(tmp_path / "out").quarantined.values()) == 1
    assert "1 damaged lines" in merged.as_text()


def test_a_model_of_another_alias_in_the_other_folder_is_refused_where_it_asks_the_same(tmp_path):
    one = folder_of(tmp_path / "a", *made.answered(1))
    other = folder_of(tmp_path / "b", content={"models": [{"model": "openai/m", "alias": "renamed"}]})
    with pytest.raises(ConfigError, match="ask the same model the same way"):
        merge_folders([one, other], tmp_path / "out")


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(
            {"models": [{"model": "openai/m", "alias": "small", "temperature": 1}]},
            "the alias 'small' for different models",
            id="another-parameter",
        ),
        pytest.param(
            {"conditions": [{"name": "plain", "system": "Be brief."}]},
            "the name 'plain' for different",
            id="another-condition",
        ),
    ],
)
def test_a_name_that_stands_for_two_things_is_refused(tmp_path, content, complaint):
    folders = [folder_of(tmp_path / "a"), folder_of(tmp_path / "b", content=content)]
    with pytest.raises(ConfigError, match=complaint):
        merge_folders(folders, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_limits_and_prices_may_differ_and_the_first_folder_has_the_say(tmp_path):
    folders = [
        folder_of(
            tmp_path / name,
            content={"models": [{"model": "openai/m", "alias": "small", "concurrency": many}]},
        )
        for name, many in (("a", 3), ("b", 4))
    ]
    merge_folders(folders, tmp_path / "out")
    assert load_sweep(tmp_path / "out" / "sweep.yaml").models[0].limits.concurrency == 3


def test_a_condition_is_for_all_that_any_of_the_folders_asks_like_this(tmp_path):
    folders = [
        folder_of(
            tmp_path / alias,
            content={
                "models": [{"model": f"openai/{alias}", "alias": alias}],
                "conditions": [{"name": "plain"}, {"name": "hard", "effort": "high", "models": [alias]}],
            },
        )
        for alias in ("a", "b")
    ]
    merge_folders(folders, tmp_path / "out")
    plain, hard = load_sweep(tmp_path / "out" / "sweep.yaml").conditions
    assert (plain.models, hard.models) == (None, {"a", "b"})


def test_models_of_one_alias_at_other_efforts_are_refused_whatever_a_condition_sets(tmp_path):
    hard = [{"name": "hard", "effort": "high"}]
    folders = [
        folder_of(
            tmp_path / effort,
            content={
                "models": [{"model": "openai/m", "alias": "small", "effort": effort}],
                "conditions": hard,
            },
        )
        for effort in ("low", "none")
    ]
    with pytest.raises(ConfigError, match="the alias 'small' for different models"):
        merge_folders(folders, tmp_path / "out")


def test_another_answer_to_the_same_problem_is_refused(tmp_path):
    folders = [folder_of(tmp_path / name) for name in "ab"]
    (copy,) = (folders[1] / "problems").glob("*.parquet")
    table = pq.read_table(copy)
    corrected = ["0", *table["expected"].to_pylist()[1:]]
    table = table.set_column(
        table.schema.get_field_index("expected"), table.schema.field("expected"), [corrected]
    )
    pq.write_table(table.replace_schema_metadata({b"asyncbench.schema_version": b"1"}), copy)
    with pytest.raises(ConfigError, match=r"1 problems have different answers in the folders.* regrade"):
        merge_folders(folders, tmp_path / "out")


@pytest.mark.parametrize("name", ["night", "day"], ids=["merged", "refused"])
def test_another_sweep_is_refused_and_a_folder_that_had_no_lock_has_none_afterwards(tmp_path, name):
    folders = [folder_of(tmp_path / folder) for folder in "ab"]
    for folder in folders:
        (folder / ".lock").unlink()
    (folders[1] / "manifest.json").write_text(f'{{"schema_version":1,"sweep":"{name}"}}')
    with (
        nullcontext()
        if name == "night"
        else pytest.raises(ConfigError, match=r"sweep 'night', and .* those of 'day'")
    ):
        merge_folders(folders, tmp_path / "out")
    assert [(folder / ".lock").exists() for folder in folders] == [False, False]
    assert (tmp_path / "out").exists() == (name == "night")


def test_a_lock_that_was_removed_while_somebody_waited_for_it_lets_nobody_write(tmp_path, monkeypatch):
    take = fcntl.flock

    def removed_meanwhile(descriptor, how):
        take(descriptor, how)
        (tmp_path / ".lock").unlink()

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    with pytest.raises(StoreError, match=r"\.lock"), locked(tmp_path):
        pass


def test_imported_results_are_refused(tmp_path):
    folders = [folder_of(tmp_path / name) for name in "ab"]
    (folders[1] / "manifest.json").write_text('{"schema_version":1,"sweep":"night","imported":true}')
    with pytest.raises(ConfigError, match="Import all the files into one folder"):
        merge_folders(folders, tmp_path / "out")


def test_a_folder_with_a_live_run_is_refused(tmp_path):
    folders = [folder_of(tmp_path / name) for name in "ab"]
    with locked(folders[1]), pytest.raises(StoreError, match=f"process {os.getpid()} is writing to"):
        merge_folders(folders, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", ["folder", "file"])
def test_a_folder_that_exists_is_refused(tmp_path, there):
    folders = [folder_of(tmp_path / name) for name in "ab"]
    (tmp_path / "out").mkdir() if there == "folder" else (tmp_path / "out").touch()
    with pytest.raises(ConfigError, match=r"exists\. Name a new folder with --out"):
        merge_folders(folders, tmp_path / "out")


def test_one_folder_alone_or_the_same_twice_is_refused(tmp_path):
    folder = folder_of(tmp_path / "a")
    for given in ([folder], [folder, folder], [folder, tmp_path / "a" / ".." / "a"]):
        with pytest.raises(ConfigError, match="at least two results folders"):
            merge_folders(given, tmp_path / "out")


def test_a_place_within_a_folder_that_is_merged_is_refused(tmp_path):
    folders = [folder_of(tmp_path / name) for name in "ab"]
    with pytest.raises(ConfigError, match=r"is inside .*\. Name a folder outside of those to merge"):
        merge_folders(folders, folders[0] / "out")


def test_a_damaged_part_ends_the_merge_and_nothing_is_left_of_it(tmp_path):
    folders = [folder_of(tmp_path / name, *made.answered(n)) for n, name in enumerate("ab")]
    part = next((folders[1] / "trials").rglob("*.parquet"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        merge_folders(folders, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_what_a_killed_merge_left_is_cleared_away_by_the_next(tmp_path):
    folders = [folder_of(tmp_path / name, *made.answered(n)) for n, name in enumerate("ab")]
    half = tmp_path / ".out.merging" / "trials" / "suite=nupa" / "model=small"
    half.mkdir(parents=True)
    (half / "part-000009.parquet").write_bytes(b"half")
    merge_folders(folders, tmp_path / "out")
    assert len(outcomes(tmp_path / "out")) == 2
    assert not (tmp_path / ".out.merging").exists()


@pytest.mark.long
def test_the_command_says_what_stood_twice(tmp_path):
    folders = [folder_of(tmp_path / name, *made.answered(1)) for name in "ab"]
    told = CliRunner().invoke(app, ["merge", *map(str, folders), "--out", str(tmp_path / "out")])
    assert "2 folders: 1 trials, 1 calls" in told.stdout
    assert "1 trials were in several folders" in told.stdout
    told = CliRunner().invoke(app, ["merge", *map(str, folders), "--out", str(tmp_path / "json"), "--json"])
    assert json.loads(told.stdout)["trials_twice"] == 1
