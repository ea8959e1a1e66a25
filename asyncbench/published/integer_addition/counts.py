"""The figures of the "Integer addition" benchmark and its two string tasks, counted from a results folder.

Published is the success rate over recorded results: a call that failed is in neither number. Beside it stands
the rate over all tries, where such a call is no success.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.problems import ROWS_AT_ONCE, opened_parquet, read_batches
from asyncbench.records import Outcome
from asyncbench.results import NothingToShowError, in_order
from asyncbench.store import ENTRANT, Manifest, groups_of, planned, read_grades, read_trials
from asyncbench.suites import carries

ADDITION = "integer_addition"
SUITES = ("string_reversal", ADDITION, "string_rehearsal")  # in the order in which they are asked
REASONS = ("wrong", "not_a_number", "empty", "error")

# where each bin starts; it ends where the next one starts
LENGTHS = {
    "string_reversal": (1, 6, 11, 16, 21, 26, 31),  # published: 3 to 30
    ADDITION: (1, 6, 11, 16, 21, 26, 31),  # 2 to 30
    "string_rehearsal": (1, 101, 201, 301, 401, 501, 601),  # 10 to 600
}
CARRIES = (0, 1, 3, 6, 10, 15, 20)  # of two numbers with 30 digits: 15 on average

TRIALS = (
    *("trial_id", *ENTRANT, "suite", "problem_id", "provider", "length", "outcome"),
    *("reasoning_text", "latency_s"),
)
GRADES = ("trial_id", "grader", "grader_version", "classification", "reason", "format_ok")


class Key(NamedTuple):
    """What one line is about."""

    run: str
    model: str
    condition: str
    suite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBin:
    """The recorded results of problems of a certain size."""

    first: int | None  # the smallest size; None: the size is not known
    last: int | None  # the largest size; None: there is none
    results: int
    successes: int
    success_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """The figures of one run × model × condition in one suite."""

    run: str
    model: str
    condition: str
    suite: str
    planned: int | None  # None: the manifest does not say
    tries: int  # as planned; trials where that is not known
    trials: int
    results: int  # trials with a reply: what the published program records
    successes: int
    success_rate: float | None  # over results, as published
    success_rate_of_tries: float | None
    truncated: int
    reasons: dict[str, int]  # of trials without success
    format_ok: int  # results that are nothing but an answer, in the form asked for
    format_ok_share: float | None  # over results
    latency_p50_s: float | None
    latency_mean_s: float | None
    latency_p95_s: float | None
    reasoning_p50_characters: float | None  # of the replies that show any
    by_length: tuple[SizeBin, ...]  # digits of the longer number, as drawn where that is known; characters
    by_carries: tuple[SizeBin, ...]  # of additions alone


# ── what the folder says ─────────────────────────────────────────────────────────────────────


def read_graded(folder: Path | str) -> pa.Table:
    """Return the trials of our suites with their headline grades and what figures are made of.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    trials = _trials(folder)
    if not len(trials):
        raise NothingToShowError.of_suites(folder, SUITES)
    return trials.join(_carries(Path(folder), trials), "problem_id", use_threads=False)


def without_operands(trials: pa.Table) -> int:
    """Return of how many additions no problem file tells the operands."""
    unknown = trials.filter((pc.field("suite") == ADDITION) & pc.field("carries").is_null())
    return len(distinct(unknown, "problem_id"))


def distinct(trials: pa.Table, column: str) -> list[Any]:  # Any: of the column's type
    """Return the values of a column, each once."""
    return trials[column].unique().to_pylist()


def _trials(folder: Path | str) -> pa.Table:
    ours = pc.field("suite").isin(pa.array(SUITES, pa.string()))
    trials = read_trials(folder, TRIALS, ours)
    characters = pc.utf8_length(trials["reasoning_text"])
    shown = pc.if_else(pc.greater(characters, pa.scalar(0)), characters, pa.scalar(None, pa.int32()))
    trials = trials.drop_columns(["reasoning_text"]).append_column("reasoning_characters", shown)
    grades = read_grades(folder, GRADES, ours & pc.field("headline"))
    graded = trials.join(grades, "trial_id", use_threads=False)
    return graded.append_column("success", pc.equal(graded["classification"], pa.scalar("success")))


def _carries(folder: Path, trials: pa.Table) -> pa.Table:
    """Return the carries of the additions that were asked, each once, by problem_id; NULL where unknown."""
    asked = set(distinct(trials.filter(pc.field("suite") == ADDITION), "problem_id"))
    operands = {problem_id: those for problem_id, those in _additions(folder) if problem_id in asked}
    found = [_carries_or_unknown(those) for those in operands.values()]
    return pa.table(
        {"problem_id": pa.array(list(operands), pa.string()), "carries": pa.array(found, pa.int32())}
    )


def _additions(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the problem_id and the operands of every addition in the problem files of a folder."""
    for path in sorted((folder / "problems").glob("*.parquet")):
        with opened_parquet(path) as file:
            for batch in read_batches(
                file, ["problem_id", "suite", "operands"], path=path, rows=ROWS_AT_ONCE
            ):
                ours = batch.filter(pc.equal(batch["suite"], pa.scalar(ADDITION)))
                yield from zip(ours["problem_id"].to_pylist(), ours["operands"].to_pylist(), strict=True)


def _carries_or_unknown(operands: Sequence[str]) -> int | None:
    try:
        return carries(operands)
    except ValueError:  # a set that others made may hold anything
        return None


# ── figures ──────────────────────────────────────────────────────────────────────────────────


def lines_of(trials: pa.Table, manifest: Manifest) -> tuple[RunLine, ...]:
    """Return a line for each group of trials, and for each that was planned and has none yet.

    They stand by suite, then as the manifest has runs, models and conditions.
    """
    plan = _plan(manifest)
    groups = {Key(**group): rows for group, rows in groups_of(trials, Key._fields)}
    keys = groups.keys() | plan.keys()
    order = in_order({key[:3] for key in keys}, manifest)
    ordered = sorted(keys, key=lambda key: (SUITES.index(key.suite), order.index(key[:3])))
    return tuple(_line(key, groups.get(key, trials.slice(0, 0)), plan.get(key)) for key in ordered)


def _plan(manifest: Manifest) -> dict[Key, int]:
    """Return how many trials were planned."""
    return {
        Key(*asked, suite): sum(tasks.values())
        for asked, suites in planned(manifest).items()
        for suite, tasks in suites.items()
        if suite in SUITES
    }


def _line(key: Key, trials: pa.Table, plan: int | None) -> RunLine:
    results = trials.filter(pc.field("outcome") != Outcome.FAILED.value)
    successes, format_ok = _sum(results, "success"), _sum(results, "format_ok")
    tries = max(plan or 0, len(trials))
    return RunLine(
        **key._asdict(),
        planned=plan,
        tries=tries,
        trials=len(trials),
        results=len(results),
        successes=successes,
        success_rate=_share(successes, len(results)),
        success_rate_of_tries=_share(successes, tries),
        truncated=len(trials.filter(pc.field("outcome") == Outcome.TRUNCATED.value)),
        reasons=_reasons(trials),
        format_ok=format_ok,
        format_ok_share=_share(format_ok, len(results)),
        latency_p50_s=_quantile(results, "latency_s", 0.5),
        latency_mean_s=pc.mean(results["latency_s"]).as_py(),
        latency_p95_s=_quantile(results, "latency_s", 0.95),
        reasoning_p50_characters=_quantile(results, "reasoning_characters", 0.5),
        by_length=_bins(results, "length", LENGTHS[key.suite]),
        by_carries=_bins(results, "carries", CARRIES) if key.suite == ADDITION else (),
    )


def _sum(results: pa.Table, flag: str) -> int:
    return int(pc.sum(results[flag], min_count=0).as_py())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _quantile(results: pa.Table, column: str, share: float) -> float | None:
    (value,) = pc.quantile(results[column], share).to_pylist()
    return value


def _reasons(trials: pa.Table) -> dict[str, int]:
    counts = trials.group_by("reason", use_threads=False).aggregate([([], "count_all")])
    found = {row["reason"]: row["count_all"] for row in counts.to_pylist() if row["reason"]}
    return dict.fromkeys(REASONS, 0) | dict(sorted(found.items()))


def _bins(results: pa.Table, column: str, starts: Sequence[int]) -> tuple[SizeBin, ...]:
    """Return the bins that hold any results, by size; that of unknown size last."""
    sums = results.group_by(column, use_threads=False).aggregate([([], "count_all"), ("success", "sum")])
    counts, successes = Counter[int | None](), Counter[int | None]()
    for row in sums.to_pylist():
        first = _start(row[column], starts)
        counts[first] += row["count_all"]
        successes[first] += row["success_sum"] or 0
    ends: dict[int | None, int] = {first: after - 1 for first, after in pairwise(starts)}
    return tuple(
        SizeBin(
            first=first,
            last=ends.get(first),
            results=counts[first],
            successes=successes[first],
            success_rate=successes[first] / counts[first],
        )
        for first in (*starts, None)
        if counts[first]
    )


def _start(size: int | None, starts: Sequence[int]) -> int | None:
    return None if size is None else max((start for start in starts if start <= size), default=None)
