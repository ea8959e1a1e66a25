"""Estimates of the tokens that calls of one model will use, learnt from the replies to calls like them."""

import math
from collections import deque
from typing import Final

from asyncbench.engine.limits import CHARACTERS_PER_TOKEN, Amounts, Counting, counted, demanded
from asyncbench.engine.pending_trial import PendingTrial
from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.records import Reply

QUANTILE: Final = 0.8  # of the latest replies are no longer than is set aside; more would wait for nothing
LONGEST: Final = 1.0  # the same for a call that failed: it may have been refused for being long
REMEMBERED: Final = 64  # replies of a cell
MOST_CELLS: Final = 1_000  # a set of the user's own may have a length for each row
LIKE_REPLIES: Final = 5  # replies of a cell, before all the model's replies tell less than they do
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
        return self._all.count >= LIKE_REPLIES

    def guesses(self, pending: PendingTrial) -> bool:
        """Whether nothing says how many tokens a call may use: neither replies seen nor a longest one."""
        return not self.taught and pending.longest is None

    def amounts(self, pending: PendingTrial) -> Amounts:
        """Return the amounts to set aside for a call; before the first reply, for the longest one allowed."""
        lengths = self._kinds.get(_kind_of(pending), self._all)
        if lengths.count < LIKE_REPLIES:
            lengths = self._all
        output_tokens = (
            lengths.quantile(LONGEST if pending.tries else QUANTILE)
            if lengths.count
            else float(pending.longest or UNSEEN_OUTPUT_TOKENS)
        )
        input_tokens = pending.characters * self._per_character
        if self._counting is Counting.DEMANDED:
            return Amounts(1.0, demanded(pending.characters, pending.longest), input_tokens, output_tokens)
        return Amounts(1.0, input_tokens + output_tokens, input_tokens, output_tokens)

    def used(self, pending: PendingTrial, ended: Reply | ProviderError) -> Amounts:
        """Return the amounts of a call as far as they are known, and learn from its usage."""
        if not isinstance(ended, Reply):
            billed = ended.may_have_been_billed or ended.kind is ErrorKind.SERVER_ERROR
            return pending.reserved if billed else Amounts(pending.reserved.requests)

        # The tokens of a reply count for calls like it.
        usage = ended.usage
        if usage is not None and usage.output_tokens is not None:
            kind = _kind_of(pending)
            lengths = self._kinds.pop(kind, None) or _Lengths()
            self._kinds[kind] = lengths  # the latest last
            if len(self._kinds) > MOST_CELLS:
                del self._kinds[next(iter(self._kinds))]
            lengths.add(usage.output_tokens)
            self._all.add(usage.output_tokens)
        if usage is not None and usage.input_tokens and pending.characters:
            self._learnt += 1
            ratio = usage.input_tokens / pending.characters
            self._per_character += (ratio - self._per_character) / min(self._learnt, 50)
        return counted(usage, pending.reserved, self._counting)


def _kind_of(pending: PendingTrial) -> Kind:
    problem = pending.request.trial.problem
    return problem.task, problem.variant, problem.length, pending.request.trial.condition.name


class _Lengths:
    """The latest replies' lengths; they are sorted when a quantile is needed."""

    __slots__ = ("_latest", "_sorted", "count")

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[int] = deque(maxlen=REMEMBERED)
        self._sorted = list[int]()

    def add(self, tokens: int) -> None:
        self.count += 1
        self._latest.append(tokens)
        self._sorted.clear()

    def quantile(self, share: float) -> float:
        self._sorted = self._sorted or sorted(self._latest)
        return float(self._sorted[math.ceil(share * len(self._sorted)) - 1])
