"""Number of digits up to which 90 % and 50 % are right, for every model and task."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from asyncbench.analysis.curves import Curve, Length, fit
from asyncbench.store.schema import ENTRANT

TASK: Final = (*ENTRANT, "suite", "task")
GROUP: Final = (*TASK, "variant", "representation")  # a curve over unlike numbers is nobody's curve
_COUNTED: Final = ("correct", "trials", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitsCurve:
    """The curve of one group of cells."""

    of: Mapping[str, str]  # the columns that tell the group, in their order
    curve: Curve

    @property
    def at_90(self) -> Length:
        """Up to which length 90 % are right."""
        return self.curve.length_at(0.9)

    @property
    def at_50(self) -> Length:
        """The same of half."""
        return self.curve.length_at(0.5)

    @property
    def run(self) -> str:
        """The run, as the other four: where the groups are told by it."""
        return self.of["run"]

    @property
    def model(self) -> str:
        """The model's alias."""
        return self.of["model"]

    @property
    def condition(self) -> str:
        """The condition's name."""
        return self.of["condition"]

    @property
    def suite(self) -> str:
        """The suite."""
        return self.of["suite"]

    @property
    def task(self) -> str:
        """The task."""
        return self.of["task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardest:
    """The length up to which a share is right in the task where that is least."""

    task: str
    length: Length
    tasks: int  # among how many

    def __str__(self) -> str:
        """Return the length and, where others are longer, whose it is: `4.7 (4.2 to 5.1) int_mul`."""
        return f"{self.length}{self._whose()}"

    def in_short(self) -> str:
        """Return the same without limits: `4.7 digits (int_mul)`, `10 digits or more`."""
        if self.length.bound == "above":
            return f"{self.length.longest:g} digits or more"
        whose = self._whose().strip()
        return f"{str(self.length).partition(' (')[0]} digits" + (f" ({whose})" if whose else "")

    def _whose(self) -> str:
        return f" {self.task}" if self.tasks > 1 and self.length.bound != "above" else ""


def hardest(lengths: Mapping[str, Length]) -> Hardest | None:
    """Return the least of these lengths, by task; None where none is told. Of equals the first by name."""
    places = {task: place for task, length in lengths.items() if (place := _place(length)) is not None}
    if not places:
        return None
    task = min(places, key=lambda task: (places[task], task))
    return Hardest(task=task, length=lengths[task], tasks=len(lengths))


def hardest_at(share: float, curves: Mapping[str, DigitsCurve]) -> Hardest | None:
    """Return the same of curves by task; limits, which take time, are those of the hardest alone."""
    least = hardest({task: each.curve.length_at(share, limits=False) for task, each in curves.items()})
    return least and replace(least, length=curves[least.task].curve.length_at(share))


def _place(length: Length) -> tuple[int, float] | None:
    """Return where a length stands among others: what is below all that was asked first."""
    if length.bound is not None:
        return (0, length.shortest) if length.bound == "below" else (2, length.longest)
    if length.value is not None:
        return (1, length.value)
    return None if length.between is None else (1, length.between[0])


def tasks_named(digits: Iterable[DigitsCurve]) -> dict[str, DigitsCurve]:
    """Return curves of one suite by what their tasks are called: with all that tells them apart."""
    curves = list(digits)
    alike = Counter(curve.task for curve in curves)
    named = {}
    for curve in curves:
        more = (curve.of.get("variant"), curve.of.get("representation")) if alike[curve.task] > 1 else ()
        named[" ".join(filter(None, (curve.task, *more)))] = curve
    return named


def digits_at(cells: pa.Table, by: Sequence[str] = TASK) -> tuple[DigitsCurve, ...]:
    """Return the curve of each group of cells, in the order of the groups' names.

    Counted are the trials with a reply: a call that failed says nothing of length. Groups of which no length
    is known are left out.

    Args:
        cells: rows of the view `cells`; the columns of `by`, length, correct, trials and failed are used.
        by: the columns that tell the groups; add variant and representation where a task has several.
    """
    sums = cells.group_by([*by, "length"], use_threads=False).aggregate([(name, "sum") for name in _COUNTED])
    points = defaultdict[tuple[str, ...], list[tuple[float, int, int]]](list)
    for row in sums.to_pylist():
        correct, trials, failed = (row[f"{name}_sum"] for name in _COUNTED)
        if row["length"] is not None:
            points[tuple(row[name] for name in by)].append((row["length"], correct, trials - failed))
    curves = []
    for key in sorted(points):
        if curve := fit(points[key]):
            curves.append(DigitsCurve(of=dict(zip(by, key, strict=True)), curve=curve))
    return tuple(curves)
