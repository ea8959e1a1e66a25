"""What a results folder holds, at a glance: planned, done, failed and dollars, per model."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from asyncbench.analysis.tables import SIMULATED, as_lines, columns, dollars
from asyncbench.records import Outcome
from asyncbench.store.catalog import ModelCounts, counts
from asyncbench.store.manifest import planned, read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """How far one model is."""

    model: str
    planned: int | None  # trials of the whole sweep; None where no run has planned it
    done: int
    failed: int  # done, without a reply
    attempts: int
    unpriced_attempts: int
    cost_usd: float | None  # of the attempts whose cost is known; None: of none is it known

    def as_row(self) -> tuple[str, ...]:
        """Return the figures as they are shown."""
        planned = "?" if self.planned is None else f"{self.planned:,}"
        cost = dollars(self.cost_usd)
        if self.unpriced_attempts:
            cost += f" + {self.unpriced_attempts:,} unpriced"
        return self.model, planned, f"{self.done:,}", f"{self.failed:,}", f"{self.attempts:,}", cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a sweep is."""

    sweep: str
    folder: str
    simulated: bool
    written_at: str | None  # UTC, ISO 8601
    damaged_lines: int  # of the journal
    models: tuple[ModelStatus, ...]

    def as_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(asdict(self), indent=2)

    def as_text(self) -> str:
        """Return a table for a terminal."""
        head = ("model", "planned", "done", "failed", "attempts", "cost")
        table = columns(head, [one.as_row() for one in self.models], labels=1)
        written = f"{self.sweep} in {self.folder}, last written {self.written_at or 'never'}"
        damage = f"{self.damaged_lines} lines of the journal are damaged and were left out; the rest is kept"
        notes = [SIMULATED] * self.simulated + [written] + [damage] * bool(self.damaged_lines)
        return "\n".join([*notes, as_lines(table)])


def status_of(folder: Path | str) -> Status:
    """Return how far the sweep in a results folder is, whether or not a run is going.

    Raises:
        ConfigError: it is not a results folder.
    """
    found = counts(folder)
    manifest = read_manifest(Path(folder))
    trials = Counter[str]()
    for (_, model, _), suites in planned(manifest).items():
        trials[model] += sum(sum(tasks.values()) for tasks in suites.values())
    names = sorted({*trials, *found.models})
    return Status(
        sweep=str(manifest["sweep"]),
        folder=str(folder),
        simulated=bool(manifest.get("simulated")),
        written_at=_iso(found.written_at),
        damaged_lines=len(found.damaged),
        models=tuple(_model(name, found.models.get(name, ModelCounts()), trials.get(name)) for name in names),
    )


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat("T", "seconds")


def _model(name: str, found: ModelCounts, planned: int | None) -> ModelStatus:
    return ModelStatus(
        model=name,
        planned=planned,
        done=found.finished,
        failed=found.outcomes.get(Outcome.FAILED, 0),
        attempts=found.attempts,
        unpriced_attempts=found.unpriced,
        cost_usd=found.cost_usd,
    )
