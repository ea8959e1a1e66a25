"""A seeded sample: which problems it draws, and what asks them."""

import csv
import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet
import pytest

import asyncbench as ab
from asyncbench.config.entry import Place
from asyncbench.config.questions import sample_from
from asyncbench.config.sweep import as_mapping, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.planning.trials import trial_sources
from asyncbench.problems.opening import open_set
from asyncbench.problems.samples import Sample
from asyncbench.store.catalog import read_trials
from tests.commands import asyncbench_here
from tests.rows import each_row
from tests.sweep_files import run

KINDS = ["add"] * 60 + ["sub"] * 30 + ["mul"] * 10
ROWS = [(f"{n} + 1?", str(n + 1), kind) for n, kind in enumerate(KINDS)]
DRAWN_WITH_7 = ["68 + 1?", "55 + 1?", "75 + 1?"]  # the same on each machine and in each version


def written(path, rows=ROWS):
    names = ["question", "expected", "task"]
    if path.suffix == ".parquet":
        columns = zip(*rows, strict=True)
        pyarrow.parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
        return path
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def asked(path, **sample):
    """Return the questions of a sample of a file, in the order in which they are asked."""
    problems = open_set(path, suite="custom", grader="number", columns={"task": "task"})
    (source,) = trial_sources([replace(problems, sample=Sample(**sample))])
    assert sum(source.tasks["custom"].values()) == source.rows
    return [source.problem(n).question for n in range(source.rows)]


def test_a_sample_depends_on_seed_and_problems_and_not_on_order_or_form_of_the_file(tmp_path):
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    drawn = asked(written(tmp_path / "own.csv"), size=20, seed=7)

    assert drawn[:3] == DRAWN_WITH_7
    assert len({*drawn}) == 20
    assert asked(written(tmp_path / "mixed.parquet", shuffled), size=20, seed=7) == drawn
    assert asked(tmp_path / "own.csv", size=20, seed=8) != drawn


@each_row("by", [None, "task"])
def test_the_first_problems_of_a_sample_are_a_smaller_one(by, tmp_path_factory):
    path = written(tmp_path_factory.mktemp("sample") / "own.csv")
    largest = asked(path, size=1000, seed=7, by=by)

    assert sorted(largest) == sorted(question for question, *_ in ROWS)
    for size in (1, 2, 7, 20, 99):
        assert asked(path, size=size, seed=7, by=by) == largest[:size]


def test_by_task_each_task_has_its_share(tmp_path):
    path = written(tmp_path / "own.csv")
    kinds = {question: kind for question, _, kind in ROWS}
    for size in (10, 20, 50):
        tasks = Counter(kinds[question] for question in asked(path, size=size, by="task"))
        assert tasks == {"add": size * 6 // 10, "sub": size * 3 // 10, "mul": size // 10}


def test_a_problem_of_two_samples_is_asked_once(tmp_path):
    problems = open_set(written(tmp_path / "own.csv"), suite="custom", grader="number")
    sources = trial_sources([replace(problems, sample=Sample(size=60, seed=seed)) for seed in (1, 2)])
    questions = [source.problem(n).question for source in sources for n in range(source.rows)]

    assert 60 < len(questions) < 100
    assert len({*questions}) == len(questions)


@each_row(
    ("raw", "said"),
    [
        (0, "'size' must be more than 0, not 0"),
        ({"seed": 7}, "'size' is missing"),
        ({"size": 9, "by": "kind"}, "'by' must be 'task', not 'kind'"),
        ({"size": 9, "sead": 7}, "Did you mean 'seed'?"),
    ],
)
def test_a_wrong_sample_is_refused(raw, said):
    with pytest.raises(ConfigError) as caught:
        sample_from(raw, place=Place(source="sample"))
    assert said in str(caught.value)


def sweep_file(folder, sample=None):
    path = folder / "own.yaml"
    drawn = "" if sample is None else f", sample: {sample}"
    path.write_text(
        "name: own\nproblems: "
        f"[{{path: own.csv, suite: custom, grader: number, columns: {{task: task}}{drawn}}}]\n"
        f"models: [simulated/oracle, simulated/noisy]\nout: {folder / 'out'}\n"
    )
    return path


@pytest.mark.parametrize("sample", [20, "{size: 20, seed: 7, by: task}"])
def test_a_source_has_a_sample_that_is_written_down_and_read_back(sample, tmp_path):
    written(tmp_path / "own.csv")
    sweep = load_sweep(sweep_file(tmp_path, sample))

    (source,) = sweep.problems
    assert source.sample is not None
    assert load_sweep(as_mapping(sweep)).problems[0].sample == source.sample
    plan = ab.plan(sweep)
    assert [model.left for model in plan.models] == [20, 20]
    assert "own: 20 of 100 problems, drawn at random with seed" in plan.as_text()
    assert [model.left for model in ab.plan(sweep, sample=30).models] == [30, 30]


@pytest.mark.long
def test_a_sample_is_the_same_for_each_model_and_when_it_is_resumed_or_grows(tmp_path):
    written(tmp_path / "own.csv")
    path, out = sweep_file(tmp_path), tmp_path / "out"
    drawn = asked(tmp_path / "own.csv", size=20, seed=7)

    def asked_of(model):
        questions = {row["problem_id"]: row["question"] for row in ab.read_problems(out).to_pylist()}
        trials = read_trials(out, filters=[("model", "=", model)])
        return {questions[problem_id] for problem_id in trials["problem_id"].to_pylist()}

    # a part of it, then the rest: the command says the sample
    ran = asyncbench_here("run", path, "--sample", 20, "--seed", 7, "--limit", 5)
    assert (ran.returncode, "20 of 100 problems, drawn at random with seed 7" in ran.stderr) == (0, True), (
        ran.stderr
    )
    assert asked_of("simulated/oracle") == {*drawn[:5]}
    assert asyncbench_here("run", path, "--sample", 20, "--seed", 7).returncode == 0
    assert asked_of("simulated/oracle") == asked_of("simulated/noisy") == {*drawn}

    # the folder has it; a larger one adds to it; another one is refused
    assert run(out / "sweep.yaml").exit == 0
    for other in ({"size": 20, "seed": 8}, 10):
        with pytest.raises(ConfigError, match="which may lack some"):
            run(path, sample=other)
    assert run(path, sample={"size": 30, "seed": 7}).exit == 0
    assert asked_of("simulated/noisy") == {*asked(tmp_path / "own.csv", size=30, seed=7)}
