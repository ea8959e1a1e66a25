"""Problems of the suites: drawn from a seed, or with nothing in them but what a grader looks at."""

from asyncbench.records import Draft, Problem
from asyncbench.suites.table import SUITES


def drafts_of(suite: str, seed: int = 7, **given: object) -> list[Draft]:
    """Make the problems of a suite, at least one."""
    generate = SUITES[suite].generate
    assert generate is not None
    made = list(generate(seed, SUITES[suite].parsed(given, place="test")))
    assert made
    return made


def problem(suite: str, expected: str, *, task: str = "", kind: str = "text", extra: str = "") -> Problem:
    """Return a problem without a question, whose answer is of a kind: integer, float or text."""
    return Problem(
        problem_id="p",
        suite=suite,
        task=task or suite,
        representation=kind,
        length=5,
        question="",
        expected=expected,
        answer_type={"float": "decimal"}.get(kind, kind),
        extra=extra,
    )
