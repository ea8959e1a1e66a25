"""How long a simulated model thinks."""

import math
import random


class Latency:
    """Draws seconds: always the median, or a lognormal around it when `sigma` is above 0."""

    def __init__(self, median_s: float, sigma: float, *, seed: int, model: str) -> None:
        self._median_s, self._sigma = median_s, sigma
        self._random = random.Random(f"latency/{seed}/{model}")

    def draw_s(self, asked: tuple[float, float] | None = None) -> float:
        """Return the seconds that the next request takes; its own median and sigma win, where it has them."""
        median_s, sigma = asked or (self._median_s, self._sigma)
        if not (median_s and sigma):
            return median_s
        return median_s * math.exp(sigma * self._random.gauss(0, 1))
