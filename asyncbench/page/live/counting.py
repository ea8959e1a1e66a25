"""The blocks of the page, counted behind the scenes: once for each look, the first screen first."""

import gzip
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.choosing import Chosen, Names
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import asked_in
from asyncbench.errors import AsyncbenchError
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.live.snapshots import Holding, LiveSnapshot, State, read_live, state_of
from asyncbench.reports.status.report import Status, status_of
from asyncbench.store.lock import writer_of
from asyncbench.store.rows import encode_json
from asyncbench.store.schema import LIMITS
from asyncbench.store.snapshot import LOOKS, MovedError
from asyncbench.tables.screen import safe

# ── How far a run is: trials, lanes, money and errors, as the page shows them beside its results


Values = dict[str, Any]  # Any: whatever JSON can hold

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
    """What the calls of folders tell of their runs, as of a look."""

    errors: Sequence[Values] = ()
    lanes: Sequence[Values] = ()
    names: Names = field(default_factory=dict)

    def called(self, label: str, name: str) -> str:
        """Return what the page calls a model or lane of a folder."""
        return self.names.get((label, name), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """How far the sweeps in some folders are."""

    running: bool = False
    trials: Mapping[str, int | None] | None = None  # done, planned
    money: Mapping[str, float | None] | None = None  # spent_usd, budget_usd
    errors: Sequence[Values] = ()  # kind, calls
    lanes: Sequence[Values] = ()
    models: Sequence[Values] = ()

    def as_values(self) -> Values:
        """Return it as JSON has it."""
        return asdict(self)


def run_figures(views: FolderViews) -> RunFigures:
    """Return what calls and lanes of open views tell."""
    return RunFigures(
        errors=[row | {"kind": safe(row["kind"])} for row in views.rows(_ERRORS)],
        lanes=views.rows(_LANES),
        names=views.names,
    )


def is_running(of: Chosen) -> bool:
    """Return whether some process is writing to one of the folders."""
    return any(writer_of(path) is not None for path in of.paths)


def now_in(of: Chosen, figures: RunFigures) -> Now:
    """Return how far the sweeps in some folders are.

    Raises:
        ConfigError, StoreError: a folder cannot be read.
    """
    found = {label: status_of(path) for label, path in of.labels.items()}
    models = [(label, model) for label, status in found.items() for model in status.models]
    planned = [model.planned for _, model in models]
    budgets = [
        cap.limit_usd for status in found.values() for cap in status.budget if cap.name.startswith("sweep ")
    ]
    return Now(
        running=any(status.running for status in found.values()),
        trials={
            "done": sum(model.done for _, model in models),
            "planned": None if None in planned else sum(count or 0 for count in planned),
        },
        money={
            "spent_usd": sum(status.cost_usd for status in found.values()),
            "budget_usd": sum(budgets) if len(budgets) == len(found) else None,
        },
        errors=figures.errors,
        lanes=list(_lanes(found, figures)),
        models=[
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
    )


def _lanes(found: Mapping[str, Status], figures: RunFigures) -> Iterator[Values]:
    """Yield each lane as its run tells it, with what its last minute tells."""
    minutes = {row["lane"]: row for row in figures.lanes}
    for label, status in found.items():
        for lane in status.lanes:
            called = figures.called(label, lane["lane"])
            of_minute = minutes.get(called, {})
            yield {
                "lane": safe(called),
                "in_flight": lane["in_flight"],
                "limited_by": safe(lane["limited_by"]),
                **{name: of_minute.get(name) for name in ("calls_per_minute", "used", "refused")},
            }


# ── counting


FIRST_SCREEN: Final = ("head", "standings", "breaks", "heat")
EVERY_S: Final = 2.0  # between two glances at the folders
LESS_OFTEN: Final = 4.0  # a look waits this many times as long as the last one took to count
AGAIN_S: Final = 30.0  # after a look that failed, though nothing seems to have changed
PATIENCE_S: Final = 10.0  # for what is being counted when the server ends
OUR_FAULT: Final = "The results could not be counted. The terminal of the server says why."


@dataclass(frozen=True, slots=True)
class CountedBlock:
    """A block as it is sent."""

    content: bytes  # JSON, compressed with gzip
    tag: str  # differs where the content does


Blocks = dict[str, CountedBlock | AsyncbenchError]


@dataclass(slots=True)
class LiveCounts:
    """What a server knows, and the thread that counts it."""

    of: Chosen
    every_s: float = EVERY_S
    less_often: float = LESS_OFTEN
    again_s: float = AGAIN_S
    blocks: Blocks = field(default_factory=dict)
    version: int = 0  # grows when blocks are new
    look: LiveSnapshot | None = None  # the last one whose trials can be asked for
    now: Now = field(default_factory=Now)
    trouble: str = ""  # why the folders cannot be read any more
    _figures: RunFigures = field(default_factory=RunFigures)
    _next_glance: float = 0.0
    _asked_for: list[str] = field(default_factory=list)  # blocks that somebody waits for, the last one first
    _counted: int = 0  # blocks of the look that is being counted
    _views: FolderViews | None = None
    _change: threading.Condition = field(default_factory=threading.Condition)
    _moved: bool = False  # whether parts of the last look are gone
    _ending: bool = False
    _thread: threading.Thread | None = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Count for as long as the block lasts.

        Raises:
            ConfigError: a folder is not a results folder; a filter is wrong, or leaves nothing.
            StoreError: one cannot be read.
        """
        holding, state = Holding(self.of), state_of(self.of.labels)
        look = read_live(holding)
        with look.views():  # what is wrong with a folder or a filter is told at once
            pass
        self._thread = threading.Thread(target=self._count_on, args=(holding, look, state), name="counting")
        self._thread.start()
        try:
            yield
        finally:
            self._end()

    def block(self, name: str, within_s: float) -> CountedBlock | AsyncbenchError | float:
        """Return a block; as long as it is not counted, the share of the work that is done.

        Args:
            name: one of `BLOCKS`.
            within_s: how long to wait for it.
        """
        end = time.monotonic() + within_s
        with self._change:
            if name not in self.blocks:
                self._asked_for.insert(0, name)
            while name not in self.blocks and (left := end - time.monotonic()) > 0 and not self._over:
                self._change.wait(left)
            if name not in self.blocks and self.trouble:
                return AsyncbenchError(self.trouble)
            return self.blocks.get(name, self._counted / len(BLOCKS))

    def shares(self) -> dict[str, float]:
        """Return the share of the work that is done, of each block that is not counted yet."""
        return {name: self._counted / len(BLOCKS) for name in BLOCKS if name not in self.blocks}

    def ready(self) -> LiveSnapshot:
        """Return the last look, once its trials can be asked for."""
        with self._change:
            while self.look is None and not self._over:
                self._change.wait()
            if self.look is None:
                raise AsyncbenchError(self.trouble or "the server is ending")
            return self.look

    def look_again(self) -> None:
        """Count anew at once: the folders no longer hold what the last look saw."""
        with self._change:
            self._moved = True
            self._change.notify_all()

    @property
    def _over(self) -> bool:
        """Whether nothing more comes that somebody could wait for."""
        return self._ending or bool(self.trouble)

    def _end(self) -> None:
        import duckdb

        with self._change:
            self._ending = True
            self._change.notify_all()
        if (views := self._views) is not None:
            with suppress(duckdb.Error):  # they were closed a moment ago
                views.connection.interrupt()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    # ── in its own thread ────────────────────────────────────────────────────────────────────

    def _count_on(self, holding: Holding, first: LiveSnapshot, state: State) -> None:
        """Count, and again whenever the folders change, but never most of the time."""
        look: LiveSnapshot | None = first
        while not self._ending:
            began = time.monotonic()
            self._tried(holding, look)
            look, ended = None, time.monotonic()
            state = self._changed(state, ended + self.less_often * (ended - began), ended + self.again_s)

    def _changed(self, state: State, next_look: float, next_try: float) -> State:
        """Return the state of the folders once a look at them is due; it is older than the look."""
        while not self._ending:
            moved = self._wait(self.every_s)
            self._glance()
            now, state_now = time.monotonic(), state_of(self.of.labels)
            if (moved or now >= next_look) and state_now != state:
                return state_now
            if self.trouble and now >= max(next_look, next_try):
                return state_now
        return state

    def _tried(self, holding: Holding, look: LiveSnapshot | None) -> None:
        """Count what the folders hold now; keep what was known where they cannot be read."""
        try:
            for looks_left in reversed(range(LOOKS)):
                try:
                    self._count(look or read_live(holding))
                    break
                except MovedError:
                    if not looks_left:
                        raise
                    look = None
        except AsyncbenchError as error:
            self._say(str(error))
        except Exception:
            if not self._ending:  # a query that was interrupted
                if self.trouble != OUR_FAULT:  # it may fail again and again
                    traceback.print_exc(file=sys.stderr)
                self._say(OUR_FAULT)

    def _count(self, look: LiveSnapshot) -> None:
        """Count a look. A page gets all of it together, but of the first one each block once it is there."""
        blocks = self.blocks if self.look is None else {}
        with look.views() as views:
            self._views, self._counted = views, 0
            try:
                self._make(views, [*FIRST_SCREEN], blocks)
                if self._ending:
                    return
                self._figures = run_figures(views)
                look.read_index(views, asked_in(views))
                if blocks is self.blocks:
                    self._show(look, blocks)
                self._make(views, [name for name in BLOCKS if name not in FIRST_SCREEN], blocks)
                if self._ending:
                    return
                findings = examined_in(views).values()
                look.examined = [answer for group in findings for answer in group.answers]
                look.look_at_grades(views)
            finally:
                self._views = None
        pa.default_memory_pool().release_unused()
        self._glance(needed=True)
        self._show(look, blocks)

    def _make(self, views: FolderViews, names: list[str], blocks: Blocks) -> None:
        """Count some blocks, first those that somebody waits for."""
        while names and not self._ending:
            name = next((name for name in self._asked_for if name in names), names[0])
            names.remove(name)
            self._asked_for = [other for other in self._asked_for if other != name]
            made = self._made(views, name)
            pa.default_memory_pool().release_unused()  # to the system
            with self._change:
                blocks[name] = made
                self._counted += 1
                self._change.notify_all()
            self._glance()

    def _made(self, views: FolderViews, name: str) -> CountedBlock | AsyncbenchError:
        try:
            value = BLOCKS[name](views)
        except MovedError:
            raise
        except AsyncbenchError as error:
            return error
        if name == "head":
            value |= {"live": True}
        text = encode_json(value)
        return CountedBlock(gzip.compress(text, 5, mtime=0), blake2b(text, digest_size=12).hexdigest())

    def _show(self, look: LiveSnapshot, blocks: Blocks) -> None:
        """Let pages have what is counted."""
        with self._change:
            self.version += self.look not in (None, look)
            self.look, self.blocks, self.trouble = look, blocks, ""
            self._change.notify_all()

    def _say(self, trouble: str) -> None:
        with self._change:
            self.trouble = trouble
            self._change.notify_all()

    def _glance(self, *, needed: bool = False) -> None:
        """See how far a run is, and once more when it has ended."""
        began = time.monotonic()
        if began >= self._next_glance and (needed or self.now.running or is_running(self.of)):
            with suppress(AsyncbenchError, OSError):
                self.now = now_in(self.of, self._figures)
            self._next_glance = time.monotonic() + self.less_often * (time.monotonic() - began)

    def _wait(self, seconds: float) -> bool:
        """Wait, but for nobody who found a part gone; return whether someone did."""
        with self._change:
            self._change.wait_for(lambda: self._ending or self._moved, seconds)
            moved, self._moved = self._moved, False
            return moved
