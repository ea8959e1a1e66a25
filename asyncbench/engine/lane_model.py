"""One model of a lane: its queue, money, journal and grading, and the tokens to expect of its calls.

    PendingTrial  ←  TrialQueue  ←  Money  ←  Attempts  ←  Closing
                     (waits)        (costs)   (journal)    (grades, retries)

Each part knows those to its left alone; the lane calls all of them.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Final

from asyncbench.engine.attempts import Attempts, Money
from asyncbench.engine.closing import Closing, WarmUp
from asyncbench.engine.limits import CHARACTERS_PER_TOKEN, Amounts, Counting, counted, demanded
from asyncbench.engine.trial_queue import ModelClient, PendingTrial, TrialQueue
from asyncbench.errors import ErrorKind, LostCallError, ProviderError, UnsentError
from asyncbench.records import Reply, Usage

# ── Token estimates, learnt from like calls


QUANTILE: Final = 0.95  # few replies are longer than was set aside for them
REMEMBERED: Final = 64  # replies of a cell
MOST_CELLS: Final = 1_000  # a set of the user's own may have a length for each row
ENOUGH: Final = 5  # replies of a cell, before all the model's replies tell less than they do
UNSEEN_OUTPUT_TOKENS: Final = 256  # before any reply was seen and where no max_tokens is set

Kind = tuple[str, str, int | None, str]  # task, variant, length, condition: whose replies are alike


class TokenEstimates:
    """The tokens to expect of one model's calls."""

    def __init__(self, counting: Counting = Counting.USED) -> None:
        self._counting = counting
        self._kinds: dict[Kind, _Lengths] = {}
        self._all = _Lengths()
        self._per_character = 1 / CHARACTERS_PER_TOKEN
        self._learnt = 0

    @property
    def taught(self) -> bool:
        """Whether enough replies were seen to expect others like them."""
        return self._all.count >= ENOUGH

    def guesses(self, pending: PendingTrial) -> bool:
        """Whether nothing says how many tokens a call may use: neither replies seen nor a longest one."""
        return not self.taught and pending.longest is None

    def amounts(self, pending: PendingTrial) -> Amounts:
        """Return what to set aside for a call; before any reply was seen, the longest that is allowed."""
        lengths = self._kinds.get(_kind_of(pending), self._all)
        if lengths.count < ENOUGH:
            lengths = self._all
        output_tokens = (
            lengths.quantile() if lengths.count else float(pending.longest or UNSEEN_OUTPUT_TOKENS)
        )
        input_tokens = pending.characters * self._per_character
        if self._counting is Counting.DEMANDED:
            return Amounts(1.0, demanded(pending.characters, pending.longest), input_tokens, output_tokens)
        return Amounts(1.0, input_tokens + output_tokens, input_tokens, output_tokens)

    def used(self, pending: PendingTrial, ended: Reply | ProviderError) -> Amounts:
        """Return what a call was counted for, as far as that is known."""
        if isinstance(ended, Reply):
            if ended.usage is not None:
                self._learn(pending, ended.usage)
            return counted(ended.usage, pending.reserved, self._counting)
        if ended.may_have_been_billed or ended.kind is ErrorKind.SERVER_ERROR:
            return pending.reserved
        return Amounts(pending.reserved.requests)

    def _learn(self, pending: PendingTrial, usage: Usage) -> None:
        if usage.output_tokens is not None:
            kind = _kind_of(pending)
            lengths = self._kinds.pop(kind, None) or _Lengths()
            self._kinds[kind] = lengths  # the latest last
            if len(self._kinds) > MOST_CELLS:
                del self._kinds[next(iter(self._kinds))]
            lengths.add(usage.output_tokens)
            self._all.add(usage.output_tokens)
        if usage.input_tokens and pending.characters:
            self._learnt += 1
            ratio = usage.input_tokens / pending.characters
            self._per_character += (ratio - self._per_character) / min(self._learnt, 50)


def _kind_of(pending: PendingTrial) -> Kind:
    problem = pending.request.trial.problem
    return problem.task, problem.variant, problem.length, pending.request.trial.condition.name


class _Lengths:
    """The latest replies' lengths; their quantile is worked out when it is needed."""

    __slots__ = ("_latest", "_quantile", "count")

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[int] = deque(maxlen=REMEMBERED)
        self._quantile: float | None = None

    def add(self, tokens: int) -> None:
        self.count += 1
        self._latest.append(tokens)
        self._quantile = None

    def quantile(self) -> float:
        if self._quantile is None:
            ordered = sorted(self._latest)
            self._quantile = float(ordered[math.ceil(QUANTILE * len(ordered)) - 1])
        return self._quantile


# ── A model and its parts


class LaneModel:
    """The trials of one model, from its problem sets to their results."""

    def __init__(self, client: ModelClient) -> None:
        client.now_s = asyncio.get_running_loop().time
        self.client, self.counters, self.alias = client, client.counters, client.model.alias
        self.estimates = TokenEstimates(client.counting)
        self.warm_up = WarmUp(answered_before=client.answered_before, accepted=client.answered_before)
        self.queue = TrialQueue(client)
        self.money = Money(client, self.queue)
        self.attempts = Attempts(client, self.money)
        self.closing = Closing(client, self.money, self.queue, self.warm_up)
        self.waiting = 0  # trials to be tried again
        self.away = False  # its lane waits for long: other models need not wait for this one
        self.not_before_s = -inf  # the loop's clock: a provider's word about this model of a group
        if client.account is not None:
            client.account.join(client.counters, asks=self._asks, now_s=client.now_s)

    @property
    def ready(self) -> bool:
        """Whether a fresh trial may be taken."""
        waits = self.warm_up.suspicious and self.counters.in_flight  # for one of them to be answered
        blocked = waits or self.narrow or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending) and not blocked

    @property
    def narrow(self) -> bool:
        """Whether as many calls are in flight as may be before the first answer."""
        return self.counters.in_flight >= self.warm_up.most(self.client.now_s())

    @property
    def exhausted(self) -> bool:
        """Whether there is, and will be, nothing more to take."""
        return (self.queue.dry or self.counters.over) and not self.queue.pending

    def lose(self, pending: PendingTrial, lost: LostCallError | UnsentError) -> None:
        """Write down that nobody knows how a call ended. Its trial is next, unless all its calls are lost.

        A call that was not made leaves no trace.

        Such a one is left to another run: it may be what its process dies of.
        """
        if isinstance(lost, UnsentError):
            self.attempts.forget(pending)
        else:
            self.attempts.lose(pending, lost)
        if pending.tries < self.client.model.retry.attempts:
            self.queue.put_back(pending)

    def messages(self) -> Iterator[str]:
        """Return warnings for a person, each once."""
        of_account = None if self.client.account is None else self.client.account.message()
        return filter(None, (of_account, self.money.message(), self.warm_up.message()))

    def _asks(self) -> bool:
        """Whether this model would begin another trial soon."""
        blocked = self.away or self.client.now_s() < self.not_before_s
        return bool(self.queue.pending or not self.queue.dry) and not self.counters.over and not blocked
