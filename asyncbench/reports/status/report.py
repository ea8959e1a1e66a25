"""Status of a results folder: trials planned, done, failed and open, dollars, and the state of its files."""

import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from asyncbench.analysis.cells import cells_still_stopped, lapsed_notes
from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.notes import FolderReport, counted_note, note_of_simulated
from asyncbench.analysis.views import counts_by
from asyncbench.config.sweep import priced_models
from asyncbench.engine.stopping import CellCounts
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.status import PartState, PartStatus, part_statuses, states_text, warnings_on
from asyncbench.lanes.load.steps import CLIENT_BOUND, INCOMPLETE
from asyncbench.records import Outcome
from asyncbench.run.control import RunProgress, progress_of_run
from asyncbench.store.bucket.claiming import current_folder
from asyncbench.store.bucket.fetching import display_name, written_elsewhere
from asyncbench.store.budget_state import cap_uses
from asyncbench.store.manifest import SWEEP_FILE, planned, read_manifest, simulated_note
from asyncbench.store.segment import QUARANTINE
from asyncbench.store.status import ModelCounts, Upkeep, read_upkeep, trial_counts
from asyncbench.tables.numbers import (
    MISSING,
    at_least,
    count,
    days,
    dollars,
    first_of,
    number_of,
    percent,
    total_cost,
)
from asyncbench.tables.report import Columns, Sheet
from asyncbench.tables.screen import safe_note

# ── The batches of a results folder as `status` shows them


MOST_ROWS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesStatus:
    """How the batches of a folder stand."""

    parts: tuple[PartStatus, ...]
    at: float  # UTC, seconds since 1970: when that was
    written_at: float = 0.0  # the ledger's latest line; 0: there is none

    @property
    def open(self) -> list[PartStatus]:
        """Return those that are not over, first those that need a person."""
        order = list(PartState)
        return sorted((part for part in self.parts if part.open), key=lambda part: order.index(part.state))

    @property
    def trials(self) -> Mapping[str, int]:
        """Trials in open parts, by model."""
        counted = Counter[str]()
        for part in self.open:
            counted[part.model] += part.trials
        return counted

    def reserved_usd(self, aliases: Collection[str] | None) -> float:
        """Return what is set aside for the batches of these models; None: of all.

        Of batches that were given up while in doubt it stays: they may have cost it.
        """
        unsettled = (part for part in self.parts if part.open or part.state is PartState.LEFT)
        return sum(part.reserved_usd or 0.0 for part in unsettled if aliases is None or part.model in aliases)

    def data(self) -> list[dict[str, object]]:
        """Return all parts for a script, with times in ISO 8601."""
        return [part.json_fields(self.at) for part in self.parts]

    def sheet_and_notes(self) -> Iterator[str | Sheet]:
        if not self.parts:
            return
        shown = self.open
        yield f"Batches: {states_text(self.parts)}."
        if shown:
            yield self._sheet(shown[:MOST_ROWS])
        if len(shown) > MOST_ROWS:
            yield f"{len(shown) - MOST_ROWS:,} more batches: --json lists all."
        if any(part.known_at is not None for part in shown):
            yield "A run asks the providers how their batches stand; `status --refresh` does so now."
        yield from warnings_on(self.parts, now=self.at)

    def _sheet(self, parts: Iterable[PartStatus]) -> Sheet:
        columns: Columns[PartStatus] = {
            "batch": lambda part: part.named,
            "model": lambda part: part.model,
            "state": lambda part: part.state.value,
            "as of": lambda part: (
                MISSING if part.known_at is None else f"{days(max(0.0, self.at - part.known_at))} ago"
            ),
            "trials": lambda part: count(part.trials),
            "done": lambda part: count(part.answered) if part.answered else MISSING,
            "age": lambda part: days(self.at - part.begun_at),
            "due within": lambda part: (
                self._left(part.window_ends_at) if (part.window_ends_at or self.at) >= self.at else "overdue"
            ),
            "results kept": lambda part: self._left(part.deleted_at),
        }
        return Sheet.of("", columns, parts, labels=3)

    def _left(self, at: float | None) -> str:
        return MISSING if at is None else days(at - self.at)


def batches_in(folder: Path, *, running: bool) -> BatchesStatus:
    """Look at the batches of a folder; nothing is written, and nobody is asked.

    Raises:
        StoreError: the ledger is damaged where everything depends on it.
    """
    now = time.time()
    ledger = BatchLedger(folder)
    parts = tuple(part_statuses(ledger, running=running, now=now))
    return BatchesStatus(parts=parts, at=now, written_at=ledger.written_at)


def aliases_of(provider: str, folder: Path) -> set[str]:
    """Return the aliases of a provider's models, as the folder's sweep names them."""
    try:
        models = priced_models(folder / SWEEP_FILE)
    except ConfigError:
        return set()
    return {model.alias for model in models if model.provider == provider}


# ── The report


_SHOWN_LEFTOVERS = 3
_SHOWN_CHANGES = 5
_SHOWN_MODELS = 3  # of those that share a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """How far one model is."""

    model: str
    planned: int | None  # trials of the whole sweep; None where no run has planned it
    done: int
    failed: int  # done, without a reply
    open: int | None  # planned, neither done nor skipped
    in_flight: int  # calls that have begun and not ended; when no run is going, they are lost
    suspended: str | None  # the kind of error for which the rest stays open; None: it does not
    attempts: int
    unpriced_attempts: int
    cost_usd: float | None  # of the attempts whose cost is known; None: of none is it known
    skipped: int = 0  # not asked, for enough is known of their cells by the rule in force
    in_batches: int = 0  # trials of `open` that are in batches, or in doubt
    loaded: int = 0  # trials of loads: in none of the other figures but calls and cost
    steps: Mapping[str, int] = field(default_factory=dict)  # of loads: `measured` and why others are not

    @property
    def load_text(self) -> str:
        """What steps of loads came to; empty: there was none."""
        if not self.steps:
            return f"{self.model} under load: no step is over yet" if self.loaded else ""
        verdicts = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in self.steps.items())
        steps = sum(self.steps.values())
        return f"{self.model} under load: {steps:,} step{'s' * (steps > 1)}, {verdicts}"

    @property
    def only_loaded(self) -> bool:
        """Whether nothing but loads asked it: they have steps, no planned trials."""
        return self.planned == 0 and bool(self.load_text)

    def as_row(self, *, skipped: bool, batches: bool) -> tuple[str, ...]:
        """Return the figures as they are shown, with or without what was skipped, and what is in batches."""
        closed = (self.done, self.skipped) if skipped else (self.done,)
        out = (self.in_batches, self.in_flight) if batches else (self.in_flight,)
        trials: Iterable[int | None] = (self.planned, *closed, self.failed, self.open)
        figures = ["-" if self.only_loaded else "?" if count is None else f"{count:,}" for count in trials]
        figures += [f"{count:,}" for count in (*out, self.attempts)]
        return self.model, *figures, self.cost_text, f"suspended: {self.suspended}" if self.suspended else ""

    @property
    def cost_text(self) -> str:
        if self.cost_usd is None:
            return dollars(None)
        unpriced = number_of(self.unpriced_attempts, "call")
        more = f" + {unpriced} of unknown cost" if self.unpriced_attempts else ""
        return at_least(dollars(self.cost_usd), partial=more) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class CapStatus:
    """What is spent of a budget."""

    name: str  # `sweep night`, `provider openai`, `model gpt`
    limit_usd: float
    spent_usd: float  # what calls cost, or could at most where that is not known
    reserved_usd: float  # for calls in flight; when no run is going, they are lost, and it is spent
    doubted_usd: float = 0.0  # of `spent_usd`: what calls of unknown cost could cost at most
    doubted_calls: int = 0  # those calls
    unended_calls: int = 0  # those for which `reserved_usd` is
    in_batches_usd: float = 0.0  # set aside for batches that are open, or that nobody knows of

    def said(self, *, running: bool) -> str:
        """Return it in words; `running`: whether calls without an end are in flight, or lost."""
        from asyncbench.run.costs import spent_text  # 0.2 s, which a folder without budgets need not wait for

        lost_usd, lost = (0.0, 0) if running else (self.reserved_usd, self.unended_calls)
        return spent_text(
            self.name,
            self.spent_usd + lost_usd,
            self.limit_usd,
            reserved_usd=self.in_batches_usd + (self.reserved_usd if running else 0.0),
            doubted_usd=self.doubted_usd + lost_usd,
            doubted_calls=self.doubted_calls + lost,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeByHand:
    """What somebody changed while a run went on."""

    what: str  # when (UTC), who, and what
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(FolderReport):
    """How far a sweep is, and how its folder is."""

    sweep: str
    written_at: str | None  # UTC, ISO 8601
    cost_usd: float | None  # of all attempts whose cost is known; None: of none is it known
    unpriced_attempts: int
    waiting: dict[str, int]  # rows that only the journal holds yet, by table
    ungraded: int  # answers that the next run grades, if none is going
    damaged_lines: int  # of the journal
    quarantined_lines: int  # damaged ones of earlier journals, kept apart
    files: Upkeep
    models: tuple[ModelStatus, ...]
    budget: tuple[CapStatus, ...] = ()  # as of the latest run
    batches: BatchesStatus | None = None  # None: there are none
    lapsed: int = 0  # trials skipped before, but not by the rule in force: open
    lanes: tuple[Mapping[str, Any], ...] = ()  # how those of the run stand; empty: none is going that tells
    workers: tuple[Mapping[str, Any], ...] = ()  # likewise; empty, too, where it makes its calls itself
    changes: tuple[ChangeByHand, ...] = ()  # by people, oldest first
    outside: int = 0  # answers of batches whose trials have left the sweep
    elsewhere: str | None = None  # who writes to it on another machine, by its copy in a bucket
    apart: ClassVar[str] = "\n"

    @property
    def running(self) -> bool:
        """Whether some process is writing to the folder."""
        return self.files.writer is not None

    @property
    def whole(self) -> ModelStatus:
        """All models together."""
        counts = ("done", "failed", "in_flight", "in_batches", "attempts", "skipped", "loaded")
        return ModelStatus(
            **{name: sum(getattr(one, name) for one in self.models) for name in counts},
            model="all",
            planned=_sum(one.planned for one in self.models),
            open=_sum(one.open for one in self.models),
            suspended=None,
            unpriced_attempts=self.unpriced_attempts,
            cost_usd=self.cost_usd,
            steps=sum((Counter(one.steps) for one in self.models), Counter()),
        )

    def _parts(self) -> Iterator[str | Sheet]:
        yield from self._simulated()
        writer = f"; process {self.files.writer or 'unknown'} is writing to it" if self.running else ""
        yield f"{self.sweep} in {self.folder}, last written {self.written_at or 'never'}{writer}"
        yield from [self.elsewhere] if self.elsewhere else []
        yield self._progress()
        loads = [model.load_text for model in self.models if model.load_text]
        yield from loads
        if loads:
            yield f"asyncbench report {quoted(self.folder)} --style load shows what each step came to"
        for cap in self.budget:
            yield cap.said(running=self.running)
        if self.batches is not None:
            yield from self.batches.sheet_and_notes()
            for one in self.models:
                if one.in_batches and (rest := (one.open or 0) - one.in_batches) > 0:
                    yield f"{one.model}: {rest:,} open trials are in no batch yet. A run sends them."
        if self.lanes:
            yield Sheet.of("", _LANES, self.lanes)
        if self.workers:
            yield _worker_sheet(self.workers)
        for change in self.changes[-_SHOWN_CHANGES:]:
            yield f"changed {change.what} [{', '.join(change.lanes)}]"
        yield from self._health()

    def as_line(self) -> str:
        """Return how far each model is, in one line."""
        return safe_note(f"{self.written_at or 'never'} {'; '.join(map(_sentence, self.models))}")

    def _progress(self) -> Sheet:
        """Return how far each model is; what was skipped, or is in batches, where there is any."""
        skipped, batches = self._skipped, any(one.in_batches for one in self.models)
        total = [self.whole] if len(self.models) > 1 else []
        return Sheet(
            title="",
            head=(
                *("model", "planned", "done", *["skipped"] * skipped, "failed", "open"),
                *(*["in batches"] * batches, "in flight", "attempts", "cost", ""),
            ),
            rows=[one.as_row(skipped=skipped, batches=batches) for one in (*self.models, *total)],
        )

    def _data(self) -> dict[str, Any]:  # Any: JSON
        return FolderReport._data(self) | {"batches": [] if self.batches is None else self.batches.data()}

    @property
    def _skipped(self) -> bool:
        return any(one.skipped for one in self.models)

    def _health(self) -> Iterator[str]:
        files = self.files
        if self._skipped:
            yield "skipped: made unnecessary by `stop_when`"
        yield from lapsed_notes(self.lapsed)
        journal = ""
        if any(self.waiting.values()):
            waiting = f"{self.waiting['trials']:,} trials and {self.waiting['attempts']:,} calls"
            journal = f"; the journal ({_size(files.journal_bytes)}) holds {waiting} more"
        yield f"{files.parts:,} Parquet files, {_size(files.part_bytes)}{journal}"
        yield from counted_note(
            0 if self.running else self.ungraded,
            "answers are not graded. The next run grades those that its sweep still asks, without asking "
            "again.",
        )
        yield from counted_note(
            self.outside,
            "answers of batches are of trials that have left the sweep, as it was changed. They were paid "
            "and are kept. A run grades them if the sweep asks the same again.",
        )
        damaged, kept = self.damaged_lines, self.quarantined_lines
        yield from counted_note(damaged, "lines of the journal are damaged and left out. The rest is kept.")
        yield from counted_note(kept, f"damaged lines of earlier journals are kept in {QUARANTINE}/.")
        if files.leftovers:
            shown = ", ".join(files.leftovers[:_SHOWN_LEFTOVERS])
            more = ", …" if len(files.leftovers) > _SHOWN_LEFTOVERS else ""
            yield f"Unfinished files: {shown}{more}. The next run completes or removes them."


def status_of(folder: Path | str) -> Status:
    """Show how far the sweep in a results folder is, also while a run is going. Nothing is changed.

        print(ab.status("results/night").as_text())

    Args:
        folder: the results folder.

    Returns:
        A `Status`: trials done, failed and open, and USD, for each model.

    Raises:
        ConfigError: The folder is not a results folder, or its sweep.yaml cannot be read.
        StoreError: A file of the folder is missing or damaged.
    """
    path = current_folder(folder)
    manifest, files, counts = read_manifest(path), read_upkeep(path), trial_counts(path)
    damaged = set(counts.damaged)
    if damaged and files.writer is not None:
        counts = trial_counts(path)  # a line that was just being written is whole by now
        damaged &= set(counts.damaged)
    batches = batches_in(path, running=files.writer is not None)
    holds = cells_still_stopped(path, (figures for one in counts.models.values() for figures in one.skips))
    planned_trials = Counter[str]()
    for (_, model, _), suites in planned(manifest).items():
        planned_trials[model] += sum(sum(tasks.values()) for tasks in suites.values())
    models = tuple(
        replace(
            _model(name, counts.models.get(name, ModelCounts()), planned_trials.get(name), holds),
            in_batches=batches.trials.get(name, 0),
        )
        for name in sorted({*planned_trials, *counts.models})
    )
    latest = max(counts.written_at or 0.0, batches.written_at)  # of batches nothing may be answered yet
    written_at = datetime.fromtimestamp(latest, UTC) if latest else None
    progress = RunProgress() if files.writer is None else progress_of_run(path)
    return Status(
        sweep=str(manifest["sweep"]),
        folder=display_name(folder),
        elsewhere=written_elsewhere(path),
        simulated_note=simulated_note(manifest) if manifest.get("simulated") else "",
        written_at=None if written_at is None else written_at.isoformat("T", "seconds"),
        cost_usd=total_cost(model.cost_usd for model in models),
        unpriced_attempts=sum(one.unpriced_attempts for one in models),
        waiting=dict(counts.waiting),
        ungraded=counts.ungraded,
        outside=counts.outside,
        damaged_lines=len(damaged),
        quarantined_lines=sum(counts.quarantined.values()),
        files=files,
        models=models,
        budget=tuple(_caps(path, batches)),
        batches=batches if batches.parts else None,
        lapsed=sum(one.skipped for one in counts.models.values()) - sum(one.skipped for one in models),
        lanes=progress.lanes,
        workers=progress.workers,
        changes=tuple(
            ChangeByHand(what=what, lanes=tuple(dict.fromkeys(lanes)))
            for what, lanes in counts.changes.items()
        ),
    )


def joined_status(views: FolderViews, statuses: Sequence[Status]) -> Status:
    """Return how far several folders are together; of some trials of a model, only what came of these."""
    names = [label for label, _ in views.folders]
    models = [
        replace(model, model=views.called(label, model.model))
        for label, status in zip(names, statuses, strict=True)
        for model in status.models
        if model.model in (views.chosen.models or (model.model,))
    ]
    if views.chosen.partly:
        models = [
            ModelStatus(planned=None, open=None, in_flight=0, suspended=None, **row)
            for row in views.rows(_CAME)
        ]
    return replace(
        statuses[0],
        sweep=str(views.manifest["sweep"]),
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views, known=any(status.simulated for status in statuses)),
        cost_usd=total_cost(model.cost_usd for model in models),
        unpriced_attempts=sum(model.unpriced_attempts for model in models),
        ungraded=sum(status.ungraded for status in statuses),
        outside=sum(status.outside for status in statuses),
        damaged_lines=sum(status.damaged_lines for status in statuses),
        models=tuple(models),
        lanes=(),
        workers=(),
        changes=(),
    )


_CAME = f"""
SELECT model, trials AS done, failed, coalesce(attempts, 0) AS attempts,
    coalesce(unpriced_attempts, 0) AS unpriced_attempts, calls.cost_usd
FROM ({counts_by("trials", ("model",), only=("trials", "failed"))}) LEFT JOIN (
    SELECT model, count(*) AS attempts, count(*) - count(cost_usd) AS unpriced_attempts,
        spent_usd(cost_usd) AS cost_usd
    FROM attempts GROUP BY model
) AS calls USING (model) ORDER BY model
"""  # noqa: S608  made of our own words alone


def _caps(folder: Path, batches: BatchesStatus) -> Iterator[CapStatus]:
    for cap in cap_uses(folder):
        whose = {"model": {cap.of, *cap.also}, "sweep": None}
        yield CapStatus(
            name=f"{cap.kind} {cap.of}",
            limit_usd=cap.limit_usd,
            spent_usd=cap.spent_usd,
            reserved_usd=cap.reserved_usd,
            doubted_usd=cap.doubted_usd,
            doubted_calls=cap.doubted_calls,
            unended_calls=cap.unended_calls,
            in_batches_usd=batches.reserved_usd(
                whose[cap.kind] if cap.kind in whose else aliases_of(cap.of, folder)
            ),
        )


def _model(name: str, counts: ModelCounts, planned: int | None, holds: Container[CellCounts]) -> ModelStatus:
    if planned is None and (counts.loaded or counts.steps) and not counts.finished:
        planned = 0  # a load plans steps
    steps = Counter(
        verdict if verdict in (INCOMPLETE, CLIENT_BOUND) else "measured"
        for verdict in counts.steps.elements()
    )
    skipped = sum(trials for figures, trials in counts.skips.items() if figures in holds)
    unfinished = None if planned is None else max(0, planned - counts.finished - skipped)
    return ModelStatus(
        model=name,
        planned=planned,
        done=counts.finished,
        failed=counts.outcomes.get(Outcome.FAILED, 0),
        open=unfinished,
        in_flight=counts.in_flight,
        suspended=counts.suspended if unfinished else None,
        attempts=counts.attempts,
        unpriced_attempts=counts.unpriced,
        cost_usd=counts.cost_usd,
        skipped=skipped,
        loaded=counts.loaded,
        steps={what: steps[what] for what in ("measured", INCOMPLETE, CLIENT_BOUND) if steps[what]},
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None: one is not."""
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)


def _sentence(one: ModelStatus) -> str:
    planned = "?" if one.planned is None else f"{one.planned:,}"
    parts = [one.load_text if one.only_loaded else f"{one.model} {one.done:,}/{planned}"]
    parts += [f"{one.in_batches:,} in batches"] * bool(one.in_batches)
    parts += [f"{one.skipped:,} skipped"] * bool(one.skipped)
    parts += [f"{one.failed:,} failed"] * bool(one.failed) + [f"{one.in_flight:,} in flight", one.cost_text]
    return ", ".join([*parts, f"suspended: {one.suspended}"] if one.suspended else parts)


def _limits_text(lane: Mapping[str, Any]) -> str:
    limits = [f"{most:,.10g} {name}" for name, most in lane["limits"].items()]
    limits += [f"{lane['concurrency']:,} at once"] if lane["concurrency"] else []
    return ", ".join(limits) or MISSING


def _lane_text(lane: Mapping[str, Any]) -> str:
    """Return what a lane is called, with the models that share its limit."""
    name, models = str(lane["lane"]), lane["models"]
    return f"{name}, shared by {first_of(models, _SHOWN_MODELS)}" if len(models) > 1 else name


_LANES: Final[Columns[Mapping[str, Any]]] = {
    "lane": _lane_text,
    "limited by": lambda lane: str(lane["limited_by"]),
    "limits in force": _limits_text,
    "in flight": lambda lane: count(lane["in_flight"]),
}


def _worker_sheet(workers: Sequence[Mapping[str, Any]]) -> Sheet:
    together = sum(worker["calls_per_s"] for worker in workers)
    columns: Columns[Mapping[str, Any]] = {
        "worker": lambda one: f"{one['name']} on {one['host']}" if one.get("host") else one["name"],
        "in flight": lambda one: count(one["in_flight"]),
        "calls made": lambda one: count(one["calls"]),
        "calls per s": lambda one: f"{one['calls_per_s']:,.1f}",
        "of all calls": lambda one: (
            percent(one["calls_per_s"] / together, decimals=0) if together else MISSING
        ),
        "lag ms": lambda one: f"{1000 * one['lag_s']:,.1f}",
        "deaths": lambda one: count(one["deaths"]),
    }
    return Sheet.of("", columns, workers)


def _size(size: int) -> str:
    """Return bytes as people say them."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
