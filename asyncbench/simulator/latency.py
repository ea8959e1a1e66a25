"""How long a simulated model takes: to its first token, and to its last."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPace:
    """How fast answers come, as a server was started or as a request says."""

    latency_s: float = 0.0  # to the end of an answer: the median
    latency_sigma: float = 0.0  # of a lognormal; 0: always the median
    ttft_s: float | None = None  # to the first token of a stream; None: half the latency
    chunks: int | None = None  # pieces that a text is cut into at most; None: of four characters each

    def but(self, asked: Mapping[str, float]) -> "AnswerPace":
        """Return the pace with what a request says; its latency does away with the server's first token."""
        given = {"ttft_s": None, **asked} if "latency_s" in asked else asked
        return replace(self, **given)  # its keys are ours: `asked.pace_of` saw to that


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When the answer of one call comes: seconds since it was admitted."""

    ttft_s: float  # the first token
    latency_s: float  # the end, never before the first token
    chunks: int | None

    def due_s(self, place: int, pieces: int) -> float:
        """Return when a piece is due: the first with the first token, the last with the end, evenly."""
        return self.ttft_s + (self.latency_s - self.ttft_s) * place / max(1, pieces - 1)


class Latency:
    """Draws timings: always the median, or a lognormal around it when `latency_sigma` is above 0."""

    def __init__(self, pace: AnswerPace, *, seed: int, model: str) -> None:
        self._pace = pace
        self._usual = _median(pace)
        self._random = random.Random(f"latency/{seed}/{model}")

    def draw(self, asked: Mapping[str, float] | None = None) -> Timing:
        """Return the timing of the next request; what it says itself wins. One factor scales both times."""
        pace, timing = self._pace, self._usual
        if asked:
            pace = pace.but(asked)
            timing = _median(pace)
        if not (timing.latency_s and pace.latency_sigma):
            return timing
        factor = math.exp(pace.latency_sigma * self._random.gauss(0, 1))
        return replace(timing, ttft_s=timing.ttft_s * factor, latency_s=timing.latency_s * factor)


def _median(pace: AnswerPace) -> Timing:
    ttft_s = pace.latency_s / 2 if pace.ttft_s is None else pace.ttft_s
    return Timing(ttft_s=ttft_s, latency_s=max(pace.latency_s, ttft_s), chunks=pace.chunks)
