"""Problems of one cell of NUPA, without a set."""

from collections.abc import Iterator
from itertools import chain

from asyncbench.problems.schema import identified
from asyncbench.records import Draft, Problem
from asyncbench.suites.nupa.generation import draft_nupa, rows_of
from asyncbench.suites.nupa.tasks import TASKS, NupaTask

SUM = "add_Integer_Integer_Integer"


def problem(name: str = SUM, *operands: str, profile: str = "fixed") -> Problem:
    """Return a problem of a task with these operands."""
    (made,) = identified([draft_nupa(TASKS[name], operands or ("744", "543"), profile=profile)])
    return made


def drafts_of(
    task: NupaTask, length: int, *, seed: int, profile: str = "fixed", stream: str = "test"
) -> Iterator[Draft]:
    """Yield the problems of one cell, each once, until it holds no more."""
    return chain.from_iterable(rows_of(task, [length], seed=seed, profile=profile, stream=stream))
