"""Folders of workers beside that of their run, and all that a reader can tell of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from asyncbench.records import Ended, Event, History, Outcome, Reply, Result, Sent, Trial
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import known_trials
from asyncbench.store.folder import Store
from asyncbench.store.manifest import workers_folder
from asyncbench.store.reading import take_snapshot
from asyncbench.store.schema import SCHEMAS
from asyncbench.store.status import trial_counts
from tests.store import made

SWEEP = "night"


def worker(folder: Path, name: str) -> Store:
    return Store.open(workers_folder(folder) / name, sweep=SWEEP)


def write(folder: Path, name: str | None, *events: Event) -> None:
    """Write events down in the folder of a worker, None: of the run itself, and seal them."""
    with Store.open(folder, sweep=SWEEP) if name is None else worker(folder, name) as store:
        made.keep(store, *events)


def write_and_die(folder: Path, name: str | None, *events: Event) -> None:
    """Leave a folder as a killed process does: what it kept is in its journal."""
    store = Store.open(folder, sweep=SWEEP) if name is None else worker(folder, name)
    made.keep(store, *events)
    store.journal.segment.sync()
    store._exits.close()  # what the system does for a process that dies; the journal is as it was


def call(
    asked: Trial, answer: Reply | None, at_s: float, history: History | None = None
) -> tuple[Sent, Ended]:
    """Return a call from its begin to its end, so many seconds into the night, after those of a history."""
    number = 1 + (history.attempts if history else 0)
    sent, ended = made.sent(asked, attempt=number), made.ended(asked, answer, attempt=number)
    at = made.AT + at_s
    return (
        replace(sent, started_at=at, reserved_usd=0.5),
        replace(ended, attempt=replace(ended.attempt, started_at=at, reserved_usd=0.5)),
    )


def closed(
    n: int, at_s: float, outcome: Outcome = Outcome.CORRECT, *, history: History | None = None
) -> tuple[Sent, Ended, Result]:
    """Return all events of a trial that is asked once, so many seconds into the night."""
    asked = made.trial(n)
    answer = None if outcome is Outcome.FAILED else made.reply(n)
    history = history or History(attempts=0, cost_usd=0.0)
    cost_usd = None if history.cost_usd is None else history.cost_usd + 0.25
    result = made.result(asked, answer, attempts=history.attempts + 1, cost_usd=cost_usd)
    grades = tuple(replace(grade, outcome=outcome) for grade in result.grades)
    finished_at = made.AT + at_s + 2
    return *call(asked, answer, at_s, history), replace(result, grades=grades, finished_at=finished_at)


def unclosed(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events as far as a process came that died before it could grade anything."""
    return (event for event in events if isinstance(event, Sent | Ended))


def unended(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events as far as a process came that died while it waited for its answers."""
    return (event for event in events if isinstance(event, Sent))


def told(folder: Path) -> dict[str, Any]:  # Any: whatever a reader tells
    """Return all that readers tell of a folder: its rows, what is known and open, what it cost."""
    seen, known, counts, books = (
        take_snapshot(folder),
        known_trials(folder),
        trial_counts(folder),
        spending_of(folder),
    )
    tables = {name: sorted(map(repr, seen.read(name).to_pylist())) for name in SCHEMAS}
    in_batches = {
        name: sorted(repr(row) for batch in seen.batches(name, rows=3) for row in batch.to_pylist())
        for name in SCHEMAS
    }
    assert in_batches == tables
    return {
        "tables": tables,
        "finished": set(known.finished),
        "failed": set(known.failed),
        "histories": dict(known.histories),
        "models": counts.models,
        "ungraded": counts.ungraded,
        "charges": books.charges("sweep", SWEEP),
        "doubts": (books.damaged, books.unknown_loss, books.dearest),
    }


def mixed(folder: Path) -> None:
    """Write a fleet in which all has happened: asked again, by two workers, skipped, ungraded, lost."""
    once = History(attempts=1, cost_usd=0.25)
    write(folder, None, *closed(1, 10, Outcome.NO_ANSWER), *closed(2, 20, Outcome.NO_ANSWER), *closed(3, 30))
    write_and_die(folder, None, made.skipped(4), made.skipped(5), made.skipped(15), made.minute("large"))
    write(folder, "w001-e1", *closed(1, 100, history=once), *closed(6, 60, Outcome.TRUNCATED), *closed(7, 70))
    shared = [*unclosed(closed(8, 80)), *unended(closed(9, 90)), made.skipped(5)]
    write_and_die(folder, "w002-e1", *closed(6, 160), *closed(4, 40), *shared, made.minute("small"))
    write(
        folder,
        "w002-e2",
        replace(closed(8, 80)[-1], attempts=1),
        *closed(2, 200, Outcome.FAILED, history=once),
    )
    write_and_die(folder, "w003-e1", *unclosed(closed(11, 110)), *closed(12, 120), *closed(9, 190))
