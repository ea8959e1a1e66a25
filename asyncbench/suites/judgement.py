"""The judgement of a grader of the suite `custom` on a reply."""

from typing import NamedTuple


class Judgement(NamedTuple):
    """What a grader says of a reply."""

    correct: bool
    answer: str | None
    format_ok: bool | None = None
    reason: str | None = None  # why there is no answer; None: none was read
    score: float | None = None  # from 0 to 1; None: the grader gives none
