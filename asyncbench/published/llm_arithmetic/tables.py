"""The published tables of llm_arithmetic and its number formats, as sheets of cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from asyncbench.published.llm_arithmetic.counts import (
    Cells,
    PublishedRow,
    TrialSums,
    depths_of,
    ranked,
    tasks_of,
    total,
)
from asyncbench.published.reports import MARK
from asyncbench.tables.numbers import (
    MISSING,
    Goodness,
    accuracy_goodness,
    count,
    deviate_rate_goodness,
    nan_rate_goodness,
    rounded,
    shaded,
)
from asyncbench.tables.report import Sheet
from asyncbench.tables.screen import Cell

LONGEST = 10  # digits before the dot; the published tables write longer numbers as 1.2345e+06
LONGEST_ABSOLUTE = 30  # characters of an absolute error
ALL_DEPTHS = 2  # the least depth of a run as published; from here on tables are those of all depths
HEATMAP_DEPTHS = range(6, 11)  # of the published heatmap of models


# ── number formats ───────────────────────────────────────────────────────────────────────────


def number(value: float, decimals: int) -> str:
    """Return a number as published: `1.2345e+06` where it has too many digits before the dot."""
    text = f"{value:.{decimals}f}"
    return f"{value:.4e}" if len(text.partition(".")[0].lstrip("-")) > LONGEST else text


def tokens(value: int) -> str:
    """Return a number of tokens as published: with commas, or as `number` has it."""
    return f"{value:,}" if len(str(value)) <= LONGEST else number(value, 0)


def percent(share: float | None, decimals: int) -> str:
    """Return a share in percent, `-` where there is none; an infinite one is `inf%`."""
    return MISSING if share is None else f"{number(100 * share, decimals)}%"


def usd(cost: float | Fraction, decimals: int = 4) -> str:
    """Return dollars as published: without commas."""
    return f"${number(float(cost), decimals)}"


def absolute(error: str) -> str:
    """Return an absolute error as published; one of more digits than are published is 1.2345e+45."""
    return error if len(error) <= LONGEST_ABSOLUTE else f"{Decimal(error):.4e}"


# ── the published tables ─────────────────────────────────────────────────────────────────────

OVERVIEW_HEAD = (
    *("Model", "Trials", "Correct %", "NaN %", "Dev %", "Comp. Tok.", "Cost"),
    *("Avg Error (Dev)", "Avg Error (Dev&Corr)"),
)
CARD_HEAD = (
    *("Task", "Trials", "Correct %", "NaN %", "Dev %", "Prompt Tok.", "Comp. Tok.", "Cost"),
    *("Avg Error", "Avg Error (Dev)", "Avg Error (Dev&Corr)"),
)
RUNS_HEAD = ("Model", "Date", "Trials", "Correct %", "NaN %", "Dev %", "Cost", "Avg Error")
DATE = "%Y-%m-%d_%H-%M"  # UTC


def overview(
    rows: Sequence[PublishedRow], depths: range, published: Iterable[Mapping[str, Any]] = ()
) -> Sheet:
    """Return the published table: a line per row, of the trials of these depths.

    Args:
        rows: of the folder, as `ranked` has them.
        depths: of the trials that count.
        published: rows of a document's own table, to stand among them by their accuracy.
    """
    lines = list[tuple[bool, float, tuple[str, ...]]]()
    for row in rows:
        sums = total(row.cells, depths=depths)
        used = (tokens(sums.output_tokens), usd(sums.cost_usd))
        accuracy = -1.0 if sums.accuracy is None else sums.accuracy
        lines.append((row.complete, accuracy, (row.label, *_shares(sums), *used, *_errors(sums))))
    for printed in published:
        shares = (f"{printed[f'{kind}_percent']}%" for kind in ("correct", "nan", "deviate"))
        used = (tokens(printed["completion_tokens"]), usd(printed["cost_usd"]))
        relative = (printed.get(f"avg_rel_error_{kind}_percent") for kind in ("deviate", "deviate_correct"))
        errors = (MISSING if error is None else f"{error}%" for error in relative)
        cells = (f"{printed['model']} {MARK}", count(printed["trials"]), *shares, *used, *errors)
        lines.append((True, float(printed["correct_percent"]) / 100, cells))
    title = f"Overview: depth {depths.start} and deeper; incomplete runs last, then by Correct %"
    best_first = sorted(lines, key=lambda line: (not line[0], -line[1]))
    return Sheet(title=title, head=OVERVIEW_HEAD, rows=[line for _, _, line in best_first])


def runs(rows: Iterable[PublishedRow], published: Iterable[Mapping[str, Any]] = ()) -> Sheet:
    """Return the published table of all depths: a line per row as it was run, with the absolute error.

    Args:
        rows: of the folder.
        published: rows of the document's own table, to stand among them by their date.
    """
    lines = list[tuple[str, ...]]()
    for row in rows:
        sums = total(row.cells)
        figures = (*_shares(sums, 2), usd(sums.cost_usd, 6), absolute(sums.abs_error_of_deviate))
        lines.append((row.label, f"{row.began:{DATE}}", *figures))
    for printed in published:
        shares = (f"{printed[f'{kind}_percent']}%" for kind in ("correct", "nan", "deviate"))
        figures = (count(printed["trials"]), *shares, usd(printed["cost_usd"], 6))
        error = str(printed["avg_abs_error_deviate"])
        lines.append((f"{printed['model']} {MARK}", printed["run_started"], *figures, error))
    title = "All depths, in the order of the runs. Avg Error is absolute, over Dev"
    return Sheet(title=title, head=RUNS_HEAD, rows=sorted(lines, key=itemgetter(1)), labels=2)


def equal_to_printed(sheet: Sheet) -> int:
    """Return how many rows of a document have an equal among those of the folder."""
    folder_rows = set(map(tuple, sheet.rows))
    return sum(
        (str(name).removesuffix(f" {MARK}"), *row) in folder_rows - {(name, *row)}
        for name, *row in sheet.rows
    )


def _shares(figures: TrialSums, decimals_of_nan: int = 4) -> tuple[str, ...]:
    return (
        count(figures.trials),
        percent(figures.accuracy, 2),
        percent(figures.share("nan"), decimals_of_nan),
        percent(figures.share("deviate"), 2),
    )


def _errors(figures: TrialSums) -> tuple[str, ...]:
    return percent(figures.error_of_deviate, 4), percent(figures.error_of_read, 4)


def footnotes(rows: Iterable[PublishedRow], depths: range) -> list[str]:
    """Return notes on rows that the overview leaves out: incomplete, unpriced or without token counts."""
    remarks: dict[str, list[str]] = {}
    for row in rows:
        for remark, note in _remarks(row, total(row.cells, depths=depths)):
            remarks.setdefault(remark, []).append(note)
    return [f"{remark}: {', '.join(notes)}." for remark, notes in remarks.items()]


def _remarks(row: PublishedRow, figures: TrialSums) -> Iterable[tuple[str, str]]:
    """Yield (remark, the row it is about)."""
    if not row.complete:
        yield "Incomplete (trials over all depths)", f"{row.label} {progress(row)}"
    if figures.trials and not figures.priced:
        yield "No price known, shown as $0", row.label
    elif figures.priced and figures.recorded_free == figures.priced:
        yield "Recorded at $0 (no price known)", row.label
    elif figures.recorded_free:
        share = f"{figures.recorded_free:,} of {figures.priced:,} trials"
        yield "Partly recorded at $0 (no price known then)", f"{row.label} {share}"
    if 0 < figures.priced < figures.trials:
        yield "Partly priced", f"{row.label} {figures.priced:,} of {figures.trials:,} trials priced"
    if figures.uncounted:
        share = f"{figures.uncounted:,} of {figures.trials:,} trials"
        yield "Token counts unknown, left out of the sums", f"{row.label} {share}"


def progress(row: PublishedRow) -> str:
    """Return `350 of 720`: trials over all depths of those planned, where a plan is known."""
    return count(row.trials) + ("" if row.planned is None else f" of {sum(row.planned.values()):,}")


def verification(rows: Sequence[PublishedRow]) -> Sheet:
    """Return the trials of each row by task, over all depths, and whether they are what was planned."""
    tasks = sorted({task for row in rows for task in row.counts})
    lines = [
        (
            row.run,
            row.label,
            *(count(row.counts.get(task, 0)) for task in tasks),
            progress(row),
            "Valid" if row.valid else "Invalid",
        )
        for row in rows
    ]
    return Sheet(
        title="Verification: trials per task, all depths",
        head=("Run", "Model", *tasks, "Trials", "Status"),
        rows=lines,
        labels=2,
    )


def card(title: str, row: PublishedRow, depths: range) -> Sheet:
    """Return a row's totals and the same of each task, of the trials of these depths.

    The cards of all depths are those of the earlier document, with its date and decimals.
    """
    earlier = depths.start <= ALL_DEPTHS
    about = f"@ {row.began:{DATE}}: all depths" if earlier else f"depth {depths.start} and deeper"
    lines = []
    for task in (None, *tasks_of(row.cells)):
        sums = total(row.cells, depths=depths, task=task)
        if sums.trials:
            used = (tokens(sums.input_tokens), tokens(sums.output_tokens), usd(sums.cost_usd, 6))
            errors = (absolute(sums.abs_error_of_deviate), *_errors(sums))
            lines.append((task or "all", *_shares(sums, 2 if earlier else 4), *used, *errors))
    return Sheet(title=f"{title}{' ' if earlier else ': '}{about}", head=CARD_HEAD, rows=lines)


# ── heatmaps ─────────────────────────────────────────────────────────────────────────────────


class Rate(NamedTuple):
    """A rate that heatmaps show."""

    name: str
    share: Callable[[TrialSums], float | None]
    goodness: Goodness


ACCURACY = Rate("Correct %", lambda figures: figures.accuracy, accuracy_goodness)
FORMAT = Rate("Format %", lambda figures: figures.share("bare", "replies"), accuracy_goodness)
RATES = (
    ACCURACY,
    Rate("Dev %", lambda figures: figures.share("deviate"), deviate_rate_goodness),
    Rate("NaN %", lambda figures: figures.share("nan"), nan_rate_goodness),
)


def formats(rows: Sequence[PublishedRow], depths: range) -> Sheet:
    """Return the share of replies that are the number alone, by model and task, of trials of these depths."""
    tasks = tasks_of(cell for row in rows for cell in row.cells)
    sums = [total(row.cells, depths=depths) for row in rows]
    shading = _shading(
        [
            [figures, *(total(row.cells, depths=depths, task=task) for task in tasks)]
            for row, figures in zip(rows, sums, strict=True)
        ],
        FORMAT,
    )
    return Sheet(
        title=f"Format %: replies that are the number alone, depth {depths.start} and deeper",
        head=("Model", "Replies", "Format %", *tasks),
        rows=[
            (row.label, count(figures.replies), *shares)
            for row, figures, shares in zip(rows, sums, shading, strict=True)
        ],
        gap=1,
    )


def models_by_task(rows: Sequence[PublishedRow]) -> Sheet | None:
    """Return the heatmap of models and tasks; None where no trial is that deep."""
    listed = ranked(rows, HEATMAP_DEPTHS)
    tasks = tasks_of(cell for row in rows for cell in row.cells)
    sums = [total(row.cells, depths=HEATMAP_DEPTHS) for row in listed]
    if not any(figures.trials for figures in sums):
        return None
    shaded_of = [
        [figures, *(total(row.cells, depths=HEATMAP_DEPTHS, task=task) for task in tasks)]
        for row, figures in zip(listed, sums, strict=True)
    ]
    lines = [
        (row.label, count(figures.trials), usd(figures.cost_usd), *shading)
        for row, figures, shading in zip(listed, sums, _shading(shaded_of, ACCURACY), strict=True)
    ]
    return Sheet(
        title=f"Correct % by model and task: depths {HEATMAP_DEPTHS[0]}-{HEATMAP_DEPTHS[-1]}",
        head=("Model", "Trials", "Cost", "Avg Acc", *tasks),
        rows=lines,
        gap=1,
    )


def grid(title: str, cells: Cells) -> Sheet:
    """Return tasks × depths for each rate side by side, or below each other where that is too wide."""
    tasks, depths = tasks_of(cells), depths_of(cells)
    figures = [[cells.get((task, depth), TrialSums()) for depth in depths] for task in tasks]
    columns = ["?" if depth is None else str(depth) for depth in depths]
    apart = [
        Sheet(
            title=f"{title}: {rate.name} by depth",
            head=(rate.name, *columns),
            rows=[(task, *shares) for task, shares in zip(tasks, _shading(figures, rate), strict=True)],
            gap=1,
        )
        for rate in RATES
    ]

    rows = []
    for first, *others in zip(*(sheet.rows for sheet in apart), strict=True):  # only the first keeps its name
        rows.append([*first, *chain.from_iterable(("", *row[1:]) for row in others)])
    return Sheet(
        title=f"{title}: {', '.join(rate.name for rate in RATES)} by depth",
        head=list(chain.from_iterable(sheet.head for sheet in apart)),
        rows=rows,
        gap=1,
        instead=apart,
    )


def _shading(figures: Sequence[Sequence[TrialSums]], rate: Rate) -> list[list[Cell]]:
    """Return a cell for each of some figures, all equally wide: their colours make a surface."""
    shares = [[rate.share(sums) for sums in line] for line in figures]
    measured = [share for line in shares for share in line if share is not None]
    decimals = 0 if all(abs(100 * share - round(100 * share)) < 1e-9 for share in measured) else 1
    width = max(2, *(len(rounded(100 * share, decimals)) for share in [*measured, 0.0]))  # as a depth of 10
    return [
        [
            MISSING
            if share is None
            else shaded(rounded(100 * share, decimals).rjust(width), rate.goodness(share))
            for share in line
        ]
        for line in shares
    ]
