"""Everything that a page holds, as plain values: what its script reads, block by block."""

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

import orjson
import pyarrow as pa

from asyncbench.charts import (
    CHARTS,
    OUTCOME_COLOURS,
    THEMES,
    latency_rows,
    pair_rows,
    quota_rows,
    throughput_rows,
)
from asyncbench.page.cells import merged, with_ranges
from asyncbench.page.loads import loads_of
from asyncbench.page.sample import Sample, sample_of
from asyncbench.providers import is_simulated
from asyncbench.reports import (
    ALONE,
    REPEATED,
    SKIPPED,
    QuotaReport,
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
    OTHER_LATENCY,
    SUMS,
    Entrant,
    Minute,
    batch_notes,
    graded_by,
    headline_graders,
    in_order,
    lost_notes,
    minutes_of,
    names_of,
    shortened,
    tasks_shown,
    told_apart,
)
from asyncbench.results.anatomy import KINDS, ErrorFindings, errors_in, kinds_of
from asyncbench.results.curves import Hardest
from asyncbench.shown import (
    ACCURACY,
    ANSWERED,
    FORMAT,
    HEADINGS,
    LOST,
    MAJORITY_AT_K,
    MEDIAN_LATENCY,
    PASS_AT_K,
    PASS_HAT_K,
    PER_CORRECT,
    RIGHT_50,
    RIGHT_90,
    safe,
)
from asyncbench.store import ENTRANT
from asyncbench.views import Chosen, Folders, FolderViews, chosen, counted

Values = dict[str, Any]  # Any: whatever JSON can hold

LEFT_OUT: Final = "Throughput and the use of limits leave batches out, too."
MOST_EXAMPLES: Final = 3  # of a kind of error and model
_TEXTS: Final = ("suite", "task", "called", "variant", "representation", "range")  # of a cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The blocks of a page, and what people are told of them."""

    title: str
    blocks: Mapping[str, object]  # by the id of their element
    sample: Sample
    load_calls: int  # that were due to a load


def contents_of(folder: Folders) -> Contents:
    """Return what a page of a results folder holds.

    Raises:
        ConfigError: it is not a results folder.
        StoreError: it cannot be read.
        ProblemSetError: a copy of a problem set is damaged.
    """
    of = chosen(folder)
    made = standings_on(of), loads_of(of), quota_report_on(of)  # each by itself: what it held is free again
    return counted(of, lambda views: _contents(views, *made))


def _contents(views: FolderViews, standings: Standings, loads: Values, quota: QuotaReport) -> Contents:
    folder = views.chosen
    entrants = views.rows("SELECT run, model, condition, any_value(provider) FROM trials GROUP BY ALL")
    providers = {
        (run, model, condition): provider for run, model, condition, provider in map(dict.values, entrants)
    }
    graders = headline_graders(views)
    asked = in_order(providers, views.manifest)
    places = {entrant: place for place, entrant in enumerate(asked)}
    names = names_of(asked)
    shown = told_apart(names.values())
    smaller = merged(with_ranges(views.table("FROM cells")))
    sample = sample_of(views)
    several = [ranking for ranking in standings.rankings if ranking.pairs]
    simulated = standings.simulated_note or loads["simulated_load"]  # a load alone has no standings
    told = {
        "graded": graded_by(graders) if graders else "",
        "merged": smaller.rules,
        "rankings": _rankings(standings, shown),
        "pairs": pair_rows(several[0], shown) if several else [],
    }
    return Contents(
        title=safe(", ".join(folder.labels)),
        sample=sample,
        load_calls=loads["load_calls"],
        blocks={
            "head": _head(folder, standings, _asked(names, shown, providers), sample, simulated) | told,
            "cells": _columnar(smaller.cells, places),
            "specs": {"specs": _specs(_known_metrics(smaller.cells)), "themes": THEMES},
            "trials": [_with_place(trial, places) for trial in sample.trials],
            "over_time": _over_time(quota, minutes_of(views, names), shown),
            "loads": loads,
            "errors": _errors(errors_in(views).values(), places),
        },
    )


# ── what is there ────────────────────────────────────────────────────────────────────────────


def _asked(
    names: Mapping[Entrant, str], shown: Mapping[str, str], providers: Mapping[Entrant, str]
) -> list[Values]:
    return [
        {
            **dict(zip(ENTRANT, map(safe, entrant), strict=True)),
            "name": shown[name],
            "simulated": is_simulated(providers[entrant]),
        }
        for entrant, name in names.items()
    ]


def _head(
    folder: Chosen, standings: Standings, asked: list[Values], sample: Sample, simulated_note: str
) -> Values:
    rules = " ".join(standings.rules)
    return {
        "title": safe(", ".join(folder.labels)),
        "made_at": datetime.now(UTC).timestamp(),
        "version": version("asyncbench"),
        "simulated": bool(simulated_note),
        "simulated_words": simulated_note,
        "trials_in_all": sample.of,
        "sample_rule": sample.rule,
        "asked": asked,
        "outcomes": list(OUTCOME_COLOURS),
        "summed": [*COUNTS, *SUMS],
        "headings": {
            "accuracy": ACCURACY,
            "answered": ANSWERED,
            "lost": LOST,
            "right_90": RIGHT_90,
            "right_50": RIGHT_50,
            "per_correct": PER_CORRECT,
            "format": FORMAT,
            "median_latency": MEDIAN_LATENCY,
            "pass_at_k": PASS_AT_K,
            "majority_at_k": MAJORITY_AT_K,
            "pass_hat_k": PASS_HAT_K,
        },
        "repeated": REPEATED,
        "meanings": dict(HEADINGS),
        "metrics": {name: asdict(metric) | {"format": metric.format} for name, metric in METRICS.items()},
        "charts": {name: asdict(chart) for name, chart in CHARTS.items()},
        "chosen": list(map(safe, folder.notes())),
        "lost": lost_notes(outcomes_of(standings.rankings)),
        "batches": batch_notes(standings.batches, f"{OTHER_LATENCY} {LEFT_OUT}"),
        "places": f"{standings.skipped:,} {SKIPPED} {rules}" if standings.skipped else rules,
    }


def _rankings(standings: Standings, shown: Mapping[str, str]) -> list[Values]:
    """Return the rankings as tables of lines; those that share too few problems with others come last."""
    ranked = [
        (ranking.suite, over(ranking), False, ranking.lines)
        for ranking in standings.rankings
        if not ranking.alone
    ]
    why = ALONE if standings.asked > 1 else "one model"
    others = [
        (suite, f"{suite or 'All suites'}: {why}", True, lines)
        for suite, lines in unranked(standings.rankings).items()
    ]
    return [
        {"suite": suite, "over": safe(title), "alone": alone, "lines": [_line(line, shown) for line in lines]}
        for suite, title, alone, lines in [*ranked, *others]
    ]


def _line(line: Standing, shown: Mapping[str, str]) -> Values:
    digits = {
        "at_90": line.at_90 and _in_two(line.at_90),
        "at_50": line.at_50 and _in_two(line.at_50),
    }
    who = {name: safe(getattr(line, name)) for name in ENTRANT}
    return standing_mapping(line) | digits | who | {"name": shown.get(line.name) or shortened(line.name)}


def _in_two(found: Hardest) -> tuple[str, str]:
    """Return a length, and its limits with the task that it is of: two lines of a narrow column."""
    whole = str(found.length)
    figure, bracket, limits = whole.partition(" (")
    return figure, safe(f"{bracket.strip()}{limits}{str(found).removeprefix(whole)}".strip())


def _over_time(quota: QuotaReport, minutes: Sequence[Minute], shown: Mapping[str, str]) -> Values:
    if not any(minute.p50_s is not None for minute in minutes):
        minutes = ()  # a recording: it tells when trials were finished, and nothing of calls
    return {
        "latency": latency_rows(minutes, shown),
        "throughput": throughput_rows(minutes, shown),
        "quota": quota_rows(quota.minutes),
    }


def _known_metrics(cells: pa.Table) -> tuple[str, ...]:
    """Return the metrics of which anything is known; accuracy, which a page starts with, in any case."""
    known = {name for name in COUNTS if any(cells[name].to_pylist())}
    return tuple(name for name, metric in METRICS.items() if name == "accuracy" or known & set(metric.under))


def _specs(metrics: Sequence[str]) -> Values:
    """Return all charts, those that show a metric for each of these."""
    drawn: Values = orjson.loads(ready_made("specs.json"))
    return {
        name: {metric: drawn[name][metric] for metric in metrics} if chart.metric else drawn[name]
        for name, chart in CHARTS.items()
    }


@cache
def ready_made(name: str) -> bytes:
    """Return what `data/page.py` made: drawing the charts and bundling their libraries takes seconds."""
    return gzip.decompress(files("asyncbench.page").joinpath(f"{name}.gz").read_bytes())


# ── wrong answers ────────────────────────────────────────────────────────────────────────────


def _errors(findings: Iterable[ErrorFindings], places: Mapping[Entrant, int]) -> Values:
    """Return kinds and places of errors by group, and examples of each kind.

    Args:
        findings: of all groups.
        places: of those who were asked, in the page's list of them.
    """
    found = [group for group in findings if group.wrong or group.unread]
    examined, wrong = (
        sum(group.examined for group in found),
        sum(group.wrong + group.unread for group in found),
    )
    first = "" if examined == wrong else " (a fixed random sample per model and task)"
    return {
        "examined": f"{examined:,} of {wrong:,} wrong answers (or replies without one) were examined{first}.",
        "kind_words": dict(KINDS),
        "error_groups": [
            _about(group, places)
            | {
                "examined": group.examined,
                "kinds": dict(group.kinds),
                "from_first": [(at.successes, at.trials) for at in group.wrong_at(group.from_left)],
                "from_last": [(at.successes, at.trials) for at in group.wrong_at(group.from_right)],
            }
            for group in found
            if group.examined
        ],
        "examples": list(_examples(found, places)),
    }


def _about(found: ErrorFindings, places: Mapping[Entrant, int]) -> Values:
    run, model, condition, *what = found.group
    names = ("suite", "task", "variant", "representation")
    return {"asked": places[run, model, condition], **dict(zip(names, map(safe, what), strict=True))}


def _examples(found: Iterable[ErrorFindings], places: Mapping[Entrant, int]) -> Iterator[Values]:
    taken = Counter[tuple[int, str]]()
    for group in found:
        of = _about(group, places)
        for kind in kinds_of([group]):
            left = MOST_EXAMPLES - taken[of["asked"], kind.kind]
            chosen = kind.examples[: max(0, left)]
            taken[of["asked"], kind.kind] += len(chosen)
            yield from ({**of, "kind": kind.kind, **example._asdict()} for example in chosen)


# ── as a page has it ─────────────────────────────────────────────────────────────────────────


def _columnar(cells: pa.Table, places: Mapping[Entrant, int]) -> Values:
    """Return cells column by column: texts by the list of their values, who was asked as a number."""
    columns = cells.to_pydict()
    tasks = list(zip(columns["suite"], columns["task"], strict=True))
    called = tasks_shown(tasks)
    columns["called"] = [called[task] for task in tasks]  # as charts show it
    entrants = zip(*(columns[name] for name in ENTRANT), strict=True)
    numbers = {"asked": [places[run, model, condition] for run, model, condition in entrants]}
    numbers |= {name: columns[name] for name in ("length", *COUNTS, *SUMS)}
    return {
        "rows": len(cells),
        "numbers": numbers,
        "texts": {name: _coded(columns[name]) for name in _TEXTS},
    }


def _coded(values: Iterable[str | None]) -> Values:
    codes: dict[str | None, int] = {}
    coded = [codes.setdefault(value, len(codes)) for value in values]
    return {"values": [safe(value or "") for value in codes], "codes": coded}


def _with_place(trial: Mapping[str, Any], places: Mapping[Entrant, int]) -> Values:
    who = (trial["run"], trial["model"], trial["condition"])
    kept = {name: value for name, value in trial.items() if name not in ENTRANT}
    names = {name: safe(kept[name]) for name in ("suite", "task", "variant", "representation")}
    return {**kept, **names, "asked": places[who]}
