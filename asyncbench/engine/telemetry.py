"""Figures of a run: minutes of lanes, counters of models, and the lag of the event loop."""

import asyncio
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from asyncbench.engine.limits import Amounts
from asyncbench.records import TOLD_NOTES, Attempt, LaneMinute, Outcome

# ── Minutes of a lane: use of its limits, and causes of waits


MINUTE_S: Final = 60.0
A_MOMENT_S: Final = 0.01  # late: no timer is exact


class Minutes:
    """The account of one lane; a minute is written down when it is over, the last one when the lane ends.

    Times are the loop's clock; `epoch_s` is UTC at its zero.
    """

    _most_in_flight: int  # calls at once

    def __init__(self, lane: str, *, epoch_s: float, at_s: float, keep: Callable[[LaneMinute], None]) -> None:
        self._lane, self._epoch_s, self._keep = lane, epoch_s, keep
        self._begin(at_s, in_flight=0)

    def waited(self, cause: str, seconds: float) -> None:
        """Add time in which no call could start, and why."""
        self._waited[cause] += seconds

    def admitted(self, in_flight: int) -> None:
        """Count a call that starts."""
        self._calls += 1
        self._most_in_flight = max(self._most_in_flight, in_flight)

    def settled(self, used: Amounts) -> None:
        """Count what a call took of the limits."""
        self._tokens += used.tokens
        self._input += used.input_tokens
        self._output += used.output_tokens

    def left_s(self, at_s: float) -> float:
        """Return how long this minute lasts."""
        return max(0.0, self._end_s - at_s)

    def close(self, at_s: float, limits: Mapping[str, float], share: float, *, in_flight: int) -> None:
        """Write the minute down as far as it went, and begin another.

        Args:
            at_s: now. Where nobody looked in time, what was counted belongs to the first of several minutes.
            limits: in force, by what they count, a minute.
            share: of them that the lane allows itself.
            in_flight: calls that go over into the next one.
        """
        over = False
        while not over:
            over = at_s <= self._end_s + A_MOMENT_S
            until_s = at_s if over else self._end_s
            if until_s > self._start_s or self.changes:
                self._keep(
                    LaneMinute(
                        lane=self._lane,
                        started_at=self._epoch_s + self._start_s,
                        seconds=until_s - self._start_s,
                        requests=self._calls,
                        tokens=self._tokens,
                        input_tokens=self._input,
                        output_tokens=self._output,
                        limits=dict(limits),
                        share=share,
                        most_in_flight=self._most_in_flight,
                        refused=self.refused,
                        waited_s=dict(self._waited),
                        pauses=tuple(self.pauses),
                        changes=tuple(self.changes),
                    )
                )
            self._begin(until_s, in_flight)

    def _begin(self, at_s: float, in_flight: int) -> None:
        self._start_s = at_s
        # Minutes of the clock on the wall: those of all lanes can be laid side by side.
        self._end_s = at_s + MINUTE_S - (self._epoch_s + at_s) % MINUTE_S
        self._calls, self._most_in_flight = 0, in_flight
        self.refused = 0  # calls that were one too many
        self._tokens = self._input = self._output = 0.0
        self._waited: dict[str, float] = defaultdict(float)
        self.pauses: list[str] = []  # why long ones began
        self.changes: list[str] = []  # what a person changed; the minute ends by it


# ── Counters and lag


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """The open batches of one model. Times are those of the event loop's clock."""

    states: Mapping[str, int]  # how many are in each, in words
    trials: int
    answered: int  # of them, as far as the provider tells while they run
    oldest_s: float | None  # when the oldest was created; None: there is none
    next_look_s: float  # when something is done for them
    unreached: str = ""  # since when the provider cannot be reached, in words; empty: it can


@dataclass(slots=True, kw_only=True)
class StepCounts:
    """The progress of a load's step. Times are those of the event loop's clock."""

    name: str
    number: int  # among the steps of this run, from 1
    total: int | None  # steps of this run; None: a search, which does not know
    counts_from_s: float  # calls before are its warm-up
    ends_s: float  # when no more calls are due
    later_s: float  # that the steps after it take, but for waiting for their last answers
    due: int = 0
    answered: int = 0

    def left_s(self, now_s: float) -> float | None:
        """Return the seconds until the last step ends, or None if the last step is not known."""
        return None if self.total is None else max(0.0, self.ends_s - now_s) + self.later_s


@dataclass(slots=True, kw_only=True)
class Counters:
    """The running figures of one model; the screen samples them, the summary reads them at the end."""

    planned: int = 0
    loaded: bool = False  # it is under load
    done_before: int = 0  # closed by earlier runs
    failed_before: int = 0  # those of them that were closed without a reply
    cost_before_usd: float = 0.0  # of the calls of earlier runs, as far as it is known
    unpriced_before: int = 0  # those of them whose cost is not
    skipped: int = 0  # passed over by this run, for enough is known of their cells
    outcomes: Counter[Outcome] = field(default_factory=Counter)  # of trials closed by this run
    attempts: int = 0
    in_flight: int = 0
    in_batches: int = 0  # trials that are packed, or in batches whose results are not taken in
    batches: BatchCounts | None = None  # None: it is asked in none
    step: StepCounts | None = None  # None: no step of a load is under way
    waits_for: str | None = None  # what keeps the next call from starting now, a cause of `minutes`
    latest_failure: Attempt | None = None
    rate_limited: int = 0  # attempts answered by a 429
    notes: Counter[str] = field(default_factory=Counter)  # replies with each note of `TOLD_NOTES`
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0  # of attempts whose cost is known
    unpriced: int = 0  # attempts whose cost is not
    lost: int = 0  # those of them without a reply: billed or not, whatever the price
    scored: int = 0  # replies to which a grader of somebody's own gave a score
    score: float = 0.0  # the sum of these
    grader_errors: int = 0  # replies, of earlier runs too, that a grader stumbled over: kept, but no answer
    faults: int = 0  # replies that asyncbench stumbled over: each a bad reply of its call
    suspended: str | None = None  # why this model was given up before its work was done
    paused: bool = False  # a person wants nothing sent for now
    changed: str | None = None  # the latest that a person changed: when, who and what
    budget_stopped: bool = False  # whether it was left before its work was done, for want of money
    client_bound: bool = False  # this machine, not the provider, held it back at some time

    @property
    def done(self) -> int:
        """Trials closed, by this run and before it."""
        return self.done_before + self.outcomes.total()

    @property
    def open(self) -> int:
        """Trials that are still to be closed, or found needless."""
        return max(0, self.planned - self.done - self.skipped)

    @property
    def accuracy(self) -> float | None:
        """The share of right answers of this run: of all trials; of a load, as in reports, of its answers."""
        counted = self.outcomes.total() - self.loaded * self.outcomes[Outcome.FAILED]
        return self.outcomes[Outcome.CORRECT] / counted if counted else None

    @property
    def over(self) -> bool:
        """Whether no further call will be made: none can succeed, or there is no money for it."""
        return self.suspended is not None or self.budget_stopped

    @property
    def complete(self) -> bool:
        """Whether every planned trial that is needed is closed, and with a reply."""
        return not self.open and not self.failed

    @property
    def failed(self) -> int:
        """Trials closed without a reply, by this run and before it."""
        return self.failed_before + self.outcomes[Outcome.FAILED]

    @classmethod
    def summed(cls, models: Sequence[Self]) -> Self:
        """Return the figures of several models together; what is no sum keeps its default."""
        total = cls(outcomes=sum((model.outcomes for model in models), Counter()))
        total.notes = sum((model.notes for model in models), Counter())
        total.loaded = any(model.loaded for model in models)
        for name in SUMMED:
            setattr(total, name, sum(getattr(model, name) for model in models))
        return total

    def count(self, attempt: Attempt) -> None:
        """Add an attempt that is over."""
        self.attempts += 1
        if attempt.error is not None and attempt.status != "lost":
            self.latest_failure = attempt
        self.rate_limited += attempt.status == "rate_limited"
        for note in (attempt.note or "").split("; "):
            if note.startswith(TOLD_NOTES):
                kind = note.partition(" (")[0]
                self.notes[kind if kind in self.notes or len(self.notes) < MOST_NOTES else OTHER_NOTES] += 1
        if attempt.cost_usd is None:
            self.unpriced += 1
            self.lost += attempt.status != "ok"
        else:
            self.cost_usd += attempt.cost_usd
        if attempt.usage is not None:
            self.input_tokens += attempt.usage.input_tokens or 0
            self.output_tokens += attempt.usage.output_tokens or 0


MOST_NOTES: Final = 20  # of one model; a server may have a new finish reason for each reply
OTHER_NOTES: Final = "other notes, as `attempts` has them"

SUMMED = (
    *("planned", "done_before", "failed_before", "cost_before_usd", "unpriced_before", "skipped"),
    *("attempts", "in_flight", "in_batches", "rate_limited", "input_tokens", "output_tokens", "cost_usd"),
    *("unpriced", "lost", "scored", "score", "grader_errors", "faults"),
)  # the figures of `Counters` that models have together

REMEMBERED = 1_000  # readings of the event loop's lag, each worse than all after it


class LoopLag:
    """The lag of the event loop in waking a sleeper: the client's own delay in every latency it measures."""

    LATE_S = 0.3  # on average: calls in flight wait for us, and may miss their deadlines
    MEMORY = 0.8  # of the average before, kept at each reading

    def __init__(self, *, interval_s: float = 0.1) -> None:
        self.interval_s = interval_s  # between two readings
        self.now_s = 0.0  # the last reading
        self.mean_s = 0.0  # of the last readings
        self.notified = False  # whether a person heard that it holds the run back
        self.others: Callable[[], Sequence[float]] = tuple  # how late the loops of workers are on average
        self._worst: list[tuple[float, float]] = []  # (when, reading), each worse than all after it

    @property
    def late(self) -> bool:
        """Whether the loop has more to do than it can, and has had for some time; or those of all workers."""
        return max(self.mean_s, min(self.others(), default=0.0)) > self.LATE_S

    def worst_since(self, at_s: float) -> float:
        """Return the worst reading since `at_s`, on the loop's clock; 0 where there was none."""
        i = bisect_left(self._worst, (at_s,))
        return self._worst[i][1] if i < len(self._worst) else self.now_s

    def note(self, at_s: float, reading_s: float) -> None:
        """Take in a reading."""
        self.now_s = reading_s
        self.mean_s += (reading_s - self.mean_s) * (1 - self.MEMORY)
        while self._worst and self._worst[-1][1] <= reading_s:
            self._worst.pop()
        self._worst.append((at_s, reading_s))
        del self._worst[:-REMEMBERED]

    async def measure(self) -> None:
        """Take readings until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + self.interval_s
            await asyncio.sleep(self.interval_s)
            self.note(loop.time(), max(0.0, loop.time() - due_s))
