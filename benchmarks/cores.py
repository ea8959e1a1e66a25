"""One core for the client that is measured, and the others for the server that answers it (Linux)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from asyncbench.simulator.process import Simulator, running
from asyncbench.simulator.settings import Settings

FIRST, *OTHERS = sorted(os.sched_getaffinity(0))


def take_one() -> None:
    """Keep this process, with all threads that it starts from now on, to one core."""
    os.sched_setaffinity(0, {FIRST})


@contextmanager
def served(settings: Settings) -> Iterator[Simulator]:
    """Run a simulator on the other cores; on a machine of one core it shares that."""
    with running(settings) as server:
        os.sched_setaffinity(server.pid, OTHERS or {FIRST})
        yield server
