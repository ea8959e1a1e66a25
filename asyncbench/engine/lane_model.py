"""One model of a lane: its queue, money, journal and grading, and the tokens to expect of its calls.

    PendingTrial  ←  TrialQueue  ←  Money  ←  Attempts  ←  Closing
                     (waits)        (costs)   (journal)    (grades, retries)

Each of these knows those to its left alone; the lane calls all of them.
"""

import asyncio
from collections.abc import Iterator
from math import inf

from asyncbench.engine.attempts import Attempts, Money
from asyncbench.engine.closing import Closing
from asyncbench.engine.model_client import ModelClient
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.engine.token_estimates import TokenEstimates
from asyncbench.engine.trial_queue import TrialQueue
from asyncbench.engine.warm_up import WarmUp
from asyncbench.errors import LostCallError, UnsentError
from asyncbench.records import TOLD_NOTES


class LaneModel:
    """The trials of one model, from its problem sets to their results."""

    def __init__(self, client: ModelClient) -> None:
        client.now_s = asyncio.get_running_loop().time
        self.client, self.counters, self.alias = client, client.counters, client.model.alias
        self.estimates = TokenEstimates(client.counting)
        self.warm_up = WarmUp(answered_before=client.answered_before)
        self.queue = TrialQueue(client)
        self.money = Money(client, self.queue)
        self.attempts = Attempts(client, self.money)
        self.closing = Closing(client, self.money, self.queue, self.warm_up)
        self.waiting = 0  # trials to be tried again
        self.credit = 0  # turns that its group owes it, times what the group has left
        self.away = False  # its lane waits for long: other models need not wait for this one
        self.not_before_s = -inf  # the loop's clock: a provider's word about this model of a group
        self._told_notes = set[str]()  # the kinds of notes of replies that a person was told
        if client.account is not None:
            client.account.join(client.counters, asks=self._asks, now_s=client.now_s)

    @property
    def left(self) -> int:
        """How many of its trials are open: its weight in a group."""
        return max(1, self.counters.open)

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        blocked = self.narrow or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending) and not blocked

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer, or while none succeeds."""
        at_s, same = self.client.now_s(), self.closing.same
        if same.suspicious:  # one call at a time is to tell
            return self.counters.in_flight >= (1 if at_s >= same.next_s else 0)
        return self.counters.in_flight >= self.warm_up.most_in_flight(at_s)

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return (self.queue.dry or self.counters.over) and not self.queue.pending

    def lose(self, pending: PendingTrial, lost: LostCallError | UnsentError) -> None:
        """Write down that nobody knows how a call ended, or take back a call that was not made.

        Its trial is the next again, unless all its calls were lost: then it may be what its process dies of,
        and is left to another run.
        """
        if isinstance(lost, UnsentError):
            self.attempts.forget(pending)
        else:
            self.attempts.lose(pending, lost)
        if pending.tries < self.client.model.retry.attempts:
            self.queue.put_back(pending)

    def messages(self) -> Iterator[str]:
        """Return warnings for a person, each once."""
        overrun = None if self.client.account is None else self.client.account.message()
        yield from filter(None, (overrun, self.money.message(), self.warm_up.message()))
        yield from self.new_notes()

    def new_notes(self) -> Iterator[str]:
        """Yield notes on what replies said and was not believed or passed over, at the first of each kind."""
        for note in self.counters.notes:
            kind = next((kind for kind in TOLD_NOTES if note.startswith(kind)), note)
            if kind not in self._told_notes:
                self._told_notes.add(kind)
                yield f"{note}. The summary counts such replies, `attempts` names them in `note`"

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        blocked = self.away or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending or not self.queue.dry) and not self.counters.over and not blocked
