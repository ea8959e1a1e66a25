"""`report --style llm-arithmetic`: the tables that llm_arithmetic publishes, from any results folder."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from math import isinf
from pathlib import Path

from asyncbench.providers import is_simulated
from asyncbench.published.llm_arithmetic.counts import (
    HEADLINE,
    Cells,
    Depths,
    OutcomeTally,
    PublishedRow,
    TrialSums,
    depths_of,
    merged,
    ranked,
    read_graded,
    rows_of,
    tasks_of,
    total,
)
from asyncbench.published.llm_arithmetic.tables import (
    HEATMAP_DEPTHS,
    card,
    footnotes,
    grid,
    models_by_task,
    overview,
    verification,
)
from asyncbench.results import Graded, graded_by, left_out_at_import, left_out_of
from asyncbench.shown import SIMULATED, Sheet, latex_of, safe_note_markdown, safe_notes
from asyncbench.store import read_manifest

MIN_DEPTH = 5  # of the published tables
SWAPPED = "Dev % and NaN % are those of the classes; the published grids have the two swapped."


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmArithmeticReport:
    """A folder's llm_arithmetic figures, and how they are shown."""

    folder: str
    simulated: bool
    graded: Graded
    min_depth: int
    tally: OutcomeTally
    left_out: Mapping[str, int]  # lines at import, by run; runs without any are not named
    rows: tuple[PublishedRow, ...]  # as the overview lists them

    @property
    def depths(self) -> Depths:
        """The depths of the overview and the cards."""
        return Depths(first=self.min_depth)

    def as_text(self, *, width: int | None = None) -> str:
        """Return tables for a terminal; `width` in characters, None: as wide as the terminal."""
        shown = [
            "\n".join(safe_notes(part, width=width)) if isinstance(part, list) else part.as_text(width=width)
            for part in self._parts()
        ]
        return "\n\n".join(shown)

    def as_markdown(self) -> str:
        """Return the same in Markdown."""
        return "\n".join(
            "\n".join(f"{safe_note_markdown(line)}\n" for line in part)
            if isinstance(part, list)
            else part.as_markdown()
            for part in self._parts()
        )

    def as_latex(self) -> str:
        """Return the same in LaTeX."""
        parts = (part if isinstance(part, list) else [part] for part in self._parts())
        return latex_of(chain.from_iterable(parts))

    def as_json(self) -> str:
        """Return all figures, exact: shares are fractions, infinity is the string "inf"."""
        cells, others = merged(self.rows)
        return json.dumps(
            {
                "folder": self.folder,
                "simulated": self.simulated,
                "grader": self.graded.grader,
                "grader_versions": list(self.graded.versions),
                "min_depth": self.min_depth,
                "tally": asdict(self.tally),
                "accuracy": _of_all(self.tally),
                "accuracy_of_answered": _of_answered(self.tally),
                "lines_left_out": dict(self.left_out),
                "rows": [self._as_record(row) for row in self.rows],
                "overall": {
                    "left_out": [[row.run, row.label] for row in others],
                    "cells": _cell_records(cells),
                },
            },
            indent=2,
        )

    def _as_record(self, row: PublishedRow) -> dict[str, object]:
        return {
            "run": row.run,
            "model": row.model,
            "condition": row.condition,
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

    def _parts(self) -> Iterator[list[str] | Sheet]:
        """Yield lines and tables from top to bottom."""
        yield self._notes()
        yield overview(self.rows, self.depths)
        if under := footnotes(self.rows, self.depths):
            yield under
        yield verification(self.rows)
        if heatmap := models_by_task(self.rows):
            yield heatmap
        cells, others = merged(self.rows)
        yield grid(f"Overall, {len(self.rows) - len(others)} of {len(self.rows)} rows", cells)
        yield [SWAPPED, *_left_out_of_overall(others)]
        for row in self.rows:
            yield card(self._title(row), row, self.depths)
            yield grid(self._title(row), row.cells)

    def _title(self, row: PublishedRow) -> str:
        """Return the row's name, with its run where there are several: two may hold the same model."""
        return row.label if len({one.run for one in self.rows}) == 1 else f"{row.label} (run {row.run})"

    def _notes(self) -> list[str]:
        notes = [SIMULATED] if self.simulated else []
        notes += [graded_by([self.graded]), _outcomes(self.tally)]
        if count := self.tally.ungraded:
            notes.append(f"{count:,} trials have no grade by {self.graded.grader} and count as NaN.")
        if count := self.tally.of_unknown_depth:
            notes.append(f"Trials of unknown depth, which count over all depths alone: {count:,}.")
        return [*notes, *left_out_at_import(self.left_out)]


def llm_arithmetic_report_on(
    folder: Path | str, *, min_depth: int = MIN_DEPTH, grader: str = HEADLINE
) -> LlmArithmeticReport:
    """Return the llm_arithmetic figures of a results folder.

    Args:
        folder: imported or swept.
        min_depth: overview and cards leave out trials of lesser depth.
        grader: whose classes count: layered, legacy or strict.

    Raises:
        ConfigError: no such grader, no such folder, or no trials of llm_arithmetic in it.
        StoreError: the folder cannot be read.
    """
    graded = read_graded(folder, grader)
    manifest = read_manifest(Path(folder))
    rows = rows_of(graded.trials, manifest)
    return LlmArithmeticReport(
        folder=str(folder),
        simulated=any(map(is_simulated, graded.providers)),
        graded=graded.graded,
        min_depth=min_depth,
        tally=graded.tally(),
        left_out=left_out_of(manifest, runs={row.run for row in rows}),
        rows=ranked(rows, Depths(first=min_depth)),
    )


def exact(figures: TrialSums) -> dict[str, object]:
    """Return figures as JSON has them: counts, and what follows from them; unknown is None."""
    return {
        "trials": figures.trials,
        "correct": figures.correct,
        "deviate": figures.deviate,
        "nan": figures.nan,
        "accuracy": figures.accuracy,
        "deviate_rate": figures.deviate_rate,
        "nan_rate": figures.nan_rate,
        "avg_error_dev": _finite(figures.error_of_deviate),
        "avg_error_dev_and_correct": _finite(figures.error_of_read),
        "input_tokens": figures.input_tokens,
        "output_tokens": figures.output_tokens,
        "trials_without_tokens": figures.uncounted,
        "cost_usd": figures.cost_usd if figures.priced else None,
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


def _outcomes(tally: OutcomeTally) -> str:
    shares = (_of_all(tally), _of_answered(tally))
    all_trials, answered = ("-" if share is None else f"{share:.2%}" for share in shares)
    return (
        f"{tally.trials:,} trials at all depths: {tally.failed:,} failed, {tally.empty:,} replied without "
        f"text, {tally.truncated:,} truncated; accuracy {all_trials} over all, {answered} over the "
        f"{tally.correct + tally.wrong:,} answered."
    )


def _of_all(tally: OutcomeTally) -> float | None:
    return tally.correct / tally.trials if tally.trials else None


def _of_answered(tally: OutcomeTally) -> float | None:
    answered = tally.correct + tally.wrong
    return tally.correct / answered if answered else None


def _left_out_of_overall(others: tuple[PublishedRow, ...]) -> list[str]:
    names = ", ".join(f"{row.label} ({len(row.cells)} cells)" for row in others)
    return [f"Left out of it, for want of cells: {names}."] if others else []
