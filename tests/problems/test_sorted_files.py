"""Files that are sorted by a column: which of its kinds a limit leaves out is said."""

import csv
import json

import pyarrow.parquet
import pytest

import asyncbench as ab
from asyncbench.problems.opening import open_set
from asyncbench.problems.sorted_files import limit_note
from tests.commands import asyncbench_here

ADD, SUB, MUL = ["add"] * 20, ["sub"] * 20, ["mul"] * 20
FILES = {  # the kinds of the rows, a limit, and what is said of the kinds; None: nothing
    "the first of three": ([*ADD, *SUB, *MUL], 20, "20 of 60, with add. Left out: sub, mul."),
    "half of the first": ([*ADD, *SUB, *MUL], 10, "10 of 60, with add. Left out: sub, mul."),
    "two of three": ([*ADD, *SUB, *MUL], 21, "21 of 60, with add, sub. Left out: mul."),
    "some of each": ([*ADD, *SUB, *MUL], 41, None),
    "all": ([*ADD, *SUB, *MUL], 60, None),
    "mixed": (["add", "sub", "mul"] * 20, 20, None),
    "one kind": (ADD, 5, None),
    "another for each row": ([f"row {n}" for n in range(60)], 20, None),
    "many": ([f"topic {n // 6}" for n in range(60)], 6, "topic 1, topic 2, topic 3 and 6 more."),
}


def written(path, kinds):
    rows = [{"question": f"{n} + 1?", "expected": str(n + 1), "kind": kind} for n, kind in enumerate(kinds)]
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    return path


@pytest.mark.parametrize(("kinds", "limit", "said"), FILES.values(), ids=FILES)
def test_what_a_limit_leaves_out_of_a_sorted_file_is_said(kinds, limit, said, tmp_path):
    path = written(tmp_path / "own.csv", kinds)
    note = limit_note(open_set(path, suite="custom", grader="number"), limit)
    if said is None:
        assert note is None
    else:
        assert note is not None
        assert f"{path} is sorted by its column 'kind'" in note
        assert said in note
        assert "`columns: {task: kind}`" in note


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_sorted_file_is_known_in_each_form(form, tmp_path):
    path = written(tmp_path / f"own.{form}", [*ADD, *SUB])
    assert "Left out: sub." in (limit_note(open_set(path, suite="custom", grader="number"), 20) or "")


def test_tasks_are_asked_in_turn_and_sorted_answers_are_told(tmp_path):
    path = written(tmp_path / "own.csv", [*ADD, *SUB])
    tasks = open_set(path, suite="custom", grader="number", columns={"task": "kind"})
    assert limit_note(tasks, 20) is None
    answers = open_set(path, suite="custom", grader="exact", columns={"expected": "kind"})
    note = limit_note(answers, 20)
    assert note is not None
    assert note.endswith("Left out: sub. Shuffle the rows.")


def test_the_plan_and_the_run_say_it(tmp_path):
    written(tmp_path / "own.csv", [*ADD, *SUB])
    sweep = tmp_path / "own.yaml"
    sweep.write_text(
        "name: own\nproblems: [{path: own.csv, suite: custom, grader: number}]\n"
        f"models: [simulated/oracle]\nout: {tmp_path / 'out'}\n"
    )
    assert any("Left out: sub." in warning for warning in ab.plan(sweep, limit=20).warnings)
    assert not any("is sorted" in warning for warning in ab.plan(sweep).warnings)
    ran = asyncbench_here("run", sweep, "--limit", 2)
    assert (ran.returncode, "Left out: sub." in " ".join(ran.stderr.split())) == (0, True), ran.stderr
