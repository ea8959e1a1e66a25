"""`report --figures DIR`: every chart as SVG and PNG, every table as Markdown and LaTeX, for papers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.notes import Nothing, ReportOfChosen, note_of_simulated, of_chosen
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.charts.catalogue import drawn, published_drawn
from asyncbench.page.charts.fitting import (
    INCHES,
    LETTER,
    NARROW,
    SHORT,
    drawn_at,
    pixels_of,
    printed,
    short_named,
    width_of,
)
from asyncbench.page.charts.pictures import Picture, load_charts, pictures_of
from asyncbench.published.reports import PublishedReport
from asyncbench.reports.anatomy import anatomy_on
from asyncbench.reports.cost.report import cost_report_on
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.heatmap import accuracy_maps_on
from asyncbench.reports.load.report import load_report_of
from asyncbench.reports.overview import report_on
from asyncbench.reports.quota import quota_report_on
from asyncbench.reports.standings.report import standings_on
from asyncbench.reports.styles import DRAWN, report
from asyncbench.tables.report import Report

INSTALL: Final = "the report extra: in the checkout of asyncbench, pip install '.[report]'"
PER_INCH: Final = 300  # pixels of a PNG
SCALE: Final = 3.0  # pixels of the PNG of a published picture for one of the drawing: 288 an inch
MOST_PIXELS: Final = 40_000_000  # of one PNG; larger drawings get fewer for each of theirs
LONGEST_LINE: Final = 110  # characters of a note under a published picture's title; longer ones are folded

# panels side by side over two columns of a paper, of charts that are not in twos
_MOST_BESIDE: Final[Mapping[str, int]] = {"digit_errors": 1, "length_map": 3, "quota": 3, "latency": 3}
_SHORTER: Final = {"kinds": 11}  # characters of names that have a count behind them
_FEW: Final = 8  # models that stand above a map, where there is room for their names
_NAMED_BESIDE: Final = {"curves"}  # whose names stand between panels

Spec = Mapping[str, Any]  # Any: a specification of Vega-Lite
Files = Iterator[tuple[str, bytes]]  # name, content


def write_figures(
    folder: Folders,
    out: Path | str,
    style: str | None = None,
    *,
    width: str = "two",
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    **options: Any,  # Any: as `report` takes them
) -> tuple[Path, ...]:
    """Write the charts of a results folder as SVG and PNG, and its tables as LaTeX and Markdown.

        ab.write_figures("results/nupa", "paper/figures", width="one")

    Charts without data are left out. Files of the same names are replaced.

    Args:
        folder: the results folder, or a list of several.
        out: the folder for the files. It is made if it does not exist.
        style: `llm-arithmetic`, `integer-addition` or `nupa`: the pictures and tables that this benchmark
            publishes, and the rows of each picture as a table. [all charts]
        width: columns of the paper that a chart is as wide as: `one` (3.35 inches) or `two` (7 inches).
            Published pictures keep their own. [two]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]
        options: those of that style, as `report` takes them. [none]

    Returns:
        The paths of the files, in order.

    Raises:
        ConfigError: The folder is not a results folder or holds no trials, the `report` extra is not
            installed, `out` cannot be a folder, there is no such width, or the style has no pictures.
        StoreError: The folder cannot be read, or a file cannot be written.
    """
    out = local(out)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--figures {out} is a file. Name a folder.")
    if width not in INCHES:
        raise ConfigError(f"--width {width!r}: choose one of: {', '.join(INCHES)}.")
    writer = FigureWriter(width)
    of = chosen(folder, suite=suite, task=task, models=models, where=where)
    written = []
    for name, content in _files(of, style, options, writer):
        with writing(out / name), replacing(out / name) as file:
            file.write(content)
        written.append(out / name)
    return tuple(written)


@dataclass(frozen=True, slots=True)
class FigureWriter:
    """Files of drawings, at the width of a paper's columns."""

    width: str  # of `INCHES`

    def files(self, picture: Picture, marks: Sequence[str]) -> Files:
        """Yield the SVG and the PNG of a chart, as wide as a paper's columns; marks come before its notes."""
        whole = pixels_of(self.width)
        notes = _folded([*marks, *picture.notes], int(whole / LETTER))
        short = whole < NARROW or picture.chart in _NAMED_BESIDE
        crowded = len({row.get("model") for row in picture.rows}) > _FEW
        most = _SHORTER.get(picture.chart, SHORT) if crowded else SHORT
        rows = short_named(picture.rows, most) if short else picture.rows
        spec = drawn(picture.chart, rows, metric=picture.metric, notes=notes)
        svg = drawn_at(spec, rows, whole, _svg, most=_MOST_BESIDE.get(picture.chart, 2))
        inches = INCHES[self.width]
        pixels = min(PER_INCH * inches / max(width_of(svg), whole), self._most(svg))
        yield f"{picture.name}.svg", printed(svg, inches).encode()
        yield f"{picture.name}.png", _png(svg, pixels)

    def published_files(self, name: str, spec: Spec) -> Files:
        """Yield the SVG and the PNG of a published picture, as wide as it is drawn."""
        svg = _svg(spec)
        yield f"{name}.svg", svg.encode()
        yield f"{name}.png", _png(svg, min(SCALE, self._most(svg)))

    def _most(self, svg: str) -> float:
        """Return how many pixels a PNG may have for one of the drawing."""
        sizes = re.search(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"', svg)
        pixels = float(sizes[1]) * float(sizes[2]) if sizes else MOST_PIXELS
        return sqrt(MOST_PIXELS / max(pixels, 1.0))


def _svg(spec: Spec) -> str:
    svg: str = _vega().vegalite_to_svg(dict(spec))
    return svg


def _png(svg: str, scale: float) -> bytes:
    png: bytes = _vega().svg_to_png(svg, scale=scale)
    return png


def _vega() -> Any:  # Any: a module whose types are not its own
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ConfigError(f"pictures need {INSTALL}") from error
    return vl_convert


def _folded(notes: Iterable[str], most: int) -> list[str]:
    return [line for note in notes for line in wrap(note, most, break_on_hyphens=False)]


# ── files of charts and tables ───────────────────────────────────────────────────────────────────


def _files(
    of: Chosen,
    style: str | None,
    options: Mapping[str, Any],  # Any: of the style
    writer: FigureWriter,
) -> Files:
    _vega()
    if style is not None:
        yield from published_files(published_of(of, style, options), of, style, writer)
        return
    loads, trials = load_charts(of), counted(of, _trials)
    if not trials and not loads.pictures:
        raise ConfigError(f"{of} has no trials yet. Run its sweep first.")
    if trials:
        note, pictures = counted(of, _charts)
        yield from picture_files(pictures, note, of, writer)
    yield from picture_files(loads.pictures, loads.simulated_note, of, writer)
    yield from table_files(of, trials=trials, loaded=bool(loads.pictures))


def _trials(views: FolderViews) -> bool:
    return bool(views.rows("SELECT 1 FROM trials LIMIT 1"))


def _charts(views: FolderViews) -> tuple[str, list[Picture]]:
    """Return what to say of simulated results, and the charts; of one moment."""
    return note_of_simulated(views), [*pictures_of(views)]


def picture_files(
    pictures: Iterable[Picture], simulated_note: str, of: Chosen, writer: FigureWriter
) -> Files:
    """Yield the name and content of each picture's files."""
    marks = [*([simulated_note] if simulated_note else []), *of.notes()]
    for picture in pictures:
        yield from writer.files(picture, marks)


def published_of(of: Chosen, style: str, options: Mapping[str, Any]) -> PublishedReport:  # Any: of it
    """Return the report of a style that has pictures; raises `ConfigError` for others."""
    published = report(of, style, **options)
    if isinstance(published, ReportOfChosen):
        published = published.whole
    if isinstance(published, PublishedReport) and style in DRAWN:
        return published
    if isinstance(published, Nothing):
        raise ConfigError(published.nothing)
    raise ConfigError(
        f"--style {style} has no pictures of its own. --markdown and --latex print its tables. For pictures, "
        f"leave --style out, or choose one of: {', '.join(DRAWN)}."
    )


def published_files(published: PublishedReport, of: Chosen, style: str, writer: FigureWriter) -> Files:
    """Yield the name and content of the files of a published style: its pictures, their rows, its tables."""
    marks = [*([published.simulated_note] if published.simulated_note else []), *of.notes()]
    reports: dict[str, Report] = {}
    for whole in filter(lambda picture: picture.drawable, published.pictures()):
        for picture in whole.parted():
            marked = replace(picture, notes=[*marks, *picture.notes])
            spec = published_drawn(marked, notes=_folded(marked.notes, LONGEST_LINE))
            yield from writer.published_files(picture.name, spec)
            reports[picture.name] = marked
    yield from _forms(reports | {style: of_chosen(published, of)})


_OF_TRIALS: Final[Mapping[str, Callable[[Folders], Report]]] = {
    "report": report_on,
    "standings": standings_on,
    "anatomy": anatomy_on,
    "cost": cost_report_on,
    "heatmap": accuracy_maps_on,
}


def table_files(folder: Chosen, *, trials: bool, loaded: bool) -> Files:
    """Yield the name and content of each report's files."""
    reports: dict[str, Report] = {}
    if loaded:
        whole = replace(folder, loaded=True)
        reports = {"load": counted(whole, load_report_of), "providers": counted(whole, providers_of)}
    if trials:
        reports |= {name: report_of(folder) for name, report_of in _OF_TRIALS.items()}
        if (quota := quota_report_on(folder)).lanes:
            reports["quota"] = quota
    yield from _forms({name: of_chosen(whole, folder) for name, whole in reports.items()})


def _forms(reports: Mapping[str, Report]) -> Files:
    for name, shown in reports.items():
        yield f"{name}.md", shown.as_markdown().encode()
        yield f"{name}.tex", shown.as_latex().encode()
