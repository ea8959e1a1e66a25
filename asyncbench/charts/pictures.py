"""`report --figures DIR`: every chart as SVG and PNG, every table as Markdown and LaTeX, for papers."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import pyarrow as pa

from asyncbench.charts import frontier, rows as charted
from asyncbench.charts.breaks import KindCurve, break_rows, half_rows, kind_curves
from asyncbench.charts.drawing import INSTALL, drawn, published_drawn
from asyncbench.charts.dressing import MOST_LIT, dressed
from asyncbench.charts.heat import heat_rows, length_rows
from asyncbench.charts.load_rows import rows_of_loads, uncounted_note
from asyncbench.charts.standing_rows import dot_rows, pair_rows
from asyncbench.charts.themes import OUTCOME_COLOURS
from asyncbench.charts.time_rows import latency_rows, quota_rows, throughput_rows
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.published import PublishedReport
from asyncbench.reports import (
    PUBLISHED,
    AnatomyReport,
    QuotaReport,
    Standings,
    accuracy_maps_on,
    anatomy_on,
    cost_report_on,
    load_report_on,
    over,
    providers_on,
    quota_report_on,
    report,
    report_on,
    standings_on,
)
from asyncbench.results import (
    METRICS,
    Asked,
    Entrant,
    Minute,
    Nothing,
    ReportOfChosen,
    answers_by_step,
    asked_in,
    in_order,
    lost_notes,
    minutes_of,
    names_of,
    note_of_simulated,
    of_chosen,
    steps_in,
    summed,
    told_apart,
)
from asyncbench.shown import Report
from asyncbench.views import Chosen, Folders, FolderViews, chosen, counted

SCALE: Final = 3.0  # pixels of a PNG for one of the drawing: 288 an inch
MOST_PIXELS: Final = 40_000_000  # of one PNG; larger drawings get fewer for each of theirs
LONGEST_NAME: Final = 60  # characters of a file's name
LONGEST_LINE: Final = 110  # characters of a note under a title; longer ones are folded

Draw = Callable[[Mapping[str, Any]], tuple[str, bytes]]  # a specification of Vega-Lite → SVG, PNG


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A chart with what it shows."""

    name: str  # of its files
    chart: str
    rows: Sequence[Mapping[str, Any]]  # Any: as the chart's columns are
    metric: str = "accuracy"
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the charts and tables of a folder are made from."""

    chosen: Chosen
    simulated_note: str  # empty: no results are simulated
    cells: charted.Cells
    minutes: Sequence[Minute]
    names: Mapping[Entrant, str]
    shown: Mapping[str, str]  # names as charts show them, by the whole name
    lost: Sequence[str]  # the loud line, where more than 1 % of somebody's trials were lost
    standings: Standings
    anatomy: AnatomyReport
    quota: QuotaReport
    asked: Asked
    curves: Sequence[KindCurve]
    heat: Sequence[Mapping[str, Any]]  # Any: likewise, as `lengths`
    lengths: Sequence[Mapping[str, Any]]


def write_figures(
    folder: Folders,
    out: Path | str,
    style: str | None = None,
    *,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    **options: Any,  # Any: as `report` takes them
) -> tuple[Path, ...]:
    """Write the charts of a results folder as SVG and PNG, and its tables as LaTeX and Markdown.

        ab.write_figures("results/nupa", "paper/figures", "nupa")

    Charts without data are left out. Files of the same names are replaced.

    Args:
        folder: the results folder, or a list of several.
        out: the folder for the files. It is made if it does not exist.
        style: `llm-arithmetic`, `integer-addition` or `nupa`: the pictures and tables that this benchmark
            publishes, and the rows of each picture as a table.
        suite, task, models, where: which trials count, as for `report`. [all]
        options: of that style, as `report` takes them.

    Returns:
        The paths of the files, in order.

    Raises:
        ConfigError: The folder is not a results folder or holds no trials, the `report` extra is not
            installed, `out` cannot be a folder, or the style has no pictures.
        StoreError: The folder cannot be read, or a file cannot be written.
    """
    out = local(out)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--figures {out} is a file. Name a folder.")
    draw = _drawing()
    of = chosen(folder, suite=suite, task=task, models=models, where=where)
    written = []
    for name, content in _files(of, style, options, draw):
        with writing(out / name), replacing(out / name) as file:
            file.write(content)
        written.append(out / name)
    return tuple(written)


def _files(
    of: Chosen,
    style: str | None,
    options: Mapping[str, Any],
    draw: Draw,  # Any: of the style
) -> Iterator[tuple[str, bytes]]:
    if style is not None:
        yield from _published_files(_published(of, style, options), of, style, draw)
        return
    loads = load_charts(of)
    found = _material(of) if _has_trials(of) or not loads.pictures else None
    if found is not None:
        yield from _picture_files(_pictures(found), found.simulated_note, of, draw)
    yield from _picture_files(loads.pictures, loads.simulated_note, of, draw)
    yield from _table_files(of, found, loaded=bool(loads.pictures))


def _has_trials(of: Chosen) -> bool:
    return bool(counted(of, lambda views: views.rows("SELECT 1 FROM cells LIMIT 1")))


def _counts(
    views: FolderViews,
) -> tuple[pa.Table, dict[Entrant, str], dict[str, Any]]:  # Any: parts of `Material`
    """Return cells, names and what charts are made of; of one moment."""
    cells = views.table("FROM cells")
    if not len(cells):
        raise ConfigError(f"{views.chosen} has no trials yet. Run its sweep first.")
    asked = {(cell["run"], cell["model"], cell["condition"]) for cell in cells.to_pylist()}
    names = names_of(in_order(asked, views.manifest))
    parts = {"minutes": minutes_of(views, names), "asked": asked_in(views), "curves": kind_curves(views)}
    return cells, names, parts | {"heat": heat_rows(views), "lengths": length_rows(views)}


def _material(folder: Folders) -> Material:
    cells, names, parts = counted(folder, _counts)
    rows, standings = charted.named(cells, names), standings_on(folder)
    groups = summed(rows, ("model",))
    outcomes = {
        model: {outcome: sums[outcome] for outcome in OUTCOME_COLOURS} for (model,), sums in groups.items()
    }
    return Material(
        chosen=chosen(folder),
        simulated_note=standings.simulated_note,
        cells=rows,
        names=names,
        shown=told_apart(names.values()),
        lost=lost_notes(outcomes),
        standings=standings,
        anatomy=anatomy_on(folder),
        quota=quota_report_on(folder),
        **parts,
    )


# ── of loads ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCharts:
    """The charts of the loads of a folder."""

    pictures: Sequence[Picture]
    simulated_note: str


def load_charts(folder: Folders) -> LoadCharts:
    """Return the charts of a folder's loads that have anything to show."""
    of = replace(chosen(folder), loaded=True)

    def look(views: FolderViews) -> LoadCharts:
        if of.partly or not (steps := steps_in(views)):  # of some calls alone no rate is known
            return LoadCharts(pictures=(), simulated_note="")
        rows = rows_of_loads(steps, answers_by_step(views))
        notes = [note] if (note := uncounted_note(steps)) else []
        pictures = [
            Picture(name=_slug(name), chart=name, rows=those, notes=notes) for name, those in rows.items()
        ]
        return LoadCharts(
            pictures=[picture for picture in pictures if picture.rows],
            simulated_note=note_of_simulated(views),
        )

    return counted(of, look)


# ── pictures ─────────────────────────────────────────────────────────────────────────────────


def _pictures(found: Material) -> Iterator[Picture]:
    """Yield every chart that has something to show."""
    for picture in chain(_of_cells(found), _of_rankings(found), _of_errors(found), _over_time(found)):
        if any(row.get("value", 0) is not None for row in picture.rows):
            yield picture


def _of_cells(found: Material) -> Iterator[Picture]:
    cells = found.cells
    for name, metric in METRICS.items():
        rows = [
            {**row, **dict(zip(("value", "low", "high", "trials"), row["values"][name], strict=True))}
            for row in found.heat
            if name in row["values"]
        ]
        slug = "task-map" if name == "accuracy" else f"task-map-{_slug(name)}"
        notes = [metric.title, *found.lost]
        yield Picture(name=slug, chart="task_map", rows=dressed(rows, found.asked), metric=name, notes=notes)
    yield Picture(name="length-map", chart="length_map", rows=dressed(found.lengths, found.asked))
    rows = dressed(break_rows(found.curves), found.asked, lit=_lit(found))
    yield Picture(name="curves", chart="curves", rows=rows, notes=[*_NOTES["curves"], *_grey(found)])
    rows = dressed(half_rows(found.curves), found.asked)
    yield Picture(name="halves", chart="halves", rows=rows, notes=_NOTES["halves"])
    for chart, rows_of in _SIMPLE.items():
        yield Picture(name=_slug(chart), chart=chart, rows=rows_of(cells), notes=list(_notes(chart, found)))


def _lit(found: Material) -> set[int] | None:
    """Return the places of those whose lines keep their colours: the best, where they are many."""
    if len(found.asked.entrants) <= MOST_LIT:
        return None
    places = found.asked.entrant_places
    lines = [line for ranking in found.standings.rankings for line in ranking.lines]
    best = dict.fromkeys(places[line.run, line.model, line.condition] for line in lines)
    return set([*best][:MOST_LIT])


def _grey(found: Material) -> list[str]:
    several = len(found.asked.entrants)
    return [f"The {MOST_LIT} best of {several:,} models have colours; others are grey"] * (several > MOST_LIT)


def _notes(chart: str, found: Material) -> Iterator[str]:
    """Yield what is told under the title of a chart of cells."""
    yield from _NOTES.get(chart, ())
    more = {
        "frontier_cost": lambda: frontier.frontier_note(found.cells, "cost"),
        "frontier_reasoning": lambda: frontier.frontier_note(found.cells, "reasoning_tokens"),
    }
    if chart in more and (note := more[chart]()):
        yield note
    if chart in ("frontier_cost", "frontier_reasoning", "outcomes"):
        yield from found.lost


_SIMPLE: Final[Mapping[str, Callable[[charted.Cells], list[charted.Row]]]] = {
    "frontier_cost": frontier.frontier_cost,
    "frontier_reasoning": frontier.frontier_reasoning,
    "outcomes": charted.outcomes,
}
_NOTES: Final = {
    "curves": ["Trials with a reply, 8 or more a point. Lines: logistic fits; dashed: 50 %"],
    "halves": ["Trials with a reply; 95 % CI. A triangle points beyond the lengths that were asked"],
    "frontier_cost": [
        "With 95 % CI. The line joins the models that no other model beats; free models are at the left"
    ],
    "frontier_reasoning": ["With 95 % CI. The line joins the models that no other model beats"],
}


def _of_rankings(found: Material) -> Iterator[Picture]:
    """Yield each ranking as dots, of several suites together first, and the lead of its best."""
    taken, places = Counter[str](), found.asked.entrant_places
    for ranking in found.standings.rankings:
        if ranking.alone:
            continue
        slug = _slug(ranking.suite or "all")
        taken[slug] += 1
        name = f"{slug}-{taken[slug]}" if taken[slug] > 1 else slug
        rows = dressed(dot_rows(ranking, places), found.asked)
        notes = [f"{over(ranking)}. 95 % CI; models with the same rank are statistically tied", *found.lost]
        yield Picture(name=f"dots-{name}", chart="dots", rows=rows, notes=notes)
        leader = found.asked.entrants[rows[0]["asked"]].short
        note = (
            f"{leader} is ahead; each line compares it with another model. {ranking.problems:,} problems "
            "that all models were asked; 95 % CI; tied: no significant difference"
        )
        rows = dressed(pair_rows(ranking, places), found.asked)
        notes = [f"{ranking.suite or 'All suites'}. {note}"]
        yield Picture(name=f"pairs-{name}", chart="pairs", rows=rows, notes=notes)


def _of_errors(found: Material) -> Iterator[Picture]:
    places = {name: place for place, name in enumerate(charted.models_of(found.cells))}
    names = dict(sorted(found.names.items(), key=lambda named: places[found.shown[named[1]]]))
    # of a run that goes on: newer ones have no name yet
    findings = [group for group in found.anatomy.findings if (*group.group[:3],) in names]
    note = (
        f"{found.anatomy.examined:,} of {found.anatomy.wrong:,} wrong answers (or replies without one) were "
        "examined"
    )
    rows = charted.digit_errors(findings, names)
    yield Picture(name="digit-errors", chart="digit_errors", rows=rows, notes=[note])
    yield Picture(name="kinds", chart="kinds", rows=charted.kinds(findings, names), notes=[note])


def _over_time(found: Material) -> Iterator[Picture]:
    minutes = found.minutes
    if any(minute.p50_s is not None for minute in minutes):  # of a recording the times of calls are not known
        yield Picture(name="latency", chart="latency", rows=latency_rows(minutes, found.shown))
        yield Picture(name="throughput", chart="throughput", rows=throughput_rows(minutes, found.shown))
    yield Picture(name="quota", chart="quota", rows=quota_rows(found.quota.minutes))


def _slug(text: str) -> str:
    """Return a text as part of a file's name; suites of a custom set may be called anything."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_NAME] or "other"


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _picture_files(
    pictures: Iterable[Picture], simulated_note: str, of: Chosen, draw: Draw
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each picture's files."""
    marks = [*([simulated_note] if simulated_note else []), *of.notes()]
    for picture in pictures:
        notes = _folded([*marks, *picture.notes])
        svg, png = draw(drawn(picture.chart, picture.rows, metric=picture.metric, notes=notes))
        yield f"{picture.name}.svg", svg.encode()
        yield f"{picture.name}.png", png


def _published(of: Chosen, style: str, options: Mapping[str, Any]) -> PublishedReport:  # Any: of it
    found = report(of, style, **options)
    if isinstance(found, ReportOfChosen):
        found = found.whole
    if isinstance(found, PublishedReport):
        return found
    if isinstance(found, Nothing):
        raise ConfigError(found.nothing)
    raise ConfigError(
        f"--style {style} has no pictures of its own. Leave --style out, or choose one of: "
        f"{', '.join(PUBLISHED)}."
    )


def _published_files(
    found: PublishedReport, of: Chosen, style: str, draw: Draw
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the files of a published style: its pictures, their rows, its tables."""
    marks = [*([found.simulated_note] if found.simulated_note else []), *of.notes()]
    reports: dict[str, Report] = {}
    for whole in filter(lambda picture: picture.drawable, found.pictures()):
        for picture in whole.parted():
            marked = replace(picture, notes=[*marks, *picture.notes])
            svg, png = draw(published_drawn(marked, notes=_folded(marked.notes)))
            yield f"{picture.name}.svg", svg.encode()
            yield f"{picture.name}.png", png
            reports[picture.name] = marked
    yield from _forms(reports | {style: of_chosen(found, of)})


def _folded(notes: Iterable[str]) -> list[str]:
    return [line for note in notes for line in wrap(note, LONGEST_LINE)]


def _drawing() -> Draw:
    """Return what makes an SVG and a PNG of a specification."""
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ConfigError(f"pictures need {INSTALL}") from error

    def draw(spec: Mapping[str, Any]) -> tuple[str, bytes]:  # Any: a specification of Vega-Lite
        svg = vl_convert.vegalite_to_svg(dict(spec))
        sizes = re.search(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"', svg)
        pixels = float(sizes[1]) * float(sizes[2]) if sizes else MOST_PIXELS
        scale = min(SCALE, sqrt(MOST_PIXELS / max(pixels, 1.0)))
        return svg, vl_convert.svg_to_png(svg, scale=scale)

    return draw


def _table_files(
    folder: Chosen, found: Material | None, *, loaded: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each report's files; `found` None: all answers are to a load."""
    reports: dict[str, Report] = {}
    if loaded:
        whole = replace(folder, loaded=True)
        reports = {"load": load_report_on(whole), "providers": providers_on(whole)}
    if found is not None:
        reports |= {
            "report": report_on(folder),
            "standings": found.standings,
            "anatomy": found.anatomy,
            "cost": cost_report_on(folder),
            "heatmap": accuracy_maps_on(folder),
        }
    if found is not None and found.quota.lanes:
        reports["quota"] = found.quota
    yield from _forms({name: of_chosen(whole, folder) for name, whole in reports.items()})


def _forms(reports: Mapping[str, Report]) -> Iterator[tuple[str, bytes]]:
    for name, shown in reports.items():
        yield f"{name}.md", shown.as_markdown().encode()
        yield f"{name}.tex", shown.as_latex().encode()
