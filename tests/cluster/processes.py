"""Workers in processes of their own on this machine, as Ray has them on others: for tests that kill them."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import traceback
from typing import Any

from asyncbench.cluster.messages import Link, Orders, Program, Start, WorkerDiedError, WorkerReport
from asyncbench.errors import AsyncbenchError
from asyncbench.providers.workers.worker import Frames
from tests.processes import Forked


class ProcessCluster:
    """A cluster of so many processes; those that are not `children` of this one start sooner."""

    def __init__(
        self, count: int, environment: dict[str, str] | None = None, *, children: bool = True
    ) -> None:
        self.count, self._children = count, children
        self.links: list[ProcessLink] = []
        self._environment = dict(os.environ) if environment is None else environment

    async def start(self, name: str, program: Start) -> Link:
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._started(theirs.fileno())
        link = ProcessLink(name, process)
        self.links.append(link)
        await link.connect(ours)
        await link.ask("start", name, program)
        return link

    def _started(self, descriptor: int) -> "subprocess.Popen[bytes] | Forked":
        module = "tests.cluster.processes"
        if not self._children:
            return Forked(module, stdin=descriptor, env=self._environment)
        return subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=descriptor,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is the run's
        )

    async def aclose(self) -> None:
        for link in self.links:
            link.kill()
            await asyncio.to_thread(link.process.wait)


class ProcessLink:
    """One of its workers."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes] | Forked") -> None:
        self.name, self.host, self.pid, self.process = name, socket.gethostname(), process.pid, process
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._gone = False

    async def connect(self, ours: socket.socket) -> None:
        self._frames = Frames(self._take, self._died)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._frames, sock=ours)

    async def exchange(self, orders: Orders) -> WorkerReport:
        report: WorkerReport = await self.ask("exchange", orders)
        return report

    async def close(self) -> None:
        await self.ask("close")

    def kill(self) -> None:
        self.process.kill()

    async def ask(self, *what: Any) -> Any:
        if self._gone:
            raise WorkerDiedError(f"{self.name} is gone")
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        self._frames.send((number, *what))
        return await self._asked[number]

    def _take(self, told: tuple[int, Any, Exception | None]) -> None:
        number, value, error = told
        answer = self._asked.pop(number)
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def _died(self) -> None:
        self._gone = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(WorkerDiedError(f"{self.name} is gone"))
        self._asked.clear()


class Inside:
    """The process of a worker."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self._program: Program | None = None
        self._doing = set[asyncio.Task[None]]()

    async def run(self, sock: socket.socket) -> None:
        self._frames = Frames(self._take, self.over.set)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._frames, sock=sock)
        await self.over.wait()

    def _take(self, told: tuple[Any, ...]) -> None:
        task = asyncio.create_task(self._do(*told))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _do(self, number: int, what: str, *given: Any) -> None:
        try:
            value = None
            if what == "start":
                name, start = given
                self._program = await start(name)
            else:
                value = await getattr(self._program, what)(*given)
            self._frames.send((number, value, None))
        except Exception as error:
            said = error if isinstance(error, AsyncbenchError) else RuntimeError(traceback.format_exc())
            self._frames.send((number, None, said))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Inside().run(socket.socket(fileno=os.dup(0))))
