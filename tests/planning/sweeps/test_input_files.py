"""Where the input files of a sweep are looked for: beside the sweep file, then in the working directory."""

import asyncio
import json
import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import asyncbench as ab
from asyncbench.config.sweep import sweep_from
from asyncbench.errors import AsyncbenchError, ConfigError, ProblemSetError
from asyncbench.run.summary import Exit

NAMED = ("problems.parquet", "shots.jsonl", "talk.json", "recorded")
SAID = {
    "name": "s",
    "problems": [{"path": "problems.parquet", "suite": "custom", "grader": "number"}],
    "models": [{"model": "simulated/x", "replay": "recorded"}],
    "conditions": [{"name": "told", "shots": "shots.jsonl", "context": "talk.json"}],
    "out": "out",
}
WITHOUT_REPLAY = SAID | {"models": ["simulated/oracle"]}


def own_problems(folder, rows):
    table = pa.table({"question": [f"{i} + 1?" for i in range(rows)], "expected": range(1, rows + 1)})
    pq.write_table(table, folder / "problems.parquet")


def say(folder, place):
    """Write worked examples and small talk that name a place."""
    (folder / "shots.jsonl").write_text(json.dumps({"question": "Where?", "answer": place}))
    turns = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": place}]
    (folder / "talk.json").write_text(json.dumps({"messages": turns}))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A results folder of 4 trials, to be replayed. Not to be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    own_problems(folder, 4)
    problems = {"path": str(folder / "problems.parquet"), "suite": "custom", "grader": "number"}
    asked = {"name": "x", "problems": [problems], "models": ["simulated/oracle"], "out": str(folder / "x")}
    asyncio.run(ab.run_sweep(sweep_from(asked)))
    return folder / "x"


@pytest.fixture
def places(tmp_path, monkeypatch, recorded):
    """A folder with a sweep file, and another that is the working directory; both with all that it names."""
    beside, here = tmp_path / "beside", tmp_path / "here"
    for folder, rows in ((beside, 3), (here, 4)):
        folder.mkdir()
        own_problems(folder, rows)
        say(folder, folder.name)
        shutil.copytree(recorded, folder / "recorded")
    (beside / "sweep.yaml").write_text(yaml.safe_dump(SAID))
    monkeypatch.chdir(here)
    return beside, here


def taken(file):
    """What `plan`, `run` and `doctor` read: the places that the files of a sweep name, and its problems."""
    found = planned(ab.load_sweep(file))
    summary = asyncio.run(ab.run_sweep(file))
    assert summary.exit is Exit.COMPLETE
    assert [counters.done for counters in summary.models.values()] == [found[1]]
    (checkup,) = asyncio.run(ab.doctor(str(file)))
    assert checkup.fine
    return found


def planned(sweep):
    turns = sweep.conditions[0].turns
    return {turn.content for turn in turns if turn.role == "assistant"}, ab.plan(sweep).models[0].trials


def remove(folder):
    for name in NAMED:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()


def test_what_is_beside_the_sweep_file_comes_first(places):
    beside, here = places
    assert taken(beside / "sweep.yaml") == ({"beside"}, 3)
    assert (here / "out" / "manifest.json").exists()  # results are relative to the working directory
    assert not (beside / "out").exists()


def test_what_is_not_there_is_taken_from_the_working_directory(places):
    beside, _ = places
    remove(beside)
    assert taken(beside / "sweep.yaml") == ({"here"}, 4)


def test_a_sweep_from_python_knows_the_working_directory_alone(places):
    _, here = places
    assert planned(sweep_from(SAID)) == ({"here"}, 4)
    remove(here)
    with pytest.raises(ConfigError, match=r"was not found\. asyncbench looked in the working directory /"):
        sweep_from(SAID)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("ask", [ab.plan, lambda file: asyncio.run(ab.run_sweep(file))], ids=["plan", "run"])
def test_an_input_that_is_in_neither_place_is_refused_and_both_are_named(places, name, ask):
    beside, here = places
    for folder in places:
        (folder / name).rename(folder / "elsewhere")
    kind = ProblemSetError if name.endswith("parquet") else ConfigError
    looked = f"looked in {beside}, where the sweep file is, and in the working directory {here}. "
    with pytest.raises(kind, match=re.escape(f"{name} was not found. asyncbench {looked}")):
        ask(beside / "sweep.yaml")
    assert not (here / "out").exists()


@pytest.mark.parametrize("place", [0, 1], ids=["beside", "here"])
def test_a_typing_error_in_a_path_is_answered_with_the_name_that_is_there(places, place):
    for folder in (places[0], places[1]):
        (folder / "problems.parquet").unlink()
    own_problems(places[place], 1)
    (places[place] / "problems.parquet").rename(places[place] / "problem.parquet")
    with pytest.raises(ProblemSetError, match=r"not found.* Did you mean problem\.parquet\? Correct"):
        ab.plan(places[0] / "sweep.yaml")


@pytest.mark.parametrize("name", ["shots.jsonl", "recorded"])
def test_doctor_refuses_what_run_refuses(places, name):
    beside, _ = places
    for folder in places:
        (folder / name).rename(folder / "elsewhere")
    with pytest.raises(
        AsyncbenchError, match=re.escape(f"{name} was not found. asyncbench looked in {beside}")
    ):
        asyncio.run(ab.doctor(str(beside / "sweep.yaml")))


def test_where_its_files_lie_changes_no_trial(places):
    own_problems(places[0], 4)
    seen = []
    for folder in places:
        say(folder, "anywhere")
        (folder / "sweep.yaml").write_text(yaml.safe_dump(WITHOUT_REPLAY | {"out": f"out-{folder.name}"}))
    for folder in places:
        asyncio.run(ab.run_sweep(folder / "sweep.yaml", limit=3))
        trials = ab.read_trials(f"out-{folder.name}", ["trial_id", "problem_set", "condition_params"])
        seen.append(sorted(map(str, trials.to_pylist())))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 3


def test_the_sweep_kept_with_the_results_finds_its_inputs_again(places):
    beside, here = places
    remove(here)
    (beside / "sweep.yaml").write_text(yaml.safe_dump(WITHOUT_REPLAY))
    asyncio.run(ab.run_sweep(beside / "sweep.yaml", limit=2))
    (left,) = ab.plan("out/sweep.yaml").models
    assert (left.trials, left.done) == (3, 2)
