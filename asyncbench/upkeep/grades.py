"""A batch of stored trials graded anew: the rows that its grades and its trials get."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.planning.grading import graded
from asyncbench.providers.params import longest_stored
from asyncbench.records import Condition, Grade, Problem, Reply, Usage
from asyncbench.store.schema import GRADES, OF_THE_TRIAL
from asyncbench.suites.table import SUITES
from asyncbench.suites.wording import digits_stored

REPLY = (
    *("style", "reply_text", "reasoning_text", "finish_reason", "output_tokens"),
    *("params", "condition_params"),
)
OF_THE_GRADE = tuple(name for name in GRADES.names if name not in OF_THE_TRIAL)
HEADLINE = ("grader", "answer", "outcome", "exact_match")  # what a trial's row repeats of its headline grade

_fields, _headline = attrgetter(*OF_THE_GRADE), attrgetter(*HEADLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrade:
    """Trials with the grades of today's graders."""

    trials: pa.Table  # the rows as they will stand
    grades: pa.Table
    kept: "pa.ChunkedArray[pa.BooleanScalar]"  # trials that could not be graded: they are as they were
    changed: bool  # whether any row of either is another than before


def regraded(trials: pa.Table, problems: Sequence[Problem | None], earlier: pa.Table) -> Regrade:
    """Grade stored replies by the newest graders.

    Args:
        trials: rows of `trials` with at least the columns of `REPLY`, `HEADLINE`, `OF_THE_TRIAL`, `expected`.
        problems: the problem of each; without one, or of a suite that is not known, it stays as it is.
        earlier: the rows of `grades` that stand for them.
    """
    grades = _grades(trials, problems)
    kept = pa.chunked_array([pa.array([not of_trial for of_trial in grades], pa.bool_())])
    rows = _grade_rows(trials, grades)
    if pc.any(kept).as_py():
        standing = earlier.filter(pc.is_in(earlier["trial_id"], value_set=trials["trial_id"].filter(kept)))
        rows = pa.concat_tables([rows, standing])
        places = pc.index_in(rows["trial_id"], value_set=trials["trial_id"])
        rows = rows.take(pc.sort_indices(places))  # stable: a trial's grades keep their order
    anew = _trial_rows(trials, problems, grades, kept)
    changed = not (anew.equals(trials) and rows.equals(earlier))
    return Regrade(trials=anew, grades=rows, kept=kept, changed=changed)


def _grades(trials: pa.Table, problems: Sequence[Problem | None]) -> list[tuple[Grade, ...]]:
    """Return the grades of each trial; none of one that cannot be graded."""
    replies = zip(*(trials[name].to_pylist() for name in REPLY), strict=True)
    return [
        ()
        if problem is None or problem.suite not in SUITES
        else graded(problem, _reply(*stored), Condition(style=style, digits=digits_stored(stored[-1])))
        for problem, (style, *stored) in zip(problems, replies, strict=True)
    ]


def _reply(
    text: str | None, reasoning: str | None, finish: str | None, written: int | None, *params: str
) -> Reply | None:
    """Return what a trial's row keeps of its reply, as far as grading looks at it; None: it has none."""
    if text is None:
        return None
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=finish,
        usage=Usage(output_tokens=written),
        max_tokens=longest_stored(*params),
    )


def _grade_rows(trials: pa.Table, grades: Sequence[Sequence[Grade]]) -> pa.Table:
    """Return the grades one after the other, with the columns they share with their trial."""
    parents = pa.array([n for n, of_trial in enumerate(grades) for _ in of_trial], pa.int64())
    shared = trials.select(list(OF_THE_TRIAL)).take(parents)
    own = [*zip(*map(_fields, chain.from_iterable(grades)), strict=True)] or [()] * len(OF_THE_GRADE)
    columns = [
        pa.array(values, GRADES.field(name).type) for name, values in zip(OF_THE_GRADE, own, strict=True)
    ]
    return pa.table([*shared.columns, *columns], schema=GRADES)


def _trial_rows(
    trials: pa.Table,
    problems: Sequence[Problem | None],
    grades: Sequence[Sequence[Grade]],
    kept: "pa.ChunkedArray[pa.BooleanScalar]",
) -> pa.Table:
    """Return the trials with what their headline grade says, and the answer it was compared with."""
    nothing = (None,) * len(HEADLINE)
    said = zip(*(_headline(of_trial[0]) if of_trial else nothing for of_trial in grades), strict=True)
    values = dict(zip(HEADLINE, said, strict=True))
    values["expected"] = tuple(problem.expected if problem else None for problem in problems)
    for name, new in values.items():
        place = trials.schema.get_field_index(name)
        field = trials.schema.field(name)
        column = pc.if_else(kept, trials[name], pa.chunked_array([pa.array(new, field.type)]))
        trials = trials.set_column(place, field, column)
    return trials
