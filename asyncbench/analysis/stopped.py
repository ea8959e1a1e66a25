"""Cells that a stopping rule ended: what was asked, what was not, and their always-valid intervals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncbench.analysis.tables import Sheet, percent
from asyncbench.store.catalog import read_skipped, read_trials

MARK = "*"  # of an accuracy whose cells were stopped
MOST_SHOWN = 40  # cells in a table; JSON has all
CELL = ("model", "condition", "suite", "task", "variant", "representation", "length")
HEAD = (
    *("model", "cell", "rule", "planned", "asked", "skipped"),
    "accuracy when stopped (always-valid 95 %)",
)
_STOP = ("rule", "asked", "correct", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedCell:
    """A cell of which the rest was not asked."""

    model: str
    condition: str
    suite: str
    task: str
    variant: str
    representation: str
    length: int | None
    rule: str
    trials: int  # closed, those that were in flight when the rule held among them
    skipped: int
    asked: int  # of them, in the planned order, when the rule held
    correct: int
    low: float  # of the always-valid interval then
    high: float

    def as_row(self) -> tuple[str, ...]:
        """Return the figures as they are shown."""
        kind = (self.condition, f"{self.suite}/{self.task}", self.variant, self.representation)
        cell = " ".join([*filter(None, kind), *([] if self.length is None else [str(self.length)])])
        accuracy = percent(self.correct / self.asked, (self.low, self.high))
        counts = (self.trials + self.skipped, self.trials, self.skipped)
        return self.model, cell, self.rule, *(f"{count:,}" for count in counts), accuracy


def stopped_cells(folder: Path | str) -> tuple[StoppedCell, ...]:
    """Return the cells of a results folder that were stopped; raises as `read_trials` does."""
    rows = read_skipped(folder, [*CELL, *_STOP, "skipped_at"]).sort_by("skipped_at").to_pylist()
    if not rows:
        return ()
    skipped, last = Counter(map(_cell, rows)), {_cell(row): row for row in rows}
    counted = read_trials(folder, CELL).group_by(list(CELL)).aggregate([([], "count_all")]).to_pylist()
    closed = {_cell(row): row["count_all"] for row in counted}
    return tuple(
        StoppedCell(
            **{name: row[name] for name in (*CELL, *_STOP)}, trials=closed.get(cell, 0), skipped=skipped[cell]
        )
        for cell, row in sorted(last.items(), key=lambda one: [(part is not None, part) for part in one[0]])
    )


def _cell(row: dict[str, Any]) -> tuple[Any, ...]:  # Any: a length beside names
    return tuple(row[name] for name in CELL)


def note(cells: Sequence[StoppedCell]) -> str:
    """Return what a reader of accuracies has to know of stopped cells."""
    skipped = sum(one.skipped for one in cells)
    return (
        f"{skipped:,} trials of {len(cells):,} cells were skipped: enough was known of them (`stop_when`). "
        f"Where {MARK} stands, the interval is meant for a fixed number of trials and is too narrow, and the "
        "accuracy gives stopped cells less weight than they would have had; each cell's own accuracy with "
        "its always-valid interval is below."
    )


def sheet(cells: Sequence[StoppedCell]) -> Sheet:
    """Return the table of stopped cells."""
    more = f", the first {MOST_SHOWN} of {len(cells):,} (--json has all)" if len(cells) > MOST_SHOWN else ""
    rows = [one.as_row() for one in cells[:MOST_SHOWN]]
    return Sheet(title=f"Cells that were stopped{more}", head=HEAD, rows=rows, labels=3)
