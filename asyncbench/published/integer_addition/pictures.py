"""The pictures of the integer addition benchmark: its page has none, but names what there is to see."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from asyncbench.published.integer_addition.counts import (
    ADDITION,
    LENGTHS,
    SUITES,
    RunLine,
    SizeBin,
    span,
)
from asyncbench.published.pictures import PublishedPicture
from asyncbench.results import names_of
from asyncbench.stats import wilson

Row = dict[str, Any]  # Any: text, number or None, by column
_ENDS: Final[Mapping[int, int]] = {first: after - 1 for first, after in pairwise(LENGTHS[ADDITION])}
_BINS: Final[Mapping[str, tuple[str, Callable[[RunLine], Sequence[SizeBin]]]]] = {  # → the axis, its bins
    "ia-6-size": ("digits of the longer number", lambda line: line.by_length),
    "ia-7-carries": ("number of carries", lambda line: line.by_carries),
    "ia-7-chain": ("longest run of carries", lambda line: line.by_chain),
}


class LineMeasure(NamedTuple):
    """What is shown of each line of one suite, a row of points or a bar for each model."""

    title: str
    kind: str
    value: str
    series: str
    rows: Callable[[RunLine], Iterable[Row]]
    scale: str = "share"


def _share(name: str, count: int, trials: int) -> Row:
    """Return a share with its 95 % interval; unknown of none."""
    if not trials:
        return dict.fromkeys((name, "low", "high"))
    low, high = wilson(count / trials, trials)
    return {name: count / trials, "low": low, "high": high, "trials": trials}


def _rates(line: RunLine) -> Iterator[Row]:
    for of, count in (("recorded results", line.results), ("all tries", line.tries)):
        yield {"of": of, **_share("success rate", line.successes, count)}


def _durations(line: RunLine) -> Iterator[Row]:
    figures = {"median": line.latency_p50_s, "mean": line.latency_mean_s, "p95": line.latency_p95_s}
    for figure, value in figures.items():
        yield {"figure": figure, "seconds": value}


def _outcomes(line: RunLine) -> Iterator[Row]:
    for kind, count in {"success": line.successes, **line.errors}.items():
        yield {"kind": kind, "share of tries": count / line.tries if line.tries else None}


def _failures(line: RunLine) -> Iterator[Row]:
    for kind, count in line.modes.items() if line.examined else ():
        yield {"kind": kind, "wrong replies": count}


def _reasoning(line: RunLine) -> Iterator[Row]:
    if line.reasoned:
        yield _share("share", line.reasoned, line.results)


def _formats(line: RunLine) -> Iterator[Row]:
    yield _share("share", line.format_ok, line.results)


MEASURES: Final = {
    "ia-1-success": LineMeasure("success rate", "dots", "success rate", "of", _rates),
    "ia-2-duration": LineMeasure("seconds per call", "dots", "seconds", "figure", _durations, "number"),
    "ia-3-errors": LineMeasure("what became of the tries", "stack", "share of tries", "kind", _outcomes),
    "ia-4-reasoning": LineMeasure("results that show their reasoning", "dots", "share", "", _reasoning),
    "ia-5-modes": LineMeasure("common failures", "stack", "wrong replies", "kind", _failures, "number"),
    "ia-8-format": LineMeasure("results that are the answer alone", "dots", "share", "", _formats),
}


def pictures_of(lines: Sequence[RunLine]) -> Iterator[PublishedPicture]:
    """Yield every picture; those without data have no rows."""
    names = names_of([line.asked for line in lines])
    for suite in SUITES:
        for name, measure in MEASURES.items():
            yield PublishedPicture(
                name=name if suite == ADDITION else f"{name}-{suite.replace('_', '-')}",
                title=f"{suite}: {measure.title}",
                kind=measure.kind,
                rows=[
                    {"model": names[line.asked], **row}
                    for line in lines
                    if line.suite == suite
                    for row in measure.rows(line)
                ],
                y="model",
                value=measure.value,
                series=measure.series,
                scale=measure.scale,
            )
    added = [line for line in lines if line.suite == ADDITION]
    for name, (axis, bins_of) in _BINS.items():
        yield _by_bins(name, axis, [(names[line.asked], bins_of(line)) for line in added])
    yield PublishedPicture(
        name="ia-6-operands",
        title="Additions by digits of the longer and the shorter number",
        kind="map",
        rows=[
            {
                "model": names[line.asked],
                "longer": span(cell.longer, _ENDS.get(cell.longer)),
                "shorter": span(cell.shorter, _ENDS.get(cell.shorter)),
                "success rate": cell.successes / cell.results,
                "results": cell.results,
            }
            for line in added
            for cell in line.by_operands
        ],
        x="shorter",
        y="longer",
        value="success rate",
        panel="model",
        notes=["Across: the shorter number; down: the longer one."],
    )


def _by_bins(name: str, axis: str, found: Sequence[tuple[str, Sequence[SizeBin]]]) -> PublishedPicture:
    rows = [
        (
            size.first or 0,
            {
                "model": model,
                axis: span(size.first, size.last),
                **_share("success rate", size.successes, size.results),
            },
        )
        for model, bins in found
        for size in bins
        if size.first is not None
    ]
    return PublishedPicture(
        name=name,
        title=f"Additions by {axis}",
        kind="lines",
        rows=[row for _, row in sorted(rows, key=lambda one: one[0])],
        x=axis,
        value="success rate",
        series="model",
        notes=["With 95 % CI, of the results with a reply."],
    )
