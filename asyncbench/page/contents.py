"""Everything that a page holds, as plain values: what its script reads, block by block."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from asyncbench.charts import (
    CHARTS,
    OUTCOME_COLOURS,
    THEMES,
    latency_rows,
    pair_rows,
    quota_rows,
    spec_of,
    throughput_rows,
)
from asyncbench.page.errors import errors_block
from asyncbench.page.merging import merged
from asyncbench.page.ranges import with_ranges
from asyncbench.page.sample import Sample, sample_of
from asyncbench.providers import is_simulated
from asyncbench.reports import (
    ALONE,
    PLACES,
    SKIPPED,
    Standing,
    Standings,
    outcomes_of,
    over,
    quota_report_on,
    standing_mapping,
    standings_on,
    unranked,
)
from asyncbench.results import (
    COUNTS,
    METRICS,
    SUMS,
    Asked,
    Minute,
    graded_by,
    graders_of,
    in_order,
    lost_notes,
    minutes_of,
    names_of,
    shortened,
    tasks_shown,
    told_apart,
)
from asyncbench.results.anatomy import ErrorFindings, read_errors
from asyncbench.results.curves import Hardest
from asyncbench.shown import SIMULATED, safe
from asyncbench.store import ENTRANT, read_manifest
from asyncbench.views import FolderViews, counted

Values = dict[str, Any]  # Any: whatever JSON can hold

_TEXTS: Final = ("suite", "task", "called", "variant", "representation", "range")  # of a cell
_CALLED: Final = pa.field("called", pa.string())  # the task as charts show it


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The blocks of a page, and what people are told of them."""

    title: str
    blocks: Mapping[str, object]  # by the id of their element
    sample: Sample


def contents_of(folder: Path) -> Contents:
    """Return what a page of a results folder holds.

    Raises:
        ConfigError: it is not a results folder; altair is not installed.
        StoreError: it cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    findings = read_errors(folder).findings.values()
    return counted(folder, lambda views: _contents(folder, views, findings))


def _contents(folder: Path, views: FolderViews, findings: Collection[ErrorFindings]) -> Contents:
    entrants = views.rows("SELECT run, model, condition, any_value(provider) FROM trials GROUP BY ALL")
    providers = {
        (run, model, condition): provider for run, model, condition, provider in map(dict.values, entrants)
    }
    graders = views.table("SELECT DISTINCT suite, grader, grader_version FROM grades WHERE headline")
    asked = in_order(providers, read_manifest(folder))
    places = {entrant: place for place, entrant in enumerate(asked)}
    names = names_of(asked)
    shown = told_apart(names.values())
    smaller = merged(with_ranges(views.table("FROM cells")))
    sample = sample_of(folder, views)
    standings = standings_on(folder)
    told = {
        "graded": graded_by(graders_of(graders)) if len(graders) else "",
        "merged": smaller.rules,
        "rankings": _rankings(standings, shown),
        "pairs": _pairs(standings, shown),
    }
    return Contents(
        title=safe(folder.resolve().name),
        sample=sample,
        blocks={
            "head": _head(folder, standings, _asked(names, shown, providers), sample) | told,
            "cells": _columnar(_called(smaller.cells), places),
            "specs": {"specs": _specs(_known_metrics(smaller.cells)), "themes": THEMES},
            "trials": [_with_place(trial, places) for trial in sample.trials],
            "over_time": _over_time(folder, minutes_of(views, names), shown),
            "errors": errors_block(findings, places),
        },
    )


# ── what is there ────────────────────────────────────────────────────────────────────────────


def _asked(
    names: Mapping[Asked, str], shown: Mapping[str, str], providers: Mapping[Asked, str]
) -> list[Values]:
    return [
        {
            **dict(zip(ENTRANT, map(safe, one), strict=True)),
            "name": shown[name],
            "simulated": is_simulated(providers[one]),
        }
        for one, name in names.items()
    ]


def _head(folder: Path, standings: Standings, asked: list[Values], sample: Sample) -> Values:
    return {
        "title": safe(folder.resolve().name),
        "made_at": datetime.now(UTC).timestamp(),
        "version": version("asyncbench"),
        "simulated": any(one["simulated"] for one in asked),
        "simulated_words": SIMULATED,
        "trials_in_all": sample.of,
        "sample_rule": sample.rule,
        "asked": asked,
        "outcomes": list(OUTCOME_COLOURS),
        "summed": [*COUNTS, *SUMS],
        "metrics": {name: asdict(metric) | {"format": metric.format} for name, metric in METRICS.items()},
        "charts": {name: asdict(chart) for name, chart in CHARTS.items()},
        "lost": lost_notes(outcomes_of(standings.rankings)),
        "places": f"{standings.skipped:,} {SKIPPED} {PLACES}" if standings.skipped else PLACES,
    }


def _rankings(standings: Standings, shown: Mapping[str, str]) -> list[Values]:
    """Return the rankings as tables of lines; those that share too few problems with others come last."""
    ranked = [(one.suite, over(one), False, one.lines) for one in standings.rankings if not one.alone]
    why = ALONE if standings.asked > 1 else "one model"
    others = [
        (suite, f"{suite or 'All suites'}: {why}", True, lines)
        for suite, lines in unranked(standings.rankings).items()
    ]
    return [
        {"suite": suite, "over": safe(title), "alone": alone, "lines": [_line(line, shown) for line in lines]}
        for suite, title, alone, lines in [*ranked, *others]
    ]


def _pairs(standings: Standings, shown: Mapping[str, str]) -> list[Values]:
    """Return how far ahead the leader is of each other, of the first ranking that has several."""
    first = next((one for one in standings.rankings if not one.alone), None)
    return [] if first is None else pair_rows(first, shown)


def _line(line: Standing, shown: Mapping[str, str]) -> Values:
    digits = {
        "at_90": line.at_90 and _in_two(line.at_90),
        "at_50": line.at_50 and _in_two(line.at_50),
    }
    who = {name: safe(getattr(line, name)) for name in ENTRANT}
    return standing_mapping(line) | digits | who | {"name": shown.get(line.name) or shortened(line.name)}


def _in_two(found: Hardest) -> tuple[str, str]:
    """Return a length, and its limits with the task that it is of: two lines of a narrow column."""
    whole = found.length.as_text()
    figure, bracket, limits = whole.partition(" (")
    return figure, safe(f"{bracket.strip()}{limits}{found.as_text().removeprefix(whole)}".strip())


def _over_time(folder: Path, minutes: Sequence[Minute], shown: Mapping[str, str]) -> Values:
    if not any(one.p50_s is not None for one in minutes):
        minutes = ()  # a recording: it tells when trials were finished, and nothing of calls
    return {
        "latency": latency_rows(minutes, shown),
        "throughput": throughput_rows(minutes, shown),
        "quota": quota_rows(quota_report_on(folder).minutes),
    }


def _known_metrics(cells: pa.Table) -> tuple[str, ...]:
    """Return the metrics of which anything is known; accuracy, which a page starts with, in any case."""
    counted = {name for name in cells.column_names if name in COUNTS and any(cells[name].to_pylist())}
    return tuple(name for name, one in METRICS.items() if name == "accuracy" or counted & set(one.under))


@cache
def _specs(metrics: tuple[str, ...]) -> Values:
    """Return all charts, those that show a metric for each of these: altair takes its time for them."""
    return {
        name: {metric: spec_of(name, metric) for metric in metrics} if chart.metric else spec_of(name)
        for name, chart in CHARTS.items()
    }


# ── as a page has it ─────────────────────────────────────────────────────────────────────────


def _called(cells: pa.Table) -> pa.Table:
    """Return cells with what charts call their task."""
    rows = cells.select(["suite", "task"]).to_pylist()
    tasks = [(str(row["suite"]), str(row["task"])) for row in rows]
    shown = tasks_shown(tasks)
    return cells.append_column(_CALLED, pa.array([shown[one] for one in tasks], pa.string()))


def _columnar(cells: pa.Table, places: Mapping[Asked, int]) -> Values:
    """Return cells column by column: texts by the list of their values, who was asked as a number."""
    who = zip(*(cells[name].to_pylist() for name in ENTRANT), strict=True)
    numbers: Values = {"asked": [places[one] for one in who], "length": cells["length"].to_pylist()}
    numbers |= {name: cells[name].to_pylist() for name in (*COUNTS, *SUMS)}
    texts = {name: _coded(cells[name].to_pylist()) for name in _TEXTS}
    return {"rows": len(cells), "numbers": numbers, "texts": texts}


def _coded(values: Iterable[str | None]) -> Values:
    codes: dict[str | None, int] = {}
    coded = [codes.setdefault(value, len(codes)) for value in values]
    return {"values": [safe(value or "") for value in codes], "codes": coded}


def _with_place(trial: Mapping[str, Any], places: Mapping[Asked, int]) -> Values:
    who = (trial["run"], trial["model"], trial["condition"])
    kept = {name: value for name, value in trial.items() if name not in ENTRANT}
    names = {name: safe(kept[name]) for name in ("suite", "task", "variant", "representation")}
    return {**kept, **names, "asked": places[who]}
