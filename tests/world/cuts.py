"""Nights that are cut off: at some point nothing more is done, as if the process had died there."""

import os
import signal
import sys
from contextlib import contextmanager

import orjson
import pytest

from asyncbench.lanes.batches.ledger import BatchLedger
from asyncbench.lanes.batches.packing import PartWriter
from asyncbench.providers.provider import open_batches
from asyncbench.run import lanes
from asyncbench.store import folder as folders
from asyncbench.store.folder import Store
from asyncbench.store.salvage import Salvage
from asyncbench.store.sealing import FolderJournal


class CutError(Exception):
    """The process is gone; nothing handles this."""


class Cutter:
    """Counts the points that a night passes, and cuts it off at one of them: `before create 1`."""

    def __init__(self, at=None, *, kills=False):
        self.at, self.points = at, []
        self.cut, self._kills = False, kills

    def passes(self, when, what):
        if self.cut:
            raise CutError
        number = 1 + sum(point.rpartition(" ")[0] == f"{when} {what}" for point in self.points)
        self.points.append(f"{when} {what} {number}")
        if self.points[-1] == self.at:
            self.cut = True
            if self._kills:
                os.kill(os.getpid(), signal.SIGKILL)
            raise CutError(self.at)


class CutApi:
    """A vendor's API whose calls can be cut off before they are made, or after they were answered."""

    def __init__(self, api, cutter):
        self._api, self._cutter = api, cutter

    def __getattr__(self, name):
        found = getattr(self._api, name)
        if name in {"line", "aclose"} or not callable(found):
            return found
        if name == "read":
            return lambda line: (self._cutter.passes("before", name), found(line))[1]

        async def called(*arguments):
            self._cutter.passes("before", name)
            answer = await found(*arguments)
            self._cutter.passes("after", name)
            return answer

        return called


@contextmanager
def cutting(at=None, *, kills=False):
    """Let runs pass the points of a `Cutter` while the body lasts."""
    cutter, note = Cutter(at, kills=kills), BatchLedger.note

    async def noted(self, part, step, **said):
        cutter.passes("before", f"line {step}")
        await note(self, part, step, **said)
        cutter.passes("after", f"line {step}")

    def opened(*given, **named):
        return CutApi(open_batches(*given, **named), cutter)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "open_batches", opened)
        patch.setattr(BatchLedger, "note", noted)
        _leave_all_as_it_was(cutter, patch)
        yield cutter


def _leave_all_as_it_was(cutter, patch):
    """Let a run that was cut off tidy nothing up on its way out: a killed process would not."""

    def unless_cut(place, name, instead=lambda *_: None):
        usual = getattr(place, name)
        patch.setattr(place, name, lambda *given: (instead if cutter.cut else usual)(*given))

    unless_cut(PartWriter, "abandon")
    unless_cut(Salvage, "_free_reserve")
    unless_cut(Store, "close", lambda store: store._exits.close())  # the system lets a lock go
    unless_cut(folders, "remove_mark")
    unless_cut(FolderJournal, "close", lambda journal: journal.segment.close())


if __name__ == "__main__":  # a run that is really killed: point, URL of the simulator, night
    from tests.world.batches import Night

    class Server:
        url = sys.argv[2]

    with cutting(sys.argv[1], kills=True):
        Night.of(Server, orjson.loads(sys.argv[3])).run(**orjson.loads(sys.argv[4]))
