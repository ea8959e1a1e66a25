"""`report --figures DIR`: every chart as SVG and PNG, every table as Markdown and LaTeX, for papers.

A chart is drawn as wide as a page would be, and printed at the width of one or two columns of a paper: its
letters are then 7 to 9 points high.
"""

import glob
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import ceil, sqrt
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.entrants import LONGEST_NAME, distinct_names
from asyncbench.analysis.folder_report import Nothing, ReportOfChosen, tell_choice
from asyncbench.analysis.served import note_of_simulated
from asyncbench.errors import ConfigError
from asyncbench.files import local, replacing, writing
from asyncbench.page.charts.catalogue import drawn, panel_of, published_drawn, unmarked
from asyncbench.page.charts.chart import Spec
from asyncbench.page.charts.pictures import Picture, load_pictures_of, pictures_of
from asyncbench.published.reports import PublishedPicture, PublishedReport
from asyncbench.reports.quota import quota_of
from asyncbench.reports.report import made_in, report
from asyncbench.reports.styles import DRAWN, STYLES
from asyncbench.tables.report import Report

INSTALL: Final = "the extra `report`: pip install 'asyncbench[report]'"
PER_INCH: Final = 300  # pixels of a PNG
MOST_PANELS: Final = 16  # of one picture
MOST_CELLS: Final = 1_500  # of one map
_MAPS: Final = {"digit_errors", "length_map"}
MOST_PIXELS: Final = 40_000_000  # of one PNG; larger drawings get fewer for each of theirs
# panels side by side over two columns of a paper, of charts that are not in twos
_MOST_BESIDE: Final[Mapping[str, int]] = {"digit_errors": 1, "length_map": 3, "quota": 3, "latency": 3}
_SHORTER: Final = {"kinds": 11, "digit_errors": 17}  # characters of names in charts that need the room
_FEW: Final = 24  # models that have room for longer names all the same
_NAMED_BESIDE: Final = {"curves"}  # whose names stand between panels

Files = Iterator[tuple[str, bytes]]  # name, content
Figures = Iterator[tuple[str, Files]]  # name of a picture, or none of tables; its files
FORMS: Final = ("svg", "png", "md", "tex")  # of a picture's files


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

    Charts without data are left out. Files of the same names are replaced, and earlier pages of the same
    pictures are removed.

    Args:
        folder: the results folder, or a list of several.
        out: the folder for the files. It is made if it does not exist.
        style: `llm-arithmetic`, `integer-addition` or `nupa`: the pictures and tables that this benchmark
            publishes, and the rows of each picture as a table. [all charts]
        width: columns of the paper that a picture is as wide as: `one` (3.35 inches) or `two` (7 inches).
            [two]
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
    folders = chosen(folder, suite=suite, task=task, models=models, where=where)
    written = list[Path]()
    for picture, files in _figures(folders, style, options, width):
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
    """Yield the SVG and the PNG of a chart, as wide as a paper's columns; marks come before its notes.

    One of many panels has several pages, `NAME-1` and so on, so that each file stays under 2 MB.
    """
    by = panel_of(picture.chart)
    panels = Counter(row.get(by) for row in picture.rows)
    room = MOST_CELLS // max(panels.values(), default=1) if picture.chart in _MAPS else MOST_PANELS
    panels_a_page = min(MOST_PANELS, max(1, room))
    if len(panels) <= panels_a_page:
        yield from _page_files(picture, marks, width)
        return
    for start in range(0, len(panels), panels_a_page):
        shown = {*[*panels][start : start + panels_a_page]}
        rows = [row for row in picture.rows if row[by] in shown]
        page = replace(picture, name=f"{picture.name}-{start // panels_a_page + 1}", rows=rows)
        yield from _page_files(page, marks, width)


def _page_files(picture: Picture, marks: Sequence[str], width: str) -> Files:
    inches = INCHES[width]
    whole = inches * 72 / POINTS_PER_PIXEL
    notes = _folded([*marks, *picture.notes], int(whole / LETTER))
    short = whole < NARROW or picture.chart in _NAMED_BESIDE
    crowded = len({row.get("model") for row in picture.rows}) > _FEW
    letters = _SHORTER.get(picture.chart, SHORT) if crowded else SHORT
    rows = short_named(picture.rows, letters) if short else picture.rows
    spec = drawn(picture.chart, rows, metric=picture.metric, notes=notes)
    svg = draw_to_width(spec, rows, whole, _svg, most_columns=_MOST_BESIDE.get(picture.chart, 2))
    yield f"{picture.name}.svg", printed(svg, inches).encode()
    yield f"{picture.name}.png", _png(svg, inches)


def _svg(spec: Spec) -> str:
    svg: str = _vega().vegalite_to_svg(spec)
    return svg


def _png(svg: str, inches: float) -> bytes:
    """Return a drawing that is so wide on paper, or as wide as its letters need, with 300 pixels an inch.

    One that would have more than `MOST_PIXELS` has fewer. The file says how many.
    """
    width, height = size_of(svg)
    points = min(POINTS_PER_PIXEL, 72 * inches / width)
    most = 72 / points * sqrt(MOST_PIXELS / (width * height))
    png: bytes = _vega().svg_to_png(svg, scale=points, ppi=min(PER_INCH, most))
    return png


def _vega() -> Any:  # Any: a module whose types are not its own
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ConfigError(f"pictures need {INSTALL}") from error
    return vl_convert


def _folded(notes: Iterable[str], letters: int) -> list[str]:
    return [line for note in notes for line in wrap(note, letters, break_on_hyphens=False)]


# ── files of charts and tables ───────────────────────────────────────────────────────────────────


def _figures(
    folders: Chosen,
    style: str | None,
    options: Mapping[str, Any],  # Any: of the style
    width: str,
) -> Figures:
    """Yield the name of each picture, with its files; those of tables have none."""
    _vega()
    if style is not None:
        yield from published_files(published_of(folders, style, options), folders, style, width=width)
        return
    loads = _charts(replace(folders, loaded=True), load_pictures_of)
    trials = counted(folders, lambda views: bool(views.rows("SELECT 1 FROM trials LIMIT 1")))
    if not trials and not loads[1]:
        raise ConfigError(f"{folders} has no trials yet. Run its sweep first.")
    for note, pictures in [*([_charts(folders, pictures_of)] if trials else []), loads]:
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
) -> PublishedReport:
    """Return the report of a style that has pictures; raises `ConfigError` for others."""
    published = report(folders, style, **options)
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


def published_files(
    published: PublishedReport, folders: Chosen, style: str, *, width: str = "two"
) -> Figures:
    """Yield each picture of a published style with its files and those of its rows; then the style's tables.

    A picture that has no data has no files.
    """
    pictures = [*published.pictures()]
    of_models = [picture for picture in pictures if picture.series == "model"]
    models = [*dict.fromkeys(unmarked(row["model"]) for picture in of_models for row in picture.rows)]
    for picture in pictures:
        simulated = published.simulated_note if picture.shows_folder else ""
        marked = replace(picture, notes=[*_marks(simulated, folders), *picture.notes])
        if picture.series == "model":
            marked = replace(marked, series_order=models)
        yield picture.name, _picture_files(marked, width) if picture.drawable else iter(())
    yield "", _forms({style: tell_choice(published, folders)})


def _picture_files(whole: PublishedPicture, width: str) -> Files:
    pages = [page for picture in whole.parted() for page in fitting_pages(picture, width)]
    for number, (picture, svg) in enumerate(pages, 1):
        name = f"{whole.name}-{number}" if len(pages) > 1 else whole.name
        yield f"{name}.svg", printed(svg, INCHES[width]).encode()
        yield f"{name}.png", _png(svg, INCHES[width])
        yield from _forms({name: picture})
    if len(pages) > 1:  # a paper's table has room for more models than a page of drawn cells
        yield f"{whole.name}.tex", whole.as_latex().encode()


def fitting_pages(picture: PublishedPicture, width: str) -> Iterator[tuple[PublishedPicture, str]]:
    """Yield a picture with its drawing, or several where one is wider than a paper's columns, or too high."""
    whole = INCHES[width] * 72 / POINTS_PER_PIXEL
    svg = _published_svg(picture, whole)
    wide, high = size_of(svg)

    # What stands above and beside the cells, such as names and notes, is on every page again.
    pages = 1
    if wide > whole + CLOSE and picture.column_across:
        column, pages = picture.column_across, ceil((wide - BESIDE) / (whole - BESIDE))
    elif high > HIGHEST:
        column, pages = picture.column_down, ceil((high - ABOVE) / (HIGHEST - ABOVE))
    parts = [*picture.split(column, max(2, pages))] if pages > 1 and column else [picture]
    if len(parts) == 1:
        yield picture, svg
        return
    for split in parts:
        yield from fitting_pages(split, width)


def _published_svg(picture: PublishedPicture, whole: float) -> str:
    notes = [note.replace("`", "") for note in (*picture.notes, picture.shading) if note]
    longest = SHORT if whole < NARROW else LONGEST_NAME
    spec = published_drawn(picture, notes=notes, width=whole - BESIDE_AXIS, longest=longest)
    spec["title"] |= {
        "text": wrap(picture.title, int(whole / TITLE_LETTER)),
        "fontSize": TITLE_SIZE,
        "subtitle": _folded(spec["title"]["subtitle"], int(whole / LETTER)),
    }
    rows, step = spec["data"]["values"], _panel(spec)["width"]
    if not isinstance(step, dict):
        bars = len({(row.get("x"), row.get("series")) for row in rows}) if picture.kind == "bars" else 0
        most = 3 if bars <= MOST_BARS else 2
        return draw_to_width(spec, rows, whole, _svg, most_columns=most, in_twos=4)

    # A map has a width for each of its columns. One that fits neither as it is nor transposed is shared out.
    if "facet" not in spec:
        for tried in (spec, transposed(spec)):
            wide, high = size_of(svg := _svg(tried))
            if wide <= whole and high <= HIGHEST:
                return _widened(svg, tried, rows, whole, _svg)
        return _svg(spec)

    # Of maps as many stand side by side as have room.
    cells = step["step"] * len({row["x"] for row in rows})
    gap = spec["spacing"]["column"]
    beside = LETTER * max(len(str(row["y"])) for row in rows) + 2 * spec["padding"]
    columns = max(1, int((whole - beside + gap) / (cells + gap)))
    while size_of(svg := _svg(spec | {"columns": columns}))[0] > whole and columns > 1:
        columns -= 1  # long names of panels push them apart
    return svg


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


# ── a drawing at the width at which it is printed ────────────────────────────────────────────────


Rows = Sequence[Mapping[str, Any]]  # Any: of the chart

INCHES: Final[Mapping[str, float]] = {"one": 3.35, "two": 7.0}  # of a paper's columns
POINTS_PER_PIXEL: Final = 0.65  # a letter of 12 pixels is 7.8 points high
HIGHEST: Final = 9.2 * 72 / POINTS_PER_PIXEL  # pixels of a page of a paper, without the caption
ABOVE: Final = 180.0  # pixels of title, notes, legend and axis of a picture, about
BESIDE: Final = 160.0  # of names beside a map
BESIDE_AXIS: Final = 84.0  # of ticks beside an axis of numbers
MOST_BARS: Final = 16  # of a panel of which three stand side by side: each has room for a sign at its foot
TITLE_LETTER: Final = 7.4  # pixels, in the mean
TITLE_SIZE: Final = 13  # pixels of letters: 8.5 points
NARROW: Final = 480.0  # pixels: a narrower drawing has one panel a row, and shorter names
SHORT: Final = 24  # characters of these, the number that tells two apart beside them
LEAST: Final = 90.0  # pixels of a panel, whatever the names beside it take
CLOSE: Final = 1.0  # pixels: a drawing that is so near its width is done
TRIES: Final = 6
LETTER: Final = 6.4  # pixels, in the mean
WIDEST_CELL: Final = 72.0  # of a map that has room
BESIDE_SYMBOL: Final = 25  # pixels of a legend's entry beside its symbol and its name
MOST_BESIDE: Final = 12  # panels that stand in twos; more stand in threes
_SIZE: Final = re.compile(r'(<svg[^>]*?) width="([\d.]+)" height="([\d.]+)"')


def draw_to_width(
    spec: Spec,
    rows: Rows,
    whole: float,
    draw: Callable[[Spec], str],
    *,
    most_columns: int = 2,
    in_twos: int = MOST_BESIDE,
) -> str:
    """Return a chart as SVG with a given width, which includes all that stands beside its panels.

    Args:
        spec: the specification of a chart that stands alone.
        rows: the rows that it shows.
        whole: the width of the drawing, in pixels.
        draw: makes SVG of a specification.
        most_columns: how many panels stand side by side at most, where a drawing is wide.
        in_twos: up to so many panels stand two side by side.
    """
    fixed = _sort_axes(deepcopy(spec), rows)
    columns = 1
    if "facet" in fixed and whole >= NARROW:
        panels = len({row[fixed["facet"]["field"]] for row in rows})
        columns = min(panels, most_columns, 2 if panels <= in_twos else most_columns)

    # A map has a width for each of its columns: as it is or transposed, whichever has room.
    if isinstance(_panel(fixed).get("width"), dict):
        drawings = {
            size_of(svg)[0]: (svg, tried) for tried in (fixed, transposed(fixed)) for svg in (draw(tried),)
        }
        fitting = [drawing for width, drawing in drawings.items() if width <= whole]
        if fitting:
            return _widened(*fitting[0], rows, whole, draw)
        fixed = drawings[min(drawings)][1]

    # What stands beside the panels is known only once it is drawn.
    beside = 60.0 * columns
    for _ in range(TRIES):
        svg = draw(_sized(fixed, rows, columns, max(LEAST, (whole - beside) / columns), whole))
        over = size_of(svg)[0] - whole
        if abs(over) <= CLOSE or (whole - beside) / columns < LEAST:
            break
        beside += over
    return svg


def _widened(svg: str, spec: Spec, rows: Rows, whole: float, draw: Callable[[Spec], str]) -> str:
    """Return a map whose cells have the width that is left, up to a limit."""
    field = next(encoding["x"]["field"] for encoding in _encodings(spec) if "x" in encoding)
    columns = len({row.get(field, row.get("model")) for row in rows})
    step = min(WIDEST_CELL, spec["width"]["step"] + (whole - size_of(svg)[0]) / columns)
    wider = draw(spec | {"width": {"step": step}})
    return wider if size_of(wider)[0] <= whole + CLOSE else svg


def size_of(svg: str) -> tuple[float, float]:
    """Return how wide and how high a drawing is, pixels."""
    _, width, height = _SIZE.findall(svg)[0]
    return float(width), float(height)


def printed(svg: str, inches: float) -> str:
    """Return a drawing with its width on paper; a wider drawing is made smaller as a whole."""
    width, height = size_of(svg)
    whole = min(inches, width * POINTS_PER_PIXEL / 72)
    size = f'width="{whole:.3f}in" height="{whole * height / width:.3f}in"'
    return _SIZE.sub(rf"\1 {size}", svg, count=1)


def _panel(spec: Spec) -> Spec:
    panel: Spec = spec["spec"] if "facet" in spec else spec
    return panel


def _sized(spec: Spec, rows: Rows, columns: int, width: float, whole: float) -> Spec:
    copy = deepcopy(spec)
    _panel(copy)["width"] = width
    if "facet" in copy:
        copy["columns"] = columns
        panels = len({row[spec["facet"]["field"]] for row in rows})
        resolve = copy.get("resolve", {})
        if panels % columns:  # a shared axis would stand at the foot of empty places too
            copy["resolve"] = resolve | {"axis": {"x": "independent"}}

    folded = set[str]()
    for encoding in _encodings(copy):
        # A long title of x is put on several lines in the first layer that has it: layers join their titles.
        title = encoding.get("x", {}).get("title")
        if isinstance(title, str) and LETTER * len(title) > width:
            lines = wrap(title, int(width / LETTER), break_long_words=False, break_on_hyphens=False)
            encoding["x"]["title"] = "" if title in folded else lines
            folded.add(title)

        # A legend of colours has as many columns as its longest name leaves room for.
        colour = encoding.get("color") or {}
        if colour.get("type") == "nominal" and colour.get("legend", {}) is not None:
            legend = colour.setdefault("legend", {})
            longest = max((len(str(row.get(colour["field"], ""))) for row in rows), default=1)
            symbol = sqrt(legend.get("symbolSize", spec["config"]["legend"]["symbolSize"]))
            entry = LETTER * longest + symbol + BESIDE_SYMBOL
            fitting = max(1, int((whole if columns > 1 else width) / entry))
            legend["columns"] = min(legend.get("columns") or 4, fitting)
    return copy


def _nodes(node: object) -> Iterator[Spec]:
    """Yield each part of a specification, the outer first."""
    if isinstance(node, dict):
        yield node
        for name, value in node.items():
            if name not in ("data", "config"):
                yield from _nodes(value)
    if isinstance(node, list):
        for element in node:
            yield from _nodes(element)


def _encodings(spec: Spec) -> Iterator[Spec]:
    return (node["encoding"] for node in _nodes(spec) if "encoding" in node)


def _sort_axes(spec: Spec, rows: Rows) -> Spec:
    """Put axes of models into the order of the rows and axes of tasks into that of their kinds."""
    models = [*dict.fromkeys(row["model"] for row in rows if "model" in row)]
    kinds = sorted({(row["kind"], row["task"]) for row in rows if "task" in row})
    orders = {"task": [task for _, task in kinds]} | ({} if "facet" in spec else {"model": models})
    for encoding in _encodings(spec):
        for channel in encoding.keys() & {"x", "y"}:
            axis = encoding[channel]
            if orders.get(axis.get("field")):
                axis["sort"] = orders[axis["field"]]
    return spec


def short_named(rows: Rows, letters: int) -> Rows:
    """Return rows whose models have names of at most so many characters, which still tell them apart."""
    names = distinct_names((row["model"] for row in rows if "model" in row), longest=letters)
    names |= distinct_names((row["other"] for row in rows if "other" in row), longest=letters)
    return [
        {**row, **{column: names[row[column]] for column in ("model", "other") if column in row}}
        for row in rows
    ]


def transposed(spec: Spec) -> Spec:
    """Return a map of names whose rows are columns."""
    copy = deepcopy(spec)
    for encoding in _encodings(copy):
        if "x" in encoding and "y" in encoding:
            x, y = encoding["x"], encoding["y"]
            encoding["x"], encoding["y"] = _moved(y, x["axis"]), _moved(x, y["axis"])
    return copy


def _moved(channel: Spec, axis: Spec) -> Spec:
    """Return a channel on another's axis; the expression that writes its own labels stays."""
    shared = {name: value for name, value in axis.items() if name != "labelExpr"}
    labels = {name: value for name, value in channel["axis"].items() if name == "labelExpr"}
    return {**channel, "axis": {**shared, **labels}}
