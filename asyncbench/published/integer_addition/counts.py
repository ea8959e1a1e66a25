"""The figures of the "Integer addition" benchmark and its two string tasks, counted from a results folder.

Published is the success rate over recorded results: a call that failed is in neither number. Beside it stands
the rate over all tries, where such a call is no success.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from asyncbench.published.reports import counted_of
from asyncbench.records import Outcome
from asyncbench.results import Entrant, Graded, graders_of, in_order
from asyncbench.store import Manifest, planned
from asyncbench.suites import carries
from asyncbench.views import FolderViews

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

    @property
    def asked(self) -> Entrant:
        """Who was asked, and how."""
        return self.run, self.model, self.condition


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditionCounts:
    """What a results folder holds of our suites."""

    lines: tuple[RunLine, ...]
    graders: tuple[Graded, ...]
    providers: frozenset[str]
    without_operands: int  # additions whose operands no problem file tells


# What figures are made of, trial by trial; `carries` are put there before.
_GRADED = f"""
SELECT run, model, condition, suite, problem_id, provider, length, outcome, latency_s,
    outcome <> '{Outcome.FAILED}' AS recorded, nullif(length(reasoning_text), 0) AS reasoning_characters,
    said.grader, grader_version, classification = 'success' AS success, reason, format_ok, carries
FROM (FROM trials WHERE suite IN {SUITES}) LEFT JOIN (
    SELECT trial_id, grader, grader_version, classification, reason, format_ok FROM grades WHERE headline
) AS said USING (trial_id) LEFT JOIN carries USING (problem_id)
"""  # noqa: S608  made of our own words alone
_LINES = f"""
SELECT run, model, condition, suite, count(*) AS trials, count(*) FILTER (recorded) AS results,
    count(*) FILTER (recorded AND success) AS successes,
    count(*) FILTER (outcome = '{Outcome.TRUNCATED}') AS truncated,
    count(*) FILTER (recorded AND format_ok) AS format_ok,
    quantile_cont(latency_s, 0.5) FILTER (recorded) AS latency_p50_s,
    avg(latency_s) FILTER (recorded) AS latency_mean_s,
    quantile_cont(latency_s, 0.95) FILTER (recorded) AS latency_p95_s,
    quantile_cont(reasoning_characters, 0.5) FILTER (recorded) AS reasoning_p50_characters,
    list(DISTINCT provider) AS providers
FROM graded GROUP BY ALL
"""  # noqa: S608  likewise
_REASONS = """
SELECT run, model, condition, suite, reason, count(*) AS trials
FROM graded WHERE reason <> '' GROUP BY ALL ORDER BY reason
"""
_SIZES = """
SELECT run, model, condition, suite, grouping(carries) = 1 AS by_length, length, carries,
    count(*) AS results, count(*) FILTER (success) AS successes
FROM graded WHERE recorded
GROUP BY GROUPING SETS ((run, model, condition, suite, length), (run, model, condition, suite, carries))
"""
_OPERANDS = f"""
SELECT DISTINCT ON (problem_id) problem_id, operands
FROM problems SEMI JOIN (FROM trials WHERE suite = '{ADDITION}') USING (problem_id)
WHERE suite = '{ADDITION}'
"""  # noqa: S608  likewise
_UNKNOWN = f"""
SELECT count(DISTINCT problem_id) AS problems FROM graded WHERE suite = '{ADDITION}' AND carries IS NULL
"""  # noqa: S608  likewise


def counts_of(folder: Path, manifest: Manifest) -> AdditionCounts:
    """Return the figures of our suites, by suite, then as the manifest has runs, models and conditions.

    There is a line for each group of trials, and for each that was planned and has none yet.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    return counted_of(folder, SUITES, lambda views: _counts(views, manifest))


def _counts(views: FolderViews, manifest: Manifest) -> AdditionCounts:
    views.put("carries", _carries(views))
    views.keep("graded", _GRADED)
    groups = {_key(row): row for row in views.rows(_LINES)}
    reasons, sizes = defaultdict[Key, dict[str, int]](dict), defaultdict[Key, list[dict[str, Any]]](list)
    for row in views.rows(_REASONS):
        reasons[_key(row)][row["reason"]] = row["trials"]
    for row in views.rows(_SIZES):
        sizes[_key(row)].append(row)
    plan = {
        Key(*asked, suite): sum(tasks.values())
        for asked, suites in planned(manifest).items()
        for suite, tasks in suites.items()
        if suite in SUITES
    }
    keys = groups.keys() | plan.keys()
    order = in_order({key[:3] for key in keys}, manifest)
    ordered = sorted(keys, key=lambda key: (SUITES.index(key.suite), order.index(key[:3])))
    used = views.table("SELECT DISTINCT suite, grader, grader_version FROM graded WHERE grader <> ''")
    return AdditionCounts(
        lines=tuple(
            _line(key, groups.get(key, _NO_TRIALS), reasons[key], sizes[key], plan.get(key))
            for key in ordered
        ),
        graders=tuple(sorted(graders_of(used), key=lambda graded: SUITES.index(graded.suite))),
        providers=frozenset(provider for row in groups.values() for provider in row["providers"]),
        without_operands=views.rows(_UNKNOWN)[0]["problems"],
    )


def _key(row: Mapping[str, Any]) -> Key:
    return Key(*(row[name] for name in Key._fields))


def _carries(views: FolderViews) -> pa.Table:
    """Return the carries of the additions that were asked, by problem_id; NULL where unknown."""
    asked = views.rows(_OPERANDS)
    return pa.table(
        {
            "problem_id": pa.array([row["problem_id"] for row in asked], pa.string()),
            "carries": pa.array([_carries_or_unknown(row["operands"]) for row in asked], pa.int32()),
        }
    )


def _carries_or_unknown(operands: Sequence[str]) -> int | None:
    try:
        return carries(operands)
    except ValueError:  # a set that others made may hold anything
        return None


_NO_TRIALS: Mapping[str, Any] = {
    **dict.fromkeys(("trials", "results", "successes", "truncated", "format_ok"), 0),
    **dict.fromkeys(("latency_p50_s", "latency_mean_s", "latency_p95_s", "reasoning_p50_characters")),
}


def _line(
    key: Key,
    row: Mapping[str, Any],
    reasons: Mapping[str, int],
    sizes: Sequence[Mapping[str, Any]],
    plan: int | None,
) -> RunLine:
    results, successes, tries = row["results"], row["successes"], max(plan or 0, row["trials"])
    return RunLine(
        **key._asdict(),
        **{name: row[name] for name in _NO_TRIALS},
        planned=plan,
        tries=tries,
        success_rate=successes / results if results else None,
        success_rate_of_tries=successes / tries if tries else None,
        reasons=dict.fromkeys(REASONS, 0) | dict(reasons),
        format_ok_share=row["format_ok"] / results if results else None,
        by_length=_bins([size for size in sizes if size["by_length"]], "length", LENGTHS[key.suite]),
        by_carries=(
            _bins([size for size in sizes if not size["by_length"]], "carries", CARRIES)
            if key.suite == ADDITION
            else ()
        ),
    )


def _bins(sizes: Iterable[Mapping[str, Any]], column: str, starts: Sequence[int]) -> tuple[SizeBin, ...]:
    """Return the bins that hold any results, by size; that of unknown size last."""
    counts, successes = Counter[int | None](), Counter[int | None]()
    for row in sizes:
        size = row[column]
        first = None if size is None else max((start for start in starts if start <= size), default=None)
        counts[first] += row["results"]
        successes[first] += row["successes"]
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
