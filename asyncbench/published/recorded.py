"""What files say of trials."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from asyncbench.records import Condition, Draft, Model, Reply

# model → condition → suite → task → trials
Planned = Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a file says of one trial."""

    draft: Draft
    model: Model
    condition: Condition = field(default_factory=Condition)
    reply: Reply | None  # None: none came
    attempts: int = 1
    latency_s: float | None = None
    cost_usd: float | None = None
    accounting: Mapping[str, object] | None = None  # as it stood: an export writes the same again
    at: float  # when it ended: UTC, seconds since 1970
    timed: bool = True  # it tells that itself; else the time is its file's


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What one file holds: a run."""

    run: str
    path: Path
    trials: tuple[Recorded, ...]  # in file order
    left_out: tuple[str, ...]  # entries that cannot be used: where, what, found, rule
    planned: Planned


def sifted(
    entries: Iterable[tuple[str, T]], read: Callable[[T], Recorded]
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Return the trials that could be read, and the complaints about the others, each with its place."""
    trials, left_out = list[Recorded](), list[str]()
    for place, entry in entries:
        try:
            trials.append(read(entry))
        except ValueError as error:
            left_out.append(f"{place}: {error}")
    return tuple(trials), tuple(left_out)
