"""The figures of the "Integer addition" benchmark and its two string tasks, as published and beyond.

Published is the success rate over recorded results: a call that failed is in neither number. Beside it stands
the rate over all tries, where such a call is no success.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.analysis.graders import Graded, graded_by, graders_of
from asyncbench.analysis.tables import SIMULATED, as_lines, columns, markdown, seconds
from asyncbench.errors import ConfigError
from asyncbench.problems.files import opened, read_batches
from asyncbench.problems.schema import ROWS
from asyncbench.providers.endpoints import is_simulated
from asyncbench.records import Outcome
from asyncbench.store.catalog import read_grades, read_trials
from asyncbench.store.manifest import Manifest, planned, read_manifest
from asyncbench.suites.numbers import carries

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
    *("trial_id", "run", "model", "condition", "suite", "problem_id", "provider", "length", "outcome"),
    *("reasoning_text", "latency_s"),
)
GRADES = ("trial_id", "grader", "grader_version", "classification", "reason", "format_ok")


class Key(NamedTuple):
    """What one line is about."""

    run: str
    model: str
    condition: str | None  # None: planned, but nothing of it has ended yet
    suite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The recorded results of problems of a certain size."""

    first: int | None  # the smallest size; None: the size is not known
    last: int | None  # the largest size; None: there is none
    results: int
    successes: int
    success_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The figures of one run × model × condition in one suite."""

    run: str
    model: str
    condition: str | None  # None: planned, but nothing of it has ended yet
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
    by_length: tuple[Bin, ...]  # digits of the longer number, as drawn where that is known; characters
    by_carries: tuple[Bin, ...]  # of additions alone


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerAdditionReport:
    """A folder's figures, and how they are shown."""

    folder: str
    simulated: bool
    graders: tuple[Graded, ...]
    left_out: dict[str, int]  # run → entries of its file that could not be imported
    without_operands: int  # additions whose operands no file in problems/ tells
    lines: tuple[Line, ...]  # by suite, then as the manifest has runs and models

    def as_json(self) -> str:
        """Return everything as JSON; shares in [0, 1]."""
        return json.dumps(asdict(self), indent=2)

    def as_text(self, *, width: int | None = None) -> str:
        """Return tables for a terminal; `width` in characters, None: as wide as the terminal."""
        tables = (
            f"{title}\n{as_lines(columns(head, rows, labels=labels), width=width)}"
            for title, head, rows, labels in _tables(self.lines)
        )
        return "\n\n".join(["\n".join(_notes(self)), *tables])

    def as_markdown(self) -> str:
        """Return the same tables in Markdown."""
        tables = (
            markdown(head, rows, labels=labels, title=title)
            for title, head, rows, labels in _tables(self.lines)
        )
        return "\n".join([*(f"**{note}**\n" for note in _notes(self)), *tables])


def integer_addition_report_on(folder: Path | str) -> IntegerAdditionReport:
    """Return the figures of the suites string_reversal, integer_addition and string_rehearsal.

    Raises:
        ConfigError: it is not a results folder, or holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    manifest, trials = read_manifest(Path(folder)), _trials(folder)
    if not len(trials):
        raise ConfigError(f"{folder} holds no finished trial of {', '.join(SUITES)}; leave `--style` out")
    trials = trials.join(_carries(Path(folder), trials), "problem_id", use_threads=False)
    unknown = trials.filter((pc.field("suite") == ADDITION) & pc.field("carries").is_null())
    return IntegerAdditionReport(
        folder=str(folder),
        simulated=any(map(is_simulated, _distinct(trials, "provider"))),
        graders=tuple(sorted(graders_of(trials), key=lambda one: SUITES.index(one.suite))),
        left_out=_left_out(manifest, runs=_distinct(trials, "run")),
        without_operands=len(_distinct(unknown, "problem_id")),
        lines=_lines(trials, manifest),
    )


# ── what the folder says ─────────────────────────────────────────────────────────────────────


def _trials(folder: Path | str) -> pa.Table:
    """Return the trials of our suites with their headline grades and what figures are made of."""
    ours = pc.field("suite").isin(pa.array(SUITES, pa.string()))
    trials = read_trials(folder, TRIALS, ours)
    characters = pc.utf8_length(trials["reasoning_text"])
    shown = pc.if_else(pc.greater(characters, pa.scalar(0)), characters, pa.scalar(None, pa.int32()))
    trials = trials.drop_columns(["reasoning_text"]).append_column("reasoning_characters", shown)
    grades = read_grades(folder, GRADES, ours & pc.field("headline"))
    graded = trials.join(grades, "trial_id", use_threads=False)
    return graded.append_column("success", pc.equal(graded["classification"], pa.scalar("success")))


def _distinct(trials: pa.Table, column: str) -> list[Any]:  # Any: of the column's type
    return trials[column].unique().to_pylist()


def _carries(folder: Path, trials: pa.Table) -> pa.Table:
    """Return the carries of the additions that were asked, each once, by problem_id; NULL where unknown."""
    asked = set(_distinct(trials.filter(pc.field("suite") == ADDITION), "problem_id"))
    operands = {problem_id: those for problem_id, those in _additions(folder) if problem_id in asked}
    found = [_carries_or_unknown(those) for those in operands.values()]
    return pa.table(
        {"problem_id": pa.array(list(operands), pa.string()), "carries": pa.array(found, pa.int32())}
    )


def _additions(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the problem_id and the operands of every addition in the problem files of a folder."""
    for path in sorted((folder / "problems").glob("*.parquet")):
        with opened(path) as file:
            for batch in read_batches(file, ["problem_id", "suite", "operands"], rows=ROWS):
                ours = batch.filter(pc.equal(batch["suite"], pa.scalar(ADDITION)))
                yield from zip(ours["problem_id"].to_pylist(), ours["operands"].to_pylist(), strict=True)


def _carries_or_unknown(operands: Sequence[str]) -> int | None:
    try:
        return carries(operands)
    except ValueError:  # a set that others made may hold anything
        return None


def _left_out(manifest: Manifest, *, runs: Sequence[str]) -> dict[str, int]:
    said = {run: entry.get("left_out", 0) for run, entry in manifest.get("runs", {}).items()}
    return {run: count for run, count in said.items() if count and run in runs}


# ── figures ──────────────────────────────────────────────────────────────────────────────────


def _lines(trials: pa.Table, manifest: Manifest) -> tuple[Line, ...]:
    """Return a line for each group of trials, and for each that was planned and has none yet."""
    plan, groups = _plan(manifest), dict(_groups(trials))
    conditions = Counter((key.run, key.model, key.suite) for key in groups)
    for run, model, suite in plan.keys() - conditions.keys():
        groups[Key(run, model, None, suite)] = trials.slice(0, 0)
    lines = []
    for key, group in groups.items():
        asked = (key.run, key.model, key.suite)
        # a plan counts all conditions together, and each of them asks the same problems
        share = plan[asked] // (conditions[asked] or 1) if asked in plan else None
        lines.append(_line(key, group, share))
    order = {asked: place for place, asked in enumerate(planned(manifest))}
    return tuple(sorted(lines, key=lambda line: _place(line, order)))


def _plan(manifest: Manifest) -> dict[tuple[str, str, str], int]:
    """Return how many trials were planned: (run, model, suite) → trials."""
    return {
        (run, model, suite): sum(tasks.values())
        for (run, model), suites in planned(manifest).items()
        for suite, tasks in suites.items()
        if suite in SUITES
    }


def _place(line: Line, order: Mapping[tuple[str, str], int]) -> tuple[int | str, ...]:
    place = order.get((line.run, line.model), len(order))
    return SUITES.index(line.suite), place, line.run, line.model, line.condition or ""


def _groups(trials: pa.Table) -> Iterator[tuple[Key, pa.Table]]:
    ordered = trials.sort_by([(name, "ascending") for name in Key._fields])
    counts = ordered.group_by(list(Key._fields), use_threads=False).aggregate([([], "count_all")])
    start = 0
    for row in counts.to_pylist():  # in the order in which they appear
        count = row.pop("count_all")
        yield Key(**row), ordered.slice(start, count)
        start += count


def _line(key: Key, trials: pa.Table, plan: int | None) -> Line:
    results = trials.filter(pc.field("outcome") != Outcome.FAILED.value)
    successes, format_ok = _sum(results, "success"), _sum(results, "format_ok")
    tries = max(plan or 0, len(trials))
    return Line(
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


def _bins(results: pa.Table, column: str, starts: Sequence[int]) -> tuple[Bin, ...]:
    """Return the bins that hold any results, by size; that of unknown size last."""
    sums = results.group_by(column, use_threads=False).aggregate([([], "count_all"), ("success", "sum")])
    counts, successes = Counter[int | None](), Counter[int | None]()
    for row in sums.to_pylist():
        first = _start(row[column], starts)
        counts[first] += row["count_all"]
        successes[first] += row["success_sum"] or 0
    ends: dict[int | None, int] = {first: after - 1 for first, after in pairwise(starts)}
    return tuple(
        Bin(
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


# ── how figures are written ──────────────────────────────────────────────────────────────────


class Shown(NamedTuple):
    """A table as it is shown: its first `labels` columns are names."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int


Asked = tuple[str, str, str | None]  # run, model, condition

HEAD = (
    *("model", "tries", "recorded", "successes", "success rate", "of tries"),
    *("median", "mean", "p95", "reasoning"),
)


def _notes(report: IntegerAdditionReport) -> list[str]:
    notes = [SIMULATED] if report.simulated else []
    notes += [graded_by(report.graders), _without_success(report.lines)]
    for run, count in report.left_out.items():
        notes.append(f"Run {run}: {_things(count, 'entry', 'entries')} of its file could not be imported.")
    if count := report.without_operands:
        notes.append(
            f"No file in problems/ tells the operands of {_things(count, 'addition', 'additions')}: "
            "their carries are unknown."
        )
    notes.append(
        "Success rate: over recorded results (trials with a reply), as published; of tries: over all that "
        "were planned. Durations: of one call. Reasoning: median length in characters, where any was shown."
    )
    return notes


def _without_success(lines: Sequence[Line]) -> str:
    trials, results = sum(line.trials for line in lines), sum(line.results for line in lines)
    empty, cut = sum(line.reasons["empty"] for line in lines), sum(line.truncated for line in lines)
    said = (
        f"Of {_things(trials, 'trial', 'trials')} {trials - results:,} failed (no reply), {empty:,} had an "
        f"empty reply, {cut:,} were truncated."
    )
    absent = sum(line.tries for line in lines) - trials  # files of the benchmark leave failed calls out
    return f"{said} {absent:,} more were planned, of which nothing is recorded." if absent else said


def _things(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _tables(lines: Sequence[Line]) -> Iterator[Shown]:
    names = _names(lines)
    by_suite = {suite: [line for line in lines if line.suite == suite] for suite in SUITES}
    for suite, those in by_suite.items():
        if those:
            yield Shown(suite, HEAD, [(names[_asked(line)], *_figures(line)) for line in those], 1)
    yield _reasons_table(lines, names)
    for suite, those in by_suite.items():
        unit = "digits of the longer number" if suite == ADDITION else "characters"
        sizes = [line.by_length for line in those]
        yield from _bins_table(f"{suite}: success rate by length in {unit}", those, sizes, names)
    added = by_suite[ADDITION]
    carried = [line.by_carries for line in added]
    yield from _bins_table(f"{ADDITION}: success rate by number of carries", added, carried, names)


def _asked(line: Line) -> Asked:
    return line.run, line.model, line.condition


def _names(lines: Sequence[Line]) -> dict[Asked, str]:
    """Return what to call each: condition and run are named only where a model has several."""
    conditions, runs = defaultdict[tuple[str, str], set[str]](set), defaultdict[str, set[str]](set)
    for line in lines:
        runs[line.model].add(line.run)
        if line.condition is not None:
            conditions[line.run, line.model].add(line.condition)
    names = {}
    for run, model, condition in map(_asked, lines):
        several = condition is not None and len(conditions[run, model]) > 1
        name = f"{model} ({condition})" if several else model
        names[run, model, condition] = f"{name}, run {run}" if len(runs[model]) > 1 else name
    return names


def _figures(line: Line) -> tuple[str, ...]:
    reasoning = line.reasoning_p50_characters
    return (
        f"{line.tries:,}",
        f"{line.results:,}",
        f"{line.successes:,}",
        _rate(line.success_rate),
        _rate(line.success_rate_of_tries),
        seconds(line.latency_p50_s),
        seconds(line.latency_mean_s),
        seconds(line.latency_p95_s),
        "-" if reasoning is None else f"{reasoning:,.0f}",
    )


def _rate(share: float | None) -> str:
    """Return a share as the published program prints it: 97.5 % as `97.50%`."""
    return "-" if share is None else f"{share:.2%}"


def _reasons_table(lines: Sequence[Line], names: Mapping[Asked, str]) -> Shown:
    reasons = list(dict.fromkeys(reason for line in lines for reason in line.reasons))
    rows = [
        (
            names[_asked(line)],
            line.suite,
            *(f"{line.reasons.get(reason, 0):,}" for reason in reasons),
            _rate(line.format_ok_share),
        )
        for line in lines
    ]
    head = ("model", "suite", *reasons, "format ok")
    return Shown("Fails by reason, and recorded results in the form asked for", head, rows, 2)


def _bins_table(
    title: str, lines: Sequence[Line], bins: Sequence[Sequence[Bin]], names: Mapping[Asked, str]
) -> Iterator[Shown]:
    """Yield a table with a column for each bin that any line has; none where there are no bins."""
    found = {(one.first, one.last) for own in bins for one in own}
    sizes = sorted(found, key=lambda size: (size[0] is None, size[0] or 0))
    rows = []
    for line, own in zip(lines, bins, strict=True):
        cells = {(one.first, one.last): f"{_rate(one.success_rate)} of {one.results:,}" for one in own}
        rows.append((names[_asked(line)], *(cells.get(size, "-") for size in sizes)))
    if sizes:
        yield Shown(title, ("model", *(_range(*size) for size in sizes)), rows, 1)


def _range(first: int | None, last: int | None) -> str:
    if first is None:
        return "unknown"
    if last is None:
        return f"{first} or more"
    return f"{first}" if first == last else f"{first}-{last}"
