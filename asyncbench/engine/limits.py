"""Requests and tokens a minute: one gate for all limits of a lane, taken before a call, settled after it."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from asyncbench.engine.holds import SOON_S, Holds, Pause, Wait, words
from asyncbench.records import Allowance, Limits, Usage

CHARACTERS_PER_TOKEN: Final = 4  # a rule of thumb: exact counts need a vocabulary per model
# Calls arrive a little earlier or later than they were sent, and a window is counted by another clock.
HEADROOM: Final = 0.995
REQUEST_BURST_S: Final = 0.03  # of requests, saved up: what a late wake-up may catch up with
TOKEN_BURST_S: Final = 0.25  # of tokens; less than the headroom of a minute
FORGOTTEN_RPM: Final = 60_000  # a guess that has grown to this is none any more
# Input and output apart: while one of them binds, the other has to be saved up, or neither is used whole.
SPLIT_BURST_S: Final = 0.75
BURST_S: Final[Mapping[str, float]] = {
    "requests": REQUEST_BURST_S,
    "tokens": TOKEN_BURST_S,
    "input_tokens": SPLIT_BURST_S,
    "output_tokens": SPLIT_BURST_S,
}
GIVEN_BACK_S: Final = 1.0  # of what calls did not use, saved up beside
EXPLAINS: Final = 0.5  # of a limit, used by ourselves in the last minute: that nothing remains is no wonder


class Amounts(NamedTuple):
    """What a call takes of each limit."""

    requests: float = 1.0
    tokens: float = 0.0  # input and output together
    input_tokens: float = 0.0
    output_tokens: float = 0.0


class Counting(StrEnum):
    """What a provider counts against tokens a minute (specs of the vendors, 2026)."""

    USED = "used"  # input and output, as they turn out
    UNCACHED = "uncached"  # the same without what was read from a cache: Anthropic, Groq
    DEMANDED = "demanded"  # max_tokens, or the prompt where that is more, at admission and for good: OpenAI


class Bucket:
    """`per_minute` of something a minute, at most `burst_s` seconds' worth of it saved up.

    Starts with one unit, or empty if it holds less: no burst. More than it holds waits for a full bucket and
    leaves a debt. Times are seconds of a clock that never goes back.
    """

    __slots__ = ("_burst_s", "_capacity", "_filled_at_s", "_level", "_per_s", "_taken", "per_minute")

    def __init__(self, per_minute: float, *, burst_s: float, at_s: float) -> None:
        self._burst_s = burst_s
        self._level, self._filled_at_s = 1.0, at_s
        self._taken = 0.0  # about what was taken in the last minute
        self._set(per_minute)

    def wait_s(self, amount: float, at_s: float) -> float:
        """Return how long until `amount` may be taken; 0: now."""
        missing = min(amount, self._capacity) - self._fill(at_s)
        # Rounding must not ask for a wait that no clock can tell.
        return missing / self._per_s if missing > 1e-9 * self._capacity else 0.0

    def take(self, amount: float, at_s: float) -> None:
        """Take what may be taken; a negative amount gives back what was not used.

        That may be more than time alone saves up: it was there a moment ago, and would be lost.
        """
        most = self._capacity if amount >= 0 else max(self._capacity, self._per_s * GIVEN_BACK_S)
        self._level = min(most, self._fill(at_s) - amount)
        self._taken += amount

    def taken(self, at_s: float) -> float:
        """Return about what was taken in the last minute."""
        self._fill(at_s)
        return self._taken

    def set_rate(self, per_minute: float, at_s: float) -> None:
        """Go on at another rate; what is saved up, or owed, stays."""
        self._fill(at_s)
        self._set(per_minute)

    def _set(self, per_minute: float) -> None:
        self.per_minute, self._per_s = per_minute, per_minute / 60
        self._capacity = 1.0 + self._per_s * self._burst_s
        self._level = min(self._level, self._capacity)

    def _fill(self, at_s: float) -> float:
        since_s = at_s - self._filled_at_s
        if since_s > 0:
            if self._level < self._capacity:
                self._level = min(self._capacity, self._level + since_s * self._per_s)
            self._taken *= math.exp(-since_s / 60)
            self._filled_at_s = at_s
        return self._level


class Gate:
    """All limits of a lane: a call passes all of them at once or takes nothing of any.

    Who asks first is served first as long as one caller asks for one call at a time, as a lane does.
    """

    def __init__(self, limits: Limits, *, at_s: float) -> None:
        self._fraction = limits.fraction
        self._share = 1.0
        self._said = {name: per_minute for name, per_minute in limits.per_minute.items() if per_minute}
        self._told: dict[str, float] = {}  # by the provider's headers
        self.guessed_rpm: float | None = None  # the only limit, if it is a guess
        self.holds = Holds()
        self._buckets = {name: self._bucket(name, at_s) for name in self._said}

    @property
    def limited(self) -> bool:
        """Whether there is any limit a minute that somebody told."""
        return bool(self._buckets) and self.guessed_rpm is None

    @property
    def configured(self) -> bool:
        """Whether the sweep itself says a limit a minute."""
        return bool(self._said)

    @property
    def counts_tokens(self) -> bool:
        """Whether any limit is one of tokens."""
        return any(name != "requests" for name in self._buckets)

    def in_force(self) -> Mapping[str, float]:
        """Return each limit a minute that may be used: as configured or told, and the fraction of it."""
        if self.guessed_rpm is not None:
            return {}
        return {name: self._most(name) * self._fraction for name in self._buckets}

    def wait(self, amounts: Amounts, at_s: float) -> Wait | None:
        """Return how long and for which limit a call has to wait; None: it may go."""
        longest = self.holds.wait(at_s)
        for name, bucket in self._buckets.items():
            seconds = bucket.wait_s(getattr(amounts, name), at_s)
            if seconds > longest.seconds:
                longest = Wait(seconds, name)
        return longest if longest.seconds > 0 else None

    def take(self, amounts: Amounts, at_s: float) -> None:
        """Take what a call is counted for."""
        for name, bucket in self._buckets.items():
            bucket.take(getattr(amounts, name), at_s)

    def settle(self, reserved: Amounts, used: Amounts, at_s: float) -> None:
        """Put an estimate right: give back what was not used, charge what was used beyond it."""
        for name, bucket in self._buckets.items():
            surplus = getattr(reserved, name) - getattr(used, name)
            if surplus:
                bucket.take(-surplus, at_s)

    def use(self, share: float, at_s: float) -> None:
        """Go on at a share of all limits, in (0, 1]; a change too small to matter is not made."""
        if abs(share - self._share) > 0.0005 or (share == 1.0) != (self._share == 1.0):
            self._share = share
            for name, bucket in self._buckets.items():
                bucket.set_rate(self._rate(name), at_s)

    def refuse(self, reserved: Amounts, at_s: float) -> None:
        """Give back what was reserved for a call that was one too many, but for a second's worth.

        The refusal says that there is none: the next call must not start on what it gives back.
        """
        for name, bucket in self._buckets.items():
            surplus = getattr(reserved, name) - bucket.per_minute / 60
            if name != "requests" and surplus > 0:
                bucket.take(-surplus, at_s)

    def hold(
        self,
        told: Allowance,
        at_s: float,
        *,
        sent_s: float = math.inf,
        retry_after_s: float | None = None,
    ) -> Pause | None:
        """Where a response's headers tell that nothing remains, take nothing until the reset.

        Args:
            told: by the headers.
            at_s: now.
            sent_s: when that call was sent.
            retry_after_s: what its refusal asks to wait; None: it was none, or does not say.
        """
        if told.remaining:
            self.holds.lift(told, sent_s)
        elif told.remaining is not None and (told.reset_s or 0.0) > SOON_S:
            bucket = self._buckets.get(told.what) if told.period_s <= 60 else None
            # Our own calls may be why nothing remains: they are paced by that very limit.
            if bucket is None or bucket.taken(at_s) <= EXPLAINS * bucket.per_minute:
                return self.holds.hold(told, at_s, sent_s=sent_s, retry_after_s=retry_after_s)
        return None

    def follow(self, told: Allowance, at_s: float) -> str | None:
        """Follow what a response's headers tell of a limit; return what a person should hear of it.

        A lower limit than configured wins, an unset limit starts, one that is told anew is followed again.
        """
        if told.period_s != 60 or not told.limit or self._told.get(told.what) == told.limit:
            return None
        self.forget_guess()
        first = told.what not in self._told
        self._told[told.what] = told.limit
        if told.what in self._buckets:
            self._buckets[told.what].set_rate(self._rate(told.what), at_s)
        else:
            self._buckets[told.what] = self._bucket(told.what, at_s)
        said = self._said.get(told.what)
        if not first or said is None or said <= told.limit:
            return None
        return (
            f"the provider allows {told.limit:,.0f} {words(told.what)} a minute, not {said:,.0f} as "
            "configured; its word is followed"
        )

    def guess(self, rpm: float, at_s: float) -> None:
        """Take it that no more requests a minute are admitted, where nobody says how many are."""
        if not self.limited:
            self.guessed_rpm = rpm
            self._buckets["requests"] = self._bucket("requests", at_s)

    def raise_guess(self, times: float, at_s: float) -> None:
        """Try more than was guessed; in the end, go on without."""
        if self.guessed_rpm is not None and self.guessed_rpm < FORGOTTEN_RPM:
            self.guess(self.guessed_rpm * times, at_s)
        else:
            self.forget_guess()

    def forget_guess(self) -> None:
        """Go on without a limit that was only a guess."""
        if self.guessed_rpm is not None:
            self.guessed_rpm = None
            del self._buckets["requests"]

    def _most(self, name: str) -> float:
        if self.guessed_rpm is not None:
            return self.guessed_rpm
        return min(self._said.get(name, math.inf), self._told.get(name, math.inf))

    def _rate(self, name: str) -> float:
        return self._most(name) * self._fraction * HEADROOM * self._share

    def _bucket(self, name: str, at_s: float) -> Bucket:
        return Bucket(self._rate(name), burst_s=BURST_S[name], at_s=at_s)


def demanded(characters: int, max_tokens: int | None) -> float:
    """Return the tokens that OpenAI counts for a call when it admits it."""
    return max(float(max_tokens or 0), characters / CHARACTERS_PER_TOKEN)


def counted(usage: Usage | None, reserved: Amounts, counting: Counting) -> Amounts:
    """Return what a provider counted for a call that it answered; what is unknown counts as reserved."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return reserved
    taken = float(usage.input_tokens)
    if counting is Counting.UNCACHED:
        taken -= usage.cached_input_tokens or 0
    total = reserved.tokens if counting is Counting.DEMANDED else taken + usage.output_tokens
    return Amounts(reserved.requests, total, taken, float(usage.output_tokens))
