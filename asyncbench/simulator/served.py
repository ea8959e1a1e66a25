"""One model as the simulator serves it: its voice, limits, latency, faults and counts."""

import asyncio

from asyncbench.simulator.counts import Tally
from asyncbench.simulator.faults import FaultStream
from asyncbench.simulator.latency import Latency
from asyncbench.simulator.limits import Gate, TokenBucket
from asyncbench.simulator.settings import Settings
from asyncbench.simulator.voice import Voice
from asyncbench.simulator.wire import Answer, RefusedError, Why


class Served:
    """A model's name and all that is its own: models share no limit, no fault and no count."""

    def __init__(self, name: str, voice: Voice, settings: Settings, *, at_s: float) -> None:
        self.voice = voice
        self._latency = Latency(settings.latency_s, settings.latency_sigma, seed=settings.seed, model=name)
        self.gate = _gate(settings, at_s)
        self.faults = FaultStream(settings.faults, seed=settings.seed, model=name)
        self.tally = Tally()

    def admit(self, answer: Answer, at_s: float) -> None:
        """Charge a call to the limits, by the tokens that it will have used.

        Raises:
            RefusedError: the limits have no room for it; nothing was charged.
        """
        if wait_s := self.gate.admit(_cost(answer), at_s):
            raise RefusedError(Why.RATE_LIMITED, "Rate limit reached.", retry_after_s=wait_s)

    async def think(self, latency: tuple[float, float] | None = None) -> None:
        """Let the time pass that an answer takes; median seconds and sigma may come from the request."""
        if latency_s := self._latency.draw_s(latency):
            await asyncio.sleep(latency_s)


def _gate(settings: Settings, at_s: float) -> Gate:
    limits = {
        "requests": settings.rpm,
        "tokens": settings.tpm,
        "input-tokens": settings.input_tpm,
        "output-tokens": settings.output_tpm,
    }
    return Gate(
        {
            what: TokenBucket(per_minute, burst_s=settings.burst_s, at_s=at_s)
            for what, per_minute in limits.items()
            if per_minute is not None
        }
    )


def _cost(answer: Answer) -> dict[str, float]:
    return {
        "requests": 1,
        "tokens": answer.input_tokens + answer.output_tokens,
        "input-tokens": answer.input_tokens,
        "output-tokens": answer.output_tokens,
    }
