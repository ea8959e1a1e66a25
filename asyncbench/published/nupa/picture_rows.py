"""The rows of NUPA's pictures: ranges of lengths, and what only pictures count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, names_of
from asyncbench.published.nupa.counts import (
    RANGES,
    SUITE,
    Interval,
    TaskLine,
    entrant_lines,
    macro,
    task_name,
)
from asyncbench.published.nupa.training import NO_TRAINING_LENGTHS, TrainingLengths
from asyncbench.published.reports import (
    MARK,
    UNANSWERED,
    counted_of,
)
from asyncbench.store.schema import ENTRANT
from asyncbench.suites.nupa.tasks import TASKS, range_of

Row = dict[str, Any]  # Any: text, number or None, by column

SCALES: Final[Mapping[str, str]] = {"exact_match": "share", "digit_match": "share", "dlength": "digits"}
GUESSED: Final[Mapping[str, float]] = {"get_digit": 0.1, "max": 0.5, "min": 0.5}  # exact match of guessing
POOLED: Final = "Means over the answers of a range, graded by `strict`."
INTERVALS: Final = "Whiskers: 95 % CI."
SHADED: Final = "Cells hold the mean dlength, and are shaded by log2(dlength + 1)."
PRINTED_NOTE: Final = f"Models marked {MARK} are as the paper prints them."

PARTS: Final[Mapping[str, tuple[str, ...]]] = {  # the paper has five pictures of all tasks
    "sums": ("add", "sub"),
    "products": ("multiply", "truediv", "floordiv", "mod"),
    "comparison": ("max", "min"),
    "digits": ("digit_max", "digit_min", "digit_add", "get_digit", "length", "count"),
    "conversion": ("to_float", "to_scient", "sig"),
}

EXAMPLE_DIGITS: Final = 8  # of the problem of Figure 1, or as near as there is
TRACE_TOKENS: Final = 2000  # of prompt and reply together: the context of the paper's rule-following model
SINGLE: Final[Mapping[tuple[str, str], range]] = {  # Table 3: task, representation → lengths
    ("add", "float"): range(5, 8),
    ("multiply", "fraction"): range(2, 5),
    ("max", "scientific"): range(38, 41),
    ("mod", "integer"): range(6, 9),
}


_KIND: Final = "task, variant, representation"
_WHO: Final = ", ".join(ENTRANT)
_STRICT: Final = f"suite = '{SUITE}' AND grader = 'strict'"

_ANSWERS: Final = f"""
SELECT trial_id, {_WHO}, style, coalesce(try_cast(condition_params->>'shots' AS INT), 0) AS shots,
    {_KIND}, length, repeat, outcome, input_tokens + output_tokens AS tokens, output_tokens,
    graded.exact_match, digits_total
FROM (SELECT trial_id, exact_match, digits_total FROM grades WHERE {_STRICT}) AS graded
JOIN (SELECT * EXCLUDE (exact_match) FROM trials WHERE suite = '{SUITE}' AND outcome <> 'failed')
    USING (trial_id)
WHERE digits_total IS NOT NULL
"""  # noqa: S608  made of our own words alone

_SHOTS = f"SELECT DISTINCT {_WHO}, shots FROM answers"  # noqa: S608  our own words

# A lane is busy while any call is in flight, in microseconds: gaps and overlaps are left out, and conditions
# that it answered in turn share its time by how long their calls took.
_SPEEDS = f"""
WITH calls AS (
    SELECT trial_id, model, in_flight, latency_s, (1e6 * latency_s)::BIGINT AS took,
        epoch_us(started_at) AS began, began + took AS ended
    FROM attempts WHERE status = 'ok' AND latency_s IS NOT NULL
), following AS (
    SELECT model, took, ended, greatest(began, max(ended) OVER before) AS counted_from
    FROM calls WINDOW before AS (
        PARTITION BY model ORDER BY began ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), lanes AS (
    SELECT model, sum(greatest(0, ended - counted_from)) AS busy, sum(took) AS took
    FROM following GROUP BY model
)
SELECT {_WHO}, count(DISTINCT trial_id) AS answers, avg(calls.latency_s) AS latency_s,
    max(in_flight) AS in_flight, sum(output_tokens)::BIGINT AS tokens, sum(digits_total)::BIGINT AS digits,
    any_value(busy) * (sum(calls.took) / any_value(lanes.took)) / 1e6 AS wall_s
FROM calls JOIN answers USING (trial_id, model) JOIN lanes USING (model)
GROUP BY ALL HAVING wall_s > 0 ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_SINGLE = f"""
SELECT {
    _WHO
}, task, representation, length, repeat, count(*) AS answers, avg(exact_match::INT) AS exact_match,
    count(*) FILTER (outcome = 'truncated') AS truncated
FROM answers WHERE variant <> 'easy' AND (task <> 'max' OR variant = '') AND ({
    " OR ".join(
        f"(task = '{task}' AND representation = '{kind}' AND length BETWEEN {lengths[0]} AND {lengths[-1]})"
        for (task, kind), lengths in SINGLE.items()
    )
}) GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_TRACES = f"""
SELECT {_WHO}, task, representation,
    coalesce(max(length) FILTER (tokens <= {TRACE_TOKENS} AND outcome <> 'truncated'), 0) AS longest
FROM answers WHERE style = 'rules' GROUP BY ALL HAVING count(tokens) > 0 ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_WRONG = f"""
SELECT {_WHO}, {_KIND}, length, problem_id, expected, answer
FROM (
    SELECT *, count(DISTINCT ({_WHO})) OVER (PARTITION BY problem_id) AS models
    FROM (SELECT trial_id, answer FROM grades WHERE {_STRICT} AND NOT exact_match AND answer IS NOT NULL)
        JOIN (SELECT trial_id, {_WHO}, {_KIND}, length, problem_id, expected FROM trials) USING (trial_id)
) QUALIFY row_number() OVER (
    PARTITION BY {_WHO} ORDER BY abs(length - {EXAMPLE_DIGITS}), models DESC, task, representation, trial_id
) = 1 ORDER BY ALL
"""  # noqa: S608  made of our own words alone


_COUNTED: Final[Mapping[str, str]] = {  # field of `Shown` → its query
    "shots": _SHOTS,
    "speeds": _SPEEDS,
    "single": _SINGLE,
    "traces": _TRACES,
    "wrong": _WRONG,
}


# ── rows and names ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What all pictures are drawn from."""

    lines: Sequence[TaskLine]  # by model, the best first
    names: Mapping[Entrant, str]
    order: str  # a note on the order of the models
    ranges: Sequence[Row]  # a row for each of S, M, L, XL of each line
    printed: bool  # whether the paper's own figures stand beside
    training: TrainingLengths
    # counts of the folder that only pictures show; rows have run, model and condition
    shots: Sequence[Row] = ()  # worked examples of each condition
    speeds: Sequence[Row] = ()  # of those whose calls have times
    single: Sequence[Row] = ()  # a row a repeat: exact match at the lengths of Table 3
    traces: Sequence[Row] = ()  # the longest problem whose rule and reply fit the context
    wrong: Sequence[Row] = ()  # a wrong answer of each, to look at

    def named(self, row: Row) -> str:
        """Return the name of the entrant of a row."""
        return self.names[row["run"], row["model"], row["condition"]]

    def notes(self, *notes: str) -> tuple[str, ...]:
        """Return the notes of a picture in which the paper's figures may stand beside."""
        return (*notes, PRINTED_NOTE) if self.printed else notes


def shown_of(
    lines: Sequence[TaskLine],
    folder: Folders | None = None,
    *,
    printed: bool,
    training: TrainingLengths = NO_TRAINING_LENGTHS,
) -> Shown:
    """Return the data of all pictures.

    Args:
        lines: of a report.
        folder: of which they are; without it, nothing is counted for pictures alone. Raises as `counts_of`
            does.
        printed: whether the paper's own figures stand beside the folder's.
        training: the lengths up to which models were trained.
    """

    def count(views: FolderViews) -> dict[str, list[Row]]:
        views.keep("answers", _ANSWERS)
        return {name: views.rows(query) for name, query in _COUNTED.items()}

    ranked, note = best_first(lines)
    names = names_of(entrant_lines(ranked))
    ranks = {entrant: rank for rank, entrant in enumerate(names)}
    counts = counted_of(folder, [SUITE], count) if folder is not None else {}
    for rows in counts.values():
        rows.sort(key=lambda row: ranks[row["run"], row["model"], row["condition"]])
    return Shown(
        lines=ranked,
        names=names,
        order=note,
        ranges=range_rows(ranked, names),
        printed=printed,
        training=training,
        **counts,
    )


def best_first(lines: Sequence[TaskLine]) -> tuple[list[TaskLine], str]:
    """Return lines, best model first by exact match over the tasks of all, and a note that says so."""
    groups = entrant_lines(lines)
    common = set[str].intersection(*({line.task.name for line in of_model} for of_model in groups.values()))
    if not common:
        return [*lines], "Models as they were asked: none of the tasks was asked of all."

    def mean(entrant: Entrant) -> float:
        shared = [line for line in groups[entrant] if line.task.name in common]
        return float(macro([line.by_grader["strict"]["exact_match"] for line in shared])["mean"] or 0)

    ranked = sorted(groups, key=mean, reverse=True)
    tasks = f"the {len(common)} tasks" if len(common) > 1 else "the task"
    note = f"Best model first, by mean exact match over {tasks} that all were asked."
    return [line for entrant in ranked for line in groups[entrant]], note


def range_rows(lines: Iterable[TaskLine], names: Mapping[Entrant, str]) -> list[Row]:
    """Return a row for each range of each line: its means, its answers, and what guessing reaches."""
    rows = []
    for line in lines:
        figures, task = line.by_grader["strict"], line.task
        for of_range in RANGES:
            answers = sum(
                added.answers
                for length, added in figures["exact_match"].by_length.items()
                if range_of(length, task.length_class) == of_range
            )
            means = {figure: float_or_none(figures[figure].ranges[of_range]) for figure in SCALES}
            intervals = {figure: figures[figure].intervals[of_range] for figure in SCALES}
            was_asked = any(range_of(length, task.length_class) == of_range for length in line.lengths)
            rows.append(
                {
                    "task": task_name(task),
                    "representation": task.representation,
                    "range": of_range,
                    "model": names[line.asked],
                    "asked": line.asked,
                    "kind": task.kind,
                    "answers": answers,
                    **means,
                    "intervals": intervals,
                    **({"gap": UNANSWERED} if was_asked and not answers else {}),
                    "guess": GUESSED.get(task.task),
                }
            )
    return rows


def rows_with_ends(rows: Iterable[Row], figure: str) -> list[Row]:
    """Return rows with the ends of the interval of a figure, `low` and `high`."""
    return [{**row, **ends_of(row["intervals"][figure])} for row in rows]


def ends_of(interval: Interval | None) -> Row:
    """Return the ends of an interval as columns; None: they are unknown."""
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def float_or_none(value: Any) -> float | None:  # Any: a number, or None
    return None if value is None else float(value)


def paper_order(names: Iterable[str]) -> list[str]:
    """Return names of tasks, each once, as the paper's tables have them."""
    present = set(names)
    return [name for name in map(task_name, TASKS.values()) if name in present]
