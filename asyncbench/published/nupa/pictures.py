"""The pictures of the paper "Number Cookbook", and those that its tables ask for.

Each is one `PublishedPicture` over rows: of ranges of lengths, or of counts of their own. The name of a
picture is its id in `docs/published.md`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import sqrt
from operator import eq
from statistics import fmean, stdev
from typing import Any, Final

from asyncbench.analysis.cells import rows_by
from asyncbench.analysis.choosing import Folders
from asyncbench.analysis.entrants import Entrant
from asyncbench.published.nupa.counts import RANGES, TaskLine, task_name
from asyncbench.published.nupa.length_pictures import length_pictures
from asyncbench.published.nupa.paper_maps import frame_pictures, table_pictures
from asyncbench.published.nupa.picture_rows import (
    EXAMPLE_DIGITS,
    INTERVALS,
    PARTS,
    POOLED,
    SCALES,
    SHADED,
    SINGLE,
    Row,
    Shown,
    ends_of,
    float_or_none,
    paper_order,
    rows_with_ends,
    shown_of,
)
from asyncbench.published.nupa.training import NO_TRAINING_LENGTHS, TrainingLengths
from asyncbench.published.reports import (
    MARK,
    MOST_SERIES,
    NO_ROOM,
    UNANSWERED,
    PublishedPicture,
    in_one_order,
    picture,
    published_table,
)
from asyncbench.stats.proportions import wilson
from asyncbench.suites.numbers import FORMS, parts
from asyncbench.suites.nupa.tasks import REPRESENTATIONS, task_of
from asyncbench.suites.suite import Kind
from asyncbench.tables.numbers import number_of

STANDARD_ERROR: Final = "Means over the repeats, with their standard error."
NO_REPEATS: Final = f"{INTERVALS} Those of the paper are standard errors; ask with `repeats` for yours."
BY_FIGURE: Final[Mapping[str, str]] = {
    "figure-5": "exact_match",
    "figure-6": "digit_match",
    "figure-7": "dlength",
}
CHOSEN: Final[Collection[Kind]] = {  # those whose values the paper's text reads off
    *(("add", "", kind) for kind in REPRESENTATIONS),
    *(("max", "", "integer"), ("max", "", "float"), ("max", "hard", "integer"), ("length", "", "integer")),
    *(("get_digit", "", "integer"), ("digit_max", "", "integer"), ("truediv", "", "integer")),
    *(("mod", "", "integer"), ("sig", "", "integer")),
}


def pictures_of(
    lines: Sequence[TaskLine],
    folder: Folders,
    *,
    printed: bool,
    training: TrainingLengths = NO_TRAINING_LENGTHS,
) -> Iterator[PublishedPicture]:
    """Yield all pictures; those without data have no rows.

    Args:
        lines: of a report.
        folder: of which they are. Raises as `counts_of` does.
        printed: whether the paper's own figures stand beside the folder's.
        training: the lengths up to which models were trained.
    """
    shown = shown_of(lines, folder, printed=printed, training=training)
    pictures = chain(
        _overviews(shown),
        _range_pictures(shown),
        table_pictures(shown),
        frame_pictures(shown),
        _examples(shown),
        _speeds(shown),
        [_single(shown)],
        length_pictures(shown),
    )
    yield from in_one_order(pictures, [*shown.names.values()], shown.order)


def paper_tables(lines: Sequence[TaskLine], *, printed: bool) -> Iterator[PublishedPicture]:
    """Yield Tables 1, 7 to 10 and 18, and exact match by task and range; all are maps of models.

    Args:
        lines: of a report.
        printed: whether the paper's own figures stand beside the folder's.
    """
    shown = shown_of(lines, printed=printed)
    tables = chain([next(frame_pictures(shown))], table_pictures(shown), _overviews(shown))
    first, *others = in_one_order(tables, [*shown.names.values()])
    yield replace(first, notes=[*first.notes, shown.order])  # once for all: they stand in one document
    yield from others


# ── by range of lengths ──────────────────────────────────────────────────────────────────────


def _overviews(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield a map of tasks and models for each range."""
    for of_range in RANGES:
        rows = [row for row in shown.ranges if row["range"] == of_range]
        order = paper_order(row["task"] for row in rows)
        title = f"Exact match in range {of_range} by task and model"
        places = {"x": "model", "y": "task", "y_order": order, "notes": (POOLED,), "crowded": True}
        yield picture(f"range-{of_range}", title, "map", rows, "exact_match", "gap", **places)


def _range_pictures(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figures 2, 5, 6, 7 and 8, and the same by model as maps."""
    rows = shown.ranges
    chosen = [row for row in rows if row["kind"] in CHOSEN]
    order = paper_order(row["task"] for row in rows)
    yield _bars("figure-2", "Parts of performance: exact match by range", chosen, "exact_match")
    for name, figure in BY_FIGURE.items():
        names = {"exact_match": "Exact match", "digit_match": "Digit match"}
        title = f"{names.get(figure, 'log2(dlength + 1)')} by task and range"
        for group, tasks in PARTS.items():
            yield _bars(f"{name}-{group}", title, [row for row in rows if row["kind"][0] in tasks], figure)
        title = f"{names.get(figure, figure)} by task and range"  # cells hold the figure itself
        shading = SHADED if SCALES[figure] == "digits" else ""
        places = {"x": "range", "y": "task", "panel": "model", "y_order": order, "notes": (POOLED,)}
        yield picture(
            f"{name}-map",
            title,
            "map",
            rows_with_ends(rows, figure),
            figure,
            *("low", "high", "gap"),
            scale=SCALES[figure],
            shading=shading,
            **places,
        )
    yield from _shot_pictures(shown, chosen)


def _shot_pictures(shown: Shown, rows: Sequence[Row]) -> Iterator[PublishedPicture]:
    """Yield Figure 8: models that were asked with worked examples beside themselves without.

    Where they are many, a model stands on one page, however it was asked.
    """
    shots = {(row["run"], row["model"], row["condition"]): row["shots"] for row in shown.shots}
    by_model = rows_by(sorted(shots, key=lambda who: shots[who]), lambda who: who[1])
    pages = list[list[Entrant]]([[]])
    for model in dict.fromkeys(line.model for line in shown.lines):
        entrants = by_model.get(model, [])
        if any(shots[who] for who in entrants):  # imported files are a run each
            if pages[-1] and len(pages[-1]) + len(entrants) > MOST_SERIES:
                pages.append([])
            pages[-1] += entrants
    for number, page in enumerate(pages, 1):
        name = f"figure-8-{number}" if len(pages) > 1 else "figure-8"
        drawn = [row for who in page for row in rows if row["asked"] == who]
        bars = _bars(name, "With and without examples: exact match by range", drawn, "exact_match")
        yield replace(bars, series_order=[*dict.fromkeys(row["model"] for row in drawn)])


def _bars(name: str, title: str, rows: Iterable[Row], figure: str) -> PublishedPicture:
    """Return a panel a task, a group of bars a range, a colour a model."""
    guide = {"guide": "guess"} if figure == "exact_match" else {}
    places = {"x": "range", "series": "model", "panel": "task", **guide}
    rows = rows_with_ends(rows, figure)
    order = {name: rank for rank, name in enumerate(paper_order(row["task"] for row in rows))}
    rows.sort(key=lambda row: order[row["task"]])
    return picture(
        name,
        title,
        "bars",
        rows,
        figure,
        *("answers", "low", "high", "gap"),
        scale=SCALES[figure],
        notes=(POOLED, INTERVALS),
        **places,
    )


# ── with a count of their own ────────────────────────────────────────────────────────────────


def _examples(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Figure 1: a wrong answer of each under the right one, place by place."""
    rows = []
    for wrong in shown.wrong:
        task = task_of(wrong["task"], wrong["variant"], wrong["representation"])
        truth, answer = laid(wrong["expected"], wrong["answer"], task.answer_type)
        digits = number_of(wrong["length"], "digit")
        panel = f"{task_name(task)}, {digits}: {shown.named(wrong)}"
        for index, pair in enumerate(zip(truth, answer, strict=True), 1):
            for name, character in zip(("right answer", "answer"), pair, strict=True):
                rows.append(
                    {
                        "example": panel,
                        "problem": wrong["problem_id"],
                        "of": name,
                        "place": index,
                        "digit": character,
                        "right": int(eq(*pair)),
                    }
                )
    notes = (
        f"Of each model the wrong answer nearest {EXAMPLE_DIGITS} digits; of several, that to the problem "
        "which most models failed.",
        "The parts of a number are laid side by side as digit match counts them. Light: wrong or missing.",
    )
    places = {"panel": "example", "x": "place", "y": "of", "text": "digit", "whole": False, "scale": "right"}
    yield picture(
        "figure-1", "A wrong answer, digit by digit", "map", rows, "right", "problem", notes=notes, **places
    )


def laid(truth: str, answer: str, answer_type: str) -> tuple[str, str]:
    """Return two numbers of a form with spaces where one has no digit that the other has."""
    form = FORMS[answer_type]
    true, read = (parts(number, answer_type) for number in (truth, answer))
    widths = [max(map(len, pair)) for pair in zip(true, read, strict=True)]
    forms = [
        f"{{:{'>' if end == 'right' else '<'}{width}}}"
        for end, width in zip(form.aligned, widths, strict=True)
    ]
    written = form.written.replace("%s", "{}").format(*forms)
    return written.format(*true), written.format(*read)


def _speeds(shown: Shown) -> Iterator[PublishedPicture]:
    """Yield Table 2: seconds a sample, and digits a second."""
    rows = [
        {
            "model": shown.named(row),
            "calls_in_flight": row["in_flight"],
            "answers": row["answers"],
            "seconds_per_sample": row["wall_s"] / row["answers"],
            "mean_latency_s": row["latency_s"],
            "digits_per_second": row["digits"] / row["wall_s"],
            "tokens_per_second": None if row["tokens"] is None else row["tokens"] / row["wall_s"],
        }
        for row in shown.speeds
    ]
    note = (
        "Time in which a call was in flight. Conditions of one model share it by how long their calls took."
    )
    titles = {
        "seconds_per_sample": "Seconds per sample",
        "digits_per_second": "Digits of the right answers per second",
    }
    printed = [
        {
            "model": f"{row['method']}, batch {row['batch_size']} {MARK}",
            "calls_in_flight": row["batch_size"],
            "seconds_per_sample": float(row["seconds_per_sample"]),
        }
        for row in published_table("nupa_table_2").to_pylist()
    ]
    for value, title in titles.items():
        beside = printed if shown.printed and rows and value == "seconds_per_sample" else []
        also = ("calls_in_flight", "answers", "mean_latency_s", "tokens_per_second")
        yield picture(
            f"table-2-{value.split('_')[0]}",
            title,
            "stack",
            [*rows, *beside],
            value,
            *also,
            y="model",
            scale="number",
            notes=shown.notes(note),
        )


def _single(shown: Shown) -> PublishedPicture:
    """Return Table 3: exact match at single lengths, with the standard error over repeats.

    Where nobody was asked a problem twice, bars have the 95 % interval of their answers.
    """
    repeats = rows_by(
        shown.single,
        lambda row: (shown.named(row), row["task"], row["representation"], row["length"]),
    )
    rows = []
    several = any(len(repeat_rows) > 1 for repeat_rows in repeats.values())
    for (model, *kind, length), repeat_rows in repeats.items():
        means = [row["exact_match"] for row in repeat_rows]
        error = stdev(means) / sqrt(len(means)) if len(means) > 1 else None
        counts = {"repeats": len(means), "truncated": sum(row["truncated"] for row in repeat_rows)}
        interval = {} if several else ends_of(wilson(means[0], repeat_rows[0]["answers"]))
        rows.append(_length_row(model, kind, length, fmean(means), error) | counts | interval)
    rows += _unanswered_lengths(shown, {(row["model"], row["kind"], row["length"]) for row in rows})
    for row in published_table("nupa_table_3").to_pylist() if shown.printed and rows else ():
        error = float_or_none(row["standard_error"])
        bar = (f"{row['model']} {MARK}", (row["task"], row["representation"]), row["digits"])
        gap = {"gap": NO_ROOM} if row["exact_match"] is None else {}
        rows.append(_length_row(*bar, float_or_none(row["exact_match"]), error) | gap)
    order = list(SINGLE)
    rows.sort(key=lambda row: (order.index(row["kind"]), row["length"]))
    places = {"x": "length", "series": "model", "panel": "task"}
    note = STANDARD_ERROR if several else NO_REPEATS
    also = ("standard_error", "low", "high", "repeats", "truncated", "gap")
    title = "Exact match at single lengths"
    return picture("table-3", title, "bars", rows, "exact_match", *also, notes=shown.notes(note), **places)


def _unanswered_lengths(shown: Shown, answered: Collection[tuple[Any, ...]]) -> Iterator[Row]:
    """Yield a row without a figure for each length of Table 3 that was asked and has no graded answer."""
    for line in shown.lines:
        task, model = line.task, shown.names[line.asked]
        kind = task.task, task.representation
        if task.variant == "easy" or (task.task == "max" and task.variant):
            continue
        for length in sorted(line.lengths.intersection(SINGLE.get(kind, ()))):
            if (model, kind, length) not in answered:
                yield _length_row(model, kind, length, None, None) | {"gap": UNANSWERED}


def _length_row(model: str, kind: Sequence[str], length: int, mean: float | None, error: float | None) -> Row:
    ends = dict[str, float | None](low=None, high=None)
    if mean is not None and error is not None:
        ends = {"low": mean - error, "high": mean + error}
    figures = {"exact_match": mean, "standard_error": error, **ends}
    return {"task": ", ".join(kind), "kind": tuple(kind), "length": length, "model": model, **figures}
