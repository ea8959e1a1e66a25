"""Accuracy against length by entrant and kind: points, lines, and the length at which half is right.

A curve has at most `MOST_POINTS` points and `MOST_STEPS` steps of its line, however many lengths and trials
it is made from.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from operator import itemgetter
from typing import Any, Final

from asyncbench.analysis.cells import METRICS, cells_in, repeats_of, rows_by, summed
from asyncbench.analysis.counting import FolderViews, once
from asyncbench.analysis.curves import Curve, Length, curve_of
from asyncbench.analysis.entrants import asked_in, kind_of
from asyncbench.page.charts.chart import Row
from asyncbench.stats.proportions import wilson
from asyncbench.suites.nupa.tasks import TASKS, range_of

# ── metrics by entrant and kind, and accuracy by length ──────────────────────────────────────────
# Metrics have a row for each entrant and kind. Accuracy by length has at most `MOST_BINS` times as many: a
# long length is in the bin of its first digit, such as 11 to 20 or 201 to 300.


MOST_LENGTHS: Final = 24  # columns; more are put into bins
MOST_BINS: Final = 64  # of a range, of lengths below ten million: ten, then nine for each further digit

_CLASSES: Final = {
    (task.task, task.variant, task.representation): task.length_class for task in TASKS.values()
}


def heat_rows(views: FolderViews) -> list[Row]:
    """Return each entrant and kind with [value, low, high, trials] of every metric that is known of it."""
    return [
        {
            "kind": kind,
            "asked": entrant,
            "trials": sums["trials"],
            "values": {
                name: [measured.value, measured.low, measured.high, measured.trials]
                for name, metric in METRICS.items()
                if (measured := metric.measure(sums)).value is not None
            },
        }
        for (kind, entrant), sums in sorted(summed(placed_cells(views), ("kind", "asked")).items())
    ]


def length_rows(views: FolderViews) -> list[Row]:
    """Return the accuracy of each entrant and kind by length, in bins where these are many."""
    keys = dict(enumerate(kind.key for kind in asked_in(views).kinds))
    cells = [
        {**cell, "range": range_in(*keys[cell["kind"]], cell["length"])}
        for cell in placed_cells(views)
        if cell["length"] is not None
    ]
    bins = length_bins((cell["range"], cell["length"]) for cell in cells)
    binned = [{**cell, "bin": bins[cell["range"], cell["length"]]} for cell in cells]
    by_bin = summed(binned, ("kind", "asked", "bin", "range"))
    return [
        {
            "kind": kind,
            "asked": entrant,
            "length": span[1],
            "from": span[0],
            "to": span[1],
            "range": in_range,
            "value": accuracy.value,
            "trials": accuracy.trials,
        }
        for (kind, entrant, span, in_range), sums in sorted(by_bin.items())
        for accuracy in (METRICS["accuracy"].measure(sums),)
    ]


@once
def placed_cells(views: FolderViews) -> list[dict[str, Any]]:
    """Return the cells of a folder with the places of their entrant and kind."""
    entrants, kinds = asked_in(views).entrant_places, asked_in(views).kind_places
    return [
        {**cell, "asked": entrants[who], "kind": kinds[kind_of(cell)]}
        for cell in cells_in(views)
        if (who := (cell["run"], cell["model"], cell["condition"])) in entrants
    ]


def length_bins(lengths: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the first and last length of the bin of each length of a range; few lengths are not binned.

    Bins end on round lengths: 10, 20, …, 100, 200, … Each is in one of NUPA's ranges, which differ by task.
    """
    pairs = sorted(set(lengths))
    if len({length for _, length in pairs}) <= MOST_LENGTHS:
        return {(range_name, length): (length, length) for range_name, length in pairs}

    def bin_key(pair: tuple[str, int]) -> tuple[str, int]:
        range_name, length = pair
        unit: int = 10 ** (len(str(length)) - 1) if length > 10 else 1
        return range_name, -(-length // unit) * unit

    bins = rows_by(pairs, bin_key).values()
    return {pair: (pairs_in_bin[0][1], pairs_in_bin[-1][1]) for pairs_in_bin in bins for pair in pairs_in_bin}


def range_in(suite: str, task: str, variant: str, representation: str, length: int | None) -> str:
    """Return the range of a length in its task, S, M, L or XL; empty where there is none."""
    length_class = _CLASSES.get((task, variant, representation)) if suite == "nupa" else None
    return "" if length_class is None or length is None else range_of(length, length_class) or ""


# ── curves ───────────────────────────────────────────────────────────────────────────────────────


LEAST_TRIALS: Final = 8  # of a point: fewer say too little to be drawn
MOST_POINTS: Final = 20  # of a curve
_EVEN_STEPS: Final = 12
_SHARES: Final = (0.99, 0.97, 0.93, 0.85, 0.75, 0.6, 0.5, 0.4, 0.25, 0.15, 0.07, 0.03, 0.01)
MOST_STEPS: Final = _EVEN_STEPS + 1 + len(_SHARES)  # of a line: even ones, and more where it is steep
HALF: Final = 0.5
NO_REPLY: Final = "no reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCurve:
    """The curve of one entrant and one kind; places are those of `Asked`."""

    kind: int
    entrant: int
    curve: Curve | None  # None: no call had a reply
    repeats: float  # times that each problem was asked: in intervals of points it counts once

    shortest: float  # length that was asked
    longest: float

    @property
    def half(self) -> Length:
        """Up to which length half of the answers are right."""
        return self.length_at(HALF)

    def length_at(self, share: float) -> Length:
        """Return up to which length a share of the answers is right."""
        if self.curve is None:
            return Length(shortest=self.shortest, longest=self.longest, why=NO_REPLY)
        return self.curve.length_at(share)

    @property
    def bins(self) -> list[tuple[float, float, float]]:
        """The points of the curve: shortest and longest length, share right."""
        points = _bins(self.curve.points) if self.curve else []
        return [
            (bin_[0][0], bin_[-1][0], sum(right for _, right, _ in bin_) / _trials(bin_)) for bin_ in points
        ]

    @property
    def trials(self) -> int:
        """Trials with a reply."""
        return _trials(self.curve.points) if self.curve else 0


@once
def kind_curves(views: FolderViews) -> tuple[KindCurve, ...]:
    """Return a curve for each entrant and kind of which a length is known, by kind and then by entrant."""
    measured = (cell for cell in placed_cells(views) if cell["length"] is not None)
    groups = rows_by(measured, itemgetter("kind", "asked"))
    return tuple(
        KindCurve(
            kind=kind,
            entrant=entrant,
            curve=curve_of(cells),
            repeats=repeats_of(cells),
            shortest=min(cell["length"] for cell in cells),
            longest=max(cell["length"] for cell in cells),
        )
        for (kind, entrant), cells in sorted(groups.items())
    )


# ── points and lines ─────────────────────────────────────────────────────────────────────────


def break_rows(curves: Iterable[KindCurve]) -> list[Row]:
    """Return the points, line and crossing of each curve."""
    paths: dict[object, int] = {}
    rows = list[Row]()
    for each in curves:
        curve = each.curve
        if curve is None:
            continue

        # Curves of a kind that lie on each other, within two points, share a path.
        width = (curve.longest - curve.shortest) / _EVEN_STEPS
        shares = (curve.share_at(curve.shortest + n * width)[0] for n in range(_EVEN_STEPS + 1))
        heights = tuple(None if share is None else round(50 * share) for share in shares)
        path = paths.setdefault((each.kind, curve.shortest, curve.longest, heights), len(paths))

        drawn = [*_points(each, curve), *_line(each, curve)]
        half = each.half
        if half.value is not None:
            drawn.append(_row(each, "half", half.value, (HALF, None, None), label=f"{half.value:.1f}"))
        rows += [{**row, "path": path} for row in drawn]
    return rows


def _points(each: KindCurve, curve: Curve) -> Iterator[Row]:
    """Yield the counted points of a curve, each of one bin of lengths."""
    for bin_ in _bins(curve.points):
        right, trials = sum(right for _, right, _ in bin_), sum(n for _, _, n in bin_)
        low, high = wilson(right / trials, trials / each.repeats)
        length = sum(length * n for length, _, n in bin_) / trials
        yield _row(
            each, "point", length, (right / trials, low, high), trials=trials, span=(bin_[0][0], bin_[-1][0])
        )


def _bins(points: Sequence[tuple[float, int, int]]) -> list[list[tuple[float, int, int]]]:
    """Return lengths in bins of `LEAST_TRIALS` or more, `MOST_POINTS` bins at most.

    A last bin with fewer joins its neighbour; a curve that has fewer in all is no bin at all.
    """
    size = ceil(len(points) / MOST_POINTS)
    bins: list[list[tuple[float, int, int]]] = [[]]
    for point in points:
        if len(bins[-1]) >= size and _trials(bins[-1]) >= LEAST_TRIALS:
            bins.append([])
        bins[-1].append(point)
    if len(bins) > 1 and _trials(bins[-1]) < LEAST_TRIALS:
        bins[-2:] = [bins[-2] + bins[-1]]
    return [bin_ for bin_ in bins if _trials(bin_) >= LEAST_TRIALS]


def _trials(points: Iterable[tuple[float, int, int]]) -> int:
    return sum(trials for _, _, trials in points)


def _line(each: KindCurve, curve: Curve) -> Iterator[Row]:
    """Yield the fitted line; or its step, where all is right up to some length and wrong beyond it."""
    if curve.shortest == curve.longest or each.trials < LEAST_TRIALS:
        return
    if curve.line is None:  # the ends of a step
        shares = [(length, right / trials) for length, right, trials in curve.points]
        changes = (pair for pair in pairwise(shares) if pair[0][1] != pair[1][1])
        lengths = {curve.shortest, curve.longest, *(length for pair in changes for length, _ in pair)}
    else:
        line = curve.line._replace(  # as sure as one repeat of its problems is
            variance_of_intercept=curve.line.variance_of_intercept * each.repeats,
            covariance=curve.line.covariance * each.repeats,
            variance_of_slope=curve.line.variance_of_slope * each.repeats,
        )
        curve = replace(curve, line=line)
        width = (curve.longest - curve.shortest) / _EVEN_STEPS
        even = [curve.shortest + n * width for n in range(_EVEN_STEPS)]
        steep = [length for share in _SHARES if (length := curve.crossing(share)) is not None]
        lengths = {*even, curve.longest, *steep}  # close where the line is steep
    for length in sorted(lengths):
        share, low, high = curve.share_at(length)
        if share is not None:
            yield _row(each, "line", length, (share, low, high))


def _row(
    each: KindCurve,
    sort: str,
    length: float,
    share: tuple[float | None, float | None, float | None],
    *,
    trials: int = 0,
    label: str = "",
    span: tuple[float, float] | tuple[None, None] = (None, None),
) -> Row:
    value, low, high = (None if figure is None else round(figure, 5) for figure in share)
    return {
        "kind": each.kind,
        "asked": each.entrant,
        "sort": sort,
        "length": round(length, 4),
        "value": value,
        "low": low,
        "high": high,
        "trials": trials,
        "label": label,
        "from": span[0],
        "to": span[1],
    }


# ── lengths at which half is right ───────────────────────────────────────────────────────────────


def half_rows(curves: Iterable[KindCurve]) -> list[Row]:
    """Return for each curve up to which length half is right; the longest first, by kind.

    Each curve has a row. A length beyond those that were asked is a bound, and stands at their end on the
    axis; a step stands in its middle. Where nothing is known, `at` is None and the label says why.
    """
    rows = list[Row]()
    for each in curves:
        half = each.half
        length_shown = {"above": half.longest, "below": half.shortest}.get(half.bound or "", half.value)
        if half.between is not None:
            length_shown = sum(half.between) / 2
        bound = half.bound or ("between" if half.between else "within")
        rows.append(
            {
                "kind": each.kind,
                "asked": each.entrant,
                "at": length_shown,
                "low": half.low,
                "high": half.high,
                "bound": bound if half.why is None else None,
                "shortest": half.shortest,
                "longest": half.longest,
                "label": _BRIEFLY.get(half.why, half.why) if half.why else str(half).partition(" (")[0],
                "trials": each.trials,
            }
        )
    return sorted(
        rows,
        key=lambda row: (row["kind"], row["at"] is None, -(row["at"] or 0), -_BOUNDS.get(row["bound"], 0)),
    )


_BOUNDS: Final = {"above": 1, "below": -1}


# Why there is no length, in the room beside a dot.
_BRIEFLY: Final = {"only one length was asked": "one length", "accuracy rises with length": "rises"}
