"""A trial on its way through a lane."""

from dataclasses import dataclass, field

from asyncbench.engine.limits import Amounts
from asyncbench.records import History, Request

NOTHING = Amounts(0.0, 0.0, 0.0, 0.0)


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
    reserved: Amounts = field(default=NOTHING)
    scouts: bool = False  # the one call that a paused lane makes to see whether the pause is over
    last_words: str | None = None  # of the error it met last
    same_words: int = 0  # how often in a row
    answers_then: int = 0  # of its model, when it first met them

    def charge(self, cost: float | None) -> None:
        """Add what an attempt cost; an unknown cost makes the whole unknown."""
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost

    def hears(self, words: str, *, answers: int) -> None:
        """Note how an attempt failed; `answers` counts those its model gave to anybody so far."""
        if words != self.last_words:
            self.last_words, self.same_words, self.answers_then = words, 0, answers
        self.same_words += 1
