"""The ways in which a message leaves: a program is started with it, or it is posted to an address."""

import asyncio
import os
import shutil
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult

from asyncbench.config.notify import ADDRESS_RULE, Notify, is_address
from asyncbench.errors import ConfigError
from asyncbench.providers.workers.process import PROXY, without_keys
from asyncbench.records import Model

Message = Mapping[str, object]
Send = Callable[[Message], Awaitable[str | None]]  # returns why nobody was told; None: somebody was


def channels_of(notify: Notify, models: Iterable[Model], env: Mapping[str, str]) -> dict[str, Send]:
    """Return the ways to tell people, by the name under which one that fails is said.

    Raises:
        ConfigError: the program or the address is not there. No address or command is repeated.
    """
    channels: dict[str, Send] = {}
    if notify.command:
        if shutil.which(notify.command[0]) is None:
            raise ConfigError("notify.command: its first word is not a program on this computer")
        keys = {notify.webhook_env, *(model.key_env for model in models)}
        channels["the command"] = partial(_run, notify.command, _inherited(keys))
    address = notify.address(env)
    if address is not None and is_address(address):
        channels[f"the webhook at {urlsplit(address).hostname}"] = partial(_post, address)
    elif notify.webhook_env is not None:
        found = "is not set" if address is None else f"does not hold {ADDRESS_RULE}"
        raise ConfigError(f"notify.webhook_env: the environment variable {notify.webhook_env} {found}")
    elif address is not None:
        raise ConfigError(f"notify.webhook: not {ADDRESS_RULE}")
    return channels


def _inherited(keys: Collection[str | None]) -> dict[str, str]:
    """Return our environment for a command, without keys and the passwords of proxies.

    A proxy without a password stays: the command may need it to reach anybody.
    """
    environment = without_keys(os.environ, named=keys)
    return {
        name: value
        for name, value in environment.items()
        if not (name.upper().endswith(PROXY) and "@" in value)
    }


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
    return {
        f"ASYNCBENCH_{name.upper()}": str(value).lower()
        if isinstance(value, bool)
        else str(value).replace("\0", "")
        for name, value in message.items()
        if isinstance(value, str | int | float)
    }


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

    The event loop waits for its own threads at its end, and writes results with them. A name server may be
    silent for minutes.
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
