"""The journal: every event of a run is on disk before anything else happens.

After its first line, which names the version, a line of it holds one of:

    {"sent": call}                       a call is about to be made
    {"attempt": row, "reply": reply}     it is over: its row of `attempts`, and all that came back
    {"carried": row, "reply": reply}     the same again, from an earlier segment: it is not graded yet
    {"trial": row, "grades": [row, …]}   the trial is closed: its row, and what its grades add to it
    {"lane": row}                        what a lane did in a minute: its row of `lanes`
    {"skipped": row}                     a trial is not asked, and why: its row of `skipped`
    {"step": row}                        what a step of a load came to: its row of `steps`

So each segment can be made into tables on its own.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import StoreError
from asyncbench.files import make_folder, storing
from asyncbench.records import (
    Attempt,
    Ended,
    Event,
    LaneMinute,
    Reply,
    Result,
    Sent,
    Skipped,
    StepResult,
    Usage,
)
from asyncbench.store.rows import (
    Row,
    attempt_row,
    encode_json,
    grade_rows,
    lane_row,
    skipped_row,
    step_row,
    trial_row,
)
from asyncbench.store.schema import LOST
from asyncbench.store.segment import Segment, head_of, name_of, number_of


@dataclass(slots=True, kw_only=True)
class Unfinished:
    """What was begun and not brought to its end: small, since all of it is in flight."""

    sent: dict[tuple[str, int], Sent] = field(default_factory=dict)  # calls that have not ended
    replies: dict[str, Ended] = field(default_factory=dict)  # not graded yet, by trial

    def begin(self, sent: Sent) -> None:
        self.sent[sent.trial_id, sent.attempt] = sent

    def end(self, ended: Ended) -> None:
        attempt = ended.attempt
        self.sent.pop((attempt.trial_id, attempt.attempt), None)
        if ended.reply is not None:
            self.replies[attempt.trial_id] = ended

    def close(self, trial_id: str) -> None:
        self.replies.pop(trial_id, None)

    def follow(self, line: Mapping[str, Any]) -> None:  # Any: JSON of our own
        """Take in the next line of a journal, oldest first."""
        match line:
            case {"sent": sent}:
                self.begin(Sent(**sent))
            case {"attempt": row, "reply": reply} | {"carried": row, "reply": reply}:
                self.end(_ended(row, reply))
            case {"trial": {"trial_id": trial_id}}:
                self.close(trial_id)

    def payloads(self) -> list[bytes]:
        """Return the lines that carry all of it into another segment."""
        calls = [encode_json({"sent": sent}) for sent in self.sent.values()]
        return calls + [encode_json(_ending("carried", ended)) for ended in self.replies.values()]


class Journal:
    """The journal of a run, for the one thread that makes its events."""

    def __init__(self, folder: Path, *, number: int, unfinished: Unfinished) -> None:
        with storing(folder):
            make_folder(folder)
        self._folder = folder
        self._unfinished = unfinished
        self._begin(number)

    def append(self, event: Event) -> None:
        """Write an event down."""
        self.write(deque((event,)))

    def write(self, waiting: deque[Event]) -> None:
        """Write events down in one call of the system, oldest first; take out what is written.

        Raises:
            StoreError: the disk took only a part, or nothing.
        """
        if not waiting:
            return
        self.empty, before = False, self.segment.lines
        try:
            self.segment.append(*[encode_json(_LINES[type(event)](event)) for event in waiting])
        finally:
            for _ in range(self.segment.lines - before):
                event = waiting.popleft()
                if isinstance(event, Sent):
                    self._unfinished.begin(event)
                    continue
                self.rows += 1
                if isinstance(event, Ended):
                    self._unfinished.end(event)
                elif isinstance(event, Result):
                    self._unfinished.close(event.trial.trial_id)
                    self.results += 1

    def carry(self, replies: Mapping[str, Ended]) -> None:
        """Begin the next segment with these answers that are not graded yet, instead of those there were."""
        self._unfinished.replies = dict(replies)
        self.rotate()

    def rotate(self, number: int | None = None) -> None:
        """Begin the next segment with all that is unfinished, so that the one before is complete.

        `number`: its own, a higher one than that of any segment. [the next]
        """
        complete = self.segment
        self._begin(number or number_of(complete.path) + 1)
        complete.close()

    def close(self) -> None:
        """Stop writing. A segment of no event is removed. Doing it again changes nothing."""
        self.segment.close()
        if self.empty:
            self.segment.path.unlink(missing_ok=True)

    def _begin(self, number: int) -> None:
        fresh, carried = Segment(self._folder / name_of(number)), self._unfinished.payloads()
        try:
            for payload in (head_of(number), *carried):
                fresh.append(payload)
        except StoreError:  # or its calls would seem to begin after the ends that follow elsewhere
            fresh.close()
            fresh.path.unlink()
            raise
        self.segment, self.empty = fresh, not carried
        self.rows = self.results = 0  # lines that will become rows, and those of them that close a trial


_LINES: Final[Mapping[type, Callable[[Any], Row]]] = {  # Any: the event of that type
    Sent: lambda sent: {"sent": sent},
    Ended: lambda ended: _ending("attempt", ended),
    Result: lambda result: {"trial": trial_row(result), "grades": grade_rows(result)},
    LaneMinute: lambda minute: {"lane": lane_row(minute)},
    Skipped: lambda skipped: {"skipped": skipped_row(skipped)},
    StepResult: lambda step: {"step": step_row(step)},
}


def lost(sent: Sent) -> Attempt:
    """Return how a call ended of which no end is known: it may have been billed, so its cost is unknown."""
    return Attempt(
        trial_id=sent.trial_id,
        attempt=sent.attempt,
        model=sent.model,
        provider=sent.provider,
        started_at=sent.started_at,
        status=LOST,
        max_tokens=sent.max_tokens,
        reserved_usd=sent.reserved_usd,
        most_usd=sent.most_usd,
        load=sent.load,
        due_at=sent.due_at,
        phase=sent.phase,
        error="the run ended before the call did",
    )


class MentionedCalls:
    """The calls that lines of a journal mention, and whose own lines are elsewhere, or lost.

    A power failure may leave later lines without earlier ones. A carried line holds the whole call. If only
    its trial tells of a call, nothing is known but that it cost no more than the trial. A call of a trial
    that went from worker to worker may be in the journal of another: it is not `alone`.
    """

    def __init__(self, *, alone: bool = True) -> None:
        self._alone = alone
        self._recorded = set[tuple[str, int]]()
        self._calls = dict[tuple[str, int], Attempt]()

    def follow(self, line: Mapping[str, Any]) -> None:  # Any: JSON of our own
        """Take in the next line, oldest first."""
        match line:
            case {"attempt": {"trial_id": trial_id, "attempt": attempt}}:
                self._recorded.add((trial_id, attempt))
            case {"carried": row, "reply": reply}:
                self._calls[row["trial_id"], row["attempt"]] = _ended(row, reply).attempt
            case {"trial": {"trial_id": trial_id, "attempts": attempts} as row} if attempts and self._alone:
                if (trial_id, attempts) in self._recorded:  # as it nearly always is
                    return
                last_call = Sent(  # of which nothing else is known
                    trial_id=trial_id,
                    attempt=attempts,
                    model=row["model"],
                    provider=row["provider"],
                    started_at=row["finished_at"] / 1_000_000,
                    reserved_usd=row["cost_usd"],
                    load=row.get("load"),  # an earlier version wrote none
                )
                self._calls.setdefault((trial_id, attempts), lost(last_call))

    def unrecorded(self) -> dict[tuple[str, int], Attempt]:
        """Return these calls, by trial and attempt."""
        return {call: attempt for call, attempt in self._calls.items() if call not in self._recorded}


# Fields that `Attempt` and its row have in common; the others are built anew.
_TIMES = ("due_at", "batch_ended_at")  # that may be NULL
_SAME = tuple({field.name for field in fields(Attempt)} - {"started_at", "usage", "raw_usage", *_TIMES})


def _ending(key: str, ended: Ended) -> Row:
    return {key: attempt_row(ended.attempt), "reply": ended.reply}


def _ended(row: Mapping[str, Any], written: Mapping[str, Any] | None) -> Ended:  # Any: JSON of our own
    reply = None
    if written is not None:
        usage = written["usage"]
        reply = Reply(**{**written, "usage": None if usage is None else Usage(**usage)})
    attempt = Attempt(
        **{name: row[name] for name in _SAME if name in row},  # an earlier version wrote fewer
        started_at=row["started_at"] / 1_000_000,
        usage=reply.usage if reply else None,
        raw_usage=reply.raw_usage if reply else None,
        **{name: time_us / 1_000_000 for name in _TIMES if (time_us := row.get(name)) is not None},
    )
    return Ended(attempt=attempt, reply=reply)
