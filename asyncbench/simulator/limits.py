"""Rate limits: how much of what a model may be asked for, and what is left of it.

Another way to count (fixed window, sliding window, one-second quanta) is another `Limiter`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

_ROUNDING = 1e-9  # a bucket refilled in many small steps ends a hair below the exact sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A limit as a provider's headers tell it."""

    per_minute: float
    remaining: float  # what would be admitted now
    reset_s: float  # until `remaining` is back at its most


class Limiter(Protocol):
    """One limit on one quantity. Times are seconds of a clock that never goes back."""

    def wait_s(self, amount: float, at_s: float) -> float:
        """Return how long until `amount` is admitted; 0: now."""
        ...

    def take(self, amount: float, at_s: float) -> None:
        """Charge an amount that was admitted."""
        ...

    def allowance(self, at_s: float) -> Allowance:
        """Return what is left."""
        ...


class TokenBucket:
    """`per_minute` a minute, refilled continuously, at most `burst_s` seconds' worth (or 1) saved up.

    Starts full. An amount larger than the bucket is admitted when it is full and leaves a debt.
    """

    def __init__(self, per_minute: float, *, burst_s: float, at_s: float) -> None:
        self._per_minute, self._per_s = per_minute, per_minute / 60
        self._capacity = max(1.0, self._per_s * burst_s)
        self._level, self._filled_at_s = self._capacity, at_s

    def wait_s(self, amount: float, at_s: float) -> float:
        missing = min(amount, self._capacity) - self._fill(at_s)
        return missing / self._per_s if missing > _ROUNDING else 0.0

    def take(self, amount: float, at_s: float) -> None:
        self._level = self._fill(at_s) - amount

    def allowance(self, at_s: float) -> Allowance:
        level = self._fill(at_s)
        return Allowance(
            per_minute=self._per_minute,
            remaining=max(0.0, level),
            reset_s=(self._capacity - level) / self._per_s,
        )

    def _fill(self, at_s: float) -> float:
        grown = self._level + (at_s - self._filled_at_s) * self._per_s
        self._level, self._filled_at_s = min(self._capacity, grown), at_s
        return self._level


class Gate:
    """All limits of one model, by what they count: a request passes all of them or is charged to none."""

    def __init__(self, limiters: Mapping[str, Limiter]) -> None:
        self._limiters = limiters

    def admit(self, cost: Mapping[str, float], at_s: float) -> float:
        """Charge a request that costs `cost` of each quantity, or return the seconds to wait; 0: admitted."""
        waits_s = (limiter.wait_s(cost[what], at_s) for what, limiter in self._limiters.items())
        wait_s = max(waits_s, default=0.0)
        if wait_s == 0:
            for what, limiter in self._limiters.items():
                limiter.take(cost[what], at_s)
        return wait_s

    def allowances(self, at_s: float) -> dict[str, Allowance]:
        """Return what is left of each quantity."""
        return {what: limiter.allowance(at_s) for what, limiter in self._limiters.items()}
