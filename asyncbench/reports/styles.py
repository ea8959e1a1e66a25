"""report(): the report of a results folder in any style."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.notes import Nothing, NothingToShowError, of_chosen
from asyncbench.errors import ConfigError
from asyncbench.reports.anatomy import anatomy_on
from asyncbench.reports.cost.report import cost_report_on
from asyncbench.reports.effects import effects_of
from asyncbench.reports.endpoints.report import providers_of
from asyncbench.reports.heatmap import accuracy_maps_on
from asyncbench.reports.load.report import load_report_of, only_loaded
from asyncbench.reports.overview import report_on
from asyncbench.reports.quota import quota_report_on
from asyncbench.reports.standings.report import standings_on
from asyncbench.reports.status.run_overview import run_overview_on
from asyncbench.tables.report import Report

# Of those that published benchmarks give their names: loaded when asked for.
PUBLISHED = ("llm-arithmetic", "integer-addition", "nupa")
DRAWN = ("llm-arithmetic", "nupa")  # of these, whose results have pictures
OWN: Mapping[str, Callable[[Chosen], Report]] = {
    "morning": run_overview_on,
    "standings": standings_on,
    "heatmap": accuracy_maps_on,
    "anatomy": anatomy_on,
    "cost": cost_report_on,
    "quota": quota_report_on,
    "load": partial(counted, count=load_report_of),
    "providers": partial(counted, count=providers_of),
}
_LOADED = ("load", "providers", "cost")  # styles in which answers to a load count
_FITTING: Mapping[str | None, set[str]] = {  # the options of a style; those not listed have none
    None: {"by", "prices"},
    "standings": {"by"},
    "llm-arithmetic": {"min_depth", "grader", "published"},
    "nupa": {"published"},
}


def report(
    folder: Folders,
    style: str | None = None,
    *,
    by: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    prices: str | None = None,
    min_depth: int | None = None,
    grader: str | None = None,
    published: bool = False,
) -> Report:
    """Make a report of a results folder or several, in one of several styles. Nothing is changed.

        print(ab.report("results/night").as_text())
        ab.report("results/night", "standings")  # in a notebook: shows its tables
        ab.report(["results/monday", "results/tuesday"], "standings", where="length > 5")

    Args:
        folder: the results folder, or a list of several. They are compared on the same problems.
        style: `morning`, `standings`, `heatmap`, `anatomy`, `cost`, `quota`, `load`, `providers`,
            `llm-arithmetic`, `integer-addition` or `nupa`. [accuracy, outcomes, tokens, cost and
            latency; of a load alone, `load`]
        by: `condition`, `folder`, or a parameter that the sweep varied, such as `effort`: compare its values
            on the same problems. Without a style, or with `standings`. [none]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]
        prices: `now`, without a style: also what the same calls would cost today. [none]
        min_depth: `llm-arithmetic` only: leave out trials of a lesser depth. [5]
        grader: `llm-arithmetic` only: `layered`, `legacy` or `strict`. [the headline grader]
        published: `llm-arithmetic` and `nupa` only: set the figures that the benchmark's own document prints
            beside those of the folder. [False]

    Returns:
        A `Report`, with `as_text()`, `as_markdown()`, `as_latex()` and `as_json()`. If the folder has nothing
        that the style can show, the report says so.

    Raises:
        ConfigError: The folder is not a results folder, the style is unknown, an option belongs to
            another style, or a filter is wrong or leaves no trial.
        StoreError: A file of the folder is missing or damaged.
        ProblemSetError: A copy of a problem set is damaged.
    """
    choices: dict[str, Any] = {"by": by, "prices": prices, "min_depth": min_depth, "grader": grader}
    options = {name: value for name, value in choices.items() if value is not None}
    if published:
        options["published"] = True
    _check(style, options)
    of = chosen(folder, suite=suite, task=task, models=models, where=where)
    if style not in _LOADED and only_loaded(of):
        if style is not None or options:
            return _left_out(of, style)
        style = "load"
    of = replace(of, loaded=True) if style in _LOADED else of
    try:
        return of_chosen(_made(of, style, options), of)
    except NothingToShowError as nothing:
        return nothing.page


def _left_out(of: Chosen, style: str | None) -> Report:
    what = f"`--style {style}` leaves out" if style else "this report leaves out"
    return Nothing(
        folder=str(of),
        nothing=f"{of} holds only answers to a load, which {what}. `--style load` shows them.",
    )


def _check(style: str | None, options: Mapping[str, Any]) -> None:  # Any: of the style
    styles = (*OWN, *PUBLISHED)
    if style is not None and style not in styles:
        raise ConfigError(f"--style {style}: no such style. Choose one of: {', '.join(styles)}")
    if odd := sorted(options.keys() - _FITTING.get(style, set())):
        where = f"--style {style}" if style else "a report without --style"
        raise ConfigError(f"--{odd[0].replace('_', '-')} cannot be used with {where}. Leave one of them out.")
    if {"by", "prices"} <= options.keys():
        raise ConfigError("--by compares answers, which have no other prices. Leave --prices out.")
    if (prices := options.get("prices", "now")) != "now":
        raise ConfigError(
            f"--prices {prices}: the only choice is `now`. Leave it out for the prices of the run."
        )


def _made(folder: Chosen, style: str | None, options: Mapping[str, Any]) -> Report:  # Any: of the style
    if "by" in options:
        return counted(folder, partial(effects_of, by=options["by"]))
    match style:
        case None:
            return report_on(folder, prices_at=datetime.now(UTC) if options else None)
        case "llm-arithmetic":
            from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on

            return llm_arithmetic_report_on(folder, **options)
        case "integer-addition":
            from asyncbench.published.integer_addition.report import integer_addition_report_on

            return integer_addition_report_on(folder)
        case "nupa":
            from asyncbench.published.nupa.report import nupa_report_on

            return nupa_report_on(folder, **options)
    return OWN[style](folder)
