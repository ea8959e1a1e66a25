"""Start a server, and stop it at the end of a block."""

import asyncio
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from asyncbench.engine.scheduler import AnyLane
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import ConfigError
from asyncbench.files import make_folder, storing
from asyncbench.lanes.load.searching import RateSearch
from asyncbench.lanes.load.steps import to_measure
from asyncbench.planning.modes import by_server
from asyncbench.records import Model, Serve
from asyncbench.run import server_keeper as keeper
from asyncbench.run.lanes import is_unfinished, open_trials, steps_of
from asyncbench.run.refusals import SERVER_ENDED
from asyncbench.run.state import RunState
from asyncbench.tables.numbers import days
from asyncbench.tables.screen import safe_note

KEEPER: Final = keeper.__file__
READY: Final = "ready"
FOR_GOOD: Final = frozenset({"status 401", "status 403"})  # waiting does not help
POLL_EVERY_S: Final = 0.25
ANSWER_WITHIN_S: Final = 5.0  # of the address that tells whether a server is ready
STOPS_WITHIN_S: Final = 20.0  # after SIGTERM; then it is killed
TAIL: Final = 10  # lines of a log that a message shows
TAIL_BYTES: Final = 20_000  # of it that are read for them


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedServer:
    """A server that was started."""

    serve: Serve
    aliases: Sequence[str]  # of the models that it answers
    log: Path
    log_from: int  # bytes of it that earlier servers wrote
    process: subprocess.Popen[bytes]  # its keeper, which has its exit code; asyncio would kill it

    async def ended(self) -> str:
        """Wait until it has ended, and return how."""
        while (code := self.process.poll()) is None:  # noqa: ASYNC110  nobody tells when a process ends
            await asyncio.sleep(POLL_EVERY_S)
        if code < 0:
            return f"was killed (signal {-code})"
        return f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"

    def last_lines(self) -> list[str]:
        """Return the last lines that it wrote, fit for a terminal."""
        with self.log.open("rb") as file:
            file.seek(max(self.log_from, self.log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return [f"  {safe_note(line)}" for line in deque(filter(str.strip, lines), TAIL)]


@asynccontextmanager
async def running_servers(
    models: Iterable[Model], folder: Path, *, notify: Callable[[str], None], within_s: float | None = None
) -> AsyncIterator[list[StartedServer]]:
    """Run the servers that models name; the body begins when all of them are ready.

    Args:
        folder: gets a file for each server, with what it writes.
        notify: called with what is waited for.
        within_s: the most seconds to wait, whatever the servers say.

    Raises:
        ConfigError: one cannot be started, ends, is not ready in time, or its address has another server.
    """
    wanted, servers = by_server(models), list[StartedServer]()
    connector = aiohttp.TCPConnector(
        force_close=True
    )  # a server that counts its connections sees none of ours
    async with AsyncExitStack() as stack:
        async with aiohttp.ClientSession(connector=connector) as session:
            for serve, aliases in wanted.items():
                await _refuse_other(session, serve, aliases)
            for serve, aliases in wanted.items():
                servers.append(_started(serve, aliases, folder))
                stack.push_async_callback(_stop, servers[-1])
                notify(f"{', '.join(aliases)}: waiting for the server. It writes to {servers[-1].log}")
            try:
                async with asyncio.TaskGroup() as tasks:
                    for server in servers:
                        tasks.create_task(_wait_until_ready(server, session, notify, within_s))
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        yield servers


async def _refuse_other(session: aiohttp.ClientSession, serve: Serve, aliases: Sequence[str]) -> None:
    """Refuse a server that is there already: nobody knows with which command it was started."""
    if (answer := await _seen_at(session, serve.ready)) is not None:
        raise ConfigError(
            f"{', '.join(aliases)}: another server is at {serve.ready} already ({answer}), and may not be "
            "what `serve` starts. Stop it. Or remove `serve`, to ask it as it is."
        )


def _started(serve: Serve, aliases: Sequence[str], folder: Path) -> StartedServer:
    place = urlsplit(serve.ready)
    log = folder / f"{place.hostname}-{place.port or place.scheme}.log"
    with storing(log):
        make_folder(folder)
        with log.open("ab") as file:
            file.write(f"\nasyncbench: {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n".encode())
            file.flush()
            begins_at = file.tell()  # the server shares this position
            process = subprocess.Popen(  # noqa: S603  the sweep's own command, without a shell
                [sys.executable, "-I", "-S", KEEPER, str(STOPS_WITHIN_S), *serve.command],
                stdin=subprocess.PIPE,  # held open, never written to: its end is the server's
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for the run, which may still need answers
            )
            return StartedServer(serve=serve, aliases=aliases, log=log, log_from=begins_at, process=process)


async def _wait_until_ready(
    server: StartedServer, session: aiohttp.ClientSession, notify: Callable[[str], None], most_s: float | None
) -> None:
    serve, began_s = server.serve, time.monotonic()
    within_s = serve.within if most_s is None else min(serve.within, most_s)
    ended, seen = asyncio.ensure_future(server.ended()), "no answer"
    try:
        async with asyncio.timeout(within_s):
            while not ended.done():
                seen = await _seen_at(session, serve.ready) or "nothing listens there"
                if seen == READY:
                    took_s = time.monotonic() - began_s
                    notify(f"{', '.join(server.aliases)}: the server is ready after {days(took_s)}")
                    return
                if seen in FOR_GOOD:
                    message = (
                        f"needs a key at {serve.ready} ({seen}). Name an address in `ready` that needs none"
                    )
                    raise _failure(server, message)
                await asyncio.wait({ended}, timeout=POLL_EVERY_S)
    except TimeoutError:
        late = (
            f"was not ready within {days(within_s)} ({serve.ready}: {seen}). Raise `within`, or see the log"
        )
        raise _failure(server, late) from None
    finally:
        ended.cancel()
    raise _failure(server, f"{ended.result()} before it was ready. See the log")


async def _seen_at(session: aiohttp.ClientSession, address: str) -> str | None:
    """Return what is seen at an address, `READY` for a status of 2xx; None: nothing listens there."""
    within = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S, sock_connect=ANSWER_WITHIN_S / 2)
    try:
        async with session.get(address, timeout=within) as answer:
            return READY if 200 <= answer.status < 300 else f"status {answer.status}"
    except aiohttp.ClientSSLError as error:
        return f"no answer ({type(error).__name__})"
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        return None
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return f"no answer ({type(error).__name__})"


async def _stop(server: StartedServer) -> None:
    """Have a server stopped, and wait for it; whoever does not wait leaves the rest to its keeper."""
    if server.process.stdin is not None:
        server.process.stdin.close()
    await server.ended()


def _failure(server: StartedServer, message: str) -> ConfigError:
    tail = "\n".join(["It ends:", *server.last_lines()])
    return ConfigError(f"{', '.join(server.aliases)}: the server {message} ({server.log}). {tail}")


# ── Servers that a run starts, where trials of their models are open


LOGS: Final = "servers"  # of a results folder: what servers wrote


async def start_servers(run: RunState, stack: AsyncExitStack) -> list[StartedServer]:
    """Start the servers that are needed, and wait until they are ready; `stack` stops them.

    Raises:
        ConfigError: one of them is not to be had. Nothing was asked.
    """
    began_s = time.monotonic()
    models = [model for model in run.models if model.serve is not None and _is_asked(run, model)]
    servers = await stack.enter_async_context(
        running_servers(models, run.store.folder / LOGS, notify=run.screen.say, within_s=run.within_s)
    )
    if run.within_s is not None:
        run.within_s = max(0.0, run.within_s - (time.monotonic() - began_s))
    return servers


def _is_asked(run: RunState, model: Model) -> bool:
    """Return whether anything is left to ask of a model, as far as can be told now."""
    options, load = run.options, run.sweep.load
    if options.ends:
        return False
    if options.load is not None and load is not None:
        before = steps_of(run, model, load)
        if load.find is not None:
            return not RateSearch(load=load, find=load.find, before=before).is_over
        return any(True for _ in to_measure(load, run.sweep.repeats, before))
    return next(open_trials(run, model, None, Counters()), None) is not None


async def watch(run: RunState, server: StartedServer, lanes: Iterable[AnyLane]) -> None:
    """Give up the models of a server that ends while they are asked; without it no call can succeed."""
    how = await server.ended()
    unfinished = [
        (lane, client)
        for lane in lanes
        for client in lane.clients
        if client.model.alias in server.aliases and is_unfinished(lane, client)
    ]
    for lane, client in unfinished:
        client.suspend(f"{SERVER_ENDED}: the server that the run started {how}; {server.log}")
        if all(other.counters.over for other in lane.clients):
            lane.stop()
    if unfinished:
        run.screen.say("The log of the server ends:")
        for line in server.last_lines():
            run.screen.say(line)
