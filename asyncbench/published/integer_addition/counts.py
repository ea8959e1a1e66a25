"""The figures of the "Integer addition" benchmark and its two string tasks, counted from a results folder.

Published is the success rate over recorded results: a call that failed is in neither number. Beside it stands
the rate over all tries, where such a call is no success.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import pyarrow as pa

from asyncbench.analysis.anatomy.counts import ErrorFindings, errors_in
from asyncbench.analysis.anatomy.error import OF_REPLIES, UNCLASSIFIED
from asyncbench.analysis.batch_use import batch_uses
from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.curves import GROUP
from asyncbench.analysis.entrants import Entrant, sort_entrants
from asyncbench.analysis.graders import graders_of
from asyncbench.analysis.served import note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.published.reports import counted_of
from asyncbench.records import Outcome
from asyncbench.store.manifest import Manifest, planned
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
BIN = ("first", "last", "results", "successes", "success_rate")
CARRIES = (0, 1, 3, 6, 10, 15, 20)  # of two numbers with 30 digits: 15 on average


# what the documentation page names as common failures → our kinds of errors; other kinds of a number that was
# read are a wrong digit
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "shown work": ("shown_work",),
    "sentence": ("prose",),
    "wrong digit": (),
    "scientific notation": ("scientific_notation",),
    "rounded": ("rounded", "approximate"),
    "number words": ("number_words",),
}
OTHER_MODE: Final = "other"
NO_DIGITS: Final = {*OF_REPLIES, UNCLASSIFIED}  # kinds of what is no wrong number
CUT: Final = "cut off"


class Key(NamedTuple):
    """What one line is about."""

    run: str
    model: str
    condition: str
    suite: str


# The recorded results of problems of a size from `first` to `last`, by the names of `BIN`. `first` None: the
# size is not known; `last` None: there is no largest one.
SizeBin = Mapping[str, Any]  # Any: numbers


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
    errors: dict[str, int]  # the same, where replies that were cut count as that alone
    modes: dict[str, int]  # of the examined wrong additions, by `MODES`
    examined: int
    format_ok: int  # results that are nothing but an answer, in the form asked for
    format_ok_share: float | None  # over results
    latency_p50_s: float | None
    latency_mean_s: float | None
    latency_p95_s: float | None
    reasoning_p50_characters: float | None  # of the replies that show any
    reasoned: int  # results that show any
    reasoning_tokens: int  # of the results that tell them
    by_length: tuple[SizeBin, ...]  # digits of the longer number, as drawn where that is known; characters
    by_carries: tuple[SizeBin, ...]  # of additions alone, as those below
    by_chain: tuple[SizeBin, ...]  # the most columns that one carry ripples through
    # by the digits of both numbers, `longer` and `shorter`: where their bins start
    by_operands: tuple[SizeBin, ...]

    @property
    def asked(self) -> Entrant:
        """The run, the model and the condition."""
        return self.run, self.model, self.condition


# What figures are made of, trial by trial; `carries` are put there before.
_GRADED = f"""
SELECT run, model, condition, suite, problem_id, length, outcome, latency_s, reasoning_tokens,
    outcome <> '{Outcome.FAILED}' AS recorded, nullif(length(reasoning_text), 0) AS reasoning_characters,
    said.grader, grader_version, classification = 'success' AS success, reason, format_ok, carries,
    longer, shorter
FROM (FROM trials WHERE suite IN {SUITES}) LEFT JOIN (
    SELECT trial_id, grader, grader_version, classification, reason, format_ok FROM grades WHERE headline
) AS said USING (trial_id) LEFT JOIN carries USING (problem_id)
"""  # noqa: S608  made of our own words alone
_LINES = counts_by(
    "graded",
    Key._fields,
    only=("trials", "truncated"),
    more=[
        "count(*) FILTER (recorded) AS results",
        "count(*) FILTER (recorded AND success) AS successes",
        "count(*) FILTER (recorded AND format_ok) AS format_ok",
        "quantile_cont(latency_s, 0.5) FILTER (recorded) AS latency_p50_s",
        "avg(latency_s) FILTER (recorded) AS latency_mean_s",
        "quantile_cont(latency_s, 0.95) FILTER (recorded) AS latency_p95_s",
        "quantile_cont(reasoning_characters, 0.5) FILTER (recorded) AS reasoning_p50_characters",
        "count(*) FILTER (recorded AND (reasoning_characters > 0 OR reasoning_tokens > 0)) AS reasoned",
        "coalesce(sum(reasoning_tokens) FILTER (recorded), 0)::BIGINT AS reasoning_tokens",
    ],
)
_REASONS = f"""
SELECT run, model, condition, suite, reason, outcome = '{Outcome.TRUNCATED}' AS cut, count(*) AS trials
FROM graded WHERE reason <> '' GROUP BY ALL ORDER BY reason
"""  # noqa: S608  made of our own words alone
# Sizes are counted first, then put into bins: there are few of them.
_BY_SIZE = f"""
WITH sizes AS (
    SELECT run, model, condition, suite, 'length' AS size, length AS value, count(*) AS results,
        count(*) FILTER (success) AS successes
    FROM graded WHERE recorded GROUP BY ALL
    UNION ALL
    SELECT run, model, condition, suite, 'carries', carries, count(*), count(*) FILTER (success)
    FROM graded WHERE recorded AND suite = '{ADDITION}' GROUP BY ALL
)
SELECT run, model, condition, sizes.suite, sizes.size, first, last, sum(results)::BIGINT AS results,
    sum(successes)::BIGINT AS successes, sum(successes) / sum(results) AS success_rate
FROM sizes LEFT JOIN bins
    ON bins.suite = sizes.suite AND bins.size = sizes.size AND value BETWEEN first AND coalesce(last, value)
GROUP BY ALL ORDER BY first NULLS LAST
"""  # noqa: S608  made of our own words alone
_BY_OPERANDS = f"""
WITH bin AS (FROM bins WHERE suite = '{ADDITION}' AND size = 'length')
SELECT run, model, condition, sums.suite, long.first AS longer, short.first AS shorter,
    sum(results)::BIGINT AS results, sum(successes)::BIGINT AS successes
FROM (
    SELECT run, model, condition, suite, greatest(longer, 1) AS longer, greatest(shorter, 1) AS shorter,
        count(*) AS results, count(*) FILTER (success) AS successes
    FROM graded WHERE recorded AND shorter IS NOT NULL GROUP BY ALL
) AS sums
    JOIN bin AS long ON sums.longer BETWEEN long.first AND coalesce(long.last, sums.longer)
    JOIN bin AS short ON sums.shorter BETWEEN short.first AND coalesce(short.last, sums.shorter)
GROUP BY ALL ORDER BY longer, shorter
"""  # noqa: S608  made of our own words alone
_OPERANDS = f"""
SELECT DISTINCT ON (problem_id) problem_id, operands
FROM problems SEMI JOIN (FROM trials WHERE suite = '{ADDITION}') USING (problem_id)
WHERE suite = '{ADDITION}'
"""  # noqa: S608  made of our own words alone
_UNKNOWN = f"""
SELECT count(DISTINCT problem_id) AS problems FROM graded WHERE suite = '{ADDITION}' AND carries IS NULL
"""  # noqa: S608  made of our own words alone


def counts_of(folder: Folders, manifest: Manifest) -> dict[str, Any]:  # Any: fields of a report
    """Return the figures of our suites, by suite, then as the manifest has runs, models and conditions.

    Returns:
        `lines`, one for each group of trials, and for each that was planned and has none yet, `graders`,
        `simulated_note`, `batches`, and `without_operands`: additions whose operands no problem file tells.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of these suites.
        StoreError: its results cannot be read.
        ProblemSetError: one of its copies of the problems is damaged.
    """
    return counted_of(folder, SUITES, lambda views: _counts(views, manifest))


def _counts(views: FolderViews, manifest: Manifest) -> dict[str, Any]:
    views.put_when_read("carries", "carries of the additions", _carries)
    views.keep("graded", _GRADED)
    views.put("bins", _bins())
    groups = {_key(row): row for row in views.rows(_LINES)}
    reasons, sizes, operands = (
        rows_by(views.rows(query), _key) for query in (_REASONS, _BY_SIZE, _BY_OPERANDS)
    )
    errors = {
        _key(dict(zip(GROUP, group, strict=True))): findings for group, findings in errors_in(views).items()
    }
    plan = {
        Key(*entrant, suite): sum(tasks.values())
        for entrant, suites in planned(manifest).items()
        for suite, tasks in suites.items()
        if suite in SUITES
    }
    keys = groups.keys() | plan.keys()
    order = sort_entrants({key[:3] for key in keys}, manifest)
    ordered = sorted(keys, key=lambda key: (SUITES.index(key.suite), order.index(key[:3])))
    return {
        "lines": tuple(
            _line(
                key,
                groups.get(key, _NO_TRIALS),
                plan.get(key),
                reasons=reasons[key],
                sizes=sizes[key],
                operands=operands[key],
                findings=errors.get(key) if key.suite == ADDITION else None,
            )
            for key in ordered
        ),
        "graders": tuple(
            sorted(
                graders_of(views, "(FROM graded WHERE grader <> '')"),
                key=lambda graded: SUITES.index(graded.suite),
            )
        ),
        "simulated_note": note_of_simulated(views),
        "without_operands": views.rows(_UNKNOWN)[0]["problems"],
        "batches": batch_uses(views),
    }


def _key(row: Mapping[str, Any]) -> Key:
    return Key(*(row[name] for name in Key._fields))


def _bins() -> pa.Table:
    """Return the first and the last size of each bin; the last of the largest is NULL."""
    starts = {**{(suite, "length"): LENGTHS[suite] for suite in SUITES}, (ADDITION, "carries"): CARRIES}
    return pa.Table.from_pylist(
        [
            {"suite": suite, "size": size, "first": first, "last": None if after is None else after - 1}
            for (suite, size), firsts in starts.items()
            for first, after in zip_longest(firsts, firsts[1:])
        ]
    )


def _carries(views: FolderViews) -> pa.Table:
    """Return carries and digits of the additions that were asked, by problem_id; NULL where unknown."""
    problems = views.rows(_OPERANDS)
    columns: dict[str, list[int | None]] = {"carries": [], "shorter": [], "longer": []}
    for row in problems:
        counts: tuple[int | None, ...]
        try:
            counts = (carries(row["operands"]), *sorted(map(len, row["operands"])))
        except ValueError:  # a set that others made may hold anything
            counts = (None, None, None)
        for column, value in zip(columns.values(), counts, strict=True):
            column.append(value)
    return pa.table(
        {
            "problem_id": pa.array([row["problem_id"] for row in problems], pa.string()),
            **{name: pa.array(values, pa.int32()) for name, values in columns.items()},
        }
    )


_NO_TRIALS: Mapping[str, Any] = {
    **dict.fromkeys(("trials", "results", "successes", "truncated", "format_ok"), 0),
    **dict.fromkeys(("reasoned", "reasoning_tokens"), 0),
    **dict.fromkeys(("latency_p50_s", "latency_mean_s", "latency_p95_s", "reasoning_p50_characters")),
}


def _line(
    key: Key,
    row: Mapping[str, Any],
    plan: int | None,
    *,
    reasons: Sequence[Mapping[str, Any]],
    sizes: Sequence[Mapping[str, Any]],
    operands: Sequence[Mapping[str, Any]],
    findings: ErrorFindings | None,
) -> RunLine:
    # How many of the examined wrong answers failed in which way.
    mode_of = {kind: mode for mode, kinds in MODES.items() for kind in kinds}
    modes = Counter[str]()
    for kind, trials in (findings.kinds if findings else {}).items():
        modes[mode_of.get(kind, OTHER_MODE if kind in NO_DIGITS else "wrong digit")] += trials

    by_reason, errors = Counter[str](), Counter[str]()
    for reason in reasons:
        by_reason[reason["reason"]] += reason["trials"]
        errors[CUT if reason["cut"] else reason["reason"]] += reason["trials"]
    results, successes, tries = row["results"], row["successes"], max(plan or 0, row["trials"])
    return RunLine(
        **key._asdict(),
        **{name: row[name] for name in _NO_TRIALS},
        planned=plan,
        tries=tries,
        success_rate=successes / results if results else None,
        success_rate_of_tries=successes / tries if tries else None,
        reasons=dict.fromkeys(REASONS, 0) | dict(by_reason),
        errors=dict.fromkeys((*REASONS, CUT), 0) | dict(errors),
        modes={mode: modes[mode] for mode in (*MODES, OTHER_MODE)},
        examined=findings.examined if findings else 0,
        format_ok_share=row["format_ok"] / results if results else None,
        by_length=tuple(_bin(row, *BIN) for row in sizes if row["size"] == "length"),
        by_carries=tuple(_bin(row, *BIN) for row in sizes if row["size"] == "carries"),
        by_chain=tuple(
            {
                "first": chain.first,
                "last": chain.last,
                "results": chain.right.trials,
                "successes": chain.right.successes,
                "success_rate": chain.right.share or 0.0,
            }
            for chain in (findings.by_chain if findings else ())
        ),
        by_operands=tuple(_bin(row, "longer", "shorter", "results", "successes") for row in operands),
    )


def _bin(row: Mapping[str, Any], *names: str) -> SizeBin:
    return {name: row[name] for name in names}


def span(first: int | None, last: int | None) -> str:
    """Return the name of a bin: `6-10`."""
    if first is None:
        return "unknown"
    if last is None:
        return f"{first} or more"
    return f"{first}" if first == last else f"{first}-{last}"
