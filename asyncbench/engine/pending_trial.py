"""A trial on its way through a lane, and how long it waits before it is tried again."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncbench.engine.budget import NOTHING, Hold
from asyncbench.engine.limits import Amounts, respected_wait_s
from asyncbench.errors import WORTH_ANOTHER_TRY, ProviderError
from asyncbench.records import History, Reply, Request, RetryPolicy

_NUMBERS: Final = re.compile(r"[0-9a-fA-F-]{8,}|\d+")  # ids of requests, times: no two errors have the same
ONE_CALL: Final = Amounts()
ExtraColumns = Callable[
    ["PendingTrial", Reply | ProviderError | None], Mapping[str, Any]
]  # Any: fields of `Attempt`


@dataclass(slots=True, kw_only=True)
class PendingTrial:
    """A trial between its problem set and its result; times are the loop's clock."""

    request: Request
    history: History  # what earlier runs know of it
    characters: int  # that are sent
    longest: int | None = None  # the most tokens of its reply; None: nothing limits it
    taken_s: float  # when it was read
    tries: int = 0  # attempts of this run
    attempts: int = 0  # all attempts, those of earlier runs included
    cost_usd: float | None = 0.0  # of all attempts; None if that of any is unknown
    since_s: float = 0.0  # its time runs from here: the first attempt, or the end of its lane's last pause
    sent_s: float = 0.0  # the latest attempt
    number: int = 0  # of the latest attempt among the calls of the lane, from 1
    in_flight: int = 0  # of the lane, when the latest attempt was sent
    reserved: Amounts = field(default=ONE_CALL)
    hold: Hold = NOTHING  # of money, for the latest attempt
    reserved_usd: float | None = None  # the same in USD; None: no budget holds it
    most_usd: float | None = None  # the latest attempt may cost; None: unknown
    price_source: str | None = None  # who says what the latest attempt cost
    priced_s: float = 0.0  # when `hold` was worked out
    terms: int = 0  # of the account then
    is_probe: bool = False  # the one call that a paused lane makes to see whether the pause is over
    last_words: str | None = None  # of the error it met last
    same_words: int = 0  # how often in a row
    counts_then: tuple[int, int] = (0, 0)  # answers and failures of its model, when it first met them
    rounds: int = 0  # parts of batches that it was in
    extra_columns: "ExtraColumns" = lambda _pending, _ended: {}  # further columns of its `Attempt`

    @property
    def answered(self) -> bool:
        """Whether it only needs to be graded: an earlier run paid for its answer, and did not live to."""
        return self.history.ended is not None and self.history.ended.reply is not None

    def charge(self, cost: float | None) -> None:
        """Add what an attempt cost; an unknown cost makes the whole unknown."""
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost

    def note_failure(self, words: str, *, counts: tuple[int, int]) -> None:
        """Note how an attempt failed; `counts` are the answers and failures of its model so far."""
        words = _NUMBERS.sub("#", words)
        if words != self.last_words:
            self.last_words, self.same_words, self.counts_then = words, 0, counts
        self.same_words += 1


def wait_before_retry(
    error: ProviderError,
    *,
    attempt: int,
    elapsed_s: float,
    policy: RetryPolicy,
    jitter: float,
) -> float | None:
    """Return the seconds until the next attempt, or None to give up.

    A provider's own Retry-After is never undercut; without one, or where it was too short again and again,
    the wait doubles from `first_s` to `longest_s`, half of it fixed and half of it jitter.

    Args:
        error: how the attempt ended.
        attempt: which attempt of this run it was, from 1.
        elapsed_s: since the first attempt of this run was sent.
        policy: the caps.
        jitter: in [0, 1), drawn by the caller.
    """
    if error.kind not in WORTH_ANOTHER_TRY or attempt >= policy.attempts:
        return None
    doubled_s = policy.first_s * 2.0 ** min(attempt - 1, 30)  # bounded: attempt may be any number
    back_off_s = min(policy.longest_s, doubled_s) * (0.5 + jitter / 2)
    # Spread over a little more than was asked for, or all who were sent away return at once.
    named_s = None if error.retry_after_s is None else error.retry_after_s * (1 + jitter / 10)
    wait_s = respected_wait_s(named_s, back_off_s, times=attempt)
    return wait_s if elapsed_s + wait_s <= policy.total_s else None
