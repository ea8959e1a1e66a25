"""The measurement of a step: each call as it was due, and all of them as a row of `steps`.

Times count from when a call was due. A call belongs to the phase in which it was due, whenever it ends.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import inf, sqrt
from statistics import fmean, median
from typing import Any, Final

from asyncbench.config.loading import Slo
from asyncbench.engine.attempts import LOST
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.telemetry import Counters, LoopLag
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.lanes.load.steps import (
    CLIENT_BOUND,
    INCOMPLETE,
    MET,
    MISSED,
    POISSON,
    UNRESOLVED,
    LoadStep,
    dispersion_p,
    ks_p,
    slo_of,
)
from asyncbench.records import Attempt, Reply, StepResult
from asyncbench.stats.always_valid import always_valid_interval
from asyncbench.stats.percentiles import histogram_text, rank_of

WARMUP, MEASURED = "warmup", "measured"
UNFINISHED: Final = "unfinished"  # the status of a call for which the step waited no longer
SAMPLE_S: Final = 0.05  # between two samples of calls in flight and of our own event loop
LAG_S: Final = 0.02  # of the event loop at the 99th percentile: then this computer is the bottleneck, ...
LATE_OF_LAG: Final = 0.25  # ... or calls are sent so much of this late, ...
LATE_SHARE: Final = 0.05  # ... or so much of the mean gap, whichever is more
SLICES: Final = 20  # of a step, whose means tell whether calls in flight grow
T_95: Final = 2.10  # Student's t with 18 degrees of freedom, two-sided
FIRST: Final = 20  # calls of a step, whose latency tells how long calls in flight must mount up
KEPT_UP: Final = 0.98  # answers for each call that was due: fewer, and a backlog grows
_TOO_MANY: Final = (ErrorKind.RATE_LIMITED.value, ErrorKind.OVERLOADED.value)
_NO_WORD: Final = (ErrorKind.UNREACHABLE.value, UNFINISHED, LOST)  # from the server
_REFUSING: Final = (429, 503, 529)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return an observed value below or at which so many of them are, or None without values."""
    return sorted(values)[rank_of(len(values), share) - 1] if values else None


class CallOfStep:
    """The due time and phase of a call, and columns of its attempt that only steps have."""

    __slots__ = ("_epoch_s", "_name", "due_s", "phase")

    def __init__(self, name: str, due_s: float, phase: str, epoch_s: float) -> None:
        self.phase = phase
        self._name, self.due_s, self._epoch_s = name, due_s, epoch_s

    def columns(
        self, pending: PendingTrial, ended: Reply | ProviderError | None
    ) -> Mapping[str, Any]:  # Any: fields of `Attempt`
        """Return the columns of its attempt that only steps have."""
        reply = ended if isinstance(ended, Reply) else None
        times = None if reply is None else reply.times
        chunks = () if times is None else times.chunks_s
        gaps = [later - earlier for earlier, later in pairwise(chunks)]
        return {
            "load": self._name,
            "due_at": self._epoch_s + self.due_s,
            "late_s": (pending.sent_s if times is None else times.sent_s) - self.due_s,
            "phase": self.phase,
            "ttfo_s": None if times is None else times.ttfo_s,
            "connect_s": None if times is None else times.connect_s,
            "kept_connection": getattr(ended if times is None else times, "kept_connection", None),
            "chunks": len(chunks) or None,
            "gap_p50_s": percentile(gaps, 0.5),
            "gap_p99_s": percentile(gaps, 0.99),
            "gap_max_s": max(gaps, default=None),
            "gap_counts": histogram_text(gaps) if gaps else None,
            "output_chars": None if reply is None else len(reply.text) + len(reply.reasoning or ""),
        }


def keeps(slo: Slo, attempt: Attempt) -> bool:
    """Whether a call kept all that was promised; what is not known was not kept."""
    if attempt.status != "ok" or attempt.late_s is None or attempt.latency_s is None:
        return False
    late_s, ttft_s, ttfo_s = attempt.late_s, attempt.ttft_s, attempt.ttfo_s
    times_s = {
        "ttft": None if ttft_s is None else late_s + ttft_s,
        "ttfo": None if ttfo_s is None else late_s + ttfo_s,
        "latency": late_s + attempt.latency_s,
        "tpot": _tpot_s(attempt),
    }
    promised = ((getattr(slo, name), time_s) for name, time_s in times_s.items())
    return all(
        longest_s is None or (time_s is not None and time_s <= longest_s) for longest_s, time_s in promised
    )


def excess_s(slo: Slo, attempt: Attempt, own_late_s: float, waited_s: float) -> float:
    """Return by how many seconds a call missed what was promised, without our own delay in sending it.

    Args:
        slo: the promise.
        attempt: a call that did not keep it.
        own_late_s: how late this computer sent it.
        waited_s: from when it was due until it ended, or until nobody waited any longer.

    Returns:
        The seconds; inf: the server refused or failed, or something is not known.
    """
    longest_s = max((slo.ttft or 0.0, slo.ttfo or 0.0, slo.latency or 0.0))
    if attempt.status in (UNFINISHED, LOST, ErrorKind.TIMEOUT.value):
        return waited_s - own_late_s - longest_s
    if attempt.status != "ok" or attempt.late_s is None or attempt.latency_s is None:
        return inf
    times_s = ((slo.ttft, attempt.ttft_s), (slo.ttfo, attempt.ttfo_s), (slo.latency, attempt.latency_s))
    excesses = [
        inf if time_s is None else attempt.late_s - own_late_s + time_s - promised_s
        for promised_s, time_s in times_s
        if promised_s is not None
    ]
    if slo.tpot is not None:
        tpot_s, tokens = _tpot_s(attempt), 0 if attempt.usage is None else attempt.usage.output_tokens or 0
        excesses.append(inf if tpot_s is None else (tpot_s - slo.tpot) * max(1, tokens - 1))
    return max(excesses, default=0.0)


def _tpot_s(attempt: Attempt) -> float | None:
    """Return the seconds of an output token after the first; of a single token: 0, for it waited for none."""
    tokens = None if attempt.usage is None else attempt.usage.output_tokens
    if tokens is None or attempt.ttft_s is None or attempt.latency_s is None or attempt.usage is None:
        return None
    if attempt.ttfo_s == attempt.ttft_s:  # what was thought was not shown: it came before the first token
        tokens -= attempt.usage.reasoning_tokens or 0
    return (attempt.latency_s - attempt.ttft_s) / (tokens - 1) if tokens > 1 else 0.0


class Measuring:
    """The running figures of one step; times are the loop's clock."""

    def __init__(self, step: LoadStep, alias: str, *, epoch_s: float, counted: int = 0) -> None:
        self.step, self._alias, self._epoch_s = step, alias, epoch_s
        slo = step.load.slo
        self._too_many = inf if slo is None or not step.gives_up else too_many_lost(counted, slo.share)
        self.began_s = self._from_s = self.until_s = inf
        self._stopped = True  # until it is over
        self._reached = False
        self._unreached: str | None = None  # why the latest call reached nobody
        self._seconds = step.seconds
        self._offered = self._dropped = 0
        self._counts = {"answered": 0, "refused": 0, "failed": 0, UNFINISHED: 0}
        self._met = self._lost = 0  # calls that kept the SLO, and that did not
        self._excess_s: list[float] = []  # of calls that did not keep the SLO, see `excess_s`
        self._due_s: list[float] = []  # of the measured calls, those that were dropped, too
        self._answers: list[tuple[float, float]] = []  # due time and end of all calls
        self._late: list[float] = []
        self._sent_s: list[float] = []
        self._in_flight: list[int] = []
        self._sampled_s: list[float] = []  # when so many were in flight
        self._most = 0
        self._lags: list[float] = []

    # ── During the step ──────────────────────────────────────────────────────────────────────────

    @property
    def began(self) -> bool:
        """Whether any call was due."""
        return self.began_s < inf

    def begin(self, at_s: float) -> None:
        """Note when the step begins."""
        self.began_s, self._from_s = at_s, at_s + self.step.load.warmup
        self.until_s = self._from_s + self.step.seconds

    def end(self, at_s: float, *, stopped: bool) -> None:
        """Note when no more calls are sent, and whether somebody stopped them."""
        self._stopped = stopped
        if at_s < self.until_s - SAMPLE_S:
            self._seconds, self.until_s = max(0.0, at_s - self._from_s), at_s

    def due(self, due_s: float, in_flight: int) -> CallOfStep:
        """Take in a call that is made; return what it is in this step."""
        measured = due_s >= self._from_s
        if measured:
            self._offered += 1
            self._due_s.append(due_s)
            self._most = max(self._most, in_flight)
        phase = MEASURED if measured else WARMUP
        return CallOfStep(self.step.name, due_s, phase, self._epoch_s)

    def drop(self, due_s: float) -> None:
        """Take in a call that is not made, for too many are in flight."""
        if due_s >= self._from_s:
            self._offered += 1
            self._due_s.append(due_s)
            self._dropped += 1
            self._lost += 1

    def ended(self, call: CallOfStep, attempt: Attempt, at_s: float) -> None:
        """Take in how a call ended."""
        if attempt.status == "ok":
            self._answers.append((call.due_s, at_s))
        if attempt.status == ErrorKind.UNREACHABLE.value:
            self._unreached = attempt.error
        self._reached |= attempt.status not in _NO_WORD
        if call.phase == WARMUP:
            return
        self._counts[kind_of(attempt.status, attempt.http_status)] += 1
        if attempt.late_s is not None:
            self._late.append(attempt.late_s - (attempt.connect_s or 0.0))
            self._sent_s.append((attempt.due_at or 0.0) - self._epoch_s + self._late[-1])
        slo = self.step.load.slo
        kept = slo is None or keeps(slo, attempt)
        self._met += kept
        self._lost += not kept
        if slo is not None and not kept:
            own_late_s = 0.0 if attempt.late_s is None else attempt.late_s - (attempt.connect_s or 0.0)
            self._excess_s.append(excess_s(slo, attempt, own_late_s, at_s - call.due_s))

    @property
    def unreached(self) -> str | None:
        """The reason why no call reached the server, or None if one did or no reason is known."""
        return None if self._reached else self._unreached

    async def watch(self, counters: Counters, lag: LoopLag, give_up: Callable[[], None]) -> None:
        """Sample calls in flight and how late our own event loops are, until cancelled.

        Call `give_up` as soon as the step need not be finished.
        """
        loop = asyncio.get_running_loop()
        while True:
            at_s = loop.time() + SAMPLE_S
            await asyncio.sleep(SAMPLE_S)
            own_s = loop.time() - at_s
            self.sample(loop.time(), counters.in_flight, lag_s=max([own_s, *lag.others()]))
            if self.misses:
                give_up()

    def sample(self, at_s: float, in_flight: int, *, lag_s: float) -> None:
        """Take in how many calls are in flight, and how late the event loop is."""
        if self._from_s <= at_s < self.until_s:
            self._lags.append(lag_s)
            self._in_flight.append(in_flight)
            self._sampled_s.append(at_s)

    @property
    def misses(self) -> bool:
        """Whether a step that need not be finished misses its SLO even if all other calls keep it.

        Calls in a queue are late together: nothing less makes it certain.
        """
        return self._lost >= self._too_many

    # ── The result ───────────────────────────────────────────────────────────────────────────────

    def result(self) -> StepResult:
        """Return the result of the step."""
        step, load = self.step, self.step.load
        late_p99_s, lag_p99_s = percentile(self._late, 0.99), percentile(self._lags, 0.99)

        # Before the first answers come, calls in flight only mount up; then answers come as calls go.
        first = sorted(self._answers)[:FIRST]
        latency_s = median(end_s - due_s for due_s, end_s in first) if first else 0.0
        steady_s = max(self._from_s, self.began_s + latency_s)
        slope, grows = self._growth(steady_s)
        due = sum(due_s >= steady_s for due_s in self._due_s)
        kept_up = sum(steady_s <= end_s < self.until_s for _, end_s in self._answers) >= KEPT_UP * due
        poisson = load.arrivals == POISSON
        sent_s = sorted(self._sent_s)
        most_s, rate = load.max_lag or LAG_S, step.calls_per_s
        why = why_client_bound(rate, late_p99_s=late_p99_s, lag_p99_s=lag_p99_s, max_lag_s=most_s)
        return StepResult(
            load=step.name,
            model=self._alias,
            arrivals=load.arrivals,
            rate=step.rate,
            round=step.round,
            began_at=self._epoch_s + self.began_s,
            warmup_s=load.warmup,
            seconds=self._seconds,
            offered=self._offered,
            dropped=self._dropped,
            sent=self._offered - self._dropped,
            **self._counts,  # answered, refused, failed, unfinished
            late_p50_s=percentile(self._late, 0.5),
            late_p99_s=late_p99_s,
            loop_lag_p99_s=lag_p99_s,
            in_flight_mean=fmean(self._in_flight) if self._in_flight else None,
            in_flight_max=self._most,
            in_flight_slope=slope,
            ks_p=ks_p(sent_s, step.rate) if poisson else None,
            dispersion_p=dispersion_p(sent_s, step.rate, self._from_s, self.until_s) if poisson else None,
            client_bound=why is not None,
            saturated=None if grows is None else grows and not kept_up,
            met=None if load.slo is None else self._met,
            slo=slo_of(load),
            verdict=self._verdict(bound=why is not None),
            asked=step.questions_digest,
        )

    def _verdict(self, *, bound: bool) -> str | None:
        slo = self.step.load.slo
        if self._stopped:
            return INCOMPLETE
        if slo is None:
            return CLIENT_BOUND if bound else None
        if bound:
            # Would it miss if no call and no event loop were late? Dropped calls may be our fault.
            lag_s = max(self._lags, default=0.0)
            unexplained = sum(excess > lag_s for excess in self._excess_s)
            kept = always_valid_interval(self._offered - unexplained, self._offered)
            return MISSED if kept.high < slo.share else CLIENT_BOUND
        low, high = always_valid_interval(self._met, self._offered)
        return MET if low >= slo.share else MISSED if high < slo.share else UNRESOLVED

    def _growth(self, from_s: float) -> tuple[float | None, bool | None]:
        """Return by how many a second calls in flight grew, and whether that is more than chance.

        The means of slices of the step are fitted by a line: neighbouring samples are nearly alike.
        """
        in_flight = self._in_flight[bisect_left(self._sampled_s, from_s) :]
        if (size := len(in_flight) // SLICES) < 1:
            return None, None
        means = [fmean(in_flight[i * size : (i + 1) * size]) for i in range(SLICES)]
        middle, mean = (SLICES - 1) / 2, fmean(means)
        spread = sum((i - middle) ** 2 for i in range(SLICES))
        slope = sum((i - middle) * (value - mean) for i, value in enumerate(means)) / spread
        rest = sum((value - mean - slope * (i - middle)) ** 2 for i, value in enumerate(means))
        error = sqrt(rest / (SLICES - 2) / spread)
        return slope / (size * SAMPLE_S), slope > T_95 * error


def why_client_bound(
    rate: float | None, *, late_p99_s: float | None, lag_p99_s: float | None, max_lag_s: float = LAG_S
) -> str | None:
    """Return the sign that this computer was the bottleneck of a step, or None.

    Args:
        rate: calls a second; None: of callers.
        late_p99_s: how late it sent calls.
        lag_p99_s: how late its event loop was.
        max_lag_s: how late the event loop may be, `max_lag` of the load.
    """
    late_s = LATE_OF_LAG * max_lag_s
    most_s = late_s if rate is None else max(late_s, LATE_SHARE / rate)
    if late_p99_s is not None and late_p99_s > most_s:
        return f"late p99 {late_p99_s:.3g} s is more than {most_s:.2g} s"
    if lag_p99_s is not None and lag_p99_s > max_lag_s:
        return f"the event loop's lag p99 {lag_p99_s:.3g} s is more than {max_lag_s:g} s"
    return None


def too_many_lost(calls: int, share: float) -> int:
    """Return how many of so many calls must miss an SLO until fewer than a share surely keep it."""
    few, many = 0, calls + 1
    while many - few > 1:
        middle = (few + many) // 2
        missed = always_valid_interval(calls - middle, calls).high < share
        few, many = (few, middle) if missed else (middle, many)
    return many


def kind_of(status: str, http_status: int | None) -> str:
    """Return the fate of a call: answered, refused, failed or unfinished."""
    if status == "ok":
        return "answered"
    if status in _TOO_MANY or http_status in _REFUSING:
        return "refused"
    return UNFINISHED if status in (UNFINISHED, LOST) else "failed"
