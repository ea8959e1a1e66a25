"""Grades of replies: no fault of a grader stops a run, and a corrected answer makes an old grade untrue."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from asyncbench.engine.lane_model import GRADER_ERROR
from asyncbench.problems.problem_set import contract_batches
from asyncbench.problems.schema import ROWS_AT_ONCE
from asyncbench.records import Condition, Grade, Problem, Reply, outcome_of
from asyncbench.store.catalog import read_grades, read_trials, texts
from asyncbench.suites.custom import grader_of
from asyncbench.suites.plugins import version_of
from asyncbench.suites.table import SUITES, grade

NO_VERSION: Final = 0  # of a grader that stumbled


def graded(
    problem: Problem,
    reply: Reply | None,
    condition: Condition,
    tell_fault: Callable[[Exception], None] = lambda _: None,
) -> tuple[Grade, ...]:
    """Return the grades of a reply, headline first; of one that a grader stumbles over, the mark of that.

    The condition says how the problem was asked: in which style, and in which form its numbers. A reply that
    a grader stumbles over was paid for: it is kept, and can be graded again.
    """
    try:
        return grade(problem, reply, condition.style, condition.digits)
    except Exception as error:
        tell_fault(error)
        mark = Grade(
            grader=grader_of(problem.extra) or SUITES[problem.suite].graders[0],
            grader_version=NO_VERSION,
            headline=True,
            answer=None,
            classification=None,
            reason=GRADER_ERROR,
            outcome=outcome_of(reply, answer=None, exact_match=False),
            exact_match=False,
            flags=(type(error).__name__,),
        )
        return (mark,)


def corrected(folder: Path, used: Sequence[Path]) -> int:
    """Return how many finished trials were graded by an answer that their problem has no longer.

    Args:
        folder: a results folder.
        used: the copies in it that count now; where two hold a problem, the first does.

    Raises:
        ProblemSetError, StoreError: a copy or a part cannot be read.
    """
    names = {path.name for path in used}
    earlier = [path for path in sorted((folder / "problems").glob("*.parquet")) if path.name not in names]
    if not earlier:
        return 0  # nothing can have changed: a set with another answer is another copy
    now = pa.concat_tables(map(_answers, used)).combine_chunks()
    changed = pa.concat_tables(_others(_answers(path), now) for path in earlier).combine_chunks()
    if not len(changed):
        return 0
    ids = pc.unique(changed["problem_id"])
    graded = read_trials(folder, ["problem_id", "expected"], pc.field("problem_id").isin(ids))
    return len(_others(graded, now))


def outgraded(folder: Path, now: Mapping[str, str]) -> dict[str, int]:
    """Return how many finished trials were graded by another version of a grader of somebody's own, by name.

    Args:
        folder: a results folder.
        now: the digests of the graders' sources as they are now, by name.

    Raises:
        StoreError: a part cannot be read.
    """
    if not now:
        return {}
    name, version = pc.field("grader"), pc.field("grader_version")
    others = [(name == own) & ~version.isin([NO_VERSION, version_of(source)]) for own, source in now.items()]
    rows = read_grades(folder, ["grader"], pc.field("headline") & reduce(or_, others))
    return dict(Counter(texts(rows["grader"].combine_chunks())))


def _answers(path: Path) -> pa.Table:
    return pa.Table.from_batches(
        contract_batches(path, rows=ROWS_AT_ONCE, columns=["problem_id", "expected"])
    )


def _others(rows: pa.Table, now: pa.Table) -> pa.Table:
    """Return the rows whose problem is there now, with another answer than theirs."""
    place = pc.index_in(rows["problem_id"], value_set=now["problem_id"])
    both = rows.append_column("now", now["expected"].take(place))
    return both.filter(pc.field("expected") != pc.field("now")).select(rows.column_names)
