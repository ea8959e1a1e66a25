"""The charts of calls: times, throughput, failures and the use of limits.

Column `asked` of a row is the index of the entrant in `asked_in`, or None where a row is of several entrants.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, short_names
from asyncbench.analysis.views import BEGAN, CALLS_IN_BINS
from asyncbench.page.charts.chart import (
    COLOUR,
    PERCENT,
    ROW,
    UNDERSCORED,
    WHO,
    Chart,
    Row,
    Spec,
    calculated,
    field,
    grouped,
    mark,
    names,
    panels,
    reference_line,
    running,
    tooltips,
)
from asyncbench.reports.quota import limits_over_time
from asyncbench.store.schema import ENTRANT

LULL: Final = 1.5  # a bin begins a new stretch when it starts this many bin lengths after the last one
MOST_LINES: Final = 6  # lines that people can follow in one panel
LEAST_POINTS: Final = 3  # points of a line: fewer show no course
TIMED: Final = {"TTFT": "ttft_s", "latency": "latency_s", "queued": "queued_s"}  # columns by their names
SHARES: Final = (50, 90, 95, 99)  # percentiles

# How long answered calls took, by entrant.
_CALL_TIMES: Final = f"""
{CALLS_IN_BINS}
SELECT run, model, condition, count(*) AS answered,
    {
    ", ".join(
        f"count({column}) AS known_{column}, "
        f"quantile_cont({column}, {[share / 100 for share in SHARES]}) AS {column}"
        for column in TIMED.values()
    )
}
FROM calls WHERE status = 'ok' GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone
# Calls over time, in bins of seconds in a short run, of minutes in a night: the answered ones, all others.
_ANSWERED: Final = """
SELECT run, model, condition, epoch_ms(began) AS at, 60::DOUBLE * minutes AS seconds, calls,
    latency_p50_s AS p50_s, latency_p95_s AS p95_s, 60 * calls / seconds AS calls_per_minute,
    60 * output_tokens / seconds AS tokens_per_minute
FROM ({minutes})
"""
_FAILED: Final = f"""
{CALLS_IN_BINS}
SELECT run, model, condition, epoch_ms({BEGAN}) AS at, seconds::DOUBLE AS seconds, status, count(*) AS calls,
    60 * count(*) / any_value(bins.seconds) AS calls_per_minute
FROM calls, bins WHERE status <> 'ok' GROUP BY ALL ORDER BY ALL
"""  # noqa: S608  made of our own words alone


def times_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return percentiles of how long answered calls took, seconds."""
    entrants = sorted(_rows_of(views, _CALL_TIMES, roster), key=lambda row: row["asked"])
    return [
        {
            "asked": row["asked"],
            "quantity": quantity,
            "panel": quantity,
            **{f"p{share}": time_s for share, time_s in zip(SHARES, row[column], strict=True)},
            "calls": row[f"known_{column}"],
            "answered": row["answered"],
        }
        for quantity, column in TIMED.items()
        for row in entrants
        if row[column] is not None
    ]


def minute_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return latency and throughput of answered calls over time; none where no latency is known.

    A recording knows when trials were finished, and nothing of calls.
    """
    rows = _rows_of(views, _ANSWERED.format(minutes=views.sums_query("minutes")), roster)
    if not any(row["p50_s"] is not None for row in rows):
        return []
    stretches = _stretches((row["at"], row["seconds"]) for row in rows)
    return _long_lines([row | {"part": stretches[row["at"]]} for row in rows], ("asked",))


def failure_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return calls without an answer over time, by how they ended."""
    rows = _rows_of(views, _FAILED, roster)
    return rows if len({row["at"] for row in rows}) >= LEAST_POINTS else []


def _rows_of(views: FolderViews, query: str, roster: Asked) -> list[Row]:
    """Return the rows of entrants on the roster, each with its entrant and its panel.

    All are in one panel, or each entrant has its own where they are many. Rows of open trials of a model with
    several entrants are left out: they have no run and no condition.
    """
    places = roster.entrant_places
    rows = [({name: row.pop(name) or "" for name in ENTRANT}, row) for row in views.rows(query)]
    placed = [(places[who], row) for entrant, row in rows if (who := (*entrant.values(),)) in places]
    crowded = len({entrant for entrant, _ in placed}) > MOST_LINES
    return [
        {"asked": entrant, "panel": roster.entrants[entrant].short if crowded else "", **row}
        for entrant, row in placed
    ]


def limit_rows(views: FolderViews, roster: Asked) -> list[Row]:
    """Return how much of each lane's limits was used over time, and what they are."""
    uses = list(limits_over_time(views))
    stretches = _stretches((began_ms, seconds) for began_ms, seconds, _ in uses)

    # A lane has the name of its model on the page, where each lane is of one entrant.
    models = Counter(entrant.model for entrant in roster.entrants)
    alone = {who.model: n for n, who in enumerate(roster.entrants) if models[who.model] == 1}
    lanes = dict.fromkeys(use.lane for _, _, use in uses)
    lane_names = short_names(lanes)
    if lanes.keys() <= alone.keys():
        lane_names = {lane: roster.entrants[alone[lane]].short for lane in lanes}
    rows = [
        {
            "asked": alone.get(use.lane),
            "panel": lane_names[use.lane],
            "lane": lane_names[use.lane],
            "limit": limit,
            "at": began_ms,
            "seconds": seconds,
            "part": stretches[began_ms],
            "used": share,
            "per_minute": 60 * use.allowed[limit] / use.seconds if use.seconds else None,
            "refused": use.refused,
        }
        for began_ms, seconds, use in uses
        for limit, share in use.shares.items()
    ]
    return _long_lines(rows, ("lane", "limit"))


def _long_lines(rows: Sequence[Row], keys: tuple[str, ...]) -> list[Row]:
    """Return the rows of lines with `LEAST_POINTS` or more."""
    points = Counter(tuple(row[key] for key in keys) for row in rows)
    return [row for row in rows if points[tuple(row[key] for key in keys)] >= LEAST_POINTS]


def _stretches(bins: Iterable[tuple[int, float]]) -> dict[int, int]:
    """Return in which stretch of work each bin is, by its start. A pause of calls begins the next stretch.

    Args:
        bins: when each begins, in milliseconds, and its length in seconds.
    """
    stretches, stretch, end = dict[int, int](), 0, inf
    for began_ms, seconds in sorted(set(bins)):
        stretch += began_ms > end
        stretches[began_ms], end = stretch, began_ms + 1000 * LULL * seconds
    return stretches


# Lines have their names at their ends, one under the other where they would meet.

HEIGHT: Final = 200  # pixels of a panel
LINE: Final = 13  # of a name at the end of a line
GAP: Final = 6  # from the end of a line to its name
MARGIN: Final = 10  # above and below on a scale of logs
MOST_DOTS: Final = 60  # of a line: more hide it

# ── percentiles ──────────────────────────────────────────────────────────────────────────────────

_TIME_TIPS: Final = tooltips(
    *("model:N", "panel:N||time", "p50:Q|,.3~r|p50, s", "p90:Q|,.3~r|p90, s", "p95:Q|,.3~r|p95, s"),
    *("p99:Q|,.3~r|p99, s", "calls:Q|,", "answered:Q|,"),
)


def _percentile(kind: str, options: Spec, name: str, **more: Spec) -> Spec:
    """Return a mark at a percentile of each entrant's times."""
    x = field(
        f"{name}:Q",
        title="seconds (log scale)",
        axis={"format": ",~g", "tickCount": 5, "labelOverlap": "greedy"},
        scale={"type": "symlog", "constant": 0.001, "nice": False, "zero": False, "padding": 8},
    )
    return mark(kind, options, x=x, y=names(), color=COLOUR, tooltip=_TIME_TIPS, **more)


# A row for each entrant: a line from p50 to p99, and marks at p50, p95 and p99.
_TIMES: Final = panels(
    _percentile("rule", {"strokeWidth": 2, "opacity": 0.55}, "p50", x2=field("p99")),
    _percentile("tick", {"thickness": 2, "size": 9, "opacity": 1}, "p95"),
    _percentile("tick", {"thickness": 2, "size": 14, "opacity": 1}, "p99"),
    _percentile("point", {"filled": True, "size": 75, "opacity": 1}, "p50"),
    height={"step": ROW},
    apart=("x",),
)

# ── over time ────────────────────────────────────────────────────────────────────────────────────

_FORMATS: Final = {  # of labels, which are as fine as the span
    **dict.fromkeys(("hours", "minutes"), "%H:%M"),
    **dict.fromkeys(("day", "date", "month"), "%d %b"),
    **dict.fromkeys(("seconds", "milliseconds"), "%H:%M:%S"),
}
_TIME: Final = field(
    "at:T",
    title="time (UTC)",
    axis={"grid": False, "labelOverlap": "greedy", "labelSeparation": 8, "tickCount": 6, "format": _FORMATS},
    scale={"type": "utc"},
)
_PARTS: Final = {"color": COLOUR, "detail": [field("model:N"), field("part:N")]}
_CALLS: Final = "calls:Q|,|answered calls"
_MOMENT: Final = "at:T|%d %b %H:%M:%S"


def _lines(
    y: Spec,
    tips: Sequence[str],
    end: str,
    figures: Mapping[str, str],
    *under: Spec,
    made: Sequence[Spec] = (),
) -> Spec:
    """Return panels of lines with their names at their ends, and dots where these are few or alone.

    Args:
        y: the axis of what the lines show.
        tips: what the tooltip of a dot shows after its model and its time.
        end: an expression of the pixels from the top at which a line ends.
        figures: figures of all rows that this expression needs.
        under: layers below the lines.
        made: transforms of all rows, before these figures.
    """
    few = {"expr": f"datum.points > {MOST_DOTS} && datum.alone > 1 ? 0 : 1"}
    dot = {"filled": True, "size": 22, "shape": "circle", "opacity": few}
    tooltip = tooltips("model:N", _MOMENT, *tips, _CALLS)
    return panels(
        *under,
        mark("line", {"strokeWidth": 1.6}, x=_TIME, y=y, **_PARTS),
        mark("point", dot, x=_TIME, y=y, tooltip=tooltip, **_PARTS),
        _end_names(end),
        height=HEIGHT,
        transform=[
            grouped(("panel",), lines="distinct(model)"),
            grouped(("panel", "model"), points="count()"),
            grouped(("panel", "model", "part"), alone="count()"),
            *made,
            grouped((), **figures),
        ],
    )


def _zero_based_lines(column: str, title: str, tip: str) -> Spec:
    y = field(
        f"{column}:Q",
        title=title,
        axis={"format": ",~s", "tickCount": 5},
        scale={"domainMin": 0, "nice": False},
    )
    end = f"datum.most ? {HEIGHT} * (1 - datum.{column} / datum.most) : {HEIGHT}"
    return _lines(y, [tip], end, {"most": f"max({column})"})


def _end_names(end: str) -> Spec:
    """Return the names of lines at their ends, where a panel has several; none stands on another."""
    by_place = {"sort": [{"field": "place"}], "ignorePeers": True}
    return mark(
        "text",
        {"align": "left", "baseline": "middle", "dx": GAP, "clip": False},
        grouped(("panel", "model"), own="max(at)"),
        {"filter": "datum.at == datum.own && datum.lines > 1"},
        *calculated(place=end),
        running(("panel",), by_place, nth="row_number()"),
        *_pushed("datum.place", "max", [None, 0]),
        *_pushed(f"min(datum.place, {HEIGHT})", "min", [0, None]),
        x={"value": "width"},
        y=field("place:Q", scale=None, axis=None),
        color=COLOUR,
        text=field("model:N"),
    )


def _pushed(height: str, op: str, frame: list[int | None]) -> list[Spec]:
    """Return transforms that move names apart: each below those above it, or up again above those below it.

    A running maximum of `height - n × LINE` is what the names above push name n down to; a running minimum
    from below pushes names up again.
    """
    in_order = {"sort": [{"field": "nth"}], "frame": frame, "ignorePeers": True}
    return [
        *calculated(pushed=f"{height} - {LINE} * datum.nth"),
        running(("panel",), in_order, free=f"{op}(pushed)"),
        *calculated(place=f"datum.free + {LINE} * datum.nth"),
    ]


_P50: Final = field(
    "p50_s:Q",
    title="latency, seconds (log scale)",
    axis={"format": ",~g", "tickCount": 5},
    scale={"type": "log", "nice": False, "padding": MARGIN},
)
_ALONG: Final = "log(datum.most / datum.p50_s) / log(datum.most / datum.least)"

# Medians; up to the 95th percentile is shaded where a panel has one line.
_LATENCY: Final = _lines(
    _P50,
    ["p50_s:Q|,.3~r", "p95_s:Q|,.3~r"],
    f"{MARGIN} + {HEIGHT - 2 * MARGIN} * (datum.most > datum.least ? {_ALONG} : 0.5)",
    {"least": "min(p50_s)", "most": "max(upper)"},
    mark(
        "area",
        {"opacity": 0.18},
        {"filter": "datum.lines == 1"},
        x=_TIME,
        y=_P50,
        y2=field("upper"),
        **_PARTS,
    ),
    made=calculated(upper="datum.lines > 1 ? datum.p50_s : datum.p95_s"),
)

_FAILURES: Final = panels(
    mark(
        "rect",
        {},
        {
            "stack": "calls_per_minute",
            "as": ["from", "to"],
            "groupby": ["panel", "at"],
            "sort": [{"field": "status"}],
        },
        *calculated(until="datum.at + 1000 * datum.seconds"),
        x=_TIME,
        x2=field("until"),
        y=field("from:Q", title="without an answer, per minute", axis={"format": ",~r", "tickCount": 5}),
        y2=field("to"),
        color=field("status:N", sort="ascending", legend={"labelExpr": UNDERSCORED}),
        tooltip=tooltips("model:N", "status:N", _MOMENT, "calls:Q|,"),
    ),
    height=HEIGHT,
)

_QUOTA: Final = panels(
    reference_line(y={"datum": 1}),
    mark(
        "line",
        {"strokeWidth": 2, "point": {"size": 16}},
        x=_TIME,
        y=field(
            "used:Q",
            title="share of the limit used",
            axis={"format": PERCENT, "tickCount": 5},
            scale={"domainMin": 0, "nice": True},
        ),
        color=field("limit:N", sort=None, legend={"labelExpr": UNDERSCORED}),
        detail=[field("limit:N"), field("part:N")],
        tooltip=tooltips(
            *("panel:N||lane", "limit:N", "at:T|%d %b %H:%M", "used:Q|.1%"),
            *("per_minute:Q|,.0f|limit, a minute", "refused:Q|,|calls refused"),
        ),
    ),
    height=HEIGHT,
)


_NO_CALLS: Final = "Your selection has no calls with a known latency. Runs record it; imported files do not."
_NO_COURSE: Final = f"{_NO_CALLS} A chart over time takes three points."
_STRETCH: Final = {
    "at": "milliseconds since 1970, UTC",
    "seconds": "how long a point is, seconds",
    "part": "counts up where nothing was asked for a while: lines end there",
}
_LINE: Final = {**WHO, "panel": "empty, or the model where they are many", **_STRETCH}

CALL_CHARTS: Final[Mapping[str, Chart]] = {
    "times": Chart(
        title="How long calls took",
        purpose="The median (dot), p95 and p99 (ticks) of each model's answered calls.",
        nothing=_NO_CALLS,
        columns={
            "panel": "TTFT, latency or queued (before it was sent)",
            **WHO,
            **{
                f"p{share}": f"seconds that {share} % of the calls did not exceed"
                for share in (50, 90, 95, 99)
            },
            "calls": "answered calls whose time is known",
            "answered": "answered calls",
        },
        spec=_TIMES,
        paired=True,
    ),
    "latency": Chart(
        title="Latency over time",
        purpose="Whether answers slowed down. Line: the median. One model alone is shaded up to its p95.",
        nothing=_NO_COURSE,
        columns={
            **_LINE,
            "p50_s": "seconds, of the calls that began then",
            "p95_s": "seconds",
            "calls": "answered calls",
        },
        spec=_LATENCY,
    ),
    "throughput": Chart(
        title="Throughput over time",
        purpose="How fast answers came, by the time at which their calls began.",
        nothing=_NO_COURSE,
        columns={**_LINE, "calls_per_minute": "answered calls a minute", "calls": "answered calls"},
        spec=_zero_based_lines("calls_per_minute", "answered calls per minute", "calls_per_minute:Q|,.1f"),
    ),
    "tokens": Chart(
        title="Output tokens over time",
        purpose="How many output tokens came, by the time at which their calls began.",
        nothing=_NO_COURSE,
        columns={**_LINE, "tokens_per_minute": "output tokens a minute", "calls": "answered calls"},
        spec=_zero_based_lines("tokens_per_minute", "output tokens per minute", "tokens_per_minute:Q|,.0f"),
    ),
    "failures": Chart(
        title="Failed calls over time",
        purpose="When calls ended without an answer, and how. Calls that were tried again are among them.",
        nothing="Your selection has too few failed calls for a chart.",
        columns={
            **_LINE,
            "status": "how they ended",
            "calls": "count",
            "calls_per_minute": "calls a minute",
        },
        spec=_FAILURES,
    ),
    "quota": Chart(
        title="Use of rate limits over time",
        purpose="How much of each rate limit was used. The dashed line is the whole limit.",
        nothing="No rate limits are known: the sweep sets none, and the provider reported none.",
        columns={
            "panel": "lane",
            "part": _STRETCH["part"],
            "limit": "requests, tokens, input_tokens or output_tokens a minute",
            "at": _STRETCH["at"],
            "seconds": _STRETCH["seconds"],
            "used": "share of the limit, 1 is all",
            "per_minute": "the limit, a minute",
            "refused": "calls refused",
        },
        spec=_QUOTA,
    ),
}
