"""The status of the batches of a results folder, read from its ledger without a call and without writing."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from asyncbench.engine.telemetry import BatchCounts
from asyncbench.lanes.batches.context import DAY_S, SAYS_FULL, BatchContext, kept_s
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.tables.numbers import days, dollars, first_of

NEAR_S: Final = 7 * DAY_S  # before results are deleted, a person is warned
SHOWN_IDS: Final = 5
_CREATE_S: Final = 60.0  # for a create of a running process, and a second more for each
_CREATE_BYTES: Final = 100_000


class Stand(StrEnum):
    """The state of a part; those that a person should see first come first."""

    IN_DOUBT = "in doubt"  # nobody knows whether there is a batch of it
    POOL = "waits for the pool"  # the provider has too many tokens enqueued
    PREPARED = "prepared"
    SUBMITTING = "submitting"
    VALIDATING = "validating"
    RUNNING = "running"
    CANCELLING = "cancelling"
    ENDED = "ended"  # not collected
    LEFT = "given up"  # in doubt for good
    COLLECTED = "collected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStanding:
    """The status of one part. Times are UTC, seconds since 1970."""

    part: str  # its key
    model: str  # the alias
    state: Stand
    batch_id: str | None  # None: there is none, or nobody knows it
    status: str  # the provider's own last word
    trials: int
    answered: int | None  # requests done by the provider's last word; None: it counts none
    bytes: int
    prompt_tokens: int  # estimated
    reserved_usd: float | None  # None: no budget holds it
    prepared_at: float
    created_at: float | None
    known_at: float | None  # when the provider's word was written down; None: there is no batch
    ended_at: float | None
    window_ends_at: float | None  # the provider has promised it by then; None: it does not run
    deleted_at: float | None  # its results are, by then; None: nothing is to be collected
    undecided: bool = False  # in doubt, and only a person can say what becomes of it

    @property
    def open(self) -> bool:
        return self.state not in (Stand.COLLECTED, Stand.LEFT)

    @property
    def begun_at(self) -> float:
        """The time at which its batch was created, or the part prepared where there is none."""
        return self.created_at or self.prepared_at

    def as_data(self, now: float) -> dict[str, object]:
        """Return it for a script: times in ISO 8601, and its age in seconds."""
        fields = {
            name: _iso(value) if name.endswith("_at") else value for name, value in asdict(self).items()
        }
        return fields | {"age_s": round(now - self.begun_at, 1)}

    @property
    def named(self) -> str:
        """The batch, or the part where there is none."""
        return self.batch_id or f"part {self.part}"


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat("T", "seconds")


def part_statuses(ledger: BatchLedger, *, running: bool, now: float) -> list[PartStanding]:
    """Return how all parts stand that were not given back unsent."""
    return [
        part_status(part, running=running, now=now)
        for part in ledger.parts.values()
        if part.batch_id or part.open or part.step in (Step.GIVEN_UP, Step.ABANDONED)
    ]


def part_status(part: BatchPart, *, running: bool, now: float) -> PartStanding:
    """Return how a part stands; a create of a running process is in doubt only when it took too long."""
    state = _state(part)
    young = now - part.at < _CREATE_S + part.size / _CREATE_BYTES
    if part.step is Step.SUBMITTING and running and young:
        state = Stand.SUBMITTING
    created_at = part.created_at if part.batch_id else None
    waits = state in (Stand.VALIDATING, Stand.RUNNING, Stand.CANCELLING)
    return PartStanding(
        part=part.key,
        model=part.alias,
        state=state,
        batch_id=part.batch_id,
        status=part.status,
        trials=part.requests,
        answered=part.done if part.batch_id else None,
        bytes=part.size,
        prompt_tokens=part.tokens,
        reserved_usd=part.reserved_usd,
        prepared_at=part.prepared_at,
        created_at=created_at,
        known_at=max(part.at, part.seen_at) if part.batch_id else None,
        ended_at=part.ended_at,
        window_ends_at=created_at + DAY_S if created_at and waits else None,
        undecided=part.in_doubt and part.untraced,
        deleted_at=created_at + kept_s(part) if created_at and (waits or state is Stand.ENDED) else None,
    )


def _state(part: BatchPart) -> Stand:
    if part.in_doubt:
        return Stand.IN_DOUBT
    match part.step:
        case Step.SUBMITTED:
            if part.cancelled_at is not None or part.status in ("cancelling", "canceling"):
                return Stand.CANCELLING
            young = part.status == "" and part.file_id is not None
            return Stand.VALIDATING if young or part.status == "validating" else Stand.RUNNING
        case Step.ENDED | Step.DOWNLOADING:
            return Stand.ENDED
        case Step.REFUSED if SAYS_FULL.search(part.why):
            return Stand.POOL
        case Step.PREPARED | Step.UPLOADING | Step.UPLOADED | Step.REFUSED:
            return Stand.PREPARED
        case Step.COLLECTED | Step.CLEANING | Step.CLEANED:
            return Stand.COLLECTED
    return Stand.LEFT


# ── Summaries in words ───────────────────────────────────────────────────────────────────────────


def counts_of(context: BatchContext, *, wait_s: float) -> BatchCounts:
    """Return what a screen shows of a model's parts, for which something is done in `wait_s` seconds."""
    now, now_s = context.clock.now(), asyncio.get_running_loop().time()
    parts = [part_status(part, running=True, now=now) for part in context.ledger.open_parts_of(context.alias)]
    ages_s = [now - one.begun_at for one in parts]
    return BatchCounts(
        states={state.value: count for state, count in _by_state(parts).items()},
        trials=sum(one.trials for one in parts),
        answered=sum(one.answered or 0 for one in parts),
        oldest_s=now_s - max(ages_s) if ages_s else None,
        next_look_s=now_s + wait_s * context.clock.real_s,
        unreached=context.unreached,
    )


def _by_state(parts: Iterable[PartStanding]) -> dict[Stand, int]:
    counted = Counter(part.state for part in parts)
    return {state: counted[state] for state in Stand if counted[state]}


def left_in_batches(statuses: Sequence[PartStanding], *, now: float) -> list[str]:
    """Return sentences for a person who leaves batches going: which, and until when."""
    parts = [part for part in statuses if part.open]
    if not parts:
        return []
    trials = sum(part.trials for part in parts)
    reserved = [part.reserved_usd for part in parts if part.reserved_usd is not None]
    budget = f" {dollars(sum(reserved))} of the budget is set aside for them." if reserved else ""
    lines = [f"{trials:,} trials stay in batches: {states_text(parts)}.{budget}"]
    if going := [part for part in parts if part.batch_id]:
        lines.append(f"They go on without this program: {_named(going)}.")
    if ends := [part.deleted_at for part in parts if part.deleted_at is not None]:
        lines.append(f"Their results are deleted {days(min(ends) - now)} from now: collect them before.")
    if any(part.state is Stand.VALIDATING for part in parts):
        lines.append("Batches that are being validated may still be refused: look again in a few minutes.")
    return lines


def near_deletion(statuses: Iterable[PartStanding], *, now: float) -> list[str]:
    """Return which results are deleted soon, in a sentence; empty: none are."""
    ends = {part: part.deleted_at - now for part in statuses if part.deleted_at is not None}
    near = [part for part, left_s in ends.items() if left_s < NEAR_S]
    if not near:
        return []
    soonest_s = min(ends[part] for part in near)
    when = f"in {days(soonest_s)}" if soonest_s > 0 else "by now, if the provider keeps its word"
    return [f"The results of {_named(near)} are deleted {when}. Run again before that."]


def warnings_on(statuses: Sequence[PartStanding], *, now: float) -> list[str]:
    """Return sentences on what a person has to do about batches."""
    parts = [part for part in statuses if part.open]
    lines = near_deletion(parts, now=now)
    if undecided := [part for part in parts if part.undecided]:
        keys = ",".join(part.part for part in undecided)
        lines.append(
            f"To send {_named(undecided)} again: run with --resubmit {keys}, which may pay twice. To leave "
            f"the trials: `asyncbench cancel FOLDER --abandon {keys}`. The provider shows no trace of a "
            "batch, so nothing else moves them. Look into its console first."
        )
    if doubtful := [part for part in parts if part.state is Stand.IN_DOUBT and not part.undecided]:
        lines.append(
            f"{_named(doubtful)}: nobody knows yet whether a batch was created. A run looks for it, and "
            "sends nothing twice. If a run finds no trace, you decide: run with --resubmit PART to send it "
            "again, which may pay twice, or leave it with `asyncbench cancel FOLDER --abandon PART`. Your "
            "provider's console may show the batch."
        )
    if waiting := [part for part in parts if part.state is Stand.POOL]:
        lines.append(
            f"{_named(waiting)}: the provider's pool of enqueued tokens is full. A run sends them when other "
            "batches of the model, also your colleagues', have ended."
        )
    return lines


def _named(parts: Sequence[PartStanding]) -> str:
    return first_of([part.named for part in parts], SHOWN_IDS)


def states_text(parts: Iterable[PartStanding]) -> str:
    """Return how many parts are in each state, and of how many trials: ``1 ended (20 trials)`."""
    parts, texts = list(parts), []
    for state, count in _by_state(parts).items():
        these = [part for part in parts if part.state is state]
        trials, done = sum(part.trials for part in these), sum(part.answered or 0 for part in these)
        share = f"{done:,} of " if done and state is not Stand.COLLECTED else ""
        texts.append(f"{count:,} {state.value} ({share}{trials:,} trials{' done' if share else ''})")
    return ", ".join(texts)
