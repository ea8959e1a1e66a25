"""The context of a model's batches: API, ledger, clock, settings, and the pool of enqueued tokens."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from asyncbench.config.run_entries import Batching
from asyncbench.errors import FINAL_FOR_LANE, ErrorKind, ProviderError
from asyncbench.lanes.batches.ledger import BatchLedger, BatchPart, Step
from asyncbench.providers.batch_calls import BatchApi, RemoteBatch

# ── The pool of unfinished batches: a limit of the sweep, or one that is learnt


FIRST_TOKENS: Final = 80_000  # below every limit that is known; of prompts, for each model
FIRST_REQUESTS: Final = 100_000  # the same where requests are counted, of all models together
OF_THE_LIMIT: Final = 0.9  # of a limit that a refusal names, so much is used
# Where a vendor refuses what fits our own count, it counts more than we do:
COUNT_GROWTH: Final = 1.2  # the factor grows by this with each such refusal
COUNT_DECAY: Final = 1.01  # and shrinks by this with each batch that is taken
LARGEST_FACTOR: Final = 4.0  # a refusal beyond it is about batches of other people
SAYS_FULL: Final = re.compile(
    r"token_limit_exceeded|enqueued token limit|batch queue|requests (?:\w+ )?wait", re.IGNORECASE
)
SMALLEST: Final = 1 / 16  # of the first size; refusals without a number make the pool no smaller
_LIMIT: Final = re.compile(r"(?:limit:?|more than)\s+(?:of\s+)?(\d[\d,_]*)", re.IGNORECASE)


class EnqueuedPool:
    """The limit on unfinished batches of one model, or of all models of a key, taken together.

    Without a limit it begins small, and doubles while batches are accepted. Batches of other people in the
    organization count, too: then nothing helps but to wait.
    """

    def __init__(self, limit: int | None = None, *, in_tokens: bool = True) -> None:
        """Begin.

        Args:
            limit: of tokens, as the sweep says; None: it is learnt from what the vendor accepts and refuses.
            in_tokens: whether tokens of prompts are counted; else requests are.
        """
        self.aliases = set[str]()  # of the models whose batches it holds
        self._in_tokens, self._configured = in_tokens, limit if in_tokens else None
        self._learnt: float | None = None
        self._first = float(FIRST_TOKENS if in_tokens else FIRST_REQUESTS)
        self._grown = self._first
        self._factor = 1.0  # by which the vendor counts more than we
        self._taken = set[str]()  # batches that were accepted

    def remember(self, ledger: BatchLedger, alias: str) -> None:
        """Take in the batches of a model, and what earlier runs learnt of its pool."""
        self.aliases.add(alias)
        for batch_part in ledger.parts_of(alias):
            if SAYS_FULL.search(batch_part.why) and (limit := _limit_in(batch_part.why)) is not None:
                self._learnt = OF_THE_LIMIT * limit
            if batch_part.ended_at is not None and not batch_part.faults:
                self._grown = max(self._grown, 2.0 * self.size(batch_part.tokens, batch_part.requests))

    def size(self, tokens: int, requests: int) -> int:
        """Return the room in the pool for so many tokens and requests, as we count."""
        return tokens if self._in_tokens else requests

    @property
    def learns(self) -> bool:
        """Whether a batch that is accepted makes room for more."""
        return self._configured is None and self._learnt is None

    @property
    def limit(self) -> float:
        """The most that may be in use together, and so by one part of more than one request, as we count."""
        limits = [limit for limit in (self._configured, self._learnt) if limit is not None]
        return min(limits or [self._grown]) / self._factor

    def size_of(self, parts: Iterable[BatchPart]) -> int:
        return sum(self.size(batch_part.tokens, batch_part.requests) for batch_part in parts)

    def size_in_use(self, ledger: BatchLedger) -> int:
        """Return the room in the pool that open parts take, whether they were sent yet or not."""
        return self.size_of(
            batch_part
            for batch_part in ledger.parts.values()
            if batch_part.open and batch_part.alias in self.aliases
        )

    def sent(self, ledger: BatchLedger) -> list[BatchPart]:
        """Return the parts of which there is, or may be, a batch that has not ended."""
        return [
            batch_part
            for batch_part in ledger.parts.values()
            if batch_part.alias in self.aliases and (batch_part.submitted or batch_part.in_doubt)
        ]

    def fits(self, size: float, *, in_use: float) -> bool:
        """Whether so much more may be sent beside what is held."""
        return in_use + size <= self.limit

    def accepted(self, batch_id: str, *, in_use: float) -> None:
        """Learn that a batch was taken, and that so much was held at once."""
        if batch_id not in self._taken:
            self._taken.add(batch_id)
            self._factor = max(1.0, self._factor / COUNT_DECAY)
        self._grown = max(self._grown, 2.0 * in_use)

    def refused(self, message: str, size: float, *, in_use: float) -> None:
        """Learn from a refusal.

        Args:
            message: the vendor's words.
            size: of the part that was refused, as we count.
            in_use: by other batches of ours.
        """
        limit, together = _limit_in(message), size + in_use
        if limit is None:
            self._grown = max(SMALLEST * self._first, min(self._grown, together / 2))
            return
        self._learnt = OF_THE_LIMIT * limit
        if together * self._factor <= self._learnt:  # it should have fitted
            self._factor = min(LARGEST_FACTOR, self._factor * COUNT_GROWTH)


def _limit_in(message: str) -> float | None:
    """Return the limit that a refusal names, with or without commas in it, or None."""
    for match in _LIMIT.finditer(message):
        with suppress(ValueError):
            return float(match[1].replace(",", "").replace("_", ""))
    return None


# ── Context of one model


NO_PAGE: Final = (404, 405)  # of a list or of uploads: the provider has none
FRESH_S: Final = 10.0  # so old may a list be that another model of the same key has seen
KEY_REFUSED: Final = 401
NOT_FOUND: Final = 404  # of a known batch says nothing: a young one is not found everywhere
PATIENCE_S: Final = 3600.0  # for a batch that is not found
DAY_S: Final = 86_400.0
KEPT_S: Final = 30 * DAY_S  # results are, from the creation of the batch
UNNAMED_KEPT_S: Final = 29 * DAY_S  # the same of a batch that was made without a file, as at Anthropic
FIRST_WAIT_S, LONGEST_WAIT_S = 15.0, 900.0  # after a call that failed
OUT_OF_REACH: Final = (ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT)
_YOUNG: Final = ((120.0, 15.0), (1800.0, 60.0))  # up to this age of a batch, poll again after so long
_OLD_S: Final = 300.0  # and an older one after so long


class BatchClock:
    """UTC, and waits; for a simulator whose batches run k times faster, waits are k times shorter."""

    def __init__(self, speed: float = 1.0) -> None:
        self.real_s = 1 / speed  # of a second of a batch's own time

    def now(self) -> float:
        """Return UTC, seconds since 1970."""
        return time.time()

    def since(self, moment: float) -> float:
        """Return how long ago a moment was, as batches age."""
        return (self.now() - moment) / self.real_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.real_s)


@dataclass(slots=True)
class BatchAccount:
    """The state that models of one key share: one list of batches, and whether there are any batches."""

    absent: str | None = None  # how the provider said that it has no batches
    listed: list[RemoteBatch] = field(default_factory=list)  # the batches that were created last
    listed_at: float = -math.inf  # UTC
    unlisted: bool = False  # the provider has no list
    seen_by: str = ""  # a hash of whose batches the list holds
    skew_s: float = 0.0  # by which the vendor's clock was ahead of ours then
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pools: dict[str, EnqueuedPool] = field(default_factory=dict)  # by model; "": of all models together


@dataclass(slots=True, kw_only=True)
class BatchContext:
    """All that the steps of one model's batches share."""

    alias: str
    api: BatchApi
    ledger: BatchLedger
    clock: BatchClock
    batching: Batching
    on_message: Callable[[str], None]  # to a person
    suspend: Callable[[str], None]  # the model: nothing more is asked of it
    pool: EnqueuedPool = field(default_factory=EnqueuedPool)  # perhaps of other models, too
    shared: BatchAccount = field(default_factory=BatchAccount)
    resubmit: Collection[str] = ()  # keys of parts that somebody wants sent again, if there is no trace
    list_read_at: float = -math.inf  # UTC of the list that was read last
    due: dict[str, float] = field(default_factory=dict)  # by part: UTC at which its next step is
    unseen: dict[str, float] = field(default_factory=dict)  # by part: UTC since which it was not found
    host: str = ""  # whom the calls are made to
    unreached_at: float | None = None  # UTC since which no call came through; None: the latest did
    blind: bool = False  # batches can no longer be read: the key was refused

    def notify(self, text: str) -> None:
        """Tell a person something of this model's batches."""
        self.on_message(f"{self.alias}: {text}")

    async def note(self, batch_part: BatchPart, step: Step, **details: object) -> None:
        """Write a step down; when this returns, it is on the disk."""
        await self.ledger.note(batch_part, step, at=self.clock.now(), **details)

    @property
    def vendor_now(self) -> float:
        """The time by the vendor's clock: ours may be set."""
        return self.clock.now() + self.api.skew_s

    async def latest(self) -> list[RemoteBatch]:
        """Return the batches created last; a list that another model of the key has just seen will do.

        Where there is no list, each batch has to be read alone.
        """
        shared = self.shared
        async with shared.lock:
            if self.clock.since(shared.listed_at) > FRESH_S or shared.listed_at <= self.list_read_at:
                try:
                    shared.listed = await self.api.recent(None)
                    shared.unlisted = False
                except ProviderError as error:
                    if error.http_status not in NO_PAGE:
                        raise
                    shared.listed, shared.unlisted = [], True
                shared.listed_at = self.clock.now()
                shared.seen_by, shared.skew_s = self.api.account, self.api.skew_s
                self.unreached_at = None
            elif not self.api.account:  # its own calls had no reply so far
                self.api.account, self.api.skew_s = shared.seen_by, shared.skew_s
        self.list_read_at = shared.listed_at
        return shared.listed

    def is_due(self, batch_part: BatchPart) -> bool:
        return self.due.get(batch_part.key, 0.0) <= self.clock.now()

    def put_off(self, batch_part: BatchPart, seconds: float) -> None:
        """Let a part wait, in seconds of its own time; inf: until the next run."""
        self.due[batch_part.key] = self.clock.now() + seconds * self.clock.real_s

    def failed(
        self, error: ProviderError, *, again: int, reading: bool = False, one_batch: bool = False
    ) -> float:
        """Return the seconds until a call is made again that failed; what no waiting helps suspends.

        Args:
            error: how it failed.
            again: how often in a row it did before.
            reading: it only read something.
            one_batch: it read one batch; its refusal says nothing of others, unless the key was refused.
        """
        if error.kind in OUT_OF_REACH and self.unreached_at is None:
            self.unreached_at = self.clock.now()
        unknown = reading and error.http_status == NOT_FOUND  # which says nothing of what exists
        unknown = unknown or (one_batch and error.http_status != KEY_REFUSED)
        if error.kind in FINAL_FOR_LANE and not unknown:
            self.blind |= reading
            self.suspend(f"{error.kind.value}: {error.message}")
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(again, 10))
        return max(wait_s, error.retry_after_s or 0.0)

    @property
    def unreached(self) -> str:
        """A phrase that says since when the provider could not be reached; empty: it could."""
        if self.unreached_at is None:
            return ""
        since = datetime.fromtimestamp(self.unreached_at).astimezone()
        return f"cannot reach {self.host} since {since:%H:%M}"

    def lost_sight(self, batch_part: BatchPart) -> bool:
        """Note that a part's batch, or its results, were not found; return whether that lasts for too long.

        A young batch may not be found for minutes, and nobody can tell what became of an old one.
        """
        since_at = self.unseen.setdefault(batch_part.key, self.clock.now())
        if self.clock.since(since_at) < PATIENCE_S or self.is_gone(batch_part):
            return False
        if self.due.get(batch_part.key) != math.inf:
            self.put_off(batch_part, math.inf)
            self.notify(
                f"the provider does not find batch {batch_part.batch_id}. The next run looks again; "
                "nothing of it is asked in another way before its results would be deleted."
            )
        return True

    def is_gone(self, batch_part: BatchPart) -> bool:
        """Whether the vendor has deleted a part's results by now."""
        return self.clock.since(batch_part.created_at or batch_part.at) > (batch_part.kept_s or KEPT_S)

    def poll_again_s(self, age_s: float) -> float:
        """Return the seconds until a batch of this age is polled again."""
        usual_s = next((wait_s for upto_s, wait_s in _YOUNG if age_s < upto_s), _OLD_S)
        return max(usual_s, self.api.poll_s)


def kept_s(batch_part: BatchPart) -> float:
    """Return how long a part's results are kept, from the creation of its batch."""
    return batch_part.kept_s or (UNNAMED_KEPT_S if batch_part.file_id is None else KEPT_S)
