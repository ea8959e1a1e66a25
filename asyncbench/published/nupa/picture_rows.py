"""What NUPA's pictures are drawn from: the rows of ranges of lengths, and the names of models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncbench.published.nupa.counts import RANGES, LengthTally, TaskLine, task_name
from asyncbench.published.nupa.picture_counts import PictureCounts, Row
from asyncbench.published.printed import MARK
from asyncbench.results import Entrant
from asyncbench.suites.nupa import NupaTask, range_of

SCALES: Final[Mapping[str, str]] = {"exact_match": "share", "digit_match": "share", "dlength": "digits"}
GUESSED: Final[Mapping[str, float]] = {"get_digit": 0.1, "max": 0.5, "min": 0.5}  # exact match of guessing
POOLED: Final = "Means over the answers of a range, graded by `strict`."
PRINTED_NOTE: Final = f"Models marked {MARK} are as the paper prints them."

Kind = tuple[str, str, str]  # task, variant, representation


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What all pictures are drawn from."""

    lines: Sequence[TaskLine]
    counts: PictureCounts
    names: Mapping[Entrant, str]  # as charts show them
    ranges: Sequence[Row]  # a row for each of S, M, L, XL of each line
    printed: bool  # whether the paper's own figures stand beside

    def named(self, row: Row) -> str:
        """Return what to call whoever a row is of."""
        return self.names[row["run"], row["model"], row["condition"]]

    def notes(self, *notes: str) -> tuple[str, ...]:
        """Return the notes of a picture in which the paper's figures may stand beside."""
        return (*notes, PRINTED_NOTE) if self.printed else notes


def range_rows(lines: Iterable[TaskLine], names: Mapping[Entrant, str]) -> list[Row]:
    rows = []
    for line in lines:
        found, task = line.by_grader["strict"], line.task
        for of_range in RANGES:
            tally = LengthTally()
            for length, added in found.by_length.items():
                tally = tally.plus(added) if range_of(length, task.length_class) == of_range else tally
            means = {figure: float_or_none(found.figures[figure].ranges[of_range]) for figure in SCALES}
            rows.append(
                {
                    "task": task_name(task),
                    "representation": task.representation,
                    "range": of_range,
                    "model": names[line.asked],
                    "asked": line.asked,
                    "kind": kind_of(task),
                    "variant": task.variant or "plain",
                    "answers": tally.answers,
                    **means,
                    "no_answer": tally.no_answer / tally.answers if tally.answers else None,
                    "digits_asked": tally.digits / tally.answers if tally.answers else None,
                    "guess": GUESSED.get(task.task),
                }
            )
    return rows


def kind_of(task: NupaTask) -> Kind:
    return task.task, task.variant, task.representation


def asked_of(row: Row) -> Entrant:
    return row["run"], row["model"], row["condition"]


def float_or_none(value: Any) -> float | None:  # Any: a number, or None
    return None if value is None else float(value)
