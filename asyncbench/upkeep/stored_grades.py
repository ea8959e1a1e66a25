"""A batch of stored trials graded anew: their problems, the grades that stand for them, and the new rows."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.config.sweep import all_sources, load_sweep
from asyncbench.errors import ConfigError
from asyncbench.planning.belonging import current_copies
from asyncbench.problems.copies import ProblemTable, copies
from asyncbench.problems.row_graders import used_grader
from asyncbench.problems.schema import PROBLEM_SCHEMA, problems_of
from asyncbench.providers.params import longest_stored
from asyncbench.records import Condition, Grade, Problem, Reply, Usage
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import GRADES, OF_THE_TRIAL, PARTITIONED_BY
from asyncbench.store.snapshot import Snapshot
from asyncbench.suites.custom import grader_of
from asyncbench.suites.plugins import is_in_file
from asyncbench.suites.requests import digits_stored
from asyncbench.suites.table import SUITES, graded
from asyncbench.suites.thinking import reasoning_of

LONGEST_FAULT = 200  # characters of a fault that are told
MOST_READY = 65_536  # problems as records, which take ten times the memory of the columns they are made of
Column: TypeAlias = "pa.ChunkedArray[Any]"  # of any type: what its values are is known at run time alone


def joined(table: pa.Table, first: str, right: str) -> Column:
    """Return `left/right` of each row; at least one of the two is an id, so that no two pairs look alike."""
    text: Column = pc.binary_join_element_wise(table[first], table[right], "/")  # type: ignore[call-overload]  # the stubs forget the separator
    return text


class FolderQuestions:
    """Every problem of a results folder, as it stands now."""

    def __init__(self, folder: Path) -> None:
        """Read the folder's problems/, and load the users' own graders that they name.

        Raises:
            ConfigError: such a grader cannot be loaded.
            ProblemSetError: a copy of a problem set is damaged.
        """
        current = current_copies(folder)
        self._table = ProblemTable(current, [copy for copy in copies(folder) if copy not in current])
        self._problems = _update_graders(self._table.rows, folder)
        self._ready: dict[int, Problem] = {}

    def find(self, trials: pa.Table) -> list[Problem | None]:
        """Return the problem of each trial as the sweep asks it now; None where no copy holds it."""
        places = self._table.rows_of(trials).to_pylist()
        if len(self._ready) > MOST_READY:
            self._ready.clear()
        missing = sorted({index for index in places if index is not None} - self._ready.keys())
        rows = self._problems.select(PROBLEM_SCHEMA.names).take(pa.array(missing, pa.int64()))
        self._ready.update(zip(missing, problems_of(rows.to_batches()), strict=True))
        return [None if index is None else self._ready[index] for index in places]


def _update_graders(problems: pa.Table, folder: Path) -> pa.Table:
    """Return the problems with the present source of each grader that a user wrote."""
    extras: list[str] = problems["extra"].to_pylist()  # type: ignore[assignment]  # never NULL
    graded_by_file = [
        extra for extra in set(extras) if '"source"' in extra and is_in_file(grader_of(extra) or "")
    ]
    sweep, today = kept_sweep_file(folder), dict[str, str]()
    if sweep is not None and {*pc.unique(problems["suite"]).to_pylist()} - SUITES.ours.keys():
        load_sweep(sweep)  # which makes known the suites of files, as they are now
    if not graded_by_file:
        return problems
    for source in () if sweep is None else all_sources(load_sweep(sweep)):
        if source.grader is not None and is_in_file(source.grader):
            grader = used_grader(source.grader, sweep, place=str(sweep))
            today[grader.name] = grader.digest
    now = dict[str, str]()
    for extra in graded_by_file:
        fields = json.loads(extra)
        if fields["grader"] not in today:
            raise ConfigError(
                f"{folder}: its problems are graded by {fields['grader']!r}, but its sweep file does not say "
                "where that is. Run the sweep again, then regrade."
            )
        now[extra] = json.dumps(fields | {"source": today[fields["grader"]]})
    column = pa.array([now.get(extra, extra) for extra in extras], pa.string())
    return problems.set_column(problems.schema.get_field_index("extra"), "extra", column)


class EarlierGrades:
    """The stored grades, taken in the order of the trials, in which they are stored as well."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._batches: Iterator[pa.RecordBatch] = snapshot.batches("grades")
        self._waiting = GRADES.empty_table()
        self._in_order = True

    def take(self, trials: pa.Table) -> pa.Table:
        """Return the grades of the next trials, in any number of rows a trial.

        Raises:
            StoreError: a part cannot be read.
        """
        ids = trials["trial_id"].combine_chunks()
        if self._in_order:
            # Take rows as long as they are of these trials.
            taken = [GRADES.empty_table()]
            end = -1  # the first row of another trial; -1: there is none so far
            while end < 0:
                if not len(self._waiting):
                    following = next(self._batches, None)
                    if following is None:
                        break
                    self._waiting = pa.Table.from_batches([following], GRADES)
                end = pc.index(pc.is_in(self._waiting["trial_id"], value_set=ids), False).as_py()
                count = len(self._waiting) if end < 0 else end
                taken.append(self._waiting.slice(0, count))
                self._waiting = self._waiting.slice(count)
            batch = pa.concat_tables(taken)
            self._in_order = len(pc.unique(batch["trial_id"])) == len(ids)
            if self._in_order:
                return batch
        # another order, as after a compaction: looked up, which takes longer and finds them all the same
        wanted = pc.field("trial_id").isin(ids)
        for name in PARTITIONED_BY["grades"]:
            wanted &= pc.field(name).isin(trials[name].unique())  # so that other partitions are skipped
        return self._snapshot.read("grades", filters=wanted)


# ── A batch of stored trials graded anew: the rows that its grades and its trials get


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
    fault: str | None  # the first at which a grader stumbled; None: there is none


def regraded(trials: pa.Table, problems: Sequence[Problem | None], earlier: pa.Table) -> Regrade:
    """Grade stored replies by the newest graders.

    Args:
        trials: rows of `trials` with at least the columns of `REPLY`, `HEADLINE`, `OF_THE_TRIAL`, `expected`.
        problems: the problem of each; without one, or of a suite that is not known, it stays as it is.
        earlier: the rows of `grades` that stand for them.
    """
    stored = zip(*(trials[name].to_pylist() for name in REPLY[1:]), strict=True)
    replies = [_stored_reply(*values) for values in stored]
    faults = list[str]()

    def tell_fault(error: Exception) -> None:
        if not faults:
            faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_FAULT])

    columns = (trials[name].to_pylist() for name in ("style", "condition_params"))
    grades = [
        ()
        if problem is None or problem.suite not in SUITES
        else graded(problem, reply, Condition(style=style, digits=digits_stored(params)), tell_fault)
        for problem, reply, style, params in zip(problems, replies, *columns, strict=True)
    ]

    # The grades stand one after the other, with the columns they share with their trial.
    parents = pa.array([n for n, of_trial in enumerate(grades) for _ in of_trial], pa.int64())
    shared = trials.select(list(OF_THE_TRIAL)).take(parents)
    by_column = [*zip(*map(_fields, chain.from_iterable(grades)), strict=True)] or [()] * len(OF_THE_GRADE)
    grade_columns = [
        pa.array(values, GRADES.field(name).type)
        for name, values in zip(OF_THE_GRADE, by_column, strict=True)
    ]
    rows = pa.table([*shared.columns, *grade_columns], schema=GRADES)

    # Trials that cannot be graded keep the rows that stand for them; those that another tool has graded keep
    # its grades before ours.
    kept = pa.chunked_array([pa.array([not of_trial for of_trial in grades], pa.bool_())])
    unchanged = pa.chunked_array(
        [pa.array([not any(g.headline for g in of_trial) for of_trial in grades], pa.bool_())]
    )
    if pc.any(unchanged).as_py():
        unchanged_ids = trials["trial_id"].filter(unchanged)
        standing = earlier.filter(pc.is_in(earlier["trial_id"], value_set=unchanged_ids))
        ours = pc.is_in(joined(standing, "trial_id", "grader"), value_set=joined(rows, "trial_id", "grader"))
        rows = pa.concat_tables([standing.filter(pc.invert(ours)), rows])
        places = pc.index_in(rows["trial_id"], value_set=trials["trial_id"])
        rows = rows.take(pc.sort_indices(places))  # stable: a trial's grades keep their order
    anew = _trial_rows(trials, problems, replies, grades, unchanged)
    changed = not (anew.equals(trials) and rows.equals(earlier))
    return Regrade(trials=anew, grades=rows, kept=kept, changed=changed, fault=next(iter(faults), None))


def _stored_reply(
    text: str | None, reasoning: str | None, finish: str | None, written: int | None, *params: str
) -> Reply | None:
    """Return the reply in a trial's row, as far as grading needs it, or None if there was no reply."""
    if text is None:
        return None
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=finish,
        usage=Usage(output_tokens=written),
        max_tokens=longest_stored(*params),
    )


def _trial_rows(
    trials: pa.Table,
    problems: Sequence[Problem | None],
    replies: Sequence[Reply | None],
    grades: Sequence[Sequence[Grade]],
    unchanged: "pa.ChunkedArray[pa.BooleanScalar]",
) -> pa.Table:
    """Return the trials with what their headline grade says, the right answer, and their reasoning."""
    nothing = (None,) * len(HEADLINE)
    stored = zip(*(_headline(of_trial[0]) if of_trial else nothing for of_trial in grades), strict=True)
    values = dict(zip(HEADLINE, stored, strict=True))
    values["expected"] = tuple(problem.expected if problem else None for problem in problems)
    values["reasoning_text"] = tuple(reply and reasoning_of(reply) for reply in replies)
    for name, new in values.items():
        index = trials.schema.get_field_index(name)
        field = trials.schema.field(name)
        column = pc.if_else(unchanged, trials[name], pa.chunked_array([pa.array(new, field.type)]))
        trials = trials.set_column(index, field, column)
    return trials
