"""Faults on purpose: their kinds, and the seeded stream that hands them out."""

import bisect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from asyncbench.errors import ConfigError


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

    def concerns(self, model: str) -> bool:
        """Tell whether requests to `model` may meet this fault."""
        return self.model in (None, model)


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
        mine = [fault for fault in faults if fault.concerns(model)]
        self._kinds = [fault.kind for fault in mine]
        self._edges = list(itertools.accumulate(fault.rate for fault in mine))
        self._random = random.Random(f"faults/{seed}/{model}")

    def draw(self, *, streamed: bool = False) -> FaultKind | None:
        """Return what the next request meets; None: nothing goes wrong.

        A request that is not streamed has its turn all the same, and meets nothing where a streamed one
        would have met a fault of streams: streaming some of the requests changes no fault of the others.
        """
        if not self._kinds:
            return None
        place = bisect.bisect_right(self._edges, self._random.random())
        kind = self._kinds[place] if place < len(self._kinds) else None
        return kind if streamed or kind not in OF_STREAMS else None
