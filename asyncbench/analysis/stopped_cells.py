"""Cells that a stopping rule ended: trials asked and skipped, and always-valid intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from asyncbench.analysis.counting import FolderViews
from asyncbench.engine.stopping import CellCounts, still_stopped
from asyncbench.store.manifest import kept_sweep_file
from asyncbench.store.schema import CELL
from asyncbench.tables.numbers import percent
from asyncbench.tables.report import Sheet

STOPPED_MARK = "*"  # of an accuracy whose cells were stopped
MOST_SHOWN = 40  # cells in a table; JSON has all
HEAD = (
    *("model", "cell", "rule", "planned", "trials", "skipped"),
    "accuracy when stopped (always-valid 95 % CI)",
)
_CELL = ", ".join(CELL)
_FIGURES = ("correct", "asked")  # of a cell, by which a rule holds or not
_WHEN_STOPPED = ("rule", "asked", "correct", "low", "high")
_STOPPED = f"""
SELECT stopped.*, coalesce(closed.trials, 0) AS trials FROM (
    SELECT {_CELL}, count(*) AS skipped,
        {", ".join(f"max_by({name}, skipped_at) AS {name}" for name in _WHEN_STOPPED)}
    FROM held_skips GROUP BY ALL
) stopped LEFT JOIN (
    SELECT {_CELL}, count(*) AS trials FROM trials GROUP BY ALL
) closed ON {" AND ".join(f"stopped.{name} IS NOT DISTINCT FROM closed.{name}" for name in CELL)}
ORDER BY {", ".join(f"stopped.{name} NULLS FIRST" for name in CELL)}
"""  # noqa: S608  made of our own words alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Skips:
    """How many trials of a results folder were not asked."""

    trials: int  # that the rule in force skips still
    lapsed: int  # other ones: the next run may ask these, so they are open


def keep_skips(views: FolderViews) -> Skips:
    """Return what is skipped by the rule in force, that of each folder's latest run.

    Later queries find the rows of `skipped` that it skips still as the table `held_skips`.

    Raises:
        ConfigError: the sweep.yaml of a folder cannot be read.
    """
    keys = ("folder", *_FIGURES) if views.chosen.several else _FIGURES
    known = views.rows(f"SELECT {', '.join(keys)}, count(*) AS trials FROM skipped GROUP BY ALL")  # noqa: S608  our words
    holds = list[dict[str, Any]]()
    for label, path in views.folders:
        own = [row for row in known if row.get("folder", label) == label]
        those = cells_still_stopped(path, ((row["correct"], row["asked"]) for row in own))
        holds += (row for row in own if (row["correct"], row["asked"]) in those)
    kinds = {name: pa.string() if name == "folder" else pa.int64() for name in keys}
    views.put("holds", pa.Table.from_pylist(holds, pa.schema(kinds)))
    views.keep("held_skips", f"SELECT * FROM skipped SEMI JOIN holds USING ({', '.join(keys)})")  # noqa: S608  our words
    trials = sum(row["trials"] for row in holds)
    return Skips(trials=trials, lapsed=sum(row["trials"] for row in known) - trials)


def cells_still_stopped(folder: Path | str, known: Iterable[CellCounts]) -> frozenset[CellCounts]:
    """Return those (correct, asked) of cells by which the rule in force stops them.

    In a folder without a sweep.yaml nothing speaks against any.

    Raises:
        ConfigError: the folder's sweep.yaml cannot be read.
    """
    different = set(known)
    if not different or (sweep_file := kept_sweep_file(Path(folder))) is None:
        return frozenset(different)
    from asyncbench.config.sweep import stop_rule_in  # 0.2 s, which a folder without skips need not wait for

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


def stopped_cells_in(views: FolderViews, skips: Skips) -> tuple[StoppedCell, ...]:
    """Return the cells of a results folder that are stopped, given what `keep_skips` returned."""
    if not skips.trials:
        return ()
    names = StoppedCell.__slots__
    return tuple(StoppedCell(**{name: row[name] for name in names}) for row in views.rows(_STOPPED))


def lapsed_note(lapsed: int) -> str:
    """Return what a reader has to know of recorded skips that no longer hold."""
    return (
        f"Earlier runs skipped {lapsed:,} trials that the present `stop_when` does not skip. They count as "
        "open; the next run asks them."
    )


def stopped_note(cells: Sequence[StoppedCell]) -> str:
    """Return what a reader of accuracies has to know of stopped cells."""
    skipped = sum(cell.skipped for cell in cells)
    return (
        f"`stop_when` skipped {skipped:,} trials of {len(cells):,} cells. Numbers marked {STOPPED_MARK} "
        "include stopped cells: their interval is too narrow, and stopped cells weigh less than planned. "
        "The table of stopped cells has valid intervals."
    )


def stopped_sheet(cells: Sequence[StoppedCell]) -> Sheet:
    """Return the table of stopped cells."""
    more = f", the first {MOST_SHOWN} of {len(cells):,} (--json has all)" if len(cells) > MOST_SHOWN else ""
    rows = [cell.as_row() for cell in cells[:MOST_SHOWN]]
    return Sheet(title=f"Stopped cells{more}", head=HEAD, rows=rows, labels=3)
