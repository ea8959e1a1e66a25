"""Records of questions: Draft → Problem → Trial → Request, with the models and conditions of a sweep."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple


def accepted_answers(expected: str, extra: str) -> tuple[str, ...]:
    """Return every answer that counts as right to a problem with these fields."""
    listed = json.loads(extra).get("accepted") if '"accepted"' in extra else None
    return tuple(listed or (expected,))


class Outcome(StrEnum):
    """The outcome of a trial, decided in this order by `outcome_of`."""

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

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every answer that counts as right: `expected`, and what `extra` lists as `accepted`."""
        return accepted_answers(self.expected, self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Draft):
    """One question with a known answer: one row of a problem set."""

    problem_id: str


class Cell(NamedTuple):
    """Problems of one kind and length."""

    suite: str
    task: str
    variant: str
    representation: str
    length: int | None


MOST_IN_FLIGHT = 2_000  # calls of a lane, where nothing says how many
REALTIME, BATCH, AUTO = "realtime", "batch", "auto"  # how a model is asked: auto in batches if there is time
SDK = "sdk"  # a door: the SDK of the provider builds every call


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a lane."""

    rpm: float | None = None  # requests a minute
    tpm: float | None = None  # input and output tokens a minute, together
    input_tpm: float | None = None
    output_tpm: float | None = None
    concurrency: int | None = None  # calls in flight at once; None: as many as the limits need, or pay off
    fraction: float = 1.0  # of all limits a minute, told ones too: the rest is for others with the same key
    group: str | None = None  # models that name the same one share one lane
    most: int = MOST_IN_FLIGHT  # calls in flight at once, where `concurrency` is None
    counts: str = "used"  # what the provider counts against tokens a minute: used, uncached or demanded
    one_at_a_time: bool | None = None  # whether its server holds one model at a time; None: it holds many

    @property
    def most_in_flight(self) -> int:
        """No more calls are in flight at once."""
        return self.concurrency or self.most

    @property
    def connections(self) -> int:
        """No more calls can ever be in flight at once, whatever is set while a run goes on."""
        return max(self.most_in_flight, MOST_IN_FLIGHT)

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
    """The most attempts of a trial, and the time for them."""

    attempts: int = 10
    total_s: float = 3600.0
    unreachable_s: float = 5.0  # of a server that never answered: the address is wrong, or nobody is there
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

    input: float | None = None  # None: as published, but for batches
    output: float | None = None  # likewise
    cached_input: float | None = None  # None: as input
    cache_write: float | None = None  # None: as input
    batch: "float | Price | None" = None  # in a batch: a part of these, or others; None: these


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """The NAMES of the variables that say which certificate a client shows to a server that asks for one."""

    cert_env: str  # the path of a PEM file
    key_env: str | None = None  # the path of its private key; None: that is in the same file
    password_env: str | None = None  # of the private key; None: it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An entry of a sweep: a provider's model with its parameters, under an alias."""

    alias: str
    provider: str  # a key of providers.PROVIDERS or of the endpoint table
    model_id: str
    api: str  # chat, completions, responses, messages or contents
    simulated: bool = False  # answered by our own simulator
    file: str | None = None  # where a Python function stands; None: none does, or it is no function
    base_url: str | None = None  # None: the provider's own
    replicas: tuple[str, ...] = ()  # other addresses that serve the same model
    key_env: str | None = None  # the NAME of the environment variable that holds the key
    headers: Mapping[str, str] = field(
        default_factory=dict
    )  # header → the NAME of the variable with its value
    query: Mapping[str, str] = field(default_factory=dict)  # of every address: likewise
    client_cert: ClientCertificate | None = None
    system: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None  # the longest reply allowed, whatever an SDK calls it
    effort: str | None = None  # how hard to think, in the provider's words: none, low, high, max …
    thinking_tokens: int | None = None  # the most tokens to think with
    thinking: str | None = None  # adaptive: the model decides how much
    prompt_cache: str | None = None  # 5m or 1h: how long the shared beginning is kept; changes no reply
    stream: bool = False  # answers arrive piece by piece; changes no reply
    params: Mapping[str, object] = field(default_factory=dict)  # merged into the body last, as given
    budget_params: Mapping[str, object] = field(default_factory=dict)  # merged before them, by a budget
    price: Price | None = None
    budget_usd: float | None = None  # the most that its calls may cost together, those of earlier runs too
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_reply_mb: float | None = None  # the most that is read of an answer; None: by its longest reply
    replay: str | None = None  # simulated: the folder or file whose recorded answers are given again
    door: str | None = None  # sdk: its SDK builds every call; None: it builds the first ones
    mode: str = REALTIME  # or batch, or auto; changes no trial
    compared: tuple[str, ...] = ()  # limits that make its trials others than those at other limits

    @property
    def compared_limits(self) -> dict[str, float | None]:
        """The limits that are compared, by name."""
        return {name: getattr(self.limits, name) for name in self.compared}

    @property
    def variables(self) -> dict[str, str]:
        """The NAME of each environment variable that its calls need → what it holds."""
        named = {self.key_env: "API key"}
        named |= {name: f"header {header}" for header, name in self.headers.items()}
        named |= {name: f"query {key}" for key, name in self.query.items()}
        if (cert := self.client_cert) is not None:
            named |= {cert.cert_env: "client certificate", cert.key_env: "private key"}
            named |= {cert.password_env: "password of the private key"}
        return {name: purpose for name, purpose in named.items() if name is not None}

    @property
    def turn(self) -> str | None:
        """A key shared by models that are asked one after the other, or None if the model need not wait."""
        server = (self.base_url or self.provider).rstrip("/")
        if self.limits.one_at_a_time:
            return server
        return f"{server} {self.model_id}" if self.compared else None

    def under(self, condition: "Condition") -> "Model":
        """Return the model as a condition has it asked: parameters of the condition's own win."""
        overrides = {name: value for name in OF_CONDITIONS if (value := getattr(condition, name)) is not None}
        return replace(self, **overrides) if overrides else self


OF_CONDITIONS = ("effort", "temperature")  # parameters of a model that a condition may set, beside `params`


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A way to ask problems."""

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
    load: str | None = None  # the step of a load that asks it, such as `poisson 8/s #2`


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
