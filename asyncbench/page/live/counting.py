"""The blocks of the live page, counted in a thread.

Each snapshot of the folders is counted anew, with the blocks of the first screen first.
"""

import gzip
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import pyarrow as pa

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import asked_in
from asyncbench.errors import AsyncbenchError
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.first_screen import FIRST_SCREEN
from asyncbench.page.live.snapshots import LiveMemory, LiveSnapshot, State, state_of, take_live_snapshot
from asyncbench.reports.status.report import Status, status_of
from asyncbench.store.lock import writer_of
from asyncbench.store.rows import encode_json
from asyncbench.store.schema import LIMITS
from asyncbench.store.snapshot import READ_TRIES, MovedError
from asyncbench.tables.data import Values
from asyncbench.tables.numbers import total_cost
from asyncbench.tables.screen import safe

# ── progress of runs ─────────────────────────────────────────────────────────────────────────────


MOST_ERRORS: Final = 8  # kinds that are shown
_ERRORS: Final = f"""
SELECT status AS kind, count(*) AS calls FROM attempts WHERE status <> 'ok'
GROUP BY ALL ORDER BY calls DESC, kind LIMIT {MOST_ERRORS}
"""  # noqa: S608  a number of ours

# Of each lane the last row that is more than a change by hand; `used`: the most of any of its limits.
_RATES: Final = ", ".join(f"60 * {name} / seconds / {name}_limit" for name in LIMITS)
_LANES: Final = f"""
SELECT lane, 60 * requests / seconds AS calls_per_minute, greatest({_RATES}) AS used, refused
FROM lanes WHERE seconds > 0 QUALIFY row_number() OVER (PARTITION BY lane ORDER BY started_at DESC) = 1
ORDER BY lane
"""  # noqa: S608  names of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """Errors, lanes and names of runs, counted from the calls of a snapshot."""

    errors: Sequence[Values] = ()
    lanes: Sequence[Values] = ()
    names: Names = field(default_factory=dict)

    def called(self, label: str, name: str) -> str:
        """Return the page's name for a model or lane of a folder."""
        return self.names.get((label, name), name)


# The progress of the sweeps in some folders, as the page gets it.
NO_PROGRESS: Final[Values] = {
    "running": False,
    "trials": None,  # done, planned
    "money": None,  # spent_usd, budget_usd
    "errors": [],  # kind, calls
    "lanes": [],
    "models": [],
}


def run_figures(views: FolderViews) -> RunFigures:
    """Return errors, lanes and names, counted from open views."""
    return RunFigures(
        errors=[row | {"kind": safe(row["kind"])} for row in views.rows(_ERRORS)],
        lanes=views.rows(_LANES),
        names=views.names,
    )


def progress_of(folders: Chosen, figures: RunFigures) -> Values:
    """Return the progress of the sweeps in some folders.

    Raises:
        ConfigError, StoreError: a folder cannot be read.
    """
    statuses = {label: status_of(path) for label, path in folders.labels.items()}
    models = [(label, model) for label, status in statuses.items() for model in status.models]
    planned = [model.planned for _, model in models]
    budgets = [
        cap.limit_usd
        for status in statuses.values()
        for cap in status.budget
        if cap.name.startswith("sweep ")
    ]
    return {
        "running": any(status.running for status in statuses.values()),
        "trials": {
            "done": sum(model.done for _, model in models),
            "planned": None if None in planned else sum(count or 0 for count in planned),
        },
        "money": {
            "spent_usd": total_cost(status.cost_usd for status in statuses.values()),
            "budget_usd": sum(budgets) if len(budgets) == len(statuses) else None,
        },
        "errors": figures.errors,
        "lanes": list(_lanes(statuses, figures)),
        "models": [
            {
                "model": safe(figures.called(label, model.model)),
                "done": model.done,
                "planned": model.planned,
                "failed": model.failed,
                "in_flight": model.in_flight,
                "cost_usd": model.cost_usd,
                "suspended": model.suspended,
            }
            for label, model in models
        ],
    }


def _lanes(statuses: Mapping[str, Status], figures: RunFigures) -> Iterator[Values]:
    """Yield each lane with its state now and the figures of its last minute."""
    minutes = {row["lane"]: row for row in figures.lanes}
    for label, status in statuses.items():
        for lane in status.lanes:
            called = figures.called(label, lane["lane"])
            minute = minutes.get(called, {})
            yield {
                "lane": safe(called),
                "in_flight": lane["in_flight"],
                "limited_by": safe(lane["limited_by"]),
                **{name: minute.get(name) for name in ("calls_per_minute", "used", "refused")},
            }


# ── counting blocks ──────────────────────────────────────────────────────────────────────────────


EVERY_S: Final = 2.0  # between two checks of the folders
LESS_OFTEN: Final = 4.0  # the next snapshot waits this many times as long as the last one took to count
AGAIN_S: Final = 30.0  # until a snapshot that failed is tried again, though no change was seen
PATIENCE_S: Final = 10.0  # how long the end of the server waits for a block that is being counted
OUR_FAULT: Final = "The results could not be counted. The terminal of the server says why."


@dataclass(frozen=True, slots=True)
class CountedBlock:
    """A block as it is sent."""

    content: bytes  # JSON, compressed with gzip
    tag: str  # differs where the content does


Blocks = dict[str, CountedBlock | AsyncbenchError]


def block_json(views: FolderViews, name: str, taken_at: float) -> bytes:
    """Return a block as JSON, or what the folder keeps of it; the first one tells of when figures are."""
    if name == "head":
        return encode_json(BLOCKS[name](views) | {"live": True, "made_at": taken_at})
    return views.json_made_of_rows(f"block {name}", lambda: encode_json(BLOCKS[name](views)))


@dataclass(slots=True)
class LiveCounts:
    """The blocks that a server has counted, and the thread that counts them."""

    folders: Chosen
    every_s: float = EVERY_S
    less_often: float = LESS_OFTEN
    again_s: float = AGAIN_S
    blocks: Blocks = field(default_factory=dict)
    version: int = field(
        default_factory=time.time_ns
    )  # grows when blocks are new; no other count begins with it
    snapshot: LiveSnapshot | None = None  # the last one whose trials can be queried
    progress: Values = field(default_factory=lambda: NO_PROGRESS)
    trouble: str = ""  # why the folders cannot be read any more
    current: bool = False  # whether the folders were, at the last check, as the blocks have them
    _figures: RunFigures = field(default_factory=RunFigures)
    _next_refresh: float = 0.0
    _requested: list[str] = field(default_factory=list)  # blocks that pages wait for, the last one first
    _counted: int = 0  # blocks of the snapshot that is being counted
    _views: FolderViews | None = None
    _change: threading.Condition = field(default_factory=threading.Condition)
    _moved: bool = False  # whether parts of the last snapshot are gone
    _ending: bool = False

    @contextmanager
    def run(self) -> Iterator[None]:
        """Count for as long as the block lasts.

        Raises:
            ConfigError: a folder is not a results folder; a filter is wrong, or leaves nothing.
            StoreError: one cannot be read.
        """
        import duckdb

        memory, state = LiveMemory(self.folders), state_of(self.folders.labels)
        snapshot = take_live_snapshot(memory)
        with snapshot.views():  # a wrong folder or filter is an error at once
            pass
        thread = threading.Thread(
            target=self._count_until_end, args=(memory, snapshot, state), name="counting"
        )
        thread.start()
        try:
            yield
        finally:
            with self._change:
                self._ending = True
                self._change.notify_all()
            if (views := self._views) is not None:
                with suppress(duckdb.Error):  # they were closed a moment ago
                    views.connector.interrupt()
            thread.join(PATIENCE_S)

    def block(self, name: str, within_s: float) -> CountedBlock | AsyncbenchError | float:
        """Return a block; as long as it is not counted, the share of the work that is done.

        Args:
            name: one of `BLOCKS`.
            within_s: how long to wait for it.
        """
        end = time.monotonic() + within_s
        with self._change:
            if name not in self.blocks:
                self._requested.insert(0, name)
            while name not in self.blocks and (remaining_s := end - time.monotonic()) > 0 and not self._ended:
                self._change.wait(remaining_s)
            if name not in self.blocks and self.trouble:
                return AsyncbenchError(self.trouble)
            return self.blocks.get(name, self._counted / len(BLOCKS))

    def shares(self) -> dict[str, float]:
        """Return the share of the work that is done, of each block that is not counted yet."""
        return {name: self._counted / len(BLOCKS) for name in BLOCKS if name not in self.blocks}

    def ready(self) -> LiveSnapshot:
        """Return the last snapshot, once its trials can be queried."""
        with self._change:
            while self.snapshot is None and not self._ended:
                self._change.wait()
            if self.snapshot is None:
                raise AsyncbenchError(self.trouble or "the server is ending")
            return self.snapshot

    def recount(self) -> None:
        """Count anew at once: parts of the last snapshot are gone from the folders."""
        with self._change:
            self._moved = True
            self._change.notify_all()

    @property
    def _ended(self) -> bool:
        """Whether no more blocks come that a page could wait for."""
        return self._ending or bool(self.trouble)

    # ── counting thread ──────────────────────────────────────────────────────────────────────────

    def _count_until_end(self, memory: LiveMemory, first: LiveSnapshot, state: State) -> None:
        """Count, and again whenever the folders change, with a pause that grows with the time of counting."""
        snapshot: LiveSnapshot | None = first
        while not self._ending:
            began = time.monotonic()
            self._try_count(memory, snapshot)
            snapshot, ended = None, time.monotonic()
            state = self._wait_for_change(
                state, ended + self.less_often * (ended - began), ended + self.again_s
            )

    def _wait_for_change(self, state: State, next_snapshot: float, next_try: float) -> State:
        """Return the state of the folders once a snapshot is due; it is older than the snapshot."""
        while not self._ending:
            with self._change:  # until the next check, or until a part is reported gone
                self._change.wait_for(lambda: self._ending or self._moved, self.every_s)
                moved, self._moved = self._moved, False
            self._refresh_progress()
            now, state_now = time.monotonic(), state_of(self.folders.labels)
            self.current = state_now == state and not self.trouble
            if (moved or now >= next_snapshot) and state_now != state:
                return state_now
            if self.trouble and now >= max(next_snapshot, next_try):
                return state_now
        return state

    def _try_count(self, memory: LiveMemory, snapshot: LiveSnapshot | None) -> None:
        """Count what the folders hold now; keep what was known where they cannot be read."""
        try:
            for tries_left in reversed(range(READ_TRIES)):
                try:
                    self._count(snapshot or take_live_snapshot(memory))
                    break
                except MovedError:
                    if not tries_left:
                        raise
                    snapshot = None
        except AsyncbenchError as error:
            self._fail(str(error))
        except Exception:
            if not self._ending:  # a query that was interrupted
                if self.trouble != OUR_FAULT:  # it may fail again and again
                    traceback.print_exc(file=sys.stderr)
                self._fail(OUR_FAULT)

    def _count(self, snapshot: LiveSnapshot) -> None:
        """Count a snapshot. A page gets it as a whole, but the first one block by block."""
        blocks = self.blocks if self.snapshot is None else {}
        with snapshot.views() as views:
            self._views, self._counted = views, 0
            try:
                self._make(views, [*FIRST_SCREEN], blocks, snapshot.taken_at)
                if self._ending:
                    return
                self._figures = run_figures(views)
                snapshot.read_index(views, asked_in(views))
                if blocks is self.blocks:
                    self._show(snapshot, blocks)
                rest = [name for name in BLOCKS if name not in FIRST_SCREEN]
                self._make(views, rest, blocks, snapshot.taken_at)
                if self._ending:
                    return
                snapshot.examined = [each for group in examined_in(views).values() for each in group.answers]
            finally:
                self._views = None
        snapshot.read_grades()  # once DuckDB has given its memory back
        pa.default_memory_pool().release_unused()
        self._refresh_progress(needed=True)
        self._show(snapshot, blocks)

    def _make(self, views: FolderViews, names: list[str], blocks: Blocks, taken_at: float) -> None:
        """Count some blocks, first those that pages wait for."""
        while names and not self._ending:
            name = next((name for name in self._requested if name in names), names[0])
            names.remove(name)
            self._requested = [requested for requested in self._requested if requested != name]
            block: CountedBlock | AsyncbenchError
            try:
                text = block_json(views, name, taken_at)
                block = CountedBlock(
                    gzip.compress(text, 5, mtime=0), blake2b(text, digest_size=12).hexdigest()
                )
            except MovedError:
                raise
            except AsyncbenchError as error:
                block = error
            pa.default_memory_pool().release_unused()  # to the system
            with self._change:
                blocks[name] = block
                self._counted += 1
                self._change.notify_all()
            self._refresh_progress()

    def _show(self, snapshot: LiveSnapshot, blocks: Blocks) -> None:
        """Hand a counted snapshot to the pages."""
        with self._change:
            self.version += self.snapshot not in (None, snapshot)
            self.snapshot, self.blocks, self.trouble = snapshot, blocks, ""
            self._change.notify_all()

    def _fail(self, trouble: str) -> None:
        with self._change:
            self.trouble = trouble
            self._change.notify_all()

    def _refresh_progress(self, *, needed: bool = False) -> None:
        """Read the progress of a run, and once more when it has ended."""
        began = time.monotonic()
        if began < self._next_refresh:
            return
        if (
            needed
            or self.progress["running"]
            or any(writer_of(path) is not None for path in self.folders.paths)
        ):
            with suppress(AsyncbenchError, OSError):
                self.progress = progress_of(self.folders, self._figures)
            self._next_refresh = time.monotonic() + self.less_often * (time.monotonic() - began)
