"""Grading that no fault of a grader stops: a reply that was paid for is never lost to it."""

from collections.abc import Callable

from asyncbench.engine import GRADER_ERROR
from asyncbench.records import Grade, Problem, Reply, outcome_of
from asyncbench.suites import SUITES, grade


def graded(
    problem: Problem,
    reply: Reply | None,
    style: str,
    tell_fault: Callable[[Exception], None] = lambda _: None,
) -> tuple[Grade, ...]:
    """Return the grades of a reply, headline first; of one that a grader stumbles over, the mark of that."""
    try:
        return grade(problem, reply, style)
    except Exception as error:  # a fault in a grader must not cost an answer that was paid for
        tell_fault(error)
        return (_ungraded(problem, reply, error),)


def _ungraded(problem: Problem, reply: Reply | None, error: Exception) -> Grade:
    """Return the mark of a reply that a grader stumbled over; the reply is kept and can be graded again."""
    return Grade(
        grader=SUITES[problem.suite].graders[0],
        grader_version=0,
        headline=True,
        answer=None,
        classification=None,
        reason=GRADER_ERROR,
        outcome=outcome_of(reply, answer=None, exact_match=False),
        exact_match=False,
        flags=(type(error).__name__,),
    )
