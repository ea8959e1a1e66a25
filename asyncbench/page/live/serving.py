"""The server of `asyncbench view`: files of the page, blocks, trials, and how far a run is."""

import asyncio
import logging
import secrets
import signal
import socket
import time
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from asyncbench.analysis.choosing import Chosen, Folders, chosen
from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.page.blocks import BLOCKS, specs_block
from asyncbench.page.live.counting import EVERY_S, LESS_OFTEN, LiveCounts
from asyncbench.page.live.snapshots import LiveSnapshot, NotCountedError
from asyncbench.page.live.sweeps import LiveSweeps
from asyncbench.page.live.trials import parsed
from asyncbench.page.writing import BELOW, LISTED, LIVE_POLICY, served_files
from asyncbench.store.manifest import sweeps_below
from asyncbench.store.rows import encode_json
from asyncbench.store.snapshot import MovedError
from asyncbench.tables.screen import safe

# ── access ───────────────────────────────────────────────────────────────────────────────────────


_HEADERS: Final = {
    "Content-Security-Policy": LIVE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STRANGER: Final = "Open the address that `asyncbench view` printed in its terminal.\n"
_USED: Final = "This address was opened before, and opens once. Run `asyncbench view` again for another.\n"
# No redirect: a browser that a file led here sends the strict cookie only where a page of ours leads.
_REDIRECT: Final = '<!doctype html><meta http-equiv="refresh" content="0; url=/">\n'
_LOOPBACK: Final = ("127.0.0.1", "localhost")


class Guard:
    """The secrets of a server, and its check of each request."""

    def __init__(self, port: int) -> None:
        self._token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._used = False
        self._cookie = f"asyncbench-{port}"  # ports share their cookies
        self._hosts = {f"{name}:{port}" for name in _LOOPBACK}
        self.address = f"http://{_LOOPBACK[0]}:{port}/?token={self._token}"

    async def refusal(self, request: web.Request) -> web.StreamResponse | None:
        """Return the refusal of a request, or None if it may be answered.

        A name that leads here from outside (DNS rebinding) is no host of ours. The token in the address works
        once: it leaves the address, and the browser that opened it has a cookie.
        """
        if request.headers.getall("Host", []) not in [[host] for host in self._hosts]:
            return web.Response(status=403, text="This server answers to 127.0.0.1 and localhost alone.\n")
        if request.method != "GET":
            return web.Response(status=405, text="This server only shows.\n", headers={"Allow": "GET"})
        has_cookie = _equal(request.cookies.get(self._cookie, ""), self._session)
        if request.path == "/" and _equal(request.query.get("token", ""), self._token):
            if self._used and not has_cookie:
                return web.Response(status=403, text=_USED)
            self._used = True
            welcome = web.Response(text=_REDIRECT, content_type="text/html")
            welcome.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
            return welcome
        return None if has_cookie else web.Response(status=403, text=_STRANGER)


def _equal(token: str, ours: str) -> bool:
    # A header may hold any bytes, which aiohttp reads as surrogates.
    return secrets.compare_digest(token.encode(errors="surrogateescape"), ours.encode())


def guarded(guard: Guard) -> Middleware:
    """Return a middleware: what the guard lets through is handled, errors are words, and all have headers."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await guard.refusal(request) or await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
        except ConfigError as error:
            response = _refused(400, str(error))
        except MovedError:
            response = _refused(503, "The folder was being rewritten. Ask again.")
        except AsyncbenchError as error:
            response = _refused(500, str(error))
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answer


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


HOST: Final = "127.0.0.1"
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
WAITED_S: Final = 1.0  # for a block, before a page hears that it is being counted
ASKED_FOR: Final = "private, no-cache"  # a browser keeps it, and asks each time whether it still holds
GRACE_S: Final = 0.1  # for answers on their way out when the server ends

# What strangers send is refused, and is no traceback in a terminal.
_NO_LOG: Final = logging.Logger("asyncbench.view", level=logging.CRITICAL + 1)

_SWEEP: Final = "/sweep/{sweep}"  # how the addresses of a sweep begin, below the list of several

T = TypeVar("T")


class LivePage:
    """The routes of a page and their answers.

    Args:
        counts_of: returns the counts of the folders that a request is about.
        prefix: how its addresses begin.
    """

    def __init__(self, counts_of: Callable[[web.Request], Awaitable[LiveCounts]], prefix: str = "") -> None:
        self._counts_of, self._prefix = counts_of, prefix
        self._asking = ThreadPoolExecutor(1, "asking")  # one after the other: each takes all cores

    def routes(self) -> list[web.RouteDef]:
        """Return the route of each address, but for those of files."""
        answers = {
            "/blocks/{name}": self._block,
            "/trials": self._trials,
            "/trial/{id:.+}": self._trial,
            "/question/{key:.+}": self._question,
            "/now": self._now,
        }
        return [web.get(self._prefix + path, answer, allow_head=False) for path, answer in answers.items()]

    def close(self) -> None:
        """End its thread."""
        self._asking.shutdown(wait=False, cancel_futures=True)

    async def _block(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == "specs":  # the same for all folders
            return _json(specs_block())
        if name not in BLOCKS:
            return _refused(404, f"There is no block {name}.")
        counting = await self._counts_of(request)
        block = await asyncio.to_thread(counting.block, name, WAITED_S)
        if isinstance(block, float):
            return _json({"counting": block}, status=202)
        if isinstance(block, AsyncbenchError):
            return _refused(500, str(block))
        tag = f'"{block.tag}"'
        headers = {"ETag": tag, "Cache-Control": ASKED_FOR}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        headers["Content-Encoding"] = "gzip"
        return web.Response(body=block.content, headers=headers, content_type="application/json")

    async def _trials(self, request: web.Request) -> web.Response:
        query = parsed(request.query)
        counting = await self._counts_of(request)
        try:
            return _json(await self._query(counting, lambda snapshot: snapshot.trials(query)))
        except NotCountedError as error:
            if counting.trouble:  # nobody counts it soon
                raise AsyncbenchError(counting.trouble) from error
            return _json({"counting": min(counting.shares().values(), default=1.0)}, status=202)

    async def _trial(self, request: web.Request) -> web.Response:
        trial_id = request.match_info["id"]
        counting = await self._counts_of(request)
        trial = await self._query(counting, lambda snapshot: snapshot.trial(trial_id))
        return _json(trial) if trial is not None else _refused(404, "There is no trial of this id.")

    async def _question(self, request: web.Request) -> web.Response:
        key, entrants = request.match_info["key"], parsed(request.query).entrants
        counting = await self._counts_of(request)
        return _json(await self._query(counting, lambda snapshot: snapshot.question(key, entrants)))

    async def _now(self, request: web.Request) -> web.Response:
        counting = await self._counts_of(request)
        state = {
            "version": str(counting.version),
            "counting": counting.shares(),
            "trouble": counting.trouble,
            "current": counting.current,
            "clock": time.time(),
        }
        return _json(counting.progress | state)

    async def _query(self, counting: LiveCounts, ask: Callable[[LiveSnapshot], T]) -> T:
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._asking, lambda: ask(counting.ready()))
        except MovedError:
            counting.recount()
            raise


async def _send(name: str, _: web.Request) -> web.Response:
    content_type, content = served_files()[name]
    return web.Response(body=content, content_type=content_type, charset="utf-8")


def _file_routes(**pages: str) -> list[web.RouteDef]:
    """Return the routes of scripts and styles, and of pages: the address of each by its file."""
    files = {path: path for path in served_files() if path.endswith((".js", ".css"))} | pages
    return [web.get(path, partial(_send, name), allow_head=False) for path, name in files.items()]


@contextmanager
def _one_page(folders: Chosen, every_s: float, less_often: float) -> Iterator[list[web.RouteDef]]:
    """Count results folders as long as the block lasts; yields the routes of their page."""
    counting = LiveCounts(folders, every_s, less_often)

    async def counts_of(_: web.Request) -> LiveCounts:
        return counting

    with counting.run(), closing(LivePage(counts_of)) as page:
        yield [*_file_routes(**{"/": "/"}), *page.routes()]


@contextmanager
def _sweep_pages(above: Path, every_s: float, less_often: float) -> Iterator[list[web.RouteDef]]:
    """Yield the routes of the list of sweeps, and of the page of each, which is counted when asked for."""
    sweeps = LiveSweeps(above=above, every_s=every_s, less_often=less_often)

    async def counts_of(request: web.Request) -> LiveCounts:
        counts = await asyncio.to_thread(sweeps.counts_of, request.match_info["sweep"])
        if counts is None:
            raise web.HTTPNotFound(reason="There is no such sweep.")
        return counts

    async def listed(_: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(sweeps.listed))

    with closing(sweeps), closing(LivePage(counts_of, _SWEEP)) as page:
        files = _file_routes(**{"/": LISTED, f"{_SWEEP}/": BELOW})
        yield [*files, web.get("/list.json", listed, allow_head=False), *page.routes()]


def _json(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=encode_json(value), status=status, content_type="application/json")


def _refused(status: int, words: str) -> web.Response:
    return web.Response(status=status, text=f"{safe(words, most=None)}\n")


# ── start and end ────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def live_page(
    folders: Chosen, *, port: int = 0, every_s: float = EVERY_S, less_often: float = LESS_OFTEN
) -> AsyncIterator[str]:
    """Serve the page of results folders for as long as the block lasts; yields its first address.

    Args:
        folders: the results folders, and which trials count; or one folder above several sweeps.
        port: the port to listen on; 0: a free one.
        every_s: seconds between two checks of the folders.
        less_often: they are counted again after this many times as long as counting them took.

    Raises:
        ConfigError: a folder is not a results folder, a filter leaves nothing, or the port is taken.
        StoreError: a folder cannot be read.
    """
    above = folders.paths[0] if folders.plain and sweeps_below(folders.paths[0]) else None
    pages = _one_page(folders, every_s, less_often)
    with pages if above is None else _sweep_pages(above, every_s, less_often) as routes:
        try:
            listener = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(
                f"cannot listen on port {port}: {why}. Choose another --port, or none"
            ) from error
        guard = Guard(listener.getsockname()[1])
        app = web.Application(middlewares=[guarded(guard)])
        app.add_routes(routes)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, logger=_NO_LOG, shutdown_timeout=GRACE_S
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield guard.address
        finally:
            await runner.cleanup()
            listener.close()


async def serve_view(
    folder: Folders,
    *,
    port: int = 0,
    open_browser: bool = True,
    suite: str | None = None,
    task: str | None = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
) -> None:
    """Serve the page of a results folder to a browser on this machine, until Ctrl-C or until it is cancelled.

        asyncio.run(ab.serve_view("results/overnight"))

    A running sweep refreshes by itself. Your results stay as they are. Of a folder above several sweeps, the
    page lists them, and a click opens one.

    Args:
        folder: the results folder, or a list of several.
        port: the port to listen on. [a free one]
        open_browser: open the page in your browser. Its address is printed in any case. [True]
        suite: only trials of this suite. [all]
        task: only trials of this task. [all]
        models: only trials of these aliases. [all]
        where: only trials for which this SQL condition over the columns of `trials` is true. [all]

    Returns:
        Nothing, once the server has ended.

    Raises:
        ConfigError: The folder is not a results folder, a filter leaves nothing, or the port is taken.
        StoreError: The folder cannot be read.
    """
    folders = chosen(folder, suite=suite, task=task, models=models, where=where)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    with ExitStack() as until_ended:
        async with live_page(folders, port=port) as address:
            print(f"{folders}: {address}\nCtrl-C ends the server.", flush=True)  # noqa: T201  what it is for
            until_ended.enter_context(_signals(stop.set))
            if open_browser:
                redirect = until_ended.enter_context(_redirect_to(address))
                await loop.run_in_executor(None, webbrowser.open, redirect)
            await stop.wait()


@contextmanager
def _redirect_to(address: str) -> Iterator[str]:
    """Yield the address of a file that leads to another, and that this user alone can read.

    Everybody on the machine sees the words with which a browser is started.
    """
    with NamedTemporaryFile("w", prefix="asyncbench-", suffix=".html") as file:  # mode 0600
        file.write(f'<meta http-equiv="refresh" content="0; url={address}">\n')
        file.flush()
        yield Path(file.name).as_uri()


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let signals end the server, and nothing after it."""
    loop, before = asyncio.get_running_loop(), {number: signal.getsignal(number) for number in SIGNALS}
    try:
        with suppress(ValueError, RuntimeError):  # in a thread that gets no signals
            for number in SIGNALS:
                loop.add_signal_handler(number, stop)
        yield
    finally:
        for number, handler in before.items():
            if loop.remove_signal_handler(number):
                signal.signal(number, handler or signal.SIG_DFL)
