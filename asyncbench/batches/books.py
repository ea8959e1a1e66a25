"""What earlier runs left open in batches: which trials are out, and what is set aside for them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncbench.batches.harvest import hold_of
from asyncbench.batches.ledger import BatchLedger, Step
from asyncbench.batches.packing import manifest_rows
from asyncbench.engine import Cap, Hold, Ledger
from asyncbench.files import write_durably
from asyncbench.store import without_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """What earlier runs left of one alias."""

    out: frozenset[str]  # trials that are in an open part: not to be asked in any other way
    done: Mapping[str, frozenset[str]]  # by open part: trials whose end an earlier run wrote down
    rounds: Counter[str]  # parts that trials were in without an answer
    holds: tuple[Hold, ...]  # for requests that are, or may be, out


def left_open(ledger: BatchLedger, alias: str, folder: Path) -> LeftOpen:
    """Return what earlier runs left of an alias in a folder that is held for writing."""
    out, done, holds = set[str](), dict[str, frozenset[str]](), list[Hold]()
    rounds = Counter[str]()
    for part in ledger.of(alias):
        doubtful = part.step is Step.GIVEN_UP  # it may have cost what was set aside, for good
        if not (part.open or doubtful or part.unanswered):
            continue
        rows = manifest_rows(ledger.path(part, "manifest"))
        if part.unanswered and not part.open:
            rounds.update(row["trial_id"] for row in rows)
            continue
        calls = {(row["trial_id"], row["attempt"]) for row in rows} if part.open else set()
        waiting = without_rows(calls, folder)
        ended = {trial_id for trial_id, _ in calls - waiting}
        holds += [hold_of(row) for row in rows if row["trial_id"] not in ended]
        if part.open:
            out |= {trial_id for trial_id, _ in waiting}
            done[part.key] = frozenset(ended)
    return LeftOpen(out=frozenset(out), done=done, rounds=rounds, holds=tuple(holds))


def trials_out(folder: Path) -> frozenset[str]:
    """Return the trials that are in open batches of a folder, which a run may be writing to."""
    ledger = BatchLedger(folder)
    manifests = [ledger.path(part, "manifest") for part in ledger.parts.values() if part.open]
    return frozenset(row["trial_id"] for path in manifests for row in manifest_rows(path))


def copy_given_up(folders: Iterable[Path], out: Path) -> None:
    """Note in a new folder the parts in doubt for good of others: they may have cost what was set aside."""
    merged = BatchLedger(out)
    for folder in folders:
        ledger = BatchLedger(folder)
        for part in ledger.parts.values():
            if part.step is Step.GIVEN_UP and part.key not in merged.parts:
                at, manifest = part.at, ledger.path(part, "manifest").read_bytes()
                merged.write(part, Step.PREPARED, at=at)
                place = merged.path(part, "manifest")
                write_durably(place, manifest, temporary=place.with_suffix(".new"))
                merged.write(part, Step.GIVEN_UP, at=at)
    merged.sync()
    merged.close()


def hold_again(ledger: Ledger | None, found: Mapping[str, LeftOpen]) -> None:
    """Set aside again, under the caps of a run, what is out for each alias."""
    if ledger is None:
        return
    for alias, left in found.items():
        account = ledger.account_of(alias)
        for hold in left.holds:
            if account is not None:
                account.hold_again(hold)
            else:
                _hold_for_all(ledger.caps, hold)


def _hold_for_all(caps: Iterable[Cap], hold: Hold) -> None:
    """Set aside for a model that left the sweep: whose its provider's cap is is not known any more."""
    for cap in caps:
        if cap.kind == "sweep":
            cap.reserved += hold.amount
