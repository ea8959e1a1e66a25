"""Printed tables, pictures and notes that the reports of published benchmarks share."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, pairwise, product
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders, chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.analysis.folder_report import FolderReport, NothingToShowError
from asyncbench.analysis.graders import Graded, graded_by
from asyncbench.errors import ConfigError
from asyncbench.store.manifest import Manifest
from asyncbench.tables.numbers import MISSING
from asyncbench.tables.report import Report, Sheet, filled

# ── The tables that the benchmarks' own documents print, as small files beside this one
# `data/published.py` made them. They are facts to look at: nothing is pooled with them or tested against
# them.


PRINTED: Final = Path(__file__).with_name("printed_tables")
_KEYS: Final = ("document", "source", "table", "notes")  # of a table's metadata
MARK: Final = "(published)"  # beside the name of a model that is not of the folder


def published_table(name: str) -> pa.Table:
    """Read a table that a benchmark's own document prints; numbers keep the digits of the print.

        ab.published_table("nupa_table_7").to_pandas()

    Args:
        name: such as `nupa_table_7` or `llm_arithmetic_2025-06-30_overview`; another name's error lists all.

    Returns:
        Its rows. The schema's metadata has `asyncbench.document`, `asyncbench.source`, `asyncbench.table`
        and, as a JSON list, `asyncbench.notes`: what is doubtful about it.

    Raises:
        ConfigError: No such table.
    """
    names = sorted(path.stem for path in PRINTED.glob("*.parquet"))
    if name not in names:
        raise ConfigError(f"published_table: no table is called {name!r}. Choose one of: {', '.join(names)}")
    return pq.read_table(PRINTED / f"{name}.parquet")


def sources_note(tables: Iterable[pa.Table]) -> str:
    """Return a note on the documents that published figures are from, and what is doubtful about them."""
    sentences = [
        f"{about['table']} of {about['document']} ({about['source']}): {' '.join(about['notes'])}"
        for about in map(_about, tables)
    ]
    return (
        f"Figures marked {MARK} are as their document prints them. They are never pooled with yours, and no "
        f"test compares them. {' '.join(sentences)}"
    )


def printed_mapping(table: pa.Table) -> dict[str, object]:
    """Return a printed table and where it comes from as JSON has them; decimals are the nearest floats."""
    rows = [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return {**_about(table), "rows": rows}


def _about(table: pa.Table) -> dict[str, Any]:
    about = {name: table.schema.metadata[f"asyncbench.{name}".encode()].decode() for name in _KEYS}
    return {**about, "notes": json.loads(about["notes"])}


# ── Pictures that a benchmark's document publishes: what each shows, before it is drawn
# A report of a published style yields them (`PublishedReport.pictures`); `charts` draws any of them.


MOST_SERIES: Final = 8  # colours that people tell apart
MOST_CELLS: Final = 600  # of a map's panels that are drawn at once; what a page has room for is measured then
MOST_ROWS: Final = 36  # names below each other
DRAWN_ONLY: Final = {"few", "stretch"}  # columns that say only how a row is drawn
EXAMPLE: Final = "example"  # a column of panels of one answer each: `TASK: MODEL`
LACKING: Final = "–"  # in the place of a figure that was not asked for
UNPRINTED: Final = "has no figure in the paper"
MISPRINTED: Final = "the paper prints the digits of other tasks here, by mistake"
NO_ROOM: Final = "exceeds the context, as the paper says"
UNANSWERED: Final = "was asked, and has no graded answer"
GAPS: Final[Mapping[str, str]] = {  # why a figure is missing, when it was asked for → the sign in its place
    UNPRINTED: "/",
    MISPRINTED: "?",
    NO_ROOM: "×",
    UNANSWERED: "*",
}


_ORDERED: Final = ("x", "y", "series")  # channels that may have an order of their own
_REMARKED: Final = re.compile(r"( \*| †)+$")  # marks behind a name that point to a note


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPicture(Report):
    """One picture: its rows, and which of their columns stand where.

    Kinds: `bars` and `lines` show `value` over `x`, a colour a `series`; `stack` has a bar for each `y`, cut
    into series; `map` shades the cells `x` × `y`; `points` sets `value` against the number `x`; `dots` has a
    line for each `y`, with a point at each `value`; `curves` has a line for each series over the number `x`,
    broken where `stretch` changes, with hollow points where `few` is true, and a mark at `training_length`.
    Columns `low` and `high`, where rows have them, are drawn as an interval. A row without a value may have a
    `gap`: its reason, of `GAPS`.

    Scales: category, length (in digits), share, right (1 or 0), digits (of the wrong length: log2(digits +
    1)), number, log, usd (a log, too), difference (of shares).
    """

    name: str  # of its files, such as `figure-5`
    title: str
    kind: str
    rows: Sequence[Mapping[str, Any]]  # Any: text, number or None, by column; None is unknown
    x: str = ""
    y: str = ""
    value: str
    series: str = ""
    series_order: Sequence[str] = ()  # of all its series; else as the rows have them
    palette: Sequence[str] = ()  # all series of a run, each with one colour; else the rows' own
    panel: str = ""  # a small picture for each of its values
    text: str = ""  # what is written in a cell of a map, or at a point; else a map's value
    guide: str = ""  # a value to compare with, dashed: that of guessing
    x_scale: str = "category"
    x_order: Sequence[str] = ()  # of all columns of a map; else as the rows have them
    y_order: Sequence[str] = ()  # of all rows of a map; else as the rows have them
    crowded: bool = False  # its cells lose their figures where only shades have room on one page
    bare: bool = False  # the cells of a map hold no figures
    whole: bool = True  # a dash stands where a map has no row, or a group of bars none of a series
    dash: str = "was not asked"  # what the dash says
    of_folder: bool = True  # False: it shows nothing of a folder, only what the benchmark's tasks are
    scale: str = "share"
    reach: float | None = None  # the largest value of all its pages; else of its rows
    notes: Sequence[str] = ()
    shading: str = ""  # a note on what the shades of a map say, which a printed table has not
    meaning: str = ""  # what its words say, for a caption that stands alone

    @property
    def largest(self) -> float:
        """The largest value or upper end of it and its other pages; 0: there is none above."""
        if self.reach is not None:
            return self.reach
        columns = [self.value, *([] if self.kind == "map" else ["high"])]  # a map shows no intervals
        return max([0.0, *(row.get(column) or 0.0 for row in self.rows for column in columns)])

    @property
    def drawable(self) -> bool:
        """True if any of its values is known."""
        return any(row[self.value] is not None for row in self.rows)

    @property
    def shows_folder(self) -> bool:
        """True if any of its rows is of the folder, and not as a document prints it."""
        return self.of_folder and any(
            not any(MARK in str(value) for value in row.values()) for row in self.rows
        )

    def drawn_rows(self) -> list[dict[str, Any]]:  # Any: as in `rows`
        """Return its rows by the channel in which each value is drawn; a dash is where there is none."""
        channels = {"x": self.x, "y": self.y, "series": self.series, "panel": self.panel}
        channels |= {"value": self.value, "text": self.text, "guide": self.guide}
        channels |= {"low": "low", "high": "high"}
        channels |= {name: name for name in ("gap", "first", "few", "stretch", "training_length")}
        rows = [
            {channel: row[column] for channel, column in channels.items() if column in row}
            for row in self.rows
        ]
        across = "y" if self.kind == "map" else "series"
        if self.kind not in ("map", "bars") or not (self.whole and getattr(self, across)):
            return rows

        # Each place of a panel without a value gets a row that says so; bars have other lengths by panel.
        drawn = dict.fromkeys((row.get("panel"), row["x"], row[across]) for row in rows)
        lines = getattr(self, f"{across}_order") or list(dict.fromkeys(row[across] for row in rows))
        for panel in dict.fromkeys(panel for panel, *_ in drawn):
            columns = self.x_order or dict.fromkeys(
                x for x_panel, x, _ in drawn if self.kind == "map" or x_panel == panel
            )
            rows += [
                {"panel": panel, "x": x, across: y, "value": None, "gap": UNPRINTED if printed else None}
                for x, y in product(columns, lines)
                if (panel, x, y) not in drawn
                for printed in [any(MARK in str(name) for name in (panel, x, y))]
            ]
        return [
            row | {"lacking": GAPS.get(row.get("gap") or "") or row.get("text") or LACKING}
            if row["value"] is None
            else row
            for row in rows
        ]

    def signs(self) -> dict[str, str]:
        """Return the meaning of each sign that stands in the place of a figure, in the order of `GAPS`."""
        lacking = {row.get("lacking") for row in self.drawn_rows()}
        return {
            sign: words
            for sign, words in ((LACKING, self.dash), *((sign, words) for words, sign in GAPS.items()))
            if sign in lacking
        }

    def parted(self) -> Iterator["PublishedPicture"]:
        """Yield it, or several with a name each, where it has more series than colours, or too many names."""
        column, page_size = self._page
        values = list(dict.fromkeys(row[column] for row in self.rows)) if column else []
        if len(values) <= page_size:
            yield self
            return
        yield from self.split(column, ceil(len(values) / page_size))

    def split(self, column: str, pages: int) -> Iterator["PublishedPicture"]:
        """Yield so many pictures with a name each, at most; each shows some of the values of a column."""
        present = dict.fromkeys(row[column] for row in self.rows)
        axis = next((axis for axis in _ORDERED if getattr(self, axis) == column), "")
        order = getattr(self, f"{axis}_order", ())
        values = [*dict.fromkeys([*(value for value in order if value in present), *present])]
        page_size = ceil(len(values) / pages)
        for start in range(0, len(values), page_size):
            shown = set(values[start : start + page_size])
            rows = [row for row in self.rows if row[column] in shown]
            name = f"{self.name}-{start // page_size + 1}"
            changes: dict[str, Any] = {"name": name, "rows": rows, "reach": self.largest}  # Any: of it
            if axis:
                changes[f"{axis}_order"] = [value for value in order if value in shown]
            yield replace(self, **changes)

    @property
    def column_down(self) -> str:
        """The column whose values stand below each other; empty: its height does not depend on its rows."""
        several = self.panel and len({row[self.panel] for row in self.rows}) > 1
        return self.panel if several else self.y

    @property
    def column_across(self) -> str:
        """The column whose values stand beside each other, each with a width of its own."""
        return self.x if self.kind == "map" else ""

    @property
    def _page(self) -> tuple[str, int]:
        """The column that is shared out among pages, and how many of its values stand on one."""
        if self.series and self.kind != "stack":
            return self.series, MOST_SERIES
        if self.kind != "map":
            return self.y, MOST_ROWS
        panels = rows_by(self.rows, itemgetter(self.panel)).values() if self.panel else ()
        return self.panel, max(1, MOST_CELLS // max(map(len, panels), default=1))

    def notes_above(self) -> Iterator[str]:
        yield from self.notes
        if self.shading:
            yield self.shading

    def sheets(self) -> Iterator[Sheet]:
        head = [column for column in dict.fromkeys(chain(*self.rows)) if column not in DRAWN_ONLY]
        labels = sum(any(isinstance(row.get(column), str) for row in self.rows) for column in head)
        sheet = Sheet(
            title=self.title,
            head=[column.replace("_", " ") for column in head],
            rows=[[_written(row.get(column)) for column in head] for row in self.rows],
            labels=max(labels, 1),
        )
        yield filled(sheet)

    @property
    def tabular(self) -> bool:
        """True if the document prints it as a table."""
        return self.name.startswith("table-")

    @property
    def legend(self) -> str:
        """What a caption says after the title: its notes, and what its words mean."""
        return " ".join(filter(None, [*self.notes, self.meaning]))

    def latex_content(self) -> Iterator[Any]:
        """Yield a table as papers print it: its notes and signs in the caption, a column a model."""
        of_models = "model" in (self.x, self.y, self.panel)
        if self.kind == "curves" or (self.kind == "map" and (self.tabular or of_models)):
            yield self.paper_sheet()
        elif self.tabular:
            yield from (replace(sheet, legend=self.legend, name=self.name) for sheet in self.sheets())
        else:
            yield from self.content()

    def paper_sheet(self) -> Sheet:
        """Return a map or curves as a table: a column a model, or else a place across; a row for all else."""
        channels = [channel for channel in ("panel", "y", "x", "series") if getattr(self, channel)]
        across = next((channel for channel in channels if getattr(self, channel) == "model"), "x")
        down = [channel for channel in channels if channel != across]
        rows = self.drawn_rows()
        cells = {(*(row[channel] for channel in down), row[across]): self._paper_cell(row) for row in rows}
        columns = list(dict.fromkeys(row[across] for row in rows))

        # Rows stand as the map has them. One in which nothing was asked is left out.
        orders = [list(getattr(self, f"{channel}_order", ())) for channel in down]
        names = dict.fromkeys(tuple(row[channel] for channel in down) for row in rows)
        if self.kind == "curves" and names:  # models may have been asked other lengths
            values = dict(zip(down, zip(*names, strict=True), strict=True))
            orders = [sorted(set(values[name])) if name == "x" else [*values[name]] for name in down]
        ranked = sorted(
            names,
            key=lambda row: [
                order.index(name) if name in order else -1 for order, name in zip(orders, row, strict=True)
            ],
        )
        table = [[*name, *(cells.get((*name, column), LACKING) for column in columns)] for name in ranked]
        table = [row for row in table if any(cell != LACKING for cell in row[len(down) :])]

        # The first of several names stands where it begins.
        if len(down) > 1:
            for above, row in reversed([*pairwise(table)]):
                row[0] = "" if row[0] == above[0] else row[0]

        present = {cell for row in table for cell in row[len(down) :]}
        meanings = {LACKING: self.dash} | {sign: words for words, sign in GAPS.items()}
        signs = [f"{sign} {words}." for sign, words in meanings.items() if sign in present]
        return Sheet(
            title=self.title,
            head=[*(getattr(self, channel) for channel in down), *columns],
            rows=table,
            labels=len(down),
            legend=" ".join(filter(None, [self.legend, *signs])),
            name=self.name,
            upright=True,
        )

    def _paper_cell(self, row: Mapping[str, Any]) -> str:  # Any: of a picture's row
        if row["value"] is None:
            return str(row.get("lacking") or GAPS[row["gap"]])
        if self.kind == "curves":
            return "{value:.2f} ({low:.2f}-{high:.2f})".format_map(row)
        if self.text:
            return str(row["text"]).replace(" / ", "/")
        return f"{row['value']:.2f}" if self.scale in ("share", "digits") else f"{row['value']:.4g}"


def _written(value: object) -> str:
    if value is None:
        return MISSING
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def picture(
    name: str,
    title: str,
    kind: str,
    rows: Iterable[Mapping[str, Any]],
    value: str,
    *also: str,
    **changes: Any,
) -> PublishedPicture:  # Any: of a picture
    """Return a picture whose rows have just the columns that it shows, and those named `also`."""
    shown = [changes.get(channel, "") for channel in ("panel", "y", "x", "series", "text", "guide")]
    columns = [*filter(None, dict.fromkeys((*shown, *also))), value]
    kept = [{column: row[column] for column in columns if column in row} for row in rows]
    return PublishedPicture(name=name, title=title, kind=kind, rows=kept, value=value, **changes)


def in_one_order(
    pictures: Iterable[PublishedPicture], models: Sequence[str], note: str = ""
) -> Iterator[PublishedPicture]:
    """Yield pictures whose axes and series have models in one order; those of several models say which.

    Args:
        pictures: of a run.
        models: in their order. Others, such as printed ones, stand behind them as the rows have them.
        note: which order this is. [none]
    """
    ranks = {name: rank for rank, name in enumerate(models)}
    for picture in pictures:
        channels = ["panel", *_ORDERED]
        of_models = [channel for channel in channels if getattr(picture, channel) in ("model", EXAMPLE)]
        changes = dict[str, Any]()  # Any: of a picture
        for channel in of_models:
            column = getattr(picture, channel)
            names = [*dict.fromkeys(row[column] for row in picture.rows)]
            names.sort(key=lambda name: ranks.get(unmarked(name), len(ranks)))
            if channel in _ORDERED and not getattr(picture, f"{channel}_order"):
                changes[f"{channel}_order"] = names
            if note and len(names) > 1:
                changes["notes"] = [*picture.notes, note]
        yield replace(picture, **changes)


def unmarked(name: str) -> str:
    """Return the name of a model without the marks that it has in some pictures of a run only."""
    return _REMARKED.sub("", name)


# ── Reports of published benchmarks


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnReport(FolderReport):
    """A report on a results folder whose style has pictures of its own."""

    def pictures(self) -> Iterator[PublishedPicture]:
        """Yield its pictures, in their order."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReport(DrawnReport):
    """The figures of a results folder as another project publishes them."""

    graders: tuple[Graded, ...]
    left_out: dict[str, int]  # run → entries of its file that could not be imported
    published: tuple[pa.Table, ...] = ()  # tables of its document, to stand beside the folder's figures

    def remarks(self) -> Iterator[str]:
        yield graded_by(self.graders)
        yield from self.outcomes()
        if self.left_out:
            runs = ", ".join(f"{run} {count:,}" for run, count in self.left_out.items())
            yield f"Entries that the import could not use, by run: {runs}."
        yield from self.meaning()
        if self.published:
            yield sources_note(self.published)

    def add_published(self, data: dict[str, object]) -> dict[str, object]:
        """Return the data for JSON, with the published tables where they were asked for."""
        return data | ({"published": list(map(printed_mapping, self.published))} if self.published else {})

    def outcomes(self) -> Iterator[str]:
        """Yield notes on the outcomes of trials."""
        return iter(())

    def meaning(self) -> Iterator[str]:
        """Yield notes on the meaning of the tables, after all other notes."""
        return iter(())


def about(folder: Folders, manifest: Manifest, *, runs: Collection[str]) -> dict[str, Any]:
    """Return the facts of a folder that every published report tells beside its counts."""
    # Entries of files that could not be used, never 0. A file that gave nothing is named with any runs: it
    # has no trials that would tell its suites.
    left_out = {
        run: entries
        for run, entry in manifest.get("runs", {}).items()
        if (entries := entry.get("left_out", 0)) and (run in runs or not entry["planned"])
    }
    return {"folder": str(chosen(folder)), "left_out": left_out}


def counted_of(folder: Folders, suites: Sequence[str], count: Callable[[FolderViews], T]) -> T:
    """Return the result of `count` on a folder's views, where it holds any trial of these suites of ours.

    Raises:
        ConfigError: it is not a results folder, or (`NothingToShowError`) holds no trial of them.
        StoreError: it cannot be read.
    """
    named = ", ".join(f"'{suite}'" for suite in suites)
    any_trial = f"SELECT 1 FROM trials WHERE suite IN ({named}) LIMIT 1"  # noqa: S608  names of ours

    def count_if_present(views: FolderViews) -> T:
        if not views.rows(any_trial):
            counts = views.rows("SELECT DISTINCT suite FROM trials ORDER BY suite")
            raise NothingToShowError.missing_suites(views.chosen, suites, [row["suite"] for row in counts])
        return count(views)

    return counted(folder, count_if_present)
