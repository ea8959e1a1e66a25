"""What a grader of the suite `custom` says of a reply, and the answers that a problem accepts."""

import json
from typing import NamedTuple

from asyncbench.records import Problem


class Judgement(NamedTuple):
    """What a grader says of a reply."""

    correct: bool
    answer: str | None
    format_ok: bool | None = None
    reason: str | None = None  # why there is no answer; None: none was read
    score: float | None = None  # from 0 to 1; None: the grader gives none


def accepted_answers(problem: Problem) -> tuple[str, ...]:
    """Return every answer that counts as right, the problem's `expected` first."""
    if '"accepted"' not in problem.extra:
        return (problem.expected,)
    return tuple(json.loads(problem.extra).get("accepted") or (problem.expected,))
