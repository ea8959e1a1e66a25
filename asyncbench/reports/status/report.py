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
from asyncbench.analysis.folder_report import FolderReport
from asyncbench.analysis.served import note_of_simulated
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
from asyncbench.store.manifest import SWEEP_FILE, planned_trials, read_manifest, simulated_note
from asyncbench.store.segment import QUARANTINE
from asyncbench.store.status import ModelCounts, Upkeep, read_upkeep, trial_counts
from asyncbench.tables.numbers import (
    MISSING,
    at_least,
    complete_sum,
    count,
    counted_note,
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


MOST_ROWS: Final = 20  # of the table of batches; a note counts the others


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesStatus:
    """The states of a folder's batches at one time."""

    parts: tuple[PartStatus, ...]  # each is sent as one batch
    at: float  # the time of these states: UTC, seconds since 1970
    written_at: float = 0.0  # the time of the ledger's latest line; 0: it has none

    @property
    def open(self) -> list[PartStatus]:
        """The batches whose results may still come, first those that need a person."""
        order = list(PartState)
        return sorted(
            (batch for batch in self.parts if batch.open), key=lambda batch: order.index(batch.state)
        )

    @property
    def trials(self) -> Mapping[str, int]:
        """The number of trials in open batches, by model."""
        trials = Counter[str]()
        for batch in self.open:
            trials[batch.model] += batch.trials
        return trials

    def reserved_usd(self, aliases: Collection[str] | None) -> float:
        """Return the dollars that are reserved for the batches of these models. None means all models.

        Batches that were given up while their state was unknown still count: they may have been billed.
        """
        unsettled = (batch for batch in self.parts if batch.open or batch.state is PartState.LEFT)
        return sum(
            batch.reserved_usd or 0.0 for batch in unsettled if aliases is None or batch.model in aliases
        )

    def data(self) -> list[dict[str, object]]:
        """Return all batches for JSON, with times in ISO 8601."""
        return [batch.json_fields(self.at) for batch in self.parts]

    def sheet_and_notes(self) -> Iterator[str | Sheet]:
        """Yield the states of all batches, a table of the open ones, and warnings."""
        if not self.parts:
            return
        yield f"Batches: {states_text(self.parts)}."

        def remaining(moment: float | None) -> str:
            return MISSING if moment is None else days(moment - self.at)

        columns: Columns[PartStatus] = {
            "batch": lambda batch: batch.named,
            "model": lambda batch: batch.model,
            "state": lambda batch: batch.state.value,
            "as of": lambda batch: (
                MISSING if batch.known_at is None else f"{days(max(0.0, self.at - batch.known_at))} ago"
            ),
            "trials": lambda batch: count(batch.trials),
            "done": lambda batch: count(batch.answered) if batch.answered else MISSING,
            "age": lambda batch: days(self.at - batch.begun_at),
            "due within": lambda batch: (
                remaining(batch.window_ends_at) if (batch.window_ends_at or self.at) >= self.at else "overdue"
            ),
            "results kept": lambda batch: remaining(batch.deleted_at),
        }
        batches = self.open
        if batches:
            yield Sheet.of("", columns, batches[:MOST_ROWS], labels=3)
        if len(batches) > MOST_ROWS:
            yield f"{len(batches) - MOST_ROWS:,} more batches: --json lists all."
        if any(batch.known_at is not None for batch in batches):
            yield "A run asks the providers how their batches stand; `status --refresh` does so now."
        yield from warnings_on(self.parts, now=self.at)


def batches_in(folder: Path, *, running: bool) -> BatchesStatus:
    """Read the states of a folder's batches. Nothing is written, and no provider is asked.

    Raises:
        StoreError: the ledger is damaged in a line that cannot be left out.
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
    """The progress of one model."""

    model: str
    planned: int | None  # trials of the whole sweep; None: no run has planned it
    done: int
    failed: int  # trials of `done` without a reply
    open: int | None  # planned trials that are neither done nor skipped
    in_flight: int  # calls that have begun and not ended; when no run is going, they are lost
    suspended: str | None  # the kind of error that suspended the model; None: it is not suspended
    attempts: int
    unpriced_attempts: int
    cost_usd: float | None  # sum of the known costs of attempts; None: no attempt has a known cost
    skipped: int = 0  # trials that the present `stop_when` leaves out, as enough is known of their cells
    in_batches: int = 0  # trials of `open` that are in batches, of known or unknown state
    loaded: int = 0  # trials of load tests, which count only in attempts and cost
    steps: Mapping[str, int] = field(default_factory=dict)  # of load tests: `measured` or why not → number

    @property
    def load_text(self) -> str:
        """The number of steps of load tests by result, in words; empty where there was no load test."""
        if not self.steps:
            return f"{self.model} under load: no step is over yet" if self.loaded else ""
        results = ", ".join(f"{number:,} {result.replace('_', ' ')}" for result, number in self.steps.items())
        steps = sum(self.steps.values())
        return f"{self.model} under load: {steps:,} step{'s' * (steps > 1)}, {results}"

    @property
    def only_loaded(self) -> bool:
        """True if only load tests asked the model: they have steps and no planned trials."""
        return self.planned == 0 and bool(self.load_text)

    def as_row(self, *, skipped: bool, batches: bool) -> tuple[str, ...]:
        """Return the cells of the table's row, with or without those of skipped trials and of batches."""
        closed = (self.done, self.skipped) if skipped else (self.done,)
        unended = (self.in_batches, self.in_flight) if batches else (self.in_flight,)
        trials: Iterable[int | None] = (self.planned, *closed, self.failed, self.open)
        figures = ["-" if self.only_loaded else "?" if number is None else f"{number:,}" for number in trials]
        figures += [f"{number:,}" for number in (*unended, self.attempts)]
        return self.model, *figures, self.cost_text, f"suspended: {self.suspended}" if self.suspended else ""

    @property
    def cost_text(self) -> str:
        """The cost in words, with the number of calls whose cost is unknown."""
        if self.cost_usd is None:
            return dollars(None)
        unpriced = number_of(self.unpriced_attempts, "call")
        more = f" + {unpriced} of unknown cost" if self.unpriced_attempts else ""
        return at_least(dollars(self.cost_usd), partial=more) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class CapStatus:
    """The spending of a budget."""

    name: str  # `sweep night`, `provider openai`, `model gpt`
    limit_usd: float
    spent_usd: float  # the cost of calls; one of unknown cost counts with its highest possible cost
    reserved_usd: float  # for calls in flight; when no run is going, they are lost and count as spent
    doubted_usd: float = 0.0  # the dollars of `spent_usd` that are for calls of unknown cost
    doubted_calls: int = 0  # the number of calls of unknown cost
    unended_calls: int = 0  # the number of calls that `reserved_usd` is for
    in_batches_usd: float = 0.0  # reserved for batches that are open or of unknown state

    def said(self, *, running: bool) -> str:
        """Return the spending in words. Calls that have not ended are in flight if `running`, else lost."""
        from asyncbench.run.costs import spent_text  # 0.2 s, which a folder without budgets need not wait for

        lost_usd, lost_calls = (0.0, 0) if running else (self.reserved_usd, self.unended_calls)
        return spent_text(
            self.name,
            self.spent_usd + lost_usd,
            self.limit_usd,
            reserved_usd=self.in_batches_usd + (self.reserved_usd if running else 0.0),
            doubted_usd=self.doubted_usd + lost_usd,
            doubted_calls=self.doubted_calls + lost_calls,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeByHand:
    """A change that a person made while a run was going."""

    what: str  # the time (UTC), the person and the change, in words
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(FolderReport):
    """The progress of a sweep, and the state of its folder."""

    sweep: str
    written_at: str | None  # UTC, ISO 8601
    cost_usd: float | None  # sum of the known costs of attempts; None: no attempt has a known cost
    unpriced_attempts: int
    waiting: dict[str, int]  # by table: rows that are only in the journal so far
    ungraded: int  # answers that are not graded yet; the next run grades them
    damaged_lines: int  # of the journal
    quarantined_lines: int  # damaged lines of earlier journals, kept in a folder of their own
    files: Upkeep
    models: tuple[ModelStatus, ...]
    budget: tuple[CapStatus, ...] = ()  # as of the latest run
    batches: BatchesStatus | None = None  # None: there are none
    lapsed: int = 0  # open trials that an earlier `stop_when` left out, but the present rule does not
    lanes: tuple[Mapping[str, Any], ...] = ()  # of the run that is going; empty: none is, or it shows none
    workers: tuple[Mapping[str, Any], ...] = ()  # likewise; empty also where the run has no workers
    changes: tuple[ChangeByHand, ...] = ()  # the oldest first
    outside: int = 0  # answers of batches whose trials are no longer in the sweep
    elsewhere: str | None = None  # a note: another machine writes to the copy of the folder in a bucket
    apart: ClassVar[str] = "\n"  # between notes and tables: no blank lines

    @property
    def running(self) -> bool:
        """True if a process is writing to the folder."""
        return self.files.writer is not None

    @property
    def whole(self) -> ModelStatus:
        """All models together."""
        counts = ("done", "failed", "in_flight", "in_batches", "attempts", "skipped", "loaded")
        return ModelStatus(
            **{name: sum(getattr(model, name) for model in self.models) for name in counts},
            model="all",
            planned=complete_sum(model.planned for model in self.models),
            open=complete_sum(model.open for model in self.models),
            suspended=None,
            unpriced_attempts=self.unpriced_attempts,
            cost_usd=self.cost_usd,
            steps=sum((Counter(model.steps) for model in self.models), Counter()),
        )

    def content(self) -> Iterator[str | Sheet]:
        yield from self.simulated_notes()
        writer = f"; process {self.files.writer or 'unknown'} is writing to it" if self.running else ""
        yield f"{self.sweep} in {self.folder}, last written {self.written_at or 'never'}{writer}"
        yield from [self.elsewhere] if self.elsewhere else []

        # The models, with columns of skipped trials and of batches only where there are any.
        skipped = any(model.skipped for model in self.models)
        batches = any(model.in_batches for model in self.models)
        total = [self.whole] if len(self.models) > 1 else []
        yield Sheet(
            title="",
            head=(
                *("model", "planned", "done", *["skipped"] * skipped, "failed", "open"),
                *(*["in batches"] * batches, "in flight", "attempts", "cost", ""),
            ),
            rows=[model.as_row(skipped=skipped, batches=batches) for model in (*self.models, *total)],
        )

        # Load tests, budgets and batches.
        loads = [model.load_text for model in self.models if model.load_text]
        yield from loads
        if loads:
            yield f"asyncbench report {quoted(self.folder)} --style load shows what each step came to"
        for cap in self.budget:
            yield cap.said(running=self.running)
        if self.batches is not None:
            yield from self.batches.sheet_and_notes()
            for model in self.models:
                if model.in_batches and (unsent := (model.open or 0) - model.in_batches) > 0:
                    yield f"{model.model}: {unsent:,} open trials are in no batch yet. A run sends them."

        # The run that is going, changes by hand, and the files.
        if self.lanes:
            yield Sheet.of("", _LANES, self.lanes)
        if self.workers:
            yield _worker_sheet(self.workers)
        for change in self.changes[-_SHOWN_CHANGES:]:
            yield f"changed {change.what} [{', '.join(change.lanes)}]"
        yield from self._health()

    def as_line(self) -> str:
        """Return the progress of all models in one line."""
        models = list[str]()
        for model in self.models:
            planned = "?" if model.planned is None else f"{model.planned:,}"
            texts = [model.load_text if model.only_loaded else f"{model.model} {model.done:,}/{planned}"]
            texts += [f"{model.in_batches:,} in batches"] * bool(model.in_batches)
            texts += [f"{model.skipped:,} skipped"] * bool(model.skipped)
            texts += [f"{model.failed:,} failed"] * bool(model.failed)
            texts += [f"{model.in_flight:,} in flight", model.cost_text]
            texts += [f"suspended: {model.suspended}"] if model.suspended else []
            models.append(", ".join(texts))
        return safe_note(f"{self.written_at or 'never'} {'; '.join(models)}")

    def data(self) -> dict[str, Any]:  # Any: JSON
        return FolderReport.data(self) | {"batches": [] if self.batches is None else self.batches.data()}

    def _health(self) -> Iterator[str]:
        """Yield notes on skipped trials, the folder's files, answers without a grade, and damage."""
        if any(model.skipped for model in self.models):
            yield "skipped: made unnecessary by `stop_when`"
        yield from lapsed_notes(self.lapsed)

        files, journal = self.files, ""
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
        yield from counted_note(
            self.damaged_lines, "lines of the journal are damaged and left out. The rest is kept."
        )
        yield from counted_note(
            self.quarantined_lines, f"damaged lines of earlier journals are kept in {QUARANTINE}/."
        )
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
        counts = trial_counts(path)  # a line that was being written is whole by now
        damaged &= set(counts.damaged)

    batches = batches_in(path, running=files.writer is not None)
    stopped_cells = cells_still_stopped(
        path, (figures for model in counts.models.values() for figures in model.skips)
    )
    planned = planned_trials(manifest)
    models = tuple(
        replace(
            _model_status(name, counts.models.get(name, ModelCounts()), planned.get(name), stopped_cells),
            in_batches=batches.trials.get(name, 0),
        )
        for name in sorted({*planned, *counts.models})
    )

    latest = max(counts.written_at or 0.0, batches.written_at)  # batches may have no answer yet
    written_at = datetime.fromtimestamp(latest, UTC) if latest else None
    progress = RunProgress() if files.writer is None else progress_of_run(path)
    return Status(
        sweep=str(manifest["sweep"]),
        folder=display_name(folder),
        elsewhere=written_elsewhere(path),
        simulated_note=simulated_note(manifest) if manifest.get("simulated") else "",
        written_at=None if written_at is None else written_at.isoformat("T", "seconds"),
        cost_usd=total_cost(model.cost_usd for model in models),
        unpriced_attempts=sum(model.unpriced_attempts for model in models),
        waiting=dict(counts.waiting),
        ungraded=counts.ungraded,
        outside=counts.outside,
        damaged_lines=len(damaged),
        quarantined_lines=sum(counts.quarantined.values()),
        files=files,
        models=models,
        budget=tuple(_caps(path, batches)),
        batches=batches if batches.parts else None,
        # Trials that a run has skipped, less those that the present rule would skip, too.
        lapsed=sum(model.skipped for model in counts.models.values())
        - sum(model.skipped for model in models),
        lanes=progress.lanes,
        workers=progress.workers,
        changes=tuple(
            ChangeByHand(what=what, lanes=tuple(dict.fromkeys(lanes)))
            for what, lanes in counts.changes.items()
        ),
    )


def joined_status(views: FolderViews, statuses: Sequence[Status]) -> Status:
    """Return the progress of several folders as one.

    Where only some of the trials are chosen, it has their results alone, and not what was planned.
    """
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
            for row in views.rows(_DONE_BY_MODEL)
        ]
    return replace(
        statuses[0],
        sweep=str(views.manifest["sweep"]),
        folder=str(views.chosen),
        simulated_note=note_of_simulated(views, simulated=any(status.simulated for status in statuses)),
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


_DONE_BY_MODEL = f"""
SELECT model, trials AS done, failed, coalesce(attempts, 0) AS attempts,
    coalesce(unpriced_attempts, 0) AS unpriced_attempts, calls.cost_usd
FROM ({counts_by("trials", ("model",), only=("trials", "failed"))}) LEFT JOIN (
    SELECT model, count(*) AS attempts, count(*) - count(cost_usd) AS unpriced_attempts,
        spent_usd(cost_usd) AS cost_usd
    FROM attempts GROUP BY model
) AS calls USING (model) ORDER BY model
"""  # noqa: S608  made of our own words alone


def _caps(folder: Path, batches: BatchesStatus) -> Iterator[CapStatus]:
    """Yield the spending of each budget, with what is reserved for batches of its models."""
    for cap in cap_uses(folder):
        aliases: set[str] | None  # of the models that it holds for; None: all
        match cap.kind:
            case "sweep":
                aliases = None
            case "model":
                aliases = {cap.of, *cap.also}
            case _:
                aliases = aliases_of(cap.of, folder)
        yield CapStatus(
            name=f"{cap.kind} {cap.of}",
            limit_usd=cap.limit_usd,
            spent_usd=cap.spent_usd,
            reserved_usd=cap.reserved_usd,
            doubted_usd=cap.doubted_usd,
            doubted_calls=cap.doubted_calls,
            unended_calls=cap.unended_calls,
            in_batches_usd=batches.reserved_usd(aliases),
        )


def _model_status(
    name: str, counts: ModelCounts, planned: int | None, stopped_cells: Container[CellCounts]
) -> ModelStatus:
    """Return the progress of a model by its counts. Of its skips only those in stopped cells still hold."""
    if planned is None and (counts.loaded or counts.steps) and not counts.finished:
        planned = 0  # a load test plans steps instead of trials
    steps = Counter(
        verdict if verdict in (INCOMPLETE, CLIENT_BOUND) else "measured"
        for verdict in counts.steps.elements()
    )
    skipped = sum(trials for figures, trials in counts.skips.items() if figures in stopped_cells)
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
        steps={result: steps[result] for result in ("measured", INCOMPLETE, CLIENT_BOUND) if steps[result]},
    )


def _limits_text(lane: Mapping[str, Any]) -> str:
    limits = [f"{limit:,.10g} {name}" for name, limit in lane["limits"].items()]
    limits += [f"{lane['concurrency']:,} at once"] if lane["concurrency"] else []
    return ", ".join(limits) or MISSING


def _lane_text(lane: Mapping[str, Any]) -> str:
    """Return the name of a lane, with the models that share its limit."""
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
        "worker": lambda worker: (
            f"{worker['name']} on {worker['host']}" if worker.get("host") else worker["name"]
        ),
        "in flight": lambda worker: count(worker["in_flight"]),
        "calls made": lambda worker: count(worker["calls"]),
        "calls per s": lambda worker: f"{worker['calls_per_s']:,.1f}",
        "of all calls": lambda worker: (
            percent(worker["calls_per_s"] / together, decimals=0) if together else MISSING
        ),
        "lag ms": lambda worker: f"{1000 * worker['lag_s']:,.1f}",
        "deaths": lambda worker: count(worker["deaths"]),
    }
    return Sheet.of("", columns, workers)


def _size(size: int) -> str:
    """Return a number of bytes in MB or kB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
