"""Telling people what became of a run: a command is started, a message is posted; the run does not wait."""

import asyncio
import os
import platform
import shlex
import shutil
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult

from asyncbench.config import ADDRESS_RULE, News, Notify, Sweep, is_address
from asyncbench.engine import Counters, still_stopped
from asyncbench.errors import AsyncbenchError, ConfigError, StoreError
from asyncbench.providers import known_endpoints, looks_secret
from asyncbench.records import Model, Outcome, StopWhen
from asyncbench.run.interrupts import on_interrupt
from asyncbench.run.progress import cost_text
from asyncbench.run.summary import Exit, Summary
from asyncbench.store import ModelCounts, left_mark, planned, read_manifest, trial_counts

Message = Mapping[str, object]
Send = Callable[[Message], Awaitable[str | None]]  # returns why nobody was told; None: somebody was

LONGEST_TEXT: Final = 1900  # characters; Discord refuses more than 2,000
LONGEST_REASON: Final = 300  # of what a server said
_SHOWN_MODELS: Final = 12
_ENDS: Final = {
    Exit.COMPLETE: "complete",
    Exit.USAGE: "refused",
    Exit.UNFINISHED: "not complete: trials failed or a model is suspended",
    Exit.BUDGET: "out of budget",
    Exit.STORAGE: "results could not be written",
    Exit.DEADLINE: "stopped by its deadline",
    Exit.INTERRUPTED: "interrupted",
}
# To chat services these begin a mention of everybody, and a server may have said them.
_DISARMED: Final = str.maketrans({"<": "‹", ">": "›", "@": "(at)"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What is known of a run that was killed."""

    began_at: str  # UTC, ISO 8601
    written_at: str | None  # the last that it wrote; None: nothing yet, or it cannot be read
    models: Mapping[str, Mapping[str, int]]  # alias → planned, done, open, in flight


def death_in(folder: Path, when: StopWhen | None = None) -> Death | None:
    """Return what is known of the last run in a folder; None: it ended by itself, or there was none.

    While another process runs the sweep, this is what is known of that run so far. By the rule `when` trials
    that were skipped are not open.
    """
    if (began_at := left_mark(folder)) is None:
        return None
    try:
        written_at, models = _so_far(folder, when)
    except AsyncbenchError:  # whoever opens the folder next complains
        return Death(began_at=began_at, written_at=None, models={})
    return Death(began_at=began_at, written_at=_iso(written_at), models=models)


def _open_in(folder: Path, when: StopWhen | None, aliases: Iterable[str]) -> int | None:
    """Return how many trials the plan has left open for these models; None: it cannot be read."""
    try:
        _, models = _so_far(folder, when)
    except AsyncbenchError:
        return None
    return sum(models[alias]["open"] for alias in aliases if alias in models)


def _so_far(folder: Path, when: StopWhen | None) -> tuple[float | None, dict[str, dict[str, int]]]:
    """Return when a folder was written last, seconds since 1970, and its figures by alias, as in `Death`."""
    found, plan = trial_counts(folder), planned(read_manifest(folder))
    models = {}
    for alias in dict.fromkeys([*(model for _, model, _ in plan), *found.models]):
        asked = sum(
            sum(sum(tasks.values()) for tasks in suites.values())
            for (_, model, _), suites in plan.items()
            if model == alias
        )
        known = found.models.get(alias)
        done, in_flight = (known.finished, known.in_flight) if known else (0, 0)
        needless = _skipped(known, when) if known else 0
        left = max(0, asked - done - needless)
        models[alias] = {"planned": asked, "done": done, "open": left, "in_flight": in_flight}
    return found.written_at, models


def _skipped(known: ModelCounts, when: StopWhen | None) -> int:
    """Return how many trials of a model are not asked, for by the rule enough is known of their cells."""
    holds = still_stopped(when, known.skips)
    return sum(trials for figures, trials in known.skips.items() if figures in holds)


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


# ── the notifier ─────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class Notifier:
    """Tells of one run, each thing once; use `notifier_of`.

    Messages are sent beside the run. One that cannot be sent is said once, and changes nothing else.
    """

    sweep: Sweep
    simulated: bool
    channels: Mapping[str, Send]  # by the name under which one that fails is said
    say: Callable[[str], None]
    limit: int | None = None  # problems of each model that the run was to ask; None: all
    command: str | None = None  # that goes on with the run; None: it has not got so far
    summary: Summary | None = None  # of the run, once it has one
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _given_up: bool = False

    @asynccontextmanager
    async def until_the_end(self) -> AsyncIterator[None]:
        """Tell how the body ends, and wait for the messages: no longer than one may take.

        A body that is cancelled tells nobody: whoever cancelled it knows. Ctrl-C while the messages are sent
        gives them up, and changes nothing else: the run has ended as it has.
        """
        try:
            yield
        except AsyncbenchError as error:
            self._finished(Exit.STORAGE if isinstance(error, StoreError) else Exit.USAGE, error)
            raise
        except (Exception, BaseExceptionGroup) as error:
            self._broke(error)
            raise
        else:
            with on_interrupt(self._give_up):
                left_open = await self._left_open()
            self._finished(Exit.COMPLETE if self.summary is None else self.summary.exit, left_open=left_open)
        finally:
            if self._sending:
                with on_interrupt(self._give_up):
                    await asyncio.wait(self._sending)

    def _give_up(self) -> None:
        if not self._given_up:
            self._given_up = True
            self.say("notify: interrupted; messages that are not sent yet are given up")
        for sending in self._sending:
            sending.cancel()

    async def _left_open(self) -> int | None:
        """Return how many trials the plan has left open for those that were asked; None: unknown."""
        if self.summary is None or not self._wanted("finished"):
            return None
        if self.limit is None:
            return sum(one.open for one in self.summary.models.values())
        return await asyncio.to_thread(_open_in, self.sweep.out, self.sweep.stop_when, self.summary.models)

    def died(self, death: Death | None) -> None:
        """Tell that the run before this one never ended, if so."""
        if death is None:
            return
        written = f", wrote last at {death.written_at}" if death.written_at else ""
        lines = [f"the run begun at {death.began_at} was killed{written}. Going on with what is open."]
        lines += _shortened(
            f"{alias}: {one['done']:,} of {one['planned']:,} done, {one['open']:,} open, "
            f"{one['in_flight']:,} calls in flight"
            for alias, one in death.models.items()
        )
        told = {
            "began_at": death.began_at,
            "written_at": death.written_at,
            "models": death.models,
            "go_on": None,  # the run that tells it does
        }
        self._tell("crashed", lines, **told)

    def suspended(self, alias: str, reason: str) -> None:
        """Tell that a model is given up until the next run."""
        shown = _plain(reason, most=LONGEST_REASON)
        lines = [f"{alias} is suspended ({shown}); the others go on"]
        if way_on := self._way_on():
            lines.append(f"when that is mended and this run is over: {way_on}")
        self._tell("suspended", lines, model=alias, reason=shown, go_on=way_on)

    def _finished(
        self, code: Exit, error: AsyncbenchError | None = None, *, left_open: int | None = None
    ) -> None:
        models = {} if self.summary is None else self.summary.models
        part = self.limit is not None and left_open != 0
        why = f"{_ENDS[code]} of the limit" if part and code is Exit.COMPLETE else _ENDS[code]
        lines = [f"finished, {why} (exit code {code.value})"]
        if part and left_open is not None:
            lines.append(f"limit: {self.limit:,} problems a model; {left_open:,} trials of the plan are open")
        lines += [_plain(str(error), most=LONGEST_REASON)] * (error is not None)
        way_on = None if code is Exit.COMPLETE else self._way_on(retry=code is Exit.UNFINISHED)
        lines += [f"to go on: {way_on}"] * (way_on is not None)
        lines += _shortened(_sentence(alias, one) for alias, one in models.items())
        told = {
            "exit": code.value,
            "why": why,
            "limit": self.limit,
            "left_open": left_open,
            "skipped": sum(one.skipped for one in models.values()),
            "go_on": way_on,
            "seconds": None if self.summary is None else round(self.summary.seconds, 3),
            "models": {alias: _figures(one) for alias, one in models.items()},
        }
        self._tell("finished", [*lines, f"results in {self.sweep.out}"], **told)

    def _broke(self, error: BaseException) -> None:
        """Tell of a bug at once; its words stay here, for they might hold anything."""
        kind = type(error).__name__
        lines = [f"crashed: {kind}, a bug of ours. What was answered is saved; run it again to go on."]
        if way_on := self._way_on():
            lines.append(way_on)
        self._tell("crashed", lines, exit=Exit.BUG.value, error=kind, go_on=way_on)

    def _way_on(self, *, retry: bool = False) -> str | None:
        """Return the command that goes on, from wherever it is typed; None: the run has not got so far.

        With `retry` it asks again what failed, if anything did.
        """
        command = self.command if self.summary is None else self.summary.command
        if not command:
            return None
        failed = self.summary is not None and any(one.failed for one in self.summary.models.values())
        again = " --retry failed" if retry and failed and "--retry" not in command else ""
        return f"{_to_here()}{command}{again}"

    def _wanted(self, event: News) -> bool:
        return self.sweep.notify is not None and event in self.sweep.notify.on and not self._given_up

    def _tell(self, event: News, lines: Sequence[str], **fields: object) -> None:
        """Send a message on every channel, if this is wanted; return at once."""
        if self.sweep.notify is None or not self._wanted(event):
            return
        mark = "SIMULATED " if self.simulated else ""
        file, host = self.sweep.file and str(self.sweep.file.absolute()), platform.node()
        where = f"sweep file {file}, on {host}" if file else f"no sweep file, on {host}"
        message = {
            "event": event,
            "text": _cut(
                f"{mark}{self.sweep.name}: " + "\n".join([lines[0], where, *lines[1:]]), LONGEST_TEXT
            ),
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
        try:
            async with asyncio.timeout(timeout_s):
                why = await send(message)
        except TimeoutError:
            why = f"not done within {timeout_s:g} s"
        if why is not None and name not in self._failed:
            self._failed.add(name)
            self.say(f"notify: {name}: {why}. The run does not depend on it.")


def notifier_of(
    sweep: Sweep,
    models: Sequence[Model],
    env: Mapping[str, str],
    say: Callable[[str], None],
    *,
    limit: int | None = None,
) -> Notifier:
    """Return what tells the people that a sweep names, of a run of these models.

    Args:
        sweep: names them, or nobody.
        models: those that are asked.
        env: where the address is looked up that stands in a variable.
        say: is told which channel fails, once each.
        limit: at most this many problems of each model are asked; None: all.

    Raises:
        ConfigError: the program or the address is not there. No address or command is repeated.
    """
    simulated = any(model.simulated for model in models)
    channels = {} if sweep.notify is None else _channels(sweep.notify, sweep.models, env)
    return Notifier(sweep=sweep, simulated=simulated, channels=channels, say=say, limit=limit)


def _channels(notify: Notify, models: Iterable[Model], env: Mapping[str, str]) -> dict[str, Send]:
    channels: dict[str, Send] = {}
    if notify.command:
        if shutil.which(notify.command[0]) is None:
            raise ConfigError("notify.command: its first word is no program that can be started here")
        keys = {notify.webhook_env, *(model.key_env for model in models)}
        channels["the command"] = partial(_run, notify.command, _inherited(keys))
    address = notify.address(env)
    if notify.webhook_env is None and address is not None and not is_address(address):
        raise ConfigError(f"notify.webhook: not {ADDRESS_RULE}")
    if notify.webhook_env is not None and not is_address(address or ""):
        found = "is not set" if address is None else f"does not hold {ADDRESS_RULE}"
        raise ConfigError(f"notify.webhook_env: the environment variable {notify.webhook_env} {found}")
    if address is not None:
        channels[f"the webhook at {urlsplit(address).hostname}"] = partial(_post, address)
    return channels


def _inherited(keys: Iterable[str | None]) -> dict[str, str]:
    """Return our environment for a command: without these keys, other endpoints', and what may be one.

    A proxy without a password stays: the command may need it to reach anybody.
    """
    known = {*keys, *(endpoint.key_env for endpoint in known_endpoints().values())}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in known
        and (not looks_secret(name) or (name.upper().endswith("_PROXY") and "@" not in value))
    }


# ── the two ways to send ─────────────────────────────────────────────────────────────────────


async def _run(command: Sequence[str], inherited: Mapping[str, str], message: Message) -> str | None:
    """Start a program, with the message on its standard input; it gets no key, and prints nowhere."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=nowhere,
            stderr=nowhere,
            env={**inherited, **_variables(message)},
            start_new_session=True,  # a Ctrl-C meant for the run is not meant for it
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    try:
        await process.communicate(orjson.dumps(message))
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return f"ended with exit code {process.returncode}" if process.returncode else None


def _variables(message: Message) -> dict[str, str]:
    """Return what is one word of a message as variables: ASYNCBENCH_EVENT, ASYNCBENCH_TEXT, …"""
    said = {name: value for name, value in message.items() if isinstance(value, str | int | float)}
    return {f"ASYNCBENCH_{name.upper()}": _word(value) for name, value in said.items()}


def _word(value: str | float) -> str:
    """Return a value as a variable can hold it."""
    return str(value).lower() if isinstance(value, bool) else str(value).replace("\0", "")


async def _post(address: str, message: Message) -> str | None:
    """Post a message as JSON; Slack and others show its `text`, Discord its `content`."""
    body = orjson.dumps({**message, "content": message["text"], "allowed_mentions": {"parse": []}})
    headers = {"content-type": "application/json"}
    connector = aiohttp.TCPConnector(resolver=_Resolver())
    try:
        async with (
            aiohttp.ClientSession(connector=connector, trust_env=True) as session,
            session.post(address, data=body, headers=headers, allow_redirects=False) as response,
        ):
            return None if response.status < 300 else f"answered with HTTP {response.status}"
    except (aiohttp.ClientError, OSError, ValueError) as error:  # their words may hold the address
        return f"cannot be reached ({type(error).__name__})"


class _Resolver(AbstractResolver):
    """Looks each name up in a daemon thread of its own.

    The event loop's own threads are waited for at its end, and a name server may be silent for minutes.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found: Future[list[ResolveResult]] = Future()
        found.set_running_or_notify_cancel()  # from here on nobody but the thread ends it

        def look_up() -> None:
            try:
                found.set_result(_addresses(host, port, family))
            except Exception as error:
                found.set_exception(error)  # raised again where it is waited for

        threading.Thread(target=look_up, name=f"notify {host}", daemon=True).start()
        return await asyncio.wrap_future(found)

    async def close(self) -> None:
        """Leave a thread that still waits alone: it ends with the process, and changes nothing."""


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """Return where a host is, as aiohttp wants it; takes as long as its name servers."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return [
        ResolveResult(
            hostname=host,
            # As a number again, with the interface that a link-local address needs.
            host=socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0],
            port=port,
            family=found,
            proto=proto,
            flags=numeric,
        )
        for found, _, proto, _, address in infos
    ]


# ── figures and words ────────────────────────────────────────────────────────────────────────


def _figures(one: Counters) -> dict[str, object]:
    closed = one.outcomes.total()
    return {
        "planned": one.planned,
        "done": one.done,
        "failed": one.failed,
        "skipped": one.skipped,  # by `stop_when`
        "closed": closed,  # by this run: what `accuracy` is of
        "accuracy": one.outcomes[Outcome.CORRECT] / closed if closed else None,
        "cost_usd": one.cost_usd,
        "unpriced_attempts": one.unpriced,
        "suspended": None if one.suspended is None else _plain(one.suspended, most=LONGEST_REASON),
    }


def _sentence(alias: str, one: Counters) -> str:
    closed, correct = one.outcomes.total(), one.outcomes[Outcome.CORRECT]
    parts = [f"{alias}: {one.done:,} of {one.planned:,} done"]
    parts += [f"{one.skipped:,} skipped (stop_when)"] if one.skipped else []
    parts += [f"{correct / closed:.1%} of {closed:,} correct now"] if closed else []
    parts += [f"{one.failed:,} failed"] if one.failed else []
    parts += [cost_text(one)] if one.attempts else []
    parts += [f"SUSPENDED ({one.suspended.partition(':')[0]})"] if one.suspended else []
    return ", ".join(parts)


def _to_here() -> str:
    """Return what leads to where this process is; the paths of a sweep begin there."""
    try:
        return f"cd {shlex.quote(os.getcwd())} && "
    except OSError:  # it was removed
        return ""


def _shortened(sentences: Iterable[str]) -> list[str]:
    lines = list(sentences)
    more = len(lines) - _SHOWN_MODELS
    return [*lines[:_SHOWN_MODELS], f"and {more:,} more models"] if more > 1 else lines


def _plain(text: str, *, most: int) -> str:
    """Return what a server said as one line that does nothing where it is shown."""
    seen = "".join(character if character.isprintable() else " " for character in text)
    return _cut(" ".join(seen.split()).translate(_DISARMED), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
