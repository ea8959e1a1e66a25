"""The program of a worker process, which makes the calls of a run and knows nothing else of it.

It ends with the process that started it: then the socket between them is closed. No key is in its arguments
or in its environment; each comes over the socket, with the model that it is for.
"""

import asyncio
import contextlib
import resource
import socket
import sys
import traceback
from typing import Any, Final

from asyncbench.engine.telemetry import LoopLag
from asyncbench.errors import AsyncbenchError, ProviderError
from asyncbench.providers.garbage import collect_rarely
from asyncbench.providers.provider import Provider, open_provider
from asyncbench.providers.secrets import without_secret
from asyncbench.providers.workers.frames import Frames
from asyncbench.records import Condition, Message, Model, Problem, Request, Trial

BEAT_S: Final = 0.5  # between two words of how it is
CLOSES_WITHIN_S: Final = 2.0
NOBODYS: Final = Problem(
    problem_id="", suite="", task="", representation="", length=None, question="", expected="", answer_type=""
)  # of a request: a provider of ours reads what is asked in its messages


class Worker:
    """Opens providers and makes calls, as it is told."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lag = LoopLag()
        self._measuring: asyncio.Task[None] | None = None
        self._providers: dict[int, Provider] = {}
        self._openings: dict[int, tuple[Any, ...]] = {}  # a model, its key, and the address of a simulator
        self._keys: set[str] = set()
        self._most = 0  # calls that may be in flight
        self._ways: dict[int, Trial] = {}  # a trial for each way in which models are asked
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._orphaned = asyncio.Event()

    async def run(self) -> None:
        """Make calls until the other end of the socket is gone."""
        self._frames = Frames(self._take, self._orphaned.set)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._frames, sock=self._sock)
        beating = asyncio.create_task(self._beat())
        self._measure_anew()
        await self._orphaned.wait()
        for task in filter(None, (beating, self._measuring, *self._calls.values())):
            task.cancel()
        with contextlib.suppress(Exception):  # nobody is there to hear of it
            async with asyncio.timeout(CLOSES_WITHIN_S):
                await asyncio.gather(*(provider.aclose() for provider in self._providers.values()))

    def _take(self, message: tuple[Any, ...]) -> None:
        kind, *rest = message
        if kind == "ask":
            call, *request = rest
            task = self._calls[call] = asyncio.create_task(self._ask(call, *request))
            task.add_done_callback(lambda _: self._calls.pop(call))
        elif kind == "cancel":
            if (task := self._calls.get(*rest)) is not None:
                task.cancel()
        elif kind == "open":
            self._open(*rest)
        else:
            self._learn(*rest)

    def _open(self, number: int, *opening: Any) -> None:
        """Open a provider before its first call, and say what is wrong with its key or its address."""
        self._openings[number], complaint = opening, None
        try:
            self._provider(number)
        except AsyncbenchError as error:
            complaint = str(error)
        except Exception:  # a bug, which its first call tells
            complaint = None
        if not self._calls:
            self._measure_anew()
        self._frames.send(("opened", complaint))

    def _measure_anew(self) -> None:
        """Forget how late the event loop was: no call waited for an SDK that was imported."""
        if self._measuring is not None:
            self._measuring.cancel()
        self._lag = LoopLag()
        self._measuring = asyncio.create_task(self._lag.measure())

    def _provider(self, number: int) -> Provider:
        if (provider := self._providers.get(number)) is None:
            model, key, simulator_url = self._openings[number]
            self._keys.add(key)
            provider = open_provider(model, key=key, simulator_url=simulator_url)
            self._providers[number] = provider
            self._most += model.limits.most_in_flight
            collect_rarely(self._most)
        return provider

    def _learn(self, number: int, model: Model, condition: Condition) -> None:
        """Learn a way in which models are asked; many requests have it."""
        self._ways[number] = Trial(
            trial_id="", run="", sweep="", problem_set="", problem=NOBODYS, model=model, condition=condition
        )

    async def _ask(
        self,
        call: int,
        provider: int,
        way: int,
        system: str | None,
        turns: list[tuple[str, str]],
    ) -> None:
        began_s = asyncio.get_running_loop().time()
        try:
            messages = tuple(Message(role=role, content=content) for role, content in turns)
            request = Request(trial=self._ways[way], system=system, messages=messages)
            ended: tuple[str, Any] = "reply", await self._provider(provider).ask(request)
        except ProviderError as error:
            ended = "error", error
        except Exception as fault:  # a bug, which is told as if it had happened over there
            ended = "fault", self._described(fault)
        self._end(call, ended, self._lag.worst_since(began_s))

    def _end(self, call: int, ended: tuple[str, Any], lag_s: float) -> None:
        try:
            self._frames.send(("ended", call, *ended, lag_s))
        except Exception as fault:  # what cannot be pickled
            self._frames.send(("ended", call, "fault", self._described(fault), lag_s))

    def _described(self, fault: Exception) -> tuple[str, str]:
        text = "".join(traceback.format_exception(fault))
        for key in self._keys:
            text = without_secret(text, key=key)
        return type(fault).__name__, text

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._frames.send(("beat", self._lag.mean_s, self._lag.worst_since(loop.time() - BEAT_S)))
            await asyncio.sleep(BEAT_S)


def main() -> None:
    """Be the worker at one end of the socket whose number is the only argument."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems tell more than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(Worker(socket.socket(fileno=int(sys.argv[1]))).run())
