"""The batches of a results folder as `status` shows them: each that is open, then what a person has to do."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asyncbench.config.sweep import priced_models
from asyncbench.errors import ConfigError
from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.status import PartStanding, Stand, part_statuses, states_text, warnings_on
from asyncbench.store.manifest import SWEEP_FILE
from asyncbench.tables.numbers import MISSING, days
from asyncbench.tables.report import Sheet

MOST_ROWS: Final = 20
HEAD: Final = ("batch", "model", "state", "as of", "trials", "done", "age", "due within", "results kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesStatus:
    """How the batches of a folder stand."""

    parts: tuple[PartStanding, ...]
    at: float  # UTC, seconds since 1970: when that was
    written_at: float = 0.0  # the ledger's latest line; 0: there is none

    @property
    def open(self) -> list[PartStanding]:
        """Return those that are not over, first those that need a person."""
        order = list(Stand)
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
        unsettled = (part for part in self.parts if part.open or part.state is Stand.LEFT)
        return sum(part.reserved_usd or 0.0 for part in unsettled if aliases is None or part.model in aliases)

    def data(self) -> list[dict[str, object]]:
        """Return all parts for a script, with times in ISO 8601."""
        return [part.as_data(self.at) for part in self.parts]

    def sheet_and_notes(self) -> Iterator[str | Sheet]:
        if not self.parts:
            return
        shown = self.open
        yield f"Batches: {states_text(self.parts)}."
        if shown:
            yield Sheet(title="", head=HEAD, rows=list(map(self._row, shown[:MOST_ROWS])), labels=3)
        if len(shown) > MOST_ROWS:
            yield f"{len(shown) - MOST_ROWS:,} more batches: --json lists all."
        if any(part.known_at is not None for part in shown):
            yield "A run asks the providers how their batches stand; `status --refresh` does so now."
        yield from warnings_on(self.parts, now=self.at)

    def _row(self, part: PartStanding) -> Sequence[str]:
        return (
            part.named,
            part.model,
            part.state.value,
            MISSING if part.known_at is None else f"{days(max(0.0, self.at - part.known_at))} ago",
            f"{part.trials:,}",
            f"{part.answered:,}" if part.answered else MISSING,
            days(self.at - part.begun_at),
            self._left(part.window_ends_at) if (part.window_ends_at or self.at) >= self.at else "overdue",
            self._left(part.deleted_at),
        )

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
