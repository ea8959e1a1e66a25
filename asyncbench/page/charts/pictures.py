"""The charts of a results folder for a paper: those of the page, from the same rows."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any, Final

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.cells import METRICS, rows_by
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Asked, Entrant, asked_in
from asyncbench.analysis.lost_trials import lost_notes
from asyncbench.page.charts.breaks import (
    break_rows,
    half_rows,
    heat_rows,
    kind_curves,
    length_rows,
    placed_cells,
)
from asyncbench.page.charts.catalogue import CHARTS
from asyncbench.page.charts.chart import MOST_LIT, Row, style_rows
from asyncbench.page.charts.errors import error_kind_rows, examined_note, outcome_rows, place_rows
from asyncbench.page.charts.frontier import frontier_cost, frontier_note, frontier_reasoning
from asyncbench.page.charts.loads import loads_in, uncounted_note
from asyncbench.page.charts.times import failure_rows, limit_rows, minute_rows, times_rows
from asyncbench.reports.standings.rankings import Ranking
from asyncbench.reports.standings.report import Standings, outcomes_of, ranking_title, standings_of

# ── The rows of a ranking: rank and accuracy of each entrant, and the lead of the best over each other


def dot_rows(ranking: Ranking, places: Mapping[Entrant, int]) -> list[Row]:
    """Return a row for each line of a ranking, the best first; `places` are those of `Asked`."""
    return [
        {
            "asked": places[line.run, line.model, line.condition],
            "place": line.place,
            "value": line.share,
            "low": line.interval[0],
            "high": line.interval[1],
            "trials": line.accuracy.trials,
        }
        for line in ranking.lines
    ]


def pair_rows(ranking: Ranking, places: Mapping[Entrant, int]) -> list[Row]:
    """Return how far ahead the leader of a ranking is of each other, on the problems in common."""
    place_of = {line.name: places[line.run, line.model, line.condition] for line in ranking.lines}
    return [
        {
            "a": place_of[pair.a],
            "b": place_of[pair.b],
            "difference": pair.counts.difference,
            "low": pair.interval[0],
            "high": pair.interval[1],
            "p": pair.p_holm,
            "tied": pair.b in ranking.ties[0],
            "problems": pair.counts.problems,
        }
        for pair in ranking.pairs
        if pair.a == ranking.lines[0].name
    ]


# ── Pictures


LONGEST_NAME: Final = 60  # characters of a file's name
FRONT: Final = "The line joins the models that no other model beats"
FREE: Final = "; free models stand left of the axis"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A chart with what it shows."""

    name: str  # of its files
    chart: str
    rows: Sequence[Mapping[str, Any]]  # Any: as the chart's columns are
    metric: str = "accuracy"
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """The views, roster and standings of one moment, from which all pictures are made."""

    views: FolderViews
    roster: Asked
    standings: Standings
    lost: Sequence[str]  # the warning, where an entrant lost more than 1 % of its trials

    def picture(
        self,
        chart: str,
        rows: Sequence[Mapping[str, Any]],  # Any: of a block
        *notes: str,
        name: str = "",
        metric: str = "accuracy",
    ) -> Picture:
        """Return a picture of rows with names and colours; of many lines the best ones keep theirs."""
        lit: set[int] | None = None
        if len(self.roster.entrants) > MOST_LIT:
            places = self.roster.entrant_places
            lines = [line for ranking in self.standings.rankings for line in ranking.lines]
            best = dict.fromkeys(places[line.run, line.model, line.condition] for line in lines)
            lit = {*[*best][:MOST_LIT]}
        shown = style_rows(rows, self.roster, lit=lit)
        said = [*notes, *filter(None, [self.roster.names_note.replace("`", "")])]
        return Picture(name=name or slug_of(chart), chart=chart, rows=shown, metric=metric, notes=said)


def pictures_of(views: FolderViews) -> Iterator[Picture]:
    """Yield every chart of a folder's trials that has something to show."""
    standings = standings_of(views)
    material = _Material(
        views=views,
        roster=asked_in(views),
        standings=standings,
        lost=lost_notes(outcomes_of(standings.rankings)),
    )
    for make in (_rankings, _maps, _curves, _error_charts, _call_charts):
        for picture in make(material):
            if any(row.get("value", 0) is not None for row in picture.rows):
                yield picture


def _rankings(material: _Material) -> Iterator[Picture]:
    """Yield each ranking as dots, of several suites together first, and the lead of its best."""
    taken, places = Counter[str](), material.roster.entrant_places
    for ranking in material.standings.rankings:
        if ranking.alone:
            continue
        slug = slug_of(ranking.suite or "all")
        taken[slug] += 1
        name = f"{slug}-{taken[slug]}" if taken[slug] > 1 else slug
        note = f"{ranking_title(ranking)}. 95 % CI; models with the same rank are statistically tied"
        rows = dot_rows(ranking, places)
        yield material.picture("dots", rows, note, *material.lost, name=f"dots-{name}")
        leader = material.roster.entrants[rows[0]["asked"]].short
        note = (
            f"{ranking.suite or 'All suites'}. {leader} is ahead; each line compares it with another model. "
            f"{ranking.problems:,} problems that all models were asked; 95 % CI; tied: no significant "
            "difference"
        )
        yield material.picture("pairs", pair_rows(ranking, places), note, name=f"pairs-{name}")


def _maps(material: _Material) -> Iterator[Picture]:
    """Yield a map of entrants and kinds for each metric, and one of accuracy by length."""
    heat = heat_rows(material.views)
    for name, metric in METRICS.items():
        rows: list[Row] = [
            {**row, **dict(zip(("value", "low", "high", "trials"), row["values"][name], strict=True))}
            for row in heat
            if name in row["values"]
        ]
        # First who has the highest values in the mean.
        by_entrant = rows_by(rows, itemgetter("asked"))
        means = {entrant: fmean(row["value"] for row in cells) for entrant, cells in by_entrant.items()}
        rows.sort(key=lambda row: (-means[row["asked"]], row["asked"], row["kind"]))
        slug = "task-map" if name == "accuracy" else f"task-map-{slug_of(name)}"
        yield material.picture("task_map", rows, metric.caption, *material.lost, name=slug, metric=name)
    yield material.picture("length_map", length_rows(material.views))


def _curves(material: _Material) -> Iterator[Picture]:
    """Yield accuracy against length, then against cost and against reasoning tokens."""
    curves, many = kind_curves(material.views), len(material.roster.entrants)
    notes = ["Trials with a reply, 8 or more a point. Lines: logistic fits; dashed: on another line, or 50 %"]
    if many > MOST_LIT:
        notes.append(f"The {MOST_LIT} best of {many:,} models have colours; others are grey")
    yield material.picture("curves", break_rows(curves), *notes)
    note = "Trials with a reply; 95 % CI. A triangle points beyond the lengths that were asked"
    yield material.picture("halves", half_rows(curves), note)

    cells, roster = placed_cells(material.views), material.roster
    for chart, rows, against in (
        ("frontier_cost", frontier_cost(cells, roster), "cost"),
        ("frontier_reasoning", frontier_reasoning(cells, roster), "reasoning_tokens"),
    ):
        compared = frontier_note(cells, roster, against)
        free = any(row["x"] is None for row in rows)
        notes = [f"With 95 % CI. {FRONT}{FREE * free}", *([compared] if compared else []), *material.lost]
        yield material.picture(chart, rows, *notes)


def _error_charts(material: _Material) -> Iterator[Picture]:
    groups = [group for group in examined_in(material.views).values() if group.wrong or group.unread]
    by_entrant, _ = error_kind_rows(groups, material.roster)
    yield material.picture("outcomes", outcome_rows(material.views), *material.lost)
    for chart, rows in (("kinds", by_entrant), ("digit_errors", place_rows(groups, material.roster))):
        yield material.picture(chart, rows, CHARTS[chart].purpose, examined_note(groups))


def _call_charts(material: _Material) -> Iterator[Picture]:
    views, roster = material.views, material.roster
    minutes = minute_rows(views, roster)
    charts = {
        "times": times_rows(views, roster),
        "latency": [row for row in minutes if row["p50_s"] is not None],
        "throughput": minutes,
        "tokens": [row for row in minutes if row["tokens_per_minute"] is not None],
        "failures": failure_rows(views, roster),
        "quota": limit_rows(views, roster),
    }
    for chart, rows in charts.items():
        yield material.picture(chart, rows, CHARTS[chart].purpose)


def load_pictures_of(views: FolderViews) -> Iterator[Picture]:
    """Yield the charts of a folder's loads that have anything to show; views that hold answers to loads."""
    steps, charts = loads_in(views)
    notes = [note] if (note := uncounted_note(steps)) else []
    for name, rows in charts.items():
        if rows:
            yield Picture(name=slug_of(name), chart=name, rows=rows, notes=notes)


def slug_of(text: str) -> str:
    """Return a text as part of a file's name; suites of a custom set may be called anything."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_NAME] or "other"
