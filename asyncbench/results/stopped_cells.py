"""Cells that a stopping rule ended: what was asked, what was not, and their always-valid intervals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from asyncbench.engine import CellCounts, still_stopped
from asyncbench.shown import Sheet, percent
from asyncbench.store import CELL, kept_sweep_file, read_skipped, read_trials

STOPPED_MARK = "*"  # of an accuracy whose cells were stopped
MOST_SHOWN = 40  # cells in a table; JSON has all
HEAD = (
    *("model", "cell", "rule", "planned", "asked", "skipped"),
    "accuracy when stopped (always-valid 95 %)",
)
_STOP = ("rule", "asked", "correct", "low", "high")
STOPPED_COLUMNS = (*CELL, *_STOP, "skipped_at")  # of `skipped`


@dataclass(frozen=True, slots=True, kw_only=True)
class Skips:
    """What a results folder says of trials that were not asked."""

    held: pa.Table  # rows of `skipped` that the rule in force skips still
    lapsed: int  # other rows: the next run may ask these trials, so they are open


def skips_in(folder: Path | str, columns: Sequence[str]) -> Skips:
    """Return what is skipped by the rule in force, that of the folder's latest run.

    Raises:
        ConfigError, StoreError: as `read_trials` does; the folder's sweep.yaml cannot be read.
    """
    rows = read_skipped(folder, sorted({*columns, "correct", "asked"}))
    if not len(rows):
        return Skips(held=rows, lapsed=0)
    correct, asked = (cast("list[int]", rows[name].to_pylist()) for name in ("correct", "asked"))
    figures = list(zip(correct, asked, strict=True))
    holds = held(folder, figures)
    kept = rows.filter(pa.array([one in holds for one in figures], pa.bool_()))
    return Skips(held=kept, lapsed=len(rows) - len(kept))


def held(folder: Path | str, known: Iterable[CellCounts]) -> frozenset[CellCounts]:
    """Return those (correct, asked) of cells by which the rule in force stops them.

    In a folder without a sweep.yaml nothing speaks against any.

    Raises:
        ConfigError: the folder's sweep.yaml cannot be read.
    """
    different = set(known)
    if not different or (sweep_file := kept_sweep_file(Path(folder))) is None:
        return frozenset(different)
    from asyncbench.config import stop_rule_in  # 0.2 s, which a folder without skips need not wait for

    return still_stopped(stop_rule_in(sweep_file), different)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedCell:
    """A cell of which the rest was not asked."""

    run: str
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


def stopped_cells_of(folder: Path | str, skips: Skips) -> tuple[StoppedCell, ...]:
    """Return the cells of a results folder that are stopped; raises as `read_trials` does.

    Args:
        folder: the results folder.
        skips: its own, with `STOPPED_COLUMNS`.
    """
    rows = skips.held.sort_by("skipped_at").to_pylist()
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


def lapsed_note(lapsed: int) -> str:
    """Return what a reader has to know of recorded skips that no longer hold."""
    return (
        f"{lapsed:,} trials were skipped before that the rule now in force does not skip (`stop_when` was "
        "changed or taken away, or answers have changed): they count as open, and the next run asks them."
    )


def stopped_note(cells: Sequence[StoppedCell]) -> str:
    """Return what a reader of accuracies has to know of stopped cells."""
    skipped = sum(one.skipped for one in cells)
    return (
        f"{skipped:,} trials of {len(cells):,} cells were skipped: enough was known of them (`stop_when`). "
        f"Where {STOPPED_MARK} stands, the interval is meant for a fixed number of trials and is too narrow, "
        "and the accuracy gives stopped cells less weight than they would have had; each cell's own accuracy "
        "with its always-valid interval is below."
    )


def stopped_sheet(cells: Sequence[StoppedCell]) -> Sheet:
    """Return the table of stopped cells."""
    more = f", the first {MOST_SHOWN} of {len(cells):,} (--json has all)" if len(cells) > MOST_SHOWN else ""
    rows = [one.as_row() for one in cells[:MOST_SHOWN]]
    return Sheet(title=f"Cells that were stopped{more}", head=HEAD, rows=rows, labels=3)
