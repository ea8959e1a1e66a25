"""Serving: a server that listens for as long as it is needed, and the process around it."""

import asyncio
import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import orjson
from aiohttp import web

from asyncbench.errors import ConfigError
from asyncbench.simulator.answers import read_recordings, recordings_by_name
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.server import Server
from asyncbench.simulator.settings import Settings

HOST = "127.0.0.1"  # no other machine reaches it
SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 4096  # connections that may arrive at once
GRACE_S = 0.1  # for answers on their way out when the server stops


@asynccontextmanager
async def listening(settings: Settings, server_type: type[Server] = Server) -> AsyncIterator[str]:
    """Serve on this event loop for as long as the block lasts; yields the base URL.

    Raises:
        ConfigError: the port is taken, or what is to be replayed is not a results folder with trials.
        ProblemSetError: a problem set cannot be read.
        StoreError: a results folder cannot be read.
    """
    server = server_type(
        settings, Questions(settings.problems), recordings_by_name(read_recordings(settings.replay))
    )
    # A client that leaves cancels its call: a call without a client is not in flight.
    http = web.Server(server, handler_cancellation=True, access_log=None)
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(http, HOST, settings.port, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"simulator: cannot listen on {HOST}:{settings.port}: {error}; "
            "choose another port, or 0 for a free one"
        ) from error
    try:
        yield f"http://{HOST}:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        await http.shutdown(GRACE_S)
        await server.aclose()


async def serve(settings: Settings, *, until_stdin_closes: bool = False) -> None:
    """Serve until SIGTERM or SIGINT and, if asked, until standard input ends.

    A process whose standard input is a pipe from its parent so dies with it, even when the parent is
    killed. When ready, one line of JSON goes to standard output: `simulated`, `url`, `pid`. Raises as
    `listening` does.
    """
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)

    def wait_for_end_of_stdin() -> None:
        # Not sys.stdin: a thread that waits inside it makes the interpreter's exit fail.
        while os.read(0, 4096):
            pass
        with suppress(RuntimeError):  # the loop has ended already: a signal was faster
            loop.call_soon_threadsafe(stop.set)

    if until_stdin_closes:
        threading.Thread(target=wait_for_end_of_stdin, daemon=True).start()
    async with listening(settings) as url:
        gc.freeze()  # millions of known answers would be walked again and again
        line = orjson.dumps({"simulated": True, "url": url, "pid": os.getpid()})
        sys.stdout.write(f"{line.decode()}\n")
        sys.stdout.flush()
        await stop.wait()
