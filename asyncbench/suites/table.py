"""Suites: what is asked and what counts as right. Pure, exact and seeded; no files and no network."""

from collections.abc import Mapping

from asyncbench.errors import ProblemSetError
from asyncbench.records import Grade, Problem, Reply
from asyncbench.suites import custom, integer_addition, llm_arithmetic, nupa, strings
from asyncbench.suites.suite import Suite

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        llm_arithmetic.SUITE,
        integer_addition.SUITE,
        strings.STRING_REVERSAL,
        strings.STRING_REHEARSAL,
        nupa.SUITE,
        custom.SUITE,
    )
}


def grade(problem: Problem, reply: Reply | None, style: str = "chat") -> tuple[Grade, ...]:
    """Return the grades of a reply by the graders of its suite, headline first; reply None: none came.

    Raises:
        ProblemSetError: the problem is of no suite we know.
    """
    if problem.suite not in SUITES:
        known = ", ".join(SUITES)
        raise ProblemSetError(f"problem {problem.problem_id}: no suite {problem.suite!r}; known: {known}")
    return SUITES[problem.suite].grade(problem, reply, style)


def grade_text(problem: Problem, text: str, style: str = "chat") -> tuple[Grade, ...]:
    """Return the grades of a reply that is only known as text, headline first."""
    return grade(problem, Reply(text=text), style)
