"""Trials of a results folder as rows, from which every format is written."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import pyarrow.compute as pc

from asyncbench.errors import ConfigError, StoreError
from asyncbench.problems.opening import open_set
from asyncbench.providers.endpoints import is_simulated
from asyncbench.published.recorded import problems_file
from asyncbench.records import Condition, Outcome
from asyncbench.store.catalog import read_attempts, read_grades, read_trials
from asyncbench.store.manifest import IMPORTED, Manifest
from asyncbench.store.schema import AT_REST, ENTRANT

Row = dict[str, Any]  # Any: the columns of `trials` and what `_added` adds
Asked = Mapping[str, tuple[int, tuple[str, ...], str]]  # problem id → place in the set, operands, question

TRIALS = (
    *("trial_id", "run", "problem_id", "suite", "task", "variant", "representation", "length", "repeat"),
    *("condition", "condition_params", "style", "model", "provider", "expected"),
    *("reply_text", "reasoning_text", "answer", "outcome"),
    *("input_tokens", "output_tokens", "cost_usd", "attempts", "latency_s", "finished_at"),
)
GRADES = ("trial_id", "classification", "abs_error")
OF_A_PART = [*ENTRANT, "suite", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToWrite:
    """A file that an export is to write."""

    name: str
    write: Callable[[BinaryIO], tuple[int, Sequence[str]]]  # → its trials, and what it cannot say as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """The trials that one file is to hold: of a run that was imported, or of a model under a condition."""

    run: str
    model: str
    condition: str
    imported: bool  # then it is the whole run, of whatever models
    suffix: str  # of a file's name: the condition, where there are several
    last: datetime  # when the last of them was finished


def stamp(time: datetime) -> str:
    """Return a time, UTC, as llm_arithmetic writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def unsaid(rows: Iterable[Row], told_keys: Callable[[Row], set[str]]) -> list[str]:
    """Return the note about conditions of which a format tells only what is `said`."""
    if missing := {key for row in rows for key in row["asked"].keys() - told_keys(row["asked"])}:
        return [f"the format cannot tell that it was asked with {', '.join(sorted(missing))}"]
    return []


def parts_of(
    folder: Path, manifest: Manifest, suites: Collection[str], tasks: Collection[str]
) -> list[ExportedPart]:
    """Return what the finished trials of some suites make files of: runs in their order, then by name.

    Answers to loads are left out: other projects know no steps, and would count a problem several times.

    Raises:
        ConfigError: they are of other tasks than the format knows, or there are none.
        StoreError: the folder cannot be read.
    """
    trials = read_trials(folder, [*OF_A_PART, "finished_at"], AT_REST & pc.field("suite").isin(list(suites)))
    rows = trials.group_by(OF_A_PART).aggregate([("finished_at", "max")]).to_pylist()
    if not rows:
        raise ConfigError(
            f"{folder} has no finished trial of {', '.join(suites)}, so there is nothing to export. "
            "Answers to loads are left out."
        )
    if unknown := sorted({row["task"] for row in rows} - set(tasks)):
        raise ConfigError(f"{folder} has tasks that this format cannot hold: {', '.join(unknown)}")
    several = len({row["condition"] for row in rows}) > 1
    imported = bool(manifest.get(IMPORTED))
    order = {run: n for n, run in enumerate(manifest.get("runs", {}))}
    file = itemgetter("run") if imported else itemgetter("run", "model", "condition")
    rows.sort(key=lambda row: (order.get(row["run"], len(order)), file(row)))
    return [
        ExportedPart(
            run=first["run"],
            model=first["model"],
            condition=first["condition"],
            imported=imported,
            suffix=f"+{quote(first['condition'], safe='')}" if several else "",
            last=max(row["finished_at_max"] for row in (first, *others)),
        )
        for first, *others in (list(of_a_file) for _, of_a_file in groupby(rows, key=file))
    ]


def rows_of(part: ExportedPart, folder: Path, suites: Collection[str], problems: Asked) -> list[Row]:
    """Return the trials of a file, in the order of the problem set.

    Each has its headline grade and, where it was imported, the recorded accounting.

    Raises:
        StoreError: the folder cannot be read, or the problem of a trial is not in it.
    """
    wanted = AT_REST & pc.field("suite").isin(list(suites)) & (pc.field("run") == part.run)
    if not part.imported:
        wanted &= (pc.field("model") == part.model) & (pc.field("condition") == part.condition)
    trials = read_trials(folder, TRIALS, wanted)
    same = pc.field("trial_id").isin(trials["trial_id"].combine_chunks())
    table = trials.join(read_grades(folder, GRADES, same & pc.field("headline")), "trial_id")
    if part.imported:
        table = table.join(read_attempts(folder, ["trial_id", "raw_usage"], same), "trial_id")
    rows = [_added(row, problems, folder) for row in table.to_pylist()]
    return sorted(rows, key=itemgetter("repeat", "place"))


def asked_in(run: str, folder: Path, *, imported: bool) -> Asked:
    """Return the problems of a run, in order; those of a sweep may be in any of the folder's sets.

    Raises:
        ProblemSetError: the folder's copies of the problems are damaged.
    """
    sets = [folder / problems_file(run)] if imported else sorted((folder / "problems").glob("*.parquet"))
    problems: dict[str, tuple[int, tuple[str, ...], str]] = {}
    for path in sets:
        for problem in open_set(path).read():
            problems.setdefault(problem.problem_id, (len(problems), problem.operands, problem.question))
    return problems


def _added(row: Row, problems: Asked, folder: Path) -> Row:
    """Return a trial with what formats need beside its columns."""
    if row["problem_id"] not in problems:
        raise StoreError(
            f"{folder}: problems/ lacks problem {row['problem_id']}. Put back the file that holds it."
        )
    place, operands, question = problems[row["problem_id"]]
    recorded = row.get("raw_usage")
    # What a condition adds to the bare question; the digest only tells one text from another.
    params = {k: value for k, value in json.loads(row["condition_params"]).items() if k != "turns_digest"}
    style = {} if row["style"] == Condition().style else {"style": row["style"]}
    return row | {
        "place": place,
        "operands": operands,
        "question": question,
        "accounting": None if recorded is None else json.loads(recorded),  # None: it is our own trial
        "asked": params | style,
        "failed": row["outcome"] == Outcome.FAILED,
        "simulated": is_simulated(row["provider"]),
    }
