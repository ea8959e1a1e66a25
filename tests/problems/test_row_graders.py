"""A grader in a column: one file, several graders."""

import asyncio
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import asyncbench as ab
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.records import Outcome, Reply
from asyncbench.suites.table import grade
from tests.commands import asyncbench_here

COLUMNS = {"grader": "kind"}
ROWS = [
    ("How many?", "1,5", "number", "It is 1,5."),
    ("Which one?", "B", "choice", "The answer is (B)."),
    ("Which word?", "Paris", "text", "paris"),
    ("What behind the colon?", "x", "regex", "so: x"),
]
OPTIONS: dict[str, Any] = {"pattern": ": (.*)", "decimal": ","}


def csv(folder, rows=ROWS):
    path = folder / "own.csv"
    path.write_text("question,expected,kind\n" + "".join(f'{q},"{e}",{g}\n' for q, e, g, _ in rows))
    return path


def parquet(folder):
    names = ("question", "expected", "kind")
    table = pa.table({name: [row[n] for row in ROWS] for n, name in enumerate(names)})
    pq.write_table(table, folder / "own.parquet")
    return folder / "own.parquet"


@pytest.mark.parametrize("written", [csv, parquet])
def test_each_row_is_graded_by_the_grader_that_it_names(written, tmp_path):
    opened = open_set(written(tmp_path), suite="custom", columns=COLUMNS, **OPTIONS)
    problems = list(opened.read())
    grades = [
        grade(problem, Reply(text=reply))[0] for problem, (_, _, _, reply) in zip(problems, ROWS, strict=True)
    ]

    assert [(each.grader, each.outcome) for each in grades] == [
        (name, Outcome.CORRECT) for _, _, name, _ in ROWS
    ]
    assert [json.loads(problem.extra) for problem in problems] == [
        {"grader": "number", "decimal": ","},
        {"grader": "choice"},
        {"grader": "text"},
        {"grader": "regex", "pattern": ": (.*)"},
    ]
    assert opened.graders == ("number", "choice", "text", "regex")


def test_the_flags_of_a_run_need_no_grader_beside_a_column_of_graders(tmp_path):
    flags = ["--suite", "custom", "--columns", "grader=kind", "--decimal", ",", "--out", tmp_path / "out"]
    path = csv(tmp_path, [row for row in ROWS if row[2] != "regex"])
    ran = asyncbench_here("run", "--model", "simulated/oracle", "--problems", path, *flags)

    assert ran.returncode == 0, ran.stderr
    graders = ab.read_grades(tmp_path / "out")["grader"].to_pylist()
    assert {*graders} == {"choice", "number", "text"}


def test_inspect_counts_the_graders(tmp_path):
    inspected = ab.inspect_problems(csv(tmp_path), columns=COLUMNS, **OPTIONS)
    assert inspected.graders == {"number": 1, "choice": 1, "text": 1, "regex": 1}
    assert "each row names: number 1, choice 1, text 1, regex 1" in inspected.as_text()
    assert "grader: kind" in inspected.sweep
    assert "would be wrong" not in inspected.as_text()


def test_wrong_names_are_told_with_their_lines(tmp_path):
    rows = [ROWS[1], ("a?", "1", "nmber", ""), ("b?", "1", "", ""), ("c?", "1", "os:system", "")]
    with pytest.raises(ProblemSetError) as refusal:
        open_set(csv(tmp_path, rows), suite="custom", columns=COLUMNS)
    for line, why in {3: "unknown grader 'nmber'", 4: "no grader", 5: "'os:system' is a function"}.items():
        assert f"line {line}: column 'kind': {why}" in str(refusal.value)


def test_without_a_grader_and_a_column_it_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="needs a `grader`"):
        open_set(csv(tmp_path), suite="custom")


def test_a_row_that_names_none_is_graded_by_the_function_of_the_sweep_and_regrade_knows_all(tmp_path):
    csv(tmp_path, [("a?", "1", "", ""), ("b?", "2", "number", ""), ("c?", "B", "choice", "")])
    (tmp_path / "mine.py").write_text("def right(reply, problem):\n    return True\n")
    (tmp_path / "own.yaml").write_text(
        "name: own\n"
        "problems: [{path: own.csv, suite: custom, columns: {grader: kind}, grader: 'mine:right'}]\n"
        f"models: [simulated/oracle]\nout: {tmp_path / 'out'}\n"
    )
    asyncio.run(ab.run_sweep(tmp_path / "own.yaml"))
    assert sorted(row["grader"] for row in ab.read_grades(tmp_path / "out").to_pylist()) == [
        "choice",
        "mine:right",
        "number",
    ]

    (tmp_path / "mine.py").write_text("def right(reply, problem):\n    return False\n")
    regraded = ab.regrade_folder(tmp_path / "out", write=True)
    assert {each.grader: each.changed for each in regraded.graders} == {
        "choice": 0,
        "mine:right": 1,
        "number": 0,
    }


@pytest.mark.parametrize("listed", [False, True])
def test_inspect_says_where_exact_takes_a_list_as_it_stands(listed, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text('question,expected\na?,"[""x"", ""y""]"\n')
    columns = {"expected": ["expected"]} if listed else None
    text = ab.inspect_problems(path, columns=columns, grader="exact").as_text()
    assert ("columns: {expected: [expected]}" in text and "as it stands" in text) != listed
