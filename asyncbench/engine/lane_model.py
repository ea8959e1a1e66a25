"""One model of a lane: the parts that ask it, and whether it may be asked now.

    Turn  ←  TrialQueue  ←  Money  ←  Attempts  ←  Closing
             (waits)        (costs)   (journal)    (grades, retries)

Each part knows those to its left alone; the lane calls all of them.
"""

import asyncio
from collections.abc import Iterator
from math import inf

from asyncbench.engine.asker import Asker
from asyncbench.engine.attempts import Attempts
from asyncbench.engine.closing import Closing
from asyncbench.engine.money import Money
from asyncbench.engine.probation import Probation
from asyncbench.engine.token_estimates import TokenEstimates
from asyncbench.engine.trial_queue import TrialQueue
from asyncbench.engine.turn import Turn
from asyncbench.errors import LostCallError, UnsentError


class LaneModel:
    """The trials of one model, from its problem sets to their results."""

    def __init__(self, asker: Asker) -> None:
        asker.now_s = asyncio.get_running_loop().time
        self.asker, self.counters, self.alias = asker, asker.counters, asker.model.alias
        self.estimates = TokenEstimates(asker.counting)
        self.probation = Probation(answered_before=asker.answered_before, accepted=asker.answered_before)
        self.queue = TrialQueue(asker)
        self.money = Money(asker, self.queue)
        self.attempts = Attempts(asker, self.money)
        self.closing = Closing(asker, self.money, self.queue, self.probation)
        self.waiting = 0  # trials to be tried again
        self.away = False  # its lane waits for long: other models need not wait for this one
        self.not_before_s = -inf  # the loop's clock: a provider's word about this model of a group
        if asker.account is not None:
            asker.account.join(asker.counters, asks=self._asks, now_s=asker.now_s)

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        waits = self.probation.suspicious and self.counters.in_flight  # for one of them to be answered
        held = waits or self.narrow or self.asker.now_s() < self.not_before_s
        return bool(self.queue.turns) and not held

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer."""
        return self.counters.in_flight >= self.probation.most(self.asker.now_s())

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return (self.queue.dry or self.counters.over) and not self.queue.turns

    def lose(self, turn: Turn, lost: LostCallError | UnsentError) -> None:
        """Write down that nobody knows how a call ended. Its trial is next, unless all its calls are lost.

        A call that was not made leaves no trace.

        Such a one is left to another run: it may be what its process dies of.
        """
        if isinstance(lost, UnsentError):
            self.attempts.forget(turn)
        else:
            self.attempts.lose(turn, lost)
        if turn.tries < self.asker.model.retry.attempts:
            self.queue.put_back(turn)

    def news(self) -> Iterator[str]:
        """Return what a person should hear, each once."""
        of_account = None if self.asker.account is None else self.asker.account.news()
        return filter(None, (of_account, self.money.news(), self.probation.news()))

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        held = self.away or self.asker.now_s() < self.not_before_s
        return bool(self.queue.turns or not self.queue.dry) and not self.counters.over and not held
