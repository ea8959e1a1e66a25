"""One model as the simulator serves it: its voice, limits, latency, faults and counts."""

import asyncio

from asyncbench.simulator.counts import RequestCounts, Seconds
from asyncbench.simulator.faults import FaultStream
from asyncbench.simulator.latency import AnswerPace, Latency, Timing
from asyncbench.simulator.limits import BURST_S, LIMIT_MODELS, ServedLimits
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.speakers import Voice
from asyncbench.simulator.wire import Like, RefusedError, Why, WireAnswer, WireRequest, tokens


class Served:
    """A model's name and all that is its own: models share no limit, no fault and no count."""

    def __init__(self, name: str, voice: Voice, like: Like, settings: Settings, *, at_s: float) -> None:
        self.voice = voice
        self.like = like
        self.latency = Latency(_pace(settings), seed=settings.seed, model=name)
        self.gate = _gate(settings, at_s)
        self.faults = FaultStream(settings.faults, seed=settings.seed, model=name)
        self.tally = RequestCounts()
        self.seconds = Seconds()
        self._demanded = settings.tokens_counted == "demanded"

    def admit(self, asked: WireRequest, answer: WireAnswer, at_s: float) -> None:
        """Charge a call to the limits, by the tokens that it will have used or has demanded.

        Raises:
            RefusedError: the limits have no room for it; nothing was charged.
        """
        cost = _cost(answer)
        if self._demanded:
            cost["tokens"] = max(asked.max_tokens or 0, tokens(asked.prompt_characters))
        if wait_s := self.gate.admit(cost, at_s):
            self.seconds.rejected(at_s)
            raise RefusedError(Why.RATE_LIMITED, "Rate limit reached.", retry_after_s=wait_s)
        self.seconds.accepted(at_s, cost)


async def think(timing: Timing) -> None:
    """Let the time pass that a whole answer takes."""
    if timing.latency_s:
        await asyncio.sleep(timing.latency_s)


def _pace(settings: Settings) -> AnswerPace:
    return AnswerPace(
        latency_s=settings.latency_s,
        latency_sigma=settings.latency_sigma,
        ttft_s=settings.ttft_s,
        chunks=settings.chunks,
    )


def _gate(settings: Settings, at_s: float) -> ServedLimits:
    made = LIMIT_MODELS[settings.limit_model]
    burst_s = BURST_S if settings.burst_s is None else settings.burst_s
    limits = {
        "requests": settings.rpm,
        "tokens": settings.tpm,
        "input-tokens": settings.input_tpm,
        "output-tokens": settings.output_tpm,
    }
    return ServedLimits(
        {
            what: made(per_minute, burst_s, at_s)
            for what, per_minute in limits.items()
            if per_minute is not None
        }
    )


def _cost(answer: WireAnswer) -> dict[str, float]:
    return {
        "requests": 1,
        "tokens": answer.input_tokens + answer.output_tokens,
        "input-tokens": answer.input_tokens,
        "output-tokens": answer.output_tokens,
    }
