"""Requests and tokens a minute: reserve before a call, settle after it."""

import asyncio
from contextlib import suppress

from aiolimiter import AsyncLimiter

from asyncbench.records import Usage

CHARACTERS_PER_TOKEN = 4  # a rule of thumb: exact counts need a vocabulary per model
UNSEEN_OUTPUT_TOKENS = 256  # expected of a reply before any was seen and where no max_tokens is set


def now_s() -> float:
    """Return the event loop's clock, which a simulated night may run as fast as it likes."""
    return asyncio.get_running_loop().time()


def request_pacer(rpm: float) -> AsyncLimiter:
    """Return a pacer of `rpm` requests a minute that never lets more than 100 ms' worth go at once.

    A larger bucket would be let through whole at the start (aiolimiter starts empty of debt).
    """
    per_s = rpm / 60
    capacity = max(1.0, per_s * 0.1)
    return AsyncLimiter(capacity, capacity / per_s)


class TokenBucket:
    """`per_minute` tokens a minute, first come first served, at most `capacity` saved up.

    Starts empty: no burst. More than `capacity` waits for a full bucket and leaves a debt.
    """

    def __init__(self, per_minute: float, *, capacity: float) -> None:
        self._per_s = per_minute / 60
        self._capacity = capacity
        self._level = 0.0
        self._filled_at_s = now_s()
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    async def reserve(self, tokens: float) -> None:
        """Wait until `tokens` may be used, in the order of the calls."""
        async with self._turn:  # a fair lock
            while (missing := min(tokens, self._capacity) - self._fill()) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(missing / self._per_s):
                        await self._changed.wait()
            self._level -= tokens

    def settle(self, *, reserved: float, used: float) -> None:
        """Put an estimate right: give back what was not used, charge what was used beyond it."""
        self._level = self._fill() + reserved - used
        self._changed.set()

    def set_rate(self, per_minute: float) -> None:
        """Go on at another rate; what is saved up stays."""
        self._fill()
        self._per_s = per_minute / 60
        self._changed.set()

    def _fill(self) -> float:
        at_s = now_s()
        grown = self._level + (at_s - self._filled_at_s) * self._per_s
        self._level, self._filled_at_s = min(self._capacity, grown), at_s
        return self._level


class ExpectedTokens:
    """What a call will probably use: its characters, and replies like those seen so far."""

    def __init__(self, max_tokens: int | None) -> None:
        self._output = float(max_tokens or UNSEEN_OUTPUT_TOKENS)
        self._seen = 0

    def of(self, characters: int) -> float:
        """Return the tokens expected of a call that sends this many characters."""
        return characters / CHARACTERS_PER_TOKEN + self._output

    def learn(self, usage: Usage | None) -> None:
        """Move the expected reply towards the one just seen; an unknown usage teaches nothing."""
        if usage is None or usage.output_tokens is None:
            return
        self._seen += 1
        self._output += (usage.output_tokens - self._output) / min(self._seen, 50)
