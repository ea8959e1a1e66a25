"""Records of replies: Reply → Grade → Result, and the events of a journal.

Those that each call makes are not frozen, for a frozen one takes three times as long to make. Nobody changes
them but whoever made them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asyncbench.errors import Allowance, ProviderError
from asyncbench.records.finish_reasons import Finish, finish_of, says_cut, says_nothing
from asyncbench.records.trials import REALTIME, Outcome, Trial


@dataclass(slots=True, kw_only=True)
class Usage:
    """Tokens of one call in one normal form; None where the provider did not say.

    input = uncached + cached + cache writes; reasoning is a part of output.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None  # 5-minute and 1-hour writes together
    cache_write_1h_tokens: int | None = None  # the part of them that is kept for an hour
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


UNSTORED: Mapping[str, object] = {"stored": False}  # metadata of a field that no file holds

LEFT_SWEEP = "its trial has left the sweep"  # the note of an attempt whose reply nobody grades
# How notes of replies begin of which a run tells how often there were any; details follow in brackets.
UNKNOWN_FINISH = "unknown finish reason"
UNTRUE_USAGE = "a usage that cannot be true counts as unknown"
FOREIGN_EVENTS = "events of a stream that are not the API's were passed over"
TOLD_NOTES = (UNKNOWN_FINISH, UNTRUE_USAGE, FOREIGN_EVENTS)
# Said of cut replies, too, as nothing is: the word that llama-server's Responses have for every reply. The
# other formats' `stop` is believed: a reply may end by itself with the last token that it was allowed.
_OF_ANY_END = "completed"

# What became of a call whose kept connection the server had closed.
RESENT, LOST_WITH_IT = "resent", "lost"


@dataclass(slots=True, kw_only=True)
class ReplyTimes:
    """The times at which the parts of a reply came. Times are seconds from the request sent, but `sent_s`."""

    sent_s: float  # the event loop's clock
    connect_s: float | None = None  # before that: to make the connection; None: it was there
    kept_connection: str | None = None  # resent: the server had closed it unread; None: it held, or was new
    ttfo_s: float | None = None  # to the first text of the answer
    chunks_s: Sequence[float] = ()  # to each piece of thinking or of the answer


@dataclass(slots=True, kw_only=True)
class Reply:
    """The answer of a provider to one call."""

    text: str  # untouched; empty when the reply held no text
    reasoning: str | None = None
    finish_reason: str | None = None  # the provider's own word
    model_served: str | None = None
    usage: Usage | None = None
    raw_usage: Mapping[str, object] | None = None
    request_id: str | None = None
    fingerprint: str | None = None  # of what served it: OpenAI's system_fingerprint
    upstream: str | None = None  # who served it behind a router: OpenRouter's provider
    service_tier: str | None = None  # as served: default, flex, priority, batch …
    vendor_cost_usd: float | None = None  # what the provider itself says this call cost
    ttft_s: float | None = None  # request sent to first token; None when not streamed
    latency_s: float | None = None  # request sent to last byte; None where that was not measured
    http_status: int | None = 200  # None: recorded by others, who did not say
    note: str | None = None  # what of it was mended or is not believed; None: nothing
    allowances: tuple[Allowance, ...] = field(default=(), compare=False, metadata=UNSTORED)
    times: "ReplyTimes | None" = field(default=None, compare=False, metadata=UNSTORED)
    max_tokens: int | None = field(default=None, compare=False, metadata=UNSTORED)  # allowed, as sent
    worker: str | None = field(default=None, compare=False, metadata=UNSTORED)  # None: this process asked
    loop_lag_s: float = field(default=0.0, compare=False, metadata=UNSTORED)  # of the worker, at worst

    @property
    def cut_short(self) -> bool:
        """Whether the provider says that it cut the reply, or tells by its count that it did."""
        if says_cut(self.finish_reason):
            return True
        written = None if self.usage is None else self.usage.output_tokens
        tells_no_cut = says_nothing(self.finish_reason) or self.finish_reason == _OF_ANY_END
        return tells_no_cut and written is not None and written == self.max_tokens


def outcome_of(reply: Reply | None, *, answer: str | None, exact_match: bool) -> Outcome:
    """Decide what became of a trial from its reply and what a grader read in it."""
    if reply is None:
        return Outcome.FAILED
    if exact_match:
        return Outcome.CORRECT
    if reply.cut_short:
        return Outcome.TRUNCATED
    if finish_of(reply.finish_reason) is Finish.REFUSED:
        return Outcome.REFUSED
    return Outcome.NO_ANSWER if answer is None else Outcome.WRONG


GRADER_ERROR = "grader_error"  # the reason of a grade that is none: its grader raised
NO_VERSION = 0  # of that grader


@dataclass(slots=True, kw_only=True)
class Grade:
    """The reading of one reply by one grader. Fields a suite does not define stay None."""

    grader: str
    grader_version: int
    headline: bool
    answer: str | None  # what was read; None: nothing
    classification: str | None  # the suite's own published word
    reason: str | None = None  # why, where the word alone does not say
    outcome: Outcome
    exact_match: bool
    format_ok: bool | None = None  # the reply is nothing but the answer, in the form asked for
    digits_right: int | None = None
    digits_total: int | None = None
    length_error: int | None = None
    length_error_total: int | None = None
    abs_error: str | None = None  # exact decimal text
    rel_error: float | None = None
    flags: tuple[str, ...] = ()
    score: float | None = None  # from 0 to 1, of a grader of somebody's own


@dataclass(slots=True, kw_only=True)
class Sent:
    """An attempt is about to be made; written down before the call."""

    trial_id: str
    attempt: int  # from 1
    model: str  # the alias
    provider: str
    started_at: float  # UTC, seconds since 1970
    max_tokens: int | None = None  # the longest reply allowed, as sent
    reserved_usd: float | None = None  # set aside for it; None: no budget held it
    most_usd: float | None = None  # it may cost; None: no price is known, or nothing bounds its tokens
    load: str | None = None  # the step of a load that it is for; None: it is for none
    due_at: float | None = None  # when the step wanted it, UTC
    phase: str | None = None  # of the step


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call made for a trial, and how it ended: one row of `attempts`."""

    trial_id: str
    attempt: int  # from 1
    model: str  # the alias
    provider: str
    started_at: float  # UTC, seconds since 1970
    queued_s: float | None = None  # taken from the file to request sent
    ttft_s: float | None = None
    latency_s: float | None = None  # request sent to last byte
    status: str  # ok, lost, or an error kind
    http_status: int | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None  # None: unknown; 0 when refused before any work
    in_flight: int | None = None  # calls of this lane in flight when it was sent, itself included
    loop_lag_s: float | None = None
    raw_usage: Mapping[str, object] | None = None
    max_tokens: int | None = None  # the longest reply allowed, as sent
    reserved_usd: float | None = None  # set aside for it; None: no budget held it
    most_usd: float | None = None  # it could cost; None: no price was known, or nothing bounded its tokens
    error: str | None = None  # why there is no reply, in words
    note: str | None = None  # what of its reply was mended or is not believed; None: nothing
    mode: str | None = REALTIME  # or batch; None: an earlier version wrote it
    batch_id: str | None = None  # the provider's, of the batch that it was in
    batch_ended_at: float | None = None  # UTC, seconds since 1970
    load: str | None = None  # the step that it was due in; what follows is known in steps alone
    due_at: float | None = None  # UTC, seconds since 1970
    late_s: float | None = None  # due to request sent
    phase: str | None = None  # warmup or measured: when it was due
    ttfo_s: float | None = None  # request sent to the first token of the answer, thinking left out
    connect_s: float | None = None  # of `late_s`: until a connection was made; None: a used one was there
    chunks: int | None = None  # of a stream, that brought text
    gap_p50_s: float | None = None  # between two of them
    gap_p99_s: float | None = None
    gap_max_s: float | None = None
    output_chars: int | None = None  # of thinking and answer
    kept_connection: str | None = None  # closed by the server: resent or lost; None: it was not
    gap_counts: str | None = None  # JSON: each bin of a histogram (`histogram_text`), how many gaps are in it
    worker: str | None = None  # the name of the process that made it; None: the run's own


@dataclass(slots=True, kw_only=True)
class Ended:
    """An attempt is over; written down, with the whole reply, before it is graded or with its grade."""

    attempt: Attempt
    reply: Reply | None
    graded_next: bool = field(default=False, compare=False)  # its result follows before anything is awaited


@dataclass(slots=True, kw_only=True)
class Result:
    """A trial is closed: its reply or last error, its grades, and what all its attempts cost."""

    trial: Trial
    reply: Reply | None
    error: ProviderError | None
    grades: tuple[Grade, ...]  # headline first
    attempts: int
    cost_usd: float | None  # None if that of any attempt is unknown
    price_source: str | None
    queued_s: float | None
    ttft_s: float | None
    latency_s: float | None
    finished_at: float  # UTC, seconds since 1970
    reused_from: str | None = None  # the sweep whose answer it is; None: this one asked


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneMinute:
    """The work of a lane within one minute of the clock: one row of `lanes`."""

    lane: str
    started_at: float  # UTC, seconds since 1970
    seconds: float  # of that minute in which it ran
    requests: int  # calls started
    tokens: float  # as the provider counts them, of calls that ended
    input_tokens: float
    output_tokens: float
    limits: Mapping[str, float]  # a minute, in force at its end, by what they count
    share: float  # of them that the lane allowed itself at its end, after refusals
    most_in_flight: int
    refused: int  # calls that were one too many: 429, 503, 529
    waited_s: Mapping[str, float]  # by what kept the next call from starting
    pauses: tuple[str, ...] = ()  # of more than ten seconds that began in it: why
    changes: tuple[str, ...] = ()  # by a person, at its end: when, who and what


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWhen:
    """A rule for when enough is known of a cell to ask no more of it; at least one of the two."""

    ci_width: float | None = None  # once the always-valid interval of its accuracy is no wider
    saturated: float | None = None  # once all answers are alike and the interval ends no farther from them


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The reason why a cell was asked no further, with its figures then."""

    rule: str  # such as `ci_width 0.05`
    asked: int  # problems of the cell, in the planned order
    correct: int  # of them
    low: float  # of the always-valid interval of the accuracy
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A trial that needs no answer, for enough is known of its cell: one row of `skipped`."""

    trial: Trial
    stop: Stop
    skipped_at: float  # UTC, seconds since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of a load's step: one row of `steps`. Calls are those due after the warm-up."""

    load: str  # such as `poisson 8/s #2`
    model: str  # the alias
    arrivals: str  # constant, poisson, gamma, closed or trace
    rate: float  # asked, calls a second; closed: callers; trace: speed
    round: int  # from 1
    began_at: float  # UTC, seconds since 1970
    warmup_s: float
    seconds: float  # in which its calls were due
    offered: int  # calls that were due
    dropped: int  # of them: never sent, for too many were in flight
    sent: int
    answered: int
    refused: int  # 429, 503, 529
    failed: int  # any other way
    unfinished: int  # when nobody waited any longer
    late_p50_s: float | None  # due to sent, without connecting
    late_p99_s: float | None
    loop_lag_p99_s: float | None
    in_flight_mean: float | None
    in_flight_max: int
    in_flight_slope: float | None  # calls a second
    ks_p: float | None
    dispersion_p: float | None
    client_bound: bool
    saturated: bool | None  # None: the step was too short to tell
    met: int | None  # calls that kept the SLO; None: there is none
    slo: Mapping[str, float] | None
    verdict: str | None  # None: no SLO
    asked: str | None = None  # a digest of how it was asked; None: nobody knows


Event = Sent | Ended | Result | LaneMinute | Skipped | StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The past of a trial without a result: attempts, cost and answer of earlier runs."""

    attempts: int = 0
    cost_usd: float | None = 0.0  # None if that of any attempt is unknown
    ended: Ended | None = None  # an answer that was paid for and is still to be graded
