"""What carries messages between a run and its workers, wherever these run: Ray does, and tests do."""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from asyncbench.cluster.messages import Orders, WorkerReport
from asyncbench.errors import AsyncbenchError


def awake_s() -> float:
    """Return seconds of a clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class WorkerDiedError(AsyncbenchError):
    """The process of a worker is gone, or its machine."""


class WorkerSilentError(AsyncbenchError):
    """Nobody reaches a worker: its process may live, and go on for a while with what it was told."""


class Program(Protocol):
    """What a worker does, in a process of its own."""

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Obey orders; return the next report, as soon as there is news or it is time."""
        ...

    async def close(self) -> None:
        """End: nothing more is asked, and what was kept is sealed."""
        ...


Start = Callable[[str], Awaitable[Program]]  # is pickled; called in a worker's process with the worker's name


class Link(Protocol):
    """A worker, as its run sees it."""

    name: str
    host: str
    pid: int

    async def exchange(self, orders: Orders) -> WorkerReport:
        """Do what `Program.exchange` does.

        Raises:
            WorkerDiedError: the worker is gone. Nobody knows what it did with the orders.
            WorkerSilentError: it may be, or only out of reach.
        """
        ...

    async def close(self) -> None:
        """Do what `Program.close` does; raises as `exchange` does."""
        ...

    def kill(self) -> None:
        """End the worker's process at once."""
        ...


class Cluster(Protocol):
    """Where workers run."""

    @property
    def count(self) -> int:
        """How many workers it has room for."""
        ...

    async def start(self, name: str, program: Start) -> Link:
        """Start a worker.

        Raises:
            ConfigError: it cannot do its work there: a key, a package or the folder is missing.
            WorkerDiedError: it was gone before it was there, or there is no room for it.
        """
        ...

    async def aclose(self) -> None:
        """End all that was started."""
        ...
