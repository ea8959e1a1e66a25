"""The shared parts of the charts, as Vega-Lite specifications over data named `rows`.

Specifications hold no title, no data and no theme, so that the page and pictures can share them. The columns
of each chart are in `catalogue`.
"""

from collections.abc import Mapping
from typing import Any, Final

import altair as alt

Spec = dict[str, Any]  # Any: a specification of Vega-Lite
Options = dict[str, Any]  # Any: of a part of one
Drawn = alt.LayerChart | alt.FacetChart

WIDTH: Final = 640  # pixels of a chart that is one view
PANEL_WIDTH: Final = 300  # of one of several
ROW: Final = 20  # pixels of height a bar
CELL: Final = 24  # a row of a heatmap
HEIGHT: Final = 260  # of a panel with two quantities
PERCENT: Final = ".0%"
QUARTERS: Final = [0, 0.25, 0.5, 0.75, 1]


TITLE: Final = "{title}"  # where the title of a metric stands

ROWS: Final = alt.NamedData(name="rows")  # one object: facets are of layers over the same data


def chart() -> alt.Chart:
    """Return an empty chart over the rows."""
    return alt.Chart(ROWS)


def reference_line() -> alt.Chart:
    """Return a line of reference, drawn once however many rows there are."""
    line: alt.Chart = chart().transform_aggregate(rows="count()").mark_rule(style="reference")
    return line


def panels(layers: Drawn, *, columns: int, field: str = "panel") -> Drawn:
    """Return small multiples, one for each value of a field, in the order of the rows."""
    by_row = alt.EncodingSortField(field="row", op="min")
    return layers.facet(
        facet=alt.Facet(f"{field}:N", sort=by_row, title=None, header=alt.Header(title=None)),
        columns=columns,
        spacing={"row": 28, "column": 36},
    ).transform_window(row="row_number()")


def accuracy_axis(field: str = "value", title: str = "accuracy", **scale: Any) -> alt.Y:  # Any: of alt.Scale
    scale = scale or {"domain": [0, 1]}
    return alt.Y(
        f"{field}:Q", title=title, axis=alt.Axis(format=PERCENT, tickCount=5), scale=alt.Scale(**scale)
    )


def tooltips(*fields: str) -> list[alt.Tooltip]:
    """Return tooltips of a mark: each argument is `field`, `field|format` or `field|format|name`."""
    tips = []
    for definition in fields:
        field, form, name = (*definition.split("|"), "", "")[:3]
        shown: Options = {"format": form} if form else {}
        plain = field.partition(":")[0]
        tips.append(alt.Tooltip(field, title=name or _TIPS.get(plain, plain.replace("_", " ")), **shown))
    return tips


# Names of columns in tooltips, where these are not the column's own.
_TIPS: Final[Mapping[str, str]] = {
    "series": "model or limit",
    "low": "95 % CI from",
    "high": "to",
    "p": "p (Holm)",
    "at": "time (UTC)",
    "p50_s": "median latency, s",
    "p95_s": "p95 latency, s",
    "errors": "wrong here",
    "answers": "wrong answers",
    "used": "used of the limit",
    "tied": "statistically tied",
}
SHARE_TIPS: Final = ("value:Q|.1%|accuracy", "low:Q|.1%", "high:Q|.1%", "trials:Q|,")


def series_colour() -> alt.Color:
    return alt.Color("series:N", sort=None)
