"""How many tokens of prompts a vendor lets a model's unfinished batches hold: told, or learnt."""

import math
import re
from typing import Final

FIRST_TOKENS: Final = 80_000  # below every limit that is known
OF_THE_LIMIT: Final = 0.9
MORE: Final = 1.2  # times as many tokens as we count, where the vendor counts more
SAYS_FULL: Final = re.compile(r"token_limit_exceeded|enqueued token limit", re.IGNORECASE)
_LIMIT: Final = re.compile(r"limit:\s*([\d,]+)", re.IGNORECASE)


class EnqueuedPool:
    """How much of the pool a model's parts may take.

    Without a limit it begins small, and doubles while batches are accepted.
    """

    def __init__(self, limit: int | None, *, known: bool = True) -> None:
        """`known`: whether the vendor limits such tokens at all."""
        self._told = limit is not None
        self.most = float(limit) if limit is not None else FIRST_TOKENS if known else math.inf
        self.factor = 1.0  # by which the vendor counts more than we

    @property
    def learns(self) -> bool:
        """Whether a batch that is accepted makes room for more."""
        return not self._told

    def fits(self, tokens: int, *, held: int) -> bool:
        """Whether a part of so many tokens may be sent beside those that are held."""
        return (held + tokens) * self.factor <= self.most

    def accepted(self, held: int) -> None:
        """Learn that so many tokens were held at once."""
        if not self._told:
            self.most = max(self.most, 2 * held * self.factor)

    def refused(self, message: str, tokens: int, *, alone: bool) -> None:
        """Learn from a refusal.

        Args:
            message: the vendor's words.
            tokens: of the part that was refused, as we count.
            alone: whether no other part of ours was held.
        """
        if found := _LIMIT.search(message):
            self._told, self.most = True, OF_THE_LIMIT * int(found[1].replace(",", ""))
        else:
            self._told, self.most = True, max(1.0, min(self.most, tokens * self.factor) / 2)
        if alone and tokens * self.factor <= self.most:
            self.factor *= MORE
