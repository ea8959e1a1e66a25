"""The status of the batches of a results folder: its ledger is read, nobody is called, nothing is written."""

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
_CREATE_S: Final = 60.0  # for a create of a running process, and a second more for each _CREATE_BYTES of it
_CREATE_BYTES: Final = 100_000


class PartState(StrEnum):
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
class PartStatus:
    """The status of one part. Times are UTC, seconds since 1970."""

    part: str  # its key
    model: str  # the alias
    state: PartState
    batch_id: str | None  # None: there is none, or nobody knows it
    status: str  # the provider's own last word
    trials: int
    answered: int | None  # requests done by the provider's last word; None: it counts none
    bytes: int
    prompt_tokens: int  # estimated
    reserved_usd: float | None  # None: no budget holds it
    prepared_at: float
    created_at: float | None
    known_at: float | None  # when the provider's last word was written down; None: there is no batch
    ended_at: float | None
    window_ends_at: float | None  # the provider has promised it by then; None: it does not run
    deleted_at: float | None  # its results are, by then; None: nothing is to be collected
    undecided: bool = False  # in doubt, and only a person can say what becomes of it

    @property
    def open(self) -> bool:
        return self.state not in (PartState.COLLECTED, PartState.LEFT)

    @property
    def begun_at(self) -> float:
        """The time at which its batch was created, or the part prepared where there is none."""
        return self.created_at or self.prepared_at

    def json_fields(self, now: float) -> dict[str, object]:
        """Return it for a script: times in ISO 8601, and its age in seconds."""
        fields = asdict(self)
        for name, value in fields.items():
            if name.endswith("_at") and value is not None:
                fields[name] = datetime.fromtimestamp(value, UTC).isoformat("T", "seconds")
        return fields | {"age_s": round(now - self.begun_at, 1)}

    @property
    def named(self) -> str:
        """The batch, or the part where there is none."""
        return self.batch_id or f"part {self.part}"


def part_statuses(ledger: BatchLedger, *, running: bool, now: float) -> list[PartStatus]:
    """Return the status of all parts that were not given back unsent."""
    return [
        part_status(batch_part, running=running, now=now)
        for batch_part in ledger.parts.values()
        if batch_part.batch_id or batch_part.open or batch_part.step in (Step.GIVEN_UP, Step.ABANDONED)
    ]


def part_status(batch_part: BatchPart, *, running: bool, now: float) -> PartStatus:
    """Return the status of a part; a create of a running process is in doubt only when it took too long."""
    state = _state(batch_part)
    may_be_sending = now - batch_part.at < _CREATE_S + batch_part.size / _CREATE_BYTES
    if batch_part.step is Step.SUBMITTING and running and may_be_sending:
        state = PartState.SUBMITTING
    created_at = batch_part.created_at if batch_part.batch_id else None
    at_provider = state in (PartState.VALIDATING, PartState.RUNNING, PartState.CANCELLING)
    return PartStatus(
        part=batch_part.key,
        model=batch_part.alias,
        state=state,
        batch_id=batch_part.batch_id,
        status=batch_part.status,
        trials=batch_part.requests,
        answered=batch_part.done if batch_part.batch_id else None,
        bytes=batch_part.size,
        prompt_tokens=batch_part.tokens,
        reserved_usd=batch_part.reserved_usd,
        prepared_at=batch_part.prepared_at,
        created_at=created_at,
        known_at=max(batch_part.at, batch_part.seen_at) if batch_part.batch_id else None,
        ended_at=batch_part.ended_at,
        window_ends_at=created_at + DAY_S if created_at and at_provider else None,
        undecided=batch_part.in_doubt and batch_part.untraced,
        deleted_at=created_at + kept_s(batch_part)
        if created_at and (at_provider or state is PartState.ENDED)
        else None,
    )


def _state(batch_part: BatchPart) -> PartState:
    if batch_part.in_doubt:
        return PartState.IN_DOUBT
    match batch_part.step:
        case Step.SUBMITTED:
            if batch_part.cancelled_at is not None or batch_part.status in ("cancelling", "canceling"):
                return PartState.CANCELLING
            no_word_yet = batch_part.status == "" and batch_part.file_id is not None
            validates = no_word_yet or batch_part.status == "validating"
            return PartState.VALIDATING if validates else PartState.RUNNING
        case Step.ENDED | Step.DOWNLOADING:
            return PartState.ENDED
        case Step.REFUSED if SAYS_FULL.search(batch_part.why):
            return PartState.POOL
        case Step.PREPARED | Step.UPLOADING | Step.UPLOADED | Step.REFUSED:
            return PartState.PREPARED
        case Step.COLLECTED | Step.CLEANING | Step.CLEANED:
            return PartState.COLLECTED
    return PartState.LEFT


# ── Summaries in words ───────────────────────────────────────────────────────────────────────────


def counts_of(context: BatchContext, *, wait_s: float) -> BatchCounts:
    """Return the counts of a model's parts for a screen; the next step is in `wait_s` seconds."""
    now, now_s = context.clock.now(), asyncio.get_running_loop().time()
    statuses = [
        part_status(batch_part, running=True, now=now)
        for batch_part in context.ledger.open_parts_of(context.alias)
    ]
    ages_s = [now - status.begun_at for status in statuses]
    return BatchCounts(  # its times are on the loop's clock, which a screen compares with
        states={state.value: count for state, count in _count_states(statuses).items()},
        trials=sum(status.trials for status in statuses),
        answered=sum(status.answered or 0 for status in statuses),
        oldest_s=now_s - max(ages_s) if ages_s else None,
        next_look_s=now_s + wait_s * context.clock.real_s,
        unreached=context.unreached,
    )


def _count_states(statuses: Iterable[PartStatus]) -> dict[PartState, int]:
    counted = Counter(status.state for status in statuses)
    return {state: counted[state] for state in PartState if counted[state]}


def left_in_batches(statuses: Sequence[PartStatus], *, now: float) -> list[str]:
    """Return sentences for a person who leaves batches going: which, and until when."""
    open_parts = [status for status in statuses if status.open]
    if not open_parts:
        return []
    trials = sum(status.trials for status in open_parts)
    reserved = [status.reserved_usd for status in open_parts if status.reserved_usd is not None]
    budget = f" {dollars(sum(reserved))} of the budget is set aside for them." if reserved else ""
    lines = [f"{trials:,} trials stay in batches: {states_text(open_parts)}.{budget}"]
    if going := [status for status in open_parts if status.batch_id]:
        lines.append(f"They go on without this program: {_named(going)}.")
    if deletions_at := [status.deleted_at for status in open_parts if status.deleted_at is not None]:
        lines.append(
            f"Their results are deleted {days(min(deletions_at) - now)} from now: collect them before."
        )
    if any(status.state is PartState.VALIDATING for status in open_parts):
        lines.append("Batches that are being validated may still be refused: look again in a few minutes.")
    return lines


def near_deletion(statuses: Iterable[PartStatus], *, now: float) -> list[str]:
    """Return sentences on results that are deleted soon, if there are any."""
    remaining = {status: status.deleted_at - now for status in statuses if status.deleted_at is not None}
    near = [status for status, remaining_s in remaining.items() if remaining_s < NEAR_S]
    if not near:
        return []
    soonest_s = min(remaining[status] for status in near)
    when = f"in {days(soonest_s)}" if soonest_s > 0 else "by now, if the provider keeps its word"
    return [f"The results of {_named(near)} are deleted {when}. Run again before that."]


def warnings_on(statuses: Sequence[PartStatus], *, now: float) -> list[str]:
    """Return sentences on what a person has to do about batches."""
    open_parts = [status for status in statuses if status.open]
    lines = near_deletion(open_parts, now=now)
    if undecided := [status for status in open_parts if status.undecided]:
        keys = ",".join(status.part for status in undecided)
        lines.append(
            f"To send {_named(undecided)} again: run with --resubmit {keys}, which may pay twice. To leave "
            f"the trials: `asyncbench cancel FOLDER --abandon {keys}`. The provider shows no trace of a "
            "batch, so nothing else moves them. Look into its console first."
        )
    if doubtful := [
        status for status in open_parts if status.state is PartState.IN_DOUBT and not status.undecided
    ]:
        lines.append(
            f"{_named(doubtful)}: nobody knows yet whether a batch was created. A run looks for it, and "
            "sends nothing twice. If a run finds no trace, you decide: run with --resubmit PART to send it "
            "again, which may pay twice, or leave it with `asyncbench cancel FOLDER --abandon PART`. Your "
            "provider's console may show the batch."
        )
    if waiting := [status for status in open_parts if status.state is PartState.POOL]:
        lines.append(
            f"{_named(waiting)}: the provider's pool of enqueued tokens is full. A run sends them when other "
            "batches of the model, also your colleagues', have ended."
        )
    return lines


def _named(statuses: Sequence[PartStatus]) -> str:
    return first_of([status.named for status in statuses], SHOWN_IDS)


def states_text(statuses: Iterable[PartStatus]) -> str:
    """Return how many parts are in each state, and of how many trials: `1 ended (20 trials)`."""
    statuses, texts = list(statuses), []
    for state, count in _count_states(statuses).items():
        trials = sum(status.trials for status in statuses if status.state is state)
        done = sum(status.answered or 0 for status in statuses if status.state is state)
        share = f"{done:,} of " if done and state is not PartState.COLLECTED else ""
        texts.append(f"{count:,} {state.value} ({share}{trials:,} trials{' done' if share else ''})")
    return ", ".join(texts)
