"""Pictures that a benchmark's document publishes: what each shows, before it is drawn.

A report of a published style yields them (`PublishedReport.pictures`); `charts` draws any of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from asyncbench.tables.numbers import MISSING
from asyncbench.tables.report import Report, Sheet, filled

MOST_SERIES: Final = 8  # colours that people tell apart


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPicture(Report):
    """One picture: its rows, and which of their columns stand where.

    Kinds: `bars` and `lines` show `value` over `x`, a colour a `series`; `stack` has a bar for each `y`, cut
    into series; `map` shades the cells `x` × `y`; `points` sets `value` against the number `x`; `dots` has a
    line for each `y`, with a point at each `value`. Columns `low` and `high`, where rows have them, are drawn
    as an interval.

    Scales: category, share, digits (of the wrong length: log2(digits + 1)), number, log, usd (a log, too),
    difference (of shares).
    """

    name: str  # of its files, such as `figure-5`
    title: str
    kind: str
    rows: Sequence[Mapping[str, Any]]  # Any: text, number or None, by column; None is unknown
    x: str = ""
    y: str = ""
    value: str
    series: str = ""
    panel: str = ""  # a small picture for each of its values
    text: str = ""  # what is written in a cell of a map, or at a point; else a map's value
    guide: str = ""  # a value to compare with, dashed: that of guessing
    x_scale: str = "category"
    x_order: Sequence[str] = ()  # of a map's columns; else as the rows have them
    scale: str = "share"
    notes: Sequence[str] = ()

    @property
    def drawable(self) -> bool:
        """Whether any of its values is known."""
        return any(row[self.value] is not None for row in self.rows)

    def drawn_rows(self) -> list[dict[str, Any]]:  # Any: as in `rows`
        """Return its rows by the place in which each value is drawn."""
        places = {"x": self.x, "y": self.y, "series": self.series, "panel": self.panel}
        places |= {"value": self.value, "text": self.text, "guide": self.guide, "low": "low", "high": "high"}
        return [
            {place: row[column] for place, column in places.items() if column in row} for row in self.rows
        ]

    def parted(self) -> Iterator["PublishedPicture"]:
        """Yield it, or several with a name each, where it has more series than there are colours."""
        series = list(dict.fromkeys(row[self.series] for row in self.rows)) if self.series else []
        if len(series) <= MOST_SERIES:
            yield self
            return
        for start in range(0, len(series), MOST_SERIES):
            shown = series[start : start + MOST_SERIES]
            rows = [row for row in self.rows if row[self.series] in shown]
            yield replace(self, name=f"{self.name}-{start // MOST_SERIES + 1}", rows=rows)

    def _notes(self) -> Iterator[str]:
        yield from self.notes

    def _sheets(self) -> Iterator[Sheet]:
        head = list(dict.fromkeys(column for row in self.rows for column in row))
        labels = sum(any(isinstance(row.get(column), str) for row in self.rows) for column in head)
        sheet = Sheet(
            title=self.title,
            head=[column.replace("_", " ") for column in head],
            rows=[[_written(row.get(column)) for column in head] for row in self.rows],
            labels=max(labels, 1),
        )
        yield filled(sheet)


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
    places = [changes.get(place, "") for place in ("panel", "y", "x", "series", "text", "guide")]
    columns = [*filter(None, dict.fromkeys((*places, *also))), value]
    kept = [{column: row[column] for column in columns if column in row} for row in rows]
    return PublishedPicture(name=name, title=title, kind=kind, rows=kept, value=value, **changes)
