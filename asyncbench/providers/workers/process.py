"""One worker of a run: its process, which makes calls, and the next process if that one dies."""

import asyncio
import itertools
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncbench.errors import ConfigError, LostCallError
from asyncbench.providers.endpoints import usable_endpoints
from asyncbench.providers.secrets import SHORTEST_SECRET, looks_secret
from asyncbench.providers.workers import worker
from asyncbench.providers.workers.worker import BEAT_S, Frames
from asyncbench.records import Reply

Notify = Callable[[str], None]
THERE_WITHIN_S: Final = 60.0
ENDS_WITHIN_S: Final = 5.0  # of its socket closed; then it is killed
IN_VAIN: Final = 5  # processes in a row of one worker that lost more calls than they ended
QUIET_S: Final = 3.0  # without a word: others make its calls
BEATS: Final = 20  # that are remembered: ten seconds of them
PROXY: Final = "_PROXY"  # the end of variables that say where to connect, perhaps with a password


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCounts:
    """State of one worker."""

    name: str  # "1", "2" …: one that is started in the place of another has its name; of a cluster "w001-e1"
    pid: int
    in_flight: int  # calls that it is making
    calls: int  # that it ended, those of earlier processes of its name too
    calls_per_s: float  # over the last ten seconds
    lag_s: float  # the worst that its event loop was late in the last ten seconds
    deaths: int  # processes of its name that ended before the run did
    host: str = ""  # of a cluster: its machine


class WorkerProcess:
    """One worker: a process, or the one that has taken its place.

    Args:
        name: of the worker, whichever process it is.
        environment: of its processes.
        notify: see `Workers`.
        give_up: see `Workers`.
        on_caught: called with the name of a server that it caught answering twice.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str],
        *,
        notify: Notify,
        give_up: Notify,
        on_caught: Notify,
    ) -> None:
        self.name = name
        self._on_caught = on_caught
        self.calls: dict[int, asyncio.Future[Reply]] = {}
        self.late_s = 0.0  # its event loop, on average
        self._environment, self._notify, self._give_up = environment, notify, give_up
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: Frames | None = None
        self._opening = 0  # providers that it was told to open, and has not
        self._changed = asyncio.Event()  # some of what follows, or of what it has opened
        self._alive = False  # a process is there
        self._complaint: str | None = None  # about what it was told to open
        self._has_started = self._gone = False  # the first process was there; there is none any more
        self._sent_numbers = set[int]()  # of what the process was told once
        self._numbers = itertools.count()
        self._heard_s = time.monotonic()
        self._beats: deque[tuple[float, int, float]] = deque(maxlen=BEATS)  # when, calls ended, worst lag
        self._ended = self._ended_before = 0  # calls, of all processes; before this one
        self._deaths = self._in_vain = 0
        self._restarting: asyncio.Task[None] | None = None
        self._closing = False

    # ── process

    async def begin(self) -> None:
        """Start it; done when it is there.

        Raises:
            ConfigError: it is not, in time.
        """
        try:
            async with asyncio.timeout(THERE_WITHIN_S):
                await self._start()
                await self._until(lambda: self._alive or self._frames is None)
        except OSError as error:  # a timeout is one, without words
            why = str(error) or f"it was not ready within {THERE_WITHIN_S:.0f} s"
            raise ConfigError(f"worker {self.name} cannot be started: {why}. Set fewer `workers`") from None
        if not self._alive:
            raise ConfigError(f"worker {self.name} ended as it began ({await self._how()}). Set `workers: 0`")
        self._has_started = True

    async def wait_until_opened(self) -> None:
        """Wait until it has opened what it was told to, or has died of it.

        Raises:
            ConfigError: something is wrong with a key or an address.
        """
        await self._until(lambda: not self._opening or self._frames is None)
        if self._complaint is not None:
            raise ConfigError(self._complaint)

    async def end(self) -> None:
        """End it: what it does is given up."""
        self._closing = True
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        if self._frames is not None:
            self._frames.close()
        if (process := self._process) is not None:
            await asyncio.to_thread(_end, process)

    def kill(self) -> None:
        """Kill its process; another one takes its place."""
        self._heard_s = time.monotonic()  # it is not killed for the same silence again
        if self._process is not None:
            self._process.kill()

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _spawn(theirs, self._environment)
            except OSError:
                ours.close()
                raise
        self._beats.clear()
        self._sent_numbers.clear()
        self._heard_s, self._opening = time.monotonic(), 0
        frames = self._frames = Frames(self._take, self._died)
        await asyncio.get_running_loop().create_unix_connection(lambda: frames, sock=ours)

    def _died(self) -> None:
        """Take in that the process is gone, and what it was doing with it."""
        self._frames, self._alive, self.late_s = None, False, 0.0
        self._changed.set()
        if self._closing:
            return
        self._deaths += 1
        lost, self.calls = self.calls, {}
        in_vain = len(lost) >= self._ended - self._ended_before
        self._in_vain = self._in_vain + 1 if in_vain else 0
        self._ended_before = self._ended
        for call in lost.values():
            if not call.done():
                call.set_exception(LostCallError(f"worker {self.name} died during the call", self.name))
        if self._has_started:  # else `begin` tells it
            self._restarting = asyncio.create_task(self._restart(len(lost)))

    async def _restart(self, lost: int) -> None:
        try:
            calls = "1 call in flight is" if lost == 1 else f"{lost:,} calls in flight are"
            message = f"worker {self.name} died ({await self._how()}); {calls} lost"
            if self._in_vain >= IN_VAIN:
                self._leave(f"{message}. This happened {IN_VAIN} times in a row")
                return
            self._notify(f"{message}. Another one takes its place")
            await self._start()
        except Exception as error:  # whatever it is, calls wait for this worker
            self._leave(f"worker {self.name} cannot be started again: {error}")

    def _leave(self, why: str) -> None:
        """Start no other process."""
        self._gone = True
        self._changed.set()
        self._give_up(why)

    async def _how(self) -> str:
        """Return how the process ended."""
        code = 0 if self._process is None else await asyncio.to_thread(_end, self._process)
        names = {number.value: number.name for number in signal.Signals}
        return f"exit code {code}" if code >= 0 else f"signal {names.get(-code, -code)}"

    # ── calls

    def load(self) -> tuple[bool, int, int]:
        """Return the load: the less, the sooner it can make a call; of equals, the fewer it has made."""
        return not self._alive or self.silent_s > QUIET_S, len(self.calls), self._ended

    async def wait_until_up(self) -> None:
        """Wait until there is a process.

        Raises:
            LostCallError: there will be none any more: the call is not made.
        """
        await self._until(lambda: self._alive or self._gone)
        if not self._alive:
            raise LostCallError(f"worker {self.name} is gone", self.name, sent=False)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until something is true of it."""
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    def send_once(self, number: int, message: tuple[Any, ...]) -> None:
        """Tell its process something, under a number, if it does not know it."""
        if number not in self._sent_numbers and self._frames is not None:
            self._sent_numbers.add(number)
            self._opening += message[0] == "open"
            self._send(message)

    def tell_caught(self, server: str) -> None:
        """Tell it the name of a server that answers twice."""
        self._send(("caught", server))

    def _send(self, message: tuple[Any, ...]) -> None:
        if self._frames is not None:
            self._frames.send(message)

    async def call(self, *request: Any) -> Reply:
        """Have it make a call; what it is told of it, `Worker` reads.

        Raises:
            ProviderError, LostCallError: see `WorkerProvider.ask`.
        """
        number = next(self._numbers)
        ended: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.calls[number] = ended
        try:
            self._send(("ask", number, *request))
            return await ended
        except asyncio.CancelledError:
            self._send(("cancel", number))
            raise
        finally:
            self.calls.pop(number, None)

    def _take(self, message: tuple[Any, ...]) -> None:
        self._heard_s = time.monotonic()
        if message[0] == "opened":
            self._opening -= 1
            self._complaint = self._complaint or message[1]
            self._beats.clear()  # importing an SDK held it up, and no call
            self._changed.set()
            return
        if message[0] == "beat":
            _, self.late_s, worst_s = message
            self._beats.append((self._heard_s, self._ended, worst_s))
            self._alive = True
            self._changed.set()
            return
        if message[0] == "caught":
            self._on_caught(message[1])
            return
        _, number, how, what, lag_s = message
        self._ended += 1
        ended = self.calls.get(number)
        if ended is None or ended.done():
            return  # nobody waits for it any more
        if how == "reply":
            what.worker, what.loop_lag_s = self.name, lag_s
            ended.set_result(what)
            return
        error: Any = what
        if how == "fault":  # of the worker's own code: of the type that it was there, with its traceback
            name, traceback = what
            error = type(name, (Exception,), {})()
            error.add_note(traceback)
        error.worker, error.loop_lag_s = self.name, lag_s  # of a fault, too
        ended.set_exception(error)

    # ── state

    @property
    def silent_s(self) -> float:
        """For how long its process has said nothing; 0 where there is none."""
        return 0.0 if self._frames is None else time.monotonic() - self._heard_s

    def is_stopped(self) -> bool:
        """Return whether somebody stopped its process (SIGSTOP, a debugger), and lets it go on later."""
        if self._process is None:
            return False
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:  # another system
            return False
        return stat.rpartition(")")[2].split()[0] in "Tt"

    def counts(self) -> WorkerCounts:
        """Return how it stands."""
        first_s, first, _ = self._beats[0] if self._beats else (self._heard_s, self._ended, 0.0)
        seconds = time.monotonic() - first_s
        return WorkerCounts(
            name=self.name,
            pid=0 if self._process is None else self._process.pid,
            in_flight=len(self.calls),
            calls=self._ended,
            calls_per_s=(self._ended - first) / seconds if seconds > 0 else 0.0,
            lag_s=max([self.silent_s - BEAT_S, *(worst_s for *_, worst_s in self._beats), 0.0]),
            deaths=self._deaths,
        )


def withhold_keys(
    env: Mapping[str, str], *, keys: Collection[str] = (), named: Collection[str | None] = ()
) -> dict[str, str]:
    """Return an environment without the variables that hold keys.

    Args:
        env: the whole of it.
        keys: that no variable may hold.
        named: the variables of a sweep's own keys; those of known providers go, too.
    """
    secrets = [key for key in keys if len(key) >= SHORTEST_SECRET]
    of_keys = {*named, *(endpoint.key_env for endpoint in usable_endpoints().values())}
    return {
        name: value
        for name, value in env.items()
        if not (looks_secret(name) and not name.upper().endswith(PROXY))
        and name not in of_keys
        and not any(secret in value for secret in secrets)
    }


def _spawn(theirs: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # Not `python -m`, which would first look for libraries in the folder that it is started in.
    program = f"import sys; sys.path[:] = {sys.path!r}; from {worker.__name__} import main; main()"
    return subprocess.Popen(  # noqa: S603  our own module, no shell
        [sys.executable, "-P", "-c", program, str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # a Ctrl-C is for the run, which still waits for answers
    )


def _end(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a process whose socket is closed; one that goes on is killed."""
    try:
        return process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
