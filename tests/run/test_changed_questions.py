"""Question files that change between runs: problems/ has each problem once, and every trial finds its own."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

import asyncbench as ab
from asyncbench.analysis.counting import counted
from asyncbench.page.blocks import BLOCKS
from asyncbench.planning.belonging import current_copies
from asyncbench.problems.copies import set_apart
from asyncbench.reports.status.watching import health_of
from tests.docs.blocks import ROOT
from tests.store.dying import killed_copies
from tests.tiers import first_rows

ROWS: Final = tuple(f"What is {n} + 1?,{n + 1}" for n in range(12))
File = tuple[str, str, tuple[str, ...]]  # name, grader, rows


def changed(*rows: str) -> tuple[str, ...]:
    """Return the rows with others at their end."""
    return (*ROWS[: -len(rows)], *rows)


# What its file is like in each run of a sweep.
HISTORIES: Mapping[str, list[File]] = {
    "the same": [("one", "exact", ROWS), ("one", "exact", ROWS)],
    "another grader, twice": [("one", "exact", ROWS), ("one", "number", ROWS), ("one", "contains", ROWS)],
    "a corrected answer": [("one", "exact", ROWS), ("one", "exact", changed("What is 11 + 1?,13"))],
    "a corrected question": [("one", "exact", ROWS), ("one", "exact", changed("What is 11 and 1?,12"))],
    "two corrected questions": [
        ("one", "exact", ROWS),
        ("one", "exact", changed("What is 11 and 1?,12")),
        ("one", "number", changed("What is 10 and 1?,11", "What is 11 plus 1?,12")),
    ],
    "more questions": [("one", "exact", ROWS[:6]), ("one", "number", ROWS)],
    "fewer questions": [("one", "exact", ROWS), ("one", "exact", ROWS[:6])],
    "another name": [("one", "exact", ROWS), ("two", "number", ROWS)],
    "another name, and more questions": [("one", "exact", ROWS[:6]), ("two", "number", ROWS)],
    "and back": [("one", "exact", ROWS), ("one", "number", ROWS), ("one", "exact", ROWS)],
    "another name and back": [("one", "exact", ROWS), ("two", "number", ROWS), ("one", "exact", ROWS)],
}


def asked(folder: Path, file: File) -> Path:
    """Run the sweep with its file as it is now; return its results folder."""
    name, grader, rows = file
    (folder / f"{name}.csv").write_text("\n".join(["question,expected", *rows]))
    source = {"path": str(folder / f"{name}.csv"), "suite": "custom", "grader": grader}
    out = folder / "results" / "sums"
    sweep = {"name": "sums", "problems": [source], "models": ["simulated/oracle"], "out": str(out)}
    asyncio.run(ab.run_sweep(sweep))
    return out


def ids_in_files(folder: Path) -> list[str]:
    files = folder.glob("problems/*.parquet")
    return sorted(str(value) for path in files for value in pq.read_table(path)["problem_id"].to_pylist())


def in_older_layout(folder: Path) -> Path:
    """Put all copies side by side, as an earlier version did."""
    for path in folder.glob("earlier_problems/*.parquet"):
        if not (folder / "problems" / path.name).exists():
            shutil.move(path, folder / "problems")
    return folder


@pytest.mark.parametrize("history", first_rows(4, HISTORIES))
def test_each_problem_stands_once_and_every_trial_finds_it(tmp_path, history):
    for file in HISTORIES[history]:
        out = asked(tmp_path, file)
        trials = ab.read_trials(out, ["problem_set", "problem_id"])
        ids = ids_in_files(out)
        assert ids == sorted({*ids})
        assert {*trials["problem_id"].to_pylist()} <= {*ids}
        join = "SELECT count(*) AS trials FROM trials JOIN problems USING (problem_set, problem_id)"
        assert ab.sql(out, join)["trials"].to_pylist() == [len(trials)]
    assert health_of(out).sound
    assert ab.regrade_folder(out, write=True).kept == ()


@pytest.mark.long
@pytest.mark.parametrize("history", HISTORIES)
def test_a_regrade_goes_by_the_question_and_the_grader_that_the_sweep_names_now(tmp_path, history):
    for file in HISTORIES[history]:
        out = asked(tmp_path, file)
    ab.regrade_folder(out, write=True)
    _, grader, rows = HISTORIES[history][-1]
    questions = {row.rpartition(",")[0] for row in rows}
    texts = {row["problem_id"]: row["question"] for row in ab.read_problems(out).to_pylist()}
    graders = {
        row["grader"] for row in ab.read_trials(out).to_pylist() if texts[row["problem_id"]] in questions
    }
    assert graders == {grader}


NOTES: Mapping[str, list[str]] = {
    "the same": [],
    "another grader, twice": ["12 trials were graded by exact, but the sweep names contains now"],
    "a corrected answer": [],
    "more questions": ["6 trials were graded by exact, but the sweep names number now"],
    "another name": ["12 trials were graded by exact, but the sweep names number now"],
    "and back": [],
}


@pytest.mark.long
@pytest.mark.parametrize("history", NOTES)
def test_whoever_shows_grades_of_another_grader_says_so(tmp_path, history):
    for file in HISTORIES[history]:
        out = asked(tmp_path, file)
    expected = [f"{note}. Grade them again: `asyncbench regrade {out} --write`" for note in NOTES[history]]
    for style in (None, "standings"):
        report = ab.report(out) if style is None else ab.report(out, style)
        assert json.loads(report.as_json())["outgraded"] == expected
        assert all(note in report.as_text() for note in expected)
    assert all(note[:40] in ab.report(out, "morning").as_text() for note in expected)
    words = [note["words"] for note in counted(out, BLOCKS["head"])["notes"]]
    assert [note for note in words if "graded by" in note] == expected
    ab.regrade_folder(out, write=True)
    assert json.loads(ab.report(out).as_json())["outgraded"] == []


@pytest.mark.long
def test_the_documented_join_has_each_trial_once_in_pandas_duckdb_and_polars(tmp_path, monkeypatch):
    for file in HISTORIES["two corrected questions"]:
        out = asked(tmp_path, file)
    assert len([*out.glob("*problems/*.parquet")]) > 3
    questions = {row["problem_id"]: row["question"] for row in ab.read_problems(out).to_pylist()}
    trials = [
        (row["model"], row["outcome"], questions[row["problem_id"]])
        for row in ab.read_trials(out).to_pylist()
    ]
    recipe = (ROOT / "docs/howto/analyse.md").read_text().partition("## Join the questions")[2]
    blocks = [block.partition("```")[0] for block in recipe.partition("\n## ")[0].split("```python\n")[1:]]
    monkeypatch.chdir(tmp_path)
    for folder in (out, in_older_layout(out)):
        assert folder.is_dir()
        for block, rows_of in zip(blocks, ROWS_OF, strict=True):
            names: dict[str, object] = {}
            exec(f"import pandas as pd, duckdb, polars as pl\n{block}", names)  # noqa: S102  of our own page
            assert sorted(rows_of(names["joined"])) == sorted(trials)


COLUMNS = ["model", "outcome", "question"]
ROWS_OF = (
    lambda frame: [*frame[COLUMNS].itertuples(index=False, name=None)],
    lambda relation: relation.select(*COLUMNS).fetchall(),
    lambda frame: frame.select(COLUMNS).rows(),
)


@pytest.mark.long
def test_a_process_killed_at_any_step_leaves_every_problem_in_its_place(tmp_path):
    for file in HISTORIES["two corrected questions"]:
        out = asked(tmp_path, file)
    (current,) = {copy.path.name for copy in current_copies(out)}
    expected, files = ids_in_files(out), {path.name for path in out.glob("problems/*.parquet")}
    alive = in_older_layout(out)
    for path in files - {current}:  # they are made anew
        (alive / "problems" / path).unlink()

    work = partial(set_apart, current={current})
    for step, folder in killed_copies(alive, work, 1, 1):
        problems = ab.read_problems(folder, ["problem_id"])["problem_id"].to_pylist()
        assert {*problems} == {*expected}, f"killed at step {step}"
        work(folder)
        assert ids_in_files(folder) == expected, f"killed at step {step}"
        assert {path.name for path in folder.glob("problems/*.parquet")} == files
