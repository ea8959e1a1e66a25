"""report(): the report of a results folder in any style of `reports/styles.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.folder_report import Nothing, NothingToShowError, tell_choice
from asyncbench.config.entry import suggestion
from asyncbench.errors import ConfigError
from asyncbench.reports.styles import BY_MODEL, COMPARED, EFFECTS, MODEL, NAMES, STYLES, Style
from asyncbench.reports.sweeps import sweeps_in
from asyncbench.reports.thresholds import threshold_results
from asyncbench.store.catalog import read_steps
from asyncbench.tables.report import Report


def report(
    folder: Folders,
    style: str | None = None,
    *,
    by: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    min_depth: int | None = None,
    grader: str | None = None,
    published: bool = False,
    intervals: bool = False,
    training_length: int | str | Sequence[str] | None = None,
    metric: str | None = None,
    fail_under: str | Sequence[str] = (),
) -> Report:
    """Make a report of a results folder or several, in one of several styles. Nothing is changed.

        print(ab.report("results/night").as_text())
        ab.report("results/night", "standings")  # in a notebook: shows its tables
        ab.report(["results/monday", "results/tuesday"], "standings", where="length > 5")

    Args:
        folder: the results folder, or a list of several. They are compared on the same problems. Of a folder
            above several sweeps, the report lists them, as `list_sweeps` does.
        style: what to show, such as `standings` or `cost`; `asyncbench report --help` lists all. [accuracy,
            outcomes, tokens, cost and latency; of a load alone, `load`]
        by: `condition`, `folder`, or a parameter that the sweep varied, such as `effort`: compare its values
            on the same problems. `model`: each model over all its variants, and what each setting adds.
            An SQL expression over the columns of `trials`, such as `length % 3`: accuracy by its values.
            Without a style, or with `standings`. [none]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]
        min_depth: `llm-arithmetic` only: leave out trials of a lesser depth. [5]
        grader: `llm-arithmetic` only: `layered`, `legacy` or `strict`. [the headline grader]
        published: `llm-arithmetic` and `nupa` only: set the figures that the benchmark's own document prints
            beside those of the folder. [False]
        intervals: `nupa` only: show the 95 % interval of every figure in the tables. [False]
        training_length: `nupa` only: the digits up to which models were trained. A table has the figures
            there and a digit beyond, and pictures by length mark it. `8`, `"8,20"` for tasks of up to 20 and
            of up to 100 digits, or a list such as `["llama-ft=8", "qwen-ft=12"]`. [none]
        metric: `heatmap` only: `exact_match`, `digit_match`, `dlength`, `cost` or another one of the page's
            figures. [accuracy]
        fail_under: a threshold that figures must keep, or a list: `gpt-5-mini: accuracy >= 0.9`. [none]

    Returns:
        A `Report`, with `as_text()`, `as_markdown()`, `as_latex()` and `as_json()`. If the folder has nothing
        that the style can show, the report says so. Its `gates` have an answer for each figure of
        `fail_under`: `status`, `metric`, `value`.

    Raises:
        ConfigError: The folder is not a results folder, the style is unknown, an option belongs to
            another style, or a filter is wrong or leaves no trial.
        StoreError: A file of the folder is missing or damaged.
        ProblemSetError: A copy of a problem set is damaged.
    """
    choices: dict[str, Any] = {"by": by, "min_depth": min_depth, "grader": grader}
    choices["training_length"] = training_length or None
    choices["metric"] = metric and metric.replace("-", "_")
    options = {name: value for name, value in choices.items() if value is not None}
    options |= {name: True for name, given in (("published", published), ("intervals", intervals)) if given}
    made_by = _style(style, options)
    if made_by is BY_MODEL:
        options.pop("by")
    choice = chosen(folder, suite=suite, task=task, models=models, where=where)
    gates = threshold_results(choice, fail_under)
    made = _made(choice, style, made_by, options)
    return replace(made, gates=tuple(gates)) if gates else made


def _made(
    choice: Chosen, style: str | None, made_by: Style, options: dict[str, Any]
) -> Report:  # Any: of the style
    """Make a report, or the one that says why there is none."""
    listed = sweeps_in(choice.paths[0]) if choice.plain and style is None and not options else None
    if listed is not None:
        return listed
    if not made_by.loaded and _only_loaded(choice):
        if style is not None or options:
            omitter = f"`--style {style}` leaves out" if style else "this report leaves out"
            return Nothing(
                folder=str(choice),
                nothing=f"{choice} holds only answers to a load, which {omitter}. `--style load` shows them.",
            )
        made_by = STYLES["load"]
    choice = replace(choice, loaded=True) if made_by.loaded else choice
    try:
        return tell_choice(made_in(made_by, choice, **options), choice)
    except NothingToShowError as nothing:
        return nothing.page


def _only_loaded(folder: Chosen) -> bool:
    """Return whether folders hold only answers to a load, which most styles leave out."""
    if not any(read_steps(path, ["model"]).num_rows for path in folder.paths):
        return False
    query = "SELECT 1 FROM trials WHERE load IS NULL LIMIT 1"
    return not counted(replace(folder, loaded=True), lambda views: views.rows(query))


def _style(name: str | None, options: Mapping[str, Any]) -> Style:  # Any: of the style
    """Return the style of a name; raises ConfigError for an unknown name or an option that does not fit."""
    if name not in STYLES:
        raise ConfigError(f"--style {name}: no such style. {suggestion(str(name), NAMES)}")
    fitting = STYLES[name].options | (EFFECTS.options if name in COMPARED else set())
    if odd := sorted(options.keys() - fitting):
        where = f"--style {name}" if name else "a report without --style"
        raise ConfigError(f"--{odd[0].replace('_', '-')} cannot be used with {where}. Leave one of them out.")
    if "by" not in options:
        return STYLES[name]
    return BY_MODEL if options["by"] == MODEL else EFFECTS


def made_in(style: Style, folder: Chosen, **options: Any) -> Report:  # Any: of the style
    """Make a report in a style; raises `NothingToShowError` where the folder has nothing for that style."""
    make = getattr(import_module(f"asyncbench.{style.module}"), style.function)
    made: Report = make(folder, **options) if style.published else counted(folder, partial(make, **options))
    return made
