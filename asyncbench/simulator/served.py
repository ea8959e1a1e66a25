"""Models as the simulator serves them: names, sources, limits, latency, faults and counts."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from random import Random

from asyncbench.simulator.answers import MODELS, AnswerSource, MadeUp, Recording, Replay, Taken, answerer
from asyncbench.simulator.anthropic_wire import ANTHROPIC
from asyncbench.simulator.asked import chats_in, questions_in, tails
from asyncbench.simulator.counts import Seconds, no_calls
from asyncbench.simulator.limits import (
    BURST_S,
    LIMIT_MODELS,
    NEVER,
    SERVICES,
    Freeze,
    ServedLimits,
    ServiceLine,
)
from asyncbench.simulator.openai_wire import CHAT, COMPLETIONS, RESPONSES
from asyncbench.simulator.prompt_cache import PromptCache
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.settings import AnswerPace, FaultStream, Settings
from asyncbench.simulator.vendors import OWN, VENDORS, split
from asyncbench.simulator.wire import (
    PaceAsked,
    RefusedError,
    Vendor,
    VendorWire,
    Why,
    WireAnswer,
    WireRequest,
    tokens,
)

STORM_AFTER = 200  # calls of a model: then as many are in flight as its limits allow


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When the answer of one call comes: seconds since it was admitted."""

    ttft_s: float  # the first token
    latency_s: float  # the end, never before the first token
    chunks: int | None
    freeze: Freeze = NEVER  # when the server stands still, by the same clock

    def due_s(self, index: int, pieces: int) -> float:
        """Return when a piece is due: the first with the first token, the last with the end, evenly."""
        return self.ttft_s + (self.latency_s - self.ttft_s) * index / max(1, pieces - 1)

    def comes_s(self, due_s: float) -> float:
        """Return when that comes which is due: later, if the server stands still before."""
        return self.freeze.done_s(0.0, due_s)


class Latency:
    """Draws timings: by `service` around the mean; else the median, or by `latency_sigma` around it."""

    def __init__(self, pace: AnswerPace, *, seed: int, model: str) -> None:
        self._pace = pace
        self._random = Random(f"latency/{seed}/{model}")

    def draw(self, wanted: PaceAsked | None = None, *, recorded_s: float | None = None) -> Timing:
        """Return the timing of the next request; what it says itself wins. One factor scales both times.

        `recorded_s`: what the call took when it was recorded, which `speedup` and `longest_s` shorten.
        """
        pace = self._pace.but(wanted)
        if pace.speedup and recorded_s is not None:
            shortened_s = min(recorded_s / pace.speedup, pace.longest_s or math.inf)
            return _median(replace(pace, latency_s=shortened_s))
        timing = _median(pace)
        if not timing.latency_s:
            return timing
        if pace.service is not None:
            factor = SERVICES[pace.service](self._random, pace.latency_sigma)
        elif pace.latency_sigma:
            factor = math.exp(pace.latency_sigma * self._random.gauss(0, 1))
        else:
            return timing
        return replace(timing, ttft_s=timing.ttft_s * factor, latency_s=timing.latency_s * factor)


def _median(pace: AnswerPace) -> Timing:
    ttft_s = pace.latency_s / 2 if pace.ttft_s is None else pace.ttft_s
    return Timing(ttft_s=ttft_s, latency_s=max(pace.latency_s, ttft_s), chunks=pace.chunks)


class Storm:
    """A while, once, in which all calls of a model are refused, as by a provider that is overrun."""

    def __init__(self) -> None:
        self._calls = 0
        self._ends_s: float | None = None  # None: it has not come yet

    def check(self, seconds: float, at_s: float) -> None:
        """Count a call; raise RefusedError while the storm lasts, which is so long for it."""
        self._calls += 1
        if self._ends_s is None and seconds and self._calls >= STORM_AFTER:
            self._ends_s = at_s + seconds
        if self._ends_s is not None and at_s < self._ends_s:
            wait_s = self._ends_s - at_s
            raise RefusedError(Why.RATE_LIMITED, "Too many requests: a storm.", retry_after_s=wait_s)


class Worsening:
    """The share of answers that are spoilt when a model has much to do: calls in a second, or in flight."""

    def __init__(self) -> None:
        self._came_s = deque[float]()

    def share(self, pace: AnswerPace, in_flight: int, at_s: float) -> float:
        """Count a call; return which share of answers is spoilt now."""
        if pace.worse_above_rate is None and pace.worse_in_flight is None:
            return 0.0
        self._came_s.append(at_s)
        while self._came_s[0] <= at_s - 1.0:
            self._came_s.popleft()
        too_fast = pace.worse_above_rate is not None and len(self._came_s) > pace.worse_above_rate
        too_many = pace.worse_in_flight is not None and in_flight > pace.worse_in_flight
        return pace.worse_share if too_fast or too_many else 0.0


class Served:
    """One model of a server, with its own limits, faults and counts, which no two models share."""

    def __init__(
        self, name: str, source: AnswerSource, vendor: Vendor, settings: Settings, *, at_s: float
    ) -> None:
        self.source = source
        self.vendor = vendor
        self._pace = AnswerPace(**{field.name: getattr(settings, field.name) for field in fields(AnswerPace)})
        self._lines: dict[tuple[int | None, float, float], ServiceLine] = {}
        self._storm = Storm()
        self._worsening = Worsening()
        self._prompt_cache = PromptCache()
        self.latency = Latency(self._pace, seed=settings.seed, model=name)
        burst_s = BURST_S if settings.burst_s is None else settings.burst_s
        limits = {
            "requests": settings.rpm,
            "tokens": settings.tpm,
            "input-tokens": settings.input_tpm,
            "output-tokens": settings.output_tpm,
        }
        make_limiter = LIMIT_MODELS[settings.limit_model]
        self.gate = ServedLimits(
            {
                what: make_limiter(per_minute, burst_s, at_s)
                for what, per_minute in limits.items()
                if per_minute is not None
            }
        )
        self.faults = FaultStream(settings.faults, seed=settings.seed, model=name)
        self.tally = no_calls()
        self.seconds = Seconds()
        self._demanded = settings.tokens_counted == "demanded"

    def take(self, request: WireRequest, at_s: float) -> Taken:
        """Return the reply of a call, worse where the model has much to do; raises as its source does.

        In a storm it raises RefusedError.
        """
        pace = self._pace.but(request.pace)
        self._storm.check(pace.storm_s, at_s)
        worse = self._worsening.share(pace, self.tally["in_flight"], at_s)
        taken = self.source.take(request, worse)
        if request.prefix is None:
            return taken
        return replace(taken, answer=self._prompt_cache.use(taken.answer, request.prefix, at_s))

    def line(self, wanted: PaceAsked) -> ServiceLine | None:
        """Return the queue in which a call waits, the same for calls alike, or None if it waits in none."""
        pace = self._pace.but(wanted)
        if pace.slots is None and not pace.freeze_s:
            return None
        key = (pace.slots, pace.freeze_at_s, pace.freeze_s)
        if key not in self._lines:
            self._lines[key] = ServiceLine(pace.slots, freeze_at_s=pace.freeze_at_s, freeze_s=pace.freeze_s)
        return self._lines[key]

    def admit(self, request: WireRequest, answer: WireAnswer, at_s: float) -> None:
        """Charge a call to the limits, by the tokens that it will have used or has demanded.

        Raises:
            RefusedError: the limits have no room for it; nothing was charged.
        """
        cost = {
            "requests": 1.0,
            "tokens": answer.input_tokens + answer.output_tokens,
            "input-tokens": answer.input_tokens - answer.cached_tokens,
            "output-tokens": answer.output_tokens,
        }
        if self._demanded:
            cost["tokens"] = max(request.max_tokens or 0, tokens(request.prompt_characters))
        if wait_s := self.gate.admit(cost, at_s):
            self.seconds.rejected(at_s)
            raise RefusedError(Why.RATE_LIMITED, "Rate limit reached.", retry_after_s=wait_s)
        self.seconds.accepted(at_s, cost)


async def think(timing: Timing, *, passed_s: float = 0.0) -> None:
    """Wait until a whole answer is due; `passed_s` of its time have passed already."""
    if (left_s := timing.comes_s(timing.latency_s) - passed_s) > 0:
        await asyncio.sleep(left_s)


WIRES: Mapping[str, VendorWire] = {
    "/v1/chat/completions": CHAT,
    "/chat/completions": CHAT,
    "/v1/completions": COMPLETIONS,
    "/completions": COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/responses": RESPONSES,
    "/v1/messages": ANTHROPIC,
    "/messages": ANTHROPIC,
}


class ServedModels:
    """The models of a server; one that was asked before is the same one again, by a batch as by a call."""

    def __init__(
        self, settings: Settings, questions: Questions, recordings: Mapping[str, Sequence[Recording]]
    ) -> None:
        self._settings, self._questions = settings, questions
        self.vendor = VENDORS[settings.like or OWN]
        self._recordings = recordings  # what each name may mean
        clear = sorted(name for name, candidates in recordings.items() if len(candidates) == 1)
        self.names = tuple(dict.fromkeys([*MODELS, *clear]))
        self.models: dict[str, Served] = {}

    def model(self, name: str) -> Served:
        """Return the model of a name.

        Raises:
            RefusedError: there is none, or the name means several recordings.
        """
        if name in self.models:
            return self.models[name]
        vendor: Vendor | None = self.vendor
        source = self._source(name)
        if source is None:  # only a name that is unknown as a whole is taken apart, such as mistral:noisy
            vendor, rest = split(name)
            source = self._source(rest) if vendor is not None else None
        if vendor is None or source is None:
            raise RefusedError(
                Why.NO_SUCH_MODEL,
                f"No model {name!r}; there are: {', '.join(self.names)}, and noisy-2, …, each as any "
                f"provider would play it: {OWN}:noisy, …. Providers: {', '.join(VENDORS)}.",
            )
        self.models[name] = Served(name, source, vendor, self._settings, at_s=time.monotonic())
        return self.models[name]

    def _source(self, name: str) -> AnswerSource | None:
        # A recording of `noisy-2` is meant by that name; `noisy` itself is always the simulator's own.
        candidates = () if name in MODELS else self._recordings.get(name, ())
        if len(candidates) > 1:
            places = "; ".join(recording.place for recording in candidates)
            raise RefusedError(
                Why.NO_SUCH_MODEL,
                f"The name {name!r} stands for {len(candidates)} recordings: {places}. Ask for a run that "
                "holds one model by the run's name, or start the simulator with fewer folders.",
            )
        if candidates:
            return Replay(candidates[0])
        if (play := answerer(name)) is None:
            return None
        return MadeUp(name, play, self._questions, seed=self._settings.seed)


def find_known_question(request: WireRequest, source: AnswerSource) -> WireRequest:
    """Return the request with the known question that it holds.

    The question may be a chat, in a suite's words, at the end of a prompt, or anywhere in a template.
    """
    knows = partial(source.knows, digits=request.digits)
    if (chat := next(filter(knows, chats_in(request.messages)), None)) is not None:
        return replace(request, question=chat)
    if request.ignore_eos or knows(request.question):
        return request
    candidates = [
        *questions_in(request.question),
        *(tails(request.question) if request.without_roles else ()),
    ]
    question = next(filter(knows, candidates), None) or source.question_in(request)
    return request if question is None else replace(request, question=question)
