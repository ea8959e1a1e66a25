"""The virtual clock, on which an hour of sleeping takes no time.

One process runs on it by `virtually`; of several in a `World`, each has an event loop of its own, may stall,
and may die.
"""

import asyncio
import heapq
import itertools
import selectors
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")


class _Never(selectors.SelectSelector):
    """Waits for nothing: the world moves the clock."""

    def select(self, _timeout: float | None = None) -> Any:
        return []


class ProcessLoop(asyncio.SelectorEventLoop):
    """The event loop of one process; it runs when its world lets it."""

    # parts of `BaseEventLoop` that typeshed does not know
    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]  # of `TimerHandle`s
    _timer_cancelled_count: int
    _run_once: Callable[[], None]

    def __init__(self, world: "World") -> None:
        super().__init__(_Never())
        self.world = world

    def time(self) -> float:
        return self.world.now_s

    def run_in_executor(self, _: Any, func: Any) -> Any:  # type: ignore[override]  # as `to_thread` calls it
        """Do the work at once: a virtual second waits for no thread."""
        done: asyncio.Future[Any] = self.create_future()
        done.set_result(func())
        return done

    @property
    def due_s(self) -> float:
        """When it has something to do next."""
        if self._ready:
            return self.world.now_s
        while self._scheduled and self._scheduled[0]._cancelled:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._timer_cancelled_count -= 1
        return self._scheduled[0]._when if self._scheduled else inf

    def step(self) -> None:
        """Run what is due."""
        events._set_running_loop(self)
        try:
            self._run_once()
        finally:
            events._set_running_loop(None)


@dataclass(slots=True, kw_only=True, eq=False)
class Process:
    """A process: its event loop, and what becomes of it."""

    name: str
    world: "World"
    loop: ProcessLoop
    alive: bool = True
    stalled_until_s: float = 0.0
    slept_s: float = 0.0  # of its machine: by so much its clock is ahead of its event loop's
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    looked_at_s: float = inf  # when its world looks at it next

    def now_s(self) -> float:
        """Its clock that goes on while the machine sleeps."""
        return self.loop.time() + self.slept_s

    @property
    def due_s(self) -> float:
        """When it runs next."""
        return max(self.loop.due_s, self.stalled_until_s) if self.alive else inf

    def start(self, main: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something in it."""
        task = self.loop.create_task(main)
        self.tasks.append(task)
        self.world.look_at(self)
        return task

    def post(self, after_s: float, call: Callable[[], None]) -> None:
        """Let something arrive in it."""
        if self.alive:
            self.loop.call_at(self.loop.time() + after_s, call)
            self.world.look_at(self)


class World:
    """Moves the clock, and lets each process run when something is due in it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.processes: list[Process] = []
        self._looks: list[tuple[float, int, Process]] = []
        self._fates: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = itertools.count()

    def process(self, name: str) -> Process:
        """Begin another process."""
        self.processes.append(process := Process(name=name, world=self, loop=ProcessLoop(self)))
        return process

    def at(self, at_s: float, happens: Callable[[], None]) -> None:
        """Let something happen from outside."""
        heapq.heappush(self._fates, (at_s, next(self._ties), happens))

    def look_at(self, process: Process) -> None:
        """See to it that a process runs when something is due in it."""
        if (due_s := process.due_s) < process.looked_at_s:
            process.looked_at_s = due_s
            heapq.heappush(self._looks, (due_s, next(self._ties), process))

    def run(
        self, done: Callable[[], bool], *, within_s: float = inf, check: Callable[[], None] = lambda: None
    ) -> None:
        """Go on until something is done; `check` looks on after every step of a process.

        Raises:
            TimeoutError: it was not done in time.
        """
        until_s = self.now_s + within_s
        while not done():
            next_s = self._looks[0][0] if self._looks else inf
            if self._fates and self._fates[0][0] <= next_s:
                at_s, _, happens = heapq.heappop(self._fates)
                self.now_s = max(self.now_s, at_s)
                happens()
            elif next_s == inf:
                raise RuntimeError("the world stands still: nothing is due and nothing is running")
            elif next_s > until_s:
                raise TimeoutError(f"not done within {within_s:,.0f} s")
            else:
                self._step(heapq.heappop(self._looks)[2], next_s)
                check()

    def _step(self, process: Process, at_s: float) -> None:
        if process.looked_at_s == at_s:
            process.looked_at_s = inf
        self.now_s = max(self.now_s, at_s)
        if process.due_s <= self.now_s:
            process.loop.step()
            self.now_s += 1e-6  # even doing nothing takes a microsecond, or rounding could hang it
        self.look_at(process)

    def end(self) -> None:
        """Let go of everything that still runs."""
        for process in self.processes:
            process.loop.set_exception_handler(lambda _loop, _context: None)
            while tasks := asyncio.all_tasks(process.loop):
                for task in tasks:
                    task.cancel()
                process.loop.step()
            process.loop.close()


def virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in one process, on a clock that starts at zero; no task may outlive `main`."""
    world = World()
    process = world.process("alone")
    try:
        task: asyncio.Task[T] = process.start(main)
        world.run(task.done)
        others = asyncio.all_tasks(process.loop)
        assert task.exception() is not None or not others, f"tasks outlived the run: {others}"
        return task.result()
    finally:
        world.end()
