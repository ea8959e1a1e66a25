"""The table of all suites, ours and those of installed packages, and grading by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Any, Final

from asyncbench.errors import ProblemSetError
from asyncbench.records import GRADER_ERROR, NO_VERSION, Condition, Grade, Problem, Reply, outcome_of
from asyncbench.suites import custom, integer_addition, llm_arithmetic, nupa
from asyncbench.suites.numbers import plain
from asyncbench.suites.plugins import Origin, WithPackages
from asyncbench.suites.suite import Suite
from asyncbench.suites.thinking import answer_of

_OURS = (
    llm_arithmetic.SUITE,
    integer_addition.SUITE,
    integer_addition.STRING_REVERSAL,
    integer_addition.STRING_REHEARSAL,
    nupa.SUITE,
    custom.SUITE,
)


def _added(suite: object, origin: Origin) -> Suite:
    if not isinstance(suite, Suite) or suite.name != origin.name:
        raise ValueError(f"it must be a Suite called {origin.name!r}, as its entry point is")

    def grade_answer(problem: Problem, reply: Reply | None, style: str) -> tuple[Grade, ...]:
        return suite.grade(problem, answer_of(reply), style)

    return replace(suite, grade=grade_answer)


SUITES: Final = WithPackages("suites", {suite.name: suite for suite in _OURS}, _added)


def grade(
    problem: Problem, reply: Reply | None, style: str = "chat", digits: Sequence[str] = ()
) -> tuple[Grade, ...]:
    """Return the grades of a reply by the graders of its suite, headline first; reply None: none came.

    Numbers in the forms `digits` are read as plain digits.

    Raises:
        ProblemSetError: the problem is of no suite we know.
    """
    if problem.suite not in SUITES:
        names = ", ".join(SUITES)
        raise ProblemSetError(f"problem {problem.problem_id}: no suite {problem.suite!r}. Known: {names}.")
    if digits and reply is not None:
        reply = replace(reply, text=plain(reply.text, digits))
    return SUITES[problem.suite].grade(problem, reply, style)


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
            grader=custom.grader_of(problem.extra) or SUITES[problem.suite].graders[0],
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


@cache
def grader_versions(suite: str) -> Mapping[str, int]:
    """Return the graders of a suite with their versions, as a failed trial has them; not of `custom`."""
    problem = Problem(
        problem_id="",
        suite=suite,
        task="",
        representation="integer",
        length=1,
        question="",
        expected="0",
        answer_type="integer",
    )
    return {grade.grader: grade.grader_version for grade in graded(problem, None, Condition())}


def grade_text(
    problem: Problem | Mapping[str, object],
    text: str,
    style: str = "chat",
    digits: Sequence[str] = (),
) -> tuple[Grade, ...]:
    """Grade the text of a reply with the graders of the problem's suite. No model is called.

        problem = ab.read_problems("results/night").to_pylist()[0]
        print(ab.grade(problem, "The answer is 42.")[0].exact_match)

    Args:
        problem: a row as `read_problems` gives it, or a `Problem`.
        text: the reply.
        style: how the question was asked, for suites that read replies differently. [chat]
        digits: the forms that the reply has its numbers in, as `condition_params` lists them. [none]

    Returns:
        One `Grade` per grader, the headline grade first. Each has the columns of `grades`.

    Raises:
        ProblemSetError: The row lacks a column of a problem, or no suite has that name.
    """
    if not isinstance(problem, Problem):
        row = dict(problem)  # also of pandas, which is not a mapping
        if lacking := [f.name for f in fields(Problem) if f.default is MISSING and f.name not in row]:
            raise ProblemSetError(
                f"this is not a row of problems: it has no {', '.join(lacking)}. Give a row of "
                "`read_problems` with all columns."
            )
        values: dict[str, Any] = {
            field.name: row[field.name] for field in fields(Problem) if field.name in row
        }
        problem = Problem(**values | {"operands": tuple(values.get("operands", ()))})
    return grade(problem, Reply(text=text), style, digits)
