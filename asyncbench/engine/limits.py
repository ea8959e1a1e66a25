"""Requests and tokens a minute: one gate for all limits of a lane, taken before a call, settled after it."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from asyncbench.records import Allowance, Limits, Usage

CHARACTERS_PER_TOKEN: Final = 4  # a rule of thumb: exact counts need a vocabulary per model
# Calls arrive a little earlier or later than they were sent, and a window is counted by another clock.
HEADROOM: Final = 0.995
REQUEST_BURST_S: Final = 0.03  # of requests, saved up: what a late wake-up may catch up with
TOKEN_BURST_S: Final = 0.25  # of tokens; less than the headroom of a minute
# Input and output apart: while one of them binds, the other has to be saved up, or neither is used whole.
SPLIT_BURST_S: Final = 0.5
BURST_S: Final[Mapping[str, float]] = {
    "requests": REQUEST_BURST_S,
    "tokens": TOKEN_BURST_S,
    "input_tokens": SPLIT_BURST_S,
    "output_tokens": SPLIT_BURST_S,
}
GIVEN_BACK_S: Final = 1.0  # of what calls did not use, saved up beside
OWED_S: Final = 0.05  # of tokens, after a refusal: there are fewer than was thought, nobody knows how many
DAY: Final = "day"  # the name under which a day's limit holds a lane
SOON_S: Final = 2.0  # a reset so near is that of a small burst: calls are paced, it comes by itself
CONTRADICTS_S: Final = 5.0  # so much sooner than the other: two waits that cannot both be right
WORTH_TELLING_S: Final = 10.0  # of a pause
BELIEVED: Final = 3  # times in a row that a provider's word alone says how long to wait
EXPLAINS: Final = 0.5  # of a limit, used by ourselves in the last minute: that nothing remains is no wonder


class Amounts(NamedTuple):
    """The amounts that a call takes of each limit."""

    requests: float = 1.0
    tokens: float = 0.0  # input and output together
    input_tokens: float = 0.0
    output_tokens: float = 0.0


class Counting(StrEnum):
    """The tokens that a provider counts against a limit a minute (specs of the vendors, 2026)."""

    USED = "used"  # input and output, as they turn out
    UNCACHED = "uncached"  # the same without what was read from a cache: Anthropic, Groq
    DEMANDED = "demanded"  # max_tokens, or the prompt where that is more, at admission and for good: OpenAI


class Bucket:
    """`per_minute` of something a minute, at most `burst_s` seconds' worth of it saved up.

    Starts with one unit, or empty if it holds less: no burst. More than it holds waits for a full bucket and
    leaves a debt. Times are seconds of a clock that never goes back.
    """

    __slots__ = (
        *("_burst_s", "_capacity", "_filled_at_s", "_level", "_per_s", "_taken", "_taken_at_s"),
        "per_minute",
    )

    def __init__(self, per_minute: float, *, burst_s: float, at_s: float) -> None:
        self._burst_s = burst_s
        self._level, self._filled_at_s = 1.0, at_s
        self._taken, self._taken_at_s = 0.0, at_s  # about what was taken in the last minute; then
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
        highest = self._capacity if amount >= 0 else max(self._capacity, self._per_s * GIVEN_BACK_S)
        self._level = min(highest, self._fill(at_s) - amount)
        self._taken, self._taken_at_s = self.taken(at_s) + amount, at_s

    def empty(self, at_s: float) -> None:
        """Take what is saved up, and a little beyond it."""
        self._level = min(self._fill(at_s), -OWED_S * self._per_s)

    def taken(self, at_s: float) -> float:
        """Return about what was taken in the last minute."""
        return self._taken * math.exp((self._taken_at_s - at_s) / 60)

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
            self._filled_at_s = at_s
        return self._level


class Wait(NamedTuple):
    """A time in which nothing may be taken, and the limit that says so."""

    seconds: float
    limit: str


NO_WAIT: Final = Wait(0.0, "")


def respected_wait_s(named_s: float | None, growing_s: float, *, times: int) -> float:
    """Return how long to wait after a refusal, seconds.

    Args:
        named_s: how long the provider says; None: it does not.
        growing_s: how long to wait without its word.
        times: refusals in a row, this one included. A word that was too short again and again, such as a
            millisecond, no longer shortens the growing wait.
    """
    if named_s is None:
        return growing_s
    return named_s if times <= BELIEVED else max(named_s, growing_s)


class Pause(NamedTuple):
    """A pause that a person should hear of."""

    cause: str
    why: str


class _Hold(NamedTuple):
    until_s: float  # nothing is taken
    back_s: float  # something remains again, by the provider's word
    reported_s: float  # the latest word of it


class Holds:
    """The limits of which nothing remains, by name; times are the loop's clock.

    Some servers name a reset that has nothing to do with when they admit the next call. So where a
    refusal's `Retry-After` is shorter than the reset beside it, a call is tried after the shorter one: if it
    is refused, the longer one holds. A reset is not believed again once a call was admitted well before it.
    """

    def __init__(self) -> None:
        self._holds: dict[str, _Hold] = {}
        self._disproved: set[str] = set()

    def wait(self, at_s: float) -> Wait:
        """Return how long and for which limit nothing may be taken; 0 s: none."""
        longest = NO_WAIT
        for name, hold in self._holds.items():
            if hold.until_s - at_s > longest.seconds:
                longest = Wait(hold.until_s - at_s, name)
        return longest

    def hold(
        self, allowance: Allowance, at_s: float, *, sent_s: float, retry_after_s: float | None
    ) -> Pause | None:
        """Take nothing until the reset, or the shorter `Retry-After`; return what a person should hear."""
        name, reset_s = _name(allowance), allowance.reset_s or 0.0
        if name in self._disproved:
            return None
        # A minute's limit is back after a minute, whatever else its reset may mean.
        wait_s = min(reset_s, allowance.period_s)
        before = self._holds.get(name, _Hold(-math.inf, -math.inf, at_s))
        refused_early = before.until_s <= sent_s < before.back_s
        if retry_after_s is not None and retry_after_s + CONTRADICTS_S < wait_s and not refused_early:
            wait_s = retry_after_s
        self._holds[name] = _Hold(max(before.until_s, at_s + wait_s), at_s + reset_s, at_s)
        if before.until_s > at_s or wait_s < WORTH_TELLING_S:
            return None
        if allowance.period_s > 60 and wait_s == reset_s:
            hours = f"{reset_s / 3600:.1f} hours"
            used_up = f"the daily limit of {words(allowance.what)} is used up"
            return Pause(name, f"{used_up}; waiting {hours} until it resets")
        report = f"the provider reports no {words(allowance.what)} left for {reset_s:,.0f} s"
        return Pause(name, f"{report}; waiting {wait_s:,.0f} s")

    def lift(self, allowance: Allowance, sent_s: float) -> None:
        """Take a later word that something remains for the end of a hold."""
        name = _name(allowance)
        if name in self._holds and sent_s > self._holds[name].reported_s:
            del self._holds[name]

    def admitted(self, sent_s: float) -> None:
        """Believe no reset again before which a call was admitted."""
        for name, hold in list(self._holds.items()):
            if hold.until_s <= sent_s < hold.back_s - CONTRADICTS_S:
                self._disproved.add(name)
                del self._holds[name]


def _name(allowance: Allowance) -> str:
    return DAY if allowance.period_s > 60 else allowance.what


def words(what: str) -> str:
    """Return the unit that a limit counts, in words."""
    return what.replace("_", " ")


class Gate:
    """All limits of a lane: a call passes all of them at once or takes nothing of any.

    Who asks first is served first as long as one caller asks for one call at a time, as a lane does.
    """

    def __init__(self, limits: Limits, *, at_s: float) -> None:
        self._fraction = limits.fraction
        self._share = 1.0
        self._configured = {name: per_minute for name, per_minute in limits.per_minute.items() if per_minute}
        self._reported: dict[str, dict[str, float]] = {}  # by the provider's headers, of each model
        self.guessed_rpm: float | None = None  # the only limit, if it is a guess
        self.holds = Holds()
        self._buckets: dict[str, Bucket] = {}
        for name in self._configured:
            self._apply_limit(name, at_s)

    @property
    def limited(self) -> bool:
        """Whether there is any limit a minute that somebody told."""
        return bool(self._buckets) and self.guessed_rpm is None

    @property
    def configured(self) -> bool:
        """Whether the sweep itself says a limit a minute."""
        return bool(self._configured)

    @property
    def counts_tokens(self) -> bool:
        """Whether any limit is one of tokens."""
        return len(self._buckets) > ("requests" in self._buckets)

    def limits_in_force(self) -> Mapping[str, float]:
        """Return each limit a minute that may be used: as configured or told, and the fraction of it."""
        if self.guessed_rpm is not None:
            return {}
        return {name: self._most(name) * self._fraction for name in self._buckets}

    def set(self, limits: Limits, at_s: float) -> None:
        """Go on with other limits of the sweep's own; told ones still hold where they are lower."""
        self.forget_guess()
        self._configured = {name: per_minute for name, per_minute in limits.per_minute.items() if per_minute}
        for name in {*self._configured, *self._buckets}:
            if name not in self._configured and name not in self._reported:
                del self._buckets[name]
            else:
                self._apply_limit(name, at_s)

    def wait(self, amounts: Amounts, at_s: float) -> Wait | None:
        """Return how long a call has to wait, and for which limit, or None if it may go."""
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

    def refuse(self, reserved: Amounts, at_s: float, *, alone: bool = False) -> None:
        """Give back what was reserved for a call that was one too many, but for a second's worth.

        The refusal says that there is none: the next call must not start on what it gives back, nor, if it
        stands alone, on what seemed to be saved up. Many may be about something else.
        """
        for name, bucket in self._buckets.items():
            if name == "requests":
                continue
            if (surplus := getattr(reserved, name) - bucket.per_minute / 60) > 0:
                bucket.take(-surplus, at_s)
            if alone:
                bucket.empty(at_s)

    def hold(
        self,
        allowance: Allowance,
        at_s: float,
        *,
        sent_s: float = math.inf,
        retry_after_s: float | None = None,
    ) -> Pause | None:
        """Take nothing until the reset, if a response's headers tell that nothing remains.

        Args:
            allowance: what the headers tell.
            at_s: now.
            sent_s: when that call was sent.
            retry_after_s: what its refusal asks to wait; None: it was none, or does not say.
        """
        if allowance.remaining:
            self.holds.lift(allowance, sent_s)
        elif allowance.remaining is not None and (allowance.reset_s or 0.0) > SOON_S:
            bucket = self._buckets.get(allowance.what) if allowance.period_s <= 60 else None
            # Our own calls may be why nothing remains: they are paced by that very limit.
            if bucket is None or bucket.taken(at_s) <= EXPLAINS * bucket.per_minute:
                return self.holds.hold(allowance, at_s, sent_s=sent_s, retry_after_s=retry_after_s)
        return None

    def follow(self, allowance: Allowance, at_s: float, *, model: str = "") -> str | None:
        """Follow what a response's headers tell of a limit; return what a person should hear of it.

        A lower limit than configured wins, an unset limit starts, one that is told anew is followed again. Of
        models that share the gate, the lowest of what is told of each wins.
        """
        if allowance.period_s != 60 or not allowance.limit:
            return None
        reported = self._reported.setdefault(allowance.what, {})
        if reported.get(model) == allowance.limit:
            return None
        self.forget_guess()
        first, reported[model] = not reported, allowance.limit
        self._apply_limit(allowance.what, at_s)
        configured = self._configured.get(allowance.what)
        if not first or configured is None or configured <= allowance.limit:
            return None
        return (
            f"the provider's headers allow {allowance.limit:,.0f} {words(allowance.what)} a minute, "
            f"your sweep {configured:,.0f}. asyncbench uses the lower limit"
        )

    def guess(self, rpm: float | None, at_s: float) -> None:
        """Admit no more requests a minute than this, where no server tells a limit. None lifts it."""
        if rpm is None:
            self.forget_guess()
        if rpm is None or self.limited or self.guessed_rpm == rpm:
            return
        self.guessed_rpm = rpm
        self._apply_limit("requests", at_s)

    def forget_guess(self) -> None:
        """Go on without a limit that was only a guess."""
        if self.guessed_rpm is not None:
            self.guessed_rpm = None
            del self._buckets["requests"]

    def _most(self, name: str) -> float:
        if self.guessed_rpm is not None:
            return self.guessed_rpm
        return min(self._configured.get(name, math.inf), *self._reported.get(name, {}).values(), math.inf)

    def _rate(self, name: str) -> float:
        return self._most(name) * self._fraction * HEADROOM * self._share

    def _apply_limit(self, name: str, at_s: float) -> None:
        """Let the bucket of a limit go on at its rate; without one, a bucket begins."""
        if name in self._buckets:
            self._buckets[name].set_rate(self._rate(name), at_s)
        else:
            self._buckets[name] = Bucket(self._rate(name), burst_s=BURST_S[name], at_s=at_s)


def demanded(characters: int, max_tokens: int | None) -> float:
    """Return the tokens that OpenAI counts for a call when it admits it."""
    return max(float(max_tokens or 0), characters / CHARACTERS_PER_TOKEN)


def counted(usage: Usage | None, reserved: Amounts, counting: Counting) -> Amounts:
    """Return the amounts that a provider counted for an answered call; unknown ones count as reserved."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return reserved
    taken = float(usage.input_tokens)
    if counting is Counting.UNCACHED:
        taken -= usage.cached_input_tokens or 0
    total = reserved.tokens if counting is Counting.DEMANDED else taken + usage.output_tokens
    return Amounts(reserved.requests, total, taken, float(usage.output_tokens))
