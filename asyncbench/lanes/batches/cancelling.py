"""Batches that are cancelled: asked to end, again and again until the vendor has heard it.

What a batch has done by then is billed, and collected like that of any other. It may even end as if nobody
had cancelled it: what became of it is seen by polling alone.
"""

from collections import Counter
from typing import Final

from asyncbench.errors import ProviderError
from asyncbench.lanes.batches.desk import BatchDesk
from asyncbench.lanes.batches.ledger import BatchPart, Step

WAIT_S: Final = 1800.0  # until cancelled batches have ended; 25 minutes were seen
HEARD: Final = frozenset({400, 409})  # by a batch that has ended, though nobody may have seen it yet


class Cancelling:
    """The batches of one model that are to end early."""

    def __init__(self, desk: BatchDesk) -> None:
        self._desk = desk
        self._heard = set[str]()  # batches, in this run
        self._failures = Counter[str]()  # in a row, by batch

    def is_due(self, part: BatchPart) -> bool:
        """Whether the vendor has yet to hear that a part is cancelled, by this run or an earlier one."""
        return part.submitted and part.cancelled_at is not None and part.batch_id not in self._heard

    async def begin(self, part: BatchPart) -> None:
        """Write down that a part is cancelled, so that whoever comes next does so, too."""
        await self._desk.note(part, Step.CANCELLING, batch_id=part.batch_id)

    async def ask(self, batch_id: str) -> float:
        """Ask for the end of a batch; return the seconds until it is asked again, 0: that was heard."""
        if batch_id in self._heard:
            return 0.0
        try:
            await self._desk.api.cancel(batch_id)
        except ProviderError as error:
            if error.http_status not in HEARD:
                self._failures[batch_id] += 1
                return self._desk.failed(error, again=self._failures[batch_id] - 1, looking=True)
        self._heard.add(batch_id)
        return 0.0
