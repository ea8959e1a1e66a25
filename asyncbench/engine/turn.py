"""A trial on its way through a lane."""

import re
from dataclasses import dataclass, field
from typing import Final

from asyncbench.engine.budget import NOTHING, Hold
from asyncbench.engine.limits import Amounts
from asyncbench.records import History, Request

_NUMBERS: Final = re.compile(r"[0-9a-fA-F-]{8,}|\d+")  # ids of requests, times: no two errors have the same
ONE_CALL: Final = Amounts()


@dataclass(slots=True, kw_only=True)
class Turn:
    """What is known of a trial between its source and its result; times are the loop's clock."""

    request: Request
    history: History  # what earlier runs know of it
    characters: int  # that are sent
    taken_s: float  # when it was taken from the source
    tries: int = 0  # attempts of this run
    attempts: int = 0  # all attempts, those of earlier runs included
    cost_usd: float | None = 0.0  # of all attempts; None if that of any is unknown
    since_s: float = 0.0  # its time runs from here: the first attempt, or the end of its lane's last pause
    sent_s: float = 0.0  # the latest attempt
    in_flight: int = 0  # of the lane, when the latest attempt was sent
    reserved: Amounts = field(default=ONE_CALL)
    hold: Hold = NOTHING  # of money, for the latest attempt
    most_usd: float | None = None  # the latest attempt may cost; None: unknown
    priced_s: float = 0.0  # when that was worked out
    terms: int = 0  # of the account then
    scouts: bool = False  # the one call that a paused lane makes to see whether the pause is over
    last_words: str | None = None  # of the error it met last
    same_words: int = 0  # how often in a row
    heard_then: tuple[int, int] = (0, 0)  # answers and failures of its model, when it first met them

    def charge(self, cost: float | None) -> None:
        """Add what an attempt cost; an unknown cost makes the whole unknown."""
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost

    def hears(self, words: str, *, heard: tuple[int, int]) -> None:
        """Note how an attempt failed; `heard` are the answers and failures of its model so far."""
        words = _NUMBERS.sub("#", words)
        if words != self.last_words:
            self.last_words, self.same_words, self.heard_then = words, 0, heard
        self.same_words += 1
