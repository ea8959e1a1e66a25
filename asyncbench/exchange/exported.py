"""What a results folder says of trials, as rows that every format is written from."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import StoreError
from asyncbench.exchange.recorded import problems_file
from asyncbench.problems import open_set
from asyncbench.providers.endpoints import is_simulated
from asyncbench.records import Outcome
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.manifest import IMPORTED, Manifest

Row = dict[str, Any]  # Any: the columns of `trials` and what `_added` adds
Asked = Mapping[str, tuple[int, tuple[str, ...]]]  # problem id → its place in the set, its operands

TRIALS = (
    *("trial_id", "run", "problem_id", "suite", "task", "length", "repeat", "condition", "condition_params"),
    *("model", "provider", "expected", "reply_text", "reasoning_text", "answer", "outcome"),
    *("input_tokens", "output_tokens", "cost_usd", "attempts", "latency_s", "finished_at"),
)
GRADES = ("trial_id", "classification", "abs_error")


def stamp(time: datetime) -> str:
    """Return a time, UTC, as llm_arithmetic writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def files_of(folder: Path, manifest: Manifest, suites: Collection[str]) -> list[list[Row]]:
    """Return the finished trials of some suites, those of each file to be: in the order of the problem set.

    A run that was imported is a file; so is each model of a sweep, and each of its conditions.

    Raises:
        StoreError: the folder cannot be read.
        ProblemSetError: its copies of the problems are damaged.
    """
    imported = bool(manifest.get(IMPORTED))
    rows = _rows(folder, suites, imported=imported)
    runs = {run: n for n, run in enumerate(manifest.get("runs", {}))}
    asked = {run: _asked(folder, run, imported=imported) for run in {row["run"] for row in rows}}
    several = len({row["condition"] for row in rows}) > 1
    for row in rows:
        row |= _added(row, asked[row["run"]], folder, several=several)
    file = itemgetter("run") if imported else itemgetter("run", "model", "condition")
    rows.sort(key=lambda row: (runs.get(row["run"], len(runs)), file(row), row["repeat"], row["place"]))
    return [list(of_a_file) for _, of_a_file in groupby(rows, key=file)]


def _rows(folder: Path, suites: Collection[str], *, imported: bool) -> list[Row]:
    """Return trials with the headline grade, and, where it was imported, the recorded accounting."""
    wanted = pc.field("suite").isin(pa.array(suites, pa.string()))
    trials = read_trials(folder, TRIALS, wanted)
    grades = read_grades(folder, GRADES, wanted & pc.field("headline"))
    table = trials.join(grades, "trial_id")
    if imported:
        table = table.join(read_attempts(folder, ["trial_id", "raw_usage"]), "trial_id")
    return table.to_pylist()


def _asked(folder: Path, run: str, *, imported: bool) -> Asked:
    """Return the problems of a run, in order; those of a sweep may be in any of the folder's sets."""
    sets = [folder / problems_file(run)] if imported else sorted((folder / "problems").glob("*.parquet"))
    asked: dict[str, tuple[int, tuple[str, ...]]] = {}
    for path in sets:
        for problem in open_set(path).read():
            asked.setdefault(problem.problem_id, (len(asked), problem.operands))
    return asked


def _added(row: Row, asked: Asked, folder: Path, *, several: bool) -> Row:
    """Return what formats need of a trial beside its columns."""
    if row["problem_id"] not in asked:
        raise StoreError(f"{folder}: no file in problems/ holds problem {row['problem_id']}: put it back")
    place, operands = asked[row["problem_id"]]
    recorded = row.get("raw_usage")
    return {
        "place": place,
        "operands": operands,
        "accounting": None if recorded is None else json.loads(recorded),  # None: it is our own trial
        "condition_params": json.loads(row["condition_params"]),
        "failed": row["outcome"] == Outcome.FAILED,
        "simulated": is_simulated(row["provider"]),
        "suffix": f"+{quote(row['condition'], safe='')}" if several else "",  # of a file's name
    }
