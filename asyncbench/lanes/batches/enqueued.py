"""How much a vendor lets unfinished batches hold: told by the sweep, or learnt from replies."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart

FIRST_TOKENS: Final = 80_000  # below every limit that is known; of prompts, for each model
FIRST_REQUESTS: Final = 100_000  # likewise, of all models together, where requests are what counts
OF_THE_LIMIT: Final = 0.9
MORE: Final = 1.2  # times as much as we count, where the vendor counts more
BACK: Final = 1.01  # from there towards our own count, with each batch that is taken
MOST_MORE: Final = 4.0  # a refusal beyond it is about batches of others
SAYS_FULL: Final = re.compile(
    r"token_limit_exceeded|enqueued token limit|batch queue|requests (?:\w+ )?wait", re.IGNORECASE
)
SMALLEST: Final = 1 / 16  # of the first size: refusals without a number make parts no smaller
_LIMIT: Final = re.compile(r"(?:limit:?|more than)\s+(?:of\s+)?(\d[\d,_]*)", re.IGNORECASE)


class EnqueuedPool:
    """How much the unfinished batches of one model, or of all models of a key, may hold together.

    Without a limit it begins small, and doubles while batches are accepted. Batches of other people in the
    organization count, too: then nothing helps but to wait.
    """

    def __init__(self, limit: int | None = None, *, in_tokens: bool = True) -> None:
        """Begin.

        Args:
            limit: of tokens, as the sweep tells it; None: it is to be learnt.
            in_tokens: whether tokens of prompts are counted; else requests are.
        """
        self.aliases = set[str]()  # of the models whose batches it holds
        self._in_tokens, self._given = in_tokens, limit if in_tokens else None
        self._told: float | None = None
        self._first = float(FIRST_TOKENS if in_tokens else FIRST_REQUESTS)
        self._grown = self._first
        self._factor = 1.0  # by which the vendor counts more than we
        self._taken = set[str]()  # batches that were accepted

    def remember(self, ledger: BatchLedger, alias: str) -> None:
        """Take in the batches of a model, and what earlier runs learnt of its pool."""
        self.aliases.add(alias)
        for part in ledger.of(alias):
            if SAYS_FULL.search(part.why) and (told := _limit_in(part.why)) is not None:
                self._told = OF_THE_LIMIT * told
            if part.ended_at is not None and not part.faults:
                self._grown = max(self._grown, 2.0 * self.size(part.tokens, part.requests))

    def size(self, tokens: int, requests: int) -> int:
        """Return what so many tokens and requests take of the pool, as we count."""
        return tokens if self._in_tokens else requests

    @property
    def learns(self) -> bool:
        """Whether a batch that is accepted makes room for more."""
        return self._given is None and self._told is None

    @property
    def most(self) -> float:
        """How much may be held together, and so by one part of more than one request, as we count."""
        known = [limit for limit in (self._given, self._told) if limit is not None]
        return min(known or [self._grown]) / self._factor

    def size_of(self, parts: Iterable[BatchPart]) -> int:
        return sum(self.size(part.tokens, part.requests) for part in parts)

    def held(self, ledger: BatchLedger) -> int:
        """Return what open parts take, whether they were sent yet or not."""
        return self.size_of(
            part for part in ledger.parts.values() if part.open and part.alias in self.aliases
        )

    def sent(self, ledger: BatchLedger) -> list[BatchPart]:
        """Return the parts of which there is, or may be, a batch that has not ended."""
        own = (part for part in ledger.parts.values() if part.alias in self.aliases)
        return [part for part in own if part.submitted or part.in_doubt]

    def fits(self, size: float, *, held: float) -> bool:
        """Whether so much more may be sent beside what is held."""
        return held + size <= self.most

    def accepted(self, batch_id: str, *, held: float) -> None:
        """Learn that a batch was taken, and that so much was held at once."""
        if batch_id not in self._taken:
            self._taken.add(batch_id)
            self._factor = max(1.0, self._factor / BACK)
        self._grown = max(self._grown, 2.0 * held)

    def refused(self, message: str, size: float, *, held: float) -> None:
        """Learn from a refusal.

        Args:
            message: the vendor's words.
            size: of the part that was refused, as we count.
            held: by other batches of ours.
        """
        told, together = _limit_in(message), size + held
        if told is None:
            self._grown = max(SMALLEST * self._first, min(self._grown, together / 2))
            return
        self._told = OF_THE_LIMIT * told
        if together * self._factor <= self._told:  # it should have fitted
            self._factor = min(MOST_MORE, self._factor * MORE)


def _limit_in(message: str) -> float | None:
    """Return the limit that a refusal names, with commas or without; None: it names none."""
    for found in _LIMIT.finditer(message):
        with suppress(ValueError):
            return float(found[1].replace(",", "").replace("_", ""))
    return None
