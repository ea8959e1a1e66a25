"""The program of a worker process, which makes the calls of a run, and the frames in which both talk.

It ends with the process that started it: then the socket between them is closed. No key is in its arguments
or in its environment; each comes over the socket, with the model that it is for.
"""

import asyncio
import contextlib
import pickle
import resource
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any, Final

from asyncbench.engine.awake import deadlines_put_off
from asyncbench.engine.telemetry import LoopLag
from asyncbench.errors import AsyncbenchError, ProviderError
from asyncbench.providers.garbage import collect_rarely
from asyncbench.providers.provider import Provider, open_provider
from asyncbench.providers.secrets import withhold_secret
from asyncbench.providers.unasked import servers, watching_servers
from asyncbench.records import Message, Problem, Request, Trial

# ── Python values over a socket pair, in the order in which they were sent

PIECE: Final = 2**18  # bytes read at once
_LENGTH: Final = Struct("<I")


class Frames(asyncio.Protocol):
    """Sends values and takes those that come: all of one turn of the event loop in one piece.

    Values are pickled: both ends are our own processes, run the same code, and share no socket with anyone.
    So each arrives as it left: half a surrogate, an integer of thirty digits, NaN.

    Args:
        take: is called with each value that comes.
        lost: is called once, when the other end is gone.
    """

    def __init__(self, take: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._take, self._lost = take, lost
        self._transport: asyncio.Transport | None = None  # None: not yet there, or gone
        self._over = False
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._unread = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a stream has no other
        self._transport = transport
        self._flush()

    def connection_lost(self, _: Exception | None) -> None:
        # Take what the other end sent before it went: where writing fails first, nobody has read it.
        if self._transport is not None:
            with suppress(OSError), self._transport.get_extra_info("socket").dup() as remains:
                remains.setblocking(False)
                while data := remains.recv(PIECE):
                    self.data_received(data)
        self._transport, self._over = None, True
        self._lost()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        start = 0
        while len(self._unread) >= (body_start := start + _LENGTH.size):
            end = body_start + _LENGTH.unpack_from(self._unread, start)[0]
            if len(self._unread) < end:
                break
            value = pickle.loads(self._unread[body_start:end])  # noqa: S301  our own process sent it
            start = end
            self._take(value)
        del self._unread[:start]

    def send(self, value: object) -> None:
        """Send a value soon; where the other end is gone, it is dropped.

        Raises:
            Exception: whatever keeps the value from being pickled. Nothing of it was sent.
        """
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if self._over:
            return
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += (_LENGTH.pack(len(data)), data)

    def close(self) -> None:
        """Send what waits, then end the connection."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()


# ── the worker

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
        self._max_in_flight = 0  # calls that may be in flight
        self._ways: dict[int, Trial] = {}  # a trial for each way in which models are asked
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._orphaned = asyncio.Event()

    async def run(self) -> None:
        """Make calls until the other end of the socket is gone."""
        self._frames = Frames(self._take, self._orphaned.set)
        with deadlines_put_off():
            # Each message of the run is taken as it comes (`_take`).
            servers().listeners.append(lambda name: self._frames.send(("caught", name)))
            await asyncio.get_running_loop().create_unix_connection(lambda: self._frames, sock=self._sock)
            beating = asyncio.create_task(self._beat())
            self._measure_anew()
            await self._orphaned.wait()

            # The run is gone: nobody waits for what is in flight.
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
        elif kind == "caught":  # by another worker
            servers().named(*rest).catch()
        else:  # a way in which models are asked; many requests have it
            number, model, condition = rest
            self._ways[number] = Trial(
                trial_id="",
                run="",
                sweep="",
                problem_set="",
                problem=NOBODYS,
                model=model,
                condition=condition,
            )

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
            self._keys.update(key.secrets)
            provider = open_provider(model, key=key, simulator_url=simulator_url)
            self._providers[number] = provider
            self._max_in_flight += model.limits.most_in_flight
            collect_rarely(self._max_in_flight)
        return provider

    async def _ask(
        self,
        call: int,
        provider: int,
        way_number: int,
        system: str | None,
        turns: list[tuple[str, str]],
    ) -> None:
        began_s = asyncio.get_running_loop().time()
        try:
            messages = tuple(Message(role=role, content=content) for role, content in turns)
            request = Request(trial=self._ways[way_number], system=system, messages=messages)
            ended: tuple[str, Any] = "reply", await self._provider(provider).ask(request)
        except ProviderError as error:
            ended = "error", error
        except Exception as fault:  # a bug, which is told as if it had happened over there
            ended = "fault", self._described(fault)
        lag_s = self._lag.worst_since(began_s)
        try:
            self._frames.send(("ended", call, *ended, lag_s))
        except Exception as fault:  # what cannot be pickled
            self._frames.send(("ended", call, "fault", self._described(fault), lag_s))

    def _described(self, fault: Exception) -> tuple[str, str]:
        text = "".join(traceback.format_exception(fault))
        for key in self._keys:
            text = withhold_secret(text, key=key)
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
    with watching_servers(lambda _: None):  # a person hears it from the run
        asyncio.run(Worker(socket.socket(fileno=int(sys.argv[1]))).run())
