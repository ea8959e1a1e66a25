"""Batches that earlier runs left open: trials that are out, money set aside for them, and doubts."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, fsum, inf
from pathlib import Path
from typing import Final

from asyncbench.engine.budget import Account, Hold, Ledger
from asyncbench.engine.lane_model import LaneModel
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ConfigError
from asyncbench.files import write_durably
from asyncbench.lanes.batches.context import BatchContext
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.lanes.batches.packing import hold_of, manifest_rows
from asyncbench.store.sealing import missing_calls

USEFUL_PARTS: Final = 8  # of a model's trials, one after the other: smaller ones take too many days
SMALL_PARTS: Final = 3  # of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """The trials and money of one alias that earlier runs left open."""

    out: frozenset[str]  # trials that are in an open part: not to be asked in any other way
    abandoned: frozenset[str]  # trials that may have been asked, and are left by a person's word
    done: Mapping[str, frozenset[str]]  # by open part: trials whose end an earlier run wrote down
    rounds: Counter[str]  # parts that trials were in without an answer, but for cancelled and refused ones
    holds: tuple[Hold, ...]  # for requests that are out
    doubted: tuple[Hold, ...]  # for those that may have been, and of which nothing will be heard


def left_open(ledger: BatchLedger, alias: str, folder: Path) -> LeftOpen:
    """Return an alias's state after earlier runs, in a folder that is held for writing."""
    out, abandoned = set[str](), set[str]()
    done, holds, doubted = dict[str, frozenset[str]](), list[Hold](), list[Hold]()
    rounds = Counter[str]()
    for batch_part in ledger.parts_of(alias):
        given_up = batch_part.step in (Step.GIVEN_UP, Step.ABANDONED)
        if not (batch_part.open or given_up or batch_part.unanswered or batch_part.twins):
            continue
        rows = list(manifest_rows(ledger.path(batch_part, "manifest")))
        each = [hold_of(row) for row in rows]
        holds += batch_part.open_twins * each
        doubted += (batch_part.paid_twins + given_up) * each
        if batch_part.step is Step.ABANDONED:
            abandoned.update(row["trial_id"] for row in rows)
        if not batch_part.open:
            if batch_part.unanswered and batch_part.cancelled_at is None and not batch_part.faults:
                rounds.update(row["trial_id"] for row in rows)
            continue
        calls = {(row["trial_id"], row["attempt"]) for row in rows}
        waiting = missing_calls(calls, folder)
        ended = {trial_id for trial_id, _ in calls - waiting}
        holds += [hold_of(row) for row in rows if row["trial_id"] not in ended]
        out |= {trial_id for trial_id, _ in waiting}
        done[batch_part.key] = frozenset(ended)
    return LeftOpen(
        out=frozenset(out),
        abandoned=frozenset(abandoned),
        done=done,
        rounds=rounds,
        holds=tuple(holds),
        doubted=tuple(doubted),
    )


def most_usd_of(ledger: BatchLedger, parts: Iterable[BatchPart]) -> float | None:
    """Return the most USD that parts may cost, or None if a request of theirs has no known cost."""
    rows = (row for batch_part in parts for row in manifest_rows(ledger.path(batch_part, "manifest")))
    costs = [row["most_usd"] for row in rows]
    known_costs = [usd for usd in costs if usd is not None]
    return fsum(known_costs) if len(known_costs) == len(costs) else None


def trials_out(folder: Path, *, abandoned: bool = False) -> frozenset[str]:
    """Return the trials that are in open batches of a folder, which a run may be writing to.

    `abandoned`: also those of parts that may be in a batch of which nothing will be heard.
    """
    ledger, steps = BatchLedger(folder), {Step.ABANDONED} if abandoned else set[Step]()
    parts = [
        batch_part for batch_part in ledger.parts.values() if batch_part.open or batch_part.step in steps
    ]
    return frozenset(
        row["trial_id"] for batch_part in parts for row in manifest_rows(ledger.path(batch_part, "manifest"))
    )


def copy_given_up(folders: Iterable[Path], out: Path) -> None:
    """Note in a new folder what others will never know of: parts in doubt, and twins, that may have cost."""
    merged = BatchLedger(out)
    for folder in folders:
        ledger = BatchLedger(folder)
        for batch_part in ledger.parts.values():
            given_up = batch_part.step in (Step.GIVEN_UP, Step.ABANDONED)
            paid_twins = [*batch_part.twins][: batch_part.paid_twins]
            if not (given_up or paid_twins) or batch_part.key in merged.parts:
                continue
            noted_at, last_step = batch_part.at, batch_part.step
            merged.write(batch_part, Step.PREPARED, at=noted_at)
            manifest = merged.path(batch_part, "manifest")
            content = ledger.path(batch_part, "manifest").read_bytes()
            write_durably(manifest, content, temporary=manifest.with_suffix(".new"))
            for batch_id in paid_twins:
                merged.write(batch_part, Step.TWIN_ENDED, at=noted_at, batch_id=batch_id, used=None)
            merged.write(batch_part, last_step if given_up else Step.CLEANED, at=noted_at)
    merged.sync()
    merged.close()


def hold_again(ledger: Ledger | None, by_alias: Mapping[str, LeftOpen], selected: Collection[str]) -> None:
    """Set aside again, under the caps of a run, what is out for each alias.

    Of an alias that is not `selected` it counts as spent: waiting would not bring it back in this run.
    """
    if ledger is None:
        return
    sweep_caps = [cap for cap in ledger.caps if cap.kind == "sweep"]
    for alias, leftover in by_alias.items():
        account = ledger.account_of(alias)
        for hold in (*leftover.holds, *leftover.doubted):
            if account is not None:
                account.hold_again(hold)
                continue
            # The model left the sweep, and nobody knows any more whose its provider's cap is. It may cost the
            # sweep, and nothing settles it in this run.
            for cap in sweep_caps:
                cap.spent += hold.amount
                cap.doubted += hold.amount
                cap.doubted_calls += 1
        for hold in (*(() if alias in selected else leftover.holds), *leftover.doubted):
            if account is not None:
                account.settle(hold, None)


class Reserves:
    """Money set aside for a model's parts that no line of results settles.

    A second batch of a part costs as much again, until it has ended without doing anything. What may have
    been spent, and nobody will know in this run, counts as spent: waiting would not bring it back.
    """

    def __init__(self, ledger: BatchLedger, alias: str, account: Account | None) -> None:
        self._ledger, self._alias, self._account = ledger, alias, account
        # `hold_again` has set aside what these cost.
        self._twins = {batch_part.key: _count_twins(batch_part) for batch_part in ledger.parts_of(alias)}
        self._doubted = set[str]()

    def follow_twins(self) -> None:
        """Set aside, or give back, what second batches have changed."""
        for batch_part in self._ledger.parts_of(self._alias):
            counts_before = self._twins.get(batch_part.key, (0, 0, 0))
            counts = self._twins[batch_part.key] = _count_twins(batch_part)
            if self._account is None or counts == counts_before:
                continue
            begun, free, paid = (now - then for now, then in zip(counts, counts_before, strict=True))
            for hold in self._holds(batch_part):
                for _ in range(begun):
                    self._account.hold_again(hold)
                for actual_usd in free * [0.0] + paid * [None]:
                    self._account.settle(hold, actual_usd)

    def doubt(self, parts: Iterable[BatchPart], done: Mapping[str, Collection[str]]) -> None:
        """Count as spent what is set aside for parts that are left to later runs.

        `done`: by part, its trials whose end is written down.
        """
        if self._account is None:
            return
        for batch_part in parts:
            if batch_part.key in self._doubted:
                continue
            self._doubted.add(batch_part.key)
            for hold in self._holds(batch_part, done.get(batch_part.key, ())):
                self._account.settle(hold, None)

    def _holds(self, batch_part: BatchPart, done: Collection[str] = ()) -> list[Hold]:
        rows = manifest_rows(self._ledger.path(batch_part, "manifest"))
        return [hold_of(row) for row in rows if row["trial_id"] not in done]


def _count_twins(batch_part: BatchPart) -> tuple[int, int, int]:
    """Count the further batches of a part; of them, those that ended free, and the other ones that ended."""
    ended = len(batch_part.twins) - batch_part.open_twins
    return len(batch_part.twins), ended - batch_part.paid_twins, batch_part.paid_twins


class SmallParts:
    """The parts of a model that a budget keeps small: many would be a chain, each up to a day long."""

    def __init__(self, context: BatchContext, model: LaneModel) -> None:
        self._context, self._model = context, model
        largest = min(context.batching.max_requests, context.api.most_requests)
        self._useful = max(1, min(largest, ceil(model.counters.open / USEFUL_PARTS)))
        self._small = 0  # parts that were sent all the same

    def wait(self, pending: PendingTrial, requests: int) -> bool:
        """Whether a part of so many requests, with no money for the next, waits for what others give back.

        Where no other is open it is sent, a few times; then the model asks no more.
        """
        account, context = self._model.client.account, self._context
        if account is None or account.fits(pending.hold) or not 0 < requests < self._useful:
            return False
        if any(
            context.due.get(batch_part.key) != inf
            for batch_part in context.ledger.open_parts_of(context.alias)
        ):
            return True
        self._small += 1
        if self._small > SMALL_PARTS:
            self._model.queue.stop_for_money()
            account.stop(self._useful * pending.hold.amount, now=True, what="batch of a useful size")
            context.notify(
                f"all that a batch may cost is set aside, so the budget holds {requests:,} "
                f"trials at once, and {self._model.counters.open:,} are open. That is a chain of small "
                "batches, each up to a day long, so this run ends it. Raise the budget, lower `max_tokens`, "
                "or ask the rest with --mode realtime."
            )
        return False


# ── Decisions of a person ────────────────────────────────────────────────────────────────────────


def abandon(ledger: BatchLedger, keys: Collection[str], *, at: float) -> list[BatchPart]:
    """Leave the trials of parts in doubt unanswered; what was set aside for them stays so.

    Raises:
        ConfigError: a part is not there, or not in doubt. Nothing was done then.
    """
    parts = [_doubtful(ledger, key, "--abandon") for key in keys]
    for batch_part in parts:
        ledger.write(batch_part, Step.ABANDONED, at=at)
    return parts


def ask_abandoned(ledger: BatchLedger, keys: Collection[str], *, at: float) -> None:
    """Open the trials of abandoned parts again; parts in doubt stay so until nothing is found of them.

    Raises:
        ConfigError: a part is not there, or neither in doubt nor abandoned. Nothing was done then.
    """
    for batch_part in [_doubtful(ledger, key, "--resubmit") for key in keys]:
        if batch_part.step is Step.ABANDONED:
            ledger.write(batch_part, Step.GIVEN_UP, at=at)


def _doubtful(ledger: BatchLedger, key: str, option: str) -> BatchPart:
    """Return a part that a person may decide on, as `option` asks; raises ConfigError."""
    doubtful = {
        batch_part.key: batch_part
        for batch_part in ledger.parts.values()
        if batch_part.in_doubt or batch_part.step is Step.ABANDONED
    }
    if key in doubtful:
        return doubtful[key]
    in_doubt = f"In doubt: {', '.join(doubtful)}" if doubtful else "None is in doubt"
    what = "this part is not in doubt" if key in ledger.parts else "no such part"
    raise ConfigError(f"{option} {key}: {what}. {in_doubt}.")
