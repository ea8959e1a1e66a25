"""Saving the answers of a run whose disk fails: no call begins, and those in flight may still be kept."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from asyncbench.errors import StoreError, TakenAwayError, UnwrittenError
from asyncbench.records import Ended, Event, Sent
from asyncbench.store.folder import Store, needless
from asyncbench.store.parts import TEMPORARY

RESERVE_BYTES = 16 * 2**20  # set aside for the answers in flight when the disk is full


class Salvage:
    """Keeps the events of a run in its store, and what the disk refuses in memory until there is room.

    When the disk fails, `stop` is called with the error, once. No call is begun from then on; those in flight
    may end, and their events are written in their order as far as the disk takes them. A reserve, given
    free then, is room for them where the disk is merely full. `close` tells what came of it.
    """

    def __init__(self, store: Store, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        self.error: StoreError | None = None
        self.stop: Callable[[StoreError], None] | None = None
        self._store = store
        self._waiting: deque[Event] = deque()
        self._reserve = store.folder / TEMPORARY / "reserve"
        try:
            self._reserve.parent.mkdir(exist_ok=True)
            with self._reserve.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, reserve_bytes)
        except (OSError, AttributeError):  # a full disk, or a system that cannot: go on without a reserve
            self._free_reserve()

    @property
    def unsaved(self) -> int:
        """How many answers are in memory alone."""
        return sum(isinstance(event, Ended) and event.reply is not None for event in self._waiting)

    def keep(self, event: Event) -> None:
        """Write an event down, now or when there is room; a reply that is graded at once with its grade.

        Raises:
            UnwrittenError: the disk has failed, so a call must not be begun.
        """
        begins = isinstance(event, Sent)
        if begins and self.error is not None:
            raise UnwrittenError(str(self.error))
        if needless(self._store, event):
            return
        self._waiting.append(event)
        if isinstance(event, Ended) and event.graded_next:
            return
        self._write_waiting()
        if begins and self._waiting:
            self._waiting.pop()
            raise UnwrittenError(str(self.error))

    async def saved(self) -> bool:
        """Wait until all that was kept is on the disk; return whether it is."""
        if self.error is None:
            try:
                await asyncio.to_thread(self._store.journal.sync)
            except StoreError as error:
                self.fail(error)
        return self.error is None

    async def tend(self) -> None:
        """Bring what is kept onto the disk, and into parts while the disk takes them, until cancelled."""
        try:
            await self._store.tend()
        except StoreError as error:
            self.fail(error)
        with suppress(StoreError):  # what is saved of the answers in flight has to outlive the power, too
            await self._store.tend(seal_every_s=float("inf"))

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[None]:
        """Tend meanwhile."""
        async with asyncio.TaskGroup() as beside:
            tending = beside.create_task(self.tend(), name="store")
            yield
            tending.cancel()

    def close(self) -> None:
        """Save what is waiting, seal what can be, and let the folder go.

        Raises:
            StoreError: the disk has failed; says which file it was, and how many answers are not saved.
        """
        self._free_reserve()
        self._write_waiting()
        try:
            self._store.close()
        except StoreError as error:
            self.error = error if isinstance(error, TakenAwayError) else self.error or error
        if self.error is not None:
            outcome = "0 answers are unsaved: the folder has all that arrived."
            if isinstance(self.error, TakenAwayError):
                outcome = "`asyncbench status FOLDER --verify` names what is gone. Run again to ask for it."
            if n := self.unsaved:
                outcome = f"{n:,} answers that arrived later are unsaved. Run again to ask for them."
            raise StoreError(f"{self.error} {outcome}") from self.error

    def fail(self, error: StoreError) -> None:
        """Begin nothing more: the disk has failed."""
        if self.error is None:
            self.error = error
            self._free_reserve()
            if self.stop is not None:
                self.stop(error)

    def _write_waiting(self) -> None:
        """Write down what is waiting, oldest first: an end never stands before its beginning."""
        try:
            self._store.journal.write(self._waiting)
        except StoreError as error:
            self.fail(error)

    def _free_reserve(self) -> None:
        with suppress(OSError):
            self._reserve.unlink(missing_ok=True)
