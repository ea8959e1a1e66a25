"""The sweeps that a server of `asyncbench view` lists, and the counts of those that are open."""

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from asyncbench.analysis.choosing import Chosen
from asyncbench.page.live.counting import EVERY_S, LESS_OFTEN, LiveCounts
from asyncbench.page.live.snapshots import state_of
from asyncbench.reports.sweeps import SweepRow, age_of, in_order, row_of, sheet_of
from asyncbench.store.bucket.fetching import display_name
from asyncbench.store.lock import writer_of
from asyncbench.store.manifest import sweeps_below
from asyncbench.tables.data import Values
from asyncbench.tables.headings import HEADINGS
from asyncbench.tables.screen import safe

MOST_OPEN: Final = 4  # sweeps whose trials are in memory at once
COUNTED_S: Final = 1.0  # for which sweeps are counted before a page gets what there is


@dataclass(slots=True, kw_only=True)
class LiveSweeps:
    """The sweeps below a folder: rows that are counted again only where a folder has changed."""

    above: Path
    every_s: float = EVERY_S
    less_often: float = LESS_OFTEN
    _rows: dict[Path, tuple[object, SweepRow]] = field(default_factory=dict)  # with the state of the folder
    _open: dict[str, tuple[LiveCounts, ExitStack]] = field(default_factory=dict)  # the last asked one last
    _listing: threading.Lock = field(default_factory=threading.Lock)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def listed(self) -> Values:
        """Return the list as a page gets it; `uncounted`: how many sweeps are not in it yet."""
        with self._listing:
            end, paths = time.monotonic() + COUNTED_S, sweeps_below(self.above)
            rows, uncounted = list[SweepRow](), 0
            for path in paths:
                state = (state_of({"": path}), writer_of(path))
                if self._rows.get(path, (None,))[0] != state:
                    if time.monotonic() >= end:
                        uncounted += 1
                        continue
                    self._rows[path] = state, row_of(path, self.above)
                row = self._rows[path][1]
                rows.append(replace(row, age_s=age_of(row.answered_at)))

        sheet, ordered = sheet_of(in_order(rows), progress=True), in_order(rows)
        return {
            "title": safe(display_name(self.above)),
            "head": sheet.head,
            "meanings": {heading: HEADINGS.get(heading, "") for heading in sheet.head},
            "rows": [
                {
                    "address": None if row.unreadable else f"/sweep/{quote(row.name, safe='')}/",
                    "cells": [safe(str(cell)) for cell in cells],
                    "why": row.unreadable and safe(row.unreadable, most=None),
                }
                for row, cells in zip(ordered, sheet.rows, strict=True)
            ],
            "uncounted": uncounted,
        }

    def counts_of(self, name: str) -> LiveCounts | None:
        """Return the counts of a sweep, which it opens, or None if no sweep has this name.

        Raises:
            ConfigError, StoreError: it cannot be read.
        """
        with self._opening:
            if name not in self._open:
                paths = {str(path.relative_to(self.above)): path for path in sweeps_below(self.above)}
                if name not in paths:
                    return None
                opened = ExitStack()
                counts = LiveCounts(Chosen(paths=(paths[name],)), self.every_s, self.less_often)
                opened.enter_context(counts.run())
                self._open[name] = counts, opened
            self._open[name] = self._open.pop(name)
            while len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open)))[1].close()
            return self._open[name][0]

    def close(self) -> None:
        """End the counting of all sweeps."""
        with self._opening:
            for _, opened in self._open.values():
                opened.close()
            self._open = {}
