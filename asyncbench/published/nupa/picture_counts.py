"""What NUPA's pictures count beside its tables: examples, speeds, repeats, copied operands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.published.nupa.counts import SUITE
from asyncbench.published.reports import counted_of
from asyncbench.results import Entrant
from asyncbench.store import ENTRANT
from asyncbench.views import Folders, FolderViews

Row = dict[str, Any]  # Any: text, number or None, by column

TRACE_TOKENS: Final = 2000  # of prompt and reply together: the context of the paper's rule-following model
SINGLE: Final[Mapping[tuple[str, str], range]] = {  # Table 3: task, representation → lengths
    ("add", "float"): range(5, 8),
    ("multiply", "fraction"): range(2, 5),
    ("max", "scientific"): range(38, 41),
    ("mod", "integer"): range(6, 9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureCounts:
    """Counts of a folder that only pictures show; rows have run, model and condition."""

    shots: Mapping[Entrant, int]  # worked examples of each condition
    speeds: Sequence[Row]  # of those whose calls have times
    single: Sequence[Row]  # a row a repeat: exact match at the lengths of Table 3
    copied: Sequence[Row]  # by length: wrong answers to max and min, and those that are the other operand
    traces: Sequence[Row]  # the longest problem whose rule and reply fit the context
    gains: Sequence[Row]  # by length: what examples change on the same problems
    wrong: Sequence[Row]  # a wrong answer of each, to look at


_KIND: Final = "task, variant, representation"
_WHO: Final = ", ".join(ENTRANT)
_STRICT: Final = f"suite = '{SUITE}' AND grader = 'strict'"

_ANSWERS: Final = f"""
SELECT trial_id, {_WHO}, style, coalesce(try_cast(condition_params->>'shots' AS INT), 0) AS shots,
    json_merge_patch(condition_params, '{{"shots": null}}')::VARCHAR AS otherwise,
    {_KIND}, length, repeat, problem_id, outcome, input_tokens + output_tokens AS tokens, output_tokens,
    graded.exact_match, answered, digits_total
FROM (
    SELECT trial_id, exact_match, reason IS NULL AS answered, digits_total FROM grades WHERE {_STRICT}
) AS graded JOIN (SELECT * EXCLUDE (exact_match) FROM trials WHERE suite = '{SUITE}' AND outcome <> 'failed')
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

# A wrong answer that is one of the operands is the other one: the right answer is the first.
_COPIED = f"""
SELECT {_WHO}, {_KIND}, length, count(*) AS wrong, count(*) FILTER (list_contains(operands, answer)) AS copied
FROM (SELECT trial_id, answer FROM grades WHERE {_STRICT} AND NOT exact_match AND task IN ('max', 'min'))
    JOIN (SELECT trial_id, {_WHO}, {_KIND}, length, problem_set, problem_id FROM trials) USING (trial_id)
    JOIN (SELECT DISTINCT problem_set, problem_id, operands FROM problems) USING (problem_set, problem_id)
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_TRACES = f"""
SELECT {_WHO}, task, representation,
    coalesce(max(length) FILTER (tokens <= {TRACE_TOKENS} AND outcome <> 'truncated'), 0) AS longest
FROM answers WHERE style = 'rules' GROUP BY ALL HAVING count(tokens) > 0 ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_GAINS = f"""
SELECT run, model, few.condition, {", ".join(f"few.{name.strip()}" for name in _KIND.split(","))}, few.length,
    count(*) AS answers, sum(few.exact_match::INT - zero.exact_match::INT)::BIGINT AS gained,
    count(*) FILTER (few.exact_match AND NOT zero.answered) AS by_form
FROM (FROM answers WHERE shots > 0) AS few JOIN (FROM answers WHERE shots = 0) AS zero
    USING (run, model, style, otherwise, problem_id, repeat)
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone

_WRONG = f"""
SELECT {_WHO}, {_KIND}, length, expected, answer
FROM (SELECT trial_id, answer FROM grades WHERE {_STRICT} AND NOT exact_match AND answer IS NOT NULL)
    JOIN (SELECT trial_id, {_WHO}, {_KIND}, length, expected FROM trials) USING (trial_id)
QUALIFY row_number() OVER (PARTITION BY {_WHO} ORDER BY abs(length - 8), task, representation, trial_id) = 1
ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def picture_counts(folder: Folders) -> PictureCounts:
    """Return what pictures show beside the figures of a report. Raises as `counts_of` does."""
    return counted_of(folder, [SUITE], _counted)


def _counted(views: FolderViews) -> PictureCounts:
    views.keep("answers", _ANSWERS)
    return PictureCounts(
        shots={(row["run"], row["model"], row["condition"]): row["shots"] for row in views.rows(_SHOTS)},
        speeds=views.rows(_SPEEDS),
        single=views.rows(_SINGLE),
        copied=views.rows(_COPIED),
        traces=views.rows(_TRACES),
        gains=views.rows(_GAINS),
        wrong=views.rows(_WRONG),
    )
