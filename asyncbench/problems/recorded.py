"""A file of recorded answers: the facts of trials that others made, without the texts of their replies.

One row for each trial: who was asked what, the answer that was read, its outcome, tokens, seconds and price.
Its problems can be asked again, and its answers replayed by the simulator.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.errors import ProblemSetError
from asyncbench.problems.files import opened_parquet
from asyncbench.records import Draft, Outcome
from asyncbench.suites.llm_arithmetic import answer, draft_arithmetic

FACTS_KEY: Final = "asyncbench.recorded"  # of the file's metadata: JSON with `suite` and `source`
_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "run": _TEXT,
    "model": _TEXT,
    "day": pa.date32(),  # UTC
    "at": pa.timestamp("us", "UTC"),  # when the answer was there
    "task": _TEXT,
    "length": pa.int32(),  # digits
    "lhs": _TEXT,
    "rhs": _TEXT,
    "answer": _TEXT,  # as `layered` reads it; NULL: none was read
    "legacy": _TEXT,  # as `legacy` reads it; NULL: none
    "bare": pa.bool_(),  # the reply was the number and nothing else
    "outcome": _TEXT,  # correct, wrong, no_answer or failed
    "input_tokens": _WHOLE,
    "output_tokens": _WHOLE,
    "seconds": pa.float32(),  # since the run's previous reply; NULL: unknown, or a pause
    "cost_usd": _REAL,
    "attempts": pa.int32(),  # NULL: not recorded
    "extra_context": pa.int32(),  # thousand tokens of small talk before the question; NULL: not recorded
    "input_usd_per_mtok": _REAL,  # NULL: no price is known
    "output_usd_per_mtok": _REAL,
}
FACTS: Final = pa.schema(_COLUMNS)
_AS_THEY_ARE: Final = (
    *("run", "model", "input_tokens", "output_tokens", "seconds", "at", "cost_usd", "attempts"),
    "extra_context",
)
SUITE: Final = "llm_arithmetic"  # whose questions two operands make


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """The selection of one run in a file of recorded answers."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The model of a run, and the days of its answers."""

    run: str
    model: str
    trials: int
    first: date
    last: date


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """The facts of one recorded answer."""

    run: str
    model: str
    draft: Draft
    failed: bool  # no reply came
    text: str  # an invented one, that each grader reads as it read the recorded one
    input_tokens: int
    output_tokens: int
    seconds: float | None  # None: unknown
    at: datetime
    cost_usd: float
    attempts: int | None
    extra_context: int | None


def recorded_runs(path: Path) -> tuple[RunFacts, ...]:
    """Return the runs of a file, in its order.

    Raises:
        ProblemSetError: the file is missing or holds no recorded answers.
    """
    table = _read(path, ["run", "model", "day"])
    summed = table.group_by(["run", "model"], use_threads=False).aggregate(
        [("day", "count"), ("day", "min"), ("day", "max")]
    )
    return tuple(
        RunFacts(
            run=row["run"],
            model=row["model"],
            trials=row["day_count"],
            first=row["day_min"],
            last=row["day_max"],
        )
        for row in summed.to_pylist()
    )


def run_called(path: Path, name: str) -> RunFacts | None:
    """Return the run of this name, or else the only run of the model of this name; raises likewise."""
    runs = recorded_runs(path)
    named = [run for run in runs if run.run == name] or [run for run in runs if run.model == name]
    return named[0] if len(named) == 1 else None


def runs_said(path: Path) -> str:
    """Return a sentence on the models in a file; raises likewise."""
    return f"Its models: {', '.join(run.model for run in recorded_runs(path))}."


def recorded_answers(path: Path, run: str | None = None) -> Iterator[AnswerFacts]:
    """Yield the answers of a run, or of all, as they were given; raises as `recorded_runs` does."""
    rows = _read(path, [*_AS_THEY_ARE, "task", "length", "lhs", "rhs", "answer", "legacy", "bare", "outcome"])
    for row in (rows if run is None else rows.filter(pc.field("run") == run)).to_pylist():
        task, lhs, rhs = row["task"], row["lhs"], row["rhs"]
        try:
            expected = answer(task, lhs, rhs)
        except (KeyError, ValueError) as error:
            raise ProblemSetError(
                f"{path}: {task} of {lhs!r} and {rhs!r} is no problem of {SUITE}"
            ) from error
        if expected is None:
            raise ProblemSetError(f"{path}: {task} of {lhs!r} and {rhs!r} has no exact answer")

        # a text of which the graders read these answers; `strict` reads none unless it is `bare`
        layered, legacy = row["answer"], row["legacy"]
        if layered is None:  # what `layered` takes for a thought without an end, `legacy` reads
            text = "" if legacy is None else f"<think>{legacy}"
        else:
            text = layered if row["bare"] else rf"\boxed{{{layered}}} {legacy or ''}"
        yield AnswerFacts(
            draft=draft_arithmetic(task, row["length"], lhs, rhs, expected=expected),
            failed=row["outcome"] == Outcome.FAILED,
            text=text,
            **{name: row[name] for name in _AS_THEY_ARE},
        )


def run_drafts(path: Path, selection: OneRun) -> Iterator[Draft]:
    """Yield the problems that a run was asked; raises as `recorded_runs` does."""
    return (recorded.draft for recorded in recorded_answers(path, selection.run))


def _read(path: Path, columns: list[str]) -> pa.Table:
    with opened_parquet(path) as file:
        schema = file.schema_arrow
        facts = json.loads((schema.metadata or {}).get(FACTS_KEY.encode(), b"{}"))
        if facts.get("suite") != SUITE or not set(FACTS.names) <= set(schema.names):
            raise ProblemSetError(
                f"{path} is not a file of recorded answers. Name one, such as data/recorded.parquet, or a "
                "results folder."
            )
        return file.read(columns)
