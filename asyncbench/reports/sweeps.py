"""The sweeps below a folder, a row each: `view`, `report` and `status` show this list."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from asyncbench.analysis.choosing import Chosen
from asyncbench.analysis.counting import FolderViews, counted
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.files import home_expanded, quoted
from asyncbench.records import Outcome
from asyncbench.store.bucket.objects import s3_address
from asyncbench.store.lock import writer_of
from asyncbench.store.manifest import (
    IMPORTED,
    planned_trials,
    read_manifest,
    simulated_note,
    sweeps_below,
)
from asyncbench.store.status import count_models
from asyncbench.tables.data import HIDDEN, in_data
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
from asyncbench.tables.report import Columns, Report, Sheet

_SHOWN_MODELS: Final = 2  # of a sweep that are named in its row


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTotals:
    """What one model of a sweep came to."""

    model: str
    trials: int  # with a result, failed ones included, but for those of loads
    correct: int
    failed: int  # trials without a reply
    loaded: int  # trials of loads, which have no part in the accuracy
    attempts: int
    unpriced_attempts: int  # calls whose cost is unknown
    cost_usd: float | None  # sum of the known costs of calls; None: no call has a known cost

    @property
    @in_data("accuracy")
    def accuracy(self) -> float | None:
        """The share of trials that are right, or None without trials."""
        return self.correct / self.trials if self.trials else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTotals:
    """What the rows of a results folder come to, which a large folder keeps."""

    models: tuple[ModelTotals, ...]
    answered_at: datetime | None  # UTC; None: there is no answer yet


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One sweep of a list."""

    name: str  # its path below the folder that is listed
    folder: str
    models: tuple[ModelTotals, ...] = ()
    planned: int | None = (
        None  # trials of the whole sweep; None: no run has planned it, as of imported results
    )
    answered_at: str | None = None  # time of the last answer (UTC, ISO 8601); None: there is none yet
    age_s: float | None = None  # seconds since then
    running: bool = False  # whether a process is writing to it
    in_flight: int = 0  # calls without an end; when no run is going, they are lost
    mark: str = ""  # SIMULATED or RECORDED, where no model was asked; else empty
    imported: bool = False  # whether other tools asked
    unreadable: str | None = None  # why it cannot be read; None: it can

    @property
    @in_data("trials")
    def trials(self) -> int | None:
        """The number of trials with a result, those of loads too, or None if it cannot be read."""
        return None if self.unreadable else sum(model.trials + model.loaded for model in self.models)

    @property
    @in_data("accuracy")
    def accuracy(self) -> float | None:
        """The share of trials that are right, of all models together, or None without trials."""
        trials = sum(model.trials for model in self.models)
        return sum(model.correct for model in self.models) / trials if trials else None

    @property
    @in_data("cost_usd")
    def cost_usd(self) -> float | None:
        """The sum of the known costs of calls, or None if no call has a known cost."""
        return None if self.unreadable else total_cost(model.cost_usd for model in self.models)

    @property
    @in_data("unpriced_attempts")
    def unpriced_attempts(self) -> int:
        """How many calls have no known cost."""
        return sum(model.unpriced_attempts for model in self.models)

    @property
    def accuracy_text(self) -> str:
        """The accuracy of its model; of several, the lowest and the highest."""
        shares = sorted(model.accuracy for model in self.models if model.accuracy is not None)
        texts = dict.fromkeys(percent(share) for share in (shares[0], shares[-1])) if shares else [MISSING]
        return " to ".join(texts)

    @property
    def cost_text(self) -> str:
        return (
            MISSING if self.unreadable else at_least(dollars(self.cost_usd), partial=self.unpriced_attempts)
        )

    @property
    def state_text(self) -> str:
        """What to know of it: whether it runs, who answered, or that it cannot be read."""
        words = ["running"] * self.running + [self.mark] * bool(self.mark) + ["imported"] * self.imported
        return "cannot be read" if self.unreadable else ", ".join(words)


_BEFORE: Final[Columns[SweepRow]] = {
    "sweep": lambda row: row.name,
    "models": lambda row: first_of([model.model for model in row.models], _SHOWN_MODELS),
    "trials": lambda row: MISSING if row.trials is None else count(row.trials),
}
_PROGRESS: Final[Columns[SweepRow]] = {
    "planned": lambda row: MISSING if row.planned is None else count(row.planned),
    "in flight": lambda row: count(row.in_flight) if row.running else MISSING,
}
_AFTER: Final[Columns[SweepRow]] = {
    "accuracy by model": lambda row: row.accuracy_text,
    "cost": lambda row: row.cost_text,
    "age": lambda row: MISSING if row.age_s is None else days(row.age_s),
    "": lambda row: row.state_text,
}
_NARROW: Final[Columns[SweepRow]] = {
    "models": lambda row: MISSING if row.unreadable else count(len(row.models))
}  # where names do not fit


def sheet_of(rows: Sequence[SweepRow], *, progress: bool) -> Sheet:
    """Return the table of some sweeps; `progress`: with what is planned and in flight."""
    columns = {**_BEFORE, **(_PROGRESS if progress else {}), **_AFTER}
    return replace(
        Sheet.of("", columns, rows, labels=2), instead=[Sheet.of("", {**columns, **_NARROW}, rows)]
    )


def age_of(answered_at: str | None) -> float | None:
    """Return the seconds since the last answer came, or None without an answer."""
    if answered_at is None:
        return None
    return max(0.0, time.time() - datetime.fromisoformat(answered_at).timestamp())


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepList(Report):
    """The sweeps below a folder, running ones first, then by the time of their last answer."""

    folder: str
    sweeps: tuple[SweepRow, ...]
    progress: bool = field(default=False, metadata=HIDDEN)  # whether what is planned and in flight is shown

    def content(self) -> Iterator[str | Sheet]:
        running = sum(row.running for row in self.sweeps)
        yield f"{self.folder}: {number_of(len(self.sweeps), 'sweep')}" + f", {running:,} running" * bool(
            running
        )

        yield sheet_of(self.sweeps, progress=self.progress)

        for row in self.sweeps:
            if row.unreadable:
                yield f"{row.name} cannot be read: {row.unreadable}"
        readable = [row for row in self.sweeps if not row.unreadable]
        for row in readable[:1]:
            command = "status" if self.progress else "report"
            yield f"`asyncbench {command} {quoted(row.folder)}` shows one of them."


def list_sweeps(folder: Path | str) -> SweepList:
    """List the sweeps below a folder, running ones first, then the latest. Nothing is changed.

        print(ab.list_sweeps("results").as_text())
        {sweep.name: sweep.accuracy for sweep in ab.list_sweeps("results").sweeps}

    Args:
        folder: a folder above results folders, up to four levels deep.

    Returns:
        A `SweepList`. Each of its `sweeps` has `name`, `folder`, `models`, `trials`, `planned`, `accuracy`,
        `cost_usd`, `answered_at`, `age_s` and `running`. One that cannot be read says why in `unreadable`.

    Raises:
        ConfigError: There is no results folder below this one, or it is one itself.
    """
    if (listed := sweeps_in(folder)) is None:
        read_manifest(home_expanded(folder))  # which says why it is none
        raise ConfigError(f"{folder} is a results folder. Name the folder above it.")
    return listed


def sweeps_in(folder: Path | str, *, progress: bool = False) -> SweepList | None:
    """Return the list of the sweeps below a folder, or None if it is a results folder or holds none.

    Args:
        folder: the folder; one in a bucket has no list.
        progress: whether the list shows what is planned and in flight, too.
    """
    if s3_address(folder) is not None:
        return None
    path = home_expanded(folder)
    rows = [row_of(sweep, path) for sweep in sweeps_below(path)]
    return SweepList(folder=str(folder), sweeps=in_order(rows), progress=progress) if rows else None


def in_order(rows: Sequence[SweepRow]) -> tuple[SweepRow, ...]:
    """Return running sweeps first, then those with the latest answer; unreadable ones come last."""
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.unreadable is not None,
                not row.running,
                float("inf") if row.age_s is None else row.age_s,
                row.name,
            ),
        )
    )


def row_of(sweep: Path, above: Path) -> SweepRow:
    """Return the row of a sweep; where it cannot be read, the row says why."""
    name = str(sweep.relative_to(above))
    try:
        return counted(Chosen(paths=(sweep,), loaded=True), lambda views: _row(views, name))
    except (AsyncbenchError, OSError) as error:
        return SweepRow(name=name, folder=str(sweep), unreadable=str(error))


def _row(views: FolderViews, name: str) -> SweepRow:
    ((_, folder),) = views.folders
    totals = views.made_of_rows("totals of the sweep", SweepTotals, lambda: _totals(views))
    answered_at = totals.answered_at.isoformat("T", "seconds") if totals.answered_at else None
    return SweepRow(
        name=name,
        folder=str(folder),
        models=totals.models,
        planned=sum(planned_trials(views.manifest).values()) or None,
        answered_at=answered_at,
        age_s=age_of(answered_at),
        running=writer_of(folder) is not None,
        in_flight=len(views.unended),
        mark=simulated_note(views.manifest).partition(":")[0] if views.manifest.get("simulated") else "",
        imported=bool(views.manifest.get(IMPORTED)),
    )


def _totals(views: FolderViews) -> SweepTotals:
    (snapshot,) = views.snapshots
    latest = pc.max(snapshot.read("trials", ["finished_at"])["finished_at"]).as_py()
    models = (
        ModelTotals(
            model=model,
            trials=counts.finished,
            correct=counts.outcomes.get(Outcome.CORRECT, 0),
            failed=counts.outcomes.get(Outcome.FAILED, 0),
            loaded=counts.loaded,
            attempts=counts.attempts,
            unpriced_attempts=counts.unpriced,
            cost_usd=counts.cost_usd,
        )
        for model, counts in count_models(snapshot).items()
    )
    return SweepTotals(models=tuple(models), answered_at=latest and latest.astimezone(UTC))
