"""The records that flow through a sweep: Draft → Problem → Trial → Request → Reply → Grade → Result.

Each is made from the ones before it and never changed. They know nothing of Parquet or of providers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from asyncbench.errors import Allowance as Allowance, ProviderError


class Outcome(StrEnum):
    """What became of a trial; decided in this order (design: `outcome_of`)."""

    FAILED = "failed"
    CORRECT = "correct"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A problem as a suite makes it, before a problem set gives it its id."""

    suite: str  # a key of suites.SUITES
    task: str
    variant: str = ""
    representation: str  # integer, float, fraction, scientific or text
    length: int | None  # digits, depth or characters; None where unknown
    operands: tuple[str, ...] = ()  # text: exact at any length, which float and int64 are not
    question: str  # the text asked, exactly
    expected: str  # canonical
    answer_type: str  # integer, decimal, fraction, scientific or text
    extra: str = "{}"  # JSON, the suite's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Draft):
    """One question with a known answer: one row of a problem set."""

    problem_id: str


MOST_IN_FLIGHT = 2_000  # calls of a lane, where nothing says how many
REALTIME, BATCH, AUTO = "realtime", "batch", "auto"  # how a model is asked: auto in batches if there is time


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a lane may use of its provider."""

    rpm: float | None = None  # requests a minute
    tpm: float | None = None  # input and output tokens a minute, together
    input_tpm: float | None = None
    output_tpm: float | None = None
    concurrency: int | None = None  # calls in flight at once; None: as many as the limits need, or pay off
    fraction: float = 1.0  # of all limits a minute, told ones too: the rest is for others with the same key
    group: str | None = None  # models that name the same one share one lane
    most: int = MOST_IN_FLIGHT  # calls in flight at once, where `concurrency` is None
    counts: str = "used"  # what the provider counts against tokens a minute: used, uncached or demanded

    @property
    def most_in_flight(self) -> int:
        """No more calls are ever in flight at once."""
        return self.concurrency or self.most

    @property
    def per_minute(self) -> Mapping[str, float | None]:
        """The limits a minute, by the name of what they count."""
        return {
            "requests": self.rpm,
            "tokens": self.tpm,
            "input_tokens": self.input_tpm,
            "output_tokens": self.output_tpm,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long a trial is tried."""

    attempts: int = 10
    total_s: float = 3600.0
    first_s: float = 1.0  # the first back-off
    longest_s: float = 60.0  # no back-off of ours is longer; a provider's own Retry-After may be


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Deadlines of one call, seconds."""

    connect: float = 30.0
    total: float = 600.0
    first_byte: float | None = None  # request sent to the first byte of the answer (streamed: of its body)
    between_chunks: float | None = None  # of a stream: silence, keep-alive lines not counted as word


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price given in the sweep, USD for a million tokens."""

    input: float
    output: float
    cached_input: float | None = None  # None: as input
    cache_write: float | None = None  # None: as input
    batch: "float | Price | None" = None  # in a batch: a part of these, or others; None: these


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An entry of a sweep: a provider's model with its parameters, under an alias."""

    alias: str
    provider: str  # a key of providers.PROVIDERS or of the endpoint table
    model_id: str
    api: str  # chat, completions, responses or messages
    simulated: bool = False  # answered by our own simulator
    base_url: str | None = None  # None: the provider's own
    key_env: str | None = None  # the NAME of the environment variable that holds the key
    system: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None  # the longest reply allowed, whatever an SDK calls it
    effort: str | None = None  # how hard to think, in the provider's words: none, low, high, max …
    thinking_tokens: int | None = None  # the most tokens to think with
    thinking: str | None = None  # adaptive: the model decides how much
    stream: bool = False  # answers arrive piece by piece; changes no reply
    params: Mapping[str, object] = field(default_factory=dict)  # merged into the body last, as given
    budget_params: Mapping[str, object] = field(
        default_factory=dict
    )  # before those: what a budget adds to it
    price: Price | None = None
    budget_usd: float | None = None  # the most that its calls may cost together, those of earlier runs too
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_reply_mb: float | None = None  # the most that is read of an answer; None: by its longest reply
    replay: str | None = None  # simulated: the folder or file whose recorded answers are given again
    mode: str = REALTIME  # or batch, or auto; changes no trial
    compared: tuple[str, ...] = ()  # limits that make its trials others than those at other limits

    @property
    def compared_limits(self) -> dict[str, float | None]:
        """The limits that are compared, by name."""
        return {name: getattr(self.limits, name) for name in self.compared}

    @property
    def turn(self) -> str | None:
        """What it has in common with models that are asked one after the other; None: it waits for nobody."""
        return f"{self.base_url or self.provider} {self.model_id}" if self.compared else None

    def under(self, condition: "Condition") -> "Model":
        """Return the model as a condition has it asked: parameters of the condition's own win."""
        own = {name: value for name in OF_CONDITIONS if (value := getattr(condition, name)) is not None}
        return replace(self, **own) if own else self


OF_CONDITIONS = ("effort", "temperature")  # parameters of a model that a condition may set, beside `params`


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a problem is asked."""

    name: str = "plain"
    style: str = "chat"  # chat, completion or rules: the form that grading must know
    system: str | None = None
    turns: tuple["Message", ...] = ()  # said before the question: small talk, then worked examples
    examples: int = 0  # how many of these turns, the last ones, are worked examples
    template: str | None = None  # what the question is said in; then `system` and small talk are some, too
    digits: tuple[str, ...] = ()  # the forms that its numbers are written in, as they are applied
    shots: int | None = None  # how many of the suite's own worked examples go before each question
    params: Mapping[str, object] = field(default_factory=dict)  # merged into the body after the model's
    effort: str | None = None
    temperature: float | None = None
    suites: frozenset[str] | None = None  # whose problems are asked like this; None: all
    models: frozenset[str] | None = None  # aliases of those who are asked like this; None: all
    described: Mapping[str, object] = field(default_factory=dict)  # the above in short, as results show it

    def is_for(self, suite: str) -> bool:
        """Whether the problems of a suite are asked like this."""
        return self.suites is None or suite in self.suites

    def asks(self, alias: str) -> bool:
        """Whether a model is asked like this."""
        return self.models is None or alias in self.models


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One problem × model × condition × repeat: the unit of planned work."""

    trial_id: str
    run: str
    sweep: str
    problem_set: str
    problem: Problem
    model: Model
    condition: Condition
    repeat: int = 0  # from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: str  # user or assistant
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A trial made concrete: what is asked, ready for a provider."""

    trial: Trial
    system: str | None
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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

CUT_SHORT = frozenset(
    {
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_context_window_exceeded",
        "model_length",  # Mistral: the context is full
        "incomplete",  # Responses without a reason
    }
)
REFUSALS = frozenset({"content_filter", "refusal"})
# Said of cut replies, too: nothing, or the one word that llama-server's Responses have for every reply. The
# other formats' `stop` is believed: a reply may end by itself with the last token that it was allowed.
_TELLS_NO_CUT = frozenset({None, "completed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a provider answered to one call."""

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
    max_tokens: int | None = field(default=None, compare=False, metadata=UNSTORED)  # allowed, as sent

    @property
    def cut_short(self) -> bool:
        """Whether the provider says that it cut the reply, or tells by its count that it did."""
        if self.finish_reason in CUT_SHORT:
            return True
        written = None if self.usage is None else self.usage.output_tokens
        return self.finish_reason in _TELLS_NO_CUT and written is not None and written == self.max_tokens


def outcome_of(reply: Reply | None, *, answer: str | None, exact_match: bool) -> Outcome:
    """Decide what became of a trial from its reply and what a grader read in it."""
    if reply is None:
        return Outcome.FAILED
    if exact_match:
        return Outcome.CORRECT
    if reply.cut_short:
        return Outcome.TRUNCATED
    if reply.finish_reason in REFUSALS:
        return Outcome.REFUSED
    return Outcome.NO_ANSWER if answer is None else Outcome.WRONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What one grader read in one reply. Fields a suite does not define stay None."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt is over; written down, with the whole reply, before it is graded."""

    attempt: Attempt
    reply: Reply | None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """What a lane did within one minute of the clock: one row of `lanes`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWhen:
    """When enough is known of a cell to ask no more of it; at least one of the two."""

    ci_width: float | None = None  # once the always-valid interval of its accuracy is no wider
    saturated: float | None = None  # once all answers are alike and the interval ends no farther from them


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a cell was asked no further, and what was known of it then."""

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


Event = Sent | Ended | Result | LaneMinute | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What earlier runs already know of a trial that has no result yet."""

    attempts: int = 0
    cost_usd: float | None = 0.0  # None if that of any attempt is unknown
    ended: Ended | None = None  # an answer that was paid for and is still to be graded
