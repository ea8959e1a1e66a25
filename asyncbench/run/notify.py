"""Messages about a run, to a command or a webhook; the run does not wait for them."""

import asyncio
import os
import platform
import shlex
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult

from asyncbench.config.run_entries import ADDRESS_RULE, News, Notify, is_address
from asyncbench.config.sweep import Sweep
from asyncbench.engine.telemetry import Counters
from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.lanes.batches.status import PartStatus
from asyncbench.providers.environment import Proxy, proxy_of
from asyncbench.providers.functions import call_in_thread
from asyncbench.providers.workers.process import PROXY, withhold_keys
from asyncbench.records import Model
from asyncbench.run.costs import costs_text, phrases
from asyncbench.run.interrupts import Death, catching_interrupts, counts_so_far
from asyncbench.run.options import RunOptions
from asyncbench.run.programs import run_program
from asyncbench.run.summary import Exit, Summary, counts_of, done_text
from asyncbench.tables.numbers import number_of, percent

# ── Channels: a program that gets the message, or an address that it is posted to

Message = Mapping[str, object]
Send = Callable[[Message], Awaitable[str | None]]  # returns why nobody was told; None: somebody was


def channels_of(notify: Notify, models: Iterable[Model], env: Mapping[str, str]) -> dict[str, Send]:
    """Return the channels of a sweep, each by the name that messages about its failure use.

    Raises:
        ConfigError: the program or the address is not there. No address or command is repeated.
    """
    channels: dict[str, Send] = {}
    if notify.command:
        if shutil.which(notify.command[0]) is None:
            raise ConfigError("notify.command: its first word is not a program on this computer")

        # The command gets no keys, and no passwords of proxies. A proxy without one stays: it may be needed.
        keys = {notify.webhook_env, *(name for model in models for name in model.variables)}
        environment = {
            name: value
            for name, value in withhold_keys(os.environ, named=keys).items()
            if not (name.upper().endswith(PROXY) and "@" in value)
        }
        channels["the command"] = partial(_run, notify.command, environment)

    address = notify.address(env)
    if address is not None and is_address(address):
        channels[f"the webhook at {urlsplit(address).hostname}"] = partial(_post, address, proxy_of(address))
    elif notify.webhook_env is not None:
        problem = "is not set" if address is None else f"does not hold {ADDRESS_RULE}"
        raise ConfigError(f"notify.webhook_env: the environment variable {notify.webhook_env} {problem}")
    elif address is not None:
        raise ConfigError(f"notify.webhook: not {ADDRESS_RULE}")
    return channels


async def _run(command: Sequence[str], inherited: Mapping[str, str], message: Message) -> str | None:
    """Start a program, with the message on its standard input; it gets no key, and prints nowhere."""
    # What is one word of the message is a variable, too: ASYNCBENCH_EVENT, ASYNCBENCH_TEXT, …
    variables = {
        f"ASYNCBENCH_{name.upper()}": str(value).lower()
        if isinstance(value, bool)
        else str(value).replace("\0", "")
        for name, value in message.items()
        if isinstance(value, str | int | float)
    }
    body = orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    try:
        code, _ = await run_program(command, body, {**inherited, **variables})
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    return f"ended with exit code {code}" if code else None


async def _post(address: str, proxy: Proxy | None, message: Message) -> str | None:
    """Post a message as JSON; Slack and others show its `text`, Discord its `content`."""
    body = orjson.dumps({**message, "content": message["text"], "allowed_mentions": {"parse": []}})
    headers = {"content-type": "application/json"}
    connector = aiohttp.TCPConnector(resolver=_Resolver())
    try:
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(
                address, data=body, headers=headers, allow_redirects=False, **proxy.arguments if proxy else {}
            ) as response,
        ):
            return None if response.status < 300 else f"answered with HTTP {response.status}"
    except (aiohttp.ClientError, OSError, ValueError) as error:  # their words may hold the address
        return f"cannot be reached ({type(error).__name__})"


class _Resolver(AbstractResolver):
    """Looks each name up in a daemon thread of its own.

    The event loop waits for its own threads at its end, and writes results with them. A name server may be
    silent for minutes.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return await call_in_thread(partial(_addresses, host, port, family), name=f"notify {host}")

    async def close(self) -> None:
        """Leave a thread that still waits alone: it ends with the process, and changes nothing."""


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """Return the addresses of a host in the form of aiohttp; this takes as long as its name servers."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return [
        ResolveResult(
            hostname=host,
            # As a number again, with the interface that a link-local address needs.
            host=socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0],
            port=port,
            family=address_family,
            proto=proto,
            flags=numeric,
        )
        for address_family, _, proto, _, address in infos
    ]


# ── Messages

LONGEST_TEXT: Final = 1900  # characters; Discord refuses more than 2,000
LONGEST_REASON: Final = 300  # of what a server said
_SHOWN_MODELS: Final = 12
_ENDS: Final = {
    Exit.COMPLETE: "complete",
    Exit.USAGE: "refused",
    Exit.UNFINISHED: "not complete: trials failed or a model stopped",
    Exit.BUDGET: "out of budget",
    Exit.STORAGE: "results could not be written",
    Exit.DEADLINE: "stopped by its deadline",
    Exit.INTERRUPTED: "interrupted",
}
# To chat services these begin a mention of everybody, and a server may have said them.
_DISARMED: Final = str.maketrans({"<": "‹", ">": "›", "@": "(at)"})


@dataclass(slots=True, kw_only=True)
class Notifier:
    """Sends the news of one run, each once; use `notifier_of`.

    Messages are sent beside the run. If one cannot be sent, the screen says so once and the run goes on.
    """

    sweep: Sweep
    options: RunOptions
    simulated: bool
    channels: Mapping[str, Send]  # by the name under which one that fails is said
    on_failure: Callable[[str], None]
    ready: bool = False  # what the command asks for was accepted: it may be given again to go on
    summary: Summary | None = None  # of the run, once it has one
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _given_up: bool = False

    @asynccontextmanager
    async def until_the_end(self) -> AsyncIterator[None]:
        """Tell how the body ends, and wait for the messages: no longer than one may take.

        If the body is cancelled, no message is sent. Ctrl-C while messages are sent gives up the messages and
        changes nothing about the run, which has ended.
        """
        try:
            yield
        except AsyncbenchError as error:
            self._tell_end(Exit.STORAGE if isinstance(error, StoreError) else Exit.USAGE, error)
            raise
        except (Exception, BaseExceptionGroup) as error:
            # A bug is told at once; its words stay here, for they might hold anything.
            kind, way_on = type(error).__name__, self._way_on()
            lines = [f"crashed: {kind}, a bug of asyncbench. Everything answered is saved."]
            lines += [f"to continue: {way_on}"] if way_on else []
            self._tell("crashed", lines, exit=Exit.BUG.value, error=kind, go_on=way_on)
            raise
        else:
            with catching_interrupts(self._give_up):
                left_open = await self._count_left_open()
            self._tell_end(Exit.COMPLETE if self.summary is None else self.summary.exit, left_open=left_open)
        finally:
            if self._sending:
                with catching_interrupts(self._give_up):
                    await asyncio.wait(self._sending)

    def died(self, death: Death) -> None:
        """Tell that the run before this one never ended."""
        written = f"; it last wrote at {death.written_at}" if death.written_at else ""
        lines = [f"the run that began at {death.began_at} was killed{written}. This run continues it."]
        lines += _shortened(
            f"{alias}: {counts['done']:,}/{counts['planned']:,} done, {counts['open']:,} left, "
            f"{counts['in_flight']:,} calls in flight"
            for alias, counts in death.models.items()
        )
        fields = {"began_at": death.began_at, "written_at": death.written_at, "models": death.models}
        self._tell("crashed", lines, **fields, go_on=None)  # the run that tells it goes on

    def suspended(self, alias: str, reason: str) -> None:
        """Tell that nothing more is asked of a model until the next run."""
        plain_reason, way_on = _plain(reason), self._way_on()
        lines = [f"{alias} stopped ({plain_reason}); the other models go on"]
        if way_on is not None:
            lines.append(f"fix it; after this run: {way_on}")
        self._tell("suspended", lines, model=alias, reason=plain_reason, go_on=way_on)

    def batches(self, what: str, lines: Sequence[str], parts: Sequence[PartStatus]) -> None:
        """Tell the news of batches; `what` is sent, ended, doubt or deleted_soon."""
        way_on = self._way_on()
        sentences = [*lines, *[f"to collect: {way_on}"] * (way_on is not None)]
        entries = [
            {"batch_id": batch_part.batch_id, "part": batch_part.part, "trials": batch_part.trials}
            for batch_part in parts
        ]
        self._tell("batches", sentences, what=what, batches=entries, go_on=way_on)

    def _tell_end(
        self, code: Exit, error: AsyncbenchError | None = None, *, left_open: int | None = None
    ) -> None:
        """Tell how the run ended; `left_open`: trials that the plan still has, None: unknown."""
        models, limit = {} if self.summary is None else self.summary.models, self.options.limit
        is_limited = limit is not None and left_open != 0
        why = f"{_ENDS[code]} up to the limit" if is_limited and code is Exit.COMPLETE else _ENDS[code]
        lines = [f"finished, {why} (exit code {code.value})"]
        if is_limited and limit is not None and left_open is not None:
            lines.append(
                f"limit: {number_of(limit, 'problem')} for each model; {left_open:,} trials are left"
            )
        if error is not None:
            lines.append(_plain(str(error)))
        way_on = None if code is Exit.COMPLETE else self._way_on(retry=code is Exit.UNFINISHED)
        if way_on is not None:
            lines.append(f"to continue: {way_on}")
        lines += _shortened(_sentence(alias, counters) for alias, counters in models.items())
        fields = {
            "exit": code.value,
            "why": why,
            "limit": limit,
            "left_open": left_open,
            "skipped": sum(counters.skipped for counters in models.values()),
            "go_on": way_on,
            "seconds": None if self.summary is None else round(self.summary.seconds, 3),
            "models": {
                alias: counts_of(counters)
                | {
                    "closed": counters.outcomes.total(),
                    "accuracy": counters.accuracy,  # of what this run closed
                    "suspended": None if counters.suspended is None else _plain(counters.suspended),
                }
                for alias, counters in models.items()
            },
        }
        self._tell("finished", [*lines, f"results in {self.sweep.out}"], **fields)

    async def _count_left_open(self) -> int | None:
        """Return how many trials of the asked models the plan has left open, or None if that is unknown."""
        if self.summary is None or not self._wants("finished"):
            return None
        models_asked = self.summary.models
        if self.options.limit is None:
            return sum(counters.open for counters in models_asked.values())
        try:
            _, models = await asyncio.to_thread(counts_so_far, self.sweep.out, self.sweep.stop_when)
        except AsyncbenchError:
            return None
        return sum(models[alias]["open"] for alias in models_asked if alias in models)

    def _way_on(self, *, retry: bool = False) -> str | None:
        """Return a command that continues the run from any directory, or None if it would be refused again.

        Args:
            retry: it also asks what failed.
        """
        if not self.ready:
            return None
        models = {} if self.summary is None else self.summary.models
        command = self.options.command(self.sweep) if self.summary is None else self.summary.command
        if retry and "--retry" not in command and any(counters.failed for counters in models.values()):
            command += " --retry failed"
        try:
            return f"cd {shlex.quote(os.getcwd())} && {command}"  # where the sweep's paths begin
        except OSError:  # it was removed
            return command

    def _wants(self, event: News) -> bool:
        return self.sweep.notify is not None and event in self.sweep.notify.on and not self._given_up

    def _tell(self, event: News, lines: Sequence[str], **fields: object) -> None:
        """Send a message on every channel, if this is wanted; return at once."""
        if self.sweep.notify is None or not self._wants(event):
            return
        file, host = self.sweep.file and str(self.sweep.file.absolute()), platform.node()
        where = f"sweep file {file}, on {host}" if file else f"no sweep file, on {host}"
        text = "\n".join([f"{self.sweep.name}: {lines[0]}", where, *lines[1:]])
        message = {
            "event": event,
            "text": _cut("SIMULATED " * self.simulated + text, LONGEST_TEXT),
            "sweep": self.sweep.name,
            "file": file,
            "host": host,
            "out": str(self.sweep.out),
            "simulated": self.simulated,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **fields,
        }
        for name, send in self.channels.items():
            sending = self._send(name, send, message, self.sweep.notify.timeout_s)
            self._sending.add(asyncio.create_task(sending, name=f"notify {name}"))

    async def _send(self, name: str, send: Send, message: Message, timeout_s: float) -> None:
        """Send a message on one channel; the first time that it fails, the screen says so."""
        try:
            async with asyncio.timeout(timeout_s):
                why = await send(message)
        except TimeoutError:
            why = f"took longer than {timeout_s:g} s"
        if why is not None and name not in self._failed:
            self._failed.add(name)
            self.on_failure(f"notify: {name}: {why}. The run goes on.")

    def _give_up(self) -> None:
        if not self._given_up:
            self._given_up = True
            self.on_failure("notify: interrupted; messages not sent yet are dropped")
        for sending in self._sending:
            sending.cancel()


def notifier_of(
    sweep: Sweep,
    models: Sequence[Model],
    env: Mapping[str, str],
    on_failure: Callable[[str], None],
    options: RunOptions,
) -> Notifier:
    """Return the notifier of a sweep; `on_failure` is called once for each channel that fails.

    Raises:
        ConfigError: the program or the address is not there. No address or command is repeated.
    """
    simulated = any(model.simulated for model in models)
    channels = {} if sweep.notify is None else channels_of(sweep.notify, sweep.models, env)
    return Notifier(
        sweep=sweep, options=options, simulated=simulated, channels=channels, on_failure=on_failure
    )


def _sentence(alias: str, counters: Counters) -> str:
    """Return the figures of one model on one line."""
    now = " this run" if counters.done_before else ""
    return phrases(
        {
            f"{alias}: {done_text(counters)}": True,
            f"{counters.skipped:,} skipped (stop_when)": counters.skipped,
            f"accuracy {percent(counters.accuracy or 0)}{now}": counters.accuracy is not None,
            f"{counters.failed:,} failed": counters.failed,
            costs_text(counters): counters.attempts,
            f"STOPPED ({(counters.suspended or '').partition(':')[0]})": counters.suspended,
        }
    )


def _shortened(sentences: Iterable[str]) -> list[str]:
    lines = list(sentences)
    more = len(lines) - _SHOWN_MODELS
    return [*lines[:_SHOWN_MODELS], f"and {more:,} more models"] if more > 1 else lines


def _plain(text: str) -> str:
    """Return a server's words as one line that does nothing where it is shown."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return _cut(" ".join(printable.split()).translate(_DISARMED), LONGEST_REASON)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
