"""`report --figures DIR`: every chart as SVG, PNG and PDF, every table as Markdown and LaTeX, for papers.

A chart is drawn as wide as a page would be, and printed at the width of one or two columns of a paper: its
letters are then 7 to 9 points high.
"""

import glob
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.folder_report import Nothing, ReportOfChosen, tell_choice
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.charts.catalogue import drawn, panel_of
from asyncbench.page.charts.frontier import SCALES, label_points
from asyncbench.page.charts.naming import KEY
from asyncbench.page.charts.pictures import Picture, load_pictures_of, pictures_of
from asyncbench.page.charts.print_size import (
    INCHES,
    LETTER,
    NARROW,
    POINTS_PER_PIXEL,
    SHORT,
    Drawings,
    draw_to_width,
    folded,
    png_of,
    printed,
    short_named,
    vega,
)
from asyncbench.page.charts.published_pages import (
    BESIDE_AXIS,
    about_pages,
    fitting_pages,
    named_pictures,
    size_note,
)
from asyncbench.published.reports import DrawnReport, PublishedPicture, unmarked
from asyncbench.reports.quota import quota_of
from asyncbench.reports.report import made_in, report
from asyncbench.reports.styles import DRAWN, STYLES
from asyncbench.tables.latex import document, figure
from asyncbench.tables.report import SIMULATED, Report
from asyncbench.tables.screen import safe_note

MOST_PANELS: Final = 16  # of one picture
MOST_CELLS: Final = 1_500  # of one map
_MAPS: Final = {"digit_errors", "length_map"}
# panels side by side over two columns of a paper, of charts that are not in twos
_MOST_BESIDE: Final[Mapping[str, int]] = {"digit_errors": 1, "length_map": 3, "quota": 3, "latency": 3}
_SHORTER: Final = {"kinds": 11, "digit_errors": 17}  # characters of names in charts that need the room
_FEW: Final = 24  # models that have room for longer names all the same
_NAMED_BESIDE: Final = {"curves"}  # whose names stand between panels

Files = Iterator[tuple[str, bytes]]  # name, content
Figures = Iterator[tuple[str, Files]]  # name of a picture, or none of tables; its files
FORMS: Final = ("svg", "png", "pdf", "md", "tex")  # of a picture's files


def write_figures(
    folder: Folders,
    out: Path | str,
    style: str | None = None,
    *,
    width: str = "two",
    pictures: Sequence[str] | None = None,
    notify: Callable[[str], None] | None = None,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    **options: Any,  # Any: as `report` takes them
) -> tuple[Path, ...]:
    """Write the charts of a results folder as SVG, PNG and PDF, and its tables as LaTeX and Markdown.

        ab.write_figures("results/nupa", "paper/figures", width="one")

    Charts without data are left out. Files of the same names are replaced, and earlier pages of the same
    pictures are removed.

    Args:
        folder: the results folder, or a list of several.
        out: the folder for the files. It is made if it does not exist.
        style: `llm-arithmetic` or `nupa`: the pictures and tables that this benchmark publishes, or
            `error-map`; and the rows of each picture as a table. [all charts]
        width: columns of the paper that a picture is as wide as: `one` (3.35 inches) or `two` (7 inches).
            [two]
        pictures: only these of the style, each by its name (`figure-5-map`), by how that begins (`figure-5`,
            `table-7`), or by the number of a figure (`5`). The tables of the style are left out then. [all]
        notify: is told how many pictures there will be, and about how large, before any is drawn. [nobody]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]
        options: those of that style, as `report` takes them. [none]

    Returns:
        The paths of the files, in order.

    Raises:
        ConfigError: The folder is not a results folder or holds no trials, the `report` extra is not
            installed, `out` cannot be a folder, there is no such width, the style has no pictures, or one of
            `pictures` does not exist or has no data.
        StoreError: The folder cannot be read, or a file cannot be written.
    """
    out = local(out)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--figures {out} is a file. Name a folder.")
    if width not in INCHES:
        raise ConfigError(f"--width {width!r}: choose one of: {', '.join(INCHES)}.")
    folders = chosen(folder, suite=suite, task=task, models=models, where=where)
    written = list[Path]()
    notify = notify or (lambda _: None)
    if style is not None:
        vega()
        published = published_of(folders, style, options)
        figures = published_files(published, folders, style, width=width, names=pictures or (), notify=notify)
    elif pictures:
        raise ConfigError(f"pictures={list(pictures)!r} are of a style. Name one of: {', '.join(DRAWN)}.")
    else:
        figures = _figures(folders, width, notify)
    for picture, files in figures:
        pages = list[Path]()
        for name, content in files:
            with writing(out / name), replacing(out / name) as file:
                file.write(content)
            pages.append(out / name)
        written += pages
        if picture:
            _remove_earlier_pages(out, picture, pages)
    return tuple(written)


def _remove_earlier_pages(out: Path, picture: str, pages: Collection[Path]) -> None:
    """Remove pages of a picture that an earlier run wrote and this one did not: they show other models."""
    of_picture = re.compile(rf"{re.escape(picture)}(-\d+)?\.({'|'.join(FORMS)})")
    for path in out.glob(f"{glob.escape(picture)}*"):
        if of_picture.fullmatch(path.name) and path not in pages and path.is_file():
            with writing(path):
                path.unlink()


def chart_files(picture: Picture, marks: Sequence[str], width: str) -> Files:
    """Yield the SVG, PNG and PDF of a chart, as wide as a paper's columns; marks come before its notes.

    One of many panels has several pages, `NAME-1` and so on, so that each file stays under 2 MB.
    """
    by, pages = panel_of(picture.chart), _panels_by_page(picture)
    for number, shown in enumerate(pages, 1):
        name = f"{picture.name}-{number}" if len(pages) > 1 else picture.name
        rows = [row for row in picture.rows if row.get(by) in shown]
        yield from _page_files(replace(picture, name=name, rows=rows), marks, width)


def _panels_by_page(picture: Picture) -> list[list[Any]]:  # Any: what a panel is of
    """Return the panels of each page of a chart."""
    by = panel_of(picture.chart)
    panels = Counter(row.get(by) for row in picture.rows)
    room = MOST_CELLS // max(panels.values(), default=1) if picture.chart in _MAPS else MOST_PANELS
    count = min(MOST_PANELS, max(1, room))
    return [[*panels][start : start + count] for start in range(0, len(panels), count)]


def _page_files(picture: Picture, marks: Sequence[str], width: str) -> Files:
    inches = INCHES[width]
    whole = inches * 72 / POINTS_PER_PIXEL
    notes = folded([*marks, *picture.notes], int(whole / LETTER))
    short = whole < NARROW or picture.chart in _NAMED_BESIDE
    crowded = len({row.get("model") for row in picture.rows}) > _FEW
    letters = _SHORTER.get(picture.chart, SHORT) if crowded else SHORT
    rows = short_named(picture.rows, letters) if short else picture.rows
    if picture.chart in SCALES:  # a page names the others at its pointer
        rows = label_points(rows, picture.chart, whole - BESIDE_AXIS)
    spec = drawn(picture.chart, rows, metric=picture.metric, notes=notes)
    if picture.chart in SCALES:
        spec["layer"].append(KEY)
    drawings = Drawings()
    svg = draw_to_width(spec, rows, whole, drawings.draw, most_columns=_MOST_BESIDE.get(picture.chart, 2))
    yield f"{picture.name}.svg", printed(svg, inches).encode()
    yield f"{picture.name}.png", png_of(svg, inches)
    yield f"{picture.name}.pdf", drawings.pdf(svg, inches, _simulated(marks))[0]


# ── files of charts and tables ───────────────────────────────────────────────────────────────────


def _figures(folders: Chosen, width: str, notify: Callable[[str], None]) -> Figures:
    """Yield the name of each chart, with its files; those of tables have none."""
    vega()
    loads = _charts(replace(folders, loaded=True), load_pictures_of)
    trials = counted(folders, lambda views: bool(views.rows("SELECT 1 FROM trials LIMIT 1")))
    if not trials and not loads[1]:
        raise ConfigError(f"{folders} has no trials yet. Run its sweep first.")
    charts = [*([_charts(folders, pictures_of)] if trials else []), loads]
    pages = [len(_panels_by_page(picture)) for _, pictures in charts for picture in pictures]
    notify(size_note(pages, width))
    for note, pictures in charts:
        for picture in pictures:
            yield picture.name, chart_files(picture, _marks(note, folders), width)
    yield "", table_files(folders, trials=trials, loaded=bool(loads[1]))


def _charts(
    folders: Chosen, pictures: Callable[[FolderViews], Iterable[Picture]]
) -> tuple[str, Sequence[Picture]]:
    """Return the note on simulated results, and the charts; both of one moment."""
    return counted(folders, lambda views: (note_of_simulated(views), [*pictures(views)]))


def _marks(simulated_note: str, folders: Chosen) -> list[str]:
    """Return the notes that stand on each picture."""
    return [*([simulated_note] if simulated_note else []), *folders.notes()]


def published_of(
    folders: Chosen,
    style: str,
    options: Mapping[str, Any],  # Any: of the style
) -> DrawnReport:
    """Return the report of a style that has pictures; raises `ConfigError` for others."""
    published = report(folders, style, **options)
    if isinstance(published, ReportOfChosen):
        published = published.whole
    if isinstance(published, DrawnReport) and style in DRAWN:
        return published
    if isinstance(published, Nothing):
        raise ConfigError(published.nothing)
    raise ConfigError(
        f"--style {style} has no pictures of its own. --markdown and --latex print its tables. For pictures, "
        f"leave --style out, or choose one of: {', '.join(DRAWN)}."
    )


def published_files(
    published: DrawnReport,
    folders: Chosen,
    style: str,
    *,
    width: str = "two",
    names: Sequence[str] = (),
    notify: Callable[[str], None] = lambda _: None,
) -> Figures:
    """Yield each picture of a published style with its files and those of its rows; then the style's tables.

    A picture that has no data has no files. Where `names` choose pictures, there are no tables.
    """
    every = [*published.pictures()]
    pictures = named_pictures(every, names, style) if names else every
    pages = [about_pages(picture, width) for picture in pictures if picture.drawable]
    notify(size_note(pages, width, style))

    of_models = [picture for picture in every if picture.series == "model"]
    models = [
        *dict.fromkeys(
            unmarked(name)
            for picture in of_models
            for name in picture.series_order or [row["model"] for row in picture.rows]
        )
    ]
    for picture in pictures:
        simulated = published.simulated_note if picture.shows_folder else ""
        marked = replace(picture, notes=[*_marks(simulated, folders), *picture.notes])
        if picture.series == "model":
            marked = replace(marked, palette=models)
        yield picture.name, _picture_files(marked, width) if picture.drawable else iter(())
    if not names:
        yield "", _forms({style: tell_choice(published, folders)})


def _picture_files(whole: PublishedPicture, width: str) -> Files:
    """Yield the files of each page of a picture, and what LaTeX prints of it: a table, or a float a page."""
    drawings, inches = Drawings(), INCHES[width]
    pages = [page for part in whole.parted() for page in fitting_pages(part, width, drawings.draw)]
    for number, (picture, svg) in enumerate(pages, 1):
        name = f"{whole.name}-{number}" if len(pages) > 1 else whole.name
        yield f"{name}.svg", printed(svg, inches).encode()
        yield f"{name}.png", png_of(svg, inches)
        pdf, size = drawings.pdf(svg, inches, _simulated(picture.notes))
        yield f"{name}.pdf", pdf
        yield f"{name}.md", picture.as_markdown().encode()
        if not whole.tabular:
            title = f"{whole.title}, {number} of {len(pages)}" if len(pages) > 1 else whole.title
            signs = [f"{sign} {words}." for sign, words in picture.signs().items()]
            legend = safe_note(" ".join(filter(None, [picture.legend, picture.shading, *signs])))
            drawn_float = figure(name, title=safe_note(title), legend=legend, inches=size)
            yield f"{name}.tex", document([drawn_float]).encode()
    if whole.tabular:
        yield f"{whole.name}.tex", whole.as_latex().encode()


def _simulated(notes: Iterable[str]) -> str:
    """Return what stands in a drawing without notes, if they say that results are simulated."""
    word = SIMULATED.partition(":")[0]
    return word if any(note.startswith(word) for note in notes) else ""


def table_files(folder: Chosen, *, trials: bool, loaded: bool) -> Files:
    """Yield the name and content of each report's files."""
    reports: dict[str, Report] = {}
    if loaded:
        whole = replace(folder, loaded=True)
        reports = {
            str(name): made_in(style, whole) for name, style in STYLES.items() if style.figures == "load"
        }
    if trials:
        reports |= {
            name or "report": made_in(style, folder)
            for name, style in STYLES.items()
            if style.figures == "trials"
        }
        if (quota := counted(folder, quota_of)).lanes:
            reports["quota"] = quota
    yield from _forms({name: tell_choice(whole, folder) for name, whole in reports.items()})


def _forms(reports: Mapping[str, Report]) -> Files:
    for name, shown in reports.items():
        yield f"{name}.md", shown.as_markdown().encode()
        yield f"{name}.tex", shown.as_latex().encode()
