"""Settings of a simulator, and the faults that it makes on purpose, dealt by a seeded stream."""

import bisect
import itertools
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from asyncbench.errors import ConfigError
from asyncbench.simulator.batches.settings import USUAL, BatchSettings, NumberRules, check_numbers
from asyncbench.simulator.limits import LIMIT_MODELS, SERVICES, WITH_BURST
from asyncbench.simulator.vendors import VENDORS
from asyncbench.simulator.wire import PaceAsked


class FaultKind(StrEnum):
    """How a call fails."""

    RATE_LIMITED = "429"
    SERVER_ERROR = "500"
    OVERLOADED = "529"  # Anthropic's status; OpenAI's is 503
    DEAD_KEY = "dead_key"  # 401
    NO_QUOTA = "no_quota"  # 429 that no waiting will help
    STALL = "stall"  # accepted, never answered
    RESET = "reset"  # the connection is reset before a status line
    CUT = "cut"  # status, headers and half the body, then the connection closes
    INVALID_JSON = "invalid_json"  # 200 with a body, or an event in its middle, that does not parse
    ERROR_200 = "error_200"  # 200 with an error for a body, and no stream where one was asked for
    STALE = "stale"  # a complete answer, then the connection closes though keep-alive was announced
    CUT_STREAM = "cut_stream"  # half of the events, then the connection closes
    NO_TERMINATOR = "no_terminator"  # half of the events, then a clean end
    STREAM_ERROR = "stream_error"  # half of the events, then one that says so
    SILENT = "silent"  # half of the events, then nothing


OF_STREAMS = frozenset(
    {FaultKind.CUT_STREAM, FaultKind.NO_TERMINATOR, FaultKind.STREAM_ERROR, FaultKind.SILENT}
)
COMPLETE = frozenset({FaultKind.STALE})  # the answer itself is delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A share of the requests fails in one way; of `OF_STREAMS`, a share of the streamed ones."""

    kind: FaultKind
    rate: float  # of the model's requests, 0 to 1
    model: str | None = None  # None: of each model


def parse_fault(text: str) -> Fault:
    """Read `KIND=RATE` or `KIND=RATE@MODEL`, such as `429=0.05` or `cut=0.01@noisy-2`.

    Raises:
        ConfigError: no such kind, or no such share.
    """
    kind, _, rest = text.partition("=")
    rate, _, model = rest.partition("@")
    if kind not in set(FaultKind):
        raise ConfigError(f"fault {text!r}: no kind {kind!r}; kinds: {', '.join(FaultKind)}")
    try:
        share = float(rate)
    except ValueError:
        raise ConfigError(f"fault {text!r}: {rate!r} is not a share; write it as `{kind}=0.05`") from None
    return Fault(kind=FaultKind(kind), rate=share, model=model or None)


def check_rates(faults: Sequence[Fault]) -> None:
    """Refuse shares that cannot be dealt out.

    Raises:
        ConfigError: a share outside 0 to 1, or a model whose shares exceed 1 together.
    """
    for fault in faults:
        if not 0 <= fault.rate <= 1:
            raise ConfigError(f"fault {fault.kind}: a share of {fault.rate} is not between 0 and 1")
    for model in {fault.model for fault in faults}:
        total = sum(fault.rate for fault in faults if fault.model in (None, model))
        if total > 1 + 1e-9:
            raise ConfigError(
                f"faults of {model or 'each model'}: {total:g} of its requests; lower them to 1 together"
            )


class FaultStream:
    """Deals one model its faults: the nth request of a model meets the same one in every run."""

    def __init__(self, faults: Sequence[Fault], *, seed: int, model: str) -> None:
        mine = [fault for fault in faults if fault.model in (None, model)]
        self._kinds = [fault.kind for fault in mine]
        self._edges = list(itertools.accumulate(fault.rate for fault in mine))
        self._random = random.Random(f"faults/{seed}/{model}")

    def draw(self, *, streamed: bool = False) -> FaultKind | None:
        """Return the fault that the next request meets, or None.

        A request that is not streamed has its turn all the same, and meets nothing where a streamed one
        would have met a fault of streams: streaming some of the requests changes no fault of the others.
        """
        if not self._kinds:
            return None
        index = bisect.bisect_right(self._edges, self._random.random())
        kind = self._kinds[index] if index < len(self._kinds) else None
        return kind if streamed or kind not in OF_STREAMS else None


_CHOICES: Mapping[str, Collection[str]] = {
    "limit_model": LIMIT_MODELS,
    "tokens_counted": ("used", "demanded"),
    "service": SERVICES,
    "like": VENDORS,
}
_NUMBERS: NumberRules = (
    (("port",), lambda value: 0 <= value <= 65_535, "0 (any free one) to 65535"),
    (
        ("rpm", "tpm", "input_tpm", "output_tpm", "burst_s"),
        lambda value: 0 < value < math.inf,
        "above 0, or left out",
    ),
    (
        ("latency_s", "latency_sigma", "storm_s", "freeze_at_s", "freeze_s"),
        lambda value: 0 <= value < math.inf,
        "0 or above",
    ),
    (("ttft_s",), lambda value: 0 <= value < math.inf, "0 or above, or left out"),
    (("chunks", "slots"), lambda value: value >= 1, "1 or above, or left out"),
    (
        ("worse_above_rate", "worse_in_flight"),
        lambda value: 0 <= value < math.inf,
        "0 or above, or left out",
    ),
    (("worse_share",), lambda value: 0 <= value <= 1, "from 0 to 1"),
    (("speedup", "longest_s"), lambda value: 0 < value < math.inf, "above 0, or left out"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPace:
    """How fast answers come, as a server was started or as a request says."""

    latency_s: float = 0.0  # to the end of an answer: the median; with `service`, the mean
    latency_sigma: float = 0.0  # of a lognormal; 0: always the median
    service: str | None = None  # a key of SERVICES: how latencies are spread around their mean
    slots: int | None = None  # calls that are answered at one time, others wait in line; None: any number
    freeze_at_s: float = 0.0  # after the first call: from when on the server stands still, once, ...
    freeze_s: float = 0.0  # ... for so long
    ttft_s: float | None = None  # to the first token of a stream; None: half the latency
    chunks: int | None = None  # pieces that a text is cut into at most; None: of four characters each
    speedup: float | None = None  # recorded times are divided by it; None: they are not repeated
    longest_s: float | None = None  # longer recorded times are cut to this, after `speedup`; None: none is
    storm_s: float = 0.0  # how long all calls of a model get a 429, once, when it is well under way
    worse_above_rate: float | None = None  # calls in a second, above which answers worsen; None: none is
    worse_in_flight: int | None = None  # calls in flight, above which answers worsen; None: none is
    worse_share: float = 0.2  # of the answers, spoilt then

    def but(self, pace: PaceAsked | None) -> "AnswerPace":
        """Return the pace with what a request says; its latency does away with the server's first token."""
        if not pace:  # most requests
            return self
        changes = {"ttft_s": None, **pace} if "latency_s" in pace else pace
        return replace(self, **changes)  # its keys are ours: `asked.plainly_asked` saw to that


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(AnswerPace):
    """A simulator, described; its limits and its pace hold for each model name separately.

    `replay` names results folders and files of recorded answers, which are served from memory.

    Raises:
        ConfigError: a value that makes no sense.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    port: int = 0  # 0: any free one
    seed: int = 0
    problems: tuple[Path, ...] = ()  # problem sets (Parquet) whose questions it can answer
    replay: tuple[Path, ...] = ()  # results folders of runs or imports, files of recorded answers
    keys: tuple[str, ...] = ()  # the API keys accepted; empty: any
    rpm: float | None = None
    tpm: float | None = None  # input and output tokens together
    input_tpm: float | None = None
    output_tpm: float | None = None
    limit_model: str = "token_bucket"  # a key of limits.LIMIT_MODELS: how a minute's limit is counted
    burst_s: float | None = None  # of a bucket: seconds' worth that may be used at once; None: one second's
    # What a call counts against `tpm`. used: its input and output, known beforehand here; demanded: the
    # greater of its max_tokens and a quarter of its characters, whatever it then uses (OpenAI).
    tokens_counted: str = "used"
    like: str | None = None  # a key of VENDORS: the provider that is played; None: OpenAI and Anthropic
    faults: tuple[Fault, ...] = ()
    batch: BatchSettings = USUAL  # how batches go, where a batch itself does not say
    folder: Path | None = None  # where files and batches are kept for the next start; None: nowhere

    def __post_init__(self) -> None:
        check_numbers(self, _NUMBERS)
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) is not None and value not in choices:
                raise ConfigError(f"simulator: {name} is {value!r}; choose of {', '.join(choices)}")
        if self.burst_s is not None and self.limit_model not in WITH_BURST:
            raise ConfigError(
                f"simulator: burst_s is {self.burst_s:g}, but limit_model {self.limit_model!r} knows none; "
                f"leave it out, or choose of {', '.join(WITH_BURST)}"
            )
        check_rates(self.faults)


_JSON = TypeAdapter(Settings)


def settings_json(settings: Settings) -> str:
    return _JSON.dump_json(settings).decode()


def parse_settings(text: str) -> Settings:
    """Read what `settings_json` wrote, or what was written by hand in its form.

    Raises:
        ConfigError: not JSON, an unknown key, or a value that its key refuses.
    """
    try:
        return _JSON.validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"])) or "settings"
        raise ConfigError(f"simulator: {key}: {fault['msg']}") from None
