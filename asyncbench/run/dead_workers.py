"""Work of dead workers: as their journals show or, where none can be read, their greatest possible cost."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow.compute

from asyncbench.cluster.messages import ClosedTrial, JournalCosts, JournalSummary
from asyncbench.engine.budget import Ledger
from asyncbench.errors import AsyncbenchError
from asyncbench.files import storing
from asyncbench.pricing import picodollars
from asyncbench.records import Outcome
from asyncbench.store.budget_state import spending_of
from asyncbench.store.catalog import known_trials, read_attempts, read_skipped, read_trials, texts
from asyncbench.store.copying import FolderCopy
from asyncbench.store.folder import Store
from asyncbench.store.manifest import is_results_folder, workers_folder

pc: Any = pyarrow.compute  # its stubs know no function of an expression

MORE: Final = Fraction(21, 20)  # than a worker may cost: that much is written down
FEWER: Final = Fraction(4, 5)  # of what is written down: it is put right
LEASES: Final = "leases.jsonl"  # in a results folder: what each worker may have cost at most
RELEASED_WITHIN_S: Final = 5.0  # the lock of a process that was killed
POLL_EVERY_S: Final = 0.1


def read_journal(out: Path, worker: str) -> JournalSummary | None:
    """Return what the folder of a dead worker tells; None: it cannot be read, or the worker still writes.

    What a crash left in it is recovered.
    """
    folder = workers_folder(out) / worker
    if not is_results_folder(folder):
        return None
    ends_s = time.monotonic() + RELEASED_WITHIN_S
    while True:
        try:
            Store.reopen(folder).close()
            return _read(folder)
        except AsyncbenchError:
            if time.monotonic() > ends_s:
                return None
            time.sleep(POLL_EVERY_S)


def _read(folder: Path) -> JournalSummary:
    rows = read_trials(folder, ["trial_id", "outcome", "exact_match"]).to_pylist()
    return JournalSummary(
        closed={row["trial_id"]: _closed(row["outcome"], right=row["exact_match"]) for row in rows},
        skipped=frozenset(texts(read_skipped(folder, ["trial_id"])["trial_id"].combine_chunks())),
        histories=known_trials(folder).histories,
        costs=dict(_costs(folder)),
    )


def _closed(outcome: str, *, right: bool) -> ClosedTrial:
    failed = outcome == Outcome.FAILED
    return ClosedTrial(outcome=Outcome(outcome), right=None if failed else right)


def _costs(folder: Path) -> Iterator[tuple[str, JournalCosts]]:
    for alias, spending in spending_of(folder).by_alias.items():
        known = spending.charges()
        yield (
            alias,
            JournalCosts(
                spent=known.charged + known.reserved,
                doubted=known.doubted + known.reserved,
                doubted_calls=known.doubted_calls + known.unended_calls,
            ),
        )


def known_of_worker(folder: Path, worker: str) -> dict[str, int]:
    """Return what the calls of a worker count that a results folder has, picodollars, by alias."""
    name = pc.field("worker")
    own = (name == worker) | pc.starts_with(name, f"{worker}.")
    spent = Counter[str]()
    for row in read_attempts(folder, ["model", "cost_usd", "reserved_usd"], own).to_pylist():
        usd = row["reserved_usd"] if row["cost_usd"] is None else row["cost_usd"]
        spent[row["model"]] += picodollars(usd or 0.0)
    return dict(spent)


def spent_by_lost(folder: Path, copy: FolderCopy | None) -> dict[str, dict[str, int]]:
    """Return what workers of earlier runs may have cost whose journals other machines have.

    It is in picodollars by worker and alias, beside what is known. `copy` is the folder's in a bucket.
    """
    leases, possible = LeaseFile(folder), dict[str, dict[str, int]]()
    for worker, most in leases.open().items():
        if copy is None or copy.workers.get(worker, False):  # its folder was read as a whole
            leases.settle(worker)
            continue
        known = known_of_worker(folder, worker)
        excess = {alias: amount - known.get(alias, 0) for alias, amount in most.items()}
        possible[worker] = {alias: amount for alias, amount in excess.items() if amount > 0}
    return possible


def charge_lost(ledger: Ledger, lost: Mapping[str, Mapping[str, int]]) -> None:
    """Count what lost workers may have cost as spent."""
    for alias, amount in (costs for most in lost.values() for costs in most.items()):
        if (account := ledger.account_of(alias)) is not None:
            account.settle_elsewhere(reserved=0, spent=amount, doubted=amount, doubted_calls=1)


class LeaseFile:
    """The most that each worker may have cost, written down before the worker hears of its dollars.

    It is for workers whose journal nobody can read: their machine is gone. Each line has a worker, an alias
    and picodollars as text; without an alias, what that worker cost is known by now.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEASES
        self._noted: dict[tuple[str, str], int] = {}

    def open(self) -> dict[str, dict[str, int]]:
        """Return what workers may have cost at most of which nobody knows more, by worker and alias."""
        self._end_torn_line()
        most: dict[str, dict[str, int]] = {}
        for worker, alias, noted in self._lines():
            if alias is None:
                most.pop(worker, None)
            else:
                most.setdefault(worker, {})[alias] = int(noted)
        return most

    def note(self, worker: str, alias: str, amount: int) -> None:
        """Write down what a worker may cost at most on a model, picodollars; a little more saves lines."""
        noted = self._noted.get((worker, alias), 0)
        if amount > noted or amount < FEWER * noted:
            self._noted[worker, alias] = ceil(amount * MORE)
            self._append(worker, alias, str(ceil(amount * MORE)))

    def settle(self, worker: str) -> None:
        """Write down that what a worker cost is known."""
        self._append(worker, None, "0")

    def forget(self) -> None:
        """Remove the file: what all workers cost is known."""
        with storing(self._path):
            self._path.unlink(missing_ok=True)

    def _end_torn_line(self) -> None:
        """Have the next line stand by itself: a crash may have cut the last one off."""
        with suppress(FileNotFoundError):
            if not self._path.read_bytes().endswith(b"\n"):
                with storing(self._path), self._path.open("ab") as file:
                    file.write(b"\n")

    def _append(self, *line: str | None) -> None:
        with storing(self._path), self._path.open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")

    def _lines(self) -> Iterator[tuple[str, str | None, str]]:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        for line in text.splitlines():
            with suppress(ValueError):  # what a crash cut off: the worker never heard of it
                yield tuple(orjson.loads(line))
