"""`report --style llm-arithmetic`: the tables that llm_arithmetic publishes, from any results folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isinf
from typing import Final

import pyarrow as pa

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.analysis.counting import manifest_of
from asyncbench.errors import ConfigError
from asyncbench.published.llm_arithmetic.counts import (
    DEEPEST,
    HEADLINE,
    Cells,
    PublishedRow,
    TrialSums,
    depths_of,
    error_sizes,
    figures_of,
    merged,
    paired,
    ranked,
    tasks_of,
    total,
)
from asyncbench.published.llm_arithmetic.pictures import SHARES, pictures_of
from asyncbench.published.llm_arithmetic.tables import (
    ALL_DEPTHS,
    HEATMAP_DEPTHS,
    card,
    equal_to_printed,
    footnotes,
    formats,
    grid,
    models_by_task,
    overview,
    runs,
    verification,
)
from asyncbench.published.reports import PublishedPicture, PublishedReport, about, published_table
from asyncbench.stats.proportions import Proportion
from asyncbench.tables.report import Sheet

MIN_DEPTH = 5  # of the published tables
SWAPPED = "Dev % and NaN % are swapped in the published grids. Here they are the right way round."


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmArithmeticReport(PublishedReport):
    """A folder's llm_arithmetic figures, and how they are shown."""

    source: Chosen
    min_depth: int
    tally: Mapping[str, int]  # trials of all depths by `OUTCOMES`
    rows: tuple[PublishedRow, ...]  # as the overview lists them

    @property
    def depths(self) -> range:
        """The depths of the overview and the cards."""
        return range(self.min_depth, DEEPEST + 1)

    @property
    def accuracies(self) -> tuple[float | None, float | None]:
        """Correct of all trials, and of the trials with an answer, at all depths."""
        correct, answered = self.tally["correct"], self.tally["correct"] + self.tally["wrong"]
        over_all = Proportion(successes=correct, trials=self.tally["trials"])
        return over_all.share, Proportion(successes=correct, trials=answered).share

    def data(self) -> dict[str, object]:
        """Return all figures, exact: shares are fractions, infinity is the string "inf"."""
        (graded,), (cells, others) = self.graders, merged(self.rows)
        data = {
            "folder": self.folder,
            "simulated": self.simulated,
            "grader": graded.grader,
            "grader_versions": list(graded.versions),
            "min_depth": self.min_depth,
            "tally": dict(self.tally),
            "accuracy": self.accuracies[0],
            "accuracy_of_answered": self.accuracies[1],
            "lines_left_out": dict(self.left_out),
            "rows": [self._row_record(row) for row in self.rows],
            "overall": {
                "left_out": [[row.run, row.label] for row in others],
                "cells": _cell_records(cells),
            },
        }
        return self.add_published(data)

    def pictures(self) -> Iterator[PublishedPicture]:
        """Yield the pictures that the published table asks for."""
        (graded,) = self.graders
        printed = [row for table in self.published for row in table.to_pylist()]
        errors = error_sizes(self.source, graded.grader, self.depths, SHARES)
        compared = partial(paired, self.source, graded.grader, self.depths)
        return pictures_of(self.rows, self.depths, printed, errors, compared)

    def _row_record(self, row: PublishedRow) -> dict[str, object]:
        return {
            "run": row.run,
            "model": row.model,
            "condition": row.condition,
            "began": row.began.isoformat(),
            "complete": row.complete,
            "planned": None if row.planned is None else dict(row.planned),
            "verification": {"counts": row.counts, "status": "Valid" if row.valid else "Invalid"},
            "total": exact(total(row.cells, depths=self.depths)),
            "tasks": {
                task: exact(total(row.cells, depths=self.depths, task=task)) for task in tasks_of(row.cells)
            },
            "all_depths": exact(total(row.cells)),
            "heatmap": exact(total(row.cells, depths=HEATMAP_DEPTHS)),
            "cells": _cell_records(row.cells),
        }

    def content(self) -> Iterator[str | Sheet]:
        yield from self.notes_above()
        yield from self.published_parts()
        yield verification(self.rows)
        yield formats(self.rows, self.depths)
        if heatmap := models_by_task(self.rows):
            yield heatmap
        cells, others = merged(self.rows)
        yield grid(f"Overall, {len(self.rows) - len(others)} of {len(self.rows)} rows", cells)
        yield SWAPPED
        if others:
            names = ", ".join(f"{row.label} ({len(row.cells)} cells)" for row in others)
            yield f"The overall grid leaves out rows that lack cells: {names}."
        several = len({row.run for row in self.rows}) > 1  # of which two may hold the same model
        for row in self.rows:
            title = f"{row.label} (run {row.run})" if several else row.label
            yield card(title, row, self.depths)
            yield grid(title, row.cells)

    def published_parts(self) -> Iterator[str | Sheet]:
        """Yield the published table, what is to be known of its rows, and how many equal printed ones."""
        printed = [row for table in self.published for row in table.to_pylist()]
        sheets = [overview(self.rows, self.depths, printed)]
        yield sheets[0]
        yield from footnotes(self.rows, self.depths)
        if self.min_depth <= ALL_DEPTHS:
            sheets.append(runs(self.rows, printed))
            yield sheets[1]
        if equal := equal_to_printed(sheets[-1]):
            yield f"{equal} of the {len(printed)} published rows equal a row of yours in every column."

    def meaning(self) -> Iterator[str]:
        (graded,) = self.graders
        if self.published and graded.grader != "legacy":
            yield "The published figures are by the grader `legacy`. For yours, add --grader legacy."

    def outcomes(self) -> Iterator[str]:
        tally, (graded,) = self.tally, self.graders
        all_trials, answered = ("-" if share is None else f"{share:.2%}" for share in self.accuracies)
        yield (
            f"{tally['trials']:,} trials at all depths: {tally['failed']:,} failed, {tally['empty']:,} empty "
            f"replies, {tally['truncated']:,} truncated. Accuracy: {all_trials} of all trials, {answered} of "
            f"the {tally['correct'] + tally['wrong']:,} answered ones."
        )
        if ungraded := tally["ungraded"]:
            yield f"{ungraded:,} trials have no grade by {graded.grader} and count as NaN."
        if unknown := tally["of_unknown_depth"]:
            yield f"{unknown:,} trials have no known depth. Only figures over all depths count them."


def llm_arithmetic_report_on(
    folder: Folders, *, min_depth: int = MIN_DEPTH, grader: str = HEADLINE, published: bool = False
) -> LlmArithmeticReport:
    """Return the llm_arithmetic figures of a results folder.

    Args:
        folder: imported or swept.
        min_depth: overview and cards leave out trials of lesser depth.
        grader: whose classes count: layered, legacy or strict.
        published: set the rows of the benchmark's own table for this depth beside those of the folder.

    Raises:
        ConfigError: no such grader, no such folder, no trials of llm_arithmetic in it, or no published table
            for this depth.
        StoreError: the folder cannot be read.
    """
    printed = tuple[pa.Table, ...]()
    if published:
        name = PRINTED_BY_DEPTH.get(max(min_depth, ALL_DEPTHS))
        if name is None:
            raise ConfigError(
                f"--min-depth {min_depth}: --published has no table for it. Use 5, or 2 for all depths."
            )
        printed = (published_table(name),)

    manifest = manifest_of(folder)
    figures = figures_of(folder, grader, manifest)
    rows = figures.pop("rows")
    return LlmArithmeticReport(
        **about(folder, manifest, runs={row.run for row in rows}),
        **figures,
        published=printed,
        source=chosen(folder),
        min_depth=min_depth,
        rows=ranked(rows, range(min_depth, DEEPEST + 1)),
    )


PRINTED_BY_DEPTH: Final = {
    ALL_DEPTHS: "llm_arithmetic_2025-05-12_cards",  # all depths there are
    MIN_DEPTH: "llm_arithmetic_2025-06-30_overview",
}


def exact(figures: TrialSums) -> dict[str, object]:
    """Return figures as JSON has them: counts, and what follows from them; unknown is None."""
    return {
        "trials": figures.trials,
        "correct": figures.correct,
        "deviate": figures.deviate,
        "nan": figures.nan,
        "accuracy": figures.accuracy,
        "deviate_rate": figures.share("deviate"),
        "nan_rate": figures.share("nan"),
        "avg_abs_error": figures.abs_error_of_deviate,
        "avg_error_dev": _finite(figures.error_of_deviate),
        "avg_error_dev_and_correct": _finite(figures.error_of_read),
        "input_tokens": figures.input_tokens,
        "output_tokens": figures.output_tokens,
        "replies": figures.replies,
        "replies_in_format": figures.bare,
        "truncated": figures.truncated,
        "trials_without_tokens": figures.uncounted,
        "cost_usd": float(figures.cost_usd) if figures.priced else None,
        "priced_trials": figures.priced,
        "recorded_free_trials": figures.recorded_free,
    }


def _finite(value: float) -> float | str:
    return "inf" if isinf(value) else value  # JSON has no infinity


def _cell_records(cells: Cells) -> list[dict[str, object]]:
    return [
        {"task": task, "depth": depth, **exact(cells[task, depth])}
        for task in tasks_of(cells)
        for depth in depths_of(cells)
        if (task, depth) in cells
    ]
